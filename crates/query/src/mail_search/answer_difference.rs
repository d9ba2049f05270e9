//! The difference between the answers to a query at two states of the mail.
//!
//! The text of a message never changes, so the index of words answers for the former state, too;
//! values and sets are restored from before-images. Separate from `block_test`, which evaluates a
//! query at one state.

use super::MailSearch;
use super::block_test::{BlockState, BlockTest, NO_ROWS, combine, for_each_row};
use crate::error::Error;
use crate::mail_query::{FolderTest, MailQuery};
use larder_store::{BLOCK_ROWS, BlockRows, FormerMailStates, MessageTermField, write_message_term};

/// The rows by which two answers differ, ascending.
#[derive(Debug, Default)]
pub(crate) struct AnswerDifference {
    /// Messages that are in the later answer only.
    pub(crate) added: Vec<u32>,
    /// Changed messages that are in both.
    pub(crate) modified: Vec<u32>,
    /// Messages that are in the former answer only. A message that no longer exists may be among
    /// them although it never matched, if its words are no longer in the index.
    pub(crate) removed: Vec<u32>,
}

/// Two queries, or one query at two times.
pub(crate) struct QueryPair<'q> {
    /// The query of the former answer.
    pub(crate) former: &'q MailQuery,
    /// The query of the later answer.
    pub(crate) present: &'q MailQuery,
}

/// The tests of a pair of queries. Equal queries have one: to compile a query may take longer than
/// to test what changed.
struct TestPair {
    /// The tests of the former query, if it is another one.
    former: Option<BlockTest>,
    present: BlockTest,
}

impl TestPair {
    fn new(search: &MailSearch<'_>, queries: &QueryPair<'_>) -> Result<TestPair, Error> {
        let is_same = queries.former == queries.present;
        let former = (!is_same).then(|| search.compile_searched(queries.former)).transpose()?;
        Ok(TestPair { former, present: search.compile_searched(queries.present)? })
    }

    fn former(&mut self) -> &mut BlockTest {
        self.former.as_mut().unwrap_or(&mut self.present)
    }
}

impl MailQuery {
    /// Returns whether its answer has a message because of the message itself. Otherwise a change
    /// of one message may affect others.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            MailQuery::And(all) | MailQuery::Or(all) => all.iter().all(MailQuery::is_local),
            MailQuery::Xor(left, right) => left.is_local() && right.is_local(),
            MailQuery::Not(query) | MailQuery::Existing(query) => query.is_local(),
            // Files have no before-images.
            MailQuery::Thread(_) | MailQuery::ThreadOf(_) | MailQuery::Path(_) => false,
            // The folders that these name depend on those that are there.
            MailQuery::Folder(FolderTest::Named(_) | FolderTest::Within(_)) => false,
            _ => true,
        }
    }
}

impl MailSearch<'_> {
    /// Returns the difference between the answer at former states and the present one. The queries
    /// are local.
    pub(crate) fn diff_answers(
        &self,
        queries: &QueryPair<'_>,
        former: &FormerMailStates,
    ) -> Result<AnswerDifference, Error> {
        self.budget.restart();
        let mut difference = AnswerDifference::default();
        let mut tests = TestPair::new(self, queries)?;
        let mut states = (
            BlockState::new(self.mail, &self.words, &self.budget).with_former(former),
            BlockState::new(self.mail, &self.words, &self.budget),
        );
        let mut marker = self.marker_test();
        let mut add_block = |block: u32, changed: &BlockRows, is_whole: bool| {
            states.0.visit(block);
            states.1.visit(block);
            let lived = states.0.message_rows()?;
            let live = states.1.message_rows()?;
            let gone = combine(&lived, &live, |lived, live| lived & !live);
            if gone != NO_ROWS {
                let indexed = marker.rows(&mut states.1, &gone)?;
                let forgotten = combine(&gone, &indexed, |gone, indexed| gone & !indexed);
                states.0.set_gone(gone, forgotten);
            }
            let is_gone = gone != NO_ROWS;
            let former = tests.former();
            let matched = match is_gone {
                true => former.bounds(&mut states.0)?.possible,
                false => former.rows(&mut states.0, &lived)?,
            };
            let mut matched = combine(&matched, &lived, |a, b| a & b);
            let matches = tests.present.rows(&mut states.1, &live)?;
            let mut matches = combine(&matches, &live, |a, b| a & b);
            if !is_whole {
                matched = combine(&matched, changed, |a, b| a & b);
                matches = combine(&matches, changed, |a, b| a & b);
            }
            let push = |list: &mut Vec<u32>, mut rows: BlockRows| {
                for_each_row(&mut rows, |place| {
                    list.push(block * BLOCK_ROWS + u32::try_from(place).unwrap_or_default());
                });
            };
            push(&mut difference.added, combine(&matches, &matched, |a, b| a & !b));
            push(&mut difference.removed, combine(&matched, &matches, |a, b| a & !b));
            let both = combine(&matched, &matches, |a, b| a & b);
            push(&mut difference.modified, combine(&both, changed, |a, b| a & b));
            Ok::<(), Error>(())
        };
        if queries.former == queries.present {
            former.changed_blocks().try_for_each(|(block, rows)| add_block(block, rows, false))?;
        } else {
            for block in 0..self.mail.end_row()?.div_ceil(BLOCK_ROWS) {
                add_block(block, &former.changed_rows(block), true)?;
            }
        }
        Ok(difference)
    }

    /// Returns the test of the term that each message has. A merge of the index drops it before all
    /// other terms of a message that no longer exists.
    fn marker_test(&self) -> BlockTest {
        let mut term = Vec::new();
        write_message_term(&mut term, MessageTermField::Message, "");
        BlockTest::Term(self.words.cursor(&term))
    }
}
