use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure};
use crate::ids::shown_name;
use crate::output::{STRONG, complain, count, plain};
use crate::table::shorten;
use larder_store::{Change, ItemHead, Kind as ItemKind, Operation, Reader, Store};
use serde_json::{Value, json};

/// List collections, or create, rename and remove them
#[derive(Debug, clap::Args)]
pub(crate) struct Collections {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List them: name, kind, number of items (this is also done without a verb)
    List,
    /// Make an empty collection
    Create {
        /// Its name
        name: String,
        /// What it holds
        #[arg(long, value_name = "KIND", default_value = "contact", value_parser = ["contact"])]
        kind: String,
    },
    /// Give a collection another name
    Rename {
        /// The name it has
        from: String,
        /// The name it gets
        to: String,
    },
    /// Take a collection away, with all its items; `larder undo` brings them back
    Remove {
        /// Its name
        name: String,
    },
}

/// Items that a message about those left names.
const NAMED: usize = 5;

impl Collections {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        match self.verb.unwrap_or(Verb::List) {
            Verb::List => list(context),
            Verb::Create { name, kind: _contact } => {
                let change = Change::CreateCollection(name.clone(), ItemKind::Contact);
                let id = apply(context.store_or_new()?, "create", &name, change)?;
                let line = format!("{} created", plain(&name));
                done(context, &json!({ "name": name, "operation": id }), &line)
            }
            Verb::Rename { from, to } => {
                let change = Change::RenameCollection(from.clone(), to.clone());
                let detail = format!("{from} to {to}");
                let id = apply(context.store()?, "rename", &detail, change)?;
                let line = format!("{} is now {}", plain(&from), plain(&to));
                done(context, &json!({ "name": to, "was": from, "operation": id }), &line)
            }
            Verb::Remove { name } => remove(context, &name),
        }
    }
}

fn list(context: &mut Context) -> Result<Code, Failure> {
    let collections = context.reader()?.collections()?;
    let width = context.out.width().map(|width| width.saturating_sub(COUNT).max(8));
    for collection in &collections {
        let (name, kind) = (plain(&collection.name), collection.kind.name());
        if context.format == Format::Json {
            context.out.json(&json!({
                "name": collection.name, "kind": kind, "items": collection.items,
            }))?;
            continue;
        }
        let name = width.map_or_else(|| name.clone(), |width| shorten(&name, width));
        let items = count(collection.items, kind);
        context.out.line(format!("{STRONG}{name:<20}{STRONG:#}  {items}"))?;
    }
    Ok(if collections.is_empty() { Code::NothingFound } else { Code::Done })
}

/// Columns that a number of items takes, with the blanks before it.
const COUNT: usize = 18;

fn done(context: &mut Context, object: &Value, line: &str) -> Result<Code, Failure> {
    match context.format {
        Format::Json => context.out.json(object)?,
        _ => context.out.line(line)?,
    }
    Ok(Code::Done)
}

fn apply(mut store: Store, verb: &str, detail: &str, change: Change) -> Result<i64, Failure> {
    let mut operation = Operation::new(verb, detail, now());
    store.apply(&mut operation, vec![change])?;
    Ok(operation.id().unwrap_or_default())
}

fn remove(context: &mut Context, name: &str) -> Result<Code, Failure> {
    let listed = larder_sync::list(&context.reader()?, name)?;
    let mut store = context.store()?;
    let mut operation = Operation::new("remove", format!("collection {name}"), now());
    let removed = larder_sync::remove_collection(&mut store, &mut operation, &listed)?;
    let id = removed.operation.unwrap_or_default();
    let (items, shown) = (count(removed.items, "item"), plain(name));
    match context.format {
        Format::Json => context.out.json(&json!({
            "name": name, "removed": removed.whole, "items": removed.items,
            "kept": removed.kept.len(), "operation": removed.operation,
        }))?,
        _ if removed.whole => context
            .out
            .line(format!("{shown} and {items} removed; larder undo {id} brings them back"))?,
        _ if removed.items > 0 => {
            context.out.line(format!("{items} removed; larder undo {id} brings them back"))?;
        }
        _ => {}
    }
    if removed.whole {
        return Ok(Code::Done);
    }
    stays(&store.reader()?, &shown, &removed.kept)?;
    Ok(Code::LeftOut)
}

/// Names what keeps a collection.
fn stays(reader: &Reader, name: &str, kept: &[ItemHead]) -> Result<(), Failure> {
    let items = count(kept.len() as u64, "item");
    let what = "changed or added by somebody else in the meantime";
    complain("left out", format!("{name} stays, with {items} {what}"));
    for head in kept.iter().take(NAMED) {
        complain("kept", format!("{}  {}", head.handle, shown_name(reader, head)?));
    }
    if kept.len() > NAMED {
        complain("kept", format!("... and {} more", kept.len() - NAMED));
    }
    complain("hint", "run the same command again to remove what is there now");
    Ok(())
}
