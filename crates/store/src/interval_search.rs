//! Searches the interval index for the items with occurrences or alarms in a time range.
//!
//! The row classes to read follow from the range (see `larder_index::interval`). Most rows are
//! accepted or rejected by their interval and their series summary; the series that remain are
//! evaluated one by one at the end.

use crate::collection::CollectionMeta;
use crate::error::DatabaseResult;
use crate::interval_table::{layer, time_scale};
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::{CollectionRow, ItemRow};
use crate::series_summary::SeriesSummary;
use crate::zone_loader::load_zone;
use larder_extract::{Extractor, Overlap, Schedule, TimeRange, TimeTarget};
use larder_index::interval::{
    BucketPlan, CivilDay, TimeScale, class_in_partition, max_span_seconds, row_class, span_scale,
};
use larder_time::civil::{CivilTime, DAY_SECONDS, Date};
use larder_time::series::TimePattern;
use larder_time::zone::Zone;
use rusqlite::{OptionalExtension as _, Row, Rows};
use std::ops::Range;

/// Up to this many buckets of one range are read one by one, with the statement that reads the
/// spans. This saves preparing a second statement, and does not read rows that begin after the time
/// range.
const MAX_SEPARATE_BUCKET_SCANS: i64 = 2;
/// The maximum difference between a zone and UTC.
const MAX_UTC_OFFSET_SECONDS: i64 = DAY_SECONDS;

/// Selects the rows of one row class that begin in a range of seconds.
const ENTRIES_IN_CLASS_SQL: &str = "SELECT end, item, series_summary, start FROM idx_interval
    WHERE row_class = ?1 AND start >= ?2 AND start < ?3";

/// The items with occurrences or alarms in a time range.
#[derive(Debug, Clone, Default)]
pub struct TimeRangeHits {
    /// Their rows, ascending and distinct.
    pub items: Vec<ItemRow>,
    /// The rows of items that could not be decided within bounded work.
    pub undecided: Vec<ItemRow>,
    /// The number of index rows that were read.
    pub postings_read: u64,
    /// The number of series that were evaluated.
    pub series_evaluated: u64,
}

/// A time range on one time scale: seconds in UTC, or seconds of a clock in the local zone.
struct SecondsRange {
    /// The seconds that may be in the range, and the seconds that certainly are. They differ
    /// because the UTC offset of a zone changes.
    outer: (i64, i64),
    inner: (i64, i64),
    /// The times of the week and days of the year in the range.
    time_pattern: TimePattern,
}

impl SecondsRange {
    fn from_time_range(range: &TimeRange, is_floating: bool) -> SecondsRange {
        let (from, to) = (range.from.seconds(), range.to.seconds());
        let (low, high) = if is_floating { range.local_zone.offset_bounds() } else { (0, 0) };
        let (low, high) = (i64::from(low), i64::from(high));
        let outer = (from.saturating_add(low), to.saturating_add(high));
        let inner = (from.saturating_add(high), to.saturating_add(low));
        SecondsRange { outer, inner, time_pattern: TimePattern::from_time_range(outer.0, outer.1) }
    }

    /// Returns the greatest change of the offset from UTC.
    fn max_offset_change(&self) -> i64 {
        self.inner.0.saturating_sub(self.outer.0)
    }

    /// Returns whether a series that begins before the range and ends after it certainly has an
    /// occurrence in it. `has_whole_day`: whether the range contains a whole day of the bucket.
    fn has_certain_occurrence(
        &self,
        summary: &SeriesSummary,
        has_whole_day: &dyn Fn() -> bool,
    ) -> bool {
        let (from, to) = self.inner;
        let pattern = summary.time_pattern.unwrap_or(TimePattern::ANY);
        from > summary.complete_after
            && (summary.max_gap_seconds.is_some_and(|gap| pattern.has_start_in(gap, from, to))
                || summary.is_gapless_weekly && pattern.has_whole_day_in(from, to)
                || summary.is_on_each_bucket_day && has_whole_day())
    }

