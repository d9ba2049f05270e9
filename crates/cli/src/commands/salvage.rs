//! `larder salvage`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_count, print_message, sanitize_line};
use larder_store::{DataDirectory, SalvageReport};
use serde_json::json;
use std::path::PathBuf;

/// Save everything that can be read of a damaged store into a new file, and name what is missing
///
/// The store is not changed. FILE can be restored like a backup: `larder restore FILE`.
#[derive(Debug, clap::Args)]
pub(crate) struct SalvageArgs {
    /// The file to write; it must not exist
    file: PathBuf,
}

impl SalvageArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let file = sanitize_line(&self.file.display().to_string());
        if self.file.symlink_metadata().is_ok() {
            let what = format!("{file} exists");
            return Err(CommandFailure::new(FailureKind::Usage, what)
                .with_hint("name a new file: salvage replaces nothing"));
        }
        let directory = DataDirectory::new(&context.dir);
        let report = directory.salvage(&context.store_options(false), &self.file)?;
        for loss in &report.losses {
            print_message("missing", sanitize_line(&loss.to_string()));
        }
        print_report(context, &report, &file)?;
        if report.losses.is_empty() {
            return Ok(CommandStatus::Done);
        }
        context.out.flush()?;
        let losses = format_count(report.losses.len() as u64, "object");
        let what = format!("cannot read all of the store: {losses} missing");
        Err(CommandFailure::new(FailureKind::Store, what)
            .with_hint(format!("to continue with what was saved: larder restore {file}"))
            .with_hint("an older backup may have what is missing"))
    }
}

fn print_report(
    context: &mut CommandContext,
    report: &SalvageReport,
    file: &str,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let losses: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
        context.out.print_json(&json!({
            "file": file, "items": report.items, "previous_versions": report.versions,
            "missing": losses,
        }))?;
        return Ok(());
    }
    let items = format_count(report.items, "item");
    let versions = format_count(report.versions, "previous version");
    context.out.print_line(format!("Wrote {items} and {versions} to {file}"))?;
    Ok(())
}
