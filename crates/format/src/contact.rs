//! A contact: one vCard of version 2.1 (versit), 3.0 (RFC 2426) or 4.0 (RFC 6350).
//!
//! Parsing never fails. A [`Problem`] is a warning; a [fatal problem](Contact::fatal_problem) means
//! that the bytes are not a contact. Field values are read on request, by the rows of
//! [`crate::field`]. Cards are never written from values: the only changes to bytes are the line
//! that [`insert_uid`](crate::edit::insert_uid) adds, the lines that [`merge_cards`] takes from
//! another card, and the single values of [`card_edit`]. The output of [`convert_card`] is for
//! programs that read only one version and is never stored.

pub mod card_edit;
mod card_merge;
mod version_conversion;

pub use crate::contact::card_merge::merge_cards;
pub use crate::contact::version_conversion::convert_card;
pub use crate::item_identity::{derive_uid, is_same_item as is_same_card};
pub use crate::problem::{Problem, ProblemKind};
pub use crate::property::MAX_PROPERTIES_PER_ITEM;

use crate::content_line::{ContentLine, content_lines};
use crate::field::Field;
use crate::field_values;
use crate::properties::{ProblemCollector, PropertyList};
use crate::property::Property;
use crate::utf16::{self, Endian};

/// A parsed vCard.
#[derive(Debug, Clone)]
pub struct Contact<'a> {
    properties: PropertyList<'a>,
    problems: Vec<Problem>,
    fatal_problem: Option<Problem>,
    version: VcardVersion,
}

/// The version of the vCard format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VcardVersion {
    /// vCard 2.1 (versit).
    V2_1,
    /// vCard 3.0 (RFC 2426).
    V3_0,
    /// vCard 4.0 (RFC 6350).
    V4_0,
}

impl VcardVersion {
    /// The value of the VERSION property.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            VcardVersion::V2_1 => "2.1",
            VcardVersion::V3_0 => "3.0",
            VcardVersion::V4_0 => "4.0",
        }
    }
}

impl<'a> Contact<'a> {
    /// Parses a card: the bytes of one item as [`Splitter`](crate::splitter::Splitter) yields them.
    /// UTF-16 is detected and decoded first; line numbers stay the same.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Contact<'a> {
        match Endian::detect(bytes) {
            Some(order) => Contact::parse_text(utf16::decode(bytes, order).as_bytes()).into_owned(),
            None => Contact::parse_text(bytes.strip_prefix(utf16::BOM).unwrap_or(bytes)),
        }
    }

    fn parse_text(bytes: &'a [u8]) -> Contact<'a> {
        let mut reader = ContactReader::new(bytes);
        let mut lines = content_lines(bytes);
        for line in lines.by_ref() {
            if !reader.read_line(line) {
                break;
            }
        }
        reader.finish(lines.line_number().max(1))
    }

    fn into_owned(self) -> Contact<'static> {
        Contact {
            properties: self.properties.into_owned(),
            problems: self.problems,
            fatal_problem: self.fatal_problem,
            version: self.version,
        }
    }

    /// The version. Without a VERSION property it is guessed: a card with unnamed parameters is
    /// 2.1, any other 3.0.
    #[must_use]
    pub fn version(&self) -> VcardVersion {
        self.version
    }

    /// The properties in order, without BEGIN and END, unparsable lines, and properties of a nested
    /// card (AGENT).
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.properties.as_slice()
    }

    /// The problems that do not prevent the card from being a contact.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The problem that makes these bytes invalid as a contact, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        self.fatal_problem.as_ref()
    }

    /// The first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.properties.uids().next()
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        field_values::read_values(&self.properties, self.version.name(), field)
    }

    /// Returns the labels of these values, such as `mobile`; empty if values of the field have no
    /// labels.
    #[must_use]
    pub fn value_labels(&self, field: &Field) -> Vec<Option<String>> {
        field_values::read_labels(&self.properties, self.version.name(), field)
    }

    /// Returns the first value of a field.
    #[must_use]
    pub fn first_value(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
    }
}

/// The parser that builds a contact from its content lines.
struct ContactReader<'a> {
    contact: Contact<'a>,
    has_begun: bool,
    has_ended: bool,
    /// The number of open nested cards (AGENT of vCard 2.1).
    agents: usize,
    /// The number of other open components in the innermost card.
    inside: usize,
    problem_collector: ProblemCollector,
}

