//! Folding of text for comparison: texts that people regard as equal become equal.
//!
//! Folding removes case, accents, Hebrew points, Arabic vowel signs, and characters that are not
//! seen, such as soft hyphens and joiners. Digits of all scripts become ASCII, full-width letters
//! and half-width kana usual ones. It keeps letters distinct: が differs from か, because its mark
//! makes another letter. Folded text is neither for display nor for sorting (see
//! [`collate`](crate::collate)). This module also splits folded text into words and extracts the
//! digits of a number.

use icu_casemap::CaseMapper;
use icu_normalizer::properties::CanonicalCombiningClassMap;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// The version of the rules in this module. The version is stored with folded text. When the
/// version, or the Unicode version of the tables, changes, stored text is folded again.
pub const FOLD_VERSION: u32 = 3;

/// Folds a text: the usual forms of full-width and half-width characters, canonical decomposition,
/// removal of marks and of default ignorable code points, digits as ASCII, full case folding with
/// all forms of i alike, canonical composition. White space is kept. Folding is idempotent.
///
/// NUL, U+FFFE and U+FFFF are removed, because they are not text and full-text indexes treat them
/// specially.
#[must_use]
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        let has_nul = memchr::memchr(0, text.as_bytes()).is_some();
        return match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            _ if has_nul => Cow::Owned(text.to_ascii_lowercase().replace('\0', "")),
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        };
    }
    match fold_fast(text) {
        Some(folded) if folded == text => Cow::Borrowed(text),
        Some(folded) => Cow::Owned(folded),
        None => fold_unicode(text),
    }
}

/// Folds by the Unicode tables: correct for any text.
fn fold_unicode(text: &str) -> Cow<'_, str> {
    let usual = to_usual_width(text);
    let decompose = DecomposingNormalizerBorrowed::new_nfd();
    let without_marks: String = decompose
        .normalize_iter(usual.chars())
        .filter(|c| !is_dropped(*c))
        .map(normalise_char)
        .collect();
    let folded = CaseMapper::new().fold_string(&without_marks);
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(&folded);
    if composed == text { Cow::Borrowed(text) } else { Cow::Owned(composed.into_owned()) }
}

/// Returns a text whose full-width letters, digits and signs, half-width kana and half-width Hangul
/// are the usual ones.
fn to_usual_width(text: &str) -> Cow<'_, str> {
    let has_form = |c: char| matches!(c, '\u{ff00}'..='\u{ffef}');
    if !text.contains(has_form) {
        return Cow::Borrowed(text);
    }
    let decompose = DecomposingNormalizerBorrowed::new_nfkd();
    let (mut usual, mut buffer) = (String::with_capacity(text.len()), [0; 4]);
    for c in text.chars() {
        let one: &str = c.encode_utf8(&mut buffer);
        if has_form(c) { usual.push_str(&decompose.normalize(one)) } else { usual.push_str(one) }
    }
    Cow::Owned(usual)
}

/// Folds Latin, Greek and Cyrillic letters one by one, which is faster and covers most names:
/// without marks none of them combines with a neighbour. `None` if the text has other letters.
fn fold_fast(text: &str) -> Option<String> {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let plain = rest.bytes().position(|byte| !byte.is_ascii() || byte == 0);
        let (run, tail) = rest.split_at(plain.unwrap_or(rest.len()));
        let start = folded.len();
        folded.push_str(run);
        folded[start..].make_ascii_lowercase();
        let mut chars = tail.chars();
        match chars.next() {
            None => return Some(folded),
            Some('\0') => {}
            // Han characters have no case and no marks.
            Some(c @ '\u{4e00}'..='\u{9fff}') => folded.push(c),
            Some(c) => {
                let (first, second) = fold_letter(c)?;
                folded.extend(first);
                folded.extend(second);
            }
        }
        rest = chars.as_str();
    }
}

/// Cached folds of the letters before Armenian except Cyrillic marks: at most two characters, and a
/// bit that marks the entry as computed.
static FOLDED_LETTERS: [AtomicU64; 0x530] = [const { AtomicU64::new(0) }; 0x530];

fn fold_letter(c: char) -> Option<(Option<char>, Option<char>)> {
    const CACHED_BIT: u64 = 1 << 63;
    if matches!(c, '\u{483}'..='\u{489}') {
        return None;
    }
    let place = FOLDED_LETTERS.get(c as usize)?;
    let mut packed = place.load(Ordering::Relaxed);
    if packed == 0 {
        let mut buffer = [0; 4];
        let folded = fold_unicode(c.encode_utf8(&mut buffer)).into_owned();
        let mut chars = folded.chars().map(|c| u64::from(u32::from(c)));
        let (first, second) = (chars.next().unwrap_or(0), chars.next().unwrap_or(0));
        if chars.next().is_some() {
            return None;
        }
        packed = CACHED_BIT | second << 32 | first;
        place.store(packed, Ordering::Relaxed);
    }
    // No letter folds to NUL, which therefore stands for none.
    let unpack =
        |bits: u64| u32::try_from(bits).ok().and_then(char::from_u32).filter(|c| *c != '\0');
    Some((unpack(packed & 0xffff_ffff), unpack((packed & !CACHED_BIT) >> 32)))
}

/// Marks that do not make another letter: accents, Hebrew accents and points, Arabic vowel signs
/// and tatweel. Also NUL, which is not text.
fn is_dropped(c: char) -> bool {
    is_default_ignorable(c)
        || matches!(c,
        '\0'
        | '\u{300}'..='\u{36f}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}')
}

