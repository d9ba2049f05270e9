//! `larder check`.

mod derived_store;
mod file_comparison;

use self::derived_store::DerivedStore;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{
    CommandFailure, CommandStatus, FailureKind, RECOVERY_DOC_HINT, backup_copy_hints,
};
use crate::interrupt::{ReadingInterrupt, install_interrupt_flag};
use crate::output::{format_bytes, format_count, print_message, sanitize_line};
use larder_store::{CheckReport, DataDirectory, Error, Fault};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Check the store for damage
///
/// Checks the database pages and the references between tables, compares all items and former
/// versions with their checksums, and compares the indexes with the items. Of mail and commits, the
/// tables of files, folders, threads, labels and words are compared with each other, and the labels
/// with those in data.db.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Read the files of all messages, too, and compare their texts, words and header values with
    /// the index of mail. Files that are missing or were changed are named, and are no damage
    #[arg(long, conflicts_with = "rebuild")]
    full: bool,
    /// Rebuild all indexes from the items and compare; if pages of indexes are damaged, the store
    /// is written anew, and the damaged file is kept. The indexes of mail and of commits are made
    /// anew from their sources, while searches use the old ones
    #[arg(long)]
    rebuild: bool,
}

impl CheckArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        context.warn_of_access_by_others();
        // The report has interrupted work.
        context.without_work_warnings();
        let reading =
            self.full.then(|| ReadingInterrupt::install("interrupted: the check is not complete"));
        let is_reading_stopped = || reading.as_ref().is_some_and(ReadingInterrupt::ask);
        let reads_files: Option<&dyn Fn() -> bool> =
            if self.full { Some(&is_reading_stopped) } else { None };
        // Each store is checked, whatever the others have.
        let mut failures = Vec::new();
        keep_failure(&mut failures, self.check_data(context))?;
        let stop = self.rebuild.then(install_interrupt_flag);
        let is_stopped = || stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        let mut status = CommandStatus::Done;
        for store in DerivedStore::ALL {
            if is_stopped() || status == CommandStatus::Interrupted {
                status = CommandStatus::Interrupted;
                break;
            }
            let has_store = store.directory(context).has_store();
            let Some(check) =
                keep_failure(&mut failures, store.check(context, self.rebuild, reads_files))?
            else {
                continue;
            };
            let mut next = check.status;
            let mut is_replaced = false;
            if self.rebuild && has_store {
                let remade = store.remake(context, check.is_readable, &is_stopped);
                if let Some(remade) = keep_failure(&mut failures, remade)? {
                    (next, is_replaced) = remade;
                }
            }
            // The faults of a store that was replaced are gone.
            failures.extend(check.failure.filter(|_| !is_replaced));
            if status == CommandStatus::Done || next == CommandStatus::Interrupted {
                status = next;
            }
        }
        if failures.len() > 1 || status == CommandStatus::Interrupted {
            context.out.flush()?;
            failures.iter().for_each(CommandFailure::print);
            let is_interrupted = status == CommandStatus::Interrupted;
            return Ok(if is_interrupted { status } else { CommandStatus::Damaged });
        }
        failures.pop().map_or(Ok(status), Err)
    }

    /// Checks `data.db` and prints the result. Faults are a failure that says what to do.
    fn check_data(&self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        let report = if self.rebuild {
            let directory = DataDirectory::new(&context.dir);
            let rebuilt = directory.rebuild_and_check(&context.store_options(false));
            rebuilt.map_err(|error| to_rebuild_failure(error, &context.dir))?
        } else {
            let mut store = context.open_store_to_copy()?;
            if store.is_writable() {
                // Waits for a process that is refilling the indexes.
                store.refresh()?;
            }
            store.check()?
        };
        print_report(context, &report)?;
        context.out.flush()?;
        for fault in &report.faults {
            print_message("error", fault);
        }
        if report.faults.is_empty() {
            return Ok(());
        }
        let faults = format_count(report.faults.len() as u64, "fault");
        let failure = CommandFailure::new(FailureKind::Store, format!("the store has {faults}"));
        Err(with_next_step(failure, &context.dir, &report, self.rebuild))
    }
}

/// Keeps a failure for the end, except one to print. `None`: it was one.
fn keep_failure<T>(
    failures: &mut Vec<CommandFailure>,
    result: Result<T, CommandFailure>,
) -> Result<Option<T>, CommandFailure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.is_of_output() => Err(failure),
        Err(failure) => {
            failures.push(failure);
            Ok(None)
        }
    }
}

