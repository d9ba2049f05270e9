//! The analysis of a query log: how often queries are repeated, how long views live, the cost of
//! answers, the benefit of the cache, and the fan-out of changes.
//!
//! The log is written by `larder-query`; this module measures nothing itself. A log is read once,
//! in order, and memory grows with the number of different queries and of open views, not with its
//! length. Each part of the analysis is a module.
//!
//! | module | part |
//! |---|---|
//! | `log_reader`, `interner` | reading lines; numbers for equal queries and texts |
//! | `reuse` | repeated queries, clients, the origin of answers |
//! | `view_lifetimes` | views that were never closed, lifetimes |
//! | `cost` | time and rows of executed queries |
//! | `cache_residency`, `cache_simulation` | memory of cached answers; other budgets |
//! | `fan_out` | views notified for each change |
//! | `histogram`, `timeline` | distributions; values over time |
//! | `anonymisation`, `comparison` | a log without its texts; two logs side by side |
//! | `text_report`, `html_report` | the reports |
//!
//! A log may have the lines of many processes; a view or an answer is identified by its process and
//! its number there.

pub mod anonymisation;
pub mod cache_residency;
pub mod cache_simulation;
pub mod comparison;
pub mod cost;
pub mod fan_out;
pub mod histogram;
pub mod html_report;
mod interner;
pub mod log_reader;
pub mod reuse;
pub mod text_report;
pub mod timeline;
pub mod view_lifetimes;

pub use self::anonymisation::{AnonymisationReport, anonymise};
pub use self::html_report::render_html;
pub use self::interner::LoggedQuery;

use self::cache_residency::ResidencyTracker;
use self::cache_simulation::{CacheReplays, CacheReport};
use self::cost::{CostAccumulator, CostReport};
use self::fan_out::{FanOutAccumulator, FanOutReport};
use self::interner::{InternedQuery, LogInterner};
use self::log_reader::{AnswerEvent, BadLines, LogEvent, LogLine};
use self::reuse::{ReuseAccumulator, ReuseReport};
use self::view_lifetimes::{LifetimeReport, ViewEnd, ViewTracker};
use serde::{Serialize, Serializer};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

/// The analysis of a log. docs/output.md documents its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryLogReport {
    /// The readable lines.
    pub lines: u64,
    /// The readable lines with an unknown event.
    pub unknown_lines: u64,
    /// The unreadable lines.
    pub bad_lines: BadLines,
    /// The number of processes that wrote the log.
    pub process_count: u64,
    /// The times of the first and the last event, in microseconds since 1970.
    #[serde(flatten, serialize_with = "serialize_time_span")]
    pub time_span: (i64, i64),
    /// The repetition of queries.
    pub reuse: ReuseReport,
    /// The lifetimes of views and of cached answers.
    pub lifetimes: LifetimeReport,
    /// The time and work of executed queries.
    pub cost: CostReport,
    /// The benefit of the cache.
    pub cache: CacheReport,
    /// The views notified of each change.
    pub fan_out: FanOutReport,
}

fn serialize_time_span<S: Serializer>(span: &(i64, i64), serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct TimeSpan {
        from_us: i64,
        to_us: i64,
    }
    TimeSpan { from_us: span.0, to_us: span.1 }.serialize(serializer)
}

impl QueryLogReport {
    /// Returns whether the log has any event that a report covers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines == self.unknown_lines
    }
}

/// Reads a log to its end. `budget` is an additional cache budget to simulate, in bytes.
///
/// # Errors
/// Any error of reading the source.
pub fn read_log(source: &mut dyn BufRead, budget: Option<u64>) -> io::Result<QueryLogReport> {
    let mut reading = ReportBuilder::new(budget);
    let broken = log_reader::read_lines(source, &mut |_, line| {
        reading.add_line(&line);
        Ok(())
    })?;
    Ok(reading.finish(broken))
}

/// The state while the log is read.
struct ReportBuilder {
    lines: u64,
    unknown_lines: u64,
    time_span: Option<(i64, i64)>,
    /// The number of the current process of each pid.
    processes: HashMap<u64, u32>,
    process_count: u32,
    /// The processes that have shown no cache so far: a command that answers one query has none,
    /// and writes no `start`.
    cacheless: HashSet<u32>,
    interner: LogInterner,
    reuse: ReuseAccumulator,
    residency: ResidencyTracker,
    view_tracker: ViewTracker,
    cost: CostAccumulator,
    replays: CacheReplays,
    fan_out: FanOutAccumulator,
}

