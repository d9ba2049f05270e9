//! From a query for messages to tests by block.
//!
//! Words become cursors over terms; parts of words are looked up among all terms, and become sets
//! of rows. Tests that cost little, or that few messages pass, come first in a conjunction. Folders
//! and files are in `folder_tests`.

use super::MailSearch;
use super::block_test::{BlockTest, Conjunction, PositionTest, WordAlternatives, WordRelation};
use super::expansion::{WordExpansion, word_term};
use super::row_origin::RowOrigin;
use super::row_values::RowValues;
use crate::error::{Error, SyntaxError};
use crate::mail_query::{MailFlag, MailQuery, MailTextFields, TextMatch, TextTest};
use crate::pattern::RegexPattern;
use larder_format::fold::{fold, is_unspaced};
use larder_format::message::MessagePriority;
use larder_store::message_flags::MessageFlag;
use larder_store::tokenizer::Tokenizer;
use larder_store::{BLOCK_ROWS, HandlePrefix, MailColumn, PhraseCursor, common_pair, date_value};
use larder_store::{BODY_POSITIONS, EMBEDDED_POSITIONS, MessageTermField, write_message_term};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

/// The work of comparing a Message-ID with a pattern, and of reading and comparing a subject.
const WORK_PER_ID: u64 = 1000;
const WORK_PER_SUBJECT: u64 = 3000;

/// The number of messages that the beginning of an ID may name.
const MAX_MESSAGES_OF_ID: usize = 64;

/// The positions of all words: no word has the last number.
const ALL_POSITIONS: Range<u32> = 0..u32::MAX;

/// A field of terms, and the positions in it that count.
type TermScope = (MessageTermField, Option<Range<u32>>);

