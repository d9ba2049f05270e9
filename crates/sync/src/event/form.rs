//! How a time is written in an item: as a date, in UTC, in a zone by its name, or floating.

use larder_format::component::{Component, Timed};
use larder_store::{Deriver, Frame};
use larder_time::civil::{Civil, Instant};
use larder_time::series::{Clock, Start};
use larder_time::value::Stamp;
use larder_time::zone::Zone;

/// How the times of an item are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    date: bool,
    clock: Clock,
    /// What the item calls its zone.
    tzid: Option<String>,
}

impl Form {
    pub(crate) fn new(date: bool, clock: &Clock) -> Form {
        let tzid = match clock {
            Clock::Zone(zone) => Some(zone.name().to_string()),
            _ => None,
        };
        Form { date, clock: clock.clone(), tzid }
    }

    /// The form of a property.
    pub(crate) fn of(timed: &Timed<'_>, deriver: &Deriver, frame: &Frame) -> Option<(Form, Start)> {
        let start = deriver.start(timed, frame)?;
        let named =
            timed.tzid.as_deref().filter(|_| !start.date && !timed.text.ends_with(['Z', 'z']));
        let tzid = named.map(str::to_string);
        Some((Form { date: start.date, clock: start.clock.clone(), tzid }, start))
    }

    /// The form of the first property of this name.
    pub(crate) fn named(
        name: &str,
        component: &Component<'_>,
        deriver: &Deriver,
        frame: &Frame,
    ) -> Option<(Form, Start)> {
        let timed = component.timed(name).find(|timed| !timed.text.is_empty())?;
        Form::of(&timed, deriver, frame)
    }

    pub(crate) fn is_date(&self) -> bool {
        self.date
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The zone of its clock; none if it floats.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match &self.clock {
            _ if self.date => None,
            Clock::Floating => None,
            Clock::Utc => Some(&Zone::UTC),
            Clock::Zone(zone) => Some(zone),
        }
    }

    /// The zone of its clock, if it needs a definition.
    pub(crate) fn defined(&self) -> Option<&Zone> {
        self.zone().filter(|zone| **zone != Zone::UTC)
    }

    /// The moment, or what the clock shows if it floats, in seconds.
    pub(crate) fn key(&self, civil: Civil) -> i64 {
        self.zone().map_or(civil.seconds(), |zone| zone.instant(civil).seconds())
    }

    /// What the clock shows at a key.
    pub(crate) fn shown(&self, key: i64) -> Civil {
        self.zone().map_or(Civil::clamped(key), |zone| zone.civil(Instant::clamped(key)))
    }

    /// The parameter that says how a value is meant.
    pub(crate) fn params(&self) -> Vec<(&'static str, &str)> {
        match &self.tzid {
            _ if self.date => vec![("VALUE", "DATE")],
            Some(tzid) => vec![("TZID", tzid)],
            None => Vec::new(),
        }
    }

    /// A time as a value.
    pub(crate) fn value(&self, civil: Civil) -> String {
        let utc = self.clock == Clock::Utc && self.tzid.is_none();
        Stamp { civil, date: self.date, utc: utc && !self.date }.to_string()
    }

    /// The last moment of a rule, as UNTIL has to have it: a date for dates, UTC where the clock does not float.
    pub(crate) fn until(&self, last: Civil) -> String {
        match self.zone() {
            Some(zone) => utc(zone.instant(last)),
            None => Stamp { civil: last, date: self.date, utc: false }.to_string(),
        }
    }
}

/// A moment as a value.
pub(crate) fn utc(instant: Instant) -> String {
    Stamp { civil: instant.civil(0), date: false, utc: true }.to_string()
}
