//! A batch while it is written: what putting, updating, removing and purging do to items.
//!
//! It takes no lock and begins no transaction (`apply` does), and leaves collections to `collections`. It is
//! apart because these are the rules of items: what is a conflict, what becomes a former version.

use super::{Before, Known, Trouble};
use crate::batch::{Change, Expect, Operation, Outcome, Own, Put};
use crate::derived::Rows;
use crate::deriver::{Deriver, Derivers, SortKeys};
use crate::event::is_newer;
use crate::frame::{self, Frames};
use crate::handle::Handle;
use crate::history::OperationId;
use crate::identity::{self, Finder, Of, Standing};
use crate::series::Whose;
use crate::store::{Meta, set_meta};
use crate::transaction::Transaction;
use crate::{Family, Kind, Seq, blob, history, purge};
use larder_format::contact::{derived_uid, same_card};
use rusqlite::{CachedStatement, OptionalExtension as _};
use std::collections::{HashMap, HashSet};

/// What stands in the transaction under the UID of what arrives.
enum There {
    Item(Found),
    /// Nothing; this handle is free for it, if that is known.
    Nothing(Option<Handle>),
}

/// An item as it stands in the transaction.
struct Found {
    id: i64,
    handle: Handle,
    seq: Seq,
    whose: Whose,
}

/// What an operation that puts each item once has done before: its first batch, and its number.
struct Once {
    began: Option<(Seq, OperationId)>,
}

impl Once {
    fn of(operation: &Operation, epoch: &str) -> Once {
        let written = operation.written.as_ref().filter(|(of, _)| of == epoch);
        Once { began: operation.began.zip(written.map(|(_, id)| *id)) }
    }
}

/// A batch while it is being written.
pub(super) struct Batch<'a> {
    pub(super) tx: &'a Transaction<'a>,
    pub(super) derivers: Derivers<'a>,
    known: &'a Known,
    pub(super) seq: Seq,
    /// The place of the next change in the batch.
    ordinal: i64,
    /// The last row number given to an item.
    items: i64,
    former_bytes: i64,
    rows: Rows,
    frames: Frames,
    /// The handles that were given to new items.
    given: HashSet<Handle>,
    /// Of an operation that puts each item once: what came already, and was left as it was; and its batches before this one.
    met: HashSet<i64>,
    once: Option<Once>,
    finder: Finder<'a>,
    inserts: Inserts<'a>,
    pub(super) collections: HashMap<String, (Of, Family)>,
    added: i64,
    updated: i64,
    removed: i64,
    /// Operations that this one undoes.
    undone: Vec<OperationId>,
    /// Marks on operations were written, which are changes without a place.
    marked: bool,
    /// An item was not what a change expected.
    refused: bool,
}

/// Statements that a batch runs for each new item.
#[derive(Default)]
struct Inserts<'a> {
    item: Option<CachedStatement<'a>>,
    source: Option<CachedStatement<'a>>,
}

impl<'a> Inserts<'a> {
    fn item(&mut self, tx: &'a Transaction<'a>) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepared(
            &mut self.item,
            tx,
            "INSERT INTO item(id, collection, kind, uid, recurrence, derived_uid, handle, seq, ordinal, kept,
                              frame) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
    }

    fn source(&mut self, tx: &'a Transaction<'a>) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepared(&mut self.source, tx, "INSERT INTO source VALUES(?1, ?2, ?3)")
    }
}

fn prepared<'s, 'a>(
    kept: &'s mut Option<CachedStatement<'a>>,
    tx: &'a Transaction<'a>,
    sql: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    let statement = match kept.take() {
        Some(statement) => statement,
        None => tx.prepare_cached(sql)?,
    };
    Ok(kept.insert(statement))
}

