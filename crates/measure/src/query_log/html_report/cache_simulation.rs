//! The sections on the value of the cache and on the views notified by a change.

use crate::chart::{BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::cache_simulation::{BudgetTrial, CacheReport};
use crate::query_log::fan_out::{CollectionFanOut, DeliveredItems, FanOutReport, NotifiedBucket};
use crate::query_log::html_report::{MAX_TABLE_ROWS, count_cell, duration_cell};
use crate::query_log::text_report;

pub(super) fn add_cache_simulation(page: &mut HtmlPage, it: &CacheReport) {
    page.add_paragraph(&text_report::describe_cache(it));
    if it.answers == 0 {
        return;
    }
    let bar = |trial: &BudgetTrial| ChartBar {
        name: text_report::format_budget(trial.budget_bytes),
        x_start: 0.0,
        values: vec![trial.hit_rate],
        label: format!(
            "{}, peak {}",
            MeasureUnit::Share.format(trial.hit_rate),
            MeasureUnit::Bytes.format(trial.peak_bytes as f64)
        ),
    };
    let chart = BarChart {
        x_axis: ChartAxis::linear("hit rate", MeasureUnit::Share),
        series: vec![(ColourRole::First, "cache hits".into())],
        bars: it.trials.iter().map(bar).collect(),
    };
    let about =
        "The log replayed with other budgets. Beside each bar: the hit rate and the peak memory.";
    page.add_chart("Hit rate by cache budget", about, &chart);
    let row = |trial: &BudgetTrial, name: String| {
        vec![
            TableCell::Text(name),
            count_cell(trial.hits),
            TableCell::Number(MeasureUnit::Share.format(trial.hit_rate)),
            TableCell::Number(MeasureUnit::Bytes.format(trial.peak_bytes as f64)),
            duration_cell(trial.saved_us as f64),
            count_cell(trial.stale_answers),
            count_cell(trial.evicted_answers),
        ]
    };
    let rows =
        it.trials.iter().map(|trial| row(trial, text_report::format_budget(trial.budget_bytes)));
    let recorded = it.recorded.iter().map(|trial| row(trial, "recorded".into()));
    let rows: Vec<Vec<TableCell>> = rows.chain(recorded).collect();
    let head =
        ["budget", "cache hits", "hit rate", "peak memory", "time saved", "stale", "evicted"];
    page.add_table("Other cache budgets", &head, &rows);
    if let Some(text) = text_report::describe_replay_accuracy(it) {
        page.add_paragraph(&text);
    }
}

pub(super) fn add_fan_out(page: &mut HtmlPage, it: &FanOutReport) {
    page.add_paragraph(&text_report::describe_fan_out(it));
    if it.changes == 0 {
        return;
    }
    let bar = |bucket: &NotifiedBucket| ChartBar {
        name: text_report::format_view_count(bucket.min, bucket.max),
        x_start: 0.0,
        values: vec![bucket.changes as f64],
        label: text_report::format_count(bucket.changes, "change"),
    };
    let chart = BarChart {
        x_axis: ChartAxis::linear("changes", MeasureUnit::Count),
        series: vec![(ColourRole::First, "changes".into())],
        bars: it.views_notified_buckets.iter().map(bar).collect(),
    };
    page.add_chart(
        "Views notified by each change",
        "Each row: the changes that notified this many views.",
        &chart,
    );
    let row = |group: &CollectionFanOut| {
        let mean = |sum: u64| {
            TableCell::Number(
                MeasureUnit::Count
                    .format((sum as f64 / group.changes.max(1) as f64 * 10.0).round() / 10.0),
            )
        };
        let any = |name: &Option<String>| TableCell::Text(name.clone().unwrap_or("any".into()));
        vec![
            any(&group.collection),
            any(&group.kind),
            count_cell(group.changes),
            mean(group.queries_tested),
            mean(group.views_notified),
            count_cell(group.max_views_notified),
        ]
    };
    let rows: Vec<Vec<TableCell>> =
        it.collections.iter().take(2 * MAX_TABLE_ROWS).map(row).collect();
    let head = [
        "collection",
        "kind",
        "changes",
        "queries tested",
        "views notified",
        "most views notified",
    ];
    page.add_table("Means by collection and kind", &head, &rows);
    let DeliveredItems { added, modified, removed } = it.items_delivered;
    let [added, modified, removed] =
        [added, modified, removed].map(|count| MeasureUnit::Count.format(count as f64));
    page.add_paragraph(&format!(
        "Views received {added} added, {modified} modified and {removed} removed items."
    ));
    if !it.resets.is_empty() {
        let all: Vec<String> =
            it.resets.iter().map(|it| format!("{} {}", it.reason, it.count)).collect();
        page.add_paragraph(&format!("View resets by reason: {}.", all.join(", ")));
    }
}
