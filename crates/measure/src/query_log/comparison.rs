//! The key figures of a log, and the comparison of two logs.

use crate::chart::{BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit};
use crate::query_log::QueryLogReport;

/// A key figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyFigure {
    /// The name of the figure.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: MeasureUnit,
}

/// Returns the key figures of a log.
#[must_use]
pub fn key_figures(report: &QueryLogReport) -> Vec<KeyFigure> {
    let QueryLogReport { reuse, lifetimes, cost, cache, fan_out, .. } = report;
    let figure = |name, value, unit| KeyFigure { name, value, unit };
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    vec![
        figure("answers", reuse.answers.total() as f64, MeasureUnit::Count),
        figure("different queries", reuse.query_count as f64, MeasureUnit::Count),
        figure(
            "answers from the cache",
            share(reuse.answers.cache, reuse.answers.total()),
            MeasureUnit::Share,
        ),
        figure(
            "answers from an open view",
            share(reuse.answers.shared, reuse.answers.total()),
            MeasureUnit::Share,
        ),
        figure("views opened", lifetimes.opened as f64, MeasureUnit::Count),
        figure("views never closed", lifetimes.unclosed_count as f64, MeasureUnit::Count),
        figure("mean time of a query", cost.executed.us.mean(), MeasureUnit::Time),
        figure("time of the slowest query", cost.executed.us.max as f64, MeasureUnit::Time),
        figure(
            "rows read for each item found",
            cost.executed.rows_per_item().unwrap_or(0.0),
            MeasureUnit::Count,
        ),
        figure(
            "peak memory of the cache",
            lifetimes.cache_residency.peak_bytes as f64,
            MeasureUnit::Bytes,
        ),
        figure(
            "peak memory of a cache without limit",
            cache.trials.last().map_or(0.0, |it| it.peak_bytes as f64),
            MeasureUnit::Bytes,
        ),
        figure(
            "views notified of each change",
            share(fan_out.views_notified, fan_out.changes),
            MeasureUnit::Count,
        ),
    ]
}

/// Returns the key figures of two logs: the name, the values before and after, and the change.
#[must_use]
pub fn compare_reports(before: &QueryLogReport, after: &QueryLogReport) -> Vec<[String; 4]> {
    let row = |(a, b): (KeyFigure, KeyFigure)| {
        [
            a.name.to_string(),
            a.unit.format(a.value),
            b.unit.format(b.value),
            format_change(a.value, b.value, a.unit),
        ]
    };
    key_figures(before).into_iter().zip(key_figures(after)).map(row).collect()
}

/// Formats the change of a value: `+20 %`, `3.5 times faster`, `2 times more`.
#[must_use]
pub fn format_change(before: f64, after: f64, unit: MeasureUnit) -> String {
    let (less, more) = match unit {
        MeasureUnit::Time | MeasureUnit::Nanoseconds => ("faster", "slower"),
        _ => ("less", "more"),
    };
    let brief = |times: f64| MeasureUnit::Count.format((times * 10.0).round() / 10.0);
    match after / before {
        _ if before == after => "same".into(),
        _ if before == 0.0 => "was 0".into(),
        _ if after == 0.0 => "now 0".into(),
        times if times >= 2.0 => format!("{} times {more}", brief(times)),
        times if times <= 0.5 => format!("{} times {less}", brief(1.0 / times)),
        times => format!("{:+.0} %", (times - 1.0) * 100.0),
    }
}

/// Returns the chart of the key figures of two logs: each as a part of its larger value.
pub(super) fn comparison_chart(
    (before_name, before): (&str, &QueryLogReport),
    (after_name, after): (&str, &QueryLogReport),
) -> BarChart<'static> {
    let bars = |(a, b): (KeyFigure, KeyFigure)| {
        let part = |value: f64| value / a.value.max(b.value);
        let bar = |name: String, values: Vec<f64>, value: f64| ChartBar {
            name,
            x_start: 0.0,
            values,
            label: a.unit.format(value),
        };
        [
            bar(a.name.to_string(), vec![part(a.value), 0.0], a.value),
            bar(String::new(), vec![0.0, part(b.value)], b.value),
        ]
    };
    let figures = key_figures(before).into_iter().zip(key_figures(after));
    let figures = figures.filter(|(a, b)| a.value.max(b.value) > 0.0);
    BarChart {
        x_axis: ChartAxis::linear("part of the larger value", MeasureUnit::Share),
        series: vec![
            (ColourRole::Reference, before_name.to_string()),
            (ColourRole::First, after_name.to_string()),
        ],
        bars: figures.flat_map(bars).collect(),
    }
}
