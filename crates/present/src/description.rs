//! Recurrence rules, alarms and time zones in words.
//!
//! A rule without a simple wording is shown as its RFC 5545 text, because a wrong description would
//! be worse. Separate from `local_time`, which formats times that are known.

use crate::local_time::{describe_duration, format_clock};
use larder_date_phrase::Language;
use larder_query::{Alarm, Kind, Trigger, ZoneUse};
use larder_time::civil::{DAY_SECONDS, Weekday};
use larder_time::value::{IcalDateTime, IcalDuration};
use larder_time::zone::{Zone, ZoneMatch};

/// The weekdays in rules, Monday first.
const WEEKDAY_CODES: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// Returns a rule in words: `every week on Monday, until Fri 6 Mar 2026`; or its text if it has no
/// simple wording.
#[must_use]
pub fn describe_rule(text: &str, local: &Zone, language: &Language) -> String {
    rule_in_words(text, local, language).unwrap_or_else(|| text.to_string())
}

/// The parts of a rule that have a wording.
#[derive(Default)]
struct DescribedRule<'a> {
    frequency: &'a str,
    interval: u32,
    days: Vec<(i32, Weekday)>,
    month_day: Option<i32>,
    month: Option<u8>,
    count: Option<u32>,
    until: Option<&'a str>,
}

impl<'a> DescribedRule<'a> {
    fn parse(text: &'a str) -> Option<DescribedRule<'a>> {
        let mut parts = DescribedRule { interval: 1, ..DescribedRule::default() };
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            match name.to_ascii_uppercase().as_str() {
                "FREQ" => parts.frequency = value,
                "INTERVAL" => {
                    parts.interval = value.parse().ok().filter(|interval| *interval > 0)?;
                }
                "BYDAY" => {
                    parts.days = value.split(',').map(parse_weekday).collect::<Option<Vec<_>>>()?;
                }
                "BYMONTHDAY" => parts.month_day = Some(value.parse().ok()?),
                "BYMONTH" => parts.month = Some(value.parse().ok()?),
                "COUNT" => parts.count = Some(value.parse().ok()?),
                "UNTIL" => parts.until = Some(value),
                "WKST" => {}
                _ => return None,
            }
        }
        Some(parts)
    }

    /// Returns the days within the period; `None` if there is no simple wording.
    fn describe_days(&self) -> Option<String> {
        let english = Language::default();
        let on = match (self.days.as_slice(), self.month_day) {
            ([], None) => None,
            ([], Some(-1)) => Some("the last day".to_string()),
            ([], Some(day @ 1..=31)) => Some(match (self.has_frequency("YEARLY"), self.month) {
                (true, Some(_)) => day.to_string(),
                _ => format!("the {}", format_ordinal(day)?),
            }),
            (days, None) if days.iter().all(|(number, _)| *number == 0) => {
                let names: Vec<&str> =
                    days.iter().map(|(_, day)| english.weekday_long(*day)).collect();
                let workdays = days.iter().map(|(_, day)| day.number_from_monday()).eq(0..5);
                Some(if workdays { "Monday to Friday".into() } else { join_names(&names) })
            }
            ([(number, day)], None) => {
                Some(format!("the {} {}", format_ordinal(*number)?, english.weekday_long(*day)))
            }
            _ => return None,
        };
        let numbered = self.days.iter().any(|(number, _)| *number != 0);
        let fits = match self.frequency.to_ascii_uppercase().as_str() {
            "DAILY" => on.is_none() && self.month.is_none(),
            "WEEKLY" => self.month_day.is_none() && !numbered && self.month.is_none(),
            "MONTHLY" => self.month.is_none() && (self.days.is_empty() || numbered),
            "YEARLY" => match self.month {
                None => on.is_none(),
                Some(_) => on.is_none() || self.days.is_empty() || numbered,
            },
            _ => false,
        };
        let month = self.month.map(|month| english.month_long(month));
        if !fits || month == Some("") {
            return None;
        }
        Some(match (on, month) {
            (None, None) => String::new(),
            (Some(on), None) => format!(" on {on}"),
            (None, Some(month)) => format!(" in {month}"),
            (Some(on), Some(month)) if self.days.is_empty() && !on.starts_with("the") => {
                format!(" on {on} {month}")
            }
            (Some(on), Some(month)) => format!(" on {on} of {month}"),
        })
    }

    fn has_frequency(&self, frequency: &str) -> bool {
        self.frequency.eq_ignore_ascii_case(frequency)
    }
}

fn rule_in_words(text: &str, local: &Zone, language: &Language) -> Option<String> {
    let parts = DescribedRule::parse(text)?;
    let unit = match parts.frequency.to_ascii_uppercase().as_str() {
        "DAILY" => "day",
        "WEEKLY" => "week",
        "MONTHLY" => "month",
        "YEARLY" => "year",
        _ => return None,
    };
    let mut words = match parts.interval {
        1 => format!("every {unit}"),
        interval => format!("every {interval} {unit}s"),
    };
    words.push_str(&parts.describe_days()?);
    match parts.count {
        Some(1) => words.push_str(", once"),
        Some(count) => words.push_str(&format!(", {count} times")),
        None => {}
    }
    if let Some(until) = parts.until {
        let stamp = IcalDateTime::parse(until).ok()?;
        let last = match stamp.is_utc {
            true => local.to_civil(Zone::UTC.to_instant(stamp.civil)),
            false => stamp.civil,
        };
        words.push_str(&format!(", until {}", language.date(last.date())));
    }
    Some(words)
}