impl<'a> Batch<'a> {
    pub(super) fn begin(
        tx: &'a Transaction<'a>,
        deriver: &'a Deriver,
        known: &'a Known,
        operation: &Operation,
        meta: &Meta,
    ) -> rusqlite::Result<Batch<'a>> {
        Ok(Batch {
            tx,
            derivers: Derivers::new(deriver),
            known,
            seq: meta.number("seq")? + 1,
            ordinal: 0,
            items: meta.number("items")?,
            former_bytes: meta.number("former_bytes")?,
            rows: Rows::begin(deriver, meta),
            frames: Frames::default(),
            given: HashSet::new(),
            met: HashSet::new(),
            once: operation.once.then(|| Once::of(operation, meta.text("epoch"))),
            finder: Finder::new(tx)?,
            inserts: Inserts::default(),
            collections: HashMap::new(),
            added: 0,
            updated: 0,
            removed: 0,
            undone: Vec::new(),
            marked: false,
            refused: false,
        })
    }

    pub(super) fn changed(&self) -> bool {
        self.ordinal > 0 || self.marked
    }

    pub(super) fn change(&mut self, index: usize, change: Change) -> Result<Outcome, Trouble> {
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
            Change::Own(Own::Undone(_)) | Change::Own(Own::Redone(_)) if self.refused => {
                Ok(Outcome::Conflict(None, None))
            }
            Change::Own(Own::Purge(handle)) => self.purge(index, handle),
            Change::CreateCollection(name, kind) => self.create(&name, kind),
            Change::SetSummary(name, summary) => self.set_summary(&name, &summary),
            Change::SetHead(name, head) => self.set_head(&name, head.as_deref()),
            Change::RenameCollection(from, to) => self.rename(&from, &to),
            Change::RemoveCollection(name) => self.remove_collection(&name),
            Change::Own(Own::RestoreCollection(id)) => self.restore_collection(id),
            Change::Own(Own::Undone(id)) => self.mark(id, true),
            Change::Own(Own::Redone(id)) => self.mark(id, false),
        }
    }

    /// Writes what was gathered, and the batch's own rows. Returns what the operation is known by from now on.
    pub(super) fn finish(
        mut self,
        operation: &Operation,
        meta: &Meta,
    ) -> Result<(String, OperationId), Trouble> {
        let tx = self.tx;
        self.rows.write(tx, &mut self.derivers, self.seq)?;
        self.frames.write(tx)?;
        let epoch = meta.text("epoch");
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
                    operation.undoes.as_ref().map(|(_, id)| *id),
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
        for undone in &self.undone {
            tx.prepare_cached("UPDATE operation SET undone_by = ?2 WHERE id = ?1")?
                .execute((undone, id))?;
        }
        let kept = history::prune(tx, id, operation.at, self.former_bytes)?;
        for (key, now) in [("seq", self.seq), ("items", self.items), ("former_bytes", kept)] {
            if meta.number(key)? != now {
                set_meta(tx, key, now)?;
            }
        }
        frame::sweep(tx)?;
        Ok((epoch.to_string(), id))
    }

    pub(super) fn next_ordinal(&mut self) -> i64 {
        self.ordinal += 1;
        self.ordinal
    }

    /// Looks for what the change at `index` puts, without doing again what was done before the lock was taken.
    fn find_put(&mut self, index: usize, of: &Of, put: &Put) -> rusqlite::Result<There> {
        if let Some((collection, handle)) = self.known.free.get(&index)
            && self.known.seq + 1 == self.seq
            && *collection == of.id
            && !self.given.contains(handle)
        {
            return Ok(There::Nothing(Some(*handle)));
        }
        self.find(of, &put.uid, put.prepared.recurrence())
    }

    fn find(&mut self, of: &Of, uid: &str, recurrence: &str) -> rusqlite::Result<There> {
        let row = match self.finder.look(of, uid, recurrence)? {
            Standing::Item(row) => row,
            Standing::Free(handle) => return Ok(There::Nothing(Some(handle))),
            Standing::Taken => return Ok(There::Nothing(None)),
        };
        self.tx
            .prepare_cached(
                "SELECT id, handle, seq, kind, collection, uid, recurrence FROM item WHERE id = ?1",
            )?
            .query_row([row], found)
            .map(There::Item)
    }

    fn find_handle(&self, handle: Handle) -> rusqlite::Result<Option<Found>> {
        self.tx
            .prepare_cached(concat!(
                "SELECT id, handle, seq, kind, collection, uid, recurrence FROM item ",
                "WHERE handle = ?1"
            ))?
            .query_row([handle.to_bytes()], found)
            .optional()
    }

    /// The sort keys that an item had before this batch. Parsed under the lock only where another writer changed
    /// the item, or its collection's summary, after it was looked up.
    fn sort_before(&mut self, index: usize, item: &Found) -> Result<SortKeys, Trouble> {
        if self.rows.has(item.id) {
            return Ok(SortKeys::new());
        }
        let collection = item.whose.collection;
        let deriver = self.derivers.of(self.tx, collection)?;
        if let Some(Before { seq, summary, keys }) = self.known.before.get(&index)
            && *seq == item.seq
            && deriver.is_of(summary)
        {
            return Ok(keys.clone());
        }
        let Some(stored) = self.derivers.read(self.tx, item.id)? else {
            return Ok(SortKeys::new());
        };
        let deriver = self.derivers.of(self.tx, collection)?;
        Ok(deriver.sort_of(&stored.bytes, &stored.place))
    }

    fn put(&mut self, index: usize, put: Put) -> Result<Outcome, Trouble> {
        if matches!(put.expect, Expect::At(_)) && self.find_collection(&put.collection)?.is_none() {
            return Ok(Outcome::Conflict(None, None));
        }
        let into = self.collection(&put.collection, put.prepared.kind())?;
        let item = match self.find_put(index, &into, &put)? {
            There::Item(item) => item,
            There::Nothing(_) if matches!(put.expect, Expect::At(_)) => {
                return Ok(Outcome::Conflict(None, None));
            }
            There::Nothing(free) => return Ok(Outcome::Added(self.add(&into, put, free)?)),
        };
        let second = match put.expect {
            Expect::SecondOfImport => true,
            Expect::At(_) => false,
            _ => self.is_second(&item)?,
        };
        let there = blob::must(self.tx, item.id)?;
        let same = same_card(&there, put.prepared.bytes());
        // The same words in a calendar that defines a zone otherwise say another time.
        let same = same && (second || self.same_frame(&item, &put)?);
        if second && !same {
            return self.put_beside(&into, put);
        }
        let outcome = match put.expect {
            Expect::At(seq) if seq != item.seq => {
                Outcome::Conflict(Some(item.handle), Some(item.seq))
            }
            _ if same => Outcome::Unchanged(item.handle),
            Expect::Nothing => Outcome::Conflict(Some(item.handle), Some(item.seq)),
            Expect::Older if is_newer(&there, put.prepared.bytes()) => {
                Outcome::Conflict(Some(item.handle), Some(item.seq))
            }
            Expect::At(_) => Outcome::Updated(item.handle),
            _ => match self.beside(&into, &item, &put)? {
                Some(beside) => Outcome::UnchangedBeside(beside),
                None => Outcome::Updated(item.handle),
            },
        };
        match outcome {
            Outcome::Updated(_) => self.update(index, &item, put)?,
            // What was left out was not put.
            Outcome::Conflict(..) => {}
            _ if self.once.is_some() => drop(self.met.insert(item.id)),
            _ => {}
        }
        Ok(outcome)
    }

    /// Did this operation put the item already, where it is one that puts each once?
    fn is_second(&self, item: &Found) -> rusqlite::Result<bool> {
        let Some(once) = &self.once else { return Ok(false) };
        if item.seq == self.seq || self.met.contains(&item.id) {
            return Ok(true);
        }
        let Some((_, id)) = once.began.filter(|(began, _)| item.seq >= *began) else {
            return Ok(false);
        };
        // By the last batch, or by one before that of somebody else who has changed it since.
        self.tx
            .prepare_cached(
                "SELECT EXISTS(SELECT 1 FROM batch WHERE seq = ?1 AND operation = ?3)
                     OR EXISTS(SELECT 1 FROM former f JOIN batch b ON b.seq = f.before
                               WHERE f.handle = ?2 AND b.operation = ?3)",
            )?
            .query_row((item.seq, item.handle.to_bytes(), id), |row| row.get(0))
    }

    /// The handle under which these bytes are kept beside an item of the same UID, if they are.
    fn beside(&mut self, into: &Of, item: &Found, put: &Put) -> rusqlite::Result<Option<Handle>> {
        let uid = derived_uid(put.prepared.bytes());
        Ok(match self.find(into, &uid, put.prepared.recurrence())? {
            There::Item(beside) if beside.id != item.id => Some(beside.handle),
            _ => None,
        })
    }

    /// Keeps a second item with a UID that another one had first, under a UID made from its bytes.
    fn put_beside(&mut self, into: &Of, mut put: Put) -> Result<Outcome, Trouble> {
        put.uid = derived_uid(put.prepared.bytes());
        put.derived_uid = true;
        Ok(match self.find(into, &put.uid, put.prepared.recurrence())? {
            There::Item(item) => Outcome::UnchangedBeside(item.handle),
            There::Nothing(free) => Outcome::AddedBeside(self.add(into, put, free)?),
        })
    }

    /// Adds an item, with this handle where one is known to be free.
    fn add(&mut self, into: &Of, mut put: Put, free: Option<Handle>) -> Result<Handle, Trouble> {
        let entry = self.derivers.of(self.tx, into.id)?.entry_for(&mut put.prepared);
        self.items += 1;
        let (id, ordinal) = (self.items, self.next_ordinal());
        let recurrence = put.prepared.recurrence();
        let handle = match free {
            Some(handle) => handle,
            None => {
                self.finder.has_collided();
                identity::give_handle(self.tx, into, &put.uid, recurrence, id)?
            }
        };
        self.given.insert(handle);
        let frame = self.frame_of(&put)?;
        self.inserts.item(self.tx)?.execute((
            id,
            into.id,
            put.prepared.kind() as i64,
            &put.uid,
            recurrence,
            derived(put.derived_uid, entry.names_uid),
            handle.to_bytes(),
            self.seq,
            ordinal,
            &entry.kept,
            frame,
        ))?;
        let whose = Whose::new(put.prepared.kind(), into.id, &put.uid, put.prepared.recurrence());
        let place = blob::place(self.tx, put.prepared.bytes)?;
        self.inserts.source(self.tx)?.execute((id, place.bytes, place.blob))?;
        self.added += 1;
        self.rows.put(id, whose, SortKeys::new(), entry);
        Ok(handle)
    }

    fn update(&mut self, index: usize, item: &Found, mut put: Put) -> Result<(), Trouble> {
        let old = self.sort_before(index, item)?;
        let collection = item.whose.collection;
        let entry = self.derivers.of(self.tx, collection)?.entry_for(&mut put.prepared);
        let ordinal = self.next_ordinal();
        self.keep_former(item, ordinal, false)?;
        let (kind, frame) = (put.prepared.kind(), self.frame_of(&put)?);
        let place = blob::place(self.tx, put.prepared.bytes)?;
        self.tx
            .prepare_cached("UPDATE source SET bytes = ?2, blob = ?3 WHERE item = ?1")?
            .execute((item.id, place.bytes, place.blob))?;
        self.tx
            .prepare_cached(
                "UPDATE item SET seq = ?2, ordinal = ?3, derived_uid = ?4, kept = ?5, kind = ?6, frame = ?7
                 WHERE id = ?1",
            )?
            .execute((
                item.id,
                self.seq,
                ordinal,
                derived(put.derived_uid, entry.names_uid),
                &entry.kept,
                kind as i64,
                frame,
            ))?;
        self.updated += 1;
        self.rows.put(item.id, item.whose.clone(), old, entry);
        Ok(())
    }

    fn same_frame(&self, item: &Found, put: &Put) -> rusqlite::Result<bool> {
        if !item.whose.is_of_calendar {
            return Ok(true);
        }
        let row: Option<i64> = self
            .tx
            .prepare_cached("SELECT frame FROM item WHERE id = ?1")?
            .query_row([item.id], |row| row.get(0))?;
        let frame = match row {
            Some(row) => frame::read(self.tx, row)?,
            None => None,
        };
        Ok(frame.as_deref().is_some_and(|is| put.prepared.frame().is_some_and(|to| is.says(to)))
            || (frame.is_none() && put.prepared.frame().is_none()))
    }

    fn frame_of(&mut self, put: &Put) -> rusqlite::Result<Option<i64>> {
        put.prepared.frame().map(|frame| self.frames.take(self.tx, frame)).transpose()
    }

    /// Copies what an item is into `former`. A large item's bytes get one more user instead of a copy.
    fn keep_former(&mut self, item: &Found, ordinal: i64, removed: bool) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(
                "INSERT INTO former(seq, ordinal, handle, collection, kind, removed, before, uid,
                                    recurrence, derived_uid, bytes, blob, frame, item, time)
                 SELECT ?2, ?3, i.handle, i.collection, i.kind, ?4, i.seq, i.uid, i.recurrence,
                        i.derived_uid, s.bytes, s.blob, i.frame, i.id,
                        CASE i.kind WHEN 1 THEN NULL ELSE (SELECT data FROM idx_time WHERE item = i.id) END
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
        let old = self.sort_before(index, &item)?;
        let ordinal = self.next_ordinal();
        self.keep_former(&item, ordinal, true)?;
        self.drop_item(&item, old)?;
        Ok(Outcome::Removed(handle))
    }

    fn drop_item(&mut self, item: &Found, old: SortKeys) -> Result<(), Trouble> {
        self.rows.remove(item.id, item.whose.clone(), old);
        identity::forget(self.tx, item.id)?;
        self.tx.prepare_cached("DELETE FROM source WHERE item = ?1")?.execute([item.id])?;
        self.tx.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([item.id])?;
        self.removed += 1;
        Ok(())
    }

    fn purge(&mut self, index: usize, handle: Handle) -> Result<Outcome, Trouble> {
        let item = self.find_handle(handle)?;
        if let Some(item) = &item {
            let old = self.sort_before(index, item)?;
            let ordinal = self.next_ordinal();
            self.keep_former(item, ordinal, true)?;
            self.drop_item(item, old)?;
        }
        let (erased, bytes) = purge::erase(self.tx, handle)?;
        self.former_bytes -= bytes;
        self.marked |= erased > 0;
        match (item, erased) {
            (None, 0) => Ok(Outcome::Conflict(None, None)),
            _ => {
                purge::owe_rewrite(self.tx, self.seq)?;
                Ok(Outcome::Removed(handle))
            }
        }
    }

    fn mark(&mut self, id: i64, undone: bool) -> Result<Outcome, Trouble> {
        match undone {
            // The number of the undoing operation is known when the batch is finished.
            true => self.undone.push(id),
            false => drop(
                self.tx
                    .prepare_cached("UPDATE operation SET undone_by = NULL WHERE id = ?1")?
                    .execute([id])?,
            ),
        }
        self.marked = true;
        Ok(Outcome::Done)
    }
}

/// As `item.derived_uid` has it.
fn derived(derived_uid: bool, names_uid: bool) -> i64 {
    i64::from(derived_uid) * (1 + i64::from(names_uid))
}

fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Conflict(..))
}

fn found(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found {
        id: row.get(0)?,
        handle: Handle::from_bytes(&row.get::<_, Vec<u8>>(1)?),
        seq: row.get(2)?,
        whose: Whose {
            is_of_calendar: Kind::of_number(row.get(3)?).family() == Family::Calendar,
            collection: row.get(4)?,
            uid: row.get(5)?,
            recurrence: row.get(6)?,
            is_new: false,
        },
    })
}
