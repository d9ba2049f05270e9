//! Targets of the format crate: content lines, properties, items, values and folded text.

use larder_format::collate::Collator;
use larder_format::component::{self, CalendarVersion, Component};
use larder_format::contact::{
    Contact, MAX_PROPERTIES_PER_ITEM, derive_uid, is_same_card, merge_cards,
};
use larder_format::decoding as from;
use larder_format::edit::{self, insert_uid};
use larder_format::field::{CALENDAR_FIELDS, CONTACT_FIELDS, find_contact_field};
use larder_format::fold as text;
use larder_format::mbox::{
    MboxScanner, MboxSection, hash_message, is_message_end, strip_status, unquote,
};
use larder_format::message::Message;
use larder_format::property::Property;
use larder_format::splitter::{SkipReason, Splitter, StreamPiece};
use larder_store::MailBatchBuilder;
use larder_store::message_summary::MessageSummary;
use std::sync::LazyLock;

/// White space between lines and items.
const BLANK_BYTES: &[u8] = b" \t\r\n";

/// Content lines and properties: except for blank lines, the concatenated lines are the input, and
/// each property refers to its own line.
pub fn check_lines(data: &[u8]) {
    let mut rest = data;
    let mut number = 0;
    for line in larder_format::content_line::content_lines(data) {
        rest = strip_next_piece(rest, line.raw, BLANK_BYTES);
        assert!(line.number > number, "line {} after line {number}", line.number);
        number = line.number;
        assert!(line.text.len() <= line.raw.len(), "text grew");
        let (raw, text) = (line.raw, line.text.clone());
        let property = Property::parse(line);
        assert_eq!((property.raw(), property.line_number()), (raw, number));
        if property.is_property() {
            assert!(!property.name().is_empty(), "a known property has a name");
            assert!(property.has_name(property.name()), "its name is its name");
            assert!(text.ends_with(property.value()), "the value is the end of the line");
        }
        let values = property.params().map(|param| param.values.len()).sum::<usize>();
        assert!(values <= text.len(), "more parameters than characters");
        assert!(!property.text().contains('\0'), "a NUL in a text");
        let owned = property.clone().into_owned();
        assert_eq!((owned.name(), owned.value()), (property.name(), property.value()));
    }
    assert!(rest.iter().all(|byte| BLANK_BYTES.contains(byte)), "lines end before the bytes do");
}

/// Messages: each part has a place in the tree, and the text of the body has no markup left over.
pub fn check_message(data: &[u8]) {
    let message = Message::parse(data);
    let mut depth = 0;
    for (at, part) in message.parts.iter().enumerate() {
        assert!(part.depth <= depth + 1 && (at == 0) == (part.depth == 0), "a part without parent");
        depth = part.depth;
        if let Some(text) = part.plain_text() {
            assert!(!text.contains("\r\n"), "a CR in front of LF");
        }
    }
    assert_eq!(
        message.body_text().is_empty(),
        message
            .body_parts()
            .all(|(_, part)| { part.plain_text().is_none_or(|text| text.is_empty()) })
    );
    for (at, part) in message.body_parts().chain(message.attachments()) {
        assert_eq!(message.parts.get(at), Some(part));
    }
    // A file of a mailbox has a line in front of the message.
    let in_mbox = [b"From x\n", data].concat();
    assert_eq!(Message::parse(&in_mbox), message);
    let (_, document) = MailBatchBuilder::new(&[]).prepare(1, data, 0);
    let Some(summary) = MessageSummary::from_bytes(&document.summary.to_bytes()) else {
        panic!("a summary is not read as it was written");
    };
    assert_eq!((summary.date, summary.size), (document.summary.date, document.summary.size));
    assert_eq!(summary.from.is_empty(), document.summary.from.is_empty());
}

/// Finds the messages of an mbox file, in pieces of any size: the same ones, which do not overlap,
/// and whose hashes are those of their bytes.
pub fn check_mbox(data: &[u8]) {
    let scan = |piece: usize| {
        let mut scanner = MboxScanner::new(0);
        let mut is_end = |end: u64| {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            data.get(end..).is_some_and(is_message_end)
        };
        data.chunks(piece).for_each(|bytes| scanner.push(bytes, &mut is_end));
        scanner.finish()
    };
    let found = scan(data.len().max(1));
    assert_eq!(scan(3), found);
    let mut end = 0;
    for message in found {
        let section = message.section;
        assert!(section.offset >= end, "messages overlap");
        end = section.offset + section.length;
        let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
        let Some(bytes) = data.get(place(section.offset)..place(end)) else {
            panic!("a message is outside of the file");
        };
        let mut stripped = strip_status(bytes);
        assert_eq!(hash_message(&stripped), section.hash);
        unquote(&mut stripped);
        let name = section.to_name(message.flags);
        assert_eq!(MboxSection::parse_name(name.as_bytes()), Some(section));
    }
}

