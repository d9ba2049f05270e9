//! Dates and stretches of the calendar, from words: named, weekdays, months, distances from now. What is written in
//! digits alone is in `digits`.

use super::PhraseError;
use super::duration::{
    MLetter, PhraseDuration, match_duration, match_unit, match_unit_alone, parse_packed_duration,
};
use super::folding::is_form;
use super::holidays::match_holiday;
use super::numeric_date::{self, parse_year};
use super::time_of_day::{
    PartOfDay, TimeOfDay, is_phrase_end, match_part_of_day, match_time, match_time_or_ambiguous,
    match_trailing_part_of_day, split_weekday_and_part,
};
use super::tokens::{
    ParseResult, PhraseContext, PhraseToken, first_word, parse_number, skip_tokens, source_text,
};
use super::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{
    Civil, DAY, Date, LAST_DAY, Weekday, month_length, month_start, week_start,
};

/// How much of the calendar a phrase names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanUnit {
    Instant,
    Day,
    /// A week, a month, a year, some days.
    Longer,
}

/// What a phrase names: from its beginning to its end, which is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalendarSpan {
    pub(crate) from: Civil,
    pub(crate) to: Civil,
    pub(crate) unit: SpanUnit,
    /// It is another one on another day.
    pub(crate) is_relative: bool,
    /// A weekday, of which there is another one a week later.
    pub(crate) is_weekly: bool,
    /// A word or number that means something else as often, as "sun" and `3/5`: among other words it needs a
    /// neighbour that makes it a date.
    pub(crate) is_weak: bool,
}

impl CalendarSpan {
    /// From a day to another, which is exclusive.
    pub(crate) fn from_days(first: i64, end: i64, unit: SpanUnit) -> CalendarSpan {
        let to = if end > LAST_DAY { Civil::MAX } else { Civil::midnight(end) };
        let from = Civil::midnight(first);
        CalendarSpan {
            from,
            to: to.max(from),
            unit,
            is_relative: false,
            is_weekly: false,
            is_weak: false,
        }
    }

    pub(crate) fn from_day(day: i64) -> CalendarSpan {
        CalendarSpan::from_days(day, day + 1, SpanUnit::Day)
    }

    pub(crate) fn from_instant(from: Civil, exact: bool) -> CalendarSpan {
        let to = from.plus(if exact { 1 } else { 60 });
        CalendarSpan {
            from,
            to,
            unit: SpanUnit::Instant,
            is_relative: false,
            is_weekly: false,
            is_weak: false,
        }
    }

    /// A month, of any number: 12 is December of the year, 13 is January of the next.
    pub(crate) fn from_months(year: i64, month: i64, count: i64) -> CalendarSpan {
        let start = |number: i64| {
            let year = number.div_euclid(12);
            match i32::try_from(year) {
                Ok(year @ 1..=9999) => month_start(year, (number.rem_euclid(12) + 1) as u8),
                _ if year < 1 => larder_time::civil::FIRST_DAY,
                _ => LAST_DAY + 1,
            }
        };
        let number = year * 12 + month - 1;
        CalendarSpan::from_days(start(number), start(number + count), SpanUnit::Longer)
    }

    pub(crate) fn into_relative(self) -> CalendarSpan {
        CalendarSpan { is_relative: true, ..self }
    }

    /// Counted from the base of a context.
    pub(crate) fn relative_unless_fixed(self, context: &PhraseContext) -> CalendarSpan {
        CalendarSpan { is_relative: !context.is_fixed, ..self }
    }

    pub(crate) fn into_weak(self) -> CalendarSpan {
        CalendarSpan { is_weak: true, ..self }
    }

    /// The moment of its first day that a clock says.
    pub(crate) fn at_time(self, clock: TimeOfDay) -> CalendarSpan {
        let from = Civil::midnight(self.from.day()).plus(clock.second);
        CalendarSpan {
            is_weekly: self.is_weekly,
            is_relative: self.is_relative,
            ..CalendarSpan::from_instant(from, clock.has_seconds)
        }
    }

    /// The same of the night that begins on it: "tonight 1:00" is on the next day, unless that night is now.
    pub(crate) fn at_night_time(self, clock: TimeOfDay, context: &PhraseContext) -> CalendarSpan {
        const NIGHT_END_SECONDS: i64 = 6 * 3600;
        let now = context.now;
        let ours = self.from.day() == now.day() && now.second_of_day() < NIGHT_END_SECONDS;
        if clock.second >= NIGHT_END_SECONDS || (ours && clock.second >= now.second_of_day()) {
            return self.at_time(clock);
        }
        self.at_time(TimeOfDay { second: clock.second + DAY, ..clock })
    }
}

