//! Series: what the items of one UID are in time, together.
//!
//! A detached occurrence is an item of its own, but takes a place in its series away; one that
//! stands for all that follow (RANGE=THISANDFUTURE) even has most of its occurrences from there. So
//! whatever of a UID changes, the others are looked at again, within the same batch. What one item
//! says by itself is found in `event`; where it is written, in `span`.

use crate::event::ParsedSchedule;
use crate::extractor::{ExtractorCache, ItemRecord};
use crate::schedule::Schedule;
use crate::uid_lookup::{self, CollectionKey};
use crate::{CollectionType, Kind};
use larder_time::series::Override;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashSet;

/// Of the occurrences of a series that stand for all that follow, more than this stand for
/// themselves only.
const MAX_FUTURE_OVERRIDES: usize = 64;

/// Where an item belongs.
#[derive(Debug, Clone)]
pub(crate) struct ItemLocation {
    pub(crate) is_in_calendar: bool,
    pub(crate) collection: i64,
    pub(crate) uid: String,
    pub(crate) recurrence_id: String,
    /// It was not there before the batch.
    pub(crate) is_new: bool,
}

impl ItemLocation {
    /// Of an item that is new.
    pub(crate) fn new(kind: Kind, collection: i64, uid: &str, recurrence: &str) -> ItemLocation {
        let is_in_calendar = kind.collection_type() == CollectionType::Calendar;
        let (uid, recurrence_id) = (uid.into(), recurrence.into());
        ItemLocation { is_in_calendar, collection, uid, recurrence_id, is_new: true }
    }
}

/// An item of a UID, with what it says of time by itself.
pub(crate) struct SeriesMember {
    pub(crate) item: i64,
    /// Empty: it is the master.
    pub(crate) recurrence_id: String,
    pub(crate) parsed_schedule: Option<Box<ParsedSchedule>>,
    pub(crate) is_changed: bool,
}

/// What the items of a UID are in time, of which these have changed: they, and those that depend on
/// them.
pub(crate) fn compute_schedules(
    conn: &Connection,
    derivers: &mut ExtractorCache<'_>,
    collection: i64,
    uid: &str,
    mut members: Vec<SeriesMember>,
) -> rusqlite::Result<Vec<(i64, Option<Schedule>)>> {
    let detached = find_overrides(conn, collection, uid)?;
    // Where none has changed, one is gone: the master has its occurrence again.
    let alone = !members.is_empty() && members.iter().all(|member| member.recurrence_id.is_empty());
    if detached.is_empty() && alone {
        let alone = |member: SeriesMember| {
            (
                member.item,
                member.parsed_schedule.and_then(|timing| timing.into_standalone_schedule()),
            )
        };
        return Ok(members.into_iter().map(alone).collect());
    }
    let master = find_master(conn, collection, uid)?.map(|item| (item, String::new()));
    let known: HashSet<i64> = members.iter().map(|member| member.item).collect();
    for (item, recurrence) in master.into_iter().chain(detached) {
        if !known.contains(&item) {
            members.push(read_member(conn, derivers, item, recurrence)?);
        }
    }
    members.sort_by_key(|member| member.item);
    let concerned = members.iter().filter(|member| {
        member.is_changed
            || member.recurrence_id.is_empty()
            || is_this_and_future(member.parsed_schedule.as_deref())
    });
    let (overrides, followed) = collect_overrides(&members);
    let master = members.iter().find(|member| member.recurrence_id.is_empty());
    let clocks = master.map_or_else(Vec::new, |master| collect_zone_names(master, &members));
    let times = |member: &SeriesMember| match master {
        Some(master) if member.recurrence_id.is_empty() || followed.contains(&member.item) => {
            member_schedule(member, master, &overrides, &clocks)
        }
        _ => member.parsed_schedule.as_ref().and_then(|timing| timing.standalone_schedule()),
    };
    Ok(concerned.map(|member| (member.item, times(member))).collect())
}

/// What the item in this row is in time; `None`: nothing.
pub(crate) fn compute_schedule(
    conn: &Connection,
    derivers: &mut ExtractorCache<'_>,
    item: i64,
) -> rusqlite::Result<Option<Schedule>> {
    let Some(stored) = derivers.read_item(conn, item)? else { return Ok(None) };
    if stored.context.kind.collection_type() != CollectionType::Calendar {
        return Ok(None);
    }
    let timing = parse_item_schedule(derivers, &stored);
    let is_master = stored.context.recurrence_id.is_empty();
    if !is_master && !is_this_and_future(timing.as_deref()) {
        return Ok(timing.and_then(|timing| timing.standalone_schedule()));
    }
    if !is_master
        && is_over_future_override_limit(conn, derivers, (stored.collection, &stored.uid), item)?
    {
        return Ok(timing.and_then(|timing| timing.standalone_schedule()));
    }
    let changed = SeriesMember {
        item,
        recurrence_id: stored.context.recurrence_id,
        parsed_schedule: timing,
        is_changed: true,
    };
    let all = compute_schedules(conn, derivers, stored.collection, &stored.uid, vec![changed])?;
    Ok(all.into_iter().find(|(of, _)| *of == item).and_then(|(_, times)| times))
}

