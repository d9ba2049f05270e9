//! From the bytes of a message to the words that it is found by, and the values that lists show.
//!
//! The words of a message are terms: one byte for the field, and the word. All text is in one
//! field, so that a free word is one lookup; its positions tell the part of the message, see
//! [`MessageTermField::Text`]. The header fields and the names of files have terms of their own
//! besides.
//!
//! Separate from `term_extraction`: the terms of contacts have no positions, and are pieces of
//! words. Everything here runs in parser threads, before any lock is taken.

use crate::common_pair::CommonPairs;
use crate::correspondent::{CORRESPONDENT_FIELD, for_each_correspondent, message_addresses};
use crate::fold_digest::FOLD_DIGEST;
use crate::header_term::for_each_header_term;
use crate::message_flags::{MessageFlag, MessageFlags};
use crate::message_summary::MessageSummary;
use crate::tokenizer::{TOKENIZER_VERSION, Tokenizer};
use larder_format::fold::{FOLD_VERSION, fold};
use larder_format::message::{
    MailAddress, Message, MessageHeaders, MessagePart, MessageProblem, PartContent, PartRole,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The version of the rules in this module.
const MESSAGE_RULES_VERSION: u32 = 20;
/// The most words of the body, of the header, and of the other parts that are indexed.
pub const MAX_MESSAGE_WORDS: u32 = 1 << 19;
/// The positions of the words of the body. No phrase is in two of these ranges.
pub const BODY_POSITIONS: Range<u32> = 0..MAX_MESSAGE_WORDS - TEXT_GAP;
/// The positions of the words of the header: subject and addresses.
pub const HEADER_POSITIONS: Range<u32> = MAX_MESSAGE_WORDS..2 * MAX_MESSAGE_WORDS - TEXT_GAP;
/// The positions of the words of attached texts and messages.
pub const EMBEDDED_POSITIONS: Range<u32> = 2 * MAX_MESSAGE_WORDS..3 * MAX_MESSAGE_WORDS;
/// The number of messages above a message that join it to a thread, and that `ref:` finds.
const MAX_LINKED_REFERENCES: usize = 500;
/// The distance between two texts of one field, so that no phrase is in both.
const TEXT_GAP: u32 = 100;
/// The longest term that is a whole value, such as a Message-ID.
const MAX_VALUE_BYTES: usize = 190;

/// The field of a term: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageTermField {
    /// Words of all text: the body at [`BODY_POSITIONS`], subject and addresses at
    /// [`HEADER_POSITIONS`], attached texts and messages at [`EMBEDDED_POSITIONS`].
    Text = b'w',
    /// Words of Bcc.
    Bcc = b'b',
    /// Words of Cc.
    Cc = b'c',
    /// Words of From.
    From = b'f',
    /// Words of Subject.
    Subject = b's',
    /// Words of To.
    To = b't',
    /// Words of the names of attached files; of commits, of their paths.
    FileName = b'n',
    /// The folded name of the mailing list.
    List = b'v',
    /// The media type of each part.
    MediaType = b'y',
    /// The Message-IDs of References and In-Reply-To; of commits, the hashes of the parents.
    Reference = b'r',
    /// Folded keywords of X-Label and Keywords.
    Keyword = b'x',
    /// Names and values of header fields, see `header_term`.
    Header = b'h',
    /// Addresses with their names, see [`CorrespondentName`](crate::CorrespondentName).
    Correspondent = CORRESPONDENT_FIELD,
    /// Commits: words of the committer.
    Committer = b'k',
    /// Commits: the folded paths.
    Path = b'g',
    /// Commits: the hash.
    Hash = b'i',
    /// A marker that each message has.
    Message = b'a',
    /// Pairs of common words in all text, see [`common_pair()`](crate::common_pair()). The empty
    /// word marks a message whose pairs are indexed.
    CommonPair = b'd',
}

