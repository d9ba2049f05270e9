//! The rules of vCalendar 1.0: `D1 #5`, `W2 MO WE 19991231`, `MP1 1+ MO #0`, `MD1 1 LD`, `YM1 6`,
//! `YD1 100`.
//!
//! They are converted to equivalent rules of RFC 5545. Nested rules (`YM1 6 MP1 ...`) are not
//! supported, because no program wrote them.

use super::parse::{RuleError, parse_weekday};
use super::{Frequency, NthWeekday, Rule, RuleEnd};
use crate::value::{IcalDateTime, excerpt};

/// The default occurrence count is two (vCalendar 1.0, page 18).
const DEFAULT_COUNT: u64 = 2;

impl Rule {
    /// Parses a rule of vCalendar 1.0.
    ///
    /// # Errors
    /// Fails for malformed and for nested rules.
    pub fn parse_vcal10(text: &str) -> Result<Rule, RuleError> {
        parse(text).ok_or_else(|| RuleError::InvalidVcal10(excerpt(text)))
    }
}

fn parse(text: &str) -> Option<Rule> {
    let text = text.trim().to_ascii_uppercase();
    let mut words = text.split_whitespace().peekable();
    let (kind, interval) = split_kind(words.next()?)?;
    let frequency = match kind {
        "M" => Frequency::Minutely,
        "D" => Frequency::Daily,
        "W" => Frequency::Weekly,
        "MP" | "MD" => Frequency::Monthly,
        "YM" | "YD" => Frequency::Yearly,
        _ => return None,
    };
    let mut rule = Rule::with_frequency(interval, frequency);
    rule.end = RuleEnd::Count(DEFAULT_COUNT);
    let mut ordinals: Vec<i16> = Vec::new();
    let mut after_weekday = false;
    while let Some(word) = words.next() {
        if let Some(end) = parse_end(word) {
            rule.end = end;
            return words.next().is_none().then_some(()).and(sort_lists(rule));
        }
        if let Some(weekday) = parse_weekday(word).filter(|_| matches!(kind, "W" | "MP")) {
            if kind == "W" {
                rule.weekdays |= 1 << weekday.number_from_monday();
            }
            let numbered = ordinals.iter().map(|number| NthWeekday { number: *number, weekday });
            rule.nth_weekdays.extend(numbered);
            after_weekday = true;
        } else if kind == "MP" && word.ends_with(['+', '-']) {
            if std::mem::take(&mut after_weekday) {
                ordinals.clear();
            }
            ordinals.push(parse_ordinal(word)?);
        } else if word.len() == 4 && matches!(kind, "D" | "W" | "MP" | "MD") {
            add_time(&mut rule, word)?;
        } else {
            add_number(&mut rule, kind, word)?;
        }
    }
    sort_lists(rule)
}

/// Splits `MP1` into `MP` and 1.
fn split_kind(word: &str) -> Option<(&str, u32)> {
    let digits = word.find(|c: char| c.is_ascii_digit())?;
    let (kind, interval) = word.split_at_checked(digits)?;
    let interval = interval.parse().ok().filter(|interval| *interval > 0)?;
    Some((kind, interval))
}

fn parse_end(word: &str) -> Option<RuleEnd> {
    if let Some(count) = word.strip_prefix('#') {
        let count = count.parse::<u64>().ok()?;
        return Some(if count == 0 { RuleEnd::Never } else { RuleEnd::Count(count) });
    }
    (word.len() >= 8).then(|| IcalDateTime::parse(word).ok()).flatten().map(RuleEnd::Until)
}

/// Parses an ordinal: `2+` is the second, `1-` the last.
fn parse_ordinal(word: &str) -> Option<i16> {
    let (number, sign) = word.split_at_checked(word.len().checked_sub(1)?)?;
    let number = number.parse::<i16>().ok().filter(|number| (1..=5).contains(number))?;
    Some(if sign == "-" { -number } else { number })
}

/// Several times of day fit into one rule only if every hour is combined with every minute.
fn add_time(rule: &mut Rule, word: &str) -> Option<()> {
    let number = word.parse::<u32>().ok()?;
    let (hour, minute) = (number / 100, number % 100);
    if hour > 23 || minute > 59 {
        return None;
    }
    let first = rule.hours == 0;
    if !first && rule.minutes != 1 << minute {
        return None;
    }
    rule.hours |= 1 << hour;
    rule.minutes = 1 << minute;
    Some(())
}

fn add_number(rule: &mut Rule, kind: &str, word: &str) -> Option<()> {
    match kind {
        "MD" if word == "LD" => rule.month_days_from_end |= 1 << 1,
        "MD" => {
            let (digits, back) = match word.strip_suffix('-') {
                Some(digits) => (digits, true),
                None => (word.strip_suffix('+').unwrap_or(word), false),
            };
            let day = digits.parse::<u32>().ok().filter(|day| (1..=31).contains(day))?;
            let days = if back { &mut rule.month_days_from_end } else { &mut rule.month_days };
            *days |= 1 << day;
        }
        "YM" => {
            let month = word.parse::<u32>().ok().filter(|month| (1..=12).contains(month))?;
            rule.months |= 1 << (month - 1);
        }
        "YD" => {
            let day = word.parse::<i16>().ok().filter(|day| (1..=366).contains(day))?;
            rule.year_days.push(day);
        }
        _ => return None,
    }
    Some(())
}

fn sort_lists(mut rule: Rule) -> Option<Rule> {
    rule.nth_weekdays.sort_unstable();
    rule.nth_weekdays.dedup();
    rule.year_days.sort_unstable();
    rule.year_days.dedup();
    Some(rule)
}
