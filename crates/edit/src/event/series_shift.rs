//! The parts of a series that depend on its times, when these change: rules, EXDATE and RDATE, and
//! overrides.
//!
//! [`scope`](super::scope) decides which occurrences change. This module is separate because a
//! change of all occurrences and a change of this and future occurrences move the same parts.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::edit::{EditContext, NewTime};
use super::editable_component::{ComponentSchedule, EditableComponent, ValueEdit};
use super::rule_text::{rotate_byday, until_key, with_rule_end};
use super::uid_group::OverrideComponent;
use larder_time::civil::CivilTime;
use larder_time::rule::{Frequency, Rule, RuleEnd};

/// Moves the rules of a master. `delta` is in seconds of the clock.
///
/// # Errors
/// [`Error::NeedsRule`] if a rule produced the old start and does not produce the new one.
pub(super) fn shift_rules(
    master: &mut EditableComponent,
    schedule: &ComponentSchedule,
    form: &DateTimeForm,
    delta: i64,
) -> Result<(), Error> {
    let start = schedule.start.saturating_add(delta);
    let mut rules = Vec::new();
    for text in master.property_texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            rules.push(text);
            continue;
        };
        let produces = |rule: &Rule, start: CivilTime| {
            let endless = rule.clone().with_end(RuleEnd::Never);
            endless.occurrences_from(start, start).next() == Some(start)
        };
        let mut text = text;
        if produces(&rule, schedule.start) && rule.frequency() == Frequency::Weekly {
            text = rotate_byday(&text, start.day_number() - schedule.start.day_number());
        }
        if produces(&rule, schedule.start) && !produces(&Rule::parse(&text)?, start) {
            return Err(Error::NeedsRule);
        }
        if let (None, Some(until)) = (rule.count(), until_key(&schedule.form, &rule)) {
            let last = schedule.key_to_civil(until).saturating_add(delta);
            let last = if schedule.form.is_date() && !form.is_date() {
                CivilTime::midnight(last.day_number()).saturating_add(start.second_of_day())
            } else {
                last
            };
            text = with_rule_end(&text, Some(format!("UNTIL={}", form.format_until(last))));
        }
        rules.push(text);
    }
    if rules != master.property_texts("RRULE") {
        master.set_property_values("RRULE", &rules);
    }
    Ok(())
}

/// Returns whether a new start, on another day, is an occurrence of the rule, or begins the rule at
/// an earlier one. Such a series begins later or earlier: its rule and the dates of its exceptions
/// stay.
pub(super) fn is_start_in_rule(
    master: &EditableComponent,
    schedule: &ComponentSchedule,
    start: CivilTime,
) -> bool {
    let [text] = &master.property_texts("RRULE")[..] else { return false };
    let Ok(rule) = Rule::parse(text) else { return false };
    let is_weekly = rule.frequency() == Frequency::Weekly;
    let is_other_weekday = (start.day_number() - schedule.start.day_number()) % 7 != 0;
    let at_old_time =
        CivilTime::midnight(start.day_number()).saturating_add(schedule.start.second_of_day());
    let (first, later) = (schedule.start.min(at_old_time), schedule.start.max(at_old_time));
    let produces = |time| rule.occurrences_from(first, time).next() == Some(time);
    is_weekly && is_other_weekday && produces(first) && produces(later)
}

/// Moves EXDATE and RDATE of a master, so that they refer to the same occurrences as before.
pub(super) fn shift_date_lists(
    master: &mut EditableComponent,
    schedule: &ComponentSchedule,
    form: &DateTimeForm,
    delta: i64,
    context: &EditContext<'_>,
) {
    for name in ["EXDATE", "RDATE"] {
        master.edit_list_values(name, context.extractor, form, &mut |start, duration| {
            let old = schedule.key_to_civil(schedule.recurrence_key(start));
            let value = form.format_value(old.saturating_add(delta));
            ValueEdit::Write(match duration {
                Some(duration) if !form.is_date() => format!("{value}/{duration}"),
                _ => value,
            })
        });
    }
}

impl OverrideComponent {
    /// Applies a series edit to an override, for the properties that it still inherits. `before`
    /// and `schedule` are the series before the edit, `new_duration` its duration in seconds after
    /// it. Returns `false` if the override keeps a value of its own.
    pub(super) fn apply_series_edit(
        &mut self,
        before: &EditableComponent,
        schedule: &ComponentSchedule,
        new_duration: Option<i64>,
        context: &EditContext<'_>,
    ) -> Result<bool, Error> {
        let inherited = context.edit.restrict_to_inherited(&self.component, before);
        let mut follows = !inherited.is_missing_fields_of(context.edit);
        let own_schedule = self
            .component
            .schedule(context.extractor)
            .filter(|own| own.form.is_date() == schedule.form.is_date());
        let new_duration = new_duration.filter(|duration| *duration != schedule.duration_seconds());
        let mut new_time = None;
        if let (Some(own), Some(duration)) = (own_schedule, new_duration) {
            let is_inherited = own.duration_seconds() == schedule.duration_seconds();
            new_time =
                is_inherited.then(|| NewTime::new(own.form, own.start).with_duration(duration));
            follows &= is_inherited;
        }
        EditContext { edit: &inherited, ..*context }.apply(&mut self.component, &new_time)?;
        Ok(follows)
    }

    /// Moves an override along with its series. Its own time moves if it is still the original
    /// one, or if the override applies to all following occurrences. Returns `false` if its own
    /// time stays.
    pub(super) fn shift_with_series(
        &mut self,
        schedule: &ComponentSchedule,
        form: &DateTimeForm,
        delta: i64,
        context: &EditContext<'_>,
    ) -> bool {
        let Some(key) = self.key else { return true };
        let is_movable = |own: &ComponentSchedule| {
            let is_original = || own.form.civil_to_key(own.start) == key;
            own.form == schedule.form && (self.following || is_original())
        };
        let own = self.component.schedule(context.extractor).filter(is_movable);
        let is_moved = own.is_some();
        if let Some(own) = own {
            let new_time = NewTime::new(form.clone(), own.start.saturating_add(delta));
            new_time.apply_to(&mut self.component, &own, context.extractor);
        }
        self.set_recurrence_id(schedule, form, delta);
        self.component.bump_revision(context.locale.now, true);
        is_moved
    }

    /// Sets RECURRENCE-ID to the new time of its occurrence: in this form, and `delta` seconds
    /// later by the clock.
    pub(super) fn set_recurrence_id(
        &mut self,
        schedule: &ComponentSchedule,
        form: &DateTimeForm,
        delta: i64,
    ) {
        let Some(key) = self.key else { return };
        let mut params = form.params();
        if self.following {
            params.push(("RANGE", "THISANDFUTURE"));
        }
        let value = form.format_value(schedule.key_to_civil(key).saturating_add(delta));
        self.component.set_property("RECURRENCE-ID", &params, &value);
    }
}
