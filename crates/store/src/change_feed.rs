//! What changed since a cursor: the only news there is.

use crate::error::{Error, Result, sqlite_error_at};
use crate::handle::Handle;
use crate::meta::read_meta_number;
use crate::reader::Reader;
use crate::{Kind, Seq};
use rusqlite::{Connection, OptionalExtension as _};
use std::fmt;

/// A place in a store's log: all up to and including this change was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The store's life: another one after a restore.
    epoch: String,
    /// The batch, and the place in it.
    position: (Seq, i64),
    /// The last batch when a reading from the beginning began: only what was removed since matters
    /// to it.
    start_seq: Option<Seq>,
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data-{}-{}-{}", self.epoch, self.position.0, self.position.1)?;
        self.start_seq.map_or(Ok(()), |began| write!(f, "-{began}"))
    }
}

impl ChangeCursor {
    /// Reads what `Display` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<ChangeCursor> {
        let mut parts = text.strip_prefix("data-")?.split('-');
        let epoch = parts.next()?.to_string();
        let at = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let began = parts.next().map(str::parse).transpose().ok()?;
        parts.next().is_none().then_some(ChangeCursor { epoch, position: at, start_seq: began })
    }
}

/// One item that is not what it was at the cursor. Each item comes once, with its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRecord {
    /// The batch of its last change.
    pub seq: Seq,
    /// Its place in that batch.
    pub ordinal: i64,
    /// The item.
    pub handle: Handle,
    /// What it is.
    pub kind: Kind,
    /// What happened to it.
    pub effect: NetEffect,
}

/// What happened to an item since the cursor, all in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetEffect {
    /// It is there, new or with other bytes: in this row.
    Put(i64),
    /// It is not there any more.
    Removed,
}

impl Reader {
    /// The cursor behind everything that is there now.
    pub fn current_cursor(&self) -> Result<ChangeCursor> {
        let _snapshot = self.begin_read()?;
        self.read_cursor(&self.conn)
    }

    /// The last batch behind `after` that changed anything in the collection of this row; `None`:
    /// none did. Where removals behind `after` are no longer known, the last batch of which that
    /// holds counts, so asked from the beginning on it never goes back.
    pub fn last_collection_change(&self, collection: i64, after: Seq) -> Result<Option<Seq>> {
        let _snapshot = self.begin_read()?;
        let forgotten =
            read_meta_number(&self.conn, "history_from").map_err(sqlite_error_at(&self.path))? - 1;
        // By the batches from the last one on, as what is asked about has mostly changed lately.
        let sql = "SELECT max(
            coalesce((SELECT seq FROM item WHERE +collection = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1), 0),
            coalesce((SELECT seq FROM item_history WHERE +collection = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1), 0),
            coalesce((SELECT seq FROM collection WHERE id = ?1), 0))";
        let last = || -> rusqlite::Result<Seq> {
            self.conn.prepare_cached(sql)?.query_row((collection, after), |row| row.get(0))
        };
        let last = last().map_err(sqlite_error_at(&self.path))?.max(forgotten);
        Ok((last > after).then_some(last))
    }

    /// When the operation began that a batch belongs to, in milliseconds since 1970; `None`: there
    /// is no such batch.
    pub fn batch_time(&self, seq: Seq) -> Result<Option<i64>> {
        let sql = "SELECT o.started_ms FROM batch b JOIN operation o ON o.id = b.operation WHERE b.seq = ?1";
        let time = || self.conn.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional();
        time().map_err(sqlite_error_at(&self.path))
    }

    fn read_cursor(&self, tx: &Connection) -> Result<ChangeCursor> {
        let epoch = self.meta_text("epoch")?;
        let seq = read_meta_number(tx, "last_seq").map_err(sqlite_error_at(&self.path))?;
        Ok(ChangeCursor { epoch, position: (seq, i64::MAX), start_seq: None })
    }

    /// The cursor before everything.
    pub fn start_cursor(&self) -> Result<ChangeCursor> {
        let now = self.current_cursor()?;
        Ok(ChangeCursor { position: (0, 0), start_seq: Some(now.position.0), ..now })
    }

    /// The net effect of all batches after `cursor`, in the order of their last change, at most
    /// `limit` items, and the cursor to go on from. Fewer than `limit`: that was all.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] where removals since the cursor are no longer kept, or the store
    /// was replaced.
    pub fn changes_since(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<(Vec<ChangeRecord>, ChangeCursor)> {
        // One transaction: what is kept, and what happened, must be of the same moment.
        let (tx, _snapshot) = (&self.conn, self.begin_read()?);
        let now = self.read_cursor(tx)?;
        let oldest = read_meta_number(tx, "history_from").map_err(sqlite_error_at(&self.path))?;
        // A cursor in the middle of a batch needs the rest of that batch, too.
        let next = cursor.position.0.saturating_add(i64::from(cursor.position.1 == i64::MAX));
        let needed = cursor.start_seq.map_or(next, |began| began.saturating_add(1));
        // A cursor ahead of the store is of a later state that is not there any more.
        if now.epoch != cursor.epoch || needed < oldest || cursor.position > now.position {
            return Err(Error::CursorExpired);
        }
        let limit = limit.max(1);
        let run = || -> rusqlite::Result<Vec<FeedRow>> {
            tx.prepare_cached(
                "SELECT * FROM (
                   SELECT seq, ordinal, handle, kind, id AS row FROM item
                   WHERE (seq, ordinal) > (?1, ?2)
                   UNION ALL
                   SELECT seq, ordinal, handle, kind, NULL FROM item_history f
                   WHERE (seq, ordinal) > (?1, ?2) AND removed = 1
                     AND NOT EXISTS (SELECT 1 FROM item i WHERE i.handle = f.handle)
                     AND NOT EXISTS (SELECT 1 FROM item_history later
                                     WHERE later.handle = f.handle AND later.removed = 1
                                       AND (later.seq, later.ordinal) > (f.seq, f.ordinal))
                 ) ORDER BY seq, ordinal LIMIT ?3",
            )?
            .query_map(
                (cursor.position.0, cursor.position.1, limit as i64),
                change_record_from_row,
            )?
            .collect()
        };
        let found = run().map_err(sqlite_error_at(&self.path))?;
        let last = found.last().filter(|_| found.len() >= limit);
        let next = match last {
            Some((position, _)) => {
                ChangeCursor { position: *position, start_seq: cursor.start_seq, ..now }
            }
            None => now,
        };
        Ok((found.into_iter().filter_map(|(_, record)| record).collect(), next))
    }
}

/// A position in the feed, and the change there; `None`: the kind of the item is unknown.
type FeedRow = ((Seq, i64), Option<ChangeRecord>);

/// Reads a change with its position in the feed; no change if the kind of the item is unknown.
fn change_record_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<FeedRow> {
    let (seq, ordinal) = (row.get(0)?, row.get(1)?);
    let handle = Handle::from_bytes(&row.get::<_, Vec<u8>>(2)?);
    let stored: Option<i64> = row.get(4)?;
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
