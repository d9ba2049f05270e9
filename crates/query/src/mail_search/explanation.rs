//! The plan of a search for messages, with the number of messages that each of its tests passes.
//!
//! Separate from the search, which combines the tests block by block and counts none of them alone.

use super::MailSearch;
use super::block_test::BlockTest;
use super::compilation::rank;
use crate::error::Error;
use crate::mail_query::MailQuery;
use larder_store::{MailColumn, MailSet};

/// The plan of a search for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailExplanation {
    /// The query, as an S-expression.
    pub query: String,
    /// A line for each test, in the order in which they are first asked; the parts of a test are
    /// indented.
    pub plan: Vec<String>,
    /// The number of blocks of rows.
    pub blocks: u64,
    /// The number of blocks that may have a date of the query. The others are not read.
    pub dated_blocks: u64,
    /// The number of messages that match; `None`: to count them takes more work than a search may.
    pub matched: Option<u64>,
}

/// The tests of a part of a query, and the number of messages that pass; `None`: to compile or to
/// count them takes more work than is left.
type CountedTest = (Option<BlockTest>, Option<u64>);

impl MailSearch<'_> {
    /// Explains how the messages that match a query are found. The messages of the query are
    /// counted within the work of one search, and those of its parts within that of another one:
    /// from the first part that takes more, parts have no number. So what a search finds can be
    /// explained.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn explain(&self, query: &MailQuery) -> Result<MailExplanation, Error> {
        self.budget.restart();
        let query = &self.searched_query(query);
        let mut test = self.compile(query)?;
        let dates = test.date_range();
        let matched = self.count_matches(&mut test)?;
        self.budget.restart();
        let mut plan = Vec::new();
        self.explain_counted(query, (Some(test), matched), 0, &mut plan)?;
        let blocks = self.mail.blocks()?;
        let dated_blocks = blocks.iter().filter(|one| {
            dates
                .as_ref()
                .is_some_and(|dates| one.newest >= *dates.start() && one.oldest <= *dates.end())
        });
        Ok(MailExplanation {
            query: query.to_string(),
            plan,
            blocks: blocks.len() as u64,
            dated_blocks: dated_blocks.count() as u64,
            matched,
        })
    }

    /// Returns the number of messages that pass a test; `None`: that takes more work than is left.
    fn count_matches(&self, test: &mut BlockTest) -> Result<Option<u64>, Error> {
        let mut count = 0;
        within_budget(self.for_each_block(0, test, &mut |_, rows| {
            count += rows.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }))
        .map(|counted| counted.map(|()| count))
    }

    /// Returns the tests of a part of a query and the number of messages that pass, as far as the
    /// work that is left suffices.
    fn count_part(&self, query: &MailQuery) -> Result<CountedTest, Error> {
        // A part is compiled for itself and for each part around it. A word may be looked up before
        // its work is counted, so nothing is looked up after the end of the budget.
        if self.budget.remaining_work() == 0 {
            return Ok((None, None));
        }
        let Some(mut test) = within_budget(self.compile(query))? else { return Ok((None, None)) };
        let count = self.count_matches(&mut test)?;
        Ok((Some(test), count))
    }

    /// Adds the lines of a part of a query.
    fn explain_part(
        &self,
        query: &MailQuery,
        depth: usize,
        plan: &mut Vec<String>,
    ) -> Result<(), Error> {
        self.explain_counted(query, self.count_part(query)?, depth, plan)
    }

    /// Adds the lines of a part of a query that was counted.
    fn explain_counted(
        &self,
        query: &MailQuery,
        counted: CountedTest,
        depth: usize,
        plan: &mut Vec<String>,
    ) -> Result<(), Error> {
        let (operator, parts): (_, Vec<&MailQuery>) = match query {
            MailQuery::Existing(query) => return self.explain_counted(query, counted, depth, plan),
            MailQuery::And(all) => {
                let mut parts: Vec<&MailQuery> = all.iter().collect();
                parts.sort_by_key(|part| rank(part));
                (Some("all of these"), parts)
            }
            MailQuery::Or(any) => (Some("any of these"), any.iter().collect()),
            MailQuery::Xor(left, right) => (Some("one of these"), vec![left, right]),
            MailQuery::Not(query) => (Some("all but these"), vec![query]),
            MailQuery::ThreadOf(query) => (Some("the threads of these"), vec![query]),
            _ => (None, Vec::new()),
        };
        let (test, count) = counted;
        let count = match count {
            Some(1) => "1 message".to_string(),
            Some(count) => format!("{count} messages"),
            None => "too expensive to be counted".to_string(),
        };
        let indent = "  ".repeat(depth);
        plan.push(match (operator, &test) {
            (Some(operator), _) => format!("{indent}{operator}: {count}"),
            (None, Some(test)) => format!("{indent}{query}: {}, {count}", describe_test(test)),
            (None, None) => format!("{indent}{query}: {count}"),
        });
        parts.into_iter().try_for_each(|part| self.explain_part(part, depth + 1, plan))
    }
}

/// Returns the result of work; `None`: it was more than the budget.
fn within_budget<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::MailWorkLimit { .. }) => Ok(None),
        result => result.map(Some),
    }
}

/// Returns what a test without parts of the query reads.
fn describe_test(test: &BlockTest) -> String {
    let text = match test {
        BlockTest::All | BlockTest::HasMessage => "every message",
        BlockTest::Nothing => "no message",
        BlockTest::Term(_) => "posting list",
        BlockTest::Phrase(..) | BlockTest::Positions(_) => "posting lists with positions",
        BlockTest::Rows(_, origin) | BlockTest::Messages(_, origin) => origin.describe(),
        BlockTest::Values(MailColumn::Date, _) => "column of dates",
        BlockTest::Values(MailColumn::Size, _) => "column of sizes",
        BlockTest::Values(..) => "column of the times of changes",
        BlockTest::Flags(_) | BlockTest::FlagBit(_) => "column of flags",
        BlockTest::Set(MailSet::Folder(_)) => "bitmap of a folder",
        BlockTest::Set(MailSet::Label(_)) => "bitmap of a label",
        BlockTest::Set(MailSet::Reread) => "bitmap of messages that were read again",
        BlockTest::Or(tests) => {
            let mut texts: Vec<String> = tests.iter().map(describe_test).collect();
            texts.dedup();
            return match texts.is_empty() {
                true => "no message".to_string(),
                false => texts.join(", or "),
            };
        }
        // A phrase with common pairs.
        BlockTest::And(tests) if tests.iter().any(|test| matches!(test, BlockTest::Phrase(..))) => {
            "posting lists with positions"
        }
        BlockTest::And(_) | BlockTest::Xor(..) | BlockTest::Not(_) => "several tests",
    };
    text.to_string()
}
