//! Words that are one slip away from the name of a day: asked for, and never read as it.
//!
//! Few names, and in two languages alone: elsewhere too many ordinary words are as near.

use crate::folding::fold;
use crate::language::Language;
use crate::vocabulary::WordMeaning;

/// The name of a day that a word probably means, and is not.
pub(crate) fn find_misspelling(word: &str, language: &Language) -> Option<&'static str> {
    let own = language.vocabulary();
    if own.forms(WordMeaning::NotMisspelled).contains(&word) {
        return None;
    }
    let mut slips =
        own.forms(WordMeaning::Misspelled).iter().filter_map(|pair| pair.split_once(" = "));
    if let Some((_, meant)) = slips.find(|(slip, _)| *slip == word) {
        return Some(meant);
    }
    let mut checked = own.forms(WordMeaning::SpellChecked).iter().copied();
    checked.find(|name| strsim::osa_distance(word, &fold(name)) == 1)
}
