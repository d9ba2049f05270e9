//! How long questions take, and how much is looked at for what is found.
//!
//! Of answers that were worked out alone: what is kept or shared costs what a look-up does, and is told by itself.

use crate::queries::log::{Asked, From};
use crate::queries::names::{Ask, Names, Question};
use crate::queries::spread::Spread;
use std::cmp::Reverse;
use std::collections::HashMap;

/// So many of the dearest questions are named.
const NAMED: usize = 20;

/// What was found out about the cost of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// All answers that were worked out.
    pub run: Work,
    /// How long answers took that were kept or shared, in microseconds.
    pub ready: Spread,
    /// By collection and kind of source, the dearest first.
    pub collections: Vec<Group>,
    /// By kind of source.
    pub sources: Vec<Group>,
    /// The questions that took most time, all together.
    pub dearest: Vec<(Question, Work)>,
}

/// What answers cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    /// How long they took, in microseconds.
    pub us: Spread,
    /// What was visited.
    pub scanned: u64,
    /// What was compared with the question.
    pub tested: u64,
    /// What was given.
    pub returned: u64,
}

impl Work {
    fn add(&mut self, asked: &Asked) {
        self.us.add(asked.us);
        self.scanned = self.scanned.saturating_add(asked.scanned);
        self.tested = self.tested.saturating_add(asked.tested);
        self.returned = self.returned.saturating_add(asked.returned);
    }

    /// Items visited for each that is given; `None` where none is.
    #[must_use]
    pub fn scanned_per_returned(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.scanned as f64 / self.returned as f64)
    }
}

/// The answers of a collection, or of a kind of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The collection; `None`: all were asked, or that of [`Cost::sources`].
    pub collection: Option<String>,
    /// The kind of source.
    pub source: String,
    /// What they cost.
    pub work: Work,
    /// The question that took longest.
    pub worst: Question,
}

/// Cost while the log is read: of each group, with its worst question.
#[derive(Debug, Default)]
pub(super) struct Weighing {
    run: Work,
    ready: Spread,
    collections: HashMap<(Option<u32>, u32), (Work, u32)>,
    sources: HashMap<u32, (Work, u32)>,
    questions: HashMap<u32, Work>,
}

impl Weighing {
    pub(super) fn asked(&mut self, ask: Ask, asked: &Asked) {
        if asked.from != From::Run {
            self.ready.add(asked.us);
            return;
        }
        let add = |(work, worst): &mut (Work, u32)| {
            if work.us.number == 0 || asked.us > work.us.most {
                *worst = ask.question;
            }
            work.add(asked);
        };
        self.run.add(asked);
        add(self.collections.entry((ask.collection, ask.source)).or_default());
        add(self.sources.entry(ask.source).or_default());
        self.questions.entry(ask.question).or_default().add(asked);
    }

    pub(super) fn finish(self, names: &Names) -> Cost {
        let group = |collection: Option<u32>, source, (work, worst)| Group {
            collection: collection.map(|name| names.text(name)),
            source: names.text(source),
            work,
            worst: names.question(worst),
        };
        let mut collections: Vec<_> = self.collections.into_iter().collect();
        collections.sort_by_key(|(of, (work, _))| (Reverse(work.us.sum), *of));
        let mut sources: Vec<_> = self.sources.into_iter().collect();
        sources.sort_by_key(|(of, (work, _))| (Reverse(work.us.sum), *of));
        let mut dearest: Vec<_> = self.questions.into_iter().collect();
        dearest.sort_by_key(|(of, work)| (Reverse(work.us.sum), *of));
        dearest.truncate(NAMED);
        let dearest = dearest.into_iter().map(|(of, work)| (names.question(of), work));
        Cost {
            run: self.run,
            ready: self.ready,
            collections: collections.into_iter().map(|((c, s), it)| group(c, s, it)).collect(),
            sources: sources.into_iter().map(|(s, it)| group(None, s, it)).collect(),
            dearest: dearest.collect(),
        }
    }
}
