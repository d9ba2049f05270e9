//! A person who pages through a calendar: the load that showed the predecessor's leak, and what it does to memory.
//!
//! Every view that is opened is told its answer and closed again, in the order in which a calendar's program does that. Beside it
//! stand how many views are open and how much memory the process holds, on one time axis, so that what is not given
//! back can be seen. It asks what `larder-query` answers and is no test of the answers.

mod day;
mod page;

pub use self::day::SetClock;
pub use self::page::page;

use crate::generate::dates::Day;
use larder_query::views::{Form, Interest, Question, Tell, View, ViewOptions, Views};
use larder_query::{Error, Settings};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is done, so many times over.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The calendar is opened and paged back so many months, in five kinds of views.
    pub months: u32,
    /// The present month is opened and closed so many times, each time by another client.
    pub toggles: u32,
    /// A working day goes by, each minute of it in at least so long.
    pub day: Option<Duration>,
    /// All of that so many times.
    pub repeat: u32,
    /// The day on which it begins, counted from 1970-01-01.
    pub today: i64,
}

/// How it stood at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Since the beginning.
    pub at: Duration,
    /// Anonymous memory of the process, in bytes.
    pub anonymous: u64,
    /// Views that were open.
    pub open: usize,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Browsed {
    /// How it stood: before, after each view that was opened and when all were closed.
    pub samples: Vec<Sample>,
    /// How it stood when all views of a round were closed.
    pub rounds: Vec<Sample>,
    /// Views that were opened.
    pub views: usize,
    /// Items that were told.
    pub items: usize,
    /// How long opening a view, and being told its answer, took: each.
    pub opened: Vec<Duration>,
}

/// The search line of what is shown from a day on.
type Line = fn(Day) -> String;

/// What is shown of a calendar.
const KINDS: [(&str, Line); 5] = [
    ("day", |first| format!("when:{}", written(first))),
    ("week", |first| days(monday(first), 7)),
    ("work week", |first| days(monday(first), 5)),
    ("month", |first| {
        let (year, month, _) = first.date();
        format!("when:{year:04}-{month:02}")
    }),
    ("list", |first| days(first, 30)),
];

fn written(day: Day) -> String {
    let (year, month, day) = day.date();
    format!("{year:04}-{month:02}-{day:02}")
}

fn monday(day: Day) -> Day {
    day.plus(-day.weekday())
}

/// So many days from this one on.
fn days(first: Day, count: i64) -> String {
    format!("when:{}..{}", written(first), written(first.plus(count - 1)))
}

/// The first day of the month that lies so many months back.
fn month_back(from: Day, back: i64) -> Day {
    let (year, month, _) = from.date();
    let months = year * 12 + month as i64 - 1 - back;
    Day::of(months.div_euclid(12), months.rem_euclid(12) as u64 + 1, 1)
}

/// Somebody who is looking.
struct Looking<'a> {
    views: &'a Views,
    settings: &'a Arc<Settings>,
    began: Instant,
    found: Browsed,
}

/// Does what a load says, and watches. `settings`: whose days these are; `set_clock`: that of the views, if a day is to go by.
///
/// # Errors
/// What the store reports.
pub fn browse(
    views: &Views,
    settings: &Arc<Settings>,
    load: &Load,
    set_clock: SetClock<'_>,
) -> Result<Browsed, Error> {
    let began = Instant::now();
    // What is noted must not look like memory that was not given back, so its pages are touched before.
    let rounds = load.repeat as usize;
    let views_of_all = rounds * (KINDS.len() * load.months as usize + load.toggles as usize);
    let nothing = Sample { at: Duration::ZERO, anonymous: 0, open: 0 };
    let found = Browsed {
        samples: touched(nothing, views_of_all + rounds + 1),
        rounds: touched(nothing, rounds),
        opened: touched(Duration::ZERO, views_of_all),
        ..Browsed::default()
    };
    let mut looking = Looking { views, settings, began, found };
    looking.note();
    for _ in 0..load.repeat {
        looking.page_back(load)?;
        looking.toggle(load)?;
        if let Some(pace) = load.day {
            looking.day(load.today, pace, set_clock)?;
        }
        views.rest();
        let round = looking.note();
        looking.found.rounds.push(round);
    }
    Ok(looking.found)
}

