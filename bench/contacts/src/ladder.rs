//! Saving against the number of indexes: the same cards into collections with no index, and with one kind more each,
//! up to the default. What each step adds is what the index costs.

use crate::Outcome;
use crate::chart::Add;
use crate::svg::{Chart, Line};
use crate::table::{Figures, brief, grouped, short};
use larder_query::Field;
use larder_store::{IndexKind, Summary};
use std::fmt::Write as _;

/// What is indexed, for the table and for the chart. Those with the same number in `bench/eds/book_ask.c` are the
/// predecessor's; it has no index of substrings.
const STEPS: [(&str, &str); 8] = [
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
fn step(field: &Field, kind: IndexKind) -> usize {
    match (kind, field.name) {
        (IndexKind::Value, "full_name") => 1,
        (IndexKind::Value, "email") => 2,
        (IndexKind::Value, "phone") | (IndexKind::Phone, _) => 3,
        (IndexKind::Value, _) => 4,
        (IndexKind::Substring, _) => 5,
        (IndexKind::Suffix, _) => 6,
        (IndexKind::Sort, _) => 7,
    }
}

/// Prints each step's number, and its summary as `larder collections create --index` reads it.
pub(crate) fn print_summaries() -> Outcome<()> {
    let default = Summary::default();
    let kinds = [
        ("exact", IndexKind::Value),
        ("suffix", IndexKind::Suffix),
        ("phone", IndexKind::Phone),
        ("substring", IndexKind::Substring),
        ("sort", IndexKind::Sort),
    ];
    for number in 0..STEPS.len() {
        let mut text = String::new();
        for (name, kind) in kinds {
            for field in default.fields(kind).filter(|field| step(field, kind) <= number) {
                write!(text, " {}:{name}", field.name)?;
            }
        }
        let summary: Summary = if text.is_empty() { "none" } else { &text }.parse()?;
        if number + 1 == STEPS.len() && !summary.is_default() {
            return Err("the last step is not the default".into());
        }
        println!("{number}\t{summary}");
    }
    Ok(())
}

/// A contact's share in wall and processor time (microseconds), bytes written, bytes of the store.
fn shares(figures: &Figures, who: &str, n: u64, step: usize) -> Option<[f64; 4]> {
    let get = |row: &str| figures.get(&(who.to_string(), n, format!("index-{step}{row}")));
    let (time, number) = (get("")?, n as f64);
    let [wall, cpu] = [time.median, time.cpu].map(|time| time / 1e3 / number);
    Some([wall, cpu, get("-written")?.median / number, get("-store")?.median / number])
}

/// The number of contacts for which this was measured.
fn number(figures: &Figures) -> Option<u64> {
    figures.keys().filter(|(_, _, row)| row == "index-0").map(|(_, n, _)| *n).max()
}

/// The rows of the table: what is indexed, then Larder's shares with what they add to the row before, then EDS's.
fn rows(figures: &Figures) -> Option<(u64, Vec<[String; 11]>)> {
    let n = number(figures)?;
    let (mut rows, mut before) = (Vec::new(), None);
    for (number, (name, _)) in STEPS.iter().enumerate() {
        let Some(own) = shares(figures, "larder", n, number) else { continue };
        let more = |at: usize| {
            let before = before.map(|before: [f64; 4]| own[at] - before[at]);
            before.map_or_else(String::new, |more| format!("{:+.1}", more))
        };
        let eds = shares(figures, "eds", n, number);
        let other = |at: usize| eds.map_or_else(|| "-".into(), |eds| short(eds[at]));
        rows.push([
            (*name).to_string(),
            short(own[0]),
            short(own[1]),
            more(1),
            short(own[2]),
            short(own[3]),
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

const HEAD: [&str; 11] = [
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
pub(crate) fn print(figures: &Figures) {
    let Some((n, rows)) = rows(figures) else { return };
    println!("\nsaving {n} contacts, by what is indexed: microseconds and bytes per contact");
    for row in std::iter::once(HEAD.map(String::from)).chain(rows) {
        let [name, rest @ ..] = row;
        print!("{name:<34}");
        rest.iter().for_each(|value| print!("{value:>13}"));
        println!();
    }
}

/// The table in Markdown.
pub(crate) fn markdown(figures: &Figures) -> Option<String> {
    let (n, rows) = rows(figures)?;
    let mut out = format!("Per contact, of {} contacts:\n\n", grouped(n));
    out.push_str(&format!("| {} |\n|---{}|\n", HEAD.join(" | "), "|--:".repeat(HEAD.len() - 1)));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    Some(out)
}

/// Gives the chart of wall or processor time to `add`.
pub(crate) fn chart(figures: &Figures, what: &str, title: &str, add: &mut Add<'_>) -> Outcome<()> {
    let n = number(figures).unwrap_or_default();
    let line = |(style, who, name): (usize, &str, &'static str)| {
        let share = |step: usize| {
            let [wall, cpu, ..] = shares(figures, who, n, step)?;
            Some((step as f64, if what == "cpu" { cpu } else { wall }))
        };
        Line { name, style, points: (0..STEPS.len()).filter_map(share).collect() }
    };
    let who = [(0, "larder", "Larder"), (1, "eds", "EDS, through D-Bus")];
    let lines: Vec<Line> =
        who.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
    let places = (0..).zip(STEPS).map(|(at, (_, name))| (f64::from(at), name.to_string()));
    let chart = Chart {
        title,
        about: &format!("microseconds per contact, of {} contacts", grouped(n)),
        along: "indexed: with each step this, too",
        places: places.collect(),
        logarithmic: false,
        write: brief,
        lines: &lines,
    };
    add(&format!("indexes-{what}"), &chart)
}
