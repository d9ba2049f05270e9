//! The section on the lifetimes of views and cached answers, with the chart of lifelines.

use crate::chart::{
    ChartAxis, ColourRole, Lifeline, LifelineBand, LifelineChart, MeasureUnit, PhaseAxes,
    StepChart, StepLine, UtcOffsetFn,
};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::cache_residency::CachedLifetimes;
use crate::query_log::histogram::Histogram;
use crate::query_log::html_report::{
    MAX_TABLE_ROWS, count_cell, duration_cell, format_short_query, shorten, time_axis,
};
use crate::query_log::log_reader::LoggedEvictionReason;
use crate::query_log::text_report;
use crate::query_log::view_lifetimes::{ClientLifetimes, LifetimeReport, ViewEnd, ViewLifetime};
use std::collections::HashMap;

/// The maximum number of lifelines of closed views, and of views that were never closed, in the
/// chart.
const MAX_LIFELINES_PER_END: usize = 300;
/// The maximum number of clients with their own band.
const MAX_BANDS: usize = 16;

/// Returns the cell for a lifetime, or `-` if the histogram is empty.
fn lifetime_cell(lives: &Histogram, us: u64) -> TableCell {
    if lives.count > 0 { duration_cell(us as f64) } else { TableCell::Number("-".into()) }
}

fn end_colour(end: ViewEnd) -> ColourRole {
    match end {
        ViewEnd::Leaked => ColourRole::Error,
        ViewEnd::ProcessDied => ColourRole::Warning,
        ViewEnd::Open => ColourRole::Third,
        ViewEnd::Closed => ColourRole::First,
    }
}

pub(super) fn add_lifetimes(page: &mut HtmlPage, it: &LifetimeReport, clock: UtcOffsetFn<'_>) {
    if it.leaked > 0 {
        page.add_warning(&text_report::describe_lifetimes(it));
    } else {
        page.add_paragraph(&text_report::describe_lifetimes(it));
    }
    page.add_paragraph(&text_report::describe_cache_residency(it));
    if it.opened > 0 {
        add_lifeline_chart(page, it, clock);
    }
    let row = |life: &ViewLifetime| {
        vec![
            match life.end {
                ViewEnd::Leaked => TableCell::Warning(ViewEnd::Leaked.label().into()),
                end => TableCell::Text(end.label().into()),
            },
            TableCell::Text(life.client.clone()),
            TableCell::Number(text_report::format_log_time(life.opened_at, it.time_span, clock)),
            duration_cell(life.duration_us as f64),
            TableCell::Text(text_report::format_query_target(&life.query)),
            TableCell::Code(format_short_query(&life.query.query)),
        ]
    };
    let rows: Vec<Vec<TableCell>> = it.unclosed.iter().take(4 * MAX_TABLE_ROWS).map(row).collect();
    let title = match it.unclosed.len() - rows.len() {
        0 => "Never closed".to_string(),
        more => format!("Never closed (and {} more)", MeasureUnit::Count.format(more as f64)),
    };
    page.add_table(&title, &["", "client", "opened", "open for", "collection", "query"], &rows);
    let row = |client: &ClientLifetimes| {
        let never = client.leaked + client.process_died + client.open_at_end;
        let left = MeasureUnit::Count.format(never as f64);
        vec![
            TableCell::Text(client.client.clone()),
            count_cell(client.opened),
            if client.leaked > 0 { TableCell::Warning(left) } else { TableCell::Text(left) },
            lifetime_cell(&client.lifetimes_us, client.lifetimes_us.quantile(0.5)),
            lifetime_cell(&client.lifetimes_us, client.lifetimes_us.max),
        ]
    };
    let rows: Vec<Vec<TableCell>> = it.clients.iter().take(MAX_TABLE_ROWS).map(row).collect();
    let head = ["client", "opened", "never closed", "median lifetime", "longest"];
    page.add_table("Views by client", &head, &rows);
    if it.lifetimes_us.count + it.cache_residency.answers > 0 {
        add_lifetime_curves(page, it);
    }
}

