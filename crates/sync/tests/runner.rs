//! Tests through the public API, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests fail by panics"
)]

mod book;
mod calendar_contexts;
mod calendars;
mod cancel;
mod compression;
mod corpora;
mod determinism;
mod early_end;
mod export_items;
mod files;
mod hostile;
mod import_table;
mod limits;
mod rejects;

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
