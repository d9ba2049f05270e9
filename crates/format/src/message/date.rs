//! The date of a message, as programs write it.
//!
//! Old and careless programs write dates that RFC 5322 does not allow: without a zone, in the order
//! of asctime, with the whole name of the month, in numbers. What mu and notmuch read is read here,
//! with their result. Separate from `headers`, whose other fields follow the syntax of their RFCs.

/// The most numbers that a date has, beside its time and its zone.
const MAX_NUMBERS: usize = 8;
/// The years that a message can be of.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=3000;
/// The beginnings of the names of months.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The names of zones (RFC 5322, 4.3), and their hours from UTC. Other names are read as UTC.
const ZONES: [(&str, i32); 12] = [
    ("ut", 0),
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// The time of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageDate {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub seconds: i64,
    /// The offset of the sender's clock from UTC.
    pub offset_minutes: i32,
}

impl MessageDate {
    /// Returns the time in UTC as RFC 3339 writes it: `2026-03-06T12:30:00Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        mail_parser::DateTime::from_timestamp(self.seconds).to_rfc3339()
    }

    /// Reads the value of a header Date. A date without a zone is in UTC, and one without a time is
    /// at midnight.
    pub(super) fn parse(text: &str) -> Option<MessageDate> {
        let mut parts = DateParts::default();
        let text = parts.take_comments(text);
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '0'..='9' => parts.read_number(rest),
                '+' | '-' => parts.read_offset(rest),
                _ if first.is_alphabetic() => parts.read_word(rest),
                _ => first.len_utf8(),
            };
            rest = rest.get(length..)?;
        }
        parts.to_date()
    }
}

/// The parts of a date that were read so far.
#[derive(Debug, Default)]
struct DateParts {
    /// Numbers with the number of their digits, without those of the time and the zone.
    numbers: Vec<(u32, usize)>,
    month: Option<u32>,
    /// Hour, minute and second.
    time: Option<[u32; 3]>,
    /// The hours that AM or PM say; they follow the time.
    is_afternoon: Option<bool>,
    zone_minutes: Option<i32>,
    /// The zone that a comment names.
    comment_zone_minutes: Option<i32>,
}

