//! Date ranges and points in time: phrases that are the whole text.
//!
//! Separate from [`sentence`](crate::sentence), which finds phrases among other words.

use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::PhraseContext;
use crate::date::{match_date_and_time, match_present_unit};
use crate::error::{ExpectedPhrase, PhraseError, excerpt};
use crate::language::Language;
use crate::misspelling::find_misspelling;
use crate::time_of_day::match_time;
use crate::tokens::{PhraseToken, skip_tokens};
use crate::vocabulary::WordMeaning;
use larder_time::civil::{CivilTime, DAY_SECONDS};

/// A text with more words is no date. Bounds the time that parsing takes.
const MAX_TOKENS: usize = 40;

/// A range of clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    /// The beginning.
    pub from: CivilTime,
    /// The end, exclusive and never before the beginning; [`CivilTime::MAX`] if the range is open.
    pub to: CivilTime,
    /// The range depends on the present moment.
    pub is_relative: bool,
}

/// A point in time, or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointInTime {
    /// The point in time; midnight for a day.
    pub at: CivilTime,
    /// A day without a time.
    pub is_date: bool,
    /// The value depends on the present moment.
    pub is_relative: bool,
    /// A time of day without a date; it is on the current day.
    pub is_time_only: bool,
}

impl DateRange {
    /// Parses a date, a longer span, a point in time (which lasts a minute), or a range of two of
    /// them: `2026-W12`, `next month`, `today..+7d`, `monday to friday`. One side of `..` may be
    /// missing: `2026-03-01..`.
    ///
    /// A day, week or month at the end of a range belongs to it, a point in time does not. An end
    /// without a year or date is the next one after the beginning: `friday..monday`,
    /// `22:00..02:00`. Distances (`+2w`) count from `now`; at the end of a range they count from
    /// its beginning, unless that is a distance, too: `friday..+2w`.
    ///
    /// # Errors
    /// When the text is not a date phrase, names a date that does not exist, or ends before it
    /// begins.
    pub fn parse(
        text: &str,
        now: CivilTime,
        language: &Language,
    ) -> Result<DateRange, PhraseError> {
        let context = PhraseContext::new(now, *language);
        if let Some((from, to)) = split_at_dots(text) {
            return range_between(text, from.trim(), to.trim(), &context);
        }
        let words = PhraseToken::tokenize(text);
        match match_whole_text(&words, &context) {
            Ok(Some(span)) => Ok(DateRange::from_span(if is_distance(&words) {
                span_from_now(span, now)
            } else {
                span
            })),
            failed => match parse_worded_range(text, &words, &context) {
                Some(date_range) => date_range,
                None => Err(failed
                    .err()
                    .unwrap_or_else(|| phrase_error(text, ExpectedPhrase::DateRange, &context))),
            },
        }
    }

    /// Parses the range between two phrases; without the second one, the range of the first.
    ///
    /// # Errors
    /// Like [`DateRange::parse`].
    pub fn parse_bounds(
        from: &str,
        to: Option<&str>,
        now: CivilTime,
        language: &Language,
    ) -> Result<DateRange, PhraseError> {
        let Some(to) = to else { return DateRange::parse(from, now, language) };
        let text = format!("{from}..{to}");
        let context = PhraseContext::new(now, *language);
        // `agenda today.. friday` has the dots already.
        let from = from.trim().trim_end_matches("..");
        range_between(&text, from, to.trim().trim_start_matches(".."), &context)
    }

    fn from_span(span: CalendarSpan) -> DateRange {
        DateRange { from: span.from, to: span.to, is_relative: span.is_relative }
    }
}

