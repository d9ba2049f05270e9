//! The charts of live and requested memory, over calls and over time, with the phases and the
//! numbers that the program named.

use super::alloc_subject::{AllocSubject, SUBJECT_COLOURS};
use super::analysis::{AllocAnalysis, ProgramMark};
use super::live_curve::CurvePoint;
use super::log_block::RssSample;
use super::number_series::{NumberPoint, NumberSeries};
use crate::chart::{
    ChartAxis, ChartMark, ColourRole, MeasureUnit, PhaseAxes, StepChart, StepLine, format_count,
};
use crate::measure_report::{ReportTable, SectionChart};

/// Named numbers that have a chart.
const MAX_NUMBER_CHARTS: usize = 6;

/// Returns the charts of the memory of one subject, or of two.
pub(super) fn memory_charts(subjects: &[AllocSubject<'_>]) -> Vec<SectionChart> {
    let bytes = ChartAxis::linear("live memory", MeasureUnit::Bytes);
    let objects = ChartAxis::linear("live objects", MeasureUnit::Count);
    let mut charts = vec![
        live_chart(
            "Live memory by calls",
            subjects,
            bytes,
            |point| (point.min_bytes, point.max_bytes),
            |analysis| analysis.end_bytes,
        ),
        live_chart(
            "Live objects by calls",
            subjects,
            objects,
            |point| (point.min_objects, point.max_objects),
            |analysis| analysis.end_objects,
        ),
    ];
    if let [subject] = subjects {
        charts.extend(time_chart(subject));
    }
    charts.push(requested_chart(subjects));
    if let [subject] = subjects {
        let numbers = subject.analysis.numbers.iter().take(MAX_NUMBER_CHARTS);
        charts.extend(numbers.map(|series| number_chart(subject, series)));
    }
    charts
}

pub(super) fn calls_axis() -> ChartAxis<'static> {
    ChartAxis::linear("calls of the allocator", MeasureUnit::Count)
}

/// Returns the number of calls before each point of the curve.
pub(super) fn start_calls(curve: &[CurvePoint]) -> impl Iterator<Item = f64> {
    [0.0].into_iter().chain(curve.iter().map(|point| point.calls as f64))
}

fn live_chart(
    title: &str,
    subjects: &[AllocSubject<'_>],
    y_axis: ChartAxis<'static>,
    range: fn(&CurvePoint) -> (u64, u64),
    at_end: fn(&AllocAnalysis) -> u64,
) -> SectionChart {
    let lines = subjects.iter().zip(SUBJECT_COLOURS).map(|(subject, colour)| {
        let curve = &subject.analysis.curve;
        let highs = start_calls(curve).zip(curve);
        let highs = highs.map(|(calls, point)| (calls, range(point).1 as f64));
        let lows = curve.iter().map(|point| range(point).0 as f64);
        // Memory that was released last is not live at the end.
        let (calls, end) = (subject.analysis.calls as f64, at_end(&subject.analysis) as f64);
        StepLine {
            name: subject.name.clone(),
            colour,
            is_filled: subjects.len() == 1,
            points: highs.chain([(calls, end)]).collect(),
            lows: lows.chain([end]).collect(),
            end: Some(calls),
        }
    });
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: calls_axis(),
            x_range: calls_range(subjects),
            y_axis,
            marks: subject_marks(subjects),
        },
        min_y_max: 1.0,
        lines: lines.collect(),
    };
    let caption = "A pixel may stand for many calls: the line is at the highest value among them, \
                   and the darker band below it goes down to the lowest.";
    (title.into(), caption.into(), Box::new(chart))
}

fn calls_range(subjects: &[AllocSubject<'_>]) -> (f64, f64) {
    let calls = subjects.iter().map(|subject| subject.analysis.calls).max();
    (0.0, calls.unwrap_or(0).max(1) as f64)
}

/// Returns the phases of a subject that is alone.
fn subject_marks(subjects: &[AllocSubject<'_>]) -> Vec<ChartMark> {
    if let [subject] = subjects { call_marks(subject) } else { Vec::new() }
}

/// Returns the phases by the calls before them.
pub(super) fn call_marks(subject: &AllocSubject<'_>) -> Vec<ChartMark> {
    let mut marks: Vec<ChartMark> = Vec::new();
    for mark in phase_marks(subject) {
        marks.push(ChartMark { at: mark.calls as f64, name: mark.name.clone() });
    }
    marks
}

/// Returns the marks that begin another phase than the one before.
fn phase_marks<'a>(subject: &'a AllocSubject<'_>) -> impl Iterator<Item = &'a ProgramMark> {
    let marks = &subject.analysis.marks;
    let before = [None].into_iter().chain(marks.iter().map(|mark| Some(&mark.name)));
    let is_new = |(mark, before): &(&ProgramMark, Option<&String>)| *before != Some(&mark.name);
    marks.iter().zip(before).filter(is_new).map(|(mark, _)| mark)
}

/// Returns the chart over time: live and resident memory.
fn time_chart(subject: &AllocSubject<'_>) -> Option<SectionChart> {
    let samples = &subject.logged_process().samples;
    let curve = &subject.analysis.curve;
    let (start, duration) = subject.logged_process().duration_us();
    let last_sample = samples.last().map_or(0, |sample| sample.time_us);
    let last = last_sample.max(curve.last()?.time_us).max(start.saturating_add(duration));
    let since = |time_us: f64| (time_us - start as f64).max(0.0);
    let line = |name: &str, colour, points: Vec<(f64, f64)>| StepLine {
        name: name.into(),
        colour,
        is_filled: false,
        points,
        lows: Vec::new(),
        end: None,
    };
    // The highest value of the time in which the calls of a point were made, then that after them.
    let steps = |point: &CurvePoint| {
        let (from, to) = (since(point.start_us as f64), since(point.time_us as f64));
        [(from, point.max_bytes as f64), (to, point.end_bytes as f64)]
    };
    let live = curve.iter().flat_map(steps).collect();
    let sampled = |value: fn(&RssSample) -> u64| {
        let points = samples.iter().map(|it| (since(it.time_us as f64), value(it) as f64));
        points.collect()
    };
    let marks = phase_marks(subject);
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("time", MeasureUnit::Time),
            x_range: (0.0, since(last as f64).max(1.0)),
            y_axis: ChartAxis::linear("memory", MeasureUnit::Bytes),
            marks: marks
                .map(|mark| ChartMark { at: since(mark.time_us as f64), name: mark.name.clone() })
                .collect(),
        },
        min_y_max: 1.0,
        lines: vec![
            line("live", ColourRole::First, live),
            line("resident", ColourRole::Error, sampled(|sample| sample.resident_bytes)),
            line("of it anonymous", ColourRole::Second, sampled(|sample| sample.anonymous_bytes)),
        ],
    };
    let caption = "Resident memory also has the files of the program, what it maps itself, what the \
                   allocator holds but has not given out, and up to 3 MB of the recorder, which is \
                   not anonymous. It is sampled every 50 ms; calls are placed in time to about \
                   10 ms, if larder gets the processor.";
    Some(("Memory by time".into(), caption.into(), Box::new(chart)))
}

