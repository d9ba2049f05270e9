//! `larder remove`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, display_title, resolve_items};
use crate::machine_time::now_milliseconds;
use crate::mail_store::explain_message;
use crate::occurrence_args::{OccurrenceArgs, check_not_outdated, edit_failure};
use crate::output::{format_count, print_message};
use larder_edit::RemovalOutcome;
use larder_edit::event::{OccurrenceSelector, RecurrenceScope};
use larder_format::field::Field;
use larder_query::{Query, SearchRequest};
use larder_store::{CollectionType, Handle, ItemMeta, Kind, Operation, Seq};
use serde_json::json;

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
    handle: Handle,
    /// The sequence number of its last change.
    seq: Seq,
    kind: Kind,
    name: String,
}

impl RemovalTarget {
    fn new(meta: &ItemMeta, name: String) -> RemovalTarget {
        RemovalTarget { handle: meta.handle, seq: meta.seq, kind: meta.kind, name }
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
        let found = self.find_targets(context)?;
        if found.is_empty() {
            return Err(CommandFailure::new(FailureKind::NotFound, "no item matches the query")
                .with_hint("`larder find QUERY` shows what a query matches"));
        }
        if self.dry_run {
            return print_dry_run(context, &found);
        }
        let items: Vec<_> = found.iter().map(|found| (found.handle, found.seq)).collect();
        let mut store = context.open_store()?;
        let mut operation =
            Operation::new("remove", self.operation_detail(&items), now_milliseconds());
        let removed = larder_edit::remove_items(&mut store, &mut operation, &items)?;
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
                    && (is_selected || larder_edit::event::is_recurring(&reader, meta)?))
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
        let found = [RemovalTarget::new(meta, name.clone())];
        if self.dry_run {
            return print_dry_run(context, &found).map(Some);
        }
        let mut store = context.open_store()?;
        let mut operation =
            Operation::new("remove", meta.handle.to_string(), now_milliseconds()).all_or_nothing();
        let locale = &context.settings.user_locale;
        let done = larder_edit::event::remove_occurrences(
            &mut store,
            &mut operation,
            meta,
            *which,
            locale,
        );
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
    fn operation_detail(&self, items: &[(Handle, Seq)]) -> String {
        let mut words: Vec<String> = items
            .iter()
            .take(MAX_NAMED_REMOVED_ITEMS)
            .map(|(handle, _)| handle.to_string())
            .collect();
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
        if line.trim().is_empty() {
            return Err(CommandFailure::new(FailureKind::Usage, "an empty query would remove everything").with_hint(
                "to remove a collection: larder collections remove NAME; to remove everything: --query 'has:uid or -has:uid'",
            ));
        }
        let request = SearchRequest {
            query: Query::parse_with(line, &context.settings)?,
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

/// Returns the removed occurrences as text.
fn removed_scope_text(which: OccurrenceSelector, meta: &ItemMeta) -> &'static str {
    match which.scope {
        Some(RecurrenceScope::ThisAndFuture) => "this and future occurrences",
        Some(RecurrenceScope::This) => "one occurrence",
        None if which.occurrence.is_some() || !meta.recurrence_id.is_empty() => "one occurrence",
        _ => "all occurrences",
    }
}

/// Prints the items that would be removed.
fn print_dry_run(
    context: &mut CommandContext,
    found: &[RemovalTarget],
) -> Result<CommandStatus, CommandFailure> {
    let reader = context.open_reader()?;
    for RemovalTarget { handle, kind, name, .. } in found {
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
    } else if let [RemovalTarget { handle, name, .. }] = found {
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
