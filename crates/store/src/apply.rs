//! The one function through which everything is written: a batch of changes, in one transaction, under
//! one sequence number.

use crate::batch::{Applied, Change, Expect, Operation, Outcome, Put};
use crate::contact::{Deriver, Entry};
use crate::derived::{self, Rows};
use crate::error::{Error, Result, at};
use crate::handle::Handle;
use crate::history::OperationId;
use crate::store::{Store, immediate, meta, set_meta};
use crate::{Kind, Seq, blob, history, purge};
use larder_format::contact::{derived_uid, same_card};
use rusqlite::{Connection, OptionalExtension as _, Transaction};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What a batch found outside the lock: per change, the batch that last changed its item, and the rows
/// that its bytes gave.
type Known = HashMap<usize, (Seq, Entry)>;

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
            self.write(operation, changes, &known).map_err(|trouble| match trouble {
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
        known: &Known,
    ) -> Result<Applied, Trouble> {
        let tx = immediate(&self.conn)?;
        let mut batch = Batch::begin(&tx, &self.deriver, known)?;
        let mut outcomes = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            outcomes.push(batch.change(index, change)?);
        }
        let seq = batch.seq;
        if !batch.changed() {
            return Ok(Applied { seq: seq - 1, outcomes, held: Duration::ZERO });
        }
        derived::give_up_others(&tx, &self.deriver)?;
        let written = batch.finish(operation)?;
        tx.commit()?;
        operation.written = Some(written);
        self.locks.ring(seq);
        Ok(Applied { seq, outcomes, held: Duration::ZERO })
    }

    /// Reads and parses what the changes will replace, before the lock is taken.
    fn look_up(&self, changes: &[Change]) -> rusqlite::Result<Known> {
        let mut known = Known::new();
        // By name once, not by a join: SQLite prepares that anew for each value it is given.
        let mut collections: HashMap<&str, Option<i64>> = HashMap::new();
        for (index, change) in changes.iter().enumerate() {
            let found: Option<(i64, Seq)> = match change {
                Change::Put(put) => {
                    let collection = match collections.get(&*put.collection) {
                        Some(known) => *known,
                        None => {
                            let found = collection_named(&self.conn, &put.collection)?;
                            collections.insert(&put.collection, found);
                            found
                        }
                    };
                    self.conn
                        .prepare_cached(
                            "SELECT id, seq FROM item
                             WHERE collection = ?1 AND uid = ?2 AND recurrence = ''",
                        )?
                        .query_row((collection, &put.uid), |row| Ok((row.get(0)?, row.get(1)?)))
                        .optional()?
                }
                Change::Remove(handle, _) | Change::Purge(handle) => self
                    .conn
                    .prepare_cached("SELECT id, seq FROM item WHERE handle = ?1")?
                    .query_row([handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?,
                _ => None,
            };
            if let Some((id, seq)) = found
                && let Some(bytes) = blob::source(&self.conn, id)?
                && !is_same(change, &bytes)
            {
                known.insert(index, (seq, self.deriver.entry_of(&bytes)));
            }
        }
        Ok(known)
    }
}

fn collection_named(conn: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM collection WHERE name = ?1 AND removed = 0")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// The same card again changes nothing, so what it gave needs no parsing.
fn is_same(change: &Change, bytes: &[u8]) -> bool {
    matches!(change, Change::Put(put) if same_card(bytes, put.prepared.bytes()))
}

fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Conflict(..))
}

/// An item as it stands in the transaction.
struct Found {
    id: i64,
    handle: Handle,
    seq: Seq,
}

/// A collection as it stands in the transaction.
#[derive(Clone)]
struct Into {
    id: i64,
    key: Vec<u8>,
}

/// A batch while it is being written.
struct Batch<'a> {
    tx: &'a Transaction<'a>,
    deriver: &'a Deriver,
    known: &'a Known,
    seq: Seq,
    /// The place of the next change in the batch.
    ordinal: i64,
    /// The last row number given to an item.
    items: i64,
    former_bytes: i64,
    rows: Rows,
    /// Items that this batch has touched: what was found before the lock does not hold for them.
    touched: HashSet<i64>,
    collections: HashMap<String, Into>,
    added: i64,
    updated: i64,
    removed: i64,
    /// Marks on operations were written, which are changes without a place.
    marked: bool,
    /// An item was not what a change expected.
    refused: bool,
}

