//! Dates, windows and events as people type them: `next friday`, `2026-W12`, `today..+7d`, "Lunch with Anna tomorrow
//! 12:30 for 1h at Bistro".
//!
//! ```text
//! window = week | weekend | month | year | +2w (from today on) | moment [ ".." [ moment ] ] | ".." moment
//! moment = date [ [ "at" ] time ] | time [ date ]
//! date   = 2026 | 2026-03 | 2026-03-05 | 20260305 | 2026-W12 | 2026-W12-3 | 2026-Q2 | 2026-03-05T12:30
//!        | 3/5/2026 | 3/5                                    in the order of the language
//!        | 5.3.2026 | 5.3. | 5-Mar-2026                      in English, too, as nobody writes dots month first
//!        | now | today | tomorrow | yesterday | [ this | next | last ] WEEKDAY
//!        | [ day ] MONTH [ year ] | MONTH day [ year ] | ( this | next | last ) ( week | weekend | month | year | MONTH )
//!        | +2w | -3d | +1m | +1y | +90min | in two weeks | 2 weeks ago | next 3 days | week 12
//!        | christmas | "new year's eve"                      behind "on", "from" or "until", or beside a time
//!        | WEEKDAY [ "the" ] 30th | "end of" ( MONTH | "the" ( week | month | year ) )
//! time   = ( 12:30 | 12:30:15 | 3pm | 3.30pm | 15h | 15h30 | noon | midnight | "half past" 3 | "at" 8 ) [ PART OF THE DAY ]
//!        | 1400 | 14-15 | 14:00-15 | PART OF THE DAY         in a sentence, beside a date
//!
//! sentence = words, and among them: date, time, time "-" time, "from" moment "to" moment, "until" moment, "for" length,
//!            "every" ( WEEKDAY ... | [ number ] unit [ WEEKDAY ... ] | day MONTH | 15th | "first" WEEKDAY ), "daily", "all day",
//!            "monthly on" ( 15th | "first" WEEKDAY ), "on the 15th of every month", with a time "weekdays",
//!            with a time WEEKDAY ( "-" | "to" ) WEEKDAY, WEEKDAYS; behind days "except" WEEKDAY ...;
//!            "due" before any of them; with a repetition NUMBER "times"; behind a time ZONE | CITY [ "time" ];
//!            "#category", "!high", "alarm" length; at the end "at" PLACE
//! length   = 1h | 90min | 1h30 | 2 days | half an hour
//! ```
//!
//! Everything is in clock time: the moment something is said at is passed in, and of zones only names are known here. Nothing is
//! guessed silently: what was understood is in fields that the caller can print, and what could mean two things
//! is an error that says what to write; so is a word of time that nothing is made of. A date without a year is the next such
//! date, today included.
//!
//! Apart from [`larder_time::value`], which reads what programs write.

mod date;
mod date_range;
mod duration;
mod folding;
mod holidays;
mod language;
mod misspelling;
mod numeric_date;
mod parse_sentence;
mod repetition;
mod sentence;
mod time_of_day;
mod tokens;
mod unconsumed;
mod vocabulary;

pub use self::date_range::{Moment, Window, range};
pub use self::duration::length;
pub use self::language::Language;
pub use self::sentence::Sentence;

use std::fmt;

/// Why a phrase is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// Nothing was said.
    #[error("no {expected}")]
    Empty {
        /// What would be understood.
        expected: ExpectedPhrase,
    },
    /// The words mean nothing.
    #[error("{text:?} is no {expected}")]
    NotUnderstood {
        /// The text.
        text: String,
        /// What would be understood.
        expected: ExpectedPhrase,
    },
    /// 30 February, week 60.
    #[error("{text:?} is not in the calendar")]
    NoSuchDay {
        /// The text.
        text: String,
    },
    /// `13/5/2026` where the month stands first.
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
    /// A weekday and a date that is another one.
    #[error("{text:?} contradicts itself: that is {is}")]
    WeekdayMismatch {
        /// The text.
        text: String,
        /// The date with its weekday.
        is: String,
    },
    /// It ends before it begins.
    #[error("{text:?} ends before it begins")]
    EndBeforeStart {
        /// The text.
        text: String,
    },
    /// A week or a month where a day is wanted.
    #[error("{text:?} is more than a day: say which one, as 2026-03-05 or next friday")]
    NotOneDay {
        /// The text.
        text: String,
    },
    /// "at 3" is before noon or after it.
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
    /// `25:00`
    #[error("{text:?} is no time of day: write 14:30 or 2:30pm, or put it in quotes")]
    InvalidTime {
        /// The text.
        text: String,
    },
    /// Words of time of which nothing could be made beside the rest.
    #[error(
        "{text:?} says when, and is not understood here: say it in another way, or put it in quotes to keep it in \
         the title"
    )]
    Unconsumed {
        /// The words.
        text: String,
    },
    /// "wednsday" beside a time.
    #[error("{text:?} may be {meant}: write that, or put it in quotes to keep it in the title")]
    Misspelled {
        /// The word.
        text: String,
        /// The name that is near.
        meant: &'static str,
    },
    /// `10:00+05:30`
    #[error(
        "{text:?} has an offset: write the time alone and name a zone, as 10:00 Europe/Berlin or 10:00 UTC"
    )]
    Offset {
        /// The text.
        text: String,
    },
    /// "every 2nd tuesday"
    #[error(
        "{text:?} is one in each month or every other one: write \"{text} of the month\", or \"every 2 weeks\" and \
         the day"
    )]
    AmbiguousSecond {
        /// The words.
        text: String,
    },
    /// `EST`
    #[error(
        "{text:?} is not the name of one zone: write Europe/Berlin or Berlin time, or put it in quotes"
    )]
    ZoneAbbreviation {
        /// The letters.
        text: String,
    },
    /// Hours without a time they begin at.
    #[error("{text:?} needs a time at which it begins, as 12:30")]
    NoStart {
        /// The text.
        text: String,
    },
    /// Two phrases that exclude each other.
    #[error("{one:?} and {other:?} contradict each other: leave one out, or put it in quotes")]
    Contradiction {
        /// The one.
        one: String,
        /// The other.
        other: String,
    },
}

/// As a clock of twelve hours shows it: `3`, `12:45`.
fn twelve_hour_text(hour: u8, minute: u8) -> String {
    let hour = if hour == 0 { 12 } else { hour };
    if minute == 0 { hour.to_string() } else { format!("{hour}:{minute:02}") }
}

/// What would be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedPhrase {
    /// A window.
    DateRange,
    /// A point in time.
    PointInTime,
    /// A length.
    Duration,
}

/// What it is called, and examples.
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
