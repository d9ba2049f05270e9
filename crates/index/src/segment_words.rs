//! The words of a segment in memory: the batches of several threads, brought together.
//!
//! A batch of a [`WordBuffer`](crate::WordBuffer) is small, so that its words stay in the
//! processor's cache; a segment is large, so that little is merged afterwards. The batches of a
//! segment are read side by side in the order of the terms, each from its beginning to its end. A
//! hash table of all terms would wait for memory at each of them.
//!
//! The blocks are passed on in parts, so that there is no second copy of all in memory. Separate
//! from `word_merge`, which merges the segments of the storage.

use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, SegmentId, WriteSegments};
use crate::term_dictionary::DictionaryBuilder;
use crate::varint::read_varint;
use crate::word_block::{FullBlocks, WordBlockBuilder};
use crate::word_buffer::{WordBatch, WordBatchReader, order_key};
use std::mem;

/// The words of a segment in memory. The batches are added in the order of their rows.
#[derive(Debug, Default)]
pub struct SegmentWords {
    /// The first byte of the terms that the dictionary has.
    dictionary_byte: Option<u8>,
    batches: Vec<WordBatch>,
}

impl SegmentWords {
    /// Creates a segment without words. The terms that begin with this byte are in the dictionary,
    /// without it.
    #[must_use]
    pub fn new(dictionary_byte: Option<u8>) -> SegmentWords {
        SegmentWords { dictionary_byte, batches: Vec::new() }
    }

    /// Returns the number of bytes in memory that the words take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(WordBatch::bytes).sum()
    }

    /// Adds a batch, whose rows come after those that were added before.
    pub fn add(&mut self, batch: WordBatch) {
        if !batch.is_empty() {
            self.batches.push(batch);
        }
    }

    /// Encodes all words in one part.
    #[must_use]
    pub fn encode(self) -> EncodedSegment {
        self.into_encoder().next_part(usize::MAX).unwrap_or_default()
    }

    /// Begins to encode the segment.
    #[must_use]
    pub fn into_encoder(self) -> SegmentEncoder {
        let last_row = self.batches.iter().map(|batch| batch.last_row).max().unwrap_or_default();
        let batches = self.batches.into_iter().map(WordBatchReader::open).collect();
        SegmentEncoder {
            dictionary_byte: self.dictionary_byte,
            last_row,
            inputs: BatchTournament::new(batches),
            blocks: WordBlockBuilder::default(),
            dictionary: DictionaryBuilder::default(),
            term: Vec::new(),
            rows: Vec::new(),
            lists: Vec::new(),
        }
    }
}

/// A tournament of batches by their current terms: each node has the batch that lost there, so that
/// a batch that advanced is compared with few others.
#[derive(Debug)]
struct BatchTournament {
    batches: Vec<WordBatchReader>,
    /// The first sixteen bytes of the current terms, see [`order_key`]; the largest ones of a batch
    /// that has ended.
    keys: Vec<[u64; 2]>,
    /// The batch with the least term, then the losers.
    nodes: Vec<usize>,
}

impl BatchTournament {
    fn new(batches: Vec<WordBatchReader>) -> BatchTournament {
        const EMPTY: usize = usize::MAX;
        let count = batches.len();
        let keys = batches.iter().map(tournament_key).collect();
        let mut tournament = BatchTournament { batches, keys, nodes: vec![EMPTY; count.max(1)] };
        for batch in 0..count {
            // The first batch that comes to a node waits there for the second one.
            let (mut winner, mut node) = (batch, (batch + count) / 2);
            while node > 0 && tournament.nodes[node] != EMPTY {
                winner = tournament.play(node, winner);
                node /= 2;
            }
            tournament.nodes[node] = winner;
        }
        tournament
    }

    /// Returns the batch with the least term; of several, the one that was added first. `None` if
    /// all have ended.
    #[inline]
    fn least_batch(&self) -> Option<&WordBatchReader> {
        self.batches.get(*self.nodes.first()?).filter(|batch| !batch.term.is_empty())
    }

