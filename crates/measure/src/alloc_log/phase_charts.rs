//! The calls of each phase by function, as stacked bars and as a table.

use super::alloc_subject::{AllocSubject, call_functions, function_name};
use super::analysis::PhaseStatistics;
use super::call_statistics::CallStatistics;
use super::ring_layout::RingOperation;
use crate::chart::{BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit};
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

/// Returns the chart of one subject.
pub(super) fn phase_charts(subjects: &[AllocSubject<'_>]) -> Vec<SectionChart> {
    let [subject] = subjects else { return Vec::new() };
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
    vec![("Calls by phase and function".into(), String::new(), Box::new(chart))]
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
