//! Changes by scope: one occurrence, it and all that follow, or all.
//!
//! Here is what becomes of the items of a UID; what a person wants of an occurrence is
//! [`EventEdit`]. They mean what the modes of evolution-data-server mean: *this* makes a detached
//! occurrence, or takes one out by EXDATE; *future* shortens the rule, and what follows goes on
//! under a UID of its own; *all* changes the master, and what hangs on its times moves along.

use super::Error;
use super::edit::{EditContext, EventEdit, NewTime};
use super::editable_component::{ComponentSchedule, EditableComponent, ValueEdit, period_duration};
use super::new_event::InputContext;
use super::rule_text::{until_key, with_rule_end};
use super::series_shift::{shift_date_lists, shift_rules};
use super::uid_group::{OverrideComponent, UidGroup};
use larder_store::{BatchChange, Extractor};
use larder_time::civil::{DAY_SECONDS, Instant};
use larder_time::rule::{Rule, RuleEnd, StepBudget};

/// Which occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecurrenceScope {
    /// One of them.
    This,
    /// One, and those that follow it.
    ThisAndFuture,
    /// All of them.
    All,
}

/// Occurrences that are compared to see whether a divided series is what it was.
const MAX_COMPARED_OCCURRENCES: usize = 256;

/// What has to be written to take occurrences away. The key is of the occurrence that is meant, by
/// [`UidGroup::find_occurrence`].
///
/// # Errors
/// Why it cannot be done.
pub fn compute_removal(
    whole: &UidGroup<'_>,
    scope: Option<RecurrenceScope>,
    key: Option<i64>,
    now: Instant,
) -> Result<Vec<BatchChange>, Error> {
    let (scope, key) = resolve_scope(whole, scope, key)?;
    let parts = match (scope, key) {
        (RecurrenceScope::This, Some(key)) => exclude_occurrence(whole, key, now)?,
        (RecurrenceScope::ThisAndFuture, Some(key)) if !is_first(whole, key) => {
            truncate_series(whole, key, now)?
        }
        _ => Vec::new(),
    };
    whole.compute_changes(parts)
}

/// What a change of occurrences comes to.
pub struct SeriesEdit {
    /// What has to be written.
    pub changes: Vec<BatchChange>,
    /// Changed occurrences that stay, though a new rule does not have them.
    pub orphaned_overrides: usize,
    /// Changed occurrences that keep what they say otherwise than the series.
    pub diverged_overrides: usize,
}

/// What has to be written to change occurrences. What follows gets the new UID, where it needs one.
///
/// # Errors
/// Why it cannot be done.
pub fn compute_edit(
    whole: &UidGroup<'_>,
    scope: Option<RecurrenceScope>,
    key: Option<i64>,
    edit: &EventEdit,
    uid: &str,
    speaker: &InputContext<'_>,
) -> Result<SeriesEdit, Error> {
    let (scope, key) = resolve_scope(whole, scope, key)?;
    let asked = EditContext { edit, input: speaker, deriver: whole.deriver };
    let (early, changed) = match (scope, key) {
        (RecurrenceScope::This, Some(key)) => (edit_one_occurrence(whole, key, &asked)?, None),
        (RecurrenceScope::ThisAndFuture, Some(key)) if !is_first(whole, key) => {
            let (early, late) = split_series(whole, key, &asked, uid)?;
            (early, Some(late))
        }
        (_, key) => {
            let all = EditedSeries::new(whole.master.clone(), whole.overrides.clone());
            // What leads all that follow it is no exception, but a part of the series.
            let leads =
                |key| whole.overrides.iter().any(|one| one.following && one.key == Some(key));
            let own = key.filter(|key| scope == RecurrenceScope::ThisAndFuture || leads(*key));
            (Vec::new(), Some(all.apply_edit(key, own, &asked)?))
        }
    };
    let ruled = changed.as_ref().filter(|_| edit.rule.is_some());
    let astray = ruled.map_or(0, |changed| changed.count_orphaned_overrides(whole.deriver));
    let apart = changed.as_ref().map_or(0, |changed| changed.diverged_overrides);
    let parts = early
        .into_iter()
        .chain(changed.into_iter().flat_map(EditedSeries::into_components))
        .collect();
    Ok(SeriesEdit {
        changes: whole.compute_changes(parts)?,
        orphaned_overrides: astray,
        diverged_overrides: apart,
    })
}

