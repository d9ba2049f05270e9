//! Snippets: a line of the text of a message around the first place that a query matches, with the
//! places marked.
//!
//! The index has no text, so a snippet is made from the file of a message. The words are those of
//! the tokenizer, so a mark is where the index found the word. Separate from `mail_search`, which
//! reads no file.

use crate::mail_query::{MailQuery, MailTextFields, TextMatch, TextTest};
use crate::mail_search::{compile_pattern, is_unspaced_text, query_words};
use crate::pattern::RegexPattern;
use larder_format::fold::{fold, is_unspaced};
use larder_format::message::{Message, PartRole};
use larder_store::tokenizer::Tokenizer;
use std::ops::Range;

/// The bytes of a snippet, about.
const DEFAULT_LENGTH: usize = 160;
/// The least length of a snippet.
const MIN_LENGTH: usize = 30;
/// The beginning of a text that is searched.
const MAX_SEARCHED_BYTES: usize = 1 << 20;
/// A longer mark, or a text without spaces that is longer, is cut off.
const MAX_MARKED_BYTES: usize = 200;
/// The most tests of a query whose words are marked, and the most words: each word of a text is
/// compared with all of them.
const MAX_MARKED_TESTS: usize = 64;
const MAX_COMPARED_WORDS: usize = 256;
/// The most marked words of a text that are collected.
const MAX_FOUND_WORDS: usize = 10_000;

/// A part of the text of a message, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// The text. `…` stands for text that is left out at an end.
    pub text: String,
    /// The places that the query matches, as bytes of the text, ascending. None: the text has no
    /// word of the query, and the snippet is its beginning.
    pub hits: Vec<Range<usize>>,
}

/// Makes snippets for a query.
#[derive(Debug)]
pub struct SnippetFinder {
    body: Vec<MarkTest>,
    embedded: Vec<MarkTest>,
    length: usize,
}

/// The test of one word.
#[derive(Debug, Clone)]
enum WordTest {
    Is(String),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Pattern(RegexPattern),
}

/// Words that are marked together.
#[derive(Debug, Clone)]
struct MarkTest {
    words: Vec<WordTest>,
    relation: MarkRelation,
}

/// How the words of a mark stand to each other.
#[derive(Debug, Clone)]
enum MarkRelation {
    /// At these distances from the first one.
    Distances(Vec<u32>),
    /// Two words, at most this far from each other.
    Near { distance: u32, is_ordered: bool },
}

/// A word of the text that a test of a word matches.
#[derive(Debug)]
struct FoundWord {
    test: usize,
    word: usize,
    position: u32,
    place: Range<usize>,
}

impl SnippetFinder {
    /// Collects the words of a query. Those that must not match are not marked.
    #[must_use]
    pub fn new(query: &MailQuery) -> SnippetFinder {
        let (body, embedded) = (Vec::new(), Vec::new());
        let mut finder = SnippetFinder { body, embedded, length: DEFAULT_LENGTH };
        finder.add_query(query);
        limit_tests(&mut finder.body);
        limit_tests(&mut finder.embedded);
        finder
    }

    /// Sets the length of the snippets, about, in bytes.
    #[must_use]
    pub fn with_length(self, length: usize) -> SnippetFinder {
        SnippetFinder { length: length.max(MIN_LENGTH), ..self }
    }

    fn add_query(&mut self, query: &MailQuery) {
        match query {
            MailQuery::And(all) | MailQuery::Or(all) => {
                all.iter().for_each(|query| self.add_query(query));
            }
            MailQuery::Xor(left, right) => {
                self.add_query(left);
                self.add_query(right);
            }
            MailQuery::Text(test) => {
                let Some(mark) = mark_test(test) else { return };
                if test.fields.contains(MailTextFields::BODY) {
                    self.body.push(mark.clone());
                }
                if test.fields.contains(MailTextFields::EMBEDDED) {
                    self.embedded.push(mark);
                }
            }
            _ => {}
        }
    }

    /// Returns the snippet of a message: of its text, else of attached texts, else the beginning.
    #[must_use]
    pub fn find(&self, message: &Message) -> Snippet {
        let body = message.body_text();
        let body = body.get(..body.floor_char_boundary(MAX_SEARCHED_BYTES)).unwrap_or_default();
        let marks = find_marks(body, &self.body);
        if !marks.is_empty() {
            return cut_snippet(body, &marks, self.length);
        }
        if !self.embedded.is_empty() {
            for part in message.parts.iter().filter(|part| part.role != PartRole::Container) {
                let Some(text) = part.plain_text() else { continue };
                let text = text.get(..text.floor_char_boundary(MAX_SEARCHED_BYTES));
                let marks = find_marks(text.unwrap_or_default(), &self.embedded);
                if !marks.is_empty() {
                    return cut_snippet(text.unwrap_or_default(), &marks, self.length);
                }
            }
        }
        cut_snippet(skip_quotation(body), &[], self.length)
    }
}

