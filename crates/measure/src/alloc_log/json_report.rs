//! The figures of an allocation log as JSON, for programs.
//!
//! Times are in microseconds since the recording began. What a chart draws is an object with an
//! array for each quantity, so that a point costs few bytes.

use super::alloc_subject::{AllocSubject, call_functions, function_name};
use super::analysis::{AllocAnalysis, PhaseStatistics, ProgramMark};
use super::call_statistics::{CallStatistics, LifetimeShares};
use super::live_curve::CurvePoint;
use super::log_block::RssSample;
use super::log_file::AllocLog;
use super::number_series::{NumberPoint, NumberSeries};
use super::process_list::processes_json;
use super::report::MAX_SIZE_ROWS;
use super::ring_layout::RingOperation;
use super::stack_profile::StackProfile;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the figures of a subject as JSON.
#[must_use]
pub fn report_json(subject: &AllocSubject<'_>) -> serde_json::Value {
    let AllocAnalysis { total, peak, .. } = &subject.analysis;
    let process = subject.logged_process();
    let by_function = |count: fn(&CallStatistics, RingOperation) -> u64| {
        let counts = call_functions().map(|function| (function, count(total, function)));
        let named = counts.filter(|(_, count)| *count > 0);
        named.map(|(function, count)| (function_name(function), count)).collect::<BTreeMap<_, _>>()
    };
    let mark = |mark: &ProgramMark| json!([mark.calls, mark.name, mark.time_us]);
    let marks = subject.analysis.marks.iter().map(mark).collect();
    let phases = subject.analysis.phases.iter().map(phase_json).collect();
    let numbers = subject.analysis.numbers.iter().map(number_json).collect();
    let mut report = json!({
        "log": subject.name,
        "process": subject.process,
        "processes": processes_json(subject.log),
        "unrecorded": unrecorded_json(subject.log),
        "is_cut": process.is_cut(),
        "damaged_bytes": subject.log.damage.as_ref().map_or(0, |damage| damage.bytes),
        "command": process.command_line(),
        "start": process.start,
        "end": process.end,
        "duration_us": process.duration_us().1,
        "time_step_us": subject.analysis.time_step_us,
        "calls": subject.analysis.calls,
        "calls_by_function": by_function(CallStatistics::calls_of),
        "failures_by_function": by_function(CallStatistics::failures_of),
        "largest_failure": subject.analysis.failures.1,
        "unknown_frees": total.unknown_frees,
        "peak_bytes": peak.bytes,
        "peak_objects": subject.analysis.peak_objects,
        "objects_at_peak": peak.objects,
        "calls_at_peak": peak.calls,
        "peak_us": peak.time_us,
        "lower_bytes": total.lower_bytes,
        "upper_bytes": total.upper_bytes,
        "requests": total.requests(),
        "small_requests": total.small_requests(),
        "narrow_buckets": total.narrow_buckets(),
        "wide_buckets": total.wide_buckets(),
        "frequent_sizes": total.frequent_sizes(MAX_SIZE_ROWS),
        "missing_requests": total.missing_requests(),
        "heavy_sizes": total.heavy_sizes(MAX_SIZE_ROWS),
        "missing_bytes": total.missing_bytes(),
        "lifetimes": lifetimes_json(total),
        "end_bytes": subject.analysis.end_bytes,
        "end_objects": subject.analysis.end_objects,
        "live_at_end": subject.analysis.live_at_end.iter().take(MAX_SIZE_ROWS).collect::<Vec<_>>(),
        "omitted_marks": subject.analysis.omitted_marks,
        "omitted_values": subject.analysis.omitted_values,
        "resident": resident_json(&process.samples),
        "stacks": subject.stacks.as_ref().map(StackProfile::to_json),
    });
    // `json!` would copy these, which are large.
    report["marks"] = Value::Array(marks);
    report["phases"] = Value::Array(phases);
    report["numbers"] = Value::Array(numbers);
    report["curve"] = curve_json(&subject.analysis);
    report
}

/// Returns the processes below the command that were not recorded.
fn unrecorded_json(log: &AllocLog) -> Vec<Value> {
    let unrecorded = log.end.iter().flat_map(|end| &end.unrecorded);
    unrecorded.map(|(pid, program)| json!({ "pid": pid, "program": program })).collect()
}