/// A date and a time, in either order, or one of them.
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
        let said =
            match_part_of_day(skip_tokens(words, used), context).or(inside).map(|(_, part)| part);
        let night = said.is_some_and(PartOfDay::is_night);
        for skipped in [named, 0] {
            let rest = skip_tokens(words, used + skipped);
            let Some((more, clock)) = match_time_or_ambiguous(rest, context) else { continue };
            let behind = match_trailing_part_of_day(skip_tokens(rest, more), context);
            let said = behind.map(|(_, part)| part).or(said);
            let clock = clock.resolve_am_pm(said, &source_text(rest, more))?;
            let more = more + behind.map_or(0, |(more, _)| more);
            let at = if night { date.at_night_time(clock, context) } else { date.at_time(clock) };
            return Ok(Some((used + skipped + more, at)));
        }
        return Ok(Some((used, date)));
    }
    let Some((used, clock)) = match_time(words, context)? else { return Ok(None) };
    let (more, day) = match match_date(skip_tokens(words, used), context)? {
        Some((more, date)) if date.unit == SpanUnit::Day => (more, date),
        _ => (0, CalendarSpan::from_day(context.base.day()).relative_unless_fixed(context)),
    };
    Ok(Some((used + more, day.at_time(clock))))
}

/// When something ends: as [`when`], and "friday evening" is an hour.
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

/// A date or a longer stretch, without a time of day beside it, with "on" before it or without.
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

/// "on the 15th", where a phrase ends: not "on the 2nd floor".
fn match_day_alone(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    let behind = skip_tokens(words, 1);
    let ended =
        is_phrase_end(behind, context) || matches!(match_time(behind, context), Ok(Some(_)));
    match_ordinal_day(words, context).filter(|_| ended)
}

/// "15th", of this month or the next that has one.
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
        numeric_date::match_iso_date,
        numeric_date::match_numeric_date,
        match_named_day,
        match_distance,
        match_week_number,
        match_adjacent,
        // "mar. 5 sept." is a Tuesday in French, and "mar 5" in March.
        match_weekday_and_date,
        match_month_and_day,
        match_weekday_alone,
        match_last_day,
    ];
    for reader in MATCHERS {
        if let Some(found) = reader(words, context)? {
            return Ok(Some(found));
        }
    }
    Ok(match_month(words, context))
}

/// "today" and its neighbours, and "now".
fn match_named_day(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    if let Some(used) = context.match_meaning(words, WordMeaning::Now) {
        return Ok(Some((used, CalendarSpan::from_instant(context.now, true).into_relative())));
    }
    const DAYS: [(WordMeaning, i64); 4] = [
        (WordMeaning::DayAfterTomorrow, 2),
        (WordMeaning::Today, 0),
        (WordMeaning::Tomorrow, 1),
        (WordMeaning::Yesterday, -1),
    ];
    // "morgen" is one word of "i morgen", and "manana" of "pasado manana": the longest is meant.
    let found =
        DAYS.iter().filter_map(|(term, away)| Some((context.match_meaning(words, *term)?, *away)));
    let longest = found.max_by_key(|(used, _)| *used);
    Ok(longest.map(|(used, away)| {
        (used, CalendarSpan::from_day(context.now.day() + away).into_relative())
    }))
}

