//! Components as iCalendar, in the style of EDS and other programs that use libical.
//!
//! The writer is not a conforming serialiser: it writes only generated components.

use super::event::{
    AlarmTrigger, FakeAlarm, FakeAttendee, FakeComponent, FakeComponentType, TimeForm, WallTime,
};
use super::line_writer::LineWriter;

/// Writes one component.
pub(super) fn write_component(it: &FakeComponent, card: &mut LineWriter<'_>) {
    let name = match it.component_type {
        FakeComponentType::Event => "VEVENT",
        FakeComponentType::Todo => "VTODO",
        FakeComponentType::Journal => "VJOURNAL",
    };
    card.put("BEGIN:").put(name).end_line();
    card.put("UID:").put(&it.uid).end_line();
    card.put("DTSTAMP:").put(&format_utc_time(it.created, it.style_bits)).end_line();
    write_time_properties(it, card);
    card.put("SEQUENCE:").put(&it.sequence.to_string()).end_line();
    card.put("SUMMARY:").put_text(&it.summary).end_line();
    if let Some(location) = &it.location {
        card.put("LOCATION:").put_text(location).end_line();
    }
    if let Some(note) = &it.note {
        card.put("DESCRIPTION:").put_text(note).end_line();
    }
    if let Some(categories) = it.categories {
        card.put("CATEGORIES:").put_text(categories).end_line();
    }
    card.put("CLASS:").put(if it.is_private { "PRIVATE" } else { "PUBLIC" }).end_line();
    if it.component_type == FakeComponentType::Event {
        let free = matches!(it.time_form, TimeForm::Date);
        card.put("TRANSP:").put(if free { "TRANSPARENT" } else { "OPAQUE" }).end_line();
    }
    write_status(it, card);
    write_attendees(&it.attendees, card);
    card.put("CREATED:").put(&format_utc_time(it.created, it.style_bits)).end_line();
    card.put("LAST-MODIFIED:")
        .put(&format_utc_time(it.last_modified, it.style_bits >> 8))
        .end_line();
    write_extensions(it, card);
    if let Some(alarm) = &it.alarm {
        write_alarm(alarm, it, card);
    }
    card.put("END:").put(name).end_line();
}

/// Writes the times, the recurrence and the RECURRENCE-ID.
fn write_time_properties(it: &FakeComponent, card: &mut LineWriter<'_>) {
    let end = it.start.add_minutes(it.length_minutes);
    let alone = it.series.is_none() && it.recurrence_id.is_none();
    let due_alone =
        it.component_type == FakeComponentType::Todo && alone && it.style_bits.is_multiple_of(3);
    if !due_alone {
        write_time_property("DTSTART", it.start, &it.time_form, card);
    }
    match it.component_type {
        FakeComponentType::Event if it.style_bits % 16 == 1 => {
            let length = match it.length_minutes {
                length if length % 1_440 == 0 => format!("P{}D", length / 1_440),
                length => format!("PT{length}M"),
            };
            card.put("DURATION:").put(&length).end_line();
        }
        FakeComponentType::Event => write_time_property("DTEND", end, &it.time_form, card),
        FakeComponentType::Todo => write_time_property("DUE", end, &it.time_form, card),
        FakeComponentType::Journal => {}
    }
    if let Some(usual) = it.recurrence_id {
        write_time_property("RECURRENCE-ID", usual, &it.time_form, card);
    }
    let Some(series) = &it.series else { return };
    card.put("RRULE:").put(&series.pattern.to_rrule(it.start.day));
    match series.end {
        Some((_, last)) if series.has_until => {
            card.put(";UNTIL=").put(&format_until_value(last, &it.time_form));
        }
        Some((count, _)) => {
            card.put(";COUNT=").put(&count.to_string());
        }
        None => {}
    }
    card.end_line();
    for &exception in &series.exceptions {
        write_time_property("EXDATE", exception, &it.time_form, card);
    }
}

/// Writes a property whose value is a time.
fn write_time_property(property: &str, at: WallTime, clock: &TimeForm, card: &mut LineWriter<'_>) {
    card.put(property);
    match clock {
        TimeForm::Date => card.put(";VALUE=DATE:").put(&at.day.to_string()),
        TimeForm::Floating => card.put(":").put(&format_local_time(at)),
        TimeForm::Utc => card.put(":").put(&format_local_time(at)).put("Z"),
        TimeForm::Zoned { id, .. } => {
            card.put(";TZID=").put(id).put(":").put(&format_local_time(at))
        }
    };
    card.end_line();
}

fn format_local_time(at: WallTime) -> String {
    format!("{}T{:02}{:02}00", at.day, at.minute / 60, at.minute % 60)
}