fn lifetimes_json(statistics: &CallStatistics) -> Value {
    let LifetimeShares { released, at_zero, at_most_ten_thousandth, at_most_tenth } =
        statistics.lifetime_shares;
    let quantile = |part| statistics.lifetimes.quantile(part);
    let quantile_us = |part| statistics.lifetimes_us.quantile(part);
    json!({
        "released": released,
        "at_zero": at_zero,
        "at_most_ten_thousandth": at_most_ten_thousandth,
        "at_most_tenth": at_most_tenth,
        "median": quantile(0.5),
        "p90": quantile(0.9),
        "p99": quantile(0.99),
        "median_us": quantile_us(0.5),
        "p90_us": quantile_us(0.9),
        "p99_us": quantile_us(0.99),
        "distribution": statistics.lifetimes.cumulative(),
        "distribution_us": statistics.lifetimes_us.cumulative(),
    })
}

/// Returns the curve of live and requested memory, and the live bytes by phase at the highest value
/// of each point.
fn curve_json(analysis: &AllocAnalysis) -> Value {
    let column =
        |value: fn(&CurvePoint) -> u64| -> Vec<u64> { analysis.curve.iter().map(value).collect() };
    let bytes_of = |number: usize| -> Vec<u64> {
        let points = analysis.curve_by_phase.iter();
        points.map(|bytes| bytes.get(number).copied().unwrap_or(0)).collect()
    };
    let phases = analysis.phases.iter().enumerate();
    let by_phase = phases.map(|(number, phase)| (phase.name.clone(), bytes_of(number)));
    json!({
        "calls": column(|point| point.calls),
        "start_us": column(|point| point.start_us),
        "time_us": column(|point| point.time_us),
        "min_bytes": column(|point| point.min_bytes),
        "max_bytes": column(|point| point.max_bytes),
        "min_objects": column(|point| point.min_objects),
        "max_objects": column(|point| point.max_objects),
        "end_bytes": column(|point| point.end_bytes),
        "lower_bytes": column(|point| point.lower_bytes),
        "upper_bytes": column(|point| point.upper_bytes),
        "max_bytes_by_phase": by_phase.collect::<BTreeMap<_, _>>(),
    })
}

fn resident_json(samples: &[RssSample]) -> Value {
    let column = |value: fn(&RssSample) -> u64| -> Vec<u64> { samples.iter().map(value).collect() };
    json!({
        "time_us": column(|sample| sample.time_us),
        "calls": column(|sample| sample.calls),
        "resident_bytes": column(|sample| sample.resident_bytes),
        "anonymous_bytes": column(|sample| sample.anonymous_bytes),
    })
}

fn number_json(series: &NumberSeries) -> Value {
    let point = |point: &NumberPoint| json!([point.calls, point.lowest, point.highest]);
    let points = series.points.iter().map(point).collect();
    let mut number = json!({
        "name": series.name,
        "count": series.count,
        "first": series.first,
        "highest": series.highest(),
        "last": series.last,
        "values_per_point": series.values_per_point,
    });
    number["points"] = Value::Array(points);
    number
}

fn phase_json(phase: &PhaseStatistics) -> Value {
    json!({
        "name": phase.name,
        "duration_us": phase.duration_us,
        "calls": phase.statistics.total_calls(),
        "upper_bytes": phase.statistics.upper_bytes,
        "lower_bytes": phase.statistics.lower_bytes,
        "peak_bytes": phase.peak_bytes,
        "end_bytes": phase.end_bytes,
        "requests": phase.statistics.requests(),
        "small_requests": phase.statistics.small_requests(),
        "frequent_sizes": phase.statistics.frequent_sizes(MAX_SIZE_ROWS),
        "missing_requests": phase.statistics.missing_requests(),
        "lifetimes": lifetimes_json(&phase.statistics),
        "bytes_at_peak": phase.bytes_at_peak,
        "unreleased_bytes": phase.unreleased_bytes,
        "unreleased_objects": phase.unreleased_objects,
    })
}
