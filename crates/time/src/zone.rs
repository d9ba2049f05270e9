//! Zones: which moment a clock time is, and what a clock shows at a moment.
//!
//! A [`Zone`] is UTC, a zone of the system's data (read by jiff), or a [`Vtimezone`] that came with
//! an item. All three answer from a table of transitions; what lies outside of a table is asked of
//! the data itself. Which zone a name in a file means is decided in
//! [`ZoneDatabase::tzid_resolution`].
//!
//! A clock time that a change of the clock leaves out is read with the offset before the change, so
//! it moves forward (RFC 5545, 3.3.5 and erratum 4271); one that comes twice is the first.

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

/// A time zone; a copy shares its data.
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

    /// A zone of the system's data.
    #[must_use]
    pub fn from_system(zone: jiff::tz::TimeZone, name: &str) -> Zone {
        Zone(ZoneData::System(Arc::new(SystemZone::new(zone, name))))
    }

    /// A definition, evaluated as it stands.
    #[must_use]
    pub fn from_vtimezone(definition: Vtimezone, name: &str) -> Zone {
        Zone(ZoneData::Vtimezone(Arc::new(EvaluatedVtimezone::new(definition, name))))
    }

    /// Its name: `UTC`, the tz database's, or the TZID of a definition.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            ZoneData::Utc => "UTC",
            ZoneData::System(system) => &system.name,
            ZoneData::Vtimezone(own) => &own.name,
        }
    }

    /// The definition that it evaluates, if it is not one of the system's.
    #[must_use]
    pub fn vtimezone(&self) -> Option<&Vtimezone> {
        match &self.0 {
            ZoneData::Vtimezone(own) => Some(&own.vtimezone),
            ZoneData::Utc | ZoneData::System(_) => None,
        }
    }

    /// Is all that it says followed? Not of a definition with more changes than any zone has, nor
    /// of rules that take too many steps.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            ZoneData::Vtimezone(own) => own.is_complete,
            ZoneData::Utc | ZoneData::System(_) => true,
        }
    }

    /// The moment of a clock time.
    #[must_use]
    pub fn to_instant(&self, civil: CivilTime) -> Instant {
        Instant::from_seconds_clamped(civil.seconds() - i64::from(self.offset_for_civil(civil)))
    }

    /// What a clock shows at a moment.
    #[must_use]
    pub fn to_civil(&self, instant: Instant) -> CivilTime {
        instant.to_civil(self.offset(instant))
    }

    /// Seconds east of UTC at a moment.
    #[must_use]
    pub fn offset(&self, instant: Instant) -> i32 {
        let Some(table) = self.transition_table() else { return 0 };
        match table.offset(instant) {
            Some(offset) => offset,
            None => self.offset_outside_table(instant),
        }
    }

    /// The changes of the offset in `[from, to)`, with the offset that begins then.
    #[must_use]
    pub fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        match &self.0 {
            ZoneData::Utc => Vec::new(),
            ZoneData::System(system) => system.transitions(from, to),
            ZoneData::Vtimezone(own) => own.table.transitions(from, to),
        }
    }

    /// The lowest and the highest that it ever is east of UTC, in seconds.
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

    /// The offset that a clock time is read with.
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
        // Behind a change; if it is not behind it with the offset after it either, it is left out
        // by it.
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

/// The same zone: of one name in the system's data, or of the same rules.
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
