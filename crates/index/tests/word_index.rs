//! The word index, compared with a model: a map from terms to rows and their positions.

use crate::memory_pages::MemoryPages;
use larder_index::{
    CorruptBlock, FullWordMerge, IndexId, PhraseCursor, ReadSegments as _, SegmentWords,
    WordBuffer, WordIndex, WordIndexFaults, delete_all, merge_words_step, verify_words,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

const WORDS: IndexId = IndexId(7);

/// The positions of each term in each row; none for a term without positions.
type Model = BTreeMap<Vec<u8>, BTreeMap<u32, Vec<u32>>>;

/// Terms that begin with this byte have no positions.
const UNPOSITIONED: u8 = b'#';

#[derive(Default)]
struct Tester {
    pages: MemoryPages,
    model: Model,
    buffer: WordBuffer,
    words: SegmentWords,
    last_row: u32,
}

impl Tester {
    fn add(&mut self, row: u32, term: &[u8], position: u32) {
        let has_positions = term.first() != Some(&UNPOSITIONED);
        // A segment of several batches.
        if row > self.last_row && self.buffer.posting_count() > 500 {
            self.words.add(self.buffer.take_batch());
        }
        self.last_row = row;
        add_term(&mut self.buffer, row, term, has_positions.then_some(position));
        let rows = self.model.entry(term.to_vec()).or_default();
        let positions = rows.entry(row).or_default();
        if has_positions && positions.last() != Some(&position) {
            positions.push(position);
        }
    }

    fn write(&mut self) {
        self.words.add(self.buffer.take_batch());
        assert!(self.buffer.is_empty());
        let mut encoder = mem::take(&mut self.words).into_encoder();
        let mut segment = None;
        while let Some(part) = encoder.next_part(20_000) {
            segment = part.write(&self.pages, WORDS, segment).unwrap();
        }
        self.pages.check();
    }

    /// Adds and writes a batch. Its rows are those with the remainder `number` by 8.
    fn write_batch(&mut self, number: u32, batch: &Batch) {
        for row in (0..batch.row_count).map(|n| (batch.start + n) * 8 + number) {
            for (term, every, positions) in &batch.terms {
                if row / 8 % every == 0 {
                    (0..*positions + row / 8 % 2).for_each(|n| self.add(row, term, n * 150 + row));
                }
            }
        }
        if let Some(count) = batch.long_row {
            let row = (batch.start + batch.row_count) * 8 + number;
            (0..count).for_each(|n| self.add(row, b"long", n * 90));
            // The phrase stands behind all the other positions, and in the table of beginnings no
            // other one has its place.
            let last = count * 90 + 7;
            self.add(row, b"long", last);
            [1, last + 90].into_iter().for_each(|at| self.add(row, b"tail", at));
        }
        self.write();
    }

    /// Merges until nothing is left, and checks after each of the first steps.
    fn merge(&self, budget_bytes: i64, checked_steps: usize) {
        let mut step = 0;
        while merge_words_step(&self.pages, WORDS, 8, budget_bytes, &mut |_| false).unwrap() {
            self.pages.check();
            if step < checked_steps {
                self.check_terms();
                self.check_cursors(1 + step * 7, step as u32);
                self.check_phrases(step as u32);
            }
            step += 1;
            assert!(step < 1_000_000);
        }
        assert!(self.index().segment_count() <= 8);
        self.pages.check();
    }

    /// Merges into one segment without the rows for which `drop_row` is true.
    fn merge_all(&mut self, budget_bytes: i64, drop_row: impl Fn(u32) -> bool) {
        let mut merge = FullWordMerge::default();
        while merge.step(&self.pages, WORDS, budget_bytes, &mut |row| drop_row(row)).unwrap() {
            self.pages.check();
        }
        self.model.values_mut().for_each(|rows| rows.retain(|row, _| !drop_row(*row)));
        self.model.retain(|_, rows| !rows.is_empty());
        self.pages.check();
        assert_eq!(self.index().segment_count(), usize::from(!self.model.is_empty()));
    }

    fn index(&self) -> WordIndex<'_, MemoryPages> {
        WordIndex::open(&self.pages, WORDS).unwrap()
    }

    fn largest_row(&self) -> u32 {
        let last = |rows: &BTreeMap<u32, Vec<u32>>| rows.keys().next_back().copied();
        self.model.values().filter_map(last).max().unwrap_or(0)
    }

    /// Checks all rows and positions, in ranges of so many words, in an order by `seed`.
    fn check_cursors(&self, words: usize, seed: u32) {
        let index = self.index();
        let size = words as u32 * 64;
        let mut starts: Vec<u32> = (0..=self.largest_row() / size).map(|n| n * size).collect();
        match seed % 3 {
            0 => {}
            1 => starts.reverse(),
            _ => starts.sort_by_key(|start| (start ^ seed).wrapping_mul(0x9e37_79b1)),
        }
        let absent = BTreeMap::new();
        let terms = self.model.iter().map(|(term, rows)| (term.as_slice(), rows));
        for (term, rows) in terms.chain([(&b"absent"[..], &absent), (b"zz", &absent)]) {
            let mut cursor = index.cursor(term);
            let mut positions = Vec::new();
            for start in &starts {
                let mut bits = vec![0; words];
                cursor.rows_in_range(&index, *start, &mut bits).unwrap();
                let expect: Vec<u32> = rows.range(start..&(start + size)).map(|r| *r.0).collect();
                assert_eq!(unpack(&bits, *start), expect, "{term:?} from {start}");
                for row in expect {
                    let is_found = cursor.positions(&index, row, &mut positions).unwrap();
                    assert_eq!(positions, rows[&row]);
                    assert_eq!(is_found, !positions.is_empty());
                }
                let is_found = cursor.positions(&index, start + 1, &mut positions).unwrap();
                assert_eq!(is_found, rows.get(&(start + 1)).is_some_and(|found| !found.is_empty()));
            }
            // Ranges of any size, around what the cursor has read last.
            for n in 0..16_u32 {
                let number = (seed + n).wrapping_mul(0x9e37_79b1) >> 8;
                let mut bits = vec![0; 1 + number as usize % 60];
                let first_row = number / 64 % (self.largest_row() + 1);
                cursor.rows_in_range(&index, first_row, &mut bits).unwrap();
                let end = first_row + bits.len() as u32 * 64;
                assert!(
                    unpack(&bits, first_row).iter().eq(rows.range(first_row..end).map(|r| r.0))
                );
            }
        }
    }

    /// Compares phrases of terms, at all positions and at some, with those of the model.
    fn check_phrases(&self, seed: u32) {
        let index = self.index();
        let terms: Vec<_> = self.model.iter().collect();
        let mut random = seed;
        let mut next = |end: usize| {
            random = random.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            (random >> 8) as usize % end.max(1)
        };
        for _ in 0..8 {
            let mut words: Vec<_> = (0..1 + next(3))
                .filter_map(|_| Some((terms.get(next(terms.len()))?, [0, 0, 90, 150][next(4)])))
                .collect();
            if next(4) == 0 {
                // The words of which one has the most positions.
                let term = |one: &[u8]| terms.iter().find(|(term, _)| term.as_slice() == one);
                words = [term(b"long").zip(Some(0)), term(b"tail").zip(Some(90))]
                    .into_iter()
                    .flatten()
                    .collect();
            }
            let range = if next(3) == 0 { 500..9000 } else { 0..u32::MAX };
            let has_phrase = |row: u32| {
                let positions = |rows: &BTreeMap<u32, Vec<u32>>| rows.get(&row).cloned();
                let is_at = |rows: &BTreeMap<u32, Vec<u32>>, at: u32| {
                    let found =
                        rows.get(&row).is_some_and(|found| found.binary_search(&at).is_ok());
                    range.contains(&at) && found
                };
                let Some(((_, first), distance)) = words.first() else { return false };
                let starts = positions(first).unwrap_or_default().into_iter();
                let mut starts = starts.filter_map(|position| position.checked_sub(*distance));
                starts.any(|start| words.iter().all(|((_, rows), far)| is_at(rows, start + far)))
            };
            let cursors = words.iter().map(|((term, _), far)| (index.cursor(term), *far));
            let mut phrase = PhraseCursor::new(cursors);
            for _ in 0..6 {
                let first_row = next(self.largest_row() as usize + 1) as u32;
                let wanted: Vec<u64> =
                    (0..1 + next(40)).map(|_| [u64::MAX, 0, 0x1_0010_0000_0001][next(3)]).collect();
                let mut rows = wanted.clone();
                let is_complete =
                    phrase.retain_rows(&index, &range, first_row, &mut rows, u64::MAX).unwrap();
                assert!(is_complete);
                let mut expected = unpack(&wanted, first_row);
                expected.retain(|row| has_phrase(*row));
                assert_eq!(unpack(&rows, first_row), expected, "{words:?} {range:?}");
                if phrase.steps() > 0 {
                    let mut rows = wanted.clone();
                    let retained = phrase.retain_rows(&index, &range, first_row, &mut rows, 0);
                    // The words now begin with the one that was rarest, and it may have no rows.
                    if retained.unwrap() {
                        assert_eq!((phrase.steps(), unpack(&rows, first_row)), (0, expected));
                    }
                }
            }
        }
    }

    fn check_terms(&self) {
        let index = self.index();
        let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut add = |term: &[u8], count| {
            *counts.entry(term.to_vec()).or_default() += count;
            true
        };
        index.for_each_term(b"", &mut add).unwrap();
        let expect = self.model.iter().map(|(term, rows)| (term.clone(), rows.len() as u64));
        assert_eq!(counts, expect.collect());
        for (term, rows) in &self.model {
            let mut bits = Vec::new();
            index.rows_with_term(term, &mut bits).unwrap();
            assert!(unpack(&bits, 0).iter().eq(rows.keys()));
            let count = rows.len() as u64;
            assert_eq!(index.count_postings(term, u64::MAX).unwrap(), count);
            assert_eq!(index.count_postings(term, 3).unwrap(), count.min(3));
        }
        for prefix in [&b""[..], b"a", b"ab", b"#", b"t", b"x"] {
            let mut bits = Vec::new();
            index.rows_with_prefix(prefix, &mut bits).unwrap();
            let matching = self.model.iter().filter(|(term, _)| term.starts_with(prefix));
            let (mut terms, mut rows) = (vec![b"absent".to_vec()], BTreeSet::new());
            for (term, found) in matching {
                terms.push(term.clone());
                rows.extend(found.keys().copied());
            }
            assert!(unpack(&bits, 0).iter().eq(&rows));
            terms.sort();
            let mut bits = Vec::new();
            index.rows_with_terms(&terms, &mut bits).unwrap();
            assert!(unpack(&bits, 0).iter().eq(&rows));
        }
    }

    /// Compares all postings with the model.
    fn verify(&self) {
        let mut found = Model::new();
        let faults = verify_words(&self.pages, WORDS, &mut |posting| {
            let rows = found.entry(posting.term.to_vec()).or_default();
            rows.entry(posting.row).or_default().extend_from_slice(posting.positions);
        });
        assert_eq!(faults, Ok(WordIndexFaults::default()));
        let mut expected = self.model.clone();
        expected.retain(|_, rows| !rows.is_empty());
        assert_eq!(found, expected);
    }

    fn check(&self) {
        self.verify();
        self.check_terms();
        self.check_cursors(1, 1);
        self.check_cursors(16, 0);
        self.check_cursors(3, 2);
        self.check_cursors(50, 5);
        (0..3).for_each(|seed| self.check_phrases(seed));
    }
}

