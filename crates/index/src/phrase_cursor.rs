//! A cursor over the rows of a phrase: of words that stand at certain distances from each other.
//!
//! The rows that have all words are found first, the rarest word in front, and only their positions
//! are compared. A row is in one segment with all of its words, unless a merge has moved some of
//! them, so the words are compared segment by segment; the rows that are left, and those with very
//! many positions, are read one by one. Separate from `word_cursor`, which reads one term, from
//! `phrase_candidates`, which knows rows alone, and from `position_list` and `phrase_starts`, which
//! compare positions in one row.

use crate::block::CorruptBlock;
use crate::phrase_candidates::PhraseCandidates;
use crate::phrase_starts::{PhraseAnswer, PhraseStarts};
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
    /// The rows that have all words, as far as they are known.
    candidates: PhraseCandidates,
    /// The table that decides most rows; `None`: the distances are too great.
    starts: Option<PhraseStarts>,
    /// The answers for the candidates.
    answers: Vec<PhraseAnswer>,
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

/// A word of a phrase in one segment.
struct SegmentWord<'c> {
    cursor: &'c SegmentCursor,
    /// The places of the candidates among the rows of the cursor.
    places: &'c [u32],
    distance: u32,
}

/// The part of a phrase that is compared, and the most steps for it.
#[derive(Debug, Clone, Copy)]
struct PhraseLimits<'r> {
    /// The positions that count.
    range: &'r Range<u32>,
    max_steps: u64,
}

