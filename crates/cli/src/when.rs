//! When something is, for people: `Fri 6 Mar 2026 12:30-13:30 Europe/Prague`.

use larder_time::civil::{Civil, DAY, Weekday};
use larder_time::series::{Clock, Start};
use larder_time::value::Nominal;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A day with its weekday: `Fri 6 Mar 2026`.
pub(crate) fn day(civil: Civil) -> String {
    let date = civil.date();
    let weekday = DAYS.get(usize::from(Weekday::of_day(civil.day()).number()));
    let month = MONTHS.get(usize::from(date.month) - 1);
    let (weekday, month) = (weekday.unwrap_or(&""), month.unwrap_or(&""));
    format!("{weekday} {} {month} {}", date.day, date.year)
}

fn time(civil: Civil) -> String {
    let second = civil.second_of_day();
    format!("{:02}:{:02}", second / 3600, second / 60 % 60)
}

/// When something begins and ends, with its zone; `None`: at no time.
pub(crate) fn shown(start: Option<&Start>, end: Option<&Start>) -> Option<String> {
    let Some(start) = start else {
        return end.map(|end| match end.date {
            true => format!("due {}", day(end.civil)),
            false => format!("due {} {} {}", day(end.civil), time(end.civil), zone(end)),
        });
    };
    let mut text = day(start.civil);
    let last = |end: &Start| if end.date { end.civil.plus(-DAY) } else { end.civil };
    if start.date {
        if let Some(end) = end.map(last).filter(|end| end.day() > start.civil.day()) {
            text.push_str(&format!(" to {}", day(end)));
        }
        return Some(text);
    }
    text.push_str(&format!(" {}", time(start.civil)));
    if let Some(end) = end {
        match end.civil.day() == start.civil.day() {
            true => text.push_str(&format!("-{}", time(end.civil))),
            false => text.push_str(&format!(" to {} {}", day(end.civil), time(end.civil))),
        }
    }
    Some(format!("{text} {}", zone(start)))
}

/// How long something takes: `1 h 30 min`.
pub(crate) fn length(length: Nominal) -> String {
    let seconds = length.seconds;
    let parts = [
        (length.days, "d"),
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count != 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if said.is_empty() { "0 min".to_string() } else { said.join(" ") }
}

fn zone(start: &Start) -> &str {
    match &start.clock {
        Clock::Utc => "UTC",
        Clock::Floating => "by any clock",
        Clock::Zone(zone) => zone.name(),
    }
}