impl PointInTime {
    /// Parses a day or a point in time: `tomorrow 12:30`, `5 march`, `+90min`, `2026-03-05`.
    ///
    /// # Errors
    /// When the text is neither, is longer than a day, or names a date that does not exist.
    pub fn parse(
        text: &str,
        now: CivilTime,
        language: &Language,
    ) -> Result<PointInTime, PhraseError> {
        let context = PhraseContext::new(now, *language);
        let span = match_whole_text(&PhraseToken::tokenize(text), &context)?;
        let span = span.ok_or_else(|| phrase_error(text, ExpectedPhrase::PointInTime, &context))?;
        if span.unit == SpanUnit::Longer {
            return Err(PhraseError::NotOneDay { text: excerpt(text) });
        }
        let time_only = is_time_only(&PhraseToken::tokenize(text), &context);
        let (at, relative) = (span.from, span.is_relative);
        Ok(PointInTime {
            at,
            is_date: span.unit == SpanUnit::Day,
            is_relative: relative,
            is_time_only: time_only,
        })
    }

    /// Parses the end of something that begins at `start`. A time alone is on the day of the start,
    /// or in the following night; a weekday alone is the first one that is not before the start.
    /// Everything else counts from `now`, and may be before the start.
    ///
    /// # Errors
    /// Like [`PointInTime::parse`].
    pub fn parse_end(
        text: &str,
        start: CivilTime,
        now: CivilTime,
        language: &Language,
    ) -> Result<PointInTime, PhraseError> {
        let moment = PointInTime::parse(text, now, language)?;
        if moment.is_time_only {
            let on = |day: i64| {
                CivilTime::midnight(day).saturating_add(
                    moment.at.seconds() - CivilTime::midnight(now.day_number()).seconds(),
                )
            };
            let (same, next) = (on(start.day_number()), on(start.day_number() + 1));
            let night = same < start && next.seconds() - start.seconds() <= DAY_SECONDS / 2;
            return Ok(PointInTime { at: if night { next } else { same }, ..moment });
        }
        let context = PhraseContext::new(now, *language);
        let weekly = match_whole_text(&PhraseToken::tokenize(text), &context)?
            .is_some_and(|span| span.is_weekly);
        let weeks = (start.day_number() - moment.at.day_number() + 6).div_euclid(7).max(0);
        Ok(if weekly {
            PointInTime { at: moment.at.saturating_add(weeks * 7 * DAY_SECONDS), ..moment }
        } else {
            moment
        })
    }
}

/// Splits at `..`. The first side may end with a dot of its own: `5.3...9.3.`
fn split_at_dots(text: &str) -> Option<(&str, &str)> {
    let at = text.find("..")?;
    let at = if text.get(at..)?.starts_with("...") { at + 1 } else { at };
    Some((text.get(..at)?, text.get(at + 2..)?))
}

/// The range of a distance alone: from now until then, the day at its end included.
fn span_from_now(span: CalendarSpan, now: CivilTime) -> CalendarSpan {
    let here = if span.unit == SpanUnit::Instant {
        CalendarSpan::from_instant(now, false)
    } else {
        CalendarSpan::from_day(now.day_number())
    };
    let moment = span.unit == SpanUnit::Instant;
    let end = |last: CalendarSpan| if moment { last.from } else { last.to };
    match span.from < here.from {
        true => CalendarSpan { to: end(here), ..span },
        false => CalendarSpan { from: here.from, to: end(span), ..span },
    }
}

