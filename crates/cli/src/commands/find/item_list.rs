//! The items that `larder find` lists: a table for each kind, the columns of `--fields`, JSON, or
//! their bytes.
//!
//! Separate from `occurrence_list`, whose lines are times, and from the lists of messages and
//! commits, which are in other stores.

use super::field_list::{self, FieldListRow, ListFields};
use super::occurrence_list;
use crate::args::OutputFormat;
use crate::commands::show::item_format::{self, OutputColumn};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::{FAINT_STYLE, OutputStream, STRONG_STYLE};
use crate::table::MAX_ALIGNED_ROWS;
use larder_format::collection_type::suggest_any_field;
use larder_query::{ItemSummary, ResultSet};
use larder_store::{ItemRow, Kind, Reader};
use larder_time::zone::Zone;

/// Limit for the rows whose columns are aligned together: a cell may have any length.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Parses the names of `--fields`; `None`: there are none.
pub(in crate::commands) fn parse_columns(
    names: &[String],
) -> Result<Option<Vec<OutputColumn>>, CommandFailure> {
    if names.is_empty() {
        return Ok(None);
    }
    let named = |name: &String| {
        OutputColumn::from_name(name).ok_or_else(|| {
            let failure = CommandFailure::new(
                FailureKind::Usage,
                format!("unknown field {name:?} in --fields"),
            );
            match suggest_any_field(name) {
                _ if name.eq_ignore_ascii_case("zone") => {
                    failure.with_hint("`larder show` and --format json show the zone")
                }
                Some(near) => failure.with_hint(format!("did you mean {near}?")),
                None => failure.with_hint("`larder fields` lists the fields"),
            }
        })
    };
    names.iter().map(named).collect::<Result<_, _>>().map(Some)
}