/// Formats a time as UTC, with these seconds.
fn format_utc_time(at: WallTime, seconds: u64) -> String {
    format!("{}T{:02}{:02}{:02}Z", at.day, at.minute / 60, at.minute % 60, seconds % 60)
}

/// Converts a time to UTC; floating times and dates are taken as UTC.
fn to_utc(at: WallTime, clock: &TimeForm) -> WallTime {
    match clock {
        TimeForm::Zoned { zone, .. } => at.add_minutes(-zone.utc_offset_minutes(at.day)),
        _ => at,
    }
}

/// Formats the value of UNTIL: in UTC if the start has a zone, otherwise in the form of the start.
fn format_until_value(last: WallTime, clock: &TimeForm) -> String {
    match clock {
        TimeForm::Date => last.day.to_string(),
        TimeForm::Floating => format_local_time(last),
        _ => format_utc_time(to_utc(last, clock), 0),
    }
}

/// Writes STATUS, PRIORITY and the progress of a task.
fn write_status(it: &FakeComponent, card: &mut LineWriter<'_>) {
    if let Some(status) = it.status {
        card.put("STATUS:").put(status).end_line();
    }
    if let Some(priority) = it.priority {
        card.put("PRIORITY:").put(&priority.to_string()).end_line();
    }
    if it.component_type != FakeComponentType::Todo {
        return;
    }
    match it.status {
        Some("COMPLETED") => {
            card.put("PERCENT-COMPLETE:100").end_line();
            let at = to_utc(it.start, &it.time_form).add_minutes(it.length_minutes / 2);
            card.put("COMPLETED:").put(&format_utc_time(at, it.style_bits >> 4)).end_line();
        }
        Some("IN-PROCESS") => {
            card.put("PERCENT-COMPLETE:").put(&it.percent_complete.to_string()).end_line();
        }
        _ => {}
    }
}

fn write_attendees(guests: &[FakeAttendee], card: &mut LineWriter<'_>) {
    let Some((host, asked)) = guests.split_first() else { return };
    card.put("ORGANIZER;CN=\"").put(&host.name).put("\":mailto:").put(&host.address).end_line();
    for guest in asked {
        card.put("ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=")
            .put(guest.participation_status);
        card.put(";RSVP=TRUE;CN=\"")
            .put(&guest.name)
            .put("\":mailto:")
            .put(&guest.address)
            .end_line();
    }
}

/// Writes the extension properties of real programs.
fn write_extensions(it: &FakeComponent, card: &mut LineWriter<'_>) {
    match it.style_bits >> 16 & 7 {
        0 | 1 => {
            let etag = format!("\"{:x}\"", it.style_bits >> 20);
            card.put("X-EVOLUTION-CALDAV-ETAG:").put(&etag).end_line();
        }
        2 => card.put("X-MOZ-GENERATION:").put(&(it.sequence + 1).to_string()).end_line(),
        3 => card.put("X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC").end_line(),
        4 => {
            let all_day = matches!(it.time_form, TimeForm::Date);
            card.put("X-MICROSOFT-CDO-ALLDAYEVENT:");
            card.put(if all_day { "TRUE" } else { "FALSE" }).end_line();
            card.put("X-MICROSOFT-CDO-BUSYSTATUS:BUSY").end_line();
        }
        _ => {}
    }
}

fn write_alarm(alarm: &FakeAlarm, it: &FakeComponent, card: &mut LineWriter<'_>) {
    card.put("BEGIN:VALARM").end_line();
    let id = it.style_bits.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    card.put(&format!("X-EVOLUTION-ALARM-UID:{id:016x}{:016x}", it.style_bits)).end_line();
    card.put("ACTION:DISPLAY").end_line();
    card.put("DESCRIPTION:").put_text(&it.summary).end_line();
    match alarm.trigger {
        AlarmTrigger::RelativeToStart(how_long) => card.put("TRIGGER;RELATED=START:").put(how_long),
        AlarmTrigger::RelativeToEnd(how_long) => card.put("TRIGGER;RELATED=END:").put(how_long),
        AlarmTrigger::Absolute(minutes) => {
            let at = to_utc(it.start, &it.time_form).add_minutes(-minutes);
            card.put("TRIGGER;VALUE=DATE-TIME:").put(&format_utc_time(at, 0))
        }
    };
    card.end_line();
    if alarm.has_repeat {
        card.put("REPEAT:2").end_line();
        card.put("DURATION:PT5M").end_line();
    }
    if alarm.is_acknowledged {
        let at = to_utc(it.start, &it.time_form);
        card.put("ACKNOWLEDGED:").put(&format_utc_time(at, it.style_bits >> 12)).end_line();
    }
    card.put("END:VALARM").end_line();
}
