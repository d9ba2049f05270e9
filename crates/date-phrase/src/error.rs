//! The errors of parsing, with the messages that people read.

/// The reason why a phrase is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// The text is empty.
    #[error("missing {}; try {}", expected.name(), expected.examples())]
    Empty {
        /// The kind of phrase that was expected.
        expected: ExpectedPhrase,
    },
    /// The text has no meaning.
    #[error(
        "unknown {} {text:?}{}; try {}",
        expected.name(),
        suggestion.map_or_else(String::new, |word| format!(" (did you mean {word}?)")),
        expected.examples()
    )]
    NotUnderstood {
        /// The text.
        text: String,
        /// The kind of phrase that was expected.
        expected: ExpectedPhrase,
        /// The name of a day that a word of the text resembles.
        suggestion: Option<&'static str>,
    },
    /// A date that does not exist: 30 February, week 60.
    #[error("the date {text:?} does not exist")]
    NoSuchDay {
        /// The text.
        text: String,
    },
    /// A numeric date in the wrong order: `13/5/2026` if the month comes first.
    #[error(
        "invalid date {text:?}: the {} comes first here; write it as YYYY-MM-DD",
        if *month_first { "month" } else { "day" }
    )]
    NumericDate {
        /// The text.
        text: String,
        /// The order of the language.
        month_first: bool,
    },
    /// A numeric date in a locale without an order of day and month.
    #[error("ambiguous date {text:?}: write {} or {}", dates[0], dates[1])]
    AmbiguousDate {
        /// The text.
        text: String,
        /// Both dates, as YYYY-MM-DD or as day and month in words.
        dates: [String; 2],
    },
    /// A weekday that contradicts the date next to it.
    #[error("wrong weekday in {text:?}: that date is {actual}")]
    WeekdayMismatch {
        /// The text.
        text: String,
        /// The date with its weekday.
        actual: String,
    },
    /// The end is before the beginning.
    #[error("{text:?} ends before it begins")]
    EndBeforeStart {
        /// The text.
        text: String,
    },
    /// A week or a month where one day is expected.
    #[error("{text:?} is longer than a day; give one day, such as 2026-03-05 or next friday")]
    NotOneDay {
        /// The text.
        text: String,
    },
    /// An hour that may be before or after noon: "at 3".
    #[error(
        "ambiguous time {text:?}: write {}am, {}pm or {hour:02}:{minute:02}",
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
    #[error("invalid time {text:?}: write 14:30 or 2:30pm, or quote it to keep it in the summary")]
    InvalidTime {
        /// The text.
        text: String,
    },
    /// Words of date or time that do not combine with the rest of the sentence.
    #[error(
        "cannot combine {text:?} with the other date or time; rephrase it, or quote it to keep it in \
         the summary"
    )]
    Unconsumed {
        /// The words.
        text: String,
    },
    /// A misspelled name of a day next to a time: "wednsday".
    #[error(
        "unknown word {text:?} (did you mean {suggestion}?); correct it, or quote it to keep it in the summary"
    )]
    Misspelled {
        /// The word.
        text: String,
        /// The name that it resembles.
        suggestion: &'static str,
    },
    /// A word of date or time of another language next to a time: "Freitag 10:00" in English.
    #[error(
        "{text:?} is a word of date or time in another language ({language}): set LC_TIME to that \
         language, or quote it to keep it in the summary"
    )]
    ForeignWord {
        /// The word.
        text: String,
        /// The ISO 639 code of the language.
        language: &'static str,
    },
    /// A time with an offset from UTC: `10:00+05:30`.
    #[error(
        "offset from UTC in {text:?}; name a time zone instead, such as 10:00 Europe/Berlin or \
         10:00 UTC"
    )]
    Offset {
        /// The text.
        text: String,
    },
    /// "every 2nd tuesday": of the month, or every other one.
    #[error("ambiguous {text:?}: write \"{text} of the month\", or \"every 2 weeks\" and the day")]
    AmbiguousSecond {
        /// The words.
        text: String,
    },
    /// An abbreviation of several time zones: `EST`.
    #[error(
        "ambiguous time zone {text:?}: write Europe/Berlin or Berlin time, or quote it to keep it in \
         the summary"
    )]
    ZoneAbbreviation {
        /// The abbreviation.
        text: String,
    },
    /// A duration in hours, or an end, without a start time.
    #[error("{text:?} needs a start time, such as 12:30")]
    MissingStart {
        /// The text.
        text: String,
    },
    /// Two phrases that exclude each other.
    #[error("{first:?} contradicts {second:?}; remove one, or quote it to keep it in the summary")]
    Contradiction {
        /// The first phrase.
        first: String,
        /// The second phrase.
        second: String,
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

impl ExpectedPhrase {
    fn name(self) -> &'static str {
        match self {
            ExpectedPhrase::DateRange => "date",
            ExpectedPhrase::PointInTime => "date or time",
            ExpectedPhrase::Duration => "duration",
        }
    }

    fn examples(self) -> &'static str {
        match self {
            ExpectedPhrase::DateRange => "today, next friday, 2026-03, +2w or today..+7d",
            ExpectedPhrase::PointInTime => "today, next friday, 2026-03-05, 5 march 14:00 or 12:30",
            ExpectedPhrase::Duration => "1h30, 90min or 2 days",
        }
    }
}

/// Returns the first hundred characters of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}
