//! The engine of the views, which connects the parts; each part owns its own state.
//!
//! A poll reads the change feed, finds the queries that each change affects, evicts their cached
//! answers and puts the changes into the queues of their views. Opening a view registers its
//! query and answers it, from the cache if possible. Everything in [`ViewsEngine`] happens under
//! one lock, in short steps. A query is run without it, by `query_run`.

use super::change_budget::ChangeBudget;
use super::fan_out::ChangeFanOut;
use super::feed_reader::{ChangeFeedReader, FeedPoll};
use super::item_version::{LazyVersion, classify_change};
use super::mutex::lock_ignoring_poison;
use super::options::{ViewOptions, ViewsOptions};
use super::pending_changes::{PendingChanges, PendingRows, RowCollector};
use super::query_cache::{CachedResult, QueryCache};
use super::query_registry::{PreparedQuery, QueryRegistry, RegisteredQuery};
use super::reader_pool::ReaderPool;
use super::subscription_index::QueryId;
use super::time_changes::diff_answers;
use super::view_query::{ResolvedQuery, ViewQuery};
use super::view_queue::{DeliveryState, ViewQueue, ViewQueues};
use super::views_log::{TracedResult, ViewsLog, elapsed_micros};
use crate::error::Error;
use crate::query_log::{EvictionReason, ResetReason, ResultOrigin, cached_result_bytes};
use crate::result_set::ResultSet;
use crate::search_request::SearchRequest;
use larder_store::{
    FeedResult, ItemRow, ItemVersion, PackedRowIds, Reader, Seq, StoreState, TimeRange,
};
use larder_time::civil::Instant;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant as Timer};

/// A query that can no longer be parsed is tried again after this time.
const PARSE_RETRY_SECONDS: i64 = 86_400;
/// A query that cannot be answered is tried again after this time.
const ANSWER_RETRY_SECONDS: i64 = 60;

/// The parts of the views, and the clock.
pub(super) struct ViewsEngine {
    readers: Arc<ReaderPool>,
    feed: ChangeFeedReader,
    registry: QueryRegistry,
    cache: QueryCache,
    view_queues: ViewQueues,
    log: ViewsLog,
    clock: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// The time of the clock when relative queries were last resolved.
    now: Instant,
    /// The maximum number of bytes of items that one poll holds in memory.
    max_poll_bytes: usize,
    /// The number of the last answer.
    last_answer: u64,
}

/// A view that was opened, and its first answer.
pub(super) struct OpenedView {
    pub(super) view_queue: Arc<ViewQueue>,
    pub(super) query_id: QueryId,
    pub(super) view_query: Arc<ViewQuery>,
    pub(super) rows: Arc<PendingRows>,
}

/// The way in which a lagging view is brought up to date.
pub(super) enum MissedChanges {
    /// By the net effect of the batches that it missed.
    Rows(PendingRows),
    /// By the full answer.
    Reset(ResetReason),
}

/// A query that has to be run.
pub(super) struct QueryRun {
    id: QueryId,
    pub(super) request: SearchRequest,
    began: Timer,
}

/// The answer to a query, or the run that it needs.
pub(super) enum AnswerStart {
    Cached(TracedResult),
    Run(QueryRun),
}

/// Whether the answer of a run may be published.
pub(super) enum RunState {
    /// The store and the query have not changed since.
    Current,
    /// The change feed has all later changes: the answer is of this batch.
    Outdated(Seq),
    /// The query now has another meaning, or the changes are not in the feed.
    Invalid,
}

/// Calls `act` with the engine and a reader, then wakes the clients that received changes. They are
/// woken without the lock.
pub(super) fn update_engine<T>(
    engine: &Mutex<ViewsEngine>,
    act: impl FnOnce(&mut ViewsEngine, &Reader) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut locked = lock_ignoring_poison(engine);
    let readers = Arc::clone(&locked.readers);
    let result = readers.with_feed_reader(|reader| act(&mut locked, reader));
    wake_clients(locked);
    result
}

