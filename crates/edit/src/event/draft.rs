//! New events, tasks and memos, made of what a person said about them.

use super::date_time_form::{DateTimeForm, format_utc};
use super::vtimezone::build_vtimezone;
use larder_format::writer::{self, escape_text};
use larder_store::{CalendarContext, Kind};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, RuleError};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDuration;
use std::collections::HashSet;
use std::sync::Arc;

/// What is to become an item.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// An event, a task or a memo.
    pub kind: Kind,
    /// What it is about.
    pub summary: String,
    /// When it begins.
    pub start: Option<CalendarDateTime>,
    /// When it ends, exclusive; of a task, when it is due, of which a day is the day itself. In UTC
    /// where its clock cannot say it.
    pub end: Option<CalendarDateTime>,
    /// How long it takes, where that is said instead of when it ends.
    pub length: Option<IcalDuration>,
    /// Where it is.
    pub location: Option<String>,
    /// What it is about, at length.
    pub description: Option<String>,
    /// How it recurs: a rule of RFC 5545.
    pub rule: Option<String>,
    /// Until when it recurs, by the clock of its start: the last second, or the last day.
    pub until: Option<CivilTime>,
    /// Its categories.
    pub categories: Vec<String>,
    /// 1, the highest, to 9.
    pub priority: Option<u8>,
    /// How long before its beginning there is an alarm.
    pub alarms: Vec<IcalDuration>,
}

