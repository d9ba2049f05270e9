//! Collects the hits of a search with their sort keys, and sorts them at the end.
//!
//! Separate from `verification`, which decides which items are hits, because every plan collects in
//! the same way.

use crate::result_set::Hit;
use crate::search_request::{SearchRequest, SortSpec};
use crate::sort_bound::{ScanDirection, SortBound};
use larder_format::field::Field;
use larder_store::{ItemRow, Reader};
use std::collections::BTreeSet;

/// The hits of a search so far.
pub(crate) struct HitCollector<'a> {
    reader: &'a Reader,
    pub(crate) sort: Option<SortSpec>,
    pub(crate) limit: usize,
    /// The position in the order where the result set begins.
    start_bound: SortBound,
    /// Hits of a search without an order, or that come in it.
    pub(crate) unsorted: Vec<Hit>,
    /// Hits of a search with an order, and their sort keys.
    keyed: Vec<(Vec<u8>, Hit)>,
}

impl<'a> HitCollector<'a> {
    pub(crate) fn new(reader: &'a Reader, request: &SearchRequest) -> HitCollector<'a> {
        HitCollector {
            reader,
            sort: request.sort,
            limit: request.limit.unwrap_or(usize::MAX),
            start_bound: resolve_start_bound(reader, request),
            unsorted: Vec::new(),
            keyed: Vec::new(),
        }
    }

    /// A collector of hits that come in the order of the result.
    pub(crate) fn in_scan_order(reader: &'a Reader, limit: usize) -> HitCollector<'a> {
        HitCollector {
            reader,
            sort: None,
            limit,
            start_bound: SortBound::Start,
            unsorted: Vec::new(),
            keyed: Vec::new(),
        }
    }

    /// Returns the number of further hits to collect. With an order it is unlimited, because any
    /// hit may be among the first.
    pub(crate) fn remaining_count(&self) -> usize {
        match self.sort {
            Some(_) => usize::MAX,
            None => self.limit.saturating_sub(self.unsorted.len()),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.remaining_count() == 0
    }

    /// Adds a hit. `first_value` reads the first value of a field of the item.
    pub(crate) fn add(
        &mut self,
        hit: Hit,
        first_value: impl FnOnce(&'static Field) -> Option<String>,
    ) {
        let Some(sort) = self.sort else {
            self.unsorted.push(hit);
            return;
        };
        let key = if sort.is_by_start() {
            start_sort_key(self.read_start(hit.row))
        } else {
            let value = first_value(sort.field).unwrap_or_default();
            self.reader.extractor().sort_key(&value)
        };
        if !self.start_bound.has_passed(&key, hit.row.to_number(), sort.direction()) {
            self.keyed.push((key, hit));
        }
    }

    fn read_start(&self, row: ItemRow) -> Option<i64> {
        let mut start = None;
        // An error of the store is ignored here: the next read of the search reports it.
        let _read = self.reader.items().for_each_schedule(&[row], &mut |_, schedule| {
            start = schedule.start_seconds();
            true
        });
        start
    }

    /// Returns the order in words, for [`Explanation`](crate::Explanation).
    pub(crate) fn order_description(&self) -> String {
        match self.sort {
            None => "insertion order".into(),
            Some(sort) => format!("sort keys of {}, computed for each match", sort.field.name),
        }
    }

    /// Removes the hits in these rows.
    pub(crate) fn remove_rows(&mut self, rows: &BTreeSet<ItemRow>) {
        self.unsorted.retain(|hit| !rows.contains(&hit.row));
        self.keyed.retain(|(_, hit)| !rows.contains(&hit.row));
    }

    pub(crate) fn into_sorted_hits(mut self) -> Vec<Hit> {
        let is_descending = self.sort.is_some_and(|sort| sort.descending);
        self.keyed.sort_unstable_by(|(a, x), (b, y)| {
            let order = a.cmp(b).then(x.row.cmp(&y.row));
            if is_descending { order.reverse() } else { order }
        });
        self.unsorted.extend(self.keyed.into_iter().map(|(_, hit)| hit));
        self.unsorted
    }
}

/// Returns a start time as a key whose bytes sort by time; items without a start come last.
pub(crate) fn start_sort_key(start: Option<i64>) -> Vec<u8> {
    let biased = start.map_or(u64::MAX, |start| start.wrapping_sub(i64::MIN) as u64);
    biased.to_be_bytes().to_vec()
}

/// Returns the bound in its order at which the result set of a request begins.
pub(crate) fn resolve_start_bound(reader: &Reader, request: &SearchRequest) -> SortBound {
    let direction = request.sort.map_or(ScanDirection::Ascending, SortSpec::direction);
    match &request.start_text {
        Some(text) => SortBound::from_text(reader.extractor(), text, direction),
        None => SortBound::before_all(direction),
    }
}
