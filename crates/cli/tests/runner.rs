//! The program from outside: the binary is run as a person would, in a home of its own. One binary.
//!
//! | module | what it asks |
//! |---|---|
//! | `home` | not a test: a private home, and the program run in it |
//! | `take_in`, `find_show`, `change`, `change_calendar`, `merge`, `keep`, `export`, `tools`, `queries`, `browse` | the ordinary way of every subcommand |
//! | `watch`, `query_log` | a question that stays open, and what is noted of questions |
//! | `told` | formats, widths, hints: how things are told |
//! | `newcomer`, `arguments` | what goes wrong in a person's first hour, and whatever may be typed |
//! | `mishaps` | a store that fails, writers that come first, input that is too large or too bad |
//! | `corpora` | address books of other programs, each card byte for byte |
//! | `kill`, `full_disk`, `together` | crashes, a full disk, several processes at once |
//! | `eds_clients` | programs of others, unmodified |
//! | `invariants`, `readme` | what the sources and the README promise |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "the helpers of tests are tests too"
)]

mod agenda;
mod arguments;
mod browse;
mod calendar_find;
mod change;
mod change_calendar;
mod change_clocks;
mod corpora;
mod eds_clients;
mod export;
mod find_show;
mod full_disk;
mod home;
mod invariants;
mod keep;
mod kill;
mod merge;
mod mishaps;
mod newcomer;
mod queries;
mod query_log;
mod readme;
mod take_in;
mod together;
mod told;
mod tools;
mod watch;

/// A file that is not a module here would never be run.
#[test]
fn no_file_is_forgotten() {
    let here = include_str!("runner.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "runner") {
            assert!(here.contains(&format!("\nmod {module};\n")), "{name} is not in runner.rs");
        }
    }
}
