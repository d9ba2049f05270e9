//! A calendar component: an event, task, memo, time zone or other component of iCalendar (RFC 5545)
//! or vCalendar 1.0 (versit).
//!
//! As with a [`Contact`](crate::contact::Contact), parsing never fails: each [`Problem`] is a
//! warning, and a [fatal problem](Component::fatal_problem) means that the bytes are not an item.
//! Properties of the component are separate from the properties of its subcomponents (alarms).
//! Times, durations and rules are the text of their properties, with the parameters that qualify
//! them ([`TimeProperty`]); this module computes nothing.
//!
//! ```
//! use larder_format::component::{Component, ComponentKind};
//!
//! let event = Component::parse(
//!     b"BEGIN:VEVENT\nUID:1\nDTSTART;TZID=Europe/Prague:20260305T123000\nEND:VEVENT\n",
//! );
//! assert_eq!((event.kind(), event.uid().as_deref()), (&ComponentKind::Event, Some("1")));
//! let start = event.time_properties("DTSTART").next();
//! assert_eq!(start.map(|start| start.text.into_owned()).as_deref(), Some("20260305T123000"));
//! ```

mod reader;

pub use crate::item_identity::{derive_uid, is_same_item as is_same_component};
pub use crate::problem::{Problem, ProblemKind};
pub use crate::property::MAX_PROPERTIES_PER_ITEM;

use crate::field::{Field, FieldSource};
use crate::field_values;
use crate::properties::PropertyList;
use crate::property::Property;
use crate::utf16::{self, Endian};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// A parsed component.
#[derive(Debug, Clone)]
pub struct Component<'a> {
    kind: ComponentKind,
    version: CalendarVersion,
    properties: PropertyList<'a>,
    subcomponents: Vec<Subcomponent<'a>>,
    problems: Vec<Problem>,
    fatal_problem: Option<Problem>,
}

/// A subcomponent, such as an alarm.
#[derive(Debug, Clone)]
pub struct Subcomponent<'a> {
    name: String,
    first_line: u32,
    last_line: u32,
    depth: usize,
    properties: PropertyList<'a>,
}

/// The kind of a component.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ComponentKind {
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
    /// Another component, by its name in upper case.
    Other(String),
}

impl ComponentKind {
    /// Returns the kind of component that this name denotes, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> ComponentKind {
        let known = [
            ComponentKind::Event,
            ComponentKind::Task,
            ComponentKind::Memo,
            ComponentKind::FreeBusy,
            ComponentKind::TimeZone,
        ];
        known
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
            .unwrap_or_else(|| ComponentKind::Other(name.to_ascii_uppercase()))
    }

    /// The name of the component.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            ComponentKind::Event => "VEVENT",
            ComponentKind::Task => "VTODO",
            ComponentKind::Memo => "VJOURNAL",
            ComponentKind::FreeBusy => "VFREEBUSY",
            ComponentKind::TimeZone => "VTIMEZONE",
            ComponentKind::Other(name) => name,
        }
    }
}

/// The version of the calendar format, which is a property of the calendar around a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CalendarVersion {
    /// vCalendar 1.0 (versit).
    V1_0,
    /// iCalendar 2.0 (RFC 5545), and any unknown version.
    #[default]
    V2_0,
}

impl CalendarVersion {
    /// The value of the VERSION property.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CalendarVersion::V1_0 => "1.0",
            CalendarVersion::V2_0 => "2.0",
        }
    }

    /// Returns the version of a calendar, given its own property lines in UTF-8 with or without
    /// BEGIN.
    #[must_use]
    pub fn from_calendar_lines(lines: &[u8]) -> CalendarVersion {
        let is_old = |line| {
            let property = Property::parse(line);
            property.has_name("VERSION") && property.value().trim_ascii().starts_with(b"1")
        };
        match crate::content_line::content_lines(lines).any(is_old) {
            true => CalendarVersion::V1_0,
            false => CalendarVersion::V2_0,
        }
    }
}

/// A property whose value is a time, a duration, a rule, or a list of these: its text, with the
/// parameters that qualify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeProperty<'c> {
    /// The whole value, without surrounding white space.
    pub text: Cow<'c, str>,
    /// TZID: the name of a time zone. Meaningless on a value in UTC.
    pub tzid: Option<Cow<'c, str>>,
    /// VALUE: the type, such as DATE or PERIOD.
    pub value_type: Option<Cow<'c, str>>,
    /// RELATED of a TRIGGER: START or END.
    pub related: Option<Cow<'c, str>>,
    /// RANGE of a RECURRENCE-ID: THISANDFUTURE.
    pub range: Option<Cow<'c, str>>,
    /// The line number within the item, from 1.
    pub line: u32,
}

impl<'c> TimeProperty<'c> {
    /// Reads a property as a time property.
    #[must_use]
    pub fn from_property(property: &'c Property<'_>) -> TimeProperty<'c> {
        let text = match property.text() {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_string()),
        };
        let [tzid, value_type, related, range] =
            property.single_params(["TZID", "VALUE", "RELATED", "RANGE"]);
        TimeProperty { text, tzid, value_type, related, range, line: property.line_number() }
    }
}

