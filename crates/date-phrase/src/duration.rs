//! Durations: `1h`, `90min`, `1h30`, `2 days`, `an hour`, `half an hour`, `1.5h`.

use crate::context::PhraseContext;
use crate::error::{ExpectedPhrase, PhraseError, excerpt};
use crate::language::Language;
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens};
use crate::vocabulary::WordMeaning;
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, days_in_month};
use larder_time::value::IcalDuration;

/// A duration, or a distance from a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PhraseDuration {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) seconds: i64,
}

/// The unit that the letter m stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MLetter {
    /// `30m` in "for 30m".
    Minutes,
    /// `+1m` among dates.
    Months,
}

/// Limits the digits of a number so that no sum overflows.
const MAX_NUMBER_DIGITS: usize = 6;

impl PhraseDuration {
    pub(crate) fn from_unit(unit: WordMeaning, count: i64) -> Option<PhraseDuration> {
        let zero = PhraseDuration::default();
        Some(match unit {
            WordMeaning::Minute => PhraseDuration { seconds: count * 60, ..zero },
            WordMeaning::Hour => PhraseDuration { seconds: count * 3600, ..zero },
            WordMeaning::Day => PhraseDuration { days: count, ..zero },
            WordMeaning::Week => PhraseDuration { days: count * 7, ..zero },
            WordMeaning::Month => PhraseDuration { months: count, ..zero },
            WordMeaning::Year => PhraseDuration { months: count * 12, ..zero },
            _ => return None,
        })
    }

    fn combine(self, other: PhraseDuration) -> PhraseDuration {
        PhraseDuration {
            months: self.months + other.months,
            days: self.days + other.days,
            seconds: self.seconds + other.seconds,
        }
    }

    pub(crate) fn negate(self) -> PhraseDuration {
        PhraseDuration { months: -self.months, days: -self.days, seconds: -self.seconds }
    }

    /// Returns whether the duration has no part of a day.
    pub(crate) fn is_whole_days(self) -> bool {
        self.seconds == 0
    }

    /// Adds the duration to a clock time. Months lead to the same day of a later month, or to its
    /// last day. The result is limited to the years 1 to 9999.
    pub(crate) fn add_to(self, civil: CivilTime) -> CivilTime {
        let day = add_months(civil.date(), self.months).saturating_add(self.days);
        CivilTime::from_seconds_clamped(day * DAY_SECONDS + civil.second_of_day() + self.seconds)
    }
}

/// Returns the number of the day that is some months after a date.
fn add_months(date: Date, months: i64) -> i64 {
    let count = i64::from(date.year) * 12 + i64::from(date.month) - 1 + months;
    let (year, month) = (count.div_euclid(12).clamp(1, 9999), count.rem_euclid(12) + 1);
    let (year, month) = (year as i32, month as u8);
    let day = date.day.min(days_in_month(year, month));
    Date { year, month, day }.day_number()
}

/// Parses a duration: `1h30`, `90 min`, `2 days`. Months and years are refused, as their length
/// varies.
///
/// # Errors
/// When the text is not a duration.
pub fn parse_duration(text: &str, language: &Language) -> Result<IcalDuration, PhraseError> {
    let context = PhraseContext::new(CivilTime::MIN, *language);
    let words = PhraseToken::tokenize(text);
    match match_duration(&words, &context, MLetter::Minutes) {
        Some((used, PhraseDuration { months: 0, days, seconds })) if used == words.len() => {
            Ok(IcalDuration { days, seconds })
        }
        // Zero needs no unit.
        None if text.trim() == "0" => Ok(IcalDuration { days: 0, seconds: 0 }),
        _ => Err(PhraseError::NotUnderstood {
            text: excerpt(text),
            expected: ExpectedPhrase::Duration,
            suggestion: None,
        }),
    }
}

/// Matches a duration of one or several words: "1 hour and 30 minutes".
pub(crate) fn match_duration(
    words: &[PhraseToken],
    context: &PhraseContext,
    m: MLetter,
) -> Option<(usize, PhraseDuration)> {
    let (mut used, mut sum) = match_duration_part(words, context, m)?;
    while let Some(before) = words.get(used - 1)
        && !before.has_stop
    {
        let rest = skip_tokens(words, used);
        let joined = context.skip_meaning(rest, WordMeaning::And);
        if let Some(half) = match_and_a_half(rest, sum, context) {
            return Some((
                used + half,
                sum.combine(PhraseDuration::from_unit(WordMeaning::Minute, 30)?),
            ));
        }
        let Some((more, amount)) = match_duration_part(joined, context, m) else { break };
        used += rest.len() - joined.len() + more;
        sum = sum.combine(amount);
    }
    Some((used, sum))
}

/// Matches the rest of "an hour AND A HALF".
fn match_and_a_half(
    words: &[PhraseToken],
    so_far: PhraseDuration,
    context: &PhraseContext,
) -> Option<usize> {
    let used = context.match_meaning(words, WordMeaning::AndAHalf)?;
    let hours = so_far.months == 0 && so_far.days == 0 && so_far.seconds % 3600 == 0;
    // "and a half hour" has its own unit, and is matched as such.
    let more = match_unit(skip_tokens(words, used), context, MLetter::Minutes).is_some();
    (hours && so_far.seconds > 0 && !more).then_some(used)
}

