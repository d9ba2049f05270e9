//! The names of weekdays and months, and the numbers of days.
//!
//! Separate from the grammar of dates because repetitions and sentences name days without a date,
//! too.

use crate::context::PhraseContext;
use crate::folding::is_form;
use crate::time_of_day::split_weekday_and_part;
use crate::tokens::{PhraseToken, first_word, parse_number};
use crate::vocabulary::{Vocabulary, WordMeaning};
use larder_time::civil::Weekday;

/// The name of a weekday.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeekdayName {
    pub(crate) day: Weekday,
    /// The name is not the long one, so the word may mean something else.
    pub(crate) is_short: bool,
    /// The name means every such day: "mondays".
    pub(crate) is_plural: bool,
}

pub(crate) fn match_weekday(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, WeekdayName)> {
    let text = first_word(words)?;
    for vocabulary in context.language.vocabularies() {
        for (day, name) in Weekday::ALL.into_iter().zip(WordMeaning::WEEKDAYS) {
            let long = vocabulary.printed_name(name, false);
            let alone =
                weekday_plural_ending(vocabulary).and_then(|ending| text.strip_suffix(ending));
            if alone.is_some_and(|alone| is_form(long, alone)) {
                return Some((1, WeekdayName { day, is_short: true, is_plural: true }));
            }
            if let Some(form) = vocabulary.forms(name).iter().find(|form| is_form(form, text)) {
                let short = form.chars().count() < 5 && *form != long;
                return Some((1, WeekdayName { day, is_short: short, is_plural: false }));
            }
        }
    }
    None
}

/// Returns the ending of a plural weekday: the "s" of "mondays".
fn weekday_plural_ending(vocabulary: &Vocabulary) -> Option<&'static str> {
    vocabulary.forms(WordMeaning::WeekdayPlural).first().copied()
}

/// Matches the name of a weekday, alone or joined to a part of the day: "Samstagabend".
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

/// Matches the name of a month, and returns its number, 1 to 12.
pub(crate) fn match_month_name(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, u8)> {
    let text = first_word(words)?;
    context.language.vocabularies().find_map(|vocabulary| Some((1, find_month(vocabulary, text)?)))
}

pub(crate) fn find_month(vocabulary: &Vocabulary, text: &str) -> Option<u8> {
    let named = |name: &WordMeaning| vocabulary.forms(*name).iter().any(|form| is_form(form, text));
    WordMeaning::MONTHS.iter().position(named).map(|place| place as u8 + 1)
}

/// Parses the number of a day: `5`, `5.`, `5th`, `1er`.
pub(crate) fn parse_day_number(text: &str) -> Option<i64> {
    let mut endings = Vocabulary::shared_notation().forms(WordMeaning::OrdinalSuffix).iter();
    let bare = endings.find_map(|ending| text.strip_suffix(ending)).unwrap_or(text);
    parse_number(bare, 2)
}
