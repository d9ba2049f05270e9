//! Tests through the public API, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test that cannot go on panics"
)]

mod message;
mod tokenizer;
