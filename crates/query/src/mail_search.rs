//! Searching mail: a query is tested on blocks of rows, the newest first.
//!
//! The rows of a block are a bitmap. Each test of a query answers for a whole block at once, from
//! the index of words, a column or a set, and `and`, `or` and `not` are operations on words of 64
//! rows. A search for the newest messages reads the blocks in the order of their newest dates and
//! stops when no further block can hold a newer message than those that it has. So its cost does
//! not grow with the mail, and it never sorts what it does not return.
//!
//! Separate from `plan` and `verification`, which list candidates of other kinds and then test each
//! item: a message has its bytes in a file, which no search reads.
//!
//! | module | content |
//! |---|---|
//! | `answer_difference` | the difference between the answers at two states |
//! | `block_test` | the tests of a query, by block |
//! | `commit` | the tests that only commits have |
//! | `compilation` | from a query to tests |
//! | `counts` | the counts of many queries in one pass |
//! | `expansion` | from parts of words to words |
//! | `explanation` | the plan of a search |
//! | `folder_tests` | the tests of folders and of files |
//! | `header_test` | tests of header fields |
//! | `list_order` | [`MailSort`]: the orders of lists |
//! | `message_list` | lists of messages |
//! | `missing_names` | hints for a search that found nothing |
//! | `name_check` | the names in a query that no message has |
//! | `named_message` | the message that a Message-ID names |
//! | `pattern_parts` | the parts of words that a pattern requires |
//! | `row_origin` | where known rows come from |
//! | `row_values` | values of a column by row |
//! | `thread_list` | lists of threads |
//! | `work_budget` | the bound of the work of a search |

mod answer_difference;
mod block_test;
mod commit;
mod compilation;
mod counts;
mod expansion;
mod explanation;
mod folder_tests;
mod header_test;
mod list_order;
mod message_list;
mod missing_names;
mod name_check;
mod named_message;
mod pattern_parts;
mod row_origin;
mod row_values;
mod thread_list;
mod work_budget;

pub(crate) use self::compilation::{compile_pattern, is_unspaced_text, query_words};
pub use self::compilation::{format_thread_id, parse_thread_id};
pub use self::explanation::MailExplanation;
pub use self::list_order::{MailSort, MailSortKey, without_reply_prefixes};
pub use self::message_list::{ListedMessage, MailListRequest};
pub use self::named_message::NamedMessage;
pub use self::thread_list::{ListedThread, ThreadMember};
pub use counts::MailCount;

pub(crate) use self::answer_difference::{AnswerDifference, QueryPair};
use crate::error::Error;
use crate::mail_query::MailQuery;
use block_test::{BlockState, BlockTest, for_each_row};
use larder_store::{BLOCK_ROWS, BlockRows, MailColumn, MailReader, OpenMailWords};
use std::collections::BTreeMap;
use std::path::PathBuf;
use work_budget::WorkBudget;

/// A message that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailHit {
    /// The date, in seconds since 1970; 0: unknown. Beyond 2106, and before 1970, the nearest one.
    pub date: u32,
    /// The row.
    pub row: u32,
}

/// The absolute paths of the maildirs, by the names of their collections.
pub type MailRoots = BTreeMap<String, PathBuf>;

/// No maildirs.
static NO_ROOTS: MailRoots = BTreeMap::new();

/// Searches the mail of one state of the store.
pub struct MailSearch<'m> {
    mail: &'m MailReader<'m>,
    words: OpenMailWords<'m>,
    roots: &'m MailRoots,
    /// The work that is left for the current query.
    budget: WorkBudget,
}

