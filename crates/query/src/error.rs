//! What can be wrong with a question, or go wrong while it is answered.

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no question.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A field to sort by that does not exist.
    #[error("there is no field {name:?} to sort by")]
    NoField {
        /// The name asked for.
        name: String,
        /// The field that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// A query id of live views that no query is registered under: its last view was closed.
    #[error("no live query has the id {id}")]
    UnknownQuery {
        /// The id.
        id: u32,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
}

/// What is wrong with the text of a question, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (at character {at} of the query)")]
pub struct SyntaxError {
    /// What is wrong, and with what.
    pub what: String,
    /// Where it begins: characters from the beginning of the text, from 1.
    pub at: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

impl SyntaxError {
    /// An error at byte `at` of `text`.
    pub(crate) fn new(text: &str, at: usize, what: impl Into<String>) -> SyntaxError {
        let before = text.get(..at).map_or(0, |before| before.chars().count());
        SyntaxError { what: what.into(), at: before + 1, hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> SyntaxError {
        self.hint = Some(hint.into());
        self
    }
}
