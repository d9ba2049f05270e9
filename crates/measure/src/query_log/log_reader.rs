//! The lines of a query log, one after the other.
//!
//! Not what they mean together: that is for the modules beside this one. A log is read as it comes,
//! a line at a time, and no line, however long or broken, stops the reading: what cannot be
//! understood is named by its number. The format is documented in `docs/queries.md`.

use serde::Deserialize;
use std::io::{self, BufRead};

/// A longer line is nobody's: it is passed over without being held.
const MAX_LINE_BYTES: usize = 1 << 20;
/// So many broken lines are named; all are counted.
const MAX_BAD_LINE_SAMPLES: usize = 20;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// When it was written, in microseconds since 1970.
    pub at: i64,
    /// The process.
    pub pid: u64,
    /// The event.
    pub event: LogEvent,
}

/// An event of the log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEvent {
    /// A process began to log.
    Start(StartEvent),
    /// A question was answered.
    Query(AnswerEvent),
    /// A view was opened, by its number; its first answer.
    Open(u64, AnswerEvent),
    /// A view was told what changed.
    Notified(NotifyEvent),
    /// A view was given its answer anew.
    Reset(ResetEvent),
    /// A view was closed, or its client went.
    Close(CloseEvent),
    /// The process read what had changed in the store.
    Change(ChangeEvent),
    /// An answer that was kept went.
    Evict(EvictEvent),
    /// The process ended in order.
    End,
    /// An event that is not known here.
    Unknown,
}

/// `start`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StartEvent {
    /// How many bytes of answers it may keep; 0: none.
    pub budget: u64,
}

/// `query` and `open`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnswerEvent {
    /// Who asked.
    pub client: String,
    /// The question, as an S-expression.
    pub query: String,
    /// The kind of item that was asked for; `None`: any.
    pub kind: Option<String>,
    /// The collection that was asked; `None`: all.
    pub collection: Option<String>,
    /// The type of source of the collection.
    pub source: String,
    /// Where the answer came from.
    pub from: LoggedOrigin,
    /// The number of the answer in this process; 0: a view that wanted none.
    pub answer: u64,
    /// Rows of the index, or items, that were visited.
    pub scanned: u64,
    /// Items that were compared with the question.
    #[serde(default)]
    pub tested: u64,
    /// Items in the answer.
    pub returned: u64,
    /// How long it took, in microseconds.
    pub us: u64,
    /// The memory of the answer.
    pub bytes: u64,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedOrigin {
    /// It was worked out.
    Run,
    /// It was kept of a question that nobody had open.
    Cache,
    /// An open view had it.
    Shared,
}

/// `told`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotifyEvent {
    /// How many items came into the view.
    #[serde(default)]
    pub added: u64,
    /// How many in it changed.
    #[serde(default)]
    pub modified: u64,
    /// How many left it.
    #[serde(default)]
    pub removed: u64,
}

/// `fresh`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResetEvent {
    /// The view.
    pub view: u64,
    /// Why: `expired`, `collections`, `zones`.
    pub why: String,
}

/// `close`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CloseEvent {
    /// Its number.
    pub view: u64,
}

/// `change`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChangeEvent {
    /// Items that changed.
    pub items: u64,
    /// Of which collections and kinds.
    pub of: Vec<(Option<String>, Option<String>)>,
    /// Questions that were tested; equal ones are one.
    pub asked: u64,
    /// Views that were told.
    pub told: u64,
    /// How long that took, in microseconds.
    pub us: u64,
}

/// `drop`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EvictEvent {
    /// Which answer.
    pub answer: u64,
    /// Why.
    pub why: LoggedEvictionReason,
}

/// Why an answer was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedEvictionReason {
    /// A change made it wrong.
    Stale,
    /// Others needed its room.
    Budget,
    /// Something that is not known here.
    #[serde(other)]
    Other,
}

/// The lines that were skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BadLines {
    /// How many lines.
    pub lines: u64,
    /// The first of them: number, from 1, and what is wrong.
    pub samples: Vec<(u64, String)>,
}

impl BadLines {
    fn add(&mut self, number: u64, why: String) {
        self.lines += 1;
        if self.samples.len() < MAX_BAD_LINE_SAMPLES {
            self.samples.push((number, why));
        }
    }
}

impl LogLine {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<LogLine, String> {
        #[derive(Deserialize)]
        struct LogLineHead {
            at: i64,
            pid: u64,
            event: String,
        }
        /// Each event is parsed into a type of its own, so that fields of later events are ignored.
        fn parse_event<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
            serde_json::from_str(text).map_err(format_json_error)
        }
        // A list of its values would do for serde, too.
        if !text.starts_with('{') {
            return Err("it is no JSON object".into());
        }
        let head: LogLineHead = serde_json::from_str(text).map_err(format_json_error)?;
        let event = match head.event.as_str() {
            "start" => LogEvent::Start(parse_event(text)?),
            "query" => LogEvent::Query(parse_event(text)?),
            "open" => LogEvent::Open(parse_event::<CloseEvent>(text)?.view, parse_event(text)?),
            "told" => LogEvent::Notified(parse_event(text)?),
            "fresh" => LogEvent::Reset(parse_event(text)?),
            "close" => LogEvent::Close(parse_event(text)?),
            "change" => LogEvent::Change(parse_event(text)?),
            "drop" => LogEvent::Evict(parse_event(text)?),
            "end" => LogEvent::End,
            _ => LogEvent::Unknown,
        };
        Ok(LogLine { at: head.at, pid: head.pid, event })
    }
}

/// Returns serde's message without its line number, which is always 1.
#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn format_json_error(error: serde_json::Error) -> String {
    if error.is_eof() {
        return "it is cut".into();
    }
    let (text, column) = (error.to_string(), error.column());
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what}, at column {column}")
}

/// Reads a log to its end, and gives each line with its number and its text. Empty lines are none.
///
/// # Errors
/// Whatever the source answers to a read.
pub fn read_lines(
    source: &mut dyn BufRead,
    each: &mut dyn FnMut(&str, LogLine) -> io::Result<()>,
) -> io::Result<BadLines> {
    let (mut broken, mut bytes, mut number) = (BadLines::default(), Vec::new(), 0);
    loop {
        let Some(whole) = read_next_line(source, &mut bytes)? else { return Ok(broken) };
        number += 1;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            broken.add(number, "it is no UTF-8".into());
            continue;
        };
        let text = text.trim();
        match LogLine::parse(text) {
            _ if !whole => broken.add(number, format!("it is longer than {MAX_LINE_BYTES} bytes")),
            _ if text.is_empty() => {}
            Ok(line) => each(text, line)?,
            Err(why) => broken.add(number, why),
        }
    }
}

/// The next line, without more than the maximum length of it: was that all? `None` at the end.
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