/// Do as many stand for their followers before this one that it does not?
fn is_over_future_override_limit(
    conn: &Connection,
    derivers: &mut ExtractorCache<'_>,
    (collection, uid): (i64, &str),
    item: i64,
) -> rusqlite::Result<bool> {
    let mut following = 0;
    for (before, recurrence) in find_overrides(conn, collection, uid)? {
        if before >= item || following >= MAX_FUTURE_OVERRIDES {
            break;
        }
        let member = read_member(conn, derivers, before, recurrence)?;
        following += usize::from(is_this_and_future(member.parsed_schedule.as_deref()));
    }
    Ok(following >= MAX_FUTURE_OVERRIDES)
}

fn read_member(
    conn: &Connection,
    derivers: &mut ExtractorCache<'_>,
    item: i64,
    recurrence: String,
) -> rusqlite::Result<SeriesMember> {
    let timing = match derivers.read_item(conn, item)? {
        Some(stored) => parse_item_schedule(derivers, &stored),
        None => None,
    };
    Ok(SeriesMember { item, recurrence_id: recurrence, parsed_schedule: timing, is_changed: false })
}

fn parse_item_schedule(
    derivers: &ExtractorCache<'_>,
    stored: &ItemRecord,
) -> Option<Box<ParsedSchedule>> {
    derivers.base().extract_component_schedule(&stored.bytes, &stored.context)
}

fn is_this_and_future(timing: Option<&ParsedSchedule>) -> bool {
    timing.is_some_and(|timing| timing.is_this_and_future)
}

/// The changes that these make to their series, and which of them stand for their followers, too.
fn collect_overrides(members: &[SeriesMember]) -> (Vec<Override>, Vec<i64>) {
    let (mut overrides, mut followed) = (Vec::new(), Vec::new());
    for member in members.iter().filter(|member| !member.recurrence_id.is_empty()) {
        let Some(timing) = member.parsed_schedule.as_deref() else { continue };
        let is_followed = timing.is_this_and_future && followed.len() < MAX_FUTURE_OVERRIDES;
        followed.extend(is_followed.then_some(member.item));
        overrides.extend(timing.to_override(member.item, is_followed));
    }
    (overrides, followed)
}

/// The names of the zones that went into a series, that of its own clock first.
fn collect_zone_names(master: &SeriesMember, members: &[SeriesMember]) -> Vec<String> {
    let of = |member: &'_ SeriesMember| {
        member.parsed_schedule.as_deref().map_or(&[][..], ParsedSchedule::zone_names).to_vec()
    };
    let mut seen = HashSet::new();
    let all = std::iter::once(master).chain(members).flat_map(of);
    all.filter(|name| seen.insert(name.clone())).collect()
}

fn member_schedule(
    of: &SeriesMember,
    master: &SeriesMember,
    overrides: &[Override],
    clocks: &[String],
) -> Option<Schedule> {
    let timing = of.parsed_schedule.as_deref()?;
    let of_master = master.parsed_schedule.as_deref()?;
    let Some(series) = of_master.series_with_overrides(overrides) else {
        return timing.standalone_schedule();
    };
    let tag = if of.recurrence_id.is_empty() { None } else { Some(of.item) };
    timing.schedule_in_series(series, tag, clocks)
}

/// The detached occurrences of a UID.
pub(crate) fn find_overrides(
    conn: &Connection,
    collection: i64,
    uid: &str,
) -> rusqlite::Result<Vec<(i64, String)>> {
    conn.prepare_cached(
        "SELECT id, recurrence_id FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence_id <> ''
         ORDER BY id",
    )?
    .query_map((collection, uid), |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Has a UID a detached occurrence?
pub(crate) fn has_overrides(
    conn: &Connection,
    collection: i64,
    uid: &str,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence_id <> '')";
    conn.prepare_cached(sql)?.query_row((collection, uid), |row| row.get(0))
}

fn find_master(conn: &Connection, collection: i64, uid: &str) -> rusqlite::Result<Option<i64>> {
    let key = conn
        .prepare_cached("SELECT handle_key FROM collection WHERE id = ?1")?
        .query_row([collection], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(None) };
    uid_lookup::find_row(conn, &CollectionKey { id: collection, handle_key: key }, uid, "")
}
