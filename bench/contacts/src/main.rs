//! What the contact benchmarks are made with, besides shell.
//!
//! * `needles CARDS`: picks what to ask for from the cards, by a seed. A line each: the row of the
//!   table it belongs to, the most hits wanted (0: all), the bare text, and the S-expression, with
//!   tabs between.
//! * `larder STORE NEEDLES SECONDS N`: puts them to a store, in place, through `larder-query`.
//! * `single STORE CARDS NUMBER N`: saves so many cards, each as an operation of its own.
//! * `floor FILE NEEDLES SECONDS N`: the same questions by bare SQL to the rows that `larder-floor
//!   same` wrote.
//! * `memory STORE`: what a process takes that has the store open, has asked it and holds all its
//!   cards.
//! * `summaries`: which indexes are tried, from none to the default, as `larder collections create`
//!   reads them.
//! * `table FIGURES N`: the figures of one size beside each other; ends with 1 where a goal is
//!   missed.
//! * `indexes FIGURES`: what saving takes with more and more indexes.
//! * `chart FIGURES DIR`: the figures of all sizes, as SVG, and as one page of HTML.
//! * `page FIGURES FILE`: puts tables of the figures into a page of Markdown, where it has marks
//!   for them.
//!
//! Figures are lines: who, how many contacts, row, repetitions, median and 99th percentile of the
//! wall time, mean processor time (nanoseconds), mean number of hits. Rows of bytes have them in
//! the place of the median. Lines that begin with `#` say on what machine a script was run, after
//! its name. It is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod chart;
mod index_cost;
mod larder;
mod markdown_page;
mod needles;
mod sqlite_floor;
mod svg;
mod table;
mod timing;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["needles", cards] => needles::print_needles(Path::new(cards))?,
        ["larder", store, needles, seconds, n] => {
            larder::time_all_rows(
                Path::new(store),
                &needles::read_needles(needles)?,
                seconds.parse()?,
                n,
            )?;
        }
        ["single", store, cards, number, n] => {
            larder::time_single_saves(Path::new(store), Path::new(cards), number.parse()?, n)?;
        }
        ["floor", file, needles, seconds, n] => {
            sqlite_floor::time_all_rows(
                Path::new(file),
                &needles::read_needles(needles)?,
                seconds.parse()?,
                n,
            )?;
        }
        ["memory", store] => larder::print_memory_use(Path::new(store))?,
        ["table", figures, n] => {
            let met = table::print_table(&table::read_figures(figures)?, n.parse()?);
            return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["summaries"] => index_cost::print_index_configs()?,
        ["indexes", figures] => index_cost::print_table(&table::read_figures(figures)?),
        ["page", figures, file] => markdown_page::update_page(figures, Path::new(file))?,
        ["chart", figures, dir] => {
            chart::write_charts(&table::read_figures(figures)?, Path::new(dir))?;
        }
        _ => {
            return Err(
                "needles, larder, single, floor, memory, summaries, table, indexes, chart or page"
                    .into(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
