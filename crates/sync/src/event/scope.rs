//! Changes by scope: one occurrence, it and all that follow, or all.
//!
//! Here is what becomes of the items of a UID; what a person wants of an occurrence is [`Edit`]. They mean what the modes of
//! evolution-data-server mean: *this* makes a detached occurrence, or takes one out by EXDATE; *future* shortens the rule, and what
//! follows goes on under a UID of its own; *all* changes the master, and what hangs on its times moves along.

use super::Error;
use super::along::{rules_along, values_along};
use super::edit::{Asked, Edit, Target};
use super::part::{Fate, Part, Plan, length_of};
use super::said::Speaker;
use super::whole::{Detached, Whole};
use larder_store::{Change, Deriver};
use larder_time::civil::{DAY, Instant};
use larder_time::rule::{Budget, End, Rule};

/// Which occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One of them.
    This,
    /// One, and those that follow it.
    Future,
    /// All of them.
    All,
}

/// Occurrences that are compared to see whether a divided series is what it was.
const COMPARED: usize = 256;

/// What has to be written to take occurrences away. The key is of the occurrence that is meant, by [`Whole::find`].
///
/// # Errors
/// Why it cannot be done.
pub fn remove(
    whole: &Whole<'_>,
    scope: Option<Scope>,
    key: Option<i64>,
    now: Instant,
) -> Result<Vec<Change>, Error> {
    let (scope, key) = meant(whole, scope, key)?;
    let parts = match (scope, key) {
        (Scope::This, Some(key)) => without(whole, key, now)?,
        (Scope::Future, Some(key)) if !is_first(whole, key) => before(whole, key, now)?,
        _ => Vec::new(),
    };
    whole.changes(parts)
}

/// What a change of occurrences comes to.
pub struct Changed {
    /// What has to be written.
    pub changes: Vec<Change>,
    /// Changed occurrences that stay, though a new rule does not have them.
    pub astray: usize,
    /// Changed occurrences that keep what they say otherwise than the series.
    pub apart: usize,
}

/// What has to be written to change occurrences. What follows gets the new UID, where it needs one.
///
/// # Errors
/// Why it cannot be done.
pub fn change(
    whole: &Whole<'_>,
    scope: Option<Scope>,
    key: Option<i64>,
    edit: &Edit,
    uid: &str,
    speaker: &Speaker<'_>,
) -> Result<Changed, Error> {
    let (scope, key) = meant(whole, scope, key)?;
    let asked = Asked { edit, speaker, deriver: whole.deriver };
    let (early, changed) = match (scope, key) {
        (Scope::This, Some(key)) => (this(whole, key, &asked)?, None),
        (Scope::Future, Some(key)) if !is_first(whole, key) => {
            let (early, late) = future(whole, key, &asked, uid)?;
            (early, Some(late))
        }
        (_, key) => {
            let all = Series::new(whole.master.clone(), whole.detached.clone());
            // What leads all that follow it is no exception, but a part of the series.
            let leads =
                |key| whole.detached.iter().any(|one| one.following && one.key == Some(key));
            let own = key.filter(|key| scope == Scope::Future || leads(*key));
            (Vec::new(), Some(all.changed(key, own, &asked)?))
        }
    };
    let ruled = changed.as_ref().filter(|_| edit.rule.is_some());
    let astray = ruled.map_or(0, |changed| changed.astray(whole.deriver));
    let apart = changed.as_ref().map_or(0, |changed| changed.apart);
    let parts = early.into_iter().chain(changed.into_iter().flat_map(Series::parts)).collect();
    Ok(Changed { changes: whole.changes(parts)?, astray, apart })
}

/// What is meant: without a word of it all of what happens once, and of one occurrence that was named, it alone.
fn meant(
    whole: &Whole<'_>,
    scope: Option<Scope>,
    key: Option<i64>,
) -> Result<(Scope, Option<i64>), Error> {
    whole.is_current()?;
    let once = whole.detached.is_empty() && !whole.plan.as_ref().is_some_and(Plan::recurs);
    match (scope, key) {
        _ if once && whole.master.is_some() => Ok((Scope::All, None)),
        (None, None) => Err(Error::NeedsScope),
        (None, Some(_)) => Ok((Scope::This, key)),
        (Some(Scope::This | Scope::Future), None) => Err(Error::NeedsOccurrence),
        (Some(scope), key) => Ok((scope, key)),
    }
}

