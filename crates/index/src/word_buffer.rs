//! The words of a batch in memory: a hash table of terms, and their postings in the order in which
//! they come.
//!
//! Nothing is allocated for a single word: terms stand one after the other in one text, and a
//! posting is two numbers. The postings are sorted by term only once, when the batch ends.
//! Waiting for memory here takes most of the time of a parsing thread. So the key of a term has
//! words of up to 15 bytes themselves, and the text is not read to find them; frequent words are
//! found in a small table, which stays in the processor's cache; and other words wait until a group
//! of them is looked up at once, so that the processor reads many places of the hash table at the
//! same time.
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
/// The number of words that are looked up together.
const GROUP_WORDS: usize = 32;
/// The longest word that is its own key.
const MAX_INLINE_BYTES: usize = 15;
/// The bits of the second half of a key that are of the word; the others are of the field.
const WORD_BITS: u32 = 56;
/// The bytes of a chunk of a batch. Memory in pieces of one size is used again without gaps, and a
/// segment gives back that of each piece when it is encoded.
const CHUNK_BYTES: usize = 32 << 10;
/// Upper bound of the bytes of an entry beside its term, its rows and its positions.
const MAX_ENTRY_HEAD_BYTES: usize = 22;

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
    /// The words of postings whose term is not known yet.
    waiting: Vec<WaitingWord>,
    waiting_text: Vec<u8>,
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

/// A word that waits for its lookup.
#[derive(Debug, Clone, Copy)]
struct WaitingWord {
    key: TermKey,
    hash: u64,
    /// The number of its posting.
    posting: usize,
    has_positions: bool,
    /// The field and the word in `waiting_text`; 0 bytes if the word is in its key.
    start: usize,
    length: usize,
}

/// A posting in the order of the calls.
#[derive(Debug, Clone, Copy)]
struct Posting {
    /// 0 while the word waits for its lookup.
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
    /// The terms in their order.
    order: Vec<OrderedTerm>,
}

/// A term beside its first bytes, so that most are sorted and written without a look at the text.
#[derive(Debug, Clone, Copy)]
struct OrderedTerm {
    /// See [`order_key`].
    key: [u64; 2],
    number: u32,
    length: u16,
    has_positions: bool,
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
        let term = self.find_or_wait(field, word, position.is_some());
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
        self.find_waiting();
        let mut sorted = mem::take(&mut self.sorted);
        self.sort_postings(&mut sorted);
        let mut batch = WordBatch { chunks: Vec::new(), last_row: self.last_row };
        let (mut lists, mut positions) = (PostingLists::default(), Vec::new());
        let mut previous = None;
        for term in &sorted.order {
            sorted.write_lists(term, &mut lists, &mut positions);
            let shared = previous.map_or(0, |previous| self.shared_bytes(previous, term));
            let start = term.key.map(u64::to_be_bytes);
            let bytes = match start.as_flattened().get(..term.length.into()) {
                Some(bytes) => bytes,
                None => self.term_bytes(term.number),
            };
            let suffix = bytes.get(shared..).unwrap_or_default();
            batch.add(shared, suffix, term.has_positions, &lists);
            previous = Some(term);
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

    /// Returns the number of a term, or 0 if it is the word of the next posting and waits.
    #[inline]
    fn find_or_wait(&mut self, field: u8, word: &[u8], has_positions: bool) -> u32 {
        if self.slots.is_empty() {
            self.grow();
        }
        let key = term_key(field, word, self.hash_key);
        let hash = hash_key(key, self.hash_key);
        let is_inline = word.len() <= MAX_INLINE_BYTES;
        if is_inline
            && let Some(frequent) = self.frequent.get(hash as usize % FREQUENT_WORDS)
            && frequent.key == key
        {
            return frequent.term;
        }
        if self.waiting.len() == GROUP_WORDS {
            self.find_waiting();
        }
        let (start, posting) = (self.waiting_text.len(), self.postings.len());
        if !is_inline {
            self.waiting_text.push(field);
            self.waiting_text.extend_from_slice(word);
        }
        let length = self.waiting_text.len() - start;
        self.waiting.push(WaitingWord { key, hash, posting, has_positions, start, length });
        0
    }

    /// Gives the postings of the waiting words their terms. Reads of memory that do not depend on
    /// each other run at the same time in the processor, so each loop does one for all words.
    fn find_waiting(&mut self) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slots = [0_u32; GROUP_WORDS];
        for (slot, word) in slots.iter_mut().zip(&self.waiting) {
            *slot = self.slots.get(word.hash as usize & mask).copied().unwrap_or(0);
        }
        // The number of no term has no key and no text.
        let terms = slots.map(|slot| slot.wrapping_sub(1));
        let keys = terms.map(|term| self.keys.get(term as usize).copied().unwrap_or_default());
        let mut starts = [None; GROUP_WORDS];
        for ((start, word), term) in starts.iter_mut().zip(&self.waiting).zip(terms) {
            if word.length > 0 {
                *start = self.terms.get(term as usize).map(|term| term.start as usize);
            }
        }
        let fields = starts.map(|start| start.and_then(|start| self.text.get(start)).copied());
        let (waiting, text) = (mem::take(&mut self.waiting), mem::take(&mut self.waiting_text));
        for (((word, term), key), field) in waiting.iter().zip(terms).zip(keys).zip(fields) {
            let long_term = text.get(word.start..word.start + word.length).unwrap_or_default();
            let is_found = key == word.key
                && (field == long_term.first().copied())
                && (long_term.is_empty() || self.term_bytes(term) == long_term);
            let term = if is_found { term } else { self.find_or_insert(word, long_term) };
            if let Some(posting) = self.postings.get_mut(word.posting) {
                posting.term = term;
            }
            if word.length == 0
                && let Some(frequent) = self.frequent.get_mut(word.hash as usize % FREQUENT_WORDS)
            {
                *frequent = FrequentWord { key: word.key, term };
            }
        }
        (self.waiting, self.waiting_text) = (waiting, text);
        self.waiting.clear();
        self.waiting_text.clear();
    }

