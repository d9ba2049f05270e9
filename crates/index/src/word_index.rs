//! Reading a word index: its terms, and all rows of a term or of a prefix.
//!
//! A row is in one segment only, so the segments are read one after the other, and none makes
//! another stale. Separate from `word_cursor`, which reads the rows of one term by ranges.

use crate::block::CorruptBlock;
use crate::segment::corruption;
use crate::segment_storage::{BlockReader, IndexId, ReadSegments, Segment};
use crate::word_block::{PostingKey, WordEntry};
use std::borrow::Cow;

/// The number of lookups that take as long as reading one block.
const LOOKUPS_PER_BLOCK: usize = 2;

/// All segments of a word index, in one transaction.
pub struct WordIndex<'a, P> {
    pages: &'a P,
    segments: Cow<'a, [Segment]>,
}

/// The part of the terms that a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermChoice {
    /// The postings of this term.
    Read,
    /// No postings of this term.
    Skip,
    /// Neither this term nor the following ones of the segment.
    End,
}

/// A function that is called with the term of each entry, until it returns false.
type WordEntryVisitor<'a, E> = dyn FnMut(&[u8], WordEntry<'_>) -> Result<bool, E> + 'a;

impl<'a, P: ReadSegments> WordIndex<'a, P> {
    /// Opens an index, which may be empty.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn open(pages: &'a P, index: IndexId) -> Result<WordIndex<'a, P>, P::Error> {
        Ok(WordIndex { pages, segments: pages.segments(index)?.into() })
    }

    /// Opens an index whose segments were read before.
    #[must_use]
    pub fn with_segments(pages: &'a P, segments: &'a [Segment]) -> WordIndex<'a, P> {
        WordIndex { pages, segments: segments.into() }
    }

    /// Opens the segments that begun merges have moved entries to, as an index of their own.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn open_merge_targets(pages: &'a P, index: IndexId) -> Result<WordIndex<'a, P>, P::Error> {
        let mut segments = pages.segments(index)?;
        let begun = segments.iter().filter(|segment| !segment.from_term.is_empty());
        let targets: Vec<_> = begun.filter_map(|segment| segment.merged_into).collect();
        segments.retain(|segment| targets.contains(&segment.id));
        Ok(WordIndex { pages, segments: segments.into() })
    }

    /// Returns the number of segments.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Returns a reader of each segment.
    pub(crate) fn readers(&self) -> impl Iterator<Item = WordSegmentReader<'_, P>> {
        self.segments.iter().map(|segment| WordSegmentReader { pages: self.pages, segment })
    }

    /// Passes each term from `from` on, and the number of its rows, to `visit`. The terms of a
    /// segment come in order; when `visit` returns false, those of the next segment follow. So a
    /// term may come once for each segment.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn for_each_term(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<(), P::Error> {
        let mut term = Vec::new();
        for reader in self.readers() {
            let (mut count, mut is_continued) = (0, true);
            term.clear();
            reader.for_each_entry(from, 0, &mut |found, entry| {
                if found != term.as_slice() {
                    is_continued = term.is_empty() || visit(&term, count);
                    term.clear();
                    term.extend_from_slice(found);
                    count = 0;
                }
                count += entry.count as u64;
                Ok(is_continued)
            })?;
            if is_continued && !term.is_empty() {
                visit(&term, count);
            }
        }
        Ok(())
    }

    /// Passes each term from `from` on to `choose`, and the terms that it reads, with all their
    /// rows in ascending order, to `visit`. The terms of a segment come in order, so that a term
    /// may come once for each segment; those of a segment end where `choose` ends.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn for_each_posting_list(
        &self,
        from: &[u8],
        choose: &mut dyn FnMut(&[u8]) -> TermChoice,
        visit: &mut dyn FnMut(&[u8], &[u32]),
    ) -> Result<(), P::Error> {
        let (mut term, mut rows) = (Vec::new(), Vec::new());
        for reader in self.readers() {
            let mut choice = TermChoice::Skip;
            term.clear();
            reader.for_each_entry(from, 0, &mut |found, entry| {
                if found != term.as_slice() {
                    if choice == TermChoice::Read {
                        visit(&term, &rows);
                    }
                    choice = choose(found);
                    term.clear();
                    term.extend_from_slice(found);
                    rows.clear();
                }
                if choice == TermChoice::Read {
                    entry.decode_rows(&mut rows).map_err(P::corruption)?;
                }
                Ok(choice != TermChoice::End)
            })?;
            if choice == TermChoice::Read {
                visit(&term, &rows);
            }
        }
        Ok(())
    }

    /// Adds the rows of all terms with this prefix to `rows`: a row is the bit `row % 64` of the
    /// word `row / 64`, and the words grow as needed.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn rows_with_prefix(&self, prefix: &[u8], rows: &mut Vec<u64>) -> Result<(), P::Error> {
        let mut decoded = Vec::new();
        self.readers().try_for_each(|reader| {
            reader.for_each_entry(prefix, 0, &mut |term, entry| {
                if !term.starts_with(prefix) {
                    return Ok(false);
                }
                add_rows(&entry, &mut decoded, rows).map_err(P::corruption)?;
                Ok(true)
            })
        })
    }

    /// Adds the rows of all these terms, which ascend, to `rows`, which are bits as in
    /// [`WordIndex::rows_with_prefix`]. Reads all entries between the terms if that is cheaper than
    /// to look each of them up.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn rows_with_terms(&self, terms: &[Vec<u8>], rows: &mut Vec<u64>) -> Result<(), P::Error> {
        debug_assert!(terms.is_sorted());
        let Some(first) = terms.first() else { return Ok(()) };
        let mut decoded = Vec::new();
        for reader in self.readers() {
            let blocks = &reader.segment.blocks;
            let block_count = usize::try_from(blocks.end - blocks.start).unwrap_or(usize::MAX);
            if terms.len() / LOOKUPS_PER_BLOCK < block_count {
                for term in terms {
                    reader.add_rows_with_term(term, &mut decoded, rows)?;
                }
                continue;
            }
            let mut rest = terms;
            reader.for_each_entry(first, 0, &mut |found, entry| {
                while rest.first().is_some_and(|term| term.as_slice() < found) {
                    rest = rest.get(1..).unwrap_or_default();
                }
                if rest.first().is_some_and(|term| term.as_slice() == found) {
                    add_rows(&entry, &mut decoded, rows).map_err(P::corruption)?;
                }
                Ok(!rest.is_empty())
            })?;
        }
        Ok(())
    }

    /// Adds the rows of a term to `rows`, which are bits as in [`WordIndex::rows_with_prefix`].
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn rows_with_term(&self, term: &[u8], rows: &mut Vec<u64>) -> Result<(), P::Error> {
        let mut decoded = Vec::new();
        self.readers().try_for_each(|reader| reader.add_rows_with_term(term, &mut decoded, rows))
    }

    /// Returns the number of rows that have a term. Stops counting at `limit`.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn count_postings(&self, term: &[u8], limit: u64) -> Result<u64, P::Error> {
        let mut count = 0;
        for reader in self.readers() {
            if count >= limit {
                break;
            }
            reader.for_each_entry(term, 0, &mut |found, entry| {
                let is_same = found == term;
                count += if is_same { entry.count as u64 } else { 0 };
                Ok(is_same && count < limit)
            })?;
        }
        Ok(count.min(limit))
    }
}