impl MailSearch<'_> {
    /// Returns the tests of a whole query, which the messages that are left out do not pass.
    pub(super) fn compile_searched(&self, query: &MailQuery) -> Result<BlockTest, Error> {
        self.compile(&self.searched_query(query))
    }

    /// Returns a query without the messages of the collections that are left out.
    pub(super) fn searched_query<'q>(&self, query: &'q MailQuery) -> Cow<'q, MailQuery> {
        match self.mail.left_out_collections() {
            [] => Cow::Borrowed(query),
            names => Cow::Owned(query.clone().without_sources(names)),
        }
    }

    /// Passes the row of each message of the collections that are left out to `visit`, ascending.
    pub(crate) fn for_each_left_out(&self, visit: &mut dyn FnMut(u32)) -> Result<(), Error> {
        let names = self.mail.left_out_collections();
        if names.is_empty() {
            return Ok(());
        }
        let sources = names.iter().map(|name| MailQuery::All.in_source(name));
        self.for_each_row(&mut self.compile(&MailQuery::Or(sources.collect()))?, visit)
    }

    /// Returns the tests of a query.
    pub(super) fn compile(&self, query: &MailQuery) -> Result<BlockTest, Error> {
        Ok(match query {
            MailQuery::All => BlockTest::All,
            MailQuery::Nothing => BlockTest::Nothing,
            MailQuery::And(all) => self.compile_conjunction(all)?,
            MailQuery::Or(any) => BlockTest::Or(self.compile_each(any)?),
            MailQuery::Xor(left, right) => {
                BlockTest::Xor(Box::new(self.compile(left)?), Box::new(self.compile(right)?))
            }
            MailQuery::Not(query) => BlockTest::Not(Box::new(self.compile(query)?)),
            MailQuery::Text(test) => self.compile_text(test)?,
            MailQuery::Flag(flag) => flag_test(*flag),
            MailQuery::Priority(priority) => BlockTest::Flags(match priority {
                MessagePriority::Low => |flags| flags.priority() == MessagePriority::Low,
                MessagePriority::Normal => |flags| flags.priority() == MessagePriority::Normal,
                MessagePriority::High => |flags| flags.priority() == MessagePriority::High,
            }),
            MailQuery::Date(range) => date_test(MailColumn::Date, range),
            MailQuery::Changed(range) => date_test(MailColumn::Changed, range),
            MailQuery::Size(range) => BlockTest::Values(MailColumn::Size, clamp_size(range)),
            MailQuery::MessageId(id) => {
                self.rows_test(&self.mail.rows_with_uid(id)?, RowOrigin::MessageIds)
            }
            MailQuery::Reference(id) => {
                let mut term = Vec::new();
                write_message_term(&mut term, MessageTermField::Reference, id);
                BlockTest::Term(self.words.cursor(&term))
            }
            MailQuery::Folder(folder) => self.compile_folder(folder)?,
            MailQuery::Thread(id) => self.rows_test(&self.find_thread(id)?, RowOrigin::Threads),
            MailQuery::ThreadOf(query) => {
                let mut rows = Vec::new();
                self.for_each_row(&mut self.compile_searched(query)?, &mut |row| rows.push(row))?;
                self.rows_test(&self.with_threads(&rows)?, RowOrigin::Threads)
            }
            MailQuery::Path(path) => self.rows_test(&self.find_path(path)?, RowOrigin::Files),
            MailQuery::Label(text) => self.compile_label(text)?,
            MailQuery::Existing(query) => self.compile(query)?,
            MailQuery::ChangedPath(test) => self.compile_changed_path(test)?,
            MailQuery::Hash(start) => self.compile_hash(MessageTermField::Hash, start)?,
            MailQuery::Parent(start) => self.compile_hash(MessageTermField::Reference, start)?,
            MailQuery::Collection(name) => {
                let folders = self.mail.folders()?.into_iter();
                let sets = folders.filter(|(collection, ..)| collection == name);
                BlockTest::Or(sets.map(|(.., set)| BlockTest::Set(set)).collect())
            }
            MailQuery::Header { name, test } => self.compile_header(name, test)?,
        })
    }

    fn compile_each(&self, queries: &[MailQuery]) -> Result<Vec<BlockTest>, Error> {
        queries.iter().map(|query| self.compile(query)).collect()
    }

    /// Compiles queries that must all match, those that cost little first.
    fn compile_conjunction(&self, queries: &[MailQuery]) -> Result<BlockTest, Error> {
        let mut ranked = Vec::with_capacity(queries.len());
        for query in queries {
            ranked.push((rank(query), self.compile(query)?));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        Ok(BlockTest::And(Conjunction::new(ranked.into_iter().map(|(_, test)| test))))
    }

    pub(super) fn rows_test(&self, rows: &[u32], origin: RowOrigin) -> BlockTest {
        let mut bits: Vec<u64> = Vec::new();
        for row in rows {
            let word = *row as usize / 64;
            if word >= bits.len() {
                bits.resize(word + 1, 0);
            }
            if let Some(word) = bits.get_mut(word) {
                *word |= 1 << (row % 64);
            }
        }
        BlockTest::Messages(bits, origin)
    }

    /// Returns the rows of the messages of a thread: of one with this ID, or of the message with
    /// this Message-ID or with the only ID that begins with these letters.
    pub(super) fn find_thread(&self, id: &str) -> Result<Vec<u32>, Error> {
        let rows = self.mail.rows_with_uid(id)?;
        if !rows.is_empty() {
            return self.with_threads(&rows);
        }
        if let Some(thread) = parse_thread_id(id) {
            return Ok(self.mail.thread_members(thread)?);
        }
        let Some(prefix) = HandlePrefix::parse(id) else { return Ok(Vec::new()) };
        let rows = self.mail.rows_with_handle(prefix, MAX_MESSAGES_OF_ID + 1)?;
        let mut threads = RowValues::new(self.mail, MailColumn::Thread);
        let numbers = rows.iter().map(|row| threads.get(*row));
        let mut numbers = numbers.collect::<Result<Vec<u32>, Error>>()?;
        numbers.dedup();
        if numbers.len() > 1 || rows.len() > MAX_MESSAGES_OF_ID {
            let message = format!("the ID {id:?} matches messages of several threads");
            let hint = Some("type more letters of the ID".to_string());
            return Err(SyntaxError { message, at: 1, hint }.into());
        }
        self.with_threads(&rows)
    }

    /// Returns the rows of all messages in the threads of these.
    pub fn with_threads(&self, rows: &[u32]) -> Result<Vec<u32>, Error> {
        let mut threads = Vec::new();
        let mut values = RowValues::new(self.mail, MailColumn::Thread);
        for row in rows {
            threads.push(values.get(*row)?);
        }
        threads.sort_unstable();
        threads.dedup();
        let mut members = Vec::new();
        for thread in threads {
            members.extend(self.mail.thread_members(thread)?);
        }
        Ok(members)
    }

    /// Compiles the test of the labels: of those whose names pass. Names are compared as they are
    /// written, as in notmuch; only a regular expression matches in any case.
    fn compile_label(&self, text: &TextMatch) -> Result<BlockTest, Error> {
        let pattern = match text {
            TextMatch::Pattern(text) => Some(compile_pattern(text)?),
            _ => None,
        };
        let passes = |name: &str| match text {
            TextMatch::Words(label) => name == label,
            TextMatch::Prefix(start) => name.starts_with(start.as_str()),
            TextMatch::Suffix(end) => name.ends_with(end.as_str()),
            TextMatch::Infix(part) => name.contains(part.as_str()),
            TextMatch::Pattern(_) => pattern.as_ref().is_some_and(|one| one.is_match(&fold(name))),
            TextMatch::Near { .. } => false,
            TextMatch::Exists => true,
        };
        let labels = self.mail.labels()?.into_iter().filter(|(name, _)| passes(name));
        Ok(BlockTest::Or(labels.map(|(_, set)| BlockTest::Set(set)).collect()))
    }

    /// Compiles a regular expression for the Message-ID, or for those that a message refers to.
    pub(super) fn compile_id_pattern(&self, header: &str, text: &str) -> Result<BlockTest, Error> {
        let pattern = compile_pattern(text)?;
        if header != "message-id" {
            let words = WordExpansion::from_pattern(text, pattern);
            return self.compile_expansion(MessageTermField::Reference, None, &[], &words);
        }
        let work = u64::from(self.mail.end_row()?) * WORK_PER_ID;
        self.budget.spend(work, || format!("/{text}/"))?;
        let mut rows = Vec::new();
        self.mail.for_each_uid(&mut |row, uid| {
            if pattern.is_match(uid) {
                rows.push(row);
            }
        })?;
        Ok(self.rows_test(&rows, RowOrigin::AllMessageIds))
    }

    /// Compiles a regular expression for whole subjects, which no term has.
    fn compile_subject_pattern(&self, text: &str) -> Result<BlockTest, Error> {
        let pattern = compile_pattern(text)?;
        let work = u64::from(self.mail.end_row()?) * WORK_PER_SUBJECT;
        self.budget.spend(work, || format!("/{text}/"))?;
        let mut rows = Vec::new();
        for block in self.mail.blocks()? {
            let first = block.block * BLOCK_ROWS;
            let block_rows: Vec<u32> = (first..first.saturating_add(BLOCK_ROWS)).collect();
            self.mail.for_each_message(&block_rows, &mut |message| {
                if pattern.is_match(&fold(message.summary.subject())) {
                    rows.push(message.row);
                }
            })?;
        }
        Ok(self.rows_test(&rows, RowOrigin::AllSubjects))
    }

    fn compile_text(&self, test: &TextTest) -> Result<BlockTest, Error> {
        if test.fields.contains(MailTextFields::LANGUAGE) {
            return Err(unsupported_error("lang:"));
        }
        let mut tests = Vec::new();
        for (field, range) in term_scopes(test.fields) {
            tests.push(match field {
                MessageTermField::MediaType
                | MessageTermField::List
                | MessageTermField::Keyword => self.compile_value(field, &test.text)?,
                _ => self.compile_words(field, range, &test.text)?,
            });
            if field == MessageTermField::Subject
                && let TextMatch::Pattern(text) = &test.text
                && text.chars().any(may_match_separator)
            {
                tests.push(self.compile_subject_pattern(text)?);
            }
        }
        Ok(match tests.len() {
            1 => tests.swap_remove(0),
            _ => BlockTest::Or(tests),
        })
    }

    /// Compiles the test of a field whose terms are whole values.
    fn compile_value(&self, field: MessageTermField, text: &TextMatch) -> Result<BlockTest, Error> {
        match text {
            TextMatch::Words(value) => {
                let term = word_term(field, &fold(value));
                Ok(BlockTest::Term(self.words.cursor(&term)))
            }
            TextMatch::Prefix(value) => {
                let mut rows = Vec::new();
                self.words.rows_with_prefix(&word_term(field, &fold(value)), &mut rows)?;
                Ok(BlockTest::Rows(rows, RowOrigin::TermRange))
            }
            TextMatch::Suffix(text) => {
                let end = fold(text);
                self.compile_expansion(field, None, &[], &WordExpansion::with_end(&end))
            }
            TextMatch::Infix(text) => {
                let part = fold(text);
                self.compile_expansion(field, None, &[], &WordExpansion::with_part(&part))
            }
            _ => self.compile_words(field, None, text),
        }
    }

    fn compile_words(
        &self,
        field: MessageTermField,
        range: Option<Range<u32>>,
        text: &TextMatch,
    ) -> Result<BlockTest, Error> {
        match text {
            TextMatch::Words(text) => {
                let mut words = query_words(text);
                // A single character of a script without spaces is the beginning of a word.
                if let Some((last, _)) = words.pop_if(|(word, _)| is_single_unspaced(word)) {
                    return self.compile_prefix(field, range.as_ref(), &words, &last);
                }
                if words.is_empty() {
                    return Ok(BlockTest::Nothing);
                }
                let is_word = range.is_none() && words.len() == 1;
                if is_word && let Some((word, _)) = words.pop() {
                    let term = word_term(field, &word);
                    return Ok(BlockTest::Term(self.words.cursor(&term)));
                }
                Ok(self.phrase(field, range, &words))
            }
            TextMatch::Prefix(text) => {
                let mut words = query_words(text);
                match words.pop() {
                    Some((last, _)) => self.compile_prefix(field, range.as_ref(), &words, &last),
                    None => Ok(BlockTest::Nothing),
                }
            }
            // A part of a text without spaces is the phrase of its pairs.
            TextMatch::Suffix(text) | TextMatch::Infix(text) if is_unspaced_text(text) => {
                self.compile_words(field, range, &TextMatch::Words(text.clone()))
            }
            TextMatch::Suffix(text) => {
                let end = fold(text);
                self.compile_expansion(field, range.as_ref(), &[], &WordExpansion::with_end(&end))
            }
            TextMatch::Infix(text) => {
                let part = fold(text);
                self.compile_expansion(field, range.as_ref(), &[], &WordExpansion::with_part(&part))
            }
            TextMatch::Pattern(text) => {
                let words = WordExpansion::from_pattern(text, compile_pattern(text)?);
                self.compile_expansion(field, range.as_ref(), &[], &words)
            }
            TextMatch::Near { left, right, distance, is_ordered } => {
                let (Some(left), Some(right)) =
                    (parse_single_word(left)?, parse_single_word(right)?)
                else {
                    return Ok(BlockTest::Nothing);
                };
                let words = [left, right].map(|word| (self.single_word(field, &word), 0)).into();
                let relation = WordRelation::Near { distance: *distance, is_ordered: *is_ordered };
                Ok(BlockTest::Positions(PositionTest { words, relation, range }))
            }
            TextMatch::Exists => self.compile_prefix(field, range.as_ref(), &[], ""),
        }
    }

    /// Returns the test of words that follow each other. Common pairs among them are looked up, and
    /// only the messages that have these are compared.
    fn phrase(
        &self,
        field: MessageTermField,
        range: Option<Range<u32>>,
        words: &[(String, u32)],
    ) -> BlockTest {
        let cursors = words.iter().map(|(word, at)| {
            let cursor = self.words.cursor(&word_term(field, word));
            (cursor, *at)
        });
        let phrase = PhraseCursor::new(cursors);
        let is_pair = words.len() == 2 && range.is_none();
        let phrase = BlockTest::Phrase(phrase, range.unwrap_or(ALL_POSITIONS));
        let neighbours = words.windows(2).filter(|_| field == MessageTermField::Text);
        let pairs = neighbours.filter_map(|words| match words {
            [(first, at), (second, next)] if at + 1 == *next => common_pair(first, second),
            _ => None,
        });
        let term = |field, word: &str| BlockTest::Term(self.words.cursor(&word_term(field, word)));
        // Messages that were read before pairs were indexed, and rows without one.
        let without_pairs = || BlockTest::Not(Box::new(term(MessageTermField::CommonPair, "")));
        let pairs = pairs.map(|pair| term(MessageTermField::CommonPair, &pair));
        let pairs: Vec<BlockTest> = pairs.collect();
        match pairs.is_empty() {
            true => phrase,
            false if is_pair => {
                let has_message = BlockTest::HasMessage;
                let compared = Conjunction::new([without_pairs(), has_message, phrase]);
                BlockTest::Or(pairs.into_iter().chain([BlockTest::And(compared)]).collect())
            }
            false => {
                let pairs =
                    pairs.into_iter().map(|pair| BlockTest::Or(vec![pair, without_pairs()]));
                BlockTest::And(Conjunction::new(pairs.chain([phrase])))
            }
        }
    }

    /// Returns a word of a phrase.
    pub(super) fn single_word(&self, field: MessageTermField, word: &str) -> WordAlternatives {
        WordAlternatives::new(vec![self.words.cursor(&word_term(field, word))])
    }

    /// Compiles a phrase whose last word is the beginning of one.
    fn compile_prefix(
        &self,
        field: MessageTermField,
        range: Option<&Range<u32>>,
        words: &[(String, u32)],
        start: &str,
    ) -> Result<BlockTest, Error> {
        if range.is_none() && words.is_empty() {
            let mut rows = Vec::new();
            self.words.rows_with_prefix(&word_term(field, start), &mut rows)?;
            return Ok(BlockTest::Rows(rows, RowOrigin::TermRange));
        }
        self.compile_expansion(field, range, words, &WordExpansion::with_start(start))
    }
}