/// `+2w`, `-3d`, `+90min`, and "in 2 weeks".
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
        let there = amount.add_to(from);
        let days = amount.is_whole_days();
        let span = if days {
            CalendarSpan::from_day(there.day())
        } else {
            CalendarSpan::from_instant(there, false)
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

/// "2 weeks ago", "vor 3 Tagen".
fn match_ago(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, PhraseDuration)> {
    if let Some(before) = context.match_meaning(words, WordMeaning::AgoPrefix) {
        let (used, amount) = match_duration(skip_tokens(words, before), context, MLetter::Minutes)?;
        return Some((before + used, amount));
    }
    let (used, amount) = match_duration(words, context, MLetter::Minutes)?;
    Some((used + context.match_meaning(skip_tokens(words, used), WordMeaning::Ago)?, amount))
}

/// `W12`, "week 12", "KW 12 2026": weeks of ISO 8601.
fn match_week_number(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    let Some(text) = first_word(words) else { return Ok(None) };
    let mut prefixes = Vocabulary::common().forms(WordMeaning::WeekPrefix).iter();
    let packed = prefixes.find_map(|prefix| text.strip_prefix(prefix));
    let packed = packed.and_then(|rest| parse_number(rest, 2)).map(|week| (1, week));
    let spoken = || {
        let used = context.match_meaning(words, WordMeaning::WeekNumber)?;
        Some((used + 1, parse_number(first_word(skip_tokens(words, used))?, 2)?))
    };
    let Some((used, week)) = packed.or_else(spoken) else { return Ok(None) };
    let said = first_word(skip_tokens(words, used)).and_then(parse_year);
    let (used, owner) = match said {
        Some(year) => (used + 1, year),
        None => (used, larder_time::civil::week_of(context.base.day(), Weekday::Monday).0),
    };
    let Some(start) = numeric_date::iso_week_start(owner, week) else {
        return Err(PhraseError::NoSuchDay { text: source_text(words, used) });
    };
    let mut span = CalendarSpan::from_days(start, start + 7, SpanUnit::Longer);
    if said.is_none() {
        let past = span.to <= context.base;
        let next = numeric_date::iso_week_start(owner + 1, week).filter(|_| past);
        span = next
            .map_or(span, |start| CalendarSpan::from_days(start, start + 7, SpanUnit::Longer))
            .relative_unless_fixed(context);
    }
    Ok(Some((used, span)))
}

/// Where something lies from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelativePosition {
    Last,
    This,
    Next,
}

/// "next friday", "last month", "this week", "next 3 days"; in some languages with the word behind it.
fn match_adjacent(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<CalendarSpan> {
    const POSITIONS: [(WordMeaning, RelativePosition); 3] = [
        (WordMeaning::This, RelativePosition::This),
        (WordMeaning::Next, RelativePosition::Next),
        (WordMeaning::Last, RelativePosition::Last),
    ];
    for (term, side) in POSITIONS {
        let Some(used) = context.match_meaning(words, term) else { continue };
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
        for (term, side) in POSITIONS {
            let rest = skip_tokens(words, start);
            let Some(used) = context.match_own_meaning(skip_tokens(rest, 1), term) else {
                continue;
            };
            if let Some((1, span)) = match_adjacent_unit(rest, side, context) {
                return Ok(Some((start + 1 + used, span.into_relative())));
            }
        }
    }
    Ok(None)
}

/// The weekday, month or unit beside now.
fn match_adjacent_unit(
    words: &[PhraseToken],
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    let today = context.now.day();
    if let Some((used, name)) = match_weekday(words, context) {
        let ahead = (i64::from(name.day.number()) - (today + 3)).rem_euclid(7);
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

/// "week", "weekend", "month", "year".
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
        let monday = week_start(context.now.day(), Weekday::Monday) + away;
        return Some((used, CalendarSpan::from_days(monday + 5, monday + 7, SpanUnit::Longer)));
    }
    let (used, unit) = match_unit(words, context, MLetter::Months)?;
    // "this d" is not said.
    first_word(words).filter(|text| text.len() > 1)?;
    Some((used, adjacent_span(unit, side, context)?))
}

/// The same without a word before it: the one that now is in.
pub(crate) fn match_present_unit(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, CalendarSpan)> {
    match_calendar_unit(words, RelativePosition::This, context)
        .map(|(used, span)| (used, span.into_relative()))
}

/// This, the next or the last week, month or year.
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
            let first = week_start(context.now.day(), context.language.first_weekday()) + 7 * away;
            CalendarSpan::from_days(first, first + 7, SpanUnit::Longer)
        }
        WordMeaning::Month => CalendarSpan::from_months(year, month + away, 1),
        WordMeaning::Year => CalendarSpan::from_months(year + away, 1, 12),
        _ => return None,
    })
}

