use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::output::{STRONG, count, plain};
use larder_store::{Change, Expect, Kind as ItemKind, Operation, Store};
use serde_json::json;

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

/// Removals in one batch: short enough to let others in between.
const BATCH: usize = 500;

impl Collections {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        match self.verb.unwrap_or(Verb::List) {
            Verb::List => list(context),
            Verb::Create { name, kind: _contact } => {
                let change = Change::CreateCollection(name.clone(), ItemKind::Contact);
                apply(context.store_or_new()?, "create", &name, change)?;
                context.out.line(format!("{} created", plain(&name)))?;
                Ok(Code::Done)
            }
            Verb::Rename { from, to } => {
                let change = Change::RenameCollection(from.clone(), to.clone());
                apply(context.store()?, "rename", &from, change)?;
                context.out.line(format!("{} is now {}", plain(&from), plain(&to)))?;
                Ok(Code::Done)
            }
            Verb::Remove { name } => remove(context, &name),
        }
    }
}

fn list(context: &mut Context) -> Result<Code, Failure> {
    let collections = context.reader()?.collections()?;
    for collection in &collections {
        let (name, kind) = (plain(&collection.name), collection.kind.name());
        match context.format {
            Format::Json => context.out.json(&json!({
                "name": collection.name, "kind": kind, "items": collection.items,
            }))?,
            _ => context
                .out
                .line(format!("{STRONG}{name:<20}{STRONG:#}  {}", count(collection.items, kind)))?,
        }
    }
    Ok(if collections.is_empty() { Code::NothingFound } else { Code::Done })
}

fn apply(mut store: Store, verb: &str, name: &str, change: Change) -> Result<(), Failure> {
    let mut operation = Operation::new(verb, name, now());
    store.apply(&mut operation, vec![change])?;
    Ok(())
}

fn remove(context: &mut Context, name: &str) -> Result<Code, Failure> {
    let reader = context.reader()?;
    let collections = reader.collections()?;
    let Some(collection) = collections.iter().find(|collection| collection.name == name) else {
        return Err(larder_store::Error::NoCollection { name: name.to_string() }.into());
    };
    let mut store = context.store()?;
    let mut operation = Operation::new("remove", name, now());
    loop {
        let page = reader.page(collection, 0, BATCH)?;
        if page.is_empty() {
            break;
        }
        let changes = page.iter().map(|head| Change::Remove(head.handle, Expect::Anything));
        store.apply(&mut operation, changes.collect())?;
    }
    let last = store.apply(&mut operation, vec![Change::RemoveCollection(name.to_string())])?;
    if last.outcomes != [larder_store::Outcome::Done] {
        return Err(Failure::new(Kind::Store, "somebody added an item in the meantime")
            .hint("run the same command again"));
    }
    let (items, id) = (count(collection.items, "item"), operation.id().unwrap_or_default());
    let name = plain(name);
    context.out.line(format!("{name} and {items} removed; larder undo {id} brings them back"))?;
    Ok(Code::Done)
}
