//! What an item is in time: its occurrences and its alarms, as they are kept beside it.
//!
//! This is all that a window asks: no bytes are read for it. How it follows from the bytes of an
//! item is found in `event`, and from those of a whole series in `series`; how it is found by a
//! window, in `span`; how it is packed, in `packed`.

mod serialization;

use crate::interval_entry::IntervalEntry;
use crate::series_summary::{RecurrenceBucket, SeriesSummary};
use crate::time_range::{TimeRange, TimeTarget};
use larder_time::civil::{DAY_SECONDS, Instant, Weekday};
use larder_time::rule::{Frequency, StepBudget};
use larder_time::series::{
    Occurrence, OverrideMode, Series, SeriesSpan, TimePattern, ZoneReference,
};
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

/// A series that goes on for longer than this is looked for by the days on which it can be: the
/// fewer these are, the sooner that is worth it.
const MIN_YEARLY_BUCKET_SPAN_SECONDS: i64 = 366 * DAY_SECONDS;
const MIN_MONTHLY_BUCKET_SPAN_SECONDS: i64 = 3 * 366 * DAY_SECONDS;
const MIN_WEEKLY_BUCKET_SPAN_SECONDS: i64 = 6 * 366 * DAY_SECONDS;
/// In more slots than this a series is in none, but looked at by each window.
const MAX_BUCKETS_PER_SERIES: u32 = 4;
/// An alarm is repeated at most so often.
pub(crate) const MAX_ALARM_REPEATS: u64 = 1000;
/// What happens once has a row for each time that it rings, if these are no more.
const MAX_SINGLE_ALARM_ENTRIES: usize = 8;
/// Of one item at most so many alarms are kept.
pub(crate) const MAX_ALARMS_PER_ITEM: usize = 64;

/// What an item is in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub(crate) form: ScheduleForm,
    /// The item stands for the occurrences of this series that an override of this row has changed.
    pub(crate) override_row: Option<i64>,
    pub(crate) alarms: Vec<Alarm>,
    pub(crate) zone_names: Vec<String>,
}

/// How it lies in time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScheduleForm {
    /// From an instant on, or always: a task that has no time of its own (RFC 4791, 9.9).
    Open(Option<Instant>),
    /// Once or more often.
    Series(Box<Series>),
}

/// An alarm (RFC 5545, 3.6.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm {
    /// When it rings first.
    pub trigger: Trigger,
    /// How often it rings again, and after how many seconds each time.
    pub repeat: u64,
    /// Seconds between two of these.
    pub interval_seconds: i64,
    /// What rang up to then is done with.
    pub acknowledged: Option<Instant>,
    /// The line of the item on which the alarm begins.
    pub line: u32,
}

/// When an alarm rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called as in the RFC")]
pub enum Trigger {
    Absolute(Instant),
    Start(IcalDuration),
    End(IcalDuration),
}

/// Is something in a window?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are words")]
pub enum Overlap {
    Yes,
    No,
    /// It takes more work than one question may make.
    Unknown,
}

/// An occurrence, or an alarm of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemOccurrence {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// It is of whole days.
    pub is_date: bool,
    /// It is by the clock of whoever asks.
    pub is_floating: bool,
    /// When the alarm rings, and the line on which it begins.
    pub alarm: Option<(Instant, u32)>,
}

impl Schedule {
    /// Is it in this window?
    #[must_use]
    pub fn overlap(&self, window: &TimeRange) -> Overlap {
        if window.from >= window.to {
            return Overlap::No;
        }
        if let (ScheduleForm::Open(since), TimeTarget::Occurrences) = (&self.form, window.target) {
            let begun = since.is_none_or(|since| since < window.to);
            return if begun { Overlap::Yes } else { Overlap::No };
        }
        let mut found = Overlap::No;
        let whole = self.for_each_in(window, &mut |_| {
            found = Overlap::Yes;
            false
        });
        if found == Overlap::No && !whole { Overlap::Unknown } else { found }
    }

