//! The last batch that changed the state of a message: its flags, folders, labels or files.
//!
//! The row of a message has the batch that wrote its text. The batch of its state is in a small row
//! of its own, so that a change of many states does not write the rows of all these messages, which
//! have the values of lists, and which are in other pages each.
//!
//! Separate from `before_image`, whose records are kept for some time only and say what changed.

use crate::Seq;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::write_transaction::WriteTransaction;
use rusqlite::{CachedStatement, OptionalExtension as _};

/// Records the batches that changed the states of messages.
pub(crate) struct StateChangeWriter<'a>(CachedStatement<'a>);

impl<'a> StateChangeWriter<'a> {
    pub(crate) fn new(tx: &WriteTransaction<'a>) -> rusqlite::Result<StateChangeWriter<'a>> {
        // `INSERT OR REPLACE` would keep a copy of each page, to take back a part of the statement.
        let sql = "INSERT INTO mail_state_change VALUES(?1, ?2, ?3)
                   ON CONFLICT(item) DO UPDATE SET seq = excluded.seq, ordinal = excluded.ordinal";
        tx.prepare_cached(sql).map(StateChangeWriter)
    }

    /// Records that a batch changed the state of a message, and where in the batch.
    pub(crate) fn write(&mut self, item: ItemRow, seq: Seq, ordinal: i64) -> rusqlite::Result<()> {
        self.0.execute((item, seq, ordinal)).map(drop)
    }
}

/// Forgets the change of the state of a message whose row was deleted or written.
pub(crate) fn delete_state_change(
    tx: &WriteTransaction<'_>,
    item: ItemRow,
) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM mail_state_change WHERE item = ?1")?.execute([item]).map(drop)
}

/// Returns the messages whose state a batch after `after`, up to `last`, changed, and no later one.
pub(crate) fn read_state_changes(
    tx: &ReadTransaction<'_>,
    after: Seq,
    last: Seq,
) -> rusqlite::Result<Vec<ItemRow>> {
    tx.prepare_cached("SELECT item FROM mail_state_change WHERE seq > ?1 AND seq <= ?2")?
        .query_map((after, last), |row| row.get(0))?
        .collect()
}

/// Returns the last batch after `after` that changed the state of a message of a collection.
pub(crate) fn read_last_state_change(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    after: Seq,
) -> rusqlite::Result<Option<Seq>> {
    // Searches from the last batch backwards.
    let sql = "SELECT s.seq FROM mail_state_change s CROSS JOIN item i ON i.id = s.item
               WHERE s.seq > ?2 AND +i.collection = ?1 ORDER BY s.seq DESC LIMIT 1";
    tx.prepare_cached(sql)?.query_row((collection, after), |row| row.get(0)).optional()
}

/// Returns whether a store has changes of states.
pub(crate) fn has_state_changes(tx: &ReadTransaction<'_>) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM sqlite_schema WHERE name = 'mail_state_change')";
    tx.query_row(sql, [], |row| row.get(0))
}
