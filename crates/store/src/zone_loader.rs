//! Time zones by their stored names.
//!
//! Separate from the resolver in `larder-extract`, which is pure: the definition of a zone that is
//! none of the system is read from the database.

use crate::calendar_context_table;
use crate::error::DatabaseResult;
use crate::read_transaction::ReadTransaction;
use larder_extract::{Schedule, ZoneLookup, ZoneResolver};
use larder_time::zone::Zone;

/// Returns the zone with a stored name; `None` if it is unknown.
///
/// # Errors
/// The definition by name, if it does not match its checksum.
pub(crate) fn load_zone(
    tx: &ReadTransaction<'_>,
    zones: &ZoneResolver,
    name: &str,
) -> DatabaseResult<Option<Zone>> {
    let hash_prefix = match zones.find_zone(name) {
        ZoneLookup::Known(zone) => return Ok(Some(zone)),
        ZoneLookup::Unknown => return Ok(None),
        ZoneLookup::Definition { hash_prefix } => hash_prefix,
    };
    let definition = calendar_context_table::find_zone_by_hash_prefix(tx, &hash_prefix)?;
    Ok(definition.and_then(|definition| zones.define_zone(name, &definition)))
}

/// Reads a packed schedule; `None` if it is malformed, or its zone is unknown.
///
/// # Errors
/// See [`load_zone`].
pub(crate) fn unpack_schedule(
    tx: &ReadTransaction<'_>,
    zones: &ZoneResolver,
    data: &[u8],
) -> DatabaseResult<Option<Schedule>> {
    let mut failure = None;
    let schedule = Schedule::unpack(data, &mut |name| {
        load_zone(tx, zones, name).unwrap_or_else(|error| {
            failure = Some(error);
            None
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(schedule),
    }
}
