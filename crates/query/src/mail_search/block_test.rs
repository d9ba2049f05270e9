//! The tests of a query on the rows of one block.
//!
//! A test is asked for certain rows only, those that the tests before it have left: so the
//! positions of a phrase are read in few rows if another word of the query is rare. The module
//! `conjunction` has the order in which they are asked.

mod conjunction;

pub(in crate::mail_search) use self::conjunction::Conjunction;

use super::row_origin::RowOrigin;
use super::work_budget::WorkBudget;
use crate::error::Error;
use larder_store::message_flags::MessageFlags;
use larder_store::position_list::{count_phrase, is_near};
use larder_store::{
    BLOCK_ROWS, BLOCK_WORDS, BlockRows, BlockValues, FormerMailStates, MailBlock, MailColumn,
    MailReader, MailSet, OpenMailWords, PhraseCursor, WordCursor,
};
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// No rows.
pub(super) const NO_ROWS: BlockRows = [0; BLOCK_WORDS];
/// All rows.
pub(super) const ALL_ROWS: BlockRows = [u64::MAX; BLOCK_WORDS];

/// The number of columns of messages.
const MAIL_COLUMNS: usize = 5;

/// The work of a test of one block.
const WORK_PER_TEST: u64 = 50;
/// The work of looking a word up in one block.
const WORK_PER_TERM: u64 = 1500;
/// The work of reading the positions of a word in one message.
const WORK_PER_MESSAGE: u64 = 50;
/// The work of comparing one position of a word.
const WORK_PER_POSITION: u64 = 2;

/// A test of a query. The words of a test have cursors, which stay where they were for the next
/// block.
pub(super) enum BlockTest {
    All,
    Nothing,
    And(Conjunction),
    Or(Vec<BlockTest>),
    Xor(Box<BlockTest>, Box<BlockTest>),
    Not(Box<BlockTest>),
    /// Rows with a message. The other tests need not tell these from rows without one.
    HasMessage,
    /// Messages with a term.
    Term(WordCursor),
    /// Messages in which words follow each other, at positions in a range.
    Phrase(PhraseCursor, Range<u32>),
    /// Messages in which words stand to each other in another way, or any of several words stands.
    Positions(PositionTest),
    /// The rows that have any of some terms, as bits by row.
    Rows(Vec<u64>, RowOrigin),
    /// These messages, as bits by row. Only messages that exist are among them.
    Messages(Vec<u64>, RowOrigin),
    /// Messages of which a column has a value in this range.
    Values(MailColumn, RangeInclusive<u32>),
    /// Messages whose flags pass.
    Flags(fn(MessageFlags) -> bool),
    /// Messages whose flags have this bit.
    FlagBit(u16),
    /// Messages of a set.
    Set(MailSet),
}

/// A test of positions of words.
pub(super) struct PositionTest {
    /// Each word, with its distance from the first one.
    pub(super) words: Vec<(WordAlternatives, u32)>,
    pub(super) relation: WordRelation,
    /// The positions that count; `None`: all.
    pub(super) range: Option<Range<u32>>,
}

/// A word of a phrase: any of these terms.
pub(super) struct WordAlternatives {
    terms: Vec<WordCursor>,
    /// The terms that have rows in the block, and these rows.
    found: Vec<(usize, BlockRows)>,
}

/// How words must stand to each other.
pub(super) enum WordRelation {
    /// One after the other, by their distances. A single word is a phrase, too.
    Phrase,
    /// At most this far from each other, in either order or only in this one.
    Near { distance: u32, is_ordered: bool },
}

/// The block that is tested, and what was read of it.
pub(super) struct BlockState<'s> {
    mail: &'s MailReader<'s>,
    words: &'s OpenMailWords<'s>,
    budget: &'s WorkBudget,
    block: u32,
    /// The block with its dates, if they are known.
    dates: Option<MailBlock>,
    /// The states that replace the present ones.
    former: Option<&'s FormerMailStates>,
    /// The rows whose message no longer exists.
    gone: BlockRows,
    /// Those of them whose words are no longer indexed.
    forgotten: BlockRows,
    /// The columns that were read, by their numbers.
    columns: [Option<Arc<BlockValues>>; MAIL_COLUMNS],
}

