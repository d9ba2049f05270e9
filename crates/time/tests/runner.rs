//! Tests through the public API, in one binary.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    let_underscore_drop,
    reason = "a test may fail, says what it leaves out, and throws results away"
)]

mod civil;
mod grid;
mod rule;
mod rule_random;
mod series;
mod value;
mod window;
mod zone;

#[test]
fn no_file_is_forgotten() {
    let source = include_str!("runner.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).expect("the folder of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "runner") else {
            continue;
        };
        assert!(source.contains(&format!("\nmod {module};\n")), "tests/{name} is not run");
    }
}
