//! What an item is in time: its occurrences and its alarms, as they are kept beside it.
//!
//! This is all that a window asks: no bytes are read for it. How it follows from the bytes of an item is found in `event`, and from
//! those of a whole series in `series`; how it is found by a window, in `span`; how it is packed, in `packed`.

mod packed;

use crate::span::{Hint, Row, Slot, What, Window};
use larder_time::civil::{DAY, Instant, Weekday};
use larder_time::rule::{Budget, Frequency};
use larder_time::series::{Clock, Detached, Occurrence, Pattern, Series, Span};
use larder_time::value::Nominal;
use larder_time::zone::Zone;

/// A series that goes on for longer than this is looked for by the days on which it can be: the fewer these are, the sooner
/// that is worth it.
const LONG_YEARLY: i64 = 366 * DAY;
const LONG_MONTHLY: i64 = 3 * 366 * DAY;
const LONG_WEEKLY: i64 = 6 * 366 * DAY;
/// In more slots than this a series is in none, but looked at by each window.
const SLOTS: u32 = 4;
/// An alarm is repeated at most so often.
pub(crate) const REPEATS: u64 = 1000;
/// What happens once has a row for each time that it rings, if these are no more.
const RINGS: usize = 8;
/// Of one item at most so many alarms are kept.
pub(crate) const ALARMS: usize = 64;

/// What an item is in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    pub(crate) shape: Shape,
    /// The item stands for the occurrences of this series that an override of this row has changed.
    pub(crate) tag: Option<i64>,
    pub(crate) alarms: Vec<Alarm>,
    pub(crate) clocks: Vec<String>,
}

/// How it lies in time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
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
    pub every: i64,
    /// What rang up to then is done with.
    pub acknowledged: Option<Instant>,
    /// The line of the item on which the alarm begins.
    pub line: u32,
}

/// When an alarm rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called as in the RFC")]
pub enum Trigger {
    At(Instant),
    Start(Nominal),
    End(Nominal),
}

/// Is something in a window?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are words")]
pub enum Verdict {
    Yes,
    No,
    /// It takes more work than one question may make.
    Unknown,
}

/// An occurrence, or an alarm of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurring {
    /// The occurrence.
    pub of: Occurrence,
    /// It is of whole days.
    pub date: bool,
    /// It is by the clock of whoever asks.
    pub floating: bool,
    /// When the alarm rings, and the line on which it begins.
    pub alarm: Option<(Instant, u32)>,
}

impl Times {
    /// Is it in this window?
    #[must_use]
    pub fn meets(&self, window: &Window) -> Verdict {
        if window.from >= window.to {
            return Verdict::No;
        }
        if let (Shape::Open(since), What::Occurrences) = (&self.shape, window.what) {
            let begun = since.is_none_or(|since| since < window.to);
            return if begun { Verdict::Yes } else { Verdict::No };
        }
        let mut found = Verdict::No;
        let whole = self.each(window, &mut |_| {
            found = Verdict::Yes;
            false
        });
        if found == Verdict::No && !whole { Verdict::Unknown } else { found }
    }

    /// How many occurrences, or alarms, are in a window; as far as they can be counted, and whether they could.
    #[must_use]
    pub fn count(&self, window: &Window) -> (u64, bool) {
        let mut count = 0;
        let whole = self.each(window, &mut |_| {
            count += 1;
            true
        });
        (count, whole)
    }

    /// Gives the occurrences, or the alarms, in a window to `each`, in the order of their beginnings, until it answers false.
    /// Returns whether these were all, and no others: of a hostile rule only those are given that are found within bounds, and one
    /// whose COUNT is beyond them is followed as if it had none.
    pub fn each(&self, window: &Window, each: &mut dyn FnMut(Occurring) -> bool) -> bool {
        let Shape::Series(series) = &self.shape else { return true };
        match window.what {
            What::Occurrences => self.occurrences(series, window, each),
            What::Alarms => self.ringing(series, window, each),
        }
    }

    fn occurrences(
        &self,
        series: &Series,
        window: &Window,
        each: &mut dyn FnMut(Occurring) -> bool,
    ) -> bool {
        let (date, floating) = (series.is_date(), *series.clock() == Clock::Floating);
        let tag = self.tag.map(i64::unsigned_abs);
        let detached = if tag.is_some() { Detached::Give } else { Detached::Leave };
        let (from, to) = (window.from, window.to);
        let mut all = series.occurrences(from, to, &window.local, detached, Budget::default());
        for of in all.by_ref().filter(|of| of.tag == tag) {
            if !each(Occurring { of, date, floating, alarm: None }) {
                break;
            }
        }
        all.is_certain()
    }