impl<'s> BlockState<'s> {
    pub(super) fn new(
        mail: &'s MailReader<'s>,
        words: &'s OpenMailWords<'s>,
        budget: &'s WorkBudget,
    ) -> BlockState<'s> {
        BlockState {
            mail,
            words,
            budget,
            block: 0,
            dates: None,
            former: None,
            gone: NO_ROWS,
            forgotten: NO_ROWS,
            columns: Default::default(),
        }
    }

    /// Replaces the present states by former ones.
    pub(super) fn with_former(self, former: &'s FormerMailStates) -> BlockState<'s> {
        BlockState { former: Some(former), ..self }
    }

    /// Sets the rows of the block whose message no longer exists, and those of them whose words are
    /// no longer indexed.
    pub(super) fn set_gone(&mut self, gone: BlockRows, forgotten: BlockRows) {
        (self.gone, self.forgotten) = (gone, forgotten);
    }

    /// Goes to a block whose dates are known.
    pub(super) fn visit_dated(&mut self, block: &MailBlock) {
        self.visit(block.block);
        self.dates = Some(*block);
    }

    /// Goes to a block.
    pub(super) fn visit(&mut self, block: u32) {
        (self.block, self.dates) = (block, None);
        self.set_gone(NO_ROWS, NO_ROWS);
        self.columns = Default::default();
    }

    fn first_row(&self) -> u32 {
        self.block * BLOCK_ROWS
    }

    /// Returns the rows that have a message.
    pub(super) fn message_rows(&mut self) -> Result<BlockRows, Error> {
        match self.former {
            None => Ok(self.mail.message_rows(self.block)?),
            Some(_) => Ok(select(self.values(MailColumn::Date)?, |date| date > 0)),
        }
    }

    /// Returns the values of a column.
    pub(super) fn values(&mut self, column: MailColumn) -> Result<&BlockValues, Error> {
        let known = &mut self.columns[column as usize - 1];
        if known.is_none() {
            let mut values = self.mail.values(column, self.block)?;
            if let Some(former) = self.former {
                former.restore_values(column, self.block, Arc::make_mut(&mut values));
            }
            *known = Some(values);
        }
        Ok(known.get_or_insert_default())
    }

    fn set(&self, set: MailSet) -> Result<BlockRows, Error> {
        let mut rows = self.mail.set(set, self.block)?;
        if let Some(former) = self.former {
            former.restore_set(set, self.block, &mut rows);
        }
        Ok(rows)
    }

    /// Returns the rows that pass a test of values.
    fn select(
        &mut self,
        column: MailColumn,
        passes: impl Fn(u32) -> bool,
    ) -> Result<BlockRows, Error> {
        Ok(select(self.values(column)?, passes))
    }

    /// Returns whether all messages of the block have dates in a range.
    fn is_dated_within(&self, range: &RangeInclusive<u32>) -> bool {
        self.dates.is_some_and(|one| range.contains(&one.oldest) && range.contains(&one.newest))
    }
}

/// The answer to a test that is not decided for some rows.
pub(super) struct RowBounds {
    /// The rows that pass however these rows are decided.
    pub(super) certain: BlockRows,
    /// The rows that may pass.
    pub(super) possible: BlockRows,
}

impl RowBounds {
    fn from_rows(rows: BlockRows) -> RowBounds {
        RowBounds { certain: rows, possible: rows }
    }

    fn with_undecided(rows: &BlockRows, undecided: &BlockRows) -> RowBounds {
        RowBounds {
            certain: combine(rows, undecided, |rows, undecided| rows & !undecided),
            possible: combine(rows, undecided, |rows, undecided| rows | undecided),
        }
    }
}

/// Combines two sets of rows word by word.
pub(super) fn combine(
    a: &BlockRows,
    b: &BlockRows,
    operation: impl Fn(u64, u64) -> u64,
) -> BlockRows {
    let mut rows = *a;
    rows.iter_mut().zip(b).for_each(|(word, other)| *word = operation(*word, *other));
    rows
}

/// Passes the place of each row to `visit`, ascending, and empties the bitmap.
pub(super) fn for_each_row(rows: &mut BlockRows, mut visit: impl FnMut(usize)) {
    for (at, word) in rows.iter_mut().enumerate() {
        while *word != 0 {
            visit(at * 64 + word.trailing_zeros() as usize);
            *word &= *word - 1;
        }
    }
}