/// Adds the rows of an entry as bits.
fn add_rows(
    entry: &WordEntry<'_>,
    decoded: &mut Vec<u32>,
    rows: &mut Vec<u64>,
) -> Result<(), CorruptBlock> {
    decoded.clear();
    entry.decode_rows(decoded)?;
    let words = decoded.last().map_or(0, |last| *last as usize / 64 + 1);
    if rows.len() < words {
        rows.resize(words, 0);
    }
    for row in decoded.iter() {
        if let Some(word) = rows.get_mut(*row as usize / 64) {
            *word |= 1 << (row % 64);
        }
    }
    Ok(())
}

/// Reads one segment.
pub(crate) struct WordSegmentReader<'a, P> {
    pages: &'a P,
    pub(crate) segment: &'a Segment,
}

impl<P: ReadSegments> WordSegmentReader<'_, P> {
    /// Passes each entry from a term and a first row on to `visit`, until that returns false.
    pub(crate) fn for_each_entry(
        &self,
        from: &[u8],
        first_row: u32,
        visit: &mut WordEntryVisitor<'_, P::Error>,
    ) -> Result<(), P::Error> {
        let from = PostingKey { term: from, first_row };
        let from = from.max(self.start().map_err(P::corruption)?);
        let mut term = Vec::new();
        let blocks = self.find_block_before(from)?..self.segment.blocks.end;
        self.pages.read_blocks(self.segment.id, blocks, &mut |mut rest| {
            if rest.is_empty() {
                return Err(corruption::<P>());
            }
            term.clear();
            while let Some(entry) = WordEntry::read(&mut rest, &mut term).map_err(P::corruption)? {
                let key = PostingKey { term: &term, first_row: entry.first_row };
                if key >= from && !visit(&term, entry)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Adds the rows of a term as bits.
    fn add_rows_with_term(
        &self,
        term: &[u8],
        decoded: &mut Vec<u32>,
        rows: &mut Vec<u64>,
    ) -> Result<(), P::Error> {
        self.for_each_entry(term, 0, &mut |found, entry| {
            if found != term {
                return Ok(false);
            }
            add_rows(&entry, decoded, rows).map_err(P::corruption)?;
            Ok(true)
        })
    }

    /// Returns the key of the first entry that has not been moved by a merge.
    pub(crate) fn start(&self) -> Result<PostingKey<'_>, CorruptBlock> {
        match self.segment.from_term.as_slice() {
            [] => Ok(PostingKey { term: &[], first_row: 0 }),
            key => PostingKey::read(key),
        }
    }

    /// Returns the last block whose first key is less than `key`, else the first block.
    pub(crate) fn find_block_before(&self, key: PostingKey<'_>) -> Result<i64, P::Error> {
        let blocks = &self.segment.blocks;
        if blocks.end - blocks.start <= 1 {
            return Ok(blocks.start);
        }
        let mut bytes = Vec::new();
        key.write(&mut bytes);
        let block = self.pages.last_fence_before(self.segment.id, &bytes)?;
        Ok(block.unwrap_or(blocks.start).clamp(blocks.start, blocks.end))
    }

    /// Passes the blocks from a number on to `read`, until that returns false. An empty block is
    /// corrupt: every block has an entry.
    pub(crate) fn read_blocks(
        &self,
        first: i64,
        read: &mut BlockReader<'_, P::Error>,
    ) -> Result<(), P::Error> {
        let blocks = first..self.segment.blocks.end;
        self.pages.read_blocks(self.segment.id, blocks, &mut |bytes| match bytes {
            [] => Err(corruption::<P>()),
            bytes => read(bytes),
        })
    }

    /// Passes a block to `read`. An empty block is corrupt: every block has an entry.
    pub(crate) fn read_block<T>(
        &self,
        block: i64,
        read: impl FnOnce(&[u8]) -> Result<T, P::Error>,
    ) -> Result<T, P::Error> {
        self.pages.read_block(self.segment.id, block, |bytes| match bytes {
            [] => Err(corruption::<P>()),
            bytes => read(bytes),
        })
    }
}
