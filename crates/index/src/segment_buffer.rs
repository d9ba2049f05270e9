//! The terms of a batch: gathered item by item in memory, then sorted and written as one segment
//! (the memtable of a log-structured merge tree).

use crate::merge;
use crate::segment::SegmentWriter;
use crate::segment_storage::{IndexId, WriteSegments};
use crate::term::{CHANGED_ITEMS_TERM, OVERSIZED_ITEMS_TERM, prefix_key};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Writes the term of a number into a buffer, which it clears first.
///
/// The numbers must compare as their terms do, and each of their terms must be greater than any
/// plain term of the same index.
pub type TermDecoder = fn(u64, &mut Vec<u8>);

/// The set of terms of one item.
///
/// Short and frequent terms (the words and trigrams of a text) are encoded by the caller as
/// numbers, which need no allocation and sort fast; they become bytes when a segment is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermSet {
    /// Ascending and distinct, each with its length in two bytes before it.
    plain_terms: Vec<u8>,
    /// In any order, and with repetitions.
    packed_terms: Vec<u64>,
    is_oversized: bool,
}

impl TermSet {
    /// Creates the set from terms of at most 65,535 bytes, and from terms in packed form. An
    /// oversized item is a candidate for every lookup.
    #[must_use]
    pub fn new(mut terms: Vec<Vec<u8>>, mut packed_terms: Vec<u64>, is_oversized: bool) -> TermSet {
        if is_oversized {
            terms.push(OVERSIZED_ITEMS_TERM.to_vec());
        }
        terms.sort_unstable();
        terms.dedup();
        let mut plain_terms = Vec::with_capacity(terms.iter().map(|term| term.len() + 2).sum());
        for term in terms {
            plain_terms.extend((term.len() as u16).to_le_bytes());
            plain_terms.extend(term);
        }
        packed_terms.shrink_to_fit();
        TermSet { plain_terms, packed_terms, is_oversized }
    }

    /// Creates the set from terms that are encoded as the set stores them, without a copy:
    /// ascending and distinct, each with its length in two bytes (little-endian) before it, and
    /// less than [`OVERSIZED_ITEMS_TERM`].
    #[must_use]
    pub fn from_encoded(
        mut plain_terms: Vec<u8>,
        packed_terms: Vec<u64>,
        is_oversized: bool,
    ) -> TermSet {
        if is_oversized {
            plain_terms.extend((OVERSIZED_ITEMS_TERM.len() as u16).to_le_bytes());
            plain_terms.extend(OVERSIZED_ITEMS_TERM);
        }
        TermSet { plain_terms, packed_terms, is_oversized }
    }

    /// Returns whether the item is a candidate for every lookup.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        self.is_oversized
    }

    fn plain_terms(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.plain_terms.as_slice();
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first_chunk::<2>()?;
            let (term, tail) = tail.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = tail;
            Some(term)
        })
    }

    /// Passes each distinct term to `visit`, in ascending order.
    pub fn for_each(&self, unpack: TermDecoder, visit: &mut dyn FnMut(&[u8])) {
        self.plain_terms().for_each(&mut *visit);
        let (mut numbers, mut term) = (self.packed_terms.clone(), Vec::new());
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            unpack(number, &mut term);
            visit(&term);
        }
    }
}

/// The changes of one batch to an index.
#[derive(Debug, Default)]
pub struct SegmentBuffer {
    /// By item: its terms from this batch on, or `None` if it was removed.
    items: BTreeMap<i64, Option<TermSet>>,
}

impl SegmentBuffer {
    /// Sets the terms of an item; they replace those that it had before.
    pub fn put(&mut self, item: i64, terms: TermSet) {
        self.items.insert(item, Some(terms));
    }

    /// Removes an item.
    pub fn remove(&mut self, item: i64) {
        self.items.insert(item, None);
    }

    /// Writes the segment of the batch `seq`, and then merges in proportion to its bytes (see
    /// `merge`). Nothing is written for a batch without changes.
    pub fn flush<P: WriteSegments>(
        mut self,
        pages: &P,
        index: IndexId,
        seq: i64,
        unpack: TermDecoder,
    ) -> Result<(), P::Error> {
        if self.items.is_empty() {
            return Ok(());
        }
        let has_oversized = self.items.values().flatten().any(TermSet::is_oversized);
        let segment = pages.create_segment(index, seq, has_oversized)?;
        let mut writer = SegmentWriter::begin(pages, segment);
        self.write_plain_terms(&mut writer)?;
        self.write_packed_terms(unpack, &mut writer)?;
        let changed_items: Vec<i64> = self.items.keys().copied().collect();
        writer.add(CHANGED_ITEMS_TERM, &changed_items)?;
        let bytes = writer.finish()?;
        merge::merge_increment(pages, index, bytes)
    }

