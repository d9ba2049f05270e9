//! Sources on disk: import of address books and calendars from files, folders and streams, and
//! export.
//!
//! [`import()`] finds the files, splits them into items, parses these in parallel, and writes them
//! in the order of the input. Rejected input is reported and, on request, kept. [`export()`] writes
//! a collection byte for byte.
//!
//! This crate implements no syntax (`larder-format` splits and parses) and no SQL (`larder-store`
//! reads and writes). It is a separate crate because it reads untrusted files: only this crate has
//! to handle missing, endless, damaged or misnamed files. It prints nothing: an import reports
//! [`ImportEvent`]s and returns an [`ImportReport`].
//!
//! | module | contents |
//! |---|---|
//! | `adoption` | labels and saved searches of other mail programs |
//! | `attachment_conversion` | the texts of attachments, by converters |
//! | `commit_sync` | bringing the index of a repository's commits up to date |
//! | `compression` | recognition of compressed files |
//! | `converter_process` | running a converter within limits |
//! | `departed_sources` | sources that are registered no more |
//! | `error` | errors that end an import or an export |
//! | `export` | export of a collection |
//! | `file_time` | the times of files |
//! | `git_repository` | git repositories, read through git |
//! | `import` | import into collections |
//! | `known_tips` | the tips of a repository at the last synchronisation |
//! | `label_exchange` | dumps of labels, for notmuch and mu |
//! | `link_folder` | maildirs of symbolic links |
//! | `maildir` | the folders and files of a maildir, or of a tree of mail files |
//! | `mbox_file` | the messages of an mbox file |
//! | `message_files` | the files of a message in the index |
//! | `mail_rules` | saved searches that label new mail |
//! | `mail_sync` | bringing the index of a maildir up to date |
//! | `regular_file` | opening files that must be regular ones |
//! | `renamed_files` | files that were renamed since the last synchronisation |
//! | `sources` | the registered sources |
//! | `sync_round` | one synchronisation of all sources |
//! | `mail_watch` | keeping the index up to date |

mod adoption;
mod attachment_conversion;
mod commit_sync;
mod compression;
mod converter_process;
mod departed_sources;
mod error;
mod export;
mod file_time;
pub mod git_repository;
mod import;
mod known_tips;
mod label_exchange;
mod link_folder;
mod mail_rules;
mod mail_sync;
mod mail_watch;
pub mod maildir;
mod mbox_file;
mod message_files;
mod regular_file;
mod renamed_files;
mod sources;
mod sync_round;

pub use crate::adoption::{
    AdoptionReport, ForeignMail, RefusedSearch, RunProgram, adopt_mail, read_mu, read_notmuch,
};
pub use crate::attachment_conversion::{
    AttachmentConverter, ConversionFailure, ConverterSettings, IndexedConversion,
};
pub use crate::commit_sync::{CommitSyncOptions, CommitSyncReport, sync_locked_commits};
pub use crate::compression::{Compression, detect_compression};
pub use crate::converter_process::ConverterLimits;
pub use crate::departed_sources::{DepartedSourceFollower, leave_out_departed_mail};
pub use crate::error::Error;
pub use crate::export::{ExportReport, export};
pub use crate::import::{
    CollectionCounts, DEFAULT_BATCH_ITEMS, DEFAULT_MAX_ITEM_BYTES, ImportDiagnostic, ImportEvent,
    ImportInput, ImportOptions, ImportReport, MAX_BATCH_ITEMS, import, rename_calendar,
};
pub use crate::label_exchange::{
    LabelExportRefusal, LabelExportReport, LabelImportReport, MAX_NAMED_UNINDEXED_MESSAGES,
    NotmuchTags, export_labels, import_labels,
};
pub use crate::link_folder::{LinkReport, link_messages};
pub use crate::mail_rules::{
    DEFAULT_INHERITED_LABELS, MailRule, MailRuleEffect, MailRuleProblem, MailRuleReport,
    MailRuleRun, RuleScope, run_mail_rules,
};
pub use crate::mail_sync::{
    DEFAULT_MAIL_BATCH, MailDisagreement, MailFinding, MailSource, MailSyncOptions, MailSyncReport,
    MailVerificationReport, SyncProblem, SyncProgress, find_absent_mail, is_mail_outdated,
    sync_locked_mail, sync_maildir, verify_mail,
};
pub use crate::mail_watch::{
    MailWatch, MailWatchEvent, MailWatchOptions, MailWatchWaker, WatchLimits,
};
pub use crate::maildir::MailSourceFormat;
pub use crate::mbox_file::{is_mbox_message, read_message_file};
pub use crate::message_files::{MessageFileFinder, MessageFiles};
pub use crate::renamed_files::RenamedFileFinder;
pub use crate::sources::{
    ForgottenSource, RegisteredSource, SourceSelection, SourceType, add_mail_source, add_source,
    find_departed_sources, find_overlapping_source, find_renamed_sources, find_unindexed_sources,
    follow_source_names, is_same_place, list_mail_sources, list_sources, map_mail_roots,
    map_source_paths, match_indexed_sources, remove_indexed_mail, remove_locked_mail,
    remove_source,
};
pub use crate::sync_round::{
    CommitRoundEvent, SourceStores, SyncRound, SyncRoundEvent, sync_mail_sources, sync_repositories,
};
