//! The context.

use crate::error::PhraseError;
use crate::folding::is_form;
use crate::language::Language;
use crate::tokens::{PhraseToken, first_word, skip_tokens};
use crate::vocabulary::WordMeaning;
use larder_time::civil::Civil;

/// What a reader says: nothing, so many words and what they mean, or that they mean what cannot be.
pub(crate) type ParseResult<T> = Result<Option<(usize, T)>, PhraseError>;

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
    pub(crate) fn match_meaning(
        &self,
        words: &[PhraseToken],
        meaning: WordMeaning,
    ) -> Option<usize> {
        let forms = self.language.vocabularies().flat_map(|vocabulary| vocabulary.forms(meaning));
        forms.filter_map(|form| match_form(words, form)).max()
    }

    /// As [`Context::term`], in the language alone.
    pub(crate) fn match_own_meaning(
        &self,
        words: &[PhraseToken],
        meaning: WordMeaning,
    ) -> Option<usize> {
        self.language
            .vocabulary()
            .forms(meaning)
            .iter()
            .filter_map(|form| match_form(words, form))
            .max()
    }

    /// A number in a word, "two" to "twelve".
    pub(crate) fn match_number(&self, words: &[PhraseToken]) -> Option<(usize, i64)> {
        let text = first_word(words)?;
        self.language.vocabularies().find_map(|vocabulary| {
            let mut names = vocabulary.forms(WordMeaning::Numbers).iter();
            let named = |name: &&str| name.split('/').any(|form| is_form(form, text));
            names.position(named).map(|place| (1, place as i64 + 2))
        })
    }

    /// As many words as have this meaning, which may be none.
    pub(crate) fn skip_meaning<'w, 'a>(
        &self,
        words: &'w [PhraseToken<'a>],
        meaning: WordMeaning,
    ) -> &'w [PhraseToken<'a>] {
        skip_tokens(words, self.match_meaning(words, meaning).unwrap_or(0))
    }
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
