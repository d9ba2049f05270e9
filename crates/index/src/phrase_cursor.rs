//! A cursor over the rows of a phrase: of words that stand at certain distances from each other.
//!
//! The rows that have all words are found first, the rarest word in front, and only their positions
//! are compared. A row is in one segment with all of its words, unless a merge has moved some of
//! them, so the words are compared segment by segment; the rows that are left, and those with very
//! many positions, are read one by one. Separate from `word_cursor`, which reads one term, and from
//! `position_list`, which compares positions in one row.

use crate::block::CorruptBlock;
use crate::position_list::{PositionStream, count_phrase, has_phrase};
use crate::segment_storage::ReadSegments;
use crate::word_block::MIN_CONTINUED_BYTES;
use crate::word_cursor::{END_OF_ROWS, SegmentCursor, WordCursor};
use crate::word_index::WordIndex;
use std::ops::Range;

/// Reads the rows in which words stand at certain distances from each other.
#[derive(Debug)]
pub struct PhraseCursor {
    words: Vec<PhraseWord>,
    /// The number of steps of the last call.
    steps: u64,
}

#[derive(Debug)]
struct PhraseWord {
    cursor: WordCursor,
    /// The distance from the beginning of the phrase.
    distance: u32,
    /// The number of rows that it was looked up in, and of those that have it.
    asked: u64,
    found: u64,
    /// The rows of the last call that have it, for each segment.
    places: Vec<RowPlaces>,
}

/// The rows of a range that have a word, as bits, and their places among the rows of its cursor.
#[derive(Debug, Default)]
struct RowPlaces {
    bits: Vec<u64>,
    /// The place of the first row of each word of bits.
    first_places: Vec<usize>,
    /// The place behind the last row.
    end: usize,
}

/// A word of a phrase in one segment.
struct SegmentWord<'c> {
    cursor: &'c SegmentCursor,
    places: &'c RowPlaces,
    distance: u32,
}

impl PhraseCursor {
    /// Begins to read a phrase of words with their distances from its beginning.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = (WordCursor, u32)>) -> PhraseCursor {
        let words = words.into_iter();
        let words = words.map(|(cursor, distance)| PhraseWord {
            cursor,
            distance,
            asked: 0,
            found: 0,
            places: Vec::new(),
        });
        PhraseCursor { words: words.collect(), steps: 0 }
    }

    /// Returns the terms of the words, the rarest first as far as known.
    pub fn terms(&self) -> impl Iterator<Item = &[u8]> {
        self.words.iter().map(|word| word.cursor.term())
    }

    /// Returns the number of positions that the last call read or compared, and of words that it
    /// looked up.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Clears the bits of the rows that do not have the phrase at positions in `range`: row
    /// `first_row + n` is the bit `n % 64` of the word `n / 64`. Returns false, and rows that are
    /// not to be used, if that takes more than `max_steps`. `index` is the one that the cursors are
    /// of.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn retain_rows<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        range: &Range<u32>,
        first_row: u32,
        rows: &mut [u64],
        max_steps: u64,
    ) -> Result<bool, P::Error> {
        self.steps = 0;
        if self.words.is_empty() {
            rows.fill(0);
        }
        // They are mostly in order, so this is one pass.
        self.words.sort_by_key(PhraseWord::frequency);
        for word in &mut self.words {
            let Some(wanted) = row_range(first_row, rows) else { return Ok(true) };
            word.cursor.read_range(index, &wanted)?;
            word.places.resize_with(word.cursor.segments.len(), RowPlaces::default);
            for (segment, places) in word.cursor.segments.iter().zip(&mut word.places) {
                let within = segment.places_within(&wanted);
                word.found += within.len() as u64;
                places.read(&segment.rows, within, first_row, rows.len());
            }
            word.asked += wanted.end - wanted.start;
            for (at, row) in rows.iter_mut().enumerate() {
                *row &= word.places.iter().fold(0, |any, places| any | places.bits_at(at));
            }
        }
        let mut compared = vec![0; rows.len()];
        for segment in 0..index.segment_count() {
            self.retain_in_segment::<P>(segment, range, rows, &mut compared, max_steps)?;
        }
        for (place, compared) in compared.iter().enumerate() {
            let mut open = rows.get(place).map_or(0, |word| word & !compared);
            while open != 0 && self.steps <= max_steps {
                let bit = open.trailing_zeros();
                let before = u32::try_from(place * 64).unwrap_or(u32::MAX);
                let row = first_row.saturating_add(before).saturating_add(bit);
                let is_match = self.is_match(index, row, range, max_steps)?;
                set_bit(rows, place, bit, is_match);
                open &= open - 1;
            }
        }
        Ok(self.steps <= max_steps)
    }

    /// Compares the positions in the rows that have all words in one segment, and sets their bits
    /// in `compared`; but not in rows whose positions continue in other entries.
    fn retain_in_segment<P: ReadSegments>(
        &mut self,
        segment: usize,
        range: &Range<u32>,
        rows: &mut [u64],
        compared: &mut [u64],
        max_steps: u64,
    ) -> Result<(), P::Error> {
        let has_candidate = (0..rows.len()).any(|at| {
            let bits = rows.get(at).copied().unwrap_or_default();
            self.words.iter().fold(bits, |bits, word| bits & word.bits_at(segment, at)) != 0
        });
        if !has_candidate {
            return Ok(());
        }
        for word in &mut self.words {
            if let (Some(cursor), Some(places)) =
                (word.cursor.segments.get_mut(segment), word.places.get(segment))
            {
                cursor.find_lists(places.end).map_err(P::corruption)?;
            }
        }
        let words = self.words.iter().filter_map(|word| word.in_segment(segment));
        let words: Vec<SegmentWord<'_>> = words.collect();
        let mut streams = Vec::with_capacity(words.len());
        for at in 0..rows.len() {
            let bits = rows.get(at).copied().unwrap_or_default();
            let mut open = words.iter().fold(bits, |bits, word| bits & word.places.bits_at(at));
            while open != 0 {
                let bit = open.trailing_zeros();
                open &= open - 1;
                streams.clear();
                let list_kind =
                    open_streams(&words, at, bit, &mut streams).map_err(P::corruption)?;
                let is_match = match list_kind {
                    ListKind::Continued => continue,
                    ListKind::Missing => false,
                    ListKind::Whole => has_phrase(&mut streams, range, &mut self.steps, max_steps)
                        .map_err(P::corruption)?,
                };
                set_bit(compared, at, bit, true);
                set_bit(rows, at, bit, is_match);
                if self.steps > max_steps {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Compares all positions in a row.
    fn is_match<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        row: u32,
        range: &Range<u32>,
        max_steps: u64,
    ) -> Result<bool, P::Error> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &mut self.words {
            let mut positions = Vec::new();
            word.cursor.positions(index, row, &mut positions)?;
            self.steps += positions.len() as u64;
            if self.steps > max_steps {
                return Ok(false);
            }
            positions.retain(|position| range.contains(position));
            words.push((positions, word.distance));
        }
        let words: Vec<(&[u32], u32)> =
            words.iter().map(|(positions, distance)| (positions.as_slice(), *distance)).collect();
        let fewest = words.iter().map(|(positions, _)| positions.len()).min().unwrap_or(0);
        self.steps += fewest.saturating_mul(words.len()) as u64;
        Ok(self.steps <= max_steps && count_phrase(&words) > 0)
    }
}

impl PhraseWord {
    /// Returns how many of a million rows have the word, as far as known.
    fn frequency(&self) -> u64 {
        self.found.saturating_mul(1_000_000) / self.asked.max(1)
    }

    /// Returns the bits of the rows in a segment.
    fn bits_at(&self, segment: usize, at: usize) -> u64 {
        self.places.get(segment).map_or(0, |places| places.bits_at(at))
    }

    fn in_segment(&self, segment: usize) -> Option<SegmentWord<'_>> {
        let (cursor, places) = (self.cursor.segments.get(segment)?, self.places.get(segment)?);
        Some(SegmentWord { cursor, places, distance: self.distance })
    }
}

