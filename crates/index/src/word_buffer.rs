//! The words of a batch in memory: a hash table of terms, and their postings in the order in which
//! they come.
//!
//! Nothing is allocated for a single word: terms stand one after the other in one text, and a
//! posting is three numbers. The postings are sorted by term only once, when the segment is
//! encoded. Separate from `segment_buffer`, which writes its segment itself: a thread without the
//! store fills and encodes this one.

use crate::position_list::write_position_list;
use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, WriteSegments};
use crate::term::prefix_key;
use crate::term_dictionary::DictionaryBuilder;
use crate::word_block::{FullBlocks, MAX_WORD_BYTES, WordBlockBuilder};
use std::hash::{BuildHasher as _, RandomState};
use std::mem;

/// The least number of slots of the hash table, a power of two.
const MIN_SLOTS: usize = 1 << 12;

/// The words of a batch of items in memory. It is filled by a parsing thread, without the store.
#[derive(Debug, Default)]
pub struct WordBuffer {
    /// An open-addressing hash table of the terms, at most three quarters full; a power of two.
    slots: Vec<Slot>,
    /// A random odd number, chosen with the first slots.
    hash_key: u64,
    terms: Vec<Term>,
    text: Vec<u8>,
    postings: Vec<Posting>,
    sorted: SortedPostings,
    last_row: u32,
    /// The first byte of the terms that the dictionary has.
    dictionary_byte: Option<u8>,
}

/// A slot of the hash table.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The upper half of the hash.
    tag: u32,
    /// The number of the term, plus one; 0 in an empty slot.
    term: u32,
}

/// A term, as a part of the text.
#[derive(Debug, Clone, Copy)]
struct Term {
    start: u32,
    length: u16,
    has_positions: bool,
}

/// A posting in the order of the calls.
#[derive(Debug, Clone, Copy)]
struct Posting {
    term: u32,
    place: Place,
}

/// A row, and the position of the term in it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    row: u32,
    position: u32,
}

/// The postings sorted by term, and the terms in order.
#[derive(Debug, Default)]
struct SortedPostings {
    places: Vec<Place>,
    /// The end of the places of each term, by its number.
    ends: Vec<usize>,
    /// The first eight bytes of each term, and its number, in the order of the terms.
    order: Vec<(u64, u32)>,
}

impl WordBuffer {
    /// Creates a buffer. The terms that begin with this byte are in the dictionary, without it.
    #[must_use]
    pub fn with_dictionary(dictionary_byte: u8) -> WordBuffer {
        WordBuffer { dictionary_byte: Some(dictionary_byte), ..WordBuffer::default() }
    }

    /// Adds a term of a row, and its position there. The term is not longer than
    /// [`MAX_WORD_BYTES`], and has no zero byte. Rows are added in ascending order, and so are the
    /// positions of a term in a row, in which the same may come again. A term has positions
    /// everywhere or nowhere. A batch has less than 4 GB of distinct terms.
    pub fn add(&mut self, row: u32, term: &[u8], position: Option<u32>) {
        debug_assert!((1..=MAX_WORD_BYTES).contains(&term.len()) && !term.contains(&0));
        debug_assert!(self.postings.last().is_none_or(|last| last.place.row <= row));
        let number = self.find_or_insert(term, position.is_some());
        let place = Place { row, position: position.unwrap_or(0) };
        self.postings.push(Posting { term: number, place });
        self.last_row = row;
    }

