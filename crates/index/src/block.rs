//! Blocks: runs of terms with their posting lists, packed to fill one page.
//!
//! A block is a sequence of entries in the order of their terms. An entry is:
//!
//! | part | encoding |
//! |---|---|
//! | bytes that the term shares with the term before it | varint |
//! | bytes of the term that follow, and these bytes | varint, bytes |
//! | number of postings, doubled; odd if the gaps are Rice codes | varint |
//! | bytes of the postings; absent for a single posting in a varint | varint |
//! | the first item | varint |
//! | the gaps to each next item | varints, or Rice codes (see `rice`) |
//!
//! A posting list of at least [`MIN_RICE_POSTINGS`] items uses Rice codes. A list that does not fit
//! into one entry is divided into several, one after the other. A reader that needs only the number
//! of postings, or the next term, skips the postings by their length. More data, such as positions,
//! can therefore follow the items of an entry without slowing such a reader.
//!
//! The module only packs and unpacks; it does not depend on segments or pages.

use crate::rice;
use crate::varint::{read_varint, write_varint};
use std::mem;

/// Upper bound of a block: a page of 4,096 bytes less the bytes that a B-tree page needs itself, so
/// that no block spills onto an overflow page.
pub(crate) const BLOCK_BYTES: usize = 4040;
/// Upper bound of the postings of one entry: an entry and its term have to fit into a block.
const MAX_POSTINGS_BYTES: usize = 3500;
/// Upper bound of one gap in bytes.
const MAX_GAP_BYTES: usize = 16;
/// Four varints of at most two bytes: terms and postings are shorter than a block.
const ENTRY_OVERHEAD_BYTES: usize = 8;
/// From this many postings on, Rice codes are worth the byte of their parameter.
const MIN_RICE_POSTINGS: usize = 8;
/// The rest of a block is filled with the first items of a long posting list if it has at least
/// this many bytes.
const MIN_SPLIT_BYTES: usize = 64;
/// Packed postings of at most this many bytes are never divided between blocks.
const MAX_UNDIVIDED_BYTES: usize = 256;

/// Builds blocks from terms, which are added in ascending order.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    block: Vec<u8>,
    /// The first and the last term in the block.
    first_term: Vec<u8>,
    last_term: Vec<u8>,
    postings: Vec<u8>,
}

impl BlockBuilder {
    /// Adds a term with its items, which are ascending and distinct. Passes each full block to
    /// `full`: its first term and its bytes.
    pub(crate) fn add<E>(
        &mut self,
        term: &[u8],
        items: &[i64],
        full: &mut impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let bits = (items.len() >= MIN_RICE_POSTINGS).then(|| rice::choose_parameter(items));
        let mut items = items;
        while let Some((&first, tail)) = items.split_first() {
            let mut postings = mem::take(&mut self.postings);
            postings.clear();
            write_varint(&mut postings, first.unsigned_abs());
            let room = BLOCK_BYTES.saturating_sub(
                self.block.len() + ENTRY_OVERHEAD_BYTES + term.len() + MAX_GAP_BYTES,
            );
            let most = if room < MIN_SPLIT_BYTES {
                MAX_POSTINGS_BYTES
            } else {
                room.min(MAX_POSTINGS_BYTES)
            };
            let (mut last, mut count) = (first, 1);
            items = tail;
            if let Some(bits) = bits {
                let mut codes = rice::RiceWriter::new(&mut postings, bits);
                while let Some((&item, tail)) = items.split_first()
                    && codes.len() < most
                {
                    codes.put(item.abs_diff(last));
                    (last, count, items) = (item, count + 1, tail);
                }
                codes.finish();
            } else {
                while let Some((&item, tail)) = items.split_first()
                    && postings.len() < most
                {
                    write_varint(&mut postings, item.abs_diff(last));
                    (last, count, items) = (item, count + 1, tail);
                }
            }
            self.postings = postings;
            self.write_entry(term, count, bits.is_some(), full)?;
        }
        Ok(())
    }

    /// Adds a term whose whole posting list is packed already.
    pub(crate) fn add_packed<E>(
        &mut self,
        term: &[u8],
        items: &PackedPostings,
        full: &mut impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.postings.clear();
        self.postings.extend_from_slice(&items.bytes);
        self.write_entry(term, items.count, items.is_rice, full)
    }

