//! What a person types to name an item: `HANDLE`, `uid:TEXT` or `COLLECTION/UID`.

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::output::plain;
use larder_format::component::{self, Component};
use larder_format::contact::Contact;
use larder_format::field::{calendar_field, field};
use larder_query::{Find, Query};
use larder_store::{HandlePrefix, ItemHead, Reader};

/// How many items a message about an ambiguous name lists.
const LISTED: usize = 20;

/// The one item that the text names.
pub(crate) fn resolve(reader: &Reader, text: &str) -> Result<ItemHead, Failure> {
    let mut found = named(reader, text)?;
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(not_found(reader, text)?),
        _ => Err(ambiguous(reader, text, &found)?),
    }
}

/// Lists what a text may mean, and how to name one of them.
fn ambiguous(reader: &Reader, text: &str, found: &[ItemHead]) -> Result<Failure, Failure> {
    let mut failure = Failure::new(Kind::Usage, format!("{text:?} may mean several items"));
    for head in found.iter().take(LISTED) {
        let (name, handle, collection) =
            (shown_name(reader, head)?, head.handle, plain(&head.collection));
        failure = failure.hint(format!("{handle}  {name}  (in {collection})"));
    }
    if found.len() > LISTED {
        failure = failure.hint("... and more");
    }
    Ok(match text.strip_prefix("uid:") {
        Some(_) => failure.hint(format!(
            "name one by its letters ({}), or the first of a collection as COLLECTION/UID",
            found[0].handle
        )),
        None => failure.hint("type more of its letters"),
    })
}

fn named(reader: &Reader, text: &str) -> Result<Vec<ItemHead>, Failure> {
    if let Some(uid) = text.strip_prefix("uid:") {
        return with_uid(reader, uid);
    }
    if let Some((collection, uid)) = text.split_once('/') {
        return Ok(reader.by_uid(Some(collection), uid)?);
    }
    match HandlePrefix::parse(text) {
        Some(prefix) => Ok(reader.by_handle(prefix, LISTED + 1)?),
        None => Ok(Vec::new()),
    }
}

/// The items that are kept under this UID, and those that were kept beside another one of it.
fn with_uid(reader: &Reader, uid: &str) -> Result<Vec<ItemHead>, Failure> {
    let mut found = reader.by_uid(None, uid)?;
    let quoted = uid.replace('\\', "\\\\").replace('"', "\\\"");
    let query = Query::parse_sexp(&format!("(is \"uid\" \"{quoted}\")"))?;
    let find = Find { query, ..Find::default() };
    larder_query::find(reader, &find)?.each(reader, &mut |head, _| {
        if !found.contains(head) {
            found.push(head.clone());
        }
        true
    })?;
    // A series is known by its master; the occurrences that were changed have names of their own.
    let masters: Vec<_> = found.iter().filter(|head| head.recurrence.is_empty()).cloned().collect();
    let has_master = |head: &ItemHead| {
        let of =
            |master: &ItemHead| (&master.collection, &master.uid) == (&head.collection, &head.uid);
        masters.iter().any(of)
    };
    found.retain(|head| head.recurrence.is_empty() || !has_master(head));
    Ok(found)
}

fn not_found(reader: &Reader, text: &str) -> Result<Failure, Failure> {
    let failure = Failure::new(Kind::NotFound, format!("no item is named {text:?}"));
    if let Some(prefix) = HandlePrefix::parse(text)
        && let Some(handle) = reader.removed_by_handle(prefix, 1)?.first()
    {
        // Which operation it was is no longer known where the log has forgotten it.
        let by = reader.versions(*handle)?.pop().and_then(|version| version.ended_by);
        let back =
            by.map(|by| format!(", larder undo {} brings it back", by.id)).unwrap_or_default();
        return Ok(failure.hint(format!(
            "an item of that name was removed: larder log {handle} shows it{back}"
        )));
    }
    Ok(failure.hint(
        "an item is named by the letters that larder find prints in front of it, by uid:TEXT, or by \
         COLLECTION/UID",
    ))
}

/// The name of an item, for messages.
pub(crate) fn shown_name(reader: &Reader, head: &ItemHead) -> Result<String, Failure> {
    let bytes = reader.source(head.row)?.unwrap_or_default();
    Ok(name_in(&bytes))
}

/// The name that a card gives, or the title that a component has, for messages.
pub(crate) fn name_in(bytes: &[u8]) -> String {
    let component = Component::parse(bytes);
    if matches!(component.kind(), component::Kind::Other(name) if name == "VCARD") {
        let card = Contact::parse(bytes);
        return shown(&field("full_name").and_then(|field| card.first(field)).unwrap_or_default());
    }
    title(&calendar_field("summary").and_then(|field| component.first(field)).unwrap_or_default())
}

/// What something is about, as it is shown.
pub(crate) fn title(summary: &str) -> String {
    if summary.trim().is_empty() { "(no title)".into() } else { plain(summary) }
}

/// A name as it is shown.
pub(crate) fn shown(name: &str) -> String {
    if name.trim().is_empty() { "(no name)".into() } else { plain(name) }
}

/// All of these items, by the store of the command.
pub(crate) fn resolve_all(context: &Context, texts: &[String]) -> Result<Vec<ItemHead>, Failure> {
    let reader = context.reader()?;
    let mut heads = Vec::new();
    for text in texts {
        let head = resolve(&reader, text)?;
        if !heads.contains(&head) {
            heads.push(head);
        }
    }
    Ok(heads)
}
