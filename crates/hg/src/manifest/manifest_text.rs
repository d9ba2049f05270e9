//! The text of a manifest, in pieces that texts share.
//!
//! Apart from the list of manifests, because it knows neither numbers nor revisions: only lines.

use crate::delta::{DeltaError, hunks};
use memchr::{memchr, memchr_iter, memrchr};
use std::mem;
use std::sync::Arc;

/// The least bytes of a piece, before the end of a line.
const PIECE_BYTES: usize = 2 << 10;

/// The text of a manifest, in pieces of whole lines.
#[derive(Clone, Default)]
pub(crate) struct ManifestText {
    pieces: Arc<Vec<Arc<[u8]>>>,
    len: usize,
}

impl ManifestText {
    /// Takes a text of whole lines.
    pub(crate) fn new(text: &[u8]) -> ManifestText {
        let mut pieces = Vec::with_capacity(text.len() / PIECE_BYTES + 1);
        push_pieces(text, &mut pieces);
        ManifestText { pieces: Arc::new(pieces), len: text.len() }
    }

    /// The bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the text in pieces, in their order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// Returns the lines without their newlines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|piece| {
            let lines = piece.strip_suffix(b"\n").unwrap_or(piece);
            lines.split(|byte| *byte == b'\n')
        })
    }

    /// Returns the piece that has a path if any has it.
    pub(super) fn find_piece(&self, path: &[u8]) -> Option<&[u8]> {
        let after = self.pieces.partition_point(|piece| path_of_line(piece) <= path);
        self.pieces.get(after.checked_sub(1)?).map(|piece| &**piece)
    }

    /// Returns the text after lines were set (with their newlines) or removed, by their paths.
    /// Pieces without such lines are shared. The lines of both are sorted by path, and each path is
    /// once in `lines`.
    pub(crate) fn replace_lines(&self, lines: &[(&[u8], Option<Vec<u8>>)]) -> ManifestText {
        let mut lines = lines.iter().peekable();
        let mut pieces = Vec::with_capacity(self.pieces.len() + 2);
        let mut pending = Vec::new();
        for (number, piece) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(number + 1).map(|next| path_of_line(next));
            let is_in_piece = |path: &[u8]| end.is_none_or(|end| path < end);
            if !lines.peek().is_some_and(|(path, _)| is_in_piece(path)) {
                push_pieces(&pending, &mut pieces);
                pending.clear();
                pieces.push(piece.clone());
                continue;
            }
            for line in piece.split_inclusive(|byte| *byte == b'\n') {
                let path = path_of_line(line);
                while let Some((_, new)) = lines.next_if(|(other, _)| *other < path) {
                    pending.extend(new.iter().flatten());
                }
                match lines.next_if(|(other, _)| *other == path) {
                    Some((_, new)) => pending.extend(new.iter().flatten()),
                    None => pending.extend_from_slice(line),
                }
            }
            while let Some((_, new)) = lines.next_if(|(path, _)| is_in_piece(path)) {
                pending.extend(new.iter().flatten());
            }
        }
        // Only a text without pieces has none of the lines in it.
        lines.for_each(|(_, new)| pending.extend(new.iter().flatten()));
        push_pieces(&pending, &mut pieces);
        ManifestText::from_pieces(pieces)
    }

    fn from_pieces(pieces: Vec<Arc<[u8]>>) -> ManifestText {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        ManifestText { pieces: Arc::new(pieces), len }
    }

    /// Returns whether another text has the same bytes, in whatever pieces.
    pub(super) fn is_equal(&self, other: &ManifestText) -> bool {
        self.len == other.len && self.to_bytes() == other.to_bytes()
    }

    /// Returns the whole text.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len);
        self.pieces.iter().for_each(|piece| text.extend_from_slice(piece));
        text
    }
}

/// Returns the path at the start of a line, or of a piece.
pub(super) fn path_of_line(line: &[u8]) -> &[u8] {
    line.get(..memchr(0, line).unwrap_or(line.len())).unwrap_or_default()
}

/// Divides whole lines into pieces.
fn push_pieces(mut text: &[u8], pieces: &mut Vec<Arc<[u8]>>) {
    while text.len() > 2 * PIECE_BYTES {
        let rest = text.get(PIECE_BYTES..).unwrap_or_default();
        let Some(line_end) = memchr(b'\n', rest) else { break };
        let (piece, after) = text.split_at(PIECE_BYTES + line_end + 1);
        pieces.push(piece.into());
        text = after;
    }
    if !text.is_empty() {
        pieces.push(text.into());
    }
}

/// Why a delta gives no text of a manifest.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchError {
    #[error(transparent)]
    Delta(#[from] DeltaError),
    /// A line is not after the one before it, or has its path.
    #[error("its lines are not sorted")]
    Order { path: Vec<u8> },
}

/// Checks that a path is after the one of the line before.
fn check_order(last: Option<&[u8]>, path: &[u8]) -> Result<(), PatchError> {
    match last {
        Some(last) if last >= path => Err(PatchError::Order { path: path.to_vec() }),
        _ => Ok(()),
    }
}

