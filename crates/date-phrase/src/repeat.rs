//! How often something happens: "every monday", "every 2 weeks", "daily", as the text of a rule of RFC 5545.

use super::PhraseError;
use super::clock::{ends, open, part, two_clocks};
use super::date::{Span, Unit, day_name, day_number, month_day, weekday};
use super::folding::is_form;
use super::length::{M, unit};
use super::reading::{Context, Read, Word, after, first, number, typed};
use super::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{Date, Weekday, month_length};

/// A repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repeat {
    frequency: Frequency,
    interval: i64,
    /// The weekdays of a weekly one, as bits, Monday the lowest.
    days: u8,
    /// The day of the month of a monthly one.
    month_day: Option<i64>,
    /// Which of the weekdays of a month; -1 is the last.
    nth: Option<i64>,
    /// The date it says of itself: "every 24 december".
    pub(crate) start: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frequency {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

const WORKDAYS: u8 = 0b001_1111;
const WEEKEND: u8 = 0b110_0000;

impl Repeat {
    fn of(frequency: Frequency, interval: i64) -> Repeat {
        Repeat { frequency, interval, days: 0, month_day: None, nth: None, start: None }
    }

    fn weekly(interval: i64, days: u8) -> Repeat {
        Repeat { days, ..Repeat::of(Frequency::Weekly, interval) }
    }

    /// The text of its rule.
    pub(crate) fn rule(&self) -> String {
        let mut text = String::from(match self.frequency {
            Frequency::Daily => "FREQ=DAILY",
            Frequency::Weekly => "FREQ=WEEKLY",
            Frequency::Monthly => "FREQ=MONTHLY",
            Frequency::Yearly => "FREQ=YEARLY",
        });
        if self.interval > 1 {
            text.push_str(&format!(";INTERVAL={}", self.interval));
        }
        if let Some(day) = self.month_day {
            text.push_str(&format!(";BYMONTHDAY={day}"));
        }
        let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
        let names = names.iter().zip(Weekday::ALL).filter(|(_, day)| self.has(*day));
        let nth = self.nth.map_or_else(String::new, |nth| nth.to_string());
        let names: Vec<String> = names.map(|(name, _)| format!("{nth}{name}")).collect();
        if !names.is_empty() {
            text.push_str(&format!(";BYDAY={}", names.join(",")));
        }
        text
    }

    /// How many days lie between two at most, roughly.
    pub(crate) fn period(&self) -> i64 {
        let days = match self.frequency {
            Frequency::Daily => 1,
            Frequency::Weekly => 7,
            Frequency::Monthly => 31,
            Frequency::Yearly => 366,
        };
        days * self.interval
    }

    /// The first day on which it happens, from a day on.
    pub(crate) fn first_day(&self, from: i64) -> i64 {
        // The 31st of a month is never more than two months away, and so is the fifth Monday's kin.
        (from..from + 100).find(|day| self.fits(*day)).unwrap_or(from)
    }

    /// Is it a day on which it can happen?
    fn fits(&self, day: i64) -> bool {
        let Date { year, month, day: number } = Date::of_day(day);
        let number = i64::from(number);
        let end = i64::from(month_length(year, month));
        self.month_day.is_none_or(|said| said == number || (said < 0 && number == end))
            && self
                .nth
                .is_none_or(|nth| if nth < 0 { number + 7 > end } else { (number + 6) / 7 == nth })
            && (self.days == 0 || self.has(Weekday::of_day(day)))
    }

    fn has(&self, day: Weekday) -> bool {
        self.days & bit(day) != 0
    }
}

fn bit(day: Weekday) -> u8 {
    1 << day.number()
}

/// "daily" and its kin alone.
pub(crate) fn adverb(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    const ALONE: [(WordMeaning, Frequency, i64); 6] = [
        (WordMeaning::Daily, Frequency::Daily, 1),
        (WordMeaning::Weekly, Frequency::Weekly, 1),
        (WordMeaning::Biweekly, Frequency::Weekly, 2),
        (WordMeaning::Monthly, Frequency::Monthly, 1),
        (WordMeaning::Quarterly, Frequency::Monthly, 3),
        (WordMeaning::Yearly, Frequency::Yearly, 1),
    ];
    ALONE.iter().find_map(|(term, frequency, interval)| {
        Some((context.term(words, *term)?, Repeat::of(*frequency, *interval)))
    })
}

/// What is said behind "daily" or "every 2 weeks": "on weekdays", "on friday", "on the 15th".
fn detailed(words: &[Word], plain: Repeat, context: &Context) -> (usize, Repeat) {
    let on = words.len() - context.skip(words, WordMeaning::OnDate).len();
    let rest = after(words, on);
    let interval = plain.interval;
    let found = match plain.frequency {
        Frequency::Monthly => place_in_month(rest, on > 0, context)
            .map(|(more, found)| (more, Repeat { interval, ..found })),
        // "every 2 weeks so ..." is not every Sunday.
        Frequency::Weekly => weekdays(rest, context)
            .filter(|(more, _)| {
                let short = weekday(rest, context).is_some_and(|(_, name)| name.short);
                let behind = after(rest, *more);
                on > 0 || !short || ends(behind, context) || open(behind, context).is_some()
            })
            .map(|(more, days)| (more, Repeat { days, ..plain.clone() })),
        Frequency::Daily if interval == 1 => weekday_range(rest, context)
            .or_else(|| Some((context.term(rest, WordMeaning::Workday)?, WORKDAYS)))
            .map(|(more, days)| (more, Repeat::weekly(1, days))),
        _ => None,
    };
    found.map_or((0, plain), |(more, found)| (on + more, found))
}

/// "except sunday", behind what happens on days of the week; what it leaves out is left.
pub(crate) fn without(
    words: &[Word],
    repeat: &Repeat,
    context: &Context,
) -> Option<(usize, Repeat)> {
    let except = context.term(words, WordMeaning::Except)?;
    let on = words.len() - context.skip(after(words, except), WordMeaning::OnDate).len();
    let rest = after(words, on);
    let weekend = || Some((context.term(rest, WordMeaning::Weekend)?, WEEKEND));
    let (used, out) = weekdays(rest, context).or_else(weekend)?;
    let weekly = repeat.nth.is_none() && repeat.interval == 1;
    let days = match repeat.frequency {
        Frequency::Daily => WORKDAYS | WEEKEND,
        Frequency::Weekly => repeat.days,
        _ => 0,
    };
    let days = days & !out;
    (weekly && days != 0).then(|| (on + used, Repeat::weekly(1, days)))
}

/// "every ...", "daily", "mondays".
pub(crate) fn repeat(words: &[Word], context: &Context) -> Read<Repeat> {
    if let Some((used, adverb)) = adverb(words, context) {
        let (more, repeat) = detailed(after(words, used), adverb, context);
        return Ok(Some((used + more, repeat)));
    }
    if let Some(found) = day_of_each(words, context) {
        return Ok(Some(found));
    }
    let every = context.term(words, WordMeaning::Every);
    let rest = after(words, every.unwrap_or(0));
    if let Some((used, repeat)) = nth_weekday(rest, every.is_some(), context)? {
        return Ok(Some((every.unwrap_or(0) + used, repeat)));
    }
    let Some(every) = every else { return Ok(repeated(words, context)) };
    if let Some((used, start)) = month_day(rest, context)?
        && start.unit == Unit::Day
        && start.relative
    {
        let repeat = Repeat { start: Some(start), ..Repeat::of(Frequency::Yearly, 1) };
        return Ok(Some((every + used, repeat)));
    }
    let (skipped, interval) = interval(rest, context);
    let found = stepped(after(rest, skipped), interval, context);
    let found = found.map(|(used, repeat)| (skipped + used, repeat));
    let found = found.or_else(|| {
        let (used, repeat) = day_of_month(rest)?;
        Some((used + context.term(after(rest, used), WordMeaning::OfMonth).unwrap_or(0), repeat))
    });
    Ok(found.map(|(used, repeat)| (every + used, repeat)))
}

/// "every first monday", "second tuesday of the month". "every second tuesday" could be every other one.
fn nth_weekday(words: &[Word], every: bool, context: &Context) -> Read<Repeat> {
    let on = words.len() - context.skip(words, WordMeaning::OnDate).len();
    let found = [0, on].into_iter().find_map(|on| {
        let (used, repeat) = nth_day(after(words, on), context)?;
        Some((on + used, repeat))
    });
    let Some((used, repeat)) = found else { return Ok(None) };
    let of_month = context.term(after(words, used), WordMeaning::OfMonth);
    // "jeden zweiten Montag" is every other one, and what "second" means is asked.
    if of_month.is_none() && (!every || context.term(words, WordMeaning::Other).is_some()) {
        return Ok(None);
    }
    if of_month.is_none() && repeat.nth == Some(2) {
        return Err(PhraseError::SecondOrOther { text: typed(words, used) });
    }
    Ok(Some((used + of_month.unwrap_or(0), repeat)))
}

/// "first monday", of a month.
fn nth_day(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    const PLACES: [(WordMeaning, i64); 5] = [
        (WordMeaning::First, 1),
        (WordMeaning::Second, 2),
        (WordMeaning::Third, 3),
        (WordMeaning::Fourth, 4),
        (WordMeaning::Last, -1),
    ];
    let (used, nth) =
        PLACES.iter().find_map(|(term, nth)| Some((context.term(words, *term)?, *nth)))?;
    let rest = after(words, used);
    if nth == -1
        && let Some(more) = context.term(rest, WordMeaning::Day)
    {
        let repeat = Repeat { month_day: Some(-1), ..Repeat::of(Frequency::Monthly, 1) };
        return Some((used + more, repeat));
    }
    let (more, name) = weekday(rest, context).filter(|(_, name)| !name.repeated)?;
    let days = bit(name.day);
    let repeat = Repeat { nth: Some(nth), days, ..Repeat::of(Frequency::Monthly, 1) };
    Some((used + more, repeat))
}

/// "15th", "first monday", behind "every month on".
fn place_in_month(words: &[Word], on: bool, context: &Context) -> Option<(usize, Repeat)> {
    let ended = || ends(after(words, 1), context) || open(after(words, 1), context).is_some();
    day_of_month(words).filter(|_| on || ended()).or_else(|| nth_day(words, context))
}

/// "on the 1st of every month".
fn day_of_each(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    let on = words.len() - context.skip(words, WordMeaning::OnDate).len();
    let rest = after(words, on);
    let (used, repeat) = day_of_month(rest).or_else(|| first_of_each(rest, context))?;
    let more = context.term(after(rest, used), WordMeaning::OfMonth)?;
    Some((on + used + more, repeat))
}

/// "first", where "of every month" follows, or "of the month" and nothing else: a title may have "first of the month report".
fn first_of_each(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    let used = context.term(words, WordMeaning::First)?;
    let of = after(words, used);
    let behind = context.skip(of, WordMeaning::OfMonth);
    let mut month = (0..of.len() - behind.len()).map(|at| after(of, at));
    let each = month.any(|words| context.term(words, WordMeaning::Every).is_some());
    let sure = each || ends(behind, context) || open(behind, context).is_some();
    let repeat = Repeat { month_day: Some(1), ..Repeat::of(Frequency::Monthly, 1) };
    sure.then_some((used, repeat))
}

/// "mondays", "mondays and thursdays", "fridays every two weeks"; which in English may be the words of a title.
fn repeated(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    let on = words.len() - context.skip(words, WordMeaning::OnDate).len();
    day_name(after(words, on), context).filter(|(_, name)| name.repeated)?;
    let (used, days) = weekdays(after(words, on), context)?;
    let used = on + used;
    let rest = after(words, used);
    if let Some((more, every)) = each_weeks(rest, context) {
        return Some((used + more, Repeat { days, ..every }));
    }
    // "montags" means every Monday wherever it stands, "mondays" before a time or where the phrase ends.
    let own = context.language.own();
    let sure = on > 0
        || !(own.has_property(LanguageProperty::WeekdayPluralNeedsTime)
            || own.forms(WordMeaning::WeekdayPlural).is_empty());
    let english = || open(rest, context).is_some() || two_clocks(rest, context).is_some();
    (sure || english()).then(|| (used, Repeat::weekly(1, days)))
}

/// "every two weeks", "biweekly", without days.
fn each_weeks(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    let weekly = |repeat: &Repeat| repeat.frequency == Frequency::Weekly && repeat.days == 0;
    if let Some(found) = adverb(words, context) {
        return Some(found).filter(|(_, repeat)| weekly(repeat));
    }
    let every = context.term(words, WordMeaning::Every)?;
    let (skipped, count) = interval(after(words, every), context);
    let (used, repeat) = stepped(after(words, every + skipped), count, context)?;
    weekly(&repeat).then_some((every + skipped + used, repeat))
}

/// How many of what is repeated: "10 times", "for 10 times", `x10`. "3 times a day" is something else.
pub(crate) fn times(words: &[Word], context: &Context) -> Option<(usize, i64)> {
    let before = context.term(words, WordMeaning::For).unwrap_or(0);
    let rest = after(words, before);
    let text = first(rest)?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, behind) = text.split_at(digits);
    let (used, count) = match text.strip_prefix(['x', '×']) {
        Some(count) => (1, number(count, 4)?),
        None if behind.is_empty() => {
            (1 + context.term(after(rest, 1), WordMeaning::Times)?, number(count, 4)?)
        }
        None => {
            let _packed =
                context.term(&[Word::new(behind.trim_start_matches('-'))], WordMeaning::Times)?;
            (1, number(count, 4)?)
        }
    };
    let behind = after(rest, used);
    let each =
        context.term(behind, WordMeaning::One).or_else(|| context.term(behind, WordMeaning::Every));
    let rate = each.is_some_and(|used| unit(after(behind, used), context, M::Months).is_some());
    (count > 0 && !rate).then_some((before + used, count))
}

