//! Collation: the order of names.

use larder_format::collate::{Collator, primary_weights};
use proptest::prelude::*;

/// Checks that these texts are sorted in the order of the locale.
#[track_caller]
fn check(locale: &str, sorted: &[&str]) {
    let collator = Collator::new(locale);
    let mut found = sorted.to_vec();
    found.sort_by_key(|text| collator.sort_key(text));
    assert_eq!(found, sorted, "{locale}");
}

#[test]
fn names_sort_by_locale() {
    check("en", &["", "anna", "Anna", "Ånna", "Bo", "Öberg", "Zoe", "Ёлка", "Ирина", "王"]);
    check("sv_SE.UTF-8", &["Anna", "Zoe", "Åsa", "Ärla", "Öberg"]);
    check("de_DE.UTF-8", &["Ad", "Ärger", "Af", "Müller", "Muff", "Muga"]);
    check("de-u-co-standard", &["Ad", "Af", "Ärger", "Muff", "Muga", "Müller"]);
    check("de_AT@euro", &["Ad", "Af", "Ärger"]); // Austria's phone books have ä after a.
    check("fi_FI", &["Anna", "Zoe", "Åsa", "Äiti", "Öberg"]);
    check("cs", &["cz", "da", "hz", "chata", "ia"]);
}

/// The part of a sort key that precedes accents and case is a prefix of the keys of all texts that
/// begin with the same letters.
#[test]
fn primary_weights_are_a_prefix_of_keys() {
    let check = |locale: &str, beginning: &str, text: &str, expect: bool| {
        let collator = Collator::new(locale);
        let (beginning, text) = (collator.sort_key(beginning), collator.sort_key(text));
        assert_eq!(text.starts_with(primary_weights(&beginning)), expect, "{locale}");
    };
    check("und", "a", "Änne", true);
    check("und", "ANN", "änne", true);
    check("und", "", "Anna", true);
    check("und", "m", "M-1 王", true);
    check("und", "An", "Ärger", false);
    check("sv", "a", "Änne", false);
    check("de", "ä", "Aegir", true);
    check("cs", "c", "Chata", false);
}

#[test]
fn locale_names_are_normalised() {
    for (name, expect) in [
        ("", "und"),
        ("C", "und"),
        ("POSIX", "und"),
        ("C.UTF-8", "und"),
        ("en_GB.UTF-8", "en-GB"),
        ("sv", "sv"),
        ("de_AT.UTF-8@euro", "de-AT-u-co-phonebk"),
        ("no such locale!", "und"),
        ("../../etc", "und"),
    ] {
        assert_eq!(Collator::new(name).locale(), expect, "{name:?}");
    }
}

#[test]
fn fingerprints_differ_by_rules() {
    let fingerprint = |locale: &str| Collator::new(locale).fingerprint();
    assert_eq!(fingerprint("sv"), fingerprint("sv"));
    assert_ne!(fingerprint("sv"), fingerprint("en"));
    assert_ne!(fingerprint("de"), fingerprint("de-u-co-standard"));
    let tail = |locale: &str| fingerprint(locale).split_once(' ').map(|(_, hash)| hash.to_string());
    assert_eq!(tail("en"), tail("xx"), "an unknown language has the root's order");
    assert_ne!(tail("en"), tail("cs"));
}

proptest! {
    #[test]
    fn nothing_panics(locale in ".{0,20}", text in any::<String>()) {
        let _ = Collator::new(&locale).sort_key(&text);
    }
}
