//! Live views: questions that stay open, and the answers that they share.
//!
//! A [`View`] is told its answer, and from then on what every batch adds to it, changes in it and
//! takes from it, until it is dropped. No view remembers what it was told: whether an item belonged
//! to it is told by what the item was, which the store keeps for a while. So ten thousand views are
//! ten thousand questions and nothing else.
//!
//! [`Views`] is what one process asks of one store. It is driven by the log of the store and by the
//! clock alone: a thread waits for the bell, which whoever has written rings, looks at the store
//! once a second while a view is open, for the sake of a writer that was killed before it rang, and
//! sleeps where none is.
//!
//! | module | what it holds |
//! |---|---|
//! | `question` | a question as it was written, read again as the clock moves |
//! | `narrow` | what an answer to a question must have |
//! | `concern` | which questions a change may matter to, filed by that |
//! | `hub` | the news: what changed, and for whom |
//! | `version` | an item as it was, or is, put to a question |
//! | `answers` | answers, and those that are kept |
//! | `clock` | what time changes in answers |
//! | `news` | what became of which items, before it is told |
//! | `slot` | where the news of a view wait |
//! | `view` | an open view: what its client is told, and how fast |
//! | `watch` | the thread that waits |
//!
//! It is no part of answering (`run`), which knows nothing of it.

mod answer_cache;
mod item_version;
mod mailbox;
mod pending_changes;
mod required_terms;
mod state;
mod subscription_index;
mod time_changes;
mod view;
mod view_query;
mod watcher;

pub use self::view::{RemovedItem, View, ViewEvent, ViewInterest, ViewItem, ViewOptions};
pub use self::view_query::{QuerySyntax, ViewQuery};

use self::mailbox::Mailbox;
use self::state::{ViewsState, lock_ignoring_poison};
use self::watcher::ViewsWatcher;
use crate::error::Error;
use crate::query_log::{QueryLogEvent, QueryLogSink};
use crate::result_set::ResultSet;
use larder_store::{ItemMeta, Reader, Seq};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The kind of source that all collections have so far, for the log.
const SOURCE_KIND: &str = "local";

/// How views are kept.
#[derive(Clone)]
pub struct ViewsOptions {
    /// The zones that there are.
    pub zones: Arc<ZoneDatabase>,
    /// Answers may be kept in so many bytes; 0: none is.
    pub cache_bytes: usize,
    /// Where the log goes.
    pub log: Option<Arc<dyn QueryLogSink>>,
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// News are waited for. Otherwise who holds the views asks for them, with [`Views::catch_up`].
    pub watch: bool,
    /// How much may wait for clients that do not ask for it.
    pub limits: ViewLimits,
}

/// How much may wait for clients that do not ask for it. Beyond that nothing waits: they are told
/// what it all comes to when they ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewLimits {
    /// So many items, for one client.
    pub items: usize,
    /// So many bytes of them; and so many of what one look at the store has found. Of more than
    /// that only rows are held, and the items read when they are told.
    pub bytes: usize,
    /// So many items whose changes one look at the store may find; with more, every answer is given
    /// anew, which is less to read.
    pub changes: usize,
}

impl Default for ViewLimits {
    fn default() -> ViewLimits {
        ViewLimits { items: 1024, bytes: 4 << 20, changes: 50_000 }
    }
}

/// What answers may take in memory, unless something else is said: `docs/queries.md` tells what it
/// is worth.
pub const DEFAULT_CACHE_BYTES: usize = 384 << 10;

impl Default for ViewsOptions {
    fn default() -> ViewsOptions {
        let (zones, clock) = (ZoneDatabase::open_bundled(), Arc::new(system_now));
        let limits = ViewLimits::default();
        ViewsOptions {
            zones,
            cache_bytes: DEFAULT_CACHE_BYTES,
            log: None,
            clock,
            watch: true,
            limits,
        }
    }
}

fn system_now() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant::from_seconds_clamped(since.map_or(0, |since| since.as_secs() as i64))
}

impl fmt::Debug for ViewsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewsOptions").field("cache", &self.cache_bytes).finish_non_exhaustive()
    }
}

/// Everything that one process asks of one store. A copy is the same.
#[derive(Clone)]
pub struct Views(Arc<ViewsInner>);

/// What ends with the last of those who ask: the thread that waits, and the log of this.
struct ViewsInner {
    watcher: Option<ViewsWatcher>,
    shared: Arc<ViewsShared>,
}

/// What the thread that waits has of it all.
struct ViewsShared {
    dir: PathBuf,
    options: ViewsOptions,
    state: Mutex<ViewsState>,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").field("dir", &self.0.shared.dir).finish_non_exhaustive()
    }
}

/// The state of the views while it is held. Who has news is woken just before it is let go, and so
/// must not ask for it.
struct ViewsStateGuard<'a>(MutexGuard<'a, ViewsState>);

impl Views {
    /// Opens a store for views.
    ///
    /// # Errors
    /// As [`SexpParser::open_with_zones`].
    pub fn open(dir: &Path, options: ViewsOptions) -> Result<Views, Error> {
        let reader = Reader::open_with_zones(dir, Arc::clone(&options.zones))?;
        let state = ViewsState::new(reader, &options)?;
        if let Some(log) = &options.log {
            log.record(&QueryLogEvent::Start {
                version: env!("CARGO_PKG_VERSION"),
                budget: options.cache_bytes,
            });
        }
        let dir = dir.to_path_buf();
        let watched = options.watch;
        let shared = Arc::new(ViewsShared { dir, options, state: Mutex::new(state) });
        let watch = watched.then(|| ViewsWatcher::new(Arc::clone(&shared)));
        Ok(Views(Arc::new(ViewsInner { watcher: watch, shared })))
    }

