//! The word index, compared with a model: a map from terms to rows and their positions.

use crate::memory_pages::MemoryPages;
use larder_index::{IndexId, WordBuffer, WordIndex};
use std::collections::{BTreeMap, BTreeSet};

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
}

impl Tester {
    fn add(&mut self, row: u32, term: &[u8], position: u32) {
        let has_positions = term.first() != Some(&UNPOSITIONED);
        self.buffer.add(row, term, has_positions.then_some(position));
        let rows = self.model.entry(term.to_vec()).or_default();
        let positions = rows.entry(row).or_default();
        if has_positions && positions.last() != Some(&position) {
            positions.push(position);
        }
    }

    fn write(&mut self) {
        let segment = self.buffer.encode();
        assert!(self.buffer.is_empty());
        segment.write(&self.pages, WORDS).unwrap();
        self.pages.check();
    }

    fn index(&self) -> WordIndex<'_, MemoryPages> {
        WordIndex::open(&self.pages, WORDS).unwrap()
    }

    fn last_row(&self) -> u32 {
        let last = |rows: &BTreeMap<u32, Vec<u32>>| rows.keys().next_back().copied();
        self.model.values().filter_map(last).max().unwrap_or(0)
    }

    /// Checks all rows and positions, in ranges of so many words, in an order by `seed`.
    fn check_cursors(&self, words: usize, seed: u32) {
        let index = self.index();
        let size = words as u32 * 64;
        let mut starts: Vec<u32> = (0..=self.last_row() / size).map(|n| n * size).collect();
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
            let count = index.rows_with_prefix(prefix, &mut bits).unwrap();
            let matching = self.model.iter().filter(|(term, _)| term.starts_with(prefix));
            let rows: Vec<_> = matching.map(|(_, rows)| rows.keys().copied()).collect();
            assert_eq!(count, rows.len());
            let rows: BTreeSet<u32> = rows.into_iter().flatten().collect();
            assert!(unpack(&bits, 0).iter().eq(&rows));
        }
    }

    fn check(&self) {
        self.check_terms();
        self.check_cursors(1, 1);
        self.check_cursors(16, 0);
        self.check_cursors(3, 2);
        self.check_cursors(50, 5);
    }
}

/// Returns the rows of bits.
fn unpack(bits: &[u64], first_row: u32) -> Vec<u32> {
    let rows = 0..bits.len() as u32 * 64;
    let is_set = |row: &u32| bits[*row as usize / 64] >> (row % 64) & 1 == 1;
    rows.filter(is_set).map(|row| first_row + row).collect()
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
