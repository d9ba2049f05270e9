//! Keeping the index of the sources up to date while their folders change.
//!
//! 1. All sources are synchronised, and all their folders are watched. New watches are followed by
//!    another round, because a file may have come before the watch.
//! 2. A change starts a round of its source, when no further change comes for a moment.
//! 3. Lost changes, and changed registrations, start a round of all sources, as does the interval:
//!    file systems of other machines report no changes.
//! 4. A maildir that is gone is waited for: the folder above it is watched, and it is looked for
//!    every half minute, because a mounted disk reports no change.
//!
//! Separate from `sync_round`, which synchronises once. Between the rounds nothing is open and no
//! lock is held.

mod folder_watches;

use crate::error::Error;
use crate::mail_sync::MailSyncOptions;
use crate::maildir::MailSourceFormat;
use crate::sources::{RegisteredSource, SourceSelection};
use crate::sync_round::{DueSources, SourceStores, SyncRound, SyncRoundEvent, sync_due_sources};
use folder_watches::FolderWatches;
use larder_store::{CommitWatcher, DirectoryChange, DirectoryWatcher, WatchOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A round begins when no change came for this time.
const QUIET_TIME: Duration = Duration::from_millis(200);
/// A round begins at the latest this long after a change.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// The time between two looks for a maildir that is gone, and at files that were not settled.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The longest time between two rounds of all sources while not all folders can be watched.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(60);

/// The limits of a watch of folders.
#[derive(Debug, Clone, Copy)]
pub struct WatchLimits {
    /// The number of folders that are watched at most, beside the limit of the system.
    pub folders: usize,
    /// The longest time between two rounds of all sources while not all folders are watched.
    pub unwatched_interval: Duration,
}

impl Default for WatchLimits {
    fn default() -> WatchLimits {
        WatchLimits { folders: usize::MAX, unwatched_interval: UNWATCHED_INTERVAL }
    }
}

/// The settings of a watch.
#[derive(Debug, Clone)]
pub struct MailWatchOptions {
    /// The sources.
    pub selection: SourceSelection,
    /// How they are read.
    pub sync: MailSyncOptions,
    /// The time between two rounds of all sources; `None`: they have no regular rounds.
    pub interval: Option<Duration>,
    /// The limits of watches.
    pub limits: WatchLimits,
}

/// A part of a watch.
#[derive(Debug)]
pub enum MailWatchEvent<'e> {
    /// A part of a round. A failure of a source is reported when it is new.
    Round(SyncRoundEvent<'e>),
    /// A round has ended, in which these sources were read.
    RoundEnded(&'e [String]),
    /// All sources are up to date, and this many folders are watched.
    Ready {
        /// The number of folders.
        folders: usize,
    },
    /// The system lost changes; all sources are read.
    Lost,
    /// The system allows no more watches: all sources are read every minute.
    LimitReached {
        /// The number of folders that are watched.
        folders: usize,
    },
}

/// A signal to a watch.
#[derive(Debug)]
enum WatchSignal {
    Change(DirectoryChange),
    /// A batch was committed to the store of the registrations.
    Commit,
    /// The caller wants an answer: it may have cancelled the watch.
    Wake,
}

/// Wakes a watch, so that it notices that it is cancelled.
#[derive(Debug, Clone)]
pub struct MailWatchWaker(Sender<WatchSignal>);

impl MailWatchWaker {
    /// Wakes the watch.
    pub fn wake(&self) {
        // A watch that has ended needs no signal.
        let _ended = self.0.send(WatchSignal::Wake);
    }
}

/// A watch of all sources.
#[derive(Debug)]
pub struct MailWatch {
    sender: Sender<WatchSignal>,
    signals: Receiver<WatchSignal>,
    watches: FolderWatches,
    /// The folders of each source, at its last round.
    folders: BTreeMap<String, BTreeSet<PathBuf>>,
    /// The mbox files of each source that are elsewhere, and reached by links, at the last round in
    /// which it was read: a source of one that is gone comes back with it.
    link_targets: BTreeMap<String, Vec<PathBuf>>,
    /// The sources that could not be read, with the reason.
    failures: BTreeMap<String, String>,
    /// The sources with an mbox file that may be being written anew: its last change may be over.
    unsettled: BTreeSet<String>,
    /// The maildirs that were lost in the last round.
    lost_roots: Vec<PathBuf>,
    /// The files with attachments that had no time: a converter that hangs on all of them would
    /// let each round read all of them.
    postponed: BTreeSet<PathBuf>,
    /// Files and folders that went away since the last wait for changes began, and, until the
    /// changes that came during the round in between are noted, those of the wait before: the round
    /// may have met a file that was made again under its name. Later ones are new to the index.
    removed: BTreeSet<PathBuf>,
    formerly_removed: BTreeSet<PathBuf>,
    sources: Vec<RegisteredSource>,
    /// The epoch of the index in the last round.
    index_epoch: Option<Arc<str>>,
    is_limit_reached: bool,
}

/// The sources that a round is due for.
#[derive(Debug, Default)]
struct DueRound {
    is_all: bool,
    is_lost: bool,
    names: BTreeSet<String>,
    /// Files that were edited in place, or made again under their names.
    edited_files: BTreeSet<PathBuf>,
    /// Directories that had no watch for a moment, in which files may have been edited.
    edited_directories: BTreeSet<PathBuf>,
    /// Files that appeared since the last round: writing to them is no edit.
    added: BTreeSet<PathBuf>,
}

impl MailWatch {
    /// Begins a watch; nothing is read before [`MailWatch::run`].
    ///
    /// # Errors
    /// The system allows no watchers.
    pub fn begin() -> Result<MailWatch, Error> {
        let (sender, signals) = channel();
        let changes = sender.clone();
        let watcher = DirectoryWatcher::new(move |change| {
            // The watch may have ended.
            let _ended = changes.send(WatchSignal::Change(change));
        })?;
        Ok(MailWatch {
            sender,
            signals,
            watches: FolderWatches::new(watcher),
            folders: BTreeMap::new(),
            link_targets: BTreeMap::new(),
            failures: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            lost_roots: Vec::new(),
            postponed: BTreeSet::new(),
            removed: BTreeSet::new(),
            formerly_removed: BTreeSet::new(),
            sources: Vec::new(),
            index_epoch: None,
            is_limit_reached: false,
        })
    }

    /// Returns a waker.
    #[must_use]
    pub fn waker(&self) -> MailWatchWaker {
        MailWatchWaker(self.sender.clone())
    }

    /// Keeps the index up to date until `is_cancelled` returns true.
    ///
    /// # Errors
    /// A store cannot be read or written.
    pub fn run(
        &mut self,
        stores: &SourceStores,
        options: &MailWatchOptions,
        report_event: &mut dyn FnMut(MailWatchEvent<'_>),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let commits = self.sender.clone();
        let _commits = CommitWatcher::watch(stores.data.clone(), move || {
            let _ended = commits.send(WatchSignal::Commit);
        })?;
        let mut due = DueRound { is_all: true, ..DueRound::default() };
        let (mut last_scan, mut is_ready) = (Instant::now(), false);
        // Later rounds are for changes, which the system names.
        let mut is_full = options.sync.is_full;
        while !is_cancelled() {
            if due.is_all {
                last_scan = Instant::now();
            }
            let is_edited = |path: &PathBuf| {
                let folder = path.parent();
                due.edited_files.contains(path)
                    || folder.is_some_and(|folder| due.edited_directories.contains(folder))
            };
            self.postponed.retain(|path| !is_edited(path));
            let sync = MailSyncOptions {
                skipped_files: self.postponed.clone(),
                is_full: std::mem::take(&mut is_full),
                edited_files: due.edited_files.clone(),
                edited_directories: due.edited_directories.clone(),
                ..options.sync.clone()
            };
            self.run_round(stores, options, &due, &sync, report_event, is_cancelled)?;
            if is_cancelled() {
                break;
            }
            if let Some(round) = self.update_watches(options.limits, report_event) {
                due = round;
                continue;
            }
            if !std::mem::replace(&mut is_ready, true) {
                report_event(MailWatchEvent::Ready { folders: self.watches.count() });
            }
            due = self.wait(stores, options, last_scan, is_cancelled)?;
            if due.is_lost {
                report_event(MailWatchEvent::Lost);
            }
        }
        Ok(())
    }

    /// Synchronises the sources that are due.
    fn run_round(
        &mut self,
        stores: &SourceStores,
        options: &MailWatchOptions,
        due: &DueRound,
        sync: &MailSyncOptions,
        report_event: &mut dyn FnMut(MailWatchEvent<'_>),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        self.sources = self.list_sources(stores, options)?;
        let due_selection = SourceSelection::from_names(&due.names, &self.sources);
        let index_epoch = self.index_epoch.take().filter(|_| !due.is_all);
        let due_sources = index_epoch
            .as_deref()
            .map(|index_epoch| DueSources { selection: &due_selection, index_epoch });
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        let round = SyncRound { selection: &options.selection, options: sync, at };
        let (folders, failures) = (&mut self.folders, &mut self.failures);
        let (lost_roots, postponed) = (&mut self.lost_roots, &mut self.postponed);
        let (unsettled, link_targets) = (&mut self.unsettled, &mut self.link_targets);
        let synced = sync_due_sources(
            stores,
            &round,
            due_sources,
            &mut |event| {
                if let SyncRoundEvent::Finished(source, result) = &event {
                    unsettled.remove(&source.name);
                    match result {
                        Ok(report) => {
                            failures.remove(&source.name);
                            unsettled
                                .extend(report.has_unsettled_files.then(|| source.name.clone()));
                            postponed.extend(report.postponed_files.iter().cloned());
                            let scanned = report.scanned_folders.iter().cloned().collect();
                            folders.insert(source.name.clone(), scanned);
                            link_targets.insert(source.name.clone(), report.link_targets.clone());
                        }
                        Err(error) => {
                            folders.remove(&source.name);
                            let reason = error.to_string();
                            let former = failures.insert(source.name.clone(), reason.clone());
                            if former.is_none() {
                                lost_roots.push(source.path.clone());
                            }
                            if former == Some(reason) {
                                return;
                            }
                        }
                    }
                }
                report_event(MailWatchEvent::Round(event));
            },
            is_cancelled,
        )?;
        self.index_epoch = Some(synced.index_epoch);
        report_event(MailWatchEvent::RoundEnded(&synced.completed));
        Ok(())
    }

    fn list_sources(
        &self,
        stores: &SourceStores,
        options: &MailWatchOptions,
    ) -> Result<Vec<RegisteredSource>, Error> {
        let mut sources = stores.list_mail_sources()?;
        sources.retain(|source| options.selection.contains(source));
        Ok(sources)
    }

    /// Watches the folders of the sources. Returns the round that new watches need.
    fn update_watches(
        &mut self,
        limits: WatchLimits,
        report_event: &mut dyn FnMut(MailWatchEvent<'_>),
    ) -> Option<DueRound> {
        // A maildir that comes back at this moment has new folders under the same names.
        for root in std::mem::take(&mut self.lost_roots) {
            self.watches.forget(&root);
        }
        let mut wanted = BTreeSet::new();
        let sources = &self.sources;
        let is_source = |name: &String| sources.iter().any(|source| source.name == *name);
        self.folders.retain(|name, _| is_source(name));
        self.link_targets.retain(|name, _| is_source(name));
        self.failures.retain(|name, _| is_source(name));
        self.unsettled.retain(|name| is_source(name));
        for source in &self.sources {
            match self.folders.get(&source.name) {
                Some(folders) => wanted.extend(folders.iter().cloned()),
                None => wanted.extend(nearest_folder(&source.path)),
            }
            if source.path.is_symlink() {
                wanted.extend(source.path.parent().map(Path::to_path_buf));
            }
        }
        let targets = self.link_targets.values().flatten();
        wanted.extend(targets.filter_map(|target| target.parent()).map(Path::to_path_buf));
        self.watches.retain(&wanted);
        let mut due = None;
        for folder in wanted {
            if self.watches.contains(&folder) {
                continue;
            }
            match self.watches.add(folder.clone(), limits.folders) {
                WatchOutcome::Watched => {
                    let new = || DueRound { is_all: true, ..DueRound::default() };
                    let due = due.get_or_insert_with(new);
                    if self.watches.has_ended(&folder) {
                        due.edited_directories.insert(folder);
                    }
                }
                WatchOutcome::Missing => {}
                WatchOutcome::LimitReached => {
                    if !std::mem::replace(&mut self.is_limit_reached, true) {
                        let folders = self.watches.count();
                        report_event(MailWatchEvent::LimitReached { folders });
                    }
                    break;
                }
            }
        }
        self.watches.finish_update();
        due
    }

    /// Waits for changes, or until a regular round is due.
    fn wait(
        &mut self,
        stores: &SourceStores,
        options: &MailWatchOptions,
        last_scan: Instant,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<DueRound, Error> {
        let mut due = DueRound::default();
        self.formerly_removed = std::mem::take(&mut self.removed);
        let began = Instant::now();
        let interval = match (options.interval, self.is_limit_reached) {
            (Some(interval), true) => Some(interval.min(options.limits.unwatched_interval)),
            (None, true) => Some(options.limits.unwatched_interval),
            (interval, false) => interval,
        };
        let next_scan = interval.and_then(|interval| last_scan.checked_add(interval));
        let has_retries = !self.failures.is_empty() || !self.unsettled.is_empty();
        let next_retry = if has_retries { began.checked_add(RETRY_INTERVAL) } else { None };
        let end_of_removals = began + MAX_DELAY;
        let mut first_change = None;
        while !is_cancelled() {
            let now = Instant::now();
            let delay = first_change.map(|first| (now + QUIET_TIME).min(first + MAX_DELAY));
            let removals = (!self.formerly_removed.is_empty()).then_some(end_of_removals);
            let deadline = [next_scan, next_retry, delay, removals].into_iter().flatten().min();
            let signal = match deadline {
                Some(deadline) => {
                    self.signals.recv_timeout(deadline.saturating_duration_since(now))
                }
                None => self.signals.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match signal {
                Ok(WatchSignal::Change(change)) => {
                    self.add_change(&change, &mut due);
                }
                Ok(WatchSignal::Commit) => {
                    due.is_all |= self.list_sources(stores, options)? != self.sources;
                }
                Ok(WatchSignal::Wake) => {}
                Err(_) => {
                    let now = Instant::now();
                    if now >= end_of_removals {
                        self.formerly_removed.clear();
                    }
                    due.is_all |= next_scan.is_some_and(|next_scan| now >= next_scan);
                    if next_retry.is_some_and(|next_retry| now >= next_retry) {
                        due.names.extend(self.failures.keys().chain(&self.unsettled).cloned());
                    }
                    if due.is_all || !due.names.is_empty() {
                        return Ok(due);
                    }
                }
            }
            if first_change.is_none() && (due.is_all || !due.names.is_empty()) {
                first_change = Some(Instant::now());
            }
            if first_change.is_some_and(|first| first.elapsed() >= MAX_DELAY) {
                return Ok(due);
            }
        }
        Ok(due)
    }

    /// Notes a change under all its paths, unless no index depends on it: mail programs write files
    /// of their own into the folders all the time.
    fn add_change(&mut self, change: &DirectoryChange, due: &mut DueRound) {
        let mut changes = self.watches.translate(change.clone());
        changes.retain(|one| self.is_relevant(one));
        for one in changes {
            let is_named = one == *change;
            self.add_relevant_change(one, is_named, due);
        }
    }

    /// Notes a change, which has the path that the system named, or another one.
    fn add_relevant_change(&mut self, change: DirectoryChange, is_named: bool, due: &mut DueRound) {
        let path = match change {
            DirectoryChange::Lost => {
                (due.is_all, due.is_lost) = (true, true);
                return;
            }
            DirectoryChange::Added(path) => {
                // A new file may have the inode of the one that had its name, and is known by both.
                if self.removed.contains(&path) || self.formerly_removed.contains(&path) {
                    due.edited_files.insert(path.clone());
                }
                // A link that leads elsewhere now replaced one without a word.
                self.watches.forget_replaced(&path);
                due.added.insert(path.clone());
                path
            }
            DirectoryChange::Removed(path) => {
                // A folder that comes back under this name needs another watch. It may still be
                // there under another path, such as after a link to it was removed.
                match is_named {
                    true => self.watches.forget(&path),
                    false => self.watches.forget_replaced(&path),
                }
                self.removed.insert(path.clone());
                path
            }
            DirectoryChange::Edited(path) => {
                if !due.added.contains(&path) {
                    due.edited_files.insert(path.clone());
                }
                path
            }
        };
        let sources = self.sources.iter().filter(|source| {
            path.starts_with(&source.path)
                || source.path.starts_with(&path)
                || self.has_link_target(source, &path)
                || self.failures.contains_key(&source.name)
        });
        due.names.extend(sources.map(|source| source.name.clone()));
    }

    /// Returns whether a link of a source leads to a path, or below it.
    fn has_link_target(&self, source: &RegisteredSource, path: &Path) -> bool {
        let targets = self.link_targets.get(&source.name);
        targets.is_some_and(|targets| targets.iter().any(|target| target.starts_with(path)))
    }

    /// Returns whether a change may be one of messages or of folders.
    fn is_relevant(&self, change: &DirectoryChange) -> bool {
        let (DirectoryChange::Added(path)
        | DirectoryChange::Removed(path)
        | DirectoryChange::Edited(path)) = change
        else {
            return true;
        };
        let name = path.file_name().unwrap_or_default();
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if (folder == "cur" || folder == "new") && !is_hidden
            || self.sources.iter().any(|source| self.has_link_target(source, path))
        {
            return true;
        }
        let is_of_file_source = self.sources.iter().any(|source| {
            source.format == MailSourceFormat::Files
                && (path.starts_with(&source.path) || source.path == *path)
        });
        // Mail programs keep their own files beside these, too, but those have any name.
        if is_of_file_source && !is_hidden {
            return path.extension().is_none_or(|ending| ending != "msf" && ending != "lock");
        }
        let is_folder = || match change {
            // A link that leads nowhere may have replaced one to a folder.
            DirectoryChange::Added(_) => path.is_dir() || self.watches.contains(path),
            // It is not known any more what it was: a folder was watched, or had one that was.
            DirectoryChange::Removed(_) => {
                self.watches.has_within(path)
                    || self.sources.iter().any(|source| source.path.starts_with(path))
            }
            _ => false,
        };
        name == ".noindex" || name == ".noupdate" || is_folder()
    }
}

/// Returns the nearest folder at or above a path that is there.
fn nearest_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| folder.is_dir()).map(Path::to_path_buf)
}
