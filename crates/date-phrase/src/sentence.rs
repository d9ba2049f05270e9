//! An event in one sentence: "Lunch with Anna tomorrow 12:30 for 1h at Bistro".
//!
//! [`scan`](super::parse_sentence) finds the phrases; here is what they mean together, and what is left of the words.

use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::PhraseContext;
use crate::date::match_end;
use crate::duration::PhraseDuration;
use crate::error::PhraseError;
use crate::language::Language;
use crate::parse_sentence::parse_sentence;
use crate::sentence_walk::{Matched, SentenceParts, SentenceWalk};
use crate::time_of_day::{parse_colon_time, parse_compact_time};
use crate::tokens::{PhraseToken, source_text};
use crate::unconsumed::UnconsumedWords;
use crate::vocabulary::WordMeaning;
use larder_time::civil::{Civil, DAY};
use larder_time::value::Nominal;
use std::ops::Range;

/// How long something takes of which only the time is said.
const DEFAULT_EVENT_SECONDS: i64 = 3600;

/// What a sentence says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sentence {
    /// The words that are no phrase, in their order.
    pub summary: String,
    /// When it begins; midnight of a date.
    pub start: Option<Civil>,
    /// Whole days: start and end are midnights.
    pub date: bool,
    /// When it ends, exclusive: there when a start is, and not before it. Without a start, until when.
    pub end: Option<Civil>,
    /// It was said when it ends.
    pub ended: bool,
    /// How long it takes, if that was said ("for 1h") and not when it ends.
    pub length: Option<Nominal>,
    /// "at PLACE", at the end of the sentence.
    pub location: Option<String>,
    /// The text of its recurrence rule, without UNTIL: `FREQ=WEEKLY;BYDAY=MO`, `FREQ=DAILY;COUNT=10`.
    pub rule: Option<String>,
    /// Until when it recurs, inclusive: the last second of it, or a date's midnight. What UNTIL has to be depends
    /// on the zone of the start, which is not known here.
    pub until: Option<Civil>,
    /// The zone that its times are said to be of: `Europe/Berlin`.
    pub zone: Option<String>,
    /// `#category`, without the sign.
    pub categories: Vec<String>,
    /// `!high` is 1, `!medium` 5, `!low` 9; `!1` to `!9`.
    pub priority: Option<u8>,
    /// "alarm 15min": how long before the start.
    pub alarms: Vec<Nominal>,
    /// It is said to be due: "Tax return due friday" is a task.
    pub due: bool,
}

impl Sentence {
    /// Reads a sentence. Phrases are taken out of it wherever they stand, words in double quotes never; of each kind the
    /// first counts. A time without a date is the next such time; a date without a time is the whole day. What is not
    /// said to end takes an hour, or a day. A time before the start's that ends it is on the next day.
    ///
    /// # Errors
    /// When a date is not in the calendar, a time can mean two things, or phrases contradict each other.
    pub fn parse(text: &str, now: Civil, language: &Language) -> Result<Sentence, PhraseError> {
        let context = PhraseContext::new(now, *language);
        let words = split_sentence(text);
        let SentenceWalk { mut consumed, parts: found, part_of_day: part, .. } =
            parse_sentence(&words, context)?;
        check_unconsumed(&words, &consumed, part, &found, context)?;
        let location = take_location(&words, &mut consumed, &context);
        let start = resolve_start(&found, &context)?;
        let (end, length) = resolve_end(&found, start, &context)?;
        let until = resolve_until(&found, start, &context)?;
        let dated = found.end_tokens.is_some()
            && found.end_time.is_none()
            && end.is_some_and(|end| end.second_of_day() == 0);
        Ok(Sentence {
            summary: join_summary(&words, &consumed),
            start: start.map(|start| start.at),
            date: start.map_or(dated, |start| start.date),
            end,
            ended: found.end_time.is_some()
                || (found.end_tokens.is_some() && found.repetition.is_none()),
            length,
            location,
            rule: rule_text(&found),
            until,
            zone: found.zone,
            categories: found.categories,
            priority: found.priority,
            alarms: found.alarms,
            due: found.is_due,
        })
    }
}

