//! Dates in digits: ISO 8601 in every language, and other formats in the order of the language.

use crate::calendar_span::{CalendarSpan, SpanUnit, next_yearly_date};
use crate::context::{ParseResult, PhraseContext};
use crate::error::PhraseError;
use crate::time_of_day::{parse_colon_time, parse_compact_time};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use larder_time::civil::{Date, Weekday, days_in_month, first_day_of_week_one, weeks_in_year};

/// Parses a year of four digits.
pub(crate) fn parse_year(text: &str) -> Option<i32> {
    let year = parse_number(text, 4).filter(|_| text.len() == 4)?;
    i32::try_from(year).ok().filter(|year| *year >= 1)
}

/// Returns the first day of an ISO 8601 week, as a day number.
pub(crate) fn iso_week_start(year: i32, number: i64) -> Option<i64> {
    let weeks = i64::from(weeks_in_year(year, Weekday::Monday));
    (1..=weeks)
        .contains(&number)
        .then(|| first_day_of_week_one(year, Weekday::Monday) + 7 * (number - 1))
}

/// The parts of a date in digits, which may not exist in the calendar.
enum IsoDateForm {
    Year,
    Quarter(i64),
    Month(i64),
    Day(i64, i64),
    Week(i64, Option<i64>),
}

/// Matches an ISO 8601 date: `2026`, `2026-03`, `2026-03-05`, `20260305`, `2026-W12`, `2026-W12-3`,
/// `2026-Q2`, and any of the days with a time after a T.
pub(crate) fn match_iso_date(
    words: &[PhraseToken],
    _: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    let (date, time) = match text.split_once('t') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let Some((year, form)) = parse_iso_form(date) else { return Ok(None) };
    let none = || PhraseError::NoSuchDay { text: source_text(words, 1) };
    let span = iso_span(year, &form).ok_or_else(none)?;
    let Some(time) = time else { return Ok(Some((1, span))) };
    if span.unit != SpanUnit::Day {
        return Ok(None);
    }
    if has_offset(time) {
        return Err(PhraseError::Offset { text: source_text(words, 1) });
    }
    let time = parse_colon_time(time).or_else(|| parse_compact_time(time)).ok_or_else(none)?;
    Ok(Some((1, span.at_time(time))))
}

/// Returns whether a time has an offset from UTC: `10:00+05:30`, `10:00z`.
pub(crate) fn has_offset(text: &str) -> bool {
    let Some(at) = text.find(['+', '-', '−', 'z']) else { return false };
    let (time, offset) = text.split_at(at);
    let mut offset = offset.chars();
    let sign = offset.next();
    let digits = offset.as_str().replace(':', "");
    let is_recognised =
        if sign == Some('z') { digits.is_empty() } else { matches!(digits.len(), 2 | 4) };
    let numbers = digits.bytes().all(|b| b.is_ascii_digit());
    is_recognised
        && numbers
        && (parse_colon_time(time).is_some() || parse_compact_time(time).is_some())
}

fn parse_iso_form(text: &str) -> Option<(i32, IsoDateForm)> {
    let year = parse_year(text.get(..4)?)?;
    let rest = text.get(4..)?;
    let bare = rest.strip_prefix('-').unwrap_or(rest);
    let form = if rest.is_empty() {
        IsoDateForm::Year
    } else if let Some(quarter) = bare.strip_prefix('q') {
        IsoDateForm::Quarter(parse_number(quarter, 1)?)
    } else if let Some(week) = bare.strip_prefix('w') {
        let (week, day) = week.split_at_checked(2)?;
        let day = day.strip_prefix('-').unwrap_or(day);
        let day = if day.is_empty() { None } else { Some(parse_number(day, 1)?) };
        IsoDateForm::Week(parse_number(week, 2)?, day)
    } else if rest.len() == 4 {
        let (month, day) = rest.split_at_checked(2)?;
        IsoDateForm::Day(parse_number(month, 2)?, parse_number(day, 2)?)
    } else {
        let rest = rest.strip_prefix('-')?;
        match rest.split_once('-') {
            Some((month, day)) => IsoDateForm::Day(parse_number(month, 2)?, parse_number(day, 2)?),
            None => IsoDateForm::Month(parse_number(rest, 2).filter(|_| rest.len() == 2)?),
        }
    };
    Some((year, form))
}

