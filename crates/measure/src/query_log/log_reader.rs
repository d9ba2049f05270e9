//! Reads the lines of a query log.
//!
//! The other modules of the query log interpret the events. A log is read one line at a time. An
//! overlong or malformed line does not stop the reading; it is reported by its number.
//! docs/queries.md documents the format.

use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};

/// Longer lines are skipped without being held in memory.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The number of unreadable lines that are reported; all are counted.
const MAX_BAD_LINE_SAMPLES: usize = 20;

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// The time of the event, in microseconds since 1970.
    pub at: i64,
    /// The process that wrote it.
    pub pid: u64,
    /// The event.
    pub event: LogEvent,
}

/// An event of the log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEvent {
    /// `start`: a process started to log.
    Start(StartEvent),
    /// `query`: a query was answered.
    Query(AnswerEvent),
    /// `open`: a view was opened; its number and its initial answer.
    Open(u64, AnswerEvent),
    /// `notify`: a view was notified of changes.
    Notified(NotifyEvent),
    /// `reset`: a view was reset.
    Reset(ResetEvent),
    /// `close`: a view was closed, or its client ended.
    Close(CloseEvent),
    /// `change`: the process read changes of the store.
    Change(ChangeEvent),
    /// `evict`: a cached answer was evicted.
    Evict(EvictEvent),
    /// `end`: the process ended normally.
    End,
    /// An event that this version does not support.
    Unknown,
}

impl LogEvent {
    /// Returns whether only a process with a cache writes this event.
    pub(super) fn shows_cache(&self) -> bool {
        match self {
            LogEvent::Query(answer) => answer.origin != LoggedOrigin::Executed,
            LogEvent::Start(_) | LogEvent::End | LogEvent::Unknown => false,
            _ => true,
        }
    }
}

/// The fields of `start`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StartEvent {
    /// The memory budget of cached answers in bytes; 0: no cache.
    pub budget: u64,
}

/// The fields of `query` and `open`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnswerEvent {
    /// The client.
    pub client: String,
    /// The query, as an S-expression.
    pub query: String,
    /// The kind of item that the query is restricted to; `None`: any.
    pub kind: Option<String>,
    /// The collection that the query is restricted to; `None`: all.
    pub collection: Option<String>,
    /// The backend of the collection.
    pub backend: String,
    /// The origin of the answer.
    pub origin: LoggedOrigin,
    /// The number of the answer in its process; 0: a view that asks for changes only.
    pub answer: u64,
    /// Rows of the index, or of the full scan, that were read.
    pub rows_read: u64,
    /// Items that were verified.
    #[serde(default)]
    pub verified: u64,
    /// Items in the answer.
    pub returned: u64,
    /// The time of the answer, in microseconds.
    pub us: u64,
    /// The memory of the answer, in bytes.
    pub bytes: u64,
}

/// The origin of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedOrigin {
    /// The query was executed.
    Executed,
    /// The answer was cached, and no view had the query open.
    Cache,
    /// The answer was cached, and a view had the query open.
    Shared,
}

/// The fields of `notify`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotifyEvent {
    /// Items that were added to the view.
    #[serde(default)]
    pub added: u64,
    /// Items of the view that were modified.
    #[serde(default)]
    pub modified: u64,
    /// Items that were removed from the view.
    #[serde(default)]
    pub removed: u64,
}

/// The fields of `reset`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResetEvent {
    /// The view.
    pub view: u64,
    /// The reason: `expired`, `collections` or `zones`.
    pub reason: String,
}

/// The fields of `close`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CloseEvent {
    /// The view.
    pub view: u64,
}

/// The fields of `change`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChangeEvent {
    /// The number of changed items.
    pub items: u64,
    /// Their collections and kinds.
    pub kinds: Vec<(Option<String>, Option<String>)>,
    /// Queries that were tested; equal queries count once.
    pub tested: u64,
    /// Views that were notified.
    pub notified: u64,
    /// The time it took, in microseconds.
    pub us: u64,
}

