//! The phrases of a sentence: finds which words belong to a phrase, and to which.
//!
//! Walks from left to right and tries the kinds of phrases in a fixed order. Each kind is consumed
//! once; a second one remains in the summary, where the user sees it. [`sentence`](crate::sentence)
//! decides what the phrases mean together.

use crate::calendar_span::SpanUnit;
use crate::context::PhraseContext;
use crate::duration::{MLetter, match_duration};
use crate::error::PhraseError;
use crate::folding::{fold, is_form};
use crate::numeric_date::has_offset;
use crate::repetition::{
    RepeatPhrase, match_adverb, match_count, match_exception, match_repetition,
    match_spoken_weekday_range, match_weekday_range_or_workdays,
};
use crate::sentence_walk::{ConsumedCount, MatchedPhrase, SentenceParts, SentenceWalk};
use crate::time_of_day::{
    is_invalid_time, is_phrase_end, match_hour_range, match_time_or_ambiguous, match_time_range,
    parse_colon_time,
};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{Vocabulary, WordMeaning};
use larder_time::value::IcalDuration;
use larder_time::zone::{has_area_prefix, zone_of_city};

/// Finds the phrases of a sentence.
///
/// # Errors
/// When words name a date or time that does not exist or is ambiguous.
pub(crate) fn parse_sentence<'w, 'a>(
    words: &'w [PhraseToken<'a>],
    context: PhraseContext,
) -> Result<SentenceWalk<'w, 'a>, PhraseError> {
    let mut walk = SentenceWalk::new(words, context);
    let mut at = 0;
    while at < words.len() {
        let used = if walk.is_quoted(at) { None } else { walk.match_phrase(at)? };
        let used = used.unwrap_or(0);
        walk.set_consumed(at..at + used, true);
        at += used.max(1);
    }
    walk.match_count();
    walk.match_holiday_beside_time();
    walk.apply_part_of_day()?;
    if walk.parts.time.is_none() {
        walk.apply_part_of_day_time();
    }
    Ok(walk)
}

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// Uses the typical time of a part of the day, as in "Dinner tonight", unless another time or
    /// length is given.
    fn apply_part_of_day_time(&mut self) {
        let SentenceParts { date, end_time, all_day, .. } = &self.parts;
        let moment = date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant);
        let free = !moment && end_time.is_none() && all_day.is_none();
        match self.part_of_day_time.filter(|_| free) {
            Some(value) => {
                let text =
                    source_text(self.tokens_from(self.part_of_day.start), self.part_of_day.len());
                self.parts.time = Some(MatchedPhrase { value, text });
            }
            None => self.set_consumed(self.part_of_day.clone(), false),
        }
    }

    /// Applies the part of the day to the time, wherever it stands: "at 8 tonight".
    fn apply_part_of_day(&mut self) -> Result<(), PhraseError> {
        let SentenceParts { time: Some(time), end_time, part_of_day: part, .. } = &mut self.parts
        else {
            return Ok(());
        };
        let before = time.value;
        time.value = before.resolve_am_pm(*part, &time.text)?;
        if let Some(end) = end_time.as_mut().filter(|_| time.value != before) {
            end.value = end.value.resolve_am_pm(*part, &end.text)?;
        }
        Ok(())
    }

    /// Matches "10 times" anywhere in a sentence with a repetition. Without one, the words mean
    /// something else.
    fn match_count(&mut self) {
        if self.parts.repetition.is_none() {
            return;
        }
        let free = (0..self.words.len()).filter(|at| self.consumed.get(*at) == Some(&false));
        let mut found = free.filter_map(|at| {
            let (used, count) = match_count(self.tokens_from(at), &self.context)?;
            let open = self.consumed.iter().skip(at).take(used).all(|consumed| !consumed);
            open.then_some((at, used, count))
        });
        let Some((at, used, value)) = found.next() else { return };
        drop(found);
        self.parts.count =
            Some(MatchedPhrase { value, text: source_text(self.tokens_from(at), used) });
        self.set_consumed(at..at + used, true);
    }

    /// Matches and records the phrase that begins at a word.
    fn match_phrase(&mut self, at: usize) -> ConsumedCount {
        let matchers: [fn(&mut Self, usize) -> ConsumedCount; 11] = [
            Self::match_mark,
            Self::match_zone,
            Self::match_due,
            Self::match_repetition,
            Self::match_all_day,
            Self::match_alarm,
            Self::match_duration,
            Self::match_end,
            Self::match_time_range,
            Self::match_date_range,
            Self::match_start,
        ];
        for matcher in matchers {
            if let Some(used) = matcher(self, at)? {
                return Ok(Some(used));
            }
        }
        let offset = |text: &&str| !text.contains(['-', '−']) && has_offset(text);
        if first_word(self.tokens_from(at)).filter(offset).is_some() {
            return Err(PhraseError::Offset { text: source_text(self.tokens_from(at), 1) });
        }
        if self.date_end == at
            && (self.parts.time.is_some() || self.is_instant())
            && first_word(self.tokens_from(at)).is_some_and(is_utc_offset)
        {
            let text = source_text(self.tokens_from(at - 1), 2);
            // `-11:00` may be an end as well.
            let end = first_word(self.tokens_from(at)).is_some_and(|text| text.starts_with('-'));
            return Err(if end {
                PhraseError::Unconsumed { text }
            } else {
                PhraseError::Offset { text }
            });
        }
        match first_word(self.tokens_from(at)).filter(|text| is_invalid_time(text)) {
            Some(_) => Err(PhraseError::InvalidTime { text: source_text(self.tokens_from(at), 1) }),
            None => Ok(None),
        }
    }

    /// Matches `#category`, `!high`, `!3`.
    fn match_mark(&mut self, at: usize) -> ConsumedCount {
        let Some(word) = self.words.get(at) else { return Ok(None) };
        let bare = word.text.trim_end_matches([',', ';', ':', '!', '?', '.']);
        if let Some(name) =
            bare.strip_prefix('#').filter(|name| name.starts_with(char::is_alphabetic))
        {
            if !self.parts.categories.iter().any(|known| known == name) {
                self.parts.categories.push(name.to_owned());
            }
            return Ok(Some(1));
        }
        let Some(name) = word.folded.strip_prefix('!') else { return Ok(None) };
        const LEVELS: [(WordMeaning, u8); 3] = [
            (WordMeaning::HighPriority, 1),
            (WordMeaning::MediumPriority, 5),
            (WordMeaning::LowPriority, 9),
        ];
        let tables = || self.context.language.vocabularies();
        let named = LEVELS.iter().find(|(meaning, _)| {
            tables()
                .any(|vocabulary| vocabulary.forms(*meaning).iter().any(|form| is_form(form, name)))
        });
        let digit = parse_number(name, 1).filter(|level| *level > 0).map(|level| level as u8);
        let level = named.map(|(_, level)| *level).or(digit);
        if level.is_none() || self.parts.priority.is_some() {
            return Ok(None);
        }
        self.parts.priority = level;
        Ok(Some(1))
    }

    /// Matches "due" before a date, an end or a repetition: "due friday", "due by 17:00".
    fn match_due(&mut self, at: usize) -> ConsumedCount {
        let Some(used) = self.context.match_meaning(self.tokens_from(at), WordMeaning::Due) else {
            return Ok(None);
        };
        let matchers = [Self::match_repetition, Self::match_end, Self::match_start];
        for matcher in matchers {
            if let Some(more) = matcher(self, at + used)? {
                self.parts.is_due = true;
                return Ok(Some(used + more));
            }
        }
        Ok(None)
    }

    /// Matches "every monday".
    fn match_repetition(&mut self, at: usize) -> ConsumedCount {
        if let Some(repeat) = &self.parts.repetition {
            // "every weekday 8:15 except wednesday"
            let found = match_exception(self.tokens_from(at), repeat, &self.context);
            let Some((used, repeat)) = found else { return Ok(None) };
            self.parts.repetition = Some(repeat);
            return Ok(Some(used));
        }
        let Some((mut used, mut repeat)) = self.find_repetition(at)? else { return Ok(None) };
        // "Daily standup every weekday": a full rule takes precedence over an adverb in the
        // summary.
        if match_adverb(self.tokens_from(at), &self.context).is_some()
            && self.find_rule_after(at + used)?
        {
            return Ok(None);
        }
        if let Some((more, without)) =
            match_exception(self.tokens_from(at + used), &repeat, &self.context)
        {
            (used, repeat) = (used + more, without);
        }
        self.parts.repetition = Some(repeat);
        // "every evening", "every sunday evening"
        used += self.match_part_of_day(self.tokens_from(at), used, at);
        self.date_end = at + used;
        Ok(Some(used))
    }

    /// Finds a repetition that begins at a word.
    fn find_repetition(&self, at: usize) -> Result<Option<(usize, RepeatPhrase)>, PhraseError> {
        let rest = self.tokens_from(at);
        if let Some(found) = match_repetition(rest, &self.context)? {
            return Ok(Some(found));
        }
        let timed = self.date_end == at && self.parts.time.is_some();
        let found = match_weekday_range_or_workdays(rest, &self.context);
        if let Some((used, repeat)) = found {
            // "weekdays except friday 9:00"
            let exception = match_exception(skip_tokens(rest, used), &repeat, &self.context);
            let following = skip_tokens(rest, used + exception.map_or(0, |(used, _)| used));
            return Ok((timed || self.is_time(following)).then_some((used, repeat)));
        }
        // "monday to friday 9:15-9:30"
        let ranged = timed && self.parts.end_time.is_some();
        Ok(match_spoken_weekday_range(rest, &self.context).and_then(
            |(used, repeat, is_certain)| {
                let following = skip_tokens(rest, used);
                let once = is_certain && (timed || self.is_time(following));
                (once || ranged || self.has_two_times(following)).then_some((used, repeat))
            },
        ))
    }

    /// Returns whether the words begin with a start time and an end time.
    fn has_two_times(&self, words: &[PhraseToken<'a>]) -> bool {
        let skipped = self.context.match_meaning(words, WordMeaning::From);
        let skipped =
            skipped.or_else(|| self.context.match_meaning(words, WordMeaning::AtTime)).unwrap_or(0);
        let words = skip_tokens(words, skipped);
        let spoken = || {
            let (used, _) = match_time_or_ambiguous(words, &self.context)?;
            let to = self.context.match_meaning(skip_tokens(words, used), WordMeaning::To)?;
            let rest = skip_tokens(words, used + to);
            first_word(rest).filter(|text| parse_number(text, 2).is_some() || self.is_time(rest))
        };
        match_time_range(words, &self.context).is_some()
            || match_hour_range(words, &self.context).is_some()
            || self.match_spoken_hours(words).is_some()
            || spoken().is_some()
    }

    /// Returns whether a repetition follows that is more than an adverb such as "daily".
    fn find_rule_after(&mut self, from: usize) -> Result<bool, PhraseError> {
        for at in from.max(self.rule_position)..self.words.len() {
            let adverb = match_adverb(self.tokens_from(at), &self.context).is_some();
            if !adverb && !self.is_quoted(at) && self.find_repetition(at)?.is_some() {
                self.rule_position = at;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Matches a time zone after a time: "Europe/Berlin", "UTC", "New York time", "New York". A
    /// city without "time" may be a place as well, so its words are not consumed.
    fn match_zone(&mut self, at: usize) -> ConsumedCount {
        let timed = self.date_end == at && (self.parts.time.is_some() || self.is_instant());
        let rest = self.tokens_from(at);
        let Some(text) = first_word(rest).filter(|_| timed && self.parts.zone.is_none()) else {
            return Ok(None);
        };
        let written = rest.first().map_or("", |word| word.text.trim_end_matches([',', ';', '.']));
        if Vocabulary::shared_notation().forms(WordMeaning::Utc).contains(&written)
            || (text.contains('/') && has_area_prefix(written))
        {
            self.parts.zone = Some(written.to_owned());
            return Ok(Some(1));
        }
        let texts = |used: usize| rest.get(..used).unwrap_or_default().iter().map(|word| word.text);
        let Some((used, zone)) = (1..=3).rev().find_map(|used| {
            let name = texts(used).collect::<Vec<_>>().join(" ");
            let capital = name.starts_with(char::is_uppercase) && used <= rest.len();
            Some((used, zone_of_city(name.trim_end_matches([',', ';'])).filter(|_| capital)?))
        }) else {
            return Ok(None);
        };
        let following = skip_tokens(rest, used);
        let time = self.context.match_meaning(following, WordMeaning::LocalTime);
        if time.is_some() || is_phrase_end(following, &self.context) {
            self.parts.zone = Some(zone.to_owned());
        }
        Ok(time.map(|time| used + time))
    }

    fn match_all_day(&mut self, at: usize) -> ConsumedCount {
        let Some(used) = self.context.match_meaning(self.tokens_from(at), WordMeaning::AllDay)
        else {
            return Ok(None);
        };
        self.parts.all_day =
            Some(MatchedPhrase { value: (), text: source_text(self.tokens_from(at), used) });
        Ok(Some(used))
    }

    /// Matches "alarm 15min".
    fn match_alarm(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let Some(used) = self.context.match_meaning(rest, WordMeaning::Alarm) else {
            return Ok(None);
        };
        let Some((more, amount)) =
            match_duration(skip_tokens(rest, used), &self.context, MLetter::Minutes)
        else {
            return Ok(None);
        };
        if amount.months != 0 {
            return Ok(None);
        }
        let used = used + more;
        let before = self
            .context
            .match_meaning(skip_tokens(rest, used), WordMeaning::BeforeStart)
            .unwrap_or(0);
        self.parts.alarms.push(IcalDuration { days: amount.days, seconds: amount.seconds });
        Ok(Some(used + before))
    }
}

/// Returns whether the text is an offset from UTC: `+05:30`, `UTC+2`.
fn is_utc_offset(text: &str) -> bool {
    let utc = Vocabulary::shared_notation().forms(WordMeaning::Utc).iter();
    let named = utc.map(|name| fold(name)).find_map(|name| text.strip_prefix(name.as_str()));
    let Some(digits) = named.unwrap_or(text).strip_prefix(['+', '-', '−']) else { return false };
    let plain = parse_number(digits, 4).is_some_and(|_| named.is_some() || digits.len() == 4);
    parse_colon_time(digits).is_some() || plain
}
