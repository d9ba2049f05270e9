//! Merging segments into larger ones, a range of terms at a time.
//!
//! A merge moves terms in ascending order from its inputs into a new segment. Each step moves a
//! bounded number of bytes within the transaction of a batch, deletes the blocks that have become
//! empty, and notes in each input the first term that remains in it. So no step is long, no space
//! is needed for a second copy, and the index can be read between any two steps: a lookup reads the
//! terms before that term in the target and the others in the inputs.
//!
//! The postings of an item are dropped if a newer input of the merge lists the item as changed:
//! they are stale. Postings that a segment outside the merge has made stale are left to a later
//! merge.

use crate::block::{BLOCK_BYTES, PackedPostings};
use crate::merge_input::{MergeInput, MinTerm};
use crate::merge_policy::{choose_all, choose_force_merge, choose_tier};
use crate::newest_inputs::NewestInputs;
use crate::segment::{SegmentWriter, corruption};
use crate::segment_storage::{IndexId, Segment, SegmentId, WriteSegments};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

/// A batch merges this many times the bytes of its own segment.
const MERGED_BYTES_PER_BATCH_BYTE: i64 = 4;
/// A batch merges at least this many bytes, if there are as many to merge.
const MIN_MERGE_INCREMENT_BYTES: i64 = 32 << 10;
/// Blocks that have been read are deleted in groups of this many.
const MIN_FREED_BLOCKS: i64 = 16;

/// Merges in proportion to the bytes of the segment that a batch wrote.
pub(crate) fn merge_increment<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    bytes: i64,
) -> Result<(), P::Error> {
    let budget = (bytes * MERGED_BYTES_PER_BATCH_BYTE).max(MIN_MERGE_INCREMENT_BYTES);
    merge_up_to(pages, index, budget, choose_tier, merge_step).map(drop)
}

/// Moves about `budget_bytes` towards as few segments as are worth their cost. Returns whether
/// there was anything to merge; after false, further calls do nothing until the index changes.
pub fn force_merge_step<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    budget_bytes: i64,
) -> Result<bool, P::Error> {
    merge_up_to(pages, index, budget_bytes, choose_force_merge, merge_step)
}

/// A merge of all segments that are there when it begins into one, which holds no stale posting
/// and no posting of a removed item. Other batches may be written between its steps.
#[derive(Debug, Default)]
pub struct FullMerge {
    /// The segment that all others are merged into; `None`: merges that began earlier, which would
    /// leave stale postings, are completed first.
    target: Option<SegmentId>,
}

impl FullMerge {
    /// Moves about `budget_bytes`. Returns whether there is more to do.
    pub fn step<P: WriteSegments>(
        &mut self,
        pages: &P,
        index: IndexId,
        budget_bytes: i64,
    ) -> Result<bool, P::Error> {
        if self.target.is_none() {
            let segments = pages.segments(index)?;
            if segments.iter().all(|segment| segment.merged_into.is_none()) {
                if segments.len() < 2 {
                    return Ok(false);
                }
                let inputs = begin_merges(pages, index, choose_all)?;
                self.target = inputs.first().and_then(|input| input.merged_into);
            }
        }
        merge_up_to(pages, index, budget_bytes, |_| None, merge_step)?;
        let is_input = |segment: &Segment| segment.merged_into == self.target;
        Ok(self.target.is_none() || pages.segments(index)?.iter().any(is_input))
    }
}

/// Merges all segments into one, which holds no stale posting and no posting of a removed item.
pub fn merge_all<P: WriteSegments>(pages: &P, index: IndexId) -> Result<(), P::Error> {
    let mut merge = FullMerge::default();
    while merge.step(pages, index, i64::MAX)? {}
    Ok(())
}

/// Deletes all segments of an index.
pub fn delete_all<P: WriteSegments>(pages: &P, index: IndexId) -> Result<(), P::Error> {
    pages.segments(index)?.iter().try_for_each(|segment| pages.delete_segment(segment))
}

/// Begins the merges that the policy chooses, and moves about `budget_bytes` with `step`, which
/// returns the number of bytes that it has read. Returns whether there was anything to merge.
pub(crate) fn merge_up_to<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    budget_bytes: i64,
    choose: impl Fn(&[Segment]) -> Option<Range<usize>>,
    mut step: impl FnMut(&P, SegmentId, Vec<Segment>, i64) -> Result<i64, P::Error>,
) -> Result<bool, P::Error> {
    let mut merges: BTreeMap<SegmentId, Vec<Segment>> = BTreeMap::new();
    for segment in begin_merges(pages, index, choose)? {
        if let Some(target) = segment.merged_into {
            merges.entry(target).or_default().push(segment);
        }
    }
    let mut merges: Vec<(SegmentId, Vec<Segment>)> = merges.into_iter().collect();
    // Small merges first: they are soon done, and each segment costs every lookup.
    merges.sort_by_key(|(_, inputs)| inputs.iter().map(remaining_bytes).sum::<i64>());
    let has_merges = !merges.is_empty();
    let mut left = budget_bytes;
    for (target, inputs) in merges {
        if left <= 0 {
            break;
        }
        left -= step(pages, target, inputs, left)?;
    }
    Ok(has_merges)
}

