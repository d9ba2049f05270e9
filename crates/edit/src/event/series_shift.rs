//! The parts of a series that depend on its times, when these change: rules, EXDATE and RDATE, and
//! overrides.
//!
//! [`scope`](super::scope) decides which occurrences change. This module is separate because a
//! change of all occurrences and a change of this and future occurrences move the same parts.
//!
//! The occurrences of a rule do not all move as far as its start: a month later, or a day later, is
//! not the same distance in each month, and the days of other rules stay. [`SeriesShift`] knows the
//! distances, and [`verify_shift`] compares the result with the series before, so that a removed
//! occurrence never comes back unnoticed.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::edit::{EditContext, NewTime};
use super::editable_component::{ComponentSchedule, EditableComponent, ValueEdit};
use super::rule_text::{has_day_part, has_part, rotate_byday, until_key, with_rule_end};
use super::uid_group::OverrideComponent;
use larder_store::Extractor;
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, Instant};
use larder_time::rule::{Frequency, LastOccurrence, Rule, RuleEnd, StepBudget};

/// The number up to which the occurrences of a series are counted before and after its move.
const MAX_COUNTED_OCCURRENCES: usize = 10_000;

/// The move of a series: the distance between the old and the new clock time of each occurrence.
pub(super) struct SeriesShift<'a> {
    /// The series before the move.
    schedule: &'a ComponentSchedule,
    /// The form of its times after the move.
    form: &'a DateTimeForm,
    /// The distance of the times that are not occurrences of `period_rule`.
    seconds: i64,
    /// The distance of the ends of rules. It is longer if the days of occurrences stay.
    end_seconds: i64,
    /// The endless monthly or yearly rule, if its days are those of the start. Its occurrences move
    /// by as many months as the start, to the new day, because months differ in length.
    period_rule: Option<Rule>,
}

