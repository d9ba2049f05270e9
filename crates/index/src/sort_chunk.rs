//! The byte formats of the sort index: chunks of positions, and level-0 runs of changes.
//!
//! An entry of a chunk is:
//!
//! | part | encoding |
//! |---|---|
//! | bytes that the key shares with the key before it | varint |
//! | bytes of the key that follow, and these bytes | varint, bytes |
//! | the item | varint |
//!
//! A run has for each order its two numbers, the number of its changes, and these as entries, in
//! which the item is doubled; odd if the item is removed. A chunk fills a page, as those of the
//! inverted index do, unless a single key is longer.

use crate::chunk::{CHUNK_BYTES, MalformedChunk};
use crate::sort_pages::{PartitionOrder, PositionChange, SortPosition};
use crate::varint::{read_varint, write_varint};
use std::ops::Range;

/// The positions of one chunk or of several neighbours, unpacked: keys in one buffer, so that a
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

    /// Returns the number of positions before the first one that does not satisfy `is_before`.
    pub(crate) fn partition_point(&self, is_before: impl Fn((&[u8], i64)) -> bool) -> usize {
        let mut range = 0..self.len();
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            match self.get(middle).is_some_and(&is_before) {
                true => range.start = middle + 1,
                false => range.end = middle,
            }
        }
        range.start
    }

    #[inline]
    fn key_start(&self, index: usize) -> usize {
        let before = index.checked_sub(1).and_then(|before| self.entries.get(before));
        before.map_or(0, |(end, _)| *end)
    }

    /// Appends the positions of a chunk.
    pub(crate) fn unpack(&mut self, mut chunk: &[u8]) -> Result<(), MalformedChunk> {
        let mut previous = 0..0;
        while !chunk.is_empty() {
            previous = unpack_key(&mut chunk, &mut self.keys, previous).ok_or(MalformedChunk)?;
            let row = read_varint(&mut chunk).and_then(|row| i64::try_from(row).ok());
            self.entries.push((previous.end, row.ok_or(MalformedChunk)?));
        }
        Ok(())
    }

    /// Packs the positions into as few chunks as hold them, evenly filled. Passes each to `each`:
    /// the index of its first position, and its bytes.
    pub(crate) fn pack<E>(
        &self,
        each: &mut dyn FnMut(Range<usize>, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut chunks, mut bytes) = (0, 0);
        self.pack_up_to::<E>(CHUNK_BYTES, &mut |_, chunk| {
            chunks += 1;
            bytes += chunk.len();
            Ok(())
        })?;
        // A chunk ends with the entry that reaches its share.
        let share = if chunks < 2 { CHUNK_BYTES } else { bytes / chunks };
        self.pack_up_to(share, each)
    }

    fn pack_up_to<E>(
        &self,
        share: usize,
        each: &mut dyn FnMut(Range<usize>, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut chunk, mut entry) = (Vec::with_capacity(CHUNK_BYTES), Vec::new());
        let (mut first, mut last_key): (usize, &[u8]) = (0, &[]);
        for index in 0..self.len() {
            let Some((key, row)) = self.get(index) else { break };
            entry.clear();
            pack_entry(&mut entry, last_key, key, row.unsigned_abs());
            if !chunk.is_empty()
                && (chunk.len() >= share || chunk.len() + entry.len() > CHUNK_BYTES)
            {
                each(first..index, &chunk)?;
                chunk.clear();
                first = index;
                entry.clear();
                pack_entry(&mut entry, &[], key, row.unsigned_abs());
            }
            chunk.extend_from_slice(&entry);
            last_key = key;
        }
        if chunk.is_empty() { Ok(()) } else { each(first..self.len(), &chunk) }
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
) -> Result<(), MalformedChunk> {
    while !bytes.is_empty() {
        unpack_order(&mut bytes, changes).ok_or(MalformedChunk)?;
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

    fn unpacked(chunks: &[Vec<u8>]) -> Vec<(Vec<u8>, i64)> {
        let mut buffer = PositionBuffer::default();
        for chunk in chunks {
            buffer.unpack(chunk).expect("a packed chunk");
        }
        (0..buffer.len())
            .filter_map(|at| buffer.get(at))
            .map(|(key, row)| (key.to_vec(), row))
            .collect()
    }

    proptest! {
        #[test]
        fn packed_positions_are_unpacked(
            positions in proptest::collection::btree_set(("[a-c]{0,40}", 1..1000_i64), 0..600),
        ) {
            let positions: Vec<(Vec<u8>, i64)> =
                positions.into_iter().map(|(key, row)| (key.into_bytes(), row)).collect();
            let mut buffer = PositionBuffer::default();
            positions.iter().for_each(|(key, row)| buffer.push(key, *row));
            let (mut chunks, mut next) = (Vec::new(), 0);
            buffer
                .pack(&mut |range, chunk| {
                    assert_eq!(range.start, next);
                    assert!(chunk.len() <= CHUNK_BYTES, "{} bytes", chunk.len());
                    next = range.end;
                    chunks.push(chunk.to_vec());
                    Ok::<(), ()>(())
                })
                .expect("nothing fails");
            assert_eq!(next, positions.len());
            let bytes: usize = chunks.iter().map(Vec::len).sum();
            assert!(chunks.len() <= bytes / CHUNK_BYTES + 2, "{} chunks of {bytes} bytes", chunks.len());
            assert_eq!(unpacked(&chunks), positions);
            for (at, (key, row)) in positions.iter().enumerate() {
                let is_before = |other: (&[u8], i64)| other < (key.as_slice(), *row);
                assert_eq!(buffer.partition_point(is_before), at);
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
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let _malformed = PositionBuffer::default().unpack(&bytes);
            let _malformed = unpack_run(&bytes, &mut Vec::new());
        }
    }

    /// A key that is longer than a page has a chunk of its own.
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