    /// Returns the buckets that the range touches.
    fn bucket_plan(&self, target: TimeTarget, scale: TimeScale) -> BucketPlan {
        let day = |number: i64| {
            let date = Date::from_day_number(number);
            CivilDay { number, month: date.month, day: date.day }
        };
        let day_number = |second: i64| CivilTime::from_seconds_clamped(second).day_number();
        let (first, last) = (day_number(self.outer.0), day_number(self.outer.1 - 1));
        let first_whole = day_number(self.inner.0.saturating_add(DAY_SECONDS - 1));
        let last_whole = day_number(self.inner.1) - 1;
        let whole = (first_whole <= last_whole).then(|| (day(first_whole), day(last_whole)));
        BucketPlan::new(layer(target), scale, (day(first), day(last)), whole)
    }
}

/// The interval of a row as instants.
struct InstantSpan {
    start: i64,
    end: i64,
    /// It may end before the range.
    is_end_uncertain: bool,
}

/// A search in progress.
struct IntervalSearcher<'a> {
    tx: &'a ReadTransaction<'a>,
    extractor: &'a Extractor,
    range: &'a TimeRange,
    hits: TimeRangeHits,
    /// The range in UTC and on the floating clock.
    utc_range: SecondsRange,
    floating_range: SecondsRange,
    /// Items whose series has to be evaluated, and the place of its packed schedule in
    /// `pending_bytes`; an empty place: it is read from `idx_schedule`.
    pending_series: Vec<(ItemRow, Range<usize>)>,
    pending_bytes: Vec<u8>,
    /// The time zones of the series evaluated so far, by name. They are few, so a scan is faster
    /// than a map.
    zone_cache: Vec<(String, Zone)>,
}

/// Finds the items of these collections that have occurrences or alarms in a time range.
pub(crate) fn search(
    tx: &ReadTransaction<'_>,
    extractor: &Extractor,
    collections: &[&CollectionMeta],
    range: &TimeRange,
) -> DatabaseResult<TimeRangeHits> {
    let mut search = IntervalSearcher {
        tx,
        extractor,
        range,
        hits: TimeRangeHits::default(),
        utc_range: SecondsRange::from_time_range(range, false),
        floating_range: SecondsRange::from_time_range(range, true),
        pending_series: Vec::new(),
        pending_bytes: Vec::new(),
        zone_cache: Vec::new(),
    };
    if range.from < range.to {
        let mut select = tx.prepare_cached(ENTRIES_IN_CLASS_SQL)?;
        for collection in
            collections.iter().filter(|known| known.index_config.collection_type().has_schedules())
        {
            search.scan_spans(&mut select, collection)?;
            search.scan_buckets(&mut select, collection.collection_key.id, false)?;
            search.scan_buckets(&mut select, collection.collection_key.id, true)?;
        }
        search.evaluate_pending()?;
    }
    let mut hits = search.hits;
    hits.items.sort_unstable();
    hits.items.dedup();
    hits.undecided.retain(|item| hits.items.binary_search(item).is_err());
    Ok(hits)
}

