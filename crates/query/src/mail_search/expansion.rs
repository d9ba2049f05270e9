//! Parts of words: the words that have them, and the messages with these words.
//!
//! The words of text are found in the dictionary, which is small. The words of a header field are
//! found among its terms, which are few. Separate from `compilation`, where all words are known.

use super::MailSearch;
use super::block_test::{BlockTest, PositionTest, WordAlternatives, WordRelation};
use super::pattern_parts::find_required_parts;
use super::row_origin::RowOrigin;
use crate::error::{Error, SyntaxError};
use crate::pattern::{RegexPattern, fold_pattern};
use larder_store::{MessageTermField, WordPart, write_message_term};
use std::ops::Range;

/// The most words of which one may be a part that is searched.
const MAX_EXPANDED_TERMS: usize = 10_000;
/// The bytes of the dictionary that are read and searched in one unit of work, a nanosecond: one
/// pass finds the words with any of the parts.
const BYTES_PER_UNIT: u64 = 4;
/// The work of testing a word, and of looking up the rows of one.
const WORK_PER_WORD: u64 = 20;
const WORK_PER_PATTERN: u64 = 200;
pub(super) const WORK_PER_LOOKUP: u64 = 3000;
/// The work of reading the positions of a word in one message.
const WORK_PER_MESSAGE: u64 = 300;

/// A test of words: it stands for all that pass.
pub(super) struct WordExpansion<'e> {
    /// The text of the test, for errors.
    text: String,
    part: ExpandedPart<'e>,
}

