//! Time zones of a made-up system, which are not those that are built in: what an update of the
//! system's zones is to a store.

use larder_time::zone::ZoneDatabase;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The zones of another system: of those that random events name some are elsewhere, and the rest
/// are not there.
pub(crate) fn zones() -> Arc<ZoneDatabase> {
    static ZONES: LazyLock<Arc<ZoneDatabase>> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        for (name, east) in [("Europe/Berlin", 5), ("America/New_York", -5), ("Etc/Elsewhere", 0)] {
            write_zone(dir.path(), name, east);
        }
        let database = jiff::tz::TimeZoneDatabase::from_dir(dir.path()).unwrap();
        let zones = ZoneDatabase::with_version(database, "elsewhere".to_string());
        // They are read while they are there.
        let known =
            ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati"];
        let found = known.iter().filter(|name| zones.get(name).is_some()).count();
        assert_eq!(found, 2);
        Arc::new(zones)
    });
    Arc::clone(&ZONES)
}

/// A zone as a file (RFC 9636): so many hours east of Greenwich, always.
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
