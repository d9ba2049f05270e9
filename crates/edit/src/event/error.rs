//! Reasons why an event, a task or a memo cannot be changed.
//!
//! Separate from its users because every module that changes a component returns it.

use super::new_event::EventRequestError;
use larder_date_phrase::PhraseError;
use larder_format::problem::Problem;
use larder_time::rule::RuleError;

/// The reason why a change to an event, a task or a memo is impossible. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// The item recurs, and the scope is missing.
    #[error("the item recurs: choose which occurrences to change")]
    NeedsScope,
    /// The scope starts at an occurrence, and the occurrence is missing.
    #[error("the item recurs: choose the occurrence to change")]
    NeedsOccurrence,
    /// The occurrence has an override that applies to all following ones, too.
    #[error("the override of this occurrence applies to all following ones (RANGE=THISANDFUTURE)")]
    FollowingOverride,
    /// The series has no such occurrence.
    #[error("the series has no occurrence at {0}")]
    NoOccurrence(String),
    /// The day has several occurrences.
    #[error("several occurrences on that day: add the time of one")]
    AmbiguousOccurrence,
    /// The item has no time to change.
    #[error("the item has no date or time that could be changed")]
    NoTime,
    /// The series cannot be split at the occurrence.
    #[error(
        "cannot split the series at this occurrence: the two parts would not have the same occurrences as the series"
    )]
    CannotSplit,
    /// The rule has too many occurrences to count.
    #[error("cannot split the series: its rule has too many occurrences to count")]
    TooManyOccurrences,
    /// The new start is no occurrence of the rule.
    #[error("the new start is not in the recurrence set: set a new rule as well")]
    NeedsRule,
    /// The moved series would have other occurrences.
    #[error(
        "cannot move the series: with its rule, removed or changed occurrences would come back, or some would be added or lost: set a new rule as well"
    )]
    CannotMove,
    /// A rule for a single occurrence.
    #[error("a single occurrence cannot have a rule")]
    RuleOnOccurrence,
    /// The start is no occurrence of the new rule.
    #[error("the start is not in the recurrence set of the new rule: set a new start as well")]
    NeedsStart,
    /// The start is a date and the end a time, or the reverse.
    #[error("the start and the end must both be dates, or both be times")]
    MixedDateAndTime,
    /// The field does not exist, or cannot be set.
    #[error("field {0:?} cannot be set")]
    UnknownField(String),
    /// The field does not take the value.
    #[error("{text:?} is not a valid {name}: use {expected}")]
    InvalidValue {
        /// The field.
        name: String,
        /// The value.
        text: String,
        /// A description of valid values.
        expected: String,
    },
    /// The item is a vCalendar 1.0.
    #[error("occurrences in vCalendar 1.0 format cannot be changed")]
    UnsupportedVersion,
    /// The changed item would be invalid.
    #[error("line {}: {}", .0.line, .0)]
    InvalidItem(Problem),
    /// A zone, a time or a duration is invalid.
    #[error(transparent)]
    Request(#[from] EventRequestError),
    /// A date phrase is invalid.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// A rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
}
