//! The bytes that tell whether two messages with one Message-ID are the same text.
//!
//! `data.db` keeps a hash of them with the labels of a message, so nothing here may ever change:
//! with other bytes for a message, its labels would belong to a text that is gone. Therefore these
//! are the bytes of the file, before any character set, encoded word or address is decoded. Only
//! what servers change on the way is undone: folds of header fields, line ends, and the transfer
//! encodings base64 and quoted-printable.
//!
//! Separate from `headers` and `part_list`, whose rules of reading become better.

use crate::decoding::{decode_base64, decode_quoted_printable};
use crate::message::repair::{find_header_end, normalize_line_ends, skip_mbox_line};
use mail_parser::{Encoding, PartType};
use std::borrow::Cow;

/// Passes the values of Subject, each on one line, and the addresses of From, To and Cc to `visit`.
/// Must never change.
pub(super) fn visit_header(bytes: &[u8], visit: &mut dyn FnMut(&[u8])) {
    let bytes = normalize_line_ends(skip_mbox_line(bytes));
    let fields = split_fields(bytes.get(..find_header_end(&bytes)).unwrap_or_default());
    let values = |name: &'static [u8]| {
        fields.iter().filter(move |field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1)
    };
    for value in values(b"subject") {
        let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        visit(&words.collect::<Vec<_>>().join(&b' '));
    }
    for name in [b"from" as &[u8], b"to", b"cc"] {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"<>()[],;:\"".contains(byte);
        let words = values(name).flat_map(|value| value.split(is_end));
        words.filter(|word| word.contains(&b'@')).for_each(&mut *visit);
    }
}

/// Returns the names and values of the fields of a header, these with their folds.
fn split_fields(header: &[u8]) -> Vec<(&[u8], &[u8])> {
    let is_fold = |at: usize| matches!(header.get(at), Some(b' ' | b'\t'));
    let ends = memchr::memchr_iter(b'\n', header).map(|at| at + 1).chain([header.len()]);
    let mut start = 0;
    let mut fields = Vec::new();
    for end in ends.filter(|end| !is_fold(*end)) {
        let field = header.get(start..end).unwrap_or_default();
        start = end;
        let Some(colon) = memchr::memchr(b':', field) else { continue };
        let (name, value) = field.split_at(colon);
        fields.push((name.trim_ascii(), value.get(1..).unwrap_or_default()));
    }
    fields
}

/// Returns the bytes of a part without its transfer encoding, and those of lines without CR; `None`
/// for messages and multiparts, whose parts follow. Must never change.
pub(super) fn part_bytes<'m>(
    message: &'m mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    body: &'m PartType<'_>,
) -> Option<Cow<'m, [u8]>> {
    let range = part.offset_body as usize..part.offset_end as usize;
    let source = message.raw_message.get(range).unwrap_or_default();
    let bytes = match body {
        PartType::Multipart(_) | PartType::Message(_) => return None,
        // A large attachment is not decoded twice.
        PartType::Binary(bytes) | PartType::InlineBinary(bytes)
            if part.encoding != Encoding::None && !part.is_encoding_problem =>
        {
            return Some(Cow::Borrowed(bytes));
        }
        _ => match part.encoding {
            Encoding::None => Cow::Borrowed(source),
            Encoding::QuotedPrintable => decode_quoted_printable(source),
            Encoding::Base64 => decode_base64(source).map_or(Cow::Borrowed(source), Cow::Owned),
        },
    };
    Some(match memchr::memchr(b'\r', &bytes) {
        Some(_) => Cow::Owned(bytes.iter().copied().filter(|byte| *byte != b'\r').collect()),
        None => bytes,
    })
}
