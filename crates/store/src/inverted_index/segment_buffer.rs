//! A batch's terms: gathered while its items are written, then put into a segment of their own.

use super::segment::{self, SegmentWriter};
use super::{merge, term};
use crate::Seq;
use crate::index_maintenance::DerivedIndex;
use larder_extract::ExtractedTerms;
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The terms of one item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemTerms {
    /// In order, each once, with its length in two bytes before it.
    plain_terms: Vec<u8>,
    /// Presences, words and trigrams as numbers, see [`term::unpack`]: as they come in the text,
    /// and as often.
    packed: Vec<u64>,
    /// It is always a candidate.
    pub(crate) is_oversized: bool,
}

impl ItemTerms {
    /// Of terms, which none of is longer than 64 KB, and of those that are packed in numbers.
    pub(crate) fn new(
        mut terms: Vec<Vec<u8>>,
        mut packed: Vec<u64>,
        is_oversized: bool,
    ) -> ItemTerms {
        if is_oversized {
            terms.push(term::oversized_items());
        }
        terms.sort_unstable();
        terms.dedup();
        let mut plain_terms = Vec::with_capacity(terms.iter().map(|term| term.len() + 2).sum());
        for term in terms {
            plain_terms.extend((term.len() as u16).to_le_bytes());
            plain_terms.extend(term);
        }
        packed.shrink_to_fit();
        ItemTerms { plain_terms, packed, is_oversized }
    }

    /// Takes the terms that were extracted from an item, without a copy.
    pub(crate) fn from_extracted(terms: ExtractedTerms) -> ItemTerms {
        let ExtractedTerms { encoded_terms, packed_terms, is_oversized } = terms;
        ItemTerms { plain_terms: encoded_terms, packed: packed_terms, is_oversized }
    }

    /// All terms but those that are packed in numbers.
    fn plain_terms(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.plain_terms.as_slice();
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<2>()?;
            let (term, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = behind;
            Some(term)
        })
    }

    /// Gives every term to `each`, in their order, each once.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(&[u8])) {
        self.plain_terms().for_each(&mut *each);
        let (mut packed, mut term) = (self.packed.clone(), Vec::new());
        packed.sort_unstable();
        packed.dedup();
        for number in packed {
            term::unpack_term(number, &mut term);
            each(&term);
        }
    }
}

/// What a batch has to say to the index.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuffer {
    /// By row: the terms an item has now, or `None` where it was removed.
    items: BTreeMap<i64, Option<ItemTerms>>,
}

impl SegmentBuffer {
    /// An item is there, with these terms; whatever was said of it before no longer holds.
    pub(crate) fn put(&mut self, item: i64, terms: ItemTerms) {
        self.items.insert(item, Some(terms));
    }

    /// An item is gone.
    pub(crate) fn remove(&mut self, item: i64) {
        self.items.insert(item, None);
    }

    /// Writes the segment of the batch `seq`, and does a share of the merging that all batches owe.
    pub(crate) fn flush(
        mut self,
        conn: &Connection,
        set: DerivedIndex,
        seq: Seq,
    ) -> rusqlite::Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let large = self.items.values().flatten().any(|terms| terms.is_oversized);
        let mut writer =
            SegmentWriter::begin(conn, segment::create_segment(conn, set, seq, large)?);
        self.write_plain_terms(&mut writer)?;
        self.write_packed_terms(&mut writer)?;
        let touched: Vec<i64> = self.items.keys().copied().collect();
        writer.add(&term::changed_items(), &touched)?;
        let bytes = writer.finish()?;
        merge::merge_increment(conn, set, bytes)
    }

    fn write_plain_terms(&self, writer: &mut SegmentWriter<'_>) -> rusqlite::Result<()> {
        let mut pairs: Vec<(u64, &[u8], i64)> = Vec::new();
        for (&item, terms) in &self.items {
            let terms = terms.iter().flat_map(ItemTerms::plain_terms);
            pairs.extend(terms.map(|term| (term::prefix_number(term), term, item)));
        }
        // Most terms differ in their first bytes, which are compared as one number.
        pairs.sort_unstable();
        let mut items = Vec::new();
        for run in pairs.chunk_by(|(_, a, _), (_, b, _)| a == b) {
            items.clear();
            items.extend(run.iter().map(|(_, _, item)| item));
            writer.add(run[0].1, &items)?;
        }
        Ok(())
    }

    /// What is packed is much, and little of it differs: each number gets a place, and items are
    /// dealt out to the places.
    fn write_packed_terms(&mut self, writer: &mut SegmentWriter<'_>) -> rusqlite::Result<()> {
        let mut places: HashMap<u64, u64, SeededHasher> = HashMap::with_hasher(SeededHasher::new());
        let mut dealing: Vec<ScatterSlot> = Vec::new();
        let mut total = 0;
        for (&item, terms) in &mut self.items {
            let Some(ItemTerms { packed, .. }) = terms else { continue };
            // From here on there is a place instead of each number, once.
            packed.retain_mut(|number| {
                let place = *places.entry(*number).or_insert_with(|| {
                    dealing.push(ScatterSlot {
                        number: *number,
                        count: 0,
                        next_index: 0,
                        last_item: None,
                    });
                    dealing.len() as u64 - 1
                });
                *number = place;
                let Some(term) = dealing.get_mut(place as usize) else { return false };
                let is_new = term.last_item.replace(item) != Some(item);
                term.count += usize::from(is_new);
                total += usize::from(is_new);
                is_new
            });
        }
        let places = dealing.iter().enumerate().map(|(place, term)| (term.number, place));
        let mut order: Vec<(u64, usize)> = places.collect();
        order.sort_unstable();
        let mut start = 0;
        for &(_, place) in &order {
            dealing[place].next_index = start;
            start += dealing[place].count;
        }
        let mut dealt = vec![0; total];
        for (&item, terms) in &self.items {
            for &place in terms.iter().flat_map(|terms| &terms.packed) {
                let next = &mut dealing[place as usize].next_index;
                dealt[*next] = item;
                *next += 1;
            }
        }
        let (mut rest, mut term) = (dealt.as_slice(), Vec::new());
        for (number, place) in order {
            let (items, behind) = rest.split_at(dealing[place].count);
            rest = behind;
            term::unpack_term(number, &mut term);
            writer.add(&term, items)?;
        }
        Ok(())
    }
}

/// A number while items are dealt out.
struct ScatterSlot {
    number: u64,
    /// How many items have it.
    count: usize,
    /// Where the next of them goes.
    next_index: usize,
    /// The last item that was seen to have it.
    last_item: Option<i64>,
}

/// A hash of numbers: a multiplication by a number that nobody knows, so that no cards can be made
/// to collide.
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
