//! Charts: a figure against the number of contacts, both logarithmic, with a line for each of those
//! compared; what more indexes cost; and one page with all of them.

use crate::Result;
use crate::index_cost;
use crate::svg::{BenchChart, BenchLine, draw_chart};
use crate::table::{
    FigureTable, RowFigure, TABLE_ROWS, format_bytes, format_grouped, format_nanoseconds,
};
use std::path::Path;

/// Who is compared, and what is said of them where they are asked, and where their memory is
/// counted.
const COMPARED_PROGRAMS: [(&str, &str, &str); 4] = [
    ("larder", "Larder", "Larder"),
    ("eds", "EDS, through D-Bus", "EDS: service + client"),
    ("eds-direct", "EDS, direct access", "EDS direct: both"),
    ("floor", "floor: bare SQLite", ""),
];
const MEMORY_CHARTS: [(&str, &str); 4] = [
    ("rss", "Memory: RSS"),
    ("pss", "Memory: PSS"),
    ("vms", "Memory: VMS"),
    ("anonymous", "Memory: anonymous"),
];
const SIZE_CHARTS: [(&str, &str); 3] = [
    ("bytes-store", "Size of the store"),
    ("written-batch", "Written, saved in batches"),
    ("written-one", "Written, saved singly"),
];

/// A page of charts.
const PAGE_HEAD: &str = "<!doctype html><meta charset=\"utf-8\"><title>Contacts</title><style>:root{color-scheme:light dark}\
    body{font-family:sans-serif;margin:1em;background:#fff;color:#222}svg{margin:2px;width:600px;max-width:100%;height:auto}\
    @media(prefers-color-scheme:dark){body{background:#16181c;color:#e8e8e8}}</style>\n";

/// Writes a file for each chart, and `index.html` with all of them, those that another script has
/// left there too.
pub(crate) fn write_charts(figures: &FigureTable, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut page = PAGE_HEAD.to_string();
    let mut add = |name: &str, chart: &BenchChart<'_>| -> Result<()> {
        let file = dir.join(format!("{name}.svg"));
        if !chart.lines.is_empty() {
            std::fs::write(&file, draw_chart(chart)?)?;
        }
        if file.exists() {
            page.push_str(&std::fs::read_to_string(file)?);
        }
        Ok(())
    };
    for &(row, name, _) in TABLE_ROWS.iter().filter(|(row, ..)| !row.contains('/')) {
        add_time_chart(figures, row, name, &mut add)?;
    }
    for (row, name) in SIZE_CHARTS {
        let lines = program_lines(figures, row, |n, figure| {
            figure.median / if row == "written-one" { 1.0 } else { n }
        });
        add_scaling_chart(row, name, "per contact", format_bytes, &lines, &mut add)?;
    }
    for (kind, name) in MEMORY_CHARTS {
        let row = format!("memory-{kind}");
        let mut lines = program_lines(figures, &row, |_, figure| figure.median);
        for line in &mut lines {
            line.name = COMPARED_PROGRAMS[line.style_index].2;
            // Nobody holds a card in less: that is memory which was there before, and chance.
            line.points.retain(|point| point.1 >= 100.0);
        }
        lines.retain(|line| !line.points.is_empty());
        let about = "per contact, of who holds all of them, without what an empty book takes";
        add_scaling_chart(&row, name, about, format_bytes, &lines, &mut add)?;
    }
    for (row, name) in [("wall", "wall time"), ("cpu", "processor time")] {
        index_cost::add_index_cost_chart(
            figures,
            row,
            &format!("Saving, by what is indexed: {name}"),
            &mut add,
        )?;
    }
    Ok(std::fs::write(dir.join("index.html"), page)?)
}

/// Receives a chart with its name.
pub(crate) type AddChartFn<'a> = dyn FnMut(&str, &BenchChart<'_>) -> Result<()> + 'a;

/// A row of the table; with a line for at most 20 hits where that was asked, too.
fn add_time_chart(
    figures: &FigureTable,
    row: &str,
    name: &str,
    add: &mut AddChartFn<'_>,
) -> Result<()> {
    let each = match row {
        "save-batch" | "delete-all" | "all" | "all-eds" | "ids" | "ids-rev" | "fields-3"
        | "uids-100" => "contact",
        "save-one" => "contact, one at a time",
        "page-50" | "page-back" | "page-end" => "page",
        "process-find" => "process",
        _ => "question",
    };
    let share = |_, figure: &RowFigure| {
        figure.median / if each == "contact" { figure.hits.max(1.0) } else { 1.0 }
    };
    let mut drawn = program_lines(figures, row, share);
    let limited = program_lines(figures, &format!("{row}/20"), share);
    if let Some(own) = limited.into_iter().find(|line| line.style_index == 0) {
        drawn.push(BenchLine { name: "Larder, 20 hits at most", style_index: 4, ..own });
    }
    let about = format!("median of wall time per {each}");
    add_scaling_chart(row, name, &about, format_nanoseconds, &drawn, add)
}

fn program_lines(
    figures: &FigureTable,
    row: &str,
    value: impl Fn(f64, &RowFigure) -> f64,
) -> Vec<BenchLine> {
    let line = |(style, (who, name, _)): (usize, (&str, &'static str, _))| {
        let mut points: Vec<(f64, f64)> = figures
            .iter()
            .filter(|((by, _, of), figure)| by == who && of == row && figure.median > 0.0)
            .map(|((_, n, _), figure)| (*n as f64, value(*n as f64, figure)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        BenchLine { name, style_index: style, points }
    };
    let lines = COMPARED_PROGRAMS.into_iter().enumerate().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn add_scaling_chart(
    file: &str,
    title: &str,
    about: &str,
    write: fn(f64) -> String,
    lines: &[BenchLine],
    add: &mut AddChartFn<'_>,
) -> Result<()> {
    let mut places: Vec<u64> =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point.0 as u64)).collect();
    places.sort_unstable();
    places.dedup();
    let places = places.into_iter().map(|n| (n as f64, format_grouped(n))).collect();
    let mut upper = title.to_string();
    if let Some(first) = upper.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let along = "contacts in the book";
    let chart = BenchChart {
        title: &upper,
        about,
        x_label: along,
        x_marks: places,
        is_logarithmic: true,
        format_value: write,
        lines,
    };
    add(file, &chart)
}
