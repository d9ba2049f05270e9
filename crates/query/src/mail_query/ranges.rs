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
//! | `29 feb 2020`, `august 3`, `noon`, `17:05`, `yesterday 5pm` | a period (notmuch) |
//! | `last_week`, `this_month`, `3weeks`, `1mo`, `two_days` | a period (notmuch) |
//! | `now`, `@123456`, `2d`, `1y6m` | an instant |
//!
//! A number with a letter is a time as in mu, exact to the second. With the name of a unit it is
//! the whole unit, as in notmuch: `1month` is the month before this one.

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

/// The names of units, which may be cut off after two letters.
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

/// Numbers in words; `last` and `this` count units, too.
const NUMBER_NAMES: [(&str, i64); 14] = [
    ("this", 0),
    ("last", 1),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("dozen", 12),
    ("hundred", 100),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The day is after the end of its month.
    is_no_day: bool,
}

/// Parses a range of times, in seconds since 1970. `None` if a bound is no time.
pub(super) fn parse_time_range(
    text: &str,
    context: &MailQueryContext,
) -> Option<RangeInclusive<i64>> {
    let (first, last) = split_range(text)?;
    // In a range, a day after the end of a month is its end, as in mu; alone it matches nothing.
    if !text.contains("..") && parse_date(first).is_some_and(|period| period.is_no_day) {
        return None;
    }
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
    let now = context.zone.to_civil(context.now);
    let period = parse_named_period(text, now.day_number())
        .or_else(|| parse_date(text))
        .or_else(|| parse_phrase(text, now))?;
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

/// Parses a time before now: numbers with the letters of units, such as `2d` or `1y6m`.
fn parse_relative_time(text: &str, context: &MailQueryContext) -> Option<i64> {
    let mut age = TimeAge::default();
    let mut rest = text;
    for _ in 0..MAX_STEPS {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at_checked(digits)?;
        let number: i64 = number.parse().ok().filter(|number| *number <= MAX_UNITS)?;
        let behind = behind.trim_start_matches(is_separator);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at_checked(letters)?;
        age.add(number, parse_unit_letter(unit)?);
        rest = behind.trim_start_matches(is_separator);
        if rest.is_empty() {
            let civil = age.subtract_from(context.zone.to_civil(context.now));
            // Without days the offset stays: an hour is an hour, even when the clock is changed.
            let is_exact = age.months == 0 && age.days == 0;
            let base = if is_exact { context.now } else { context.zone.to_instant(civil) };
            return Some(base.seconds() - age.seconds);
        }
    }
    None
}

fn is_separator(c: char) -> bool {
    c == ' ' || c == '_'
}

/// A length of time before now.
#[derive(Debug, Clone, Copy, Default)]
struct TimeAge {
    months: i64,
    days: i64,
    seconds: i64,
}

impl TimeAge {
    fn add(&mut self, number: i64, unit: TimeUnit) {
        match unit {
            TimeUnit::Second => self.seconds += number,
            TimeUnit::Minute => self.seconds += number * 60,
            TimeUnit::Hour => self.seconds += number * 3600,
            TimeUnit::Day => self.days += number,
            TimeUnit::Week => self.days += number * 7,
            TimeUnit::Month => self.months += number,
            TimeUnit::Year => self.months += number * 12,
        }
    }

    /// Returns the time that is earlier by the months and days.
    fn subtract_from(self, now: CivilTime) -> CivilTime {
        subtract_months(now, self.months).saturating_add(-self.days * DAY_SECONDS)
    }
}

/// Parses a date in words, as notmuch writes it.
fn parse_phrase(text: &str, now: CivilTime) -> Option<CivilPeriod> {
    let text = text.to_ascii_lowercase();
    let mut words = Vec::new();
    for word in text.split(|c: char| is_separator(c) || matches!(c, '-' | ',')) {
        // Digits and letters are words of their own: 29feb2020, 5pm, 3rd.
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let is_digit = |c: char| c.is_ascii_digit() || c == ':';
            let is_number = is_digit(first);
            let length = rest.find(|c| is_digit(c) != is_number).unwrap_or(rest.len());
            let (word, behind) = rest.split_at_checked(length)?;
            words.push(word);
            rest = behind;
        }
    }
    let words = words.as_slice();
    parse_age(words.strip_suffix(&["ago"]).unwrap_or(words), now)
        .or_else(|| parse_day(words, now))
        .or_else(|| parse_day_time(words, now))
}

