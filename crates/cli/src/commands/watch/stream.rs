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
    watch_query: WatchOptions,
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
            (ViewEvent::Added(told), _) => {
                self.print_items(context, views, ItemChangeKind::Added, told)?;
            }
            (ViewEvent::Modified(told), _) => {
                self.print_items(context, views, ItemChangeKind::Modified, told)?;
            }
            (ViewEvent::Removed(gone), _) => {
                for gone in gone {
                    print_removed(context, views, gone)?;
                }
            }
            (ViewEvent::Reset, OutputFormat::Json) => {
                context.out.print_json(&json!({ "change": "fresh" }))?;
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
        told: &[ViewItem],
    ) -> Result<(), CommandFailure> {
        let is_json = context.format == OutputFormat::Json;
        views.with_reader(|reader| match &self.watch_query.columns {
            _ if is_json => {
                told.iter().try_for_each(|told| self.print_json(context, reader, change, told))
            }
            Some(columns) => told
                .iter()
                .try_for_each(|told| print_columns(context, reader, change, told, columns)),
            None => self.print_rows(context, reader, change, told),
        })?
    }

    fn print_json(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        change: ItemChangeKind,
        told: &ViewItem,
    ) -> Result<(), CommandFailure> {
        let local = context.settings.user_locale.zone.clone();
        let ViewItem { head: Some(head), bytes: Some(bytes), .. } = told else { return Ok(()) };
        let about = match &self.watch_query.columns {
            None => item_format::item_json(reader, &local, head, bytes)?,
            Some(columns) => {
                let of = ProjectedItem::from_bytes(reader, head, bytes);
                item_format::item_columns_json(reader, &local, head, &of, columns)?
            }
        };
        let mut object = Map::new();
        object.insert("change".into(), json!(change.name()));
        if let Value::Object(about) = about {
            object.extend(about);
        }
        if self.watch_query.expand {
            object.insert("occurrences".into(), occurrences_json(reader, &local, told)?);
        }
        Ok(context.out.print_json(&Value::Object(object))?)
    }

    /// Prints lines as `larder find` does, each with its mark.
    fn print_rows(
        &self,
        context: &mut CommandContext,
        reader: &Reader,
        change: ItemChangeKind,
        told: &[ViewItem],
    ) -> Result<(), CommandFailure> {
        let list_fields = ListFields::new();
        let is_item = |told: &&ViewItem| {
            told.head.as_ref().is_some_and(|head| list_fields.for_kind(head.kind).is_none())
        };
        let mut field_rows = Vec::new();
        for told in told {
            if let (Some(head), Some(bytes)) = (&told.head, &told.bytes)
                && let Some(fields) = list_fields.for_kind(head.kind)
            {
                let of = ProjectedItem::from_bytes(reader, head, bytes);
                field_rows.push(field_list::list_row(reader, head, &of, fields)?);
            }
        }
        let local = &context.settings.user_locale.zone;
        let rows: Vec<ItemRow> = told.iter().filter(is_item).map(|told| told.row).collect();
        let briefs = larder_query::read_item_summaries(reader, &rows, local)?;
        let mut items = Vec::new();
        for told in told.iter().filter(is_item) {
            // If the item was removed in the meantime, the next event says so.
            let Some(brief) = briefs.get(&told.row) else { continue };
            let mut row = calendar_item_row(reader, brief)?;
            if let [_, when, .., marks] = &mut row
                && let Some(first) = told.occurrences.first()
            {
                *when = format_list_start(&LocalTimeSpan::from_occurrence(first, local));
                if told.occurrences.len() > 1 {
                    let times = format_count(told.occurrences.len() as u64, "time");
                    marks.push_str(if marks.is_empty() { "" } else { ", " });
                    marks.push_str(&times);
                }
            }
            items.push(row);
        }
        let (style, mark) = change.mark();
        let width = context.out.line_width().map(|width| width.saturating_sub(2));
        let lines = field_list::format_rows(&field_rows, width);
        for line in lines.iter().chain(&occurrence_list::format_rows(&items, width)) {
            context.out.print_line(format!("{style}{mark}{style:#} {line}"))?;
        }
        Ok(())
    }
}

/// Returns the occurrences of an item within the queried range.
fn occurrences_json(
    reader: &Reader,
    local: &Zone,
    told: &ViewItem,
) -> Result<Value, CommandFailure> {
    let briefs = larder_query::read_item_summaries(reader, &[told.row], local)?;
    // If the item was removed in the meantime, the next event says so.
    let Some(brief) = briefs.get(&told.row) else { return Ok(json!([])) };
    let of = |occurring: &larder_store::ItemOccurrence| {
        let (item, when) = (brief.clone(), LocalTimeSpan::from_occurrence(occurring, local));
        let mut of =
            occurrence_json(&AgendaEntry { item, occurrence: *occurring, local_time: when }, local);
        if let Value::Object(of) = &mut of {
            of.retain(|name, _| OCCURRENCE_KEYS.contains(&name.as_str()));
        }
        of
    };
    Ok(told.occurrences.iter().map(of).collect())
}

/// The keys of an occurrence that are printed beside its item.
const OCCURRENCE_KEYS: &[&str] = &["occurrence", "start", "end", "due", "all_day", "alarm"];

/// Prints the fields of `--fields`, with a tab before each.
fn print_columns(
    context: &mut CommandContext,
    reader: &Reader,
    change: ItemChangeKind,
    told: &ViewItem,
    columns: &[OutputColumn],
) -> Result<(), CommandFailure> {
    let ViewItem { head: Some(head), bytes: Some(bytes), .. } = told else { return Ok(()) };
    let letters = reader.items().unique_prefix_len(head.handle)?;
    let handle = format!("{:.letters$}", head.handle);
    let of = ProjectedItem::from_bytes(reader, head, bytes);
    let cells =
        item_format::column_cells(reader, &context.settings.user_locale.zone, head, &of, columns)?;
    let (style, mark) = change.mark();
    Ok(context.out.print_line(format!(
        "{style}{mark}{style:#} {FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{}",
        cells.join("\t")
    ))?)
}

fn print_removed(
    context: &mut CommandContext,
    views: &Views,
    gone: &RemovedItem,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        let mut object = Map::new();
        object.insert("change".into(), json!("removed"));
        object.insert("id".into(), json!(gone.handle.to_string()));
        object.insert("uid".into(), json!(gone.uid));
        if !gone.recurrence.is_empty() {
            object.insert("recurrence".into(), json!(gone.recurrence));
        }
        return Ok(context.out.print_json(&Value::Object(object))?);
    }
    let letters = views.with_reader(|reader| reader.items().unique_prefix_len(gone.handle))??;
    Ok(context.out.print_line(format!(
        "{REMOVED_STYLE}-{REMOVED_STYLE:#} {FAINT_STYLE}{:.letters$}{FAINT_STYLE:#}",
        gone.handle
    ))?)
}
