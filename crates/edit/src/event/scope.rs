//! Changes by recurrence scope: one occurrence, it and all following, or all.
//!
//! Decides which items of a UID change; [`EventEdit`](super::edit::EventEdit) decides how a single
//! component changes. The scopes are the modes of evolution-data-server: *this* creates an
//! override, or removes the occurrence with an EXDATE; *this and future* ends the rule before the
//! occurrence; the occurrence and all later ones continue under a new UID; *all* changes the
//! master, and moves everything that depends on its times.

use super::Error;
use super::edit::{EditContext, NewTime};
use super::editable_component::{ComponentSchedule, EditableComponent, ValueEdit};
use super::rule_text::{until_key, with_rule_end};
use super::series_shift::{SeriesShift, is_start_in_rule, verify_shift};
use super::uid_group::{OverrideComponent, UidGroup};
use larder_store::{BatchChange, Extractor};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, RuleEnd, StepBudget};

/// The occurrences that a change applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecurrenceScope {
    /// One occurrence.
    This,
    /// One occurrence and all following.
    ThisAndFuture,
    /// All occurrences.
    All,
}

/// A scope, and the key of its occurrence by [`UidGroup::find_occurrence`].
#[derive(Debug, Clone, Copy)]
pub(super) struct OccurrenceTarget {
    pub(super) scope: Option<RecurrenceScope>,
    pub(super) key: Option<i64>,
}

/// A scope with the occurrence that it needs.
#[derive(Debug, Clone, Copy)]
enum ResolvedTarget {
    /// This occurrence.
    One(i64),
    /// This occurrence and all following. It is not the first.
    Following(i64),
    /// All occurrences; the user refers to times of this one.
    All(RecurrenceScope, Option<i64>),
}

/// The number of occurrences that are compared to verify the split of a series.
const MAX_COMPARED_OCCURRENCES: usize = 256;

/// Computes the changes that remove occurrences.
///
/// # Errors
/// The reason why the removal is impossible.
pub(super) fn compute_removal(
    group: &UidGroup<'_>,
    target: OccurrenceTarget,
    now: Instant,
) -> Result<Vec<BatchChange>, Error> {
    let parts = match target.resolve(group)? {
        // Without it, the following occurrences would have the values of the series again.
        ResolvedTarget::One(key) if group.is_following_override(key) => {
            return Err(Error::FollowingOverride);
        }
        ResolvedTarget::One(key) => exclude_occurrence(group, key, now),
        ResolvedTarget::Following(key) => truncate_series(group, key, now)?,
        ResolvedTarget::All(..) => Vec::new(),
    };
    group.compute_changes(parts)
}

/// A changed series.
pub(super) struct SeriesEdit {
    /// The changes to apply.
    pub(super) changes: Vec<BatchChange>,
    /// The number of overrides that are kept although the new rule does not include their
    /// occurrence.
    pub(super) orphaned_overrides: usize,
    /// The number of overrides that keep their own value of a property that was changed in the
    /// series.
    pub(super) diverged_overrides: usize,
}

