//! Dates and times of a component, in the time zones that they name.
//!
//! Separate from `schedule_parser` because alarms and single properties are read in the same way.

use super::zone_resolver::{ResolvedZone, ZoneResolver};
use crate::calendar_context::CalendarContext;
use crate::parsed_item::LineWarning;
use larder_format::component::{Component, TimeProperty};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDateTime;
use larder_time::zone::{Zone, ZoneMatch};

/// Names of time zones in one item that have a warning; further ones have none.
const MAX_ZONE_WARNINGS: usize = 64;
/// Text that is no time is cut to this many characters.
pub(super) const MAX_UNPARSED_CHARS: usize = 100;

/// The zone that a TZID in an item means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneUse {
    /// The TZID.
    pub tzid: String,
    /// How it was matched.
    pub zone_match: ZoneMatch,
    /// The zone of the system that is used; `None`: the definition in the file, or no zone, is
    /// used.
    pub system_zone: Option<String>,
    /// The file has a definition that differs from the used zone at the item's start.
    pub definition_differs: bool,
}

/// The time zone of a value.
enum ValueZone {
    /// The value names none, or needs none.
    Unnamed,
    /// The name of the zone is unknown.
    Unknown,
    /// The zone.
    Resolved(ResolvedZone),
}

impl ValueZone {
    fn into_zone(self) -> Option<Zone> {
        match self {
            ValueZone::Resolved(resolved) => Some(resolved.zone),
            ValueZone::Unnamed | ValueZone::Unknown => None,
        }
    }
}

fn resolve_zone(
    property: &TimeProperty<'_>,
    value: IcalDateTime,
    calendar: &CalendarContext,
    zones: &ZoneResolver,
) -> ValueZone {
    let tzid = property.tzid.as_deref().filter(|tzid| !tzid.is_empty());
    let Some(tzid) = tzid.filter(|_| !value.is_utc && !value.is_date) else {
        return ValueZone::Unnamed;
    };
    let definition = calendar.zone_definition(tzid).map(|definition| definition.as_ref());
    match zones.resolve(tzid, definition, value.civil) {
        Some(resolved) => ValueZone::Resolved(resolved),
        None => ValueZone::Unknown,
    }
}

/// Returns the date or time in a property; `None` if the value is malformed. A time in an unknown
/// zone is floating.
pub(crate) fn resolve_date_time(
    property: &TimeProperty<'_>,
    calendar: &CalendarContext,
    zones: &ZoneResolver,
) -> Option<CalendarDateTime> {
    let value = IcalDateTime::parse(&property.text).ok()?;
    let zone = resolve_zone(property, value, calendar, zones).into_zone();
    Some(to_calendar_date_time(value, zone))
}

fn to_calendar_date_time(value: IcalDateTime, zone: Option<Zone>) -> CalendarDateTime {
    let IcalDateTime { civil, is_date, is_utc, .. } = value;
    if is_date {
        return CalendarDateTime::from_date(civil);
    }
    let reference = match zone {
        _ if is_utc => ZoneReference::Utc,
        Some(zone) if zone.name() == "UTC" => ZoneReference::Utc,
        Some(zone) => ZoneReference::Zone(zone),
        None => ZoneReference::Floating,
    };
    CalendarDateTime::from_civil(civil, reference)
}

/// Returns the instant of a date or time. Floating values are read as UTC, to be compared with each
/// other.
pub(super) fn comparable_instant(date_time: &CalendarDateTime) -> Instant {
    match &date_time.zone_reference {
        ZoneReference::Zone(zone) if !date_time.is_date => zone.to_instant(date_time.civil),
        _ => Instant::from_seconds_clamped(date_time.civil.seconds()),
    }
}

/// Returns the zones that the TZIDs in a component mean.
pub(crate) fn find_zone_uses(
    component: &Component<'_>,
    calendar: &CalendarContext,
    zones: &ZoneResolver,
) -> Vec<ZoneUse> {
    let start = component
        .time_properties("DTSTART")
        .next()
        .or_else(|| component.time_properties("DUE").next());
    let start = start.and_then(|start| IcalDateTime::parse(&start.text).ok());
    let civil = start.map_or(CivilTime::from_seconds_clamped(0), |start| start.civil);
    let zone_use = |tzid: &str| {
        let definition = calendar.zone_definition(tzid).map(|definition| definition.as_ref());
        let resolved = zones.resolve(tzid, definition, civil);
        let zone_match =
            resolved.as_ref().map_or(ZoneMatch::Floating, |resolved| resolved.zone_match);
        let definition_differs =
            resolved.as_ref().is_some_and(|resolved| resolved.is_defined_differently_at(civil));
        let system_zone = resolved
            .filter(|resolved| resolved.zone_match != ZoneMatch::Definition)
            .map(|resolved| resolved.name);
        ZoneUse { tzid: tzid.to_string(), zone_match, system_zone, definition_differs }
    };
    component.tzids().iter().map(|tzid| zone_use(tzid)).collect()
}

