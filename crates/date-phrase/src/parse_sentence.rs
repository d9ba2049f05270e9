//! What a sentence says, phrase by phrase: which words are taken, and for what.
//!
//! A walk from left to right. Each kind of phrase is taken once; what comes a second time stays a word of the
//! summary, where it is seen. What the phrases mean together is [`sentence`](super::sentence)'s matter.

use super::PhraseError;
use super::date::{
    CalendarSpan, SpanUnit, match_date, match_date_and_time, match_month_name, parse_day_number,
};
use super::duration::{MLetter, PhraseDuration, match_duration, match_unit_alone};
use super::folding::{fold, is_form};
use super::numeric_date::has_offset;
use super::repetition::{self, RepeatPhrase, match_repetition};
use super::time_of_day::{self, PartOfDay, TimeOfDay, match_time, match_time_range};
use super::tokens::{
    PhraseContext, PhraseToken, first_word, parse_number, skip_tokens, source_text,
};
use super::vocabulary::{Vocabulary, WordMeaning};
use larder_time::value::Nominal;
use larder_time::zone::city;
use std::ops::Range;

mod start;

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
    part_of_day: Option<PartOfDay>,
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
type ConsumedCount = Result<Option<usize>, PhraseError>;

/// Words that were one word.
type RangeEnds<'a> = Vec<PhraseToken<'a>>;

/// The walk.
pub(crate) struct SentenceWalk<'w, 'a> {
    words: &'w [PhraseToken<'a>],
    context: PhraseContext,
    pub(crate) consumed: Vec<bool>,
    pub(crate) parts: SentenceParts<'a>,
    /// The word behind the last date or time.
    date_end: usize,
    /// Words for a part of the day.
    pub(crate) part_of_day: Range<usize>,
    /// The hour that they mean where no time is said.
    part_of_day_time: Option<TimeOfDay>,
    /// The first word of a rule behind words like "daily", so that it is looked for once.
    rule_position: usize,
}