/// Computes the changes that edit occurrences. If the series is split, the second part gets
/// `new_uid`.
///
/// # Errors
/// The reason why the change is impossible.
pub(super) fn compute_edit(
    group: &UidGroup<'_>,
    target: OccurrenceTarget,
    context: &EditContext<'_>,
    new_uid: &str,
) -> Result<SeriesEdit, Error> {
    let (early, edited) = match target.resolve(group)? {
        ResolvedTarget::One(key) => (edit_one_occurrence(group, key, context)?, None),
        ResolvedTarget::Following(key) => {
            let (early, late) = split_series(group, key, context, new_uid)?;
            (early, Some(late))
        }
        ResolvedTarget::All(scope, key) => {
            let series = EditedSeries::new(group.master.clone(), group.overrides.clone());
            // An override of all following occurrences is a part of the series, not an exception.
            let is_range =
                |key| group.overrides.iter().any(|one| one.following && one.key == Some(key));
            let is_edited = |key: &i64| scope == RecurrenceScope::ThisAndFuture || is_range(*key);
            let edited_override = key.filter(is_edited);
            (Vec::new(), Some(series.apply_edit(key, edited_override, context)?))
        }
    };
    let has_new_rule = context.edit.rule.is_some();
    let orphaned_overrides = edited
        .as_ref()
        .filter(|edited| has_new_rule || edited.keeps_rule)
        .map_or(0, |edited| edited.count_orphaned_overrides(group.extractor));
    let diverged_overrides = edited.as_ref().map_or(0, |edited| edited.diverged_overrides);
    let parts = early
        .into_iter()
        .chain(edited.into_iter().flat_map(EditedSeries::into_components))
        .collect();
    let changes = group.compute_changes(parts)?;
    Ok(SeriesEdit { changes, orphaned_overrides, diverged_overrides })
}

impl OccurrenceTarget {
    /// Resolves the scope. Default: everything for a single item, the named occurrence for a
    /// series.
    fn resolve(self, group: &UidGroup<'_>) -> Result<ResolvedTarget, Error> {
        group.check_format_version()?;
        let is_single = group.overrides.is_empty()
            && !group.schedule.as_ref().is_some_and(ComponentSchedule::is_recurring);
        if is_single && group.master.is_some() {
            return Ok(ResolvedTarget::All(RecurrenceScope::All, None));
        }
        match (self.scope, self.key) {
            (None, None) => Err(Error::NeedsScope),
            (Some(RecurrenceScope::This), Some(key)) if group.is_following_override(key) => {
                Err(Error::FollowingOverride)
            }
            (None | Some(RecurrenceScope::This), Some(key)) => Ok(ResolvedTarget::One(key)),
            (Some(RecurrenceScope::This | RecurrenceScope::ThisAndFuture), None) => {
                Err(Error::NeedsOccurrence)
            }
            (Some(RecurrenceScope::ThisAndFuture), Some(key)) if !is_first(group, key) => {
                Ok(ResolvedTarget::Following(key))
            }
            (Some(scope), key) => Ok(ResolvedTarget::All(scope, key)),
        }
    }
}

/// Returns whether no occurrence precedes this one.
fn is_first(group: &UidGroup<'_>, key: i64) -> bool {
    let first = group.schedule.as_ref().and_then(ComponentSchedule::first_key);
    let first_override = group.overrides.iter().filter_map(|one| one.key).min();
    first.into_iter().chain(first_override).min().is_none_or(|first| key <= first)
}

/// The components of one UID while they are changed.
#[derive(Debug, Clone)]
struct EditedSeries {
    master: Option<EditableComponent>,
    overrides: Vec<OverrideComponent>,
    /// The number of overrides that keep their own value of a property that was changed in the
    /// series.
    diverged_overrides: usize,
    /// Whether the start moved to another day of the rule, which stays.
    keeps_rule: bool,
}

impl EditedSeries {
    fn new(master: Option<EditableComponent>, overrides: Vec<OverrideComponent>) -> EditedSeries {
        EditedSeries { master, overrides, diverged_overrides: 0, keeps_rule: false }
    }

    fn into_components(self) -> Vec<EditableComponent> {
        self.master.into_iter().chain(self.overrides.into_iter().map(|one| one.component)).collect()
    }
}

/// Returns the series without one occurrence.
pub(super) fn exclude_occurrence(
    group: &UidGroup<'_>,
    key: i64,
    now: Instant,
) -> Vec<EditableComponent> {
    let overrides: Vec<OverrideComponent> =
        group.overrides.iter().filter(|one| one.key != Some(key)).cloned().collect();
    let mut master = group.master.clone();
    if let (Some(part), Some(schedule)) = (&mut master, &group.schedule)
        && schedule.occurrence_at(key).is_some()
    {
        let value = schedule.form.format_value(schedule.key_to_civil(key));
        part.append_property("EXDATE", &schedule.form.params(), &value);
        part.bump_revision(now, true);
        let new_schedule = part.schedule(group.extractor);
        let is_empty = new_schedule.is_none_or(|schedule| schedule.first_key().is_none());
        if is_empty && overrides.is_empty() {
            master = None;
        }
    }
    EditedSeries::new(master, overrides).into_components()
}

