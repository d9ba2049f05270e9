//! What a component says of time, by itself: its start, its length, how it recurs, what it is an occurrence of, its alarms.
//!
//! Where RFC 5545 leaves room, or files do not keep to it, it is read as written in the comments here. What is not
//! understood is left out and noted.

use super::Notes;
use super::clocks::{Clocks, Named};
use crate::Kind;
use crate::frame::Frame;
use crate::times::{ALARMS, Alarm, REPEATS, Shape, Times, Trigger};
use larder_format::component::{Component, Part, Timed, Version};
use larder_time::civil::{Civil, DAY, Instant};
use larder_time::rule::{Budget, Rule};
use larder_time::series::{Clock, Description, Extra, Length, Override, Series, Start};
use larder_time::value::{Nominal, Period, PeriodEnd, Stamp};
use larder_time::zone::How;

/// Of more values than this in one list (EXDATE, RDATE) the rest is not looked at.
const VALUES: usize = 1 << 17;
/// Something is said of so many names of zones in one item.
const TOLD: usize = 64;
/// More rules than this in one item are not followed: nobody writes them, and each may take long to be understood.
const RULES: usize = 16;
/// A RECURRENCE-ID that is no time is known by so many of its characters.
const UNREAD: usize = 100;

/// What a component says of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timing {
    /// What it is in time, by itself; `None`: nothing.
    times: Option<Times>,
    /// What it is made of, where it can be part of a series.
    description: Option<Box<Description>>,
    /// Which occurrence it stands for, and by what name.
    original: Option<Start>,
    recurrence: String,
    /// It stands for those that follow, too (RANGE=THISANDFUTURE).
    pub(crate) following: bool,
}

/// Which zone a name in an item means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneUse {
    /// The name in the item.
    pub tzid: String,
    /// How it was understood.
    pub how: How,
    /// The zone of the system that is used; `None`: the definition in the file is, or there is none.
    pub system: Option<String>,
    /// The file has a definition, which says something else at the item's start.
    pub differs: bool,
}

/// What reading times takes, and what there was to say.
struct Reading<'a> {
    component: &'a Component<'a>,
    frame: &'a Frame,
    clocks: &'a Clocks,
    notes: &'a mut Notes,
    /// The names of the zones so far; that of the start is the first.
    names: Vec<String>,
    /// The names of zones of which something was said.
    told: Vec<String>,
}

/// Finds the zone that a value is in.
fn zone_of(
    timed: &Timed<'_>,
    stamp: Stamp,
    frame: &Frame,
    clocks: &Clocks,
) -> Option<Option<Named>> {
    let tzid = timed.tzid.as_deref().filter(|tzid| !tzid.is_empty())?;
    if stamp.utc || stamp.date {
        return None;
    }
    let zone = frame.zone(tzid).map(|zone| zone.as_ref());
    Some(clocks.resolve(tzid, zone, stamp.civil))
}

/// What a property's value is: its clock, if it has one.
pub(super) fn start_of(timed: &Timed<'_>, frame: &Frame, clocks: &Clocks) -> Option<Start> {
    let stamp = Stamp::parse(&timed.text).ok()?;
    let zone = zone_of(timed, stamp, frame, clocks).flatten();
    Some(in_clock(stamp, zone.map(|named| named.zone)))
}

fn in_clock(stamp: Stamp, zone: Option<larder_time::zone::Zone>) -> Start {
    match (stamp, zone) {
        (Stamp { date: true, civil, .. }, _) => Start::date(civil),
        (Stamp { utc: true, civil, .. }, _) => Start::at(civil, Clock::Utc),
        (Stamp { civil, .. }, Some(zone)) if zone.name() == "UTC" => Start::at(civil, Clock::Utc),
        (Stamp { civil, .. }, Some(zone)) => Start::at(civil, Clock::Zone(zone)),
        (Stamp { civil, .. }, None) => Start::at(civil, Clock::Floating),
    }
}

/// The moment of a start; of what floats as if it were UTC, to be compared with others that float.
fn moment(start: &Start) -> Instant {
    match &start.clock {
        Clock::Zone(zone) if !start.date => zone.instant(start.civil),
        _ => Instant::clamped(start.civil.seconds()),
    }
}

