use super::agenda::{MOST, more, nothing};
use super::find::counted;
use super::item::{self, Column};
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::ids::title;
use crate::output::{FAINT, Out, STRONG, count as number};
use crate::table::{padded_by, styled};
use anstyle::Style;
use larder_query::when::{clock, iso};
use larder_query::{Answer, Brief, Entry, Find};
use larder_store::{Kind as ItemKind, Reader, Window};
use std::collections::HashMap;

/// How occurrences are to be printed.
pub(super) struct How {
    /// At most so many.
    pub(super) limit: Option<usize>,
    /// How many there are, and nothing else.
    pub(super) count: bool,
    /// What of each.
    pub(super) columns: Option<Vec<Column>>,
}

/// What `larder find --expand` and `larder find --alarms` print: occurrences, or how many there are.
pub(super) fn run(
    context: &mut Context,
    reader: &Reader,
    find: &Find,
    how: &How,
) -> Result<Code, Failure> {
    let limit = how.limit;
    let Some(window) = larder_query::window_of(&find.query) else {
        return Err(no_window());
    };
    let find = Find { limit: None, sort: None, ..find.clone() };
    let answer = context.ask("larder find", reader, &find)?;
    if how.count {
        let count = larder_query::count(reader, &answer, window)?;
        unsure(context, reader, &count.unsure)?;
        let number = count.number;
        counted(context, limit.map_or(number, |limit| number.min(limit as u64)))?;
        return Ok(if number == 0 { Code::NothingFound } else { Code::Done });
    }
    let found = larder_query::occurrences(reader, &answer, window, limit.unwrap_or(MOST))?;
    if found.cut && limit.is_none() {
        more(context);
    }
    unsure(context, reader, &found.unsure)?;
    if let Some(columns) = how.columns.as_deref().filter(|_| context.format != Format::Raw) {
        asked(context, reader, &answer, &found.entries, columns)?;
        return nothing(context, found.entries.is_empty(), "nothing was found");
    }
    match context.format {
        Format::Text => table(context, reader, &found.entries, window)?,
        Format::Json => {
            for entry in &found.entries {
                context.out.json(&item::occurrence_json(entry, &window.local))?;
            }
        }
        Format::Raw => raw(context, reader, &found.entries)?,
    }
    nothing(context, found.entries.is_empty(), "nothing was found")
}

/// There is no stretch of time in which occurrences could be found.
pub(super) fn no_window() -> Failure {
    Failure::new(Kind::Usage, "--expand needs a stretch of time to look in")
        .hint("add when: to the query, as in when:2026-03 or when:today..+7d")
}

/// Items that are named when not all of them could be found out.
const NAMED: usize = 3;

/// Warns of items in these rows: what was printed of them may be too little, or too much.
pub(super) fn unsure(context: &Context, reader: &Reader, rows: &[i64]) -> Result<(), Failure> {
    let named = rows.get(..NAMED).unwrap_or(rows);
    let briefs = larder_query::briefs(reader, named, &context.settings.asker.local)?;
    for brief in named.iter().filter_map(|row| briefs.get(row)) {
        let letters = reader.letters(brief.head.handle)?;
        context.warn(format!(
            "{:.letters$}, {}: its rule takes too many steps to be followed to its end, so this is not sure to be all",
            brief.head.handle,
            title(&brief.summary)
        ));
    }
    if rows.len() > named.len() {
        let others = (rows.len() - named.len()) as u64;
        context.warn(format!("... nor is it of {}", number(others, "other item")));
    }
    Ok(())
}

/// Prints the fields that were asked for, of each occurrence.
fn asked(
    context: &mut Context,
    reader: &Reader,
    answer: &Answer,
    entries: &[Entry],
    columns: &[Column],
) -> Result<(), Failure> {
    let mut written = HashMap::new();
    answer.fields(reader, &Column::fields(columns), &mut |head, of| {
        written.insert(head.row, Column::written(columns, head, of));
        true
    })?;
    for entry in entries {
        let head = &entry.item.head;
        let Some(written) = written.get(&head.row).cloned() else { continue };
        if context.format == Format::Json {
            context.out.json(&item::occurrence_partial_json(entry, columns, written))?;
            continue;
        }
        let letters = reader.letters(head.handle)?;
        let handle = format!("{:.letters$}", head.handle);
        let cells = item::occurrence_cells(entry, columns, written).join("\t");
        context.out.line(format!("{FAINT}{handle}{FAINT:#}\t{cells}"))?;
    }
    Ok(())
}

/// The items, each once, in the order in which they happen first.
fn raw(context: &mut Context, reader: &Reader, entries: &[Entry]) -> Result<(), Failure> {
    let mut printed = std::collections::BTreeSet::new();
    for entry in entries {
        let row = entry.item.head.row;
        if printed.insert(row) {
            let bytes = reader.source(row)?.unwrap_or_default();
            item::raw(&mut context.out, &bytes, false)?;
        }
    }
    Ok(())
}

fn table(
    context: &mut Context,
    reader: &Reader,
    entries: &[Entry],
    window: &Window,
) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for entry in entries {
        let row = match entry.occurring.alarm {
            None => {
                let place = item::place(&entry.item.location);
                row(reader, &entry.item, entry.when.listed(), place, false)?
            }
            Some((at, _)) => {
                let at = window.local.civil(at);
                let rings = format!("{} {}", iso(at.date()), clock(at));
                row(reader, &entry.item, rings, entry.when.listed(), false)?
            }
        };
        rows.push(row);
    }
    lines(&mut context.out, &rows)
}

/// A line of a list: the handle, when, what, where, and what else there is to say.
pub(super) type Row = [String; 5];

/// The line of an item, or of an occurrence of it.
pub(super) fn row(
    reader: &Reader,
    of: &Brief,
    when: String,
    place: String,
    is_item: bool,
) -> Result<Row, Failure> {
    let letters = reader.letters(of.head.handle)?;
    let mut marks = item::marks(of);
    if of.head.kind != ItemKind::Event {
        marks.insert(0, of.head.kind.name());
    }
    if is_item && of.recurs && of.head.recurrence.is_empty() {
        marks.push("repeats");
    }
    let handle = format!("{:.letters$}", of.head.handle);
    Ok([handle, when, title(&of.summary), place, marks.join(", ")])
}

/// Prints such lines, in columns.
pub(super) fn lines(out: &mut Out, rows: &[Row]) -> Result<(), Failure> {
    for line in laid_out(rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}

/// These rows as lines.
pub(super) fn laid_out(rows: &[Row], width: Option<usize>) -> Vec<String> {
    let line = |row: Row| {
        let [handle, when, what, place, marks] = &row;
        let plain = Style::new();
        styled(&[(FAINT, handle), (plain, when), (STRONG, what), (plain, place), (FAINT, marks)])
    };
    padded_by(rows, [13, 16, 40, 28, 0], width, 2).into_iter().map(line).collect()
}