impl<'w, 'a> SentenceWalk<'w, 'a> {
    /// Walks over the words.
    ///
    /// # Errors
    /// Where words say a date or time that cannot be.
    pub(crate) fn parse(
        words: &'w [PhraseToken<'a>],
        context: PhraseContext,
    ) -> Result<SentenceWalk<'w, 'a>, PhraseError> {
        let taken = vec![false; words.len()];
        let (found, behind, part) = (SentenceParts::default(), usize::MAX, 0..0);
        let mut scan = SentenceWalk {
            words,
            context,
            consumed: taken,
            parts: found,
            date_end: behind,
            part_of_day: part,
            part_of_day_time: None,
            rule_position: 0,
        };
        let mut at = 0;
        while at < words.len() {
            let used = if scan.is_quoted(at) { None } else { scan.match_phrase(at)? };
            let used = used.unwrap_or(0);
            for taken in scan.consumed.iter_mut().skip(at).take(used) {
                *taken = true;
            }
            at += used.max(1);
        }
        scan.match_count();
        scan.match_holiday_beside_time();
        scan.apply_part_of_day()?;
        if scan.parts.time.is_none() {
            scan.apply_part_of_day_time();
        }
        Ok(scan)
    }

    fn set_consumed(&mut self, words: Range<usize>, taken: bool) {
        for of in self.consumed.iter_mut().take(words.end).skip(words.start) {
            *of = taken;
        }
    }

    /// "Dinner tonight" is at an hour of its own, unless something else says how long it goes on.
    fn apply_part_of_day_time(&mut self) {
        let SentenceParts { date, end_time, all_day, .. } = &self.parts;
        let moment = date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant);
        let free = !moment && end_time.is_none() && all_day.is_none();
        match self.part_of_day_time.filter(|_| free) {
            Some(what) => {
                let text =
                    source_text(self.tokens_from(self.part_of_day.start), self.part_of_day.len());
                self.parts.time = Some(Matched { value: what, text });
            }
            None => self.set_consumed(self.part_of_day.clone(), false),
        }
    }

    /// What the part of the day says of the time, wherever it stands: "at 8 tonight".
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

    /// "10 times", wherever it stands: without a repetition it would be the words of something else.
    fn match_count(&mut self) {
        if self.parts.repetition.is_none() {
            return;
        }
        let free = (0..self.words.len()).filter(|at| self.consumed.get(*at) == Some(&false));
        let mut found = free.filter_map(|at| {
            let (used, count) = repetition::match_count(self.tokens_from(at), &self.context)?;
            let open = self.consumed.iter().skip(at).take(used).all(|taken| !taken);
            open.then_some((at, used, count))
        });
        let Some((at, used, what)) = found.next() else { return };
        drop(found);
        self.parts.count =
            Some(Matched { value: what, text: source_text(self.tokens_from(at), used) });
        self.set_consumed(at..at + used, true);
    }

    fn is_quoted(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.is_quoted)
    }

    /// How many words from here on are a phrase, which is noted.
    fn match_phrase(&mut self, at: usize) -> ConsumedCount {
        let readers: [fn(&mut Self, usize) -> ConsumedCount; 11] = [
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
        for reader in readers {
            if let Some(used) = reader(self, at)? {
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
            // `-11:00` may be an end, too.
            let end = first_word(self.tokens_from(at)).is_some_and(|text| text.starts_with('-'));
            return Err(if end {
                PhraseError::Unconsumed { text }
            } else {
                PhraseError::Offset { text }
            });
        }
        match first_word(self.tokens_from(at)).filter(|text| time_of_day::is_invalid_time(text)) {
            Some(_) => Err(PhraseError::InvalidTime { text: source_text(self.tokens_from(at), 1) }),
            None => Ok(None),
        }
    }

    fn tokens_from(&self, at: usize) -> &'w [PhraseToken<'a>] {
        skip_tokens(self.words, at)
    }

    /// `#category`, `!high`, `!3`.
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
        let named = LEVELS.iter().find(|(term, _)| {
            tables().any(|table| table.forms(*term).iter().any(|form| is_form(form, name)))
        });
        let digit = parse_number(name, 1).filter(|level| *level > 0).map(|level| level as u8);
        let level = named.map(|(_, level)| *level).or(digit);
        if level.is_none() || self.parts.priority.is_some() {
            return Ok(None);
        }
        self.parts.priority = level;
        Ok(Some(1))
    }

    /// "due friday", "due by 17:00", "due every month": the word goes with what it stands before.
    fn match_due(&mut self, at: usize) -> ConsumedCount {
        let Some(used) = self.context.match_meaning(self.tokens_from(at), WordMeaning::Due) else {
            return Ok(None);
        };
        let readers = [Self::match_repetition, Self::match_end, Self::match_start];
        for reader in readers {
            if let Some(more) = reader(self, at + used)? {
                self.parts.is_due = true;
                return Ok(Some(used + more));
            }
        }
        Ok(None)
    }

    /// "every monday"
    fn match_repetition(&mut self, at: usize) -> ConsumedCount {
        if let Some(repeat) = &self.parts.repetition {
            // "every weekday 8:15 except wednesday"
            let found = repetition::match_exception(self.tokens_from(at), repeat, &self.context);
            let Some((used, repeat)) = found else { return Ok(None) };
            self.parts.repetition = Some(repeat);
            return Ok(Some(used));
        }
        let Some((mut used, mut repeat)) = self.find_repetition(at)? else { return Ok(None) };
        // "Daily standup every weekday": the rule itself wins over a word of the title.
        if repetition::match_adverb(self.tokens_from(at), &self.context).is_some()
            && self.find_rule_after(at + used)?
        {
            return Ok(None);
        }
        if let Some((more, without)) =
            repetition::match_exception(self.tokens_from(at + used), &repeat, &self.context)
        {
            (used, repeat) = (used + more, without);
        }
        self.parts.repetition = Some(repeat);
        // "every evening", "every sunday evening"
        used += self.match_part_of_day(self.tokens_from(at), used, at);
        self.date_end = at + used;
        Ok(Some(used))
    }

    /// A repetition that begins here.
    fn find_repetition(&self, at: usize) -> Result<Option<(usize, RepeatPhrase)>, PhraseError> {
        let rest = self.tokens_from(at);
        if let Some(found) = match_repetition(rest, &self.context)? {
            return Ok(Some(found));
        }
        let timed = self.date_end == at && self.parts.time.is_some();
        let found = repetition::match_weekday_range_or_workdays(rest, &self.context);
        if found.is_some() {
            return Ok(found.filter(|(used, _)| timed || self.is_time(skip_tokens(rest, *used))));
        }
        // "monday to friday 9:15-9:30"
        let ranged = timed && self.parts.end_time.is_some();
        Ok(repetition::match_spoken_weekday_range(rest, &self.context).and_then(
            |(used, repeat, sure)| {
                let behind = skip_tokens(rest, used);
                let once = sure && (timed || self.is_time(behind));
                (once || ranged || self.has_two_times(behind)).then_some((used, repeat))
            },
        ))
    }

    /// Are there two times of day, one to begin and one to end at?
    fn has_two_times(&self, words: &[PhraseToken<'a>]) -> bool {
        let skipped = self.context.match_meaning(words, WordMeaning::From);
        let skipped =
            skipped.or_else(|| self.context.match_meaning(words, WordMeaning::AtTime)).unwrap_or(0);
        let words = skip_tokens(words, skipped);
        let spoken = || {
            let (used, _) = time_of_day::match_time_or_ambiguous(words, &self.context)?;
            let to = self.context.match_meaning(skip_tokens(words, used), WordMeaning::To)?;
            let rest = skip_tokens(words, used + to);
            first_word(rest).filter(|text| parse_number(text, 2).is_some() || self.is_time(rest))
        };
        match_time_range(words, &self.context).is_some()
            || time_of_day::match_hour_range(words, &self.context).is_some()
            || self.match_spoken_hours(words).is_some()
            || spoken().is_some()
    }

    /// Is there a repetition from here on that is more than a word like "daily"?
    fn find_rule_after(&mut self, from: usize) -> Result<bool, PhraseError> {
        for at in from.max(self.rule_position)..self.words.len() {
            let adverb = repetition::match_adverb(self.tokens_from(at), &self.context).is_some();
            if !adverb && !self.is_quoted(at) && self.find_repetition(at)?.is_some() {
                self.rule_position = at;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Is there a time of day?
    fn is_time(&self, words: &[PhraseToken<'a>]) -> bool {
        time_of_day::match_time_or_ambiguous(words, &self.context).is_some()
            || match_time_range(words, &self.context).is_some()
    }

    /// Does the date say a time, as `2026-03-05T20:00`?
    fn is_instant(&self) -> bool {
        self.parts.date.as_ref().is_some_and(|date| date.value.unit == SpanUnit::Instant)
    }

    /// "Europe/Berlin", "UTC", "New York time" and "New York" behind a time. A city alone may be a place as well, so it stays in
    /// the text.
    fn match_zone(&mut self, at: usize) -> ConsumedCount {
        let timed = self.date_end == at && (self.parts.time.is_some() || self.is_instant());
        let rest = self.tokens_from(at);
        let Some(text) = first_word(rest).filter(|_| timed && self.parts.zone.is_none()) else {
            return Ok(None);
        };
        let written = rest.first().map_or("", |word| word.text.trim_end_matches([',', ';', '.']));
        if Vocabulary::common().forms(WordMeaning::Utc).contains(&written)
            || (text.contains('/') && larder_time::zone::is_area(written))
        {
            self.parts.zone = Some(written.to_owned());
            return Ok(Some(1));
        }
        let texts = |used: usize| rest.get(..used).unwrap_or_default().iter().map(|word| word.text);
        let Some((used, zone)) = (1..=3).rev().find_map(|used| {
            let name = texts(used).collect::<Vec<_>>().join(" ");
            let capital = name.starts_with(char::is_uppercase) && used <= rest.len();
            Some((used, city(name.trim_end_matches([',', ';'])).filter(|_| capital)?))
        }) else {
            return Ok(None);
        };
        let behind = skip_tokens(rest, used);
        let time = self.context.match_meaning(behind, WordMeaning::LocalTime);
        if time.is_some() || time_of_day::is_phrase_end(behind, &self.context) {
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
            Some(Matched { value: (), text: source_text(self.tokens_from(at), used) });
        Ok(Some(used))
    }

    /// "alarm 15min"
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
        self.parts.alarms.push(Nominal { days: amount.days, seconds: amount.seconds });
        Ok(Some(used + before))
    }

    /// "for 1h": once, and a second time where one of them may be how long it is repeated.
    fn match_duration(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let Some(used) = self.context.match_meaning(rest, WordMeaning::For) else {
            return Ok(None);
        };
        let clock =
            first_word(skip_tokens(rest, used)).and_then(super::time_of_day::parse_colon_time);
        let read = match clock {
            Some(clock) => {
                Some((1, PhraseDuration { seconds: clock.second, ..PhraseDuration::default() }))
            }
            None => {
                let words = skip_tokens(rest, used);
                let alone = |(used, _): &(usize, PhraseDuration)| {
                    time_of_day::is_phrase_end(skip_tokens(words, *used), &self.context)
                };
                match_duration(words, &self.context, MLetter::Minutes)
                    .or_else(|| match_unit_alone(words, &self.context).filter(alone))
            }
        };
        let Some((more, what)) = read else { return Ok(None) };
        let most = 1 + usize::from(self.parts.repetition.is_some());
        if self.parts.durations.len() >= most {
            return Ok(None);
        }
        self.parts.durations.push(Matched { value: what, text: source_text(rest, used + more) });
        Ok(Some(used + more))
    }

    /// "until friday", and behind a date or time "to 13:30".
    fn match_end(&mut self, at: usize) -> ConsumedCount {
        let rest = self.tokens_from(at);
        let until = self.context.match_meaning(rest, WordMeaning::Until);
        let to = self.context.match_meaning(rest, WordMeaning::To).filter(|_| self.date_end == at);
        let Some(used) = until.max(to) else { return Ok(None) };
        let sure = until.is_some() || self.parts.time.is_some();
        let Some(more) = self.match_end_tokens(skip_tokens(rest, used), sure)? else {
            return Ok(None);
        };
        let words = rest.get(used..used + more).unwrap_or_default();
        Ok(self.record_end(words)?.then_some(used + more))
    }

    /// How many words say the end. What may be the start's date or time is left to it: "until 13:30 tomorrow",
    /// "daily from 9 march to 13 march 8:00". Where the end is not `sure`, a time is a start: "demain à 12h30".
    fn match_end_tokens(&self, words: &[PhraseToken<'a>], sure: bool) -> ConsumedCount {
        let found = &self.parts;
        if let Some((used, _)) = match_time(words, &self.context)?
            && (found.date.is_none() || !sure)
        {
            return Ok(sure.then_some(used));
        }
        if self.parse_end_hour(words).is_some() {
            return Ok(Some(1));
        }
        let read = if found.repetition.is_some() && found.time.is_none() {
            match_date
        } else {
            super::date::match_end
        };
        Ok(read(words, &self.context)?.map(|(used, _)| used))
    }

    /// "10:00 to 11"
    fn parse_end_hour(&self, words: &[PhraseToken<'a>]) -> Option<TimeOfDay> {
        let from = self.parts.time.as_ref()?.value;
        let ended = time_of_day::is_phrase_end(skip_tokens(words, 1), &self.context);
        time_of_day::parse_end_hour(first_word(words).filter(|_| ended)?, from, &self.context)
    }

    /// Notes an end, if there is none of its kind.
    fn record_end(&mut self, words: &[PhraseToken<'a>]) -> Result<bool, PhraseError> {
        let hour = self.parse_end_hour(words).filter(|_| words.len() == 1).map(|hour| (1, hour));
        if let Some((used, what)) = match_time(words, &self.context)?.or(hour)
            && used == words.len()
        {
            let free = self.parts.end_time.is_none();
            self.parts
                .end_time
                .get_or_insert(Matched { value: what, text: source_text(words, used) });
            return Ok(free);
        }
        let free = self.parts.end_tokens.is_none();
        self.parts.end_tokens.get_or_insert_with(|| words.to_vec());
        Ok(free)
    }

    /// `12:30-13:30`, "9 to 5pm", "from 9 to 5pm".
    fn match_time_range(&mut self, at: usize) -> ConsumedCount {
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
        self.parts.time = Some(Matched { value: start, text: text.clone() });
        self.parts.end_time = Some(Matched { value: end, text });
        self.date_end = at + from + used;
        Ok(Some(from + used))
    }

    /// `14-15`, "10 to 11": beside a date, and not where a month or a unit follows.
    fn match_bare_hours(
        &self,
        at: usize,
        words: &[PhraseToken<'a>],
    ) -> Result<Option<(usize, TimeOfDay, TimeOfDay)>, PhraseError> {
        let Some((used, from, to)) = time_of_day::match_hour_range(words, &self.context) else {
            return Ok(None);
        };
        let behind = skip_tokens(words, used);
        let counted = match_month_name(behind, &self.context).is_some()
            || super::duration::match_unit(behind, &self.context, MLetter::Minutes).is_some();
        if counted || !self.is_beside_date(at, behind) {
            return Ok(None);
        }
        let (start, end) =
            time_of_day::resolve_hour_range(&source_text(words, used), from, to, &self.context)?;
        Ok(Some((used, start, end)))
    }

    /// Is there a date or a repetition before this word, or do the words begin with one?
    fn is_beside_date(&self, at: usize, behind: &[PhraseToken<'a>]) -> bool {
        let dated = || match match_date(behind, &self.context) {
            Ok(Some((_, span))) => span.unit == SpanUnit::Day && !span.is_weak,
            _ => false,
        };
        self.date_end == at
            || dated()
            || matches!(match_repetition(behind, &self.context), Ok(Some(_)))
    }

    /// "9 to 5pm", as if it were one word.
    fn match_spoken_hours(
        &self,
        words: &[PhraseToken<'a>],
    ) -> Option<(usize, TimeOfDay, TimeOfDay)> {
        let hour = first_word(words).filter(|text| parse_number(text, 2).is_some())?;
        let to = 1 + self.context.match_meaning(skip_tokens(words, 1), WordMeaning::To)?;
        // A time and what may belong to it.
        let mut joined: Vec<PhraseToken> = skip_tokens(words, to).iter().take(3).cloned().collect();
        let last = joined.first_mut().filter(|word| !word.is_quoted)?;
        last.folded = format!("{hour}-{}", last.folded);
        let (used, start, end) = match_time_range(&joined, &self.context)?;
        Some((to + used, start, end))
    }

    /// `2026-03-01..2026-03-05`, "5-7 march".
    fn match_date_range(&mut self, at: usize) -> ConsumedCount {
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
        let names = |words: &[PhraseToken]| super::date::match_weekday(words, context).is_some();
        if start.unit == SpanUnit::Longer || (start.is_weak && !(names(&from) && names(&to))) {
            return Ok(None);
        }
        self.parts.date = Some(Matched { value: start, text: source_text(rest, used) });
        self.parts.end_tokens = Some(to);
        self.date_end = at + used;
        Ok(Some(used))
    }

    /// "from 3 to 10 august", "3. bis 10. August".
    fn split_spoken_days(
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
        let year =
            named.get(month).filter(|word| super::numeric_date::parse_year(&word.folded).is_some());
        let behind = named.iter().take(month + usize::from(year.is_some()));
        let side = |day: &PhraseToken<'a>| {
            std::iter::once(day.clone()).chain(behind.clone().cloned()).collect::<Vec<_>>()
        };
        Some((side(first), side(day), to + 1 + behind.len()))
    }

    /// The words of both dates, and how many words they were.
    fn split_dashed_range(
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
        // "aug 1-15" and "1-15 aug", of this year or another.
        let month_first = is_month(Some(word));
        let (days, month) = if month_first { (rest.get(1)?, 0) } else { (word, 1) };
        let (from, to) = days.text.trim_end_matches(',').split_once(DASHES)?;
        if parse_day_number(from).is_some()
            && parse_day_number(to).is_some()
            && is_month(rest.get(month))
        {
            let year =
                rest.get(2).filter(|word| super::numeric_date::parse_year(&word.folded).is_some());
            let side = |day| {
                let named = rest.get(month).cloned().into_iter();
                std::iter::once(PhraseToken::new(day)).chain(named).chain(year.cloned()).collect()
            };
            return Some((side(from), side(to), 2 + usize::from(year.is_some())));
        }
        // `mon-fri`
        let weekday =
            |text| super::date::match_weekday(&[PhraseToken::new(text)], &self.context).is_some();
        if !month_first && weekday(from) && weekday(to) {
            return Some((vec![PhraseToken::new(from)], vec![PhraseToken::new(to)], 1));
        }
        // `1.8.-15.8.`
        let numeric = |text: &str| text.contains(['.', '/']) && !text.contains(DASHES);
        (numeric(from) && numeric(to) && !month_first)
            .then(|| (vec![PhraseToken::new(from)], vec![PhraseToken::new(to)], 1))
    }
}

/// `+05:30`, `UTC+2`: behind a time and a blank.
fn is_utc_offset(text: &str) -> bool {
    let utc = Vocabulary::common().forms(WordMeaning::Utc).iter();
    let named = utc.map(|name| fold(name)).find_map(|name| text.strip_prefix(name.as_str()));
    let Some(digits) = named.unwrap_or(text).strip_prefix(['+', '-', '−']) else { return false };
    let plain = parse_number(digits, 4).is_some_and(|_| named.is_some() || digits.len() == 4);
    time_of_day::parse_colon_time(digits).is_some() || plain
}