fn iso_span(year: i32, form: &IsoDateForm) -> Option<CalendarSpan> {
    let months = |month, count| Some(CalendarSpan::from_months(i64::from(year), month, count));
    match *form {
        IsoDateForm::Year => months(1, 12),
        IsoDateForm::Quarter(number @ 1..=4) => months(3 * number - 2, 3),
        IsoDateForm::Month(month @ 1..=12) => months(month, 1),
        IsoDateForm::Day(month, day) => {
            checked_date(year, month, day).map(|date| CalendarSpan::from_day(date.day_number()))
        }
        IsoDateForm::Week(number, None) => iso_week_start(year, number)
            .map(|first| CalendarSpan::from_days(first, first + 7, SpanUnit::Longer)),
        IsoDateForm::Week(number, Some(day @ 1..=7)) => {
            iso_week_start(year, number).map(|first| CalendarSpan::from_day(first + day - 1))
        }
        _ => None,
    }
}

fn checked_date(year: i32, month: i64, day: i64) -> Option<Date> {
    Date::new(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}

/// Matches `5.3.2026`, `5.3.`, `3/5/2026`, `3/5`, `2026/3/5`, and `5. 3. 2026` with spaces after
/// the dots.
pub(crate) fn match_numeric_date(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    if let Some((used, first, second, year)) = match_spaced_date(words) {
        return resolve_numeric_date(words, used, (first, second, year), context, true);
    }
    let Some(separator) = text.chars().find(|c| !c.is_ascii_digit()) else { return Ok(None) };
    if !matches!(separator, '.' | '/' | '-') {
        return Ok(None);
    }
    let closed = separator == '.' && text.ends_with('.');
    let parts: Vec<&str> = text.trim_end_matches('.').split(separator).collect();
    match *parts.as_slice() {
        [first, second, third] => {
            if let Some(year) = parse_year(first) {
                let date = parse_number(second, 2).zip(parse_number(third, 2));
                let date = date.map(|(month, day)| date_or_error(words, year, month, day));
                return date.transpose().map(|span| span.map(|span| (1, span)));
            }
            let Some((first, second)) = parse_number(first, 2).zip(parse_number(second, 2)) else {
                return Ok(None);
            };
            // A year of two digits is in this century; other years need four.
            let short =
                parse_number(third, 2).filter(|_| third.len() == 2).map(|year| 2000 + year as i32);
            let Some(matched) = parse_year(third).or(short) else { return Ok(None) };
            let month_first = is_month_first(words, context);
            if short.is_some() && order_day_and_month(first, second, month_first, matched).is_none()
            {
                return Ok(None);
            }
            resolve_numeric_date(words, 1, (first, second, Some(matched)), context, true)
        }
        [first, second] if closed || separator == '/' => {
            let Some((first, second)) = parse_number(first, 2).zip(parse_number(second, 2)) else {
                return Ok(None);
            };
            resolve_numeric_date(words, 1, (first, second, None), context, false)
        }
        _ => Ok(None),
    }
}

/// Matches `5. 3. 2026` and `5. 3.`
fn match_spaced_date(words: &[PhraseToken]) -> Option<(usize, i64, i64, Option<i32>)> {
    let part = |at: usize| {
        let text = first_word(skip_tokens(words, at))?.strip_suffix('.')?;
        parse_number(text, 2).filter(|_| words.get(at).is_some_and(|word| !word.has_stop))
    };
    let (day, month) =
        (part(0)?, parse_number(first_word(skip_tokens(words, 1))?.strip_suffix('.')?, 2)?);
    let year = first_word(skip_tokens(words, 2)).filter(|_| part(1).is_some()).and_then(parse_year);
    Some((2 + usize::from(year.is_some()), day, month, year))
}

fn date_or_error(
    words: &[PhraseToken],
    year: i32,
    month: i64,
    day: i64,
) -> Result<CalendarSpan, PhraseError> {
    let date = checked_date(year, month, day);
    let date = date.ok_or_else(|| PhraseError::NoSuchDay { text: source_text(words, 1) })?;
    Ok(CalendarSpan::from_day(date.day_number()))
}

/// Returns whether the month comes first, in this language and with these separators.
fn is_month_first(words: &[PhraseToken], context: &PhraseContext) -> bool {
    match first_word(words).is_some_and(|text| text.contains('.')) {
        true => context.language.is_month_first_with_dots(),
        false => context.language.is_month_first(),
    }
}

/// Orders two numbers as day and month, if there is such a date.
fn order_day_and_month(first: i64, second: i64, month_first: bool, year: i32) -> Option<(u8, u8)> {
    let (day, month) = if month_first { (second, first) } else { (first, second) };
    let (day, month) = (u8::try_from(day).ok()?, u8::try_from(month).ok()?);
    let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    exists.then_some((day, month))
}

/// Formats a date for a message: `2026-03-05`, or `5 March` without a year.
fn show_date((day, month): (u8, u8), year: Option<i32>, context: &PhraseContext) -> String {
    match year {
        Some(year) => format!("{year:04}-{month:02}-{day:02}"),
        None => format!("{day} {}", context.language.month_long(month)),
    }
}

/// Resolves two numbers and an optional year to a date. A date that does not exist is an error if
/// the text cannot be anything else (`is_certain`), or is the whole text.
fn resolve_numeric_date(
    words: &[PhraseToken],
    used: usize,
    (first, second, year): (i64, i64, Option<i32>),
    context: &PhraseContext,
    is_certain: bool,
) -> ParseResult<CalendarSpan> {
    // Without a year any year counts; 2000 had a 29 February.
    let month_first = is_month_first(words, context);
    let in_order =
        |month_first| order_day_and_month(first, second, month_first, year.unwrap_or(2000));
    let is_dotted = first_word(words).is_some_and(|text| text.contains('.'));
    let mut found = in_order(month_first);
    if context.language.has_no_date_order() && !is_dotted {
        found = match (found, in_order(!month_first)) {
            (Some(one), Some(other)) if one != other => {
                if !is_certain && words.len() > used {
                    return Ok(None);
                }
                let text = source_text(words, used);
                let dates = [one, other].map(|date| show_date(date, year, context));
                return Err(PhraseError::AmbiguousDate { text, dates });
            }
            (one, other) => one.or(other),
        };
    }
    let Some((day, month)) = found else {
        if !is_certain && words.len() > used {
            return Ok(None);
        }
        let text = source_text(words, used);
        // The order is right if there is such a month; a locale without an order has none to name.
        let has_month = (1..=12).contains(if month_first { &first } else { &second });
        let is_unordered = context.language.has_no_date_order() && !is_dotted;
        return Err(match has_month || is_unordered {
            true => PhraseError::NoSuchDay { text },
            false => PhraseError::NumericDate { text, month_first },
        });
    };
    if let Some(date) = year.and_then(|year| Date::new(year, month, day)) {
        return Ok(Some((used, CalendarSpan::from_day(date.day_number()))));
    }
    let day = next_yearly_date(month, i64::from(day), context.base);
    let span = day.map(|day| CalendarSpan::from_day(day).relative_unless_fixed(context));
    let slashed = source_text(words, used).contains('/');
    Ok(span.map(|span| (used, if slashed { span.into_weak() } else { span })))
}
