//! What hangs on a series, when that is changed: its rules, its EXDATE and RDATE, and its changed occurrences.
//!
//! What is meant by a change, and of what it consists, is for [`scope`](super::scope). This is apart as it is the same for all that follow
//! and for all.

use super::Error;
use super::edit::{Asked, Target};
use super::form::Form;
use super::part::{Fate, Part, Plan, length_of};
use super::scope::{bound, ending};
use super::whole::Detached;
use larder_time::civil::{Civil, Weekday};
use larder_time::rule::{End, Frequency, Rule};

/// The rules of a master that was moved.
pub(super) fn rules_along(
    master: &mut Part,
    plan: &Plan,
    form: &Form,
    delta: i64,
) -> Result<(), Error> {
    let start = plan.start.plus(delta);
    let mut rules = Vec::new();
    for text in master.texts("RRULE") {
        let Ok(rule) = Rule::parse(&text) else {
            rules.push(text);
            continue;
        };
        let matches = |rule: &Rule, start: Civil| {
            let endless = rule.clone().with_end(End::Never);
            endless.from(start, start).next() == Some(start)
        };
        let mut text = text;
        if matches(&rule, plan.start) && rule.frequency() == Frequency::Weekly {
            text = turned(&text, start.day() - plan.start.day());
        }
        if matches(&rule, plan.start) && !matches(&Rule::parse(&text)?, start) {
            return Err(Error::NeedsRule);
        }
        if let (None, Some(end)) = (rule.count(), bound(plan, &rule)) {
            let last = plan.shown(end).plus(delta);
            let last = if plan.form.is_date() && !form.is_date() {
                Civil::midnight(last.day()).plus(start.second_of_day())
            } else {
                last
            };
            text = ending(&text, Some(format!("UNTIL={}", form.until(last))));
        }
        rules.push(text);
    }
    if rules != master.texts("RRULE") {
        master.set_all("RRULE", &rules);
    }
    Ok(())
}

/// A weekly rule with its weekdays so many days later.
fn turned(text: &str, days: i64) -> String {
    const NAMES: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
    let later = |name: &str| {
        let at = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name.trim()));
        let at = at.map(|at| (at as i64 + days).rem_euclid(Weekday::ALL.len() as i64) as usize);
        at.and_then(|at| NAMES.get(at).copied()).unwrap_or(name).to_string()
    };
    let part = |part: &str| match part.split_once('=') {
        // The week of an interval begins with them.
        Some((name, list)) if ["BYDAY", "WKST"].contains(&&*name.trim().to_ascii_uppercase()) => {
            format!("{name}={}", list.split(',').map(later).collect::<Vec<_>>().join(","))
        }
        _ => part.to_string(),
    };
    let has = |wanted: &str| text.to_ascii_uppercase().contains(wanted);
    let mut turned = text.split(';').map(part).collect::<Vec<_>>().join(";");
    if has("BYDAY=") && has("INTERVAL=") && !has("WKST=") && days.rem_euclid(7) != 0 {
        turned.push_str(&format!(";WKST={}", later("MO")));
    }
    turned
}

/// EXDATE and RDATE of a master that was moved: they still meet what they met.
pub(super) fn values_along(
    master: &mut Part,
    plan: &Plan,
    form: &Form,
    delta: i64,
    asked: &Asked<'_>,
) {
    for name in ["EXDATE", "RDATE"] {
        master.values(name, asked.deriver, form, &mut |start, text| {
            let value = form.value(plan.shown(plan.key(start)).plus(delta));
            Fate::Write(match length_of(text) {
                Some(length) if !form.is_date() => format!("{value}/{length}"),
                _ => value,
            })
        });
    }
}

impl Detached {
    /// Changes what a changed occurrence has of its series: `before` and `plan` are that before, `lasts` says how long it takes now.
    /// False: it keeps something of its own.
    pub(super) fn inherit(
        &mut self,
        before: &Part,
        plan: &Plan,
        lasts: Option<i64>,
        asked: &Asked<'_>,
    ) -> Result<bool, Error> {
        let inherited = asked.edit.inherited(&self.part, before);
        let mut whole = !inherited.leaves_out(asked.edit);
        let own =
            self.part.plan(asked.deriver).filter(|own| own.form.is_date() == plan.form.is_date());
        let mut target = None;
        if let (Some(own), Some(lasts)) = (own, lasts.filter(|lasts| *lasts != plan.length())) {
            let same = own.length() == plan.length();
            target = same.then(|| Target::new(own.form, own.start).lasting(lasts));
            whole &= same;
        }
        Asked { edit: &inherited, ..*asked }.apply(&mut self.part, &target)?;
        Ok(whole)
    }

    /// A changed occurrence of a series that was moved. Where it was at the time it was planned for, or leads all that follow it, it is
    /// moved as well. False: it was moved by itself.
    pub(super) fn along(
        &mut self,
        plan: &Plan,
        form: &Form,
        delta: i64,
        asked: &Asked<'_>,
    ) -> bool {
        let Some(key) = self.key else { return true };
        let own = self.part.plan(asked.deriver);
        let goes = |own: &Plan| self.following || own.form.key(own.start) == key;
        let own = own.filter(|own| own.form == plan.form && goes(own));
        let went = own.is_some();
        if let Some(own) = own {
            let target = Target::new(form.clone(), own.start.plus(delta));
            target.put(&mut self.part, &own, asked.deriver);
        }
        self.stand_for(plan, form, delta);
        self.part.touch(asked.speaker.now, true);
        went
    }

    /// It stands for what has become of its occurrence: in this form, so much later on the clock.
    pub(super) fn stand_for(&mut self, plan: &Plan, form: &Form, delta: i64) {
        let Some(key) = self.key else { return };
        let mut params = form.params();
        if self.following {
            params.push(("RANGE", "THISANDFUTURE"));
        }
        let value = form.value(plan.shown(key).plus(delta));
        self.part.set("RECURRENCE-ID", &params, &value);
    }
}
