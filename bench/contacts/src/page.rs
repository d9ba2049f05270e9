//! The tables of a page of Markdown: each stands between `<!-- NAME -->` and `<!-- /NAME -->`, and is put there anew where
//! the figures have something for it. What is around them is written by hand.

use crate::Outcome;
use crate::ladder;
use crate::table::{
    self, Figure, Figures, LARGE, ROWS, USUAL, brief, grouped, is_shared, nanoseconds, read, spent,
};
use std::path::Path;

/// Whose memory is counted, and of whom that is.
const HOLDERS: [(&str, &str); 3] = [
    ("larder", "Larder"),
    ("eds", "EDS, D-Bus: service and client"),
    ("eds-direct", "EDS, direct: service and client"),
];
/// The peaks that `bench/M02-contacts.sh` measures.
const PEAKS: [(&str, &str); 9] = [
    ("peak-import", "`larder import`"),
    ("peak-find-name", "`larder find`, one name"),
    ("peak-find-word", "`larder find`, two letters"),
    ("peak-find-any", "`larder find`, any field"),
    ("peak-find-count", "`larder find --count`"),
    ("peak-find-all", "`larder find`, all, sorted"),
    ("peak-remove", "`larder remove`, all"),
    ("peak-undo", "`larder undo`, all"),
    ("store-share", "`data.db`, bytes for a byte of the cards"),
];

/// Much the same as their neighbours: the page is to be one page.
const NOT_SHOWN: [&str; 5] = ["prefix-4", "prefix-6", "prefix-7", "prefix-8", "prefix-9"];

/// Puts the tables into the page.
pub(crate) fn write(figures: &str, page: &Path) -> Outcome<()> {
    let mut text = std::fs::read_to_string(page)?;
    for line in std::fs::read_to_string(figures)?.lines() {
        if let Some((name, machine)) = line.strip_prefix("# ").and_then(|line| line.split_once(' '))
        {
            replace(&mut text, name, machine);
        }
    }
    let figures = read(figures)?;
    let tables = [
        ("times", times(&figures, false)),
        ("limited", times(&figures, true)),
        ("bytes", bytes(&figures)),
        ("indexes", ladder::markdown(&figures)),
        ("memory", memory(&figures)),
        ("peaks", peaks(&figures)),
    ];
    for (name, table) in tables {
        if let Some(table) = table {
            replace(&mut text, name, &table);
        }
    }
    Ok(std::fs::write(page, text)?)
}

fn replace(text: &mut String, name: &str, with: &str) {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    if let Some((before, rest)) = text.split_once(&open)
        && let Some((_, behind)) = rest.split_once(&close)
    {
        *text = format!("{before}{open}\n{}\n{close}{behind}", with.trim_end());
    }
}

/// A table: its first column is text, the others are numbers.
struct Table(String);

impl Table {
    fn new(columns: &[String]) -> Table {
        let numbers = "|--:".repeat(columns.len().saturating_sub(1));
        Table(format!("| {} |\n|---{numbers}|\n", columns.join(" | ")))
    }

    fn add(&mut self, cells: &[String]) {
        self.0.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

fn figure<'a>(figures: &'a Figures, who: &str, n: u64, row: &str) -> Option<&'a Figure> {
    figures.get(&(who.to_string(), n, row.to_string()))
}

/// The number of contacts to show: the usual one if it was measured.
fn usual(figures: &Figures, row: &str) -> Option<u64> {
    let measured = figures.keys().filter(|(who, _, of)| who == "larder" && of == row);
    measured.map(|(_, n, _)| *n).max_by_key(|n| (*n == USUAL, *n))
}

