//! The term dictionary: the words of a word index by themselves, for searches of parts of words.
//!
//! A block is a sequence of words in ascending order, each followed by a zero byte. The words are
//! not compressed, so that a part of a word is searched for in the bytes of a block at once, and
//! most words are never looked at: the dictionary has a hundredth of the bytes of the postings. Of
//! a large segment only the blocks that `trigram_index` names are read.
//!
//! Each batch adds a segment with its distinct words, and segments are merged by the policy of the
//! word index. So a word may be in several segments, and it stays when the last row that has it is
//! dropped: the dictionary lists candidates, and the word index has their rows.
//!
//! Separate from `word_index`, in whose blocks words are between their postings: to visit all words
//! there means to read the whole index.

use crate::block::BLOCK_BYTES;
use crate::merge_order::OrderedInput;
use crate::segment::corruption;
use crate::segment_storage::{IndexId, ReadSegments, Segment};
use crate::term::prefix_key;
use crate::trigram_index::{AFTER_WORDS, END_OF_WORD, find_blocks_with_parts};
use crate::word_block::FullBlocks;
use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

/// Builds blocks from words, which are added in ascending order.
#[derive(Debug, Default)]
pub(crate) struct DictionaryBuilder {
    full: FullBlocks,
    /// The block that is not full yet.
    block: Vec<u8>,
    /// The beginning of the last word in it.
    last: usize,
}

impl DictionaryBuilder {
    /// Adds a word, unless it is the one before.
    pub(crate) fn add(&mut self, word: &[u8]) {
        if self.last_word() == Some(word) {
            return;
        }
        if self.block.len() + word.len() + 1 > BLOCK_BYTES {
            self.finish_block();
        }
        self.last = self.block.len();
        self.block.extend_from_slice(word);
        self.block.push(END_OF_WORD);
    }

    /// Returns the word that was added last, if its block is not full.
    pub(crate) fn last_word(&self) -> Option<&[u8]> {
        self.block.get(self.last..)?.split_last().map(|(_, word)| word)
    }

    /// Ends the block that is not full yet, if it has a word.
    pub(crate) fn finish_block(&mut self) {
        if let Some(first) = memchr(END_OF_WORD, &self.block) {
            self.full.push(self.block.get(..first).unwrap_or_default(), &self.block);
            self.block.clear();
            self.last = 0;
        }
    }

