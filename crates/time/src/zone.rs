//! Zones: which moment a clock time is, and what a clock shows at a moment.
//!
//! A [`Zone`] is UTC, a zone of the system's data (read by jiff), or a [`Definition`] that came with an item.
//! All three answer from a table of transitions; what lies outside of a table is asked of the data itself.
//! Which zone a name in a file means is decided in [`Zones::resolve`].
//!
//! A clock time that a change of the clock leaves out is read with the offset before the change, so it moves
//! forward (RFC 5545, 3.3.5 and erratum 4271); one that comes twice is the first.

mod behaviour;
mod definition;
mod names;
mod resolve;
mod table;

pub use self::behaviour::{Difference, differences, same_behaviour};
pub use self::definition::{Definition, Observance};
pub use self::resolve::{How, Resolved, Zones};

pub use self::names::{city, is_area};

use self::definition::Own;
use self::table::{System, Table};
use crate::civil::{Civil, DAY, Instant};
use std::fmt;
use std::sync::Arc;

/// A time zone; a copy shares its data.
#[derive(Clone)]
pub struct Zone(Kind);

#[derive(Clone)]
enum Kind {
    Utc,
    System(Arc<System>),
    Own(Arc<Own>),
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone(Kind::Utc);

    /// A zone of the system's data.
    #[must_use]
    pub fn system(zone: jiff::tz::TimeZone, name: &str) -> Zone {
        Zone(Kind::System(Arc::new(System::new(zone, name))))
    }

    /// A definition, evaluated as it stands.
    #[must_use]
    pub fn own(definition: Definition, name: &str) -> Zone {
        Zone(Kind::Own(Arc::new(Own::new(definition, name))))
    }

    /// Its name: `UTC`, the tz database's, or the TZID of a definition.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Utc => "UTC",
            Kind::System(system) => &system.name,
            Kind::Own(own) => &own.name,
        }
    }

    /// The definition that it evaluates, if it is not one of the system's.
    #[must_use]
    pub fn definition(&self) -> Option<&Definition> {
        match &self.0 {
            Kind::Own(own) => Some(&own.definition),
            Kind::Utc | Kind::System(_) => None,
        }
    }

    /// Is all that it says followed? Not of a definition with more changes than any zone has, nor of rules that take too many steps.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Kind::Own(own) => own.whole,
            Kind::Utc | Kind::System(_) => true,
        }
    }

    /// The moment of a clock time.
    #[must_use]
    pub fn instant(&self, civil: Civil) -> Instant {
        Instant::clamped(civil.seconds() - i64::from(self.offset_of(civil)))
    }

    /// What a clock shows at a moment.
    #[must_use]
    pub fn civil(&self, instant: Instant) -> Civil {
        instant.civil(self.offset(instant))
    }

    /// Seconds east of UTC at a moment.
    #[must_use]
    pub fn offset(&self, instant: Instant) -> i32 {
        let Some(table) = self.table() else { return 0 };
        match table.offset(instant) {
            Some(offset) => offset,
            None => self.far_offset(instant),
        }
    }

    /// The changes of the offset in `[from, to)`, with the offset that begins then.
    #[must_use]
    pub fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        match &self.0 {
            Kind::Utc => Vec::new(),
            Kind::System(system) => system.transitions(from, to),
            Kind::Own(own) => own.table.transitions(from, to),
        }
    }

    /// The lowest and the highest that it ever is east of UTC, in seconds.
    #[must_use]
    pub fn offsets(&self) -> (i32, i32) {
        match &self.0 {
            Kind::Utc => (0, 0),
            Kind::System(system) => system.offsets(),
            Kind::Own(own) => own.offsets,
        }
    }

    fn table(&self) -> Option<&Table> {
        match &self.0 {
            Kind::Utc => None,
            Kind::System(system) => Some(system.table()),
            Kind::Own(own) => Some(&own.table),
        }
    }

    fn far_offset(&self, instant: Instant) -> i32 {
        match &self.0 {
            Kind::Utc => 0,
            Kind::System(system) => system.offset(instant),
            Kind::Own(own) => own.far_offset(instant),
        }
    }

    /// The offset that a clock time is read with.
    fn offset_of(&self, civil: Civil) -> i32 {
        let Some(table) = self.table() else { return 0 };
        if let Some(offset) = table.offset_of(civil) {
            return offset;
        }
        let at = |offset: i32| Instant::clamped(civil.seconds() - i64::from(offset));
        let before = self.offset(Instant::clamped(civil.seconds() - DAY));
        if self.offset(at(before)) == before {
            return before;
        }
        // Behind a change; if it is not behind it with the offset after it either, it is left out by it.
        let after = self.offset(at(before));
        if self.offset(at(after)) == after { after } else { before }
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Utc | Kind::System(_) => "system",
            Kind::Own(_) => "own",
        };
        write!(f, "Zone({:?}, {kind})", self.name())
    }
}

/// The same zone: of one name in the system's data, or of the same rules.
impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        match (&self.0, &other.0) {
            (Kind::Utc, Kind::Utc) => true,
            (Kind::System(a), Kind::System(b)) => a.name == b.name,
            (Kind::Own(a), Kind::Own(b)) => {
                Arc::ptr_eq(a, b) || a.definition.canonical() == b.definition.canonical()
            }
            _ => false,
        }
    }
}

impl Eq for Zone {}
