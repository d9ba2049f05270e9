//! Dates and stretches of the calendar, from words: named, weekdays, months, distances from now. What is written in
//! digits alone is in `digits`.

use super::PhraseError;
use super::clock::{Clock, Part, clock, compound, ends, open, part, part_behind};
use super::digits::{self, year};
use super::feast::feast;
use super::folding::is_form;
use super::length::{Amount, M, amount, one_unit, packed, unit};
use super::reading::{Context, Read, Word, after, first, number, typed};
use super::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{
    Civil, DAY, Date, LAST_DAY, Weekday, month_length, month_start, week_start,
};

/// How much of the calendar a phrase names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Moment,
    Day,
    /// A week, a month, a year, some days.
    Longer,
}

/// What a phrase names: from its beginning to its end, which is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Civil,
    pub(crate) to: Civil,
    pub(crate) unit: Unit,
    /// It is another one on another day.
    pub(crate) relative: bool,
    /// A weekday, of which there is another one a week later.
    pub(crate) weekly: bool,
    /// A word or number that means something else as often, as "sun" and `3/5`: among other words it needs a
    /// neighbour that makes it a date.
    pub(crate) weak: bool,
}

impl Span {
    /// From a day to another, which is exclusive.
    pub(crate) fn days(first: i64, end: i64, unit: Unit) -> Span {
        let to = if end > LAST_DAY { Civil::MAX } else { Civil::midnight(end) };
        let from = Civil::midnight(first);
        Span { from, to: to.max(from), unit, relative: false, weekly: false, weak: false }
    }

    pub(crate) fn day(day: i64) -> Span {
        Span::days(day, day + 1, Unit::Day)
    }

    pub(crate) fn moment(from: Civil, exact: bool) -> Span {
        let to = from.plus(if exact { 1 } else { 60 });
        Span { from, to, unit: Unit::Moment, relative: false, weekly: false, weak: false }
    }

    /// A month, of any number: 12 is December of the year, 13 is January of the next.
    pub(crate) fn months(year: i64, month: i64, count: i64) -> Span {
        let start = |number: i64| {
            let year = number.div_euclid(12);
            match i32::try_from(year) {
                Ok(year @ 1..=9999) => month_start(year, (number.rem_euclid(12) + 1) as u8),
                _ if year < 1 => larder_time::civil::FIRST_DAY,
                _ => LAST_DAY + 1,
            }
        };
        let number = year * 12 + month - 1;
        Span::days(start(number), start(number + count), Unit::Longer)
    }

    pub(crate) fn relative(self) -> Span {
        Span { relative: true, ..self }
    }

    /// Counted from the base of a context.
    pub(crate) fn counted(self, context: &Context) -> Span {
        Span { relative: !context.fixed, ..self }
    }

    pub(crate) fn weak(self) -> Span {
        Span { weak: true, ..self }
    }

    /// The moment of its first day that a clock says.
    pub(crate) fn at(self, clock: Clock) -> Span {
        let from = Civil::midnight(self.from.day()).plus(clock.second);
        Span { weekly: self.weekly, relative: self.relative, ..Span::moment(from, clock.exact) }
    }

    /// The same of the night that begins on it: "tonight 1:00" is on the next day, unless that night is now.
    pub(crate) fn in_night(self, clock: Clock, context: &Context) -> Span {
        const MORNING: i64 = 6 * 3600;
        let now = context.now;
        let ours = self.from.day() == now.day() && now.second_of_day() < MORNING;
        if clock.second >= MORNING || (ours && clock.second >= now.second_of_day()) {
            return self.at(clock);
        }
        self.at(Clock { second: clock.second + DAY, ..clock })
    }
}

