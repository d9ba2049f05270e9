//! Writes components as iCalendar, in the style of EDS and other programs with libical.
//!
//! It supports only the values that the generator produces.

use super::event::{
    AlarmTrigger, FakeAlarm, FakeAttendee, FakeComponent, FakeComponentType, TimeForm, WallTime,
};
use super::line_writer::LineWriter;

/// Writes a component.
pub(super) fn write_component(it: &FakeComponent, lines: &mut LineWriter<'_>) {
    let name = match it.component_type {
        FakeComponentType::Event => "VEVENT",
        FakeComponentType::Todo => "VTODO",
        FakeComponentType::Journal => "VJOURNAL",
    };
    lines.put("BEGIN:").put(name).end_line();
    lines.put("UID:").put(&it.uid).end_line();
    lines.put("DTSTAMP:").put(&format_utc_time(it.created, it.style_bits)).end_line();
    write_time_properties(it, lines);
    lines.put("SEQUENCE:").put(&it.sequence.to_string()).end_line();
    lines.put("SUMMARY:").put_text(&it.summary).end_line();
    if let Some(location) = &it.location {
        lines.put("LOCATION:").put_text(location).end_line();
    }
    if let Some(note) = &it.note {
        lines.put("DESCRIPTION:").put_text(note).end_line();
    }
    if let Some(categories) = it.categories {
        lines.put("CATEGORIES:").put_text(categories).end_line();
    }
    lines.put("CLASS:").put(if it.is_private { "PRIVATE" } else { "PUBLIC" }).end_line();
    if it.component_type == FakeComponentType::Event {
        let free = matches!(it.time_form, TimeForm::Date);
        lines.put("TRANSP:").put(if free { "TRANSPARENT" } else { "OPAQUE" }).end_line();
    }
    write_status(it, lines);
    write_attendees(&it.attendees, lines);
    lines.put("CREATED:").put(&format_utc_time(it.created, it.style_bits)).end_line();
    lines
        .put("LAST-MODIFIED:")
        .put(&format_utc_time(it.last_modified, it.style_bits >> 8))
        .end_line();
    write_extensions(it, lines);
    if let Some(alarm) = &it.alarm {
        write_alarm(alarm, it, lines);
    }
    lines.put("END:").put(name).end_line();
}

/// Writes the times, the recurrence and the recurrence-id.
fn write_time_properties(it: &FakeComponent, lines: &mut LineWriter<'_>) {
    let end = it.start.add_minutes(it.length_minutes);
    let is_single = it.series.is_none() && it.recurrence_id.is_none();
    let has_due_only = it.component_type == FakeComponentType::Todo
        && is_single
        && it.style_bits.is_multiple_of(3);
    if !has_due_only {
        write_time_property("DTSTART", it.start, &it.time_form, lines);
    }
    match it.component_type {
        FakeComponentType::Event if it.style_bits % 16 == 1 => {
            let length = match it.length_minutes {
                length if length % 1_440 == 0 => format!("P{}D", length / 1_440),
                length => format!("PT{length}M"),
            };
            lines.put("DURATION:").put(&length).end_line();
        }
        FakeComponentType::Event => write_time_property("DTEND", end, &it.time_form, lines),
        FakeComponentType::Todo => write_time_property("DUE", end, &it.time_form, lines),
        FakeComponentType::Journal => {}
    }
    if let Some(original) = it.recurrence_id {
        write_time_property("RECURRENCE-ID", original, &it.time_form, lines);
    }
    let Some(series) = &it.series else { return };
    lines.put("RRULE:").put(&series.pattern.to_rrule(it.start.day));
    match series.end {
        Some((_, last)) if series.has_until => {
            lines.put(";UNTIL=").put(&format_until_value(last, &it.time_form));
        }
        Some((count, _)) => {
            lines.put(";COUNT=").put(&count.to_string());
        }
        None => {}
    }
    lines.end_line();
    for &exception in &series.exceptions {
        write_time_property("EXDATE", exception, &it.time_form, lines);
    }
}

/// Writes a property whose value is a time.
fn write_time_property(property: &str, at: WallTime, clock: &TimeForm, lines: &mut LineWriter<'_>) {
    lines.put(property);
    match clock {
        TimeForm::Date => lines.put(";VALUE=DATE:").put(&at.day.to_string()),
        TimeForm::Floating => lines.put(":").put(&format_local_time(at)),
        TimeForm::Utc => lines.put(":").put(&format_local_time(at)).put("Z"),
        TimeForm::Zoned { id, .. } => {
            lines.put(";TZID=").put(id).put(":").put(&format_local_time(at))
        }
    };
    lines.end_line();
}

fn format_local_time(at: WallTime) -> String {
    format!("{}T{:02}{:02}00", at.day, at.minute / 60, at.minute % 60)
}