impl<'a> Batch<'a> {
    fn begin(
        tx: &'a Transaction<'a>,
        deriver: &'a Deriver,
        known: &'a Known,
    ) -> rusqlite::Result<Batch<'a>> {
        Ok(Batch {
            tx,
            deriver,
            known,
            seq: meta(tx, "seq")? + 1,
            ordinal: 0,
            items: meta(tx, "items")?,
            former_bytes: meta(tx, "former_bytes")?,
            rows: Rows::default(),
            touched: HashSet::new(),
            collections: HashMap::new(),
            added: 0,
            updated: 0,
            removed: 0,
            marked: false,
            refused: false,
        })
    }

    fn changed(&self) -> bool {
        self.ordinal > 0 || self.marked
    }

    fn change(&mut self, index: usize, change: Change) -> Result<Outcome, Trouble> {
        match change {
            Change::Put(put) => {
                let outcome = self.put(index, put)?;
                self.refused |= is_conflict(&outcome);
                Ok(outcome)
            }
            Change::Remove(handle, expect) => {
                let outcome = self.remove(index, handle, expect)?;
                self.refused |= is_conflict(&outcome);
                Ok(outcome)
            }
            Change::Undone(_) | Change::Redone(_) if self.refused => {
                Ok(Outcome::Conflict(None, None))
            }
            Change::Purge(handle) => self.purge(index, handle),
            Change::CreateCollection(name, kind) => self.create(&name, kind),
            Change::RenameCollection(from, to) => self.rename(&from, &to),
            Change::RemoveCollection(name) => self.remove_collection(&name),
            Change::RestoreCollection(id) => self.restore_collection(id),
            Change::Undone(id) => self.mark(id, true),
            Change::Redone(id) => self.mark(id, false),
        }
    }

    /// Writes what was gathered, and the batch's own rows. Returns what the operation is known by from now on.
    fn finish(mut self, operation: &Operation) -> Result<(String, OperationId), Trouble> {
        let tx = self.tx;
        self.rows.write(tx)?;
        let epoch: String = tx
            .prepare_cached("SELECT value FROM meta WHERE key = 'epoch'")?
            .query_row([], |row| row.get(0))?;
        let id = match &operation.written {
            Some((of, id)) if *of == epoch => *id,
            _ => {
                tx.prepare_cached(
                    "INSERT INTO operation(verb, detail, at, undoes, added, updated, removed)
                     VALUES(?1, ?2, ?3, ?4, 0, 0, 0)",
                )?
                .execute((
                    &operation.verb,
                    &operation.detail,
                    operation.at,
                    operation.undoes,
                ))?;
                tx.last_insert_rowid()
            }
        };
        tx.prepare_cached(
            "UPDATE operation SET added = added + ?2, updated = updated + ?3, removed = removed + ?4
             WHERE id = ?1",
        )?
        .execute((id, self.added, self.updated, self.removed))?;
        tx.prepare_cached("INSERT INTO batch VALUES(?1, ?2)")?.execute((self.seq, id))?;
        tx.prepare_cached("UPDATE operation SET undone_by = ?1 WHERE undone_by = -1")?
            .execute([id])?;
        set_meta(tx, "seq", self.seq)?;
        set_meta(tx, "items", self.items)?;
        let kept = history::prune(tx, id, operation.at, self.former_bytes)?;
        set_meta(tx, "former_bytes", kept)?;
        Ok((epoch, id))
    }

    fn next_ordinal(&mut self) -> i64 {
        self.ordinal += 1;
        self.ordinal
    }

    fn find(&self, collection: i64, uid: &str) -> rusqlite::Result<Option<Found>> {
        self.tx
            .prepare_cached(
                "SELECT id, handle, seq FROM item
                 WHERE collection = ?1 AND uid = ?2 AND recurrence = ''",
            )?
            .query_row((collection, uid), found)
            .optional()
    }

    fn find_handle(&self, handle: Handle) -> rusqlite::Result<Option<Found>> {
        self.tx
            .prepare_cached("SELECT id, handle, seq FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], found)
            .optional()
    }

    /// The index rows that an item has now. Parsed under the lock only where another writer, or this
    /// batch itself, changed the item after it was looked up.
    fn entry_now(&mut self, index: usize, item: &Found) -> Result<Entry, Trouble> {
        if !self.touched.contains(&item.id)
            && let Some((seq, entry)) = self.known.get(&index)
            && *seq == item.seq
        {
            return Ok(entry.clone());
        }
        if self.touched.contains(&item.id) {
            self.rows.write(self.tx)?;
        }
        let bytes = blob::source(self.tx, item.id)?.unwrap_or_default();
        Ok(self.deriver.entry_of(&bytes))
    }

    fn put(&mut self, index: usize, put: Put) -> Result<Outcome, Trouble> {
        if matches!(put.expect, Expect::At(_)) && self.find_collection(&put.collection)?.is_none() {
            return Ok(Outcome::Conflict(None, None));
        }
        let into = self.collection(&put.collection, Kind::Contact)?;
        let Some(item) = self.find(into.id, &put.uid)? else {
            return match put.expect {
                Expect::At(_) => Ok(Outcome::Conflict(None, None)),
                _ => Ok(Outcome::Added(self.add(&into, put)?)),
            };
        };
        let same = blob::source(self.tx, item.id)?
            .is_some_and(|bytes| same_card(&bytes, put.prepared.bytes()));
        match put.expect {
            Expect::Nothing if same => return Ok(Outcome::Unchanged(item.handle)),
            Expect::Nothing => return Ok(Outcome::Conflict(Some(item.handle), Some(item.seq))),
            Expect::At(seq) if seq != item.seq => {
                return Ok(Outcome::Conflict(Some(item.handle), Some(item.seq)));
            }
            _ if same => return Ok(Outcome::Unchanged(item.handle)),
            Expect::SecondOfImport => return self.put_beside(&into, put),
            Expect::Anything => {
                let beside = self.find(into.id, &derived_uid(put.prepared.bytes()))?;
                if let Some(beside) = beside.filter(|beside| beside.id != item.id) {
                    return Ok(Outcome::UnchangedBeside(beside.handle));
                }
            }
            Expect::At(_) => {}
        }
        self.update(index, &item, put)?;
        Ok(Outcome::Updated(item.handle))
    }

    /// Keeps a second item with a UID that another one had first, under a UID made from its bytes.
    fn put_beside(&mut self, into: &Into, mut put: Put) -> Result<Outcome, Trouble> {
        put.uid = derived_uid(put.prepared.bytes());
        put.derived_uid = true;
        match self.find(into.id, &put.uid)? {
            Some(item) => Ok(Outcome::UnchangedBeside(item.handle)),
            None => Ok(Outcome::AddedBeside(self.add(into, put)?)),
        }
    }

    fn add(&mut self, into: &Into, put: Put) -> Result<Handle, Trouble> {
        self.items += 1;
        let (id, ordinal) = (self.items, self.next_ordinal());
        let handle = self.free_handle(&into.key, &put.uid)?;
        self.tx
            .prepare_cached("INSERT INTO item VALUES(?1, ?2, ?3, ?4, '', ?5, ?6, ?7, ?8)")?
            .execute((
                id,
                into.id,
                Kind::Contact as i64,
                &put.uid,
                put.derived_uid,
                handle.to_bytes(),
                self.seq,
                ordinal,
            ))?;
        let place = blob::place(self.tx, put.prepared.bytes)?;
        self.tx.prepare_cached("INSERT INTO source VALUES(?1, ?2, ?3)")?.execute((
            id,
            place.bytes,
            place.blob,
        ))?;
        self.added += 1;
        self.touched.insert(id);
        self.rows.replace(self.tx, id, &Entry::default(), put.prepared.entry)?;
        Ok(handle)
    }

    /// The handle of a new item; another one only where two UIDs share their first 64 bits of hash.
    fn free_handle(&self, key: &[u8], uid: &str) -> rusqlite::Result<Handle> {
        let mut attempt = 0;
        loop {
            let handle = Handle::of(key, uid, "", attempt);
            if self.find_handle(handle)?.is_none() {
                return Ok(handle);
            }
            attempt += 1;
        }
    }

    fn update(&mut self, index: usize, item: &Found, put: Put) -> Result<(), Trouble> {
        let old = self.entry_now(index, item)?;
        let ordinal = self.next_ordinal();
        self.keep_former(item, ordinal, false)?;
        let place = blob::place(self.tx, put.prepared.bytes)?;
        self.tx
            .prepare_cached("UPDATE source SET bytes = ?2, blob = ?3 WHERE item = ?1")?
            .execute((item.id, place.bytes, place.blob))?;
        self.tx
            .prepare_cached(
                "UPDATE item SET seq = ?2, ordinal = ?3, derived_uid = ?4 WHERE id = ?1",
            )?
            .execute((item.id, self.seq, ordinal, put.derived_uid))?;
        self.updated += 1;
        self.touched.insert(item.id);
        self.rows.replace(self.tx, item.id, &old, put.prepared.entry)?;
        Ok(())
    }

    /// Copies what an item is into `former`. A large item's bytes get one more user instead of a copy.
    fn keep_former(&mut self, item: &Found, ordinal: i64, removed: bool) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT INTO former(seq, ordinal, handle, collection, kind, removed, before, uid,
                                    recurrence, derived_uid, bytes, blob)
                 SELECT ?2, ?3, i.handle, i.collection, i.kind, ?4, i.seq, i.uid, i.recurrence,
                        i.derived_uid, s.bytes, s.blob
                 FROM item i JOIN source s ON s.item = i.id WHERE i.id = ?1",
            )?
            .execute((item.id, self.seq, ordinal, removed))?;
        // The place moves from `source` to `former`: the number of a blob's users stays the same.
        self.former_bytes += self
            .tx
            .prepare_cached(
                "SELECT coalesce(length(s.bytes), length(b.bytes), 0)
                 FROM source s LEFT JOIN blob b ON b.hash = s.blob WHERE s.item = ?1",
            )?
            .query_row([item.id], |row| row.get::<_, i64>(0))?;
        Ok(())
    }

    fn remove(&mut self, index: usize, handle: Handle, expect: Expect) -> Result<Outcome, Trouble> {
        let Some(item) = self.find_handle(handle)? else {
            return Ok(Outcome::Conflict(None, None));
        };
        if let Expect::At(seq) = expect
            && seq != item.seq
        {
            return Ok(Outcome::Conflict(Some(handle), Some(item.seq)));
        }
        let old = self.entry_now(index, &item)?;
        let ordinal = self.next_ordinal();
        self.keep_former(&item, ordinal, true)?;
        self.drop_item(&item, &old)?;
        Ok(Outcome::Removed(handle))
    }

    fn drop_item(&mut self, item: &Found, old: &Entry) -> Result<(), Trouble> {
        derived::remove(self.tx, item.id, old)?;
        self.tx.prepare_cached("DELETE FROM source WHERE item = ?1")?.execute([item.id])?;
        self.tx.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([item.id])?;
        self.removed += 1;
        self.touched.insert(item.id);
        Ok(())
    }

    fn purge(&mut self, index: usize, handle: Handle) -> Result<Outcome, Trouble> {
        let item = self.find_handle(handle)?;
        if let Some(item) = &item {
            let old = self.entry_now(index, item)?;
            let ordinal = self.next_ordinal();
            self.keep_former(item, ordinal, true)?;
            self.drop_item(item, &old)?;
        }
        let (erased, bytes) = purge::erase(self.tx, handle)?;
        self.former_bytes -= bytes;
        self.marked |= erased > 0;
        match (item, erased) {
            (None, 0) => Ok(Outcome::Conflict(None, None)),
            _ => {
                purge::owe_rewrite(self.tx)?;
                Ok(Outcome::Removed(handle))
            }
        }
    }

    fn mark(&mut self, id: i64, undone: bool) -> Result<Outcome, Trouble> {
        // The number of the undoing operation is known when the batch is finished; -1 stands for it.
        self.tx
            .prepare_cached("UPDATE operation SET undone_by = ?2 WHERE id = ?1")?
            .execute((id, undone.then_some(-1)))?;
        self.marked = true;
        Ok(Outcome::Done)
    }
}

