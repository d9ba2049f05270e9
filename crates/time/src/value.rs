//! The time values of RFC 5545, section 3.3: dates, date-times, durations, periods and offsets,
//! parsed and formatted.
//!
//! Parsing is as lenient as real files need: the text decides whether a value is a date, the
//! extended format of ISO 8601 is accepted, and so are vCalendar 1.0's longer durations. An error
//! names the text.

use crate::civil::{CivilTime, DAY_SECONDS, Date};
use std::fmt;
use std::str::FromStr;

/// The reason why a text is not a time value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Neither a date nor a date-time.
    #[error("{0:?} is neither a date nor a date-time")]
    DateTime(String),
    /// The day or time does not exist, such as 30 February.
    #[error("the date or time {0:?} does not exist")]
    NoSuchDay(String),
    /// Not a duration.
    #[error("{0:?} is not a duration")]
    Duration(String),
    /// Not a period.
    #[error("{0:?} is not a period")]
    Period(String),
    /// Not an offset from UTC.
    #[error("{0:?} is not an offset from UTC")]
    Offset(String),
}

/// Returns the first hundred characters of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}

/// A date or date-time as written; its time zone is in a separate parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IcalDateTime {
    /// The civil time; midnight for a date.
    pub civil: CivilTime,
    /// Whether it is a date.
    pub is_date: bool,
    /// Whether it ends in `Z`.
    pub is_utc: bool,
}

impl IcalDateTime {
    /// Parses `20260305`, `20260305T120000` and `20260305T120000Z`. Tolerates the hyphens and
    /// colons of the extended format, missing seconds, lower case and surrounding white space;
    /// second 60 is read as 59 (RFC 5545, 3.3.12).
    ///
    /// # Errors
    /// Fails if the text is neither, or if the day or time does not exist.
    pub fn parse(text: &str) -> Result<IcalDateTime, ValueError> {
        let trimmed = text.trim();
        let (date, time) = match trimmed.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (trimmed, None),
        };
        let wrong = || ValueError::DateTime(excerpt(text));
        let no_such_day = || ValueError::NoSuchDay(excerpt(text));
        let [c, y, m, d] = parse_digit_pairs(date, '-').ok_or_else(wrong)?;
        let (month, day) = (m as u8, d as u8);
        let date =
            Date::new(i32::from(c) * 100 + i32::from(y), month, day).ok_or_else(no_such_day)?;
        let Some(time) = time else {
            let civil = CivilTime::midnight(date.day_number());
            return Ok(IcalDateTime { civil, is_date: true, is_utc: false });
        };
        let (time, utc) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, true),
            None => (time, false),
        };
        let second = parse_time_of_day(time).ok_or_else(wrong)?;
        let civil =
            second.and_then(|second| CivilTime::from_date(date, second)).ok_or_else(no_such_day)?;
        Ok(IcalDateTime { civil, is_date: false, is_utc: utc })
    }
}

/// Parses four two-digit numbers, with or without a separator after the second and third:
/// `20260305`, `2026-03-05`.
fn parse_digit_pairs(text: &str, separator: char) -> Option<[u16; 4]> {
    let mut digits = [0; 8];
    let mut count = 0;
    for (place, c) in text.chars().enumerate() {
        match c.to_digit(10) {
            Some(digit) => *digits.get_mut(count)? = digit as u16,
            None if c == separator && matches!(place, 4 | 7) && text.len() == 10 => continue,
            None => return None,
        }
        count += 1;
    }
    let pair = |at: usize| digits[at] * 10 + digits[at + 1];
    (count == 8).then(|| [pair(0), pair(2), pair(4), pair(6)])
}

/// Parses `120000`, `12:00:00`, `1200`, `12000` into seconds since midnight. `None` if the text is
/// not a time, `Some(None)` if no clock shows it.
fn parse_time_of_day(text: &str) -> Option<Option<i64>> {
    let colons = text.matches(':').count();
    let mut parts = [0; 3];
    let digits = text.bytes().filter(|byte| *byte != b':');
    let mut count = 0;
    for byte in digits {
        let digit = i64::from(char::from(byte).to_digit(10)?);
        let part = parts.get_mut(count / 2)?;
        *part = *part * 10 + digit;
        count += 1;
    }
    // Five digits come from a program that did not pad seconds; many copies of its zones exist.
    let (whole, extended) =
        (count == 4 || count == 6 || count == 5 && colons == 0, count / 2 == colons + 1);
    let [hour, minute, second] = parts;
    let valid = hour < 24 && minute < 60 && second <= 60;
    (whole && (colons == 0 || extended))
        .then(|| valid.then(|| hour * 3600 + minute * 60 + second.min(59)))
}

