//! The threads that answer calls which may take long: queries, and changes.
//!
//! A query may take seconds, and a change waits for the write lock, which another program may hold
//! for minutes. The thread of the bus answers all clients, so such calls are answered here. Each
//! client has at most one thread of a pool: a client with many queries delays itself. The result of
//! a job is a function that the thread of the bus calls; it publishes changes, builds views and
//! sends the reply. Separate from the service, whose state these threads never touch.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// The part of an answer that the thread of the bus does, with the service `S`.
pub(super) type Completion<S> = Box<dyn FnOnce(&mut S) + Send>;

/// The part of an answer that reads or writes the store.
pub(super) struct CallJob<S> {
    pub(super) client: Arc<str>,
    pub(super) work: Box<dyn FnOnce() -> Completion<S> + Send>,
    /// Answers in place of the result if `work` panics.
    pub(super) on_panic: Completion<S>,
}

/// The jobs, and the threads that do them.
pub(super) struct CallThreads<S>(Arc<JobQueue<S>>);

struct JobQueue<S> {
    state: Mutex<JobState<S>>,
    /// The maximum number of threads. They are started when they are needed.
    max_threads: usize,
    /// Wakes the threads, and whoever waits for the end of their jobs.
    changed: Condvar,
    /// Wakes the thread of the bus.
    finished: Arc<Notify>,
}

struct JobState<S> {
    waiting: VecDeque<CallJob<S>>,
    /// The clients that have a thread.
    busy_clients: BTreeSet<Arc<str>>,
    completions: Vec<Completion<S>>,
    threads: usize,
    /// The threads that have no job, also those that were woken to take one.
    idle_threads: usize,
    is_closed: bool,
}

impl<S: 'static> CallThreads<S> {
    pub(super) fn new(max_threads: usize, finished: Arc<Notify>) -> CallThreads<S> {
        let state = Mutex::new(JobState {
            waiting: VecDeque::new(),
            busy_clients: BTreeSet::new(),
            completions: Vec::new(),
            threads: 0,
            idle_threads: 0,
            is_closed: false,
        });
        CallThreads(Arc::new(JobQueue { state, max_threads, changed: Condvar::new(), finished }))
    }

    /// Queues a job of a client, after the client's other jobs.
    pub(super) fn submit(&self, job: CallJob<S>) {
        let mut state = self.0.lock();
        state.waiting.push_back(job);
        if state.needs_thread() && state.threads < self.0.max_threads {
            state.threads += 1;
            let queue = Arc::clone(&self.0);
            let builder = thread::Builder::new().name("call".into());
            if builder.spawn(move || queue.run_jobs()).is_err() {
                state.threads -= 1;
                if state.threads == 0 {
                    drop(state);
                    // Without any thread, the job is done here.
                    self.0.run_next();
                    return;
                }
            }
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Drops the jobs of a client that wait for a thread.
    pub(super) fn remove_client(&self, client: &str) {
        let mut state = self.0.lock();
        let is_kept = |job: &CallJob<S>| *job.client != *client;
        let (kept, removed) = std::mem::take(&mut state.waiting).into_iter().partition(is_kept);
        state.waiting = kept;
        drop(state);
        // A job may have a view, whose end takes other locks.
        let _removed: VecDeque<CallJob<S>> = removed;
    }

    /// Returns whether a job was done whose completion was not taken.
    pub(super) fn has_completions(&self) -> bool {
        !self.0.lock().completions.is_empty()
    }

    pub(super) fn take_completions(&self) -> Vec<Completion<S>> {
        std::mem::take(&mut self.0.lock().completions)
    }

    /// Ends the threads once they have done their current jobs, and waits at most this long for
    /// these.
    pub(super) fn close(&self, patience: Duration) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let dropped = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.completions));
        self.0.changed.notify_all();
        let is_busy = |state: &mut JobState<S>| !state.busy_clients.is_empty();
        let waited = self.0.changed.wait_timeout_while(state, patience, is_busy);
        drop((waited, dropped));
    }
}

impl<S> JobQueue<S> {
    fn lock(&self) -> MutexGuard<'_, JobState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_jobs(&self) {
        loop {
            if self.run_next() {
                continue;
            }
            let mut state = self.lock();
            if state.is_closed {
                return;
            }
            if state.next_job().is_none() {
                state.idle_threads += 1;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle_threads -= 1;
            }
        }
    }

    /// Does the next job; returns false if there is none.
    fn run_next(&self) -> bool {
        let CallJob { client, work, on_panic } = {
            let mut state = self.lock();
            let Some(at) = state.next_job() else { return false };
            let Some(job) = state.waiting.remove(at) else { return false };
            state.busy_clients.insert(Arc::clone(&job.client));
            job
        };
        // The work owns its data, and a lock that it poisons is taken all the same.
        let completion = catch_unwind(AssertUnwindSafe(work)).unwrap_or(on_panic);
        let mut state = self.lock();
        state.busy_clients.remove(&client);
        if !state.is_closed {
            state.completions.push(completion);
        }
        drop(state);
        self.changed.notify_all();
        self.finished.notify_one();
        true
    }
}

