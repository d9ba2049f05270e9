//! The repetition of queries: the first part of the analysis.

use crate::query_log::cache_residency::ResidentBytes;
use crate::query_log::interner::{InternedQuery, LogInterner, LoggedQuery};
use crate::query_log::log_reader::LoggedOrigin;
use crate::query_log::timeline::{Timeline, TimelineBucket, TimelineEntry};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The number of the most frequent queries that are reported.
const MAX_FREQUENT_QUERIES: usize = 20;
/// The maximum number of bars of the timeline.
const MAX_TIMELINE_BUCKETS: usize = 100;

/// The number of answers by origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OriginCounts {
    /// Executed queries.
    pub executed: u64,
    /// Cached answers to queries that no view had open.
    pub cache: u64,
    /// Cached answers to queries that a view had open.
    pub shared: u64,
}

impl OriginCounts {
    /// Returns the number of all answers.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.executed + self.cache + self.shared
    }

    pub(super) fn add(&mut self, from: LoggedOrigin) {
        match from {
            LoggedOrigin::Executed => self.executed += 1,
            LoggedOrigin::Cache => self.cache += 1,
            LoggedOrigin::Shared => self.shared += 1,
        }
    }
}

impl Serialize for OriginCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut counts = serializer.serialize_struct("OriginCounts", 4)?;
        counts.serialize_field("answers", &self.total())?;
        counts.serialize_field("executed", &self.executed)?;
        counts.serialize_field("cache", &self.cache)?;
        counts.serialize_field("shared", &self.shared)?;
        counts.end()
    }
}

impl TimelineBucket for OriginCounts {
    fn merge(&mut self, later: OriginCounts) {
        self.executed += later.executed;
        self.cache += later.cache;
        self.shared += later.shared;
    }
}

/// The repetition of queries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReuseReport {
    /// All answers.
    #[serde(flatten)]
    pub answers: OriginCounts,
    /// The number of different queries.
    pub query_count: u64,
    /// The number of queries that ran more than once.
    pub repeated_query_count: u64,
    /// The number of answers that repeat an earlier query.
    pub repeat_answers: u64,
    /// The most frequent queries, in descending order.
    pub most_frequent: Vec<FrequentQuery>,
    /// The distribution of repetitions.
    pub repeat_buckets: Vec<RepeatBucket>,
    /// The answers of each client, in descending order.
    pub clients: Vec<ClientAnswers>,
    /// Answers over time.
    #[serde(flatten, serialize_with = "serialize_answers_over_time")]
    pub answers_over_time: Timeline<OriginCounts>,
    /// The memory of cached answers over time.
    #[serde(flatten, serialize_with = "serialize_resident_bytes")]
    pub resident_bytes: Timeline<ResidentBytes>,
}

fn serialize_answers_over_time<S: Serializer>(
    timeline: &Timeline<OriginCounts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct AnswersOverTime<'a> {
        answers_over_time: Vec<TimelineEntry<'a, OriginCounts>>,
        answers_bucket_us: i64,
    }
    AnswersOverTime {
        answers_over_time: timeline.entries(),
        answers_bucket_us: timeline.bucket_width_micros,
    }
    .serialize(serializer)
}

fn serialize_resident_bytes<S: Serializer>(
    timeline: &Timeline<ResidentBytes>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct MemoryOverTime<'a> {
        resident_bytes: Vec<TimelineEntry<'a, ResidentBytes>>,
        resident_bucket_us: i64,
    }
    MemoryOverTime {
        resident_bytes: timeline.entries(),
        resident_bucket_us: timeline.bucket_width_micros,
    }
    .serialize(serializer)
}

/// The answers of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientAnswers {
    /// The name of the client.
    pub client: String,
    /// Its answers.
    #[serde(flatten)]
    pub answers: OriginCounts,
}

/// A frequent query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrequentQuery {
    /// The query.
    #[serde(flatten)]
    pub query: LoggedQuery,
    /// Its answers.
    #[serde(flatten)]
    pub answers: OriginCounts,
    /// The total time of the answers, in microseconds.
    pub us: u64,
}