impl RowPlaces {
    /// Reads the rows at these places, which ascend from `first_row` on, as so many words of bits.
    fn read(&mut self, rows: &[u32], within: Range<usize>, first_row: u32, words: usize) {
        self.bits.clear();
        self.bits.resize(words, 0);
        for row in rows.get(within.clone()).unwrap_or_default() {
            let place = row.wrapping_sub(first_row);
            if let Some(word) = self.bits.get_mut(place as usize / 64) {
                *word |= 1 << (place % 64);
            }
        }
        self.first_places.clear();
        self.end = within.start;
        for word in &self.bits {
            self.first_places.push(self.end);
            self.end += word.count_ones() as usize;
        }
    }

    #[inline]
    fn bits_at(&self, at: usize) -> u64 {
        self.bits.get(at).copied().unwrap_or_default()
    }

    /// Returns the index of a row's posting in its cursor.
    #[inline]
    fn posting_index(&self, at: usize, bit: u32) -> usize {
        let before = self.bits_at(at) & ((1 << bit) - 1);
        let first = self.first_places.get(at).copied().unwrap_or_default();
        first + before.count_ones() as usize
    }
}

impl<'c> SegmentWord<'c> {
    /// Returns the position list of a row.
    fn list(&self, at: usize, bit: u32) -> Option<&'c [u8]> {
        self.cursor.list(self.places.posting_index(at, bit))
    }
}

/// The lists of positions of the words in a row.
enum ListKind {
    /// All positions are in the lists.
    Whole,
    /// Some may continue in other entries.
    Continued,
    /// A term has no positions.
    Missing,
}

/// Begins to read the positions of the words in a row.
fn open_streams<'c>(
    words: &[SegmentWord<'c>],
    at: usize,
    bit: u32,
    streams: &mut Vec<(PositionStream<'c>, u32)>,
) -> Result<ListKind, CorruptBlock> {
    let mut kind = ListKind::Whole;
    for word in words {
        let Some(list) = word.list(at, bit) else { return Ok(ListKind::Missing) };
        if list.len() >= MIN_CONTINUED_BYTES {
            kind = ListKind::Continued;
        }
        streams.push((PositionStream::open(list)?, word.distance));
    }
    Ok(kind)
}

/// Sets or clears a bit.
fn set_bit(bits: &mut [u64], at: usize, bit: u32, is_set: bool) {
    if let Some(word) = bits.get_mut(at) {
        *word = *word & !(1 << bit) | u64::from(is_set) << bit;
    }
}

/// Returns the range from the first to the last row; `None`: there is no row.
fn row_range(first_row: u32, rows: &[u64]) -> Option<Range<u64>> {
    let first = rows.iter().position(|word| *word != 0)?;
    let last = rows.iter().rposition(|word| *word != 0)?;
    let start = first as u64 * 64 + u64::from(rows.get(first)?.trailing_zeros());
    let end = last as u64 * 64 + 64 - u64::from(rows.get(last)?.leading_zeros());
    let first_row = u64::from(first_row);
    Some(first_row + start..(first_row + end).min(END_OF_ROWS))
}
