//! `larder backup`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_bytes, sanitize_line};
use crate::output_path::OutputPath;
use larder_store::Error;
use serde_json::json;

/// Copy the store, even while it is in use, into one file, and verify the copy
///
/// If FILE is an existing backup, it is replaced when the new one is complete.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write; - for standard output
    file: OutputPath,
}

impl BackupArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let path = self.file.path();
        if path.is_dir() {
            let what = format!("{} is a directory", sanitize_line(&path.display().to_string()));
            return Err(
                CommandFailure::new(FailureKind::Usage, what).with_hint("name a file in it")
            );
        }
        let target = self.file.to_target(&mut context.out)?;
        let bytes = context.open_store_to_copy()?.backup(target).map_err(|error| match error {
            Error::Damaged { path: damaged, .. }
            | Error::DamagedObject { path: damaged, .. }
            | Error::NotAStore { path: damaged, .. }
                if damaged == path =>
            {
                let path = sanitize_line(&path.display().to_string());
                CommandFailure::new(
                    FailureKind::Source,
                    format!("{path} exists and is not a backup"),
                )
                .with_hint("choose another file; only backups are replaced")
            }
            Error::File { path: file, source } if !file.starts_with(&context.dir) => {
                CommandFailure::from_file_error(path, &source)
            }
            error => error.into(),
        })?;
        let file = path.display().to_string();
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
