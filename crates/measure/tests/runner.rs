//! Tests through the public API, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod charts;
mod day;
mod generate_calendar;
mod generate_contacts;
mod generate_queries;
mod queries;
mod queries_anonymise;
mod queries_broken;
mod queries_page;
mod queries_worth;
mod run_command;

/// A file that is not a module here would never be run.
#[test]
fn no_file_is_forgotten() {
    let here = include_str!("runner.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "runner") {
            assert!(here.contains(&format!("mod {module};\n")), "{name} is not in runner.rs");
        }
    }
}
