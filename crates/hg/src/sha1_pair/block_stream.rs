//! A text as the blocks that SHA-1 takes, with the padding (FIPS 180-4, section 5.1.1).

const BLOCK_BYTES: usize = 64;
/// The bytes at the end of the last block that tell the length of the text in bits.
const LENGTH_BYTES: usize = 8;

pub(super) type Block = [u8; BLOCK_BYTES];

/// The end of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// It has not come yet.
    Ahead,
    /// A block with the length is missing.
    Length,
    /// All blocks are made.
    Complete,
}

/// The blocks of a text in pieces. Blocks inside a piece are not copied.
pub(super) struct BlockStream<'t, I> {
    pieces: I,
    /// The blocks of the current piece that are not taken yet.
    whole: &'t [Block],
    /// The bytes at the end of the current piece that are not in these blocks.
    rest: &'t [u8],
    /// A block of several pieces, or with padding.
    mixed: Option<Block>,
    /// The bytes of the pieces so far.
    len: u64,
    end: StreamEnd,
}

impl<'t, I: Iterator<Item = &'t [u8]>> BlockStream<'t, I> {
    pub(super) fn new(pieces: I) -> BlockStream<'t, I> {
        let (whole, rest, mixed) = (&[][..], &[][..], None);
        BlockStream { pieces, whole, rest, mixed, len: 0, end: StreamEnd::Ahead }
    }

    /// Returns the next blocks; none after the last one.
    pub(super) fn blocks(&mut self) -> &[Block] {
        if self.mixed.is_none() && self.whole.is_empty() {
            (self.whole, self.rest) = self.rest.as_chunks();
            if self.whole.is_empty() {
                self.mixed = self.mix();
            }
        }
        match &self.mixed {
            Some(block) => std::slice::from_ref(block),
            None => self.whole,
        }
    }

    /// Goes on after some of the blocks.
    pub(super) fn skip(&mut self, count: usize) {
        if self.mixed.take().is_none() {
            self.whole = self.whole.get(count..).unwrap_or_default();
        }
    }

    /// Makes a block of what is left of a piece and the next ones.
    fn mix(&mut self) -> Option<Block> {
        let mut block = [0; BLOCK_BYTES];
        let mut place = block.as_mut_slice();
        if self.end == StreamEnd::Ahead {
            loop {
                let count = place.len().min(self.rest.len());
                let (piece, rest) = self.rest.split_at(count);
                let (begin, after) = place.split_at_mut(count);
                begin.copy_from_slice(piece);
                (place, self.rest) = (after, rest);
                if place.is_empty() {
                    return Some(block);
                }
                let Some(piece) = self.pieces.next() else { break };
                self.rest = piece;
                self.len += piece.len() as u64;
            }
        }
        let (marker, last) = match self.end {
            StreamEnd::Ahead => (0x80, place.len() > LENGTH_BYTES),
            StreamEnd::Length => (0, true),
            StreamEnd::Complete => return None,
        };
        if let Some(first) = place.first_mut() {
            *first = marker;
        }
        self.end = StreamEnd::Length;
        if last {
            self.end = StreamEnd::Complete;
            let (_, length) = block.split_at_mut(BLOCK_BYTES - LENGTH_BYTES);
            length.copy_from_slice(&(self.len * 8).to_be_bytes());
        }
        Some(block)
    }
}