/// A date and a time, in either order, or one of them.
pub(crate) fn when(words: &[Word], context: &Context) -> Read<Span> {
    if let Some((used, date)) = date(words, context)? {
        if date.unit != Unit::Day {
            return Ok(Some((used, date)));
        }
        // "tonight at 8", "friday evening 8:30"
        let inside = (0..used).find_map(|from| part(words.get(from..used)?, context));
        let named = part(after(words, used), context).map_or(0, |(named, _)| named);
        let said = part(after(words, used), context).or(inside).map(|(_, part)| part);
        let night = said.is_some_and(Part::is_night);
        for skipped in [named, 0] {
            let rest = after(words, used + skipped);
            let Some((more, clock)) = open(rest, context) else { continue };
            let behind = part_behind(after(rest, more), context);
            let said = behind.map(|(_, part)| part).or(said);
            let clock = clock.within(said, &typed(rest, more))?;
            let more = more + behind.map_or(0, |(more, _)| more);
            let at = if night { date.in_night(clock, context) } else { date.at(clock) };
            return Ok(Some((used + skipped + more, at)));
        }
        return Ok(Some((used, date)));
    }
    let Some((used, clock)) = clock(words, context)? else { return Ok(None) };
    let (more, day) = match date(after(words, used), context)? {
        Some((more, date)) if date.unit == Unit::Day => (more, date),
        _ => (0, Span::day(context.base.day()).counted(context)),
    };
    Ok(Some((used + more, day.at(clock))))
}

/// When something ends: as [`when`], and "friday evening" is an hour.
pub(crate) fn end(words: &[Word], context: &Context) -> Read<Span> {
    let Some((used, span)) = when(words, context)? else { return Ok(None) };
    let found = part_behind(after(words, used), context).filter(|_| span.unit == Unit::Day);
    let hour = found.and_then(|(more, part)| Some((more, part.hour()?)));
    Ok(Some(hour.map_or((used, span), |(more, hour)| (used + more, span.at(hour)))))
}

/// A date or a longer stretch, without a time of day beside it, with "on" before it or without.
pub(crate) fn date(words: &[Word], context: &Context) -> Read<Span> {
    if let Some(found) = bare(words, context)?.or_else(|| feast(words, context)) {
        return Ok(Some(found));
    }
    let Some(on) = context.term(words, WordMeaning::OnDate) else {
        let the = context.term(words, WordMeaning::The);
        let found = the.and_then(|the| Some((the, day_alone(after(words, the), context)?)));
        return Ok(found.map(|(the, (used, span))| (the + used, span)));
    };
    let rest = after(words, on);
    let found =
        bare(rest, context)?.or_else(|| day_alone(rest, context)).or_else(|| feast(rest, context));
    Ok(found.map(|(used, span)| (on + used, Span { weak: false, ..span })))
}

/// "on the 15th", where a phrase ends: not "on the 2nd floor".
fn day_alone(words: &[Word], context: &Context) -> Option<(usize, Span)> {
    let behind = after(words, 1);
    let ended = ends(behind, context) || matches!(clock(behind, context), Ok(Some(_)));
    numbered(words, context).filter(|_| ended)
}

/// "15th", of this month or the next that has one.
fn numbered(words: &[Word], context: &Context) -> Option<(usize, Span)> {
    let text = first(words)?;
    let day = day_number(text).filter(|_| number(text, 2).is_none())?;
    Some((1, Span::day(next_of_month(day, context.base)?).counted(context)))
}

type Reader = fn(&[Word], &Context) -> Read<Span>;

fn bare(words: &[Word], context: &Context) -> Read<Span> {
    const READERS: [Reader; 10] = [
        digits::iso,
        digits::numeric,
        named,
        distance,
        week_number,
        adjacent,
        // "mar. 5 sept." is a Tuesday in French, and "mar 5" in March.
        weekday_and_date,
        month_day,
        weekday_alone,
        last_day,
    ];
    for reader in READERS {
        if let Some(found) = reader(words, context)? {
            return Ok(Some(found));
        }
    }
    Ok(month(words, context))
}

/// "today" and its neighbours, and "now".
fn named(words: &[Word], context: &Context) -> Read<Span> {
    if let Some(used) = context.term(words, WordMeaning::Now) {
        return Ok(Some((used, Span::moment(context.now, true).relative())));
    }
    const DAYS: [(WordMeaning, i64); 4] = [
        (WordMeaning::DayAfterTomorrow, 2),
        (WordMeaning::Today, 0),
        (WordMeaning::Tomorrow, 1),
        (WordMeaning::Yesterday, -1),
    ];
    // "morgen" is one word of "i morgen", and "manana" of "pasado manana": the longest is meant.
    let found = DAYS.iter().filter_map(|(term, away)| Some((context.term(words, *term)?, *away)));
    let longest = found.max_by_key(|(used, _)| *used);
    Ok(longest.map(|(used, away)| (used, Span::day(context.now.day() + away).relative())))
}