impl DateParts {
    /// Returns the text without its comments, and without white space around colons.
    fn take_comments(&mut self, text: &str) -> String {
        let (mut plain, mut comment, mut depth) = (String::new(), String::new(), 0_usize);
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => {
                    depth = depth.saturating_sub(1);
                    comment.push(' ');
                    plain.push(' ');
                }
                _ if depth > 0 => comment.push(c),
                ':' => {
                    plain.truncate(plain.trim_end().len());
                    plain.push(c);
                }
                _ if c.is_whitespace() && plain.ends_with(':') => {}
                _ => plain.push(c),
            }
        }
        let mut words = comment.split(|c: char| !c.is_alphabetic());
        self.comment_zone_minutes = words.find_map(|word| zone_minutes(&word.to_lowercase()));
        plain
    }

    /// Reads a number, a time (`17:36:34`) or a date with dots. Returns the length of its text.
    fn read_number(&mut self, rest: &str) -> usize {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
        let length = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        let pieces =
            |by: char| -> Vec<&str> { text.split(by).filter(|piece| !piece.is_empty()).collect() };
        if text.contains(':') {
            self.read_time(&pieces(':'));
            return length;
        }
        let pieces = pieces('.');
        if pieces.len() > 1 && self.numbers.len() > 1 {
            self.read_time(&pieces);
        } else {
            for piece in pieces {
                if let Ok(value) = piece.parse()
                    && self.numbers.len() < MAX_NUMBERS
                {
                    self.numbers.push((value, piece.len()));
                }
            }
        }
        length
    }

    fn read_time(&mut self, pieces: &[&str]) {
        let number = |at: usize| {
            // A fraction of a second is left out.
            let piece = pieces.get(at).map_or("0", |piece| piece.split('.').next().unwrap_or(""));
            piece.parse().unwrap_or(u32::MAX)
        };
        if self.time.is_none() {
            self.time = Some([number(0), number(1), number(2)]);
        }
    }

    /// Reads an offset from UTC: a sign with four digits, with or without a colon, after the time.
    /// Returns the length of its text, else that of the sign.
    fn read_offset(&mut self, rest: &str) -> usize {
        let is_offset = |c: &char| c.is_ascii_digit() || *c == ':';
        let text: String = rest.chars().skip(1).take_while(is_offset).collect();
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        if self.time.is_none() || digits.is_empty() {
            return 1;
        }
        if digits.len() == 4
            && self.zone_minutes.is_none()
            && let Ok(number) = digits.parse::<i32>()
            && number / 100 < 24
            && number % 100 < 60
        {
            let minutes = number / 100 * 60 + number % 100;
            self.zone_minutes = Some(if rest.starts_with('-') { -minutes } else { minutes });
        }
        1 + text.len()
    }

    /// Reads the name of a month or a zone. Returns the length of its text.
    fn read_word(&mut self, rest: &str) -> usize {
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default().to_lowercase();
        match (word.as_str(), self.time) {
            ("am", Some(_)) => self.is_afternoon = Some(false),
            ("pm", Some(_)) => self.is_afternoon = Some(true),
            (_, Some(_)) if self.zone_minutes.is_none() => self.zone_minutes = zone_minutes(&word),
            _ => {}
        }
        let month = (1..).zip(MONTHS).find(|(_, month)| word.starts_with(month));
        self.month = self.month.or(month.map(|(number, _)| number));
        length
    }

    /// Returns year, month and day.
    fn civil_date(&self) -> Option<[u32; 3]> {
        let year_of = |(value, digits): (u32, usize)| match digits {
            ..=2 if value < 70 => value + 2000,
            // RFC 5322, 4.3: also three digits are years after 1900.
            ..=3 => value + 1900,
            _ => value,
        };
        let long = self.numbers.iter().position(|(_, digits)| *digits > 2);
        let year = self.numbers.get(long.unwrap_or(if self.month.is_some() { 1 } else { 2 }))?;
        let short = |(value, digits): &(u32, usize)| (*digits <= 2).then_some(*value);
        let mut short_numbers = self.numbers.iter().filter_map(short);
        let first = short_numbers.next()?;
        let (month, day) = match self.month {
            Some(month) => (month, first),
            // 7/23/1993 is written in one country, 23/7/1993 in others.
            None => match short_numbers.next()? {
                second if first > 12 => (second, first),
                second => (first, second),
            },
        };
        Some([year_of(*year), month, day])
    }

    fn to_date(&self) -> Option<MessageDate> {
        let [year, month, day] = self.civil_date()?;
        let [hour, minute, second] = self.time.unwrap_or_default();
        let hour = match self.is_afternoon {
            Some(is_afternoon) if (1..=12).contains(&hour) => {
                hour % 12 + if is_afternoon { 12 } else { 0 }
            }
            _ => hour,
        };
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        // A minute with a leap second has 61.
        let is_valid = YEARS.contains(&year)
            && (1..=12).contains(&month)
            && (1..=days).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        if !is_valid {
            return None;
        }
        let byte = |number: u32| u8::try_from(number).ok();
        let civil = mail_parser::DateTime {
            year: u16::try_from(year).ok()?,
            month: byte(month)?,
            day: byte(day)?,
            hour: byte(hour)?,
            minute: byte(minute)?,
            second: byte(second)?,
            tz_before_gmt: false,
            tz_hour: 0,
            tz_minute: 0,
        };
        let offset_minutes = self.zone_minutes.or(self.comment_zone_minutes).unwrap_or(0);
        let seconds = civil.to_timestamp_local() - i64::from(offset_minutes) * 60;
        Some(MessageDate { seconds, offset_minutes })
    }
}

