//! The words of a batch in memory: a hash table of terms, and their postings in the order in which
//! they come.
//!
//! Nothing is allocated for a single word: terms stand one after the other in one text, and a
//! posting is two numbers. The postings are sorted by term only once, when the segment is encoded.
//! A slot of the hash table has words of up to 15 bytes themselves, so that nothing else is read to
//! find them, and frequent words are found in a small table, which stays in the processor's cache:
//! waiting for memory here takes most of the time of a parsing thread.
//! Separate from `segment_buffer`, which writes its segment itself: a thread without the store
//! fills and encodes this one.

use crate::position_list::write_position_list;
use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, WriteSegments};
use crate::term::prefix_key;
use crate::term_dictionary::DictionaryBuilder;
use crate::varint::write_varint;
use crate::word_block::{FullBlocks, MAX_WORD_BYTES, WordBlockBuilder};
use std::hash::{BuildHasher as _, RandomState};
use std::mem;

/// The least number of slots of the hash table, a power of two.
const MIN_SLOTS: usize = 1 << 12;
/// The number of slots of the table of frequent words, a power of two.
const FREQUENT_SLOTS: usize = 1 << 11;
/// The longest word that a slot has as its key.
const MAX_INLINE_BYTES: usize = 15;
/// The bits of the second half of a key that are of the word; the others are of the field.
const WORD_BITS: u32 = 56;

/// The words of a batch of items in memory. It is filled by a parsing thread, without the store.
#[derive(Debug, Default)]
pub struct WordBuffer {
    /// An open-addressing hash table of the terms, at most three quarters full; a power of two.
    slots: Vec<Slot>,
    /// The slot of a word that was found lately, by its hash.
    frequent: Vec<Slot>,
    /// A random odd number, chosen with the first slots.
    hash_key: u64,
    terms: Vec<Term>,
    text: Vec<u8>,
    postings: Vec<Posting>,
    rows: Vec<RowStart>,
    sorted: SortedPostings,
    last_row: u32,
    /// The first byte of the terms that the dictionary has.
    dictionary_byte: Option<u8>,
}

/// A slot of the hash table.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// See [`slot_key`].
    key: SlotKey,
    /// The number of the term, plus one; 0 in an empty slot.
    term: u32,
}

/// The key of a slot.
type SlotKey = [u64; 2];

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
    position: u32,
}

/// A row, and the number of its first posting.
#[derive(Debug, Clone, Copy)]
struct RowStart {
    row: u32,
    start: usize,
}

/// A row, and the position of a term in it.
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
    ends: Vec<u32>,
    /// The first sixteen bytes of each term, and its number, in the order of the terms.
    order: Vec<([u64; 2], u32)>,
}

impl WordBuffer {
    /// Creates a buffer. The terms that begin with this byte are in the dictionary, without it.
    #[must_use]
    pub fn with_dictionary(dictionary_byte: u8) -> WordBuffer {
        WordBuffer { dictionary_byte: Some(dictionary_byte), ..WordBuffer::default() }
    }

    /// Adds a term of a row, and its position there. The term is the byte of its field and a word;
    /// it is not longer than [`MAX_WORD_BYTES`], and has no zero byte. Rows are added in ascending
    /// order, and so are the positions of a term in a row, in which the same may come again. A term
    /// has positions everywhere or nowhere. A batch has less than 4 GB of distinct terms, and less
    /// than 4 G postings.
    pub fn add(&mut self, row: u32, field: u8, word: &[u8], position: Option<u32>) {
        debug_assert!(word.len() < MAX_WORD_BYTES && field != 0 && !word.contains(&0));
        if self.rows.last().is_none_or(|last| last.row != row) {
            debug_assert!(self.rows.last().is_none_or(|last| last.row < row));
            self.rows.push(RowStart { row, start: self.postings.len() });
            self.last_row = row;
        }
        let term = self.find_or_insert(field, word, position.is_some());
        self.postings.push(Posting { term, position: position.unwrap_or(0) });
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
                match places {
                    _ if !term.has_positions => {}
                    [place] => write_varint(&mut lists, u64::from(place.position) << 1 | 1),
                    places => {
                        positions.clear();
                        positions.extend(places.iter().map(|place| place.position));
                        positions.dedup();
                        write_position_list(&mut lists, &positions);
                    }
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
        self.frequent.fill(Slot::default());
        self.terms.clear();
        self.text.clear();
        self.postings.clear();
        self.rows.clear();
        EncodedSegment {
            blocks: builder.finish(),
            dictionary: dictionary.finish(),
            last_row: self.last_row,
        }
    }

    /// Returns the number of a term, which is added if it is new.
    #[inline]
    fn find_or_insert(&mut self, field: u8, word: &[u8], has_positions: bool) -> u32 {
        if (self.terms.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let key = slot_key(field, word, self.hash_key);
        let hash = hash_key(key, self.hash_key);
        let is_inline = word.len() <= MAX_INLINE_BYTES;
        if is_inline
            && let Some(frequent) = self.frequent.get(hash as usize % FREQUENT_SLOTS)
            && frequent.key == key
        {
            return frequent.term.wrapping_sub(1);
        }
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(place) {
            if slot.term == 0 {
                *slot = Slot { key, term: self.terms.len() as u32 + 1 };
                break;
            }
            let found = slot.term - 1;
            if slot.key == key {
                if is_inline {
                    let frequent = self.frequent.get_mut(hash as usize % FREQUENT_SLOTS);
                    *frequent.unwrap_or(&mut Slot::default()) = *slot;
                    return found;
                }
                if is_term(self.terms.get(found as usize), &self.text, field, word) {
                    return found;
                }
            }
            place = (place + 1) & mask;
        }
        let (start, length) = (self.text.len() as u32, word.len() as u16 + 1);
        self.text.push(field);
        self.text.extend_from_slice(word);
        self.terms.push(Term { start, length, has_positions });
        self.terms.len() as u32 - 1
    }

    /// Doubles the hash table.
    #[cold]
    fn grow(&mut self) {
        if self.slots.is_empty() {
            self.hash_key = RandomState::new().hash_one(0) | 1;
            self.frequent.resize(FREQUENT_SLOTS, Slot::default());
        }
        let count = (self.slots.len() * 2).max(MIN_SLOTS);
        let slots = mem::replace(&mut self.slots, vec![Slot::default(); count]);
        for slot in slots.into_iter().filter(|slot| slot.term != 0) {
            let mut place = hash_key(slot.key, self.hash_key) as usize & (count - 1);
            while self.slots.get(place).is_some_and(|slot| slot.term != 0) {
                place = (place + 1) & (count - 1);
            }
            if let Some(free) = self.slots.get_mut(place) {
                *free = slot;
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
        let row_ends = self.rows.iter().skip(1).map(|row| row.start).chain([self.postings.len()]);
        for (RowStart { row, start }, end) in self.rows.iter().zip(row_ends) {
            for posting in self.postings.get(*start..end).unwrap_or_default() {
                let Some(end) = ends.get_mut(posting.term as usize) else { continue };
                if let Some(place) = sorted.places.get_mut(*end as usize) {
                    *place = Place { row: *row, position: posting.position };
                }
                *end += 1;
            }
        }
        let order = &mut sorted.order;
        order.clear();
        order.extend((0..).zip(&self.terms).map(|(number, term)| {
            let bytes = term.bytes(&self.text);
            let rest = bytes.get(8..).map_or(0, prefix_key);
            ([prefix_key(bytes), rest], number)
        }));
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.term_bytes(a.1).cmp(self.term_bytes(b.1)))
        });
    }

    fn term_bytes(&self, number: u32) -> &[u8] {
        self.terms.get(number as usize).map_or(&[], |term| term.bytes(&self.text))
    }
}

/// Returns whether a term is this one.
fn is_term(term: Option<&Term>, text: &[u8], field: u8, word: &[u8]) -> bool {
    let bytes = term.map_or(&[][..], |term| term.bytes(text));
    bytes.split_first() == Some((&field, word))
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
        end.and_then(|end| self.places.get(start as usize..end as usize)).unwrap_or_default()
    }
}

