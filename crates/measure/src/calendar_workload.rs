//! A person who pages through a calendar: the load that showed the predecessor's leak, and what it
//! does to memory.
//!
//! Every view that is opened is told its answer and closed again, in the order in which a
//! calendar's program does that. Beside it stand how many views are open and how much memory the
//! process holds, on one time axis, so that what is not given back can be seen. It asks what
//! `larder-query` answers and is no test of the answers.

mod html_report;
mod working_day;

pub use self::html_report::render_html;
pub use self::working_day::SetClockFn;

use larder_generate::dates::DayNumber;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewOptions, ViewQuery, Views,
};
use larder_query::{Error, QueryContext};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The steps of a workload, and how often each is repeated.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The calendar is opened and paged back so many months, in five kinds of views.
    pub months_back: u32,
    /// The present month is opened and closed so many times, each time by another client.
    pub month_toggles: u32,
    /// A working day goes by, each minute of it in at least so long.
    pub working_day_pace: Option<Duration>,
    /// All of that so many times.
    pub rounds: u32,
    /// The day on which it begins, counted from 1970-01-01.
    pub first_day: i64,
}

/// How it stood at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySample {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Anonymous memory of the process, in bytes.
    pub anonymous_bytes: u64,
    /// Views that were open.
    pub open_views: usize,
}

/// The result of a workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadResult {
    /// How it stood: before, after each view that was opened and when all were closed.
    pub samples: Vec<MemorySample>,
    /// How it stood when all views of a round were closed.
    pub round_ends: Vec<MemorySample>,
    /// Views that were opened.
    pub views_opened: usize,
    /// Items that were told.
    pub items_received: usize,
    /// How long opening a view, and being told its answer, took: each.
    pub open_times: Vec<Duration>,
}

/// The search line of what is shown from a day on.
type SearchLineFn = fn(DayNumber) -> String;

/// The views of a calendar: day, week, month and so on.
const CALENDAR_VIEWS: [(&str, SearchLineFn); 5] = [
    ("day", |first| format!("when:{}", format_day(first))),
    ("week", |first| day_range_search_line(week_start(first), 7)),
    ("work week", |first| day_range_search_line(week_start(first), 5)),
    ("month", |first| {
        let (year, month, _) = first.to_date();
        format!("when:{year:04}-{month:02}")
    }),
    ("list", |first| day_range_search_line(first, 30)),
];

fn format_day(day: DayNumber) -> String {
    let (year, month, day) = day.to_date();
    format!("{year:04}-{month:02}-{day:02}")
}

fn week_start(day: DayNumber) -> DayNumber {
    day.add_days(-day.weekday())
}

/// So many days from this one on.
fn day_range_search_line(first: DayNumber, count: i64) -> String {
    format!("when:{}..{}", format_day(first), format_day(first.add_days(count - 1)))
}

/// The first day of the month that lies so many months back.
fn month_start_before(from: DayNumber, back: i64) -> DayNumber {
    let (year, month, _) = from.to_date();
    let months = year * 12 + month as i64 - 1 - back;
    DayNumber::from_date(months.div_euclid(12), months.rem_euclid(12) as u64 + 1, 1)
}

/// Somebody who is looking.
struct WorkloadClient<'a> {
    views: &'a Views,
    settings: &'a Arc<QueryContext>,
    started_at: Instant,
    result: WorkloadResult,
}

/// Does what a load says, and watches. `settings`: whose days these are; `set_clock`: that of the
/// views, if a day is to go by.
///
/// # Errors
/// What the store reports.
pub fn run_workload(
    views: &Views,
    settings: &Arc<QueryContext>,
    load: &Workload,
    set_clock: SetClockFn<'_>,
) -> Result<WorkloadResult, Error> {
    let began = Instant::now();
    // The pages of the samples are touched first, so that they do not look like memory that was not
    // released.
    let rounds = load.rounds as usize;
    let views_of_all =
        rounds * (CALENDAR_VIEWS.len() * load.months_back as usize + load.month_toggles as usize);
    let nothing = MemorySample { elapsed: Duration::ZERO, anonymous_bytes: 0, open_views: 0 };
    let found = WorkloadResult {
        samples: prefault(nothing, views_of_all + rounds + 1),
        round_ends: prefault(nothing, rounds),
        open_times: prefault(Duration::ZERO, views_of_all),
        ..WorkloadResult::default()
    };
    let mut looking = WorkloadClient { views, settings, started_at: began, result: found };
    looking.take_sample();
    for _ in 0..load.rounds {
        looking.page_back(load)?;
        looking.toggle_month(load)?;
        if let Some(pace) = load.working_day_pace {
            looking.run_working_day(load.first_day, pace, set_clock)?;
        }
        views.release_memory();
        let round = looking.take_sample();
        looking.result.round_ends.push(round);
    }
    Ok(looking.result)
}