impl<'a> SeriesShift<'a> {
    /// Moves all times by the same distance.
    pub(super) fn uniform(
        schedule: &'a ComponentSchedule,
        form: &'a DateTimeForm,
        seconds: i64,
    ) -> SeriesShift<'a> {
        SeriesShift { schedule, form, seconds, end_seconds: seconds, period_rule: None }
    }

    /// Moves a series as far as its start, as its rule permits: if it moves by half a day or more
    /// to another day, the days of a rule that names them one by one stay, and only the times of
    /// day move.
    ///
    /// # Errors
    /// [`Error::NeedsRule`] if the new start is no occurrence of such a rule.
    pub(super) fn with_start(
        master: &EditableComponent,
        schedule: &'a ComponentSchedule,
        form: &'a DateTimeForm,
        seconds: i64,
    ) -> Result<SeriesShift<'a>, Error> {
        let shift = SeriesShift::uniform(schedule, form, seconds);
        let days = shift.days();
        let Some((text, rule)) = single_rule(master) else { return Ok(shift) };
        if days == 0 || rule.frequency() == Frequency::Weekly {
            return Ok(shift);
        }
        let has_day_part = has_day_part(&text);
        if rule.frequency() > Frequency::Weekly && !has_day_part && !has_part(&text, "BYMONTH") {
            return Ok(SeriesShift { period_rule: Some(rule.with_end(RuleEnd::Never)), ..shift });
        }
        // A short move over midnight is one of hours, not of days.
        let is_long = seconds.abs() >= DAY_SECONDS / 2 && days % 7 != 0;
        let keeps_days = rule.frequency() < Frequency::Weekly && has_day_part && is_long;
        if !keeps_days && is_produced_start(&rule, schedule.start) {
            return Ok(shift);
        }
        let start = shift.start();
        if !can_start_at(&rule, schedule.start, start) {
            return Err(Error::NeedsRule);
        }
        let within_day = start.second_of_day() - schedule.start.second_of_day();
        let end_seconds = if keeps_days { seconds } else { within_day };
        Ok(SeriesShift { seconds: within_day, end_seconds, ..shift })
    }

    /// The form of the times after the move.
    pub(super) fn form(&self) -> &DateTimeForm {
        self.form
    }

    /// The new start.
    fn start(&self) -> CivilTime {
        self.schedule.start.saturating_add(self.seconds)
    }

    /// The number of days by which the start moves.
    fn days(&self) -> i64 {
        self.start().day_number() - self.schedule.start.day_number()
    }

    /// Returns the old clock time of a key. If the clock skips the time of an occurrence, this is
    /// the time of its rule.
    fn old_civil(&self, key: i64) -> CivilTime {
        let shown = self.schedule.key_to_civil(key);
        let planned = CivilTime::midnight(shown.day_number())
            .saturating_add(self.schedule.start.second_of_day());
        match self.schedule.form.civil_to_key(planned) == key {
            true => planned,
            false => shown,
        }
    }

    /// Returns the distance in seconds by which the time with a key moves.
    fn seconds_at(&self, key: i64) -> i64 {
        let old = self.old_civil(key);
        self.in_new_period(old).map_or(self.seconds, |new| new.seconds() - old.seconds())
    }

    /// Returns the new clock time of a key.
    pub(super) fn new_civil(&self, key: i64) -> CivilTime {
        self.old_civil(key).saturating_add(self.seconds_at(key))
    }

    /// Returns the new time of an occurrence of the monthly or yearly rule; `None` for another
    /// time, and if its new month is too short.
    fn in_new_period(&self, old: CivilTime) -> Option<CivilTime> {
        let rule = self.period_rule.as_ref()?;
        if rule.occurrences_from(self.schedule.start, old).next() != Some(old) {
            return None;
        }
        let month_number = |date: Date| date.year * 12 + i32::from(date.month) - 1;
        let (from, to) = (self.schedule.start, self.start());
        let month = month_number(old.date()) + month_number(to.date()) - month_number(from.date());
        let month_of_year = u8::try_from(month.rem_euclid(12) + 1).ok()?;
        let date = Date::new(month.div_euclid(12), month_of_year, to.date().day)?;
        let seconds = old.second_of_day() + to.second_of_day() - from.second_of_day();
        CivilTime::from_date(date, seconds)
    }

    /// Moves the rules of a master. Rules of which the start is no occurrence stay if there are
    /// others.
    ///
    /// # Errors
    /// [`Error::NeedsRule`] if a rule does not move with the start.
    pub(super) fn shift_rules(&self, master: &mut EditableComponent) -> Result<(), Error> {
        for name in ["RRULE", "EXRULE"] {
            let texts = master.property_texts(name);
            let is_only_rule = name == "RRULE" && texts.len() == 1;
            let rules = texts.iter().map(|text| self.shift_rule(text, is_only_rule));
            let rules = rules.collect::<Result<Vec<String>, Error>>()?;
            if rules != texts {
                master.set_property_values(name, &rules);
            }
        }
        Ok(())
    }

    fn shift_rule(&self, text: &str, is_only_rule: bool) -> Result<String, Error> {
        let Ok(rule) = Rule::parse(text) else { return Ok(text.to_string()) };
        let was_produced = is_produced_start(&rule, self.schedule.start);
        let shifted = match rule.frequency() {
            Frequency::Weekly if self.days() != 0 => rotate_byday(text, self.days()),
            _ if self.days() != 0 && !was_produced && is_only_rule => return Err(Error::NeedsRule),
            _ => text.to_string(),
        };
        if was_produced && !is_produced_start(&Rule::parse(&shifted)?, self.start()) {
            return Err(Error::NeedsRule);
        }
        let Some(until) = until_key(&self.schedule.form, &rule).filter(|_| rule.count().is_none())
        else {
            return Ok(shifted);
        };
        let last = self.new_last(rule, self.schedule.key_to_civil(until));
        Ok(with_rule_end(&shifted, Some(format!("UNTIL={}", self.form.format_until(last)))))
    }

    /// Returns the new end of a rule that ends at `last`.
    fn new_last(&self, rule: Rule, last: CivilTime) -> CivilTime {
        let occurrence = self.period_rule.as_ref().and_then(|_| {
            let rule = rule.with_until(last);
            match rule.last_occurrence(self.schedule.start, StepBudget::default()) {
                LastOccurrence::At(last) => self.in_new_period(last),
                _ => None,
            }
        });
        // A date is read as the end of the day, which a time of day would move to the next one.
        let last = match self.schedule.form.is_date() {
            true => CivilTime::midnight(last.day_number()),
            false => last,
        };
        occurrence.unwrap_or(last.saturating_add(self.end_seconds))
    }

    /// Moves EXDATE and RDATE of a master, so that they refer to the same occurrences as before.
    pub(super) fn shift_date_lists(
        &self,
        master: &mut EditableComponent,
        context: &EditContext<'_>,
    ) {
        for name in ["EXDATE", "RDATE"] {
            master.edit_list_values(name, context.extractor, self.form, &mut |start, duration| {
                let new = self.new_civil(self.schedule.recurrence_key(start));
                let value = self.form.format_value(new);
                ValueEdit::Write(match duration {
                    Some(duration) if !self.form.is_date() => format!("{value}/{duration}"),
                    _ => value,
                })
            });
        }
    }
}

