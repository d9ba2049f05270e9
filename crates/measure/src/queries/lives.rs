//! How long views live, and which were never closed.

use crate::queries::kept::Kept;
use crate::queries::names::{Ask, Names, Question};
use crate::queries::spread::Spread;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// So many of the closed views are kept for the chart: those that lived longest.
const LONGEST: usize = 300;

/// How a view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Its process ended in order, and had never closed it.
    Leaked,
    /// Its process broke off.
    BrokenOff,
    /// It was open when the log ended.
    Open,
    /// It was closed.
    Closed,
}

impl End {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            End::Leaked => "leaked: its process ended and had never closed it",
            End::BrokenOff => "open when its process broke off",
            End::Open => "open when the log ended",
            End::Closed => "closed",
        }
    }

    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            End::Leaked => "leaked",
            End::BrokenOff => "broken_off",
            End::Open => "open",
            End::Closed => "closed",
        }
    }
}

/// The life of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The process.
    pub pid: u64,
    /// Its number there.
    pub view: u64,
    /// Who opened it.
    pub client: String,
    /// What it asks.
    pub question: Question,
    /// When it was opened.
    pub opened: i64,
    /// When it ended, or was seen last.
    pub ended: i64,
    /// How.
    pub end: End,
}

impl Life {
    /// How long, in microseconds.
    #[must_use]
    pub fn us(&self) -> u64 {
        u64::try_from(self.ended.saturating_sub(self.opened)).unwrap_or(0)
    }
}

/// The views of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// Who.
    pub client: String,
    /// How many it opened.
    pub opened: u64,
    /// Never closed, and its process ended in order.
    pub leaked: u64,
    /// Never closed, and its process broke off.
    pub broken_off: u64,
    /// Open when the log ended.
    pub open: u64,
    /// The lives of those that were closed, in microseconds.
    pub lives: Spread,
}

/// What was found out about the lives of views and of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lives {
    /// How many were opened.
    pub opened: u64,
    /// How many were closed.
    pub closed: u64,
    /// Never closed, and the process ended in order.
    pub leaked: u64,
    /// Never closed, and the process broke off.
    pub broken_off: u64,
    /// Open when the log ended.
    pub open: u64,
    /// The most that were open at once.
    pub at_once: u64,
    /// The lives of those that were closed, in microseconds.
    pub lives: Spread,
    /// By client, those that leave most open first.
    pub clients: Vec<Client>,
    /// Those that were never closed: leaks first, then by when they were opened.
    pub never: Vec<Life>,
    /// Some of those that were closed: the longest, by when they were opened.
    pub longest: Vec<Life>,
    /// The first and the last moment of the log.
    pub time: (i64, i64),
    /// The answers that were kept.
    pub kept: Kept,
}

impl Lives {
    /// Views that nobody closed, whatever became of their processes.
    #[must_use]
    pub fn never_closed(&self) -> u64 {
        self.leaked + self.broken_off + self.open
    }
}

/// An open view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    opened: i64,
    pid: u64,
    view: u64,
    client: u32,
    question: u32,
}

/// Views while the log is read.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// Of each process, by their numbers.
    open: HashMap<u32, HashMap<u64, Open>>,
    open_now: u64,
    opened: u64,
    at_once: u64,
    lives: Spread,
    clients: BTreeMap<u32, Client>,
    never: Vec<(End, Open, i64)>,
    longest: BinaryHeap<(Reverse<u64>, Open, i64)>,
}

impl Watching {
    pub(super) fn open(&mut self, process: u32, pid: u64, at: i64, view: u64, ask: Ask) {
        let open = Open { opened: at, pid, view, client: ask.client, question: ask.question };
        self.open_now += 1;
        if let Some(former) = self.open.entry(process).or_default().insert(view, open) {
            // Its number was given away: whatever happened to it, nobody closed it.
            self.lost(End::BrokenOff, former, at);
        }
        self.opened += 1;
        self.at_once = self.at_once.max(self.open_now);
        self.clients.entry(ask.client).or_default().opened += 1;
    }

    pub(super) fn close(&mut self, process: u32, at: i64, view: u64) {
        let views = self.open.get_mut(&process);
        let Some(open) = views.and_then(|views| views.remove(&view)) else { return };
        self.open_now -= 1;
        let life = u64::try_from(at.saturating_sub(open.opened)).unwrap_or(0);
        self.lives.add(life);
        self.clients.entry(open.client).or_default().lives.add(life);
        self.longest.push((Reverse(life), open, at));
        if self.longest.len() > LONGEST {
            self.longest.pop();
        }
    }

    /// The process has ended, in one way or another.
    pub(super) fn end(&mut self, process: u32, at: i64, end: End) {
        for open in self.open.remove(&process).unwrap_or_default().into_values() {
            self.lost(end, open, at);
        }
    }

    /// How many views a process has open.
    pub(super) fn open_in(&self, process: u32) -> u64 {
        self.open.get(&process).map_or(0, |views| views.len() as u64)
    }

    fn lost(&mut self, end: End, open: Open, at: i64) {
        self.open_now -= 1;
        let client = self.clients.entry(open.client).or_default();
        match end {
            End::Leaked => client.leaked += 1,
            End::BrokenOff => client.broken_off += 1,
            End::Open => client.open += 1,
            End::Closed => {}
        }
        self.never.push((end, open, at));
    }

    pub(super) fn finish(mut self, names: &Names, time: (i64, i64), kept: Kept) -> Lives {
        let life = |end, open: Open, ended| Life {
            pid: open.pid,
            view: open.view,
            client: names.text(open.client),
            question: names.question(open.question),
            opened: open.opened,
            ended,
            end,
        };
        self.never.sort_unstable();
        let mut longest: Vec<(Open, i64)> =
            self.longest.into_iter().map(|(_, open, at)| (open, at)).collect();
        longest.sort_unstable();
        let of = |end| self.never.iter().filter(|(how, ..)| *how == end).count() as u64;
        let name = |(client, it)| Client { client: names.text(client), ..it };
        let mut clients: Vec<Client> = self.clients.into_iter().map(name).collect();
        clients.sort_by_key(|it| Reverse((it.leaked, it.broken_off + it.open, it.opened)));
        Lives {
            opened: self.opened,
            closed: self.lives.number,
            leaked: of(End::Leaked),
            broken_off: of(End::BrokenOff),
            open: of(End::Open),
            at_once: self.at_once,
            lives: self.lives,
            clients,
            never: self.never.iter().map(|&(end, open, at)| life(end, open, at)).collect(),
            longest: longest.into_iter().map(|(open, at)| life(End::Closed, open, at)).collect(),
            time,
            kept,
        }
    }
}
