//! Orders: a collection's items by their sort keys, from any place on, in either direction; and how
//! many lie before a place, without reading them.
//!
//! Each segment's sort terms are read a chunk at a time, and merged. A place's number is a sum over
//! segments of what lies before it, where items that were taken out of the order count as one less.

use super::chunk::ChunkEntries;
use super::segment::{Segment, malformed_chunk_error};
use super::term::{self, SortOp};
use crate::Seq;
use rusqlite::Connection;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A place in an order: the key, and the item among those with the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortPosition {
    /// The sort key, as [`crate::Extractor::sort_key`] makes it.
    pub key: Vec<u8>,
    /// The item's row.
    pub row: i64,
}

/// The orders of some collections by one field, taken together.
#[derive(Debug, Clone)]
pub(crate) struct SortIndex {
    /// The field's number.
    pub(crate) field: u16,
    /// The collections' rows.
    pub(crate) collections: Vec<i64>,
}

impl SortIndex {
    /// Gives each place behind `after`, or before it if `backwards`, to `each`, until that answers
    /// false; with the batch until which it holds. Places of items that were changed since come,
    /// too.
    pub(crate) fn scan(
        &self,
        conn: &Connection,
        segments: &[Segment],
        after: Option<&SortPosition>,
        backwards: bool,
        each: &mut dyn FnMut(SortPosition, Seq) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        let mut streams = Vec::new();
        for segment in segments {
            for &collection in &self.collections {
                let order = term::sort_prefix(self.field, collection);
                let end = term::sort_prefix(self.field, collection + 1);
                let mut stream = SegmentScan::open(conn, segment, order, end, after, backwards)?;
                stream.fill(conn)?;
                streams.push(stream);
            }
        }
        loop {
            let next =
                streams.iter_mut().filter(|stream| !stream.positions.is_empty()).min_by(|a, b| {
                    let order = a.positions.front().cmp(&b.positions.front());
                    if backwards { order.reverse() } else { order }
                });
            let Some(stream) = next else { return Ok(()) };
            let Some(place) = stream.positions.pop_front() else { return Ok(()) };
            let until = stream.segment.max_seq;
            stream.fill(conn)?;
            if !each(place, until)? {
                return Ok(());
            }
        }
    }

    /// How many items lie before a place, and how many there are.
    pub(crate) fn rank(
        &self,
        conn: &Connection,
        segments: &[Segment],
        place: &SortPosition,
    ) -> rusqlite::Result<(u64, u64)> {
        let (mut before, mut total) = (0, 0);
        for segment in segments {
            for &collection in &self.collections {
                let order = term::sort_prefix(self.field, collection);
                let key = term::sort_term(self.field, collection, &place.key, SortOp::Insert);
                before += segment.rank_delta(conn, &order, &key)?;
                before += self.rank_delta_among_equals(conn, segment, collection, place)?;
                total += segment.rank_delta(
                    conn,
                    &order,
                    &term::sort_prefix(self.field, collection + 1),
                )?;
            }
        }
        Ok((before.unsigned_abs(), total.unsigned_abs()))
    }

    /// How many items more a segment puts before a place than it takes out, of those with the
    /// place's key.
    fn rank_delta_among_equals(
        &self,
        conn: &Connection,
        segment: &Segment,
        collection: i64,
        place: &SortPosition,
    ) -> rusqlite::Result<i64> {
        if place.row <= 0 {
            // Rows are numbered from 1.
            return Ok(0);
        }
        let before = |sign| -> rusqlite::Result<i64> {
            let mut rows = Vec::new();
            let term = term::sort_term(self.field, collection, &place.key, sign);
            segment.read_postings(conn, &term, &mut rows)?;
            Ok(rows.iter().filter(|row| **row < place.row).count() as i64)
        };
        Ok(before(SortOp::Insert)? - before(SortOp::Remove)?)
    }
}

/// One segment's places in one collection's order.
struct SegmentScan<'a> {
    segment: &'a Segment,
    sort_prefix: Vec<u8>,
    after: Option<SortPosition>,
    is_backwards: bool,
    /// Chunks that were not read yet.
    chunks: std::ops::Range<i64>,
    positions: VecDeque<SortPosition>,
}

impl<'a> SegmentScan<'a> {
    fn open(
        conn: &Connection,
        segment: &'a Segment,
        order: Vec<u8>,
        end: Vec<u8>,
        after: Option<&SortPosition>,
        backwards: bool,
    ) -> rusqlite::Result<SegmentScan<'a>> {
        let mut term = order.clone();
        term.extend(after.map(|place| place.key.as_slice()).unwrap_or_default());
        let chunks = if backwards {
            // The chunk in which the places end; none of theirs lies behind it.
            let end = match after {
                None => end,
                Some(_) => [term.as_slice(), &[u8::MAX; 2]].concat(),
            };
            segment.chunks.start..segment.find_chunk_before(conn, &end)? + 1
        } else {
            segment.find_chunk_before(conn, &term)?..segment.chunks.end
        };
        let chunks = chunks.start..chunks.end.min(segment.chunks.end);
        let (after, ready) = (after.cloned(), VecDeque::new());
        Ok(SegmentScan {
            segment,
            sort_prefix: order,
            after,
            is_backwards: backwards,
            chunks,
            positions: ready,
        })
    }

    /// Reads chunks until there is a place, or nothing to come.
    fn fill(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        while self.positions.is_empty() {
            let number = match self.is_backwards {
                true => self.chunks.next_back(),
                false => self.chunks.next(),
            };
            let Some(number) = number else { return Ok(()) };
            let segment = self.segment;
            segment.read_chunk(conn, number, |chunk| self.read_positions(chunk))?;
        }
        Ok(())
    }

    fn read_positions(&mut self, chunk: &[u8]) -> rusqlite::Result<()> {
        let (mut entries, mut term, mut items) = (ChunkEntries::new(chunk), Vec::new(), Vec::new());
        let mut first = true;
        while let Some(entry) = entries.next().map_err(|_| malformed_chunk_error())? {
            term.truncate(entry.shared);
            term.extend_from_slice(entry.suffix);
            match (term.get(..self.sort_prefix.len()).unwrap_or(&term)).cmp(&self.sort_prefix) {
                Ordering::Less => {
                    // Towards the beginning, all that is left lies before the order.
                    if first && self.is_backwards {
                        self.chunks.end = self.chunks.start;
                    }
                }
                Ordering::Equal if term >= self.segment.from_term && term::sort_sign(&term) > 0 => {
                    items.clear();
                    entry.postings.unpack(&mut items).ok_or_else(malformed_chunk_error)?;
                    let key = term::sort_key(&term).ok_or_else(malformed_chunk_error)?;
                    let places = items.iter().map(|&row| SortPosition { key: key.to_vec(), row });
                    let after = self.after.as_ref();
                    let wanted = |place: &SortPosition| match after {
                        None => true,
                        Some(after) if self.is_backwards => place < after,
                        Some(after) => place > after,
                    };
                    self.positions.extend(places.filter(wanted));
                }
                Ordering::Equal => {}
                Ordering::Greater => {
                    if !self.is_backwards {
                        self.chunks.start = self.chunks.end;
                    }
                    break;
                }
            }
            first = false;
        }
        if self.is_backwards {
            self.positions.make_contiguous().reverse();
        }
        Ok(())
    }
}
