//! Tests through the public API, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests fail by panics"
)]

mod event;
mod event_corpora;
mod event_edit;
mod event_inherits;
mod event_model;
mod item_edits;
mod item_text;
mod merge;
mod new_event;
mod test_store;

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