    fn ringing(
        &self,
        series: &Series,
        window: &Window,
        each: &mut dyn FnMut(Occurring) -> bool,
    ) -> bool {
        let Some((first, last)) = self.offsets() else {
            return self.absolute(series, window, each);
        };
        let around = Window {
            from: window.from.plus(-last - 1),
            to: window.to.plus(-first + 1),
            local: window.local.clone(),
            what: What::Occurrences,
        };
        let (mut ringing, mut full) = (Vec::new(), false);
        let whole = self.occurrences(series, &around, &mut |occurring| {
            for alarm in &self.alarms {
                alarm.each(series, &occurring, window, &mut |at| {
                    ringing.push(Occurring { alarm: Some((at, alarm.line)), ..occurring });
                });
            }
            full = ringing.len() >= REPEATS as usize * ALARMS;
            !full
        });
        let whole = whole && !full;
        let whole = self.absolute(series, window, &mut |occurring| {
            ringing.push(occurring);
            true
        }) && whole;
        ringing.sort_by_key(|occurring| occurring.alarm);
        ringing.into_iter().all(each);
        whole
    }

    /// An alarm at a moment of its own rings once, however often its item happens.
    fn absolute(
        &self,
        series: &Series,
        window: &Window,
        each: &mut dyn FnMut(Occurring) -> bool,
    ) -> bool {
        let mut ringing: Vec<(Instant, u32)> = Vec::new();
        for alarm in &self.alarms {
            if let Trigger::At(at) = alarm.trigger {
                alarm.again(at, window, &mut |at| ringing.push((at, alarm.line)));
            }
        }
        if ringing.is_empty() {
            return true;
        }
        ringing.sort_unstable();
        let everything = Window { from: Instant::MIN, to: Instant::MAX, ..window.clone() };
        let mut first = None;
        let whole = self.occurrences(series, &everything, &mut |occurring| {
            first = Some(occurring);
            false
        });
        let Some(first) = first else { return whole };
        ringing.into_iter().all(|at| each(Occurring { alarm: Some(at), ..first }));
        true
    }

    /// The earliest and the latest that an alarm of an occurrence rings, in seconds from its beginning or end; `None`: none
    /// does.
    fn offsets(&self) -> Option<(i64, i64)> {
        let of = |alarm: &Alarm| match alarm.trigger {
            Trigger::At(_) => None,
            Trigger::Start(offset) | Trigger::End(offset) => {
                // Where the clock changes, a day is longer or shorter.
                let slack = if offset.days == 0 { 0 } else { DAY };
                let first = offset.days.saturating_mul(DAY).saturating_add(offset.seconds);
                let again = alarm.lasts();
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

    /// When it begins first: in seconds of UTC, or of its own clock if that floats. `None`: it has no beginning.
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        match &self.shape {
            Shape::Open(since) => since.map(Instant::seconds),
            Shape::Series(series) => Some(series.span().first),
        }
    }

    /// Does it happen more than once, or might it?
    #[must_use]
    pub fn recurs(&self) -> bool {
        matches!(&self.shape, Shape::Series(series) if series.recurs())
    }

    /// Its occurrences, planned and changed; `None`: it has no time of its own.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        match &self.shape {
            Shape::Open(_) => None,
            Shape::Series(series) => Some(series),
        }
    }

    /// Its alarms.
    #[must_use]
    pub fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// The names of the zones that went into it: of the system, or `own:` and a hash.
    #[must_use]
    pub fn clocks(&self) -> &[String] {
        &self.clocks
    }

