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

mod calendar_names;
mod calendar_span;
mod context;
mod date;
mod date_range;
mod duration;
mod error;
mod folding;
mod holidays;
mod language;
mod misspelling;
mod numeric_date;
mod parse_sentence;
mod repetition;
mod sentence;
mod sentence_end;
mod sentence_start;
mod sentence_walk;
mod time_of_day;
mod tokens;
mod unconsumed;
mod vocabulary;

pub use self::date_range::{Moment, Window, range};
pub use self::duration::length;
pub use self::error::{ExpectedPhrase, PhraseError};
pub use self::language::Language;
pub use self::sentence::Sentence;