/// Parses numbers with the names of units: the whole of the smallest unit at that time.
fn parse_age(words: &[&str], now: CivilTime) -> Option<CivilPeriod> {
    let mut age = TimeAge::default();
    let mut smallest = TimeUnit::Year;
    let pairs = words.chunks(2);
    if words.is_empty() || pairs.len() > MAX_STEPS {
        return None;
    }
    for pair in pairs {
        let [number, unit] = pair else { return None };
        let named = NUMBER_NAMES.iter().find(|(name, _)| name == number).map(|(_, value)| *value);
        let number = named.or_else(|| number.parse().ok()).filter(|number| *number <= MAX_UNITS)?;
        let is_named = |name: &str| unit.len() >= 2 && name.starts_with(unit);
        let (_, unit) = UNIT_NAMES.iter().find(|(name, _)| is_named(name))?;
        age.add(number, *unit);
        smallest = smallest.min(*unit);
    }
    let then = age.subtract_from(now).saturating_add(-age.seconds);
    let (day, second) = (then.day_number(), then.second_of_day());
    let within_day = |length: i64| {
        let start = CivilTime::midnight(day).saturating_add(second / length * length);
        CivilPeriod { start, next: start.saturating_add(length), is_no_day: false }
    };
    let date = then.date();
    Some(match smallest {
        TimeUnit::Second => within_day(1),
        TimeUnit::Minute => within_day(60),
        TimeUnit::Hour => within_day(3600),
        TimeUnit::Day => CivilPeriod::of_days(day, 1),
        // Weeks begin on Sunday.
        TimeUnit::Week => {
            let is_sunday = |day: &i64| Weekday::from_day_number(*day) == Weekday::Sunday;
            CivilPeriod::of_days((day - 6..=day).find(is_sunday)?, 7)
        }
        TimeUnit::Month => CivilPeriod::from_parts(&[date.year, i32::from(date.month)])?,
        TimeUnit::Year => CivilPeriod::from_parts(&[date.year])?,
    })
}

/// Parses `29 feb 2020`, `feb 29 2020`, or without the year that of now.
fn parse_day(words: &[&str], now: CivilTime) -> Option<CivilPeriod> {
    let is_ordinal = |word: &&&str| ["st", "nd", "rd", "th"].contains(*word);
    let words: Vec<&str> = words.iter().filter(|word| !is_ordinal(word)).copied().collect();
    let (first, second, year) = match words.as_slice() {
        [first, second] => (first, second, now.date().year),
        [first, second, year] => (first, second, parse_number(year, 4)?),
        _ => return None,
    };
    let (day, month) = match parse_number(first, 2) {
        Some(day) => (day, find_name(&MONTH_NAMES, second)?),
        None => (parse_number(second, 2)?, find_name(&MONTH_NAMES, first)?),
    };
    let period = CivilPeriod::from_parts(&[year, i32::try_from(month).ok()? + 1, day])?;
    (!period.is_no_day).then_some(period)
}

/// Parses a time of a day: `noon`, `17:05`, `5pm`, `yesterday noon`.
fn parse_day_time(words: &[&str], now: CivilTime) -> Option<CivilPeriod> {
    let (day, words) = match words {
        ["today", rest @ ..] => (now.day_number(), rest),
        ["yesterday", rest @ ..] => (now.day_number() - 1, rest),
        all => (now.day_number(), all),
    };
    let half = |name: &&str| match *name {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    };
    let (time, half) = match words {
        ["noon"] => return Some(CivilPeriod::of_second(day, 12 * 3600)),
        ["midnight"] => return Some(CivilPeriod::of_second(day, 0)),
        [time] if time.contains(':') => (time, None),
        [time, name] => (time, Some(half(name)?)),
        _ => return None,
    };
    let parts: Option<Vec<i64>> =
        time.split(':').map(|part| parse_number(part, 2).map(i64::from)).collect();
    let parts = parts?;
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let hour = match half {
        Some(half) if (1..=12).contains(&part(0)) => part(0) % 12 + half,
        Some(_) => return None,
        None => part(0),
    };
    if parts.len() > 3 || hour > 23 || part(1) > 59 || part(2) > 59 {
        return None;
    }
    let length = [3600, 60, 1].get(parts.len().checked_sub(1)?)?;
    let start = CivilTime::midnight(day).saturating_add(hour * 3600 + part(1) * 60 + part(2));
    Some(CivilPeriod { start, next: start.saturating_add(*length), is_no_day: false })
}

/// Parses the letter of a unit in mu, which is case-sensitive.
fn parse_unit_letter(text: &str) -> Option<TimeUnit> {
    Some(match text {
        "s" => TimeUnit::Second,
        "M" => TimeUnit::Minute,
        "h" => TimeUnit::Hour,
        "d" => TimeUnit::Day,
        "w" => TimeUnit::Week,
        "m" => TimeUnit::Month,
        "y" => TimeUnit::Year,
        _ => return None,
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
            // Today is no last Monday, as in notmuch.
            (today - 7..today).find(|day| Weekday::from_day_number(*day) == weekday)
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
        let (start, next) = (CivilTime::midnight(day), CivilTime::midnight(day + count));
        CivilPeriod { start, next, is_no_day: false }
    }

    fn of_second(day: i64, second: i64) -> CivilPeriod {
        let start = CivilTime::midnight(day).saturating_add(second);
        CivilPeriod { start, next: start.saturating_add(1), is_no_day: false }
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
            let start = next.saturating_add(-1);
            return Some(CivilPeriod { start, next, is_no_day: true });
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
            3..=6 => {
                let next = start.saturating_add(length);
                Some(CivilPeriod { start, next, is_no_day: false })
            }
            _ => None,
        }
    }
}
