//! A calendar workload: a user pages through a calendar. Measures its effect on memory.
//!
//! This workload exposed the memory leak of evolution-data-server. Each view is opened, delivers
//! its items and is closed, in the order of a calendar program. The number of open views and the
//! memory of the process are sampled on one time axis, so that memory that is not released is
//! visible. The workload does not check the answers of `larder-query`.

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

/// The steps of a workload and their repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The number of months to page back, in each of five kinds of view.
    pub months_back: u32,
    /// How often the current month is opened and closed, each time by another client.
    pub month_toggles: u32,
    /// Whether to simulate a working day; the minimum time for each of its minutes.
    pub working_day_pace: Option<Duration>,
    /// The number of repetitions of all steps.
    pub rounds: u32,
    /// The day on which the workload begins, counted from 1970-01-01.
    pub first_day: i64,
}

/// Memory and open views at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySample {
    /// The time since the start.
    pub elapsed: Duration,
    /// The anonymous memory of the process, in bytes.
    pub anonymous_bytes: u64,
    /// The number of open views.
    pub open_views: usize,
}

/// The result of a workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadResult {
    /// The samples: one at the start, one after each opened view, one after the views of a round
    /// are closed.
    pub samples: Vec<MemorySample>,
    /// The samples after the views of each round are closed.
    pub round_ends: Vec<MemorySample>,
    /// The number of views opened.
    pub views_opened: usize,
    /// The number of items received.
    pub items_received: usize,
    /// The time to open each view and receive its items.
    pub open_times: Vec<Duration>,
}

/// Returns the search line of a calendar view that begins on a day.
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

/// Returns the search line for `count` days from `first`.
fn day_range_search_line(first: DayNumber, count: i64) -> String {
    format!("when:{}..{}", format_day(first), format_day(first.add_days(count - 1)))
}

/// Returns the first day of the month `back` months before `from`.
fn month_start_before(from: DayNumber, back: i64) -> DayNumber {
    let (year, month, _) = from.to_date();
    let months = year * 12 + month as i64 - 1 - back;
    DayNumber::from_date(months.div_euclid(12), months.rem_euclid(12) as u64 + 1, 1)
}

/// The simulated user.
struct WorkloadClient<'a> {
    views: &'a Views,
    settings: &'a Arc<QueryContext>,
    started_at: Instant,
    result: WorkloadResult,
}

/// Runs a workload and samples its memory. `settings` has the time zone of the days; `set_clock`
/// sets the clock of the views during a working day.
///
/// # Errors
/// Any error of the store.
pub fn run_workload(
    views: &Views,
    settings: &Arc<QueryContext>,
    load: &Workload,
    set_clock: SetClockFn<'_>,
) -> Result<WorkloadResult, Error> {
    let began = Instant::now();
    // The pages of the samples are allocated first, so that they do not count as memory of the
    // views.
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

/// Returns an empty vector whose capacity is resident.
fn prefault<T: Clone>(like: T, count: usize) -> Vec<T> {
    // Reserved capacity has no pages until it is written.
    let mut room = Vec::new();
    room.resize(count, like);
    room.clear();
    room
}

impl WorkloadClient<'_> {
    /// Opens each kind of view at the current month and at each earlier one. A view is closed after
    /// the next one is open.
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

    /// Opens a view on a search line and receives its items; with occurrences, if the line has a
    /// time range.
    fn open_view(&mut self, client: &str, line: &str) -> Result<View, Error> {
        let began = Instant::now();
        let mut query = ViewQuery::new(QuerySyntax::Line, line, Arc::clone(self.settings));
        if line.starts_with("when:") {
            query = query.with_occurrences();
        }
        let options = ViewOptions {
            client: client.into(),
            interest: ViewInterest::MetaAndBytes,
            ..ViewOptions::default()
        };
        let mut view = self.views.open_view(query, options)?;
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

    /// Samples memory and open views.
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
                "the current month opened and closed {toggled}, each time by another client"
            ));
        }
        if self.working_day_pace.is_some() {
            parts.push("a working day".to_string());
        }
        let steps = parts.join(", and ");
        if self.rounds == 1 { steps } else { format!("{steps}; {} rounds", self.rounds) }
    }
}

impl WorkloadResult {
    /// Returns the number of views that are still open at the end.
    #[must_use]
    pub fn views_left_open(&self) -> usize {
        self.samples.last().map_or(0, |last| last.open_views)
    }

    /// Returns the maximum number of views open at a time.
    #[must_use]
    pub fn peak_open_views(&self) -> usize {
        self.samples.iter().map(|sample| sample.open_views).max().unwrap_or(0)
    }

    /// Returns memory in bytes: at the start, at its peak, after the first round, after the fifth
    /// (or the last before it), and after the last.
    #[must_use]
    pub fn memory_stages(&self) -> [u64; 5] {
        let bytes =
            |sample: Option<&MemorySample>| sample.map_or(0, |sample| sample.anonymous_bytes);
        let rounds = &self.round_ends;
        [
            bytes(self.samples.first()),
            self.samples.iter().map(|sample| sample.anonymous_bytes).max().unwrap_or(0),
            bytes(rounds.first()),
            bytes(rounds.get(4).or(rounds.last())),
            bytes(rounds.last()),
        ]
    }
}
