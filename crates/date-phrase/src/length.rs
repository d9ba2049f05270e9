//! Lengths: `1h`, `90min`, `1h30`, `2 days`, `an hour`, `half an hour`, `1.5h`.

use super::language::Language;
use super::reading::{Context, Word, after, first, number, unknown};
use super::vocabulary::WordMeaning;
use super::{Expected, PhraseError};
use larder_time::civil::{Civil, DAY, Date, month_length};
use larder_time::value::Nominal;

/// How long something takes, or how far away it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) seconds: i64,
}

/// What the letter m means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum M {
    /// `30m` in "for 30m".
    Minutes,
    /// `+1m`: among dates.
    Months,
}

/// No number of a length has more digits than this, so that no sum overflows.
const DIGITS: usize = 6;

impl Amount {
    pub(crate) fn of(unit: WordMeaning, count: i64) -> Option<Amount> {
        let zero = Amount::default();
        Some(match unit {
            WordMeaning::Minute => Amount { seconds: count * 60, ..zero },
            WordMeaning::Hour => Amount { seconds: count * 3600, ..zero },
            WordMeaning::Day => Amount { days: count, ..zero },
            WordMeaning::Week => Amount { days: count * 7, ..zero },
            WordMeaning::Month => Amount { months: count, ..zero },
            WordMeaning::Year => Amount { months: count * 12, ..zero },
            _ => return None,
        })
    }

    fn and(self, other: Amount) -> Amount {
        Amount {
            months: self.months + other.months,
            days: self.days + other.days,
            seconds: self.seconds + other.seconds,
        }
    }

    pub(crate) fn back(self) -> Amount {
        Amount { months: -self.months, days: -self.days, seconds: -self.seconds }
    }

    /// Is it made of whole days?
    pub(crate) fn is_days(self) -> bool {
        self.seconds == 0
    }

    /// That much after a clock time: the same day of a later month or its last, the same time of a later day. The
    /// first or last clock time there is where it would lie outside.
    pub(crate) fn after(self, civil: Civil) -> Civil {
        let day = months_after(civil.date(), self.months).saturating_add(self.days);
        Civil::clamped(day * DAY + civil.second_of_day() + self.seconds)
    }
}

/// The number of the day so many months after a date.
fn months_after(date: Date, months: i64) -> i64 {
    let count = i64::from(date.year) * 12 + i64::from(date.month) - 1 + months;
    let (year, month) = (count.div_euclid(12).clamp(1, 9999), count.rem_euclid(12) + 1);
    let (year, month) = (year as i32, month as u8);
    let day = date.day.min(month_length(year, month));
    Date { year, month, day }.day_number()
}

/// Reads a length: `1h30`, `90 min`, `2 days`. Months and years have no fixed length and are refused.
///
/// # Errors
/// When it is none, or not all of it.
pub fn length(text: &str, language: &Language) -> Result<Nominal, PhraseError> {
    let context = Context::new(Civil::MIN, *language);
    let words = Word::all(text);
    match amount(&words, &context, M::Minutes) {
        Some((used, Amount { months: 0, days, seconds })) if used == words.len() => {
            Ok(Nominal { days, seconds })
        }
        // Nothing of any unit.
        None if text.trim() == "0" => Ok(Nominal { days: 0, seconds: 0 }),
        _ => Err(unknown(text, Expected::Length)),
    }
}

/// A length of one or several words: "1 hour and 30 minutes".
pub(crate) fn amount(words: &[Word], context: &Context, m: M) -> Option<(usize, Amount)> {
    let (mut used, mut sum) = part(words, context, m)?;
    while let Some(before) = words.get(used - 1)
        && !before.stop
    {
        let rest = after(words, used);
        let joined = context.skip(rest, WordMeaning::And);
        if let Some(half) = and_half(rest, sum, context) {
            return Some((used + half, sum.and(Amount::of(WordMeaning::Minute, 30)?)));
        }
        let Some((more, amount)) = part(joined, context, m) else { break };
        used += rest.len() - joined.len() + more;
        sum = sum.and(amount);
    }
    Some((used, sum))
}

/// "an hour AND A HALF": how many words that are.
fn and_half(words: &[Word], so_far: Amount, context: &Context) -> Option<usize> {
    let used = context.term(words, WordMeaning::AndAHalf)?;
    let hours = so_far.months == 0 && so_far.days == 0 && so_far.seconds % 3600 == 0;
    // "and a half hour" says its unit again.
    let more = unit(after(words, used), context, M::Minutes).is_some();
    (hours && so_far.seconds > 0 && !more).then_some(used)
}

