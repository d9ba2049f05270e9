//! Tests through the public API, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests fail by panics"
)]

mod attachment_conversion;
mod book;
mod calendar_contexts;
mod calendars;
mod cancel;
mod commit_sync;
mod compression;
mod corpora;
mod correspondents;
mod damaged_history;
mod export_items;
mod files;
mod git_home;
mod hostile;
mod import_table;
mod interruption;
mod item_folders;
mod limits;
mod mail_copies;
mod mail_erasure;
mod mail_file_systems;
mod mail_headers;
mod mail_label_identity;
mod mail_label_model;
mod mail_labels;
mod mail_rules;
mod mail_search;
mod mail_sources;
mod mail_step_limit;
mod mail_sync;
mod mail_sync_model;
mod mail_view;
mod mail_watch;
mod mailbox;
mod maildir;
mod mbox_sources;
mod message_lists;
mod rejects;
mod repetition;
