//! Fuzz targets, one for each parser: the properties that hold for any bytes.
//!
//! A target is a function of bytes that returns nothing and panics where a property does not hold.
//! The weakest property is that the parser does not panic. Most targets also inspect the result or
//! write it out and parse it again, because a wrong result is as bad as a panic.
//!
//! The targets are not unit tests: the expected result of a given input is in the tests of the
//! parser's crate. They are a crate of their own because `run.sh` builds them with coverage
//! instrumentation, and because the programs in `src/bin` link libFuzzer, which needs a C++
//! compiler.

#![allow(clippy::missing_panics_doc, reason = "a target reports a failure by a panic")]

mod format;
mod mail;
mod mercurial;
mod phrase;
mod query;
mod stored_formats;
mod time;

pub use crate::format::{
    check_component, check_contact, check_decode, check_fold, check_join, check_lines, check_mbox,
    check_message, check_split,
};
pub use crate::mail::{
    check_commit, check_header_fields, check_html, check_label_dump, check_mail_query,
    check_maildir_name, check_snippets, check_tokenizer,
};
pub use crate::mercurial::{
    check_bundle, check_hg_answers, check_hg_changeset, check_hg_manifests, check_hg_records,
    check_hg_revlog, check_hg_store, check_pack_object,
};
pub use crate::phrase::check_phrase;
pub use crate::query::{check_address, check_search_line, check_sexp};
pub use crate::stored_formats::check_stored_formats;
pub use crate::time::{check_rule, check_series};

/// A target: returns for any bytes, or panics because a property does not hold.
pub type FuzzTarget = fn(&[u8]);

/// All targets, by the names of their programs.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("lines", check_lines),
    ("split", check_split),
    ("contact", check_contact),
    ("component", check_component),
    ("message", check_message),
    ("mbox", check_mbox),
    ("mail_query", check_mail_query),
    ("snippets", check_snippets),
    ("tokenizer", check_tokenizer),
    ("header_fields", check_header_fields),
    ("maildir_name", check_maildir_name),
    ("html", check_html),
    ("label_dump", check_label_dump),
    ("commit", check_commit),
    ("bundle", check_bundle),
    ("hg_answers", check_hg_answers),
    ("hg_changeset", check_hg_changeset),
    ("hg_manifests", check_hg_manifests),
    ("hg_records", check_hg_records),
    ("hg_revlog", check_hg_revlog),
    ("hg_store", check_hg_store),
    ("pack_object", check_pack_object),
    ("decode", check_decode),
    ("fold", check_fold),
    ("line", check_search_line),
    ("sexp", check_sexp),
    ("address", check_address),
    ("join", check_join),
    ("stored_formats", check_stored_formats),
    ("rule", check_rule),
    ("series", check_series),
    ("phrase", check_phrase),
];