    fn write_entry<E>(
        &mut self,
        term: &[u8],
        count: u64,
        is_rice: bool,
        full: &mut impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = self.block.len() + ENTRY_OVERHEAD_BYTES + term.len() + self.postings.len();
        if !self.block.is_empty() && length > BLOCK_BYTES {
            self.finish(full)?;
        }
        if self.block.is_empty() {
            self.first_term.clear();
            self.first_term.extend_from_slice(term);
            self.last_term.clear();
        }
        let shared = self.last_term.iter().zip(term).take_while(|(a, b)| a == b).count();
        write_varint(&mut self.block, shared as u64);
        write_varint(&mut self.block, (term.len() - shared) as u64);
        self.block.extend_from_slice(&term[shared..]);
        write_varint(&mut self.block, count << 1 | u64::from(is_rice));
        if count > 1 || is_rice {
            write_varint(&mut self.block, self.postings.len() as u64);
        }
        self.block.extend_from_slice(&self.postings);
        self.last_term.truncate(shared);
        self.last_term.extend_from_slice(&term[shared..]);
        Ok(())
    }

    /// Passes the last, partly filled block to `full`.
    pub(crate) fn finish<E>(
        &mut self,
        full: &mut impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.block.is_empty() {
            full(&self.first_term, &self.block)?;
            self.block.clear();
        }
        Ok(())
    }
}

/// An owned posting list in packed form.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedPostings {
    bytes: Vec<u8>,
    count: u64,
    is_rice: bool,
}

impl PackedPostings {
    /// Replaces the contents.
    pub(crate) fn set(&mut self, postings: &Postings<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(postings.packed);
        (self.count, self.is_rice) = (postings.count, postings.is_rice);
    }

    /// Returns the number of postings, bounded by the most that a block can hold.
    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.count).map_or(BLOCK_BYTES * 8, |count| count.min(BLOCK_BYTES * 8))
    }

    /// Returns whether the list is so short that leaving it undivided does not leave blocks partly
    /// empty.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes.len() <= MAX_UNDIVIDED_BYTES
    }

    /// Appends the items to `items`, as [`Postings::unpack`] does.
    pub(crate) fn unpack(&self, items: &mut Vec<i64>) -> Option<()> {
        let (count, is_rice) = (self.count, self.is_rice);
        Postings { count, is_rice, packed: &self.bytes }.unpack(items)
    }
}

/// The posting list of one entry, in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Postings<'a> {
    /// The number of postings.
    pub(crate) count: u64,
    is_rice: bool,
    packed: &'a [u8],
}

impl Postings<'_> {
    /// Appends the items to `items`; `None` if the entry is malformed.
    pub(crate) fn unpack(&self, items: &mut Vec<i64>) -> Option<()> {
        let (mut packed, mut item) = (self.packed, 0_u64);
        let mut push = |gap| {
            item = item.checked_add(gap)?;
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

/// A cursor over the entries of a block.
pub(crate) struct BlockEntries<'a> {
    rest: &'a [u8],
}

/// An entry: the bytes shared with the term before, the rest of the term, and the postings.
#[derive(Clone, Copy)]
pub(crate) struct BlockEntry<'a> {
    pub(crate) shared: usize,
    pub(crate) suffix: &'a [u8],
    pub(crate) postings: Postings<'a>,
}

impl<'a> BlockEntries<'a> {
    pub(crate) fn new(block: &'a [u8]) -> BlockEntries<'a> {
        BlockEntries { rest: block }
    }

    /// Returns the number of bytes after the cursor.
    pub(crate) fn remaining_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Advances past the first entry whose term is at least `target`, and returns it. The `shared`
    /// bytes of that entry are shared with `target`. Must be called at the beginning of a block.
    pub(crate) fn seek(&mut self, target: &[u8]) -> Result<Option<BlockEntry<'a>>, CorruptBlock> {
        // The number of bytes that the term before, which is less than the target, has in common
        // with it. A term that shares more than these with the term before is less, too, and need
        // not be assembled.
        let mut common = 0;
        while let Some(entry) = self.next()? {
            if entry.shared > common {
                continue;
            }
            let rest = target.get(entry.shared..).ok_or(CorruptBlock)?;
            if entry.suffix >= rest {
                return Ok(Some(entry));
            }
            common =
                entry.shared + entry.suffix.iter().zip(rest).take_while(|(a, b)| a == b).count();
        }
        Ok(None)
    }