impl IntervalSearcher<'_> {
    fn range_seconds(&self) -> (i64, i64) {
        (self.range.from.seconds(), self.range.to.seconds())
    }

    fn scan_spans(
        &mut self,
        select: &mut ReadStatement<'_>,
        collection: &CollectionMeta,
    ) -> rusqlite::Result<()> {
        let (from, to) = self.range_seconds();
        for &class in collection.span_classes(self.tx, self.range.target)? {
            let is_floating = span_scale(class) == TimeScale::Floating;
            let slack = if is_floating { MAX_UTC_OFFSET_SECONDS } else { 0 };
            let first = max_span_seconds(class).map_or(i64::MIN, |max| from - slack - max);
            let row_class = row_class(collection.collection_key.id.to_number(), class);
            let rows = select.query((row_class, first, to + slack))?;
            self.test_rows(rows, is_floating, false)?;
        }
        Ok(())
    }

    /// Tests the rows of one row class. `has_whole_day`: whether the range contains each day of the
    /// bucket that it touches.
    fn test_rows(
        &mut self,
        mut rows: Rows<'_>,
        is_floating: bool,
        has_whole_day: bool,
    ) -> rusqlite::Result<()> {
        while let Some(row) = rows.next()? {
            self.test_row(row, is_floating, &|| has_whole_day)?;
        }
        Ok(())
    }

    fn scan_buckets(
        &mut self,
        select: &mut ReadStatement<'_>,
        collection: CollectionRow,
        is_floating: bool,
    ) -> rusqlite::Result<()> {
        let range = if is_floating { &self.floating_range } else { &self.utc_range };
        let plan = range.bucket_plan(self.range.target, time_scale(is_floating));
        let slack = if is_floating { MAX_UTC_OFFSET_SECONDS } else { 0 };
        let end = self.range.to.seconds() + slack;
        let (short_ranges, long_ranges): (Vec<_>, Vec<_>) = plan
            .class_ranges()
            .partition(|classes| classes.end() - classes.start() < MAX_SEPARATE_BUCKET_SCANS);
        for class in short_ranges.into_iter().flatten() {
            let rows = select.query((row_class(collection.to_number(), class), i64::MIN, end))?;
            self.test_rows(rows, is_floating, plan.is_whole(class))?;
        }
        if long_ranges.is_empty() {
            return Ok(());
        }
        let mut select = self.tx.prepare_cached(
            "SELECT end, item, series_summary, start, row_class FROM idx_interval
             WHERE row_class BETWEEN ?1 AND ?2 AND start < ?3",
        )?;
        for classes in long_ranges {
            let first = row_class(collection.to_number(), *classes.start());
            let last = row_class(collection.to_number(), *classes.end());
            let mut rows = select.query((first, last, end))?;
            while let Some(row) = rows.next()? {
                self.test_row(row, is_floating, &|| {
                    row.get(4).is_ok_and(|row_class: i64| {
                        plan.is_whole(class_in_partition(collection.to_number(), row_class))
                    })
                })?;
            }
        }
        Ok(())
    }

    /// Accepts a row, rejects it, or leaves its series to be evaluated.
    fn test_row(
        &mut self,
        row: &Row<'_>,
        is_floating: bool,
        has_whole_day: &dyn Fn() -> bool,
    ) -> rusqlite::Result<()> {
        self.hits.postings_read += 1;
        let (from, to) = self.range_seconds();
        let end: i64 = row.get(0)?;
        let span = match is_floating {
            false if end <= from => return Ok(()),
            false => None,
            true => Some(self.to_local_span(row.get(3)?, end)),
        };
        if span.as_ref().is_some_and(|span| span.start >= to || span.end <= from) {
            return Ok(());
        }
        let item = row.get(1)?;
        match (row.get_ref(2)?.as_blob_or_null()?, span) {
            (None, Some(span)) if span.is_end_uncertain => self.defer_series(item, &[]),
            (None, _) => self.hits.items.push(item),
            (Some(series), Some(span)) => {
                self.test_series(item, series, &span, true, has_whole_day);
            }
            (Some(series), None) => {
                let span = InstantSpan { start: row.get(3)?, end, is_end_uncertain: false };
                self.test_series(item, series, &span, false, has_whole_day);
            }
        }
        Ok(())
    }

    /// Converts a floating interval to instants in the local zone.
    fn to_local_span(&self, start: i64, end: i64) -> InstantSpan {
        let instant = |seconds| {
            self.range.local_zone.to_instant(CivilTime::from_seconds_clamped(seconds)).seconds()
        };
        let start = instant(start);
        if end == i64::MAX {
            return InstantSpan { start, end, is_end_uncertain: false };
        }
        let (from, change) = (self.range.from.seconds(), self.floating_range.max_offset_change());
        let end = instant(end).max(start + 1);
        // A duration ends sooner or later than the clock shows if the offset from UTC changes
        // during it.
        let is_end_uncertain = start < from && end - change <= from && from < end + change;
        let end = if is_end_uncertain { end.max(from + 1) } else { end };
        InstantSpan { start, end, is_end_uncertain }
    }

    /// Decides by its summary whether a series that overlaps the range has an occurrence in it, or
    /// leaves it to be evaluated.
    fn test_series(
        &mut self,
        item: ItemRow,
        mut series: &[u8],
        span: &InstantSpan,
        is_floating: bool,
        has_whole_day: &dyn Fn() -> bool,
    ) {
        let (from, to) = self.range_seconds();
        let Some(summary) = SeriesSummary::unpack(&mut series) else {
            return self.defer_series(item, &[]);
        };
        let range = if is_floating { &self.floating_range } else { &self.utc_range };
        let is_certain = match (span.start >= from, span.end <= to) {
            (false, false) => range.has_certain_occurrence(&summary, has_whole_day),
            (begins_in_range, ends_in_range) => {
                begins_in_range && summary.has_occurrences_at_ends.0
                    || ends_in_range && summary.has_occurrences_at_ends.1 && !span.is_end_uncertain
            }
        };
        if is_certain {
            self.hits.items.push(item);
        } else if summary.time_pattern.is_none_or(|pattern| pattern.can_meet(range.time_pattern)) {
            self.defer_series(item, series);
        }
    }

    /// Leaves a series to be evaluated; empty bytes: its packed schedule is read from
    /// `idx_schedule`.
    fn defer_series(&mut self, item: ItemRow, series: &[u8]) {
        let start = self.pending_bytes.len();
        self.pending_bytes.extend_from_slice(series);
        self.pending_series.push((item, start..self.pending_bytes.len()));
    }

    /// Evaluates the series that their rows did not decide.
    fn evaluate_pending(&mut self) -> DatabaseResult<()> {
        self.pending_series.sort_unstable_by_key(|(item, _)| *item);
        self.pending_series.dedup_by_key(|(item, _)| *item);
        for (item, place) in std::mem::take(&mut self.pending_series) {
            let stored;
            let data = match self.pending_bytes.get(place).filter(|data| !data.is_empty()) {
                Some(data) => data,
                None => {
                    stored = read_packed_schedule(self.tx, item)?;
                    stored.as_deref().unwrap_or_default()
                }
            };
            let (conn, resolver, zones) =
                (self.tx, self.extractor.zone_resolver(), &mut self.zone_cache);
            let mut error = None;
            let schedule = Schedule::unpack(data, &mut |name| {
                if let Some((_, zone)) = zones.iter().find(|(known, _)| known == name) {
                    return Some(zone.clone());
                }
                let zone = load_zone(conn, resolver, name).unwrap_or_else(|damage| {
                    error = Some(damage);
                    None
                })?;
                zones.push((name.to_string(), zone.clone()));
                Some(zone)
            });
            error.map_or(Ok(()), Err)?;
            self.hits.series_evaluated += 1;
            match schedule.map(|schedule| schedule.overlap(self.range)) {
                Some(Overlap::Yes) => self.hits.items.push(item),
                Some(Overlap::No) => {}
                Some(Overlap::Undecided) | None => self.hits.undecided.push(item),
            }
        }
        Ok(())
    }
}

/// Reads the packed schedule of an item; `None`: it has none.
fn read_packed_schedule(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> rusqlite::Result<Option<Vec<u8>>> {
    tx.prepare_cached("SELECT data FROM idx_schedule WHERE item = ?1")?
        .query_row([item], |row| row.get(0))
        .optional()
}
