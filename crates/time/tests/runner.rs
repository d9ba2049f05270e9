//! Tests through the public API, in one binary.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    let_underscore_drop,
    reason = "a test may fail, says what it leaves out, and throws results away"
)]

mod civil;
mod grid;
mod rule;
mod rule_random;
mod series;
mod value;
mod window;
mod zone;
