//! The thread that waits for news: for the bell, for the clock, and while a view is open once a
//! second.
//!
//! It knows no view. It is apart because it is the only thing here that waits.

use super::ViewsShared;
use super::state::lock_ignoring_poison;
use larder_store::CommitWatcher;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A writer that was killed between its commit and the bell is noticed after so long.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What the thread waits for.
#[derive(Default)]
struct WatcherSignal {
    state: Mutex<WatcherFlags>,
    changed: Condvar,
}

#[derive(Default)]
struct WatcherFlags {
    notified: bool,
    /// A view is open.
    awake: bool,
    stopped: bool,
}

/// The thread, from the first view on.
pub(super) struct ViewsWatcher {
    shared: Arc<ViewsShared>,
    signal: Arc<WatcherSignal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ViewsWatcher {
    pub(super) fn new(shared: Arc<ViewsShared>) -> ViewsWatcher {
        ViewsWatcher { shared, signal: Arc::default(), thread: Mutex::new(None) }
    }

    /// A view was opened.
    pub(super) fn ensure_running(&self) {
        let mut called = lock_ignoring_poison(&self.signal.state);
        if called.awake {
            return;
        }
        called.awake = true;
        drop(called);
        self.signal.changed.notify_one();
        let mut thread = lock_ignoring_poison(&self.thread);
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let (shared, call) = (Arc::clone(&self.shared), Arc::clone(&self.signal));
            let named = std::thread::Builder::new().name("larder-views".into());
            let started = named.spawn(move || {
                let _asleep = WatcherExitGuard(&call);
                run_watcher(&shared, &call);
            });
            // Without it there are no news but those that are asked for; the next view tries again.
            *thread = started.ok();
            lock_ignoring_poison(&self.signal.state).awake = thread.is_some();
        }
    }
}

/// Says that nobody waits any more, however that came: what is called when there is news may panic.
struct WatcherExitGuard<'a>(&'a WatcherSignal);

impl Drop for WatcherExitGuard<'_> {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.0.state).awake = false;
    }
}

impl Drop for ViewsWatcher {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.signal.state).stopped = true;
        self.signal.changed.notify_all();
        let thread = lock_ignoring_poison(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ended = thread.join();
        }
    }
}

impl WatcherSignal {
    /// Waits for the bell, for so long at most, or where no view is open until one is. Says whether
    /// it rang; `None`: it is the end.
    fn wait_for_commit(&self, patience: Option<Duration>) -> Option<bool> {
        let called = lock_ignoring_poison(&self.state);
        let idle = |called: &mut WatcherFlags| !(called.notified || called.stopped);
        let mut called = match patience {
            None => {
                let asleep = |called: &mut WatcherFlags| idle(called) && !called.awake;
                self.changed.wait_while(called, asleep).unwrap_or_else(PoisonError::into_inner)
            }
            Some(time) => {
                let waited = self.changed.wait_timeout_while(called, time, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (!called.stopped).then(|| mem::take(&mut called.notified))
    }
}

fn run_watcher(shared: &ViewsShared, call: &Arc<WatcherSignal>) {
    let hear = || {
        let call = Arc::clone(call);
        let rung = move || {
            lock_ignoring_poison(&call.state).notified = true;
            call.changed.notify_one();
        };
        CommitWatcher::watch(&shared.dir, rung).ok()
    };
    let mut bell = hear();
    let mut patience = Some(Duration::ZERO);
    while let Some(rung) = call.wait_for_commit(patience) {
        let seen = shared.current_seq();
        // Who asks a view is told what is wrong; the next look may be better.
        let looked = shared.catch_up();
        // News that nobody rang for may be those of a bell that was put in the place of this one.
        if bell.is_none() || (!rung && shared.current_seq() != seen) {
            bell = hear();
        }
        shared.release_memory();
        // Together: whoever opens a view in between finds it asleep, and wakes it.
        let mut called = lock_ignoring_poison(&call.state);
        patience =
            shared.poll_timeout().map(|time| if looked.is_err() { POLL_INTERVAL } else { time });
        called.awake = patience.is_some();
    }
}

impl ViewsShared {
    /// For how long there is nothing to do unless the bell rings; `None`: no view is open.
    fn poll_timeout(&self) -> Option<Duration> {
        let state = lock_ignoring_poison(&self.state);
        if state.open_views == 0 {
            return None;
        }
        let away =
            state.next_boundary().map(|at| at.seconds().saturating_sub(self.now().seconds()));
        let away = away.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()));
        Some(away.map_or(POLL_INTERVAL, |away| away.min(POLL_INTERVAL)))
    }
}
