//! Questions and their answers: each is worked out once for all who ask it, and kept while there is
//! room.
//!
//! An answer is the rows of its items. It is kept as long as nothing changes that it is about,
//! within a budget; the one that was used longest ago goes first. It is apart from the news
//! (`hub`), which only say that an answer is stale.

use super::SOURCE_KIND;
use super::item_version::{LazyVersion, classify_change};
use super::mailbox::Mailbox;
use super::pending_changes::{PendingRows, RowCollector};
use super::state::{CachedAnswer, RegisteredQuery, ViewsState, collection_of, elapsed_micros};
use super::view::ViewOptions;
use super::view_query::ViewQuery;
use crate::error::Error;
use crate::execution::find;
use crate::matcher::Matcher;
use crate::query_log::{
    AnswerOrigin, AnswerRecord, EvictionReason as Why, QueryLogEvent, ResetReason,
};
use larder_store::{FeedResult, ItemVersion, PackedRowIds, Seq};
use larder_time::civil::Instant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant as Timer;

/// A view that was opened, and its first answer.
pub(super) struct OpenedView {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) query_id: u32,
    pub(super) question: Arc<ViewQuery>,
    pub(super) rows: Arc<PendingRows>,
}

/// An answer, and how it came to be.
pub(super) struct TracedAnswer {
    pub(super) rows: Arc<[i64]>,
    origin: AnswerOrigin,
    answer_number: u64,
    scanned: u64,
    tested: u64,
    us: u64,
    bytes: usize,
}

