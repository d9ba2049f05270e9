//! Lists of occurrences: `larder find --expand` and `--alarms`, and the rows of calendar items that
//! other lists share.

use super::print_count;
use crate::args::OutputFormat;
use crate::commands::show::item_format::{self, OutputColumn};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::display_title;
use crate::output::{
    FAINT_STYLE, OutputStream, STRONG_STYLE, format_count as number, format_grouped,
};
use crate::table::{pad_cells_by_name_column, style_cells};
use anstyle::Style;
use larder_present::local_time::{format_clock, format_date, format_list_start};
use larder_query::{AgendaEntry, ItemSummary, ResultSet, SearchRequest};
use larder_store::{ItemRow, Reader, TimeRange};
use std::collections::HashMap;

/// The default limit of occurrences: an item may recur every second without end.
pub(crate) const DEFAULT_MAX_OCCURRENCES: usize = 100_000;

/// Options for printing occurrences.
pub(crate) struct ExpandOptions {
    /// The maximum number of occurrences.
    pub(crate) limit: Option<usize>,
    /// Whether to print only the number.
    pub(crate) count: bool,
    /// The columns of `--fields`.
    pub(crate) columns: Option<Vec<OutputColumn>>,
}

/// Prints occurrences or alarms, or their number.
pub(crate) fn print_occurrences(
    context: &mut CommandContext,
    reader: &Reader,
    request: &SearchRequest,
    options: &ExpandOptions,
) -> Result<CommandStatus, CommandFailure> {
    let limit = options.limit;
    let Some(time_range) = larder_query::required_time_range(&request.query) else {
        return Err(no_time_range_failure());
    };
    let request = SearchRequest { limit: None, sort: None, ..request.clone() };
    let answer = context.run_query("larder find", reader, &request)?;
    if options.count {
        let most = limit.unwrap_or(DEFAULT_MAX_OCCURRENCES);
        let count = larder_query::count_occurrences(reader, &answer, time_range, most)?;
        warn_of_undecided_items(context, reader, &count.undecided_rows)?;
        let number = count.number;
        print_count(context, limit.map_or(number, |limit| number.min(limit as u64)))?;
        return Ok(if number == 0 { CommandStatus::NothingFound } else { CommandStatus::Done });
    }
    let found = larder_query::list_occurrences(
        reader,
        &answer,
        time_range,
        limit.unwrap_or(DEFAULT_MAX_OCCURRENCES),
    )?;
    if found.truncated && limit.is_none() {
        note_more_occurrences(context, DEFAULT_MAX_OCCURRENCES);
    }
    warn_of_undecided_items(context, reader, &found.undecided_rows)?;
    if let Some(columns) =
        options.columns.as_deref().filter(|_| context.format != OutputFormat::Raw)
    {
        print_columns(context, reader, &answer, &found.entries, columns)?;
        return finish_possibly_empty(context, found.entries.is_empty(), "no results");
    }
    match context.format {
        OutputFormat::Text => print_table(context, reader, &found.entries, time_range)?,
        OutputFormat::Json => {
            for entry in &found.entries {
                context
                    .out
                    .print_json(&item_format::occurrence_json(entry, &time_range.local_zone))?;
            }
        }
        _ => print_raw(context, reader, &found.entries)?,
    }
    finish_possibly_empty(context, found.entries.is_empty(), "no results")
}

/// Notes that the list was cut at the limit.
pub(crate) fn note_more_occurrences(context: &CommandContext, limit: usize) {
    context.print_note(format!(
        "list cut at {}; narrow the range or raise --limit",
        format_grouped(limit as u64)
    ));
}

/// Returns the status of an answer, and prints a note if it is empty.
pub(crate) fn finish_possibly_empty(
    context: &CommandContext,
    empty: bool,
    note: &str,
) -> Result<CommandStatus, CommandFailure> {
    if empty && context.format == OutputFormat::Text {
        context.print_note(note);
    }
    Ok(if empty { CommandStatus::NothingFound } else { CommandStatus::Done })
}

/// The failure for a query without a time range to list occurrences in.
pub(crate) fn no_time_range_failure() -> CommandFailure {
    CommandFailure::new(FailureKind::Usage, "--expand needs a time range")
        .with_hint("add when: to the query, for example when:2026-03 or when:today..+7d")
}

