//! The schema of a store, in prose and in SQL; its version, and the migrations between versions.
//!
//! `user_version` is 1000 x major + minor. A newer minor version only adds tables and columns, so
//! an older program may read the file; a newer major version is refused. Version 1.0 is one script
//! that is edited until the first release; `schema_digest` identifies its revision. Each version
//! has another digest, if need be by a comment in the script: so a damaged header is told from that
//! of another version.
//!
//! **Source of truth**
//!
//! * `meta(key, value, checksum)`: single values. `epoch`: 16 random hex digits, new after a
//!   restore. `last_seq`: the number of the last batch. `last_item`: the last row id given to an
//!   item; no row id is given twice. `collation_locale`: the locale of the sort keys.
//!   `history_from`: the first batch whose replaced versions are all kept. `schedule_history_from`:
//!   the first batch whose replaced schedules are all known; a purge erases the schedules of
//!   earlier batches, and while the interval index is incomplete none are recorded.
//!   `history_bytes`: the bytes that `item_history` holds. `pending_purge`: the handles of the
//!   items that a purge erases, from its beginning to its end. `stopped_operation:N`: the operation
//!   N went on while it was being undone, and writes no further batch. `schema_digest`: a digest of
//!   the SQL script that made the tables. `fingerprint:SET`: the fingerprint with which an index
//!   was filled, or its state, see `index_maintenance`. `index_rebuilds`: the number of rebuilds of
//!   all indexes on request. `zone_data_version`: the zone data of the schedules, or their state.
//! * `collection`: a named set of items of one type (1: address book, 2: calendar, 3: mail, 5:
//!   labels of messages, 6: saved searches, 7: commits of a repository). `handle_key` is made from
//!   the first name and never changes; the handles of items are made from it. A removed collection
//!   stays as a row, so that its removal can be undone. `seq`: the batch of its last change.
//!   `index_config`: which fields are indexed, and how, in the text form of the module
//!   `index_config`; empty: the default. `properties`: the property lines of the calendar itself
//!   (PRODID, X-WR-CALNAME, ...), as they came; `properties_checksum`: the checksum of them and of
//!   the row id, which `collection_history` keeps.
//! * `item`: one row for each item. The table is its own change log: `(seq, ordinal)` is the batch
//!   that last changed the item, and its place in that batch. `kind`: 1 contact, 2 event, 3 task, 4
//!   memo, 5 another calendar component, 6 message, 8 labels of a message, 9 saved search, 10
//!   commit. `uid` is unique in the collection, together with `recurrence_id`. `recurrence_id`: the
//!   value of RECURRENCE-ID without its zone; empty for a master and for a single item.
//!   `uid_origin`: 0 the bytes name the UID, 1 they name none, 2 they name a UID that another item
//!   of the collection has. `handle`: eight bytes made from the UID, see `handle`; an item is found
//!   by UID through its handle. `handle_collision` has the items for which another item has that
//!   handle, see `uid_lookup`. `stored_fields`: see below. `calendar_context`: a row of that table,
//!   or NULL.
//! * `source_bytes(item, bytes, blob_hash, checksum)`: the bytes of an item as they came. Source
//!   bytes above 64 KB are stored once in `blob`, under their SHA-256, which `blob_hash` contains.
//!   `blob.ref_count` counts the rows of `source_bytes` and `item_history` that refer to the blob.
//! * `calendar_context(id, calendar_version, zone_definitions, ref_count, checksum)`: the data of
//!   the enclosing calendar that a component needs: the version of the format (1 or 2), and the
//!   definitions of the time zones that the component names, as row ids of `zone_definition`
//!   separated by spaces. An item that needs nothing has none. `ref_count` counts the rows of
//!   `item` and `item_history` that name the row; a row without references is deleted.
//! * `zone_definition(id, hash, tzid, bytes, checksum)`: the text of a VTIMEZONE, stored once for
//!   all items. `hash` is the SHA-256 of the unfolded text. A definition that no context names is
//!   deleted.
//! * `operation`: an action of a person; an import is one operation of many batches. `started_ms`
//!   is in milliseconds since 1970, for display only. `store_age_ms`: the time for which the store
//!   had been used until then, see `history`. `added`, `updated`, `removed` count items.
//!   `undoes` and `undone_by` name other operations.
//! * `batch(seq, operation)`: the operation to which a batch belongs.
//! * `item_history`: one row for each version that a batch replaced (`removed` 0) or removed (1).
//!   `seq` is that batch and `since` the batch that had made the version; the other columns are as
//!   in `item` and `source_bytes`. Rows are kept for 90 days of use or 64 MB, whichever is less;
//!   the newest operation is always kept whole. The size limit does not apply to the operation
//!   before it, nor to an operation that is being undone. After a purge the row stays as a
//!   tombstone, without UID and bytes. `item`: the row id of the item; NULL: unknown. `schedule`:
//!   the item's schedule as `idx_schedule.data` had it; NULL: none or unknown.
//! * `schedule_history(seq, handle, schedule)`: the schedule of an item before a batch that changed
//!   another item of its series; NULL: none or unknown. Rows are kept as long as the rows of
//!   `item_history`.
//! * `collection_history`: the same for collections; `name` NULL: the collection did not exist.
//!
//! The column `checksum` of these tables is computed by `checksum` from the other columns and the
//! row id; without `ref_count`, which is counted again. The checksum of `source_bytes` and of
//! `item_history` covers the row id of the item and its bytes, also if these are in `blob`, so a
//! former version keeps the checksum that it had as the current one; it is NULL after a purge.
//! `row_checksum` of `item` and `item_history` covers the other columns of truth. It is apart
//! because bytes without their row, and a row without its bytes, can each be verified alone. See
//! `row_checksum` for the columns; each change of one of them writes the checksum, too.
//!
//! `index.db` and `commits.db` have the tables of `mail_schema`, too.
//!
//! **Derived data**, which may be dropped and refilled at any time:
//!
//! * `item.stored_fields`: values of a few fields, packed by `stored_fields`, so that a list need
//!   not parse source bytes. They are filled together with the text index and valid only with it;
//!   NULL if they would be too long. They are in the row of the item because one seek reads
//!   both.
//! * `idx_segment`, `idx_block`, `idx_fence`: the inverted index, see `larder-index` and
//!   `index_tables`. A segment lists the items of each term of one index (`derived_index` 1: text)
//!   and is valid for items that were last changed by batch `max_seq` or earlier. Terms before
//!   `from_term` have been merged into the segment `merged_into`. Its blocks are the rows of
//!   `idx_block` whose `id` is the segment's id times 2^24, plus `first_block` up to and without
//!   `end_block`; `idx_fence` has the first term of each block but the first. `has_oversized`: the
//!   segment has items that are always candidates.
//! * `idx_sort_fence`, `idx_sort_block`, `idx_sort_run`: the sort index, see `larder-index` and
//!   `sort_index_pages`. Each item has a position, its sort key and itself, for each field that its
//!   collection sorts by. The positions of a field and a collection are in blocks, in their order;
//!   a fence has the first position of a block and the number of its positions. `idx_sort_run` has
//!   the changes of large batches that are not in the blocks yet; it is empty when an import ends.
//! * `idx_schedule(item, zone_set, data)`: the schedule of an item, packed by `schedule`.
//!   `zone_set`: a row of `idx_zone_set`, or NULL if the schedule was computed without a zone.
//! * `idx_zone_set(id, names, fingerprint)`: system zones by name and zone definitions by hash,
//!   with the fingerprint of their rules when the schedules were computed.
//! * `idx_interval(row_class, start, end, item, series_summary)`: occurrences and alarms by time,
//!   see `interval_table`. `row_class` is the row id of the collection times 2^14 plus a class of
//!   length or of recurrence.