/// The next so many days and the like, which begin or end with today.
fn counted_span(
    unit: WordMeaning,
    count: i64,
    side: RelativePosition,
    context: &PhraseContext,
) -> Option<CalendarSpan> {
    let today = context.now.day();
    let midnight = Civil::midnight(today);
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
        RelativePosition::Next => {
            Some(CalendarSpan::from_days(today, amount.add_to(midnight).day(), SpanUnit::Longer))
        }
        RelativePosition::Last => {
            let first = amount.negate().add_to(midnight).day() + 1;
            Some(CalendarSpan::from_days(first, today + 1, SpanUnit::Longer))
        }
        RelativePosition::This => None,
    }
}

/// The name of a weekday.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeekdayName {
    pub(crate) day: Weekday,
    /// Not its long name.
    pub(crate) is_short: bool,
    /// As "mondays".
    pub(crate) is_plural: bool,
}

pub(crate) fn match_weekday(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, WeekdayName)> {
    let text = first_word(words)?;
    for table in context.language.vocabularies() {
        for (day, name) in Weekday::ALL.into_iter().zip(WordMeaning::WEEKDAYS) {
            let long = table.printed_name(name, false);
            let alone = weekday_plural_ending(table).and_then(|ending| text.strip_suffix(ending));
            if alone.is_some_and(|alone| is_form(long, alone)) {
                return Some((1, WeekdayName { day, is_short: true, is_plural: true }));
            }
            if let Some(form) = table.forms(name).iter().find(|form| is_form(form, text)) {
                let short = form.chars().count() < 5 && *form != long;
                return Some((1, WeekdayName { day, is_short: short, is_plural: false }));
            }
        }
    }
    None
}

/// The ending of "mondays".
fn weekday_plural_ending(table: &Vocabulary) -> Option<&'static str> {
    table.forms(WordMeaning::WeekdayPlural).first().copied()
}

/// The name of a weekday, or that of "Samstagabend" and "samstagabends".
pub(crate) fn match_weekday_or_compound(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, WeekdayName)> {
    match_weekday(words, context).or_else(|| {
        let text = first_word(words)?;
        let (day, _) = split_weekday_and_part(text, context)?;
        let (_, name) = match_weekday(&[PhraseToken::new(day)], context)?;
        let ending = weekday_plural_ending(context.language.vocabulary());
        let repeated = ending.is_some_and(|ending| text.ends_with(ending));
        Some((1, WeekdayName { is_plural: repeated, ..name }))
    })
}

/// "fri 6 march", which has to be one.
fn match_weekday_and_date(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    const MATCHERS: [DateMatcher; 3] =
        [numeric_date::match_iso_date, numeric_date::match_numeric_date, match_month_and_day];
    let Some((used, name)) = match_weekday(words, context) else { return Ok(None) };
    if name.is_plural {
        return Ok(None);
    }
    let rest = skip_tokens(words, used);
    let skipped = |term| rest.len() - context.skip_meaning(rest, term).len();
    let (on, the) = (skipped(WordMeaning::OnDate), skipped(WordMeaning::The));
    let read = |(skipped, reader): (usize, DateMatcher)| {
        (skipped, reader(skip_tokens(rest, skipped), context))
    };
    let dates = [on, the].into_iter().flat_map(|skipped| MATCHERS.map(|reader| (skipped, reader)));
    let numbered = (the, Ok(match_ordinal_day(skip_tokens(rest, the), context)));
    for (skipped, found) in dates.map(read).chain([numbered]) {
        let Some((more, span)) = found?.filter(|(_, span)| span.unit == SpanUnit::Day) else {
            continue;
        };
        let used = used + skipped + more;
        let is = Weekday::of_day(span.from.day());
        if is != name.day {
            let is = context.language.date(span.from.date());
            return Err(PhraseError::WeekdayMismatch { text: source_text(words, used), is });
        }
        return Ok(Some((used, CalendarSpan { is_weak: false, ..span })));
    }
    Ok(None)
}

/// "friday", the next, today included.
fn match_weekday_alone(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<CalendarSpan> {
    let named = match_weekday_or_compound(words, context).filter(|(_, name)| !name.is_plural);
    let Some((used, name)) = named else { return Ok(None) };
    let from = context.base.day();
    let ahead = (i64::from(name.day.number()) - (from + 3)).rem_euclid(7);
    let span = CalendarSpan {
        is_weekly: true,
        is_weak: name.is_short,
        ..CalendarSpan::from_day(from + ahead).relative_unless_fixed(context)
    };
    Ok(Some((used, span)))
}

/// "the end of june", "the end of the year": the last day of it.
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
        let last = CalendarSpan::from_day(span.to.plus(-1).day());
        (used + the + more, CalendarSpan { is_relative: span.is_relative, ..last })
    }))
}

