//! A contact: one vCard, of version 2.1 (versit), 3.0 (RFC 2426) or 4.0 (RFC 6350).
//!
//! Reading never fails. What a person should know about a card is a [`Problem`]; what makes it no contact
//! is its [refusal](Contact::refusal). The values of fields are read when asked for, by the rows of
//! [`crate::field`]. Cards are never written from values: the only changes that are made to bytes here are
//! the line that [`with_uid`] adds, and those that [`joined`](joined()) takes over from another card.

mod identity;
mod joined;
mod problem;
mod value;
mod written;

pub use crate::contact::identity::{derived_uid, same_card, with_uid};
pub use crate::contact::joined::joined;
pub use crate::contact::problem::{Defect, Problem};

use crate::field::Field;
use crate::line::{Line, lines};
use crate::property::Property;
use crate::wide::{self, Order};

/// A card with more properties than this is refused.
pub const MAX_PROPERTIES: usize = 65_536;
/// Of more problems than this in one card, the rest is not told.
const MAX_PROBLEMS: usize = 20;

/// A vCard, taken apart.
#[derive(Debug, Clone)]
pub struct Contact<'a> {
    properties: Vec<Property<'a>>,
    problems: Vec<Problem>,
    refusal: Option<Problem>,
    version: Version,
    /// Which names the properties may have: most fields are in few cards, and are known not to be there
    /// without looking at all properties.
    names: NameSet,
}

/// A set of names that may also hold others.
#[derive(Debug, Clone, Copy, Default)]
struct NameSet(u64);

impl NameSet {
    fn bit(name: &str) -> u64 {
        let (first, last) = match name.as_bytes() {
            [first, .., last] => (first | 0x20, last | 0x20),
            _ => (0, 0),
        };
        1 << ((name.len() * 11 + usize::from(first) * 5 + usize::from(last)) % 64)
    }

    fn add(&mut self, name: &str) {
        self.0 |= NameSet::bit(name);
    }

    fn may_hold(self, name: &str) -> bool {
        self.0 & NameSet::bit(name) != 0
    }
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// vCard 2.1 (versit).
    V2_1,
    /// vCard 3.0 (RFC 2426).
    V3_0,
    /// vCard 4.0 (RFC 6350).
    V4_0,
}

impl Version {
    /// As the VERSION property has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::V2_1 => "2.1",
            Version::V3_0 => "3.0",
            Version::V4_0 => "4.0",
        }
    }
}

impl<'a> Contact<'a> {
    /// Takes a card apart: the bytes of one item, as [`Splitter`](crate::split::Splitter) gives them.
    /// UTF-16 is recognised and decoded first; the numbers of lines are the same.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Contact<'a> {
        match Order::of(bytes) {
            Some(order) => Contact::read(wide::decode(bytes, order).as_bytes()).into_owned(),
            None => Contact::read(bytes.strip_prefix(wide::BOM).unwrap_or(bytes)),
        }
    }

    fn read(bytes: &'a [u8]) -> Contact<'a> {
        let mut reader = Reader::new(bytes);
        let mut lines = lines(bytes);
        for line in lines.by_ref() {
            if !reader.take(line) {
                break;
            }
        }
        reader.finish(lines.number().max(1))
    }

    fn into_owned(self) -> Contact<'static> {
        Contact {
            properties: self.properties.into_iter().map(Property::into_owned).collect(),
            problems: self.problems,
            refusal: self.refusal,
            version: self.version,
            names: self.names,
        }
    }

    /// Its version; where the card does not say, a guess: parameters without a name are 2.1's, all else
    /// is read as 3.0.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its properties in order: without BEGIN and END, without unknown lines, and without those of a card
    /// inside (AGENT).
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        &self.properties
    }

    /// What is wrong with it, but does not keep it from being a contact.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What makes these bytes no contact, if anything does.
    #[must_use]
    pub fn refusal(&self) -> Option<&Problem> {
        self.refusal.as_ref()
    }

    /// The first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.uids().next()
    }

    fn uids(&self) -> impl Iterator<Item = String> {
        self.properties
            .iter()
            .filter(|property| property.is("UID"))
            .filter_map(|property| value::clean(&crate::decode::unescape_text(&property.text())))
    }

    /// The values that the card has for a field, in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        value::values(self, field)
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
    }

    /// Has it a value in one of these properties?
    fn has(&self, names: &[&str]) -> bool {
        let filled = |property: &Property<'_>| {
            property.value().iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b';' | b','))
        };
        self.properties
            .iter()
            .any(|property| names.iter().any(|name| property.is(name)) && filled(property))
    }
}

