//! Blocks of the word index: entries of a term, its rows and its positions in each row.
//!
//! A block is a sequence of entries in the order of their [posting keys](PostingKey). An entry is:
//!
//! | part | encoding |
//! |---|---|
//! | bytes that the term shares with the term before it | varint |
//! | bytes of the term that follow, and these bytes | varint, bytes |
//! | number of rows; 0 if the positions continue those of the row in the entry before it | varint |
//! | bytes of the rows, bytes of the positions | varints |
//! | the first row | varint |
//! | the gaps to each next row | varints, or Rice codes from 8 rows on (see `rice`) |
//! | a list of positions for each row (see `position_list`), or nothing | position lists |
//!
//! A term with more than fits into one entry has several, in the order of their rows. A row whose
//! positions alone do not fit has an entry of its own, which entries without rows of the same
//! posting key continue, each with a list of the next positions.
//!
//! Separate from `block`, whose entries are keyed by the term alone: here, an entry is found by the
//! row too, so that a few rows of a frequent term are read without the others. The module only
//! packs and unpacks; it does not depend on segments or pages.

use crate::block::{BLOCK_BYTES, CorruptBlock};
use crate::position_list::{PositionLists, varint_length, write_position_list};
use crate::rice;
use crate::term::prefix_key;
use crate::varint::{read_varint, write_varint};

/// Upper bound of the length of a word's term in bytes.
pub const MAX_WORD_BYTES: usize = 200;
/// Upper bound of the rows and positions of an entry: it has to fit into a block with its term.
pub(crate) const MAX_ENTRY_BYTES: usize = 3400;
/// A row with at least this many bytes of positions may have more of them in continuing entries.
pub(crate) const MIN_CONTINUED_BYTES: usize = 1024;
/// The positions of a row that are divided between entries have about this size in each but the
/// last.
const CONTINUED_BYTES: usize = 2400;
/// Five varints of at most two bytes.
const ENTRY_OVERHEAD_BYTES: usize = 10;
/// Upper bound of the first row in bytes, with the parameter of the Rice codes.
const FIRST_ROW_BYTES: usize = 6;
/// Upper bound of a gap in a varint.
const MAX_VARINT_BYTES: usize = 5;
/// Upper bound of a gap in a Rice code.
const MAX_CODE_BYTES: usize = 11;
/// From this many rows on, Rice codes are worth the byte of their parameter.
const MIN_RICE_ROWS: usize = 8;
/// The parameter of the Rice codes is chosen by at most this many rows: those of one entry.
const PARAMETER_ROWS: usize = 1024;
/// The rest of a block is filled with the first rows of a term if it has at least this many bytes.
const MIN_SPLIT_BYTES: usize = 200;
/// Terms with at most this many bytes of rows and positions are not divided between blocks.
const MAX_UNDIVIDED_BYTES: usize = 256;

/// The key of an entry: its term and its first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PostingKey<'a> {
    pub(crate) term: &'a [u8],
    pub(crate) first_row: u32,
}

impl<'a> PostingKey<'a> {
    /// Replaces `key` by the bytes of the key, which have the order of the keys: the term, a zero
    /// byte, which no term contains, and the row in big-endian order.
    pub(crate) fn write(self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.term);
        key.push(0);
        key.extend_from_slice(&self.first_row.to_be_bytes());
    }

    /// Reads the bytes of a key.
    pub(crate) fn read(key: &'a [u8]) -> Result<PostingKey<'a>, CorruptBlock> {
        let (term, row) = key.split_last_chunk().ok_or(CorruptBlock)?;
        let (0, term) = term.split_last().ok_or(CorruptBlock)? else { return Err(CorruptBlock) };
        Ok(PostingKey { term, first_row: u32::from_be_bytes(*row) })
    }
}

/// The entry of a term, in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordEntry<'a> {
    /// The number of rows; 0 if the entry continues the positions of the row before it.
    pub(crate) count: usize,
    /// The first row, in which the positions of a continuing entry are, too.
    pub(crate) first_row: u32,
    /// The rows, encoded.
    pub(crate) rows: &'a [u8],
    /// The lists of positions, one for each row or none at all.
    pub(crate) positions: &'a [u8],
}

