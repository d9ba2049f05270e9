//! The inverted index: which items have which terms.
//!
//! Terms are what queries ask for by equality, beginning, end or part (see `term`). Each batch writes its own
//! terms in order, as a segment at the end of the table: unlike in a B-tree, whose pages a batch of random
//! keys touches all over, a batch costs what its terms take. Segments are merged into larger ones as they add up
//! (`merge`), a share with each batch, so that a reader has few of them to look into (`lookup`).
//!
//! It is all rows of the database, in the transaction of the batch: it is there when the items are. It is
//! not the truth, and knows nothing of what the terms mean; `contact` derives them.

mod chunk;
mod lookup;
mod merge;
mod order;
mod rice;
mod segment;
pub mod term;
pub(crate) mod varint;
mod write;

pub use lookup::Lookup;
pub(crate) use lookup::{Named, look_up};
pub(crate) use merge::{merge_all, merge_most};
pub(crate) use order::Orders;
pub use order::Place;
pub(crate) use segment::{Segment, all as segments};
pub(crate) use write::{Gathered, Terms};

use crate::derived::IndexSet;
use rusqlite::Connection;
use std::collections::HashMap;

/// Takes all segments of a set away.
pub(crate) fn empty(conn: &Connection, set: IndexSet) -> rusqlite::Result<()> {
    for segment in segment::all(conn, set)? {
        segment.delete(conn)?;
    }
    Ok(())
}

/// Gives each term that the index holds of each item to `each`, if the item is one of `live`: what the newest
/// segment that knows an item says of it. The order is of no meaning.
pub(crate) fn each(
    conn: &Connection,
    set: IndexSet,
    live: &dyn Fn(i64) -> bool,
    each: &mut dyn FnMut(&[u8], i64),
) -> rusqlite::Result<()> {
    let segments = segment::all(conn, set)?;
    let (mut items, mut newest) = (Vec::new(), HashMap::new());
    for segment in &segments {
        items.clear();
        segment.postings(conn, &term::touched(), &mut items)?;
        newest.extend(items.iter().map(|&item| (item, segment.id)));
    }
    // What a merge has moved is as good as where it was: the segments that it comes from know the item.
    let place =
        |id: i64| segments.iter().find(|segment| segment.id == id).and_then(|segment| segment.into);
    for segment in &segments {
        segment.walk(conn, &[], &mut |term, postings| {
            if term == term::touched() {
                return Ok(false);
            }
            items.clear();
            postings.unpack(&mut items).ok_or_else(segment::malformed)?;
            for &item in items.iter().filter(|&&item| term::sign(term) >= 0 && live(item)) {
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
