//! The byte formats of the sort index: blocks of positions, and level-0 runs of changes.
//!
//! An entry of a block is:
//!
//! | part | encoding |
//! |---|---|
//! | bytes that the key shares with the key before it | varint |
//! | bytes of the key that follow, and these bytes | varint, bytes |
//! | the item | varint |
//!
//! A run has for each order its two numbers, the number of its changes, and these as entries, in
//! which the item is doubled; odd if the item is removed. A block fills a page, as those of the
//! inverted index do, unless a single key is longer.

use crate::block::{BLOCK_BYTES, CorruptBlock};
use crate::sort_pages::{PartitionOrder, PositionChange, SortPosition};
use crate::varint::{read_varint, write_varint};
use std::cmp::Ordering;
use std::ops::Range;

/// Keys take about this many times the bytes of their block.
const EXPECTED_KEY_RATIO: usize = 3;
/// Most entries are at least this long.
const MIN_EXPECTED_ENTRY_BYTES: usize = 8;

/// A function that is called with the indexes of the positions of a block, and its bytes.
type BlockVisitor<'a, E> = dyn FnMut(Range<usize>, &[u8]) -> Result<(), E> + 'a;

/// The positions of one block or of several neighbours, unpacked: keys in one buffer, so that a
/// position takes no allocation.
#[derive(Debug, Default)]
pub(crate) struct PositionBuffer {
    keys: Vec<u8>,
    /// The end of each key, and the item.
    entries: Vec<(usize, i64)>,
}

impl PositionBuffer {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn push(&mut self, key: &[u8], row: i64) {
        self.keys.extend_from_slice(key);
        self.entries.push((self.keys.len(), row));
    }

    /// Returns the key and the item at an index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], i64)> {
        let (end, row) = *self.entries.get(index)?;
        Some((self.keys.get(self.key_start(index)..end)?, row))
    }

    pub(crate) fn position(&self, index: usize) -> Option<SortPosition> {
        self.get(index).map(|(key, row)| SortPosition { key: key.to_vec(), row })
    }

    #[inline]
    fn key_start(&self, index: usize) -> usize {
        let before = index.checked_sub(1).and_then(|before| self.entries.get(before));
        before.map_or(0, |(end, _)| *end)
    }

    /// Appends the positions of a block.
    pub(crate) fn unpack(&mut self, block: &[u8]) -> Result<(), CorruptBlock> {
        self.reserve_for(block);
        let (mut rest, mut previous) = (block, 0..0);
        while !rest.is_empty() {
            previous = unpack_key(&mut rest, &mut self.keys, previous).ok_or(CorruptBlock)?;
            self.entries.push((previous.end, unpack_row(&mut rest).ok_or(CorruptBlock)?));
        }
        Ok(())
    }

    /// Appends the positions of a block that are less than `end`.
    pub(crate) fn unpack_before(
        &mut self,
        block: &[u8],
        end: &SortPosition,
    ) -> Result<(), CorruptBlock> {
        self.reserve_for(block);
        let (mut rest, mut previous) = (block, 0..0);
        for _ in 0..count_before(block, end)? {
            previous = unpack_key(&mut rest, &mut self.keys, previous).ok_or(CorruptBlock)?;
            self.entries.push((previous.end, unpack_row(&mut rest).ok_or(CorruptBlock)?));
        }
        Ok(())
    }

    fn reserve_for(&mut self, block: &[u8]) {
        self.keys.reserve(block.len() * EXPECTED_KEY_RATIO);
        self.entries.reserve(block.len() / MIN_EXPECTED_ENTRY_BYTES);
    }

    /// Packs the positions into as few blocks as hold them, evenly filled. Passes each to `visit`:
    /// the index of its first position, and its bytes.
    pub(crate) fn pack<E>(&self, visit: &mut BlockVisitor<'_, E>) -> Result<(), E> {
        let (mut blocks, mut bytes) = (0, 0);
        self.pack_up_to::<E>(BLOCK_BYTES, &mut |_, block| {
            blocks += 1;
            bytes += block.len();
            Ok(())
        })?;
        // A block ends with the entry that reaches its share.
        let share = if blocks < 2 { BLOCK_BYTES } else { bytes / blocks };
        self.pack_up_to(share, visit)
    }

    fn pack_up_to<E>(&self, share: usize, visit: &mut BlockVisitor<'_, E>) -> Result<(), E> {
        let (mut block, mut entry) = (Vec::with_capacity(BLOCK_BYTES), Vec::new());
        let (mut first, mut last_key): (usize, &[u8]) = (0, &[]);
        for index in 0..self.len() {
            let Some((key, row)) = self.get(index) else { break };
            entry.clear();
            pack_entry(&mut entry, last_key, key, row.unsigned_abs());
            if !block.is_empty()
                && (block.len() >= share || block.len() + entry.len() > BLOCK_BYTES)
            {
                visit(first..index, &block)?;
                block.clear();
                first = index;
                entry.clear();
                pack_entry(&mut entry, &[], key, row.unsigned_abs());
            }
            block.extend_from_slice(&entry);
            last_key = key;
        }
        if block.is_empty() { Ok(()) } else { visit(first..self.len(), &block) }
    }
}

