//! The HTML report of a query log: a section of texts, charts and tables for each part.
//!
//! The sections of two logs stand side by side, the baseline first. Each section has a module.

mod cache_simulation;
mod cost;
mod reuse;
mod view_lifetimes;

use self::cache_simulation::{add_cache_simulation, add_fan_out};
use self::cost::{add_cost, add_cost_comparison};
use self::reuse::add_reuse;
use self::view_lifetimes::add_lifetimes;
use crate::chart::{ChartAxis, MeasureUnit, UtcOffsetFn, format_date};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::QueryLogReport;
use crate::query_log::comparison::{KeyFigure, compare_reports, comparison_chart, key_figures};
use crate::query_log::text_report;

/// A log's name and its report.
pub type NamedReport<'a> = (&'a str, &'a QueryLogReport);

/// For whom the page is.
const AUDIENCE: &str = "For developers of programs that query Larder: which queries were run, what \
                        they cost, and how often an answer was there already.";

/// The usual number of rows of a table.
const MAX_TABLE_ROWS: usize = 12;

/// Renders the report of a log, or of a baseline and a second log. `clock` returns the offset of
/// local time.
#[must_use]
pub fn render_html(
    log: NamedReport<'_>,
    after: Option<NamedReport<'_>>,
    clock: UtcOffsetFn<'_>,
) -> String {
    let title = match after {
        None => format!("Query log: {}", log.0),
        Some((after, _)) => format!("Query logs: {} and {after}", log.0),
    };
    let mut page = HtmlPage::new(&title);
    page.add_audience(AUDIENCE);
    let logs: Vec<NamedReport<'_>> = [Some(log), after].into_iter().flatten().collect();
    add_summary(&mut page, &logs, clock);
    add_section(&mut page, &logs, "Queries and repetition", &|page, it| {
        add_reuse(page, &it.reuse, it.time_span, clock);
    });
    add_section(&mut page, &logs, "Lifetimes of views and cached answers", &|page, it| {
        add_lifetimes(page, &it.lifetimes, clock);
    });
    add_section(&mut page, &logs, "Query time", &|page, it| {
        add_cost(page, &it.cost);
    });
    if let Some(after) = after {
        add_cost_comparison(&mut page, log, after);
    }
    add_section(&mut page, &logs, "Value of the answer cache", &|page, it| {
        add_cache_simulation(page, &it.cache);
    });
    add_section(&mut page, &logs, "Views notified by a change", &|page, it| {
        add_fan_out(page, &it.fan_out);
    });
    page.into_html()
}

fn add_section(
    page: &mut HtmlPage,
    logs: &[NamedReport<'_>],
    title: &str,
    visit: &dyn Fn(&mut HtmlPage, &QueryLogReport),
) {
    page.add_heading(title);
    for (name, report) in logs {
        if logs.len() > 1 {
            page.add_subheading(name);
        }
        visit(page, report);
    }
}

fn count_cell(value: u64) -> TableCell {
    TableCell::Number(MeasureUnit::Count.format(value as f64))
}

fn duration_cell(us: f64) -> TableCell {
    TableCell::Number(text_report::format_duration(us))
}

/// Formats a query, cut to a readable length.
fn format_short_query(text: &str) -> String {
    shorten(&text_report::format_query(text))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(240) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// Adds the main figures of each log, and its unreadable lines.
fn add_summary(page: &mut HtmlPage, logs: &[NamedReport<'_>], clock: UtcOffsetFn<'_>) {
    for (name, report) in logs {
        let prefix = if logs.len() > 1 { format!("{name}: ") } else { String::new() };
        page.add_paragraph(&format!("{prefix}{}", text_report::describe_log(report, clock)));
        if report.bad_lines.lines > 0 {
            let bad = text_report::format_count(report.bad_lines.lines, "unreadable line");
            page.add_warning(&format!("The figures do not include {bad}."));
        }
    }
    match logs {
        [(_, report)] => {
            let figures: Vec<(String, String)> = key_figures(report)
                .into_iter()
                .map(|KeyFigure { name, value, unit }| (unit.format(value), name.to_string()))
                .collect();
            page.add_key_figures(&figures);
        }
        [(before, a), (after, b)] => {
            let row = |it: &[String; 4]| {
                let [name, rest @ ..] = it;
                let cells = rest.iter().cloned().map(TableCell::Number);
                [TableCell::Text(name.clone())].into_iter().chain(cells).collect()
            };
            let rows: Vec<Vec<TableCell>> = compare_reports(a, b).iter().map(row).collect();
            let chart = comparison_chart((before, a), (after, b));
            let about = "Two bars for each figure; the larger of both has the full length.";
            page.add_chart("The figures of both logs", about, &chart);
            page.add_table("Before and after", &["", before, after, "change"], &rows);
        }
        _ => {}
    }
}

/// Returns the time axis of the log, named after its days.
fn time_axis((from, to): (i64, i64), clock: UtcOffsetFn<'_>) -> ChartAxis<'_> {
    let (first, last) = (format_date(from, clock), format_date(to, clock));
    let name = if first == last { format!("time, {first}") } else { format!("{first} to {last}") };
    ChartAxis::time(&name, clock)
}
