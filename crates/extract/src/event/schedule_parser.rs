//! The parser of schedules: the start of a component, its length, its recurrence, the occurrence
//! that it replaces, its alarms.
//!
//! Where RFC 5545 is ambiguous, or files do not follow it, comments describe the interpretation.
//! Values that are not understood are ignored, with a warning.

use super::alarm_reader::read_alarms;
use super::date_time_reader::{DateTimeReader, MAX_UNPARSED_CHARS, comparable_instant};
use super::zone_resolver::ZoneResolver;
use crate::calendar_context::CalendarContext;
use crate::parsed_item::LineWarning;
use crate::schedule::{Existence, ParsedSchedule, Schedule, ScheduleForm};
use larder_format::component::{CalendarVersion, Component, TimeProperty};
use larder_format::kind::Kind;
use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::rule::{Rule, StepBudget};
use larder_time::series::{
    CalendarDateTime, EventLength, Rdate, Series, SeriesSpec, ZoneReference,
};
use larder_time::value::{IcalDateTime, IcalDuration, Period, PeriodEnd};

/// Values of one list (EXDATE, RDATE) after this many are ignored.
const MAX_VALUES_PER_LIST: usize = 1 << 17;
/// Rules of one item after this many are ignored: real items have fewer, and each may take long to
/// compile.
const MAX_RULES_PER_ITEM: usize = 16;

/// Parses the schedule of a component; adds to `warnings`.
pub(crate) fn parse_schedule(
    component: &Component<'_>,
    kind: Kind,
    calendar: &CalendarContext,
    zones: &ZoneResolver,
    warnings: &mut Vec<LineWarning>,
) -> ParsedSchedule {
    let dates = DateTimeReader::new(calendar, zones, warnings);
    let mut parser = ScheduleParser { component, kind, dates };
    let spec = parser.read_schedule_spec();
    let mut parsed = parser.read_recurrence_id();
    let alarms = read_alarms(component, kind, &mut parser.dates);
    let form = match spec {
        ScheduleSpec::Absent => return parsed,
        ScheduleSpec::Undated(existence) => ScheduleForm::Undated(existence),
        ScheduleSpec::Series(spec) => {
            let (series, problems) = Series::new(&spec, StepBudget::default());
            for problem in problems {
                let line = component.time_properties("RRULE").next().map_or(1, |rule| rule.line);
                parser.dates.warn(line, problem.to_string());
            }
            parsed.series_spec = Some(spec);
            ScheduleForm::Series(Box::new(series))
        }
    };
    let zone_names = parser.dates.zone_names;
    parsed.standalone = Some(Schedule { form, override_row: None, alarms, zone_names });
    parsed
}

/// The times of a component.
enum ScheduleSpec {
    /// It has none.
    Absent,
    /// It is a task that has none.
    Undated(Existence),
    Series(Box<SeriesSpec>),
}

struct ScheduleParser<'a> {
    component: &'a Component<'a>,
    kind: Kind,
    dates: DateTimeReader<'a>,
}

