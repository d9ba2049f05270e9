//! Components as iCalendar, in the manner of EDS and of others that share its library.
//!
//! Not a conforming serialiser: it writes only what [`Drawing::component`](super::event::Drawing) makes.

use super::card::Card;
use super::event::{Alarm, Clock, Component, Guest, Kind, Moment, Trigger};

/// Writes one component.
pub(super) fn component(it: &Component, card: &mut Card<'_>) {
    let name = match it.kind {
        Kind::Event => "VEVENT",
        Kind::Todo => "VTODO",
        Kind::Journal => "VJOURNAL",
    };
    card.put("BEGIN:").put(name).end();
    card.put("UID:").put(&it.uid).end();
    card.put("DTSTAMP:").put(&utc(it.created, it.habit)).end();
    times(it, card);
    card.put("SEQUENCE:").put(&it.sequence.to_string()).end();
    card.put("SUMMARY:").text(&it.subject).end();
    if let Some(location) = &it.location {
        card.put("LOCATION:").text(location).end();
    }
    if let Some(note) = &it.note {
        card.put("DESCRIPTION:").text(note).end();
    }
    if let Some(categories) = it.categories {
        card.put("CATEGORIES:").text(categories).end();
    }
    card.put("CLASS:").put(if it.private { "PRIVATE" } else { "PUBLIC" }).end();
    if it.kind == Kind::Event {
        let free = matches!(it.clock, Clock::Dates);
        card.put("TRANSP:").put(if free { "TRANSPARENT" } else { "OPAQUE" }).end();
    }
    state(it, card);
    guests(&it.guests, card);
    card.put("CREATED:").put(&utc(it.created, it.habit)).end();
    card.put("LAST-MODIFIED:").put(&utc(it.changed, it.habit >> 8)).end();
    extensions(it, card);
    if let Some(alarm) = &it.alarm {
        remind(alarm, it, card);
    }
    card.put("END:").put(name).end();
}

/// When it is, how it repeats, and instead of what.
fn times(it: &Component, card: &mut Card<'_>) {
    let end = it.start.plus(it.length);
    let alone = it.series.is_none() && it.instead_of.is_none();
    let due_alone = it.kind == Kind::Todo && alone && it.habit.is_multiple_of(3);
    if !due_alone {
        moment("DTSTART", it.start, &it.clock, card);
    }
    match it.kind {
        Kind::Event if it.habit % 16 == 1 => {
            let length = match it.length {
                length if length % 1_440 == 0 => format!("P{}D", length / 1_440),
                length => format!("PT{length}M"),
            };
            card.put("DURATION:").put(&length).end();
        }
        Kind::Event => moment("DTEND", end, &it.clock, card),
        Kind::Todo => moment("DUE", end, &it.clock, card),
        Kind::Journal => {}
    }
    if let Some(usual) = it.instead_of {
        moment("RECURRENCE-ID", usual, &it.clock, card);
    }
    let Some(series) = &it.series else { return };
    card.put("RRULE:").put(&series.every.rule(it.start.day));
    match series.end {
        Some((_, last)) if series.until => {
            card.put(";UNTIL=").put(&until(last, &it.clock));
        }
        Some((count, _)) => {
            card.put(";COUNT=").put(&count.to_string());
        }
        None => {}
    }
    card.end();
    for &exception in &series.exceptions {
        moment("EXDATE", exception, &it.clock, card);
    }
}

/// A property whose value is a time.
fn moment(property: &str, at: Moment, clock: &Clock, card: &mut Card<'_>) {
    card.put(property);
    match clock {
        Clock::Dates => card.put(";VALUE=DATE:").put(&at.day.to_string()),
        Clock::Floating => card.put(":").put(&local(at)),
        Clock::Utc => card.put(":").put(&local(at)).put("Z"),
        Clock::Zoned { id, .. } => card.put(";TZID=").put(id).put(":").put(&local(at)),
    };
    card.end();
}

fn local(at: Moment) -> String {
    format!("{}T{:02}{:02}00", at.day, at.minute / 60, at.minute % 60)
}

