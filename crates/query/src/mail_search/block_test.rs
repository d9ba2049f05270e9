//! The tests of a query on the rows of one block.

use crate::error::Error;
use crate::step_counter::StepCounter;
use larder_store::message_flags::MessageFlags;
use larder_store::position_list::{count_phrase, is_near};
use larder_store::{
    BLOCK_ROWS, BLOCK_WORDS, BlockRows, BlockValues, FormerMailStates, MailColumn, MailReader,
    MailSet, OpenMailWords, WordCursor,
};
use std::fmt;
use std::ops::{Range, RangeInclusive};

/// No rows.
const NO_ROWS: BlockRows = [0; BLOCK_WORDS];
/// All rows.
const ALL_ROWS: BlockRows = [u64::MAX; BLOCK_WORDS];

/// The steps of a test of one block: a step is about a nanosecond.
const STEPS_PER_TEST: u64 = 50;
/// The steps of looking a word up in one block.
const STEPS_PER_TERM: u64 = 1500;
/// The steps of reading the positions of a word in one message.
const STEPS_PER_MESSAGE: u64 = 50;

/// A test of a query. The words of a test have cursors, which stay where they were for the next
/// block.
pub(super) enum BlockTest {
    All,
    Nothing,
    And(Vec<BlockTest>),
    Or(Vec<BlockTest>),
    Xor(Box<BlockTest>, Box<BlockTest>),
    Not(Box<BlockTest>),
    /// Messages with a term.
    Term(WordCursor),
    /// Messages in which words stand at certain positions.
    Positions(PositionTest),
    /// The rows that have any of some terms, as bits by row.
    Rows(Vec<u64>),
    /// These messages, as bits by row. Only messages that exist are among them.
    Messages(Vec<u64>),
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
    steps: &'s StepCounter,
    block: u32,
    /// The states that replace the present ones.
    former: Option<&'s FormerMailStates>,
    /// The rows whose message no longer exists.
    gone: BlockRows,
    /// Those of them whose words are no longer indexed.
    forgotten: BlockRows,
    /// Whether a test that cannot be decided passes.
    is_lenient: bool,
    columns: [(MailColumn, bool, BlockValues); 5],
}

