//! Dates and spans in words: names of days, weekdays, months, distances from the present moment.
//!
//! Dates in digits are in [`numeric_date`](crate::numeric_date).

use crate::calendar_names::{
    find_month, match_month_name, match_weekday, match_weekday_or_compound, parse_day_number,
};
use crate::calendar_span::{CalendarSpan, SpanUnit, next_day_of_month, next_yearly_date};
use crate::context::{ParseResult, PhraseContext};
use crate::duration::{
    MLetter, PhraseDuration, match_duration, match_unit, match_unit_alone, parse_packed_duration,
};
use crate::error::PhraseError;
use crate::holidays::match_holiday;
use crate::numeric_date::{iso_week_start, match_iso_date, match_numeric_date, parse_year};
use crate::time_of_day::{
    PartOfDay, is_phrase_end, match_part_of_day, match_time, match_time_or_ambiguous,
    match_trailing_part_of_day,
};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{CivilTime, Date, Weekday, first_day_of_week, week_year_and_number};

/// Matches a date and a time in either order, or one of them.
pub(crate) fn match_date_and_time(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    if let Some((used, date)) = match_date(words, context)? {
        if date.unit != SpanUnit::Day {
            return Ok(Some((used, date)));
        }
        // "tonight at 8", "friday evening 8:30"
        let inside = (0..used).find_map(|from| match_part_of_day(words.get(from..used)?, context));
        let named =
            match_part_of_day(skip_tokens(words, used), context).map_or(0, |(named, _)| named);
        let matched =
            match_part_of_day(skip_tokens(words, used), context).or(inside).map(|(_, part)| part);
        let night = matched.is_some_and(PartOfDay::is_night);
        for skipped in [named, 0] {
            let rest = skip_tokens(words, used + skipped);
            let Some((more, time)) = match_time_or_ambiguous(rest, context) else { continue };
            let following = match_trailing_part_of_day(skip_tokens(rest, more), context);
            let matched = following.map(|(_, part)| part).or(matched);
            let time = time.resolve_am_pm(matched, &source_text(rest, more))?;
            let more = more + following.map_or(0, |(more, _)| more);
            let at = if night { date.at_night_time(time, context) } else { date.at_time(time) };
            return Ok(Some((used + skipped + more, at)));
        }
        return Ok(Some((used, date)));
    }
    let Some((used, time)) = match_time(words, context)? else { return Ok(None) };
    let (more, day) = match match_date(skip_tokens(words, used), context)? {
        Some((more, date)) if date.unit == SpanUnit::Day => (more, date),
        _ => (0, CalendarSpan::from_day(context.base.day_number()).relative_unless_fixed(context)),
    };
    Ok(Some((used + more, day.at_time(time))))
}

/// Matches an end: like [`match_date_and_time`], but "friday evening" is a time of day.
pub(crate) fn match_end(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let Some((used, span)) = match_date_and_time(words, context)? else { return Ok(None) };
    let found = match_trailing_part_of_day(skip_tokens(words, used), context)
        .filter(|_| span.unit == SpanUnit::Day);
    let hour = found.and_then(|(more, part)| Some((more, part.typical_time()?)));
    Ok(Some(hour.map_or((used, span), |(more, hour)| (used + more, span.at_time(hour)))))
}

/// Matches a date or longer span without a time of day, with or without "on" before it.
pub(crate) fn match_date(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    if let Some(found) = match_bare_date(words, context)?.or_else(|| match_holiday(words, context))
    {
        return Ok(Some(found));
    }
    let Some(on) = context.match_meaning(words, WordMeaning::OnDate) else {
        let the = context.match_meaning(words, WordMeaning::The);
        let found =
            the.and_then(|the| Some((the, match_day_alone(skip_tokens(words, the), context)?)));
        return Ok(found.map(|(the, (used, span))| (the + used, span)));
    };
    let rest = skip_tokens(words, on);
    let found = match_bare_date(rest, context)?
        .or_else(|| match_day_alone(rest, context))
        .or_else(|| match_holiday(rest, context));
    Ok(found.map(|(used, span)| (on + used, CalendarSpan { is_weak: false, ..span })))
}

/// Matches "on the 15th" at the end of a phrase, not in "on the 2nd floor".
fn match_day_alone(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    let following = skip_tokens(words, 1);
    let ended =
        is_phrase_end(following, context) || matches!(match_time(following, context), Ok(Some(_)));
    match_ordinal_day(words, context).filter(|_| ended)
}