/// Returns the place of a test among tests that must all pass, before anything is known of what
/// they pass: rows that are known, dates, by which blocks are passed over, words, states, and
/// negations.
pub(super) fn rank(query: &MailQuery) -> u8 {
    match query {
        MailQuery::MessageId(_) | MailQuery::Reference(_) | MailQuery::Thread(_) => 0,
        MailQuery::Nothing | MailQuery::ThreadOf(_) | MailQuery::Path(_) => 0,
        MailQuery::Date(_) => 1,
        MailQuery::And(_) | MailQuery::Or(_) | MailQuery::Text(_) => 2,
        MailQuery::Not(_) | MailQuery::Xor(..) => 4,
        _ => 3,
    }
}

/// Returns the name of a thread, as lists show it and `thread:` takes it, in the form of notmuch.
/// It holds until the index is made anew or the thread is joined with another.
#[must_use]
pub fn format_thread_id(thread: u32) -> String {
    format!("{thread:016x}")
}

/// Returns the number of a thread from the name that lists show.
#[must_use]
pub fn parse_thread_id(id: &str) -> Option<u32> {
    u32::from_str_radix(id, 16).ok().filter(|_| id.len() == 16)
}

/// Returns the fields of terms that have some texts of messages.
fn term_scopes(fields: MailTextFields) -> Vec<TermScope> {
    let mut scopes = Vec::new();
    if fields.contains(MailTextFields::FREE) {
        scopes.push((MessageTermField::Text, None));
    }
    for field in fields.iter() {
        if fields.contains(MailTextFields::FREE) && MailTextFields::FREE.contains(field) {
            continue;
        }
        scopes.extend(match field {
            MailTextFields::FROM => Some((MessageTermField::From, None)),
            MailTextFields::TO => Some((MessageTermField::To, None)),
            MailTextFields::CC => Some((MessageTermField::Cc, None)),
            MailTextFields::BCC => Some((MessageTermField::Bcc, None)),
            MailTextFields::SUBJECT => Some((MessageTermField::Subject, None)),
            MailTextFields::BODY => Some((MessageTermField::Text, Some(BODY_POSITIONS))),
            MailTextFields::EMBEDDED => Some((MessageTermField::Text, Some(EMBEDDED_POSITIONS))),
            MailTextFields::FILE => Some((MessageTermField::FileName, None)),
            MailTextFields::MIME => Some((MessageTermField::MediaType, None)),
            MailTextFields::LIST => Some((MessageTermField::List, None)),
            MailTextFields::KEYWORD => Some((MessageTermField::Keyword, None)),
            MailTextFields::COMMITTER => Some((MessageTermField::Committer, None)),
            _ => None,
        });
    }
    scopes
}