    /// Returns whether nothing has been added since the last segment was encoded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.postings.is_empty()
    }

    /// Returns the number of postings that have been added since the last segment was encoded.
    #[must_use]
    pub fn posting_count(&self) -> usize {
        self.postings.len()
    }

    /// Encodes the words as a segment. The buffer is empty afterwards, but keeps its memory.
    pub fn encode(&mut self) -> EncodedSegment {
        let mut sorted = mem::take(&mut self.sorted);
        self.sort_postings(&mut sorted);
        let mut builder = WordBlockBuilder::default();
        let mut dictionary = DictionaryBuilder::default();
        let (mut rows, mut lists, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (_, number) in &sorted.order {
            let Some(term) = self.terms.get(*number as usize) else { continue };
            rows.clear();
            lists.clear();
            for places in sorted.places(*number).chunk_by(|a, b| a.row == b.row) {
                rows.extend(places.first().map(|place| place.row));
                if term.has_positions {
                    positions.clear();
                    positions.extend(places.iter().map(|place| place.position));
                    positions.dedup();
                    write_position_list(&mut lists, &positions);
                }
            }
            let term = term.bytes(&self.text);
            builder.add(term, &rows, &lists);
            if let Some((first, word)) = term.split_first()
                && self.dictionary_byte == Some(*first)
            {
                dictionary.add(word);
            }
        }
        self.sorted = sorted;
        self.slots.fill(Slot::default());
        self.terms.clear();
        self.text.clear();
        self.postings.clear();
        EncodedSegment {
            blocks: builder.finish(),
            dictionary: dictionary.finish(),
            last_row: self.last_row,
        }
    }

    /// Returns the number of a term, which is added if it is new.
    #[inline]
    fn find_or_insert(&mut self, term: &[u8], has_positions: bool) -> u32 {
        if (self.terms.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let hash = hash_term(term, self.hash_key);
        let (tag, mask) = ((hash >> 32) as u32, self.slots.len().wrapping_sub(1));
        let mut place = hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(place) {
            if slot.term == 0 {
                *slot = Slot { tag, term: self.terms.len() as u32 + 1 };
                break;
            }
            let found = slot.term - 1;
            if slot.tag == tag
                && let Some(other) = self.terms.get(found as usize)
                && other.bytes(&self.text) == term
            {
                debug_assert_eq!(other.has_positions, has_positions);
                return found;
            }
            place = (place + 1) & mask;
        }
        let (start, length) = (self.text.len() as u32, term.len() as u16);
        self.text.extend_from_slice(term);
        self.terms.push(Term { start, length, has_positions });
        self.terms.len() as u32 - 1
    }

    /// Doubles the hash table.
    #[cold]
    fn grow(&mut self) {
        if self.slots.is_empty() {
            self.hash_key = RandomState::new().hash_one(0) | 1;
        }
        let count = (self.slots.len() * 2).max(MIN_SLOTS);
        self.slots.clear();
        self.slots.resize(count, Slot::default());
        for (number, term) in (1..).zip(&self.terms) {
            let hash = hash_term(term.bytes(&self.text), self.hash_key);
            let mut place = hash as usize & (count - 1);
            while self.slots.get(place).is_some_and(|slot| slot.term != 0) {
                place = (place + 1) & (count - 1);
            }
            if let Some(slot) = self.slots.get_mut(place) {
                *slot = Slot { tag: (hash >> 32) as u32, term: number };
            }
        }
    }

    /// Sorts the postings by term, by counting, and the terms by their bytes.
    fn sort_postings(&self, sorted: &mut SortedPostings) {
        let ends = &mut sorted.ends;
        ends.clear();
        ends.resize(self.terms.len() + 1, 0);
        // Each element counts the places of the term before it, then is the beginning of those of
        // its own, and moves to their end while they are filled in.
        for posting in &self.postings {
            if let Some(count) = ends.get_mut(posting.term as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in ends.iter_mut() {
            sum += *end;
            *end = sum;
        }
        sorted.places.clear();
        sorted.places.resize(self.postings.len(), Place::default());
        for posting in &self.postings {
            let Some(end) = ends.get_mut(posting.term as usize) else { continue };
            if let Some(place) = sorted.places.get_mut(*end) {
                *place = posting.place;
            }
            *end += 1;
        }
        let numbered = (0..).zip(&self.terms);
        let order = &mut sorted.order;
        order.clear();
        order.extend(numbered.map(|(number, term)| (prefix_key(term.bytes(&self.text)), number)));
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.term_bytes(a.1).cmp(self.term_bytes(b.1)))
        });
    }

    fn term_bytes(&self, number: u32) -> &[u8] {
        self.terms.get(number as usize).map_or(&[], |term| term.bytes(&self.text))
    }
}

impl Term {
    #[inline]
    fn bytes(self, text: &[u8]) -> &[u8] {
        let start = self.start as usize;
        text.get(start..start + usize::from(self.length)).unwrap_or_default()
    }
}

impl SortedPostings {
    /// Returns the places of a term.
    fn places(&self, number: u32) -> &[Place] {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        let (start, end) = (start.copied().unwrap_or(0), self.ends.get(number).copied());
        end.and_then(|end| self.places.get(start..end)).unwrap_or_default()
    }
}

/// Returns a hash of a term. Without the random key, a message could contain words that all have
/// the same hash, which would take a time of the square of their number.
#[inline]
fn hash_term(term: &[u8], key: u64) -> u64 {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(key);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = term.as_chunks();
    let hash = words.iter().fold(key.rotate_left(32), |hash, word| {
        mix(hash, u64::from_le_bytes(*word)).wrapping_add(key)
    });
    let rest = rest.iter().fold(term.len() as u64, |rest, byte| rest << 8 | u64::from(*byte));
    mix(hash, rest)
}

/// The blocks of a segment, ready to be written.
#[derive(Debug, Clone, Default)]
pub struct EncodedSegment {
    blocks: FullBlocks,
    /// The words of the dictionary.
    dictionary: FullBlocks,
    last_row: u32,
}

impl EncodedSegment {
    /// Returns whether the segment has no words, and would not be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of bytes of the blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Adds the segment to an index.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write<P: WriteSegments>(&self, pages: &P, index: IndexId) -> Result<(), P::Error> {
        self.write_blocks(pages, index, &self.blocks)
    }

    /// Adds the words of the segment to a dictionary.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write_dictionary<P: WriteSegments>(
        &self,
        pages: &P,
        index: IndexId,
    ) -> Result<(), P::Error> {
        self.write_blocks(pages, index, &self.dictionary)
    }

    fn write_blocks<P: WriteSegments>(
        &self,
        pages: &P,
        index: IndexId,
        blocks: &FullBlocks,
    ) -> Result<(), P::Error> {
        if blocks.is_empty() {
            return Ok(());
        }
        let segment = pages.create_segment(index, self.last_row.into(), false)?;
        let mut appender = BlockAppender::new(pages, segment, 0);
        for (first_key, block) in blocks.iter() {
            appender.append(first_key, block)?;
        }
        appender.finish().map(drop)
    }
}
