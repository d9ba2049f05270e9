//! Simulates the answer cache with other budgets by a replay of the log.
//!
//! Each process has a cache of its own, and each budget is simulated in all of them while the log
//! is read. The rules are those of the cache: an executed answer is cached, and serves all equal
//! queries while it is cached, with a view open on it or not; the least recently used answer is
//! evicted first.
//!
//! The log records when an answer becomes stale while the log's own cache holds it. For an answer
//! that only the simulated cache holds this is unknown: the simulation evicts it at the first
//! change of its collection and kind, which may be too early. Figures for budgets above the log's
//! own are therefore lower bounds. Answers that the clock makes stale are treated in the same way;
//! without a record they stay.

use crate::query_log::histogram::Histogram;
use crate::query_log::interner::InternedQuery;
use crate::query_log::log_reader::{AnswerEvent, ChangeEvent, LoggedEvictionReason, LoggedOrigin};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The budgets that are always simulated.
pub const TRIAL_BUDGETS_BYTES: [u64; 8] =
    [0, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, UNLIMITED_BYTES];
/// No limit.
pub const UNLIMITED_BYTES: u64 = u64::MAX;

/// The result of the simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheReport {
    /// The number of answers.
    #[serde(rename = "askings")]
    pub answers: u64,
    /// The number of cache hits in the log, with a view open on the query or not.
    pub hits: u64,
    /// The share of the answers that are cache hits.
    #[serde(rename = "rate")]
    pub hit_rate: f64,
    /// The budgets that the log names, the smallest first.
    pub budgets: Vec<u64>,
    /// The replay with the budgets that the log names; `None` if it names none.
    pub recorded: Option<BudgetTrial>,
    /// The replays with trial budgets, the smallest first.
    pub trials: Vec<BudgetTrial>,
    /// The sizes of the answers.
    pub answer_bytes: Histogram,
}

/// A budget and the result of its simulation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BudgetTrial {
    /// The budget of each process in bytes; in [`CacheReport::recorded`] the largest one.
    #[serde(rename = "budget", serialize_with = "serialize_budget")]
    pub budget_bytes: u64,
    /// The number of cache hits.
    pub hits: u64,
    /// The share of the answers that are cache hits.
    #[serde(rename = "rate")]
    pub hit_rate: f64,
    /// The peak of cached bytes in all processes.
    pub peak_bytes: u64,
    /// The time saved in microseconds: for each hit, the time of the last execution of its query.
    pub saved_us: u64,
    /// Answers evicted because of a change.
    #[serde(rename = "stale")]
    pub stale_answers: u64,
    /// Answers evicted, or not cached, because of the budget.
    #[serde(rename = "dropped")]
    pub evicted_answers: u64,
}

/// Serialises an unlimited budget as null.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn serialize_budget<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    (*bytes != UNLIMITED_BYTES).then_some(*bytes).serialize(serializer)
}

impl CacheReport {
    /// Returns the smallest budget with at least 95 % of the hits of an unlimited cache.
    #[must_use]
    pub fn smallest_sufficient_budget(&self) -> Option<BudgetTrial> {
        let best = self.trials.last().map(|trial| trial.hits).filter(|hits| *hits > 0)?;
        self.trials
            .iter()
            .copied()
            .find(|trial| trial.hits.saturating_mul(20) >= best.saturating_mul(19))
    }
}

/// The scope of an answer: the changes that make it stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct AnswerScope {
    collection: Option<u32>,
    kind: Option<u32>,
}

/// The simulated cache of a process.
#[derive(Debug, Default)]
struct SimulatedCache {
    /// The answers in the order of their last use.
    answers_by_use: BTreeMap<u64, (u32, u64, AnswerScope)>,
    use_order: HashMap<u32, u64>,
    /// The answers that the log's own cache does not hold, by scope.
    untracked: HashMap<AnswerScope, BTreeSet<u64>>,
    bytes: u64,
    next_use: u64,
}

