//! New events, tasks and memos, ready to be written.
//!
//! Separate from [`new_event`](super::new_event), which creates a draft from a sentence; a draft
//! contains times, not phrases.

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

/// A new event, task or memo.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// An event, a task or a memo.
    pub kind: Kind,
    /// The title.
    pub summary: String,
    /// The start.
    pub start: Option<CalendarDateTime>,
    /// The end, exclusive; for a task the due time; if that is a date, it is the due date itself.
    /// In UTC if the clock of the start shows the end twice or not at all.
    pub end: Option<CalendarDateTime>,
    /// The duration, as an alternative to the end.
    pub length: Option<IcalDuration>,
    /// The place.
    pub location: Option<String>,
    /// A longer text.
    pub description: Option<String>,
    /// The recurrence rule (RFC 5545).
    pub rule: Option<String>,
    /// The end of the rule, by the clock of the start: the last second, or the last date.
    pub until: Option<CivilTime>,
    /// The categories.
    pub categories: Vec<String>,
    /// The priority, from 1, the highest, to 9.
    pub priority: Option<u8>,
    /// The times of the alarms before the start.
    pub alarms: Vec<IcalDuration>,
    /// Whether an event leaves its time free for others (`TRANSP`, RFC 5545 section 3.8.2.7).
    pub is_transparent: bool,
}

/// The reason why a draft is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventDraftError {
    /// An event without a start.
    #[error("an event needs a start time")]
    NoStart,
    /// A rule without a start.
    #[error("a recurring item needs a start time")]
    RecurringWithoutStart,
    /// The end is before the start.
    #[error("the end is before the start")]
    EndBeforeStart,
    /// The start is a date and the end a time, or the reverse.
    #[error("the start and the end must both be dates, or both be times")]
    MixedDateAndTime,
    /// The rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl EventDraft {
    /// A draft with a kind and a title.
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
            is_transparent: false,
        }
    }

    /// Returns the bytes of the item, and its calendar context.
    ///
    /// # Errors
    /// The reason why the draft is invalid.
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
            let form = DateTimeForm::from_date_time(&time);
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
        if self.is_transparent {
            draft = draft.add_property("TRANSP", &[], "TRANSPARENT");
        }
        if let Some(priority) = self.priority {
            draft = draft.add_property("PRIORITY", &[], &priority.to_string());
        }
        let anchor = if self.start.is_some() { AlarmAnchor::Start } else { AlarmAnchor::End };
        for alarm in &self.alarms {
            draft = draft.add_subcomponent(build_alarm(&self.summary, *alarm, anchor));
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

    /// Returns DTSTART, and DTEND or DUE.
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

    /// Returns the start, or the due time.
    fn start_or_due(&self) -> Option<&CalendarDateTime> {
        self.start.as_ref().or(self.end.as_ref())
    }

    /// Returns the rule with its end.
    ///
    /// # Errors
    /// [`EventDraftError::Rule`]
    pub fn rrule(&self) -> Result<Option<String>, EventDraftError> {
        let (Some(rule), Some(first)) = (&self.rule, self.start_or_due()) else { return Ok(None) };
        Rule::parse(rule)?;
        let form = DateTimeForm::from_date_time(first);
        Ok(Some(match self.until {
            Some(until) => format!("{rule};UNTIL={}", form.format_until(until)),
            None => rule.clone(),
        }))
    }

    fn calendar_context(&self) -> CalendarContext {
        let mut context = CalendarContext::default();
        for time in [&self.start, &self.end].into_iter().flatten() {
            ensure_zone_defined(&mut context, &DateTimeForm::from_date_time(time), time.civil);
        }
        context
    }
}

/// Removes repeated alarms. A day and 24 hours are the same.
pub(crate) fn dedup_alarms(mut alarms: Vec<IcalDuration>) -> Vec<IcalDuration> {
    let mut seen = HashSet::new();
    alarms.retain(|alarm| {
        seen.insert(alarm.days.saturating_mul(DAY_SECONDS).saturating_add(alarm.seconds))
    });
    alarms
}

/// The time that an alarm is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlarmAnchor {
    /// The start.
    Start,
    /// The end, or the due time of a task without a start.
    End,
}

/// Builds an alarm before the start or the end of an item.
pub(crate) fn build_alarm(
    summary: &str,
    before: IcalDuration,
    anchor: AlarmAnchor,
) -> writer::ComponentBuilder {
    let trigger = IcalDuration { days: -before.days, seconds: -before.seconds }.to_string();
    let related: &[(&str, &str)] = match anchor {
        AlarmAnchor::Start => &[],
        AlarmAnchor::End => &[("RELATED", "END")],
    };
    writer::ComponentBuilder::new("VALARM")
        .add_property("ACTION", &[], "DISPLAY")
        .add_text("DESCRIPTION", summary)
        .add_property("TRIGGER", related, &trigger)
}

/// Adds the definition of the zone of a time to a calendar context, unless it has one.
pub(crate) fn ensure_zone_defined(
    context: &mut CalendarContext,
    form: &DateTimeForm,
    civil: CivilTime,
) {
    let Some(zone) = form.zone_to_define() else { return };
    if context.zone_definition(zone.name()).is_none() {
        context.zone_definitions.extend(build_vtimezone(zone, civil.date().year).map(Arc::new));
    }
}

/// Adds a duration to a time: first days of clock time, then elapsed seconds.
pub(crate) fn add_duration(start: &CalendarDateTime, length: IcalDuration) -> CivilTime {
    let form = DateTimeForm::from_date_time(start);
    let day = start.civil.saturating_add(length.days.saturating_mul(DAY_SECONDS));
    if length.seconds == 0 {
        return day;
    }
    form.key_to_civil(form.civil_to_key(day).saturating_add(length.seconds))
}

/// Returns the end of an item with a duration, by the clock of the start, or in UTC if that clock
/// cannot represent it.
pub(crate) fn end_after(start: &CalendarDateTime, length: IcalDuration) -> CalendarDateTime {
    let form = DateTimeForm::from_date_time(start);
    let day =
        form.civil_to_key(start.civil.saturating_add(length.days.saturating_mul(DAY_SECONDS)));
    let key = day.saturating_add(length.seconds);
    if length.seconds == 0 || is_end_representable(&form, start.civil, key) {
        return CalendarDateTime { civil: add_duration(start, length), ..start.clone() };
    }
    CalendarDateTime::from_civil(CivilTime::from_seconds_clamped(key), ZoneReference::Utc)
}

/// Returns whether a clock represents the end of an item without doubt. It does not in an hour that
/// it shows twice, nor after a start that it skips, which programs read differently.
pub(crate) fn is_end_representable(form: &DateTimeForm, start: CivilTime, end: i64) -> bool {
    form.key_to_civil(form.civil_to_key(start)) == start
        && form.civil_to_key(form.key_to_civil(end)) == end
}

/// Formats a duration of elapsed seconds.
pub(crate) fn format_duration(seconds: i64) -> String {
    IcalDuration { days: 0, seconds }.to_string()
}

/// Returns the key of a time.
pub(crate) fn start_to_key(time: &CalendarDateTime) -> i64 {
    DateTimeForm::from_date_time(time).civil_to_key(time.civil)
}
