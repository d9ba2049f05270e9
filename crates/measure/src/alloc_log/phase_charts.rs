//! The charts of phases: live memory by the phase that asked for it, sizes, lifetimes, and calls by
//! function, which are also a table.

use super::alloc_subject::{AllocSubject, call_functions, function_name};
use super::analysis::PhaseStatistics;
use super::call_statistics::CallStatistics;
use super::live_charts::{call_marks, calls_axis, start_calls};
use super::live_curve::CurvePoint;
use super::ring_layout::RingOperation;
use crate::chart::{
    BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit, PhaseAxes, StackedAreaChart, StepChart,
    StepLine,
};
use crate::measure_report::{ReportTable, SectionChart};

/// The colours of the functions with the most calls; the last is for all others.
const COLOURS: [ColourRole; 6] = [
    ColourRole::First,
    ColourRole::Warning,
    ColourRole::Second,
    ColourRole::Third,
    ColourRole::Error,
    ColourRole::Reference,
];

/// The name of memory that no phase asked for.
const INHERITED_NAME: &str = "from before the fork";

/// Returns the charts of one subject.
pub(super) fn phase_charts(subjects: &[AllocSubject<'_>]) -> Vec<SectionChart> {
    let [subject] = subjects else { return Vec::new() };
    vec![live_chart(subject), calls_chart(subject), sizes_chart(subject), lifetimes_chart(subject)]
}

/// Returns the chart of live memory by phase. The phases with the highest values have an area each.
fn live_chart(subject: &AllocSubject<'_>) -> SectionChart {
    let analysis = &subject.analysis;
    let mut names: Vec<&str> = analysis.phases.iter().map(|phase| phase.name.as_str()).collect();
    names.push(INHERITED_NAME);
    let inherited = names.len() - 1;
    let parts = |(point, by_phase): (&CurvePoint, &Vec<u64>)| {
        let mut parts = by_phase.clone();
        parts.resize(inherited, 0);
        let known = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        parts.push(point.max_bytes.saturating_sub(known));
        parts
    };
    let points: Vec<Vec<u64>> =
        analysis.curve.iter().zip(&analysis.curve_by_phase).map(parts).collect();
    let highest = |part: &usize| points.iter().map(|point| point[*part]).max().unwrap_or(0);
    let mut shown: Vec<usize> = (0..names.len()).filter(|part| highest(part) > 0).collect();
    shown.sort_by_key(|part| std::cmp::Reverse(highest(part)));
    let others = shown.split_off(shown.len().min(COLOURS.len() - 1));
    shown.sort_unstable();
    let mut series: Vec<(ColourRole, String)> =
        COLOURS.into_iter().zip(shown.iter().map(|part| names[*part].to_string())).collect();
    if !others.is_empty() {
        series.push((ColourRole::Reference, "others".into()));
    }
    let values = |point: &Vec<u64>| {
        let mut values: Vec<f64> = shown.iter().map(|part| point[*part] as f64).collect();
        if !others.is_empty() {
            values.push(others.iter().map(|part| point[*part] as f64).sum());
        }
        values
    };
    let chart = StackedAreaChart {
        axes: PhaseAxes {
            x_axis: calls_axis(),
            x_range: (0.0, analysis.calls.max(1) as f64),
            y_axis: ChartAxis::linear("live memory", MeasureUnit::Bytes),
            marks: call_marks(subject),
        },
        series,
        points: start_calls(&analysis.curve).zip(points.iter().map(values)).collect(),
    };
    let caption = "Each area is the live memory that a phase asked for; a realloc moves an object to \
                   its own phase. Of the calls that a pixel stands for, the areas are those at the \
                   most live memory.";
    ("Live memory by phase".into(), caption.into(), Box::new(chart))
}

fn calls_chart(subject: &AllocSubject<'_>) -> SectionChart {
    let functions = frequent_functions(subject);
    let names = functions.iter().map(|function| function_name(*function)).chain(["others"]);
    let bar = |phase: &PhaseStatistics| {
        let calls = phase.statistics.total_calls() as f64;
        ChartBar {
            name: phase.name.clone(),
            x_start: 0.0,
            values: count_calls(phase, &functions).iter().map(|count| *count as f64).collect(),
            label: MeasureUnit::Count.format(calls),
        }
    };
    let chart = BarChart {
        x_axis: ChartAxis::linear("calls", MeasureUnit::Count),
        series: COLOURS.into_iter().zip(names.map(String::from)).collect(),
        bars: subject.analysis.phases.iter().map(bar).collect(),
    };
    ("Calls by phase and function".into(), String::new(), Box::new(chart))
}

/// Returns the table of one subject.
pub(super) fn phase_tables(subjects: &[AllocSubject<'_>]) -> Vec<ReportTable> {
    let [subject] = subjects else { return Vec::new() };
    let functions = frequent_functions(subject);
    let names = functions.iter().map(|function| function_name(*function));
    let row = |phase: &PhaseStatistics| {
        let counts = count_calls(phase, &functions).into_iter();
        let cells = counts.map(|count| MeasureUnit::Count.format(count as f64));
        [phase.name.clone()].into_iter().chain(cells).collect()
    };
    vec![ReportTable {
        title: "Calls by phase and function".into(),
        head: ["phase"].into_iter().chain(names).chain(["others"]).map(String::from).collect(),
        rows: subject.analysis.phases.iter().map(row).collect(),
    }]
}

/// Returns the chart of the sizes of requests, as a distribution for each phase.
fn sizes_chart(subject: &AllocSubject<'_>) -> SectionChart {
    let requests = |phase: &PhaseStatistics| phase.statistics.requests();
    let sizes = |phase: &PhaseStatistics| phase.statistics.cumulative_sizes();
    let lines = distribution_lines(subject, requests, sizes);
    let caption = "The share of the requests of a phase that are for so many bytes, or for fewer.";
    let axis = ChartAxis::log("bytes of a request", MeasureUnit::Bytes);
    distribution_chart("Requests by size and phase", caption, axis, lines)
}

/// Returns the chart of lifetimes, as a distribution for each phase.
fn lifetimes_chart(subject: &AllocSubject<'_>) -> SectionChart {
    let released = |phase: &PhaseStatistics| phase.statistics.lifetimes.total();
    let lifetimes = |phase: &PhaseStatistics| {
        let steps = phase.statistics.lifetimes.cumulative().into_iter();
        steps.map(|(calls, sum)| (calls + 1, sum)).collect()
    };
    let lines = distribution_lines(subject, released, lifetimes);
    let caption = "The share of the released objects of a phase that lived for so many calls, or \
                   for fewer.";
    let axis = ChartAxis::log("lifetime in calls, plus 1", MeasureUnit::Count);
    distribution_chart("Released objects by lifetime and phase", caption, axis, lines)
}

/// Returns a line for each of the phases with the most values: their cumulated shares.
fn distribution_lines(
    subject: &AllocSubject<'_>,
    total: fn(&PhaseStatistics) -> u64,
    steps: fn(&PhaseStatistics) -> Vec<(u64, u64)>,
) -> Vec<StepLine> {
    let phases = subject.analysis.phases.iter().enumerate();
    let mut shown: Vec<(usize, &PhaseStatistics)> =
        phases.filter(|(_, phase)| total(phase) > 0).collect();
    shown.sort_by_key(|(_, phase)| std::cmp::Reverse(total(phase)));
    shown.truncate(COLOURS.len());
    // In their order in time, so that few phases have the same colours in all charts.
    shown.sort_by_key(|(number, _)| *number);
    let line = |((_, phase), colour): ((usize, &PhaseStatistics), ColourRole)| {
        let of = total(phase) as f64;
        let steps = steps(phase).into_iter();
        let steps = steps.map(|(value, sum)| (value.max(1) as f64, sum as f64 / of));
        // From none on, so that the rise of a phase with a single value is drawn.
        let points = [(1.0, 0.0)].into_iter().chain(steps).collect();
        StepLine {
            name: phase.name.clone(),
            colour,
            is_filled: false,
            points,
            lows: Vec::new(),
            end: None,
        }
    };
    shown.into_iter().zip(COLOURS).map(line).collect()
}

fn distribution_chart(
    title: &str,
    caption: &str,
    x_axis: ChartAxis<'static>,
    lines: Vec<StepLine>,
) -> SectionChart {
    let last = lines.iter().filter_map(|line| line.points.last());
    let last = last.map(|(value, _)| *value).fold(2.0, f64::max);
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis,
            x_range: (1.0, last),
            y_axis: ChartAxis::linear("share", MeasureUnit::Share),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines,
    };
    (title.into(), caption.into(), Box::new(chart))
}

/// Returns the functions with the most calls, most first.
fn frequent_functions(subject: &AllocSubject<'_>) -> Vec<RingOperation> {
    let total = &subject.analysis.total;
    let mut functions: Vec<RingOperation> =
        call_functions().filter(|function| all_calls(total, *function) > 0).collect();
    functions.sort_by_key(|function| std::cmp::Reverse(all_calls(total, *function)));
    functions.truncate(COLOURS.len() - 1);
    functions
}

fn all_calls(statistics: &CallStatistics, function: RingOperation) -> u64 {
    statistics.calls_of(function) + statistics.failures_of(function)
}

/// Returns the calls of these functions in a phase, and those of all others.
fn count_calls(phase: &PhaseStatistics, functions: &[RingOperation]) -> Vec<u64> {
    let mut counts: Vec<u64> =
        functions.iter().map(|function| all_calls(&phase.statistics, *function)).collect();
    let sum: u64 = counts.iter().sum();
    counts.push(phase.statistics.total_calls().saturating_sub(sum));
    counts
}
