use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure};
use crate::ids::shown_name;
use crate::output::{STRONG, complain, count, plain};
use crate::table::shorten;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_store::{
    Change, Collection, Error, Family, ItemHead, Kind as ItemKind, Operation, Reader, Store,
    Summary,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// List collections, or create, rename, index and remove them
#[derive(Debug, clap::Args)]
pub(crate) struct Collections {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List them: name, kind, number of items, whether an index was chosen (this is also done without a verb)
    List,
    /// Make an empty collection
    Create {
        /// Its name
        name: String,
        /// What it holds
        #[arg(long, value_name = "KIND", default_value = "contact", value_parser = kinds())]
        kind: Family,
        /// Which field is indexed and how, as for `collections index`; several add up [default: default]
        #[arg(long, value_name = "FIELD:KIND,..")]
        index: Vec<String>,
    },
    /// Choose which fields are indexed, and how; without --index, tell
    ///
    /// An index makes questions fast and items larger; what has none is found all the same, by reading every card. KIND
    /// is `exact` and `prefix` (whole values and how they begin: one index), `suffix` (how they end), `phone` (numbers,
    /// compared as numbers), `substring` (any part; free words need it for all fields they look into), `sort` (the
    /// alphabet). Items that are there are read and indexed again; meanwhile questions are answered, more slowly.
    Index {
        /// The collection's name
        name: String,
        /// A field and how it is indexed, or `default`, or `none`; several add up, and replace what was chosen before
        #[arg(long, value_name = "FIELD:KIND,..")]
        index: Vec<String>,
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
            Verb::Create { name, kind, index } => {
                let summary = chosen(&index, kind)?
                    .unwrap_or_else(|| (*Summary::shared_default(kind)).clone());
                let kind = match kind {
                    Family::Calendar => ItemKind::Event,
                    _ => ItemKind::Contact,
                };
                let create = Change::CreateCollection(name.clone(), kind);
                let changes = vec![create, Change::SetSummary(name.clone(), summary)];
                let id = apply(&mut context.store_or_new()?, "create", &name, changes)?;
                let line = format!("{} created", plain(&name));
                done(context, &json!({ "name": name, "operation": id }), &line)
            }
            Verb::Rename { from, to } => {
                let change = Change::RenameCollection(from.clone(), to.clone());
                let detail = format!("{from} to {to}");
                let id = apply(&mut context.store()?, "rename", &detail, vec![change])?;
                let line = format!("{} is now {}", plain(&from), plain(&to));
                done(context, &json!({ "name": to, "was": from, "operation": id }), &line)
            }
            Verb::Index { name, index } => {
                let of = named(context, &name)?;
                match chosen(&index, of.family)? {
                    None => tell_index(context, &of),
                    Some(summary) => set_index(context, of, summary),
                }
            }
            Verb::Remove { name } => remove(context, &name),
        }
    }
}

/// The summary that was asked for, if any was.
fn chosen(index: &[String], of: Family) -> Result<Option<Summary>, Failure> {
    if index.iter().any(|words| words.trim().is_empty()) {
        return Err(Failure::new(crate::failure::Kind::Usage, "--index says nothing")
            .hint("--index none leaves out all indexes; --index default is what there is without a choice"));
    }
    if index.is_empty() { Ok(None) } else { Ok(Some(Summary::parse(&index.join(" "), of)?)) }
}

/// A summary as JSON has it.
fn index_of(summary: &Summary) -> String {
    if summary.is_default() { "default".into() } else { summary.to_string() }
}

/// What a collection holds, as it is typed and printed.
fn kind_of(family: Family) -> &'static str {
    if family == Family::Calendar { "calendar" } else { "contact" }
}

/// Reads what a collection is to hold.
fn kinds() -> impl TypedValueParser<Value = Family> {
    let families = [Family::Contacts, Family::Calendar];
    PossibleValuesParser::new(families.map(kind_of)).map(move |name| {
        families.into_iter().find(|of| kind_of(*of) == name).unwrap_or(Family::Contacts)
    })
}

fn list(context: &mut Context) -> Result<Code, Failure> {
    let collections = context.reader()?.collections()?;
    let width = context.out.width().map(|width| width.saturating_sub(COUNT).max(8));
    for collection in &collections {
        let (name, kind) = (plain(&collection.name), kind_of(collection.family));
        if context.format == Format::Json {
            context.out.json(&json!({
                "name": collection.name, "kind": kind, "items": collection.items,
                "index": index_of(&collection.summary),
            }))?;
            continue;
        }
        let name = width.map_or_else(|| name.clone(), |width| shorten(&name, width));
        let items = match collection.family {
            Family::Calendar => format!("{}  calendar", count(collection.items, "item")),
            _ => count(collection.items, "contact"),
        };
        let mark = if collection.summary.is_default() { "" } else { "  own index" };
        context.out.line(format!("{STRONG}{name:<20}{STRONG:#}  {items}{mark}"))?;
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

fn apply(
    store: &mut Store,
    verb: &str,
    detail: &str,
    changes: Vec<Change>,
) -> Result<i64, Failure> {
    let mut operation = Operation::new(verb, detail, now());
    store.apply(&mut operation, changes)?;
    Ok(operation.id().unwrap_or_default())
}

fn named(context: &Context, name: &str) -> Result<Collection, Failure> {
    let collections = context.reader()?.collections()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    Ok(found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?)
}

fn tell_index(context: &mut Context, of: &Collection) -> Result<Code, Failure> {
    let (name, summary) = (&of.name, &of.summary);
    let fields =
        summary.table().iter().map(|field| (field.name, summary.kinds(field).collect::<Vec<_>>()));
    let fields = fields.filter(|(_, kinds)| !kinds.is_empty());
    if context.format == Format::Json {
        let fields: BTreeMap<_, _> = fields.collect();
        context.out.json(&json!({ "name": name, "index": index_of(summary), "fields": fields }))?;
        return Ok(Code::Done);
    }
    let mut any = false;
    for (field, kinds) in fields {
        any = true;
        context.out.line(format!("{STRONG}{field:<20}{STRONG:#}  {}", kinds.join(", ")))?;
    }
    if !any {
        context.out.line("no field is indexed")?;
    }
    Ok(Code::Done)
}

fn set_index(context: &mut Context, of: Collection, summary: Summary) -> Result<Code, Failure> {
    let Collection { name, items, summary: before, .. } = of;
    let (shown, index) = (plain(&name), index_of(&summary));
    if *before == summary {
        let object = json!({ "name": name, "index": index, "operation": null });
        return done(context, &object, &format!("{shown} is indexed so already"));
    }
    let of_calendar = summary.family() == Family::Calendar;
    let mut store = context.store()?;
    let change = Change::SetSummary(name.clone(), summary);
    let id = apply(&mut store, "index", &name, vec![change])?;
    if items > 0 {
        let what = if of_calendar { "items" } else { "cards" };
        context.note(format!(
            "its {what} are indexed anew; until that is done, questions take longer"
        ));
    }
    store.refresh()?;
    let line =
        format!("{shown} is indexed as asked; larder undo {id} brings the former index back");
    done(context, &json!({ "name": name, "index": index, "operation": id }), &line)
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