/// Matches a number and its unit in one word or two, or "an hour", "half an hour".
fn match_duration_part(
    words: &[PhraseToken],
    context: &PhraseContext,
    m: MLetter,
) -> Option<(usize, PhraseDuration)> {
    let text = first_word(words)?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        if let Some(amount) = parse_packed_duration(text, context, m) {
            return Some((1, amount));
        }
        let (used, unit) = match_unit(skip_tokens(words, 1), context, m)?;
        return Some((1 + used, parse_scaled_amount(text, unit)?));
    }
    for (meaning, minutes) in [(WordMeaning::Half, 30), (WordMeaning::OneAndAHalf, 90)] {
        if let Some(used) = context.match_meaning(words, meaning)
            && let Some((more, WordMeaning::Hour)) =
                match_unit(skip_tokens(words, used), context, m)
        {
            return Some((used + more, PhraseDuration::from_unit(WordMeaning::Minute, minutes)?));
        }
    }
    if let Some((used, count)) = context.match_number(words) {
        let (more, unit) = match_unit(skip_tokens(words, used), context, m)?;
        return Some((used + more, PhraseDuration::from_unit(unit, count)?));
    }
    let used = context.match_meaning(words, WordMeaning::One)?;
    let (more, unit) = match_unit(skip_tokens(words, used), context, m)?;
    // Single letters are units only after a number: there is no "a d".
    first_word(skip_tokens(words, used)).filter(|unit| unit.len() > 1)?;
    Some((used + more, PhraseDuration::from_unit(unit, 1)?))
}

/// Matches a unit without a number, which means one unit in languages without articles: "za týden",
/// "na hodinu".
pub(crate) fn match_unit_alone(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, PhraseDuration)> {
    context.match_own_meaning(words, WordMeaning::UnitAlone)?;
    let text = first_word(words)?;
    let (_, unit) = match_unit(&[PhraseToken::new(text)], context, MLetter::Minutes)?;
    let amount = PhraseDuration::from_unit(unit, 1)?;
    let following = skip_tokens(words, 1);
    let half = match_and_a_half(following, amount, context)
        .filter(|_| words.first().is_some_and(|word| !word.has_stop));
    let minutes =
        half.and_then(|_| PhraseDuration::from_unit(WordMeaning::Minute, 30)).unwrap_or_default();
    Some((1 + half.unwrap_or(0), amount.combine(minutes)))
}

/// Parses numbers and units in one word: `1h30`, `90min`, `2w3d`, `1.5h`. Minutes after hours need
/// no unit.
pub(crate) fn parse_packed_duration(
    text: &str,
    context: &PhraseContext,
    m: MLetter,
) -> Option<PhraseDuration> {
    let (mut sum, mut rest, mut last) = (PhraseDuration::default(), text, None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
        let Some(end) = end else {
            let minutes = parse_number(rest, 2)
                .filter(|count| last == Some(WordMeaning::Hour) && *count < 60)?;
            return Some(sum.combine(PhraseDuration::from_unit(WordMeaning::Minute, minutes)?));
        };
        let (count, following) = rest.split_at(end);
        let end = following.find(|c: char| c.is_ascii_digit()).unwrap_or(following.len());
        let (name, following) = following.split_at(end);
        let (_, unit) = match_unit(&[PhraseToken::new(name)], context, m)?;
        sum = sum.combine(parse_scaled_amount(count, unit)?);
        (rest, last) = (following, Some(unit));
    }
    last.map(|_| sum)
}

/// Parses a number of units. Hours may have decimals: `1.5`, `1,5`.
fn parse_scaled_amount(text: &str, unit: WordMeaning) -> Option<PhraseDuration> {
    if let Some(count) = parse_number(text, MAX_NUMBER_DIGITS) {
        return PhraseDuration::from_unit(unit, count);
    }
    let (whole, tenths) = text.split_once(['.', ','])?;
    let (whole, tenths) =
        (parse_number(whole, 3)?, parse_number(tenths, 2).map(|n| (n, tenths.len()))?);
    let hundredths = if tenths.1 == 1 { tenths.0 * 10 } else { tenths.0 };
    (unit == WordMeaning::Hour).then(|| PhraseDuration {
        seconds: whole * 3600 + hundredths * 36,
        ..PhraseDuration::default()
    })
}

/// Matches the name of a unit.
pub(crate) fn match_unit(
    words: &[PhraseToken],
    context: &PhraseContext,
    m: MLetter,
) -> Option<(usize, WordMeaning)> {
    const UNITS: [WordMeaning; 6] = [
        WordMeaning::Minute,
        WordMeaning::Hour,
        WordMeaning::Day,
        WordMeaning::Week,
        WordMeaning::Month,
        WordMeaning::Year,
    ];
    if first_word(words)? == "m" {
        return Some((
            1,
            if m == MLetter::Minutes { WordMeaning::Minute } else { WordMeaning::Month },
        ));
    }
    let unit =
        UNITS.iter().find_map(|unit| Some((context.match_own_meaning(words, *unit)?, *unit)));
    unit.or_else(|| {
        UNITS.iter().find_map(|unit| Some((context.match_meaning(words, *unit)?, *unit)))
    })
}
