//! The threads that answer queries.
//!
//! A query may take seconds, and the thread of the bus answers all clients, so queries are answered
//! here. Each client has at most one of the threads: a client with many queries delays itself. The
//! result of a job is a function that the thread of the bus calls; it publishes changes, builds
//! views and sends the reply. Separate from the service, whose state these threads never touch.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::Notify;

/// The maximum number of threads. They are started when they are needed.
const MAX_READER_THREADS: usize = 4;

/// The part of an answer that the thread of the bus does, with the service `S`.
pub(super) type Completion<S> = Box<dyn FnOnce(&mut S) + Send>;
/// The part of an answer that reads the store.
pub(super) type ReaderJob<S> = Box<dyn FnOnce() -> Completion<S> + Send>;

/// The jobs, and the threads that do them.
pub(super) struct ReaderThreads<S>(Arc<JobQueue<S>>);

struct JobQueue<S> {
    state: Mutex<JobState<S>>,
    /// Wakes the threads.
    changed: Condvar,
    /// Wakes the thread of the bus.
    finished: Arc<Notify>,
}

struct JobState<S> {
    waiting: VecDeque<(Arc<str>, ReaderJob<S>)>,
    /// The clients that have a thread.
    busy_clients: BTreeSet<Arc<str>>,
    completions: Vec<Completion<S>>,
    threads: usize,
    idle_threads: usize,
    is_closed: bool,
}

impl<S: 'static> ReaderThreads<S> {
    pub(super) fn new(finished: Arc<Notify>) -> ReaderThreads<S> {
        let state = Mutex::new(JobState {
            waiting: VecDeque::new(),
            busy_clients: BTreeSet::new(),
            completions: Vec::new(),
            threads: 0,
            idle_threads: 0,
            is_closed: false,
        });
        ReaderThreads(Arc::new(JobQueue { state, changed: Condvar::new(), finished }))
    }

    /// Queues a job of a client, after the client's other jobs.
    pub(super) fn submit(&self, client: &str, job: ReaderJob<S>) {
        let mut state = self.0.lock();
        state.waiting.push_back((client.into(), job));
        if state.idle_threads == 0 && state.threads < MAX_READER_THREADS {
            state.threads += 1;
            let queue = Arc::clone(&self.0);
            let builder = thread::Builder::new().name("reader".into());
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
        self.0.changed.notify_one();
    }

    /// Returns whether a job was done whose completion was not taken.
    pub(super) fn has_completions(&self) -> bool {
        !self.0.lock().completions.is_empty()
    }

    pub(super) fn take_completions(&self) -> Vec<Completion<S>> {
        std::mem::take(&mut self.0.lock().completions)
    }

    /// Ends the threads once they have done their current jobs.
    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        state.waiting.clear();
        state.completions.clear();
        drop(state);
        self.0.changed.notify_all();
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
        let (client, job) = {
            let mut state = self.lock();
            let Some(at) = state.next_job() else { return false };
            let Some((client, job)) = state.waiting.remove(at) else { return false };
            state.busy_clients.insert(Arc::clone(&client));
            (client, job)
        };
        let completion = job();
        let mut state = self.lock();
        state.busy_clients.remove(&client);
        if !state.is_closed {
            state.completions.push(completion);
        }
        drop(state);
        self.finished.notify_one();
        true
    }
}

impl<S> JobState<S> {
    /// Returns the first job whose client has no thread.
    fn next_job(&self) -> Option<usize> {
        self.waiting.iter().position(|(client, _)| !self.busy_clients.contains(client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_client_has_one_thread() {
        let threads = ReaderThreads::new(Arc::new(Notify::new()));
        let (release, wait) = mpsc::channel::<()>();
        let (done_sender, done) = mpsc::channel();
        let job = |name: &'static str, wait: Option<mpsc::Receiver<()>>| -> ReaderJob<()> {
            let done = done_sender.clone();
            Box::new(move || {
                if let Some(wait) = wait {
                    wait.recv().unwrap();
                }
                done.send(name).unwrap();
                Box::new(|(): &mut ()| {})
            })
        };
        threads.submit("a", job("a's first", Some(wait)));
        threads.submit("a", job("a's second", None));
        threads.submit("b", job("b's", None));
        let next = || done.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(next(), "b's", "another client is not delayed");
        release.send(()).unwrap();
        assert_eq!([next(), next()], ["a's first", "a's second"]);
        threads.close();
    }
}