    /// Advances the batch with the least term.
    #[inline]
    fn advance(&mut self) {
        let batch = self.nodes[0];
        let Some(reader) = self.batches.get_mut(batch) else { return };
        reader.advance();
        self.keys[batch] = tournament_key(reader);
        let (mut winner, mut node) = (batch, (batch + self.batches.len()) / 2);
        while node > 0 {
            winner = self.play(node, winner);
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    /// Lets a batch play against the one at a node, where the loser stays. Returns the winner.
    #[inline]
    fn play(&mut self, node: usize, batch: usize) -> usize {
        let other = self.nodes[node];
        let order = self.keys[other].cmp(&self.keys[batch]);
        let order = order.then_with(|| self.batches[other].term.cmp(&self.batches[batch].term));
        if order.then(other.cmp(&batch)).is_lt() {
            self.nodes[node] = batch;
            return other;
        }
        batch
    }
}

fn tournament_key(batch: &WordBatchReader) -> [u64; 2] {
    match batch.term.as_slice() {
        [] => [u64::MAX; 2],
        term => order_key(term),
    }
}

/// Encodes the words of a segment in the order of the terms.
#[derive(Debug)]
pub struct SegmentEncoder {
    dictionary_byte: Option<u8>,
    last_row: u32,
    inputs: BatchTournament,
    blocks: WordBlockBuilder,
    dictionary: DictionaryBuilder,
    /// The current term, its rows, and their lists of positions.
    term: Vec<u8>,
    rows: Vec<u32>,
    lists: Vec<u8>,
}

impl SegmentEncoder {
    /// Encodes terms until there are about `max_bytes` of blocks. Returns `None` after the last
    /// part.
    #[must_use]
    pub fn next_part(&mut self, max_bytes: usize) -> Option<EncodedSegment> {
        self.inputs.least_batch()?;
        while self.blocks.full_blocks().bytes() < max_bytes && self.encode_term() {}
        if self.inputs.least_batch().is_none() {
            self.blocks.finish_block();
            self.dictionary.finish_block();
        }
        Some(EncodedSegment {
            blocks: mem::take(self.blocks.full_blocks()),
            dictionary: mem::take(self.dictionary.full_blocks()),
            last_row: self.last_row,
        })
    }

    /// Encodes the least term. Returns false if there is none.
    fn encode_term(&mut self) -> bool {
        let Some(first) = self.inputs.least_batch() else { return false };
        self.term.clear();
        self.term.extend_from_slice(&first.term);
        self.rows.clear();
        self.lists.clear();
        while let Some(batch) = self.inputs.least_batch().filter(|batch| batch.term == self.term) {
            let (mut gaps, mut row) = (batch.rows(), 0);
            while let Some(gap) = read_varint(&mut gaps) {
                row += gap as u32;
                self.rows.push(row);
            }
            self.lists.extend_from_slice(batch.positions());
            self.inputs.advance();
        }
        self.blocks.add(&self.term, &self.rows, &self.lists);
        if let Some((first, word)) = self.term.split_first()
            && self.dictionary_byte == Some(*first)
        {
            self.dictionary.add(word);
        }
        true
    }
}

/// The blocks of a segment, or of a part of it, ready to be written.
#[derive(Debug, Clone, Default)]
pub struct EncodedSegment {
    blocks: FullBlocks,
    /// The words of the dictionary.
    dictionary: FullBlocks,
    last_row: u32,
}

impl EncodedSegment {
    /// Returns whether the segment has no words, and would not be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of bytes of the blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Adds the segment to an index, or to a segment that has the parts before this one and is in
    /// no merge. Returns the segment; `None` if there is nothing in it.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write<P: WriteSegments>(
        &self,
        pages: &P,
        index: IndexId,
        begun: Option<SegmentId>,
    ) -> Result<Option<SegmentId>, P::Error> {
        self.write_blocks(pages, index, begun, &self.blocks)
    }

    /// Adds the words of the segment to a dictionary, as [`EncodedSegment::write`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write_dictionary<P: WriteSegments>(
        &self,
        pages: &P,
        index: IndexId,
        begun: Option<SegmentId>,
    ) -> Result<Option<SegmentId>, P::Error> {
        self.write_blocks(pages, index, begun, &self.dictionary)
    }

    fn write_blocks<P: WriteSegments>(
        &self,
        pages: &P,
        index: IndexId,
        begun: Option<SegmentId>,
        blocks: &FullBlocks,
    ) -> Result<Option<SegmentId>, P::Error> {
        if blocks.is_empty() {
            return Ok(begun);
        }
        let is_free = |id: SegmentId| -> Result<bool, P::Error> {
            let mut segments = pages.segments(index)?.into_iter();
            Ok(segments.any(|segment| segment.id == id && segment.merged_into.is_none()))
        };
        // Another process may have begun to merge it.
        let segment = match begun {
            Some(id) if is_free(id)? => id,
            _ => pages.create_segment(index, self.last_row.into(), false)?,
        };
        let mut appender = BlockAppender::new(pages, segment, pages.end(segment)?);
        for (first_key, block) in blocks.iter() {
            appender.append(first_key, block)?;
        }
        appender.finish()?;
        Ok(Some(segment))
    }
}