/// Returns the occurrences before one.
pub(super) fn truncate_series(
    group: &UidGroup<'_>,
    key: i64,
    now: Instant,
) -> Result<Vec<EditableComponent>, Error> {
    let is_early = |one: &&OverrideComponent| one.key.is_none_or(|other| other < key);
    let overrides: Vec<OverrideComponent> =
        group.overrides.iter().filter(is_early).cloned().collect();
    let mut master = group.master.clone();
    if let (Some(part), Some(schedule)) = (&mut master, &group.schedule) {
        let is_start_late = schedule.form.civil_to_key(schedule.start) >= key;
        let mut rules = split_rules(part, schedule, key)?;
        if is_start_late {
            rules.early.clear();
        }
        part.set_property_values("RRULE", &rules.early);
        edit_date_lists(part, schedule, group, &mut |other| match other < key {
            true => ValueEdit::Keep,
            false => ValueEdit::Drop,
        });
        // Added dates may precede the start, which is an occurrence without any rule.
        if is_start_late {
            let value = schedule.form.format_value(schedule.start);
            part.append_property("EXDATE", &schedule.form.params(), &value);
        }
        part.bump_revision(now, true);
        verify_truncated(group, part, schedule, key)?;
        let first = part.schedule(group.extractor).and_then(|early| early.first_key());
        if first.is_none() && overrides.is_empty() {
            master = None;
        }
    }
    Ok(EditedSeries::new(master, overrides).into_components())
}

/// Edits the values of EXDATE and RDATE by their keys.
fn edit_date_lists(
    part: &mut EditableComponent,
    schedule: &ComponentSchedule,
    group: &UidGroup<'_>,
    edit_value: &mut dyn FnMut(i64) -> ValueEdit,
) {
    for name in ["EXDATE", "RDATE"] {
        part.edit_list_values(name, group.extractor, &schedule.form, &mut |start, _| {
            edit_value(schedule.recurrence_key(start))
        });
    }
}

/// The rules of a series that is split at an occurrence.
#[derive(Default)]
struct SplitRules {
    /// The rules of the occurrences before the split.
    early: Vec<String>,
    /// The rules from the occurrence on.
    late: Vec<String>,
}

/// Splits the rules of a series at an occurrence.
fn split_rules(
    part: &EditableComponent,
    schedule: &ComponentSchedule,
    key: i64,
) -> Result<SplitRules, Error> {
    let mut rules = SplitRules::default();
    let step = if schedule.form.is_date() { DAY_SECONDS } else { 1 };
    for text in part.property_texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            rules.early.push(text);
            continue;
        };
        if let Some(count) = rule.count() {
            let split = count_occurrences_before(schedule, &rule, key, count)?;
            let passed = split.occurrences_before;
            if passed >= count {
                rules.early.push(text);
                continue;
            }
            if passed > 0 {
                rules.early.push(with_rule_end(&text, Some(format!("COUNT={passed}"))));
            }
            let left = count - passed + u64::from(!split.is_occurrence);
            rules.late.push(with_rule_end(&text, Some(format!("COUNT={left}"))));
        } else {
            let last = schedule.last_key_before(key).unwrap_or(key.saturating_sub(step));
            let at = schedule.key_to_civil(key);
            let ends_before_key =
                || until_key(&schedule.form, &rule).is_some_and(|until| until < key);
            let is_over = rule.occurrences_from(schedule.start, at).next().is_none()
                && (schedule.occurrence_at(key).is_none() || ends_before_key());
            if is_over {
                rules.early.push(text);
                continue;
            }
            let until = schedule.form.format_until(schedule.key_to_civil(last));
            rules.early.push(with_rule_end(&text, Some(format!("UNTIL={until}"))));
            rules.late.push(text);
        }
    }
    Ok(rules)
}

