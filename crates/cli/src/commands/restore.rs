//! `larder restore`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_count, sanitize_line};
use larder_store::{DataDirectory, Error, RestoreReport};
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Replace the store with a backup; the current store is kept as data.db.before-restore
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A file that `larder backup` wrote
    file: PathBuf,
}

impl RestoreArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        self.check_file()?;
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
            | Error::OtherStore { path, .. }
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

    /// Refuses anything but a regular file: SQLite reads pages in any order, which a pipe cannot
    /// give.
    fn check_file(&self) -> Result<(), CommandFailure> {
        let error_at = |error: io::Error| CommandFailure::from_file_error(&self.file, &error);
        let found = std::fs::metadata(&self.file).map_err(error_at)?;
        if found.is_dir() {
            return Err(error_at(io::ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() {
            let file = sanitize_line(&self.file.display().to_string());
            let what = format!("{file} is a pipe or a device, not a file");
            return Err(CommandFailure::new(FailureKind::Source, what)
                .with_hint("name a file that `larder backup` wrote"));
        }
        File::open(&self.file).map(drop).map_err(error_at)
    }

    fn print_report(
        &self,
        context: &mut CommandContext,
        restored: &RestoreReport,
    ) -> Result<CommandStatus, CommandFailure> {
        let file = &self.file.display().to_string();
        let previous_store = restored.previous_copy.as_ref().map(|copy| copy.display().to_string());
        if context.format == OutputFormat::Json {
            let object = json!({
                "file": file, "items": restored.items,
                "previous_store": previous_store,
            });
            context.out.print_json(&object)?;
        } else {
            let items = format_count(restored.items, "item");
            context.out.print_line(format!("Restored {items} from {}", sanitize_line(file)))?;
            if let Some(previous_store) = previous_store {
                let previous_store = sanitize_line(&previous_store);
                context.out.print_line(format!("The previous store is in {previous_store}"))?;
            }
        }
        context.out.flush()?;
        Ok(CommandStatus::Done)
    }
}