/// Returns the rule of a master with only one, and its text.
fn single_rule(master: &EditableComponent) -> Option<(String, Rule)> {
    let mut texts = master.property_texts("RRULE").into_iter();
    let (text, None) = (texts.next()?, texts.next()) else { return None };
    let rule = Rule::parse(&text).ok()?;
    Some((text, rule))
}

/// Returns whether a rule may have several occurrences in a day.
fn is_within_day(text: &str) -> bool {
    let is_finer = |rule: Rule| rule.frequency() < Frequency::Daily;
    Rule::parse(text).is_ok_and(is_finer)
        || ["BYHOUR", "BYMINUTE", "BYSECOND"].iter().any(|name| has_part(text, name))
}

/// Returns whether a rule produces its start.
fn is_produced_start(rule: &Rule, start: CivilTime) -> bool {
    let endless = rule.clone().with_end(RuleEnd::Never);
    endless.occurrences_from(start, start).next() == Some(start)
}

/// Returns whether a series can start on another day without other changes: the new start is an
/// occurrence of the rule, by its old time of day, or begins it at an earlier one.
fn can_start_at(rule: &Rule, old: CivilTime, new: CivilTime) -> bool {
    let at_old_time = CivilTime::midnight(new.day_number()).saturating_add(old.second_of_day());
    let first = old.min(at_old_time);
    let produces = |time| rule.occurrences_from(first, time).next() == Some(time);
    // A start that the rule does not produce says only in which periods an interval has
    // occurrences.
    produces(at_old_time) && (produces(old) || rule.interval() == 1)
}

/// Returns whether a new start, on another day, is an occurrence of the rule, or begins the rule at
/// an earlier one. Such a series begins later or earlier: its rule and the dates of its exceptions
/// stay.
pub(super) fn is_start_in_rule(
    master: &EditableComponent,
    schedule: &ComponentSchedule,
    start: CivilTime,
) -> bool {
    let Some((text, rule)) = single_rule(master) else { return false };
    let names_weekdays = match rule.frequency() {
        // Without BYDAY, the weekday is that of the start.
        Frequency::Weekly => has_part(&text, "BYDAY"),
        // The number of occurrences would count from another day than that of its exceptions.
        Frequency::Daily => has_day_part(&text) && rule.count().is_none(),
        _ => false,
    };
    let is_other_weekday = (start.day_number() - schedule.start.day_number()) % 7 != 0;
    names_weekdays && is_other_weekday && can_start_at(&rule, schedule.start, start)
}

