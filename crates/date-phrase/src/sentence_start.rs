//! The start of an event in a sentence: a date, a time, and the part of the day next to them.
//!
//! Methods of [`SentenceWalk`] that match a phrase at a word and record it.

use crate::calendar_names::match_weekday;
use crate::calendar_span::{SpanUnit, next_day_of_month};
use crate::date::match_date;
use crate::error::PhraseError;
use crate::holidays::match_holiday;
use crate::repetition::match_repetition;
use crate::sentence_walk::{ConsumedCount, MatchedPhrase, SentenceParts, SentenceWalk};
use crate::time_of_day::{
    TimeOfDay, is_hour_length, is_phrase_end, match_bare_hour, match_part_of_day,
    match_time_or_ambiguous, match_trailing_part_of_day, parse_contextual_time,
};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{LanguageProperty, WordMeaning};
use larder_time::civil::Weekday;

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// Matches a date or a time, with or without "from" before it.
    pub(crate) fn match_start(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let from = self.context.match_meaning(rest, WordMeaning::From).unwrap_or(0);
        let words = skip_tokens(rest, from);
        // The time of "at 4pm" begins at "at", and a date at "on".
        let used = match self.match_start_date(words, at)? {
            Some(used) => Some(used),
            None => self.match_start_time(words, at)?,
        };
        let Some(used) = used else { return Ok(None) };
        self.date_end = at + from + used;
        Ok(Some(from + used))
    }

    fn match_start_date(&mut self, words: &[PhraseToken<'a>], at: usize) -> ConsumedCount {
        if self.parts.date.is_some() {
            return Ok(None);
        }
        let Some((used, value)) = match_date(words, &self.context)? else { return Ok(None) };
        let timed = value.unit == SpanUnit::Instant;
        if value.unit == SpanUnit::Longer || (timed && self.parts.time.is_some()) {
            return Ok(None);
        }
        if match_holiday(words, &self.context).is_some() {
            // "from christmas on" is a start, "Christmas 18:00" is handled at the end.
            if words.len() == self.tokens_from(at).len() {
                return Ok(None);
            }
        } else if value.is_weak && self.date_end != at {
            let next = skip_tokens(words, used);
            let repeated = || matches!(match_repetition(next, &self.context), Ok(Some(_)));
            if !self.is_time(next) && !repeated() {
                return Ok(None);
            }
        }
        self.parts.date = Some(MatchedPhrase { value, text: source_text(words, used) });
        Ok(Some(used + self.match_part_of_day(words, used, at)))
    }

    /// Matches a part of the day after a date ("evening") or in it ("tonight"). Returns how many
    /// further words it has.
    pub(crate) fn match_part_of_day(
        &mut self,
        words: &[PhraseToken<'a>],
        used: usize,
        at: usize,
    ) -> usize {
        // The position of `words` in the sentence.
        let skipped = self.tokens_from(at).len() - words.len();
        let part = |from: usize| match_part_of_day(skip_tokens(words, from), &self.context);
        let following = part(used);
        let more = following.map_or(0, |(more, _)| more);
        let inside = || {
            let mut found = (0..used).filter_map(|from| Some((from, part(from)?)));
            found.find(|(from, (more, _))| from + more == used)
        };
        let found = following.map(|found| (used, found)).or_else(inside);
        let Some((from, (_, part))) = found else { return 0 };
        self.parts.part_of_day = Some(part);
        self.parts.is_night = part.is_night();
        // "friday evening" is a time, and "friday evening gala" is a name.
        let next = skip_tokens(words, used + more);
        let stop = words.get(used + more - 1).is_some_and(|word| word.has_stop);
        let ended = more == 0 || stop || is_phrase_end(next, &self.context);
        self.part_of_day_time = part.typical_time().filter(|_| ended);
        self.part_of_day = at + skipped + from..at + skipped + used + more;
        more
    }

    fn match_start_time(&mut self, words: &[PhraseToken<'a>], at: usize) -> ConsumedCount {
        let timed =
            self.parts.date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant);
        if timed || self.parts.time.is_some() {
            return Ok(None);
        }
        let is_bare = words.len() == self.tokens_from(at).len();
        if is_bare && is_hour_length(words, &self.context) {
            return Ok(None);
        }
        let found = match_time_or_ambiguous(words, &self.context);
        let found = found.or_else(|| self.parse_time_beside_date(words, at).map(|time| (1, time)));
        let found = match found {
            None if is_bare => self.match_bare_hour(at)?,
            found => found,
        };
        let Some((used, value)) = found else { return Ok(None) };
        let text = source_text(words, used);
        let part = match_trailing_part_of_day(skip_tokens(words, used), &self.context);
        let more = part.map_or(0, |(more, _)| more);
        self.parts.part_of_day = part.map(|(_, part)| part).or(self.parts.part_of_day);
        let value = if self.parts.part_of_day.is_some() {
            value.resolve_am_pm(self.parts.part_of_day, &text)?
        } else {
            value
        };
        self.parts.time = Some(MatchedPhrase { value, text });
        Ok(Some(used + more))
    }

    /// Matches an hour after the name of a day, which does not count anything there: "tomorrow 14",
    /// "tomorrow at 14 dinner".
    fn match_bare_hour(&self, at: usize) -> Result<Option<(usize, TimeOfDay)>, PhraseError> {
        let rest = self.tokens_from(at);
        if self.date_end != at || !self.is_after_day_name(at) {
            return Ok(None);
        }
        let Some((used, time)) = match_bare_hour(rest, &self.context) else {
            return Ok(None);
        };
        // "friday 13" may be the 13th, and "mardi 14" is.
        let dated =
            self.context.language.vocabulary().has_property(LanguageProperty::AdjectiveAfterNoun);
        let day = parse_number(first_word(rest).unwrap_or_default(), 2);
        let day = day.and_then(|day| next_day_of_month(day, self.context.base));
        let named =
            self.words.get(at - 1..at).and_then(|words| match_weekday(words, &self.context));
        let (Some((_, name)), Some(day)) = (named, day) else { return Ok(Some((used, time))) };
        match dated || Weekday::from_day_number(day) == name.day {
            true => Err(PhraseError::Unconsumed { text: source_text(self.tokens_from(at - 1), 2) }),
            false => Ok(Some((used, time))),
        }
    }

    /// Matches "Christmas eve 19:00" in a sentence without another date.
    pub(crate) fn match_holiday_beside_time(&mut self) {
        let SentenceParts { date, time, all_day, end_tokens, repetition, .. } = &self.parts;
        let dated =
            date.is_some() || all_day.is_some() || end_tokens.is_some() || repetition.is_some();
        if dated || time.is_none() {
            return;
        }
        let is_consumed = |at: usize| {
            let mark = |word: &PhraseToken| word.is_quoted || word.text.starts_with(['#', '!']);
            self.consumed.get(at) == Some(&true)
                && self.words.get(at).is_some_and(|word| !mark(word))
        };
        let mut found = (0..self.words.len()).filter_map(|at| {
            let (used, value) = match_holiday(self.tokens_from(at), &self.context)?;
            let open = self.consumed.iter().skip(at).take(used).all(|consumed| !consumed);
            let close = is_consumed(at + used) || at.checked_sub(1).is_some_and(is_consumed);
            (open && close).then_some((at, used, value))
        });
        let Some((at, used, value)) = found.next() else { return };
        drop(found);
        self.parts.date =
            Some(MatchedPhrase { value, text: source_text(self.tokens_from(at), used) });
        self.set_consumed(at..at + used, true);
    }

    /// Returns whether the name of a day or of a part of it stands before a word.
    fn is_after_day_name(&self, at: usize) -> bool {
        const NAMES: [WordMeaning; 3] =
            [WordMeaning::Today, WordMeaning::Tomorrow, WordMeaning::DayAfterTomorrow];
        if at.checked_sub(1).and_then(|at| self.words.get(at)).is_none_or(|word| word.has_stop) {
            return false;
        }
        (at.saturating_sub(4)..at).any(|from| {
            let words = self.words.get(from..at).unwrap_or_default();
            let whole = |used: Option<usize>| used == Some(words.len());
            whole(match_weekday(words, &self.context).map(|(used, _)| used))
                || whole(match_part_of_day(words, &self.context).map(|(used, _)| used))
                || NAMES.iter().any(|meaning| whole(self.context.match_meaning(words, *meaning)))
        })
    }

    /// Parses a number that is a time only next to a date: "tomorrow 1400", "1400 tomorrow"; but
    /// "budget 2030 tomorrow" has none.
    fn parse_time_beside_date(&self, words: &[PhraseToken<'a>], at: usize) -> Option<TimeOfDay> {
        let text = first_word(words)?;
        let time = parse_contextual_time(text, &self.context)?;
        let year = text.starts_with("19") || text.starts_with("20");
        let before = self.date_end == at;
        (before || (!year && self.is_beside_date(at, skip_tokens(words, 1)))).then_some(time)
    }
}
