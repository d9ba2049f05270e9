//! Ranges of times and sizes in mail queries.
//!
//! Separate from `parser`, because the meaning of a bound depends on the clock and on whether it is
//! the first or the last one: mu extends an incomplete date to the start or the end of its period.
//!
//! | written | means |
//! |---|---|
//! | `2016`, `2016-03`, `201603`, `2016-03-01T12:30` | a period |
//! | `31-07-2012`, `31.7.2012`, `7/31/2012`, `07-2012`, `7/2012` | a period (notmuch) |
//! | `today`, `yesterday`, `monday`, `march`, `march_2016` | a period |
//! | `now`, `@123456`, `2d`, `1y6m`, `3weeks` | an instant |

use super::MailQueryContext;
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, Weekday, days_in_month};
use std::ops::RangeInclusive;

/// The largest number of units in a relative time.
const MAX_UNITS: i64 = 9999;
/// The maximum number of units in a relative time: `1y2m3w4d5h6M7s`.
const MAX_STEPS: usize = 7;

const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAY_NAMES: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The names of units after the letters of mu, which are case-sensitive.
const UNIT_NAMES: [(&str, TimeUnit); 10] = [
    ("secs", TimeUnit::Second),
    ("seconds", TimeUnit::Second),
    ("mins", TimeUnit::Minute),
    ("minutes", TimeUnit::Minute),
    ("hrs", TimeUnit::Hour),
    ("hours", TimeUnit::Hour),
    ("days", TimeUnit::Day),
    ("weeks", TimeUnit::Week),
    ("months", TimeUnit::Month),
    ("years", TimeUnit::Year),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A period in local time: its first second, and the first second after it.
#[derive(Debug, Clone, Copy)]
struct CivilPeriod {
    start: CivilTime,
    next: CivilTime,
}

/// Parses a range of times, in seconds since 1970. `None` if a bound is no time.
pub(super) fn parse_time_range(
    text: &str,
    context: &MailQueryContext,
) -> Option<RangeInclusive<i64>> {
    let (first, last) = split_range(text)?;
    let first = parse_bound(first, context)?;
    let last = parse_bound(last, context)?;
    Some(match (first, last) {
        (None, None) => i64::MIN..=i64::MAX,
        (Some((start, _)), None) => start..=i64::MAX,
        (None, Some((_, end))) => i64::MIN..=end,
        (Some((start, _)), Some((_, end))) if start <= end => start..=end,
        // The bounds are in reverse order.
        (Some((_, end)), Some((start, _))) => start..=end.max(start),
    })
}

/// Parses a time, or the first second of a period. `None` if it is none.
pub(super) fn parse_time(text: &str, context: &MailQueryContext) -> Option<i64> {
    parse_bound(text.trim(), context)?.map(|(start, _)| start)
}

/// Parses a range of sizes. `None` if a bound is no size.
pub(super) fn parse_size_range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = split_range(text)?;
    let first = if first.is_empty() { 0 } else { parse_size(first)? };
    let last = if last.is_empty() { u64::MAX } else { parse_size(last)? };
    Some(first.min(last)..=first.max(last))
}

