//! The parsed source of an item of any kind: the one place that chooses a parser.
//!
//! The later stages read values and problems here, and name the parser of a kind only in the module
//! of that kind.

use crate::component::{CalendarVersion, Component};
use crate::contact::Contact;
use crate::field::Field;
use crate::kind::{Kind, SourceFormat};
use crate::problem::Problem;
use crate::property::Property;

/// The parsed source of an item, by its format.
#[derive(Debug, Clone)]
pub enum ParsedSource<'a> {
    /// A vCard.
    Card(Contact<'a>),
    /// A component of a calendar.
    Component(Component<'a>),
}

impl<'a> ParsedSource<'a> {
    /// Parses the source bytes of an item of this kind; `version` is that of the calendar around
    /// it, if it stands in one.
    #[must_use]
    pub fn parse(kind: Kind, version: CalendarVersion, bytes: &'a [u8]) -> ParsedSource<'a> {
        match kind.source_format() {
            SourceFormat::Vcard => ParsedSource::Card(Contact::parse(bytes)),
            SourceFormat::Icalendar => {
                ParsedSource::Component(Component::parse_with_version(bytes, version))
            }
        }
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        match self {
            ParsedSource::Card(card) => card.values(field),
            ParsedSource::Component(component) => component.values(field),
        }
    }

    /// Returns the first value of a field.
    #[must_use]
    pub fn first_value(&self, field: &Field) -> Option<String> {
        match self {
            ParsedSource::Card(card) => card.first_value(field),
            ParsedSource::Component(component) => component.first_value(field),
        }
    }

    /// Returns the first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        match self {
            ParsedSource::Card(card) => card.uid(),
            ParsedSource::Component(component) => component.uid(),
        }
    }

    /// Returns the properties of the item itself, in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        match self {
            ParsedSource::Card(card) => card.properties(),
            ParsedSource::Component(component) => component.properties(),
        }
    }

    /// Returns the problems that do not prevent the bytes from being an item.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            ParsedSource::Card(card) => card.problems(),
            ParsedSource::Component(component) => component.problems(),
        }
    }

    /// Returns the problem because of which the bytes are not an item, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        match self {
            ParsedSource::Card(card) => card.fatal_problem(),
            ParsedSource::Component(component) => component.fatal_problem(),
        }
    }

    /// Returns the component, for kinds that are components of a calendar.
    #[must_use]
    pub fn component(&self) -> Option<&Component<'a>> {
        match self {
            ParsedSource::Component(component) => Some(component),
            ParsedSource::Card(_) => None,
        }
    }
}
