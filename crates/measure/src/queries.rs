//! What a query log shows: which questions are asked and how often, how long views live, what answers cost, whether
//! the cache is worth its memory, and how many views each change informs.
//!
//! Not the log's writer, which is in `larder-query`, and no measurement of its own: a log is all that is looked at. It
//! is read once, as it comes, and what is remembered grows with the number of different questions and of views
//! that are open at once, not with its length. Each of the modules answers one of the questions.
//!
//! A log tells of many processes; a view or an answer is known by its process and its number there.

pub mod anonymise;
pub mod compare;
pub mod cost;
pub mod informed;
pub mod kept;
pub mod lives;
pub mod log;
mod names;
pub mod page;
pub mod reuse;
pub mod spread;
pub mod timeline;
pub mod words;
pub mod worth;

pub use self::anonymise::{Anonymised, anonymise};
pub use self::names::Question;
pub use self::page::page;

use self::cost::{Cost, Weighing};
use self::informed::{Informed, Listening};
use self::kept::Holding;
use self::lives::{End, Lives, Watching};
use self::log::{Asked, Broken, Event, Line};
use self::names::{Ask, Names};
use self::reuse::{Counting, Reuse};
use self::worth::{Playing, Worth};
use std::collections::HashMap;
use std::io::{self, BufRead};

/// What a log shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Lines that were understood.
    pub lines: u64,
    /// Those of them whose event is not known.
    pub unknown: u64,
    /// Lines that were not.
    pub broken: Broken,
    /// How many processes wrote it.
    pub processes: u64,
    /// The first and the last moment, in microseconds since 1970.
    pub time: (i64, i64),
    /// Which questions are asked, and how often.
    pub reuse: Reuse,
    /// How long views and kept answers live.
    pub lives: Lives,
    /// How long answers take.
    pub cost: Cost,
    /// Is the cache worth its memory?
    pub worth: Worth,
    /// How many views each change informed.
    pub informed: Informed,
}

impl Report {
    /// Is there anything that a report can be about?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines == self.unknown
    }
}

/// Reads a log to its end. `budget`: one more that the cache is tried with, in bytes.
///
/// # Errors
/// Whatever the source answers to a read.
pub fn read(source: &mut dyn BufRead, budget: Option<u64>) -> io::Result<Report> {
    let mut reading = Reading::new(budget);
    let broken = log::lines(source, &mut |_, line| {
        reading.line(&line);
        Ok(())
    })?;
    Ok(reading.finish(broken))
}

/// All that is remembered of a log while it is read.
struct Reading {
    lines: u64,
    unknown: u64,
    time: Option<(i64, i64)>,
    /// The process that has a pid now, by its number here.
    processes: HashMap<u64, u32>,
    began: u32,
    names: Names,
    counting: Counting,
    holding: Holding,
    watching: Watching,
    weighing: Weighing,
    playing: Playing,
    listening: Listening,
}

impl Reading {
    fn new(budget: Option<u64>) -> Reading {
        Reading {
            lines: 0,
            unknown: 0,
            time: None,
            processes: HashMap::new(),
            began: 0,
            names: Names::default(),
            counting: Counting::new(),
            holding: Holding::new(),
            watching: Watching::default(),
            weighing: Weighing::default(),
            playing: Playing::new(budget),
            listening: Listening::default(),
        }
    }

    fn line(&mut self, line: &Line) {
        let &Line { at, pid, .. } = line;
        self.lines += 1;
        if line.event == Event::Unknown {
            self.unknown += 1;
            return;
        }
        let (first, last) = self.time.unwrap_or((at, at));
        self.time = Some((first.min(at), last.max(at)));
        if let Event::Start(start) = &line.event {
            self.ended(pid, at, End::BrokenOff);
            self.begin(pid, Some(start.budget));
            return;
        }
        if line.event == Event::End {
            return self.ended(pid, at, End::Leaked);
        }
        let process = match self.processes.get(&pid) {
            Some(process) => *process,
            // Its beginning was in a part of the log that is gone.
            None => self.begin(pid, None),
        };
        self.event(process, line);
    }

    fn event(&mut self, process: u32, line: &Line) {
        let &Line { at, pid, .. } = line;
        match &line.event {
            Event::Query(asked) => {
                let ask = self.names.ask(asked);
                self.asked(process, at, ask, asked);
            }
            Event::Open(view, asked) => {
                let ask = self.names.ask(asked);
                // A view that wants to know of changes alone has no first answer.
                if asked.answer > 0 {
                    self.asked(process, at, ask, asked);
                }
                self.holding.open(process, at, *view, ask.question);
                self.playing.open(process, *view, ask, asked);
                self.watching.open(process, pid, at, *view, ask);
            }
            Event::Close(view) => {
                self.holding.close(process, at, view.view);
                self.playing.close(process, view.view);
                self.watching.close(process, at, view.view);
            }
            Event::Change(change) => {
                let texts = &mut self.names.texts;
                self.listening.change(change, self.watching.open_in(process));
                self.playing.change(process, change, &mut |name| texts.of(name.to_string()));
            }
            Event::Drop(dropped) => {
                self.holding.dropped(process, at, dropped.answer, dropped.why);
                self.playing.dropped(process, dropped.answer, dropped.why);
            }
            Event::Told(told) => self.listening.told(told),
            Event::Fresh(fresh) => {
                self.listening.fresh(fresh);
                self.playing.fresh(process, fresh.view);
            }
            Event::Start(_) | Event::End | Event::Unknown => {}
        }
    }

    fn asked(&mut self, process: u32, at: i64, ask: Ask, asked: &Asked) {
        self.counting.asked(at, ask, asked.from, asked.us);
        self.weighing.asked(ask, asked);
        self.holding.asked(process, at, ask.question, asked);
        self.playing.asked(process, ask, asked);
    }

    fn begin(&mut self, pid: u64, budget: Option<u64>) -> u32 {
        let number = self.began;
        self.began = self.began.saturating_add(1);
        self.processes.insert(pid, number);
        self.holding.start(number, budget);
        self.playing.start(number, budget);
        number
    }

    fn ended(&mut self, pid: u64, at: i64, end: End) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.holding.end(process, at);
        self.playing.end(process);
        self.watching.end(process, at, end);
    }

    fn finish(mut self, broken: Broken) -> Report {
        let time = self.time.unwrap_or((0, 0));
        for process in self.processes.values() {
            self.watching.end(*process, time.1, End::Open);
        }
        let (kept, held) = self.holding.finish(time.1);
        Report {
            lines: self.lines,
            unknown: self.unknown,
            broken,
            processes: u64::from(self.began),
            time,
            reuse: self.counting.finish(&self.names, held),
            lives: self.watching.finish(&self.names, time, kept),
            cost: self.weighing.finish(&self.names),
            worth: self.playing.finish(),
            informed: self.listening.finish(),
        }
    }
}