/// The position of an occurrence in a rule with COUNT.
struct CountedSplit {
    /// Whether the rule produces the occurrence.
    is_occurrence: bool,
    /// The number of occurrences of the rule before it.
    occurrences_before: u64,
}

/// Counts the occurrences of a rule before an occurrence. DTSTART counts, whether the rule produces
/// it or not.
fn count_occurrences_before(
    schedule: &ComponentSchedule,
    rule: &Rule,
    key: i64,
    count: u64,
) -> Result<CountedSplit, Error> {
    let endless = rule.clone().with_end(RuleEnd::Never);
    let mut occurrences =
        endless.occurrences_from(schedule.start, schedule.start).with_budget(StepBudget::default());
    let mut number = 0;
    let mut is_first = true;
    for civil in occurrences.by_ref() {
        if std::mem::take(&mut is_first) && civil != schedule.start {
            number += 1;
        }
        let other = schedule.form.civil_to_key(civil);
        if other >= key || number >= count {
            let is_occurrence = other == key;
            return Ok(CountedSplit { is_occurrence, occurrences_before: number });
        }
        number += 1;
    }
    match occurrences.is_exhausted() {
        true => Err(Error::TooManyOccurrences),
        false => Ok(CountedSplit { is_occurrence: false, occurrences_before: number }),
    }
}

/// Changes one occurrence by an override.
fn edit_one_occurrence(
    group: &UidGroup<'_>,
    key: i64,
    context: &EditContext<'_>,
) -> Result<Vec<EditableComponent>, Error> {
    if context.edit.rule.is_some() {
        return Err(Error::RuleOnOccurrence);
    }
    let mut series = EditedSeries::new(group.master.clone(), group.overrides.clone());
    if let Some(one) = series.overrides.iter_mut().find(|one| one.key == Some(key)) {
        let new_time = context.resolve_new_time(&one.component)?;
        context.apply(&mut one.component, &new_time)?;
        return Ok(series.into_components());
    }
    let component = create_override(group, key)?;
    let mut one = OverrideComponent { key: Some(key), following: false, component };
    let new_time = context.resolve_new_time(&one.component)?;
    context.apply(&mut one.component, &new_time)?;
    series.overrides.push(one);
    Ok(series.into_components())
}

/// Creates an override for an occurrence, with the properties of the master, or of the override
/// whose range contains the occurrence.
pub(super) fn create_override(group: &UidGroup<'_>, key: i64) -> Result<EditableComponent, Error> {
    let (Some(master), Some(schedule)) = (&group.master, &group.schedule) else {
        return Err(Error::NoTime);
    };
    let occurrence = schedule
        .occurrence_at(key)
        .ok_or_else(|| Error::NoOccurrence(schedule.key_to_civil(key).to_string()))?;
    let ranges = group.overrides.iter().filter(|one| one.following && one.key < Some(key));
    let range = ranges.max_by_key(|one| one.key);
    let mut part = range.map_or(master, |range| &range.component).clone();
    let copied = part.schedule(group.extractor).ok_or(Error::NoTime)?;
    // The distance between the occurrence and the original time of the copied component is also the
    // distance between their starts.
    let from =
        range.and_then(|range| range.key).map_or(schedule.start, |key| schedule.key_to_civil(key));
    let delta = occurrence.original_civil.seconds() - from.seconds();
    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
        part.remove_property(name);
    }
    part.remove_absolute_alarms();
    let start = copied.start.saturating_add(delta);
    NewTime::new(copied.form.clone(), start).apply_to(&mut part, &copied, group.extractor);
    if let Some(duration) = group.rdate_duration(key) {
        part.remove_property("DTEND");
        part.set_property("DURATION", &[], &duration);
    }
    part.remove_property("RECURRENCE-ID");
    let value = schedule.form.format_value(schedule.key_to_civil(key));
    part.append_property("RECURRENCE-ID", &schedule.form.params(), &value);
    Ok(part)
}

