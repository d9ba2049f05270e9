//! Orders: the items of some partitions by their sort keys, from any position on, in either
//! direction; and the rank of a position, without reading the items before it.
//!
//! A scan reads the sort terms of each segment a chunk at a time and merges them. A rank is a sum
//! over segments of the insertions before the position minus the removals before it.

use crate::chunk::ChunkEntries;
use crate::pages::{ChunkPosition, ReadPages, Segment};
use crate::segment::{SegmentReader, corruption};
use crate::sort_term::{SortOp, sort_key, sort_prefix, sort_sign, sort_term};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A position in an order: the sort key, and the item among those with the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortPosition {
    /// The sort key: collation bytes without zeros.
    pub key: Vec<u8>,
    /// The item.
    pub row: i64,
}

/// An order over several partitions, as one sequence.
#[derive(Debug, Clone)]
pub struct SortIndex {
    /// The number of the order.
    pub order: u16,
    /// The partitions, numbered from 1.
    pub partitions: Vec<i64>,
}

impl SortIndex {
    /// Passes each position after `after` (before it if `is_backwards`) to `each`, with the batch
    /// up to which it is valid, until `each` returns false. Stale positions are passed, too.
    pub fn scan<P: ReadPages>(
        &self,
        pages: &P,
        segments: &[Segment],
        after: Option<&SortPosition>,
        is_backwards: bool,
        each: &mut dyn FnMut(SortPosition, i64) -> Result<bool, P::Error>,
    ) -> Result<(), P::Error> {
        let mut scans = Vec::new();
        for segment in segments {
            for &partition in &self.partitions {
                let prefix = sort_prefix(self.order, partition);
                let end = sort_prefix(self.order, partition + 1);
                let mut scan = SegmentScan::open(pages, segment, prefix, end, after, is_backwards)?;
                scan.fill(pages)?;
                scans.push(scan);
            }
        }
        loop {
            let next = scans.iter_mut().filter(|scan| !scan.positions.is_empty()).min_by(|a, b| {
                let order = a.positions.front().cmp(&b.positions.front());
                if is_backwards { order.reverse() } else { order }
            });
            let Some(scan) = next else { return Ok(()) };
            let Some(position) = scan.positions.pop_front() else { return Ok(()) };
            let valid_until = scan.segment.max_seq;
            scan.fill(pages)?;
            if !each(position, valid_until)? {
                return Ok(());
            }
        }
    }

    /// Returns the number of items before a position, and the number of all items.
    pub fn rank<P: ReadPages>(
        &self,
        pages: &P,
        segments: &[Segment],
        position: &SortPosition,
    ) -> Result<(u64, u64), P::Error> {
        let (mut before, mut total) = (0, 0);
        for segment in segments {
            for &partition in &self.partitions {
                let prefix = sort_prefix(self.order, partition);
                let end = sort_prefix(self.order, partition + 1);
                let term = sort_term(self.order, partition, &position.key, SortOp::Insert);
                before += rank_delta(pages, segment, &prefix, &term)?;
                before += self.rank_delta_among_equals(pages, segment, partition, position)?;
                total += rank_delta(pages, segment, &prefix, &end)?;
            }
        }
        Ok((before.unsigned_abs(), total.unsigned_abs()))
    }

    /// Returns the rank delta of the items with the key of the position that are before it.
    fn rank_delta_among_equals<P: ReadPages>(
        &self,
        pages: &P,
        segment: &Segment,
        partition: i64,
        position: &SortPosition,
    ) -> Result<i64, P::Error> {
        if position.row <= 0 {
            // Items are numbered from 1.
            return Ok(0);
        }
        let count_before = |op| -> Result<i64, P::Error> {
            let mut items = Vec::new();
            let term = sort_term(self.order, partition, &position.key, op);
            SegmentReader::new(pages, segment).read_postings(&term, &mut items)?;
            Ok(items.iter().filter(|item| **item < position.row).count() as i64)
        };
        Ok(count_before(SortOp::Insert)? - count_before(SortOp::Remove)?)
    }
}

/// Returns the insertions minus the removals of the sort terms from `from` up to `to`, which is
/// excluded.
fn rank_delta<P: ReadPages>(
    pages: &P,
    segment: &Segment,
    from: &[u8],
    to: &[u8],
) -> Result<i64, P::Error> {
    if segment.chunks.is_empty() || to <= segment.from_term.as_slice() {
        return Ok(0);
    }
    Ok(rank_delta_before(pages, segment, to)?
        - rank_delta_before(pages, segment, from.max(&segment.from_term))?)
}

