//! The table of figures for one number of contacts: goals, ratios, and missed goals.

use crate::Result;
use std::collections::HashMap;

/// The measurements of one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowFigure {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) cpu: f64,
    pub(crate) hits: f64,
}

/// Figures by program, number of contacts and row.
pub(crate) type FigureTable = HashMap<(String, u64, String), RowFigure>;

/// A row, its name, and its goal in microseconds, or 0 without a goal. The goals of `save-batch`
/// and `delete-all` are for one contact.
type TableRow = (&'static str, &'static str, f64);

/// The rows, in the order of the table.
pub(crate) const TABLE_ROWS: &[TableRow] = &[
    ("save-batch", "save in batches, per contact", 60.0),
    ("save-one", "save one", 0.0),
    ("open", "open, first result", 300.0),
    ("uid", "by UID", 4.0),
    ("uids-100", "100 UIDs", 350.0),
    ("all", "fetch all, bytes", 5000.0),
    ("all-eds", "fetch all, with EDS's query", 0.0),
    ("ids", "fetch all, ids", 0.0),
    ("ids-rev", "fetch all, ids and revisions", 0.0),
    ("fields-3", "fetch all, three fields", 0.0),
    ("page-50", "sorted page of 50, anywhere", 150.0),
    ("page-back", "50 back from anywhere", 150.0),
    ("page-end", "the last 50", 150.0),
    ("letters", "alphabetic index with counts", 0.0),
    ("exact/20", "exact name, at most 20", 40.0),
    ("exact-email/20", "exact e-mail, at most 20", 40.0),
    ("prefix-1/20", "prefix of 1, at most 20", 40.0),
    ("prefix-2/20", "prefix of 2, at most 20", 40.0),
    ("prefix-3/20", "prefix of 3, at most 20", 40.0),
    ("prefix-4/20", "prefix of 4, at most 20", 40.0),
    ("prefix-5/20", "prefix of 5, at most 20", 40.0),
    ("prefix-6/20", "prefix of 6, at most 20", 40.0),
    ("prefix-7/20", "prefix of 7, at most 20", 40.0),
    ("prefix-8/20", "prefix of 8, at most 20", 40.0),
    ("prefix-9/20", "prefix of 9, at most 20", 40.0),
    ("prefix-10/20", "prefix of 10, at most 20", 40.0),
    ("suffix/20", "suffix of name, at most 20", 40.0),
    ("suffix-email/20", "suffix of e-mail, at most 20", 40.0),
    ("substring/20", "substring, at most 20", 100.0),
    ("phone/20", "phone equality, at most 20", 40.0),
    ("any/20", "any field, at most 20", 200.0),
    ("exact", "exact name, all hits", 0.0),
    ("exact-email", "exact e-mail, all hits", 0.0),
    ("prefix-1", "prefix of 1, all hits", 0.0),
    ("prefix-2", "prefix of 2, all hits", 0.0),
    ("prefix-3", "prefix of 3, all hits", 0.0),
    ("prefix-4", "prefix of 4, all hits", 0.0),
    ("prefix-5", "prefix of 5, all hits", 0.0),
    ("prefix-6", "prefix of 6, all hits", 0.0),
    ("prefix-7", "prefix of 7, all hits", 0.0),
    ("prefix-8", "prefix of 8, all hits", 0.0),
    ("prefix-9", "prefix of 9, all hits", 0.0),
    ("prefix-10", "prefix of 10, all hits", 0.0),
    ("prefix-320", "prefix of about 320 hits, all", 0.0),
    ("suffix", "suffix of name, all hits", 0.0),
    ("suffix-email", "suffix of e-mail, all hits", 0.0),
    ("substring", "substring, all hits", 0.0),
    ("phone", "phone equality, all hits", 0.0),
    ("any", "any field, all hits", 0.0),
    ("process-find", "larder find, whole process", 8000.0),
    ("delete-all", "delete all, per contact", 40.0),
];

