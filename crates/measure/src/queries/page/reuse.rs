//! Which questions are asked, and how often: the part of the page.

use crate::chart::{Axis, Bar, Clock, Columns, Line, Lines, Rows, Tone, Unit, date, moment};
use crate::page::{Cell, Page};
use crate::queries::kept::Held;
use crate::queries::page::{ROWS, along, code, number, time};
use crate::queries::reuse::{Often, Origins, Reuse, Times};
use crate::queries::words;

const ORIGINS: [(Tone, &str); 3] = [
    (Tone::Plain, "worked out"),
    (Tone::First, "from the cache"),
    (Tone::Second, "from an open view"),
];

fn origins() -> Vec<(Tone, String)> {
    ORIGINS.map(|(tone, name)| (tone, name.to_string())).into()
}

fn parts(answers: &Origins) -> Vec<f64> {
    [answers.run, answers.cache, answers.shared].map(|number| number as f64).into()
}

pub(super) fn reuse(page: &mut Page, it: &Reuse, log: (i64, i64), clock: Clock<'_>) {
    page.text(&words::reuse(it));
    if it.answers.all() == 0 {
        return;
    }
    let bar = |at: &Times| Bar {
        name: words::span(at.least, at.most),
        at: 0.0,
        values: vec![at.answers as f64],
        note: format!(
            "{} to {}",
            words::count(at.answers, "answer"),
            words::count(at.questions, "question")
        ),
    };
    let rows = Rows {
        along: Axis::linear("answers", Unit::Count),
        series: vec![(Tone::First, "answers".into())],
        bars: it.times.iter().map(bar).collect(),
    };
    let about =
        "Each row: questions that were asked so many times, and the answers they had together.";
    page.chart("How often the same is asked", about, &rows);
    let row = |often: &Often| {
        vec![
            number(often.answers.all()),
            number(often.answers.cache),
            number(often.answers.shared),
            time(often.us as f64 / often.answers.all().max(1) as f64),
            Cell::Text(words::about(&often.question)),
            Cell::Code(code(&often.question.query)),
        ]
    };
    let rows: Vec<Vec<Cell>> = it.most.iter().take(ROWS).map(row).collect();
    let head = ["asked", "from the cache", "from a view", "mean", "of", "question"];
    page.table("The most asked", &head, &rows);
    over_the_day(page, it, log, clock);
    let row = |(client, answers): &(String, Origins)| {
        let name = Cell::Text(client.clone());
        let [run, cache, shared] = [answers.run, answers.cache, answers.shared].map(number);
        vec![name, number(answers.all()), run, cache, shared]
    };
    let rows: Vec<Vec<Cell>> = it.clients.iter().take(ROWS).map(row).collect();
    let head = ["client", "asked", "worked out", "from the cache", "from a view"];
    page.table("Who asks", &head, &rows);
}

/// The size of the cache, and below it the answers, by the same time.
fn over_the_day(page: &mut Page, it: &Reuse, log: (i64, i64), clock: Clock<'_>) {
    let from = (log.0 as f64, log.1 as f64);
    let line = |name: &str, tone, filled, of: fn(&Held) -> u64| Line {
        name: name.into(),
        tone,
        filled,
        points: it.held.boxes().map(|(at, held)| (at.max(log.0) as f64, of(held) as f64)).collect(),
    };
    let sizes = Lines {
        along: along(log, clock),
        from,
        up: Axis::linear("", Unit::Bytes),
        least: 1000.0,
        lines: vec![
            line("all answers that are kept", Tone::First, true, |held| held.kept),
            line("those that open views have", Tone::Second, false, |held| held.open),
        ],
    };
    page.chart(
        "Memory of answers over time",
        "In bytes, the most in each stretch of time.",
        &sizes,
    );
    let name = |at: i64| format!("{} {}", date(at, clock), moment(at, clock, true));
    let bar = |(at, answers): (i64, &Origins)| Bar {
        name: name(at),
        at: at as f64,
        values: parts(answers),
        note: String::new(),
    };
    let bars = Columns {
        along: along(log, clock),
        from,
        wide: it.day.width as f64,
        up: Axis::linear("", Unit::Count),
        series: origins(),
        bars: it.day.boxes().map(bar).collect(),
    };
    let wide = words::time(it.day.width as f64);
    page.chart(
        "Answers over time",
        &format!("Answers in {wide} each, by where they came from."),
        &bars,
    );
}