impl<'a> WordEntry<'a> {
    /// Reads the first entry of `rest` and advances past it; `None` at the end of the block.
    /// `term` is replaced by the entry's term; it has to be that of the entry before, and empty at
    /// the beginning of the block.
    #[inline]
    pub(crate) fn read(
        rest: &mut &'a [u8],
        term: &mut Vec<u8>,
    ) -> Result<Option<WordEntry<'a>>, CorruptBlock> {
        if rest.is_empty() {
            return Ok(None);
        }
        WordEntry::read_next(rest, term).map(|(entry, _)| Some(entry)).ok_or(CorruptBlock)
    }

    /// Reads the first entry of bytes that are not empty, as [`WordEntry::read`]. Returns also the
    /// number of its bytes behind the term.
    pub(crate) fn read_with_tail(
        rest: &mut &'a [u8],
        term: &mut Vec<u8>,
    ) -> Result<(WordEntry<'a>, usize), CorruptBlock> {
        WordEntry::read_next(rest, term).ok_or(CorruptBlock)
    }

    #[inline]
    fn read_next(rest: &mut &'a [u8], term: &mut Vec<u8>) -> Option<(WordEntry<'a>, usize)> {
        let shared = read_length(rest)?;
        let suffix = read_length(rest)?;
        let (suffix, tail) = rest.split_at_checked(suffix)?;
        *rest = tail;
        if shared > term.len() || shared + suffix.len() > MAX_WORD_BYTES {
            return None;
        }
        term.truncate(shared);
        term.extend_from_slice(suffix);
        let tail_and_rest = rest.len();
        let count = read_length(rest)?;
        let (row_bytes, position_bytes) = (read_length(rest)?, read_length(rest)?);
        let (rows, tail) = rest.split_at_checked(row_bytes)?;
        let (positions, tail) = tail.split_at_checked(position_bytes)?;
        *rest = tail;
        let mut first = rows;
        let first_row = u32::try_from(read_varint(&mut first)?).ok()?;
        let is_small = rows.len() + positions.len() <= MAX_ENTRY_BYTES;
        let entry = WordEntry { count, first_row, rows, positions };
        is_small.then_some((entry, tail_and_rest - rest.len()))
    }

    /// Returns the number of bytes of the rows and positions.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() + self.positions.len()
    }

    /// Appends the rows, ascending; none if the entry continues the positions of a row.
    pub(crate) fn decode_rows(&self, rows: &mut Vec<u32>) -> Result<(), CorruptBlock> {
        decode_rows(self.count, self.rows, rows).ok_or(CorruptBlock)
    }
}

/// Reads the length of a part of a block, or the number of its rows, which has the same bound.
#[inline]
fn read_length(rest: &mut &[u8]) -> Option<usize> {
    let length = usize::try_from(read_varint(rest)?).ok()?;
    (length <= BLOCK_BYTES * 8).then_some(length)
}

/// Appends `count` rows.
pub(crate) fn decode_rows(count: usize, mut bytes: &[u8], rows: &mut Vec<u32>) -> Option<()> {
    let mut row = u32::try_from(read_varint(&mut bytes)?).ok()?;
    if count == 0 {
        return Some(());
    }
    rows.reserve(count);
    rows.push(row);
    if count >= MIN_RICE_ROWS {
        let mut codes = rice::RiceReader::new(bytes)?;
        let read = codes.read_bitmap(row, count - 1, rows);
        let mut row = rows.last().copied()?;
        return (read + 1..count).try_for_each(|_| {
            row = u32::try_from(codes.read()?).ok().and_then(|gap| row.checked_add(gap))?;
            rows.push(row);
            Some(())
        });
    }
    let mut push = |gap: u64| {
        let gap = u32::try_from(gap).ok().filter(|gap| *gap > 0)?;
        row = row.checked_add(gap)?;
        rows.push(row);
        Some(())
    };
    (1..count).try_for_each(|_| push(read_varint(&mut bytes)?))
}

/// Appends rows in the encoding of an entry.
fn encode_rows(bytes: &mut Vec<u8>, rows: &[u32], parameter: u8) {
    let Some(first) = rows.first() else { return };
    write_varint(bytes, u64::from(*first));
    let gaps = rows.iter().zip(rows.iter().skip(1)).map(|(row, next)| next.abs_diff(*row).into());
    if rows.len() < MIN_RICE_ROWS {
        return gaps.for_each(|gap| write_varint(bytes, gap));
    }
    let mut codes = rice::RiceWriter::new(bytes, parameter);
    gaps.for_each(|gap| codes.put(gap));
    codes.finish();
}

