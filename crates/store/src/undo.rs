//! Undo: what an operation changed is put back, and what somebody changed since is shown as a conflict.
//!
//! It writes nothing itself: each step becomes changes for `apply`. Apart from `history`, which keeps what
//! undo needs, because the comparison of three states (before, left, now) is its own matter.

use crate::batch::{Change, Expect, Operation, Outcome, Own, Put};
use crate::deriver::Placed;
use crate::error::{Error, Result, at};
use crate::handle::Handle;
use crate::history::{self, OPERATION, OperationId, OperationRow, PURGE, operation_row};
use crate::store::{Store, meta};
use crate::summary::Summary;
use crate::{Family, Seq, blob};
use rusqlite::OptionalExtension as _;
use std::mem;
use std::sync::Arc;

/// Changes of one batch of an undo.
const UNDO_BATCH: usize = 500;
/// ... or of so many bytes, read into memory and written at once.
const UNDO_BYTES: usize = 4 << 20;

/// What undoing came to.
#[derive(Debug, Clone, Default)]
pub struct Undo {
    /// The operation that undid it; `None` where nothing was written.
    pub operation: Option<OperationId>,
    /// Items put back or taken away again.
    pub items: u64,
    /// Items changed since by somebody else. Where there are any, the operation is not undone: nothing of it
    /// was put back, or, if they were changed while this ran, only part.
    pub conflicts: Vec<Conflict>,
}

/// An item that is not what the operation left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The item.
    pub handle: Handle,
    /// What the operation left; `None`: it was removed, or erased since.
    pub left: Option<Vec<u8>>,
    /// What is there now; `None`: nothing.
    pub now: Option<Vec<u8>>,
}

/// A version of an item in the middle of its history.
#[derive(Debug, Clone)]
struct State {
    collection: i64,
    uid: String,
    derived_uid: bool,
    place: Placed,
    bytes: Vec<u8>,
}

/// What one step of an undo has to do.
enum Step {
    Nothing,
    /// A change, and how many bytes it reads and writes.
    Change(Box<Change>, usize),
    Conflict(Conflict),
}

/// What is to be written of an undo at once.
#[derive(Default)]
struct Pending {
    changes: Vec<Change>,
    /// The items of the first changes.
    handles: Vec<Handle>,
    bytes: usize,
}

impl Store {
    /// Puts everything that `id` changed back to what it was before, as a new operation that began `at`.
    /// Refuses, and changes nothing, where something was changed since; what was changed and put back
    /// again in the meantime is no obstacle. What somebody changes while this runs is left as it is: then part
    /// is put back, the conflicts are returned, and the operation stays open. An undo that was interrupted,
    /// or stopped short in this way, is completed by the next one.
    ///
    /// # Errors
    /// [`Error::Forgotten`] where former versions are no longer kept, [`Error::Purged`], [`Error::AlreadyUndone`],
    /// [`Error::NoOperation`]; [`Error::CollectionChanged`] where a collection was renamed, indexed otherwise or removed since,
    /// [`Error::CollectionExists`] where another has the name of one that has to come back.
    pub fn undo(&mut self, id: OperationId, at: i64) -> Result<Undo> {
        self.writable()?;
        // Before anything is read: what is read of a later epoch is refused when it is written.
        let epoch = history::epoch(&self.conn).map_err(crate::error::at(&self.path))?;
        let of = self.undoable(id)?;
        let sql = crate::error::at;
        let handles = self.touched(id).map_err(sql(&self.path))?;
        let conflicts = self.conflicts(id, &handles).map_err(sql(&self.path))?;
        if !conflicts.is_empty() {
            return Ok(Undo { conflicts, ..Undo::default() });
        }
        let mut operation = Operation::new("undo", format!("operation {id}, {}", of.verb), at);
        operation.undoes = Some((epoch, id));
        let mut undo = Undo::default();
        let changes = self.collections_before(id)?;
        let mut pending = Pending { changes, ..Pending::default() };
        if !pending.changes.is_empty() {
            self.put_back(&mut operation, mem::take(&mut pending), &mut undo)?;
        }
        for handle in handles {
            let step = self.step(id, handle).map_err(sql(&self.path))?;
            // Others may write meanwhile, and what they write make the store forget.
            self.remembered(id)?;
            match step {
                Step::Nothing => {}
                Step::Change(change, bytes) => {
                    pending.changes.push(*change);
                    pending.handles.push(handle);
                    pending.bytes += bytes;
                }
                Step::Conflict(conflict) => undo.conflicts.push(conflict),
            }
            if pending.changes.len() >= UNDO_BATCH || pending.bytes >= UNDO_BYTES {
                self.put_back(&mut operation, mem::take(&mut pending), &mut undo)?;
            }
        }
        pending.changes.extend(self.collections_after(id).map_err(sql(&self.path))?);
        if undo.conflicts.is_empty() {
            // They are not made where an item of this last batch is in conflict.
            pending.changes.push(Change::Own(Own::Undone(id)));
            pending.changes.extend(of.undoes.map(|id| Change::Own(Own::Redone(id))));
        }
        self.put_back(&mut operation, pending, &mut undo)?;
        undo.operation = operation.id();
        Ok(undo)
    }

