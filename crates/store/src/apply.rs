//! The one function through which everything is written: a batch of changes, in one transaction, under
//! one sequence number.
//!
//! What each change does to the tables is not here but in `batch` (items) and `collections`; this is apart
//! because it is all that holds the lock and the transaction.

mod batch;
mod collections;

use crate::batch::{Applied, Change, Operation, Outcome, Own};
use crate::derived;
use crate::deriver::{Derivers, SortKeys};
use crate::error::{Error, Result, at};
use crate::handle::Handle;
use crate::identity::{Finder, Standing};
use crate::snapshot::Snapshot;
use crate::store::{Meta, Store};
use crate::summary::Summary;
use crate::transaction::Transaction;
use crate::{Seq, history, identity};
use batch::Batch;
use larder_format::contact::same_card;
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a batch found outside the lock, by the place of each change in it.
#[derive(Default)]
struct Known {
    /// The last batch before, and the store's epoch.
    seq: Seq,
    epoch: String,
    /// What the change replaces.
    before: HashMap<usize, Before>,
    /// Nothing has its UID: the collection that it goes to, and the handle that is free for it.
    free: HashMap<usize, (i64, Handle)>,
}

/// What an item is sorted by, as long as it was last changed by this batch and its collection has this summary.
struct Before {
    seq: Seq,
    summary: Arc<Summary>,
    keys: SortKeys,
}

/// Why a change could not be made: SQLite's word, or our own.
enum Trouble {
    Sqlite(rusqlite::Error),
    Store(Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Sqlite(error)
    }
}

impl Store {
    /// Writes changes in one transaction, as one batch of `operation`, and returns its number; it is on
    /// the disk when this returns. Where nothing changes, nothing is written and no number is used.
    ///
    /// Waits for other writers in turn. At most 4,000 changes keep the lock short; items larger than a few
    /// megabytes should come alone.
    ///
    /// # Errors
    /// With any error the whole batch is left out, and all before it is kept.
    pub fn apply(&mut self, operation: &mut Operation, changes: Vec<Change>) -> Result<Applied> {
        self.writable()?;
        let known = self.look_up(&changes).map_err(at(&self.path))?;
        let lock = self.locks.acquire()?;
        let began = Instant::now();
        self.recover(&lock)?;
        let mut applied =
            self.write(operation, changes, known).map_err(|trouble| match trouble {
                Trouble::Sqlite(error) => at(&self.path)(error),
                Trouble::Store(error) => error,
            })?;
        applied.held = began.elapsed();
        self.let_go(lock);
        Ok(applied)
    }

    fn write(
        &self,
        operation: &mut Operation,
        changes: Vec<Change>,
        mut known: Known,
    ) -> Result<Applied, Trouble> {
        let tx = Transaction::begin(&self.conn)?;
        let meta = Meta::read(&tx)?;
        let now = meta.text("epoch");
        if let Some((begun, id)) = &operation.undoes
            && *begun != now
        {
            return Err(Trouble::Store(Error::Replaced { id: *id }));
        }
        if operation.seen.as_deref().is_some_and(|seen| seen != now) {
            return Err(Trouble::Store(Error::Restored));
        }
        if let Some((begun, id)) = &operation.written
            && *begun == now
            && history::is_undone(&tx, *id)?
        {
            return Err(Trouble::Store(Error::Undone { id: *id }));
        }
        if known.epoch != now {
            // A restore came in between: the same numbers may mean other bytes.
            known = Known::default();
        }
        let mut batch = Batch::begin(&tx, &self.deriver, &known, operation, &meta)?;
        let mut outcomes = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            outcomes.push(batch.change(index, change)?);
        }
        let seq = batch.seq;
        // What is not committed is rolled back.
        let refused = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict(..)));
        if !batch.changed() || (operation.whole && refused) {
            return Ok(Applied { seq: seq - 1, outcomes, held: Duration::ZERO });
        }
        derived::give_up_others(&tx, &self.deriver, &meta)?;
        let written = batch.finish(operation, &meta)?;
        tx.commit()?;
        if operation.written.as_ref() != Some(&written) {
            operation.began = Some(seq);
        }
        operation.written = Some(written);
        self.locks.ring(seq);
        Ok(Applied { seq, outcomes, held: Duration::ZERO })
    }

    /// Reads and parses what the changes will replace, before the lock is taken.
    fn look_up(&self, changes: &[Change]) -> rusqlite::Result<Known> {
        // One read transaction costs less than one for each change. Nothing is written in it, and it is never upgraded.
        let _snapshot = Snapshot::begin(&self.conn)?;
        let sql = "SELECT (SELECT value FROM meta WHERE key = 'seq'), value FROM meta WHERE key = 'epoch'";
        let (seq, epoch) =
            self.conn.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut known = Known { seq, epoch, ..Known::default() };
        let mut finder = Finder::new(&self.conn)?;
        let mut collections: HashMap<&str, Option<identity::Of>> = HashMap::new();
        let mut derivers = Derivers::new(&self.deriver);
        for (index, change) in changes.iter().enumerate() {
            let found: Option<(i64, Seq, i64)> = match change {
                Change::Put(put) => {
                    if !collections.contains_key(&*put.collection) {
                        let found = identity::collection(&self.conn, &put.collection)?;
                        collections.insert(&put.collection, found);
                    }
                    match collections.get(&*put.collection) {
                        Some(Some(of)) => {
                            let (uid, recurrence) = (&put.uid, put.prepared.recurrence());
                            match finder.look(of, uid, recurrence)? {
                                Standing::Item(row) => self.row_and_seq(row)?,
                                Standing::Free(handle) => {
                                    known.free.insert(index, (of.id, handle));
                                    None
                                }
                                Standing::Taken => None,
                            }
                        }
                        _ => None,
                    }
                }
                Change::Remove(handle, _) | Change::Own(Own::Purge(handle)) => self
                    .conn
                    .prepare_cached("SELECT id, seq, collection FROM item WHERE handle = ?1")?
                    .query_row([handle.to_bytes()], three)
                    .optional()?,
                _ => None,
            };
            if let Some((id, seq, collection)) = found
                && let Some(stored) = derivers.read(&self.conn, id)?
                && !is_same(change, &stored.bytes)
            {
                let deriver = derivers.of(&self.conn, collection)?;
                let keys = deriver.sort_of(&stored.bytes, &stored.place);
                let summary = Arc::clone(deriver.summary());
                known.before.insert(index, Before { seq, summary, keys });
            }
        }
        Ok(known)
    }

    fn row_and_seq(&self, row: i64) -> rusqlite::Result<Option<(i64, Seq, i64)>> {
        self.conn
            .prepare_cached("SELECT id, seq, collection FROM item WHERE id = ?1")?
            .query_row([row], three)
            .optional()
    }
}

fn three(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, Seq, i64)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// The same card again changes nothing, so what it gave needs no parsing.
fn is_same(change: &Change, bytes: &[u8]) -> bool {
    matches!(change, Change::Put(put) if same_card(bytes, put.prepared.bytes()))
}
