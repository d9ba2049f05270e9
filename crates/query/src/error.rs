//! Errors of a search, and of the text of a query.

/// The reason that a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text cannot be parsed.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The field to sort by does not exist.
    #[error("unknown field {name:?}")]
    NoField {
        /// The name in the request.
        name: String,
        /// The field with the most similar name.
        nearest: Option<&'static str>,
    },
    /// A query id of live views under which no query is registered: its last view was closed.
    #[error("unknown query id {id}")]
    UnknownQuery {
        /// The id.
        id: u32,
    },
    /// The query has too many terms for the number and size of the items. No answer is given rather
    /// than a part of it.
    #[error(
        "the query is too expensive: it takes more than {max_steps} steps, each the comparison of one term with one byte of an item"
    )]
    StepLimit {
        /// The budget.
        max_steps: u64,
    },
    /// A term of a query for messages takes too long. No answer is given rather than a part of it.
    #[error("the query is too expensive: {term:?} has to be looked up in too many messages")]
    MailWorkLimit {
        /// The term that the budget ended at.
        term: String,
    },
    /// Items were left out because their bytes do not match their checksums: several, else it is
    /// an error of the store.
    #[error("{first}; damaged as well: {}", join_objects(others))]
    DamagedItems {
        /// The error of the first one.
        first: Box<larder_store::Error>,
        /// The others.
        others: Vec<larder_store::DamagedObject>,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
}

impl Error {
    /// Returns whether the query is to blame: its text, or its cost. Other queries can be run.
    #[must_use]
    pub fn is_of_query(&self) -> bool {
        matches!(
            self,
            Error::Syntax(_)
                | Error::NoField { .. }
                | Error::StepLimit { .. }
                | Error::MailWorkLimit { .. }
        )
    }
}

fn join_objects(objects: &[larder_store::DamagedObject]) -> String {
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An error in the text of a query, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at} of the query)")]
pub struct SyntaxError {
    /// The message.
    pub message: String,
    /// The position, in characters from the start of the text, from 1.
    pub at: usize,
    /// How to correct it.
    pub hint: Option<String>,
}

impl SyntaxError {
    /// An error at byte `at` of `text`.
    pub(crate) fn new(text: &str, at: usize, message: impl Into<String>) -> SyntaxError {
        let before = text.get(..at).map_or(0, |before| before.chars().count());
        SyntaxError { message: message.into(), at: before + 1, hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> SyntaxError {
        self.hint = Some(hint.into());
        self
    }
}

/// The longest text of a query.
pub const MAX_QUERY_BYTES: usize = 1 << 20;

/// The deepest nesting of a search line, for items and for messages.
pub(crate) const MAX_LINE_DEPTH: usize = 100;

/// The most words, parentheses and operators of a search line.
pub(crate) const MAX_LINE_TOKENS: usize = 16_384;

/// Refuses the text of a query that is too long.
pub(crate) fn check_length(text: &str) -> Result<(), SyntaxError> {
    if text.len() <= MAX_QUERY_BYTES {
        return Ok(());
    }
    let at = text.floor_char_boundary(MAX_QUERY_BYTES);
    Err(SyntaxError::new(text, at, format!("the query is longer than {MAX_QUERY_BYTES} bytes")))
}
