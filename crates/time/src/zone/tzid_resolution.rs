//! The meaning of a TZID: a known name, else the system zone with the behaviour of its definition,
//! else the definition itself.
//!
//! Nothing is guessed. A known name takes precedence over a definition that differs, because time
//! zone laws change, and a file keeps the old rules;
//! [`offset_differences`](super::offset_differences) finds where they differ. A name that differs
//! from a known one by case is another name in the file, which may define both: it means the known
//! zone unless the definition contradicts.

use super::equivalence::has_same_offsets;
use super::zone_names::{WINDOWS_ZONES, zone_of_display_name, zone_of_windows_name};
use super::{Zone, ZoneData};
use crate::civil::{CivilTime, DAY_SECONDS, Instant, first_day_of_year};
use jiff::tz::TimeZoneDatabase;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// The way a TZID was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZoneMatch {
    /// A name of UTC.
    Utc,
    /// A name of the tz database; in another case only without a contradicting definition.
    Name,
    /// A name of the tz database after a vendor's prefix.
    Prefix,
    /// A Windows zone name.
    Windows,
    /// A display name of Outlook.
    Display,
    /// A name of the tz database with `-` or `_` for a slash, without a contradicting definition.
    Separator,
    /// The definition behaves like a system zone.
    Behaviour,
    /// The definition itself.
    Definition,
    /// Unresolved: the time is floating, which deserves a warning.
    Floating,
}

/// The resolution of a TZID.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneResolution {
    /// The zone; `None` if the time is floating.
    pub zone: Option<Zone>,
    /// The way it was resolved.
    pub matched_by: ZoneMatch,
}

/// Opens a zone database.
type OpenDatabaseFn = Box<dyn FnOnce() -> TimeZoneDatabase + Send>;

/// The database of system zones.
#[derive(Debug)]
pub struct ZoneDatabase {
    /// Opened with the first name that is looked up: jiff lists all files of the zone data for it.
    database: LazyLock<TimeZoneDatabase, OpenDatabaseFn>,
    /// Zones looked up so far, by lower-case name.
    cache: Mutex<HashMap<String, Option<Zone>>>,
    names: OnceLock<Vec<String>>,
    data_version: OnceLock<String>,
}

/// Zones whose rules change often: their behaviour identifies a version of the data.
const PROBE_ZONES: [&str; 12] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Mexico_City",
    "America/Sao_Paulo",
    "Asia/Almaty",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Manila",
    "Europe/Kiev",
    "Pacific/Fiji",
];

/// Names of UTC.
const UTC_NAMES: [&str; 4] = ["UTC", "Etc/UTC", "GMT", "Z"];

impl ZoneDatabase {
    /// Wraps a zone database.
    #[must_use]
    pub fn new(database: TimeZoneDatabase) -> ZoneDatabase {
        ZoneDatabase::with_opener(move || database)
    }

    /// Wraps a zone database that is opened when the first zone is looked up in it.
    #[must_use]
    pub fn with_opener(open: impl FnOnce() -> TimeZoneDatabase + Send + 'static) -> ZoneDatabase {
        let (names, data_version) = (OnceLock::new(), OnceLock::new());
        let database = LazyLock::new(Box::new(open) as OpenDatabaseFn);
        ZoneDatabase { database, cache: Mutex::default(), names, data_version }
    }

    /// Wraps a zone database of known version, which saves probing its zones.
    #[must_use]
    pub fn with_version(database: TimeZoneDatabase, version: String) -> ZoneDatabase {
        ZoneDatabase::new(database).of_version(version)
    }

    /// Sets the version, which saves probing the zones.
    #[must_use]
    pub fn of_version(self, version: String) -> ZoneDatabase {
        ZoneDatabase { data_version: OnceLock::from(version), ..self }
    }

    /// Adds a zone that was read from the data of this database by its name.
    pub fn add(&self, zone: Zone) {
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(zone.name().to_ascii_lowercase(), Some(zone));
    }

    /// The database that is compiled in.
    #[must_use]
    pub fn open_bundled() -> Arc<ZoneDatabase> {
        static BUNDLED: LazyLock<Arc<ZoneDatabase>> =
            LazyLock::new(|| Arc::new(ZoneDatabase::new(TimeZoneDatabase::bundled())));
        Arc::clone(&BUNDLED)
    }

