//! The parts of a parsed message as one list, with their texts decoded again where the declared
//! character set is wrong.

use crate::charset::is_other_charset;
use crate::decoding::{decode_base64, decode_charset, decode_quoted_printable, decode_uuencode};
use crate::message::damage::{MAX_NESTED_MESSAGES, MessageProblem};
use crate::message::headers::MessageHeaders;
use crate::message::identity::part_bytes;
use crate::message::parameters::decode_parameter;
use crate::message::part::{MessagePart, PartContent, PartRole};
use crate::message::repair::guess_text;
use mail_parser::parsers::MessageStream;
use mail_parser::{ContentType, Encoding, HeaderName, MimeHeaders as _, PartType};
use memchr::{memchr, memmem};
use std::borrow::Cow;
use std::mem;
use std::ops::Range;

/// The least number of bytes in lines of base64 with other text behind them.
const MIN_BASE64_BYTES: usize = 12;

/// Returns all parts, each before the parts that it contains. Their contents are taken from the
/// message, because copies of large attachments take time. The bytes that tell texts apart are
/// passed to `identify`.
pub(super) fn take_parts(
    message: &mut mail_parser::Message<'_>,
    problems: &mut Vec<MessageProblem>,
    identify: &mut dyn FnMut(&[u8]),
) -> Vec<MessagePart> {
    let mut list = PartList { parts: Vec::new(), problems };
    for_each_part(message, 0, &mut |message, part, body, place| {
        part_bytes(message, part, body).iter().for_each(|bytes| identify(bytes));
        list.add_part(message, part, body, place);
    });
    let is_message = |part: &MessagePart| matches!(part.content, PartContent::Message(_));
    let inner = list.parts.iter().zip(1..).filter(|(part, _)| is_message(part));
    let inner: Vec<(usize, usize)> = inner.map(|(part, next)| (next, part.depth + 1)).collect();
    list.choose_body(0, 0);
    inner.into_iter().for_each(|(first, depth)| list.choose_body(first, depth));
    list.parts
}

/// Passes the bytes that tell texts apart to `identify`, as [`take_parts`] does.
pub(super) fn identify_parts(
    message: &mut mail_parser::Message<'_>,
    identify: &mut dyn FnMut(&[u8]),
) {
    for_each_part(message, 0, &mut |message, part, body, _| {
        part_bytes(message, part, body).iter().for_each(|bytes| identify(bytes));
    });
}

/// Returns the bytes of the part at this place of the list, without its transfer encoding; `None`
/// for a multipart. `original` returns a range of the message, whose length is `length`, as it was
/// before fields were unfolded and lines were added.
pub(super) fn find_part_source(
    message: &mut mail_parser::Message<'_>,
    length: usize,
    original: &dyn Fn(Range<usize>) -> Vec<u8>,
    place: usize,
) -> Option<Vec<u8>> {
    let (mut at, mut found) = (0, None);
    for_each_part(message, 0, &mut |message, part, body, _| {
        if at == place {
            complete_base64(message, part, body);
            // The bytes of a message in a part that is encoded are not of the source.
            let is_own = message.raw_message.len() == length;
            let source = match is_own {
                true => original(part.offset_body as usize..part.offset_end as usize),
                false => part_source(message, part).to_vec(),
            };
            let is_plain = declared_encoding(part) == Encoding::None && !is_uuencoded(part);
            found = match body {
                PartType::Multipart(_) => None,
                _ if is_own && is_plain => Some(source),
                PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
                    Some(mem::take(bytes).into_owned())
                }
                PartType::Message(inner) if part.encoding != Encoding::None => {
                    Some(inner.raw_message.to_vec())
                }
                PartType::Message(_) if is_own => Some(source),
                _ => Some(decode_bytes(part, &source).into_owned()),
            };
        }
        at += 1;
    });
    found
}

/// Returns the bytes of a part without its transfer encoding, or as they are if they are not in it.
fn decode_source<'m>(
    message: &'m mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
) -> Cow<'m, [u8]> {
    decode_bytes(part, part_source(message, part))
}

fn decode_bytes<'b>(part: &mail_parser::MessagePart<'_>, source: &'b [u8]) -> Cow<'b, [u8]> {
    match declared_encoding(part) {
        Encoding::None if is_uuencoded(part) => {
            decode_uuencode(source).map_or(Cow::Borrowed(source), Cow::Owned)
        }
        Encoding::None => Cow::Borrowed(source),
        Encoding::QuotedPrintable => decode_quoted_printable(source),
        Encoding::Base64 => decode_base64(source).map_or(Cow::Borrowed(source), Cow::Owned),
    }
}