impl<'a> ContactReader<'a> {
    fn new(bytes: &[u8]) -> ContactReader<'a> {
        let contact = Contact {
            properties: PropertyList::default(),
            problems: Vec::new(),
            fatal_problem: None,
            version: VcardVersion::V3_0,
        };
        ContactReader {
            contact,
            has_begun: false,
            has_ended: false,
            agents: 0,
            inside: 0,
            problem_collector: ProblemCollector::new(bytes),
        }
    }

    /// Reads a line. Returns false when no further line is wanted.
    fn read_line(&mut self, line: ContentLine<'a>) -> bool {
        let number = line.number;
        let property = Property::parse(line);
        let is_card = property.value().trim_ascii().eq_ignore_ascii_case(b"VCARD");
        if !self.has_begun {
            if !(property.has_name("BEGIN") && is_card) {
                self.set_fatal_problem(number, ProblemKind::NotAContact);
                return false;
            }
            self.has_begun = true;
        } else if property.has_name("BEGIN") {
            self.agents += usize::from(is_card);
            self.inside += usize::from(!is_card);
        } else if property.has_name("END") && is_card {
            self.has_ended = self.agents == 0;
            (self.agents, self.inside) = (self.agents.saturating_sub(1), 0);
            return !self.has_ended;
        } else if property.has_name("END") {
            self.inside = self.inside.saturating_sub(1);
        } else if (self.agents, self.inside) == (0, 0) {
            let value = property.value().trim_ascii();
            self.agents += usize::from(
                property.has_name("AGENT") && value.eq_ignore_ascii_case(b"BEGIN:VCARD"),
            );
            return self.add_property(property);
        }
        true
    }

    fn add_property(&mut self, property: Property<'a>) -> bool {
        if !self.problem_collector.check_property(&property) {
            return true;
        }
        if self.contact.properties.as_slice().len() == MAX_PROPERTIES_PER_ITEM {
            self.set_fatal_problem(property.line_number(), ProblemKind::TooManyProperties);
            return false;
        }
        self.contact.properties.push(property);
        true
    }

    fn set_fatal_problem(&mut self, line: u32, what: ProblemKind) {
        self.contact.fatal_problem.get_or_insert(Problem { line, kind: what });
    }

    fn finish(mut self, last: u32) -> Contact<'a> {
        if !self.has_begun {
            self.set_fatal_problem(1, ProblemKind::NotAContact);
        }
        self.contact.version = self.detect_version();
        if self.contact.fatal_problem.is_none() {
            self.validate(last);
        }
        self.contact.problems = self.problem_collector.problems;
        self.contact
    }

    fn validate(&mut self, last: u32) {
        let formal = |property: &Property<'_>| {
            ["VERSION", "PRODID", "REV", "CLASS"].iter().any(|name| property.has_name(name))
                || property.value().trim_ascii().is_empty()
        };
        let properties = &self.contact.properties;
        if properties.as_slice().iter().all(formal) {
            self.set_fatal_problem(1, ProblemKind::EmptyCard);
            return;
        }
        if !self.has_ended {
            match properties.has_value(&["UID", "FN", "N"]) {
                true => self.problem_collector.add_problem(last, ProblemKind::MissingCardEnd),
                false => return self.set_fatal_problem(last, ProblemKind::MissingCardEnd),
            }
        }
        if let Some(line) = properties.second_uid_line() {
            self.problem_collector.add_problem(line, ProblemKind::SecondUid);
        }
        if !properties.has_value(&["FN", "N", "ORG", "NICKNAME", "EMAIL", "X-EVOLUTION-FILE-AS"]) {
            self.problem_collector.add_problem(1, ProblemKind::NoName);
        }
    }

    fn detect_version(&self) -> VcardVersion {
        let properties = self.contact.properties.as_slice();
        let written = properties.iter().find(|property| property.has_name("VERSION"));
        match written.map(|version| version.value().trim_ascii()) {
            Some([b'2', ..]) => VcardVersion::V2_1,
            Some([b'3', ..]) => VcardVersion::V3_0,
            Some([b'4', ..]) => VcardVersion::V4_0,
            _ if properties.iter().any(Property::has_bare_param) => VcardVersion::V2_1,
            _ => VcardVersion::V3_0,
        }
    }
}
