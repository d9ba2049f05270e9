//! The store: what a person owns, in SQLite files in one directory.
//!
//! Bytes come in as batches through [`Store::apply`], the only way to write; each batch is one
//! transaction with one sequence number, and that number is the only news there is. Readers
//! ([`Reader`]) open the same files read-only, from any process, and never wait for a writer.
//!
//! This crate is not a query language (that is `larder-query`, which gets one narrow door,
//! [`Reader::rows`]) and not a parser (`larder-format`). It is apart because it is the one place
//! that names SQLite: schema, locks, durability, history and repair are all here.
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
mod before_images;
mod blob;
mod calendar_context;
mod change_feed;
mod check;
mod collection;
mod commit_notification;
mod contact;
mod data_directory;
mod error;
mod event;
mod extractor;
mod handle;
mod history;
mod index_config;
mod index_maintenance;
mod index_pages;
mod index_query;
mod interval_entry;
mod interval_search;
mod interval_table;
mod items;
mod lock;
mod packed_row_ids;
mod purge;
mod read_transaction;
mod reader;
mod schedule;
mod schedule_reader;
mod schema;
mod series;
mod series_summary;
mod store;
mod stored_fields;
pub mod term_encoding;
mod term_extraction;
mod time_range;
mod uid_lookup;
mod undo;
mod write_transaction;
mod zone_update;

pub use crate::backup::RestoreReport;
pub use crate::batch::{
    AppliedBatch, BatchChange, ChangeOutcome, ItemPut, Operation, Precondition,
};
pub use crate::before_images::{FeedResult, ItemChange, ItemVersion, StoreStamp};
pub use crate::calendar_context::{CalendarContext, VtimezoneText};
pub use crate::change_feed::{ChangeCursor, ChangeRecord, NetEffect};
pub use crate::check::{CheckReport, Fault};
pub use crate::commit_notification::CommitWatcher;
pub use crate::data_directory::DataDirectory;
pub use crate::error::{Error, Result};
pub use crate::event::{LineWarnings, ZoneResolver, ZoneUse, is_newer_revision};
pub use crate::extractor::{Extractor, ParsedItem};
pub use crate::handle::{Handle, HandlePrefix};
pub use crate::history::{OperationId, OperationRecord, Version};
pub use crate::index_config::{FieldIndex, IndexConfig, IndexConfigError};
pub use crate::index_maintenance::DerivedIndex;
pub use crate::index_query::{ExternalQuery, IndexQuery};
pub use crate::interval_search::TimeRangeHits;
pub use crate::items::{Candidate, IndexMatches, IndexedOrder, ItemMeta};
pub use crate::packed_row_ids::PackedRowIds;
pub use crate::purge::PurgeReport;
pub use crate::read_transaction::{DataVersion, ReadTransaction};
pub use crate::reader::{Collection, CollectionProperties, Reader, SqlRow, SqlValue};
pub use crate::schedule::{Alarm, ItemOccurrence, Overlap, Schedule, Trigger};
pub use crate::store::{Store, StoreOptions};
pub use crate::stored_fields::{StoredFields, is_storable};
pub use crate::term_encoding::WORD_PREFIX_CHARS;
pub use crate::term_extraction::MIN_LONG_NUMBER_DIGITS;
pub use crate::time_range::{TimeRange, TimeTarget};
pub use crate::undo::{UndoConflict, UndoReport};
pub use larder_index::SortPosition;

/// The number of a batch: later batches have larger numbers. Order in a store is by this, never by
/// a clock.
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
    Component = 5,
}

/// What a collection holds. The numbers are stored and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CollectionType {
    /// Contacts.
    AddressBook = 1,
    /// Events, tasks and memos together, and what else a calendar may hold.
    Calendar = 2,
}

impl CollectionType {
    /// The name used in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CollectionType::AddressBook => "contacts",
            CollectionType::Calendar => "calendar",
        }
    }

    /// What it holds, in words.
    #[must_use]
    pub fn describe_items(self) -> &'static str {
        match self {
            CollectionType::AddressBook => "contacts",
            CollectionType::Calendar => "events, tasks and memos",
        }
    }

    /// The family with this stored number; contacts, if there is none.
    pub(crate) fn from_number(number: i64) -> CollectionType {
        if number == CollectionType::Calendar as i64 {
            CollectionType::Calendar
        } else {
            CollectionType::AddressBook
        }
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
            Kind::Component => "other",
        }
    }

    /// What collections it is kept in.
    #[must_use]
    pub fn collection_type(self) -> CollectionType {
        match self {
            Kind::Contact => CollectionType::AddressBook,
            Kind::Event | Kind::Task | Kind::Memo | Kind::Component => CollectionType::Calendar,
        }
    }

    /// The kind with this stored number; what is not known is [`Kind::Other`].
    #[must_use]
    pub fn from_number(number: i64) -> Kind {
        match number {
            1 => Kind::Contact,
            2 => Kind::Event,
            3 => Kind::Task,
            4 => Kind::Memo,
            _ => Kind::Component,
        }
    }
}
