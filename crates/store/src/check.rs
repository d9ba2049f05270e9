//! Verifying a store: pages, references, and whether the indexes are what the source bytes give.

use crate::backup::Staged;
use crate::derived::{self, IndexSet};
use crate::error::{Error, Result, at};
use crate::store::{Meta, Store, meta};
use rusqlite::{Connection, ErrorCode};
use std::fs;

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is wrong; empty: nothing.
    pub faults: Vec<Fault>,
    /// Items looked at.
    pub items: u64,
    /// Former versions kept, and their bytes.
    pub former: (u64, u64),
    /// Size of the database, in bytes.
    pub size: u64,
    /// Size of the write-ahead log beside it, in bytes.
    pub wal: u64,
    /// Items derived again by a rebuild.
    pub rebuilt: u64,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// SQLite's integrity check found this.
    #[error("the database is damaged: {0}")]
    Page(String),
    /// Rows that refer to each other do not match.
    #[error("{count} {what}")]
    Orphans {
        /// What they are.
        what: &'static str,
        /// How many.
        count: u64,
    },
    /// The index is not what the source bytes give.
    #[error(
        "the {set} index does not hold what the items give ({stored} entries for {expected}); rebuild it"
    )]
    Index {
        /// The set.
        set: &'static str,
        /// Entries it holds.
        stored: u64,
        /// Entries it should hold.
        expected: u64,
    },
    /// The index cannot be read.
    #[error("the {set} index is malformed; rebuild it")]
    Malformed {
        /// The set.
        set: &'static str,
    },
    /// An index set is not filled by this program's rules, and not used until it is.
    #[error("the {set} index is stale and not used; rebuild it")]
    Stale {
        /// The set.
        set: &'static str,
    },
}

/// Counts that must be zero.
const ORPHANS: &[(&str, &str)] = &[
    (
        "items without source bytes",
        "SELECT count(*) FROM item WHERE id NOT IN (SELECT item FROM source)",
    ),
    (
        "source bytes without an item",
        "SELECT count(*) FROM source WHERE item NOT IN (SELECT id FROM item)",
    ),
    (
        "sources that are neither in their row nor in a blob",
        "SELECT count(*) FROM source WHERE (bytes IS NULL) = (blob IS NULL)
            OR (blob IS NOT NULL AND blob NOT IN (SELECT hash FROM blob))",
    ),
    (
        "blobs with a wrong number of users",
        "SELECT count(*) FROM blob b WHERE uses <>
           (SELECT count(*) FROM source WHERE blob = b.hash)
           + (SELECT count(*) FROM former WHERE blob = b.hash)",
    ),
    (
        "items in no collection",
        "SELECT count(*) FROM item WHERE collection NOT IN
           (SELECT id FROM collection WHERE removed = 0)",
    ),
    (
        "items of a batch that is not in the log",
        "SELECT count(*) FROM item WHERE seq NOT IN (SELECT seq FROM batch)",
    ),
    (
        "items with the UID of another in their collection",
        "SELECT count(*) FROM (SELECT 1 FROM item GROUP BY collection, uid, recurrence HAVING count(*) > 1)",
    ),
    (
        "batches of no operation",
        "SELECT count(*) FROM batch WHERE operation NOT IN (SELECT id FROM operation)",
    ),
    (
        "batches after the last number",
        "SELECT count(*) FROM batch WHERE seq > (SELECT value FROM meta WHERE key = 'seq')",
    ),
    (
        "bytes of former versions counted wrongly",
        "SELECT (SELECT value FROM meta WHERE key = 'former_bytes') <>
           (SELECT coalesce(sum(coalesce(length(f.bytes), length(b.bytes), 0)), 0)
            FROM former f LEFT JOIN blob b ON b.hash = f.blob)",
    ),
    (
        "frames with a wrong number of users",
        "SELECT count(*) FROM frame f WHERE uses <>
           (SELECT count(*) FROM item WHERE frame = f.id) + (SELECT count(*) FROM former WHERE frame = f.id)",
    ),
    (
        "items and former versions whose frame is missing",
        "SELECT (SELECT count(*) FROM item WHERE frame IS NOT NULL AND frame NOT IN (SELECT id FROM frame))
           + (SELECT count(*) FROM former WHERE frame IS NOT NULL AND frame NOT IN (SELECT id FROM frame))",
    ),
    (
        "definitions of time zones in no frame",
        "SELECT count(*) FROM zone WHERE id NOT IN
           (SELECT value FROM frame, json_each('[' || replace(zones, ' ', ',') || ']'))",
    ),
    (
        "frames with a definition that is missing",
        "SELECT count(*) FROM frame, json_each('[' || replace(zones, ' ', ',') || ']')
         WHERE value NOT IN (SELECT id FROM zone)",
    ),
    (
        "entries of the time index without an item",
        "SELECT (SELECT count(*) FROM idx_time WHERE item NOT IN (SELECT id FROM item))
           + (SELECT count(*) FROM idx_span WHERE item NOT IN (SELECT item FROM idx_time))",
    ),
];

