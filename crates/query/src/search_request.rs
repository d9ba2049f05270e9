//! A query with its collection, order and limit.
//!
//! Separate from `execution`, which answers a request, because result sets and cursors are made
//! from one, too.

use crate::error::Error;
use crate::query::Query;
use crate::sort_bound::ScanDirection;
use crate::step_counter::MAX_QUERY_STEPS;
use larder_format::collection_type::{find_any_field, suggest_any_field};
use larder_format::field::{Field, find_calendar_field};

/// A query, and the form of its result set.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// The query.
    pub query: Query,
    /// The collection to search; `None`: all.
    pub collection: Option<String>,
    /// The order of the result; `None`: by row.
    pub sort: Option<SortSpec>,
    /// Where in that order the result begins: at the first item whose value begins with this text,
    /// or else at the first that sorts after it, regardless of case and accents. Has no effect
    /// without an order.
    pub start_text: Option<String>,
    /// The maximal number of items.
    pub limit: Option<usize>,
    /// Keep the source bytes of the first items that the search reads anyway, for callers that
    /// fetch all items of the result at once.
    pub prefetch: bool,
    /// The budget of the search.
    pub max_steps: QueryBudget,
}

/// The number of steps that a search may take; see [`MAX_QUERY_STEPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryBudget(pub u64);

impl Default for QueryBudget {
    fn default() -> QueryBudget {
        QueryBudget(MAX_QUERY_STEPS)
    }
}

/// The order of a result set: by a field's first value, in the store's locale, then by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortSpec {
    /// The field.
    pub field: &'static Field,
    /// The last value comes first.
    pub descending: bool,
}

impl SortSpec {
    /// Parses a field name, with a leading minus for descending order.
    ///
    /// # Errors
    /// [`Error::NoField`], with the nearest name.
    pub fn parse(text: &str) -> Result<SortSpec, Error> {
        let (descending, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        match find_any_field(name) {
            Some(field) => Ok(SortSpec { field, descending }),
            None => {
                Err(Error::NoField { name: name.to_string(), nearest: suggest_any_field(name) })
            }
        }
    }

    pub(crate) fn direction(self) -> ScanDirection {
        ScanDirection::new(self.descending)
    }

    /// Returns whether the order is by start time, which is numeric and comes from the schedule.
    pub(crate) fn is_by_start(self) -> bool {
        find_calendar_field("start").is_some_and(|start| start.id == self.field.id)
    }
}
