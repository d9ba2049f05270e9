use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::ids::{name_in, resolve, shown_name};
use crate::output::{FAINT, GONE, NEW, Out, STRONG, count, moment, plain};
use crate::table::shorten;
use larder_store::{Handle, HandlePrefix, OperationRow, Reader, Version};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;

/// List what was done, newest first; with ID, what an item was before
///
/// ID names an item as in `larder show`, a removed one too; the number of an operation (fewer than eight
/// digits) shows that operation alone. Former versions are kept for 90 days or 64 MB, whichever is less.
/// `larder log ID --format raw` prints the bytes of each version, oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    /// The history of this item, a removed one too; or the number of an operation
    id: Option<String>,
    /// At most so many operations
    #[arg(long, short = 'n', value_name = "N", default_value_t = 30)]
    limit: usize,
}

impl Log {
    /// Is it asked about an item? Handles are printed with eight letters at least, and so are no numbers of
    /// operations.
    pub(super) fn item(&self) -> bool {
        let number = |id: &str| id.len() < 8 && id.bytes().all(|byte| byte.is_ascii_digit());
        self.id.as_deref().is_some_and(|id| !number(id))
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let reader = context.reader()?;
        let operations = match &self.id {
            Some(id) if self.item() => {
                let handle = handle_of(&reader, id)?;
                return versions(context, &reader.versions(handle)?);
            }
            Some(number) => operation(&reader, number)?,
            None => reader.operations(None, self.limit)?,
        };
        let width = context.out.width();
        for row in &operations {
            match context.format {
                Format::Json => context.out.json(&operation_json(row))?,
                _ => context.out.line(operation_line(&reader, row, width)?)?,
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

/// The operation of this number.
fn operation(reader: &Reader, number: &str) -> Result<Vec<OperationRow>, Failure> {
    let id: i64 = number.parse().unwrap_or_default();
    let mut found = reader.operations(Some(id + 1), 1)?;
    found.retain(|row| row.id == id);
    if found.is_empty() {
        return Err(larder_store::Error::NoOperation { id }.into());
    }
    Ok(found)
}

fn operation_line(
    reader: &Reader,
    row: &OperationRow,
    width: Option<usize>,
) -> Result<String, Failure> {
    let [added, updated, removed] = row.counts;
    let counts: Vec<String> = [(added, "+"), (updated, "~"), (removed, "-")]
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, sign)| format!("{sign}{number}"))
        .collect();
    let undone = row.undone_by.map_or(String::new(), |by| format!("  (undone by {by})"));
    let (id, verb, mut detail) = (row.id, &row.verb, described(reader, &row.detail)?);
    let mut counts_wide = 16;
    if let Some(width) = width {
        counts_wide = if width < 80 { 8 } else { counts_wide };
        let used = BEFORE_DETAIL + counts_wide + undone.len();
        detail = shorten(&detail, width.saturating_sub(used).max(1));
    }
    let line = format!(
        "{id:>5}  {FAINT}{}{FAINT:#}  {STRONG}{verb:<8}{STRONG:#}  {:<counts_wide$}  {detail}{undone}",
        moment(row.at),
        counts.join(" ")
    );
    Ok(line.trim_end().to_string())
}

/// The detail of an operation, with a name behind each item's handle. The log itself holds no names: a purge
/// would have to look for them there.
fn described(reader: &Reader, detail: &str) -> Result<String, Failure> {
    let mut words = Vec::new();
    for word in detail.split(' ') {
        let prefix = HandlePrefix::parse(word).filter(|_| word.len() == HANDLE);
        match prefix.map(|prefix| known_as(reader, prefix)).transpose()?.flatten() {
            Some((handle, name)) => words.push(format!("{handle:.8} {name}")),
            None => words.push(plain(word)),
        }
    }
    Ok(words.join(" "))
}

/// Columns of a line of the log before its detail, without the counts.
const BEFORE_DETAIL: usize = 40;

/// The letters of a whole handle.
const HANDLE: usize = 13;

/// What an item is called, or was when it was there last.
fn known_as(reader: &Reader, prefix: HandlePrefix) -> Result<Option<(Handle, String)>, Failure> {
    if let Some(head) = reader.by_handle(prefix, 1)?.first() {
        return Ok(Some((head.handle, shown_name(reader, head)?)));
    }
    let Some(&handle) = reader.removed_by_handle(prefix, 1)?.first() else { return Ok(None) };
    let versions = reader.versions(handle)?;
    let bytes = versions.last().and_then(|version| version.bytes.as_deref());
    Ok(bytes.map(|bytes| (handle, name_in(bytes))))
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