/// `+2w`, `-3d`, `+90min`, and "in 2 weeks".
fn distance(words: &[Word], context: &Context) -> Read<Span> {
    let Some(text) = first(words) else { return Ok(None) };
    let signed = text.strip_prefix('+').map(|rest| (rest, false));
    let signed = signed.or_else(|| text.strip_prefix(['-', '−']).map(|rest| (rest, true)));
    let found = match signed {
        Some((rest, back)) => packed(rest, context, M::Months)
            .map(|amount| (1, context.offset, if back { amount.back() } else { amount })),
        None if ago(words, context).is_some() => {
            ago(words, context).map(|(used, amount)| (used, context.now, amount.back()))
        }
        None => context.term(words, WordMeaning::WithinPrefix).and_then(|used| {
            let rest = after(words, used);
            let found = amount(rest, context, M::Minutes);
            let (more, amount) = found.or_else(|| one_unit(rest, context))?;
            Some((used + more, context.now, amount))
        }),
    };
    Ok(found.map(|(used, from, amount)| {
        let there = amount.after(from);
        let days = amount.is_days();
        let span = if days { Span::day(there.day()) } else { Span::moment(there, false) };
        (used, if signed.is_some() { span.counted(context) } else { span.relative() })
    }))
}

/// "2 weeks ago", "vor 3 Tagen".
fn ago(words: &[Word], context: &Context) -> Option<(usize, Amount)> {
    if let Some(before) = context.term(words, WordMeaning::AgoPrefix) {
        let (used, amount) = amount(after(words, before), context, M::Minutes)?;
        return Some((before + used, amount));
    }
    let (used, amount) = amount(words, context, M::Minutes)?;
    Some((used + context.term(after(words, used), WordMeaning::Ago)?, amount))
}

/// `W12`, "week 12", "KW 12 2026": weeks of ISO 8601.
fn week_number(words: &[Word], context: &Context) -> Read<Span> {
    let Some(text) = first(words) else { return Ok(None) };
    let mut prefixes = Vocabulary::common().forms(WordMeaning::WeekPrefix).iter();
    let packed = prefixes.find_map(|prefix| text.strip_prefix(prefix));
    let packed = packed.and_then(|rest| number(rest, 2)).map(|week| (1, week));
    let spoken = || {
        let used = context.term(words, WordMeaning::WeekNumber)?;
        Some((used + 1, number(first(after(words, used))?, 2)?))
    };
    let Some((used, week)) = packed.or_else(spoken) else { return Ok(None) };
    let said = first(after(words, used)).and_then(year);
    let (used, owner) = match said {
        Some(year) => (used + 1, year),
        None => (used, larder_time::civil::week_of(context.base.day(), Weekday::Monday).0),
    };
    let Some(start) = digits::week(owner, week) else {
        return Err(PhraseError::NoSuchDay { text: typed(words, used) });
    };
    let mut span = Span::days(start, start + 7, Unit::Longer);
    if said.is_none() {
        let past = span.to <= context.base;
        let next = digits::week(owner + 1, week).filter(|_| past);
        span =
            next.map_or(span, |start| Span::days(start, start + 7, Unit::Longer)).counted(context);
    }
    Ok(Some((used, span)))
}

/// Where something lies from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Last,
    This,
    Next,
}

/// "next friday", "last month", "this week", "next 3 days"; in some languages with the word behind it.
fn adjacent(words: &[Word], context: &Context) -> Read<Span> {
    const SIDES: [(WordMeaning, Side); 3] = [
        (WordMeaning::This, Side::This),
        (WordMeaning::Next, Side::Next),
        (WordMeaning::Last, Side::Last),
    ];
    for (term, side) in SIDES {
        let Some(used) = context.term(words, term) else { continue };
        let found = beside(after(words, used), side, context);
        if let Some((more, span)) = found {
            return Ok(Some((used + more, span.relative())));
        }
    }
    if !context.language.own().has_property(LanguageProperty::AdjectiveAfterNoun)
        || words.first().is_none_or(|word| word.stop)
    {
        return Ok(None);
    }
    let article = words.len() - context.skip(words, WordMeaning::OnDate).len();
    for start in [0, article.max(context.own_term(words, WordMeaning::UnitArticle).unwrap_or(0))] {
        for (term, side) in SIDES {
            let rest = after(words, start);
            let Some(used) = context.own_term(after(rest, 1), term) else { continue };
            if let Some((1, span)) = beside(rest, side, context) {
                return Ok(Some((start + 1 + used, span.relative())));
            }
        }
    }
    Ok(None)
}

