//! Counting the messages of many queries in one pass over the blocks.
//!
//! Separate from the other searches, which serve one query: what is read of a block, its columns,
//! serves all of them.

use super::MailSearch;
use super::block_test::{BlockState, BlockTest};
use crate::error::Error;
use crate::mail_query::MailQuery;
use larder_store::BlockRows;

/// The number of messages that match a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MailCount {
    /// All of them.
    pub messages: u64,
    /// Those that are unread.
    pub unread: u64,
}

impl MailSearch<'_> {
    /// Returns the number of messages that match each query.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn count_each(&self, queries: &[MailQuery]) -> Result<Vec<MailCount>, Error> {
        self.budget.restart();
        let compiled: Result<Vec<_>, Error> =
            queries.iter().map(|one| self.compile_searched(one)).collect();
        let mut tests = compiled?;
        let mut counts = vec![MailCount::default(); tests.len()];
        let mut unread_test = BlockTest::unread();
        let mut state = BlockState::new(self.mail, &self.words, &self.budget);
        for one in self.mail.blocks()? {
            state.visit_dated(one);
            let messages = state.message_rows()?;
            let unread = and(unread_test.rows(&mut state, &messages)?, &messages);
            for (test, count) in tests.iter_mut().zip(&mut counts) {
                let rows = and(test.rows(&mut state, &messages)?, &messages);
                count.messages += count_bits(&rows);
                count.unread += count_bits(&and(rows, &unread));
            }
        }
        Ok(counts)
    }
}

fn and(mut rows: BlockRows, other: &BlockRows) -> BlockRows {
    rows.iter_mut().zip(other).for_each(|(word, other)| *word &= other);
    rows
}

fn count_bits(rows: &BlockRows) -> u64 {
    rows.iter().map(|word| u64::from(word.count_ones())).sum()
}