/// Returns the offset of a named zone, in lower case.
fn zone_minutes(word: &str) -> Option<i32> {
    ZONES.iter().find(|(name, _)| *name == word).map(|(_, hours)| hours * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time that is read, in UTC, or "none".
    fn read(text: &str) -> String {
        MessageDate::parse(text).map_or("none".into(), MessageDate::to_rfc3339)
    }

    #[test]
    fn dates_are_read_as_mu_and_notmuch_read_them() {
        // What GMime reads, which both use.
        for (text, time) in [
            ("Fri, 23 Jul 1993 17:36:34 +0000", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 +0200 (CEST)", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 -0800", "1993-07-24T01:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 +0530", "1993-07-23T12:06:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 EDT", "1993-07-23T21:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 (PDT)", "1993-07-24T00:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 CET", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 MET DST", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 \"GMT\"", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 GMT+0200", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34", "1993-07-23T17:36:34Z"),
            ("23 Jul 1993 17:36", "1993-07-23T17:36:00Z"),
            ("Fri, 23 Jul 1993", "1993-07-23T00:00:00Z"),
            ("Fri Jul 23 17:36:34 1993", "1993-07-23T17:36:34Z"),
            ("Fri Jul 23 17:36:34 GMT 1993", "1993-07-23T17:36:34Z"),
            ("Fri Jul 23 17:36:34 PDT 1993", "1993-07-24T00:36:34Z"),
            ("Fri Jul 23 17:36:34 +0200 1993", "1993-07-23T15:36:34Z"),
            ("Fri Jul 23 17:36:34 1993 +0200", "1993-07-23T15:36:34Z"),
            ("Friday, 23 July 1993 17:36:34 +0200", "1993-07-23T15:36:34Z"),
            ("July 23, 1993 17:36", "1993-07-23T17:36:00Z"),
            ("Fri, 23-Jul-1993 17:36:34 +0000", "1993-07-23T17:36:34Z"),
            ("Fri, 23-Jul-93 17:36:34 +0000", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 69 17:36:34 +0000", "2069-07-23T17:36:34Z"),
            ("Fri, 23 Jul 70 17:36:34 +0000", "1970-07-23T17:36:34Z"),
            ("7/23/1993 17:36:34", "1993-07-23T17:36:34Z"),
            ("23/7/1993 17:36:34", "1993-07-23T17:36:34Z"),
            ("7/8/93", "1993-07-08T00:00:00Z"),
            ("1993/07/23 17:36:34", "1993-07-23T17:36:34Z"),
            ("1993-07-23 17:36:34 +0200", "1993-07-23T15:36:34Z"),
            ("1993 Jul 23 17:36:34", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 at 17:36:34", "1993-07-23T17:36:34Z"),
            ("Fri (day), 23 (d) Jul 1993 (x) 17:36:34 +0200", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 +9999", "1993-07-23T17:36:34Z"),
            ("Fri, 31 Feb 1993 17:36:34 +0000", "none"),
            ("Fri, 32 Jul 1993 17:36:34 +0000", "none"),
            ("Fri, 23 Jul 1993 24:00:00 +0000", "none"),
            ("Fri, 23 Jul 99999 17:36:34 +0000", "none"),
            ("Jul 1993", "none"),
            ("17:36:34", "none"),
            ("743448994", "none"),
            ("nonsense", "none"),
            ("", "none"),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
    }

    #[test]
    fn more_forms_are_read_than_by_mu_and_notmuch() {
        for (text, time) in [
            ("1993-07-23T17:36:34Z", "1993-07-23T17:36:34Z"),
            ("1993-07-23T17:36:34.5+02:00", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34 +02:00", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34-0700", "1993-07-24T00:36:34Z"),
            ("Fri, 23 Jul 1993 17:36:34GMT", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 17 : 36 : 34 +0200", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 17.36.34 +0200", "1993-07-23T15:36:34Z"),
            ("Fri, 23 Jul 1993 5:36:34 PM", "1993-07-23T17:36:34Z"),
            ("Fri, 23 Jul 1993 12:36:34 AM", "1993-07-23T00:36:34Z"),
            ("Fri, 23 Jul 1993 23:59:60 +0000", "1993-07-24T00:00:00Z"),
            ("Fri, 23 Jul 103 17:36:34 +0000", "2003-07-23T17:36:34Z"),
            ("23.07.1993 17:36:34", "1993-07-23T17:36:34Z"),
            ("fr, 23 jul 1953 17:36:34 +0200", "1953-07-23T15:36:34Z"),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
    }

    #[test]
    fn any_text_is_read_without_panic() {
        for text in ["-", "+", "1:", ":1", "((", "))", "\u{fc}1\u{fc}", "1-+1"] {
            assert_eq!(read(text), "none", "{text}");
        }
        assert_eq!(read(&"1.".repeat(10_000)), "2001-01-01T00:00:00Z");
        assert_eq!(read("99999999999999999999 Jul 1993 99999999999:1"), "none");
    }
}
