//! Is the cache worth its memory? The log is played again against other budgets.
//!
//! Each process has a cache of its own, and each budget is tried in all of them, while the log is read. The rules are
//! those of the cache itself: an answer that is worked out is kept, whoever asked; what is asked while it is kept is
//! answered from there, whether a view has it open or not; when room is needed, what was used longest ago goes first.
//!
//! When an answer goes stale is told by the log as long as the log's own cache keeps it. Of an answer that only the one
//! that is tried would keep, nobody can know: it goes at the first change of its collection and its kind, which is
//! sooner than it would. So a budget above the log's own gives what is said here at least. When the clock makes an
//! answer stale is told in the same way, or not at all.

use crate::queries::log::{Asked, Change, From, Why};
use crate::queries::names::Ask;
use crate::queries::spread::Spread;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The budgets that are always tried.
pub const BUDGETS: [u64; 8] =
    [0, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, UNLIMITED];
/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// What was found out about the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Worth {
    /// All answers.
    pub askings: u64,
    /// Those of them that had been kept, for a view that has them open or for later.
    pub hits: u64,
    /// The budgets that the log names, smallest first.
    pub budgets: Vec<u64>,
    /// The log played again with these budgets; `None` where it names none.
    pub recorded: Option<Trial>,
    /// The log played again against budgets, smallest first.
    pub trials: Vec<Trial>,
    /// The sizes of the answers.
    pub bytes: Spread,
}

/// A budget, and what it would have given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trial {
    /// In bytes, for each process; of [`Worth::recorded`] the greatest.
    pub budget: u64,
    /// Answers that had been kept.
    pub hits: u64,
    /// The most bytes that were kept at once, in all processes.
    pub peak: u64,
    /// Time saved, in microseconds: what the same question took when it was worked out last.
    pub saved_us: u64,
    /// Answers that went because of a change.
    pub stale: u64,
    /// Answers that went, or were not kept, because of the budget.
    pub dropped: u64,
}

impl Worth {
    /// The share of the answers that had been kept.
    #[must_use]
    pub fn rate(&self, hits: u64) -> f64 {
        hits as f64 / self.askings.max(1) as f64
    }

    /// The smallest budget that would have given 19 of 20 of what no limit gives.
    #[must_use]
    pub fn enough(&self) -> Option<Trial> {
        let best = self.trials.last().map(|trial| trial.hits).filter(|hits| *hits > 0)?;
        self.trials
            .iter()
            .copied()
            .find(|trial| trial.hits.saturating_mul(20) >= best.saturating_mul(19))
    }
}

/// What an answer is about: which changes make it wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct About {
    collection: Option<u32>,
    kind: Option<u32>,
}

/// The answers that a process keeps.
#[derive(Debug, Default)]
struct Shelf {
    /// By when they were used last.
    answers: BTreeMap<u64, (u32, u64, About)>,
    places: HashMap<u32, u64>,
    /// Those that the log's own cache does not have, by what they are about.
    unwatched: HashMap<About, BTreeSet<u64>>,
    bytes: u64,
    next: u64,
}

impl Shelf {
    fn put(&mut self, question: u32, bytes: u64, about: About) {
        let place = self.next;
        self.next += 1;
        self.take(question);
        self.answers.insert(place, (question, bytes, about));
        self.places.insert(question, place);
        self.unwatched.entry(about).or_default().insert(place);
        self.bytes += bytes;
    }

    /// Puts an answer behind all others, if it is there.
    fn used(&mut self, question: u32) -> bool {
        let place = self.places.get(&question).and_then(|place| self.answers.get(place));
        let Some(&(_, bytes, about)) = place else { return false };
        self.put(question, bytes, about);
        true
    }

    fn take(&mut self, question: u32) -> bool {
        let place = self.places.get(&question).copied();
        place.is_some_and(|place| self.remove(place))
    }

    /// Does the log tell when this one goes stale?
    fn watch(&mut self, question: u32, watched: bool) {
        let Some(place) = self.places.get(&question) else { return };
        let Some((.., about)) = self.answers.get(place) else { return };
        if watched {
            if let Some(places) = self.unwatched.get_mut(about) {
                places.remove(place);
                if places.is_empty() {
                    self.unwatched.remove(about);
                }
            }
        } else {
            self.unwatched.entry(*about).or_default().insert(*place);
        }
    }

