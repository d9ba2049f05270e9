use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus};
use crate::item_ids::display_name;
use crate::output::{STRONG_STYLE, format_count, print_message, sanitize_line};
use crate::table::shorten_to_width;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_store::{
    BatchChange, Collection, CollectionType, Error, IndexConfig, ItemMeta, Kind as ItemKind,
    Operation, Reader, Store,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// List collections, or create, rename, index and remove them
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionsArgs {
    #[command(subcommand)]
    verb: Option<CollectionsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum CollectionsCommand {
    /// List them: name, kind, number of items, whether an index was chosen (this is also done
    /// without a verb)
    List,
    /// Make an empty collection
    Create {
        /// Its name
        name: String,
        /// What it holds
        #[arg(long, value_name = "KIND", default_value = "contact", value_parser = family_parser())]
        kind: CollectionType,
        /// Which field is indexed and how, as for `collections index`; several add up [default:
        /// default]
        #[arg(long, value_name = "FIELD:KIND,..")]
        index: Vec<String>,
    },
    /// Choose which fields are indexed, and how; without --index, tell
    ///
    /// An index makes questions fast and items larger; what has none is found all the same, by
    /// reading every card. KIND is `exact` and `prefix` (whole values and how they begin: one
    /// index), `suffix` (how they end), `phone` (numbers, compared as numbers), `substring` (any
    /// part; free words need it for all fields they look into), `sort` (the alphabet). Items that
    /// are there are read and indexed again; meanwhile questions are answered, more slowly.
    Index {
        /// The collection's name
        name: String,
        /// A field and how it is indexed, or `default`, or `none`; several add up, and replace what
        /// was chosen before
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
const MAX_NAMED_ITEMS: usize = 5;

impl CollectionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.verb.unwrap_or(CollectionsCommand::List) {
            CollectionsCommand::List => print_collections(context),
            CollectionsCommand::Create { name, kind, index } => {
                let summary = parse_index(&index, kind)?
                    .unwrap_or_else(|| (*IndexConfig::shared_default(kind)).clone());
                let kind = match kind {
                    CollectionType::Calendar => ItemKind::Event,
                    _ => ItemKind::Contact,
                };
                let create = BatchChange::CreateCollection(name.clone(), kind);
                let changes = vec![create, BatchChange::SetIndexConfig(name.clone(), summary)];
                let id =
                    apply_changes(&mut context.open_or_create_store()?, "create", &name, changes)?;
                let line = format!("{} created", sanitize_line(&name));
                print_done(context, &json!({ "name": name, "operation": id }), &line)
            }
            CollectionsCommand::Rename { from, to } => {
                let change = BatchChange::RenameCollection(from.clone(), to.clone());
                let detail = format!("{from} to {to}");
                let id =
                    apply_changes(&mut context.open_store()?, "rename", &detail, vec![change])?;
                let line = format!("{} is now {}", sanitize_line(&from), sanitize_line(&to));
                print_done(context, &json!({ "name": to, "was": from, "operation": id }), &line)
            }
            CollectionsCommand::Index { name, index } => {
                let of = find_collection(context, &name)?;
                match parse_index(&index, of.collection_type)? {
                    None => print_index(context, &of),
                    Some(summary) => set_index(context, of, summary),
                }
            }
            CollectionsCommand::Remove { name } => remove_collection(context, &name),
        }
    }
}

/// The summary that was asked for, if any was.
fn parse_index(
    index: &[String],
    of: CollectionType,
) -> Result<Option<IndexConfig>, CommandFailure> {
    if index.iter().any(|words| words.trim().is_empty()) {
        return Err(CommandFailure::new(crate::failure::FailureKind::Usage, "--index says nothing")
            .with_hint("--index none leaves out all indexes; --index default is what there is without a choice"));
    }
    if index.is_empty() { Ok(None) } else { Ok(Some(IndexConfig::parse(&index.join(" "), of)?)) }
}

/// A summary as JSON has it.
fn index_config_text(summary: &IndexConfig) -> String {
    if summary.is_default() { "default".into() } else { summary.to_string() }
}

/// What a collection holds, as it is typed and printed.
fn family_name(family: CollectionType) -> &'static str {
    if family == CollectionType::Calendar { "calendar" } else { "contact" }
}

/// Reads what a collection is to hold.
fn family_parser() -> impl TypedValueParser<Value = CollectionType> {
    let families = [CollectionType::AddressBook, CollectionType::Calendar];
    PossibleValuesParser::new(families.map(family_name)).map(move |name| {
        families
            .into_iter()
            .find(|of| family_name(*of) == name)
            .unwrap_or(CollectionType::AddressBook)
    })
}

fn print_collections(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let collections = context.open_reader()?.collections()?;
    let width =
        context.out.line_width().map(|width| width.saturating_sub(COUNT_COLUMN_WIDTH).max(8));
    for collection in &collections {
        let (name, kind) =
            (sanitize_line(&collection.name), family_name(collection.collection_type));
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({
                "name": collection.name, "kind": kind, "items": collection.item_count,
                "index": index_config_text(&collection.index_config),
            }))?;
            continue;
        }
        let name = width.map_or_else(|| name.clone(), |width| shorten_to_width(&name, width));
        let items = match collection.collection_type {
            CollectionType::Calendar => {
                format!("{}  calendar", format_count(collection.item_count, "item"))
            }
            _ => format_count(collection.item_count, "contact"),
        };
        let mark = if collection.index_config.is_default() { "" } else { "  own index" };
        context
            .out
            .print_line(format!("{STRONG_STYLE}{name:<20}{STRONG_STYLE:#}  {items}{mark}"))?;
    }
    Ok(if collections.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
}