/// Returns whether a character has the property `Default_Ignorable_Code_Point` of Unicode: soft
/// hyphens, joiners, marks of direction, selectors of variants, fillers. Nothing of them is seen.
fn is_default_ignorable(c: char) -> bool {
    c >= '\u{ad}'
        && matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The dotless i equals i, like I and İ (whose dot is removed). A digit of any script is the ASCII
/// one. The last two code points of the basic plane are noncharacters and become U+FFFD.
fn normalise_char(c: char) -> char {
    match c {
        'ı' => 'i',
        c if c < '\u{660}' => c,
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c => to_ascii_digit(c).unwrap_or(c),
    }
}

/// Returns the words of folded text: runs of letters and digits of any script with their marks.
/// Everything else separates words: `o'brien` is two. In scripts without spaces between words
/// ([`is_cjk`]) each character is a word.
pub fn split_words(folded: &str) -> impl Iterator<Item = &str> {
    let mut rest = folded;
    std::iter::from_fn(move || {
        rest = skip_gap(rest);
        let first = rest.chars().next()?;
        let end = if is_cjk(first) { first.len_utf8() } else { find_word_end(rest) };
        let (word, tail) = rest.split_at(end);
        rest = tail;
        Some(word)
    })
}

/// Returns the text from its first letter or digit on.
fn skip_gap(text: &str) -> &str {
    let is_gap = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    let plain = text.bytes().take_while(is_gap).count();
    let rest = &text[plain..];
    match rest.as_bytes().first() {
        Some(byte) if !byte.is_ascii() => rest.trim_start_matches(|c| !is_letter_or_digit(c)),
        _ => rest,
    }
}

/// Returns the length of the word at the start of a text.
fn find_word_end(text: &str) -> usize {
    let plain = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let rest = &text[plain..];
    match rest.as_bytes().first() {
        Some(byte) if !byte.is_ascii() => {
            rest.find(|c: char| is_cjk(c) || !is_in_word(c)).map_or(text.len(), |tail| plain + tail)
        }
        _ => plain,
    }
}

/// Returns whether a character is a letter, a digit, or a mark on one.
fn is_in_word(c: char) -> bool {
    // Signs of Thai, Lao and Khmer have no combining class.
    const SIGNS: [RangeInclusive<char>; 4] = [
        '\u{e47}'..='\u{e47}',
        '\u{e4c}'..='\u{e4e}',
        '\u{ecc}'..='\u{ece}',
        '\u{17c9}'..='\u{17d3}',
    ];
    is_letter_or_digit(c)
        || (!c.is_ascii()
            && (CanonicalCombiningClassMap::new().get32_u8(u32::from(c)) != 0
                || SIGNS.iter().any(|signs| signs.contains(&c))))
}

/// Returns whether a character is a letter or a digit of any script. The standard library searches
/// its tables for each, so the commonest ones are decided here.
fn is_letter_or_digit(c: char) -> bool {
    match c {
        '\u{d7}' | '\u{f7}' | '\u{2010}'..='\u{2064}' | '\u{3000}'..='\u{3004}' => false,
        '\u{c0}'..='\u{24f}'
        | '\u{400}'..='\u{481}'
        | '\u{48a}'..='\u{52f}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => true,
        c => c.is_alphanumeric(),
    }
}

/// Returns whether a character belongs to a script that is written without spaces between words or
/// within names (Han, kana, Hangul, Bopomofo). Each such character is a word.
#[must_use]
pub fn is_cjk(c: char) -> bool {
    c >= '\u{1100}'
        && matches!(c,
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}'
        | '\u{3041}'..='\u{30fa}'
        | '\u{30fc}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{1aff0}'..='\u{1b2ff}'
        | '\u{20000}'..='\u{3fffd}')
}

/// Returns whether a character is of a script that is written without spaces between words: those
/// of [`is_cjk`], Thai, Lao, Burmese, Khmer.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    c >= '\u{e01}'
        && (is_cjk(c)
            || matches!(c,
            '\u{e01}'..='\u{e4e}'
            | '\u{e81}'..='\u{ece}' | '\u{edc}'..='\u{edf}'
            | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109d}'
            | '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}'..='\u{17dd}'
            | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}' | '\u{aa60}'..='\u{aa7f}'))
}

/// The zeros of the scripts with digits of their own; nine digits follow each.
const SCRIPT_ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650,
    0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16b50, 0x1d7ce,
    0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e950, 0x1fbf0,
];

/// Returns the digits of a text, of any script, as ASCII, without anything else such as a plus
/// sign.
#[must_use]
pub fn collect_digits(text: &str) -> String {
    text.chars().filter_map(to_ascii_digit).collect()
}

fn to_ascii_digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return c.is_ascii_digit().then_some(c);
    }
    let code = u32::from(c);
    let zero = SCRIPT_ZEROS[..SCRIPT_ZEROS.partition_point(|zero| *zero <= code)].last()?;
    char::from_digit(code - zero, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_are_those_of_unicode() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_letter_or_digit(c), c.is_alphanumeric(), "{c:?}");
        }
    }

    /// Each letter folds as the Unicode tables say, alone and beside each kind of neighbour.
    #[test]
    fn letters_and_rules_agree() {
        let neighbours =
            ["", "a", "ß", "İ", "σ", "ς", "й", "е\u{308}", "\u{345}", "\u{301}", "王", "\0", "ŉ"];
        for c in (0..0x530).chain(0x4e00..0x4e10).filter_map(char::from_u32) {
            for other in neighbours {
                for text in [format!("{c}{other}"), format!("{other}{c}"), format!("{c}{other}{c}")]
                {
                    if let Some(folded) = fold_fast(&text) {
                        assert_eq!(folded, fold_unicode(&text), "{text:?}");
                    } else {
                        assert!(
                            matches!(c, '\u{483}'..='\u{489}')
                                || c as u32 == 0x390
                                || c as u32 == 0x3b0,
                            "{c:?}"
                        );
                    }
                }
            }
        }
    }
}
