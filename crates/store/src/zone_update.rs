//! Recomputing schedules after a change of the system's time zones.
//!
//! Each schedule names the time zones that it was computed with, and their fingerprint. Therefore
//! only the schedules of zones that have changed are computed again, in steps that let other
//! writers in between.

use crate::derived_index::{DerivedIndex, IndexState};
use crate::error::{DatabaseResult, Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::history;
use crate::interval_table::{IntervalWriter, ZONE_DATA_VERSION_KEY, write_zone_data_version};
use crate::meta::{MetaTable, write_meta};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{ItemRow, ZoneSetRow};
use crate::series;
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::collections::HashSet;

/// Upper bound of the rows of `idx_schedule` that one step reads: to read all of them would block
/// other writers for long.
const MAX_SCANNED_ROWS_PER_TX: i64 = 50_000;

/// The items of one step.
#[derive(Default)]
struct ZoneUpdatePage {
    items: Vec<ItemRow>,
    /// The last item that the step examined; `None`: the last of all.
    last_item: Option<ItemRow>,
}

impl Store {
    /// Recomputes the schedules of up to `limit` items whose time zones have changed. Returns how
    /// many there were; `None`: nothing is left to do.
    pub(crate) fn update_zones_step(&mut self, limit: usize) -> Result<Option<u64>> {
        if self.is_index_current(DerivedIndex::Interval)? {
            return Ok(None);
        }
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let step = || -> DatabaseResult<u64> {
            let tx = self.conn.begin_write()?;
            let changed = self.find_changed_zone_sets(&tx)?;
            let page = self.read_zone_update_page(&tx, &changed, limit)?;
            self.recompute_schedules(&tx, &page.items)?;
            match page.last_item {
                Some(last) => {
                    let version = self.extractor.zone_database().data_version();
                    let state = IndexState::format_rebuild(Some(last), version);
                    write_meta(&tx, ZONE_DATA_VERSION_KEY, state)?;
                }
                None => {
                    for id in changed {
                        tx.execute("DELETE FROM idx_zone_set WHERE id = ?1", [id])?;
                    }
                    write_zone_data_version(&tx, &self.extractor)?;
                    // Batches before this step replaced schedules of other zone data.
                    history::set_schedule_history_start(&tx, None)?;
                }
            }
            tx.commit()?;
            Ok(page.items.len() as u64)
        };
        let updated = step().map_err(sqlite_error_at(&self.path))?;
        self.release_and_checkpoint(lock);
        Ok(Some(updated))
    }

    /// Returns the rows of `idx_zone_set` whose time zones have another fingerprint now.
    fn find_changed_zone_sets(
        &self,
        tx: &ReadTransaction<'_>,
    ) -> rusqlite::Result<HashSet<ZoneSetRow>> {
        let mut select = tx.prepare_cached("SELECT id, names, fingerprint FROM idx_zone_set")?;
        let (mut rows, mut changed) = (select.query([])?, HashSet::new());
        while let Some(row) = rows.next()? {
            let (names, fingerprint): (String, String) = (row.get(1)?, row.get(2)?);
            if *self.extractor.zone_resolver().fingerprint(&names) != fingerprint {
                changed.insert(row.get(0)?);
            }
        }
        Ok(changed)
    }

    /// Returns the next items of these zone sets, at most `limit`, after the items that are done.
    fn read_zone_update_page(
        &self,
        tx: &ReadTransaction<'_>,
        zone_sets: &HashSet<ZoneSetRow>,
        limit: usize,
    ) -> rusqlite::Result<ZoneUpdatePage> {
        let mut page = ZoneUpdatePage::default();
        if zone_sets.is_empty() {
            return Ok(page);
        }
        let state = MetaTable::read(tx)?;
        let progress = IndexState::parse(
            state.index_state(ZONE_DATA_VERSION_KEY),
            self.extractor.zone_database().data_version(),
        );
        let done = match progress {
            IndexState::Rebuilding(last) => last,
            IndexState::Complete | IndexState::Stale => None,
        };
        let mut select = tx.prepare_cached(
            "SELECT item, zone_set FROM idx_schedule WHERE item > coalesce(?1, 0) ORDER BY item LIMIT ?2",
        )?;
        let (mut rows, mut examined) = (select.query((done, MAX_SCANNED_ROWS_PER_TX))?, 0);
        while let Some(row) = rows.next()? {
            let (item, zone_set): (ItemRow, Option<ZoneSetRow>) = (row.get(0)?, row.get(1)?);
            examined += 1;
            if zone_set.is_some_and(|zone_set| zone_sets.contains(&zone_set)) {
                page.items.push(item);
            }
            if page.items.len() == limit || examined == MAX_SCANNED_ROWS_PER_TX {
                page.last_item = Some(item);
                break;
            }
        }
        Ok(page)
    }

    /// Computes the schedules of these items again.
    fn recompute_schedules(
        &self,
        tx: &WriteTransaction<'_>,
        items: &[ItemRow],
    ) -> DatabaseResult<()> {
        if items.is_empty() {
            return Ok(());
        }
        // The keys of the rows depend on the former zone data, which is no longer available; a scan
        // finds the rows.
        let list = items.iter().map(ItemRow::to_string).collect::<Vec<_>>().join(",");
        for table in ["idx_interval", "idx_schedule"] {
            tx.execute(&format!("DELETE FROM {table} WHERE item IN ({list})"), [])?;
        }
        let mut extractors = ExtractorCache::new(&self.extractor);
        let mut writer = IntervalWriter::new(tx, &self.extractor);
        let mut collection = tx.prepare_cached("SELECT collection FROM item WHERE id = ?1")?;
        for &item in items {
            let schedule = series::compute_schedule(tx, &mut extractors, item)?;
            let Some(collection) = collection.query_row([item], |row| row.get(0)).optional()?
            else {
                continue;
            };
            writer.put(collection, item, schedule.as_ref(), true)?;
        }
        Ok(writer.finish()?)
    }
}
