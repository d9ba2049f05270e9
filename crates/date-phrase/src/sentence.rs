//! An event in one sentence: "Lunch with Anna tomorrow 12:30 for 1h at Bistro".
//!
//! [`parse_sentence`](crate::parse_sentence) finds the phrases; this module decides what they mean
//! together, and which words remain.

use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::PhraseContext;
use crate::date::match_end;
use crate::duration::PhraseDuration;
use crate::error::PhraseError;
use crate::language::Language;
use crate::parse_sentence::parse_sentence;
use crate::sentence_walk::{MatchedPhrase, SentenceParts, SentenceWalk};
use crate::time_of_day::{parse_colon_time, parse_compact_time};
use crate::tokens::{PhraseToken, source_text};
use crate::unconsumed_words::UnconsumedWords;
use crate::vocabulary::WordMeaning;
use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::value::IcalDuration;
use std::ops::Range;

/// The duration of an event with a start time and no end.
const DEFAULT_EVENT_SECONDS: i64 = 3600;

/// The longest time from a start to an end on the next day, as of a shift. An end later than that
/// is taken for a mistake.
const MAX_SECONDS_TO_NEXT_DAY_END: i64 = 16 * 3600;

/// The meaning of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sentence {
    /// The words that belong to no phrase, in their order.
    pub summary: String,
    /// The start; midnight for a date.
    pub start: Option<CivilTime>,
    /// The event lasts whole days: start and end are midnights.
    pub is_all_day: bool,
    /// The end, exclusive. With a start there is always an end, and never before it. Without a
    /// start it is a deadline.
    pub end: Option<CivilTime>,
    /// The sentence states the end.
    pub has_stated_end: bool,
    /// The duration, if the sentence states it ("for 1h") in place of an end.
    pub duration: Option<IcalDuration>,
    /// The place: "at PLACE" at the end of the sentence.
    pub location: Option<String>,
    /// The text of the recurrence rule, without UNTIL: `FREQ=WEEKLY;BYDAY=MO`,
    /// `FREQ=DAILY;COUNT=10`.
    pub rule: Option<String>,
    /// The end of the recurrence, inclusive: its last second, or midnight for a date. The value of
    /// UNTIL depends on the time zone of the start, which is not known here.
    pub until: Option<CivilTime>,
    /// The time zone that is named next to a time: `Europe/Berlin`.
    pub zone: Option<String>,
    /// The categories, `#category`, without the sign.
    pub categories: Vec<String>,
    /// The priority: `!high` is 1, `!medium` 5, `!low` 9; or `!1` to `!9`.
    pub priority: Option<u8>,
    /// The durations between alarms and the start: "alarm 15min".
    pub alarms: Vec<IcalDuration>,
    /// The sentence contains "due", so it is a task: "Tax return due friday".
    pub is_due: bool,
}

impl Sentence {
    /// Parses a sentence. Phrases are removed from it wherever they stand, except in double quotes;
    /// the first phrase of each kind counts. A time without a date is the next such time; a date
    /// without a time is a whole day. Without an end, an event lasts an hour, or a day. An end time
    /// without a day that is before the start time is on the next day, at most 16 hours after the
    /// start. Midnight is the end of the day, and the time of the start 24 hours after it.
    ///
    /// # Errors
    /// When a date does not exist, a time is ambiguous, phrases contradict each other, the end is
    /// before the start, or words of date or time remain.
    pub fn parse(text: &str, now: CivilTime, language: &Language) -> Result<Sentence, PhraseError> {
        let context = PhraseContext::new(now, *language);
        let words = split_sentence(text);
        let SentenceWalk { mut consumed, parts, part_of_day: part, .. } =
            parse_sentence(&words, context)?;
        check_unconsumed(&words, &consumed, part, &parts, context)?;
        let location = take_location(&words, &mut consumed, &context);
        let start = resolve_start(&parts, &context)?;
        let (end, length) = resolve_end(&parts, start, &context)?;
        let until = resolve_until(&parts, start, &context)?;
        let is_due = parts.is_due || (parts.is_end_deadline && start.is_none());
        let dated = parts.end_tokens.is_some()
            && parts.end_time.is_none()
            && end.is_some_and(|end| end.second_of_day() == 0);
        Ok(Sentence {
            summary: join_summary(&words, &consumed),
            start: start.map(|start| start.at),
            is_all_day: start.map_or(dated, |start| start.is_date),
            end,
            has_stated_end: parts.end_time.is_some()
                || (parts.end_tokens.is_some() && parts.repetition.is_none()),
            duration: length,
            location,
            rule: rule_text(&parts),
            until,
            zone: parts.zone,
            categories: parts.categories,
            priority: parts.priority,
            alarms: parts.alarms,
            is_due,
        })
    }
}

