//! One component of a series while it is being changed: its bytes, what is around it, and what it says of time.

use super::draft::define;
use super::form::{Form, utc};
use larder_format::component::{self, Component, Timed};
use larder_format::edit;
use larder_format::field::calendar_field;
use larder_format::write::Draft;
use larder_store::{Deriver, Frame};
use larder_time::civil::{Civil, DAY, Instant};
use larder_time::rule::Budget;
use larder_time::series::{Detached, Occurrence, Series, Start};
use larder_time::zone::Zone;
use std::sync::Arc;

/// A component, and what the calendar around it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) uid: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) frame: Frame,
}

/// When a component is, by itself.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) form: Form,
    pub(crate) start: Civil,
    /// DTSTART, or DUE where there is none.
    pub(crate) name: &'static str,
    series: Series,
}

/// What becomes of a value of a list.
pub(crate) enum Fate {
    Keep,
    Drop,
    /// It is written so, in the form of the series.
    Write(String),
}

impl Part {
    pub(crate) fn plan(&self, deriver: &Deriver) -> Option<Plan> {
        let component = Component::parse(&self.bytes);
        let named = |name| Some((name, Form::named(name, &component, deriver, &self.frame)?));
        let (name, (form, start)) = named("DTSTART").or_else(|| named("DUE"))?;
        let description = deriver.description(&component, &self.frame)?;
        let (series, _) = Series::new(&description, Budget::default());
        Some(Plan { form, start: start.civil, name, series })
    }

    /// Gives a property one value.
    pub(crate) fn set(&mut self, name: &str, params: &[(&str, &str)], value: &str) {
        self.take(edit::set(&self.bytes, name, params, value));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if Component::parse(&self.bytes).named(name).next().is_some() {
            self.take(edit::remove(&self.bytes, name));
        }
    }

    pub(crate) fn set_time(&mut self, name: &str, form: &Form, civil: Civil) {
        self.set(name, &form.params(), &form.value(civil));
        define(&mut self.frame, form, civil);
    }

    pub(crate) fn append(&mut self, name: &str, params: &[(&str, &str)], value: &str) {
        let line = larder_format::write::content_line(name, params, value);
        self.take(edit::append(&self.bytes, &line));
    }

    pub(crate) fn remove_parts(&mut self, name: &str) {
        self.take(edit::remove_parts(&self.bytes, &|part| part.name() == name));
    }

    pub(crate) fn append_part(&mut self, part: Draft) {
        self.take(edit::append_part(&self.bytes, part));
    }

    /// What it is about.
    pub(crate) fn summary(&self) -> String {
        let field = calendar_field("summary");
        field.and_then(|field| Component::parse(&self.bytes).first(field)).unwrap_or_default()
    }