/// The result of splitting; the parts of a rejected stretch are joined.
#[derive(Debug, PartialEq, Eq)]
enum SplitOutput {
    Item { name: String, line: u64, bytes: Vec<u8>, closed: bool },
    CalendarFrame { line: u64, bytes: Vec<u8> },
    StrayBytes { line: u64, bytes: Vec<u8>, why: SkipReason },
}

/// Merges two cards: the result is a card with the UID of the first and the e-mail addresses of
/// both, and a property can be added to it. The first byte says where the second card begins.
pub fn check_join(data: &[u8]) {
    let [cut, cards @ ..] = data else { return };
    let (base, other) = cards.split_at(cards.len() * usize::from(*cut) / 255);
    let Some(result) = merge_cards(base, other) else { return };
    let (before, after) = (Contact::parse(base), Contact::parse(&result));
    assert_eq!(after.fatal_problem(), None, "the result is no card");
    assert_eq!(after.uid(), before.uid(), "another UID");
    assert!(merge_cards(&result, other).is_some(), "what was added to cannot be added to");
    if let Some(email) = find_contact_field("email") {
        let folded = |card: &Contact<'_>| -> Vec<String> {
            card.values(email).iter().map(|value| text::fold(value).into_owned()).collect()
        };
        let (after, other) = (folded(&after), folded(&Contact::parse(other)));
        for value in folded(&before).iter().chain(&other) {
            assert!(after.contains(value), "{value:?} is not in {after:?}");
        }
    }
}

/// The splitter gives the same pieces for any size of chunks, and except for white space between
/// them the pieces are the input. The first byte is the size of the chunks, the second the largest
/// size of an item.
pub fn check_split(data: &[u8]) {
    let [chunk, limit, stream @ ..] = data else { return };
    let limit = match limit {
        0..128 => 1 << 20,
        limit => usize::from(*limit),
    };
    let at_once = split_in_chunks(stream, stream.len().max(1), limit);
    let in_chunks = split_in_chunks(stream, usize::from(*chunk) % 67 + 1, limit);
    assert_eq!(at_once, in_chunks, "chunks of {} bytes", chunk % 67 + 1);

    // The splitter skips a byte order mark, and in UTF-16 the other byte of each white-space
    // character.
    let skipped = b" \t\r\n\0\xef\xbb\xbf\xfe\xff";
    let mut rest = stream;
    for piece in &at_once {
        let bytes = match piece {
            SplitOutput::Item { bytes, .. } => {
                assert!(bytes.len() <= limit, "an item of {} bytes", bytes.len());
                bytes
            }
            SplitOutput::CalendarFrame { bytes, .. } | SplitOutput::StrayBytes { bytes, .. } => {
                bytes
            }
        };
        rest = strip_next_piece(rest, bytes, skipped);
    }
    assert!(rest.iter().all(|byte| skipped.contains(byte)), "the last {} bytes", rest.len());
}

fn split_in_chunks(stream: &[u8], chunk: usize, limit: usize) -> Vec<SplitOutput> {
    let mut whole: Vec<SplitOutput> = Vec::new();
    let mut sink = |piece: StreamPiece<'_>| match piece {
        StreamPiece::Component { name, line, bytes, closed } => {
            let (name, bytes) = (name.to_string(), bytes.to_vec());
            whole.push(SplitOutput::Item { name, line, bytes, closed });
        }
        StreamPiece::CalendarBegins { line, bytes } => {
            whole.push(SplitOutput::CalendarFrame { line, bytes: bytes.to_vec() });
        }
        StreamPiece::CalendarLines { line, bytes, .. } => {
            let name = "its lines".to_string();
            whole.push(SplitOutput::Item { name, line, bytes: bytes.to_vec(), closed: true });
        }
        StreamPiece::CalendarEnds { line, bytes, closed, .. } => {
            assert_eq!(closed, !bytes.is_empty(), "an END is a line");
            whole.push(SplitOutput::CalendarFrame { line, bytes: bytes.to_vec() });
        }
        StreamPiece::Skipped { line, bytes, why, first: true } => {
            whole.push(SplitOutput::StrayBytes { line, bytes: bytes.to_vec(), why });
        }
        StreamPiece::Skipped { bytes, why, .. } => match whole.last_mut() {
            Some(SplitOutput::StrayBytes { bytes: before, why: first, .. }) => {
                assert_eq!(why, *first, "a stretch changes its reason");
                before.extend_from_slice(bytes);
            }
            other => panic!("a stretch goes on behind {other:?}"),
        },
    };
    let mut splitter = Splitter::new(limit);
    for part in stream.chunks(chunk) {
        splitter.push(part, &mut sink);
    }
    splitter.finish(&mut sink);
    whole
}