fn pack_entry(bytes: &mut Vec<u8>, last_key: &[u8], key: &[u8], number: u64) {
    let shared = last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
    write_varint(bytes, shared as u64);
    write_varint(bytes, (key.len() - shared) as u64);
    bytes.extend_from_slice(&key[shared..]);
    write_varint(bytes, number);
}

/// Appends the key of an entry to `keys` and returns where it is; `previous` is where the key
/// before it is. `None` if the entry is malformed.
#[inline]
fn unpack_key(
    bytes: &mut &[u8],
    keys: &mut Vec<u8>,
    previous: Range<usize>,
) -> Option<Range<usize>> {
    let shared = usize::try_from(read_varint(bytes)?).ok()?;
    let length = usize::try_from(read_varint(bytes)?).ok()?;
    let (suffix, rest) = bytes.split_at_checked(length)?;
    if shared > previous.len() {
        return None;
    }
    *bytes = rest;
    let start = keys.len();
    keys.extend_from_within(previous.start..previous.start + shared);
    keys.extend_from_slice(suffix);
    Some(start..keys.len())
}

#[inline]
fn unpack_row(bytes: &mut &[u8]) -> Option<i64> {
    read_varint(bytes).and_then(|row| i64::try_from(row).ok())
}

/// A cursor over the positions of a block, ascending. It holds one key.
#[derive(Debug, Default)]
pub(crate) struct PositionCursor {
    block: Vec<u8>,
    offset: usize,
    key: Vec<u8>,
    row: i64,
    has_current: bool,
}

impl PositionCursor {
    /// Begins to read a block, at its first position.
    pub(crate) fn open(&mut self, block: &[u8]) -> Result<(), CorruptBlock> {
        self.block.clear();
        self.block.extend_from_slice(block);
        self.offset = 0;
        self.key.clear();
        self.has_current = true;
        self.advance()
    }

    /// Begins to read a block, at its first position that is greater than `after`.
    pub(crate) fn open_after(
        &mut self,
        block: &[u8],
        after: &SortPosition,
    ) -> Result<(), CorruptBlock> {
        let is_found = |key: Ordering, row: i64| key.then_with(|| row.cmp(&after.row)).is_gt();
        let found = seek(block, &after.key, is_found)?;
        self.block.clear();
        self.block.extend_from_slice(block);
        self.has_current = !found.is_end;
        self.offset = found.offset;
        self.row = found.row;
        self.key.clear();
        self.key.extend_from_slice(after.key.get(..found.shared).ok_or(CorruptBlock)?);
        self.key.extend_from_slice(found.suffix);
        Ok(())
    }

    /// Returns the position at which the cursor is; `None` behind the last one.
    #[inline]
    pub(crate) fn current(&self) -> Option<(&[u8], i64)> {
        self.has_current.then_some((&self.key, self.row))
    }

    /// Moves to the next position.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<(), CorruptBlock> {
        let mut rest = self.block.get(self.offset..).unwrap_or_default();
        self.has_current = !rest.is_empty();
        if self.has_current {
            let length = rest.len();
            let entry = unpack_entry(&mut rest).ok_or(CorruptBlock)?;
            if entry.shared > self.key.len() {
                return Err(CorruptBlock);
            }
            self.key.truncate(entry.shared);
            self.key.extend_from_slice(entry.suffix);
            self.row = entry.row;
            self.offset += length - rest.len();
        }
        Ok(())
    }
}

/// Returns the number of positions in a block that are less than `end`.
pub(crate) fn count_before(block: &[u8], end: &SortPosition) -> Result<usize, CorruptBlock> {
    let is_found = |key: Ordering, row: i64| key.then_with(|| row.cmp(&end.row)).is_ge();
    seek(block, &end.key, is_found).map(|found| found.index)
}