fn wake_clients(mut locked: MutexGuard<'_, ViewsEngine>) {
    let woken = locked.view_queues.take_to_wake();
    drop(locked);
    woken.iter().for_each(|view_queue| view_queue.wake());
}

impl ViewsEngine {
    pub(super) fn new(
        readers: Arc<ReaderPool>,
        log: ViewsLog,
        options: ViewsOptions,
    ) -> Result<ViewsEngine, Error> {
        let limits = options.limits;
        Ok(ViewsEngine {
            feed: readers
                .with_feed_reader(|reader| ChangeFeedReader::new(reader, limits.changes))?,
            readers,
            registry: QueryRegistry::default(),
            cache: QueryCache::new(options.cache_bytes),
            view_queues: ViewQueues::new(limits),
            log,
            clock: options.clock,
            now: Instant::MIN,
            max_poll_bytes: limits.bytes,
            last_answer: 0,
        })
    }

    /// Registers a query that is registered already at the time of the clock; otherwise returns
    /// that time.
    pub(super) fn register_known(
        &mut self,
        reader: &Reader,
        view_query: &ViewQuery,
    ) -> Result<Result<QueryId, Instant>, Error> {
        self.advance_clock(reader)?;
        Ok(self.registry.register_known(view_query).ok_or(self.now))
    }

    /// Registers a query that was prepared for an earlier time of the clock.
    pub(super) fn register_prepared(
        &mut self,
        reader: &Reader,
        prepared: PreparedQuery,
    ) -> Result<QueryId, Error> {
        let id = self.registry.register(prepared, self.feed.collections());
        self.advance_clock(reader)?;
        Ok(id)
    }

    /// The state of the store at the last poll.
    pub(super) fn state(&self) -> &StoreState {
        self.feed.state()
    }

    pub(super) fn count_open_views(&self) -> usize {
        self.view_queues.open_count()
    }

    /// Returns whether `reader` sees the store as of batch `seq`, with nothing after it.
    pub(super) fn is_at(&self, reader: &Reader, seq: Seq) -> Result<bool, Error> {
        Ok(self.feed.seq() == seq && self.feed.is_same_state(reader)?)
    }

    /// The time range whose occurrences the views of a query deliver.
    pub(super) fn occurrence_range(&self, id: QueryId) -> Option<TimeRange> {
        self.registry.get(id).ok()?.resolved.occurrence_range.clone()
    }

    /// Returns the time until the clock may change an answer; `None` if no view is open.
    pub(super) fn time_to_next_deadline(&self, at_most: Duration) -> Option<Duration> {
        if self.view_queues.open_count() == 0 {
            return None;
        }
        let Some(deadline) = self.registry.next_deadline() else { return Some(at_most) };
        let seconds = deadline.seconds().saturating_sub((self.clock)().seconds());
        Some(Duration::from_secs(seconds.max(0).unsigned_abs()).min(at_most))
    }

    /// Undoes a registration: the query is removed, unless a view or a cached answer needs it.
    pub(super) fn release(&mut self, id: QueryId) {
        self.registry.release(id);
        self.remove_if_unused(id);
    }

    /// Opens a view on a registered query that was answered at this position of the change feed.
    pub(super) fn open_view(
        &mut self,
        id: QueryId,
        answer: TracedResult,
        options: &ViewOptions,
    ) -> Result<OpenedView, Error> {
        let query = self.registry.get(id)?;
        if query.is_too_expensive {
            return Err(ChangeBudget::error());
        }
        let seq = answer.outdated_at.unwrap_or(self.feed.seq());
        let view_queue = self.view_queues.open(id, options, seq);
        if answer.outdated_at.is_some() {
            view_queue.mark_lagging(seq);
        }
        let view_query = Arc::clone(&query.view_query);
        self.log.record_answer(query, &options.client, Some(view_queue.number), &answer);
        let rows = PendingRows::from_answer(seq, answer.rows);
        Ok(OpenedView { view_queue, query_id: id, view_query, rows: Arc::new(rows) })
    }