    fn take(&mut self, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.bytes = bytes;
        }
    }

    /// Gives a property as many values as there are.
    pub(crate) fn set_all(&mut self, name: &str, values: &[String]) {
        let mut values = values.iter();
        match values.next() {
            None => self.remove(name),
            Some(first) => self.set(name, &[], first),
        }
        for value in values {
            self.append(name, &[], value);
        }
    }

    /// Takes out the alarms that ring at a moment of their own. They are of the series, not of each occurrence, and ring once.
    pub(crate) fn remove_alarms_at_moments(&mut self) {
        self.take(edit::remove_parts(&self.bytes, &|part| {
            part.name() == "VALARM" && rings_at_a_moment(part)
        }));
        // vCalendar 1.0 has no others.
        for name in ["DALARM", "AALARM", "PALARM", "MALARM"] {
            self.remove(name);
        }
    }

    /// Has a property as another component of its calendar has it.
    pub(crate) fn take_over(&mut self, other: &Part, name: &str) {
        self.remove(name);
        for timed in Component::parse(&other.bytes).timed(name).filter(|of| !of.text.is_empty()) {
            let params = [("TZID", &timed.tzid), ("VALUE", &timed.value)];
            let params = params.iter().filter_map(|(name, of)| Some((*name, of.as_deref()?)));
            self.append(name, &params.collect::<Vec<_>>(), &timed.text);
            let zone = timed.tzid.as_deref().and_then(|tzid| other.frame.zone(tzid));
            if let Some(zone) = zone.filter(|zone| self.frame.zone(zone.tzid()).is_none()) {
                self.frame.zones.push(Arc::clone(zone));
            }
        }
    }

    /// Do the alarms of another component ring as these do? Those that ring at a moment of their own are of the series alone.
    pub(crate) fn rings_as(&self, other: &Part) -> bool {
        const SAY: [&str; 4] = ["TRIGGER", "ACTION", "REPEAT", "DURATION"];
        let rings = |part: &Part| -> Vec<[Vec<String>; 4]> {
            let component = Component::parse(&part.bytes);
            let alarms = component.parts().iter().filter(|part| part.name() == "VALARM");
            let texts = |part: &component::Part<'_>, name: &str| -> Vec<String> {
                part.timed(name).map(|timed| timed.text.into_owned()).collect()
            };
            let relative = alarms.filter(|part| !rings_at_a_moment(part));
            relative.map(|part| SAY.map(|name| texts(part, name))).collect()
        };
        rings(self) == rings(other)
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let component = Component::parse(&self.bytes);
        let texts = component.timed(name).map(|timed| timed.text.into_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Decides about each value of EXDATE or RDATE. Lines with nothing to change stay as they are.
    pub(crate) fn values(
        &mut self,
        name: &str,
        deriver: &Deriver,
        form: &Form,
        fate: &mut dyn FnMut(&Start, &str) -> Fate,
    ) {
        let bytes = self.bytes.clone();
        let component = Component::parse(&bytes);
        let mut lines: Vec<Line> = Vec::new();
        let mut changed = false;
        for timed in component.timed(name) {
            let (mut kept, mut written) = (Vec::new(), Vec::new());
            for text in timed.text.split(',') {
                let first = text.split('/').next().unwrap_or_default();
                let start =
                    deriver.start(&Timed { text: first.into(), ..timed.clone() }, &self.frame);
                match start.map_or(Fate::Keep, |start| fate(&start, text)) {
                    Fate::Keep => kept.push(text.to_string()),
                    Fate::Drop => changed = true,
                    Fate::Write(text) => {
                        changed = true;
                        written.push(text);
                    }
                }
            }
            if !kept.is_empty() {
                let params = [("TZID", &timed.tzid), ("VALUE", &timed.value)];
                let params = params.into_iter();
                let params =
                    params.filter_map(|(name, of)| Some((name, of.as_deref()?.to_string())));
                join(&mut lines, params.collect(), kept.join(","));
            }
            if !written.is_empty() {
                let mut params: Vec<(&'static str, String)> =
                    form.params().into_iter().map(|(name, of)| (name, of.to_string())).collect();
                if written.iter().any(|text| text.contains('/')) {
                    params.push(("VALUE", "PERIOD".to_string()));
                }
                join(&mut lines, params, written.join(","));
            }
        }
        if !changed {
            return;
        }
        self.remove(name);
        for (params, value) in lines {
            let params: Vec<(&str, &str)> =
                params.iter().map(|(name, of)| (*name, &**of)).collect();
            self.append(name, &params, &value);
        }
    }

    /// Notes that it was changed, and whether that concerns when it is. Where it has an organizer, its revision is that of their
    /// messages, which would be older else (RFC 5546, 2.1.4), and stays.
    pub(crate) fn touch(&mut self, now: Instant, rescheduled: bool) {
        self.set("LAST-MODIFIED", &[], &utc(now));
        if self.texts("ORGANIZER").iter().any(|organizer| !organizer.trim().is_empty()) {
            return;
        }
        self.set("DTSTAMP", &[], &utc(now));
        if rescheduled {
            let before: u32 =
                self.texts("SEQUENCE").first().and_then(|text| text.parse().ok()).unwrap_or(0);
            self.set("SEQUENCE", &[], &before.saturating_add(1).to_string());
        }
    }

    /// Which occurrence it stands for.
    pub(crate) fn original(&self, deriver: &Deriver) -> Option<(Start, bool)> {
        let component = Component::parse(&self.bytes);
        let timed = component.recurrence_id()?;
        let following =
            timed.range.as_deref().is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        Some((deriver.start(&timed, &self.frame)?, following))
    }
}

/// The parameters and the values of a line.
type Line = (Vec<(&'static str, String)>, String);

/// Adds values, to a line of the same parameters if there is one: each line takes a look at all of the component.
/// Does an alarm ring at a moment of its own, and not before or after its item?
fn rings_at_a_moment(alarm: &component::Part<'_>) -> bool {
    let trigger = alarm.timed("TRIGGER").find(|timed| !timed.text.is_empty());
    trigger.is_some_and(|timed| !timed.text.contains(['P', 'p']))
}

fn join(lines: &mut Vec<Line>, params: Vec<(&'static str, String)>, values: String) {
    match lines.iter_mut().find(|(known, _)| *known == params) {
        Some((_, known)) => {
            known.push(',');
            known.push_str(&values);
        }
        None => lines.push((params, values)),
    }
}

impl Plan {
    /// The moment that a value of a list means in this series, or what its clock shows if it floats: what it is known by.
    pub(crate) fn key(&self, time: &Start) -> i64 {
        self.series.key_near(time)
    }

    /// The same of a RECURRENCE-ID, which as a day means what is planned on that day.
    pub(crate) fn key_of_original(&self, time: &Start) -> i64 {
        self.series.key_of_original(time)
    }

    pub(crate) fn shown(&self, key: i64) -> Civil {
        self.form.shown(key)
    }

    /// How long its first takes, in seconds.
    pub(crate) fn length(&self) -> i64 {
        let first = self.from(Instant::MIN.seconds()).next();
        first.map_or(0, |one| one.end.seconds().saturating_sub(one.start.seconds()))
    }

    /// When its first ends, by its clock.
    pub(crate) fn ends(&self) -> Civil {
        self.form.shown(self.form.key(self.start).saturating_add(self.length()))
    }

    /// The key so many seconds later on the clock.
    pub(crate) fn later(&self, key: i64, seconds: i64) -> i64 {
        if seconds == 0 { key } else { self.form.key(self.shown(key).plus(seconds)) }
    }

    pub(crate) fn recurs(&self) -> bool {
        self.series.recurs()
    }

    /// What is planned at or after a key, in order.
    pub(crate) fn from(&self, key: i64) -> impl Iterator<Item = Occurrence> + '_ {
        let (from, budget) = (Instant::clamped(key), Budget::default());
        // By this clock, the moment of what floats is what its clock shows.
        let all = self.series.occurrences(from, Instant::MAX, &Zone::UTC, Detached::Leave, budget);
        all.filter(move |one| one.original.seconds() >= key)
    }

    /// The last that is planned before a key.
    pub(crate) fn before(&self, key: i64) -> Option<i64> {
        // Most recur often, and none less than once in some centuries.
        [3600, 2 * DAY, 40 * DAY, 800 * DAY, 200_000 * DAY].into_iter().find_map(|span| {
            let (from, to) = (Instant::clamped(key.saturating_sub(span)), Instant::clamped(key));
            let budget = Budget::default();
            let all = self.series.occurrences(from, to, &Zone::UTC, Detached::Leave, budget);
            all.map(|one| one.original.seconds()).filter(|one| *one < key).last()
        })
    }

    /// What is planned for a key.
    pub(crate) fn at(&self, key: i64) -> Option<Occurrence> {
        let (from, to) = (Instant::clamped(key), Instant::clamped(key.saturating_add(1)));
        let budget = Budget::default();
        let mut all = self.series.occurrences(from, to, &Zone::UTC, Detached::Leave, budget);
        all.find(|one| one.original.seconds() == key)
    }

    /// The day of what is planned for a key, by this clock; without one, or where it floats, by its own.
    pub(crate) fn day(&self, key: i64, by: Option<&Zone>) -> i64 {
        match by.filter(|_| self.form.zone().is_some()) {
            Some(zone) => zone.civil(Instant::clamped(key)).day(),
            None => self.shown(key).day(),
        }
    }

    /// The keys of what is planned on a day by this clock; without one, by its own.
    pub(crate) fn on(&self, day: i64, by: Option<&Zone>) -> Vec<i64> {
        // Whatever the clocks, it is not further away than two days.
        let around = |days: i64| Instant::clamped(Civil::midnight(day + days).seconds());
        let (from, to, budget) = (around(-2), around(3), Budget::default());
        let all = self.series.occurrences(from, to, &Zone::UTC, Detached::Leave, budget);
        let keys = all.map(|one| one.original.seconds());
        keys.filter(|key| self.day(*key, by) == day).collect()
    }

    /// The first that is planned.
    pub(crate) fn first(&self) -> Option<i64> {
        self.from(Instant::MIN.seconds()).next().map(|one| one.original.seconds())
    }
}

/// What a value of RDATE says behind its beginning, as a length.
pub(crate) fn length_of(text: &str) -> Option<String> {
    use larder_time::value::{Nominal, Period, PeriodEnd};
    let period = Period::parse(text).ok()?;
    Some(match period.end {
        PeriodEnd::After(length) => length.to_string(),
        PeriodEnd::At(end) => {
            let seconds = end.civil.seconds() - period.start.civil.seconds();
            Nominal { days: 0, seconds: seconds.max(0) }.to_string()
        }
    })
}
