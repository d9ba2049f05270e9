//! Watching directories: the caller is told of each change in them.
//!
//! Separate from `commit_notification`, which watches one file of the store; here because only this
//! crate uses the system's interface for watches. Only the directories themselves are watched, not
//! those in them: the caller knows which ones matter.

use crate::error::{Error, Result};
use notify::event::{ModifyKind, RenameMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::fmt;
use std::path::{Path, PathBuf};

/// A change in a watched directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryChange {
    /// A file or a directory appeared under this name.
    Added(PathBuf),
    /// A file or a directory of this name went away.
    Removed(PathBuf),
    /// The content of a file changed.
    Edited(PathBuf),
    /// Changes were lost: there were too many at once.
    Lost,
}

/// The result of watching a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchOutcome {
    /// It is watched.
    Watched,
    /// It is not there any more, or cannot be read.
    Missing,
    /// The system allows no more watches.
    LimitReached,
}

/// Watches directories until dropped.
pub struct DirectoryWatcher {
    watcher: RecommendedWatcher,
}

impl fmt::Debug for DirectoryWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryWatcher").finish_non_exhaustive()
    }
}

impl DirectoryWatcher {
    /// Creates a watcher that calls `notify` with each change, on a separate thread.
    ///
    /// # Errors
    /// The system's limit of watchers is reached.
    pub fn new(notify: impl Fn(DirectoryChange) + Send + 'static) -> Result<DirectoryWatcher> {
        let on_event = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => notify(DirectoryChange::Lost),
            Ok(event) => to_changes(event, &notify),
            // An error of the watch may hide a change.
            Err(_) => notify(DirectoryChange::Lost),
        };
        let watcher = notify::recommended_watcher(on_event).map_err(|error| {
            let source = match error.kind {
                notify::ErrorKind::Io(source) => source,
                kind => std::io::Error::other(format!("{kind:?}")),
            };
            Error::File { path: PathBuf::from("inotify"), source }
        })?;
        Ok(DirectoryWatcher { watcher })
    }

    /// Watches a directory.
    pub fn watch(&mut self, directory: &Path) -> WatchOutcome {
        match self.watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => WatchOutcome::Watched,
            Err(error) => match error.kind {
                notify::ErrorKind::MaxFilesWatch => WatchOutcome::LimitReached,
                _ => WatchOutcome::Missing,
            },
        }
    }

    /// Ends the watch of a directory. One that was removed has no watch any more.
    pub fn unwatch(&mut self, directory: &Path) {
        let _missing = self.watcher.unwatch(directory);
    }
}

fn to_changes(event: notify::Event, notify: &impl Fn(DirectoryChange)) {
    let to_change = match event.kind {
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
            DirectoryChange::Added
        }
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
            DirectoryChange::Removed
        }
        // The two events above came before.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
        EventKind::Modify(ModifyKind::Name(_)) => DirectoryChange::Removed,
        EventKind::Modify(ModifyKind::Data(_)) => DirectoryChange::Edited,
        _ => return,
    };
    event.paths.into_iter().for_each(|path| notify(to_change(path)));
}
