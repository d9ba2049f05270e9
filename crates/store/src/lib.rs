//! The store: what a person owns, in SQLite files in one directory.
//!
//! Bytes come in as batches through [`Store::apply`], the only way to write; each batch is one
//! transaction with one sequence number, and that number is the only news there is. Readers
//! ([`Reader`]) open the same files read-only, from any process, and never wait for a writer.
//!
//! This crate is not a query language (that is `larder-query`, which gets one narrow door,
//! [`Reader::rows`]) and not a parser (`larder-format`). It is apart because it is the one place that
//! names SQLite: schema, locks, durability, history and repair are all here.
//!
//! | module | what it holds |
//! |---|---|
//! | `directory` | the data directory, its files, the file systems it refuses |
//! | `lock` | the fair write lock, and the bell that rings after a commit |
//! | `schema` | the schema in prose and SQL, versions, migrations |
//! | `batch`, `apply` | changes, and the one function that writes them |
//! | `summary` | which fields of a collection are indexed, and how |
//! | `kept` | values beside an item's row, for lists |
//! | `contact` | what is derived from a contact's bytes, for the indexes |
//! | `derived` | fingerprints of derived data; filling, rebuilding, digesting it |
//! | `reader`, `items`, `changes` | reading, items by every way to them, and what changed since a cursor |
//! | `history`, `undo` | operations and former versions; putting back what one changed |
//! | `purge`, `check`, `backup` | erasing for good, verifying, copying |

mod apply;
mod backup;
mod batch;
mod blob;
mod changes;
mod check;
mod collection;
mod contact;
mod derived;
mod directory;
mod error;
mod handle;

mod history;
mod identity;
pub mod index;
mod items;
mod kept;
mod lock;
mod purge;
mod reader;
mod schema;
mod store;
mod summary;
mod undo;

pub use crate::backup::Restored;
pub use crate::batch::{Applied, Change, Expect, Operation, Outcome, Put};
pub use crate::changes::{Cursor, News, NewsKind};
pub use crate::check::{Fault, Report};
pub use crate::contact::{Deriver, LONG_NUMBER, Prepared, WORD_LETTERS};
pub use crate::derived::IndexSet;
pub use crate::directory::Directory;
pub use crate::error::{Error, Result};
pub use crate::handle::{Handle, HandlePrefix};
pub use crate::history::{OperationId, OperationRow, Version};
pub use crate::items::{Candidate, Found, ItemHead, Moment, Order, Snapshot};
pub use crate::kept::{Kept, can_keep};
pub use crate::purge::Purged;
pub use crate::reader::{Collection, Reader, Row, Value};
pub use crate::store::{Options, Store};
pub use crate::summary::{IndexKind, Summary, SummaryError};
pub use crate::undo::{Conflict, Undo};

/// The number of a batch: later batches have larger numbers. Order in a store is by this, never by a clock.
pub type Seq = i64;

/// What an item is. The numbers are stored and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A vCard (RFC 6350, RFC 2426, vCard 2.1).
    Contact = 1,
}

impl Kind {
    /// The singular name used on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Contact => "contact",
        }
    }

    /// The kind with this stored number.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Kind> {
        (number == 1).then_some(Kind::Contact)
    }
}
