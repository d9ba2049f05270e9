//! Operations and former versions: the log, undo, and what is forgotten when.

use crate::batch::{Change, Expect, Operation, Outcome, Put};
use crate::error::{Error, Result, at};
use crate::handle::Handle;
use crate::reader::Reader;
use crate::store::{Store, meta, set_meta};
use crate::{Seq, blob};
use rusqlite::{Connection, OptionalExtension as _, Transaction};
use std::sync::Arc;

/// The number of an operation, as `larder log` prints it.
pub type OperationId = i64;

/// Former versions are kept for 90 days, in milliseconds ...
const KEPT_FOR: i64 = 90 * 24 * 3600 * 1000;
/// ... or up to this many bytes, whichever is less.
const KEPT_BYTES: i64 = 64 << 20;
/// At most so many batches are forgotten at once, so that the lock is not held for long.
const FORGET_AT_ONCE: usize = 4;
/// Changes of one batch of an undo.
const UNDO_BATCH: usize = 500;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRow {
    /// Its number.
    pub id: OperationId,
    /// What was done: `import`, `add`, `edit`, ...
    pub verb: String,
    /// To what: names of files or collections.
    pub detail: String,
    /// When it began, in milliseconds since 1970.
    pub at: i64,
    /// Items added, updated and removed.
    pub counts: [u64; 3],
    /// The operation that this one undid.
    pub undoes: Option<OperationId>,
    /// The operation that undid this one.
    pub undone_by: Option<OperationId>,
}

/// What an item was for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The batch that made it so.
    pub since: Seq,
    /// The batch that replaced or removed it; `None`: it is so now.
    pub until: Option<Seq>,
    /// That batch removed it.
    pub removed: bool,
    /// The operation that made it so, where that is known.
    pub operation: Option<OperationRow>,
    /// The operation that replaced or removed it.
    pub ended_by: Option<OperationRow>,
    /// The bytes; `None` after a purge.
    pub bytes: Option<Vec<u8>>,
}

/// What undoing came to.
#[derive(Debug, Clone, Default)]
pub struct Undo {
    /// The operation that undid it; `None` where nothing was left to undo.
    pub operation: Option<OperationId>,
    /// Items put back or taken away again.
    pub items: u64,
    /// Items changed since by somebody else. Where there are any, nothing was undone.
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
    bytes: Vec<u8>,
}