/// Refuses words of time that nothing was made of.
fn check_unconsumed(
    words: &[PhraseToken],
    consumed: &[bool],
    part: Range<usize>,
    found: &SentenceParts,
    context: PhraseContext,
) -> Result<(), PhraseError> {
    let ended = found.end_tokens.is_some() || found.end_time.is_some();
    let begun = found.date.is_some() || found.time.is_some() || found.all_day.is_some();
    let (repeated, timed) =
        (found.repetition.is_some(), begun || ended || found.repetition.is_some());
    // "Dinner tonight" keeps its part of the day.
    let mut kept = consumed.to_vec();
    for consumed in kept.iter_mut().take(part.end).skip(part.start) {
        *consumed = true;
    }
    let dated = found.date.is_some() || found.end_tokens.is_some() || repeated;
    UnconsumedWords {
        words,
        consumed: &kept,
        has_when: timed,
        has_date: dated,
        has_repetition: repeated,
        context,
    }
    .check()
}

/// The words of a sentence, those in quotes as one.
fn split_sentence(text: &str) -> Vec<PhraseToken<'_>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, following) = match split_quoted(rest) {
            Some((inner, following)) => (PhraseToken::new_quoted(inner.trim()), following),
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let (word, following) = rest.split_at(end);
                (PhraseToken::new(word), following)
            }
        };
        // `10:00Z` is a time of UTC.
        match word
            .text
            .strip_suffix(['Z', 'z'])
            .filter(|text| !word.is_quoted && is_time_text(text))
        {
            Some(time) => words.extend([PhraseToken::new(time), PhraseToken::new("UTC")]),
            None => words.push(word),
        }
        rest = following.trim_start();
    }
    words
}

/// Does it end with digits of a time?
fn is_time_text(text: &str) -> bool {
    let time = text.rsplit(['T', 't']).next().unwrap_or(text);
    parse_colon_time(time).is_some()
        || (time.len() < text.len() && parse_compact_time(time).is_some())
}

/// What a text has in quotes at its beginning, and what follows. The quote that ends it ends a word, too; a comma behind
/// it says nothing any more.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    inner.match_indices('"').find_map(|(at, _)| {
        let following = inner.get(at + 1..)?.trim_start_matches([',', ';']);
        let ends = following.is_empty() || following.starts_with(char::is_whitespace);
        ends.then_some((inner.get(..at)?, following))
    })
}

/// What is left of the words; a comma before what was taken out goes with it.
fn join_summary(words: &[PhraseToken], consumed: &[bool]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if consumed.get(at) == Some(&true) {
            continue;
        }
        let alone = word.is_quoted || consumed.get(at + 1) != Some(&true);
        let text = if alone { word.text } else { word.text.trim_end_matches([',', ';']) };
        if !text.is_empty() {
            parts.push(text);
        }
    }
    parts.join(" ")
}

/// "at PLACE": from the last such word to the end, if nothing but marks, or behind a name phrases, was taken out behind
/// it and something is left before it. "Lunch at Bistro tomorrow" has a place, and "Look at photos tomorrow" none.
fn take_location(
    words: &[PhraseToken],
    consumed: &mut [bool],
    context: &PhraseContext,
) -> Option<String> {
    let is_mark = |word: &PhraseToken| word.text.starts_with(['#', '!']);
    let following = |all: bool| {
        let words = words.iter().zip(&*consumed).rev();
        words.take_while(|(word, consumed)| **consumed && (all || is_mark(word))).count()
    };
    let (marks, end) = (following(false), words.len() - following(true));
    let free = consumed.iter().take(end).rev().take_while(|consumed| !**consumed).count();
    let open = words.get(..end)?;
    let (at, used) = (end - free..end).rev().find_map(|at| {
        let used = context.match_meaning(open.get(at..)?, WordMeaning::AtPlace)?;
        let name = |word: &PhraseToken| {
            word.is_quoted
                || word.text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
        };
        let named = end + marks == words.len() || open.get(at + used).is_some_and(name);
        (at > 0 && at + used < end && named).then_some((at, used))
    })?;
    // Something has to be left to call it by.
    if !consumed.iter().take(at).any(|consumed| !consumed) {
        return None;
    }
    let place: Vec<&str> = words.iter().take(end).skip(at + used).map(|word| word.text).collect();
    for consumed in consumed.iter_mut().take(end).skip(at) {
        *consumed = true;
    }
    Some(place.join(" "))
}

/// Where it begins.
#[derive(Debug, Clone, Copy)]
struct SentenceStart {
    at: Civil,
    date: bool,
}