    /// How many occurrences, or alarms, are in a window; as far as they can be counted, and whether
    /// they could.
    #[must_use]
    pub fn count_in(&self, window: &TimeRange) -> (u64, bool) {
        let mut count = 0;
        let whole = self.for_each_in(window, &mut |_| {
            count += 1;
            true
        });
        (count, whole)
    }

    /// Gives the occurrences, or the alarms, in a window to `each`, in the order of their
    /// beginnings, until it answers false. Returns whether these were all, and no others: of a
    /// hostile rule only those are given that are found within bounds, and one whose COUNT is
    /// beyond them is followed as if it had none.
    pub fn for_each_in(
        &self,
        window: &TimeRange,
        each: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let ScheduleForm::Series(series) = &self.form else { return true };
        match window.target {
            TimeTarget::Occurrences => self.for_each_occurrence(series, window, each),
            TimeTarget::Alarms => self.for_each_alarm(series, window, each),
        }
    }

    fn for_each_occurrence(
        &self,
        series: &Series,
        window: &TimeRange,
        each: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let (date, floating) =
            (series.is_date(), *series.zone_reference() == ZoneReference::Floating);
        let tag = self.override_row.map(i64::unsigned_abs);
        let detached = if tag.is_some() { OverrideMode::Include } else { OverrideMode::Exclude };
        let (from, to) = (window.from, window.to);
        let mut all =
            series.occurrences(from, to, &window.local_zone, detached, StepBudget::default());
        for of in all.by_ref().filter(|of| of.tag == tag) {
            if !each(ItemOccurrence {
                occurrence: of,
                is_date: date,
                is_floating: floating,
                alarm: None,
            }) {
                break;
            }
        }
        all.is_exact()
    }

    fn for_each_alarm(
        &self,
        series: &Series,
        window: &TimeRange,
        each: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let Some((first, last)) = self.alarm_offset_bounds() else {
            return self.for_each_absolute_alarm(series, window, each);
        };
        let around = TimeRange {
            from: window.from.saturating_add(-last - 1),
            to: window.to.saturating_add(-first + 1),
            local_zone: window.local_zone.clone(),
            target: TimeTarget::Occurrences,
        };
        let (mut ringing, mut full) = (Vec::new(), false);
        let whole = self.for_each_occurrence(series, &around, &mut |occurring| {
            for alarm in &self.alarms {
                alarm.for_each_ring(series, &occurring, window, &mut |at| {
                    ringing.push(ItemOccurrence { alarm: Some((at, alarm.line)), ..occurring });
                });
            }
            full = ringing.len() >= MAX_ALARM_REPEATS as usize * MAX_ALARMS_PER_ITEM;
            !full
        });
        let whole = whole && !full;
        let whole = self.for_each_absolute_alarm(series, window, &mut |occurring| {
            ringing.push(occurring);
            true
        }) && whole;
        ringing.sort_by_key(|occurring| occurring.alarm);
        ringing.into_iter().all(each);
        whole
    }

    /// An alarm at a moment of its own rings once, however often its item happens.
    fn for_each_absolute_alarm(
        &self,
        series: &Series,
        window: &TimeRange,
        each: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let mut ringing: Vec<(Instant, u32)> = Vec::new();
        for alarm in &self.alarms {
            if let Trigger::Absolute(at) = alarm.trigger {
                alarm.for_each_repeat(at, window, &mut |at| ringing.push((at, alarm.line)));
            }
        }
        if ringing.is_empty() {
            return true;
        }
        ringing.sort_unstable();
        let everything = TimeRange { from: Instant::MIN, to: Instant::MAX, ..window.clone() };
        let mut first = None;
        let whole = self.for_each_occurrence(series, &everything, &mut |occurring| {
            first = Some(occurring);
            false
        });
        let Some(first) = first else { return whole };
        ringing.into_iter().all(|at| each(ItemOccurrence { alarm: Some(at), ..first }));
        true
    }

