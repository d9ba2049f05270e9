//! `larder remove`.

use crate::args::OutputFormat;
use crate::commands::find::query_args::{EMPTY_WORD_MESSAGE, is_without_text};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, display_title, resolve_items};
use crate::machine_time::now_milliseconds;
use crate::mail_store::explain_message;
use crate::occurrence_args::{OccurrenceArgs, check_not_outdated, edit_failure};
use crate::output::{format_count, print_message};
use larder_edit::RemovalOutcome;
use larder_edit::event::{self, OccurrenceSelector, RecurrenceScope};
use larder_format::field::Field;
use larder_query::{Query, SearchRequest};
use larder_store::{BatchChange, CollectionType, Handle, ItemMeta, Operation, Reader};
use serde_json::json;
use std::collections::HashSet;

/// Remove items (`larder undo` restores them)
///
/// For a recurring event, --scope selects the occurrences: one occurrence (this), this and future
/// occurrences (future), or all. The ID of an override removes only its occurrence.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// The items
    #[arg(value_name = "ID", required_unless_present = "query")]
    ids: Vec<String>,
    /// Remove all items that match this query
    #[arg(long, value_name = "QUERY", conflicts_with = "ids", allow_hyphen_values = true)]
    query: Option<String>,
    /// With --query, search only this collection
    #[arg(long = "in", value_name = "NAME", requires = "query")]
    collection: Option<String>,
    /// Show what would be removed without removing it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    occurrences: OccurrenceArgs,
}

/// An item to remove.
struct RemovalTarget {
    meta: ItemMeta,
    name: String,
}

impl RemovalTarget {
    fn new(meta: &ItemMeta, name: String) -> RemovalTarget {
        RemovalTarget { meta: meta.clone(), name }
    }

    /// Returns whether other items have occurrences of its series.
    fn is_of_series(&self, reader: &Reader) -> Result<bool, CommandFailure> {
        let meta = &self.meta;
        Ok(meta.kind.is_exported_in_calendar()
            && (!meta.recurrence_id.is_empty()
                || reader.items().find_series_of_item(meta)?.len() > 1))
    }
}

/// Items that the log and a message about conflicts name.
const MAX_NAMED_REMOVED_ITEMS: usize = 3;

