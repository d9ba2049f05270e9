//! A mail message (RFC 5322, MIME): header fields, and parts with their decoded contents.
//!
//! Parsing never fails: what cannot be decoded is there as it can be read, and is reported. Names
//! and texts are Unicode, whatever character set the message declares; a wrong or missing
//! declaration is replaced by a guess. The crate `mail-parser` parses the syntax; this module turns
//! its tree into one list of parts, and undoes the damage that it does not expect.
//!
//! ```
//! use larder_format::message::Message;
//!
//! let bytes = b"From: Anna <anna@example.org>\nSubject: =?utf-8?q?Caf=C3=A9?=\n\nHi!\n";
//! let message = Message::parse(bytes);
//! assert_eq!(message.headers.subject.as_deref(), Some("Caf\u{e9}"));
//! assert_eq!(message.headers.from[0].to_string(), "Anna <anna@example.org>");
//! assert_eq!(message.body_text(), "Hi!\n");
//! ```

mod damage;
mod date;
mod encoded_words;
mod field_decoding;
mod fields;
mod header_ends;
mod header_fields;
mod headers;
mod identity;
mod parameters;
mod part;
mod part_list;
mod repair;
mod unfold;

pub use crate::message::damage::{MAX_NESTED_MESSAGES, MessageProblem};
pub use crate::message::date::MessageDate;
use crate::message::field_decoding::decode_fields;
pub use crate::message::fields::MESSAGE_FIELDS;
use crate::message::header_ends::complete_headers;
pub use crate::message::header_fields::HeaderFields;
pub use crate::message::headers::{MailAddress, MessageHeaders, MessagePriority, trim_message_id};
pub use crate::message::part::{MessagePart, PartContent, PartRole};
use crate::message::unfold::unfold_parameters;
use mail_parser::{HeaderName, MessageParser};
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// Reads the fields that the parts of this module use; others are read from their source. A Date is
/// read by [`MessageDate`]: the parser takes the next field for a part of one that ends with a word
/// of one or two letters, such as `UT` or `PM`.
static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
        .with_address_headers()
        .with_message_ids()
        .header_text(HeaderName::Subject)
        .default_header_ignore()
});

/// A parsed message. It owns all texts and contents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The header of the message itself.
    pub headers: MessageHeaders,
    /// All fields of the header.
    pub header_fields: HeaderFields,
    /// All parts, each before the parts that it contains, at least one.
    pub parts: Vec<MessagePart>,
    /// The damage, in the order of its places.
    pub problems: Vec<MessageProblem>,
}

