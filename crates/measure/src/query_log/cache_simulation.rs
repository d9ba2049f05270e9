//! Is the cache worth its memory? The log is played again against other budgets.
//!
//! Each process has a cache of its own, and each budget is tried in all of them, while the log is
//! read. The rules are those of the cache itself: an answer that is worked out is kept, whoever
//! asked; what is asked while it is kept is answered from there, whether a view has it open or not;
//! when room is needed, what was used longest ago goes first.
//!
//! When an answer goes stale is told by the log as long as the log's own cache keeps it. Of an
//! answer that only the one that is tried would keep, nobody can know: it goes at the first change
//! of its collection and its kind, which is sooner than it would. So a budget above the log's own
//! gives what is said here at least. When the clock makes an answer stale is told in the same way,
//! or not at all.

use crate::query_log::histogram::Histogram;
use crate::query_log::interner::InternedQuery;
use crate::query_log::log_reader::{AnswerEvent, ChangeEvent, LoggedEvictionReason, LoggedOrigin};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The budgets that are always tried.
pub const TRIAL_BUDGETS_BYTES: [u64; 8] =
    [0, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, UNLIMITED_BYTES];
/// No limit.
pub const UNLIMITED_BYTES: u64 = u64::MAX;

/// The result of the simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheReport {
    /// All answers.
    pub answers: u64,
    /// Those of them that had been kept, for a view that has them open or for later.
    pub hits: u64,
    /// The budgets that the log names, smallest first.
    pub budgets: Vec<u64>,
    /// The log played again with these budgets; `None` where it names none.
    pub recorded: Option<BudgetTrial>,
    /// The log played again against budgets, smallest first.
    pub trials: Vec<BudgetTrial>,
    /// The sizes of the answers.
    pub answer_bytes: Histogram,
}

/// A budget, and what it would have given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetTrial {
    /// In bytes, for each process; of `recorded` the greatest.
    pub budget_bytes: u64,
    /// Answers that had been kept.
    pub hits: u64,
    /// The most bytes that were kept at once, in all processes.
    pub peak_bytes: u64,
    /// Time saved, in microseconds: what the same question took when it was worked out last.
    pub saved_us: u64,
    /// Answers that went because of a change.
    pub stale_answers: u64,
    /// Answers that went, or were not kept, because of the budget.
    pub evicted_answers: u64,
}

impl CacheReport {
    /// The share of the answers that had been kept.
    #[must_use]
    pub fn hit_rate(&self, hits: u64) -> f64 {
        hits as f64 / self.answers.max(1) as f64
    }

    /// The smallest budget that would have given 19 of 20 of what no limit gives.
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

/// The answers that a process keeps.
#[derive(Debug, Default)]
struct SimulatedCache {
    /// By when they were used last.
    answers_by_use: BTreeMap<u64, (u32, u64, AnswerScope)>,
    use_order: HashMap<u32, u64>,
    /// Those that the log's own cache does not have, by what they are about.
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

    /// Puts an answer behind all others, if it is there.
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

    /// Those that a change may make wrong go, where the log does not tell: how many.
    fn invalidate_untracked(&mut self, by: AnswerScope) -> u64 {
        let same = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        let all: Vec<AnswerScope> = match by {
            AnswerScope { collection: Some(_), kind: Some(_) } => {
                let collections = [by.collection, None].into_iter();
                let about =
                    |collection| [by.kind, None].map(|kind| AnswerScope { collection, kind });
                collections.flat_map(about).filter(|it| self.untracked.contains_key(it)).collect()
            }
            // Whoever changes everything is looked for everywhere.
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

/// One budget, in all processes.
#[derive(Debug, Default)]
struct CacheReplay {
    trial: BudgetTrial,
    /// The budget is each process's own.
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
    /// `None`: the log does not say it.
    budget: Option<u64>,
    /// The answers in the log's own cache: queries by answer, and the reverse.
    queries_by_answer: HashMap<u64, u32>,
    answers_by_query: HashMap<u32, u64>,
    /// The questions of views.
    views: HashMap<u64, (u32, u64, AnswerScope)>,
}

/// The caches while the log is read.
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

/// No answer is said to be larger, so that no sum of them overflows.
const MAX_ANSWER_BYTES: u64 = 1 << 40;

impl CacheReplays {
    /// Tries the usual budgets, and one more.
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

    /// A question was answered.
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

    /// A view had to be given its answer anew, for which it was asked again.
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

    /// The log's own cache gave an answer up.
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

    /// `of`: the collections and kinds that changed.
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
        let (own, tried): (Vec<CacheReplay>, Vec<CacheReplay>) =
            self.replays.into_iter().partition(|it| it.uses_recorded_budget);
        let greatest = self.budgets.last().copied();
        let recorded = own.first().zip(greatest);
        CacheReport {
            answers: self.answers,
            hits: self.hits,
            budgets: self.budgets.into_iter().collect(),
            recorded: recorded
                .map(|(play, budget)| BudgetTrial { budget_bytes: budget, ..play.trial }),
            trials: tried.into_iter().map(|play| play.trial).collect(),
            answer_bytes: self.answer_bytes,
        }
    }
}

fn answer_scope(ask: InternedQuery) -> AnswerScope {
    AnswerScope { collection: ask.collection, kind: ask.kind }
}
