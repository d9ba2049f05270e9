//! What a component says of time, by itself: its start, its length, how it recurs, what it is an
//! occurrence of, its alarms.
//!
//! Where RFC 5545 leaves room, or files do not keep to it, it is read as written in the comments
//! here. What is not understood is left out and noted.

use super::LineWarnings;
use super::zone_resolver::{ResolvedZone, ZoneResolver};
use crate::Kind;
use crate::calendar_context::CalendarContext;
use crate::schedule::{
    Alarm, MAX_ALARM_REPEATS, MAX_ALARMS_PER_ITEM, Schedule, ScheduleForm, Trigger,
};
use larder_format::component::{CalendarVersion, Component, Subcomponent, TimeProperty};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, StepBudget};
use larder_time::series::{
    CalendarDateTime, EventLength, Override, Rdate, Series, SeriesSpec, ZoneReference,
};
use larder_time::value::{IcalDateTime, IcalDuration, Period, PeriodEnd};
use larder_time::zone::ZoneMatch;

/// Of more values than this in one list (EXDATE, RDATE) the rest is not looked at.
const MAX_VALUES_PER_LIST: usize = 1 << 17;
/// Something is said of so many names of zones in one item.
const MAX_ZONE_WARNINGS: usize = 64;
/// More rules than this in one item are not followed: nobody writes them, and each may take long to
/// be understood.
const MAX_RULES_PER_ITEM: usize = 16;
/// A RECURRENCE-ID that is no time is known by so many of its characters.
const MAX_UNPARSED_CHARS: usize = 100;

/// What a component says of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedSchedule {
    /// What it is in time, by itself; `None`: nothing.
    standalone: Option<Schedule>,
    /// What it is made of, where it can be part of a series.
    series_spec: Option<Box<SeriesSpec>>,
    /// Which occurrence it stands for, and by what name.
    original: Option<CalendarDateTime>,
    recurrence_id: String,
    /// It stands for those that follow, too (RANGE=THISANDFUTURE).
    pub(crate) is_this_and_future: bool,
}

/// Which zone a name in an item means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneUse {
    /// The name in the item.
    pub tzid: String,
    /// How it was understood.
    pub zone_match: ZoneMatch,
    /// The zone of the system that is used; `None`: the definition in the file is, or there is
    /// none.
    pub system_zone: Option<String>,
    /// The file has a definition, which says something else at the item's start.
    pub definition_differs: bool,
}

/// What reading times takes, and what there was to say.
struct ScheduleParser<'a> {
    component: &'a Component<'a>,
    context: &'a CalendarContext,
    zone_resolver: &'a ZoneResolver,
    warnings: &'a mut LineWarnings,
    /// The names of the zones so far; that of the start is the first.
    zone_names: Vec<String>,
    /// The names of zones of which something was said.
    warned_tzids: Vec<String>,
}

/// Finds the zone that a value is in.
fn resolve_zone(
    timed: &TimeProperty<'_>,
    stamp: IcalDateTime,
    frame: &CalendarContext,
    clocks: &ZoneResolver,
) -> Option<Option<ResolvedZone>> {
    let tzid = timed.tzid.as_deref().filter(|tzid| !tzid.is_empty())?;
    if stamp.is_utc || stamp.is_date {
        return None;
    }
    let zone = frame.zone_definition(tzid).map(|zone| zone.as_ref());
    Some(clocks.resolve(tzid, zone, stamp.civil))
}

/// What a property's value is: its clock, if it has one.
pub(super) fn resolve_date_time(
    timed: &TimeProperty<'_>,
    frame: &CalendarContext,
    clocks: &ZoneResolver,
) -> Option<CalendarDateTime> {
    let stamp = IcalDateTime::parse(&timed.text).ok()?;
    let zone = resolve_zone(timed, stamp, frame, clocks).flatten();
    Some(to_calendar_date_time(stamp, zone.map(|named| named.zone)))
}