/// Returns the input after `piece`, before which only skipped bytes may stand.
fn strip_next_piece<'a>(rest: &'a [u8], piece: &[u8], skipped: &[u8]) -> &'a [u8] {
    let mut at = 0;
    loop {
        if let Some(behind) = rest[at..].strip_prefix(piece) {
            return behind;
        }
        match rest.get(at) {
            Some(byte) if skipped.contains(byte) => at += 1,
            _ => panic!("{:?} does not follow in {:?}", piece.escape_ascii(), rest.escape_ascii()),
        }
    }
}

/// Contacts: every field of every card can be read, and an inserted UID is read again.
pub fn check_contact(data: &[u8]) {
    let card = Contact::parse(data);
    assert!(card.properties().len() <= MAX_PROPERTIES_PER_ITEM + 1, "too many properties");
    for field in CONTACT_FIELDS {
        let values = card.values(field);
        assert_eq!(
            card.first_value(field),
            values.first().cloned(),
            "first and all of {}",
            field.name
        );
        assert!(values.iter().all(|value| !value.is_empty()), "an empty value of {}", field.name);
    }
    for problem in card.problems() {
        assert!(!problem.to_string().is_empty(), "{problem:?} says nothing");
    }
    assert!(is_same_card(data, data), "not the same as itself");
    for longer in [[data, b"\r\n"].concat(), [data, b"X"].concat()] {
        let has_same_uid = derive_uid(data) == derive_uid(&longer);
        let is_same = is_same_card(data, &longer);
        assert!(has_same_uid || !is_same, "the same card with two UIDs");
        // The UID of UTF-16 is that of its text: bytes that are no character have no part in it.
        let is_utf16 = data.contains(&0)
            || [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| data.starts_with(mark));
        assert!(is_same || !has_same_uid || is_utf16, "two cards with the same UID");
    }
    match card.uid() {
        Some(uid) => {
            assert!(!uid.trim().is_empty(), "an empty UID");
            let of_table = find_contact_field("uid").and_then(|field| card.first_value(field));
            assert_eq!(of_table.as_deref(), Some(uid.as_str()), "two ways to the UID");
        }
        None if card.fatal_problem().is_none() => {
            let named = insert_uid(data, "fuzz-1");
            let uid = Contact::parse(&named).uid();
            assert_eq!(uid.as_deref(), Some("fuzz-1"), "in {}", named.escape_ascii());
        }
        None => {}
    }
}

/// Components: each property is in one place, and an inserted UID is read again.
pub fn check_component(data: &[u8]) {
    let item = Component::parse_with_version(data, CalendarVersion::from_calendar_lines(data));
    let inside = item.subcomponents().iter().map(|part| part.properties().len() + 1).sum::<usize>();
    assert!(
        item.properties().len() + inside <= component::MAX_PROPERTIES_PER_ITEM,
        "too many properties"
    );
    assert!(item.subcomponents().iter().all(|part| part.depth() > 0), "a part that is not inside");
    assert!(item.tzids().iter().all(|tzid| !tzid.is_empty()), "a zone without a name");
    for field in CALENDAR_FIELDS {
        let values = item.values(field);
        assert_eq!(
            item.first_value(field),
            values.first().cloned(),
            "first and all of {}",
            field.name
        );
        assert!(values.iter().all(|value| !value.is_empty()), "an empty value of {}", field.name);
    }
    for property in item.properties() {
        let time =
            item.time_properties(property.name()).find(|time| time.line == property.line_number());
        assert!(time.is_some(), "{} is not found by its name", property.name());
    }
    for problem in item.problems() {
        assert!(!problem.to_string().is_empty(), "{problem:?} says nothing");
    }
    check_edits(data, &item);
    if item.uid().is_none() && item.fatal_problem().is_none() {
        let named = insert_uid(data, "fuzz-1");
        let uid = Component::parse(&named).uid();
        assert_eq!(uid.as_deref(), Some("fuzz-1"), "in {}", named.escape_ascii());
    }
}

