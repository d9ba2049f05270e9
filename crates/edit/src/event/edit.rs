//! Changes to a single event, task or memo.
//!
//! Separate from [`scope`](super::scope), which decides which components of a series change, and
//! what moves along with them.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::draft::{
    AlarmAnchor, add_duration, build_alarm, dedup_alarms, format_duration, is_end_representable,
};
use super::editable_component::{ComponentSchedule, EditableComponent};
use super::editable_field;
use super::new_event::{EventRequestError, check_end_not_before_start, resolve_clock};
use larder_date_phrase::{PhraseError, PointInTime, UserLocale, parse_duration};
use larder_format::component::{Component, ComponentKind};
use larder_store::Extractor;
use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::rule::Rule;
use larder_time::series::ZoneReference;
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

/// A change to an event, a task or a memo, as the user typed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventEdit {
    /// The new start. A time without a date keeps the date, a date without a time keeps the time.
    pub start: Option<String>,
    /// The new end, or due time. A date is the last day.
    pub end: Option<String>,
    /// The new duration.
    pub length: Option<String>,
    /// The distance by which to move it: `+1h`, `-2 days`.
    pub shift: Option<String>,
    /// The new time zone.
    pub zone: Option<String>,
    /// The new rule; an empty text removes the rule.
    pub rule: Option<String>,
    /// Whether to make it an all-day item.
    pub all_day: bool,
    /// The times of the new alarms before the start; they replace all alarms.
    pub alarms: Option<Vec<String>>,
    /// Names of fields and their new values; an empty value removes the field.
    pub fields: Vec<(String, String)>,
}

impl EventEdit {
    /// Returns the part of the edit that applies to an override: the fields and alarms that it
    /// still inherits from its series. Times depend on the times of the series and are omitted.
    pub(super) fn restrict_to_inherited(
        &self,
        component: &EditableComponent,
        series: &EditableComponent,
    ) -> EventEdit {
        let is_inherited =
            |(name, _): &&(String, String)| editable_field::is_field_equal(name, component, series);
        EventEdit {
            alarms: self.alarms.clone().filter(|_| component.has_same_alarms(series)),
            fields: self.fields.iter().filter(is_inherited).cloned().collect(),
            ..EventEdit::default()
        }
    }

    /// Returns whether another edit sets fields or alarms that this one does not.
    pub(super) fn is_missing_fields_of(&self, other: &EventEdit) -> bool {
        self.fields.len() < other.fields.len() || self.alarms.is_none() && other.alarms.is_some()
    }

    /// Returns whether the edit changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == EventEdit::default()
    }

    /// Adds a new value of a field.
    ///
    /// # Errors
    /// [`Error::UnknownField`]
    pub fn set_field(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let time = match name.to_ascii_lowercase().as_str() {
            "start" | "dtstart" => Some(&mut self.start),
            "end" | "due" | "dtend" => Some(&mut self.end),
            "rule" | "rrule" => Some(&mut self.rule),
            _ => None,
        };
        match time {
            Some(time) => *time = Some(value.to_string()),
            None => {
                editable_field::check_editable(name)?;
                self.fields.push((name.to_string(), value.to_string()));
            }
        }
        Ok(())
    }
}

/// The new time of a component.
#[derive(Debug, Clone)]
pub(super) struct NewTime {
    pub(super) form: DateTimeForm,
    pub(super) start: CivilTime,
    /// The new end, exclusive. `None`: the duration is unchanged.
    pub(super) end: Option<CivilTime>,
    /// The new duration, as an alternative to the end.
    duration: Option<IcalDuration>,
    /// The new start of a task that had only a due time.
    task_start: Option<CivilTime>,
}

impl NewTime {
    /// A new start with the old duration.
    pub(super) fn new(form: DateTimeForm, start: CivilTime) -> NewTime {
        NewTime { form, start, end: None, duration: None, task_start: None }
    }

