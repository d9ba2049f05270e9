//! The time zones of another system, to test a store after an update of the system zones.

use larder_time::zone::ZoneDatabase;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Time zones of another system: of the zones that random events name, some have other offsets and
/// the rest are missing.
pub(crate) fn foreign_zones() -> Arc<ZoneDatabase> {
    static ZONES: LazyLock<Arc<ZoneDatabase>> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        for (name, east) in [("Europe/Berlin", 5), ("America/New_York", -5), ("Etc/Elsewhere", 0)] {
            write_zone(dir.path(), name, east);
        }
        let database = jiff::tz::TimeZoneDatabase::from_dir(dir.path()).unwrap();
        let zones = ZoneDatabase::with_version(database, "elsewhere".to_string());
        // The files are read while the directory exists.
        let known =
            ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati"];
        let found = known.iter().filter(|name| zones.get(name).is_some()).count();
        assert_eq!(found, 2);
        Arc::new(zones)
    });
    Arc::clone(&ZONES)
}

/// Writes a time zone file (RFC 9636) with a fixed offset, in hours east of Greenwich.
fn write_zone(dir: &Path, name: &str, east: i32) {
    let mut file = Vec::new();
    for _block in ["of 32 bits", "of 64 bits"] {
        file.extend(b"TZif2");
        file.extend([0; 15]);
        for count in [0u32, 0, 0, 0, 1, 4] {
            file.extend(count.to_be_bytes());
        }
        file.extend((east * 3600).to_be_bytes());
        file.extend([0, 0]);
        file.extend(b"TST\0");
    }
    file.extend(format!("\nTST{}\n", -east).as_bytes());
    fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    fs::write(dir.join(name), file).unwrap();
}