/// What is meant: without a word of it all of what happens once, and of one occurrence that was
/// named, it alone.
fn resolve_scope(
    whole: &UidGroup<'_>,
    scope: Option<RecurrenceScope>,
    key: Option<i64>,
) -> Result<(RecurrenceScope, Option<i64>), Error> {
    whole.check_format_version()?;
    let once = whole.overrides.is_empty()
        && !whole.schedule.as_ref().is_some_and(ComponentSchedule::is_recurring);
    match (scope, key) {
        _ if once && whole.master.is_some() => Ok((RecurrenceScope::All, None)),
        (None, None) => Err(Error::NeedsScope),
        (None, Some(_)) => Ok((RecurrenceScope::This, key)),
        (Some(RecurrenceScope::This | RecurrenceScope::ThisAndFuture), None) => {
            Err(Error::NeedsOccurrence)
        }
        (Some(scope), key) => Ok((scope, key)),
    }
}

/// Is nothing before this occurrence?
fn is_first(whole: &UidGroup<'_>, key: i64) -> bool {
    let planned = whole.schedule.as_ref().and_then(ComponentSchedule::first_key);
    let detached = whole.overrides.iter().filter_map(|one| one.key).min();
    planned.into_iter().chain(detached).min().is_none_or(|first| key <= first)
}

/// The items of one UID while they are being changed.
#[derive(Debug, Clone)]
struct EditedSeries {
    master: Option<EditableComponent>,
    overrides: Vec<OverrideComponent>,
    /// Changed occurrences that keep what they say otherwise than the series.
    diverged_overrides: usize,
}

impl EditedSeries {
    fn new(master: Option<EditableComponent>, overrides: Vec<OverrideComponent>) -> EditedSeries {
        EditedSeries { master, overrides, diverged_overrides: 0 }
    }

    fn into_components(self) -> Vec<EditableComponent> {
        self.master.into_iter().chain(self.overrides.into_iter().map(|one| one.component)).collect()
    }
}

/// All but one occurrence.
fn exclude_occurrence(
    whole: &UidGroup<'_>,
    key: i64,
    now: Instant,
) -> Result<Vec<EditableComponent>, Error> {
    let detached: Vec<OverrideComponent> =
        whole.overrides.iter().filter(|one| one.key != Some(key)).cloned().collect();
    let mut master = whole.master.clone();
    if let (Some(part), Some(plan)) = (&mut master, &whole.schedule)
        && plan.occurrence_at(key).is_some()
    {
        part.append_property(
            "EXDATE",
            &plan.form.params(),
            &plan.form.format_value(plan.key_to_civil(key)),
        );
        part.bump_revision(now, true);
        let nothing = part.schedule(whole.deriver).is_none_or(|plan| plan.first_key().is_none());
        if nothing && detached.is_empty() {
            master = None;
        }
    }
    Ok(EditedSeries::new(master, detached).into_components())
}

/// What is before an occurrence.
fn truncate_series(
    whole: &UidGroup<'_>,
    key: i64,
    now: Instant,
) -> Result<Vec<EditableComponent>, Error> {
    let earlier = |one: &&OverrideComponent| one.key.is_none_or(|of| of < key);
    let detached = whole.overrides.iter().filter(earlier).cloned().collect();
    let mut master = whole.master.clone();
    if let (Some(part), Some(plan)) = (&mut master, &whole.schedule) {
        let (rules, _) = split_rules(part, plan, key)?;
        part.set_property_values("RRULE", &rules);
        let mut early = |of: i64, _: &str| if of < key { ValueEdit::Keep } else { ValueEdit::Drop };
        edit_date_lists(part, plan, whole, &mut early);
        part.bump_revision(now, true);
    }
    Ok(EditedSeries::new(master, detached).into_components())
}

/// Decides about the values of EXDATE and RDATE by their keys.
fn edit_date_lists(
    part: &mut EditableComponent,
    plan: &ComponentSchedule,
    whole: &UidGroup<'_>,
    fate: &mut dyn FnMut(i64, &str) -> ValueEdit,
) {
    for name in ["EXDATE", "RDATE"] {
        part.edit_list_values(name, whole.deriver, &plan.form, &mut |start, text| {
            fate(plan.recurrence_key(start), text)
        });
    }
}

