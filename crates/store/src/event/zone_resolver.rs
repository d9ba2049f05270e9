//! Which zones the names in files mean, each found once.
//!
//! `larder-time` decides; here is remembered what it decided, and the zones that are no zone of the
//! system are found again by the hash of their definition.

use crate::calendar_context;
use larder_format::vtimezone as text;
use larder_time::civil::{CivilTime, Instant};
use larder_time::rule::Rule;
use larder_time::value::{IcalDateTime, UtcOffset};
use larder_time::zone::{Vtimezone, Zone, ZoneDatabase, ZoneMatch, ZoneObservance};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// So many names, and so many definitions, are remembered.
const MAX_CACHED_ZONES: usize = 4096;
/// What a definition does is compared with what the system's zones do up to the beginning of this
/// year.
const COMPARISON_END_YEAR: i64 = 2050;
/// Names of zones that are definitions.
const DEFINITION_NAME_PREFIX: &str = "own:";

/// The zones that names mean.
#[derive(Debug)]
pub struct ZoneResolver {
    zone_database: Arc<ZoneDatabase>,
    resolved_zones: Mutex<HashMap<ZoneCacheKey, Option<ResolvedZone>>>,
    defined_zones: Mutex<HashMap<String, DefinedZone>>,
    fingerprints: Mutex<HashMap<String, Arc<str>>>,
}

/// A name in a file, the definition that it has there, and a year from which on they are to agree.
type ZoneCacheKey = (String, Option<[u8; 32]>, i64);

/// What a definition says.
#[derive(Debug, Clone)]
struct DefinedZone {
    zone: Zone,
    /// X-LIC-LOCATION.
    location: Option<String>,
}

/// A zone, and the name under which it is kept.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedZone {
    pub(crate) zone: Zone,
    pub(crate) name: String,
    pub(crate) zone_match: ZoneMatch,
    /// What the file says that it is, where that is not what is used.
    differing_definition: Option<Zone>,
}

impl ResolvedZone {
    /// Is all of its definition followed?
    pub(crate) fn is_complete(&self) -> bool {
        self.zone.is_complete()
    }

    /// Does the file say something else of this time?
    pub(crate) fn is_defined_differently_at(&self, at: CivilTime) -> bool {
        self.differing_definition
            .as_ref()
            .is_some_and(|own| own.to_instant(at) != self.zone.to_instant(at))
    }
}

impl ZoneResolver {
    pub(crate) fn new(zone_database: Arc<ZoneDatabase>) -> ZoneResolver {
        let (resolved_zones, defined_zones) = (Mutex::default(), Mutex::default());
        ZoneResolver {
            zone_database,
            resolved_zones,
            defined_zones,
            fingerprints: Mutex::default(),
        }
    }

    pub(crate) fn zone_database(&self) -> &Arc<ZoneDatabase> {
        &self.zone_database
    }

    /// The zone that a name means, with the definition that its file has of it, for what happens
    /// from `first` on; `None`: nobody knows.
    pub(crate) fn resolve(
        &self,
        tzid: &str,
        zone: Option<&calendar_context::VtimezoneText>,
        first: CivilTime,
    ) -> Option<ResolvedZone> {
        // Without a definition there is nothing to compare.
        let year = zone.map_or(0, |_| i64::from(first.date().year).min(COMPARISON_END_YEAR - 1));
        let key = (tzid.to_string(), zone.map(|zone| *zone.hash()), year);
        let mut known = self.resolved_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.get(&key) {
            return named.clone();
        }
        let named = self.resolve_uncached(tzid, zone, year);
        if known.len() >= MAX_CACHED_ZONES {
            known.clear();
        }
        known.insert(key, named.clone());
        named
    }

    fn resolve_uncached(
        &self,
        tzid: &str,
        zone: Option<&calendar_context::VtimezoneText>,
        year: i64,
    ) -> Option<ResolvedZone> {
        let defined = zone.and_then(|zone| self.defined_zone(zone));
        let own = defined.as_ref().map(|defined| &defined.zone);
        let location = defined.as_ref().and_then(|defined| defined.location.as_deref());
        let found = self.zone_database.resolve(
            tzid,
            own,
            location,
            year_start_instant(year),
            year_start_instant(COMPARISON_END_YEAR),
        );
        let (how, resolved) = (found.matched_by, found.zone?);
        let name = match (how, zone) {
            (ZoneMatch::Definition, Some(zone)) => definition_name(zone.hash()),
            _ => resolved.name().to_string(),
        };
        let differing = !matches!(how, ZoneMatch::Definition | ZoneMatch::Behaviour);
        let own = own.filter(|_| differing).cloned();
        Some(ResolvedZone { zone: resolved, name, zone_match: how, differing_definition: own })
    }

