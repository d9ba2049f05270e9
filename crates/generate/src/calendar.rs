//! Writes whole calendars: the lines around the components, and the requested number of components.
//!
//! [`larder_generate`](super) documents the mix.

use super::FLUSH_BYTES;
use super::event::Population;
use super::ical_writer;
use super::line_writer::LineWriter;
use super::person_names::Culture;
use super::zones::{self, ZONES};
use std::io;

/// Writes a VCALENDAR of `n` components in the mix that [`larder_generate`](super) documents; with
/// `events`, VEVENTs only.
///
/// Equal arguments give equal bytes. Component `i` does not depend on `n`, so a smaller calendar,
/// without its last line, is a prefix of a larger one. Memory does not grow with `n`.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_calendar(n: u64, seed: u64, events: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let population = Population { cultures: Culture::load_all(), seed, events_only: events };
    write_vcalendar(
        "Calendar",
        out,
        |lines| ZONES.iter().for_each(|zone| zone.write_definition(zone.tzid, lines)),
        n,
        |index, lines| ical_writer::write_component(&population.draw_component(index), lines),
    )
}

/// Writes a VCALENDAR with `n` time-zone definitions and little else, like a file of a program that
/// adds the definitions again at each save. Of every 538 definitions, 318 are of the same zone.
/// With `events`, an event in its zone follows each definition.
///
/// # Errors
/// Any error of writing to `out`.
pub fn write_zone_definitions(
    n: u64,
    seed: u64,
    events: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let population = Population { cultures: Culture::load_all(), seed, events_only: events };
    write_vcalendar(
        "Zones",
        out,
        |_| (),
        n,
        |index, lines| {
            let (id, zone) = zones::nth_repeated_definition(index);
            zone.write_definition(&id, lines);
            if events {
                ical_writer::write_component(
                    &population.draw_event_in_zone(index, id, zone),
                    lines,
                );
            }
        },
    )
}

/// Writes a VCALENDAR of `n` parts, flushed in pieces.
fn write_vcalendar(
    name: &str,
    out: &mut dyn io::Write,
    head: impl Fn(&mut LineWriter<'_>),
    n: u64,
    part: impl Fn(u64, &mut LineWriter<'_>),
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(FLUSH_BYTES * 2);
    let mut scratch = Vec::new();
    let mut lines = LineWriter::new("\r\n", &mut scratch, &mut bytes);
    for line in ["BEGIN:VCALENDAR", "CALSCALE:GREGORIAN", "PRODID:-//Larder//measure generate//EN"]
    {
        lines.put(line).end_line();
    }
    lines.put("VERSION:2.0").end_line();
    lines.put("X-WR-CALNAME:").put(name).end_line();
    head(&mut lines);
    for index in 0..n {
        part(index, &mut LineWriter::new("\r\n", &mut scratch, &mut bytes));
        if bytes.len() >= FLUSH_BYTES {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    LineWriter::new("\r\n", &mut scratch, &mut bytes).put("END:VCALENDAR").end_line();
    out.write_all(&bytes)
}
