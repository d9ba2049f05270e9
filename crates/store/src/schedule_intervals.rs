//! The rows of the interval index that lead to a schedule.
//!
//! Separate because the schedule does not depend on the index, and the index does not depend on
//! schedules.

use crate::interval_entry::IntervalEntry;
use crate::series_summary::{RecurrenceBucket, SeriesSummary};
use larder_extract::{Existence, Schedule, ScheduleForm, TimeRange, TimeTarget, Trigger};
use larder_time::civil::{DAY_SECONDS, Instant, Weekday};
use larder_time::rule::Frequency;
use larder_time::series::{Series, SeriesSpan, TimePattern};
use larder_time::zone::Zone;

/// A series longer than this is filed by the days on which it can occur; with fewer such days this
/// pays off for shorter series.
const MIN_YEARLY_BUCKET_SPAN_SECONDS: i64 = 366 * DAY_SECONDS;
const MIN_MONTHLY_BUCKET_SPAN_SECONDS: i64 = 3 * 366 * DAY_SECONDS;
const MIN_WEEKLY_BUCKET_SPAN_SECONDS: i64 = 6 * 366 * DAY_SECONDS;
/// A series that would need more buckets than this is put into no bucket; every search evaluates
/// it.
const MAX_BUCKETS_PER_SERIES: u32 = 4;
/// An item that occurs once has an entry for each time that its alarms ring, if these are no more.
const MAX_SINGLE_ALARM_ENTRIES: usize = 8;