/// A bucket of the distribution of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RepeatBucket {
    /// The minimum number of times that a query ran.
    pub min: u64,
    /// The maximum number of times.
    pub max: u64,
    /// The number of queries.
    pub queries: u64,
    /// The number of their answers.
    pub answers: u64,
}

/// The state while the log is read.
#[derive(Debug)]
pub(super) struct ReuseAccumulator {
    answers: OriginCounts,
    queries: Vec<(OriginCounts, u64)>,
    clients: BTreeMap<u32, OriginCounts>,
    answers_over_time: Timeline<OriginCounts>,
}

impl ReuseAccumulator {
    pub(super) fn new() -> ReuseAccumulator {
        ReuseAccumulator {
            answers: OriginCounts::default(),
            queries: Vec::new(),
            clients: BTreeMap::new(),
            answers_over_time: Timeline::new(MAX_TIMELINE_BUCKETS),
        }
    }

    pub(super) fn add_answer(&mut self, at: i64, ask: InternedQuery, from: LoggedOrigin, us: u64) {
        self.answers.add(from);
        self.clients.entry(ask.client).or_default().add(from);
        self.answers_over_time.bucket_at(at).add(from);
        let place = ask.query as usize;
        if self.queries.len() <= place {
            self.queries.resize(place + 1, (OriginCounts::default(), 0));
        }
        if let Some((origins, sum)) = self.queries.get_mut(place) {
            origins.add(from);
            *sum = sum.saturating_add(us);
        }
    }

    pub(super) fn finish(self, names: &LogInterner, held: Timeline<ResidentBytes>) -> ReuseReport {
        let answer_count = |query: &usize| self.queries.get(*query).map_or(0, |(it, _)| it.total());
        // A view that asks for changes only gives its query no answer.
        let mut order: Vec<usize> =
            (0..self.queries.len()).filter(|query| answer_count(query) > 0).collect();
        // Ties are ordered by first occurrence, not by text, so that an anonymous log gives the
        // same order.
        order.sort_by_key(|query| (std::cmp::Reverse(answer_count(query)), *query));
        let frequent = |query: &usize| {
            let (answers, us) = self.queries.get(*query).copied().unwrap_or_default();
            FrequentQuery { query: names.query(*query as u32), answers, us }
        };
        let mut clients: Vec<(u32, OriginCounts)> = self.clients.into_iter().collect();
        clients.sort_by_key(|(client, answers)| (std::cmp::Reverse(answers.total()), *client));
        ReuseReport {
            answers: self.answers,
            query_count: order.len() as u64,
            repeated_query_count: order.iter().filter(|query| answer_count(query) > 1).count()
                as u64,
            repeat_answers: self.answers.total() - order.len() as u64,
            most_frequent: order.iter().take(MAX_FREQUENT_QUERIES).map(frequent).collect(),
            repeat_buckets: repeat_buckets(order.iter().map(answer_count)),
            clients: clients
                .into_iter()
                .map(|(client, answers)| ClientAnswers { client: names.text(client), answers })
                .collect(),
            answers_over_time: self.answers_over_time,
            resident_bytes: held,
        }
    }
}

/// Groups queries by the number of times they ran: once, twice, 3 to 4 times, 5 to 8, 9 to
/// 16 ...
fn repeat_buckets(asked: impl Iterator<Item = u64>) -> Vec<RepeatBucket> {
    let mut steps: BTreeMap<u64, RepeatBucket> = BTreeMap::new();
    for answers in asked {
        let most = answers.checked_next_power_of_two().unwrap_or(u64::MAX);
        let least = if most <= 2 { most } else { most / 2 + 1 };
        let empty = RepeatBucket { min: least, max: most, queries: 0, answers: 0 };
        let step = steps.entry(most).or_insert(empty);
        step.queries += 1;
        step.answers += answers;
    }
    steps.into_values().collect()
}