impl UidGroup<'_> {
    /// Returns the duration of an occurrence whose RDATE is a period.
    fn rdate_duration(&self, key: i64) -> Option<String> {
        let (mut master, schedule) = (self.master.clone()?, self.schedule.as_ref()?);
        let mut found = None;
        master.edit_list_values("RDATE", self.extractor, &schedule.form, &mut |start, duration| {
            if schedule.recurrence_key(start) == key {
                found = found.take().or(duration);
            }
            ValueEdit::Keep
        });
        found
    }
}

/// Splits a series at an occurrence, and changes the second part. Returns the components of the
/// first part, and the second part, which has the new UID.
fn split_series(
    group: &UidGroup<'_>,
    key: i64,
    context: &EditContext<'_>,
    new_uid: &str,
) -> Result<(Vec<EditableComponent>, EditedSeries), Error> {
    let early = truncate_series(group, key, context.locale.now)?;
    let late = build_following_series(group, key, new_uid, context)?;
    verify_following(group, &late, key)?;
    let schedule = group.schedule.as_ref();
    let seen = schedule.map_or(key, |schedule| schedule.shift_key(key, late.shift_seconds));
    Ok((early, late.series.apply_edit(Some(seen), Some(seen), context)?))
}

/// The second part of a series that was split.
struct FollowingSeries {
    series: EditedSeries,
    /// The shift of its occurrences relative to the whole series, in seconds of clock time.
    shift_seconds: i64,
}

/// Builds a series of an occurrence and all following, with a new UID.
fn build_following_series(
    group: &UidGroup<'_>,
    key: i64,
    new_uid: &str,
    context: &EditContext<'_>,
) -> Result<FollowingSeries, Error> {
    // The series continues with the last override that changed all following occurrences.
    let ranges = group.overrides.iter().filter(|one| one.following && one.key <= Some(key));
    let range = ranges.max_by_key(|one| one.key);
    let is_range = |one: &OverrideComponent| range.is_some_and(|range| range.key == one.key);
    let is_late =
        |one: &&OverrideComponent| one.key.is_some_and(|other| other >= key) && !is_range(one);
    let mut overrides: Vec<OverrideComponent> =
        group.overrides.iter().filter(is_late).cloned().collect();
    for one in &mut overrides {
        one.component.set_uid(new_uid);
    }
    let (Some(master), Some(schedule)) = (&group.master, &group.schedule) else {
        let series = EditedSeries::new(None, overrides);
        return match range {
            Some(_) => Err(Error::CannotSplit),
            None => Ok(FollowingSeries { series, shift_seconds: 0 }),
        };
    };
    let occurrence = schedule.occurrence_at(key).ok_or(Error::CannotSplit)?;
    let mut part = master.clone();
    let rules = split_rules(&part, schedule, key)?;
    part.set_uid(new_uid);
    let new_time = NewTime::new(schedule.form.clone(), occurrence.original_civil);
    new_time.apply_to(&mut part, schedule, group.extractor);
    part.set_property_values("RRULE", &rules.late);
    part.remove_absolute_alarms();
    edit_date_lists(&mut part, schedule, group, &mut |other| match other < key {
        true => ValueEdit::Drop,
        false => ValueEdit::Keep,
    });
    match range {
        None => {
            let series = EditedSeries::new(Some(part), overrides);
            Ok(FollowingSeries { series, shift_seconds: 0 })
        }
        Some(range) => promote_override_to_master(&part, overrides, range, context),
    }
}

