//! What all views of a process share: one reader, the questions that are asked, and whom a change
//! concerns.
//!
//! Everything here happens under one lock, in short steps. How questions are answered is in
//! `answers`, what the clock changes in `clock`, what a view does with what it is told in `view`;
//! who waits for the bell, in `watch`.

use super::item_version::{LazyVersion, LazyVersionPair, classify_change};
use super::mailbox::Mailbox;
use super::pending_changes::{ChangeCollector, PendingChanges};
use super::subscription_index::SubscriptionIndex;
use super::view_query::{ResolvedQuery, ViewQuery, is_time_dependent};
use super::{ViewLimits, ViewsOptions};
use crate::error::Error;
use crate::execution::SearchRequest;
use crate::matcher::Matcher;
use crate::query_log::{
    EvictionReason as Why, QueryLogEvent, QueryLogSink, ResetReason, cached_answer_bytes,
};
use larder_store::{
    DataVersion, DerivedIndex, FeedResult, PackedRowIds, Reader, Seq, StoreStamp, TimeRange,
};
use larder_time::civil::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Timer;

/// What a panic elsewhere has left is as good as it was: each step leaves things whole.
pub(super) fn lock_ignoring_poison<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that somebody asks, or whose answer is kept.
pub(super) struct RegisteredQuery {
    pub(super) view_query: Arc<ViewQuery>,
    pub(super) resolved: ResolvedQuery,
    pub(super) matcher: Matcher,
    /// The row of the collection that it is put to: `None`: to all; -1: that is not there.
    pub(super) collection: Option<i64>,
    pub(super) mailboxes: Vec<Arc<Mailbox>>,
    /// It is being answered, and stays.
    pub(super) busy: bool,
    /// The answer, where it is kept.
    pub(super) cached: Option<CachedAnswer>,
    /// The number of that answer.
    pub(super) answer_number: u64,
}

/// An answer that is kept.
pub(super) struct CachedAnswer {
    pub(super) rows: PackedRowIds,
    /// What it holds in memory with its question.
    pub(super) bytes: usize,
    /// When it was last used.
    pub(super) last_use: u64,
}

impl RegisteredQuery {
    /// What it holds in memory where this answer is kept.
    pub(super) fn cached_bytes(&self, rows: &PackedRowIds) -> usize {
        cached_answer_bytes(rows, self.view_query.text().len(), &self.resolved.query)
    }

    /// What is asked of the store.
    pub(super) fn search_request(&self) -> SearchRequest {
        self.view_query.search_request(&self.resolved.query)
    }

    pub(super) fn is_time_dependent(&self) -> bool {
        is_time_dependent(&self.resolved.query)
    }

    pub(super) fn is_about_collection(&self, collection: i64) -> bool {
        self.collection.is_none_or(|row| row == collection)
    }
}

/// The state of all views.
pub(super) struct ViewsState {
    pub(super) reader: Reader,
    pub(super) log: Option<Arc<dyn QueryLogSink>>,
    pub(super) limits: ViewLimits,
    /// What the reader saw when it was last looked.
    pub(super) moment: Option<DataVersion>,
    /// What time it was when questions were last read.
    pub(super) now: Instant,
    pub(super) seq: Seq,
    pub(super) store_version: StoreStamp,
    pub(super) epoch: Arc<str>,
    pub(super) collection_names: Vec<(i64, Arc<str>)>,
    /// What items are in time can be told.
    pub(super) has_schedules: bool,
    pub(super) queries: Vec<Option<Box<RegisteredQuery>>>,
    pub(super) free_ids: Vec<u32>,
    pub(super) query_ids: HashMap<Arc<ViewQuery>, u32>,
    pub(super) subscriptions: SubscriptionIndex,
    pub(super) boundaries: BTreeSet<(Instant, u32)>,
    pub(super) open_views: usize,
    pub(super) last_view: u64,
    pub(super) last_answer: u64,
    pub(super) cache_budget_bytes: usize,
    pub(super) cached_bytes: usize,
    pub(super) queries_by_use: BTreeMap<u64, u32>,
    pub(super) last_use: u64,
    /// Views that have something to be told, to be woken when the lock is let go.
    pub(super) to_wake: Vec<Arc<Mailbox>>,
}

