//! Schedules: the occurrences and alarms of an item, as they are stored with it.
//!
//! A query for a time range reads nothing else of an item. The schedule of a component is parsed in
//! `event`; the schedules of a master and its overrides are combined in `series`; the rows of the
//! interval index that lead to a schedule are made in `larder-store`.

mod parsed_schedule;
mod serialization;
mod time_range;

pub use parsed_schedule::ParsedSchedule;
pub use time_range::{TimeRange, TimeTarget};

use larder_time::civil::{DAY_SECONDS, Instant};
use larder_time::rule::StepBudget;
use larder_time::series::{Occurrence, OverrideMode, Series, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

/// An alarm is repeated at most this many times.
pub(crate) const MAX_ALARM_REPEATS: u64 = 1000;
/// Alarms of one item after this many are ignored.
pub(crate) const MAX_ALARMS_PER_ITEM: usize = 64;

/// The occurrences and alarms of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub(crate) form: ScheduleForm,
    /// The item stands for the occurrences of the series that the override in this row has changed.
    pub(crate) override_row: Option<i64>,
    pub(crate) alarms: Vec<Alarm>,
    pub(crate) zone_names: Vec<String>,
}

/// The form of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleForm {
    /// A task without DTSTART and DUE. It has no occurrence, but it exists for a time, which time
    /// ranges match (RFC 4791, 9.9).
    Undated(Existence),
    /// Once, or repeatedly.
    Series(Box<Series>),
}

/// The time for which a task without dates exists, by CREATED and COMPLETED; both ends are in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Existence {
    /// The beginning; `None`: it has always existed.
    pub since: Option<Instant>,
    /// The end; `None`: the task is not completed.
    pub until: Option<Instant>,
}

impl Existence {
    fn overlaps(self, range: &TimeRange) -> bool {
        self.since.is_none_or(|since| since < range.to)
            && self.until.is_none_or(|until| until >= range.from)
    }
}

/// An alarm (RFC 5545, 3.6.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm {
    /// The time of the first trigger.
    pub trigger: Trigger,
    /// The number of repetitions.
    pub repeat: u64,
    /// The seconds between two repetitions.
    pub interval_seconds: i64,
    /// Triggers up to this instant are acknowledged and are skipped.
    pub acknowledged: Option<Instant>,
    /// The line of the item on which the alarm begins.
    pub line: u32,
}

/// The trigger of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of RFC 5545")]
pub enum Trigger {
    Absolute(Instant),
    Start(IcalDuration),
    End(IcalDuration),
}

/// Whether a schedule has an occurrence or an alarm in a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Overlap {
    Yes,
    No,
    /// Unknown: the test would take more work than one query may cause.
    Undecided,
}

/// An occurrence, or an alarm of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemOccurrence {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// The occurrence takes whole days.
    pub is_date: bool,
    /// The occurrence is in the local time zone.
    pub is_floating: bool,
    /// The time at which the alarm rings, and the line on which it begins.
    pub alarm: Option<(Instant, u32)>,
}

impl Schedule {
    /// Returns whether an occurrence or an alarm is in this time range.
    #[must_use]
    pub fn overlap(&self, range: &TimeRange) -> Overlap {
        if range.from >= range.to {
            return Overlap::No;
        }
        if let (ScheduleForm::Undated(existence), TimeTarget::Occurrences) =
            (&self.form, range.target)
        {
            return if existence.overlaps(range) { Overlap::Yes } else { Overlap::No };
        }
        let mut found = Overlap::No;
        let is_complete = self.for_each_in(range, &mut |_| {
            found = Overlap::Yes;
            false
        });
        if found == Overlap::No && !is_complete { Overlap::Undecided } else { found }
    }

    /// Returns the number of occurrences, or alarms, in a time range, and whether all could be
    /// counted within the budget.
    #[must_use]
    pub fn count_in(&self, range: &TimeRange, budget: StepBudget) -> (u64, bool) {
        let mut count = 0;
        let is_complete = self.for_each_within(range, budget, &mut |_| {
            count += 1;
            true
        });
        (count, is_complete)
    }

