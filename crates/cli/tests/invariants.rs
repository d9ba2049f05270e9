//! The invariants of the architecture, checked against the manifests (`cargo metadata`) and the
//! sources.
//!
//! Most checks read the sources as lines of text: comment lines do not count, and a word in a
//! string counts like any other. Separate from `naming` and `module_graph`, which parse the
//! sources.

use crate::naming::EMPTY_NAMES;
use crate::source_tree::source_files;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The crates of the workspace that each crate may depend on. A new dependency is added here first.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
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
        ],
    ),
];

/// External dependencies that only one crate may name.
const OWNED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("larder-store", &["rusqlite", "libsqlite3-sys"]),
    ("larder-serve", &["zbus", "hyper", "tokio"]),
    ("larder-hg", &["ureq", "rustls"]),
    ("larder", &["clap", "clap_complete", "clap_mangen", "etcetera", "signal-hook", "indicatif"]),
];

/// Crates that access no file, no environment and no clock.
const PURE_CRATES: &[&str] =
    &["larder-format", "larder-time", "larder-date-phrase", "larder-extract", "larder-index"];

/// Crates that may contain unsafe code.
const CRATES_WITH_UNSAFE_CODE: &[&str] = &["larder-alloclog"];

/// Files of other crates that may contain unsafe code: the call of instructions that not every
/// processor has, and of the collector, its end of a ring, and memory that is fetched ahead.
const FILES_WITH_UNSAFE_CODE: &[&str] = &[
    "hg/src/sha1_pair.rs",
    "measure/src/alloc_log/memory_prefetch.rs",
    "measure/src/alloc_log/ring_reader.rs",
];

/// Upper bound of the packages in Cargo.lock: the number when this was written, and ten more. It is
/// raised only for a stated reason.
const MAX_LOCKED_PACKAGES: usize = 351;

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(ROOT);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the crates under crates/: name, folder, manifest.
fn workspace_crates() -> Vec<(String, PathBuf, Value)> {
    let mut crates = Vec::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap().to_path_buf();
        if folder.parent().is_some_and(|parent| parent.ends_with("crates")) {
            crates.push((package["name"].as_str().unwrap().to_string(), folder, package.clone()));
        }
    }
    assert!(crates.len() >= 6, "cargo metadata shows {} crates", crates.len());
    crates
}

/// Returns the Rust files in a folder and below, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the lines of code of a file with their numbers, without comments and unit tests.
fn code_lines(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.to_string()));
    lines
        // Only the test module at the end is left out: an indented attribute is of one function.
        .take_while(|(_, line)| line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

/// Asserts that no source of the crate contains one of the words.
fn assert_words_absent(crate_name: &str, folder: &Path, words: &[&str], reason: &str) {
    for path in rust_files(&folder.join("src")) {
        for (number, line) in code_lines(&path) {
            for word in words {
                let at = || format!("{}:{number}", path.display());
                assert!(!has_word(&line, word), "{}: {crate_name} names {word}: {reason}", at());
            }
        }
    }
}

/// Options of git: it reads revisions, which are more than arguments may have, and names objects
/// that are missing.
const GIT_OPTIONS: &[&str] = &["\"--stdin\"", "\"--missing=print\""];

/// Returns whether the line contains the word, not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    let line = GIT_OPTIONS.iter().fold(line.to_string(), |line, option| line.replace(option, ""));
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_word_char);
        let after = line[at + word.len()..].chars().next().is_some_and(is_word_char);
        !before && !after
    })
}

#[test]
fn crates_depend_only_as_in_the_table() {
    let table: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for (name, _, package) in workspace_crates() {
        let allowed =
            table.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the table"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let dependency_name = dependency["name"].as_str().unwrap();
            let is_own = dependency_name == "larder" || dependency_name.starts_with("larder-");
            let is_normal = dependency["kind"].is_null() || dependency["kind"] == "build";
            assert!(
                !is_own || !is_normal || allowed.contains(&dependency_name),
                "{name} must not depend on {dependency_name}"
            );
        }
    }
    // A cycle in the table would allow a cycle of crates.
    let mut sorted: BTreeSet<&str> = BTreeSet::new();
    for _ in ALLOWED_DEPENDENCIES {
        let ready = ALLOWED_DEPENDENCIES
            .iter()
            .filter(|(_, dependencies)| dependencies.iter().all(|name| sorted.contains(name)))
            .map(|(name, _)| *name)
            .collect::<Vec<_>>();
        sorted.extend(ready);
    }
    assert_eq!(sorted.len(), ALLOWED_DEPENDENCIES.len(), "the table has a cycle");
}

