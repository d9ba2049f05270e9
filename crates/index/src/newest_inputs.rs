//! Which input of a merge has changed an item last: the postings of the item in all older inputs
//! are stale.
//!
//! Separate from [`merge_input`](crate::merge_input), which reads one input; this looks at all of
//! them. Each step of a merge builds it again, so building it costs little more than reading the
//! lists of changed items once.

use crate::segment::SegmentReader;
use crate::segment_storage::{ReadSegments, Segment};
use crate::term::CHANGED_ITEMS_TERM;

/// Up to this many changed items of the inputs are held in memory; the changed items of further
/// inputs are read again when they are needed.
const MAX_PRELOADED_ITEMS: usize = 4096;
/// Items are entries of an array if their numbers have up to this many times as many places.
const MAX_PLACES_PER_ITEM: i64 = 4;

/// The newest input that lists an item as changed, for each item that several inputs may list.
pub(crate) struct NewestInputs {
    inputs: InputTable,
    /// Whether some postings of an input are stale, by the place of the input.
    has_stale: Vec<bool>,
}

/// A table from items to the place of an input plus one.
enum InputTable {
    /// An entry for each number from the first item on; 0: no input lists the item.
    Dense(i64, Vec<u32>),
    /// Ascending.
    Sparse(Vec<(i64, u32)>),
}

impl NewestInputs {
    /// Reads the changed items of the inputs, which are in order from the oldest to the newest.
    pub(crate) fn read<P: ReadSegments>(
        pages: &P,
        segments: &[Segment],
    ) -> Result<NewestInputs, P::Error> {
        let changed_items = |segment: &Segment| -> Result<Vec<i64>, P::Error> {
            let mut items = Vec::new();
            SegmentReader::new(pages, segment).read_postings(CHANGED_ITEMS_TERM, &mut items)?;
            Ok(items)
        };
        let (mut lists, mut ranges, mut listed) = (Vec::new(), Vec::new(), 0);
        for segment in segments {
            let items = changed_items(segment)?;
            ranges.push((items.first().copied().zip(items.last().copied()), items.len()));
            listed += items.len();
            lists.push((listed <= MAX_PRELOADED_ITEMS).then_some(items));
        }
        // Most segments have new items only, which no other segment lists as changed.
        let overlapping = overlapping_ranges(&ranges);
        let mut inputs = InputTable::with_range(&ranges, &overlapping);
        let mut has_stale = vec![false; segments.len()];
        for (place, segment) in segments.iter().enumerate() {
            if overlapping.get(place) != Some(&true) {
                continue;
            }
            let items = match lists.get_mut(place).and_then(Option::take) {
                Some(items) => items,
                None => changed_items(segment)?,
            };
            inputs.set_all(&items, place, &mut has_stale);
        }
        inputs.sort(&mut has_stale);
        Ok(NewestInputs { inputs, has_stale })
    }

    /// Returns whether some postings of an input are stale.
    pub(crate) fn has_stale_items(&self, place: usize) -> bool {
        self.has_stale.get(place) == Some(&true)
    }

    /// Returns whether the postings of an item in an input are stale.
    pub(crate) fn is_stale(&self, item: i64, place: usize) -> bool {
        let newest = match &self.inputs {
            InputTable::Dense(first, inputs) => {
                let index = usize::try_from(item.wrapping_sub(*first)).ok();
                index.and_then(|index| inputs.get(index)).copied().unwrap_or(0)
            }
            InputTable::Sparse(inputs) => inputs
                .binary_search_by_key(&item, |(item, _)| *item)
                .ok()
                .and_then(|index| inputs.get(index))
                .map_or(0, |(_, newest)| *newest),
        };
        newest as usize > place + 1
    }
}

/// The first and last changed item of an input, and the number of its changed items.
type ItemRange = (Option<(i64, i64)>, usize);

/// Returns for each range whether it overlaps another one.
fn overlapping_ranges(ranges: &[ItemRange]) -> Vec<bool> {
    let mut order: Vec<(i64, i64, usize)> = ranges
        .iter()
        .enumerate()
        .filter_map(|(place, (range, _))| range.map(|(first, last)| (first, last, place)))
        .collect();
    order.sort_unstable();
    let mut overlapping = vec![false; ranges.len()];
    let mut mark = |place: usize| {
        if let Some(is_overlapping) = overlapping.get_mut(place) {
            *is_overlapping = true;
        }
    };
    let mut widest: Option<(i64, usize)> = None;
    for (first, last, place) in order {
        if let Some((end, owner)) = widest.filter(|(end, _)| *end >= first) {
            mark(place);
            mark(owner);
            if end >= last {
                continue;
            }
        }
        widest = Some((last, place));
    }
    overlapping
}

