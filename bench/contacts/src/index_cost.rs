//! Saving against the number of indexes: the same cards into collections with no index, and with
//! one kind more each, up to the default. What each step adds is what the index costs.

use crate::Result;
use crate::chart::AddChartFn;
use crate::svg::{BenchChart, BenchLine};
use crate::table::{FigureTable, format_brief, format_grouped, format_short};
use larder_query::Field;
use larder_store::{FieldIndex, IndexConfig};
use std::fmt::Write as _;

/// What is indexed, for the table and for the chart. Those with the same number in
/// `bench/eds/book_ask.c` are the predecessor's; it has no index of substrings.
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

/// The step that adds this index of this field.
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

/// Prints each step's number, and its summary as `larder collections create --index` reads it.
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
        let summary: IndexConfig = if text.is_empty() { "none" } else { &text }.parse()?;
        if number + 1 == INDEX_STEPS.len() && !summary.is_default() {
            return Err("the last step is not the default".into());
        }
        println!("{number}\t{summary}");
    }
    Ok(())
}

/// A contact's share in wall and processor time (microseconds), bytes written, bytes of the store.
fn cost_per_contact(figures: &FigureTable, who: &str, n: u64, step: usize) -> Option<[f64; 4]> {
    let get = |row: &str| figures.get(&(who.to_string(), n, format!("index-{step}{row}")));
    let (time, number) = (get("")?, n as f64);
    let [wall, cpu] = [time.median, time.cpu].map(|time| time / 1e3 / number);
    Some([wall, cpu, get("-written")?.median / number, get("-store")?.median / number])
}

/// The number of contacts for which this was measured.
fn measured_contact_count(figures: &FigureTable) -> Option<u64> {
    figures.keys().filter(|(_, _, row)| row == "index-0").map(|(_, n, _)| *n).max()
}

/// The rows of the table: what is indexed, then Larder's shares with what they add to the row
/// before, then EDS's.
fn table_rows(figures: &FigureTable) -> Option<(u64, Vec<[String; 11]>)> {
    let n = measured_contact_count(figures)?;
    let (mut rows, mut before) = (Vec::new(), None);
    for (number, (name, _)) in INDEX_STEPS.iter().enumerate() {
        let Some(own) = cost_per_contact(figures, "larder", n, number) else { continue };
        let more = |at: usize| {
            let before = before.map(|before: [f64; 4]| own[at] - before[at]);
            before.map_or_else(String::new, |more| format!("{:+.1}", more))
        };
        let eds = cost_per_contact(figures, "eds", n, number);
        let other = |at: usize| eds.map_or_else(|| "-".into(), |eds| format_short(eds[at]));
        rows.push([
            (*name).to_string(),
            format_short(own[0]),
            format_short(own[1]),
            more(1),
            format_short(own[2]),
            format_short(own[3]),
            more(3),
            other(0),
            other(1),
            other(2),
            other(3),
        ]);
        before = Some(own);
    }
    Some((n, rows))
}

const COLUMN_TITLES: [&str; 11] = [
    "indexed",
    "µs wall",
    "µs CPU",
    "more",
    "written",
    "store",
    "more",
    "EDS: µs wall",
    "µs CPU",
    "written",
    "store",
];

/// Prints the table.
pub(crate) fn print_table(figures: &FigureTable) {
    let Some((n, rows)) = table_rows(figures) else { return };
    println!("\nsaving {n} contacts, by what is indexed: microseconds and bytes per contact");
    for row in std::iter::once(COLUMN_TITLES.map(String::from)).chain(rows) {
        let [name, rest @ ..] = row;
        print!("{name:<34}");
        rest.iter().for_each(|value| print!("{value:>13}"));
        println!();
    }
}

/// The table in Markdown.
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

/// Gives the chart of wall or processor time to `add`.
pub(crate) fn add_index_cost_chart(
    figures: &FigureTable,
    what: &str,
    title: &str,
    add: &mut AddChartFn<'_>,
) -> Result<()> {
    let n = measured_contact_count(figures).unwrap_or_default();
    let line = |(style, who, name): (usize, &str, &'static str)| {
        let share = |step: usize| {
            let [wall, cpu, ..] = cost_per_contact(figures, who, n, step)?;
            Some((step as f64, if what == "cpu" { cpu } else { wall }))
        };
        BenchLine {
            name,
            style_index: style,
            points: (0..INDEX_STEPS.len()).filter_map(share).collect(),
        }
    };
    let who = [(0, "larder", "Larder"), (1, "eds", "EDS, through D-Bus")];
    let lines: Vec<BenchLine> =
        who.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
    let places = (0..).zip(INDEX_STEPS).map(|(at, (_, name))| (f64::from(at), name.to_string()));
    let chart = BenchChart {
        title,
        about: &format!("microseconds per contact, of {} contacts", format_grouped(n)),
        x_label: "indexed: with each step this, too",
        x_marks: places.collect(),
        is_logarithmic: false,
        format_value: format_brief,
        lines: &lines,
    };
    add(&format!("indexes-{what}"), &chart)
}
