//! Tests through the public API, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    reason = "a test that cannot go on panics"
)]

mod book;
mod bus;
mod hostile_queries;
mod lifecycle;
mod registry;
mod views;
mod write_lock;
