//! Why a change of an event cannot be made.

use super::new_event::EventRequestError;
use larder_date_phrase::PhraseError;
use larder_format::problem::Problem;
use larder_time::rule::RuleError;

/// Why a change of an event, a task or a memo cannot be made. Nothing of it is done then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// It recurs, and it was not said what is meant.
    #[error("it recurs: say which of its occurrences are meant")]
    NeedsScope,
    /// One occurrence, or it and those that follow, and it was not said which.
    #[error("it recurs: say which of its occurrences is meant")]
    NeedsOccurrence,
    /// There is none at that time.
    #[error("there is no occurrence at that time ({0})")]
    NoOccurrence(String),
    /// Several on that day.
    #[error("there are several occurrences on that day: say at what time")]
    AmbiguousOccurrence,
    /// It has no time at all.
    #[error("it has no time that could be changed")]
    NoTime,
    /// It cannot be divided at that occurrence.
    #[error(
        "it cannot be divided there: its rule means something else when it begins with that occurrence"
    )]
    CannotSplit,
    /// Its rule has too many occurrences to count them.
    #[error("its rule has too many occurrences to count them")]
    TooManyOccurrences,
    /// The new beginning does not match the rule.
    #[error("its rule does not have the new beginning: give it a new rule, too")]
    NeedsRule,
    /// A rule for one occurrence.
    #[error("one occurrence has no rule")]
    RuleOnOccurrence,
    /// The beginning does not match the new rule.
    #[error("its new rule does not have its beginning: give it a new beginning, too")]
    NeedsStart,
    /// One of its ends is a day and the other a time.
    #[error("one end is a day and the other a time")]
    MixedDateAndTime,
    /// There is no such property, or it cannot be set like this.
    #[error("{0:?} cannot be set")]
    UnknownField(String),
    /// A property does not take such a value.
    #[error("{text:?} is no {name}: write {expected}")]
    InvalidValue {
        /// The field.
        name: String,
        /// What was said.
        text: String,
        /// What would do.
        expected: String,
    },
    /// A calendar of the format before iCalendar.
    #[error("it is a vCalendar 1.0, whose occurrences cannot be changed one by one")]
    UnsupportedVersion,
    /// What would become of it is no item.
    #[error("line {}: {}", .0.line, .0)]
    InvalidItem(Problem),
    /// A zone, a time or a length is none.
    #[error(transparent)]
    Request(#[from] EventRequestError),
    /// A time or a length is none.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// A rule is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
}
