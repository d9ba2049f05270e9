//! The rows of a segment that have all words of a phrase, and their places among the rows of each
//! word.
//!
//! Separate from `phrase_cursor`, which reads the rows: two lists of rows are intersected here,
//! without a branch for each row if they are about as long.

use std::ops::Range;

/// If a list is so many times longer than the other one, its rows are searched for, not passed.
const SEARCH_RATIO: usize = 16;

/// The rows that have all words that were added so far.
#[derive(Debug, Default)]
pub(crate) struct PhraseCandidates {
    rows: Vec<u32>,
    /// For each word, the number of each row among its rows.
    places: Vec<Vec<u32>>,
    /// The number of words.
    words: usize,
    /// The numbers of the rows that the next word has.
    kept: Vec<u32>,
}

impl PhraseCandidates {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.words = 0;
    }

    /// Returns the rows, ascending.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Returns the places of the rows, for each word.
    pub(crate) fn places(&self) -> &[Vec<u32>] {
        self.places.get(..self.words).unwrap_or_default()
    }

    /// Returns the range from the first to the last row; `None`: there is no row.
    pub(crate) fn row_range(&self) -> Option<Range<u64>> {
        Some(u64::from(*self.rows.first()?)..u64::from(*self.rows.last()?) + 1)
    }

    /// Begins with the rows of a word at these places that are among the bits from `first_row` on.
    pub(crate) fn select(
        &mut self,
        word_rows: &[u32],
        places: Range<usize>,
        first_row: u32,
        bits: &[u64],
    ) {
        self.clear();
        let first_place = places.start;
        self.rows.extend_from_slice(word_rows.get(places).unwrap_or_default());
        self.begin_word(self.rows.len());
        let PhraseCandidates { rows, places, .. } = self;
        let Some(found) = places.first_mut() else { return };
        let mut count = 0;
        for number in 0..rows.len() {
            let row = rows[number];
            let at = row.wrapping_sub(first_row);
            let word = bits.get(at as usize / 64).copied().unwrap_or_default();
            found[count] = (first_place + number) as u32;
            rows[count] = row;
            count += (word >> (at % 64) & 1) as usize;
        }
        found.truncate(count);
        rows.truncate(count);
    }

    /// Retains the rows that a further word has among its rows at these places.
    pub(crate) fn intersect(&mut self, word_rows: &[u32], places: Range<usize>) {
        let first_place = places.start;
        let word_rows = word_rows.get(places).unwrap_or_default();
        let most = self.rows.len().min(word_rows.len());
        self.kept.clear();
        self.kept.resize(most + 1, 0);
        self.begin_word(most + 1);
        let PhraseCandidates { rows, places, words, kept } = self;
        let Some((found, before)) =
            places.get_mut(..*words).and_then(|places| places.split_last_mut())
        else {
            return;
        };
        let (mut place, mut count) = (0, 0);
        if rows.len().saturating_mul(SEARCH_RATIO) < word_rows.len() {
            for (number, row) in rows.iter().enumerate() {
                let rest = word_rows.get(place..).unwrap_or_default();
                place += rest.partition_point(|other| other < row);
                if word_rows.get(place) == Some(row) {
                    (kept[count], found[count]) = (number as u32, (first_place + place) as u32);
                    count += 1;
                }
            }
        } else {
            let mut number = 0;
            while let (Some(row), Some(other)) = (rows.get(number), word_rows.get(place)) {
                (kept[count], found[count]) = (number as u32, (first_place + place) as u32);
                count += usize::from(row == other);
                number += usize::from(row <= other);
                place += usize::from(other <= row);
            }
        }
        kept.truncate(count);
        found.truncate(count);
        for list in before.iter_mut().chain([rows]) {
            for (to, from) in kept.iter().enumerate() {
                list[to] = list[*from as usize];
            }
            list.truncate(count);
        }
    }

    /// Adds a word with places for so many rows.
    fn begin_word(&mut self, count: usize) {
        if self.places.len() == self.words {
            self.places.push(Vec::new());
        }
        if let Some(places) = self.places.get_mut(self.words) {
            places.clear();
            places.resize(count, 0);
        }
        self.words += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The candidates are the rows that all words have, with their places.
        #[test]
        fn candidates_are_the_rows_of_all_words(
            words in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::btree_set(100..300_u32, 0..150),
                    proptest::collection::btree_set(100..300_u32, 0..5),
                ],
                1..4,
            ),
            bits in proptest::collection::vec(0_u64.., 4),
        ) {
            let has_bit = |row: &u32| bits[*row as usize / 64 - 1] >> (row % 64) & 1 == 1;
            let words: Vec<Vec<u32>> =
                words.into_iter().map(|rows| rows.into_iter().collect()).collect();
            let mut candidates = PhraseCandidates::default();
            candidates.select(&words[0], 0..words[0].len(), 64, &bits);
            let mut expected: BTreeSet<u32> = words[0].iter().copied().filter(has_bit).collect();
            for rows in &words[1..] {
                let middle = rows.len() / 3;
                candidates.intersect(rows, middle..rows.len());
                expected.retain(|row| rows[middle..].contains(row));
            }
            prop_assert_eq!(candidates.rows(), expected.into_iter().collect::<Vec<u32>>());
            prop_assert_eq!(candidates.places().len(), words.len());
            for (places, rows) in candidates.places().iter().zip(&words) {
                let found = places.iter().map(|place| rows[*place as usize]);
                prop_assert_eq!(candidates.rows(), found.collect::<Vec<u32>>());
            }
        }
    }
}
