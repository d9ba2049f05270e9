//! Tests through the public API, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test that cannot go on panics"
)]

mod backup;
mod blobs;
mod book;
mod calendar;
mod changes;
mod checksums;
mod full_text;
mod identity;
mod index_configs;
mod index_rebuild;
mod interrupted_restore;
mod locks;
mod mail_check;
mod mail_index;
mod mail_states;
mod mail_threads;
mod memory_map;
mod model;
mod output_file;
mod purge;
mod retention;
mod row_checksums;
mod salvage;
mod salvage_contexts;
mod sort_index;
mod two_stores;
mod undo;
mod undo_damage;
mod versions;
mod zones;
