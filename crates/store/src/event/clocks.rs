//! Which zones the names in files mean, each found once.
//!
//! `larder-time` decides; here is remembered what it decided, and the zones that are no zone of the system are found again by
//! the hash of their definition.

use crate::frame;
use larder_format::zone as text;
use larder_time::civil::{Civil, Instant};
use larder_time::rule::Rule;
use larder_time::value::{Offset, Stamp};
use larder_time::zone::{Definition, How, Observance, Zone, Zones};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// So many names, and so many definitions, are remembered.
const REMEMBERED: usize = 4096;
/// What a definition does is compared with what the system's zones do up to the beginning of this year.
const COMPARED_TO: i64 = 2050;
/// Names of zones that are definitions.
const OWN: &str = "own:";

/// The zones that names mean.
#[derive(Debug)]
pub struct Clocks {
    zones: Arc<Zones>,
    known: Mutex<HashMap<Key, Option<Named>>>,
    own: Mutex<HashMap<String, Defined>>,
    fingerprints: Mutex<HashMap<String, Arc<str>>>,
}

/// A name in a file, the definition that it has there, and a year from which on they are to agree.
type Key = (String, Option<[u8; 32]>, i64);

/// What a definition says.
#[derive(Debug, Clone)]
struct Defined {
    zone: Zone,
    /// X-LIC-LOCATION.
    location: Option<String>,
}

/// A zone, and the name under which it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) zone: Zone,
    pub(crate) name: String,
    pub(crate) how: How,
    /// What the file says that it is, where that is not what is used.
    own: Option<Zone>,
}

impl Named {
    /// Is all of its definition followed?
    pub(crate) fn is_whole(&self) -> bool {
        self.zone.is_whole()
    }

    /// Does the file say something else of this time?
    pub(crate) fn differs(&self, at: Civil) -> bool {
        self.own.as_ref().is_some_and(|own| own.instant(at) != self.zone.instant(at))
    }
}

impl Clocks {
    pub(crate) fn new(zones: Arc<Zones>) -> Clocks {
        let (known, own) = (Mutex::default(), Mutex::default());
        Clocks { zones, known, own, fingerprints: Mutex::default() }
    }

    pub(crate) fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// The zone that a name means, with the definition that its file has of it, for what happens from `first` on; `None`:
    /// nobody knows.
    pub(crate) fn resolve(
        &self,
        tzid: &str,
        zone: Option<&frame::Zone>,
        first: Civil,
    ) -> Option<Named> {
        // Without a definition there is nothing to compare.
        let year = zone.map_or(0, |_| i64::from(first.date().year).min(COMPARED_TO - 1));
        let key = (tzid.to_string(), zone.map(|zone| *zone.hash()), year);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.get(&key) {
            return named.clone();
        }
        let named = self.find(tzid, zone, year);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, named.clone());
        named
    }

    fn find(&self, tzid: &str, zone: Option<&frame::Zone>, year: i64) -> Option<Named> {
        let defined = zone.and_then(|zone| self.defined(zone));
        let own = defined.as_ref().map(|defined| &defined.zone);
        let location = defined.as_ref().and_then(|defined| defined.location.as_deref());
        let found = self.zones.resolve(tzid, own, location, new_year(year), new_year(COMPARED_TO));
        let (how, resolved) = (found.how, found.zone?);
        let name = match (how, zone) {
            (How::Own, Some(zone)) => own_name(zone.hash()),
            _ => resolved.name().to_string(),
        };
        let differing = !matches!(how, How::Own | How::Behaviour);
        let own = own.filter(|_| differing).cloned();
        Some(Named { zone: resolved, name, how, own })
    }

    /// What a definition says, which is evaluated once.
    fn defined(&self, zone: &frame::Zone) -> Option<Defined> {
        let name = own_name(zone.hash());
        let known = self.own.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        known.or_else(|| self.evaluate(&name, zone.bytes()))
    }

    fn evaluate(&self, name: &str, bytes: &[u8]) -> Option<Defined> {
        let parsed = text::Definition::parse(bytes)?;
        let definition = definition(&parsed);
        // One that says nothing is none.
        if definition.observances.is_empty() {
            return None;
        }
        let zone = Zone::own(definition, &parsed.tzid);
        let defined = Defined { zone, location: parsed.location };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= REMEMBERED {
            own.clear();
        }
        own.insert(name.to_string(), defined.clone());
        Some(defined)
    }

    /// The zone that is kept under this name.
    pub(crate) fn zone(&self, conn: &Connection, name: &str) -> Option<Zone> {
        let Some(hash) = name.strip_prefix(OWN) else { return self.zones.get(name) };
        if let Some(of) = self.own.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Some(of.zone.clone());
        }
        let first = u64::from_str_radix(hash, 16).ok()?.to_be_bytes();
        let (from, to) = ([&first[..], &[0; 24]].concat(), [&first[..], &[255; 24]].concat());
        let bytes: Vec<u8> = conn
            .prepare_cached("SELECT bytes FROM zone WHERE hash BETWEEN ?1 AND ?2")
            .and_then(|mut select| select.query_row((from, to), |row| row.get(0)).optional())
            .ok()??;
        self.evaluate(name, &bytes).map(|defined| defined.zone)
    }

    /// What these zones, names with blanks between them, are like: another text when that has changed.
    pub(crate) fn fingerprint(&self, names: &str) -> Arc<str> {
        let mut known = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(like) = known.get(names) {
            return Arc::clone(like);
        }
        let one = |name: &str| match name.strip_prefix(OWN) {
            // Another version of the system's zones may have one that does the same.
            Some(_) => self.zones.version().to_string(),
            None if name.starts_with('?') => self.zones.version().to_string(),
            None => {
                self.zones.get(name).map_or_else(String::new, |zone| self.zones.fingerprint(&zone))
            }
        };
        let like: Arc<str> = names.split(' ').map(one).collect::<Vec<_>>().join(" ").into();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(names.to_string(), Arc::clone(&like));
        like
    }
}

fn own_name(hash: &[u8; 32]) -> String {
    let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{OWN}{hex}")
}

fn new_year(year: i64) -> Instant {
    let days = larder_time::civil::year_start(i32::try_from(year).unwrap_or(1970).clamp(1, 9999));
    Instant::clamped(days * larder_time::civil::DAY)
}

/// A definition with its values read. What is malformed in it is left out.
fn definition(text: &text::Definition) -> Definition {
    let observance = |text: &text::Observance| {
        let dates = text.rdates.iter().filter_map(|date| {
            let start = date.split('/').next().unwrap_or(date);
            Stamp::parse(start).ok()
        });
        Some(Observance {
            daylight: text.daylight,
            onset: Stamp::parse(&text.dtstart).ok()?.civil,
            from: Offset::parse(&text.from).or_else(|_| Offset::parse(&text.to)).ok()?,
            to: Offset::parse(&text.to).ok()?,
            rules: text.rrules.iter().filter_map(|rule| Rule::parse(rule).ok()).collect(),
            dates: dates.collect(),
        })
    };
    Definition { observances: text.observances.iter().filter_map(observance).collect() }
}
