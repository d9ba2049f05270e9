//! The page of a browse: how many views are open, and how much memory there is, on one time axis.

use super::{Browsed, Sample};
use crate::chart::{Axis, Line, Lines, Tone, Unit};
use crate::page::{Cell, Page};

/// Rounds in the table; of more, the first and the last.
const ROUNDS: usize = 20;

/// A page with charts that needs nothing else. `about`: what was done, in a sentence.
#[must_use]
pub fn page(found: &Browsed, about: &str) -> String {
    let mut page = Page::new("Browsing a calendar");
    page.text(about);
    let bytes = |value: u64| Unit::Bytes.write(value as f64);
    let [before, most, first, _, last] = found.memory();
    page.figures(&[
        (Unit::Count.write(found.views as f64), "views opened".into()),
        (Unit::Count.write(found.most_open() as f64), "open at once, at most".into()),
        (Unit::Count.write(found.left_open() as f64), "left open".into()),
        (bytes(before), "of memory before".into()),
        (bytes(most), "at most".into()),
        (bytes(first), "after the first round".into()),
        (bytes(last), "after the last".into()),
    ]);
    if found.left_open() > 0 {
        page.alarm("Views were left open.");
    }
    chart(&mut page, found, "Open views", Unit::Count, Tone::First, |sample| sample.open as f64);
    chart(&mut page, found, "Anonymous memory", Unit::Bytes, Tone::Second, |sample| {
        sample.anonymous as f64
    });
    let rows: Vec<Vec<Cell>> = shown(found.rounds.len())
        .filter_map(|round| {
            let sample = found.rounds.get(round)?;
            Some(vec![
                Cell::Number((round + 1).to_string()),
                Cell::Number(Unit::Time.write(sample.at.as_micros() as f64)),
                Cell::Number(sample.open.to_string()),
                Cell::Number(bytes(sample.anonymous)),
            ])
        })
        .collect();
    page.table(
        "When all views of a round were closed",
        &["round", "at", "open views", "memory"],
        &rows,
    );
    page.finish()
}

/// Which of so many rounds are shown.
fn shown(rounds: usize) -> impl Iterator<Item = usize> {
    let half = ROUNDS / 2;
    (0..rounds).filter(move |round| rounds <= ROUNDS || *round < half || *round + half >= rounds)
}

fn chart(
    page: &mut Page,
    found: &Browsed,
    name: &str,
    unit: Unit,
    tone: Tone,
    value: fn(&Sample) -> f64,
) {
    let at = |sample: &Sample| sample.at.as_micros() as f64;
    let end = found.samples.last().map_or(0.0, at);
    let points = found.samples.iter().map(|sample| (at(sample), value(sample))).collect();
    let lines = vec![Line { name: name.into(), tone, filled: true, points }];
    let chart = Lines {
        along: Axis::linear("since the beginning", Unit::Time),
        from: (0.0, end),
        up: Axis::linear(name, unit),
        least: 1.0,
        lines,
    };
    page.chart(
        name,
        "Noted after each view that was opened, and when all of a round were closed.",
        &chart,
    );
}
