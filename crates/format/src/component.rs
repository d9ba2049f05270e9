//! A component of a calendar: an event, a task, a memo, a time zone or another, of iCalendar (RFC 5545) or
//! vCalendar 1.0 (versit).
//!
//! As with a [`Contact`](crate::contact::Contact), reading never fails: what a person should know is a
//! [`Problem`], and what makes it no item is its [refusal](Component::refusal). Properties of the component
//! itself are apart from those of the components inside it (alarms). Times, durations and rules are given as
//! the text they are written as, with the parameters that say what they mean ([`Timed`]): this module
//! computes nothing.
//!
//! ```
//! use larder_format::component::{Component, Kind};
//!
//! let event = Component::parse(b"BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Prague:20260305T123000\nEND:VEVENT\n");
//! assert_eq!((event.kind(), event.uid().as_deref()), (&Kind::Event, Some("1")));
//! let start = event.timed("DTSTART").next();
//! assert_eq!(start.map(|start| start.text.into_owned()).as_deref(), Some("20260305T123000"));
//! ```

mod reader;

pub use crate::identity::{derived_uid, same_item as same_component, with_uid};
pub use crate::problem::{Defect, Problem};
pub use crate::properties::MAX_PROPERTIES;

use crate::field::{Field, Source};
use crate::properties::Properties;
use crate::property::Property;
use crate::value;
use crate::wide::{self, Order};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// A component, taken apart.
#[derive(Debug, Clone)]
pub struct Component<'a> {
    kind: Kind,
    version: Version,
    properties: Properties<'a>,
    parts: Vec<Part<'a>>,
    problems: Vec<Problem>,
    refusal: Option<Problem>,
}

/// A component inside another, such as an alarm.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    name: String,
    number: u32,
    last: u32,
    depth: usize,
    properties: Properties<'a>,
}

/// What a component is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// VEVENT.
    Event,
    /// VTODO.
    Task,
    /// VJOURNAL.
    Memo,
    /// VFREEBUSY.
    FreeBusy,
    /// VTIMEZONE.
    TimeZone,
    /// Another one, by its name in upper case.
    Other(String),
}

impl Kind {
    /// The kind of this name, which is in any case.
    #[must_use]
    pub fn of(name: &str) -> Kind {
        let known = [Kind::Event, Kind::Task, Kind::Memo, Kind::FreeBusy, Kind::TimeZone];
        known
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
            .unwrap_or_else(|| Kind::Other(name.to_ascii_uppercase()))
    }

    /// The name of such components.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Kind::Event => "VEVENT",
            Kind::Task => "VTODO",
            Kind::Memo => "VJOURNAL",
            Kind::FreeBusy => "VFREEBUSY",
            Kind::TimeZone => "VTIMEZONE",
            Kind::Other(name) => name,
        }
    }
}

/// The version of the format, which only the calendar around a component says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// vCalendar 1.0 (versit).
    V1_0,
    /// iCalendar 2.0 (RFC 5545), and whatever is no other.
    #[default]
    V2_0,
}

impl Version {
    /// As the VERSION property has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::V1_0 => "1.0",
            Version::V2_0 => "2.0",
        }
    }

    /// The version of a calendar, by its own lines, with or without its BEGIN.
    #[must_use]
    pub fn of_calendar(lines: &[u8]) -> Version {
        let is_old = |line| {
            let property = Property::parse(line);
            property.is("VERSION") && property.value().trim_ascii().starts_with(b"1")
        };
        match crate::line::lines(&wide::narrowed(lines)).any(is_old) {
            true => Version::V1_0,
            false => Version::V2_0,
        }
    }
}

/// A property whose value is a time, a duration, a rule, or a list of those: as text, with the parameters
/// that say how it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed<'c> {
    /// The whole value, without white space around it.
    pub text: Cow<'c, str>,
    /// TZID: the name of a time zone. A value in UTC may have one, too, without meaning.
    pub tzid: Option<Cow<'c, str>>,
    /// VALUE: the type, such as DATE or PERIOD.
    pub value: Option<Cow<'c, str>>,
    /// RELATED of a TRIGGER: START or END.
    pub related: Option<Cow<'c, str>>,
    /// RANGE of a RECURRENCE-ID: THISANDFUTURE.
    pub range: Option<Cow<'c, str>>,
    /// The number of its line within the item, from 1.
    pub line: u32,
}

impl<'c> Timed<'c> {
    /// Reads a property as one.
    #[must_use]
    pub fn of(property: &'c Property<'_>) -> Timed<'c> {
        let text = match property.text() {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_string()),
        };
        let [tzid, value, related, range] =
            property.single_params(["TZID", "VALUE", "RELATED", "RANGE"]);
        Timed { text, tzid, value, related, range, line: property.number() }
    }
}