impl BlockTest {
    /// Returns a range of dates, as the column has them, that all messages that pass are in.
    /// `None`: no message passes.
    pub(super) fn date_range(&self) -> Option<RangeInclusive<u32>> {
        const ANY: RangeInclusive<u32> = 0..=u32::MAX;
        match self {
            BlockTest::Nothing => None,
            BlockTest::Values(MailColumn::Date, range) => Some(range.clone()),
            BlockTest::And(tests) => tests.iter().try_fold(ANY, |all, test| {
                let range = test.date_range()?;
                let both = *all.start().max(range.start())..=*all.end().min(range.end());
                (!both.is_empty()).then_some(both)
            }),
            BlockTest::Or(tests) => {
                let ranges = tests.iter().filter_map(BlockTest::date_range);
                ranges.reduce(|a, b| *a.start().min(b.start())..=*a.end().max(b.end()))
            }
            _ => Some(ANY),
        }
    }

    /// Returns the test of unread messages.
    pub(super) fn unread() -> BlockTest {
        BlockTest::Flags(MessageFlags::is_unread)
    }

    /// Returns the messages of the block that pass.
    ///
    /// # Errors
    /// As [`BlockTest::rows`].
    pub(super) fn message_rows(&mut self, state: &mut BlockState<'_>) -> Result<BlockRows, Error> {
        let rows = self.rows(state, &ALL_ROWS)?;
        match rows == NO_ROWS {
            true => Ok(rows),
            false => Ok(combine(&rows, &state.message_rows()?, |rows, messages| rows & messages)),
        }
    }

    /// Returns the rows of the block that pass. Of the rows that are not in `wanted`, any may be
    /// among them; so may rows without a message.
    ///
    /// # Errors
    /// [`Error::MailWorkLimit`], or the store cannot be read.
    pub(super) fn rows(
        &mut self,
        state: &mut BlockState<'_>,
        wanted: &BlockRows,
    ) -> Result<BlockRows, Error> {
        state.budget.spend(WORK_PER_TEST, || self.to_string())?;
        match self {
            BlockTest::And(tests) => tests.rows(state, wanted),
            BlockTest::Or(tests) => {
                let mut rows = NO_ROWS;
                for test in tests {
                    let open = combine(wanted, &rows, |wanted, rows| wanted & !rows);
                    if open == NO_ROWS {
                        break;
                    }
                    let other = test.rows(state, &open)?;
                    rows.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
                }
                Ok(rows)
            }
            BlockTest::Xor(left, right) => {
                let (a, b) = (left.rows(state, wanted)?, right.rows(state, wanted)?);
                Ok(combine(&a, &b, |a, b| a ^ b))
            }
            BlockTest::Not(test) => Ok(test.rows(state, wanted)?.map(|word| !word)),
            leaf => leaf.leaf_rows(state, wanted),
        }
    }

    /// Returns the rows that pass a test without parts.
    fn leaf_rows(
        &mut self,
        state: &mut BlockState<'_>,
        wanted: &BlockRows,
    ) -> Result<BlockRows, Error> {
        match self {
            BlockTest::All => Ok(ALL_ROWS),
            BlockTest::HasMessage => state.message_rows(),
            BlockTest::Term(cursor) => {
                state.budget.spend(WORK_PER_TERM, || word_of(cursor.term()))?;
                let mut rows = NO_ROWS;
                state.words.rows_in_range(cursor, state.first_row(), &mut rows)?;
                Ok(rows)
            }
            BlockTest::Phrase(phrase, range) => phrase_rows(phrase, range, state, wanted),
            BlockTest::Positions(test) => test.rows(state, wanted),
            BlockTest::Rows(rows, _) | BlockTest::Messages(rows, _) => {
                Ok(rows_of_block(rows, state.block))
            }
            BlockTest::Values(MailColumn::Date, range) if state.is_dated_within(range) => {
                Ok(ALL_ROWS)
            }
            BlockTest::Values(column, range) => {
                state.select(*column, |value| range.contains(&value))
            }
            BlockTest::Flags(passes) => state
                .select(MailColumn::Flags, |value| passes(MessageFlags::from_bits(value as u16))),
            BlockTest::FlagBit(bit) => {
                let bit = u32::from(*bit);
                state.select(MailColumn::Flags, |value| value & bit != 0)
            }
            BlockTest::Set(set) => state.set(*set),
            BlockTest::Nothing
            | BlockTest::And(_)
            | BlockTest::Or(_)
            | BlockTest::Xor(..)
            | BlockTest::Not(_) => Ok(NO_ROWS),
        }
    }

