//! Chunks: a run of terms with the items that have them, packed to fill a page of the database.
//!
//! A chunk is entries in the order of their terms: how many bytes the term shares with the one
//! before, how many follow, these; how many items, doubled, and where there are several how many
//! bytes they take; then the items, the first as it is, each other one as the distance from the one
//! before. All numbers are varints of seven bits a byte, the lowest first. Where there are many
//! items their number is odd, and the distances are Rice codes, see `rice`, with a byte before them
//! that says how many of their bits are as they are. The items of a frequent term lie in several
//! entries, one after the other. This module packs and unpacks; it knows nothing of segments or of
//! the database.

use super::rice;
use super::varint::{read_varint, write_varint};
use std::mem;

/// What fits into a page of 4,096 bytes beside SQLite's own bytes, so that no chunk spills.
pub(super) const CHUNK_BYTES: usize = 4040;
/// Items of one entry take at most about this many bytes: an entry has to fit into a chunk, with
/// its term.
const MAX_POSTINGS_BYTES: usize = 3500;
/// What the last number of an entry takes at most.
const MAX_CODE_BYTES: usize = 16;
/// Four varints of two bytes at most: terms and postings are shorter than a chunk.
const ENTRY_OVERHEAD_BYTES: usize = 8;
/// So many items have distances that are worth a byte more.
const MIN_RICE_POSTINGS: usize = 8;
/// What is left of a chunk is filled with the first items of a frequent term, if it is so many
/// bytes.
const MIN_SPLIT_BYTES: usize = 64;
/// Packed items of up to so many bytes are not divided between chunks.
const MAX_UNDIVIDED_BYTES: usize = 256;

/// Fills chunks: terms in, in their order, and full chunks out.
#[derive(Default)]
pub(super) struct ChunkBuilder {
    chunk: Vec<u8>,
    /// The first and the last term in the chunk.
    first_term: Vec<u8>,
    last_term: Vec<u8>,
    postings: Vec<u8>,
    /// What the entries in the chunk weigh.
    rank_delta: i64,
}

impl ChunkBuilder {
    /// Adds a term with its items, which are in their order, each once, and each of this weight.
    /// Each full chunk is given to `full` with its first term before it, and what its items weigh
    /// behind it.
    pub(super) fn add<E>(
        &mut self,
        term: &[u8],
        items: &[i64],
        weight: i64,
        full: &mut impl FnMut(&[u8], &[u8], i64) -> Result<(), E>,
    ) -> Result<(), E> {
        let bits = (items.len() >= MIN_RICE_POSTINGS).then(|| rice::choose_parameter(items));
        let mut items = items;
        while let Some((&first, behind)) = items.split_first() {
            let mut postings = mem::take(&mut self.postings);
            postings.clear();
            write_varint(&mut postings, first.unsigned_abs());
            let room = CHUNK_BYTES.saturating_sub(
                self.chunk.len() + ENTRY_OVERHEAD_BYTES + term.len() + MAX_CODE_BYTES,
            );
            let most = if room < MIN_SPLIT_BYTES {
                MAX_POSTINGS_BYTES
            } else {
                room.min(MAX_POSTINGS_BYTES)
            };
            let (mut last, mut count) = (first, 1);
            items = behind;
            if let Some(bits) = bits {
                let mut codes = rice::RiceWriter::new(&mut postings, bits);
                while let Some((&item, behind)) = items.split_first()
                    && codes.len() < most
                {
                    codes.put(item.abs_diff(last));
                    (last, count, items) = (item, count + 1, behind);
                }
                codes.finish();
            } else {
                while let Some((&item, behind)) = items.split_first()
                    && postings.len() < most
                {
                    write_varint(&mut postings, item.abs_diff(last));
                    (last, count, items) = (item, count + 1, behind);
                }
            }
            self.postings = postings;
            self.write_entry(term, count, bits.is_some(), full)?;
            self.rank_delta += weight * count as i64;
        }
        Ok(())
    }

