//! The inverted index: which items have which terms.
//!
//! Terms are what queries ask for by equality, beginning, end or part (see `term`). Each batch
//! writes its own terms in order, as a segment at the end of the table: unlike in a B-tree, whose
//! pages a batch of random keys touches all over, a batch costs what its terms take. Segments are
//! merged into larger ones as they add up (`merge`), a share with each batch, so that a reader has
//! few of them to look into (`lookup`).
//!
//! It is all rows of the database, in the transaction of the batch: it is there when the items are.
//! It is not the truth, and knows nothing of what the terms mean; `contact` derives them.

mod chunk;
mod lookup;
mod merge;
mod rice;
mod segment;
mod segment_buffer;
mod sort_index;
pub mod term;
pub(crate) mod varint;

pub use lookup::IndexQuery;
pub(crate) use lookup::{IndexMatch, find_matches};
pub(crate) use merge::{compact_step, merge_all};
pub(crate) use segment::{Segment, read_segments as segments};
pub(crate) use segment_buffer::{ItemTerms, SegmentBuffer};
pub(crate) use sort_index::SortIndex;
pub use sort_index::SortPosition;

use crate::index_maintenance::DerivedIndex;
use rusqlite::Connection;
use std::collections::HashMap;

/// Takes all segments of a set away.
pub(crate) fn delete_segments(conn: &Connection, set: DerivedIndex) -> rusqlite::Result<()> {
    for segment in segment::read_segments(conn, set)? {
        segment.delete(conn)?;
    }
    Ok(())
}

/// Gives each term that the index holds of each item to `each`, if the item is one of `live`: what
/// the newest segment that knows an item says of it. The order is of no meaning.
pub(crate) fn for_each_posting(
    conn: &Connection,
    set: DerivedIndex,
    live: &dyn Fn(i64) -> bool,
    each: &mut dyn FnMut(&[u8], i64),
) -> rusqlite::Result<()> {
    let segments = segment::read_segments(conn, set)?;
    let (mut items, mut newest) = (Vec::new(), HashMap::new());
    for segment in &segments {
        items.clear();
        segment.read_postings(conn, &term::changed_items(), &mut items)?;
        newest.extend(items.iter().map(|&item| (item, segment.id)));
    }
    // What a merge has moved is as good as where it was: the segments that it comes from know the
    // item.
    let place = |id: i64| {
        segments.iter().find(|segment| segment.id == id).and_then(|segment| segment.merged_into)
    };
    for segment in &segments {
        segment.for_each_entry(conn, &[], &mut |term, postings| {
            if term == term::changed_items() {
                return Ok(false);
            }
            items.clear();
            postings.unpack(&mut items).ok_or_else(segment::malformed_chunk_error)?;
            for &item in items.iter().filter(|&&item| term::sort_sign(term) >= 0 && live(item)) {
                let known = newest.get(&item).copied();
                if known == Some(segment.id) || known.and_then(place) == Some(segment.id) {
                    each(term, item);
                }
            }
            Ok(true)
        })?;
    }
    Ok(())
}
