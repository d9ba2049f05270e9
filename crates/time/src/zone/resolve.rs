//! Which zone a TZID means: by its name where a name is known, by what its definition does, by the definition itself.
//!
//! Never by a guess. A name that is known wins over a definition that says otherwise, because rules change by
//! law and files do not; [`differences`](super::differences) tells where.

use super::behaviour::same_behaviour;
use super::names::{WINDOWS, shown, windows};
use super::{Kind, Zone};
use crate::civil::{Civil, DAY, Instant, year_start};
use jiff::tz::TimeZoneDatabase;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// How a zone was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// It is UTC.
    Utc,
    /// A name of the tz database.
    Name,
    /// A name of the tz database behind a vendor's prefix.
    Prefix,
    /// A name of Windows.
    Windows,
    /// A text that Outlook shows.
    Display,
    /// A name of the tz database with `-` or `_` for a slash, and no definition that disagrees.
    Separator,
    /// The definition does what a zone of the system does.
    Behaviour,
    /// The definition as it stands.
    Own,
    /// Not at all: the time is floating, and that deserves a warning.
    Floating,
}

/// The zone of a TZID.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The zone; none if the time is floating.
    pub zone: Option<Zone>,
    /// How it was found.
    pub how: How,
}

/// The system's zones.
#[derive(Debug)]
pub struct Zones {
    database: TimeZoneDatabase,
    /// Zones that were asked for, by their names in lower case.
    known: Mutex<HashMap<String, Option<Zone>>>,
    names: OnceLock<Vec<String>>,
    version: OnceLock<String>,
}

