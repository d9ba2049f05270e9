//! The tables of the interval index: `idx_schedule`, `idx_interval` and `idx_zone_set`.
//!
//! `idx_interval(row_class, start, end, item, series_summary)` has a row for each interval entry,
//! under the key that `larder_index::interval` describes. `series_summary` is NULL for an entry
//! without a summary, otherwise a packed [`SeriesSummary`], followed by the packed schedule if that
//! is short, so that a time range accepts, rejects or evaluates a series without a step into
//! another table.

use crate::error::{DatabaseError, DatabaseResult};
use crate::interval_entry::IntervalEntry;
use crate::meta::write_meta;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow, ZoneSetRow};
use crate::schedule_intervals::interval_entries;
use crate::series_summary::{RecurrenceBucket, SeriesSummary};
use crate::write_transaction::WriteTransaction;
use crate::zone_loader::unpack_schedule;
use larder_extract::{Extractor, Schedule, TimeTarget};
use larder_index::interval::{
    DayBucket, IntervalLayer, TimeScale, bucket_class, class_in_partition, row_class, span_class,
    span_classes,
};
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::sync::Arc;

/// Longer schedules are not stored in the rows: they would push the rows of other items apart.
const MAX_INLINE_SCHEDULE_BYTES: usize = 160;

/// The key in `meta` of the version of the system's time zones that the tables were filled with.
pub(crate) const ZONE_DATA_VERSION_KEY: &str = "zone_data_version";

/// Returns the layer of the interval index that holds these times.
pub(crate) fn layer(target: TimeTarget) -> IntervalLayer {
    match target {
        TimeTarget::Occurrences => IntervalLayer::Primary,
        TimeTarget::Alarms => IntervalLayer::Secondary,
    }
}

/// Returns the time scale of floating times, or of those in UTC.
pub(crate) fn time_scale(is_floating: bool) -> TimeScale {
    if is_floating { TimeScale::Floating } else { TimeScale::Utc }
}

/// Returns the row class of an entry of an item of this collection.
fn entry_row_class(collection: CollectionRow, entry: &IntervalEntry) -> i64 {
    let (layer, scale) = (layer(entry.target), time_scale(entry.is_floating));
    let class = match entry.bucket {
        None => span_class(layer, scale, entry.end - entry.start),
        Some(bucket) => bucket_class(
            layer,
            scale,
            match bucket {
                RecurrenceBucket::Any => DayBucket::Any,
                RecurrenceBucket::Weekday(weekday) => {
                    DayBucket::Weekday(weekday.number_from_monday())
                }
                RecurrenceBucket::MonthDay(day) => DayBucket::MonthDay(day),
                RecurrenceBucket::YearDay(month, day) => DayBucket::YearDay(month, day),
            },
        ),
    };
    row_class(collection.to_number(), class)
}

/// Returns the column `series_summary` of an entry with this summary, of an item with this packed
/// schedule.
fn pack_series_column(
    target: TimeTarget,
    summary: Option<&SeriesSummary>,
    schedule: &[u8],
) -> Option<Vec<u8>> {
    let mut bytes = summary?.pack();
    if target == TimeTarget::Occurrences && schedule.len() <= MAX_INLINE_SCHEDULE_BYTES {
        bytes.extend_from_slice(schedule);
    }
    Some(bytes)
}

/// Returns the classes of spans that a collection has: one step for each, because most are absent.
pub(crate) fn find_span_classes(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    target: TimeTarget,
) -> rusqlite::Result<Vec<i64>> {
    let [first, .., last] = span_classes(layer(target)) else { return Ok(Vec::new()) };
    let end = row_class(collection.to_number(), last + 1);
    let mut next = tx.prepare_cached(
        "SELECT row_class FROM idx_interval WHERE row_class > ?1 AND row_class < ?2
         ORDER BY row_class LIMIT 1",
    )?;
    let mut classes = Vec::new();
    loop {
        let before = classes.last().copied().unwrap_or(first - 1);
        let found: Option<i64> = next
            .query_row((row_class(collection.to_number(), before), end), |row| row.get(0))
            .optional()?;
        match found {
            Some(found) => classes.push(class_in_partition(collection.to_number(), found)),
            None => return Ok(classes),
        }
    }
}

