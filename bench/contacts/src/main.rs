//! What the contact benchmarks are made with, besides shell.
//!
//! * `needles CARDS`: picks what to ask for from the cards, by a seed. A line each: the row of the table it
//!   belongs to, the most hits wanted (0: all), the bare text, and the S-expression, with tabs between.
//! * `larder STORE NEEDLES SECONDS N`: puts them to a store, in place, through `larder-query`.
//! * `single STORE CARDS NUMBER N`: saves so many cards, each as an operation of its own.
//! * `floor FILE NEEDLES SECONDS N`: the same questions by bare SQL to the rows that `larder-floor same` wrote.
//! * `memory STORE`: what a process takes that has the store open, has asked it and holds all its cards.
//! * `summaries`: which indexes are tried, from none to the default, as `larder collections create` reads them.
//! * `table FIGURES N`: the figures of one size beside each other; ends with 1 where a goal is missed.
//! * `indexes FIGURES`: what saving takes with more and more indexes.
//! * `chart FIGURES DIR`: the figures of all sizes, as SVG, and as one page of HTML.
//! * `page FIGURES FILE`: puts tables of the figures into a page of Markdown, where it has marks for them.
//!
//! Figures are lines: who, how many contacts, row, repetitions, median and 99th percentile of the wall time,
//! mean processor time (nanoseconds), mean number of hits. Rows of bytes have them in the place of the median.
//! Lines that begin with `#` say on what machine a script was run, after its name.
//! It is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod chart;
mod clock;
mod floor;
mod ladder;
mod larder;
mod needles;
mod page;
mod svg;
mod table;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["needles", cards] => needles::print(Path::new(cards))?,
        ["larder", store, needles, seconds, n] => {
            larder::ask(Path::new(store), &needles::read(needles)?, seconds.parse()?, n)?;
        }
        ["single", store, cards, number, n] => {
            larder::single(Path::new(store), Path::new(cards), number.parse()?, n)?;
        }
        ["floor", file, needles, seconds, n] => {
            floor::ask(Path::new(file), &needles::read(needles)?, seconds.parse()?, n)?;
        }
        ["memory", store] => larder::memory(Path::new(store))?,
        ["table", figures, n] => {
            let met = table::print(&table::read(figures)?, n.parse()?);
            return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["summaries"] => ladder::print_summaries()?,
        ["indexes", figures] => ladder::print(&table::read(figures)?),
        ["page", figures, file] => page::write(figures, Path::new(file))?,
        ["chart", figures, dir] => chart::write(&table::read(figures)?, Path::new(dir))?,
        _ => {
            return Err(
                "needles, larder, single, floor, memory, summaries, table, indexes, chart or page"
                    .into(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
