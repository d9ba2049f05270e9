//! Finding what is in a window: which rows of the interval index can be in it, and of which of
//! these it has to be asked.

use super::{
    ALARM_BUCKET_OFFSET, ALARM_CLASS_OFFSET, ANY_BUCKET_CLASS, FLOATING_BUCKET_OFFSET,
    FLOATING_CLASS_OFFSET, MAX_CLASS_SPAN_SECONDS, MONTH_DAY_BUCKET_CLASS, RecurrenceBucket,
    SeriesSummary, TimeRangeHits, WEEKDAY_BUCKET_CLASS, YEAR_DAY_BUCKET_CLASS, row_class,
};
use crate::collection::CollectionMeta;
use crate::error::{Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::reader::Reader;
use crate::series;
use crate::zone_loader::{load_zone, unpack_schedule};
use larder_extract::Extractor;
use larder_extract::{Overlap, Schedule, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, Weekday};
use larder_time::series::TimePattern;
use larder_time::zone::Zone;
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, Statement};
use std::ops::{Range, RangeInclusive};

/// So many slots are looked at one by one, as classes are: a question that is put once has one
/// statement less to be made ready, and what begins behind the window is not read.
const MAX_SEPARATE_BUCKET_SCANS: i64 = 2;
/// Clocks of the world differ from UTC by less than this.
const MAX_UTC_OFFSET_SECONDS: i64 = DAY_SECONDS;

/// What is in one place and begins in a stretch of time.
const ENTRIES_IN_CLASS_SQL: &str = "SELECT end, item, series, start FROM idx_span
    WHERE place = ?1 AND start >= ?2 AND start < ?3";

/// Days of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DayCoverage {
    /// It touches them: a slot too many is no harm.
    Partial,
    /// They are all in it: no slot may be named of which a day is not.
    Whole,
}

/// The slots of two days and all between them.
fn buckets_between_days(first: i64, last: i64, which: DayCoverage) -> Vec<RangeInclusive<i64>> {
    let days = last - first;
    let (a, b) = (Date::from_day_number(first), Date::from_day_number(last));
    let mut slots = vec![ANY_BUCKET_CLASS..=ANY_BUCKET_CLASS];
    let mut add =
        |all: bool, whole: RangeInclusive<i64>, from: RecurrenceBucket, to: RecurrenceBucket| {
            let (from, to) = (from.class_number(), to.class_number());
            match (all, from <= to) {
                (true, _) => slots.push(whole),
                (false, true) => slots.push(from..=to),
                (false, false) => slots.extend([*whole.start()..=to, from..=*whole.end()]),
            }
        };
    let (from, to) = (Weekday::from_day_number(first), Weekday::from_day_number(last));
    add(
        days >= 6,
        WEEKDAY_BUCKET_CLASS..=WEEKDAY_BUCKET_CLASS + 6,
        RecurrenceBucket::Weekday(from),
        RecurrenceBucket::Weekday(to),
    );
    let month = MONTH_DAY_BUCKET_CLASS + 1..=MONTH_DAY_BUCKET_CLASS + 31;
    // As many days of any month or year as have all of its dates; or so many that a shorter one may
    // have begun anew.
    let (all_of_month, all_of_year) = match which {
        DayCoverage::Partial => (27, 364),
        DayCoverage::Whole => (30, 365),
    };
    add(
        days >= all_of_month,
        month,
        RecurrenceBucket::MonthDay(a.day),
        RecurrenceBucket::MonthDay(b.day),
    );
    let year = YEAR_DAY_BUCKET_CLASS + 32..=YEAR_DAY_BUCKET_CLASS + 13 * 32;
    add(
        days >= all_of_year,
        year,
        RecurrenceBucket::YearDay(a.month, a.day),
        RecurrenceBucket::YearDay(b.month, b.day),
    );
    if which == DayCoverage::Partial && days < all_of_year {
        // What may be on any day of the first month.
        let month = RecurrenceBucket::YearDay(a.month, 0).class_number();
        slots.push(month..=month);
    }
    slots
}

/// The window by a clock: seconds of UTC, or those that the clock of whoever asks shows.
struct LocalRange {
    /// All that may be in it, and what is surely so: clocks change.
    outer: (i64, i64),
    inner: (i64, i64),
    /// When in the week and in the year something in it can be.
    time_pattern: TimePattern,
}