    /// Returns the occurrence at the start of the item, for an item whose occurrences have all been
    /// replaced or excluded; `None` if the item has no date, or stands for the occurrences after an
    /// override.
    #[must_use]
    pub fn start_occurrence(&self, local: &Zone) -> Option<ItemOccurrence> {
        let series = self.series().filter(|_| self.override_row.is_none())?;
        Some(ItemOccurrence {
            occurrence: series.start_occurrence(local),
            is_date: series.is_date(),
            is_floating: *series.zone_reference() == ZoneReference::Floating,
            alarm: None,
        })
    }

    /// Calls `visit` with the occurrences, or the alarms, in a time range, in the order of their
    /// beginnings, until it returns false. Returns whether the result is exact. For a hostile rule,
    /// only the occurrences within the default step budget are visited, and a COUNT beyond the
    /// budget is ignored.
    pub fn for_each_in(
        &self,
        range: &TimeRange,
        visit: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        self.for_each_within(range, StepBudget::default(), visit)
    }

    /// Like [`for_each_in`](Self::for_each_in), with another step budget.
    pub fn for_each_within(
        &self,
        range: &TimeRange,
        budget: StepBudget,
        visit: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let ScheduleForm::Series(series) = &self.form else { return true };
        match range.target {
            TimeTarget::Occurrences => self.for_each_occurrence(series, range, budget, visit),
            TimeTarget::Alarms => self.for_each_alarm(series, range, budget, visit),
        }
    }

    fn for_each_occurrence(
        &self,
        series: &Series,
        range: &TimeRange,
        budget: StepBudget,
        visit: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let (date, floating) =
            (series.is_date(), *series.zone_reference() == ZoneReference::Floating);
        let tag = self.override_row.map(i64::unsigned_abs);
        let detached = if tag.is_some() { OverrideMode::Include } else { OverrideMode::Exclude };
        let (from, to) = (range.from, range.to);
        let mut all = series.occurrences(from, to, &range.local_zone, detached, budget);
        for occurrence in all.by_ref().filter(|occurrence| occurrence.tag == tag) {
            if !visit(ItemOccurrence {
                occurrence,
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
        range: &TimeRange,
        budget: StepBudget,
        visit: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let Some((first, last)) = self.alarm_offset_bounds() else {
            return self.for_each_absolute_alarm(series, range, budget, visit);
        };
        let around = TimeRange {
            from: range.from.saturating_add(-last - 1),
            to: range.to.saturating_add(-first + 1),
            local_zone: range.local_zone.clone(),
            target: TimeTarget::Occurrences,
        };
        let (mut found, mut is_full) = (Vec::new(), false);
        let is_complete = self.for_each_occurrence(series, &around, budget, &mut |occurrence| {
            for alarm in &self.alarms {
                alarm.for_each_ring(series, &occurrence, range, &mut |at| {
                    found.push(ItemOccurrence { alarm: Some((at, alarm.line)), ..occurrence });
                });
            }
            is_full = found.len() >= MAX_ALARM_REPEATS as usize * MAX_ALARMS_PER_ITEM;
            !is_full
        });
        let is_complete = is_complete && !is_full;
        let is_complete = self.for_each_absolute_alarm(series, range, budget, &mut |occurrence| {
            found.push(occurrence);
            true
        }) && is_complete;
        found.sort_by_key(|occurrence| occurrence.alarm);
        found.into_iter().all(visit);
        is_complete
    }

    /// An alarm with an absolute trigger rings once, however often its item occurs.
    fn for_each_absolute_alarm(
        &self,
        series: &Series,
        range: &TimeRange,
        budget: StepBudget,
        visit: &mut dyn FnMut(ItemOccurrence) -> bool,
    ) -> bool {
        let mut rings: Vec<(Instant, u32)> = Vec::new();
        for alarm in &self.alarms {
            if let Trigger::Absolute(at) = alarm.trigger {
                alarm.for_each_repeat(at, range, &mut |at| rings.push((at, alarm.line)));
            }
        }
        if rings.is_empty() {
            return true;
        }
        rings.sort_unstable();
        let everything = TimeRange { from: Instant::MIN, to: Instant::MAX, ..range.clone() };
        let mut first = None;
        let is_complete =
            self.for_each_occurrence(series, &everything, budget, &mut |occurrence| {
                first = Some(occurrence);
                false
            });
        let Some(first) = first else { return is_complete };
        rings.into_iter().all(|at| visit(ItemOccurrence { alarm: Some(at), ..first }));
        true
    }

    /// Returns the earliest and the latest time at which an alarm of an occurrence rings, in
    /// seconds from its beginning or end; `None` if no alarm is relative to an occurrence.
    #[must_use]
    pub fn alarm_offset_bounds(&self) -> Option<(i64, i64)> {
        let bounds = |alarm: &Alarm| match alarm.trigger {
            Trigger::Absolute(_) => None,
            Trigger::Start(offset) | Trigger::End(offset) => {
                // A day in which the offset from UTC changes is longer or shorter.
                let slack = if offset.days == 0 { 0 } else { DAY_SECONDS };
                let first = offset.days.saturating_mul(DAY_SECONDS).saturating_add(offset.seconds);
                let again = alarm.ring_span_seconds();
                Some((
                    first.saturating_sub(slack),
                    first.saturating_add(again).saturating_add(slack),
                ))
            }
        };
        let all = || self.alarms.iter().filter_map(bounds);
        let first = all().map(|(first, _)| first).min()?;
        Some((first, all().map(|(_, last)| last).max()?))
    }

    /// Returns the first start: in seconds of UTC, or of local time if it floats. `None` if the
    /// schedule has no beginning.
    #[must_use]
    pub fn start_seconds(&self) -> Option<i64> {
        match &self.form {
            ScheduleForm::Undated(existence) => existence.since.map(Instant::seconds),
            ScheduleForm::Series(series) => Some(series.span().first),
        }
    }

    /// Returns whether there is, or may be, more than one occurrence.
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        matches!(&self.form, ScheduleForm::Series(series) if series.is_recurring())
    }

    /// Returns the series of occurrences; `None` if the item has no date.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        match &self.form {
            ScheduleForm::Undated(_) => None,
            ScheduleForm::Series(series) => Some(series),
        }
    }

