//! One synchronisation of all registered sources, under one lock.
//!
//! Separate from `mail_sync`, which concerns one maildir, and from `mail_watch`, which decides when
//! a round is due.

use crate::commit_sync::{CommitSyncOptions, CommitSyncReport, sync_locked_commits};
use crate::error::Error;
use crate::git_repository::{GitError, GitRepository, StartGit};
use crate::mail_sync::{
    MailSource, MailSyncOptions, MailSyncReport, SyncProgress, now_milliseconds, sync_locked_mail,
};
use crate::sources::{
    ForgottenSource, RegisteredSource, SourceSelection, SourceType, list_sources,
    match_indexed_sources,
};
use larder_edit::LabelFollower;
use larder_store::{DataDirectory, Reader, Store, StoreOptions};
use std::sync::Arc;

/// The store of the registrations, and the index of the messages or of the commits.
#[derive(Debug)]
pub struct SourceStores {
    /// The store of the registrations.
    pub data: DataDirectory,
    /// The index.
    pub index: DataDirectory,
    /// How the index is opened, and created.
    pub options: StoreOptions,
}

impl SourceStores {
    /// Returns the registered sources of mail.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list_mail_sources(&self) -> Result<Vec<RegisteredSource>, Error> {
        self.list_sources_of(SourceType::Mail)
    }

    fn list_sources_of(&self, source_type: SourceType) -> Result<Vec<RegisteredSource>, Error> {
        match self.data.has_store() {
            true => list_sources(&self.open_data()?, source_type),
            false => Ok(Vec::new()),
        }
    }

    /// Opens the store of the registrations. One that is missing, or that lacks commits, is an
    /// error: the index would lose all that the store does not know.
    fn open_data(&self) -> Result<Reader, Error> {
        let zones = Arc::clone(&self.options.zones);
        Ok(Reader::open_with_zones(self.data.clone(), zones)?.refuse_lost_commits()?)
    }
}

/// The sources of a round and how they are read.
#[derive(Debug, Clone, Copy)]
pub struct SyncRound<'r> {
    /// The sources.
    pub selection: &'r SourceSelection,
    /// How they are read.
    pub options: &'r MailSyncOptions,
    /// The time, in milliseconds since 1970.
    pub at: i64,
}

/// A part of a round.
#[derive(Debug)]
pub enum SyncRoundEvent<'e> {
    /// A collection is no source any more, and left the index.
    Forgotten(&'e ForgottenSource),
    /// Messages of a source were written.
    Progress(SyncProgress),
    /// A source was read, or could not be.
    Finished(&'e RegisteredSource, &'e Result<MailSyncReport, Error>),
}

/// Brings the index of the sources up to date. A source that cannot be read does not end the round.
/// Returns the names of the sources that were read.
///
/// # Errors
/// A store cannot be read or written.
pub fn sync_mail_sources(
    stores: &SourceStores,
    round: &SyncRound<'_>,
    report_event: &mut dyn FnMut(SyncRoundEvent<'_>),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<String>, Error> {
    let synced = sync_due_sources(stores, round, None, report_event, is_cancelled)?;
    Ok(synced.completed)
}

/// The sources whose mail changed since a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueSources<'r> {
    /// The sources.
    pub(crate) selection: &'r SourceSelection,
    /// The epoch of the index in that round.
    pub(crate) index_epoch: &'r str,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct SyncedSources {
    /// The names of the sources that were read.
    pub(crate) completed: Vec<String>,
    /// The epoch of the index.
    pub(crate) index_epoch: Arc<str>,
}

