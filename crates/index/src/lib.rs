//! Inverted indexes of terms and of words, a sort index and an interval index over pages that the
//! caller stores.
//!
//! The inverted index is a log-structured merge tree of posting lists, as in Lucene: each batch of
//! changes writes one immutable, sorted *segment*, and segments are merged in the background of
//! later batches. In a B-tree, a batch of random keys changes pages everywhere; here the cost of a
//! batch depends only on the size of its terms. The sort index has items in the order of their sort
//! keys. The interval index (see [`interval`]) gives the keys of a sorted table, and the ranges of
//! it to read.
//!
//! The crate is independent of files, transactions, items, fields and time zones: an item is a
//! positive number, a term is a byte string, and pages are reached through [`ReadSegments`] and
//! [`WriteSegments`], [`ReadSortPages`] and [`WriteSortPages`], which the caller implements over
//! its storage and calls within its transactions.
//!
//! # Inverted index
//!
//! | unit | what it is | size |
//! |---|---|---|
//! | term | the key of a lookup, in the caller's encoding | mostly 3-20 bytes, at most 3,500 |
//! | posting | one item under a term | 1.0-1.2 bytes in a large segment |
//! | posting list | all items of a term, in varints or Rice codes | entries of up to 3.5 KB |
//! | block | consecutive terms with their posting lists, compressed | at most 4,040 bytes |
//! | fence | the first term of a block, by which a lookup finds it | one for each later block |
//! | segment | an immutable run of blocks, written by one batch or one merge | any |
//! | index | all segments under one [`IndexId`], ordered by batch | up to 10 segments when merged |
//!
//! ## Writing
//!
//! A [`SegmentBuffer`] collects the terms of the items that a batch adds, changes or removes, and
//! [`SegmentBuffer::flush`] writes them as one segment in the transaction of the batch. Then it
//! merges up to 4 times as many bytes as it wrote, or 32 KB if that is more (the merge is
//! incremental). So the number of segments stays bounded, and no batch waits for a large merge.
//!
//! The merge policy is size-tiered: 4 neighbouring segments of a tier (4 KB, 16 KB, 64 KB, ...)
//! become one segment of the next tier; segments of at least 32 KB, such as a large import writes,
//! are merged only when there are 64 of them, or by [`force_merge_step`] at the end of the import.
//! A merge is done in steps: it moves terms in ascending order and deletes the blocks that it has
//! read, and between two steps a lookup finds the terms that have been moved in the target and the
//! others in the inputs (`Segment::from_term`). The write amplification of merging is about 5.
//!
//! ## Staleness instead of tombstones
//!
//! No posting is ever deleted from a segment, and there are no tombstones for single postings. Each
//! segment lists the items that its batch changed or removed. If a newer segment lists an item as
//! changed, all older postings of the item are *stale*: merges drop them, and [`for_each_posting`]
//! skips them. A lookup does not read these lists. It returns with each item the batch up to which
//! its match is valid ([`IndexMatch::valid_until`]), and the caller compares that with the batch
//! that last changed the item, which it reads anyway.
//!
//! ## Reading
//!
//! [`find_matches`] answers a [`BooleanQuery`]: a term costs one step into the fences of each
//! segment and the blocks of its postings. Conjunctions begin with the rarest term, by the counts
//! in front of the posting lists. Items with too much text to be indexed are listed under
//! [`OVERSIZED_ITEMS_TERM`] and returned by every lookup as candidates to be verified.
//!
//! # Sort index
//!
//! For each order of a partition, a position is the sort key and the item. The index is an LSM tree
//! of two levels. Level 1 is one sequence of blocks, whose fences are also counted: it holds each
//! position once, about 15 bytes each, and is changed in place, like the leaves of a B+-tree. Level
//! 0 holds the sorted runs of large batches, with tombstones for the positions that items leave.
//!
//! [`write_position_changes`] writes a small batch to level 1, and a large one to level 0; when
//! that has an eighth of level 1, one pass merges it into level 1, and [`compact_level_zero`] does
//! so when a large job ends; a small batch compacts a small level 0. [`SortIndex`] reads both
//! levels as one sequence, from any position in either direction: a page costs a step into the
//! fences and a block or two. A rank is that of a block ([`RankDirectory`]) and a search in it.
//!
//! Why not one level: the keys of an import come in no order, so each batch would rewrite nearly
//! all blocks. Why not segments, as the inverted index has: a scan would have to ask for each item
//! whether its position is stale, and a rank would need sums of insertions and removals.
//!
//! # Word index
//!
//! The word index has the rows and the positions of the words in text. A row is a small number of
//! an item, which the caller gives once and never again for another text, so nothing in it becomes
//! stale, and a query combines rows as bits. A [`WordBuffer`] collects the words of a batch in a
//! thread without the store, [`SegmentWords`] those of several batches; a [`SegmentEncoder`] makes
//! the blocks, and [`EncodedSegment::write`] adds them as a segment, in the same storage as those
//! of the inverted index. An entry of a block has the term, its rows and its
//! positions in each; its *posting key*, the term and the first row, is what a fence holds. So a
//! [`WordCursor`] finds the rows of a term in one range without reading the others, and a range
//! near the one before mostly reads nothing. A [`PhraseCursor`] compares the positions of several
//! words in the rows that have all of them.
//!
//! [`merge_words_step`] merges segments in steps, as the inverted index does, but entry by entry:
//! most of a frequent word is copied as it is. Merges drop the rows that the caller has no item for
//! any more, and a [`FullWordMerge`] leaves none of them. Rows of two segments may interleave, but
//! no row is in both.
//!
//! A [`TermDictionary`] has the words once more, without rows, in segments of its own. A search for
//! a part of a word reads its blocks, and then the rows of the words that it found. Of a large
//! segment only the blocks are read that have all trigrams of the part: [`index_trigrams_step`]
//! keeps for each trigram the list of the blocks with it.
//!
//! Why not the inverted index: a lookup there returns all items of a term, without positions, and
//! asks of each whether it is stale. A frequent word in text would cost a step for each message.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `segment_storage` | the interface to storage; segments and fences as values |
//! | `term` | reserved terms |
//! | `block`, `rice`, `varint` | the byte format of blocks, gaps and numbers |
//! | `segment` | reading and writing one segment |
//! | `segment_buffer` | the changes of a batch in memory, and their segment |
//! | `merge`, `merge_input` | merging in steps, reading the inputs of a merge |
//! | `newest_inputs` | the stale postings of a merge |
//! | `merge_policy` | the choice of the segments to merge |
//! | `lookup` | queries over terms |
//! | `position_list` | positions of terms in items; phrases and proximity |
//! | `posting_scan` | all valid postings, for verification |
//! | `sort_pages` | the interface of the sort index to storage; positions, changes and fences |
//! | `sort_block` | the byte formats of blocks of positions and of runs |
//! | `level_zero` | the net effect of the runs of level 0 |
//! | `sort_writer` | writing to level 0 or 1, and compaction |
//! | `rank_directory` | ranks by fence |
//! | `sort_reader` | scans and ranks, and their verification |
//! | `word_block` | the byte format of blocks of rows and positions |
//! | `word_buffer` | the words of a batch in memory |
//! | `segment_words` | the words of several batches, and their segment |
//! | `word_index` | terms, and all rows of a term or a prefix |
//! | `word_cursor` | the rows of a term by ranges, and its positions in a row |
//! | `phrase_cursor` | the rows in which words follow each other |
//! | `phrase_candidates` | the rows that have all words of a phrase |
//! | `phrase_starts` | a quick comparison of two words of a phrase in one row |
//! | `word_verification` | decoding all postings, to find damage |
//! | `word_merge`, `word_merge_input` | merging in steps, reading the inputs of a merge |
//! | `merge_order` | the inputs of a merge in the order of their terms |
//! | `word_merge_policy` | the choice of the segments to merge |
//! | `row_lists` | rows with their positions, out of their blocks |
//! | `term_dictionary` | the words by themselves, and parts of words |
//! | `term_dictionary_merge` | merging dictionaries in steps |
//! | `trigram_index` | the blocks of a dictionary that have three bytes in a row |
//! | `interval` | row classes and buckets of the interval index |