    /// Returns the rows that pass or may pass, where a test that needs a message that no longer
    /// exists is not decided.
    ///
    /// # Errors
    /// As [`BlockTest::rows`].
    pub(super) fn bounds(&mut self, state: &mut BlockState<'_>) -> Result<RowBounds, Error> {
        state.budget.spend(WORK_PER_TEST, || self.to_string())?;
        Ok(match self {
            BlockTest::And(tests) => tests.bounds(state)?,
            BlockTest::Or(tests) => {
                let mut all = RowBounds::from_rows(NO_ROWS);
                for test in tests {
                    let other = test.bounds(state)?;
                    all.certain = combine(&all.certain, &other.certain, |a, b| a | b);
                    all.possible = combine(&all.possible, &other.possible, |a, b| a | b);
                }
                all
            }
            BlockTest::Xor(left, right) => {
                let (a, b) = (left.bounds(state)?, right.bounds(state)?);
                let one_only = |a: &BlockRows, not_a: &BlockRows, b: &BlockRows, not_b| {
                    let a_only = combine(a, not_b, |a, b| a & !b);
                    let b_only = combine(b, not_a, |b, a| b & !a);
                    combine(&a_only, &b_only, |a, b| a | b)
                };
                RowBounds {
                    certain: one_only(&a.certain, &a.possible, &b.certain, &b.possible),
                    possible: one_only(&a.possible, &a.certain, &b.possible, &b.certain),
                }
            }
            BlockTest::Not(test) => {
                let RowBounds { certain, possible } = test.bounds(state)?;
                RowBounds {
                    certain: possible.map(|word| !word),
                    possible: certain.map(|word| !word),
                }
            }
            leaf => {
                let rows = leaf.leaf_rows(state, &ALL_ROWS)?;
                match leaf {
                    BlockTest::Term(_)
                    | BlockTest::Phrase(..)
                    | BlockTest::Positions(_)
                    | BlockTest::Rows(..) => RowBounds::with_undecided(&rows, &state.forgotten),
                    BlockTest::Messages(..) => RowBounds::with_undecided(&rows, &state.gone),
                    _ => RowBounds::from_rows(rows),
                }
            }
        })
    }
}

/// Returns those of the wanted rows that have a phrase.
fn phrase_rows(
    phrase: &mut PhraseCursor,
    range: &Range<u32>,
    state: &BlockState<'_>,
    wanted: &BlockRows,
) -> Result<BlockRows, Error> {
    let name = |phrase: &PhraseCursor| phrase.terms().map(word_of).collect::<Vec<_>>().join(" ");
    let lookups = WORK_PER_TERM.saturating_mul(phrase.terms().count() as u64);
    state.budget.spend(lookups, || name(phrase))?;
    let mut rows = *wanted;
    let max_steps = state.budget.remaining_work() / WORK_PER_POSITION;
    let first_row = state.first_row();
    let is_complete =
        state.words.retain_phrase_rows(phrase, range, first_row, &mut rows, max_steps)?;
    let work = phrase.steps().saturating_mul(WORK_PER_POSITION);
    state.budget.spend(if is_complete { work } else { u64::MAX }, || name(phrase))?;
    Ok(rows)
}

/// Returns the rows of a block from the bits of all rows.
fn rows_of_block(rows: &[u64], block: u32) -> BlockRows {
    let mut found = NO_ROWS;
    for (word, stored) in found.iter_mut().zip(rows.iter().skip(block as usize * BLOCK_WORDS)) {
        *word = *stored;
    }
    found
}

/// Returns the rows whose values pass.
fn select(values: &BlockValues, passes: impl Fn(u32) -> bool) -> BlockRows {
    let mut rows = NO_ROWS;
    for (word, values) in rows.iter_mut().zip(values.chunks(64)) {
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(passes(*value)) << bit;
        }
    }
    rows
}

impl WordAlternatives {
    /// Any of these terms.
    pub(super) fn new(terms: Vec<WordCursor>) -> WordAlternatives {
        WordAlternatives { terms, found: Vec::new() }
    }

