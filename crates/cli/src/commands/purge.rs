use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{resolve_all, shown_name};
use crate::output::{complain, count, plain};
use larder_store::{Handle, HandlePrefix, Operation};
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
        let reader = context.reader()?;
        let mut handles = Vec::new();
        let mut names = Vec::new();
        for id in &self.ids {
            let (handle, name) = if let Some(handle) = removed(&reader, id)? {
                (handle, "a removed item".to_string())
            } else if let Some(handle) = purged(&reader, id)? {
                (handle, "an item that was purged before".to_string())
            } else {
                let heads = resolve_all(context, std::slice::from_ref(id))?;
                (heads[0].handle, shown_name(&reader, &heads[0])?)
            };
            handles.push(handle);
            names.push(name);
        }
        // A reader of our own would keep the old pages in use.
        drop(reader);
        if !self.yes && !confirmed(&names) {
            return Err(
                Failure::new(Kind::Usage, "nothing was purged").hint("--yes purges without asking")
            );
        }
        let mut store = context.store()?;
        let mut operation = Operation::new("purge", "", now());
        let purged = store.purge(&mut operation, &handles)?;
        if purged.completed {
            context.out.line("the purge that was interrupted before is completed")?;
        }
        if purged.items > 0 || !purged.completed {
            let items = count(purged.items, "item");
            context.out.line(format!("{items} purged, with all former versions"))?;
        }
        for copy in &purged.deleted {
            let copy = plain(&copy.display().to_string());
            context.out.line(format!("{copy} was damaged, and is deleted"))?;
        }
        Ok(Code::Done)
    }
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
    complain("purge", format!("{}: this cannot be undone. Type yes to go on:", names.join(", ")));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}
