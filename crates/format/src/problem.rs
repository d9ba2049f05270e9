//! What can be wrong with an item, in the words that people read.

use std::fmt;

/// Something wrong in an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1 within the item.
    pub line: u32,
    /// What is wrong there.
    pub kind: ProblemKind,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A line without a colon; perhaps the line before lost its fold there.
    MissingColon,
    /// What stands before the colon is no property name.
    BadName,
    /// A quote in the parameters is not closed.
    UnclosedQuote,
    /// Bytes that are not UTF-8, with nothing that says what they are.
    NotUtf8,
    /// A NUL byte.
    NulByte,
    /// The card is not closed. A card that has neither UID nor name is refused for it.
    MissingCardEnd,
    /// Another UID than the first.
    SecondUid,
    /// Nothing that the contact could be shown by.
    NoName,
    /// More properties than [`MAX_PROPERTIES`](crate::contact::MAX_PROPERTIES); refused.
    TooManyProperties,
    /// A card without contents; refused.
    EmptyCard,
    /// It does not begin as a vCard does; refused.
    NotAContact,
    /// It does not begin as a component does; refused.
    NotAComponent,
    /// A component without contents; refused.
    EmptyComponent,
    /// The component is not closed. One that has neither UID nor time is refused for it.
    MissingComponentEnd,
    /// Something inside the component is not closed.
    UnclosedSubcomponent,
    /// An END that nothing was begun for.
    EndWithoutBegin,
    /// Another DTSTART.
    SecondDtstart,
    /// A value that says it is a date, and has a time.
    TimeInDate,
    /// Too many components inside each other; refused.
    NestedTooDeep,
    /// A component with more properties than
    /// [`MAX_PROPERTIES`](crate::add_structured_part::MAX_PROPERTIES_PER_ITEM); refused.
    TooManyComponentProperties,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for ProblemKind {
    /// Short, without the line and without a period at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProblemKind::MissingColon => "a line without a colon, which is kept but not understood",
            ProblemKind::BadName => {
                "a line that begins with no property name, which is kept but not understood"
            }
            ProblemKind::UnclosedQuote => "a quote that is not closed before the colon",
            ProblemKind::NotUtf8 => "not UTF-8, so read as Windows-1252",
            ProblemKind::NulByte => "a NUL byte, which is left out of the value",
            ProblemKind::MissingCardEnd => "END:VCARD is missing",
            ProblemKind::SecondUid => "a second UID, of which only the first counts",
            ProblemKind::NoName => "a card without name, organisation and e-mail address",
            ProblemKind::TooManyProperties => {
                return write!(
                    f,
                    "a card with more than {} properties",
                    crate::properties::MAX_PROPERTIES_PER_ITEM
                );
            }
            ProblemKind::EmptyCard => "a card with nothing in it",
            ProblemKind::NotAComponent => {
                "no component of a calendar: it does not begin with BEGIN"
            }
            ProblemKind::EmptyComponent => "a component with nothing in it",
            ProblemKind::MissingComponentEnd => "its END is missing",
            ProblemKind::UnclosedSubcomponent => "something inside is not closed, so it ends here",
            ProblemKind::EndWithoutBegin => "an END that nothing was begun for, which ends nothing",
            ProblemKind::SecondDtstart => "a second DTSTART, of which only the first counts",
            ProblemKind::TimeInDate => "a date with a time, so read as a time",
            ProblemKind::TooManyComponentProperties => {
                return write!(
                    f,
                    "more than {} properties",
                    crate::properties::MAX_PROPERTIES_PER_ITEM
                );
            }
            ProblemKind::NestedTooDeep => "too many components inside each other",
            ProblemKind::NotAContact => "no vCard: it does not begin with BEGIN:VCARD",
        })
    }
}
