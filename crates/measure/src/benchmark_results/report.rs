//! The report of benchmark results: regressions first, then a section for each script and machine.
//!
//! | module | purpose |
//! |---|---|
//! | `measure_charts` | the charts of a measure, by size and over time |

mod measure_charts;

use self::measure_charts::measure_charts;
use super::{BenchmarkRegression, BenchmarkRow, BenchmarkRun, OWN_PROGRAM, ScriptHistory};
use crate::chart::MeasureUnit;
use crate::measure_report::{MeasureReport, ReportSection, ReportTable};

/// Regressions in the sentences at the beginning; the table has all.
const MAX_REGRESSION_SENTENCES: usize = 5;
/// A change of this part of a value is shown as none.
const UNNAMED_SHARE: f64 = 0.0005;
/// Runs in the table of a script, the latest ones.
const MAX_RUN_COLUMNS: usize = 6;

/// Builds the report of the runs in a folder of this name, in order of their dates.
#[must_use]
pub fn results_report(name: &str, runs: &[BenchmarkRun]) -> MeasureReport {
    let histories = ScriptHistory::from_runs(runs);
    let regressions: Vec<BenchmarkRegression<'_>> =
        histories.iter().flat_map(ScriptHistory::regressions).collect();
    let mut sections = Vec::new();
    if !regressions.is_empty() {
        sections.push(regression_section(&regressions));
    }
    sections.extend(histories.iter().filter_map(history_section));
    MeasureReport {
        title: format!("Benchmark results: {name}"),
        audience: "For developers: the time and the memory that programs take, by size of the input \
                   and from version to version.",
        findings: describe_regressions(&histories, &regressions),
        sections,
    }
}

