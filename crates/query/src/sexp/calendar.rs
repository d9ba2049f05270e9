//! The functions for events, tasks and memos (ECalBackendSexp), and the times and numbers that they
//! take.
//!
//! Times are computed while they are parsed, in the user's time zone. Ranges are in UTC, as in
//! evolution-data-server, unless the call names a time zone. Separate from `sexp`, which parses the
//! syntax and the functions for contacts.

use super::SexpParser;
use crate::error::SyntaxError;
use crate::query::{Comparison, FieldSelector, FieldTest, MatchOp, NumericOperand, Query};
use crate::time_test::{DateProperty, TimeTest};
use larder_format::field::find_calendar_field;
use larder_store::{Kind, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::value;
use larder_time::zone::Zone;

/// The functions of this module, for messages.
pub(super) const KNOWN_FUNCTIONS: &str = "occur-in-time-range?, due-in-time-range?, has-alarms-in-range?, completed-before?, \
    starts-before?, occurrences-count?, uid?, contains?, has-start?, has-end?, has-due?, has-duration?, has-alarms?, \
    has-attachments?, has-recurrences?, has-categories?, is-completed?, percent-complete?, make-time, time-now, \
    time-add-day, time-day-begin, time-day-end, stamp, overdue?, number, kind";

impl SexpParser<'_> {
    /// Parses a call of one of these functions; `None` if it is another one.
    pub(super) fn parse_calendar_call(
        &mut self,
        name: &str,
        at: usize,
    ) -> Result<Option<Query>, SyntaxError> {
        Ok(Some(match name {
            "occur-in-time-range?" => {
                Query::Time(TimeTest::InRange(self.parse_time_range(TimeTarget::Occurrences)?))
            }
            "has-alarms-in-range?" => {
                Query::Time(TimeTest::InRange(self.parse_time_range(TimeTarget::Alarms)?))
            }
            "due-in-time-range?" => {
                let (from, to) = (self.parse_time()?, self.parse_time()?);
                date_property_query(DateProperty::Due, from, to.saturating_add(1))
            }
            "completed-before?" => {
                date_property_query(DateProperty::Completed, Instant::MIN, self.parse_time()?)
            }
            "starts-before?" => date_property_query(
                DateProperty::Start,
                Instant::MIN,
                self.parse_time()?.saturating_add(1),
            ),
            "uid?" => {
                let text = larder_format::fold::fold(&self.parse_string()?).into_owned();
                let whole = format!(r"\A(?:{})\z", regex::escape(&text));
                self.field_query("uid", MatchOp::RegexNormal, whole)
            }
            "contains?" => self.parse_contains(at)?,
            "has-start?" => property_exists_query("DTSTART"),
            "has-end?" => property_exists_query("DTEND"),
            "has-due?" => property_exists_query("DUE"),
            "has-duration?" => property_exists_query("DURATION"),
            "has-attachments?" => property_exists_query("ATTACH"),
            "has-alarms?" => self.field_query("alarm", MatchOp::Exists, String::new()),
            "has-recurrences?" => self.field_query("recurring", MatchOp::Exists, String::new()),
            "is-completed?" => self.field_query("done", MatchOp::Exists, String::new()),
            "has-categories?" => self.parse_categories()?,
            "stamp" => self.parse_date_property()?,
            "overdue?" => {
                Query::Time(TimeTest::Overdue(self.parse_time_range(TimeTarget::Occurrences)?))
            }
            "kind" => self.parse_kind()?,
            "=" => self.parse_comparison(Comparison::Equal)?,
            "<" => self.parse_comparison(Comparison::Less)?,
            ">" => self.parse_comparison(Comparison::Greater)?,
            _ => return Ok(None),
        }))
    }

    fn field_query(&self, name: &str, op: MatchOp, text: String) -> Query {
        let subject =
            find_calendar_field(name).map_or(FieldSelector::Nothing, FieldSelector::Field);
        Query::Test(FieldTest::new(subject, op, text))
    }

    fn parse_time_range(&mut self, target: TimeTarget) -> Result<TimeRange, SyntaxError> {
        let (from, to) = (self.parse_time()?, self.parse_time()?);
        self.skip_whitespace();
        let mut local = Zone::UTC;
        if self.rest().starts_with('"') {
            let at = self.at;
            let name = self.parse_string()?;
            local = self.context.user_locale.zones.get(&name).ok_or_else(|| {
                self.error(at, format!("unknown time zone {name:?}"))
                    .with_hint("zones have names like Europe/Prague")
            })?;
        }
        Ok(TimeRange { from, to, local_zone: local, target })
    }

    /// `(stamp "DUE" FROM TO ["ZONE"])`, an extension.
    fn parse_date_property(&mut self) -> Result<Query, SyntaxError> {
        self.skip_whitespace();
        let at = self.at;
        let name = self.parse_string()?;
        let stamp = DateProperty::from_property_name(&name).ok_or_else(|| {
            self.error(at, format!("the property {name:?} contains no date or time"))
        })?;
        Ok(Query::Time(TimeTest::DateInRange(
            stamp,
            self.parse_time_range(TimeTarget::Occurrences)?,
        )))
    }

    /// `(kind "event")`, an extension.
    fn parse_kind(&mut self) -> Result<Query, SyntaxError> {
        self.skip_whitespace();
        let at = self.at;
        let name = self.parse_string()?;
        Kind::from_name(&name)
            .map(Query::Kind)
            .ok_or_else(|| self.error(at, format!("{name:?} is not a kind of item")))
    }

    fn parse_contains(&mut self, at: usize) -> Result<Query, SyntaxError> {
        let (name, text) = (self.parse_string()?, self.parse_string()?);
        let includes = |name: &str| self.field_query(name, MatchOp::Substring, text.clone());
        Ok(match name.as_str() {
            "any" => {
                Query::Or(["comment", "description", "summary", "location"].map(includes).into())
            }
            "comment" | "description" | "summary" | "location" | "attendee" | "organizer" => {
                includes(&name)
            }
            "classification" => self.classification_query(&text),
            "status" => self.status_query(&text),
            "priority" => self.priority_query(&text),
            _ => {
                let message = format!("contains? does not support the field {name:?}");
                return Err(self.error(at, message).with_hint(
                    "the fields are any, comment, description, summary, location, attendee, organizer, \
                     classification, status, priority",
                ));
            }
        })
    }

    fn classification_query(&self, text: &str) -> Query {
        match text {
            // The default is public (RFC 5545, 3.8.1.3).
            "Public" => Query::Or(vec![
                self.field_query("class", MatchOp::Is, "PUBLIC".into()),
                Query::Not(Box::new(self.field_query("class", MatchOp::Exists, String::new()))),
            ]),
            "Private" | "Confidential" => self.field_query("class", MatchOp::Is, text.into()),
            _ => Query::Or(Vec::new()),
        }
    }

    fn status_query(&self, text: &str) -> Query {
        match text.to_ascii_uppercase().as_str() {
            "NOT STARTED" => {
                Query::Not(Box::new(self.field_query("status", MatchOp::Exists, String::new())))
            }
            "IN PROGRESS" => self.field_query("status", MatchOp::Is, "IN-PROCESS".into()),
            "NEEDS ACTION" => self.field_query("status", MatchOp::Is, "NEEDS-ACTION".into()),
            other => self.field_query("status", MatchOp::Is, other.into()),
        }
    }

    fn priority_query(&self, text: &str) -> Query {
        let Some(field) = find_calendar_field("priority") else { return Query::Or(Vec::new()) };
        let is = |comparison, value| Query::Number(NumericOperand::Field(field), comparison, value);
        match text.to_ascii_uppercase().as_str() {
            "HIGH" => Query::And(vec![is(Comparison::Greater, 0), is(Comparison::Less, 5)]),
            "NORMAL" => is(Comparison::Equal, 5),
            "LOW" => is(Comparison::Greater, 5),
            "UNDEFINED" => is(Comparison::Less, 1),
            _ => Query::Or(Vec::new()),
        }
    }

    /// `(has-categories? "a" "b")`, or `#f`.
    fn parse_categories(&mut self) -> Result<Query, SyntaxError> {
        self.skip_whitespace();
        if self.rest().starts_with("#f") {
            self.at += 2;
            let any = self.field_query("category", MatchOp::Exists, String::new());
            return Ok(Query::Not(Box::new(any)));
        }
        let mut all = Vec::new();
        for name in self.parse_strings()? {
            let exactly = format!(r"\A(?:{})\z", regex::escape(&name));
            all.push(self.field_query("category", MatchOp::Is, name));
            all.push(self.field_query("category", MatchOp::RegexRaw, exactly));
        }
        Ok(Query::And(all))
    }

    fn parse_comparison(&mut self, comparison: Comparison) -> Result<Query, SyntaxError> {
        let (left, right) = (self.parse_number()?, self.parse_number()?);
        let reversed = match comparison {
            Comparison::Less => Comparison::Greater,
            Comparison::Greater => Comparison::Less,
            Comparison::Equal => Comparison::Equal,
        };
        match (left, right) {
            (left, NumericOperand::Constant(value)) => Ok(Query::Number(left, comparison, value)),
            (NumericOperand::Constant(value), right) => Ok(Query::Number(right, reversed, value)),
            _ => Err(self.error(self.at, "one side of a comparison must be a number")),
        }
    }

    fn parse_number(&mut self) -> Result<NumericOperand, SyntaxError> {
        self.skip_whitespace();
        let at = self.at;
        if !self.rest().starts_with('(') {
            let text = self.parse_symbol();
            let number = text.parse().map_err(|_| self.error(at, "expected a number"))?;
            return Ok(NumericOperand::Constant(number));
        }
        self.at += 1;
        self.skip_whitespace();
        let number = match self.parse_symbol() {
            "percent-complete?" => {
                let field = find_calendar_field("percent");
                field.map_or(NumericOperand::Constant(-1), NumericOperand::Field)
            }
            "number" => {
                self.skip_whitespace();
                let at = self.at;
                let name = self.parse_string()?;
                let field = find_calendar_field(&name);
                NumericOperand::Field(
                    field.ok_or_else(|| self.error(at, format!("unknown field {name:?}")))?,
                )
            }
            "occurrences-count?" => {
                self.skip_whitespace();
                match self.rest().starts_with(')') {
                    true => NumericOperand::Occurrences(None),
                    false => NumericOperand::Occurrences(Some(
                        self.parse_time_range(TimeTarget::Occurrences)?,
                    )),
                }
            }
            name => return Err(self.error(at, format!("{name:?} does not return a number"))),
        };
        self.expect_close(at)?;
        Ok(number)
    }

    fn expect_close(&mut self, began: usize) -> Result<(), SyntaxError> {
        self.skip_whitespace();
        if !self.rest().starts_with(')') {
            return Err(self.error(began, "unclosed \"(\""));
        }
        self.at += 1;
        Ok(())
    }

    /// Parses a call that returns a time.
    fn parse_time(&mut self) -> Result<Instant, SyntaxError> {
        self.skip_whitespace();
        let at = self.at;
        self.calls += 1;
        if !self.rest().starts_with('(') || self.calls > super::MAX_CALLS {
            return Err(self
                .error(at, "expected a time")
                .with_hint("write it like (make-time \"20260301T000000Z\")"));
        }
        self.at += 1;
        self.skip_whitespace();
        let (name, locale) = (self.parse_symbol(), self.context.user_locale.clone());
        let midnight = |instant: Instant, days: i64| {
            let day = locale.zone.to_civil(instant).day_number() + days;
            locale.zone.to_instant(CivilTime::midnight(day))
        };
        let time = match name {
            "time-now" => locale.now,
            "make-time" => {
                let at = self.at;
                let text = self.parse_string()?;
                let stamp = value::IcalDateTime::parse(&text)
                    .map_err(|error| self.error(at, error.to_string()))?;
                // The first and the last time that can be written stand for no limit.
                match stamp.civil {
                    CivilTime::MIN => Instant::MIN,
                    CivilTime::MAX => Instant::MAX,
                    civil => Instant::from_seconds_clamped(civil.seconds()),
                }
            }
            "time-day-begin" => midnight(self.parse_time()?, 0),
            "time-day-end" => midnight(self.parse_time()?, 1),
            "time-add-day" => {
                let from = locale.zone.to_civil(self.parse_time()?);
                self.skip_whitespace();
                let at = self.at;
                let days: i32 = self
                    .parse_symbol()
                    .parse()
                    .map_err(|_| self.error(at, "expected a number of days"))?;
                locale.zone.to_instant(from.saturating_add(i64::from(days) * DAY_SECONDS))
            }
            _ => return Err(self.error(at, format!("{name:?} does not return a time"))),
        };
        self.expect_close(at)?;
        Ok(time)
    }
}

