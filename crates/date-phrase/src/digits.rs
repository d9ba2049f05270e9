//! Dates written in digits: ISO 8601 in every language, and the numeric forms of each in its own order.

use super::PhraseError;
use super::clock::{colons, compact};
use super::date::{Span, Unit, next_date};
use super::reading::{Context, Read, Word, after, first, number, typed};
use larder_time::civil::{Date, Weekday, days_in_month, first_day_of_week_one, weeks_in_year};

/// A year of four digits.
pub(crate) fn year(text: &str) -> Option<i32> {
    let year = number(text, 4).filter(|_| text.len() == 4)?;
    i32::try_from(year).ok().filter(|year| *year >= 1)
}

/// The first day of a week of ISO 8601.
pub(crate) fn week(year: i32, number: i64) -> Option<i64> {
    let weeks = i64::from(weeks_in_year(year, Weekday::Monday));
    (1..=weeks)
        .contains(&number)
        .then(|| first_day_of_week_one(year, Weekday::Monday) + 7 * (number - 1))
}

/// What a text in digits names, before it is known whether there is such a day.
enum Form {
    Year,
    Quarter(i64),
    Month(i64),
    Day(i64, i64),
    Week(i64, Option<i64>),
}

/// `2026`, `2026-03`, `2026-03-05`, `20260305`, `2026-W12`, `2026-W12-3`, `2026-Q2`, and with a time behind a T.
pub(crate) fn iso(words: &[Word], _: &Context) -> Read<Span> {
    let Some(text) = first(words) else { return Ok(None) };
    let (date, time) = match text.split_once('t') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let Some((year, form)) = form(date) else { return Ok(None) };
    let none = || PhraseError::NoSuchDay { text: typed(words, 1) };
    let span = span(year, &form).ok_or_else(none)?;
    let Some(time) = time else { return Ok(Some((1, span))) };
    if span.unit != Unit::Day {
        return Ok(None);
    }
    if has_offset(time) {
        return Err(PhraseError::Offset { text: typed(words, 1) });
    }
    let clock = colons(time).or_else(|| compact(time)).ok_or_else(none)?;
    Ok(Some((1, span.at(clock))))
}

/// Has a time an offset behind it? `10:00+05:30`, `10:00z`
pub(crate) fn has_offset(text: &str) -> bool {
    let Some(at) = text.find(['+', '-', '−', 'z']) else { return false };
    let (time, offset) = text.split_at(at);
    let mut offset = offset.chars();
    let sign = offset.next();
    let digits = offset.as_str().replace(':', "");
    let told = if sign == Some('z') { digits.is_empty() } else { matches!(digits.len(), 2 | 4) };
    let numbers = digits.bytes().all(|b| b.is_ascii_digit());
    told && numbers && (colons(time).is_some() || compact(time).is_some())
}

fn form(text: &str) -> Option<(i32, Form)> {
    let year = year(text.get(..4)?)?;
    let rest = text.get(4..)?;
    let bare = rest.strip_prefix('-').unwrap_or(rest);
    let form = if rest.is_empty() {
        Form::Year
    } else if let Some(quarter) = bare.strip_prefix('q') {
        Form::Quarter(number(quarter, 1)?)
    } else if let Some(week) = bare.strip_prefix('w') {
        let (week, day) = week.split_at_checked(2)?;
        let day = day.strip_prefix('-').unwrap_or(day);
        let day = if day.is_empty() { None } else { Some(number(day, 1)?) };
        Form::Week(number(week, 2)?, day)
    } else if rest.len() == 4 {
        let (month, day) = rest.split_at_checked(2)?;
        Form::Day(number(month, 2)?, number(day, 2)?)
    } else {
        let rest = rest.strip_prefix('-')?;
        match rest.split_once('-') {
            Some((month, day)) => Form::Day(number(month, 2)?, number(day, 2)?),
            None => Form::Month(number(rest, 2).filter(|_| rest.len() == 2)?),
        }
    };
    Some((year, form))
}

fn span(year: i32, form: &Form) -> Option<Span> {
    let months = |month, count| Some(Span::months(i64::from(year), month, count));
    match *form {
        Form::Year => months(1, 12),
        Form::Quarter(number @ 1..=4) => months(3 * number - 2, 3),
        Form::Month(month @ 1..=12) => months(month, 1),
        Form::Day(month, day) => date(year, month, day).map(|date| Span::day(date.day_number())),
        Form::Week(number, None) => {
            week(year, number).map(|first| Span::days(first, first + 7, Unit::Longer))
        }
        Form::Week(number, Some(day @ 1..=7)) => {
            week(year, number).map(|first| Span::day(first + day - 1))
        }
        _ => None,
    }
}

