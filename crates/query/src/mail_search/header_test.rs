//! Tests of headers: each value of a header is a term, and is tested once.
//!
//! Separate from `compilation`, whose terms are single words. The number of terms is the number of
//! different values of the header, so that the work does not grow with the messages that have them.

use super::MailSearch;
use super::block_test::BlockTest;
use super::compilation::{compile_pattern, is_single_unspaced, query_words};
use super::expansion::{WORK_PER_LOOKUP, word_term};
use super::row_origin::RowOrigin;
use crate::error::{Error, SyntaxError};
use crate::mail_query::{HeaderTest, MailQuery, MailTextFields, TextMatch, TextTest};
use crate::pattern::RegexPattern;
use crate::query::Comparison;
use larder_format::fold::fold;
use larder_store::MessageTermField;
use larder_store::header_term::{NAME_END, has_indexed_values, header_value};
use larder_store::tokenizer::{Tokenizer, is_joiner};

/// The work of testing a value of a header, and of reading the number of its messages.
const WORK_PER_VALUE: u64 = 1000;

/// The compiled test of one value.
enum ValueTest {
    /// Words in sequence; the last may be the beginning of one.
    Words {
        words: Vec<(String, u32)>,
        is_prefix: bool,
    },
    /// A part of the folded value.
    Part(String),
    Pattern(RegexPattern),
    Compare(Comparison, f64),
}

impl MailSearch<'_> {
    /// Compiles the test of a header. Headers that have fields of their own are tested by these.
    pub(super) fn compile_header(&self, name: &str, test: &HeaderTest) -> Result<BlockTest, Error> {
        let prefix = word_term(MessageTermField::Header, &format!("{name}{NAME_END}"));
        let value_test = match test {
            HeaderTest::Exists => {
                let mut rows = Vec::new();
                self.words.rows_with_prefix(&prefix, &mut rows)?;
                return Ok(BlockTest::Rows(rows, RowOrigin::HeaderValues));
            }
            _ if !has_indexed_values(name) => return self.compile_named_field(name, test),
            HeaderTest::Contains(text) => ValueTest::of_text(text),
            HeaderTest::Pattern(text) => ValueTest::Pattern(compile_pattern(text)?),
            HeaderTest::Compare(comparison, number) => ValueTest::Compare(*comparison, *number),
        };
        let terms = self.matching_values(name, &prefix, &value_test)?;
        let lookups = terms.len() as u64 * WORK_PER_LOOKUP;
        self.budget.spend(lookups, || format!("header:{name}"))?;
        let mut rows = Vec::new();
        self.words.rows_with_terms(&terms, &mut rows)?;
        Ok(BlockTest::Rows(rows, RowOrigin::HeaderValues))
    }

    /// Returns the terms of the values that pass.
    fn matching_values(
        &self,
        name: &str,
        prefix: &[u8],
        test: &ValueTest,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut terms: Vec<Vec<u8>> = Vec::new();
        let mut spent = Ok(());
        self.words.for_each_term(prefix, &mut |term, count| {
            if !term.starts_with(prefix) || spent.is_err() {
                return false;
            }
            spent = self.budget.spend(WORK_PER_VALUE + count, || format!("header:{name}"));
            let text = term.get(1..).and_then(|text| str::from_utf8(text).ok());
            let value = text.and_then(|text| header_value(text, name));
            if value.is_some_and(|value| test.passes(value)) {
                terms.push(term.to_vec());
            }
            true
        })?;
        spent?;
        // Each segment has its terms.
        terms.sort_unstable();
        terms.dedup();
        Ok(terms)
    }

    /// Compiles the test of a header whose values are not among the terms of headers.
    fn compile_named_field(&self, name: &str, test: &HeaderTest) -> Result<BlockTest, Error> {
        let fields = match name {
            "from" => Some(MailTextFields::FROM),
            "to" => Some(MailTextFields::TO),
            "cc" => Some(MailTextFields::CC),
            "bcc" => Some(MailTextFields::BCC),
            "subject" => Some(MailTextFields::SUBJECT),
            _ => None,
        };
        match (name, test, fields) {
            (_, HeaderTest::Contains(text), Some(fields)) => {
                let text = text_match(text);
                self.compile(&MailQuery::Text(TextTest { fields, text }))
            }
            (_, HeaderTest::Pattern(text), Some(fields)) => {
                let text = TextMatch::Pattern(text.clone());
                self.compile(&MailQuery::Text(TextTest { fields, text }))
            }
            ("message-id" | "references" | "in-reply-to", HeaderTest::Pattern(text), _) => {
                self.compile_id_pattern(name, text)
            }
            ("message-id", HeaderTest::Contains(id), _) => {
                self.compile(&MailQuery::MessageId(id.trim_matches(['<', '>']).to_string()))
            }
            ("references" | "in-reply-to", HeaderTest::Contains(id), _) => {
                self.compile(&MailQuery::Reference(id.trim_matches(['<', '>']).to_string()))
            }
            _ => {
                let message = format!("the values of the header {name} are not indexed");
                let hint = match name {
                    "date" => "date:2026-03.. is a range of dates".to_string(),
                    _ => format!("header:{name} finds the messages that have it"),
                };
                Err(SyntaxError { message, at: 1, hint: Some(hint) }.into())
            }
        }
    }
}

