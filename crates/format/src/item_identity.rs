//! The identity of an item: its UID, a UID derived from its bytes if it has none, and equality of
//! items.
//!
//! It is the same for cards and for calendar components.

use crate::contact::Contact;
use crate::content_line::content_lines;
use crate::edit::{decode_text, splice};
use crate::property::Property;
use crate::utf16::Endian;
use crate::writer::escape_text;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Returns a UID for an item without one, derived from its bytes without trailing line ends.
#[must_use]
pub fn derive_uid(bytes: &[u8]) -> String {
    let mut uid = String::from("larder-");
    for byte in &Sha256::digest(trim_line_ends(bytes))[..16] {
        let _infallible = write!(uid, "{byte:02x}");
    }
    uid
}

/// Returns whether two items have the same bytes, except for trailing line ends.
#[must_use]
pub fn is_same_item(a: &[u8], b: &[u8]) -> bool {
    trim_line_ends(a) == trim_line_ends(b)
}

/// Returns the item without trailing line ends.
fn trim_line_ends(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    match Endian::detect(bytes) {
        None => {
            while let [before @ .., b'\r' | b'\n'] = rest {
                rest = before;
            }
        }
        Some(order) => {
            while let Some((before, unit)) = rest.split_last_chunk::<2>() {
                if !rest.len().is_multiple_of(2) || !matches!(order.decode_unit(*unit), 0x0a | 0x0d)
                {
                    break;
                }
                rest = before;
            }
        }
    }
    rest
}

/// Returns the item with this UID on a line of its own, after the VERSION of a card or otherwise
/// after BEGIN, with the line end used there. All other bytes and the encoding stay.
#[must_use]
pub fn insert_uid(bytes: &[u8], uid: &str) -> Vec<u8> {
    let (at, line) = uid_insertion(&decode_text(bytes), uid);
    splice(bytes, &[(at..at, line)]).unwrap_or_else(|| bytes.to_vec())
}

/// Returns the position of the UID's line, and the line.
fn uid_insertion(item: &[u8], uid: &str) -> (usize, String) {
    let uid = escape_text(&uid.trim().replace(['\r', '\n'], " "));
    let number = Contact::parse(item)
        .properties()
        .iter()
        .find(|p| p.has_name("VERSION"))
        .map(Property::line_number);
    let mut lines = content_lines(item);
    let mut found = None;
    while let Some(line) = lines.next() {
        found = Some((lines.offset(), line.raw));
        if number.is_none_or(|number| line.number == number) {
            break;
        }
    }
    let Some((at, raw)) = found else {
        return (0, format!("UID:{uid}\n"));
    };
    let content =
        raw.len() - raw.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    match std::str::from_utf8(&raw[content..]).unwrap_or_default() {
        "" => (at, format!("\nUID:{uid}")),
        line_end => (at, format!("UID:{uid}{line_end}")),
    }
}