impl ViewsState {
    pub(super) fn new(reader: Reader, options: &ViewsOptions) -> Result<ViewsState, Error> {
        let mut state = ViewsState {
            reader,
            log: options.log.clone(),
            limits: options.limits,
            moment: None,
            now: Instant::MIN,
            seq: 0,
            store_version: StoreStamp::default(),
            epoch: "".into(),
            collection_names: Vec::new(),
            has_schedules: false,
            queries: Vec::new(),
            free_ids: Vec::new(),
            query_ids: HashMap::new(),
            subscriptions: SubscriptionIndex::default(),
            boundaries: BTreeSet::new(),
            open_views: 0,
            last_view: 0,
            last_answer: 0,
            cache_budget_bytes: options.cache_bytes,
            cached_bytes: 0,
            queries_by_use: BTreeMap::new(),
            last_use: 0,
            to_wake: Vec::new(),
        };
        state.read_store_version()?;
        Ok(state)
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn replace_reader(&mut self, reader: Reader) {
        (self.reader, self.moment) = (reader, None);
    }

    pub(super) fn occurrence_range(&self, asked: u32) -> Option<&TimeRange> {
        self.query(asked)?.resolved.occurrence_range.as_ref()
    }

    pub(super) fn next_boundary(&self) -> Option<Instant> {
        self.boundaries.first().map(|(at, _)| *at)
    }

    /// Has nothing happened since this batch?
    pub(super) fn is_at(&self, seq: Seq) -> Result<bool, Error> {
        Ok(self.seq == seq && self.moment == Some(self.reader.data_version()?))
    }

    pub(super) fn query(&self, asked: u32) -> Option<&RegisteredQuery> {
        self.queries.get(asked as usize)?.as_deref()
    }

    pub(super) fn log_event(&self, event: &QueryLogEvent<'_>) {
        if let Some(log) = &self.log {
            log.record(event);
        }
    }

    /// Notes where the store stands.
    fn read_store_version(&mut self) -> Result<(), Error> {
        let reader = &self.reader;
        let _snapshot = reader.begin_read()?;
        self.moment = Some(reader.data_version()?);
        self.store_version = reader.stamp()?;
        self.seq = self.store_version.seq;
        self.epoch = reader.epoch()?;
        self.collection_names = reader.collection_names()?;
        self.has_schedules = reader.is_index_current(DerivedIndex::Schedule)?;
        Ok(())
    }

    /// Reads what happened since it was last looked, and puts it where it is waited for.
    pub(super) fn poll(&mut self) -> Result<Seq, Error> {
        let began = Timer::now();
        let mut found = PolledChanges::new(self.limits);
        let anew = self.poll_changes(&mut found)?;
        let Some(anew) = anew else { return Ok(self.seq) };
        let told = self.enqueue_all(found.collector, self.seq - found.batches);
        if self.log.is_some() && (found.batches != 0 || found.items > 0) {
            let name = |row| {
                self.collection_names
                    .iter()
                    .find(|(of, _)| *of == row)
                    .map_or("", |(_, name)| &**name)
            };
            let of = found
                .kinds_by_collection
                .iter()
                .map(|(row, kind)| (name(*row), kind.name()))
                .collect();
            self.log_event(&QueryLogEvent::Change {
                seq: self.seq,
                batches: found.batches,
                items: found.items,
                of,
                asked: found.query_count,
                told,
                us: elapsed_micros(began),
            });
        }
        for (asked, why) in anew {
            self.reset_views(asked, why);
        }
        Ok(self.seq)
    }

    /// Finds what changed, and for whom; and who has to be told everything anew. `None`: nothing
    /// happened.
    fn poll_changes(
        &mut self,
        found: &mut PolledChanges,
    ) -> Result<Option<Vec<(u32, ResetReason)>>, Error> {
        let snapshot = self.reader.begin_read()?;
        let moment = self.reader.data_version()?;
        if self.moment == Some(moment) {
            return Ok(None);
        }
        let standing = self.reader.stamp()?;
        // What is as it was is not read again: this happens with every batch.
        let same = standing.epoch_and_zones == self.store_version.epoch_and_zones;
        let epoch = if same { Arc::clone(&self.epoch) } else { self.reader.epoch()? };
        let timed = if same {
            self.has_schedules
        } else {
            self.reader.is_index_current(DerivedIndex::Schedule)?
        };
        let names = match same && standing.collection_seq == self.store_version.collection_seq {
            true => None,
            false => Some(self.reader.collection_names()?)
                .filter(|names| *names != self.collection_names),
        };
        let mut anew = Vec::new();
        if epoch != self.epoch {
            anew = self.resets_for_all(ResetReason::Expired);
        } else {
            if standing.seq != self.seq && !self.query_ids.is_empty() {
                match self.read_changes(names.as_ref().unwrap_or(&self.collection_names), found) {
                    Ok(FeedResult::Complete) => {}
                    // One damaged item must not keep all others from being told of.
                    Ok(FeedResult::TooMany | FeedResult::Expired)
                    | Err(Error::Store(larder_store::Error::Damaged { .. })) => {
                        found.collector.clear();
                        anew = self.resets_for_all(ResetReason::Expired);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(names) = &names {
                anew.extend(self.resets_for_renamed(names));
            }
            // What items were in time is told by zones that are not these any more.
            if !timed || !self.has_schedules {
                let in_time = |asked: &RegisteredQuery| asked.is_time_dependent();
                anew.extend(self.queries_where(in_time).map(|asked| (asked, ResetReason::Zones)));
            }
        }
        drop(snapshot);
        self.reader.unmap_file();
        // The batches of a store that was put in the place of this one are counted from another
        // beginning.
        found.batches = if epoch == self.epoch { standing.seq - self.seq } else { 0 };
        (self.moment, self.seq, self.epoch) = (Some(moment), standing.seq, epoch);
        (self.has_schedules, self.store_version) = (timed, standing);
        if let Some(names) = names {
            self.collection_names = names;
            self.rebind_collections();
        }
        anew.sort_unstable_by_key(|(asked, _)| *asked);
        anew.dedup_by_key(|(asked, _)| *asked);
        Ok(Some(anew))
    }

    pub(super) fn queries_where(
        &self,
        which: impl Fn(&RegisteredQuery) -> bool,
    ) -> impl Iterator<Item = u32> {
        let numbered = self.queries.iter().enumerate();
        numbered.filter_map(move |(number, asked)| {
            asked.as_ref().filter(|asked| which(asked)).map(|_| number as u32)
        })
    }

    fn resets_for_all(&self, why: ResetReason) -> Vec<(u32, ResetReason)> {
        self.queries_where(|_| true).map(|asked| (asked, why)).collect()
    }

    /// Who asks of a collection that has another name now.
    fn resets_for_renamed(&self, names: &[(i64, Arc<str>)]) -> Vec<(u32, ResetReason)> {
        let row = |names: &[(i64, Arc<str>)], name: &str| {
            names.iter().find(|(_, of)| **of == *name).map(|(row, _)| *row)
        };
        // One that is new, or gone, says so by its items; one that goes by another name does not.
        let other = self
            .collection_names
            .iter()
            .any(|(row, name)| names.iter().any(|(of, now)| of == row && now != name));
        let concerned = |asked: &RegisteredQuery| match asked.view_query.collection() {
            Some(name) => row(&self.collection_names, name) != row(names, name),
            None => other,
        };
        self.queries_where(concerned).map(|asked| (asked, ResetReason::Collections)).collect()
    }

    /// Finds the rows of the collections that are asked for anew.
    fn rebind_collections(&mut self) {
        for number in 0..self.queries.len() {
            let Some(asked) = self.queries.get_mut(number).and_then(Option::as_deref_mut) else {
                continue;
            };
            let now = collection_of(&self.collection_names, &asked.view_query);
            if now != asked.collection {
                let (query, number) = (&asked.resolved.query, number as u32);
                self.subscriptions.remove(number, query, asked.collection);
                self.subscriptions.add(number, query, now);
                asked.collection = now;
            }
        }
    }

    /// Reads what changed, and finds whom it concerns.
    fn read_changes(
        &self,
        names: &[(i64, Arc<str>)],
        found: &mut PolledChanges,
    ) -> Result<FeedResult, Error> {
        let (mut concerned, mut asked_at_all) = (Vec::new(), HashSet::new());
        let logged = self.log.is_some();
        let told =
            self.reader.for_each_change(self.seq, self.limits.changes, names, &mut |changed| {
                found.items += 1;
                if logged {
                    let versions = changed.before.iter().chain(&changed.after);
                    found
                        .kinds_by_collection
                        .extend(versions.map(|then| (then.collection, then.meta.kind)));
                }
                let changed = Arc::new(changed);
                let was = changed.before.as_ref().map(|was| LazyVersion::new(&self.reader, was));
                let is = changed.after.as_ref().map(|is| LazyVersion::new(&self.reader, is));
                concerned.clear();
                match was
                    .as_ref()
                    .zip(is.as_ref())
                    .and_then(|(was, is)| LazyVersionPair::from_same_scope(was, is))
                {
                    Some(both) => self.subscriptions.find(&both, &mut concerned),
                    None => {
                        let versions = was.iter().chain(&is);
                        versions
                            .for_each(|version| self.subscriptions.find(version, &mut concerned));
                    }
                }
                concerned.sort_unstable();
                concerned.dedup();
                for &number in &concerned {
                    let Some(asked) = self.query(number) else { continue };
                    if logged {
                        asked_at_all.insert(number);
                    }
                    let answered = was.as_ref().is_some_and(|was| was.matches(asked));
                    let answers = is.as_ref().is_some_and(|is| is.matches(asked));
                    let became = classify_change(asked, &changed, answered, answers);
                    if !became.is_empty() {
                        found.collector.add(number, became, &changed);
                    }
                }
            })?;
        found.query_count = asked_at_all.len();
        if told != FeedResult::Complete {
            found.collector.clear();
        }
        Ok(told)
    }

    /// Puts news into the queues of those who wait for them, and gives up kept answers that they
    /// concern. Returns how many views were told.
    fn enqueue_all(&mut self, news: ChangeCollector, before: Seq) -> usize {
        news.into_pending(self.seq).map(|(number, news)| self.enqueue(number, news, before)).sum()
    }

    pub(super) fn enqueue(&mut self, number: u32, news: PendingChanges, before: Seq) -> usize {
        let began = self.log.is_some().then(Timer::now);
        let counts = news.counts();
        let Some(asked) = self.queries.get(number as usize).and_then(Option::as_deref) else {
            return 0;
        };
        let views = asked.mailboxes.clone();
        let [added, _, removed] = counts;
        if added + removed > 0 || asked.view_query.sort().is_some() {
            self.evict_answer(number, Why::Stale);
        }
        if let Some((last, others)) = views.split_last() {
            others.iter().for_each(|view| view.enqueue(news.clone(), before, self.limits));
            last.enqueue(news, before, self.limits);
        }
        if let Some(began) = began {
            views.iter().for_each(|view| self.log_notification(view, counts, began));
        }
        let told = views.len();
        self.to_wake.extend(views);
        told
    }

    fn log_notification(
        &self,
        view: &Mailbox,
        [added, modified, removed]: [usize; 3],
        began: Timer,
    ) {
        let (client, view, seq, us) = (&*view.client, view.number, self.seq, elapsed_micros(began));
        self.log_event(&QueryLogEvent::Told { client, view, seq, added, modified, removed, us });
    }

    /// Has a question's views begin anew.
    pub(super) fn reset_views(&mut self, number: u32, why: ResetReason) {
        self.evict_answer(number, Why::Stale);
        let Some(asked) = self.queries.get(number as usize).and_then(Option::as_deref) else {
            return;
        };
        for view in &asked.mailboxes {
            view.reset(why);
            self.to_wake.push(Arc::clone(view));
        }
    }

    /// Does something with the store as it was when it was last looked at, which is now.
    pub(super) fn with_consistent_snapshot<T>(
        &mut self,
        act: impl Fn(&ViewsState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            self.poll()?;
            let _snapshot = self.reader.begin_read()?;
            if self.moment == Some(self.reader.data_version()?) {
                return act(self);
            }
        }
    }

    pub(super) fn query_mut(&mut self, number: u32) -> Result<&mut RegisteredQuery, Error> {
        let asked = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut);
        asked.ok_or(Error::Store(larder_store::Error::CursorExpired))
    }
}

/// What was found at a look.
struct PolledChanges {
    batches: i64,
    items: usize,
    query_count: usize,
    kinds_by_collection: HashSet<(i64, larder_store::Kind)>,
    collector: ChangeCollector,
}

impl PolledChanges {
    fn new(limits: ViewLimits) -> PolledChanges {
        let collector = ChangeCollector::new(limits.bytes);
        PolledChanges {
            batches: 0,
            items: 0,
            query_count: 0,
            kinds_by_collection: HashSet::new(),
            collector,
        }
    }
}

/// The collection that a question is put to.
pub(super) fn collection_of(names: &[(i64, Arc<str>)], question: &ViewQuery) -> Option<i64> {
    let name = question.collection()?;
    Some(names.iter().find(|(_, of)| **of == *name).map_or(-1, |(row, _)| *row))
}

pub(super) fn elapsed_micros(since: Timer) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