/// Room for so many, which is there.
fn prefault<T: Clone>(like: T, count: usize) -> Vec<T> {
    // Written and forgotten: room that was only reserved has no pages yet.
    let mut room = Vec::new();
    room.resize(count, like);
    room.clear();
    room
}

impl WorkloadClient<'_> {
    /// Each kind of view is opened at the present, and again a month earlier: the one before closes
    /// when the next is there.
    fn page_back(&mut self, load: &Workload) -> Result<(), Error> {
        for (kind, line) in CALENDAR_VIEWS {
            let client = format!("browse {kind}");
            let mut shown = None;
            for back in 0..load.months_back {
                let next = self.open_view(
                    &client,
                    &line(month_start_before(DayNumber(load.first_day), back.into())),
                )?;
                drop(shown.replace(next));
            }
            drop(shown);
        }
        Ok(())
    }

    fn toggle_month(&mut self, load: &Workload) -> Result<(), Error> {
        let line = CALENDAR_VIEWS[3].1(DayNumber(load.first_day));
        for number in 0..load.month_toggles {
            drop(self.open_view(&format!("clock {number}"), &line)?);
        }
        Ok(())
    }

    /// Opens a view on a search line, and takes its answer; of what is looked at in a calendar,
    /// with its occurrences.
    fn open_view(&mut self, client: &str, line: &str) -> Result<View, Error> {
        let began = Instant::now();
        let mut question = ViewQuery::new(QuerySyntax::Line, line, Arc::clone(self.settings));
        if line.starts_with("when:") {
            question = question.with_occurrences();
        }
        let options = ViewOptions {
            client: client.into(),
            interest: ViewInterest::HeadsAndBytes,
            ..ViewOptions::default()
        };
        let mut view = self.views.open_view(question, options)?;
        while let Some(tell) = view.try_next()? {
            if let ViewEvent::Added(items) = tell {
                self.result.items_received += items.len();
            }
        }
        self.result.open_times.push(began.elapsed());
        self.result.views_opened += 1;
        self.take_sample();
        Ok(view)
    }

    /// Notes how it stands.
    fn take_sample(&mut self) -> MemorySample {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let anonymous = crate::process_cost::proc_number(&status, "RssAnon:").unwrap_or(0) * 1024;
        let sample = MemorySample {
            elapsed: self.started_at.elapsed(),
            anonymous_bytes: anonymous,
            open_views: self.views.count_open_views(),
        };
        self.result.samples.push(sample);
        sample
    }
}

impl Workload {
    /// Describes the workload in a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        let times = |count: u32| match count {
            1 => "once".to_string(),
            2 => "twice".to_string(),
            count => format!("{count} times"),
        };
        let mut parts = Vec::new();
        if self.months_back > 0 {
            parts.push(format!(
                "a calendar paged back {} months in five kinds of views",
                self.months_back
            ));
        }
        if self.month_toggles > 0 {
            let toggled = times(self.month_toggles);
            parts.push(format!(
                "the present month opened and closed {toggled} by another client each"
            ));
        }
        if self.working_day_pace.is_some() {
            parts.push("a working day".to_string());
        }
        let what = parts.join(", and ");
        if self.rounds == 1 { what } else { format!("{what}; all that {}", times(self.rounds)) }
    }
}

impl WorkloadResult {
    /// Views that are open in the end, and never were closed.
    #[must_use]
    pub fn views_left_open(&self) -> usize {
        self.samples.last().map_or(0, |last| last.open_views)
    }

    /// The most views that were open at once.
    #[must_use]
    pub fn peak_open_views(&self) -> usize {
        self.samples.iter().map(|sample| sample.open_views).max().unwrap_or(0)
    }

    /// Memory before, the most of it, after the first round, after the fifth (or the last before
    /// it), and after the last, in bytes.
    #[must_use]
    pub fn memory_stages(&self) -> [u64; 5] {
        let of = |sample: Option<&MemorySample>| sample.map_or(0, |sample| sample.anonymous_bytes);
        let rounds = &self.round_ends;
        [
            of(self.samples.first()),
            self.samples.iter().map(|sample| sample.anonymous_bytes).max().unwrap_or(0),
            of(rounds.first()),
            of(rounds.get(4).or(rounds.last())),
            of(rounds.last()),
        ]
    }
}