impl<'s> BlockState<'s> {
    pub(super) fn new(
        mail: &'s MailReader<'s>,
        words: &'s OpenMailWords<'s>,
        steps: &'s StepCounter,
    ) -> BlockState<'s> {
        let columns = [
            MailColumn::Date,
            MailColumn::Flags,
            MailColumn::Thread,
            MailColumn::Size,
            MailColumn::Changed,
        ];
        BlockState {
            mail,
            words,
            steps,
            block: 0,
            former: None,
            gone: NO_ROWS,
            forgotten: NO_ROWS,
            is_lenient: true,
            columns: columns.map(|one| (one, false, Vec::new())),
        }
    }

    /// Replaces the present states by former ones. A test that cannot be decided, because its
    /// message no longer exists, passes.
    pub(super) fn with_former(self, former: &'s FormerMailStates) -> BlockState<'s> {
        BlockState { former: Some(former), ..self }
    }

    /// Sets the rows of the block whose message no longer exists, and those of them whose words are
    /// no longer indexed.
    pub(super) fn set_gone(&mut self, gone: BlockRows, forgotten: BlockRows) {
        (self.gone, self.forgotten) = (gone, forgotten);
    }

    /// Goes to a block.
    pub(super) fn visit(&mut self, block: u32) {
        self.block = block;
        self.set_gone(NO_ROWS, NO_ROWS);
        self.columns.iter_mut().for_each(|(_, is_read, _)| *is_read = false);
    }

    fn first_row(&self) -> u32 {
        self.block * BLOCK_ROWS
    }

    /// Returns the rows that have a message.
    pub(super) fn present_rows(&mut self) -> Result<BlockRows, Error> {
        Ok(select(self.values(MailColumn::Date)?, |date| date > 0))
    }

    /// Returns the values of a column.
    pub(super) fn values(&mut self, column: MailColumn) -> Result<&BlockValues, Error> {
        let place = column as usize - 1;
        let (_, is_read, values) = &mut self.columns[place];
        if !*is_read {
            self.mail.values(column, self.block, values)?;
            if let Some(former) = self.former {
                former.restore_values(column, self.block, values);
            }
            *is_read = true;
        }
        Ok(&self.columns[place].2)
    }

    fn set(&self, set: MailSet) -> Result<BlockRows, Error> {
        let mut rows = self.mail.set(set, self.block)?;
        if let Some(former) = self.former {
            former.restore_set(set, self.block, &mut rows);
        }
        Ok(rows)
    }

    /// Returns the rows that pass a test that is not decided for some rows.
    fn decide(&self, rows: &BlockRows, undecided: &BlockRows) -> BlockRows {
        match self.is_lenient {
            true => combine(rows, undecided, |rows, undecided| rows | undecided),
            false => combine(rows, undecided, |rows, undecided| rows & !undecided),
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
    /// Returns the test of unread messages.
    pub(super) fn unread() -> BlockTest {
        BlockTest::Flags(MessageFlags::is_unread)
    }

    /// Returns the rows of the block that pass. Rows without a message may be among them.
    ///
    /// # Errors
    /// [`Error::MailStepLimit`], or the store cannot be read.
    pub(super) fn rows(&mut self, state: &mut BlockState<'_>) -> Result<BlockRows, Error> {
        state.steps.count_mail(STEPS_PER_TEST, || self.to_string())?;
        match self {
            BlockTest::All => Ok(ALL_ROWS),
            BlockTest::Nothing => Ok(NO_ROWS),
            BlockTest::And(tests) => {
                let mut rows = ALL_ROWS;
                for test in tests {
                    let other = test.rows(state)?;
                    rows.iter_mut().zip(other).for_each(|(word, other)| *word &= other);
                    if rows == NO_ROWS {
                        break;
                    }
                }
                Ok(rows)
            }
            BlockTest::Or(tests) => {
                let mut rows = NO_ROWS;
                for test in tests {
                    let other = test.rows(state)?;
                    rows.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
                }
                Ok(rows)
            }
            BlockTest::Xor(left, right) => {
                let (a, b) = (left.rows(state)?, right.rows(state)?);
                if state.gone == NO_ROWS {
                    return Ok(combine(&a, &b, |a, b| a ^ b));
                }
                // Each side with the opposite decision: a row that may pass one of them may be a
                // match only if it may fail the other one.
                let is_lenient = state.is_lenient;
                state.is_lenient = !is_lenient;
                let opposite = left.rows(state).and_then(|a| Ok((a, right.rows(state)?)));
                state.is_lenient = is_lenient;
                let (c, d) = opposite?;
                let left_only = combine(&a, &d, |a, d| a & !d);
                let right_only = combine(&b, &c, |b, c| b & !c);
                Ok(combine(&left_only, &right_only, |a, b| a | b))
            }
            BlockTest::Not(test) => {
                state.is_lenient = !state.is_lenient;
                let rows = test.rows(state);
                state.is_lenient = !state.is_lenient;
                Ok(rows?.map(|word| !word))
            }
            BlockTest::Term(cursor) => {
                state.steps.count_mail(STEPS_PER_TERM, || word_of(cursor))?;
                let mut rows = NO_ROWS;
                state.words.rows_in_range(cursor, state.first_row(), &mut rows)?;
                Ok(state.decide(&rows, &state.forgotten))
            }
            BlockTest::Positions(test) => {
                let rows = test.rows(state)?;
                Ok(state.decide(&rows, &state.forgotten))
            }
            BlockTest::Rows(rows) => {
                Ok(state.decide(&rows_of_block(rows, state.block), &state.forgotten))
            }
            BlockTest::Messages(rows) => {
                Ok(state.decide(&rows_of_block(rows, state.block), &state.gone))
            }
            BlockTest::Values(column, range) => {
                Ok(select(state.values(*column)?, |value| range.contains(&value)))
            }
            BlockTest::Flags(passes) => Ok(select(state.values(MailColumn::Flags)?, |value| {
                passes(MessageFlags::from_bits(value as u16))
            })),
            BlockTest::FlagBit(bit) => {
                let bit = u32::from(*bit);
                Ok(select(state.values(MailColumn::Flags)?, |value| value & bit != 0))
            }
            BlockTest::Set(set) => state.set(*set),
        }
    }
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
            state.steps.count_mail(STEPS_PER_TERM, || word_of(cursor))?;
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
            let steps = STEPS_PER_MESSAGE + target.len() as u64;
            state.steps.count_mail(steps, || word_of(cursor))?;
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
    fn rows(&mut self, state: &mut BlockState<'_>) -> Result<BlockRows, Error> {
        let mut candidates = ALL_ROWS;
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

/// Returns the word of a cursor, without the byte of its field.
fn word_of(cursor: &WordCursor) -> String {
    String::from_utf8_lossy(cursor.term().get(1..).unwrap_or_default()).into_owned()
}

/// The words of a test, for an error.
impl fmt::Display for BlockTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockTest::Term(cursor) => f.write_str(&word_of(cursor)),
            BlockTest::Positions(test) => {
                let words = test.words.iter().filter_map(|(word, _)| word.terms.first());
                f.write_str(&words.map(word_of).collect::<Vec<_>>().join(" "))
            }
            _ => f.write_str("the query"),
        }
    }
}