/// The rules up to an occurrence, and from it on.
fn split_rules(
    part: &EditableComponent,
    plan: &ComponentSchedule,
    key: i64,
) -> Result<(Vec<String>, Vec<String>), Error> {
    let (mut early, mut late) = (Vec::new(), Vec::new());
    let step = if plan.form.is_date() { DAY_SECONDS } else { 1 };
    for text in part.property_texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            early.push(text);
            continue;
        };
        if let Some(count) = rule.count() {
            let (matches, passed) = count_occurrences_before(plan, &rule, key, count)?;
            if passed >= count {
                early.push(text);
                continue;
            }
            if passed > 0 {
                early.push(with_rule_end(&text, Some(format!("COUNT={passed}"))));
            }
            let left = count - passed + u64::from(!matches);
            late.push(with_rule_end(&text, Some(format!("COUNT={left}"))));
        } else {
            let last = plan.last_key_before(key).unwrap_or(key.saturating_sub(step));
            let over = rule.occurrences_from(plan.start, plan.key_to_civil(key)).next().is_none()
                && plan
                    .occurrence_at(key)
                    .is_none_or(|_| until_key(&plan.form, &rule).is_some_and(|end| end < key));
            if over {
                early.push(text);
                continue;
            }
            early.push(with_rule_end(
                &text,
                Some(format!("UNTIL={}", plan.form.format_until(plan.key_to_civil(last)))),
            ));
            late.push(text);
        }
    }
    Ok((early, late))
}

/// Does the occurrence match the rule, and how many of its own are before it? The start takes one,
/// whether it matches or not.
fn count_occurrences_before(
    plan: &ComponentSchedule,
    rule: &Rule,
    key: i64,
    count: u64,
) -> Result<(bool, u64), Error> {
    let endless = rule.clone().with_end(RuleEnd::Never);
    let mut all =
        endless.occurrences_from(plan.start, plan.start).with_budget(StepBudget::default());
    let mut number = 0;
    let mut first = true;
    for civil in all.by_ref() {
        if std::mem::take(&mut first) && civil != plan.start {
            number += 1;
        }
        let of = plan.form.civil_to_key(civil);
        if of >= key || number >= count {
            return Ok((of == key, number));
        }
        number += 1;
    }
    if all.is_exhausted() { Err(Error::TooManyOccurrences) } else { Ok((false, number)) }
}

/// One occurrence changed: as a detached one.
fn edit_one_occurrence(
    whole: &UidGroup<'_>,
    key: i64,
    asked: &EditContext<'_>,
) -> Result<Vec<EditableComponent>, Error> {
    if asked.edit.rule.is_some() {
        return Err(Error::RuleOnOccurrence);
    }
    let mut series = EditedSeries::new(whole.master.clone(), whole.overrides.clone());
    if let Some(one) = series.overrides.iter_mut().find(|one| one.key == Some(key)) {
        let target = asked.resolve_new_time(&one.component)?;
        asked.apply(&mut one.component, &target)?;
        return Ok(series.into_components());
    }
    let part = create_override(whole, key)?;
    let mut one = OverrideComponent { key: Some(key), following: false, component: part };
    let target = asked.resolve_new_time(&one.component)?;
    asked.apply(&mut one.component, &target)?;
    series.overrides.push(one);
    Ok(series.into_components())
}

/// The occurrence as a component of its own: the master's properties, or those of the one that
/// changed all that follow.
pub(super) fn create_override(whole: &UidGroup<'_>, key: i64) -> Result<EditableComponent, Error> {
    let (Some(master), Some(plan)) = (&whole.master, &whole.schedule) else {
        return Err(Error::NoTime);
    };
    let occurrence = plan
        .occurrence_at(key)
        .ok_or_else(|| Error::NoOccurrence(plan.key_to_civil(key).to_string()))?;
    let ranges = whole.overrides.iter().filter(|one| one.following && one.key < Some(key));
    let range = ranges.max_by_key(|one| one.key);
    let mut part = range.map_or(master, |range| &range.component).clone();
    let own = part.schedule(whole.deriver).ok_or(Error::NoTime)?;
    // From the one that it is a copy of, so far on the clock.
    let from = range.and_then(|range| range.key).map_or(plan.start, |key| plan.key_to_civil(key));
    let delta = occurrence.original_civil.seconds() - from.seconds();
    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
        part.remove_property(name);
    }
    part.remove_absolute_alarms();
    let start = own.start.saturating_add(delta);
    let target = NewTime::new(own.form.clone(), start);
    target.apply_to(&mut part, &own, whole.deriver);
    if let Some(length) = whole.rdate_duration(key) {
        part.remove_property("DTEND");
        part.set_property("DURATION", &[], &length);
    }
    part.remove_property("RECURRENCE-ID");
    part.append_property(
        "RECURRENCE-ID",
        &plan.form.params(),
        &plan.form.format_value(plan.key_to_civil(key)),
    );
    Ok(part)
}

