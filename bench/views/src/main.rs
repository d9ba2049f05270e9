//! The measurements of the benchmarks of live views; shell scripts call them.
//!
//! * `months`: prints 180 queries, each for another month, in the format of `larder measure
//!   generate queries`.
//! * `open STORE QUERIES TURNS`: opens a view on each query, and takes its first answer, as rows,
//!   as metadata and as bytes.
//! * `commits STORE VIEWS ROUNDS`: the cost of a change with this number of views open in the
//!   process, some of which it concerns, and with none. Stores the planted items if `STORE` lacks
//!   them.
//! * `deliver STORE VIEWS CHANGES`: the time from a commit in another process to the event of a
//!   view, with this number of views open.
//! * `write STORE`: that other process: makes a change for each line that it reads.
//! * `log STORE FILE TURNS`: the cost of the query log for a query.
//! * `mix STORE VIEWS`: prints this number of different queries, such as the programs of a desktop
//!   have open.
//! * `held STORE QUERIES`: the memory of a view on each query.
//! * `browse STORE MONTHS TIMES CACHE`: opens a calendar, goes back month by month in five kinds of
//!   view, and closes it, repeatedly, with an answer cache of `CACHE` bytes. Prints the memory of
//!   the process after each time.
//! * `toggle STORE TIMES`: opens and closes the same month for new clients.
//!
//! Each line of output has these columns, separated by tabs: row, wall-clock time (median and
//! minimum), CPU time (mean), hits (mean), repetitions, wall-clock time (p99). Times are in
//! microseconds. Memory is anonymous memory in kB. The program is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod bench_queries;
mod latency;
mod memory;
mod planted_items;
mod timing;

use std::error::Error;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["months"] => {
            bench_queries::month_query_lines().iter().for_each(|line| println!("{line}"));
            Ok(())
        }
        ["open", store, queries, turns] => {
            latency::measure_opening(Path::new(store), queries, turns.parse()?)
        }
        ["commits", store, views, rounds] => {
            latency::measure_commits(Path::new(store), views.parse()?, rounds.parse()?)
        }
        ["deliver", store, views, changes] => {
            latency::measure_delivery(Path::new(store), views.parse()?, changes.parse()?)
        }
        ["write", store] => latency::run_writer(Path::new(store)),
        ["log", store, file, turns] => {
            latency::measure_query_log(Path::new(store), Path::new(file), turns.parse()?)
        }
        ["mix", store, views] => {
            let mix = bench_queries::query_mix(Path::new(store), views.parse()?)?;
            mix.iter().for_each(|query| println!("{}", bench_queries::format_query_line(query)));
            Ok(())
        }
        ["held", store, queries] => memory::measure_open_views(Path::new(store), queries),
        ["browse", store, months, times, cache] => memory::measure_browsing(
            Path::new(store),
            months.parse()?,
            times.parse()?,
            cache.parse()?,
        ),
        ["toggle", store, times] => memory::measure_toggling(Path::new(store), times.parse()?),
        _ => Err("see the head of bench/views/src/main.rs".into()),
    }
}