impl PhraseCursor {
    /// Begins to read a phrase of words with their distances from its beginning.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = (WordCursor, u32)>) -> PhraseCursor {
        let words = words.into_iter();
        let words =
            words.map(|(cursor, distance)| PhraseWord { cursor, distance, asked: 0, found: 0 });
        let words: Vec<PhraseWord> = words.collect();
        let distances = words.iter().map(|word| word.distance);
        let starts = PhraseStarts::can_compare(distances).then(PhraseStarts::default);
        let (candidates, answers) = (PhraseCandidates::default(), Vec::new());
        PhraseCursor { words, candidates, starts, answers, steps: 0 }
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
        // They are mostly in order, so this is one pass.
        self.words.sort_by_key(PhraseWord::frequency);
        let limits = PhraseLimits { range, max_steps };
        let mut open = vec![0; rows.len()];
        match self.read_candidates(index, first_row, rows)? {
            Some(segment) => {
                rows.fill(0);
                self.compare_candidates::<P>(segment, limits, first_row, rows, &mut open)?;
            }
            None => self.retain_among_segments(index, limits, first_row, rows, &mut open)?,
        }
        for (place, open) in open.iter_mut().enumerate() {
            while *open != 0 && self.steps <= max_steps {
                let bit = open.trailing_zeros();
                let before = u32::try_from(place * 64).unwrap_or(u32::MAX);
                let row = first_row.saturating_add(before).saturating_add(bit);
                let is_match = self.is_match(index, row, limits)?;
                set_bit(rows, place, bit, is_match);
                *open &= *open - 1;
            }
        }
        Ok(self.steps <= max_steps)
    }

    /// Reads the words, and collects the rows that have all of them, if these are in one segment
    /// only. Returns the segment; `None`: a word is in several.
    fn read_candidates<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        first_row: u32,
        rows: &[u64],
    ) -> Result<Option<usize>, P::Error> {
        let mut segment = None;
        self.candidates.clear();
        for (number, word) in self.words.iter_mut().enumerate() {
            let wanted = match number {
                0 => row_range(first_row, rows),
                _ => self.candidates.row_range(),
            };
            let Some(wanted) = wanted else { break };
            word.cursor.read_range(index, &wanted)?;
            let places = word.cursor.segments.iter().map(|one| one.places_within(&wanted));
            let mut with_rows = places.enumerate().filter(|(_, places)| !places.is_empty());
            let Some((found, places)) = with_rows.next() else {
                self.candidates.clear();
                break;
            };
            if with_rows.next().is_some() || segment.is_some_and(|segment| segment != found) {
                return Ok(None);
            }
            segment = Some(found);
            word.count(&wanted, places.len());
            let word_rows = word.cursor.segments.get(found).map_or(&[][..], |one| &one.rows);
            match number {
                0 => self.candidates.select(word_rows, places, first_row, rows),
                _ => self.candidates.intersect(word_rows, places),
            }
        }
        Ok(Some(segment.unwrap_or_default()))
    }

    /// Retains the rows of words that are in several segments, and sets the bits of those that are
    /// to be compared one by one in `open`.
    fn retain_among_segments<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        limits: PhraseLimits<'_>,
        first_row: u32,
        rows: &mut [u64],
        open: &mut [u64],
    ) -> Result<(), P::Error> {
        for word in &mut self.words {
            let Some(wanted) = row_range(first_row, rows) else { break };
            word.cursor.read_range(index, &wanted)?;
            let mut found = vec![0; rows.len()];
            for segment in &word.cursor.segments {
                set_rows(&mut found, first_row, segment.rows_within(&wanted));
            }
            word.count(&wanted, found.iter().map(|word| word.count_ones() as usize).sum());
            rows.iter_mut().zip(&found).for_each(|(row, found)| *row &= found);
        }
        let Some(wanted) = row_range(first_row, rows) else { return Ok(()) };
        let (mut compared, mut matches) = (vec![0; rows.len()], vec![0; rows.len()]);
        for segment in 0..index.segment_count() {
            self.candidates.clear();
            for (number, word) in self.words.iter().enumerate() {
                let Some(one) = word.cursor.segments.get(segment) else { continue };
                let places = one.places_within(&wanted);
                match number {
                    0 => self.candidates.select(&one.rows, places, first_row, rows),
                    _ => self.candidates.intersect(&one.rows, places),
                }
            }
            set_rows(&mut compared, first_row, self.candidates.rows());
            self.compare_candidates::<P>(segment, limits, first_row, &mut matches, open)?;
        }
        for (place, row) in rows.iter_mut().enumerate() {
            let compared = compared.get(place).copied().unwrap_or_default();
            // A merge has moved some words of these.
            if let Some(open) = open.get_mut(place) {
                *open |= *row & !compared;
            }
            *row = matches.get(place).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Compares the positions of the candidates, which are of one segment. Sets the bits of the
    /// rows that match, and in `open` those of rows whose positions continue in other entries.
    fn compare_candidates<P: ReadSegments>(
        &mut self,
        segment: usize,
        limits: PhraseLimits<'_>,
        first_row: u32,
        rows: &mut [u64],
        open: &mut [u64],
    ) -> Result<(), P::Error> {
        if self.candidates.rows().is_empty() {
            return Ok(());
        }
        for (word, places) in self.words.iter_mut().zip(self.candidates.places()) {
            let end = places.last().map_or(0, |last| *last as usize + 1);
            if let Some(cursor) = word.cursor.segments.get_mut(segment) {
                cursor.find_lists(end).map_err(P::corruption)?;
            }
        }
        let words = self.words.iter().zip(self.candidates.places());
        let words: Vec<SegmentWord<'_>> =
            words.filter_map(|(word, places)| word.in_segment(segment, places)).collect();
        self.answers.clear();
        self.answers.resize(self.candidates.rows().len(), PhraseAnswer::Open);
        if let (Some(starts), [first, others @ ..]) = (&mut self.starts, words.as_slice()) {
            for word in others {
                self.steps += compare_words(starts, first, word, &mut self.answers);
            }
        }
        // The quick comparison knows two words, and no range.
        let is_exact = words.len() == 2 && (limits.range.start, limits.range.end) == (0, u32::MAX);
        let mut streams = Vec::with_capacity(words.len());
        for (number, row) in self.candidates.rows().iter().enumerate() {
            let place = row.wrapping_sub(first_row);
            let (at, bit) = (place as usize / 64, place % 64);
            match self.answers.get(number) {
                None | Some(PhraseAnswer::Absent) => continue,
                Some(PhraseAnswer::Found) if is_exact => {
                    set_bit(rows, at, bit, true);
                    continue;
                }
                Some(_) => {}
            }
            if self.steps > limits.max_steps {
                return Ok(());
            }
            streams.clear();
            let list_kind = open_streams(&words, number, &mut streams).map_err(P::corruption)?;
            match list_kind {
                ListKind::Continued => set_bit(open, at, bit, true),
                ListKind::Missing => {}
                ListKind::Whole => {
                    let max_steps = limits.max_steps;
                    let is_match =
                        has_phrase(&mut streams, limits.range, &mut self.steps, max_steps);
                    set_bit(rows, at, bit, is_match.map_err(P::corruption)?);
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
        limits: PhraseLimits<'_>,
    ) -> Result<bool, P::Error> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &mut self.words {
            let mut positions = Vec::new();
            word.cursor.positions(index, row, &mut positions)?;
            self.steps += positions.len() as u64;
            if self.steps > limits.max_steps {
                return Ok(false);
            }
            positions.retain(|position| limits.range.contains(position));
            words.push((positions, word.distance));
        }
        let words: Vec<(&[u32], u32)> =
            words.iter().map(|(positions, distance)| (positions.as_slice(), *distance)).collect();
        let fewest = words.iter().map(|(positions, _)| positions.len()).min().unwrap_or(0);
        self.steps += fewest.saturating_mul(words.len()) as u64;
        Ok(self.steps <= limits.max_steps && count_phrase(&words) > 0)
    }
}

impl PhraseWord {
    /// Returns how many of a million rows have the word, as far as known.
    fn frequency(&self) -> u64 {
        self.found.saturating_mul(1_000_000) / self.asked.max(1)
    }

    /// Counts rows that were looked up, and those that have the word.
    fn count(&mut self, wanted: &Range<u64>, found: usize) {
        self.asked += wanted.end - wanted.start;
        self.found += found as u64;
    }

    fn in_segment<'c>(&'c self, segment: usize, places: &'c [u32]) -> Option<SegmentWord<'c>> {
        let cursor = self.cursor.segments.get(segment)?;
        Some(SegmentWord { cursor, places, distance: self.distance })
    }
}

impl<'c> SegmentWord<'c> {
    /// Returns the place of the list of a candidate.
    #[inline]
    fn list_place(&self, number: usize) -> Option<Range<usize>> {
        self.cursor.list_place(*self.places.get(number)? as usize)
    }

    /// Returns the positions of the word in a candidate.
    #[inline]
    fn list(&self, number: usize) -> Option<&'c [u8]> {
        self.cursor.lists().get(self.list_place(number)?)
    }
}

/// Compares two words of a phrase in each candidate that is not known to be without it. A candidate
/// whose positions may continue in other entries stays open unless its first ones have the phrase.
/// Returns the number of steps.
fn compare_words(
    starts: &mut PhraseStarts,
    first: &SegmentWord<'_>,
    second: &SegmentWord<'_>,
    answers: &mut [PhraseAnswer],
) -> u64 {
    let mut steps = 0;
    for (number, answer) in answers.iter_mut().enumerate() {
        if *answer == PhraseAnswer::Absent {
            continue;
        }
        let (Some(one), Some(other)) = (first.list(number), second.list(number)) else {
            continue;
        };
        steps += (one.len() + other.len()) as u64;
        let compared = starts.compare((one, first.distance), (other, second.distance));
        let may_continue = one.len().max(other.len()) >= MIN_CONTINUED_BYTES;
        *answer = match compared {
            PhraseAnswer::Absent if may_continue => PhraseAnswer::Open,
            compared => compared,
        };
    }
    steps
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

/// Begins to read the positions of the words in a candidate.
fn open_streams<'c>(
    words: &[SegmentWord<'c>],
    number: usize,
    streams: &mut Vec<(PositionStream<'c>, u32)>,
) -> Result<ListKind, CorruptBlock> {
    let mut kind = ListKind::Whole;
    for word in words {
        let Some(place) = word.list_place(number) else { return Ok(ListKind::Missing) };
        if place.len() >= MIN_CONTINUED_BYTES {
            kind = ListKind::Continued;
        }
        let list = word.cursor.lists().get(place).ok_or(CorruptBlock)?;
        streams.push((PositionStream::open(list)?, word.distance));
    }
    Ok(kind)
}

/// Sets the bits of rows.
fn set_rows(bits: &mut [u64], first_row: u32, rows: &[u32]) {
    for row in rows {
        let place = row.wrapping_sub(first_row);
        if let Some(word) = bits.get_mut(place as usize / 64) {
            *word |= 1 << (place % 64);
        }
    }
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
