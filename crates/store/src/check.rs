//! Verifying a store: pages, references between rows, and the indexes against the source bytes.
//!
//! All of it happens in one read transaction, because tables are compared with each other: a batch
//! between two transactions would look like a fault. So that others can reset the write-ahead log
//! meanwhile, the transaction is one of a copy without a name, which nobody writes to. The copy is
//! made in one step, for which the log is kept: a copy in several steps would begin again after
//! each batch of another process. Only without room for a copy, the store itself is read for the
//! whole length of the check.

use crate::connection::integrity_check;
use crate::damage_scan;
use crate::damaged_object::DamagedObject;
use crate::database_copy::TempCopy;
use crate::derived_index::DerivedIndex;
use crate::error::{DatabaseError, Error, Result, sqlite_error_at};
use crate::index_digest;
use crate::mail_check::find_mail_faults;
use crate::meta::{MetaTable, read_meta_number};
use crate::pending_work::PendingWork;
use crate::read_access::{is_forbidden, is_unwritable};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::schema::{self, SchemaDifference, SchemaState};
use crate::store::Store;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// The faults; empty: the store is sound.
    pub faults: Vec<Fault>,
    /// The number of items.
    pub items: u64,
    /// The number of replaced versions, and of their bytes.
    pub history: (u64, u64),
    /// Size of the database, in bytes.
    pub database_bytes: u64,
    /// The size of its write-ahead log in bytes.
    pub wal_bytes: u64,
    /// The number of items that a rebuild extracted again.
    pub rebuilt_items: u64,
    /// The former file, if a rebuild replaced a damaged one.
    pub damaged_copy: Option<PathBuf>,
}

impl CheckReport {
    /// Returns whether pages of the file are damaged, or its schema is foreign: then a rebuild
    /// copies the items into a new file.
    #[must_use]
    pub fn has_damaged_pages(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Page(_) | Fault::Schema(_)))
    }
}

/// A fault of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A finding of SQLite's integrity check.
    #[error("the database is damaged: {0}")]
    Page(String),
    /// The schema is not the one that this program creates.
    #[error("{0}")]
    Schema(SchemaDifference),
    /// An object does not match its checksum.
    #[error("{0} does not match its checksum")]
    Checksum(DamagedObject),
    /// Rows whose references do not match.
    #[error("{count} {what}")]
    Inconsistent {
        /// The rows, and their fault.
        what: &'static str,
        /// The number of rows.
        count: u64,
    },
    /// The number of bytes that the store records for the replaced versions is wrong.
    #[error("history_bytes in table meta is {stored}, expected {expected}")]
    HistoryBytes {
        /// The recorded number.
        stored: i64,
        /// The sum of the lengths of the versions.
        expected: i64,
    },
    /// An index does not match the source bytes.
    #[error("the {index} index does not match the items ({stored} entries, expected {expected})")]
    Index {
        /// The name of the index.
        index: &'static str,
        /// The number of stored entries.
        stored: u64,
        /// The number of expected entries.
        expected: u64,
    },
    /// An index cannot be read.
    #[error("the {index} index is malformed")]
    Malformed {
        /// The name of the index.
        index: &'static str,
    },
    /// Work was interrupted.
    #[error("{0}")]
    Pending(PendingWork),
    /// An index has another fingerprint, and is not used until it is rebuilt.
    #[error("the {index} index is out of date and not used")]
    Stale {
        /// The name of the index.
        index: &'static str,
    },
}

impl Fault {
    /// Returns the work that was interrupted, if that is the fault.
    #[must_use]
    pub fn pending_work(&self) -> Option<PendingWork> {
        match self {
            Fault::Pending(work) => Some(*work),
            _ => None,
        }
    }
}