fn to_calendar_date_time(
    stamp: IcalDateTime,
    zone: Option<larder_time::zone::Zone>,
) -> CalendarDateTime {
    match (stamp, zone) {
        (IcalDateTime { is_date: true, civil, .. }, _) => CalendarDateTime::from_date(civil),
        (IcalDateTime { is_utc: true, civil, .. }, _) => {
            CalendarDateTime::from_civil(civil, ZoneReference::Utc)
        }
        (IcalDateTime { civil, .. }, Some(zone)) if zone.name() == "UTC" => {
            CalendarDateTime::from_civil(civil, ZoneReference::Utc)
        }
        (IcalDateTime { civil, .. }, Some(zone)) => {
            CalendarDateTime::from_civil(civil, ZoneReference::Zone(zone))
        }
        (IcalDateTime { civil, .. }, None) => {
            CalendarDateTime::from_civil(civil, ZoneReference::Floating)
        }
    }
}

/// The moment of a start; of what floats as if it were UTC, to be compared with others that float.
fn comparable_instant(start: &CalendarDateTime) -> Instant {
    match &start.zone_reference {
        ZoneReference::Zone(zone) if !start.is_date => zone.to_instant(start.civil),
        _ => Instant::from_seconds_clamped(start.civil.seconds()),
    }
}

impl ParsedSchedule {
    /// Reads what a component of this kind says of time. `None`: nothing that matters.
    pub(crate) fn parse(
        component: &Component<'_>,
        kind: Kind,
        frame: &CalendarContext,
        clocks: &ZoneResolver,
        notes: &mut LineWarnings,
    ) -> Option<ParsedSchedule> {
        if kind == Kind::Component {
            return None;
        }
        let (names, told) = (Vec::new(), Vec::new());
        let mut reading = ScheduleParser {
            component,
            context: frame,
            zone_resolver: clocks,
            warnings: notes,
            zone_names: names,
            warned_tzids: told,
        };
        let described = reading.read_schedule_spec(kind);
        let (original, recurrence, following) = reading.read_recurrence_id();
        let alarms = reading.read_alarms();
        let names = reading.zone_names;
        let mut timing = ParsedSchedule {
            standalone: None,
            series_spec: None,
            original,
            recurrence_id: recurrence,
            is_this_and_future: following,
        };
        let shape = match described {
            ScheduleSpec::Absent => return Some(timing),
            ScheduleSpec::Open(since) => ScheduleForm::Open(since),
            ScheduleSpec::Series(description) => {
                let (series, troubles) = Series::new(&description, StepBudget::default());
                for trouble in troubles {
                    let line =
                        component.time_properties("RRULE").next().map_or(1, |rule| rule.line);
                    notes.push((line, trouble.to_string()));
                }
                timing.series_spec = Some(description);
                ScheduleForm::Series(Box::new(series))
            }
        };
        timing.standalone =
            Some(Schedule { form: shape, override_row: None, alarms, zone_names: names });
        Some(timing)
    }

    /// Which occurrence it stands for.
    pub(crate) fn recurrence_id(&self) -> Option<String> {
        (!self.recurrence_id.is_empty()).then(|| self.recurrence_id.clone())
    }

    /// What it says of time, where that is more than since when.
    pub(crate) fn into_series_spec(self) -> Option<SeriesSpec> {
        self.series_spec.map(|description| *description)
    }

    /// What it is in time, if nothing else has its UID.
    pub(crate) fn standalone_schedule(&self) -> Option<Schedule> {
        self.standalone.clone()
    }

    /// The same, where it is not needed again.
    pub(crate) fn into_standalone_schedule(self) -> Option<Schedule> {
        self.standalone
    }

    /// The change that it is to its series, known by its row.
    pub(crate) fn to_override(&self, item: i64, may_follow: bool) -> Option<Override> {
        let description = self.series_spec.as_deref();
        Some(Override {
            original: self.original.clone()?,
            is_this_and_future: self.is_this_and_future && may_follow,
            start: description.map(|description| description.start.clone()),
            length: description.map(|description| description.length),
            tag: item.unsigned_abs(),
        })
    }