impl<'m> MailSearch<'m> {
    /// Opens the index. Messages of the collections that the reader leaves out are in no answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(
        mail: &'m MailReader<'m>,
        words: &'m larder_store::MailWords<'m>,
    ) -> Result<MailSearch<'m>, Error> {
        let budget = WorkBudget::default();
        Ok(MailSearch { mail, words: words.open()?, roots: &NO_ROOTS, budget })
    }

    /// Sets the work that a query may take, in units of about a nanosecond.
    #[must_use]
    pub fn with_max_work(self, max_work: u64) -> MailSearch<'m> {
        MailSearch { budget: WorkBudget::new(max_work), ..self }
    }

    /// Finds files by the paths of their maildirs, too.
    #[must_use]
    pub fn with_roots(self, roots: &'m MailRoots) -> MailSearch<'m> {
        MailSearch { roots, ..self }
    }

    /// Returns the newest messages that match, at most `limit`, the newest first. Of messages with
    /// the same date, the one that was indexed last is first.
    ///
    /// # Errors
    /// The store cannot be read, the query takes too much work, or it has a test that is not
    /// supported.
    pub fn find_newest(&self, query: &MailQuery, limit: usize) -> Result<Vec<MailHit>, Error> {
        self.budget.restart();
        let mut test = self.compile_searched(query)?;
        let mut hits: Vec<MailHit> = Vec::new();
        let Some(dates) = test.date_range().filter(|_| limit > 0) else { return Ok(hits) };
        let mut state = BlockState::new(self.mail, &self.words, &self.budget);
        for one in self.mail.newest_blocks()? {
            if one.newest < *dates.start() {
                break;
            }
            if one.oldest > *dates.end() {
                continue;
            }
            if hits.len() >= limit {
                let (_, least, _) = hits.select_nth_unstable_by(limit - 1, |a, b| b.cmp(a));
                // The blocks have dates plus one.
                if least.date >= one.newest {
                    break;
                }
                hits.truncate(limit);
            }
            state.visit_dated(one);
            let mut rows = test.message_rows(&mut state)?;
            if rows.iter().all(|word| *word == 0) {
                continue;
            }
            let dates = state.values(MailColumn::Date)?;
            for_each_row(&mut rows, |place| {
                if let Some(date) = dates.get(place).and_then(|date| date.checked_sub(1)) {
                    let row = one.block * BLOCK_ROWS + u32::try_from(place).unwrap_or_default();
                    hits.push(MailHit { date, row });
                }
            });
        }
        hits.sort_unstable_by(|a, b| b.cmp(a));
        hits.truncate(limit);
        Ok(hits)
    }

    /// Returns the number of messages that match.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn count(&self, query: &MailQuery) -> Result<u64, Error> {
        self.budget.restart();
        let mut count = 0;
        self.for_each_block(0, &mut self.compile_searched(query)?, &mut |_, rows| {
            count += rows.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        })?;
        Ok(count)
    }

    /// Passes the row of each message that matches to `visit`, ascending.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn for_each_match(
        &self,
        query: &MailQuery,
        visit: &mut dyn FnMut(u32),
    ) -> Result<(), Error> {
        self.budget.restart();
        let mut test = self.compile_searched(query)?;
        self.for_each_row(&mut test, visit)
    }

    /// Passes the row of each message in the rows from `first` on that matches to `visit`,
    /// ascending. Costs as much as these rows.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn for_each_match_from(
        &self,
        first: u32,
        query: &MailQuery,
        visit: &mut dyn FnMut(u32),
    ) -> Result<(), Error> {
        self.budget.restart();
        let mut test = self.compile_searched(query)?;
        self.for_each_row_from(first, &mut test, visit)
    }

    fn for_each_row(&self, test: &mut BlockTest, visit: &mut dyn FnMut(u32)) -> Result<(), Error> {
        self.for_each_row_from(0, test, visit)
    }

    /// Passes the rows from `first` on that pass a test to `visit`, ascending.
    fn for_each_row_from(
        &self,
        first: u32,
        test: &mut BlockTest,
        visit: &mut dyn FnMut(u32),
    ) -> Result<(), Error> {
        self.for_each_block(first / BLOCK_ROWS, test, &mut |block, mut rows| {
            for_each_row(&mut rows, |place| {
                let row = block * BLOCK_ROWS + u32::try_from(place).unwrap_or_default();
                if row >= first {
                    visit(row);
                }
            });
        })
    }

    /// Passes the blocks from `first_block` on, ascending, and the messages in them that pass a
    /// test to `visit`. Blocks that have none may be left out.
    fn for_each_block(
        &self,
        first_block: u32,
        test: &mut BlockTest,
        visit: &mut dyn FnMut(u32, BlockRows),
    ) -> Result<(), Error> {
        let Some(dates) = test.date_range() else { return Ok(()) };
        let mut state = BlockState::new(self.mail, &self.words, &self.budget);
        let blocks = self.mail.blocks()?;
        let from = blocks.partition_point(|one| one.block < first_block);
        for one in blocks.get(from..).unwrap_or_default() {
            if one.newest >= *dates.start() && one.oldest <= *dates.end() {
                state.visit_dated(one);
                visit(one.block, test.message_rows(&mut state)?);
            }
        }
        Ok(())
    }
}