/// Leaves out the tests that are too many, or have too many words.
fn limit_tests(tests: &mut Vec<MarkTest>) {
    let mut words = 0;
    tests.retain(|test| {
        let is_kept = words + test.words.len() <= MAX_COMPARED_WORDS;
        words += if is_kept { test.words.len() } else { 0 };
        is_kept
    });
    tests.truncate(MAX_MARKED_TESTS);
}

/// Returns the marks of a test of text; `None`: it has none.
fn mark_test(test: &TextTest) -> Option<MarkTest> {
    let single =
        |word| Some(MarkTest { words: vec![word], relation: MarkRelation::Distances(vec![0]) });
    match &test.text {
        TextMatch::Words(text) => phrase_test(text, false),
        TextMatch::Prefix(text) => phrase_test(text, true),
        TextMatch::Suffix(text) | TextMatch::Infix(text) if is_unspaced_text(text) => {
            phrase_test(text, false)
        }
        TextMatch::Suffix(text) => single(WordTest::EndsWith(fold(text).into_owned())),
        TextMatch::Infix(text) => single(WordTest::Contains(fold(text).into_owned())),
        TextMatch::Pattern(text) => {
            compile_pattern(text).ok().and_then(|one| single(WordTest::Pattern(one)))
        }
        TextMatch::Near { left, right, distance, is_ordered } => {
            let word = |text: &str| Some(WordTest::Is(words_of(text).first()?.0.clone()));
            let relation = MarkRelation::Near { distance: *distance, is_ordered: *is_ordered };
            Some(MarkTest { words: vec![word(left)?, word(right)?], relation })
        }
        TextMatch::Exists => None,
    }
}

fn phrase_test(text: &str, is_prefix: bool) -> Option<MarkTest> {
    let words = query_words(text);
    let last = words.len().checked_sub(1)?;
    let distances = words.iter().map(|(_, distance)| *distance).collect();
    let words = words.into_iter().enumerate().map(|(at, (word, _))| {
        let is_part = is_prefix && at == last || word.chars().all(is_unspaced);
        if is_part { WordTest::StartsWith(word) } else { WordTest::Is(word) }
    });
    Some(MarkTest { words: words.collect(), relation: MarkRelation::Distances(distances) })
}

/// Returns the words of a text with their positions.
fn words_of(text: &str) -> Vec<(String, u32)> {
    let mut words = Vec::new();
    Tokenizer::default().for_each_word(text, 0, |word, at| words.push((word.to_string(), at)));
    words
}

impl WordTest {
    fn passes(&self, word: &str) -> bool {
        match self {
            WordTest::Is(text) => word == text,
            WordTest::StartsWith(text) => word.starts_with(text.as_str()),
            WordTest::EndsWith(text) => word.ends_with(text.as_str()),
            WordTest::Contains(text) => word.contains(text.as_str()),
            WordTest::Pattern(pattern) => pattern.is_match(word),
        }
    }
}

/// Returns the places of a text that tests mark, ascending and apart from each other.
fn find_marks(text: &str, tests: &[MarkTest]) -> Vec<Range<usize>> {
    if tests.is_empty() {
        return Vec::new();
    }
    let found = find_words(text, tests);
    let mut marks: Vec<Range<usize>> = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        let mut places: Vec<Vec<&FoundWord>> = vec![Vec::new(); test.words.len()];
        for one in found.iter().filter(|one| one.test == number) {
            if let Some(places) = places.get_mut(one.word) {
                places.push(one);
            }
        }
        marks.extend(join_words(test, &places));
    }
    marks.sort_unstable_by_key(|mark| (mark.start, mark.end));
    marks.dedup_by(|later, earlier| {
        let is_joined = later.start < earlier.end;
        if is_joined {
            earlier.end = earlier.end.max(later.end);
        }
        is_joined
    });
    marks
}

/// Returns the words of a text that tests match, by position.
fn find_words(text: &str, tests: &[MarkTest]) -> Vec<FoundWord> {
    let mut tokenizer = Tokenizer::default();
    let (mut found, mut position) = (Vec::new(), 0);
    for run in text.split_ascii_whitespace() {
        // The run is a part of the text.
        let start = run.as_ptr() as usize - text.as_ptr() as usize;
        position = tokenizer.for_each_word(run, position, |word, position| {
            for (test, one) in tests.iter().enumerate() {
                for (number, _) in one.words.iter().enumerate().filter(|(_, one)| one.passes(word))
                {
                    let place = find_in_run(run, word);
                    let place = start + place.start..start + place.end;
                    found.push(FoundWord { test, word: number, position, place });
                }
            }
        });
        if found.len() > MAX_FOUND_WORDS {
            break;
        }
    }
    found
}