    /// Writes a batch of an undo; counts the items it put back, and notes those that somebody changed after
    /// they were looked at.
    fn put_back(
        &mut self,
        operation: &mut Operation,
        pending: Pending,
        undo: &mut Undo,
    ) -> Result<()> {
        let applied = self.apply(operation, pending.changes)?;
        let done = |outcome: &&Outcome| {
            matches!(outcome, Outcome::Added(_) | Outcome::Updated(_) | Outcome::Removed(_))
        };
        undo.items += applied.outcomes.iter().filter(done).count() as u64;
        let Some((_, id)) = operation.undoes else { return Ok(()) };
        for (outcome, handle) in applied.outcomes.iter().zip(pending.handles) {
            if matches!(outcome, Outcome::Conflict(..)) {
                undo.conflicts.push(self.refused(id, handle).map_err(at(&self.path))?);
            }
        }
        Ok(())
    }

    /// An item that could not be put back, as it is now. Even if it is again what the operation left, the
    /// undo has to be run once more.
    fn refused(&self, id: OperationId, handle: Handle) -> rusqlite::Result<Conflict> {
        if let Step::Conflict(conflict) = self.step(id, handle)? {
            return Ok(conflict);
        }
        let now = match self.item_now(handle)?.0 {
            Some(item) => self.state_of_item(item)?.map(|state| state.bytes),
            None => None,
        };
        Ok(Conflict { handle, left: now.clone(), now })
    }

    fn undoable(&self, id: OperationId) -> Result<OperationRow> {
        let path = &self.path;
        let row = self
            .conn
            .query_row(
                &format!("SELECT {OPERATION} FROM operation o WHERE id = ?1"),
                [id],
                operation_row,
            )
            .optional()
            .map_err(at(path))?
            .ok_or(Error::NoOperation { id })?;
        if let Some(by) = row.undone_by {
            return Err(Error::AlreadyUndone { id, by });
        }
        if row.verb == PURGE {
            return Err(Error::Purged { id });
        }
        self.remembered(id)?;
        Ok(row)
    }

