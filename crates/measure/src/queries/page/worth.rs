//! What the cache is worth, and what changes cost: two parts of the page.

use crate::chart::{Axis, Bar, Rows, Tone, Unit};
use crate::page::{Cell, Page};
use crate::queries::informed::{Changed, Informed};
use crate::queries::page::{ROWS, number, time};
use crate::queries::words;
use crate::queries::worth::{Trial, Worth};

pub(super) fn worth(page: &mut Page, it: &Worth) {
    page.text(&words::worth(it));
    if it.askings == 0 {
        return;
    }
    let bar = |trial: &Trial| Bar {
        name: words::budget(trial.budget),
        at: 0.0,
        values: vec![it.rate(trial.hits)],
        note: format!(
            "{}, {} kept",
            Unit::Share.write(it.rate(trial.hits)),
            Unit::Bytes.write(trial.peak as f64)
        ),
    };
    let chart = Rows {
        along: Axis::linear("answers that had been kept", Unit::Share),
        series: vec![(Tone::First, "had been kept".into())],
        bars: it.trials.iter().map(bar).collect(),
    };
    let about = "The log played again with other budgets; behind each bar the share, and the most that was kept at once.";
    page.chart("What other budgets would have given", about, &chart);
    let row = |trial: &Trial, name: String| {
        vec![
            Cell::Text(name),
            number(trial.hits),
            Cell::Number(Unit::Share.write(it.rate(trial.hits))),
            Cell::Number(Unit::Bytes.write(trial.peak as f64)),
            time(trial.saved_us as f64),
            number(trial.stale),
            number(trial.dropped),
        ]
    };
    let rows = it.trials.iter().map(|trial| row(trial, words::budget(trial.budget)));
    let own = it.recorded.iter().map(|trial| row(trial, "as in the log".into()));
    let rows: Vec<Vec<Cell>> = rows.chain(own).collect();
    let head =
        ["budget", "had been kept", "share", "kept at most", "time saved", "gone stale", "no room"];
    page.table("What other budgets would have given", &head, &rows);
    if let Some(text) = words::honesty(it) {
        page.text(&text);
    }
}

pub(super) fn informed(page: &mut Page, it: &Informed) {
    page.text(&words::informed(it));
    if it.changes == 0 {
        return;
    }
    let bar = |(least, most, changes): &(u64, u64, u64)| Bar {
        name: words::views(*least, *most),
        at: 0.0,
        values: vec![*changes as f64],
        note: words::count(*changes, "change"),
    };
    let chart = Rows {
        along: Axis::linear("changes", Unit::Count),
        series: vec![(Tone::First, "changes".into())],
        bars: it.views.iter().map(bar).collect(),
    };
    page.chart(
        "Views that a change informs",
        "Each row: changes that informed so many views.",
        &chart,
    );
    let row = |of: &Changed| {
        let mean = |sum: u64| {
            Cell::Number(
                Unit::Count.write((sum as f64 / of.changes.max(1) as f64 * 10.0).round() / 10.0),
            )
        };
        let any = |name: &Option<String>| Cell::Text(name.clone().unwrap_or("any".into()));
        vec![
            any(&of.collection),
            any(&of.kind),
            number(of.changes),
            mean(of.asked),
            mean(of.told),
            number(of.most),
        ]
    };
    let rows: Vec<Vec<Cell>> = it.collections.iter().take(2 * ROWS).map(row).collect();
    let head = ["collection", "kind", "changes", "tested, mean", "told, mean", "told, most"];
    page.table("By collection", &head, &rows);
    let [added, modified, removed] = it.delivered.map(|number| Unit::Count.write(number as f64));
    page.text(&format!(
        "Views were told of {added} added, {modified} modified and {removed} removed items."
    ));
    if !it.fresh.is_empty() {
        let all: Vec<String> =
            it.fresh.iter().map(|(why, number)| format!("{why} {number}")).collect();
        page.text(&format!("Views that were given their answer anew, by why: {}.", all.join(", ")));
    }
}
