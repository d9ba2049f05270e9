//! The lifetimes of views, and the views that were never closed.

use crate::query_log::cache_residency::CacheResidency;
use crate::query_log::histogram::Histogram;
use crate::query_log::interner::{InternedQuery, LogInterner, LoggedQuery};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// The number of closed views in the chart; the chart shows the views with the longest lifetimes.
const MAX_LONGEST_VIEWS: usize = 300;

/// The end of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewEnd {
    /// The process ended normally without closing the view.
    Leaked,
    /// The process died.
    ProcessDied,
    /// The view was open when the log ended.
    Open,
    /// The view was closed.
    Closed,
}

impl ViewEnd {
    /// Describes the end for a legend.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            ViewEnd::Leaked => "leaked: the process ended without closing it",
            ViewEnd::ProcessDied => "open when its process died",
            ViewEnd::Open => "still open at the end of the log",
            ViewEnd::Closed => "closed",
        }
    }

    /// Returns the label of the end in a table.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            ViewEnd::Leaked => "leaked",
            ViewEnd::ProcessDied => "process died",
            ViewEnd::Open => "open",
            ViewEnd::Closed => "closed",
        }
    }
}

/// The lifetime of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ViewLifetime {
    /// The client that opened it.
    pub client: String,
    /// The pid of its process.
    pub pid: u64,
    /// Its number in the process.
    pub view: u64,
    /// The cause of its end.
    pub end: ViewEnd,
    /// The time of its opening, in microseconds since 1970.
    #[serde(rename = "opened_at_us")]
    pub opened_at: i64,
    /// The time of its end, or of the last event of its process or of the log.
    #[serde(skip)]
    pub ended_at: i64,
    /// The lifetime in microseconds.
    pub duration_us: u64,
    /// The query of the view.
    #[serde(flatten)]
    pub query: LoggedQuery,
}

/// The views of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ClientLifetimes {
    /// The name of the client.
    pub client: String,
    /// The number of views it opened.
    pub opened: u64,
    /// Views never closed whose process ended normally.
    pub leaked: u64,
    /// Views open when their process died.
    pub process_died: u64,
    /// Views open when the log ended.
    pub open_at_end: u64,
    /// The lifetimes of closed views, in microseconds.
    pub lifetimes_us: Histogram,
}

/// The lifetimes of views and of cached answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LifetimeReport {
    /// The number of views opened.
    pub opened: u64,
    /// The number of views closed.
    pub closed: u64,
    /// The number of views never closed, for any reason.
    pub unclosed_count: u64,
    /// Views never closed whose process ended normally.
    pub leaked: u64,
    /// Views open when their process died.
    pub process_died: u64,
    /// Views open when the log ended.
    pub open_at_end: u64,
    /// The maximum number of views open at a time.
    pub peak_open: u64,
    /// The lifetimes of closed views, in microseconds.
    pub lifetimes_us: Histogram,
    /// The views that were never closed: leaks first, then by the time of opening.
    pub unclosed: Vec<ViewLifetime>,
    /// The closed views with the longest lifetimes, by the time of opening.
    #[serde(skip)]
    pub longest: Vec<ViewLifetime>,
    /// The views by client, the clients with the most unclosed views first.
    pub clients: Vec<ClientLifetimes>,
    /// The times of the first and the last event of the log.
    #[serde(skip)]
    pub time_span: (i64, i64),
    /// The lifetimes of cached answers.
    pub cache_residency: CacheResidency,
}

/// An open view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenView {
    opened_at: i64,
    pid: u64,
    view: u64,
    client: u32,
    query: u32,
}

/// The state while the log is read.
#[derive(Debug, Default)]
pub(super) struct ViewTracker {
    /// The open views of each process, by number.
    open_views: HashMap<u32, HashMap<u64, OpenView>>,
    open_view_count: u64,
    opened: u64,
    peak_open: u64,
    lifetimes_us: Histogram,
    clients: BTreeMap<u32, ClientLifetimes>,
    unclosed: Vec<(ViewEnd, OpenView, i64)>,
    longest: BinaryHeap<(Reverse<u64>, OpenView, i64)>,
}

