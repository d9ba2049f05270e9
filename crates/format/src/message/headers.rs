//! The header of a message: the fields that are searched and shown.

use crate::message::date::MessageDate;
use crate::message::encoded_words;
use mail_parser::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::fmt;

/// The last semicolons of a Received field behind which its time is looked for.
const MAX_RECEIVED_SEMICOLONS: usize = 3;

/// The header fields of a message that Larder reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageHeaders {
    /// Subject, decoded and on one line.
    pub subject: Option<String>,
    /// From.
    pub from: Vec<MailAddress>,
    /// Sender: who sent the message for those of From.
    pub sender: Vec<MailAddress>,
    /// Reply-To.
    pub reply_to: Vec<MailAddress>,
    /// To.
    pub to: Vec<MailAddress>,
    /// Cc.
    pub cc: Vec<MailAddress>,
    /// Bcc.
    pub bcc: Vec<MailAddress>,
    /// Date; without it, or if it is no date, the newest Received.
    pub date: Option<MessageDate>,
    /// Message-ID without angle brackets.
    pub message_id: Option<String>,
    /// In-Reply-To: the messages that this one answers.
    pub in_reply_to: Vec<String>,
    /// References: the thread above the message, the oldest first.
    pub references: Vec<String>,
    /// List-Id (RFC 2919) without its description, or the name in another header of mailing lists.
    pub list_id: Option<String>,
    /// Keywords that mail programs write: X-Label, X-Keywords and Keywords.
    pub keywords: Vec<String>,
    /// The priority that the sender chose; `None`: none.
    pub priority: Option<MessagePriority>,
}

/// The priority of a message: of Precedence, X-Priority or Importance, whichever is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessagePriority {
    /// Bulk mail, mailing lists, or marked as unimportant.
    Low,
    /// Marked as normal.
    Normal,
    /// Marked as important.
    High,
}

impl MessagePriority {
    /// All priorities and their names.
    pub const ALL: [(MessagePriority, &str); 3] = [
        (MessagePriority::Low, "low"),
        (MessagePriority::Normal, "normal"),
        (MessagePriority::High, "high"),
    ];

    /// Returns the name, as queries write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        MessagePriority::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Parses the value of one of these headers; `None` if it has another meaning.
    fn parse(value: &str) -> Option<MessagePriority> {
        let word: String = value.trim().chars().take_while(char::is_ascii_alphanumeric).collect();
        match word.to_ascii_lowercase().as_str() {
            "high" | "urgent" | "1" | "2" => Some(MessagePriority::High),
            "normal" | "3" => Some(MessagePriority::Normal),
            "low" | "list" | "bulk" | "junk" | "4" | "5" => Some(MessagePriority::Low),
            _ => None,
        }
    }
}

/// An address with the name of its owner (RFC 5322, 3.4: a mailbox).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MailAddress {
    /// The display name.
    pub name: Option<String>,
    /// The address; empty if the header has only a name.
    pub address: String,
}

impl MailAddress {
    /// Returns the name, else the address.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.address)
    }
}

impl fmt::Display for MailAddress {
    /// Writes `Name <address>`, for people: the name is not quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) if self.address.is_empty() => f.write_str(name),
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => f.write_str(&self.address),
        }
    }
}

impl MessageHeaders {
    /// Reads the fields of a parsed message.
    pub(super) fn from_parsed(parsed: &mail_parser::Message<'_>) -> MessageHeaders {
        // The accessors of the parser expect a part.
        if parsed.parts.is_empty() {
            return MessageHeaders::default();
        }
        let ids = |name: HeaderName<'static>, value: &HeaderValue<'_>| -> Vec<String> {
            let ids = value.as_text_list().unwrap_or_default().iter();
            let ids = ids.map(|id| unfold_message_id(parsed, name.clone(), id));
            ids.filter(|id| !id.is_empty()).collect()
        };
        MessageHeaders {
            subject: parsed.subject().map(one_line),
            from: addresses(parsed, HeaderName::From),
            sender: addresses(parsed, HeaderName::Sender),
            reply_to: addresses(parsed, HeaderName::ReplyTo),
            to: addresses(parsed, HeaderName::To),
            cc: addresses(parsed, HeaderName::Cc),
            bcc: addresses(parsed, HeaderName::Bcc),
            date: date(parsed),
            // The first one, as in mu and notmuch.
            message_id: parsed
                .header(HeaderName::MessageId)
                .and_then(|value| ids(HeaderName::MessageId, value).into_iter().next()),
            in_reply_to: ids(HeaderName::InReplyTo, parsed.in_reply_to()),
            references: ids(HeaderName::References, parsed.references()),
            list_id: list_id(parsed),
            keywords: keywords(parsed),
            priority: priority(parsed),
        }
    }
}

/// Returns a Message-ID as people type it or as a header has it, without angle brackets and the
/// white space between them.
#[must_use]
pub fn trim_message_id(id: &str) -> Cow<'_, str> {
    match id.strip_prefix('<').and_then(|id| id.strip_suffix('>')) {
        Some(inner) => without_white_space(inner),
        None => Cow::Borrowed(id),
    }
}

