//! Updates the tables of a Markdown page. Each is between `<!-- NAME -->` and `<!-- /NAME -->` and
//! is replaced if the figures contain it; the text around the tables is written by hand.

use crate::Result;
use crate::index_cost;
use crate::table::{
    self, FigureTable, GOAL_CONTACTS, LARGE_CONTACTS, RowFigure, TABLE_ROWS, format_brief,
    format_grouped, format_nanoseconds, is_per_contact, measured_nanos, read_figures,
};
use larder_measure::page_section::replace_section;
use std::path::Path;

/// The programs whose memory is measured, with the processes that count.
const MEMORY_PROGRAMS: [(&str, &str); 3] = [
    ("larder", "Larder"),
    ("eds", "EDS, D-Bus: service and client"),
    ("eds-direct", "EDS, direct: service and client"),
];
/// The peaks that `bench/M02-contacts.sh` measures.
const PEAK_ROWS: [(&str, &str); 9] = [
    ("peak-import", "`larder import`"),
    ("peak-find-name", "`larder find`, one name"),
    ("peak-find-word", "`larder find`, two letters"),
    ("peak-find-any", "`larder find`, any field"),
    ("peak-find-count", "`larder find --count`"),
    ("peak-find-all", "`larder find`, all, sorted"),
    ("peak-remove", "`larder remove`, all"),
    ("peak-undo", "`larder undo`, all"),
    ("store-share", "`data.db`, space amplification"),
];

/// Rows left out because they differ little from their neighbours.
const HIDDEN_ROWS: [&str; 5] = ["prefix-4", "prefix-6", "prefix-7", "prefix-8", "prefix-9"];

/// Replaces the tables of a page.
pub(crate) fn update_page(figures: &str, page: &Path) -> Result<()> {
    let mut text = std::fs::read_to_string(page)?;
    for line in std::fs::read_to_string(figures)?.lines() {
        if let Some((name, machine)) = line.strip_prefix("# ").and_then(|line| line.split_once(' '))
        {
            replace_section(&mut text, name, machine);
        }
    }
    let figures = read_figures(figures)?;
    let tables = [
        ("times", time_table(&figures, false)),
        ("limited", time_table(&figures, true)),
        ("bytes", size_table(&figures)),
        ("indexes", index_cost::to_markdown(&figures)),
        ("memory", memory_table(&figures)),
        ("peaks", peak_table(&figures)),
    ];
    for (name, table) in tables {
        if let Some(table) = table {
            replace_section(&mut text, name, &table);
        }
    }
    Ok(std::fs::write(page, text)?)
}

/// A Markdown table whose first column is text and whose other columns are numbers.
struct MarkdownTable(String);

impl MarkdownTable {
    fn new(columns: &[String]) -> MarkdownTable {
        let numbers = "|--:".repeat(columns.len().saturating_sub(1));
        MarkdownTable(format!("| {} |\n|---{numbers}|\n", columns.join(" | ")))
    }

    fn add_row(&mut self, cells: &[String]) {
        self.0.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

fn get_figure<'a>(figures: &'a FigureTable, who: &str, n: u64, row: &str) -> Option<&'a RowFigure> {
    figures.get(&(who.to_string(), n, row.to_string()))
}

/// Returns the number of contacts to show: [`GOAL_CONTACTS`] if it was measured, or the largest.
fn usual_contact_count(figures: &FigureTable, row: &str) -> Option<u64> {
    let measured = figures.keys().filter(|(program, _, name)| program == "larder" && name == row);
    measured.map(|(_, n, _)| *n).max_by_key(|n| (*n == GOAL_CONTACTS, *n))
}

/// Returns the table of times, of the rows with at most 20 hits or of the others, with Larder's
/// times at [`LARGE_CONTACTS`].
fn time_table(figures: &FigureTable, limited: bool) -> Option<String> {
    let n = usual_contact_count(figures, "exact")?;
    let others: &[(&str, &str)] = match limited {
        true => &[("floor", "baseline")],
        false => &[("eds", "EDS, D-Bus"), ("eds-direct", "EDS, direct"), ("floor", "baseline")],
    };
    let mut head = vec![format!("{} contacts", format_grouped(n))];
    head.extend(["goal", "Larder", "p99", "CPU", "hits"].map(String::from));
    head.extend(others.iter().map(|(_, name)| (*name).to_string()));
    let large =
        get_figure(figures, "larder", LARGE_CONTACTS, "exact").is_some() && n != LARGE_CONTACTS;
    if large {
        head.push(format!("Larder, {}", format_grouped(LARGE_CONTACTS)));
        head.push("goal".into());
    }
    let mut table = MarkdownTable::new(&head);
    let shown = |row: &str| {
        row.ends_with("/20") == limited && !HIDDEN_ROWS.iter().any(|skip| row.starts_with(skip))
    };
    for &(row, name, wanted) in TABLE_ROWS.iter().filter(|(row, ..)| shown(row)) {
        let Some(larder) = get_figure(figures, "larder", n, row) else { continue };
        let share = |it: &RowFigure| if is_per_contact(row) { it.hits.max(1.0) } else { 1.0 };
        let median = |it: &RowFigure| it.median / share(it);
        let goal = |n: u64| match table::goal_micros(row, wanted, n) {
            0.0 => String::new(),
            goal => format_nanoseconds(goal * 1e3),
        };
        let cell = |n: u64, it: &RowFigure| {
            let wanted = table::goal_micros(row, wanted, n) * 1e3;
            let is_missed = wanted > 0.0 && measured_nanos(row, it) / share(it) > wanted;
            if is_missed {
                format!("**{}**", format_nanoseconds(median(it)))
            } else {
                format_nanoseconds(median(it))
            }
        };
        let mut cells = vec![name.to_string(), goal(n), cell(n, larder)];
        cells.extend([
            format_nanoseconds(larder.p99 / share(larder)),
            format_nanoseconds(larder.cpu / share(larder)),
        ]);
        cells.push(format_brief(larder.hits));
        for (who, _) in others {
            cells.push(get_figure(figures, who, n, row).map_or("-".into(), |it| {
                format!(
                    "{} ({} x)",
                    format_nanoseconds(median(it)),
                    format_brief(median(it) / median(larder))
                )
            }));
        }
        if large {
            let figure = get_figure(figures, "larder", LARGE_CONTACTS, row);
            cells.push(figure.map_or("-".into(), |it| cell(LARGE_CONTACTS, it)));
            cells.push(goal(LARGE_CONTACTS));
        }
        table.add_row(&cells);
    }
    Some(table.0)
}

