//! What a person wants to be otherwise in an event, a task or a memo, and how one component is changed by it.
//!
//! Which of the components of a series are changed, and what else moves with them, is for [`scope`](super::scope).

use super::Error;
use super::draft::{alarm, distinct, exact, is_said, later};
use super::field;
use super::form::Form;
use super::part::{Part, Plan};
use super::said::{SaidError, Speaker, clock, words};
use larder_date_phrase::{self as phrase, Language, Moment, PhraseError};
use larder_format::component::{Component, Kind};
use larder_store::Deriver;
use larder_time::civil::{Civil, DAY};
use larder_time::rule::Rule;
use larder_time::series::{Clock, Start};
use larder_time::value::Nominal;
use larder_time::zone::Zone;

/// What is to be otherwise, each as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// When it begins. A time alone is on the day on which it is, a day alone at the time at which it is.
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

impl Edit {
    /// What of it concerns an occurrence that was changed by itself: what that has of its series, and not of its own. The times are not
    /// in it, as they hang on those of the series.
    pub(super) fn inherited(&self, of: &Part, series: &Part) -> Edit {
        let same = |(name, _): &&(String, String)| field::is_same(name, of, series);
        Edit {
            alarms: self.alarms.clone().filter(|_| of.rings_as(series)),
            fields: self.fields.iter().filter(same).cloned().collect(),
            ..Edit::default()
        }
    }

    /// Is there more in another one that is no time?
    pub(super) fn leaves_out(&self, other: &Edit) -> bool {
        self.fields.len() < other.fields.len() || self.alarms.is_none() && other.alarms.is_some()
    }

    /// Is nothing to be otherwise?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// Takes a field and its value in: `summary=Lunch`.
    ///
    /// # Errors
    /// There is no such field, or it is not one that can be set.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let time = match name.to_ascii_lowercase().as_str() {
            "start" | "dtstart" => Some(&mut self.start),
            "end" | "due" | "dtend" => Some(&mut self.end),
            "rule" | "rrule" => Some(&mut self.rule),
            _ => None,
        };
        match time {
            Some(time) => *time = Some(value.to_string()),
            None => {
                field::known(name)?;
                self.fields.push((name.to_string(), value.to_string()));
            }
        }
        Ok(())
    }
}

/// When something is to be.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) form: Form,
    pub(super) start: Civil,
    /// Its end, exclusive; `None`: it takes as long as before.
    pub(super) end: Option<Civil>,
    /// How long it takes, where that is said instead.
    length: Option<Nominal>,
    /// When it begins, of what was only due before.
    begin: Option<Civil>,
}

impl Target {
    /// A beginning, and as long as before.
    pub(super) fn new(form: Form, start: Civil) -> Target {
        Target { form, start, end: None, length: None, begin: None }
    }

    /// The same for so many seconds.
    pub(super) fn lasting(self, seconds: i64) -> Target {
        let days = if self.form.is_date() { seconds / DAY } else { 0 };
        let length = Some(Nominal { days, seconds: seconds - days * DAY });
        Target { length, end: None, ..self }
    }

    /// The same so many seconds later on the clock.
    pub(super) fn moved(self, seconds: i64) -> Target {
        let later = |of: Option<Civil>| of.map(|of| of.plus(seconds));
        let (end, begin) = (later(self.end), later(self.begin));
        Target { start: self.start.plus(seconds), end, begin, ..self }
    }