    /// Opens a view.
    ///
    /// # Errors
    /// The text is no question, there is no such collection, or what the store reports.
    pub fn open_view(&self, question: ViewQuery, options: ViewOptions) -> Result<View, Error> {
        let opened = {
            let mut state = self.0.shared.refresh_reader_and_lock()?;
            state.advance_clock(self.now())?;
            state.open(question, &options, self.now())?
        };
        if let Some(watch) = &self.0.watcher {
            watch.ensure_running();
        }
        let initial = options.initial;
        let mut view = View::new(self.clone(), &opened, options);
        if initial {
            view.begin_delivery(opened.rows);
        }
        Ok(view)
    }

    /// Answers a question once, by an answer that is kept where there is one, and gives each item
    /// with its bytes to `each` until that answers false. `each` must not ask anything of the
    /// views.
    ///
    /// # Errors
    /// As [`ViewsConfig::open_view`].
    pub fn find(
        &self,
        question: ViewQuery,
        client: &str,
        each: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<usize, Error> {
        let mut state = self.0.shared.refresh_reader_and_lock()?;
        state.advance_clock(self.now())?;
        let rows = state.answer_once(question, client, self.now())?;
        ResultSet::from_rows(&rows).for_each(state.reader(), each)?;
        Ok(rows.len())
    }

    /// Brings all views up to what is committed, and to what time it is: what changed waits in them
    /// when this returns. Who has just written calls it to have the news told at once. Returns the
    /// last batch.
    ///
    /// # Errors
    /// What the store reports.
    pub fn catch_up(&self) -> Result<Seq, Error> {
        self.0.shared.catch_up()
    }

    /// A look at the store with the reader of the views, which all others wait for.
    ///
    /// # Errors
    /// What the store reports.
    pub fn with_reader<T>(&self, look: impl FnOnce(&Reader) -> T) -> Result<T, Error> {
        Ok(look(self.lock_state().reader()))
    }

    /// Gives up what is held in memory to be fast, if no view is open; kept answers stay. The
    /// thread that waits does so a moment after the last view was closed.
    pub fn release_memory(&self) {
        self.0.shared.release_memory();
    }

    /// The last batch that the views know of.
    #[must_use]
    pub fn current_seq(&self) -> Seq {
        self.0.shared.current_seq()
    }

    /// How many views are open.
    #[must_use]
    pub fn count_open_views(&self) -> usize {
        lock_ignoring_poison(&self.0.shared.state).open_views
    }

    fn now(&self) -> Instant {
        self.0.shared.now()
    }

    fn lock_state(&self) -> ViewsStateGuard<'_> {
        self.0.shared.lock_state()
    }

    fn close(&self, asked: u32, slot: &Arc<Mailbox>) {
        lock_ignoring_poison(&self.0.shared.state).close(asked, slot);
    }
}

impl ViewsShared {
    fn now(&self) -> Instant {
        (self.options.clock)()
    }

    fn lock_state(&self) -> ViewsStateGuard<'_> {
        ViewsStateGuard(lock_ignoring_poison(&self.state))
    }

    /// The state, of the store that is there: a damaged one may have been replaced.
    fn refresh_reader_and_lock(&self) -> Result<ViewsStateGuard<'_>, Error> {
        let mut held = self.lock_state();
        if held.reader().is_replaced() {
            let zones = Arc::clone(&self.options.zones);
            held.replace_reader(Reader::open_with_zones(&self.dir, zones)?);
        }
        Ok(held)
    }

    fn catch_up(&self) -> Result<Seq, Error> {
        let mut state = self.refresh_reader_and_lock()?;
        let seq = state.poll()?;
        state.advance_clock(self.now())?;
        Ok(seq)
    }

    fn current_seq(&self) -> Seq {
        lock_ignoring_poison(&self.state).seq
    }

    /// Nothing is going to happen for a while, as far as one can tell.
    fn release_memory(&self) {
        if let Some(log) = &self.options.log {
            log.flush();
        }
        let state = lock_ignoring_poison(&self.state);
        if state.open_views == 0 {
            state.reader().release_memory();
        }
    }
}

impl Deref for ViewsStateGuard<'_> {
    type Target = ViewsState;

    fn deref(&self) -> &ViewsState {
        &self.0
    }
}

impl DerefMut for ViewsStateGuard<'_> {
    fn deref_mut(&mut self) -> &mut ViewsState {
        &mut self.0
    }
}

impl Drop for ViewsStateGuard<'_> {
    fn drop(&mut self) {
        for slot in mem::take(&mut self.0.to_wake) {
            slot.wake();
        }
    }
}

impl Drop for ViewsInner {
    fn drop(&mut self) {
        // When the thread has ended nobody else notes anything.
        self.watcher = None;
        if let Some(log) = &self.shared.options.log {
            log.record(&QueryLogEvent::End);
            log.flush();
        }
    }
}
