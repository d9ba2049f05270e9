//! What can be wrong with an item, in the words that people read.

use std::fmt;

/// Something wrong in an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1 within the item.
    pub line: u32,
    /// What is wrong there.
    pub what: Defect,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// A line without a colon; perhaps the line before lost its fold there.
    NoColon,
    /// What stands before the colon is no property name.
    BadName,
    /// A quote in the parameters is not closed.
    OpenQuote,
    /// Bytes that are not UTF-8, with nothing that says what they are.
    NotUtf8,
    /// A NUL byte.
    NulByte,
    /// The card is not closed. A card that has neither UID nor name is refused for it.
    NoEnd,
    /// Another UID than the first.
    SecondUid,
    /// Nothing that the contact could be shown by.
    NoName,
    /// More properties than [`MAX_PROPERTIES`](crate::contact::MAX_PROPERTIES); refused.
    TooManyProperties,
    /// A card without contents; refused.
    NothingInIt,
    /// It does not begin as a vCard does; refused.
    NotAContact,
    /// It does not begin as a component does; refused.
    NotAComponent,
    /// A component without contents; refused.
    EmptyComponent,
    /// The component is not closed. One that has neither UID nor time is refused for it.
    NoComponentEnd,
    /// Something inside the component is not closed.
    NoEndInside,
    /// An END that nothing was begun for.
    EndOfNothing,
    /// Another DTSTART.
    SecondStart,
    /// A value that says it is a date, and has a time.
    TimeInDate,
    /// Too many components inside each other; refused.
    TooDeep,
    /// A component with more properties than [`MAX_PROPERTIES`](crate::component::MAX_PROPERTIES); refused.
    TooLarge,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}

impl fmt::Display for Defect {
    /// Short, without the line and without a period at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Defect::NoColon => "a line without a colon, which is kept but not understood",
            Defect::BadName => {
                "a line that begins with no property name, which is kept but not understood"
            }
            Defect::OpenQuote => "a quote that is not closed before the colon",
            Defect::NotUtf8 => "not UTF-8, so read as Windows-1252",
            Defect::NulByte => "a NUL byte, which is left out of the value",
            Defect::NoEnd => "END:VCARD is missing",
            Defect::SecondUid => "a second UID, of which only the first counts",
            Defect::NoName => "a card without name, organisation and e-mail address",
            Defect::TooManyProperties => {
                return write!(
                    f,
                    "a card with more than {} properties",
                    crate::properties::MAX_PROPERTIES
                );
            }
            Defect::NothingInIt => "a card with nothing in it",
            Defect::NotAComponent => "no component of a calendar: it does not begin with BEGIN",
            Defect::EmptyComponent => "a component with nothing in it",
            Defect::NoComponentEnd => "its END is missing",
            Defect::NoEndInside => "something inside is not closed, so it ends here",
            Defect::EndOfNothing => "an END that nothing was begun for, which ends nothing",
            Defect::SecondStart => "a second DTSTART, of which only the first counts",
            Defect::TimeInDate => "a date with a time, so read as a time",
            Defect::TooLarge => {
                return write!(f, "more than {} properties", crate::properties::MAX_PROPERTIES);
            }
            Defect::TooDeep => "too many components inside each other",
            Defect::NotAContact => "no vCard: it does not begin with BEGIN:VCARD",
        })
    }
}