    /// Adds a term with items that are packed already, as they are; they are all that the term has.
    pub(super) fn add_packed<E>(
        &mut self,
        term: &[u8],
        items: &PackedPostings,
        weight: i64,
        full: &mut impl FnMut(&[u8], &[u8], i64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.postings.clear();
        self.postings.extend_from_slice(&items.bytes);
        self.write_entry(term, items.count, items.is_rice, full)?;
        self.rank_delta += weight * items.count as i64;
        Ok(())
    }

    fn write_entry<E>(
        &mut self,
        term: &[u8],
        count: u64,
        is_rice: bool,
        full: &mut impl FnMut(&[u8], &[u8], i64) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = self.chunk.len() + ENTRY_OVERHEAD_BYTES + term.len() + self.postings.len();
        if !self.chunk.is_empty() && length > CHUNK_BYTES {
            self.finish(full)?;
        }
        if self.chunk.is_empty() {
            self.first_term.clear();
            self.first_term.extend_from_slice(term);
            self.last_term.clear();
        }
        let shared = self.last_term.iter().zip(term).take_while(|(a, b)| a == b).count();
        write_varint(&mut self.chunk, shared as u64);
        write_varint(&mut self.chunk, (term.len() - shared) as u64);
        self.chunk.extend_from_slice(&term[shared..]);
        write_varint(&mut self.chunk, count << 1 | u64::from(is_rice));
        if count > 1 || is_rice {
            write_varint(&mut self.chunk, self.postings.len() as u64);
        }
        self.chunk.extend_from_slice(&self.postings);
        self.last_term.truncate(shared);
        self.last_term.extend_from_slice(&term[shared..]);
        Ok(())
    }

    /// Gives out the chunk that is not full yet.
    pub(super) fn finish<E>(
        &mut self,
        full: &mut impl FnMut(&[u8], &[u8], i64) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.chunk.is_empty() {
            full(&self.first_term, &self.chunk, mem::take(&mut self.rank_delta))?;
            self.chunk.clear();
        }
        Ok(())
    }
}

/// The items of a term, kept as they are packed.
#[derive(Debug, Clone, Default)]
pub(super) struct PackedPostings {
    bytes: Vec<u8>,
    count: u64,
    is_rice: bool,
}

impl PackedPostings {
    /// Keeps these instead.
    pub(super) fn set(&mut self, postings: &Postings<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(postings.packed);
        (self.count, self.is_rice) = (postings.count, postings.is_rice);
    }

    /// How many they are; a chunk holds no more than a few thousand.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.count).map_or(CHUNK_BYTES * 8, |count| count.min(CHUNK_BYTES * 8))
    }

    /// Are they so few that a chunk with them is as full as with items that can be divided?
    pub(super) fn is_small(&self) -> bool {
        self.bytes.len() <= MAX_UNDIVIDED_BYTES
    }

    /// Unpacks them, as [`Postings::unpack`] does.
    pub(super) fn unpack(&self, items: &mut Vec<i64>) -> Option<()> {
        let (count, is_rice) = (self.count, self.is_rice);
        Postings { count, is_rice, packed: &self.bytes }.unpack(items)
    }
}

/// An entry without its term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postings<'a> {
    /// How many items.
    pub(super) count: u64,
    is_rice: bool,
    packed: &'a [u8],
}

impl Postings<'_> {
    /// Unpacks the items behind what is in `items`. `None`: the entry is malformed.
    pub(super) fn unpack(&self, items: &mut Vec<i64>) -> Option<()> {
        let (mut packed, mut item) = (self.packed, 0_u64);
        let mut push = |distance| {
            item = item.checked_add(distance)?;
            items.push(i64::try_from(item).ok()?);
            Some(())
        };
        if !self.is_rice {
            return (0..self.count).try_for_each(|_| push(read_varint(&mut packed)?));
        }
        push(read_varint(&mut packed)?)?;
        let mut codes = rice::RiceReader::new(packed)?;
        (1..self.count).try_for_each(|_| push(codes.read()?))
    }
}

/// Steps over a chunk's entries.
pub(super) struct ChunkEntries<'a> {
    rest: &'a [u8],
}

/// One step: the shared length, what follows of the term, and the items.
#[derive(Clone, Copy)]
pub(super) struct ChunkEntry<'a> {
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
    pub(super) postings: Postings<'a>,
}

impl<'a> ChunkEntries<'a> {
    pub(super) fn new(chunk: &'a [u8]) -> ChunkEntries<'a> {
        ChunkEntries { rest: chunk }
    }

    /// How many bytes are left: where the next entry begins, from the end.
    pub(super) fn remaining_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Goes to the first entry whose term is `wanted` or behind it, and returns that. It shares its
    /// beginning with `wanted`. To be called at a chunk's begin.
    pub(super) fn seek(&mut self, wanted: &[u8]) -> Result<Option<ChunkEntry<'a>>, MalformedChunk> {
        // What the entry before, which is less, has in common with what is wanted: what shares more
        // than that with it is less, too, and need not be put together.
        let mut common = 0;
        while let Some(entry) = self.next()? {
            if entry.shared > common {
                continue;
            }
            let rest = wanted.get(entry.shared..).ok_or(MalformedChunk)?;
            if entry.suffix >= rest {
                return Ok(Some(entry));
            }
            common =
                entry.shared + entry.suffix.iter().zip(rest).take_while(|(a, b)| a == b).count();
        }
        Ok(None)
    }