#[test]
fn names_of_crates_and_files_are_specific() {
    for (name, folder, _) in workspace_crates() {
        let short_name = name.strip_prefix("larder-").unwrap_or(&name);
        assert!(!EMPTY_NAMES.contains(&short_name), "the name of the crate {name} is too general");
        for path in rust_files(&folder) {
            let mut parts =
                path.strip_prefix(&folder).unwrap().components().map(|part| {
                    part.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_string()
                });
            assert!(!parts.any(|part| EMPTY_NAMES.contains(&part.as_str())), "{}", path.display());
            for (number, line) in code_lines(&path) {
                let module =
                    line.trim().trim_start_matches("pub ").strip_prefix("mod ").map(str::to_string);
                let module = module.as_deref().map(|rest| rest.trim_end_matches([';', '{', ' ']));
                let is_empty_name = module.is_some_and(|module| EMPTY_NAMES.contains(&module));
                assert!(!is_empty_name, "{}:{number}: {line}", path.display());
            }
        }
    }
}

#[test]
fn pure_crates_access_nothing_outside() {
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
    for (name, folder, _) in workspace_crates() {
        if PURE_CRATES.contains(&name.as_str()) {
            assert_words_absent(
                &name,
                &folder,
                &words,
                "the crate accesses no file, no environment and no clock",
            );
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
        // The streams of a child are others.
        "stdin()",
        "stdout()",
        "println",
        "print",
        "eprintln",
        "eprint",
        "etcetera",
    ];
    for (name, folder, _) in workspace_crates() {
        if name != "larder" {
            assert_words_absent(
                &name,
                &folder,
                &words,
                "only the binary reads it, and passes values down",
            );
        }
    }
}

#[test]
fn owned_dependencies_are_named_by_their_crate_only() {
    for (name, folder, package) in workspace_crates() {
        for (owner, words) in OWNED_DEPENDENCIES.iter().filter(|(owner, _)| *owner != name) {
            for dependency in package["dependencies"].as_array().unwrap() {
                let dependency_name = dependency["name"].as_str().unwrap();
                assert!(
                    !words.contains(&dependency_name),
                    "{name} depends on {dependency_name}: only {owner} may"
                );
            }
            let reason = format!("only {owner} may");
            assert_words_absent(&name, &folder, words, &reason);
            let tests = folder.join("tests");
            for path in rust_files(&tests).iter().filter(|path| !path.ends_with("invariants.rs")) {
                for (number, line) in code_lines(path) {
                    let named = words.iter().find(|word| {
                        has_word(&line, &format!("{word}::")) || line.contains(&format!("{word}::"))
                    });
                    assert!(named.is_none(), "{}:{number}: {reason}", path.display());
                }
            }
        }
    }
}

/// Words of code that belongs into a library: it splits, validates and writes items.
const LIBRARY_WORDS: &[&str] = &["Splitter", "ItemPut", "Precondition", "chunks"];

/// The module of a subcommand parses arguments, calls a library and prints. There is one for each
/// subcommand, and none contains SQL.
#[test]
fn the_binary_holds_no_logic() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let listing = std::fs::read_to_string(commands.join("mod.rs")).unwrap();
    for path in rust_files(&commands) {
        // A file, or the folder of the submodules of a subcommand.
        let component = path.strip_prefix(&commands).unwrap().components().next().unwrap();
        let stem = Path::new(&component).file_stem().unwrap().to_str().unwrap();
        assert!(
            stem == "mod" || listing.contains(&format!("\nmod {stem};\n")),
            "{}",
            path.display()
        );
        for (number, line) in code_lines(&path) {
            let named = LIBRARY_WORDS.iter().find(|word| has_word(&line, word));
            assert!(
                named.is_none(),
                "{}:{number}: {line}: move this into a library",
                path.display()
            );
        }
    }
    for path in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        for (number, line) in code_lines(&path) {
            for word in ["SELECT", "INSERT INTO", "DELETE FROM"] {
                assert!(
                    !has_word(&line, word),
                    "{}:{number}: the binary contains SQL",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_listed_crates() {
    let workspace = std::fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    assert!(
        workspace.contains("\nunsafe_code = \"deny\""),
        "the lints of the workspace must deny unsafe code"
    );
    for (name, folder, _) in workspace_crates() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name} does not use the lints of the workspace"
        );
        if CRATES_WITH_UNSAFE_CODE.contains(&name.as_str()) {
            continue;
        }
        let is_allowed = |path: &PathBuf| {
            let mut allowed = FILES_WITH_UNSAFE_CODE.iter().chain(&["invariants.rs"]);
            allowed.any(|file| path.ends_with(file))
        };
        for path in rust_files(&folder).iter().filter(|path| !is_allowed(path)) {
            for (number, line) in code_lines(path) {
                let named = has_word(&line, "unsafe") || has_word(&line, "unsafe_code");
                assert!(!named, "{}:{number}: {line}", path.display());
            }
        }
    }
}

/// Modules of larder-store that begin write transactions: `apply` for changes, the others for the
/// creation of a store, migrations, erasure, restored copies and derived data.
const WRITING_MODULES: &[&str] = &[
    "apply",
    "backup",
    "connection",
    "index_maintenance",
    "purge",
    "salvage",
    "schema",
    "store",
    "zone_update",
];

/// Modules of larder-store that name SQLite's connection, on which a statement may run outside of
/// any transaction.
const CONNECTION_MODULES: &[&str] = &["connection", "read_transaction", "write_transaction"];

/// Finds the public functions that take changes of items.
#[derive(Default)]
struct ChangeTakers {
    found: Vec<String>,
}

/// Finds the type of a change in the parameters of a function.
struct ChangeInParameters {
    is_found: bool,
}

impl Visit<'_> for ChangeInParameters {
    fn visit_path_segment(&mut self, segment: &syn::PathSegment) {
        self.is_found |= segment.ident == "BatchChange";
        visit::visit_path_segment(self, segment);
    }
}

