//! The terms of header fields, by which `header:x-mailer:mutt` finds messages.
//!
//! A term is the name in lower case, [`NAME_END`], and the beginning of the folded value. So the
//! terms that begin with a name and [`NAME_END`] are all values of a header, and a search tests
//! each of them once, however many messages have it. A header whose values are different in each
//! message, such as Received, has one term without a value: its values would be more text than the
//! messages.
//!
//! Separate from `message`, because queries read the terms, too.

use larder_format::fold::fold;
use larder_format::message::HeaderFields;

/// Ends the name in a term. No name has it.
pub const NAME_END: char = '\u{1}';
/// The longest part of a value in a term, in bytes of the folded text.
pub const MAX_HEADER_VALUE_BYTES: usize = 100;
/// The most fields of a message that have terms.
const MAX_HEADERS: usize = 200;

/// Headers whose values have no terms: they are different in each message, or long, or have terms
/// of their own.
#[rustfmt::skip] // A table is read by its columns.
const UNINDEXED_HEADERS: &[&str] = &[
    // They have fields of their own.
    "bcc", "cc", "date", "from", "in-reply-to", "message-id", "references", "subject", "to",
    // Traces of servers.
    "authentication-results", "autocrypt", "delivery-date", "domainkey-signature", "envelope-from",
    "received", "received-spf", "resent-date", "resent-message-id", "return-path", "x-envelope-from",
    "x-received", "x-uid", "x-uidl",
    // Filters and mail services.
    "feedback-id", "list-unsubscribe", "x-antiabuse", "x-csa-complaints", "x-forefront-antispam-report",
    "x-gm-message-state", "x-google-smtp-source", "x-ham-report", "x-microsoft-antispam-message-info",
    "x-ms-exchange-antispam-messagedata", "x-ms-exchange-antispam-messagedata-0", "x-provags-id",
    "x-sg-eid", "x-spam-report", "x-ui-out-filterresults",
    // Mail programs.
    "face", "openpgp", "thread-index", "thread-topic", "x-face",
];
/// The beginnings and ends of the names of further such headers.
const UNINDEXED_PREFIXES: &[&str] = &["arc-", "x-google-dkim-", "x-ms-exchange-crosstenant-"];
const UNINDEXED_SUFFIXES: &[&str] = &["-digest", "-id", "-signature", "-uuid"];

/// Returns whether the values of a header are indexed, not only its presence. The name is in lower
/// case.
#[must_use]
pub fn has_indexed_values(name: &str) -> bool {
    if name == "list-id" {
        return true;
    }
    !UNINDEXED_HEADERS.contains(&name)
        && !UNINDEXED_PREFIXES.iter().any(|start| name.starts_with(start))
        && !UNINDEXED_SUFFIXES.iter().any(|end| name.ends_with(end))
}

/// Calls `visit` with the text of each term of a header, without its first byte.
pub(crate) fn for_each_header_term(fields: &HeaderFields, mut visit: impl FnMut(&str)) {
    let mut text = String::with_capacity(200);
    for (name, value) in fields.iter().take(MAX_HEADERS) {
        text.clear();
        text.push_str(name);
        text.push(NAME_END);
        if has_indexed_values(name) {
            let value = if name == "content-type" { without_boundary(value) } else { value };
            let value = fold(value);
            let end = value.floor_char_boundary(MAX_HEADER_VALUE_BYTES);
            text.push_str(value.get(..end).unwrap_or_default());
        }
        visit(&text);
    }
}

/// Returns the value of Content-Type in front of the boundary, which is different in each message.
fn without_boundary(value: &str) -> &str {
    let bytes = value.as_bytes();
    let place = bytes.windows(9).position(|word| word.eq_ignore_ascii_case(b"boundary="));
    let start = place.and_then(|place| value.get(..place)).unwrap_or(value);
    start.trim_end_matches([' ', ';'])
}

/// Returns the value in the text of a term of this header.
#[must_use]
pub fn header_value<'t>(term_text: &'t str, name: &str) -> Option<&'t str> {
    term_text.strip_prefix(name)?.strip_prefix(NAME_END)
}