fn date_property_query(stamp: DateProperty, from: Instant, to: Instant) -> Query {
    let time_range = TimeRange { from, to, local_zone: Zone::UTC, target: TimeTarget::Occurrences };
    Query::Time(TimeTest::DateInRange(stamp, time_range))
}

fn property_exists_query(property: &str) -> Query {
    Query::Test(FieldTest::new(FieldSelector::from_property_name(property), MatchOp::Exists, ""))
}

/// Gives each `(occurrences-count?)` without a range the time range of the query.
pub(super) fn fill_occurrence_counts(mut query: Query) -> Query {
    if let Some(time_range) = first_time_range(&query) {
        fill_counts(&mut query, &time_range);
    }
    query
}

fn first_time_range(query: &Query) -> Option<TimeRange> {
    match query {
        Query::Time(TimeTest::InRange(time_range))
            if time_range.target == TimeTarget::Occurrences =>
        {
            Some(time_range.clone())
        }
        Query::And(parts) | Query::Or(parts) => parts.iter().find_map(first_time_range),
        Query::Not(query) => first_time_range(query),
        _ => None,
    }
}

fn fill_counts(query: &mut Query, time_range: &TimeRange) {
    match query {
        Query::Number(NumericOperand::Occurrences(open @ None), ..) => {
            *open = Some(time_range.clone());
        }
        Query::And(parts) | Query::Or(parts) => {
            parts.iter_mut().for_each(|query| fill_counts(query, time_range));
        }
        Query::Not(query) => fill_counts(query, time_range),
        _ => {}
    }
}