impl InputTable {
    /// Creates an empty table for the items of the overlapping ranges.
    fn with_range(ranges: &[ItemRange], overlapping: &[bool]) -> InputTable {
        let chosen = || ranges.iter().zip(overlapping).filter(|(_, is_chosen)| **is_chosen);
        let count: usize = chosen().map(|((_, count), _)| count).sum();
        let bounds = || chosen().filter_map(|((range, _), _)| *range);
        let first = bounds().map(|(first, _)| first).min().unwrap_or(0);
        let last = bounds().map(|(_, last)| last).max().unwrap_or(0);
        let places = last.saturating_sub(first).saturating_add(1);
        match usize::try_from(places) {
            Ok(length) if count > 0 && places / MAX_PLACES_PER_ITEM <= count as i64 => {
                InputTable::Dense(first, vec![0; length])
            }
            _ => InputTable::Sparse(Vec::with_capacity(count)),
        }
    }

    /// Enters the changed items of the input at this place, which is newer than those entered.
    fn set_all(&mut self, items: &[i64], place: usize, has_stale: &mut [bool]) {
        let number = place as u32 + 1;
        match self {
            InputTable::Dense(first, inputs) => {
                for item in items {
                    let index = usize::try_from(item.wrapping_sub(*first)).unwrap_or(usize::MAX);
                    if let Some(newest) = inputs.get_mut(index) {
                        set_stale(has_stale, *newest);
                        *newest = number;
                    }
                }
            }
            InputTable::Sparse(inputs) => inputs.extend(items.iter().map(|item| (*item, number))),
        }
    }

    /// Sorts a sparse table, and keeps the newest input of each item.
    fn sort(&mut self, has_stale: &mut [bool]) {
        let InputTable::Sparse(inputs) = self else { return };
        inputs.sort_unstable();
        inputs.dedup_by(|next, kept| {
            let is_same_item = next.0 == kept.0;
            if is_same_item {
                set_stale(has_stale, kept.1);
                kept.1 = next.1;
            }
            is_same_item
        });
    }
}

/// Notes that an input, given by its place plus one, has stale postings; 0 is no input.
fn set_stale(has_stale: &mut [bool], number: u32) {
    let place = (number as usize).checked_sub(1);
    if let Some(has_stale) = place.and_then(|place| has_stale.get_mut(place)) {
        *has_stale = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a table from lists of changed items, the oldest first.
    fn table(lists: &[&[i64]]) -> NewestInputs {
        let ranges: Vec<ItemRange> = lists
            .iter()
            .map(|items| (items.first().copied().zip(items.last().copied()), items.len()))
            .collect();
        let overlapping = overlapping_ranges(&ranges);
        let mut inputs = InputTable::with_range(&ranges, &overlapping);
        let mut has_stale = vec![false; lists.len()];
        for (place, items) in lists.iter().enumerate().filter(|(place, _)| overlapping[*place]) {
            inputs.set_all(items, place, &mut has_stale);
        }
        inputs.sort(&mut has_stale);
        NewestInputs { inputs, has_stale }
    }

    /// Compares the table with a search of all newer lists.
    fn check(lists: &[&[i64]]) {
        let table = table(lists);
        let is_dense = matches!(table.inputs, InputTable::Dense(..));
        for (place, items) in lists.iter().enumerate() {
            let newer = || lists[place + 1..].iter();
            let has_stale = items.iter().any(|item| newer().any(|list| list.contains(item)));
            assert_eq!(table.has_stale_items(place), has_stale, "{place} {is_dense}");
            for item in *items {
                let is_stale = newer().any(|list| list.contains(item));
                assert_eq!(table.is_stale(*item, place), is_stale, "{item} {place} {is_dense}");
            }
        }
    }

    #[test]
    fn the_newest_input_of_each_item_is_known() {
        check(&[]);
        check(&[&[], &[]]);
        check(&[&[1, 2, 3], &[4, 5, 6]]);
        check(&[&[1, 2, 3], &[2], &[], &[2, 3]]);
        check(&[&[1, 1_000_000_000_000], &[5, 6], &[1, 6]]);
        check(&[&[i64::MIN, i64::MAX], &[0, i64::MAX], &[i64::MIN]]);
        check(&[&[1, 9], &[2, 3], &[4, 5], &[10, 11], &[11]]);
        check(&[&[3, 4], &[1, 2], &[1, 8], &[7]]);
    }

    #[test]
    fn dense_items_are_entries_of_an_array() {
        let items: Vec<i64> = (1000..3000).collect();
        let odd: Vec<i64> = (1001..3000).step_by(2).collect();
        assert!(matches!(table(&[&items, &odd]).inputs, InputTable::Dense(1000, _)));
        assert!(matches!(table(&[&[1, 1000], &[1]]).inputs, InputTable::Sparse(_)));
        check(&[&items, &odd, &items[500..700]]);
    }
}