impl ViewTracker {
    pub(super) fn open_view(
        &mut self,
        process: u32,
        pid: u64,
        at: i64,
        view: u64,
        ask: InternedQuery,
    ) {
        let open = OpenView { opened_at: at, pid, view, client: ask.client, query: ask.query };
        self.open_view_count += 1;
        if let Some(former) = self.open_views.entry(process).or_default().insert(view, open) {
            // The number was reused although no close was recorded.
            self.add_unclosed(ViewEnd::ProcessDied, former, at);
        }
        self.opened += 1;
        self.peak_open = self.peak_open.max(self.open_view_count);
        self.clients.entry(ask.client).or_default().opened += 1;
    }

    pub(super) fn close_view(&mut self, process: u32, at: i64, view: u64) {
        let views = self.open_views.get_mut(&process);
        let Some(open) = views.and_then(|views| views.remove(&view)) else { return };
        self.open_view_count -= 1;
        let life = u64::try_from(at.saturating_sub(open.opened_at)).unwrap_or(0);
        self.lifetimes_us.add(life);
        self.clients.entry(open.client).or_default().lifetimes_us.add(life);
        self.longest.push((Reverse(life), open, at));
        if self.longest.len() > MAX_LONGEST_VIEWS {
            self.longest.pop();
        }
    }

    /// Ends the open views of a process that has ended.
    pub(super) fn end_process(&mut self, process: u32, at: i64, end: ViewEnd) {
        for open in self.open_views.remove(&process).unwrap_or_default().into_values() {
            self.add_unclosed(end, open, at);
        }
    }

    /// Returns the number of open views of a process.
    pub(super) fn open_view_count(&self, process: u32) -> u64 {
        self.open_views.get(&process).map_or(0, |views| views.len() as u64)
    }

    fn add_unclosed(&mut self, end: ViewEnd, open: OpenView, at: i64) {
        self.open_view_count -= 1;
        let client = self.clients.entry(open.client).or_default();
        match end {
            ViewEnd::Leaked => client.leaked += 1,
            ViewEnd::ProcessDied => client.process_died += 1,
            ViewEnd::Open => client.open_at_end += 1,
            ViewEnd::Closed => {}
        }
        self.unclosed.push((end, open, at));
    }

    pub(super) fn finish(
        mut self,
        names: &LogInterner,
        time: (i64, i64),
        kept: CacheResidency,
    ) -> LifetimeReport {
        let life = |end, open: OpenView, ended: i64| ViewLifetime {
            pid: open.pid,
            view: open.view,
            client: names.text(open.client),
            query: names.query(open.query),
            opened_at: open.opened_at,
            ended_at: ended,
            duration_us: u64::try_from(ended.saturating_sub(open.opened_at)).unwrap_or(0),
            end,
        };
        self.unclosed.sort_unstable();
        let mut longest: Vec<(OpenView, i64)> =
            self.longest.into_iter().map(|(_, open, at)| (open, at)).collect();
        longest.sort_unstable();
        let count = |end| self.unclosed.iter().filter(|(how, ..)| *how == end).count() as u64;
        let name = |(client, it)| ClientLifetimes { client: names.text(client), ..it };
        let mut clients: Vec<ClientLifetimes> = self.clients.into_iter().map(name).collect();
        clients.sort_by_key(|it| Reverse((it.leaked, it.process_died + it.open_at_end, it.opened)));
        LifetimeReport {
            opened: self.opened,
            closed: self.lifetimes_us.count,
            unclosed_count: self.unclosed.len() as u64,
            leaked: count(ViewEnd::Leaked),
            process_died: count(ViewEnd::ProcessDied),
            open_at_end: count(ViewEnd::Open),
            peak_open: self.peak_open,
            lifetimes_us: self.lifetimes_us,
            clients,
            unclosed: self.unclosed.iter().map(|&(end, open, at)| life(end, open, at)).collect(),
            longest: longest
                .into_iter()
                .map(|(open, at)| life(ViewEnd::Closed, open, at))
                .collect(),
            time_span: time,
            cache_residency: kept,
        }
    }
}