impl FromStr for IcalDateTime {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<IcalDateTime, ValueError> {
        IcalDateTime::parse(text)
    }
}

impl fmt::Display for IcalDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.civil.to_string();
        if self.is_date {
            return f.write_str(text.get(..8).unwrap_or_default());
        }
        write!(f, "{text}{}", if self.is_utc { "Z" } else { "" })
    }
}

/// A duration: nominal days (the same civil time on another day) plus exact seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IcalDuration {
    /// Days; a week is seven days.
    pub days: i64,
    /// Additional seconds, of the same sign.
    pub seconds: i64,
}

/// More days than the years 1 to 9999 have: the limit of a number in a duration.
const MAX_DURATION_DAYS: i64 = 4_000_000;

impl IcalDuration {
    /// Parses `P1W`, `-PT15M`, `+P1DT2H3M4S`, and the years and months of vCalendar 1.0 as 365 and
    /// 30 days. Tolerates weeks together with other parts, lower case, and an empty `P` or `PT`.
    ///
    /// # Errors
    /// Fails if the text is not a duration, or is longer than the calendar.
    pub fn parse(text: &str) -> Result<IcalDuration, ValueError> {
        let wrong = || ValueError::Duration(excerpt(text));
        let trimmed = text.trim();
        let (sign, rest) = match trimmed.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        let rest = rest.strip_prefix(['P', 'p']).ok_or_else(wrong)?;
        let length = parse_duration_parts(rest).ok_or_else(wrong)?;
        Ok(IcalDuration { days: sign * length.days, seconds: sign * length.seconds })
    }

    /// Returns an upper bound of the seconds, in any zone.
    #[must_use]
    pub fn max_seconds(self) -> i64 {
        let nominal = self.days.saturating_mul(DAY_SECONDS);
        nominal.saturating_add(self.seconds).saturating_add(if self.days == 0 {
            0
        } else {
            DAY_SECONDS
        })
    }
}

/// Parses the text after the `P` of a duration.
fn parse_duration_parts(text: &str) -> Option<IcalDuration> {
    let (mut days, mut seconds, mut number, mut in_time) = (0i64, 0i64, None::<i64>, false);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            continue;
        }
        if matches!(c, 'T' | 't') {
            if in_time || number.is_some() {
                return None;
            }
            in_time = true;
            continue;
        }
        let count = number.take()?;
        let (unit, of_days) = match (c.to_ascii_uppercase(), in_time) {
            ('Y', false) => (365, true),
            ('M', false) => (30, true),
            ('W', false) => (7, true),
            ('D', false) => (1, true),
            ('H', true) => (3600, false),
            ('M', true) => (60, false),
            ('S', true) => (1, false),
            _ => return None,
        };
        let sum = if of_days { &mut days } else { &mut seconds };
        *sum = sum.checked_add(count.checked_mul(unit)?)?;
    }
    (number.is_none() && days <= MAX_DURATION_DAYS && seconds <= MAX_DURATION_DAYS * DAY_SECONDS)
        .then_some(IcalDuration { days, seconds })
}

impl FromStr for IcalDuration {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<IcalDuration, ValueError> {
        IcalDuration::parse(text)
    }
}