fn remaining_bytes(segment: &Segment) -> i64 {
    (segment.blocks.end - segment.blocks.start) * BLOCK_BYTES as i64
}

/// Begins the merges that the policy chooses. Returns all segments.
fn begin_merges<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    choose: impl Fn(&[Segment]) -> Option<Range<usize>>,
) -> Result<Vec<Segment>, P::Error> {
    let mut segments = pages.segments(index)?;
    let is_target = |id| segments.iter().any(|segment| segment.merged_into == Some(id));
    let mut marked: Vec<(SegmentId, SegmentId)> = Vec::new();
    for free in segments.split(|segment| segment.merged_into.is_some() || is_target(segment.id)) {
        let Some(inputs) = choose(free).and_then(|run| free.get(run)) else { continue };
        let Some(last) = inputs.last() else { continue };
        let has_oversized = inputs.iter().any(|segment| segment.has_oversized);
        let target = pages.create_segment(index, last.max_seq, has_oversized)?;
        marked.extend(inputs.iter().map(|input| (input.id, target)));
    }
    for (input, target) in marked {
        pages.set_merge_target(input, target)?;
        for segment in segments.iter_mut().filter(|segment| segment.id == input) {
            segment.merged_into = Some(target);
        }
    }
    Ok(segments)
}

/// Moves terms of one merge, about `budget_bytes`. Returns the number of bytes that were read.
fn merge_step<P: WriteSegments>(
    pages: &P,
    target: SegmentId,
    segments: Vec<Segment>,
    budget_bytes: i64,
) -> Result<i64, P::Error> {
    let newest = NewestInputs::read(pages, &segments)?;
    let mut inputs = MergeInput::open(pages, segments)?;
    let mut writer = SegmentWriter::open(pages, target)?;
    let mut merged = MergedTerm::default();
    let mut read = 0;
    while let Some(least) = MinTerm::find(&inputs) {
        if read >= budget_bytes {
            break;
        }
        read += merged.advance(pages, &mut inputs, least, &newest)?;
        match merged.is_packed {
            true => writer.add_packed(&merged.term, &merged.packed)?,
            false => writer.add(&merged.term, &merged.items)?,
        }
        // Deletes the blocks that were read before it writes new ones.
        inputs
            .iter_mut()
            .try_for_each(|input| input.delete_read_blocks(pages, MIN_FREED_BLOCKS))?;
    }
    writer.finish()?;
    let next_term = MinTerm::find(&inputs).map(|least| least.term(&inputs));
    inputs.iter().try_for_each(|input| input.finish_step(pages, next_term))?;
    Ok(read)
}

/// The term that a merge moves, with its postings that are not stale.
#[derive(Default)]
struct MergedTerm {
    term: Vec<u8>,
    items: Vec<i64>,
    /// The postings if `is_packed`, instead of `items`: most terms are in one input only and have
    /// no stale posting, and are moved without being unpacked.
    packed: PackedPostings,
    is_packed: bool,
}

impl MergedTerm {
    /// Takes the least term from all inputs that are at it. Returns the number of bytes that were
    /// read.
    fn advance<P: WriteSegments>(
        &mut self,
        pages: &P,
        inputs: &mut [MergeInput],
        least: MinTerm,
        newest: &NewestInputs,
    ) -> Result<i64, P::Error> {
        let term = least.term(inputs);
        self.term.clear();
        self.term.extend_from_slice(term);
        self.items.clear();
        self.is_packed = false;
        if let Some(input) = inputs.get_mut(least.input)
            && least.is_unique
            && !newest.has_stale_items(least.input)
            && let Some(packed) = input.single_small_entry()
        {
            self.is_packed = true;
            mem::swap(&mut self.packed, packed);
            return input.advance(pages);
        }
        let count = inputs
            .iter()
            .filter(|input| input.is_at_term(&self.term))
            .flat_map(MergeInput::packed_postings)
            .map(PackedPostings::count)
            .sum();
        self.items.reserve_exact(count);
        let mut read = 0;
        for (place, input) in inputs.iter_mut().enumerate().skip(least.input) {
            if !input.is_at_term(&self.term) {
                continue;
            }
            let from = self.items.len();
            for packed in input.packed_postings() {
                packed.unpack(&mut self.items).ok_or_else(corruption::<P>)?;
            }
            if newest.has_stale_items(place) {
                self.drop_stale(from, place, newest);
            }
            read += input.advance(pages)?;
        }
        if !self.items.is_sorted() {
            self.items.sort_unstable();
        }
        self.items.dedup();
        Ok(read)
    }

    /// Drops the items from index `from` on, which came from the input at `place`, that are stale
    /// there.
    fn drop_stale(&mut self, from: usize, place: usize, newest: &NewestInputs) {
        let mut end = from;
        for index in from..self.items.len() {
            let item = self.items[index];
            if !newest.is_stale(item, place) {
                self.items[end] = item;
                end += 1;
            }
        }
        self.items.truncate(end);
    }
}
