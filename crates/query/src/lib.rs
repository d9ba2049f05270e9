//! One question for every kind of item: parsed from text, planned for the index, run in place.
//!
//! A [`Query`] is written in two ways that give the same value: the search line that people type
//! ([`Query::parse`]) and the S-expressions of evolution-data-server ([`Query::parse_sexp`]). [`find`] lets
//! the planner look up what the index can answer, and tests what is left; [`walk`]
//! answers the same by testing every item. For any store and any question the two agree: the one
//! property that this crate's tests are about. [`duplicates`](duplicates()) asks something else: which items
//! are perhaps the same.
//!
//! A [`View`](views::View) stays open, and is told what changes in its answer; all views of a process are
//! [`Views`](views::Views). What was asked, and what it cost, goes to a [`log`] if one is wanted.
//!
//! A [`Cursor`] steps through a sorted book, from any letter on, without reading what lies between.
//!
//! This crate is not the store: it names no file and no SQLite, and passes through
//! [`larder_store::Reader::look_up`]. It is apart so that any Rust program can read a store in place with it, while
//! others write. `examples/who.rs` is such a program:
//!
//! ```no_run
#![doc = include_str!("../examples/who.rs")]
//! ```

mod about;
mod agenda;
mod answer;
mod busy;
mod colour;
mod compare;
mod cursor;
pub mod describe;
mod duplicates;
mod error;
mod expand;
mod gap;
mod hits;
mod item;
mod line;
pub mod log;
mod matcher;
mod partial;
mod plan;
mod query;
mod run;
mod sexp;
mod time;
pub mod views;
pub mod when;

pub use crate::about::{About, about, is_of_calendar};
pub use crate::agenda::{
    Brief, Count, Day, Entries, Entry, OnDay, agenda, agenda_by, briefs, count, days, occurrences,
    unsure,
};
pub use crate::answer::{Answer, Explain};
pub use crate::busy::{Busy, busy, free_busy};
pub use crate::colour::colour;
pub use crate::cursor::{Cursor, Letter};
pub use crate::duplicates::{Group, Reason, duplicates};
pub use crate::error::{Error, SyntaxError};
pub use crate::expand::{Expansion, expand, window_of};
pub use crate::item::Item;
pub use crate::matcher::Matcher;
pub use crate::partial::Partial;
pub use crate::plan::Plan;
pub use crate::query::{Asker, Comparison, Number, Op, Query, Settings, Subject, Test};
pub use crate::run::{Find, Sort, find, walk};
pub use crate::time::{Stamp, TimeTest};
pub use larder_format::contact::Contact;
pub use larder_format::field::{Field, field};
pub use larder_store::{ItemHead, Reader};