    /// Sets the duration in seconds.
    pub(super) fn with_duration(self, seconds: i64) -> NewTime {
        let days = if self.form.is_date() { seconds / DAY_SECONDS } else { 0 };
        let length = Some(IcalDuration { days, seconds: seconds - days * DAY_SECONDS });
        NewTime { duration: length, end: None, ..self }
    }

    /// Moves it by seconds of clock time.
    pub(super) fn shift_by(self, seconds: i64) -> NewTime {
        let shift = |time: Option<CivilTime>| time.map(|time| time.saturating_add(seconds));
        let (end, task_start) = (shift(self.end), shift(self.task_start));
        NewTime { start: self.start.saturating_add(seconds), end, task_start, ..self }
    }

    /// Sets the time of a component whose schedule is `own`.
    pub(super) fn apply_to(
        &self,
        part: &mut EditableComponent,
        own: &ComponentSchedule,
        extractor: &Extractor,
    ) {
        let is_task = *Component::parse(&part.bytes).kind() == ComponentKind::Task;
        let name = if is_task { "DUE" } else { "DTEND" };
        let end = match (self.end, self.duration) {
            _ if own.start_property == name => None,
            (Some(end), _) => Some((self.form.clone(), self.form.civil_to_key(end))),
            (None, Some(length)) => Some((self.form.clone(), self.end_key(length))),
            (None, None) => self.end_with_same_duration(part, own, name, extractor),
        };
        part.set_time(own.start_property, &self.form, self.start);
        if let Some(begin) = self.task_start {
            part.set_time("DTSTART", &self.form, begin);
        }
        let Some((form, key)) = end else { return };
        let seconds = key.saturating_sub(self.form.civil_to_key(self.start));
        if self.end.is_none()
            && !form.is_date()
            && !is_end_representable(&self.form, self.start, key)
        {
            part.remove_property(name);
            part.set_property("DURATION", &[], &format_duration(seconds));
            return;
        }
        part.remove_property("DURATION");
        // A due date is the day itself, and not the day after it.
        let is_due_date = is_task && form.is_date() && self.has_end();
        let end = form.key_to_civil(key);
        let end = if is_due_date { end.saturating_add(-DAY_SECONDS).max(self.start) } else { end };
        part.set_time(name, &form, end);
    }

    fn has_end(&self) -> bool {
        self.end.is_some() || self.duration.is_some()
    }

    /// Returns the key of the end for a duration.
    fn end_key(&self, length: IcalDuration) -> i64 {
        let IcalDuration { days, seconds } = length;
        self.form
            .civil_to_key(self.start.saturating_add(days.saturating_mul(DAY_SECONDS)))
            .saturating_add(seconds)
    }

    /// Returns the new end of a component that has an end and keeps its duration.
    fn end_with_same_duration(
        &self,
        part: &EditableComponent,
        own: &ComponentSchedule,
        name: &str,
        extractor: &Extractor,
    ) -> Option<(DateTimeForm, i64)> {
        let component = Component::parse(&part.bytes);
        let (form, end) =
            DateTimeForm::from_named_property(name, &component, extractor, &part.context)?;
        if self.form.is_date() != own.form.is_date() {
            let length = if self.form.is_date() { DAY_SECONDS } else { 3600 };
            return Some((
                self.form.clone(),
                self.form.civil_to_key(self.start).saturating_add(length),
            ));
        }
        if self.form.is_date() {
            let days = self.start.seconds() - own.start.seconds();
            return Some((form.clone(), form.civil_to_key(end.civil.saturating_add(days))));
        }
        let length = form.civil_to_key(end.civil).saturating_sub(own.form.civil_to_key(own.start));
        let key = self.form.civil_to_key(self.start).saturating_add(length);
        Some((if self.form == own.form { form } else { self.form.clone() }, key))
    }
}

/// An edit with the context that is needed to apply it.
#[derive(Clone, Copy)]
pub(super) struct EditContext<'a> {
    pub(super) edit: &'a EventEdit,
    pub(super) locale: &'a UserLocale,
    pub(super) extractor: &'a Extractor,
}

