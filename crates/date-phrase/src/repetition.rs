//! Repetitions: "every monday", "every 2 weeks", "daily", as the text of an RFC 5545 recurrence
//! rule.

use crate::calendar_names::{match_weekday, match_weekday_or_compound, parse_day_number};
use crate::calendar_span::{CalendarSpan, SpanUnit};
use crate::context::{ParseResult, PhraseContext};
use crate::date::match_month_and_day;
use crate::duration::{MLetter, match_unit};
use crate::error::PhraseError;
use crate::folding::is_form;
use crate::time_of_day::{
    is_phrase_end, match_part_of_day, match_time_or_ambiguous, match_time_range,
};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{Date, Weekday, days_in_month};

/// A repetition in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepeatPhrase {
    frequency: RepeatFrequency,
    interval: i64,
    /// The weekdays as bits, Monday the lowest; 0 if none is named.
    days: u8,
    /// The day of the month of a monthly repetition; -1 is the last.
    month_day: Option<i64>,
    /// The position of the weekday in its month; -1 is the last.
    nth: Option<i64>,
    /// The date that the phrase contains: "every 24 december".
    pub(crate) start: Option<CalendarSpan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatFrequency {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

const WORKDAY_BITS: u8 = 0b001_1111;
const WEEKEND_BITS: u8 = 0b110_0000;

impl RepeatPhrase {
    fn new(frequency: RepeatFrequency, interval: i64) -> RepeatPhrase {
        RepeatPhrase { frequency, interval, days: 0, month_day: None, nth: None, start: None }
    }

    fn new_weekly(interval: i64, days: u8) -> RepeatPhrase {
        RepeatPhrase { days, ..RepeatPhrase::new(RepeatFrequency::Weekly, interval) }
    }

    /// Returns the text of the recurrence rule.
    pub(crate) fn rule_text(&self) -> String {
        let mut text = String::from(match self.frequency {
            RepeatFrequency::Daily => "FREQ=DAILY",
            RepeatFrequency::Weekly => "FREQ=WEEKLY",
            RepeatFrequency::Monthly => "FREQ=MONTHLY",
            RepeatFrequency::Yearly => "FREQ=YEARLY",
        });
        if self.interval > 1 {
            text.push_str(&format!(";INTERVAL={}", self.interval));
        }
        if let Some(day) = self.month_day {
            text.push_str(&format!(";BYMONTHDAY={day}"));
        }
        let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
        let names = names.iter().zip(Weekday::ALL).filter(|(_, day)| self.has_weekday(*day));
        let nth = self.nth.map_or_else(String::new, |nth| nth.to_string());
        let names: Vec<String> = names.map(|(name, _)| format!("{nth}{name}")).collect();
        if !names.is_empty() {
            text.push_str(&format!(";BYDAY={}", names.join(",")));
        }
        text
    }

    /// The approximate number of days from one occurrence to the next.
    pub(crate) fn period_days(&self) -> i64 {
        let days = match self.frequency {
            RepeatFrequency::Daily => 1,
            RepeatFrequency::Weekly => 7,
            RepeatFrequency::Monthly => 31,
            RepeatFrequency::Yearly => 366,
        };
        days * self.interval
    }

    /// Returns the first day of the repetition, from a day on.
    pub(crate) fn first_day(&self, from: i64) -> i64 {
        // The 31st is never more than two months away, a fifth Monday never more than three.
        (from..from + 100).find(|day| self.is_possible_day(*day)).unwrap_or(from)
    }

    /// Returns whether the repetition can occur on a day.
    fn is_possible_day(&self, day: i64) -> bool {
        let Date { year, month, day: number } = Date::from_day_number(day);
        let number = i64::from(number);
        let end = i64::from(days_in_month(year, month));
        self.month_day.is_none_or(|matched| matched == number || (matched < 0 && number == end))
            && self
                .nth
                .is_none_or(|nth| if nth < 0 { number + 7 > end } else { (number + 6) / 7 == nth })
            && (self.days == 0 || self.has_weekday(Weekday::from_day_number(day)))
    }

    fn has_weekday(&self, day: Weekday) -> bool {
        self.days & weekday_bit(day) != 0
    }
}

fn weekday_bit(day: Weekday) -> u8 {
    1 << day.number_from_monday()
}

/// Matches an adverb alone: "daily".
pub(crate) fn match_adverb(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    const ADVERBS: [(WordMeaning, RepeatFrequency, i64); 6] = [
        (WordMeaning::Daily, RepeatFrequency::Daily, 1),
        (WordMeaning::Weekly, RepeatFrequency::Weekly, 1),
        (WordMeaning::Biweekly, RepeatFrequency::Weekly, 2),
        (WordMeaning::Monthly, RepeatFrequency::Monthly, 1),
        (WordMeaning::Quarterly, RepeatFrequency::Monthly, 3),
        (WordMeaning::Yearly, RepeatFrequency::Yearly, 1),
    ];
    ADVERBS.iter().find_map(|(meaning, frequency, interval)| {
        Some((context.match_meaning(words, *meaning)?, RepeatPhrase::new(*frequency, *interval)))
    })
}

/// Matches the days after "daily" or "every 2 weeks": "on weekdays", "on friday", "on the 15th".
fn match_details(
    words: &[PhraseToken],
    plain: RepeatPhrase,
    context: &PhraseContext,
) -> (usize, RepeatPhrase) {
    let on = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    let rest = skip_tokens(words, on);
    let interval = plain.interval;
    let found = match plain.frequency {
        RepeatFrequency::Monthly => match_day_in_month(rest, on > 0, context)
            .map(|(more, found)| (more, RepeatPhrase { interval, ..found })),
        // German "every 2 weeks so ..." does not mean Sunday.
        RepeatFrequency::Weekly => match_weekdays(rest, context)
            .filter(|(more, _)| {
                let short = match_weekday(rest, context).is_some_and(|(_, name)| name.is_short);
                let following = skip_tokens(rest, *more);
                on > 0
                    || !short
                    || is_phrase_end(following, context)
                    || match_time_or_ambiguous(following, context).is_some()
            })
            .map(|(more, days)| (more, RepeatPhrase { days, ..plain.clone() })),
        RepeatFrequency::Daily if interval == 1 => match_weekday_range(rest, context)
            .or_else(|| Some((context.match_meaning(rest, WordMeaning::Workday)?, WORKDAY_BITS)))
            .map(|(more, days)| (more, RepeatPhrase::new_weekly(1, days))),
        _ => None,
    };
    found.map_or((0, plain), |(more, found)| (on + more, found))
}

/// Matches "except sunday" after days of the week, and returns the repetition without it.
pub(crate) fn match_exception(
    words: &[PhraseToken],
    repeat: &RepeatPhrase,
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let except = context.match_meaning(words, WordMeaning::Except)?;
    let on =
        words.len() - context.skip_meaning(skip_tokens(words, except), WordMeaning::OnDate).len();
    let rest = skip_tokens(words, on);
    let weekend = || Some((context.match_meaning(rest, WordMeaning::Weekend)?, WEEKEND_BITS));
    let (used, out) = match_weekdays(rest, context).or_else(weekend)?;
    let weekly = repeat.nth.is_none() && repeat.interval == 1;
    let days = match repeat.frequency {
        RepeatFrequency::Daily => WORKDAY_BITS | WEEKEND_BITS,
        RepeatFrequency::Weekly => repeat.days,
        _ => 0,
    };
    let days = days & !out;
    (weekly && days != 0).then(|| (on + used, RepeatPhrase::new_weekly(1, days)))
}

/// Matches "every ...", "daily", "mondays".
pub(crate) fn match_repetition(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> ParseResult<RepeatPhrase> {
    if let Some((used, adverb)) = match_adverb(words, context) {
        let (more, repeat) = match_details(skip_tokens(words, used), adverb, context);
        return Ok(Some((used + more, repeat)));
    }
    if let Some(found) = match_day_of_every_month(words, context) {
        return Ok(Some(found));
    }
    let every = context.match_meaning(words, WordMeaning::Every);
    let rest = skip_tokens(words, every.unwrap_or(0));
    if let Some((used, repeat)) = match_nth_weekday_of_month(rest, every.is_some(), context)? {
        return Ok(Some((every.unwrap_or(0) + used, repeat)));
    }
    let Some(every) = every else { return Ok(match_plural_weekdays(words, context)) };
    if let Some((used, start)) = match_month_and_day(rest, context)?
        && start.unit == SpanUnit::Day
        && start.is_relative
    {
        let repeat =
            RepeatPhrase { start: Some(start), ..RepeatPhrase::new(RepeatFrequency::Yearly, 1) };
        return Ok(Some((every + used, repeat)));
    }
    let (skipped, interval) = match_interval(rest, context);
    let found = match_repeated_unit(skip_tokens(rest, skipped), interval, context);
    let found = found.map(|(used, repeat)| (skipped + used, repeat));
    let found = found.or_else(|| {
        let (used, repeat) = match_day_of_month(rest)?;
        Some((
            used + context
                .match_meaning(skip_tokens(rest, used), WordMeaning::OfMonth)
                .unwrap_or(0),
            repeat,
        ))
    });
    Ok(found.map(|(used, repeat)| (every + used, repeat)))
}

/// Matches "every first monday", "second tuesday of the month". "every second tuesday" is
/// ambiguous.
fn match_nth_weekday_of_month(
    words: &[PhraseToken],
    every: bool,
    context: &PhraseContext,
) -> ParseResult<RepeatPhrase> {
    let on = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    let found = [0, on].into_iter().find_map(|on| {
        let (used, repeat) = match_nth_weekday(skip_tokens(words, on), context)?;
        Some((on + used, repeat))
    });
    let Some((used, repeat)) = found else { return Ok(None) };
    let of_month = context.match_meaning(skip_tokens(words, used), WordMeaning::OfMonth);
    // "jeden zweiten Montag" means every other one; the English "second" is ambiguous.
    if of_month.is_none() && (!every || context.match_meaning(words, WordMeaning::Other).is_some())
    {
        return Ok(None);
    }
    if of_month.is_none() && repeat.nth == Some(2) {
        return Err(PhraseError::AmbiguousSecond { text: source_text(words, used) });
    }
    Ok(Some((used + of_month.unwrap_or(0), repeat)))
}

/// Matches "first monday" of a month.
fn match_nth_weekday(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    const ORDINALS: [(WordMeaning, i64); 5] = [
        (WordMeaning::First, 1),
        (WordMeaning::Second, 2),
        (WordMeaning::Third, 3),
        (WordMeaning::Fourth, 4),
        (WordMeaning::Last, -1),
    ];
    let (used, nth) = ORDINALS
        .iter()
        .find_map(|(meaning, nth)| Some((context.match_meaning(words, *meaning)?, *nth)))?;
    let rest = skip_tokens(words, used);
    if nth == -1
        && let Some(more) = context.match_meaning(rest, WordMeaning::Day)
    {
        let repeat =
            RepeatPhrase { month_day: Some(-1), ..RepeatPhrase::new(RepeatFrequency::Monthly, 1) };
        return Some((used + more, repeat));
    }
    let (more, name) = match_weekday(rest, context).filter(|(_, name)| !name.is_plural)?;
    let days = weekday_bit(name.day);
    let repeat =
        RepeatPhrase { nth: Some(nth), days, ..RepeatPhrase::new(RepeatFrequency::Monthly, 1) };
    Some((used + more, repeat))
}

/// Matches "15th" or "first monday" after "every month on".
fn match_day_in_month(
    words: &[PhraseToken],
    on: bool,
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let ended = || {
        is_phrase_end(skip_tokens(words, 1), context)
            || match_time_or_ambiguous(skip_tokens(words, 1), context).is_some()
    };
    match_day_of_month(words)
        .filter(|_| on || ended())
        .or_else(|| match_nth_weekday(words, context))
}

/// Matches "on the 1st of every month".
fn match_day_of_every_month(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let on = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    let rest = skip_tokens(words, on);
    let (used, repeat) =
        match_day_of_month(rest).or_else(|| match_first_of_month(rest, context))?;
    let more = context.match_meaning(skip_tokens(rest, used), WordMeaning::OfMonth)?;
    Some((on + used + more, repeat))
}

/// Matches "first" before "of every month", or before "of the month" at the end of a phrase: a
/// title may have "first of the month report".
fn match_first_of_month(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let used = context.match_meaning(words, WordMeaning::First)?;
    let after_unit = skip_tokens(words, used);
    let following = context.skip_meaning(after_unit, WordMeaning::OfMonth);
    let mut month = (0..after_unit.len() - following.len()).map(|at| skip_tokens(after_unit, at));
    let visit = month.any(|words| context.match_meaning(words, WordMeaning::Every).is_some());
    let is_certain = visit
        || is_phrase_end(following, context)
        || match_time_or_ambiguous(following, context).is_some();
    let repeat =
        RepeatPhrase { month_day: Some(1), ..RepeatPhrase::new(RepeatFrequency::Monthly, 1) };
    is_certain.then_some((used, repeat))
}

/// Matches "mondays", "mondays and thursdays", "fridays every two weeks". In English these may be
/// words of a title.
fn match_plural_weekdays(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let on = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    match_weekday_or_compound(skip_tokens(words, on), context)
        .filter(|(_, name)| name.is_plural)?;
    let (used, days) = match_weekdays(skip_tokens(words, on), context)?;
    let used = on + used;
    let rest = skip_tokens(words, used);
    if let Some((more, every)) = match_every_n_weeks(rest, context) {
        return Some((used + more, RepeatPhrase { days, ..every }));
    }
    // "montags" always means every Monday; "mondays" does so next to a time or at the end of a
    // phrase.
    let vocabulary = context.language.vocabulary();
    let is_certain = on > 0
        || !(vocabulary.has_property(LanguageProperty::WeekdayPluralNeedsTime)
            || vocabulary.forms(WordMeaning::WeekdayPlural).is_empty());
    let english = || {
        match_time_or_ambiguous(rest, context).is_some()
            || match_time_range(rest, context).is_some()
    };
    (is_certain || english()).then(|| (used, RepeatPhrase::new_weekly(1, days)))
}

/// Matches "every two weeks" and "biweekly" without weekdays.
fn match_every_n_weeks(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let weekly =
        |repeat: &RepeatPhrase| repeat.frequency == RepeatFrequency::Weekly && repeat.days == 0;
    if let Some(found) = match_adverb(words, context) {
        return Some(found).filter(|(_, repeat)| weekly(repeat));
    }
    let every = context.match_meaning(words, WordMeaning::Every)?;
    let (skipped, count) = match_interval(skip_tokens(words, every), context);
    let (used, repeat) = match_repeated_unit(skip_tokens(words, every + skipped), count, context)?;
    weekly(&repeat).then_some((every + skipped + used, repeat))
}

/// Matches the number of occurrences: "10 times", "for 10 times", `x10`; but not "3 times a day".
pub(crate) fn match_count(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, i64)> {
    let before = context.match_meaning(words, WordMeaning::For).unwrap_or(0);
    let rest = skip_tokens(words, before);
    let text = first_word(rest)?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, following) = text.split_at(digits);
    let (used, count) = match text.strip_prefix(['x', '×']) {
        Some(count) => (1, parse_number(count, 4)?),
        None if following.is_empty() => (
            1 + context.match_meaning(skip_tokens(rest, 1), WordMeaning::Times)?,
            parse_number(count, 4)?,
        ),
        None => {
            let _packed = context.match_meaning(
                &[PhraseToken::new(following.trim_start_matches('-'))],
                WordMeaning::Times,
            )?;
            (1, parse_number(count, 4)?)
        }
    };
    let following = skip_tokens(rest, used);
    let visit = context
        .match_meaning(following, WordMeaning::One)
        .or_else(|| context.match_meaning(following, WordMeaning::Every));
    let rate = visit.is_some_and(|used| {
        match_unit(skip_tokens(following, used), context, MLetter::Months).is_some()
    });
    (count > 0 && !rate).then_some((before + used, count))
}

/// Matches the interval: "other", "2".
fn match_interval(words: &[PhraseToken], context: &PhraseContext) -> (usize, i64) {
    if let Some(used) = context.match_meaning(words, WordMeaning::Other) {
        return (used, 2);
    }
    match first_word(words).and_then(|text| parse_number(text, 3)) {
        Some(count @ 1..) => (1, count),
        _ => context.match_number(words).unwrap_or((0, 1)),
    }
}

/// Matches the repeated unit: days of the week, or a unit of time.
fn match_repeated_unit(
    words: &[PhraseToken],
    interval: i64,
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    if let Some((used, days)) = match_weekdays(words, context) {
        return Some((used, RepeatPhrase::new_weekly(interval, days)));
    }
    // No rule means every other workday.
    let workday = context.match_meaning(words, WordMeaning::Workday).filter(|_| interval == 1);
    if let Some(used) = workday {
        return Some((used, RepeatPhrase::new_weekly(interval, WORKDAY_BITS)));
    }
    if let Some(used) = context.match_meaning(words, WordMeaning::Weekend) {
        return Some((used, RepeatPhrase::new_weekly(interval, WEEKEND_BITS)));
    }
    if let Some((used, _)) = match_part_of_day(words, context) {
        return Some((used, RepeatPhrase::new(RepeatFrequency::Daily, interval)));
    }
    let quarter =
        context.match_meaning(words, WordMeaning::Quarter).map(|used| (used, WordMeaning::Quarter));
    let (used, unit) = quarter.or_else(|| match_unit(words, context, MLetter::Months))?;
    let (frequency, interval) = match unit {
        WordMeaning::Day => (RepeatFrequency::Daily, interval),
        WordMeaning::Week => (RepeatFrequency::Weekly, interval),
        WordMeaning::Month => (RepeatFrequency::Monthly, interval),
        WordMeaning::Quarter => (RepeatFrequency::Monthly, 3 * interval),
        WordMeaning::Year => (RepeatFrequency::Yearly, interval),
        _ => return None,
    };
    let (more, repeat) =
        match_details(skip_tokens(words, used), RepeatPhrase::new(frequency, interval), context);
    Some((used + more, repeat))
}

/// Matches "weekdays", or several weekdays in one word: `monday-friday`, `mon/wed/fri`.
pub(crate) fn match_weekday_range_or_workdays(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase)> {
    let on = words.len() - context.skip_meaning(words, WordMeaning::OnDate).len();
    let workdays = || {
        Some((
            on + context.match_meaning(skip_tokens(words, on), WordMeaning::Workday)?,
            WORKDAY_BITS,
        ))
    };
    let found = match_weekday_range(words, context).or_else(workdays);
    found.map(|(used, days)| (used, RepeatPhrase::new_weekly(1, days)))
}

/// Matches several weekdays in one word: `mon-fri`, `mon/wed/fri`.
pub(crate) fn match_weekday_range(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, u8)> {
    let text = first_word(words)?;
    let Some((from, to)) = text.split_once(['-', '–', '—']) else {
        let mut days = text.split('/').map(|day| parse_weekday_in_range(day, context));
        let days = days.try_fold(0, |days, day| Some(days | weekday_bit(day?)))?;
        return text.contains('/').then_some((1, days));
    };
    let (from, to) = (parse_weekday_in_range(from, context)?, parse_weekday_in_range(to, context)?);
    Some((1, weekdays_between(from, to)))
}

/// Parses a weekday in a range, where English has names of two letters, too: `mo-fr`.
fn parse_weekday_in_range(text: &str, context: &PhraseContext) -> Option<Weekday> {
    let named = match_weekday(&[PhraseToken::new(text)], context).map(|(_, name)| name.day);
    let letters = || {
        let names = Vocabulary::english().forms(WordMeaning::WeekdayInRange);
        names.iter().position(|name| is_form(name, text))
    };
    named.or_else(|| Weekday::ALL.get(letters()?).copied())
}

/// Matches "monday to friday", with or without "from". Also returns whether the range certainly
/// means a repetition: in some languages the word for "to" may also mean "until".
pub(crate) fn match_spoken_weekday_range(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, RepeatPhrase, bool)> {
    let from = context.match_meaning(words, WordMeaning::From);
    let words = skip_tokens(words, from.unwrap_or(0));
    let (used, first) = match_weekday(words, context).filter(|(_, name)| !name.is_plural)?;
    let rest = skip_tokens(words, used);
    let to = context.match_meaning(rest, WordMeaning::To)?;
    let (more, last) =
        match_weekday(skip_tokens(rest, to), context).filter(|(_, name)| !name.is_plural)?;
    let days = weekdays_between(first.day, last.day);
    let is_certain = from.is_none() && context.match_meaning(rest, WordMeaning::Until).is_none();
    Some((from.unwrap_or(0) + used + to + more, RepeatPhrase::new_weekly(1, days), is_certain))
}

/// Returns the days from one weekday to another, as bits.
fn weekdays_between(from: Weekday, to: Weekday) -> u8 {
    let (from, to) = (from.number_from_monday(), to.number_from_monday());
    let last = if to < from { to + 7 } else { to };
    (from..=last).fold(0, |days, day| days | 1 << (day % 7))
}

/// Matches "monday", "monday and thursday", "mon, wed, fri", "monday to friday".
fn match_weekdays(words: &[PhraseToken], context: &PhraseContext) -> Option<(usize, u8)> {
    if let Some(range) = match_weekday_range(words, context) {
        return Some(range);
    }
    let (mut used, name) = match_weekday_or_compound(words, context)?;
    // "every monday until friday" is a repetition with an end.
    let rest = skip_tokens(words, used);
    if let Some(to) = context.match_meaning(rest, WordMeaning::To)
        && context.match_meaning(rest, WordMeaning::Until).is_none()
        && let Some((more, last)) = match_weekday(skip_tokens(rest, to), context)
    {
        return Some((used + to + more, weekdays_between(name.day, last.day)));
    }
    let (mut days, shorts) = (weekday_bit(name.day), name.is_short);
    loop {
        let rest = skip_tokens(words, used);
        let joined = context.skip_meaning(rest, WordMeaning::And);
        let listed = words.get(used - 1).is_some_and(|word| word.has_stop);
        let Some((more, name)) = match_weekday_or_compound(joined, context) else { break };
        // "mon wed fri", but not "monday sun cream".
        let row = shorts && name.is_short;
        if !listed && !row && joined.len() == rest.len() {
            break;
        }
        days |= weekday_bit(name.day);
        used += rest.len() - joined.len() + more;
    }
    Some((used, days))
}

/// Matches "every 15th".
fn match_day_of_month(words: &[PhraseToken]) -> Option<(usize, RepeatPhrase)> {
    let text = first_word(words)?;
    let day = parse_day_number(text)
        .filter(|day| parse_number(text, 2).is_none() && (1..=31).contains(day))?;
    Some((
        1,
        RepeatPhrase { month_day: Some(day), ..RepeatPhrase::new(RepeatFrequency::Monthly, 1) },
    ))
}
