//! Tests through the public API, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod calendar;
mod contacts;
mod queries;
