//! The plan of a search for messages, with the number of messages that each of its tests passes.
//!
//! Separate from the search, which combines the tests block by block and counts none of them alone.

use super::MailSearch;
use super::block_test::BlockTest;
use super::compilation::rank;
use crate::error::Error;
use crate::mail_query::MailQuery;
use larder_store::MailColumn;

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
    /// The number of messages that match.
    pub matched: u64,
}

impl MailSearch<'_> {
    /// Explains how the messages that match a query are found. Takes as much work as to count the
    /// messages of each part of the query.
    ///
    /// # Errors
    /// As [`MailSearch::find_newest`].
    pub fn explain(&self, query: &MailQuery) -> Result<MailExplanation, Error> {
        self.budget.restart();
        let mut plan = Vec::new();
        let matched = self.explain_part(query, 0, &mut plan)?;
        let dates = self.compile(query)?.date_range();
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

    /// Adds the lines of a part of a query. Returns the number of messages that match it.
    fn explain_part(
        &self,
        query: &MailQuery,
        depth: usize,
        plan: &mut Vec<String>,
    ) -> Result<u64, Error> {
        let (operator, parts): (_, Vec<&MailQuery>) = match query {
            MailQuery::Existing(query) => return self.explain_part(query, depth, plan),
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
        let place = plan.len();
        plan.push(String::new());
        for part in parts {
            self.explain_part(part, depth + 1, plan)?;
        }
        let mut test = self.compile(query)?;
        let mut matched = 0;
        self.for_each_block(0, &mut test, &mut |_, rows| {
            matched += rows.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        })?;
        let (indent, noun) =
            ("  ".repeat(depth), if matched == 1 { "message" } else { "messages" });
        if let Some(line) = plan.get_mut(place) {
            *line = match operator {
                Some(operator) => format!("{indent}{operator}: {matched} {noun}"),
                None => format!("{indent}{query}: {}, {matched} {noun}", describe_test(&test)),
            };
        }
        Ok(matched)
    }
}

/// Returns what a test without parts of the query reads.
fn describe_test(test: &BlockTest) -> String {
    let text = match test {
        BlockTest::All => "every message",
        BlockTest::Nothing => "no message",
        BlockTest::Term(_) => "posting list",
        BlockTest::Phrase(..) | BlockTest::Positions(_) => "posting lists with positions",
        BlockTest::Rows(_) => "posting lists of the words in the dictionary that match",
        BlockTest::Messages(_) => "messages known by a key",
        BlockTest::Values(MailColumn::Date, _) => "column of dates",
        BlockTest::Values(MailColumn::Size, _) => "column of sizes",
        BlockTest::Values(..) => "column of the times of changes",
        BlockTest::Flags(_) | BlockTest::FlagBit(_) => "column of flags",
        BlockTest::Set(_) => "bitmap of a folder or a label",
        BlockTest::Or(tests) => {
            let mut texts: Vec<String> = tests.iter().map(describe_test).collect();
            texts.dedup();
            return match texts.is_empty() {
                true => "no message".to_string(),
                false => texts.join(", or "),
            };
        }
        BlockTest::And(_) | BlockTest::Xor(..) | BlockTest::Not(_) => "several tests",
    };
    text.to_string()
}
