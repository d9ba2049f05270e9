//! New events, tasks and memos, made of what a person said about them.

use super::form::{Form, utc};
use super::zone::definition;
use larder_format::write::{self, escape_text};
use larder_store::{Frame, Kind};
use larder_time::civil::{Civil, DAY, Instant};
use larder_time::rule::{Rule, RuleError};
use larder_time::series::{Clock, Start};
use larder_time::value::Nominal;
use std::collections::HashSet;
use std::sync::Arc;

/// What is to become an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// An event, a task or a memo.
    pub kind: Kind,
    /// What it is about.
    pub summary: String,
    /// When it begins.
    pub start: Option<Start>,
    /// When it ends, exclusive; of a task, when it is due, of which a day is the day itself. In UTC where its clock cannot say it.
    pub end: Option<Start>,
    /// How long it takes, where that is said instead of when it ends.
    pub length: Option<Nominal>,
    /// Where it is.
    pub location: Option<String>,
    /// What it is about, at length.
    pub description: Option<String>,
    /// How it recurs: a rule of RFC 5545.
    pub rule: Option<String>,
    /// Until when it recurs, by the clock of its start: the last second, or the last day.
    pub until: Option<Civil>,
    /// Its categories.
    pub categories: Vec<String>,
    /// 1, the highest, to 9.
    pub priority: Option<u8>,
    /// How long before its beginning there is an alarm.
    pub alarms: Vec<Nominal>,
}

