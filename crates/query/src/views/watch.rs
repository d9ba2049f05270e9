//! The thread that waits for news: for the bell, for the clock, and while a view is open once a second.
//!
//! It knows no view. It is apart because it is the only thing here that waits.

use super::Shared;
use super::hub::lock;
use larder_store::Bell;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A writer that was killed between its commit and the bell is noticed after so long.
const TICK: Duration = Duration::from_secs(1);

/// What the thread waits for.
#[derive(Default)]
struct Call {
    state: Mutex<Called>,
    heard: Condvar,
}

#[derive(Default)]
struct Called {
    rung: bool,
    /// A view is open.
    awake: bool,
    end: bool,
}

/// The thread, from the first view on.
pub(super) struct Watch {
    shared: Arc<Shared>,
    call: Arc<Call>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Watch {
    pub(super) fn new(shared: Arc<Shared>) -> Watch {
        Watch { shared, call: Arc::default(), thread: Mutex::new(None) }
    }

    /// A view was opened.
    pub(super) fn stay_awake(&self) {
        let mut called = lock(&self.call.state);
        if called.awake {
            return;
        }
        called.awake = true;
        drop(called);
        self.call.heard.notify_one();
        let mut thread = lock(&self.thread);
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let (shared, call) = (Arc::clone(&self.shared), Arc::clone(&self.call));
            let named = std::thread::Builder::new().name("larder-views".into());
            let started = named.spawn(move || {
                let _asleep = Asleep(&call);
                wait(&shared, &call);
            });
            // Without it there are no news but those that are asked for; the next view tries again.
            *thread = started.ok();
            lock(&self.call.state).awake = thread.is_some();
        }
    }
}

/// Says that nobody waits any more, however that came: what is called when there is news may panic.
struct Asleep<'a>(&'a Call);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).awake = false;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.call.state).end = true;
        self.call.heard.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ended = thread.join();
        }
    }
}

impl Call {
    /// Waits for the bell, for so long at most, or where no view is open until one is. Says whether it rang; `None`: it is the end.
    fn wait(&self, patience: Option<Duration>) -> Option<bool> {
        let called = lock(&self.state);
        let idle = |called: &mut Called| !(called.rung || called.end);
        let mut called = match patience {
            None => {
                let asleep = |called: &mut Called| idle(called) && !called.awake;
                self.heard.wait_while(called, asleep).unwrap_or_else(PoisonError::into_inner)
            }
            Some(time) => {
                let waited = self.heard.wait_timeout_while(called, time, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (!called.end).then(|| mem::take(&mut called.rung))
    }
}

fn wait(shared: &Shared, call: &Arc<Call>) {
    let hear = || {
        let call = Arc::clone(call);
        let rung = move || {
            lock(&call.state).rung = true;
            call.heard.notify_one();
        };
        Bell::hear(&shared.dir, rung).ok()
    };
    let mut bell = hear();
    let mut patience = Some(Duration::ZERO);
    while let Some(rung) = call.wait(patience) {
        let seen = shared.seen();
        // Who asks a view is told what is wrong; the next look may be better.
        let looked = shared.catch_up();
        // News that nobody rang for may be those of a bell that was put in the place of this one.
        if bell.is_none() || (!rung && shared.seen() != seen) {
            bell = hear();
        }
        shared.rest();
        // Together: whoever opens a view in between finds it asleep, and wakes it.
        let mut called = lock(&call.state);
        patience = shared.patience().map(|time| if looked.is_err() { TICK } else { time });
        called.awake = patience.is_some();
    }
}

impl Shared {
    /// For how long there is nothing to do unless the bell rings; `None`: no view is open.
    fn patience(&self) -> Option<Duration> {
        let state = lock(&self.state);
        if state.open == 0 {
            return None;
        }
        let away =
            state.next_boundary().map(|at| at.seconds().saturating_sub(self.now().seconds()));
        let away = away.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()));
        Some(away.map_or(TICK, |away| away.min(TICK)))
    }
}
