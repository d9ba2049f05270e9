//! What becomes of the interval index when the zones of the system change.
//!
//! Each item names the zones that went into what it is in time, and what they were like then. So only items of a zone that is
//! not what it was are derived anew, in steps that let other writers in between.

use super::Writer;
use crate::derived::{IndexSet, progress};
use crate::deriver::{Deriver, Derivers};
use crate::error::{Result, at};
use crate::series;
use crate::store::{Meta, Store};
use crate::transaction::Transaction;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashSet;

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

/// Notes which zones they are filled with from now on.
pub(crate) fn note_zones(conn: &Connection, deriver: &Deriver) -> rusqlite::Result<()> {
    conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (ZONES, deriver.zones().version()))
        .map(drop)
}

/// Rows of `idx_time` that one step looks at, at most: they are soon read, but all of them would keep others out for long.
const LOOKED_AT: i64 = 50_000;

/// Items that a step derives anew.
#[derive(Default)]
struct Page {
    items: Vec<i64>,
    /// The step went up to this one; `None`: up to the last.
    last: Option<i64>,
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
            let tx = Transaction::begin(&self.conn)?;
            let changed = self.changed_clocks(&tx)?;
            let page = self.page_of(&tx, &changed, items)?;
            self.derive_again(&tx, &page.items)?;
            match page.last {
                Some(last) => {
                    let state = format!("rebuilding {last} {}", self.deriver.zones().version());
                    tx.execute("UPDATE meta SET value = ?2 WHERE key = ?1", (ZONES, state))?;
                }
                None => {
                    for id in changed {
                        tx.execute("DELETE FROM idx_clock WHERE id = ?1", [id])?;
                    }
                    note_zones(&tx, &self.deriver)?;
                }
            }
            tx.commit()?;
            Ok(page.items.len() as u64)
        };
        let derived = step().map_err(at(&self.path))?;
        self.let_go(lock);
        Ok(Some(derived))
    }

    /// The rows of zones that are not what they were.
    fn changed_clocks(&self, tx: &Connection) -> rusqlite::Result<HashSet<i64>> {
        let mut select = tx.prepare_cached("SELECT id, name, fingerprint FROM idx_clock")?;
        let (mut rows, mut changed) = (select.query([])?, HashSet::new());
        while let Some(row) = rows.next()? {
            let (name, like): (String, String) = (row.get(1)?, row.get(2)?);
            if *self.deriver.clocks.fingerprint(&name) != like {
                changed.insert(row.get(0)?);
            }
        }
        Ok(changed)
    }

    /// The next items of these clocks, so many at most, behind those that are done.
    fn page_of(
        &self,
        tx: &Connection,
        clocks: &HashSet<i64>,
        limit: usize,
    ) -> rusqlite::Result<Page> {
        let mut page = Page::default();
        if clocks.is_empty() {
            return Ok(page);
        }
        let state = Meta::read(tx)?;
        let done = progress(state.text(ZONES), self.deriver.zones().version()).unwrap_or(0);
        let mut select = tx.prepare_cached(
            "SELECT item, clock FROM idx_time WHERE item > ?1 ORDER BY item LIMIT ?2",
        )?;
        let (mut rows, mut looked_at) = (select.query((done, LOOKED_AT))?, 0);
        while let Some(row) = rows.next()? {
            let (item, clock): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            looked_at += 1;
            if clock.is_some_and(|clock| clocks.contains(&clock)) {
                page.items.push(item);
            }
            if page.items.len() == limit || looked_at == LOOKED_AT {
                page.last = Some(item);
                break;
            }
        }
        Ok(page)
    }

    /// Derives these items anew.
    fn derive_again(&self, tx: &Connection, items: &[i64]) -> rusqlite::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        // Where their rows are cannot be told by zones that have changed: they are looked for everywhere.
        let list = items.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        for table in ["idx_span", "idx_time"] {
            tx.execute(&format!("DELETE FROM {table} WHERE item IN ({list})"), [])?;
        }
        let mut derivers = Derivers::new(&self.deriver);
        let mut writer = Writer::new(tx, &self.deriver);
        let mut collection = tx.prepare_cached("SELECT collection FROM item WHERE id = ?1")?;
        for &item in items {
            let times = series::of_item(tx, &mut derivers, item)?;
            let Some(collection) = collection.query_row([item], |row| row.get(0)).optional()?
            else {
                continue;
            };
            writer.put(collection, item, times.as_ref(), true)?;
        }
        writer.finish()
    }
}