/// Takes lines and makes a contact of them.
struct Reader<'a> {
    contact: Contact<'a>,
    begun: bool,
    ended: bool,
    /// How many cards are open within this one (AGENT of vCard 2.1).
    agents: usize,
    /// How many other components are open in the innermost card.
    inside: usize,
    /// The whole card is valid UTF-8, so that no line has to be looked at for that.
    valid: bool,
    has_nul: bool,
    /// The line before was an unknown one: a run of those is one problem.
    unknown: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &[u8]) -> Reader<'a> {
        let contact = Contact {
            properties: Vec::new(),
            problems: Vec::new(),
            refusal: None,
            version: Version::V3_0,
            names: NameSet::default(),
        };
        Reader {
            contact,
            begun: false,
            ended: false,
            agents: 0,
            inside: 0,
            valid: std::str::from_utf8(bytes).is_ok(),
            has_nul: memchr::memchr(0, bytes).is_some(),
            unknown: false,
        }
    }

    /// Takes a line; false where no other is wanted.
    fn take(&mut self, line: Line<'a>) -> bool {
        let number = line.number;
        let property = Property::parse(line);
        let is_card = property.value().trim_ascii().eq_ignore_ascii_case(b"VCARD");
        if !self.begun {
            if !(property.is("BEGIN") && is_card) {
                self.refuse(number, Defect::NotAContact);
                return false;
            }
            self.begun = true;
        } else if property.is("BEGIN") {
            self.agents += usize::from(is_card);
            self.inside += usize::from(!is_card);
        } else if property.is("END") && is_card {
            self.ended = self.agents == 0;
            (self.agents, self.inside) = (self.agents.saturating_sub(1), 0);
            return !self.ended;
        } else if property.is("END") {
            self.inside = self.inside.saturating_sub(1);
        } else if (self.agents, self.inside) == (0, 0) {
            let value = property.value().trim_ascii();
            self.agents +=
                usize::from(property.is("AGENT") && value.eq_ignore_ascii_case(b"BEGIN:VCARD"));
            return self.keep(property);
        }
        true
    }

    fn keep(&mut self, property: Property<'a>) -> bool {
        let number = property.number();
        if self.has_nul && memchr::memchr(0, property.raw()).is_some() {
            self.note(number, Defect::NulByte);
        }
        if !property.is_known() {
            if !self.unknown {
                let what = if property.has_colon() { Defect::BadName } else { Defect::NoColon };
                self.note(number, what);
            }
            self.unknown = true;
            return true;
        }
        self.unknown = false;
        if property.has_open_quote() {
            self.note(number, Defect::OpenQuote);
        }
        if !self.valid
            && std::str::from_utf8(property.value()).is_err()
            && property.param("CHARSET").is_none()
        {
            self.note(number, Defect::NotUtf8);
        }
        if self.contact.properties.len() == MAX_PROPERTIES {
            self.refuse(number, Defect::TooManyProperties);
            return false;
        }
        self.contact.names.add(property.name());
        self.contact.properties.push(property);
        true
    }

    /// Notes a problem. What holds for a card as a whole is said once, and nothing without end.
    fn note(&mut self, line: u32, what: Defect) {
        let problems = &mut self.contact.problems;
        let once = matches!(what, Defect::NotUtf8 | Defect::NulByte);
        let said = problems.iter().any(|problem| once && problem.what == what);
        if problems.len() < MAX_PROBLEMS && !said {
            problems.push(Problem { line, what });
        }
    }

    fn refuse(&mut self, line: u32, what: Defect) {
        self.contact.refusal.get_or_insert(Problem { line, what });
    }

    fn finish(mut self, last: u32) -> Contact<'a> {
        if !self.begun {
            self.refuse(1, Defect::NotAContact);
        }
        self.contact.version = self.version();
        if self.contact.refusal.is_none() {
            self.judge(last);
        }
        self.contact
    }

    fn judge(&mut self, last: u32) {
        let formal = |property: &Property<'_>| {
            ["VERSION", "PRODID", "REV", "CLASS"].iter().any(|name| property.is(name))
                || property.value().trim_ascii().is_empty()
        };
        if self.contact.properties.iter().all(formal) {
            self.refuse(1, Defect::NothingInIt);
            return;
        }
        if !self.ended {
            match self.contact.has(&["UID", "FN", "N"]) {
                true => self.note(last, Defect::NoEnd),
                false => return self.refuse(last, Defect::NoEnd),
            }
        }
        let mut uids = self.contact.uids();
        let first = uids.next();
        let second = uids.find(|uid| Some(uid) != first.as_ref());
        drop(uids);
        if second.is_some() {
            let is_second = |property: &&Property<'_>| {
                property.is("UID")
                    && second == value::clean(&crate::decode::unescape_text(&property.text()))
            };
            let line = self.contact.properties.iter().find(is_second).map_or(1, Property::number);
            self.note(line, Defect::SecondUid);
        }
        if !self.contact.has(&["FN", "N", "ORG", "NICKNAME", "EMAIL", "X-EVOLUTION-FILE-AS"]) {
            self.note(1, Defect::NoName);
        }
    }

    fn version(&self) -> Version {
        let properties = &self.contact.properties;
        let written = properties.iter().find(|property| property.is("VERSION"));
        match written.map(|version| version.value().trim_ascii()) {
            Some([b'2', ..]) => Version::V2_1,
            Some([b'3', ..]) => Version::V3_0,
            Some([b'4', ..]) => Version::V4_0,
            _ if properties.iter().any(Property::has_bare_param) => Version::V2_1,
            _ => Version::V3_0,
        }
    }
}