/// The name of a month: 1 to 12.
pub(crate) fn match_month_name(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, u8)> {
    let text = first_word(words)?;
    context.language.vocabularies().find_map(|table| Some((1, find_month(table, text)?)))
}

fn find_month(table: &Vocabulary, text: &str) -> Option<u8> {
    let named = |name: &WordMeaning| table.forms(*name).iter().any(|form| is_form(form, text));
    WordMeaning::MONTHS.iter().position(named).map(|place| place as u8 + 1)
}

/// The number of a day: `5`, `5.`, `5th`, `1er`.
pub(crate) fn parse_day_number(text: &str) -> Option<i64> {
    let mut endings = Vocabulary::common().forms(WordMeaning::OrdinalSuffix).iter();
    let bare = endings.find_map(|ending| text.strip_suffix(ending)).unwrap_or(text);
    parse_number(bare, 2)
}

/// "5 march", "5 march 2027", "march 5", "5th of march", "5 de marzo de 2027".
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
        // Only English says the month first; elsewhere a short name is as often another word, as "pro 5" in Czech.
        None => {
            let before = |table: &&Vocabulary| table.has_property(LanguageProperty::MonthBeforeDay);
            let mut tables = context.language.vocabularies().filter(before);
            tables.find_map(|table| find_month(table, text)).and_then(|month| {
                let day = parse_day_number(first_word(skip_tokens(words, 1))?)?;
                Some((2, day, month))
            })
        }
    };
    let Some((used, day, month)) = found else { return Ok(None) };
    let behind = context.skip_meaning(skip_tokens(words, used), WordMeaning::Of);
    if let Some(year) = first_word(behind).and_then(parse_year) {
        let used = words.len() - behind.len() + 1;
        let date = Date::new(year, month, day as u8);
        let date = date.ok_or_else(|| PhraseError::NoSuchDay { text: source_text(words, used) })?;
        return Ok(Some((used, CalendarSpan::from_day(date.day_number()))));
    }
    let day = next_yearly_date(month, day, context.base)
        .ok_or_else(|| PhraseError::NoSuchDay { text: source_text(words, used) })?;
    Ok(Some((used, CalendarSpan::from_day(day).relative_unless_fixed(context))))
}

/// The next day of this name, the day of `base` included: 29 February may be years away.
pub(crate) fn next_yearly_date(month: u8, day: i64, base: Civil) -> Option<i64> {
    let first = base.date().year;
    let day = u8::try_from(day).ok()?;
    let dates = (first..first + 9).filter_map(|year| Date::new(year, month, day));
    let mut days = dates.map(Date::day_number);
    let next = days.find(|day| *day >= base.day());
    // In the last years of the calendar there may be no next one.
    next.or_else(|| Date::new(first, month, day).map(Date::day_number))
}

/// "march", the next, the present one included; "march 2027".
fn match_month(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, CalendarSpan)> {
    let (used, month) = match_month_name(words, context)?;
    let behind = context.skip_meaning(skip_tokens(words, used), WordMeaning::Of);
    if let Some(year) = first_word(behind).and_then(parse_year) {
        let used = words.len() - behind.len() + 1;
        return Some((used, CalendarSpan::from_months(i64::from(year), i64::from(month), 1)));
    }
    let Date { year, month: current, .. } = context.base.date();
    let year = i64::from(year) + i64::from(month < current);
    Some((
        used,
        CalendarSpan::from_months(year, i64::from(month), 1).relative_unless_fixed(context),
    ))
}

/// The day of a month's number in the month of a day or the next that has one: "the 15th".
pub(crate) fn next_day_of_month(day: i64, base: Civil) -> Option<i64> {
    let Date { year, month, .. } = base.date();
    let start = i64::from(year) * 12 + i64::from(month) - 1;
    let months = (start..start + 3).map(|number| {
        let year = (number.div_euclid(12) as i32).min(9999);
        (year, (number.rem_euclid(12) + 1) as u8)
    });
    let fits =
        months.filter(|(year, month)| (1..=i64::from(month_length(*year, *month))).contains(&day));
    let mut days = fits.map(|(year, month)| month_start(year, month) + day - 1);
    days.find(|day| *day * DAY >= Civil::midnight(base.day()).seconds())
}