/// "other", "2", "2nd".
fn interval(words: &[Word], context: &Context) -> (usize, i64) {
    if let Some(used) = context.term(words, WordMeaning::Other) {
        return (used, 2);
    }
    match first(words).and_then(|text| number(text, 3)) {
        Some(count @ 1..) => (1, count),
        _ => context.count(words).unwrap_or((0, 1)),
    }
}

/// What is repeated at each step: days of the week, or a unit.
fn stepped(words: &[Word], interval: i64, context: &Context) -> Option<(usize, Repeat)> {
    if let Some((used, days)) = weekdays(words, context) {
        return Some((used, Repeat::weekly(interval, days)));
    }
    if let Some(used) = context.term(words, WordMeaning::Workday) {
        return Some((used, Repeat::weekly(1, WORKDAYS)));
    }
    if let Some(used) = context.term(words, WordMeaning::Weekend) {
        return Some((used, Repeat::weekly(interval, WEEKEND)));
    }
    if let Some((used, _)) = part(words, context) {
        return Some((used, Repeat::of(Frequency::Daily, interval)));
    }
    let quarter =
        context.term(words, WordMeaning::Quarter).map(|used| (used, WordMeaning::Quarter));
    let (used, unit) = quarter.or_else(|| unit(words, context, M::Months))?;
    let (frequency, interval) = match unit {
        WordMeaning::Day => (Frequency::Daily, interval),
        WordMeaning::Week => (Frequency::Weekly, interval),
        WordMeaning::Month => (Frequency::Monthly, interval),
        WordMeaning::Quarter => (Frequency::Monthly, 3 * interval),
        WordMeaning::Year => (Frequency::Yearly, interval),
        _ => return None,
    };
    let (more, repeat) = detailed(after(words, used), Repeat::of(frequency, interval), context);
    Some((used + more, repeat))
}

