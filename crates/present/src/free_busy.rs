//! Busy periods as an iCalendar object, for other calendar programs.
//!
//! Separate from `larder_query::busy_periods`, which computes the periods, because lists show them
//! without any iCalendar.

use larder_format::component::derive_uid;
use larder_format::writer::ComponentBuilder;
use larder_query::{BusyPeriod, TimeRange};
use larder_time::civil::Instant;
use larder_time::value::IcalDateTime;

/// Returns a calendar with one VFREEBUSY component (RFC 5545, 3.6.4) that lists the busy periods of
/// a time range.
#[must_use]
pub fn format_free_busy(
    busy_periods: &[BusyPeriod],
    time_range: &TimeRange,
    now: Instant,
) -> String {
    let stamp = |instant: Instant| {
        IcalDateTime { civil: instant.to_civil(0), is_date: false, is_utc: true }.to_string()
    };
    let mut component = ComponentBuilder::new("VFREEBUSY")
        .add_property("DTSTAMP", &[], &stamp(now))
        .add_property("DTSTART", &[], &stamp(time_range.from))
        .add_property("DTEND", &[], &stamp(time_range.to));
    for busy in busy_periods {
        let period = format!("{}/{}", stamp(busy.from), stamp(busy.to));
        let busy_type = if busy.tentative { "BUSY-TENTATIVE" } else { "BUSY" };
        component = component.add_property("FREEBUSY", &[("FBTYPE", busy_type)], &period);
    }
    let uid = derive_uid(component.clone().finish().as_bytes());
    let calendar = ComponentBuilder::new("VCALENDAR")
        .add_property("VERSION", &[], "2.0")
        .add_property("PRODID", &[], "-//Larder//EN");
    calendar.add_subcomponent(component.add_property("UID", &[], &uid)).finish()
}
