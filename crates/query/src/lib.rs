//! One query type for every kind of item: parsed from text, planned for the indexes, executed.
//!
//! A [`Query`] is written in two ways: as the search line that people type ([`Query::parse`]) and
//! as an S-expression of evolution-data-server ([`Query::parse_sexp`]). [`find`] lets the planner
//! look up what the indexes can answer, and tests the remaining candidates; [`full_scan`] tests
//! every item. For any store and any query both give the same result; the tests of this crate
//! verify this property.
//!
//! | module | contents |
//! |---|---|
//! | `agenda` | occurrences with the fields that lists show; counts of occurrences |
//! | `busy_time` | busy periods of a time range |
//! | `calendar_properties` | the properties of a calendar itself |
//! | `collector` | hits with their sort keys |
//! | `contact` | contacts that are in no store |
//! | `correspondents` | [`find_correspondents`]: the people of the mail |
//! | `cursor` | [`SortedCursor`]: steps through a sorted collection |
//! | `damaged_items` | the items that a list leaves out because they are damaged |
//! | `duplicates` | [`find_duplicates`](find_duplicates()): contacts that may be the same person |
//! | `error` | errors of a search, and of the text of a query |
//! | `execution` | [`find`] and [`full_scan`] |
//! | `expansion` | the occurrences of a result in a time range |
//! | `item` | the values of an item that a predicate tests |
//! | `item_terms` | the names that search lines have for contacts and calendars |
//! | `kind_conflict` | search lines whose terms are of different kinds |
//! | `kind_fields` | [`KindGroup`]: the fields and orders of a search over all kinds |
//! | [`local_time`] | times of items in the user's time zone |
//! | `mail_query` | [`MailQuery`]: a query for messages, and its parser |
//! | `mail_search` | [`MailSearch`]: searching messages |
//! | `mail_view` | [`MailView`]: live views over messages |
//! | `matcher` | [`Matcher`]: the predicate of a query |
//! | `misspelling` | the similarity of a word to a known name |
//! | `pattern` | compiled regular expressions |
//! | `plan` | [`Plan`]: what the indexes look up for a query |
//! | `projection` | a few fields of each item of a result |
//! | `query` | [`Query`], and the context that it is parsed in |
//! | [`query_log`] | the record of each query and its cost |
//! | `result_domain` | the type of collection that a query is about |
//! | `result_set` | [`ResultSet`]: the items of a result, page by page |
//! | `saved_search_counts` | parsing and counting saved searches |
//! | `saved_search_follower` | the saved searches that an open search line uses, as they change |
//! | `saved_searches` | [`SavedSearches`]: what `@name` in a search line stands for |
//! | `search_line` | parser of search lines |
//! | `search_request` | [`SearchRequest`]: a query with collection, order and limit |
//! | `sexp` | parser of S-expressions |
//! | `snippet` | [`Snippet`]: text of a message around the place that a query matches |
//! | `sort_bound` | bounds between the items of a sorted collection |
//! | `sorted_scan` | items in an indexed order |
//! | `step_counter` | the budget of a query |
//! | `sub_expressions` | equal parts of a query |
//! | `thread_tree` | [`order_threads`]: messages in the order of their threads |
//! | `time_test` | tests of an item's schedule |
//! | `top_k` | the first hits in an indexed order |
//! | `value_matcher` | the test of one value |
//! | `verification` | the test of candidates |
//! | [`views`] | queries that stay open and report changes |
//!
//! The crate does not depend on files or SQLite: it reads through [`larder_store::Reader`]. Any
//! Rust program can query a store with it while other programs write. `examples/contact_names.rs`
//! is such a program:
//!
//! ```no_run
#![doc = include_str!("../examples/contact_names.rs")]
//! ```

