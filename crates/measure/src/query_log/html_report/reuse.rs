//! Which questions are asked, and how often: the part of the page.

use crate::chart::{
    BarChart, ChartAxis, ChartBar, ColourRole, ColumnChart, MeasureUnit, StepChart, StepLine,
    UtcOffsetFn, format_date, format_time_of_day,
};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::cache_residency::ResidentBytes;
use crate::query_log::html_report::{
    MAX_TABLE_ROWS, count_cell, duration_cell, format_short_query, time_axis,
};
use crate::query_log::reuse::{FrequentQuery, OriginCounts, RepeatBucket, ReuseReport};
use crate::query_log::text_report;

const ORIGIN_COLOURS: [(ColourRole, &str); 3] = [
    (ColourRole::Reference, "worked out"),
    (ColourRole::First, "from the cache"),
    (ColourRole::Second, "from an open view"),
];

fn origin_legend() -> Vec<(ColourRole, String)> {
    ORIGIN_COLOURS.map(|(tone, name)| (tone, name.to_string())).into()
}

fn origin_values(answers: &OriginCounts) -> Vec<f64> {
    [answers.run, answers.cache, answers.shared].map(|number| number as f64).into()
}

pub(super) fn add_reuse(
    page: &mut HtmlPage,
    it: &ReuseReport,
    log: (i64, i64),
    clock: UtcOffsetFn<'_>,
) {
    page.add_paragraph(&text_report::describe_reuse(it));
    if it.answers.total() == 0 {
        return;
    }
    let bar = |at: &RepeatBucket| ChartBar {
        name: text_report::format_count_range(at.min, at.max),
        x_start: 0.0,
        values: vec![at.answers as f64],
        label: format!(
            "{} to {}",
            text_report::format_count(at.answers, "answer"),
            text_report::format_count(at.queries, "question")
        ),
    };
    let rows = BarChart {
        x_axis: ChartAxis::linear("answers", MeasureUnit::Count),
        series: vec![(ColourRole::First, "answers".into())],
        bars: it.repeat_buckets.iter().map(bar).collect(),
    };
    let about =
        "Each row: questions that were asked so many times, and the answers they had together.";
    page.add_chart("How often the same is asked", about, &rows);
    let row = |often: &FrequentQuery| {
        vec![
            count_cell(often.answers.total()),
            count_cell(often.answers.cache),
            count_cell(often.answers.shared),
            duration_cell(often.us as f64 / often.answers.total().max(1) as f64),
            TableCell::Text(text_report::format_query_target(&often.query)),
            TableCell::Code(format_short_query(&often.query.query)),
        ]
    };
    let rows: Vec<Vec<TableCell>> = it.most_frequent.iter().take(MAX_TABLE_ROWS).map(row).collect();
    let head = ["asked", "from the cache", "from a view", "mean", "of", "question"];
    page.add_table("The most asked", &head, &rows);
    add_timeline_charts(page, it, log, clock);
    let row = |(client, answers): &(String, OriginCounts)| {
        let name = TableCell::Text(client.clone());
        let [run, cache, shared] = [answers.run, answers.cache, answers.shared].map(count_cell);
        vec![name, count_cell(answers.total()), run, cache, shared]
    };
    let rows: Vec<Vec<TableCell>> = it.clients.iter().take(MAX_TABLE_ROWS).map(row).collect();
    let head = ["client", "asked", "worked out", "from the cache", "from a view"];
    page.add_table("Who asks", &head, &rows);
}

/// The size of the cache, and below it the answers, by the same time.
fn add_timeline_charts(
    page: &mut HtmlPage,
    it: &ReuseReport,
    log: (i64, i64),
    clock: UtcOffsetFn<'_>,
) {
    let from = (log.0 as f64, log.1 as f64);
    let line = |name: &str, tone, filled, of: fn(&ResidentBytes) -> u64| StepLine {
        name: name.into(),
        colour: tone,
        is_filled: filled,
        points: it
            .resident_bytes
            .buckets()
            .map(|(at, held)| (at.max(log.0) as f64, of(held) as f64))
            .collect(),
    };
    let sizes = StepChart {
        x_axis: time_axis(log, clock),
        x_range: from,
        y_axis: ChartAxis::linear("", MeasureUnit::Bytes),
        min_y_max: 1000.0,
        lines: vec![
            line("all answers that are kept", ColourRole::First, true, |held| held.cached_max),
            line("those that open views have", ColourRole::Second, false, |held| held.open_max),
        ],
    };
    page.add_chart(
        "Memory of answers over time",
        "In bytes, the most in each stretch of time.",
        &sizes,
    );
    let name =
        |at: i64| format!("{} {}", format_date(at, clock), format_time_of_day(at, clock, true));
    let bar = |(at, answers): (i64, &OriginCounts)| ChartBar {
        name: name(at),
        x_start: at as f64,
        values: origin_values(answers),
        label: String::new(),
    };
    let bars = ColumnChart {
        x_axis: time_axis(log, clock),
        x_range: from,
        bar_width: it.answers_over_time.bucket_width_micros as f64,
        y_axis: ChartAxis::linear("", MeasureUnit::Count),
        series: origin_legend(),
        bars: it.answers_over_time.buckets().map(bar).collect(),
    };
    let wide = text_report::format_duration(it.answers_over_time.bucket_width_micros as f64);
    page.add_chart(
        "Answers over time",
        &format!("Answers in {wide} each, by where they came from."),
        &bars,
    );
}
