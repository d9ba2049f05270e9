//! Which questions are asked, and how often: the first of the questions put to a log.

use crate::queries::kept::Held;
use crate::queries::log::From;
use crate::queries::names::{Ask, Names, Question};
use crate::queries::timeline::{Joined, Timeline};
use std::collections::BTreeMap;

/// So many of the most asked are named.
const NAMED: usize = 20;
/// So many bars at most for the time of the log.
const BARS: usize = 100;

/// Answers by where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origins {
    /// Worked out.
    pub run: u64,
    /// Kept of a question that nobody had open.
    pub cache: u64,
    /// Of an open view.
    pub shared: u64,
}

impl Origins {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.run + self.cache + self.shared
    }

    pub(super) fn add(&mut self, from: From) {
        match from {
            From::Run => self.run += 1,
            From::Cache => self.cache += 1,
            From::Shared => self.shared += 1,
        }
    }
}

impl Joined for Origins {
    fn join(&mut self, later: Origins) {
        self.run += later.run;
        self.cache += later.cache;
        self.shared += later.shared;
    }
}

/// What was found out about the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reuse {
    /// All answers.
    pub answers: Origins,
    /// How many different questions there were.
    pub questions: u64,
    /// How many of them were asked more than once.
    pub repeated: u64,
    /// Answers to questions that had been asked before.
    pub again: u64,
    /// The most asked, the most asked first.
    pub most: Vec<Often>,
    /// How many questions were asked how often.
    pub times: Vec<Times>,
    /// Who asked how much, most first.
    pub clients: Vec<(String, Origins)>,
    /// Answers over time.
    pub day: Timeline<Origins>,
    /// What answers held in memory over time.
    pub held: Timeline<Held>,
}

/// A question that was asked often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Often {
    /// Which.
    pub question: Question,
    /// How often.
    pub answers: Origins,
    /// How long answers took, all together, in microseconds.
    pub us: u64,
}

/// A step of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Asked so often at least,
    pub least: u64,
    /// and so often at most.
    pub most: u64,
    /// How many questions.
    pub questions: u64,
    /// How many answers they had.
    pub answers: u64,
}

/// Counts while the log is read.
#[derive(Debug)]
pub(super) struct Counting {
    answers: Origins,
    questions: Vec<(Origins, u64)>,
    clients: BTreeMap<u32, Origins>,
    day: Timeline<Origins>,
}

impl Counting {
    pub(super) fn new() -> Counting {
        Counting {
            answers: Origins::default(),
            questions: Vec::new(),
            clients: BTreeMap::new(),
            day: Timeline::new(BARS),
        }
    }

    pub(super) fn asked(&mut self, at: i64, ask: Ask, from: From, us: u64) {
        self.answers.add(from);
        self.clients.entry(ask.client).or_default().add(from);
        self.day.at(at).add(from);
        let place = ask.question as usize;
        if self.questions.len() <= place {
            self.questions.resize(place + 1, (Origins::default(), 0));
        }
        if let Some((origins, sum)) = self.questions.get_mut(place) {
            origins.add(from);
            *sum = sum.saturating_add(us);
        }
    }

    pub(super) fn finish(self, names: &Names, held: Timeline<Held>) -> Reuse {
        let asked = |place: &usize| self.questions.get(*place).map_or(0, |(it, _)| it.all());
        let mut order: Vec<usize> = (0..self.questions.len()).collect();
        // Of those that were asked as often, the first one first: texts say nothing, so that they can be replaced.
        order.sort_by_key(|place| (std::cmp::Reverse(asked(place)), *place));
        let often = |place: &usize| {
            let (answers, us) = self.questions.get(*place).copied().unwrap_or_default();
            Often { question: names.question(*place as u32), answers, us }
        };
        let mut clients: Vec<(u32, Origins)> = self.clients.into_iter().collect();
        clients.sort_by_key(|(client, answers)| (std::cmp::Reverse(answers.all()), *client));
        Reuse {
            answers: self.answers,
            questions: order.len() as u64,
            repeated: order.iter().filter(|place| asked(place) > 1).count() as u64,
            again: self.answers.all() - order.len() as u64,
            most: order.iter().take(NAMED).map(often).collect(),
            times: times(order.iter().map(asked)),
            clients: clients.into_iter().map(|(client, it)| (names.text(client), it)).collect(),
            day: self.day,
            held,
        }
    }
}

/// Once, twice, 3 to 4 times, 5 to 8, 9 to 16 ...
fn times(asked: impl Iterator<Item = u64>) -> Vec<Times> {
    let mut steps: BTreeMap<u64, Times> = BTreeMap::new();
    for answers in asked {
        let most = answers.checked_next_power_of_two().unwrap_or(u64::MAX);
        let least = if most <= 2 { most } else { most / 2 + 1 };
        let empty = Times { least, most, questions: 0, answers: 0 };
        let step = steps.entry(most).or_insert(empty);
        step.questions += 1;
        step.answers += answers;
    }
    steps.into_values().collect()
}
