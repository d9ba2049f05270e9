//! What becomes of the interval index when the zones of the system change.
//!
//! Each item names the zones that went into what it is in time, and what they were like then. So only items of a zone that is
//! not what it was are derived anew, in steps that let other writers in between.

use super::Writer;
use crate::derived::IndexSet;
use crate::deriver::{Deriver, Derivers};
use crate::error::{Result, at};
use crate::series;
use crate::store::{Store, immediate};
use rusqlite::{Connection, OptionalExtension as _};

/// The row of these zones as they are now.
pub(super) fn clock(conn: &Connection, deriver: &Deriver, names: &str) -> rusqlite::Result<i64> {
    let like = deriver.clocks.fingerprint(names);
    let known = conn
        .prepare_cached("SELECT id FROM idx_clock WHERE name = ?1 AND fingerprint = ?2")?
        .query_row((names, &*like), |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    conn.execute("INSERT INTO idx_clock(name, fingerprint) VALUES(?1, ?2)", (names, &*like))?;
    Ok(conn.last_insert_rowid())
}
/// What the tables were filled with: the version of the system's zones.
pub(crate) const ZONES: &str = "zones";

/// Were the tables filled with these zones?
pub(crate) fn is_of_these_zones(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<bool> {
    let filled: Option<String> = conn
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([ZONES], |row| row.get(0))
        .optional()?;
    Ok(filled.as_deref() == Some(deriver.zones().version()))
}

/// Notes which zones they are filled with from now on.
pub(crate) fn note_zones(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (ZONES, deriver.zones().version()))
        .map(drop)
}

impl Store {
    /// One step of having the items derived anew whose zones have changed. `None`: nothing is left to do.
    pub(crate) fn zones_step(&mut self, items: usize) -> Result<Option<u64>> {
        if self.usable(IndexSet::Time)? {
            return Ok(None);
        }
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        let step = || -> rusqlite::Result<u64> {
            let tx = immediate(&self.conn)?;
            let mut left = items;
            for (id, name, like) in clocks(&tx)? {
                if *self.deriver.clocks.fingerprint(&name) == like {
                    continue;
                }
                left -= self.derive_again(&tx, id, left)?;
                if left == 0 {
                    break;
                }
                tx.execute("DELETE FROM idx_clock WHERE id = ?1", [id])?;
            }
            if left > 0 {
                note_zones(&tx, &self.deriver)?;
            }
            tx.commit()?;
            Ok((items - left) as u64)
        };
        let derived = step().map_err(at(&self.path))?;
        self.let_go(lock);
        Ok(Some(derived))
    }

    /// Derives the items of a clock anew, so many at most.
    fn derive_again(&self, tx: &Connection, clock: i64, limit: usize) -> rusqlite::Result<usize> {
        let rows: Vec<(i64, i64)> = tx
            .prepare_cached(
                "SELECT t.item, i.collection FROM idx_time t JOIN item i ON i.id = t.item
                 WHERE t.clock = ?1 ORDER BY t.item LIMIT ?2",
            )?
            .query_map((clock, limit as i64), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        // Where their rows are cannot be told by zones that have changed: they are looked for everywhere.
        for table in ["idx_span", "idx_slot", "idx_time"] {
            let sql = format!(
                "DELETE FROM {table} WHERE item IN
                   (SELECT item FROM idx_time WHERE clock = ?1 ORDER BY item LIMIT ?2)"
            );
            tx.execute(&sql, (clock, limit as i64))?;
        }
        let mut derivers = Derivers::new(&self.deriver);
        let mut writer = Writer::new(tx, &self.deriver);
        for &(item, collection) in &rows {
            let times = series::of_item(tx, &mut derivers, item)?;
            writer.put(collection, item, times.as_ref(), true)?;
        }
        writer.finish()?;
        Ok(rows.len())
    }
}

fn clocks(conn: &Connection) -> rusqlite::Result<Vec<(i64, String, String)>> {
    conn.prepare_cached("SELECT id, name, fingerprint FROM idx_clock ORDER BY id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}
