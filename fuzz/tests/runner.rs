//! Runs the targets over the samples and over adversarial inputs.
#![allow(clippy::expect_used, missing_docs, reason = "tests")]

mod targets;

#[test]
fn every_file_is_a_module_of_the_runner() {
    let runner = include_str!("runner.rs");
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(tests).expect("the folder of this file") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(
            name == "runner" || runner.contains(&format!("mod {name};")),
            "{name}.rs is not a module of runner.rs"
        );
    }
}