/// Decodes the body of a part again whose base64 has no padding: the parser leaves out the bytes of
/// its last digits.
fn complete_base64(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    body: &mut PartType<'_>,
) {
    let is_base64 = part.encoding == Encoding::Base64 && !part.is_encoding_problem;
    let source = part_source(message, part).trim_ascii_end();
    if !is_base64 || source.ends_with(b"=") {
        return;
    }
    let digits = source.len() - source.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    if digits % 4 < 2 {
        return;
    }
    let Some(bytes) = decode_base64(source) else { return };
    match body {
        PartType::Text(text) | PartType::Html(text) => {
            *text = Cow::Owned(declared_text(part, &bytes).into_owned());
        }
        PartType::Binary(body) | PartType::InlineBinary(body) => *body = Cow::Owned(bytes),
        PartType::Message(_) | PartType::Multipart(_) => {}
    }
}

/// Returns the transfer encoding of a part. The parser forgets that of a damaged one.
fn declared_encoding(part: &mail_parser::MessagePart<'_>) -> Encoding {
    let name = part.content_transfer_encoding().map(str::trim).unwrap_or_default();
    match part.encoding {
        Encoding::None if name.eq_ignore_ascii_case("base64") => Encoding::Base64,
        Encoding::None if name.eq_ignore_ascii_case("quoted-printable") => {
            Encoding::QuotedPrintable
        }
        encoding => encoding,
    }
}

/// Returns whether the message ends with its header: there is no body that could be damaged.
fn is_header_alone(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    place: PartPlace,
) -> bool {
    place.id == 0 && place.depth == 0 && part_source(message, part).is_empty()
}

/// Returns whether the message ends within a part: the parser took its body up to there.
fn is_incomplete(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    place: PartPlace,
) -> bool {
    let is_whole_message = place.id == 0 && place.depth == 0;
    part.is_encoding_problem
        && !is_whole_message
        && part.offset_end as usize >= message.raw_message.len()
}

/// Returns whether a part declares a transfer encoding that the parser does not know: uuencode,
/// under the names that mail programs of the time before MIME gave it.
fn is_uuencoded(part: &mail_parser::MessagePart<'_>) -> bool {
    let encoding = part.content_transfer_encoding().map(str::trim).unwrap_or_default();
    ["x-uuencode", "x-uue", "uuencode"].iter().any(|name| encoding.eq_ignore_ascii_case(name))
}

/// Decodes the body of a part in uuencode. Returns false for one that is malformed, which stays as
/// it is.
fn decode_uuencoded_body(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    body: &mut PartType<'_>,
) -> bool {
    if matches!(body, PartType::Multipart(_)) {
        return true;
    }
    let Some(bytes) = decode_uuencode(part_source(message, part)) else { return false };
    match body {
        PartType::Text(text) | PartType::Html(text) => {
            *text = Cow::Owned(declared_text(part, &bytes).into_owned());
        }
        // A message in this encoding is a file.
        _ => *body = PartType::Binary(Cow::Owned(bytes)),
    }
    true
}

/// Returns the bytes of the body of a part, in its transfer encoding.
fn part_source<'m>(
    message: &'m mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
) -> &'m [u8] {
    let range = part.offset_body as usize..part.offset_end as usize;
    message.raw_message.get(range).unwrap_or_default()
}

/// Decodes the lines of base64 that a body begins with, up to their padding, and returns the other
/// lines as they are: list servers add footers to bodies without regard to their encoding. `None`:
/// no line is base64.
fn decode_base64_lines(source: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut end, mut has_content) = (0, false);
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let is_empty = line.trim_ascii().is_empty();
        let is_behind = is_empty && has_content;
        if is_behind || line.contains(&b' ') || decode_base64(line).is_none() {
            break;
        }
        has_content |= !is_empty;
        end += line.len();
        if line.contains(&b'=') {
            break;
        }
    }
    let (encoded, rest) = source.split_at_checked(end)?;
    let bytes = decode_base64(encoded)?;
    // A few letters may be a word.
    (bytes.len() >= MIN_BASE64_BYTES).then_some((bytes, rest))
}

