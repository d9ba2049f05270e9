//! The terms of a search line for events, tasks and memos.
//!
//! Separate from `search_line` because these terms need the user's time zone and language.
//!
//! ```text
//! when:WINDOW      an occurrence is in it         alarm:WINDOW     an alarm goes off in it
//! start:WINDOW     DTSTART is in it               due:WINDOW       DUE is in it
//! also end:, completed:, created:, modified:
//! is:recurring     is:completed  is:overdue  is:cancelled  is:all-day  is:event  is:task  is:memo
//! priority:high    1 to 4; normal: 5; low: 6 to 9; or a number
//! ```
//!
//! A WINDOW is a date phrase (see [`larder_date_phrase`]): `2026-03`, `today..+7d`, `"next
//! friday"`.

use super::{ParsedTerm, SearchLineParser};
use crate::error::SyntaxError;
use crate::query::{Comparison, FieldSelector, FieldTest, MatchOp, NumericOperand, Query};
use crate::time_test::{DateProperty, TimeTest};
use larder_date_phrase::DateRange;
use larder_format::field::find_calendar_field;
use larder_store::{Kind, TimeRange, TimeTarget};
use larder_time::civil::Instant;

/// The values of `is:`, kinds aside, for messages.
const KNOWN_STATES: &str = "recurring, completed, overdue, cancelled, tentative, all-day";

impl SearchLineParser<'_> {
    /// Parses a term of this name and text; `None` if it is not one of this module.
    pub(super) fn parse_calendar_term(
        &self,
        at: usize,
        name: &str,
        op: MatchOp,
        text: &str,
    ) -> Result<Option<ParsedTerm>, SyntaxError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let property = DateProperty::from_search_name(name);
        let query = match property {
            _ if op != MatchOp::ContainsWords => return Ok(None),
            _ if is("is") => return self.parse_state(at, text).map(Some),
            _ if is("when") => {
                time_range_query(self.parse_time_range(at, text, TimeTarget::Occurrences)?)
            }
            _ if is("alarm") && !text.is_empty() => {
                time_range_query(self.parse_time_range(at, text, TimeTarget::Alarms)?)
            }
            _ if is("priority") && !text.is_empty() => self.priority_query(at, text)?,
            Some(property) if text.is_empty() => Query::Test(FieldTest::new(
                FieldSelector::from_property_name(property.property_name()),
                MatchOp::Exists,
                "",
            )),
            Some(property) => {
                let time_range = self.parse_time_range(at, text, TimeTarget::Occurrences)?;
                Query::Time(TimeTest::DateInRange(property, time_range))
            }
            None => return Ok(None),
        };
        Ok(Some(match property {
            Some(DateProperty::Due | DateProperty::Completed) => ParsedTerm::of_due_time(query),
            _ => ParsedTerm::of_schedule(query),
        }))
    }

    fn parse_time_range(
        &self,
        at: usize,
        text: &str,
        target: TimeTarget,
    ) -> Result<TimeRange, SyntaxError> {
        let locale = &self.context.user_locale;
        let now = locale.zone.to_civil(locale.now);
        let time_range = DateRange::parse(text, now, &locale.language).map_err(|error| {
            SyntaxError::new(self.line, at, error.to_string())
                .with_hint("as in when:2026-03, when:today..+7d or when:\"next friday\"")
        })?;
        let instant = |civil| locale.zone.to_instant(civil);
        let (from, to) = (instant(time_range.from), instant(time_range.to));
        Ok(TimeRange { from, to, local_zone: locale.zone.clone(), target })
    }

    fn parse_state(&self, at: usize, text: &str) -> Result<ParsedTerm, SyntaxError> {
        let field = |name: &str| {
            let subject =
                find_calendar_field(name).map_or(FieldSelector::Nothing, FieldSelector::Field);
            Query::Test(FieldTest::new(subject, MatchOp::Exists, ""))
        };
        let query = match text.to_ascii_lowercase().as_str() {
            "recurring" => field("recurring"),
            "completed" | "done" => return Ok(ParsedTerm::of_due_time(field("done"))),
            "cancelled" | "canceled" => self.status_query("CANCELLED"),
            "tentative" => self.status_query("TENTATIVE"),
            "all-day" | "allday" | "all_day" => field("all_day"),
            "overdue" => {
                let locale = &self.context.user_locale;
                // A task that is due now is overdue, and a range excludes its end.
                let (from, to, local) =
                    (Instant::MIN, locale.now.saturating_add(1), locale.zone.clone());
                let before =
                    TimeRange { from, to, local_zone: local, target: TimeTarget::Occurrences };
                let not = |query| Query::Not(Box::new(query));
                let (done, cancelled) = (field("done"), self.status_query("CANCELLED"));
                // The most expensive test comes last.
                let overdue = Query::Time(TimeTest::Overdue(before));
                let all = vec![Query::Kind(Kind::Task), not(done), not(cancelled), overdue];
                return Ok(ParsedTerm::of_due_time(Query::And(all)));
            }
            name => match Kind::from_name(name).filter(|kind| kind.is_searchable()) {
                Some(kind) => return Ok(Query::Kind(kind).into()),
                // It may be a flag or a label of messages.
                None if self.context.is_among_kinds => return Ok(ParsedTerm::of_other_kind()),
                None => {
                    let kinds = Kind::all().filter(|kind| kind.is_searchable()).map(Kind::name);
                    let kinds: Vec<&str> = kinds.collect();
                    let message = format!("unknown value is:{text}");
                    return Err(SyntaxError::new(self.line, at, message)
                        .with_hint(format!("known values: {KNOWN_STATES}, {}", kinds.join(", "))));
                }
            },
        };
        Ok(ParsedTerm::of_schedule(query))
    }

    fn status_query(&self, status: &str) -> Query {
        let subject =
            find_calendar_field("status").map_or(FieldSelector::Nothing, FieldSelector::Field);
        Query::Test(FieldTest::new(subject, MatchOp::Is, status))
    }

    fn priority_query(&self, at: usize, text: &str) -> Result<Query, SyntaxError> {
        let Some(field) = find_calendar_field("priority") else { return Ok(Query::Or(Vec::new())) };
        let is = |comparison, value| Query::Number(NumericOperand::Field(field), comparison, value);
        Ok(match text.to_ascii_lowercase().as_str() {
            "high" => Query::And(vec![is(Comparison::Greater, 0), is(Comparison::Less, 5)]),
            "normal" | "medium" => is(Comparison::Equal, 5),
            "low" => is(Comparison::Greater, 5),
            "none" => is(Comparison::Less, 1),
            number => match number.parse() {
                Ok(number @ 0..=9) => is(Comparison::Equal, number),
                _ => {
                    let message = format!("{text:?} is not a priority");
                    return Err(SyntaxError::new(self.line, at, message)
                        .with_hint("use a number from 0 to 9, high, normal, low or none"));
                }
            },
        })
    }
}

fn time_range_query(time_range: TimeRange) -> Query {
    Query::Time(TimeTest::InRange(time_range))
}
