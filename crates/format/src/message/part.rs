//! A part of a message.

use crate::html_text::html_to_text;
use crate::message::headers::MessageHeaders;
use std::borrow::Cow;

/// A part of a message (RFC 2046).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The number of the parts that contain it.
    pub depth: usize,
    /// The media type, in lower case: `text/plain`.
    pub media_type: String,
    /// The name of the file, decoded.
    pub file_name: Option<String>,
    /// Content-Disposition calls the part an attachment.
    pub is_declared_attachment: bool,
    /// A message in a transfer encoding, which RFC 2046 (5.2.1) forbids: mail readers take it for a
    /// file.
    pub is_encoded_message: bool,
    /// Content-ID without angle brackets, by which HTML shows pictures.
    pub content_id: Option<String>,
    /// How mail readers use the part.
    pub role: PartRole,
    /// The decoded content.
    pub content: PartContent,
}

/// How mail readers use a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartRole {
    /// Text of the message.
    Body,
    /// The same text in another format.
    AlternativeBody,
    /// A file, or a message, beside the text.
    Attachment,
    /// A multipart: it only contains others.
    Container,
}

/// The decoded content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Text of any media type but HTML.
    Text(String),
    /// HTML.
    Html(String),
    /// Any other file.
    Binary(Vec<u8>),
    /// A message: its header. Its parts follow in the list, one level deeper.
    Message(Box<MessageHeaders>),
    /// A multipart. Its parts follow in the list, one level deeper.
    Multipart,
}

impl MessagePart {
    /// Returns the text, without markup; `None` for anything but text.
    #[must_use]
    pub fn plain_text(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            PartContent::Text(text) => Some(Cow::Borrowed(text)),
            PartContent::Html(html) => Some(Cow::Owned(html_to_text(html))),
            _ => None,
        }
    }

    /// Returns whether the part is a report in the form of a message, such as that of a mail server
    /// about a message that it could not deliver (RFC 3464).
    #[must_use]
    pub fn is_report(&self) -> bool {
        matches!(self.content, PartContent::Text(_)) && self.media_type.starts_with("message/")
    }

    /// Returns the decoded bytes, texts as UTF-8; `None` for messages and multiparts.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            PartContent::Text(text) | PartContent::Html(text) => Some(text.as_bytes()),
            PartContent::Binary(bytes) => Some(bytes),
            PartContent::Message(_) | PartContent::Multipart => None,
        }
    }
}
