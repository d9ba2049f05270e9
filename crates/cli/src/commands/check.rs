use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{complain, count, size};
use larder_store::Report;
use serde_json::json;

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
        Err(Failure::new(Kind::Store, format!("the check found {faults}")).hint(if self.rebuild {
            "indexes that differed are mended now; run larder check again to see what is left"
        } else {
            "larder check --rebuild mends indexes; larder restore FILE brings a backup back"
        }))
    }
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
