//! Items in an indexed order: the rows of a sorted collection, and the rank of a bound in it.
//!
//! Separate from `execution` because cursors read the same order without a search.

use crate::collector::resolve_start_bound;
use crate::error::Error;
use crate::result_set::{Hit, ResultSet};
use crate::search_request::{SearchRequest, SortSpec};
use crate::sort_bound::{ScanStart, SortBound};
use larder_store::{IndexedOrder, ItemRow, Reader, SortPosition};

/// The maximum number of positions read in one transaction.
pub(crate) const MAX_POSITIONS_PER_TX: usize = 1 << 16;
/// The order of a result that was read from the index, in words.
pub(crate) const INDEXED_ORDER: &str = "order of the index";
/// The maximum number of times that an order is read while other processes change it; the last time
/// within one read transaction.
const MAX_SORTED_READ_ATTEMPTS: usize = 3;

/// The rank of a bound in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortRank {
    /// The number of items before the bound, in the direction of the order.
    pub(crate) before: u64,
    /// The number of all items.
    pub(crate) total: u64,
}

/// Collects all items in the order of the index, without reading any item. Returns false if the
/// index does not have the order.
pub(crate) fn collect_sorted(
    reader: &Reader,
    request: &SearchRequest,
    result: &mut ResultSet,
) -> Result<bool, Error> {
    let Some(sort) = request.sort else { return Ok(false) };
    let order = indexed_order(reader, sort, result)?;
    let bound = resolve_start_bound(reader, request);
    let Some(rank) = rank_of_bound(reader, &order, &bound)? else { return Ok(false) };
    let first = match bound.scan_start(sort.direction()) {
        ScanStart::Unbounded => None,
        ScanStart::After(position) => Some(position),
        ScanStart::Exhausted => return Ok(true),
    };
    let limit = request.limit.unwrap_or(usize::MAX);
    // An item that moves in the order between two pages would be listed twice or not at all, so
    // everything is read again if the store has changed. The last attempt holds a read transaction:
    // constant writes cannot delay the result for ever.
    for attempt in 1..=MAX_SORTED_READ_ATTEMPTS {
        let is_last = attempt == MAX_SORTED_READ_ATTEMPTS;
        let _transaction = if is_last { Some(reader.begin_read()?) } else { None };
        let (version, mut last) = (reader.data_version()?, first.clone());
        result.hits.clear();
        while result.hits.len() < limit {
            let wanted = MAX_POSITIONS_PER_TX.min(limit - result.hits.len());
            // Every item matches, so no hit depends on the version of its item.
            let hits = &mut result.hits;
            let mut push = |row| hits.push(Hit { row, seq: 0 });
            let Some(page) = scan_page(reader, &order, last.as_ref(), wanted, &mut push)? else {
                result.hits.clear();
                return Ok(false);
            };
            if page.count < wanted {
                break;
            }
            last = page.last;
        }
        if reader.data_version()? == version {
            break;
        }
    }
    result.explain.rows_read = result.hits.len() as u64;
    result.explain.matched = rank.total.saturating_sub(rank.before);
    result.explain.plan = vec![format!("index: all by {}", sort.field.name)];
    result.explain.order = INDEXED_ORDER.into();
    Ok(true)
}

/// A page of an order.
pub(crate) struct PositionPage {
    /// The number of positions.
    pub(crate) count: usize,
    /// The last position.
    pub(crate) last: Option<SortPosition>,
}

/// Passes the rows of at most `limit` items after a position to `visit`, in one read transaction;
/// `None` if the index does not have the order.
pub(crate) fn scan_page(
    reader: &Reader,
    order: &IndexedOrder,
    after: Option<&SortPosition>,
    limit: usize,
    visit: &mut dyn FnMut(ItemRow),
) -> Result<Option<PositionPage>, Error> {
    let (mut count, mut last) = (0, SortPosition { key: Vec::new(), row: 0 });
    let is_indexed = reader.index().for_each_position(order, after, &mut |key, row| {
        if count < limit {
            count += 1;
            visit(row);
            last.key.clear();
            last.key.extend_from_slice(key);
            last.row = row.to_number();
        }
        count < limit
    })?;
    Ok(is_indexed.then(|| PositionPage { count, last: (count > 0).then_some(last) }))
}

/// Returns the order of the items in the collections of a result set. The index need not have it.
pub(crate) fn indexed_order(
    reader: &Reader,
    sort: SortSpec,
    result: &ResultSet,
) -> Result<IndexedOrder, Error> {
    let collections = result.collection_rows(reader)?;
    Ok(IndexedOrder { field: sort.field.id, collections, backwards: sort.descending })
}

/// Returns the rank of a bound; `None` if the index does not have the order.
pub(crate) fn rank_of_bound(
    reader: &Reader,
    order: &IndexedOrder,
    bound: &SortBound,
) -> Result<Option<SortRank>, Error> {
    let least = SortPosition { key: Vec::new(), row: 0 };
    let position = if let SortBound::Before(position) = bound { position } else { &least };
    let Some((smaller, total)) = reader.index().rank(order, position)? else { return Ok(None) };
    let smaller = if *bound == SortBound::End { total } else { smaller };
    let before = if order.backwards { total.saturating_sub(smaller) } else { smaller };
    Ok(Some(SortRank { before, total }))
}
