//! Finding messages by their Message-IDs and names, in all collections.
//!
//! Separate from `labels`, `text_labels` and `message_names`, which all need it.

use crate::Kind;
use crate::error::DatabaseResult;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::uid_lookup::{CollectionKey, UidFinder, UidLookup};

/// Reads the collections that messages are in.
pub(super) fn read_mail_collections(
    tx: &ReadTransaction<'_>,
) -> rusqlite::Result<Vec<CollectionKey>> {
    let sql = "SELECT id, handle_key FROM collection WHERE removed = 0 AND type = ?1";
    let mut select = tx.prepare_cached(sql)?;
    let rows = select.query_map([Kind::Message.collection_type().number()], |row| {
        Ok(CollectionKey { id: row.get(0)?, handle_key: row.get(1)? })
    })?;
    rows.collect()
}

/// Finds the messages with this name, in all collections but one.
pub(super) fn find_named(
    tx: &ReadTransaction<'_>,
    finder: &mut UidFinder<'_>,
    uid: &str,
    except: Option<CollectionRow>,
) -> DatabaseResult<Vec<(CollectionRow, ItemRow)>> {
    let mut found = Vec::new();
    let collections = read_mail_collections(tx)?;
    for collection in collections.iter().filter(|one| Some(one.id) != except) {
        if let UidLookup::Item(item) = finder.find(collection, uid, "")? {
            found.push((collection.id, item));
        }
    }
    Ok(found)
}

/// Reads the Message-ID of a message, which another text may have as its name.
pub(super) fn read_message_id(tx: &ReadTransaction<'_>, item: ItemRow) -> DatabaseResult<String> {
    let mut select = tx.prepare_cached(
        "SELECT coalesce(o.message_id, i.uid) FROM item i
         LEFT JOIN mail_other_text o ON o.item = i.id WHERE i.id = ?1",
    )?;
    Ok(select.query_row([item], |row| row.get(0))?)
}
