//! Dates, times and durations in words: `next friday`, `2026-W12`, `today..+7d`, and whole events
//! such as "Lunch with Anna tomorrow 12:30 for 1h at Bistro", in 13 languages.
//!
//! ```
//! use larder_date_phrase::{DateRange, Language};
//! use larder_time::civil::{CivilTime, Date};
//!
//! let now = CivilTime::midnight(Date::new(2026, 3, 4).ok_or("no such day")?.day_number());
//! let range = DateRange::parse("next friday", now, &Language::default())?;
//! assert_eq!(range.from.to_string(), "20260306T000000");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything is in clock time: the caller passes the present moment in, and only the names of time
//! zones are known here. Nothing is guessed silently: the meaning is in fields that the caller can
//! print, and an ambiguous phrase is an error whose message says what to write instead. A word of
//! date or time that belongs to no phrase is an error, too. A date without a year is the next such
//! date, the current day included.
//!
//! # Modules
//!
//! Each module uses only the modules above it.
//!
//! | module | contents |
//! |---|---|
//! | `error` | [`PhraseError`] and its messages |
//! | `folding` | comparison of letters without case and accents |
//! | `vocabulary` | the vocabulary files: words and their meanings |
//! | `language` | [`Language`]: a vocabulary and the conventions of a country |
//! | `user_locale` | [`UserLocale`]: the time, place and language of the user |
//! | `tokens` | the words of a text |
//! | `context` | the present moment and the language; how words are matched |
//! | `time_of_day` | times of day and parts of the day |
//! | `calendar_span` | the result of parsing a date: a span of the calendar |
//! | `calendar_names` | names of weekdays and months, numbers of days |
//! | `numeric_date` | dates in digits |
//! | `holidays` | holidays with a fixed date |
//! | `duration` | durations and distances |
//! | `date` | dates and longer spans in words |
//! | `misspelling` | misspelled names of days |
//! | `date_range` | [`DateRange`] and [`PointInTime`]: phrases that are the whole text |
//! | `repetition` | repetitions as recurrence rules |
//! | `unconsumed_words` | words of date or time that belong to no phrase |
//! | `sentence_walk` | the state of the walk over a sentence |
//! | `sentence_start` | the start in a sentence |
//! | `sentence_end` | the end in a sentence |
//! | `parse_sentence` | the phrases of a sentence, in the order in which they are tried |
//! | `sentence` | [`Sentence`]: what the phrases mean together |
//!
//! # Grammar
//!
//! In the grammar, an English word stands for the corresponding words of every vocabulary.
//!
//! ```text
//! range  = week | weekend | month | year | +2w (from today on) | moment [ ".." [ moment ] ]
//!        | ".." moment
//! moment = date [ [ "at" ] time ] | time [ date ]
//! date   = 2026 | 2026-03 | 2026-03-05 | 20260305 | 2026-W12 | 2026-W12-3 | 2026-Q2
//!        | 2026-03-05T12:30
//!        | 3/5/2026 | 3/5                        in the order of the language
//!        | 5.3.2026 | 5.3. | 5-Mar-2026          day first in English, too
//!        | now | today | tomorrow | yesterday | [ this | next | last ] WEEKDAY
//!        | [ day ] MONTH [ year ] | MONTH day [ year ]
//!        | ( this | next | last ) ( week | weekend | month | year | MONTH )
//!        | +2w | -3d | +1m | +1y | +90min | in two weeks | 2 weeks ago | next 3 days | week 12
//!        | christmas | "new year's eve"          after "on", "from" or "until", or next to a time
//!        | WEEKDAY [ "the" ] 30th | "end of" ( MONTH | "the" ( week | month | year ) )
//! time   = ( 12:30 | 12:30:15 | 3pm | 3.30pm | 15h | 15h30 | noon | midnight | "half past" 3
//!          | "at" 8 ) [ PART OF THE DAY ]
//!        | 1400 | 14-15 | 14:00-15 | PART OF THE DAY      in a sentence, next to a date
//!
//! sentence = words, and among them: date; time; time "-" time; "from" moment "to" moment;
//!            "until" moment; "for" duration;
//!            "every" ( WEEKDAY ... | [ number ] unit [ WEEKDAY ... ] | day MONTH | 15th
//!                    | "first" WEEKDAY );
//!            "daily"; "all day"; "monthly on" ( 15th | "first" WEEKDAY );
//!            "on the 15th of every month"; with a time "weekdays", WEEKDAYS,
//!            WEEKDAY ( "-" | "to" ) WEEKDAY, and WEEKDAY "/" WEEKDAY ...; after days
//!            "except" WEEKDAY ...; before any of these "due"; after a time duration;
//!            with a repetition NUMBER "times";
//!            after a time ZONE | CITY [ "time" ]; "#category"; "!high"; "alarm" duration;
//!            at the end "at" PLACE
//! duration = 1h | 90min | 1h30 | 2 days | half an hour
//! ```

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
mod unconsumed_words;
mod user_locale;
mod vocabulary;

pub use self::date_range::{DateRange, PointInTime};
pub use self::duration::parse_duration;
pub use self::error::{ExpectedPhrase, PhraseError};
pub use self::language::Language;
pub use self::sentence::Sentence;
pub use self::user_locale::UserLocale;
