use super::agenda::{DEFAULT_MAX_OCCURRENCES, finish_possibly_empty, note_more_occurrences};
use super::find::print_count;
use super::item_format::{self, OutputColumn};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::display_title;
use crate::output::{FAINT_STYLE, OutputStream, STRONG_STYLE, format_count as number};
use crate::table::{pad_cells_by_name_column, style_cells};
use anstyle::Style;
use larder_present::local_time::{format_clock, format_date, format_list_start};
use larder_query::{AgendaEntry, ItemSummary, ResultSet, SearchRequest};
use larder_store::{Kind as ItemKind, Reader, TimeRange};
use std::collections::HashMap;

/// How occurrences are to be printed.
pub(super) struct ExpandOptions {
    /// At most so many.
    pub(super) limit: Option<usize>,
    /// How many there are, and nothing else.
    pub(super) count: bool,
    /// What of each.
    pub(super) columns: Option<Vec<OutputColumn>>,
}

/// What `larder find --expand` and `larder find --alarms` print: occurrences, or how many there
/// are.
pub(super) fn print_occurrences(
    context: &mut CommandContext,
    reader: &Reader,
    find: &SearchRequest,
    how: &ExpandOptions,
) -> Result<CommandStatus, CommandFailure> {
    let limit = how.limit;
    let Some(window) = larder_query::required_time_range(&find.query) else {
        return Err(no_time_range_failure());
    };
    let find = SearchRequest { limit: None, sort: None, ..find.clone() };
    let answer = context.run_query("larder find", reader, &find)?;
    if how.count {
        let count = larder_query::count_occurrences(reader, &answer, window)?;
        warn_of_uncertain_items(context, reader, &count.uncertain_rows)?;
        let number = count.number;
        print_count(context, limit.map_or(number, |limit| number.min(limit as u64)))?;
        return Ok(if number == 0 { CommandStatus::NothingFound } else { CommandStatus::Done });
    }
    let found = larder_query::list_occurrences(
        reader,
        &answer,
        window,
        limit.unwrap_or(DEFAULT_MAX_OCCURRENCES),
    )?;
    if found.truncated && limit.is_none() {
        note_more_occurrences(context);
    }
    warn_of_uncertain_items(context, reader, &found.uncertain_rows)?;
    if let Some(columns) = how.columns.as_deref().filter(|_| context.format != OutputFormat::Raw) {
        print_columns(context, reader, &answer, &found.entries, columns)?;
        return finish_possibly_empty(context, found.entries.is_empty(), "nothing was found");
    }
    match context.format {
        OutputFormat::Text => print_table(context, reader, &found.entries, window)?,
        OutputFormat::Json => {
            for entry in &found.entries {
                context.out.print_json(&item_format::occurrence_json(entry, &window.local_zone))?;
            }
        }
        OutputFormat::Raw => print_raw(context, reader, &found.entries)?,
    }
    finish_possibly_empty(context, found.entries.is_empty(), "nothing was found")
}

/// There is no stretch of time in which occurrences could be found.
pub(super) fn no_time_range_failure() -> CommandFailure {
    CommandFailure::new(FailureKind::Usage, "--expand needs a stretch of time to look in")
        .with_hint("add when: to the query, as in when:2026-03 or when:today..+7d")
}

/// Items that are named when not all of them could be found out.
const MAX_NAMED_ITEMS: usize = 3;

/// Warns of items in these rows: what was printed of them may be too little, or too much.
pub(super) fn warn_of_uncertain_items(
    context: &CommandContext,
    reader: &Reader,
    rows: &[i64],
) -> Result<(), CommandFailure> {
    let named = rows.get(..MAX_NAMED_ITEMS).unwrap_or(rows);
    let briefs =
        larder_query::read_item_summaries(reader, named, &context.settings.user_locale.zone)?;
    for brief in named.iter().filter_map(|row| briefs.get(row)) {
        let letters = reader.unique_prefix_len(brief.head.handle)?;
        context.print_warning(format!(
            "{:.letters$}, {}: its rule takes too many steps to be followed to its end, so this is not sure to be all",
            brief.head.handle,
            display_title(&brief.summary)
        ));
    }
    if rows.len() > named.len() {
        let others = (rows.len() - named.len()) as u64;
        context.print_warning(format!("... nor is it of {}", number(others, "other item")));
    }
    Ok(())
}

