//! An inverted index and an interval index over pages that the caller stores.
//!
//! The inverted index is a log-structured merge tree of posting lists, as in Lucene: each batch of
//! changes writes one immutable, sorted *segment*, and segments are merged in the background of
//! later batches. In a B-tree, a batch of random keys changes pages everywhere; here the cost of a
//! batch depends only on the size of its terms. The interval index (see [`interval`]) gives the
//! keys of a sorted table, and the ranges of it to read.
//!
//! The crate is independent of files, transactions, items, fields and time zones: an item is a
//! positive number, a term is a byte string, and pages are reached through [`ReadPages`] and
//! [`WritePages`], which the caller implements over its storage and calls within its transactions.
//!
//! # Data structure
//!
//! | unit | what it is | size |
//! |---|---|---|
//! | term | the key of a lookup, in the caller's encoding | mostly 3-20 bytes, at most 3,500 |
//! | posting | one item under a term | 1.0-1.2 bytes in a large segment |
//! | posting list | all items of a term, in varints or Rice codes | entries of up to 3.5 KB |
//! | chunk | consecutive terms with their posting lists, compressed | at most 4,040 bytes |
//! | fence | the first term of a chunk, by which a lookup finds it | one for each later chunk |
//! | segment | an immutable run of chunks, written by one batch or one merge | any |
//! | index | all segments under one [`IndexId`], ordered by batch | up to 10 segments when merged |
//!
//! # Writing
//!
//! A [`SegmentBuffer`] collects the terms of the items that a batch adds, changes or removes, and
//! [`SegmentBuffer::flush`] writes them as one segment in the transaction of the batch. Then it
//! merges up to 4 times as many bytes as it wrote, or 32 KB if that is more (the merge is
//! incremental). So the number of segments stays bounded, and no batch waits for a large merge.
//!
//! The merge policy is size-tiered: 4 neighbouring segments of a tier (4 KB, 16 KB, 64 KB, ...)
//! become one segment of the next tier; segments of at least 32 KB, such as a large import writes,
//! are merged only when there are 64 of them, or by [`compact_step`] at the end of the import. A
//! merge is done in steps: it moves terms in ascending order and deletes the chunks that it has
//! read, and between two steps a lookup finds the terms that have been moved in the target and the
//! others in the inputs (`Segment::from_term`). The write amplification of merging is about 5.
//!
//! # Staleness instead of tombstones
//!
//! No posting is ever deleted from a segment, and there are no tombstones for single postings. Each
//! segment lists the items that its batch changed or removed. If a newer segment lists an item as
//! changed, all older postings of the item are *stale*: merges drop them, and [`for_each_posting`]
//! skips them. A lookup does not read these lists. It returns with each item the batch up to which
//! its match is valid ([`IndexMatch::valid_until`]), and the caller compares that with the batch
//! that last changed the item, which it reads anyway.
//!
//! # Reading
//!
//! [`find_matches`] answers a [`TermQuery`]: a term costs one step into the fences of each segment
//! and the chunks of its postings. Conjunctions begin with the rarest term, by the counts in front
//! of the posting lists. Items with too much text to be indexed are listed under
//! [`OVERSIZED_ITEMS_TERM`] and returned by every lookup as candidates to be verified.
//!
//! Sort terms (`sort_term`) turn an index into an order: [`SortIndex`] reads it from any position
//! in either direction, and sums ranks over fences.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `pages` | the interface to storage; segments and fences as values |
//! | `term`, `sort_term` | reserved terms; the terms of orders |
//! | `chunk`, `rice`, `varint` | the byte format of chunks, gaps and numbers |
//! | `segment` | reading and writing one segment |
//! | `segment_buffer` | the changes of a batch in memory, and their segment |
//! | `merge`, `merge_input` | merging in steps, reading the inputs of a merge |
//! | `merge_policy` | the choice of the segments to merge |
//! | `lookup` | queries over terms |
//! | `sort_index` | positions in an order, and ranks |
//! | `posting_scan` | all valid postings, for verification |
//! | `interval` | row classes and buckets of the interval index |

mod chunk;
pub mod interval;
mod lookup;
mod merge;
mod merge_input;
mod merge_policy;
mod pages;
mod posting_scan;
mod rice;
mod segment;
mod segment_buffer;
mod sort_index;
mod sort_term;
mod term;
pub mod varint;

pub use crate::chunk::MalformedChunk;
pub use crate::lookup::{IndexMatch, Matches, TermQuery, find_matches};
pub use crate::merge::{compact_step, delete_all, merge_all};
pub use crate::pages::{
    ChunkPosition, Fence, IndexId, ReadPages, Segment, SegmentEnd, SegmentId, WritePages,
};
pub use crate::posting_scan::for_each_posting;
pub use crate::segment_buffer::{SegmentBuffer, TermSet, UnpackTerm};
pub use crate::sort_index::{SortIndex, SortPosition};
pub use crate::sort_term::{SortOp, sort_term};
pub use crate::term::OVERSIZED_ITEMS_TERM;
