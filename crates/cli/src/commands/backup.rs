//! `larder backup`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_bytes, sanitize_line};
use larder_store::Error;
use serde_json::json;
use std::path::PathBuf;

/// Copy the store, even while it is in use, into one file, and verify the copy
///
/// If FILE is an existing backup, it is replaced when the new one is complete.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write
    file: PathBuf,
}

impl BackupArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.file.is_dir() {
            let what =
                format!("{} is a directory", sanitize_line(&self.file.display().to_string()));
            return Err(
                CommandFailure::new(FailureKind::Usage, what).with_hint("name a file in it")
            );
        }
        let bytes =
            context.open_store_to_copy()?.backup(&self.file).map_err(|error| match error {
                Error::Damaged { path, .. }
                | Error::DamagedObject { path, .. }
                | Error::NotAStore { path, .. }
                    if path == self.file =>
                {
                    let path = sanitize_line(&path.display().to_string());
                    CommandFailure::new(
                        FailureKind::Source,
                        format!("{path} exists and is not a backup"),
                    )
                    .with_hint("choose another file; only backups are replaced")
                }
                Error::File { path, source } if !path.starts_with(&context.dir) => {
                    CommandFailure::from_file_error(&self.file, &source)
                }
                error => error.into(),
            })?;
        let file = self.file.display().to_string();
        match context.format {
            OutputFormat::Json => {
                context.out.print_json(&json!({ "file": file, "size": bytes }))?;
            }
            _ => {
                let line =
                    format!("Wrote and verified {}, {}", sanitize_line(&file), format_bytes(bytes));
                context.out.print_line(line)?;
            }
        }
        Ok(CommandStatus::Done)
    }
}
