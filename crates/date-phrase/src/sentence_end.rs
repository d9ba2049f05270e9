//! The end of an event in a sentence: durations, ends, and ranges of times and dates.
//!
//! Methods of [`SentenceWalk`] that match a phrase at a word and record it.

use crate::calendar_names::{match_month_name, match_weekday, parse_day_number};
use crate::calendar_span::SpanUnit;
use crate::date::{match_date, match_date_and_time, match_end};
use crate::duration::{MLetter, PhraseDuration, match_duration, match_unit, match_unit_alone};
use crate::error::PhraseError;
use crate::numeric_date::parse_year;
use crate::sentence_walk::{ConsumedCount, MatchedPhrase, SentenceWalk};
use crate::time_of_day::{
    TimeOfDay, is_hour_length, is_phrase_end, match_hour_range, match_time, match_time_range,
    parse_colon_time, parse_end_hour, resolve_hour_range,
};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::WordMeaning;

/// The words of one end of a range that was written as one word.
type RangeEnds<'a> = Vec<PhraseToken<'a>>;

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// Matches "for 1h". A second duration is accepted with a repetition, because one of them may
    /// be the length of the repetition.
    pub(crate) fn match_duration(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let Some(used) = self.context.match_meaning(rest, WordMeaning::For) else {
            return Ok(self.match_bare_duration(at));
        };
        let time = first_word(skip_tokens(rest, used)).and_then(parse_colon_time);
        let read = match time {
            Some(time) => {
                Some((1, PhraseDuration { seconds: time.second, ..PhraseDuration::default() }))
            }
            None => {
                let words = skip_tokens(rest, used);
                let alone = |(used, _): &(usize, PhraseDuration)| {
                    is_phrase_end(skip_tokens(words, *used), &self.context)
                };
                match_duration(words, &self.context, MLetter::Minutes)
                    .or_else(|| match_unit_alone(words, &self.context).filter(alone))
            }
        };
        let Some((more, value)) = read else { return Ok(None) };
        let most = 1 + usize::from(self.parts.repetition.is_some());
        if self.parts.durations.len() >= most {
            return Ok(None);
        }
        self.parts.durations.push(MatchedPhrase { value, text: source_text(rest, used + more) });
        Ok(Some(used + more))
    }

    /// Matches "15:30 1h" after a start time, and a number of hours anywhere, at the end of a
    /// phrase: "Team 9:00 1h walk" may have another meaning. "9:00 1h walk" has one meaning: the
    /// sentence begins with the start, and its summary follows.
    fn match_bare_duration(&mut self, at: usize) -> Option<usize> {
        let rest = self.tokens_from(at);
        let has_start = self.date_end == at && (self.parts.time.is_some() || self.is_instant());
        let has_end = self.parts.end_time.is_some() || self.parts.end_tokens.is_some();
        let is_length = has_start || is_hour_length(rest, &self.context);
        if !is_length || has_end || !self.parts.durations.is_empty() {
            return None;
        }
        let (used, value) = match_duration(rest, &self.context, MLetter::Minutes)?;
        let following = skip_tokens(rest, used);
        let is_before_start = || self.is_time(following) || self.is_beside_date(at, following);
        let begins_sentence = || self.consumed.iter().take(at).all(|is_consumed| *is_consumed);
        let is_certain = if has_start { begins_sentence() } else { is_before_start() };
        if !is_phrase_end(following, &self.context) && !is_certain {
            return None;
        }
        self.parts.durations.push(MatchedPhrase { value, text: source_text(rest, used) });
        Some(used)
    }

    /// Matches "until friday", and after a date or time "to 13:30".
    pub(crate) fn match_end(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let until = self.context.match_meaning(rest, WordMeaning::Until);
        let to = self.context.match_meaning(rest, WordMeaning::To).filter(|_| self.date_end == at);
        let Some(used) = until.max(to) else { return Ok(None) };
        let is_certain = until.is_some() || self.parts.time.is_some();
        let Some(more) = self.match_end_tokens(skip_tokens(rest, used), is_certain)? else {
            return Ok(None);
        };
        let words = rest.get(used..used + more).unwrap_or_default();
        let is_recorded = self.record_end(words)?;
        let is_deadline = self.context.match_meaning(rest, WordMeaning::DueBy).is_some();
        self.parts.is_end_deadline |= is_recorded && is_deadline;
        Ok(is_recorded.then_some(used + more))
    }

    /// Returns how many words belong to the end. A date or time that may be the start is left for
    /// it: "until 13:30 tomorrow", "daily from 9 march to 13 march 8:00". If the end is not
    /// certain, a time is a start: "demain à 12h30".
    pub(crate) fn match_end_tokens(
        &self,
        words: &[PhraseToken<'a>],
        is_certain: bool,
    ) -> ConsumedCount {
        let found = &self.parts;
        if let Some((used, _)) = match_time(words, &self.context)?
            && (found.date.is_none() || !is_certain)
        {
            return Ok(is_certain.then_some(used));
        }
        if self.parse_end_hour(words).is_some() {
            return Ok(Some(1));
        }
        let read =
            if found.repetition.is_some() && found.time.is_none() { match_date } else { match_end };
        Ok(read(words, &self.context)?.map(|(used, _)| used))
    }

    /// Parses the hour of "10:00 to 11".
    pub(crate) fn parse_end_hour(&self, words: &[PhraseToken<'a>]) -> Option<TimeOfDay> {
        let from = self.parts.time.as_ref()?.value;
        let ended = is_phrase_end(skip_tokens(words, 1), &self.context);
        parse_end_hour(first_word(words).filter(|_| ended)?, from, &self.context)
    }

    /// Records an end, if there is none of its kind. Returns whether it did.
    pub(crate) fn record_end(&mut self, words: &[PhraseToken<'a>]) -> Result<bool, PhraseError> {
        let hour = self.parse_end_hour(words).filter(|_| words.len() == 1).map(|hour| (1, hour));
        if let Some((used, value)) = match_time(words, &self.context)?.or(hour)
            && used == words.len()
        {
            let free = self.parts.end_time.is_none();
            self.parts
                .end_time
                .get_or_insert(MatchedPhrase { value, text: source_text(words, used) });
            return Ok(free);
        }
        let free = self.parts.end_tokens.is_none();
        self.parts.end_tokens.get_or_insert_with(|| words.to_vec());
        Ok(free)
    }

    /// Matches `12:30-13:30`, "9 to 5pm", "from 9 to 5pm".
    pub(crate) fn match_time_range(&mut self, at: usize) -> ConsumedCount {
        if self.parts.time.is_some() || self.parts.end_time.is_some() {
            return Ok(None);
        }
        let rest = self.tokens_from(at);
        let from = self.context.match_meaning(rest, WordMeaning::From);
        let from =
            from.or_else(|| self.context.match_meaning(rest, WordMeaning::AtTime)).unwrap_or(0);
        let words = skip_tokens(rest, from);
        let found =
            match_time_range(words, &self.context).or_else(|| self.match_spoken_hours(words));
        let found = match found {
            None => self.match_bare_hours(at, words)?,
            found => found,
        };
        let Some((used, start, end)) = found else { return Ok(None) };
        let text = source_text(rest, from + used);
        self.parts.time = Some(MatchedPhrase { value: start, text: text.clone() });
        self.parts.end_time = Some(MatchedPhrase { value: end, text });
        self.date_end = at + from + used;
        Ok(Some(from + used))
    }

    /// Matches `14-15` and "10 to 11" next to a date, unless a month or a unit follows.
    pub(crate) fn match_bare_hours(
        &self,
        at: usize,
        words: &[PhraseToken<'a>],
    ) -> Result<Option<(usize, TimeOfDay, TimeOfDay)>, PhraseError> {
        let Some((used, from, to)) = match_hour_range(words, &self.context) else {
            return Ok(None);
        };
        let following = skip_tokens(words, used);
        let counted = match_month_name(following, &self.context).is_some()
            || match_unit(following, &self.context, MLetter::Minutes).is_some();
        if counted || !self.is_beside_date(at, following) {
            return Ok(None);
        }
        let (start, end) = resolve_hour_range(&source_text(words, used), from, to, &self.context)?;
        Ok(Some((used, start, end)))
    }

    /// Matches "9 to 5pm" as if it were one word.
    pub(crate) fn match_spoken_hours(
        &self,
        words: &[PhraseToken<'a>],
    ) -> Option<(usize, TimeOfDay, TimeOfDay)> {
        let hour = first_word(words).filter(|text| parse_number(text, 2).is_some())?;
        let to = 1 + self.context.match_meaning(skip_tokens(words, 1), WordMeaning::To)?;
        // A time, and words that may belong to it.
        let mut joined: Vec<PhraseToken> = skip_tokens(words, to).iter().take(3).cloned().collect();
        let last = joined.first_mut().filter(|word| !word.is_quoted)?;
        last.folded = format!("{hour}-{}", last.folded);
        let (used, start, end) = match_time_range(&joined, &self.context)?;
        Some((to + used, start, end))
    }

    /// Matches `2026-03-01..2026-03-05`, "5-7 march".
    pub(crate) fn match_date_range(&mut self, at: usize) -> ConsumedCount {
        let (rest, context) = (self.tokens_from(at), &self.context);
        let Some(word) = rest.first() else { return Ok(None) };
        if self.parts.date.is_some() || self.parts.end_tokens.is_some() {
            return Ok(None);
        }
        let sides = self.split_dashed_range(rest, word).or_else(|| self.split_spoken_days(rest));
        let Some((from, to, used)) = sides else { return Ok(None) };
        let (Some((_, start)), Some(_)) =
            (match_date_and_time(&from, context)?, match_date_and_time(&to, context)?)
        else {
            return Ok(None);
        };
        let names = |words: &[PhraseToken]| match_weekday(words, context).is_some();
        if start.unit == SpanUnit::Longer || (start.is_weak && !(names(&from) && names(&to))) {
            return Ok(None);
        }
        self.parts.date = Some(MatchedPhrase { value: start, text: source_text(rest, used) });
        self.parts.end_tokens = Some(to);
        self.date_end = at + used;
        Ok(Some(used))
    }

    /// Splits "from 3 to 10 august", "3. bis 10. August".
    pub(crate) fn split_spoken_days(
        &self,
        rest: &[PhraseToken<'a>],
    ) -> Option<(RangeEnds<'a>, RangeEnds<'a>, usize)> {
        let from = self.context.match_meaning(rest, WordMeaning::From).unwrap_or(0);
        let day = |at: usize| rest.get(at).filter(|word| parse_day_number(&word.folded).is_some());
        let first = day(from)?;
        let to =
            from + 1 + self.context.match_meaning(skip_tokens(rest, from + 1), WordMeaning::To)?;
        let named = skip_tokens(rest, to + 1);
        let (day, (month, _)) = (day(to)?, match_month_name(named, &self.context)?);
        let year = named.get(month).filter(|word| parse_year(&word.folded).is_some());
        let following = named.iter().take(month + usize::from(year.is_some()));
        let side = |day: &PhraseToken<'a>| {
            std::iter::once(day.clone()).chain(following.clone().cloned()).collect::<Vec<_>>()
        };
        Some((side(first), side(day), to + 1 + following.len()))
    }

    /// Splits a range in one word into the words of its ends, and returns how many words it had.
    pub(crate) fn split_dashed_range(
        &self,
        rest: &[PhraseToken<'a>],
        word: &PhraseToken<'a>,
    ) -> Option<(RangeEnds<'a>, RangeEnds<'a>, usize)> {
        const DASHES: [char; 2] = ['-', '–'];
        if let Some((from, to)) = word.text.split_once("..") {
            return Some((vec![PhraseToken::new(from)], vec![PhraseToken::new(to)], 1));
        }
        let is_month = |word: Option<&PhraseToken<'a>>| {
            word.is_some_and(|word| {
                match_month_name(std::slice::from_ref(word), &self.context).is_some()
            })
        };
        // "aug 1-15" and "1-15 aug", with or without a year.
        let month_first = is_month(Some(word));
        let (days, month) = if month_first { (rest.get(1)?, 0) } else { (word, 1) };
        let (from, to) = days.text.trim_end_matches(',').split_once(DASHES)?;
        if parse_day_number(from).is_some()
            && parse_day_number(to).is_some()
            && is_month(rest.get(month))
        {
            let year = rest.get(2).filter(|word| parse_year(&word.folded).is_some());
            let side = |day| {
                let named = rest.get(month).cloned().into_iter();
                std::iter::once(PhraseToken::new(day)).chain(named).chain(year.cloned()).collect()
            };
            return Some((side(from), side(to), 2 + usize::from(year.is_some())));
        }
        // `mon-fri`
        let weekday = |text| match_weekday(&[PhraseToken::new(text)], &self.context).is_some();
        if !month_first && weekday(from) && weekday(to) {
            return Some((vec![PhraseToken::new(from)], vec![PhraseToken::new(to)], 1));
        }
        // `1.8.-15.8.`
        let numeric = |text: &str| text.contains(['.', '/']) && !text.contains(DASHES);
        (numeric(from) && numeric(to) && !month_first)
            .then(|| (vec![PhraseToken::new(from)], vec![PhraseToken::new(to)], 1))
    }
}
