//! Reads all valid postings of an index, so that a check can compare them with the expected
//! postings.

use crate::segment::{SegmentReader, corruption};
use crate::segment_storage::{IndexId, ReadSegments, SegmentId};
use crate::term::CHANGED_ITEMS_TERM;
use std::collections::HashMap;

/// Passes each term and item that the index holds to `visit`, for the items that `is_live` accepts.
/// The order is unspecified.
///
/// Staleness is decided by the segments alone: the valid postings of an item are in the newest
/// segment that lists it as changed.
pub fn for_each_posting<P: ReadSegments>(
    pages: &P,
    index: IndexId,
    is_live: &dyn Fn(i64) -> bool,
    visit: &mut dyn FnMut(&[u8], i64),
) -> Result<(), P::Error> {
    let segments = pages.segments(index)?;
    let (mut items, mut newest) = (Vec::new(), HashMap::new());
    for segment in &segments {
        items.clear();
        SegmentReader::new(pages, segment).read_postings(CHANGED_ITEMS_TERM, &mut items)?;
        newest.extend(items.iter().map(|&item| (item, segment.id)));
    }
    let merge_target = |id: SegmentId| {
        segments.iter().find(|segment| segment.id == id).and_then(|segment| segment.merged_into)
    };
    for segment in &segments {
        SegmentReader::new(pages, segment).for_each_entry(&[], &mut |term, postings| {
            if term == CHANGED_ITEMS_TERM {
                return Ok(false);
            }
            items.clear();
            postings.unpack(&mut items).ok_or_else(corruption::<P>)?;
            for &item in items.iter().filter(|&&item| is_live(item)) {
                // Postings that a merge has moved are valid if the postings of the input are: the
                // changed items of the input are moved last.
                let known = newest.get(&item).copied();
                if known == Some(segment.id) || known.and_then(merge_target) == Some(segment.id) {
                    visit(term, item);
                }
            }
            Ok(true)
        })?;
    }
    Ok(())
}
