//! The errors of parsing, with the messages that people read.

use std::fmt;

/// The reason why a phrase is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// The text is empty.
    #[error("no {expected}")]
    Empty {
        /// The kind of phrase that was expected.
        expected: ExpectedPhrase,
    },
    /// The text has no meaning.
    #[error("{text:?} is no {expected}")]
    NotUnderstood {
        /// The text.
        text: String,
        /// The kind of phrase that was expected.
        expected: ExpectedPhrase,
    },
    /// A date that does not exist: 30 February, week 60.
    #[error("{text:?} is not in the calendar")]
    NoSuchDay {
        /// The text.
        text: String,
    },
    /// A numeric date in the wrong order: `13/5/2026` where the month comes first.
    #[error(
        "{text:?} is no date where the {} comes first: write 2026-03-05",
        if *month_first { "month" } else { "day" }
    )]
    NumericDate {
        /// The text.
        text: String,
        /// The order of the language.
        month_first: bool,
    },
    /// A weekday beside a date that is another weekday.
    #[error("{text:?} contradicts itself: that is {is}")]
    WeekdayMismatch {
        /// The text.
        text: String,
        /// The date with its weekday.
        is: String,
    },
    /// The end is before the beginning.
    #[error("{text:?} ends before it begins")]
    EndBeforeStart {
        /// The text.
        text: String,
    },
    /// A week or a month where one day is expected.
    #[error("{text:?} is more than a day: say which one, as 2026-03-05 or next friday")]
    NotOneDay {
        /// The text.
        text: String,
    },
    /// An hour that may be before or after noon: "at 3".
    #[error(
        "{text:?} is before noon or after: write {}am, {}pm or {hour:02}:{minute:02}",
        twelve_hour_text(*hour, *minute),
        twelve_hour_text(*hour, *minute)
    )]
    AmbiguousHour {
        /// The text.
        text: String,
        /// The hour, 0 to 12.
        hour: u8,
        /// The minute.
        minute: u8,
    },
    /// A time that does not exist: `25:00`.
    #[error("{text:?} is no time of day: write 14:30 or 2:30pm, or put it in quotes")]
    InvalidTime {
        /// The text.
        text: String,
    },
    /// Words of date or time that do not combine with the rest of the sentence.
    #[error(
        "{text:?} says when, and is not understood here: say it in another way, or put it in quotes to keep it in \
         the title"
    )]
    Unconsumed {
        /// The words.
        text: String,
    },
    /// A misspelled name of a day beside a time: "wednsday".
    #[error("{text:?} may be {meant}: write that, or put it in quotes to keep it in the title")]
    Misspelled {
        /// The word.
        text: String,
        /// The name that it resembles.
        meant: &'static str,
    },
    /// A time with an offset from UTC: `10:00+05:30`.
    #[error(
        "{text:?} has an offset: write the time alone and name a zone, as 10:00 Europe/Berlin or 10:00 UTC"
    )]
    Offset {
        /// The text.
        text: String,
    },
    /// "every 2nd tuesday": of the month, or every other one.
    #[error(
        "{text:?} is one in each month or every other one: write \"{text} of the month\", or \"every 2 weeks\" and \
         the day"
    )]
    AmbiguousSecond {
        /// The words.
        text: String,
    },
    /// An abbreviation of several time zones: `EST`.
    #[error(
        "{text:?} is not the name of one zone: write Europe/Berlin or Berlin time, or put it in quotes"
    )]
    ZoneAbbreviation {
        /// The abbreviation.
        text: String,
    },
    /// A duration in hours, or an end, without a start time.
    #[error("{text:?} needs a time at which it begins, as 12:30")]
    NoStart {
        /// The text.
        text: String,
    },
    /// Two phrases that exclude each other.
    #[error("{one:?} and {other:?} contradict each other: leave one out, or put it in quotes")]
    Contradiction {
        /// The first phrase.
        one: String,
        /// The second phrase.
        other: String,
    },
}

/// Formats a time for a clock of twelve hours: `3`, `12:45`.
fn twelve_hour_text(hour: u8, minute: u8) -> String {
    let hour = if hour == 0 { 12 } else { hour };
    if minute == 0 { hour.to_string() } else { format!("{hour}:{minute:02}") }
}

/// The kind of phrase that was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedPhrase {
    /// A date range.
    DateRange,
    /// A point in time.
    PointInTime,
    /// A duration.
    Duration,
}

/// The name of the phrase, with examples.
impl fmt::Display for ExpectedPhrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpectedPhrase::DateRange => {
                "window of time: write today, next friday, this week, 2026-03, 2026-W12, 5 march, +2w or \
                 today..+7d"
            }
            ExpectedPhrase::PointInTime => {
                "date or time: write today, next friday, 2026-03-05, 5 march 14:00, 12:30 or +2w"
            }
            ExpectedPhrase::Duration => "length: write 1h30, 90min or 2 days",
        })
    }
}

/// Returns the first hundred characters of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The error of a text without meaning.
pub(crate) fn not_understood(text: &str, expected: ExpectedPhrase) -> PhraseError {
    PhraseError::NotUnderstood { text: excerpt(text), expected }
}
