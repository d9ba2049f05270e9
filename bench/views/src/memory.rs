//! The memory that open views use, and the memory that remains after they are closed.

use crate::Result;
use crate::bench_queries::{
    format_iso_date, line_query, month_start, open_view, parse_query_line, views_config,
};
use crate::timing::anonymous_memory_kib;
use larder_query::views::{View, ViewInterest, ViewQuery, Views, ViewsOptions};
use larder_store::Kind;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

/// The month that browsing begins with, counted from the beginning of the calendar.
const LAST_MONTH_NUMBER: i64 = 108;

/// Opens a view on each query of a file, and prints the memory after each tenth of them. Then
/// closes them, and opens them again, which should need no more memory. The queries themselves are
/// read line by line, so that they do not count.
pub(crate) fn measure_open_views(path: &Path, file: &str) -> Result<()> {
    let number = BufReader::new(File::open(file)?).lines().count();
    let views = Views::open(path, views_config(0))?;
    let client: Arc<str> = "bench".into();
    for time in ["open", "again"] {
        let mut open = Vec::with_capacity(number);
        println!("{time}\t0\t{}", anonymous_memory_kib()?);
        for (at, line) in BufReader::new(File::open(file)?).lines().enumerate() {
            let query = parse_query_line(&line?).ok_or("a line holds no query")?;
            open.push(open_view(&views, query, ViewInterest::Rows, &client)?.0);
            if (at + 1) % (number / 10).max(1) == 0 {
                println!("{time}\t{}\t{}", views.count_open_views(), anonymous_memory_kib()?);
            }
        }
        drop(open);
        views.release_memory();
    }
    println!("closed\t{}\t{}", views.count_open_views(), anonymous_memory_kib()?);
    Ok(())
}

/// The query of a calendar program's view in a month.
fn calendar_view_query(kind: &str, number: i64) -> ViewQuery {
    let first = month_start(number);
    // 1 January 1970 was a Thursday.
    let monday = first - (first + 3).rem_euclid(7);
    let (from, to) = match kind {
        "day" => (first, first + 1),
        "week" => (monday, monday + 7),
        "work week" => (monday, monday + 5),
        "month" => (first, month_start(number + 1)),
        _ => (first, first + 30),
    };
    line_query(&format!("when:{}..{}", format_iso_date(from), format_iso_date(to - 1)))
        .with_kind(Kind::Event)
        .with_occurrences()
}

/// Opens a calendar, goes back month by month in each kind of view, and closes it; `times` times.
pub(crate) fn measure_browsing(path: &Path, months: i64, times: usize, cache: usize) -> Result<()> {
    let views = Views::open(path, ViewsOptions { watch: true, ..views_config(cache) })?;
    views.catch_up()?;
    let client: Arc<str> = "calendar".into();
    println!("browse\t0\t{}\t{}\t0", anonymous_memory_kib()?, views.count_open_views());
    for time in 1..=times {
        let mut items = 0;
        let mut shown: Option<View> = None;
        for kind in ["day", "week", "work week", "month", "list"] {
            for back in 0..=months {
                let next = calendar_view_query(kind, LAST_MONTH_NUMBER - back);
                let (view, delivered) =
                    open_view(&views, next, ViewInterest::MetaAndBytes, &client)?;
                items += delivered;
                // A program closes a view after it has opened the next one.
                drop(shown.replace(view));
            }
        }
        drop(shown);
        println!(
            "browse\t{time}\t{}\t{}\t{items}",
            anonymous_memory_kib()?,
            views.count_open_views()
        );
    }
    Ok(())
}

/// Opens and closes the same month, each time for another client.
pub(crate) fn measure_toggling(path: &Path, times: usize) -> Result<()> {
    let views = Views::open(
        path,
        ViewsOptions { watch: true, ..views_config(larder_query::views::DEFAULT_CACHE_BYTES) },
    )?;
    println!("toggle\t0\t{}\t{}", anonymous_memory_kib()?, views.count_open_views());
    for time in 1..=times {
        let client: Arc<str> = format!("client {time}").into();
        drop(open_view(
            &views,
            calendar_view_query("month", LAST_MONTH_NUMBER),
            ViewInterest::MetaAndBytes,
            &client,
        )?);
        if time == 1 || time % (times / 10).max(1) == 0 {
            println!("toggle\t{time}\t{}\t{}", anonymous_memory_kib()?, views.count_open_views());
        }
    }
    Ok(())
}
