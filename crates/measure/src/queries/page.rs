//! The page of a query log: each question with its answer in words, charts and tables.
//!
//! Two logs stand beside each other, the one from before first. Each part has a module of its own.

mod cost;
mod lives;
mod reuse;
mod worth;

use self::cost::{compared, cost};
use self::lives::lives;
use self::reuse::reuse;
use self::worth::{informed, worth};
use crate::chart::{Axis, Clock, Unit, date};
use crate::page::{Cell, Page};
use crate::queries::Report;
use crate::queries::compare::{Figure, both, figures};
use crate::queries::words;

/// A log, and what it is called.
pub type Named<'a> = (&'a str, &'a Report);

/// So many rows of a table.
const ROWS: usize = 12;

/// The page of a log, or of one before and one after a change. `clock` tells local time.
#[must_use]
pub fn page(log: Named<'_>, after: Option<Named<'_>>, clock: Clock<'_>) -> String {
    let title = match after {
        None => format!("Query log: {}", log.0),
        Some((after, _)) => format!("Query logs: {} and {after}", log.0),
    };
    let mut page = Page::new(&title);
    let logs: Vec<Named<'_>> = [Some(log), after].into_iter().flatten().collect();
    head(&mut page, &logs, clock);
    section(&mut page, &logs, "Which questions are asked, and how often?", &|page, it| {
        reuse(page, &it.reuse, it.time, clock);
    });
    section(&mut page, &logs, "How long do views and kept answers live?", &|page, it| {
        lives(page, &it.lives, clock);
    });
    section(&mut page, &logs, "How long do answers take?", &|page, it| cost(page, &it.cost));
    if let Some(after) = after {
        compared(&mut page, log, after);
    }
    section(&mut page, &logs, "Is the cache worth its memory?", &|page, it| worth(page, &it.worth));
    section(&mut page, &logs, "How many views does a change inform?", &|page, it| {
        informed(page, &it.informed);
    });
    page.finish()
}

fn section(page: &mut Page, logs: &[Named<'_>], title: &str, each: &dyn Fn(&mut Page, &Report)) {
    page.heading(title);
    for (name, report) in logs {
        if logs.len() > 1 {
            page.part(name);
        }
        each(page, report);
    }
}

fn number(value: u64) -> Cell {
    Cell::Number(Unit::Count.write(value as f64))
}

fn time(us: f64) -> Cell {
    Cell::Number(words::time(us))
}

/// A question, not longer than anybody reads.
fn code(text: &str) -> String {
    short(&words::question(text))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(240) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// What is most wanted of each log, and what was not understood.
fn head(page: &mut Page, logs: &[Named<'_>], clock: Clock<'_>) {
    for (name, report) in logs {
        let of = if logs.len() > 1 { format!("{name}: ") } else { String::new() };
        page.text(&format!("{of}{}", words::log(report, clock)));
        if report.broken.lines > 0 {
            let broken = words::count(report.broken.lines, "line");
            page.alarm(&format!("{broken} could not be understood, and are not in these figures."));
        }
    }
    match logs {
        [(_, report)] => {
            let figures: Vec<(String, String)> = figures(report)
                .into_iter()
                .map(|Figure { name, value, unit }| (unit.write(value), name.to_string()))
                .collect();
            page.figures(&figures);
        }
        [(before, a), (after, b)] => {
            let row = |it: &[String; 4]| {
                let [name, rest @ ..] = it;
                let cells = rest.iter().cloned().map(Cell::Number);
                [Cell::Text(name.clone())].into_iter().chain(cells).collect()
            };
            let rows: Vec<Vec<Cell>> = both(a, b).iter().map(row).collect();
            page.table("Before and after", &["", before, after, "change"], &rows);
        }
        _ => {}
    }
}

/// What the axis of time is called.
fn along((from, to): (i64, i64), clock: Clock<'_>) -> Axis<'_> {
    let (first, last) = (date(from, clock), date(to, clock));
    let name = if first == last { format!("time, {first}") } else { format!("{first} to {last}") };
    Axis::moments(&name, clock)
}