/// Returns the key of a term in the hash table: of a short word its bytes and the field, else a
/// hash with a zero in place of the field.
#[inline]
fn slot_key(field: u8, word: &[u8], hash_key: u64) -> SlotKey {
    if word.len() <= MAX_INLINE_BYTES {
        let [start, end] = inline_word(word);
        return [start, end | u64::from(field) << WORD_BITS];
    }
    let length = (word.len() as u64) << 8 | u64::from(field);
    let (parts, _) = word.as_chunks();
    let hash = parts.iter().fold(hash_key.rotate_left(32) ^ length, |hash, part| {
        mix(hash ^ u64::from_le_bytes(*part), hash_key).wrapping_add(hash_key)
    });
    // The last bytes, of which some may be among those before.
    let end = word.last_chunk().map_or(0, |end| u64::from_le_bytes(*end));
    [hash ^ end, mix(hash ^ end, hash_key) >> (u64::BITS - WORD_BITS)]
}

/// Returns a hash of a key. Without the random number, a message could contain words that all have
/// the same hash, which would take a time of the square of their number.
#[inline]
fn hash_key([start, end]: SlotKey, hash_key: u64) -> u64 {
    mix(start ^ hash_key.rotate_left(32), hash_key).wrapping_add(mix(end, hash_key))
}

#[inline]
fn mix(hash: u64, hash_key: u64) -> u64 {
    let product = u128::from(hash) * u128::from(hash_key);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the bytes of a word of at most [`MAX_INLINE_BYTES`] as two numbers.
#[inline]
fn inline_word(word: &[u8]) -> [u64; 2] {
    let length = word.len();
    if let (Some(start), Some(end)) = (word.first_chunk(), word.last_chunk()) {
        // Both have eight bytes, some of which are the same.
        let (start, end) = (u64::from_le_bytes(*start), u64::from_le_bytes(*end));
        return [start, end.checked_shr((16 - length) as u32 * 8).unwrap_or(0)];
    }
    if let (Some(start), Some(end)) = (word.first_chunk(), word.last_chunk()) {
        let (start, end) = (u32::from_le_bytes(*start), u32::from_le_bytes(*end));
        return [u64::from(start) | u64::from(end) << ((length - 4) * 8), 0];
    }
    let byte = |at: usize| word.get(at).map_or(0, |byte| u64::from(*byte) << (at * 8));
    [byte(0) | byte(1) | byte(2), 0]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_are_their_keys() {
        for length in 0..=MAX_INLINE_BYTES {
            let word: Vec<u8> = (0..length as u8).map(|at| at * 7 + 1).collect();
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&word);
            bytes[15] = b'w';
            let key = slot_key(b'w', &word, 3).map(u64::to_le_bytes);
            assert_eq!(key.concat(), bytes);
        }
    }

    #[test]
    fn long_words_have_keys_that_no_short_word_has() {
        for length in MAX_INLINE_BYTES + 1..40 {
            assert_eq!(slot_key(b'w', &vec![0xff; length], u64::MAX)[1] >> WORD_BITS, 0);
        }
    }
}
