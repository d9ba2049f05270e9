//! Series: reads the items of one UID and combines their schedules.
//!
//! An override is an item of its own, but replaces an occurrence of its series. So whenever an item
//! of a UID changes, the others are read again, within the same batch. `larder-extract` combines
//! the schedules; the interval index stores them.

use crate::extractor_cache::{ExtractorCache, ItemRecord};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::uid_lookup::{self, CollectionKey};
use larder_extract::{ParsedSchedule, Schedule, SeriesMember, combine_schedules};
use larder_format::kind::Kind;
use rusqlite::OptionalExtension as _;
use std::collections::HashSet;

/// The collection, UID and recurrence-id of an item.
#[derive(Debug, Clone)]
pub(crate) struct ItemLocation {
    /// Items of the collection can have schedules.
    pub(crate) is_in_calendar: bool,
    pub(crate) collection: CollectionRow,
    pub(crate) uid: String,
    pub(crate) recurrence_id: String,
    /// The item was added by this batch.
    pub(crate) is_new: bool,
}

impl ItemLocation {
    /// Returns the location of an item that a batch adds.
    pub(crate) fn new(
        kind: Kind,
        collection: CollectionRow,
        uid: &str,
        recurrence_id: &str,
    ) -> ItemLocation {
        let is_in_calendar = kind.collection_type().has_schedules();
        let (uid, recurrence_id) = (uid.into(), recurrence_id.into());
        ItemLocation { is_in_calendar, collection, uid, recurrence_id, is_new: true }
    }
}

/// Returns the schedules of `members`, which are the changed items of a UID, and of the items that
/// depend on them.
pub(crate) fn compute_schedules(
    tx: &ReadTransaction<'_>,
    extractors: &mut ExtractorCache<'_>,
    collection: CollectionRow,
    uid: &str,
    mut members: Vec<SeriesMember>,
) -> rusqlite::Result<Vec<(ItemRow, Option<Schedule>)>> {
    let overrides = find_overrides(tx, collection, uid)?;
    // If no member has changed, an override was removed, and the master again includes the
    // occurrence.
    let has_only_masters =
        !members.is_empty() && members.iter().all(|member| member.recurrence_id.is_empty());
    if overrides.is_empty() && has_only_masters {
        let standalone = |member: SeriesMember| {
            let schedule = member.parsed_schedule;
            let row = ItemRow::from_number(member.row);
            (row, schedule.and_then(|schedule| schedule.into_standalone_schedule()))
        };
        return Ok(members.into_iter().map(standalone).collect());
    }
    let master = find_master(tx, collection, uid)?.map(|row| (row, String::new()));
    let known: HashSet<ItemRow> =
        members.iter().map(|member| ItemRow::from_number(member.row)).collect();
    for (row, recurrence_id) in master.into_iter().chain(overrides) {
        if !known.contains(&row) {
            members.push(read_member(tx, extractors, row, recurrence_id)?);
        }
    }
    let schedules = combine_schedules(members).into_iter();
    Ok(schedules.map(|(row, schedule)| (ItemRow::from_number(row), schedule)).collect())
}

/// Returns the schedule of the item in this row; `None` if it has none. A master and its overrides
/// of the following occurrences are combined once for all of them, as long as the cache lives.
pub(crate) fn compute_schedule(
    tx: &ReadTransaction<'_>,
    extractors: &mut ExtractorCache<'_>,
    row: ItemRow,
) -> rusqlite::Result<Option<Schedule>> {
    let Some(item) = extractors.read_item(tx, row)? else { return Ok(None) };
    if !item.context.kind.has_schedule() {
        return Ok(None);
    }
    let uid = (item.collection, item.uid.clone());
    if let Some(known) = extractors.combined_schedules().take(&uid, row) {
        return Ok(known);
    }
    let parsed_schedule = extract_schedule(extractors, &item);
    let is_master = item.context.recurrence_id.is_empty();
    let depends_on_series =
        parsed_schedule.as_deref().is_some_and(ParsedSchedule::depends_on_series);
    if !is_master && !depends_on_series {
        return Ok(parsed_schedule.and_then(|schedule| schedule.into_standalone_schedule()));
    }
    let recurrence_id = item.context.recurrence_id;
    let changed =
        SeriesMember { row: row.to_number(), recurrence_id, parsed_schedule, is_changed: true };
    let all = compute_schedules(tx, extractors, item.collection, &item.uid, vec![changed])?;
    let combined = extractors.combined_schedules();
    combined.insert(uid.clone(), all);
    Ok(combined.take(&uid, row).flatten())
}

fn read_member(
    tx: &ReadTransaction<'_>,
    extractors: &mut ExtractorCache<'_>,
    row: ItemRow,
    recurrence_id: String,
) -> rusqlite::Result<SeriesMember> {
    let parsed_schedule = match extractors.read_item(tx, row)? {
        Some(item) => extract_schedule(extractors, &item),
        None => None,
    };
    let row = row.to_number();
    Ok(SeriesMember { row, recurrence_id, parsed_schedule, is_changed: false })
}

fn extract_schedule(
    extractors: &ExtractorCache<'_>,
    item: &ItemRecord,
) -> Option<Box<ParsedSchedule>> {
    extractors.base().extract_schedule(&item.bytes, &item.context)
}

/// Returns the rows and recurrence-ids of the overrides of a UID.
pub(crate) fn find_overrides(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    uid: &str,
) -> rusqlite::Result<Vec<(ItemRow, String)>> {
    tx.prepare_cached(
        "SELECT id, recurrence_id FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence_id <> ''
         ORDER BY id",
    )?
    .query_map((collection, uid), |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Returns whether a UID has an override.
pub(crate) fn has_overrides(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    uid: &str,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence_id <> '')";
    tx.prepare_cached(sql)?.query_row((collection, uid), |row| row.get(0))
}

fn find_master(
    tx: &ReadTransaction<'_>,
    collection: CollectionRow,
    uid: &str,
) -> rusqlite::Result<Option<ItemRow>> {
    let key = tx
        .prepare_cached("SELECT handle_key FROM collection WHERE id = ?1")?
        .query_row([collection], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(None) };
    uid_lookup::find_row(tx, &CollectionKey { id: collection, handle_key: key }, uid, "")
}
