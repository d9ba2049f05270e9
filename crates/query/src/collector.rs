//! What matched, on its way to an answer: gathered with what it is sorted by, and put into its
//! order at the end.
//!
//! It does not know why something matched: that is found in `run`. It is apart because all ways to
//! an answer gather alike.

use crate::execution::{SearchRequest, SortSpec};
use crate::result_set::Hit;
use crate::sort_bound::SortBound;
use larder_format::field::{Field, find_calendar_field};
use larder_store::Reader;

/// What matched so far, with what it is sorted by.
pub(crate) struct HitCollector<'a> {
    reader: &'a Reader,
    pub(crate) sort: Option<SortSpec>,
    pub(crate) limit: usize,
    /// Where in the order the answer begins.
    start_bound: SortBound,
    pub(crate) rows: Vec<Hit>,
    keyed: Vec<(Vec<u8>, Hit)>,
}

impl<'a> HitCollector<'a> {
    pub(crate) fn new(reader: &'a Reader, find: &SearchRequest) -> HitCollector<'a> {
        let start_bound =
            resolve_start_bound(reader, find, find.sort.is_some_and(|sort| sort.descending));
        let limit = find.limit.unwrap_or(usize::MAX);
        HitCollector {
            reader,
            sort: find.sort,
            limit,
            start_bound,
            rows: Vec::new(),
            keyed: Vec::new(),
        }
    }

    /// How many more there may be. Where an order is wanted, any may be among its first.
    pub(crate) fn remaining(&self) -> usize {
        if self.sort.is_some() { usize::MAX } else { self.limit.saturating_sub(self.rows.len()) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.remaining() == 0
    }

    pub(crate) fn add(&mut self, hit: Hit, first: impl FnOnce(&'static Field) -> Option<String>) {
        match self.sort {
            None => self.rows.push(hit),
            Some(sort) => {
                let key = match is_start_field(sort.field) {
                    true => start_key(self.start_of_row(hit.row)),
                    false => {
                        let value = first(sort.field).unwrap_or_default();
                        self.reader.extractor().sort_key(&value)
                    }
                };
                if !self.start_bound.has_passed(&key, hit.row, sort.descending) {
                    self.keyed.push((key, hit));
                }
            }
        }
    }

    /// When the item in this row begins.
    fn start_of_row(&self, row: i64) -> Option<i64> {
        let mut start = None;
        // Where the store cannot be read, what comes next says so.
        let _read = self.reader.for_each_schedule(&[row], &mut |_, times| {
            start = times.start_seconds();
            true
        });
        start
    }

    pub(crate) fn order_description(&self) -> String {
        match self.sort {
            None => "as they came".into(),
            Some(sort) => format!("sort keys of {} made for each match", sort.field.name),
        }
    }

    pub(crate) fn into_rows(mut self) -> Vec<Hit> {
        let descending = self.sort.is_some_and(|sort| sort.descending);
        self.keyed.sort_unstable_by(|(a, x), (b, y)| {
            let order = a.cmp(b).then(x.row.cmp(&y.row));
            if descending { order.reverse() } else { order }
        });
        self.rows.extend(self.keyed.into_iter().map(|(_, hit)| hit));
        self.rows
    }
}

/// The order by when things begin is that of time, not of text.
pub(crate) fn is_start_field(field: &Field) -> bool {
    find_calendar_field("start").is_some_and(|start| start.id == field.id)
}

/// A start as a key whose bytes are in the order of time; what has none comes last.
pub(crate) fn start_key(start: Option<i64>) -> Vec<u8> {
    let biased = start.map_or(u64::MAX, |start| start.wrapping_sub(i64::MIN) as u64);
    biased.to_be_bytes().to_vec()
}

/// Where in its order an answer begins.
pub(crate) fn resolve_start_bound(
    reader: &Reader,
    find: &SearchRequest,
    backwards: bool,
) -> SortBound {
    let at = |text: &String| SortBound::from_text(reader.extractor(), text, backwards);
    find.start_text.as_ref().map_or(SortBound::start(backwards), at)
}
