//! Parses the text of RRULE and EXRULE.

use super::{Frequency, NthWeekday, Rule, RuleEnd, SkipMode};
use crate::civil::Weekday;
use crate::value::{IcalDateTime, excerpt};
use std::str::FromStr;

/// The reason why a text is not a usable rule. The item keeps the text and shows its start only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// FREQ is missing.
    #[error("the rule has no FREQ")]
    NoFrequency,
    /// A part that is not NAME=VALUE, or has an unknown name.
    #[error("unknown part {0:?} in the rule")]
    UnknownPart(String),
    /// An invalid value of a part.
    #[error("invalid {name} {value:?} in the rule")]
    InvalidValue {
        /// The part.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// A repeated part.
    #[error("{0} occurs twice in the rule")]
    DuplicatePart(&'static str),
    /// RSCALE of a calendar other than the Gregorian.
    #[error("rules of the calendar {0:?} are not supported")]
    UnsupportedCalendar(String),
    /// Not a rule of vCalendar 1.0, or a nested one.
    #[error("{0:?} is not a supported vCalendar 1.0 rule")]
    InvalidVcal10(String),
}

/// The names of parts, to detect repetition.
const PART_NAMES: [&str; 16] = [
    "FREQ",
    "UNTIL",
    "COUNT",
    "INTERVAL",
    "BYSECOND",
    "BYMINUTE",
    "BYHOUR",
    "BYDAY",
    "BYMONTHDAY",
    "BYYEARDAY",
    "BYWEEKNO",
    "BYMONTH",
    "BYSETPOS",
    "WKST",
    "RSCALE",
    "SKIP",
];

impl Rule {
    /// Parses a rule. Case, white space, the order of parts, a trailing semicolon and empty lists
    /// are tolerated; SKIP without RSCALE is ignored, as by a reader of RFC 5545 alone.
    ///
    /// # Errors
    /// Fails for a malformed rule, and for a rule of another calendar.
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        let mut values: [Option<&str>; PART_NAMES.len()] = [None; PART_NAMES.len()];
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let unknown = || RuleError::UnknownPart(excerpt(part));
            let (name, value) = part.split_once('=').ok_or_else(unknown)?;
            let is = |known: &&str| known.eq_ignore_ascii_case(name.trim());
            let place = PART_NAMES.iter().position(is).ok_or_else(unknown)?;
            let slot = values.get_mut(place).ok_or_else(unknown)?;
            if slot.replace(value.trim()).is_some() {
                return Err(RuleError::DuplicatePart(
                    PART_NAMES.get(place).copied().unwrap_or_default(),
                ));
            }
        }
        let [frequency, until, count, interval, by @ .., scale, skip] = values;
        // Another calendar has other months, so nothing else of the rule can be parsed.
        if let Some(scale) = scale.filter(|scale| !scale.eq_ignore_ascii_case("GREGORIAN")) {
            return Err(RuleError::UnsupportedCalendar(excerpt(scale)));
        }
        let frequency = frequency.ok_or(RuleError::NoFrequency)?;
        let mut rule = Rule::with_frequency(1, parse_keyword("FREQ", frequency, &FREQUENCY_NAMES)?);
        if let Some(text) = interval {
            rule.interval = parse_positive("INTERVAL", text)?;
        }
        rule.end = parse_end(until, count)?;
        rule.read_parts(by)?;
        if let (Some(_), Some(skip)) = (scale, skip) {
            rule.skip = parse_keyword("SKIP", skip, &SKIP_NAMES)?;
        }
        Ok(rule)
    }

    fn read_parts(&mut self, values: [Option<&str>; 10]) -> Result<(), RuleError> {
        let [second, minute, hour, day, month_day, year_day, week, month, position, start] = values;
        let bit = |number: i32| 1u64 << number.clamp(0, 63);
        let bits = |numbers: Vec<i32>| numbers.into_iter().fold(0, |set, number| set | bit(number));
        // Without leap seconds, second 60 is read as 59 (RFC 5545, section 3.3.12).
        let second = parse_numbers("BYSECOND", second, 0, 60)?;
        self.seconds = bits(second.into_iter().map(|second| second.min(59)).collect());
        self.minutes = bits(parse_numbers("BYMINUTE", minute, 0, 59)?);
        self.hours = bits(parse_numbers("BYHOUR", hour, 0, 23)?) as u32;
        self.months = (bits(parse_numbers("BYMONTH", month, 1, 12)?) >> 1) as u16;
        let (ahead, back) = parse_signed("BYMONTHDAY", month_day, 31)?;
        (self.month_days, self.month_days_from_end) = (ahead as u32, back as u32);
        (self.weeks, self.weeks_from_end) = parse_signed("BYWEEKNO", week, 53)?;
        let year_days = sort_and_dedup(parse_numbers("BYYEARDAY", year_day, -366, 366)?);
        self.year_days = year_days.into_iter().map(|number| number as i16).collect();
        self.positions =
            sort_and_dedup(parse_numbers("BYSETPOS", position, i32::MIN + 1, i32::MAX)?);
        let zero = |name| RuleError::InvalidValue { name, value: "0".to_string() };
        if self.year_days.contains(&0) {
            return Err(zero("BYYEARDAY"));
        }
        if self.positions.contains(&0) {
            return Err(zero("BYSETPOS"));
        }
        self.read_weekdays(day)?;
        if let Some(text) = start {
            self.week_start = parse_weekday(text).ok_or_else(|| value_error("WKST", text))?;
        }
        Ok(())
    }

    fn read_weekdays(&mut self, text: Option<&str>) -> Result<(), RuleError> {
        for member in split_members(text) {
            let error = || value_error("BYDAY", member);
            let cut = member.len().checked_sub(2).ok_or_else(error)?;
            let (number, name) = member.split_at_checked(cut).ok_or_else(error)?;
            let weekday = parse_weekday(name).ok_or_else(error)?;
            if number.is_empty() {
                self.weekdays |= 1 << weekday.number_from_monday();
                continue;
            }
            let number = number.trim().parse::<i16>().map_err(|_| error())?;
            if number == 0 || number.unsigned_abs() > 366 {
                return Err(error());
            }
            self.nth_weekdays.push(NthWeekday { number, weekday });
        }
        self.nth_weekdays = sort_and_dedup(std::mem::take(&mut self.nth_weekdays));
        Ok(())
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        Rule::parse(text)
    }
}