/// Returns the text of a date or time in words: `Thu 5 Mar 2026, 09:30`. A time in UTC is converted
/// to the local zone.
#[must_use]
pub fn describe_stamp(text: &str, local: &Zone, language: &Language) -> String {
    let Ok(stamp) = IcalDateTime::parse(text) else { return text.to_string() };
    let at =
        if stamp.is_utc { local.to_civil(Zone::UTC.to_instant(stamp.civil)) } else { stamp.civil };
    match stamp.is_date {
        true => language.date(at.date()),
        false => format!("{}, {}", language.date(at.date()), format_clock(at)),
    }
}

/// Parses `2TU`, `-1FR`, `MO`.
fn parse_weekday(text: &str) -> Option<(i32, Weekday)> {
    let text = text.trim();
    let (number, name) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let place = WEEKDAY_CODES.iter().position(|day| name.eq_ignore_ascii_case(day))?;
    let number = if number.is_empty() { 0 } else { number.parse().ok()? };
    Some((number, *Weekday::ALL.get(place)?))
}

/// Returns `1st`, `2nd`, `last`.
fn format_ordinal(number: i32) -> Option<String> {
    Some(match number {
        -1 => "last".into(),
        1 | 21 | 31 => format!("{number}st"),
        2 | 22 => format!("{number}nd"),
        3 | 23 => format!("{number}rd"),
        4..=53 => format!("{number}th"),
        _ => return None,
    })
}

/// Returns `Monday, Wednesday and Friday`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns an alarm in words: `15 minutes before it begins`.
#[must_use]
pub fn describe_alarm(alarm: &Alarm, kind: Kind, local: &Zone, language: &Language) -> String {
    let ends = if kind.has_due_time() { "is due" } else { "ends" };
    let mut words = match alarm.trigger {
        Trigger::Start(offset) => describe_offset(offset, "begins"),
        Trigger::End(offset) => describe_offset(offset, ends),
        Trigger::Absolute(at) => {
            let at = local.to_civil(at);
            format!("{}, {}", language.date(at.date()), format_clock(at))
        }
    };
    if alarm.repeat > 0 {
        let times =
            if alarm.repeat == 1 { "once".into() } else { format!("{} times", alarm.repeat) };
        words.push_str(&format!(
            ", again {times} after {}",
            describe_duration(alarm.interval_seconds)
        ));
    }
    words
}

/// Returns the offset from an event in words: `15 minutes before it begins`.
#[must_use]
pub fn describe_offset(offset: IcalDuration, event: &str) -> String {
    let seconds = offset.days.saturating_mul(DAY_SECONDS).saturating_add(offset.seconds);
    match seconds {
        0 => format!("when it {event}"),
        ..0 => format!("{} before it {event}", describe_duration(seconds.saturating_neg())),
        _ => format!("{} after it {event}", describe_duration(seconds)),
    }
}

/// Returns the zone that a TZID means, in words: `Europe/Berlin (the system's)`.
#[must_use]
pub fn describe_zone(zone_use: &ZoneUse) -> String {
    let ZoneUse { tzid, zone_match: how, system_zone: system, definition_differs: differs } =
        zone_use;
    let otherwise = if *differs { "; the file defines it otherwise" } else { "" };
    match (how, system) {
        (ZoneMatch::Floating, _) => format!("{tzid} (unknown: treated as floating)"),
        (_, Some(name)) if name == tzid => format!("{tzid} (the system's{otherwise})"),
        (_, Some(name)) => format!("{name} (the system's, for {tzid}{otherwise})"),
        (_, None) => format!("{tzid} (as the file defines it)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_described_in_words() {
        let check = |text: &str, expect: &str| {
            assert_eq!(describe_rule(text, &Zone::UTC, &Language::default()), expect);
        };
        check("FREQ=DAILY", "every day");
        check("FREQ=DAILY;INTERVAL=3;COUNT=5", "every 3 days, 5 times");
        check("FREQ=WEEKLY;BYDAY=MO", "every week on Monday");
        check("FREQ=WEEKLY;WKST=SU;BYDAY=MO,WE,FR", "every week on Monday, Wednesday and Friday");
        check("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every week on Monday to Friday");
        check("FREQ=WEEKLY;INTERVAL=2;UNTIL=20260306", "every 2 weeks, until Fri 6 Mar 2026");
        check("FREQ=MONTHLY;BYMONTHDAY=15", "every month on the 15th");
        check("FREQ=MONTHLY;BYMONTHDAY=-1", "every month on the last day");
        check("FREQ=MONTHLY;BYDAY=2TU", "every month on the 2nd Tuesday");
        check("FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday");
        check("FREQ=YEARLY", "every year");
        check("FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=5", "every year on 5 March");
        check("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "every year on the last Sunday of March");
        check("FREQ=YEARLY;BYMONTH=3", "every year in March");
        for raw in [
            "FREQ=HOURLY",
            "FREQ=MONTHLY;BYDAY=MO",
            "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1",
            "FREQ=DAILY;BYMONTH=3",
            "FREQ=YEARLY;BYDAY=20MO",
            "FREQ=WEEKLY;BYDAY=2MO",
            "FREQ=YEARLY;BYMONTH=99",
            "FREQ=WEEKLY;BYDAY=é",
            "BYDAY",
            "",
        ] {
            check(raw, raw);
        }
    }
}