impl SimulatedCache {
    fn insert(&mut self, question: u32, bytes: u64, about: AnswerScope) {
        let place = self.next_use;
        self.next_use += 1;
        self.remove_query(question);
        self.answers_by_use.insert(place, (question, bytes, about));
        self.use_order.insert(question, place);
        self.untracked.entry(about).or_default().insert(place);
        self.bytes += bytes;
    }

    /// Marks an answer as the most recently used; returns whether it is cached.
    fn touch(&mut self, question: u32) -> bool {
        let place = self.use_order.get(&question).and_then(|place| self.answers_by_use.get(place));
        let Some(&(_, bytes, about)) = place else { return false };
        self.insert(question, bytes, about);
        true
    }

    fn remove_query(&mut self, question: u32) -> bool {
        let place = self.use_order.get(&question).copied();
        place.is_some_and(|place| self.remove_use(place))
    }

    /// Sets whether the log records when this answer becomes stale.
    fn set_tracked(&mut self, question: u32, watched: bool) {
        let Some(place) = self.use_order.get(&question) else { return };
        let Some((.., about)) = self.answers_by_use.get(place) else { return };
        if watched {
            if let Some(places) = self.untracked.get_mut(about) {
                places.remove(place);
                if places.is_empty() {
                    self.untracked.remove(about);
                }
            }
        } else {
            self.untracked.entry(*about).or_default().insert(*place);
        }
    }

    fn remove_use(&mut self, place: u64) -> bool {
        let Some((question, bytes, about)) = self.answers_by_use.remove(&place) else {
            return false;
        };
        self.use_order.remove(&question);
        self.bytes -= bytes;
        if let Some(places) = self.untracked.get_mut(&about) {
            places.remove(&place);
            if places.is_empty() {
                self.untracked.remove(&about);
            }
        }
        true
    }

    /// Evicts the untracked answers that a change may affect; returns their number.
    fn invalidate_untracked(&mut self, by: AnswerScope) -> u64 {
        let same = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        let all: Vec<AnswerScope> = match by {
            AnswerScope { collection: Some(_), kind: Some(_) } => {
                let collections = [by.collection, None].into_iter();
                let about =
                    |collection| [by.kind, None].map(|kind| AnswerScope { collection, kind });
                collections.flat_map(about).filter(|it| self.untracked.contains_key(it)).collect()
            }
            // A change without a collection or a kind may affect any scope.
            _ => {
                let fits = |it: &&AnswerScope| {
                    same(it.collection, by.collection) && same(it.kind, by.kind)
                };
                self.untracked.keys().filter(fits).copied().collect()
            }
        };
        let mut gone = 0;
        for about in all {
            for place in self.untracked.remove(&about).unwrap_or_default() {
                gone += u64::from(self.remove_use(place));
            }
        }
        gone
    }
}

/// The simulation of one budget in all processes.
#[derive(Debug, Default)]
struct CacheReplay {
    trial: BudgetTrial,
    /// Whether each process has the budget that the log names.
    uses_recorded_budget: bool,
    caches: HashMap<u32, SimulatedCache>,
    bytes: u64,
}

impl CacheReplay {
    fn with_cache<T>(
        &mut self,
        process: u32,
        f: impl FnOnce(&mut SimulatedCache, &mut BudgetTrial) -> T,
    ) -> T {
        let shelf = self.caches.entry(process).or_default();
        self.bytes -= shelf.bytes;
        let result = f(shelf, &mut self.trial);
        self.bytes += shelf.bytes;
        self.trial.peak_bytes = self.trial.peak_bytes.max(self.bytes);
        result
    }

