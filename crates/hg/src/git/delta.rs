//! Git's deltas: copies from a base and inserted bytes.
//!
//! Mercurial's hunks become such a delta by writing them in another form: what lies between two
//! hunks is a copy. No texts are compared, except at the ends of a hunk, because Mercurial's hunks
//! are whole lines.

use crate::delta::{DeltaError, Hunk};
use crate::varint::{read_number, write_number};

/// The most bytes that one instruction inserts.
const MAX_INSERT: usize = 127;
/// The most bytes that one instruction copies.
const MAX_COPY: usize = 0xff_ffff;
/// Git refuses shorter deltas.
pub(crate) const MIN_DELTA_BYTES: usize = 4;

/// A delta being written: the lengths of base and result, then instructions.
pub(crate) struct GitDeltaWriter<'a> {
    delta: &'a mut Vec<u8>,
}

impl<'a> GitDeltaWriter<'a> {
    /// Begins a delta over the given buffer.
    pub(crate) fn new(delta: &'a mut Vec<u8>, base_len: usize, len: usize) -> GitDeltaWriter<'a> {
        delta.clear();
        write_number(delta, base_len);
        write_number(delta, len);
        GitDeltaWriter { delta }
    }

    /// Copies bytes of the base.
    pub(crate) fn copy(&mut self, mut offset: usize, mut len: usize) {
        while len > 0 {
            let part = len.min(MAX_COPY);
            self.copy_once(offset, part);
            offset += part;
            len -= part;
        }
    }

    fn copy_once(&mut self, offset: usize, len: usize) {
        let at = self.delta.len();
        let mut instruction = 0x80;
        self.delta.push(0);
        for place in 0..4 {
            let byte = (offset >> (8 * place)) as u8;
            if byte != 0 {
                instruction |= 1 << place;
                self.delta.push(byte);
            }
        }
        // A copy without a length is one of 65,536 bytes.
        if len != 0x1_0000 {
            for place in 0..3 {
                let byte = (len >> (8 * place)) as u8;
                if byte != 0 {
                    instruction |= 0x10 << place;
                    self.delta.push(byte);
                }
            }
        }
        if let Some(first) = self.delta.get_mut(at) {
            *first = instruction;
        }
    }

    /// Inserts bytes that the base does not have.
    pub(crate) fn insert(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(MAX_INSERT) {
            self.delta.push(part.len() as u8);
            self.delta.extend_from_slice(part);
        }
    }
}

/// A text of Mercurial, of which git has all but the first bytes: a block of metadata.
#[derive(Clone, Copy)]
pub(crate) struct HgText<'t> {
    pub(crate) text: &'t [u8],
    /// The length of the metadata.
    pub(crate) metadata_len: usize,
}

impl<'t> HgText<'t> {
    /// The content that git has.
    pub(crate) fn content(&self) -> &'t [u8] {
        self.text.get(self.metadata_len..).unwrap_or_default()
    }
}

/// Writes the hunks between two texts of Mercurial as git's delta between their contents, over
/// `delta`. Bytes at the ends of a hunk that it replaces by themselves join the copies around it.
/// Returns false, with a part of the delta, if it would have more than `max_len` bytes.
pub(crate) fn encode_hunks<'h>(
    base: HgText<'_>,
    hunks: impl Iterator<Item = Result<Hunk<'h>, DeltaError>>,
    new: HgText<'_>,
    max_len: usize,
    delta: &mut Vec<u8>,
) -> Result<bool, DeltaError> {
    let writer = GitDeltaWriter::new(delta, base.content().len(), new.content().len());
    let mut clipped = ClippedWriter { writer, base, skipped: new.metadata_len, copy: (0, 0) };
    let mut position = 0;
    for hunk in hunks {
        let hunk = hunk?;
        let ClippedHunk { prefix, inserted, suffix } = ClippedHunk::new(base.text, hunk)?;
        clipped.copy(position, hunk.start + prefix - position);
        if clipped.writer.delta.len() + inserted.len() > max_len + clipped.skipped {
            return Ok(false);
        }
        clipped.insert(inserted);
        position = hunk.end - suffix;
    }
    clipped.copy(position, base.text.len() - position);
    clipped.flush();
    Ok(delta.len() <= max_len)
}

/// Returns the bytes that git's delta of these hunks inserts, at most: without writing it.
pub(crate) fn count_insertions<'h>(
    base: HgText<'_>,
    hunks: impl Iterator<Item = Result<Hunk<'h>, DeltaError>>,
) -> Result<usize, DeltaError> {
    let mut count = 0;
    for hunk in hunks {
        count += ClippedHunk::new(base.text, hunk?)?.inserted.len();
    }
    Ok(count)
}

/// A hunk without the bytes at its ends that it replaces by themselves.
struct ClippedHunk<'h> {
    /// The bytes that stay at the start and at the end.
    prefix: usize,
    suffix: usize,
    inserted: &'h [u8],
}

