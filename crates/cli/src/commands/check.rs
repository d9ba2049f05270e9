use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind, WHEN_SOMETHING_BREAKS, copies};
use crate::output::{complain, count, size};
use larder_store::{Fault, Report};
use serde_json::json;
use std::path::Path;

/// Verify the store: pages, references, and that the indexes are what the items give
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Drop everything that is derived from the items, fill it again, and compare
    #[arg(long)]
    rebuild: bool,
}

impl Check {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let mut store = context.store()?;
        let report = if self.rebuild { store.check_rebuild()? } else { store.check()? };
        print(context, &report)?;
        for fault in &report.faults {
            complain("error", fault);
        }
        if report.faults.is_empty() {
            return Ok(Code::Done);
        }
        context.out.flush()?;
        let faults = count(report.faults.len() as u64, "fault");
        let failure = Failure::new(Kind::Store, format!("the check found {faults}"));
        Err(next(failure, &context.dir, &report, self.rebuild))
    }
}

/// What to do next: indexes can be made again, what they are made from cannot.
fn next(mut failure: Failure, dir: &Path, report: &Report, rebuilt: bool) -> Failure {
    let index = |fault: &Fault| {
        matches!(fault, Fault::Index { .. } | Fault::Malformed { .. } | Fault::Stale { .. })
    };
    if rebuilt && report.faults.iter().any(index) {
        failure =
            failure.hint("indexes that differed are mended now: larder check tells what is left");
    } else if report.faults.iter().any(index) {
        failure = failure.hint("larder check --rebuild makes indexes again, from the items");
    }
    if report.faults.iter().all(index) {
        return failure.hint("only indexes are concerned, and no item");
    }
    let failure = failure
        .hint("save what can still be read: larder export NAME -o FILE, for each of larder collections")
        .hint("then bring the last backup back (FILE: what larder backup wrote): larder restore FILE");
    copies(dir).iter().fold(failure, |failure, copy| failure.hint(copy)).hint(WHEN_SOMETHING_BREAKS)
}

fn print(context: &mut Context, report: &Report) -> Result<(), Failure> {
    let (versions, kept) = report.former;
    if context.format == Format::Json {
        let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        context.out.json(&json!({
            "faults": faults, "items": report.items, "former_versions": versions, "former_bytes": kept,
            "size": report.size, "wal": report.wal, "rebuilt": report.rebuilt,
        }))?;
        return Ok(());
    }
    let out = &mut context.out;
    let verdict = if report.faults.is_empty() { "sound" } else { "not sound" };
    out.line(format!("{verdict}: {}", count(report.items, "item")))?;
    out.line(format!("former versions  {} of {}", size(kept), count(versions, "version")))?;
    out.line(format!("data.db          {}", size(report.size)))?;
    out.line(format!("write-ahead log  {}", size(report.wal)))?;
    if report.rebuilt > 0 {
        out.line("indexes          dropped, refilled and compared")?;
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
            let report = Report { faults, ..Report::default() };
            let failure = Failure::new(Kind::Store, "the check found faults");
            let said = format!("{:?}", next(failure, Path::new("/nowhere"), &report, rebuilt));
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
