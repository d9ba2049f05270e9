//! The lines that begin and end components, which is all that the splitter reads of a stream.
//!
//! Separate from the splitter, which knows what is open; a marker is recognised by its line alone.

use crate::content_line;
use crate::kind::Kind;
use crate::utf16::Endian;

/// The role of a line in finding items.
pub(super) enum LineMarker {
    Begin(String),
    End(String),
    /// An AGENT without a value, or whose value is the BEGIN of a card.
    Agent {
        begins: bool,
    },
    Blank,
    /// A damaged BEGIN of the component with this name.
    DamagedBegin(String),
}

/// The component of an AGENT: the only one that is nested in its own kind.
pub(super) const VCARD: &str = "VCARD";
/// The container of calendar components.
pub(super) const VCALENDAR: &str = "VCALENDAR";
/// Components that are nested in no other component except a VPOLL.
pub(super) const POLLABLE_COMPONENTS: &[&str] = &["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"];
/// Components that are nested in no other component.
const UNNESTED_COMPONENTS: &[&str] = &["VTIMEZONE", "VPOLL", "VAVAILABILITY"];

/// Returns whether such a component is in no other: a calendar, or an item that stands by itself,
/// except the card of an AGENT.
pub(super) fn is_never_nested(name: &str) -> bool {
    name == VCALENDAR || Kind::is_top_level_name(name)
}

pub(super) fn is_calendar_component(name: &str) -> bool {
    POLLABLE_COMPONENTS.contains(&name) || UNNESTED_COMPONENTS.contains(&name)
}

/// Returns the role of a line. Every line passes here; the first byte decides most.
pub(super) fn parse_marker(content: &[u8], order: Option<Endian>) -> Option<LineMarker> {
    if let Some(order) = order {
        // Half a character is not blank: it must be emitted.
        let narrow: Vec<u8> = order.narrow(content).collect();
        return parse_marker(&narrow, None).filter(|_| content.len().is_multiple_of(2));
    }
    match content.first() {
        None => Some(LineMarker::Blank),
        Some(b' ' | b'\t' | b'\r') => content_line::is_blank(content).then_some(LineMarker::Blank),
        Some(b'B' | b'b') => parse_component_name(content, b"BEGIN").map(LineMarker::Begin),
        Some(b'E' | b'e') => parse_component_name(content, b"END").map(LineMarker::End),
        Some(b'A' | b'a') => parse_agent(content),
        _ => None,
    }
}

/// Returns the name after `keyword:`. White space around the colon and after the name is tolerated.
fn parse_component_name(content: &[u8], keyword: &[u8]) -> Option<String> {
    let tail = strip_keyword(content, keyword)?;
    let name = tail.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    std::str::from_utf8(name).ok().map(str::to_ascii_uppercase)
}

/// Returns the name in a damaged BEGIN of a calendar component: `BEGIN=VEVENT`, `x.BEGIN:VEVENT`,
/// `BEGIN;X=1:VEVENT`, `BEGIN:"VEVENT"`, or a BEGIN after bytes that are not text.
pub(super) fn parse_damaged_begin(content: &[u8]) -> Option<String> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    // White space at the beginning of a line is a fold.
    if matches!(content.first(), None | Some(b' ' | b'\t')) {
        return None;
    }
    let start = content.iter().position(is_name)?;
    let mut content = &content[start..];
    let length = content.iter().take_while(|byte| is_name(byte)).count();
    if content.get(length) == Some(&b'.') {
        content = &content[length + 1..];
    }
    let tail = strip_keyword(content, b"BEGIN")?;
    tail.first().filter(|byte| !is_name(byte))?;
    let end = tail.iter().rposition(is_name)? + 1;
    let from = tail[..end].iter().rposition(|byte| !is_name(byte))? + 1;
    let name = std::str::from_utf8(&tail[from..end]).ok()?.to_ascii_uppercase();
    is_calendar_component(&name).then_some(name)
}

fn parse_agent(content: &[u8]) -> Option<LineMarker> {
    let tail = strip_keyword(content, b"AGENT")?;
    if !matches!(tail.first(), Some(b':' | b';')) {
        return None;
    }
    let colon = memchr::memchr(b':', tail)?;
    let value = tail[colon + 1..].trim_ascii();
    let begins = || parse_component_name(value, b"BEGIN").is_some_and(|name| name == VCARD);
    match value {
        [] => Some(LineMarker::Agent { begins: false }),
        _ => begins().then_some(LineMarker::Agent { begins: true }),
    }
}

fn strip_keyword<'b>(content: &'b [u8], keyword: &[u8]) -> Option<&'b [u8]> {
    let (start, tail) = content.split_at_checked(keyword.len())?;
    start.eq_ignore_ascii_case(keyword).then_some(tail)
}