impl Timing {
    /// Reads what a component of this kind says of time. `None`: nothing that matters.
    pub(crate) fn of(
        component: &Component<'_>,
        kind: Kind,
        frame: &Frame,
        clocks: &Clocks,
        notes: &mut Notes,
    ) -> Option<Timing> {
        if kind == Kind::Other {
            return None;
        }
        let (names, told) = (Vec::new(), Vec::new());
        let mut reading = Reading { component, frame, clocks, notes, names, told };
        let described = reading.description(kind);
        let (original, recurrence, following) = reading.recurrence_id();
        let alarms = reading.alarms();
        let names = reading.names;
        let mut timing = Timing { times: None, description: None, original, recurrence, following };
        let shape = match described {
            Described::Nothing => return Some(timing),
            Described::Open(since) => Shape::Open(since),
            Described::Series(description) => {
                let (series, troubles) = Series::new(&description, Budget::default());
                for trouble in troubles {
                    let line = component.timed("RRULE").next().map_or(1, |rule| rule.line);
                    notes.push((line, trouble.to_string()));
                }
                timing.description = Some(description);
                Shape::Series(Box::new(series))
            }
        };
        timing.times = Some(Times { shape, tag: None, alarms, clocks: names });
        Some(timing)
    }

    /// Which occurrence it stands for.
    pub(crate) fn recurrence(&self) -> Option<String> {
        (!self.recurrence.is_empty()).then(|| self.recurrence.clone())
    }

    /// What it says of time, where that is more than since when.
    pub(crate) fn into_description(self) -> Option<Description> {
        self.description.map(|description| *description)
    }

    /// What it is in time, if nothing else has its UID.
    pub(crate) fn alone(&self) -> Option<Times> {
        self.times.clone()
    }

    /// The same, where it is not needed again.
    pub(crate) fn into_alone(self) -> Option<Times> {
        self.times
    }

    /// The change that it is to its series, known by its row.
    pub(crate) fn as_override(&self, item: i64, may_follow: bool) -> Option<Override> {
        let description = self.description.as_deref();
        Some(Override {
            original: self.original.clone()?,
            following: self.following && may_follow,
            start: description.map(|description| description.start.clone()),
            length: description.map(|description| description.length),
            tag: item.unsigned_abs(),
        })
    }

    /// The series that it is the master of, with these changes.
    pub(crate) fn with(&self, overrides: &[Override]) -> Option<Series> {
        match &self.times.as_ref()?.shape {
            Shape::Series(series) => Some(Series::clone(series).with_overrides(overrides)),
            Shape::Open(_) => None,
        }
    }

    /// What it is in time as a part of this series: of all that is not changed, or of what this change made of the rest. The
    /// names of zones are `of_series`: its clock is the master's.
    pub(crate) fn of_series(
        &self,
        series: Series,
        tag: Option<i64>,
        of_series: &[String],
    ) -> Option<Times> {
        let times = self.times.as_ref()?;
        let mut clocks = of_series.to_vec();
        for name in &times.clocks {
            if !clocks.contains(name) {
                clocks.push(name.clone());
            }
        }
        let shape = Shape::Series(Box::new(series));
        Some(Times { shape, tag, alarms: times.alarms.clone(), clocks })
    }

    /// The names of the zones in it, that of its own clock first.
    pub(crate) fn clocks(&self) -> &[String] {
        self.times.as_ref().map_or(&[], |times| &times.clocks)
    }
}

/// How a component lies in time.
enum Described {
    Nothing,
    Open(Option<Instant>),
    Series(Box<Description>),
}