fn resolve_start(
    found: &SentenceParts,
    context: &PhraseContext,
) -> Result<Option<SentenceStart>, PhraseError> {
    let matched = found.date.as_ref().map(|matched| matched.value);
    let repeated = found.repetition.as_ref().and_then(|repeat| repeat.start);
    let fixed = matched.or(repeated);
    if let Some(all_day) = &found.all_day {
        let moment = found.date.as_ref().filter(|matched| matched.value.unit == SpanUnit::Instant);
        let other = found
            .time
            .as_ref()
            .map(|matched| &matched.text)
            .or(moment.map(|matched| &matched.text));
        if let Some(other) = other {
            let (one, other) = (all_day.text.clone(), other.clone());
            return Err(PhraseError::Contradiction { one, other });
        }
    }
    let today = CalendarSpan::from_day(context.now.day());
    let timed = found.time.as_ref().map(|matched| matched.value);
    let span = match (fixed, timed) {
        (Some(date), Some(clock)) if found.is_night => date.at_night_time(clock, context),
        (Some(date), Some(clock)) => date.at_time(clock),
        (Some(date), None) => date,
        (None, Some(clock)) => today.at_time(clock),
        (None, None) if found.repetition.is_some() || found.all_day.is_some() => today,
        (None, None) => return Ok(None),
    };
    Ok(Some(SentenceStart {
        at: first_start(span, fixed.is_some(), found, context),
        date: span.unit == SpanUnit::Day,
    }))
}

/// The first moment that is meant: one that is not past where only a time or a weekday is said, and one that the
/// repetition has.
fn first_start(
    span: CalendarSpan,
    fixed: bool,
    found: &SentenceParts,
    context: &PhraseContext,
) -> Civil {
    let past = |civil: Civil| span.unit == SpanUnit::Instant && civil < context.now;
    let moved = |civil: Civil, day: i64| Civil::midnight(day).plus(civil.second_of_day());
    let Some(repeat) = &found.repetition else {
        let step = match fixed {
            true if span.is_weekly => 7,
            true => 0,
            false => 1,
        };
        return if past(span.from) { span.from.plus(step * DAY) } else { span.from };
    };
    let first = moved(span.from, repeat.first_day(span.from.day()));
    if fixed || !past(first) {
        return first;
    }
    moved(first, repeat.first_day(first.day() + 1))
}

/// Where it ends, and how long it takes if that was said.
fn resolve_end(
    found: &SentenceParts,
    start: Option<SentenceStart>,
    context: &PhraseContext,
) -> Result<(Option<Civil>, Option<Nominal>), PhraseError> {
    let amount = found.durations.iter().find(|matched| !is_repetition_length(matched, found));
    let ends = found.end_tokens.as_ref().filter(|_| found.repetition.is_none());
    let typed_end = found.end_time.as_ref().map(|matched| matched.text.clone());
    let typed_end = typed_end.or_else(|| ends.map(|words| source_text(words, words.len())));
    if let (Some(amount), Some(other)) = (amount, typed_end) {
        return Err(PhraseError::Contradiction { one: amount.text.clone(), other });
    }
    let Some(start) = start else {
        let end = match (ends, &found.end_time) {
            (Some(words), None) => match_end(words, context)?.map(|(_, span)| exclusive_end(span)),
            (Some(words), Some(matched)) => match_end(words, context)?.map(|(_, span)| {
                Civil::midnight(exclusive_end(span).plus(-1).day()).plus(matched.value.second)
            }),
            (None, Some(matched)) => {
                let end = Civil::midnight(context.now.day()).plus(matched.value.second);
                Some(if end < context.now { end.plus(DAY) } else { end })
            }
            (None, None) => None,
        };
        return Ok((end, amount.map(|matched| to_days_and_seconds(matched.value, context.now))));
    };
    if let Some(matched) = amount {
        let (end, length) = end_after(matched, start)?;
        return Ok((Some(end), Some(length)));
    }
    if let Some(matched) = &found.end_time {
        if start.date {
            return Err(PhraseError::NoStart { text: matched.text.clone() });
        }
        let day = resolve_end_day(ends, start, context)?.unwrap_or(start.at.day());
        let end = Civil::midnight(day).plus(matched.value.second);
        return Ok((Some(if end <= start.at { end.plus(DAY) } else { end }), None));
    }
    if let Some(words) = ends {
        return Ok((Some(exclusive_end(resolve_end_tokens(words, start, context)?)), None));
    }
    Ok((Some(start.at.plus(if start.date { DAY } else { DEFAULT_EVENT_SECONDS })), None))
}

