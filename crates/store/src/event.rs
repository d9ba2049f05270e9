//! What is derived from the bytes of an event, a task or a memo: whatever its fields give, and what
//! it says of time.
//!
//! Here the texts of `larder-format` become the values of `larder-time`, with the zones that their
//! names and definitions mean ([`ZoneResolver`]). It is about one component at a time: what several
//! of one UID are together is found in `series`.

mod schedule_parser;
mod zone_resolver;

pub(crate) use schedule_parser::ParsedSchedule;
pub use schedule_parser::ZoneUse;
pub use zone_resolver::ZoneResolver;

use crate::Kind;
use crate::calendar_context::CalendarContext;
use crate::extractor::{Extractor, FieldValues, IndexEntry, ItemContext, ParsedItem, SortKeys};
use larder_format::component::{self, CalendarVersion, Component, TimeProperty};
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_format::problem::Problem;
use larder_time::civil::Instant;
use larder_time::series::{CalendarDateTime, SeriesSpec, ZoneReference};
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;
use std::sync::Arc;

/// What there is to say about lines of a component: their numbers from 1, and in words.
pub type LineWarnings = Vec<(u32, String)>;

impl Kind {
    /// The kind of items that such components are.
    #[must_use]
    pub fn from_component(kind: &component::ComponentKind) -> Kind {
        match kind {
            component::ComponentKind::Event => Kind::Event,
            component::ComponentKind::Task => Kind::Task,
            component::ComponentKind::Memo => Kind::Memo,
            _ => Kind::Component,
        }
    }
}

fn calendar_version(frame: &CalendarContext) -> CalendarVersion {
    if frame.is_vcalendar_1 { CalendarVersion::V1_0 } else { CalendarVersion::V2_0 }
}

/// Is the component that is there newer than one that arrives (RFC 5546, 2.1.4 and 2.1.5)? No
/// SEQUENCE is the first one; of two of the same it is not known which is newer where one has no
/// DTSTAMP.
#[must_use]
pub fn is_newer_revision(there: &[u8], arriving: &[u8]) -> bool {
    let revision = |bytes: &[u8]| {
        let component = Component::parse(bytes);
        let first =
            |name| component.time_properties(name).next().map(|timed| timed.text.into_owned());
        let number = first("SEQUENCE").and_then(|text| text.parse::<u64>().ok());
        let stamp = first("DTSTAMP").and_then(|text| IcalDateTime::parse(&text).ok());
        (number.unwrap_or(0), stamp.map(|stamp| stamp.civil.seconds()))
    };
    let ((number, stamp), (other, arrived)) = (revision(there), revision(arriving));
    number > other || number == other && stamp.zip(arrived).is_some_and(|(a, b)| a > b)
}

impl Extractor {
    /// Reads a component of a calendar that says `frame`, and derives what there is to derive. The
    /// problems and the notes are warnings; bytes that are no component are given back with the
    /// problem that makes them none.
    #[allow(clippy::result_large_err, reason = "the refusal gives the bytes back, unmoved")]
    #[allow(clippy::type_complexity, reason = "three things, each named in the line above")]
    pub fn parse_component(
        &self,
        bytes: Vec<u8>,
        frame: &CalendarContext,
    ) -> Result<(ParsedItem, Vec<Problem>, LineWarnings), (Vec<u8>, Problem)> {
        let component = Component::parse_with_version(&bytes, calendar_version(frame));
        if let Some(refusal) = component.fatal_problem() {
            let refusal = *refusal;
            drop(component);
            return Err((bytes, refusal));
        }
        let (kind, uid) = (Kind::from_component(component.kind()), component.uid());
        let tzids: Vec<String> = component.tzids().iter().map(ToString::to_string).collect();
        let own = frame.subset_for(&tzids).map(Arc::new);
        let mut notes = LineWarnings::new();
        let mut entry = self.extract_component_fields(&component, kind);
        let timing =
            ParsedSchedule::parse(&component, kind, frame, &self.zone_resolver, &mut notes);
        let recurrence =
            timing.as_ref().and_then(|timing| timing.recurrence_id()).unwrap_or_default();
        entry.parsed_schedule = timing.map(Box::new);
        let problems = component.problems().to_vec();
        drop(component);
        let place = ItemContext { kind, recurrence_id: recurrence, calendar_context: own };
        let summary = Arc::clone(self.index_config());
        Ok((
            ParsedItem { bytes, entry, index_config: summary, uid, context: place },
            problems,
            notes,
        ))
    }

