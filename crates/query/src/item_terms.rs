//! The names that search lines have for contacts, events, tasks and memos.
//!
//! Separate from `search_line`, which parses them: queries for mail know these names, too, because
//! a line may be searched in items of all kinds, and the parsers must not use each other.

use crate::time_test::DateProperty;
use larder_format::collection_type::find_any_field;
use larder_store::Kind;

/// The names of terms that are no fields.
const TERM_NAMES: &[&str] = &["has", "is", "when", "alarm", "priority"];

/// The values of `is:`, kinds aside.
const STATE_NAMES: &[&str] = &[
    "recurring",
    "completed",
    "done",
    "cancelled",
    "canceled",
    "tentative",
    "all-day",
    "allday",
    "all_day",
    "overdue",
];

/// Returns whether a search line has terms of this name.
pub(crate) fn is_item_field(name: &str) -> bool {
    find_any_field(name).is_some()
        || TERM_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
        || DateProperty::from_search_name(name).is_some()
}

/// Returns whether items may be in the state of this name, or it is their kind.
pub(crate) fn is_item_state(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    STATE_NAMES.contains(&name.as_str())
        || Kind::from_name(&name).is_some_and(|kind| kind.is_searchable())
}
