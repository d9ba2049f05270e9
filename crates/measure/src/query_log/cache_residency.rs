//! The memory of cached answers over time, as recorded in the log.
//!
//! [`super::cache_simulation`] computes it for other budgets.

use crate::query_log::histogram::Histogram;
use crate::query_log::log_reader::{AnswerEvent, LoggedEvictionReason, LoggedOrigin};
use crate::query_log::timeline::{Timeline, TimelineBucket};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The maximum number of points of the timeline.
const MAX_TIMELINE_BUCKETS: usize = 400;

/// The bytes of cached answers in a period: the peak, and the value at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ResidentBytes {
    /// The peak of all cached answers.
    pub cached_max: u64,
    /// All cached answers at the end of the period.
    #[serde(skip)]
    pub cached_last: u64,
    /// The peak of the answers of open views.
    pub open_max: u64,
    /// The answers of open views at the end of the period.
    #[serde(skip)]
    pub open_last: u64,
}

impl TimelineBucket for ResidentBytes {
    fn merge(&mut self, later: ResidentBytes) {
        *self = ResidentBytes {
            cached_max: self.cached_max.max(later.cached_max),
            open_max: self.open_max.max(later.open_max),
            ..later
        };
    }
}

/// The lifetimes of cached answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CacheResidency {
    /// The number of cached answers.
    pub answers: u64,
    /// The number of cached answers that were used again.
    pub answers_used: u64,
    /// The peak of cached bytes in all processes.
    pub peak_bytes: u64,
    /// The lifetimes of cached answers, in microseconds.
    pub lifetimes_us: CachedLifetimes,
}

/// The lifetimes of cached answers, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CachedLifetimes {
    /// Those of evicted answers, by cause of eviction.
    #[serde(flatten)]
    pub evicted: BTreeMap<LoggedEvictionReason, Histogram>,
    /// Those of answers that were cached until the process or the log ended.
    pub ended: Histogram,
}

impl CacheResidency {
    /// Records the removal of an answer; the cause is `None` at the end of its process or of the
    /// log.
    fn record_removal(
        &mut self,
        answer: ResidentAnswer,
        at: i64,
        reason: Option<LoggedEvictionReason>,
    ) {
        let life = u64::try_from(at.saturating_sub(answer.cached_at)).unwrap_or(0);
        self.answers += 1;
        self.answers_used += u64::from(answer.uses > 0);
        match reason {
            Some(reason) => self.lifetimes_us.evicted.entry(reason).or_default().add(life),
            None => self.lifetimes_us.ended.add(life),
        }
    }
}

/// A cached answer.
#[derive(Debug, Clone, Copy)]
struct ResidentAnswer {
    number: u64,
    bytes: u64,
    cached_at: i64,
    uses: u64,
}

/// A query of a process: the number of views that have it open, and its cached answer.
#[derive(Debug, Clone, Copy, Default)]
struct QueryResidency {
    open_views: u64,
    answer: Option<ResidentAnswer>,
}

impl QueryResidency {
    /// Returns the cached bytes, and the part of them that open views use.
    fn cached_and_open_bytes(&self) -> [u64; 2] {
        let bytes = self.answer.map_or(0, |answer| answer.bytes);
        [bytes, if self.open_views > 0 { bytes } else { 0 }]
    }
}

#[derive(Debug, Default)]
struct ProcessResidency {
    budget_bytes: u64,
    queries: HashMap<u32, QueryResidency>,
    /// The queries of answers and of views.
    answers: HashMap<u64, u32>,
    views: HashMap<u64, u32>,
}

/// The state while the log is read.
#[derive(Debug)]
pub(super) struct ResidencyTracker {
    processes: HashMap<u32, ProcessResidency>,
    /// The bytes of cached answers, and the part of them that open views use.
    cached_and_open_bytes: [u64; 2],
    residency: CacheResidency,
    timeline: Timeline<ResidentBytes>,
}

impl ResidencyTracker {
    pub(super) fn new() -> ResidencyTracker {
        ResidencyTracker {
            processes: HashMap::new(),
            cached_and_open_bytes: [0; 2],
            residency: CacheResidency::default(),
            timeline: Timeline::new(MAX_TIMELINE_BUCKETS),
        }
    }

    /// Starts a process; `budget` is `None` if the log does not name it.
    pub(super) fn start_process(&mut self, process: u32, budget: Option<u64>) {
        let budget = budget.unwrap_or(u64::MAX);
        self.processes.insert(
            process,
            ProcessResidency { budget_bytes: budget, ..ProcessResidency::default() },
        );
    }