/// `monday-friday`, in one word, and "weekdays", as a repetition.
pub(crate) fn from_to(words: &[Word], context: &Context) -> Option<(usize, Repeat)> {
    let on = words.len() - context.skip(words, WordMeaning::OnDate).len();
    let workdays = || Some((on + context.term(after(words, on), WordMeaning::Workday)?, WORKDAYS));
    let found = weekday_range(words, context).or_else(workdays);
    found.map(|(used, days)| (used, Repeat::weekly(1, days)))
}

fn weekday_range(words: &[Word], context: &Context) -> Option<(usize, u8)> {
    let (from, to) = first(words)?.split_once(['-', '–', '—'])?;
    Some((1, days_between(weekday_in_range(from, context)?, weekday_in_range(to, context)?)))
}

/// A weekday beside a dash, where two letters are enough in English, too: `mo-fr`.
fn weekday_in_range(text: &str, context: &Context) -> Option<Weekday> {
    let named = weekday(&[Word::new(text)], context).map(|(_, name)| name.day);
    let letters = || {
        let names = Vocabulary::english().forms(WordMeaning::WeekdayInRange);
        names.iter().position(|name| is_form(name, text))
    };
    named.or_else(|| Weekday::ALL.get(letters()?).copied())
}

/// "monday to friday", with "from" before it or without, and whether it can hardly be from one moment to another: words
/// for "to" may mean "until" as well.
pub(crate) fn spoken_range(words: &[Word], context: &Context) -> Option<(usize, Repeat, bool)> {
    let from = context.term(words, WordMeaning::From);
    let words = after(words, from.unwrap_or(0));
    let (used, first) = weekday(words, context).filter(|(_, name)| !name.repeated)?;
    let rest = after(words, used);
    let to = context.term(rest, WordMeaning::To)?;
    let (more, last) = weekday(after(rest, to), context).filter(|(_, name)| !name.repeated)?;
    let days = days_between(first.day, last.day);
    let sure = from.is_none() && context.term(rest, WordMeaning::Until).is_none();
    Some((from.unwrap_or(0) + used + to + more, Repeat::weekly(1, days), sure))
}

