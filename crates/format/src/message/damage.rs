//! What is wrong with a message, for messages to people.

use std::fmt;

/// The number of messages in a message, and of multiparts in a part, that are parsed. A message of
/// a person or of a mailing list has fewer than ten.
pub const MAX_NESTED_MESSAGES: usize = 500;

/// Damage of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageProblem {
    /// There is no header field of mail: the file may be something else.
    NoHeader,
    /// More than [`MAX_NESTED_MESSAGES`] messages or multiparts: the text after them is left out.
    NestedTooDeep,
    /// Bytes of the header are not in the declared character set.
    HeaderNotAscii,
    /// The content of a part is not in the declared transfer encoding; it is left as it is.
    BadTransferEncoding {
        /// Its place in [`Message::parts`](crate::message::Message::parts).
        part: usize,
    },
    /// The boundary behind the last part is missing: the message may be cut off.
    MissingEnd {
        /// The place of that part in [`Message::parts`](crate::message::Message::parts).
        part: usize,
    },
    /// The text of a part is not in the declared character set, which is guessed.
    BadCharset {
        /// Its place in [`Message::parts`](crate::message::Message::parts).
        part: usize,
    },
}

impl MessageProblem {
    /// Returns whether a character set was guessed, which is seldom wrong.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        matches!(self, MessageProblem::BadCharset { .. } | MessageProblem::HeaderNotAscii)
    }
}

impl fmt::Display for MessageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageProblem::NoHeader => f.write_str("no header field of mail"),
            MessageProblem::NestedTooDeep => write!(
                f,
                "more than {MAX_NESTED_MESSAGES} nested messages or parts: the text after them is left out"
            ),
            MessageProblem::HeaderNotAscii => f.write_str(
                "the header has bytes of an undeclared character set, which was guessed",
            ),
            MessageProblem::BadTransferEncoding { part } => {
                write!(f, "part {}: the transfer encoding is damaged", part + 1)
            }
            MessageProblem::MissingEnd { part } => {
                write!(f, "part {}: its end is missing, the message may be cut off", part + 1)
            }
            MessageProblem::BadCharset { part } => {
                write!(
                    f,
                    "part {}: the text is not in the declared character set, which was guessed",
                    part + 1
                )
            }
        }
    }
}