/// Zones whose rules change often, which tell one version of the data from another.
const PROBES: [&str; 12] = [
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
const UTC: [&str; 4] = ["UTC", "Etc/UTC", "GMT", "Z"];

impl Zones {
    /// The zones of a database.
    #[must_use]
    pub fn new(database: TimeZoneDatabase) -> Zones {
        let (names, version) = (OnceLock::new(), OnceLock::new());
        Zones { database, known: Mutex::default(), names, version }
    }

    /// The same for whom the version of the database is known: it takes no look at the zones then.
    #[must_use]
    pub fn with_version(database: TimeZoneDatabase, version: String) -> Zones {
        Zones { version: OnceLock::from(version), ..Zones::new(database) }
    }

    /// The zones that are built in.
    #[must_use]
    pub fn bundled() -> Arc<Zones> {
        static BUNDLED: LazyLock<Arc<Zones>> =
            LazyLock::new(|| Arc::new(Zones::new(TimeZoneDatabase::bundled())));
        Arc::clone(&BUNDLED)
    }

    /// The zone of a name of the tz database, in any case; aliases keep their name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Zone> {
        if UTC.iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
            return Some(Zone::UTC);
        }
        let key = name.to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
        let is_name = !key.is_empty() && key.len() < 64 && key.chars().all(plain);
        if !is_name || matches!(&*key, "local" | "localtime" | "posixrules" | "factory") {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(&key) {
            return zone.clone();
        }
        let zone = self.database.get(&key).ok().map(|zone| {
            let name = zone.iana_name().unwrap_or(name).to_string();
            Zone::system(zone, &name)
        });
        // Names come from files; a list of all that was ever asked for would have no end.
        if zone.is_some() || known.len() < 4_096 {
            known.insert(key, zone.clone());
        }
        zone
    }

    /// The zone that a TZID means for items whose occurrences lie in `[from, until)`, with what the file
    /// defines it to be, and that definition's X-LIC-LOCATION.
    #[must_use]
    pub fn resolve(
        &self,
        tzid: &str,
        own: Option<&Zone>,
        lic_location: Option<&str>,
        from: Instant,
        until: Instant,
    ) -> Resolved {
        let tzid = tzid.trim().trim_matches('"');
        if let Some((zone, how)) = self.by_name(tzid) {
            return Resolved { zone: Some(zone), how };
        }
        // A definition that says nothing is none.
        let says = |own: &&Zone| own.definition().is_none_or(|of| !of.observances.is_empty());
        let own = own.filter(says);
        let agrees = |zone: &Zone| own.is_none_or(|own| same_behaviour(own, zone, from, until));
        if let Some(zone) = self.with_slash(tzid).find(agrees) {
            return Resolved { zone: Some(zone), how: How::Separator };
        }
        let Some(own) = own else { return Resolved { zone: None, how: How::Floating } };
        // What is not followed to its end is like nothing else.
        let same = own.is_whole().then(|| self.by_behaviour(own, lic_location, from, until));
        match same.flatten() {
            Some(zone) => Resolved { zone: Some(zone), how: How::Behaviour },
            None => Resolved { zone: Some(own.clone()), how: How::Own },
        }
    }

    /// By the name alone, where there is no doubt.
    fn by_name(&self, tzid: &str) -> Option<(Zone, How)> {
        if UTC.iter().any(|utc| utc.eq_ignore_ascii_case(tzid)) {
            return Some((Zone::UTC, How::Utc));
        }
        let found = |name: Option<&str>, how| Some((self.get(name?)?, how));
        found(Some(tzid), How::Name)
            .or_else(|| Some((self.behind_prefix(tzid)?, How::Prefix)))
            .or_else(|| found(windows(tzid), How::Windows))
            .or_else(|| found(shown(tzid), How::Display))
    }

    /// The longest tail of one to three parts that is a name.
    fn behind_prefix(&self, tzid: &str) -> Option<Zone> {
        if !["/", "posix/", "right/", "Tzfile/"].iter().any(|prefix| tzid.starts_with(prefix)) {
            return None;
        }
        let slashes: Vec<usize> = tzid.match_indices('/').map(|(at, _)| at).collect();
        let longest_first = slashes.iter().rev().take(3).rev();
        let tails = longest_first.filter_map(|at| tzid.get(at + 1..));
        tails.filter(|tail| !tail.is_empty()).find_map(|tail| self.get(tail))
    }

    fn with_slash<'a>(&'a self, tzid: &'a str) -> impl Iterator<Item = Zone> + 'a {
        let places = tzid.match_indices(['-', '_']).take(4);
        places.filter_map(|(at, mark)| {
            let (before, after) = (tzid.get(..at)?, tzid.get(at + mark.len()..)?);
            self.get(&format!("{before}/{after}"))
        })
    }

    /// A zone of the system that does what a definition does: the one that X-LIC-LOCATION names, one that
    /// stands for a whole country in the table of Windows names, any other.
    #[must_use]
    pub fn by_behaviour(
        &self,
        own: &Zone,
        lic_location: Option<&str>,
        from: Instant,
        until: Instant,
    ) -> Option<Zone> {
        let known = WINDOWS.iter().map(|(_, name)| *name);
        let others = self.names().iter().map(String::as_str);
        let candidates = lic_location.into_iter().chain(known).chain(others);
        let mut zones = candidates.filter_map(|name| self.get(name));
        zones.find(|zone| same_behaviour(own, zone, from, until))
    }

    /// All names, sorted.
    fn names(&self) -> &[String] {
        self.names.get_or_init(|| {
            let mut names: Vec<String> =
                self.database.available().map(|name| name.as_str().to_string()).collect();
            names.sort_unstable();
            names
        })
    }

    /// A text that changes when the system's data does: a hash of what its liveliest zones do. It is a hint, as
    /// a change of a quiet zone does not show in it; [`Zones::fingerprint`] is exact, for one zone.
    #[must_use]
    pub fn version(&self) -> &str {
        self.version.get_or_init(|| {
            let probes = PROBES.iter().filter_map(|name| self.get(name));
            let hashes: Vec<String> = probes.map(|zone| self.fingerprint(&zone)).collect();
            format!("{:016x}", hash(hashes.join(" ").as_bytes()))
        })
    }

    /// A text that changes when what a zone does in the years 1 to 2100 does.
    #[must_use]
    pub fn fingerprint(&self, zone: &Zone) -> String {
        if matches!(zone.0, Kind::Utc) {
            return "utc".to_string();
        }
        let end = Instant::clamped(year_start(2101) * DAY);
        let begin = Instant::clamped(Civil::MIN.seconds());
        let mut bytes = zone.offset(begin).to_le_bytes().to_vec();
        for (at, offset) in zone.transitions(begin, end) {
            bytes.extend(at.seconds().to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        format!("{:016x}", hash(&bytes))
    }
}

/// FNV-1a, of 64 bits: to notice a change, not to withstand one who seeks the same hash.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