impl ReportBuilder {
    fn new(budget: Option<u64>) -> ReportBuilder {
        ReportBuilder {
            lines: 0,
            unknown_lines: 0,
            time_span: None,
            processes: HashMap::new(),
            process_count: 0,
            cacheless: HashSet::new(),
            interner: LogInterner::default(),
            reuse: ReuseAccumulator::new(),
            residency: ResidencyTracker::new(),
            view_tracker: ViewTracker::default(),
            cost: CostAccumulator::default(),
            replays: CacheReplays::new(budget),
            fan_out: FanOutAccumulator::default(),
        }
    }

    fn add_line(&mut self, line: &LogLine) {
        let &LogLine { at, pid, .. } = line;
        self.lines += 1;
        if line.event == LogEvent::Unknown {
            self.unknown_lines += 1;
            return;
        }
        let (first, last) = self.time_span.unwrap_or((at, at));
        self.time_span = Some((first.min(at), last.max(at)));
        if let LogEvent::Start(start) = &line.event {
            self.end_process(pid, at, ViewEnd::ProcessDied);
            self.start_process(pid, Some(start.budget));
            return;
        }
        if line.event == LogEvent::End {
            return self.end_process(pid, at, ViewEnd::Leaked);
        }
        let process = match self.processes.get(&pid) {
            Some(process) => *process,
            // The log does not contain the start of this process.
            None => self.start_process(pid, None),
        };
        self.add_event(process, line);
    }

    fn add_event(&mut self, process: u32, line: &LogLine) {
        let &LogLine { at, pid, .. } = line;
        if line.event.shows_cache() && self.cacheless.remove(&process) {
            self.residency.start_process(process, None);
            self.replays.start_process(process, None);
        }
        match &line.event {
            LogEvent::Query(asked) => {
                let ask = self.interner.intern_query(asked);
                self.add_answer(process, at, ask, asked);
            }
            LogEvent::Open(view, asked) => {
                let ask = self.interner.intern_query(asked);
                // A view that asks for changes only has no initial answer.
                if asked.answer > 0 {
                    self.add_answer(process, at, ask, asked);
                }
                self.residency.open_view(process, at, *view, ask.query);
                self.replays.open_view(process, *view, ask, asked);
                self.view_tracker.open_view(process, pid, at, *view, ask);
            }
            LogEvent::Close(view) => {
                self.residency.close_view(process, at, view.view);
                self.replays.close_view(process, view.view);
                self.view_tracker.close_view(process, at, view.view);
            }
            LogEvent::Change(change) => {
                let texts = &mut self.interner.texts;
                self.fan_out.add_change(change, self.view_tracker.open_view_count(process));
                self.replays
                    .apply_change(process, change, &mut |name| texts.intern(name.to_string()));
            }
            LogEvent::Evict(dropped) => {
                self.residency.remove_answer(process, at, dropped.answer, dropped.reason);
                self.replays.evict_answer(process, dropped.answer, dropped.reason);
            }
            LogEvent::Notified(told) => self.fan_out.add_notification(told),
            LogEvent::Reset(fresh) => {
                self.fan_out.add_reset(fresh);
                self.replays.reset_view(process, fresh.view);
            }
            LogEvent::Start(_) | LogEvent::End | LogEvent::Unknown => {}
        }
    }

    fn add_answer(&mut self, process: u32, at: i64, ask: InternedQuery, answer: &AnswerEvent) {
        self.reuse.add_answer(at, ask, answer.origin, answer.us);
        self.cost.add_answer(ask, answer);
        self.residency.add_answer(process, at, ask.query, answer);
        self.replays.add_answer(process, ask, answer);
    }

    fn start_process(&mut self, pid: u64, budget: Option<u64>) -> u32 {
        let number = self.process_count;
        self.process_count = self.process_count.saturating_add(1);
        self.processes.insert(pid, number);
        if budget.is_some() {
            self.residency.start_process(number, budget);
            self.replays.start_process(number, budget);
        } else {
            self.cacheless.insert(number);
        }
        number
    }

    fn end_process(&mut self, pid: u64, at: i64, end: ViewEnd) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.cacheless.remove(&process);
        self.residency.end_process(process, at);
        self.replays.end_process(process);
        self.view_tracker.end_process(process, at, end);
    }

    fn finish(mut self, broken: BadLines) -> QueryLogReport {
        let time = self.time_span.unwrap_or((0, 0));
        for process in self.processes.values() {
            self.view_tracker.end_process(*process, time.1, ViewEnd::Open);
        }
        let (kept, held) = self.residency.finish(time.1);
        QueryLogReport {
            lines: self.lines,
            unknown_lines: self.unknown_lines,
            bad_lines: broken,
            process_count: u64::from(self.process_count),
            time_span: time,
            reuse: self.reuse.finish(&self.interner, held),
            lifetimes: self.view_tracker.finish(&self.interner, time, kept),
            cost: self.cost.finish(&self.interner),
            cache: self.replays.finish(),
            fan_out: self.fan_out.finish(),
        }
    }
}