/// Is nothing before this occurrence?
fn is_first(whole: &Whole<'_>, key: i64) -> bool {
    let planned = whole.plan.as_ref().and_then(Plan::first);
    let detached = whole.detached.iter().filter_map(|one| one.key).min();
    planned.into_iter().chain(detached).min().is_none_or(|first| key <= first)
}

/// The items of one UID while they are being changed.
#[derive(Debug, Clone)]
struct Series {
    master: Option<Part>,
    detached: Vec<Detached>,
    /// Changed occurrences that keep what they say otherwise than the series.
    apart: usize,
}

impl Series {
    fn new(master: Option<Part>, detached: Vec<Detached>) -> Series {
        Series { master, detached, apart: 0 }
    }

    fn parts(self) -> Vec<Part> {
        self.master.into_iter().chain(self.detached.into_iter().map(|one| one.part)).collect()
    }
}

/// All but one occurrence.
fn without(whole: &Whole<'_>, key: i64, now: Instant) -> Result<Vec<Part>, Error> {
    let detached: Vec<Detached> =
        whole.detached.iter().filter(|one| one.key != Some(key)).cloned().collect();
    let mut master = whole.master.clone();
    if let (Some(part), Some(plan)) = (&mut master, &whole.plan)
        && plan.at(key).is_some()
    {
        part.append("EXDATE", &plan.form.params(), &plan.form.value(plan.shown(key)));
        part.touch(now, true);
        let nothing = part.plan(whole.deriver).is_none_or(|plan| plan.first().is_none());
        if nothing && detached.is_empty() {
            master = None;
        }
    }
    Ok(Series::new(master, detached).parts())
}

/// What is before an occurrence.
fn before(whole: &Whole<'_>, key: i64, now: Instant) -> Result<Vec<Part>, Error> {
    let earlier = |one: &&Detached| one.key.is_none_or(|of| of < key);
    let detached = whole.detached.iter().filter(earlier).cloned().collect();
    let mut master = whole.master.clone();
    if let (Some(part), Some(plan)) = (&mut master, &whole.plan) {
        let (rules, _) = divided(part, plan, key)?;
        part.set_all("RRULE", &rules);
        let mut early = |of: i64, _: &str| if of < key { Fate::Keep } else { Fate::Drop };
        lists(part, plan, whole, &mut early);
        part.touch(now, true);
    }
    Ok(Series::new(master, detached).parts())
}

/// Decides about the values of EXDATE and RDATE by their keys.
fn lists(part: &mut Part, plan: &Plan, whole: &Whole<'_>, fate: &mut dyn FnMut(i64, &str) -> Fate) {
    for name in ["EXDATE", "RDATE"] {
        part.values(name, whole.deriver, &plan.form, &mut |start, text| {
            fate(plan.key(start), text)
        });
    }
}

/// The rules up to an occurrence, and from it on.
fn divided(part: &Part, plan: &Plan, key: i64) -> Result<(Vec<String>, Vec<String>), Error> {
    let (mut early, mut late) = (Vec::new(), Vec::new());
    let step = if plan.form.is_date() { DAY } else { 1 };
    for text in part.texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            early.push(text);
            continue;
        };
        if let Some(count) = rule.count() {
            let (matches, passed) = passed(plan, &rule, key, count)?;
            if passed >= count {
                early.push(text);
                continue;
            }
            if passed > 0 {
                early.push(ending(&text, Some(format!("COUNT={passed}"))));
            }
            let left = count - passed + u64::from(!matches);
            late.push(ending(&text, Some(format!("COUNT={left}"))));
        } else {
            let last = plan.before(key).unwrap_or(key.saturating_sub(step));
            let over = rule.from(plan.start, plan.shown(key)).next().is_none()
                && plan.at(key).is_none_or(|_| bound(plan, &rule).is_some_and(|end| end < key));
            if over {
                early.push(text);
                continue;
            }
            early.push(ending(&text, Some(format!("UNTIL={}", plan.form.until(plan.shown(last))))));
            late.push(text);
        }
    }
    Ok((early, late))
}