/// A row of `idx_interval` before it is written.
type PendingEntry = (i64, i64, i64, ItemRow, TimeTarget, Option<SeriesSummary>, Arc<[u8]>);

/// Writes schedules: gathers them, then inserts the rows of each table in the order of its key.
pub(crate) struct IntervalWriter<'a> {
    tx: &'a WriteTransaction<'a>,
    extractor: &'a Extractor,
    /// The rows of `idx_zone_set` by their names.
    zone_sets: HashMap<String, ZoneSetRow>,
    schedules: Vec<(ItemRow, Option<ZoneSetRow>, Arc<[u8]>)>,
    entries: Vec<PendingEntry>,
}

impl<'a> IntervalWriter<'a> {
    pub(crate) fn new(
        tx: &'a WriteTransaction<'_>,
        extractor: &'a Extractor,
    ) -> IntervalWriter<'a> {
        let (zone_sets, schedules, entries) = (HashMap::new(), Vec::new(), Vec::new());
        IntervalWriter { tx, extractor, zone_sets, schedules, entries }
    }

    /// Sets the schedule of an item; `None`: it has none. A new item has no rows to be replaced.
    pub(crate) fn put(
        &mut self,
        collection: CollectionRow,
        item: ItemRow,
        schedule: Option<&Schedule>,
        is_new: bool,
    ) -> DatabaseResult<()> {
        if !is_new {
            delete_item(self.tx, self.extractor, collection, item)?;
        }
        let Some(schedule) = schedule else { return Ok(()) };
        let zone_set = match schedule.zone_names() {
            [] => None,
            names => Some(self.zone_set(&names.join(" "))?),
        };
        let data: Arc<[u8]> = schedule.pack().into();
        self.entries.extend(interval_entries(schedule).into_iter().map(|entry| {
            let row_class = entry_row_class(collection, &entry);
            let (start, end, summary) = (entry.start, entry.end, entry.series_summary);
            (row_class, start, end, item, entry.target, summary, Arc::clone(&data))
        }));
        self.schedules.push((item, zone_set, data));
        Ok(())
    }

    /// Returns the row of these time zones with their current fingerprint.
    fn zone_set(&mut self, names: &str) -> rusqlite::Result<ZoneSetRow> {
        if let Some(row) = self.zone_sets.get(names) {
            return Ok(*row);
        }
        let row = find_or_insert_zone_set(self.tx, self.extractor, names)?;
        self.zone_sets.insert(names.to_string(), row);
        Ok(row)
    }

    pub(crate) fn finish(mut self) -> rusqlite::Result<()> {
        self.schedules.sort_unstable_by_key(|(item, ..)| *item);
        let mut insert = self.tx.prepare_cached("INSERT INTO idx_schedule VALUES(?1, ?2, ?3)")?;
        for (item, zone_set, data) in &self.schedules {
            insert.execute((item, zone_set, &**data))?;
        }
        self.entries.sort_unstable_by_key(|&(row_class, start, end, item, ..)| {
            (row_class, start, end, item)
        });
        let mut insert =
            self.tx.prepare_cached("INSERT INTO idx_interval VALUES(?1, ?2, ?3, ?4, ?5)")?;
        for (row_class, start, end, item, target, summary, data) in &self.entries {
            let series = pack_series_column(*target, summary.as_ref(), data);
            insert.execute((row_class, start, end, item, series))?;
        }
        Ok(())
    }
}

