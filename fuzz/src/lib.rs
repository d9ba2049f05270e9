//! Fuzz targets, one for each parser: what has to hold for any bytes at all.
//!
//! A target is a function from bytes to nothing that panics where a promise is broken. That a
//! parser does not panic itself is the least of them; most targets also take the result apart or
//! write it out again, because a wrong answer is as bad as none.
//!
//! They are no unit tests: what a parser makes of a given input is written in the tests of its
//! crate. They are apart from these because `run.sh` builds them with coverage instrumentation, and
//! because the programs in `src/bin` link libFuzzer, which wants a C++ compiler.

#![allow(clippy::missing_panics_doc, reason = "to panic is how a target speaks")]

mod format;
mod phrase;
mod query;
mod stored_formats;
mod time;

pub use crate::format::{
    check_component, check_contact, check_decode, check_fold, check_join, check_lines, check_split,
};
pub use crate::phrase::check_phrase;
pub use crate::query::{check_address, check_search_line, check_sexp};
pub use crate::stored_formats::check_stored_formats;
pub use crate::time::{check_rule, check_series};

/// A target: given any bytes, it returns, or panics because a promise is broken.
pub type FuzzTarget = fn(&[u8]);

/// All targets, by the names of their programs.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("lines", check_lines),
    ("split", check_split),
    ("contact", check_contact),
    ("component", check_component),
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
