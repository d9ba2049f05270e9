//! The words of a batch in memory: a hash table of terms, and their postings in the order in which
//! they come.
//!
//! Nothing is allocated for a single word: terms stand one after the other in one text, and a
//! posting is two numbers. The postings are sorted by term only once, when the batch ends.
//! The key of a term has words of up to 15 bytes themselves, so that the text is not read to find
//! them, and frequent words are found in a small table, which stays in the processor's cache:
//! waiting for memory here takes most of the time of a parsing thread.
//! Separate from `segment_buffer`, which writes its segment itself, and from `segment_words`, which
//! brings the batches of several threads together.

use crate::position_list::write_position_list;
use crate::term::prefix_key;
use crate::varint::{read_varint, write_varint};
use crate::word_block::MAX_WORD_BYTES;
use std::hash::{BuildHasher as _, RandomState};
use std::mem;
use std::ops::Range;

/// The least number of slots of the hash table, a power of two.
const MIN_SLOTS: usize = 1 << 12;
/// The number of slots that are kept for the next batch: those of a larger one are too many to be
/// emptied after each batch. A power of two.
const MAX_KEPT_SLOTS: usize = 1 << 17;
/// The number of frequent words, a power of two.
const FREQUENT_WORDS: usize = 1 << 10;
/// The longest word that is its own key.
const MAX_INLINE_BYTES: usize = 15;
/// The bits of the second half of a key that are of the word; the others are of the field.
const WORD_BITS: u32 = 56;
/// The bytes of a chunk of a batch. Memory in pieces of one size is used again without gaps, and a
/// segment gives back that of each piece when it is encoded.
const CHUNK_BYTES: usize = 32 << 10;
/// Upper bound of the bytes of an entry beside its term and its posting list.
const MAX_ENTRY_HEAD_BYTES: usize = 12;

/// The words of a batch of items in memory. It is filled by a parsing thread, without the store.
#[derive(Debug, Default)]
pub struct WordBuffer {
    /// An open-addressing hash table: the number of a term, plus one; 0 in an empty slot. At most
    /// half full; a power of two.
    slots: Vec<u32>,
    /// The key of each term, see [`term_key`].
    keys: Vec<TermKey>,
    /// A word that was found lately, by its hash.
    frequent: Vec<FrequentWord>,
    /// A random odd number, chosen with the first slots.
    hash_key: u64,
    terms: Vec<Term>,
    text: Vec<u8>,
    postings: Vec<Posting>,
    rows: Vec<RowStart>,
    sorted: SortedPostings,
    last_row: u32,
}

/// A word that was found lately.
#[derive(Debug, Clone, Copy, Default)]
struct FrequentWord {
    /// All zeros: none was.
    key: TermKey,
    term: u32,
}

