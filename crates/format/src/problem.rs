//! Problems in items, with their messages.

use std::fmt;

/// A problem in an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The line number within the item, from 1.
    pub line: u32,
    /// The kind of problem.
    pub kind: ProblemKind,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A line without a colon; perhaps the previous line lost its fold.
    MissingColon,
    /// The text before the colon is not a property name.
    BadName,
    /// An unclosed quote in the parameters.
    UnclosedQuote,
    /// Bytes that are not UTF-8, without a declared character set.
    NotUtf8,
    /// A NUL byte.
    NulByte,
    /// The card has no END. Fatal for a card with neither UID nor name.
    MissingCardEnd,
    /// A second, different UID.
    SecondUid,
    /// The contact has nothing to be displayed by.
    NoName,
    /// More properties than [`MAX_PROPERTIES_PER_ITEM`](crate::contact::MAX_PROPERTIES_PER_ITEM);
    /// fatal.
    TooManyProperties,
    /// A card without contents; fatal.
    EmptyCard,
    /// The bytes do not begin like a vCard; fatal.
    NotAContact,
    /// The bytes do not begin like a component; fatal.
    NotAComponent,
    /// A component without contents; fatal.
    EmptyComponent,
    /// The component has no END. Fatal for a component with neither UID nor time.
    MissingComponentEnd,
    /// A subcomponent without END.
    UnclosedSubcomponent,
    /// An END without a BEGIN.
    EndWithoutBegin,
    /// A second DTSTART.
    SecondDtstart,
    /// A value declared as a date that has a time.
    TimeInDate,
    /// Subcomponents nested too deeply; fatal.
    NestedTooDeep,
    /// A component with more properties than
    /// [`MAX_PROPERTIES_PER_ITEM`](crate::component::MAX_PROPERTIES_PER_ITEM); fatal.
    TooManyComponentProperties,
}

impl ProblemKind {
    /// Returns whether the item has no END, so that it may be incomplete.
    #[must_use]
    pub fn is_missing_end(self) -> bool {
        matches!(self, ProblemKind::MissingCardEnd | ProblemKind::MissingComponentEnd)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for ProblemKind {
    /// The message, without the line number and without a final period.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProblemKind::MissingColon => "no colon in this line: it is kept but ignored",
            ProblemKind::BadName => "no property name in this line: it is kept but ignored",
            ProblemKind::UnclosedQuote => "unclosed quote before the colon",
            ProblemKind::NotUtf8 => "not UTF-8: read as Windows-1252",
            ProblemKind::NulByte => "NUL byte: removed from the value",
            ProblemKind::MissingCardEnd => "missing END:VCARD",
            ProblemKind::SecondUid => "second UID: ignored",
            ProblemKind::NoName => "no name, organisation or e-mail address in this card",
            ProblemKind::TooManyProperties => {
                return write!(
                    f,
                    "card with more than {} properties",
                    crate::property::MAX_PROPERTIES_PER_ITEM
                );
            }
            ProblemKind::EmptyCard => "empty card",
            ProblemKind::NotAComponent => "not a calendar component: no BEGIN line",
            ProblemKind::EmptyComponent => "empty component",
            ProblemKind::MissingComponentEnd => "missing END",
            ProblemKind::UnclosedSubcomponent => "unclosed subcomponent: it ends here",
            ProblemKind::EndWithoutBegin => "END without BEGIN: ignored",
            ProblemKind::SecondDtstart => "second DTSTART: ignored",
            ProblemKind::TimeInDate => "date with a time: read as a time",
            ProblemKind::TooManyComponentProperties => {
                return write!(
                    f,
                    "more than {} properties",
                    crate::property::MAX_PROPERTIES_PER_ITEM
                );
            }
            ProblemKind::NestedTooDeep => "components nested too deeply",
            ProblemKind::NotAContact => "not a vCard: no BEGIN:VCARD line",
        })
    }
}
