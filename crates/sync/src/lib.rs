//! Sources on disk: address books in, from files, folders and streams, and out again.
//!
//! [`import()`] finds the files, splits them into cards, parses those in parallel and gives them to
//! the one writer in the order in which they lie in the input; what is not taken is named and, if
//! asked for, kept. [`export()`] writes a collection out again, byte for byte. [`card`] reads what
//! a person typed or edited; [`add()`], [`replace_item()`], [`remove()`] and
//! [`remove_collection()`] write it, or take it away, in batches; [`write_merge()`] makes one item
//! of several.
//!
//! This crate knows no syntax (`larder-format` splits and parses) and no SQL (`larder-store` writes
//! and reads). It is apart because it is where bytes enter from outside: files that are missing,
//! endless, broken or not what their name says are its business, and nobody else's. It prints
//! nothing: what there is to say goes to the caller as [`ImportEvent`]s and comes back in a
//! [`ImportReport`].

mod compression;
mod error;
mod export;
mod import;

pub use crate::compression::{Compression, detect_compression};
pub use crate::error::Error;
pub use crate::export::{ExportReport, export};
pub use crate::import::{
    CollectionCounts, DEFAULT_BATCH_ITEMS, DEFAULT_CONTACTS_COLLECTION, DEFAULT_MAX_ITEM_BYTES,
    ImportDiagnostic, ImportEvent, ImportInput, ImportOptions, ImportReport, MAX_BATCH_ITEMS,
    import,
};
