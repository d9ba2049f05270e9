//! Dates, times and durations as text: for lists, in words, and as RFC 3339.
//!
//! An instant is written with the UTC offset of the user's time zone; a date and a floating time
//! are written without one. Separate from `larder_query::local_time`, which computes the times.

use larder_date_phrase::Language;
use larder_query::local_time::LocalTimeSpan;
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, Instant};
use larder_time::zone::Zone;

/// Formats the start of a time span as RFC 3339: `2026-03-06T09:30:00+01:00`. A date is
/// `2026-03-06`, and a floating time has no offset.
#[must_use]
pub fn format_start(span: &LocalTimeSpan) -> String {
    format_time(span, span.from, span.start_offset)
}

/// Formats the end of a time span as [`format_start`] does its start; for whole days, the end is
/// the day after the last.
#[must_use]
pub fn format_end(span: &LocalTimeSpan) -> String {
    format_time(span, span.to, span.end_offset)
}

/// Formats the due time of a task, which is its end; of whole days, the last day.
#[must_use]
pub fn format_due(span: &LocalTimeSpan) -> String {
    if span.all_day { format_date(Date::from_day_number(span.due_day())) } else { format_end(span) }
}

fn format_time(span: &LocalTimeSpan, civil: CivilTime, offset: i32) -> String {
    match (span.all_day, span.floating) {
        (true, _) => format_date(civil.date()),
        (false, true) => format_civil(civil),
        (false, false) => format!("{}{}", format_civil(civil), format_offset(offset)),
    }
}

/// Formats the start of a time span for a list: `2026-03-06 09:30`, or the date alone.
#[must_use]
pub fn format_list_start(span: &LocalTimeSpan) -> String {
    match span.all_day {
        true => format_date(span.from.date()),
        false => format!("{} {}", format_date(span.from.date()), format_clock(span.from)),
    }
}

/// Returns the due time of a task in words: `Fri 6 Mar 2026, 17:00`.
#[must_use]
pub fn describe_due(span: &LocalTimeSpan, language: &Language) -> String {
    let day = language.date(Date::from_day_number(span.due_day()));
    if span.all_day { day } else { format!("{day}, {}", format_clock(span.to)) }
}

/// Returns a time span in words: `Fri 6 Mar 2026, 09:30-10:00 (30 minutes)`.
#[must_use]
pub fn describe_span(span: &LocalTimeSpan, language: &Language) -> String {
    let day_count = span.last_day() - span.from.day_number() + 1;
    let first = language.date(span.from.date());
    let last = language.date(Date::from_day_number(span.last_day()));
    match (span.all_day, day_count) {
        (true, 1) => format!("{first}, all day"),
        (true, _) => format!("{first} to {last} ({})", describe_duration(day_count * DAY_SECONDS)),
        (false, _) if span.seconds() == 0 => format!("{first}, {}", format_clock(span.from)),
        (false, 1) => {
            let (from, to) = (format_clock(span.from), format_end_clock(span.to));
            format!("{first}, {from}-{to} ({})", describe_duration(span.seconds()))
        }
        (false, _) => {
            let (from, to) = (format_clock(span.from), format_clock(span.to));
            // The date of the end itself: midnight belongs to the day that it begins.
            let last = language.date(span.to.date());
            format!("{first}, {from} to {last}, {to} ({})", describe_duration(span.seconds()))
        }
    }
}

/// Formats an instant as RFC 3339, in a time zone.
#[must_use]
pub fn format_instant(instant: Instant, local_zone: &Zone) -> String {
    let offset = format_offset(local_zone.offset(instant));
    format!("{}{offset}", format_civil(local_zone.to_civil(instant)))
}

/// Formats the time of day: `09:30`.
#[must_use]
pub fn format_clock(civil: CivilTime) -> String {
    let second = civil.second_of_day();
    format!("{:02}:{:02}", second / 3600, second / 60 % 60)
}

/// Formats the time of day of an end: `09:30`, where midnight is the end of the day, `24:00`.
#[must_use]
pub fn format_end_clock(civil: CivilTime) -> String {
    if civil.second_of_day() == 0 { "24:00".into() } else { format_clock(civil) }
}

/// Formats a date: `2026-03-06`.
#[must_use]
pub fn format_date(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn format_civil(civil: CivilTime) -> String {
    let second = civil.second_of_day() % 60;
    format!("{}T{}:{second:02}", format_date(civil.date()), format_clock(civil))
}

/// Formats a UTC offset: `+01:00`, or `Z`. RFC 3339 has no seconds there.
fn format_offset(offset: i32) -> String {
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    match minutes {
        0 => "Z".into(),
        _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

/// Returns a duration in words: `1 hour 30 minutes`.
#[must_use]
pub fn describe_duration(seconds: i64) -> String {
    let units = [
        ("week", 7 * DAY_SECONDS),
        ("day", DAY_SECONDS),
        ("hour", 3600),
        ("minute", 60),
        ("second", 1),
    ];
    let mut remaining = seconds.max(0);
    let mut parts = Vec::new();
    for (noun, size) in units {
        // Weeks only if the duration is a whole number of them: "10 days", not "1 week 3 days".
        let number = if noun == "week" && remaining % size != 0 { 0 } else { remaining / size };
        remaining -= number * size;
        if number > 0 {
            parts.push(format!("{number} {noun}{}", if number == 1 { "" } else { "s" }));
        }
    }
    if parts.is_empty() { "no time".into() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_described_in_their_largest_units() {
        let check = |seconds: i64, expect: &str| assert_eq!(describe_duration(seconds), expect);
        check(0, "no time");
        check(-5, "no time");
        check(60, "1 minute");
        check(5400, "1 hour 30 minutes");
        check(86_400 * 7, "1 week");
        check(86_400 * 10, "10 days");
        check(86_400 + 1, "1 day 1 second");
    }
}