impl ChangeTakers {
    fn check(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        let mut parameters = ChangeInParameters { is_found: false };
        signature.inputs.iter().for_each(|input| parameters.visit_fn_arg(input));
        if parameters.is_found && matches!(visibility, syn::Visibility::Public(_)) {
            self.found.push(signature.ident.to_string());
        }
    }
}

impl Visit<'_> for ChangeTakers {
    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.check(&function.vis, &function.sig);
    }

    fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
        self.check(&function.vis, &function.sig);
    }
}

/// Every change of an item goes through `Store::apply`, which gives its batch a sequence number.
#[test]
fn changes_are_written_by_one_function() {
    let mut takers = ChangeTakers::default();
    for file in source_files() {
        if !file.path.to_string_lossy().contains("crates/store/src") {
            continue;
        }
        takers.visit_file(&syn::parse_file(&file.text).unwrap());
        let is_writing =
            WRITING_MODULES.contains(&file.path.file_stem().unwrap().to_str().unwrap());
        for (number, line) in code_lines(&Path::new(ROOT).join(&file.path)) {
            let begins = ["WriteTransaction::begin(", ".begin_write("]
                .iter()
                .any(|call| line.contains(call));
            let at = || format!("{}:{number}: {line}", file.path.display());
            assert!(is_writing || !begins, "{}: a write transaction", at());
            let is_immediate = line.contains("BEGIN IMMEDIATE") || line.contains("BEGIN EXCLUSIVE");
            let is_transaction = file.path.ends_with("write_transaction.rs");
            assert!(is_transaction || !is_immediate, "{}: use `WriteTransaction`", at());
        }
    }
    assert_eq!(takers.found, ["apply"], "public functions that take changes");
}