/// The key of a term, by which it is found.
type TermKey = [u64; 2];

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

    /// Returns whether nothing has been added since the last batch was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.postings.is_empty()
    }

    /// Returns the number of postings that have been added since the last batch was taken.
    #[must_use]
    pub fn posting_count(&self) -> usize {
        self.postings.len()
    }

    /// Returns the words in the order of the terms. The buffer is empty afterwards, but keeps its
    /// memory.
    pub fn take_batch(&mut self) -> WordBatch {
        let mut sorted = mem::take(&mut self.sorted);
        self.sort_postings(&mut sorted);
        let mut batch = WordBatch { chunks: Vec::new(), last_row: self.last_row };
        let (mut list, mut positions, mut previous) = (Vec::new(), Vec::new(), &[][..]);
        for (_, number) in &sorted.order {
            let Some(term) = self.terms.get(*number as usize) else { continue };
            list.clear();
            sorted.write_posting_list(*number, term.has_positions, &mut list, &mut positions);
            let bytes = term.bytes(&self.text);
            batch.add(previous, bytes, term.has_positions, &list);
            previous = bytes;
        }
        batch.chunks.last_mut().into_iter().for_each(Vec::shrink_to_fit);
        self.sorted = sorted;
        self.slots.fill(0);
        self.slots.truncate(MAX_KEPT_SLOTS);
        self.keys.clear();
        self.frequent.fill(FrequentWord::default());
        self.terms.clear();
        self.text.clear();
        self.postings.clear();
        self.rows.clear();
        batch
    }

    /// Returns the number of a term, which is added if it is new.
    #[inline]
    fn find_or_insert(&mut self, field: u8, word: &[u8], has_positions: bool) -> u32 {
        if (self.terms.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let key = term_key(field, word, self.hash_key);
        let hash = hash_key(key, self.hash_key);
        let is_inline = word.len() <= MAX_INLINE_BYTES;
        let frequent = hash as usize % FREQUENT_WORDS;
        if is_inline
            && let Some(frequent) = self.frequent.get(frequent)
            && frequent.key == key
        {
            return frequent.term;
        }
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(place) {
            if *slot == 0 {
                *slot = self.terms.len() as u32 + 1;
                break;
            }
            let term = *slot - 1;
            if self.keys.get(term as usize) == Some(&key) {
                if is_inline {
                    if let Some(frequent) = self.frequent.get_mut(frequent) {
                        *frequent = FrequentWord { key, term };
                    }
                    return term;
                }
                if is_term(self.terms.get(term as usize), &self.text, field, word) {
                    return term;
                }
            }
            place = (place + 1) & mask;
        }
        self.keys.push(key);
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
            self.frequent.resize(FREQUENT_WORDS, FrequentWord::default());
        }
        let count = (self.slots.len() * 2).max(MIN_SLOTS);
        self.slots.clear();
        self.slots.resize(count, 0);
        for (number, key) in (1..).zip(&self.keys) {
            let mut place = hash_key(*key, self.hash_key) as usize & (count - 1);
            while self.slots.get(place).is_some_and(|slot| *slot != 0) {
                place = (place + 1) & (count - 1);
            }
            if let Some(free) = self.slots.get_mut(place) {
                *free = number;
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
        let keys = self.terms.iter().map(|term| order_key(term.bytes(&self.text)));
        order.extend(keys.zip(0..));
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.term_bytes(a.1).cmp(self.term_bytes(b.1)))
        });
    }

    fn term_bytes(&self, number: u32) -> &[u8] {
        self.terms.get(number as usize).map_or(&[], |term| term.bytes(&self.text))
    }
}

/// Returns the first sixteen bytes of a term, with zeros behind a shorter one, which have the order
/// of the terms.
pub(crate) fn order_key(term: &[u8]) -> [u64; 2] {
    [prefix_key(term), term.get(8..).map_or(0, prefix_key)]
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

    /// Appends the posting list of a term. `positions` is a buffer.
    fn write_posting_list(
        &self,
        number: u32,
        has_positions: bool,
        list: &mut Vec<u8>,
        positions: &mut Vec<u32>,
    ) {
        let mut previous = 0;
        for places in self.places(number).chunk_by(|a, b| a.row == b.row) {
            let Some(first) = places.first() else { continue };
            write_varint(list, u64::from(first.row - previous));
            previous = first.row;
            match places {
                _ if !has_positions => {}
                [place] => write_varint(list, u64::from(place.position) << 1 | 1),
                places => {
                    positions.clear();
                    positions.extend(places.iter().map(|place| place.position));
                    positions.dedup();
                    write_position_list(list, positions);
                }
            }
        }
    }
}

