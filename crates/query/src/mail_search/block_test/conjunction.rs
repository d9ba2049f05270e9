//! Tests that must all pass, in the order that costs least.
//!
//! A test is asked only for the rows that the tests before it have left. How many rows a word or a
//! flag passes is known only after a few blocks, so the order is that of the blocks before: a test
//! comes earlier if it costs less and leaves fewer rows. Counting the messages of each word first
//! would take longer than many a search.
//!
//! Separate from `block_test`, whose tests do not depend on what was found before.

use super::{BlockState, BlockTest, NO_ROWS, RowBounds, combine};
use crate::error::Error;
use larder_store::BlockRows;

/// Tests that must all pass.
pub(in crate::mail_search) struct Conjunction {
    tests: Vec<ObservedTest>,
}

/// A test, and what was seen of it.
struct ObservedTest {
    test: BlockTest,
    /// The number of rows that it was asked for, and of those that passed.
    asked: u64,
    passed: u64,
}

impl Conjunction {
    /// Any rows pass that pass all tests; those that are likely to leave few rows come first.
    pub(in crate::mail_search) fn new(tests: impl IntoIterator<Item = BlockTest>) -> Conjunction {
        let tests = tests.into_iter().map(|test| ObservedTest { test, asked: 0, passed: 0 });
        Conjunction { tests: tests.collect() }
    }

    /// Returns the tests.
    pub(in crate::mail_search) fn iter(&self) -> impl Iterator<Item = &BlockTest> {
        self.tests.iter().map(|observed| &observed.test)
    }

    /// As [`BlockTest::rows`].
    pub(super) fn rows(
        &mut self,
        state: &mut BlockState<'_>,
        wanted: &BlockRows,
    ) -> Result<BlockRows, Error> {
        let mut rows = *wanted;
        for observed in &mut self.tests {
            observed.asked += count_rows(&rows);
            rows = combine(&rows, &observed.test.rows(state, &rows)?, |rows, passed| rows & passed);
            observed.passed += count_rows(&rows);
            if rows == NO_ROWS {
                break;
            }
        }
        // They are mostly in order, so this is one pass.
        self.tests.sort_by_key(ObservedTest::cost);
        Ok(rows)
    }

    /// As [`BlockTest::bounds`].
    pub(super) fn bounds(&mut self, state: &mut BlockState<'_>) -> Result<RowBounds, Error> {
        let mut all: Option<RowBounds> = None;
        for observed in &mut self.tests {
            let other = observed.test.bounds(state)?;
            let both = match all {
                None => other,
                Some(all) => RowBounds {
                    certain: combine(&all.certain, &other.certain, |a, b| a & b),
                    possible: combine(&all.possible, &other.possible, |a, b| a & b),
                },
            };
            if both.possible == NO_ROWS {
                return Ok(both);
            }
            all = Some(both);
        }
        match all {
            Some(all) => Ok(all),
            None => BlockTest::All.bounds(state),
        }
    }
}

impl ObservedTest {
    /// Returns what it costs to remove a row with this test.
    fn cost(&self) -> u64 {
        let Some(passed) = (self.passed * 1000).checked_div(self.asked) else { return u64::MAX };
        let cost = match &self.test {
            BlockTest::All | BlockTest::Nothing | BlockTest::Rows(..) | BlockTest::Messages(..) => {
                1
            }
            // A frequent word has many blocks.
            BlockTest::Term(_) => 2 + passed / 10,
            BlockTest::HasMessage | BlockTest::Set(_) => 5,
            BlockTest::Values(..) | BlockTest::Flags(_) | BlockTest::FlagBit(_) => 10,
            BlockTest::And(_) | BlockTest::Or(_) | BlockTest::Xor(..) | BlockTest::Not(_) => 50,
            BlockTest::Phrase(..) | BlockTest::Positions(_) => 300,
        };
        cost * 1000 / (1001 - passed.min(1000))
    }
}

fn count_rows(rows: &BlockRows) -> u64 {
    rows.iter().map(|word| u64::from(word.count_ones())).sum()
}