impl Reading<'_> {
    /// Reads a value; what is wrong with it is noted.
    fn read(&mut self, timed: &Timed<'_>) -> Option<Start> {
        let stamp = match Stamp::parse(&timed.text) {
            Ok(stamp) => stamp,
            Err(error) => {
                self.notes.push((timed.line, error.to_string()));
                return None;
            }
        };
        let zone = match zone_of(timed, stamp, self.frame, self.clocks) {
            None => None,
            Some(None) => {
                self.is_unknown(timed);
                None
            }
            Some(Some(named)) => {
                if named.name != "UTC" && !self.names.contains(&named.name) {
                    self.names.push(named.name.clone());
                }
                if named.differs(stamp.civil) {
                    self.differs(timed, &named);
                }
                if !named.is_whole() {
                    self.is_cut(timed);
                }
                Some(named.zone)
            }
        };
        Some(in_clock(stamp, zone))
    }

    fn is_unknown(&mut self, timed: &Timed<'_>) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.is_first(tzid) {
            // When the system knows it one day, the item is derived anew.
            let beginning: String = tzid.chars().take(UNREAD).collect();
            self.names.push(format!("?{beginning}"));
            let what = format!(
                "the time zone {tzid:?} is not known, so its times are those of whoever asks"
            );
            self.notes.push((timed.line, what));
        }
    }

    fn differs(&mut self, timed: &Timed<'_>, named: &Named) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.is_first(tzid) {
            let system = named.zone.name();
            let what =
                format!("the file defines {tzid:?} otherwise; the system's {system} is used");
            self.notes.push((timed.line, what));
        }
    }

    fn is_cut(&mut self, timed: &Timed<'_>) {
        let tzid = timed.tzid.as_deref().unwrap_or_default();
        if self.is_first(tzid) {
            let what = format!("the definition of {tzid:?} has more changes than can be followed");
            self.notes.push((timed.line, what));
        }
    }

    /// Is this name told for the first time? Of very many only some are.
    fn is_first(&mut self, tzid: &str) -> bool {
        let first = self.told.len() < TOLD && !self.told.iter().any(|known| known == tzid);
        if first {
            self.told.push(tzid.to_string());
        }
        first
    }

    /// The first value of a property that can be read.
    fn first(&mut self, name: &str) -> Option<Start> {
        let component = self.component;
        let timed = component.timed(name).find(|timed| !timed.text.is_empty())?;
        self.read(&timed)
    }

    fn description(&mut self, kind: Kind) -> Described {
        let start = self.first("DTSTART");
        let due = if kind == Kind::Task { self.first("DUE") } else { None };
        let Some(start) = start.or_else(|| due.clone()) else { return self.without_start(kind) };
        let end = match kind {
            Kind::Task => due,
            Kind::Event => self.first("DTEND"),
            _ => None,
        };
        let length = match end {
            Some(end) => self.length_to(&start, &end, kind),
            None => self.duration(&start),
        };
        let mut description = Description::once(start, length);
        self.recurs(&mut description);
        Described::Series(Box::new(description))
    }

    /// A task without a time of its own (the table of RFC 4791, 9.9). Nothing else is anywhere then.
    fn without_start(&mut self, kind: Kind) -> Described {
        if kind != Kind::Task {
            // Where it is detached, its series says when it is; one that cannot be read was told.
            let said = ["RECURRENCE-ID", "DTSTART"];
            let says = |name: &&str| self.component.timed(name).any(|timed| !timed.text.is_empty());
            if kind == Kind::Event && !said.iter().any(says) {
                self.notes.push((1, "it has no DTSTART, so no day has it".into()));
            }
            return Described::Nothing;
        }
        match (self.first("COMPLETED"), self.first("CREATED")) {
            (None, None) => Described::Open(None),
            (None, Some(created)) => Described::Open(Some(moment(&created))),
            (Some(done), None) => {
                Described::Series(Box::new(Description::once(done, Length::ZERO)))
            }
            (Some(done), Some(created)) => {
                let (first, last) = if moment(&done) < moment(&created) {
                    (done, created)
                } else {
                    (created, done)
                };
                let seconds = moment(&last).seconds() - moment(&first).seconds();
                let length = if first.date { Length::days(1) } else { Length::Exact(seconds) };
                Described::Series(Box::new(Description::once(first, length)))
            }
        }
    }

    /// How long it takes to its end, which wins over a duration.
    fn length_to(&mut self, start: &Start, end: &Start, kind: Kind) -> Length {
        let name = if kind == Kind::Task { "DUE" } else { "DTEND" };
        if start.date != end.date {
            let (of_end, of_start) = if end.date { ("day", "time") } else { ("time", "day") };
            self.note_of(name, format!("{name} is a {of_end}, but it begins at a {of_start}"));
        }
        let length = match (start.date, end.date) {
            (true, _) => end.civil.day() - start.civil.day(),
            // A day is its midnight, by the clock of the start.
            (false, true) => {
                let midnight = Start::at(Civil::midnight(end.civil.day()), start.clock.clone());
                moment(&midnight).seconds() - moment(start).seconds()
            }
            // An end without a clock has that of the start.
            (false, false) if end.clock == Clock::Floating => {
                let end = Start::at(end.civil, start.clock.clone());
                moment(&end).seconds() - moment(start).seconds()
            }
            (false, false) => moment(end).seconds() - moment(start).seconds(),
        };
        if length < 0 {
            self.note_of(name, "it ends before it begins".into());
        }
        match start.date {
            // The end of a task is the day itself, that of an event the day after.
            true if kind == Kind::Task => Length::days(length.max(0) + 1),
            true => Length::days(length.max(1)),
            false => Length::Exact(length.max(0)),
        }
    }

    fn note_of(&mut self, name: &str, what: String) {
        let line = self.component.timed(name).find(|timed| !timed.text.is_empty());
        self.notes.push((line.map_or(1, |timed| timed.line), what));
    }

    /// How long it takes without an end: a day is one day, a moment takes no time.
    fn duration(&mut self, start: &Start) -> Length {
        let none = || if start.date { Length::days(1) } else { Length::ZERO };
        let component = self.component;
        let Some(timed) = component.timed("DURATION").find(|timed| !timed.text.is_empty()) else {
            return none();
        };
        match Nominal::parse(&timed.text) {
            Ok(nominal) if nominal.days < 0 || nominal.seconds < 0 => {
                self.notes.push((timed.line, "DURATION is negative, so it does not count".into()));
                none()
            }
            Ok(nominal) if start.date && nominal.days == 0 => {
                Length::days(((nominal.seconds + DAY - 1) / DAY).max(1))
            }
            Ok(nominal) => Length::Nominal(nominal),
            Err(error) => {
                self.notes.push((timed.line, error.to_string()));
                none()
            }
        }
    }

    fn recurs(&mut self, description: &mut Description) {
        let component = self.component;
        if component.recurrence_id().is_some() {
            return; // One occurrence does not recur.
        }
        description.rules = self.rules("RRULE");
        description.exrules = self.rules("EXRULE");
        for timed in component.timed("RDATE") {
            for text in timed.text.split(',').take(VALUES) {
                let extra = self.extra(&Timed { text: text.into(), ..timed.clone() });
                description.dates.extend(extra);
            }
        }
        for timed in component.timed("EXDATE") {
            for text in timed.text.split([',', ';']).take(VALUES).filter(|text| !text.is_empty()) {
                let start = self.read(&Timed { text: text.into(), ..timed.clone() });
                description.exclusions.extend(start);
            }
        }
    }

    fn rules(&mut self, name: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        let component = self.component;
        let written = component.timed(name).filter(|timed| !timed.text.is_empty());
        for timed in written.take(RULES) {
            let old = component.version() == Version::V1_0 && !timed.text.contains('=');
            match if old { Rule::parse_vcal10(&timed.text) } else { Rule::parse(&timed.text) } {
                Ok(rule) => {
                    if let Some(elsewhere) = rule.elsewhere().filter(|_| name == "RRULE") {
                        let what = format!("evolution-data-server had this elsewhere: {elsewhere}");
                        self.notes.push((timed.line, what));
                    }
                    rules.push(rule);
                }
                Err(error) => {
                    self.notes.push((timed.line, format!("{error}, so it is not followed")));
                }
            }
        }
        rules
    }

    /// An RDATE: a time, or a period with a length of its own.
    fn extra(&mut self, timed: &Timed<'_>) -> Option<Extra> {
        if timed.text.trim().is_empty() {
            return None;
        }
        let Some((first, _)) = timed.text.split_once('/') else {
            return Some(Extra { at: self.read(timed)?, length: None });
        };
        let at = self.read(&Timed { text: first.into(), ..timed.clone() })?;
        let length = match Period::parse(&timed.text) {
            Ok(Period { end: PeriodEnd::At(stamp), .. }) => {
                let zone = zone_of(timed, stamp, self.frame, self.clocks).flatten();
                let end = in_clock(stamp, zone.map(|named| named.zone));
                Some(Length::Exact((moment(&end).seconds() - moment(&at).seconds()).max(0)))
            }
            Ok(Period { end: PeriodEnd::After(nominal), .. }) => Some(Length::Nominal(nominal)),
            Err(error) => {
                self.notes.push((timed.line, error.to_string()));
                None
            }
        };
        Some(Extra { at, length })
    }

    /// Which occurrence it stands for, as a time and as a name. The name is the time as it is written, without the zone: a
    /// zone is what law makes it, and goes by many names, and a series knows which one is meant.
    fn recurrence_id(&mut self) -> (Option<Start>, String, bool) {
        let component = self.component;
        let Some(timed) = component.recurrence_id() else { return (None, String::new(), false) };
        let following =
            timed.range.as_deref().is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        let Some(start) = self.read(&timed) else {
            let unread: String = timed.text.chars().take(UNREAD).collect();
            return (None, format!("?{unread}"), false);
        };
        let name = Stamp::parse(&timed.text).map(|stamp| stamp.to_string()).unwrap_or_default();
        (Some(start), name, following)
    }

    /// The alarms that can ring: not those of what was cancelled or is done, nor of an action that is none.
    fn alarms(&mut self) -> Vec<Alarm> {
        let component = self.component;
        let over = component.named("STATUS").any(|status| {
            let status = status.value().trim_ascii();
            status.eq_ignore_ascii_case(b"CANCELLED") || status.eq_ignore_ascii_case(b"COMPLETED")
        });
        if over || component.named("COMPLETED").next().is_some() {
            return Vec::new();
        }
        let dismissed = self.instant_of("X-MOZ-LASTACK");
        let parts = component.parts().iter();
        let alarms = parts.filter(|part| part.depth() == 1 && part.name() == "VALARM");
        let mut found = Vec::new();
        for part in alarms.take(ALARMS) {
            found.extend(self.alarm(part, dismissed));
        }
        // vCalendar 1.0 has them in one line: the moment, then what it does.
        for name in ["DALARM", "AALARM"] {
            for timed in component.timed(name).take(ALARMS) {
                let first = timed.text.split(';').next().unwrap_or_default();
                if let Some(start) = self.read(&Timed { text: first.into(), ..timed.clone() }) {
                    let trigger = Trigger::At(moment(&start));
                    let (repeat, every, line) = (0, 0, timed.line);
                    found.push(Alarm { trigger, repeat, every, acknowledged: dismissed, line });
                }
            }
        }
        found
    }

    fn is_due_on_a_day(&self) -> bool {
        let due = self.component.timed("DUE").find(|timed| !timed.text.is_empty());
        let due = due.and_then(|due| start_of(&due, self.frame, self.clocks));
        Kind::of_component(self.component.kind()) == Kind::Task && due.is_some_and(|due| due.date)
    }

    fn instant_of(&self, name: &str) -> Option<Instant> {
        let timed = self.component.timed(name).next()?;
        start_of(&timed, self.frame, self.clocks).as_ref().map(moment)
    }

    fn alarm(&mut self, part: &Part<'_>, dismissed: Option<Instant>) -> Option<Alarm> {
        let rings = part.named("ACTION").next().is_none_or(|action| {
            let action = action.value().trim_ascii();
            ["DISPLAY", "AUDIO", "EMAIL"]
                .iter()
                .any(|known| action.eq_ignore_ascii_case(known.as_bytes()))
        });
        let timed = part.timed("TRIGGER").find(|timed| !timed.text.is_empty()).filter(|_| rings)?;
        let trigger = if timed.text.contains(['P', 'p']) {
            match Nominal::parse(&timed.text) {
                Ok(offset) => match timed.related.as_deref() {
                    // A day that a task is due begins when the day before has ended; as a time, the task takes that day, too.
                    Some(related)
                        if related.eq_ignore_ascii_case("END") && self.is_due_on_a_day() =>
                    {
                        Trigger::End(Nominal { days: offset.days.saturating_sub(1), ..offset })
                    }
                    Some(related) if related.eq_ignore_ascii_case("END") => Trigger::End(offset),
                    _ => Trigger::Start(offset),
                },
                Err(error) => {
                    self.notes.push((timed.line, error.to_string()));
                    return None;
                }
            }
        } else {
            Trigger::At(moment(&self.read(&timed)?))
        };
        // Both, or none.
        let number = |name: &str| part.timed(name).next().map(|timed| timed.text.into_owned());
        let repeat = number("REPEAT").and_then(|repeat| repeat.parse().ok());
        let every = number("DURATION").and_then(|every| Nominal::parse(&every).ok());
        let (repeat, every) = match (repeat, every) {
            (Some(repeat), Some(every)) => {
                (repeat, every.days.saturating_mul(DAY).saturating_add(every.seconds))
            }
            _ => (0, 0),
        };
        let (repeat, every) = if every > 0 { (repeat.min(REPEATS), every) } else { (0, 0) };
        let acknowledged = part.timed("ACKNOWLEDGED").next();
        let acknowledged = acknowledged.and_then(|timed| start_of(&timed, self.frame, self.clocks));
        let acknowledged = acknowledged.as_ref().map(moment).max(dismissed);
        Some(Alarm { trigger, repeat, every, acknowledged, line: part.number() })
    }
}

/// Which zones the names in a component mean.
pub(super) fn zone_uses(component: &Component<'_>, frame: &Frame, clocks: &Clocks) -> Vec<ZoneUse> {
    let start = component.timed("DTSTART").next().or_else(|| component.timed("DUE").next());
    let start = start.and_then(|start| Stamp::parse(&start.text).ok());
    let civil = start.map_or(Civil::clamped(0), |stamp| stamp.civil);
    let zone_use = |tzid: &str| {
        let zone = frame.zone(tzid).map(|zone| zone.as_ref());
        let named = clocks.resolve(tzid, zone, civil);
        let how = named.as_ref().map_or(How::Floating, |named| named.how);
        let differs = named.as_ref().is_some_and(|named| named.differs(civil));
        let system = named.filter(|named| named.how != How::Own).map(|named| named.name);
        ZoneUse { tzid: tzid.to_string(), how, system, differs }
    };
    component.tzids().iter().map(|tzid| zone_use(tzid)).collect()
}