/// Why something cannot become an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventDraftError {
    /// An event without a time.
    #[error("an event needs a time at which it begins")]
    NoStart,
    /// It recurs, and from when is not known.
    #[error("what recurs needs a time at which it begins")]
    RecurringWithoutStart,
    /// It ends before it begins.
    #[error("it ends before it begins")]
    EndBeforeStart,
    /// One of both ends is a day, and the other a time.
    #[error("one end is a day and the other a time")]
    MixedDateAndTime,
    /// The rule is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl EventDraft {
    /// A draft that says nothing but what it is.
    #[must_use]
    pub fn new(kind: Kind, summary: &str) -> EventDraft {
        EventDraft {
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
    pub fn to_component(
        &self,
        uid: &str,
        now: Instant,
    ) -> Result<(Vec<u8>, CalendarContext), EventDraftError> {
        self.validate()?;
        let stamp = format_utc(now);
        let mut draft = writer::ComponentBuilder::new(match self.kind {
            Kind::Task => "VTODO",
            Kind::Memo => "VJOURNAL",
            _ => "VEVENT",
        })
        .add_text("UID", uid)
        .add_property("DTSTAMP", &[], &stamp)
        .add_property("CREATED", &[], &stamp)
        .add_property("LAST-MODIFIED", &[], &stamp)
        .add_property("SEQUENCE", &[], "0")
        .add_text("SUMMARY", &self.summary);
        for (name, time) in self.time_properties() {
            let form = DateTimeForm::new(time.is_date, &time.zone_reference);
            draft = match self
                .start
                .as_ref()
                .filter(|start| start.zone_reference != time.zone_reference)
            {
                Some(start)
                    if time.zone_reference == ZoneReference::Utc
                        && start.zone_reference != ZoneReference::Floating =>
                {
                    draft.add_property(
                        "DURATION",
                        &[],
                        &format_duration(start_to_key(&time) - start_to_key(start)),
                    )
                }
                _ => draft.add_property(name, &form.params(), &form.format_value(time.civil)),
            };
        }
        if let Some(rule) = self.rrule()? {
            draft = draft.add_property("RRULE", &[], &rule);
        }
        for (name, text) in [("LOCATION", &self.location), ("DESCRIPTION", &self.description)] {
            if let Some(text) = text {
                draft = draft.add_text(name, text);
            }
        }
        if !self.categories.is_empty() {
            let all: Vec<String> = self.categories.iter().map(|one| escape_text(one)).collect();
            draft = draft.add_property("CATEGORIES", &[], &all.join(","));
        }
        if let Some(priority) = self.priority {
            draft = draft.add_property("PRIORITY", &[], &priority.to_string());
        }
        for alarm in &self.alarms {
            draft = draft.add_subcomponent(self::build_alarm(
                &self.summary,
                *alarm,
                self.start.is_some(),
            ));
        }
        Ok((draft.finish().into_bytes(), self.calendar_context()))
    }

    fn validate(&self) -> Result<(), EventDraftError> {
        let end = self.end.as_ref();
        match (&self.start, end) {
            (None, _) if self.kind == Kind::Event => Err(EventDraftError::NoStart),
            (None, None) if self.rule.is_some() => Err(EventDraftError::RecurringWithoutStart),
            (Some(start), Some(end)) if start.is_date != end.is_date => {
                Err(EventDraftError::MixedDateAndTime)
            }
            (Some(start), Some(end)) => {
                if start_to_key(end) < start_to_key(start) {
                    Err(EventDraftError::EndBeforeStart)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// The properties that say when it is.
    fn time_properties(&self) -> Vec<(&'static str, CalendarDateTime)> {
        let mut times: Vec<(&'static str, CalendarDateTime)> = Vec::new();
        times.extend(self.start.clone().map(|start| ("DTSTART", start)));
        let name = match self.kind {
            Kind::Task => "DUE",
            Kind::Memo => return times,
            _ => "DTEND",
        };
        let after = || {
            let start = self.start.as_ref()?;
            Some(end_after(start, self.length?))
        };
        times.extend(self.end.clone().or_else(after).map(|end| (name, end)));
        times
    }

    /// When it begins, or is due.
    fn start_or_due(&self) -> Option<&CalendarDateTime> {
        self.start.as_ref().or(self.end.as_ref())
    }

    /// The rule by which it recurs, with until when.
    ///
    /// # Errors
    /// It is none.
    pub fn rrule(&self) -> Result<Option<String>, EventDraftError> {
        let (Some(rule), Some(first)) = (&self.rule, self.start_or_due()) else { return Ok(None) };
        Rule::parse(rule)?;
        let form = DateTimeForm::new(first.is_date, &first.zone_reference);
        Ok(Some(match self.until {
            Some(until) => format!("{rule};UNTIL={}", form.format_until(until)),
            None => rule.clone(),
        }))
    }

    fn calendar_context(&self) -> CalendarContext {
        let mut frame = CalendarContext::default();
        for time in [&self.start, &self.end].into_iter().flatten() {
            ensure_zone_defined(
                &mut frame,
                &DateTimeForm::new(time.is_date, &time.zone_reference),
                time.civil,
            );
        }
        frame
    }
}

/// Each alarm once: a day and 24 hours are the same to who asks for both.
pub(crate) fn dedup_alarms(mut alarms: Vec<IcalDuration>) -> Vec<IcalDuration> {
    let mut seen = HashSet::new();
    alarms.retain(|of| seen.insert(of.days.saturating_mul(DAY_SECONDS).saturating_add(of.seconds)));
    alarms
}

/// An alarm so long before something begins, or is due.
pub(crate) fn build_alarm(
    summary: &str,
    before: IcalDuration,
    begins: bool,
) -> writer::ComponentBuilder {
    let trigger = IcalDuration { days: -before.days, seconds: -before.seconds }.to_string();
    let related: &[(&str, &str)] = if begins { &[] } else { &[("RELATED", "END")] };
    writer::ComponentBuilder::new("VALARM")
        .add_property("ACTION", &[], "DISPLAY")
        .add_text("DESCRIPTION", summary)
        .add_property("TRIGGER", related, &trigger)
}

/// Sees to it that a frame defines the zone of a time.
pub(crate) fn ensure_zone_defined(
    frame: &mut CalendarContext,
    form: &DateTimeForm,
    civil: CivilTime,
) {
    let Some(zone) = form.zone_to_define() else { return };
    if frame.zone_definition(zone.name()).is_none() {
        frame.zone_definitions.extend(build_vtimezone(zone, civil.date().year).map(Arc::new));
    }
}

/// The time so much later: days on the clock, and then seconds.
pub(crate) fn add_duration(start: &CalendarDateTime, length: IcalDuration) -> CivilTime {
    let form = DateTimeForm::new(start.is_date, &start.zone_reference);
    let day = start.civil.saturating_add(length.days.saturating_mul(DAY_SECONDS));
    if length.seconds == 0 {
        return day;
    }
    form.key_to_civil(form.civil_to_key(day).saturating_add(length.seconds))
}

/// When something ends that takes so long, by its clock; in UTC where that clock cannot say it.
pub(crate) fn end_after(start: &CalendarDateTime, length: IcalDuration) -> CalendarDateTime {
    let form = DateTimeForm::new(start.is_date, &start.zone_reference);
    let day =
        form.civil_to_key(start.civil.saturating_add(length.days.saturating_mul(DAY_SECONDS)));
    let key = day.saturating_add(length.seconds);
    if length.seconds == 0 || is_end_representable(&form, start.civil, key) {
        return CalendarDateTime { civil: add_duration(start, length), ..start.clone() };
    }
    CalendarDateTime::from_civil(CivilTime::from_seconds_clamped(key), ZoneReference::Utc)
}

/// Does a clock say when something ends that begins then? Not in an hour that it shows twice; and
/// where it leaves out the beginning, programs do not agree about when that is.
pub(crate) fn is_end_representable(form: &DateTimeForm, start: CivilTime, end: i64) -> bool {
    form.key_to_civil(form.civil_to_key(start)) == start
        && form.civil_to_key(form.key_to_civil(end)) == end
}

/// So many seconds as a value.
pub(crate) fn format_duration(seconds: i64) -> String {
    IcalDuration { days: 0, seconds }.to_string()
}

/// The key of a time.
pub(crate) fn start_to_key(time: &CalendarDateTime) -> i64 {
    DateTimeForm::new(time.is_date, &time.zone_reference).civil_to_key(time.civil)
}
