//! What the grammar works on: words, the moment they are said at, and how a word is known.
//!
//! A reader is a function that looks at the beginning of a list of words and says how many of them it understands,
//! and as what; it changes nothing. `date`, `clock`, `length` and
//! `repeat` are made of readers.

use crate::error::excerpt;
use crate::folding::fold;

/// A word.
#[derive(Debug, Clone)]
pub(crate) struct PhraseToken<'a> {
    /// As it was typed, without quotes.
    pub(crate) text: &'a str,
    /// As it is compared: folded, and without the punctuation behind it (but with a dot).
    pub(crate) folded: String,
    /// In quotes: it is never understood.
    pub(crate) is_quoted: bool,
    /// Punctuation follows that divides a sentence.
    pub(crate) has_stop: bool,
}

impl<'a> PhraseToken<'a> {
    pub(crate) fn new(text: &'a str) -> PhraseToken<'a> {
        let bare = text.trim_end_matches([',', ';', ':', '!', '?']);
        let bare = if bare.is_empty() { text } else { bare };
        let has_stop = bare.len() < text.len();
        PhraseToken { text, folded: fold(bare), is_quoted: false, has_stop }
    }

    pub(crate) fn new_quoted(text: &'a str) -> PhraseToken<'a> {
        PhraseToken { text, folded: String::new(), is_quoted: true, has_stop: true }
    }

    /// The words of a text in which nothing is quoted.
    pub(crate) fn tokenize(text: &'a str) -> Vec<PhraseToken<'a>> {
        text.split_whitespace().map(PhraseToken::new).collect()
    }
}

/// The words behind the first so many.
pub(crate) fn skip_tokens<'w, 'a>(
    words: &'w [PhraseToken<'a>],
    used: usize,
) -> &'w [PhraseToken<'a>] {
    words.get(used..).unwrap_or_default()
}

/// The first word, unless it is quoted.
pub(crate) fn first_word<'w>(words: &'w [PhraseToken]) -> Option<&'w str> {
    words.first().filter(|word| !word.is_quoted).map(|word| word.folded.as_str())
}

/// So many digits at most, and nothing else.
pub(crate) fn parse_number(text: &str, digits: usize) -> Option<i64> {
    let plain =
        !text.is_empty() && text.len() <= digits && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// The words as they were typed, for messages.
pub(crate) fn source_text(words: &[PhraseToken], used: usize) -> String {
    let texts: Vec<&str> = words.iter().take(used).map(|word| word.text).collect();
    excerpt(&texts.join(" "))
}