/// The weekday, month or unit beside now.
fn beside(words: &[Word], side: Side, context: &Context) -> Option<(usize, Span)> {
    let today = context.now.day();
    if let Some((used, name)) = weekday(words, context) {
        let ahead = (i64::from(name.day.number()) - (today + 3)).rem_euclid(7);
        let day = today
            + match side {
                Side::This => ahead,
                Side::Next if ahead == 0 => 7,
                Side::Next => ahead,
                Side::Last => ahead - 7,
            };
        return Some((used, Span::day(day)));
    }
    if let Some((used, month)) = month_name(words, context) {
        let Date { year, month: current, .. } = context.now.date();
        let month = i64::from(month);
        let away = match side {
            Side::This => 0,
            Side::Next => i64::from(month <= i64::from(current)),
            Side::Last => -i64::from(month >= i64::from(current)),
        };
        return Some((used, Span::months(i64::from(year) + away, month, 1)));
    }
    if let Some(count) = first(words).and_then(|text| number(text, 3)).filter(|count| *count > 0) {
        let (used, unit) = unit(after(words, 1), context, M::Months)?;
        return Some((1 + used, several(unit, count, side, context)?));
    }
    stretch(words, side, context)
}

/// "week", "weekend", "month", "year".
fn stretch(words: &[Word], side: Side, context: &Context) -> Option<(usize, Span)> {
    if let Some(used) = context.term(words, WordMeaning::Weekend) {
        let away = match side {
            Side::Last => -7,
            Side::This => 0,
            Side::Next => 7,
        };
        let monday = week_start(context.now.day(), Weekday::Monday) + away;
        return Some((used, Span::days(monday + 5, monday + 7, Unit::Longer)));
    }
    let (used, unit) = unit(words, context, M::Months)?;
    // "this d" is not said.
    first(words).filter(|text| text.len() > 1)?;
    Some((used, one(unit, side, context)?))
}

/// The same without a word before it: the one that now is in.
pub(crate) fn present(words: &[Word], context: &Context) -> Option<(usize, Span)> {
    stretch(words, Side::This, context).map(|(used, span)| (used, span.relative()))
}

/// This, the next or the last week, month or year.
fn one(unit: WordMeaning, side: Side, context: &Context) -> Option<Span> {
    let away = match side {
        Side::Last => -1,
        Side::This => 0,
        Side::Next => 1,
    };
    let Date { year, month, .. } = context.now.date();
    let (year, month) = (i64::from(year), i64::from(month));
    Some(match unit {
        WordMeaning::Week => {
            let first = week_start(context.now.day(), context.language.first_weekday()) + 7 * away;
            Span::days(first, first + 7, Unit::Longer)
        }
        WordMeaning::Month => Span::months(year, month + away, 1),
        WordMeaning::Year => Span::months(year + away, 1, 12),
        _ => return None,
    })
}

/// The next so many days and the like, which begin or end with today.
fn several(unit: WordMeaning, count: i64, side: Side, context: &Context) -> Option<Span> {
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
    let amount = Amount { months, days, seconds: 0 };
    match side {
        Side::Next => Some(Span::days(today, amount.after(midnight).day(), Unit::Longer)),
        Side::Last => {
            let first = amount.back().after(midnight).day() + 1;
            Some(Span::days(first, today + 1, Unit::Longer))
        }
        Side::This => None,
    }
}

/// The name of a weekday.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DayName {
    pub(crate) day: Weekday,
    /// Not its long name.
    pub(crate) short: bool,
    /// As "mondays".
    pub(crate) repeated: bool,
}