impl<S> JobState<S> {
    /// Returns the first job whose client has no thread.
    fn next_job(&self) -> Option<usize> {
        self.waiting.iter().position(|job| !self.busy_clients.contains(&job.client))
    }

    /// Returns whether more jobs can be begun than threads have none. A thread that was woken for a
    /// job counts as idle until it has taken it, and until then the job counts, too.
    fn needs_thread(&self) -> bool {
        let clients = self.waiting.iter().map(|job| &job.client);
        let ready: BTreeSet<_> =
            clients.filter(|client| !self.busy_clients.contains(*client)).collect();
        ready.len() > self.idle_threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn new_threads(max_threads: usize) -> CallThreads<Vec<&'static str>> {
        CallThreads::new(max_threads, Arc::new(Notify::new()))
    }

    /// Returns a job whose completion adds this text.
    fn job(
        client: &str,
        text: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> CallJob<Vec<&'static str>> {
        CallJob {
            client: client.into(),
            work: Box::new(move || {
                work();
                Box::new(move |done: &mut Vec<_>| done.push(text))
            }),
            on_panic: Box::new(|done: &mut Vec<_>| done.push("panic")),
        }
    }

    fn complete(threads: &CallThreads<Vec<&'static str>>) -> Vec<&'static str> {
        let mut done = Vec::new();
        threads.take_completions().into_iter().for_each(|completion| completion(&mut done));
        done
    }

    #[test]
    fn a_client_has_one_thread() {
        let threads = new_threads(4);
        let (release, wait) = mpsc::channel::<()>();
        let (done_sender, done) = mpsc::channel();
        let send = |name: &'static str| {
            let done = done_sender.clone();
            move || done.send(name).unwrap()
        };
        let first = send("a's first");
        threads.submit(job("a", "", move || {
            wait.recv().unwrap();
            first();
        }));
        threads.submit(job("a", "", send("a's second")));
        threads.submit(job("b", "", send("b's")));
        let next = || done.recv_timeout(PATIENCE).unwrap();
        assert_eq!(next(), "b's", "another client is not delayed");
        release.send(()).unwrap();
        assert_eq!([next(), next()], ["a's first", "a's second"]);
        threads.close(PATIENCE);
    }

    /// A thread that was woken for a job has it before the next job is submitted, or has not; in
    /// both cases the next job gets another thread.
    #[test]
    fn a_woken_thread_is_not_idle() {
        let threads = new_threads(4);
        let mut state = threads.0.lock();
        state.idle_threads = 1;
        assert!(!state.needs_thread());
        state.waiting.push_back(job("a", "", || {}));
        assert!(!state.needs_thread(), "the idle thread is woken");
        state.waiting.push_back(job("b", "", || {}));
        assert!(state.needs_thread(), "the idle thread has the job of the other client");
        state.busy_clients.insert("b".into());
        assert!(!state.needs_thread(), "the client has a thread");
    }

    #[test]
    fn a_job_that_panics_is_answered() {
        let threads = new_threads(1);
        let (done_sender, done) = mpsc::channel();
        threads.submit(job("a", "", || std::panic::resume_unwind(Box::new("a test"))));
        threads.submit(job("a", "the next", move || done_sender.send(()).unwrap()));
        done.recv_timeout(PATIENCE).expect("the client and its thread are free");
        let mut state = threads.0.lock();
        while state.completions.len() < 2 {
            let waited = threads.0.changed.wait_timeout(state, PATIENCE).unwrap();
            assert!(!waited.1.timed_out());
            state = waited.0;
        }
        drop(state);
        assert_eq!(complete(&threads), ["panic", "the next"]);
    }

    #[test]
    fn the_jobs_of_a_client_that_is_gone_are_dropped() {
        let threads = new_threads(1);
        let (release, wait) = mpsc::channel::<()>();
        let (begun_sender, begun) = mpsc::channel();
        threads.submit(job("a", "a's", move || {
            begun_sender.send(()).unwrap();
            wait.recv().unwrap();
        }));
        begun.recv_timeout(PATIENCE).unwrap();
        threads.submit(job("b", "b's", || {}));
        threads.submit(job("c", "c's", || {}));
        threads.remove_client("b");
        release.send(()).unwrap();
        let mut state = threads.0.lock();
        while state.completions.len() < 2 {
            let waited = threads.0.changed.wait_timeout(state, PATIENCE).unwrap();
            assert!(!waited.1.timed_out());
            state = waited.0;
        }
        drop(state);
        assert_eq!(complete(&threads), ["a's", "c's"]);
    }

    #[test]
    fn closing_waits_for_the_job_that_is_being_done() {
        let threads = new_threads(1);
        let (begun_sender, begun) = mpsc::channel();
        let is_done = Arc::new(Mutex::new(false));
        let held = is_done.lock().unwrap();
        let work_done = Arc::clone(&is_done);
        threads.submit(job("a", "", move || {
            begun_sender.send(()).unwrap();
            *work_done.lock().unwrap() = true;
        }));
        begun.recv_timeout(PATIENCE).unwrap();
        threads.close(Duration::ZERO);
        assert!(!*held, "a job that takes too long is not waited for");
        drop(held);
        threads.close(PATIENCE);
        assert!(*is_done.lock().unwrap());
    }
}
