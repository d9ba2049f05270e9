//! One question for every kind of item: parsed from text, planned for the index, run in place.
//!
//! A [`Query`] is written in two ways that give the same value: the search line that people type
//! ([`Query::parse`]) and the S-expressions of evolution-data-server ([`Query::parse_sexp`]).
//! [`find`] lets the planner look up what the index can answer, and tests what is left;
//! [`full_scan`] answers the same by testing every item. For any store and any question the two
//! agree: the one property that this crate's tests are about.
//! [`find_duplicates`](find_duplicates()) asks something else: which items are perhaps the same.
//!
//! A [`View`](views::View) stays open, and is told what changes in its answer; all views of a
//! process are [`Views`](views::Views). What was asked, and what it cost, goes to a [`query_log`]
//! if one is wanted.
//!
//! A [`SortedCursor`] steps through a sorted book, from any letter on, without reading what lies
//! between.
//!
//! This crate is not the store: it names no file and no SQLite, and passes through
//! [`larder_store::Reader::look_up`]. It is apart so that any Rust program can read a store in
//! place with it, while others write. `examples/who.rs` is such a program:
//!
//! ```no_run
#![doc = include_str!("../examples/who.rs")]
//! ```

mod agenda;
mod busy_time;
mod calendar_properties;
mod collector;
mod cursor;
mod duplicates;
mod error;
mod execution;
mod expansion;
mod item;
pub mod local_time;
mod matcher;
mod plan;
mod projection;
mod query;
pub mod query_log;
mod result_domain;
mod result_set;
mod search_line;
mod search_request;
mod sexp;
mod sort_bound;
mod sorted_scan;
mod time_test;
mod value_matcher;
mod verification;
pub mod views;

pub use crate::agenda::{
    AgendaEntry, ItemSummary, OccurrenceCount, OccurrenceList, count_occurrences,
    find_uncertain_rows, list_occurrences, read_agenda, read_agenda_with, read_item_summaries,
};
pub use crate::busy_time::{BusyPeriod, busy_periods};
pub use crate::calendar_properties::read_calendar_properties;
pub use crate::cursor::{FilingLetter, SortedCursor};
pub use crate::duplicates::{DuplicateGroup, DuplicateReason, find_duplicates};
pub use crate::error::{Error, SyntaxError};
pub use crate::execution::{find, full_scan};
pub use crate::expansion::{Expansion, expand_occurrences, required_time_range};
pub use crate::item::DecodedItem;
pub use crate::matcher::Matcher;
pub use crate::plan::Plan;
pub use crate::projection::ProjectedItem;
pub use crate::query::{
    Comparison, FieldSelector, FieldTest, MatchOp, NumericOperand, Query, QueryContext, UserLocale,
};
pub use crate::result_domain::{ResultDomain, is_calendar_field, resolve_domain};
pub use crate::result_set::{Explanation, ResultSet};
pub use crate::search_request::{SearchRequest, SortSpec};
pub use crate::time_test::{DateProperty, TimeTest};
pub use larder_format::contact::Contact;
pub use larder_format::field::{Field, find_contact_field};
pub use larder_store::{Alarm, ItemMeta, Kind, Reader, TimeRange, Trigger, ZoneUse};