/// Prints the items of an answer. A column that no item has is empty.
pub(super) fn print_answer(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    columns: Option<&[Option<OutputColumn>]>,
    has_other_groups: bool,
) -> Result<(), CommandFailure> {
    match (context.format, columns) {
        (OutputFormat::Text, None) => {
            return print_table(context, reader, answer, has_other_groups);
        }
        (OutputFormat::Text | OutputFormat::Json, Some(columns)) => {
            return print_columns(context, reader, answer, columns);
        }
        _ => {}
    }
    let (format, out, local) =
        (context.format, &mut context.out, &context.settings.user_locale.zone);
    let mut failed = None;
    answer.for_each(reader, &mut |meta, bytes| {
        let printed = match format {
            OutputFormat::Json => item_format::item_json(reader, local, meta, bytes)
                .and_then(|object| Ok(out.print_json(&object)?)),
            _ => out.print_item_bytes(bytes).map_err(CommandFailure::from),
        };
        failed = printed.err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Items of one list layout that wait until there are enough to be aligned together.
#[derive(Default)]
struct RowBuffer {
    /// Rows of fields, and their size.
    rows: Vec<FieldListRow>,
    bytes: usize,
    /// The row ids of items with a schedule.
    items: Vec<ItemRow>,
    /// The kinds of the items, each once.
    kinds: Vec<Kind>,
    /// The number of headings that were printed, if there are several groups.
    headings: Option<usize>,
}

impl RowBuffer {
    /// Prints the buffered rows.
    fn flush(
        &mut self,
        reader: &Reader,
        out: &mut OutputStream,
        local: &Zone,
    ) -> Result<(), CommandFailure> {
        self.bytes = 0;
        let kinds = std::mem::take(&mut self.kinds);
        if let Some(number) = self.headings.as_mut().filter(|_| !kinds.is_empty()) {
            let nouns: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.name())).collect();
            print_heading(out, &nouns.join(", "), *number > 0)?;
            *number += 1;
        }
        let lines = field_list::format_rows(&std::mem::take(&mut self.rows), out.line_width());
        for line in lines {
            out.print_line(line)?;
        }
        let items = std::mem::take(&mut self.items);
        let summaries = larder_query::read_item_summaries(reader, &items, local)?;
        let mut rows = Vec::new();
        for summary in items.iter().filter_map(|row| summaries.get(row)) {
            rows.push(calendar_item_row(reader, summary)?);
        }
        occurrence_list::print_rows(out, &rows)
    }
}

/// Prints the line above a group of items.
pub(super) fn print_heading(
    out: &mut OutputStream,
    nouns: &str,
    is_after_others: bool,
) -> Result<(), CommandFailure> {
    if is_after_others {
        out.print_line("")?;
    }
    let (first, rest) = nouns.split_at(nouns.len().min(1));
    let title = format!("{}{rest}", first.to_uppercase());
    Ok(out.print_line(format!("{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?)
}

/// Prints the default columns of each kind. Several groups have headings.
fn print_table(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    has_other_groups: bool,
) -> Result<(), CommandFailure> {
    let list_fields = ListFields::new();
    let (local, out) = (&context.settings.user_locale.zone, &mut context.out);
    let (mut failed, mut waiting, mut last_layout) = (None, RowBuffer::default(), None);
    waiting.headings = has_other_groups.then_some(0);
    let listed = answer.for_each_projected(reader, list_fields.all(), &mut |meta, item| {
        let mut take = || -> Result<(), CommandFailure> {
            let layout = meta.kind.list_layout();
            if last_layout.replace(layout).is_some_and(|last| last != layout) {
                waiting.headings.get_or_insert(0);
                waiting.flush(reader, out, local)?;
            }
            if !waiting.kinds.contains(&meta.kind) {
                waiting.kinds.push(meta.kind);
            }
            match list_fields.for_kind(meta.kind) {
                Some(fields) => {
                    let row = field_list::list_row(reader, meta, item, fields)?;
                    waiting.bytes += row.iter().map(String::len).sum::<usize>();
                    waiting.rows.push(row);
                }
                None => waiting.items.push(meta.row),
            }
            let number = waiting.rows.len().max(waiting.items.len());
            if number < MAX_ALIGNED_ROWS && waiting.bytes < MAX_BUFFERED_BYTES {
                return Ok(());
            }
            waiting.flush(reader, out, local)
        };
        failed = take().err();
        failed.is_none()
    });
    match failed {
        // The rows of sound items come before the error that names the damaged ones.
        None => waiting.flush(reader, out, local).and(listed.map_err(CommandFailure::from)),
        Some(failure) => Err(failure),
    }
}

/// Prints the fields of `--fields`. As text: the ID, then each field in full after one tab, so that
/// the third field is always in the fourth column.
fn print_columns(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    columns: &[Option<OutputColumn>],
) -> Result<(), CommandFailure> {
    let (format, out, local) =
        (context.format, &mut context.out, &context.settings.user_locale.zone);
    let stored: Vec<OutputColumn> = columns.iter().flatten().copied().collect();
    let (fields, mut failed) = (OutputColumn::fields_of_columns(&stored), None);
    answer.for_each_projected(reader, &fields, &mut |meta, item| {
        let mut print = || -> Result<(), CommandFailure> {
            if format == OutputFormat::Json {
                return Ok(out.print_json(&item_format::item_columns_json(
                    reader, local, meta, item, &stored,
                )?)?);
            }
            let letters = reader.items().unique_prefix_len(meta.handle)?;
            let handle = format!("{:.letters$}", meta.handle);
            let cells = item_format::column_cells(reader, local, meta, item, &stored)?;
            let mut cells = cells.into_iter();
            let cells: Vec<String> = columns
                .iter()
                .map(|column| column.and_then(|_| cells.next()).unwrap_or_default())
                .collect();
            Ok(out.print_line(format!(
                "{FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{}",
                cells.join("\t")
            ))?)
        };
        failed = print().err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Returns the row of a calendar item.
pub(in crate::commands) fn calendar_item_row(
    reader: &Reader,
    summary: &ItemSummary,
) -> Result<occurrence_list::ItemListRow, CommandFailure> {
    let start = summary
        .first
        .as_ref()
        .map(larder_present::local_time::format_list_start)
        .unwrap_or_default();
    occurrence_list::item_list_row(
        reader,
        summary,
        start,
        item_format::first_location_line(&summary.location),
        true,
    )
}