/// Matches a phrase that is the whole text.
fn match_whole_text(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Result<Option<CalendarSpan>, PhraseError> {
    if words.len() > MAX_TOKENS {
        return Ok(None);
    }
    let all = |found: Option<(usize, CalendarSpan)>| found.filter(|(used, _)| *used == words.len());
    let found = all(match_date_and_time(words, context)?)
        .or_else(|| all(match_present_unit(words, context)));
    Ok(found.map(|(_, span)| span))
}

/// Parses a range with a word between its ends: "monday to friday".
fn parse_worded_range(
    text: &str,
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<Result<DateRange, PhraseError>> {
    let rest = context.skip_meaning(words, WordMeaning::From);
    for at in 0..rest.len().min(MAX_TOKENS) {
        for meaning in [WordMeaning::To, WordMeaning::Until] {
            let Some(used) = context.match_meaning(skip_tokens(rest, at), meaning) else {
                continue;
            };
            let (before, following) = (rest.get(..at)?, skip_tokens(rest, at + used));
            let Ok(Some(from)) = match_whole_text(before, context) else { continue };
            return Some(close_range(text, before, from, following, context));
        }
    }
    None
}

fn range_between(
    text: &str,
    from: &str,
    to: &str,
    context: &PhraseContext,
) -> Result<DateRange, PhraseError> {
    let words = PhraseToken::tokenize(to);
    if from.is_empty() {
        let to = match_whole_text(&words, context)?
            .ok_or_else(|| phrase_error(to, ExpectedPhrase::DateRange, context))?;
        return Ok(DateRange {
            from: CivilTime::MIN,
            to: exclusive_end(to),
            is_relative: to.is_relative,
        });
    }
    let begins = PhraseToken::tokenize(from);
    let start = match_whole_text(&begins, context)?;
    let start = start.ok_or_else(|| phrase_error(from, ExpectedPhrase::DateRange, context))?;
    if to.is_empty() {
        return Ok(DateRange { to: CivilTime::MAX, ..DateRange::from_span(start) });
    }
    close_range(text, &begins, start, &words, context)
}

/// Returns whether the words are a distance such as `+2w`.
fn is_distance(words: &[PhraseToken]) -> bool {
    words.first().is_some_and(|word| word.text.starts_with(['+', '-', '−']))
}

/// Completes a range whose beginning is known with the words of its end.
fn close_range(
    text: &str,
    begins: &[PhraseToken],
    start: CalendarSpan,
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Result<DateRange, PhraseError> {
    // `-1w..+1w`: both distances count from now.
    let offset = if is_distance(begins) { context.offset } else { start.from };
    let later =
        PhraseContext { base: start.from, offset, is_fixed: !start.is_relative, ..*context };
    let mut last = match_whole_text(words, &later)?;
    if let Some(span) = last
        && span.unit == SpanUnit::Instant
        && span.from < start.from
        && is_time_only(words, &later)
    {
        last = Some(CalendarSpan { from: span.from.saturating_add(DAY_SECONDS), ..span });
    }
    let last = last.ok_or_else(|| {
        let typed: Vec<&str> = words.iter().map(|word| word.text).collect();
        phrase_error(&typed.join(" "), ExpectedPhrase::DateRange, context)
    })?;
    let (from, to) = (start.from, exclusive_end(last));
    // A last day that is the day before the beginning ends exactly where the range begins.
    if to < from || (to == from && last.unit != SpanUnit::Instant) {
        return Err(PhraseError::EndBeforeStart { text: excerpt(text) });
    }
    Ok(DateRange { from, to, is_relative: start.is_relative || last.is_relative })
}

/// Returns whether the words are a time of day without a date.
pub(crate) fn is_time_only(words: &[PhraseToken], context: &PhraseContext) -> bool {
    let read = match_time(words, context);
    matches!(read, Ok(Some((used, _))) if used == words.len())
}

/// The end of a range: after its last day, or at its last point in time.
fn exclusive_end(last: CalendarSpan) -> CivilTime {
    if last.unit == SpanUnit::Instant { last.from } else { last.to }
}

/// The error of a text that is no phrase. It suggests the name of a day that is misspelled in it.
fn phrase_error(text: &str, expected: ExpectedPhrase, context: &PhraseContext) -> PhraseError {
    let text = text.trim();
    if text.is_empty() {
        return PhraseError::Empty { expected };
    }
    let words = PhraseToken::tokenize(text);
    let mut words = words.iter().take(MAX_TOKENS);
    let suggestion = words.find_map(|word| find_misspelling(&word.folded, &context.language));
    PhraseError::NotUnderstood { text: excerpt(text), expected, suggestion }
}
