//! Fuzz targets, one for each parser: what has to hold for any bytes at all.
//!
//! A target is a function from bytes to nothing that panics where a promise is broken. That a parser does
//! not panic itself is the least of them; most targets also take the result apart or write it out
//! again, because a wrong answer is as bad as none.
//!
//! They are no unit tests: what a parser makes of a given input is written in the tests of its crate. They
//! are apart from these because `run.sh` builds them with coverage instrumentation, and because the programs
//! in `src/bin` link libFuzzer, which wants a C++ compiler.

#![allow(clippy::missing_panics_doc, reason = "to panic is how a target speaks")]

mod format;
mod phrase;
mod question;
mod stored;
mod time;

pub use crate::format::{component, contact, decode, fold, join, lines, split};
pub use crate::phrase::phrase;
pub use crate::question::{address, line, sexp};
pub use crate::stored::stored;
pub use crate::time::{rule, series};

/// A target: given any bytes, it returns, or panics because a promise is broken.
pub type Target = fn(&[u8]);

/// All targets, by the names of their programs.
pub const TARGETS: &[(&str, Target)] = &[
    ("lines", lines),
    ("split", split),
    ("contact", contact),
    ("component", component),
    ("decode", decode),
    ("fold", fold),
    ("line", line),
    ("sexp", sexp),
    ("address", address),
    ("join", join),
    ("stored", stored),
    ("rule", rule),
    ("series", series),
    ("phrase", phrase),
];