impl<'a> Component<'a> {
    /// Takes a component of iCalendar apart: the bytes of one item, as [`Splitter`](crate::split::Splitter)
    /// gives them. UTF-16 is recognised and decoded first; the numbers of lines are the same.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Component<'a> {
        Component::parse_as(bytes, Version::V2_0)
    }

    /// Takes a component of a calendar of this version apart.
    #[must_use]
    pub fn parse_as(bytes: &'a [u8], version: Version) -> Component<'a> {
        match Order::of(bytes) {
            Some(order) => {
                reader::read(wide::decode(bytes, order).as_bytes(), version).into_owned()
            }
            None => reader::read(bytes.strip_prefix(wide::BOM).unwrap_or(bytes), version),
        }
    }

    /// Takes a text apart that has neither UTF-16 nor a mark in it any more.
    pub(crate) fn read(text: &'a [u8]) -> Component<'a> {
        reader::read(text, Version::V2_0)
    }

    fn into_owned(self) -> Component<'static> {
        let owned = |part: Part<'a>| Part {
            name: part.name,
            number: part.number,
            last: part.last,
            depth: part.depth,
            properties: part.properties.into_owned(),
        };
        Component {
            kind: self.kind,
            version: self.version,
            properties: self.properties.into_owned(),
            parts: self.parts.into_iter().map(owned).collect(),
            problems: self.problems,
            refusal: self.refusal,
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The version that it was read as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its own properties in order: without BEGIN and END, without unknown lines, and without those of
    /// components inside.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.properties.all()
    }

    /// Its own properties of this name, which is in any case.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Property<'a>> {
        self.properties.of_name(name)
    }

    /// The components inside, in order; what is inside one of them follows it, with a greater depth.
    #[must_use]
    pub fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }

    /// What is wrong with it, but does not keep it from being an item.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What makes these bytes no component, if anything does.
    #[must_use]
    pub fn refusal(&self) -> Option<&Problem> {
        self.refusal.as_ref()
    }

    /// The first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.properties.uids().next()
    }

    /// The values that it has for a field, in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        let flag = match field.source {
            Source::HasAlarm => self.has_alarm(),
            Source::Recurs => self.recurs(),
            Source::IsDone => self.is_done(),
            Source::IsAllDay => self.is_all_day(),
            _ => return value::values(&self.properties, self.version.name(), field),
        };
        if flag { vec!["1".to_string()] } else { Vec::new() }
    }

    fn has_alarm(&self) -> bool {
        self.parts.iter().any(|part| part.depth == 1 && part.name == "VALARM")
            || self.properties.has(&["DALARM", "AALARM", "PALARM", "MALARM"])
    }

    fn recurs(&self) -> bool {
        self.properties.has(&["RRULE", "RDATE", "RECURRENCE-ID"])
    }

    fn is_done(&self) -> bool {
        let completed =
            |status: &Property<'_>| status.value().trim_ascii().eq_ignore_ascii_case(b"COMPLETED");
        self.properties.has(&["COMPLETED"]) || self.named("STATUS").any(completed)
    }

    fn is_all_day(&self) -> bool {
        self.timed("DTSTART")
            .next()
            .is_some_and(|start| !start.text.is_empty() && !start.text.contains(['T', 't', ' ']))
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
    }

    /// Which occurrence of its series it is, where it is one alone.
    #[must_use]
    pub fn recurrence_id(&self) -> Option<Timed<'_>> {
        self.timed("RECURRENCE-ID").find(|id| !id.text.is_empty())
    }

    /// Its own properties of this name, read as times: DTSTART, DTEND, DUE, DURATION, RRULE, EXDATE and the
    /// like.
    pub fn timed(&self, name: &str) -> impl Iterator<Item = Timed<'_>> {
        self.named(name).map(Timed::of)
    }

    /// The time zones that it names, and that the components inside do, each once.
    #[must_use]
    pub fn tzids(&self) -> Vec<Cow<'_, str>> {
        let (mut tzids, mut seen) = (Vec::new(), HashSet::new());
        let parts = self.parts.iter().flat_map(Part::properties);
        for property in self.properties().iter().chain(parts).filter(|one| one.has_params()) {
            if let Some(tzid) = property.single_param("TZID")
                && !tzid.is_empty()
                && seen.insert(tzid.clone())
            {
                tzids.push(tzid);
            }
        }
        tzids
    }
}

impl<'a> Part<'a> {
    /// Its name in upper case: `VALARM`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of its BEGIN line within the item, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The numbers of its lines: to that of its END, or of the line before that by which it ends without one.
    #[must_use]
    pub fn lines(&self) -> RangeInclusive<u32> {
        self.number..=self.last
    }

    /// How deep it is inside: 1, or more where it is inside another part.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Its own properties, in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.properties.all()
    }

    /// Its own properties of this name, which is in any case.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Property<'a>> {
        self.properties.of_name(name)
    }

    /// Its own properties of this name, read as times: TRIGGER, ACKNOWLEDGED and the like.
    pub fn timed(&self, name: &str) -> impl Iterator<Item = Timed<'_>> {
        self.named(name).map(Timed::of)
    }
}
