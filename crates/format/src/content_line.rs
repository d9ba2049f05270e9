//! Content lines: the layer that vCard (RFC 6350, 3.2) and iCalendar (RFC 5545, 3.1) share.
//!
//! It cuts bytes into logical lines and undoes folding. It knows neither properties nor characters:
//! folds may lie inside a character, so bytes are joined first and decoded later. Nothing here
//! fails, and a line that is not folded is borrowed.
//!
//! Line ends are taken as they come: LF, CR LF, CR CR LF. A lone CR ends a line only where a
//! property begins behind it; anywhere else it belongs to the value.

use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// Names longer than this do not count when it is decided whether a lone CR ends a line.
pub(crate) const MAX_NAME_BYTES: usize = 100;

/// Where a colon has to be for soft breaks to be looked for.
const MAX_HEAD_BYTES: usize = 1000;

/// A logical line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentLine<'a> {
    /// The bytes as they came, with folds and line end.
    pub raw: &'a [u8],
    /// The number of its first physical line, counted from 1 in the bytes given to [`lines`].
    pub number: u32,
    /// The text without folds, soft breaks of quoted-printable and line end.
    pub text: Cow<'a, [u8]>,
}

/// The logical lines of some bytes; made by [`lines`].
#[derive(Debug, Clone)]
pub struct ContentLines<'a> {
    bytes: &'a [u8],
    at: usize,
    number: u32,
}

/// The logical lines of these bytes. Blank lines are counted and skipped.
#[must_use]
pub fn content_lines(bytes: &[u8]) -> ContentLines<'_> {
    ContentLines { bytes, at: 0, number: 0 }
}

impl ContentLines<'_> {
    /// The offset behind the last line that was given.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The number of the last physical line that was read.
    pub(crate) fn line_number(&self) -> u32 {
        self.number
    }

    /// Reads a physical line: where its content begins and ends.
    fn read_physical_line(&mut self) -> (usize, usize) {
        let start = self.at;
        let (end, next) = match find_line_end(self.bytes, start, true) {
            Ok(found) => found,
            Err(_) => (self.bytes.len(), self.bytes.len()),
        };
        self.at = next;
        self.number = self.number.saturating_add(1);
        (start, end)
    }

    /// Does the next physical line go on with this text: folded by a blank, or broken softly?
    /// `quoted` remembers whether the text is quoted-printable, once that can be told.
    fn detect_continuation(
        &self,
        text: &[u8],
        quoted: &mut Option<bool>,
    ) -> Option<LineContinuation> {
        let rest = &self.bytes[self.at..];
        let first = *rest.first()?;
        if text.last() == Some(&b'=') {
            *quoted = quoted.or_else(|| is_quoted_printable(text));
            if *quoted == Some(true) && !is_marker(rest) {
                return Some(LineContinuation::SoftBreak);
            }
        }
        (first == b' ' || first == b'\t').then_some(LineContinuation::Fold)
    }
}

/// How a line goes on in the next physical line.
enum LineContinuation {
    /// The first byte there is a blank that belongs to the fold.
    Fold,
    /// The `=` at the end belongs to the break.
    SoftBreak,
}

impl<'a> Iterator for ContentLines<'a> {
    type Item = ContentLine<'a>;

    fn next(&mut self) -> Option<ContentLine<'a>> {
        let (mut start, mut end);
        loop {
            if self.at >= self.bytes.len() {
                return None;
            }
            (start, end) = self.read_physical_line();
            if !is_blank(&self.bytes[start..end]) {
                break;
            }
        }
        let (first, number) = (start, self.number);
        let mut text = Cow::Borrowed(&self.bytes[start..end]);
        let mut quoted = None;
        while let Some(continuation) = self.detect_continuation(&text, &mut quoted) {
            (start, end) = self.read_physical_line();
            let joined = text.to_mut();
            match continuation {
                LineContinuation::Fold => start += 1,
                LineContinuation::SoftBreak => drop(joined.pop()),
            }
            joined.extend_from_slice(&self.bytes[start.min(end)..end]);
        }
        Some(ContentLine { raw: &self.bytes[first..self.at], number, text })
    }
}

/// Nothing but blanks and tabs (and stray CRs).
pub(crate) fn is_blank(content: &[u8]) -> bool {
    content.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Does the part before the first colon say that the value is quoted-printable? `None`: there is no
/// colon yet. Where there is none in many bytes, it is not, so that no line is searched again and
/// again.
fn is_quoted_printable(text: &[u8]) -> Option<bool> {
    const NAME: &[u8] = b"QUOTED-PRINTABLE";
    let start = &text[..text.len().min(MAX_HEAD_BYTES)];
    match memchr(b':', start) {
        Some(colon) => {
            Some(start[..colon].windows(NAME.len()).any(|window| window.eq_ignore_ascii_case(NAME)))
        }
        None => (text.len() >= MAX_HEAD_BYTES).then_some(false),
    }
}

/// Does a component begin or end here? A soft break never reaches across that.
fn is_marker(rest: &[u8]) -> bool {
    let begins = |marker: &[u8]| {
        rest.get(..marker.len()).is_some_and(|start| start.eq_ignore_ascii_case(marker))
    };
    begins(b"END:") || begins(b"BEGIN:")
}

/// Where the physical line around `from` ends: the end of its content, and where the next begins.
/// With `last` false more bytes may follow; where they decide, the offset to look on from is the
/// error.
pub(crate) fn find_line_end(
    bytes: &[u8],
    from: usize,
    last: bool,
) -> Result<(usize, usize), usize> {
    let mut from = from;
    while let Some(found) = memchr2(b'\r', b'\n', &bytes[from..]) {
        let at = from + found;
        if bytes[at] == b'\n' {
            return Ok((at, at + 1));
        }
        match line_end_after_cr(&bytes[at + 1..], last) {
            Some(0) => from = at + 1,
            Some(length) => return Ok((at, at + length)),
            None => return Err(at),
        }
    }
    if last { Ok((bytes.len(), bytes.len())) } else { Err(bytes.len()) }
}

/// The length of the line end that begins with a CR, given what follows it; 0: it is none. `None`:
/// more bytes are needed to tell.
pub(crate) fn line_end_after_cr(rest: &[u8], last: bool) -> Option<usize> {
    match rest {
        [b'\n', ..] => Some(2),
        [b'\r', b'\n', ..] => Some(3),
        [] => last.then_some(1),
        [b'\r'] if !last => None,
        _ => {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let length = rest.iter().take(MAX_NAME_BYTES).take_while(|byte| is_name(byte)).count();
            match rest.get(length) {
                Some(b':' | b';') if length > 0 => Some(1),
                None if !last => None,
                _ => Some(0),
            }
        }
    }
}
