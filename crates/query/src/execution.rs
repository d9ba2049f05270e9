//! Answers a request from the indexes if possible, otherwise by testing candidates.
//!
//! [`find`] plans and runs a query; [`full_scan`] tests every item and is the reference that each
//! plan must equal. The test of a candidate is in `verification`, the result in `result_set`.

use crate::collector::{HitCollector, start_sort_key};
use crate::error::Error;
use crate::plan::Plan;
use crate::query::Query;
use crate::result_set::{Hit, Prefetch, ResultSet};
use crate::search_request::SearchRequest;
use crate::sorted_scan::{INDEXED_ORDER, collect_sorted};
use crate::time_test::{TimeTest, describe_time_range};
use crate::top_k::find_top_k;
use crate::verification::{CandidateScan, scan_items, verify_pending};
use larder_store::{
    CollectionRow, CollectionType, IndexConfig, IndexMatches, ItemRow, ReadTransaction, Reader,
    TimeRange,
};
use std::sync::Arc;

/// The maximum number of rows listed in one transaction, without their items.
const MAX_ROWS_PER_TX: usize = 4096;

/// Finds the items that match a query, by a plan for the indexes.
///
/// # Errors
/// An unknown collection, [`Error::StepLimit`], or an error of the store.
pub fn find(reader: &Reader, request: &SearchRequest) -> Result<ResultSet, Error> {
    let transaction = reader.begin_read()?;
    let mut result = ResultSet::new(reader, request)?;
    if request.query == Query::All {
        drop(transaction);
        collect_all_items(reader, request, &mut result)?;
    } else if !collect_by_time_range(reader, request, &mut result)? {
        collect_by_plan(reader, transaction, request, &mut result)?;
    }
    result.steps.check()?;
    result.apply_limit(request.limit);
    Ok(result)
}

/// Finds the items that match a query by testing every item. [`find`] must give the same result.
///
/// # Errors
/// As [`find`].
pub fn full_scan(reader: &Reader, request: &SearchRequest) -> Result<ResultSet, Error> {
    let mut result = ResultSet::new(reader, request)?;
    result.matcher = result.matcher.without_indexes();
    let mut hits = HitCollector::new(reader, request);
    scan_items(reader, None, &mut result, &mut hits)?;
    result.steps.check()?;
    result.hits = hits.into_sorted_hits();
    result.apply_limit(request.limit);
    Ok(result)
}

/// Collects all items, in the indexed order if the index has it.
fn collect_all_items(
    reader: &Reader,
    request: &SearchRequest,
    result: &mut ResultSet,
) -> Result<(), Error> {
    if request.sort.is_none() {
        return list_all_rows(reader, result, request.limit.unwrap_or(usize::MAX));
    }
    if collect_sorted(reader, request, result)? {
        return Ok(());
    }
    collect_by_plan(reader, reader.begin_read()?, request, result)
}

fn collect_by_plan(
    reader: &Reader,
    transaction: ReadTransaction<'_>,
    request: &SearchRequest,
    result: &mut ResultSet,
) -> Result<(), Error> {
    let mut hits = HitCollector::new(reader, request);
    if let Some(first) = collect_candidates(reader, transaction, request, result, &mut hits)? {
        result.explain.order = INDEXED_ORDER.into();
        result.hits = first;
        return Ok(());
    }
    result.explain.order = hits.order_description();
    result.hits = hits.into_sorted_hits();
    Ok(())
}

/// Lists the rows of all items, without reading any. Every item matches, so no hit depends on the
/// version of its item.
fn list_all_rows(reader: &Reader, result: &mut ResultSet, limit: usize) -> Result<(), Error> {
    let collections = result.collection_rows(reader)?;
    for &collection in &collections {
        let (mut after, mut remaining) = (None, limit);
        loop {
            let page =
                reader.items().list_rows(collection, after, MAX_ROWS_PER_TX.min(remaining))?;
            result.hits.extend(page.iter().map(|row| Hit { row: *row, seq: 0 }));
            remaining -= page.len();
            match page.last() {
                Some(last) => after = Some(*last),
                None => break,
            }
        }
    }
    if collections.len() > 1 {
        result.hits.sort_unstable_by_key(|hit| hit.row);
    }
    result.explain.rows_read = result.hits.len() as u64;
    result.explain.plan = vec!["index: all items".into()];
    result.explain.order = "insertion order".into();
    Ok(())
}

