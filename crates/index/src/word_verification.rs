//! Verifying a word index: all postings are decoded, and the order of the entries and the fences
//! are compared with the blocks.
//!
//! Separate from `word_index`, whose searches trust the order, and read only what they need.

use crate::block::CorruptBlock;
use crate::position_list::PositionLists;
use crate::segment_storage::{IndexId, ReadSegments};
use crate::word_block::{PostingKey, WordEntry};
use crate::word_index::{WordIndex, WordSegmentReader};

/// A row that has a term, with its positions there; none if the term has none. A long list of
/// positions comes in several parts.
#[derive(Debug, Clone, Copy)]
pub struct WordPosting<'a> {
    /// The term.
    pub term: &'a [u8],
    /// The row.
    pub row: u32,
    /// The positions, ascending.
    pub positions: &'a [u32],
}

/// The faults of a word index whose blocks can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WordIndexFaults {
    /// The number of entries that do not come after the one before.
    pub disordered_entries: u64,
    /// The number of blocks that their fences do not lead to.
    pub wrong_fences: u64,
}

/// Reads the whole index and passes each posting to `visit`, in the order of each segment.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn verify_words<P: ReadSegments>(
    pages: &P,
    index: IndexId,
    visit: &mut dyn FnMut(WordPosting<'_>),
) -> Result<WordIndexFaults, P::Error> {
    let mut faults = WordIndexFaults::default();
    let words = WordIndex::open(pages, index)?;
    for reader in words.readers() {
        verify_segment(pages, &reader, visit, &mut faults)?;
    }
    Ok(faults)
}

fn verify_segment<P: ReadSegments>(
    pages: &P,
    reader: &WordSegmentReader<'_, P>,
    visit: &mut dyn FnMut(WordPosting<'_>),
    faults: &mut WordIndexFaults,
) -> Result<(), P::Error> {
    let start = reader.start().map_err(P::corruption)?;
    let mut start_key = Vec::new();
    start.write(&mut start_key);
    let first_block = reader.segment.blocks.start;
    let (mut block, mut previous, mut key) = (first_block, Vec::new(), Vec::new());
    // The first keys of the blocks that need a fence.
    let mut fences: Vec<(Vec<u8>, i64)> = Vec::new();
    let (mut rows, mut positions, mut term) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_blocks(first_block, &mut |mut rest| {
        let mut is_first = true;
        term.clear();
        while let Some(entry) = WordEntry::read(&mut rest, &mut term).map_err(P::corruption)? {
            PostingKey { term: &term, first_row: entry.first_row }.write(&mut key);
            // An entry without rows continues the positions of the one before, which may be in a
            // block that a merge has deleted.
            let is_continuing = key == previous && !entry.positions.is_empty();
            let is_next = match entry.count {
                0 => is_continuing || previous.is_empty(),
                _ => key > previous,
            };
            faults.disordered_entries += u64::from(!is_next);
            if is_first && block > first_block {
                fences.push((key.clone(), block));
            }
            is_first = false;
            std::mem::swap(&mut previous, &mut key);
            // What is before the start was moved by a merge.
            if previous >= start_key && (is_continuing || entry.count > 0) {
                visit_entry(&term, entry, &mut rows, &mut positions, visit)
                    .map_err(P::corruption)?;
            }
        }
        block += 1;
        Ok(true)
    })?;
    for (at, (key, block)) in fences.iter().enumerate() {
        // Blocks that one long list of positions fills have the same key; the last one is found.
        let is_continued = fences.get(at + 1).is_some_and(|(next, _)| next == key);
        let after_key = [key.as_slice(), &[0]].concat();
        let found = pages.last_fence_before(reader.segment.id, &after_key)?;
        faults.wrong_fences += u64::from(!is_continued && found != Some(*block));
    }
    Ok(())
}

/// Passes the postings of an entry to `visit`.
fn visit_entry(
    term: &[u8],
    entry: WordEntry<'_>,
    rows: &mut Vec<u32>,
    positions: &mut Vec<u32>,
    visit: &mut dyn FnMut(WordPosting<'_>),
) -> Result<(), CorruptBlock> {
    rows.clear();
    entry.decode_rows(rows)?;
    if entry.count == 0 {
        rows.push(entry.first_row);
    }
    let mut lists = PositionLists::new(entry.positions);
    for row in rows.iter() {
        positions.clear();
        if !entry.positions.is_empty() {
            lists.read(positions)?;
        }
        visit(WordPosting { term, row: *row, positions });
    }
    if lists.remaining_bytes().is_empty() { Ok(()) } else { Err(CorruptBlock) }
}