/// UNTIL as a key.
pub(super) fn bound(plan: &Plan, rule: &Rule) -> Option<i64> {
    match rule.end() {
        End::Until(stamp) if stamp.utc && plan.form.zone().is_some() => Some(stamp.civil.seconds()),
        _ => rule.bound().map(|last| plan.form.key(last)),
    }
}

/// Does the occurrence match the rule, and how many of its own are before it? The start takes one, whether it matches or not.
fn passed(plan: &Plan, rule: &Rule, key: i64, count: u64) -> Result<(bool, u64), Error> {
    let endless = rule.clone().with_end(End::Never);
    let mut all = endless.from(plan.start, plan.start).with_budget(Budget::default());
    let mut number = 0;
    let mut first = true;
    for civil in all.by_ref() {
        if std::mem::take(&mut first) && civil != plan.start {
            number += 1;
        }
        let of = plan.form.key(civil);
        if of >= key || number >= count {
            return Ok((of == key, number));
        }
        number += 1;
    }
    if all.exhausted() { Err(Error::TooMany) } else { Ok((false, number)) }
}

/// The text of a rule with another end.
pub(super) fn ending(text: &str, end: Option<String>) -> String {
    let ends = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().trim();
        !name.eq_ignore_ascii_case("COUNT") && !name.eq_ignore_ascii_case("UNTIL")
    };
    let kept = text.split(';').filter(ends).map(str::to_string);
    kept.chain(end).collect::<Vec<_>>().join(";")
}

/// One occurrence changed: as a detached one.
fn this(whole: &Whole<'_>, key: i64, asked: &Asked<'_>) -> Result<Vec<Part>, Error> {
    if asked.edit.rule.is_some() {
        return Err(Error::RuleOfOne);
    }
    let mut series = Series::new(whole.master.clone(), whole.detached.clone());
    if let Some(one) = series.detached.iter_mut().find(|one| one.key == Some(key)) {
        let target = asked.target(&one.part)?;
        asked.apply(&mut one.part, &target)?;
        return Ok(series.parts());
    }
    let part = detached(whole, key)?;
    let mut one = Detached { key: Some(key), following: false, part };
    let target = asked.target(&one.part)?;
    asked.apply(&mut one.part, &target)?;
    series.detached.push(one);
    Ok(series.parts())
}

/// The occurrence as a component of its own: the master's properties, or those of the one that changed all that follow.
pub(super) fn detached(whole: &Whole<'_>, key: i64) -> Result<Part, Error> {
    let (Some(master), Some(plan)) = (&whole.master, &whole.plan) else {
        return Err(Error::NoTime);
    };
    let occurrence =
        plan.at(key).ok_or_else(|| Error::NoOccurrence(plan.shown(key).to_string()))?;
    let ranges = whole.detached.iter().filter(|one| one.following && one.key < Some(key));
    let range = ranges.max_by_key(|one| one.key);
    let mut part = range.map_or(master, |range| &range.part).clone();
    let own = part.plan(whole.deriver).ok_or(Error::NoTime)?;
    // From the one that it is a copy of, so far on the clock.
    let from = range.and_then(|range| range.key).map_or(plan.start, |key| plan.shown(key));
    let delta = occurrence.original_civil.seconds() - from.seconds();
    for name in ["RRULE", "RDATE", "EXDATE", "EXRULE"] {
        part.remove(name);
    }
    part.remove_alarms_at_moments();
    let start = own.start.plus(delta);
    let target = Target::new(own.form.clone(), start);
    target.put(&mut part, &own, whole.deriver);
    if let Some(length) = whole.length_of_date(key) {
        part.remove("DTEND");
        part.set("DURATION", &[], &length);
    }
    part.remove("RECURRENCE-ID");
    part.append("RECURRENCE-ID", &plan.form.params(), &plan.form.value(plan.shown(key)));
    Ok(part)
}

