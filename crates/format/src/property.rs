//! A property: one content line, parsed (RFC 6350, 3.3; RFC 5545, 3.1; vCard 2.1).
//!
//! Parsing never fails: a line that is not a property keeps its text ([`Property::is_property`] is
//! false). Parameters and values are decoded on request. The readers of fields interpret values.

use crate::content_line::ContentLine;
use crate::decoding;
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// An item with more properties than this is refused.
pub const MAX_PROPERTIES_PER_ITEM: usize = 65_536;
/// At most this many parameters of a property, and values of a parameter, are read: no real card
/// has more, and each test of a type takes time proportional to their number.
const MAX_PARAMS_PER_PROPERTY: usize = 256;

/// One property of an item.
#[derive(Debug, Clone)]
pub struct Property<'a> {
    raw: Cow<'a, [u8]>,
    text: Cow<'a, [u8]>,
    number: u32,
    /// A quote in the parameters is not closed, so quotes have no meaning.
    has_open_quote: bool,
    /// The end of the group, before the dot; 0 without a group.
    group_end: usize,
    name: (usize, usize),
    /// The offsets of the parameters and of the colon; both 0 if the line is not a property.
    head: (usize, usize),
}

/// A parameter. An unnamed parameter of vCard 2.1 has the name that is implied: TYPE, ENCODING or
/// VALUE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param<'a> {
    /// The name as written.
    pub name: Cow<'a, str>,
    /// The values, without quotes and NUL characters, with the escapes of RFC 6868 removed.
    pub values: Vec<Cow<'a, str>>,
}

impl<'a> Property<'a> {
    /// Parses a line.
    #[must_use]
    pub fn parse(line: ContentLine<'a>) -> Property<'a> {
        let ContentLine { raw, number, text } = line;
        let mut property = Property {
            raw: Cow::Borrowed(raw),
            text,
            number,
            has_open_quote: false,
            group_end: 0,
            name: (0, 0),
            head: (0, 0),
        };
        property.locate_parts();
        property
    }

    fn locate_parts(&mut self) {
        let text = &self.text[..];
        let Some(name_end) = text.iter().position(|byte| matches!(byte, b':' | b';')) else {
            return;
        };
        let colon = match text[name_end] {
            b':' => Some(name_end),
            _ => find_colon(&text[name_end..]).map(|colon| name_end + colon),
        };
        let open_quote = colon.is_none();
        let Some(colon) =
            colon.or_else(|| memchr(b':', &text[name_end..]).map(|colon| name_end + colon))
        else {
            return;
        };
        let full = text[..name_end].trim_ascii_end();
        let dot = memchr::memrchr(b'.', full);
        let start = dot.map_or(0, |dot| dot + 1);
        let (group, name) = (&full[..dot.unwrap_or(0)], &full[start..]);
        let is_group = |byte: &u8| is_name_byte(byte) || *byte == b'.';
        if name.is_empty() || !name.iter().all(is_name_byte) || !group.iter().all(is_group) {
            return;
        }
        let parts = (group.len(), (start, full.len()), (name_end, colon));
        (self.group_end, self.name, self.head) = parts;
        self.has_open_quote = open_quote;
    }

    /// Returns the property with owned text.
    #[must_use]
    pub fn into_owned(self) -> Property<'static> {
        Property {
            raw: Cow::Owned(self.raw.into_owned()),
            text: Cow::Owned(self.text.into_owned()),
            number: self.number,
            has_open_quote: self.has_open_quote,
            group_end: self.group_end,
            name: self.name,
            head: self.head,
        }
    }

    /// The number of its first line within the item, from 1.
    #[must_use]
    pub fn line_number(&self) -> u32 {
        self.number
    }

    /// The original bytes, with folds and line end. For an item in UTF-16: as UTF-8.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Returns whether the line is a property: it has a colon, and a valid name before it.
    #[must_use]
    pub fn is_property(&self) -> bool {
        self.name.1 > 0
    }

    /// Returns whether a line that is not a property has a colon, so that only its name is wrong.
    pub(crate) fn has_colon(&self) -> bool {
        memchr(b':', &self.text).is_some()
    }

    /// Returns whether a quote is open before the colon. The first colon then ends the parameters.
    #[must_use]
    pub fn has_open_quote(&self) -> bool {
        self.has_open_quote
    }