impl EditContext<'_> {
    /// Returns the new time of a component. `None`: its time is unchanged.
    pub(super) fn resolve_new_time(
        &self,
        part: &EditableComponent,
    ) -> Result<Option<NewTime>, Error> {
        match part.schedule(self.extractor) {
            Some(schedule) => self.resolve_occurrence_time(&schedule, schedule.start),
            None if self.has_time_change() => Err(Error::NoTime),
            None => Ok(None),
        }
    }

    fn has_time_change(&self) -> bool {
        let EventEdit { start, end, length, shift, zone, all_day, .. } = self.edit;
        *all_day || [start, end, length, shift, zone].into_iter().any(Option::is_some)
    }

    /// Returns the new time of an occurrence that starts at `seen`.
    pub(super) fn resolve_occurrence_time(
        &self,
        schedule: &ComponentSchedule,
        seen: CivilTime,
    ) -> Result<Option<NewTime>, Error> {
        if !self.has_time_change() {
            return Ok(None);
        }
        let mut form = schedule.form.clone();
        if let Some(zone) = self.edit.zone.as_deref().filter(|_| !form.is_date()) {
            form = DateTimeForm::date_time(&resolve_clock(Some(zone), self.locale)?);
        }
        // The due time of a task without a start takes the place of the start.
        let has_only_due = schedule.start_property == "DUE";
        let new_start = if has_only_due { &self.edit.end } else { &self.edit.start };
        let (form, start) = match new_start {
            Some(text) => self.parse_start(text, &form, seen)?,
            None => (form, seen),
        };
        let start = match &self.edit.shift {
            Some(shift) => add_duration_to_civil(&form, start, self.parse_shift(shift)?),
            None => start,
        };
        let mut target = NewTime::new(form, start);
        match has_only_due {
            true => target.task_start = self.resolve_task_start(&target)?,
            false if self.edit.length.is_some() => {
                target.duration = self.parse_duration(&target.form)?;
            }
            false => target.end = self.resolve_end(schedule, seen, &target)?,
        }
        if self.edit.all_day {
            target = self.make_all_day(target, schedule);
        }
        Ok(Some(target))
    }

    /// Reads the new start of a task that had only a due time.
    fn resolve_task_start(&self, target: &NewTime) -> Result<Option<CivilTime>, Error> {
        if self.edit.length.is_some() {
            return Err(EventRequestError::NoStart.into());
        }
        let Some(text) = &self.edit.start else { return Ok(None) };
        let (form, begin) = self.parse_start(text, &target.form, target.start)?;
        if form.is_date() != target.form.is_date() {
            return Err(Error::MixedDateAndTime);
        }
        check_end_not_before_start(
            &form.to_date_time(begin),
            &form.to_date_time(target.start),
            &self.locale.language,
        )?;
        Ok(Some(begin))
    }

    /// Reads the new duration.
    fn parse_duration(&self, form: &DateTimeForm) -> Result<Option<IcalDuration>, Error> {
        let Some(text) = &self.edit.length else { return Ok(None) };
        let length = parse_duration(text, &self.locale.language)?;
        if form.is_date() && length.seconds != 0 {
            return Err(PhraseError::MissingStart { text: text.clone() }.into());
        }
        Ok(Some(length))
    }

    /// Reads the new end, exclusive.
    fn resolve_end(
        &self,
        schedule: &ComponentSchedule,
        seen: CivilTime,
        target: &NewTime,
    ) -> Result<Option<CivilTime>, Error> {
        let (form, start) = (&target.form, target.start);
        let Some(text) = &self.edit.end else { return Ok(None) };
        let end = self.parse_end(text, schedule, seen, target)?;
        let last = if form.is_date() { end.saturating_add(-DAY_SECONDS) } else { end };
        check_end_not_before_start(
            &form.to_date_time(start),
            &form.to_date_time(last),
            &self.locale.language,
        )?;
        Ok(Some(end))
    }

    /// Reads a new start of an occurrence that starts at `seen` by the clock of `form`.
    fn parse_start(
        &self,
        text: &str,
        form: &DateTimeForm,
        seen: CivilTime,
    ) -> Result<(DateTimeForm, CivilTime), Error> {
        let reading = self.input_zone(form);
        let now = reading.to_civil(self.locale.now);
        let moment = PointInTime::parse(text, now, &self.locale.language)?;
        let seen = to_input_civil(form, &reading, seen);
        if moment.is_date {
            let time = if form.is_date() { 0 } else { seen.second_of_day() };
            let at = CivilTime::midnight(moment.at.day_number()).saturating_add(time);
            return Ok((form.clone(), from_input_civil(form, &reading, at)));
        }
        // A time without a date keeps the date.
        let here = if moment.is_time_only { seen } else { now };
        let at = moment.at.saturating_add((here.day_number() - now.day_number()) * DAY_SECONDS);
        if form.is_date() {
            let clock = resolve_clock(self.edit.zone.as_deref(), self.locale)?;
            return Ok((DateTimeForm::date_time(&clock), at));
        }
        Ok((form.clone(), from_input_civil(form, &reading, at)))
    }

    /// Returns the zone in which days and times are read: the new zone of the edit, or else the
    /// user's zone.
    fn input_zone(&self, form: &DateTimeForm) -> Zone {
        match form.zone().filter(|_| self.edit.zone.is_some()) {
            Some(zone) => zone.clone(),
            None => self.locale.zone.clone(),
        }
    }

    /// Reads a new end of an occurrence that starts at `seen`. A date without a time keeps the time
    /// of the end, or is the last day.
    fn parse_end(
        &self,
        text: &str,
        schedule: &ComponentSchedule,
        seen: CivilTime,
        target: &NewTime,
    ) -> Result<CivilTime, Error> {
        let form = &target.form;
        let reading = self.input_zone(form);
        let (here, now) =
            (to_input_civil(form, &reading, target.start), reading.to_civil(self.locale.now));
        let moment = PointInTime::parse_end(text, here, now, &self.locale.language)?;
        let day = CivilTime::midnight(moment.at.day_number());
        match (form.is_date(), moment.is_date) {
            (true, true) => Ok(day.saturating_add(DAY_SECONDS)),
            (true, false) => Err(Error::MixedDateAndTime),
            (false, false) => Ok(from_input_civil(form, &reading, moment.at)),
            (false, true) => {
                let end = to_input_civil(form, &reading, schedule.end_civil(seen));
                let at = match end.second_of_day() {
                    time if time != 0
                        && schedule.duration_seconds() > 0
                        && !schedule.form.is_date() =>
                    {
                        time
                    }
                    _ => DAY_SECONDS,
                };
                Ok(from_input_civil(form, &reading, day.saturating_add(at)))
            }
        }
    }

    /// Makes a time an all-day one, on the days in the zone in which days are read.
    fn make_all_day(&self, target: NewTime, schedule: &ComponentSchedule) -> NewTime {
        if target.form.is_date() {
            return target;
        }
        let reading = self.input_zone(&target.form);
        let end_by_duration =
            target.duration.map(|length| target.form.key_to_civil(target.end_key(length)));
        let NewTime { form, start, end, task_start, .. } = target;
        let day = |civil: CivilTime| {
            CivilTime::midnight(to_input_civil(&form, &reading, civil).day_number())
        };
        let length = if schedule.form.is_date() { 0 } else { schedule.duration_seconds() };
        let end = end
            .or(end_by_duration)
            .unwrap_or_else(|| form.key_to_civil(form.civil_to_key(start).saturating_add(length)));
        let last = if end > start { end.saturating_add(-1) } else { start };
        let end = Some(day(last).saturating_add(DAY_SECONDS));
        let (start, task_start) = (day(start), task_start.map(day));
        NewTime { form: DateTimeForm::date(), start, end, duration: None, task_start }
    }

    fn parse_shift(&self, text: &str) -> Result<IcalDuration, Error> {
        let text = text.trim();
        let (sign, length) = match text.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let IcalDuration { days, seconds } = parse_duration(length, &self.locale.language)?;
        Ok(IcalDuration { days: sign * days, seconds: sign * seconds })
    }

    /// Replaces the alarms.
    fn set_alarms(&self, part: &mut EditableComponent, alarms: &[String]) -> Result<(), Error> {
        part.remove_subcomponents("VALARM");
        let anchor = match part.property_texts("DTSTART").is_empty() {
            false => AlarmAnchor::Start,
            true => AlarmAnchor::End,
        };
        let summary = part.summary();
        let texts = alarms.iter().filter(|text| !text.trim().is_empty());
        let all = texts.map(|text| parse_duration(text, &self.locale.language));
        for before in dedup_alarms(all.collect::<Result<_, _>>()?) {
            part.append_subcomponent(build_alarm(&summary, before, anchor));
        }
        Ok(())
    }

    /// Fails if a new rule does not produce the start: programs read such a rule differently.
    fn ensure_start_matches_rule(&self, part: &EditableComponent) -> Result<(), Error> {
        let Some(schedule) = part.schedule(self.extractor) else { return Ok(()) };
        for text in part.property_texts("RRULE") {
            let rule = Rule::parse(&text)?;
            if rule.occurrences_from(schedule.start, schedule.start).next() != Some(schedule.start)
            {
                return Err(Error::NeedsStart);
            }
        }
        Ok(())
    }

    /// Applies the edit to a component with a resolved time.
    pub(super) fn apply(
        &self,
        part: &mut EditableComponent,
        target: &Option<NewTime>,
    ) -> Result<(), Error> {
        let before = part.bytes.clone();
        editable_field::set_fields(part, &self.edit.fields, self.locale.now)?;
        if let Some(alarms) = &self.edit.alarms {
            self.set_alarms(part, alarms)?;
        }
        let timeless = part.bytes.clone();
        let is_master = part.property_texts("RECURRENCE-ID").is_empty();
        if let Some(rule) = self.edit.rule.as_ref().filter(|_| is_master) {
            match rule.trim() {
                "" => {
                    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
                        part.remove_property(name);
                    }
                }
                rule => {
                    Rule::parse(rule).map_err(Error::Rule)?;
                    part.set_property("RRULE", &[], rule);
                }
            }
        }
        if let (Some(target), Some(own)) = (target, part.schedule(self.extractor)) {
            target.apply_to(part, &own, self.extractor);
        }
        if self.edit.rule.is_some() && is_master {
            self.ensure_start_matches_rule(part)?;
        }
        if part.bytes != before {
            part.bump_revision(self.locale.now, part.bytes != timeless);
        }
        Ok(())
    }
}

/// Converts a time in the zone of a form to another zone. A floating time is unchanged.
fn to_input_civil(form: &DateTimeForm, reading: &Zone, civil: CivilTime) -> CivilTime {
    let zone = form.zone().filter(|zone| *zone != reading);
    zone.map_or(civil, |zone| reading.to_civil(zone.to_instant(civil)))
}

/// Adds a duration: first days of clock time, then elapsed seconds. A date stays a date.
fn add_duration_to_civil(form: &DateTimeForm, from: CivilTime, length: IcalDuration) -> CivilTime {
    let civil = add_duration(&form.to_date_time(from), length);
    if form.is_date() { CivilTime::midnight(civil.day_number()) } else { civil }
}

/// Converts a time in another zone to the zone in which the property is written. A floating time
/// stays.
fn from_input_civil(form: &DateTimeForm, reading: &Zone, civil: CivilTime) -> CivilTime {
    match form.clock() {
        ZoneReference::Floating => civil,
        // In the same zone the time stays as typed, even if the clock skips it on that day.
        _ if form.zone() == Some(reading) => civil,
        _ => form.key_to_civil(reading.to_instant(civil).seconds()),
    }
}
