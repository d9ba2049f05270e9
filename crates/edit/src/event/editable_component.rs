//! One component of a series while it is changed, and its schedule.
//!
//! Separate from [`edit`](super::edit) because it writes properties and does not depend on the
//! request; every change of bytes goes through this module.

use super::date_time_form::{DateTimeForm, format_utc};
use super::draft::{ensure_zone_defined, format_duration};
use larder_format::component::{self, Component, TimeProperty};
use larder_format::edit;
use larder_format::field::find_calendar_field;
use larder_format::writer::ComponentBuilder;
use larder_store::{CalendarContext, Extractor, ParsedItem};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::StepBudget;
use larder_time::series::{CalendarDateTime, Occurrence, OverrideMode, Series};
use larder_time::value::{Period, PeriodEnd};
use larder_time::zone::Zone;
use std::sync::Arc;

/// A component and its calendar context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditableComponent {
    pub(crate) uid: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) context: CalendarContext,
}

/// The schedule of a component without its overrides.
///
/// Occurrences are identified by keys: the original start as an instant, or, of a floating series,
/// the clock time in seconds.
#[derive(Debug, Clone)]
pub(crate) struct ComponentSchedule {
    pub(crate) form: DateTimeForm,
    pub(crate) start: CivilTime,
    /// DTSTART, or DUE if there is none.
    pub(crate) start_property: &'static str,
    series: Series,
}

/// The change to one value of EXDATE or RDATE.
pub(crate) enum ValueEdit {
    Keep,
    Drop,
    /// The new value, in the form of the series.
    Write(String),
}

/// A RECURRENCE-ID with its time zone resolved.
pub(crate) struct ResolvedRecurrenceId {
    pub(crate) time: CalendarDateTime,
    /// Whether the override applies to all following occurrences (RANGE=THISANDFUTURE).
    pub(crate) following: bool,
}

impl EditableComponent {
    /// A component whose UID is not changed.
    pub(crate) fn new(bytes: Vec<u8>, context: CalendarContext) -> EditableComponent {
        EditableComponent { uid: String::new(), bytes, context }
    }

    /// A parsed item whose UID is not changed.
    pub(crate) fn from_parsed(item: &ParsedItem) -> EditableComponent {
        let context = item.calendar_context().map(|context| CalendarContext::clone(context));
        EditableComponent::new(item.bytes().to_vec(), context.unwrap_or_default())
    }

    pub(crate) fn set_uid(&mut self, uid: &str) {
        self.uid = uid.to_string();
        self.set_property("UID", &[], uid);
    }

    /// Returns `None` if the component has neither DTSTART nor DUE.
    pub(crate) fn schedule(&self, extractor: &Extractor) -> Option<ComponentSchedule> {
        let component = Component::parse(&self.bytes);
        let named = |name| {
            Some((
                name,
                DateTimeForm::from_named_property(name, &component, extractor, &self.context)?,
            ))
        };
        let (name, (form, start)) = named("DTSTART").or_else(|| named("DUE"))?;
        let spec = extractor.series_spec(&component, &self.context)?;
        let (series, _) = Series::new(&spec, StepBudget::default());
        Some(ComponentSchedule { form, start: start.civil, start_property: name, series })
    }

    /// Replaces a property by one value.
    pub(crate) fn set_property(&mut self, name: &str, params: &[(&str, &str)], value: &str) {
        self.replace_bytes(edit::set_property(&self.bytes, name, params, value));
    }

    pub(crate) fn remove_property(&mut self, name: &str) {
        if Component::parse(&self.bytes).properties_named(name).next().is_some() {
            self.replace_bytes(edit::remove_property(&self.bytes, name));
        }
    }

    pub(crate) fn set_time(&mut self, name: &str, form: &DateTimeForm, civil: CivilTime) {
        self.set_property(name, &form.params(), &form.format_value(civil));
        ensure_zone_defined(&mut self.context, form, civil);
    }

    pub(crate) fn append_property(&mut self, name: &str, params: &[(&str, &str)], value: &str) {
        let line = larder_format::writer::format_content_line(name, params, value);
        self.replace_bytes(edit::append_property(&self.bytes, &line));
    }

    pub(crate) fn remove_subcomponents(&mut self, name: &str) {
        self.replace_bytes(edit::remove_subcomponents(&self.bytes, &|part| part.name() == name));
    }

