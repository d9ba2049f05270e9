//! What views take in memory, and leave behind.

use crate::Outcome;
use crate::clock::anonymous;
use crate::questions::{iso, line, month, opened, options, read};
use larder_query::views::{Interest, Question, View, Views, ViewsOptions};
use larder_store::Kind;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

/// The last month that is looked at, counted from the beginning of the calendar.
const LAST: i64 = 108;

/// Opens a view on each question of a file, no two alike, and tells what they take: a line for each tenth of them. Then they are
/// closed, and opened again: what the first ones left must do for these. The questions are not kept here.
pub(crate) fn held(path: &Path, file: &str) -> Outcome<()> {
    let number = BufReader::new(File::open(file)?).lines().count();
    let views = Views::open(path, options(0))?;
    let client: Arc<str> = "bench".into();
    for time in ["open", "again"] {
        let mut open = Vec::with_capacity(number);
        println!("{time}\t0\t{}", anonymous()?);
        for (at, line) in BufReader::new(File::open(file)?).lines().enumerate() {
            let question = read(&line?).ok_or("no question")?;
            open.push(opened(&views, question, Interest::Rows, &client)?.0);
            if (at + 1) % (number / 10).max(1) == 0 {
                println!("{time}\t{}\t{}", views.open_views(), anonymous()?);
            }
        }
        drop(open);
        views.rest();
    }
    println!("closed\t{}\t{}", views.open_views(), anonymous()?);
    Ok(())
}

/// The window of a kind of view in a month.
fn window(kind: &str, number: i64) -> Question {
    let first = month(number);
    // 1 January 1970 was a Thursday.
    let monday = first - (first + 3).rem_euclid(7);
    let (from, to) = match kind {
        "day" => (first, first + 1),
        "week" => (monday, monday + 7),
        "work week" => (monday, monday + 5),
        "month" => (first, month(number + 1)),
        _ => (first, first + 30),
    };
    line(&format!("when:{}..{}", iso(from), iso(to - 1))).of_kind(Kind::Event).with_occurrences()
}

/// A calendar is opened, looked through backwards, and closed, so many times.
pub(crate) fn browse(path: &Path, months: i64, times: usize, cache: usize) -> Outcome<()> {
    let views = Views::open(path, ViewsOptions { watch: true, ..options(cache) })?;
    views.catch_up()?;
    let client: Arc<str> = "calendar".into();
    println!("browse\t0\t{}\t{}\t0", anonymous()?, views.open_views());
    for time in 1..=times {
        let mut items = 0;
        let mut shown: Option<View> = None;
        for kind in ["day", "week", "work week", "month", "list"] {
            for back in 0..=months {
                let next = window(kind, LAST - back);
                let (view, told) = opened(&views, next, Interest::Whole, &client)?;
                items += told;
                // What was shown is closed when there is something else to be shown.
                drop(shown.replace(view));
            }
        }
        drop(shown);
        println!("browse\t{time}\t{}\t{}\t{items}", anonymous()?, views.open_views());
    }
    Ok(())
}

/// The same month is opened and closed, each time by another client.
pub(crate) fn toggle(path: &Path, times: usize) -> Outcome<()> {
    let views =
        Views::open(path, ViewsOptions { watch: true, ..options(larder_query::views::CACHE) })?;
    println!("toggle\t0\t{}\t{}", anonymous()?, views.open_views());
    for time in 1..=times {
        let client: Arc<str> = format!("client {time}").into();
        drop(opened(&views, window("month", LAST), Interest::Whole, &client)?);
        if time == 1 || time % (times / 10).max(1) == 0 {
            println!("toggle\t{time}\t{}\t{}", anonymous()?, views.open_views());
        }
    }
    Ok(())
}
