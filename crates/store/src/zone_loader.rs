//! Time zones by their stored names.
//!
//! Separate from the resolver in `larder-extract`, which is pure: the definition of a zone that is
//! none of the system is read from the database.

use crate::read_transaction::ReadTransaction;
use larder_extract::{Schedule, ZoneLookup, ZoneResolver};
use larder_time::zone::Zone;
use rusqlite::OptionalExtension as _;

/// Returns the zone with a stored name; `None` if it is unknown.
pub(crate) fn load_zone(
    tx: &ReadTransaction<'_>,
    zones: &ZoneResolver,
    name: &str,
) -> Option<Zone> {
    let first = match zones.find_zone(name) {
        ZoneLookup::Known(zone) => return Some(zone),
        ZoneLookup::Unknown => return None,
        ZoneLookup::Definition { hash_prefix } => hash_prefix,
    };
    let (from, to) = ([&first[..], &[0; 24]].concat(), [&first[..], &[255; 24]].concat());
    let definition: Vec<u8> = tx
        .prepare_cached("SELECT bytes FROM zone_definition WHERE hash BETWEEN ?1 AND ?2")
        .and_then(|mut select| select.query_row((from, to), |row| row.get(0)).optional())
        .ok()??;
    zones.define_zone(name, &definition)
}

/// Reads a packed schedule; `None` if it is malformed, or its zone is unknown.
pub(crate) fn unpack_schedule(
    tx: &ReadTransaction<'_>,
    zones: &ZoneResolver,
    data: &[u8],
) -> Option<Schedule> {
    Schedule::unpack(data, &mut |name| load_zone(tx, zones, name))
}