impl ScheduleParser<'_> {
    /// Reads the first value of a property that is not empty.
    fn read_first(&mut self, name: &str) -> Option<CalendarDateTime> {
        let component = self.component;
        let property =
            component.time_properties(name).find(|property| !property.text.is_empty())?;
        self.dates.read(&property)
    }

    fn read_schedule_spec(&mut self) -> ScheduleSpec {
        let start = self.read_first("DTSTART");
        let due = if self.kind == Kind::Task { self.read_first("DUE") } else { None };
        let Some(start) = start.or_else(|| due.clone()) else {
            return self.read_spec_without_start();
        };
        let end = match self.kind {
            Kind::Task => due,
            Kind::Event => self.read_first("DTEND"),
            _ => None,
        };
        let length = match &end {
            Some(end) => self.read_length_until(&start, end),
            None => self.read_duration(&start),
        };
        let mut spec = SeriesSpec::without_recurrence(start, length);
        self.read_recurrence(&mut spec);
        let is_due_early = self.kind == Kind::Task
            && spec.rules.is_empty()
            && spec.rdates.is_empty()
            && end.as_ref().is_some_and(|due| {
                due.is_date == spec.start.is_date && seconds_between(&spec.start, due) < 0
            });
        if let Some(due) = end.filter(|_| is_due_early) {
            // The due time is the one that people act on; the start of a series anchors its rules.
            spec.start = due;
        }
        ScheduleSpec::Series(Box::new(spec))
    }

    /// Reads a component without a date. A task exists for a time (the table of RFC 4791, 9.9),
    /// which is neither its start nor its end; other kinds have no time then.
    fn read_spec_without_start(&mut self) -> ScheduleSpec {
        if self.kind != Kind::Task {
            // The series of an override has its time; a malformed DTSTART has a warning already.
            let has_value = |name: &&str| {
                self.component.time_properties(name).any(|property| !property.text.is_empty())
            };
            let is_missing = !["RECURRENCE-ID", "DTSTART"].iter().any(has_value);
            if self.kind == Kind::Event && is_missing {
                self.dates.warn(1, "no DTSTART: the event will not appear in the calendar");
            }
            return ScheduleSpec::Absent;
        }
        let instant =
            |date_time: Option<CalendarDateTime>| date_time.as_ref().map(comparable_instant);
        let (created, completed) =
            (instant(self.read_first("CREATED")), instant(self.read_first("COMPLETED")));
        // A task that was created after its completion exists between the two; one without
        // CREATED at the moment of its completion only.
        let since = created.into_iter().chain(completed).min();
        let until = completed.map(|completed| created.map_or(completed, |at| at.max(completed)));
        ScheduleSpec::Undated(Existence { since, until })
    }

    /// Returns the length up to an end, which takes precedence over a duration.
    fn read_length_until(
        &mut self,
        start: &CalendarDateTime,
        end: &CalendarDateTime,
    ) -> EventLength {
        let name = if self.kind == Kind::Task { "DUE" } else { "DTEND" };
        if start.is_date != end.is_date {
            let value = |is_date| if is_date { "date" } else { "time" };
            let (end, start) = (value(end.is_date), value(start.is_date));
            self.warn_property(name, format!("{name} is a {end}, but the start is a {start}"));
        }
        let length = match (start.is_date, end.is_date) {
            (true, _) => end.civil.day_number() - start.civil.day_number(),
            // A date means midnight in the zone of the start.
            (false, true) => {
                let midnight = CalendarDateTime::from_civil(
                    CivilTime::midnight(end.civil.day_number()),
                    start.zone_reference.clone(),
                );
                seconds_between(start, &midnight)
            }
            // An end without a zone has the zone of the start.
            (false, false) if end.zone_reference == ZoneReference::Floating => {
                let reference = start.zone_reference.clone();
                seconds_between(start, &CalendarDateTime::from_civil(end.civil, reference))
            }
            (false, false) => seconds_between(start, end),
        };
        if length < 0 {
            self.warn_property(name, format!("{name} is before the start"));
        }
        match start.is_date {
            // The due date of a task is its last day, the end of an event the day after.
            true if self.kind == Kind::Task => EventLength::from_days(length.max(0) + 1),
            true => EventLength::from_days(length.max(1)),
            false => EventLength::Exact(length.max(0)),
        }
    }

    fn warn_property(&mut self, name: &str, text: String) {
        let property =
            self.component.time_properties(name).find(|property| !property.text.is_empty());
        self.dates.warn(property.map_or(1, |property| property.line), text);
    }

    /// Returns the length of an item without an end: a day for a date, zero for a time.
    fn read_duration(&mut self, start: &CalendarDateTime) -> EventLength {
        let default = if start.is_date { EventLength::from_days(1) } else { EventLength::ZERO };
        let component = self.component;
        let mut properties = component.time_properties("DURATION");
        let Some(property) = properties.find(|property| !property.text.is_empty()) else {
            return default;
        };
        match IcalDuration::parse(&property.text) {
            Ok(duration) if duration.days < 0 || duration.seconds < 0 => {
                self.dates.warn(property.line, "a negative DURATION is ignored");
                default
            }
            Ok(duration) if start.is_date && duration.days == 0 => {
                EventLength::from_days(((duration.seconds + DAY_SECONDS - 1) / DAY_SECONDS).max(1))
            }
            Ok(duration) => EventLength::Nominal(duration),
            Err(error) => {
                self.dates.warn(property.line, error.to_string());
                default
            }
        }
    }

    fn read_recurrence(&mut self, spec: &mut SeriesSpec) {
        let component = self.component;
        // In a series, an override is one occurrence, and its rule has no meaning. Some programs
        // give every event a RECURRENCE-ID; without a series, such an event recurs as it says.
        if component.recurrence_id().is_some()
            && let Some(rule) =
                component.time_properties("RRULE").find(|rule| !rule.text.is_empty())
        {
            self.dates.warn(
                rule.line,
                "RRULE beside RECURRENCE-ID: followed only if the UID has no series",
            );
        }
        spec.rules = self.read_rules("RRULE");
        spec.exrules = self.read_rules("EXRULE");
        for property in component.time_properties("RDATE") {
            for text in property.text.split(',').take(MAX_VALUES_PER_LIST) {
                let rdate =
                    self.read_rdate(&TimeProperty { text: text.into(), ..property.clone() });
                spec.rdates.extend(rdate);
            }
        }
        for property in component.time_properties("EXDATE") {
            let texts = property.text.split([',', ';']).take(MAX_VALUES_PER_LIST);
            for text in texts.filter(|text| !text.is_empty()) {
                let exdate =
                    self.dates.read(&TimeProperty { text: text.into(), ..property.clone() });
                spec.exdates.extend(exdate);
            }
        }
    }

    fn read_rules(&mut self, name: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        let component = self.component;
        let properties =
            component.time_properties(name).filter(|property| !property.text.is_empty());
        for property in properties.take(MAX_RULES_PER_ITEM) {
            let is_vcal10 =
                component.version() == CalendarVersion::V1_0 && !property.text.contains('=');
            let parsed = match is_vcal10 {
                true => Rule::parse_vcal10(&property.text),
                false => Rule::parse(&property.text),
            };
            match parsed {
                Ok(rule) => {
                    let difference = rule.libical_difference().filter(|_| name == "RRULE");
                    if let Some(difference) = difference {
                        let text = format!(
                            "evolution-data-server expands this rule differently: {difference}"
                        );
                        self.dates.warn(property.line, text);
                    }
                    rules.push(rule);
                }
                Err(error) => {
                    self.dates.warn(property.line, format!("{error}; the rule is ignored"));
                }
            }
        }
        rules
    }

    /// Reads an RDATE: a time, or a period with a length of its own.
    fn read_rdate(&mut self, property: &TimeProperty<'_>) -> Option<Rdate> {
        if property.text.trim().is_empty() {
            return None;
        }
        let Some((start, _)) = property.text.split_once('/') else {
            return Some(Rdate { start: self.dates.read(property)?, length: None });
        };
        let start = self.dates.read(&TimeProperty { text: start.into(), ..property.clone() })?;
        let length = match Period::parse(&property.text) {
            Ok(Period { end: PeriodEnd::DateTime(end), .. }) => {
                let end = self.dates.resolve_value(property, end);
                Some(EventLength::Exact(seconds_between(&start, &end).max(0)))
            }
            Ok(Period { end: PeriodEnd::Duration(duration), .. }) => {
                Some(EventLength::Nominal(duration))
            }
            Err(error) => {
                self.dates.warn(property.line, error.to_string());
                None
            }
        };
        Some(Rdate { start, length })
    }

    /// Reads the occurrence that the component replaces, as a time and as a text. The text is the
    /// time as it is written, without the zone: zones change by law and have many names, and the
    /// series decides which one is meant.
    fn read_recurrence_id(&mut self) -> ParsedSchedule {
        let component = self.component;
        let Some(property) = component.recurrence_id() else { return ParsedSchedule::default() };
        let is_this_and_future = property
            .range
            .as_deref()
            .is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        let Some(original) = self.dates.read(&property) else {
            let unparsed: String = property.text.chars().take(MAX_UNPARSED_CHARS).collect();
            return ParsedSchedule {
                recurrence_id: format!("?{unparsed}"),
                ..ParsedSchedule::default()
            };
        };
        let value = IcalDateTime::parse(&property.text);
        ParsedSchedule {
            original: Some(original),
            recurrence_id: value.map(|value| value.to_string()).unwrap_or_default(),
            is_this_and_future,
            ..ParsedSchedule::default()
        }
    }
}

fn seconds_between(start: &CalendarDateTime, end: &CalendarDateTime) -> i64 {
    comparable_instant(end).seconds() - comparable_instant(start).seconds()
}