    fn insert_within_budget(
        &mut self,
        process: u32,
        budget: u64,
        (question, bytes, about): (u32, u64, AnswerScope),
    ) {
        let budget = if self.uses_recorded_budget { budget } else { self.trial.budget_bytes };
        self.with_cache(process, |shelf, trial| {
            if bytes > budget || budget == 0 {
                trial.evicted_answers += 1;
                shelf.remove_query(question);
                return;
            }
            shelf.remove_query(question);
            while shelf.bytes + bytes > budget {
                let Some((&oldest, _)) = shelf.answers_by_use.first_key_value() else { break };
                shelf.remove_use(oldest);
                trial.evicted_answers += 1;
            }
            shelf.insert(question, bytes, about);
        });
    }
}

#[derive(Debug, Default)]
struct ReplayedProcess {
    /// `None` if the log does not name it.
    budget: Option<u64>,
    /// The answers in the log's own cache: queries by answer, and the reverse.
    queries_by_answer: HashMap<u64, u32>,
    answers_by_query: HashMap<u32, u64>,
    /// The queries of views.
    views: HashMap<u64, (u32, u64, AnswerScope)>,
}

/// The simulations while the log is read.
#[derive(Debug)]
pub(super) struct CacheReplays {
    replays: Vec<CacheReplay>,
    processes: HashMap<u32, ReplayedProcess>,
    /// The time of the last execution of each query.
    last_run_us: HashMap<u32, u64>,
    answers: u64,
    hits: u64,
    budgets: BTreeSet<u64>,
    answer_bytes: Histogram,
}

/// Larger sizes in a log are reduced to this, so that no sum overflows.
const MAX_ANSWER_BYTES: u64 = 1 << 40;

impl CacheReplays {
    /// Prepares the simulation of [`TRIAL_BUDGETS_BYTES`] and an additional budget.
    pub(super) fn new(budget: Option<u64>) -> CacheReplays {
        let mut budgets: Vec<u64> = TRIAL_BUDGETS_BYTES.into_iter().chain(budget).collect();
        budgets.sort_unstable();
        budgets.dedup();
        let play = |budget| CacheReplay {
            trial: BudgetTrial { budget_bytes: budget, ..BudgetTrial::default() },
            ..CacheReplay::default()
        };
        let own = CacheReplay { uses_recorded_budget: true, ..CacheReplay::default() };
        CacheReplays {
            replays: budgets.into_iter().map(play).chain([own]).collect(),
            processes: HashMap::new(),
            last_run_us: HashMap::new(),
            answers: 0,
            hits: 0,
            budgets: BTreeSet::new(),
            answer_bytes: Histogram::default(),
        }
    }

    pub(super) fn start_process(&mut self, process: u32, budget: Option<u64>) {
        self.budgets.extend(budget);
        self.processes.insert(process, ReplayedProcess { budget, ..ReplayedProcess::default() });
    }

    /// Replays an answer.
    pub(super) fn add_answer(&mut self, process: u32, ask: InternedQuery, asked: &AnswerEvent) {
        let question = ask.query;
        self.answers += 1;
        self.hits += u64::from(asked.from != LoggedOrigin::Run);
        if asked.from == LoggedOrigin::Run {
            self.last_run_us.insert(question, asked.us);
            self.answer_bytes.add(asked.bytes);
        }
        let Some(of) = self.processes.get_mut(&process) else { return };
        let saved = self.last_run_us.get(&question).copied().unwrap_or(0);
        let answer = (question, asked.bytes.min(MAX_ANSWER_BYTES), answer_scope(ask));
        let budget = of.budget.unwrap_or(0);
        for play in &mut self.replays {
            if play.with_cache(process, |shelf, _| shelf.touch(question)) {
                play.trial.hits += 1;
                play.trial.saved_us = play.trial.saved_us.saturating_add(saved);
            } else {
                play.insert_within_budget(process, budget, answer);
            }
        }
        if let Some(former) = of.answers_by_query.remove(&question) {
            of.queries_by_answer.remove(&former);
        }
        let fits = of.budget.is_none_or(|budget| budget > 0 && asked.bytes <= budget);
        let kept = asked.from != LoggedOrigin::Run || fits;
        if kept {
            of.queries_by_answer.insert(asked.answer, question);
            of.answers_by_query.insert(question, asked.answer);
        }
        self.set_tracked(process, question, kept);
    }