fn describe_regressions(
    histories: &[ScriptHistory<'_>],
    regressions: &[BenchmarkRegression<'_>],
) -> Vec<String> {
    let mut sentences: Vec<String> =
        regressions.iter().take(MAX_REGRESSION_SENTENCES).map(describe_regression).collect();
    let more = regressions.len().saturating_sub(MAX_REGRESSION_SENTENCES);
    if more > 0 {
        sentences.push(format!("{more} more regressions are in the table."));
    }
    let compared = histories.iter().filter(|history| history.is_compared()).count();
    if regressions.is_empty() && compared > 0 {
        sentences.push(
            "Nothing of Larder is more than 10 % worse than in the last run of another commit."
                .into(),
        );
    }
    let single = histories.len() - compared;
    if single > 0 {
        let scripts = if single == 1 { "1 script has" } else { &format!("{single} scripts have") };
        sentences.push(format!(
            "{scripts} nothing to be compared with: no run of another commit on the machine has the \
             measures of the last one."
        ));
    }
    sentences
}

fn describe_regression(regression: &BenchmarkRegression<'_>) -> String {
    let BenchmarkRegression { before_run, before, after_run, after } = regression;
    let worse = match regression.change() {
        Some(change) => format!("{:.1} % worse", change.abs() * 100.0),
        None => "worse".into(),
    };
    format!(
        "{}, {}: {worse}. It is {} at {}, and was {} at {}.",
        after_run.script,
        row_name(after_run, after),
        format_value(after),
        after_run.short_commit(),
        format_value(before),
        before_run.short_commit(),
    )
}

fn regression_section(regressions: &[BenchmarkRegression<'_>]) -> ReportSection {
    let head = ["measure", "script", "before", "after", "change", "commit before", "commit after"];
    let row = |regression: &BenchmarkRegression<'_>| {
        let BenchmarkRegression { before_run, before, after_run, after } = regression;
        vec![
            row_name(after_run, after),
            after_run.script.clone(),
            format_value(before),
            format_value(after),
            format_change(before, after),
            before_run.short_commit(),
            after_run.short_commit(),
        ]
    };
    ReportSection {
        heading: "Regressions".into(),
        text: "Figures of Larder in the latest run of a script that are more than 10 % worse than \
               in the last run of another commit on the same machine."
            .into(),
        charts: Vec::new(),
        tables: vec![ReportTable {
            title: "Regressions".into(),
            head: head.map(String::from).to_vec(),
            rows: regressions.iter().map(row).collect(),
        }],
    }
}

/// Returns the section of a script; none if it has no run.
fn history_section(history: &ScriptHistory<'_>) -> Option<ReportSection> {
    let latest = history.latest()?;
    let load = latest.load.map_or(String::new(), |load| format!(", with a load of {load}"));
    let system = if latest.system.is_empty() { "" } else { &format!(", {}", latest.system) };
    let processors = match latest.processors {
        1 => "1 processor".into(),
        number => format!("{number} processors"),
    };
    let runs = match history.runs.len() {
        1 => "One run,".into(),
        number => format!("{number} runs, the latest"),
    };
    let measures = history.latest_measures();
    let charts = measures.iter().flat_map(|rows| measure_charts(history, latest, rows)).collect();
    let mut tables = vec![latest_table(history, latest, &measures)];
    if history.runs.len() > 1 {
        tables.push(runs_table(history, latest, &measures));
    }
    Some(ReportSection {
        heading: format!("{} on {}", latest.script, latest.machine),
        text: format!(
            "{processors}{system}. {runs} of {}, at {}{load}. {}2.5 x is 2.5 times the value of \
             Larder.",
            latest.date.get(..10).unwrap_or_default(),
            latest.short_commit(),
            if history.runs.len() > 1 {
                "Changes are since the last run of another commit. "
            } else {
                ""
            }
        ),
        charts,
        tables,
    })
}

/// Returns the table of the latest run: a row for each measure and size, a column for each program.
fn latest_table(
    history: &ScriptHistory<'_>,
    latest: &BenchmarkRun,
    measures: &[Vec<&BenchmarkRow>],
) -> ReportTable {
    let programs = programs_of(latest);
    let has_change = history.runs.len() > 1;
    let mut head = vec!["measure".to_string()];
    head.extend(has_change.then(|| "change".to_string()));
    head.extend(programs.iter().map(|program| program_name(latest, program)));
    let mut rows = Vec::new();
    for measure in measures {
        for size in sizes_of(measure) {
            let of_program = |program: &str| {
                measure.iter().find(|row| row.size == size && row.program == program).copied()
            };
            let own = of_program(OWN_PROGRAM);
            let before = own.and_then(|row| Some((row, history.row_before(row)?.1)));
            let named = own.or_else(|| measure.iter().find(|row| row.size == size).copied());
            let mut cells = vec![named.map_or(String::new(), |row| row_name(latest, row))];
            let change = before.map(|(row, before)| format_change(before, row));
            cells.extend(has_change.then(|| change.unwrap_or("-".into())));
            cells.extend(programs.iter().map(|program| match (of_program(program), own) {
                (Some(row), Some(own)) => format_beside(row, own),
                (Some(row), None) => format_value(row),
                (None, _) => "-".into(),
            }));
            rows.push(cells);
        }
    }
    ReportTable { title: "The latest run".into(), head, rows }
}

/// Returns the table of the last runs: a row for each figure of the latest run, a column for each
/// run.
fn runs_table(
    history: &ScriptHistory<'_>,
    latest: &BenchmarkRun,
    measures: &[Vec<&BenchmarkRow>],
) -> ReportTable {
    let first = history.runs.len().saturating_sub(MAX_RUN_COLUMNS);
    let runs = history.runs.get(first..).unwrap_or_default();
    let mut head = vec!["measure, program".to_string()];
    head.extend(runs.iter().map(|run| run.label()));
    let load = |run: &&BenchmarkRun| run.load.map_or("-".into(), |load| load.to_string());
    let mut rows =
        vec![["load of the machine".into()].into_iter().chain(runs.iter().map(load)).collect()];
    for row in measures.iter().flatten() {
        let mut cells = vec![format!("{}, {}", row_name(latest, row), row.program)];
        cells.extend(runs.iter().map(|run| {
            let same = run.rows.iter().find(|other| other.is_same_row(row));
            same.map_or("-".into(), format_value)
        }));
        rows.push(cells);
    }
    ReportTable { title: format!("The last {} runs", runs.len()), head, rows }
}

/// Returns the programs of a run, Larder first, the others in the order of the file.
fn programs_of(run: &BenchmarkRun) -> Vec<&str> {
    let mut programs: Vec<&str> = Vec::new();
    for row in &run.rows {
        if !programs.contains(&row.program.as_str()) {
            programs.push(&row.program);
        }
    }
    programs.sort_by_key(|program| *program != OWN_PROGRAM);
    programs
}

/// Returns a program with its version in a run.
fn program_name(run: &BenchmarkRun, program: &str) -> String {
    let row = run.rows.iter().find(|row| row.program == program && !row.version.is_empty());
    row.map_or_else(|| program.to_string(), |row| format!("{program} {}", row.version))
}

/// Returns the sizes of rows, in order.
fn sizes_of(rows: &[&BenchmarkRow]) -> Vec<Option<u64>> {
    let mut sizes: Vec<Option<u64>> = rows.iter().map(|row| row.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the measure and the size of a row: `first index, 10,000 messages`.
fn row_name(run: &BenchmarkRun, row: &BenchmarkRow) -> String {
    match row.size {
        Some(size) => format!("{}, {}", row.measure, format_size(run, size)),
        None => row.measure.clone(),
    }
}

fn format_size(run: &BenchmarkRun, size: u64) -> String {
    let number = MeasureUnit::Count.format(size as f64);
    format!("{number} {}", run.size_of).trim_end().to_string()
}

fn format_change(before: &BenchmarkRow, after: &BenchmarkRow) -> String {
    match (before.value, after.value) {
        (before, after) if (before - after).abs() <= before * UNNAMED_SHARE => "=".into(),
        (before, after) if before > 0.0 => format!("{:+.1} %", (after - before) / before * 100.0),
        _ => "was 0".into(),
    }
}

/// Returns the value of a row, and as which multiple of Larder's.
fn format_beside(row: &BenchmarkRow, own: &BenchmarkRow) -> String {
    let value = format_value(row);
    if row.program == OWN_PROGRAM || own.value <= 0.0 {
        return value;
    }
    format!("{value} ({} x)", MeasureUnit::Count.format_precisely(row.value / own.value))
}

/// Returns a value with its unit.
fn format_value(row: &BenchmarkRow) -> String {
    let (unit, factor) = parse_unit(&row.unit);
    let text = unit.format_precisely(row.value * factor);
    match unit {
        MeasureUnit::Count => format!("{text} {}", row.unit).trim_end().to_string(),
        _ => text,
    }
}

/// Returns the unit of an axis, and the factor of values in it.
fn parse_unit(unit: &str) -> (MeasureUnit, f64) {
    match unit {
        "ns" => (MeasureUnit::Nanoseconds, 1.0),
        "us" | "µs" => (MeasureUnit::Nanoseconds, 1e3),
        "ms" => (MeasureUnit::Nanoseconds, 1e6),
        "s" => (MeasureUnit::Nanoseconds, 1e9),
        "bytes" => (MeasureUnit::Bytes, 1.0),
        "kB" => (MeasureUnit::Bytes, 1e3),
        "MB" => (MeasureUnit::Bytes, 1e6),
        "GB" => (MeasureUnit::Bytes, 1e9),
        "%" => (MeasureUnit::Share, 0.01),
        _ => (MeasureUnit::Count, 1.0),
    }
}
