//! Tests through the public API, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests fail by panics"
)]

mod contact_edit;
mod event;
mod event_corpora;
mod event_edit;
mod event_inherits;
mod event_model;
mod item_edits;
mod item_text;
mod merge;
mod new_event;
mod test_store;