    /// Records an answer.
    pub(super) fn add_answer(&mut self, process: u32, at: i64, number: u32, event: &AnswerEvent) {
        let Some(state) = self.processes.get_mut(&process) else { return };
        let query = state.queries.entry(number).or_default();
        let before = query.cached_and_open_bytes();
        match (event.origin, &mut query.answer) {
            (LoggedOrigin::Cache | LoggedOrigin::Shared, Some(answer))
                if answer.number == event.answer =>
            {
                answer.uses += 1;
            }
            (LoggedOrigin::Executed, _)
                if event.bytes > state.budget_bytes || state.budget_bytes == 0 => {}
            (origin, kept) => {
                // A used answer that was not seen to be cached was cached before the log began, or
                // came with a reset view.
                let uses = u64::from(origin != LoggedOrigin::Executed);
                let bytes = event.bytes.min(MAX_ANSWER_BYTES);
                let new = ResidentAnswer { number: event.answer, bytes, cached_at: at, uses };
                if let Some(old) = kept.replace(new) {
                    state.answers.remove(&old.number);
                    self.residency.record_removal(old, at, Some(LoggedEvictionReason::Other));
                }
                state.answers.insert(event.answer, number);
            }
        }
        let after = query.cached_and_open_bytes();
        self.record_bytes(at, before, after);
    }

    /// Records the opening of a view.
    pub(super) fn open_view(&mut self, process: u32, at: i64, view: u64, number: u32) {
        // An unclosed view may have had the same number.
        self.close_view(process, at, view);
        let Some(state) = self.processes.get_mut(&process) else { return };
        state.views.insert(view, number);
        let query = state.queries.entry(number).or_default();
        let before = query.cached_and_open_bytes();
        query.open_views += 1;
        let after = query.cached_and_open_bytes();
        self.record_bytes(at, before, after);
    }

    pub(super) fn close_view(&mut self, process: u32, at: i64, view: u64) {
        let Some(state) = self.processes.get_mut(&process) else { return };
        let Some(number) = state.views.remove(&view) else { return };
        let Some(query) = state.queries.get_mut(&number) else { return };
        let before = query.cached_and_open_bytes();
        query.open_views = query.open_views.saturating_sub(1);
        let after = query.cached_and_open_bytes();
        if query.open_views == 0 && query.answer.is_none() {
            state.queries.remove(&number);
        }
        self.record_bytes(at, before, after);
    }

    pub(super) fn remove_answer(
        &mut self,
        process: u32,
        at: i64,
        answer: u64,
        reason: LoggedEvictionReason,
    ) {
        let Some(state) = self.processes.get_mut(&process) else { return };
        let Some(number) = state.answers.remove(&answer) else { return };
        let Some(query) = state.queries.get_mut(&number) else { return };
        let before = query.cached_and_open_bytes();
        if let Some(answer) = query.answer.take() {
            self.residency.record_removal(answer, at, Some(reason));
        }
        if query.open_views == 0 {
            state.queries.remove(&number);
        }
        self.record_bytes(at, before, [0; 2]);
    }

    /// Removes the views and answers of a process that has ended.
    pub(super) fn end_process(&mut self, process: u32, at: i64) {
        let Some(ended) = self.processes.remove(&process) else { return };
        if ended.queries.is_empty() {
            return;
        }
        // Recorded once, so that the timeline does not depend on the order of the queries.
        let mut before = [0_u64; 2];
        for query in ended.queries.into_values() {
            for (sum, bytes) in before.iter_mut().zip(query.cached_and_open_bytes()) {
                *sum = sum.saturating_add(bytes);
            }
            if let Some(answer) = query.answer {
                self.residency.record_removal(answer, at, None);
            }
        }
        self.record_bytes(at, before, [0; 2]);
    }

    fn record_bytes(&mut self, at: i64, before: [u64; 2], after: [u64; 2]) {
        for (sum, (before, after)) in
            self.cached_and_open_bytes.iter_mut().zip(before.into_iter().zip(after))
        {
            *sum = sum.saturating_sub(before).saturating_add(after);
        }
        let [kept, open] = self.cached_and_open_bytes;
        self.residency.peak_bytes = self.residency.peak_bytes.max(kept);
        self.timeline.bucket_at(at).merge(ResidentBytes {
            cached_max: kept,
            cached_last: kept,
            open_max: open,
            open_last: open,
        });
    }

    pub(super) fn finish(mut self, at: i64) -> (CacheResidency, Timeline<ResidentBytes>) {
        let line = self.timeline.clone();
        let processes: Vec<u32> = self.processes.keys().copied().collect();
        for process in processes {
            self.end_process(process, at);
        }
        (self.residency, line)
    }
}

/// Larger sizes in a log are reduced to this, so that no sum overflows.
const MAX_ANSWER_BYTES: u64 = 1 << 40;