impl Whole<'_> {
    /// How long an occurrence takes of which an RDATE says so itself.
    fn length_of_date(&self, key: i64) -> Option<String> {
        let (mut master, plan) = (self.master.clone()?, self.plan.as_ref()?);
        let mut length = None;
        master.values("RDATE", self.deriver, &plan.form, &mut |start, text| {
            if plan.key(start) == key {
                length = length.take().or_else(|| length_of(text));
            }
            Fate::Keep
        });
        length
    }
}

/// An occurrence and all that follow changed: they go on under another UID.
fn future(
    whole: &Whole<'_>,
    key: i64,
    asked: &Asked<'_>,
    uid: &str,
) -> Result<(Vec<Part>, Series), Error> {
    let parts = before(whole, key, asked.speaker.now)?;
    let (rest, shift) = after(whole, key, uid, asked)?;
    check(whole, &parts, &rest, key, shift)?;
    let seen = whole.plan.as_ref().map_or(key, |plan| plan.later(key, shift));
    Ok((parts, rest.changed(Some(seen), Some(seen), asked)?))
}

/// An occurrence and what follows it, under another UID, and how much later they are on the clock than they were planned.
fn after(
    whole: &Whole<'_>,
    key: i64,
    uid: &str,
    asked: &Asked<'_>,
) -> Result<(Series, i64), Error> {
    // What changed it and all that follow is what it goes on with.
    let leading = whole.detached.iter().filter(|one| one.following && one.key <= Some(key));
    let leading = leading.max_by_key(|one| one.key);
    let leads = |one: &Detached| leading.is_some_and(|leading| leading.key == one.key);
    let later = |one: &&Detached| one.key.is_some_and(|of| of >= key) && !leads(one);
    let mut detached: Vec<Detached> = whole.detached.iter().filter(later).cloned().collect();
    for one in &mut detached {
        one.part.uid = uid.to_string();
        one.part.set("UID", &[], uid);
    }
    let (Some(master), Some(plan)) = (&whole.master, &whole.plan) else {
        return match leading {
            Some(_) => Err(Error::Indivisible),
            None => Ok((Series::new(None, detached), 0)),
        };
    };
    let occurrence = plan.at(key).ok_or(Error::Indivisible)?;
    let mut part = master.clone();
    let (_, rules) = divided(&part, plan, key)?;
    part.uid = uid.to_string();
    part.set("UID", &[], uid);
    let target = Target::new(plan.form.clone(), occurrence.original_civil);
    target.put(&mut part, plan, whole.deriver);
    part.set_all("RRULE", &rules);
    part.remove_alarms_at_moments();
    let mut late = |of: i64, _: &str| if of < key { Fate::Drop } else { Fate::Keep };
    lists(&mut part, plan, whole, &mut late);
    match leading {
        None => Ok((Series::new(Some(part), detached), 0)),
        Some(leading) => led(&part, detached, leading, asked),
    }
}

/// A series with this change of all of it for its master: where that is later on the clock, all that hangs on its times is.
fn led(
    planned: &Part,
    mut detached: Vec<Detached>,
    leading: &Detached,
    asked: &Asked<'_>,
) -> Result<(Series, i64), Error> {
    let plan = planned.plan(asked.deriver).ok_or(Error::Indivisible)?;
    let mut part = leading.part.clone();
    let own = part.plan(asked.deriver).ok_or(Error::Indivisible)?;
    let (true, Some(key)) = (own.form == plan.form, leading.key) else {
        return Err(Error::Indivisible);
    };
    let shift = own.start.seconds() - plan.shown(key).seconds();
    part.uid.clone_from(&planned.uid);
    part.set("UID", &[], &planned.uid);
    part.remove("RECURRENCE-ID");
    let start = plan.start.plus(shift);
    let target = Target::new(plan.form.clone(), start);
    target.put(&mut part, &own, asked.deriver);
    for name in ["RRULE", "EXRULE", "RDATE", "EXDATE"] {
        part.take_over(planned, name);
    }
    if shift != 0 {
        rules_along(&mut part, &plan, &plan.form, shift)?;
        values_along(&mut part, &plan, &plan.form, shift, asked);
    }
    for one in &mut detached {
        one.stand_for(&plan, &plan.form, shift);
        one.key = one.key.map(|key| plan.later(key, shift));
    }
    Ok((Series::new(Some(part), detached), shift))
}