/// Returns whether a character of a regular expression may stand for one that separates words.
fn may_match_separator(c: char) -> bool {
    !c.is_alphanumeric() && !"^$|()?*+".contains(c)
}

/// Returns the words of a text as they are indexed, with their places. Of a joined word these are
/// its parts.
pub(crate) fn query_words(text: &str) -> Vec<(String, u32)> {
    let mut words: Vec<(String, u32)> = Vec::new();
    Tokenizer::default().for_each_word(text, 0, |word, position| {
        // The joined word is in front of its first part, at the same position.
        if words.last().is_some_and(|(_, last)| *last == position) {
            words.pop();
        }
        words.push((word.to_string(), position));
    });
    // The last character of a text without spaces may begin another pair in a message.
    if let [.., (pair, _), (last, _)] = words.as_slice()
        && is_single_unspaced(last)
        && !is_single_unspaced(pair)
        && pair.ends_with(last.as_str())
    {
        words.pop();
    }
    words
}

/// Returns the word on one side of NEAR; of a joined word the whole.
fn parse_single_word(text: &str) -> Result<Option<String>, Error> {
    if text.split_whitespace().nth(1).is_some() {
        let message = format!("NEAR takes a single word on each side, not {text:?}");
        return Err(SyntaxError { message, at: 1, hint: None }.into());
    }
    let mut words: Vec<String> = Vec::new();
    Tokenizer::default().for_each_word(text, 0, |word, _| words.push(word.to_string()));
    // Two neighbours are the pair and its last character.
    if text.contains(is_unspaced) && !(words.len() == 2 && is_unspaced_text(text)) {
        let message = format!(
            "of a script without spaces, NEAR takes two characters on each side, not {text:?}"
        );
        return Err(SyntaxError { message, at: 1, hint: None }.into());
    }
    Ok(words.into_iter().next())
}