    /// Returns the zone with this name of the tz database, in any case; aliases keep their names.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Zone> {
        if UTC_NAMES.iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
            return Some(Zone::UTC);
        }
        let key = name.to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
        let is_name = !key.is_empty() && key.len() < 64 && key.chars().all(plain);
        if !is_name || matches!(&*key, "local" | "localtime" | "posixrules" | "factory") {
            return None;
        }
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(&key) {
            return zone.clone();
        }
        let zone = self.database.get(&key).ok().map(|zone| {
            let name = zone.iana_name().unwrap_or(name).to_string();
            Zone::from_system(zone, &name)
        });
        // Names come from files, so the cache of unknown names is bounded.
        if zone.is_some() || known.len() < 4_096 {
            known.insert(key, zone.clone());
        }
        zone
    }

    /// Resolves a TZID for items with occurrences in `[from, until)`, given its definition in the
    /// file and the X-LIC-LOCATION of the definition.
    #[must_use]
    pub fn resolve(
        &self,
        tzid: &str,
        own: Option<&Zone>,
        lic_location: Option<&str>,
        from: Instant,
        until: Instant,
    ) -> ZoneResolution {
        let tzid = tzid.trim().trim_matches('"');
        // A definition without observances does not count.
        let says = |own: &&Zone| own.vtimezone().is_none_or(|of| !of.observances.is_empty());
        let own = own.filter(says);
        let agrees = |zone: &Zone| own.is_none_or(|own| has_same_offsets(own, zone, from, until));
        if let Some((zone, how)) = self.find_by_name(tzid)
            && (how != ZoneMatch::Name || zone.name() == tzid || agrees(&zone))
        {
            return ZoneResolution { zone: Some(zone), matched_by: how };
        }
        if let Some(zone) = self.find_with_slash(tzid).find(agrees) {
            return ZoneResolution { zone: Some(zone), matched_by: ZoneMatch::Separator };
        }
        let Some(own) = own else {
            return ZoneResolution { zone: None, matched_by: ZoneMatch::Floating };
        };
        // An incompletely evaluated definition equals no zone.
        let same = own.is_complete().then(|| self.find_equivalent(own, lic_location, from, until));
        match same.flatten() {
            Some(zone) => ZoneResolution { zone: Some(zone), matched_by: ZoneMatch::Behaviour },
            None => ZoneResolution { zone: Some(own.clone()), matched_by: ZoneMatch::Definition },
        }
    }

    /// Resolves by name alone, if this is certain.
    fn find_by_name(&self, tzid: &str) -> Option<(Zone, ZoneMatch)> {
        if UTC_NAMES.iter().any(|utc| utc.eq_ignore_ascii_case(tzid)) {
            return Some((Zone::UTC, ZoneMatch::Utc));
        }
        let found = |name: Option<&str>, how| Some((self.get(name?)?, how));
        found(Some(tzid), ZoneMatch::Name)
            .or_else(|| Some((self.find_behind_prefix(tzid)?, ZoneMatch::Prefix)))
            .or_else(|| found(zone_of_windows_name(tzid), ZoneMatch::Windows))
            .or_else(|| found(zone_of_display_name(tzid), ZoneMatch::Display))
    }

    /// Returns the zone of the longest suffix of one to three parts that is a name.
    fn find_behind_prefix(&self, tzid: &str) -> Option<Zone> {
        if !["/", "posix/", "right/", "Tzfile/"].iter().any(|prefix| tzid.starts_with(prefix)) {
            return None;
        }
        let slashes: Vec<usize> = tzid.match_indices('/').map(|(at, _)| at).collect();
        let longest_first = slashes.iter().rev().take(3).rev();
        let tails = longest_first.filter_map(|at| tzid.get(at + 1..));
        tails.filter(|tail| !tail.is_empty()).find_map(|tail| self.get(tail))
    }

    fn find_with_slash<'a>(&'a self, tzid: &'a str) -> impl Iterator<Item = Zone> + 'a {
        let places = tzid.match_indices(['-', '_']).take(4);
        places.filter_map(|(at, mark)| {
            let (before, after) = (tzid.get(..at)?, tzid.get(at + mark.len()..)?);
            self.get(&format!("{before}/{after}"))
        })
    }

    /// Returns a system zone with the behaviour of a definition: the zone named by X-LIC-LOCATION,
    /// else a zone that represents a country in the table of Windows names, else any other zone.
    #[must_use]
    pub fn find_equivalent(
        &self,
        own: &Zone,
        lic_location: Option<&str>,
        from: Instant,
        until: Instant,
    ) -> Option<Zone> {
        let known = WINDOWS_ZONES.iter().map(|(_, name)| *name);
        let others = self.zone_names().iter().map(String::as_str);
        let candidates = lic_location.into_iter().chain(known).chain(others);
        let mut zones = candidates.filter_map(|name| self.get(name));
        zones.find(|zone| has_same_offsets(own, zone, from, until))
    }

    /// All names, sorted.
    fn zone_names(&self) -> &[String] {
        self.names.get_or_init(|| {
            let mut names: Vec<String> =
                self.database.available().map(|name| name.as_str().to_string()).collect();
            names.sort_unstable();
            names
        })
    }

    /// A text that changes with the system's zone data: a hash of the behaviour of frequently
    /// changed zones. It is a hint, because it misses changes of other zones;
    /// [`ZoneDatabase::fingerprint`] is exact for one zone.
    #[must_use]
    pub fn data_version(&self) -> &str {
        self.data_version.get_or_init(|| {
            let probes = PROBE_ZONES.iter().filter_map(|name| self.get(name));
            let hashes: Vec<String> = probes.map(|zone| self.fingerprint(&zone)).collect();
            format!("{:016x}", fnv1a_hash(hashes.join(" ").as_bytes()))
        })
    }

    /// Returns a text that changes if the behaviour of a zone in the years 1 to 2100 changes.
    #[must_use]
    pub fn fingerprint(&self, zone: &Zone) -> String {
        if matches!(zone.0, ZoneData::Utc) {
            return "utc".to_string();
        }
        let end = Instant::from_seconds_clamped(first_day_of_year(2101) * DAY_SECONDS);
        let begin = Instant::from_seconds_clamped(CivilTime::MIN.seconds());
        let mut bytes = zone.offset(begin).to_le_bytes().to_vec();
        for (at, offset) in zone.transitions(begin, end) {
            bytes.extend(at.seconds().to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        format!("{:016x}", fnv1a_hash(&bytes))
    }
}

/// FNV-1a, 64 bits: detects changes, not forgery.
fn fnv1a_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
