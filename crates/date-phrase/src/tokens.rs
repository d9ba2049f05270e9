//! Tokens: the words of a text as the grammar compares them.

use crate::error::excerpt;
use crate::folding::fold;

/// A word of the input.
#[derive(Debug, Clone)]
pub(crate) struct PhraseToken<'a> {
    /// The word as it was typed, without quotes.
    pub(crate) text: &'a str,
    /// The word as it is compared: folded, and without punctuation after it other than a dot.
    pub(crate) folded: String,
    /// The word was in quotes, so it is never part of a phrase.
    pub(crate) is_quoted: bool,
    /// Punctuation follows that ends a phrase.
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

    /// Splits a text without quotes into words.
    pub(crate) fn tokenize(text: &'a str) -> Vec<PhraseToken<'a>> {
        text.split_whitespace().map(PhraseToken::new).collect()
    }
}

/// Returns the words after the first `used`.
pub(crate) fn skip_tokens<'w, 'a>(
    words: &'w [PhraseToken<'a>],
    used: usize,
) -> &'w [PhraseToken<'a>] {
    words.get(used..).unwrap_or_default()
}

/// Returns the first word, unless it is quoted.
pub(crate) fn first_word<'w>(words: &'w [PhraseToken]) -> Option<&'w str> {
    words.first().filter(|word| !word.is_quoted).map(|word| word.folded.as_str())
}

/// Parses a text of digits, at most a given number of them.
pub(crate) fn parse_number(text: &str, digits: usize) -> Option<i64> {
    let plain =
        !text.is_empty() && text.len() <= digits && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Returns the words as they were typed, for messages.
pub(crate) fn source_text(words: &[PhraseToken], used: usize) -> String {
    let texts: Vec<&str> = words.iter().take(used).map(|word| word.text).collect();
    excerpt(&texts.join(" "))
}
