//! Mercurial's deltas: hunks, each of which replaces a range of the base text.

/// A hunk: the bytes from `start` to `end` of the base are replaced by `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hunk<'a> {
    /// The first byte of the base that is replaced.
    pub(crate) start: usize,
    /// The end of the replaced bytes.
    pub(crate) end: usize,
    /// The bytes that take their place.
    pub(crate) data: &'a [u8],
}

/// A delta that does not fit its base, or is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a delta does not fit its base")]
pub struct DeltaError;

/// Returns the hunks of a delta. Each is checked to be complete, to begin after the one before, and
/// to end within a base of `base_len` bytes; after an error there are no more.
pub(crate) fn hunks(delta: &[u8], base_len: usize) -> Hunks<'_> {
    Hunks { rest: delta, position: 0, base_len }
}

/// The iterator of [`hunks`].
pub(crate) struct Hunks<'a> {
    rest: &'a [u8],
    position: usize,
    base_len: usize,
}

impl<'a> Hunks<'a> {
    fn parse(&mut self) -> Option<Hunk<'a>> {
        let (start, rest) = split_length(self.rest)?;
        let (end, rest) = split_length(rest)?;
        let (len, rest) = split_length(rest)?;
        let (data, rest) = rest.split_at_checked(len)?;
        if start < self.position || end < start || end > self.base_len {
            return None;
        }
        self.rest = rest;
        self.position = end;
        Some(Hunk { start, end, data })
    }
}

impl<'a> Iterator for Hunks<'a> {
    type Item = Result<Hunk<'a>, DeltaError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let hunk = self.parse().ok_or(DeltaError);
        if hunk.is_err() {
            self.rest = &[];
        }
        Some(hunk)
    }
}

/// Splits off a big-endian number of 32 bits.
fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (value, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*value) as usize, rest))
}

/// Writes the text that a delta makes of its base over `text`.
pub fn apply_delta(base: &[u8], delta: &[u8], text: &mut Vec<u8>) -> Result<(), DeltaError> {
    text.clear();
    text.reserve(base.len().saturating_add(delta.len()));
    let mut position = 0;
    for hunk in hunks(delta, base.len()) {
        let hunk = hunk?;
        text.extend_from_slice(base.get(position..hunk.start).ok_or(DeltaError)?);
        text.extend_from_slice(hunk.data);
        position = hunk.end;
    }
    text.extend_from_slice(base.get(position..).ok_or(DeltaError)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(hunks: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut delta = Vec::new();
        for (start, end, data) in hunks {
            delta.extend(start.to_be_bytes());
            delta.extend(end.to_be_bytes());
            delta.extend((data.len() as u32).to_be_bytes());
            delta.extend_from_slice(data);
        }
        delta
    }

    #[test]
    fn hunks_replace_ranges() {
        let delta = encode(&[(0, 1, b"H"), (5, 5, b","), (11, 12, b"")]);
        let mut text = Vec::new();
        apply_delta(b"hello world!", &delta, &mut text).expect("a delta");
        assert_eq!(text, b"Hello, world");
    }

    #[test]
    fn deltas_that_do_not_fit_are_refused() {
        let mut text = Vec::new();
        let damaged: [&[(u32, u32, &[u8])]; 4] =
            [&[(0, 5, b"")], &[(3, 2, b"")], &[(2, 3, b"x"), (1, 2, b"y")], &[(5, 5, b"")]];
        for hunks in damaged {
            assert_eq!(apply_delta(b"four", &encode(hunks), &mut text), Err(DeltaError));
        }
        let whole = encode(&[(0, 4, b"text")]);
        for end in 1..whole.len() {
            assert_eq!(apply_delta(b"four", &whole[..end], &mut text), Err(DeltaError));
        }
    }
}
