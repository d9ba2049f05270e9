//! What hangs on a series, when that is changed: its rules, its EXDATE and RDATE, and its changed
//! occurrences.
//!
//! What is meant by a change, and of what it consists, is for [`scope`](super::scope). This is
//! apart as it is the same for all that follow and for all.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::edit::{EditContext, NewTime};
use super::editable_component::{ComponentSchedule, EditableComponent, ValueEdit, period_duration};
use super::rule_text::{rotate_byday, until_key, with_rule_end};
use super::uid_group::OverrideComponent;
use larder_time::civil::CivilTime;
use larder_time::rule::{Frequency, Rule, RuleEnd};

/// The rules of a master that was moved.
pub(super) fn shift_rules(
    master: &mut EditableComponent,
    plan: &ComponentSchedule,
    form: &DateTimeForm,
    delta: i64,
) -> Result<(), Error> {
    let start = plan.start.saturating_add(delta);
    let mut rules = Vec::new();
    for text in master.property_texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            rules.push(text);
            continue;
        };
        let matches = |rule: &Rule, start: CivilTime| {
            let endless = rule.clone().with_end(RuleEnd::Never);
            endless.occurrences_from(start, start).next() == Some(start)
        };
        let mut text = text;
        if matches(&rule, plan.start) && rule.frequency() == Frequency::Weekly {
            text = rotate_byday(&text, start.day_number() - plan.start.day_number());
        }
        if matches(&rule, plan.start) && !matches(&Rule::parse(&text)?, start) {
            return Err(Error::NeedsRule);
        }
        if let (None, Some(end)) = (rule.count(), until_key(&plan.form, &rule)) {
            let last = plan.key_to_civil(end).saturating_add(delta);
            let last = if plan.form.is_date() && !form.is_date() {
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

/// EXDATE and RDATE of a master that was moved: they still meet what they met.
pub(super) fn shift_date_lists(
    master: &mut EditableComponent,
    plan: &ComponentSchedule,
    form: &DateTimeForm,
    delta: i64,
    asked: &EditContext<'_>,
) {
    for name in ["EXDATE", "RDATE"] {
        master.edit_list_values(name, asked.deriver, form, &mut |start, text| {
            let value = form
                .format_value(plan.key_to_civil(plan.recurrence_key(start)).saturating_add(delta));
            ValueEdit::Write(match period_duration(text) {
                Some(length) if !form.is_date() => format!("{value}/{length}"),
                _ => value,
            })
        });
    }
}

impl OverrideComponent {
    /// Changes what a changed occurrence has of its series: `before` and `plan` are that before,
    /// `lasts` says how long it takes now. False: it keeps something of its own.
    pub(super) fn apply_series_edit(
        &mut self,
        before: &EditableComponent,
        plan: &ComponentSchedule,
        lasts: Option<i64>,
        asked: &EditContext<'_>,
    ) -> Result<bool, Error> {
        let inherited = asked.edit.restrict_to_inherited(&self.component, before);
        let mut whole = !inherited.is_missing_fields_of(asked.edit);
        let own = self
            .component
            .schedule(asked.deriver)
            .filter(|own| own.form.is_date() == plan.form.is_date());
        let mut target = None;
        if let (Some(own), Some(lasts)) =
            (own, lasts.filter(|lasts| *lasts != plan.duration_seconds()))
        {
            let same = own.duration_seconds() == plan.duration_seconds();
            target = same.then(|| NewTime::new(own.form, own.start).with_duration(lasts));
            whole &= same;
        }
        EditContext { edit: &inherited, ..*asked }.apply(&mut self.component, &target)?;
        Ok(whole)
    }

    /// A changed occurrence of a series that was moved. Where it was at the time it was planned
    /// for, or leads all that follow it, it is moved as well. False: it was moved by itself.
    pub(super) fn shift_with_series(
        &mut self,
        plan: &ComponentSchedule,
        form: &DateTimeForm,
        delta: i64,
        asked: &EditContext<'_>,
    ) -> bool {
        let Some(key) = self.key else { return true };
        let own = self.component.schedule(asked.deriver);
        let goes =
            |own: &ComponentSchedule| self.following || own.form.civil_to_key(own.start) == key;
        let own = own.filter(|own| own.form == plan.form && goes(own));
        let went = own.is_some();
        if let Some(own) = own {
            let target = NewTime::new(form.clone(), own.start.saturating_add(delta));
            target.apply_to(&mut self.component, &own, asked.deriver);
        }
        self.set_recurrence_id(plan, form, delta);
        self.component.bump_revision(asked.input.now, true);
        went
    }

    /// It stands for what has become of its occurrence: in this form, so much later on the clock.
    pub(super) fn set_recurrence_id(
        &mut self,
        plan: &ComponentSchedule,
        form: &DateTimeForm,
        delta: i64,
    ) {
        let Some(key) = self.key else { return };
        let mut params = form.params();
        if self.following {
            params.push(("RANGE", "THISANDFUTURE"));
        }
        let value = form.format_value(plan.key_to_civil(key).saturating_add(delta));
        self.component.set_property("RECURRENCE-ID", &params, &value);
    }
}