    /// Returns the blocks that are full.
    pub(crate) fn full_blocks(&mut self) -> &mut FullBlocks {
        &mut self.full
    }
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordPart<'p> {
    /// All words have it.
    Any,
    /// Words with this text anywhere.
    Inside(&'p [u8]),
    /// Words with this text at their end.
    End(&'p [u8]),
}

/// The search for words with any of some parts in blocks.
enum PartFinder {
    One(Box<Finder<'static>>),
    /// One pass finds all parts, so a word with several of them is found once.
    Several(AhoCorasick),
}

impl PartFinder {
    /// Prepares the search for texts of words, perhaps with the end of the word; `None`: an
    /// automaton of the texts would be too large.
    fn new(texts: &[Vec<u8>]) -> Option<PartFinder> {
        if let [text] = texts {
            return Some(PartFinder::One(Box::new(Finder::new(text).into_owned())));
        }
        // The earliest place of any text counts: which text it is does not matter.
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst).build(texts).ok().map(PartFinder::Several)
    }

    fn find(&self, words: &[u8]) -> Option<usize> {
        match self {
            PartFinder::One(finder) => finder.find(words),
            PartFinder::Several(automaton) => automaton.find(words).map(|found| found.start()),
        }
    }

    /// Passes each word of a block in which a part begins to `visit`.
    fn for_each_word(&self, block: &[u8], visit: &mut dyn FnMut(&[u8])) {
        let mut rest = block;
        while let Some(found) = self.find(rest) {
            let (before, after) = rest.split_at_checked(found).unwrap_or((rest, &[]));
            let start = memrchr(END_OF_WORD, before).map_or(0, |end| end + 1);
            // Every block ends with the end of a word.
            let Some(length) = memchr(END_OF_WORD, after) else { break };
            let end = found + length;
            visit(rest.get(start..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
}

/// Passes each word of a block to `visit`.
fn for_each_word_of(block: &[u8], visit: &mut dyn FnMut(&[u8])) {
    let words = block.split_inclusive(|byte| *byte == END_OF_WORD);
    words.filter_map(|word| word.strip_suffix(&[END_OF_WORD])).for_each(visit);
}

/// The segments of a dictionary, in one transaction.
pub struct TermDictionary<'a, P> {
    pages: &'a P,
    segments: Cow<'a, [Segment]>,
}

impl<'a, P: ReadSegments> TermDictionary<'a, P> {
    /// Opens a dictionary, which may be empty.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn open(pages: &'a P, index: IndexId) -> Result<TermDictionary<'a, P>, P::Error> {
        Ok(TermDictionary { pages, segments: pages.segments(index)?.into() })
    }

    /// Opens a dictionary whose segments were read before.
    #[must_use]
    pub fn with_segments(pages: &'a P, segments: &'a [Segment]) -> TermDictionary<'a, P> {
        TermDictionary { pages, segments: segments.into() }
    }

    /// Passes each word with any of these parts to `visit`, in no order, and perhaps other words.
    /// Each segment has its words. Each block is read and searched once, however many parts there
    /// are. Returns the number of bytes of the blocks that were read, about.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn for_each_word(
        &self,
        parts: &[WordPart<'_>],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, P::Error> {
        let (mut parts_of_blocks, mut texts) = (Vec::new(), Vec::new());
        for part in parts {
            let (part, end) = match *part {
                WordPart::Any | WordPart::Inside([]) => {
                    return self
                        .for_each_block(&[b""], &mut |block| for_each_word_of(block, visit));
                }
                WordPart::Inside(part) => (part, &[][..]),
                WordPart::End(part) => (part, &[END_OF_WORD][..]),
            };
            parts_of_blocks.push(part);
            texts.push([part, end].concat());
        }
        let finder = PartFinder::new(&texts);
        self.for_each_block(&parts_of_blocks, &mut |block| match &finder {
            Some(finder) => finder.for_each_word(block, visit),
            None => for_each_word_of(block, visit),
        })
    }

    /// Passes each block that may have words with any of these parts to `visit`. Returns the number
    /// of bytes that were read, about.
    fn for_each_block(
        &self,
        parts: &[&[u8]],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, P::Error> {
        let mut count: i64 = 0;
        for segment in self.segments.iter() {
            for blocks in find_blocks_with_parts(self.pages, segment, parts)? {
                count += blocks.end - blocks.start;
                self.read_blocks(segment, blocks, visit)?;
            }
        }
        Ok(count.unsigned_abs().saturating_mul(BLOCK_BYTES as u64))
    }

    fn read_blocks(
        &self,
        segment: &Segment,
        blocks: Range<i64>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), P::Error> {
        self.pages.read_blocks(segment.id, blocks, &mut |block| {
            if block.last() != Some(&END_OF_WORD) {
                return Err(corruption::<P>());
            }
            visit(block);
            Ok(true)
        })
    }
}

impl OrderedInput for DictionaryInput {
    fn term_prefix(&self) -> u64 {
        self.word_prefix
    }

    fn compare_rest(&self, other: &DictionaryInput) -> Ordering {
        self.word().cmp(other.word())
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }
}

/// A segment of a dictionary that is read word by word.
pub(crate) struct DictionaryInput {
    pub(crate) segment: Segment,
    /// The block that is being read: its number and its bytes.
    pub(crate) block_number: i64,
    block: Vec<u8>,
    /// The current word.
    word: Range<usize>,
    /// See [`prefix_key`].
    word_prefix: u64,
    pub(crate) is_ended: bool,
}

impl DictionaryInput {
    /// Opens a segment at its first word that has not been moved.
    pub(crate) fn open<P: ReadSegments>(
        pages: &P,
        segment: Segment,
    ) -> Result<DictionaryInput, P::Error> {
        let mut input = DictionaryInput {
            block_number: segment.blocks.start,
            segment,
            block: Vec::new(),
            word: 0..0,
            word_prefix: 0,
            is_ended: false,
        };
        if input.segment.from_term == AFTER_WORDS {
            // All words were moved, and blocks are left to be deleted: they may be many.
            input.is_ended = true;
            return Ok(input);
        }
        input.load_block(pages)?;
        while !input.is_ended && input.word() < input.segment.from_term.as_slice() {
            input.advance(pages)?;
        }
        Ok(input)
    }

    /// Returns the current word.
    pub(crate) fn word(&self) -> &[u8] {
        self.block.get(self.word.clone()).unwrap_or_default()
    }

    /// Advances to the next word. Returns the number of bytes that were read.
    pub(crate) fn advance<P: ReadSegments>(&mut self, pages: &P) -> Result<i64, P::Error> {
        let read = self.word.len() as i64 + 1;
        if self.word.end + 1 < self.block.len() {
            self.read_word(self.word.end + 1).ok_or_else(corruption::<P>)?;
        } else {
            self.block_number += 1;
            self.load_block(pages)?;
        }
        Ok(read)
    }

    fn read_word(&mut self, start: usize) -> Option<()> {
        // Most words are too short for `memchr`.
        let length = self.block.get(start..)?.iter().position(|byte| *byte == END_OF_WORD)?;
        self.word = start..start + length;
        self.word_prefix = prefix_key(self.word());
        Some(())
    }

    fn load_block<P: ReadSegments>(&mut self, pages: &P) -> Result<(), P::Error> {
        self.block.clear();
        self.word = 0..0;
        if self.block_number >= self.segment.blocks.end {
            self.is_ended = true;
            return Ok(());
        }
        let block = &mut self.block;
        pages.read_block(self.segment.id, self.block_number, |bytes| {
            block.extend_from_slice(bytes);
            Ok(())
        })?;
        self.read_word(0).ok_or_else(corruption::<P>)
    }
}