    /// Its rows in the interval index.
    /// From when to when it can be met by a window, in seconds since 1970: no window outside meets it, whoever's clock it is by.
    /// `None`: none does.
    #[must_use]
    pub fn hull(&self, what: What) -> Option<(i64, i64)> {
        let rows = self.rows().into_iter().filter(|row| row.what() == what).map(|row| row.hull());
        rows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let series = match &self.shape {
            Shape::Open(since) => {
                let start = since.map_or(i64::MIN, Instant::seconds);
                // Any window that ends behind its beginning meets it.
                let reach = (start, i64::MAX);
                return vec![Row::slot(What::Occurrences, false, Slot::Any, reach, None)];
            }
            Shape::Series(series) => series,
        };
        self.add_rows(series, &mut rows);
        self.add_alarm_rows(series, &mut rows);
        rows.sort_unstable();
        // Two alarms at one time are one row, which is sure only if both are.
        rows.dedup_by(|next, kept| kept.absorbs(next));
        rows
    }

    fn add_rows(&self, series: &Series, rows: &mut Vec<Row>) {
        let span = series.span();
        // What stands for its followers may be far from all of them itself.
        if let Some(Span { fixed, first, end: Some(end) }) = self.own_span(series) {
            rows.push(Row::span(What::Occurrences, !fixed, (first, end), Some(Hint::NONE)));
        }
        let plain = self.tag.is_none();
        let once = plain && !series.recurs() && series.is_plain();
        let hint = if plain && series.recurs() { hint(series) } else { Hint::NONE };
        // What takes no time is in its last second. Where lengths differ, the last one may take none.
        let none = !series.is_date() && series.length().longest() == 0;
        let last_second = i64::from(none || !series.is_by_rules());
        let span = Span { end: span.end.map(|end| end.saturating_add(last_second)), ..span };
        let long = span.end.map_or(i64::MAX, |end| end - span.first);
        let pattern = hint.pattern.unwrap_or(Pattern::ANY);
        let slots = slots(series, pattern, long);
        match (span.end, slots) {
            (Some(end), None) => {
                let hint = if once { None } else { Some(hint) };
                rows.push(Row::span(What::Occurrences, !span.fixed, (span.first, end), hint));
            }
            (end, slots) => {
                let reach = (span.first, end.unwrap_or(i64::MAX));
                let slots = slots.unwrap_or_else(|| vec![Slot::Any]);
                let hint = if let [slot] = slots[..] { hint.in_slot(slot) } else { hint };
                let row = |slot| Row::slot(What::Occurrences, !span.fixed, slot, reach, Some(hint));
                rows.extend(slots.into_iter().map(row));
            }
        }
    }

    /// From when to when the override is itself that the item is.
    fn own_span(&self, series: &Series) -> Option<Span> {
        series.span_of_changed(self.tag?.unsigned_abs())
    }

    fn add_alarm_rows(&self, series: &Series, rows: &mut Vec<Row>) {
        if let Some(rings) = self.rings_of_one(series) {
            let row = |at: i64| Row::span(What::Alarms, false, (at, at.saturating_add(1)), None);
            rows.extend(rings.into_iter().map(row));
            return;
        }
        for alarm in &self.alarms {
            if let Trigger::At(at) = alarm.trigger {
                let at = at.seconds();
                let stretch = (at, at.saturating_add(alarm.lasts()).saturating_add(1));
                rows.push(Row::span(What::Alarms, false, stretch, Some(Hint::NONE)));
            }
        }
        let Some((first, last)) = self.offsets() else { return };
        let around = |start: i64, end: i64| {
            (start.saturating_add(first), end.saturating_add(last).saturating_add(1))
        };
        if let Some(Span { fixed, first, end: Some(end) }) = self.own_span(series) {
            rows.push(Row::span(What::Alarms, !fixed, around(first, end), Some(Hint::NONE)));
        }
        let span = series.span();
        rows.push(match span.end {
            Some(end) => {
                Row::span(What::Alarms, !span.fixed, around(span.first, end), Some(Hint::NONE))
            }
            None => {
                let reach = (span.first.saturating_add(first), i64::MAX);
                Row::slot(What::Alarms, !span.fixed, Slot::Any, reach, Some(Hint::NONE))
            }
        });
    }

    /// When the alarms of something ring that happens once, by a clock that does not float; `None`: they are too many.
    fn rings_of_one(&self, series: &Series) -> Option<Vec<i64>> {
        if self.tag.is_some() || series.recurs() || !series.is_plain() || !series.span().fixed {
            return None;
        }
        let (from, to) = (Instant::MIN, Instant::MAX);
        let ever = Window { from, to, local: Zone::UTC, what: What::Alarms };
        let mut rings = Vec::new();
        let all = self.ringing(series, &ever, &mut |ringing| {
            rings.extend(ringing.alarm.map(|(at, _)| at.seconds()));
            rings.len() <= RINGS
        });
        (all && rings.len() <= RINGS).then_some(rings)
    }