/// Chooses the parameter of the Rice codes for the first of these rows.
fn choose_parameter(rows: &[u32]) -> u8 {
    let rows = rows.get(..PARAMETER_ROWS).unwrap_or(rows);
    let (first, last) = (rows.first().copied().unwrap_or(0), rows.last().copied().unwrap_or(0));
    rice::parameter_of_span(last.abs_diff(first).into(), rows.len().saturating_sub(1))
}

/// Returns the number of bytes at the beginning that two terms share.
#[inline]
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    // Zeros stand for the bytes behind a shorter term.
    let differences = prefix_key(a) ^ prefix_key(b);
    match differences {
        0 => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
        _ => ((differences.leading_zeros() / 8) as usize).min(a.len()).min(b.len()),
    }
}

/// Divides positions into those of one entry and the rest.
fn split_positions(positions: &[u32]) -> (&[u32], &[u32]) {
    let (mut bytes, mut previous) = (0, 0);
    let is_over = |position: &u32| {
        bytes += varint_length(position.abs_diff(previous)) as usize;
        previous = *position;
        bytes > CONTINUED_BYTES
    };
    let count = positions.iter().position(is_over).unwrap_or(positions.len());
    positions.split_at_checked(count).unwrap_or((positions, &[]))
}

/// Blocks that are full, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct FullBlocks {
    bytes: Vec<u8>,
    /// The posting keys of the first entries.
    keys: Vec<u8>,
    /// The end of each block in `bytes`, and of its key in `keys`.
    ends: Vec<(usize, usize)>,
}

impl FullBlocks {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.ends.clear();
    }

    /// Appends a block with the key of its first entry.
    pub(crate) fn push(&mut self, first_key: &[u8], block: &[u8]) {
        self.bytes.extend_from_slice(block);
        self.keys.extend_from_slice(first_key);
        self.ends.push((self.bytes.len(), self.keys.len()));
    }

    /// Returns the key of the first entry of each block, and its bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = [(0, 0)].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|((block, key), (block_end, key_end))| {
            Some((self.keys.get(key..*key_end)?, self.bytes.get(block..*block_end)?))
        })
    }
}

/// Builds blocks from the postings of terms, which are added in ascending order.
#[derive(Debug, Default)]
pub(crate) struct WordBlockBuilder {
    full: FullBlocks,
    /// The block that is not full yet.
    block: Vec<u8>,
    first_key: Vec<u8>,
    last_term: Vec<u8>,
    row_bytes: Vec<u8>,
    /// The positions of one row that are divided between entries.
    positions: Vec<u32>,
    list: Vec<u8>,
}

impl WordBlockBuilder {
    /// Adds rows of a term, ascending, with their lists of positions, one for each row or none at
    /// all.
    pub(crate) fn add(&mut self, term: &[u8], rows: &[u32], positions: &[u8]) {
        if let [row] = rows
            && positions.len() <= MAX_UNDIVIDED_BYTES - FIRST_ROW_BYTES - MAX_CODE_BYTES
        {
            // Most terms of a message that comes by itself.
            let mut row_bytes = std::mem::take(&mut self.row_bytes);
            row_bytes.clear();
            write_varint(&mut row_bytes, u64::from(*row));
            let entry = WordEntry { count: 1, first_row: *row, rows: &row_bytes, positions };
            self.add_entry(term, entry);
            self.row_bytes = row_bytes;
            return;
        }
        let (mut rows, mut positions) = (rows, positions);
        while let Some(first_row) = rows.first() {
            let (count, length, parameter) = self.choose_split(term, rows, positions);
            let (list, rest) = positions.split_at_checked(length).unwrap_or((positions, &[]));
            if count == 1 && length > MAX_ENTRY_BYTES - FIRST_ROW_BYTES {
                self.add_long_row(term, *first_row, list);
            } else {
                let mut row_bytes = std::mem::take(&mut self.row_bytes);
                row_bytes.clear();
                encode_rows(&mut row_bytes, rows.get(..count).unwrap_or_default(), parameter);
                let (rows, first_row) = (row_bytes.as_slice(), *first_row);
                self.add_entry(term, WordEntry { count, first_row, rows, positions: list });
                self.row_bytes = row_bytes;
            }
            (rows, positions) = (rows.get(count..).unwrap_or_default(), rest);
        }
    }

