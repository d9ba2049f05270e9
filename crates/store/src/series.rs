//! Series: what the items of one UID are in time, together.
//!
//! A detached occurrence is an item of its own, but takes a place in its series away; one that stands for all that follow
//! (RANGE=THISANDFUTURE) even has most of its occurrences from there. So whatever of a UID changes, the others are looked at
//! again, within the same batch. What one item says by itself is found in `event`; where it is written, in `span`.

use crate::deriver::{Derivers, Stored};
use crate::event::Timing;
use crate::identity::{self, Of};
use crate::times::Times;
use crate::{Family, Kind};
use larder_time::series::Override;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashSet;

/// Of the occurrences of a series that stand for all that follow, more than this stand for themselves only.
const MOST_FOLLOWING: usize = 64;

/// Where an item belongs.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub(crate) is_of_calendar: bool,
    pub(crate) collection: i64,
    pub(crate) uid: String,
    pub(crate) recurrence: String,
    /// It was not there before the batch.
    pub(crate) is_new: bool,
}

impl Whose {
    /// Of an item that is new.
    pub(crate) fn new(kind: Kind, collection: i64, uid: &str, recurrence: &str) -> Whose {
        let is_of_calendar = kind.family() == Family::Calendar;
        let (uid, recurrence) = (uid.into(), recurrence.into());
        Whose { is_of_calendar, collection, uid, recurrence, is_new: true }
    }
}

/// An item of a UID, with what it says of time by itself.
pub(crate) struct Member {
    pub(crate) item: i64,
    /// Empty: it is the master.
    pub(crate) recurrence: String,
    pub(crate) timing: Option<Box<Timing>>,
    pub(crate) changed: bool,
}

/// What the items of a UID are in time, of which these have changed: they, and those that depend on them.
pub(crate) fn of_changed(
    conn: &Connection,
    derivers: &mut Derivers<'_>,
    collection: i64,
    uid: &str,
    mut members: Vec<Member>,
) -> rusqlite::Result<Vec<(i64, Option<Times>)>> {
    let detached = detached(conn, collection, uid)?;
    // Where none has changed, one is gone: the master has its occurrence again.
    let alone = !members.is_empty() && members.iter().all(|member| member.recurrence.is_empty());
    if detached.is_empty() && alone {
        let alone =
            |member: Member| (member.item, member.timing.and_then(|timing| timing.into_alone()));
        return Ok(members.into_iter().map(alone).collect());
    }
    let master = master(conn, collection, uid)?.map(|item| (item, String::new()));
    let known: HashSet<i64> = members.iter().map(|member| member.item).collect();
    for (item, recurrence) in master.into_iter().chain(detached) {
        if !known.contains(&item) {
            members.push(member(conn, derivers, item, recurrence)?);
        }
    }
    members.sort_by_key(|member| member.item);
    let concerned = members.iter().filter(|member| {
        member.changed || member.recurrence.is_empty() || follows(member.timing.as_deref())
    });
    let (overrides, followed) = overrides(&members);
    let master = members.iter().find(|member| member.recurrence.is_empty());
    let clocks = master.map_or_else(Vec::new, |master| clocks(master, &members));
    let times = |member: &Member| match master {
        Some(master) if member.recurrence.is_empty() || followed.contains(&member.item) => {
            times(member, master, &overrides, &clocks)
        }
        _ => member.timing.as_ref().and_then(|timing| timing.alone()),
    };
    Ok(concerned.map(|member| (member.item, times(member))).collect())
}

/// What the item in this row is in time; `None`: nothing.
pub(crate) fn of_item(
    conn: &Connection,
    derivers: &mut Derivers<'_>,
    item: i64,
) -> rusqlite::Result<Option<Times>> {
    let Some(stored) = derivers.read(conn, item)? else { return Ok(None) };
    if stored.place.kind.family() != Family::Calendar {
        return Ok(None);
    }
    let timing = timing(derivers, &stored);
    let is_master = stored.place.recurrence.is_empty();
    if !is_master && !follows(timing.as_deref()) {
        return Ok(timing.and_then(|timing| timing.alone()));
    }
    if !is_master && stands_alone(conn, derivers, (stored.collection, &stored.uid), item)? {
        return Ok(timing.and_then(|timing| timing.alone()));
    }
    let changed = Member { item, recurrence: stored.place.recurrence, timing, changed: true };
    let all = of_changed(conn, derivers, stored.collection, &stored.uid, vec![changed])?;
    Ok(all.into_iter().find(|(of, _)| *of == item).and_then(|(_, times)| times))
}