fn date(year: i32, month: i64, day: i64) -> Option<Date> {
    Date::new(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}

/// `5.3.2026`, `5.3.`, `3/5/2026`, `3/5`, `2026/3/5`, and with spaces behind the dots: `5. 3. 2026`.
pub(crate) fn numeric(words: &[Word], context: &Context) -> Read<Span> {
    let Some(text) = first(words) else { return Ok(None) };
    if let Some((used, first, second, year)) = spaced(words) {
        return resolved(words, used, (first, second, year), context, true);
    }
    let Some(separator) = text.chars().find(|c| !c.is_ascii_digit()) else { return Ok(None) };
    if !matches!(separator, '.' | '/' | '-') {
        return Ok(None);
    }
    let closed = separator == '.' && text.ends_with('.');
    let parts: Vec<&str> = text.trim_end_matches('.').split(separator).collect();
    match *parts.as_slice() {
        [first, second, third] => {
            if let Some(year) = year(first) {
                let date = number(second, 2).zip(number(third, 2));
                let date = date.map(|(month, day)| date_or_none(words, year, month, day));
                return date.transpose().map(|span| span.map(|span| (1, span)));
            }
            let Some((first, second)) = number(first, 2).zip(number(second, 2)) else {
                return Ok(None);
            };
            // Two digits are a year of this century; who means something else writes four.
            let short =
                number(third, 2).filter(|_| third.len() == 2).map(|year| 2000 + year as i32);
            let Some(said) = year(third).or(short) else { return Ok(None) };
            let month_first = month_first(words, context);
            if short.is_some() && ordered(first, second, month_first, said).is_none() {
                return Ok(None);
            }
            resolved(words, 1, (first, second, Some(said)), context, true)
        }
        [first, second] if closed || separator == '/' => {
            let Some((first, second)) = number(first, 2).zip(number(second, 2)) else {
                return Ok(None);
            };
            resolved(words, 1, (first, second, None), context, false)
        }
        _ => Ok(None),
    }
}

/// `5. 3. 2026`, `5. 3.`
fn spaced(words: &[Word]) -> Option<(usize, i64, i64, Option<i32>)> {
    let part = |at: usize| {
        let text = first(after(words, at))?.strip_suffix('.')?;
        number(text, 2).filter(|_| words.get(at).is_some_and(|word| !word.stop))
    };
    let (day, month) = (part(0)?, number(first(after(words, 1))?.strip_suffix('.')?, 2)?);
    let year = first(after(words, 2)).filter(|_| part(1).is_some()).and_then(year);
    Some((2 + usize::from(year.is_some()), day, month, year))
}

fn date_or_none(words: &[Word], year: i32, month: i64, day: i64) -> Result<Span, PhraseError> {
    let date = date(year, month, day);
    let date = date.ok_or_else(|| PhraseError::NoSuchDay { text: typed(words, 1) })?;
    Ok(Span::day(date.day_number()))
}

/// Does the month come first, in the language and with these dots or slashes?
fn month_first(words: &[Word], context: &Context) -> bool {
    match first(words).is_some_and(|text| text.contains('.')) {
        true => context.language.month_first_in_dots(),
        false => context.language.month_first(),
    }
}

/// Day and month in their order.
fn ordered(first: i64, second: i64, month_first: bool, year: i32) -> Option<(u8, u8)> {
    let (day, month) = if month_first { (second, first) } else { (first, second) };
    let (day, month) = (u8::try_from(day).ok()?, u8::try_from(month).ok()?);
    let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    exists.then_some((day, month))
}

/// The date of two numbers and perhaps a year. One that is not there is an error if it can be nothing else
/// (`sure`) or nothing but digits and slashes was typed.
fn resolved(
    words: &[Word],
    used: usize,
    (first, second, year): (i64, i64, Option<i32>),
    context: &Context,
    sure: bool,
) -> Read<Span> {
    // Without a year any year will do, and 2000 had a 29 February.
    let month_first = month_first(words, context);
    let Some((day, month)) = ordered(first, second, month_first, year.unwrap_or(2000)) else {
        if !sure && words.len() > used {
            return Ok(None);
        }
        let text = typed(words, used);
        return Err(PhraseError::NumericDate { text, month_first });
    };
    if let Some(date) = year.and_then(|year| Date::new(year, month, day)) {
        return Ok(Some((used, Span::day(date.day_number()))));
    }
    let day = next_date(month, i64::from(day), context.base);
    let span = day.map(|day| Span::day(day).counted(context));
    let slashed = typed(words, used).contains('/');
    Ok(span.map(|span| (used, if slashed { span.weak() } else { span })))
}