/// A time of UTC whose seconds are some number.
fn utc(at: Moment, seconds: u64) -> String {
    format!("{}T{:02}{:02}{:02}Z", at.day, at.minute / 60, at.minute % 60, seconds % 60)
}

/// The time in UTC; of a floating one, and of a day, as if it were there.
fn in_utc(at: Moment, clock: &Clock) -> Moment {
    match clock {
        Clock::Zoned { zone, .. } => at.plus(-zone.offset(at.day)),
        _ => at,
    }
}

/// The last occurrence, as a rule has to say it: UTC where there is a zone, else as the start is said.
fn until(last: Moment, clock: &Clock) -> String {
    match clock {
        Clock::Dates => last.day.to_string(),
        Clock::Floating => local(last),
        _ => utc(in_utc(last, clock), 0),
    }
}

/// How far it is.
fn state(it: &Component, card: &mut Card<'_>) {
    if let Some(status) = it.status {
        card.put("STATUS:").put(status).end();
    }
    if let Some(priority) = it.priority {
        card.put("PRIORITY:").put(&priority.to_string()).end();
    }
    if it.kind != Kind::Todo {
        return;
    }
    match it.status {
        Some("COMPLETED") => {
            card.put("PERCENT-COMPLETE:100").end();
            let at = in_utc(it.start, &it.clock).plus(it.length / 2);
            card.put("COMPLETED:").put(&utc(at, it.habit >> 4)).end();
        }
        Some("IN-PROCESS") => {
            card.put("PERCENT-COMPLETE:").put(&it.done.to_string()).end();
        }
        _ => {}
    }
}

fn guests(guests: &[Guest], card: &mut Card<'_>) {
    let Some((host, asked)) = guests.split_first() else { return };
    card.put("ORGANIZER;CN=\"").put(&host.name).put("\":mailto:").put(&host.address).end();
    for guest in asked {
        card.put("ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=").put(guest.answer);
        card.put(";RSVP=TRUE;CN=\"").put(&guest.name).put("\":mailto:").put(&guest.address).end();
    }
}

/// What programs leave for themselves.
fn extensions(it: &Component, card: &mut Card<'_>) {
    match it.habit >> 16 & 7 {
        0 | 1 => {
            let etag = format!("\"{:x}\"", it.habit >> 20);
            card.put("X-EVOLUTION-CALDAV-ETAG:").put(&etag).end();
        }
        2 => card.put("X-MOZ-GENERATION:").put(&(it.sequence + 1).to_string()).end(),
        3 => card.put("X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC").end(),
        4 => {
            let all_day = matches!(it.clock, Clock::Dates);
            card.put("X-MICROSOFT-CDO-ALLDAYEVENT:");
            card.put(if all_day { "TRUE" } else { "FALSE" }).end();
            card.put("X-MICROSOFT-CDO-BUSYSTATUS:BUSY").end();
        }
        _ => {}
    }
}

fn remind(alarm: &Alarm, it: &Component, card: &mut Card<'_>) {
    card.put("BEGIN:VALARM").end();
    let id = it.habit.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    card.put(&format!("X-EVOLUTION-ALARM-UID:{id:016x}{:016x}", it.habit)).end();
    card.put("ACTION:DISPLAY").end();
    card.put("DESCRIPTION:").text(&it.subject).end();
    match alarm.trigger {
        Trigger::Before(how_long) => card.put("TRIGGER;RELATED=START:").put(how_long),
        Trigger::AtEnd(how_long) => card.put("TRIGGER;RELATED=END:").put(how_long),
        Trigger::Absolute(minutes) => {
            let at = in_utc(it.start, &it.clock).plus(-minutes);
            card.put("TRIGGER;VALUE=DATE-TIME:").put(&utc(at, 0))
        }
    };
    card.end();
    if alarm.repeat {
        card.put("REPEAT:2").end();
        card.put("DURATION:PT5M").end();
    }
    if alarm.seen {
        let at = in_utc(it.start, &it.clock);
        card.put("ACKNOWLEDGED:").put(&utc(at, it.habit >> 12)).end();
    }
    card.put("END:VALARM").end();
}