/// Items that a warning about incomplete expansions names.
const MAX_NAMED_UNDECIDED_ITEMS: usize = 3;

/// Warns about items whose recurrence rules were not fully expanded, so that their occurrences may
/// be incomplete.
pub(crate) fn warn_of_undecided_items(
    context: &CommandContext,
    reader: &Reader,
    rows: &[ItemRow],
) -> Result<(), CommandFailure> {
    let named = rows.get(..MAX_NAMED_UNDECIDED_ITEMS).unwrap_or(rows);
    let summaries =
        larder_query::read_item_summaries(reader, named, &context.settings.user_locale.zone)?;
    for summary in named.iter().filter_map(|row| summaries.get(row)) {
        let letters = reader.items().unique_prefix_len(summary.meta.handle)?;
        context.print_warning(format!(
            "{:.letters$}, {}: occurrences may be missing, because the recurrence rule takes too long to expand",
            summary.meta.handle,
            display_title(summary.meta.kind, &summary.summary)
        ));
    }
    if rows.len() > named.len() {
        let others = (rows.len() - named.len()) as u64;
        context.print_warning(format!("... and {} more like it", number(others, "item")));
    }
    Ok(())
}

/// Prints the fields of `--fields` for each occurrence.
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
        &mut |meta, item| {
            written.insert(meta.row, OutputColumn::item_values(columns, meta, item));
            true
        },
    )?;
    for entry in entries {
        let meta = &entry.item.meta;
        let Some(written) = written.get(&meta.row).cloned() else { continue };
        if context.format == OutputFormat::Json {
            context
                .out
                .print_json(&item_format::occurrence_columns_json(entry, columns, written))?;
            continue;
        }
        let letters = reader.items().unique_prefix_len(meta.handle)?;
        let handle = format!("{:.letters$}", meta.handle);
        let cells = item_format::occurrence_cells(entry, columns, written).join("\t");
        context.out.print_line(format!("{FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{cells}"))?;
    }
    Ok(())
}

/// Prints the source bytes of each item once, in the order of their first occurrences.
fn print_raw(
    context: &mut CommandContext,
    reader: &Reader,
    entries: &[AgendaEntry],
) -> Result<(), CommandFailure> {
    let mut printed = std::collections::BTreeSet::new();
    for entry in entries {
        let row = entry.item.meta.row;
        if printed.insert(row) {
            let bytes = reader.items().source_bytes(row)?.unwrap_or_default();
            context.out.print_item_bytes(&bytes)?;
        }
    }
    Ok(())
}

fn print_table(
    context: &mut CommandContext,
    reader: &Reader,
    entries: &[AgendaEntry],
    time_range: &TimeRange,
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
                let at = time_range.local_zone.to_civil(at);
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

/// A row of calendar items: ID, time, title, place, marks.
pub(crate) type ItemListRow = [String; 5];

/// Returns the row of an item, or of one of its occurrences.
pub(crate) fn item_list_row(
    reader: &Reader,
    item: &ItemSummary,
    when: String,
    place: String,
    is_item: bool,
) -> Result<ItemListRow, CommandFailure> {
    let letters = reader.items().unique_prefix_len(item.meta.handle)?;
    let mut marks = item_format::status_marks(item);
    if !item.meta.kind.is_main_kind() {
        marks.insert(0, item.meta.kind.name());
    }
    if is_item && item.is_recurring && item.meta.recurrence_id.is_empty() {
        marks.push("repeats");
    }
    let handle = format!("{:.letters$}", item.meta.handle);
    Ok([handle, when, display_title(item.meta.kind, &item.summary), place, marks.join(", ")])
}

/// Prints rows in columns.
pub(crate) fn print_rows(
    out: &mut OutputStream,
    rows: &[ItemListRow],
) -> Result<(), CommandFailure> {
    for line in format_rows(rows, out.line_width()) {
        out.print_line(line)?;
    }
    Ok(())
}

/// Formats rows as lines.
pub(crate) fn format_rows(rows: &[ItemListRow], width: Option<usize>) -> Vec<String> {
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