    /// The group (`item1` in `item1.TEL`).
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        if self.group_end == 0 {
            None
        } else {
            std::str::from_utf8(&self.text[..self.group_end]).ok()
        }
    }

    /// The name as written; empty if the line is not a property.
    #[must_use]
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.text[self.name.0..self.name.1]).unwrap_or_default()
    }

    /// The original text after the name: parameters, value, folds and line end. `None` if it is not
    /// UTF-8, or if group and name are folded.
    pub(crate) fn text_after_name(&self) -> Option<&str> {
        let end = self.name_end();
        let start = self.raw.get(..end)?;
        let (_, rest) = self.raw.split_at(end);
        (Some(start) == self.text.get(..end)).then(|| std::str::from_utf8(rest).ok()).flatten()
    }

    /// The offset of the end of the name in the unfolded bytes.
    pub(crate) fn name_end(&self) -> usize {
        self.head.0
    }

    /// Returns whether this is the name, in any case.
    #[must_use]
    #[inline]
    pub fn has_name(&self, name: &str) -> bool {
        // Length and first letter exclude most names without a comparison.
        let text = &self.text[self.name.0..self.name.1];
        text.len() == name.len()
            && text.first().map(u8::to_ascii_lowercase)
                == name.as_bytes().first().map(u8::to_ascii_lowercase)
            && text.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The parameters in order, at most 256.
    pub fn params(&self) -> impl Iterator<Item = Param<'_>> {
        self.raw_params().map(|param| param.decode())
    }

    /// Returns the parameters with these names, in any case, each with the index of its name.
    pub(crate) fn params_named<const N: usize>(
        &self,
        names: [&str; N],
    ) -> impl Iterator<Item = (usize, Param<'_>)> {
        self.raw_params().filter_map(move |param| {
            let is_it = |name: &&str| param.name.eq_ignore_ascii_case(name.as_bytes());
            Some((names.iter().position(is_it)?, param.decode()))
        })
    }

    /// Returns the first value of a parameter, by name in any case.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Cow<'_, str>> {
        let param = self.raw_param(name)?;
        param.decode().values.into_iter().next()
    }

    /// Returns the value of a single-valued parameter, by name in any case. Commas belong to the
    /// value, quoted or not: some programs name time zones with sentences.
    #[must_use]
    pub fn single_param(&self, name: &str) -> Option<Cow<'_, str>> {
        self.raw_param(name).map(|param| decode_param_value(param.value))
    }

    /// Returns the values of several single-valued parameters.
    pub(crate) fn single_params<const N: usize>(
        &self,
        names: [&str; N],
    ) -> [Option<Cow<'_, str>>; N] {
        let mut found = [const { None }; N];
        for param in self.raw_params() {
            let is_it = |name: &&str| param.name.eq_ignore_ascii_case(name.as_bytes());
            if let Some(at) = names.iter().position(is_it)
                && let Some(slot) = found.get_mut(at)
                && slot.is_none()
            {
                *slot = Some(decode_param_value(param.value));
            }
        }
        found
    }

    /// Returns whether there are parameters.
    pub(crate) fn has_params(&self) -> bool {
        self.head.0 < self.head.1
    }

    fn raw_param(&self, name: &str) -> Option<RawParam<'_>> {
        self.raw_params().find(|param| param.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Returns whether there is an unnamed parameter, which only vCard 2.1 allows.
    #[must_use]
    pub fn has_bare_param(&self) -> bool {
        self.raw_params().any(|param| param.is_bare)
    }

    /// Returns whether the property has this type: `TYPE=a,b`, `TYPE="a,b"` or `;A;B`, in any case.
    #[must_use]
    pub fn has_type(&self, wanted: &str) -> bool {
        self.raw_params().filter(|param| param.name.eq_ignore_ascii_case(b"TYPE")).any(|param| {
            param.value.split(|byte| *byte == b',').take(MAX_PARAMS_PER_PROPERTY).any(|value| {
                let is_quote = |byte: &u8| *byte == b'"' || byte.is_ascii_whitespace();
                let start = value.iter().take_while(|byte| is_quote(byte)).count();
                let end = value.iter().rev().take_while(|byte| is_quote(byte)).count();
                let value = value.get(start..value.len() - end).unwrap_or_default();
                value.eq_ignore_ascii_case(wanted.as_bytes())
            })
        })
    }

    /// The raw value without folds and soft breaks; the whole text if the line is not a property.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.is_property() { &self.text[self.head.1 + 1..] } else { &self.text }
    }

    /// The value as text: transfer encoding and character set are decoded, escapes stay. Invalid
    /// bytes are read as Windows-1252, NUL characters are removed, and base64 that is not text is
    /// returned as it is.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let (mut encoding, mut label) = (None, None);
        for param in self.raw_params() {
            if param.name.eq_ignore_ascii_case(b"ENCODING") {
                encoding = Some(strip_quotes(param.value));
            } else if param.name.eq_ignore_ascii_case(b"CHARSET") {
                label = std::str::from_utf8(strip_quotes(param.value)).ok();
            }
        }
        let is = |name: &str| {
            encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(name.as_bytes()))
        };
        let text = if is("QUOTED-PRINTABLE") || is("Q") {
            match decoding::decode_quoted_printable(self.value()) {
                Cow::Borrowed(bytes) => decoding::decode_charset(bytes, label),
                Cow::Owned(bytes) => {
                    Cow::Owned(decoding::decode_charset(&bytes, label).into_owned())
                }
            }
        } else if is("BASE64") || is("B") {
            self.decode_base64_text(label)
        } else {
            decoding::decode_charset(self.value(), label)
        };
        strip_nul(text)
    }

    /// Some programs write names and notes in base64. Pictures, sounds and keys are not decoded.
    fn decode_base64_text(&self, label: Option<&str>) -> Cow<'_, str> {
        let as_it_is = decoding::decode_charset(self.value(), None);
        if ["PHOTO", "LOGO", "SOUND", "KEY", "ATTACH", "IMAGE"]
            .iter()
            .any(|name| self.has_name(name))
        {
            return as_it_is;
        }
        match decoding::decode_base64(self.value()) {
            Some(bytes) if label.is_some() || std::str::from_utf8(&bytes).is_ok() => {
                Cow::Owned(decoding::decode_charset(&bytes, label).into_owned())
            }
            _ => as_it_is,
        }
    }

    /// Returns the parameters as written, without folds.
    fn raw_params(&self) -> impl Iterator<Item = RawParam<'_>> {
        let rest = &self.text[self.head.0..self.head.1];
        RawParams { rest, quotes: !self.has_open_quote }.take(MAX_PARAMS_PER_PROPERTY)
    }
}

