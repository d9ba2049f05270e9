//! The interval index: keys under which a sorted table finds the intervals that overlap a range.
//!
//! The table is the caller's; a row has the key `(row class, start, end)` and a payload. A *row
//! class* is a partition (the caller's collection, say) and a *class*, and a class holds one of two
//! things:
//!
//! * **Spans**: intervals with an end. Spans of one class have about the same length, so those that
//!   overlap a range begin at most [`max_span_seconds`] before it: a range reads about as many rows
//!   as it returns. (A static interval tree would do the same for intervals of very different
//!   lengths, but costs more for each change.)
//! * **Buckets**: long or endless series of intervals. The bucket says on which days of the week,
//!   month or year the intervals can lie, so that a search for a range does not visit birthdays in
//!   other months.
//!
//! | classes | content |
//! |---|---|
//! | 0-9 | spans by length, from 4 hours to 10 years, and longer ones |
//! | +20 | the same on the local time scale |
//! | +100 | the same of the secondary layer |
//! | 1000-1515 | buckets: any day, weekdays, days of a month, days of a year |
//! | +1000 | the same on the local time scale |
//! | +10,000 | the same of the secondary layer |
//!
//! Two *layers* share a table, and a layer has two *time scales*: absolute seconds, and floating
//! local time, in seconds. The index does not depend on zones or recurrence rules: ranges come as
//! seconds on each scale, and days with their civil dates.

use std::ops::RangeInclusive;

const DAY_SECONDS: i64 = 86_400;

/// The greatest length of each class of spans, in seconds; longer spans are in one more class.
const MAX_SPAN_SECONDS: [i64; 9] = [
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
/// Classes of spans of one layer on one time scale.
const SPAN_CLASS_COUNT: usize = MAX_SPAN_SECONDS.len() + 1;
/// Classes of spans of one layer.
const LAYER_SPAN_CLASS_COUNT: usize = 2 * SPAN_CLASS_COUNT;
const LOCAL_SPAN_OFFSET: i64 = 20;
const SECONDARY_SPAN_OFFSET: i64 = 100;
const LOCAL_BUCKET_OFFSET: i64 = 1000;
const SECONDARY_BUCKET_OFFSET: i64 = 10_000;
const ANY_BUCKET_CLASS: i64 = 1000;
const WEEKDAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 1;
const MONTH_DAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 20;
/// A month, times 32, and its day are added.
const YEAR_DAY_BUCKET_CLASS: i64 = ANY_BUCKET_CLASS + 100;
/// Bits of a class in a row class.
const CLASS_BITS: u32 = 14;
/// 1970 began on a Thursday.
const EPOCH_WEEKDAY: i64 = 3;

/// One of the two sets of intervals in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalLayer {
    /// The first set.
    Primary,
    /// The second set.
    Secondary,
}

/// The clock that the seconds of an interval are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeScale {
    /// The same instants for every reader.
    Utc,
    /// A clock in the reader's zone.
    Floating,
}

/// The days on which the intervals of a bucket lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayBucket {
    /// Any day.
    Any,
    /// One weekday, from 0 for Monday to 6 for Sunday.
    Weekday(u8),
    /// One day of each month, from 1.
    MonthDay(u8),
    /// A month, from 1, and one day of it; day 0 is any day of the month.
    YearDay(u8, u8),
}

impl DayBucket {
    fn class(self) -> i64 {
        match self {
            DayBucket::Any => ANY_BUCKET_CLASS,
            DayBucket::Weekday(weekday) => WEEKDAY_BUCKET_CLASS + i64::from(weekday),
            DayBucket::MonthDay(day) => MONTH_DAY_BUCKET_CLASS + i64::from(day),
            DayBucket::YearDay(month, day) => {
                YEAR_DAY_BUCKET_CLASS + i64::from(month) * 32 + i64::from(day)
            }
        }
    }
}

/// Returns the class of spans of this length.
#[must_use]
pub fn span_class(layer: IntervalLayer, scale: TimeScale, length_seconds: i64) -> i64 {
    let class = MAX_SPAN_SECONDS
        .iter()
        .position(|max| length_seconds <= *max)
        .unwrap_or(MAX_SPAN_SECONDS.len()) as i64;
    let class = class + if scale == TimeScale::Floating { LOCAL_SPAN_OFFSET } else { 0 };
    class + span_base(layer)
}

/// Returns the class of a bucket.
#[must_use]
pub fn bucket_class(layer: IntervalLayer, scale: TimeScale, bucket: DayBucket) -> i64 {
    bucket_base(layer, scale) + bucket.class()
}

fn span_base(layer: IntervalLayer) -> i64 {
    if layer == IntervalLayer::Secondary { SECONDARY_SPAN_OFFSET } else { 0 }
}

fn bucket_base(layer: IntervalLayer, scale: TimeScale) -> i64 {
    let local = if scale == TimeScale::Floating { LOCAL_BUCKET_OFFSET } else { 0 };
    local + if layer == IntervalLayer::Secondary { SECONDARY_BUCKET_OFFSET } else { 0 }
}

/// Returns the row class of a class in a partition: one number, which compares faster than two.
#[must_use]
pub fn row_class(partition: i64, class: i64) -> i64 {
    (partition << CLASS_BITS) + class
}

/// Returns the class of a row class in its partition.
#[must_use]
pub fn class_in_partition(partition: i64, row_class: i64) -> i64 {
    row_class - (partition << CLASS_BITS)
}