impl ViewsState {
    /// Opens a view, and gives its first answer.
    pub(super) fn open(
        &mut self,
        question: ViewQuery,
        options: &ViewOptions,
        now: Instant,
    ) -> Result<OpenedView, Error> {
        let number = self.register_query(question, now)?;
        let found = match options.initial {
            true => self.answer(number),
            false => self.empty_answer(),
        };
        self.query_mut(number)?.busy = false;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.drop_if_unused(number);
                return Err(error);
            }
        };
        self.last_view += 1;
        let slot = Arc::new(Mailbox::new(self.last_view, options, self.seq));
        let asked = self.query_mut(number)?;
        asked.mailboxes.push(Arc::clone(&slot));
        let question = Arc::clone(&asked.view_query);
        self.open_views += 1;
        self.log_answer(number, &options.client, Some(slot.number), &found);
        let rows = PendingRows { seq: self.seq, added: found.rows, ..PendingRows::default() };
        Ok(OpenedView { mailbox: slot, query_id: number, question, rows: Arc::new(rows) })
    }

    /// Answers a question once.
    pub(super) fn answer_once(
        &mut self,
        question: ViewQuery,
        client: &str,
        now: Instant,
    ) -> Result<Arc<[i64]>, Error> {
        let number = self.register_query(question, now)?;
        let found = self.answer(number);
        if let Ok(found) = &found {
            self.log_answer(number, client, None, found);
        }
        self.query_mut(number)?.busy = false;
        self.drop_if_unused(number);
        Ok(found?.rows)
    }

    pub(super) fn close(&mut self, number: u32, slot: &Arc<Mailbox>) {
        self.log_event(&QueryLogEvent::Close { client: &slot.client, view: slot.number });
        if let Some(asked) = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut) {
            asked.mailboxes.retain(|view| !Arc::ptr_eq(view, slot));
            asked.mailboxes.shrink_to_fit();
            self.open_views -= 1;
        }
        self.drop_if_unused(number);
    }

    /// The number of a question, which is new or asked already.
    fn register_query(&mut self, question: ViewQuery, now: Instant) -> Result<u32, Error> {
        if let Some(&number) = self.query_ids.get(&question) {
            self.query_mut(number)?.busy = true;
            return Ok(number);
        }
        let reading = question.resolve_at(now)?;
        let (matcher, question) = (Matcher::new(&reading.query), Arc::new(question));
        let collection = collection_of(&self.collection_names, &question);
        let number = self.free_ids.pop().unwrap_or(self.queries.len() as u32);
        self.subscriptions.add(number, &reading.query, collection);
        self.boundaries.extend(reading.valid_until.map(|at| (at, number)));
        self.query_ids.insert(Arc::clone(&question), number);
        let (views, busy, kept, answer) = (Vec::new(), true, None, 0);
        let asked = RegisteredQuery {
            view_query: question,
            resolved: reading,
            matcher,
            collection,
            mailboxes: views,
            busy,
            cached: kept,
            answer_number: answer,
        };
        match self.queries.get_mut(number as usize) {
            Some(place) => *place = Some(Box::new(asked)),
            None => self.queries.push(Some(Box::new(asked))),
        }
        Ok(number)
    }

    /// Forgets a question that nobody asks, and whose answer is not kept.
    fn drop_if_unused(&mut self, number: u32) {
        let Some(place) = self.queries.get_mut(number as usize) else { return };
        let Some(asked) = place
            .take_if(|asked| asked.mailboxes.is_empty() && asked.cached.is_none() && !asked.busy)
        else {
            return;
        };
        self.subscriptions.remove(number, &asked.resolved.query, asked.collection);
        if let Some(at) = asked.resolved.valid_until {
            self.boundaries.remove(&(at, number));
        }
        self.query_ids.remove(&asked.view_query);
        self.free_ids.push(number);
        if self.query_ids.is_empty() {
            // Nobody asks anything: what many views needed is given back.
            (self.queries, self.free_ids, self.query_ids) =
                (Vec::new(), Vec::new(), HashMap::new());
        }
    }

    /// The answer to a question: one that is kept, or one that is worked out now.
    fn answer(&mut self, number: u32) -> Result<TracedAnswer, Error> {
        let began = Timer::now();
        self.poll()?;
        if let Some(asked) = self.query(number)
            && let Some(kept) = &asked.cached
        {
            let from =
                if asked.mailboxes.is_empty() { AnswerOrigin::Cache } else { AnswerOrigin::Shared };
            let (rows, number_of, bytes) =
                (kept.rows.to_vec().into(), asked.answer_number, kept.bytes);
            self.touch_answer(number);
            let us = elapsed_micros(began);
            return Ok(TracedAnswer {
                rows,
                origin: from,
                answer_number: number_of,
                scanned: 0,
                tested: 0,
                us,
                bytes,
            });
        }
        let answer = self.with_consistent_snapshot(|state| {
            let Some(asked) = state.query(number) else {
                return Err(larder_store::Error::CursorExpired.into());
            };
            find(&state.reader, &asked.search_request())
        })?;
        let rows: Arc<[i64]> = answer.rows().into();
        let (scanned, tested) = (answer.explain.visited, answer.explain.tested);
        self.last_answer += 1;
        let (answer, us) = (self.last_answer, elapsed_micros(began));
        self.query_mut(number)?.answer_number = answer;
        let bytes = self.cache_answer(number, &rows);
        Ok(TracedAnswer {
            rows,
            origin: AnswerOrigin::Run,
            answer_number: answer,
            scanned,
            tested,
            us,
            bytes,
        })
    }

    /// What a view that wants none begins with.
    fn empty_answer(&mut self) -> Result<TracedAnswer, Error> {
        self.poll()?;
        let rows = Arc::from([]);
        Ok(TracedAnswer {
            rows,
            origin: AnswerOrigin::Run,
            answer_number: 0,
            scanned: 0,
            tested: 0,
            us: 0,
            bytes: 0,
        })
    }

    /// The whole answer, for a view that has to begin anew.
    pub(super) fn full_answer(
        &mut self,
        number: u32,
        slot: &Mailbox,
        why: ResetReason,
    ) -> Result<Arc<PendingRows>, Error> {
        let began = Timer::now();
        let added = match self.answer(number) {
            Ok(found) => found.rows,
            // The collection is not there: nothing is in it.
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => Arc::from([]),
            Err(error) => return Err(error),
        };
        let (client, view, returned, us) =
            (&*slot.client, slot.number, added.len(), elapsed_micros(began));
        self.log_event(&QueryLogEvent::Fresh { client, view, seq: self.seq, why, returned, us });
        Ok(Arc::new(PendingRows { seq: self.seq, added, ..PendingRows::default() }))
    }

    /// What all that happened since a batch comes to for a question. `None`: that cannot be told
    /// any more.
    pub(super) fn changes_since(
        &mut self,
        number: u32,
        since: Seq,
    ) -> Result<Option<PendingRows>, Error> {
        self.with_consistent_snapshot(|state| {
            let Some(asked) = state.query(number) else { return Ok(None) };
            let mut rows = RowCollector::default();
            let most = state.limits.changes;
            let told = state.reader.for_each_change(
                since,
                most,
                &state.collection_names,
                &mut |changed| {
                    let version = |then: &Option<ItemVersion>| {
                        then.as_ref().is_some_and(|then| {
                            LazyVersion::new(&state.reader, then).matches(asked)
                        })
                    };
                    let (answered, answers) = (version(&changed.before), version(&changed.after));
                    rows.add(classify_change(asked, &changed, answered, answers), &changed);
                },
            )?;
            Ok((told == FeedResult::Complete).then(|| rows.into_rows(state.seq)))
        })
    }

    /// Gives the items in these rows as they are, without those that are gone.
    pub(super) fn read_rows(
        &self,
        number: u32,
        rows: &[i64],
        each: &mut dyn FnMut(&ItemVersion),
    ) -> Result<(), Error> {
        let _snapshot = self.reader.begin_read()?;
        let mut times = HashMap::new();
        if self.occurrence_range(number).is_some() {
            self.reader.for_each_schedule(rows, &mut |row, of| {
                times.insert(row, of.clone());
                true
            })?;
        }
        self.reader.for_each_item(rows, &mut |head, bytes| {
            let (bytes, times) = (bytes.into(), times.remove(&head.row));
            // Nobody asks it anything, so which collection it is in is of no matter.
            each(&ItemVersion { meta: head, collection: 0, bytes, schedule: times });
            true
        })?;
        Ok(())
    }

    fn log_answer(&self, number: u32, client: &str, view: Option<u64>, found: &TracedAnswer) {
        let (Some(log), Some(asked)) = (&self.log, self.query(number)) else { return };
        let query = asked.resolved.query.to_string();
        let answer = AnswerRecord {
            client,
            query: &query,
            kind: asked.view_query.kind(),
            collection: asked.view_query.collection(),
            source: SOURCE_KIND,
            from: found.origin,
            answer: found.answer_number,
            scanned: found.scanned,
            tested: found.tested,
            returned: found.rows.len(),
            us: found.us,
            bytes: found.bytes,
        };
        log.record(&match view {
            Some(view) => QueryLogEvent::Open { view, answer },
            None => QueryLogEvent::Query(answer),
        });
    }

    /// Keeps an answer, where there is room for it, and drops the oldest for it. Returns what it
    /// holds, or would, where anybody wants to know.
    fn cache_answer(&mut self, number: u32, rows: &[i64]) -> usize {
        let (budget, last_use) = (self.cache_budget_bytes, self.last_use + 1);
        if budget == 0 && self.log.is_none() {
            return 0;
        }
        let Ok(asked) = self.query_mut(number) else { return 0 };
        let rows = PackedRowIds::new(rows);
        let bytes = asked.cached_bytes(&rows);
        if bytes > budget {
            return bytes;
        }
        asked.cached = Some(CachedAnswer { rows, bytes, last_use });
        self.cached_bytes += bytes;
        self.last_use = last_use;
        self.queries_by_use.insert(last_use, number);
        while self.cached_bytes > self.cache_budget_bytes
            && let Some((_, &oldest)) = self.queries_by_use.first_key_value()
        {
            self.evict_answer(oldest, Why::Budget);
        }
        bytes
    }

    /// Notes that a kept answer was used.
    fn touch_answer(&mut self, number: u32) {
        let last_use = self.last_use + 1;
        let Some(asked) = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut)
        else {
            return;
        };
        if let Some(kept) = &mut asked.cached {
            self.queries_by_use.remove(&kept.last_use);
            kept.last_use = last_use;
            self.queries_by_use.insert(last_use, number);
            self.last_use = last_use;
        }
    }

    /// Drops a kept answer.
    pub(super) fn evict_answer(&mut self, number: u32, why: Why) {
        let Some(asked) = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut)
        else {
            return;
        };
        let Some(CachedAnswer { bytes, last_use: used, .. }) = asked.cached.take() else { return };
        let answer = asked.answer_number;
        self.cached_bytes -= bytes;
        self.queries_by_use.remove(&used);
        self.log_event(&QueryLogEvent::Drop { answer, why, bytes });
        self.drop_if_unused(number);
    }
}
