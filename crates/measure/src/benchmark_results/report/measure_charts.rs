//! The charts of a measure: its values by size in the latest run, and over time.

use super::{format_size, format_value, parse_unit, program_name, programs_of, sizes_of};
use crate::benchmark_results::{BenchmarkRow, BenchmarkRun, OWN_PROGRAM, ScriptHistory};
use crate::chart::{
    BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit, Polyline, PolylineChart,
};
use crate::measure_report::SectionChart;

/// The colours of programs, Larder first, and of versions over time.
const COLOURS: [ColourRole; 6] = [
    ColourRole::First,
    ColourRole::Third,
    ColourRole::Second,
    ColourRole::Warning,
    ColourRole::Error,
    ColourRole::Reference,
];

/// Returns the charts of a measure, of which the latest run has these rows.
pub(super) fn measure_charts(
    history: &ScriptHistory<'_>,
    latest: &BenchmarkRun,
    rows: &[&BenchmarkRow],
) -> Vec<SectionChart> {
    let sizes = sizes_of(rows);
    let comparison = match sizes.len() {
        0 | 1 if rows.len() > 1 => Some(program_chart(latest, rows)),
        0 | 1 => None,
        _ => Some(size_chart(latest, rows)),
    };
    comparison.into_iter().chain(time_chart(history, latest, rows)).collect()
}

fn title_of(rows: &[&BenchmarkRow]) -> String {
    let measure = rows.first().map_or("", |row| row.measure.as_str());
    let mut letters = measure.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn unit_of(rows: &[&BenchmarkRow]) -> (MeasureUnit, f64) {
    parse_unit(rows.first().map_or("", |row| row.unit.as_str()))
}

/// Returns the bars of programs for the one size that was measured.
fn program_chart(latest: &BenchmarkRun, rows: &[&BenchmarkRow]) -> SectionChart {
    let (unit, factor) = unit_of(rows);
    let bars = programs_of(latest).into_iter().filter_map(|program| {
        let row = rows.iter().find(|row| row.program == program)?;
        Some(ChartBar {
            name: program_name(latest, program),
            x_start: 0.0,
            values: match program {
                OWN_PROGRAM => vec![row.value * factor, 0.0],
                _ => vec![0.0, row.value * factor],
            },
            label: format_value(row),
        })
    });
    let chart = BarChart {
        x_axis: ChartAxis::linear(axis_name(rows), unit),
        series: vec![
            (ColourRole::First, "Larder".into()),
            (ColourRole::Reference, "other programs".into()),
        ],
        bars: bars.collect(),
    };
    let size = rows.first().and_then(|row| row.size);
    let about = size.map_or(String::new(), |size| format_size(latest, size));
    (title_of(rows), about, Box::new(chart))
}

/// Returns the lines of programs by size. Axes are logarithmic, unless a value is too small.
fn size_chart(latest: &BenchmarkRun, rows: &[&BenchmarkRow]) -> SectionChart {
    let (unit, factor) = unit_of(rows);
    let of_program = |program: &str| {
        let own = rows.iter().filter(|row| row.program == program);
        let mut points: Vec<(f64, f64)> =
            own.filter_map(|row| Some((row.size? as f64, row.value * factor))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let lines = programs_of(latest).into_iter().map(|program| (program, of_program(program)));
    let lines = lines.filter(|(_, points)| !points.is_empty());
    let lines = lines.zip(COLOURS.into_iter().cycle()).map(|((program, points), colour)| {
        Polyline { name: program_name(latest, program), colour, points }
    });
    let is_small = rows.iter().any(|row| row.value * factor < 1.0);
    let axis = if is_small { ChartAxis::linear } else { ChartAxis::log };
    let marks = sizes_of(rows).into_iter().flatten();
    let chart = PolylineChart {
        x_axis: ChartAxis::log(&latest.size_of, MeasureUnit::Count),
        x_marks: marks.map(|size| (size as f64, MeasureUnit::Count.format(size as f64))).collect(),
        y_axis: axis(axis_name(rows), unit),
        lines: lines.collect(),
    };
    (format!("{} by size", title_of(rows)), String::new(), Box::new(chart))
}

/// Returns the lines of Larder's versions over time, for the largest size; of other programs if
/// Larder was not measured. None if there is one run.
fn time_chart(
    history: &ScriptHistory<'_>,
    latest: &BenchmarkRun,
    rows: &[&BenchmarkRow],
) -> Option<SectionChart> {
    let largest = rows.iter().max_by_key(|row| row.size)?;
    let (unit, factor) = unit_of(rows);
    // Beside a program that takes twenty times as long, a change of Larder could not be seen.
    let is_own = rows.iter().any(|row| row.program == OWN_PROGRAM);
    let mut lines: Vec<Polyline> = Vec::new();
    let mut runs = Vec::new();
    for run in &history.runs {
        let same = |row: &&BenchmarkRow| row.is_same_measure(largest) && row.size == largest.size;
        let is_shown = |row: &&BenchmarkRow| !is_own || row.program == OWN_PROGRAM;
        let found: Vec<_> = run.rows.iter().filter(same).filter(is_shown).collect();
        if !found.is_empty() {
            runs.push((run.time_us() as f64, run.label()));
        }
        for row in found {
            let name = format!("{} {}", row.program, row.version).trim_end().to_string();
            let point = (run.time_us() as f64, row.value * factor);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => {
                    let colour = COLOURS.iter().copied().cycle().nth(lines.len());
                    let colour = colour.unwrap_or(ColourRole::Reference);
                    lines.push(Polyline { name, colour, points: vec![point] });
                }
            }
        }
    }
    if runs.len() < 2 {
        return None;
    }
    let chart = PolylineChart {
        x_axis: ChartAxis::time("date of the run", &utc_offset),
        x_marks: runs,
        y_axis: ChartAxis::linear(axis_name(rows), unit),
        lines,
    };
    let about = match largest.size {
        Some(size) => format!("{}, a line for each version.", format_size(latest, size)),
        None => "A line for each version.".into(),
    };
    Some((format!("{} over time", title_of(rows)), about, Box::new(chart)))
}

fn utc_offset(_at: i64) -> i64 {
    0
}

/// Returns the name of the axis of values: units that are formatted with each value have none.
fn axis_name<'a>(rows: &[&'a BenchmarkRow]) -> &'a str {
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    if matches!(parse_unit(unit).0, MeasureUnit::Count) { unit } else { "" }
}
