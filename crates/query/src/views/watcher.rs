//! The thread that waits for commit notifications and for the clock; while a view is open, it waits
//! at most one second.
//!
//! A separate module because it is the only part of the views that waits. It makes the engine read
//! the change feed, and is independent of views.

use super::engine::{ViewsEngine, update_engine};
use super::mutex::lock_ignoring_poison;
use super::reader_pool::ReaderPool;
use super::views_log::ViewsLog;
use larder_store::CommitWatcher;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest time for which a commit may stay unnoticed if its writer was killed before the
/// notification.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The thread, which starts with the first view, and the state that is released with the last
/// handle of the views.
pub(super) struct ViewsWatcher {
    watched: Arc<WatchedViews>,
    signal: Arc<WatcherSignal>,
    /// `None` in it before the thread is started; `None` if the program polls by itself.
    thread: Option<Mutex<Option<JoinHandle<()>>>>,
}

/// The data that the thread uses. It contains no handle of the views, so that the thread does not
/// keep them alive.
struct WatchedViews {
    engine: Arc<Mutex<ViewsEngine>>,
    readers: Arc<ReaderPool>,
    log: ViewsLog,
}

/// The condition that the thread waits for.
#[derive(Default)]
struct WatcherSignal {
    flags: Mutex<WatcherFlags>,
    changed: Condvar,
}

#[derive(Default)]
struct WatcherFlags {
    /// A commit was notified.
    is_notified: bool,
    /// A view is open.
    is_awake: bool,
    is_stopped: bool,
}

impl ViewsWatcher {
    pub(super) fn new(
        engine: Arc<Mutex<ViewsEngine>>,
        readers: Arc<ReaderPool>,
        log: ViewsLog,
        is_enabled: bool,
    ) -> ViewsWatcher {
        ViewsWatcher {
            watched: Arc::new(WatchedViews { engine, readers, log }),
            signal: Arc::default(),
            thread: is_enabled.then(Mutex::default),
        }
    }

    /// Makes the thread wait for commits, because a view was opened.
    pub(super) fn wake(&self) {
        let Some(thread) = &self.thread else { return };
        let mut flags = lock_ignoring_poison(&self.signal.flags);
        if flags.is_awake {
            return;
        }
        flags.is_awake = true;
        drop(flags);
        self.signal.changed.notify_one();
        let mut thread = lock_ignoring_poison(thread);
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let (watched, signal) = (Arc::clone(&self.watched), Arc::clone(&self.signal));
            let builder = std::thread::Builder::new().name("larder-views".into());
            let spawned = builder.spawn(move || {
                let _guard = WatcherExitGuard(&signal);
                run_watcher(&watched, &signal);
            });
            // Without the thread a view gets changes by `Views::catch_up` only; the next view that
            // is opened tries again.
            *thread = spawned.ok();
            lock_ignoring_poison(&self.signal.flags).is_awake = thread.is_some();
        }
    }

    /// Releases the memory that is held for speed, if no view is open.
    pub(super) fn release_memory(&self) {
        self.watched.release_memory();
    }
}

impl Drop for ViewsWatcher {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.signal.flags).is_stopped = true;
        self.signal.changed.notify_all();
        let thread = self.thread.as_ref().and_then(|thread| lock_ignoring_poison(thread).take());
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ended = thread.join();
        }
        // Nothing is recorded any more, now that the thread has ended.
        self.watched.log.record_end();
    }
}

/// Clears the `is_awake` flag when the thread ends, even if a wake callback panics.
struct WatcherExitGuard<'a>(&'a WatcherSignal);

impl Drop for WatcherExitGuard<'_> {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.0.flags).is_awake = false;
    }
}

impl WatcherSignal {
    /// Waits for a commit notification, for `timeout` at most; without one, until a view is open.
    /// Returns whether a commit was notified; `None` if the thread is to end.
    fn wait_for_commit(&self, timeout: Option<Duration>) -> Option<bool> {
        let flags = lock_ignoring_poison(&self.flags);
        let is_idle = |flags: &mut WatcherFlags| !(flags.is_notified || flags.is_stopped);
        let mut flags = match timeout {
            None => {
                let is_asleep = |flags: &mut WatcherFlags| is_idle(flags) && !flags.is_awake;
                self.changed.wait_while(flags, is_asleep).unwrap_or_else(PoisonError::into_inner)
            }
            Some(timeout) => {
                let woken = self.changed.wait_timeout_while(flags, timeout, is_idle);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (!flags.is_stopped).then(|| mem::take(&mut flags.is_notified))
    }
}

fn run_watcher(views: &WatchedViews, signal: &Arc<WatcherSignal>) {
    let watch_commits = || {
        let signal = Arc::clone(signal);
        let notify = move || {
            lock_ignoring_poison(&signal.flags).is_notified = true;
            signal.changed.notify_one();
        };
        CommitWatcher::watch(views.readers.directory(), notify).ok()
    };
    let mut commit_watcher = watch_commits();
    let mut timeout = Some(Duration::ZERO);
    while let Some(is_notified) = signal.wait_for_commit(timeout) {
        let seq_before = views.seq();
        // A client gets the same error from its view; the next poll may succeed.
        let polled = update_engine(&views.engine, ViewsEngine::catch_up);
        // If a commit came without a notification, another file may have replaced the watched
        // notify file.
        if commit_watcher.is_none() || (!is_notified && views.seq() != seq_before) {
            commit_watcher = watch_commits();
        }
        views.release_memory();
        // Both under one lock: a view that is opened in between finds the thread asleep, and wakes
        // it.
        let mut flags = lock_ignoring_poison(&signal.flags);
        let time_to_next_deadline =
            lock_ignoring_poison(&views.engine).time_to_next_deadline(POLL_INTERVAL);
        timeout =
            time_to_next_deadline.map(|time| if polled.is_err() { POLL_INTERVAL } else { time });
        flags.is_awake = timeout.is_some();
    }
}

impl WatchedViews {
    fn seq(&self) -> larder_store::Seq {
        lock_ignoring_poison(&self.engine).state().seq
    }

    fn release_memory(&self) {
        self.log.flush();
        if lock_ignoring_poison(&self.engine).count_open_views() == 0 {
            self.readers.release_memory();
        }
    }
}