/// Do as many stand for their followers before this one that it does not?
fn stands_alone(
    conn: &Connection,
    derivers: &mut Derivers<'_>,
    (collection, uid): (i64, &str),
    item: i64,
) -> rusqlite::Result<bool> {
    let mut following = 0;
    for (before, recurrence) in detached(conn, collection, uid)? {
        if before >= item || following >= MOST_FOLLOWING {
            break;
        }
        let member = member(conn, derivers, before, recurrence)?;
        following += usize::from(follows(member.timing.as_deref()));
    }
    Ok(following >= MOST_FOLLOWING)
}

fn member(
    conn: &Connection,
    derivers: &mut Derivers<'_>,
    item: i64,
    recurrence: String,
) -> rusqlite::Result<Member> {
    let timing = match derivers.read(conn, item)? {
        Some(stored) => timing(derivers, &stored),
        None => None,
    };
    Ok(Member { item, recurrence, timing, changed: false })
}

fn timing(derivers: &Derivers<'_>, stored: &Stored) -> Option<Box<Timing>> {
    derivers.base().component_timing(&stored.bytes, &stored.place)
}

fn follows(timing: Option<&Timing>) -> bool {
    timing.is_some_and(|timing| timing.following)
}

/// The changes that these make to their series, and which of them stand for their followers, too.
fn overrides(members: &[Member]) -> (Vec<Override>, Vec<i64>) {
    let (mut overrides, mut followed) = (Vec::new(), Vec::new());
    for member in members.iter().filter(|member| !member.recurrence.is_empty()) {
        let Some(timing) = member.timing.as_deref() else { continue };
        let is_followed = timing.following && followed.len() < MOST_FOLLOWING;
        followed.extend(is_followed.then_some(member.item));
        overrides.extend(timing.as_override(member.item, is_followed));
    }
    (overrides, followed)
}

/// The names of the zones that went into a series, that of its own clock first.
fn clocks(master: &Member, members: &[Member]) -> Vec<String> {
    let of = |member: &'_ Member| member.timing.as_deref().map_or(&[][..], Timing::clocks).to_vec();
    let mut seen = HashSet::new();
    let all = std::iter::once(master).chain(members).flat_map(of);
    all.filter(|name| seen.insert(name.clone())).collect()
}

fn times(of: &Member, master: &Member, overrides: &[Override], clocks: &[String]) -> Option<Times> {
    let timing = of.timing.as_deref()?;
    let of_master = master.timing.as_deref()?;
    let Some(series) = of_master.with(overrides) else { return timing.alone() };
    let tag = if of.recurrence.is_empty() { None } else { Some(of.item) };
    timing.of_series(series, tag, clocks)
}

/// The detached occurrences of a UID.
pub(crate) fn detached(
    conn: &Connection,
    collection: i64,
    uid: &str,
) -> rusqlite::Result<Vec<(i64, String)>> {
    conn.prepare_cached(
        "SELECT id, recurrence FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence <> ''
         ORDER BY id",
    )?
    .query_map((collection, uid), |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Has a UID a detached occurrence?
pub(crate) fn has_detached(
    conn: &Connection,
    collection: i64,
    uid: &str,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence <> '')";
    conn.prepare_cached(sql)?.query_row((collection, uid), |row| row.get(0))
}

fn master(conn: &Connection, collection: i64, uid: &str) -> rusqlite::Result<Option<i64>> {
    let key = conn
        .prepare_cached("SELECT key FROM collection WHERE id = ?1")?
        .query_row([collection], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(None) };
    identity::row(conn, &Of { id: collection, key }, uid, "")
}
