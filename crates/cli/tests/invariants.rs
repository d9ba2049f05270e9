//! DESIGN.md's invariants, read from the manifests (`cargo metadata`) and the sources.
//!
//! The sources are looked through as text, without comments and strings' meaning: a name in a
//! comment line does not count, a name anywhere else does.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Which of our crates each may depend on. A new arrow changes this table first.
const ARROWS: &[(&str, &[&str])] = &[
    ("larder-format", &[]),
    ("larder-time", &[]),
    ("larder-index", &[]),
    ("larder-extract", &["larder-format", "larder-time"]),
    ("larder-store", &["larder-format", "larder-time", "larder-extract", "larder-index"]),
    ("larder-date-phrase", &["larder-time"]),
    (
        "larder-query",
        &["larder-format", "larder-time", "larder-date-phrase", "larder-extract", "larder-store"],
    ),
    ("larder-present", &["larder-format", "larder-time", "larder-date-phrase", "larder-query"]),
    ("larder-edit", &["larder-format", "larder-time", "larder-date-phrase", "larder-store"]),
    (
        "larder-sync",
        &[
            "larder-format",
            "larder-time",
            "larder-extract",
            "larder-store",
            "larder-query",
            "larder-edit",
        ],
    ),
    ("larder-hg", &[]),
    (
        "larder-serve",
        &[
            "larder-format",
            "larder-time",
            "larder-query",
            "larder-store",
            "larder-edit",
            "larder-sync",
        ],
    ),
    ("larder-generate", &["larder-format", "larder-time"]),
    ("larder-measure", &["larder-query", "larder-generate"]),
    ("larder-alloclog", &[]),
    (
        "larder",
        &[
            "larder-format",
            "larder-time",
            "larder-date-phrase",
            "larder-extract",
            "larder-store",
            "larder-query",
            "larder-present",
            "larder-edit",
            "larder-sync",
            "larder-hg",
            "larder-serve",
            "larder-generate",
            "larder-measure",
            "larder-alloclog",
        ],
    ),
];

/// Dependencies that only one crate may name.
const OWNED: &[(&str, &[&str])] = &[
    ("larder-store", &["rusqlite", "libsqlite3-sys"]),
    ("larder-serve", &["zbus", "hyper", "tokio"]),
    ("larder", &["clap", "clap_complete", "clap_mangen", "etcetera", "ctrlc", "indicatif"]),
];

/// Crates that touch no file, no environment and no clock.
const PURE: &[&str] =
    &["larder-format", "larder-time", "larder-date-phrase", "larder-extract", "larder-index"];

/// Names that say nothing.
const EMPTY_NAMES: &[&str] =
    &["utils", "util", "common", "core", "types", "helpers", "helper", "misc"];

/// Where unsafe code is allowed by name.
const UNSAFE: &[&str] = &["larder-alloclog"];

/// Packages in Cargo.lock: what they were when this was written, and ten more. Raising it is a
/// decision with a reason.
const LOCKED: usize = 292;

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(ROOT);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Our crates under crates/: name, folder, manifest.
fn crates() -> Vec<(String, PathBuf, Value)> {
    let mut crates = Vec::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap().to_path_buf();
        if folder.parent().is_some_and(|above| above.ends_with("crates")) {
            crates.push((package["name"].as_str().unwrap().to_string(), folder, package.clone()));
        }
    }
    assert!(crates.len() >= 6, "cargo metadata shows {} crates", crates.len());
    crates
}

/// The Rust files in a folder and below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of code of a file, with their numbers: no comments, and nothing of its module of unit
/// tests.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.to_string()));
    lines
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

/// Fails where a source of the crate holds one of the words.
fn names_none(crate_name: &str, folder: &Path, words: &[&str], why: &str) {
    for path in sources(&folder.join("src")) {
        for (number, line) in code(&path) {
            for word in words {
                let at = || format!("{}:{number}", path.display());
                assert!(!has_word(&line, word), "{}: {crate_name} names {word}: {why}", at());
            }
        }
    }
}

/// Is the word in the line, not as a part of a longer one?
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

#[test]
fn arrows_point_only_as_in_the_table() {
    let table: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for (name, _, package) in crates() {
        let allowed =
            table.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the table"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let ours = on == "larder" || on.starts_with("larder-");
            let normal = dependency["kind"].is_null() || dependency["kind"] == "build";
            assert!(!ours || !normal || allowed.contains(&on), "{name} must not depend on {on}");
        }
    }
    // A table that has a circle allows too much.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for _ in ARROWS {
        done.extend(
            ARROWS
                .iter()
                .filter(|(_, on)| on.iter().all(|on| done.contains(on)))
                .map(|(name, _)| *name)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(done.len(), ARROWS.len(), "the table has a circle");
}

#[test]
fn names_say_something() {
    for (name, folder, _) in crates() {
        let short = name.strip_prefix("larder-").unwrap_or(&name);
        assert!(!EMPTY_NAMES.contains(&short), "a crate is called {name}");
        for path in sources(&folder) {
            let mut parts =
                path.strip_prefix(&folder).unwrap().components().map(|part| {
                    part.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_string()
                });
            assert!(!parts.any(|part| EMPTY_NAMES.contains(&part.as_str())), "{}", path.display());
            for (number, line) in code(&path) {
                let module =
                    line.trim().trim_start_matches("pub ").strip_prefix("mod ").map(str::to_string);
                let module = module.as_deref().map(|rest| rest.trim_end_matches([';', '{', ' ']));
                let empty = module.is_some_and(|module| EMPTY_NAMES.contains(&module));
                assert!(!empty, "{}:{number}: {line}", path.display());
            }
        }
    }
}