/// Returns whether a word is one character of a script without spaces.
pub(crate) fn is_single_unspaced(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(is_unspaced) && characters.next().is_none()
}

/// Returns whether a text has several characters, all of scripts without spaces.
pub(crate) fn is_unspaced_text(text: &str) -> bool {
    let folded = fold(text);
    folded.chars().all(is_unspaced) && folded.chars().nth(1).is_some()
}

pub(super) fn flag_test(flag: MailFlag) -> BlockTest {
    let flag = match flag {
        MailFlag::Draft => MessageFlag::Draft,
        MailFlag::Flagged => MessageFlag::Flagged,
        MailFlag::Passed => MessageFlag::Passed,
        MailFlag::Replied => MessageFlag::Replied,
        MailFlag::Seen => MessageFlag::Seen,
        MailFlag::Trashed => MessageFlag::Trashed,
        MailFlag::New => MessageFlag::New,
        MailFlag::Signed => MessageFlag::Signed,
        MailFlag::Encrypted => MessageFlag::Encrypted,
        MailFlag::Attachment => MessageFlag::Attachment,
        MailFlag::List => MessageFlag::List,
        MailFlag::Personal => MessageFlag::Personal,
        MailFlag::Calendar => MessageFlag::Calendar,
        MailFlag::Unread => return BlockTest::unread(),
    };
    BlockTest::FlagBit(flag as u16)
}

fn date_test(column: MailColumn, range: &RangeInclusive<i64>) -> BlockTest {
    if range.start() > range.end() {
        return BlockTest::Nothing;
    }
    BlockTest::Values(column, date_value(*range.start())..=date_value(*range.end()))
}

fn clamp_size(range: &RangeInclusive<u64>) -> RangeInclusive<u32> {
    let clamp = |size: &u64| u32::try_from(*size).unwrap_or(u32::MAX);
    clamp(range.start())..=clamp(range.end())
}

/// Compiles a pattern for folded text.
pub(crate) fn compile_pattern(text: &str) -> Result<RegexPattern, Error> {
    RegexPattern::compile_folded(text).map_err(|reason| {
        let message = format!("the pattern /{text}/ cannot be used: {reason}");
        SyntaxError { message, at: 1, hint: None }.into()
    })
}

fn unsupported_error(name: &str) -> Error {
    let message = format!("{name} is not supported in searches for messages yet");
    SyntaxError { message, at: 1, hint: None }.into()
}
