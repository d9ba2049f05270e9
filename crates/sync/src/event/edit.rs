//! What a person wants to be otherwise in an event, a task or a memo, and how one component is changed by it.
//!
//! Which of the components of a series are changed, and what else moves with them, is for [`scope`](super::scope).

use super::Error;
use super::draft::later;
use super::form::Form;
use super::part::{Part, Plan};
use super::said::{Speaker, clock};
use larder_format::component::{Component, Kind};
use larder_format::write::escape_text;
use larder_store::Deriver;
use larder_time::civil::{Civil, DAY};
use larder_time::phrase::{self, Moment};
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
    /// Names of fields, and what they are to be; an empty one is taken out.
    pub fields: Vec<(String, String)>,
}

/// How a property has its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Text,
    List,
    /// In capital letters.
    Word,
    Plain,
}

/// The fields that can be set, by their names in the table of fields, and their properties.
const FIELDS: &[(&str, &str, Value)] = &[
    ("summary", "SUMMARY", Value::Text),
    ("description", "DESCRIPTION", Value::Text),
    ("location", "LOCATION", Value::Text),
    ("comment", "COMMENT", Value::Text),
    ("contact", "CONTACT", Value::Text),
    ("category", "CATEGORIES", Value::List),
    ("resources", "RESOURCES", Value::List),
    ("status", "STATUS", Value::Word),
    ("class", "CLASS", Value::Word),
    ("transp", "TRANSP", Value::Word),
    ("priority", "PRIORITY", Value::Plain),
    ("percent", "PERCENT-COMPLETE", Value::Plain),
    ("url", "URL", Value::Plain),
    ("color", "COLOR", Value::Plain),
];

impl Edit {
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
                let _known = property(name)?;
                self.fields.push((name.to_string(), value.to_string()));
            }
        }
        Ok(())
    }
}

fn property(name: &str) -> Result<(&'static str, Value), Error> {
    let field = larder_format::field::calendar_field(name).map(|field| field.name);
    let known = FIELDS.iter().find(|(known, ..)| Some(*known) == field);
    let (_, property, value) = known.ok_or_else(|| Error::NoProperty(name.to_string()))?;
    Ok((property, *value))
}

/// When something is to be.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) form: Form,
    pub(super) start: Civil,
    /// Its end, exclusive; `None`: it takes as long as before.
    pub(super) end: Option<Civil>,
}

impl Target {
    /// The same so many seconds later on the clock.
    pub(super) fn moved(self, seconds: i64) -> Target {
        let end = self.end.map(|end| end.plus(seconds));
        Target { start: self.start.plus(seconds), end, ..self }
    }

    /// Sees to it that a component that is at `own` is then instead.
    pub(super) fn put(&self, part: &mut Part, own: &Plan, deriver: &Deriver) {
        let task = *Component::parse(&part.bytes).kind() == Kind::Task;
        let name = if task { "DUE" } else { "DTEND" };
        let end = match self.end {
            _ if own.name == name => None,
            Some(end) => Some((self.form.clone(), end)),
            None => self.same_length(part, own, name, deriver),
        };
        part.set_time(own.name, &self.form, self.start);
        let Some((form, end)) = end else { return };
        if self.end.is_some() {
            part.remove("DURATION");
        }
        // A day that a task is due is the day itself.
        let itself = task && form.is_date() && self.end.is_some();
        let end = if itself { end.plus(-DAY).max(self.start) } else { end };
        part.set_time(name, &form, end);
    }

    /// The end, if it is said, of what takes as long as before.
    fn same_length(
        &self,
        part: &Part,
        own: &Plan,
        name: &str,
        deriver: &Deriver,
    ) -> Option<(Form, Civil)> {
        let component = Component::parse(&part.bytes);
        let (form, end) = Form::named(name, &component, deriver, &part.frame)?;
        if self.form.is_date() != own.form.is_date() {
            let length = if self.form.is_date() { DAY } else { 3600 };
            return Some((self.form.clone(), self.start.plus(length)));
        }
        if self.form.is_date() {
            let days = self.start.seconds() - own.start.seconds();
            return Some((form, end.civil.plus(days)));
        }
        let length = form.key(end.civil).saturating_sub(own.form.key(own.start));
        let key = self.form.key(self.start).saturating_add(length);
        let form = if self.form == own.form { form } else { self.form.clone() };
        Some((form.clone(), form.shown(key)))
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
        let Edit { start, end, length, shift, zone, .. } = self.edit;
        [start, end, length, shift, zone].into_iter().any(Option::is_some)
    }