/// Returns the key of a term in the hash table: of a short word its bytes and the field, else a
/// hash with a zero in place of the field.
#[inline]
fn term_key(field: u8, word: &[u8], hash_key: u64) -> TermKey {
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
fn hash_key([start, end]: TermKey, hash_key: u64) -> u64 {
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

/// The words of some rows, in the order of the terms.
///
/// Each term has an entry: the number of bytes that it shares with the term before it, the number
/// of bytes that follow, and these; then the length of its posting list, doubled, plus one if it
/// has positions, as a varint, and the list. This has the distance of each row from the one before,
/// the first one's from 0, and its position list if the term has positions.
#[derive(Debug, Clone, Default)]
pub struct WordBatch {
    /// The entries; each is in one chunk.
    chunks: Vec<Vec<u8>>,
    pub(crate) last_row: u32,
}

impl WordBatch {
    /// Returns the number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Returns whether the batch has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn add(&mut self, previous: &[u8], term: &[u8], has_positions: bool, list: &[u8]) {
        let shared = previous.iter().zip(term).take_while(|(a, b)| a == b).count();
        let suffix = term.get(shared..).unwrap_or_default();
        let chunk = self.chunk_for(MAX_ENTRY_HEAD_BYTES + suffix.len() + list.len());
        // A term has at most `MAX_WORD_BYTES`.
        chunk.extend_from_slice(&[shared as u8, suffix.len() as u8]);
        chunk.extend_from_slice(suffix);
        write_varint(chunk, (list.len() as u64) << 1 | u64::from(has_positions));
        chunk.extend_from_slice(list);
    }

    /// Returns the last chunk if it has room for so many bytes, else a new one.
    #[inline]
    fn chunk_for(&mut self, bytes: usize) -> &mut Vec<u8> {
        let has_room = |last: &Vec<u8>| last.capacity() - last.len() >= bytes;
        if !self.chunks.last().is_some_and(has_room) {
            self.chunks.push(Vec::with_capacity(bytes.max(CHUNK_BYTES)));
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

/// A batch that is read term by term. Chunks that were read give their memory back.
#[derive(Debug)]
pub(crate) struct WordBatchReader {
    chunks: std::vec::IntoIter<Vec<u8>>,
    /// The chunk of the current term.
    chunk: Vec<u8>,
    /// The place of the next entry in it.
    next: usize,
    /// The current term; empty after the last one.
    pub(crate) term: Vec<u8>,
    list: Range<usize>,
    pub(crate) has_positions: bool,
}

impl WordBatchReader {
    /// Opens a batch at its first term.
    pub(crate) fn open(batch: WordBatch) -> WordBatchReader {
        let mut reader = WordBatchReader {
            chunks: batch.chunks.into_iter(),
            chunk: Vec::new(),
            next: 0,
            term: Vec::with_capacity(MAX_WORD_BYTES),
            list: 0..0,
            has_positions: false,
        };
        reader.advance();
        reader
    }

    /// Returns the posting list of the current term.
    pub(crate) fn list(&self) -> &[u8] {
        self.chunk.get(self.list.clone()).unwrap_or_default()
    }

    /// Advances to the next term.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if self.next >= self.chunk.len() {
            self.chunk = self.chunks.next().unwrap_or_default();
            self.next = 0;
        }
        if self.read_entry().is_none() {
            self.term.clear();
            self.list = 0..0;
        }
    }

    #[inline]
    fn read_entry(&mut self) -> Option<()> {
        let rest = self.chunk.get(self.next..)?;
        let ([shared, length], rest) = rest.split_first_chunk()?;
        let (suffix, mut rest) = rest.split_at_checked(usize::from(*length))?;
        self.term.truncate(usize::from(*shared));
        self.term.extend_from_slice(suffix);
        let head = read_varint(&mut rest)?;
        self.has_positions = head & 1 == 1;
        let start = self.chunk.len() - rest.len();
        self.next = start + (head >> 1) as usize;
        self.list = start..self.next;
        Some(())
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
            let key = term_key(b'w', &word, 3).map(u64::to_le_bytes);
            assert_eq!(key.concat(), bytes);
        }
    }

    #[test]
    fn long_words_have_keys_that_no_short_word_has() {
        for length in MAX_INLINE_BYTES + 1..40 {
            assert_eq!(term_key(b'w', &vec![0xff; length], u64::MAX)[1] >> WORD_BITS, 0);
        }
    }
}
