use super::log::print_difference;
use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::name_from_bytes;
use crate::output::{ADDED_STYLE, REMOVED_STYLE, STRONG_STYLE, format_count};
use serde_json::json;

/// Put back what an operation changed
///
/// Without a number it is the newest operation that is not undone yet; `larder log` lists them. An
/// undo is an operation itself, and can be undone. Where something was changed since, nothing is
/// undone and both versions are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// The number of the operation
    operation: Option<i64>,
}

impl UndoArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let reader = context.open_reader()?;
        let id = match self.operation {
            Some(id) => id,
            None => match reader.last_undoable_operation()? {
                Some(row) => row.id,
                None => {
                    return Err(CommandFailure::new(
                        FailureKind::NotFound,
                        "there is nothing to undo",
                    )
                    .with_hint("larder log lists what was done"));
                }
            },
        };
        let mut store = context.open_store()?;
        let undo = store.undo(id, now_milliseconds())?;
        // A summary may have come back.
        store.refresh()?;
        if !undo.conflicts.is_empty() {
            return print_conflicts(context, id, &undo);
        }
        let items = format_count(undo.items, "item");
        let by = undo.operation.unwrap_or_default();
        match context.format {
            OutputFormat::Json => {
                context
                    .out
                    .print_json(&json!({ "undone": id, "operation": by, "items": undo.items }))?;
            }
            _ if undo.items == 0 => {
                context.out.print_line(format!(
                    "operation {id} is undone; larder undo {by} does it again"
                ))?;
            }
            _ => context.out.print_line(format!(
                "operation {id} is undone, {items} as before it; larder undo {by} does it again"
            ))?,
        }
        Ok(CommandStatus::Done)
    }
}

/// Shows what the operation left and what is there now.
fn print_conflicts(
    context: &mut CommandContext,
    id: i64,
    undo: &larder_store::UndoReport,
) -> Result<CommandStatus, CommandFailure> {
    for conflict in &undo.conflicts {
        let left = conflict.after_image.as_deref().unwrap_or_default();
        let now = conflict.current.as_deref().unwrap_or_default();
        let name = name_from_bytes(if now.is_empty() { left } else { now });
        let handle = conflict.handle;
        if context.format == OutputFormat::Json {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (left, now) =
                (conflict.after_image.as_deref().map(text), conflict.current.as_deref().map(text));
            context
                .out
                .print_json(&json!({ "conflict": handle.to_string(), "left": left, "now": now }))?;
            continue;
        }
        context.out.print_line(format!("{STRONG_STYLE}{name}{STRONG_STYLE:#}  {handle:.8}"))?;
        context.out.print_line(format!(
            "{REMOVED_STYLE}- as operation {id} left it{REMOVED_STYLE:#}  {ADDED_STYLE}+ as it is now{ADDED_STYLE:#}"
        ))?;
        print_difference(&mut context.out, left, now)?;
    }
    context.out.flush()?;
    let items = format_count(undo.conflicts.len() as u64, "item");
    if undo.operation.is_some() {
        let back = format_count(undo.items, "item");
        let message = format!(
            "operation {id} was undone in part: {back} put back, {items} changed meanwhile and left as they are"
        );
        return Err(CommandFailure::new(FailureKind::Usage, message).with_hint(format!(
            "larder undo {id} puts back the rest, once nothing of it is changed"
        )));
    }
    Err(CommandFailure::new(
        FailureKind::Usage,
        format!("operation {id} was not undone: {items} changed since"),
    )
    .with_hint(
        "undo the later operations first (larder log lists them), or edit the items by hand",
    ))
}