/// Replaces `term` by the term of a word or a value in a field. Long values are cut off.
pub fn write_message_term(term: &mut Vec<u8>, field: MessageTermField, word: &str) {
    term.clear();
    term.push(field as u8);
    let end = word.floor_char_boundary(MAX_VALUE_BYTES);
    // The index separates terms by zero bytes.
    term.extend(word.bytes().take(end).filter(|byte| *byte != 0));
}

/// Extracts messages. It has the settings that the result depends on, and buffers.
#[derive(Debug, Default)]
pub struct MessageExtractor {
    /// The folded addresses of the user.
    personal_addresses: Vec<String>,
    tokenizer: Tokenizer,
}

/// A message with everything that is derived from it.
#[derive(Debug)]
pub struct MessageDocument {
    message: Message,
    /// The values that lists show.
    pub summary: MessageSummary,
    /// The Message-ID without angle brackets, if the message has one.
    pub message_id: Option<String>,
    /// The states that come from the contents.
    pub flags: MessageFlags,
    /// The texts of converted attachments, by the place of the part.
    converted_texts: BTreeMap<usize, Arc<str>>,
}

impl MessageExtractor {
    /// Creates an extractor for the user with these addresses.
    #[must_use]
    pub fn new(personal_addresses: &[String]) -> MessageExtractor {
        let personal_addresses =
            personal_addresses.iter().map(|one| fold(one).into_owned()).collect();
        MessageExtractor { personal_addresses, tokenizer: Tokenizer::default() }
    }

    /// Returns the text that identifies the rules and settings of the result.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        let addresses = self.personal_addresses.join(",");
        let folding = format!("{FOLD_VERSION} {}", *FOLD_DIGEST);
        format!("{MESSAGE_RULES_VERSION} {TOKENIZER_VERSION} {folding} {addresses}")
    }

    /// Extracts a message. `fallback_date` is its date if it names none.
    #[must_use]
    pub fn extract(&self, bytes: &[u8], fallback_date: i64) -> MessageDocument {
        let (mut message, text_hash) = parse_text(bytes);
        let flags = self.content_flags(&message);
        let headers = &mut message.headers;
        let references = thread_references(headers);
        let summary = MessageSummary {
            date: headers.date.map_or(fallback_date, |date| date.seconds),
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            text_hash,
            file_hash: hash_copy(bytes, headers.list_id.is_some()),
            subject: headers.subject.clone().unwrap_or_default(),
            list_id: headers.list_id.clone().unwrap_or_default(),
            from: headers.from.clone(),
            to: headers.to.clone(),
            cc: headers.cc.clone(),
            references,
            bcc: headers.bcc.clone(),
            reply_to: headers.reply_to.clone(),
            keywords: headers.keywords.clone(),
        };
        MessageDocument {
            message_id: headers.message_id.clone(),
            message,
            summary,
            flags,
            converted_texts: BTreeMap::new(),
        }
    }

    fn content_flags(&self, message: &Message) -> MessageFlags {
        let headers = &message.headers;
        let is_personal = |one: &MailAddress| {
            self.personal_addresses.iter().any(|own| own.eq_ignore_ascii_case(&one.address))
        };
        let is_calendar = |part: &MessagePart| part.media_type == "text/calendar";
        MessageFlags::default()
            .with_flag(MessageFlag::Signed, message.is_signed())
            .with_flag(MessageFlag::Encrypted, message.is_encrypted())
            .with_flag(MessageFlag::Attachment, has_attachment(message))
            .with_flag(MessageFlag::List, headers.list_id.is_some())
            .with_flag(MessageFlag::Personal, message_addresses(headers).any(is_personal))
            .with_flag(MessageFlag::Calendar, message.parts.iter().any(is_calendar))
            .with_priority(headers.priority)
    }

    /// Calls `visit` with each term of a message, as the byte of its field and the word, and with
    /// its position if it is a word. The positions of one term ascend.
    pub fn for_each_term(
        &mut self,
        document: &MessageDocument,
        visit: impl FnMut(u8, &[u8], Option<u32>),
    ) {
        let mut writer = TermVisitor::new(&mut self.tokenizer, visit);
        writer.visit_value(MessageTermField::Message, "");
        let message = &document.message;
        let mut position = BODY_POSITIONS.start;
        for (_, part) in message.body_parts() {
            if let Some(text) = part.plain_text() {
                position = writer.visit_text(&text, position, BODY_POSITIONS.end);
            }
        }
        writer.visit_headers(document);
        let TermVisitor { term, visit, .. } = &mut writer;
        for_each_correspondent(&message.headers, term, &mut |term| {
            if let Some((field, value)) = term.split_first() {
                visit(*field, value, None);
            }
        });
        writer.visit_embedded(document);
        for part in &message.parts {
            writer.visit_value(MessageTermField::MediaType, &part.media_type);
        }
        let names = message.parts.iter().filter_map(|part| part.file_name.as_deref());
        names.fold(0, |at, name| writer.visit_words(MessageTermField::FileName, name, at));
        writer.finish();
    }
}