/// A property that is set in a component is read again, a removed one is gone, and all others stay.
fn check_edits(data: &[u8], item: &Component<'_>) {
    let count =
        |item: &Component<'_>| item.properties().len() - item.properties_named("X-FUZZ").count();
    let Some(changed) = edit::set_property(data, "X-FUZZ", &[("X-P", "a;b")], "x") else {
        assert!(item.fatal_problem().is_some(), "nothing is set in a component");
        return;
    };
    let after = Component::parse(&changed);
    let set: Vec<_> = after.properties_named("X-FUZZ").map(|property| property.text()).collect();
    assert_eq!(set, ["x"], "in {}", changed.escape_ascii());
    assert_eq!(count(&after), count(item), "in {}", changed.escape_ascii());
    assert_eq!(after.uid(), item.uid(), "in {}", changed.escape_ascii());
    let removed = edit::remove_property(&changed, "X-FUZZ").unwrap_or_default();
    let after = Component::parse(&removed);
    assert_eq!(count(&after), after.properties().len(), "in {}", removed.escape_ascii());
    assert_eq!(count(&after), count(item), "in {}", removed.escape_ascii());
}

/// Transfer encodings, character sets, escapes and structured values.
pub fn check_decode(data: &[u8]) {
    assert!(from::decode_quoted_printable(data).len() <= data.len(), "quoted-printable grew");
    assert!(from::decode_base64(data).is_none_or(|bytes| bytes.len() <= data.len()), "base64 grew");
    assert_eq!(
        from::decode_base64(&encode_base64(data)).as_deref(),
        Some(data),
        "base64, there and back"
    );
    let hex = |digit: u8| b"0123456789ABCDEF"[usize::from(digit)];
    let quoted: Vec<u8> =
        data.iter().flat_map(|byte| [b'=', hex(byte >> 4), hex(byte & 15)]).collect();
    assert_eq!(&*from::decode_quoted_printable(&quoted), data, "quoted-printable, there and back");

    // The first line names the character set of the rest.
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let label = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let value = parts.next().unwrap_or_default();
    let text = from::decode_charset(value, Some(&label));
    let unlabelled = from::decode_charset(value, None);
    if let Ok(valid) = std::str::from_utf8(value) {
        assert_eq!(unlabelled, valid, "UTF-8 is UTF-8");
    }

    for text in [&*text, &*unlabelled] {
        check_escapes(text);
        for separator in [';', ','] {
            let raw: Vec<&str> = from::split_raw(text, separator).collect();
            assert_eq!(raw.join(&separator.to_string()), text, "the joined parts are not the text");
            let parts = from::split_structured(text, separator);
            assert_eq!(parts.len(), raw.len(), "the number of parts differs");
        }
    }
}

/// A text escaped by RFC 6350, section 3.4, is unescaped to itself.
fn check_escapes(text: &str) {
    assert!(from::unescape_text(text).len() <= text.len(), "unescaped text grew");
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\\' | ',' | ';' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    assert_eq!(from::unescape_text(&escaped), text, "escaped and back");
    assert_eq!(from::split_structured(&escaped, ';'), [text], "an escaped separator separates");
}

fn encode_base64(data: &[u8]) -> Vec<u8> {
    const BASE64_ALPHABET: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = Vec::new();
    for three in data.chunks(3) {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            encoded.push(BASE64_ALPHABET[(bits >> (18 - 6 * place)) as usize & 63]);
        }
        encoded.extend(&b"=="[..3 - three.len()]);
    }
    encoded
}

/// Folding, words, digits and sort keys.
pub fn check_fold(data: &[u8]) {
    static ROOT_COLLATOR: LazyLock<Collator> = LazyLock::new(|| Collator::new("und"));
    let given = String::from_utf8_lossy(data);
    let folded = text::fold(&given);
    assert_eq!(text::fold(&folded), folded, "folded twice");
    let mut rest = &*folded;
    for word in text::split_words(&folded) {
        assert!(word.starts_with(char::is_alphanumeric), "{word:?} begins with no letter");
        let Some(at) = rest.find(word) else { panic!("{word:?} is not in {rest:?}") };
        rest = &rest[at + word.len()..];
    }
    let digits = text::collect_digits(&given);
    assert!(digits.bytes().all(|digit| digit.is_ascii_digit()), "{digits:?}");
    assert_eq!(text::collect_digits(&digits), digits, "digits of digits");
    let key = ROOT_COLLATOR.sort_key(&given);
    assert_eq!(key, ROOT_COLLATOR.sort_key(&given), "the sort key differs the second time");
    // Creating a collator takes far longer than all checks above.
    if let Some(name) = given.lines().next().filter(|name| (1..12).contains(&name.len())) {
        let named = Collator::new(name);
        let again = Collator::new(named.locale());
        assert_eq!(named.sort_key(&given), again.sort_key(&given), "by its name");
    }
}
