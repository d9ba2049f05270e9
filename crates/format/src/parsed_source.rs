//! The parsed source of an item of any kind. Only this module chooses a parser.
//!
//! The later stages read values and problems here, and name the parser of a kind only in the module
//! of that kind. The parsers implement `ItemSource` here, so that the stages after this
//! one need no change for a further one.

#[cfg(feature = "toy-kind")]
use crate::bookmark::Bookmark;
use crate::commit::Commit;
use crate::component::{CalendarVersion, Component};
use crate::contact::Contact;
use crate::field::Field;
use crate::kind::{Kind, SourceFormat};
use crate::label::LabelList;
use crate::message::Message;
use crate::problem::Problem;
use crate::property::Property;
use crate::saved_search::SavedSearchSource;

/// The parsed source of an item, by its format.
#[derive(Debug, Clone)]
pub enum ParsedSource<'a> {
    /// A vCard.
    Card(Contact<'a>),
    /// A component of a calendar.
    Component(Component<'a>),
    /// A mail message.
    Message(Box<Message>),
    /// A commit of git.
    Commit(Box<Commit>),
    /// A bookmark.
    #[cfg(feature = "toy-kind")]
    Bookmark(Bookmark<'a>),
    /// The labels of a message.
    Labels(LabelList),
    /// A saved search.
    SavedSearch(SavedSearchSource<'a>),
}

impl<'a> ParsedSource<'a> {
    /// Parses the source bytes of an item of this kind; `version` is the version of the enclosing
    /// calendar, if there is one.
    #[must_use]
    pub fn parse(kind: Kind, version: CalendarVersion, bytes: &'a [u8]) -> ParsedSource<'a> {
        match kind.source_format() {
            SourceFormat::Vcard => ParsedSource::Card(Contact::parse(bytes)),
            SourceFormat::Icalendar => {
                ParsedSource::Component(Component::parse_with_version(bytes, version))
            }
            SourceFormat::Mail => ParsedSource::Message(Box::new(Message::parse(bytes))),
            SourceFormat::Commit => ParsedSource::Commit(Box::new(Commit::parse(bytes))),
            #[cfg(feature = "toy-kind")]
            SourceFormat::Bookmark => ParsedSource::Bookmark(Bookmark::parse(bytes)),
            SourceFormat::Labels => ParsedSource::Labels(LabelList::parse(bytes)),
            SourceFormat::SavedSearch => ParsedSource::SavedSearch(SavedSearchSource::parse(bytes)),
        }
    }

    fn as_item(&self) -> &dyn ItemSource<'a> {
        match self {
            ParsedSource::Card(card) => card,
            ParsedSource::Component(component) => component,
            ParsedSource::Message(message) => message.as_ref(),
            ParsedSource::Commit(commit) => commit.as_ref(),
            #[cfg(feature = "toy-kind")]
            ParsedSource::Bookmark(bookmark) => bookmark,
            ParsedSource::Labels(labels) => labels,
            ParsedSource::SavedSearch(search) => search,
        }
    }

    /// Returns the values of a field in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        self.as_item().values(field)
    }

    /// Returns the labels of these values, such as `mobile`; empty if values of the field have no
    /// labels.
    #[must_use]
    pub fn value_labels(&self, field: &Field) -> Vec<Option<String>> {
        match self {
            ParsedSource::Card(card) => card.value_labels(field),
            _ => Vec::new(),
        }
    }

    /// Returns the first value of a field.
    #[must_use]
    pub fn first_value(&self, field: &Field) -> Option<String> {
        self.values(field).into_iter().next()
    }

    /// Returns the first UID that is not empty.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        self.as_item().uid()
    }

    /// Returns the properties of the item itself, in order.
    #[must_use]
    pub fn properties(&self) -> &[Property<'a>] {
        self.as_item().properties()
    }

    /// Returns the problems that do not prevent the bytes from being an item.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.as_item().problems()
    }

    /// Returns the problem because of which the bytes are not an item, if there is one.
    #[must_use]
    pub fn fatal_problem(&self) -> Option<&Problem> {
        self.as_item().fatal_problem()
    }

    /// Returns the component, for kinds that are components of a calendar.
    #[must_use]
    pub fn component(&self) -> Option<&Component<'a>> {
        if let ParsedSource::Component(component) = self { Some(component) } else { None }
    }
}

/// The parts of an item that every format has.
trait ItemSource<'a> {
    fn values(&self, field: &Field) -> Vec<String>;
    fn uid(&self) -> Option<String>;
    fn properties(&self) -> &[Property<'a>];
    fn problems(&self) -> &[Problem];
    fn fatal_problem(&self) -> Option<&Problem>;
}

/// A message has no properties, and what it cannot be parsed as is its own list of problems.
impl<'a> ItemSource<'a> for Message {
    fn values(&self, field: &Field) -> Vec<String> {
        Message::values(self, field)
    }

    fn uid(&self) -> Option<String> {
        self.headers.message_id.clone()
    }

    fn properties(&self) -> &[Property<'a>] {
        &[]
    }

    fn problems(&self) -> &[Problem] {
        &[]
    }

    fn fatal_problem(&self) -> Option<&Problem> {
        None
    }
}

/// A commit has no properties. It is known by the hash of its bytes, which are not in it.
impl<'a> ItemSource<'a> for Commit {
    fn values(&self, field: &Field) -> Vec<String> {
        Commit::values(self, field)
    }

    fn uid(&self) -> Option<String> {
        (!self.hash.is_empty()).then(|| self.hash.clone())
    }

    fn properties(&self) -> &[Property<'a>] {
        &[]
    }

    fn problems(&self) -> &[Problem] {
        &[]
    }

    fn fatal_problem(&self) -> Option<&Problem> {
        None
    }
}

/// Labels have no fields, and the message that they belong to is known by the UID of the item.
impl<'a> ItemSource<'a> for LabelList {
    fn values(&self, _field: &Field) -> Vec<String> {
        Vec::new()
    }

    fn uid(&self) -> Option<String> {
        None
    }

    fn properties(&self) -> &[Property<'a>] {
        &[]
    }

    fn problems(&self) -> &[Problem] {
        &[]
    }

    fn fatal_problem(&self) -> Option<&Problem> {
        None
    }
}

/// Implements `ItemSource` by the methods of the same names.
macro_rules! implement_item_source {
    ($parser:ident) => {
        impl<'a> ItemSource<'a> for $parser<'a> {
            fn values(&self, field: &Field) -> Vec<String> {
                $parser::values(self, field)
            }

            fn uid(&self) -> Option<String> {
                $parser::uid(self)
            }

            fn properties(&self) -> &[Property<'a>] {
                $parser::properties(self)
            }

            fn problems(&self) -> &[Problem] {
                $parser::problems(self)
            }

            fn fatal_problem(&self) -> Option<&Problem> {
                $parser::fatal_problem(self)
            }
        }
    };
}

implement_item_source!(Contact);
implement_item_source!(Component);
#[cfg(feature = "toy-kind")]
implement_item_source!(Bookmark);
implement_item_source!(SavedSearchSource);