impl LocalRange {
    fn from_time_range(window: &TimeRange, floats: bool) -> LocalRange {
        let (from, to) = (window.from.seconds(), window.to.seconds());
        let (low, high) = if floats { window.local_zone.offset_bounds() } else { (0, 0) };
        let (low, high) = (i64::from(low), i64::from(high));
        let outer = (from.saturating_add(low), to.saturating_add(high));
        let inner = (from.saturating_add(high), to.saturating_add(low));
        LocalRange { outer, inner, time_pattern: TimePattern::from_time_range(outer.0, outer.1) }
    }

    /// How much its clock changes, at most.
    fn max_offset_change(&self) -> i64 {
        self.inner.0.saturating_sub(self.outer.0)
    }

    /// Does it surely have an occurrence of a series that goes on before and behind it?
    fn has_certain_occurrence(&self, hint: &SeriesSummary, whole_day: &dyn Fn() -> bool) -> bool {
        let (from, to) = self.inner;
        let pattern = hint.time_pattern.unwrap_or(TimePattern::ANY);
        from > hint.complete_after
            && (hint.max_gap_seconds.is_some_and(|gap| pattern.has_start_in(gap, from, to))
                || hint.is_gapless_weekly && pattern.has_whole_day_in(from, to)
                || hint.is_on_each_bucket_day && whole_day())
    }

    /// The slots of the days that it touches, and of those that are all in it.
    fn buckets(&self) -> (Vec<RangeInclusive<i64>>, Vec<RangeInclusive<i64>>) {
        let day = |second: i64| CivilTime::from_seconds_clamped(second).day_number();
        let touched =
            buckets_between_days(day(self.outer.0), day(self.outer.1 - 1), DayCoverage::Partial);
        let (first, last) =
            (day(self.inner.0.saturating_add(DAY_SECONDS - 1)), day(self.inner.1) - 1);
        (
            touched,
            if first <= last {
                buckets_between_days(first, last, DayCoverage::Whole)
            } else {
                Vec::new()
            },
        )
    }
}

/// From when to when something in a row is.
struct LocalSpan {
    start: i64,
    end: i64,
    /// It may have ended before the window.
    is_end_uncertain: bool,
}

/// A search, as it goes from row to row.
struct IntervalSearcher<'a> {
    conn: &'a Connection,
    extractor: &'a Extractor,
    range: &'a TimeRange,
    hits: TimeRangeHits,
    /// The same window for what does not float, and for what does.
    utc_range: LocalRange,
    floating_range: LocalRange,
    /// Series that have to be asked themselves, and where in `data` they are; 0..0: they are beside
    /// the item.
    pending_series: Vec<(i64, Range<usize>)>,
    pending_bytes: Vec<u8>,
    /// The zones of those that were asked, by their names: few, which is found out sooner than they
    /// are looked up.
    zone_cache: Vec<(String, Zone)>,
}

/// How many classes there can be of what is looked for.
const CLASS_COUNT: usize = 2 * (MAX_CLASS_SPAN_SECONDS.len() + 1);

/// All classes that there can be, from this one on.
const fn list_classes_from(base: i64) -> [i64; CLASS_COUNT] {
    let (mut all, mut at) = ([0; CLASS_COUNT], 0);
    while at < CLASS_COUNT {
        let (floats, class) =
            (at / (MAX_CLASS_SPAN_SECONDS.len() + 1), at % (MAX_CLASS_SPAN_SECONDS.len() + 1));
        all[at] = base + floats as i64 * FLOATING_CLASS_OFFSET + class as i64;
        at += 1;
    }
    all
}

/// All classes of spans that a collection can have for what is looked for.
pub(crate) fn all_classes(what: TimeTarget) -> &'static [i64] {
    const OCCURRENCE_CLASSES: &[i64] = &list_classes_from(0);
    const ALARM_CLASSES: &[i64] = &list_classes_from(ALARM_CLASS_OFFSET);
    if what == TimeTarget::Alarms { ALARM_CLASSES } else { OCCURRENCE_CLASSES }
}