    /// Returns how many of these rows the next entry takes, at least one, the bytes of their
    /// positions, and the parameter of the Rice codes.
    fn choose_split(&self, term: &[u8], rows: &[u32], positions: &[u8]) -> (usize, usize, u8) {
        let parameter = choose_parameter(rows);
        let most_bytes = FIRST_ROW_BYTES + rows.len() * MAX_CODE_BYTES + positions.len();
        let used = self.block.len() + term.len() + ENTRY_OVERHEAD_BYTES;
        let free = BLOCK_BYTES.saturating_sub(used);
        let is_undivided = most_bytes <= MAX_UNDIVIDED_BYTES || free < MIN_SPLIT_BYTES;
        let room = if is_undivided { MAX_ENTRY_BYTES } else { free.min(MAX_ENTRY_BYTES) };
        if most_bytes <= room {
            return (rows.len(), positions.len(), parameter);
        }
        let mut lists = PositionLists::new(positions);
        let (mut bits, mut length, mut previous) = (FIRST_ROW_BYTES * 8, 0, None);
        for (count, row) in rows.iter().enumerate() {
            let gap = previous.map_or(0, |previous| row.abs_diff(previous));
            let code_bits = rice::code_bits(gap.into(), parameter);
            // Few rows are written in varints.
            let is_few = count < MIN_RICE_ROWS;
            bits += if is_few { code_bits.max(MAX_VARINT_BYTES * 8) } else { code_bits };
            let next = match positions {
                [] => 0,
                // Lists are checked before they are added.
                _ => lists.skip(1).map_or(positions.len() - length, <[u8]>::len),
            };
            if bits.div_ceil(8) + length + next > room {
                return if count == 0 { (1, next, parameter) } else { (count, length, parameter) };
            }
            length += next;
            previous = Some(*row);
        }
        (rows.len(), length, parameter)
    }

    /// Adds a row with more positions than fit into one entry.
    fn add_long_row(&mut self, term: &[u8], row: u32, list: &[u8]) {
        let mut positions = std::mem::take(&mut self.positions);
        let mut part = std::mem::take(&mut self.list);
        positions.clear();
        // Lists are checked before they are added, so none is malformed here.
        let _checked = PositionLists::new(list).read(&mut positions);
        let mut row_bytes = Vec::with_capacity(MAX_VARINT_BYTES);
        write_varint(&mut row_bytes, row.into());
        let (mut rest, mut count) = (positions.as_slice(), 1);
        while !rest.is_empty() {
            let (taken, tail) = split_positions(rest);
            part.clear();
            write_position_list(&mut part, taken);
            let entry = WordEntry { count, first_row: row, rows: &row_bytes, positions: &part };
            self.add_entry(term, entry);
            (rest, count) = (tail, 0);
        }
        (self.positions, self.list) = (positions, part);
    }

    /// Adds an entry as it is.
    pub(crate) fn add_entry(&mut self, term: &[u8], entry: WordEntry<'_>) {
        self.begin_entry(term, entry.first_row, entry.bytes());
        write_varint(&mut self.block, entry.count as u64);
        write_varint(&mut self.block, entry.rows.len() as u64);
        write_varint(&mut self.block, entry.positions.len() as u64);
        self.block.extend_from_slice(entry.rows);
        self.block.extend_from_slice(entry.positions);
    }

    /// Adds an entry as it is, of which `tail` is what follows the term.
    pub(crate) fn copy_entry(&mut self, term: &[u8], entry: WordEntry<'_>, tail: &[u8]) {
        self.begin_entry(term, entry.first_row, entry.bytes());
        self.block.extend_from_slice(tail);
    }

    /// Adds the term of an entry with so many bytes of rows and positions.
    #[inline]
    fn begin_entry(&mut self, term: &[u8], first_row: u32, bytes: usize) {
        let length = self.block.len() + ENTRY_OVERHEAD_BYTES + term.len() + bytes;
        if length > BLOCK_BYTES {
            self.finish_block();
        }
        if self.block.is_empty() {
            // A block never grows beyond this.
            self.block.reserve(BLOCK_BYTES);
            PostingKey { term, first_row }.write(&mut self.first_key);
            self.last_term.clear();
        }
        let shared = shared_bytes(&self.last_term, term);
        let suffix = term.get(shared..).unwrap_or_default();
        write_varint(&mut self.block, shared as u64);
        write_varint(&mut self.block, suffix.len() as u64);
        self.block.extend_from_slice(suffix);
        self.last_term.truncate(shared);
        self.last_term.extend_from_slice(suffix);
    }

