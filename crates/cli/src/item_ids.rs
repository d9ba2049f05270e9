//! Item IDs on the command line (`HANDLE`, `uid:TEXT` or `COLLECTION/UID`), and the names of items
//! in messages.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::sanitize_line;
use larder_format::component::{CalendarVersion, Component};
use larder_format::parsed_source::ParsedSource;
use larder_query::{Query, SearchRequest};
use larder_store::{DataDirectory, HandlePrefix, ItemMeta, Kind, Reader};

/// Items that a message about an ambiguous ID lists.
const MAX_LISTED_ITEMS: usize = 20;

/// Returns the item with this ID.
pub(crate) fn resolve_item(reader: &Reader, text: &str) -> Result<ItemMeta, CommandFailure> {
    let mut found = find_candidates(reader, text)?;
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(not_found_failure(reader, text)?),
        _ => Err(ambiguity_failure(reader, text, &found)?),
    }
}

/// Describes the items of the store whose handles begin with an ID, for a message about an
/// ambiguous one: they are other items than messages or commits with that ID.
pub(crate) fn describe_items_with_id(
    context: &CommandContext,
    id: &str,
) -> Result<Vec<String>, CommandFailure> {
    let prefix = HandlePrefix::parse(id).filter(|_| DataDirectory::new(&context.dir).has_store());
    let Some(prefix) = prefix else { return Ok(Vec::new()) };
    let reader = context.open_reader()?;
    let found = reader.items().find_listed_by_handle(prefix, MAX_LISTED_ITEMS + 1)?;
    let listed = found.iter().take(MAX_LISTED_ITEMS);
    let mut lines =
        listed.map(|meta| describe_item(&reader, meta)).collect::<Result<Vec<_>, _>>()?;
    if found.len() > MAX_LISTED_ITEMS {
        lines.push("... and more".to_string());
    }
    Ok(lines)
}

/// Returns an item's ID, name and collection as a line.
fn describe_item(reader: &Reader, meta: &ItemMeta) -> Result<String, CommandFailure> {
    let (name, collection) = (display_name(reader, meta)?, sanitize_line(&meta.collection));
    Ok(format!("{}  {name}  (in {collection})", meta.handle))
}

/// Lists the items that an ID matches.
fn ambiguity_failure(
    reader: &Reader,
    text: &str,
    found: &[ItemMeta],
) -> Result<CommandFailure, CommandFailure> {
    let mut failure =
        CommandFailure::new(FailureKind::Usage, format!("the ID {text:?} matches several items"));
    for meta in found.iter().take(MAX_LISTED_ITEMS) {
        failure = failure.with_hint(describe_item(reader, meta)?);
    }
    if found.len() > MAX_LISTED_ITEMS {
        failure = failure.with_hint("... and more");
    }
    Ok(match text.strip_prefix("uid:") {
        Some(_) => failure.with_hint(format!(
            "use one of the listed IDs (for example {}), or COLLECTION/UID",
            found[0].handle
        )),
        None => failure.with_hint("type more letters of the ID"),
    })
}

fn find_candidates(reader: &Reader, text: &str) -> Result<Vec<ItemMeta>, CommandFailure> {
    if let Some(uid) = text.strip_prefix("uid:") {
        return find_by_uid(reader, uid);
    }
    if let Some((collection, uid)) = text.split_once('/') {
        return Ok(reader.items().find_by_uid(Some(collection), uid)?);
    }
    match HandlePrefix::parse(text) {
        Some(prefix) => Ok(reader.items().find_listed_by_handle(prefix, MAX_LISTED_ITEMS + 1)?),
        None => Ok(Vec::new()),
    }
}

/// Returns the items stored under this UID, and those whose source names it although another item
/// had it first.
fn find_by_uid(reader: &Reader, uid: &str) -> Result<Vec<ItemMeta>, CommandFailure> {
    let mut found = reader.items().find_by_uid(None, uid)?;
    let quoted = uid.replace('\\', "\\\\").replace('"', "\\\"");
    let query = Query::parse_sexp(&format!("(is \"uid\" \"{quoted}\")"))?;
    let request = SearchRequest { query, ..SearchRequest::default() };
    larder_query::find(reader, &request)?.for_each(reader, &mut |meta, _| {
        if !found.contains(meta) {
            found.push(meta.clone());
        }
        true
    })?;
    // The master stands for its series; overrides have IDs of their own.
    let masters: Vec<_> =
        found.iter().filter(|meta| meta.recurrence_id.is_empty()).cloned().collect();
    let has_master = |meta: &ItemMeta| {
        let is_master =
            |master: &ItemMeta| (&master.collection, &master.uid) == (&meta.collection, &meta.uid);
        masters.iter().any(is_master)
    };
    found.retain(|meta| meta.recurrence_id.is_empty() || !has_master(meta));
    Ok(found)
}

fn not_found_failure(reader: &Reader, text: &str) -> Result<CommandFailure, CommandFailure> {
    let failure =
        CommandFailure::new(FailureKind::NotFound, format!("no item has the ID {text:?}"));
    if let Some(prefix) = HandlePrefix::parse(text)
        && let Some(handle) = reader.changes().find_removed_handles(prefix, 1)?.first()
    {
        // The operation may have been dropped from the log.
        let by =
            reader.changes().list_versions(*handle)?.pop().and_then(|version| version.ended_by);
        let back =
            by.map(|by| format!("; to restore it: larder undo {}", by.id)).unwrap_or_default();
        return Ok(failure.with_hint(format!(
            "the item with this ID was removed; `larder log {handle}` shows its versions{back}"
        )));
    }
    Ok(failure.with_hint("`larder find` shows IDs; uid:TEXT and COLLECTION/UID work too"))
}

/// Returns the name of an item for messages. A damaged item has none, so that it can be removed.
pub(crate) fn display_name(reader: &Reader, meta: &ItemMeta) -> Result<String, CommandFailure> {
    match reader.items().source_bytes(meta.row) {
        Ok(bytes) => Ok(name_from_bytes(&bytes.unwrap_or_default())),
        Err(larder_store::Error::DamagedObject { .. }) => Ok("(damaged item)".to_string()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name of a contact, or the title of another item, for messages.
pub(crate) fn name_from_bytes(bytes: &[u8]) -> String {
    let kind = Kind::from_component_name(Component::parse(bytes).kind().name());
    let source = ParsedSource::parse(kind, CalendarVersion::default(), bytes);
    let title = kind.collection_type().title_field().and_then(|field| source.first_value(field));
    display_title(kind, &title.unwrap_or_default())
}

/// Returns the title of an item as it is printed.
pub(crate) fn display_title(kind: Kind, title: &str) -> String {
    match title.trim().is_empty() {
        true => kind.collection_type().missing_title().into(),
        false => sanitize_line(title),
    }
}

/// Returns the items with these IDs, each once.
pub(crate) fn resolve_items(
    context: &CommandContext,
    texts: &[String],
) -> Result<Vec<ItemMeta>, CommandFailure> {
    let reader = context.open_reader()?;
    let mut metas = Vec::new();
    for text in texts {
        let meta = resolve_item(&reader, text)?;
        if !metas.contains(&meta) {
            metas.push(meta);
        }
    }
    Ok(metas)
}
