//! The state of the walk over a sentence: the words, the phrases found, and tests of neighbouring
//! words.
//!
//! Separate from [`parse_sentence`](crate::parse_sentence) so that the modules for starts and ends
//! depend on the state and not on the order of the walk.

use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::PhraseContext;
use crate::date::match_date;
use crate::duration::PhraseDuration;
use crate::error::PhraseError;
use crate::repetition::{RepeatPhrase, match_repetition};
use crate::time_of_day::{PartOfDay, TimeOfDay, match_time_or_ambiguous, match_time_range};
use crate::tokens::{PhraseToken, skip_tokens};
use larder_time::value::IcalDuration;
use std::ops::Range;

/// A phrase: its meaning, and its words for messages.
#[derive(Debug, Clone)]
pub(crate) struct MatchedPhrase<T> {
    pub(crate) value: T,
    pub(crate) text: String,
}

/// The phrases of a sentence.
#[derive(Debug, Default)]
pub(crate) struct SentenceParts<'a> {
    pub(crate) date: Option<MatchedPhrase<CalendarSpan>>,
    pub(crate) time: Option<MatchedPhrase<TimeOfDay>>,
    pub(crate) all_day: Option<MatchedPhrase<()>>,
    /// The end, if it is a time alone.
    pub(crate) end_time: Option<MatchedPhrase<TimeOfDay>>,
    /// The words of another end, whose meaning depends on the start.
    pub(crate) end_tokens: Option<Vec<PhraseToken<'a>>>,
    pub(crate) durations: Vec<MatchedPhrase<PhraseDuration>>,
    pub(crate) repetition: Option<RepeatPhrase>,
    /// The number of occurrences.
    pub(crate) count: Option<MatchedPhrase<i64>>,
    /// The part of the day.
    pub(crate) part_of_day: Option<PartOfDay>,
    /// The date is followed by the evening or night, which lasts past midnight.
    pub(crate) is_night: bool,
    /// The time zone of the times.
    pub(crate) zone: Option<String>,
    pub(crate) alarms: Vec<IcalDuration>,
    pub(crate) categories: Vec<String>,
    pub(crate) priority: Option<u8>,
    /// The sentence contains "due".
    pub(crate) is_due: bool,
    /// The end is a deadline unless there is a start: "by friday".
    pub(crate) is_end_deadline: bool,
}

/// The number of words consumed, if a phrase matched.
pub(crate) type ConsumedCount = Result<Option<usize>, PhraseError>;

/// The walk over a sentence. Its methods for starts are in `sentence_start`, for ends in
/// `sentence_end`.
pub(crate) struct SentenceWalk<'w, 'a> {
    pub(crate) words: &'w [PhraseToken<'a>],
    pub(crate) context: PhraseContext,
    pub(crate) consumed: Vec<bool>,
    pub(crate) parts: SentenceParts<'a>,
    /// The position after the last date, time or repetition.
    pub(crate) date_end: usize,
    /// The words of the part of the day.
    pub(crate) part_of_day: Range<usize>,
    /// The time of the part of the day, if no other time is given.
    pub(crate) part_of_day_time: Option<TimeOfDay>,
    /// The position of the next full rule after an adverb such as "daily", so that it is searched
    /// once.
    pub(crate) rule_position: usize,
}

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// A walk that has consumed no word.
    pub(crate) fn new(words: &'w [PhraseToken<'a>], context: PhraseContext) -> Self {
        SentenceWalk {
            words,
            context,
            consumed: vec![false; words.len()],
            parts: SentenceParts::default(),
            date_end: usize::MAX,
            part_of_day: 0..0,
            part_of_day_time: None,
            rule_position: 0,
        }
    }

    pub(crate) fn set_consumed(&mut self, words: Range<usize>, consumed: bool) {
        for of in self.consumed.iter_mut().take(words.end).skip(words.start) {
            *of = consumed;
        }
    }

    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.is_quoted)
    }

    pub(crate) fn tokens_from(&self, at: usize) -> &'w [PhraseToken<'a>] {
        skip_tokens(self.words, at)
    }

    /// Returns whether the words begin with a time of day.
    pub(crate) fn is_time(&self, words: &[PhraseToken<'a>]) -> bool {
        match_time_or_ambiguous(words, &self.context).is_some()
            || match_time_range(words, &self.context).is_some()
    }

    /// Returns whether the date contains a time, as `2026-03-05T20:00` does.
    pub(crate) fn is_instant(&self) -> bool {
        self.parts.date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant)
    }

    /// Returns whether a date or repetition stands before a position, or at the beginning of
    /// `following`.
    pub(crate) fn is_beside_date(&self, at: usize, following: &[PhraseToken<'a>]) -> bool {
        let dated = || match match_date(following, &self.context) {
            Ok(Some((_, span))) => span.unit == SpanUnit::Day && !span.is_weak,
            _ => false,
        };
        self.date_end == at
            || dated()
            || matches!(match_repetition(following, &self.context), Ok(Some(_)))
    }
}