impl RemoveArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.query.is_some() && !self.occurrences.is_empty() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                "--query removes items, not occurrences",
            )
            .with_hint("give the ID of the item whose occurrences to remove"));
        }
        if let Some(code) = self.remove_occurrences(context)? {
            return Ok(code);
        }
        context.read_saved_searches(self.query.as_deref().unwrap_or_default())?;
        let found = self.find_targets(context)?;
        if found.is_empty() {
            return Err(CommandFailure::new(FailureKind::NotFound, "no item matches the query")
                .with_hint("`larder find QUERY` shows what a query matches"));
        }
        let reader = context.open_reader()?;
        let (mut items, mut series) = (Vec::new(), Vec::new());
        for target in &found {
            match target.is_of_series(&reader)? {
                true => series.push(target.meta.clone()),
                false => items.push((target.meta.handle, target.meta.seq)),
            }
        }
        if self.dry_run {
            let others = find_overrides(&reader, &series, &found)?;
            return print_dry_run(context, found.iter().chain(&others));
        }
        drop(reader);
        let mut store = context.open_store()?;
        let handles: Vec<Handle> = found.iter().map(|found| found.meta.handle).collect();
        let mut operation =
            Operation::new("remove", self.operation_detail(&handles), now_milliseconds());
        let mut removed = larder_edit::remove_items(&mut store, &mut operation, &items)?;
        let now = context.settings.user_locale.now;
        event::remove_series_items(&mut store, &mut operation, &series, now, &mut removed)
            .map_err(|error| series_failure(error, &removed))?;
        print_removed(context, &found, &removed)
    }

    /// Removes occurrences, if the item recurs or one of its occurrences is selected.
    fn remove_occurrences(
        &self,
        context: &mut CommandContext,
    ) -> Result<Option<CommandStatus>, CommandFailure> {
        let reader = context.open_reader()?;
        let mut named = Vec::new();
        for id in &self.ids {
            let found = self.occurrences.resolve_item(context, &reader, id);
            let (meta, which) = found.map_err(|failure| explain_message(context, id, failure))?;
            named.push((id, meta, which));
        }
        let recurs =
            |meta: &ItemMeta, which: &OccurrenceSelector| -> Result<bool, CommandFailure> {
                let is_selected = which.scope.is_some() || which.occurrence.is_some();
                Ok(meta.kind.is_exported_in_calendar()
                    && (is_selected || event::is_recurring(&reader, meta)?))
            };
        let mut recurring_id = None;
        for (id, meta, which) in &named {
            if recurring_id.is_none() && recurs(meta, which)? {
                recurring_id = Some(id);
            }
        }
        let Some(recurring_id) = recurring_id else { return Ok(None) };
        let [(id, meta, which)] = &named[..] else {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                format!("{recurring_id} recurs: remove it with a command of its own"),
            ));
        };
        let name = display_name(&reader, meta)?;
        if self.dry_run {
            let removed = find_removed(context, &reader, meta, *which)
                .map_err(|error| edit_failure(error, "remove", id))?;
            let mut targets = Vec::new();
            for meta in removed {
                let name = display_name(&reader, &meta)?;
                targets.push(RemovalTarget { meta, name });
            }
            return print_dry_run(context, &targets).map(Some);
        }
        let mut store = context.open_store()?;
        let mut operation =
            Operation::new("remove", meta.handle.to_string(), now_milliseconds()).all_or_nothing();
        let locale = &context.settings.user_locale;
        let done = event::remove_occurrences(&mut store, &mut operation, meta, *which, locale);
        let done = done.map_err(|error| edit_failure(error, "remove", id))?;
        check_not_outdated(&done)?;
        if !meta.recurrence_id.is_empty() && which.scope.is_none() {
            context
                .print_note("removed only this occurrence; use --scope all to remove all of them");
        }
        let Some(id) = done.operation else {
            let message = format!("nothing was removed: {id} has no such occurrence");
            return Err(CommandFailure::new(FailureKind::Input, message)
                .with_hint("`larder agenda` shows the occurrences"));
        };
        if context.format == OutputFormat::Json {
            let object = json!({
                "removed": done.removed.len(), "changed": done.changed.len(),
                "operation": id.to_number()
            });
            context.out.print_json(&object)?;
        } else {
            let (handle, what) = (meta.handle, removed_scope_text(*which, meta));
            let line = format!("Removed {what} of {handle:.8}  {name}. Undo: larder undo {id}");
            context.out.print_line(line)?;
        }
        Ok(Some(CommandStatus::Done))
    }

    /// Returns the detail for the log: IDs, as names and queries are private data.
    fn operation_detail(&self, items: &[Handle]) -> String {
        let mut words: Vec<String> =
            items.iter().take(MAX_NAMED_REMOVED_ITEMS).map(Handle::to_string).collect();
        if items.len() > MAX_NAMED_REMOVED_ITEMS {
            words.push(format!("and {} more", items.len() - MAX_NAMED_REMOVED_ITEMS));
        }
        let found = if self.query.is_some() { "found by a query" } else { "" };
        let place = self.collection.as_ref().map(|name| format!("in {name}")).unwrap_or_default();
        words.extend([found.to_string(), place].into_iter().filter(|word| !word.is_empty()));
        words.join(" ")
    }

    fn find_targets(&self, context: &CommandContext) -> Result<Vec<RemovalTarget>, CommandFailure> {
        let reader = context.open_reader()?;
        let Some(line) = &self.query else {
            let metas = resolve_items(context, &self.ids)?;
            let named =
                metas.iter().map(|meta| Ok(RemovalTarget::new(meta, display_name(&reader, meta)?)));
            return named.collect();
        };
        let request = SearchRequest {
            query: parse_query(line, context)?,
            collection: self.collection.clone(),
            ..larder_query::SearchRequest::default()
        };
        let mut found = Vec::new();
        let fields: Vec<&Field> =
            CollectionType::all().filter_map(CollectionType::title_field).collect();
        context.run_query("larder remove", &reader, &request)?.for_each_projected(
            &reader,
            &fields,
            &mut |meta, item| {
                let field = meta.kind.collection_type().title_field();
                let field = field.filter(|_| found.len() < 2 || self.dry_run);
                let title = field.and_then(|field| item.first(field)).unwrap_or_default();
                found.push(RemovalTarget::new(meta, display_title(meta.kind, &title)));
                true
            },
        )?;
        Ok(found)
    }
}

/// Parses the query. One without a condition, as a script with an unset variable writes it, would
/// remove everything.
fn parse_query(line: &str, context: &CommandContext) -> Result<Query, CommandFailure> {
    let query = match is_without_text(line) {
        true => Query::All,
        false => Query::parse_with(line, &context.settings)?,
    };
    let message = match &query {
        query if query.is_unconditional() => "an empty query would remove everything",
        query if query.has_empty_word() => EMPTY_WORD_MESSAGE,
        _ => return Ok(query),
    };
    Err(CommandFailure::new(FailureKind::Usage, message).with_hint(
        "to remove a collection: larder collections remove NAME; to remove everything: --query 'has:uid or -has:uid'",
    ))
}

/// Returns the removed occurrences as text.
fn removed_scope_text(which: OccurrenceSelector, meta: &ItemMeta) -> &'static str {
    match which.scope {
        Some(RecurrenceScope::ThisAndFuture) => "this and future occurrences",
        Some(RecurrenceScope::This) => "one occurrence",
        None if which.occurrence.is_some() || !meta.recurrence_id.is_empty() => "one occurrence",
        _ => "all occurrences",
    }
}