fn add_term(buffer: &mut WordBuffer, row: u32, term: &[u8], position: Option<u32>) {
    let (field, word) = term.split_first().unwrap();
    buffer.add(row, *field, word, position);
}

/// Returns the rows of bits.
fn unpack(bits: &[u64], first_row: u32) -> Vec<u32> {
    let rows = 0..bits.len() as u32 * 64;
    let is_set = |row: &u32| bits[*row as usize / 64] >> (row % 64) & 1 == 1;
    rows.filter(is_set).map(|row| first_row + row).collect()
}

/// A batch of rows: which terms each has, in which of the rows, and how many positions at least.
#[derive(Debug, Clone)]
struct Batch {
    start: u32,
    row_count: u32,
    terms: Vec<(Vec<u8>, u32, u32)>,
    /// The number of positions of the same term in one more row.
    long_row: Option<u32>,
}

fn batches() -> impl Strategy<Value = Batch> {
    let term = prop_oneof!["[ab]{1,4}", "#[a-c]{1,2}", Just("term".to_owned())];
    let terms = (term.prop_map(String::into_bytes), 1..12_u32, 1..4_u32);
    let row_count = prop_oneof![1..20_u32, 1..1500_u32];
    let long_row = proptest::option::weighted(0.2, 1..9000_u32);
    (0..600_u32, row_count, proptest::collection::vec(terms, 1..6), long_row).prop_map(
        |(start, row_count, mut terms, long_row)| {
            // A batch adds the positions of a term in a row in ascending order.
            terms.sort();
            terms.dedup_by(|a, b| a.0 == b.0);
            Batch { start, row_count, terms, long_row }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn merged_segments_have_the_postings_of_the_model(
        batches in proptest::collection::vec(batches(), 1..8),
        budget in prop_oneof![Just(1_i64), 100..8000_i64, Just(i64::MAX)],
        seed in 0..100_u32,
    ) {
        let mut tester = Tester::default();
        for (number, batch) in batches.iter().enumerate() {
            tester.write_batch(number as u32, batch);
        }
        tester.check_terms();
        tester.check_cursors(5, seed);
        // With these, there are enough segments to be merged.
        for row in 0..8 {
            tester.add(100_000 + row * 8, b"term", row);
            tester.add(100_000 + row * 8, b"ab", row);
            tester.write();
        }
        tester.merge(budget, 6);
        tester.check_terms();
        tester.check_cursors(4, seed + 1);
        tester.merge_all(budget.max(500), |row| row % 7 == seed % 7);
        tester.check_terms();
        tester.check_cursors(9, seed + 2);
    }

    #[test]
    fn merge_steps_move_each_posting_once(
        batches in proptest::collection::vec(batches(), 8),
        budgets in proptest::collection::vec(prop_oneof![Just(1_i64), 100..20_000_i64], 30),
    ) {
        let mut tester = Tester::default();
        for (number, batch) in batches.iter().enumerate() {
            let row_count = batch.row_count % 300;
            tester.write_batch(number as u32, &Batch { row_count, ..batch.clone() });
        }
        for (step, budget) in budgets.iter().enumerate() {
            let is_more = merge_words_step(&tester.pages, WORDS, 8, *budget, &mut |_| false).unwrap();
            tester.pages.check();
            tester.check_terms();
            tester.check_cursors(2 + step, step as u32);
            if !is_more {
                break;
            }
        }
        // A full merge completes the one that is under way.
        tester.merge_all(i64::MAX, |_| false);
        tester.check_terms();
    }
}

/// A merge moves one word of a phrase before the other.
#[test]
fn phrases_are_found_while_their_words_are_in_different_segments() {
    let mut tester = Tester::default();
    for row in 0..40 {
        for (term, position) in [(&b"aa"[..], row % 3), (b"mm", 9), (b"zz", 1 + row % 2)] {
            tester.add(row, term, position);
        }
        tester.write();
    }
    let mut steps = 0;
    while merge_words_step(&tester.pages, WORDS, 8, 1, &mut |_| false).unwrap() {
        let index = tester.index();
        let words = [(&b"aa"[..], 0), (b"zz", 1)].map(|(term, far)| (index.cursor(term), far));
        let mut rows = [u64::MAX];
        assert!(
            PhraseCursor::new(words)
                .retain_rows(&index, &(0..u32::MAX), 0, &mut rows, u64::MAX)
                .unwrap()
        );
        let expected: Vec<u32> = (0..40).filter(|row| row % 3 == row % 2).collect();
        assert_eq!(unpack(&rows, 0), expected);
        steps += 1;
    }
    assert!(steps > 10);
}

#[test]
fn merges_of_all_segments_drop_all_rows() {
    let mut tester = Tester::default();
    for row in 0..3000 {
        tester.add(row, b"a", 1);
        (0..4).for_each(|position| tester.add(row, b"b", position));
        if row % 1000 == 0 {
            (0..9000).for_each(|position| tester.add(row, b"long", position));
            tester.write();
        }
    }
    tester.write();
    tester.merge_all(5000, |row| row < 1500);
    tester.check();
    tester.merge_all(5000, |_| true);
    assert_eq!(tester.pages.block_count(), 0);
    tester.check();
}

/// Rows are dropped in steps of any size, of which each moves the postings of the other rows once.
#[test]
fn merges_drop_rows_in_steps() {
    for (budget, dropped) in [(1_i64, 0..40_u32), (700, 35..75), (5000, 10..90), (300, 0..100)] {
        let is_dropped = |row: u32| dropped.contains(&(row % 100));
        let mut tester = Tester::default();
        for batch in 0..8 {
            for row in (0..60).map(|n| n * 8 + batch) {
                tester.add(row, b"a", row % 9);
                tester.add(row, b"#c", 0);
                tester.add(row, format!("d{}", row % 20).as_bytes(), 1);
                if row % 100 == 41 {
                    (0..5000).for_each(|position| tester.add(row, b"long", position));
                }
            }
            tester.write();
        }
        let model = |tester: &Tester| -> Model {
            let mut model = tester.model.clone();
            model.values_mut().for_each(|rows| rows.retain(|row, _| !is_dropped(*row)));
            model
        };
        let expected = model(&tester);
        let (mut merge, mut steps) = (FullWordMerge::default(), 0);
        loop {
            let mut filter = |row| is_dropped(row);
            let has_more = merge.step(&tester.pages, WORDS, budget, &mut filter).unwrap();
            tester.pages.check();
            let index = tester.index();
            for (term, rows) in &expected {
                let (mut bits, mut cursor) = (Vec::new(), index.cursor(term));
                index.rows_with_term(term, &mut bits).unwrap();
                let found = unpack(&bits, 0).into_iter().filter(|row| !is_dropped(*row));
                assert!(found.eq(rows.keys().copied()), "{term:?}, step {steps} of {budget}");
                for (row, expected) in rows {
                    let mut positions = Vec::new();
                    cursor.positions(&index, *row, &mut positions).unwrap();
                    assert_eq!(&positions, expected);
                }
            }
            steps += 1;
            if !has_more {
                break;
            }
        }
        // All segments are one now, without the rows.
        tester.model = expected;
        tester.model.retain(|_, rows| !rows.is_empty());
        tester.check_terms();
    }
}

#[test]
fn merges_are_done_in_steps_of_one_byte() {
    let mut tester = Tester::default();
    for row in 0..4000 {
        // Rows of two segments alternate within each span of 2,000.
        let row = row / 2000 * 2000 + row % 1000 * 2 + row % 2000 / 1000;
        add_term(&mut tester.buffer, row, b"b", Some(row % 9));
        add_term(&mut tester.buffer, row, b"#c", None);
        add_term(&mut tester.buffer, row, format!("d{}", row % 50).as_bytes(), Some(1));
        for (term, position) in [("b", Some(row % 9)), ("#c", None)] {
            let rows = tester.model.entry(term.into()).or_default();
            rows.insert(row, position.into_iter().collect());
        }
        let rows = tester.model.entry(format!("d{}", row % 50).into()).or_default();
        rows.insert(row, vec![1]);
        if row % 2000 >= 1998 {
            tester.write();
        }
    }
    for row in 4000..4006 {
        tester.add(row, b"b", row);
        tester.write();
    }
    assert_eq!(tester.index().segment_count(), 10);
    tester.merge(1, 100);
    tester.check();
}

#[test]
fn damaged_blocks_are_errors_and_never_panic() {
    let build = || {
        let mut tester = Tester::default();
        for row in 0..2000 {
            tester.add(row, b"a", row);
            tester.add(row, format!("t{}", row % 90).as_bytes(), 3);
            if row % 200 == 199 {
                (0..9000).for_each(|position| tester.add(row, b"long", position));
                tester.write();
            }
        }
        tester
    };
    let read = |tester: &Tester| -> Result<(), CorruptBlock> {
        let index = tester.index();
        index.for_each_term(b"", &mut |_, _| true)?;
        index.rows_with_prefix(b"", &mut Vec::new())?;
        let _read = verify_words(&tester.pages, WORDS, &mut |_| {});
        for (term, rows) in &tester.model {
            let (mut cursor, mut positions) = (index.cursor(term), Vec::new());
            cursor.rows_in_range(&index, 0, &mut [0; 40])?;
            for row in rows.keys() {
                cursor.positions(&index, *row, &mut positions)?;
            }
        }
        Ok(())
    };
    read(&build()).unwrap();
    for seed in 0..60_usize {
        let tester = build();
        tester.pages.damage(|block| {
            let place = seed.wrapping_mul(0x9e37_79b9) % block.len();
            match seed % 3 {
                0 => block.truncate(place),
                1 => block[place] ^= 1 << (seed / 3 % 8),
                _ => block
                    .iter_mut()
                    .skip(place)
                    .step_by(7)
                    .for_each(|byte| *byte = byte.wrapping_mul(37)),
            }
        });
        let _read = read(&tester);
        let _merged = merge_words_step(&tester.pages, WORDS, 8, 5000, &mut |_| false);
        let _read = read(&tester);
    }
    let tester = build();
    tester.pages.remove_blocks();
    assert_eq!(read(&tester), Err(CorruptBlock));
    assert!(merge_words_step(&tester.pages, WORDS, 8, 1, &mut |_| false).is_err());
    delete_all(&tester.pages, WORDS).unwrap();
    assert!(tester.pages.segments(WORDS).unwrap().is_empty());
}

#[test]
fn empty_buffers_write_no_segment() {
    let mut tester = Tester::default();
    tester.write();
    assert_eq!(tester.index().segment_count(), 0);
    tester.check();
}

#[test]
fn terms_are_divided_between_many_blocks() {
    let mut tester = Tester::default();
    for row in 0..5000 {
        (0..row % 5 + 1).for_each(|position| tester.add(row * 3, b"many", position * 100));
        tester.add(row * 3, b"#many", 0);
        tester.add(row * 3, format!("term{}", row % 700).as_bytes(), 5);
        if row % 1000 == 0 {
            tester.add(row * 3, b"rare", row);
        }
    }
    tester.write();
    assert!(tester.pages.block_count() > 8);
    tester.check();
}

#[test]
fn rows_with_many_positions_are_divided_between_blocks() {
    let mut tester = Tester::default();
    for row in 0..60 {
        let count = if row % 20 == 7 { 9000 } else { row * 40 };
        for position in 0..count {
            tester.add(
                row,
                b"long",
                if position < 500 { position * 1000 } else { 600_000 + position },
            );
        }
        tester.add(row, b"short", 1);
    }
    tester.write();
    tester.check();
}

/// The positions of a frequent word of a long message continue in other entries.
#[test]
fn phrases_behind_many_positions_are_found() {
    // The numbers of positions with one byte each around those that an entry takes, and more. They
    // are multiples of 64, so that in the table of beginnings none has the place of the phrase.
    for count in [900, 2300, 3300, 3500, 9000] {
        let mut tester = Tester::default();
        for row in 0..12 {
            (0..count).for_each(|n| tester.add(row, b"the", n * 64));
            tester.add(row, b"the", count * 64 + 7);
            // In every third row, another word is between the two.
            let place = count * 64 + if row % 3 == 0 { 9 } else { 8 };
            // A single position that is so large is always compared exactly.
            [3, place].into_iter().for_each(|one| tester.add(row, b"walrus", one));
            [3, place + 1].into_iter().for_each(|one| tester.add(row, b"eats", one));
        }
        tester.write();
        let index = tester.index();
        let expected: Vec<u32> = (0..12).filter(|row| row % 3 != 0).collect();
        let phrases: [&[(&[u8], u32)]; 3] = [
            &[(b"the", 0), (b"walrus", 1)],
            &[(b"walrus", 1), (b"the", 0)],
            &[(b"the", 0), (b"walrus", 1), (b"eats", 2)],
        ];
        for phrase in phrases {
            let words = phrase.iter().map(|(term, far)| (index.cursor(term), *far));
            let (mut cursor, range, mut rows) = (PhraseCursor::new(words), 0..u32::MAX, [u64::MAX]);
            assert!(cursor.retain_rows(&index, &range, 0, &mut rows, u64::MAX).unwrap());
            assert_eq!(unpack(&rows, 0), expected, "{phrase:?} behind {count}");
        }
    }
}

#[test]
fn rows_up_to_the_greatest_number_are_found() {
    let mut tester = Tester::default();
    for row in (0..9).chain(u32::MAX - 3000..=u32::MAX) {
        add_term(&mut tester.buffer, row, b"a", Some(row));
    }
    tester.write();
    let index = tester.index();
    let mut cursor = index.cursor(b"a");
    let mut bits = [0; 4];
    cursor.rows_in_range(&index, u32::MAX - 1, &mut bits).unwrap();
    assert_eq!(bits, [3, 0, 0, 0]);
    cursor.rows_in_range(&index, 0, &mut bits).unwrap();
    assert_eq!(bits, [511, 0, 0, 0]);
    let mut positions = Vec::new();
    assert_eq!(cursor.positions(&index, u32::MAX, &mut positions), Ok(true));
    assert_eq!(positions, [u32::MAX]);
    assert_eq!(cursor.positions(&index, u32::MAX - 3001, &mut positions), Ok(false));
}

#[test]
fn ranges_around_a_rare_term_are_not_read_again() {
    let mut tester = Tester::default();
    for row in 0..20_000 {
        tester.add(row, b"common", row % 7);
        if row == 777 {
            tester.add(row, b"rare", row);
        }
    }
    tester.write();
    let index = tester.index();
    let before = tester.pages.blocks_read();
    let mut cursor = index.cursor(b"rare");
    for start in (0..20_000).step_by(64) {
        cursor.rows_in_range(&index, start, &mut [0]).unwrap();
    }
    assert!(tester.pages.blocks_read() - before <= 2);
    // A frequent term reads each of its blocks once, in either direction.
    let mut starts: Vec<u32> = (0..20_000).step_by(64).collect();
    for _ in 0..2 {
        let (mut cursor, before) = (index.cursor(b"common"), tester.pages.blocks_read());
        for start in &starts {
            cursor.rows_in_range(&index, *start, &mut [0]).unwrap();
        }
        assert!(tester.pages.blocks_read() - before <= tester.pages.block_count() + 1);
        starts.reverse();
    }
}
