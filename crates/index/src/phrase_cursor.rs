//! A cursor over the rows of a phrase: of words that stand at certain distances from each other.
//!
//! The rows that have all words are found first, the rarest word in front, and only their positions
//! are compared. A row is in one segment with all of its words, unless a merge has moved some of
//! them, so the words are compared segment by segment; the rows that are left, and those with very
//! many positions, are read one by one. Separate from `word_cursor`, which reads one term, and from
//! `position_list`, which compares positions in one row.

use crate::position_list::{PositionStream, count_phrase, has_phrase};
use crate::segment_storage::ReadSegments;
use crate::word_block::MIN_CONTINUED_BYTES;
use crate::word_cursor::{END_OF_ROWS, WordCursor};
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
}

impl PhraseCursor {
    /// Begins to read a phrase of words with their distances from its beginning.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = (WordCursor, u32)>) -> PhraseCursor {
        let words = words.into_iter();
        let words =
            words.map(|(cursor, distance)| PhraseWord { cursor, distance, asked: 0, found: 0 });
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
        let mut found = vec![0; rows.len()];
        for word in &mut self.words {
            let Some(wanted) = row_range(first_row, rows) else { return Ok(true) };
            word.cursor.read_range(index, &wanted)?;
            found.fill(0);
            let mut bits = RowBits { first_row, bits: &mut found };
            for segment in &word.cursor.segments {
                let rows = segment.rows_within(&wanted);
                rows.iter().for_each(|row| bits.set(*row, true));
                word.found += rows.len() as u64;
            }
            word.asked += wanted.end - wanted.start;
            rows.iter_mut().zip(&found).for_each(|(word, found)| *word &= found);
        }
        let Some(wanted) = row_range(first_row, rows) else { return Ok(true) };
        let mut compared = vec![0; rows.len()];
        for segment in 0..index.segment_count() {
            self.retain_in_segment::<P>(
                segment,
                &wanted,
                range,
                &mut RowBits { first_row, bits: rows },
                &mut RowBits { first_row, bits: &mut compared },
                max_steps,
            )?;
        }
        for (place, compared) in compared.iter().enumerate() {
            let mut open = rows.get(place).map_or(0, |word| word & !compared);
            while open != 0 && self.steps <= max_steps {
                let at = place * 64 + open.trailing_zeros() as usize;
                let row = first_row.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
                let is_match = self.is_match(index, row, range, max_steps)?;
                RowBits { first_row, bits: rows }.set(row, is_match);
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
        wanted: &Range<u64>,
        range: &Range<u32>,
        rows: &mut RowBits<'_>,
        compared: &mut RowBits<'_>,
        max_steps: u64,
    ) -> Result<(), P::Error> {
        let mut places = Vec::with_capacity(self.words.len());
        for word in &mut self.words {
            let Some(segment) = word.cursor.segments.get_mut(segment) else { return Ok(()) };
            let within = segment.places_within(wanted);
            segment.find_lists(within.end).map_err(P::corruption)?;
            if within.is_empty() {
                return Ok(());
            }
            places.push(within.start);
        }
        let segments: Vec<_> = self
            .words
            .iter()
            .filter_map(|word| Some((word.cursor.segments.get(segment)?, word.distance)))
            .collect();
        let Some(((rarest, _), others)) = segments.split_first() else { return Ok(()) };
        let mut streams = Vec::with_capacity(segments.len());
        let first = places.first().copied().unwrap_or_default();
        let within = rarest.places_within(wanted).end;
        'rows: for number in first..within {
            let Some(row) = rarest.rows.get(number).copied().filter(|row| rows.has(*row)) else {
                continue;
            };
            if let Some(place) = places.first_mut() {
                *place = number;
            }
            for ((other, _), place) in others.iter().zip(places.iter_mut().skip(1)) {
                let rest = other.rows.get(*place..).unwrap_or_default();
                *place += rest.iter().take_while(|other| **other < row).count();
                if other.rows.get(*place) != Some(&row) {
                    continue 'rows;
                }
            }
            streams.clear();
            let mut is_long = false;
            for ((segment, distance), place) in segments.iter().zip(&places) {
                let Some(list) = segment.list(*place) else {
                    // The term has no positions.
                    rows.set(row, false);
                    compared.set(row, true);
                    continue 'rows;
                };
                is_long |= list.len() >= MIN_CONTINUED_BYTES;
                streams.push((PositionStream::open(list).map_err(P::corruption)?, *distance));
            }
            if is_long {
                continue;
            }
            compared.set(row, true);
            let is_match = has_phrase(&mut streams, range, &mut self.steps, max_steps);
            rows.set(row, is_match.map_err(P::corruption)?);
            if self.steps > max_steps {
                break;
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
}

/// The rows of a range as bits.
struct RowBits<'b> {
    first_row: u32,
    bits: &'b mut [u64],
}

impl RowBits<'_> {
    fn has(&self, row: u32) -> bool {
        let place = row.wrapping_sub(self.first_row);
        self.bits.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    fn set(&mut self, row: u32, is_set: bool) {
        let place = row.wrapping_sub(self.first_row);
        if let Some(word) = self.bits.get_mut(place as usize / 64) {
            let bit = 1 << (place % 64);
            *word = if is_set { *word | bit } else { *word & !bit };
        }
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
