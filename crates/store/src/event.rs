//! What is derived from the bytes of an event, a task or a memo: whatever its fields give, and what it says of time.
//!
//! Here the texts of `larder-format` become the values of `larder-time`, with the zones that their names and definitions
//! mean ([`Clocks`]). It is about one component at a time: what several of one UID are together is found in `series`.

mod clocks;
mod timing;

pub use clocks::Clocks;
pub(crate) use timing::Timing;
pub use timing::ZoneUse;

use crate::Kind;
use crate::deriver::{Deriver, Entry, Fields, Placed, Prepared, SortKeys};
use crate::frame::Frame;
use larder_format::component::{self, Component, Timed, Version};
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_format::problem::Problem;
use larder_time::civil::Instant;
use larder_time::series::{Clock, Description, Start};
use larder_time::value::Stamp;
use larder_time::zone::Zone;
use std::sync::Arc;

/// What there is to say about lines of a component: their numbers from 1, and in words.
pub type Notes = Vec<(u32, String)>;

impl Kind {
    /// The kind of items that such components are.
    #[must_use]
    pub fn of_component(kind: &component::Kind) -> Kind {
        match kind {
            component::Kind::Event => Kind::Event,
            component::Kind::Task => Kind::Task,
            component::Kind::Memo => Kind::Memo,
            _ => Kind::Other,
        }
    }
}

fn version(frame: &Frame) -> Version {
    if frame.version_1 { Version::V1_0 } else { Version::V2_0 }
}

/// Is the component that is there newer than one that arrives (RFC 5546, 2.1.4 and 2.1.5)? No SEQUENCE is the first one; of two of the
/// same it is not known which is newer where one has no DTSTAMP.
#[must_use]
pub fn is_newer(there: &[u8], arriving: &[u8]) -> bool {
    let revision = |bytes: &[u8]| {
        let component = Component::parse(bytes);
        let first = |name| component.timed(name).next().map(|timed| timed.text.into_owned());
        let number = first("SEQUENCE").and_then(|text| text.parse::<u64>().ok());
        let stamp = first("DTSTAMP").and_then(|text| Stamp::parse(&text).ok());
        (number.unwrap_or(0), stamp.map(|stamp| stamp.civil.seconds()))
    };
    let ((number, stamp), (other, arrived)) = (revision(there), revision(arriving));
    number > other || number == other && stamp.zip(arrived).is_some_and(|(a, b)| a > b)
}

impl Deriver {
    /// Reads a component of a calendar that says `frame`, and derives what there is to derive. The problems and the notes
    /// are warnings; bytes that are no component are given back with the problem that makes them none.
    #[allow(clippy::result_large_err, reason = "the refusal gives the bytes back, unmoved")]
    #[allow(clippy::type_complexity, reason = "three things, each named in the line above")]
    pub fn component(
        &self,
        bytes: Vec<u8>,
        frame: &Frame,
    ) -> Result<(Prepared, Vec<Problem>, Notes), (Vec<u8>, Problem)> {
        let component = Component::parse_as(&bytes, version(frame));
        if let Some(refusal) = component.refusal() {
            let refusal = *refusal;
            drop(component);
            return Err((bytes, refusal));
        }
        let (kind, uid) = (Kind::of_component(component.kind()), component.uid());
        let tzids: Vec<String> = component.tzids().iter().map(ToString::to_string).collect();
        let own = frame.of(&tzids).map(Arc::new);
        let mut notes = Notes::new();
        let mut entry = self.fields_of(&component, kind);
        let timing = Timing::of(&component, kind, frame, &self.clocks, &mut notes);
        let recurrence = timing.as_ref().and_then(|timing| timing.recurrence()).unwrap_or_default();
        entry.timing = timing.map(Box::new);
        let problems = component.problems().to_vec();
        drop(component);
        let place = Placed { kind, recurrence, frame: own };
        let summary = Arc::clone(self.summary());
        Ok((Prepared { bytes, entry, summary, uid, place }, problems, notes))
    }

    pub(crate) fn component_entry(&self, bytes: &[u8], place: &Placed) -> Entry {
        let frame = place.frame.clone().unwrap_or_default();
        let component = Component::parse_as(bytes, version(&frame));
        let timing = self.timing(&component, place.kind, &frame);
        Entry { timing, ..self.fields_of(&component, place.kind) }
    }

    /// What a component says of time by itself, and nothing else.
    pub(crate) fn component_timing(&self, bytes: &[u8], place: &Placed) -> Option<Box<Timing>> {
        let frame = place.frame.clone().unwrap_or_default();
        self.timing(&Component::parse_as(bytes, version(&frame)), place.kind, &frame)
    }

    fn timing(&self, of: &Component<'_>, kind: Kind, frame: &Frame) -> Option<Box<Timing>> {
        Timing::of(of, kind, frame, &self.clocks, &mut Notes::new()).map(Box::new)
    }

    pub(crate) fn component_sort(&self, bytes: &[u8], place: &Placed) -> SortKeys {
        match place.kind {
            Kind::Other => SortKeys::new(),
            _ => {
                let version = version(&place.frame.clone().unwrap_or_default());
                self.sort(&Component::parse_as(bytes, version), CALENDAR_FIELDS)
            }
        }
    }

    /// Other components are kept, but not searched.
    fn fields_of(&self, component: &Component<'_>, kind: Kind) -> Entry {
        match kind {
            Kind::Other => Entry { names_uid: component.uid().is_some(), ..Entry::default() },
            _ => self.entry(component, CALENDAR_FIELDS),
        }
    }

    /// Which zones the names in a component mean.
    #[must_use]
    pub fn zone_uses(&self, component: &Component<'_>, frame: &Frame) -> Vec<ZoneUse> {
        timing::zone_uses(component, frame, &self.clocks)
    }

    /// The moment that a property of a component names; by the clock `local` where it names no other.
    #[must_use]
    pub fn moment(
        &self,
        component: &Component<'_>,
        frame: &Frame,
        property: &str,
        local: &Zone,
    ) -> Option<Instant> {
        let timed = component.timed(property).next()?;
        let start = timing::start_of(&timed, frame, &self.clocks)?;
        Some(match start.clock {
            Clock::Zone(zone) if !start.date => zone.instant(start.civil),
            Clock::Utc if !start.date => Instant::clamped(start.civil.seconds()),
            _ => local.instant(start.civil),
        })
    }
}

impl Deriver {
    /// What a component says about when it happens, by itself; `None`: nothing.
    #[must_use]
    pub fn description(&self, component: &Component<'_>, frame: &Frame) -> Option<Description> {
        let kind = Kind::of_component(component.kind());
        let timing = Timing::of(component, kind, frame, &self.clocks, &mut Notes::new())?;
        timing.into_description()
    }

    /// The date or time in a property; `None`: it is none.
    #[must_use]
    pub fn start(&self, timed: &Timed<'_>, frame: &Frame) -> Option<Start> {
        timing::start_of(timed, frame, &self.clocks)
    }
}

impl Fields for Component<'_> {
    fn values(&self, field: &Field) -> Vec<String> {
        Component::values(self, field)
    }

    fn first(&self, field: &Field) -> Option<String> {
        Component::first(self, field)
    }

    fn names_uid(&self) -> bool {
        self.uid().is_some()
    }
}
