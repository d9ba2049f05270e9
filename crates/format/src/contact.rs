//! A contact: one vCard, of version 2.1 (versit), 3.0 (RFC 2426) or 4.0 (RFC 6350).
//!
//! Reading never fails. What a person should know about a card is a [`Problem`]; what makes it no contact
//! is its [refusal](Contact::refusal). The values of fields are read when asked for, by the rows of
//! [`crate::field`]. Cards are never written from values: the only changes that are made to bytes here are
//! the line that [`with_uid`] adds, and those that [`joined`](joined()) takes over from another card. What [`rewritten`] gives is
//! for programs that read only one version, never to be kept.

mod joined;
mod written;

pub use crate::contact::joined::joined;
pub use crate::contact::written::rewritten;
pub use crate::identity::{derived_uid, same_item as same_card, with_uid};
pub use crate::problem::{Defect, Problem};
pub use crate::properties::MAX_PROPERTIES;

use crate::field::Field;
use crate::line::{Line, lines};
use crate::properties::{Notes, Properties};
use crate::property::Property;
use crate::value;
use crate::wide::{self, Order};

/// A vCard, taken apart.
#[derive(Debug, Clone)]
pub struct Contact<'a> {
    properties: Properties<'a>,
    problems: Vec<Problem>,
    refusal: Option<Problem>,
    version: Version,
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
            properties: self.properties.into_owned(),
            problems: self.problems,
            refusal: self.refusal,
            version: self.version,
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
        self.properties.all()
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
        self.properties.uids().next()
    }

    /// The values that the card has for a field, in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        value::values(&self.properties, self.version.name(), field)
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
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
    notes: Notes,
}

impl<'a> Reader<'a> {
    fn new(bytes: &[u8]) -> Reader<'a> {
        let contact = Contact {
            properties: Properties::default(),
            problems: Vec::new(),
            refusal: None,
            version: Version::V3_0,
        };
        Reader {
            contact,
            begun: false,
            ended: false,
            agents: 0,
            inside: 0,
            notes: Notes::new(bytes),
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
        if !self.notes.look_at(&property) {
            return true;
        }
        if self.contact.properties.all().len() == MAX_PROPERTIES {
            self.refuse(property.number(), Defect::TooManyProperties);
            return false;
        }
        self.contact.properties.push(property);
        true
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
        self.contact.problems = self.notes.problems;
        self.contact
    }

    fn judge(&mut self, last: u32) {
        let formal = |property: &Property<'_>| {
            ["VERSION", "PRODID", "REV", "CLASS"].iter().any(|name| property.is(name))
                || property.value().trim_ascii().is_empty()
        };
        let properties = &self.contact.properties;
        if properties.all().iter().all(formal) {
            self.refuse(1, Defect::NothingInIt);
            return;
        }
        if !self.ended {
            match properties.has(&["UID", "FN", "N"]) {
                true => self.notes.note(last, Defect::NoEnd),
                false => return self.refuse(last, Defect::NoEnd),
            }
        }
        if let Some(line) = properties.second_uid() {
            self.notes.note(line, Defect::SecondUid);
        }
        if !properties.has(&["FN", "N", "ORG", "NICKNAME", "EMAIL", "X-EVOLUTION-FILE-AS"]) {
            self.notes.note(1, Defect::NoName);
        }
    }

    fn version(&self) -> Version {
        let properties = self.contact.properties.all();
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
