//! The query log: each query with its cost, each view, and each notification, as lines of JSON.
//!
//! `docs/queries.md` documents the lines. This module writes them and opens no file;
//! `larder-measure` reads them. Separate from the execution of queries so that a program without a
//! log pays for one test of an `Option`.

use crate::query::Query;
use crate::result_set::ResultSet;
use crate::search_request::SearchRequest;
use larder_store::{Kind, PackedRowIds, Seq};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A receiver of log events.
pub trait QueryLogSink: Send + Sync + fmt::Debug {
    /// Records an event at the current time.
    fn record(&self, event: &QueryLogEvent<'_>);

    /// Writes the buffered lines. Called when no event is expected for a while.
    fn flush(&self) {}
}

/// The origin of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultOrigin {
    /// The query was executed.
    Executed,
    /// The answer cache had it.
    Cache,
    /// The answer cache had the answer, and a view is open on the query.
    Shared,
}

/// The reason why a cached answer was evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EvictionReason {
    /// An item entered or left the answer.
    Stale,
    /// The budget of the cache was exceeded.
    Budget,
}

/// The reason why a view was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetReason {
    /// The missed changes were pruned, or are too many.
    Expired,
    /// Collections were created, removed or renamed.
    Collections,
    /// The time zones have changed.
    Zones,
}

/// An event in the log; its name and fields are the names in the JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[allow(missing_docs, reason = "docs/queries.md documents the fields")]
pub enum QueryLogEvent<'a> {
    /// A process starts to log.
    Start { version: &'a str, budget: usize },
    /// A query was answered once.
    Query(ResultRecord<'a>),
    /// A view was opened.
    Open {
        view: u64,
        #[serde(flatten)]
        answer: ResultRecord<'a>,
    },
    /// Changes were put into the view_queue of a view.
    Notify {
        client: &'a str,
        view: u64,
        seq: Seq,
        added: usize,
        modified: usize,
        removed: usize,
        us: u64,
    },
    /// A view was reset, and the full answer delivered.
    Reset { client: &'a str, view: u64, seq: Seq, reason: ResetReason, returned: usize, us: u64 },
    /// A view was closed.
    Close { client: &'a str, view: u64 },
    /// The change feed was read.
    Change {
        seq: Seq,
        batches: i64,
        items: usize,
        kinds: Vec<(&'a str, &'a str)>,
        tested: usize,
        notified: usize,
        us: u64,
    },
    /// A cached answer was evicted.
    Evict { answer: u64, reason: EvictionReason, bytes: usize },
    /// The process ends.
    End,
}

/// An answered query.
#[derive(Debug, Clone, Serialize)]
pub struct ResultRecord<'a> {
    /// The name of the client.
    pub client: &'a str,
    /// The query, as an S-expression.
    pub query: &'a str,
    /// The kind that the query is restricted to.
    #[serde(serialize_with = "serialize_kind")]
    pub kind: Option<Kind>,
    /// The collection that the query is restricted to.
    pub collection: Option<&'a str>,
    /// The backend of the collection.
    pub backend: &'a str,
    /// The origin of the answer.
    pub origin: ResultOrigin,
    /// The number of the answer in this process.
    pub answer: u64,
    /// Rows of the index, or of the full scan, that were read.
    pub rows_read: u64,
    /// Items that were verified.
    pub verified: u64,
    /// Items in the answer.
    pub returned: usize,
    /// The time of the query, in microseconds.
    pub us: u64,
    /// The memory that the answer holds in the cache.
    pub bytes: usize,
}

/// The memory of a parsed query in addition to its text and its answer: the average of ten
/// thousand.
const QUERY_BYTES: usize = 1536;
/// The memory of a compiled pattern: the average of a thousand.
const PATTERN_BYTES: usize = 22 << 10;

/// The memory that a cached answer holds with its query, whose text has `text_bytes`.
pub(crate) fn cached_result_bytes(rows: &PackedRowIds, text_bytes: usize, query: &Query) -> usize {
    rows.byte_len() + text_bytes + QUERY_BYTES + count_patterns(query) * PATTERN_BYTES
}

fn count_patterns(query: &Query) -> usize {
    match query {
        Query::And(parts) | Query::Or(parts) => parts.iter().map(count_patterns).sum(),
        Query::Not(query) => count_patterns(query),
        Query::Test(test) => usize::from(test.op.is_pattern()),
        _ => 0,
    }
}

impl<'a> ResultRecord<'a> {
    /// The record of a query that [`find`](crate::find()) has answered. `number` is the number of
    /// the answer in this process.
    #[must_use]
    pub fn from_result_set(
        client: &'a str,
        request: &'a SearchRequest,
        answer: &'a ResultSet,
        number: u64,
        elapsed: Duration,
    ) -> ResultRecord<'a> {
        let (explain, returned) = (&answer.explain, answer.len());
        ResultRecord {
            client,
            query: &explain.query,
            kind: request.query.required_kind(),
            collection: request.collection.as_deref(),
            backend: "local",
            origin: ResultOrigin::Executed,
            answer: number,
            rows_read: explain.rows_read,
            verified: explain.verified,
            returned,
            us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            bytes: cached_result_bytes(
                &PackedRowIds::new(&answer.rows()),
                explain.query.len(),
                &request.query,
            ),
        }
    }
}

fn serialize_kind<S: serde::Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
    kind.map(Kind::name).serialize(to)
}

