//! The form of a time in an item: a date, UTC, a named zone, or floating.
//!
//! Separate from the values because a changed item keeps the form that its program chose.

use larder_format::component::{Component, TimeProperty};
use larder_store::{CalendarContext, Extractor};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;

/// The form of the times of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateTimeForm {
    is_date: bool,
    clock: ZoneReference,
    /// TZID as the item has it.
    tzid: Option<String>,
}

impl DateTimeForm {
    /// The form of dates.
    pub(crate) fn date() -> DateTimeForm {
        DateTimeForm { is_date: true, clock: ZoneReference::Floating, tzid: None }
    }

    /// The form of times by a clock.
    pub(crate) fn date_time(clock: &ZoneReference) -> DateTimeForm {
        let tzid = match clock {
            ZoneReference::Zone(zone) => Some(zone.name().to_string()),
            _ => None,
        };
        DateTimeForm { is_date: false, clock: clock.clone(), tzid }
    }

    /// The form of a time.
    pub(crate) fn from_date_time(time: &CalendarDateTime) -> DateTimeForm {
        let form = DateTimeForm::date_time(&time.zone_reference);
        DateTimeForm { is_date: time.is_date, ..form }
    }

    /// Returns the form of a property, and its time.
    pub(crate) fn from_time_property(
        timed: &TimeProperty<'_>,
        extractor: &Extractor,
        context: &CalendarContext,
    ) -> Option<(DateTimeForm, CalendarDateTime)> {
        let start = extractor.resolve_date_time(timed, context)?;
        let named =
            timed.tzid.as_deref().filter(|_| !start.is_date && !timed.text.ends_with(['Z', 'z']));
        let tzid = named.map(str::to_string);
        Some((
            DateTimeForm { is_date: start.is_date, clock: start.zone_reference.clone(), tzid },
            start,
        ))
    }

    /// Returns the form of the first property of this name, and its time.
    pub(crate) fn from_named_property(
        name: &str,
        component: &Component<'_>,
        extractor: &Extractor,
        context: &CalendarContext,
    ) -> Option<(DateTimeForm, CalendarDateTime)> {
        let timed = component.time_properties(name).find(|timed| !timed.text.is_empty())?;
        DateTimeForm::from_time_property(&timed, extractor, context)
    }

    /// A time of this form.
    pub(crate) fn to_date_time(&self, civil: CivilTime) -> CalendarDateTime {
        let zone_reference = self.clock.clone();
        CalendarDateTime { civil, is_date: self.is_date, zone_reference }
    }

    pub(crate) fn is_date(&self) -> bool {
        self.is_date
    }

    pub(crate) fn clock(&self) -> &ZoneReference {
        &self.clock
    }

    /// Returns the zone. `None`: a date or floating.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match &self.clock {
            _ if self.is_date => None,
            ZoneReference::Floating => None,
            ZoneReference::Utc => Some(&Zone::UTC),
            ZoneReference::Zone(zone) => Some(zone),
        }
    }

    /// Returns the zone, if items need a definition of it.
    pub(crate) fn zone_to_define(&self) -> Option<&Zone> {
        self.zone().filter(|zone| **zone != Zone::UTC)
    }

    /// Converts clock time to a key: the instant, or the clock time if floating, in seconds.
    pub(crate) fn civil_to_key(&self, civil: CivilTime) -> i64 {
        self.zone().map_or(civil.seconds(), |zone| zone.to_instant(civil).seconds())
    }

    /// Converts a key to clock time.
    pub(crate) fn key_to_civil(&self, key: i64) -> CivilTime {
        self.zone().map_or(CivilTime::from_seconds_clamped(key), |zone| {
            zone.to_civil(Instant::from_seconds_clamped(key))
        })
    }

    /// Returns the parameters of a property of this form.
    pub(crate) fn params(&self) -> Vec<(&'static str, &str)> {
        match &self.tzid {
            _ if self.is_date => vec![("VALUE", "DATE")],
            Some(tzid) => vec![("TZID", tzid)],
            None => Vec::new(),
        }
    }

    /// Formats the value of a property.
    pub(crate) fn format_value(&self, civil: CivilTime) -> String {
        let utc = self.clock == ZoneReference::Utc && self.tzid.is_none();
        IcalDateTime { civil, is_date: self.is_date, is_utc: utc && !self.is_date }.to_string()
    }

    /// Formats UNTIL: a date for dates, UTC for times in a zone.
    pub(crate) fn format_until(&self, last: CivilTime) -> String {
        match self.zone() {
            Some(zone) => format_utc(zone.to_instant(last)),
            None => IcalDateTime { civil: last, is_date: self.is_date, is_utc: false }.to_string(),
        }
    }
}

/// Formats an instant as a value in UTC.
pub(crate) fn format_utc(instant: Instant) -> String {
    IcalDateTime { civil: instant.to_civil(0), is_date: false, is_utc: true }.to_string()
}
