//! The store: a person's contacts and calendars, in SQLite files in one directory.
//!
//! All writes are batches of changes that [`Store::apply`] makes. A batch is one transaction and
//! has one sequence number; the change feed returns the changes after a number. Readers
//! ([`Reader`]) open the same files read-only, from any process, and never wait for a writer.
//!
//! This crate has no query language (`larder-query`) and no parser (`larder-format`). It is
//! separate because only it depends on SQLite: schema, locks, durability, history and repair are
//! here, and no SQL is passed in from outside.
//!
//! From the bottom up:
//!
//! | module | content |
//! |---|---|
//! | `handle` | the public ids of items |
//! | `row_ids`, `packed_row_ids` | row ids by table, packed lists of items |
//! | `staging_file` | files under a temporary name until they are complete |
//! | `damaged_object`, `error` | the objects that have a checksum, errors |
//! | `data_directory` | the files of a store |
//! | `lock_holder`, `lock` | who holds a lock, the fair write lock |
//! | `output_file` | files that a user names as outputs |
//! | `disk_state`, `failure_cause` | whether the disk can be written, why SQLite failed |
//! | `commit_notification` | watching for commits |
//! | `directory_watch` | watching directories of other programs |
//! | `commit_record` | comparing the store with the record of the last commit |
//! | `read_transaction`, `write_transaction` | one state of the store, changes that are committed together |
//! | `connection`, `database_copy` | connections with their settings, copies of a database |
//! | `unsynced_mark` | the mark of a store whose writes are not synced |
//! | `blank_database` | the file of a new store |
//! | `read_access` | opening the database for reading, also on full and read-only disks |
//! | `checksum`, `row_checksum` | checksums of stored bytes, checksums of whole rows |
//! | `stored_version` | former versions as they are stored |
//! | `meta` | single values of a store |
//! | `mail_state_changes` | the last batch that changed the state of a message |
//! | `mail_schema`, `schema` | the tables of mail; all other tables, versions and migrations |
//! | `blob` | source bytes |
//! | `extractor_cache`, `combined_schedules` | the extractors of the collections, schedules of a series |
//! | `calendar_context_table`, `zone_loader` | calendar contexts, time zones by name |
//! | `series`, `series_summary` | schedules of the items with one UID, and their summaries |
//! | `history` | operations and replaced versions: recording, pruning and erasing them |
//! | `schedule_intervals`, `interval_entry` | the intervals of a schedule |
//! | `interval_table` | the interval index in tables |
//! | `index_tables`, `sort_index_pages` | the inverted index and the sort index in tables |
//! | `derived_index` | the state of each index |
//! | `index_updates`, `index_digest` | the changes of a batch to the indexes, their digests |
//! | `uid_lookup`, `collection` | finding an item by UID, collections |
//! | `interval_search`, `index_query` | queries that the indexes answer |
//! | `item_meta` | everything about an item but its bytes |
//! | `interrupted_restore` | what an interrupted restore left |
//! | `operation_log` | reading operations and versions |
//! | `change_feed`, `before_images` | changes after a cursor, items before a change |
//! | `label_feed` | changes of the labels of messages |
//! | `reader_cache`, `reader` | opening a store for reading, and the cache of a reader |
//! | `collection_reader`, `item_reader`, `index_reader`, `change_reader` | the four parts of a reader |
//! | `sorted_reads` | reading in a sort order |
//! | `damaged_reads` | reading past damage |
//! | `store` | opening a store for writing |
//! | `mail_reader` | reading mail: files, rows of messages, states, words |
//! | `mail_sync_lock` | the lock of a synchronisation of mail |
//! | `index_maintenance`, `zone_update` | refilling the indexes, also after zone data changed |
//! | `mail` | the tables of mail |
//! | `batch`, `apply` | changes, and the one function that writes them |
//! | `pending_work`, `step_size` | work of many transactions: its records, the size of its steps |
//! | `undo` | undoing an operation |
//! | `page_layout`, `page_eraser`, `purge` | the layout of pages, overwriting their unused bytes, erasing items |
//! | `damage_scan` | comparing a store with its checksums |
//! | `mail_check` | comparing the tables of mail with each other |
//! | `mail_verification` | comparing files of messages with the index |
//! | `check`, `backup` | verifying a store, backup and restore |
//! | `derived_store` | making a store anew that can be made again |
//! | `salvage` | copying the readable rows of a damaged store |

mod apply;
mod backup;
mod batch;
mod before_images;
mod blank_database;
mod blob;
mod calendar_context_table;
mod change_feed;
mod change_reader;
mod check;
mod checksum;
mod collection;
mod collection_reader;
mod combined_schedules;
mod commit_notification;
mod commit_record;
mod connection;
mod damage_scan;
mod damaged_object;
mod damaged_reads;
mod data_directory;
mod database_copy;
mod derived_index;
mod derived_store;
mod directory_watch;
mod disk_state;
mod error;
mod extractor_cache;
mod failure_cause;
mod handle;
mod history;
mod index_digest;
mod index_maintenance;
mod index_query;
mod index_reader;
mod index_tables;
mod index_updates;
mod interrupted_restore;
mod interval_entry;
mod interval_search;
mod interval_table;
mod item_meta;
mod item_reader;
mod label_feed;
mod lock;
mod lock_holder;
mod mail;
mod mail_check;
mod mail_reader;
mod mail_schema;
mod mail_state_changes;
mod mail_sync_lock;
mod mail_verification;
mod meta;
mod operation_log;
mod output_file;
mod packed_row_ids;
mod page_eraser;
mod page_layout;
mod pending_work;
mod purge;
mod read_access;
mod read_transaction;
mod reader;
mod reader_cache;
mod row_checksum;
mod row_ids;
mod salvage;
mod schedule_intervals;
mod schema;
mod series;
mod series_summary;
mod sort_index_pages;
mod sorted_reads;
mod staging_file;
mod step_size;
mod store;
mod stored_version;
mod uid_lookup;
mod undo;
mod unsynced_mark;
mod write_transaction;
mod zone_loader;
mod zone_update;

