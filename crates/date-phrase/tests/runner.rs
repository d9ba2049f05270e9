//! Tests through the public API, in one binary.

#![allow(
    clippy::expect_used,
    let_underscore_drop,
    reason = "a test may fail, and drops results that it does not need"
)]

mod date_ranges;
mod idioms;
mod languages;
mod neighbouring_words;
mod parts_of_day;
mod repetitions;
mod sentences;
mod unconsumed_words;
