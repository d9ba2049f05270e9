//! `larder purge`.

mod messages;

use self::messages::PurgedMessages;
use crate::args::OutputFormat;
use crate::commit_store::explain_commit;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::{display_name, resolve_item};
use crate::machine_time::now_milliseconds;
use crate::mail_store::follow_committed_labels;
use crate::output::{format_count, print_message, sanitize_line};
use larder_store::{Handle, HandlePrefix, Operation, OperationId, PendingWork, PurgeReport};
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// Permanently delete items and their whole history from the store
///
/// This cannot be undone. Copies outside the store's directory (backups, exports) are not deleted.
/// The file of a message stays in its maildir: delete it, or the next sync indexes it again.
/// A removed item can be purged by the ID that `larder remove` or `larder log` printed. If a purge
/// was interrupted, `larder purge` without an ID finishes it.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    /// The items; none: finish a purge that was interrupted
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl PurgeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.ids.is_empty() {
            return finish_purge(context);
        }
        // No reader may stay open here: it would keep the old pages in use.
        let (handles, messages, names) = self.resolve_handles(context)?;
        if !self.yes && !confirm_purge(&names) {
            return Err(CommandFailure::new(FailureKind::Usage, "nothing was purged")
                .with_hint(format!("this would permanently delete: {}", format_names(&names)))
                .with_hint("use --yes to purge without confirmation"));
        }
        let mut operation = Operation::new("purge", "", now_milliseconds());
        let mut purged = context.open_store()?.purge(&mut operation, &handles)?;
        let files = messages.purge(context, &mut operation, &mut purged)?;
        print_purged(context, &purged, operation.id(), &files)?;
        // Those who changed labels meanwhile left that to the purge.
        follow_committed_labels(context)?;
        if files.is_empty() {
            return Ok(CommandStatus::Done);
        }
        let what = match files.as_slice() {
            [_] => "the file, or the next larder sync indexes the message",
            _ => "the files, or the next larder sync indexes the messages",
        };
        print_message("hint", format!("delete {what} again, without labels"));
        Ok(CommandStatus::Rejected)
    }

    /// Returns the items to erase, the messages, and the names of all for messages.
    fn resolve_handles(
        &self,
        context: &CommandContext,
    ) -> Result<(Vec<Handle>, PurgedMessages, Vec<String>), CommandFailure> {
        let reader = context.open_reader()?;
        let (mut handles, mut names) = (Vec::new(), Vec::new());
        let mut messages = PurgedMessages::open(context)?;
        for id in &self.ids {
            if messages.add_indexed(context, id, &mut names)? {
                continue;
            }
            let (handle, name) = if let Some(handle) = find_removed_handle(&reader, id)? {
                (handle, format!("a removed item ({handle:.8})"))
            } else if let Some(handle) = find_purged_handle(&reader, id)? {
                (handle, format!("an item that was purged earlier ({handle:.8})"))
            } else {
                let meta = match resolve_item(&reader, id) {
                    Err(failure) if failure.is_not_found() => {
                        if let Some(unread) = messages.take_failure() {
                            return Err(unread);
                        }
                        if messages.add_removed(id, &mut names)?
                            || messages.add_labels(context, &reader, id, &mut names)?
                        {
                            continue;
                        }
                        return Err(explain_commit(context, id, failure));
                    }
                    meta => meta?,
                };
                let (handle, name) = (meta.handle, display_name(&reader, &meta)?);
                (handle, format!("{name} ({handle:.8}, in {})", sanitize_line(&meta.collection)))
            };
            // A message may have an ID that begins with the same letters.
            if !is_whole_id(id, handle)
                && let Some(unread) = messages.take_failure()
            {
                return Err(unread);
            }
            handles.push(handle);
            names.push(name);
        }
        if let Some(unread) = messages.take_failure() {
            // The messages would not be erased.
            if messages.has_any() {
                return Err(unread);
            }
            let reason = unread.message();
            context.print_warning(format!("the index of mail was not looked at: {reason}"));
        }
        Ok((handles, messages, names))
    }
}