/// An entry of a block, in place.
struct PackedPosition<'a> {
    shared: usize,
    suffix: &'a [u8],
    row: i64,
}

#[inline]
fn unpack_entry<'a>(bytes: &mut &'a [u8]) -> Option<PackedPosition<'a>> {
    let shared = usize::try_from(read_varint(bytes)?).ok()?;
    let length = usize::try_from(read_varint(bytes)?).ok()?;
    let (suffix, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(PackedPosition { shared, suffix, row: unpack_row(bytes)? })
}

/// The first entry of a block that a search wanted.
struct FoundPosition<'a> {
    /// The number of entries before it.
    index: usize,
    /// There is none.
    is_end: bool,
    /// The number of bytes that its key shares with the target, and the other bytes.
    shared: usize,
    suffix: &'a [u8],
    row: i64,
    /// The end of the entry.
    offset: usize,
}

/// Finds the first entry that `is_found` accepts, by the order of its key to the target key and by
/// its item. No key is assembled: an entry that shares more with the entry before than that has in
/// common with the target has the same order to the target.
fn seek<'a>(
    block: &'a [u8],
    target: &[u8],
    is_found: impl Fn(Ordering, i64) -> bool,
) -> Result<FoundPosition<'a>, CorruptBlock> {
    let (mut rest, mut index, mut common) = (block, 0, 0);
    while !rest.is_empty() {
        let entry = unpack_entry(&mut rest).ok_or(CorruptBlock)?;
        if entry.shared <= common {
            let tail = target.get(entry.shared..).ok_or(CorruptBlock)?;
            let same = entry.suffix.iter().zip(tail).take_while(|(a, b)| a == b).count();
            if is_found(entry.suffix.get(same..).cmp(&tail.get(same..)), entry.row) {
                let PackedPosition { shared, suffix, row } = entry;
                let offset = block.len() - rest.len();
                return Ok(FoundPosition { index, is_end: false, shared, suffix, row, offset });
            }
            common = entry.shared + same;
        }
        index += 1;
    }
    let offset = block.len();
    Ok(FoundPosition { index, is_end: true, shared: 0, suffix: &[], row: 0, offset })
}

/// Packs the changes of a batch, which are sorted, into a run.
pub(crate) fn pack_run(changes: &[PositionChange]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for of_order in changes.chunk_by(|a, b| a.order == b.order) {
        let Some(PositionChange { order, .. }) = of_order.first() else { continue };
        write_varint(&mut bytes, order.order.into());
        write_varint(&mut bytes, order.partition.unsigned_abs());
        write_varint(&mut bytes, of_order.len() as u64);
        let mut last_key: &[u8] = &[];
        for PositionChange { position, is_insert, .. } in of_order {
            let number = position.row.unsigned_abs() << 1 | u64::from(!is_insert);
            pack_entry(&mut bytes, last_key, &position.key, number);
            last_key = &position.key;
        }
    }
    bytes
}

/// Appends the changes of a run.
pub(crate) fn unpack_run(
    mut bytes: &[u8],
    changes: &mut Vec<PositionChange>,
) -> Result<(), CorruptBlock> {
    while !bytes.is_empty() {
        unpack_order(&mut bytes, changes).ok_or(CorruptBlock)?;
    }
    Ok(())
}