/// Queries that count faulty rows.
const REFERENCE_CHECKS: &[(&str, &str)] = &[
    (
        "items without source bytes",
        // The bytes of messages are in the files of maildirs, those of commits in git.
        "SELECT count(*) FROM item
         WHERE kind NOT IN (6, 10) AND id NOT IN (SELECT item FROM source_bytes)",
    ),
    (
        "source bytes without an item",
        "SELECT count(*) FROM source_bytes WHERE item NOT IN (SELECT id FROM item)",
    ),
    (
        "source bytes that are neither in their row nor in a blob",
        "SELECT count(*) FROM source_bytes WHERE (bytes IS NULL) = (blob_hash IS NULL)
            OR (blob_hash IS NOT NULL AND blob_hash NOT IN (SELECT hash FROM blob))",
    ),
    (
        "blobs with a wrong reference count",
        "SELECT count(*) FROM blob WHERE ref_count <>
           (SELECT count(*) FROM source_bytes WHERE blob_hash = blob.hash)
           + (SELECT count(*) FROM item_history WHERE blob_hash = blob.hash)",
    ),
    (
        "items without a collection",
        "SELECT count(*) FROM item WHERE collection NOT IN
           (SELECT id FROM collection WHERE removed = 0)",
    ),
    (
        "items with an unknown batch",
        "SELECT count(*) FROM item WHERE seq NOT IN (SELECT seq FROM batch)",
    ),
    (
        "duplicate UIDs in one collection",
        "SELECT count(*) FROM (SELECT 1 FROM item GROUP BY collection, uid, recurrence_id HAVING count(*) > 1)",
    ),
    (
        "batches without an operation",
        "SELECT count(*) FROM batch WHERE operation NOT IN (SELECT id FROM operation)",
    ),
    (
        "batches after the last sequence number",
        "SELECT count(*) FROM batch WHERE seq > (SELECT value FROM meta WHERE key = 'last_seq')",
    ),
    (
        "calendar contexts with a wrong reference count",
        "SELECT count(*) FROM calendar_context context WHERE ref_count <>
           (SELECT count(*) FROM item WHERE calendar_context = context.id)
           + (SELECT count(*) FROM item_history WHERE calendar_context = context.id)",
    ),
    (
        "items and versions whose calendar context is missing",
        "SELECT (SELECT count(*) FROM item WHERE calendar_context IS NOT NULL AND calendar_context NOT IN (SELECT id FROM calendar_context))
           + (SELECT count(*) FROM item_history WHERE calendar_context IS NOT NULL AND calendar_context NOT IN (SELECT id FROM calendar_context))",
    ),
    (
        "time-zone definitions that no calendar context names",
        "SELECT count(*) FROM zone_definition WHERE id NOT IN
           (SELECT value FROM calendar_context, json_each(
             iif(json_valid('[' || replace(zone_definitions, ' ', ',') || ']'), '[' || replace(zone_definitions, ' ', ',') || ']', '[]')))",
    ),
    (
        "calendar contexts with a missing time-zone definition",
        "SELECT count(*) FROM calendar_context, json_each(
           iif(json_valid('[' || replace(zone_definitions, ' ', ',') || ']'), '[' || replace(zone_definitions, ' ', ',') || ']', '[]'))
         WHERE value NOT IN (SELECT id FROM zone_definition)",
    ),
    (
        "handle collisions without an item",
        "SELECT count(*) FROM handle_collision WHERE NOT EXISTS
           (SELECT 1 FROM item WHERE id = handle_collision.item AND collection = handle_collision.collection
              AND uid_key = uid || iif(recurrence_id = '', '', char(0) || recurrence_id))",
    ),
    (
        "entries of the interval index without an item",
        "SELECT (SELECT count(*) FROM idx_schedule WHERE item NOT IN (SELECT id FROM item))
           + (SELECT count(*) FROM idx_interval WHERE item NOT IN (SELECT item FROM idx_schedule))",
    ),
];

/// The number of bytes in `item_history`.
const COUNT_HISTORY_BYTES: &str =
    "SELECT coalesce(sum(coalesce(length(version.bytes), length(blob.bytes), 0)), 0)
     FROM item_history version LEFT JOIN blob ON blob.hash = version.blob_hash";

