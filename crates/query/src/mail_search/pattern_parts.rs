//! The parts of which each word that matches a pattern has one, for the search in the dictionary.
//!
//! Separate from `pattern`, which runs patterns, and from `expansion`, which looks the parts up.

use larder_format::fold::fold;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The deepest nesting of a pattern that is looked into.
const MAX_PATTERN_DEPTH: u32 = 64;
/// The most parts. Each is looked for in each block of the dictionary that is read.
const MAX_PARTS: usize = 16;
/// Neighbours are joined to a part of so many bytes.
const MAX_PART_BYTES: usize = 64;
/// The most characters of a class that may be the forms of one letter.
const MAX_FORMS: usize = 4;

/// Returns texts of which each folded word that matches a folded pattern has one; none: no such
/// texts are known. They are as long as possible.
pub(super) fn find_required_parts(folded_pattern: &str) -> Vec<String> {
    let mut parser = ParserBuilder::new().nest_limit(MAX_PATTERN_DEPTH).build();
    match parser.parse(folded_pattern) {
        Ok(hir) => RequiredParts::find(&hir).into_parts(),
        Err(_) => Vec::new(),
    }
}

/// The parts that all matches of an expression have.
enum RequiredParts {
    /// All matches are this text.
    Exact(String),
    /// All matches begin with this text, and end with it.
    Ends(String),
    /// Each match has one of these; none: nothing is known.
    Any(Vec<String>),
}

impl RequiredParts {
    const UNKNOWN: RequiredParts = RequiredParts::Any(Vec::new());

    fn find(hir: &Hir) -> RequiredParts {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => RequiredParts::Exact(String::new()),
            HirKind::Literal(literal) => match str::from_utf8(&literal.0) {
                Ok(text) if fold(text) == text => RequiredParts::Exact(text.to_string()),
                _ => RequiredParts::UNKNOWN,
            },
            HirKind::Class(class) => match common_form(class) {
                Some(letter) => RequiredParts::Exact(letter),
                None => RequiredParts::UNKNOWN,
            },
            HirKind::Repetition(repetition) if repetition.min == 0 => RequiredParts::UNKNOWN,
            HirKind::Repetition(repetition) => match RequiredParts::find(&repetition.sub) {
                one if repetition.max == Some(1) => one,
                RequiredParts::Exact(text) => RequiredParts::Ends(text),
                other => other,
            },
            HirKind::Capture(capture) => RequiredParts::find(&capture.sub),
            HirKind::Concat(subs) => RequiredParts::join_sequence(subs),
            HirKind::Alternation(subs) => {
                let mut parts = Vec::new();
                for sub in subs {
                    let more = RequiredParts::find(sub).into_parts();
                    if more.is_empty() || parts.len() + more.len() > MAX_PARTS {
                        return RequiredParts::UNKNOWN;
                    }
                    parts.extend(more);
                }
                RequiredParts::Any(parts)
            }
        }
    }

    /// Joins the texts of neighbours, and chooses the longest.
    fn join_sequence(subs: &[Hir]) -> RequiredParts {
        let (mut best, mut text) = (Vec::new(), String::new());
        let mut is_exact = true;
        for sub in subs {
            match RequiredParts::find(sub) {
                RequiredParts::Exact(more) if text.len() + more.len() <= MAX_PART_BYTES => {
                    text.push_str(&more);
                }
                RequiredParts::Ends(more) if text.len() + more.len() <= MAX_PART_BYTES => {
                    is_exact = false;
                    text.push_str(&more);
                    choose_longer(&mut best, vec![std::mem::replace(&mut text, more)]);
                }
                other => {
                    is_exact = false;
                    choose_longer(&mut best, vec![std::mem::take(&mut text)]);
                    choose_longer(&mut best, other.into_parts());
                }
            }
        }
        if is_exact {
            return RequiredParts::Exact(text);
        }
        choose_longer(&mut best, vec![text]);
        RequiredParts::Any(best)
    }

    fn into_parts(self) -> Vec<String> {
        match self {
            RequiredParts::Exact(text) | RequiredParts::Ends(text) => match text.as_str() {
                "" => Vec::new(),
                _ => vec![text],
            },
            RequiredParts::Any(parts) => parts,
        }
    }
}

