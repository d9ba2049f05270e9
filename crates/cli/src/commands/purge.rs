use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{resolve, shown_name};
use crate::output::{complain, count, plain};
use larder_store::{Handle, HandlePrefix, Operation, OperationId, Purged};
use serde_json::json;
use std::io::IsTerminal as _;

/// Erase items for good: they, and all their former versions, are then in no file of the store
///
/// This cannot be undone. Copies outside the data directory (backups, exports) are yours to delete. A removed item is
/// named by the letters that `larder remove` or `larder log` printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Purge {
    /// Which items
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Purge {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        // A reader of our own would keep the old pages in use.
        let (handles, names) = self.named(context)?;
        if !self.yes && !confirmed(&names) {
            return Err(Failure::new(Kind::Usage, "nothing was purged")
                .hint(format!("this would erase for good: {}", listed(&names)))
                .hint("--yes purges without asking"));
        }
        let mut store = context.store()?;
        let mut operation = Operation::new("purge", "", now());
        let purged = store.purge(&mut operation, &handles)?;
        print(context, &purged, operation.id())?;
        Ok(Code::Done)
    }

    /// What is to be erased, and how each is called in messages.
    fn named(&self, context: &Context) -> Result<(Vec<Handle>, Vec<String>), Failure> {
        let reader = context.reader()?;
        let (mut handles, mut names) = (Vec::new(), Vec::new());
        for id in &self.ids {
            let (handle, name) = if let Some(handle) = removed(&reader, id)? {
                (handle, format!("a removed item ({handle:.8})"))
            } else if let Some(handle) = purged(&reader, id)? {
                (handle, format!("an item that was purged before ({handle:.8})"))
            } else {
                let head = resolve(&reader, id)?;
                let (handle, name) = (head.handle, shown_name(&reader, &head)?);
                (handle, format!("{name} ({handle:.8}, in {})", plain(&head.collection)))
            };
            handles.push(handle);
            names.push(name);
        }
        Ok((handles, names))
    }
}

fn print(
    context: &mut Context,
    purged: &Purged,
    operation: Option<OperationId>,
) -> Result<(), Failure> {
    let deleted = purged.deleted.iter().map(|copy| copy.display().to_string());
    if context.format == Format::Json {
        let deleted: Vec<_> = deleted.collect();
        context.out.json(&json!({
            "purged": purged.items, "completed": purged.completed, "deleted": deleted,
            "operation": operation,
        }))?;
        return Ok(());
    }
    if purged.completed {
        context.out.line("the purge that was interrupted before is completed")?;
    }
    if purged.items > 0 || !purged.completed {
        let items = count(purged.items, "item");
        context.out.line(format!("{items} purged, with all former versions"))?;
    }
    for copy in deleted {
        context.out.line(format!("{} was damaged, and is deleted", plain(&copy)))?;
    }
    Ok(())
}

/// A handle of which only former versions are left.
fn removed(reader: &larder_store::Reader, id: &str) -> Result<Option<Handle>, Failure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.by_handle(prefix, 1)?.is_empty() {
        return Ok(None);
    }
    Ok(match reader.removed_by_handle(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

/// A handle of an item that a purge took away and did not erase from the files yet.
fn purged(reader: &larder_store::Reader, id: &str) -> Result<Option<Handle>, Failure> {
    let Some(prefix) = HandlePrefix::parse(id) else { return Ok(None) };
    if !reader.purge_pending()? || !reader.by_handle(prefix, 1)?.is_empty() {
        return Ok(None);
    }
    Ok(match reader.purged_by_handle(prefix, 2)?.as_slice() {
        [handle] => Some(*handle),
        _ => None,
    })
}

fn confirmed(names: &[String]) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    complain("purge", question(names));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}

/// What the answer yes will do.
fn question(names: &[String]) -> String {
    format!(
        "{} will be erased for good, with all former versions, from all files of the store: {}\n\
         larder undo will not bring back what is erased; backups and exports elsewhere stay as they are.\n\
         Type yes and press Enter to erase; anything else leaves all as it is:",
        count(names.len() as u64, "item"),
        listed(names)
    )
}

/// Names for a message, not all of very many.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Items that a message names.
const NAMED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_what_will_be_erased_and_how_to_answer() {
        let check = |names: &[&str], expect: &[&str]| {
            let question = question(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
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