/// Formats a UTC time; its seconds are `seconds` modulo 60.
fn format_utc_time(at: WallTime, seconds: u64) -> String {
    format!("{}T{:02}{:02}{:02}Z", at.day, at.minute / 60, at.minute % 60, seconds % 60)
}

/// Converts a time to UTC. Floating times and dates are taken as UTC.
fn to_utc(at: WallTime, clock: &TimeForm) -> WallTime {
    match clock {
        TimeForm::Zoned { zone, .. } => at.add_minutes(-zone.utc_offset_minutes(at.day)),
        _ => at,
    }
}

/// Formats the last occurrence for UNTIL: in UTC with a time zone, else in the form of the start.
fn format_until_value(last: WallTime, clock: &TimeForm) -> String {
    match clock {
        TimeForm::Date => last.day.to_string(),
        TimeForm::Floating => format_local_time(last),
        _ => format_utc_time(to_utc(last, clock), 0),
    }
}

/// Writes the status, priority and progress.
fn write_status(it: &FakeComponent, lines: &mut LineWriter<'_>) {
    if let Some(status) = it.status {
        lines.put("STATUS:").put(status).end_line();
    }
    if let Some(priority) = it.priority {
        lines.put("PRIORITY:").put(&priority.to_string()).end_line();
    }
    if it.component_type != FakeComponentType::Todo {
        return;
    }
    match it.status {
        Some("COMPLETED") => {
            lines.put("PERCENT-COMPLETE:100").end_line();
            let at = to_utc(it.start, &it.time_form).add_minutes(it.length_minutes / 2);
            lines.put("COMPLETED:").put(&format_utc_time(at, it.style_bits >> 4)).end_line();
        }
        Some("IN-PROCESS") => {
            lines.put("PERCENT-COMPLETE:").put(&it.percent_complete.to_string()).end_line();
        }
        _ => {}
    }
}

fn write_attendees(guests: &[FakeAttendee], lines: &mut LineWriter<'_>) {
    let Some((organizer, attendees)) = guests.split_first() else { return };
    lines
        .put("ORGANIZER;CN=\"")
        .put(&organizer.name)
        .put("\":mailto:")
        .put(&organizer.address)
        .end_line();
    for guest in attendees {
        lines
            .put("ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=")
            .put(guest.participation_status);
        lines
            .put(";RSVP=TRUE;CN=\"")
            .put(&guest.name)
            .put("\":mailto:")
            .put(&guest.address)
            .end_line();
    }
}

/// Writes the extension properties of real programs.
fn write_extensions(it: &FakeComponent, lines: &mut LineWriter<'_>) {
    match it.style_bits >> 16 & 7 {
        0 | 1 => {
            let etag = format!("\"{:x}\"", it.style_bits >> 20);
            lines.put("X-EVOLUTION-CALDAV-ETAG:").put(&etag).end_line();
        }
        2 => lines.put("X-MOZ-GENERATION:").put(&(it.sequence + 1).to_string()).end_line(),
        3 => lines.put("X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC").end_line(),
        4 => {
            let all_day = matches!(it.time_form, TimeForm::Date);
            lines.put("X-MICROSOFT-CDO-ALLDAYEVENT:");
            lines.put(if all_day { "TRUE" } else { "FALSE" }).end_line();
            lines.put("X-MICROSOFT-CDO-BUSYSTATUS:BUSY").end_line();
        }
        _ => {}
    }
}

fn write_alarm(alarm: &FakeAlarm, it: &FakeComponent, lines: &mut LineWriter<'_>) {
    lines.put("BEGIN:VALARM").end_line();
    let id = it.style_bits.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    lines.put(&format!("X-EVOLUTION-ALARM-UID:{id:016x}{:016x}", it.style_bits)).end_line();
    lines.put("ACTION:DISPLAY").end_line();
    lines.put("DESCRIPTION:").put_text(&it.summary).end_line();
    match alarm.trigger {
        AlarmTrigger::RelativeToStart(offset) => lines.put("TRIGGER;RELATED=START:").put(offset),
        AlarmTrigger::RelativeToEnd(offset) => lines.put("TRIGGER;RELATED=END:").put(offset),
        AlarmTrigger::Absolute(minutes) => {
            let at = to_utc(it.start, &it.time_form).add_minutes(-minutes);
            lines.put("TRIGGER;VALUE=DATE-TIME:").put(&format_utc_time(at, 0))
        }
    };
    lines.end_line();
    if alarm.has_repeat {
        lines.put("REPEAT:2").end_line();
        lines.put("DURATION:PT5M").end_line();
    }
    if alarm.is_acknowledged {
        let at = to_utc(it.start, &it.time_form);
        lines.put("ACKNOWLEDGED:").put(&format_utc_time(at, it.style_bits >> 12)).end_line();
    }
    lines.put("END:VALARM").end_line();
}