/// Collections.
impl Batch<'_> {
    /// The collection of this name, made (or brought back) where there is none.
    fn collection(&mut self, name: &str, kind: Kind) -> Result<Into, Trouble> {
        if let Some(known) = self.collections.get(name) {
            return Ok(known.clone());
        }
        let into = match self.find_collection(name)? {
            Some((id, key, family)) if family == kind as i64 => Into { id, key },
            Some(_) => {
                let (name, kind) = (name.to_string(), kind.name());
                return Err(Trouble::Store(Error::WrongKind { name, kind }));
            }
            None => self.make_collection(name, kind)?,
        };
        self.collections.insert(name.to_string(), into.clone());
        Ok(into)
    }

    fn find_collection(&self, name: &str) -> rusqlite::Result<Option<(i64, Vec<u8>, i64)>> {
        self.tx
            .prepare_cached(
                "SELECT id, key, family FROM collection WHERE name = ?1 AND removed = 0",
            )?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
    }

    fn make_collection(&mut self, name: &str, kind: Kind) -> Result<Into, Trouble> {
        check_name(name)?;
        let removed: Option<(i64, Vec<u8>)> = self
            .tx
            .query_row(
                "SELECT id, key FROM collection WHERE name = ?1 AND family = ?2 AND removed = 1",
                (name, kind as i64),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((id, key)) = removed {
            self.restore_collection(id)?;
            return Ok(Into { id, key });
        }
        let key = self.free_key(name)?;
        self.tx.execute(
            "INSERT INTO collection(key, name, family, seq) VALUES(?1, ?2, ?3, ?4)",
            (&key, name, kind as i64, self.seq),
        )?;
        let id = self.tx.last_insert_rowid();
        self.keep_collection(id, None, false)?;
        Ok(Into { id, key })
    }

    /// The key of a new collection is made from its name, so that the same books imported elsewhere have
    /// the same handles; a counter is added where a renamed collection has that key.
    fn free_key(&self, name: &str) -> rusqlite::Result<Vec<u8>> {
        let mut attempt: u64 = 0;
        loop {
            let mut hash = Sha256::new();
            hash.update(name.as_bytes());
            if attempt > 0 {
                hash.update(attempt.to_le_bytes());
            }
            let key = hash.finalize()[..8].to_vec();
            let taken = self
                .tx
                .query_row("SELECT 1 FROM collection WHERE key = ?1", [&key], |_| Ok(()))
                .optional()?;
            if taken.is_none() {
                return Ok(key);
            }
            attempt += 1;
        }
    }

    /// Notes what a collection was before this batch: its name, or nothing.
    fn keep_collection(
        &mut self,
        id: i64,
        name: Option<&str>,
        removed: bool,
    ) -> rusqlite::Result<()> {
        let ordinal = self.next_ordinal();
        self.tx
            .execute(
                "INSERT INTO collection_former VALUES(?1, ?2, ?3, ?4, ?5)",
                (self.seq, ordinal, id, name, removed),
            )
            .map(drop)
    }

    fn create(&mut self, name: &str, kind: Kind) -> Result<Outcome, Trouble> {
        if self.find_collection(name)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name: name.to_string() }));
        }
        self.collection(name, kind)?;
        Ok(Outcome::Done)
    }

    fn existing(&self, name: &str) -> Result<i64, Trouble> {
        match self.find_collection(name)? {
            Some((id, ..)) => Ok(id),
            None => Err(Trouble::Store(Error::NoCollection { name: name.to_string() })),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, Trouble> {
        check_name(to)?;
        let id = self.existing(from)?;
        if self.find_collection(to)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name: to.to_string() }));
        }
        self.keep_collection(id, Some(from), false)?;
        self.tx.execute(
            "UPDATE collection SET name = ?2, seq = ?3 WHERE id = ?1",
            (id, to, self.seq),
        )?;
        self.collections.clear();
        Ok(Outcome::Done)
    }

    fn remove_collection(&mut self, name: &str) -> Result<Outcome, Trouble> {
        let id = self.existing(name)?;
        let items: i64 = self.tx.query_row(
            "SELECT count(*) FROM (SELECT 1 FROM item WHERE collection = ?1 LIMIT 1)",
            [id],
            |row| row.get(0),
        )?;
        if items > 0 {
            return Ok(Outcome::Conflict(None, None));
        }
        self.keep_collection(id, Some(name), false)?;
        self.tx
            .execute("UPDATE collection SET removed = 1, seq = ?2 WHERE id = ?1", (id, self.seq))?;
        self.collections.clear();
        Ok(Outcome::Done)
    }

    fn restore_collection(&mut self, id: i64) -> Result<Outcome, Trouble> {
        let name: Option<String> = self
            .tx
            .query_row("SELECT name FROM collection WHERE id = ?1 AND removed = 1", [id], |row| {
                row.get(0)
            })
            .optional()?;
        let Some(name) = name else { return Ok(Outcome::Conflict(None, None)) };
        if self.find_collection(&name)?.is_some() {
            return Err(Trouble::Store(Error::CollectionExists { name }));
        }
        self.keep_collection(id, Some(&name), true)?;
        self.tx
            .execute("UPDATE collection SET removed = 0, seq = ?2 WHERE id = ?1", (id, self.seq))?;
        Ok(Outcome::Done)
    }
}

/// Names go into command lines and item addresses (`COLLECTION/UID`).
fn check_name(name: &str) -> Result<(), Trouble> {
    let long = name.chars().count() > 200;
    if name.is_empty() || long || name.chars().any(|c| c.is_control() || c == '/') {
        return Err(Trouble::Store(Error::BadName { name: name.to_string() }));
    }
    Ok(())
}

fn found(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found {
        id: row.get(0)?,
        handle: Handle::from_bytes(&row.get::<_, Vec<u8>>(1)?),
        seq: row.get(2)?,
    })
}
