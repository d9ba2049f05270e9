//! The HTML report of a calendar workload: open views and memory on one time axis.

use super::{MemorySample, WorkloadResult};
use crate::chart::{ChartAxis, ColourRole, MeasureUnit, PhaseAxes, StepChart, StepLine};
use crate::html_page::{HtmlPage, TableCell};

/// The rows of the table of rounds. If there are more rounds, the first and the last are shown.
const MAX_ROUNDS_SHOWN: usize = 20;

/// Renders the report as a self-contained page. `about` describes the workload in a sentence.
#[must_use]
pub fn render_html(found: &WorkloadResult, about: &str) -> String {
    let mut page = HtmlPage::new("Calendar workload");
    page.add_audience(
        "For developers: whether live views leave memory behind when a calendar is paged through.",
    );
    page.add_paragraph(about);
    let bytes = |value: u64| MeasureUnit::Bytes.format(value as f64);
    let [before, peak, first, _, last] = found.memory_stages();
    let count = |value: usize| MeasureUnit::Count.format(value as f64);
    let mut figures = vec![
        (count(found.views_opened), "views opened"),
        (count(found.peak_open_views()), "most views open at a time"),
        (count(found.views_left_open()), "views left open"),
        (bytes(before), "memory at the start"),
        (bytes(peak), "peak memory"),
        (bytes(last), "memory at the end"),
    ];
    // With one round, the first is the last.
    if found.round_ends.len() > 1 {
        figures.insert(5, (bytes(first), "memory after the first round"));
        figures.insert(0, (count(found.round_ends.len()), "rounds"));
    }
    let figures: Vec<(String, String)> =
        figures.into_iter().map(|(value, name)| (value, name.to_string())).collect();
    page.add_key_figures(&figures);
    if found.views_left_open() > 0 {
        page.add_warning("Views were left open.");
    }
    add_sample_chart(
        &mut page,
        found,
        "Open views",
        MeasureUnit::Count,
        ColourRole::First,
        |sample| sample.open_views as f64,
    );
    add_sample_chart(
        &mut page,
        found,
        "Anonymous memory",
        MeasureUnit::Bytes,
        ColourRole::Second,
        |sample| sample.anonymous_bytes as f64,
    );
    let rows: Vec<Vec<TableCell>> = select_rounds(found.round_ends.len())
        .filter_map(|round| {
            let sample = found.round_ends.get(round)?;
            Some(vec![
                TableCell::Number((round + 1).to_string()),
                TableCell::Number(MeasureUnit::Time.format(sample.elapsed.as_micros() as f64)),
                TableCell::Number(sample.open_views.to_string()),
                TableCell::Number(bytes(sample.anonymous_bytes)),
            ])
        })
        .collect();
    if found.round_ends.len() > 1 {
        page.add_table(
            "After the views of each round were closed",
            &["round", "time", "open views", "memory"],
            &rows,
        );
    }
    page.into_html()
}

/// Returns the indexes of the rounds that are shown.
fn select_rounds(rounds: usize) -> impl Iterator<Item = usize> {
    let half = MAX_ROUNDS_SHOWN / 2;
    (0..rounds)
        .filter(move |round| rounds <= MAX_ROUNDS_SHOWN || *round < half || *round + half >= rounds)
}

fn add_sample_chart(
    page: &mut HtmlPage,
    found: &WorkloadResult,
    name: &str,
    unit: MeasureUnit,
    colour: ColourRole,
    value: fn(&MemorySample) -> f64,
) {
    let at = |sample: &MemorySample| sample.elapsed.as_micros() as f64;
    let end = found.samples.last().map_or(0.0, at);
    let points = found.samples.iter().map(|sample| (at(sample), value(sample))).collect();
    let lines = vec![StepLine {
        name: name.into(),
        colour,
        is_filled: true,
        points,
        lows: Vec::new(),
        end: None,
    }];
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("time since the start", MeasureUnit::Time),
            x_range: (0.0, end),
            y_axis: ChartAxis::linear(name, unit),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines,
    };
    page.add_chart(
        name,
        "Sampled after each view is opened, and after the views of a round are closed.",
        &chart,
    );
}
