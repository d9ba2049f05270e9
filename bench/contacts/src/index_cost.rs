//! The cost of indexes: the same cards are saved in collections without an index, then with one
//! more index in each step, up to the default configuration.

use crate::Result;
use crate::table::{FigureTable, format_grouped, format_short};
use larder_query::Field;
use larder_store::{FieldIndex, IndexConfig};
use std::fmt::Write as _;

/// The name of each step in the table and in results. `bench/eds/book_bench.c` uses the same
/// numbers; evolution-data-server has no index of substrings.
const INDEX_STEPS: [(&str, &str); 8] = [
    ("nothing", "nothing"),
    ("full_name, exact and prefix", "name"),
    ("+ email, exact and prefix", "e-mail"),
    ("+ phone, exact, prefix and phone", "phone"),
    ("+ all others, exact and prefix", "others"),
    ("+ substring", "substring"),
    ("+ suffix", "suffix"),
    ("+ sort, which is the default", "sort"),
];

/// Returns the step that adds an index of a field.
fn index_step(field: &Field, kind: FieldIndex) -> usize {
    match (kind, field.name) {
        (FieldIndex::Value, "full_name") => 1,
        (FieldIndex::Value, "email") => 2,
        (FieldIndex::Value, "phone") | (FieldIndex::Phone, _) => 3,
        (FieldIndex::Value, _) => 4,
        (FieldIndex::Substring, _) => 5,
        (FieldIndex::Suffix, _) => 6,
        (FieldIndex::Sort, _) => 7,
    }
}

/// Prints the number and the index configuration of each step, as `larder collections create
/// --index` reads it.
pub(crate) fn print_index_configs() -> Result<()> {
    let default = IndexConfig::default();
    let kinds = [
        ("exact", FieldIndex::Value),
        ("suffix", FieldIndex::Suffix),
        ("phone", FieldIndex::Phone),
        ("substring", FieldIndex::Substring),
        ("sort", FieldIndex::Sort),
    ];
    for number in 0..INDEX_STEPS.len() {
        let mut text = String::new();
        for (name, kind) in kinds {
            for field in
                default.fields_with_index(kind).filter(|field| index_step(field, kind) <= number)
            {
                write!(text, " {}:{name}", field.name)?;
            }
        }
        let config: IndexConfig = if text.is_empty() { "none" } else { &text }.parse()?;
        if number + 1 == INDEX_STEPS.len() && !config.is_default() {
            return Err("the last step is not the default".into());
        }
        println!("{number}\t{config}");
    }
    Ok(())
}

/// Returns wall time, CPU time (in microseconds), bytes written and bytes of the store, for each
/// contact.
fn cost_per_contact(figures: &FigureTable, who: &str, n: u64, step: usize) -> Option<[f64; 4]> {
    let get = |row: &str| figures.get(&(who.to_string(), n, format!("index-{step}{row}")));
    let (time, number) = (get("")?, n as f64);
    let [wall, cpu] = [time.median, time.cpu].map(|time| time / 1e3 / number);
    Some([wall, cpu, get("-written")?.median / number, get("-store")?.median / number])
}

/// Returns the number of contacts that the steps were measured with.
fn measured_contacts(figures: &FigureTable) -> Option<u64> {
    figures.keys().filter(|(_, _, row)| row == "index-0").map(|(_, n, _)| *n).max()
}

/// Returns the rows of the table: the step, Larder's costs with their difference from the previous
/// row, then the rows of EDS.
fn table_rows(figures: &FigureTable) -> Option<(u64, Vec<[String; 11]>)> {
    let n = measured_contacts(figures)?;
    let (mut rows, mut before) = (Vec::new(), None);
    for (number, (name, _)) in INDEX_STEPS.iter().enumerate() {
        let Some(larder) = cost_per_contact(figures, "larder", n, number) else { continue };
        let added = |at: usize| {
            let before = before.map(|before: [f64; 4]| larder[at] - before[at]);
            before.map_or_else(String::new, |added| format!("{added:+.1}"))
        };
        let eds = cost_per_contact(figures, "eds", n, number);
        let other = |at: usize| eds.map_or_else(|| "-".into(), |eds| format_short(eds[at]));
        rows.push([
            (*name).to_string(),
            format_short(larder[0]),
            format_short(larder[1]),
            added(1),
            format_short(larder[2]),
            format_short(larder[3]),
            added(3),
            other(0),
            other(1),
            other(2),
            other(3),
        ]);
        before = Some(larder);
    }
    Some((n, rows))
}

const COLUMN_TITLES: [&str; 11] = [
    "indexed",
    "µs wall",
    "µs CPU",
    "added",
    "written",
    "store",
    "added",
    "EDS: µs wall",
    "µs CPU",
    "written",
    "store",
];

/// Prints the table of costs.
pub(crate) fn print_table(figures: &FigureTable) {
    let Some((n, rows)) = table_rows(figures) else { return };
    println!("\nsaving {n} contacts by index configuration: microseconds and bytes per contact");
    for row in std::iter::once(COLUMN_TITLES.map(String::from)).chain(rows) {
        let [name, rest @ ..] = row;
        print!("{name:<34}");
        rest.iter().for_each(|value| print!("{value:>13}"));
        println!();
    }
}

/// Returns the measures of results: name, program, and CPU time per contact in microseconds.
pub(crate) fn result_rows(figures: &FigureTable) -> Vec<(String, &'static str, u64, f64)> {
    let Some(n) = measured_contacts(figures) else { return Vec::new() };
    let mut rows = Vec::new();
    for (number, (_, name)) in INDEX_STEPS.iter().enumerate() {
        for program in ["larder", "eds"] {
            let Some([_, cpu, ..]) = cost_per_contact(figures, program, n, number) else {
                continue;
            };
            rows.push((
                format!("save with indexes up to {name}, CPU, per contact"),
                program,
                n,
                cpu,
            ));
        }
    }
    rows
}

/// Returns the table of costs in Markdown.
pub(crate) fn to_markdown(figures: &FigureTable) -> Option<String> {
    let (n, rows) = table_rows(figures)?;
    let mut out = format!("Per contact, of {} contacts:\n\n", format_grouped(n));
    out.push_str(&format!(
        "| {} |\n|---{}|\n",
        COLUMN_TITLES.join(" | "),
        "|--:".repeat(COLUMN_TITLES.len() - 1)
    ));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    Some(out)
}