    /// Opens a view on a registered query without a first answer.
    pub(super) fn open_view_without_answer(
        &mut self,
        reader: &Reader,
        id: QueryId,
        options: &ViewOptions,
    ) -> Result<OpenedView, Error> {
        self.poll(reader)?;
        self.open_view(id, TracedResult::empty(), options)
    }

    pub(super) fn close_view(&mut self, id: QueryId, view_queue: &Arc<ViewQueue>) {
        self.log.record_close(view_queue);
        self.view_queues.close(id, view_queue);
        self.remove_if_unused(id);
    }

    /// Records the answer to a registered query without an open view.
    pub(super) fn record_find(
        &self,
        id: QueryId,
        client: &str,
        answer: &TracedResult,
    ) -> Result<(), Error> {
        self.log.record_answer(self.registry.get(id)?, client, None, answer);
        Ok(())
    }

    /// Reads the change feed and the clock. Returns the last batch.
    pub(super) fn catch_up(&mut self, reader: &Reader) -> Result<Seq, Error> {
        let seq = self.poll(reader)?;
        self.advance_clock(reader)?;
        Ok(seq)
    }

    /// Brings a lagging view up to date: reads the net effect of all batches after `since`.
    pub(super) fn read_missed(
        &mut self,
        reader: &Reader,
        id: QueryId,
        view_queue: &ViewQueue,
        since: Seq,
    ) -> Result<MissedChanges, Error> {
        let rows = self.in_current_transaction(reader, |engine| {
            let Ok(query) = engine.registry.get(id) else { return Ok(None) };
            let (mut rows, mut budget) = (RowCollector::default(), ChangeBudget::default());
            let result = engine.feed.read_since(reader, since, &mut |change| {
                budget.add_change();
                let tested = budget.run(id, |steps| {
                    let is_match = |version: &Option<ItemVersion>| {
                        let version = version.as_ref();
                        version.is_some_and(|version| {
                            LazyVersion::new(reader, version).matches(query, steps)
                        })
                    };
                    (is_match(&change.before), is_match(&change.after))
                });
                if let Some((matched, matches)) = tested {
                    rows.add(classify_change(&change, matched, matches), &change);
                }
            })?;
            if !budget.exceeded.is_empty() {
                return Err(ChangeBudget::error());
            }
            let is_complete = match result {
                FeedResult::Complete => true,
                FeedResult::WithoutSchedules => !query.is_time_dependent(),
                FeedResult::TooMany | FeedResult::Expired => false,
            };
            Ok(is_complete.then(|| rows.into_rows(engine.feed.seq())))
        });
        let rows = match rows {
            Err(Error::StepLimit { .. }) => {
                self.end_query(id);
                return Err(ChangeBudget::error());
            }
            rows => rows?,
        };
        // A poll may have found that the view needs a reset for another reason.
        Ok(match (view_queue.delivery_state(), rows) {
            (DeliveryState::Reset(reason), _) => MissedChanges::Reset(reason),
            (_, None) => MissedChanges::Reset(ResetReason::Expired),
            (_, Some(rows)) => {
                view_queue.mark_up_to_date(rows.seq);
                MissedChanges::Rows(rows)
            }
        })
    }

    /// Records that a view which is reset has its full answer.
    pub(super) fn finish_reset(
        &self,
        view_queue: &ViewQueue,
        reason: ResetReason,
        answer: Result<TracedResult, Error>,
    ) -> Result<PendingRows, Error> {
        let answer = match answer {
            Ok(answer) => answer,
            // A missing collection holds nothing.
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => TracedResult::empty(),
            Err(error) => return Err(error),
        };
        let seq = answer.outdated_at.unwrap_or(self.feed.seq());
        self.log.record_reset(view_queue, seq, reason, answer.rows.len(), answer.micros);
        match answer.outdated_at {
            None => view_queue.mark_up_to_date(seq),
            Some(seq) => view_queue.mark_lagging(seq),
        }
        Ok(PendingRows::from_answer(seq, answer.rows))
    }