/// Returns the text without the white space in it.
fn without_white_space(text: &str) -> Cow<'_, str> {
    match text.contains(|c: char| c.is_ascii_whitespace()) {
        true => Cow::Owned(text.split_ascii_whitespace().collect()),
        false => Cow::Borrowed(text),
    }
}

/// Returns a Message-ID of a field as notmuch has it: white space between angle brackets, such as
/// the fold of a long line, is not a part of it. Of a text without brackets, line ends are not.
fn unfold_message_id(
    parsed: &mail_parser::Message<'_>,
    name: HeaderName<'static>,
    id: &str,
) -> String {
    let id = id.trim();
    match parsed.header_raw(name).is_some_and(|raw| raw.contains('<')) {
        true => without_white_space(id).into_owned(),
        false => id.replace(['\r', '\n'], ""),
    }
}

/// Returns the text with one space for each white space in it, without that at its ends.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns the addresses of all fields of a name, those of groups (RFC 5322, 3.4) included.
fn addresses(parsed: &mail_parser::Message<'_>, name: HeaderName<'static>) -> Vec<MailAddress> {
    let mut found = Vec::new();
    for address in parsed.header_values(name).filter_map(HeaderValue::as_address) {
        for one in address.iter() {
            let name = one.name().map(one_line).filter(|name| !name.is_empty());
            let address = one.address().map(one_line).unwrap_or_default();
            if name.is_some() || !address.is_empty() {
                found.push(MailAddress { name, address });
            }
        }
    }
    found
}

fn date(parsed: &mail_parser::Message<'_>) -> Option<MessageDate> {
    let own = parsed.header_raw(HeaderName::Date);
    let own = own.and_then(|value| MessageDate::parse(&decode_words(value)));
    // The first Received is that of the last server.
    own.or_else(|| raw_values(parsed, HeaderName::Received).find_map(received_date))
}

/// Returns the time at the end of a Received field (RFC 5322, 3.6.7).
fn received_date(value: &str) -> Option<MessageDate> {
    // A comment behind the time may have a semicolon, too.
    let mut places = value.rmatch_indices(';').take(MAX_RECEIVED_SEMICOLONS);
    places.find_map(|(at, _)| MessageDate::parse(value.get(at + 1..)?))
}

/// Returns the texts of all fields of a name, as they are in the message.
fn raw_values<'m>(
    parsed: &'m mail_parser::Message<'_>,
    name: HeaderName<'static>,
) -> impl Iterator<Item = &'m str> {
    let fields = parsed.parts.first().map(|root| root.headers.as_slice()).unwrap_or_default();
    let ranges = fields.iter().filter(move |field| field.name == name);
    ranges.filter_map(|field| {
        let range = field.offset_start as usize..field.offset_end as usize;
        parsed.raw_message.get(range).and_then(|value| str::from_utf8(value).ok())
    })
}

/// Returns the text of a header with its encoded words (RFC 2047) decoded.
fn decode_words(value: &str) -> Cow<'_, str> {
    if !value.contains("=?") {
        return Cow::Borrowed(value);
    }
    Cow::Owned(one_line(&encoded_words::decode_words(value.as_bytes())))
}

/// Returns the text of a header that the parser has no name for, as it is in the message.
fn other_header<'m>(parsed: &'m mail_parser::Message<'_>, name: &'static str) -> Option<&'m str> {
    // The parser has names of its own for some of them, such as Importance.
    parsed.header_raw(HeaderName::parse(name)?)
}

/// Returns the keywords: X-Label separates them by spaces, the others by commas.
fn keywords(parsed: &mail_parser::Message<'_>) -> Vec<String> {
    let labels = other_header(parsed, "X-Label").unwrap_or_default().split_whitespace();
    let listed = ["X-Keywords", "Keywords"].into_iter().filter_map(|name| match name {
        "Keywords" => parsed.header_raw(HeaderName::Keywords),
        _ => other_header(parsed, name),
    });
    let listed = listed.flat_map(|value| value.split(',').map(str::trim));
    labels.chain(listed).filter(|word| !word.is_empty()).map(ToString::to_string).collect()
}

fn priority(parsed: &mail_parser::Message<'_>) -> Option<MessagePriority> {
    let names = ["Precedence", "X-Priority", "Importance"];
    let value = names.into_iter().find_map(|name| other_header(parsed, name));
    value.and_then(MessagePriority::parse)
}

/// Returns the name of the mailing list: the text between the angle brackets of List-Id, else of
/// the headers that older list servers write.
fn list_id(parsed: &mail_parser::Message<'_>) -> Option<String> {
    let bracketed = |text: &str| {
        let inside = text.rsplit_once('<').and_then(|(_, end)| end.split_once('>'));
        let id = inside.map_or(text, |(inside, _)| inside).trim();
        // Mailing-List: list walrus@example.org; contact walrus-owner@example.org
        let id = id.strip_prefix("list ").unwrap_or(id).split(';').next().unwrap_or(id).trim();
        (!id.is_empty()).then(|| id.to_string())
    };
    let decoded = |text: &str| bracketed(&decode_words(text));
    let raw = |name: HeaderName<'static>| parsed.header_raw(name).and_then(decoded);
    let other = |name: &'static str| other_header(parsed, name).and_then(decoded);
    raw(HeaderName::ListId).or_else(|| other("X-Mailing-List")).or_else(|| other("Mailing-List"))
}