/// The day of an end whose time was said apart from it.
fn resolve_end_day(
    ends: Option<&Vec<PhraseToken>>,
    start: SentenceStart,
    context: &PhraseContext,
) -> Result<Option<i64>, PhraseError> {
    let Some(words) = ends else { return Ok(None) };
    Ok(Some(exclusive_end(resolve_end_tokens(words, start, context)?).plus(-1).day()))
}

/// The end that words say of something that begins there.
fn resolve_end_tokens(
    words: &[PhraseToken],
    start: SentenceStart,
    context: &PhraseContext,
) -> Result<CalendarSpan, PhraseError> {
    let later = PhraseContext { base: start.at, offset: start.at, ..*context };
    let text = || source_text(words, words.len());
    // It was read before, from another day on.
    let Some((_, span)) = match_end(words, &later)? else {
        return Err(PhraseError::EndBeforeStart { text: text() });
    };
    if start.date && span.unit == SpanUnit::Instant {
        return Err(PhraseError::NoStart { text: text() });
    }
    if exclusive_end(span) <= start.at {
        return Err(PhraseError::EndBeforeStart { text: text() });
    }
    Ok(span)
}

/// Behind a day, at a moment.
fn exclusive_end(span: CalendarSpan) -> Civil {
    if span.unit == SpanUnit::Instant { span.from } else { span.to }
}

/// The end of what takes so long.
fn end_after(
    matched: &Matched<PhraseDuration>,
    start: SentenceStart,
) -> Result<(Civil, Nominal), PhraseError> {
    if start.date && !matched.value.is_whole_days() {
        return Err(PhraseError::NoStart { text: matched.text.clone() });
    }
    let length = to_days_and_seconds(matched.value, start.at);
    let end = matched.value.add_to(start.at);
    // A day that takes no time is a day.
    Ok(if start.date && length.days == 0 {
        (end.plus(DAY), Nominal { days: 1, seconds: 0 })
    } else {
        (end, length)
    })
}

/// As days and seconds; months have as many days as they have from there on.
fn to_days_and_seconds(amount: PhraseDuration, from: Civil) -> Nominal {
    let PhraseDuration { days, seconds, .. } = amount;
    let months = PhraseDuration { days: 0, seconds: 0, ..amount }.add_to(from);
    Nominal { days: days + months.day() - from.day(), seconds }
}

/// "every monday for 10 weeks": longer than from one time to the next, so it is how long it is repeated.
fn is_repetition_length(matched: &Matched<PhraseDuration>, found: &SentenceParts) -> bool {
    let days = matched.value.days + matched.value.months * 31;
    matched.value.is_whole_days()
        && found.repetition.as_ref().is_some_and(|repeat| days > repeat.period_days())
}

fn rule_text(found: &SentenceParts) -> Option<String> {
    let rule = found.repetition.as_ref()?.rule_text();
    Some(match &found.count {
        Some(count) => format!("{rule};COUNT={}", count.value),
        None => rule,
    })
}

/// Until when it is repeated.
fn resolve_until(
    found: &SentenceParts,
    start: Option<SentenceStart>,
    context: &PhraseContext,
) -> Result<Option<Civil>, PhraseError> {
    let (Some(_), Some(start)) = (&found.repetition, start) else { return Ok(None) };
    let last = match (
        &found.end_tokens,
        found.durations.iter().find(|matched| is_repetition_length(matched, found)),
    ) {
        (Some(words), None) => {
            let span = resolve_end_tokens(words, SentenceStart { date: false, ..start }, context)?;
            if span.unit == SpanUnit::Instant { span.from } else { span.to.plus(-1) }
        }
        (None, Some(matched)) => matched.value.add_to(Civil::midnight(start.at.day())).plus(-1),
        (Some(words), Some(matched)) => {
            let (one, other) = (matched.text.clone(), source_text(words, words.len()));
            return Err(PhraseError::Contradiction { one, other });
        }
        (None, None) => return Ok(None),
    };
    if let Some(count) = &found.count {
        let ended = found.end_tokens.as_ref().map(|words| source_text(words, words.len()));
        let other = ended.or(found
            .durations
            .iter()
            .find(|matched| is_repetition_length(matched, found))
            .map(|matched| matched.text.clone()));
        let (one, other) = (count.text.clone(), other.unwrap_or_default());
        return Err(PhraseError::Contradiction { one, other });
    }
    Ok(Some(if start.date { Civil::midnight(last.day()) } else { last }))
}