mod block;
pub mod interval;
mod level_zero;
mod lookup;
mod merge;
mod merge_input;
mod merge_order;
mod merge_policy;
mod newest_inputs;
mod phrase_candidates;
mod phrase_cursor;
mod phrase_starts;
pub mod position_list;
mod posting_scan;
mod rank_directory;
mod rice;
mod row_lists;
mod segment;
mod segment_buffer;
mod segment_storage;
mod segment_words;
mod sort_block;
mod sort_pages;
mod sort_reader;
mod sort_writer;
mod term;
mod term_dictionary;
mod term_dictionary_merge;
mod trigram_index;
pub mod varint;
mod word_block;
mod word_buffer;
mod word_cursor;
mod word_index;
mod word_merge;
mod word_merge_input;
mod word_merge_policy;
mod word_verification;

pub use crate::block::CorruptBlock;
pub use crate::level_zero::LevelZero;
pub use crate::lookup::{BooleanQuery, IndexMatch, Matches, find_matches};
pub use crate::merge::{FullMerge, delete_all, force_merge_step, merge_all};
pub use crate::phrase_cursor::PhraseCursor;
pub use crate::posting_scan::for_each_posting;
pub use crate::rank_directory::RankDirectory;
pub use crate::segment_buffer::{SegmentBuffer, TermDecoder, TermSet};
pub use crate::segment_storage::{
    BlockReader, Fence, IndexId, ReadSegments, Segment, SegmentId, WriteSegments,
};
pub use crate::segment_words::{EncodedSegment, SegmentEncoder, SegmentWords};
pub use crate::sort_pages::{
    BlockSeek, PartitionOrder, PositionChange, ReadSortPages, RunVisitor, SortFence,
    SortPagesError, SortPosition, WriteSortPages,
};
pub use crate::sort_reader::{PositionVisitor, SortIndex};
pub use crate::sort_writer::{compact_level_zero, write_position_changes};
pub use crate::term::OVERSIZED_ITEMS_TERM;
pub use crate::term_dictionary::{TermDictionary, WordPart};
pub use crate::term_dictionary_merge::{DictionaryRebuild, merge_dictionary_step};
pub use crate::trigram_index::{index_trigrams_step, verify_trigrams};
pub use crate::word_block::MAX_WORD_BYTES;
pub use crate::word_buffer::{WordBatch, WordBuffer};
pub use crate::word_cursor::WordCursor;
pub use crate::word_index::{TermChoice, WordIndex};
pub use crate::word_merge::{FullWordMerge, merge_words_step};
pub use crate::word_merge_policy::MAX_RESTING_SEGMENTS;
pub use crate::word_verification::{WordIndexFaults, WordPosting, verify_words};
