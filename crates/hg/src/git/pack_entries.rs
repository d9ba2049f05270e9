//! The objects of a pack that is being written, and its index (gitformat-pack(5), version 2).
//!
//! Apart from the writer, because there are millions of them: their form in memory decides how much
//! a conversion takes.

use crate::id_index::IdIndex;
use crate::object_id::GitId;
use sha1::{Digest as _, Sha1};

/// Signature and version.
const INDEX_HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Objects of which the entries are in one block.
const ENTRIES_PER_BLOCK: usize = 1 << 12;
/// From here on, an offset needs the table of 64 bits.
const MAX_SHORT_OFFSET: u64 = 1 << 31;

/// Where an object is in the pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackPlace {
    pub(crate) offset: u64,
    /// The number of deltas between the object and a whole one.
    pub(crate) chain: u8,
}

/// An object of the pack, in 34 bytes: there are millions of them.
pub(super) struct PackEntry {
    pub(super) id: [u8; 20],
    offset: [u8; 5],
    crc: [u8; 4],
    chain: u8,
    /// The fingerprint of its content.
    pub(super) fingerprint: [u8; 4],
}

impl PackEntry {
    pub(super) fn new(id: GitId, place: PackPlace, crc: u32, fingerprint: u32) -> PackEntry {
        let [_, _, _, offset @ ..] = place.offset.to_be_bytes();
        PackEntry {
            id: id.0,
            offset,
            crc: crc.to_be_bytes(),
            chain: place.chain,
            fingerprint: fingerprint.to_be_bytes(),
        }
    }

    pub(super) fn to_place(&self) -> PackPlace {
        let [a, b, c, d, e] = self.offset;
        PackPlace { offset: u64::from_be_bytes([0, 0, 0, a, b, c, d, e]), chain: self.chain }
    }
}

/// The objects of a pack, in blocks, so that adding one moves none.
#[derive(Default)]
pub(super) struct PackEntries {
    blocks: Vec<Vec<PackEntry>>,
    index: IdIndex,
}

impl PackEntries {
    fn get(&self, number: usize) -> Option<&PackEntry> {
        self.blocks.get(number / ENTRIES_PER_BLOCK)?.get(number % ENTRIES_PER_BLOCK)
    }

    pub(super) fn find(&self, id: &GitId) -> Option<&PackEntry> {
        let found = self.index.find(&id.0, |number| self.get(number).map(|entry| &entry.id));
        found.and_then(|number| self.get(number))
    }

    pub(super) fn push(&mut self, entry: PackEntry) {
        match self.blocks.last_mut().filter(|block| block.len() < ENTRIES_PER_BLOCK) {
            Some(block) => block.push(entry),
            None => {
                let mut block = Vec::with_capacity(ENTRIES_PER_BLOCK);
                block.push(entry);
                self.blocks.push(block);
            }
        }
        let blocks = &self.blocks;
        self.index.push(|number| {
            let block = blocks.get(number / ENTRIES_PER_BLOCK)?;
            block.get(number % ENTRIES_PER_BLOCK).map(|entry| &entry.id)
        });
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Returns the entries sorted by id.
    fn sort_by_id(&self) -> Vec<&PackEntry> {
        let mut sorted: Vec<&PackEntry> = self.blocks.iter().flatten().collect();
        sorted.sort_unstable_by_key(|entry| entry.id);
        sorted
    }
}

/// Returns the index file of a pack with these objects.
pub(super) fn encode_index(entries: &PackEntries, pack_checksum: GitId) -> Vec<u8> {
    let sorted = entries.sort_by_id();
    let mut index = Vec::with_capacity(1024 + 8 + 40 + sorted.len() * 28);
    index.extend_from_slice(&INDEX_HEADER);
    let mut place = 0;
    for first in 0..=u8::MAX {
        while sorted.get(place).is_some_and(|entry| entry.id[0] <= first) {
            place += 1;
        }
        index.extend((place as u32).to_be_bytes());
    }
    sorted.iter().for_each(|entry| index.extend_from_slice(&entry.id));
    sorted.iter().for_each(|entry| index.extend_from_slice(&entry.crc));
    let mut long_offsets: Vec<u64> = Vec::new();
    for entry in &sorted {
        let offset = entry.to_place().offset;
        let short = if offset < MAX_SHORT_OFFSET {
            offset as u32
        } else {
            long_offsets.push(offset);
            0x8000_0000 | (long_offsets.len() - 1) as u32
        };
        index.extend(short.to_be_bytes());
    }
    long_offsets.iter().for_each(|offset| index.extend(offset.to_be_bytes()));
    index.extend_from_slice(&pack_checksum.0);
    let checksum: [u8; 20] = Sha1::digest(&index).into();
    index.extend_from_slice(&checksum);
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_offsets_are_in_the_long_table() {
        let mut entries = PackEntries::default();
        for (byte, offset) in [(1_u8, 12), (2, 1 << 31), (3, 5 << 32)] {
            let place = PackPlace { offset, chain: 0 };
            entries.push(PackEntry::new(GitId([byte; 20]), place, 7, 0));
        }
        let index = encode_index(&entries, GitId::NULL);
        let offsets = &index[8 + 1024 + 3 * 24..];
        let expected = [12_u32, 0x8000_0000, 0x8000_0001].map(u32::to_be_bytes).concat();
        assert_eq!(offsets[..12], expected);
        assert_eq!(
            offsets[12..28],
            [(1_u64 << 31).to_be_bytes(), (5_u64 << 32).to_be_bytes()].concat()
        );
    }
}
