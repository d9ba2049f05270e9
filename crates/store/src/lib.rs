//! The store: what a person owns, in SQLite files in one directory.
//!
//! Bytes come in as batches through [`Store::apply`], the only way to write; each batch is one
//! transaction with one sequence number, by which every consumer of changes reads on. Readers
//! ([`Reader`]) open the same files read-only, from any process, and never wait for a writer.
//!
//! This crate is neither a query language (`larder-query`) nor a parser (`larder-format`). It is
//! apart because it is the one place that names SQLite: schema, locks, durability, history and
//! repair are all here, and no SQL is passed in from outside.
//!
//! From the bottom up:
//!
//! | module | content |
//! |---|---|
//! | `error`, `handle`, `packed_row_ids` | errors, the public ids of items, packed lists of rows |
//! | `data_directory`, `lock`, `commit_notification` | the files of a store, the fair write lock, watching for commits |
//! | `connection`, `schema`, `meta` | connections and their settings, the schema in prose and SQL with its migrations, single values |
//! | `read_transaction`, `write_transaction` | one state of the store, and changes that are committed together |
//! | `extractor_cache`, `calendar_context_table`, `zone_loader` | what `larder-extract` needs of the store: extractors by collection, calendar contexts, zones |
//! | `series`, `series_summary` | schedules of the items with one UID, and their summaries for the interval index |
//! | `blob`, `collection`, `uid_lookup` | source bytes, collections, finding an item by UID |
//! | `index_pages`, `index_query` | the inverted index in tables, queries that indexes answer |
//! | `schedule_intervals`, `interval_entry`, `interval_table`, `interval_search`, `zone_update` | the interval index in tables, and its upkeep when zone data change |
//! | `index_maintenance` | fingerprints of derived data; filling, rebuilding and comparing it |
//! | `reader`, `items`, `schedule_reader`, `change_feed`, `before_images` | reading: collections, items, schedules, changes after a cursor, and what was there before |
//! | `batch`, `apply`, `history`, `undo` | changes, the one function that writes them, operations and replaced versions, undoing one |
//! | `store`, `purge`, `check`, `backup` | opening a store for writing, erasing for good, verifying, copying |

mod apply;
mod backup;
mod batch;
mod before_images;
mod blob;
mod calendar_context_table;
mod change_feed;
mod check;
mod collection;
mod commit_notification;
mod connection;
mod data_directory;
mod error;
mod extractor_cache;
mod handle;
mod history;
mod index_maintenance;
mod index_pages;
mod index_query;
mod interval_entry;
mod interval_search;
mod interval_table;
mod items;
mod lock;
mod meta;
mod packed_row_ids;
mod purge;
mod read_transaction;
mod reader;
mod schedule_intervals;
mod schedule_reader;
mod schema;
mod series;
mod series_summary;
mod store;
mod uid_lookup;
mod undo;
mod write_transaction;
mod zone_loader;
mod zone_update;

pub use crate::backup::RestoreReport;
pub use crate::batch::{
    AppliedBatch, BatchChange, ChangeOutcome, ItemPut, Operation, Precondition,
};
pub use crate::before_images::{FeedResult, ItemChange, ItemVersion, StoreStamp};
pub use crate::change_feed::{ChangeCursor, ChangeRecord, NetEffect};
pub use crate::check::{CheckReport, Fault};
pub use crate::commit_notification::CommitWatcher;
pub use crate::data_directory::DataDirectory;
pub use crate::error::{Error, Result};
pub use crate::handle::{Handle, HandlePrefix};
pub use crate::history::{OperationId, OperationRecord, Version};
pub use crate::index_maintenance::DerivedIndex;
pub use crate::index_query::{ExternalQuery, IndexQuery};
pub use crate::interval_search::TimeRangeHits;
pub use crate::items::{Candidate, IndexMatches, IndexedOrder, ItemMeta};
pub use crate::packed_row_ids::PackedRowIds;
pub use crate::purge::PurgeReport;
pub use crate::read_transaction::{DataVersion, ReadTransaction};
pub use crate::reader::{Collection, CollectionProperties, Reader};
pub use crate::schedule_intervals::schedule_bounds;
pub use crate::store::{Store, StoreOptions};
pub use crate::undo::{UndoConflict, UndoReport};
pub use larder_extract::{
    Alarm, CalendarContext, Extractor, FieldIndex, IndexConfig, IndexConfigError, ItemOccurrence,
    LineWarning, MIN_LONG_NUMBER_DIGITS, Overlap, ParsedItem, RejectedItem, Schedule, StoredFields,
    TimeRange, TimeTarget, Trigger, VtimezoneText, WORD_PREFIX_CHARS, ZoneResolver, ZoneUse,
    is_newer_revision, is_storable, term as term_encoding,
};
pub use larder_format::kind::{CollectionType, Kind};
pub use larder_index::SortPosition;

/// The number of a batch: later batches have larger numbers. Order in a store is by this, never by
/// a clock.
pub type Seq = i64;
