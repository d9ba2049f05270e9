//! `larder collections`.

use crate::args::OutputFormat;
use crate::commit_store::{count_commits, open_commit_reader};
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::display_name;
use crate::machine_time::now_milliseconds;
use crate::mail_store::{count_messages, open_labelled_mail};
use crate::output::{STRONG_STYLE, UNKNOWN_COUNT, format_count, print_message, sanitize_line};
use crate::table::shorten_to_width;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_format::kind::SourceLocation;
use larder_query::SavedSearches;
use larder_store::{
    BatchChange, Collection, CollectionType, Error, IndexConfig, ItemMeta, Kind, Operation,
    OperationId, Reader, Store,
};
use larder_sync::rename_calendar;
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
    /// List collections with type and number of items (the default)
    List,
    /// Create an empty collection
    Create {
        /// The name
        name: String,
        /// The type of the collection
        #[arg(long = "type", value_name = "TYPE", default_value = "address-book",
              value_parser = collection_type_parser())]
        collection_type: CollectionType,
        /// The fields to index, as for `collections index` (repeatable) [default: default]
        #[arg(long, value_name = "FIELD:INDEX,..")]
        index: Vec<String>,
    },
    /// Show or choose which fields are indexed
    ///
    /// An index makes queries on its field fast and the store larger. A query on a field without an
    /// index reads every item. INDEX is `exact` or `prefix` (two names of one index: whole values
    /// and their beginnings), `suffix`, `phone` (compared as numbers), `substring` (bare words need
    /// it for every field that they search) or `sort`. Larder indexes the existing items again;
    /// queries are slower until this is complete.
    Index {
        /// The collection
        name: String,
        /// A field and its index, or `default`, or `none`; replaces the current choice (repeatable)
        #[arg(long, value_name = "FIELD:INDEX,..")]
        index: Vec<String>,
    },
    /// Rename a collection
    ///
    /// Messages and commits of a source are found by the new name at once. Saved searches that have
    /// the former name, as in:NAME, are named.
    Rename {
        /// The current name
        from: String,
        /// The new name
        to: String,
    },
    /// Remove a collection and its items (`larder undo` restores them)
    ///
    /// A source is removed by `larder sources remove`.
    Remove {
        /// The collection
        name: String,
    },
}

/// Items that a message about conflicts names.
const MAX_NAMED_KEPT_ITEMS: usize = 5;

impl CollectionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.verb.unwrap_or(CollectionsCommand::List) {
            CollectionsCommand::List => print_collections(context),
            CollectionsCommand::Create { name, collection_type, index } => {
                let index_config = parse_index(&index, collection_type)?
                    .unwrap_or_else(|| (*IndexConfig::shared_default(collection_type)).clone());
                let create =
                    BatchChange::CreateCollection(name.clone(), collection_type.main_kind());
                let changes = vec![create, BatchChange::SetIndexConfig(name.clone(), index_config)];
                let id =
                    apply_changes(&mut context.open_or_create_store()?, "create", &name, changes)?;
                let id = id.map(OperationId::to_number);
                let line = format!("{} created", sanitize_line(&name));
                print_done(context, &json!({ "name": name, "operation": id }), &line)
            }
            CollectionsCommand::Rename { from, to } => rename_collection(context, &from, &to),
            CollectionsCommand::Index { name, index } => {
                let collection = find_collection(context, &name)?;
                match parse_index(&index, collection.collection_type)? {
                    None => print_index(context, &collection),
                    Some(index_config) => set_index(context, collection, index_config),
                }
            }
            CollectionsCommand::Remove { name } => remove_collection(context, &name),
        }
    }
}

/// Parses `--index`; returns `None` without it.
fn parse_index(
    index: &[String],
    collection_type: CollectionType,
) -> Result<Option<IndexConfig>, CommandFailure> {
    if index.iter().any(|words| words.trim().is_empty()) {
        return Err(CommandFailure::new(FailureKind::Usage, "--index is empty")
            .with_hint("use --index none for no indexes, or --index default"));
    }
    if index.is_empty() {
        return Ok(None);
    }
    Ok(Some(IndexConfig::parse(&index.join(" "), collection_type)?))
}

/// Returns an index configuration as text.
fn index_config_text(index_config: &IndexConfig) -> String {
    if index_config.is_default() { "default".into() } else { index_config.to_string() }
}

