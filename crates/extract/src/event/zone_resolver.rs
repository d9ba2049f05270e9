//! The resolver of time zones: which zone a name in a file means, decided once for each name.
//!
//! `larder-time` decides; the resolver caches the decisions. A zone that is not a system zone is
//! stored under the hash of its definition, and `larder-store` finds the definition by this hash.

use crate::calendar_context::ZoneDefinition;
use larder_format::vtimezone as text;
use larder_time::civil::{CivilTime, Instant};
use larder_time::rule::Rule;
use larder_time::value::{IcalDateTime, UtcOffset};
use larder_time::zone::{Vtimezone, Zone, ZoneDatabase, ZoneMatch, ZoneObservance};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The entries of each cache.
const MAX_CACHED_ZONES: usize = 4096;
/// A definition is compared with the system's zones up to the beginning of this year.
const COMPARISON_END_YEAR: i64 = 2050;
/// The prefix of the names of zones that are definitions.
const DEFINITION_NAME_PREFIX: &str = "own:";

/// Resolves names of time zones.
#[derive(Debug)]
pub struct ZoneResolver {
    zone_database: Arc<ZoneDatabase>,
    resolved_zones: Mutex<HashMap<ZoneCacheKey, Option<ResolvedZone>>>,
    defined_zones: Mutex<HashMap<String, DefinedZone>>,
    fingerprints: Mutex<HashMap<String, Arc<str>>>,
}

/// A name in a file, the hash of its definition there, and the year from which both must agree.
type ZoneCacheKey = (String, Option<[u8; 32]>, i64);

/// The zone of a definition.
#[derive(Debug, Clone)]
struct DefinedZone {
    zone: Zone,
    /// X-LIC-LOCATION.
    location: Option<String>,
}

/// A zone, and the name that is stored for it.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedZone {
    pub(crate) zone: Zone,
    pub(crate) name: String,
    pub(crate) zone_match: ZoneMatch,
    /// The zone of the definition in the file, where another zone is used.
    differing_definition: Option<Zone>,
}

/// The result of looking up the stored name of a zone.
#[derive(Debug, Clone)]
pub enum ZoneLookup {
    /// The zone.
    Known(Zone),
    /// The zone is defined by the definition whose hash begins with these bytes:
    /// [`ZoneResolver::define_zone`] takes the definition.
    Definition {
        /// The first bytes of the hash.
        hash_prefix: [u8; 8],
    },
    /// There is no such zone.
    Unknown,
}

impl ResolvedZone {
    /// Returns whether its definition is followed without a limit.
    pub(crate) fn is_complete(&self) -> bool {
        self.zone.is_complete()
    }

    /// Returns whether the definition in the file gives this time another instant.
    pub(crate) fn is_defined_differently_at(&self, at: CivilTime) -> bool {
        self.differing_definition
            .as_ref()
            .is_some_and(|own| own.to_instant(at) != self.zone.to_instant(at))
    }
}

impl ZoneResolver {
    /// Returns a resolver by this database.
    #[must_use]
    pub fn new(zone_database: Arc<ZoneDatabase>) -> ZoneResolver {
        let (resolved_zones, defined_zones) = (Mutex::default(), Mutex::default());
        ZoneResolver {
            zone_database,
            resolved_zones,
            defined_zones,
            fingerprints: Mutex::default(),
        }
    }

    /// Returns the database of time zones.
    #[must_use]
    pub fn zone_database(&self) -> &Arc<ZoneDatabase> {
        &self.zone_database
    }

    /// Returns the zone that a name means, with the definition of it in the file, for times from
    /// `first` on; `None` if it is unknown.
    pub(crate) fn resolve(
        &self,
        tzid: &str,
        definition: Option<&ZoneDefinition>,
        first: CivilTime,
    ) -> Option<ResolvedZone> {
        // Without a definition there is nothing to compare.
        let year =
            definition.map_or(0, |_| i64::from(first.date().year).min(COMPARISON_END_YEAR - 1));
        let key = (tzid.to_string(), definition.map(|definition| *definition.hash()), year);
        let mut known = self.resolved_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.get(&key) {
            return named.clone();
        }
        let named = self.resolve_uncached(tzid, definition, year);
        if known.len() >= MAX_CACHED_ZONES {
            known.clear();
        }
        known.insert(key, named.clone());
        named
    }

    fn resolve_uncached(
        &self,
        tzid: &str,
        definition: Option<&ZoneDefinition>,
        year: i64,
    ) -> Option<ResolvedZone> {
        let defined = definition.and_then(|definition| self.defined_zone(definition));
        let own = defined.as_ref().map(|defined| &defined.zone);
        let location = defined.as_ref().and_then(|defined| defined.location.as_deref());
        let found = self.zone_database.resolve(
            tzid,
            own,
            location,
            year_start_instant(year),
            year_start_instant(COMPARISON_END_YEAR),
        );
        let (zone_match, resolved) = (found.matched_by, found.zone?);
        let name = match (zone_match, definition) {
            (ZoneMatch::Definition, Some(definition)) => definition_name(definition.hash()),
            _ => resolved.name().to_string(),
        };
        let differing = !matches!(zone_match, ZoneMatch::Definition | ZoneMatch::Behaviour);
        let own = own.filter(|_| differing).cloned();
        Some(ResolvedZone { zone: resolved, name, zone_match, differing_definition: own })
    }

    /// Returns the zone of a definition, which is evaluated once.
    fn defined_zone(&self, definition: &ZoneDefinition) -> Option<DefinedZone> {
        let name = definition_name(definition.hash());
        let known =
            self.defined_zones.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        known.or_else(|| self.evaluate_definition(&name, definition.bytes()))
    }

    fn evaluate_definition(&self, name: &str, bytes: &[u8]) -> Option<DefinedZone> {
        let parsed = text::VtimezoneDefinition::parse(bytes)?;
        let definition = to_vtimezone(&parsed);
        // A definition without observances defines nothing.
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

    /// Returns the zone with a stored name.
    #[must_use]
    pub fn find_zone(&self, name: &str) -> ZoneLookup {
        let known = |zone: Option<Zone>| zone.map_or(ZoneLookup::Unknown, ZoneLookup::Known);
        let Some(hash) = name.strip_prefix(DEFINITION_NAME_PREFIX) else {
            return known(self.zone_database.get(name));
        };
        let zones = self.defined_zones.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(defined) = zones.get(name) {
            return ZoneLookup::Known(defined.zone.clone());
        }
        match u64::from_str_radix(hash, 16) {
            Ok(prefix) => ZoneLookup::Definition { hash_prefix: prefix.to_be_bytes() },
            Err(_) => ZoneLookup::Unknown,
        }
    }

    /// Returns the zone with a stored name from the bytes of its definition, which is evaluated
    /// once; `None` if the definition defines nothing.
    #[must_use]
    pub fn define_zone(&self, name: &str, definition: &[u8]) -> Option<Zone> {
        self.evaluate_definition(name, definition).map(|defined| defined.zone)
    }

    /// Returns a fingerprint of these zones, names with blanks between them: a different text when
    /// one of them has changed.
    #[must_use]
    pub fn fingerprint(&self, names: &str) -> Arc<str> {
        let mut known = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(like) = known.get(names) {
            return Arc::clone(like);
        }
        let one = |name: &str| match name.strip_prefix(DEFINITION_NAME_PREFIX) {
            // Another version of the system's zones may have one that is equal to the definition.
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

/// Returns a definition with its values read. Malformed parts are left out.
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