    fn set_tracked(&mut self, process: u32, question: u32, watched: bool) {
        for play in &mut self.replays {
            play.with_cache(process, |shelf, _| shelf.set_tracked(question, watched));
        }
    }

    pub(super) fn open_view(
        &mut self,
        process: u32,
        view: u64,
        ask: InternedQuery,
        asked: &AnswerEvent,
    ) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        of.views.insert(view, (ask.query, asked.bytes.min(MAX_ANSWER_BYTES), answer_scope(ask)));
    }

    pub(super) fn close_view(&mut self, process: u32, view: u64) {
        if let Some(of) = self.processes.get_mut(&process) {
            of.views.remove(&view);
        }
    }

    /// Replays the reset of a view, which executes its query again.
    pub(super) fn reset_view(&mut self, process: u32, view: u64) {
        let Some(of) = self.processes.get(&process) else { return };
        let Some(&answer) = of.views.get(&view) else { return };
        let (budget, watched) =
            (of.budget.unwrap_or(0), of.answers_by_query.contains_key(&answer.0));
        for play in &mut self.replays {
            if !play.with_cache(process, |shelf, _| shelf.touch(answer.0)) {
                play.insert_within_budget(process, budget, answer);
            }
        }
        self.set_tracked(process, answer.0, watched);
    }

    /// Replays an eviction from the log's own cache.
    pub(super) fn evict_answer(&mut self, process: u32, answer: u64, why: LoggedEvictionReason) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let Some(question) = of.queries_by_answer.remove(&answer) else { return };
        of.answers_by_query.remove(&question);
        if why != LoggedEvictionReason::Stale {
            return self.set_tracked(process, question, false);
        }
        for play in &mut self.replays {
            play.with_cache(process, |shelf, trial| {
                trial.stale_answers += u64::from(shelf.remove_query(question));
            });
        }
    }

    /// Replays a change of collections and kinds.
    pub(super) fn apply_change(
        &mut self,
        process: u32,
        change: &ChangeEvent,
        number: &mut dyn FnMut(&str) -> u32,
    ) {
        let mut of = |name: &Option<String>| name.as_ref().map(|name| number(name));
        for (collection, kind) in &change.of {
            let by = AnswerScope { collection: of(collection), kind: of(kind) };
            for play in &mut self.replays {
                play.with_cache(process, |shelf, trial| {
                    trial.stale_answers += shelf.invalidate_untracked(by);
                });
            }
        }
    }

    pub(super) fn end_process(&mut self, process: u32) {
        self.processes.remove(&process);
        for play in &mut self.replays {
            play.bytes -= play.caches.remove(&process).map_or(0, |shelf| shelf.bytes);
        }
    }

    pub(super) fn finish(self) -> CacheReport {
        let (recorded, trials): (Vec<CacheReplay>, Vec<CacheReplay>) =
            self.replays.into_iter().partition(|it| it.uses_recorded_budget);
        let max_budget = self.budgets.last().copied();
        let recorded = recorded.first().zip(max_budget);
        let hit_rate = |hits: u64| hits as f64 / self.answers.max(1) as f64;
        let trial = |replay: &CacheReplay| BudgetTrial {
            hit_rate: hit_rate(replay.trial.hits),
            ..replay.trial
        };
        CacheReport {
            answers: self.answers,
            hits: self.hits,
            hit_rate: hit_rate(self.hits),
            budgets: self.budgets.into_iter().collect(),
            recorded: recorded
                .map(|(replay, budget_bytes)| BudgetTrial { budget_bytes, ..trial(replay) }),
            trials: trials.iter().map(trial).collect(),
            answer_bytes: self.answer_bytes,
        }
    }
}

fn answer_scope(ask: InternedQuery) -> AnswerScope {
    AnswerScope { collection: ask.collection, kind: ask.kind }
}