impl Store {
    /// Verifies everything, and changes nothing.
    pub fn check(&self) -> Result<Report> {
        let path = &self.path;
        // On a copy: it takes long, and a reading that long would let the write-ahead log grow. Where there is no
        // room for one, there is no room for the log, either.
        let copy = match Staged::of(&self.conn, &self.directory) {
            Err(Error::Full { .. }) => None,
            Err(Error::Damaged { what, .. }) => {
                return Err(Error::Damaged { path: path.clone(), what });
            }
            copy => Some(copy?),
        };
        let conn = copy.as_ref().map_or(&self.conn, |copy| &copy.conn);
        let tx = conn.unchecked_transaction().map_err(at(path))?;
        let mut report = Report { faults: integrity(&tx).map_err(at(path))?, ..Report::default() };
        for (what, sql) in ORPHANS {
            let count: i64 = tx.query_row(sql, [], |row| row.get(0)).map_err(at(path))?;
            if count > 0 {
                report.faults.push(Fault::Orphans { what, count: count.unsigned_abs() });
            }
        }
        self.compare(&tx, &mut report)?;
        let count = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
        report.items = count("SELECT count(*) FROM item").map_err(at(path))?.unsigned_abs();
        report.former = (
            count("SELECT count(*) FROM former").map_err(at(path))?.unsigned_abs(),
            meta(&tx, "former_bytes").map_err(at(path))?.unsigned_abs(),
        );
        report.size = fs::metadata(path).map_or(0, |file| file.len());
        report.wal = fs::metadata(self.directory.wal()).map_or(0, |file| file.len());
        Ok(report)
    }

    /// Drops and refills all derived tables, then verifies everything. What the tables held before is
    /// compared with what they hold now: a difference is a fault that the rebuild has mended.
    pub fn check_rebuild(&mut self) -> Result<Report> {
        let before = self.check()?;
        let rebuilt = self.rebuild()?;
        let mut report = self.check()?;
        report.rebuilt = rebuilt;
        let mended = before
            .faults
            .into_iter()
            .filter(|fault| matches!(fault, Fault::Index { .. } | Fault::Malformed { .. }));
        report.faults.extend(mended);
        Ok(report)
    }

    /// Compares the stored index rows with what the source bytes give.
    fn compare(&self, conn: &Connection, report: &mut Report) -> Result<()> {
        let mut stale = false;
        let meta = Meta::read(conn).map_err(at(&self.path))?;
        for set in IndexSet::ALL {
            if !set.usable(&meta, &self.deriver) {
                stale = true;
                report.faults.push(Fault::Stale { set: set.name() });
            }
        }
        if stale {
            return Ok(());
        }
        let expected = derived::expected_digests(conn, &self.deriver).map_err(at(&self.path))?;
        for (set, expected) in IndexSet::ALL.into_iter().zip(expected) {
            let fault = match derived::stored_digest(conn, set) {
                Ok(stored) if stored == expected => continue,
                Ok(stored) => {
                    let (stored, expected) = (stored.rows, expected.rows);
                    Fault::Index { set: set.name(), stored, expected }
                }
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                    Fault::Malformed { set: set.name() }
                }
                Err(error) => return Err(at(&self.path)(error)),
            };
            report.faults.push(fault);
        }
        Ok(())
    }
}

/// SQLite's full integrity check, its first hundred findings.
pub(crate) fn integrity(conn: &Connection) -> rusqlite::Result<Vec<Fault>> {
    let lines = conn
        .prepare("PRAGMA integrity_check(100)")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").map(Fault::Page).collect())
}