use crate::connection::WriteConnection;
use crate::damaged_object::DamagedObject;
use crate::data_directory::{DataDirectory, StoreFile};
use crate::database_copy::copy_atomically;
use crate::error::{DatabaseError, Error, Result, sqlite_error_at};
use crate::mail_schema::MAIL_SCHEMA_SQL;
use crate::meta::{
    LOCALE_KEY, find_meta_number, is_meta_value_damaged, write_meta, write_new_epoch,
};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::path::Path;

/// `Lrdr`: the application id by which a file is known as a store.
pub(crate) const APPLICATION_ID: i64 = 0x4c72_6472;
/// The newest major version that this program supports.
pub(crate) const SCHEMA_MAJOR: i64 = 1;
/// The newest minor version that this program supports.
pub(crate) const SCHEMA_MINOR: i64 = 0;

const SCHEMA_SQL: &str = "
CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value ANY NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE collection(
  id INTEGER PRIMARY KEY,
  handle_key BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  removed INTEGER NOT NULL DEFAULT 0,
  index_config TEXT NOT NULL DEFAULT '',
  properties BLOB,
  properties_checksum INTEGER,
  checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX collection_name ON collection(name) WHERE removed = 0;
CREATE TABLE item(
  id INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  uid TEXT NOT NULL,
  recurrence_id TEXT NOT NULL,
  uid_origin INTEGER NOT NULL,
  handle BLOB NOT NULL,
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  stored_fields BLOB,
  calendar_context INTEGER,
  row_checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX item_handle ON item(handle);
CREATE UNIQUE INDEX item_seq ON item(seq, ordinal);
CREATE INDEX item_collection ON item(collection);
CREATE INDEX item_uid_conflict ON item(id) WHERE uid_origin = 2;
CREATE INDEX item_override ON item(collection, uid) WHERE recurrence_id <> '';
CREATE TABLE handle_collision(
  collection INTEGER NOT NULL,
  uid_key TEXT NOT NULL,
  item INTEGER NOT NULL UNIQUE,
  PRIMARY KEY(collection, uid_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE source_bytes(
  item INTEGER PRIMARY KEY,
  bytes BLOB,
  blob_hash BLOB,
  checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE blob(
  hash BLOB NOT NULL UNIQUE,
  ref_count INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
CREATE TABLE calendar_context(
  id INTEGER PRIMARY KEY,
  calendar_version INTEGER NOT NULL,
  zone_definitions TEXT NOT NULL,
  ref_count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE(calendar_version, zone_definitions)
) STRICT;
CREATE TABLE zone_definition(
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  tzid TEXT NOT NULL,
  bytes BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE operation(
  id INTEGER PRIMARY KEY,
  verb TEXT NOT NULL,
  detail TEXT NOT NULL,
  started_ms INTEGER NOT NULL,
  store_age_ms INTEGER NOT NULL,
  added INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  undoes INTEGER,
  undone_by INTEGER,
  checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE batch(
  seq INTEGER PRIMARY KEY,
  operation INTEGER NOT NULL,
  checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE item_history(
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  handle BLOB NOT NULL,
  collection INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  since INTEGER NOT NULL,
  uid TEXT,
  recurrence_id TEXT,
  uid_origin INTEGER NOT NULL,
  bytes BLOB,
  blob_hash BLOB,
  checksum INTEGER,
  calendar_context INTEGER,
  item INTEGER,
  schedule BLOB,
  row_checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX item_history_seq ON item_history(seq, ordinal);
CREATE INDEX item_history_handle ON item_history(handle, seq, ordinal);
CREATE TABLE schedule_history(
  seq INTEGER NOT NULL,
  handle BLOB NOT NULL,
  schedule BLOB,
  PRIMARY KEY(seq, handle)
) STRICT, WITHOUT ROWID;
CREATE TABLE collection_history(
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  collection INTEGER NOT NULL,
  name TEXT,
  removed INTEGER NOT NULL,
  index_config TEXT NOT NULL DEFAULT '',
  properties BLOB,
  properties_checksum INTEGER,
  checksum INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(seq, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE idx_segment(
  id INTEGER PRIMARY KEY,
  derived_index INTEGER NOT NULL,
  max_seq INTEGER NOT NULL,
  first_block INTEGER NOT NULL,
  end_block INTEGER NOT NULL,
  from_term BLOB NOT NULL,
  bytes INTEGER NOT NULL,
  has_oversized INTEGER NOT NULL,
  merged_into INTEGER
) STRICT;
CREATE TABLE idx_block(id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE idx_fence(
  segment INTEGER NOT NULL,
  first_term BLOB NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY(segment, first_term, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE idx_sort_fence(
  field INTEGER NOT NULL,
  collection INTEGER NOT NULL,
  key BLOB NOT NULL,
  item INTEGER NOT NULL,
  position_count INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY(field, collection, key, item)
) STRICT, WITHOUT ROWID;
CREATE TABLE idx_sort_block(id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE idx_sort_run(
  id INTEGER PRIMARY KEY,
  change_count INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE TABLE idx_schedule(item INTEGER PRIMARY KEY, zone_set INTEGER, data BLOB NOT NULL) STRICT;
CREATE TABLE idx_zone_set(
  id INTEGER PRIMARY KEY,
  names TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  UNIQUE(names, fingerprint)
) STRICT;
CREATE TABLE idx_interval(
  row_class INTEGER,
  start INTEGER,
  end INTEGER,
  item INTEGER,
  series_summary BLOB,
  PRIMARY KEY(row_class, start, end, item)
) STRICT, WITHOUT ROWID;
";

/// The key in `meta` of the digest of the script that made the tables.
const SCHEMA_DIGEST_KEY: &str = "schema_digest";
/// A digest of [`SCHEMA_SQL`]. It identifies stores of another revision of the script, which is
/// edited without a new version.
const SCHEMA_DIGEST: i64 = fnv1a_64(SCHEMA_SQL.as_bytes(), FNV_OFFSET).cast_signed();
/// A digest of [`SCHEMA_SQL`] and [`MAIL_SCHEMA_SQL`], for a store with the tables of both.
const MAIL_SCHEMA_DIGEST: i64 =
    fnv1a_64(MAIL_SCHEMA_SQL.as_bytes(), SCHEMA_DIGEST.cast_unsigned()).cast_signed();
/// The hash of no bytes.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// The FNV-1a hash with 64 bits, continued from the hash of other bytes: a constant expression,
/// because opening a store takes less time than SHA-256.
const fn fnv1a_64(bytes: &[u8], mut hash: u64) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// A step from one version to the next. It runs in one transaction, after a backup.
pub(crate) struct Migration {
    /// The version that it starts from.
    pub(crate) from: (i64, i64),
    /// The version that it leads to.
    pub(crate) to: (i64, i64),
    /// The statements that make the changes.
    pub(crate) sql: &'static [&'static str],
}

/// All steps, oldest first: none yet, because no version before 1.0 was released.
pub(crate) const MIGRATIONS: &[Migration] = &[];

/// The version of a file, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// The file has no tables yet.
    Empty,
    /// The version of this program.
    Current,
    /// An older version: it has to be migrated before it is written.
    Older(i64, i64),
    /// A newer minor version: the store may only be read.
    NewerMinor(i64, i64),
}

/// Reads the version of a file from its header; refuses a file of another program and a newer major
/// version.
pub(crate) fn read_schema_state(tx: &ReadTransaction<'_>, path: &Path) -> Result<SchemaState> {
    let header = || -> rusqlite::Result<(i64, i64)> {
        let read = |pragma: &str| tx.prepare_cached(pragma)?.query_row([], |row| row.get(0));
        Ok((read("PRAGMA application_id")?, read("PRAGMA user_version")?))
    };
    let (id, version) = header().map_err(sqlite_error_at(path))?;
    let is_empty = || tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
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

/// Reads the version of a store, and refuses a file that this program cannot read: one of another
/// version or program, one whose header has changed, and those of [`refuse_other_schema`].
pub(crate) fn verify_version(
    tx: &ReadTransaction<'_>,
    path: &Path,
    store_file: StoreFile,
) -> Result<SchemaState> {
    let state = read_schema_state(tx, path);
    let is_other_version = matches!(
        state,
        Ok(SchemaState::Older(..) | SchemaState::NewerMinor(..))
            | Err(Error::SchemaTooNew { .. } | Error::NotAStore { .. })
    );
    if is_other_version && has_current_digest(tx) {
        let what = "the version in its header is not that of its tables".to_string();
        return Err(Error::Damaged { path: path.to_path_buf(), what });
    }
    let state = state?;
    refuse_other_schema(tx, state, path, store_file)?;
    Ok(state)
}

/// Returns whether the scripts of this version made the tables. A file of another program has no
/// digest.
fn has_current_digest(tx: &ReadTransaction<'_>) -> bool {
    let digest = find_meta_number(tx, SCHEMA_DIGEST_KEY);
    matches!(digest, Ok(Some(SCHEMA_DIGEST | MAIL_SCHEMA_DIGEST)))
}

/// Refuses a store that an unreleased revision of the script created, and one with the tables of
/// another store of a data directory. The former has a different digest, or none if it is older
/// than the digest.
fn refuse_other_schema(
    tx: &ReadTransaction<'_>,
    state: SchemaState,
    path: &Path,
    store_file: StoreFile,
) -> Result<()> {
    if state == SchemaState::Empty {
        return Ok(());
    }
    let digest: Option<i64> = tx
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")
        .and_then(|mut select| select.query_row([SCHEMA_DIGEST_KEY], |row| row.get(0)).optional())
        .map_err(sqlite_error_at(path))?;
    match digest {
        Some(digest) if state != SchemaState::Current || digest == schema_digest(store_file) => {
            Ok(())
        }
        Some(SCHEMA_DIGEST | MAIL_SCHEMA_DIGEST) => {
            let expected = store_file.database_name();
            Err(Error::OtherStore { path: path.to_path_buf(), expected })
        }
        // A damaged digest is no development version.
        Some(_) if is_meta_value_damaged(tx, SCHEMA_DIGEST_KEY) => {
            let object = DamagedObject::MetaValue { key: SCHEMA_DIGEST_KEY.into() };
            Err(sqlite_error_at(path)(DatabaseError::DamagedObject(object)))
        }
        _ => Err(Error::DevelopmentSchema { path: path.to_path_buf() }),
    }
}

/// Returns the digest of the scripts that make the tables of a store.
fn schema_digest(store_file: StoreFile) -> i64 {
    if store_file.is_disposable() { MAIL_SCHEMA_DIGEST } else { SCHEMA_DIGEST }
}

/// Returns the objects of the schema that this program does not create, and those that it creates
/// and that are missing; each with its type. For a store of the current version.
pub(crate) fn find_schema_differences(
    tx: &ReadTransaction<'_>,
    store_file: StoreFile,
) -> rusqlite::Result<Vec<SchemaDifference>> {
    let mail_sql = if store_file.is_disposable() { MAIL_SCHEMA_SQL } else { "" };
    let statements = SCHEMA_SQL.split(';').chain(mail_sql.split(';')).map(str::trim);
    let mut expected: Vec<&str> = statements.filter(|sql| !sql.is_empty()).collect();
    let mut differences = Vec::new();
    // SQLite's own indexes have no statement.
    let mut select =
        tx.prepare_cached("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let sql = row.get_ref(2)?.as_str()?;
        match expected.iter().position(|known| *known == sql) {
            Some(place) => drop(expected.swap_remove(place)),
            None => {
                differences
                    .push(SchemaDifference::Foreign { kind: row.get(0)?, name: row.get(1)? });
            }
        }
    }
    let missing = expected.into_iter().map(|sql| SchemaDifference::Missing { sql });
    differences.extend(missing);
    Ok(differences)
}

/// A difference between the schema of a file and the schema of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaDifference {
    /// An object that this program does not create, or with another definition.
    #[error("{kind} {name} was not created by larder")]
    Foreign {
        /// The type: table, index, trigger or view.
        kind: String,
        /// The name.
        name: String,
    },
    /// An object that is missing.
    #[error("missing in the schema: {}", .sql.split(['(', '\n']).next().unwrap_or(sql))]
    Missing {
        /// The statement that creates it.
        sql: &'static str,
    },
}

/// Refuses a file of the current version whose schema is not the one that this program creates: a
/// trigger, for instance, would change what is written.
pub(crate) fn verify_schema(
    tx: &ReadTransaction<'_>,
    path: &Path,
    store_file: StoreFile,
) -> Result<()> {
    let differences = find_schema_differences(tx, store_file).map_err(sqlite_error_at(path))?;
    match differences.first() {
        None => Ok(()),
        Some(difference) => {
            Err(Error::Damaged { path: path.to_path_buf(), what: difference.to_string() })
        }
    }
}

/// Makes the tables in an empty file.
pub(crate) fn create_tables(
    tx: &WriteTransaction<'_>,
    store_file: StoreFile,
    locale: &str,
) -> rusqlite::Result<()> {
    tx.execute_batch(SCHEMA_SQL)?;
    if store_file.is_disposable() {
        tx.execute_batch(MAIL_SCHEMA_SQL)?;
    }
    for (key, value) in
        [("last_seq", 0), ("last_item", 0), ("history_from", 1), ("history_bytes", 0)]
    {
        write_meta(tx, key, value)?;
    }
    write_meta(tx, LOCALE_KEY, locale.to_string())?;
    write_new_epoch(tx)?;
    set_version(tx, (SCHEMA_MAJOR, SCHEMA_MINOR), schema_digest(store_file))
}

/// Writes the version, and the digest of the script that makes the tables of this version.
fn set_version(
    tx: &WriteTransaction<'_>,
    (major, minor): (i64, i64),
    digest: i64,
) -> rusqlite::Result<()> {
    let version = major * 1000 + minor;
    tx.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}"
    ))?;
    write_meta(tx, SCHEMA_DIGEST_KEY, digest)
}

/// Migrates the file from version `from` to the current one, after a copy of it was made. Fails
/// with nothing changed, and no copy made, if the steps do not lead to the current version.
pub(crate) fn migrate(
    conn: &WriteConnection,
    directory: &DataDirectory,
    from: (i64, i64),
    steps: &[Migration],
) -> Result<()> {
    let path = directory.database_path();
    let mut version = from;
    let mut statements = Vec::new();
    while let Some(step) = steps.iter().find(|step| step.from == version) {
        statements.extend(step.sql);
        version = step.to;
    }
    if version != (SCHEMA_MAJOR, SCHEMA_MINOR) {
        return Err(Error::NoMigration { path, major: from.0, minor: from.1 });
    }
    let copy = directory.unused_copy_path(&format!("migration-{}.{}", from.0, from.1));
    copy_atomically(conn, &path, &copy)?;
    let tx = conn.begin_write().map_err(sqlite_error_at(&path))?;
    for sql in statements {
        tx.execute_batch(sql).map_err(sqlite_error_at(&path))?;
    }
    set_version(&tx, version, SCHEMA_DIGEST).map_err(sqlite_error_at(&path))?;
    tx.commit().map_err(sqlite_error_at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ReadConnection;
    use crate::{Store, StoreOptions};
    use std::path::PathBuf;

    /// Two test migrations from versions that do not exist.
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

    /// Checks the result of a migration, the file, and the copies next to it.
    type MigrationCheck<'a> = &'a dyn Fn(Result<()>, &WriteConnection, &[PathBuf]);

    /// Migrates a file of version 0.1 by these steps.
    fn check(steps: &[Migration], expect: MigrationCheck<'_>) {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let dir = scratch.path().join("data");
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        drop(Store::open(&dir, &options).expect("a store"));
        let directory = DataDirectory::new(&dir);
        let conn = WriteConnection::open(&directory.database_path()).expect("its file");
        let tx = conn.begin_write().expect("a transaction");
        set_version(&tx, (0, 1), SCHEMA_DIGEST).expect("an older version");
        tx.commit().expect("written");
        assert_eq!(
            read_schema_state(&conn.autocommit_read(), &dir).expect("a header"),
            SchemaState::Older(0, 1)
        );
        let result = migrate(&conn, &directory, (0, 1), steps);
        expect(result, &conn, &directory.list_copies().expect("a directory"));
    }

    fn version(conn: &ReadConnection) -> i64 {
        let sql = "PRAGMA user_version";
        conn.autocommit_read().query_row(sql, [], |row| row.get(0)).expect("a version")
    }

    /// Returns the value that the first step writes and the second one changes, if they were made.
    fn made_value(conn: &ReadConnection) -> rusqlite::Result<i64> {
        conn.autocommit_read().query_row("SELECT a FROM made", [], |row| row.get(0))
    }

    #[test]
    fn steps_lead_here_and_leave_a_copy() {
        check(STEPS, &|result, conn, copies| {
            result.expect("a way");
            assert_eq!(version(conn), SCHEMA_MAJOR * 1000 + SCHEMA_MINOR);
            assert_eq!(made_value(conn).expect("a row"), 8);
            let [copy] = copies else { panic!("one copy: {copies:?}") };
            assert!(copy.ends_with("data.db.before-migration-0.1"));
            let copy = ReadConnection::open(copy).expect("the copy");
            assert_eq!(version(&copy), 1);
            assert!(made_value(&copy).is_err(), "the copy is of before");
        });
    }

    #[test]
    fn steps_that_do_not_lead_here_change_nothing() {
        for steps in [&STEPS[..0], &STEPS[..1], &STEPS[1..]] {
            check(steps, &|result, conn, copies| {
                assert!(matches!(result, Err(Error::NoMigration { .. })), "{result:?}");
                assert_eq!((version(conn), copies.len()), (1, 0));
                assert!(made_value(conn).is_err());
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
            assert!(made_value(conn).is_err());
        });
    }
}