    /// Removes a query that has neither views nor a cached answer.
    fn remove_if_unused(&mut self, id: QueryId) {
        if self.view_queues.get(id).is_empty() && !self.cache.has_answer(id) {
            self.registry.remove(id);
        }
    }

    /// Reads the change feed, and returns the answer to a query from the cache, or the run that
    /// the query needs.
    pub(super) fn begin_answer(
        &mut self,
        reader: &Reader,
        id: QueryId,
    ) -> Result<AnswerStart, Error> {
        let began = Timer::now();
        self.poll(reader)?;
        let Some(cached) = self.cache.get(id) else {
            let request = self.registry.get(id)?.search_request();
            return Ok(AnswerStart::Run(QueryRun { id, request, began }));
        };
        let is_shared = !self.view_queues.get(id).is_empty();
        Ok(AnswerStart::Cached(TracedResult {
            rows: cached.rows.to_vec().into(),
            origin: if is_shared { ResultOrigin::Shared } else { ResultOrigin::Cache },
            number: cached.number,
            rows_read: 0,
            verified: 0,
            micros: elapsed_micros(began),
            bytes: cached.bytes,
            outdated_at: None,
        }))
    }

    /// Reads the change feed, and compares the state of the answer of a run, and the meaning of the
    /// query during the run, with it.
    pub(super) fn check_run(
        &mut self,
        reader: &Reader,
        run: &QueryRun,
        answered_at: &StoreState,
    ) -> Result<RunState, Error> {
        self.poll(reader)?;
        if self.registry.get(run.id)?.resolved.query != run.request.query {
            return Ok(RunState::Invalid);
        }
        if self.feed.state() == answered_at {
            return Ok(RunState::Current);
        }
        let outdated_at = self.feed.seq_within_feed(answered_at);
        Ok(outdated_at.map_or(RunState::Invalid, RunState::Outdated))
    }