    /// Returns the rows of the block that have any of the terms.
    fn rows(&mut self, state: &BlockState<'_>) -> Result<BlockRows, Error> {
        let mut all = NO_ROWS;
        self.found.clear();
        for (number, cursor) in self.terms.iter_mut().enumerate() {
            state.budget.spend(WORK_PER_TERM, || word_of(cursor.term()))?;
            let mut rows = NO_ROWS;
            state.words.rows_in_range(cursor, state.first_row(), &mut rows)?;
            if rows != NO_ROWS {
                all.iter_mut().zip(&rows).for_each(|(word, other)| *word |= other);
                self.found.push((number, rows));
            }
        }
        Ok(all)
    }

    /// Replaces `positions` by those of all terms in a row of the block.
    fn positions(
        &mut self,
        state: &BlockState<'_>,
        place: usize,
        positions: &mut Vec<u32>,
    ) -> Result<(), Error> {
        positions.clear();
        let row = state.first_row() + u32::try_from(place).unwrap_or_default();
        let mut part = Vec::new();
        for (number, rows) in &self.found {
            let is_in_row = rows.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1);
            let Some(cursor) = self.terms.get_mut(*number).filter(|_| is_in_row) else { continue };
            let is_first = positions.is_empty();
            let target = if is_first { &mut *positions } else { &mut part };
            state.words.positions(cursor, row, target)?;
            let work = WORK_PER_MESSAGE + WORK_PER_POSITION * target.len() as u64;
            state.budget.spend(work, || word_of(cursor.term()))?;
            if !is_first {
                positions.append(&mut part);
            }
        }
        if self.terms.len() > 1 {
            positions.sort_unstable();
            positions.dedup();
        }
        Ok(())
    }
}

impl PositionTest {
    fn rows(&mut self, state: &BlockState<'_>, wanted: &BlockRows) -> Result<BlockRows, Error> {
        let mut candidates = *wanted;
        for (word, _) in &mut self.words {
            let rows = word.rows(state)?;
            candidates.iter_mut().zip(rows).for_each(|(word, other)| *word &= other);
            if candidates == NO_ROWS {
                return Ok(NO_ROWS);
            }
        }
        let mut places = Vec::new();
        for_each_row(&mut candidates, |place| places.push(place));
        let mut rows = NO_ROWS;
        let mut positions: Vec<Vec<u32>> = vec![Vec::new(); self.words.len()];
        for place in places {
            if self.is_match(state, place, &mut positions)?
                && let Some(word) = rows.get_mut(place / 64)
            {
                *word |= 1 << (place % 64);
            }
        }
        Ok(rows)
    }

    fn is_match(
        &mut self,
        state: &BlockState<'_>,
        place: usize,
        positions: &mut [Vec<u32>],
    ) -> Result<bool, Error> {
        for ((word, _), positions) in self.words.iter_mut().zip(positions.iter_mut()) {
            word.positions(state, place, positions)?;
            if let Some(range) = &self.range {
                positions.retain(|position| range.contains(position));
            }
            if positions.is_empty() {
                return Ok(false);
            }
        }
        Ok(match (&self.relation, &*positions) {
            (WordRelation::Near { distance, is_ordered: false }, [first, second]) => {
                is_near(first, second, *distance)
            }
            (WordRelation::Near { distance, .. }, [first, second]) => {
                first.iter().any(|position| {
                    let after = second.partition_point(|other| other <= position);
                    second.get(after).is_some_and(|other| other - position <= *distance)
                })
            }
            _ => {
                let distances = self.words.iter().map(|(_, distance)| *distance);
                let terms: Vec<(&[u32], u32)> =
                    positions.iter().map(Vec::as_slice).zip(distances).collect();
                count_phrase(&terms) > 0
            }
        })
    }
}

/// Returns the word of a term, without the byte of its field.
fn word_of(term: &[u8]) -> String {
    String::from_utf8_lossy(term.get(1..).unwrap_or_default()).into_owned()
}

/// The words of a test, for an error.
impl fmt::Display for BlockTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockTest::Term(cursor) => f.write_str(&word_of(cursor.term())),
            BlockTest::Positions(test) => {
                let words = test.words.iter().filter_map(|(word, _)| word.terms.first());
                let words: Vec<String> = words.map(|word| word_of(word.term())).collect();
                f.write_str(&words.join(" "))
            }
            _ => f.write_str("the query"),
        }
    }
}
