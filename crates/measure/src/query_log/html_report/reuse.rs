//! The section on the repetition of queries and the origin of answers.

use crate::chart::{
    BarChart, ChartAxis, ChartBar, ColourRole, ColumnChart, MeasureUnit, PhaseAxes, StepChart,
    StepLine, UtcOffsetFn, format_date, format_time_of_day,
};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::cache_residency::ResidentBytes;
use crate::query_log::html_report::{
    MAX_TABLE_ROWS, count_cell, duration_cell, format_short_query, time_axis,
};
use crate::query_log::reuse::{
    ClientAnswers, FrequentQuery, OriginCounts, RepeatBucket, ReuseReport,
};
use crate::query_log::text_report;
use crate::query_log::timeline::Timeline;

const ORIGIN_COLOURS: [(ColourRole, &str); 3] = [
    (ColourRole::Reference, "executed"),
    (ColourRole::First, "from the cache"),
    (ColourRole::Second, "from an open view"),
];

fn origin_legend() -> Vec<(ColourRole, String)> {
    ORIGIN_COLOURS.map(|(tone, name)| (tone, name.to_string())).into()
}

fn origin_values(answers: &OriginCounts) -> Vec<f64> {
    [answers.executed, answers.cache, answers.shared].map(|number| number as f64).into()
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
            text_report::format_count(at.queries, "query")
        ),
    };
    let rows = BarChart {
        x_axis: ChartAxis::linear("answers", MeasureUnit::Count),
        series: vec![(ColourRole::First, "answers".into())],
        bars: it.repeat_buckets.iter().map(bar).collect(),
    };
    let about = "Each row: the queries that were asked this many times, and all their answers.";
    page.add_chart("Repetition of queries", about, &rows);
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
    let head = ["answers", "from the cache", "from a view", "mean time", "collection", "query"];
    page.add_table("The most frequent queries", &head, &rows);
    add_timeline_charts(page, it, log, clock);
    let row = |ClientAnswers { client, answers }: &ClientAnswers| {
        let name = TableCell::Text(client.clone());
        let [run, cache, shared] =
            [answers.executed, answers.cache, answers.shared].map(count_cell);
        vec![name, count_cell(answers.total()), run, cache, shared]
    };
    let rows: Vec<Vec<TableCell>> = it.clients.iter().take(MAX_TABLE_ROWS).map(row).collect();
    let head = ["client", "answers", "executed", "from the cache", "from a view"];
    page.add_table("Clients", &head, &rows);
}

/// Adds the size of the cache and the answers on one time axis.
fn add_timeline_charts(
    page: &mut HtmlPage,
    it: &ReuseReport,
    log: (i64, i64),
    clock: UtcOffsetFn<'_>,
) {
    let from = (log.0 as f64, log.1 as f64);
    let line = |name: &str, tone, filled, peak: fn(&ResidentBytes) -> u64, last| StepLine {
        name: name.into(),
        colour: tone,
        is_filled: filled,
        points: memory_points(&it.resident_bytes, log, peak, last),
        lows: Vec::new(),
        end: None,
    };
    let sizes = StepChart {
        axes: PhaseAxes {
            x_axis: time_axis(log, clock),
            x_range: from,
            y_axis: ChartAxis::linear("", MeasureUnit::Bytes),
            marks: Vec::new(),
        },
        min_y_max: 1000.0,
        lines: vec![
            line(
                "all cached answers",
                ColourRole::First,
                true,
                |held| held.cached_max,
                |held| held.cached_last,
            ),
            line(
                "answers of open views",
                ColourRole::Second,
                false,
                |held| held.open_max,
                |held| held.open_last,
            ),
        ],
    };
    page.add_chart("Memory of answers over time", "The peak in each interval.", &sizes);
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
    let width = text_report::format_duration(it.answers_over_time.bucket_width_micros as f64);
    page.add_chart(
        "Answers over time",
        &format!("Answers in each interval of {width}, by origin."),
        &bars,
    );
}

/// Returns the points of a step line: the peak of each interval with an event, and behind it the
/// value that stays until the next event.
fn memory_points(
    timeline: &Timeline<ResidentBytes>,
    log: (i64, i64),
    peak: fn(&ResidentBytes) -> u64,
    last: fn(&ResidentBytes) -> u64,
) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut buckets = timeline.buckets().peekable();
    while let Some((at, held)) = buckets.next() {
        points.push((at.max(log.0) as f64, peak(held) as f64));
        let end = at.saturating_add(timeline.bucket_width_micros);
        let next = buckets.peek().map_or(log.1, |(next, _)| *next);
        if end < next {
            points.push((end as f64, last(held) as f64));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_lasts_for_its_interval() {
        let mut timeline = Timeline::new(400);
        let held = |peak, last| ResidentBytes {
            cached_max: peak,
            cached_last: last,
            ..ResidentBytes::default()
        };
        let width = timeline.bucket_width_micros;
        *timeline.bucket_at(0) = held(10, 2);
        *timeline.bucket_at(width) = held(8, 1);
        *timeline.bucket_at(3 * width) = held(7, 7);
        let points = memory_points(
            &timeline,
            (0, 4 * width),
            |held| held.cached_max,
            |held| held.cached_last,
        );
        let points: Vec<(i64, u64)> =
            points.iter().map(|(at, bytes)| (*at as i64 / width, *bytes as u64)).collect();
        assert_eq!(points, [(0, 10), (1, 8), (2, 1), (3, 7)]);
    }
}