/// Adds hints on what to do: indexes can be rebuilt from the items, the items cannot.
fn with_next_step(
    mut failure: CommandFailure,
    dir: &Path,
    report: &CheckReport,
    rebuilt: bool,
) -> CommandFailure {
    for work in report.faults.iter().filter_map(Fault::pending_work) {
        failure =
            failure.with_hint(format!("to finish the interrupted work: larder {}", work.command()));
    }
    if report.faults.iter().all(|fault| fault.pending_work().is_some()) {
        return failure;
    }
    let index = |fault: &Fault| {
        matches!(fault, Fault::Index { .. } | Fault::Malformed { .. } | Fault::Stale { .. })
    };
    if let Some(damaged) = &report.damaged_copy {
        let damaged = sanitize_line(&damaged.display().to_string());
        return failure
            .with_hint("all items were copied into a new file; run `larder check` again")
            .with_hint(format!(
                "the damaged file is {damaged}; delete it when you no longer need it"
            ));
    }
    if rebuilt && report.faults.iter().any(index) {
        failure = failure.with_hint("the indexes have been repaired; run `larder check` again");
    } else if report.faults.iter().any(index) {
        failure =
            failure.with_hint("to rebuild the indexes from the items: larder check --rebuild");
    }
    if report.faults.iter().all(|fault| index(fault) || fault.pending_work().is_some()) {
        return failure.with_hint("only indexes are damaged, no items");
    }
    let has_changed = |fault: &Fault| matches!(fault, Fault::Checksum(_));
    if report.faults.iter().any(has_changed) {
        failure = failure.with_hint(
            "the bytes of the named items have changed: import them again from another copy, or",
        );
    }
    failure = with_salvage_hints(failure);
    if report.has_damaged_pages() && !rebuilt {
        failure = failure
            .with_hint("if only indexes are damaged, this repairs them: larder check --rebuild");
    }
    with_document_hints(failure, dir)
}

/// Returns the failure of a rebuild: if pages with data are damaged, it names salvage, because
/// another rebuild would fail too.
fn to_rebuild_failure(error: Error, dir: &Path) -> CommandFailure {
    if !matches!(error, Error::Damaged { .. } | Error::DamagedObject { .. }) {
        return error.into();
    }
    let failure = CommandFailure::new(FailureKind::Store, error.to_string())
        .with_hint("more than indexes is damaged: the store was not changed");
    with_document_hints(with_salvage_hints(failure), dir)
}

fn with_salvage_hints(failure: CommandFailure) -> CommandFailure {
    failure.with_hint("save everything that can be read: larder salvage FILE").with_hint(
        "then restore that file, or the last backup (which `larder backup` wrote): larder restore FILE",
    )
}

/// Names the older copies of the store, and the document.
fn with_document_hints(failure: CommandFailure, dir: &Path) -> CommandFailure {
    backup_copy_hints(dir)
        .iter()
        .fold(failure, |failure, copy| failure.with_hint(copy))
        .with_hint(RECOVERY_DOC_HINT)
}

fn print_report(context: &mut CommandContext, report: &CheckReport) -> Result<(), CommandFailure> {
    let (versions, bytes) = report.history;
    if context.format == OutputFormat::Json {
        let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        context.out.print_json(&json!({
            "store": "data.db", "faults": faults, "items": report.items, "previous_versions": versions, "previous_bytes": bytes,
            "size": report.database_bytes, "wal": report.wal_bytes, "rebuilt": report.rebuilt_items,
        }))?;
        return Ok(());
    }
    let out = &mut context.out;
    let is_damaged = report.faults.iter().any(|fault| fault.pending_work().is_none());
    let verdict = match is_damaged {
        true => "damaged",
        false if report.faults.is_empty() => "OK",
        false => "unfinished",
    };
    out.print_line(format!("{verdict}: {} checked", format_count(report.items, "item")))?;
    out.print_line(format!(
        "previous versions  {} of {}",
        format_bytes(bytes),
        format_count(versions, "version")
    ))?;
    out.print_line(format!("data.db            {}", format_bytes(report.database_bytes)))?;
    out.print_line(format!("write-ahead log    {}", format_bytes(report.wal_bytes)))?;
    if report.rebuilt_items > 0 {
        out.print_line("indexes            rebuilt and compared")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::PendingWork;

    #[test]
    fn hints_depend_on_the_faults() {
        let check = |faults: &[&Fault], rebuilt, expect: &str, not: &str| {
            let faults = faults.iter().copied().cloned().collect();
            let report = CheckReport { faults, ..CheckReport::default() };
            let failure = CommandFailure::new(FailureKind::Store, "the check found faults");
            let printed =
                format!("{:?}", with_next_step(failure, Path::new("/nowhere"), &report, rebuilt));
            assert!(printed.contains(expect) && !printed.contains(not), "{printed}");
        };
        let index = &Fault::Index { index: "text", stored: 1, expected: 2 };
        let stale = &Fault::Stale { index: "text" };
        let page = &Fault::Page("page 3 is never used".into());
        check(&[index, stale], false, "larder check --rebuild", "larder restore");
        check(&[index, stale], true, "have been repaired", "--rebuild");
        check(&[page], false, "larder restore FILE", "have been repaired");
        check(&[page], true, "larder salvage FILE", "--rebuild");
        let purge = &Fault::Pending(PendingWork::Purge);
        check(&[purge], false, "larder purge", "larder restore");
        check(&[purge, page], false, "larder purge", "no items");
        check(&[purge, page], false, "larder restore FILE", "no items");
        check(&[purge, index], false, "no items", "larder restore");
        check(&[index, page], false, "Recovery", "no items");
        let key = "epoch".to_string();
        let changed = &Fault::Checksum(larder_store::DamagedObject::MetaValue { key });
        check(&[changed], false, "larder restore FILE", "--rebuild");
        check(&[changed], true, "have changed", "have been repaired");
    }
}
