//! Hearing the bell: who waits for news is woken after each commit, of whatever process.
//!
//! It says that there is something to read, and nothing else: what, `changes` and `news` tell.
//! Ringing it is a part of writing and lies in `lock`. The write-ahead log would wake too early: it
//! is written before a commit can be seen.

use crate::data_directory::DataDirectory;
use crate::error::{Error, Result};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::fmt;
use std::path::Path;

/// An ear at the bell of a store, until dropped.
pub struct CommitWatcher {
    _watcher: RecommendedWatcher,
}

impl fmt::Debug for CommitWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}

impl CommitWatcher {
    /// Calls `rung` soon after each commit to the store in `dir`, on a thread of its own. It may be
    /// called once for several, or when nothing happened. A writer that is killed between its
    /// commit and the bell does not ring.
    ///
    /// # Errors
    /// The system has no more watches to give.
    pub fn watch(dir: &Path, rung: impl Fn() + Send + 'static) -> Result<CommitWatcher> {
        let path = DataDirectory::new(dir).notify_path();
        let unheard = |error: notify::Error| {
            let source = match error.kind {
                notify::ErrorKind::Io(source) => source,
                kind => std::io::Error::other(format!("{kind:?}")),
            };
            Error::File { path: path.clone(), source }
        };
        let heard = move |event: notify::Result<notify::Event>| match event {
            // Who reads it is no news.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            // What could not be told may have been the bell.
            _ => rung(),
        };
        let mut watcher = notify::recommended_watcher(heard).map_err(unheard)?;
        watcher.watch(&path, RecursiveMode::NonRecursive).map_err(unheard)?;
        Ok(CommitWatcher { _watcher: watcher })
    }
}