/// Refuses the words of date or time that belong to no phrase.
fn check_unconsumed(
    words: &[PhraseToken],
    consumed: &[bool],
    part: Range<usize>,
    parts: &SentenceParts,
    context: PhraseContext,
) -> Result<(), PhraseError> {
    let ended = parts.end_tokens.is_some() || parts.end_time.is_some();
    let begun = parts.date.is_some() || parts.time.is_some() || parts.all_day.is_some();
    let (repeated, timed) =
        (parts.repetition.is_some(), begun || ended || parts.repetition.is_some());
    // "Dinner tonight" keeps its part of the day in the summary.
    let mut kept = consumed.to_vec();
    for consumed in kept.iter_mut().take(part.end).skip(part.start) {
        *consumed = true;
    }
    let dated = parts.date.is_some() || parts.end_tokens.is_some() || repeated;
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

/// Splits a sentence into words. A text in quotes is one word.
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
        // `10:00Z` is a time in UTC.
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

/// Returns whether a text ends with the digits of a time.
fn is_time_text(text: &str) -> bool {
    let time = text.rsplit(['T', 't']).next().unwrap_or(text);
    parse_colon_time(time).is_some()
        || (time.len() < text.len() && parse_compact_time(time).is_some())
}

/// Splits off a text in quotes at the beginning. The closing quote must end a word; a comma after
/// it is dropped.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    inner.match_indices('"').find_map(|(at, _)| {
        let following = inner.get(at + 1..)?.trim_start_matches([',', ';']);
        let ends = following.is_empty() || following.starts_with(char::is_whitespace);
        ends.then_some((inner.get(..at)?, following))
    })
}

/// Joins the remaining words. A comma before a removed phrase is dropped.
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

/// Removes and returns "at PLACE": from the last "at" to the end of the sentence. Only marks may
/// have been removed after it, or any phrases if the place begins like a name; and words must
/// remain before it. "Lunch at Bistro tomorrow" has a place, "Look at photos tomorrow" has none.
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
    // The summary must not be empty.
    if !consumed.iter().take(at).any(|consumed| !consumed) {
        return None;
    }
    let place: Vec<&str> = words.iter().take(end).skip(at + used).map(|word| word.text).collect();
    for consumed in consumed.iter_mut().take(end).skip(at) {
        *consumed = true;
    }
    Some(place.join(" "))
}

/// The start of an event.
#[derive(Debug, Clone, Copy)]
struct SentenceStart {
    at: CivilTime,
    is_date: bool,
}

fn resolve_start(
    parts: &SentenceParts,
    context: &PhraseContext,
) -> Result<Option<SentenceStart>, PhraseError> {
    let matched = parts.date.as_ref().map(|matched| matched.value);
    let repeated = parts.repetition.as_ref().and_then(|repeat| repeat.start);
    let fixed = matched.or(repeated);
    if let Some(all_day) = &parts.all_day {
        let moment = parts.date.as_ref().filter(|matched| matched.value.unit == SpanUnit::Instant);
        let other = parts
            .time
            .as_ref()
            .map(|matched| &matched.text)
            .or(moment.map(|matched| &matched.text));
        if let Some(other) = other {
            let (one, other) = (all_day.text.clone(), other.clone());
            return Err(PhraseError::Contradiction { first: one, second: other });
        }
    }
    let today = CalendarSpan::from_day(context.now.day_number());
    let timed = parts.time.as_ref().map(|matched| matched.value);
    let span = match (fixed, timed) {
        (Some(date), Some(time)) if parts.is_night => date.at_night_time(time, context),
        (Some(date), Some(time)) => date.at_time(time),
        (Some(date), None) => date,
        (None, Some(time)) => today.at_time(time),
        (None, None) if parts.repetition.is_some() || parts.all_day.is_some() => today,
        (None, None) => return Ok(None),
    };
    Ok(Some(SentenceStart {
        at: first_start(span, fixed.is_some(), parts, context),
        is_date: span.unit == SpanUnit::Day,
    }))
}

