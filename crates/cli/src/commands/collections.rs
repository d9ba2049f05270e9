//! `larder collections`.

use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus};
use crate::item_ids::display_name;
use crate::output::{STRONG_STYLE, format_count, print_message, sanitize_line};
use crate::table::shorten_to_width;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_store::{
    BatchChange, Collection, CollectionType, Error, IndexConfig, ItemMeta, Operation, OperationId,
    Reader, Store,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// List, create, rename, index or remove collections
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionsArgs {
    #[command(subcommand)]
    verb: Option<CollectionsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum CollectionsCommand {
    /// List collections with kind and number of items (the default)
    List,
    /// Create an empty collection
    Create {
        /// The name
        name: String,
        /// The kind of items that it holds
        #[arg(long, value_name = "KIND", default_value = "contact", value_parser = collection_type_parser())]
        kind: CollectionType,
        /// The fields to index, as for `collections index` (repeatable) [default: default]
        #[arg(long, value_name = "FIELD:KIND,..")]
        index: Vec<String>,
    },
    /// Show or choose which fields are indexed
    ///
    /// An index makes queries fast and the store larger; a query on a field without one reads every
    /// item. KIND is `exact` or `prefix` (whole values and their beginnings: one index), `suffix`,
    /// `phone` (compared as numbers), `substring` (free words need it for every field they search)
    /// or `sort`. Existing items are indexed again; until then queries are answered more slowly.
    Index {
        /// The collection
        name: String,
        /// A field and its index, or `default`, or `none`; replaces the present choice (repeatable)
        #[arg(long, value_name = "FIELD:KIND,..")]
        index: Vec<String>,
    },
    /// Rename a collection
    Rename {
        /// The present name
        from: String,
        /// The new name
        to: String,
    },
    /// Remove a collection and its items (`larder undo` restores them)
    Remove {
        /// The collection
        name: String,
    },
}

/// Items that a message about conflicts names.
const MAX_NAMED_ITEMS: usize = 5;

impl CollectionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.verb.unwrap_or(CollectionsCommand::List) {
            CollectionsCommand::List => print_collections(context),
            CollectionsCommand::Create { name, kind, index } => {
                let summary = parse_index(&index, kind)?
                    .unwrap_or_else(|| (*IndexConfig::shared_default(kind)).clone());
                let create = BatchChange::CreateCollection(name.clone(), kind.main_kind());
                let changes = vec![create, BatchChange::SetIndexConfig(name.clone(), summary)];
                let id =
                    apply_changes(&mut context.open_or_create_store()?, "create", &name, changes)?;
                let id = id.map(OperationId::to_number);
                let line = format!("{} created", sanitize_line(&name));
                print_done(context, &json!({ "name": name, "operation": id }), &line)
            }
            CollectionsCommand::Rename { from, to } => {
                let change = BatchChange::RenameCollection(from.clone(), to.clone());
                let detail = format!("{from} to {to}");
                let id =
                    apply_changes(&mut context.open_store()?, "rename", &detail, vec![change])?;
                let id = id.map(OperationId::to_number);
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

/// Parses `--index`; returns `None` without it.
fn parse_index(
    index: &[String],
    of: CollectionType,
) -> Result<Option<IndexConfig>, CommandFailure> {
    if index.iter().any(|words| words.trim().is_empty()) {
        return Err(CommandFailure::new(crate::failure::FailureKind::Usage, "--index is empty")
            .with_hint("use --index none for no indexes, or --index default"));
    }
    if index.is_empty() { Ok(None) } else { Ok(Some(IndexConfig::parse(&index.join(" "), of)?)) }
}

/// Returns an index configuration as text.
fn index_config_text(summary: &IndexConfig) -> String {
    if summary.is_default() { "default".into() } else { summary.to_string() }
}

/// Returns a parser for the type of a collection.
fn collection_type_parser() -> impl TypedValueParser<Value = CollectionType> {
    PossibleValuesParser::new(CollectionType::all().map(CollectionType::name))
        .try_map(|name| CollectionType::from_name(&name).ok_or("no such type"))
}

fn print_collections(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let collections = context.open_reader()?.collections()?;
    let width =
        context.out.line_width().map(|width| width.saturating_sub(COUNT_COLUMN_WIDTH).max(8));
    for collection in &collections {
        let (name, kind) = (sanitize_line(&collection.name), collection.collection_type.name());
        if context.format == OutputFormat::Json {
            context.out.print_json(&json!({
                "name": collection.name, "kind": kind, "items": collection.item_count,
                "index": index_config_text(&collection.index_config),
            }))?;
            continue;
        }
        let name = width.map_or_else(|| name.clone(), |width| shorten_to_width(&name, width));
        let collection_type = collection.collection_type;
        let mut items = format_count(collection.item_count, collection_type.item_noun());
        if !collection_type.has_one_kind() {
            items = format!("{items}  {kind}");
        }
        let mark = if collection.index_config.is_default() { "" } else { "  own index" };
        context
            .out
            .print_line(format!("{STRONG_STYLE}{name:<20}{STRONG_STYLE:#}  {items}{mark}"))?;
    }
    Ok(if collections.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
}

/// Columns of the number of items, with the spaces before it.
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
) -> Result<Option<OperationId>, CommandFailure> {
    let mut operation = Operation::new(verb, detail, now_milliseconds());
    store.apply(&mut operation, changes)?;
    Ok(operation.id())
}

/// Returns the sentence that tells how to undo an operation; empty: nothing was written.
fn undo_hint(id: Option<OperationId>) -> String {
    id.map_or_else(String::new, |id| format!(" Undo: larder undo {id}"))
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
        return print_done(context, &object, &format!("{shown} has this index already"));
    }
    let noun = summary.collection_type().item_noun();
    let mut store = context.open_store()?;
    let change = BatchChange::SetIndexConfig(name.clone(), summary);
    let id = apply_changes(&mut store, "index", &name, vec![change])?;
    if items > 0 {
        context.print_note(format!("indexing its {noun}s again; until then queries take longer"));
    }
    store.refresh()?;
    let line = format!("Changed the index of {shown}.{}", undo_hint(id));
    let id = id.map(OperationId::to_number);
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
    let undo = undo_hint(removed.operation);
    let (items, shown) = (format_count(removed.items, "item"), sanitize_line(name));
    match context.format {
        OutputFormat::Json => context.out.print_json(&json!({
            "name": name, "removed": removed.collection_removed, "items": removed.items,
            "kept": removed.remaining.len(), "operation": removed.operation.map(OperationId::to_number),
        }))?,
        _ if removed.collection_removed => context
            .out
            .print_line(format!("Removed {shown} and {items}.{undo}"))?,
        _ if removed.items > 0 => {
            context.out.print_line(format!("Removed {items}.{undo}"))?;
        }
        _ => {}
    }
    if removed.collection_removed {
        return Ok(CommandStatus::Done);
    }
    print_kept_items(&store.open_reader()?, &shown, &removed.remaining)?;
    Ok(CommandStatus::LeftOut)
}

/// Names the items that keep a collection.
fn print_kept_items(reader: &Reader, name: &str, kept: &[ItemMeta]) -> Result<(), CommandFailure> {
    let items = format_count(kept.len() as u64, "item");
    let what = "changed or added by another program in the meantime";
    print_message("left out", format!("{name} was not removed: {items} {what}"));
    for head in kept.iter().take(MAX_NAMED_ITEMS) {
        print_message("kept", format!("{}  {}", head.handle, display_name(reader, head)?));
    }
    if kept.len() > MAX_NAMED_ITEMS {
        print_message("kept", format!("... and {} more", kept.len() - MAX_NAMED_ITEMS));
    }
    print_message("hint", "run the command again to remove the rest");
    Ok(())
}
