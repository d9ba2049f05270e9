//! The key figures of a log, and the comparison of two logs.

use crate::chart::MeasureUnit;
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
            "from the cache",
            share(reuse.answers.cache, reuse.answers.total()),
            MeasureUnit::Share,
        ),
        figure(
            "from an open view",
            share(reuse.answers.shared, reuse.answers.total()),
            MeasureUnit::Share,
        ),
        figure("views opened", lifetimes.opened as f64, MeasureUnit::Count),
        figure("views never closed", lifetimes.unclosed_count as f64, MeasureUnit::Count),
        figure("mean query time", cost.executed.us.mean(), MeasureUnit::Time),
        figure("maximum query time", cost.executed.us.max as f64, MeasureUnit::Time),
        figure(
            "rows visited per item",
            cost.executed.rows_per_item().unwrap_or(0.0),
            MeasureUnit::Count,
        ),
        figure(
            "peak memory of the cache",
            lifetimes.cache_residency.peak_bytes as f64,
            MeasureUnit::Bytes,
        ),
        figure(
            "peak memory, unlimited",
            cache.trials.last().map_or(0.0, |it| it.peak_bytes as f64),
            MeasureUnit::Bytes,
        ),
        figure(
            "views notified per change",
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
            format_change(a.value, b.value),
        ]
    };
    key_figures(before).into_iter().zip(key_figures(after)).map(row).collect()
}

/// Formats the change of a value: `+20 %`, `/ 3.5`.
#[must_use]
pub fn format_change(before: f64, after: f64) -> String {
    let brief = |times: f64| MeasureUnit::Count.format((times * 10.0).round() / 10.0);
    match after / before {
        _ if before == after => "same".into(),
        _ if before == 0.0 => "new".into(),
        _ if after == 0.0 => "gone".into(),
        times if times >= 2.0 => format!("x {}", brief(times)),
        times if times <= 0.5 => format!("/ {}", brief(1.0 / times)),
        times => format!("{:+.0} %", (times - 1.0) * 100.0),
    }
}