/// The number of contacts that goals are for. Indexed queries of [`LARGE_CONTACTS`] may take twice
/// as long.
pub(crate) const GOAL_CONTACTS: u64 = 12_800;
pub(crate) const LARGE_CONTACTS: u64 = 102_400;
/// With fewer contacts there are no goals: the start of the process dominates.
const MIN_GOAL_CONTACTS: u64 = 800;
/// The goal for the size of the store, in bytes for each byte of the cards.
const MAX_STORE_BYTES_PER_CARD_BYTE: f64 = 2.5;

/// The programs compared with Larder.
const COMPARED_PROGRAMS: [(&str, &str); 3] =
    [("eds", "EDS"), ("eds-direct", "direct"), ("floor", "baseline")];

/// Reads files of figures. Lines that begin with `#` are comments.
pub(crate) fn read_figures(path: &str) -> Result<FigureTable> {
    let mut figures = HashMap::new();
    for line in std::fs::read_to_string(path)?.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split_ascii_whitespace().collect();
        let [who, n, row, _, median, p99, cpu, hits] = parts[..] else {
            return Err(format!("not a line of figures: {line}").into());
        };
        let figure = RowFigure {
            median: median.parse()?,
            p99: p99.parse()?,
            cpu: cpu.parse()?,
            hits: hits.parse()?,
        };
        figures.insert((who.to_string(), n.parse()?, row.to_string()), figure);
    }
    Ok(figures)
}

/// Returns whether the figures of a row are for all contacts, and shown for one.
pub(crate) fn is_per_contact(row: &str) -> bool {
    matches!(row, "save-batch" | "delete-all")
}

pub(crate) fn goal_micros(row: &str, goal: f64, n: u64) -> f64 {
    match row {
        _ if goal == 0.0 || n < MIN_GOAL_CONTACTS => 0.0,
        // With few contacts the cost of a command dominates the cost for each.
        "save-batch" | "delete-all" if n < GOAL_CONTACTS => 0.0,
        "save-batch" if n == LARGE_CONTACTS => 90.0,
        "all" | "delete-all" | "process-find" if n == LARGE_CONTACTS => 0.0,
        _ if n == LARGE_CONTACTS => goal * 2.0,
        _ if n > GOAL_CONTACTS => 0.0,
        _ => goal,
    }
}

/// Returns the figure to compare with the goal: usually the median wall time, for saving the larger
/// of wall and CPU time, for a process the CPU time.
pub(crate) fn measured_nanos(row: &str, figure: &RowFigure) -> f64 {
    match row {
        "save-batch" => figure.median.max(figure.cpu),
        "process-find" => figure.cpu,
        _ => figure.median,
    }
}

