//! `larder salvage`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{format_count, print_message, sanitize_line};
use crate::output_path::OutputPath;
use larder_store::{DataDirectory, OutputFile, SalvageLoss, SalvageReport};
use serde_json::json;

/// Save everything that can be read of a damaged store into a new file, and name what is missing
///
/// The store is not changed. FILE can be restored like a backup: `larder restore FILE`.
#[derive(Debug, clap::Args)]
pub(crate) struct SalvageArgs {
    /// The file to write, which must not exist; - for standard output
    file: OutputPath,
}

impl SalvageArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let path = self.file.path();
        let file = sanitize_line(&path.display().to_string());
        let directory = DataDirectory::new(&context.dir);
        OutputFile::check_path(&directory, path)?;
        let is_in_use = |found: std::fs::Metadata| !found.is_dir() && !self.file.is_direct();
        if path.symlink_metadata().is_ok_and(is_in_use) {
            let what = format!("{file} exists");
            return Err(CommandFailure::new(FailureKind::Usage, what)
                .with_hint("name a new file: salvage replaces nothing"));
        }
        let target = self.file.to_target(&mut context.out)?;
        let report = directory.salvage(&context.store_options(false), target)?;
        for loss in &report.losses {
            print_message("missing", sanitize_line(&loss.to_string()));
        }
        for parts in &report.unreadable_parts {
            print_message("unreadable", sanitize_line(&parts.to_string()));
        }
        print_report(context, &report, &file)?;
        if report.losses.is_empty() {
            return Ok(CommandStatus::Done);
        }
        context.out.flush()?;
        Err(CommandFailure::new(FailureKind::Store, format_losses(&report))
            .with_hint(format!("to continue with what was saved: larder restore {file}"))
            .with_hint("an older backup may have what is missing"))
    }
}

/// Counts the objects that are missing, and names the disk if it failed.
fn format_losses(report: &SalvageReport) -> String {
    let count: Option<u64> = report.losses.iter().map(SalvageLoss::object_count).sum();
    let losses = match count {
        Some(count) => format_count(count, "object"),
        None => "an unknown number of objects".to_string(),
    };
    let disk = report.unreadable_parts.first().map(|parts| format!("; {parts}"));
    let disk = sanitize_line(&disk.unwrap_or_default());
    format!("cannot read all of the store: {losses} missing{disk}")
}

fn print_report(
    context: &mut CommandContext,
    report: &SalvageReport,
    file: &str,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let losses: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
        let unreadable: Vec<String> =
            report.unreadable_parts.iter().map(ToString::to_string).collect();
        context.out.print_json(&json!({
            "file": file, "items": report.items, "previous_versions": report.versions,
            "missing": losses, "unreadable": unreadable,
        }))?;
        return Ok(());
    }
    let items = format_count(report.items, "item");
    let versions = format_count(report.versions, "previous version");
    context.out.print_line(format!("Wrote {items} and {versions} to {file}"))?;
    Ok(())
}
