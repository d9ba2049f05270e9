//! Whole calendars: the properties and time zone definitions around the components.
//!
//! The crate documentation describes the mix.

use super::FLUSH_BYTES;
use super::event::Population;
use super::ical_writer;
use super::line_writer::LineWriter;
use super::person_names::Culture;
use super::zones::{self, ZONES};
use std::io;

/// Writes one VCALENDAR of `n` components in the mix that the documentation of the crate describes;
/// with `events`, all of them are VEVENTs.
///
/// The same arguments give the same bytes. Component `i` does not depend on `n`, so a smaller
/// calendar without its last line is a prefix of a larger one. Memory does not grow with `n`.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_calendar(n: u64, seed: u64, events: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let drawing = Population { cultures: Culture::load_all(), seed, events_only: events };
    write_vcalendar(
        "Calendar",
        out,
        |card| ZONES.iter().for_each(|zone| zone.write_definition(zone.tzid, card)),
        n,
        |index, card| ical_writer::write_component(&drawing.draw_component(index), card),
    )
}

/// Writes one VCALENDAR with `n` time zone definitions and little else, as written by a program
/// that adds the zones again at each save. Of every 538 definitions, 318 are of the same zone. With
/// `events`, each definition is followed by an event in its zone.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_zone_definitions(
    n: u64,
    seed: u64,
    events: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let drawing = Population { cultures: Culture::load_all(), seed, events_only: events };
    write_vcalendar(
        "Zones",
        out,
        |_| (),
        n,
        |index, card| {
            let (id, zone) = zones::nth_repeated_definition(index);
            zone.write_definition(&id, card);
            if events {
                ical_writer::write_component(&drawing.draw_event_in_zone(index, id, zone), card);
            }
        },
    )
}

/// Writes a VCALENDAR around `n` parts, piece by piece.
fn write_vcalendar(
    name: &str,
    out: &mut dyn io::Write,
    head: impl Fn(&mut LineWriter<'_>),
    n: u64,
    part: impl Fn(u64, &mut LineWriter<'_>),
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(FLUSH_BYTES * 2);
    let mut line = Vec::new();
    let mut card = LineWriter::new("\r\n", &mut line, &mut bytes);
    for own in ["BEGIN:VCALENDAR", "CALSCALE:GREGORIAN", "PRODID:-//Larder//measure generate//EN"] {
        card.put(own).end_line();
    }
    card.put("VERSION:2.0").end_line();
    card.put("X-WR-CALNAME:").put(name).end_line();
    head(&mut card);
    for index in 0..n {
        part(index, &mut LineWriter::new("\r\n", &mut line, &mut bytes));
        if bytes.len() >= FLUSH_BYTES {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    LineWriter::new("\r\n", &mut line, &mut bytes).put("END:VCALENDAR").end_line();
    out.write_all(&bytes)
}
