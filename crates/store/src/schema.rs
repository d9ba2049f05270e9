//! The schema of `data.db`, in prose and in SQL; its versions, and the way from one to the next.
//!
//! `user_version` is 1000 x major + minor. A newer minor version only adds, so an older program may
//! read it; a newer major version is refused. Version 1.1 has the inverted index in place of tables
//! that 1.0 had for each kind of look-up, and no index of UIDs; 1.2 has the summaries of
//! collections; 1.4 has calendars, and no index of the batches of an operation; 1.5 has what items
//! were in time; all that follows:
//!
//! **What is the truth**
//!
//! * `meta(key, value)`: single values. `epoch`: 16 random hex digits, new after a restore. `seq`:
//!   the last batch. `items`: the last row number given to an item, never given again. `locale`:
//!   whose sort order the store keeps. `oldest`: the first batch whose former versions are all
//!   kept. `former_bytes`: how much they take. `rewrite`: there after a purge until the file was
//!   rewritten without what was purged. `told_since`: the last batch of which it cannot be told
//!   what items were in time before it, as a purge has erased that, or their index was not whole.
//!   `idx:SET`: the fingerprint with which an index set was filled, see `derived`.
//! * `collection`: a named set of items of one family (1: contacts, 2: a calendar). `key` is made
//!   from the first name and stays when the name changes; handles are made from it. A removed
//!   collection stays as a row, for undo. `seq` is its last change. `summary` says which fields are
//!   indexed and how, as `summary` writes it; empty: as is the default. `head`: the lines that a
//!   calendar has of its own (PRODID, X-WR-CALNAME, ...), as they came.
//! * `item`: one row an item; what exists now is its own log, by `(seq, ordinal)`: the batch that
//!   last changed it and its place in that batch. `kind`: 1 contact, 2 event, 3 task, 4 memo, 5
//!   another component of a calendar. `recurrence`: which occurrence of a series it stands for: the
//!   time of RECURRENCE-ID as it is written, without its zone; empty: it is a whole. `frame`: see
//!   there. `derived_uid`: 1 where the bytes name no UID, 2 where they name one that another item
//!   had first. `handle`: eight bytes, see `handle`; by way of it an item is found by its UID,
//!   which is its own in its collection. `collided` has the items for which that way is barred, see
//!   `identity`.
//! * `source`: an item's bytes as they came; above 64 KB they lie once in `blob`, by SHA-256, and
//!   `blob` here names them. `blob.uses` counts the rows of `source` and `former` that do.
//! * `frame(id, version, zones, uses)`: what the calendar around an item said that its own bytes do
//!   not: the version of the format (1 or 2), and the definitions of the time zones that the item
//!   names: numbers of `zone`, in order. An item that needs nothing of it has none. `uses` counts
//!   the rows of `item` and `former` that name it; without any it goes.
//! * `zone(id, hash, tzid, bytes)`: a VTIMEZONE, once for all items that use it, in whatever
//!   calendar: `hash` is that of its text after unfolding. What no frame names goes.
//! * `operation`: what a person did: one import is one operation of many batches. `at` is in
//!   milliseconds since 1970, for display only. `added`, `updated`, `removed`: how many items.
//!   `undoes`, `undone_by`: other operations.
//! * `batch(seq, operation)`: which operation a batch belongs to.
//! * `former`: one row for each version that a batch replaced (`removed` 0) or removed (1): the
//!   bytes that were there, and since which batch. Kept for 90 days or 64 MB, whichever is less,
//!   the newest operation always whole, and from the latter limit also the one before it and one
//!   that is being undone. After a purge the row stays, without uid and bytes, as a tombstone.
//!   `item`: the row that it was, or is, in; NULL: not known. `time`: what it was in time, as
//!   `idx_time.data` had it; NULL: nothing, or that is not known.
//! * `retimed(seq, handle, time)`: what items were in time until this batch, which changed another
//!   item of their series, and not their bytes. Kept as long as `former`.
//! * `collection_former`: the same for collections; `name` NULL: it did not exist.
//!
//! **What is derived from it**, and may be dropped and refilled at any time; `contact` and `event`
//! say from what:
//!
//! * `item.kept`: values of a few fields, as `kept` packs them. They are filled with index set 1,
//!   and to be used only with it; NULL where they would be too long. Beside the item's row, as one
//!   step leads to both.
//! * `idx_segment`, `idx_chunk`, `idx_fence`: the inverted index, see `index`. A segment says which
//!   items have which terms of one `kind` (1: to find by, 2: to sort by), and holds for items that
//!   were last changed by its `max_seq` or before; terms before `from_term` have gone on to the
//!   segment `merged_into`. Its chunks are the rows of `idx_chunk` whose `id` is the segment's
//!   number times 2^24, plus `first_chunk` up to, not including, `end_chunk`; `idx_fence` has the
//!   first term of each but the first. `large`: it has items that are always candidates. `net`: how
//!   many items more its sort terms put into an order than they take out; in `idx_fence` that of
//!   the chunks before.
//! * `idx_time(item, clock, data)`: what an item is in time, as `times` packs it. `clock`: the
//!   zones that went into it, a row of `idx_clock`; NULL: none. `idx_clock(id, name, fingerprint)`:
//!   zones of the system by their names, definitions by their hashes, and what they were like then.
//! * `idx_span`: when items are, and when their alarms ring, to be searched by a window, see
//!   `span`.