/// Makes the override of all following occurrences the master of their series. Everything that
/// depends on the times of the master moves as far as the override was moved.
fn promote_override_to_master(
    planned: &EditableComponent,
    mut overrides: Vec<OverrideComponent>,
    range: &OverrideComponent,
    context: &EditContext<'_>,
) -> Result<FollowingSeries, Error> {
    let schedule = planned.schedule(context.extractor).ok_or(Error::CannotSplit)?;
    let mut part = range.component.clone();
    let range_schedule = part.schedule(context.extractor).ok_or(Error::CannotSplit)?;
    let (true, Some(key)) = (range_schedule.form == schedule.form, range.key) else {
        return Err(Error::CannotSplit);
    };
    let shift_seconds = range_schedule.start.seconds() - schedule.key_to_civil(key).seconds();
    part.set_uid(&planned.uid);
    part.remove_property("RECURRENCE-ID");
    let start = schedule.start.saturating_add(shift_seconds);
    let new_time = NewTime::new(schedule.form.clone(), start);
    new_time.apply_to(&mut part, &range_schedule, context.extractor);
    for name in ["RRULE", "EXRULE", "RDATE", "EXDATE"] {
        part.copy_property(planned, name);
    }
    let shift = SeriesShift::uniform(&schedule, &schedule.form, shift_seconds);
    if shift_seconds != 0 {
        shift.shift_rules(&mut part)?;
        shift.shift_date_lists(&mut part, context);
    }
    for one in &mut overrides {
        let Some(key) = one.key else { continue };
        let civil = shift.new_civil(key);
        one.set_recurrence_id(&schedule.form, civil);
        if shift_seconds != 0 {
            one.key = Some(schedule.form.civil_to_key(civil));
        }
    }
    Ok(FollowingSeries { series: EditedSeries::new(Some(part), overrides), shift_seconds })
}

/// Fails unless the first part of a series that is split at an occurrence has the occurrences
/// before it. Only those of about a year before it are compared.
fn verify_truncated(
    group: &UidGroup<'_>,
    early: &EditableComponent,
    schedule: &ComponentSchedule,
    key: i64,
) -> Result<(), Error> {
    let since = key.saturating_sub(400 * DAY_SECONDS);
    let early = early.schedule(group.extractor);
    let early_keys = early.map_or_else(Vec::new, |early| planned_keys(&early, since, i64::MAX));
    let is_equal = early_keys == planned_keys(schedule, since, key);
    if is_equal { Ok(()) } else { Err(Error::CannotSplit) }
}

/// Fails unless the second part of a series that is split at an occurrence has it and those after
/// it.
fn verify_following(group: &UidGroup<'_>, late: &FollowingSeries, key: i64) -> Result<(), Error> {
    let Some(schedule) = &group.schedule else { return Ok(()) };
    let late_master = late.series.master.as_ref();
    let late_schedule = late_master.and_then(|master| master.schedule(group.extractor));
    let late_keys =
        late_schedule.map_or_else(Vec::new, |late| planned_keys(&late, i64::MIN, i64::MAX));
    let planned = planned_keys(schedule, key, i64::MAX).into_iter();
    let planned = planned.map(|key| schedule.shift_key(key, late.shift_seconds));
    let is_equal = late_keys == planned.collect::<Vec<_>>();
    if is_equal { Ok(()) } else { Err(Error::CannotSplit) }
}

/// Returns the first keys of a series in a range.
fn planned_keys(schedule: &ComponentSchedule, from: i64, to: i64) -> Vec<i64> {
    let keys = schedule.occurrences_from(from).map(|one| one.original.seconds());
    keys.take_while(|key| *key < to).take(MAX_COMPARED_OCCURRENCES).collect()
}