/// All days from one weekday to another, as bits.
fn days_between(from: Weekday, to: Weekday) -> u8 {
    let (from, to) = (from.number(), to.number());
    let last = if to < from { to + 7 } else { to };
    (from..=last).fold(0, |days, day| days | 1 << (day % 7))
}

/// "monday", "monday and thursday", "mon, wed, fri", "monday to friday".
fn weekdays(words: &[Word], context: &Context) -> Option<(usize, u8)> {
    if let Some(range) = weekday_range(words, context) {
        return Some(range);
    }
    let (mut used, name) = day_name(words, context)?;
    // Until a friday it may be repeated, too.
    let rest = after(words, used);
    if let Some(to) = context.term(rest, WordMeaning::To)
        && context.term(rest, WordMeaning::Until).is_none()
        && let Some((more, last)) = weekday(after(rest, to), context)
    {
        return Some((used + to + more, days_between(name.day, last.day)));
    }
    let (mut days, shorts) = (bit(name.day), name.short);
    loop {
        let rest = after(words, used);
        let joined = context.skip(rest, WordMeaning::And);
        let listed = words.get(used - 1).is_some_and(|word| word.stop);
        let Some((more, name)) = day_name(joined, context) else { break };
        // "mon wed fri", but not "monday sun cream".
        let row = shorts && name.short;
        if !listed && !row && joined.len() == rest.len() {
            break;
        }
        days |= bit(name.day);
        used += rest.len() - joined.len() + more;
    }
    Some((used, days))
}

/// "every 15th".
fn day_of_month(words: &[Word]) -> Option<(usize, Repeat)> {
    let text = first(words)?;
    let day = day_number(text).filter(|day| number(text, 2).is_none() && (1..=31).contains(day))?;
    Some((1, Repeat { month_day: Some(day), ..Repeat::of(Frequency::Monthly, 1) }))
}