use crate::data_directory::DataDirectory;
use crate::error::{Error, Result, sqlite_error_at};
use rusqlite::Connection;
use std::path::Path;

/// `Lrdr`: how a file says that it is ours.
pub(crate) const APPLICATION_ID: i64 = 0x4c72_6472;
/// The newest major version known here.
pub(crate) const SCHEMA_MAJOR: i64 = 1;
/// The newest minor version known here.
pub(crate) const SCHEMA_MINOR: i64 = 5;

const ITEM_TABLES_SQL: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE collection(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  family INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  removed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX collection_name ON collection(name) WHERE removed = 0;
CREATE TABLE item(
  id INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  uid TEXT NOT NULL,
  recurrence TEXT NOT NULL,
  derived_uid INTEGER NOT NULL,
  handle BLOB NOT NULL,
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX item_handle ON item(handle);
CREATE UNIQUE INDEX item_seq ON item(seq, ordinal);
CREATE TABLE source(item INTEGER PRIMARY KEY, bytes BLOB, blob BLOB) STRICT;
CREATE TABLE blob(hash BLOB NOT NULL UNIQUE, uses INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE TABLE operation(
  id INTEGER PRIMARY KEY,
  verb TEXT NOT NULL,
  detail TEXT NOT NULL,
  at INTEGER NOT NULL,
  added INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  undoes INTEGER,
  undone_by INTEGER
) STRICT;
CREATE TABLE batch(seq INTEGER PRIMARY KEY, operation INTEGER NOT NULL) STRICT;
CREATE TABLE former(
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  handle BLOB NOT NULL,
  collection INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  before INTEGER NOT NULL,
  uid TEXT,
  recurrence TEXT,
  derived_uid INTEGER NOT NULL,
  bytes BLOB,
  blob BLOB
) STRICT;
CREATE UNIQUE INDEX former_seq ON former(seq, ordinal);
CREATE INDEX former_handle ON former(handle, seq, ordinal);
CREATE TABLE collection_former(
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  collection INTEGER NOT NULL,
  name TEXT,
  removed INTEGER NOT NULL,
  PRIMARY KEY(seq, ordinal)
) STRICT, WITHOUT ROWID;
";

/// What 1.1 brought: the tables of the inverted index, and the ways to an item.
const INDEX_TABLES_SQL: &str = "
CREATE INDEX item_collection ON item(collection);
CREATE TABLE collided(
  collection INTEGER NOT NULL, uid TEXT NOT NULL, item INTEGER NOT NULL UNIQUE, PRIMARY KEY(collection, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE idx_segment(
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  max_seq INTEGER NOT NULL,
  first_chunk INTEGER NOT NULL,
  end_chunk INTEGER NOT NULL,
  from_term BLOB NOT NULL,
  bytes INTEGER NOT NULL,
  large INTEGER NOT NULL,
  net INTEGER NOT NULL,
  merged_into INTEGER
) STRICT;
CREATE TABLE idx_chunk(id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE idx_fence(
  segment INTEGER NOT NULL, first BLOB NOT NULL, chunk INTEGER NOT NULL, net INTEGER NOT NULL,
  PRIMARY KEY(segment, first, chunk)
) STRICT, WITHOUT ROWID;
";

/// What 1.2 brought: a summary for each collection, and what it was before; kept values.
const INDEX_CONFIG_SQL: &str = "
ALTER TABLE collection ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE collection_former ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE item ADD COLUMN kept BLOB;
CREATE INDEX item_beside ON item(id) WHERE derived_uid = 2;
";

/// What 1.4 brought: calendars.
const CALENDAR_TABLES_SQL: &str = "
ALTER TABLE collection ADD COLUMN head BLOB;
ALTER TABLE collection_former ADD COLUMN head BLOB;
ALTER TABLE item ADD COLUMN frame INTEGER;
ALTER TABLE former ADD COLUMN frame INTEGER;
CREATE INDEX item_detached ON item(collection, uid) WHERE recurrence <> '';
CREATE TABLE zone(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, tzid TEXT NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE TABLE frame(
  id INTEGER PRIMARY KEY, version INTEGER NOT NULL, zones TEXT NOT NULL, uses INTEGER NOT NULL,
  UNIQUE(version, zones)
) STRICT;
CREATE TABLE idx_time(item INTEGER PRIMARY KEY, clock INTEGER, data BLOB NOT NULL) STRICT;
CREATE TABLE idx_clock(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, fingerprint TEXT NOT NULL, UNIQUE(name, fingerprint)
) STRICT;
";

/// What 1.5 brought: who follows what happens has to know what items were in time, and that of a
/// series follows from several.
const SCHEDULE_HISTORY_SQL: &str = "
ALTER TABLE former ADD COLUMN item INTEGER;
ALTER TABLE former ADD COLUMN time BLOB;
CREATE TABLE retimed(
  seq INTEGER NOT NULL, handle BLOB NOT NULL, time BLOB, PRIMARY KEY(seq, handle)
) STRICT, WITHOUT ROWID;
";

/// When items are.
const INTERVAL_INDEX_SQL: &str = "
CREATE TABLE idx_span(
  place INTEGER, start INTEGER, end INTEGER, item INTEGER, series BLOB,
  PRIMARY KEY(place, start, end, item)
) STRICT, WITHOUT ROWID;
";

/// A step from one version to the next. It runs in one transaction, after a backup.
pub(crate) struct Migration {
    /// The version it starts from.
    pub(crate) from: (i64, i64),
    /// The version it makes.
    pub(crate) to: (i64, i64),
    /// What changes.
    pub(crate) sql: &'static [&'static str],
}

/// All steps, oldest first.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { from: (1, 0), to: (1, 1), sql: &[FROM_1_0, INDEX_TABLES_SQL] },
    Migration { from: (1, 1), to: (1, 2), sql: &[INDEX_CONFIG_SQL] },
    Migration {
        from: (1, 2),
        to: (1, 4),
        sql: &[FROM_1_2, CALENDAR_TABLES_SQL, INTERVAL_INDEX_SQL],
    },
    Migration { from: (1, 3), to: (1, 4), sql: &[FROM_1_3, INTERVAL_INDEX_SQL] },
    Migration { from: (1, 4), to: (1, 5), sql: &[SCHEDULE_HISTORY_SQL] },
];

/// What is derived is derived anew.
const FROM_1_0: &str = "
DROP TABLE idx_value;
DROP TABLE idx_text;
DROP TABLE idx_large;
DROP TABLE idx_sort;
DROP INDEX item_uid;
DELETE FROM meta WHERE key LIKE 'idx:%';
";

/// An operation is looked for by who undoes it, who has the time to look at all batches; who writes
/// one has not. The first chunk of a segment has no fence any more.
const FROM_1_2: &str = "
DROP INDEX batch_operation;
DELETE FROM idx_fence WHERE chunk = 0;
";

/// The same, and what 1.3, which was never released, had for the times of items.
const FROM_1_3: &str = "
DROP INDEX IF EXISTS batch_operation;
DROP INDEX IF EXISTS idx_time_clock;
DROP TABLE IF EXISTS idx_slot;
DROP TABLE idx_span;
DELETE FROM idx_fence WHERE chunk = 0;
DELETE FROM idx_time;
DELETE FROM meta WHERE key LIKE 'idx:%';
";

/// What a file's header says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// Nothing is in it yet.
    Empty,
    /// Of the version known here.
    Current,
    /// Of an older version: it has to be migrated before it is written.
    Older(i64, i64),
    /// Of a newer minor version: to be read only.
    NewerMinor(i64, i64),
}

/// Looks at the header; refuses what is not ours and what is too new.
pub(crate) fn read_schema_state(conn: &Connection, path: &Path) -> Result<SchemaState> {
    let header = || -> rusqlite::Result<(i64, i64)> {
        let number = |of: &str| conn.prepare_cached(of)?.query_row([], |row| row.get(0));
        Ok((number("PRAGMA application_id")?, number("PRAGMA user_version")?))
    };
    let (id, version) = header().map_err(sqlite_error_at(path))?;
    let is_empty =
        || conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
    let (major, minor) = (version / 1000, version % 1000);
    match (id, version) {
        (0, 0) if is_empty().map_err(sqlite_error_at(path))? => Ok(SchemaState::Empty),
        (APPLICATION_ID, _) if (major, minor) == (SCHEMA_MAJOR, SCHEMA_MINOR) => {
            Ok(SchemaState::Current)
        }
        (APPLICATION_ID, _) if major > SCHEMA_MAJOR => {
            let known = format!("{SCHEMA_MAJOR}.{SCHEMA_MINOR}");
            Err(Error::SchemaTooNew { path: path.to_path_buf(), major, minor, known })
        }
        (APPLICATION_ID, _) if (major, minor) > (SCHEMA_MAJOR, SCHEMA_MINOR) => {
            Ok(SchemaState::NewerMinor(major, minor))
        }
        (APPLICATION_ID, _) => Ok(SchemaState::Older(major, minor)),
        _ => Err(Error::NotAStore { path: path.to_path_buf(), found: id }),
    }
}

/// Makes the tables in an empty file.
pub(crate) fn create_tables(conn: &Connection, locale: &str) -> rusqlite::Result<()> {
    conn.execute_batch(ITEM_TABLES_SQL)?;
    conn.execute_batch(INDEX_TABLES_SQL)?;
    conn.execute_batch(INDEX_CONFIG_SQL)?;
    conn.execute_batch(CALENDAR_TABLES_SQL)?;
    conn.execute_batch(INTERVAL_INDEX_SQL)?;
    conn.execute_batch(SCHEDULE_HISTORY_SQL)?;
    for (key, value) in [("seq", 0), ("items", 0), ("oldest", 1), ("former_bytes", 0)] {
        conn.execute("INSERT INTO meta VALUES(?1, ?2)", (key, value))?;
    }
    conn.execute("INSERT INTO meta VALUES('locale', ?1)", [locale])?;
    conn.execute("INSERT INTO meta VALUES('epoch', lower(hex(randomblob(8))))", [])?;
    set_version(conn, (SCHEMA_MAJOR, SCHEMA_MINOR))
}

fn set_version(conn: &Connection, (major, minor): (i64, i64)) -> rusqlite::Result<()> {
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", major * 1000 + minor)
}

/// Takes the file from version `from` to the one known here, with a copy of it made first. Fails
/// with nothing changed, and no copy made, where the steps do not lead there.
pub(crate) fn migrate(
    conn: &mut Connection,
    directory: &DataDirectory,
    from: (i64, i64),
    steps: &[Migration],
) -> Result<()> {
    let path = directory.database_path();
    let mut version = from;
    let mut way = Vec::new();
    while let Some(step) = steps.iter().find(|step| step.from == version) {
        way.extend(step.sql);
        version = step.to;
    }
    if version != (SCHEMA_MAJOR, SCHEMA_MINOR) {
        let what = format!("no way is known from schema {}.{}", from.0, from.1);
        return Err(Error::Damaged { path, what });
    }
    let copy = directory.unused_copy_path(&format!("migration-{}.{}", from.0, from.1));
    crate::backup::copy_atomically(conn, &path, &copy)?;
    let tx = conn.transaction().map_err(sqlite_error_at(&path))?;
    for sql in way {
        tx.execute_batch(sql).map_err(sqlite_error_at(&path))?;
    }
    set_version(&tx, version).map_err(sqlite_error_at(&path))?;
    tx.commit().map_err(sqlite_error_at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreOptions};
    use std::path::PathBuf;

    /// Two made-up steps that lead here from versions that never were.
    const STEPS: &[Migration] = &[
        Migration {
            from: (0, 1),
            to: (0, 2),
            sql: &["CREATE TABLE made(a)", "INSERT INTO made VALUES(7)"],
        },
        Migration {
            from: (0, 2),
            to: (SCHEMA_MAJOR, SCHEMA_MINOR),
            sql: &["UPDATE made SET a = a + 1"],
        },
    ];

    /// Looks at what came of a migration, at the file, and at the copies beside it.
    type MigrationCheck<'a> = &'a dyn Fn(Result<()>, &Connection, &[PathBuf]);

    /// Migrates a file of version 0.1 by these steps.
    fn check(steps: &[Migration], expect: MigrationCheck<'_>) {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let dir = scratch.path().join("data");
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        drop(Store::open(&dir, &options).expect("a store"));
        let directory = DataDirectory::new(&dir);
        let mut conn = Connection::open(directory.database_path()).expect("its file");
        set_version(&conn, (0, 1)).expect("an older version");
        assert_eq!(read_schema_state(&conn, &dir).expect("a header"), SchemaState::Older(0, 1));
        let result = migrate(&mut conn, &directory, (0, 1), steps);
        expect(result, &conn, &directory.list_copies().expect("a directory"));
    }

    fn version(conn: &Connection) -> i64 {
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
    }

    #[test]
    fn steps_lead_here_and_leave_a_copy() {
        check(STEPS, &|result, conn, copies| {
            result.expect("a way");
            assert_eq!(version(conn), SCHEMA_MAJOR * 1000 + SCHEMA_MINOR);
            let made: i64 =
                conn.query_row("SELECT a FROM made", [], |row| row.get(0)).expect("a row");
            assert_eq!(made, 8);
            let [copy] = copies else { panic!("one copy: {copies:?}") };
            assert!(copy.ends_with("data.db.before-migration-0.1"));
            let copy = Connection::open(copy).expect("the copy");
            assert_eq!(version(&copy), 1);
            assert!(copy.prepare("SELECT a FROM made").is_err(), "the copy is of before");
        });
    }

    #[test]
    fn steps_that_do_not_lead_here_change_nothing() {
        for steps in [&STEPS[..0], &STEPS[..1], &STEPS[1..]] {
            check(steps, &|result, conn, copies| {
                assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
                assert_eq!((version(conn), copies.len()), (1, 0));
                assert!(conn.prepare("SELECT a FROM made").is_err());
            });
        }
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let broken = Migration {
            from: (0, 2),
            to: (SCHEMA_MAJOR, SCHEMA_MINOR),
            sql: &["UPDATE nothing SET a = 1"],
        };
        let first = Migration { from: (0, 1), to: (0, 2), sql: STEPS[0].sql };
        check(&[first, broken], &|result, conn, copies| {
            assert!(matches!(result, Err(Error::Sqlite { .. })), "{result:?}");
            assert_eq!((version(conn), copies.len()), (1, 1));
            assert!(conn.prepare("SELECT a FROM made").is_err());
        });
    }
}
