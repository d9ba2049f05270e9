use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::ids::resolve;
use crate::output::{FAINT, GONE, NEW, Out, STRONG, count, moment, plain};
use larder_store::{Handle, HandlePrefix, OperationRow, Reader, Version};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;

/// List what was done, newest first; with ID, what an item was before
///
/// Former versions are kept for 90 days or 64 MB, whichever is less. `larder log ID --format raw` prints
/// the bytes of each version, oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    /// The history of this item; a removed one, too
    id: Option<String>,
    /// At most so many operations
    #[arg(long, short = 'n', value_name = "N", default_value_t = 30)]
    limit: usize,
}

impl Log {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        if let Some(id) = &self.id {
            let handle = handle_of(&reader, id)?;
            return versions(context, &reader.versions(handle)?);
        }
        let operations = reader.operations(None, self.limit)?;
        for row in &operations {
            match context.format {
                Format::Json => context.out.json(&operation_json(row))?,
                _ => context.out.line(operation_line(row))?,
            }
        }
        Ok(if operations.is_empty() { Code::NothingFound } else { Code::Done })
    }
}

/// An item that is there, or one that was removed.
fn handle_of(reader: &Reader, id: &str) -> Result<Handle, Failure> {
    let missing = match resolve(reader, id) {
        Ok(head) => return Ok(head.handle),
        Err(failure) => failure,
    };
    let prefix = HandlePrefix::parse(id);
    let removed = prefix.map(|prefix| reader.removed_by_handle(prefix, 2)).transpose()?;
    match removed.as_deref() {
        Some([handle]) => Ok(*handle),
        _ => Err(missing),
    }
}

fn operation_line(row: &OperationRow) -> String {
    let [added, updated, removed] = row.counts;
    let counts: Vec<String> = [(added, "+"), (updated, "~"), (removed, "-")]
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, sign)| format!("{sign}{number}"))
        .collect();
    let undone = row.undone_by.map_or(String::new(), |by| format!("  (undone by {by})"));
    let (id, verb, detail) = (row.id, &row.verb, plain(&row.detail));
    let line = format!(
        "{id:>5}  {FAINT}{}{FAINT:#}  {STRONG}{verb:<8}{STRONG:#}  {:<16}  {detail}{undone}",
        moment(row.at),
        counts.join(" ")
    );
    line.trim_end().to_string()
}

fn operation_json(row: &OperationRow) -> Value {
    let [added, updated, removed] = row.counts;
    json!({
        "operation": row.id, "verb": row.verb, "detail": row.detail, "at": row.at,
        "added": added, "updated": updated, "removed": removed,
        "undoes": row.undoes, "undone_by": row.undone_by,
    })
}

fn versions(context: &mut Context, versions: &[Version]) -> Result<Code, Failure> {
    if versions.is_empty() {
        return Err(Failure::new(Kind::NotFound, "no version of it is kept")
            .hint("former versions are kept for 90 days or 64 MB, whichever is less"));
    }
    let mut before: &[u8] = &[];
    for version in versions {
        let bytes = version.bytes.as_deref().unwrap_or_default();
        match context.format {
            Format::Raw => super::item::raw(&mut context.out, bytes, false)?,
            Format::Json => context.out.json(&json!({
                "since": version.since, "until": version.until, "removed": version.removed,
                "operation": version.operation.as_ref().map(operation_json),
                "ended_by": version.ended_by.as_ref().map(operation_json),
                "source": version.bytes.as_deref().map(String::from_utf8_lossy),
            }))?,
            Format::Text => {
                event(&mut context.out, version.operation.as_ref(), "")?;
                match version.bytes {
                    Some(_) => difference(&mut context.out, before, bytes)?,
                    None => context.out.line("  (purged)")?,
                }
                if version.removed {
                    event(&mut context.out, version.ended_by.as_ref(), "removed")?;
                }
            }
        }
        before = bytes;
    }
    Ok(Code::Done)
}

fn event(out: &mut Out, row: Option<&OperationRow>, what: &str) -> io::Result<()> {
    match row {
        Some(row) => {
            let (verb, id, at) = (&row.verb, row.id, moment(row.at));
            let mut line =
                format!("{STRONG}{verb}{STRONG:#}  {FAINT}operation {id}, {at}{FAINT:#}");
            if !what.is_empty() {
                line.push_str("  ");
                line.push_str(what);
            }
            out.line(line)
        }
        None => out.line(format!("(not known any more)  {what}").trim_end()),
    }
}

/// Lines of a difference that are printed.
const SHOWN: usize = 200;

/// The lines that are only in one of two texts: what went in red, what came in green. Long lines are cut, and
/// so is a long list of them.
pub(crate) fn difference(out: &mut Out, before: &[u8], after: &[u8]) -> io::Result<()> {
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(|line| plain(line.trim_end())).collect()
    };
    let (before, after) = (lines(before), lines(after));
    let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
    let cut = |line: &str| match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    };
    let gone = before.iter().filter(|line| !new.contains(line)).map(|line| (GONE, '-', line));
    let came = after.iter().filter(|line| !old.contains(line)).map(|line| (NEW, '+', line));
    let mut all = gone.chain(came);
    for (style, sign, line) in all.by_ref().take(SHOWN) {
        out.line(format!("  {style}{sign} {}{style:#}", cut(line)))?;
    }
    match all.count() {
        0 => Ok(()),
        more => out.line(format!("  ... and {}", count(more as u64, "more line"))),
    }
}