/// Room for so many, which is there.
fn touched<T: Clone>(like: T, count: usize) -> Vec<T> {
    // Written and forgotten: room that was only reserved has no pages yet.
    let mut room = Vec::new();
    room.resize(count, like);
    room.clear();
    room
}

impl Looking<'_> {
    /// Each kind of view is opened at the present, and again a month earlier: the one before closes when the next is there.
    fn page_back(&mut self, load: &Load) -> Result<(), Error> {
        for (kind, line) in KINDS {
            let client = format!("browse {kind}");
            let mut shown = None;
            for back in 0..load.months {
                let next = self.open(&client, &line(month_back(Day(load.today), back.into())))?;
                drop(shown.replace(next));
            }
            drop(shown);
        }
        Ok(())
    }

    fn toggle(&mut self, load: &Load) -> Result<(), Error> {
        let line = KINDS[3].1(Day(load.today));
        for number in 0..load.toggles {
            drop(self.open(&format!("clock {number}"), &line)?);
        }
        Ok(())
    }

    /// Opens a view on a search line, and takes its answer; of what is looked at in a calendar, with its occurrences.
    fn open(&mut self, client: &str, line: &str) -> Result<View, Error> {
        let began = Instant::now();
        let mut question = Question::new(Form::Line, line, Arc::clone(self.settings));
        if line.starts_with("when:") {
            question = question.with_occurrences();
        }
        let options = ViewOptions {
            client: client.into(),
            interest: Interest::Whole,
            ..ViewOptions::default()
        };
        let mut view = self.views.view(question, options)?;
        while let Some(tell) = view.tell()? {
            if let Tell::Added(items) = tell {
                self.found.items += items.len();
            }
        }
        self.found.opened.push(began.elapsed());
        self.found.views += 1;
        self.note();
        Ok(view)
    }

    /// Notes how it stands.
    fn note(&mut self) -> Sample {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let anonymous = crate::run::number(&status, "RssAnon:").unwrap_or(0) * 1024;
        let sample = Sample { at: self.began.elapsed(), anonymous, open: self.views.open_views() };
        self.found.samples.push(sample);
        sample
    }
}

impl Load {
    /// What is done, in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let times = |count: u32| match count {
            1 => "once".to_string(),
            2 => "twice".to_string(),
            count => format!("{count} times"),
        };
        let mut parts = Vec::new();
        if self.months > 0 {
            parts.push(format!(
                "a calendar paged back {} months in five kinds of views",
                self.months
            ));
        }
        if self.toggles > 0 {
            let toggled = times(self.toggles);
            parts.push(format!(
                "the present month opened and closed {toggled} by another client each"
            ));
        }
        if self.day.is_some() {
            parts.push("a working day".to_string());
        }
        let what = parts.join(", and ");
        if self.repeat == 1 { what } else { format!("{what}; all that {}", times(self.repeat)) }
    }
}

impl Browsed {
    /// Views that are open in the end, and never were closed.
    #[must_use]
    pub fn left_open(&self) -> usize {
        self.samples.last().map_or(0, |last| last.open)
    }

    /// The most views that were open at once.
    #[must_use]
    pub fn most_open(&self) -> usize {
        self.samples.iter().map(|sample| sample.open).max().unwrap_or(0)
    }

    /// Memory before, the most of it, after the first round, after the fifth (or the last before it), and after the last, in bytes.
    #[must_use]
    pub fn memory(&self) -> [u64; 5] {
        let of = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.anonymous);
        let rounds = &self.rounds;
        [
            of(self.samples.first()),
            self.samples.iter().map(|sample| sample.anonymous).max().unwrap_or(0),
            of(rounds.first()),
            of(rounds.get(4).or(rounds.last())),
            of(rounds.last()),
        ]
    }
}