    fn write_plain_terms<P: WriteSegments>(
        &self,
        writer: &mut SegmentWriter<'_, P>,
    ) -> Result<(), P::Error> {
        let mut pairs: Vec<(u64, &[u8], i64)> = Vec::new();
        for (&item, terms) in &self.items {
            let terms = terms.iter().flat_map(TermSet::plain_terms);
            pairs.extend(terms.map(|term| (prefix_key(term), term, item)));
        }
        // Most terms differ in their first eight bytes, which are compared as one number.
        pairs.sort_unstable();
        let mut items = Vec::new();
        for run in pairs.chunk_by(|(_, a, _), (_, b, _)| a == b) {
            items.clear();
            items.extend(run.iter().map(|(_, _, item)| item));
            writer.add(run[0].1, &items)?;
        }
        Ok(())
    }

    /// Writes the packed terms: many postings of few distinct numbers. Each number gets a slot, and
    /// the items are distributed over the slots in two passes (a counting sort), instead of sorting
    /// all pairs of number and item.
    fn write_packed_terms<P: WriteSegments>(
        &mut self,
        unpack: TermDecoder,
        writer: &mut SegmentWriter<'_, P>,
    ) -> Result<(), P::Error> {
        let mut slot_numbers: HashMap<u64, u64, SeededHasher> =
            HashMap::with_hasher(SeededHasher::new());
        let mut slots: Vec<ScatterSlot> = Vec::new();
        let mut total = 0;
        for (&item, terms) in &mut self.items {
            let Some(TermSet { packed_terms, .. }) = terms else { continue };
            // From here on the list holds the slot of each number, once.
            packed_terms.retain_mut(|number| {
                let slot_number = *slot_numbers.entry(*number).or_insert_with(|| {
                    slots.push(ScatterSlot {
                        number: *number,
                        count: 0,
                        next_index: 0,
                        last_item: None,
                    });
                    slots.len() as u64 - 1
                });
                *number = slot_number;
                let Some(slot) = slots.get_mut(slot_number as usize) else { return false };
                let is_new = slot.last_item.replace(item) != Some(item);
                slot.count += usize::from(is_new);
                total += usize::from(is_new);
                is_new
            });
        }
        let numbered = slots.iter().enumerate().map(|(place, slot)| (slot.number, place));
        let mut order: Vec<(u64, usize)> = numbered.collect();
        order.sort_unstable();
        let mut start = 0;
        for &(_, place) in &order {
            slots[place].next_index = start;
            start += slots[place].count;
        }
        let mut items = vec![0; total];
        for (&item, terms) in &self.items {
            for &place in terms.iter().flat_map(|terms| &terms.packed_terms) {
                let next_index = &mut slots[place as usize].next_index;
                items[*next_index] = item;
                *next_index += 1;
            }
        }
        let (mut rest, mut term) = (items.as_slice(), Vec::new());
        for (number, place) in order {
            let (postings, after) = rest.split_at(slots[place].count);
            rest = after;
            unpack(number, &mut term);
            writer.add(&term, postings)?;
        }
        Ok(())
    }
}

/// The postings of one number while items are distributed.
struct ScatterSlot {
    number: u64,
    /// The number of its postings.
    count: usize,
    /// The index that the next of its postings goes to.
    next_index: usize,
    /// The last item that was counted.
    last_item: Option<i64>,
}

/// A hash of numbers: a multiplication by a random factor, so that no input can be made to collide.
#[derive(Clone)]
struct SeededHasher {
    factor: u64,
    hash: u64,
}

impl SeededHasher {
    fn new() -> SeededHasher {
        SeededHasher { factor: RandomState::new().hash_one(0_u8) | 1, hash: 0 }
    }
}

impl BuildHasher for SeededHasher {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        self.clone()
    }
}

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.hash ^ number) * u128::from(self.factor);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