fn add_lifeline_chart(page: &mut HtmlPage, it: &LifetimeReport, clock: UtcOffsetFn<'_>) {
    // Of too many views every second, third, ... is drawn, so that their growth over time is
    // visible.
    let visit = it.unclosed.len().div_ceil(MAX_LIFELINES_PER_END).max(1);
    let shown =
        || it.unclosed.iter().step_by(visit).chain(it.longest.iter().take(MAX_LIFELINES_PER_END));
    let line = |life: &&ViewLifetime| Lifeline {
        start: life.opened_at as f64,
        end: life.ended_at as f64,
        colour: end_colour(life.end),
        is_open_ended: life.end != ViewEnd::Closed,
        tooltip: shorten(&text_report::describe_view_lifetime(life, it.time_span, clock)),
    };
    let band = |(name, mut lives): (String, Vec<&ViewLifetime>)| {
        lives.sort_by_key(|life| (life.opened_at, life.view));
        LifelineBand { name, lifelines: lives.iter().map(line).collect() }
    };
    let ends = [ViewEnd::Leaked, ViewEnd::ProcessDied, ViewEnd::Open, ViewEnd::Closed];
    let shown_ends = ends.into_iter().filter(|end| shown().any(|life| life.end == *end));
    let chart = LifelineChart {
        x_axis: time_axis(it.time_span, clock),
        x_range: (it.time_span.0 as f64, it.time_span.1 as f64),
        legend_entries: shown_ends
            .map(|end| (end_colour(end), end.description().to_string()))
            .collect(),
        bands: group_by_client(it, shown()).into_iter().map(band).collect(),
    };
    let number = shown().count() as u64;
    let mut about =
        "Each line is a view, from its opening to its end, grouped by client.".to_string();
    if number < it.opened {
        let all = text_report::format_count(it.opened, "view");
        about.push_str(&format!(" Shown are {number} of {all}: "));
        about.push_str(match visit {
            1 => "the views that were never closed, and the longest of the others.",
            _ => "a sample of the views that were never closed, and the longest of the others.",
        });
    }
    page.add_chart("View lifetimes", &about, &chart);
}

/// Groups lifelines by client, the clients with the most unclosed views first. If there are too
/// many clients, the last ones share a band.
fn group_by_client<'a>(
    it: &'a LifetimeReport,
    shown: impl Iterator<Item = &'a ViewLifetime>,
) -> Vec<(String, Vec<&'a ViewLifetime>)> {
    let mut by_client: HashMap<&str, Vec<&ViewLifetime>> = HashMap::new();
    for life in shown {
        by_client.entry(&life.client).or_default().push(life);
    }
    let order = it.clients.iter().filter_map(|it| by_client.remove_entry(it.client.as_str()));
    let mut all: Vec<(String, Vec<&ViewLifetime>)> =
        order.map(|(name, lives)| (name.to_string(), lives)).collect();
    if all.len() > MAX_BANDS {
        let others = all.split_off(MAX_BANDS - 1);
        let name = text_report::format_count(others.len() as u64, "other");
        all.push((name, others.into_iter().flat_map(|(_, lives)| lives).collect()));
    }
    all
}

/// Adds the cumulative distributions of the lifetimes of views and of cached answers.
fn add_lifetime_curves(page: &mut HtmlPage, it: &LifetimeReport) {
    let CachedLifetimes { evicted, ended } = &it.cache_residency.lifetimes_us;
    let evicted = |reason: LoggedEvictionReason| evicted.get(&reason).cloned().unwrap_or_default();
    let all = [
        ("views, until closed", ColourRole::First, it.lifetimes_us.clone()),
        ("cached answers, until stale", ColourRole::Error, evicted(LoggedEvictionReason::Stale)),
        (
            "cached answers, until evicted for memory",
            ColourRole::Warning,
            evicted(LoggedEvictionReason::Budget),
        ),
        ("cached answers, never evicted", ColourRole::Reference, ended.clone()),
    ];
    let distributions: Vec<_> = all.into_iter().filter(|(.., lives)| lives.count > 0).collect();
    let ends = || distributions.iter().map(|(.., lives)| lives.max as f64);
    let starts = distributions.iter().map(|(.., lives)| lives.quantile(0.0) as f64);
    let line = |(name, tone, lives): &(&str, ColourRole, Histogram)| StepLine {
        name: format!("{name} ({})", MeasureUnit::Count.format(lives.count as f64)),
        colour: *tone,
        is_filled: false,
        points: lives.cumulative_shares(),
        lows: Vec::new(),
        end: None,
    };
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::log("lifetime", MeasureUnit::Time),
            x_range: (starts.fold(f64::MAX, f64::min), ends().fold(1.0, f64::max)),
            y_axis: ChartAxis::linear("", MeasureUnit::Share),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: distributions.iter().map(line).collect(),
    };
    let about = "The share of views or answers whose lifetime is at most the time on the axis.";
    page.add_chart("Distribution of lifetimes", about, &chart);
}