/// A line of the log: an event with its time and process.
#[derive(Serialize)]
struct QueryLogLine<'a> {
    at_us: u64,
    pid: u32,
    #[serde(flatten)]
    event: &'a QueryLogEvent<'a>,
}

/// The buffer is written out when it has this size.
const FLUSH_BYTES: usize = 16 << 10;
/// The buffer is written out when its first line has this age.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A log that writes lines of JSON. It buffers the lines for a moment and writes only whole lines.
pub struct JsonLinesLog<W: Write> {
    pid: u32,
    buffer: Mutex<QueryLogBuffer<W>>,
}

struct QueryLogBuffer<W: Write> {
    writer: W,
    lines: Vec<u8>,
    since: Option<Instant>,
}

impl<W: Write> JsonLinesLog<W> {
    /// A log of this process that writes to `writer`.
    pub fn new(writer: W) -> JsonLinesLog<W> {
        let buffer = QueryLogBuffer { writer, lines: Vec::new(), since: None };
        JsonLinesLog { pid: std::process::id(), buffer: Mutex::new(buffer) }
    }
}

impl<W: Write> QueryLogBuffer<W> {
    fn write_out(&mut self) {
        self.since = None;
        // A log that cannot be written must not stop the program.
        let _lost = self.writer.write_all(&self.lines).and_then(|()| self.writer.flush());
        self.lines.clear();
    }
}

impl<W: Write + Send> QueryLogSink for JsonLinesLog<W> {
    fn record(&self, event: &QueryLogEvent<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = buffer.lines.len();
        if serde_json::to_writer(
            &mut buffer.lines,
            &QueryLogLine { at_us: at, pid: self.pid, event },
        )
        .is_err()
        {
            buffer.lines.truncate(before);
            return;
        }
        buffer.lines.push(b'\n');
        let since = *buffer.since.get_or_insert_with(Instant::now);
        if buffer.lines.len() >= FLUSH_BYTES || since.elapsed() >= FLUSH_INTERVAL {
            buffer.write_out();
        }
    }

    fn flush(&self) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if !buffer.lines.is_empty() {
            buffer.write_out();
        }
    }
}

impl<W: Write> Drop for JsonLinesLog<W> {
    fn drop(&mut self) {
        self.buffer.get_mut().unwrap_or_else(PoisonError::into_inner).write_out();
    }
}

impl<W: Write> fmt::Debug for JsonLinesLog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLinesLog").field("pid", &self.pid).finish_non_exhaustive()
    }
}
