//! Tests through the public API, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod charts;
mod day;
mod queries;
mod queries_anonymise;
mod queries_broken;
mod queries_page;
mod queries_worth;
mod run_command;