/// Bytes on the disk, at all sizes.
fn size_table(figures: &FigureTable) -> Option<String> {
    usual_contact_count(figures, "bytes-store")?;
    let head = ["contacts", "", "Larder", "EDS", "baseline"].map(String::from);
    let mut table = MarkdownTable::new(&head);
    for n in measured_contact_counts(figures, "bytes-store", false) {
        let Some(source) = get_figure(figures, "source", n, "bytes-source") else { continue };
        for (row, name, unit) in [
            ("bytes-store", "space amplification", source.median),
            ("written-batch", "written per contact, saved in batches", n as f64),
            ("written-one", "written per contact, saved singly", 1.0),
        ] {
            let Some(larder) = get_figure(figures, "larder", n, row) else { continue };
            let mut cells =
                vec![format_grouped(n), name.to_string(), format_brief(larder.median / unit)];
            for who in ["eds", "floor"] {
                cells.push(get_figure(figures, who, n, row).map_or("-".into(), |it| {
                    format!(
                        "{} ({} x)",
                        format_brief(it.median / unit),
                        format_brief(it.median / larder.median)
                    )
                }));
            }
            table.add_row(&cells);
        }
    }
    Some(table.0)
}

/// Returns the numbers of contacts that a row was measured with; unless `all`, without the small
/// ones.
fn measured_contact_counts(figures: &FigureTable, row: &str, all: bool) -> Vec<u64> {
    let least = if all { 0 } else { usual_contact_count(figures, row).unwrap_or_default() };
    let measured = figures.keys().filter(|(program, _, name)| program == "larder" && name == row);
    let mut sizes: Vec<u64> = measured.map(|(_, n, _)| *n).filter(|n| *n >= least).collect();
    sizes.sort_unstable();
    sizes
}

/// Returns the table of memory for each contact.
fn memory_table(figures: &FigureTable) -> Option<String> {
    usual_contact_count(figures, "memory-rss")?;
    let head = ["contacts", "", "RSS", "PSS", "VMS", "anonymous"].map(String::from);
    let mut table = MarkdownTable::new(&head);
    for n in measured_contact_counts(figures, "memory-rss", false) {
        for (who, name) in MEMORY_PROGRAMS {
            if get_figure(figures, who, n, "memory-rss").is_none() {
                continue;
            }
            let mut cells = vec![format_grouped(n), name.to_string()];
            for kind in ["rss", "pss", "vms", "anonymous"] {
                let value = get_figure(figures, who, n, &format!("memory-{kind}"));
                cells
                    .push(value.map_or("-".into(), |it| format_grouped(it.median.max(0.0) as u64)));
            }
            table.add_row(&cells);
        }
    }
    Some(table.0)
}

/// Returns the table of peaks of anonymous memory, in MB, and of the size of the store, with goals.
fn peak_table(figures: &FigureTable) -> Option<String> {
    usual_contact_count(figures, "peak-import")?;
    let sizes = measured_contact_counts(figures, "peak-import", true);
    let mut head = vec!["contacts".to_string()];
    head.extend(sizes.iter().map(|n| format_grouped(*n)));
    head.push("goal".into());
    let mut table = MarkdownTable::new(&head);
    for (row, name) in PEAK_ROWS {
        let mut cells = vec![name.to_string()];
        let mut wanted = String::new();
        for n in &sizes {
            let value = get_figure(figures, "larder", *n, row);
            cells.push(value.map_or("-".into(), |it| format_brief(it.median)));
            wanted = value.map_or(wanted, |it| format_brief(it.p99));
        }
        cells.push(wanted);
        table.add_row(&cells);
    }
    Some(table.0)
}
