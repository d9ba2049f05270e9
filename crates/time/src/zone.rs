//! Time zones: conversion between civil times and instants.
//!
//! A [`Zone`] is UTC, a zone of the system's data (read by jiff), or a [`Vtimezone`] that came with
//! an item. All three use a table of transitions; outside the range of the table they evaluate the
//! underlying data. [`ZoneDatabase::resolve`] decides which zone a TZID means.
//!
//! A civil time in a gap is read with the offset before the transition, so it moves forward (RFC
//! 5545, 3.3.5 and erratum 4271). A civil time that occurs twice means the first of the two
//! instants.

mod definition;
mod equivalence;
mod transition_table;
mod tzid_resolution;
mod zone_names;

pub use self::definition::{Vtimezone, ZoneObservance};
pub use self::equivalence::{OffsetDifference, has_same_offsets, offset_differences};
pub use self::tzid_resolution::{ZoneDatabase, ZoneMatch, ZoneResolution};

pub use self::zone_names::{has_area_prefix, zone_of_city};

use self::definition::EvaluatedVtimezone;
use self::transition_table::{SystemZone, TransitionTable};
use crate::civil::{CivilTime, DAY_SECONDS, Instant};
use std::fmt;
use std::sync::Arc;

/// A time zone; clones share their data.
#[derive(Clone)]
pub struct Zone(ZoneData);

#[derive(Clone)]
enum ZoneData {
    Utc,
    System(Arc<SystemZone>),
    Vtimezone(Arc<EvaluatedVtimezone>),
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone(ZoneData::Utc);

    /// Creates a zone from the system's data.
    #[must_use]
    pub fn from_system(zone: jiff::tz::TimeZone, name: &str) -> Zone {
        Zone(ZoneData::System(Arc::new(SystemZone::new(zone, name))))
    }

    /// Creates a zone that evaluates a time zone definition.
    #[must_use]
    pub fn from_vtimezone(definition: Vtimezone, name: &str) -> Zone {
        Zone(ZoneData::Vtimezone(Arc::new(EvaluatedVtimezone::new(definition, name))))
    }

    /// The name: `UTC`, the name in the tz database, or the TZID of a definition.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            ZoneData::Utc => "UTC",
            ZoneData::System(system) => &system.name,
            ZoneData::Vtimezone(own) => &own.name,
        }
    }

    /// The definition, unless it is a system zone.
    #[must_use]
    pub fn vtimezone(&self) -> Option<&Vtimezone> {
        match &self.0 {
            ZoneData::Vtimezone(own) => Some(&own.vtimezone),
            ZoneData::Utc | ZoneData::System(_) => None,
        }
    }

    /// Returns whether the definition was evaluated completely. It is not if it has more
    /// transitions than any real zone, or rules that exceed the budget.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            ZoneData::Vtimezone(own) => own.is_complete,
            ZoneData::Utc | ZoneData::System(_) => true,
        }
    }

    /// Returns the instant of a civil time.
    #[must_use]
    pub fn to_instant(&self, civil: CivilTime) -> Instant {
        Instant::from_seconds_clamped(civil.seconds() - i64::from(self.offset_for_civil(civil)))
    }

    /// Returns the civil time of an instant.
    #[must_use]
    pub fn to_civil(&self, instant: Instant) -> CivilTime {
        instant.to_civil(self.offset(instant))
    }

    /// Returns the offset at an instant, in seconds east of UTC.
    #[must_use]
    pub fn offset(&self, instant: Instant) -> i32 {
        let Some(table) = self.transition_table() else { return 0 };
        match table.offset(instant) {
            Some(offset) => offset,
            None => self.offset_outside_table(instant),
        }
    }

    /// Returns the transitions in `[from, to)`, with the new offsets.
    #[must_use]
    pub fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        match &self.0 {
            ZoneData::Utc => Vec::new(),
            ZoneData::System(system) => system.transitions(from, to),
            ZoneData::Vtimezone(own) => own.table.transitions(from, to),
        }
    }

    /// Returns the lowest and the highest offset, in seconds east of UTC.
    #[must_use]
    pub fn offset_bounds(&self) -> (i32, i32) {
        match &self.0 {
            ZoneData::Utc => (0, 0),
            ZoneData::System(system) => system.offset_bounds(),
            ZoneData::Vtimezone(own) => own.offsets,
        }
    }

    fn transition_table(&self) -> Option<&TransitionTable> {
        match &self.0 {
            ZoneData::Utc => None,
            ZoneData::System(system) => Some(system.transition_table()),
            ZoneData::Vtimezone(own) => Some(&own.table),
        }
    }

    fn offset_outside_table(&self, instant: Instant) -> i32 {
        match &self.0 {
            ZoneData::Utc => 0,
            ZoneData::System(system) => system.offset(instant),
            ZoneData::Vtimezone(own) => own.offset_after_table(instant),
        }
    }

    /// Returns the offset for a civil time.
    fn offset_for_civil(&self, civil: CivilTime) -> i32 {
        let Some(table) = self.transition_table() else { return 0 };
        if let Some(offset) = table.offset_for_civil(civil) {
            return offset;
        }
        let at = |offset: i32| Instant::from_seconds_clamped(civil.seconds() - i64::from(offset));
        let before = self.offset(Instant::from_seconds_clamped(civil.seconds() - DAY_SECONDS));
        if self.offset(at(before)) == before {
            return before;
        }
        // If the time is after the transition with the old offset but not with the new one, it is
        // in a gap.
        let after = self.offset(at(before));
        if self.offset(at(after)) == after { after } else { before }
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            ZoneData::Utc | ZoneData::System(_) => "system",
            ZoneData::Vtimezone(_) => "own",
        };
        write!(f, "Zone({:?}, {kind})", self.name())
    }
}

/// Zones are equal if they have the same name in the system's data, or the same definition.
impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        match (&self.0, &other.0) {
            (ZoneData::Utc, ZoneData::Utc) => true,
            (ZoneData::System(a), ZoneData::System(b)) => a.name == b.name,
            (ZoneData::Vtimezone(a), ZoneData::Vtimezone(b)) => {
                Arc::ptr_eq(a, b) || a.vtimezone.canonical_text() == b.vtimezone.canonical_text()
            }
            _ => false,
        }
    }
}

impl Eq for Zone {}