/// The rows of at most 20 hits, or the others, at one size; and Larder's at the largest.
fn times(figures: &Figures, limited: bool) -> Option<String> {
    let n = usual(figures, "exact")?;
    let others: &[(&str, &str)] = match limited {
        true => &[("floor", "floor")],
        false => &[("eds", "EDS, D-Bus"), ("eds-direct", "EDS, direct"), ("floor", "floor")],
    };
    let mut head = vec![format!("{} contacts", grouped(n))];
    head.extend(["goal", "Larder", "p99", "CPU", "hits"].map(String::from));
    head.extend(others.iter().map(|(_, name)| (*name).to_string()));
    let large = figure(figures, "larder", LARGE, "exact").is_some() && n != LARGE;
    if large {
        head.push(format!("Larder, {}", grouped(LARGE)));
        head.push("goal".into());
    }
    let mut table = Table::new(&head);
    let shown = |row: &str| {
        row.ends_with("/20") == limited && !NOT_SHOWN.iter().any(|skip| row.starts_with(skip))
    };
    for &(row, name, wanted) in ROWS.iter().filter(|(row, ..)| shown(row)) {
        let Some(own) = figure(figures, "larder", n, row) else { continue };
        let share = |it: &Figure| if is_shared(row) { it.hits.max(1.0) } else { 1.0 };
        let median = |it: &Figure| it.median / share(it);
        let goal = |n: u64| match table::goal(row, wanted, n) {
            0.0 => String::new(),
            goal => nanoseconds(goal * 1e3),
        };
        let cell = |n: u64, it: &Figure| {
            let wanted = table::goal(row, wanted, n) * 1e3;
            let late = wanted > 0.0 && spent(row, it) / share(it) > wanted;
            if late { format!("**{}**", nanoseconds(median(it))) } else { nanoseconds(median(it)) }
        };
        let mut cells = vec![name.to_string(), goal(n), cell(n, own)];
        cells.extend([nanoseconds(own.p99 / share(own)), nanoseconds(own.cpu / share(own))]);
        cells.push(brief(own.hits));
        for (who, _) in others {
            cells.push(figure(figures, who, n, row).map_or("-".into(), |it| {
                format!("{} ({} x)", nanoseconds(median(it)), brief(median(it) / median(own)))
            }));
        }
        if large {
            let there = figure(figures, "larder", LARGE, row);
            cells.push(there.map_or("-".into(), |it| cell(LARGE, it)));
            cells.push(goal(LARGE));
        }
        table.add(&cells);
    }
    Some(table.0)
}

/// Bytes on the disk, at all sizes.
fn bytes(figures: &Figures) -> Option<String> {
    usual(figures, "bytes-store")?;
    let head = ["contacts", "", "Larder", "EDS", "floor"].map(String::from);
    let mut table = Table::new(&head);
    for n in sizes(figures, "bytes-store", false) {
        let Some(source) = figure(figures, "source", n, "bytes-source") else { continue };
        for (row, name, unit) in [
            ("bytes-store", "store, for a byte of the cards", source.median),
            ("written-batch", "written per contact, saved in batches", n as f64),
            ("written-one", "written per contact, saved singly", 1.0),
        ] {
            let Some(own) = figure(figures, "larder", n, row) else { continue };
            let mut cells = vec![grouped(n), name.to_string(), brief(own.median / unit)];
            for who in ["eds", "floor"] {
                cells.push(figure(figures, who, n, row).map_or("-".into(), |it| {
                    format!("{} ({} x)", brief(it.median / unit), brief(it.median / own.median))
                }));
            }
            table.add(&cells);
        }
    }
    Some(table.0)
}

/// The sizes at which a row was measured; without the small ones, if there are others.
fn sizes(figures: &Figures, row: &str, all: bool) -> Vec<u64> {
    let least = if all { 0 } else { usual(figures, row).unwrap_or_default() };
    let measured = figures.keys().filter(|(who, _, of)| who == "larder" && of == row);
    let mut sizes: Vec<u64> = measured.map(|(_, n, _)| *n).filter(|n| *n >= least).collect();
    sizes.sort_unstable();
    sizes
}

/// What a contact takes in a process that holds all of them.
fn memory(figures: &Figures) -> Option<String> {
    usual(figures, "memory-rss")?;
    let head = ["contacts", "", "RSS", "PSS", "VMS", "anonymous"].map(String::from);
    let mut table = Table::new(&head);
    for n in sizes(figures, "memory-rss", false) {
        for (who, name) in HOLDERS {
            if figure(figures, who, n, "memory-rss").is_none() {
                continue;
            }
            let mut cells = vec![grouped(n), name.to_string()];
            for kind in ["rss", "pss", "vms", "anonymous"] {
                let value = figure(figures, who, n, &format!("memory-{kind}"));
                cells.push(value.map_or("-".into(), |it| grouped(it.median.max(0.0) as u64)));
            }
            table.add(&cells);
        }
    }
    Some(table.0)
}

/// Peaks of anonymous memory, in MB, and the size of the store, with their goals.
fn peaks(figures: &Figures) -> Option<String> {
    usual(figures, "peak-import")?;
    let sizes = sizes(figures, "peak-import", true);
    let mut head = vec!["contacts".to_string()];
    head.extend(sizes.iter().map(|n| grouped(*n)));
    head.push("goal".into());
    let mut table = Table::new(&head);
    for (row, name) in PEAKS {
        let mut cells = vec![name.to_string()];
        let mut wanted = String::new();
        for n in &sizes {
            let value = figure(figures, "larder", *n, row);
            cells.push(value.map_or("-".into(), |it| brief(it.median)));
            wanted = value.map_or(wanted, |it| brief(it.p99));
        }
        cells.push(wanted);
        table.add(&cells);
    }
    Some(table.0)
}
