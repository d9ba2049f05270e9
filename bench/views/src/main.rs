//! What the benchmarks of live views do, besides shell.
//!
//! * `months`: prints the 180 questions, each of another month, in the form of `larder measure
//!   generate queries`.
//! * `open STORE QUERIES TURNS`: opens a view on each question, and takes its first answer: rows,
//!   bytes.
//! * `commits STORE VIEWS ROUNDS`: what a change costs that so many views, open in this process,
//!   are told of; and what it costs where none is open. Where `STORE` has no planted items, they
//!   are put there.
//! * `deliver STORE VIEWS CHANGES`: how long after a commit in another process a view is told, with
//!   so many open.
//! * `write STORE`: that other process: a change for each line that it reads.
//! * `log STORE FILE TURNS`: what the query log adds to a question.
//! * `mix STORE VIEWS`: prints so many questions, no two alike, as a desk has them open.
//! * `held STORE QUESTIONS`: what a view on each of them takes in memory.
//! * `browse STORE MONTHS TIMES CACHE`: a calendar opened, looked through backwards in five kinds
//!   of view, closed; so many times, with a cache of so many bytes. What the process takes after
//!   each.
//! * `toggle STORE TIMES`: the same month opened and closed by new clients.
//!
//! A line each: row, wall (median), wall (least), processor (mean), hits (mean), repetitions, p99,
//! with tabs between; microseconds. Memory is anonymous, in kB. It is no part of Larder.

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
            mix.iter()
                .for_each(|question| println!("{}", bench_queries::format_query_line(question)));
            Ok(())
        }
        ["held", store, questions] => memory::measure_open_views(Path::new(store), questions),
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