/// Reads dates and times, and collects the zones in them and the warnings about them.
pub(super) struct DateTimeReader<'a> {
    pub(super) calendar: &'a CalendarContext,
    pub(super) zones: &'a ZoneResolver,
    pub(super) warnings: &'a mut Vec<LineWarning>,
    /// The names of the zones so far; the zone of the start is first.
    pub(super) zone_names: Vec<String>,
    /// The TZIDs with a warning.
    warned_tzids: Vec<String>,
}

impl<'a> DateTimeReader<'a> {
    pub(super) fn new(
        calendar: &'a CalendarContext,
        zones: &'a ZoneResolver,
        warnings: &'a mut Vec<LineWarning>,
    ) -> DateTimeReader<'a> {
        let (zone_names, warned_tzids) = (Vec::new(), Vec::new());
        DateTimeReader { calendar, zones, warnings, zone_names, warned_tzids }
    }

    /// Adds a warning about a line.
    pub(super) fn warn(&mut self, line: u32, text: impl Into<String>) {
        self.warnings.push(LineWarning { line, text: text.into() });
    }

    /// Reads a value. A malformed one is `None`, with a warning.
    pub(super) fn read(&mut self, property: &TimeProperty<'_>) -> Option<CalendarDateTime> {
        let value = match IcalDateTime::parse(&property.text) {
            Ok(value) => value,
            Err(error) => {
                self.warn(property.line, error.to_string());
                return None;
            }
        };
        let zone = match resolve_zone(property, value, self.calendar, self.zones) {
            ValueZone::Unnamed => None,
            ValueZone::Unknown => {
                self.warn_unknown_zone(property);
                None
            }
            ValueZone::Resolved(resolved) => {
                if resolved.name != "UTC" && !self.zone_names.contains(&resolved.name) {
                    self.zone_names.push(resolved.name.clone());
                }
                if resolved.is_defined_differently_at(value.civil) {
                    self.warn_definition_differs(property, &resolved);
                }
                if !resolved.is_complete() {
                    self.warn_truncated_definition(property);
                }
                Some(resolved.zone)
            }
        };
        Some(to_calendar_date_time(value, zone))
    }

    /// Returns the date or time in a property, without warnings and without noting its zone.
    pub(super) fn resolve(&self, property: &TimeProperty<'_>) -> Option<CalendarDateTime> {
        resolve_date_time(property, self.calendar, self.zones)
    }

    /// Returns the instant of a value that has this property's TZID.
    pub(super) fn resolve_value(
        &self,
        property: &TimeProperty<'_>,
        value: IcalDateTime,
    ) -> CalendarDateTime {
        let zone = resolve_zone(property, value, self.calendar, self.zones).into_zone();
        to_calendar_date_time(value, zone)
    }

    fn warn_unknown_zone(&mut self, property: &TimeProperty<'_>) {
        let tzid = property.tzid.as_deref().unwrap_or_default();
        if self.note_first_warning(tzid) {
            // Once the system knows the zone, the item is extracted again.
            let prefix: String = tzid.chars().take(MAX_UNPARSED_CHARS).collect();
            self.zone_names.push(format!("?{prefix}"));
            let text = match self.calendar.zone_definition(tzid) {
                None => format!("unknown time zone {tzid:?}: its times are read as local time"),
                Some(_) => format!(
                    "the definition of time zone {tzid:?} is malformed or too long: its times are read as local time"
                ),
            };
            self.warn(property.line, text);
        }
    }

    fn warn_definition_differs(&mut self, property: &TimeProperty<'_>, resolved: &ResolvedZone) {
        let tzid = property.tzid.as_deref().unwrap_or_default();
        if self.note_first_warning(tzid) {
            let system = resolved.zone.name();
            let text =
                format!("the file defines {tzid:?} differently; the system's {system} is used");
            self.warn(property.line, text);
        }
    }

    fn warn_truncated_definition(&mut self, property: &TimeProperty<'_>) {
        let tzid = property.tzid.as_deref().unwrap_or_default();
        if self.note_first_warning(tzid) {
            let text = format!(
                "the definition of {tzid:?} has too many transitions: later times may be wrong"
            );
            self.warn(property.line, text);
        }
    }

    /// Notes that there is a warning about a TZID. Returns false if there was one before, or are
    /// too many.
    fn note_first_warning(&mut self, tzid: &str) -> bool {
        let is_first = self.warned_tzids.len() < MAX_ZONE_WARNINGS
            && !self.warned_tzids.iter().any(|warned| warned == tzid);
        if is_first {
            self.warned_tzids.push(tzid.to_string());
        }
        is_first
    }
}