/// Prints the fields that were asked for, of each occurrence.
fn print_columns(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    entries: &[AgendaEntry],
    columns: &[OutputColumn],
) -> Result<(), CommandFailure> {
    let mut written = HashMap::new();
    answer.for_each_projected(
        reader,
        &OutputColumn::fields_of_columns(columns),
        &mut |head, of| {
            written.insert(head.row, OutputColumn::item_values(columns, head, of));
            true
        },
    )?;
    for entry in entries {
        let head = &entry.item.head;
        let Some(written) = written.get(&head.row).cloned() else { continue };
        if context.format == OutputFormat::Json {
            context
                .out
                .print_json(&item_format::occurrence_columns_json(entry, columns, written))?;
            continue;
        }
        let letters = reader.unique_prefix_len(head.handle)?;
        let handle = format!("{:.letters$}", head.handle);
        let cells = item_format::occurrence_cells(entry, columns, written).join("\t");
        context.out.print_line(format!("{FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{cells}"))?;
    }
    Ok(())
}

/// The items, each once, in the order in which they happen first.
fn print_raw(
    context: &mut CommandContext,
    reader: &Reader,
    entries: &[AgendaEntry],
) -> Result<(), CommandFailure> {
    let mut printed = std::collections::BTreeSet::new();
    for entry in entries {
        let row = entry.item.head.row;
        if printed.insert(row) {
            let bytes = reader.source_bytes(row)?.unwrap_or_default();
            item_format::print_raw(&mut context.out, &bytes, false)?;
        }
    }
    Ok(())
}

fn print_table(
    context: &mut CommandContext,
    reader: &Reader,
    entries: &[AgendaEntry],
    window: &TimeRange,
) -> Result<(), CommandFailure> {
    let mut rows = Vec::new();
    for entry in entries {
        let row = match entry.occurrence.alarm {
            None => {
                let place = item_format::first_location_line(&entry.item.location);
                item_list_row(
                    reader,
                    &entry.item,
                    format_list_start(&entry.local_time),
                    place,
                    false,
                )?
            }
            Some((at, _)) => {
                let at = window.local_zone.to_civil(at);
                let rings = format!("{} {}", format_date(at.date()), format_clock(at));
                item_list_row(
                    reader,
                    &entry.item,
                    rings,
                    format_list_start(&entry.local_time),
                    false,
                )?
            }
        };
        rows.push(row);
    }
    print_rows(&mut context.out, &rows)
}

/// A line of a list: the handle, when, what, where, and what else there is to say.
pub(super) type ItemListRow = [String; 5];

/// The line of an item, or of an occurrence of it.
pub(super) fn item_list_row(
    reader: &Reader,
    of: &ItemSummary,
    when: String,
    place: String,
    is_item: bool,
) -> Result<ItemListRow, CommandFailure> {
    let letters = reader.unique_prefix_len(of.head.handle)?;
    let mut marks = item_format::status_marks(of);
    if of.head.kind != ItemKind::Event {
        marks.insert(0, of.head.kind.name());
    }
    if is_item && of.is_recurring && of.head.recurrence_id.is_empty() {
        marks.push("repeats");
    }
    let handle = format!("{:.letters$}", of.head.handle);
    Ok([handle, when, display_title(&of.summary), place, marks.join(", ")])
}

/// Prints such lines, in columns.
pub(super) fn print_rows(
    out: &mut OutputStream,
    rows: &[ItemListRow],
) -> Result<(), CommandFailure> {
    for line in format_rows(rows, out.line_width()) {
        out.print_line(line)?;
    }
    Ok(())
}

/// These rows as lines.
pub(super) fn format_rows(rows: &[ItemListRow], width: Option<usize>) -> Vec<String> {
    let line = |row: ItemListRow| {
        let [handle, when, what, place, marks] = &row;
        let plain = Style::new();
        style_cells(&[
            (FAINT_STYLE, handle),
            (plain, when),
            (STRONG_STYLE, what),
            (plain, place),
            (FAINT_STYLE, marks),
        ])
    };
    pad_cells_by_name_column(rows, [13, 16, 40, 28, 0], width, 2).into_iter().map(line).collect()
}
