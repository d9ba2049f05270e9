//! Events, tasks and memos: their schedules.
//!
//! Converts the texts of `larder-format` to values of `larder-time`, in the time zones that their
//! names and definitions mean ([`ZoneResolver`]). One component is read at a time; the schedules of
//! a master and its overrides are combined in `series`.

mod alarm_reader;
mod date_time_reader;
mod schedule_parser;
mod zone_resolver;

pub use date_time_reader::ZoneUse;
pub(crate) use date_time_reader::{find_zone_uses, resolve_date_time};
pub(crate) use schedule_parser::parse_schedule;
pub use zone_resolver::{ZoneLookup, ZoneResolver};

use crate::calendar_context::CalendarContext;
use larder_format::component::Component;
use larder_time::civil::Instant;
use larder_time::series::ZoneReference;
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;

/// Returns whether the stored revision of a component is newer than an arriving one (RFC 5546,
/// 2.1.4 and 2.1.5). No SEQUENCE is 0. If the numbers are equal, the later DTSTAMP is newer;
/// without a DTSTAMP in both, neither is.
#[must_use]
pub fn is_newer_revision(stored: &[u8], arriving: &[u8]) -> bool {
    let revision = |bytes: &[u8]| {
        let component = Component::parse(bytes);
        let first = |name| {
            component.time_properties(name).next().map(|property| property.text.into_owned())
        };
        let number = first("SEQUENCE").and_then(|text| text.parse::<u64>().ok());
        let stamp = first("DTSTAMP").and_then(|text| IcalDateTime::parse(&text).ok());
        (number.unwrap_or(0), stamp.map(|stamp| stamp.civil.seconds()))
    };
    let ((stored_number, stored_stamp), (number, stamp)) = (revision(stored), revision(arriving));
    stored_number > number
        || stored_number == number
            && stored_stamp.zip(stamp).is_some_and(|(stored, arriving)| stored > arriving)
}

/// Returns the instant that a property of a component names: in `local_zone` if the property names
/// no other zone.
pub(crate) fn resolve_instant(
    zones: &ZoneResolver,
    component: &Component<'_>,
    calendar: &CalendarContext,
    property: &str,
    local_zone: &Zone,
) -> Option<Instant> {
    let property = component.time_properties(property).next()?;
    let date_time = resolve_date_time(&property, calendar, zones)?;
    Some(match date_time.zone_reference {
        ZoneReference::Zone(zone) if !date_time.is_date => zone.to_instant(date_time.civil),
        ZoneReference::Utc if !date_time.is_date => {
            Instant::from_seconds_clamped(date_time.civil.seconds())
        }
        _ => local_zone.to_instant(date_time.civil),
    })
}