/// Brings the index of the sources up to date, as [`sync_mail_sources`]; of the sources of the
/// round, only those that are due. An index with another epoch was deleted, or made again by
/// another program, and may lack all others, so that all of the round are read.
///
/// # Errors
/// As [`sync_mail_sources`].
pub(crate) fn sync_due_sources(
    stores: &SourceStores,
    round: &SyncRound<'_>,
    due: Option<DueSources<'_>>,
    report_event: &mut dyn FnMut(SyncRoundEvent<'_>),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<SyncedSources, Error> {
    let mut completed = Vec::new();
    let mut index = Store::open(stores.index.clone(), &stores.options)?;
    let lock = index.lock_mail_sync()?;
    let index_epoch = index.open_reader()?.epoch()?;
    let due = due.filter(|due| *due.index_epoch == *index_epoch);
    let data = stores.open_data()?;
    let sources = list_sources(&data, SourceType::Mail)?;
    let mut labels = LabelFollower::new(data);
    for forgotten in match_indexed_sources(&mut index, &lock, SourceType::Mail, &sources, round.at)?
    {
        report_event(SyncRoundEvent::Forgotten(&forgotten));
    }
    let mut failure = None;
    for source in &sources {
        let is_due = due.is_none_or(|due| due.selection.contains(source));
        if !is_due || !round.selection.contains(source) {
            continue;
        }
        let mail =
            MailSource { root: &source.path, format: source.format, collection: &source.name };
        let report = sync_locked_mail(
            &mut index,
            &lock,
            mail,
            round.options,
            Some(&mut labels),
            &mut |progress| report_event(SyncRoundEvent::Progress(progress)),
            is_cancelled,
        );
        if let Err(error @ Error::Store(_)) = report {
            failure = Some(error);
            break;
        }
        let is_interrupted = report.as_ref().is_ok_and(|report| report.is_interrupted);
        if report.is_ok() && !is_interrupted {
            completed.push(source.name.clone());
        }
        report_event(SyncRoundEvent::Finished(source, &report));
        if is_interrupted || is_cancelled() {
            break;
        }
    }
    match failure {
        None => index.end_mail_sync(lock)?,
        Some(_) => drop(lock),
    }
    // Those who changed labels while the lock was held left the copy to this synchronisation. After
    // a failure, the next search follows, and names it.
    let _outdated = labels.follow(&mut index, now_milliseconds());
    failure.map_or(Ok(SyncedSources { completed, index_epoch }), Err)
}

/// A part of a round of repositories.
#[derive(Debug)]
pub enum CommitRoundEvent<'e> {
    /// A collection is no source any more, and left the index.
    Forgotten(&'e ForgottenSource),
    /// Commits of a source were written.
    Progress(SyncProgress),
    /// A source was read, or could not be.
    Finished(&'e RegisteredSource, &'e Result<CommitSyncReport, Error>),
}

/// Brings the index of the repositories up to date, as [`sync_mail_sources`] does for maildirs. The
/// index of `stores` is that of commits.
///
/// # Errors
/// A store cannot be read or written.
pub fn sync_repositories(
    stores: &SourceStores,
    selection: &SourceSelection,
    options: CommitSyncOptions,
    at: i64,
    start_git: StartGit<'_>,
    report_event: &mut dyn FnMut(CommitRoundEvent<'_>),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(), Error> {
    if !stores.index.has_store() && stores.list_sources_of(SourceType::Repository)?.is_empty() {
        return Ok(());
    }
    let mut index = Store::open(stores.index.clone(), &stores.options)?;
    let lock = index.lock_mail_sync()?;
    let sources = list_sources(&stores.open_data()?, SourceType::Repository)?;
    let source_type = SourceType::Repository;
    for forgotten in match_indexed_sources(&mut index, &lock, source_type, &sources, at)? {
        report_event(CommitRoundEvent::Forgotten(&forgotten));
    }
    for source in &sources {
        if !selection.contains(source) {
            continue;
        }
        let mut sync = || {
            let repository = GitRepository::open_until(&source.path, start_git, is_cancelled)?
                .with_time_limits(options.time_limits);
            sync_locked_commits(
                &mut index,
                &lock,
                &repository,
                &source.name,
                options,
                &mut |progress| report_event(CommitRoundEvent::Progress(progress)),
                is_cancelled,
            )
        };
        let report = match sync() {
            Err(error @ Error::Store(_)) => return Err(error),
            Err(Error::Git(GitError::Cancelled)) => {
                Ok(CommitSyncReport { is_interrupted: true, ..CommitSyncReport::default() })
            }
            report => report,
        };
        report_event(CommitRoundEvent::Finished(source, &report));
        if is_cancelled() {
            break;
        }
    }
    Ok(index.end_mail_sync(lock)?)
}
