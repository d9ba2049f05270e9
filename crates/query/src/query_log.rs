//! The query log: what was asked, how it was answered, and what open views were told; one line of
//! JSON for each.
//!
//! `docs/queries.md` says what each line has. Here it is only written; no file is opened, and
//! nothing is read: that is `larder-measure`'s. It is apart so that who wants no log pays for
//! nothing but a look at an `Option`.

use crate::execution::SearchRequest;
use crate::query::Query;
use crate::result_set::ResultSet;
use larder_store::{Kind, PackedRowIds, Seq};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What takes lines of the log.
pub trait QueryLogSink: Send + Sync + fmt::Debug {
    /// Notes that this happened now.
    fn record(&self, event: &QueryLogEvent<'_>);

    /// Nothing is going to happen for a while: what was noted may be written out.
    fn flush(&self) {}
}

/// How an answer came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerOrigin {
    /// It was worked out.
    Run,
    /// It had been kept.
    Cache,
    /// It is that of an open view.
    Shared,
}

/// Why an answer that was kept went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EvictionReason {
    /// Something changed that it is about.
    Stale,
    /// There was no room for it.
    Budget,
}

/// Why a view is given its answer anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetReason {
    /// What happened since is not kept any more, or is too much to be told.
    Expired,
    /// Collections came, went, or have other names.
    Collections,
    /// Time zones changed.
    Zones,
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[allow(missing_docs, reason = "they are called as in docs/queries.md")]
pub enum QueryLogEvent<'a> {
    /// A process begins to log.
    Start { version: &'a str, budget: usize },
    /// A question was answered.
    Query(AnswerRecord<'a>),
    /// A view was opened.
    Open {
        view: u64,
        #[serde(flatten)]
        answer: AnswerRecord<'a>,
    },
    /// A view was told what changed.
    Told {
        client: &'a str,
        view: u64,
        seq: Seq,
        added: usize,
        modified: usize,
        removed: usize,
        us: u64,
    },
    /// A view was given its answer anew.
    Fresh { client: &'a str, view: u64, seq: Seq, why: ResetReason, returned: usize, us: u64 },
    /// A view was closed.
    Close { client: &'a str, view: u64 },
    /// The news of the store were read.
    Change {
        seq: Seq,
        batches: i64,
        items: usize,
        of: Vec<(&'a str, &'a str)>,
        asked: usize,
        told: usize,
        us: u64,
    },
    /// An answer that was kept went.
    Drop { answer: u64, why: EvictionReason, bytes: usize },
    /// The process ends.
    End,
}

/// How a question was answered.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerRecord<'a> {
    /// Who asked.
    pub client: &'a str,
    /// The question, as an S-expression.
    pub query: &'a str,
    /// The kind of items that it is put to.
    #[serde(serialize_with = "serialize_kind")]
    pub kind: Option<Kind>,
    /// The collection that it is put to.
    pub collection: Option<&'a str>,
    /// What kind of source the collection has.
    pub source: &'a str,
    /// How it came to be.
    pub from: AnswerOrigin,
    /// The number of the answer in this process.
    pub answer: u64,
    /// Rows that the index, or the scan, visited.
    pub scanned: u64,
    /// Items that were compared with the question.
    pub tested: u64,
    /// Items in the answer.
    pub returned: usize,
    /// How long it took, in microseconds.
    pub us: u64,
    /// What it holds in memory.
    pub bytes: usize,
}

/// What a question takes beside its text and the rows of its answer, read and made ready, in bytes:
/// as ten thousand of them took.
const QUERY_BYTES: usize = 1536;
/// What a compiled pattern takes beside that, as a thousand of them took.
const PATTERN_BYTES: usize = 22 << 10;

/// What an answer holds in memory where it is kept: its rows, and its question, of this length as
/// it was written.
pub(crate) fn cached_answer_bytes(rows: &PackedRowIds, written: usize, query: &Query) -> usize {
    rows.byte_len() + written + QUERY_BYTES + count_patterns(query) * PATTERN_BYTES
}

fn count_patterns(query: &Query) -> usize {
    match query {
        Query::And(of) | Query::Or(of) => of.iter().map(count_patterns).sum(),
        Query::Not(of) => count_patterns(of),
        Query::Test(test) => usize::from(test.op.is_pattern()),
        _ => 0,
    }
}

impl<'a> AnswerRecord<'a> {
    /// Of a question that [`find`](crate::find()) has answered, the answer with this number in its
    /// process.
    #[must_use]
    pub fn from_result_set(
        client: &'a str,
        find: &'a SearchRequest,
        answer: &'a ResultSet,
        number: u64,
        took: Duration,
    ) -> AnswerRecord<'a> {
        let (explain, returned) = (&answer.explain, answer.len());
        AnswerRecord {
            client,
            query: &explain.query,
            kind: find.query.required_kind(),
            collection: find.collection.as_deref(),
            source: "local",
            from: AnswerOrigin::Run,
            answer: number,
            scanned: explain.visited,
            tested: explain.tested,
            returned,
            us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            bytes: cached_answer_bytes(
                &PackedRowIds::new(&answer.rows()),
                explain.query.len(),
                &find.query,
            ),
        }
    }
}

fn serialize_kind<S: serde::Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
    kind.map(Kind::name).serialize(to)
}

/// What all lines have.
#[derive(Serialize)]
struct QueryLogLine<'a> {
    at: u64,
    pid: u32,
    #[serde(flatten)]
    event: &'a QueryLogEvent<'a>,
}

/// Lines are gathered up to so many bytes, and for so long.
const FLUSH_BYTES: usize = 16 << 10;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A log that is written as lines. They are gathered for a moment, and only whole lines are written
/// at once.
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
    /// A log of this process that is written to `to`.
    pub fn new(to: W) -> JsonLinesLog<W> {
        let to = QueryLogBuffer { writer: to, lines: Vec::new(), since: None };
        JsonLinesLog { pid: std::process::id(), buffer: Mutex::new(to) }
    }
}

impl<W: Write> QueryLogBuffer<W> {
    fn write_out(&mut self) {
        self.since = None;
        // A log that cannot be written stops nobody.
        let _lost = self.writer.write_all(&self.lines).and_then(|()| self.writer.flush());
        self.lines.clear();
    }
}

impl<W: Write + Send> QueryLogSink for JsonLinesLog<W> {
    fn record(&self, event: &QueryLogEvent<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let mut to = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = to.lines.len();
        if serde_json::to_writer(&mut to.lines, &QueryLogLine { at, pid: self.pid, event }).is_err()
        {
            to.lines.truncate(before);
            return;
        }
        to.lines.push(b'\n');
        let since = *to.since.get_or_insert_with(Instant::now);
        if to.lines.len() >= FLUSH_BYTES || since.elapsed() >= FLUSH_INTERVAL {
            to.write_out();
        }
    }

    fn flush(&self) {
        let mut to = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if !to.lines.is_empty() {
            to.write_out();
        }
    }
}

impl<W: Write> std::ops::Drop for JsonLinesLog<W> {
    fn drop(&mut self) {
        self.buffer.get_mut().unwrap_or_else(PoisonError::into_inner).write_out();
    }
}

impl<W: Write> fmt::Debug for JsonLinesLog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("pid", &self.pid).finish_non_exhaustive()
    }
}
