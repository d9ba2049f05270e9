//! A page of charts: each figure by the number of contacts, with a line for each program, and the
//! cost of each index configuration.

use crate::Result;
use crate::index_cost::{self, IndexCostTime};
use crate::table::{FigureTable, RowFigure, TABLE_ROWS, format_grouped};
use larder_measure::chart::{ChartAxis, ColourRole, MeasureUnit, Polyline, PolylineChart};
use larder_measure::html_page::HtmlPage;
use std::path::Path;

/// The programs that are compared: name in the figures, name in charts of time and size, name in
/// charts of memory, colour.
const COMPARED_PROGRAMS: [(&str, &str, &str, ColourRole); 4] = [
    ("larder", "Larder", "Larder", ColourRole::First),
    ("eds", "EDS, D-Bus", "EDS, D-Bus: service and client", ColourRole::Third),
    ("eds-direct", "EDS, direct access", "EDS, direct: service and client", ColourRole::Second),
    ("floor", "baseline: plain SQLite", "", ColourRole::Reference),
];
const MEMORY_CHARTS: [(&str, &str); 4] =
    [("rss", "RSS"), ("pss", "PSS"), ("vms", "VMS"), ("anonymous", "Anonymous memory")];
const SIZE_CHARTS: [(&str, &str); 3] = [
    ("bytes-store", "Size of the store"),
    ("written-batch", "Written, saved in batches"),
    ("written-one", "Written, saved singly"),
];
/// The minimum memory of a contact in the chart. A process cannot hold a card in less: it had the
/// memory before.
const MIN_MEMORY_BYTES: f64 = 100.0;

/// Writes a page with charts of all figures.
pub(crate) fn write_page(figures: &FigureTable, path: &Path) -> Result<()> {
    let mut page = HtmlPage::new("Contacts");
    page.add_heading("Time");
    for &(row, name, _) in TABLE_ROWS.iter().filter(|(row, ..)| !row.contains('/')) {
        add_time_chart(&mut page, figures, row, name);
    }
    page.add_heading("Size");
    for (row, name) in SIZE_CHARTS {
        let lines = program_lines(figures, row, |n, figure| {
            figure.median / if row == "written-one" { 1.0 } else { n }
        });
        add_scaling_chart(&mut page, name, "per contact", MeasureUnit::Bytes, lines);
    }
    page.add_heading("Memory");
    for (kind, name) in MEMORY_CHARTS {
        let mut lines =
            program_lines(figures, &format!("memory-{kind}"), |_, figure| figure.median);
        for line in &mut lines {
            line.points.retain(|point| point.1 >= MIN_MEMORY_BYTES);
            let mut programs = COMPARED_PROGRAMS.iter();
            if let Some((.., name, _)) = programs.find(|(_, name, ..)| *name == line.name) {
                line.name = (*name).to_string();
            }
        }
        lines.retain(|line| !line.points.is_empty());
        let about = "per contact, of a process that holds all, beyond that with an empty book";
        add_scaling_chart(&mut page, name, about, MeasureUnit::Bytes, lines);
    }
    page.add_heading("Index configurations");
    index_cost::add_chart(&mut page, figures, IndexCostTime::Wall);
    index_cost::add_chart(&mut page, figures, IndexCostTime::Cpu);
    Ok(std::fs::write(path, page.into_html())?)
}

/// Adds the chart of a row of the table. If Larder was also measured with a limit of 20 hits, that
/// is another line.
fn add_time_chart(page: &mut HtmlPage, figures: &FigureTable, row: &str, name: &str) {
    let unit = match row {
        "save-batch" | "delete-all" | "all" | "all-eds" | "ids" | "ids-rev" | "fields-3"
        | "uids-100" => "contact",
        "save-one" => "contact, one at a time",
        "page-50" | "page-back" | "page-end" => "page",
        "process-find" => "process",
        _ => "query",
    };
    let value = |_, figure: &RowFigure| {
        figure.median / if unit == "contact" { figure.hits.max(1.0) } else { 1.0 }
    };
    let mut lines = program_lines(figures, row, value);
    let limited = program_lines(figures, &format!("{row}/20"), value);
    if let Some(larder) = limited.into_iter().find(|line| line.colour == ColourRole::First) {
        lines.push(Polyline {
            name: "Larder, at most 20 hits".into(),
            colour: ColourRole::Warning,
            ..larder
        });
    }
    let about = format!("median wall time per {unit}");
    add_scaling_chart(page, name, &about, MeasureUnit::Nanoseconds, lines);
}

/// Returns a line of a row for each program that has it.
fn program_lines(
    figures: &FigureTable,
    row: &str,
    value: impl Fn(f64, &RowFigure) -> f64,
) -> Vec<Polyline> {
    let line = |(program, name, _, colour): (&str, &str, &str, ColourRole)| {
        let mut points: Vec<(f64, f64)> = figures
            .iter()
            .filter(|((by, _, name), figure)| by == program && name == row && figure.median > 0.0)
            .map(|((_, n, _), figure)| (*n as f64, value(*n as f64, figure)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Polyline { name: name.to_string(), colour, points }
    };
    COMPARED_PROGRAMS.into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// Adds a chart of lines by the number of contacts, unless there are no lines.
fn add_scaling_chart(
    page: &mut HtmlPage,
    title: &str,
    about: &str,
    unit: MeasureUnit,
    lines: Vec<Polyline>,
) {
    if lines.is_empty() {
        return;
    }
    let mut sizes: Vec<u64> =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point.0 as u64)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut title = title.to_string();
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let chart = PolylineChart {
        x_axis: ChartAxis::log("contacts", MeasureUnit::Count),
        x_marks: sizes.into_iter().map(|n| (n as f64, format_grouped(n))).collect(),
        y_axis: ChartAxis::log("", unit),
        lines,
    };
    page.add_chart(&title, about, &chart);
}