    /// Caches the result of a run if it is current, and passes it to `publish`.
    pub(super) fn publish_run<T>(
        &mut self,
        run: &QueryRun,
        found: Result<ResultSet, Error>,
        outdated_at: Option<Seq>,
        publish: impl FnOnce(&mut ViewsEngine, Result<TracedResult, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // A view without the damaged items would be wrong for as long as it is open.
        let found = found.and_then(|found| found.check_complete().map(|()| found));
        let answer = found.and_then(|found| self.cache_run(run, &found, outdated_at));
        publish(self, answer)
    }

    fn cache_run(
        &mut self,
        run: &QueryRun,
        found: &ResultSet,
        outdated_at: Option<Seq>,
    ) -> Result<TracedResult, Error> {
        self.last_answer += 1;
        let (rows, number): (Arc<[ItemRow]>, _) = (found.rows().into(), self.last_answer);
        let micros = elapsed_micros(run.began);
        Ok(TracedResult {
            bytes: match outdated_at {
                None => self.cache_answer(run.id, number, &rows)?,
                Some(_) => 0,
            },
            outdated_at,
            rows,
            origin: ResultOrigin::Executed,
            number,
            rows_read: found.explain.rows_read,
            verified: found.explain.verified,
            micros,
        })
    }

    /// Caches an answer. Returns the memory that the answer uses or would use, if the log needs
    /// this figure.
    fn cache_answer(&mut self, id: QueryId, number: u64, rows: &[ItemRow]) -> Result<usize, Error> {
        if self.cache.is_disabled() && !self.log.is_enabled() {
            return Ok(0);
        }
        let query = self.registry.get(id)?;
        if query.is_too_expensive {
            return Ok(0);
        }
        let rows = PackedRowIds::new(rows);
        let text_bytes = query.view_query.text().len();
        let bytes = cached_result_bytes(&rows, text_bytes, &query.resolved.query);
        for (evicted, answer) in self.cache.insert(id, number, rows, bytes) {
            self.finish_eviction(evicted, &answer, EvictionReason::Budget);
        }
        Ok(bytes)
    }

    /// Drops the cached answer to a query, which has changed.
    fn evict_stale_answer(&mut self, id: QueryId) {
        if let Some(answer) = self.cache.remove(id) {
            self.finish_eviction(id, &answer, EvictionReason::Stale);
        }
    }

    fn finish_eviction(&mut self, id: QueryId, answer: &CachedResult, reason: EvictionReason) {
        self.log.record_eviction(answer.number, reason, answer.bytes);
        self.remove_if_unused(id);
    }

    /// Reads the change feed and delivers its changes to the queues. Returns the last batch.
    pub(super) fn poll(&mut self, reader: &Reader) -> Result<Seq, Error> {
        let began = Timer::now();
        let (registry, has_log) = (&self.registry, self.log.is_enabled());
        let mut fan_out = ChangeFanOut::new(reader, registry, self.max_poll_bytes, has_log);
        let polled =
            self.feed.poll(reader, !registry.is_empty(), &mut |change| fan_out.add(change))?;
        let Some(polled) = polled else { return Ok(self.feed.seq()) };
        let ChangeFanOut { mut collector, budget, statistics, item_count, .. } = fan_out;
        if !polled.is_complete {
            collector.clear();
        }
        let resets = self.find_resets(&polled);
        if polled.previous_collections.is_some() {
            self.registry.rebind_collections(self.feed.collections());
        }
        let (seq, before) = (self.feed.seq(), polled.previous_seq);
        let pending = collector.into_pending(seq);
        let delivered = pending.map(|(id, changes)| self.deliver(id, changes, before)).sum();
        if let Some(statistics) = statistics
            && (polled.batches != 0 || item_count > 0)
        {
            let (collections, us) = (self.feed.collections(), elapsed_micros(began));
            let batches = (seq, polled.batches);
            self.log.record_poll(batches, item_count, &statistics, collections, delivered, us);
        }
        for (id, reason) in resets {
            self.reset_views(id, reason);
        }
        for id in budget.exceeded {
            self.end_query(id);
        }
        Ok(seq)
    }

    /// Returns the queries whose answers cannot be updated by the changes of a poll.
    fn find_resets(&self, polled: &FeedPoll) -> Vec<(QueryId, ResetReason)> {
        if !polled.is_complete {
            let all = self.registry.find_ids(|_| true);
            return all.map(|id| (id, ResetReason::Expired)).collect();
        }
        let mut resets = Vec::new();
        if let Some(previous) = &polled.previous_collections {
            // Changes of items reveal a new or removed collection; a renamed collection does
            // not.
            let current = self.feed.collections();
            let has_renamed = previous.has_renamed(current);
            let is_affected = |query: &RegisteredQuery| match query.view_query.collection() {
                Some(name) => previous.row_by_name(name) != current.row_by_name(name),
                None => has_renamed,
            };
            let affected = self.registry.find_ids(is_affected);
            resets.extend(affected.map(|id| (id, ResetReason::Collections)));
        }
        if polled.lacks_schedules {
            let affected = self.registry.find_ids(RegisteredQuery::is_time_dependent);
            resets.extend(affected.map(|id| (id, ResetReason::Zones)));
        }
        // A query that is affected by both is reset once.
        resets.sort_by_key(|(id, _)| *id);
        resets.dedup_by_key(|(id, _)| *id);
        resets
    }

    /// Puts changes into the queues of a query, and evicts its cached answer if the set of
    /// matching items has changed. Returns the number of its views.
    fn deliver(&mut self, id: QueryId, changes: PendingChanges, before: Seq) -> usize {
        let began = self.log.is_enabled().then(Timer::now);
        let counts @ [added, _, removed] = changes.counts();
        let is_sorted = self.registry.get(id).is_ok_and(|query| query.view_query.sort().is_some());
        if added + removed > 0 || is_sorted {
            self.evict_stale_answer(id);
        }
        self.view_queues.enqueue(id, changes, before);
        let view_queues = self.view_queues.get(id);
        if let Some(began) = began {
            let (seq, log) = (self.feed.seq(), &self.log);
            view_queues.iter().for_each(|view_queue| {
                log.record_delivery(view_queue, seq, counts, elapsed_micros(began));
            });
        }
        view_queues.len()
    }

    /// Ends the views of a query whose test exceeded the budget, and drops its cached answer: no
    /// further change is tested.
    fn end_query(&mut self, id: QueryId) {
        self.registry.mark_too_expensive(id);
        self.view_queues.end(id);
        self.evict_stale_answer(id);
    }

    fn reset_views(&mut self, id: QueryId, reason: ResetReason) {
        self.evict_stale_answer(id);
        self.view_queues.reset(id, reason);
    }

    /// Runs `read` in a read transaction of the state that the last poll has left.
    pub(super) fn in_current_transaction<T>(
        &mut self,
        reader: &Reader,
        read: impl Fn(&ViewsEngine) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            {
                let _transaction = reader.begin_read()?;
                // Where nothing can be written, each transaction has another data version.
                if self.feed.is_same_state(reader)? {
                    return read(self);
                }
            }
            self.poll(reader)?;
        }
    }