/// Matches "15th": that day of this month, or of the next month that has it.
fn match_ordinal_day(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    let text = first_word(words)?;
    let day = parse_day_number(text).filter(|_| parse_number(text, 2).is_none())?;
    Some((
        1,
        CalendarSpan::from_day(next_day_of_month(day, context.base)?)
            .relative_unless_fixed(context),
    ))
}

type DateMatcher = fn(&[PhraseToken], &PhraseContext) -> ParseResult<CalendarSpan>;

fn match_bare_date(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    const MATCHERS: [DateMatcher; 10] = [
        match_iso_date,
        match_numeric_date,
        match_named_day,
        match_distance,
        match_week_number,
        match_adjacent,
        // Before the month and day: "mar. 5 sept." is a Tuesday in French, and "mar 5" is in March.
        match_weekday_and_date,
        match_month_and_day,
        match_weekday_alone,
        match_last_day,
    ];
    for matcher in MATCHERS {
        if let Some(found) = matcher(words, context)? {
            return Ok(Some(found));
        }
    }
    Ok(match_month(words, context))
}

/// Matches "today", the days around it, and "now".
fn match_named_day(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    if let Some(used) = context.match_meaning(words, WordMeaning::Now) {
        return Ok(Some((used, CalendarSpan::from_instant(context.now, true).into_relative())));
    }
    const DAYS: [(WordMeaning, i64); 5] = [
        (WordMeaning::DayAfterTomorrow, 2),
        (WordMeaning::Today, 0),
        (WordMeaning::Tomorrow, 1),
        (WordMeaning::Yesterday, -1),
        (WordMeaning::DayBeforeYesterday, -2),
    ];
    // The longest match counts: "morgen" is also a part of "i morgen", "manana" of "pasado manana".
    let found = DAYS
        .iter()
        .filter_map(|(meaning, away)| Some((context.match_meaning(words, *meaning)?, *away)));
    let longest = found.max_by_key(|(used, _)| *used);
    Ok(longest.map(|(used, away)| {
        (used, CalendarSpan::from_day(context.now.day_number() + away).into_relative())
    }))
}

/// Matches a distance: `+2w`, `-3d`, `+90min`, "in 2 weeks".
fn match_distance(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    let signed = text.strip_prefix('+').map(|rest| (rest, false));
    let signed = signed.or_else(|| text.strip_prefix(['-', '−']).map(|rest| (rest, true)));
    let found = match signed {
        Some((rest, back)) => parse_packed_duration(rest, context, MLetter::Months)
            .map(|amount| (1, context.offset, if back { amount.negate() } else { amount })),
        None if match_ago(words, context).is_some() => {
            match_ago(words, context).map(|(used, amount)| (used, context.now, amount.negate()))
        }
        None => context.match_meaning(words, WordMeaning::WithinPrefix).and_then(|used| {
            let rest = skip_tokens(words, used);
            let found = match_duration(rest, context, MLetter::Minutes);
            let (more, amount) = found.or_else(|| match_unit_alone(rest, context))?;
            Some((used + more, context.now, amount))
        }),
    };
    Ok(found.map(|(used, from, amount)| {
        let day = amount.add_to(from);
        let days = amount.is_whole_days();
        let span = if days {
            CalendarSpan::from_day(day.day_number())
        } else {
            CalendarSpan::from_instant(day, false)
        };
        (
            used,
            if signed.is_some() {
                span.relative_unless_fixed(context)
            } else {
                span.into_relative()
            },
        )
    }))
}

/// Matches a distance into the past: "2 weeks ago", "vor 3 Tagen".
fn match_ago(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, PhraseDuration)> {
    if let Some(before) = context.match_meaning(words, WordMeaning::AgoPrefix) {
        let (used, amount) = match_duration(skip_tokens(words, before), context, MLetter::Minutes)?;
        return Some((before + used, amount));
    }
    let (used, amount) = match_duration(words, context, MLetter::Minutes)?;
    Some((used + context.match_meaning(skip_tokens(words, used), WordMeaning::Ago)?, amount))
}

