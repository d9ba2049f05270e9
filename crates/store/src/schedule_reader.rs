//! Reading schedules: the items in a time range, and the schedules of given items.
//!
//! Apart from `items`, since the interval index and its fallback, computing schedules from bytes,
//! are used by nothing else there.

use crate::collection::CollectionMeta;
use crate::error::{Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::interval_search::{self, TimeRangeHits};
use crate::reader::Reader;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::series;
use crate::zone_loader::unpack_schedule;
use larder_extract::{Schedule, TimeRange};
use rusqlite::OptionalExtension as _;

impl Reader {
    /// Returns the items of these collections that have occurrences or alarms in a time range.
    /// `None`: the interval index is incomplete or has another fingerprint, and the caller has to
    /// scan.
    pub fn find_in_time_range(
        &self,
        collections: &[CollectionRow],
        range: &TimeRange,
    ) -> Result<Option<TimeRangeHits>> {
        let run = || -> rusqlite::Result<Option<TimeRangeHits>> {
            let _snapshot = self.begin_read_raw()?;
            let cache = self.cache()?;
            if !self.is_time_index_current(&cache) {
                return Ok(None);
            }
            let searched: Vec<&CollectionMeta> = cache
                .collections
                .iter()
                .filter(|known| collections.contains(&known.collection_key.id))
                .collect();
            interval_search::search(&self.conn, &self.extractor, &searched, range).map(Some)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes the schedules of the items in these rows to `each`, in the order of `rows` and
    /// without items that have none, until it returns false. All within one read transaction.
    pub fn for_each_schedule(
        &self,
        rows: &[ItemRow],
        each: &mut dyn FnMut(ItemRow, &Schedule) -> bool,
    ) -> Result<()> {
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.begin_read_raw()?;
            let is_current = self.is_time_index_current(&*self.cache()?);
            let mut extractors = ExtractorCache::new(&self.extractor);
            let mut select =
                self.conn.prepare_cached("SELECT data FROM idx_schedule WHERE item = ?1")?;
            for &item in rows {
                let schedule = match is_current {
                    true => select
                        .query_row([item], |row| {
                            Ok(unpack_schedule(
                                &self.conn,
                                self.extractor.zone_resolver(),
                                row.get_ref(0)?.as_blob()?,
                            ))
                        })
                        .optional()?
                        .flatten(),
                    false => series::compute_schedule(&self.conn, &mut extractors, item)?,
                };
                if schedule.is_some_and(|schedule| !each(item, &schedule)) {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Computes the schedule of the item in this row from its bytes and those of the other items of
    /// its UID, without the index.
    pub fn recompute_schedule(&self, row: ItemRow) -> Result<Option<Schedule>> {
        let run = || -> rusqlite::Result<Option<Schedule>> {
            let _snapshot = self.begin_read_raw()?;
            let mut extractors = ExtractorCache::new(&self.extractor);
            series::compute_schedule(&self.conn, &mut extractors, row)
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}
