//! Calendar contexts: the version and the VTIMEZONEs of the enclosing VCALENDAR that a component
//! refers to.
//!
//! An item of a calendar only names its time zones (`TZID=...`). Their definitions are elsewhere in
//! the file, and so is the version of the format. Thousands of items share a context, and many
//! calendars a definition, so both are shared here and stored once by `larder-store`. `event` finds
//! the zone that a definition means.

use larder_format::component::{CalendarVersion, Component};
use larder_format::decoding::unescape_text;
use larder_format::vtimezone;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// A time zone definition (VTIMEZONE), unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneDefinition {
    tzid: String,
    hash: [u8; 32],
    bytes: Vec<u8>,
}

impl ZoneDefinition {
    /// Reads the TZID of a VTIMEZONE, from its BEGIN to its END; `None` if it has none.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<ZoneDefinition> {
        let component = Component::parse(bytes);
        let tzid = component
            .properties_named("TZID")
            .map(|tzid| unescape_text(&tzid.text()).trim().to_string());
        let tzid = tzid.into_iter().find(|tzid| !tzid.is_empty())?;
        let hash = Sha256::digest(vtimezone::normalise_definition(bytes)).into();
        Some(ZoneDefinition { tzid, hash, bytes: bytes.to_vec() })
    }

    /// Returns the definition from its stored parts.
    #[must_use]
    pub fn from_parts(tzid: String, hash: [u8; 32], bytes: Vec<u8>) -> ZoneDefinition {
        ZoneDefinition { tzid, hash, bytes }
    }

    /// Returns the name by which items refer to it.
    #[must_use]
    pub fn tzid(&self) -> &str {
        &self.tzid
    }

    /// Returns a hash that is equal for definitions of one text, however their lines are folded.
    #[must_use]
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Returns the bytes, as they first came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The version and the time zone definitions of a calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalendarContext {
    /// The calendar is a vCalendar 1.0, not an iCalendar.
    pub is_vcalendar_1: bool,
    /// The time zone definitions; if several have one TZID, the first is used.
    pub zone_definitions: Vec<Arc<ZoneDefinition>>,
}

impl CalendarContext {
    /// Returns the part of the context that an item with these TZIDs needs; `None` if it needs
    /// nothing.
    #[must_use]
    pub fn subset_for(&self, tzids: &[String]) -> Option<CalendarContext> {
        let zones: Vec<Arc<ZoneDefinition>> =
            tzids.iter().filter_map(|tzid| self.zone_definition(tzid)).map(Arc::clone).collect();
        let version_1 = self.is_vcalendar_1;
        (version_1 || !zones.is_empty())
            .then_some(CalendarContext { is_vcalendar_1: version_1, zone_definitions: zones })
    }

    /// Returns the definition of a TZID.
    #[must_use]
    pub fn zone_definition(&self, tzid: &str) -> Option<&Arc<ZoneDefinition>> {
        self.zone_definitions.iter().find(|zone| zone.tzid == tzid)
    }

    /// Returns whether both contexts give components the same meaning, however their lines are
    /// folded.
    #[must_use]
    pub fn is_equivalent(&self, other: &CalendarContext) -> bool {
        let hashes = |context: &CalendarContext| -> Vec<[u8; 32]> {
            context.zone_definitions.iter().map(|zone| *zone.hash()).collect()
        };
        self.is_vcalendar_1 == other.is_vcalendar_1 && hashes(self) == hashes(other)
    }

    /// Returns the version of the format.
    #[must_use]
    pub fn version(&self) -> CalendarVersion {
        if self.is_vcalendar_1 { CalendarVersion::V1_0 } else { CalendarVersion::V2_0 }
    }
}
