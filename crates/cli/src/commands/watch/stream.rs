//! The output of `larder watch` that is not a terminal list: one line for each change.

use super::WatchOptions;
use crate::args::OutputFormat;
use crate::commands::find::calendar_item_row;
use crate::commands::find::field_list::{self, ListFields};
use crate::commands::find::occurrence_list;
use crate::commands::show::item_format::{self, OutputColumn, occurrence_json};
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::{ADDED_STYLE, CHANGED_STYLE, FAINT_STYLE, REMOVED_STYLE, format_count};
use anstyle::Style;
use larder_present::local_time::format_list_start;
use larder_query::local_time::LocalTimeSpan;
use larder_query::views::{RemovedItem, ViewEvent, ViewItem, Views};
use larder_query::{AgendaEntry, ProjectedItem};
use larder_store::{ItemRow, Reader};
use larder_time::zone::Zone;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Prints changes as lines.
pub(super) struct StreamPrinter {
    pub(super) watch_query: WatchOptions,
}

/// The kind of change of an item.
#[derive(Clone, Copy)]
enum ItemChangeKind {
    Added,
    Modified,
}

impl ItemChangeKind {
    fn name(self) -> &'static str {
        match self {
            ItemChangeKind::Added => "added",
            ItemChangeKind::Modified => "modified",
        }
    }

    fn mark(self) -> (Style, &'static str) {
        match self {
            ItemChangeKind::Added => (ADDED_STYLE, "+"),
            ItemChangeKind::Modified => (CHANGED_STYLE, "~"),
        }
    }
}

impl StreamPrinter {
    /// The interval between checks whether the reader has gone.
    pub(super) const READER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

    pub(super) fn new(watch_query: WatchOptions) -> StreamPrinter {
        StreamPrinter { watch_query }
    }

    /// Prints an event and flushes the output.
    pub(super) fn print_event(
        &self,
        context: &mut CommandContext,
        views: &Views,
        event: &ViewEvent,
    ) -> Result<(), CommandFailure> {
        match (event, context.format) {
            (ViewEvent::Added(items), _) => {
                self.print_items(context, views, ItemChangeKind::Added, items)?;
            }
            (ViewEvent::Modified(items), _) => {
                self.print_items(context, views, ItemChangeKind::Modified, items)?;
            }
            (ViewEvent::Removed(removed), _) => {
                for removed in removed {
                    print_removed(context, views, removed)?;
                }
            }
            (ViewEvent::Reset, OutputFormat::Json) => {
                context.out.print_json(&json!({ "change": "reset" }))?;
            }
            (ViewEvent::Reset, _) => context.out.print_line("= reset: the full list follows")?,
            (ViewEvent::Complete(seq), OutputFormat::Json) => {
                context.out.print_json(&json!({ "change": "complete", "seq": seq }))?;
            }
            (ViewEvent::Complete(_), _) => {}
        }
        Ok(context.out.flush()?)
    }

    fn print_items(
        &self,
        context: &mut CommandContext,
        views: &Views,
        change: ItemChangeKind,
        items: &[ViewItem],
    ) -> Result<(), CommandFailure> {
        let is_json = context.format == OutputFormat::Json;
        views.with_reader(|reader| match &self.watch_query.columns {
            _ if is_json => {
                items.iter().try_for_each(|item| self.print_json(context, reader, change, item))
            }
            Some(columns) => items
                .iter()
                .try_for_each(|item| print_columns(context, reader, change, item, columns)),
            None => self.print_rows(context, reader, change, items),
        })?
    }

    fn print_json(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        change: ItemChangeKind,
        item: &ViewItem,
    ) -> Result<(), CommandFailure> {
        let local = context.settings.user_locale.zone.clone();
        let ViewItem { meta: Some(meta), bytes: Some(bytes), .. } = item else { return Ok(()) };
        let keys = match &self.watch_query.columns {
            None => item_format::item_json(reader, &local, meta, bytes)?,
            Some(columns) => {
                let projected = ProjectedItem::from_bytes(reader, meta, bytes);
                item_format::item_columns_json(reader, &local, meta, &projected, columns)?
            }
        };
        let mut object = Map::new();
        object.insert("change".into(), json!(change.name()));
        if let Value::Object(keys) = keys {
            object.extend(keys);
        }
        if self.watch_query.expand {
            object.insert("occurrences".into(), occurrences_json(reader, &local, item)?);
        }
        Ok(context.out.print_json(&Value::Object(object))?)
    }

