//! The query log: what was asked, how it was answered, and what open views were told; one line of JSON for each.
//!
//! `docs/queries.md` says what each line has. Here it is only written; no file is opened, and nothing is read: that
//! is `larder-measure`'s. It is apart so that who wants no log pays for nothing but a look at an `Option`.

use crate::answer::Answer;
use crate::query::Query;
use crate::run::Find;
use larder_store::{Kind, PackedRows, Seq};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What takes lines of the log.
pub trait Sink: Send + Sync + fmt::Debug {
    /// Notes that this happened now.
    fn note(&self, event: &Event<'_>);

    /// Nothing is going to happen for a while: what was noted may be written out.
    fn rest(&self) {}
}

/// How an answer came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
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
pub enum Drop {
    /// Something changed that it is about.
    Stale,
    /// There was no room for it.
    Budget,
}

/// Why a view is given its answer anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Anew {
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
pub enum Event<'a> {
    /// A process begins to log.
    Start { version: &'a str, budget: usize },
    /// A question was answered.
    Query(Answered<'a>),
    /// A view was opened.
    Open {
        view: u64,
        #[serde(flatten)]
        answer: Answered<'a>,
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
    Fresh { client: &'a str, view: u64, seq: Seq, why: Anew, returned: usize, us: u64 },
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
    Drop { answer: u64, why: Drop, bytes: usize },
    /// The process ends.
    End,
}

/// How a question was answered.
#[derive(Debug, Clone, Serialize)]
pub struct Answered<'a> {
    /// Who asked.
    pub client: &'a str,
    /// The question, as an S-expression.
    pub query: &'a str,
    /// The kind of items that it is put to.
    #[serde(serialize_with = "kind")]
    pub kind: Option<Kind>,
    /// The collection that it is put to.
    pub collection: Option<&'a str>,
    /// What kind of source the collection has.
    pub source: &'a str,
    /// How it came to be.
    pub from: From,
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

/// What a question takes beside its text and the rows of its answer, read and made ready, in bytes: as ten thousand of them took.
const ASKED: usize = 1536;
/// What a compiled pattern takes beside that, as a thousand of them took.
const PATTERN: usize = 22 << 10;

/// What an answer holds in memory where it is kept: its rows, and its question, of this length as it was written.
pub(crate) fn bytes_of(rows: &PackedRows, written: usize, query: &Query) -> usize {
    rows.bytes() + written + ASKED + patterns(query) * PATTERN
}

fn patterns(query: &Query) -> usize {
    match query {
        Query::And(of) | Query::Or(of) => of.iter().map(patterns).sum(),
        Query::Not(of) => patterns(of),
        Query::Test(test) => usize::from(test.op.is_pattern()),
        _ => 0,
    }
}

impl<'a> Answered<'a> {
    /// Of a question that [`find`](crate::find()) has answered, the answer with this number in its process.
    #[must_use]
    pub fn run(
        client: &'a str,
        find: &'a Find,
        answer: &'a Answer,
        number: u64,
        took: Duration,
    ) -> Answered<'a> {
        let (explain, returned) = (&answer.explain, answer.len());
        Answered {
            client,
            query: &explain.query,
            kind: find.query.kind(),
            collection: find.collection.as_deref(),
            source: "local",
            from: From::Run,
            answer: number,
            scanned: explain.visited,
            tested: explain.tested,
            returned,
            us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            bytes: bytes_of(&PackedRows::new(&answer.rows()), explain.query.len(), &find.query),
        }
    }
}

fn kind<S: serde::Serializer>(kind: &Option<Kind>, to: S) -> Result<S::Ok, S::Error> {
    kind.map(Kind::name).serialize(to)
}

/// What all lines have.
#[derive(Serialize)]
struct Line<'a> {
    at: u64,
    pid: u32,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Lines are gathered up to so many bytes, and for so long.
const GATHERED: usize = 16 << 10;
const SOON: Duration = Duration::from_secs(1);

/// A log that is written as lines. They are gathered for a moment, and only whole lines are written at once.
pub struct Lines<W: Write> {
    pid: u32,
    to: Mutex<Gathered<W>>,
}

struct Gathered<W: Write> {
    to: W,
    lines: Vec<u8>,
    since: Option<Instant>,
}

impl<W: Write> Lines<W> {
    /// A log of this process that is written to `to`.
    pub fn new(to: W) -> Lines<W> {
        let to = Gathered { to, lines: Vec::new(), since: None };
        Lines { pid: std::process::id(), to: Mutex::new(to) }
    }
}

impl<W: Write> Gathered<W> {
    fn write(&mut self) {
        self.since = None;
        // A log that cannot be written stops nobody.
        let _lost = self.to.write_all(&self.lines).and_then(|()| self.to.flush());
        self.lines.clear();
    }
}

impl<W: Write + Send> Sink for Lines<W> {
    fn note(&self, event: &Event<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let before = to.lines.len();
        if serde_json::to_writer(&mut to.lines, &Line { at, pid: self.pid, event }).is_err() {
            to.lines.truncate(before);
            return;
        }
        to.lines.push(b'\n');
        let since = *to.since.get_or_insert_with(Instant::now);
        if to.lines.len() >= GATHERED || since.elapsed() >= SOON {
            to.write();
        }
    }

    fn rest(&self) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if !to.lines.is_empty() {
            to.write();
        }
    }
}

impl<W: Write> std::ops::Drop for Lines<W> {
    fn drop(&mut self) {
        self.to.get_mut().unwrap_or_else(PoisonError::into_inner).write();
    }
}

impl<W: Write> fmt::Debug for Lines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("pid", &self.pid).finish_non_exhaustive()
    }
}