pub(crate) fn weekday(words: &[Word], context: &Context) -> Option<(usize, DayName)> {
    let text = first(words)?;
    for table in context.language.tables() {
        for (day, name) in Weekday::ALL.into_iter().zip(WordMeaning::WEEKDAYS) {
            let long = table.printed_name(name, false);
            let alone = plural_ending(table).and_then(|ending| text.strip_suffix(ending));
            if alone.is_some_and(|alone| is_form(long, alone)) {
                return Some((1, DayName { day, short: true, repeated: true }));
            }
            if let Some(form) = table.forms(name).iter().find(|form| is_form(form, text)) {
                let short = form.chars().count() < 5 && *form != long;
                return Some((1, DayName { day, short, repeated: false }));
            }
        }
    }
    None
}

/// The ending of "mondays".
fn plural_ending(table: &Vocabulary) -> Option<&'static str> {
    table.forms(WordMeaning::WeekdayPlural).first().copied()
}

/// The name of a weekday, or that of "Samstagabend" and "samstagabends".
pub(crate) fn day_name(words: &[Word], context: &Context) -> Option<(usize, DayName)> {
    weekday(words, context).or_else(|| {
        let text = first(words)?;
        let (day, _) = compound(text, context)?;
        let (_, name) = weekday(&[Word::new(day)], context)?;
        let ending = plural_ending(context.language.own());
        let repeated = ending.is_some_and(|ending| text.ends_with(ending));
        Some((1, DayName { repeated, ..name }))
    })
}

/// "fri 6 march", which has to be one.
fn weekday_and_date(words: &[Word], context: &Context) -> Read<Span> {
    const READERS: [Reader; 3] = [digits::iso, digits::numeric, month_day];
    let Some((used, name)) = weekday(words, context) else { return Ok(None) };
    if name.repeated {
        return Ok(None);
    }
    let rest = after(words, used);
    let skipped = |term| rest.len() - context.skip(rest, term).len();
    let (on, the) = (skipped(WordMeaning::OnDate), skipped(WordMeaning::The));
    let read =
        |(skipped, reader): (usize, Reader)| (skipped, reader(after(rest, skipped), context));
    let dates = [on, the].into_iter().flat_map(|skipped| READERS.map(|reader| (skipped, reader)));
    let numbered = (the, Ok(numbered(after(rest, the), context)));
    for (skipped, found) in dates.map(read).chain([numbered]) {
        let Some((more, span)) = found?.filter(|(_, span)| span.unit == Unit::Day) else {
            continue;
        };
        let used = used + skipped + more;
        let is = Weekday::of_day(span.from.day());
        if is != name.day {
            let is = context.language.date(span.from.date());
            return Err(PhraseError::Weekday { text: typed(words, used), is });
        }
        return Ok(Some((used, Span { weak: false, ..span })));
    }
    Ok(None)
}

/// "friday", the next, today included.
fn weekday_alone(words: &[Word], context: &Context) -> Read<Span> {
    let named = day_name(words, context).filter(|(_, name)| !name.repeated);
    let Some((used, name)) = named else { return Ok(None) };
    let from = context.base.day();
    let ahead = (i64::from(name.day.number()) - (from + 3)).rem_euclid(7);
    let span = Span { weekly: true, weak: name.short, ..Span::day(from + ahead).counted(context) };
    Ok(Some((used, span)))
}

/// "the end of june", "the end of the year": the last day of it.
fn last_day(words: &[Word], context: &Context) -> Read<Span> {
    let Some(used) = context.term(words, WordMeaning::EndOf) else { return Ok(None) };
    let rest = after(words, used);
    let the = rest.len() - context.skip(rest, WordMeaning::The).len();
    let words = after(rest, the);
    let found = adjacent(words, context)?;
    let found = found.or_else(|| month(words, context)).or_else(|| present(words, context));
    let found = found.filter(|(_, span)| span.unit == Unit::Longer);
    Ok(found.map(|(more, span)| {
        let last = Span::day(span.to.plus(-1).day());
        (used + the + more, Span { relative: span.relative, ..last })
    }))
}

