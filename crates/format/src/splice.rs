//! Replaces ranges of an item's text, in the encoding of the item.
//!
//! Separate from [`edit`](crate::edit) because the merge of cards and new UIDs need it as well,
//! without components.

use crate::content_line::content_lines;
use crate::utf16::{self, Endian};
use std::borrow::Cow;
use std::ops::Range;

/// Returns the text of an item without a byte-order mark.
pub(crate) fn decode_text(item: &[u8]) -> Cow<'_, [u8]> {
    match Endian::detect(item) {
        Some(order) => Cow::Owned(utf16::decode(item, order).into_bytes()),
        None => Cow::Borrowed(item.strip_prefix(utf16::BOM).unwrap_or(item)),
    }
}

/// Replaces these ranges of an item's text; all other bytes stay. Returns `None` if the ranges are
/// not in order.
pub(crate) fn splice(item: &[u8], edits: &[(Range<usize>, String)]) -> Option<Vec<u8>> {
    let mut before = 0;
    for (range, _) in edits {
        if range.start < before || range.end < range.start {
            return None;
        }
        before = range.end;
    }
    let mut result = Vec::with_capacity(item.len() + 1024);
    let mut copied = 0;
    let wide = Endian::detect(item).map(|order| (order, utf16::decode(item, order)));
    // The end of the last range, in the text and in UTF-16 units.
    let mut last = (0, 0);
    let mut place = |at: usize| match &wide {
        None => at + item.len() - item.strip_prefix(utf16::BOM).unwrap_or(item).len(),
        Some((order, text)) => {
            let between = text.get(last.0..at).unwrap_or_default();
            last = (at, last.1 + between.encode_utf16().count());
            2 * (last.1 + usize::from(order.has_bom(item)))
        }
    };
    for (range, text) in edits {
        result.extend_from_slice(item.get(copied..place(range.start)).unwrap_or_default());
        match &wide {
            None => result.extend_from_slice(text.as_bytes()),
            Some((order, _)) => result.extend(order.encode(text)),
        }
        copied = place(range.end);
    }
    result.extend_from_slice(item.get(copied..).unwrap_or_default());
    Some(result)
}

/// Returns the line end of an item: the line end of its first line.
pub(crate) fn detect_line_end(text: &[u8]) -> &'static str {
    let first = content_lines(text).next().map(|line| line.raw.to_vec()).unwrap_or_default();
    let ends = ["\r\r\n", "\r\n", "\n", "\r"];
    ends.into_iter().find(|end| first.ends_with(end.as_bytes())).unwrap_or("\n")
}