    /// When an occurrence is to be that is at `seen`.
    pub(super) fn target_of(&self, plan: &Plan, seen: Civil) -> Result<Option<Target>, Error> {
        if !self.is_moved() {
            return Ok(None);
        }
        // What only has a day that it is due has no other time.
        let due = if plan.name == "DUE" { self.edit.end.as_ref() } else { None };
        let said = self.edit.start.as_ref().or(due);
        let mut form = plan.form.clone();
        if let Some(zone) = self.edit.zone.as_deref().filter(|_| !form.is_date()) {
            form = Form::new(false, &clock(Some(zone), self.speaker)?);
        }
        let (form, start) = match said {
            Some(text) => self.said(text, &form, seen)?,
            None => (form, seen),
        };
        let start = match &self.edit.shift {
            Some(shift) => at(&form, start, self.shift(shift)?),
            None => start,
        };
        let end = match (&self.edit.end, &self.edit.length) {
            (Some(end), _) if due.is_none() => Some(self.end(end, &form, start)?),
            (_, Some(length)) => {
                let length = phrase::length(length, self.speaker.language)?;
                Some(at(&form, start, length))
            }
            _ => None,
        };
        let least = if form.is_date() { start.plus(DAY) } else { start };
        if end.is_some_and(|end| form.key(end) < form.key(least)) {
            return Err(Error::Backwards);
        }
        Ok(Some(Target { form, start, end }))
    }

    /// Reads a beginning, for something that is at `seen` by the clock of `form`.
    fn said(&self, text: &str, form: &Form, seen: Civil) -> Result<(Form, Civil), Error> {
        let (moment, reading) = self.moment(text, form, seen)?;
        if moment.date {
            let time = if form.is_date() { 0 } else { seen.second_of_day() };
            return Ok((form.clone(), Civil::midnight(moment.at.day()).plus(time)));
        }
        if form.is_date() {
            let clock = clock(self.edit.zone.as_deref(), self.speaker)?;
            return Ok((Form::new(false, &clock), moment.at));
        }
        Ok((form.clone(), read_by(form, &reading, moment.at)))
    }

    /// Reads a time, and by whose clock it is: that of the zone that was named, else of whoever speaks.
    fn moment(&self, text: &str, form: &Form, seen: Civil) -> Result<(Moment, Zone), Error> {
        let named = self.edit.zone.is_some();
        let reading = match form.zone().filter(|_| named) {
            Some(zone) => zone.clone(),
            None => self.speaker.local.clone(),
        };
        let here = match form.zone() {
            Some(zone) => reading.civil(zone.instant(seen)),
            None => seen,
        };
        let now = if is_time(text) {
            Civil::midnight(here.day())
        } else {
            reading.civil(self.speaker.now)
        };
        Ok((Moment::parse(text, now, self.speaker.language)?, reading))
    }

    fn end(&self, text: &str, form: &Form, start: Civil) -> Result<Civil, Error> {
        let (moment, reading) = self.moment(text, form, start)?;
        if form.is_date() {
            return match moment.date {
                true => Ok(moment.at.plus(DAY)),
                false => Err(Error::Mixed),
            };
        }
        if moment.date {
            return Ok(read_by(form, &reading, moment.at.plus(DAY)));
        }
        let end = read_by(form, &reading, moment.at);
        // 23:00 to 01:00
        Ok(if is_time(text) && end <= start { end.plus(DAY) } else { end })
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

    /// Changes one component, of which it is known when it is to be.
    pub(super) fn apply(&self, part: &mut Part, target: &Option<Target>) -> Result<(), Error> {
        let before = part.bytes.clone();
        for (name, text) in &self.edit.fields {
            let (property, value) = property(name)?;
            let list = || text.split(',').map(|one| escape_text(one.trim())).collect::<Vec<_>>();
            let value = match value {
                Value::Text => escape_text(text),
                Value::List => list().join(","),
                Value::Word => text.trim().to_ascii_uppercase(),
                Value::Plain => text.trim().to_string(),
            };
            match value.is_empty() {
                true => part.remove(property),
                false => part.set(property, &[], &value),
            }
        }
        let timeless = part.bytes.clone();
        if let Some(rule) = &self.edit.rule {
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
        if part.bytes != before {
            part.touch(self.speaker.now, part.bytes != timeless);
        }
        Ok(())
    }
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
        _ => form.shown(reading.instant(civil).seconds()),
    }
}

/// Is it a time of day and nothing else?
fn is_time(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let plain =
        text.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | 'a' | 'p' | 'm' | 'h' | ' '));
    let two = text.contains([':', 'h']) || text.ends_with("am") || text.ends_with("pm");
    (plain && two) || matches!(&*text, "noon" | "midnight")
}