/// Checks that lines are sorted by their paths, and that those are after the path of the line
/// before.
pub(super) fn check_lines<'l>(
    mut last: Option<&'l [u8]>,
    lines: &'l [u8],
) -> Result<(), PatchError> {
    let mut start = 0;
    for end in memchr_iter(b'\n', lines) {
        let path = path_of_line(lines.get(start..end).unwrap_or_default());
        check_order(last, path)?;
        last = Some(path);
        start = end + 1;
    }
    Ok(())
}

/// A text being made from another one and a delta. The lines of the other one are sorted, so that
/// those of a hunk have to be compared only with each other and with their neighbours.
struct TextPatch<'t> {
    base: &'t ManifestText,
    /// The piece that is read, where it begins, and how much of it was read.
    piece: usize,
    piece_start: usize,
    read: usize,
    /// Text that is not in a piece yet.
    pending: Vec<u8>,
    pieces: Vec<Arc<[u8]>>,
    /// Whether the new text ends with lines of a hunk.
    ends_with_hunk: bool,
}

impl TextPatch<'_> {
    /// Returns the path of the last line of the new text.
    fn last_path(&self) -> Option<&[u8]> {
        let text = match self.pending.as_slice() {
            [] => self.pieces.last()?,
            pending => pending,
        };
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let start = memrchr(b'\n', text).map_or(0, |end| end + 1);
        text.get(start..).map(path_of_line)
    }

    /// Appends the lines of a hunk.
    fn add(&mut self, lines: &[u8]) -> Result<(), PatchError> {
        if !lines.is_empty() {
            check_lines(self.last_path(), lines)?;
            self.pending.extend_from_slice(lines);
            self.ends_with_hunk = true;
        }
        Ok(())
    }

    /// Checks that the lines of a hunk are before the line of the base that is read next.
    fn check_end_of_hunk(&mut self) -> Result<(), PatchError> {
        let next = self.base.pieces.get(self.piece).and_then(|piece| piece.get(self.read..));
        match next {
            Some(next) if mem::take(&mut self.ends_with_hunk) => {
                check_order(self.last_path(), path_of_line(next))
            }
            _ => Ok(()),
        }
    }

    /// Reads the base up to a position, and passes it on to the new text.
    fn keep_to(&mut self, position: usize) {
        while self.piece_start + self.read < position {
            let Some(piece) = self.base.pieces.get(self.piece) else { return };
            if self.read == 0 && self.piece_start + piece.len() <= position {
                push_pieces(&self.pending, &mut self.pieces);
                self.pending.clear();
                self.pieces.push(piece.clone());
                self.read = piece.len();
            } else {
                let end = piece.len().min(position - self.piece_start);
                self.pending.extend_from_slice(piece.get(self.read..end).unwrap_or_default());
                self.read = end;
            }
            self.end_piece(piece.len());
        }
    }

    /// Reads the base up to a position, and appends it to `removed`.
    fn remove_to(&mut self, position: usize, removed: &mut Vec<u8>) {
        while self.piece_start + self.read < position {
            let Some(piece) = self.base.pieces.get(self.piece) else { return };
            let end = piece.len().min(position - self.piece_start);
            removed.extend_from_slice(piece.get(self.read..end).unwrap_or_default());
            self.read = end;
            self.end_piece(piece.len());
        }
    }

    fn end_piece(&mut self, piece_len: usize) {
        if self.read == piece_len {
            self.piece_start += piece_len;
            self.piece += 1;
            self.read = 0;
        }
    }

    fn finish(mut self) -> ManifestText {
        if self.read > 0 {
            let end = self.piece_start + self.base.pieces.get(self.piece).map_or(0, |p| p.len());
            self.keep_to(end);
        }
        push_pieces(&self.pending, &mut self.pieces);
        self.pieces.extend(self.base.pieces.iter().skip(self.piece).cloned());
        ManifestText::from_pieces(self.pieces)
    }
}

/// A text after a delta, with the lines that were removed and added.
pub(super) struct PatchedText {
    pub(super) text: ManifestText,
    pub(super) removed: Vec<u8>,
    pub(super) added: Vec<u8>,
}

/// Applies a delta. Mercurial's hunks are whole lines; those of others are refused here.
pub(super) fn patch(base: &ManifestText, delta: &[u8]) -> Result<Option<PatchedText>, PatchError> {
    let pieces = Vec::with_capacity(base.pieces.len() + 2);
    let mut patch = TextPatch {
        base,
        piece: 0,
        piece_start: 0,
        read: 0,
        pending: Vec::new(),
        pieces,
        ends_with_hunk: false,
    };
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let is_whole = |lines: &[u8]| lines.last().is_none_or(|last| *last == b'\n');
    for hunk in hunks(delta, base.len) {
        let hunk = hunk?;
        if hunk.start > patch.piece_start + patch.read {
            patch.check_end_of_hunk()?;
            patch.keep_to(hunk.start);
        }
        let before = removed.len();
        patch.remove_to(hunk.end, &mut removed);
        // A hunk within lines would leave a part of one in a piece, or begin in one.
        let starts_line = is_whole(&patch.pending);
        if !starts_line || !is_whole(removed.get(before..).unwrap_or_default()) {
            return Ok(None);
        }
        if !is_whole(hunk.data) {
            return Ok(None);
        }
        added.extend_from_slice(hunk.data);
        patch.add(hunk.data)?;
    }
    patch.check_end_of_hunk()?;
    Ok(Some(PatchedText { text: patch.finish(), removed, added }))
}
