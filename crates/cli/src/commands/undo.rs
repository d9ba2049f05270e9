//! `larder undo`.

use super::log::{labelled_message_name, print_difference};
use crate::args::OutputFormat;
use crate::commit_store::open_commit_reader;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::name_from_bytes;
use crate::machine_time::now_milliseconds;
use crate::mail_store::{follow_committed_labels, open_mail_reader};
use crate::output::{
    ADDED_STYLE, REMOVED_STYLE, STRONG_STYLE, format_count, print_message, sanitize_line,
};
use crate::source_names::{print_departed_sources, print_index_notes};
use larder_format::label::MessageLabels;
use larder_store::{
    DamagedObject, Error, OperationId, OperationRecord, Reader, Store, UndoReport,
    UnreadableVersion,
};
use larder_sync::{RegisteredSource, SourceType, list_sources};
use serde_json::json;

/// Undo an operation
///
/// Without a number, undoes the newest operation that has not been undone, unless a purge is newer;
/// `larder log` lists operations. An undo is an operation too and can be undone. If an item has
/// changed since, nothing is undone and both versions are shown. An item whose stored version is
/// damaged is named, and the others are restored.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// The number of the operation
    operation: Option<i64>,
}

impl UndoArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let mut former_sources = Vec::new();
        for source_type in SOURCE_TYPES {
            former_sources.push((source_type, list_sources(&reader, source_type)?));
        }
        let status = match self.operation.map(OperationId::from_number) {
            Some(id) => {
                let undone = reader.changes().find_operation(id)?;
                let mut store = context.open_store()?;
                let undo = store.undo(id, now_milliseconds())?;
                refresh_after_undo(&mut store)?;
                follow_committed_labels(context)?;
                print_report(context, &reader, id, undone.as_ref(), &undo)?
            }
            None => undo_newest(context, &reader)?,
        };
        // The notes follow the line that they explain.
        context.out.flush()?;
        for (source_type, former) in former_sources {
            let printed = print_changed_sources(context, &reader, source_type, &former);
            CommandFailure::after_commit(printed)?;
        }
        Ok(status)
    }
}

const SOURCE_TYPES: [SourceType; 2] = [SourceType::Mail, SourceType::Repository];

/// Says that the items of sources which came back with an undo are not indexed, and that those of
/// sources which went with it still are.
fn print_changed_sources(
    context: &CommandContext,
    reader: &Reader,
    source_type: SourceType,
    former: &[RegisteredSource],
) -> Result<(), CommandFailure> {
    let sources = list_sources(reader, source_type)?;
    if former == sources {
        return Ok(());
    }
    let index = match source_type {
        SourceType::Mail => open_mail_reader(context)?,
        SourceType::Repository => open_commit_reader(context)?,
    };
    if let Some(index) = &index {
        print_departed_sources(context, source_type, former, &sources, index)?;
    }
    let mut returned = sources;
    returned.retain(|source| former.iter().all(|one| one.handle_key != source.handle_key));
    print_index_notes(context, source_type, &returned, index.as_ref(), None)
}

/// The verbs of operations that change labels only, of which each message has one item.
const LABEL_VERBS: &[&str] =
    &["edit labels", "labels import", "labels rename", "labels remove", "rules"];
/// The number of operations read at a time in search of the one to undo.
const LISTED_OPERATIONS: usize = 30;

/// Undoes the newest operation of which something is left to undo. A purge ends the search: what it
/// removed cannot come back, so the newest change before it is for the user to name.
fn undo_newest(
    context: &mut CommandContext,
    reader: &Reader,
) -> Result<CommandStatus, CommandFailure> {
    let (mut store, mut before) = (context.open_store()?, None);
    loop {
        let operations = reader.changes().list_operations(before, LISTED_OPERATIONS)?;
        let Some(oldest) = operations.last() else {
            return Err(CommandFailure::new(FailureKind::NotFound, "nothing to undo")
                .with_hint("`larder log` lists operations"));
        };
        before = Some(oldest.id);
        let candidates = |row: &&OperationRecord| row.undone_by.is_none() && row.undoes.is_none();
        for row in operations.iter().filter(candidates) {
            let undo = match store.undo(row.id, now_milliseconds()) {
                Err(error @ Error::PurgeNotUndoable { .. }) => {
                    return Err(CommandFailure::from(error).with_hint(
                        "to undo an older operation, give its number; `larder log` lists them",
                    ));
                }
                undo => undo?,
            };
            refresh_after_undo(&mut store)?;
            follow_committed_labels(context)?;
            if !had_nothing_left(row, &undo) {
                return print_report(context, reader, row.id, Some(row), &undo);
            }
            context.print_note(nothing_left_message(row));
        }
    }
}

/// Refreshes the indexes after an undo, which may have restored an index configuration.
fn refresh_after_undo(store: &mut Store) -> Result<(), CommandFailure> {
    CommandFailure::after_commit(store.refresh().map_err(CommandFailure::from)).map(drop)
}

/// Returns whether the operation changed items, and the undo found none to restore. The operation
/// then counts as undone.
fn had_nothing_left(undone: &OperationRecord, undo: &UndoReport) -> bool {
    undone.counts != [0; 3]
        && undo.items == 0
        && undo.conflicts.is_empty()
        && undo.unreadable.is_empty()
}

fn nothing_left_message(undone: &OperationRecord) -> String {
    let OperationRecord { id, verb, .. } = undone;
    format!("nothing of operation {id} ({verb}) is left to undo: changed back or purged since")
}