/// Returns the insertions minus the removals of the sort terms before `term`, counted from the
/// first chunk that the segment ever had.
fn rank_delta_before<P: ReadPages>(
    pages: &P,
    segment: &Segment,
    term: &[u8],
) -> Result<i64, P::Error> {
    let position = match pages.last_fence_before(segment.id, term)? {
        Some(position) => position,
        None if segment.chunks.start == 0 => ChunkPosition { chunk: 0, rank_delta: 0 },
        None => {
            let first = pages.first_fence(segment.id)?;
            return first.map(|first| first.rank_delta).ok_or_else(corruption::<P>);
        }
    };
    let (mut delta, mut found) = (position.rank_delta, Vec::new());
    pages.read_chunk(segment.id, position.chunk, |bytes| {
        let mut entries = ChunkEntries::new(bytes);
        while let Some(entry) = entries.next().map_err(P::corruption)? {
            found.truncate(entry.shared);
            found.extend_from_slice(entry.suffix);
            if found.as_slice() >= term {
                break;
            }
            let count = entry.postings.count as i64;
            delta = delta.saturating_add(sort_sign(&found).saturating_mul(count));
        }
        Ok(delta)
    })
}

/// A scan of one partition in one segment.
struct SegmentScan<'a> {
    segment: &'a Segment,
    sort_prefix: Vec<u8>,
    after: Option<SortPosition>,
    is_backwards: bool,
    /// The chunks that have not been read.
    chunks: std::ops::Range<i64>,
    /// The positions that have been read, in the order of the scan.
    positions: VecDeque<SortPosition>,
}

impl<'a> SegmentScan<'a> {
    fn open<P: ReadPages>(
        pages: &P,
        segment: &'a Segment,
        sort_prefix: Vec<u8>,
        end: Vec<u8>,
        after: Option<&SortPosition>,
        is_backwards: bool,
    ) -> Result<SegmentScan<'a>, P::Error> {
        let reader = SegmentReader::new(pages, segment);
        let mut term = sort_prefix.clone();
        term.extend(after.map(|position| position.key.as_slice()).unwrap_or_default());
        let chunks = if is_backwards {
            // The scan begins in the chunk in which the positions end.
            let end = match after {
                None => end,
                Some(_) => [term.as_slice(), &[u8::MAX; 2]].concat(),
            };
            segment.chunks.start..reader.find_chunk_before(&end)? + 1
        } else {
            reader.find_chunk_before(&term)?..segment.chunks.end
        };
        let chunks = chunks.start..chunks.end.min(segment.chunks.end);
        let (after, positions) = (after.cloned(), VecDeque::new());
        Ok(SegmentScan { segment, sort_prefix, after, is_backwards, chunks, positions })
    }

    /// Reads chunks until there is a position, or no chunk is left.
    fn fill<P: ReadPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        while self.positions.is_empty() {
            let number = match self.is_backwards {
                true => self.chunks.next_back(),
                false => self.chunks.next(),
            };
            let Some(number) = number else { return Ok(()) };
            pages.read_chunk(self.segment.id, number, |chunk| self.read_positions::<P>(chunk))?;
        }
        Ok(())
    }

    fn read_positions<P: ReadPages>(&mut self, chunk: &[u8]) -> Result<(), P::Error> {
        let (mut entries, mut term, mut items) = (ChunkEntries::new(chunk), Vec::new(), Vec::new());
        let mut is_first = true;
        while let Some(entry) = entries.next().map_err(P::corruption)? {
            term.truncate(entry.shared);
            term.extend_from_slice(entry.suffix);
            match (term.get(..self.sort_prefix.len()).unwrap_or(&term)).cmp(&self.sort_prefix) {
                Ordering::Less => {
                    // All chunks before this one are before the partition, too.
                    if is_first && self.is_backwards {
                        self.chunks.end = self.chunks.start;
                    }
                }
                Ordering::Equal if term >= self.segment.from_term && sort_sign(&term) > 0 => {
                    items.clear();
                    entry.postings.unpack(&mut items).ok_or_else(corruption::<P>)?;
                    let key = sort_key(&term).ok_or_else(corruption::<P>)?;
                    let positions =
                        items.iter().map(|&row| SortPosition { key: key.to_vec(), row });
                    let after = self.after.as_ref();
                    let is_wanted = |position: &SortPosition| match after {
                        None => true,
                        Some(after) if self.is_backwards => position < after,
                        Some(after) => position > after,
                    };
                    self.positions.extend(positions.filter(is_wanted));
                }
                Ordering::Equal => {}
                Ordering::Greater => {
                    if !self.is_backwards {
                        self.chunks.start = self.chunks.end;
                    }
                    break;
                }
            }
            is_first = false;
        }
        if self.is_backwards {
            self.positions.make_contiguous().reverse();
        }
        Ok(())
    }
}