/// Returns the bounds of a schedule, in seconds since 1970: no time range outside them has an
/// occurrence or an alarm of it, in any local zone. `None`: no time range does.
#[must_use]
pub fn schedule_bounds(schedule: &Schedule, target: TimeTarget) -> Option<(i64, i64)> {
    let bounds = interval_entries(schedule)
        .into_iter()
        .filter(|entry| entry.target == target)
        .map(|entry| entry.bounds());
    bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Returns the entries of a schedule.
pub(crate) fn interval_entries(schedule: &Schedule) -> Vec<IntervalEntry> {
    let mut rows = Vec::new();
    let series = match schedule.form() {
        ScheduleForm::Undated(existence) => return vec![existence_entry(*existence)],
        ScheduleForm::Series(series) => series,
    };
    add_occurrence_entries(schedule, series, &mut rows);
    add_alarm_entries(schedule, series, &mut rows);
    rows.sort_unstable();
    // Two alarms at the same time are one row, which is exact only if both are.
    rows.dedup_by(|next, kept| kept.merge_if_equal(next));
    rows
}

/// Returns the entry of a task without dates, which every time range between its ends overlaps.
fn existence_entry(existence: Existence) -> IntervalEntry {
    let target = TimeTarget::Occurrences;
    let start = existence.since.map(Instant::seconds);
    let end = existence.until.map(|until| until.seconds().saturating_add(1));
    match (start, end) {
        // A span of unknown length has no length class.
        (None, _) | (_, None) => {
            let reach = (start.unwrap_or(i64::MIN), end.unwrap_or(i64::MAX));
            IntervalEntry::from_bucket(target, false, RecurrenceBucket::Any, reach, None)
        }
        (Some(start), Some(end)) => IntervalEntry::from_span(target, false, (start, end), None),
    }
}

fn add_occurrence_entries(schedule: &Schedule, series: &Series, rows: &mut Vec<IntervalEntry>) {
    let span = series.span();
    // An override of the following occurrences may itself be far from all of them.
    if let Some(SeriesSpan { is_utc: fixed, first, end: Some(end) }) =
        override_span(schedule, series)
    {
        rows.push(IntervalEntry::from_span(
            TimeTarget::Occurrences,
            !fixed,
            (first, end),
            Some(SeriesSummary::UNKNOWN),
        ));
    }
    let plain = schedule.override_row().is_none();
    let once = plain && !series.is_recurring() && series.has_no_exceptions();
    let hint = if plain && series.is_recurring() {
        summarize_series(series)
    } else {
        SeriesSummary::UNKNOWN
    };
    // An occurrence without a duration is in its last second. If durations differ, the last
    // occurrence may have none.
    let none = !series.is_date() && series.length().max_seconds() == 0;
    let last_second = i64::from(none || !series.has_only_rules());
    let span = SeriesSpan { end: span.end.map(|end| end.saturating_add(last_second)), ..span };
    let long = span.end.map_or(i64::MAX, |end| end - span.first);
    let pattern = hint.time_pattern.unwrap_or(TimePattern::ANY);
    let slots = recurrence_buckets(series, pattern, long);
    match (span.end, slots) {
        (Some(end), None) => {
            let hint = if once { None } else { Some(hint) };
            rows.push(IntervalEntry::from_span(
                TimeTarget::Occurrences,
                !span.is_utc,
                (span.first, end),
                hint,
            ));
        }
        (end, slots) => {
            let reach = (span.first, end.unwrap_or(i64::MAX));
            let slots = slots.unwrap_or_else(|| vec![RecurrenceBucket::Any]);
            let hint = if let [slot] = slots[..] { hint.with_bucket(slot) } else { hint };
            let row = |slot| {
                IntervalEntry::from_bucket(
                    TimeTarget::Occurrences,
                    !span.is_utc,
                    slot,
                    reach,
                    Some(hint),
                )
            };
            rows.extend(slots.into_iter().map(row));
        }
    }
}

/// Returns the span of the override's own occurrence.
fn override_span(schedule: &Schedule, series: &Series) -> Option<SeriesSpan> {
    series.override_span(schedule.override_row()?.unsigned_abs())
}

fn add_alarm_entries(schedule: &Schedule, series: &Series, rows: &mut Vec<IntervalEntry>) {
    if let Some(rings) = single_alarm_times(schedule, series) {
        let row = |at: i64| {
            IntervalEntry::from_span(TimeTarget::Alarms, false, (at, at.saturating_add(1)), None)
        };
        rows.extend(rings.into_iter().map(row));
        return;
    }
    for alarm in schedule.alarms() {
        if let Trigger::Absolute(at) = alarm.trigger {
            let at = at.seconds();
            let stretch = (at, at.saturating_add(alarm.ring_span_seconds()).saturating_add(1));
            rows.push(IntervalEntry::from_span(
                TimeTarget::Alarms,
                false,
                stretch,
                Some(SeriesSummary::UNKNOWN),
            ));
        }
    }
    let Some((first, last)) = schedule.alarm_offset_bounds() else { return };
    let around = |start: i64, end: i64| {
        (start.saturating_add(first), end.saturating_add(last).saturating_add(1))
    };
    if let Some(SeriesSpan { is_utc: fixed, first, end: Some(end) }) =
        override_span(schedule, series)
    {
        rows.push(IntervalEntry::from_span(
            TimeTarget::Alarms,
            !fixed,
            around(first, end),
            Some(SeriesSummary::UNKNOWN),
        ));
    }
    let span = series.span();
    rows.push(match span.end {
        Some(end) => IntervalEntry::from_span(
            TimeTarget::Alarms,
            !span.is_utc,
            around(span.first, end),
            Some(SeriesSummary::UNKNOWN),
        ),
        None => {
            let reach = (span.first.saturating_add(first), i64::MAX);
            IntervalEntry::from_bucket(
                TimeTarget::Alarms,
                !span.is_utc,
                RecurrenceBucket::Any,
                reach,
                Some(SeriesSummary::UNKNOWN),
            )
        }
    });
}

/// Returns the times of the alarms of a single event that does not float; `None`: there are too
/// many.
fn single_alarm_times(schedule: &Schedule, series: &Series) -> Option<Vec<i64>> {
    if schedule.override_row().is_some()
        || series.is_recurring()
        || !series.has_no_exceptions()
        || !series.span().is_utc
    {
        return None;
    }
    let (from, to) = (Instant::MIN, Instant::MAX);
    let ever = TimeRange { from, to, local_zone: Zone::UTC, target: TimeTarget::Alarms };
    let mut rings = Vec::new();
    let all = schedule.for_each_in(&ever, &mut |ringing| {
        rings.extend(ringing.alarm.map(|(at, _)| at.seconds()));
        rings.len() <= MAX_SINGLE_ALARM_ENTRIES
    });
    (all && rings.len() <= MAX_SINGLE_ALARM_ENTRIES).then_some(rings)
}

/// Returns the summary of a series, ignoring its overrides.
fn summarize_series(series: &Series) -> SeriesSummary {
    let pattern = Some(TimePattern::from_series(series)).filter(|of| *of != TimePattern::ANY);
    let ends = series.has_occurrences_at_span_ends();
    let Some(whole_behind) = series.complete_after() else {
        return SeriesSummary {
            has_occurrences_at_ends: ends,
            time_pattern: pattern,
            ..SeriesSummary::UNKNOWN
        };
    };
    let gap =
        series.max_gap_seconds().map(|gap| gap.saturating_add(series.max_offset_change_seconds()));
    SeriesSummary {
        max_gap_seconds: gap,
        has_occurrences_at_ends: ends,
        complete_after: whole_behind,
        is_on_each_bucket_day: false,
        is_gapless_weekly: series.is_gapless_weekly(),
        time_pattern: pattern,
    }
}

/// Returns the buckets of a series of this length: the days that its occurrences touch. `None`: the
/// series is not in buckets.
fn recurrence_buckets(
    series: &Series,
    pattern: TimePattern,
    long: i64,
) -> Option<Vec<RecurrenceBucket>> {
    let [rule] = series.rules() else { return None };
    if pattern == TimePattern::ANY {
        return None;
    }
    let (months, days, weekdays) =
        (pattern.month_mask(), pattern.month_day_mask(), pattern.weekday_mask());
    let months_of = || (1..=12u8).filter(move |month| months >> (month - 1) & 1 == 1);
    let days_of = || (1..=31u8).filter(move |day| days >> (day - 1) & 1 == 1);
    let slots: Vec<RecurrenceBucket> = match rule.frequency() {
        Frequency::Yearly | Frequency::Monthly
            if months.count_ones() * days.count_ones() <= MAX_BUCKETS_PER_SERIES =>
        {
            let on = |month| days_of().map(move |day| RecurrenceBucket::YearDay(month, day));
            months_of().flat_map(on).collect()
        }
        Frequency::Yearly if months.count_ones() <= MAX_BUCKETS_PER_SERIES => {
            months_of().map(|month| RecurrenceBucket::YearDay(month, 0)).collect()
        }
        Frequency::Monthly if days.count_ones() <= MAX_BUCKETS_PER_SERIES => {
            days_of().map(RecurrenceBucket::MonthDay).collect()
        }
        _ if weekdays.count_ones() <= MAX_BUCKETS_PER_SERIES => {
            let on = |day: &Weekday| weekdays >> day.number_from_monday() & 1 == 1;
            Weekday::ALL.into_iter().filter(on).map(RecurrenceBucket::Weekday).collect()
        }
        _ => return None,
    };
    let worth_it = match slots.first()? {
        RecurrenceBucket::YearDay(..) => MIN_YEARLY_BUCKET_SPAN_SECONDS,
        RecurrenceBucket::MonthDay(_) => MIN_MONTHLY_BUCKET_SPAN_SECONDS,
        _ => MIN_WEEKLY_BUCKET_SPAN_SECONDS,
    };
    (long > worth_it).then_some(slots)
}