/// Matches the number of an ISO 8601 week: `W12`, "week 12", "KW 12 2026".
fn match_week_number(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    let mut prefixes = Vocabulary::shared_notation().forms(WordMeaning::WeekPrefix).iter();
    let packed = prefixes.find_map(|prefix| text.strip_prefix(prefix));
    let packed = packed.and_then(|rest| parse_number(rest, 2)).map(|week| (1, week));
    let spoken = || {
        let used = context.match_meaning(words, WordMeaning::WeekNumber)?;
        Some((used + 1, parse_number(first_word(skip_tokens(words, used))?, 2)?))
    };
    let Some((used, week)) = packed.or_else(spoken) else { return Ok(None) };
    let matched = first_word(skip_tokens(words, used)).and_then(parse_year);
    let (used, owner) = match matched {
        Some(year) => (used + 1, year),
        None => (used, week_year_and_number(context.base.day_number(), Weekday::Monday).0),
    };
    let Some(start) = iso_week_start(owner, week) else {
        return Err(PhraseError::NoSuchDay { text: source_text(words, used) });
    };
    let mut span = CalendarSpan::from_days(start, start + 7, SpanUnit::Longer);
    if matched.is_none() {
        let past = span.to <= context.base;
        let next = iso_week_start(owner + 1, week).filter(|_| past);
        span = next
            .map_or(span, |start| CalendarSpan::from_days(start, start + 7, SpanUnit::Longer))
            .relative_unless_fixed(context);
    }
    Ok(Some((used, span)))
}

/// The position of a span relative to the present moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelativePosition {
    Last,
    This,
    Next,
}

/// Matches "next friday", "last month", "this week", "next 3 days". In some languages the adjective
/// follows the noun.
fn match_adjacent(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    const POSITIONS: [(WordMeaning, RelativePosition); 3] = [
        (WordMeaning::This, RelativePosition::This),
        (WordMeaning::Next, RelativePosition::Next),
        (WordMeaning::Last, RelativePosition::Last),
    ];
    for (meaning, side) in POSITIONS {
        let Some(used) = context.match_meaning(words, meaning) else { continue };
        let found = match_adjacent_unit(skip_tokens(words, used), side, context);
        if let Some((more, span)) = found {
            return Ok(Some((used + more, span.into_relative())));
        }
    }
    if !context.language.vocabulary().has_property(LanguageProperty::AdjectiveAfterNoun)
        || words.first().is_none_or(|word| word.has_stop)
    {
        return Ok(None);
    }
    let article = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    for start in
        [0, article.max(context.match_own_meaning(words, WordMeaning::UnitArticle).unwrap_or(0))]
    {
        for (meaning, side) in POSITIONS {
            let rest = skip_tokens(words, start);
            let Some(used) = context.match_own_meaning(skip_tokens(rest, 1), meaning) else {
                continue;
            };
            if let Some((1, span)) = match_adjacent_unit(rest, side, context) {
                return Ok(Some((start + 1 + used, span.into_relative())));
            }
        }
    }
    Ok(None)
}

/// Matches the weekday, month or unit next to "this", "next" or "last".
fn match_adjacent_unit(
    words: &[PhraseToken],
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    let today = context.now.day_number();
    if let Some((used, name)) = match_weekday(words, context) {
        let ahead = (i64::from(name.day.number_from_monday()) - (today + 3)).rem_euclid(7);
        let day = today
            + match side {
                RelativePosition::This => ahead,
                RelativePosition::Next if ahead == 0 => 7,
                RelativePosition::Next => ahead,
                RelativePosition::Last => ahead - 7,
            };
        return Some((used, CalendarSpan::from_day(day)));
    }
    if let Some((used, month)) = match_month_name(words, context) {
        let Date { year, month: current, .. } = context.now.date();
        let month = i64::from(month);
        let away = match side {
            RelativePosition::This => 0,
            RelativePosition::Next => i64::from(month <= i64::from(current)),
            RelativePosition::Last => -i64::from(month >= i64::from(current)),
        };
        return Some((used, CalendarSpan::from_months(i64::from(year) + away, month, 1)));
    }
    if let Some(count) =
        first_word(words).and_then(|text| parse_number(text, 3)).filter(|count| *count > 0)
    {
        let (used, unit) = match_unit(skip_tokens(words, 1), context, MLetter::Months)?;
        return Some((1 + used, counted_span(unit, count, side, context)?));
    }
    match_calendar_unit(words, side, context)
}