    pub(crate) fn append_subcomponent(&mut self, part: ComponentBuilder) {
        self.replace_bytes(edit::append_subcomponent(&self.bytes, part));
    }

    /// Returns SUMMARY, or an empty text.
    pub(crate) fn summary(&self) -> String {
        let field = find_calendar_field("summary");
        field.and_then(|field| Component::parse(&self.bytes).first_value(field)).unwrap_or_default()
    }

    fn replace_bytes(&mut self, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.bytes = bytes;
        }
    }

    /// Replaces a property by one line for each value.
    pub(crate) fn set_property_values(&mut self, name: &str, values: &[String]) {
        let mut values = values.iter();
        match values.next() {
            None => self.remove_property(name),
            Some(first) => self.set_property(name, &[], first),
        }
        for value in values {
            self.append_property(name, &[], value);
        }
    }

    /// Removes the alarms with an absolute time. They belong to the whole series and ring once.
    pub(crate) fn remove_absolute_alarms(&mut self) {
        self.replace_bytes(edit::remove_subcomponents(&self.bytes, &|part| {
            part.name() == "VALARM" && is_absolute_alarm(part)
        }));
        // All alarms of vCalendar 1.0 are absolute.
        for name in ["DALARM", "AALARM", "PALARM", "MALARM"] {
            self.remove_property(name);
        }
    }

    /// Copies a property from another component, with the definition of its time zone.
    pub(crate) fn copy_property(&mut self, other: &EditableComponent, name: &str) {
        self.remove_property(name);
        for timed in Component::parse(&other.bytes)
            .time_properties(name)
            .filter(|line| !line.text.is_empty())
        {
            let params = [("TZID", &timed.tzid), ("VALUE", &timed.value_type)];
            let params = params.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
            self.append_property(name, &params.collect::<Vec<_>>(), &timed.text);
            let zone = timed.tzid.as_deref().and_then(|tzid| other.context.zone_definition(tzid));
            if let Some(zone) =
                zone.filter(|zone| self.context.zone_definition(zone.tzid()).is_none())
            {
                self.context.zone_definitions.push(Arc::clone(zone));
            }
        }
    }

    /// Returns whether another component has the same alarms. Absolute alarms, which belong to the
    /// series alone, are not compared.
    pub(crate) fn has_same_alarms(&self, other: &EditableComponent) -> bool {
        const ALARM_PROPERTIES: [&str; 4] = ["TRIGGER", "ACTION", "REPEAT", "DURATION"];
        let alarms_of = |part: &EditableComponent| -> Vec<[Vec<String>; 4]> {
            let component = Component::parse(&part.bytes);
            let alarms = component.subcomponents().iter().filter(|part| part.name() == "VALARM");
            let texts = |part: &component::Subcomponent<'_>, name: &str| -> Vec<String> {
                part.time_properties(name).map(|timed| timed.text.into_owned()).collect()
            };
            let relative = alarms.filter(|part| !is_absolute_alarm(part));
            relative.map(|part| ALARM_PROPERTIES.map(|name| texts(part, name))).collect()
        };
        alarms_of(self) == alarms_of(other)
    }

    pub(crate) fn property_texts(&self, name: &str) -> Vec<String> {
        let component = Component::parse(&self.bytes);
        let texts = component.time_properties(name).map(|timed| timed.text.into_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Edits each value of EXDATE or RDATE, given its start, and its duration if it is a period. If
    /// no value changes, the lines stay as they are.
    pub(crate) fn edit_list_values(
        &mut self,
        name: &str,
        extractor: &Extractor,
        form: &DateTimeForm,
        edit_value: &mut dyn FnMut(&CalendarDateTime, Option<String>) -> ValueEdit,
    ) {
        let bytes = self.bytes.clone();
        let component = Component::parse(&bytes);
        let mut lines: Vec<ListLine> = Vec::new();
        let mut changed = false;
        for timed in component.time_properties(name) {
            let (mut kept, mut written) = (Vec::new(), Vec::new());
            let resolve = |text: &str| {
                let property = TimeProperty { text: text.into(), ..timed.clone() };
                extractor.resolve_date_time(&property, &self.context)
            };
            for text in timed.text.split(',') {
                let start = resolve(text.split('/').next().unwrap_or_default());
                match start.map_or(ValueEdit::Keep, |start| {
                    edit_value(&start, period_duration(text, &start, &resolve))
                }) {
                    ValueEdit::Keep => kept.push(text.to_string()),
                    ValueEdit::Drop => changed = true,
                    ValueEdit::Write(text) => {
                        changed = true;
                        written.push(text);
                    }
                }
            }
            if !kept.is_empty() {
                let params = [("TZID", &timed.tzid), ("VALUE", &timed.value_type)];
                let params = params.into_iter();
                let params =
                    params.filter_map(|(name, value)| Some((name, value.as_deref()?.to_string())));
                append_list_line(&mut lines, params.collect(), kept.join(","));
            }
            if !written.is_empty() {
                let mut params: Vec<(&'static str, String)> = form
                    .params()
                    .into_iter()
                    .map(|(name, value)| (name, value.to_string()))
                    .collect();
                if written.iter().any(|text| text.contains('/')) {
                    params.push(("VALUE", "PERIOD".to_string()));
                }
                append_list_line(&mut lines, params, written.join(","));
            }
        }
        if !changed {
            return;
        }
        self.remove_property(name);
        for ListLine { params, values } in lines {
            let params: Vec<(&str, &str)> =
                params.iter().map(|(name, value)| (*name, &**value)).collect();
            self.append_property(name, &params, &values);
        }
    }

    /// Sets LAST-MODIFIED and DTSTAMP, and increments SEQUENCE if the times changed. The revision
    /// of an item with an organizer stays: a higher one would make the next message of the
    /// organizer look outdated (RFC 5546, 2.1.4).
    pub(crate) fn bump_revision(&mut self, now: Instant, rescheduled: bool) {
        self.set_property("LAST-MODIFIED", &[], &format_utc(now));
        if self.property_texts("ORGANIZER").iter().any(|organizer| !organizer.trim().is_empty()) {
            return;
        }
        self.set_property("DTSTAMP", &[], &format_utc(now));
        if rescheduled {
            let before: u32 = self
                .property_texts("SEQUENCE")
                .first()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            self.set_property("SEQUENCE", &[], &before.saturating_add(1).to_string());
        }
    }

    /// Returns the occurrence that the component overrides.
    pub(crate) fn recurrence_id(&self, extractor: &Extractor) -> Option<ResolvedRecurrenceId> {
        let component = Component::parse(&self.bytes);
        let timed = component.recurrence_id()?;
        let following =
            timed.range.as_deref().is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        let time = extractor.resolve_date_time(&timed, &self.context)?;
        Some(ResolvedRecurrenceId { time, following })
    }
}

/// A line of EXDATE or RDATE.
struct ListLine {
    params: Vec<(&'static str, String)>,
    values: String,
}

/// Returns whether an alarm has an absolute time, and not one relative to its item.
fn is_absolute_alarm(alarm: &component::Subcomponent<'_>) -> bool {
    let trigger = alarm.time_properties("TRIGGER").find(|timed| !timed.text.is_empty());
    trigger.is_some_and(|timed| !timed.text.contains(['P', 'p']))
}

/// Appends values to the line with the same parameters, or as a new line. Fewer lines are faster,
/// as writing each one parses the component.
fn append_list_line(
    lines: &mut Vec<ListLine>,
    params: Vec<(&'static str, String)>,
    values: String,
) {
    match lines.iter_mut().find(|line| line.params == params) {
        Some(line) => {
            line.values.push(',');
            line.values.push_str(&values);
        }
        None => lines.push(ListLine { params, values }),
    }
}

impl ComponentSchedule {
    /// Returns the key of a value of EXDATE or RDATE.
    pub(crate) fn recurrence_key(&self, time: &CalendarDateTime) -> i64 {
        self.series.lenient_key(time)
    }

    /// Returns the key of a RECURRENCE-ID. A date refers to the occurrence on that day.
    pub(crate) fn recurrence_id_key(&self, time: &CalendarDateTime) -> i64 {
        self.series.recurrence_id_key(time)
    }

    pub(crate) fn key_to_civil(&self, key: i64) -> CivilTime {
        self.form.key_to_civil(key)
    }

    /// Returns the duration of the first occurrence.
    pub(crate) fn duration_seconds(&self) -> i64 {
        let first = self.occurrences_from(Instant::MIN.seconds()).next();
        first.map_or(0, |one| one.end.seconds().saturating_sub(one.start.seconds()))
    }

    /// Returns the end of the occurrence with this start, in clock time.
    pub(crate) fn end_civil(&self, start: CivilTime) -> CivilTime {
        self.form
            .key_to_civil(self.form.civil_to_key(start).saturating_add(self.duration_seconds()))
    }

    /// Moves a key by seconds of clock time.
    pub(crate) fn shift_key(&self, key: i64, seconds: i64) -> i64 {
        if seconds == 0 {
            key
        } else {
            self.form.civil_to_key(self.key_to_civil(key).saturating_add(seconds))
        }
    }

    pub(crate) fn is_recurring(&self) -> bool {
        self.series.is_recurring()
    }

    /// Returns the occurrences from a key on, in order.
    pub(crate) fn occurrences_from(&self, key: i64) -> impl Iterator<Item = Occurrence> + '_ {
        let (from, budget) = (Instant::from_seconds_clamped(key), StepBudget::default());
        // In UTC, the instant of a floating time is its clock time.
        let all =
            self.series.occurrences(from, Instant::MAX, &Zone::UTC, OverrideMode::Exclude, budget);
        all.filter(move |one| one.original.seconds() >= key)
    }

    /// Returns the last occurrence before a key.
    pub(crate) fn last_key_before(&self, key: i64) -> Option<i64> {
        // Tries short spans first, because most series recur often; a few recur only after
        // centuries.
        [3600, 2 * DAY_SECONDS, 40 * DAY_SECONDS, 800 * DAY_SECONDS, 200_000 * DAY_SECONDS]
            .into_iter()
            .find_map(|span| {
                let (from, to) = (
                    Instant::from_seconds_clamped(key.saturating_sub(span)),
                    Instant::from_seconds_clamped(key),
                );
                let budget = StepBudget::default();
                let all =
                    self.series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, budget);
                all.map(|one| one.original.seconds()).filter(|one| *one < key).last()
            })
    }

    /// Returns the occurrence with this key.
    pub(crate) fn occurrence_at(&self, key: i64) -> Option<Occurrence> {
        let (from, to) = (
            Instant::from_seconds_clamped(key),
            Instant::from_seconds_clamped(key.saturating_add(1)),
        );
        let budget = StepBudget::default();
        let mut all = self.series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, budget);
        all.find(|one| one.original.seconds() == key)
    }

    /// Returns the day of a key in `zone`; without a zone, or if the series is floating, by the
    /// clock of the series.
    pub(crate) fn day_of_key(&self, key: i64, zone: Option<&Zone>) -> i64 {
        match zone.filter(|_| self.form.zone().is_some()) {
            Some(zone) => zone.to_civil(Instant::from_seconds_clamped(key)).day_number(),
            None => self.key_to_civil(key).day_number(),
        }
    }

    /// Returns the keys of the occurrences on a day in `zone`, or by the clock of the series.
    pub(crate) fn keys_on_day(&self, day: i64, zone: Option<&Zone>) -> Vec<i64> {
        // The same day begins within two days in all zones.
        let around =
            |days: i64| Instant::from_seconds_clamped(CivilTime::midnight(day + days).seconds());
        let (from, to, budget) = (around(-2), around(3), StepBudget::default());
        let all = self.series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, budget);
        let keys = all.map(|one| one.original.seconds());
        keys.filter(|key| self.day_of_key(*key, zone) == day).collect()
    }

    /// Returns the key of the first occurrence.
    pub(crate) fn first_key(&self) -> Option<i64> {
        self.occurrences_from(Instant::MIN.seconds()).next().map(|one| one.original.seconds())
    }
}

/// Returns the duration of a value of RDATE if it is a period with this start. An end is resolved
/// in its zone: on the night in which the clock changes, the difference of the clock times is not
/// the duration.
fn period_duration(
    text: &str,
    start: &CalendarDateTime,
    resolve: &dyn Fn(&str) -> Option<CalendarDateTime>,
) -> Option<String> {
    let (_, end) = text.split_once('/')?;
    match Period::parse(text).ok()?.end {
        PeriodEnd::Duration(length) => Some(length.to_string()),
        PeriodEnd::DateTime(_) => {
            let key = |time: &CalendarDateTime| {
                DateTimeForm::from_date_time(time).civil_to_key(time.civil)
            };
            Some(format_duration(key(&resolve(end)?).saturating_sub(key(start)).max(0)))
        }
    }
}
