//! The time of queries, and the rows visited for each item returned.
//!
//! Covers executed queries only. Cached and shared answers cost a lookup and are counted apart.

use crate::query_log::histogram::Histogram;
use crate::query_log::interner::{InternedQuery, LogInterner, LoggedQuery};
use crate::query_log::log_reader::{AnswerEvent, LoggedOrigin};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The number of the most expensive queries that are reported.
const MAX_COSTLIEST_QUERIES: usize = 20;

/// The cost of answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostReport {
    /// All executed queries.
    pub executed: QueryWork,
    /// The times of cached and shared answers, in microseconds.
    pub cached_us: Histogram,
    /// By collection and backend, the most expensive first.
    pub collections: Vec<CollectionCost>,
    /// By backend.
    pub backends: Vec<CostGroup>,
    /// The queries with the largest total time.
    pub costliest: Vec<QueryCost>,
}

/// The work of executed queries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryWork {
    /// The execution times, in microseconds.
    pub us: Histogram,
    /// Rows visited.
    pub rows_read: u64,
    /// Items tested against the query.
    pub verified: u64,
    /// Items returned.
    pub returned: u64,
}

impl Serialize for QueryWork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut work = serializer.serialize_struct("QueryWork", 5)?;
        work.serialize_field("us", &self.us)?;
        work.serialize_field("rows_read", &self.rows_read)?;
        work.serialize_field("verified", &self.verified)?;
        work.serialize_field("returned", &self.returned)?;
        work.serialize_field("rows_per_item", &self.rows_per_item())?;
        work.end()
    }
}

impl QueryWork {
    fn add_answer(&mut self, answer: &AnswerEvent) {
        self.us.add(answer.us);
        self.rows_read = self.rows_read.saturating_add(answer.rows_read);
        self.verified = self.verified.saturating_add(answer.verified);
        self.returned = self.returned.saturating_add(answer.returned);
    }

    /// Returns the rows visited for each item returned; `None` if none was returned.
    #[must_use]
    pub fn rows_per_item(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.rows_read as f64 / self.returned as f64)
    }
}

/// The cost of the queries of a collection and backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectionCost {
    /// The collection; `None` for queries of all collections.
    pub collection: Option<String>,
    /// The cost.
    #[serde(flatten)]
    pub group: CostGroup,
}

impl CollectionCost {
    /// Returns whether both are costs of the same collection and backend.
    #[must_use]
    pub fn is_same_group(&self, other: &CollectionCost) -> bool {
        (&self.collection, &self.group.backend) == (&other.collection, &other.group.backend)
    }
}

/// The cost of the queries of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostGroup {
    /// The backend.
    pub backend: String,
    /// The slowest query.
    pub slowest_query: LoggedQuery,
    /// The work of the queries.
    #[serde(flatten)]
    pub work: QueryWork,
}

/// The cost of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueryCost {
    /// The query.
    #[serde(flatten)]
    pub query: LoggedQuery,
    /// The work of all its executions.
    #[serde(flatten)]
    pub work: QueryWork,
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
    pub(super) fn add_answer(&mut self, ask: InternedQuery, answer: &AnswerEvent) {
        if answer.origin != LoggedOrigin::Executed {
            self.cached_us.add(answer.us);
            return;
        }
        let add = |(work, slowest): &mut (QueryWork, u32)| {
            if work.us.count == 0 || answer.us > work.us.max {
                *slowest = ask.query;
            }
            work.add_answer(answer);
        };
        self.executed.add_answer(answer);
        add(self.collections.entry((ask.collection, ask.source)).or_default());
        add(self.sources.entry(ask.source).or_default());
        self.queries.entry(ask.query).or_default().add_answer(answer);
    }

    pub(super) fn finish(self, names: &LogInterner) -> CostReport {
        let group = |source, (work, slowest)| CostGroup {
            backend: names.text(source),
            work,
            slowest_query: names.query(slowest),
        };
        let collection = |collection: Option<u32>, source, work| CollectionCost {
            collection: collection.map(|name| names.text(name)),
            group: group(source, work),
        };
        let mut collections: Vec<_> = self.collections.into_iter().collect();
        collections.sort_by_key(|(key, (work, _))| (Reverse(work.us.sum), *key));
        let mut sources: Vec<_> = self.sources.into_iter().collect();
        sources.sort_by_key(|(key, (work, _))| (Reverse(work.us.sum), *key));
        let mut costliest: Vec<_> = self.queries.into_iter().collect();
        costliest.sort_by_key(|(query, work)| (Reverse(work.us.sum), *query));
        costliest.truncate(MAX_COSTLIEST_QUERIES);
        let costliest = costliest
            .into_iter()
            .map(|(query, work)| QueryCost { query: names.query(query), work });
        CostReport {
            executed: self.executed,
            cached_us: self.cached_us,
            collections: collections
                .into_iter()
                .map(|((name, source), work)| collection(name, source, work))
                .collect(),
            backends: sources.into_iter().map(|(source, work)| group(source, work)).collect(),
            costliest: costliest.collect(),
        }
    }
}
