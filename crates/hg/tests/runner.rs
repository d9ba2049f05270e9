//! Tests through the public API, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    reason = "a test that cannot go on panics, one that is left out says so"
)]

mod bundles;
mod checks;
mod cinnabar_imports;
mod command_server;
mod golden_vectors;
mod hostile_input;
mod incremental_fetches;
mod interruptions;
mod kept_branches;
mod local_repositories;
mod made_changes;
mod mercurial;
mod overlapping_bundles;
mod path_clashes;
mod received_changes;
mod server_certificates;
mod server_logins;
mod servers;
mod stored_parents;
mod stream_clones;
mod test_repository;

#[test]
fn every_test_file_is_listed() {
    let runner = include_str!("runner.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "runner") else {
            continue;
        };
        assert!(runner.contains(&format!("mod {module};")), "tests/{name} is never run");
    }
}