/// Returns the row of these time zones with their current fingerprint, and inserts it if there is
/// none.
fn find_or_insert_zone_set(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
    names: &str,
) -> rusqlite::Result<ZoneSetRow> {
    let fingerprint = extractor.zone_resolver().fingerprint(names);
    let found = tx
        .prepare_cached("SELECT id FROM idx_zone_set WHERE names = ?1 AND fingerprint = ?2")?
        .query_row((names, &*fingerprint), |row| row.get(0))
        .optional()?;
    if let Some(found) = found {
        return Ok(found);
    }
    tx.execute(
        "INSERT INTO idx_zone_set(names, fingerprint) VALUES(?1, ?2)",
        (names, &*fingerprint),
    )?;
    Ok(ZoneSetRow::from_number(tx.last_insert_rowid()))
}

/// Writes the version of the system's time zones that the tables are filled with from now on.
pub(crate) fn write_zone_data_version(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
) -> rusqlite::Result<()> {
    let version = extractor.zone_database().data_version().to_string();
    write_meta(tx, ZONE_DATA_VERSION_KEY, version)
}

/// Deletes the schedule of an item.
pub(crate) fn delete_item(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
    collection: CollectionRow,
    item: ItemRow,
) -> DatabaseResult<()> {
    let data: Option<Vec<u8>> = tx
        .prepare_cached("DELETE FROM idx_schedule WHERE item = ?1 RETURNING data")?
        .query_row([item], |row| row.get(0))
        .optional()?;
    let Some(data) = data else { return Ok(()) };
    let schedule = match unpack_schedule(tx, extractor.zone_resolver(), &data) {
        // Without its zone, the entries of the schedule cannot be computed: a scan finds them.
        Err(DatabaseError::DamagedObject(_)) => {
            tx.execute("DELETE FROM idx_interval WHERE item = ?1", [item])?;
            return Ok(());
        }
        schedule => schedule?,
    };
    for entry in schedule.iter().flat_map(interval_entries) {
        tx.prepare_cached(
            "DELETE FROM idx_interval
             WHERE row_class = ?1 AND start = ?2 AND end = ?3 AND item = ?4",
        )?
        .execute((entry_row_class(collection, &entry), entry.start, entry.end, item))?;
    }
    Ok(())
}

/// A row of the tables, for a digest.
#[derive(Hash)]
pub(crate) enum DigestRecord<'a> {
    Schedule(ItemRow, &'a [u8]),
    /// Row class, start, end; the item; and the series summary.
    Interval([i64; 3], ItemRow, Option<&'a [u8]>),
}

impl DigestRecord<'_> {
    /// Returns the item that the row is about.
    pub(crate) fn item(&self) -> ItemRow {
        match self {
            DigestRecord::Schedule(item, _) | DigestRecord::Interval(_, item, _) => *item,
        }
    }
}

/// Passes all rows of the tables to `visit`.
pub(crate) fn for_each_record(
    tx: &ReadTransaction<'_>,
    visit: &mut dyn FnMut(DigestRecord<'_>),
) -> rusqlite::Result<()> {
    let mut select = tx.prepare_cached("SELECT item, data FROM idx_schedule")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        visit(DigestRecord::Schedule(row.get(0)?, row.get_ref(1)?.as_blob()?));
    }
    let mut select =
        tx.prepare_cached("SELECT row_class, start, end, item, series_summary FROM idx_interval")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let numbers = [row.get(0)?, row.get(1)?, row.get(2)?];
        visit(DigestRecord::Interval(numbers, row.get(3)?, row.get_ref(4)?.as_blob_or_null()?));
    }
    Ok(())
}

/// Passes the rows that the tables should have of an item to `visit`.
pub(crate) fn for_each_expected_record(
    collection: CollectionRow,
    item: ItemRow,
    schedule: Option<&Schedule>,
    visit: &mut dyn FnMut(DigestRecord<'_>),
) {
    let Some(schedule) = schedule else { return };
    let data = schedule.pack();
    visit(DigestRecord::Schedule(item, &data));
    for entry in interval_entries(schedule) {
        let numbers = [entry_row_class(collection, &entry), entry.start, entry.end];
        let series = pack_series_column(entry.target, entry.series_summary.as_ref(), &data);
        visit(DigestRecord::Interval(numbers, item, series.as_deref()));
    }
}
