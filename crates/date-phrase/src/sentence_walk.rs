//! The state.

use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::PhraseContext;
use crate::date::match_date;
use crate::duration::PhraseDuration;
use crate::error::PhraseError;
use crate::repetition::{RepeatPhrase, match_repetition};
use crate::time_of_day::{PartOfDay, TimeOfDay, match_time_or_ambiguous, match_time_range};
use crate::tokens::{PhraseToken, skip_tokens};
use larder_time::value::Nominal;
use std::ops::Range;

/// Something that was said, with the words that said it.
#[derive(Debug, Clone)]
pub(crate) struct Matched<T> {
    pub(crate) value: T,
    pub(crate) text: String,
}

/// The phrases of a sentence.
#[derive(Debug, Default)]
pub(crate) struct SentenceParts<'a> {
    pub(crate) date: Option<Matched<CalendarSpan>>,
    pub(crate) time: Option<Matched<TimeOfDay>>,
    pub(crate) all_day: Option<Matched<()>>,
    /// The end, if it is a time alone.
    pub(crate) end_time: Option<Matched<TimeOfDay>>,
    /// The words of another end, whose meaning depends on the start.
    pub(crate) end_tokens: Option<Vec<PhraseToken<'a>>>,
    pub(crate) durations: Vec<Matched<PhraseDuration>>,
    pub(crate) repetition: Option<RepeatPhrase>,
    /// How many of what is repeated.
    pub(crate) count: Option<Matched<i64>>,
    /// The part of the day.
    pub(crate) part_of_day: Option<PartOfDay>,
    /// Beside the date stands that it is the night of it.
    pub(crate) is_night: bool,
    /// The zone that a time is of.
    pub(crate) zone: Option<String>,
    pub(crate) alarms: Vec<Nominal>,
    pub(crate) categories: Vec<String>,
    pub(crate) priority: Option<u8>,
    /// Something is said to be due.
    pub(crate) is_due: bool,
}

/// How many words are taken, if any.
pub(crate) type ConsumedCount = Result<Option<usize>, PhraseError>;

/// The walk.
pub(crate) struct SentenceWalk<'w, 'a> {
    pub(crate) words: &'w [PhraseToken<'a>],
    pub(crate) context: PhraseContext,
    pub(crate) consumed: Vec<bool>,
    pub(crate) parts: SentenceParts<'a>,
    /// The word behind the last date or time.
    pub(crate) date_end: usize,
    /// Words for a part of the day.
    pub(crate) part_of_day: Range<usize>,
    /// The hour that they mean where no time is said.
    pub(crate) part_of_day_time: Option<TimeOfDay>,
    /// The first word of a rule behind words like "daily", so that it is looked for once.
    pub(crate) rule_position: usize,
}

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// A walk that has consumed nothing.
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

    /// Is there a time of day?
    pub(crate) fn is_time(&self, words: &[PhraseToken<'a>]) -> bool {
        match_time_or_ambiguous(words, &self.context).is_some()
            || match_time_range(words, &self.context).is_some()
    }

    /// Does the date say a time, as `2026-03-05T20:00`?
    pub(crate) fn is_instant(&self) -> bool {
        self.parts.date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant)
    }

    /// Is there a date or a repetition before this word, or do the words begin with one?
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
