//! How long answers take: the part of the page, of one log and of two.

use crate::chart::{Axis, Range, Ranges, Tone, Unit};
use crate::page::{Cell, Page};
use crate::queries::compare::change;
use crate::queries::cost::{Cost, Group, Work};
use crate::queries::names::Question;
use crate::queries::page::{Named, ROWS, code, number, time};
use crate::queries::words;

fn three(work: &Work) -> [f64; 3] {
    [work.us.mean(), work.us.quantile(0.95) as f64, work.us.most as f64]
}

const ABOUT_RANGES: &str = "A dot is the mean, the bar ends at what 19 of 20 answers do not exceed, the line at the worst.";

pub(super) fn cost(page: &mut Page, it: &Cost) {
    page.text(&words::cost(it));
    if it.collections.is_empty() {
        return;
    }
    let range = |group: &Group| Range {
        name: words::group(group),
        values: vec![(Tone::First, "time".into(), three(&group.work))],
    };
    let chart = Ranges {
        along: Axis::log("time of an answer that was worked out", Unit::Time),
        ranges: it.collections.iter().take(2 * ROWS).map(range).collect(),
    };
    page.chart("Time by collection and kind of source", ABOUT_RANGES, &chart);
    let row = |group: &Group| {
        let mut cells = vec![Cell::Text(words::group(group))];
        cells.extend(work(&group.work));
        cells.push(Cell::Code(code(&group.worst.query)));
        cells
    };
    let rows: Vec<Vec<Cell>> = it.collections.iter().take(2 * ROWS).map(row).collect();
    let head = [
        "",
        "answers",
        "mean",
        "19 of 20",
        "worst",
        "visited",
        "given",
        "visited per given",
        "the worst",
    ];
    page.table("By collection", &head, &rows);
    let row = |group: &Group| {
        let mut cells = vec![Cell::Text(group.source.clone())];
        cells.extend(work(&group.work));
        cells.push(Cell::Code(code(&group.worst.query)));
        cells
    };
    let rows: Vec<Vec<Cell>> = it.sources.iter().take(ROWS).map(row).collect();
    page.table("By kind of source", &head, &rows);
    let row = |(question, it): &(Question, Work)| {
        let of = Cell::Text(words::about(question));
        vec![
            time(it.us.sum as f64),
            number(it.us.number),
            time(it.us.mean()),
            time(it.us.most as f64),
            ratio(it),
            of,
            Cell::Code(code(&question.query)),
        ]
    };
    let rows: Vec<Vec<Cell>> = it.dearest.iter().take(ROWS).map(row).collect();
    let head = ["in all", "answers", "mean", "worst", "visited per given", "of", "question"];
    page.table("The dearest questions", &head, &rows);
}

fn ratio(work: &Work) -> Cell {
    Cell::Number(words::ratio(work))
}

fn work(work: &Work) -> Vec<Cell> {
    let [mean, most, worst] = three(work).map(time);
    vec![
        number(work.us.number),
        mean,
        most,
        worst,
        number(work.scanned),
        number(work.returned),
        ratio(work),
    ]
}

/// The cost by collection, before and after.
pub(super) fn compared(page: &mut Page, (before, a): Named<'_>, (after, b): Named<'_>) {
    let other = |group: &Group| {
        let same = |it: &&Group| (&it.collection, &it.source) == (&group.collection, &group.source);
        b.cost.collections.iter().find(same)
    };
    let (mut ranges, mut rows) = (Vec::new(), Vec::new());
    for group in a.cost.collections.iter().take(2 * ROWS) {
        let Some(then) = other(group) else { continue };
        let name = words::group(group);
        ranges.push(Range {
            name: name.clone(),
            values: vec![
                (Tone::Plain, before.into(), three(&group.work)),
                (Tone::First, after.into(), three(&then.work)),
            ],
        });
        let mean = |it: &Group| it.work.us.mean();
        rows.push(vec![
            Cell::Text(name),
            time(mean(group)),
            time(mean(then)),
            Cell::Number(change(mean(group), mean(then))),
            time(group.work.us.most as f64),
            time(then.work.us.most as f64),
            ratio(&group.work),
            ratio(&then.work),
        ]);
    }
    if ranges.is_empty() {
        page.text("The logs have no collection in common.");
        return;
    }
    page.part("Before and after");
    let along = Axis::log("time of an answer that was worked out", Unit::Time);
    page.chart("Time by collection, before and after", ABOUT_RANGES, &Ranges { along, ranges });
    let head = [
        "",
        "mean before",
        "after",
        "change",
        "worst before",
        "after",
        "visited per given before",
        "after",
    ];
    page.table("Time by collection, before and after", &head, &rows);
}
