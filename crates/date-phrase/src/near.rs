//! Words that are one slip away from the name of a day: asked for, and never read as it.
//!
//! Few names, and in two languages alone: elsewhere too many ordinary words are as near.

use super::language::Language;
use super::words::{Term, Words, folded, form};

/// Slips that are more than one letter, and common.
const SLIPS: &[(&str, &str)] =
    &[("tommorow", "tomorrow"), ("wensday", "Wednesday"), ("wendsday", "Wednesday")];

/// Words that are words of their own.
const ORDINARY: &[&str] = &["sundae", "sundaes", "montage"];

/// The name of a day that a word probably means, and is not.
pub(crate) fn near(word: &str, language: &Language) -> Option<&'static str> {
    let own: &'static Words = language.own();
    if !matches!(own.code, "en" | "de") || ORDINARY.contains(&word) {
        return None;
    }
    let english = own.code == "en";
    if let Some((_, meant)) = SLIPS.iter().find(|(slip, _)| english && *slip == word) {
        return Some(meant);
    }
    let days = own.weekdays.into_iter().map(|forms| form(forms, false));
    let named = days.chain(own.forms(Term::Tomorrow).filter(|_| english)).chain(
        // One of the forms of today.
        english.then_some("tonight"),
    );
    // A short name is near to too many words.
    let mut long = named.filter(|name| name.chars().count() > 5);
    long.find(|name| is_slip(word, &folded(name)))
}

/// Are they the same but for one letter that is left out, added, another one, or changed places with the next?
fn is_slip(one: &str, other: &str) -> bool {
    let pairs = one.chars().zip(other.chars());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let tail = |text: &str| text.chars().skip(same).collect::<Vec<char>>();
    let (one, other) = (tail(one), tail(other));
    let pairs = one.iter().rev().zip(other.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let middle = |tail: &[char]| tail.iter().take(tail.len() - end).copied().collect::<Vec<char>>();
    match (middle(&one).as_slice(), middle(&other).as_slice()) {
        ([_], []) | ([], [_]) | ([_], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}