impl UidGroup<'_> {
    /// How long an occurrence takes of which an RDATE says so itself.
    fn rdate_duration(&self, key: i64) -> Option<String> {
        let (mut master, plan) = (self.master.clone()?, self.schedule.as_ref()?);
        let mut length = None;
        master.edit_list_values("RDATE", self.deriver, &plan.form, &mut |start, text| {
            if plan.recurrence_key(start) == key {
                length = length.take().or_else(|| period_duration(text));
            }
            ValueEdit::Keep
        });
        length
    }
}

/// An occurrence and all that follow changed: they go on under another UID.
fn split_series(
    whole: &UidGroup<'_>,
    key: i64,
    asked: &EditContext<'_>,
    uid: &str,
) -> Result<(Vec<EditableComponent>, EditedSeries), Error> {
    let parts = truncate_series(whole, key, asked.input.now)?;
    let (rest, shift) = build_following_series(whole, key, uid, asked)?;
    verify_split(whole, &parts, &rest, key, shift)?;
    let seen = whole.schedule.as_ref().map_or(key, |plan| plan.shift_key(key, shift));
    Ok((parts, rest.apply_edit(Some(seen), Some(seen), asked)?))
}

/// An occurrence and what follows it, under another UID, and how much later they are on the clock
/// than they were planned.
fn build_following_series(
    whole: &UidGroup<'_>,
    key: i64,
    uid: &str,
    asked: &EditContext<'_>,
) -> Result<(EditedSeries, i64), Error> {
    // What changed it and all that follow is what it goes on with.
    let leading = whole.overrides.iter().filter(|one| one.following && one.key <= Some(key));
    let leading = leading.max_by_key(|one| one.key);
    let leads = |one: &OverrideComponent| leading.is_some_and(|leading| leading.key == one.key);
    let later = |one: &&OverrideComponent| one.key.is_some_and(|of| of >= key) && !leads(one);
    let mut detached: Vec<OverrideComponent> =
        whole.overrides.iter().filter(later).cloned().collect();
    for one in &mut detached {
        one.component.uid = uid.to_string();
        one.component.set_property("UID", &[], uid);
    }
    let (Some(master), Some(plan)) = (&whole.master, &whole.schedule) else {
        return match leading {
            Some(_) => Err(Error::CannotSplit),
            None => Ok((EditedSeries::new(None, detached), 0)),
        };
    };
    let occurrence = plan.occurrence_at(key).ok_or(Error::CannotSplit)?;
    let mut part = master.clone();
    let (_, rules) = split_rules(&part, plan, key)?;
    part.uid = uid.to_string();
    part.set_property("UID", &[], uid);
    let target = NewTime::new(plan.form.clone(), occurrence.original_civil);
    target.apply_to(&mut part, plan, whole.deriver);
    part.set_property_values("RRULE", &rules);
    part.remove_absolute_alarms();
    let mut late = |of: i64, _: &str| if of < key { ValueEdit::Drop } else { ValueEdit::Keep };
    edit_date_lists(&mut part, plan, whole, &mut late);
    match leading {
        None => Ok((EditedSeries::new(Some(part), detached), 0)),
        Some(leading) => promote_override_to_master(&part, detached, leading, asked),
    }
}

/// A series with this change of all of it for its master: where that is later on the clock, all
/// that hangs on its times is.
fn promote_override_to_master(
    planned: &EditableComponent,
    mut detached: Vec<OverrideComponent>,
    leading: &OverrideComponent,
    asked: &EditContext<'_>,
) -> Result<(EditedSeries, i64), Error> {
    let plan = planned.schedule(asked.deriver).ok_or(Error::CannotSplit)?;
    let mut part = leading.component.clone();
    let own = part.schedule(asked.deriver).ok_or(Error::CannotSplit)?;
    let (true, Some(key)) = (own.form == plan.form, leading.key) else {
        return Err(Error::CannotSplit);
    };
    let shift = own.start.seconds() - plan.key_to_civil(key).seconds();
    part.uid.clone_from(&planned.uid);
    part.set_property("UID", &[], &planned.uid);
    part.remove_property("RECURRENCE-ID");
    let start = plan.start.saturating_add(shift);
    let target = NewTime::new(plan.form.clone(), start);
    target.apply_to(&mut part, &own, asked.deriver);
    for name in ["RRULE", "EXRULE", "RDATE", "EXDATE"] {
        part.copy_property(planned, name);
    }
    if shift != 0 {
        shift_rules(&mut part, &plan, &plan.form, shift)?;
        shift_date_lists(&mut part, &plan, &plan.form, shift, asked);
    }
    for one in &mut detached {
        one.set_recurrence_id(&plan, &plan.form, shift);
        one.key = one.key.map(|key| plan.shift_key(key, shift));
    }
    Ok((EditedSeries::new(Some(part), detached), shift))
}