    pub(crate) fn extract_component(&self, bytes: &[u8], place: &ItemContext) -> IndexEntry {
        let frame = place.calendar_context.clone().unwrap_or_default();
        let component = Component::parse_with_version(bytes, calendar_version(&frame));
        let timing = self.parse_schedule(&component, place.kind, &frame);
        IndexEntry {
            parsed_schedule: timing,
            ..self.extract_component_fields(&component, place.kind)
        }
    }

    /// What a component says of time by itself, and nothing else.
    pub(crate) fn extract_component_schedule(
        &self,
        bytes: &[u8],
        place: &ItemContext,
    ) -> Option<Box<ParsedSchedule>> {
        let frame = place.calendar_context.clone().unwrap_or_default();
        self.parse_schedule(
            &Component::parse_with_version(bytes, calendar_version(&frame)),
            place.kind,
            &frame,
        )
    }

    fn parse_schedule(
        &self,
        of: &Component<'_>,
        kind: Kind,
        frame: &CalendarContext,
    ) -> Option<Box<ParsedSchedule>> {
        ParsedSchedule::parse(of, kind, frame, &self.zone_resolver, &mut LineWarnings::new())
            .map(Box::new)
    }

    pub(crate) fn extract_component_sort_keys(
        &self,
        bytes: &[u8],
        place: &ItemContext,
    ) -> SortKeys {
        match place.kind {
            Kind::Component => SortKeys::new(),
            _ => {
                let version = calendar_version(&place.calendar_context.clone().unwrap_or_default());
                self.extract_field_sort_keys(
                    &Component::parse_with_version(bytes, version),
                    CALENDAR_FIELDS,
                )
            }
        }
    }

    /// Other components are kept, but not searched.
    fn extract_component_fields(&self, component: &Component<'_>, kind: Kind) -> IndexEntry {
        match kind {
            Kind::Component => {
                IndexEntry { has_uid: component.uid().is_some(), ..IndexEntry::default() }
            }
            _ => self.extract_fields(component, CALENDAR_FIELDS),
        }
    }

    /// Which zones the names in a component mean.
    #[must_use]
    pub fn zone_uses(&self, component: &Component<'_>, frame: &CalendarContext) -> Vec<ZoneUse> {
        schedule_parser::zone_uses(component, frame, &self.zone_resolver)
    }

    /// The moment that a property of a component names; by the clock `local` where it names no
    /// other.
    #[must_use]
    pub fn resolve_instant(
        &self,
        component: &Component<'_>,
        frame: &CalendarContext,
        property: &str,
        local: &Zone,
    ) -> Option<Instant> {
        let timed = component.time_properties(property).next()?;
        let start = schedule_parser::resolve_date_time(&timed, frame, &self.zone_resolver)?;
        Some(match start.zone_reference {
            ZoneReference::Zone(zone) if !start.is_date => zone.to_instant(start.civil),
            ZoneReference::Utc if !start.is_date => {
                Instant::from_seconds_clamped(start.civil.seconds())
            }
            _ => local.to_instant(start.civil),
        })
    }
}

impl Extractor {
    /// What a component says about when it happens, by itself; `None`: nothing.
    #[must_use]
    pub fn series_spec(
        &self,
        component: &Component<'_>,
        frame: &CalendarContext,
    ) -> Option<SeriesSpec> {
        let kind = Kind::from_component(component.kind());
        let timing = ParsedSchedule::parse(
            component,
            kind,
            frame,
            &self.zone_resolver,
            &mut LineWarnings::new(),
        )?;
        timing.into_series_spec()
    }

    /// The date or time in a property; `None`: it is none.
    #[must_use]
    pub fn resolve_date_time(
        &self,
        timed: &TimeProperty<'_>,
        frame: &CalendarContext,
    ) -> Option<CalendarDateTime> {
        schedule_parser::resolve_date_time(timed, frame, &self.zone_resolver)
    }
}

impl FieldValues for Component<'_> {
    fn values(&self, field: &Field) -> Vec<String> {
        Component::values(self, field)
    }

    fn first(&self, field: &Field) -> Option<String> {
        Component::first_value(self, field)
    }

    fn has_uid(&self) -> bool {
        self.uid().is_some()
    }
}