    /// Returns the form.
    #[must_use]
    pub fn form(&self) -> &ScheduleForm {
        &self.form
    }

    /// Returns the row of the override whose changed occurrences the item stands for.
    #[must_use]
    pub fn override_row(&self) -> Option<i64> {
        self.override_row
    }

    /// Returns the alarms.
    #[must_use]
    pub fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// Returns the names of the time zones in it: of the system, or `own:` and a hash.
    #[must_use]
    pub fn zone_names(&self) -> &[String] {
        &self.zone_names
    }
}

impl Alarm {
    /// Returns the seconds from the first to the last time that it rings for one occurrence.
    #[must_use]
    pub fn ring_span_seconds(&self) -> i64 {
        self.interval_seconds.max(0).saturating_mul(self.repeat.min(MAX_ALARM_REPEATS) as i64)
    }

    /// Calls `visit` with the times in a time range at which it rings for an occurrence.
    fn for_each_ring(
        &self,
        series: &Series,
        occurrence: &ItemOccurrence,
        range: &TimeRange,
        visit: &mut dyn FnMut(Instant),
    ) {
        let (base, offset) = match self.trigger {
            Trigger::Absolute(_) => return,
            Trigger::Start(offset) => {
                ((occurrence.occurrence.start, occurrence.occurrence.start_civil), offset)
            }
            Trigger::End(offset) => {
                ((occurrence.occurrence.end, occurrence.occurrence.end_civil), offset)
            }
        };
        let at = match offset.days {
            0 => base.0,
            days => {
                let civil = base.1.saturating_add(days.saturating_mul(DAY_SECONDS));
                match series.zone_reference() {
                    ZoneReference::Zone(zone) => zone.to_instant(civil),
                    ZoneReference::Utc => Instant::from_seconds_clamped(civil.seconds()),
                    ZoneReference::Floating => range.local_zone.to_instant(civil),
                }
            }
        };
        self.for_each_repeat(at.saturating_add(offset.seconds), range, visit);
    }

    /// Calls `visit` with the times in a time range at which it rings, if it first rings at
    /// `first`.
    fn for_each_repeat(&self, first: Instant, range: &TimeRange, visit: &mut dyn FnMut(Instant)) {
        let rings = if self.interval_seconds > 0 { self.repeat.min(MAX_ALARM_REPEATS) } else { 0 };
        for number in 0..=rings {
            let at = first.saturating_add(self.interval_seconds.saturating_mul(number as i64));
            let done = self.acknowledged.is_some_and(|done| at <= done);
            if range.from <= at && at < range.to && !done {
                visit(at);
            }
        }
    }
}
