use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{
    CommandFailure, CommandStatus, FailureKind, RECOVERY_DOC_HINT, backup_copy_hints,
};
use crate::output::{format_bytes, format_count, print_message};
use larder_store::{CheckReport, Fault};
use serde_json::json;
use std::path::Path;

/// Verify the store: pages, references, and that the indexes are what the items give
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Drop everything that is derived from the items, fill it again, and compare
    #[arg(long)]
    rebuild: bool,
}

impl CheckArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let mut store = context.open_store()?;
        let report = if self.rebuild { store.rebuild_and_check()? } else { store.check()? };
        print_report(context, &report)?;
        for fault in &report.faults {
            print_message("error", fault);
        }
        if report.faults.is_empty() {
            return Ok(CommandStatus::Done);
        }
        context.out.flush()?;
        let faults = format_count(report.faults.len() as u64, "fault");
        let failure = CommandFailure::new(FailureKind::Store, format!("the check found {faults}"));
        Err(with_next_step(failure, &context.dir, &report, self.rebuild))
    }
}

/// What to do next: indexes can be made again, what they are made from cannot.
fn with_next_step(
    mut failure: CommandFailure,
    dir: &Path,
    report: &CheckReport,
    rebuilt: bool,
) -> CommandFailure {
    let index = |fault: &Fault| {
        matches!(fault, Fault::Index { .. } | Fault::Malformed { .. } | Fault::Stale { .. })
    };
    if rebuilt && report.faults.iter().any(index) {
        failure = failure
            .with_hint("indexes that differed are mended now: larder check tells what is left");
    } else if report.faults.iter().any(index) {
        failure = failure.with_hint("larder check --rebuild makes indexes again, from the items");
    }
    if report.faults.iter().all(index) {
        return failure.with_hint("only indexes are concerned, and no item");
    }
    let failure = failure
        .with_hint("save what can still be read: larder export NAME -o FILE, for each of larder collections")
        .with_hint("then bring the last backup back (FILE: what larder backup wrote): larder restore FILE");
    backup_copy_hints(dir)
        .iter()
        .fold(failure, |failure, copy| failure.with_hint(copy))
        .with_hint(RECOVERY_DOC_HINT)
}

fn print_report(context: &mut CommandContext, report: &CheckReport) -> Result<(), CommandFailure> {
    let (versions, kept) = report.history;
    if context.format == OutputFormat::Json {
        let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        context.out.print_json(&json!({
            "faults": faults, "items": report.items, "former_versions": versions, "former_bytes": kept,
            "size": report.database_bytes, "wal": report.wal_bytes, "rebuilt": report.rebuilt_items,
        }))?;
        return Ok(());
    }
    let out = &mut context.out;
    let verdict = if report.faults.is_empty() { "sound" } else { "not sound" };
    out.print_line(format!("{verdict}: {}", format_count(report.items, "item")))?;
    out.print_line(format!(
        "former versions  {} of {}",
        format_bytes(kept),
        format_count(versions, "version")
    ))?;
    out.print_line(format!("data.db          {}", format_bytes(report.database_bytes)))?;
    out.print_line(format!("write-ahead log  {}", format_bytes(report.wal_bytes)))?;
    if report.rebuilt_items > 0 {
        out.print_line("indexes          dropped, refilled and compared")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_what_is_wrong() {
        let check = |faults: &[&Fault], rebuilt, expect: &str, not: &str| {
            let faults = faults.iter().copied().cloned().collect();
            let report = CheckReport { faults, ..CheckReport::default() };
            let failure = CommandFailure::new(FailureKind::Store, "the check found faults");
            let said =
                format!("{:?}", with_next_step(failure, Path::new("/nowhere"), &report, rebuilt));
            assert!(said.contains(expect) && !said.contains(not), "{said}");
        };
        let index = &Fault::Index { set: "text", stored: 1, expected: 2 };
        let stale = &Fault::Stale { set: "text" };
        let page = &Fault::Page("page 3 is never used".into());
        check(&[index, stale], false, "larder check --rebuild", "larder restore");
        check(&[index, stale], true, "are mended now", "--rebuild");
        check(&[page], false, "larder restore FILE", "--rebuild");
        check(&[index, page], false, "When something breaks", "no item");
    }
}
