//! Sources on disk: address books in, from files, folders and streams, and out again.
//!
//! [`import()`] finds the files, splits them into cards, parses those in parallel and gives them to the one
//! writer in the order in which they lie in the input; what is not taken is named and, if asked for, kept.
//! [`export()`] writes a collection out again, byte for byte. [`card`] reads what a person typed or edited;
//! [`add()`], [`replace()`], [`remove()`] and [`remove_collection()`] write it, or take it away, in batches;
//! [`merge()`] makes one item of several.
//!
//! This crate knows no syntax (`larder-format` splits and parses) and no SQL (`larder-store` writes and
//! reads). It is apart because it is where bytes enter from outside: files that are missing, endless,
//! broken or not what their name says are its business, and nobody else's. It prints nothing: what there
//! is to say goes to the caller as [`Event`]s and comes back in a [`Summary`].

pub mod card;
mod change;
mod error;
pub mod event;
mod export;
mod import;
mod merge;
mod packed;

pub use crate::change::{
    Added, CollectionRemoved, Listed, Removed, add, list, remove, remove_collection, replace,
};
pub use crate::error::Error;
pub use crate::export::{ExportSummary, export};
pub use crate::import::{
    BATCH, CONTACTS, Event, ImportOptions, Input, MAX_BATCH, MAX_ITEM, Notice, Summary, Taken,
    import,
};
pub use crate::merge::{Merge, MergeError, Merged, merge};
pub use crate::packed::{Packed, packed};