impl fmt::Display for IcalDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (self.days.unsigned_abs(), self.seconds.unsigned_abs());
        f.write_str(if self.days < 0 || self.seconds < 0 { "-P" } else { "P" })?;
        if days > 0 && days % 7 == 0 && seconds == 0 {
            return write!(f, "{}W", days / 7);
        }
        if days > 0 {
            write!(f, "{days}D")?;
        }
        if seconds > 0 || days == 0 {
            f.write_str("T")?;
        }
        let parts = [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M'), (seconds % 60, 'S')];
        for (count, unit) in parts {
            if count > 0 || (unit == 'S' && days == 0 && seconds == 0) {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

/// The length of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventLength {
    /// The seconds between the start and DTEND.
    Exact(i64),
    /// A DURATION, or the days between dates.
    Nominal(IcalDuration),
}

impl EventLength {
    /// No length.
    pub const ZERO: EventLength = EventLength::Exact(0);

    /// Creates a length of whole days.
    #[must_use]
    pub const fn from_days(days: i64) -> EventLength {
        EventLength::Nominal(IcalDuration { days, seconds: 0 })
    }

    /// Returns an upper bound of the seconds.
    #[must_use]
    pub fn max_seconds(self) -> i64 {
        match self {
            EventLength::Exact(seconds) => seconds.max(0),
            EventLength::Nominal(nominal) => nominal.max_seconds().max(0),
        }
    }
}

/// A period: its start, and its end or duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Period {
    /// The start.
    pub start: IcalDateTime,
    /// The end.
    pub end: PeriodEnd,
}

/// The end of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeriodEnd {
    /// `start/end`
    DateTime(IcalDateTime),
    /// `start/duration`
    Duration(IcalDuration),
}

impl Period {
    /// Parses `19970101T180000Z/19970102T070000Z` and `19970101T180000Z/PT5H30M`.
    ///
    /// # Errors
    /// Fails if the text is neither, or one of its parts is invalid.
    pub fn parse(text: &str) -> Result<Period, ValueError> {
        let (start, end) = text.split_once('/').ok_or_else(|| ValueError::Period(excerpt(text)))?;
        let start = IcalDateTime::parse(start)?;
        let end = match IcalDateTime::parse(end) {
            Ok(end) => PeriodEnd::DateTime(end),
            Err(wrong) => PeriodEnd::Duration(IcalDuration::parse(end).map_err(|_| wrong)?),
        };
        Ok(Period { start, end })
    }

    /// The length; zero for a period that ends before its start.
    #[must_use]
    pub fn length(&self) -> EventLength {
        match self.end {
            PeriodEnd::DateTime(end) => {
                EventLength::Exact((end.civil.seconds() - self.start.civil.seconds()).max(0))
            }
            PeriodEnd::Duration(nominal) => EventLength::Nominal(nominal),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            PeriodEnd::DateTime(end) => write!(f, "{}/{end}", self.start),
            PeriodEnd::Duration(length) => write!(f, "{}/{length}", self.start),
        }
    }
}

/// An offset from UTC in seconds, east positive, less than a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UtcOffset(i32);

impl UtcOffset {
    /// UTC itself.
    pub const UTC: UtcOffset = UtcOffset(0);

    /// Creates an offset from seconds east of UTC, if less than a day.
    #[must_use]
    pub fn new(seconds: i32) -> Option<UtcOffset> {
        (seconds.unsigned_abs() < DAY_SECONDS as u32).then_some(UtcOffset(seconds))
    }

    /// Parses `+0100`, `-0530`, `+005328`, and `+01` of vCalendar 1.0. Tolerates colons.
    ///
    /// # Errors
    /// Fails if the text is not an offset.
    pub fn parse(text: &str) -> Result<UtcOffset, ValueError> {
        let wrong = || ValueError::Offset(excerpt(text));
        let trimmed = text.trim();
        let (sign, rest) = match trimmed.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, trimmed.strip_prefix('+').ok_or_else(wrong)?),
        };
        let full = if rest.len() == 2 { &*format!("{rest}00") } else { rest };
        // Five digits are ambiguous.
        let paired = full.len() != 5 || full.contains(':');
        let seconds = parse_time_of_day(full).flatten().filter(|_| paired).ok_or_else(wrong)?;
        Ok(UtcOffset(sign * seconds as i32))
    }

    /// Seconds east of UTC.
    #[must_use]
    pub const fn seconds(self) -> i32 {
        self.0
    }
}

impl FromStr for UtcOffset {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<UtcOffset, ValueError> {
        UtcOffset::parse(text)
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, seconds) = (if self.0 < 0 { '-' } else { '+' }, self.0.unsigned_abs());
        write!(f, "{sign}{:02}{:02}", seconds / 3600, seconds / 60 % 60)?;
        if seconds % 60 > 0 { write!(f, "{:02}", seconds % 60) } else { Ok(()) }
    }
}