/// The name of a month: 1 to 12.
pub(crate) fn month_name(words: &[Word], context: &Context) -> Option<(usize, u8)> {
    let text = first(words)?;
    context.language.tables().find_map(|table| Some((1, month_in(table, text)?)))
}

fn month_in(table: &Vocabulary, text: &str) -> Option<u8> {
    let named = |name: &WordMeaning| table.forms(*name).iter().any(|form| is_form(form, text));
    WordMeaning::MONTHS.iter().position(named).map(|place| place as u8 + 1)
}

/// The number of a day: `5`, `5.`, `5th`, `1er`.
pub(crate) fn day_number(text: &str) -> Option<i64> {
    let mut endings = Vocabulary::common().forms(WordMeaning::OrdinalSuffix).iter();
    let bare = endings.find_map(|ending| text.strip_suffix(ending)).unwrap_or(text);
    number(bare, 2)
}

/// "5 march", "5 march 2027", "march 5", "5th of march", "5 de marzo de 2027".
pub(crate) fn month_day(words: &[Word], context: &Context) -> Read<Span> {
    let Some(text) = first(words) else { return Ok(None) };
    // `1-Dec-2026`
    let parts: Vec<Word> = text.split('-').map(Word::new).collect();
    if let [day, month, ..] = &parts[..]
        && parts.len() < 4
        && number(&day.folded, 2).is_some()
        && month_name(std::slice::from_ref(month), context).is_some()
    {
        let found = month_day(&parts, context)?.filter(|(used, _)| *used == parts.len());
        return Ok(found.map(|(_, span)| (1, span)));
    }
    let found = match day_number(text) {
        Some(day) => {
            let rest = context.skip(after(words, 1), WordMeaning::Of);
            month_name(rest, context)
                .map(|(more, month)| (words.len() - rest.len() + more, day, month))
        }
        // Only English says the month first; elsewhere a short name is as often another word, as "pro 5" in Czech.
        None => {
            let before = |table: &&Vocabulary| table.has_property(LanguageProperty::MonthBeforeDay);
            let mut tables = context.language.tables().filter(before);
            tables.find_map(|table| month_in(table, text)).and_then(|month| {
                let day = day_number(first(after(words, 1))?)?;
                Some((2, day, month))
            })
        }
    };
    let Some((used, day, month)) = found else { return Ok(None) };
    let behind = context.skip(after(words, used), WordMeaning::Of);
    if let Some(year) = first(behind).and_then(year) {
        let used = words.len() - behind.len() + 1;
        let date = Date::new(year, month, day as u8);
        let date = date.ok_or_else(|| PhraseError::NoSuchDay { text: typed(words, used) })?;
        return Ok(Some((used, Span::day(date.day_number()))));
    }
    let day = next_date(month, day, context.base)
        .ok_or_else(|| PhraseError::NoSuchDay { text: typed(words, used) })?;
    Ok(Some((used, Span::day(day).counted(context))))
}

/// The next day of this name, the day of `base` included: 29 February may be years away.
pub(crate) fn next_date(month: u8, day: i64, base: Civil) -> Option<i64> {
    let first = base.date().year;
    let day = u8::try_from(day).ok()?;
    let dates = (first..first + 9).filter_map(|year| Date::new(year, month, day));
    let mut days = dates.map(Date::day_number);
    let next = days.find(|day| *day >= base.day());
    // In the last years of the calendar there may be no next one.
    next.or_else(|| Date::new(first, month, day).map(Date::day_number))
}

/// "march", the next, the present one included; "march 2027".
fn month(words: &[Word], context: &Context) -> Option<(usize, Span)> {
    let (used, month) = month_name(words, context)?;
    let behind = context.skip(after(words, used), WordMeaning::Of);
    if let Some(year) = first(behind).and_then(year) {
        let used = words.len() - behind.len() + 1;
        return Some((used, Span::months(i64::from(year), i64::from(month), 1)));
    }
    let Date { year, month: current, .. } = context.base.date();
    let year = i64::from(year) + i64::from(month < current);
    Some((used, Span::months(year, i64::from(month), 1).counted(context)))
}

/// The day of a month's number in the month of a day or the next that has one: "the 15th".
pub(crate) fn next_of_month(day: i64, base: Civil) -> Option<i64> {
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
