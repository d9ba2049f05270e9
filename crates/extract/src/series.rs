//! Series: the schedules of the items of one UID, combined.
//!
//! An override is an item of its own, and removes the occurrence that it replaces from its series;
//! an override with RANGE=THISANDFUTURE also replaces most of the later occurrences. So whenever an
//! item of a UID changes, the others are combined again. `larder-store` reads the items. This
//! module only computes, and is separate because it needs no database.

use crate::schedule::{ParsedSchedule, Schedule};
use larder_time::series::Override;
use std::collections::HashSet;

/// The overrides of one series that may stand for the occurrences that follow; all further ones
/// stand for a single occurrence.
const MAX_FUTURE_OVERRIDES: usize = 64;

/// An item of a UID, with the schedule that it states by itself.
#[derive(Debug, Clone)]
pub struct SeriesMember {
    /// The row of the item.
    pub row: i64,
    /// The recurrence-id; empty for the master.
    pub recurrence_id: String,
    /// The schedule of the item by itself.
    pub parsed_schedule: Option<Box<ParsedSchedule>>,
    /// The item has changed.
    pub is_changed: bool,
}

impl SeriesMember {
    fn is_master(&self) -> bool {
        self.recurrence_id.is_empty()
    }

    fn depends_on_series(&self) -> bool {
        self.parsed_schedule.as_ref().is_some_and(|schedule| schedule.depends_on_series())
    }

    fn standalone_schedule(&self) -> Option<Schedule> {
        self.parsed_schedule.as_ref().and_then(|schedule| schedule.standalone.clone())
    }
}

/// Combines all items of a UID. Returns the schedules, by row, of the items that have changed and
/// of those that depend on them.
#[must_use]
pub fn combine_schedules(mut members: Vec<SeriesMember>) -> Vec<(i64, Option<Schedule>)> {
    members.sort_by_key(|member| member.row);
    let affected = members
        .iter()
        .filter(|member| member.is_changed || member.is_master() || member.depends_on_series());
    let (overrides, following) = collect_overrides(&members);
    let master = members.iter().find(|member| member.is_master());
    let zone_names = master.map_or_else(Vec::new, |master| collect_zone_names(master, &members));
    let schedule = |member: &SeriesMember| match master {
        Some(master) if member.is_master() || following.contains(&member.row) => {
            combine_member(member, master, &overrides, &zone_names)
        }
        Some(_) => member.parsed_schedule.as_ref().and_then(|parsed| parsed.single_schedule()),
        None => member.standalone_schedule(),
    };
    affected.map(|member| (member.row, schedule(member))).collect()
}

/// Returns the changes that the overrides make to their series, and the rows of those that also
/// stand for the occurrences that follow.
fn collect_overrides(members: &[SeriesMember]) -> (Vec<Override>, Vec<i64>) {
    let (mut overrides, mut following) = (Vec::new(), Vec::new());
    for member in members.iter().filter(|member| !member.is_master()) {
        let Some(schedule) = member.parsed_schedule.as_deref() else { continue };
        let is_followed = schedule.is_this_and_future && following.len() < MAX_FUTURE_OVERRIDES;
        following.extend(is_followed.then_some(member.row));
        overrides.extend(schedule.to_override(member.row, is_followed));
    }
    (overrides, following)
}

/// Returns the names of the time zones in a series; the zone of the start is first.
fn collect_zone_names(master: &SeriesMember, members: &[SeriesMember]) -> Vec<String> {
    let names_of = |member: &'_ SeriesMember| {
        member.parsed_schedule.as_deref().map_or(&[][..], ParsedSchedule::zone_names).to_vec()
    };
    let mut seen = HashSet::new();
    let all = std::iter::once(master).chain(members).flat_map(names_of);
    all.filter(|name| seen.insert(name.clone())).collect()
}

fn combine_member(
    member: &SeriesMember,
    master: &SeriesMember,
    overrides: &[Override],
    zone_names: &[String],
) -> Option<Schedule> {
    let schedule = member.parsed_schedule.as_deref()?;
    let master_schedule = master.parsed_schedule.as_deref()?;
    let Some(series) = master_schedule.series_with_overrides(overrides) else {
        return schedule.standalone.clone();
    };
    let override_row = if member.is_master() { None } else { Some(member.row) };
    schedule.schedule_in_series(series, override_row, zone_names)
}
