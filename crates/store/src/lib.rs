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
//! | `lock`, `bell` | the fair write lock; the bell that rings after a commit, and hearing it |
//! | `schema` | the schema in prose and SQL, versions, migrations |
//! | `batch`, `apply` | changes, and the one function that writes them |
//! | `summary` | which fields of a collection are indexed, and how |
//! | `kept` | values beside an item's row, for lists |
//! | `contact` | what is derived from a contact's bytes, for the indexes |
//! | `derived` | fingerprints of derived data; filling, rebuilding, digesting it |
//! | `reader`, `snapshot`, `items`, `changes`, `news` | reading, what is held still meanwhile, items by every way to them, which changed since a cursor, and what they were |
//! | `history`, `undo` | operations and former versions; putting back what one changed |
//! | `purge`, `check`, `backup` | erasing for good, verifying, copying |

mod apply;
mod backup;
mod batch;
mod bell;
mod blob;
mod changes;
mod check;
mod collection;
mod contact;
mod derived;
mod deriver;
mod directory;
mod error;
mod event;
mod frame;
mod handle;
mod history;
mod identity;
pub mod index;
mod items;
mod kept;
mod lock;
mod news;
mod packed_rows;
mod purge;
mod reader;
mod schema;
mod series;
mod snapshot;
mod span;
mod store;
mod summary;
mod terms;
mod times;
mod transaction;
mod undo;

pub use crate::backup::Restored;
pub use crate::batch::{Applied, Change, Expect, Operation, Outcome, Put};
pub use crate::bell::Bell;
pub use crate::changes::{Cursor, News, NewsKind};
pub use crate::check::{Fault, Report};
pub use crate::derived::IndexSet;
pub use crate::deriver::{Deriver, Prepared};
pub use crate::directory::Directory;
pub use crate::error::{Error, Result};
pub use crate::event::{Clocks, Notes, ZoneUse, is_newer};
pub use crate::frame::{Frame, Zone};
pub use crate::handle::{Handle, HandlePrefix};
pub use crate::history::{OperationId, OperationRow, Version};
pub use crate::index::term::WORD_LETTERS;
pub use crate::items::{Candidate, Found, ItemHead, Order};
pub use crate::kept::{Kept, can_keep};
pub use crate::news::{Changed, Standing, Then, Told};
pub use crate::packed_rows::PackedRows;
pub use crate::purge::Purged;
pub use crate::reader::{Collection, Reader, Row, Said, Value};
pub use crate::snapshot::{Moment, Snapshot};
pub use crate::span::{Searched, What, Window};
pub use crate::store::{Options, Store};
pub use crate::summary::{IndexKind, Summary, SummaryError};
pub use crate::terms::LONG_NUMBER;
pub use crate::times::{Alarm, Occurring, Times, Trigger, Verdict};
pub use crate::undo::{Conflict, Undo};

/// The number of a batch: later batches have larger numbers. Order in a store is by this, never by a clock.
pub type Seq = i64;

/// What an item is. The numbers are stored and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A vCard (RFC 6350, RFC 2426, vCard 2.1).
    Contact = 1,
    /// A VEVENT (RFC 5545, 3.6.1).
    Event = 2,
    /// A VTODO (3.6.2).
    Task = 3,
    /// A VJOURNAL (3.6.3).
    Memo = 4,
    /// Another component of a calendar (VFREEBUSY, VPOLL, ...): kept and exported, not searched.
    Other = 5,
}

/// What a collection holds. The numbers are stored and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Contacts.
    Contacts = 1,
    /// Events, tasks and memos together, and what else a calendar may hold.
    Calendar = 2,
}

impl Family {
    /// The name used in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Contacts => "contacts",
            Family::Calendar => "calendar",
        }
    }

    /// What it holds, in words.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Family::Contacts => "contacts",
            Family::Calendar => "events, tasks and memos",
        }
    }

    /// The family with this stored number; contacts, if there is none.
    pub(crate) fn of_number(number: i64) -> Family {
        if number == Family::Calendar as i64 { Family::Calendar } else { Family::Contacts }
    }
}

impl Kind {
    /// The singular name used on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Contact => "contact",
            Kind::Event => "event",
            Kind::Task => "task",
            Kind::Memo => "memo",
            Kind::Other => "other",
        }
    }

    /// What collections it is kept in.
    #[must_use]
    pub fn family(self) -> Family {
        match self {
            Kind::Contact => Family::Contacts,
            Kind::Event | Kind::Task | Kind::Memo | Kind::Other => Family::Calendar,
        }
    }

    /// The kind with this stored number; what is not known is [`Kind::Other`].
    #[must_use]
    pub fn of_number(number: i64) -> Kind {
        match number {
            1 => Kind::Contact,
            2 => Kind::Event,
            3 => Kind::Task,
            4 => Kind::Memo,
            _ => Kind::Other,
        }
    }
}
