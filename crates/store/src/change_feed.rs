//! The change feed: the items that batches after a cursor changed.
//!
//! Separate from `change_reader`, which has the methods that readers call.

use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::history;
use crate::mail_state_changes::{has_state_changes, read_last_state_change};
use crate::meta::read_meta_number;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::{Kind, Seq};
use std::fmt;

/// A position in the change feed: all changes up to it, inclusive, were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The epoch of the store.
    epoch: String,
    /// The batch, and the ordinal in it.
    position: (Seq, i64),
    /// The last batch at the time when a reader began at the start of the feed: this reader needs
    /// no earlier removals.
    start_seq: Option<Seq>,
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data-{}-{}-{}", self.epoch, self.position.0, self.position.1)?;
        self.start_seq.map_or(Ok(()), |began| write!(f, "-{began}"))
    }
}

impl ChangeCursor {
    /// Parses the text form that `Display` writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<ChangeCursor> {
        let mut parts = text.strip_prefix("data-")?.split('-');
        let epoch = parts.next()?.to_string();
        let at = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let began = parts.next().map(str::parse).transpose().ok()?;
        parts.next().is_none().then_some(ChangeCursor { epoch, position: at, start_seq: began })
    }
}

/// An item that changed after the cursor. Each item comes once, with its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// The batch of its last change.
    pub seq: Seq,
    /// The position of the change in that batch.
    pub ordinal: i64,
    /// The item.
    pub handle: Handle,
    /// The kind of the item.
    pub kind: Kind,
    /// The net effect of its changes.
    pub effect: NetEffect,
}

/// The net effect of all changes to an item after the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetEffect {
    /// The item is new or has other bytes; it has this row.
    Put(ItemRow),
    /// The item was removed.
    Removed,
}

impl ChangeCursor {
    /// Reads the cursor after all changes so far.
    pub(crate) fn read_current(tx: &ReadTransaction<'_>) -> DatabaseResult<ChangeCursor> {
        let epoch = history::read_epoch(tx)?;
        let seq = read_meta_number(tx, "last_seq")?;
        Ok(ChangeCursor { epoch, position: (seq, i64::MAX), start_seq: None })
    }

    /// Returns the batch up to which changes were read, and the ordinal in it.
    pub(crate) fn position(&self) -> (Seq, i64) {
        self.position
    }

    /// Returns the position after which removals matter: a reader that began at the start needs
    /// none of those before it began.
    pub(crate) fn position_of_removals(&self) -> (Seq, i64) {
        self.start_seq.map_or(self.position, |start| self.position.max((start, i64::MAX)))
    }

    /// Returns the cursor at another position of the same reading.
    pub(crate) fn with_position(&self, position: (Seq, i64)) -> ChangeCursor {
        ChangeCursor { position, ..self.clone() }
    }

    /// Returns whether changes after the cursor are not known, given the cursor after all changes
    /// and the oldest batch whose removals are kept.
    pub(crate) fn is_expired(&self, now: &ChangeCursor, oldest: Seq) -> bool {
        // A cursor in the middle of a batch needs the rest of that batch.
        let next = self.position.0.saturating_add(i64::from(self.position.1 == i64::MAX));
        let needed = self.start_seq.map_or(next, |start| start.saturating_add(1));
        // A cursor ahead of the store belongs to a later state that was replaced.
        now.epoch != self.epoch || needed < oldest || self.position > now.position
    }

    /// Returns the cursor before all changes, given the cursor after all of them.
    pub(crate) fn to_start(&self) -> ChangeCursor {
        let epoch = self.epoch.clone();
        ChangeCursor { epoch, position: (0, 0), start_seq: Some(self.position.0) }
    }
}

/// The items that batches after a position wrote.
const ITEMS_SQL: &str = "SELECT seq, ordinal, handle, kind, id AS row FROM item
     WHERE (seq, ordinal) > (?1, ?2)";