    /// The series that it is the master of, with these changes.
    pub(crate) fn series_with_overrides(&self, overrides: &[Override]) -> Option<Series> {
        match &self.standalone.as_ref()?.form {
            ScheduleForm::Series(series) => Some(Series::clone(series).with_overrides(overrides)),
            ScheduleForm::Open(_) => None,
        }
    }

    /// What it is in time as a part of this series: of all that is not changed, or of what this
    /// change made of the rest. The names of zones are `of_series`: its clock is the master's.
    pub(crate) fn schedule_in_series(
        &self,
        series: Series,
        tag: Option<i64>,
        of_series: &[String],
    ) -> Option<Schedule> {
        let times = self.standalone.as_ref()?;
        let mut clocks = of_series.to_vec();
        for name in &times.zone_names {
            if !clocks.contains(name) {
                clocks.push(name.clone());
            }
        }
        let shape = ScheduleForm::Series(Box::new(series));
        Some(Schedule {
            form: shape,
            override_row: tag,
            alarms: times.alarms.clone(),
            zone_names: clocks,
        })
    }

    /// The names of the zones in it, that of its own clock first.
    pub(crate) fn zone_names(&self) -> &[String] {
        self.standalone.as_ref().map_or(&[], |times| &times.zone_names)
    }
}

/// How a component lies in time.
enum ScheduleSpec {
    Absent,
    Open(Option<Instant>),
    Series(Box<SeriesSpec>),
}

