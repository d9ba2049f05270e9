//! Simulates the answer cache with other budgets by a replay of the log.
//!
//! Each process has a cache of its own, and each budget is simulated in all of them while the log
//! is read. The rules are those of the cache: an executed answer is cached, and serves all equal
//! queries while it is cached, with a view open on it or not; the least recently used answer is
//! evicted first.
//!
//! The log records when an answer becomes stale while the log's own cache holds it. For an answer
//! that only the simulated cache holds, the log does not record this: the simulation evicts it at
//! the first change of its collection and kind, which may be too early. Figures for budgets above
//! the log's own are therefore lower bounds. Answers that the clock makes stale are treated in the
//! same way; without a record they stay.

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
    pub answers: u64,
    /// The number of cache hits in the log, with a view open on the query or not.
    pub hits: u64,
    /// The share of the answers that are cache hits.
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
    #[serde(serialize_with = "serialize_budget")]
    pub budget_bytes: u64,
    /// The number of cache hits.
    pub hits: u64,
    /// The share of the answers that are cache hits.
    pub hit_rate: f64,
    /// The peak of cached bytes in all processes.
    pub peak_bytes: u64,
    /// The time saved in microseconds: for each hit, the time of the last execution of its query.
    pub saved_us: u64,
    /// Answers evicted because of a change.
    pub stale_answers: u64,
    /// Answers evicted, or not cached, because of the budget.
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
    fn insert(&mut self, query: u32, bytes: u64, scope: AnswerScope) {
        let place = self.next_use;
        self.next_use += 1;
        self.remove_query(query);
        self.answers_by_use.insert(place, (query, bytes, scope));
        self.use_order.insert(query, place);
        self.untracked.entry(scope).or_default().insert(place);
        self.bytes += bytes;
    }

    /// Marks an answer as the most recently used; returns whether it is cached.
    fn touch(&mut self, query: u32) -> bool {
        let place = self.use_order.get(&query).and_then(|place| self.answers_by_use.get(place));
        let Some(&(_, bytes, scope)) = place else { return false };
        self.insert(query, bytes, scope);
        true
    }

    fn remove_query(&mut self, query: u32) -> bool {
        let place = self.use_order.get(&query).copied();
        place.is_some_and(|place| self.remove_use(place))
    }

    /// Sets whether the log records when this answer becomes stale.
    fn set_tracked(&mut self, query: u32, is_tracked: bool) {
        let Some(place) = self.use_order.get(&query) else { return };
        let Some((.., scope)) = self.answers_by_use.get(place) else { return };
        if is_tracked {
            if let Some(places) = self.untracked.get_mut(scope) {
                places.remove(place);
                if places.is_empty() {
                    self.untracked.remove(scope);
                }
            }
        } else {
            self.untracked.entry(*scope).or_default().insert(*place);
        }
    }

    fn remove_use(&mut self, place: u64) -> bool {
        let Some((query, bytes, scope)) = self.answers_by_use.remove(&place) else {
            return false;
        };
        self.use_order.remove(&query);
        self.bytes -= bytes;
        if let Some(places) = self.untracked.get_mut(&scope) {
            places.remove(&place);
            if places.is_empty() {
                self.untracked.remove(&scope);
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
                let scope =
                    |collection| [by.kind, None].map(|kind| AnswerScope { collection, kind });
                collections.flat_map(scope).filter(|it| self.untracked.contains_key(it)).collect()
            }
            // A change without a collection or a kind may affect any scope.
            _ => {
                let fits = |it: &&AnswerScope| {
                    same(it.collection, by.collection) && same(it.kind, by.kind)
                };
                self.untracked.keys().filter(fits).copied().collect()
            }
        };
        let mut evicted = 0;
        for scope in all {
            for place in self.untracked.remove(&scope).unwrap_or_default() {
                evicted += u64::from(self.remove_use(place));
            }
        }
        evicted
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
        let cache = self.caches.entry(process).or_default();
        self.bytes -= cache.bytes;
        let result = f(cache, &mut self.trial);
        self.bytes += cache.bytes;
        self.trial.peak_bytes = self.trial.peak_bytes.max(self.bytes);
        result
    }

    fn insert_within_budget(
        &mut self,
        process: u32,
        budget: u64,
        (query, bytes, scope): (u32, u64, AnswerScope),
    ) {
        let budget = if self.uses_recorded_budget { budget } else { self.trial.budget_bytes };
        self.with_cache(process, |cache, trial| {
            if bytes > budget || budget == 0 {
                trial.evicted_answers += 1;
                cache.remove_query(query);
                return;
            }
            cache.remove_query(query);
            while cache.bytes + bytes > budget {
                let Some((&oldest, _)) = cache.answers_by_use.first_key_value() else { break };
                cache.remove_use(oldest);
                trial.evicted_answers += 1;
            }
            cache.insert(query, bytes, scope);
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
        let replay = |budget| CacheReplay {
            trial: BudgetTrial { budget_bytes: budget, ..BudgetTrial::default() },
            ..CacheReplay::default()
        };
        let recorded = CacheReplay { uses_recorded_budget: true, ..CacheReplay::default() };
        CacheReplays {
            replays: budgets.into_iter().map(replay).chain([recorded]).collect(),
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
    pub(super) fn add_answer(&mut self, process: u32, ask: InternedQuery, event: &AnswerEvent) {
        let query = ask.query;
        self.answers += 1;
        self.hits += u64::from(event.origin != LoggedOrigin::Executed);
        if event.origin == LoggedOrigin::Executed {
            self.last_run_us.insert(query, event.us);
            self.answer_bytes.add(event.bytes);
        }
        let Some(state) = self.processes.get_mut(&process) else { return };
        let saved = self.last_run_us.get(&query).copied().unwrap_or(0);
        let answer = (query, event.bytes.min(MAX_ANSWER_BYTES), answer_scope(ask));
        let budget = state.budget.unwrap_or(0);
        for replay in &mut self.replays {
            if replay.with_cache(process, |cache, _| cache.touch(query)) {
                replay.trial.hits += 1;
                replay.trial.saved_us = replay.trial.saved_us.saturating_add(saved);
            } else {
                replay.insert_within_budget(process, budget, answer);
            }
        }
        if let Some(former) = state.answers_by_query.remove(&query) {
            state.queries_by_answer.remove(&former);
        }
        let fits = state.budget.is_none_or(|budget| budget > 0 && event.bytes <= budget);
        let kept = event.origin != LoggedOrigin::Executed || fits;
        if kept {
            state.queries_by_answer.insert(event.answer, query);
            state.answers_by_query.insert(query, event.answer);
        }
        self.set_tracked(process, query, kept);
    }

    fn set_tracked(&mut self, process: u32, query: u32, is_tracked: bool) {
        for replay in &mut self.replays {
            replay.with_cache(process, |cache, _| cache.set_tracked(query, is_tracked));
        }
    }

    pub(super) fn open_view(
        &mut self,
        process: u32,
        view: u64,
        ask: InternedQuery,
        answer: &AnswerEvent,
    ) {
        let Some(state) = self.processes.get_mut(&process) else { return };
        state
            .views
            .insert(view, (ask.query, answer.bytes.min(MAX_ANSWER_BYTES), answer_scope(ask)));
    }

    pub(super) fn close_view(&mut self, process: u32, view: u64) {
        if let Some(state) = self.processes.get_mut(&process) {
            state.views.remove(&view);
        }
    }

    /// Replays the reset state a view, which executes its query again.
    pub(super) fn reset_view(&mut self, process: u32, view: u64) {
        let Some(state) = self.processes.get(&process) else { return };
        let Some(&answer) = state.views.get(&view) else { return };
        let (budget, is_tracked) =
            (state.budget.unwrap_or(0), state.answers_by_query.contains_key(&answer.0));
        for replay in &mut self.replays {
            if !replay.with_cache(process, |cache, _| cache.touch(answer.0)) {
                replay.insert_within_budget(process, budget, answer);
            }
        }
        self.set_tracked(process, answer.0, is_tracked);
    }

    /// Replays an eviction from the log's own cache.
    pub(super) fn evict_answer(&mut self, process: u32, answer: u64, reason: LoggedEvictionReason) {
        let Some(state) = self.processes.get_mut(&process) else { return };
        let Some(query) = state.queries_by_answer.remove(&answer) else { return };
        state.answers_by_query.remove(&query);
        if reason != LoggedEvictionReason::Stale {
            return self.set_tracked(process, query, false);
        }
        for replay in &mut self.replays {
            replay.with_cache(process, |cache, trial| {
                trial.stale_answers += u64::from(cache.remove_query(query));
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
        let mut number_of = |name: &Option<String>| name.as_ref().map(|name| number(name));
        for (collection, kind) in &change.kinds {
            let by = AnswerScope { collection: number_of(collection), kind: number_of(kind) };
            for replay in &mut self.replays {
                replay.with_cache(process, |cache, trial| {
                    trial.stale_answers += cache.invalidate_untracked(by);
                });
            }
        }
    }

    pub(super) fn end_process(&mut self, process: u32) {
        self.processes.remove(&process);
        for replay in &mut self.replays {
            replay.bytes -= replay.caches.remove(&process).map_or(0, |cache| cache.bytes);
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
