//! Live views: queries that stay open, and the answers that they share.
//!
//! A [`View`] delivers the answer to a query, and from then on the items that each batch adds to
//! it, modifies in it and removes from it, until the view is dropped. A view does not store its
//! answer: whether an item was in it follows from the before-image of a change, which the store
//! keeps for a while. So ten thousand views hold ten thousand queries and nothing else.
//!
//! [`Views`] has all views of one process on one store. Only the change feed of the store and the
//! clock change an answer. A thread waits for commit notifications; while a view is open it also
//! looks at the store once a second, for a writer that was killed before it could notify. Without
//! an open view it sleeps.
//!
//! | module | responsibility |
//! |---|---|
//! | `answer_update` | applies the changes during a search to its result |
//! | `change_budget` | the steps that a poll may spend on each query |
//! | `engine` | connects the parts below; everything under its lock is short |
//! | `feed_reader` | reads the change feed: the position of the views, and a poll |
//! | `query_registry` | the registered queries, by id and by deadline |
//! | `query_run` | runs a query without the engine's lock, and registers it |
//! | `subscription_index` | finds the queries that a changed item may affect |
//! | `required_terms` | the terms that every item in an answer has |
//! | `query_cache` | the row ids of answers, within a budget |
//! | `view_queue` | the bounded queues of the views |
//! | `fan_out` | tests the changes of one poll against the queries that they may affect |
//! | `item_version` | a version of a changed item, and the effect of a change on an answer |
//! | `pending_changes` | changes on their way to a view |
//! | `time_changes` | the effect of the clock on an answer |
//! | `reader_pool` | the readers of the store: one for the change feed, one for each thread that reads |
//! | `view` | an open view: reads items and delivers events |
//! | `view_event` | the events of a view, and the items in them |
//! | `view_query` | a query as it was written, resolved again as the clock moves |
//! | `views_log` | the lines in the query log |
//! | `watcher` | the thread that waits for commits and for the clock |
//! | `options` | the options of all these |
//! | `mutex` | locking that ignores poisoning |
//!
//! At most two locks are held at a time: the engine's lock and, within it, the lock of a queue
//! or of the reader pool. A query is run, and the items of its answer are read, without the
//! engine's lock and with a reader of the pool. The engine's lock is held while the change feed is
//! polled, while the changes that a lagging view missed are read, and while the clock changes an
//! answer. Live views are separate from the execution of a query, which does not depend on them.

mod answer_update;
mod change_budget;
mod engine;
mod fan_out;
mod feed_reader;
mod item_version;
mod mutex;
mod options;
mod pending_changes;
mod query_cache;
mod query_registry;
mod query_run;
mod reader_pool;
mod required_terms;
mod subscription_index;
mod time_changes;
mod view;
mod view_event;
mod view_query;
mod view_queue;
mod views_log;
mod watcher;

pub use self::options::{DEFAULT_CACHE_BYTES, ViewInterest, ViewLimits, ViewOptions, ViewsOptions};
pub use self::view::View;
pub use self::view_event::{RemovedItem, ViewEvent, ViewItem};
pub use self::view_query::{QuerySyntax, ViewQuery};

use self::engine::{ViewsEngine, update_engine};
use self::mutex::lock_ignoring_poison;
use self::query_run::{answer_query, register_query};
use self::reader_pool::ReaderPool;
use self::subscription_index::QueryId;
use self::views_log::{TracedResult, ViewsLog};
use self::watcher::ViewsWatcher;
use crate::error::Error;
use crate::execution::find;
use crate::result_set::ResultSet;
use larder_store::{DataDirectory, ItemMeta, ItemRow, Reader, Seq, StoreState};
use std::fmt;
use std::sync::{Arc, Mutex};

/// All views of this process on one store. A clone refers to the same views.
#[derive(Clone)]
pub struct Views {
    engine: Arc<Mutex<ViewsEngine>>,
    readers: Arc<ReaderPool>,
    /// Stopped when the last clone is dropped.
    watcher: Arc<ViewsWatcher>,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").field("directory", self.readers.directory()).finish_non_exhaustive()
    }
}

impl Views {
    /// Opens a store for views.
    ///
    /// # Errors
    /// As [`Reader::open_with_zones`].
    pub fn open(
        directory: impl Into<DataDirectory>,
        options: ViewsOptions,
    ) -> Result<Views, Error> {
        let readers = ReaderPool::open(directory, Arc::clone(&options.zones))?;
        let readers = Arc::new(readers);
        let (log, cache_bytes) = (ViewsLog::new(options.log.clone()), options.cache_bytes);
        let is_enabled = options.watch;
        let engine = ViewsEngine::new(Arc::clone(&readers), log.clone(), options)?;
        let engine = Arc::new(Mutex::new(engine));
        log.record_start(cache_bytes);
        let (watched, pool) = (Arc::clone(&engine), Arc::clone(&readers));
        let watcher = Arc::new(ViewsWatcher::new(watched, pool, log, is_enabled));
        Ok(Views { engine, readers, watcher })
    }

