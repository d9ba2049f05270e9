//! What the grammar works on: words, the moment they are said at, and how a word is known.
//!
//! A reader is a function that looks at the beginning of a list of words and says how many of them it understands,
//! and as what; it changes nothing. `date`, `clock`, `length` and
//! `repeat` are made of readers.

use super::folding::{fold, is_form};
use super::language::Language;
use super::vocabulary::WordMeaning;
use super::{ExpectedPhrase, PhraseError};
use larder_time::civil::Civil;

/// What a reader says: nothing, so many words and what they mean, or that they mean what cannot be.
pub(crate) type ParseResult<T> = Result<Option<(usize, T)>, PhraseError>;

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

/// When and by whom something is said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhraseContext {
    /// The moment it is said at.
    pub(crate) now: Civil,
    /// From when on "the next such date" is looked for: now, or the beginning of a range for its end.
    pub(crate) base: Civil,
    /// What `+2w` counts from.
    pub(crate) offset: Civil,
    /// Base and offset do not depend on now.
    pub(crate) is_fixed: bool,
    pub(crate) language: Language,
}

impl PhraseContext {
    pub(crate) fn new(now: Civil, language: Language) -> PhraseContext {
        PhraseContext { now, base: now, offset: now, is_fixed: false, language }
    }

    /// How many words at the beginning have this meaning, in the language or in English.
    pub(crate) fn match_meaning(&self, words: &[PhraseToken], term: WordMeaning) -> Option<usize> {
        let forms = self.language.vocabularies().flat_map(|table| table.forms(term));
        forms.filter_map(|form| match_form(words, form)).max()
    }

    /// As [`Context::term`], in the language alone.
    pub(crate) fn match_own_meaning(
        &self,
        words: &[PhraseToken],
        term: WordMeaning,
    ) -> Option<usize> {
        self.language
            .vocabulary()
            .forms(term)
            .iter()
            .filter_map(|form| match_form(words, form))
            .max()
    }

    /// A number in a word, "two" to "twelve".
    pub(crate) fn match_number(&self, words: &[PhraseToken]) -> Option<(usize, i64)> {
        let text = first_word(words)?;
        self.language.vocabularies().find_map(|table| {
            let mut names = table.forms(WordMeaning::Numbers).iter();
            let named = |name: &&str| name.split('/').any(|form| is_form(form, text));
            names.position(named).map(|place| (1, place as i64 + 2))
        })
    }

    /// As many words as have this meaning, which may be none.
    pub(crate) fn skip_meaning<'w, 'a>(
        &self,
        words: &'w [PhraseToken<'a>],
        term: WordMeaning,
    ) -> &'w [PhraseToken<'a>] {
        skip_tokens(words, self.match_meaning(words, term).unwrap_or(0))
    }
}

/// The words behind the first so many.
pub(crate) fn skip_tokens<'w, 'a>(
    words: &'w [PhraseToken<'a>],
    used: usize,
) -> &'w [PhraseToken<'a>] {
    words.get(used..).unwrap_or_default()
}

/// How many words a form takes, if they begin with it. No stop is inside of a phrase.
fn match_form(words: &[PhraseToken], form: &str) -> Option<usize> {
    let mut used = 0;
    for part in form.split(' ') {
        let word = words.get(used)?;
        if word.is_quoted || !is_form(part, &word.folded) {
            return None;
        }
        used += 1;
        if word.has_stop && used < form.split(' ').count() {
            return None;
        }
    }
    Some(used)
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

/// The first hundred characters of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The words as they were typed, for messages.
pub(crate) fn source_text(words: &[PhraseToken], used: usize) -> String {
    let texts: Vec<&str> = words.iter().take(used).map(|word| word.text).collect();
    excerpt(&texts.join(" "))
}

/// A text that is not understood.
pub(crate) fn not_understood(text: &str, expected: ExpectedPhrase) -> PhraseError {
    PhraseError::NotUnderstood { text: excerpt(text), expected }
}