/// Matches "week", "weekend", "month", "year".
fn match_calendar_unit(
    words: &[PhraseToken],
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    if let Some(used) = context.match_meaning(words, WordMeaning::Weekend) {
        let away = match side {
            RelativePosition::Last => -7,
            RelativePosition::This => 0,
            RelativePosition::Next => 7,
        };
        let monday = first_day_of_week(context.now.day_number(), Weekday::Monday) + away;
        return Some((used, CalendarSpan::from_days(monday + 5, monday + 7, SpanUnit::Longer)));
    }
    let (used, unit) = match_unit(words, context, MLetter::Months)?;
    // Single letters are units only after a number: there is no "this d".
    first_word(words).filter(|text| text.len() > 1)?;
    Some((used, adjacent_span(unit, side, context)?))
}

/// Matches a unit without "this" before it: "week" is the current week.
pub(crate) fn match_present_unit(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    match_calendar_unit(words, RelativePosition::This, context)
        .map(|(used, span)| (used, span.into_relative()))
}

/// Returns the previous, current or next week, month or year.
fn adjacent_span(
    unit: WordMeaning,
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<CalendarSpan> {
    let away = match side {
        RelativePosition::Last => -1,
        RelativePosition::This => 0,
        RelativePosition::Next => 1,
    };
    let Date { year, month, .. } = context.now.date();
    let (year, month) = (i64::from(year), i64::from(month));
    Some(match unit {
        WordMeaning::Week => {
            let first =
                first_day_of_week(context.now.day_number(), context.language.first_weekday())
                    + 7 * away;
            CalendarSpan::from_days(first, first + 7, SpanUnit::Longer)
        }
        WordMeaning::Month => CalendarSpan::from_months(year, month + away, 1),
        WordMeaning::Year => CalendarSpan::from_months(year + away, 1, 12),
        _ => return None,
    })
}

/// Returns the span of "next 3 days" and "last 3 days", which begins or ends with the current day.
fn counted_span(
    unit: WordMeaning,
    count: i64,
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<CalendarSpan> {
    let today = context.now.day_number();
    let midnight = CivilTime::midnight(today);
    let months = match unit {
        WordMeaning::Month => count,
        WordMeaning::Year => count * 12,
        _ => 0,
    };
    let days = match unit {
        WordMeaning::Day => count,
        WordMeaning::Week => count * 7,
        WordMeaning::Month | WordMeaning::Year => 0,
        _ => return None,
    };
    let amount = PhraseDuration { months, days, seconds: 0 };
    match side {
        RelativePosition::Next => Some(CalendarSpan::from_days(
            today,
            amount.add_to(midnight).day_number(),
            SpanUnit::Longer,
        )),
        RelativePosition::Last => {
            let first = amount.negate().add_to(midnight).day_number() + 1;
            Some(CalendarSpan::from_days(first, today + 1, SpanUnit::Longer))
        }
        RelativePosition::This => None,
    }
}

/// Matches "fri 6 march". It is an error if that date is another weekday.
fn match_weekday_and_date(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    const MATCHERS: [DateMatcher; 3] = [match_iso_date, match_numeric_date, match_month_and_day];
    let Some((used, name)) = match_weekday(words, context) else { return Ok(None) };
    if name.is_plural {
        return Ok(None);
    }
    let rest = skip_tokens(words, used);
    let skipped = |meaning| rest.len() - context.skip_meaning(rest, meaning).len();
    let (on, the) = (skipped(WordMeaning::OnDate), skipped(WordMeaning::The));
    let read = |(skipped, matcher): (usize, DateMatcher)| {
        (skipped, matcher(skip_tokens(rest, skipped), context))
    };
    let dates =
        [on, the].into_iter().flat_map(|skipped| MATCHERS.map(|matcher| (skipped, matcher)));
    let numbered = (the, Ok(match_ordinal_day(skip_tokens(rest, the), context)));
    for (skipped, found) in dates.map(read).chain([numbered]) {
        let Some((more, span)) = found?.filter(|(_, span)| span.unit == SpanUnit::Day) else {
            continue;
        };
        let used = used + skipped + more;
        let is = Weekday::from_day_number(span.from.day_number());
        if is != name.day {
            let is = context.language.date(span.from.date());
            return Err(PhraseError::WeekdayMismatch {
                text: source_text(words, used),
                actual: is,
            });
        }
        return Ok(Some((used, CalendarSpan { is_weak: false, ..span })));
    }
    Ok(None)
}

/// Matches "friday": the next one, the current day included.
fn match_weekday_alone(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let named = match_weekday_or_compound(words, context).filter(|(_, name)| !name.is_plural);
    let Some((used, name)) = named else { return Ok(None) };
    let from = context.base.day_number();
    let ahead = (i64::from(name.day.number_from_monday()) - (from + 3)).rem_euclid(7);
    let span = CalendarSpan {
        is_weekly: true,
        is_weak: name.is_short,
        ..CalendarSpan::from_day(from + ahead).relative_unless_fixed(context)
    };
    Ok(Some((used, span)))
}

/// Matches "the end of june": the last day of a month, week or year.
fn match_last_day(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    let Some(used) = context.match_meaning(words, WordMeaning::EndOf) else { return Ok(None) };
    let rest = skip_tokens(words, used);
    let the = rest.len() - context.skip_meaning(rest, WordMeaning::The).len();
    let words = skip_tokens(rest, the);
    let found = match_adjacent(words, context)?;
    let found = found
        .or_else(|| match_month(words, context))
        .or_else(|| match_present_unit(words, context));
    let found = found.filter(|(_, span)| span.unit == SpanUnit::Longer);
    Ok(found.map(|(more, span)| {
        let last = CalendarSpan::from_day(span.to.saturating_add(-1).day_number());
        (used + the + more, CalendarSpan { is_relative: span.is_relative, ..last })
    }))
}

/// Matches a month and day: "5 march", "5 march 2027", "march 5", "5th of march", "5 de marzo de
/// 2027".
pub(crate) fn match_month_and_day(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    // `1-Dec-2026`
    let parts: Vec<PhraseToken> = text.split('-').map(PhraseToken::new).collect();
    if let [day, month, ..] = &parts[..]
        && parts.len() < 4
        && parse_number(&day.folded, 2).is_some()
        && match_month_name(std::slice::from_ref(month), context).is_some()
    {
        let found = match_month_and_day(&parts, context)?.filter(|(used, _)| *used == parts.len());
        return Ok(found.map(|(_, span)| (1, span)));
    }
    let found = match parse_day_number(text) {
        Some(day) => {
            let rest = context.skip_meaning(skip_tokens(words, 1), WordMeaning::Of);
            match_month_name(rest, context)
                .map(|(more, month)| (words.len() - rest.len() + more, day, month))
        }
        // In other languages a short name of a month is often another word: Czech "pro 5" means
        // "for 5".
        None => {
            let before = |vocabulary: &&Vocabulary| {
                vocabulary.has_property(LanguageProperty::MonthBeforeDay)
            };
            let mut tables = context.language.vocabularies().filter(before);
            tables.find_map(|vocabulary| find_month(vocabulary, text)).and_then(|month| {
                let day = parse_day_number(first_word(skip_tokens(words, 1))?)?;
                Some((2, day, month))
            })
        }
    };
    let Some((used, day, month)) = found else { return Ok(None) };
    let following = context.skip_meaning(skip_tokens(words, used), WordMeaning::Of);
    if let Some(year) = first_word(following).and_then(parse_year) {
        let used = words.len() - following.len() + 1;
        let date = Date::new(year, month, day as u8);
        let date = date.ok_or_else(|| PhraseError::NoSuchDay { text: source_text(words, used) })?;
        return Ok(Some((used, CalendarSpan::from_day(date.day_number()))));
    }
    let day = next_yearly_date(month, day, context.base)
        .ok_or_else(|| PhraseError::NoSuchDay { text: source_text(words, used) })?;
    Ok(Some((used, CalendarSpan::from_day(day).relative_unless_fixed(context))))
}

/// Matches "march": the next one, the current month included; or "march 2027".
fn match_month(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, CalendarSpan)> {
    let (used, month) = match_month_name(words, context)?;
    let following = context.skip_meaning(skip_tokens(words, used), WordMeaning::Of);
    if let Some(year) = first_word(following).and_then(parse_year) {
        let used = words.len() - following.len() + 1;
        return Some((used, CalendarSpan::from_months(i64::from(year), i64::from(month), 1)));
    }
    let Date { year, month: current, .. } = context.base.date();
    let year = i64::from(year) + i64::from(month < current);
    Some((
        used,
        CalendarSpan::from_months(year, i64::from(month), 1).relative_unless_fixed(context),
    ))
}
