//! `larder restore`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_count, sanitize_line};
use larder_store::{DataDirectory, Error, RestoreReport};
use serde_json::json;
use std::path::PathBuf;

/// Replace the store with a backup; the current store is kept as data.db.before-restore
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A file that `larder backup` wrote
    file: PathBuf,
}

impl RestoreArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if !self.file.is_file() {
            return Err(CommandFailure::new(
                FailureKind::Source,
                format!("{}: no such file", sanitize_line(&self.file.display().to_string())),
            )
            .with_hint("name a file that `larder backup` wrote"));
        }
        context.warn_of_access_by_others();
        let stop = crate::interrupt::install_interrupt_flag();
        let restored = DataDirectory::new(&context.dir).restore_unless_stopped(
            &context.store_options(true),
            &self.file,
            &stop,
        );
        if let Err(Error::RestoreStopped) = restored {
            context.out.print_line("interrupted; the store was not changed")?;
            return Ok(CommandStatus::Interrupted);
        }
        let restored = restored.map_err(|error| match &error {
            Error::Damaged { path, .. }
            | Error::DamagedObject { path, .. }
            | Error::NotAStore { path, .. }
                if *path == self.file =>
            {
                CommandFailure::new(FailureKind::Source, &error)
                    .with_hint("name a file that `larder backup` wrote; the store was not changed")
            }
            _ => error.into(),
        })?;
        let printed = self.print_report(context, &restored);
        printed.map_err(|failure| failure.after_change("the backup was restored"))
    }

    fn print_report(
        &self,
        context: &mut CommandContext,
        restored: &RestoreReport,
    ) -> Result<CommandStatus, CommandFailure> {
        let (file, previous_store) =
            (&self.file.display().to_string(), restored.previous_copy.display());
        if context.format == OutputFormat::Json {
            let object = json!({
                "file": file, "items": restored.items,
                "previous_store": previous_store.to_string(),
            });
            context.out.print_json(&object)?;
        } else {
            let items = format_count(restored.items, "item");
            context.out.print_line(format!("Restored {items} from {}", sanitize_line(file)))?;
            context.out.print_line(format!("The previous store is in {previous_store}"))?;
        }
        context.out.flush()?;
        Ok(CommandStatus::Done)
    }
}
