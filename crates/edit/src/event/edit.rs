//! What a person wants to be otherwise in an event, a task or a memo, and how one component is
//! changed by it.
//!
//! Which of the components of a series are changed, and what else moves with them, is for
//! [`scope`](super::scope).

use super::Error;
use super::date_time_form::DateTimeForm;
use super::draft::{
    add_duration, build_alarm, dedup_alarms, format_duration, is_end_representable,
};
use super::editable_component::{ComponentSchedule, EditableComponent};
use super::editable_field;
use super::new_event::{EventRequestError, InputContext, format_civil, resolve_clock};
use larder_date_phrase::{Language, PhraseError, PointInTime, parse_duration};
use larder_format::component::{Component, ComponentKind};
use larder_store::Extractor;
use larder_time::civil::{CivilTime, DAY_SECONDS};
use larder_time::rule::Rule;
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

/// What is to be otherwise, each as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventEdit {
    /// When it begins. A time alone is on the day on which it is, a day alone at the time at which
    /// it is.
    pub start: Option<String>,
    /// When it ends, or is due; a day belongs to it.
    pub end: Option<String>,
    /// How long it takes.
    pub length: Option<String>,
    /// How much later it begins: `+1h`, `-2 days`.
    pub shift: Option<String>,
    /// The zone of its clock.
    pub zone: Option<String>,
    /// Its rule; none if it is empty.
    pub rule: Option<String>,
    /// It is to be of whole days.
    pub all_day: bool,
    /// How long before its beginning there are to be alarms, instead of those that are there.
    pub alarms: Option<Vec<String>>,
    /// Names of fields, and what they are to be; an empty one is taken out.
    pub fields: Vec<(String, String)>,
}

impl EventEdit {
    /// What of it concerns an occurrence that was changed by itself: what that has of its series,
    /// and not of its own. The times are not in it, as they hang on those of the series.
    pub(super) fn restrict_to_inherited(
        &self,
        of: &EditableComponent,
        series: &EditableComponent,
    ) -> EventEdit {
        let same = |(name, _): &&(String, String)| editable_field::is_field_equal(name, of, series);
        EventEdit {
            alarms: self.alarms.clone().filter(|_| of.has_same_alarms(series)),
            fields: self.fields.iter().filter(same).cloned().collect(),
            ..EventEdit::default()
        }
    }

    /// Is there more in another one that is no time?
    pub(super) fn is_missing_fields_of(&self, other: &EventEdit) -> bool {
        self.fields.len() < other.fields.len() || self.alarms.is_none() && other.alarms.is_some()
    }

    /// Is nothing to be otherwise?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == EventEdit::default()
    }

    /// Takes a field and its value in: `summary=Lunch`.
    ///
    /// # Errors
    /// There is no such field, or it is not one that can be set.
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

/// When something is to be.
#[derive(Debug, Clone)]
pub(super) struct NewTime {
    pub(super) form: DateTimeForm,
    pub(super) start: CivilTime,
    /// Its end, exclusive; `None`: it takes as long as before.
    pub(super) end: Option<CivilTime>,
    /// How long it takes, where that is said instead.
    duration: Option<IcalDuration>,
    /// When it begins, of what was only due before.
    task_start: Option<CivilTime>,
}

impl NewTime {
    /// A beginning, and as long as before.
    pub(super) fn new(form: DateTimeForm, start: CivilTime) -> NewTime {
        NewTime { form, start, end: None, duration: None, task_start: None }
    }

    /// The same for so many seconds.
    pub(super) fn with_duration(self, seconds: i64) -> NewTime {
        let days = if self.form.is_date() { seconds / DAY_SECONDS } else { 0 };
        let length = Some(IcalDuration { days, seconds: seconds - days * DAY_SECONDS });
        NewTime { duration: length, end: None, ..self }
    }

    /// The same so many seconds later on the clock.
    pub(super) fn shift_by(self, seconds: i64) -> NewTime {
        let later = |of: Option<CivilTime>| of.map(|of| of.saturating_add(seconds));
        let (end, begin) = (later(self.end), later(self.task_start));
        NewTime { start: self.start.saturating_add(seconds), end, task_start: begin, ..self }
    }