impl MessageDocument {
    /// Returns the damage of the message.
    #[must_use]
    pub fn problems(&self) -> &[MessageProblem] {
        &self.message.problems
    }

    /// Gives attachments the texts that `convert` returns, in place of their own, if they have any.
    pub fn convert_attachments(
        &mut self,
        convert: &mut dyn FnMut(&MessagePart) -> Option<Arc<str>>,
    ) {
        for (place, part) in self.message.attachments() {
            if let Some(text) = convert(part) {
                self.converted_texts.insert(place, text);
            }
        }
    }

    /// Returns the text of a part.
    fn part_text(&self, place: usize) -> Option<Cow<'_, str>> {
        match self.converted_texts.get(&place) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.message.parts.get(place).and_then(MessagePart::plain_text),
        }
    }

    /// Returns hashes of the Message-IDs of the thread: its own first, then those that it refers
    /// to, the oldest first.
    #[must_use]
    pub fn thread_ids(&self, uid: &str) -> Vec<i64> {
        let ids = [uid].into_iter().chain(self.summary.references.iter().map(String::as_str));
        ids.map(hash_message_id).collect()
    }
}

/// Returns the hash of a Message-ID, as in [`MessageDocument::thread_ids`].
#[must_use]
pub fn hash_message_id(id: &str) -> i64 {
    xxh3_64(id.as_bytes()).cast_signed()
}

/// Returns whether a part of the message is an attachment, by the rule of mu: pictures, sound and
/// files of programs are, and what is declared as one. Signatures, keys, messages in the message
/// that are in no transfer encoding, and their parts are not.
fn has_attachment(message: &Message) -> bool {
    // The depth of the message, and of the signed or encrypted multipart, that a part is in.
    let (mut message_depth, mut cryptographic_depth) = (usize::MAX, usize::MAX);
    message.parts.iter().any(|part| {
        if part.depth <= message_depth {
            message_depth = usize::MAX;
        }
        if part.depth <= cryptographic_depth {
            cryptographic_depth = usize::MAX;
        }
        let is_signature = cryptographic_depth.checked_add(1) == Some(part.depth);
        let kind = part.media_type.split_once('/').map_or("", |(kind, _)| kind);
        let is_attachment = match &part.content {
            _ if part.depth > message_depth => false,
            PartContent::Message(_) => {
                message_depth = part.depth;
                part.is_encoded_message && part.is_declared_attachment
            }
            PartContent::Multipart => {
                if matches!(&*part.media_type, "multipart/signed" | "multipart/encrypted") {
                    cryptographic_depth = part.depth;
                }
                false
            }
            _ => matches!(kind, "image" | "audio" | "application") || part.is_declared_attachment,
        };
        is_attachment && !is_signature && part.media_type != "application/pgp-keys"
    })
}