/// Columns that a number of items takes, with the blanks before it.
const COUNT_COLUMN_WIDTH: usize = 18;

fn print_done(
    context: &mut CommandContext,
    object: &Value,
    line: &str,
) -> Result<CommandStatus, CommandFailure> {
    match context.format {
        OutputFormat::Json => context.out.print_json(object)?,
        _ => context.out.print_line(line)?,
    }
    Ok(CommandStatus::Done)
}

fn apply_changes(
    store: &mut Store,
    verb: &str,
    detail: &str,
    changes: Vec<BatchChange>,
) -> Result<i64, CommandFailure> {
    let mut operation = Operation::new(verb, detail, now_milliseconds());
    store.apply(&mut operation, changes)?;
    Ok(operation.id().unwrap_or_default())
}

fn find_collection(context: &CommandContext, name: &str) -> Result<Collection, CommandFailure> {
    let collections = context.open_reader()?.collections()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    Ok(found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?)
}

fn print_index(
    context: &mut CommandContext,
    of: &Collection,
) -> Result<CommandStatus, CommandFailure> {
    let (name, summary) = (&of.name, &of.index_config);
    let fields = summary
        .field_table()
        .iter()
        .map(|field| (field.name, summary.index_names(field).collect::<Vec<_>>()));
    let fields = fields.filter(|(_, kinds)| !kinds.is_empty());
    if context.format == OutputFormat::Json {
        let fields: BTreeMap<_, _> = fields.collect();
        context.out.print_json(
            &json!({ "name": name, "index": index_config_text(summary), "fields": fields }),
        )?;
        return Ok(CommandStatus::Done);
    }
    let mut any = false;
    for (field, kinds) in fields {
        any = true;
        context.out.print_line(format!(
            "{STRONG_STYLE}{field:<20}{STRONG_STYLE:#}  {}",
            kinds.join(", ")
        ))?;
    }
    if !any {
        context.out.print_line("no field is indexed")?;
    }
    Ok(CommandStatus::Done)
}

fn set_index(
    context: &mut CommandContext,
    of: Collection,
    summary: IndexConfig,
) -> Result<CommandStatus, CommandFailure> {
    let Collection { name, item_count: items, index_config: before, .. } = of;
    let (shown, index) = (sanitize_line(&name), index_config_text(&summary));
    if *before == summary {
        let object = json!({ "name": name, "index": index, "operation": null });
        return print_done(context, &object, &format!("{shown} is indexed so already"));
    }
    let of_calendar = summary.collection_type() == CollectionType::Calendar;
    let mut store = context.open_store()?;
    let change = BatchChange::SetIndexConfig(name.clone(), summary);
    let id = apply_changes(&mut store, "index", &name, vec![change])?;
    if items > 0 {
        let what = if of_calendar { "items" } else { "cards" };
        context.print_note(format!(
            "its {what} are indexed anew; until that is done, questions take longer"
        ));
    }
    store.refresh()?;
    let line =
        format!("{shown} is indexed as asked; larder undo {id} brings the former index back");
    print_done(context, &json!({ "name": name, "index": index, "operation": id }), &line)
}

fn remove_collection(
    context: &mut CommandContext,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let listed = larder_edit::list_collection(&context.open_reader()?, name)?;
    let mut store = context.open_store()?;
    let mut operation = Operation::new("remove", format!("collection {name}"), now_milliseconds());
    let removed = larder_edit::remove_collection(&mut store, &mut operation, &listed)?;
    let id = removed.operation.unwrap_or_default();
    let (items, shown) = (format_count(removed.items, "item"), sanitize_line(name));
    match context.format {
        OutputFormat::Json => context.out.print_json(&json!({
            "name": name, "removed": removed.collection_removed, "items": removed.items,
            "kept": removed.remaining.len(), "operation": removed.operation,
        }))?,
        _ if removed.collection_removed => context.out.print_line(format!(
            "{shown} and {items} removed; larder undo {id} brings them back"
        ))?,
        _ if removed.items > 0 => {
            context
                .out
                .print_line(format!("{items} removed; larder undo {id} brings them back"))?;
        }
        _ => {}
    }
    if removed.collection_removed {
        return Ok(CommandStatus::Done);
    }
    print_kept_items(&store.open_reader()?, &shown, &removed.remaining)?;
    Ok(CommandStatus::LeftOut)
}

/// Names what keeps a collection.
fn print_kept_items(reader: &Reader, name: &str, kept: &[ItemMeta]) -> Result<(), CommandFailure> {
    let items = format_count(kept.len() as u64, "item");
    let what = "changed or added by somebody else in the meantime";
    print_message("left out", format!("{name} stays, with {items} {what}"));
    for head in kept.iter().take(MAX_NAMED_ITEMS) {
        print_message("kept", format!("{}  {}", head.handle, display_name(reader, head)?));
    }
    if kept.len() > MAX_NAMED_ITEMS {
        print_message("kept", format!("... and {} more", kept.len() - MAX_NAMED_ITEMS));
    }
    print_message("hint", "run the same command again to remove what is there now");
    Ok(())
}