    /// The earliest and the latest that an alarm of an occurrence rings, in seconds from its
    /// beginning or end; `None`: none does.
    fn alarm_offset_bounds(&self) -> Option<(i64, i64)> {
        let of = |alarm: &Alarm| match alarm.trigger {
            Trigger::Absolute(_) => None,
            Trigger::Start(offset) | Trigger::End(offset) => {
                // Where the clock changes, a day is longer or shorter.
                let slack = if offset.days == 0 { 0 } else { DAY_SECONDS };
                let first = offset.days.saturating_mul(DAY_SECONDS).saturating_add(offset.seconds);
                let again = alarm.ring_span_seconds();
                Some((
                    first.saturating_sub(slack),
                    first.saturating_add(again).saturating_add(slack),
                ))
            }
        };
        let all = || self.alarms.iter().filter_map(of);
        let first = all().map(|(first, _)| first).min()?;
        Some((first, all().map(|(_, last)| last).max()?))
    }

    /// When it begins first: in seconds of UTC, or of its own clock if that floats. `None`: it has
    /// no beginning.
    #[must_use]
    pub fn start_seconds(&self) -> Option<i64> {
        match &self.form {
            ScheduleForm::Open(since) => since.map(Instant::seconds),
            ScheduleForm::Series(series) => Some(series.span().first),
        }
    }