    fn remove(&mut self, place: u64) -> bool {
        let Some((question, bytes, about)) = self.answers.remove(&place) else { return false };
        self.places.remove(&question);
        self.bytes -= bytes;
        if let Some(places) = self.unwatched.get_mut(&about) {
            places.remove(&place);
            if places.is_empty() {
                self.unwatched.remove(&about);
            }
        }
        true
    }

    /// Those that a change may make wrong go, where the log does not tell: how many.
    fn touched(&mut self, by: About) -> u64 {
        let same = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        let all: Vec<About> = match by {
            About { collection: Some(_), kind: Some(_) } => {
                let collections = [by.collection, None].into_iter();
                let about = |collection| [by.kind, None].map(|kind| About { collection, kind });
                collections.flat_map(about).filter(|it| self.unwatched.contains_key(it)).collect()
            }
            // Whoever changes everything is looked for everywhere.
            _ => {
                let fits =
                    |it: &&About| same(it.collection, by.collection) && same(it.kind, by.kind);
                self.unwatched.keys().filter(fits).copied().collect()
            }
        };
        let mut gone = 0;
        for about in all {
            for place in self.unwatched.remove(&about).unwrap_or_default() {
                gone += u64::from(self.remove(place));
            }
        }
        gone
    }
}

/// One budget, in all processes.
#[derive(Debug, Default)]
struct Play {
    trial: Trial,
    /// The budget is each process's own.
    own: bool,
    shelves: HashMap<u32, Shelf>,
    bytes: u64,
}

impl Play {
    fn with<T>(&mut self, process: u32, f: impl FnOnce(&mut Shelf, &mut Trial) -> T) -> T {
        let shelf = self.shelves.entry(process).or_default();
        self.bytes -= shelf.bytes;
        let result = f(shelf, &mut self.trial);
        self.bytes += shelf.bytes;
        self.trial.peak = self.trial.peak.max(self.bytes);
        result
    }

    fn keep(&mut self, process: u32, budget: u64, (question, bytes, about): (u32, u64, About)) {
        let budget = if self.own { budget } else { self.trial.budget };
        self.with(process, |shelf, trial| {
            if bytes > budget || budget == 0 {
                trial.dropped += 1;
                shelf.take(question);
                return;
            }
            shelf.take(question);
            while shelf.bytes + bytes > budget {
                let Some((&oldest, _)) = shelf.answers.first_key_value() else { break };
                shelf.remove(oldest);
                trial.dropped += 1;
            }
            shelf.put(question, bytes, about);
        });
    }
}

#[derive(Debug, Default)]
struct Process {
    /// `None`: the log does not say it.
    budget: Option<u64>,
    /// What the log's own cache keeps: questions by their answers, and the other way round.
    kept: HashMap<u64, u32>,
    answers: HashMap<u32, u64>,
    /// The questions of views.
    views: HashMap<u64, (u32, u64, About)>,
}

/// The caches while the log is read.
#[derive(Debug)]
pub(super) struct Playing {
    plays: Vec<Play>,
    processes: HashMap<u32, Process>,
    /// What a question took when it was worked out last.
    took: HashMap<u32, u64>,
    askings: u64,
    hits: u64,
    budgets: BTreeSet<u64>,
    bytes: Spread,
}

/// No answer is said to be larger, so that no sum of them overflows.
const MOST: u64 = 1 << 40;

impl Playing {
    /// Tries the usual budgets, and one more.
    pub(super) fn new(budget: Option<u64>) -> Playing {
        let mut budgets: Vec<u64> = BUDGETS.into_iter().chain(budget).collect();
        budgets.sort_unstable();
        budgets.dedup();
        let play = |budget| Play { trial: Trial { budget, ..Trial::default() }, ..Play::default() };
        let own = Play { own: true, ..Play::default() };
        Playing {
            plays: budgets.into_iter().map(play).chain([own]).collect(),
            processes: HashMap::new(),
            took: HashMap::new(),
            askings: 0,
            hits: 0,
            budgets: BTreeSet::new(),
            bytes: Spread::default(),
        }
    }

    pub(super) fn start(&mut self, process: u32, budget: Option<u64>) {
        self.budgets.extend(budget);
        self.processes.insert(process, Process { budget, ..Process::default() });
    }

