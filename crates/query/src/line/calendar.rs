//! The terms of a search line that are about events, tasks and memos.
//!
//! ```text
//! when:WINDOW      an occurrence is in it         alarm:WINDOW     an alarm rings in it
//! start:WINDOW     it begins in it (DTSTART)      due:WINDOW       it is due in it; also end:, completed:, created:, modified:
//! is:recurring     is:completed  is:overdue  is:cancelled  is:all-day  is:event  is:task  is:memo
//! priority:high    1 to 4; normal: 5; low: 6 to 9; or a number
//! ```
//!
//! A window is what [`larder_date_phrase`] reads: `2026-03`, `today..+7d`, `"next friday"`.

use super::Parser;
use crate::error::SyntaxError;
use crate::query::{Comparison, Number, Op, Query, Subject, Test};
use crate::time::{Stamp, TimeTest};
use larder_date_phrase as phrase;
use larder_format::field::calendar_field;
use larder_store::{Kind, What, Window};
use larder_time::civil::Instant;

/// What may stand behind `is:`.
const STATES: &str =
    "recurring, completed, overdue, cancelled, tentative, all-day, event, task, memo, contact";

impl Parser<'_> {
    /// A term of this name and text; `None`: it is not about time.
    pub(super) fn calendar(
        &self,
        at: usize,
        name: &str,
        op: Op,
        text: &str,
    ) -> Result<Option<Query>, SyntaxError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        Ok(Some(match Stamp::named(name) {
            _ if op != Op::Contains => return Ok(None),
            _ if is("is") => self.state(at, text)?,
            _ if is("when") => in_window(self.window(at, text, What::Occurrences)?),
            _ if is("alarm") && !text.is_empty() => {
                in_window(self.window(at, text, What::Alarms)?)
            }
            _ if is("priority") => match self.priority(text) {
                Some(query) => query,
                None => return Ok(None),
            },
            Some(stamp) if text.is_empty() => {
                Query::Test(Test::new(Subject::property(stamp.property()), Op::Exists, ""))
            }
            Some(stamp) => {
                let window = self.window(at, text, What::Occurrences)?;
                Query::Time(TimeTest::Stamp(stamp, window))
            }
            None => return Ok(None),
        }))
    }

    fn window(&self, at: usize, text: &str, what: What) -> Result<Window, SyntaxError> {
        let asker = &self.settings.asker;
        let now = asker.local.civil(asker.now);
        let window = phrase::Window::parse(text, now, &asker.language).map_err(|error| {
            SyntaxError::new(self.line, at, error.to_string())
                .hint("as in when:2026-03, when:today..+7d or when:\"next friday\"")
        })?;
        let instant = |civil| asker.local.instant(civil);
        let (from, to) = (instant(window.from), instant(window.to));
        Ok(Window { from, to, local: asker.local.clone(), what })
    }

    fn state(&self, at: usize, text: &str) -> Result<Query, SyntaxError> {
        let field = |name: &str| {
            let subject = calendar_field(name).map_or(Subject::Nothing, Subject::Field);
            Query::Test(Test::new(subject, Op::Exists, ""))
        };
        Ok(match text.to_ascii_lowercase().as_str() {
            "recurring" => field("recurring"),
            "completed" | "done" => field("done"),
            "cancelled" | "canceled" => self.status("CANCELLED"),
            "tentative" => self.status("TENTATIVE"),
            "all-day" | "allday" | "all_day" => field("all_day"),
            "overdue" => {
                let asker = &self.settings.asker;
                // What is due now is overdue: a window ends before its end.
                let (from, to, local) = (Instant::MIN, asker.now.plus(1), asker.local.clone());
                let before = Window { from, to, local, what: What::Occurrences };
                let not = |query| Query::Not(Box::new(query));
                let (done, cancelled) = (field("done"), self.status("CANCELLED"));
                // What takes longest comes last.
                let overdue = Query::Time(TimeTest::Overdue(before));
                Query::And(vec![Query::Kind(Kind::Task), not(done), not(cancelled), overdue])
            }
            "event" => Query::Kind(Kind::Event),
            "task" => Query::Kind(Kind::Task),
            "memo" => Query::Kind(Kind::Memo),
            "contact" => Query::Kind(Kind::Contact),
            _ => {
                let what = format!("nothing is known of is:{text}");
                return Err(SyntaxError::new(self.line, at, what)
                    .hint(format!("behind is: may stand {STATES}")));
            }
        })
    }

    fn status(&self, status: &str) -> Query {
        let subject = calendar_field("status").map_or(Subject::Nothing, Subject::Field);
        Query::Test(Test::new(subject, Op::Is, status))
    }

    fn priority(&self, text: &str) -> Option<Query> {
        let field = calendar_field("priority")?;
        let is = |comparison, value| Query::Number(Number::Field(field), comparison, value);
        Some(match text.to_ascii_lowercase().as_str() {
            "high" => Query::And(vec![is(Comparison::Greater, 0), is(Comparison::Less, 5)]),
            "normal" | "medium" => is(Comparison::Equal, 5),
            "low" => is(Comparison::Greater, 5),
            "none" => is(Comparison::Less, 1),
            number => is(Comparison::Equal, number.parse().ok()?),
        })
    }
}

fn in_window(window: Window) -> Query {
    Query::Time(TimeTest::In(window))
}