/// Returns the messages above a message in its thread, the oldest first, each once. Of very many,
/// the first names the thread, and the last ones are near.
fn thread_references(headers: &mut MessageHeaders) -> Vec<String> {
    let mut references = std::mem::take(&mut headers.references);
    references.extend(headers.in_reply_to.iter().cloned());
    let mut known = HashSet::with_capacity(references.len());
    let is_first: Vec<bool> = references.iter().map(|id| known.insert(id.as_str())).collect();
    let mut is_first = is_first.into_iter();
    references.retain(|_| is_first.next().unwrap_or(true));
    if references.len() > MAX_LINKED_REFERENCES {
        references.drain(1..=references.len() - MAX_LINKED_REFERENCES);
    }
    references
}

/// Parses a message. Returns it with a hash of everything that makes it another message for the
/// person who reads it. `data.db` keeps the hash with labels, so it must never change, whatever
/// rules a message is read by: it is one of the bytes of the file, without transfer encodings.
fn parse_text(bytes: &[u8]) -> (Message, u64) {
    let mut hash = Xxh3::new();
    let message = Message::parse_with(bytes, &mut |piece| {
        hash.update(&(piece.len() as u64).to_le_bytes());
        hash.update(piece);
    });
    (message, hash.digest())
}

/// Returns the distance between the texts of addresses: less than usual if there are so many that
/// they have no room otherwise.
fn text_gap<'a>(addresses: impl Iterator<Item = &'a MailAddress>) -> u32 {
    let texts = addresses.flat_map(|one| one.name.iter().chain([&one.address]));
    // A word has a byte at least, and one behind it.
    let (count, words) =
        texts.fold((0, 0), |(count, words), text| (count + 1, words + text.len().div_ceil(2)));
    let room = (HEADER_POSITIONS.len() / 2).saturating_sub(words);
    u32::try_from(room / count.max(1)).unwrap_or(TEXT_GAP).clamp(1, TEXT_GAP)
}

/// Returns a hash of all bytes of a file, which is less for the copy that came through a mailing
/// list than for the one that was sent directly: the message has the values of the least, and its
/// list is to be found.
fn hash_copy(bytes: &[u8], is_of_list: bool) -> u32 {
    const DIRECT: u32 = 1 << 31;
    // The low half of the hash.
    let hash = (xxh3_64(bytes) & u64::from(u32::MAX)) as u32;
    if is_of_list { hash & !DIRECT } else { hash | DIRECT }
}

/// Passes the terms of one message or commit to a visitor.
pub(crate) struct TermVisitor<'v, V> {
    tokenizer: &'v mut Tokenizer,
    term: Vec<u8>,
    pairs: CommonPairs,
    /// The distance between two texts, [`TEXT_GAP`] unless a header has very many.
    gap: u32,
    visit: V,
}