/// Forgets what is too old or too much, and returns the bytes that are still kept. The operation `newest` is
/// always whole.
pub(crate) fn prune(
    tx: &Transaction<'_>,
    newest: OperationId,
    now: i64,
    mut bytes: i64,
) -> rusqlite::Result<i64> {
    for _ in 0..FORGET_AT_ONCE {
        let oldest: Option<(Seq, OperationId, i64)> = tx
            .prepare_cached(
                "SELECT b.seq, o.id, o.at FROM batch b JOIN operation o ON o.id = b.operation
                 WHERE b.seq = (SELECT min(seq) FROM former)",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((seq, operation, began)) = oldest else { break };
        let old = began < now - KEPT_FOR || bytes > KEPT_BYTES;
        if !old || operation == newest {
            break;
        }
        bytes -= forget(tx, "seq", seq)?;
        tx.prepare_cached("DELETE FROM former WHERE seq = ?1")?.execute([seq])?;
        tx.prepare_cached("DELETE FROM collection_former WHERE seq <= ?1")?.execute([seq])?;
        set_meta(tx, "oldest", seq + 1)?;
    }
    Ok(bytes)
}

/// Gives up the bytes of former versions, and returns how many those were.
fn forget(
    tx: &Transaction<'_>,
    column: &'static str,
    key: impl rusqlite::ToSql + Copy,
) -> rusqlite::Result<i64> {
    let mut select = tx.prepare_cached(&format!(
        "SELECT f.blob, coalesce(length(f.bytes), length(b.bytes), 0)
         FROM former f LEFT JOIN blob b ON b.hash = f.blob WHERE f.{column} = ?1"
    ))?;
    let rows = select
        .query_map([key], |row| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (hash, _) in &rows {
        blob::release(tx, hash.as_deref())?;
    }
    Ok(rows.iter().map(|(_, length)| length).sum())
}

/// Erases what is kept of an item, leaving tombstones. Returns how many versions, and how many bytes.
pub(crate) fn erase(tx: &Transaction<'_>, handle: Handle) -> rusqlite::Result<(usize, i64)> {
    let bytes = forget(tx, "handle", handle.to_bytes())?;
    let erased = tx.execute(
        "UPDATE former SET uid = NULL, recurrence = NULL, bytes = NULL, blob = NULL
         WHERE handle = ?1 AND uid IS NOT NULL",
        [handle.to_bytes()],
    )?;
    Ok((erased, bytes))
}

const OPERATION: &str =
    "o.id, o.verb, o.detail, o.at, o.added, o.updated, o.removed, o.undoes, o.undone_by";

fn operation_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<OperationRow> {
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(OperationRow {
        id: row.get(0)?,
        verb: row.get(1)?,
        detail: row.get(2)?,
        at: row.get(3)?,
        counts: [count(4)?, count(5)?, count(6)?],
        undoes: row.get(7)?,
        undone_by: row.get(8)?,
    })
}

impl Reader {
    /// The newest operations, newest first, those before `before` if given.
    pub fn operations(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<OperationRow>> {
        let run = || -> rusqlite::Result<Vec<OperationRow>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {OPERATION} FROM operation o WHERE ?1 IS NULL OR o.id < ?1
                     ORDER BY o.id DESC LIMIT ?2"
                ))?
                .query_map((before, limit as i64), operation_row)?
                .collect()
        };
        run().map_err(at(&self.path))
    }

    /// The operation that `undo` without a number means: the newest that is neither undone nor an undo.
    pub fn last_operation(&self) -> Result<Option<OperationRow>> {
        self.conn
            .query_row(
                &format!(
                    "SELECT {OPERATION} FROM operation o WHERE undone_by IS NULL AND undoes IS NULL
                     ORDER BY id DESC LIMIT 1"
                ),
                [],
                operation_row,
            )
            .optional()
            .map_err(at(&self.path))
    }

    /// What an item was, oldest first, as far as that is kept; the last one may be what it is now.
    pub fn versions(&self, handle: Handle) -> Result<Vec<Version>> {
        let run = || -> rusqlite::Result<Vec<Version>> {
            let mut select = self.conn.prepare_cached(
                "SELECT f.before, f.seq, f.removed, coalesce(f.bytes, b.bytes)
                 FROM former f LEFT JOIN blob b ON b.hash = f.blob
                 WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
            )?;
            let mut versions = select
                .query_map([handle.to_bytes()], |row| {
                    let (since, until): (Seq, Seq) = (row.get(0)?, row.get(1)?);
                    Ok(Version {
                        since,
                        until: Some(until),
                        removed: row.get(2)?,
                        operation: operation_of(&self.conn, since)?,
                        ended_by: operation_of(&self.conn, until)?,
                        bytes: row.get(3)?,
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let now: Option<(i64, Seq)> = self
                .conn
                .prepare_cached("SELECT id, seq FROM item WHERE handle = ?1")?
                .query_row([handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some((id, since)) = now {
                versions.push(Version {
                    since,
                    until: None,
                    removed: false,
                    operation: operation_of(&self.conn, since)?,
                    ended_by: None,
                    bytes: blob::source(&self.conn, id)?,
                });
            }
            Ok(versions)
        };
        run().map_err(at(&self.path))
    }

    /// The handles of removed items of which a version is kept, for a beginning of a handle.
    pub fn removed_by_handle(
        &self,
        prefix: crate::HandlePrefix,
        limit: usize,
    ) -> Result<Vec<Handle>> {
        let run = || -> rusqlite::Result<Vec<Handle>> {
            self.conn
                .prepare_cached(
                    "SELECT DISTINCT handle FROM former
                     WHERE handle BETWEEN ?1 AND ?2 AND uid IS NOT NULL ORDER BY handle LIMIT ?3",
                )?
                .query_map(
                    (prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64),
                    |row| Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?)),
                )?
                .collect()
        };
        run().map_err(at(&self.path))
    }
}

fn operation_of(conn: &Connection, seq: Seq) -> rusqlite::Result<Option<OperationRow>> {
    conn.prepare_cached(&format!(
        "SELECT {OPERATION} FROM batch b JOIN operation o ON o.id = b.operation WHERE b.seq = ?1"
    ))?
    .query_row([seq], operation_row)
    .optional()
}

/// What one step of an undo has to do.
enum Step {
    Nothing,
    Change(Box<Change>),
    Conflict(Conflict),
}

impl Store {
    /// Puts everything that `id` changed back to what it was before, as a new operation that began `at`.
    /// Refuses, and changes nothing, where something was changed since; what was changed and put back
    /// again in the meantime is no obstacle. An undo that was interrupted is completed by the next one.
    ///
    /// # Errors
    /// [`Error::Forgotten`] where former versions are no longer kept, [`Error::AlreadyUndone`],
    /// [`Error::NoOperation`]; [`Error::CollectionExists`] where another collection has the name of one that has
    /// to come back.
    pub fn undo(&mut self, id: OperationId, at: i64) -> Result<Undo> {
        self.writable()?;
        let of = self.undoable(id)?;
        let sql = crate::error::at;
        let handles = self.touched(id).map_err(sql(&self.path))?;
        let conflicts = self.conflicts(id, &handles).map_err(sql(&self.path))?;
        if !conflicts.is_empty() {
            return Ok(Undo { conflicts, ..Undo::default() });
        }
        let mut operation = Operation::new("undo", format!("operation {id}, {}", of.verb), at);
        operation.undoes = Some(id);
        let mut undo = Undo::default();
        let first = self.collections_before(id).map_err(sql(&self.path))?;
        if !first.is_empty() {
            put_back(self, &mut operation, first)?;
        }
        let mut batch = Vec::new();
        for handle in handles {
            match self.step(id, handle).map_err(sql(&self.path))? {
                Step::Nothing => {}
                Step::Change(change) => batch.push(*change),
                Step::Conflict(conflict) => undo.conflicts.push(conflict),
            }
            if batch.len() >= UNDO_BATCH {
                undo.items += put_back(self, &mut operation, std::mem::take(&mut batch))?;
            }
        }
        batch.extend(self.collections_after(id).map_err(sql(&self.path))?);
        batch.push(Change::Undone(id));
        batch.extend(of.undoes.map(Change::Redone));
        undo.items += put_back(self, &mut operation, batch)?;
        undo.operation = operation.id;
        Ok(undo)
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
        let first: Option<Seq> = self
            .conn
            .query_row("SELECT min(seq) FROM batch WHERE operation = ?1", [id], |row| row.get(0))
            .map_err(at(path))?;
        let oldest = meta(&self.conn, "oldest").map_err(at(path))?;
        if first.is_some_and(|first| first < oldest) {
            return Err(Error::Forgotten { id });
        }
        Ok(row)
    }

    /// The items that an operation added, changed or removed.
    fn touched(&self, id: OperationId) -> rusqlite::Result<Vec<Handle>> {
        self.conn
            .prepare_cached(
                "SELECT i.handle FROM batch b JOIN item i ON i.seq = b.seq WHERE b.operation = ?1
                 UNION
                 SELECT f.handle FROM batch b JOIN former f ON f.seq = b.seq WHERE b.operation = ?1
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
        // What is so already, and what the operation left as it was; of what was purged nobody can say.
        let untouched = bytes(&before) == bytes(&left) && !erased;
        if untouched || bytes(&before) == bytes(&now) {
            return Ok(Step::Nothing);
        }
        if bytes(&left) != bytes(&now) {
            return Ok(Step::Conflict(Conflict { handle, left: bytes(&left), now: bytes(&now) }));
        }
        let expect = if now.is_some() { Expect::At(seq) } else { Expect::Nothing };
        let change = match before {
            None => Change::Remove(handle, expect),
            Some(state) => self.put_of(state, expect)?,
        };
        Ok(Step::Change(Box::new(change)))
    }

    fn put_of(&self, state: State, expect: Expect) -> rusqlite::Result<Change> {
        let name: String = self
            .conn
            .prepare_cached("SELECT name FROM collection WHERE id = ?1")?
            .query_row([state.collection], |row| row.get(0))?;
        Ok(Change::Put(Put {
            collection: Arc::from(name),
            uid: state.uid,
            derived_uid: state.derived_uid,
            prepared: self.deriver.stored(state.bytes),
            expect,
        }))
    }

    fn state_of_item(&self, item: i64) -> rusqlite::Result<Option<State>> {
        let bytes = blob::source(&self.conn, item)?.unwrap_or_default();
        self.conn
            .prepare_cached("SELECT collection, uid, derived_uid FROM item WHERE id = ?1")?
            .query_row([item], |row| {
                Ok(State {
                    collection: row.get(0)?,
                    uid: row.get(1)?,
                    derived_uid: row.get(2)?,
                    bytes,
                })
            })
            .optional()
    }

    fn formers(&self, handle: Handle) -> rusqlite::Result<Vec<Former>> {
        self.conn
            .prepare_cached(
                "SELECT f.seq, f.before, f.removed, f.collection, f.uid, f.derived_uid,
                        coalesce(f.bytes, b.bytes)
                 FROM former f LEFT JOIN blob b ON b.hash = f.blob
                 WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
            )?
            .query_map([handle.to_bytes()], |row| {
                let uid: Option<String> = row.get(4)?;
                let bytes: Option<Vec<u8>> = row.get(6)?;
                let (collection, derived_uid) = (row.get(3)?, row.get(5)?);
                let state = uid.zip(bytes).map(|(uid, bytes)| State {
                    collection,
                    uid,
                    derived_uid,
                    bytes,
                });
                Ok(Former { seq: row.get(0)?, before: row.get(1)?, removed: row.get(2)?, state })
            })?
            .collect()
    }

    /// What to do to collections before the items are put back: those that the items were in, and those that
    /// the operation renamed or removed, the newest change first.
    fn collections_before(&self, id: OperationId) -> rusqlite::Result<Vec<Change>> {
        let mut changes = self
            .conn
            .prepare_cached(
                "SELECT DISTINCT c.id
                 FROM batch b JOIN former f ON f.seq = b.seq JOIN collection c ON c.id = f.collection
                 WHERE b.operation = ?1 AND c.removed = 1 AND f.uid IS NOT NULL
                   AND f.before NOT IN (SELECT seq FROM batch WHERE operation = ?1)",
            )?
            .query_map([id], |row| row.get(0).map(Change::RestoreCollection))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        for Changed { collection, was, is, is_removed } in self.collections_changed(id)? {
            let Some(was) = was else {
                // Empty, it may have the name that another one is to get back; else it waits for its items.
                if !is_removed {
                    changes.push(Change::RemoveCollection(is));
                }
                continue;
            };
            if is_removed {
                changes.push(Change::RestoreCollection(collection));
            }
            if was != is {
                changes.push(Change::RenameCollection(is, was));
            }
        }
        Ok(changes)
    }

    /// The collections that were not there before the operation: to be taken away after their items.
    fn collections_after(&self, id: OperationId) -> rusqlite::Result<Vec<Change>> {
        let changed = self.collections_changed(id)?.into_iter();
        let made = changed.filter(|changed| changed.was.is_none() && !changed.is_removed);
        Ok(made.map(|made| Change::RemoveCollection(made.is)).collect())
    }

    fn collections_changed(&self, id: OperationId) -> rusqlite::Result<Vec<Changed>> {
        let mut select = self.conn.prepare_cached(
            "SELECT f.collection, iif(f.removed, NULL, f.name), c.name, c.removed
             FROM batch b JOIN collection_former f ON f.seq = b.seq
             JOIN collection c ON c.id = f.collection
             WHERE b.operation = ?1 ORDER BY f.seq, f.ordinal",
        )?;
        let rows = select.query_map([id], |row| {
            let (collection, was) = (row.get(0)?, row.get(1)?);
            Ok(Changed { collection, was, is: row.get(2)?, is_removed: row.get(3)? })
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

/// A collection that an operation made, renamed, removed or brought back.
struct Changed {
    collection: i64,
    /// Its name before the operation; `None`: it was not there.
    was: Option<String>,
    is: String,
    is_removed: bool,
}

struct Former {
    seq: Seq,
    before: Seq,
    removed: bool,
    state: Option<State>,
}

/// Writes a batch of an undo and counts the items it put back.
fn put_back(store: &mut Store, operation: &mut Operation, batch: Vec<Change>) -> Result<u64> {
    let applied = store.apply(operation, batch)?;
    let items = applied.outcomes.iter().filter(|outcome| {
        matches!(outcome, Outcome::Added(_) | Outcome::Updated(_) | Outcome::Removed(_))
    });
    Ok(items.count() as u64)
}