/// Returns a parser for the type of a collection.
fn collection_type_parser() -> impl TypedValueParser<Value = CollectionType> {
    // A collection of mail is created with its source.
    let is_stored =
        |one: &CollectionType| one.main_kind().source_location() == SourceLocation::Store;
    PossibleValuesParser::new(
        CollectionType::all_listed().filter(is_stored).map(CollectionType::name),
    )
    .try_map(|name| CollectionType::from_name(&name).ok_or("no such type"))
}

fn print_collections(context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
    let reader = context.open_reader()?;
    let collections = reader.collections().list()?;
    let width =
        context.out.line_width().map(|width| width.saturating_sub(COUNT_COLUMN_WIDTH).max(8));
    // One that cannot be counted does not hide the others.
    let mut first_failure = None;
    for collection in &collections {
        let kind = collection.collection_type.main_kind();
        let count = match (kind.source_location(), kind) {
            (SourceLocation::Locator, Kind::Commit) => count_commits(context, &collection.name),
            (SourceLocation::Locator, _) => count_messages(context, &collection.name),
            _ => Ok(collection.item_count),
        };
        let count = count
            .map_err(|failure| {
                first_failure.get_or_insert(failure);
            })
            .ok();
        let (name, type_name) =
            (sanitize_line(&collection.name), collection.collection_type.name());
        let properties = reader.collections().properties(collection)?;
        let colour = larder_present::declared_colour_text(properties.as_slice());
        if context.format == OutputFormat::Json {
            let mut object = json!({
                "name": collection.name, "type": type_name,
                "items": count,
                "index": index_config_text(&collection.index_config),
            });
            if let Some(colour) = colour {
                object["color"] = json!(colour);
            }
            context.out.print_json(&object)?;
            continue;
        }
        let name = width.map_or_else(|| name.clone(), |width| shorten_to_width(&name, width));
        let collection_type = collection.collection_type;
        let mut items = match count {
            Some(count) => format_count(count, collection_type.item_noun()),
            None => UNKNOWN_COUNT.to_string(),
        };
        if !collection_type.has_one_kind() {
            items = format!("{items}  {type_name}");
        }
        let colour = colour.map(|colour| format!("  {}", sanitize_line(&colour)));
        let colour = colour.unwrap_or_default();
        let mark = if collection.index_config.is_default() { "" } else { "  custom indexes" };
        context.out.print_line(format!(
            "{STRONG_STYLE}{name:<20}{STRONG_STYLE:#}  {items}{colour}{mark}"
        ))?;
    }
    match first_failure {
        Some(failure) => Err(failure),
        None if collections.is_empty() => Ok(CommandStatus::NothingFound),
        None => Ok(CommandStatus::Done),
    }
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

/// Returns a sentence with the command that undoes an operation, or nothing if nothing was written.
fn undo_hint(id: Option<OperationId>) -> String {
    id.map_or_else(String::new, |id| format!(" Undo: larder undo {id}"))
}

fn find_collection(context: &CommandContext, name: &str) -> Result<Collection, CommandFailure> {
    let collections = context.open_reader()?.collections().list()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    Ok(found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?)
}

fn print_index(
    context: &mut CommandContext,
    collection: &Collection,
) -> Result<CommandStatus, CommandFailure> {
    let (name, index_config) = (&collection.name, &collection.index_config);
    let fields = index_config
        .field_table()
        .iter()
        .map(|field| (field.name, index_config.index_names(field).collect::<Vec<_>>()));
    let fields = fields.filter(|(_, indexes)| !indexes.is_empty());
    if context.format == OutputFormat::Json {
        let fields: BTreeMap<_, _> = fields.collect();
        context.out.print_json(
            &json!({ "name": name, "index": index_config_text(index_config), "fields": fields }),
        )?;
        return Ok(CommandStatus::Done);
    }
    let mut any = false;
    for (field, indexes) in fields {
        any = true;
        context.out.print_line(format!(
            "{STRONG_STYLE}{field:<20}{STRONG_STYLE:#}  {}",
            indexes.join(", ")
        ))?;
    }
    if !any {
        context.out.print_line("no field is indexed")?;
    }
    Ok(CommandStatus::Done)
}

fn set_index(
    context: &mut CommandContext,
    collection: Collection,
    index_config: IndexConfig,
) -> Result<CommandStatus, CommandFailure> {
    let Collection { name, item_count: items, index_config: before, .. } = collection;
    let (shown, index) = (sanitize_line(&name), index_config_text(&index_config));
    if *before == index_config {
        let object = json!({ "name": name, "index": index, "operation": null });
        return print_done(
            context,
            &object,
            &format!("the index configuration of {shown} is unchanged"),
        );
    }
    let noun = index_config.collection_type().item_noun();
    let mut store = context.open_store()?;
    let change = BatchChange::SetIndexConfig(name.clone(), index_config);
    let id = apply_changes(&mut store, "index", &name, vec![change])?;
    if items > 0 {
        context.print_note(format!(
            "indexing the {noun}s of {shown} again; queries are slower until this is complete"
        ));
    }
    CommandFailure::after_commit(store.refresh().map_err(CommandFailure::from))?;
    let line = format!("Changed the index configuration of {shown}.{}", undo_hint(id));
    let id = id.map(OperationId::to_number);
    print_done(context, &json!({ "name": name, "index": index, "operation": id }), &line)
}

fn rename_collection(
    context: &mut CommandContext,
    from: &str,
    to: &str,
) -> Result<CommandStatus, CommandFailure> {
    let mut changes = vec![BatchChange::RenameCollection(from.to_string(), to.to_string())];
    let reader = context.open_reader()?;
    if let Some(calendar) = reader.collections().find(from)?
        && calendar.collection_type.has_schedules()
        // Damaged properties do not keep the collection from being renamed.
        && let Ok(Some(properties)) = reader.collections().properties(&calendar)
        && let Some(renamed) = rename_calendar(&properties, from, to)
    {
        changes.push(BatchChange::SetCollectionProperties(to.to_string(), Some(renamed)));
    }
    drop(reader);
    let detail = format!("{from} to {to}");
    let id = apply_changes(&mut context.open_store()?, "rename", &detail, changes)?;
    let searches = SavedSearches::read(&context.open_reader()?)?;
    context.warn_of_search_users(from, searches.users_of_collection(from));
    // The indexes of mail and commits have the name, too.
    CommandFailure::after_commit(open_labelled_mail(context).and(open_commit_reader(context)))?;
    let undo = undo_hint(id);
    let line = format!("{} is now {}.{undo}", sanitize_line(from), sanitize_line(to));
    let id = id.map(OperationId::to_number);
    print_done(context, &json!({ "name": to, "previous_name": from, "operation": id }), &line)
}

fn remove_collection(
    context: &mut CommandContext,
    name: &str,
) -> Result<CommandStatus, CommandFailure> {
    let collection = find_collection(context, name)?;
    if collection.collection_type.main_kind().source_location() == SourceLocation::Locator {
        let noun = collection.collection_type.item_noun();
        let message = format!("{} is a source of {noun}s", sanitize_line(name));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint(format!("larder sources remove {}", sanitize_line(name))));
    }
    let listed = larder_edit::list_collection(&context.open_reader()?, name)?;
    let mut store = context.open_store()?;
    let mut operation = Operation::new("remove", format!("collection {name}"), now_milliseconds());
    let removed = larder_edit::remove_collection(&mut store, &mut operation, &listed)?;
    let undo = undo_hint(removed.operation);
    let (items, shown) = (format_count(removed.items, "item"), sanitize_line(name));
    match context.format {
        OutputFormat::Json => context.out.print_json(&json!({
            "name": name, "removed": removed.collection_removed, "items": removed.items,
            "conflicts": removed.remaining.len(), "operation": removed.operation.map(OperationId::to_number),
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
    Ok(CommandStatus::Rejected)
}

/// Names the items that keep a collection.
fn print_kept_items(reader: &Reader, name: &str, kept: &[ItemMeta]) -> Result<(), CommandFailure> {
    let items = format_count(kept.len() as u64, "item");
    let conflict = format!("conflict: another program changed or added {items}");
    print_message("error", format!("{name} was not removed: {conflict}"));
    for head in kept.iter().take(MAX_NAMED_KEPT_ITEMS) {
        print_message("note", format!("kept {}  {}", head.handle, display_name(reader, head)?));
    }
    if kept.len() > MAX_NAMED_KEPT_ITEMS {
        print_message("note", format!("kept {} more", kept.len() - MAX_NAMED_KEPT_ITEMS));
    }
    print_message("hint", "run the command again to remove the rest");
    Ok(())
}
