//! The sort index beside a model: a map from items to their positions.

use crate::memory_sort_pages::MemorySortPages;
use larder_index::{
    CorruptBlock, LevelZero, PartitionOrder, PositionChange, RankDirectory, SortIndex,
    SortPosition, compact_level_zero, write_position_changes,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const ORDERS: [PartitionOrder; 2] =
    [PartitionOrder { order: 7, partition: 1 }, PartitionOrder { order: 7, partition: 2 }];
/// An order that no read is about.
const OTHER_ORDER: PartitionOrder = PartitionOrder { order: 8, partition: 1 };

/// A step of a test.
#[derive(Debug, Clone)]
enum Step {
    /// Puts so many items at positions that the seed chooses; half of them may be known.
    Put(usize, u64),
    /// Removes so many items, from one that the seed chooses on.
    Remove(usize, u64),
    Compact,
}

/// The order and the key of each item.
#[derive(Default)]
struct Tester {
    pages: MemorySortPages,
    items: BTreeMap<i64, (PartitionOrder, Vec<u8>)>,
    last_row: i64,
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

fn change(order: PartitionOrder, key: &[u8], row: i64, is_insert: bool) -> PositionChange {
    PositionChange { order, position: SortPosition { key: key.to_vec(), row }, is_insert }
}

/// Returns the rank of a position in some orders.
fn rank(
    pages: &MemorySortPages,
    orders: &[PartitionOrder],
    position: &SortPosition,
) -> Result<(u64, u64), CorruptBlock> {
    let level_zero = LevelZero::read(pages)?;
    let directories: Vec<RankDirectory> =
        orders.iter().map(|order| RankDirectory::read(pages, *order)).collect::<Result<_, _>>()?;
    let orders = orders.iter().copied().zip(&directories);
    SortIndex::new(pages, &level_zero).rank(orders, position)
}

impl Tester {
    fn run(&mut self, step: &Step) {
        match step {
            Step::Put(count, seed) => self.put(*count, *seed),
            Step::Remove(count, seed) => self.remove(*count, *seed),
            Step::Compact => {
                let has_runs = self.pages.run_count() > 0;
                assert_eq!(compact_level_zero(&self.pages).unwrap(), has_runs);
                assert_eq!(self.pages.run_count(), 0);
            }
        }
    }

    fn put(&mut self, count: usize, seed: u64) {
        let mut changes = Vec::new();
        for number in 0..count as u64 {
            let mixed = mix(seed.wrapping_add(number));
            let is_known = mixed.is_multiple_of(2);
            let known = if is_known { mixed as i64 % (self.last_row + 1) } else { 0 };
            let row = if known > 0 { known } else { self.last_row + 1 };
            self.last_row = self.last_row.max(row);
            let key = format!(
                "{:03}{}",
                mixed % 700,
                ["", "a", "aaaaaaaaaaaaaaaaaaaaa"][number as usize % 3]
            );
            let order = [ORDERS[0], ORDERS[0], ORDERS[1], OTHER_ORDER][(mixed >> 20) as usize % 4];
            changes.extend(self.take(row));
            changes.push(change(order, key.as_bytes(), row, true));
            self.items.insert(row, (order, key.into_bytes()));
        }
        write_position_changes(&self.pages, changes).unwrap();
    }

    fn remove(&mut self, count: usize, seed: u64) {
        let first = mix(seed) as i64 % (self.last_row + 1);
        let rows: Vec<i64> = self.items.range(first..).map(|(row, _)| *row).take(count).collect();
        let changes = rows.into_iter().filter_map(|row| self.take(row)).collect();
        write_position_changes(&self.pages, changes).unwrap();
    }

    fn take(&mut self, row: i64) -> Option<PositionChange> {
        self.items.remove(&row).map(|(order, key)| change(order, &key, row, false))
    }

    fn expected_positions(&self, orders: &[PartitionOrder]) -> Vec<SortPosition> {
        let items = self.items.iter().filter(|(_, (order, _))| orders.contains(order));
        let mut expected: Vec<SortPosition> =
            items.map(|(row, (_, key))| SortPosition { key: key.clone(), row: *row }).collect();
        expected.sort_unstable();
        expected
    }

    /// Compares scans and ranks from many positions, in both directions, with the model.
    fn check(&self, anywhere: &SortPosition) {
        let level_zero = LevelZero::read(&self.pages).unwrap();
        let index = SortIndex::new(&self.pages, &level_zero);
        for orders in [&ORDERS[..], &ORDERS[..1], &ORDERS[1..], &[]] {
            let expected = self.expected_positions(orders);
            let scan = |after: Option<&SortPosition>, is_backwards: bool, limit: usize| {
                let mut found = Vec::new();
                let mut visit = |key: &[u8], row| {
                    found.push(SortPosition { key: key.to_vec(), row });
                    Ok(found.len() < limit)
                };
                index.scan(orders, after, is_backwards, &mut visit).unwrap();
                found
            };
            assert_eq!(scan(None, false, usize::MAX), expected);
            assert!(scan(None, true, usize::MAX).iter().rev().eq(&expected));
            let step = 1 + expected.len() / 8;
            for at in expected.iter().step_by(step).chain([anywhere]) {
                let before = expected.partition_point(|other| other < at);
                let passed = expected.partition_point(|other| other <= at);
                assert_eq!(scan(Some(at), false, usize::MAX), expected[passed..]);
                let page = expected[passed..].iter().take(50).cloned().collect::<Vec<_>>();
                assert_eq!(scan(Some(at), false, 50), page);
                assert!(scan(Some(at), true, usize::MAX).iter().rev().eq(&expected[..before]));
                let rank = rank(&self.pages, orders, at).unwrap();
                assert_eq!(rank, (before as u64, expected.len() as u64), "{at:?}");
            }
        }
        let mut found = BTreeSet::new();
        let mut visit = |order, key: &[u8], row| {
            assert!(found.insert((order, key.to_vec(), row)), "{row} is found twice");
        };
        index.verify(&mut visit).unwrap();
        let items = self.items.iter();
        let expected: BTreeSet<_> =
            items.map(|(row, (order, key))| (*order, key.clone(), *row)).collect();
        assert_eq!(found, expected);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let small = || 1..40_usize;
    let large = || 200..3000_usize;
    prop_oneof![
        4 => (small(), any::<u64>()).prop_map(|(count, seed)| Step::Put(count, seed)),
        4 => (large(), any::<u64>()).prop_map(|(count, seed)| Step::Put(count, seed)),
        2 => (small(), any::<u64>()).prop_map(|(count, seed)| Step::Remove(count, seed)),
        2 => (large(), any::<u64>()).prop_map(|(count, seed)| Step::Remove(count, seed)),
        1 => Just(Step::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Batches small and large, and compactions, in any order.
    #[test]
    fn the_sort_index_equals_the_model_after_any_steps(
        steps in proptest::collection::vec(step(), 1..12),
        key in "[0-7]{0,4}",
        row in -2..4000_i64,
    ) {
        let mut tester = Tester::default();
        let anywhere = SortPosition { key: key.into_bytes(), row };
        for step in &steps {
            tester.run(step);
            tester.check(&anywhere);
        }
    }

    #[test]
    fn damaged_blocks_of_an_order_are_errors_and_never_panic(
        steps in proptest::collection::vec(step(), 1..5),
        place in 0..4000_usize,
        byte: u8,
    ) {
        let mut tester = Tester::default();
        for step in &steps {
            tester.run(step);
        }
        tester.pages.damage(|bytes| {
            let length = bytes.len();
            bytes[place % length] = byte;
        });
        let level_zero = LevelZero::read(&tester.pages).unwrap_or_default();
        let index = SortIndex::new(&tester.pages, &level_zero);
        let position = SortPosition { key: b"3".into(), row: 3 };
        let _rank = rank(&tester.pages, &ORDERS, &position);
        for is_backwards in [false, true] {
            let _scan = index.scan(&ORDERS, None, is_backwards, &mut |_, _| Ok(true));
            let _scan = index.scan(&ORDERS, Some(&position), is_backwards, &mut |_, _| Ok(true));
        }
        let _verdict = index.verify(&mut |_, _, _| {});
    }
}

/// Inserts items into one order, in batches of 1,000, at keys that come in no order.
fn import(pages: &MemorySortPages, count: i64) {
    let rows: Vec<i64> = (1..=count).collect();
    for batch in rows.chunks(1000) {
        let key = |row: i64| format!("name {:08}", mix(row as u64) % 100_000_000);
        let changes =
            batch.iter().map(|&row| change(ORDERS[0], key(row).as_bytes(), row, true)).collect();
        write_position_changes(pages, changes).unwrap();
    }
}

#[test]
fn an_import_writes_a_position_few_times() {
    let pages = MemorySortPages::default();
    import(&pages, 60_000);
    compact_level_zero(&pages).unwrap();
    let blocks = pages.block_bytes() / 4000;
    assert!(pages.blocks_written() < blocks * 10, "{} of {blocks}", pages.blocks_written());
    assert!(pages.block_bytes() < 60_000 * 15, "{} bytes", pages.block_bytes());
}

#[test]
fn pages_and_single_changes_read_few_blocks() {
    let pages = MemorySortPages::default();
    import(&pages, 20_000);
    compact_level_zero(&pages).unwrap();
    let level_zero = LevelZero::read(&pages).unwrap();
    let index = SortIndex::new(&pages, &level_zero);
    let middle = SortPosition { key: b"name 5".into(), row: 0 };
    for is_backwards in [false, true] {
        let (before, mut found) = (pages.blocks_read(), 0);
        let mut visit = |_: &[u8], _| {
            found += 1;
            Ok(found < 50)
        };
        index.scan(&ORDERS[..1], Some(&middle), is_backwards, &mut visit).unwrap();
        assert_eq!(found, 50);
        assert!(pages.blocks_read() - before <= 2);
    }
    let before = pages.blocks_read();
    rank(&pages, &ORDERS[..1], &middle).unwrap();
    assert_eq!(pages.blocks_read() - before, 1);
    let (read, written) = (pages.blocks_read(), pages.blocks_written());
    write_position_changes(&pages, vec![change(ORDERS[0], b"name 5", 50_000, true)]).unwrap();
    assert_eq!(pages.blocks_read() - read, 1);
    assert!(pages.blocks_written() - written <= 2);
    assert_eq!(pages.run_count(), 0);
}

/// A fence is the first position of its block, so the key of an item does not outlive it there.
#[test]
fn removed_keys_are_nowhere() {
    let pages = MemorySortPages::default();
    let keys: Vec<String> = (0..3000).map(|n| format!("{n:04} of three thousand")).collect();
    let all = |is_insert: bool| -> Vec<PositionChange> {
        let rows = keys.iter().zip(1..);
        rows.map(|(key, row)| change(ORDERS[0], key.as_bytes(), row, is_insert)).collect()
    };
    write_position_changes(&pages, all(true)).unwrap();
    assert!(pages.has_bytes(b"of three"));
    for removed in all(false) {
        write_position_changes(&pages, vec![removed]).unwrap();
    }
    assert!(!pages.has_bytes(b"of three"));
    assert_eq!(pages.block_bytes(), 0);
}

#[test]
fn a_removal_in_level_zero_leaves_with_compaction() {
    let pages = MemorySortPages::default();
    import(&pages, 20_000);
    compact_level_zero(&pages).unwrap();
    let victim = |is_insert| change(ORDERS[0], b"victim", 30_000, is_insert);
    write_position_changes(&pages, vec![victim(true)]).unwrap();
    // Large enough for level 0, and too large for a small batch to compact it.
    let others = (0..2_200).map(|row| change(ORDERS[1], b"other", 40_000 + row, true)).collect();
    write_position_changes(&pages, others).unwrap();
    write_position_changes(&pages, vec![victim(false)]).unwrap();
    assert_eq!(pages.run_count(), 2);
    let end = SortPosition { key: b"z".to_vec(), row: 0 };
    assert_eq!(rank(&pages, &ORDERS, &end), Ok((22_200, 22_200)));
    assert!(compact_level_zero(&pages).unwrap());
    assert_eq!(rank(&pages, &ORDERS, &end), Ok((22_200, 22_200)));
    assert!(!pages.has_bytes(b"victim"));
}

/// A job that ended early leaves few changes in level 0 for long.
#[test]
fn a_small_batch_compacts_a_small_level_zero() {
    let pages = MemorySortPages::default();
    import(&pages, 20_000);
    compact_level_zero(&pages).unwrap();
    let others = (0..500).map(|row| change(ORDERS[1], b"other", 40_000 + row, true)).collect();
    write_position_changes(&pages, others).unwrap();
    assert_eq!(pages.run_count(), 1);
    write_position_changes(&pages, vec![change(ORDERS[0], b"one", 30_000, true)]).unwrap();
    assert_eq!(pages.run_count(), 0);
}

#[test]
fn verification_finds_blocks_that_are_not_their_fences() {
    let pages = MemorySortPages::default();
    import(&pages, 3000);
    let level_zero = LevelZero::read(&pages).unwrap();
    let index = SortIndex::new(&pages, &level_zero);
    index.verify(&mut |_, _, _| {}).unwrap();
    pages.damage(Vec::clear);
    assert_eq!(index.verify(&mut |_, _, _| {}), Err(CorruptBlock));
}