impl ScheduleParser<'_> {
    /// Reads a value; what is wrong with it is noted.
    fn read_date_time(&mut self, timed: &TimeProperty<'_>) -> Option<CalendarDateTime> {
        let stamp = match IcalDateTime::parse(&timed.text) {
            Ok(stamp) => stamp,
            Err(error) => {
                self.warnings.push((timed.line, error.to_string()));
                return None;
            }
        };
        let zone = match resolve_zone(timed, stamp, self.context, self.zone_resolver) {
            None => None,
            Some(None) => {
                self.warn_unknown_zone(timed);
                None
            }
            Some(Some(named)) => {
                if named.name != "UTC" && !self.zone_names.contains(&named.name) {
                    self.zone_names.push(named.name.clone());
                }
                if named.is_defined_differently_at(stamp.civil) {
                    self.warn_definition_differs(timed, &named);
                }
                if !named.is_complete() {
                    self.warn_truncated_definition(timed);
                }
                Some(named.zone)
            }
        };
        Some(to_calendar_date_time(stamp, zone))
    }

    fn warn_unknown_zone(&mut self, timed: &TimeProperty<'_>) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.mark_warned(tzid) {
            // When the system knows it one day, the item is derived anew.
            let beginning: String = tzid.chars().take(MAX_UNPARSED_CHARS).collect();
            self.zone_names.push(format!("?{beginning}"));
            let what = format!(
                "the time zone {tzid:?} is not known, so its times are those of whoever asks"
            );
            self.warnings.push((timed.line, what));
        }
    }

    fn warn_definition_differs(&mut self, timed: &TimeProperty<'_>, named: &ResolvedZone) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.mark_warned(tzid) {
            let system = named.zone.name();
            let what =
                format!("the file defines {tzid:?} otherwise; the system's {system} is used");
            self.warnings.push((timed.line, what));
        }
    }

    fn warn_truncated_definition(&mut self, timed: &TimeProperty<'_>) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.mark_warned(tzid) {
            let what = format!("the definition of {tzid:?} has more changes than can be followed");
            self.warnings.push((timed.line, what));
        }
    }

    /// Is this name told for the first time? Of very many only some are.
    fn mark_warned(&mut self, tzid: &str) -> bool {
        let first = self.warned_tzids.len() < MAX_ZONE_WARNINGS
            && !self.warned_tzids.iter().any(|known| known == tzid);
        if first {
            self.warned_tzids.push(tzid.to_string());
        }
        first
    }

    /// The first value of a property that can be read.
    fn read_first_date_time(&mut self, name: &str) -> Option<CalendarDateTime> {
        let component = self.component;
        let timed = component.time_properties(name).find(|timed| !timed.text.is_empty())?;
        self.read_date_time(&timed)
    }

    fn read_schedule_spec(&mut self, kind: Kind) -> ScheduleSpec {
        let start = self.read_first_date_time("DTSTART");
        let due = if kind == Kind::Task { self.read_first_date_time("DUE") } else { None };
        let Some(start) = start.or_else(|| due.clone()) else {
            return self.read_spec_without_start(kind);
        };
        let end = match kind {
            Kind::Task => due,
            Kind::Event => self.read_first_date_time("DTEND"),
            _ => None,
        };
        let length = match end {
            Some(end) => self.duration_until(&start, &end, kind),
            None => self.read_duration(&start),
        };
        let mut description = SeriesSpec::without_recurrence(start, length);
        self.read_recurrence(&mut description);
        ScheduleSpec::Series(Box::new(description))
    }

    /// A task without a time of its own (the table of RFC 4791, 9.9). Nothing else is anywhere
    /// then.
    fn read_spec_without_start(&mut self, kind: Kind) -> ScheduleSpec {
        if kind != Kind::Task {
            // Where it is detached, its series says when it is; one that cannot be read was told.
            let said = ["RECURRENCE-ID", "DTSTART"];
            let says = |name: &&str| {
                self.component.time_properties(name).any(|timed| !timed.text.is_empty())
            };
            if kind == Kind::Event && !said.iter().any(says) {
                self.warnings.push((1, "it has no DTSTART, so no day has it".into()));
            }
            return ScheduleSpec::Absent;
        }
        match (self.read_first_date_time("COMPLETED"), self.read_first_date_time("CREATED")) {
            (None, None) => ScheduleSpec::Open(None),
            (None, Some(created)) => ScheduleSpec::Open(Some(comparable_instant(&created))),
            (Some(done), None) => ScheduleSpec::Series(Box::new(SeriesSpec::without_recurrence(
                done,
                EventLength::ZERO,
            ))),
            (Some(done), Some(created)) => {
                let (first, last) = if comparable_instant(&done) < comparable_instant(&created) {
                    (done, created)
                } else {
                    (created, done)
                };
                let seconds =
                    comparable_instant(&last).seconds() - comparable_instant(&first).seconds();
                let length = if first.is_date {
                    EventLength::from_days(1)
                } else {
                    EventLength::Exact(seconds)
                };
                ScheduleSpec::Series(Box::new(SeriesSpec::without_recurrence(first, length)))
            }
        }
    }

    /// How long it takes to its end, which wins over a duration.
    fn duration_until(
        &mut self,
        start: &CalendarDateTime,
        end: &CalendarDateTime,
        kind: Kind,
    ) -> EventLength {
        let name = if kind == Kind::Task { "DUE" } else { "DTEND" };
        if start.is_date != end.is_date {
            let (of_end, of_start) = if end.is_date { ("day", "time") } else { ("time", "day") };
            self.warn_property(
                name,
                format!("{name} is a {of_end}, but it begins at a {of_start}"),
            );
        }
        let length = match (start.is_date, end.is_date) {
            (true, _) => end.civil.day_number() - start.civil.day_number(),
            // A day is its midnight, by the clock of the start.
            (false, true) => {
                let midnight = CalendarDateTime::from_civil(
                    CivilTime::midnight(end.civil.day_number()),
                    start.zone_reference.clone(),
                );
                comparable_instant(&midnight).seconds() - comparable_instant(start).seconds()
            }
            // An end without a clock has that of the start.
            (false, false) if end.zone_reference == ZoneReference::Floating => {
                let end = CalendarDateTime::from_civil(end.civil, start.zone_reference.clone());
                comparable_instant(&end).seconds() - comparable_instant(start).seconds()
            }
            (false, false) => {
                comparable_instant(end).seconds() - comparable_instant(start).seconds()
            }
        };
        if length < 0 {
            self.warn_property(name, "it ends before it begins".into());
        }
        match start.is_date {
            // The end of a task is the day itself, that of an event the day after.
            true if kind == Kind::Task => EventLength::from_days(length.max(0) + 1),
            true => EventLength::from_days(length.max(1)),
            false => EventLength::Exact(length.max(0)),
        }
    }

    fn warn_property(&mut self, name: &str, what: String) {
        let line = self.component.time_properties(name).find(|timed| !timed.text.is_empty());
        self.warnings.push((line.map_or(1, |timed| timed.line), what));
    }

    /// How long it takes without an end: a day is one day, a moment takes no time.
    fn read_duration(&mut self, start: &CalendarDateTime) -> EventLength {
        let none = || if start.is_date { EventLength::from_days(1) } else { EventLength::ZERO };
        let component = self.component;
        let Some(timed) =
            component.time_properties("DURATION").find(|timed| !timed.text.is_empty())
        else {
            return none();
        };
        match IcalDuration::parse(&timed.text) {
            Ok(nominal) if nominal.days < 0 || nominal.seconds < 0 => {
                self.warnings
                    .push((timed.line, "DURATION is negative, so it does not count".into()));
                none()
            }
            Ok(nominal) if start.is_date && nominal.days == 0 => {
                EventLength::from_days(((nominal.seconds + DAY_SECONDS - 1) / DAY_SECONDS).max(1))
            }
            Ok(nominal) => EventLength::Nominal(nominal),
            Err(error) => {
                self.warnings.push((timed.line, error.to_string()));
                none()
            }
        }
    }

    fn read_recurrence(&mut self, description: &mut SeriesSpec) {
        let component = self.component;
        if component.recurrence_id().is_some() {
            return; // One occurrence does not recur.
        }
        description.rules = self.read_rules("RRULE");
        description.exrules = self.read_rules("EXRULE");
        for timed in component.time_properties("RDATE") {
            for text in timed.text.split(',').take(MAX_VALUES_PER_LIST) {
                let extra = self.read_rdate(&TimeProperty { text: text.into(), ..timed.clone() });
                description.rdates.extend(extra);
            }
        }
        for timed in component.time_properties("EXDATE") {
            for text in timed
                .text
                .split([',', ';'])
                .take(MAX_VALUES_PER_LIST)
                .filter(|text| !text.is_empty())
            {
                let start =
                    self.read_date_time(&TimeProperty { text: text.into(), ..timed.clone() });
                description.exdates.extend(start);
            }
        }
    }

    fn read_rules(&mut self, name: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        let component = self.component;
        let written = component.time_properties(name).filter(|timed| !timed.text.is_empty());
        for timed in written.take(MAX_RULES_PER_ITEM) {
            let old = component.version() == CalendarVersion::V1_0 && !timed.text.contains('=');
            match if old { Rule::parse_vcal10(&timed.text) } else { Rule::parse(&timed.text) } {
                Ok(rule) => {
                    if let Some(elsewhere) = rule.libical_difference().filter(|_| name == "RRULE") {
                        let what = format!("evolution-data-server had this elsewhere: {elsewhere}");
                        self.warnings.push((timed.line, what));
                    }
                    rules.push(rule);
                }
                Err(error) => {
                    self.warnings.push((timed.line, format!("{error}, so it is not followed")));
                }
            }
        }
        rules
    }

    /// An RDATE: a time, or a period with a length of its own.
    fn read_rdate(&mut self, timed: &TimeProperty<'_>) -> Option<Rdate> {
        if timed.text.trim().is_empty() {
            return None;
        }
        let Some((first, _)) = timed.text.split_once('/') else {
            return Some(Rdate { start: self.read_date_time(timed)?, length: None });
        };
        let at = self.read_date_time(&TimeProperty { text: first.into(), ..timed.clone() })?;
        let length = match Period::parse(&timed.text) {
            Ok(Period { end: PeriodEnd::DateTime(stamp), .. }) => {
                let zone = resolve_zone(timed, stamp, self.context, self.zone_resolver).flatten();
                let end = to_calendar_date_time(stamp, zone.map(|named| named.zone));
                Some(EventLength::Exact(
                    (comparable_instant(&end).seconds() - comparable_instant(&at).seconds()).max(0),
                ))
            }
            Ok(Period { end: PeriodEnd::Duration(nominal), .. }) => {
                Some(EventLength::Nominal(nominal))
            }
            Err(error) => {
                self.warnings.push((timed.line, error.to_string()));
                None
            }
        };
        Some(Rdate { start: at, length })
    }

    /// Which occurrence it stands for, as a time and as a name. The name is the time as it is
    /// written, without the zone: a zone is what law makes it, and goes by many names, and a series
    /// knows which one is meant.
    fn read_recurrence_id(&mut self) -> (Option<CalendarDateTime>, String, bool) {
        let component = self.component;
        let Some(timed) = component.recurrence_id() else { return (None, String::new(), false) };
        let following =
            timed.range.as_deref().is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        let Some(start) = self.read_date_time(&timed) else {
            let unread: String = timed.text.chars().take(MAX_UNPARSED_CHARS).collect();
            return (None, format!("?{unread}"), false);
        };
        let name =
            IcalDateTime::parse(&timed.text).map(|stamp| stamp.to_string()).unwrap_or_default();
        (Some(start), name, following)
    }

    /// The alarms that can ring: not those of what was cancelled or is done, nor of an action that
    /// is none.
    fn read_alarms(&mut self) -> Vec<Alarm> {
        let component = self.component;
        let over = component.properties_named("STATUS").any(|status| {
            let status = status.value().trim_ascii();
            status.eq_ignore_ascii_case(b"CANCELLED") || status.eq_ignore_ascii_case(b"COMPLETED")
        });
        if over || component.properties_named("COMPLETED").next().is_some() {
            return Vec::new();
        }
        let dismissed = self.read_instant("X-MOZ-LASTACK");
        let parts = component.subcomponents().iter();
        let alarms = parts.filter(|part| part.depth() == 1 && part.name() == "VALARM");
        let mut found = Vec::new();
        for part in alarms.take(MAX_ALARMS_PER_ITEM) {
            found.extend(self.read_alarm(part, dismissed));
        }
        // vCalendar 1.0 has them in one line: the moment, then what it does.
        for name in ["DALARM", "AALARM"] {
            for timed in component.time_properties(name).take(MAX_ALARMS_PER_ITEM) {
                let first = timed.text.split(';').next().unwrap_or_default();
                if let Some(start) =
                    self.read_date_time(&TimeProperty { text: first.into(), ..timed.clone() })
                {
                    let trigger = Trigger::Absolute(comparable_instant(&start));
                    let (repeat, every, line) = (0, 0, timed.line);
                    found.push(Alarm {
                        trigger,
                        repeat,
                        interval_seconds: every,
                        acknowledged: dismissed,
                        line,
                    });
                }
            }
        }
        found
    }

    fn is_due_on_date(&self) -> bool {
        let due = self.component.time_properties("DUE").find(|timed| !timed.text.is_empty());
        let due = due.and_then(|due| resolve_date_time(&due, self.context, self.zone_resolver));
        Kind::from_component(self.component.kind()) == Kind::Task
            && due.is_some_and(|due| due.is_date)
    }

    fn read_instant(&self, name: &str) -> Option<Instant> {
        let timed = self.component.time_properties(name).next()?;
        resolve_date_time(&timed, self.context, self.zone_resolver).as_ref().map(comparable_instant)
    }

    fn read_alarm(&mut self, part: &Subcomponent<'_>, dismissed: Option<Instant>) -> Option<Alarm> {
        let rings = part.properties_named("ACTION").next().is_none_or(|action| {
            let action = action.value().trim_ascii();
            ["DISPLAY", "AUDIO", "EMAIL"]
                .iter()
                .any(|known| action.eq_ignore_ascii_case(known.as_bytes()))
        });
        let timed = part
            .time_properties("TRIGGER")
            .find(|timed| !timed.text.is_empty())
            .filter(|_| rings)?;
        let trigger = if timed.text.contains(['P', 'p']) {
            match IcalDuration::parse(&timed.text) {
                Ok(offset) => match timed.related.as_deref() {
                    // A day that a task is due begins when the day before has ended; as a time, the
                    // task takes that day, too.
                    Some(related)
                        if related.eq_ignore_ascii_case("END") && self.is_due_on_date() =>
                    {
                        Trigger::End(IcalDuration { days: offset.days.saturating_sub(1), ..offset })
                    }
                    Some(related) if related.eq_ignore_ascii_case("END") => Trigger::End(offset),
                    _ => Trigger::Start(offset),
                },
                Err(error) => {
                    self.warnings.push((timed.line, error.to_string()));
                    return None;
                }
            }
        } else {
            Trigger::Absolute(comparable_instant(&self.read_date_time(&timed)?))
        };
        // Both, or none.
        let number =
            |name: &str| part.time_properties(name).next().map(|timed| timed.text.into_owned());
        let repeat = number("REPEAT").and_then(|repeat| repeat.parse().ok());
        let every = number("DURATION").and_then(|every| IcalDuration::parse(&every).ok());
        let (repeat, every) = match (repeat, every) {
            (Some(repeat), Some(every)) => {
                (repeat, every.days.saturating_mul(DAY_SECONDS).saturating_add(every.seconds))
            }
            _ => (0, 0),
        };
        let (repeat, every) =
            if every > 0 { (repeat.min(MAX_ALARM_REPEATS), every) } else { (0, 0) };
        let acknowledged = part.time_properties("ACKNOWLEDGED").next();
        let acknowledged = acknowledged
            .and_then(|timed| resolve_date_time(&timed, self.context, self.zone_resolver));
        let acknowledged = acknowledged.as_ref().map(comparable_instant).max(dismissed);
        Some(Alarm {
            trigger,
            repeat,
            interval_seconds: every,
            acknowledged,
            line: part.line_number(),
        })
    }
}

/// Which zones the names in a component mean.
pub(super) fn zone_uses(
    component: &Component<'_>,
    frame: &CalendarContext,
    clocks: &ZoneResolver,
) -> Vec<ZoneUse> {
    let start = component
        .time_properties("DTSTART")
        .next()
        .or_else(|| component.time_properties("DUE").next());
    let start = start.and_then(|start| IcalDateTime::parse(&start.text).ok());
    let civil = start.map_or(CivilTime::from_seconds_clamped(0), |stamp| stamp.civil);
    let zone_use = |tzid: &str| {
        let zone = frame.zone_definition(tzid).map(|zone| zone.as_ref());
        let named = clocks.resolve(tzid, zone, civil);
        let how = named.as_ref().map_or(ZoneMatch::Floating, |named| named.zone_match);
        let differs = named.as_ref().is_some_and(|named| named.is_defined_differently_at(civil));
        let system =
            named.filter(|named| named.zone_match != ZoneMatch::Definition).map(|named| named.name);
        ZoneUse {
            tzid: tzid.to_string(),
            zone_match: how,
            system_zone: system,
            definition_differs: differs,
        }
    };
    component.tzids().iter().map(|tzid| zone_use(tzid)).collect()
}
