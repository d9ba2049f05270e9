//! Commit notification: a watcher of the notify file is woken after each commit of any process.
//!
//! The watcher only learns that there are changes; `change_feed` and `before_images` read them.
//! Writing the file is part of a commit and is in `lock`. Watching the write-ahead log instead
//! would wake too early, because the log is written before a commit is visible.

use crate::data_directory::DataDirectory;
use crate::error::{Error, Result};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::fmt;

/// Watches the notify file of a store until dropped.
pub struct CommitWatcher {
    _watcher: RecommendedWatcher,
}

impl fmt::Debug for CommitWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitWatcher").finish_non_exhaustive()
    }
}

impl CommitWatcher {
    /// Calls `notify` soon after each commit to the store, on a separate thread. `notify`
    /// may be called once for several commits, or without a commit. If a writer is killed between
    /// its commit and the write to the notify file, no watcher is notified.
    ///
    /// # Errors
    /// Fails if the system's limit of watches is reached.
    pub fn watch(
        directory: impl Into<DataDirectory>,
        notify: impl Fn() + Send + 'static,
    ) -> Result<CommitWatcher> {
        let path = directory.into().notify_path();
        let watch_error = |error: notify::Error| {
            let source = match error.kind {
                notify::ErrorKind::Io(source) => source,
                kind => std::io::Error::other(format!("{kind:?}")),
            };
            Error::File { path: path.clone(), source }
        };
        let on_event = move |event: notify::Result<notify::Event>| match event {
            // Reading the file changes nothing.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            // An error of the watch may hide a commit.
            _ => notify(),
        };
        let mut watcher = notify::recommended_watcher(on_event).map_err(watch_error)?;
        watcher.watch(&path, RecursiveMode::NonRecursive).map_err(watch_error)?;
        Ok(CommitWatcher { _watcher: watcher })
    }
}
