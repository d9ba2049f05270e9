//! The measurements of the benchmarks of contacts; shell scripts call them.
//!
//! * `search-terms CARDS`: selects the texts to search for from the cards, by a seeded generator.
//!   Prints for each the row of the table it belongs to, the maximum number of hits (0: all), the
//!   text and the S-expression, separated by tabs.
//! * `larder STORE NEEDLES SECONDS N`: runs the queries on a store, in this process.
//! * `single STORE CARDS NUMBER N`: saves a number of cards, each as an operation of its own.
//! * `floor FILE NEEDLES SECONDS N`: runs the queries as plain SQL on the rows that `larder-floor
//!   same` wrote.
//! * `memory STORE`: prints the memory of a process that holds all cards of a store.
//! * `configs`: prints the index configurations that are compared, from none to the default, as
//!   `larder collections create --index` reads them.
//! * `table FIGURES N`: prints the figures for one number of contacts. The exit code is 1 if a goal
//!   is missed.
//! * `indexes FIGURES`: prints the cost of saving with each index configuration.
//! * `results FIGURES`: prints the figures as rows of results, see `result` in bench/lib.sh.
//! * `page FIGURES FILE`: replaces the tables of a Markdown page.
//!
//! A line of figures has the program, the number of contacts, the row, the repetitions, the median
//! and the 99th percentile of the wall time, the mean CPU time (in nanoseconds), and the mean
//! number of hits. For rows of bytes the number of bytes is in place of the median. Lines that
//! begin with `#` name the script and the machine. The program is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod index_cost;
mod larder;
mod markdown_page;
mod results;
mod search_terms;
mod sqlite_floor;
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
        ["search-terms", cards] => search_terms::print_search_terms(Path::new(cards))?,
        ["larder", store, search_terms, seconds, n] => {
            larder::time_all_rows(
                Path::new(store),
                &search_terms::read_search_terms(search_terms)?,
                seconds.parse()?,
                n,
            )?;
        }
        ["single", store, cards, number, n] => {
            larder::time_single_saves(Path::new(store), Path::new(cards), number.parse()?, n)?;
        }
        ["floor", file, search_terms, seconds, n] => {
            sqlite_floor::time_all_rows(
                Path::new(file),
                &search_terms::read_search_terms(search_terms)?,
                seconds.parse()?,
                n,
            )?;
        }
        ["memory", store] => larder::print_memory_use(Path::new(store))?,
        ["table", figures, n] => {
            let met = table::print_table(&table::read_figures(figures)?, n.parse()?);
            return Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["configs"] => index_cost::print_index_configs()?,
        ["indexes", figures] => index_cost::print_table(&table::read_figures(figures)?),
        ["page", figures, file] => markdown_page::update_page(figures, Path::new(file))?,
        ["results", figures] => results::print_results(&table::read_figures(figures)?),
        _ => {
            return Err(
                "search-terms, larder, single, floor, memory, configs, table, indexes, results or page"
                    .into(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