/// Returns the first start: not in the past where only a time or weekday is given, and on a day of
/// the repetition.
fn first_start(
    span: CalendarSpan,
    fixed: bool,
    parts: &SentenceParts,
    context: &PhraseContext,
) -> CivilTime {
    let past = |civil: CivilTime| span.unit == SpanUnit::Instant && civil < context.now;
    let moved =
        |civil: CivilTime, day: i64| CivilTime::midnight(day).saturating_add(civil.second_of_day());
    let Some(repeat) = &parts.repetition else {
        let step = match fixed {
            true if span.is_weekly => 7,
            true => 0,
            false => 1,
        };
        return if past(span.from) {
            span.from.saturating_add(step * DAY_SECONDS)
        } else {
            span.from
        };
    };
    let first = moved(span.from, repeat.first_day(span.from.day_number()));
    if fixed || !past(first) {
        return first;
    }
    moved(first, repeat.first_day(first.day_number() + 1))
}

/// Returns the end, and the duration if the sentence states it.
fn resolve_end(
    parts: &SentenceParts,
    start: Option<SentenceStart>,
    context: &PhraseContext,
) -> Result<(Option<CivilTime>, Option<IcalDuration>), PhraseError> {
    let amount = parts.durations.iter().find(|matched| !is_repetition_length(matched, parts));
    let ends = parts.end_tokens.as_ref().filter(|_| parts.repetition.is_none());
    let typed_end = parts.end_time.as_ref().map(|matched| matched.text.clone());
    let typed_end = typed_end.or_else(|| ends.map(|words| source_text(words, words.len())));
    if let (Some(amount), Some(other)) = (amount, typed_end) {
        return Err(PhraseError::Contradiction { first: amount.text.clone(), second: other });
    }
    let Some(start) = start else {
        let end = match (ends, &parts.end_time) {
            (Some(words), None) => match_end(words, context)?.map(|(_, span)| exclusive_end(span)),
            (Some(words), Some(matched)) => match_end(words, context)?.map(|(_, span)| {
                CivilTime::midnight(exclusive_end(span).saturating_add(-1).day_number())
                    .saturating_add(matched.value.second)
            }),
            (None, Some(matched)) => {
                let end = CivilTime::midnight(context.now.day_number())
                    .saturating_add(matched.value.second);
                Some(if end < context.now { end.saturating_add(DAY_SECONDS) } else { end })
            }
            (None, None) => None,
        };
        return Ok((end, amount.map(|matched| to_days_and_seconds(matched.value, context.now))));
    };
    if let Some(matched) = amount {
        let (end, length) = end_after(matched, start)?;
        return Ok((Some(end), Some(length)));
    }
    if let Some(matched) = &parts.end_time {
        if start.is_date {
            return Err(PhraseError::MissingStart { text: matched.text.clone() });
        }
        let end_day = resolve_end_day(ends, start, context)?;
        let on = |day| CivilTime::midnight(day).saturating_add(matched.value.second);
        let end = match end_day {
            Some(day) => Some(on(day)).filter(|end| start.at <= *end),
            None => resolve_end_time(start.at, matched.value.second),
        };
        let text = || matched.text.clone();
        let end = end.ok_or_else(|| PhraseError::EndBeforeStart { text: text() })?;
        return Ok((Some(end), None));
    }
    if let Some(words) = ends {
        return Ok((Some(exclusive_end(resolve_end_tokens(words, start, context)?)), None));
    }
    Ok((
        Some(start.at.saturating_add(if start.is_date {
            DAY_SECONDS
        } else {
            DEFAULT_EVENT_SECONDS
        })),
        None,
    ))
}

/// Resolves an end that is a time without a day. `None`: it is before the start.
fn resolve_end_time(start: CivilTime, second: i64) -> Option<CivilTime> {
    let same = CivilTime::midnight(start.day_number()).saturating_add(second);
    let next = same.saturating_add(DAY_SECONDS);
    let is_after_start = second == 0
        || same == start
        || next.seconds() - start.seconds() <= MAX_SECONDS_TO_NEXT_DAY_END;
    if same > start { Some(same) } else { Some(next).filter(|_| is_after_start) }
}

/// Returns the day of an end whose time is given elsewhere in the sentence.
fn resolve_end_day(
    ends: Option<&Vec<PhraseToken>>,
    start: SentenceStart,
    context: &PhraseContext,
) -> Result<Option<i64>, PhraseError> {
    let Some(words) = ends else { return Ok(None) };
    Ok(Some(
        exclusive_end(resolve_end_tokens(words, start, context)?).saturating_add(-1).day_number(),
    ))
}