    /// What a definition says, which is evaluated once.
    fn defined_zone(&self, zone: &calendar_context::VtimezoneText) -> Option<DefinedZone> {
        let name = definition_name(zone.hash());
        let known =
            self.defined_zones.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        known.or_else(|| self.evaluate_definition(&name, zone.bytes()))
    }

    fn evaluate_definition(&self, name: &str, bytes: &[u8]) -> Option<DefinedZone> {
        let parsed = text::VtimezoneDefinition::parse(bytes)?;
        let definition = to_vtimezone(&parsed);
        // One that says nothing is none.
        if definition.observances.is_empty() {
            return None;
        }
        let zone = Zone::from_vtimezone(definition, &parsed.tzid);
        let defined = DefinedZone { zone, location: parsed.location };
        let mut own = self.defined_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= MAX_CACHED_ZONES {
            own.clear();
        }
        own.insert(name.to_string(), defined.clone());
        Some(defined)
    }

    /// The zone that is kept under this name.
    pub(crate) fn load_zone(&self, conn: &Connection, name: &str) -> Option<Zone> {
        let Some(hash) = name.strip_prefix(DEFINITION_NAME_PREFIX) else {
            return self.zone_database.get(name);
        };
        if let Some(of) =
            self.defined_zones.lock().unwrap_or_else(PoisonError::into_inner).get(name)
        {
            return Some(of.zone.clone());
        }
        let first = u64::from_str_radix(hash, 16).ok()?.to_be_bytes();
        let (from, to) = ([&first[..], &[0; 24]].concat(), [&first[..], &[255; 24]].concat());
        let bytes: Vec<u8> = conn
            .prepare_cached("SELECT bytes FROM zone_definition WHERE hash BETWEEN ?1 AND ?2")
            .and_then(|mut select| select.query_row((from, to), |row| row.get(0)).optional())
            .ok()??;
        self.evaluate_definition(name, &bytes).map(|defined| defined.zone)
    }

    /// What these zones, names with blanks between them, are like: another text when that has
    /// changed.
    pub(crate) fn fingerprint(&self, names: &str) -> Arc<str> {
        let mut known = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(like) = known.get(names) {
            return Arc::clone(like);
        }
        let one = |name: &str| match name.strip_prefix(DEFINITION_NAME_PREFIX) {
            // Another version of the system's zones may have one that does the same.
            Some(_) => self.zone_database.data_version().to_string(),
            None if name.starts_with('?') => self.zone_database.data_version().to_string(),
            None => self
                .zone_database
                .get(name)
                .map_or_else(String::new, |zone| self.zone_database.fingerprint(&zone)),
        };
        let like: Arc<str> = names.split(' ').map(one).collect::<Vec<_>>().join(" ").into();
        if known.len() >= MAX_CACHED_ZONES {
            known.clear();
        }
        known.insert(names.to_string(), Arc::clone(&like));
        like
    }
}

fn definition_name(hash: &[u8; 32]) -> String {
    let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{DEFINITION_NAME_PREFIX}{hex}")
}

fn year_start_instant(year: i64) -> Instant {
    let days =
        larder_time::civil::first_day_of_year(i32::try_from(year).unwrap_or(1970).clamp(1, 9999));
    Instant::from_seconds_clamped(days * larder_time::civil::DAY_SECONDS)
}

/// A definition with its values read. What is malformed in it is left out.
fn to_vtimezone(text: &text::VtimezoneDefinition) -> Vtimezone {
    let observance = |text: &text::VtimezoneObservance| {
        let dates = text.rdates.iter().filter_map(|date| {
            let start = date.split('/').next().unwrap_or(date);
            IcalDateTime::parse(start).ok()
        });
        Some(ZoneObservance {
            is_daylight: text.is_daylight,
            onset: IcalDateTime::parse(&text.dtstart).ok()?.civil,
            offset_from: UtcOffset::parse(&text.offset_from)
                .or_else(|_| UtcOffset::parse(&text.offset_to))
                .ok()?,
            offset_to: UtcOffset::parse(&text.offset_to).ok()?,
            rules: text.rrules.iter().filter_map(|rule| Rule::parse(rule).ok()).collect(),
            rdates: dates.collect(),
        })
    };
    Vtimezone { observances: text.observances.iter().filter_map(observance).collect() }
}