/// Returns the places of the first words of a test that stand to the others as they must, with the
/// others.
fn join_words(test: &MarkTest, places: &[Vec<&FoundWord>]) -> Vec<Range<usize>> {
    let span = |words: &[&FoundWord]| {
        let start = words.iter().map(|word| word.place.start).min()?;
        let end = words.iter().map(|word| word.place.end).max()?;
        Some(start..end)
    };
    let Some((first, others)) = places.split_first() else { return Vec::new() };
    match (&test.relation, others) {
        (MarkRelation::Near { distance, is_ordered }, [others]) => {
            let pairs = first.iter().flat_map(|one| {
                // The words are in the order of their positions.
                let start = match is_ordered {
                    true => one.position + 1,
                    false => one.position.saturating_sub(*distance),
                };
                let end = one.position.saturating_add(*distance);
                let from = others.partition_point(|other| other.position < start);
                let near = others.get(from..).unwrap_or_default().iter();
                let near = near.take_while(move |other| other.position <= end);
                let near = near.filter(|other| other.position != one.position);
                near.flat_map(move |other| [one.place.clone(), other.place.clone()])
            });
            pairs.take(MAX_FOUND_WORDS).collect()
        }
        (MarkRelation::Distances(distances), others) => {
            let mut marks = Vec::new();
            for one in first {
                let mut words = vec![*one];
                for (others, distance) in others.iter().zip(distances.iter().skip(1)) {
                    let wanted = one.position + distance;
                    let from = others.partition_point(|other| other.position < wanted);
                    words.extend(others.get(from).filter(|other| other.position == wanted));
                }
                if words.len() == places.len() {
                    marks.extend(span(&words));
                }
            }
            marks
        }
        (MarkRelation::Near { .. }, _) => Vec::new(),
    }
}

/// Returns the place of a folded word in a text without spaces, or the whole text.
fn find_in_run(run: &str, word: &str) -> Range<usize> {
    let whole = 0..run.floor_char_boundary(MAX_MARKED_BYTES);
    if run.len() > MAX_MARKED_BYTES {
        return whole;
    }
    // The folded text, and the place of each of its bytes in the run.
    let (mut folded, mut places) = (String::new(), Vec::new());
    for (at, c) in run.char_indices() {
        folded.push_str(&fold(c.encode_utf8(&mut [0; 4])));
        places.resize(folded.len(), at);
    }
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_unspaced = word.chars().all(|c| !c.is_ascii());
    let found = folded.match_indices(word).map(|(at, _)| at..at + word.len()).find(|place| {
        let before = folded.get(..place.start).and_then(|text| text.chars().next_back());
        let after = folded.get(place.end..).and_then(|text| text.chars().next());
        is_unspaced || !is_letter(before) && !is_letter(after)
    });
    let Some(found) = found else { return whole };
    let place = |at: usize| places.get(at).copied().unwrap_or(run.len());
    // Marks above letters are no characters of the folded text.
    let start = place(found.start);
    let end = place(found.end);
    if start < end { start..end } else { whole }
}

/// Returns a text without the lines in front that are empty, quoted, or announce a quotation.
fn skip_quotation(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let line = line.trim();
        let is_skipped = line.is_empty()
            || line.starts_with('>')
            || line.ends_with(':') && after.trim_start().starts_with('>');
        if !is_skipped {
            return rest;
        }
        rest = after;
    }
    if rest.trim().is_empty() || rest.starts_with('>') { text } else { rest }
}

/// Cuts the part around the first mark out of a text, and puts it on one line.
fn cut_snippet(text: &str, marks: &[Range<usize>], length: usize) -> Snippet {
    let first = marks.first().map_or(0, |mark| mark.start);
    let mut start = text.floor_char_boundary(first.saturating_sub(length / 3));
    if start > 0 {
        // The part begins with a whole word.
        let between = text.get(start..first).unwrap_or_default();
        let space = between.find(|c: char| c.is_whitespace());
        start = space.map_or(start, |space| start + space);
    }
    let first_end = marks.first().map_or(0, |mark| mark.end.min(mark.start + MAX_MARKED_BYTES));
    let mut end = text.floor_char_boundary((start + length).max(first_end));
    if end < text.len() {
        let behind = text.get(first_end.max(start)..end).unwrap_or_default();
        let space = behind.rfind(|c: char| c.is_whitespace());
        end = space.map_or(end, |space| first_end.max(start) + space);
    }
    let mut snippet = Snippet::default();
    if !text.get(..start).unwrap_or_default().trim().is_empty() {
        snippet.text.push('\u{2026}');
    }
    let mut at = start;
    for mark in marks.iter().take_while(|mark| mark.start < end) {
        let mark_end = text.floor_char_boundary(mark.end.min(end));
        snippet.push(text.get(at..mark.start).unwrap_or_default());
        let from = snippet.text.len();
        snippet.push(text.get(mark.start..mark_end).unwrap_or_default());
        snippet.hits.push(from..snippet.text.len());
        at = mark_end;
    }
    snippet.push(text.get(at..end).unwrap_or_default());
    let length = snippet.text.trim_end().len();
    snippet.text.truncate(length);
    // A mark of characters that are shown as spaces may end behind the text.
    snippet.hits.retain_mut(|hit| {
        hit.end = hit.end.min(length);
        hit.start < hit.end
    });
    if !text.get(end..).unwrap_or_default().trim().is_empty() {
        snippet.text.push('\u{2026}');
    }
    snippet
}