    /// Sees to it that a component that is at `own` is then instead.
    pub(super) fn put(&self, part: &mut Part, own: &Plan, deriver: &Deriver) {
        let task = *Component::parse(&part.bytes).kind() == Kind::Task;
        let name = if task { "DUE" } else { "DTEND" };
        let end = match (self.end, self.length) {
            _ if own.name == name => None,
            (Some(end), _) => Some((self.form.clone(), self.form.key(end))),
            (None, Some(length)) => Some((self.form.clone(), self.after(length))),
            (None, None) => self.same_length(part, own, name, deriver),
        };
        part.set_time(own.name, &self.form, self.start);
        if let Some(begin) = self.begin {
            part.set_time("DTSTART", &self.form, begin);
        }
        let Some((form, key)) = end else { return };
        let seconds = key.saturating_sub(self.form.key(self.start));
        if self.end.is_none() && !form.is_date() && !is_said(&self.form, self.start, key) {
            part.remove(name);
            part.set("DURATION", &[], &exact(seconds));
            return;
        }
        part.remove("DURATION");
        // A day that a task is due is the day itself.
        let itself = task && form.is_date() && self.is_ended();
        let end = form.shown(key);
        let end = if itself { end.plus(-DAY).max(self.start) } else { end };
        part.set_time(name, &form, end);
    }

    fn is_ended(&self) -> bool {
        self.end.is_some() || self.length.is_some()
    }

    /// The key of the time so much later than its beginning.
    fn after(&self, length: Nominal) -> i64 {
        let Nominal { days, seconds } = length;
        self.form.key(self.start.plus(days.saturating_mul(DAY))).saturating_add(seconds)
    }

    /// The end, if it is said, of what takes as long as before.
    fn same_length(
        &self,
        part: &Part,
        own: &Plan,
        name: &str,
        deriver: &Deriver,
    ) -> Option<(Form, i64)> {
        let component = Component::parse(&part.bytes);
        let (form, end) = Form::named(name, &component, deriver, &part.frame)?;
        if self.form.is_date() != own.form.is_date() {
            let length = if self.form.is_date() { DAY } else { 3600 };
            return Some((self.form.clone(), self.form.key(self.start).saturating_add(length)));
        }
        if self.form.is_date() {
            let days = self.start.seconds() - own.start.seconds();
            return Some((form.clone(), form.key(end.civil.plus(days))));
        }
        let length = form.key(end.civil).saturating_sub(own.form.key(own.start));
        let key = self.form.key(self.start).saturating_add(length);
        Some((if self.form == own.form { form } else { self.form.clone() }, key))
    }
}

/// An edit, by whom, and of what store.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) edit: &'a Edit,
    pub(super) speaker: &'a Speaker<'a>,
    pub(super) deriver: &'a Deriver,
}