fn unpack_order(bytes: &mut &[u8], changes: &mut Vec<PositionChange>) -> Option<()> {
    let order = PartitionOrder {
        order: u16::try_from(read_varint(bytes)?).ok()?,
        partition: i64::try_from(read_varint(bytes)?).ok()?,
    };
    let (mut keys, mut previous) = (Vec::new(), 0..0);
    for _ in 0..read_varint(bytes)? {
        previous = unpack_key(bytes, &mut keys, previous)?;
        let number = read_varint(bytes)?;
        let position =
            SortPosition { key: keys.get(previous.clone())?.to_vec(), row: (number >> 1) as i64 };
        changes.push(PositionChange { order, position, is_insert: number & 1 == 0 });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn unpacked(blocks: &[Vec<u8>]) -> Vec<(Vec<u8>, i64)> {
        let mut buffer = PositionBuffer::default();
        for block in blocks {
            buffer.unpack(block).expect("a packed block");
        }
        contents(&buffer)
    }

    fn contents(buffer: &PositionBuffer) -> Vec<(Vec<u8>, i64)> {
        let positions = (0..buffer.len()).filter_map(|at| buffer.get(at));
        positions.map(|(key, row)| (key.to_vec(), row)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_positions_are_unpacked(
            positions in proptest::collection::btree_set(("[a-c]{0,60}", 1..1000_i64), 0..300),
        ) {
            let positions: Vec<(Vec<u8>, i64)> =
                positions.into_iter().map(|(key, row)| (key.into_bytes(), row)).collect();
            let mut buffer = PositionBuffer::default();
            positions.iter().for_each(|(key, row)| buffer.push(key, *row));
            let (mut blocks, mut next) = (Vec::new(), 0);
            buffer
                .pack(&mut |range, block| {
                    assert_eq!(range.start, next);
                    assert!(block.len() <= BLOCK_BYTES, "{} bytes", block.len());
                    next = range.end;
                    blocks.push(block.to_vec());
                    Ok::<(), ()>(())
                })
                .expect("nothing fails");
            assert_eq!(next, positions.len());
            let bytes: usize = blocks.iter().map(Vec::len).sum();
            let most = bytes / BLOCK_BYTES + 2;
            assert!(blocks.len() <= most, "{} blocks of {bytes} bytes", blocks.len());
            assert_eq!(unpacked(&blocks), positions);
            let Some(block) = blocks.first() else { return Ok(()) };
            let in_block = unpacked(&blocks[..1]);
            let anywhere = [(b"b".to_vec(), 500), (Vec::new(), i64::MIN), (vec![0xff], 1)];
            for (key, row) in positions.iter().step_by(7).chain(&anywhere) {
                let position = SortPosition { key: key.clone(), row: *row };
                let before = in_block.partition_point(|other| other < &(key.clone(), *row));
                let passed = in_block.partition_point(|other| other <= &(key.clone(), *row));
                assert_eq!(count_before(block, &position), Ok(before));
                let mut buffer = PositionBuffer::default();
                buffer.unpack_before(block, &position).expect("a packed block");
                assert_eq!(contents(&buffer), in_block[..before]);
                let (mut cursor, mut found) = (PositionCursor::default(), Vec::new());
                cursor.open_after(block, &position).expect("a packed block");
                while let Some((key, row)) = cursor.current() {
                    found.push((key.to_vec(), row));
                    cursor.advance().expect("a packed block");
                }
                assert_eq!(found, in_block[passed..]);
            }
        }

        #[test]
        fn packed_runs_are_unpacked(
            changes in proptest::collection::btree_set(
                (0..3_u16, 1..3_i64, "[ab]{0,9}", 1..50_i64, any::<bool>()), 0..60),
        ) {
            let changes: BTreeSet<PositionChange> = changes
                .into_iter()
                .map(|(order, partition, key, row, is_insert)| PositionChange {
                    order: PartitionOrder { order, partition },
                    position: SortPosition { key: key.into_bytes(), row },
                    is_insert,
                })
                .collect();
            let changes: Vec<PositionChange> = changes.into_iter().collect();
            let mut found = Vec::new();
            unpack_run(&pack_run(&changes), &mut found).expect("a packed run");
            assert_eq!(found, changes);
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in proptest::collection::vec(0_u8.., 0..200),
            key in "[a-c]{0,3}",
        ) {
            let _malformed = PositionBuffer::default().unpack(&bytes);
            let position = SortPosition { key: key.into_bytes(), row: 3 };
            let _malformed = PositionBuffer::default().unpack_before(&bytes, &position);
            let mut cursor = PositionCursor::default();
            if cursor.open_after(&bytes, &position).is_ok() {
                while cursor.advance().is_ok() && cursor.current().is_some() {}
            }
            let _malformed = unpack_run(&bytes, &mut Vec::new());
        }
    }

    /// A key that is longer than a page has a block of its own.
    #[test]
    fn long_keys_are_packed() {
        let mut buffer = PositionBuffer::default();
        for (letter, row) in (b'a'..b'e').zip(1..) {
            buffer.push(&[letter; 9000], row);
        }
        let mut lengths = Vec::new();
        buffer
            .pack(&mut |range, _| {
                lengths.push(range.len());
                Ok::<(), ()>(())
            })
            .expect("nothing fails");
        assert_eq!(lengths, [1, 1, 1, 1]);
    }
}