    /// Fails where former versions that the operation replaced are no longer kept.
    fn remembered(&self, id: OperationId) -> Result<()> {
        let path = &self.path;
        let first: Option<Seq> = self
            .conn
            .prepare_cached("SELECT min(seq) FROM batch WHERE operation = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)))
            .map_err(at(path))?;
        let oldest = meta(&self.conn, "oldest").map_err(at(path))?;
        if first.is_some_and(|first| first < oldest) {
            return Err(Error::Forgotten { id });
        }
        Ok(())
    }

    /// The items that an operation added, changed or removed.
    fn touched(&self, id: OperationId) -> rusqlite::Result<Vec<Handle>> {
        self.conn
            .prepare_cached(
                "SELECT i.handle FROM batch b CROSS JOIN item i ON i.seq = b.seq WHERE b.operation = ?1
                 UNION
                 SELECT f.handle FROM batch b CROSS JOIN former f ON f.seq = b.seq WHERE b.operation = ?1
                 UNION
                 SELECT f.handle FROM former f JOIN batch b ON b.seq = f.before
                 WHERE b.operation = ?1",
            )?
            .query_map([id], |row| Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?)))?
            .collect()
    }

    fn conflicts(&self, id: OperationId, handles: &[Handle]) -> rusqlite::Result<Vec<Conflict>> {
        let mut conflicts = Vec::new();
        for &handle in handles {
            // What this operation changed last cannot be in conflict.
            let (item, seq) = self.item_now(handle)?;
            if item.is_some() && self.of(id, seq)? {
                continue;
            }
            if let Step::Conflict(conflict) = self.step(id, handle)? {
                conflicts.push(conflict);
            }
        }
        Ok(conflicts)
    }

    fn item_now(&self, handle: Handle) -> rusqlite::Result<(Option<i64>, Seq)> {
        let found = self
            .conn
            .prepare_cached("SELECT id, seq FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(found.map_or((None, 0), |(id, seq)| (Some(id), seq)))
    }

    /// Is this batch one of the operation's?
    fn of(&self, id: OperationId, seq: Seq) -> rusqlite::Result<bool> {
        let found: Option<OperationId> = self
            .conn
            .prepare_cached("SELECT operation FROM batch WHERE seq = ?1")?
            .query_row([seq], |row| row.get(0))
            .optional()?;
        Ok(found == Some(id))
    }

    /// Compares what an item was before the operation, what the operation left, and what is there now.
    fn step(&self, id: OperationId, handle: Handle) -> rusqlite::Result<Step> {
        let (item, seq) = self.item_now(handle)?;
        let now = match item {
            Some(item) => self.state_of_item(item)?,
            None => None,
        };
        let mut before: Option<Option<State>> = None;
        let mut left: Option<Option<State>> = None;
        let mut erased = false;
        for former in self.formers(handle)? {
            let ended = self.of(id, former.seq)?;
            let began = self.of(id, former.before)?;
            erased |= (ended || began) && former.state.is_none();
            if ended && before.is_none() {
                // A version that the operation itself made is not what was before it: nothing was.
                before = Some(if began { None } else { former.state.clone() });
            }
            if ended {
                left = former.removed.then_some(None);
            } else if began {
                left = Some(former.state);
                before = before.or(Some(None));
            }
        }
        if item.is_some() && self.of(id, seq)? {
            left = Some(now.clone());
        }
        let before = before.flatten();
        let left = left.flatten();
        let bytes = |state: &Option<State>| state.as_ref().map(|state| state.bytes.clone());
        // The same bytes in another frame are something else.
        let is = |state: &Option<State>| {
            state.as_ref().map(|state| (state.bytes.clone(), state.place.frame.clone()))
        };
        // What is so already, and what the operation left as it was; of what was purged nobody can say.
        let untouched = is(&before) == is(&left) && !erased;
        if untouched || is(&before) == is(&now) {
            return Ok(Step::Nothing);
        }
        if is(&left) != is(&now) {
            return Ok(Step::Conflict(Conflict { handle, left: bytes(&left), now: bytes(&now) }));
        }
        let length = |state: &Option<State>| state.as_ref().map_or(0, |state| state.bytes.len());
        let length = length(&before) + length(&now);
        let expect = if now.is_some() { Expect::At(seq) } else { Expect::Nothing };
        let change = match before {
            None => Change::Remove(handle, expect),
            Some(state) => self.put_of(state, expect)?,
        };
        Ok(Step::Change(Box::new(change), length))
    }

    fn put_of(&self, state: State, expect: Expect) -> rusqlite::Result<Change> {
        let (name, summary, family): (String, String, i64) = self
            .conn
            .prepare_cached("SELECT name, summary, family FROM collection WHERE id = ?1")?
            .query_row([state.collection], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let summary = Summary::of_stored(&summary, Family::of_number(family));
        let deriver = self.deriver.with(summary);
        Ok(Change::Put(Put {
            collection: Arc::from(name),
            uid: state.uid,
            derived_uid: state.derived_uid,
            prepared: deriver.stored(state.bytes, state.place),
            expect,
        }))
    }

    fn state_of_item(&self, item: i64) -> rusqlite::Result<Option<State>> {
        // In one statement: others may remove the item meanwhile, which is no damage.
        self.conn
            .prepare_cached(
                "SELECT i.collection, i.uid, i.derived_uid, coalesce(s.bytes, b.bytes), i.kind, i.recurrence, i.frame
                 FROM item i LEFT JOIN source s ON s.item = i.id LEFT JOIN blob b ON b.hash = s.blob
                 WHERE i.id = ?1",
            )?
            .query_row([item], |row| {
                Ok(State {
                    collection: row.get(0)?,
                    uid: row.get(1)?,
                    derived_uid: row.get(2)?,
                    bytes: row.get::<_, Option<_>>(3)?.ok_or_else(|| blob::missing(item))?,
                    place: Placed::of(&self.conn, row.get(4)?, row.get(5)?, row.get(6)?)?,
                })
            })
            .optional()
    }

    fn formers(&self, handle: Handle) -> rusqlite::Result<Vec<Former>> {
        self.conn
            .prepare_cached(
                "SELECT f.seq, f.before, f.removed, f.collection, f.uid, f.derived_uid,
                        coalesce(f.bytes, b.bytes), f.kind, coalesce(f.recurrence, ''), f.frame
                 FROM former f LEFT JOIN blob b ON b.hash = f.blob
                 WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
            )?
            .query_map([handle.to_bytes()], |row| {
                let uid: Option<String> = row.get(4)?;
                let bytes: Option<Vec<u8>> = row.get(6)?;
                let (collection, derived_uid) = (row.get(3)?, row.get(5)?);
                let place = Placed::of(&self.conn, row.get(7)?, row.get(8)?, row.get(9)?)?;
                let state = uid.zip(bytes).map(|(uid, bytes)| State {
                    collection,
                    uid,
                    derived_uid,
                    place,
                    bytes,
                });
                Ok(Former { seq: row.get(0)?, before: row.get(1)?, removed: row.get(2)?, state })
            })?
            .collect()
    }

    /// What to do to collections before the items are put back: those that the items were in, and those that
    /// the operation renamed, indexed otherwise or removed, the newest change first. Fails where one was changed in
    /// that respect since.
    fn collections_before(&self, id: OperationId) -> Result<Vec<Change>> {
        let mut changes = self.collections_of_items(id).map_err(at(&self.path))?;
        for changed in self.collections_changed(id).map_err(at(&self.path))? {
            let left = self.collection_left(id, &changed).map_err(at(&self.path))?;
            let Changed { collection, was, is } = changed;
            let Some(was) = was else {
                // Empty, it may have the name that another one is to get back; else it waits for its items.
                if !is.removed {
                    changes.push(Change::RemoveCollection(is.name));
                }
                continue;
            };
            let moved =
                (was.name != left.name || left.removed) && (was.name != is.name || is.removed);
            let indexed = was.summary != left.summary && was.summary != is.summary;
            if (moved && (&left.name, left.removed) != (&is.name, is.removed))
                || (indexed && (left.summary != is.summary || left.removed != is.removed))
            {
                return Err(Error::CollectionChanged { id, name: left.name });
            }
            let name = if moved { was.name } else { is.name.clone() };
            if moved && is.removed {
                changes.push(Change::Own(Own::RestoreCollection(collection)));
            }
            if name != is.name {
                changes.push(Change::RenameCollection(is.name, name.clone()));
            }
            if was.head != left.head && left.head == is.head {
                changes.push(Change::SetHead(name.clone(), was.head));
            }
            if indexed {
                let summary = Summary::of_stored(&was.summary, was.family);
                changes.push(Change::SetSummary(name, summary.as_ref().clone()));
            }
        }
        Ok(changes)
    }

    /// The removed collections in which items were that the operation removed.
    fn collections_of_items(&self, id: OperationId) -> rusqlite::Result<Vec<Change>> {
        self.conn
            .prepare_cached(
                "SELECT DISTINCT c.id
                 FROM batch b CROSS JOIN former f ON f.seq = b.seq JOIN collection c ON c.id = f.collection
                 WHERE b.operation = ?1 AND c.removed = 1 AND f.uid IS NOT NULL
                   AND f.before NOT IN (SELECT seq FROM batch WHERE operation = ?1)",
            )?
            .query_map([id], |row| row.get(0).map(|id| Change::Own(Own::RestoreCollection(id))))?
            .collect()
    }

    /// What the operation left of a collection: what the next one found, else what is so now.
    fn collection_left(&self, id: OperationId, changed: &Changed) -> rusqlite::Result<Look> {
        let next = self
            .conn
            .prepare_cached(
                "SELECT f.name, f.removed, f.summary, f.head FROM collection_former f
                 WHERE f.collection = ?2 AND f.seq >
                   (SELECT max(mine.seq) FROM collection_former mine JOIN batch b ON b.seq = mine.seq
                    WHERE mine.collection = ?2 AND b.operation = ?1)
                 ORDER BY f.seq, f.ordinal LIMIT 1",
            )?
            .query_row((id, changed.collection), |row| {
                let (summary, head) = (row.get(2)?, row.get(3)?);
                let family = changed.is.family;
                Ok(Look { name: row.get(0)?, removed: row.get(1)?, summary, family, head })
            })
            .optional()?;
        Ok(next.unwrap_or_else(|| changed.is.clone()))
    }

    /// The collections that were not there before the operation: to be taken away after their items.
    fn collections_after(&self, id: OperationId) -> rusqlite::Result<Vec<Change>> {
        let changed = self.collections_changed(id)?.into_iter();
        let made = changed.filter(|changed| changed.was.is_none() && !changed.is.removed);
        Ok(made.map(|made| Change::RemoveCollection(made.is.name)).collect())
    }

    fn collections_changed(&self, id: OperationId) -> rusqlite::Result<Vec<Changed>> {
        let mut select = self.conn.prepare_cached(
            "SELECT f.collection, iif(f.removed, NULL, f.name), f.summary, c.name, c.removed, c.summary, f.head, c.head,
                    c.family
             FROM batch b JOIN collection_former f ON f.seq = b.seq
             JOIN collection c ON c.id = f.collection
             WHERE b.operation = ?1 ORDER BY f.seq, f.ordinal",
        )?;
        let rows = select.query_map([id], |row| {
            let (name, summary): (Option<String>, String) = (row.get(1)?, row.get(2)?);
            let (head, family) = (row.get(6)?, Family::of_number(row.get(8)?));
            let was = name.map(|name| Look { name, removed: false, summary, family, head });
            let (summary, head) = (row.get(5)?, row.get(7)?);
            let is = Look { name: row.get(3)?, removed: row.get(4)?, summary, family, head };
            Ok(Changed { collection: row.get(0)?, was, is })
        })?;
        // The oldest row of a collection says what it was before the operation.
        let mut changed: Vec<Changed> = Vec::new();
        for row in rows {
            let row = row?;
            if changed.iter().all(|known| known.collection != row.collection) {
                changed.push(row);
            }
        }
        changed.reverse();
        Ok(changed)
    }
}

/// A collection that an operation made, renamed, indexed otherwise, removed or brought back.
struct Changed {
    collection: i64,
    /// Before the operation; `None`: it was not there.
    was: Option<Look>,
    is: Look,
}

/// What can change of a collection.
#[derive(Debug, Clone)]
struct Look {
    name: String,
    removed: bool,
    summary: String,
    family: Family,
    head: Option<Vec<u8>>,
}

struct Former {
    seq: Seq,
    before: Seq,
    removed: bool,
    state: Option<State>,
}
