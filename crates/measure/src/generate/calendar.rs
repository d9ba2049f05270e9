//! Whole calendars: what stands around the components, and how many of them there are.
//!
//! Apart from the head of [`generate`](super), which says what the mix is.

use super::FLUSH_AT;
use super::card::Card;
use super::event::Drawing;
use super::ical;
use super::names::Culture;
use super::zones::{self, ZONES};
use std::io;

/// Writes one VCALENDAR of `n` components in the mix that the head of [`generate`](super) describes; with `events`, all
/// of them are VEVENTs.
///
/// The same arguments give the same bytes. Component `i` does not depend on `n`, so but for its last line a smaller
/// calendar is the beginning of a larger one. Memory does not grow with `n`.
///
/// # Errors
/// Whatever `out` answers to a write.
pub fn calendar(n: u64, seed: u64, events: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let drawing = Drawing { cultures: Culture::all(), seed, events };
    write("Calendar", out, |card| ZONES.iter().for_each(|zone| zone.write(zone.id, card)), n, {
        |index, card| ical::component(&drawing.component(index), card)
    })
}

/// Writes one VCALENDAR with `n` definitions of time zones and little else, as a program leaves it that adds the zones again
/// each time it saves. Of 538 of them, 318 are one and the same. With `events`, there is an event for each.
///
/// # Errors
/// Whatever `out` answers to a write.
pub fn zones(n: u64, seed: u64, events: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let drawing = Drawing { cultures: Culture::all(), seed, events };
    write(
        "Zones",
        out,
        |_| (),
        n,
        |index, card| {
            let (id, zone) = zones::copy(index);
            zone.write(&id, card);
            if events {
                ical::component(&drawing.event_in(index, id, zone), card);
            }
        },
    )
}

/// The lines around `n` parts, in pieces.
fn write(
    name: &str,
    out: &mut dyn io::Write,
    head: impl Fn(&mut Card<'_>),
    n: u64,
    part: impl Fn(u64, &mut Card<'_>),
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(FLUSH_AT * 2);
    let mut line = Vec::new();
    let mut card = Card::new("\r\n", &mut line, &mut bytes);
    for own in ["BEGIN:VCALENDAR", "CALSCALE:GREGORIAN", "PRODID:-//Larder//measure generate//EN"] {
        card.put(own).end();
    }
    card.put("VERSION:2.0").end();
    card.put("X-WR-CALNAME:").put(name).end();
    head(&mut card);
    for index in 0..n {
        part(index, &mut Card::new("\r\n", &mut line, &mut bytes));
        if bytes.len() >= FLUSH_AT {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    Card::new("\r\n", &mut line, &mut bytes).put("END:VCALENDAR").end();
    out.write_all(&bytes)
}
