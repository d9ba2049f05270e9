//! The lines that views write to the query log.
//!
//! Separate from the engine so that the engine does not depend on the format of the log. Without a
//! log each function is one test of an `Option`.

use super::fan_out::FanOutStatistics;
use super::feed_reader::CollectionTable;
use super::query_registry::RegisteredQuery;
use super::view_queue::ViewQueue;
use crate::query_log::{
    EvictionReason, QueryLogEvent, QueryLogSink, ResetReason, ResultOrigin, ResultRecord,
};
use larder_store::{ItemRow, Seq};
use std::sync::Arc;
use std::time::Instant;

/// The backend of every collection so far.
const LOCAL_BACKEND: &str = "local";

/// The query log of the views, if one is written.
#[derive(Clone)]
pub(super) struct ViewsLog(Option<Arc<dyn QueryLogSink>>);

/// An answer, and how it was obtained.
pub(super) struct TracedResult {
    pub(super) rows: Arc<[ItemRow]>,
    pub(super) origin: ResultOrigin,
    /// The number of the answer in this process; 0 if the query was not answered.
    pub(super) number: u64,
    pub(super) rows_read: u64,
    pub(super) verified: u64,
    pub(super) micros: u64,
    /// The memory that the answer holds in the cache.
    pub(super) bytes: usize,
    /// The batch that the answer is of, if the change feed has later ones.
    pub(super) outdated_at: Option<Seq>,
}

impl TracedResult {
    /// The answer of a view that begins without one.
    pub(super) fn empty() -> TracedResult {
        TracedResult {
            rows: Arc::from([]),
            origin: ResultOrigin::Executed,
            number: 0,
            rows_read: 0,
            verified: 0,
            micros: 0,
            bytes: 0,
            outdated_at: None,
        }
    }
}

pub(super) fn elapsed_micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl ViewsLog {
    pub(super) fn new(sink: Option<Arc<dyn QueryLogSink>>) -> ViewsLog {
        ViewsLog(sink)
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    fn record(&self, event: &QueryLogEvent<'_>) {
        if let Some(sink) = &self.0 {
            sink.record(event);
        }
    }

    pub(super) fn flush(&self) {
        if let Some(sink) = &self.0 {
            sink.flush();
        }
    }

    pub(super) fn record_start(&self, budget: usize) {
        self.record(&QueryLogEvent::Start { version: env!("CARGO_PKG_VERSION"), budget });
    }

    pub(super) fn record_end(&self) {
        self.record(&QueryLogEvent::End);
        self.flush();
    }

    /// Records that a query was answered, for a view or once.
    pub(super) fn record_answer(
        &self,
        query: &RegisteredQuery,
        client: &str,
        view: Option<u64>,
        found: &TracedResult,
    ) {
        if self.0.is_none() {
            return;
        }
        let text = query.resolved.query.to_string();
        let answer = ResultRecord {
            client,
            query: &text,
            kind: query.view_query.kind(),
            collection: query.view_query.collection(),
            backend: LOCAL_BACKEND,
            origin: found.origin,
            answer: found.number,
            rows_read: found.rows_read,
            verified: found.verified,
            returned: found.rows.len(),
            us: found.micros,
            bytes: found.bytes,
        };
        self.record(&match view {
            Some(view) => QueryLogEvent::Open { view, answer },
            None => QueryLogEvent::Query(answer),
        });
    }

    pub(super) fn record_close(&self, view_queue: &ViewQueue) {
        self.record(&QueryLogEvent::Close { client: &view_queue.client, view: view_queue.number });
    }

    pub(super) fn record_delivery(
        &self,
        view_queue: &ViewQueue,
        seq: Seq,
        [added, modified, removed]: [usize; 3],
        us: u64,
    ) {
        let (client, view) = (&*view_queue.client, view_queue.number);
        self.record(&QueryLogEvent::Notify { client, view, seq, added, modified, removed, us });
    }

    pub(super) fn record_reset(
        &self,
        view_queue: &ViewQueue,
        seq: Seq,
        reason: ResetReason,
        returned: usize,
        us: u64,
    ) {
        let (client, view) = (&*view_queue.client, view_queue.number);
        self.record(&QueryLogEvent::Reset { client, view, seq, reason, returned, us });
    }

    /// Records a poll. `delivered` is the number of views that it concerned.
    pub(super) fn record_poll(
        &self,
        (seq, batches): (Seq, i64),
        items: usize,
        statistics: &FanOutStatistics,
        collections: &CollectionTable,
        delivered: usize,
        us: u64,
    ) {
        let kinds = statistics.kinds_by_collection.iter();
        let kinds = kinds
            .map(|(row, kind)| (collections.name_by_row(*row).unwrap_or(""), kind.name()))
            .collect();
        let tested = statistics.tested_queries.len();
        self.record(&QueryLogEvent::Change {
            seq,
            batches,
            items,
            kinds,
            tested,
            notified: delivered,
            us,
        });
    }

    pub(super) fn record_eviction(&self, answer: u64, reason: EvictionReason, bytes: usize) {
        self.record(&QueryLogEvent::Evict { answer, reason, bytes });
    }
}