impl<'v, V: FnMut(u8, &[u8], Option<u32>)> TermVisitor<'v, V> {
    pub(crate) fn new(tokenizer: &'v mut Tokenizer, visit: V) -> TermVisitor<'v, V> {
        let (term, pairs) = (Vec::with_capacity(80), CommonPairs::default());
        TermVisitor { tokenizer, term, pairs, gap: TEXT_GAP, visit }
    }

    /// Visits the common pairs in all text that was visited.
    pub(crate) fn finish(mut self) {
        let (pairs, visit) = (&self.pairs, &mut self.visit);
        let mut visit =
            |pair: &str| visit(MessageTermField::CommonPair as u8, pair.as_bytes(), None);
        visit("");
        pairs.for_each(visit);
    }

    /// Visits a whole value.
    pub(crate) fn visit_value(&mut self, field: MessageTermField, value: &str) {
        write_message_term(&mut self.term, field, value);
        (self.visit)(field as u8, self.term.get(1..).unwrap_or_default(), None);
    }

    /// Visits the words of a text from a position on. Returns the first position of the next text.
    pub(crate) fn visit_words(&mut self, field: MessageTermField, text: &str, first: u32) -> u32 {
        let visit = &mut self.visit;
        if first >= MAX_MESSAGE_WORDS {
            return first;
        }
        let end = self.tokenizer.for_each_word(text, first, |word, position| {
            visit(field as u8, word.as_bytes(), Some(position));
        });
        end.saturating_add(self.gap)
    }

    /// Visits the words of a text before `limit`. Returns the first position of the next text.
    pub(crate) fn visit_text(&mut self, text: &str, first: u32, limit: u32) -> u32 {
        if first >= limit {
            return first;
        }
        let (pairs, visit) = (&mut self.pairs, &mut self.visit);
        let end = self.tokenizer.for_each_word(text, first, |word, position| {
            if position < limit {
                pairs.add(word.as_bytes(), position);
                visit(MessageTermField::Text as u8, word.as_bytes(), Some(position));
            }
        });
        end.saturating_add(self.gap)
    }

    /// Visits a header value twice: in its own field, and among all text.
    pub(crate) fn visit_header(
        &mut self,
        field: MessageTermField,
        text: &str,
        at: &mut (u32, u32),
    ) {
        let (field_position, text_position) = *at;
        let field_end = self.visit_words(field, text, field_position);
        *at = (field_end, self.visit_text(text, text_position, HEADER_POSITIONS.end));
    }

    fn visit_headers(&mut self, document: &MessageDocument) {
        let headers = &document.message.headers;
        let mut text_position = HEADER_POSITIONS.start;
        let fields = [
            (MessageTermField::From, &headers.from),
            (MessageTermField::To, &headers.to),
            (MessageTermField::Cc, &headers.cc),
            (MessageTermField::Bcc, &headers.bcc),
        ];
        if let Some(subject) = &headers.subject {
            let mut at = (0, text_position);
            self.visit_header(MessageTermField::Subject, subject, &mut at);
            text_position = at.1;
        }
        self.gap = text_gap(fields.iter().flat_map(|(_, addresses)| addresses.iter()));
        for (field, addresses) in fields {
            let mut at = (0, text_position);
            for one in addresses {
                if let Some(name) = &one.name {
                    self.visit_header(field, name, &mut at);
                }
                self.visit_header(field, &one.address, &mut at);
            }
            text_position = at.1;
        }
        self.gap = TEXT_GAP;
        if let Some(list) = &headers.list_id {
            self.visit_value(MessageTermField::List, &fold(list));
        }
        for id in &document.summary.references {
            self.visit_value(MessageTermField::Reference, id);
        }
        for keyword in &headers.keywords {
            self.visit_value(MessageTermField::Keyword, &fold(keyword));
        }
        for_each_header_term(&document.message.header_fields, |text| {
            self.visit_value(MessageTermField::Header, text);
        });
    }

    /// Visits attached texts, and messages in the message.
    fn visit_embedded(&mut self, document: &MessageDocument) {
        let message = &document.message;
        // Ascending.
        let body: Vec<usize> = message.body_parts().map(|(place, _)| place).collect();
        let mut position = EMBEDDED_POSITIONS.start;
        let mut is_inner = false;
        for (place, part) in message.parts.iter().enumerate() {
            if let PartContent::Message(headers) = &part.content {
                is_inner = true;
                let people = headers.from.iter().chain(&headers.to).map(ToString::to_string);
                for text in headers.subject.iter().cloned().chain(people) {
                    position = self.visit_text(&text, position, EMBEDDED_POSITIONS.end);
                }
                continue;
            }
            let is_attached = part.role == PartRole::Attachment;
            let is_inner_body = is_inner && part.role == PartRole::Body;
            if body.binary_search(&place).is_err()
                && (is_attached || is_inner_body)
                && let Some(text) = document.part_text(place)
            {
                position = self.visit_text(&text, position, EMBEDDED_POSITIONS.end);
            }
        }
    }
}