/// Resolves the words of an end after a known start.
fn resolve_end_tokens(
    words: &[PhraseToken],
    start: SentenceStart,
    context: &PhraseContext,
) -> Result<CalendarSpan, PhraseError> {
    let later = PhraseContext { base: start.at, offset: start.at, ..*context };
    let text = || source_text(words, words.len());
    // The words matched before, from the present moment on.
    let Some((_, span)) = match_end(words, &later)? else {
        return Err(PhraseError::EndBeforeStart { text: text() });
    };
    if start.is_date && span.unit == SpanUnit::Instant {
        return Err(PhraseError::MissingStart { text: text() });
    }
    if exclusive_end(span) <= start.at {
        return Err(PhraseError::EndBeforeStart { text: text() });
    }
    Ok(span)
}

/// The end of a span: after its last day, or at its point in time.
fn exclusive_end(span: CalendarSpan) -> CivilTime {
    if span.unit == SpanUnit::Instant { span.from } else { span.to }
}

/// Returns the end and the duration of an event of a stated duration.
fn end_after(
    matched: &MatchedPhrase<PhraseDuration>,
    start: SentenceStart,
) -> Result<(CivilTime, IcalDuration), PhraseError> {
    if start.is_date && !matched.value.is_whole_days() {
        return Err(PhraseError::MissingStart { text: matched.text.clone() });
    }
    let length = to_days_and_seconds(matched.value, start.at);
    let end = matched.value.add_to(start.at);
    // An event of zero days lasts one day.
    Ok(if start.is_date && length.days == 0 {
        (end.saturating_add(DAY_SECONDS), IcalDuration { days: 1, seconds: 0 })
    } else {
        (end, length)
    })
}

/// Converts to days and seconds. Months have as many days as the calendar gives them from `from`
/// on.
fn to_days_and_seconds(amount: PhraseDuration, from: CivilTime) -> IcalDuration {
    let PhraseDuration { days, seconds, .. } = amount;
    let months = PhraseDuration { days: 0, seconds: 0, ..amount }.add_to(from);
    IcalDuration { days: days + months.day_number() - from.day_number(), seconds }
}

/// Returns whether a duration limits the repetition, as in "every monday for 10 weeks": such a
/// duration is longer than the period.
fn is_repetition_length(matched: &MatchedPhrase<PhraseDuration>, parts: &SentenceParts) -> bool {
    let days = matched.value.days + matched.value.months * 31;
    matched.value.is_whole_days()
        && parts.repetition.as_ref().is_some_and(|repeat| days > repeat.period_days())
}

fn rule_text(parts: &SentenceParts) -> Option<String> {
    let rule = parts.repetition.as_ref()?.rule_text();
    Some(match &parts.count {
        Some(count) => format!("{rule};COUNT={}", count.value),
        None => rule,
    })
}

/// Returns the end of the recurrence.
fn resolve_until(
    parts: &SentenceParts,
    start: Option<SentenceStart>,
    context: &PhraseContext,
) -> Result<Option<CivilTime>, PhraseError> {
    let (Some(_), Some(start)) = (&parts.repetition, start) else { return Ok(None) };
    let last = match (
        &parts.end_tokens,
        parts.durations.iter().find(|matched| is_repetition_length(matched, parts)),
    ) {
        (Some(words), None) => {
            let span =
                resolve_end_tokens(words, SentenceStart { is_date: false, ..start }, context)?;
            if span.unit == SpanUnit::Instant { span.from } else { span.to.saturating_add(-1) }
        }
        (None, Some(matched)) => {
            matched.value.add_to(CivilTime::midnight(start.at.day_number())).saturating_add(-1)
        }
        (Some(words), Some(matched)) => {
            let (one, other) = (matched.text.clone(), source_text(words, words.len()));
            return Err(PhraseError::Contradiction { first: one, second: other });
        }
        (None, None) => return Ok(None),
    };
    if let Some(count) = &parts.count {
        let ended = parts.end_tokens.as_ref().map(|words| source_text(words, words.len()));
        let other = ended.or(parts
            .durations
            .iter()
            .find(|matched| is_repetition_length(matched, parts))
            .map(|matched| matched.text.clone()));
        let (one, other) = (count.text.clone(), other.unwrap_or_default());
        return Err(PhraseError::Contradiction { first: one, second: other });
    }
    Ok(Some(if start.is_date { CivilTime::midnight(last.day_number()) } else { last }))
}