/// Prints the result of an undo.
fn print_report(
    context: &mut CommandContext,
    reader: &Reader,
    id: OperationId,
    undone: Option<&OperationRecord>,
    undo: &UndoReport,
) -> Result<CommandStatus, CommandFailure> {
    print_unreadable(context, undo)?;
    if !undo.conflicts.is_empty() {
        return print_conflicts(context, reader, id, undo);
    }
    let verb = undone.map(|row| format!(" ({})", row.verb)).unwrap_or_default();
    let effect = match undone.map(|row| row.counts) {
        Some([_, 0, 0]) => "removed",
        Some([0, ..]) => "restored",
        _ => "reverted",
    };
    let of_labels = undone.is_some_and(|row| LABEL_VERBS.contains(&row.verb.as_str()));
    let (items, effect) = match of_labels {
        _ if undone.is_some_and(|row| row.verb == "adopt") => {
            (format!("labels and saved searches ({})", undo.items), "changed back")
        }
        true => (format!("labels of {}", format_count(undo.items, "message")), "changed back"),
        false => (format_count(undo.items, "item"), effect),
    };
    if !undo.unreadable.is_empty() {
        return Err(damage_failure(id, undo, &format!("{items} {effect}")));
    }
    if undo.items > 0 {
        for handle in &undo.erased {
            print_message(
                "missing",
                format!(
                    "item {handle:.8}: its previous version was erased by a purge or a salvage"
                ),
            );
        }
    }
    let redo = undo.operation.map(|by| format!(" Redo: larder undo {by}")).unwrap_or_default();
    match context.format {
        OutputFormat::Json => {
            let by = undo.operation.map(OperationId::to_number);
            let object = json!({
                "undone": id.to_number(),
                "operation": by,
                "items": undo.items,
                "erased": undo.erased.iter().map(ToString::to_string).collect::<Vec<_>>(),
            });
            context.out.print_json(&object)?;
        }
        _ if let Some(row) = undone.filter(|row| had_nothing_left(row, undo)) => {
            context.print_note(nothing_left_message(row));
        }
        _ if undo.items == 0 => {
            context.out.print_line(format!("Undid operation {id}{verb}.{redo}"))?;
        }
        _ => context
            .out
            .print_line(format!("Undid operation {id}{verb}: {items} {effect}.{redo}"))?,
    }
    Ok(CommandStatus::Done)
}

/// Names the items that were left as they are because data of them is damaged.
fn print_unreadable(context: &mut CommandContext, undo: &UndoReport) -> Result<(), CommandFailure> {
    for UnreadableVersion { handle, object } in &undo.unreadable {
        let text = match object {
            DamagedObject::Item { .. } | DamagedObject::FormerVersion { .. } => object.to_string(),
            _ => format!("{object}, of item {handle:.8}"),
        };
        match context.format {
            OutputFormat::Json => context
                .out
                .print_json(&json!({ "unreadable": handle.to_string(), "damaged": text }))?,
            _ => print_message("missing", sanitize_line(&text)),
        }
    }
    Ok(())
}

/// Returns the failure of an undo that found damaged items and no conflict.
fn damage_failure(id: OperationId, undo: &UndoReport, restored: &str) -> CommandFailure {
    let damaged = format_count(undo.unreadable.len() as u64, "damaged item");
    let message = match undo.operation {
        Some(_) => format!("operation {id} was partly undone: {restored}, {damaged} skipped"),
        None => format!("operation {id} was not undone: {damaged}"),
    };
    CommandFailure::new(FailureKind::Store, message)
        .with_hint("an older backup may have the damaged items")
        .with_hint("to erase a damaged item with all its versions: larder purge ID")
}

/// Prints the after-image and the current version of each conflict.
fn print_conflicts(
    context: &mut CommandContext,
    reader: &Reader,
    id: OperationId,
    undo: &UndoReport,
) -> Result<CommandStatus, CommandFailure> {
    for conflict in &undo.conflicts {
        let after_image = conflict.after_image.as_deref().unwrap_or_default();
        let current = conflict.current.as_deref().unwrap_or_default();
        let (mut handle, mut name) = (
            conflict.handle,
            name_from_bytes(if current.is_empty() { after_image } else { current }),
        );
        if context.format == OutputFormat::Json {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            context.out.print_json(&json!({
                "conflict": handle.to_string(),
                "after_image": conflict.after_image.as_deref().map(text),
                "current": conflict.current.as_deref().map(text),
            }))?;
            continue;
        }
        let mut images = [after_image.to_vec(), current.to_vec()];
        if let Some(message) = labelled_message_name(context, reader, handle)? {
            (handle, name) = message;
            // Without the hash of the text that has the labels.
            images = images.map(|bytes| MessageLabels::parse(&bytes).labels.to_bytes());
        }
        let [after_image, current] = &images;
        context.out.print_line(format!("{handle:.8}  {STRONG_STYLE}{name}{STRONG_STYLE:#}"))?;
        context.out.print_line(format!(
            "{REMOVED_STYLE}- after operation {id}{REMOVED_STYLE:#}  {ADDED_STYLE}+ current{ADDED_STYLE:#}"
        ))?;
        print_difference(&mut context.out, after_image, current)?;
    }
    context.out.flush()?;
    let items = format_count(undo.conflicts.len() as u64, "item");
    if undo.operation.is_some() {
        let restored = format_count(undo.items, "item");
        let conflicts = format_count(undo.conflicts.len() as u64, "conflict");
        let message = format!("operation {id} was partly undone: {restored} restored, {conflicts}");
        return Err(CommandFailure::new(FailureKind::Usage, message).with_hint(format!(
            "undo the later changes, then undo the rest with: larder undo {id}"
        )));
    }
    Err(CommandFailure::new(
        FailureKind::Usage,
        format!("operation {id} was not undone: {items} changed after it"),
    )
    .with_hint("undo the later operations first (`larder log` lists them), or edit the items"))
}