/// A number and its unit, in one word or two; or "an hour", "half an hour".
fn part(words: &[Word], context: &Context, m: M) -> Option<(usize, Amount)> {
    let text = first(words)?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        if let Some(amount) = packed(text, context, m) {
            return Some((1, amount));
        }
        let (used, unit) = unit(after(words, 1), context, m)?;
        return Some((1 + used, scaled(text, unit)?));
    }
    for (term, minutes) in [(WordMeaning::Half, 30), (WordMeaning::OneAndAHalf, 90)] {
        if let Some(used) = context.term(words, term)
            && let Some((more, WordMeaning::Hour)) = unit(after(words, used), context, m)
        {
            return Some((used + more, Amount::of(WordMeaning::Minute, minutes)?));
        }
    }
    if let Some((used, count)) = context.count(words) {
        let (more, unit) = unit(after(words, used), context, m)?;
        return Some((used + more, Amount::of(unit, count)?));
    }
    let used = context.term(words, WordMeaning::One)?;
    let (more, unit) = unit(after(words, used), context, m)?;
    // "a d" is not said.
    first(after(words, used)).filter(|unit| unit.len() > 1)?;
    Some((used + more, Amount::of(unit, 1)?))
}

/// "za týden", "na hodinu": where there are no articles, a unit alone is one of them.
pub(crate) fn one_unit(words: &[Word], context: &Context) -> Option<(usize, Amount)> {
    context.own_term(words, WordMeaning::UnitAlone)?;
    let text = first(words)?;
    let (_, unit) = unit(&[Word::new(text)], context, M::Minutes)?;
    let amount = Amount::of(unit, 1)?;
    let behind = after(words, 1);
    let half =
        and_half(behind, amount, context).filter(|_| words.first().is_some_and(|word| !word.stop));
    let minutes = half.and_then(|_| Amount::of(WordMeaning::Minute, 30)).unwrap_or_default();
    Some((1 + half.unwrap_or(0), amount.and(minutes)))
}

/// `1h30`, `90min`, `2w3d`, `1.5h`: numbers and units in one word. Minutes behind hours need no unit.
pub(crate) fn packed(text: &str, context: &Context, m: M) -> Option<Amount> {
    let (mut sum, mut rest, mut last) = (Amount::default(), text, None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
        let Some(end) = end else {
            let minutes =
                number(rest, 2).filter(|count| last == Some(WordMeaning::Hour) && *count < 60)?;
            return Some(sum.and(Amount::of(WordMeaning::Minute, minutes)?));
        };
        let (count, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        let (_, unit) = unit(&[Word::new(name)], context, m)?;
        sum = sum.and(scaled(count, unit)?);
        (rest, last) = (behind, Some(unit));
    }
    last.map(|_| sum)
}

/// A number of units, which may be a half of an hour: `1.5`, `1,5`.
fn scaled(text: &str, unit: WordMeaning) -> Option<Amount> {
    if let Some(count) = number(text, DIGITS) {
        return Amount::of(unit, count);
    }
    let (whole, tenths) = text.split_once(['.', ','])?;
    let (whole, tenths) = (number(whole, 3)?, number(tenths, 2).map(|n| (n, tenths.len()))?);
    let hundredths = if tenths.1 == 1 { tenths.0 * 10 } else { tenths.0 };
    (unit == WordMeaning::Hour)
        .then(|| Amount { seconds: whole * 3600 + hundredths * 36, ..Amount::default() })
}

/// The name of a unit.
pub(crate) fn unit(words: &[Word], context: &Context, m: M) -> Option<(usize, WordMeaning)> {
    const UNITS: [WordMeaning; 6] = [
        WordMeaning::Minute,
        WordMeaning::Hour,
        WordMeaning::Day,
        WordMeaning::Week,
        WordMeaning::Month,
        WordMeaning::Year,
    ];
    if first(words)? == "m" {
        return Some((1, if m == M::Minutes { WordMeaning::Minute } else { WordMeaning::Month }));
    }
    let own = UNITS.iter().find_map(|unit| Some((context.own_term(words, *unit)?, *unit)));
    own.or_else(|| UNITS.iter().find_map(|unit| Some((context.term(words, *unit)?, *unit))))
}