impl EditedSeries {
    /// Changes the whole series for a user who sees the occurrence `seen_key`. The override
    /// `edited_override` is edited relative to its own time; all other overrides keep the
    /// properties that they changed.
    fn apply_edit(
        mut self,
        seen_key: Option<i64>,
        edited_override: Option<i64>,
        context: &EditContext<'_>,
    ) -> Result<EditedSeries, Error> {
        let orphaned_before = self.count_orphaned_overrides(context.extractor);
        let Some(master) = &mut self.master else {
            for one in &mut self.overrides {
                let new_time = context.resolve_new_time(&one.component)?;
                context.apply(&mut one.component, &new_time)?;
            }
            return Ok(self);
        };
        let Some(schedule) = master.schedule(context.extractor) else {
            let new_time = context.resolve_new_time(master)?;
            context.apply(master, &new_time)?;
            return Ok(self);
        };
        let seen = seen_key.map_or(schedule.start, |key| schedule.key_to_civil(key));
        let new_time = context.resolve_occurrence_time(&schedule, seen)?;
        let delta = new_time.as_ref().map_or(0, |time| time.start.seconds() - seen.seconds());
        let new_time =
            new_time.map(|time| time.shift_by(schedule.start.seconds() - seen.seconds()));
        let moved = new_time.as_ref().filter(|time| delta != 0 || time.form != schedule.form);
        let new_form = moved.map(|time| time.form.clone());
        let begins_at = |start: CivilTime| {
            let is_given = context.edit.start.is_some() && context.edit.rule.is_none();
            is_given && is_start_in_rule(master, &schedule, start)
        };
        let new_start = moved.map(|time| time.start).filter(|start| begins_at(*start));
        self.keeps_rule = new_start.is_some();
        // All else moves by the difference of the times of day then.
        let delta =
            new_start.map_or(delta, |start| start.second_of_day() - schedule.start.second_of_day());
        let before = master.clone();
        context.apply(master, &new_time)?;
        let new_schedule = master.schedule(context.extractor);
        let new_duration = new_schedule
            .filter(|new| new.form.is_date() == schedule.form.is_date())
            .map(|new| new.duration_seconds());
        let has_new_rule = context.edit.rule.is_some();
        let shift = match &new_form {
            Some(form) if has_new_rule || self.keeps_rule => {
                Some(SeriesShift::uniform(&schedule, form, delta))
            }
            Some(form) => Some(SeriesShift::with_start(&before, &schedule, form, delta)?),
            None => None,
        };
        if let Some(shift) = &shift {
            if !has_new_rule {
                shift.shift_rules(master)?;
            }
            shift.shift_date_lists(master, context);
        }
        let is_whole_move = shift.is_some() && !has_new_rule && !self.keeps_rule;
        if is_whole_move {
            verify_shift(&before, master, context.extractor)?;
        }
        for one in &mut self.overrides {
            if edited_override.is_some() && one.key == edited_override {
                let new_time = context.resolve_new_time(&one.component)?;
                context.apply(&mut one.component, &new_time)?;
                if let (Some(shift), Some(key)) = (&shift, one.key) {
                    one.set_recurrence_id(shift.form(), shift.new_civil(key));
                }
                continue;
            }
            let mut follows = one.apply_series_edit(&before, &schedule, new_duration, context)?;
            if let Some(shift) = &shift {
                follows &= one.shift_with_series(shift, context);
            }
            self.diverged_overrides += usize::from(!follows);
        }
        if is_whole_move && self.count_orphaned_overrides(context.extractor) > orphaned_before {
            return Err(Error::CannotMove);
        }
        Ok(self)
    }

    /// Counts the overrides of occurrences that the rule does not produce.
    fn count_orphaned_overrides(&self, extractor: &Extractor) -> usize {
        let schedule = self.master.as_ref().and_then(|master| master.schedule(extractor));
        let Some(schedule) = schedule else { return 0 };
        let is_orphaned = |one: &&OverrideComponent| {
            one.component.recurrence_id(extractor).is_some_and(|recurrence_id| {
                let key = schedule.recurrence_id_key(&recurrence_id.time);
                schedule.occurrence_at(key).is_none()
            })
        };
        self.overrides.iter().filter(is_orphaned).count()
    }
}