/// Do both parts together have the occurrences that the whole has?
fn check(
    whole: &Whole<'_>,
    early: &[Part],
    rest: &Series,
    key: i64,
    shift: i64,
) -> Result<(), Error> {
    let Some(plan) = &whole.plan else { return Ok(()) };
    let keys = |plan: &Plan, from: i64, to: i64| -> Vec<i64> {
        let keys = plan.from(from).map(|one| one.original.seconds());
        keys.take_while(|of| *of < to).take(COMPARED).collect()
    };
    let late = rest.master.as_ref().and_then(|master| master.plan(whole.deriver));
    let late = late.map_or_else(Vec::new, |plan| keys(&plan, i64::MIN, i64::MAX));
    let first = early.iter().find(|part| part.original(whole.deriver).is_none());
    let first = first.and_then(|part| part.plan(whole.deriver));
    let since = key.saturating_sub(400 * DAY);
    let first = first.map_or_else(Vec::new, |plan| keys(&plan, since, i64::MAX));
    let planned = keys(plan, key, i64::MAX).into_iter().map(|of| plan.later(of, shift));
    let same = late == planned.collect::<Vec<_>>() && first == keys(plan, since, key);
    if same { Ok(()) } else { Err(Error::Indivisible) }
}

impl Series {
    /// All of it changed, as somebody wants it who sees this occurrence; where that was changed itself, and is no exception, it is changed
    /// by its own time, too.
    fn changed(
        mut self,
        key: Option<i64>,
        own: Option<i64>,
        asked: &Asked<'_>,
    ) -> Result<Series, Error> {
        let Some(master) = &mut self.master else {
            for one in &mut self.detached {
                let target = asked.target(&one.part)?;
                asked.apply(&mut one.part, &target)?;
            }
            return Ok(self);
        };
        let Some(plan) = master.plan(asked.deriver) else {
            let target = asked.target(master)?;
            asked.apply(master, &target)?;
            return Ok(self);
        };
        // What is seen is the occurrence, at its own time if it was moved.
        let seen = key.map_or(plan.start, |key| plan.shown(key));
        let target = asked.target_of(&plan, seen)?;
        let delta = target.as_ref().map_or(0, |of| of.start.seconds() - seen.seconds());
        let target = target.map(|of| of.moved(plan.start.seconds() - seen.seconds()));
        let moved = target.as_ref().filter(|of| delta != 0 || of.form != plan.form);
        let form = moved.map(|of| of.form.clone());
        let before = master.clone();
        asked.apply(master, &target)?;
        let now = master.plan(asked.deriver);
        let now = now.filter(|now| now.form.is_date() == plan.form.is_date());
        let lasts = now.map(|now| now.length());
        if let Some(form) = &form {
            if asked.edit.rule.is_none() {
                rules_along(master, &plan, form, delta)?;
            }
            values_along(master, &plan, form, delta, asked);
        }
        for one in &mut self.detached {
            if own.is_some() && one.key == own {
                let target = asked.target(&one.part)?;
                asked.apply(&mut one.part, &target)?;
                if let Some(form) = &form {
                    one.stand_for(&plan, form, delta);
                }
                continue;
            }
            let mut follows = one.inherit(&before, &plan, lasts, asked)?;
            if let Some(form) = &form {
                follows &= one.along(&plan, form, delta, asked);
            }
            self.apart += usize::from(!follows);
        }
        Ok(self)
    }

    /// Changed occurrences that the rule does not have.
    fn astray(&self, deriver: &Deriver) -> usize {
        let plan = self.master.as_ref().and_then(|master| master.plan(deriver));
        let Some(plan) = plan else { return 0 };
        let original = |one: &&Detached| one.part.original(deriver).map(|(time, _)| time);
        let is_planned = |time| plan.at(plan.key_of_original(&time)).is_some();
        let strays = |one: &&Detached| original(one).is_some_and(|time| !is_planned(time));
        self.detached.iter().filter(strays).count()
    }
}
