//! The context of a phrase: the present moment and the language, and how words are matched in it.
//!
//! Every parser of the grammar gets it. A parser whose name begins with `match_` looks at the first
//! words of a list, changes nothing, and returns how many words it matched and what they mean.

use crate::error::PhraseError;
use crate::folding::is_form;
use crate::language::Language;
use crate::tokens::{PhraseToken, first_word, skip_tokens};
use crate::vocabulary::WordMeaning;
use larder_time::civil::CivilTime;

/// The result of a parser: no match; the number of words matched and their meaning; or an error,
/// where words name a date or time that does not exist.
pub(crate) type ParseResult<T> = Result<Option<(usize, T)>, PhraseError>;

/// The present moment and the language of a phrase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhraseContext {
    /// The present moment.
    pub(crate) now: CivilTime,
    /// The next date is searched from here on: the present moment, or the start of a range for its
    /// end.
    pub(crate) base: CivilTime,
    /// Distances such as `+2w` count from here.
    pub(crate) offset: CivilTime,
    /// `base` and `offset` do not depend on the present moment.
    pub(crate) is_fixed: bool,
    pub(crate) language: Language,
}

impl PhraseContext {
    pub(crate) fn new(now: CivilTime, language: Language) -> PhraseContext {
        PhraseContext { now, base: now, offset: now, is_fixed: false, language }
    }

    /// Returns how many words at the beginning have a meaning, in the language or in English.
    pub(crate) fn match_meaning(
        &self,
        words: &[PhraseToken],
        meaning: WordMeaning,
    ) -> Option<usize> {
        let forms = self.language.vocabularies().flat_map(|vocabulary| vocabulary.forms(meaning));
        forms.filter_map(|form| match_form(words, form)).max()
    }

    /// Like [`match_meaning`](Self::match_meaning), in the language alone.
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

    /// Matches a number in words, "two" to "twelve".
    pub(crate) fn match_number(&self, words: &[PhraseToken]) -> Option<(usize, i64)> {
        let text = first_word(words)?;
        self.language.vocabularies().find_map(|vocabulary| {
            let mut names = vocabulary.forms(WordMeaning::Numbers).iter();
            let named = |name: &&str| name.split('/').any(|form| is_form(form, text));
            names.position(named).map(|place| (1, place as i64 + 2))
        })
    }

    /// Skips the words that have a meaning, if there are any.
    pub(crate) fn skip_meaning<'w, 'a>(
        &self,
        words: &'w [PhraseToken<'a>],
        meaning: WordMeaning,
    ) -> &'w [PhraseToken<'a>] {
        skip_tokens(words, self.match_meaning(words, meaning).unwrap_or(0))
    }
}

/// Returns how many words a form has if the list begins with it. A stop ends the match, because no
/// form continues after one.
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