    /// Does it happen more than once, or might it?
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        matches!(&self.form, ScheduleForm::Series(series) if series.is_recurring())
    }

    /// Its occurrences, planned and changed; `None`: it has no time of its own.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        match &self.form {
            ScheduleForm::Open(_) => None,
            ScheduleForm::Series(series) => Some(series),
        }
    }

    /// Its alarms.
    #[must_use]
    pub fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// The names of the zones that went into it: of the system, or `own:` and a hash.
    #[must_use]
    pub fn zone_names(&self) -> &[String] {
        &self.zone_names
    }

    /// Its rows in the interval index. From when to when it can be met by a window, in seconds
    /// since 1970: no window outside meets it, whoever's clock it is by. `None`: none does.
    #[must_use]
    pub fn bounds(&self, what: TimeTarget) -> Option<(i64, i64)> {
        let rows = self
            .interval_entries()
            .into_iter()
            .filter(|row| row.target == what)
            .map(|row| row.bounds());
        rows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    pub(crate) fn interval_entries(&self) -> Vec<IntervalEntry> {
        let mut rows = Vec::new();
        let series = match &self.form {
            ScheduleForm::Open(since) => {
                let start = since.map_or(i64::MIN, Instant::seconds);
                // Any window that ends behind its beginning meets it.
                let reach = (start, i64::MAX);
                return vec![IntervalEntry::from_bucket(
                    TimeTarget::Occurrences,
                    false,
                    RecurrenceBucket::Any,
                    reach,
                    None,
                )];
            }
            ScheduleForm::Series(series) => series,
        };
        self.add_occurrence_entries(series, &mut rows);
        self.add_alarm_entries(series, &mut rows);
        rows.sort_unstable();
        // Two alarms at one time are one row, which is sure only if both are.
        rows.dedup_by(|next, kept| kept.merge_if_equal(next));
        rows
    }

    fn add_occurrence_entries(&self, series: &Series, rows: &mut Vec<IntervalEntry>) {
        let span = series.span();
        // What stands for its followers may be far from all of them itself.
        if let Some(SeriesSpan { is_utc: fixed, first, end: Some(end) }) =
            self.override_span(series)
        {
            rows.push(IntervalEntry::from_span(
                TimeTarget::Occurrences,
                !fixed,
                (first, end),
                Some(SeriesSummary::UNKNOWN),
            ));
        }
        let plain = self.override_row.is_none();
        let once = plain && !series.is_recurring() && series.has_no_exceptions();
        let hint = if plain && series.is_recurring() {
            summarize_series(series)
        } else {
            SeriesSummary::UNKNOWN
        };
        // What takes no time is in its last second. Where lengths differ, the last one may take
        // none.
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

    /// From when to when the override is itself that the item is.
    fn override_span(&self, series: &Series) -> Option<SeriesSpan> {
        series.override_span(self.override_row?.unsigned_abs())
    }

    fn add_alarm_entries(&self, series: &Series, rows: &mut Vec<IntervalEntry>) {
        if let Some(rings) = self.single_alarm_times(series) {
            let row = |at: i64| {
                IntervalEntry::from_span(
                    TimeTarget::Alarms,
                    false,
                    (at, at.saturating_add(1)),
                    None,
                )
            };
            rows.extend(rings.into_iter().map(row));
            return;
        }
        for alarm in &self.alarms {
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
        let Some((first, last)) = self.alarm_offset_bounds() else { return };
        let around = |start: i64, end: i64| {
            (start.saturating_add(first), end.saturating_add(last).saturating_add(1))
        };
        if let Some(SeriesSpan { is_utc: fixed, first, end: Some(end) }) =
            self.override_span(series)
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

    /// When the alarms of something ring that happens once, by a clock that does not float; `None`:
    /// they are too many.
    fn single_alarm_times(&self, series: &Series) -> Option<Vec<i64>> {
        if self.override_row.is_some()
            || series.is_recurring()
            || !series.has_no_exceptions()
            || !series.span().is_utc
        {
            return None;
        }
        let (from, to) = (Instant::MIN, Instant::MAX);
        let ever = TimeRange { from, to, local_zone: Zone::UTC, target: TimeTarget::Alarms };
        let mut rings = Vec::new();
        let all = self.for_each_alarm(series, &ever, &mut |ringing| {
            rings.extend(ringing.alarm.map(|(at, _)| at.seconds()));
            rings.len() <= MAX_SINGLE_ALARM_ENTRIES
        });
        (all && rings.len() <= MAX_SINGLE_ALARM_ENTRIES).then_some(rings)
    }

    /// The rows of something packed.
    pub(crate) fn entries_from_bytes(
        data: &[u8],
        zone: &mut dyn FnMut(&str) -> Option<Zone>,
    ) -> Vec<IntervalEntry> {
        Schedule::unpack(data, zone).map(|times| times.interval_entries()).unwrap_or_default()
    }
}

/// What is known of a series that is not changed by its overrides.
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

/// The slots of a series that goes on for so long: days that its occurrences touch. `None`: it is
/// not looked for by them.
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

impl Alarm {
    /// Seconds from when it rings first to when it rings last.
    fn ring_span_seconds(&self) -> i64 {
        self.interval_seconds.max(0).saturating_mul(self.repeat.min(MAX_ALARM_REPEATS) as i64)
    }

    /// Gives the times at which it rings for an occurrence.
    fn for_each_ring(
        &self,
        series: &Series,
        of: &ItemOccurrence,
        window: &TimeRange,
        each: &mut dyn FnMut(Instant),
    ) {
        let (base, offset) = match self.trigger {
            Trigger::Absolute(_) => return,
            Trigger::Start(offset) => ((of.occurrence.start, of.occurrence.start_civil), offset),
            Trigger::End(offset) => ((of.occurrence.end, of.occurrence.end_civil), offset),
        };
        let at = match offset.days {
            0 => base.0,
            days => {
                let civil = base.1.saturating_add(days.saturating_mul(DAY_SECONDS));
                match series.zone_reference() {
                    ZoneReference::Zone(zone) => zone.to_instant(civil),
                    ZoneReference::Utc => Instant::from_seconds_clamped(civil.seconds()),
                    ZoneReference::Floating => window.local_zone.to_instant(civil),
                }
            }
        };
        self.for_each_repeat(at.saturating_add(offset.seconds), window, each);
    }

    /// The times in a window at which it rings, if it rings first then.
    fn for_each_repeat(&self, first: Instant, window: &TimeRange, each: &mut dyn FnMut(Instant)) {
        let rings = if self.interval_seconds > 0 { self.repeat.min(MAX_ALARM_REPEATS) } else { 0 };
        for number in 0..=rings {
            let at = first.saturating_add(self.interval_seconds.saturating_mul(number as i64));
            let done = self.acknowledged.is_some_and(|done| at <= done);
            if window.from <= at && at < window.to && !done {
                each(at);
            }
        }
    }
}