    /// Returns the number of a term, which is added if it is new. `long_term` has the bytes of the
    /// term; it is empty if the word is in its key.
    fn find_or_insert(&mut self, word: &WaitingWord, long_term: &[u8]) -> u32 {
        if (self.terms.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = word.hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(place) {
            if *slot == 0 {
                *slot = self.terms.len() as u32 + 1;
                break;
            }
            let term = *slot - 1;
            if self.keys.get(term as usize) == Some(&word.key)
                && (long_term.is_empty() || self.term_bytes(term) == long_term)
            {
                return term;
            }
            place = (place + 1) & mask;
        }
        self.keys.push(word.key);
        let start = self.text.len();
        match long_term {
            [] => write_key_term(word.key, &mut self.text),
            bytes => self.text.extend_from_slice(bytes),
        }
        let length = (self.text.len() - start) as u16;
        let has_positions = word.has_positions;
        self.terms.push(Term { start: start as u32, length, has_positions });
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
        order.extend(self.terms.iter().zip(0..).map(|(term, number)| {
            let Term { length, has_positions, .. } = *term;
            OrderedTerm { key: order_key(term.bytes(&self.text)), number, length, has_positions }
        }));
        order.sort_unstable_by(|a, b| {
            let by_text = || self.term_bytes(a.number).cmp(self.term_bytes(b.number));
            a.key.cmp(&b.key).then_with(by_text)
        });
    }

    /// Returns the number of bytes at the beginning that two terms share.
    fn shared_bytes(&self, a: &OrderedTerm, b: &OrderedTerm) -> usize {
        let keys = a.key.iter().zip(b.key).zip([0, 8]);
        let mut differences = keys.map(|((a, b), start)| (a ^ b, start));
        match differences.find(|(difference, _)| *difference != 0) {
            Some((difference, start)) => start + (difference.leading_zeros() / 8) as usize,
            None => {
                let bytes = self.term_bytes(a.number).iter().zip(self.term_bytes(b.number));
                bytes.take_while(|(a, b)| a == b).count()
            }
        }
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

    /// Replaces `lists` by those of a term. `positions` is a buffer.
    fn write_lists(&self, term: &OrderedTerm, lists: &mut PostingLists, positions: &mut Vec<u32>) {
        lists.rows.clear();
        lists.positions.clear();
        let mut previous = 0;
        for places in self.places(term.number).chunk_by(|a, b| a.row == b.row) {
            let Some(first) = places.first() else { continue };
            write_varint(&mut lists.rows, u64::from(first.row - previous));
            previous = first.row;
            match places {
                _ if !term.has_positions => {}
                [place] => {
                    write_varint(&mut lists.positions, u64::from(place.position) << 1 | 1);
                }
                places => {
                    positions.clear();
                    positions.extend(places.iter().map(|place| place.position));
                    positions.dedup();
                    write_position_list(&mut lists.positions, positions);
                }
            }
        }
    }
}

/// The rows of a term as gaps, and its position lists, one after the other.
#[derive(Debug, Default)]
struct PostingLists {
    rows: Vec<u8>,
    positions: Vec<u8>,
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

/// Appends the term of a key: the field and the word, which is in the key.
fn write_key_term([start, end]: TermKey, text: &mut Vec<u8>) {
    let word = [start, end & ((1 << WORD_BITS) - 1)].map(u64::to_le_bytes);
    text.push((end >> WORD_BITS) as u8);
    // A word has no zero byte.
    text.extend(word.as_flattened().iter().take_while(|byte| **byte != 0));
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
/// of bytes that follow, and these; then, as varints, the length of its rows, doubled, plus one if
/// it has positions, and the length of these in that case; then the rows, each as its distance from
/// the one before, the first one's from 0, and the position lists of the rows. The position lists
/// stand together, so that they are copied at once.
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

    /// Adds a term that shares so many bytes with the one before.
    fn add(&mut self, shared: usize, suffix: &[u8], has_positions: bool, lists: &PostingLists) {
        let PostingLists { rows, positions } = lists;
        let bytes = suffix.len() + rows.len() + positions.len();
        let chunk = self.chunk_for(MAX_ENTRY_HEAD_BYTES + bytes);
        // A term has at most `MAX_WORD_BYTES`.
        chunk.extend_from_slice(&[shared as u8, suffix.len() as u8]);
        chunk.extend_from_slice(suffix);
        write_varint(chunk, (rows.len() as u64) << 1 | u64::from(has_positions));
        if has_positions {
            write_varint(chunk, positions.len() as u64);
        }
        chunk.extend_from_slice(rows);
        chunk.extend_from_slice(positions);
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
    rows: Range<usize>,
    positions: Range<usize>,
}

impl WordBatchReader {
    /// Opens a batch at its first term.
    pub(crate) fn open(batch: WordBatch) -> WordBatchReader {
        let mut reader = WordBatchReader {
            chunks: batch.chunks.into_iter(),
            chunk: Vec::new(),
            next: 0,
            term: Vec::with_capacity(MAX_WORD_BYTES),
            rows: 0..0,
            positions: 0..0,
        };
        reader.advance();
        reader
    }

    /// Returns the rows of the current term, as gaps.
    pub(crate) fn rows(&self) -> &[u8] {
        self.chunk.get(self.rows.clone()).unwrap_or_default()
    }

    /// Returns the position lists of these rows; nothing if the term has no positions.
    pub(crate) fn positions(&self) -> &[u8] {
        self.chunk.get(self.positions.clone()).unwrap_or_default()
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
            (self.rows, self.positions) = (0..0, 0..0);
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
        let positions = if head & 1 == 1 { read_varint(&mut rest)? as usize } else { 0 };
        let start = self.chunk.len() - rest.len();
        let rows_end = start + (head >> 1) as usize;
        self.next = rows_end + positions;
        (self.rows, self.positions) = (start..rows_end, rows_end..self.next);
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
            let key = term_key(b'w', &word, 3);
            assert_eq!(key.map(u64::to_le_bytes).concat(), bytes);
            let mut term = Vec::new();
            write_key_term(key, &mut term);
            assert_eq!(term.split_first(), Some((&b'w', word.as_slice())));
        }
    }

    #[test]
    fn long_words_have_keys_that_no_short_word_has() {
        for length in MAX_INLINE_BYTES + 1..40 {
            assert_eq!(term_key(b'w', &vec![0xff; length], u64::MAX)[1] >> WORD_BITS, 0);
        }
    }
}
