//! The clock, the time zone and the zone data of this machine, read with care.
//!
//! `TZ` and `TZDIR` name files, and a file may be a pipe or a device that never ends; the clock may
//! be set to a year that no calendar has. Separate from `context`, because the output formats times
//! without the context of a command.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The files of zone data are smaller.
const MAX_ZONE_FILE_BYTES: u64 = 1 << 20;
/// The deepest folder of zone data, and the largest number of its files that are looked at.
const MAX_ZONE_FOLDER_DEPTH: usize = 4;
const MAX_ZONE_FILES: usize = 10_000;

fn non_empty_env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_milliseconds() -> i64 {
    let since = |duration: std::time::Duration| i64::try_from(duration.as_millis());
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => since(after).unwrap_or(i64::MAX),
        Err(before) => since(before.duration()).map_or(i64::MIN, |before| -before),
    }
}

/// Returns the zone to which `/etc/localtime` is a link, with its name, unless the environment sets
/// another one. It is read without the database, which lists all files of the zone data when it
/// is opened: half a millisecond of each command.
pub(crate) fn linked_zone() -> Option<TimeZone> {
    if non_empty_env("TZ").is_some() || non_empty_env("TZDIR").is_some() {
        return None;
    }
    let link = fs::read_link("/etc/localtime").ok()?;
    let name = link.to_str()?.split_once("/zoneinfo/")?.1;
    if name.starts_with("posix/") || name.starts_with("right/") {
        return None;
    }
    let path = Path::new("/usr/share/zoneinfo").join(name);
    if !is_zone_file(&fs::metadata(&path).ok()?) {
        return None;
    }
    TimeZone::tzif(name, &fs::read(&path).ok()?).ok()
}

/// Returns the time zone of this machine; UTC if `TZ` or `TZDIR` name something else than zone
/// data.
pub(crate) fn local_zone() -> TimeZone {
    static LOCAL_ZONE: OnceLock<TimeZone> = OnceLock::new();
    LOCAL_ZONE
        .get_or_init(|| {
            if let Some(zone) = linked_zone() {
                return zone;
            }
            let zone = non_empty_env("TZ");
            let is_readable = zone.is_none_or(|zone| is_zone_setting(&zone));
            if is_readable && has_readable_zone_folder() {
                TimeZone::system()
            } else {
                TimeZone::unknown()
            }
        })
        .clone()
}

/// Returns the zone data of this machine; the data that is compiled in if `TZDIR` names something
/// else.
pub(crate) fn zone_database() -> TimeZoneDatabase {
    if has_readable_zone_folder() {
        // The database that the local zone is read from: to open another one lists all files again.
        jiff::tz::db().clone()
    } else {
        TimeZoneDatabase::bundled()
    }
}

/// Returns whether `TZ` is a name or the path of a small file.
fn is_zone_setting(zone: &OsStr) -> bool {
    let zone = zone.as_bytes();
    let path = Path::new(OsStr::from_bytes(zone.strip_prefix(b":").unwrap_or(zone)));
    match fs::metadata(path) {
        Ok(found) => !path.is_absolute() || is_zone_file(&found),
        Err(_) => true,
    }
}

fn is_zone_file(found: &fs::Metadata) -> bool {
    found.is_file() && found.len() <= MAX_ZONE_FILE_BYTES
}

/// Returns whether reading all files in the folder of `TZDIR` comes to an end.
fn has_readable_zone_folder() -> bool {
    static IS_READABLE: OnceLock<bool> = OnceLock::new();
    *IS_READABLE.get_or_init(|| {
        let folder = non_empty_env("TZDIR");
        let mut remaining = MAX_ZONE_FILES;
        folder.is_none_or(|folder| has_only_files(Path::new(&folder), 0, &mut remaining))
    })
}

fn has_only_files(folder: &Path, depth: usize, remaining: &mut usize) -> bool {
    // A folder that cannot be listed is not read.
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let Some(left) = remaining.checked_sub(1) else { return false };
        *remaining = left;
        let is_readable = match fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => {
                depth < MAX_ZONE_FOLDER_DEPTH && has_only_files(&entry.path(), depth + 1, remaining)
            }
            Ok(found) => is_zone_file(&found),
            Err(_) => true,
        };
        if !is_readable {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linked_zone_is_the_system_zone() {
        if let Some(zone) = linked_zone() {
            assert_eq!(zone.iana_name(), TimeZone::system().iana_name());
        }
    }
}