impl<'a> Component<'a> {
    /// Parses an iCalendar component: the bytes of one item as
    /// [`Splitter`](crate::splitter::Splitter) yields them. UTF-16 is detected and decoded first;
    /// line numbers stay the same.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Component<'a> {
        Component::parse_with_version(bytes, CalendarVersion::V2_0)
    }

    /// Parses a component of a calendar of this version.
    #[must_use]
    pub fn parse_with_version(bytes: &'a [u8], version: CalendarVersion) -> Component<'a> {
        match Endian::detect(bytes) {
            Some(order) => {
                reader::parse(utf16::decode(bytes, order).as_bytes(), version).into_owned()
            }
            None => reader::parse(bytes.strip_prefix(utf16::BOM).unwrap_or(bytes), version),
        }
    }

    /// Parses UTF-8 text without a byte-order mark.
    pub(crate) fn parse_text(text: &'a [u8]) -> Component<'a> {
        reader::parse(text, CalendarVersion::V2_0)
    }

    fn into_owned(self) -> Component<'static> {
        let owned = |part: Subcomponent<'a>| Subcomponent {
            name: part.name,
            first_line: part.first_line,
            last_line: part.last_line,
            depth: part.depth,
            properties: part.properties.into_owned(),
        };
        Component {
            kind: self.kind,
            version: self.version,
            properties: self.properties.into_owned(),
            subcomponents: self.subcomponents.into_iter().map(owned).collect(),
            problems: self.problems,
            fatal_problem: self.fatal_problem,
        }
    }

    /// The kind of the component.
    #[must_use]
    pub fn kind(&self) -> &ComponentKind {
        &self.kind
    }

    /// The version that the component was parsed as.
    #[must_use]
    pub fn version(&self) -> CalendarVersion {
        self.version
    }

    /// The properties of the component in order, without BEGIN and END, unparsable lines, and
    /// properties of subcomponents.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.properties.as_slice()
    }

    /// Returns the properties with this name, in any case.
    pub fn properties_named(&self, name: &str) -> impl Iterator<Item = &Property<'a>> {
        self.properties.iter_named(name)
    }

    /// The subcomponents in order. A nested subcomponent follows its parent with a greater depth.
    #[must_use]
    pub fn subcomponents(&self) -> &[Subcomponent<'a>] {
        &self.subcomponents
    }

    /// The problems that do not prevent the component from being an item.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The problem that makes these bytes invalid as a component, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        self.fatal_problem.as_ref()
    }

    /// The first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.properties.uids().next()
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        let flag = match field.source {
            FieldSource::HasAlarm => self.has_alarm(),
            FieldSource::Recurs => self.is_recurring(),
            FieldSource::IsDone => self.is_done(),
            FieldSource::IsAllDay => self.is_all_day(),
            _ => return field_values::read_values(&self.properties, self.version.name(), field),
        };
        if flag { vec!["1".to_string()] } else { Vec::new() }
    }

    fn has_alarm(&self) -> bool {
        self.subcomponents.iter().any(|part| part.depth == 1 && part.name == "VALARM")
            || self.properties.has_value(&["DALARM", "AALARM", "PALARM", "MALARM"])
    }

    fn is_recurring(&self) -> bool {
        self.properties.has_value(&["RRULE", "RDATE", "RECURRENCE-ID"])
    }

    fn is_done(&self) -> bool {
        let completed =
            |status: &Property<'_>| status.value().trim_ascii().eq_ignore_ascii_case(b"COMPLETED");
        self.properties.has_value(&["COMPLETED"]) || self.properties_named("STATUS").any(completed)
    }

    /// Returns whether the start is a date, or the due time of a task that has no start.
    fn is_all_day(&self) -> bool {
        let first_value = |name| self.time_properties(name).find(|time| !time.text.is_empty());
        let due = || first_value("DUE").filter(|_| self.kind == ComponentKind::Task);
        first_value("DTSTART").or_else(due).is_some_and(|time| !time.text.contains(['T', 't', ' ']))
    }

    /// Returns the first value of a field.
    #[must_use]
    pub fn first_value(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
    }

    /// Returns the RECURRENCE-ID of an override.
    #[must_use]
    pub fn recurrence_id(&self) -> Option<TimeProperty<'_>> {
        self.time_properties("RECURRENCE-ID").find(|id| !id.text.is_empty())
    }

    /// Returns the properties with this name as times: DTSTART, DTEND, DUE, DURATION, RRULE, EXDATE
    /// and the like.
    pub fn time_properties(&self, name: &str) -> impl Iterator<Item = TimeProperty<'_>> {
        self.properties_named(name).map(TimeProperty::from_property)
    }

    /// The time zone names in the component and its subcomponents, each once.
    #[must_use]
    pub fn tzids(&self) -> Vec<Cow<'_, str>> {
        let (mut tzids, mut seen) = (Vec::new(), HashSet::new());
        let parts = self.subcomponents.iter().flat_map(Subcomponent::properties);
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

impl<'a> Subcomponent<'a> {
    /// The name in upper case: `VALARM`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line number of BEGIN within the item, from 1.
    #[must_use]
    pub fn line_number(&self) -> u32 {
        self.first_line
    }

    /// The line numbers of the subcomponent, up to its END. Without an END, up to the line before
    /// the line that closes it.
    #[must_use]
    pub fn line_range(&self) -> RangeInclusive<u32> {
        self.first_line..=self.last_line
    }

    /// The nesting depth: 1, or more inside another subcomponent.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The properties of the subcomponent, in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.properties.as_slice()
    }

    /// Returns the properties with this name, in any case.
    pub fn properties_named(&self, name: &str) -> impl Iterator<Item = &Property<'a>> {
        self.properties.iter_named(name)
    }

    /// Returns the properties with this name as times: TRIGGER, ACKNOWLEDGED and the like.
    pub fn time_properties(&self, name: &str) -> impl Iterator<Item = TimeProperty<'_>> {
        self.properties_named(name).map(TimeProperty::from_property)
    }
}