/// Do both parts together have the occurrences that the whole has?
fn verify_split(
    whole: &UidGroup<'_>,
    early: &[EditableComponent],
    rest: &EditedSeries,
    key: i64,
    shift: i64,
) -> Result<(), Error> {
    let Some(plan) = &whole.schedule else { return Ok(()) };
    let keys = |plan: &ComponentSchedule, from: i64, to: i64| -> Vec<i64> {
        let keys = plan.occurrences_from(from).map(|one| one.original.seconds());
        keys.take_while(|of| *of < to).take(MAX_COMPARED_OCCURRENCES).collect()
    };
    let late = rest.master.as_ref().and_then(|master| master.schedule(whole.deriver));
    let late = late.map_or_else(Vec::new, |plan| keys(&plan, i64::MIN, i64::MAX));
    let first = early.iter().find(|part| part.recurrence_id(whole.deriver).is_none());
    let first = first.and_then(|part| part.schedule(whole.deriver));
    let since = key.saturating_sub(400 * DAY_SECONDS);
    let first = first.map_or_else(Vec::new, |plan| keys(&plan, since, i64::MAX));
    let planned = keys(plan, key, i64::MAX).into_iter().map(|of| plan.shift_key(of, shift));
    let same = late == planned.collect::<Vec<_>>() && first == keys(plan, since, key);
    if same { Ok(()) } else { Err(Error::CannotSplit) }
}

impl EditedSeries {
    /// All of it changed, as somebody wants it who sees this occurrence; where that was changed
    /// itself, and is no exception, it is changed by its own time, too.
    fn apply_edit(
        mut self,
        key: Option<i64>,
        own: Option<i64>,
        asked: &EditContext<'_>,
    ) -> Result<EditedSeries, Error> {
        let Some(master) = &mut self.master else {
            for one in &mut self.overrides {
                let target = asked.resolve_new_time(&one.component)?;
                asked.apply(&mut one.component, &target)?;
            }
            return Ok(self);
        };
        let Some(plan) = master.schedule(asked.deriver) else {
            let target = asked.resolve_new_time(master)?;
            asked.apply(master, &target)?;
            return Ok(self);
        };
        // What is seen is the occurrence, at its own time if it was moved.
        let seen = key.map_or(plan.start, |key| plan.key_to_civil(key));
        let target = asked.resolve_occurrence_time(&plan, seen)?;
        let delta = target.as_ref().map_or(0, |of| of.start.seconds() - seen.seconds());
        let target = target.map(|of| of.shift_by(plan.start.seconds() - seen.seconds()));
        let moved = target.as_ref().filter(|of| delta != 0 || of.form != plan.form);
        let form = moved.map(|of| of.form.clone());
        let before = master.clone();
        asked.apply(master, &target)?;
        let now = master.schedule(asked.deriver);
        let now = now.filter(|now| now.form.is_date() == plan.form.is_date());
        let lasts = now.map(|now| now.duration_seconds());
        if let Some(form) = &form {
            if asked.edit.rule.is_none() {
                shift_rules(master, &plan, form, delta)?;
            }
            shift_date_lists(master, &plan, form, delta, asked);
        }
        for one in &mut self.overrides {
            if own.is_some() && one.key == own {
                let target = asked.resolve_new_time(&one.component)?;
                asked.apply(&mut one.component, &target)?;
                if let Some(form) = &form {
                    one.set_recurrence_id(&plan, form, delta);
                }
                continue;
            }
            let mut follows = one.apply_series_edit(&before, &plan, lasts, asked)?;
            if let Some(form) = &form {
                follows &= one.shift_with_series(&plan, form, delta, asked);
            }
            self.diverged_overrides += usize::from(!follows);
        }
        Ok(self)
    }

    /// Changed occurrences that the rule does not have.
    fn count_orphaned_overrides(&self, deriver: &Extractor) -> usize {
        let plan = self.master.as_ref().and_then(|master| master.schedule(deriver));
        let Some(plan) = plan else { return 0 };
        let original =
            |one: &&OverrideComponent| one.component.recurrence_id(deriver).map(|(time, _)| time);
        let is_planned = |time| plan.occurrence_at(plan.recurrence_id_key(&time)).is_some();
        let strays = |one: &&OverrideComponent| original(one).is_some_and(|time| !is_planned(time));
        self.overrides.iter().filter(strays).count()
    }
}