    /// Prints lines as `larder find` does, each with its mark.
    fn print_rows(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        change: ItemChangeKind,
        items: &[ViewItem],
    ) -> Result<(), CommandFailure> {
        let list_fields = ListFields::new();
        let is_item = |item: &&ViewItem| {
            item.meta.as_ref().is_some_and(|meta| list_fields.for_kind(meta.kind).is_none())
        };
        let mut field_rows = Vec::new();
        for item in items {
            if let (Some(meta), Some(bytes)) = (&item.meta, &item.bytes)
                && let Some(fields) = list_fields.for_kind(meta.kind)
            {
                let projected = ProjectedItem::from_bytes(reader, meta, bytes);
                field_rows.push(field_list::list_row(reader, meta, &projected, fields)?);
            }
        }
        let local = &context.settings.user_locale.zone;
        let rows: Vec<ItemRow> = items.iter().filter(is_item).map(|item| item.row).collect();
        let summaries = larder_query::read_item_summaries(reader, &rows, local)?;
        let mut item_rows = Vec::new();
        for item in items.iter().filter(is_item) {
            // If the item was removed since, the next event says so.
            let Some(summary) = summaries.get(&item.row) else { continue };
            let mut row = calendar_item_row(reader, summary)?;
            if let [_, when, .., marks] = &mut row
                && let Some(first) = item.occurrences.first()
            {
                *when = format_list_start(&LocalTimeSpan::from_occurrence(first, local));
                if item.occurrences.len() > 1 {
                    let times = format_count(item.occurrences.len() as u64, "time");
                    marks.push_str(if marks.is_empty() { "" } else { ", " });
                    marks.push_str(&times);
                }
            }
            item_rows.push(row);
        }
        let (style, mark) = change.mark();
        let width = context.out.line_width().map(|width| width.saturating_sub(2));
        let lines = field_list::format_rows(&field_rows, width);
        for line in lines.iter().chain(&occurrence_list::format_rows(&item_rows, width)) {
            context.out.print_line(format!("{style}{mark}{style:#} {line}"))?;
        }
        Ok(())
    }
}

/// Returns the occurrences of an item within the queried range.
fn occurrences_json(
    reader: &Reader,
    local: &Zone,
    item: &ViewItem,
) -> Result<Value, CommandFailure> {
    let summaries = larder_query::read_item_summaries(reader, &[item.row], local)?;
    // If the item was removed since, the next event says so.
    let Some(summary) = summaries.get(&item.row) else { return Ok(json!([])) };
    let to_json = |occurrence: &larder_store::ItemOccurrence| {
        let (item, when) = (summary.clone(), LocalTimeSpan::from_occurrence(occurrence, local));
        let entry = AgendaEntry { item, occurrence: *occurrence, local_time: when };
        let mut object = occurrence_json(&entry, local);
        if let Value::Object(object) = &mut object {
            object.retain(|name, _| OCCURRENCE_KEYS.contains(&name.as_str()));
        }
        object
    };
    Ok(item.occurrences.iter().map(to_json).collect())
}

/// The keys of an occurrence that are printed with its item.
const OCCURRENCE_KEYS: &[&str] = &["occurrence", "start", "end", "due", "all_day", "alarm"];

/// Prints the fields of `--fields`, with a tab before each.
fn print_columns(
    context: &mut CommandContext,
    reader: &Reader,
    change: ItemChangeKind,
    item: &ViewItem,
    columns: &[OutputColumn],
) -> Result<(), CommandFailure> {
    let ViewItem { meta: Some(meta), bytes: Some(bytes), .. } = item else { return Ok(()) };
    let letters = reader.items().unique_prefix_len(meta.handle)?;
    let handle = format!("{:.letters$}", meta.handle);
    let projected = ProjectedItem::from_bytes(reader, meta, bytes);
    let cells = item_format::column_cells(
        reader,
        &context.settings.user_locale.zone,
        meta,
        &projected,
        columns,
    )?;
    let (style, mark) = change.mark();
    Ok(context.out.print_line(format!(
        "{style}{mark}{style:#} {FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{}",
        cells.join("\t")
    ))?)
}

fn print_removed(
    context: &mut CommandContext,
    views: &Views,
    removed: &RemovedItem,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let mut object = Map::new();
        object.insert("change".into(), json!("removed"));
        object.insert("id".into(), json!(removed.handle.to_string()));
        object.insert("uid".into(), json!(removed.uid));
        if !removed.recurrence_id.is_empty() {
            object.insert("recurrence_id".into(), json!(removed.recurrence_id));
        }
        return Ok(context.out.print_json(&Value::Object(object))?);
    }
    let letters =
        views.with_reader(|reader| reader.items().unique_prefix_len(removed.handle))??;
    Ok(context.out.print_line(format!(
        "{REMOVED_STYLE}-{REMOVED_STYLE:#} {FAINT_STYLE}{:.letters$}{FAINT_STYLE:#}",
        removed.handle
    ))?)
}
