//! Merging segments into larger ones, a range of terms at a time.
//!
//! A merge moves terms, in their order, from its inputs to a new segment: each step moves some,
//! within the transaction of a batch, and takes the chunks that have become empty away. So no step
//! is long, no space is needed for a second copy, and the index can be read between any two steps.
//!
//! What a segment says of an item is dropped where a newer input of the merge knows the item, too:
//! all that holds of it is said there. What is older than the merge is left to a later one.

use super::chunk::{ChunkEntries, PackedPostings, Postings};
use super::segment::{self, Segment, SegmentWriter, malformed_chunk_error};
use super::term;
use crate::index_maintenance::DerivedIndex;
use rusqlite::Connection;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;

/// So many neighbours of about one size are merged into one...
const MERGE_FACTOR: usize = 4;
/// ...and so many of those from this many bytes on, which are a large job's: it is going to merge
/// them in the end.
const LARGE_MERGE_FACTOR: usize = 64;
const LARGE_SEGMENT_BYTES: i64 = 32 << 10;
/// So many times larger than all newer ones is much larger. A byte is moved 5 times then before it
/// is at rest, and there are 7 segments; it would be 8 times, and 5 segments, with 4 (reckoned for
/// single items of 450 bytes, behind 1.3 MB).
const SIZE_RATIO: i64 = 2;
/// Segments up to this many bytes are of the smallest size.
const SMALLEST_TIER_BYTES: i64 = 4096;
/// A batch moves this many times its own bytes...
const MERGED_BYTES_PER_BATCH_BYTE: i64 = 4;
/// ...but so many at least.
const MIN_MERGE_INCREMENT_BYTES: i64 = 32 << 10;
/// So many items are listed without asking whether they have to be.
const MAX_PRELOADED_ITEMS: usize = 4096;
/// So many chunks are taken away at once.
const MIN_FREED_CHUNKS: i64 = 16;

/// Does the share of merging that a batch of so many bytes owes.
pub(super) fn merge_increment(
    conn: &Connection,
    set: DerivedIndex,
    bytes: i64,
) -> rusqlite::Result<()> {
    merge_up_to(
        conn,
        set,
        (bytes * MERGED_BYTES_PER_BATCH_BYTE).max(MIN_MERGE_INCREMENT_BYTES),
        choose_tier,
    )
    .map(drop)
}

