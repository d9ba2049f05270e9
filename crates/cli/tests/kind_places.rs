//! The places that a kind of item needs: the files that name the feature of the toy kind are all of
//! them, and no other module compares kinds.
//!
//! Always run, unlike the test of the toy kind itself, which needs a build with the feature.

use crate::source_tree::ROOT;
use std::path::Path;

/// The feature, written so that this file does not name it.
const FEATURE: &str = concat!("toy", "-kind");

/// The files that a further kind needs.
const KIND_PLACES: &[&str] = &[
    // A row in each table, with the variants of their numbers.
    "crates/format/src/kind.rs",
    "crates/format/src/collection_type.rs",
    // The parser and the fields, and the choice of this parser. A stage that treats the kind in
    // its own way has a module for it, too.
    "crates/format/src/lib.rs",
    "crates/format/src/parsed_source.rs",
];

/// The files that only a feature needs: manifests, its test, and documentation.
const FEATURE_PLACES: &[&str] =
    &["ARCHITECTURE.md", "crates/cli/Cargo.toml", "crates/format/Cargo.toml", "scripts/test.sh"];

/// The names of modules that belong to a kind: of files, and of folders.
const KIND_MODULES: &[&str] = &[
    "bookmark.rs",
    "calendar.rs",
    "calendar_item.rs",
    "calendar_properties.rs",
    "component.rs",
    "contact.rs",
    "eds",
    "event",
    "event.rs",
];

/// The types of such values, with the name that some modules import one by.
const VALUE_TYPES: &[&str] = &["Kind", "ItemKind", "CollectionType"];
/// The values that stand for one kind or one type of collection.
const KIND_VALUES: &[&str] =
    &["Contact", "Event", "Task", "Memo", "Component", "AddressBook", "Calendar"];

/// Returns the files among these that name the feature and are not listed.
fn unlisted_places<'f>(files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Vec<String> {
    let is_listed = |path: &str| KIND_PLACES.contains(&path) || FEATURE_PLACES.contains(&path);
    let unlisted =
        files.into_iter().filter(|(path, text)| text.contains(FEATURE) && !is_listed(path));
    unlisted.map(|(path, _)| path.to_string()).collect()
}

/// Returns the lines of generic modules that name a kind.
fn kind_comparisons<'f>(files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        let parts: Vec<&str> = path.split('/').collect();
        let is_own = KIND_PLACES.contains(&path)
            || parts.iter().any(|part| KIND_MODULES.contains(part))
            || parts.first() != Some(&"crates")
            || parts.get(2) != Some(&"src");
        if is_own {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            if line.starts_with("#[cfg(test)]") {
                break;
            }
            if !line.trim_start().starts_with("//") && names_kind(line) {
                found.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    found
}

/// Returns whether a line has a value that stands for a kind.
fn names_kind(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices("::").any(|(at, colons)| {
        let before = line[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default();
        let after = line[at + colons.len()..].split(|c| !is_name(c)).next().unwrap_or_default();
        VALUE_TYPES.contains(&before) && KIND_VALUES.contains(&after)
    })
}

/// The text files of the project.
fn project_files() -> Vec<(String, String)> {
    fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            let name = name.to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "corpus" {
                    collect(&path, files);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(ROOT).unwrap().to_string_lossy().into_owned();
                files.push((path, text));
            }
        }
    }
    let mut files = Vec::new();
    collect(Path::new(ROOT), &mut files);
    files
}

#[test]
fn a_kind_needs_the_listed_places_only() {
    let files = project_files();
    let pairs = || files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let unlisted = unlisted_places(pairs());
    assert!(
        unlisted.is_empty(),
        "files that name the feature {FEATURE} and are not in KIND_PLACES; give the table of kinds \
         a capability instead: {unlisted:?}"
    );
    for place in KIND_PLACES.iter().chain(FEATURE_PLACES) {
        let is_named = pairs().any(|(path, text)| path == *place && text.contains(FEATURE));
        assert!(is_named, "{place} no longer names the feature {FEATURE}: remove it from the list");
    }
}

#[test]
fn generic_modules_name_no_kind() {
    let files = project_files();
    assert!(files.iter().any(|(path, _)| path == "crates/query/src/matcher.rs"));
    let found = kind_comparisons(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert!(
        found.is_empty(),
        "generic modules that name a kind; ask for a capability of the table of kinds:\n{}",
        found.join("\n")
    );
}

#[test]
fn planted_violations_are_found() {
    let line = format!("#[cfg(feature = \"{FEATURE}\")]\n");
    let planted = [("crates/query/src/matcher.rs", &*line), ("crates/format/src/kind.rs", &*line)];
    assert_eq!(unlisted_places(planted), ["crates/query/src/matcher.rs"]);
    let line = "if kind == Kind::Task {";
    let planted = [
        ("crates/query/src/matcher.rs", line),
        ("crates/cli/src/table.rs", "matches!(kind, ItemKind::Event | ItemKind::Tasks)"),
        ("crates/query/src/plan.rs", "ComponentKind::Task, ItemKind::Tasks"),
        ("crates/query/src/search_line/calendar.rs", line),
        ("crates/query/tests/agree.rs", line),
    ];
    assert_eq!(
        kind_comparisons(planted),
        [
            "crates/query/src/matcher.rs:1: if kind == Kind::Task {",
            "crates/cli/src/table.rs:1: matches!(kind, ItemKind::Event | ItemKind::Tasks)",
        ]
    );
}