impl Message {
    /// Parses the bytes of a file: a message, with or without the `From ` line of an mbox.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Message {
        Message::parse_with(bytes, &mut |_| {})
    }

    /// Parses as [`Message::parse`] does, and passes all bytes that make the message another text
    /// to `identify`, piece by piece: subject, addresses, and the parts. No rule of reading changes
    /// them: two messages have the same pieces with any version of Larder, or with none.
    #[must_use]
    pub fn parse_with(bytes: &[u8], identify: &mut dyn FnMut(&[u8])) -> Message {
        identity::visit_header(bytes, identify);
        let mut problems = Vec::new();
        let source = repair::normalize(bytes, &mut problems);
        let complete = complete_headers(&source);
        let mut source = unfold_parameters(source);
        let mut ignore = |_: &[u8]| {};
        let mut identify: &mut dyn FnMut(&[u8]) = identify;
        if let Some(complete) = complete {
            // The lines that were added are not of the message.
            part_list::identify_parts(&mut parse_source(&source), identify);
            source = unfold_parameters(Cow::Owned(complete.bytes));
            identify = &mut ignore;
        }
        let mut parsed = parse_source(&source);
        let headers = MessageHeaders::from_parsed(&parsed);
        // A field of mail may be empty.
        let is_mail = |field: &mail_parser::Header<'_>| {
            field.name.is_mime_header()
                || matches!(
                    field.name,
                    HeaderName::From | HeaderName::To | HeaderName::Subject | HeaderName::Date
                )
        };
        let root = parsed.parts.first();
        if headers == MessageHeaders::default()
            && !root.is_some_and(|root| root.headers.iter().any(is_mail))
        {
            problems.push(MessageProblem::NoHeader);
        }
        let header_fields = HeaderFields::from_parsed(&parsed);
        let parts = part_list::take_parts(&mut parsed, &mut problems, identify);
        Message { headers, header_fields, parts, problems }
    }

    /// Returns the bytes of the part at this place of the list, without its transfer encoding, and
    /// in its own character set; `None` for a multipart. `bytes` are those of [`Message::parse`].
    #[must_use]
    pub fn part_source(bytes: &[u8], place: usize) -> Option<Vec<u8>> {
        let source = repair::normalize(bytes, &mut Vec::new());
        let complete = complete_headers(&source);
        let source = complete.as_ref().map_or(&*source, |complete| &complete.bytes);
        let unfolded = unfold_parameters(Cow::Borrowed(source));
        let mut parsed = PARSER.parse(unfolded.as_ref())?;
        let original = |range: Range<usize>| match &complete {
            Some(complete) => complete.original(range),
            None => source.get(range).unwrap_or_default().to_vec(),
        };
        part_list::find_part_source(&mut parsed, source.len(), &original, place)
    }

    /// Returns the parts that mail readers show as the message, with their places in the list.
    /// Those of messages in the message are left out.
    pub fn body_parts(&self) -> impl Iterator<Item = (usize, &MessagePart)> {
        let mut inner_depth = usize::MAX;
        self.parts.iter().enumerate().filter(move |(_, part)| {
            if part.depth <= inner_depth {
                let is_message = matches!(part.content, PartContent::Message(_));
                inner_depth = if is_message { part.depth } else { usize::MAX };
            }
            part.depth <= inner_depth && part.role == PartRole::Body
        })
    }

    /// Returns the text of the message: its body parts, one after the other, without markup.
    #[must_use]
    pub fn body_text(&self) -> String {
        let mut body = String::new();
        for text in self.body_parts().filter_map(|(_, part)| part.plain_text()) {
            if !body.is_empty() && !body.ends_with('\n') {
                body.push('\n');
            }
            body.push_str(&text);
        }
        body
    }

    /// Returns the attachments, with their places in the list.
    pub fn attachments(&self) -> impl Iterator<Item = (usize, &MessagePart)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.role == PartRole::Attachment)
    }

    /// Returns whether a part is encrypted by OpenPGP or S/MIME, so that its text is unknown.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.parts.iter().any(|part| {
            part.media_type == "multipart/encrypted"
                || is_pkcs7(part) && !has_signed_data(part)
                || has_armor(part, "-----BEGIN PGP MESSAGE-----")
        })
    }

    /// Returns whether the message or a part of it is signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.parts.iter().any(|part| {
            part.media_type == "multipart/signed"
                || is_pkcs7(part) && has_signed_data(part)
                || has_armor(part, "-----BEGIN PGP SIGNED MESSAGE-----")
        })
    }
}

fn parse_source(source: &[u8]) -> mail_parser::Message<'_> {
    let mut parsed = PARSER.parse(source).unwrap_or_default();
    decode_fields(&mut parsed);
    parsed
}

/// Returns whether a part is of S/MIME (RFC 8551).
fn is_pkcs7(part: &MessagePart) -> bool {
    ["application/pkcs7-mime", "application/x-pkcs7-mime"].contains(&part.media_type.as_str())
}

/// Returns whether S/MIME bytes are signed, and not encrypted: the object identifier of their
/// content says so (RFC 5652, 5.1).
fn has_signed_data(part: &MessagePart) -> bool {
    const SIGNED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
    let start = part.bytes().map(|bytes| bytes.get(..64).unwrap_or(bytes)).unwrap_or_default();
    start.windows(SIGNED_DATA.len()).any(|window| window == SIGNED_DATA)
}

/// Returns whether a line of a text part begins an OpenPGP message (RFC 9580, 6.2).
fn has_armor(part: &MessagePart, armor: &str) -> bool {
    let PartContent::Text(text) = &part.content else { return false };
    let mut places = memmem::find_iter(text.as_bytes(), armor);
    places.any(|at| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'))
}