    /// Resolves the queries again whose meaning the clock may have changed.
    fn advance_clock(&mut self, reader: &Reader) -> Result<(), Error> {
        let now = (self.clock)();
        if now < self.now {
            // The clock was ahead: every query resolved by it may now mean another time.
            let affected = self.registry.find_ids(RegisteredQuery::is_time_dependent);
            for id in affected.collect::<Vec<QueryId>>() {
                self.resolve_or_reset(reader, id, now)?;
            }
        }
        self.now = now;
        while let Some(id) = self.registry.find_due(now) {
            self.resolve_or_reset(reader, id, now)?;
        }
        Ok(())
    }

    /// Resolves a query again. If a query cannot be answered, the other queries are not affected:
    /// the views of this query are reset and report the error.
    fn resolve_or_reset(
        &mut self,
        reader: &Reader,
        id: QueryId,
        now: Instant,
    ) -> Result<(), Error> {
        if let Err(error) = self.resolve_again(reader, id, now) {
            let retry = now.saturating_add(ANSWER_RETRY_SECONDS);
            self.registry.set_deadline(id, retry).map_err(|_| error)?;
            self.reset_views(id, ResetReason::Expired);
        }
        Ok(())
    }

    fn resolve_again(&mut self, reader: &Reader, id: QueryId, now: Instant) -> Result<(), Error> {
        let Ok(query) = self.registry.get(id) else { return Ok(()) };
        // If a query that was parsed before cannot be parsed now, it keeps its earlier meaning.
        let resolved = query.view_query.resolve_at(now).unwrap_or_else(|_| ResolvedQuery {
            valid_until: Some(now.saturating_add(PARSE_RETRY_SECONDS)),
            ..query.resolved.clone()
        });
        if resolved.query == query.resolved.query {
            self.registry.set_resolved(id, resolved);
            return Ok(());
        }
        let difference =
            self.in_current_transaction(reader, |engine| match engine.registry.get(id) {
                Ok(query) if !engine.view_queues.get(id).is_empty() => {
                    diff_answers(reader, query, &resolved, engine.feed.seq())
                }
                _ => Ok(PendingRows::default()),
            });
        let difference = match difference {
            // The difference cannot be computed under the lock; the view answers the query again.
            Err(Error::StepLimit { .. }) => {
                self.registry.set_resolved(id, resolved);
                self.reset_views(id, ResetReason::Expired);
                return Ok(());
            }
            difference => difference?,
        };
        self.registry.set_resolved(id, resolved);
        self.view_queues.mark_query_change(id);
        self.evict_stale_answer(id);
        if !difference.is_empty() {
            let before = self.feed.seq();
            self.deliver(id, PendingChanges::Rows(Arc::new(difference)), before);
        }
        Ok(())
    }
}
