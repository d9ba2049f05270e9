//! Which questions are asked, and how often: the first of the questions put to a log.

use crate::query_log::cache_residency::ResidentBytes;
use crate::query_log::interner::{InternedQuery, LogInterner, LoggedQuery};
use crate::query_log::log_reader::LoggedOrigin;
use crate::query_log::timeline::{Timeline, TimelineBucket};
use std::collections::BTreeMap;

/// So many of the most asked are named.
const MAX_FREQUENT_QUERIES: usize = 20;
/// So many bars at most for the time of the log.
const MAX_TIMELINE_BUCKETS: usize = 100;

/// Answers by where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OriginCounts {
    /// Worked out.
    pub run: u64,
    /// Kept of a question that nobody had open.
    pub cache: u64,
    /// Of an open view.
    pub shared: u64,
}

impl OriginCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.run + self.cache + self.shared
    }

    pub(super) fn add(&mut self, from: LoggedOrigin) {
        match from {
            LoggedOrigin::Run => self.run += 1,
            LoggedOrigin::Cache => self.cache += 1,
            LoggedOrigin::Shared => self.shared += 1,
        }
    }
}

impl TimelineBucket for OriginCounts {
    fn merge(&mut self, later: OriginCounts) {
        self.run += later.run;
        self.cache += later.cache;
        self.shared += later.shared;
    }
}

/// The repetition of queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReuseReport {
    /// All answers.
    pub answers: OriginCounts,
    /// How many different questions there were.
    pub query_count: u64,
    /// How many of them were asked more than once.
    pub repeated_query_count: u64,
    /// Answers to questions that had been asked before.
    pub repeat_answers: u64,
    /// The most asked, the most asked first.
    pub most_frequent: Vec<FrequentQuery>,
    /// How many questions were asked how often.
    pub repeat_buckets: Vec<RepeatBucket>,
    /// Who asked how much, most first.
    pub clients: Vec<(String, OriginCounts)>,
    /// Answers over time.
    pub answers_over_time: Timeline<OriginCounts>,
    /// The memory of cached answers over time.
    pub resident_bytes: Timeline<ResidentBytes>,
}

/// A question that was asked often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrequentQuery {
    /// Which.
    pub query: LoggedQuery,
    /// How often.
    pub answers: OriginCounts,
    /// How long answers took, all together, in microseconds.
    pub us: u64,
}

/// A step of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatBucket {
    /// Asked so often at least,
    pub min: u64,
    /// and so often at most.
    pub max: u64,
    /// How many questions.
    pub queries: u64,
    /// How many answers they had.
    pub answers: u64,
}

/// Counts while the log is read.
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
        let asked = |place: &usize| self.queries.get(*place).map_or(0, |(it, _)| it.total());
        let mut order: Vec<usize> = (0..self.queries.len()).collect();
        // Of those that were asked as often, the first one first: texts say nothing, so that they
        // can be replaced.
        order.sort_by_key(|place| (std::cmp::Reverse(asked(place)), *place));
        let often = |place: &usize| {
            let (answers, us) = self.queries.get(*place).copied().unwrap_or_default();
            FrequentQuery { query: names.query(*place as u32), answers, us }
        };
        let mut clients: Vec<(u32, OriginCounts)> = self.clients.into_iter().collect();
        clients.sort_by_key(|(client, answers)| (std::cmp::Reverse(answers.total()), *client));
        ReuseReport {
            answers: self.answers,
            query_count: order.len() as u64,
            repeated_query_count: order.iter().filter(|place| asked(place) > 1).count() as u64,
            repeat_answers: self.answers.total() - order.len() as u64,
            most_frequent: order.iter().take(MAX_FREQUENT_QUERIES).map(often).collect(),
            repeat_buckets: repeat_buckets(order.iter().map(asked)),
            clients: clients.into_iter().map(|(client, it)| (names.text(client), it)).collect(),
            answers_over_time: self.answers_over_time,
            resident_bytes: held,
        }
    }
}

/// Once, twice, 3 to 4 times, 5 to 8, 9 to 16 ...
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