    /// Sees to it that a component that is at `own` is then instead.
    pub(super) fn apply_to(
        &self,
        part: &mut EditableComponent,
        own: &ComponentSchedule,
        deriver: &Extractor,
    ) {
        let task = *Component::parse(&part.bytes).kind() == ComponentKind::Task;
        let name = if task { "DUE" } else { "DTEND" };
        let end = match (self.end, self.duration) {
            _ if own.start_property == name => None,
            (Some(end), _) => Some((self.form.clone(), self.form.civil_to_key(end))),
            (None, Some(length)) => Some((self.form.clone(), self.end_key(length))),
            (None, None) => self.end_with_same_duration(part, own, name, deriver),
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
        // A day that a task is due is the day itself.
        let itself = task && form.is_date() && self.has_end();
        let end = form.key_to_civil(key);
        let end = if itself { end.saturating_add(-DAY_SECONDS).max(self.start) } else { end };
        part.set_time(name, &form, end);
    }

    fn has_end(&self) -> bool {
        self.end.is_some() || self.duration.is_some()
    }

    /// The key of the time so much later than its beginning.
    fn end_key(&self, length: IcalDuration) -> i64 {
        let IcalDuration { days, seconds } = length;
        self.form
            .civil_to_key(self.start.saturating_add(days.saturating_mul(DAY_SECONDS)))
            .saturating_add(seconds)
    }

    /// The end, if it is said, of what takes as long as before.
    fn end_with_same_duration(
        &self,
        part: &EditableComponent,
        own: &ComponentSchedule,
        name: &str,
        deriver: &Extractor,
    ) -> Option<(DateTimeForm, i64)> {
        let component = Component::parse(&part.bytes);
        let (form, end) =
            DateTimeForm::from_named_property(name, &component, deriver, &part.context)?;
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

/// An edit, by whom, and of what store.
#[derive(Clone, Copy)]
pub(super) struct EditContext<'a> {
    pub(super) edit: &'a EventEdit,
    pub(super) input: &'a InputContext<'a>,
    pub(super) deriver: &'a Extractor,
}

impl EditContext<'_> {
    /// When this component is to be; `None`: when it is.
    pub(super) fn resolve_new_time(
        &self,
        part: &EditableComponent,
    ) -> Result<Option<NewTime>, Error> {
        match part.schedule(self.deriver) {
            Some(plan) => self.resolve_occurrence_time(&plan, plan.start),
            None if self.has_time_change() => Err(Error::NoTime),
            None => Ok(None),
        }
    }

    fn has_time_change(&self) -> bool {
        let EventEdit { start, end, length, shift, zone, all_day, .. } = self.edit;
        *all_day || [start, end, length, shift, zone].into_iter().any(Option::is_some)
    }

    /// When an occurrence is to be that is at `seen`.
    pub(super) fn resolve_occurrence_time(
        &self,
        plan: &ComponentSchedule,
        seen: CivilTime,
    ) -> Result<Option<NewTime>, Error> {
        if !self.has_time_change() {
            return Ok(None);
        }
        let mut form = plan.form.clone();
        if let Some(zone) = self.edit.zone.as_deref().filter(|_| !form.is_date()) {
            form = DateTimeForm::new(false, &resolve_clock(Some(zone), self.input)?);
        }
        // What only has a day that it is due has no other time.
        let due = plan.start_property == "DUE";
        let said = if due { &self.edit.end } else { &self.edit.start };
        let (form, start) = match said {
            Some(text) => self.parse_start(text, &form, seen)?,
            None => (form, seen),
        };
        let start = match &self.edit.shift {
            Some(shift) => add_duration_to_civil(&form, start, self.parse_shift(shift)?),
            None => start,
        };
        let mut target = NewTime::new(form, start);
        match due {
            true => target.task_start = self.resolve_task_start(&target)?,
            false if self.edit.length.is_some() => {
                target.duration = self.parse_duration(&target.form)?;
            }
            false => target.end = self.resolve_end(plan, &target)?,
        }
        if self.edit.all_day {
            target = to_all_day(target, plan);
        }
        Ok(Some(target))
    }

    /// When something begins that was only due.
    fn resolve_task_start(&self, target: &NewTime) -> Result<Option<CivilTime>, Error> {
        if self.edit.length.is_some() {
            return Err(EventRequestError::NoStart.into());
        }
        let Some(text) = &self.edit.start else { return Ok(None) };
        let (form, begin) = self.parse_start(text, &target.form, target.start)?;
        if form.is_date() != target.form.is_date() {
            return Err(Error::MixedDateAndTime);
        }
        check_end_not_before_start(&form, begin, target.start, self.input.language)?;
        Ok(Some(begin))
    }

    /// How long it takes, if that is said.
    fn parse_duration(&self, form: &DateTimeForm) -> Result<Option<IcalDuration>, Error> {
        let Some(text) = &self.edit.length else { return Ok(None) };
        let length = parse_duration(text, self.input.language)?;
        if form.is_date() && length.seconds != 0 {
            return Err(PhraseError::MissingStart { text: text.clone() }.into());
        }
        Ok(Some(length))
    }

    /// When it ends, exclusive, if that is said.
    fn resolve_end(
        &self,
        plan: &ComponentSchedule,
        target: &NewTime,
    ) -> Result<Option<CivilTime>, Error> {
        let (form, start) = (&target.form, target.start);
        let language = self.input.language;
        let Some(text) = &self.edit.end else { return Ok(None) };
        let end = self.parse_end(text, plan, form, start)?;
        let last = if form.is_date() { end.saturating_add(-DAY_SECONDS) } else { end };
        check_end_not_before_start(form, start, last, language)?;
        Ok(Some(end))
    }

    /// Reads a beginning, for something that is at `seen` by the clock of `form`.
    fn parse_start(
        &self,
        text: &str,
        form: &DateTimeForm,
        seen: CivilTime,
    ) -> Result<(DateTimeForm, CivilTime), Error> {
        let reading = self.input_zone(form);
        let now = reading.to_civil(self.input.now);
        let moment = PointInTime::parse(text, now, self.input.language)?;
        if moment.is_date {
            let time = if form.is_date() { 0 } else { seen.second_of_day() };
            return Ok((
                form.clone(),
                CivilTime::midnight(moment.at.day_number()).saturating_add(time),
            ));
        }
        // A time alone is on the day on which it is.
        let here = if moment.is_time_only { to_input_civil(form, &reading, seen) } else { now };
        let at = moment.at.saturating_add((here.day_number() - now.day_number()) * DAY_SECONDS);
        if form.is_date() {
            let clock = resolve_clock(self.edit.zone.as_deref(), self.input)?;
            return Ok((DateTimeForm::new(false, &clock), at));
        }
        Ok((form.clone(), from_input_civil(form, &reading, at)))
    }

    /// By whose clock a time is read: that of the zone that was named, else of whoever speaks.
    fn input_zone(&self, form: &DateTimeForm) -> Zone {
        match form.zone().filter(|_| self.edit.zone.is_some()) {
            Some(zone) => zone.clone(),
            None => self.input.local.clone(),
        }
    }

    /// Reads an end. A day alone is at the time at which it ended, or belongs to it.
    fn parse_end(
        &self,
        text: &str,
        plan: &ComponentSchedule,
        form: &DateTimeForm,
        start: CivilTime,
    ) -> Result<CivilTime, Error> {
        let reading = self.input_zone(form);
        let (here, now) = (to_input_civil(form, &reading, start), reading.to_civil(self.input.now));
        let moment = PointInTime::parse_end(text, here, now, self.input.language)?;
        let day = CivilTime::midnight(moment.at.day_number());
        match (form.is_date(), moment.is_date) {
            (true, true) => Ok(day.saturating_add(DAY_SECONDS)),
            (true, false) => Err(Error::MixedDateAndTime),
            (false, false) => Ok(from_input_civil(form, &reading, moment.at)),
            (false, true) => Ok(match plan.end_civil().second_of_day() {
                time if time != 0 && plan.duration_seconds() > 0 && !plan.form.is_date() => {
                    day.saturating_add(time)
                }
                _ => from_input_civil(form, &reading, day.saturating_add(DAY_SECONDS)),
            }),
        }
    }

    fn parse_shift(&self, text: &str) -> Result<IcalDuration, Error> {
        let text = text.trim();
        let (sign, length) = match text.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let IcalDuration { days, seconds } = parse_duration(length, self.input.language)?;
        Ok(IcalDuration { days: sign * days, seconds: sign * seconds })
    }

    /// Gives it these alarms, and no other.
    fn set_alarms(&self, part: &mut EditableComponent, alarms: &[String]) -> Result<(), Error> {
        part.remove_subcomponents("VALARM");
        let begins = !part.property_texts("DTSTART").is_empty();
        let summary = part.summary();
        let said = alarms.iter().filter(|text| !text.trim().is_empty());
        let all = said.map(|text| parse_duration(text, self.input.language));
        for before in dedup_alarms(all.collect::<Result<_, _>>()?) {
            part.append_subcomponent(build_alarm(&summary, before, begins));
        }
        Ok(())
    }

    /// A new rule has to have the beginning: else it would mean something else to each program.
    fn ensure_start_matches_rule(&self, part: &EditableComponent) -> Result<(), Error> {
        let Some(plan) = part.schedule(self.deriver) else { return Ok(()) };
        for text in part.property_texts("RRULE") {
            let rule = Rule::parse(&text)?;
            if rule.occurrences_from(plan.start, plan.start).next() != Some(plan.start) {
                return Err(Error::NeedsStart);
            }
        }
        Ok(())
    }

    /// Changes one component, of which it is known when it is to be.
    pub(super) fn apply(
        &self,
        part: &mut EditableComponent,
        target: &Option<NewTime>,
    ) -> Result<(), Error> {
        let before = part.bytes.clone();
        editable_field::set_fields(part, &self.edit.fields, self.input.now)?;
        if let Some(alarms) = &self.edit.alarms {
            self.set_alarms(part, alarms)?;
        }
        let timeless = part.bytes.clone();
        let whole = part.property_texts("RECURRENCE-ID").is_empty();
        if let Some(rule) = self.edit.rule.as_ref().filter(|_| whole) {
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
        if let (Some(target), Some(own)) = (target, part.schedule(self.deriver)) {
            target.apply_to(part, &own, self.deriver);
        }
        if self.edit.rule.is_some() && whole {
            self.ensure_start_matches_rule(part)?;
        }
        if part.bytes != before {
            part.bump_revision(self.input.now, part.bytes != timeless);
        }
        Ok(())
    }
}

/// Of whole days, what is at a time.
fn to_all_day(target: NewTime, plan: &ComponentSchedule) -> NewTime {
    if target.form.is_date() {
        return target;
    }
    let said = target.duration.map(|length| target.form.key_to_civil(target.end_key(length)));
    let NewTime { form, start, end, task_start: begin, .. } = target;
    let day = |civil: CivilTime| CivilTime::midnight(civil.day_number());
    let length = if plan.form.is_date() { 0 } else { plan.duration_seconds() };
    let end = end
        .or(said)
        .unwrap_or_else(|| form.key_to_civil(form.civil_to_key(start).saturating_add(length)));
    let last = if end > start { end.saturating_add(-1) } else { start };
    let form = DateTimeForm::new(true, &ZoneReference::Floating);
    let (start, end, begin) =
        (day(start), Some(day(last).saturating_add(DAY_SECONDS)), begin.map(day));
    NewTime { form, start, end, duration: None, task_start: begin }
}

/// An end is not before its beginning.
fn check_end_not_before_start(
    form: &DateTimeForm,
    start: CivilTime,
    end: CivilTime,
    language: &Language,
) -> Result<(), EventRequestError> {
    if form.civil_to_key(start) <= form.civil_to_key(end) {
        return Ok(());
    }
    let (start, end) = (
        format_civil(start, form.is_date(), language),
        format_civil(end, form.is_date(), language),
    );
    Err(EventRequestError::EndBeforeStart { start, end })
}

/// What another clock shows when that of a form shows this; the same where it floats.
fn to_input_civil(form: &DateTimeForm, reading: &Zone, civil: CivilTime) -> CivilTime {
    form.zone().map_or(civil, |zone| reading.to_civil(zone.to_instant(civil)))
}

/// So much later: days on the clock, and then seconds; of days, whole days.
fn add_duration_to_civil(form: &DateTimeForm, from: CivilTime, length: IcalDuration) -> CivilTime {
    let start = CalendarDateTime {
        civil: from,
        is_date: form.is_date(),
        zone_reference: form.clock().clone(),
    };
    let civil = add_duration(&start, length);
    if form.is_date() { CivilTime::midnight(civil.day_number()) } else { civil }
}

/// What the clock of a form shows when another one shows this; the same where it floats.
fn from_input_civil(form: &DateTimeForm, reading: &Zone, civil: CivilTime) -> CivilTime {
    match form.clock() {
        ZoneReference::Floating => civil,
        // As it was said, even if the clock leaves it out on that day.
        _ if form.zone() == Some(reading) => civil,
        _ => form.key_to_civil(reading.to_instant(civil).seconds()),
    }
}