impl Asked<'_> {
    /// When this component is to be; `None`: when it is.
    pub(super) fn target(&self, part: &Part) -> Result<Option<Target>, Error> {
        match part.plan(self.deriver) {
            Some(plan) => self.target_of(&plan, plan.start),
            None if self.is_moved() => Err(Error::NoTime),
            None => Ok(None),
        }
    }

    fn is_moved(&self) -> bool {
        let Edit { start, end, length, shift, zone, all_day, .. } = self.edit;
        *all_day || [start, end, length, shift, zone].into_iter().any(Option::is_some)
    }

    /// When an occurrence is to be that is at `seen`.
    pub(super) fn target_of(&self, plan: &Plan, seen: Civil) -> Result<Option<Target>, Error> {
        if !self.is_moved() {
            return Ok(None);
        }
        let mut form = plan.form.clone();
        if let Some(zone) = self.edit.zone.as_deref().filter(|_| !form.is_date()) {
            form = Form::new(false, &clock(Some(zone), self.speaker)?);
        }
        // What only has a day that it is due has no other time.
        let due = plan.name == "DUE";
        let said = if due { &self.edit.end } else { &self.edit.start };
        let (form, start) = match said {
            Some(text) => self.said(text, &form, seen)?,
            None => (form, seen),
        };
        let start = match &self.edit.shift {
            Some(shift) => at(&form, start, self.shift(shift)?),
            None => start,
        };
        let mut target = Target::new(form, start);
        match due {
            true => target.begin = self.begin(&target)?,
            false if self.edit.length.is_some() => target.length = self.length(&target.form)?,
            false => target.end = self.ending(plan, &target)?,
        }
        if self.edit.all_day {
            target = whole_days(target, plan);
        }
        Ok(Some(target))
    }

    /// When something begins that was only due.
    fn begin(&self, target: &Target) -> Result<Option<Civil>, Error> {
        if self.edit.length.is_some() {
            return Err(SaidError::NoBeginning.into());
        }
        let Some(text) = &self.edit.start else { return Ok(None) };
        let (form, begin) = self.said(text, &target.form, target.start)?;
        if form.is_date() != target.form.is_date() {
            return Err(Error::Mixed);
        }
        in_order(&form, begin, target.start, self.speaker.language)?;
        Ok(Some(begin))
    }

    /// How long it takes, if that is said.
    fn length(&self, form: &Form) -> Result<Option<Nominal>, Error> {
        let Some(text) = &self.edit.length else { return Ok(None) };
        let length = phrase::length(text, self.speaker.language)?;
        if form.is_date() && length.seconds != 0 {
            return Err(PhraseError::NoStart { text: text.clone() }.into());
        }
        Ok(Some(length))
    }

    /// When it ends, exclusive, if that is said.
    fn ending(&self, plan: &Plan, target: &Target) -> Result<Option<Civil>, Error> {
        let (form, start) = (&target.form, target.start);
        let language = self.speaker.language;
        let Some(text) = &self.edit.end else { return Ok(None) };
        let end = self.end(text, plan, form, start)?;
        let last = if form.is_date() { end.plus(-DAY) } else { end };
        in_order(form, start, last, language)?;
        Ok(Some(end))
    }

    /// Reads a beginning, for something that is at `seen` by the clock of `form`.
    fn said(&self, text: &str, form: &Form, seen: Civil) -> Result<(Form, Civil), Error> {
        let reading = self.reading(form);
        let now = reading.civil(self.speaker.now);
        let moment = Moment::parse(text, now, self.speaker.language)?;
        if moment.date {
            let time = if form.is_date() { 0 } else { seen.second_of_day() };
            return Ok((form.clone(), Civil::midnight(moment.at.day()).plus(time)));
        }
        // A time alone is on the day on which it is.
        let here = if moment.clock { shown_by(form, &reading, seen) } else { now };
        let at = moment.at.plus((here.day() - now.day()) * DAY);
        if form.is_date() {
            let clock = clock(self.edit.zone.as_deref(), self.speaker)?;
            return Ok((Form::new(false, &clock), at));
        }
        Ok((form.clone(), read_by(form, &reading, at)))
    }

    /// By whose clock a time is read: that of the zone that was named, else of whoever speaks.
    fn reading(&self, form: &Form) -> Zone {
        match form.zone().filter(|_| self.edit.zone.is_some()) {
            Some(zone) => zone.clone(),
            None => self.speaker.local.clone(),
        }
    }

    /// Reads an end. A day alone is at the time at which it ended, or belongs to it.
    fn end(&self, text: &str, plan: &Plan, form: &Form, start: Civil) -> Result<Civil, Error> {
        let reading = self.reading(form);
        let (here, now) = (shown_by(form, &reading, start), reading.civil(self.speaker.now));
        let moment = Moment::end_of(text, here, now, self.speaker.language)?;
        let day = Civil::midnight(moment.at.day());
        match (form.is_date(), moment.date) {
            (true, true) => Ok(day.plus(DAY)),
            (true, false) => Err(Error::Mixed),
            (false, false) => Ok(read_by(form, &reading, moment.at)),
            (false, true) => Ok(match plan.ends().second_of_day() {
                time if time != 0 && plan.length() > 0 && !plan.form.is_date() => day.plus(time),
                _ => read_by(form, &reading, day.plus(DAY)),
            }),
        }
    }

    fn shift(&self, text: &str) -> Result<Nominal, Error> {
        let text = text.trim();
        let (sign, length) = match text.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let Nominal { days, seconds } = phrase::length(length, self.speaker.language)?;
        Ok(Nominal { days: sign * days, seconds: sign * seconds })
    }

    /// Gives it these alarms, and no other.
    fn ring(&self, part: &mut Part, alarms: &[String]) -> Result<(), Error> {
        part.remove_parts("VALARM");
        let begins = !part.texts("DTSTART").is_empty();
        let summary = part.summary();
        let said = alarms.iter().filter(|text| !text.trim().is_empty());
        let all = said.map(|text| phrase::length(text, self.speaker.language));
        for before in distinct(all.collect::<Result<_, _>>()?) {
            part.append_part(alarm(&summary, before, begins));
        }
        Ok(())
    }

    /// A new rule has to have the beginning: else it would mean something else to each program.
    fn begun(&self, part: &Part) -> Result<(), Error> {
        let Some(plan) = part.plan(self.deriver) else { return Ok(()) };
        for text in part.texts("RRULE") {
            let rule = Rule::parse(&text)?;
            if rule.from(plan.start, plan.start).next() != Some(plan.start) {
                return Err(Error::NeedsStart);
            }
        }
        Ok(())
    }

    /// Changes one component, of which it is known when it is to be.
    pub(super) fn apply(&self, part: &mut Part, target: &Option<Target>) -> Result<(), Error> {
        let before = part.bytes.clone();
        field::set(part, &self.edit.fields, self.speaker.now)?;
        if let Some(alarms) = &self.edit.alarms {
            self.ring(part, alarms)?;
        }
        let timeless = part.bytes.clone();
        let whole = part.texts("RECURRENCE-ID").is_empty();
        if let Some(rule) = self.edit.rule.as_ref().filter(|_| whole) {
            match rule.trim() {
                "" => {
                    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
                        part.remove(name);
                    }
                }
                rule => {
                    Rule::parse(rule).map_err(Error::Rule)?;
                    part.set("RRULE", &[], rule);
                }
            }
        }
        if let (Some(target), Some(own)) = (target, part.plan(self.deriver)) {
            target.put(part, &own, self.deriver);
        }
        if self.edit.rule.is_some() && whole {
            self.begun(part)?;
        }
        if part.bytes != before {
            part.touch(self.speaker.now, part.bytes != timeless);
        }
        Ok(())
    }
}

