//! The terms of correspondents: each address that a message names, with the name beside it.
//!
//! A term is the address in lower case, [`NAME_SEPARATOR`], and the name as written. So the terms
//! of one address are neighbours in the index of words, and the postings of a term tell how often
//! and when the address had the name.
//!
//! Separate from `message`, because queries read these terms, too. It does not depend on `message`.

use larder_format::message::{MailAddress, MessageHeaders};

/// The byte between the address and the name of a term. No address has it, and it is less than all
/// bytes of addresses: the order of terms is that of their addresses.
pub const NAME_SEPARATOR: u8 = 1;
/// The first byte of the terms.
pub(crate) const CORRESPONDENT_FIELD: u8 = b'p';
/// The longest term.
const MAX_TERM_BYTES: usize = 190;
/// The longest address. One that is longer is not met.
const MAX_ADDRESS_BYTES: usize = 180;
/// The most addresses of a message that are met.
const MAX_ADDRESSES: usize = 1000;

/// The address and the name of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrespondentName<'t> {
    /// The address, in lower case.
    pub address: &'t str,
    /// The name as written; empty: the message has only the address.
    pub name: &'t str,
}

impl<'t> CorrespondentName<'t> {
    /// Reads a term; `None`: it is of another field.
    #[must_use]
    pub fn from_term(term: &'t [u8]) -> Option<CorrespondentName<'t>> {
        let (field, rest) = term.split_first()?;
        if *field != CORRESPONDENT_FIELD {
            return None;
        }
        let separator = rest.iter().position(|byte| *byte == NAME_SEPARATOR)?;
        let (address, name) = (rest.get(..separator)?, rest.get(separator + 1..)?);
        Some(CorrespondentName {
            address: str::from_utf8(address).ok()?,
            name: str::from_utf8(name).ok()?,
        })
    }
}

/// Returns all addresses of a message.
pub(crate) fn message_addresses(headers: &MessageHeaders) -> impl Iterator<Item = &MailAddress> {
    let fields =
        [&headers.from, &headers.sender, &headers.reply_to, &headers.to, &headers.cc, &headers.bcc];
    fields.into_iter().flatten()
}

/// Calls `visit` with the term of each correspondent of a message.
pub(crate) fn for_each_correspondent(
    headers: &MessageHeaders,
    term: &mut Vec<u8>,
    visit: &mut dyn FnMut(&[u8]),
) {
    for one in message_addresses(headers).take(MAX_ADDRESSES) {
        if write_correspondent_term(term, one) {
            visit(term);
        }
    }
}

/// Replaces `term` by the term of a correspondent. Returns false for what is no mail address, and
/// for addresses that are too long for a term.
fn write_correspondent_term(term: &mut Vec<u8>, one: &MailAddress) -> bool {
    if one.address.len() > MAX_ADDRESS_BYTES || !is_mail_address(&one.address) {
        return false;
    }
    term.clear();
    term.push(CORRESPONDENT_FIELD);
    term.extend(one.address.bytes().map(|byte| byte.to_ascii_lowercase()));
    term.push(NAME_SEPARATOR);
    let name = one.name.as_deref().unwrap_or_default().trim_matches(['"', '\'', ' ']);
    if !name.eq_ignore_ascii_case(&one.address) {
        let room = MAX_TERM_BYTES.saturating_sub(term.len());
        let end = name.floor_char_boundary(room);
        term.extend(name.bytes().take(end).filter(|byte| !byte.is_ascii_control()));
    }
    true
}

/// Returns whether a text is a mail address by the pattern of HTML (4.10.5.1.5).
#[must_use]
pub fn is_mail_address(text: &str) -> bool {
    let is_local =
        |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && local.bytes().all(is_local) && domain.split('.').all(is_label)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_the_pattern_of_html() {
        let good = ["a@b", "a.b+c@d-e.example", "root@localhost", "!#$%&'*+/=?^_`{|}~-@x"];
        let bad = [
            "",
            "a",
            "@b",
            "a@",
            "a@b.",
            "a@.b",
            "a@-b",
            "a@b-",
            "a@b..c",
            "a b@c",
            "\"a\"@b",
            "jü@b",
            "a@b@c",
            "a@[127.0.0.1]",
            "a@b_c",
        ];
        assert!(good.iter().all(|text| is_mail_address(text)));
        assert_eq!(bad.iter().filter(|text| is_mail_address(text)).collect::<Vec<_>>(), [&""; 0]);
        assert!(is_mail_address(&format!("a@{}", "b".repeat(63))));
        assert!(!is_mail_address(&format!("a@{}", "b".repeat(64))));
    }

    fn term(name: &str, address: &str) -> Option<String> {
        let name = (!name.is_empty()).then(|| name.to_string());
        let mut term = Vec::new();
        let is_written =
            write_correspondent_term(&mut term, &MailAddress { name, address: address.into() });
        is_written.then(|| String::from_utf8(term).expect("text"))
    }

    #[test]
    fn terms_have_the_address_and_the_name() {
        let check = |name: &str, address: &str, expect: Option<(&str, &str)>| {
            let term = term(name, address);
            let found =
                term.as_ref().and_then(|term| CorrespondentName::from_term(term.as_bytes()));
            assert_eq!(found.map(|found| (found.address, found.name)), expect);
        };
        check("Anna Berg", "Anna@B.example", Some(("anna@b.example", "Anna Berg")));
        check("", "anna@b.example", Some(("anna@b.example", "")));
        check("'Anna@b.example'", "anna@b.example", Some(("anna@b.example", "")));
        check("\u{1}An\u{0}na\u{1}", "anna@b", Some(("anna@b", "Anna")));
        check("Anna", "anna", None);
        let long = term(&"ü".repeat(300), "anna@b.example").expect("a term");
        assert!((MAX_TERM_BYTES - 1..=MAX_TERM_BYTES).contains(&long.len()));
        assert_eq!(term("", &format!("{}@b", "a".repeat(300))), None);
        assert_eq!(CorrespondentName::from_term(b"wanna"), None);
    }
}