/// The items that batches after a position wrote, and the messages whose state they changed.
const ITEMS_AND_STATES_SQL: &str = "SELECT seq, ordinal, handle, kind, id AS row FROM item i
     WHERE (seq, ordinal) > (?1, ?2)
       AND NOT EXISTS (SELECT 1 FROM mail_state_change s WHERE s.item = i.id)
     UNION ALL
     SELECT s.seq, s.ordinal, i.handle, i.kind, i.id
     FROM mail_state_change s CROSS JOIN item i ON i.id = s.item
     WHERE (s.seq, s.ordinal) > (?1, ?2)";

/// Reads the net effect of the batches after `cursor`, at most `limit` items, and the cursor to
/// continue from. `None`: the cursor has expired.
pub(crate) fn read_changes(
    tx: &ReadTransaction<'_>,
    cursor: &ChangeCursor,
    limit: usize,
) -> DatabaseResult<Option<(Vec<ChangeRecord>, ChangeCursor)>> {
    let now = ChangeCursor::read_current(tx)?;
    let oldest = read_meta_number(tx, "history_from")?;
    if cursor.is_expired(&now, oldest) {
        return Ok(None);
    }
    let limit = limit.max(1);
    let items = match has_state_changes(tx)? {
        true => ITEMS_AND_STATES_SQL,
        false => ITEMS_SQL,
    };
    let found = tx
        .prepare_cached(&format!(
            "SELECT * FROM (
               {items}
               UNION ALL
               SELECT seq, ordinal, handle, kind, NULL FROM item_history f
               WHERE (seq, ordinal) > (?1, ?2) AND removed = 1
                 AND NOT EXISTS (SELECT 1 FROM item i WHERE i.handle = f.handle)
                 AND NOT EXISTS (SELECT 1 FROM item_history later
                                 WHERE later.handle = f.handle AND later.removed = 1
                                   AND (later.seq, later.ordinal) > (f.seq, f.ordinal))
             ) ORDER BY seq, ordinal LIMIT ?3"
        ))?
        .query_map((cursor.position.0, cursor.position.1, limit as i64), change_record_from_row)?
        .collect::<rusqlite::Result<Vec<FeedRow>>>()?;
    let last = found.last().filter(|_| found.len() >= limit);
    let next = match last {
        Some((position, _)) => {
            ChangeCursor { position: *position, start_seq: cursor.start_seq, ..now }
        }
        None => now,
    };
    Ok(Some((found.into_iter().filter_map(|(_, record)| record).collect(), next)))
}

/// Reads the last batch after `after` that changed anything in a collection, or the state of one of
/// its messages; if removals after `after` were pruned, the last pruned batch counts as a change.
pub(crate) fn read_last_collection_change(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    after: Seq,
) -> DatabaseResult<Option<Seq>> {
    let last_pruned = read_meta_number(tx, "history_from")? - 1;
    // Searches from the last batch backwards, because most requested collections changed recently.
    let sql = "SELECT max(
        coalesce((SELECT seq FROM item WHERE +collection = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1), 0),
        coalesce((SELECT seq FROM item_history WHERE +collection = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1), 0),
        coalesce((SELECT seq FROM collection WHERE id = ?1), 0))";
    let last: Seq = tx.query_row(sql, (collection, after), |row| row.get(0))?;
    let last_state = match has_state_changes(tx)? {
        true => read_last_state_change(tx, collection, after)?.unwrap_or_default(),
        false => 0,
    };
    Ok(Some(last.max(last_state).max(last_pruned)).filter(|last| *last > after))
}

/// A position in the feed, and the change there; `None`: the kind of the item is unknown.
type FeedRow = ((Seq, i64), Option<ChangeRecord>);

/// Reads a change with its position in the feed; no change if the kind of the item is unknown.
fn change_record_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<FeedRow> {
    let (seq, ordinal) = (row.get(0)?, row.get(1)?);
    let handle = Handle::from_bytes(&row.get::<_, Vec<u8>>(2)?);
    let stored: Option<ItemRow> = row.get(4)?;
    let effect = stored.map_or(NetEffect::Removed, NetEffect::Put);
    let record = Kind::from_number(row.get(3)?).map(|kind| ChangeRecord {
        seq,
        ordinal,
        handle,
        kind,
        effect,
    });
    Ok(((seq, ordinal), record))
}
