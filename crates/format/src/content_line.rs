//! Content lines: the layer that vCard (RFC 6350, 3.2) and iCalendar (RFC 5545, 3.1) share.
//!
//! Splits bytes into logical lines and removes folds. Knows neither properties nor characters: a
//! fold may lie inside a character, so bytes are joined first and decoded later. Nothing here
//! fails. A line without folds is borrowed.
//!
//! Accepted line ends are LF, CR LF and CR CR LF. A lone CR ends a line only before a property
//! name; elsewhere it belongs to the value.

use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// A longer name does not make a lone CR a line end.
pub(crate) const MAX_NAME_BYTES: usize = 100;

/// Without a colon in this many bytes, a line is not searched for soft breaks.
const MAX_HEAD_BYTES: usize = 1000;

/// A logical line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentLine<'a> {
    /// The original bytes, with folds and line end.
    pub raw: &'a [u8],
    /// The number of the first physical line, from 1 in the bytes given to [`content_lines`].
    pub number: u32,
    /// The text without folds, soft breaks of quoted-printable, and line end.
    pub text: Cow<'a, [u8]>,
}

/// Iterates over logical lines; made by [`content_lines`].
#[derive(Debug, Clone)]
pub struct ContentLines<'a> {
    bytes: &'a [u8],
    at: usize,
    number: u32,
}

/// Returns the logical lines of these bytes. Blank lines are counted and skipped.
#[must_use]
pub fn content_lines(bytes: &[u8]) -> ContentLines<'_> {
    ContentLines { bytes, at: 0, number: 0 }
}

impl ContentLines<'_> {
    /// The offset after the last line returned.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The number of the last physical line read.
    pub(crate) fn line_number(&self) -> u32 {
        self.number
    }

    /// Reads a physical line. Returns the range of its content.
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

    /// Returns how the next physical line continues this text, by a fold, a soft break or as
    /// base64. `quoted` caches whether the value is quoted-printable, once known.
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
        if first == b' ' || first == b'\t' {
            return Some(LineContinuation::Fold);
        }
        // Programs write base64 of vCard 2.1 without the blank at the beginning of each line.
        (is_base64_line(rest) && has_base64_value(text)).then_some(LineContinuation::Unfolded)
    }
}

/// The way a physical line continues a logical one.
enum LineContinuation {
    /// The first byte of the next line is white space that belongs to the fold.
    Fold,
    /// The `=` at the end of the line belongs to the soft break.
    SoftBreak,
    /// The next line is more base64.
    Unfolded,
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
                LineContinuation::Unfolded => {}
            }
            joined.extend_from_slice(&self.bytes[start.min(end)..end]);
        }
        Some(ContentLine { raw: &self.bytes[first..self.at], number, text })
    }
}

/// Returns whether the content is only spaces, tabs and stray CRs.
pub(crate) fn is_blank(content: &[u8]) -> bool {
    content.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Returns whether the part before the first colon declares a quoted-printable value, or `None`
/// without a colon. A long text without a colon counts as not quoted-printable, so that no line is
/// searched repeatedly.
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

/// Returns whether the first line consists of base64 alone. A property has a colon.
fn is_base64_line(rest: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let length = rest.iter().take_while(|byte| is_base64(byte)).count();
    length > 0 && matches!(rest.get(length), None | Some(b'\r' | b'\n'))
}

/// Returns whether the parameters before the first colon declare a value in base64.
fn has_base64_value(text: &[u8]) -> bool {
    let start = &text[..text.len().min(MAX_HEAD_BYTES)];
    memchr(b':', start).is_some_and(|colon| {
        let mut params = start[..colon].split(|byte| *byte == b';').skip(1);
        params.any(|param| {
            let encoding = param.rsplit(|byte| *byte == b'=').next().unwrap_or_default();
            let is_named = encoding.len() < param.len();
            encoding.eq_ignore_ascii_case(b"BASE64")
                || is_named
                    && encoding.eq_ignore_ascii_case(b"B")
                    && param[..8.min(param.len())].eq_ignore_ascii_case(b"ENCODING")
        })
    })
}

/// Returns whether a component begins or ends here. A soft break never continues across it.
fn is_marker(rest: &[u8]) -> bool {
    let begins = |marker: &[u8]| {
        rest.get(..marker.len()).is_some_and(|start| start.eq_ignore_ascii_case(marker))
    };
    begins(b"END:") || begins(b"BEGIN:")
}

/// Finds the end of the physical line that contains `from`: the end of its content, and the start
/// of the next line. With `last` false more bytes may follow; if they decide, the error is the
/// offset from which to search again.
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

/// Returns the length of the line end that begins with a CR before these bytes: 0 if it is not a
/// line end, `None` if more bytes are needed.
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
