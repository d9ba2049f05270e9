//! How long views and kept answers live: the part of the page, with the lifelines.

use crate::chart::{Axis, Band, Clock, Lifeline, Lifelines, Line, Lines, Tone, Unit};
use crate::page::{Cell, Page};
use crate::queries::kept::Kept;
use crate::queries::lives::{Client, End, Life, Lives};
use crate::queries::log::Why;
use crate::queries::page::{ROWS, along, code, number, short, time};
use crate::queries::spread::Spread;
use crate::queries::words;
use std::collections::HashMap;

/// So many lives that ended, and so many that did not, are drawn.
const LIVES: usize = 300;
/// So many clients have a band of their own.
const BANDS: usize = 16;

/// Of lives that there are.
fn lived(lives: &Spread, us: u64) -> Cell {
    if lives.number > 0 { time(us as f64) } else { Cell::Number("-".into()) }
}

fn tone(end: End) -> Tone {
    match end {
        End::Leaked => Tone::Alarm,
        End::BrokenOff => Tone::Doubt,
        End::Open => Tone::Third,
        End::Closed => Tone::First,
    }
}

pub(super) fn lives(page: &mut Page, it: &Lives, clock: Clock<'_>) {
    if it.leaked > 0 {
        page.alarm(&words::lives(it));
    } else {
        page.text(&words::lives(it));
    }
    page.text(&words::kept(it));
    if it.opened > 0 {
        lifelines(page, it, clock);
    }
    let row = |life: &Life| {
        vec![
            match life.end {
                End::Leaked => Cell::Alarm("leaked".into()),
                end => Cell::Text(end.word().replace('_', " ")),
            },
            Cell::Text(life.client.clone()),
            Cell::Number(words::when(life.opened, it.time, clock)),
            time(life.us() as f64),
            Cell::Text(words::about(&life.question)),
            Cell::Code(code(&life.question.query)),
        ]
    };
    let rows: Vec<Vec<Cell>> = it.never.iter().take(4 * ROWS).map(row).collect();
    let title = match it.never.len() - rows.len() {
        0 => "Never closed".to_string(),
        more => format!("Never closed (and {} more)", Unit::Count.write(more as f64)),
    };
    page.table(&title, &["", "client", "opened", "open for", "of", "question"], &rows);
    let row = |client: &Client| {
        let never = client.leaked + client.broken_off + client.open;
        let left = Unit::Count.write(never as f64);
        vec![
            Cell::Text(client.client.clone()),
            number(client.opened),
            if client.leaked > 0 { Cell::Alarm(left) } else { Cell::Text(left) },
            lived(&client.lives, client.lives.quantile(0.5)),
            lived(&client.lives, client.lives.most),
        ]
    };
    let rows: Vec<Vec<Cell>> = it.clients.iter().take(ROWS).map(row).collect();
    let head = ["client", "opened", "never closed", "median life", "longest"];
    page.table("Views by client", &head, &rows);
    if it.lives.number + it.kept.kept > 0 {
        curves(page, it);
    }
}

fn lifelines(page: &mut Page, it: &Lives, clock: Clock<'_>) {
    // Of too many every second, third, ... so that how they become more is seen.
    let each = it.never.len().div_ceil(LIVES).max(1);
    let shown = || it.never.iter().step_by(each).chain(it.longest.iter().take(LIVES));
    let line = |life: &&Life| Lifeline {
        from: life.opened as f64,
        to: life.ended as f64,
        tone: tone(life.end),
        endless: life.end != End::Closed,
        title: short(&words::life(life, it.time, clock)),
    };
    let band = |(name, mut lives): (String, Vec<&Life>)| {
        lives.sort_by_key(|life| (life.opened, life.view));
        Band { name, lives: lives.iter().map(line).collect() }
    };
    let ends = [End::Leaked, End::BrokenOff, End::Open, End::Closed];
    let there = ends.into_iter().filter(|end| shown().any(|life| life.end == *end));
    let chart = Lifelines {
        along: along(it.time, clock),
        from: (it.time.0 as f64, it.time.1 as f64),
        tones: there.map(|end| (tone(end), end.name().to_string())).collect(),
        bands: by_client(it, shown()).into_iter().map(band).collect(),
    };
    let number = shown().count() as u64;
    let mut about =
        "A line is a view, from when it was opened until it was closed, by client.".to_string();
    if number < it.opened {
        let all = words::count(it.opened, "view");
        about.push_str(&format!(" Drawn are {number} of {all}: "));
        about.push_str(match each {
            1 => "those that were never closed, and the longest.",
            _ => "some of those that were never closed, and the longest.",
        });
    }
    page.chart("The lives of views", &about, &chart);
}

/// Lives by their clients, those that leave most open first. Where there are too many clients the others come last,
/// together.
fn by_client<'a>(
    it: &'a Lives,
    shown: impl Iterator<Item = &'a Life>,
) -> Vec<(String, Vec<&'a Life>)> {
    let mut by: HashMap<&str, Vec<&Life>> = HashMap::new();
    for life in shown {
        by.entry(&life.client).or_default().push(life);
    }
    let order = it.clients.iter().filter_map(|it| by.remove_entry(it.client.as_str()));
    let mut all: Vec<(String, Vec<&Life>)> =
        order.map(|(name, lives)| (name.to_string(), lives)).collect();
    if all.len() > BANDS {
        let others = all.split_off(BANDS - 1);
        let name = words::count(others.len() as u64, "other");
        all.push((name, others.into_iter().flat_map(|(_, lives)| lives).collect()));
    }
    all
}

/// The lives of views and of answers, as shares.
fn curves(page: &mut Page, it: &Lives) {
    let Kept { lives, ended, .. } = &it.kept;
    let of = |why: Why| lives.get(&why).cloned().unwrap_or_default();
    let all = [
        ("views, until they were closed", Tone::First, it.lives.clone()),
        ("answers, until a change", Tone::Alarm, of(Why::Stale)),
        ("answers, until others needed their room", Tone::Doubt, of(Why::Budget)),
        ("answers, until the end", Tone::Plain, ended.clone()),
    ];
    let there: Vec<_> = all.into_iter().filter(|(.., lives)| lives.number > 0).collect();
    let ends = || there.iter().map(|(.., lives)| lives.most as f64);
    let starts = there.iter().map(|(.., lives)| lives.quantile(0.0) as f64);
    let line = |(name, tone, lives): &(&str, Tone, Spread)| Line {
        name: format!("{name} ({})", Unit::Count.write(lives.number as f64)),
        tone: *tone,
        filled: false,
        points: lives.curve(),
    };
    let chart = Lines {
        along: Axis::log("how long they lived", Unit::Time),
        from: (starts.fold(f64::MAX, f64::min), ends().fold(1.0, f64::max)),
        up: Axis::linear("", Unit::Share),
        least: 1.0,
        lines: there.iter().map(line).collect(),
    };
    let about = "At each place: the share of them that lived no longer than that.";
    page.chart("How long views and kept answers live", about, &chart);
}