/// Replaces the best parts if others are longer.
fn choose_longer(best: &mut Vec<String>, parts: Vec<String>) {
    let length = |parts: &[String]| parts.iter().map(String::len).min().unwrap_or_default();
    if length(&parts) > length(best) {
        *best = parts;
    }
}

/// Returns the letter of which all characters of a class are forms: only that is in folded words.
fn common_form(class: &Class) -> Option<String> {
    let Class::Unicode(class) = class else { return None };
    let mut common = None;
    for c in class.iter().flat_map(|range| range.start()..=range.end()).take(MAX_FORMS + 1) {
        let mut bytes = [0; 4];
        let folded = fold(c.encode_utf8(&mut bytes)).into_owned();
        if common.get_or_insert_with(|| folded.clone()) != &folded {
            return None;
        }
    }
    let count: usize = class.iter().map(|range| range.len()).sum();
    common.filter(|_| count <= MAX_FORMS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{RegexPattern, fold_pattern};
    use proptest::prelude::*;

    #[test]
    fn parts_that_a_pattern_requires_are_found() {
        for (pattern, parts) in [
            ("frob.*", &["frob"][..]),
            ("Frob", &["frob"]),
            ("^per+f$", &["per"]),
            ("a.*bcd?e", &["bc"]),
            ("x*", &[]),
            ("x*?y", &["y"]),
            ("ab+c", &["ab"]),
            ("x(fro){2}bn", &["frobn"]),
            ("(ab)+", &["ab"]),
            ("abc|d", &["abc", "d"]),
            ("frob(nitzel|s)", &["frob"]),
            ("(abc)?de", &["de"]),
            ("abc[d]", &["abcd"]),
            ("ab[cd]efg", &["efg"]),
            ("abc{0}", &["ab"]),
            ("(?-i)abC", &[]),
            ("\\bfrob", &["frob"]),
            ("caf\u{e9}s", &["cafes"]),
            ("\u{416}\u{443}\u{43a}.", &["\u{436}\u{443}\u{43a}"]),
            ("a(b(c", &[]),
            (".", &[]),
            ("", &[]),
        ] {
            assert_eq!(find_required_parts(&fold_pattern(pattern)), parts, "{pattern}");
        }
        let many: Vec<String> = (b'a'..=b'z').map(|c| format!("{}word", c as char)).collect();
        assert_eq!(find_required_parts(&many.join("|")), [""; 0]);
        let long = find_required_parts(&fold_pattern(&"abcdefgh".repeat(100)));
        assert_eq!(long, ["abcdefgh".repeat(8)]);
    }

    proptest! {
        #[test]
        fn each_word_that_matches_has_a_part(
            atoms in proptest::collection::vec(
                prop_oneof![
                    Just("a"), Just("B"), Just("k"), Just("s"), Just("\u{3c3}"), Just("\u{df}"),
                    Just("\u{416}"), Just("."), Just("[ab]"), Just("(ab|k)"), Just("a?"),
                    Just("(bs)*"), Just("s+"), Just("(?:a|s){2}"), Just("|"), Just("^"), Just("$"),
                ],
                1..7,
            ),
            words in proptest::collection::vec("[abksK\u{17f}\u{3c3}\u{3c2}\u{df}\u{416}]{0,8}", 20),
        ) {
            let pattern = atoms.concat();
            let parts = find_required_parts(&fold_pattern(&pattern));
            let compiled = RegexPattern::compile_folded(&pattern).unwrap();
            for word in words {
                let word = fold(&word);
                let has_part = parts.iter().any(|part| word.contains(part.as_str()));
                prop_assert!(
                    !compiled.is_match(&word) || parts.is_empty() || has_part,
                    "{pattern}: {word}, {parts:?}"
                );
            }
        }
    }
}