/// Fails unless the exceptions of a moved series remove as many occurrences as before, its start or
/// another, and a series with an end has as many occurrences as before. Occurrences within a day
/// are not counted: two of them may have one time where clocks are set forward, and in days.
///
/// # Errors
/// [`Error::CannotMove`]
pub(super) fn verify_shift(
    before: &EditableComponent,
    after: &EditableComponent,
    extractor: &Extractor,
) -> Result<(), Error> {
    let has_start = |master: &EditableComponent| {
        let schedule = master.schedule(extractor)?;
        Some(schedule.occurrence_at(schedule.form.civil_to_key(schedule.start)).is_some())
    };
    let form = |master: &EditableComponent| Some(master.schedule(extractor)?.form.is_date());
    let is_counted = form(before) == form(after)
        && !before.property_texts("RRULE").iter().any(|text| is_within_day(text));
    let count = |master| is_counted.then(|| count_occurrences(master, extractor));
    let is_equal = count_removed(before, extractor) == count_removed(after, extractor)
        && has_start(before) == has_start(after)
        && count(before) == count(after);
    if is_equal { Ok(()) } else { Err(Error::CannotMove) }
}

/// Counts the occurrences that EXDATE removes. A date removes all of its day.
fn count_removed(master: &EditableComponent, extractor: &Extractor) -> usize {
    let mut complete = master.clone();
    complete.remove_property("EXDATE");
    let Some(schedule) = complete.schedule(extractor) else { return 0 };
    let mut removed = 0;
    master.clone().edit_list_values("EXDATE", extractor, &schedule.form, &mut |time, _| {
        let is_day = time.is_date && !schedule.form.is_date();
        removed += match schedule.recurrence_key(time) {
            _ if removed >= MAX_COUNTED_OCCURRENCES => 0,
            _ if is_day => schedule.keys_on_day(time.civil.day_number(), None).len(),
            key => usize::from(schedule.occurrence_at(key).is_some()),
        };
        ValueEdit::Keep
    });
    removed
}

/// Counts the occurrences of a master whose rules have an end; `None` if one has none.
fn count_occurrences(master: &EditableComponent, extractor: &Extractor) -> Option<usize> {
    let rules = master.property_texts("RRULE");
    let has_end = |text: &String| Rule::parse(text).is_ok_and(|rule| rule.end() != RuleEnd::Never);
    if !rules.iter().all(has_end) {
        return None;
    }
    let schedule = master.schedule(extractor)?;
    let occurrences = schedule.occurrences_from(Instant::MIN.seconds());
    Some(occurrences.take(MAX_COUNTED_OCCURRENCES).count())
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
        shift: &SeriesShift<'_>,
        context: &EditContext<'_>,
    ) -> bool {
        let Some(key) = self.key else { return true };
        let is_movable = |own: &ComponentSchedule| {
            let is_original = || own.form.civil_to_key(own.start) == key;
            own.form == shift.schedule.form && (self.following || is_original())
        };
        let own = self.component.schedule(context.extractor).filter(is_movable);
        let is_moved = own.is_some();
        if let Some(own) = own {
            let start = match self.following {
                true => own.start.saturating_add(shift.seconds_at(key)),
                false => shift.new_civil(key),
            };
            let new_time = NewTime::new(shift.form.clone(), start);
            new_time.apply_to(&mut self.component, &own, context.extractor);
        }
        self.set_recurrence_id(shift.form, shift.new_civil(key));
        self.component.bump_revision(context.locale.now, true);
        is_moved
    }

    /// Sets RECURRENCE-ID to a time of its occurrence.
    pub(super) fn set_recurrence_id(&mut self, form: &DateTimeForm, civil: CivilTime) {
        let mut params = form.params();
        if self.following {
            params.push(("RANGE", "THISANDFUTURE"));
        }
        self.component.set_property("RECURRENCE-ID", &params, &form.format_value(civil));
    }
}