/// Prints the table and the missed goals; returns whether all goals are met.
pub(crate) fn print_table(figures: &FigureTable, n: u64) -> bool {
    let get = |who: &str, row: &str| figures.get(&(who.to_string(), n, row.to_string()));
    let mut missed = Vec::new();
    println!("\n{n} contacts: microseconds; x: ratio to Larder of the median and of the");
    println!("99th percentile of wall time, and of the mean CPU time");
    print!("{:<29}{:>8}{:>9}{:>8}{:>9}{:>8}", "", "goal", "Larder", "p99", "CPU", "hits");
    for (_, name) in COMPARED_PROGRAMS {
        print!("  |{name:>9}{:>8}{:>7}{:>7}{:>7}{:>8}", "p99", "x", "p99 x", "CPU x", "hits");
    }
    println!();
    for &(row, name, wanted) in TABLE_ROWS {
        let Some(larder) = get("larder", row) else { continue };
        let unit = |it: &RowFigure| if is_per_contact(row) { 1e3 * it.hits.max(1.0) } else { 1e3 };
        let goal = goal_micros(row, wanted, n);
        let spent = measured_nanos(row, larder) / unit(larder);
        let is_missed = goal > 0.0 && spent > goal;
        if is_missed {
            missed.push(format!("{name}: {} instead of {goal}", format_short(spent)));
        }
        let mark = if is_missed { "!" } else { "" };
        let wanted = if goal > 0.0 { format!("{mark}{goal}") } else { String::new() };
        print!("{name:<29}{wanted:>8}");
        print!(
            "{:>9}{:>8}",
            format_short(larder.median / unit(larder)),
            format_short(larder.p99 / unit(larder))
        );
        print!("{:>9}{:>8}", format_short(larder.cpu / unit(larder)), format_short(larder.hits));
        for (who, _) in COMPARED_PROGRAMS {
            let other = get(who, row);
            let cell = |value: &dyn Fn(&RowFigure) -> f64| {
                other.map_or("-".into(), |it| format_short(value(it)))
            };
            print!("  |{:>9}", cell(&|it| it.median / unit(it)));
            print!("{:>8}", cell(&|it| it.p99 / unit(it)));
            for value in
                [|it: &RowFigure| it.median, |it: &RowFigure| it.p99, |it: &RowFigure| it.cpu]
            {
                let larder = value(larder) / unit(larder);
                print!("{:>7}", cell(&|it| value(it) / unit(it) / larder.max(1e-3)));
            }
            print!("{:>8}", cell(&|it| it.hits));
        }
        println!();
    }
    print_sizes(figures, n, &mut missed);
    match missed.is_empty() {
        true => println!("{n} contacts: all goals are met"),
        false => println!("{n} contacts: GOALS ARE MISSED: {}", missed.join("; ")),
    }
    missed.is_empty()
}

fn print_sizes(figures: &FigureTable, n: u64, missed: &mut Vec<String>) {
    let get =
        |who: &str, row: &str| Some(figures.get(&(who.to_string(), n, row.to_string()))?.median);
    let Some(source) = get("source", "bytes-source") else { return };
    print!("{:<44}{:>10}{:>10}{:>7}", "bytes; x: ratios to Larder", "Larder", "EDS", "x");
    println!("{:>10}{:>7}    ({} bytes a card)", "baseline", "x", format_short(source / n as f64));
    for (row, name, unit) in [
        ("bytes-store", "space amplification", source),
        ("written-batch", "written per contact, saved in batches", n as f64),
        ("written-one", "written per contact, saved singly", 1.0),
    ] {
        let Some(larder) = get("larder", row) else { continue };
        print!("{name:<44}{:>10}", format_short(larder / unit));
        for who in ["eds", "floor"] {
            let cell =
                |unit: f64| get(who, row).map_or("-".into(), |value| format_short(value / unit));
            print!("{:>10}{:>7}", cell(unit), cell(larder.max(1.0)));
        }
        println!();
    }
    if let Some(store) = get("larder", "bytes-store")
        && n >= MIN_GOAL_CONTACTS
        && store / source > MAX_STORE_BYTES_PER_CARD_BYTE
    {
        missed.push(format!(
            "bytes of the store: {} x instead of {MAX_STORE_BYTES_PER_CARD_BYTE}",
            format_short(store / source)
        ));
    }
}

/// Formats a number with about three digits.
pub(crate) fn format_short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size > 0.0 => format!("{value:.2}"),
        _ => "0".into(),
    }
}

/// Formats a number with about three digits, without trailing zeros.
pub(crate) fn format_brief(value: f64) -> String {
    let text = format_short(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Formats a time in nanoseconds.
pub(crate) fn format_nanoseconds(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{} ns", format_brief(value)),
        value if value < 1e6 => format!("{} µs", format_brief(value / 1e3)),
        value if value < 1e9 => format!("{} ms", format_brief(value / 1e6)),
        value => format!("{} s", format_brief(value / 1e9)),
    }
}

/// Formats a number with commas.
pub(crate) fn format_grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
