//! The interval index: which items are in a window of time, and which alarms ring in it.
//!
//! `idx_span(place, start, end, item, series)` answers that, in the order of its key, so that a
//! window reads about as many rows as it finds. `place` is the collection, times 2^14, and the
//! class of the row, by which it is one of two things:
//!
//! * a span: whatever has an end, with its first start and its last end. Spans of one class are
//!   about as long as each other, so none that reaches into a window begins much before it.
//! * a slot: series without an end, or with one far away. The slot says when in the week, the month
//!   or the year an occurrence can be, by the days of UTC, so that a birthday is not looked at in
//!   other months.
//!
//! What floats is in classes and slots of its own, in the seconds and days of its own clock, and is
//! read by the clock of whoever asks. `series` is empty for what happens once; else it is a
//! [`SeriesSummary`], and behind that what `idx_time` has of the series, if that is short: so a
//! window passes over a series, takes it, or asks it, without a look into another table.
//!
//! What an item is in time is found in `times`; here is how the rows look, in `hint` what they tell
//! of a series, in `search` how they are found, in `write` how they come there, and in `zones` what
//! becomes of them when zones change.

mod search;
mod series_summary;
mod writer;
mod zone_update;

pub(crate) use search::{all_classes, find_classes, search};
pub(crate) use series_summary::SeriesSummary;
pub(crate) use writer::{
    IntervalWriter, clear, delete_item, for_each_expected_record, for_each_record,
};
pub(crate) use zone_update::{ZONE_DATA_VERSION_KEY, write_zone_data_version};

use larder_extract::TimeTarget;
use larder_time::civil::{DAY_SECONDS, Weekday};

/// The longest span of each class, in seconds; whatever is longer is in one more.
const MAX_CLASS_SPAN_SECONDS: [i64; 9] = [
    4 * 3600,
    DAY_SECONDS + 2 * 3600,
    8 * DAY_SECONDS,
    32 * DAY_SECONDS,
    64 * DAY_SECONDS,
    128 * DAY_SECONDS,
    256 * DAY_SECONDS,
    2 * 366 * DAY_SECONDS,
    10 * 366 * DAY_SECONDS,
];
/// Classes of what floats have this much more, and those of alarms that.
pub(crate) const FLOATING_CLASS_OFFSET: i64 = 20;
pub(crate) const ALARM_CLASS_OFFSET: i64 = 100;
/// The slots of what floats have this much more, and those of alarms that.
const FLOATING_BUCKET_OFFSET: i64 = 1000;
const ALARM_BUCKET_OFFSET: i64 = 10_000;
/// Slots, behind all classes of spans: at any time; from here on a weekday, a day of the month, a
/// month (times 32) and its day.
const ANY_BUCKET_CLASS: i64 = 1000;
const WEEKDAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 1;
const MONTH_DAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 20;
const YEAR_DAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 100;

/// More bytes than this are not kept in a row: they would stand between the rows of others.
const MAX_INLINE_SCHEDULE_BYTES: usize = 160;

/// Items in a window.
#[derive(Debug, Clone, Default)]
pub struct TimeRangeHits {
    /// Their rows, in order, each once.
    pub items: Vec<i64>,
    /// Of these it could not be said within bounds whether they are in it.
    pub undecided: Vec<i64>,
    /// How many rows of the index were read.
    pub entries_read: u64,
    /// How many series were asked themselves.
    pub series_evaluated: u64,
}

/// A row of the table. What has no hint is in every window that its span, or what it has of a slot,
/// reaches into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IntervalEntry {
    class: i64,
    start: i64,
    end: i64,
    series_summary: Option<SeriesSummary>,
}

impl IntervalEntry {
    /// Something that begins and ends; where it takes no time, it is taken to last a second.
    pub(crate) fn from_span(
        what: TimeTarget,
        floating: bool,
        (start, end): (i64, i64),
        series_summary: Option<SeriesSummary>,
    ) -> IntervalEntry {
        let end = end.max(start + 1);
        let length = end - start;
        let class = MAX_CLASS_SPAN_SECONDS
            .iter()
            .position(|most| length <= *most)
            .unwrap_or(MAX_CLASS_SPAN_SECONDS.len()) as i64;
        let class = class + if floating { FLOATING_CLASS_OFFSET } else { 0 };
        let class = class + if what == TimeTarget::Alarms { ALARM_CLASS_OFFSET } else { 0 };
        IntervalEntry { class, start, end, series_summary }
    }

    /// Something that goes on for long.
    pub(crate) fn from_bucket(
        what: TimeTarget,
        floating: bool,
        slot: RecurrenceBucket,
        (start, end): (i64, i64),
        series_summary: Option<SeriesSummary>,
    ) -> IntervalEntry {
        let slot = slot.class_number() + if floating { FLOATING_BUCKET_OFFSET } else { 0 };
        let class = slot + if what == TimeTarget::Alarms { ALARM_BUCKET_OFFSET } else { 0 };
        IntervalEntry { class, start, end, series_summary }
    }

    /// What it is of.
    pub(crate) fn target(&self) -> TimeTarget {
        match (ALARM_CLASS_OFFSET..ANY_BUCKET_CLASS).contains(&self.class)
            || self.class >= ALARM_BUCKET_OFFSET
        {
            true => TimeTarget::Alarms,
            false => TimeTarget::Occurrences,
        }
    }

    /// From when to when it reaches, by whatever clock.
    pub(crate) fn bounds(&self) -> (i64, i64) {
        (self.start.saturating_sub(DAY_SECONDS), self.end.saturating_add(DAY_SECONDS))
    }

    /// Where it is in the table, as a row of this collection.
    fn row_class(&self, collection: i64) -> i64 {
        row_class(collection, self.class)
    }

    /// What its column has of a series: what a window may have to ask is behind the hint.
    fn pack_series(&self, data: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.series_summary.as_ref()?.pack();
        if self.target() == TimeTarget::Occurrences && data.len() <= MAX_INLINE_SCHEDULE_BYTES {
            bytes.extend_from_slice(data);
        }
        Some(bytes)
    }

    /// Is the other one the same stretch? Then what is not sure of one is not sure of both.
    pub(crate) fn merge_if_equal(&mut self, other: &IntervalEntry) -> bool {
        let same = (self.class, self.start, self.end) == (other.class, other.start, other.end);
        if same && self.series_summary != other.series_summary {
            self.series_summary = Some(SeriesSummary::UNKNOWN);
        }
        same
    }
}

/// The days on which occurrences of a long series can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecurrenceBucket {
    Any,
    Weekday(Weekday),
    MonthDay(u8),
    /// A month and its day; with the day 0 any day of it.
    YearDay(u8, u8),
}

impl RecurrenceBucket {
    fn class_number(self) -> i64 {
        match self {
            RecurrenceBucket::Any => ANY_BUCKET_CLASS,
            RecurrenceBucket::Weekday(weekday) => {
                WEEKDAY_BUCKET_CLASS + i64::from(weekday.number_from_monday())
            }
            RecurrenceBucket::MonthDay(day) => MONTH_DAY_BUCKET_CLASS + i64::from(day),
            RecurrenceBucket::YearDay(month, day) => {
                YEAR_DAY_BUCKET_CLASS + i64::from(month) * 32 + i64::from(day)
            }
        }
    }
}

/// Where the rows of a class are: in one number, which is sooner compared than two.
fn row_class(collection: i64, class: i64) -> i64 {
    (collection << 14) + class
}