pub(super) const FREQUENCY_NAMES: [(&str, Frequency); 7] = [
    ("SECONDLY", Frequency::Secondly),
    ("MINUTELY", Frequency::Minutely),
    ("HOURLY", Frequency::Hourly),
    ("DAILY", Frequency::Daily),
    ("WEEKLY", Frequency::Weekly),
    ("MONTHLY", Frequency::Monthly),
    ("YEARLY", Frequency::Yearly),
];

pub(super) const SKIP_NAMES: [(&str, SkipMode); 3] =
    [("OMIT", SkipMode::Omit), ("BACKWARD", SkipMode::Backward), ("FORWARD", SkipMode::Forward)];

pub(super) const WEEKDAY_NAMES: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

pub(super) fn value_error(name: &'static str, value: &str) -> RuleError {
    RuleError::InvalidValue { name, value: excerpt(value) }
}

fn parse_keyword<T: Copy>(
    name: &'static str,
    value: &str,
    table: &[(&str, T)],
) -> Result<T, RuleError> {
    let found = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(value));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| value_error(name, value))
}

pub(super) fn parse_weekday(text: &str) -> Option<Weekday> {
    let place = WEEKDAY_NAMES.iter().position(|name| name.eq_ignore_ascii_case(text.trim()))?;
    Weekday::ALL.get(place).copied()
}

fn parse_positive<T: FromStr + From<u8> + PartialOrd>(
    name: &'static str,
    text: &str,
) -> Result<T, RuleError> {
    let number = text.parse::<T>().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| value_error(name, text))
}

fn parse_end(until: Option<&str>, count: Option<&str>) -> Result<RuleEnd, RuleError> {
    let until = match until {
        Some(text) => Some(IcalDateTime::parse(text).map_err(|_| value_error("UNTIL", text))?),
        None => None,
    };
    let count = count.map(|text| parse_positive::<u64>("COUNT", text)).transpose()?;
    Ok(match (until, count) {
        (None, None) => RuleEnd::Never,
        (Some(until), None) => RuleEnd::Until(until),
        (None, Some(count)) => RuleEnd::Count(count),
        (Some(until), Some(count)) => RuleEnd::UntilAndCount(until, count),
    })
}

fn split_members(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|member| !member.is_empty())
}

fn parse_numbers(
    name: &'static str,
    text: Option<&str>,
    least: i32,
    most: i32,
) -> Result<Vec<i32>, RuleError> {
    let number = |member: &str| {
        let number = member.parse::<i32>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| value_error(name, member))
    };
    split_members(text).map(number).collect()
}

/// Parses signed numbers into two bit sets.
fn parse_signed(
    name: &'static str,
    text: Option<&str>,
    most: i32,
) -> Result<(u64, u64), RuleError> {
    let (mut ahead, mut back) = (0, 0);
    for number in parse_numbers(name, text, -most, most)? {
        match number {
            0 => return Err(value_error(name, "0")),
            1.. => ahead |= 1 << number,
            _ => back |= 1 << -number,
        }
    }
    Ok((ahead, back))
}

fn sort_and_dedup<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}