/// Splits a range at its dots. A single bound is both ends; none at all is an error.
fn split_range(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    (!text.is_empty()).then_some((first.trim(), last.trim()))
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Parses a bound into its first and last second; an open bound is `Some(None)`.
fn parse_bound(text: &str, context: &MailQueryContext) -> Option<Option<(i64, i64)>> {
    if text.is_empty() {
        return Some(None);
    }
    if let Some(instant) = parse_instant(text, context) {
        return Some(Some((instant, instant)));
    }
    let today = context.zone.to_civil(context.now).day_number();
    let period = parse_named_period(text, today).or_else(|| parse_date(text))?;
    let seconds = |civil: CivilTime| context.zone.to_instant(civil).seconds();
    let start = seconds(period.start);
    Some(Some((start, start.max(seconds(period.next) - 1))))
}

fn parse_instant(text: &str, context: &MailQueryContext) -> Option<i64> {
    if text.eq_ignore_ascii_case("now") {
        return Some(context.now.seconds());
    }
    match text.strip_prefix('@') {
        Some(seconds) => seconds.parse().ok(),
        None => parse_relative_time(text, context),
    }
}

/// Parses a time before now: numbers with units, such as `2d` or `1y6m`.
fn parse_relative_time(text: &str, context: &MailQueryContext) -> Option<i64> {
    let (mut months, mut days, mut seconds) = (0, 0, 0);
    let mut rest = text;
    for _ in 0..MAX_STEPS {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at_checked(digits)?;
        let number: i64 = number.parse().ok().filter(|number| *number <= MAX_UNITS)?;
        let behind = behind.trim_start_matches(is_separator);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at_checked(letters)?;
        match parse_unit(unit)? {
            TimeUnit::Second => seconds += number,
            TimeUnit::Minute => seconds += number * 60,
            TimeUnit::Hour => seconds += number * 3600,
            TimeUnit::Day => days += number,
            TimeUnit::Week => days += number * 7,
            TimeUnit::Month => months += number,
            TimeUnit::Year => months += number * 12,
        }
        rest = behind.trim_start_matches(is_separator);
        if rest.is_empty() {
            let now = subtract_months(context.zone.to_civil(context.now), months);
            let civil = now.saturating_add(-days * DAY_SECONDS);
            // Without days the offset stays: an hour is an hour, even when the clock is changed.
            let is_exact = months == 0 && days == 0;
            let base = if is_exact { context.now } else { context.zone.to_instant(civil) };
            return Some(base.seconds() - seconds);
        }
    }
    None
}

fn is_separator(c: char) -> bool {
    c == ' ' || c == '_'
}

fn parse_unit(text: &str) -> Option<TimeUnit> {
    Some(match text {
        "s" => TimeUnit::Second,
        "M" => TimeUnit::Minute,
        "h" => TimeUnit::Hour,
        "d" => TimeUnit::Day,
        "w" => TimeUnit::Week,
        "m" => TimeUnit::Month,
        "y" => TimeUnit::Year,
        _ => {
            let text = text.to_ascii_lowercase();
            let is_named = |name: &str| name == text || name.strip_suffix('s') == Some(&text);
            return UNIT_NAMES.iter().find(|(name, _)| is_named(name)).map(|(_, unit)| *unit);
        }
    })
}

/// Returns the same day and time some months earlier, or the last day of a shorter month.
fn subtract_months(civil: CivilTime, months: i64) -> CivilTime {
    let date = civil.date();
    let month = i64::from(date.year) * 12 + i64::from(date.month) - 1 - months;
    let year = i32::try_from(month.div_euclid(12)).unwrap_or_default();
    let month = u8::try_from(month.rem_euclid(12) + 1).unwrap_or(1);
    let day = date.day.min(days_in_month(year, month));
    let earlier = Date::new(year, month, day);
    let earlier = earlier.and_then(|date| CivilTime::from_date(date, civil.second_of_day()));
    earlier.unwrap_or(CivilTime::MIN)
}

/// Parses a day or month by its name.
fn parse_named_period(text: &str, today: i64) -> Option<CivilPeriod> {
    let name = text.to_ascii_lowercase();
    let day = match name.as_str() {
        "today" => Some(today),
        "yesterday" => Some(today - 1),
        _ => find_name(&WEEKDAY_NAMES, &name).and_then(|weekday| {
            let weekday = *Weekday::ALL.get(weekday)?;
            (today - 6..=today).find(|day| Weekday::from_day_number(*day) == weekday)
        }),
    };
    if let Some(day) = day {
        return Some(CivilPeriod::of_days(day, 1));
    }
    let year = Date::from_day_number(today).year;
    let (name, year) = match name.split_once(|c: char| is_separator(c) || c == '-') {
        Some((name, number)) => (name, parse_number(number, 4)?),
        None => (name.as_str(), year),
    };
    let month = find_name(&MONTH_NAMES, name)?;
    CivilPeriod::from_parts(&[year, i32::try_from(month).ok()? + 1])
}

/// Returns the index of the name that a text of three or more letters abbreviates.
fn find_name(names: &[&str], text: &str) -> Option<usize> {
    names.iter().position(|name| text.len() >= 3 && name.starts_with(text))
}

/// Parses a date, from the year on or as notmuch writes it.
fn parse_date(text: &str) -> Option<CivilPeriod> {
    let separators = ['/', '.', '-', ':', 'T', ' ', '_'];
    let parts: Vec<&str> = text.split(separators).collect();
    let separator = text.chars().find(|c| separators.contains(c));
    let number = |part: &str| parse_number(part, 2);
    if let ([first, second, year], Some(separator)) = (parts.as_slice(), separator)
        && first.len() <= 2
    {
        let (month, day) = if separator == '/' { (first, second) } else { (second, first) };
        return CivilPeriod::from_parts(&[parse_number(year, 4)?, number(month)?, number(day)?]);
    }
    if let [month, year] = parts.as_slice()
        && month.len() <= 2
    {
        return CivilPeriod::from_parts(&[parse_number(year, 4)?, number(month)?]);
    }
    let (first, others) = parts.split_first()?;
    let mut numbers = vec![parse_number(first.get(..4)?, 4)?];
    push_pairs(first.get(4..)?, &mut numbers)?;
    for part in others {
        match part.len() {
            1 => numbers.push(number(part)?),
            _ => push_pairs(part, &mut numbers)?,
        }
    }
    CivilPeriod::from_parts(&numbers)
}

/// Parses digits, two for each number.
fn push_pairs(digits: &str, numbers: &mut Vec<i32>) -> Option<()> {
    let mut rest = digits;
    while !rest.is_empty() {
        let (pair, behind) = rest.split_at_checked(2)?;
        numbers.push(parse_number(pair, 2)?);
        rest = behind;
    }
    Some(())
}

/// Parses a number of at most two digits, or of exactly four.
fn parse_number(text: &str, digits: usize) -> Option<i32> {
    let fits = if digits == 4 { text.len() == 4 } else { (1..=digits).contains(&text.len()) };
    let is_number = fits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl CivilPeriod {
    fn of_days(day: i64, count: i64) -> CivilPeriod {
        CivilPeriod { start: CivilTime::midnight(day), next: CivilTime::midnight(day + count) }
    }

    /// Returns the period of a year and up to five numbers from the month to the second. The day
    /// after the end of a month is its last second, as in mu.
    fn from_parts(parts: &[i32]) -> Option<CivilPeriod> {
        let part = |at: usize| parts.get(at).copied();
        let year = part(0)?;
        let month = u8::try_from(part(1).unwrap_or(1)).ok()?;
        let first = Date::new(year, month, 1)?;
        let day = u8::try_from(part(2).unwrap_or(1)).ok().filter(|day| (1..=31).contains(day))?;
        let last_day = days_in_month(year, month);
        if day > last_day {
            let next = CivilTime::midnight(first.day_number() + i64::from(last_day));
            return Some(CivilPeriod { start: next.saturating_add(-1), next });
        }
        let day_number = first.day_number() + i64::from(day) - 1;
        let bounds = [(3, 23, 3600), (4, 59, 60), (5, 59, 1)];
        let (mut second, mut length) = (0, DAY_SECONDS);
        for (at, max, seconds) in bounds.into_iter().filter(|(at, ..)| *at < parts.len()) {
            // A leap second counts as the second before it.
            let leap = i32::from(at == 5);
            let value = part(at).filter(|value| *value <= max + leap)?;
            second += i64::from(value.min(max)) * seconds;
            length = seconds;
        }
        let start = CivilTime::midnight(day_number).saturating_add(second);
        match parts.len() {
            1 => {
                let days = larder_time::civil::days_in_year(year);
                Some(CivilPeriod::of_days(day_number, days))
            }
            2 => Some(CivilPeriod::of_days(day_number, i64::from(last_day))),
            3..=6 => Some(CivilPeriod { start, next: start.saturating_add(length) }),
            _ => None,
        }
    }
}
