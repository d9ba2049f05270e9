//! What answers held in memory, by what the log says.
//!
//! Not what could have been kept: that is [`crate::queries::worth`].

use crate::queries::log::{Asked, From, Why};
use crate::queries::spread::Spread;
use crate::queries::timeline::{Joined, Timeline};
use std::collections::{BTreeMap, HashMap};

/// So many points at most for the time of the log.
const POINTS: usize = 400;

/// What answers held in a stretch of time, in bytes: the most, and what it was at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// All answers that were kept: the most.
    pub kept: u64,
    /// And at the end.
    pub kept_last: u64,
    /// Those of them that open views have: the most.
    pub open: u64,
    /// And at the end.
    pub open_last: u64,
}

impl Joined for Held {
    fn join(&mut self, later: Held) {
        *self = Held { kept: self.kept.max(later.kept), open: self.open.max(later.open), ..later };
    }
}

/// How answers that were kept lived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// How many answers were kept.
    pub kept: u64,
    /// How many of them were used before they went.
    pub used: u64,
    /// The most bytes that were kept at once, by all processes.
    pub peak: u64,
    /// How long they were kept, in microseconds, by why they went.
    pub lives: BTreeMap<Why, Spread>,
    /// Kept until the process or the log ended.
    pub ended: Spread,
}

impl Kept {
    /// An answer went: `None` at the end of its process, or of the log.
    fn went(&mut self, answer: Answer, at: i64, why: Option<Why>) {
        let life = u64::try_from(at.saturating_sub(answer.since)).unwrap_or(0);
        self.kept += 1;
        self.used += u64::from(answer.uses > 0);
        match why {
            Some(why) => self.lives.entry(why).or_default().add(life),
            None => self.ended.add(life),
        }
    }
}

/// An answer that is kept.
#[derive(Debug, Clone, Copy)]
struct Answer {
    number: u64,
    bytes: u64,
    since: i64,
    uses: u64,
}

/// A question of a process: how many views have it open, and its answer.
#[derive(Debug, Clone, Copy, Default)]
struct Question {
    views: u64,
    kept: Option<Answer>,
}

impl Question {
    /// What is kept of it, and what of that an open view has.
    fn bytes(&self) -> [u64; 2] {
        let bytes = self.kept.map_or(0, |answer| answer.bytes);
        [bytes, if self.views > 0 { bytes } else { 0 }]
    }
}

#[derive(Debug, Default)]
struct Process {
    budget: u64,
    questions: HashMap<u32, Question>,
    /// The questions of answers and of views.
    answers: HashMap<u64, u32>,
    views: HashMap<u64, u32>,
}

/// What is held while the log is read.
#[derive(Debug)]
pub(super) struct Holding {
    processes: HashMap<u32, Process>,
    /// Kept, and of that open.
    bytes: [u64; 2],
    told: Kept,
    line: Timeline<Held>,
}

impl Holding {
    pub(super) fn new() -> Holding {
        Holding {
            processes: HashMap::new(),
            bytes: [0; 2],
            told: Kept::default(),
            line: Timeline::new(POINTS),
        }
    }

    /// `budget` where the log says it.
    pub(super) fn start(&mut self, process: u32, budget: Option<u64>) {
        let budget = budget.unwrap_or(u64::MAX);
        self.processes.insert(process, Process { budget, ..Process::default() });
    }

    /// A question was answered.
    pub(super) fn asked(&mut self, process: u32, at: i64, number: u32, asked: &Asked) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let question = of.questions.entry(number).or_default();
        let before = question.bytes();
        match (asked.from, &mut question.kept) {
            (From::Cache | From::Shared, Some(answer)) if answer.number == asked.answer => {
                answer.uses += 1;
            }
            (From::Run, _) if asked.bytes > of.budget || of.budget == 0 => {}
            (from, kept) => {
                // What is used and was not seen to be kept was so before, or came with a fresh answer of a view.
                let uses = u64::from(from != From::Run);
                let bytes = asked.bytes.min(MOST);
                let new = Answer { number: asked.answer, bytes, since: at, uses };
                if let Some(old) = kept.replace(new) {
                    of.answers.remove(&old.number);
                    self.told.went(old, at, Some(Why::Other));
                }
                of.answers.insert(asked.answer, number);
            }
        }
        let after = question.bytes();
        self.note(at, before, after);
    }

    /// A view was opened.
    pub(super) fn open(&mut self, process: u32, at: i64, view: u64, number: u32) {
        // Its number may have been another's that was never closed.
        self.close(process, at, view);
        let Some(of) = self.processes.get_mut(&process) else { return };
        of.views.insert(view, number);
        let question = of.questions.entry(number).or_default();
        let before = question.bytes();
        question.views += 1;
        let after = question.bytes();
        self.note(at, before, after);
    }

    pub(super) fn close(&mut self, process: u32, at: i64, view: u64) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let Some(number) = of.views.remove(&view) else { return };
        let Some(question) = of.questions.get_mut(&number) else { return };
        let before = question.bytes();
        question.views = question.views.saturating_sub(1);
        let after = question.bytes();
        if question.views == 0 && question.kept.is_none() {
            of.questions.remove(&number);
        }
        self.note(at, before, after);
    }

    pub(super) fn dropped(&mut self, process: u32, at: i64, answer: u64, why: Why) {
        let Some(of) = self.processes.get_mut(&process) else { return };
        let Some(number) = of.answers.remove(&answer) else { return };
        let Some(question) = of.questions.get_mut(&number) else { return };
        let before = question.bytes();
        if let Some(answer) = question.kept.take() {
            self.told.went(answer, at, Some(why));
        }
        if question.views == 0 {
            of.questions.remove(&number);
        }
        self.note(at, before, [0; 2]);
    }

    /// The process has ended, or broke off.
    pub(super) fn end(&mut self, process: u32, at: i64) {
        let Some(of) = self.processes.remove(&process) else { return };
        for question in of.questions.into_values() {
            if let Some(answer) = question.kept {
                self.told.went(answer, at, None);
            }
            self.note(at, question.bytes(), [0; 2]);
        }
    }

    fn note(&mut self, at: i64, before: [u64; 2], after: [u64; 2]) {
        for (sum, (before, after)) in self.bytes.iter_mut().zip(before.into_iter().zip(after)) {
            *sum = sum.saturating_sub(before).saturating_add(after);
        }
        let [kept, open] = self.bytes;
        self.told.peak = self.told.peak.max(kept);
        self.line.at(at).join(Held { kept, kept_last: kept, open, open_last: open });
    }

    pub(super) fn finish(mut self, at: i64) -> (Kept, Timeline<Held>) {
        let line = self.line.clone();
        let processes: Vec<u32> = self.processes.keys().copied().collect();
        for process in processes {
            self.end(process, at);
        }
        (self.told, line)
    }
}

/// No answer is said to be larger, so that no sum of them overflows.
const MOST: u64 = 1 << 40;