/// Converts an error of the removal of series into a failure that names what was removed before.
fn series_failure(error: event::Error, removed: &RemovalOutcome) -> CommandFailure {
    let failure = edit_failure(error, "remove", "ID");
    match removed.operation {
        Some(id) => {
            let items = format_count(removed.items, "item");
            failure.with_hint(format!("removed before that: {items}; to undo: larder undo {id}"))
        }
        None => failure,
    }
}

/// Finds the overrides that are removed with their masters and are not among the items found.
fn find_overrides(
    reader: &Reader,
    series: &[ItemMeta],
    found: &[RemovalTarget],
) -> Result<Vec<RemovalTarget>, CommandFailure> {
    let known: HashSet<Handle> = found.iter().map(|target| target.meta.handle).collect();
    let mut others = Vec::new();
    for master in series.iter().filter(|meta| meta.recurrence_id.is_empty()) {
        for meta in reader.items().find_series_of_item(master)? {
            if !known.contains(&meta.handle) {
                let name = display_name(reader, &meta)?;
                others.push(RemovalTarget { meta, name });
            }
        }
    }
    Ok(others)
}

/// Finds the items that the removal of occurrences removes or changes: the series that gets an
/// exception is one of the latter.
fn find_removed(
    context: &CommandContext,
    reader: &Reader,
    meta: &ItemMeta,
    which: OccurrenceSelector,
) -> Result<Vec<ItemMeta>, event::Error> {
    let locale = &context.settings.user_locale;
    let changes =
        event::compute_occurrence_removal(reader, reader.extractor(), meta, which, locale)?;
    let is_changed = |one: &ItemMeta| {
        changes.iter().any(|change| match change {
            BatchChange::Remove(handle, _) => *handle == one.handle,
            BatchChange::Put(put) => put.parsed.recurrence_id() == one.recurrence_id,
            _ => false,
        })
    };
    Ok(reader.items().find_series_of_item(meta)?.into_iter().filter(is_changed).collect())
}

/// Prints the items that would be removed, or lose an occurrence.
fn print_dry_run<'t>(
    context: &mut CommandContext,
    found: impl IntoIterator<Item = &'t RemovalTarget>,
) -> Result<CommandStatus, CommandFailure> {
    let reader = context.open_reader()?;
    for RemovalTarget { meta: ItemMeta { handle, kind, .. }, name } in found {
        if context.format == OutputFormat::Json {
            let field = kind.collection_type().row().title_field;
            context.out.print_json(&json!({ "id": handle.to_string(), field: name }))?;
            continue;
        }
        let letters = reader.items().unique_prefix_len(*handle)?;
        context.out.print_line(format!("{handle:.letters$}  {name}"))?;
    }
    Ok(CommandStatus::Done)
}

/// Prints the number of items removed, and the conflicts.
fn print_removed(
    context: &mut CommandContext,
    found: &[RemovalTarget],
    removed: &RemovalOutcome,
) -> Result<CommandStatus, CommandFailure> {
    let again = "run the command again to remove the rest";
    let conflicts = conflict_text(removed);
    let Some(id) = removed.operation else {
        let what = format!("nothing was removed: {conflicts}");
        return Err(CommandFailure::new(FailureKind::Input, what).with_hint(again));
    };
    if context.format == OutputFormat::Json {
        context
            .out
            .print_json(&json!({ "removed": removed.items, "operation": id.to_number() }))?;
    } else if let [RemovalTarget { meta: ItemMeta { handle, .. }, name }] = found
        && removed.items == 1
    {
        let line = format!("Removed {handle:.8}  {name}. Undo: larder undo {id}");
        context.out.print_line(line)?;
    } else {
        let what = format_count(removed.items, "item");
        context.out.print_line(format!("Removed {what}. Undo: larder undo {id}"))?;
    }
    if removed.changed.is_empty() && removed.already_removed == 0 {
        return Ok(CommandStatus::Done);
    }
    print_message("error", conflicts);
    print_message("hint", again);
    Ok(CommandStatus::Rejected)
}

/// Describes the conflicts. Items are looked up before the lock is taken, so another writer may
/// come first.
fn conflict_text(removed: &RemovalOutcome) -> String {
    let left = removed.changed.len() as u64 + removed.already_removed;
    let items = format_count(left, "item");
    let mut text = format!("conflict: another program changed or removed {items}");
    if !removed.changed.is_empty() {
        let named: Vec<_> =
            removed.changed.iter().take(MAX_NAMED_REMOVED_ITEMS).map(ToString::to_string).collect();
        let more = removed.changed.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!(" (kept: {}{more})", named.join(", ")));
    }
    text
}