/// Returns the chart of requested memory: both bounds of one subject, the upper ones of two.
fn requested_chart(subjects: &[AllocSubject<'_>]) -> SectionChart {
    let line = |name: &str, colour, subject: &AllocSubject<'_>, bytes: fn(&CurvePoint) -> u64| {
        let points = subject.analysis.curve.iter();
        StepLine {
            name: name.into(),
            colour,
            is_filled: false,
            points: points.map(|point| (point.calls as f64, bytes(point) as f64)).collect(),
            lows: Vec::new(),
            end: Some(subject.analysis.calls as f64),
        }
    };
    let lines = match subjects {
        [subject] => vec![
            line("at most", ColourRole::Error, subject, |point| point.upper_bytes),
            line("at least", ColourRole::First, subject, |point| point.lower_bytes),
        ],
        _ => {
            let named = subjects.iter().zip(SUBJECT_COLOURS);
            let upper = |point: &CurvePoint| point.upper_bytes;
            named.map(|(subject, colour)| line(&subject.name, colour, subject, upper)).collect()
        }
    };
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: calls_axis(),
            x_range: calls_range(subjects),
            y_axis: ChartAxis::linear("requested memory", MeasureUnit::Bytes),
            marks: subject_marks(subjects),
        },
        min_y_max: 1.0,
        lines,
    };
    let caption = match subjects {
        [_] => {
            "The sum of all requests up to each call. Where it is steep, much is requested for each \
             call."
        }
        _ => "The sum of all requests up to each call, at most.",
    };
    ("Requested memory by calls".into(), caption.into(), Box::new(chart))
}

fn number_chart(subject: &AllocSubject<'_>, series: &NumberSeries) -> SectionChart {
    let name = &series.name;
    let is_reduced = series.values_per_point > 1;
    let highest = |point: &NumberPoint| (point.calls as f64, point.highest as f64);
    let lowest = |point: &NumberPoint| point.lowest as f64;
    let line = StepLine {
        name: name.clone(),
        colour: ColourRole::Third,
        is_filled: false,
        points: series.points.iter().map(highest).collect(),
        lows: if is_reduced { series.points.iter().map(lowest).collect() } else { Vec::new() },
        end: None,
    };
    let caption = match is_reduced {
        true => format!(
            "A point is {} values one after another: the line is their highest, and the dark area \
             goes down to their lowest.",
            series.values_per_point
        ),
        false => String::new(),
    };
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: calls_axis(),
            x_range: (0.0, subject.analysis.calls.max(1) as f64),
            y_axis: ChartAxis::linear(name, MeasureUnit::Count),
            marks: call_marks(subject),
        },
        min_y_max: 1.0,
        lines: vec![line],
    };
    let title = format!("The program's number \"{name}\" by calls");
    (title, caption, Box::new(chart))
}

/// Returns the tables of the numbers that programs named.
pub(super) fn number_tables(subjects: &[AllocSubject<'_>]) -> Vec<ReportTable> {
    let table = |subject: &AllocSubject<'_>| {
        let head =
            ["number of the program", "times", "first", "highest", "last", "values for each point"];
        let row = |series: &NumberSeries| {
            let NumberSeries { count: times, first, last, values_per_point, .. } = series;
            let figures = [*times, *first, series.highest(), *last, *values_per_point];
            [series.name.clone()].into_iter().chain(figures.map(format_count)).collect()
        };
        ReportTable {
            title: format!("Numbers of {}", subject.name),
            head: head.map(String::from).to_vec(),
            rows: subject.analysis.numbers.iter().map(row).collect(),
        }
    };
    let named = subjects.iter().filter(|subject| !subject.analysis.numbers.is_empty());
    named.map(table).collect()
}