/// Returns whether plain text follows the base64 of a text. The parser takes letters for digits.
fn has_text_behind_base64(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
    body: &PartType<'_>,
) -> bool {
    if part.encoding != Encoding::Base64 || !matches!(body, PartType::Text(_) | PartType::Html(_)) {
        return false;
    }
    let source = part_source(message, part).trim_ascii_end();
    let digits = source.strip_suffix(b"=").unwrap_or(source);
    let digits = digits.strip_suffix(b"=").unwrap_or(digits);
    let has_empty_line =
        || [&b"\n\n"[..], b"\n\r\n"].iter().any(|it| memmem::find(digits, it).is_some());
    if memchr(b'=', digits).is_none() && !has_empty_line() {
        return false;
    }
    let Some((_, rest)) = decode_base64_lines(source) else { return false };
    // Several texts in base64 may follow each other, and some programs pad each line: these lines
    // have whole groups of four digits.
    let is_plain = |line: &[u8]| {
        let line = line.trim_ascii();
        line.contains(&b' ') || !line.len().is_multiple_of(4) || decode_base64(line).is_none()
    };
    rest.split(|byte| *byte == b'\n').any(is_plain)
}

/// The place of a part.
#[derive(Debug, Clone, Copy)]
struct PartPlace {
    /// Its number in its message.
    id: u32,
    depth: usize,
}

/// Gets a part with its message, its body, which is no longer in the part, and its place.
type PartVisitor<'v> = dyn FnMut(&mail_parser::Message<'_>, &mail_parser::MessagePart<'_>, &mut PartType<'_>, PartPlace)
    + 'v;

/// Visits all parts, each before the parts that it contains, and takes their bodies.
fn for_each_part(
    message: &mut mail_parser::Message<'_>,
    depth: usize,
    visit: &mut PartVisitor<'_>,
) {
    // A message may have very many parts, which are looked up in these lists.
    message.text_body.sort_unstable();
    message.html_body.sort_unstable();
    // The parts that are still to be visited, the next one last.
    let mut pending = vec![PartPlace { id: 0, depth }];
    while let Some(place) = pending.pop() {
        let Some(part) = message.parts.get_mut(place.id as usize) else { continue };
        let mut body = mem::take(&mut part.body);
        let Some(part) = message.parts.get(place.id as usize) else { continue };
        let is_malformed = is_uuencoded(part) && !decode_uuencoded_body(message, part, &mut body)
            || has_text_behind_base64(message, part, &body);
        let Some(part) = message.parts.get_mut(place.id as usize) else { continue };
        part.is_encoding_problem |= is_malformed;
        let Some(part) = message.parts.get(place.id as usize) else { continue };
        visit(message, part, &mut body, place);
        let depth = place.depth + 1;
        match body {
            PartType::Multipart(ids) => {
                pending.extend(ids.into_iter().rev().map(|id| PartPlace { id, depth }));
            }
            PartType::Message(mut inner) if place.depth < MAX_NESTED_MESSAGES => {
                for_each_part(&mut inner, depth, visit);
            }
            _ => {}
        }
    }
}

/// Returns whether a part is in a sorted list.
fn is_listed(parts: &[u32], id: u32) -> bool {
    parts.binary_search(&id).is_ok()
}

struct PartList<'p> {
    parts: Vec<MessagePart>,
    problems: &'p mut Vec<MessageProblem>,
}

