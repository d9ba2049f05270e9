//! Tests through the public API, in one binary.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    let_underscore_drop,
    reason = "a test may fail, says what it leaves out, and throws results away"
)]

mod card_merge;
mod collate;
mod component;
mod contact;
mod corpora;
mod decode;
mod edit;
mod encoded_words;
mod field;
mod fold;
mod identity;
mod line;
mod mbox;
mod message;
mod oracle;
#[cfg(feature = "phone")]
mod phone;
mod property;
mod saved_search;
mod split;
mod zone;
