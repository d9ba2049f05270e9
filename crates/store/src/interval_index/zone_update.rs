//! What becomes of the interval index when the zones of the system change.
//!
//! Each item names the zones that went into what it is in time, and what they were like then. So
//! only items of a zone that is not what it was are derived anew, in steps that let other writers
//! in between.

use super::IntervalWriter;
use crate::error::{Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::index_maintenance::{DerivedIndex, rebuild_progress};
use crate::series;
use crate::store::{MetaTable, Store};
use crate::write_transaction::WriteTransaction;
use larder_extract::Extractor;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashSet;

/// The row of these zones as they are now.
pub(super) fn find_or_insert_zone_set(
    conn: &Connection,
    deriver: &Extractor,
    names: &str,
) -> rusqlite::Result<i64> {
    let like = deriver.zone_resolver().fingerprint(names);
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
pub(crate) const ZONE_DATA_VERSION_KEY: &str = "zones";

/// Notes which zones they are filled with from now on.
pub(crate) fn write_zone_data_version(
    conn: &Connection,
    deriver: &Extractor,
) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT OR REPLACE INTO meta VALUES(?1, ?2)",
        (ZONE_DATA_VERSION_KEY, deriver.zone_database().data_version()),
    )
    .map(drop)
}

/// Rows of `idx_time` that one step looks at, at most: they are soon read, but all of them would
/// keep others out for long.
const MAX_SCANNED_ROWS_PER_TX: i64 = 50_000;

/// Items that a step derives anew.
#[derive(Default)]
struct ZoneUpdatePage {
    items: Vec<i64>,
    /// The step went up to this one; `None`: up to the last.
    last_item: Option<i64>,
}

impl Store {
    /// One step of having the items derived anew whose zones have changed. `None`: nothing is left
    /// to do.
    pub(crate) fn update_zones_step(&mut self, items: usize) -> Result<Option<u64>> {
        if self.is_index_current(DerivedIndex::Schedule)? {
            return Ok(None);
        }
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let step = || -> rusqlite::Result<u64> {
            let tx = WriteTransaction::begin(&self.conn)?;
            let changed = self.find_changed_zone_sets(&tx)?;
            let page = self.read_zone_update_page(&tx, &changed, items)?;
            self.recompute_schedules(&tx, &page.items)?;
            match page.last_item {
                Some(last) => {
                    let state = format!(
                        "rebuilding {last} {}",
                        self.extractor.zone_database().data_version()
                    );
                    tx.execute(
                        "UPDATE meta SET value = ?2 WHERE key = ?1",
                        (ZONE_DATA_VERSION_KEY, state),
                    )?;
                }
                None => {
                    for id in changed {
                        tx.execute("DELETE FROM idx_clock WHERE id = ?1", [id])?;
                    }
                    write_zone_data_version(&tx, &self.extractor)?;
                }
            }
            tx.commit()?;
            Ok(page.items.len() as u64)
        };
        let derived = step().map_err(sqlite_error_at(&self.path))?;
        self.release_and_checkpoint(lock);
        Ok(Some(derived))
    }

    /// The rows of zones that are not what they were.
    fn find_changed_zone_sets(&self, tx: &Connection) -> rusqlite::Result<HashSet<i64>> {
        let mut select = tx.prepare_cached("SELECT id, name, fingerprint FROM idx_clock")?;
        let (mut rows, mut changed) = (select.query([])?, HashSet::new());
        while let Some(row) = rows.next()? {
            let (name, like): (String, String) = (row.get(1)?, row.get(2)?);
            if *self.extractor.zone_resolver().fingerprint(&name) != like {
                changed.insert(row.get(0)?);
            }
        }
        Ok(changed)
    }

    /// The next items of these clocks, so many at most, behind those that are done.
    fn read_zone_update_page(
        &self,
        tx: &Connection,
        clocks: &HashSet<i64>,
        limit: usize,
    ) -> rusqlite::Result<ZoneUpdatePage> {
        let mut page = ZoneUpdatePage::default();
        if clocks.is_empty() {
            return Ok(page);
        }
        let state = MetaTable::read(tx)?;
        let done = rebuild_progress(
            state.text(ZONE_DATA_VERSION_KEY),
            self.extractor.zone_database().data_version(),
        )
        .unwrap_or(0);
        let mut select = tx.prepare_cached(
            "SELECT item, clock FROM idx_time WHERE item > ?1 ORDER BY item LIMIT ?2",
        )?;
        let (mut rows, mut looked_at) = (select.query((done, MAX_SCANNED_ROWS_PER_TX))?, 0);
        while let Some(row) = rows.next()? {
            let (item, clock): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            looked_at += 1;
            if clock.is_some_and(|clock| clocks.contains(&clock)) {
                page.items.push(item);
            }
            if page.items.len() == limit || looked_at == MAX_SCANNED_ROWS_PER_TX {
                page.last_item = Some(item);
                break;
            }
        }
        Ok(page)
    }

    /// Derives these items anew.
    fn recompute_schedules(&self, tx: &Connection, items: &[i64]) -> rusqlite::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        // Where their rows are cannot be told by zones that have changed: they are looked for
        // everywhere.
        let list = items.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        for table in ["idx_span", "idx_time"] {
            tx.execute(&format!("DELETE FROM {table} WHERE item IN ({list})"), [])?;
        }
        let mut derivers = ExtractorCache::new(&self.extractor);
        let mut writer = IntervalWriter::new(tx, &self.extractor);
        let mut collection = tx.prepare_cached("SELECT collection FROM item WHERE id = ?1")?;
        for &item in items {
            let times = series::compute_schedule(tx, &mut derivers, item)?;
            let Some(collection) = collection.query_row([item], |row| row.get(0)).optional()?
            else {
                continue;
            };
            writer.put(collection, item, times.as_ref(), true)?;
        }
        writer.finish()
    }
}