impl PartList<'_> {
    fn add_part(
        &mut self,
        message: &mail_parser::Message<'_>,
        part: &mail_parser::MessagePart<'_>,
        body: &mut PartType<'_>,
        place: PartPlace,
    ) {
        complete_base64(message, part, body);
        let PartPlace { id, depth } = place;
        if is_incomplete(message, part, place) {
            self.problems.push(MessageProblem::MissingEnd { part: self.parts.len() });
        } else if part.is_encoding_problem && !is_header_alone(message, part, place) {
            self.problems.push(MessageProblem::BadTransferEncoding { part: self.parts.len() });
        }
        let is_mistaken = is_mistaken_for_text(part, body);
        let role = match body {
            PartType::Multipart(_) => PartRole::Container,
            _ if is_mistaken => PartRole::Attachment,
            PartType::Text(_) | PartType::Html(_) if is_listed(&message.text_body, id) => {
                PartRole::Body
            }
            PartType::Text(_) | PartType::Html(_) if is_listed(&message.html_body, id) => {
                PartRole::AlternativeBody
            }
            // A header without a body.
            PartType::Text(text) if id == 0 && depth == 0 && text.is_empty() => PartRole::Body,
            _ => PartRole::Attachment,
        };
        let content = match body {
            PartType::Multipart(_) => PartContent::Multipart,
            PartType::Message(inner) => {
                PartContent::Message(Box::new(MessageHeaders::from_parsed(inner)))
            }
            _ if is_mistaken => PartContent::Binary(decode_source(message, part).into_owned()),
            PartType::Text(text) => PartContent::Text(self.text(message, part, mem::take(text))),
            PartType::Html(html) => PartContent::Html(self.text(message, part, mem::take(html))),
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => report_text(part, bytes)
                .unwrap_or_else(|| PartContent::Binary(mem::take(bytes).into_owned())),
        };
        self.parts.push(MessagePart {
            depth,
            media_type: media_type(part, &content),
            file_name: file_name(message, part),
            is_declared_attachment: part
                .content_disposition()
                .is_some_and(|value| value.c_type.eq_ignore_ascii_case("attachment")),
            is_encoded_message: matches!(body, PartType::Message(_))
                && part.encoding != Encoding::None,
            content_id: part.content_id().map(Into::into),
            role,
            content,
        });
    }

    /// Returns the text of a part with lines that end with LF. Text that is not in its declared
    /// character set is decoded again.
    fn text(
        &mut self,
        message: &mail_parser::Message<'_>,
        part: &mail_parser::MessagePart<'_>,
        mut text: Cow<'_, str>,
    ) -> String {
        let damaged = part.is_encoding_problem.then(|| declared_encoding(part));
        if damaged == Some(Encoding::QuotedPrintable) {
            text = Cow::Owned(declared_text(part, &decode_source(message, part)).into_owned());
        } else if damaged == Some(Encoding::Base64)
            && let Some((bytes, rest)) = decode_base64_lines(part_source(message, part))
        {
            let label = declared_charset(part);
            text = Cow::Owned(format!("{}\n{}", decode_charset(&bytes, label), guess_text(rest)));
        } else {
            let label = declared_charset(part).filter(|label| is_other_charset(label));
            if label.is_some() {
                let bytes = decode_source(message, part);
                text = Cow::Owned(decode_charset(&bytes, label).into_owned());
            }
            if text.contains(char::REPLACEMENT_CHARACTER) {
                let bytes = decode_source(message, part);
                let guessed = guess_text(&bytes);
                if !guessed.is_empty() && *guessed != *text {
                    self.problems.push(MessageProblem::BadCharset { part: self.parts.len() });
                    text = Cow::Owned(guessed.into_owned());
                }
            }
        }
        if !text.contains('\r') {
            return text.into_owned();
        }
        let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Makes the alternative of an empty body the body: some programs write HTML beside an empty
    /// plain text. Without either, the first text without a file name is the body.
    fn choose_body(&mut self, first: usize, depth: usize) {
        let own = self.places_in_message(first, depth);
        let has_text = |at: &&usize, role| {
            self.parts.get(**at).is_some_and(|part: &MessagePart| match &part.content {
                PartContent::Text(text) | PartContent::Html(text) => {
                    part.role == role && !text.trim().is_empty()
                }
                _ => false,
            })
        };
        if own.iter().any(|at| has_text(&at, PartRole::Body)) {
            return;
        }
        let is_unnamed = |at: &&usize| {
            has_text(at, PartRole::Attachment)
                && self.parts.get(**at).is_some_and(|part| part.file_name.is_none())
        };
        let (chosen, role) = match own.iter().any(|at| has_text(&at, PartRole::AlternativeBody)) {
            true => (own, PartRole::AlternativeBody),
            false => {
                (own.iter().find(is_unnamed).copied().into_iter().collect(), PartRole::Attachment)
            }
        };
        for at in chosen {
            if let Some(part) = self.parts.get_mut(at) {
                if part.role == role {
                    part.role = PartRole::Body;
                } else if part.role == PartRole::Body {
                    part.role = PartRole::AlternativeBody;
                }
            }
        }
    }

    /// Returns the places of the parts of a message that begin at `first`, without those of the
    /// messages in it.
    fn places_in_message(&self, first: usize, depth: usize) -> Vec<usize> {
        let mut inner_depth = usize::MAX;
        let mut places = Vec::new();
        for (at, part) in self.parts.iter().enumerate().skip(first) {
            if part.depth <= inner_depth {
                let is_message = matches!(part.content, PartContent::Message(_));
                inner_depth = if is_message { part.depth } else { usize::MAX };
            }
            if part.depth < depth {
                break;
            }
            if part.depth <= inner_depth {
                places.push(at);
            }
        }
        places
    }
}