/// Answers a query that consists of a single time range from the interval index, without reading an
/// item. Returns false for any other query, or if the index cannot answer it. The caller holds a
/// read transaction.
fn collect_by_time_range(
    reader: &Reader,
    request: &SearchRequest,
    result: &mut ResultSet,
) -> Result<bool, Error> {
    let Query::Time(TimeTest::InRange(time_range)) = &request.query else { return Ok(false) };
    if request.sort.is_some_and(|sort| !sort.is_by_start()) {
        return Ok(false);
    }
    let Some(mut rows) = search_interval_index(reader, time_range, result)? else {
        return Ok(false);
    };
    if let Some(sort) = request.sort {
        let mut keyed: Vec<(Vec<u8>, ItemRow)> = Vec::with_capacity(rows.len());
        reader.items().for_each_schedule(&rows, &mut |row, schedule| {
            keyed.push((start_sort_key(schedule.start_seconds()), row));
            true
        })?;
        keyed.sort_unstable();
        rows = keyed.into_iter().map(|(_, row)| row).collect();
        if sort.descending {
            rows.reverse();
        }
    }
    result.found_at = Some(reader.data_version()?);
    result.hits.extend(rows.into_iter().map(|row| Hit { row, seq: 0 }));
    let order = if request.sort.is_some() { "by start" } else { "insertion order" };
    result.explain.order = order.into();
    Ok(true)
}

fn search_interval_index(
    reader: &Reader,
    time_range: &TimeRange,
    result: &mut ResultSet,
) -> Result<Option<Vec<ItemRow>>, Error> {
    let collections = result.collection_rows(reader)?;
    let Some(matches) = reader.index().find_in_time_range(&collections, time_range)? else {
        return Ok(None);
    };
    result.explain.rows_read += matches.postings_read;
    result.explain.verified += matches.series_evaluated;
    result.explain.plan.push(format!("index: {}", describe_time_range(time_range)));
    if !matches.undecided.is_empty() {
        let number = matches.undecided.len();
        result.explain.plan.push(format!("{number} items undecided: recurrence budget exceeded"));
        result.undecided_rows = matches.undecided;
    }
    Ok(Some(matches.items))
}

/// Collections with the same index configuration.
struct CollectionGroup {
    index_config: Arc<IndexConfig>,
    collections: Vec<CollectionRow>,
}

/// Collects the hits of a query, by one plan for each index configuration. An index configuration
/// describes an index only within one read transaction; the caller passes that transaction in.
/// Returns the first hits instead if the order was scanned for them.
fn collect_candidates(
    reader: &Reader,
    transaction: ReadTransaction<'_>,
    request: &SearchRequest,
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<Option<Vec<Hit>>, Error> {
    let groups = group_by_index_config(reader, result)?;
    let is_single_group = groups.len() == 1;
    if !is_single_group {
        // The first hits in the order of rows are known once all groups are searched.
        hits.limit = usize::MAX;
    } else if request.prefetch {
        result.prefetch = Prefetch::new(reader.data_version()?);
    }
    let (mut pending, mut scanned) = (Vec::new(), None);
    for CollectionGroup { index_config, collections } in groups {
        let plan = Plan::new(&request.query, &index_config);
        let matches = match &plan {
            Plan::Index { lookup, .. } => reader.index().look_up(lookup, &collections)?,
            Plan::Nothing => Some(IndexMatches::default()),
            Plan::Scan(_) => None,
        };
        let Some(matches) = matches else {
            let kind = request.query.required_kind();
            result.explain.plan.push(Plan::Scan(kind).describe());
            scanned.get_or_insert_with(Vec::new).extend(collections);
            continue;
        };
        result.explain.plan.push(plan.describe());
        let is_exact = matches!(plan, Plan::Index { exact: true, .. });
        if is_single_group
            && let Some(first) = find_top_k(reader, request, &matches, is_exact, result)?
        {
            return Ok(Some(first));
        }
        // An order needs values of the item.
        let is_exact = is_exact && hits.sort.is_none();
        let collections = if is_single_group { None } else { Some(collections.as_slice()) };
        let scan = CandidateScan { reader, result, hits, collections, is_exact, bytes_read: 0 };
        pending.extend(scan.run(&matches)?);
    }
    drop(transaction);
    verify_pending(reader, &pending, result, hits)?;
    if let Some(collections) = scanned {
        let only = if is_single_group { None } else { Some(collections.as_slice()) };
        scan_items(reader, only, result, hits)?;
    }
    hits.unsorted.sort_unstable_by_key(|hit| hit.row);
    Ok(None)
}

/// Groups the collections of a result set by index configuration: usually into one group, and at
/// least into one.
fn group_by_index_config(
    reader: &Reader,
    result: &ResultSet,
) -> Result<Vec<CollectionGroup>, Error> {
    let mut groups: Vec<CollectionGroup> = Vec::new();
    if result.query != Query::All {
        for (row, index_config) in reader.collections().list_index_configs()? {
            let has_config = |group: &&mut CollectionGroup| {
                Arc::ptr_eq(&group.index_config, &index_config)
                    || group.index_config == index_config
            };
            match groups.iter_mut().find(has_config) {
                _ if !result.is_about_collection(row) => {}
                Some(group) => group.collections.push(row),
                None => groups.push(CollectionGroup { index_config, collections: vec![row] }),
            }
        }
    }
    if groups.is_empty() {
        // There is no collection, or every item matches: the configuration does not matter.
        let index_config = IndexConfig::shared_default(CollectionType::default());
        groups.push(CollectionGroup { index_config, collections: Vec::new() });
    }
    Ok(groups)
}
