//! The schedule of one component by itself, before it is combined with others of its UID.

use super::{Schedule, ScheduleForm};
use larder_time::rule::StepBudget;
use larder_time::series::{CalendarDateTime, Override, Series, SeriesSpec};

/// The schedule that a component states by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedSchedule {
    /// The schedule if nothing else has the UID; `None`: the component has no time.
    pub(crate) standalone: Option<Schedule>,
    /// The start, length and rules, if the component can be part of a series.
    pub(crate) series_spec: Option<Box<SeriesSpec>>,
    /// The occurrence that the component replaces, as a time...
    pub(crate) original: Option<CalendarDateTime>,
    /// ...and as a text; empty for a master.
    pub(crate) recurrence_id: String,
    /// The component also replaces the occurrences that follow (RANGE=THISANDFUTURE).
    pub(crate) is_this_and_future: bool,
}

impl ParsedSchedule {
    /// Returns the recurrence-id; empty for a master.
    #[must_use]
    pub fn recurrence_id(&self) -> &str {
        &self.recurrence_id
    }

    /// Returns whether the schedule depends on the other items of the UID, although the component
    /// is an override: it replaces the following occurrences as well, or it has a rule, which
    /// counts only without a series.
    #[must_use]
    pub fn depends_on_series(&self) -> bool {
        self.is_this_and_future || self.has_override_rule()
    }

    fn has_override_rule(&self) -> bool {
        let spec = self.series_spec.as_deref();
        !self.recurrence_id.is_empty()
            && spec.is_some_and(|spec| !spec.rules.is_empty() || !spec.rdates.is_empty())
    }

    /// Returns the schedule of an override beside its series: one occurrence.
    pub(crate) fn single_schedule(&self) -> Option<Schedule> {
        let standalone = self.standalone.clone()?;
        match self.series_spec.as_deref().filter(|_| self.has_override_rule()) {
            Some(SeriesSpec { start, length, .. }) => {
                let spec = SeriesSpec::without_recurrence(start.clone(), *length);
                let (series, _) = Series::new(&spec, StepBudget::default());
                Some(Schedule { form: ScheduleForm::Series(Box::new(series)), ..standalone })
            }
            None => Some(standalone),
        }
    }

    /// Returns the start, length and rules; `None` if the component has no date.
    #[must_use]
    pub fn into_series_spec(self) -> Option<SeriesSpec> {
        self.series_spec.map(|spec| *spec)
    }

    /// Returns the schedule if nothing else has the UID.
    #[must_use]
    pub fn standalone_schedule(&self) -> Option<&Schedule> {
        self.standalone.as_ref()
    }

    /// Like [`standalone_schedule`](Self::standalone_schedule), without a copy.
    #[must_use]
    pub fn into_standalone_schedule(self) -> Option<Schedule> {
        self.standalone
    }

    /// Returns the change that the component makes to its series, known by the row of its item.
    pub(crate) fn to_override(&self, row: i64, may_follow: bool) -> Option<Override> {
        let spec = self.series_spec.as_deref();
        Some(Override {
            original: self.original.clone()?,
            is_this_and_future: self.is_this_and_future && may_follow,
            start: spec.map(|spec| spec.start.clone()),
            length: spec.map(|spec| spec.length),
            tag: row.unsigned_abs(),
        })
    }

    /// Returns the series of which the component is the master, with these changes.
    pub(crate) fn series_with_overrides(&self, overrides: &[Override]) -> Option<Series> {
        match &self.standalone.as_ref()?.form {
            ScheduleForm::Series(series) => Some(Series::clone(series).with_overrides(overrides)),
            ScheduleForm::Undated(_) => None,
        }
    }

    /// Returns the schedule as a part of a series: of its unchanged occurrences, or with an
    /// `override_row` of the occurrences that this override has changed. The zone of the series is
    /// the first of `zone_names`.
    pub(crate) fn schedule_in_series(
        &self,
        series: Series,
        override_row: Option<i64>,
        zone_names: &[String],
    ) -> Option<Schedule> {
        let schedule = self.standalone.as_ref()?;
        let mut all_names = zone_names.to_vec();
        for name in &schedule.zone_names {
            if !all_names.contains(name) {
                all_names.push(name.clone());
            }
        }
        Some(Schedule {
            form: ScheduleForm::Series(Box::new(series)),
            override_row,
            alarms: schedule.alarms.clone(),
            zone_names: all_names,
        })
    }

    /// Returns the names of the time zones; the zone of the start is first.
    pub(crate) fn zone_names(&self) -> &[String] {
        self.standalone.as_ref().map_or(&[], |schedule| &schedule.zone_names)
    }
}