/// Returns whether the parser took a picture, a program and the like for text, as it does if the
/// transfer encoding is damaged.
fn is_mistaken_for_text(part: &mail_parser::MessagePart<'_>, body: &PartType<'_>) -> bool {
    let is_other = |value: &mail_parser::ContentType<'_>| {
        !["text", "message", "multipart"].iter().any(|one| value.ctype().eq_ignore_ascii_case(one))
    };
    part.is_encoding_problem
        && matches!(body, PartType::Text(_) | PartType::Html(_))
        && part.content_type().is_some_and(is_other)
}

/// Returns the text of a report, such as `message/delivery-status` (RFC 3464): a message is a text
/// unless it has bytes that no text has.
fn report_text(part: &mail_parser::MessagePart<'_>, bytes: &[u8]) -> Option<PartContent> {
    let is_message = part
        .content_type()
        .is_some_and(|declared| declared.ctype().eq_ignore_ascii_case("message"));
    if !is_message || bytes.contains(&0) {
        return None;
    }
    Some(PartContent::Text(declared_text(part, bytes).replace("\r\n", "\n")))
}

/// Returns the text of bytes in the declared character set of a part, or in one that is guessed.
fn declared_text<'b>(part: &mail_parser::MessagePart<'_>, bytes: &'b [u8]) -> Cow<'b, str> {
    let label = declared_charset(part);
    match label {
        Some(_) => decode_charset(bytes, label),
        None => guess_text(bytes),
    }
}

fn declared_charset<'p>(part: &'p mail_parser::MessagePart<'_>) -> Option<&'p str> {
    part.content_type().and_then(|value| value.attribute("charset"))
}

/// Returns the declared media type, else that of the content.
fn media_type(part: &mail_parser::MessagePart<'_>, content: &PartContent) -> String {
    let declared = part.content_type().and_then(|declared| {
        // The semicolon in front of an attribute may be missing.
        let subtype = declared.subtype()?.split_whitespace().next()?;
        Some(format!("{}/{subtype}", declared.ctype()).to_ascii_lowercase())
    });
    declared.unwrap_or_else(|| {
        let default = match content {
            PartContent::Text(_) => "text/plain",
            PartContent::Html(_) => "text/html",
            PartContent::Binary(_) => "application/octet-stream",
            PartContent::Message(_) => "message/rfc822",
            PartContent::Multipart => "multipart/mixed",
        };
        default.into()
    })
}

/// Returns the file name of Content-Disposition, else the name of Content-Type. Bytes of an
/// undeclared character set are guessed, as in the header of the message.
fn file_name(
    message: &mail_parser::Message<'_>,
    part: &mail_parser::MessagePart<'_>,
) -> Option<String> {
    let attribute = |of: Option<&ContentType<'_>>, name: &str| {
        let value = of.and_then(|field| field.attribute(name)).map(str::trim);
        value.filter(|value| !value.is_empty()).map(str::to_string)
    };
    let name = attribute(part.content_disposition(), "filename")
        .or_else(|| attribute(part.content_type(), "name"))?;
    if !name.contains(char::REPLACEMENT_CHARACTER) {
        return Some(name);
    }
    let guess = |field: HeaderName<'static>, name: &str| {
        let header = part.headers.iter().find(|header| header.name == field)?;
        let range = header.offset_start as usize..header.offset_end as usize;
        let text = guess_text(message.raw_message.get(range)?);
        let value = MessageStream::new(text.as_bytes()).parse_content_type();
        decode_parameter(text.as_bytes(), name)
            .filter(|value| !value.is_empty())
            .or_else(|| attribute(value.as_content_type(), name))
    };
    let guessed = guess(HeaderName::ContentDisposition, "filename");
    guessed.or_else(|| guess(HeaderName::ContentType, "name")).or(Some(name))
}