/// Why something cannot become an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// An event without a time.
    #[error("an event needs a time at which it begins")]
    NoStart,
    /// It recurs, and from when is not known.
    #[error("what recurs needs a time at which it begins")]
    NoFirst,
    /// It ends before it begins.
    #[error("it ends before it begins")]
    Backwards,
    /// One of both ends is a day, and the other a time.
    #[error("one end is a day and the other a time")]
    Mixed,
    /// The rule is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Draft {
    /// A draft that says nothing but what it is.
    #[must_use]
    pub fn new(kind: Kind, summary: &str) -> Draft {
        Draft {
            kind,
            summary: summary.to_string(),
            start: None,
            end: None,
            length: None,
            location: None,
            description: None,
            rule: None,
            until: None,
            categories: Vec::new(),
            priority: None,
            alarms: Vec::new(),
        }
    }

    /// The bytes of the item, and what the calendar around it says.
    ///
    /// # Errors
    /// What keeps it from being one.
    pub fn item(&self, uid: &str, now: Instant) -> Result<(Vec<u8>, Frame), DraftError> {
        self.check()?;
        let stamp = utc(now);
        let mut draft = write::Draft::new(match self.kind {
            Kind::Task => "VTODO",
            Kind::Memo => "VJOURNAL",
            _ => "VEVENT",
        })
        .text("UID", uid)
        .add("DTSTAMP", &[], &stamp)
        .add("CREATED", &[], &stamp)
        .add("LAST-MODIFIED", &[], &stamp)
        .add("SEQUENCE", &[], "0")
        .text("SUMMARY", &self.summary);
        for (name, time) in self.times() {
            let form = Form::new(time.date, &time.clock);
            draft = match self.start.as_ref().filter(|start| start.clock != time.clock) {
                Some(start) if time.clock == Clock::Utc && start.clock != Clock::Floating => {
                    draft.add("DURATION", &[], &exact(moment(&time) - moment(start)))
                }
                _ => draft.add(name, &form.params(), &form.value(time.civil)),
            };
        }
        if let Some(rule) = self.recurrence()? {
            draft = draft.add("RRULE", &[], &rule);
        }
        for (name, text) in [("LOCATION", &self.location), ("DESCRIPTION", &self.description)] {
            if let Some(text) = text {
                draft = draft.text(name, text);
            }
        }
        if !self.categories.is_empty() {
            let all: Vec<String> = self.categories.iter().map(|one| escape_text(one)).collect();
            draft = draft.add("CATEGORIES", &[], &all.join(","));
        }
        if let Some(priority) = self.priority {
            draft = draft.add("PRIORITY", &[], &priority.to_string());
        }
        for alarm in &self.alarms {
            draft = draft.part(self::alarm(&self.summary, *alarm, self.start.is_some()));
        }
        Ok((draft.finish().into_bytes(), self.frame()))
    }

    fn check(&self) -> Result<(), DraftError> {
        let end = self.end.as_ref();
        match (&self.start, end) {
            (None, _) if self.kind == Kind::Event => Err(DraftError::NoStart),
            (None, None) if self.rule.is_some() => Err(DraftError::NoFirst),
            (Some(start), Some(end)) if start.date != end.date => Err(DraftError::Mixed),
            (Some(start), Some(end)) => {
                if moment(end) < moment(start) {
                    Err(DraftError::Backwards)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// The properties that say when it is.
    fn times(&self) -> Vec<(&'static str, Start)> {
        let mut times: Vec<(&'static str, Start)> = Vec::new();
        times.extend(self.start.clone().map(|start| ("DTSTART", start)));
        let name = match self.kind {
            Kind::Task => "DUE",
            Kind::Memo => return times,
            _ => "DTEND",
        };
        let after = || {
            let start = self.start.as_ref()?;
            Some(ended(start, self.length?))
        };
        times.extend(self.end.clone().or_else(after).map(|end| (name, end)));
        times
    }

    /// When it begins, or is due.
    fn first(&self) -> Option<&Start> {
        self.start.as_ref().or(self.end.as_ref())
    }

    /// The rule by which it recurs, with until when.
    ///
    /// # Errors
    /// It is none.
    pub fn recurrence(&self) -> Result<Option<String>, DraftError> {
        let (Some(rule), Some(first)) = (&self.rule, self.first()) else { return Ok(None) };
        Rule::parse(rule)?;
        let form = Form::new(first.date, &first.clock);
        Ok(Some(match self.until {
            Some(until) => format!("{rule};UNTIL={}", form.until(until)),
            None => rule.clone(),
        }))
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::default();
        for time in [&self.start, &self.end].into_iter().flatten() {
            define(&mut frame, &Form::new(time.date, &time.clock), time.civil);
        }
        frame
    }
}

/// Each alarm once: a day and 24 hours are the same to who asks for both.
pub(crate) fn distinct(mut alarms: Vec<Nominal>) -> Vec<Nominal> {
    let mut seen = HashSet::new();
    alarms.retain(|of| seen.insert(of.days.saturating_mul(DAY).saturating_add(of.seconds)));
    alarms
}

/// An alarm so long before something begins, or is due.
pub(crate) fn alarm(summary: &str, before: Nominal, begins: bool) -> write::Draft {
    let trigger = Nominal { days: -before.days, seconds: -before.seconds }.to_string();
    let related: &[(&str, &str)] = if begins { &[] } else { &[("RELATED", "END")] };
    write::Draft::new("VALARM")
        .add("ACTION", &[], "DISPLAY")
        .text("DESCRIPTION", summary)
        .add("TRIGGER", related, &trigger)
}

/// Sees to it that a frame defines the zone of a time.
pub(crate) fn define(frame: &mut Frame, form: &Form, civil: Civil) {
    let Some(zone) = form.defined() else { return };
    if frame.zone(zone.name()).is_none() {
        frame.zones.extend(definition(zone, civil.date().year).map(Arc::new));
    }
}

/// The time so much later: days on the clock, and then seconds.
pub(crate) fn later(start: &Start, length: Nominal) -> Civil {
    let form = Form::new(start.date, &start.clock);
    let day = start.civil.plus(length.days.saturating_mul(DAY));
    if length.seconds == 0 {
        return day;
    }
    form.shown(form.key(day).saturating_add(length.seconds))
}

/// When something ends that takes so long, by its clock; in UTC where that clock cannot say it.
pub(crate) fn ended(start: &Start, length: Nominal) -> Start {
    let form = Form::new(start.date, &start.clock);
    let day = form.key(start.civil.plus(length.days.saturating_mul(DAY)));
    let key = day.saturating_add(length.seconds);
    if length.seconds == 0 || is_said(&form, start.civil, key) {
        return Start { civil: later(start, length), ..start.clone() };
    }
    Start::at(Civil::clamped(key), Clock::Utc)
}

/// Does a clock say when something ends that begins then? Not in an hour that it shows twice; and where it leaves out the beginning,
/// programs do not agree about when that is.
pub(crate) fn is_said(form: &Form, start: Civil, end: i64) -> bool {
    form.shown(form.key(start)) == start && form.key(form.shown(end)) == end
}

/// So many seconds as a value.
pub(crate) fn exact(seconds: i64) -> String {
    Nominal { days: 0, seconds }.to_string()
}

/// The key of a time.
pub(crate) fn moment(time: &Start) -> i64 {
    Form::new(time.date, &time.clock).key(time.civil)
}