impl Store {
    /// Verifies the whole store without changing it.
    pub fn check(&self) -> Result<CheckReport> {
        let path = &self.path;
        // Without room for a copy, there is no room for a write-ahead log that grows either. A user
        // who may not make one checks the store as it is.
        let copy = match TempCopy::create_unnamed(
            &self.conn,
            &self.directory,
            self.directory.path(),
            "check",
        ) {
            Err(error) if is_unwritable(self.directory.path(), &error) || is_forbidden(&error) => {
                None
            }
            Err(Error::Damaged { what, .. }) => {
                return Err(Error::Damaged { path: path.clone(), what });
            }
            copy => Some(copy?),
        };
        let conn = copy.as_ref().map_or(&*self.conn, |copy| &copy.conn);
        let tx = conn.begin_read().map_err(sqlite_error_at(path))?;
        let page_faults = integrity_check(&tx).map_err(sqlite_error_at(path))?;
        let mut report = CheckReport {
            faults: page_faults.into_iter().map(Fault::Page).collect(),
            ..CheckReport::default()
        };
        for (what, sql) in REFERENCE_CHECKS {
            let count: i64 =
                tx.query_row(sql, [], |row| row.get(0)).map_err(sqlite_error_at(path))?;
            if count > 0 {
                report.faults.push(Fault::Inconsistent { what, count: count.unsigned_abs() });
            }
        }
        let count = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
        // A newer minor version has tables and columns of its own.
        if schema::read_schema_state(&tx, path)? == SchemaState::Current {
            let differences = schema::find_schema_differences(&tx, self.directory.store_file());
            let differences = differences.map_err(sqlite_error_at(path))?.into_iter();
            report.faults.extend(differences.map(Fault::Schema));
        }
        let damage = damage_scan::find_damage(&tx).map_err(sqlite_error_at(path))?;
        report.faults.extend(damage.objects.into_iter().map(Fault::Checksum));
        let expected = count(COUNT_HISTORY_BYTES).map_err(sqlite_error_at(path))?;
        match read_meta_number(&tx, "history_bytes") {
            Ok(stored) if stored != expected => {
                report.faults.push(Fault::HistoryBytes { stored, expected });
            }
            // A damaged value is in the report already.
            Ok(_) | Err(DatabaseError::DamagedObject(_)) => {}
            Err(error) => return Err(sqlite_error_at(path)(error)),
        }
        self.compare_indexes(&tx, &damage.affected_items, &mut report)?;
        if self.directory.store_file().is_disposable() && !report.has_damaged_pages() {
            let mail = find_mail_faults(&tx).map_err(sqlite_error_at(path))?;
            let rows = mail.counts.into_iter();
            report.faults.extend(rows.map(|(what, count)| Fault::Inconsistent { what, count }));
            let malformed = mail.has_malformed_words.then_some(Fault::Malformed { index: "word" });
            report.faults.extend(malformed);
        }
        // A stale index, or one whose rebuild was interrupted, is a fault already.
        let is_other =
            |work: &PendingWork| !matches!(work, PendingWork::Rebuild | PendingWork::StaleIndex);
        let pending = self.pending_work()?.into_iter().filter(is_other);
        report.faults.extend(pending.map(Fault::Pending));
        report.items =
            count("SELECT count(*) FROM item").map_err(sqlite_error_at(path))?.unsigned_abs();
        report.history = (
            count("SELECT count(*) FROM item_history")
                .map_err(sqlite_error_at(path))?
                .unsigned_abs(),
            expected.unsigned_abs(),
        );
        report.database_bytes = fs::metadata(path).map_or(0, |file| file.len());
        report.wal_bytes = fs::metadata(self.directory.wal_path()).map_or(0, |file| file.len());
        Ok(report)
    }

    /// Rebuilds all indexes, then verifies the store. A difference between the old and the new
    /// indexes is reported as a fault that the rebuild has repaired. If pages are damaged, nothing
    /// is written to the file, see
    /// [`DataDirectory::rebuild_and_check`](crate::DataDirectory::rebuild_and_check).
    ///
    /// # Errors
    /// As [`Store::rebuild`]; [`Error::ReadOnly`], for instance: a store that is written anew would
    /// have no tables of a newer version.
    pub fn rebuild_and_check(&mut self) -> Result<CheckReport> {
        self.ensure_writable()?;
        let before = self.check()?;
        if before.has_damaged_pages() {
            return Ok(before);
        }
        let rebuilt = self.rebuild()?;
        let mut report = self.check()?;
        report.rebuilt_items = rebuilt;
        let repaired = before
            .faults
            .into_iter()
            .filter(|fault| matches!(fault, Fault::Index { .. } | Fault::Malformed { .. }));
        report.faults.extend(repaired);
        Ok(report)
    }

    /// Compares the stored indexes with the source bytes, except those of damaged items.
    fn compare_indexes(
        &self,
        tx: &ReadTransaction<'_>,
        damaged: &HashSet<ItemRow>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let mut stale = Vec::new();
        let meta = MetaTable::read(tx).map_err(sqlite_error_at(&self.path))?;
        for index in DerivedIndex::ALL {
            if !index.is_current(&meta, &self.extractor) {
                stale.push(index);
                report.faults.push(Fault::Stale { index: index.name() });
            }
        }
        if stale.len() == DerivedIndex::ALL.len() {
            return Ok(());
        }
        let expected = index_digest::expected_digests(tx, &self.extractor, damaged)
            .map_err(sqlite_error_at(&self.path))?;
        for (index, expected) in DerivedIndex::ALL.into_iter().zip(expected) {
            if stale.contains(&index) {
                continue;
            }
            let fault = match index_digest::stored_digest(tx, index, damaged) {
                Ok(stored) if stored == expected => continue,
                Ok(stored) => {
                    let (stored, expected) = (stored.rows, expected.rows);
                    Fault::Index { index: index.name(), stored, expected }
                }
                Err(error) if error.is_damage() => Fault::Malformed { index: index.name() },
                Err(error) => return Err(sqlite_error_at(&self.path)(error)),
            };
            report.faults.push(fault);
        }
        Ok(())
    }
}
