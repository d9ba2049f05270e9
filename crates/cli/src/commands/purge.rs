use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, resolve_item};
use crate::output::{format_count, print_message, sanitize_line};
use larder_store::{Handle, HandlePrefix, Operation, OperationId, PurgeReport};
use serde_json::json;
use std::io::IsTerminal as _;

/// Erase items for good: they, and all their former versions, are then in no file of the store
///
/// This cannot be undone. Copies outside the data directory (backups, exports) are yours to delete.
/// A removed item is named by the letters that `larder remove` or `larder log` printed.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    /// Which items
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl PurgeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        // A reader of our own would keep the old pages in use.
        let (handles, names) = self.resolve_handles(context)?;
        if !self.yes && !confirm_purge(&names) {
            return Err(CommandFailure::new(FailureKind::Usage, "nothing was purged")
                .with_hint(format!("this would erase for good: {}", format_names(&names)))
                .with_hint("--yes purges without asking"));
        }
        let mut store = context.open_store()?;
        let mut operation = Operation::new("purge", "", now_milliseconds());
        let purged = store.purge(&mut operation, &handles)?;
        print_purged(context, &purged, operation.id())?;
        Ok(CommandStatus::Done)
    }

    /// What is to be erased, and how each is called in messages.
    fn resolve_handles(
        &self,
        context: &CommandContext,
    ) -> Result<(Vec<Handle>, Vec<String>), CommandFailure> {
        let reader = context.open_reader()?;
        let (mut handles, mut names) = (Vec::new(), Vec::new());
        for id in &self.ids {
            let (handle, name) = if let Some(handle) = find_removed_handle(&reader, id)? {
                (handle, format!("a removed item ({handle:.8})"))
            } else if let Some(handle) = find_purged_handle(&reader, id)? {
                (handle, format!("an item that was purged before ({handle:.8})"))
            } else {
                let head = resolve_item(&reader, id)?;
                let (handle, name) = (head.handle, display_name(&reader, &head)?);
                (handle, format!("{name} ({handle:.8}, in {})", sanitize_line(&head.collection)))
            };
            handles.push(handle);
            names.push(name);
        }
        Ok((handles, names))
    }
}

fn print_purged(
    context: &mut CommandContext,
    purged: &PurgeReport,
    operation: Option<OperationId>,
) -> Result<(), CommandFailure> {
    let deleted = purged.deleted.iter().map(|copy| copy.display().to_string());
    if context.format == OutputFormat::Json {
        let deleted: Vec<_> = deleted.collect();
        context.out.print_json(&json!({
            "purged": purged.items, "completed": purged.completed, "deleted": deleted,
            "operation": operation,
        }))?;
        return Ok(());
    }
    if purged.completed {
        context.out.print_line("the purge that was interrupted before is completed")?;
    }
    if purged.items > 0 || !purged.completed {
        let items = format_count(purged.items, "item");
        context.out.print_line(format!("{items} purged, with all former versions"))?;
    }
    for copy in deleted {
        context.out.print_line(format!("{} was damaged, and is deleted", sanitize_line(&copy)))?;
    }
    Ok(())
}

/// A handle of which only former versions are left.
fn find_removed_handle(
    reader: &larder_store::Reader,
    id: &str,
) -> Result<Option<Handle>, CommandFailure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.find_by_handle(prefix, 1)?.is_empty() {
        return Ok(None);
    }
    Ok(match reader.find_removed_handles(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

/// A handle of an item that a purge took away and did not erase from the files yet.
fn find_purged_handle(
    reader: &larder_store::Reader,
    id: &str,
) -> Result<Option<Handle>, CommandFailure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.is_purge_pending()? || !reader.find_by_handle(prefix, 1)?.is_empty() {
        return Ok(None);
    }
    Ok(match reader.find_purged_handles(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

fn confirm_purge(names: &[String]) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    print_message("purge", confirmation_text(names));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}

/// What the answer yes will do.
fn confirmation_text(names: &[String]) -> String {
    format!(
        "{} will be erased for good, with all former versions, from all files of the store: {}\n\
         larder undo will not bring back what is erased; backups and exports elsewhere stay as they are.\n\
         Type yes and press Enter to erase; anything else leaves all as it is:",
        format_count(names.len() as u64, "item"),
        format_names(names)
    )
}

/// Names for a message, not all of very many.
fn format_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMED_ITEMS).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED_ITEMS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Items that a message names.
const MAX_NAMED_ITEMS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_what_will_be_erased_and_how_to_answer() {
        let check = |names: &[&str], expect: &[&str]| {
            let question =
                confirmation_text(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
            for part in expect {
                assert!(question.contains(part), "{part}: {question}");
            }
        };
        check(
            &["Anna (xdnskgpk)", "Bruno (kc7xst8t)"],
            &[
                "2 items will be erased",
                "Anna (xdnskgpk), Bruno (kc7xst8t)",
                "Type yes and press Enter",
            ],
        );
        check(&["A"; 12], &["12 items", "A and 2 more", "larder undo will not bring back"]);
    }
}