#[test]
fn pure_crates_touch_nothing_outside() {
    let words = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::time",
        "SystemTime",
        "Instant::now",
        "File",
        "env::var",
        "fs::read",
    ];
    for (name, folder, _) in crates() {
        if PURE.contains(&name.as_str()) {
            names_none(&name, &folder, &words, "it touches no file, no environment, no clock");
        }
    }
}

#[test]
fn libraries_read_no_environment_and_no_terminal() {
    let words = [
        "std::env",
        "env::var",
        "env::var_os",
        "env::args",
        "env::current_dir",
        "env::home_dir",
        "home_dir",
        "is_terminal",
        "IsTerminal",
        "stdin",
        "stdout",
        "println",
        "print",
        "eprintln",
        "eprint",
        "etcetera",
    ];
    for (name, folder, _) in crates() {
        if name != "larder" {
            names_none(&name, &folder, &words, "only the binary does that, and passes values down");
        }
    }
}

#[test]
fn dependencies_that_one_crate_owns() {
    for (name, folder, package) in crates() {
        for (owner, words) in OWNED.iter().filter(|(owner, _)| *owner != name) {
            for dependency in package["dependencies"].as_array().unwrap() {
                let on = dependency["name"].as_str().unwrap();
                assert!(!words.contains(&on), "{name} depends on {on}, which is {owner}'s");
            }
            let why = format!("only {owner} does");
            names_none(&name, &folder, words, &why);
            let tests = folder.join("tests");
            for path in sources(&tests).iter().filter(|path| !path.ends_with("invariants.rs")) {
                for (number, line) in code(path) {
                    let named = words.iter().find(|word| {
                        has_word(&line, &format!("{word}::")) || line.contains(&format!("{word}::"))
                    });
                    assert!(named.is_none(), "{}:{number}: {why}", path.display());
                }
            }
        }
    }
}

/// What only a library does: divide, validate and write cards, one after the other or in batches.
const LOGIC: &[&str] = &[
    "Splitter",
    "with_uid",
    "deriver().contact",
    "Change::Put",
    "Change::Remove",
    "Expect",
    "chunks",
];

/// A subcommand's file is arguments, a call, printing: there is one for each verb, and none knows
/// SQL.
#[test]
fn the_binary_holds_no_logic() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let listing = std::fs::read_to_string(commands.join("mod.rs")).unwrap();
    for path in sources(&commands) {
        // A file, or the folder of a subcommand's parts.
        let part = path.strip_prefix(&commands).unwrap().components().next().unwrap();
        let stem = Path::new(&part).file_stem().unwrap().to_str().unwrap();
        assert!(
            stem == "mod" || listing.contains(&format!("\nmod {stem};\n")),
            "{}",
            path.display()
        );
        for (number, line) in code(&path) {
            let named = LOGIC.iter().find(|word| has_word(&line, word));
            assert!(named.is_none(), "{}:{number}: {line}: logic of a library", path.display());
        }
    }
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        for (number, line) in code(&path) {
            for word in ["SELECT", "INSERT INTO", "DELETE FROM"] {
                assert!(
                    !has_word(&line, word),
                    "{}:{number}: the binary knows no SQL",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_code_only_where_it_is_allowed() {
    let workspace = std::fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    assert!(
        workspace.contains("\nunsafe_code = \"deny\""),
        "the workspace's lints deny unsafe code"
    );
    for (name, folder, _) in crates() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name} does not use the workspace's lints"
        );
        if UNSAFE.contains(&name.as_str()) {
            continue;
        }
        for path in sources(&folder).iter().filter(|path| !path.ends_with("invariants.rs")) {
            for (number, line) in code(path) {
                let named = has_word(&line, "unsafe") || has_word(&line, "unsafe_code");
                assert!(!named, "{}:{number}: {line}", path.display());
            }
        }
    }
}

/// A file of tests that its runner does not list would never be run.
#[test]
fn every_test_file_is_run() {
    for (name, folder, package) in crates() {
        let tests = folder.join("tests");
        let Ok(runner) = std::fs::read_to_string(tests.join("runner.rs")) else {
            panic!("{name} has no tests/runner.rs");
        };
        for entry in std::fs::read_dir(&tests).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if let Some(module) = file.strip_suffix(".rs").filter(|module| *module != "runner") {
                assert!(
                    runner.contains(&format!("mod {module};")),
                    "{name}: tests/{file} is not run"
                );
            }
        }
        let targets = package["targets"].as_array().unwrap().iter();
        let tests = targets.filter(|target| target["kind"][0] == "test").count();
        assert_eq!(tests, 1, "{name} has one binary of tests");
    }
}

/// A first reader finds in every file what it is, and no file is too long to be read.
#[test]
fn files_say_what_they_are() {
    const LONGEST: usize = 700;
    for (name, folder, _) in crates() {
        for path in sources(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let subcommand = path.parent().unwrap().ends_with("commands");
            let head = text.starts_with("//!") || text.starts_with("#!") || subcommand;
            assert!(head, "{}: {name} has a module without a head", path.display());
            let lines = text.lines().count();
            assert!(lines <= LONGEST, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn the_lock_file_does_not_grow_unseen() {
    let lock = std::fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap();
    let packages = lock.matches("[[package]]").count();
    assert!(packages <= LOCKED, "{packages} packages in Cargo.lock, and {LOCKED} are the limit");
}
