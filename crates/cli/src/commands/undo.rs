//! `larder undo`.

use super::log::print_difference;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::name_from_bytes;
use crate::machine_time::now_milliseconds;
use crate::output::{ADDED_STYLE, REMOVED_STYLE, STRONG_STYLE, format_count};
use larder_store::OperationId;
use serde_json::json;

/// Undo an operation
///
/// Without a number, undoes the newest operation that has not been undone; `larder log` lists
/// operations. An undo is an operation too and can be undone. If an item has changed since, nothing
/// is undone and both versions are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// The number of the operation
    operation: Option<i64>,
}

impl UndoArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let id = match self.operation {
            Some(number) => OperationId::from_number(number),
            None => match reader.changes().last_undoable_operation()? {
                Some(row) => row.id,
                None => {
                    return Err(CommandFailure::new(FailureKind::NotFound, "nothing to undo")
                        .with_hint("`larder log` lists operations"));
                }
            },
        };
        let undone = reader.changes().find_operation(id)?;
        let verb = undone.as_ref().map(|row| format!(" ({})", row.verb)).unwrap_or_default();
        let effect = match undone.map(|row| row.counts) {
            Some([_, 0, 0]) => "removed",
            Some([0, ..]) => "restored",
            _ => "reverted",
        };
        let mut store = context.open_store()?;
        let undo = store.undo(id, now_milliseconds())?;
        // An index configuration may have been restored.
        store.refresh()?;
        if !undo.conflicts.is_empty() {
            return print_conflicts(context, id, &undo);
        }
        let items = format_count(undo.items, "item");
        let redo = undo.operation.map(|by| format!(" Redo: larder undo {by}")).unwrap_or_default();
        match context.format {
            OutputFormat::Json => {
                let by = undo.operation.map(OperationId::to_number);
                let object =
                    json!({ "undone": id.to_number(), "operation": by, "items": undo.items });
                context.out.print_json(&object)?;
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
}

/// Prints the after-image and the current version of each conflict.
fn print_conflicts(
    context: &mut CommandContext,
    id: OperationId,
    undo: &larder_store::UndoReport,
) -> Result<CommandStatus, CommandFailure> {
    for conflict in &undo.conflicts {
        let after_image = conflict.after_image.as_deref().unwrap_or_default();
        let current = conflict.current.as_deref().unwrap_or_default();
        let name = name_from_bytes(if current.is_empty() { after_image } else { current });
        let handle = conflict.handle;
        if context.format == OutputFormat::Json {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            context.out.print_json(&json!({
                "conflict": handle.to_string(),
                "after_image": conflict.after_image.as_deref().map(text),
                "current": conflict.current.as_deref().map(text),
            }))?;
            continue;
        }
        context.out.print_line(format!("{STRONG_STYLE}{name}{STRONG_STYLE:#}  {handle:.8}"))?;
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