    /// Returns whether the next entry continues the posting list of `term`, the term before it.
    #[inline]
    pub(crate) fn has_more_of_term(&self, term: &[u8]) -> bool {
        let mut rest = self.rest;
        let Some((shared, length)) = read_varint(&mut rest).zip(read_varint(&mut rest)) else {
            return false;
        };
        shared.checked_add(length) == Some(term.len() as u64)
            && rest.get(..length as usize) == term.get(shared as usize..)
    }

    /// Returns the next entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<BlockEntry<'a>>, CorruptBlock> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.read_entry().map(Some).ok_or(CorruptBlock)
    }

    fn read_entry(&mut self) -> Option<BlockEntry<'a>> {
        let rest = &mut self.rest;
        let shared = usize::try_from(read_varint(rest)?).ok()?;
        let length = usize::try_from(read_varint(rest)?).ok()?;
        let (suffix, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        let count = read_varint(rest)?;
        let (count, is_rice) = (count >> 1, count & 1 == 1);
        let length = if count == 1 && !is_rice {
            rest.iter().position(|byte| byte & 0x80 == 0)? + 1
        } else {
            usize::try_from(read_varint(rest)?).ok()?
        };
        let (packed, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        Some(BlockEntry { shared, suffix, postings: Postings { count, is_rice, packed } })
    }
}

/// The error of bytes that are no block, or of a block that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorruptBlock;

#[cfg(test)]
mod tests {
    use super::*;

    fn pack_postings(terms: &[(Vec<u8>, Vec<i64>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut blocks = Vec::new();
        let mut packer = BlockBuilder::default();
        let mut full = |first: &[u8], block: &[u8]| {
            blocks.push((first.to_vec(), block.to_vec()));
            Ok::<(), ()>(())
        };
        for (term, items) in terms {
            packer.add(term, items, &mut full).expect("full never fails");
        }
        packer.finish(&mut full).expect("full never fails");
        blocks
    }

    fn unpack_postings(blocks: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<i64>)> {
        let mut found: Vec<(Vec<u8>, Vec<i64>)> = Vec::new();
        for (first, block) in blocks {
            assert!(block.len() <= BLOCK_BYTES);
            let (mut entries, mut term) = (BlockEntries::new(block), Vec::new());
            let mut is_first = true;
            while let Some(entry) = entries.next().expect("a block of the builder") {
                term.truncate(entry.shared);
                term.extend_from_slice(entry.suffix);
                assert!(!is_first || &term == first);
                is_first = false;
                if found.last().is_none_or(|(last, _)| last != &term) {
                    found.push((term.clone(), Vec::new()));
                }
                let (_, items) = found.last_mut().expect("a term was pushed");
                entry.postings.unpack(items).expect("a block of the builder");
            }
        }
        found
    }

    #[test]
    fn packed_blocks_are_unpacked() {
        let mut terms: Vec<(Vec<u8>, Vec<i64>)> = (0..3000_i64)
            .map(|n| (format!("term {n:05}").into_bytes(), (n..n + n % 7 + 1).collect()))
            .collect();
        // A posting list that is longer than a block, with large gaps.
        terms.push((b"z".to_vec(), (0..40_000).map(|n| n * 1000).collect()));
        terms.push((vec![b'z'; 123], vec![i64::MAX]));
        let blocks = pack_postings(&terms);
        assert!(blocks.len() > 10);
        assert_eq!(unpack_postings(&blocks), terms);
    }

    proptest::proptest! {
        #[test]
        fn seek_finds_the_first_term_not_below_the_target(
            terms in proptest::collection::btree_set("[ab]{0,6}", 1..60),
            target in "[abc]{0,6}",
        ) {
            let terms: Vec<_> = terms.into_iter().map(|term| (term.into_bytes(), vec![1])).collect();
            let blocks = pack_postings(&terms);
            let expect = terms.iter().find(|(term, _)| term.as_slice() >= target.as_bytes());
            let found = BlockEntries::new(&blocks[0].1).seek(target.as_bytes()).expect("a block of the builder");
            let found = found.map(|entry| {
                [&target.as_bytes()[..entry.shared], entry.suffix].concat()
            });
            assert_eq!(found.as_ref(), expect.map(|(term, _)| term));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let mut entries = BlockEntries::new(&bytes);
            let mut items = Vec::new();
            while let Ok(Some(entry)) = entries.next() {
                items.clear();
                let _malformed = entry.postings.unpack(&mut items);
            }
        }
    }
}