    /// The rows of something packed.
    pub(crate) fn rows_of(data: &[u8], zone: &mut dyn FnMut(&str) -> Option<Zone>) -> Vec<Row> {
        Times::unpack(data, zone).map(|times| times.rows()).unwrap_or_default()
    }
}

/// What is known of a series that is not changed by its overrides.
fn hint(series: &Series) -> Hint {
    let pattern = Some(Pattern::of(series)).filter(|of| *of != Pattern::ANY);
    let ends = series.reaches_its_ends();
    let Some(whole_behind) = series.whole_behind() else {
        return Hint { ends, pattern, ..Hint::NONE };
    };
    let gap = series.longest_gap().map(|gap| gap.saturating_add(series.clock_change()));
    Hint { gap, ends, whole_behind, each_day: false, each_week: series.is_each_week(), pattern }
}

/// The slots of a series that goes on for so long: days that its occurrences touch. `None`: it is not looked for by them.
fn slots(series: &Series, pattern: Pattern, long: i64) -> Option<Vec<Slot>> {
    let [rule] = series.rules() else { return None };
    if pattern == Pattern::ANY {
        return None;
    }
    let (months, days, weekdays) = (pattern.months(), pattern.month_days(), pattern.weekdays());
    let months_of = || (1..=12u8).filter(move |month| months >> (month - 1) & 1 == 1);
    let days_of = || (1..=31u8).filter(move |day| days >> (day - 1) & 1 == 1);
    let slots: Vec<Slot> = match rule.frequency() {
        Frequency::Yearly | Frequency::Monthly
            if months.count_ones() * days.count_ones() <= SLOTS =>
        {
            let on = |month| days_of().map(move |day| Slot::YearDay(month, day));
            months_of().flat_map(on).collect()
        }
        Frequency::Yearly if months.count_ones() <= SLOTS => {
            months_of().map(|month| Slot::YearDay(month, 0)).collect()
        }
        Frequency::Monthly if days.count_ones() <= SLOTS => days_of().map(Slot::MonthDay).collect(),
        _ if weekdays.count_ones() <= SLOTS => {
            let on = |day: &Weekday| weekdays >> day.number() & 1 == 1;
            Weekday::ALL.into_iter().filter(on).map(Slot::Weekday).collect()
        }
        _ => return None,
    };
    let worth_it = match slots.first()? {
        Slot::YearDay(..) => LONG_YEARLY,
        Slot::MonthDay(_) => LONG_MONTHLY,
        _ => LONG_WEEKLY,
    };
    (long > worth_it).then_some(slots)
}

impl Alarm {
    /// Seconds from when it rings first to when it rings last.
    fn lasts(&self) -> i64 {
        self.every.max(0).saturating_mul(self.repeat.min(REPEATS) as i64)
    }

    /// Gives the times at which it rings for an occurrence.
    fn each(
        &self,
        series: &Series,
        of: &Occurring,
        window: &Window,
        each: &mut dyn FnMut(Instant),
    ) {
        let (base, offset) = match self.trigger {
            Trigger::At(_) => return,
            Trigger::Start(offset) => ((of.of.start, of.of.start_civil), offset),
            Trigger::End(offset) => ((of.of.end, of.of.end_civil), offset),
        };
        let at = match offset.days {
            0 => base.0,
            days => {
                let civil = base.1.plus(days.saturating_mul(DAY));
                match series.clock() {
                    Clock::Zone(zone) => zone.instant(civil),
                    Clock::Utc => Instant::clamped(civil.seconds()),
                    Clock::Floating => window.local.instant(civil),
                }
            }
        };
        self.again(at.plus(offset.seconds), window, each);
    }

    /// The times in a window at which it rings, if it rings first then.
    fn again(&self, first: Instant, window: &Window, each: &mut dyn FnMut(Instant)) {
        let rings = if self.every > 0 { self.repeat.min(REPEATS) } else { 0 };
        for number in 0..=rings {
            let at = first.plus(self.every.saturating_mul(number as i64));
            let done = self.acknowledged.is_some_and(|done| at <= done);
            if window.from <= at && at < window.to && !done {
                each(at);
            }
        }
    }
}