enum ExpandedPart<'e> {
    Start(&'e str),
    Inside(&'e str),
    End(&'e str),
    /// Words that match a pattern, and the texts of which they have one; none: none are known.
    Pattern(RegexPattern, Vec<String>),
}

impl<'e> WordExpansion<'e> {
    /// Words that begin with a folded text.
    pub(super) fn with_start(start: &'e str) -> WordExpansion<'e> {
        WordExpansion { text: format!("{start}*"), part: ExpandedPart::Start(start) }
    }

    /// Words with a folded text anywhere.
    pub(super) fn with_part(part: &'e str) -> WordExpansion<'e> {
        WordExpansion { text: format!("*{part}*"), part: ExpandedPart::Inside(part) }
    }

    /// Words that end with a folded text.
    pub(super) fn with_end(end: &'e str) -> WordExpansion<'e> {
        WordExpansion { text: format!("*{end}"), part: ExpandedPart::End(end) }
    }

    /// Words that match a pattern with this text.
    pub(super) fn from_pattern(text: &str, pattern: RegexPattern) -> WordExpansion<'e> {
        WordExpansion {
            text: format!("/{text}/"),
            part: ExpandedPart::Pattern(pattern, find_required_parts(&fold_pattern(text))),
        }
    }

    fn is_match(&self, word: &str) -> bool {
        match &self.part {
            ExpandedPart::Start(start) => word.starts_with(start),
            ExpandedPart::Inside(part) => word.contains(part),
            ExpandedPart::End(end) => word.ends_with(end),
            ExpandedPart::Pattern(pattern, _) => pattern.is_match(word),
        }
    }

    /// Returns the parts of which a word of the dictionary must have one; `None`: the words are a
    /// range of the terms.
    fn dictionary_parts(&self) -> Option<Vec<WordPart<'_>>> {
        match &self.part {
            ExpandedPart::Start(_) => None,
            ExpandedPart::Inside(part) => Some(vec![WordPart::Inside(part.as_bytes())]),
            ExpandedPart::End(end) => Some(vec![WordPart::End(end.as_bytes())]),
            ExpandedPart::Pattern(_, texts) if texts.is_empty() => Some(vec![WordPart::Any]),
            ExpandedPart::Pattern(_, texts) => {
                Some(texts.iter().map(|text| WordPart::Inside(text.as_bytes())).collect())
            }
        }
    }

    /// Returns where the words that pass are looked up in a field.
    fn row_origin(&self, field: MessageTermField) -> RowOrigin {
        match (&self.part, field) {
            (ExpandedPart::Start(_), _) => RowOrigin::TermRange,
            (_, MessageTermField::Text) => RowOrigin::Dictionary,
            _ => RowOrigin::FieldTerms,
        }
    }

    fn work_per_word(&self) -> u64 {
        match &self.part {
            ExpandedPart::Pattern(..) => WORK_PER_PATTERN,
            _ => WORK_PER_WORD,
        }
    }
}

impl MailSearch<'_> {
    /// Compiles a phrase whose last word is any that passes.
    pub(super) fn compile_expansion(
        &self,
        field: MessageTermField,
        range: Option<&Range<u32>>,
        words: &[(String, u32)],
        last: &WordExpansion<'_>,
    ) -> Result<BlockTest, Error> {
        let terms = self.expand(field, last)?;
        if words.is_empty() {
            return match range {
                None => {
                    let mut rows = Vec::new();
                    self.words.rows_with_terms(&terms, &mut rows)?;
                    Ok(BlockTest::Rows(rows, last.row_origin(field)))
                }
                Some(range) => self.rows_in_positions(field, &terms, range, last),
            };
        }
        if terms.len() > MAX_EXPANDED_TERMS {
            let message = format!("more than {MAX_EXPANDED_TERMS} words match {}", last.text);
            let hint = Some("use more letters".into());
            return Err(SyntaxError { message, at: 1, hint }.into());
        }
        let after = words.last().map_or(0, |(_, at)| at + 1);
        let single = words.iter().map(|(word, at)| (self.single_word(field, word), *at));
        let any = terms.iter().map(|term| self.words.cursor(term)).collect();
        let words = single.chain([(WordAlternatives::new(any), after)]).collect();
        let (relation, range) = (WordRelation::Phrase, range.cloned());
        Ok(BlockTest::Positions(PositionTest { words, relation, range }))
    }

    /// Returns the values of a field that has whole ones, those of former messages included.
    pub(super) fn expand_values(&self, field: MessageTermField) -> Result<Vec<String>, Error> {
        let terms = self.expand(field, &WordExpansion::with_start(""))?;
        let value = |term: &Vec<u8>| str::from_utf8(term.get(1..)?).ok().map(str::to_string);
        Ok(terms.iter().filter_map(value).collect())
    }

    /// Returns the terms of a field that an expansion stands for, ascending.
    fn expand(
        &self,
        field: MessageTermField,
        expansion: &WordExpansion<'_>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut terms: Vec<Vec<u8>> = Vec::new();
        // The words that pass are not kept beyond the budget.
        let most = self.budget.remaining_work();
        self.mail.expect_large_read();
        let mut work: u64 = 0;
        if field == MessageTermField::Text
            && let Some(parts) = expansion.dictionary_parts()
        {
            let bytes = self.words.for_each_text_word(&parts, &mut |word| {
                work += expansion.work_per_word();
                let is_match = |word| expansion.is_match(word);
                if work <= most && str::from_utf8(word).is_ok_and(is_match) {
                    work += WORK_PER_LOOKUP;
                    terms.push([&[field as u8], word].concat());
                }
            })?;
            work += bytes / BYTES_PER_UNIT;
        } else {
            let start = match expansion.part {
                ExpandedPart::Start(start) => start,
                _ => "",
            };
            let prefix = word_term(field, start);
            self.words.for_each_term(&prefix, &mut |term, count| {
                work += expansion.work_per_word() + count;
                let is_inside = term.starts_with(&prefix) && work <= most;
                let word = term.get(1..).and_then(|word| str::from_utf8(word).ok());
                if is_inside && word.is_some_and(|word| expansion.is_match(word)) {
                    work += WORK_PER_LOOKUP;
                    terms.push(term.to_vec());
                }
                is_inside
            })?;
        }
        self.budget.spend(work, || expansion.text.clone())?;
        // Each segment has its words, and a word may have several of the parts.
        terms.sort_unstable();
        terms.dedup();
        Ok(terms)
    }

    /// Returns the rows that have any of the terms at a position in this range.
    fn rows_in_positions(
        &self,
        field: MessageTermField,
        terms: &[Vec<u8>],
        range: &Range<u32>,
        expansion: &WordExpansion<'_>,
    ) -> Result<BlockTest, Error> {
        let end_row = self.mail.end_row()?;
        let mut found = vec![0_u64; end_row.div_ceil(64) as usize];
        let mut positions = Vec::new();
        for term in terms {
            let mut rows = Vec::new();
            self.words.rows_with_term(term, &mut rows)?;
            let mut cursor = self.words.cursor(term);
            for (at, (bits, found)) in rows.iter().zip(&mut found).enumerate() {
                // Rows that another term has found need no look at their positions.
                let mut open = bits & !*found;
                let work = u64::from(open.count_ones()) * WORK_PER_MESSAGE;
                self.budget.spend(work, || expansion.text.clone())?;
                while open != 0 {
                    let bit = open.trailing_zeros();
                    open &= open - 1;
                    let row = u32::try_from(at * 64).unwrap_or(u32::MAX).saturating_add(bit);
                    if self.words.positions(&mut cursor, row, &mut positions)?
                        && positions.iter().any(|position| range.contains(position))
                    {
                        *found |= 1 << bit;
                    }
                }
            }
        }
        Ok(BlockTest::Rows(found, expansion.row_origin(field)))
    }
}

/// Returns the term of a folded word in a field.
pub(super) fn word_term(field: MessageTermField, word: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(word.len() + 1);
    write_message_term(&mut term, field, word);
    term
}