/// Returns the lines of code that name a bare connection, outside of [`CONNECTION_MODULES`].
fn find_bare_connections<'a>(module: &str, lines: &'a [(usize, String)]) -> Vec<&'a str> {
    let is_allowed = CONNECTION_MODULES.contains(&module);
    let names_it = |line: &str| has_word(line, "Connection") || line.contains(".transaction()");
    let lines = lines.iter().map(|(_, line)| line.as_str());
    lines.filter(|line| !is_allowed && names_it(line)).collect()
}

/// SQL runs in a read transaction or a write transaction, which are types of their own.
#[test]
fn sql_runs_in_transactions() {
    let mut modules = BTreeSet::new();
    for file in source_files() {
        if !file.path.to_string_lossy().contains("crates/store/src") {
            continue;
        }
        let module = file.path.file_stem().unwrap().to_str().unwrap().to_string();
        let lines = code_lines(&Path::new(ROOT).join(&file.path));
        let found = find_bare_connections(&module, &lines);
        assert!(found.is_empty(), "{}: take a transaction: {found:#?}", file.path.display());
        modules.insert(module);
    }
    for module in CONNECTION_MODULES {
        assert!(modules.contains(*module), "{module} is gone");
    }
}

#[test]
fn a_planted_connection_is_found() {
    let planted = [
        (1, "use crate::connection::WriteConnection;".to_string()),
        (2, "fn set_state(conn: &Connection) {".to_string()),
        (3, "let tx = conn.transaction()?;".to_string()),
    ];
    assert_eq!(find_bare_connections("derived_index", &planted).len(), 2);
    assert_eq!(find_bare_connections("connection", &planted).len(), 0);
}

/// Returns the test programs of a package.
fn tests_of(package: &Value) -> impl Iterator<Item = &Value> {
    let targets = package["targets"].as_array().unwrap().iter();
    targets.filter(|target| target["kind"][0] == "test")
}

/// A test file that its runner does not list would never be run.
#[test]
fn every_test_file_is_run() {
    for (name, folder, package) in workspace_crates() {
        let tests = folder.join("tests");
        let Ok(runner) = std::fs::read_to_string(tests.join("runner.rs")) else {
            panic!("{name} has no tests/runner.rs");
        };
        for entry in std::fs::read_dir(&tests).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let Some(module) = file.strip_suffix(".rs") else { continue };
            let is_test = tests_of(&package).any(|test| test["name"] == module);
            assert!(
                is_test || runner.contains(&format!("mod {module};")),
                "{name}: tests/{file} is not run"
            );
        }
        let (usual, of_features): (Vec<&Value>, Vec<&Value>) =
            tests_of(&package).partition(|test| test["required-features"].is_null());
        assert_eq!(usual.len(), 1, "{name} must have one test binary");
        let names: Vec<&Value> = of_features.iter().map(|test| &test["name"]).collect();
        assert_eq!(names, if name == "larder" { &["toy_kind"][..] } else { &[] }, "{name}");
    }
}

/// Every file begins with a description of its module, and is short enough to be read at once.
#[test]
fn files_have_a_head_and_a_bounded_length() {
    const MAX_FILE_LINES: usize = 700;
    for (name, folder, _) in workspace_crates() {
        for path in rust_files(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let is_subcommand = path.parent().unwrap().ends_with("commands");
            let has_head = text.starts_with("//!") || text.starts_with("#!") || is_subcommand;
            assert!(has_head, "{}: a module of {name} without a head", path.display());
            let lines = text.lines().count();
            assert!(lines <= MAX_FILE_LINES, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn the_lock_file_has_a_bounded_number_of_packages() {
    let lock = std::fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap();
    let packages = lock.matches("[[package]]").count();
    assert!(
        packages <= MAX_LOCKED_PACKAGES,
        "Cargo.lock has {packages} packages; the limit is {MAX_LOCKED_PACKAGES}"
    );
}