    /// Ends the block that is not full yet, if it has an entry.
    pub(crate) fn finish_block(&mut self) {
        if !self.block.is_empty() {
            self.full.push(&self.first_key, &self.block);
            self.block.clear();
        }
    }

    /// Returns the blocks that are full.
    pub(crate) fn full_blocks(&mut self) -> &mut FullBlocks {
        &mut self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn posting_keys_have_the_order_of_terms_and_rows() {
        let keys = [(&b"a"[..], 0), (b"a", 255), (b"a", 256), (b"a\x01", 3), (b"aa", 1), (b"b", 0)];
        let mut bytes = Vec::new();
        let mut written = Vec::new();
        for (term, first_row) in keys {
            let key = PostingKey { term, first_row };
            key.write(&mut bytes);
            assert_eq!(PostingKey::read(&bytes), Ok(key));
            written.push(bytes.clone());
        }
        assert!(written.is_sorted());
        assert_eq!(PostingKey::read(b"a\x01\0\0\0\0"), Err(CorruptBlock));
        assert_eq!(PostingKey::read(b"\0\0\0\0"), Err(CorruptBlock));
    }

    proptest! {
        #[test]
        fn shared_bytes_are_those_at_the_beginning(
            start in proptest::collection::vec(0_u8..3, 0..12),
            ends in proptest::array::uniform2(proptest::collection::vec(0_u8..3, 0..12)),
        ) {
            let [a, b] = ends.map(|end| [start.as_slice(), &end].concat());
            let shared = shared_bytes(&a, &b);
            prop_assert_eq!(a.get(..shared), b.get(..shared));
            prop_assert!(shared <= a.len().min(b.len()));
            // Zeros, which only damaged blocks have, may hide a byte.
            if !a.contains(&0) && !b.contains(&0) {
                prop_assert!(a.get(shared).is_none() || a.get(shared) != b.get(shared));
            }
        }

        #[test]
        fn blocks_have_the_rows_and_positions_that_were_added(
            gaps in proptest::collection::vec(prop_oneof![1..4_u32, 1..1_000_000_u32], 1..3000),
            positions in 0..4_u32,
            skipped in 0..4000_usize,
        ) {
            let mut builder = WordBlockBuilder::default();
            builder.add(b"first", &[1], &vec![1; skipped.min(3300)]);
            let sums = gaps.iter().scan(0, |row, gap| { *row += gap; Some(*row) });
            let (rows, mut lists): (Vec<u32>, _) = (sums.collect(), Vec::new());
            for row in rows.iter().filter(|_| positions > 0) {
                let list: Vec<u32> = (0..positions + row % 3).map(|n| n * 77).collect();
                write_position_list(&mut lists, &list);
            }
            builder.add(b"term", &rows, &lists);
            let (mut found_rows, mut found_lists) = (Vec::new(), Vec::new());
            builder.finish_block();
            for (key, mut block) in builder.full_blocks().iter() {
                prop_assert!(block.len() <= BLOCK_BYTES);
                let (mut term, mut is_first) = (Vec::new(), true);
                while let Some(entry) = WordEntry::read(&mut block, &mut term).expect("a block") {
                    let found = PostingKey { term: &term, first_row: entry.first_row };
                    prop_assert!(!is_first || PostingKey::read(key) == Ok(found));
                    is_first = false;
                    if term == b"term" {
                        entry.decode_rows(&mut found_rows).expect("rows");
                        found_lists.extend_from_slice(entry.positions);
                    }
                }
            }
            prop_assert_eq!(found_rows, rows);
            prop_assert_eq!(found_lists, lists);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let (mut rest, mut term, mut rows) = (bytes.as_slice(), Vec::new(), Vec::new());
            while let Ok(Some(entry)) = WordEntry::read(&mut rest, &mut term) {
                rows.clear();
                let _malformed = entry.decode_rows(&mut rows);
            }
            let _malformed = PostingKey::read(&bytes);
            // An entry with arbitrary rows and positions.
            let (row_bytes, positions) = bytes.split_at(bytes.len() / 3);
            for count in [0, 1, 7, 8, 30_000] {
                let _malformed = decode_rows(count, row_bytes, &mut rows);
            }
            let rows: Vec<u32> = (0..100).collect();
            WordBlockBuilder::default().add(b"term", &rows, positions);
        }
    }
}
