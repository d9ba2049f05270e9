//! The functions for events, tasks and memos (ECalBackendSexp), and the times and numbers that they take.
//!
//! Times are worked out while they are read, by the clock of who asks. What EDS's backend computes in UTC, its window for
//! floating times among it, is in UTC here, too, unless the call names a zone.

use super::Reader;
use crate::error::SyntaxError;
use crate::query::{Comparison, Number, Op, Query, Subject, Test};
use crate::time::{Stamp, TimeTest};
use larder_format::field::calendar_field;
use larder_store::{Kind, What, Window};
use larder_time::civil::{Civil, DAY, Instant};
use larder_time::value;
use larder_time::zone::Zone;

/// The functions of this module, for messages.
pub(super) const KNOWN: &str = "occur-in-time-range?, due-in-time-range?, has-alarms-in-range?, completed-before?, \
    starts-before?, occurrences-count?, uid?, contains?, has-start?, has-end?, has-due?, has-duration?, has-alarms?, \
    has-attachments?, has-recurrences?, has-categories?, is-completed?, percent-complete?, make-time, time-now, \
    time-add-day, time-day-begin, time-day-end, stamp, overdue?, number, kind";

impl Reader<'_> {
    /// A call of one of these functions; `None`: it is none of them.
    pub(super) fn calendar(&mut self, name: &str, at: usize) -> Result<Option<Query>, SyntaxError> {
        Ok(Some(match name {
            "occur-in-time-range?" => Query::Time(TimeTest::In(self.window(What::Occurrences)?)),
            "has-alarms-in-range?" => Query::Time(TimeTest::In(self.window(What::Alarms)?)),
            "due-in-time-range?" => {
                let (from, to) = (self.time()?, self.time()?);
                stamp(Stamp::Due, from, to.plus(1))
            }
            "completed-before?" => stamp(Stamp::Completed, Instant::MIN, self.time()?),
            "starts-before?" => stamp(Stamp::Start, Instant::MIN, self.time()?.plus(1)),
            "uid?" => {
                let text = larder_format::fold::fold(&self.string()?).into_owned();
                let whole = format!(r"\A(?:{})\z", regex::escape(&text));
                self.of_field("uid", Op::RegexNormal, whole)
            }
            "contains?" => self.contains(at)?,
            "has-start?" => has("DTSTART"),
            "has-end?" => has("DTEND"),
            "has-due?" => has("DUE"),
            "has-duration?" => has("DURATION"),
            "has-attachments?" => has("ATTACH"),
            "has-alarms?" => self.of_field("alarm", Op::Exists, String::new()),
            "has-recurrences?" => self.of_field("recurring", Op::Exists, String::new()),
            "is-completed?" => self.of_field("done", Op::Exists, String::new()),
            "has-categories?" => self.categories()?,
            "stamp" => self.stamp()?,
            "overdue?" => Query::Time(TimeTest::Overdue(self.window(What::Occurrences)?)),
            "kind" => self.kind()?,
            "=" => self.comparison(Comparison::Equal)?,
            "<" => self.comparison(Comparison::Less)?,
            ">" => self.comparison(Comparison::Greater)?,
            _ => return Ok(None),
        }))
    }

    fn of_field(&self, name: &str, op: Op, text: String) -> Query {
        let subject = calendar_field(name).map_or(Subject::Nothing, Subject::Field);
        Query::Test(Test::new(subject, op, text))
    }

    fn window(&mut self, what: What) -> Result<Window, SyntaxError> {
        let (from, to) = (self.time()?, self.time()?);
        self.blanks();
        let mut local = Zone::UTC;
        if self.rest().starts_with('"') {
            let at = self.at;
            let name = self.string()?;
            local = self.settings.asker.zones.get(&name).ok_or_else(|| {
                self.error(at, format!("there is no time zone {name:?}"))
                    .hint("zones have names as Europe/Prague")
            })?;
        }
        Ok(Window { from, to, local, what })
    }

    /// `(stamp "DUE" FROM TO ["ZONE"])`, which is ours.
    fn stamp(&mut self) -> Result<Query, SyntaxError> {
        self.blanks();
        let at = self.at;
        let name = self.string()?;
        let stamp = Stamp::of_property(&name).ok_or_else(|| {
            self.error(at, format!("{name:?} is no property that names a moment"))
        })?;
        Ok(Query::Time(TimeTest::Stamp(stamp, self.window(What::Occurrences)?)))
    }

    /// `(kind "event")`, which is ours.
    fn kind(&mut self) -> Result<Query, SyntaxError> {
        self.blanks();
        let at = self.at;
        let name = self.string()?;
        let all = [Kind::Contact, Kind::Event, Kind::Task, Kind::Memo, Kind::Other];
        let kind = all.into_iter().find(|kind| kind.name() == name);
        kind.map(Query::Kind).ok_or_else(|| self.error(at, format!("{name:?} is no kind of item")))
    }

    fn contains(&mut self, at: usize) -> Result<Query, SyntaxError> {
        let (name, text) = (self.string()?, self.string()?);
        let includes = |name: &str| self.of_field(name, Op::Includes, text.clone());
        Ok(match name.as_str() {
            "any" => {
                Query::Or(["comment", "description", "summary", "location"].map(includes).into())
            }
            "comment" | "description" | "summary" | "location" | "attendee" | "organizer" => {
                includes(&name)
            }
            "classification" => self.classification(&text),
            "status" => self.status(&text),
            "priority" => self.priority(&text),
            _ => {
                let what = format!("contains? knows no field {name:?}");
                return Err(self.error(at, what).hint(
                    "known here: any, comment, description, summary, location, attendee, organizer, \
                     classification, status, priority",
                ));
            }
        })
    }

    fn classification(&self, text: &str) -> Query {
        match text {
            // What says nothing is public (RFC 5545, 3.8.1.3).
            "Public" => Query::Or(vec![
                self.of_field("class", Op::Is, "PUBLIC".into()),
                Query::Not(Box::new(self.of_field("class", Op::Exists, String::new()))),
            ]),
            "Private" | "Confidential" => self.of_field("class", Op::Is, text.into()),
            _ => Query::Or(Vec::new()),
        }
    }

    fn status(&self, text: &str) -> Query {
        match text.to_ascii_uppercase().as_str() {
            "NOT STARTED" => {
                Query::Not(Box::new(self.of_field("status", Op::Exists, String::new())))
            }
            "IN PROGRESS" => self.of_field("status", Op::Is, "IN-PROCESS".into()),
            "NEEDS ACTION" => self.of_field("status", Op::Is, "NEEDS-ACTION".into()),
            other => self.of_field("status", Op::Is, other.into()),
        }
    }

    fn priority(&self, text: &str) -> Query {
        let Some(field) = calendar_field("priority") else { return Query::Or(Vec::new()) };
        let is = |comparison, value| Query::Number(Number::Field(field), comparison, value);
        match text.to_ascii_uppercase().as_str() {
            "HIGH" => Query::And(vec![is(Comparison::Greater, 0), is(Comparison::Less, 5)]),
            "NORMAL" => is(Comparison::Equal, 5),
            "LOW" => is(Comparison::Greater, 5),
            "UNDEFINED" => is(Comparison::Less, 1),
            _ => Query::Or(Vec::new()),
        }
    }

    /// `(has-categories? "a" "b")`, or `#f`.
    fn categories(&mut self) -> Result<Query, SyntaxError> {
        self.blanks();
        if self.rest().starts_with("#f") {
            self.at += 2;
            let any = self.of_field("category", Op::Exists, String::new());
            return Ok(Query::Not(Box::new(any)));
        }
        let mut all = Vec::new();
        for name in self.strings()? {
            let exactly = format!(r"\A(?:{})\z", regex::escape(&name));
            all.push(self.of_field("category", Op::Is, name));
            all.push(self.of_field("category", Op::RegexRaw, exactly));
        }
        Ok(Query::And(all))
    }

    fn comparison(&mut self, comparison: Comparison) -> Result<Query, SyntaxError> {
        let (left, right) = (self.number()?, self.number()?);
        let turned = match comparison {
            Comparison::Less => Comparison::Greater,
            Comparison::Greater => Comparison::Less,
            Comparison::Equal => Comparison::Equal,
        };
        match (left, right) {
            (left, Number::Constant(value)) => Ok(Query::Number(left, comparison, value)),
            (Number::Constant(value), right) => Ok(Query::Number(right, turned, value)),
            _ => Err(self.error(self.at, "one side of a comparison has to be a number")),
        }
    }

    fn number(&mut self) -> Result<Number, SyntaxError> {
        self.blanks();
        let at = self.at;
        if !self.rest().starts_with('(') {
            let text = self.symbol();
            let number = text.parse().map_err(|_| self.error(at, "a number is missing"))?;
            return Ok(Number::Constant(number));
        }
        self.at += 1;
        self.blanks();
        let number = match self.symbol() {
            "percent-complete?" => {
                let field = calendar_field("percent");
                field.map_or(Number::Constant(-1), Number::Field)
            }
            "number" => {
                self.blanks();
                let at = self.at;
                let name = self.string()?;
                let field = calendar_field(&name);
                Number::Field(field.ok_or_else(|| self.error(at, format!("no field is {name:?}")))?)
            }
            "occurrences-count?" => {
                self.blanks();
                match self.rest().starts_with(')') {
                    true => Number::Occurrences(None),
                    false => Number::Occurrences(Some(self.window(What::Occurrences)?)),
                }
            }
            name => return Err(self.error(at, format!("{name:?} gives no number"))),
        };
        self.close(at)?;
        Ok(number)
    }

    fn close(&mut self, began: usize) -> Result<(), SyntaxError> {
        self.blanks();
        if !self.rest().starts_with(')') {
            return Err(self.error(began, "a \"(\" that is not closed"));
        }
        self.at += 1;
        Ok(())
    }

    /// A call that gives a time.
    fn time(&mut self) -> Result<Instant, SyntaxError> {
        self.blanks();
        let at = self.at;
        self.calls += 1;
        if !self.rest().starts_with('(') || self.calls > super::CALLS {
            return Err(self
                .error(at, "a time is missing")
                .hint("as (make-time \"20260301T000000Z\")"));
        }
        self.at += 1;
        self.blanks();
        let (name, asker) = (self.symbol(), self.settings.asker.clone());
        let midnight = |instant: Instant, days: i64| {
            let day = asker.local.civil(instant).day() + days;
            asker.local.instant(Civil::midnight(day))
        };
        let time = match name {
            "time-now" => asker.now,
            "make-time" => {
                let at = self.at;
                let text = self.string()?;
                let stamp = value::Stamp::parse(&text)
                    .map_err(|error| self.error(at, error.to_string()))?;
                // What can be written of the beginning and the end of all time.
                match stamp.civil {
                    Civil::MIN => Instant::MIN,
                    Civil::MAX => Instant::MAX,
                    civil => Instant::clamped(civil.seconds()),
                }
            }
            "time-day-begin" => midnight(self.time()?, 0),
            "time-day-end" => midnight(self.time()?, 1),
            "time-add-day" => {
                let from = asker.local.civil(self.time()?);
                self.blanks();
                let at = self.at;
                let days: i32 = self
                    .symbol()
                    .parse()
                    .map_err(|_| self.error(at, "a number of days is missing"))?;
                asker.local.instant(from.plus(i64::from(days) * DAY))
            }
            _ => return Err(self.error(at, format!("{name:?} gives no time"))),
        };
        self.close(at)?;
        Ok(time)
    }
}

fn stamp(stamp: Stamp, from: Instant, to: Instant) -> Query {
    let window = Window { from, to, local: Zone::UTC, what: What::Occurrences };
    Query::Time(TimeTest::Stamp(stamp, window))
}

fn has(property: &str) -> Query {
    Query::Test(Test::new(Subject::property(property), Op::Exists, ""))
}

/// `(occurrences-count?)` counts in the window that stands elsewhere in the question.
pub(super) fn with_window(mut query: Query) -> Query {
    if let Some(window) = first_window(&query) {
        fill(&mut query, &window);
    }
    query
}

fn first_window(query: &Query) -> Option<Window> {
    match query {
        Query::Time(TimeTest::In(window)) if window.what == What::Occurrences => {
            Some(window.clone())
        }
        Query::And(of) | Query::Or(of) => of.iter().find_map(first_window),
        Query::Not(query) => first_window(query),
        _ => None,
    }
}

fn fill(query: &mut Query, window: &Window) {
    match query {
        Query::Number(Number::Occurrences(open @ None), ..) => *open = Some(window.clone()),
        Query::And(of) | Query::Or(of) => of.iter_mut().for_each(|query| fill(query, window)),
        Query::Not(query) => fill(query, window),
        _ => {}
    }
}
