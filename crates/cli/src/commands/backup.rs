use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_bytes, sanitize_line};
use larder_store::Error;
use serde_json::json;
use std::path::PathBuf;

/// Copy the store into one file while it is in use, and verify the copy
///
/// An older backup of that name is replaced when the new one is whole.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to make
    file: PathBuf,
}

impl BackupArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.file.is_dir() {
            let what = format!("{} is a folder", sanitize_line(&self.file.display().to_string()));
            return Err(CommandFailure::new(FailureKind::Usage, what)
                .with_hint("name the file to make in it"));
        }
        let bytes = context.open_store()?.backup(&self.file).map_err(|error| match error {
            Error::Damaged { path, .. } | Error::NotAStore { path, .. } if path == self.file => {
                let path = sanitize_line(&path.display().to_string());
                CommandFailure::new(
                    FailureKind::Source,
                    format!("{path} is there already, and no backup"),
                )
                .with_hint("name another file: only an older backup is replaced")
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
                let line = format!(
                    "{} written and verified, {}",
                    sanitize_line(&file),
                    format_bytes(bytes)
                );
                context.out.print_line(line)?;
            }
        }
        Ok(CommandStatus::Done)
    }
}
