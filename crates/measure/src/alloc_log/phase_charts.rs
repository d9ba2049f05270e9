//! The charts of phases: live memory by the phase that asked for it, and calls by function, which
//! are also a table.

use super::alloc_subject::{AllocSubject, call_functions, function_name};
use super::analysis::PhaseStatistics;
use super::call_statistics::CallStatistics;
use super::live_charts::{call_marks, calls_axis, start_calls};
use super::live_curve::CurvePoint;
use super::ring_layout::RingOperation;
use crate::chart::{BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit, StackedAreaChart};
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
    vec![live_chart(subject), calls_chart(subject)]
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
        x_axis: calls_axis(),
        x_range: (0.0, analysis.calls.max(1) as f64),
        y_axis: ChartAxis::linear("live memory", MeasureUnit::Bytes),
        series,
        points: start_calls(&analysis.curve).zip(points.iter().map(values)).collect(),
        marks: call_marks(subject),
    };
    let caption = "Each area is the live memory that a phase asked for; a realloc moves an object to \
                   its own phase. Where there are more calls than pixels, they are those with the \
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
