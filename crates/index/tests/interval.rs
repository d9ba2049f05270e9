//! The classes and buckets of the interval index, compared with a plain enumeration of days.

use larder_index::interval::{
    BucketPlan, CivilDay, DayBucket, IntervalLayer, TimeScale, bucket_class, class_in_partition,
    max_span_seconds, row_class, span_class, span_classes, span_scale,
};
use proptest::prelude::*;

const SCALES: [TimeScale; 2] = [TimeScale::Utc, TimeScale::Floating];
const LAYERS: [IntervalLayer; 2] = [IntervalLayer::Primary, IntervalLayer::Secondary];

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns a day after 1970-01-01, by counting.
fn civil_day(number: i64) -> CivilDay {
    let (mut year, mut rest) = (1970, number);
    let days_in_year = |year| if is_leap(year) { 366 } else { 365 };
    while rest >= days_in_year(year) {
        rest -= days_in_year(year);
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < days {
            break;
        }
        rest -= days;
        month += 1;
    }
    CivilDay { number, month, day: rest as u8 + 1 }
}

/// Returns all buckets that have this day.
fn buckets_of(day: CivilDay) -> [DayBucket; 5] {
    [
        DayBucket::Any,
        // 1970-01-01 was a Thursday.
        DayBucket::Weekday(((day.number + 3) % 7) as u8),
        DayBucket::MonthDay(day.day),
        DayBucket::YearDay(day.month, day.day),
        DayBucket::YearDay(day.month, 0),
    ]
}

proptest! {
    #[test]
    fn a_plan_reads_every_bucket_that_has_a_day_of_the_range(
        first in 0..20_000_i64,
        days in 0..420_i64,
        is_local: bool,
    ) {
        let scale = SCALES[usize::from(is_local)];
        let layer = IntervalLayer::Primary;
        let (from, to) = (civil_day(first), civil_day(first + days));
        let plan = BucketPlan::new(layer, scale, (from, to), None);
        let is_read = |class: i64| plan.class_ranges().any(|range| range.contains(&class));
        for number in first..=first + days {
            for bucket in buckets_of(civil_day(number)) {
                prop_assert!(is_read(bucket_class(layer, scale, bucket)), "{bucket:?}");
            }
        }
        for class in plan.class_ranges().flatten() {
            prop_assert!(!plan.is_whole(class), "no whole day is given");
        }
    }

    /// A series with an occurrence on each day of such a bucket has one in the range.
    #[test]
    fn a_whole_bucket_has_a_day_in_the_range(
        first in 0..20_000_i64,
        days in 0..420_i64,
        weekday in 0..7_u8,
        month in 1..=12_u8,
        day in 1..=28_u8,
    ) {
        let (layer, scale) = (IntervalLayer::Primary, TimeScale::Utc);
        let range = (civil_day(first), civil_day(first + days));
        let plan = BucketPlan::new(layer, scale, range, Some(range));
        for bucket in
            [DayBucket::Weekday(weekday), DayBucket::MonthDay(day), DayBucket::YearDay(month, day)]
        {
            let has_day = (first..=first + days).any(|n| buckets_of(civil_day(n)).contains(&bucket));
            let is_whole = plan.is_whole(bucket_class(layer, scale, bucket));
            prop_assert!(!is_whole || has_day, "{bucket:?}");
        }
    }

    #[test]
    fn a_span_is_no_longer_than_its_class_allows(
        length in 1..400_000_000_i64,
        is_local: bool,
        is_secondary: bool,
        partition in 1..1000_i64,
    ) {
        let (scale, layer) = (SCALES[usize::from(is_local)], LAYERS[usize::from(is_secondary)]);
        let class = span_class(layer, scale, length);
        prop_assert!(span_classes(layer).contains(&class));
        prop_assert_eq!(span_scale(class), scale);
        prop_assert!(max_span_seconds(class).is_none_or(|max| length <= max));
        prop_assert_eq!(class_in_partition(partition, row_class(partition, class)), class);
        prop_assert!(row_class(partition, class) < row_class(partition + 1, 0));
    }
}

#[test]
fn classes_of_layers_scales_and_buckets_are_distinct() {
    let mut classes: Vec<i64> = LAYERS.into_iter().flat_map(span_classes).copied().collect();
    let mut buckets = vec![DayBucket::Any];
    buckets.extend((0..7).map(DayBucket::Weekday));
    buckets.extend((1..=31).map(DayBucket::MonthDay));
    buckets
        .extend((1..=12).flat_map(|month| (0..=31).map(move |day| DayBucket::YearDay(month, day))));
    for layer in LAYERS {
        for scale in SCALES {
            classes.extend(buckets.iter().map(|bucket| bucket_class(layer, scale, *bucket)));
        }
    }
    let count = classes.len();
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes.len(), count);
    assert!(classes.iter().all(|class| row_class(1, *class) < row_class(2, 0)));
}

#[test]
fn buckets_of_the_secondary_layer_are_not_divided_by_days() {
    let days = (civil_day(100), civil_day(110));
    let plan = BucketPlan::new(IntervalLayer::Secondary, TimeScale::Floating, days, Some(days));
    let any = bucket_class(IntervalLayer::Secondary, TimeScale::Floating, DayBucket::Any);
    assert_eq!(plan.class_ranges().collect::<Vec<_>>(), [any..=any]);
    assert!(!plan.is_whole(any));
}
