//! Pictures and keys in words: `(photo, PNG 96x96, 27 KB)`, for output that people read.
//!
//! Separate from `field_values`, because programs get the bytes.

use crate::content_line::{ContentLine, content_lines};
use crate::decoding::decode_base64;
use crate::property::Property;

/// Properties whose value may be binary.
const BINARY_PROPERTIES: &[&str] = &["PHOTO", "LOGO", "SOUND", "KEY", "ATTACH"];
/// The first bytes of image formats.
const IMAGE_MARKS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"RIFF", "WebP"),
    (b"BM", "BMP"),
];

/// Returns a description of the binary value of a property. `None` if it has none: the value is
/// text or an address.
#[must_use]
pub fn describe_binary(property: &Property<'_>) -> Option<String> {
    let name = BINARY_PROPERTIES.iter().find(|name| property.has_name(name))?;
    let bytes = decode_value(property)?;
    let mut parts = vec![name.to_lowercase()];
    let format = IMAGE_MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
    match (format, image_size(&bytes)) {
        (Some((_, format)), Some((width, height))) => {
            parts.push(format!("{format} {width}x{height}"));
        }
        (Some((_, format)), None) => parts.push((*format).to_string()),
        (None, _) => {}
    }
    parts.push(match bytes.len() {
        length @ ..1000 => format!("{length} bytes"),
        length @ ..1_000_000 => format!("{} KB", (length + 500) / 1000),
        length => format!("{:.1} MB", length as f64 / 1e6),
    });
    Some(format!("({})", parts.join(", ")))
}

/// Returns the bytes of a value in base64 or in a `data:` URI.
fn decode_value(property: &Property<'_>) -> Option<Vec<u8>> {
    let value = property.value().trim_ascii();
    if value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:")) {
        let comma = value.iter().position(|byte| *byte == b',')?;
        let (head, data) = value.split_at(comma);
        return head
            .to_ascii_lowercase()
            .ends_with(b";base64")
            .then(|| decode_base64(&data[1..]))?;
    }
    let encoding = property.param("ENCODING")?;
    let is_base64 = ["B", "BASE64"].iter().any(|name| encoding.eq_ignore_ascii_case(name));
    is_base64.then(|| decode_base64(value))?
}

/// Returns the width and the height of a PNG, GIF or JPEG picture.
fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
    let little = |at: usize| Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    if bytes.starts_with(b"\x89PNG") {
        let long = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        return Some((long(16)?, long(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if !bytes.starts_with(b"\xff\xd8") {
        return None;
    }
    // A JPEG file is a sequence of segments; a start-of-frame segment has the size.
    let mut at = 2;
    loop {
        let (mark, kind) = (*bytes.get(at)?, *bytes.get(at + 1)?);
        if mark != 0xff {
            return None;
        }
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(at + 7)?, big(at + 5)?));
        }
        at += 2 + big(at + 2)? as usize;
    }
}

/// A line of an item: its bytes, and the text to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayLine<'a> {
    /// The bytes, with folds and line ends.
    pub raw: &'a [u8],
    /// The name and a description in place of a binary value.
    pub description: Option<String>,
}

/// Returns the lines of an item; a binary value is one line with its description.
pub fn display_lines(item: &[u8]) -> impl Iterator<Item = DisplayLine<'_>> {
    content_lines(item).map(|line: ContentLine<'_>| {
        let raw = line.raw;
        let property = Property::parse(line);
        let description =
            describe_binary(&property).map(|text| format!("{}:{text}", property.name()));
        DisplayLine { raw, description }
    })
}

/// Returns the item with a description in place of each binary value.
#[must_use]
pub fn describe_binaries(item: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(item.len().min(1 << 16));
    for line in display_lines(item) {
        match line.description {
            Some(description) => {
                text.extend_from_slice(description.as_bytes());
                text.extend_from_slice(b"\r\n");
            }
            None => text.extend_from_slice(line.raw),
        }
    }
    text
}