mod agenda;
mod busy_time;
mod calendar_properties;
mod collector;
mod contact;
mod correspondents;
mod cursor;
mod damaged_items;
mod duplicates;
mod error;
mod execution;
mod expansion;
mod item;
mod item_terms;
mod kind_conflict;
mod kind_fields;
pub mod local_time;
mod mail_query;
mod mail_search;
mod mail_view;
mod matcher;
mod misspelling;
mod pattern;
mod plan;
mod projection;
mod query;
pub mod query_log;
mod result_domain;
mod result_set;
mod saved_search_counts;
mod saved_search_follower;
mod saved_searches;
mod search_line;
mod search_request;
mod sexp;
mod snippet;
mod sort_bound;
mod sorted_scan;
mod step_counter;
mod sub_expressions;
mod thread_tree;
mod time_test;
mod top_k;
mod value_matcher;
mod verification;
pub mod views;

pub use crate::agenda::{
    AgendaContent, AgendaEntry, ItemSummary, OccurrenceCount, OccurrenceList, count_occurrences,
    find_undecided_rows, list_occurrences, read_agenda, read_agenda_with, read_item_summaries,
};
pub use crate::busy_time::{BusyPeriod, busy_periods};
pub use crate::calendar_properties::read_calendar_properties;
pub use crate::correspondents::{
    AddressOwner, Correspondent, CorrespondentQuery, CorrespondentText, find_contacts_by_address,
    find_correspondents,
};
pub use crate::cursor::{IndexLabel, SortedCursor};
pub use crate::duplicates::{DuplicateGroup, DuplicateGroups, DuplicateReason, find_duplicates};
pub use crate::error::{Error, MAX_QUERY_BYTES, SyntaxError};
pub use crate::execution::{find, full_scan};
pub use crate::expansion::{Expansion, expand_occurrences, required_time_range};
pub use crate::item::DecodedItem;
pub use crate::kind_conflict::find_kind_conflict;
pub use crate::kind_fields::{KindColumns, KindGroup, UnknownColumn, field_of_order};
pub use crate::local_time::date_range_to_time_range;
pub use crate::mail_query::{
    FolderTest, HeaderTest, MAIL_QUERY_FIELDS, MailFlag, MailQuery, MailQueryContext,
    MailTextFields, PathTest, TextMatch, TextTest,
};
pub use crate::mail_search::{
    ListedMessage, ListedThread, MailCount, MailExplanation, MailHit, MailListRequest, MailRoots,
    MailSearch, MailSort, MailSortKey, NamedMessage, ThreadMember, format_thread_id,
    parse_thread_id, without_reply_prefixes,
};
pub use crate::mail_view::{MailView, MailViewEvent, MailViewOptions};
pub use crate::matcher::{Matcher, is_bare_word_field};
pub use crate::plan::Plan;
pub use crate::projection::{ProjectedItem, visit_uids};
pub use crate::query::{
    Comparison, FieldSelector, FieldTest, MatchOp, NumericOperand, Query, QueryContext,
};
pub use crate::result_domain::{ResultDomain, resolve_domain};
pub use crate::result_set::{Explanation, ResultSet};
pub use crate::saved_search_counts::{
    CountedStores, SavedQuery, SavedSearchCount, count_saved_queries,
};
pub use crate::saved_search_follower::SavedSearchFollower;
pub use crate::saved_searches::{SavedSearches, find_saved_search};
pub use crate::search_request::{QueryBudget, SearchRequest, SortSpec};
pub use crate::snippet::{Snippet, SnippetFinder};
pub use crate::step_counter::MAX_QUERY_STEPS;
pub use crate::thread_tree::{ThreadMessage, ThreadOrder, ThreadPath, ThreadRow, order_threads};
pub use crate::time_test::{DateProperty, TimeTest};
pub use larder_date_phrase::UserLocale;
pub use larder_format::contact::Contact;
pub use larder_format::field::{Field, find_contact_field};
pub use larder_store::{Alarm, ItemMeta, Kind, Reader, TimeRange, Trigger, ZoneUse};