impl ValueTest {
    fn of_text(text: &str) -> ValueTest {
        let plain = text.trim_matches('*');
        let words = query_words(plain);
        if text.starts_with('*') && !plain.is_empty() || words.is_empty() {
            let part = if plain.is_empty() { text } else { plain };
            return ValueTest::Part(fold(part).into_owned());
        }
        let is_prefix = text.ends_with('*') && !plain.ends_with(is_joiner);
        ValueTest::Words { words, is_prefix }
    }

    fn passes(&self, value: &str) -> bool {
        match self {
            ValueTest::Words { words, is_prefix } => has_words(value, words, *is_prefix),
            ValueTest::Part(part) => value.contains(part.as_str()),
            ValueTest::Pattern(pattern) => pattern.is_match(value),
            ValueTest::Compare(comparison, number) => {
                parse_number(value).is_some_and(|value| match comparison {
                    Comparison::Less => value < *number,
                    Comparison::Equal => value == *number,
                    Comparison::Greater => value > *number,
                })
            }
        }
    }
}

/// Returns the test of a text in a field of words.
fn text_match(text: &str) -> TextMatch {
    let plain = text.trim_matches('*').to_string();
    match (text.starts_with('*'), text.ends_with('*')) {
        (false, true) if plain.ends_with(is_joiner) => TextMatch::Words(plain),
        (false, false) => TextMatch::Words(plain),
        (false, true) => TextMatch::Prefix(plain),
        (true, false) => TextMatch::Suffix(plain),
        (true, true) => TextMatch::Infix(plain),
    }
}

/// Returns whether a value has these words, at these distances from each other.
fn has_words(value: &str, words: &[(String, u32)], is_prefix: bool) -> bool {
    let mut places: Vec<(String, u32)> = Vec::new();
    Tokenizer::default().for_each_word(value, 0, |word, at| places.push((word.to_string(), at)));
    let Some((_, last_at)) = words.last() else { return false };
    let has_word = |(word, at): &(String, u32), start: u32| {
        let is_beginning = (is_prefix || is_single_unspaced(word)) && at == last_at;
        places.iter().any(|(other, other_at)| {
            *other_at == start + at
                && (other == word || is_beginning && other.starts_with(word.as_str()))
        })
    };
    let starts = places.iter().map(|(_, at)| *at);
    let mut starts: Vec<u32> = starts.collect();
    starts.dedup();
    starts.into_iter().any(|start| words.iter().all(|word| has_word(word, start)))
}

/// Returns the number that a value begins with: `5.2`, `-1 / 10`, `7%`. An address or a date is no
/// number.
fn parse_number(value: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let end = value.find(|c: char| !is_part(c)).unwrap_or(value.len());
    let (number, rest) = value.split_at_checked(end)?;
    let ends_number = |c: char| matches!(c, ' ' | ',' | ';' | '/' | '%' | ')');
    if rest.chars().next().is_some_and(|next| !ends_number(next)) {
        return None;
    }
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_with_numbers() {
        let cases = [
            ("5", Some(5.0)),
            ("-1.5", Some(-1.5)),
            ("+3 (high)", Some(3.0)),
            ("6.1 / 5.0", Some(6.1)),
            ("7%", Some(7.0)),
            ("10.0.0.1", None),
            ("2026-03-01", None),
            ("5x", None),
            ("", None),
            ("inf", None),
            ("no, score=5", None),
        ];
        for (value, number) in cases {
            assert_eq!(parse_number(value), number, "{value}");
        }
    }

    #[test]
    fn values_are_tested_by_words_as_the_tokenizer_splits_them() {
        let cases = [
            ("mutt/1.5 (linux)", "mutt", true),
            ("mutt/1.5 (linux)", "mut", false),
            ("mutt/1.5 (linux)", "mut*", true),
            ("mutt/1.5 (linux)", "*ut*", true),
            ("mutt/1.5 (linux)", "1.5", true),
            ("mutt/1.5 (linux)", "1.5 linux", true),
            ("mutt/1.5 (linux)", "linux mutt", false),
            ("mutt/1.5 (linux)", "mutt linux", false),
            ("a b a c", "a c", true),
            ("foo-bar", "bar", true),
            ("foo-bar", "foo-bar", true),
            ("******", "***", true),
            ("**", "***", false),
        ];
        for (value, text, expected) in cases {
            assert_eq!(ValueTest::of_text(text).passes(value), expected, "{value} {text}");
        }
    }
}