const fn list_span_classes(base: i64) -> [i64; LAYER_SPAN_CLASS_COUNT] {
    let (mut classes, mut index) = ([0; LAYER_SPAN_CLASS_COUNT], 0);
    while index < LAYER_SPAN_CLASS_COUNT {
        let (scale, class) = (index / SPAN_CLASS_COUNT, index % SPAN_CLASS_COUNT);
        classes[index] = base + scale as i64 * LOCAL_SPAN_OFFSET + class as i64;
        index += 1;
    }
    classes
}

/// Returns all classes of spans of a layer, ascending.
#[must_use]
pub fn span_classes(layer: IntervalLayer) -> &'static [i64] {
    const PRIMARY: &[i64] = &list_span_classes(0);
    const SECONDARY: &[i64] = &list_span_classes(SECONDARY_SPAN_OFFSET);
    if layer == IntervalLayer::Secondary { SECONDARY } else { PRIMARY }
}

/// Returns the time scale of a class of spans.
#[must_use]
pub fn span_scale(class: i64) -> TimeScale {
    match class % SECONDARY_SPAN_OFFSET >= LOCAL_SPAN_OFFSET {
        true => TimeScale::Floating,
        false => TimeScale::Utc,
    }
}

/// Returns the greatest length of the spans of a class; `None` if they can have any length.
#[must_use]
pub fn max_span_seconds(class: i64) -> Option<i64> {
    MAX_SPAN_SECONDS.get((class % LOCAL_SPAN_OFFSET) as usize).copied()
}

/// A day, by its number since 1970-01-01 and its civil date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilDay {
    /// Days since 1970-01-01.
    pub number: i64,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
}

impl CivilDay {
    fn weekday(self) -> DayBucket {
        DayBucket::Weekday((self.number + EPOCH_WEEKDAY).rem_euclid(7) as u8)
    }

    fn month_day(self) -> DayBucket {
        DayBucket::MonthDay(self.day)
    }

    fn year_day(self) -> DayBucket {
        DayBucket::YearDay(self.month, self.day)
    }
}

/// Which buckets a set of days has to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayRelation {
    /// All buckets with at least one of the days; a superset is allowed.
    Overlaps,
    /// Only buckets whose days in a year are all among the days.
    Contains,
}

/// The buckets that a range has to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BucketPlan {
    touched: Vec<RangeInclusive<i64>>,
    whole: Vec<RangeInclusive<i64>>,
    base: i64,
}

impl BucketPlan {
    /// Plans a range that touches the days from the first to the last of `touched`, and contains
    /// the days of `whole`. Buckets of the secondary layer are not divided by days.
    #[must_use]
    pub fn new(
        layer: IntervalLayer,
        scale: TimeScale,
        touched: (CivilDay, CivilDay),
        whole: Option<(CivilDay, CivilDay)>,
    ) -> BucketPlan {
        let base = bucket_base(layer, scale);
        if layer == IntervalLayer::Secondary {
            let any = ANY_BUCKET_CLASS..=ANY_BUCKET_CLASS;
            return BucketPlan { touched: vec![any], whole: Vec::new(), base };
        }
        BucketPlan {
            touched: buckets_between_days(touched.0, touched.1, DayRelation::Overlaps),
            whole: whole.map_or_else(Vec::new, |(first, last)| {
                buckets_between_days(first, last, DayRelation::Contains)
            }),
            base,
        }
    }

    /// Returns the classes to read, as ranges.
    pub fn class_ranges(&self) -> impl Iterator<Item = RangeInclusive<i64>> {
        self.touched.iter().map(|range| self.base + range.start()..=self.base + range.end())
    }

    /// Returns whether the range contains every day of the bucket of this class that it touches.
    #[must_use]
    pub fn is_whole(&self, class: i64) -> bool {
        self.whole.iter().any(|range| range.contains(&(class - self.base)))
    }
}

/// Returns the classes of the buckets of two days and all days between them.
fn buckets_between_days(
    first: CivilDay,
    last: CivilDay,
    coverage: DayRelation,
) -> Vec<RangeInclusive<i64>> {
    let days = last.number - first.number;
    let mut buckets = vec![ANY_BUCKET_CLASS..=ANY_BUCKET_CLASS];
    let mut add = |has_all: bool, all: RangeInclusive<i64>, from: DayBucket, to: DayBucket| {
        let (from, to) = (from.class(), to.class());
        match (has_all, from <= to) {
            (true, _) => buckets.push(all),
            (false, true) => buckets.push(from..=to),
            (false, false) => buckets.extend([*all.start()..=to, from..=*all.end()]),
        }
    };
    let weekdays = WEEKDAY_BUCKET_CLASS..=WEEKDAY_BUCKET_CLASS + 6;
    add(days >= 6, weekdays, first.weekday(), last.weekday());
    // For touched buckets: a range of at least this many days may wrap around a short month (28
    // days) or year. For whole buckets: a range of this many days contains every date of any month
    // or year.
    let (all_of_month, all_of_year) = match coverage {
        DayRelation::Overlaps => (27, 364),
        DayRelation::Contains => (30, 365),
    };
    let month_days = MONTH_DAY_BUCKET_CLASS + 1..=MONTH_DAY_BUCKET_CLASS + 31;
    add(days >= all_of_month, month_days, first.month_day(), last.month_day());
    let year_days = YEAR_DAY_BUCKET_CLASS + 32..=YEAR_DAY_BUCKET_CLASS + 13 * 32;
    add(days >= all_of_year, year_days, first.year_day(), last.year_day());
    if coverage == DayRelation::Overlaps && days < all_of_year {
        // The bucket of any day of the first month.
        let month = DayBucket::YearDay(first.month, 0).class();
        buckets.push(month..=month);
    }
    buckets
}