/// Moves up to about so many bytes towards as few segments as are worth having. False: there is
/// nothing to do.
pub(crate) fn compact_step(conn: &Connection, budget: i64) -> rusqlite::Result<bool> {
    for set in DerivedIndex::ALL {
        if merge_up_to(conn, set, budget, choose_compaction)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges everything into one segment of each set, which says nothing of items that are gone.
pub(crate) fn merge_all(conn: &Connection) -> rusqlite::Result<()> {
    for set in DerivedIndex::ALL {
        while merge_up_to(conn, set, i64::MAX, |free| (free.len() > 1).then_some(0..free.len()))? {}
    }
    Ok(())
}

type MergePolicy = fn(&[Segment]) -> Option<std::ops::Range<usize>>;

fn merge_up_to(
    conn: &Connection,
    set: DerivedIndex,
    budget: i64,
    choose: MergePolicy,
) -> rusqlite::Result<bool> {
    let mut merges: BTreeMap<i64, Vec<Segment>> = BTreeMap::new();
    for segment in begin_merges(conn, set, choose)? {
        if let Some(into) = segment.merged_into {
            merges.entry(into).or_default().push(segment);
        }
    }
    let mut merges: Vec<(i64, Vec<Segment>)> = merges.into_iter().collect();
    // Small ones first: they are soon done, and each segment costs every reader.
    merges.sort_by_key(|(_, inputs)| inputs.iter().map(Segment::remaining_bytes).sum::<i64>());
    let found = !merges.is_empty();
    let mut left = budget;
    for (into, inputs) in merges {
        if left <= 0 {
            break;
        }
        left -= merge_step(conn, into, inputs, left)?;
    }
    Ok(found)
}

impl Segment {
    fn remaining_bytes(&self) -> i64 {
        (self.chunks.end - self.chunks.start) * super::chunk::CHUNK_BYTES as i64
    }

    /// 0 for the smallest; each next one is of segments that as many of the former make.
    fn tier(&self) -> u32 {
        let ratio = (self.bytes.max(1) - 1) / SMALLEST_TIER_BYTES;
        ratio.checked_ilog(MERGE_FACTOR as i64).map_or(0, |log| log + 1)
    }
}

/// Marks the runs that are worth merging, and returns all segments. Only neighbours are: what lies
/// between them could be about the same items.
fn begin_merges(
    conn: &Connection,
    set: DerivedIndex,
    choose: MergePolicy,
) -> rusqlite::Result<Vec<Segment>> {
    let mut segments = segment::read_segments(conn, set)?;
    let is_target = |id| segments.iter().any(|segment| segment.merged_into == Some(id));
    let mut marked: Vec<(i64, i64)> = Vec::new();
    for free in segments.split(|segment| segment.merged_into.is_some() || is_target(segment.id)) {
        let Some(inputs) = choose(free).and_then(|run| free.get(run)) else { continue };
        let Some(last) = inputs.last() else { continue };
        let large = inputs.iter().any(|segment| segment.has_oversized);
        let into = segment::create_segment(conn, set, last.max_seq, large)?;
        marked.extend(inputs.iter().map(|input| (input.id, into)));
    }
    let mut mark = conn.prepare_cached("UPDATE idx_segment SET merged_into = ?2 WHERE id = ?1")?;
    for (input, into) in marked {
        mark.execute((input, into))?;
        for segment in segments.iter_mut().filter(|segment| segment.id == input) {
            segment.merged_into = Some(into);
        }
    }
    Ok(segments)
}

/// The newest ones that are of one size, or smaller, if they are enough; none that is much larger
/// than all newer ones, which would be written again for a few items.
fn choose_tier(free: &[Segment]) -> Option<std::ops::Range<usize>> {
    let largest = free.iter().map(Segment::tier).max()?;
    (0..=largest).find_map(|size| {
        let (mut count, mut least, mut sum) = (0, i64::MAX, 0_i64);
        for segment in free.iter().rev().take_while(|segment| segment.tier() <= size) {
            if count > 0 && segment.bytes / SIZE_RATIO > sum {
                break;
            }
            (count, least) = (count + 1, least.min(segment.bytes));
            sum = sum.saturating_add(segment.bytes);
        }
        let enough = if least < LARGE_SEGMENT_BYTES { MERGE_FACTOR } else { LARGE_MERGE_FACTOR };
        (count >= enough).then_some(free.len() - count..free.len())
    })
}

/// All, or all but a first one that is much larger than the rest.
fn choose_compaction(free: &[Segment]) -> Option<std::ops::Range<usize>> {
    let (first, rest) = free.split_first()?;
    let small: i64 = rest.iter().map(|segment| segment.bytes).sum();
    let start = usize::from(first.bytes > small * 8);
    (free.len() - start > 1).then_some(start..free.len())
}

/// Moves terms of one merge, up to about so many bytes. Returns how many.
fn merge_step(
    conn: &Connection,
    into: i64,
    segments: Vec<Segment>,
    budget: i64,
) -> rusqlite::Result<i64> {
    let mut inputs = MergeInput::open(conn, segments)?;
    let mut writer = SegmentWriter::open(conn, into)?;
    let mut moved = TermMerge::default();
    let mut read = 0;
    while let Some(least) = MinTerm::find(&inputs) {
        // What takes items out of an order goes with what puts them in.
        let term = least.term(&inputs);
        if read >= budget && !(term::sort_sign(term) < 0 && moved.is_same_sort_position(term)) {
            break;
        }
        read += moved.merge_next_term(conn, &mut inputs, least)?;
        match moved.is_packed {
            true => writer.add_packed(&moved.term, &moved.packed)?,
            false => writer.add(&moved.term, &moved.items)?,
        }
        // What was read makes room for what is written.
        inputs.iter_mut().try_for_each(|input| input.delete_read_chunks(conn, MIN_FREED_CHUNKS))?;
    }
    writer.finish()?;
    let least = MinTerm::find(&inputs).map(|least| least.term(&inputs).to_vec());
    for mut input in inputs {
        match &least {
            None => input.segment.delete(conn)?,
            Some(least) => input.drop_merged_prefix(conn, least)?,
        }
    }
    Ok(read)
}

/// A term on its way, with what holds of its items.
#[derive(Default)]
struct TermMerge {
    term: Vec<u8>,
    items: Vec<i64>,
    /// They are these instead, as they were: most terms of a merge are of one input, which has the
    /// last word on their items.
    packed: PackedPostings,
    is_packed: bool,
    /// Items that were not taken along, of this place in an order.
    dropped_items: Vec<i64>,
}

impl TermMerge {
    /// Takes the least term of all inputs, and its items together. Returns how many bytes were
    /// read.
    fn merge_next_term(
        &mut self,
        conn: &Connection,
        inputs: &mut [MergeInput],
        least: MinTerm,
    ) -> rusqlite::Result<i64> {
        let term = least.term(inputs);
        let out = term::sort_sign(term) < 0;
        if !out || !self.is_same_sort_position(term) {
            self.dropped_items.clear();
        }
        self.term.clear();
        self.term.extend_from_slice(term);
        self.items.clear();
        self.is_packed = false;
        if let Some(input) = inputs.get_mut(least.input)
            && least.is_unique
            && self.dropped_items.is_empty()
            && input.superseded_items.is_empty()
            && let Some(packed) = input.single_small_entry()
        {
            self.is_packed = true;
            mem::swap(&mut self.packed, packed);
            return input.advance(conn);
        }
        let at_it = |input: &&MergeInput| input.is_at_term(&self.term);
        let count = inputs
            .iter()
            .filter(at_it)
            .flat_map(MergeInput::packed_postings)
            .map(PackedPostings::count)
            .sum();
        self.items.reserve_exact(count);
        let mut read = 0;
        for input in inputs.iter_mut().skip(least.input) {
            if !input.is_at_term(&self.term) {
                continue;
            }
            let from = self.items.len();
            for packed in input.packed_postings() {
                packed.unpack(&mut self.items).ok_or_else(malformed_chunk_error)?;
            }
            if !out && !input.superseded_items.is_empty() {
                self.drop_superseded(from, &input.superseded_items);
            }
            read += input.advance(conn)?;
        }
        if !self.items.is_sorted() {
            self.items.sort_unstable();
        }
        match out {
            true => self.cancel_insert_remove_pairs(),
            false => self.items.dedup(),
        }
        Ok(read)
    }

    /// Of the items from `from` on, those that are `known` to a newer input are not taken along.
    fn drop_superseded(&mut self, from: usize, known: &[i64]) {
        let mut kept = from;
        for at in from..self.items.len() {
            let item = self.items[at];
            match known.binary_search(&item).is_ok() {
                true => self.dropped_items.push(item),
                false => {
                    self.items[kept] = item;
                    kept += 1;
                }
            }
        }
        self.items.truncate(kept);
    }

    /// Items come into a place and go out of it in turn. For each time that one was put in and is
    /// not taken along, one time that it was taken out goes, too; what is left is that it was there
    /// before the first of the inputs.
    fn cancel_insert_remove_pairs(&mut self) {
        self.dropped_items.sort_unstable();
        let mut dropped = self.dropped_items.iter().peekable();
        self.items.retain(|item| {
            while dropped.next_if(|other| *other < item).is_some() {}
            dropped.next_if(|other| *other == item).is_none()
        });
        self.items.dedup();
    }

    fn is_same_sort_position(&self, term: &[u8]) -> bool {
        term::sort_key(term).is_some()
            && term.split_last().map(|(_, place)| place)
                == self.term.split_last().map(|(_, place)| place)
    }
}

/// The least of the present terms.
#[derive(Clone, Copy)]
struct MinTerm {
    /// The first input that is at it.
    input: usize,
    /// No other one is.
    is_unique: bool,
}

impl MinTerm {
    /// `None`: all inputs have ended.
    fn find(inputs: &[MergeInput]) -> Option<MinTerm> {
        let mut open = inputs.iter().enumerate().filter(|(_, input)| !input.is_ended);
        let (at, mut first) = open.next()?;
        let mut least = MinTerm { input: at, is_unique: true };
        for (at, input) in open {
            let order = input.term_prefix.cmp(&first.term_prefix);
            match order.then_with(|| input.term.cmp(&first.term)) {
                Ordering::Less => (least, first) = (MinTerm { input: at, is_unique: true }, input),
                Ordering::Equal => least.is_unique = false,
                Ordering::Greater => {}
            }
        }
        Some(least)
    }

    fn term(self, inputs: &[MergeInput]) -> &[u8] {
        inputs.get(self.input).map_or(&[], |input| &input.term)
    }
}

/// A segment on its way into another one.
struct MergeInput {
    segment: Segment,
    /// Items of which a newer input knows all that holds.
    superseded_items: Vec<i64>,
    /// The chunk that is being read: its number, its bytes, and how many of them were read.
    chunk_number: i64,
    chunk: Vec<u8>,
    offset: usize,
    /// The chunk in which the present term began.
    term_chunk: i64,
    term: Vec<u8>,
    /// The term's first bytes, see [`term::beginning`].
    term_prefix: u64,
    /// Its items, as they are packed: so many entries of these. Of a frequent term they would take
    /// eight times as much.
    packed: Vec<PackedPostings>,
    entry_count: usize,
    is_ended: bool,
}

impl MergeInput {
    /// Opens the inputs of a merge, the oldest first, each at its first term.
    fn open(conn: &Connection, segments: Vec<Segment>) -> rusqlite::Result<Vec<MergeInput>> {
        let touched = |segment: &Segment| -> rusqlite::Result<Vec<i64>> {
            let mut touched = Vec::new();
            segment.read_postings(conn, &term::changed_items(), &mut touched)?;
            Ok(touched)
        };
        // Of most, no other knows an item, as they are of items that were new: those need no list
        // of them.
        let (mut ranges, mut lists, mut listed) = (Vec::new(), Vec::new(), 0);
        for segment in &segments {
            let items = touched(segment)?;
            ranges.push(items.first().copied().zip(items.last().copied()));
            listed += items.len();
            lists.push((listed <= MAX_PRELOADED_ITEMS).then_some(items));
        }
        let meet = |a: usize, b: usize| match (ranges.get(a), ranges.get(b)) {
            (Some(Some(a)), Some(Some(b))) => a.0 <= b.1 && b.0 <= a.1,
            _ => false,
        };
        let count = segments.len();
        let (mut inputs, mut newer) = (Vec::new(), Vec::new());
        for (at, segment) in segments.into_iter().enumerate().rev() {
            let mut known: Vec<i64> = Vec::new();
            if (0..count).any(|other| other != at && meet(at, other)) {
                let items = match lists.get_mut(at).and_then(Option::take) {
                    Some(items) => items,
                    None => touched(&segment)?,
                };
                known =
                    items.iter().copied().filter(|of| newer.binary_search(of).is_ok()).collect();
                newer.extend(items);
                newer.sort_unstable();
                newer.dedup();
            }
            let number = segment.chunks.start;
            let mut input = MergeInput {
                segment,
                superseded_items: known,
                chunk_number: number,
                chunk: Vec::new(),
                offset: 0,
                term_chunk: number,
                term: Vec::new(),
                term_prefix: 0,
                packed: Vec::new(),
                entry_count: 0,
                is_ended: false,
            };
            input.load_chunk(conn)?;
            input.advance(conn)?;
            while !input.is_ended && input.term < input.segment.from_term {
                input.advance(conn)?;
            }
            inputs.push(input);
        }
        inputs.reverse();
        Ok(inputs)
    }

    /// Is this its present term?
    fn is_at_term(&self, term: &[u8]) -> bool {
        !self.is_ended && self.term == term
    }

    fn load_chunk(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        self.chunk.clear();
        self.offset = 0;
        if self.chunk_number < self.segment.chunks.end {
            let (number, chunk) = (self.chunk_number, &mut self.chunk);
            self.segment.read_chunk(conn, number, |data| {
                chunk.extend_from_slice(data);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The items of the present term, packed.
    fn packed_postings(&self) -> &[PackedPostings] {
        self.packed.get(..self.entry_count).unwrap_or_default()
    }

    /// Those of the present term, where they are few, and in one entry.
    fn single_small_entry(&mut self) -> Option<&mut PackedPostings> {
        match self.entry_count {
            1 => self.packed.first_mut().filter(|packed| packed.is_small()),
            _ => None,
        }
    }

    /// Keeps one more entry of the present term.
    fn push_entry(&mut self, postings: &Postings<'_>) {
        if self.entry_count == self.packed.len() {
            self.packed.push(PackedPostings::default());
        }
        if let Some(packed) = self.packed.get_mut(self.entry_count) {
            packed.set(postings);
            self.entry_count += 1;
        }
    }

    /// Goes to the next term and gathers its items. Returns how many bytes were read.
    fn advance(&mut self, conn: &Connection) -> rusqlite::Result<i64> {
        self.entry_count = 0;
        self.load_next_if_read(conn)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = ChunkEntries::new(&chunk[self.offset..]);
        let first = entries.next().map_err(|_| malformed_chunk_error())?;
        let left = entries.remaining_bytes();
        if let Some(entry) = first {
            if entry.shared > self.term.len() {
                return Err(malformed_chunk_error());
            }
            self.term.truncate(entry.shared);
            self.term.extend_from_slice(entry.suffix);
            self.term_prefix = term::prefix_number(&self.term);
            self.push_entry(&entry.postings);
        }
        self.is_ended = first.is_none();
        self.chunk = chunk;
        self.term_chunk = self.chunk_number;
        let mut read = self.advance_offset(left);
        // A frequent term has several entries.
        while !self.is_ended && self.read_same_term(conn, &mut read)? {}
        Ok(read)
    }

    /// Keeps the next entry, if it is of the present term; else false.
    fn read_same_term(&mut self, conn: &Connection, read: &mut i64) -> rusqlite::Result<bool> {
        self.load_next_if_read(conn)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = ChunkEntries::new(&chunk[self.offset..]);
        let next = match entries.has_more_of_term(&self.term) {
            true => entries.next().map_err(|_| malformed_chunk_error())?,
            false => None,
        };
        let left = entries.remaining_bytes();
        if let Some(entry) = next {
            self.push_entry(&entry.postings);
        }
        let more = next.is_some();
        self.chunk = chunk;
        *read += self.advance_offset(left);
        Ok(more)
    }

    /// Goes on to the next chunk, where the present one is read.
    fn load_next_if_read(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if self.offset == self.chunk.len() && self.chunk_number < self.segment.chunks.end {
            self.chunk_number += 1;
            self.load_chunk(conn)?;
            if self.chunk.is_empty() && self.chunk_number < self.segment.chunks.end {
                return Err(malformed_chunk_error());
            }
        }
        Ok(())
    }

    /// So many bytes of the chunk are left; returns how many were read.
    fn advance_offset(&mut self, left: usize) -> i64 {
        let end = self.chunk.len() - left;
        let read = (end - self.offset) as i64;
        self.offset = end;
        read
    }

    /// Takes chunks away that were read, as soon as there are so many of them.
    fn delete_read_chunks(&mut self, conn: &Connection, many: i64) -> rusqlite::Result<()> {
        let end = if self.is_ended { self.segment.chunks.end } else { self.term_chunk };
        match end - self.segment.chunks.start >= many {
            true => self.segment.delete_read_chunks(conn, end),
            false => Ok(()),
        }
    }

    /// Keeps what begins with the term `from`, which is not moved yet.
    fn drop_merged_prefix(&mut self, conn: &Connection, from: &[u8]) -> rusqlite::Result<()> {
        let number = if self.is_ended { self.segment.chunks.end } else { self.term_chunk };
        self.segment.drop_merged_prefix(conn, number, from)
    }
}
