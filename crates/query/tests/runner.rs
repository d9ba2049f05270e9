//! Tests through the public API, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test that cannot go on panics"
)]

mod agenda;
mod agree;
mod agree_in_time;
mod answer;
mod book;
mod calendar;
mod cursor;
mod duplicates;
mod eds_calendar;
mod eds_functions;
mod example;
mod explain;
mod foreign_zones;
mod incremental_search;
mod interval_lookup;
mod line;
mod mail_query;
mod overdue;
mod pages;
mod random;
mod saved_searches;
mod sexp;
mod stale_results;
mod step_limit;
mod thread_tree;
mod views;
mod views_across;
mod views_concurrency;
mod views_log;
mod views_schedules;
mod words;
mod writer;