/// The classes of spans that a collection has for what is looked for: a step for each, as most are
/// not there.
pub(crate) fn find_classes(
    conn: &Connection,
    collection: i64,
    what: TimeTarget,
) -> rusqlite::Result<Vec<i64>> {
    let base = if what == TimeTarget::Alarms { ALARM_CLASS_OFFSET } else { 0 };
    let mut next = conn.prepare_cached(
        "SELECT place FROM idx_span WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT 1",
    )?;
    let mut classes = Vec::new();
    loop {
        let last = classes.last().copied().unwrap_or(base - 1);
        let between =
            (row_class(collection, last), row_class(collection, base + ALARM_CLASS_OFFSET));
        let found: Option<i64> = next.query_row(between, |row| row.get(0)).optional()?;
        match found {
            Some(found) => classes.push(found - row_class(collection, 0)),
            None => return Ok(classes),
        }
    }
}

/// Finds the items of these collections in a window.
pub(crate) fn search(
    conn: &Connection,
    deriver: &Extractor,
    collections: &[&CollectionMeta],
    window: &TimeRange,
) -> rusqlite::Result<TimeRangeHits> {
    let mut search = IntervalSearcher {
        conn,
        extractor: deriver,
        range: window,
        hits: TimeRangeHits::default(),
        utc_range: LocalRange::from_time_range(window, false),
        floating_range: LocalRange::from_time_range(window, true),
        pending_series: Vec::new(),
        pending_bytes: Vec::new(),
        zone_cache: Vec::new(),
    };
    if window.from < window.to {
        let mut begun = conn.prepare_cached(ENTRIES_IN_CLASS_SQL)?;
        for collection in
            collections.iter().filter(|of| of.index_config.collection_type().has_schedules())
        {
            search.scan_spans(&mut begun, collection)?;
            search.scan_buckets(&mut begun, collection.collection_key.id, false)?;
            search.scan_buckets(&mut begun, collection.collection_key.id, true)?;
        }
        search.evaluate_pending()?;
    }
    let mut found = search.hits;
    found.items.sort_unstable();
    found.items.dedup();
    found.undecided.retain(|row| found.items.binary_search(row).is_err());
    Ok(found)
}