    /// Is the next entry one more of this term, that of the one before?
    pub(super) fn has_more_of_term(&self, term: &[u8]) -> bool {
        let mut rest = self.rest;
        let Some((shared, length)) = read_varint(&mut rest).zip(read_varint(&mut rest)) else {
            return false;
        };
        shared.checked_add(length) == Some(term.len() as u64)
            && rest.get(..length as usize) == term.get(shared as usize..)
    }

    /// The next entry. `Err`: the chunk is malformed.
    pub(super) fn next(&mut self) -> Result<Option<ChunkEntry<'a>>, MalformedChunk> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.read_entry().map(Some).ok_or(MalformedChunk)
    }

    fn read_entry(&mut self) -> Option<ChunkEntry<'a>> {
        let rest = &mut self.rest;
        let shared = usize::try_from(read_varint(rest)?).ok()?;
        let length = usize::try_from(read_varint(rest)?).ok()?;
        let (suffix, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        let count = read_varint(rest)?;
        let (count, is_rice) = (count >> 1, count & 1 == 1);
        let length = if count == 1 && !is_rice {
            rest.iter().position(|byte| byte & 0x80 == 0)? + 1
        } else {
            usize::try_from(read_varint(rest)?).ok()?
        };
        let (packed, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        Some(ChunkEntry { shared, suffix, postings: Postings { count, is_rice, packed } })
    }
}

/// A chunk is not what this module packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedChunk;

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(terms: &[(Vec<u8>, Vec<i64>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut chunks = Vec::new();
        let mut packer = ChunkBuilder::default();
        let mut full = |first: &[u8], chunk: &[u8], _| {
            chunks.push((first.to_vec(), chunk.to_vec()));
            Ok::<(), ()>(())
        };
        for (term, items) in terms {
            packer.add(term, items, 0, &mut full).expect("full never fails");
        }
        packer.finish(&mut full).expect("full never fails");
        chunks
    }

    fn unpacked(chunks: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<i64>)> {
        let mut found: Vec<(Vec<u8>, Vec<i64>)> = Vec::new();
        for (first, chunk) in chunks {
            assert!(chunk.len() <= CHUNK_BYTES);
            let (mut entries, mut term) = (ChunkEntries::new(chunk), Vec::new());
            let mut is_first = true;
            while let Some(entry) = entries.next().expect("what was packed") {
                term.truncate(entry.shared);
                term.extend_from_slice(entry.suffix);
                assert!(!is_first || &term == first);
                is_first = false;
                if found.last().is_none_or(|(last, _)| last != &term) {
                    found.push((term.clone(), Vec::new()));
                }
                let (_, items) = found.last_mut().expect("a term was pushed");
                entry.postings.unpack(items).expect("what was packed");
            }
        }
        found
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut terms: Vec<(Vec<u8>, Vec<i64>)> = (0..3000_i64)
            .map(|n| (format!("term {n:05}").into_bytes(), (n..n + n % 7 + 1).collect()))
            .collect();
        // A term of more items than a chunk holds, far from each other.
        terms.push((b"z".to_vec(), (0..40_000).map(|n| n * 1000).collect()));
        terms.push((vec![b'z'; 123], vec![i64::MAX]));
        let chunks = packed(&terms);
        assert!(chunks.len() > 10);
        assert_eq!(unpacked(&chunks), terms);
    }

    proptest::proptest! {
        #[test]
        fn seeking_is_reading_to_it(
            terms in proptest::collection::btree_set("[ab]{0,6}", 1..60),
            wanted in "[abc]{0,6}",
        ) {
            let terms: Vec<_> = terms.into_iter().map(|term| (term.into_bytes(), vec![1])).collect();
            let chunks = packed(&terms);
            let expect = terms.iter().find(|(term, _)| term.as_slice() >= wanted.as_bytes());
            let found = ChunkEntries::new(&chunks[0].1).seek(wanted.as_bytes()).expect("what was packed");
            let found = found.map(|entry| {
                [&wanted.as_bytes()[..entry.shared], entry.suffix].concat()
            });
            assert_eq!(found.as_ref(), expect.map(|(term, _)| term));
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let mut entries = ChunkEntries::new(&bytes);
            let mut items = Vec::new();
            while let Ok(Some(entry)) = entries.next() {
                items.clear();
                let _malformed = entry.postings.unpack(&mut items);
            }
        }
    }
}