impl<'h> ClippedHunk<'h> {
    fn new(base: &[u8], hunk: Hunk<'h>) -> Result<ClippedHunk<'h>, DeltaError> {
        let replaced = base.get(hunk.start..hunk.end).ok_or(DeltaError)?;
        let prefix = common_prefix(replaced, hunk.data);
        let rest = (replaced.get(prefix..), hunk.data.get(prefix..));
        let (old, new) = (rest.0.unwrap_or_default(), rest.1.unwrap_or_default());
        let suffix = common_suffix(old, new);
        let inserted = new.get(..new.len() - suffix).unwrap_or_default();
        Ok(ClippedHunk { prefix, suffix, inserted })
    }
}

/// Writes what is left of copies and insertions of whole texts when the metadata of both is taken
/// away. Copies that follow each other become one.
struct ClippedWriter<'d, 't> {
    writer: GitDeltaWriter<'d>,
    base: HgText<'t>,
    /// Bytes of the new text's metadata that are still to come.
    skipped: usize,
    /// A copy that is not written yet: where it begins in the base's text, and its length.
    copy: (usize, usize),
}

impl ClippedWriter<'_, '_> {
    fn copy(&mut self, start: usize, len: usize) {
        let skipped = self.skipped.min(len);
        self.skipped -= skipped;
        let (start, len) = (start + skipped, len - skipped);
        // The base's metadata is nothing that git could copy.
        let metadata = self.base.metadata_len.saturating_sub(start).min(len);
        if metadata > 0 {
            self.flush();
            let bytes = self.base.text.get(start..start + metadata).unwrap_or_default();
            self.writer.insert(bytes);
        }
        let (start, len) = (start + metadata, len - metadata);
        if len == 0 {
            return;
        }
        if self.copy.0 + self.copy.1 == start && self.copy.1 > 0 {
            self.copy.1 += len;
        } else {
            self.flush();
            self.copy = (start, len);
        }
    }

    fn insert(&mut self, bytes: &[u8]) {
        let skipped = self.skipped.min(bytes.len());
        self.skipped -= skipped;
        if bytes.len() > skipped {
            self.flush();
            self.writer.insert(bytes.get(skipped..).unwrap_or_default());
        }
    }

    fn flush(&mut self) {
        let (start, len) = std::mem::take(&mut self.copy);
        self.writer.copy(start.saturating_sub(self.base.metadata_len), len);
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Applies a delta of git; `None` if it does not fit its base.
pub(crate) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (base_len, rest) = read_number(delta)?;
    let (len, mut rest) = read_number(rest)?;
    if base_len != base.len() {
        return None;
    }
    let mut text = Vec::with_capacity(len.min(base.len() + MAX_INSERT * delta.len()));
    while let Some((&instruction, after)) = rest.split_first() {
        rest = after;
        if instruction & 0x80 == 0 {
            let (bytes, after) = rest.split_at_checked(usize::from(instruction))?;
            text.extend_from_slice(bytes);
            rest = after;
            continue;
        }
        let mut number = |bits: u8, count: usize| -> Option<usize> {
            let mut value = 0;
            for place in 0..count {
                if bits >> place & 1 != 0 {
                    let (&byte, after) = rest.split_first()?;
                    value |= usize::from(byte) << (8 * place);
                    rest = after;
                }
            }
            Some(value)
        };
        let offset = number(instruction, 4)?;
        let copied = match number(instruction >> 4, 3)? {
            0 => 0x1_0000,
            copied => copied,
        };
        text.extend_from_slice(base.get(offset..offset.checked_add(copied)?)?);
    }
    (text.len() == len).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::{apply_delta, hunks};
    use proptest::prelude::*;

    proptest! {
        /// Git's delta makes the same content of the base's as Mercurial's does of the texts.
        #[test]
        fn deltas_of_both_forms_give_the_same_text(
            base in proptest::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..300),
            edits in proptest::collection::vec(
                (0..40_usize, 0..40_usize, proptest::collection::vec(any::<u8>(), 0..300)), 0..5),
            metadata in (0..60_usize, 0..60_usize),
        ) {
            let mut hg_delta = Vec::new();
            let mut position = 0;
            for (gap, replaced, data) in &edits {
                let start = (position + gap).min(base.len());
                let end = (start + replaced).min(base.len());
                for number in [start, end, data.len()] {
                    hg_delta.extend((number as u32).to_be_bytes());
                }
                hg_delta.extend(data);
                position = end;
            }
            let mut text = Vec::new();
            apply_delta(&base, &hg_delta, &mut text).unwrap();
            let base = HgText { text: &base, metadata_len: metadata.0.min(base.len()) };
            let new = HgText { text: &text, metadata_len: metadata.1.min(text.len()) };
            let mut delta = Vec::new();
            let encode = |max_len: usize, delta: &mut Vec<u8>| {
                let hunks = hunks(&hg_delta, base.text.len());
                encode_hunks(base, hunks, new, max_len, delta).unwrap()
            };
            prop_assert!(encode(usize::MAX >> 1, &mut delta));
            prop_assert_eq!(apply(base.content(), &delta), Some(new.content().to_vec()));
            let insertions = count_insertions(base, hunks(&hg_delta, base.text.len())).unwrap();
            prop_assert!(insertions <= delta.len() + metadata.1);
            // A limit changes only whether there is a delta.
            let len = delta.len();
            let mut limited = Vec::new();
            prop_assert!(encode(len, &mut limited));
            prop_assert_eq!(&limited, &delta);
            prop_assert!(!encode(len - 1, &mut limited));
            prop_assert!(limited.len() <= len);
        }
    }

    #[test]
    fn long_copies_are_divided() {
        let base = vec![b'x'; MAX_COPY + 0x1_0000 + 5];
        let mut delta = Vec::new();
        let mut writer = GitDeltaWriter::new(&mut delta, base.len(), base.len());
        writer.copy(0, base.len());
        assert_eq!(apply(&base, &delta).map(|text| text.len()), Some(base.len()));
    }
}
