//! Misspelled names of days. They are reported and never corrected, because a title may mean the
//! word.
//!
//! Only names that a vocabulary lists as `spell-checked` are compared: in most languages too many
//! ordinary words are one letter away.

use crate::folding::fold;
use crate::language::Language;
use crate::vocabulary::WordMeaning;

/// Returns the name of the day if the word differs from it by one letter that is inserted, omitted,
/// replaced, or swapped with the next letter.
pub(crate) fn find_misspelling(word: &str, language: &Language) -> Option<&'static str> {
    let vocabulary = language.vocabulary();
    if vocabulary.forms(WordMeaning::NotMisspelled).contains(&word) {
        return None;
    }
    let mut slips =
        vocabulary.forms(WordMeaning::Misspelled).iter().filter_map(|pair| pair.split_once(" = "));
    if let Some((_, meant)) = slips.find(|(slip, _)| *slip == word) {
        return Some(meant);
    }
    let mut checked = vocabulary.forms(WordMeaning::SpellChecked).iter().copied();
    checked.find(|name| strsim::osa_distance(word, &fold(name)) == 1)
}