/// Finishes a purge that was interrupted.
fn finish_purge(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    context.without_work_warnings();
    let mut store = context.open_store()?;
    let mut operation = Operation::new("purge", "", now_milliseconds());
    let mut purged = store.purge(&mut operation, &[])?;
    messages::finish_purge(context, &mut purged)?;
    if !purged.completed {
        return Err(CommandFailure::new(FailureKind::Usage, "no purge was interrupted")
            .with_hint("name the items to purge: larder purge ID..."));
    }
    print_purged(context, &purged, operation.id(), &[])?;
    follow_committed_labels(context)?;
    Ok(CommandStatus::Done)
}

fn print_purged(
    context: &mut CommandContext,
    purged: &PurgeReport,
    operation: Option<OperationId>,
    files: &[PathBuf],
) -> Result<(), CommandFailure> {
    let deleted = purged.deleted.iter().map(|copy| copy.display().to_string());
    if context.format == OutputFormat::Json {
        let deleted: Vec<_> = deleted.collect();
        context.out.print_json(&json!({
            "purged": purged.items, "completed": purged.completed, "deleted": deleted,
            "operation": operation.map(OperationId::to_number),
            "files": files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        }))?;
        return Ok(());
    }
    if purged.completed {
        context.out.print_line("Finished the interrupted purge")?;
    }
    if purged.items > 0 || !purged.completed {
        let items = format_count(purged.items, "item");
        context.out.print_line(format!("Purged {items} with all previous versions"))?;
    }
    for copy in deleted {
        let copy = sanitize_line(&copy);
        context.out.print_line(format!("Deleted {copy}: nothing can be erased from it"))?;
    }
    for file in files {
        let file = sanitize_line(&file.display().to_string());
        context.out.print_line(format!("The message is still in the file {file}"))?;
    }
    Ok(())
}

/// Returns the handle of a removed item that still has previous versions.
fn find_removed_handle(
    reader: &larder_store::Reader,
    id: &str,
) -> Result<Option<Handle>, CommandFailure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.items().find_listed_by_handle(prefix, 1)?.is_empty() {
        return Ok(None);
    }
    Ok(match reader.changes().find_removed_handles(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

/// Returns the handle of a purged item that is not yet erased from the files.
fn find_purged_handle(
    reader: &larder_store::Reader,
    id: &str,
) -> Result<Option<Handle>, CommandFailure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.pending_work()?.contains(&PendingWork::Purge)
        || !reader.items().find_listed_by_handle(prefix, 1)?.is_empty()
    {
        return Ok(None);
    }
    Ok(match reader.changes().find_purged_handles(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

/// Returns whether an ID can name no other item than the one with a handle.
fn is_whole_id(id: &str, handle: Handle) -> bool {
    id.starts_with("uid:") || id.contains('/') || handle.to_string().eq_ignore_ascii_case(id)
}

fn confirm_purge(names: &[String]) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    print_message("warning", confirmation_text(names));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}

/// Describes what confirming will do.
fn confirmation_text(names: &[String]) -> String {
    format!(
        "{} will be permanently deleted with all previous versions: {}\n\
         This cannot be undone. Backups and exports elsewhere are not changed.\n\
         Type yes and press Enter to delete, or just Enter to cancel:",
        format_count(names.len() as u64, "item"),
        format_names(names)
    )
}

/// Joins names for a message, and cuts a long list.
fn format_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMED_PURGED_ITEMS).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED_PURGED_ITEMS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Items that a message names.
const MAX_NAMED_PURGED_ITEMS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confirmation_names_the_items() {
        let check = |names: &[&str], expect: &[&str]| {
            let text =
                confirmation_text(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
            for part in expect {
                assert!(text.contains(part), "{part}: {text}");
            }
        };
        check(
            &["Anna (xdnskgpk)", "Bruno (kc7xst8t)"],
            &[
                "2 items will be permanently deleted",
                "Anna (xdnskgpk), Bruno (kc7xst8t)",
                "Type yes and press Enter",
            ],
        );
        check(&["A"; 12], &["12 items", "A and 2 more", "This cannot be undone"]);
    }
}