    /// Opens a view.
    ///
    /// # Errors
    /// The query has a syntax error or takes too many steps, its collection does not exist, or the
    /// store could not be read.
    pub fn open_view(&self, query: ViewQuery, options: ViewOptions) -> Result<View, Error> {
        let opened = self.with_registered(query, |id| {
            if options.initial {
                self.answer(id, |engine, answer| engine.open_view(id, answer?, &options))
            } else {
                self.update(|engine, reader| engine.open_view_without_answer(reader, id, &options))
            }
        })?;
        self.watcher.wake();
        Ok(View::new(self.clone(), opened, options))
    }

    /// Answers a query once, from the cache if possible, and passes each item with its bytes to
    /// `visit` until that returns false. Returns the number of items in the answer.
    ///
    /// The items are read without a lock: `visit` delays no view, and may use the views. An item
    /// that is removed before its turn is skipped.
    ///
    /// # Errors
    /// As [`Views::open_view`].
    pub fn find(
        &self,
        query: ViewQuery,
        client: &str,
        visit: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<usize, Error> {
        let rows = self.find_rows(query, client)?;
        self.readers.with_reader(|reader| ResultSet::from_rows(&rows).for_each(reader, visit))?;
        Ok(rows.len())
    }

    /// Calls `visit` with the UID of every item that matches a query now, until it returns false,
    /// as [`Views::find`] does; nothing else of the items is read.
    ///
    /// # Errors
    /// As [`Views::open_view`].
    pub fn find_uids(
        &self,
        query: ViewQuery,
        client: &str,
        visit: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), Error> {
        let rows = self.find_rows(query, client)?;
        self.readers.with_reader(|reader| ResultSet::from_rows(&rows).for_each_uid(reader, visit))
    }

    fn find_rows(&self, query: ViewQuery, client: &str) -> Result<Arc<[ItemRow]>, Error> {
        self.with_registered(query, |id| {
            self.answer(id, |engine, answer| {
                let answer = answer?;
                engine.record_find(id, client, &answer)?;
                Ok(answer.rows)
            })
        })
    }

    /// Reads the commits since the last poll and the clock. When this returns, the changes
    /// are in the queues of the views. A writer calls it after a commit to notify the views of
    /// its process immediately. Returns the last batch.
    ///
    /// # Errors
    /// The store could not be read.
    pub fn catch_up(&self) -> Result<Seq, Error> {
        self.update(ViewsEngine::catch_up)
    }

    /// Runs `read` with a reader of the views.
    ///
    /// # Errors
    /// The store could not be opened again.
    pub fn with_reader<T>(&self, read: impl FnOnce(&Reader) -> T) -> Result<T, Error> {
        self.readers.with_reader(|reader| Ok(read(reader)))
    }

    /// Frees the caches of the readers if no view is open; cached answers stay. The
    /// watcher does so after the last view is closed.
    pub fn release_memory(&self) {
        self.watcher.release_memory();
    }

    /// The last batch that the views have read.
    #[must_use]
    pub fn current_seq(&self) -> Seq {
        lock_ignoring_poison(&self.engine).state().seq
    }

    /// The state of the store that the views have read. It equals the state of the store as soon as
    /// they have read all commits; a restore may leave fewer batches than [`Views::current_seq`].
    #[must_use]
    pub fn current_state(&self) -> StoreState {
        lock_ignoring_poison(&self.engine).state().clone()
    }

    /// Returns the number of open views.
    #[must_use]
    pub fn count_open_views(&self) -> usize {
        lock_ignoring_poison(&self.engine).count_open_views()
    }

    /// Registers a query for the duration of `act`.
    fn with_registered<T>(
        &self,
        query: ViewQuery,
        act: impl FnOnce(QueryId) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let id = register_query(&self.engine, query)?;
        let result = act(id);
        lock_ignoring_poison(&self.engine).release(id);
        result
    }

    /// Answers a registered query, see [`answer_query`].
    fn answer<T>(
        &self,
        id: QueryId,
        publish: impl FnOnce(&mut ViewsEngine, Result<TracedResult, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        answer_query(&self.engine, &self.readers, id, &find, publish)
    }

    fn update<T>(
        &self,
        act: impl FnOnce(&mut ViewsEngine, &Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        update_engine(&self.engine, act)
    }
}