impl IntervalSearcher<'_> {
    fn range_seconds(&self) -> (i64, i64) {
        (self.range.from.seconds(), self.range.to.seconds())
    }

    fn scan_spans(
        &mut self,
        begun: &mut Statement<'_>,
        collection: &CollectionMeta,
    ) -> rusqlite::Result<()> {
        let base = if self.range.target == TimeTarget::Alarms { ALARM_CLASS_OFFSET } else { 0 };
        let (from, to) = self.range_seconds();
        for &class in collection.row_classes(self.conn, self.range.target)? {
            let floating = class - base >= FLOATING_CLASS_OFFSET;
            let longest =
                MAX_CLASS_SPAN_SECONDS.get(((class - base) % FLOATING_CLASS_OFFSET) as usize);
            let wider = if floating { MAX_UTC_OFFSET_SECONDS } else { 0 };
            let first = longest.map_or(i64::MIN, |longest| from - wider - longest);
            let rows =
                begun.query((row_class(collection.collection_key.id, class), first, to + wider))?;
            self.test_rows(rows, floating, false)?;
        }
        Ok(())
    }

    /// Decides of the rows of one place; is the day of their slot all in the window?
    fn test_rows(
        &mut self,
        mut rows: Rows<'_>,
        floating: bool,
        whole_day: bool,
    ) -> rusqlite::Result<()> {
        while let Some(row) = rows.next()? {
            self.test_row(row, floating, &|| whole_day)?;
        }
        Ok(())
    }

    fn scan_buckets(
        &mut self,
        begun: &mut Statement<'_>,
        collection: i64,
        floating: bool,
    ) -> rusqlite::Result<()> {
        let base = match (self.range.target, floating) {
            (TimeTarget::Occurrences, false) => 0,
            (TimeTarget::Occurrences, true) => FLOATING_BUCKET_OFFSET,
            (TimeTarget::Alarms, false) => ALARM_BUCKET_OFFSET,
            (TimeTarget::Alarms, true) => ALARM_BUCKET_OFFSET + FLOATING_BUCKET_OFFSET,
        };
        let stretch = if floating { &self.floating_range } else { &self.utc_range };
        let (touched, whole) = match self.range.target {
            TimeTarget::Occurrences => stretch.buckets(),
            TimeTarget::Alarms => (vec![ANY_BUCKET_CLASS..=ANY_BUCKET_CLASS], Vec::new()),
        };
        let before = self.range.to.seconds() + if floating { MAX_UTC_OFFSET_SECONDS } else { 0 };
        let is_whole = |slot| whole.iter().any(|slots| slots.contains(&slot));
        let (one_by_one, at_once): (Vec<_>, Vec<_>) = touched
            .into_iter()
            .partition(|slots| slots.end() - slots.start() < MAX_SEPARATE_BUCKET_SCANS);
        for slot in one_by_one.into_iter().flatten() {
            let rows = begun.query((row_class(collection, base + slot), i64::MIN, before))?;
            self.test_rows(rows, floating, is_whole(slot))?;
        }
        if at_once.is_empty() {
            return Ok(());
        }
        let mut select = self.conn.prepare_cached(
            "SELECT end, item, series, start, place FROM idx_span
             WHERE place BETWEEN ?1 AND ?2 AND start < ?3",
        )?;
        for slots in at_once {
            let slots_from = row_class(collection, base);
            let (first, last) = (slots_from + slots.start(), slots_from + slots.end());
            let mut rows = select.query((first, last, before))?;
            while let Some(row) = rows.next()? {
                self.test_row(row, floating, &|| {
                    row.get(4).is_ok_and(|slot: i64| is_whole(slot - slots_from))
                })?;
            }
        }
        Ok(())
    }

    /// Decides of a row; is the day of its slot all in the window?
    fn test_row(
        &mut self,
        row: &Row<'_>,
        floating: bool,
        whole_day: &dyn Fn() -> bool,
    ) -> rusqlite::Result<()> {
        self.hits.entries_read += 1;
        let (from, to) = self.range_seconds();
        let end: i64 = row.get(0)?;
        let reach = match floating {
            false if end <= from => return Ok(()),
            false => None,
            true => Some(self.to_local_span(row.get(3)?, end)),
        };
        if reach.as_ref().is_some_and(|reach| reach.start >= to || reach.end <= from) {
            return Ok(());
        }
        let item = row.get(1)?;
        match (row.get_ref(2)?.as_blob_or_null()?, reach) {
            (None, Some(reach)) if reach.is_end_uncertain => self.defer_series(item, &[]),
            (None, _) => self.hits.items.push(item),
            (Some(series), Some(reach)) => {
                self.test_series(item, series, &reach, true, whole_day);
            }
            (Some(series), None) => {
                let reach = LocalSpan { start: row.get(3)?, end, is_end_uncertain: false };
                self.test_series(item, series, &reach, false, whole_day);
            }
        }
        Ok(())
    }

    /// From when to when something is that floats.
    fn to_local_span(&self, start: i64, end: i64) -> LocalSpan {
        let instant = |seconds| {
            self.range.local_zone.to_instant(CivilTime::from_seconds_clamped(seconds)).seconds()
        };
        let start = instant(start);
        if end == i64::MAX {
            return LocalSpan { start, end, is_end_uncertain: false };
        }
        let (from, change) = (self.range.from.seconds(), self.floating_range.max_offset_change());
        let end = instant(end).max(start + 1);
        // What takes so many seconds ends sooner or later than its clock says, where that changes
        // meanwhile.
        let doubtful = start < from && end - change <= from && from < end + change;
        LocalSpan {
            start,
            end: if doubtful { end.max(from + 1) } else { end },
            is_end_uncertain: doubtful,
        }
    }

    /// Decides of a series that reaches into the window, or leaves it to be asked.
    fn test_series(
        &mut self,
        item: i64,
        mut series: &[u8],
        reach: &LocalSpan,
        floating: bool,
        whole_day: &dyn Fn() -> bool,
    ) {
        let (from, to) = self.range_seconds();
        let Some(hint) = SeriesSummary::unpack(&mut series) else {
            return self.defer_series(item, &[]);
        };
        let stretch = if floating { &self.floating_range } else { &self.utc_range };
        let sure = match (reach.start >= from, reach.end <= to) {
            (false, false) => stretch.has_certain_occurrence(&hint, whole_day),
            (begins, ends) => {
                begins && hint.has_occurrences_at_ends.0
                    || ends && hint.has_occurrences_at_ends.1 && !reach.is_end_uncertain
            }
        };
        if sure {
            self.hits.items.push(item);
        } else if hint.time_pattern.is_none_or(|of| of.can_meet(stretch.time_pattern)) {
            self.defer_series(item, series);
        }
    }

    /// Is to be asked.
    fn defer_series(&mut self, item: i64, series: &[u8]) {
        let from = self.pending_bytes.len();
        self.pending_bytes.extend_from_slice(series);
        self.pending_series.push((item, from..self.pending_bytes.len()));
    }

    /// Asks the series of which the tables do not tell.
    fn evaluate_pending(&mut self) -> rusqlite::Result<()> {
        self.pending_series.sort_unstable_by_key(|(item, _)| *item);
        self.pending_series.dedup_by_key(|(item, _)| *item);
        for (item, place) in std::mem::take(&mut self.pending_series) {
            let kept;
            let data = match self.pending_bytes.get(place).filter(|data| !data.is_empty()) {
                Some(data) => data,
                None => {
                    kept = read_packed_schedule(self.conn, item)?;
                    kept.as_deref().unwrap_or_default()
                }
            };
            let (conn, clocks, zones) =
                (self.conn, self.extractor.zone_resolver(), &mut self.zone_cache);
            let times = Schedule::unpack(data, &mut |name| {
                if let Some((_, zone)) = zones.iter().find(|(known, _)| known == name) {
                    return Some(zone.clone());
                }
                let zone = load_zone(conn, clocks, name)?;
                zones.push((name.to_string(), zone.clone()));
                Some(zone)
            });
            self.hits.series_evaluated += 1;
            match times.map(|times| times.overlap(self.range)) {
                Some(Overlap::Yes) => self.hits.items.push(item),
                Some(Overlap::No) => {}
                Some(Overlap::Unknown) | None => self.hits.undecided.push(item),
            }
        }
        Ok(())
    }
}

