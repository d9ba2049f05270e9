//! Tests through the public API, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod anonymisation;
mod cache_simulation;
mod charts;
mod damaged_logs;
mod generated_log;
mod process_cost;
mod query_log;
mod query_log_page;
