//! The time of queries, and the rows visited for each item returned.
//!
//! Covers executed queries only. Cached and shared answers cost a lookup and are counted apart.

use crate::query_log::histogram::Histogram;
use crate::query_log::interner::{InternedQuery, LogInterner, LoggedQuery};
use crate::query_log::log_reader::{AnswerEvent, LoggedOrigin};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The number of the most expensive queries that are reported.
const MAX_COSTLIEST_QUERIES: usize = 20;

/// The cost of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostReport {
    /// All executed queries.
    pub executed: QueryWork,
    /// The times of cached and shared answers, in microseconds.
    pub cached_us: Histogram,
    /// By collection and type of source, the most expensive first.
    pub collections: Vec<CostGroup>,
    /// By type of source.
    pub sources: Vec<CostGroup>,
    /// The queries with the largest total time.
    pub costliest: Vec<(LoggedQuery, QueryWork)>,
}

/// The work of executed queries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryWork {
    /// The execution times, in microseconds.
    pub us: Histogram,
    /// Rows visited.
    pub scanned: u64,
    /// Items tested against the query.
    pub tested: u64,
    /// Items returned.
    pub returned: u64,
}

impl QueryWork {
    fn add_answer(&mut self, asked: &AnswerEvent) {
        self.us.add(asked.us);
        self.scanned = self.scanned.saturating_add(asked.scanned);
        self.tested = self.tested.saturating_add(asked.tested);
        self.returned = self.returned.saturating_add(asked.returned);
    }

    /// Returns the rows visited for each item returned; `None` if none was returned.
    #[must_use]
    pub fn rows_per_item(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.scanned as f64 / self.returned as f64)
    }
}

/// The queries of a collection or of a type of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostGroup {
    /// The collection; `None` for queries of all collections, and in [`CostReport::sources`].
    pub collection: Option<String>,
    /// The type of source.
    pub source: String,
    /// The work of the queries.
    pub work: QueryWork,
    /// The slowest query.
    pub slowest_query: LoggedQuery,
}

/// The state while the log is read: each group with its slowest query.
#[derive(Debug, Default)]
pub(super) struct CostAccumulator {
    executed: QueryWork,
    cached_us: Histogram,
    collections: HashMap<(Option<u32>, u32), (QueryWork, u32)>,
    sources: HashMap<u32, (QueryWork, u32)>,
    queries: HashMap<u32, QueryWork>,
}

impl CostAccumulator {
    pub(super) fn add_answer(&mut self, ask: InternedQuery, asked: &AnswerEvent) {
        if asked.from != LoggedOrigin::Run {
            self.cached_us.add(asked.us);
            return;
        }
        let add = |(work, worst): &mut (QueryWork, u32)| {
            if work.us.count == 0 || asked.us > work.us.max {
                *worst = ask.query;
            }
            work.add_answer(asked);
        };
        self.executed.add_answer(asked);
        add(self.collections.entry((ask.collection, ask.source)).or_default());
        add(self.sources.entry(ask.source).or_default());
        self.queries.entry(ask.query).or_default().add_answer(asked);
    }

    pub(super) fn finish(self, names: &LogInterner) -> CostReport {
        let group = |collection: Option<u32>, source, (work, worst)| CostGroup {
            collection: collection.map(|name| names.text(name)),
            source: names.text(source),
            work,
            slowest_query: names.query(worst),
        };
        let mut collections: Vec<_> = self.collections.into_iter().collect();
        collections.sort_by_key(|(of, (work, _))| (Reverse(work.us.sum), *of));
        let mut sources: Vec<_> = self.sources.into_iter().collect();
        sources.sort_by_key(|(of, (work, _))| (Reverse(work.us.sum), *of));
        let mut dearest: Vec<_> = self.queries.into_iter().collect();
        dearest.sort_by_key(|(of, work)| (Reverse(work.us.sum), *of));
        dearest.truncate(MAX_COSTLIEST_QUERIES);
        let dearest = dearest.into_iter().map(|(of, work)| (names.query(of), work));
        CostReport {
            executed: self.executed,
            cached_us: self.cached_us,
            collections: collections.into_iter().map(|((c, s), it)| group(c, s, it)).collect(),
            sources: sources.into_iter().map(|(s, it)| group(None, s, it)).collect(),
            costliest: dearest.collect(),
        }
    }
}