/// What is kept of an item in time.
fn read_packed_schedule(conn: &Connection, item: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?
        .query_row([item], |row| row.get(0))
        .optional()
}

impl Reader {
    /// The items of these collections that are in a window. `None`: the index is not whole, or not
    /// of this program's making; scan.
    pub fn find_in_time_range(
        &self,
        collections: &[i64],
        window: &TimeRange,
    ) -> Result<Option<TimeRangeHits>> {
        let run = || -> rusqlite::Result<Option<TimeRangeHits>> {
            let _snapshot = self.begin_read_raw()?;
            let known = self.cache()?;
            if !self.is_time_index_current(&known) {
                return Ok(None);
            }
            let asked: Vec<&CollectionMeta> = known
                .collections
                .iter()
                .filter(|known| collections.contains(&known.collection_key.id))
                .collect();
            search(&self.conn, &self.extractor, &asked, window).map(Some)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Gives what the items in these rows are in time to `each`, in the order of `rows`, without
    /// those that are nowhere in it, until it answers false. All within one read transaction.
    pub fn for_each_schedule(
        &self,
        rows: &[i64],
        each: &mut dyn FnMut(i64, &Schedule) -> bool,
    ) -> Result<()> {
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.begin_read_raw()?;
            let usable = self.is_time_index_current(&*self.cache()?);
            let mut derivers = ExtractorCache::new(&self.extractor);
            let mut select =
                self.conn.prepare_cached("SELECT data FROM idx_time WHERE item = ?1")?;
            for &item in rows {
                let kept = match usable {
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
                    false => series::compute_schedule(&self.conn, &mut derivers, item)?,
                };
                if kept.is_some_and(|times| !each(item, &times)) {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// What the item in this row is in time, by its bytes and by those of its UID, without the
    /// index.
    pub fn recompute_schedule(&self, row: i64) -> Result<Option<Schedule>> {
        let run = || -> rusqlite::Result<Option<Schedule>> {
            let _snapshot = self.begin_read_raw()?;
            let mut derivers = ExtractorCache::new(&self.extractor);
            series::compute_schedule(&self.conn, &mut derivers, row)
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}