pub use crate::backup::RestoreReport;
pub use crate::batch::{
    AppliedBatch, BatchChange, ChangeOutcome, ItemPut, LastCommit, Operation, Precondition,
};
pub use crate::before_images::{FeedResult, ItemChange, ItemVersion, StoreState};
pub use crate::change_feed::{ChangeCursor, ChangeRecord, NetEffect};
pub use crate::change_reader::ChangeReader;
pub use crate::check::{CheckReport, Fault};
pub use crate::collection_reader::{Collection, CollectionProperties, CollectionReader};
pub use crate::commit_notification::CommitWatcher;
pub use crate::connection::SyncMode;
pub use crate::damaged_object::DamagedObject;
pub use crate::damaged_reads::{ReadableItems, UnreadableItem};
pub use crate::data_directory::{DataDirectory, StoreFile};
pub use crate::derived_index::DerivedIndex;
pub use crate::derived_store::StoreReplacement;
pub use crate::directory_watch::{DirectoryChange, DirectoryWatcher, WatchOutcome};
pub use crate::error::{Error, OutputError, Result};
pub use crate::handle::{Handle, HandlePrefix};
pub use crate::history::{OperationRecord, Version};
pub use crate::index_query::{ExternalQuery, IndexQuery};
pub use crate::index_reader::{Candidate, IndexMatches, IndexReader};
pub use crate::interval_search::TimeRangeHits;
pub use crate::item_meta::ItemMeta;
pub use crate::item_reader::ItemReader;
pub use crate::label_feed::{LabelChanges, LabelledText, SiblingTexts, StoredLabels, label_handle};
pub use crate::lock_holder::{LockHolder, LockRequester, WaitNotice};
pub use crate::mail::batch::{
    BegunWordSegments, MailBatch, MailBatchBuilder, MailChange, MailFile, MailFileState,
    PreparedMessage, new_segment_words,
};
pub use crate::mail::columns::{BlockValues, MailBlock, MailColumn, MailSet, block_of, date_value};
pub use crate::mail::conversions::{ConversionKey, ConvertedText, MessageConversion};
pub use crate::mail::former_states::FormerMailStates;
pub use crate::mail::label_items::{LabelItems, WantedLabels};
pub use crate::mail::labels::{LabelBatch, ListedLabels};
pub use crate::mail::{BLOCK_ROWS, BLOCK_WORDS, BlockRows};
pub use crate::mail_reader::{
    MailDirectoryRecord, MailFileRecord, MailReader, MailWords, MessageRow, OpenMailWords,
    ReadingRules, RemovedMessage,
};
pub use crate::mail_sync_lock::MailSyncLock;
pub use crate::mail_verification::{ComparedFile, FileComparison, IndexedFile, WordDigests};
pub use crate::output_file::{FilePrivacy, OutputFile, OutputTarget};
pub use crate::packed_row_ids::PackedRowIds;
pub use crate::pending_work::PendingWork;
pub use crate::purge::PurgeReport;
pub use crate::read_transaction::ReadTransaction;
pub use crate::reader::Reader;
pub use crate::reader_cache::DataVersion;
pub use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow, OperationId};
pub use crate::salvage::{SalvageLoss, SalvageReport, UnreadableParts};
pub use crate::schedule_intervals::schedule_bounds;
pub use crate::schema::SchemaDifference;
pub use crate::sorted_reads::{IndexedOrder, SortedScan};
pub use crate::step_size::StepSize;
pub use crate::store::{Store, StoreOptions};
pub use crate::undo::{UndoConflict, UndoReport, UnreadableVersion};
pub use larder_extract::{
    Alarm, BODY_POSITIONS, CalendarContext, CorrespondentName, EMBEDDED_POSITIONS, Extractor,
    FieldIndex, IndexConfig, IndexConfigError, ItemOccurrence, LineWarning, MAX_COMMIT_PATHS,
    MIN_LONG_NUMBER_DIGITS, MessageTermField, Overlap, ParsedItem, RejectedItem, Schedule,
    StoredFields, TimeRange, TimeTarget, Trigger, WORD_PREFIX_CHARS, ZoneDefinition, ZoneResolver,
    ZoneUse, common_pair, hash_message_id, header_term, is_newer_revision, is_storable,
    message_flags, message_summary, term as term_encoding, tokenizer, write_message_term,
};
pub use larder_format::collection_type::CollectionType;
pub use larder_format::kind::Kind;
pub use larder_index::{
    EncodedSegment, MAX_RESTING_SEGMENTS, PhraseCursor, SegmentWords, SortPosition, TermChoice,
    WordBatch, WordCursor, WordPart, position_list,
};

/// The number of a batch: later batches have larger numbers. Order in a store is by this, never by
/// a clock.
pub type Seq = i64;