/// The fields of `evict`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EvictEvent {
    /// The number of the answer.
    pub answer: u64,
    /// The cause of the eviction.
    pub reason: LoggedEvictionReason,
}

/// The cause of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedEvictionReason {
    /// A change or the clock invalidated the answer.
    Stale,
    /// The memory was needed for other answers.
    Budget,
    /// A cause that this version does not support.
    #[serde(other)]
    Other,
}

/// The unreadable lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BadLines {
    /// Their number.
    pub lines: u64,
    /// The first of them.
    pub samples: Vec<BadLine>,
}

/// An unreadable line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// The number of the line, from 1.
    pub line: u64,
    /// The problem.
    pub reason: String,
}

impl BadLines {
    fn add(&mut self, line: u64, reason: String) {
        self.lines += 1;
        if self.samples.len() < MAX_BAD_LINE_SAMPLES {
            self.samples.push(BadLine { line, reason });
        }
    }
}

impl LogLine {
    /// Parses a line.
    ///
    /// # Errors
    /// The problem of a malformed line.
    pub fn parse(text: &str) -> Result<LogLine, String> {
        #[derive(Deserialize)]
        struct LogLineHead {
            at_us: i64,
            pid: u64,
            event: String,
        }
        /// Parses the fields of an event into a type of its own, so that fields of later versions
        /// are ignored.
        fn parse_event<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
            serde_json::from_str(text).map_err(format_json_error)
        }
        // Serde also accepts an array of the field values.
        if !text.starts_with('{') {
            return Err("not a JSON object".into());
        }
        let head: LogLineHead = serde_json::from_str(text).map_err(format_json_error)?;
        let event = match head.event.as_str() {
            "start" => LogEvent::Start(parse_event(text)?),
            "query" => LogEvent::Query(parse_event(text)?),
            "open" => LogEvent::Open(parse_event::<CloseEvent>(text)?.view, parse_event(text)?),
            "notify" => LogEvent::Notified(parse_event(text)?),
            "reset" => LogEvent::Reset(parse_event(text)?),
            "close" => LogEvent::Close(parse_event(text)?),
            "change" => LogEvent::Change(parse_event(text)?),
            "evict" => LogEvent::Evict(parse_event(text)?),
            "end" => LogEvent::End,
            _ => LogEvent::Unknown,
        };
        Ok(LogLine { at: head.at_us, pid: head.pid, event })
    }
}

/// Returns serde's message without its line number, which is always 1.
#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn format_json_error(error: serde_json::Error) -> String {
    if error.is_eof() {
        return "incomplete line".into();
    }
    let (text, column) = (error.to_string(), error.column());
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what}, at column {column}")
}

/// Reads a log to its end and passes on each line with its number. Skips empty lines.
///
/// # Errors
/// Any error of reading the source.
pub fn read_lines(
    source: &mut dyn BufRead,
    visit: &mut dyn FnMut(&str, LogLine) -> io::Result<()>,
) -> io::Result<BadLines> {
    let (mut broken, mut bytes, mut number) = (BadLines::default(), Vec::new(), 0);
    loop {
        let Some(whole) = read_next_line(source, &mut bytes)? else { return Ok(broken) };
        number += 1;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            broken.add(number, "not UTF-8".into());
            continue;
        };
        let text = text.trim();
        match LogLine::parse(text) {
            _ if !whole => broken.add(number, format!("longer than {MAX_LINE_BYTES} bytes")),
            _ if text.is_empty() => {}
            Ok(line) => visit(text, line)?,
            Err(reason) => broken.add(number, reason),
        }
    }
}

/// Reads the next line, at most [`MAX_LINE_BYTES`] of it. Returns whether that is the whole line,
/// or `None` at the end of the log.
fn read_next_line(source: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let (mut any, mut whole) = (false, true);
    loop {
        let buffer = match source.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        whole &= part.len() <= room;
        line.extend(part.iter().take(room));
        let used = end.map_or(buffer.len(), |end| end + 1);
        source.consume(used);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}