/// Of whole days, what is at a time.
fn whole_days(target: Target, plan: &Plan) -> Target {
    if target.form.is_date() {
        return target;
    }
    let said = target.length.map(|length| target.form.shown(target.after(length)));
    let Target { form, start, end, begin, .. } = target;
    let day = |civil: Civil| Civil::midnight(civil.day());
    let length = if plan.form.is_date() { 0 } else { plan.length() };
    let end = end.or(said).unwrap_or_else(|| form.shown(form.key(start).saturating_add(length)));
    let last = if end > start { end.plus(-1) } else { start };
    let form = Form::new(true, &Clock::Floating);
    let (start, end, begin) = (day(start), Some(day(last).plus(DAY)), begin.map(day));
    Target { form, start, end, length: None, begin }
}

/// An end is not before its beginning.
fn in_order(form: &Form, start: Civil, end: Civil, language: &Language) -> Result<(), SaidError> {
    if form.key(start) <= form.key(end) {
        return Ok(());
    }
    let (start, end) =
        (words(start, form.is_date(), language), words(end, form.is_date(), language));
    Err(SaidError::Backwards { start, end })
}

/// What another clock shows when that of a form shows this; the same where it floats.
fn shown_by(form: &Form, reading: &Zone, civil: Civil) -> Civil {
    form.zone().map_or(civil, |zone| reading.civil(zone.instant(civil)))
}

/// So much later: days on the clock, and then seconds; of days, whole days.
fn at(form: &Form, from: Civil, length: Nominal) -> Civil {
    let start = Start { civil: from, date: form.is_date(), clock: form.clock().clone() };
    let civil = later(&start, length);
    if form.is_date() { Civil::midnight(civil.day()) } else { civil }
}

/// What the clock of a form shows when another one shows this; the same where it floats.
fn read_by(form: &Form, reading: &Zone, civil: Civil) -> Civil {
    match form.clock() {
        Clock::Floating => civil,
        // As it was said, even if the clock leaves it out on that day.
        _ if form.zone() == Some(reading) => civil,
        _ => form.shown(reading.instant(civil).seconds()),
    }
}