/// Returns whether a byte may occur in a property name. The RFCs allow neither underscore nor
/// slash, but address books have both (`X-messaging/aim-All`).
fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/')
}

/// Returns the offset of the first colon outside quotes.
fn find_colon(head: &[u8]) -> Option<usize> {
    find_unquoted(head, b':')
}

fn find_unquoted(text: &[u8], wanted: u8) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(wanted, b'"', &text[from..])?;
        if text[at] == wanted {
            return Some(at);
        }
        from = at + 1 + memchr(b'"', &text[at + 1..])? + 1;
    }
}

/// A parameter as written.
struct RawParam<'a> {
    name: &'a [u8],
    value: &'a [u8],
    is_bare: bool,
    quotes: bool,
}

struct RawParams<'a> {
    /// The remaining parameters, starting with a semicolon.
    rest: &'a [u8],
    quotes: bool,
}

impl<'a> Iterator for RawParams<'a> {
    type Item = RawParam<'a>;

    fn next(&mut self) -> Option<RawParam<'a>> {
        loop {
            let rest = self.rest.split_first()?.1;
            let end = match self.quotes {
                true => find_unquoted(rest, b';'),
                false => memchr(b';', rest),
            };
            let (param, tail) = rest.split_at(end.unwrap_or(rest.len()));
            self.rest = tail;
            let param = param.trim_ascii();
            if param.is_empty() {
                continue;
            }
            let quotes = self.quotes;
            return Some(match memchr(b'=', param) {
                Some(at) => {
                    let (name, value) = (param[..at].trim_ascii(), param[at + 1..].trim_ascii());
                    RawParam { name, value, is_bare: false, quotes }
                }
                None => {
                    RawParam { name: bare_param_name(param), value: param, is_bare: true, quotes }
                }
            });
        }
    }
}

/// Returns the implied name of an unnamed parameter of vCard 2.1.
fn bare_param_name(value: &[u8]) -> &'static [u8] {
    let is_one =
        |names: &[&str]| names.iter().any(|name| value.eq_ignore_ascii_case(name.as_bytes()));
    if is_one(&["QUOTED-PRINTABLE", "BASE64", "7BIT", "8BIT"]) {
        b"ENCODING"
    } else if is_one(&["INLINE", "URL", "CONTENT-ID", "CID"]) {
        b"VALUE"
    } else {
        b"TYPE"
    }
}

impl<'a> RawParam<'a> {
    fn decode(&self) -> Param<'a> {
        let mut values = Vec::new();
        let mut rest = self.value;
        loop {
            let end = if self.quotes { find_unquoted(rest, b',') } else { memchr(b',', rest) };
            values.push(decode_param_value(&rest[..end.unwrap_or(rest.len())]));
            match end {
                Some(end) if values.len() < MAX_PARAMS_PER_PROPERTY => rest = &rest[end + 1..],
                _ => break,
            }
        }
        Param { name: decoding::decode_charset(self.name, None), values }
    }
}

/// Decodes a parameter value: removes quotes, NUL characters and escapes.
fn decode_param_value(raw: &[u8]) -> Cow<'_, str> {
    match strip_nul(decoding::decode_charset(strip_quotes(raw), None)) {
        Cow::Borrowed(text) => unescape_caret(text),
        Cow::Owned(text) => Cow::Owned(unescape_caret(&text).into_owned()),
    }
}

fn strip_quotes(value: &[u8]) -> &[u8] {
    match value.trim_ascii() {
        [b'"', inside @ .., b'"'] => inside,
        value => value,
    }
}

/// NUL characters are not text; they come from a wrong character set or from damage.
fn strip_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    match memchr(0, text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace('\0', "")),
        None => text,
    }
}

/// Removes the escapes of RFC 6868: `^n`, `^'` and `^^`.
fn unescape_caret(text: &str) -> Cow<'_, str> {
    if !text.contains('^') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let stands_for = match (c, chars.peek()) {
            ('^', Some('n')) => Some('\n'),
            ('^', Some('\'')) => Some('"'),
            ('^', Some('^')) => Some('^'),
            _ => None,
        };
        if stands_for.is_some() {
            chars.next();
        }
        plain.push(stands_for.unwrap_or(c));
    }
    Cow::Owned(plain)
}