impl Snippet {
    /// Adds text, with one space for each white space in it.
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            let is_space = c.is_whitespace() || c.is_control();
            let is_at_space = self.text.is_empty() || self.text.ends_with(' ');
            match (is_space, is_at_space) {
                (true, true) => {}
                (true, false) => self.text.push(' '),
                (false, _) => self.text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail_query::MailQueryContext;
    use larder_date_phrase::UserLocale;

    /// Returns the snippet with brackets around its hits.
    fn snippet(query: &str, body: &str) -> String {
        let context = MailQueryContext::from(&UserLocale::default());
        let query = MailQuery::parse(query, &context).unwrap();
        let source =
            format!("From: a@b.example\nContent-Type: text/plain; charset=utf-8\n\n{body}");
        let snippet = SnippetFinder::new(&query).find(&Message::parse(source.as_bytes()));
        let mut text = snippet.text.clone();
        for hit in snippet.hits.iter().rev() {
            text.insert(hit.end, ']');
            text.insert(hit.start, '[');
        }
        text
    }

    #[test]
    fn hits_are_marked_where_the_tokenizer_sees_words() {
        for (query, body, expected) in [
            ("walrus", "The Walrus, a\nwalrus.", "The [Walrus], a [walrus]."),
            ("walrus", "walruses and a walrus", "walruses and a [walrus]"),
            ("wal*", "Walruses, walnuts", "[Walruses], [walnuts]"),
            ("*rus", "Walrus papyrus", "[Walrus] [papyrus]"),
            ("*lru*", "Walrus", "[Walrus]"),
            ("/wal.*s/", "walnut Walrus", "walnut [Walrus]"),
            ("cafe", "au Café", "au [Café]"),
            ("strasse", "Lange Straße 5", "Lange [Straße] 5"),
            ("bar", "foo-bar", "foo-[bar]"),
            ("foo-bar", "a (foo-bar)", "a ([foo-bar])"),
            ("example", "anna@example.org", "anna@[example].org"),
            ("\"annual audit\"", "audit, annual audit", "audit, [annual audit]"),
            ("\"annual aud*\"", "an annual\n  auditor", "an [annual auditor]"),
            ("a NEAR/2 c", "a b c d a", "[a] b [c] d [a]"),
            ("a ADJ/2 c", "a b c d a", "[a] b [c] d a"),
            ("東京", "新東京都", "新[東京]都"),
            ("walrus not seal", "walrus, seal", "[walrus], seal"),
            ("walrus or seal", "walrus, seal", "[walrus], [seal]"),
            ("subject:walrus", "no walrus", "no walrus"),
            ("", "\n\nOn Monday Bruno wrote:\n> old\n\nNew text", "New text"),
            ("", "", ""),
        ] {
            assert_eq!(snippet(query, body), expected, "{query}");
        }
    }

    #[test]
    fn many_words_far_from_each_other_are_compared_quickly() {
        let text = format!("{} c {}", "a ".repeat(4000), "b ".repeat(4000));
        assert!(snippet("a NEAR/1 b", &text).starts_with("a a a"));
        assert!(snippet("b NEAR/2 a", &text).contains("a [a] c [b] b"));
        let long = format!("\"{}\" or c", "a ".repeat(MAX_COMPARED_WORDS + 1));
        assert!(snippet(&long, &text).contains("[c]"));
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        let words: Vec<String> = (0..200).map(|number| format!("word{number}")).collect();
        let text = words.join(" ");
        assert_eq!(
            snippet("word100", &text),
            "\u{2026} word93 word94 word95 word96 word97 word98 word99 [word100] word101 word102 word103 \
             word104 word105 word106 word107 word108 word109 word110 word111 word112\u{2026}"
        );
        let long = "x".repeat(5000);
        assert!(snippet(&format!("{long} or y"), &format!("{long} y")).len() < 400);
        assert!(snippet("y", &format!("{} y", "z".repeat(5000))).ends_with(" [y]"));
    }
}
