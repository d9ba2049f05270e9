//! The revision of a calendar component: UID, RECURRENCE-ID and SEQUENCE, read from its lines
//! without parsing it.
//!
//! Separate from `component` because an import reads them of every component of a file, before it
//! parses any.

use crate::utf16::Endian;
use memchr::memchr;

/// The texts that identify a component, as they are written, and its revision number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemRevision<'a> {
    /// The value of UID.
    pub uid: &'a [u8],
    /// The value of RECURRENCE-ID; empty without one.
    pub recurrence_id: &'a [u8],
    /// SEQUENCE; 0 without one.
    pub sequence: u64,
}

impl<'a> ItemRevision<'a> {
    /// Reads the revision of a component; `None` if it has no UID, or is in UTF-16.
    #[must_use]
    pub fn read(component: &'a [u8]) -> Option<ItemRevision<'a>> {
        if Endian::detect(component).is_some() {
            return None;
        }
        let (mut uid, mut recurrence_id, mut sequence) = (None, None, None);
        let mut rest = component;
        let mut depth = 0_usize;
        while let Some(first) = rest.first() {
            // Continuation lines begin with a space or a tab, so they match nothing.
            let line_start = rest;
            rest = memchr(b'\n', rest).map_or(&[], |end| &rest[end + 1..]);
            let value =
                |name: &[u8]| property_value(&line_start[..logical_line_length(line_start)], name);
            match first.to_ascii_uppercase() {
                b'B' if value(b"BEGIN").is_some() => depth += 1,
                b'E' if value(b"END").is_some() => depth = depth.saturating_sub(1),
                b'U' if depth == 1 => uid = uid.or_else(|| value(b"UID")),
                b'R' if depth == 1 => {
                    recurrence_id = recurrence_id.or_else(|| value(b"RECURRENCE-ID"));
                }
                b'S' if depth == 1 => sequence = sequence.or_else(|| value(b"SEQUENCE")),
                _ => {}
            }
        }
        let number = std::str::from_utf8(sequence.unwrap_or_default()).unwrap_or_default();
        Some(ItemRevision {
            uid: uid.filter(|uid| !uid.is_empty())?,
            recurrence_id: recurrence_id.unwrap_or_default(),
            sequence: number.parse().unwrap_or(0),
        })
    }
}

/// Returns the length of the first line with the lines that continue it, and its end.
fn logical_line_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    loop {
        length += match memchr(b'\n', &bytes[length..]) {
            Some(end) => end + 1,
            None => return bytes.len(),
        };
        if !matches!(bytes.get(length), Some(b' ' | b'\t')) {
            return length;
        }
    }
}

/// Returns the value of a line with this property, without parameters.
fn property_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let is_property = start.eq_ignore_ascii_case(name) && matches!(rest.first(), Some(b':' | b';'));
    let colon = memchr(b':', rest).filter(|_| is_property)?;
    Some(rest[colon + 1..].trim_ascii())
}