    /// A question was answered.
    pub(super) fn asked(&mut self, process: u32, ask: Ask, asked: &Asked) {
        let question = ask.question;
        self.askings += 1;
        self.hits += u64::from(asked.from != From::Run);
        if asked.from == From::Run {
            self.took.insert(question, asked.us);
            self.bytes.add(asked.bytes);
        }
        let Some(of) = self.processes.get_mut(&process) else { return };
        let saved = self.took.get(&question).copied().unwrap_or(0);
        let answer = (question, asked.bytes.min(MOST), about(ask));
        let budget = of.budget.unwrap_or(0);
        for play in &mut self.plays {
            if play.with(process, |shelf, _| shelf.used(question)) {
                play.trial.hits += 1;
                play.trial.saved_us = play.trial.saved_us.saturating_add(saved);
            } else {
                play.keep(process, budget, answer);
            }
        }
        if let Some(former) = of.answers.remove(&question) {
            of.kept.remove(&former);
        }
        let fits = of.budget.is_none_or(|budget| budget > 0 && asked.bytes <= budget);
        let kept = asked.from != From::Run || fits;
        if kept {
            of.kept.insert(asked.answer, question);
            of.answers.insert(question, asked.answer);
        }
        self.watch(process, question, kept);
    }

    fn watch(&mut self, process: u32, question: u32, watched: bool) {
        for play in &mut self.plays {
            play.with(process, |shelf, _| shelf.watch(question, watched));
        }
    }

    pub(super) fn open(&mut self, process: u32, view: u64, ask: Ask, asked: &Asked) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        of.views.insert(view, (ask.question, asked.bytes.min(MOST), about(ask)));
    }

    pub(super) fn close(&mut self, process: u32, view: u64) {
        if let Some(of) = self.processes.get_mut(&process) {
            of.views.remove(&view);
        }
    }

    /// A view had to be given its answer anew, for which it was asked again.
    pub(super) fn fresh(&mut self, process: u32, view: u64) {
        let Some(of) = self.processes.get(&process) else { return };
        let Some(&answer) = of.views.get(&view) else { return };
        let (budget, watched) = (of.budget.unwrap_or(0), of.answers.contains_key(&answer.0));
        for play in &mut self.plays {
            if !play.with(process, |shelf, _| shelf.used(answer.0)) {
                play.keep(process, budget, answer);
            }
        }
        self.watch(process, answer.0, watched);
    }

    /// The log's own cache gave an answer up.
    pub(super) fn dropped(&mut self, process: u32, answer: u64, why: Why) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let Some(question) = of.kept.remove(&answer) else { return };
        of.answers.remove(&question);
        if why != Why::Stale {
            return self.watch(process, question, false);
        }
        for play in &mut self.plays {
            play.with(process, |shelf, trial| trial.stale += u64::from(shelf.take(question)));
        }
    }

    /// `of`: the collections and kinds that changed.
    pub(super) fn change(
        &mut self,
        process: u32,
        change: &Change,
        number: &mut dyn FnMut(&str) -> u32,
    ) {
        let mut of = |name: &Option<String>| name.as_ref().map(|name| number(name));
        for (collection, kind) in &change.of {
            let by = About { collection: of(collection), kind: of(kind) };
            for play in &mut self.plays {
                play.with(process, |shelf, trial| trial.stale += shelf.touched(by));
            }
        }
    }

    pub(super) fn end(&mut self, process: u32) {
        self.processes.remove(&process);
        for play in &mut self.plays {
            play.bytes -= play.shelves.remove(&process).map_or(0, |shelf| shelf.bytes);
        }
    }

    pub(super) fn finish(self) -> Worth {
        let (own, tried): (Vec<Play>, Vec<Play>) = self.plays.into_iter().partition(|it| it.own);
        let greatest = self.budgets.last().copied();
        let recorded = own.first().zip(greatest);
        Worth {
            askings: self.askings,
            hits: self.hits,
            budgets: self.budgets.into_iter().collect(),
            recorded: recorded.map(|(play, budget)| Trial { budget, ..play.trial }),
            trials: tried.into_iter().map(|play| play.trial).collect(),
            bytes: self.bytes,
        }
    }
}

fn about(ask: Ask) -> About {
    About { collection: ask.collection, kind: ask.kind }
}
