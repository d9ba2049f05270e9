//! How a time is written in an item: as a date, in UTC, in a zone by its name, or floating.

use larder_format::component::{Component, TimeProperty};
use larder_store::{CalendarContext, Extractor};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;

/// How the times of an item are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateTimeForm {
    is_date: bool,
    clock: ZoneReference,
    /// What the item calls its zone.
    tzid: Option<String>,
}

impl DateTimeForm {
    pub(crate) fn new(is_date: bool, clock: &ZoneReference) -> DateTimeForm {
        let tzid = match clock {
            ZoneReference::Zone(zone) => Some(zone.name().to_string()),
            _ => None,
        };
        DateTimeForm { is_date, clock: clock.clone(), tzid }
    }

    /// The form of a property.
    pub(crate) fn from_time_property(
        timed: &TimeProperty<'_>,
        deriver: &Extractor,
        frame: &CalendarContext,
    ) -> Option<(DateTimeForm, CalendarDateTime)> {
        let start = deriver.resolve_date_time(timed, frame)?;
        let named =
            timed.tzid.as_deref().filter(|_| !start.is_date && !timed.text.ends_with(['Z', 'z']));
        let tzid = named.map(str::to_string);
        Some((
            DateTimeForm { is_date: start.is_date, clock: start.zone_reference.clone(), tzid },
            start,
        ))
    }

    /// The form of the first property of this name.
    pub(crate) fn from_named_property(
        name: &str,
        component: &Component<'_>,
        deriver: &Extractor,
        frame: &CalendarContext,
    ) -> Option<(DateTimeForm, CalendarDateTime)> {
        let timed = component.time_properties(name).find(|timed| !timed.text.is_empty())?;
        DateTimeForm::from_time_property(&timed, deriver, frame)
    }

    pub(crate) fn is_date(&self) -> bool {
        self.is_date
    }

    pub(crate) fn clock(&self) -> &ZoneReference {
        &self.clock
    }

    /// The zone of its clock; none if it floats.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match &self.clock {
            _ if self.is_date => None,
            ZoneReference::Floating => None,
            ZoneReference::Utc => Some(&Zone::UTC),
            ZoneReference::Zone(zone) => Some(zone),
        }
    }

    /// The zone of its clock, if it needs a definition.
    pub(crate) fn zone_to_define(&self) -> Option<&Zone> {
        self.zone().filter(|zone| **zone != Zone::UTC)
    }

    /// The moment, or what the clock shows if it floats, in seconds.
    pub(crate) fn civil_to_key(&self, civil: CivilTime) -> i64 {
        self.zone().map_or(civil.seconds(), |zone| zone.to_instant(civil).seconds())
    }

    /// What the clock shows at a key.
    pub(crate) fn key_to_civil(&self, key: i64) -> CivilTime {
        self.zone().map_or(CivilTime::from_seconds_clamped(key), |zone| {
            zone.to_civil(Instant::from_seconds_clamped(key))
        })
    }

    /// The parameter that says how a value is meant.
    pub(crate) fn params(&self) -> Vec<(&'static str, &str)> {
        match &self.tzid {
            _ if self.is_date => vec![("VALUE", "DATE")],
            Some(tzid) => vec![("TZID", tzid)],
            None => Vec::new(),
        }
    }

    /// A time as a value.
    pub(crate) fn format_value(&self, civil: CivilTime) -> String {
        let utc = self.clock == ZoneReference::Utc && self.tzid.is_none();
        IcalDateTime { civil, is_date: self.is_date, is_utc: utc && !self.is_date }.to_string()
    }

    /// The last moment of a rule, as UNTIL has to have it: a date for dates, UTC where the clock
    /// does not float.
    pub(crate) fn format_until(&self, last: CivilTime) -> String {
        match self.zone() {
            Some(zone) => format_utc(zone.to_instant(last)),
            None => IcalDateTime { civil: last, is_date: self.is_date, is_utc: false }.to_string(),
        }
    }
}

/// A moment as a value.
pub(crate) fn format_utc(instant: Instant) -> String {
    IcalDateTime { civil: instant.to_civil(0), is_date: false, is_utc: true }.to_string()
}
