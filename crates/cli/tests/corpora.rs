//! Address books and calendars that other programs wrote: every file is imported, and its items are
//! exported byte for byte.
//!
//! The files are not part of the project; `LARDER_CORPORA` is their directory.

use crate::test_home::{Home, Run, no_corpora};
use larder_store::Reader;
use std::path::{Path, PathBuf};

/// Returns the folder of vCard files or calendars, if it exists. Its absence is no failure.
pub fn folder(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let corpora = std::env::var_os("LARDER_CORPORA").map_or(beside, PathBuf::from);
    let folder = corpora.join(name);
    if !folder.is_dir() {
        no_corpora(&format!("corpora/{name}"));
        return None;
    }
    Some(folder.canonicalize().unwrap())
}

/// Collects all address books and calendars in the folder and below.
fn books(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            books(&path, found);
        } else if path.extension().is_some_and(|end| end == "vcf" || end == "vcard" || end == "ics")
        {
            found.push(path);
        }
    }
    found.sort();
}

#[test]
fn every_book_comes_back() {
    let Some(folder) = folder("vcf") else { return };
    let mut files = Vec::new();
    books(&folder, &mut files);
    assert!(!files.is_empty(), "no address book is in {}", folder.display());
    let home = Home::new();
    check_round_trips(&home, &files);
}

/// Checks the calendars that are named as invalid.
#[test]
fn bad_calendars_come_back() {
    let Some(folder) = folder("ics") else { return };
    let mut files = Vec::new();
    books(&folder, &mut files);
    let bad = ["fuzz", "broken", "bad", "invalid", "malformed", "wrong", "missing", "error"];
    files.retain(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().to_lowercase();
        bad.iter().any(|word| name.contains(word)) && file.metadata().unwrap().len() < 64 << 10
    });
    assert!(files.len() > 20, "{files:?}");
    check_round_trips(&Home::new(), &files);
}

/// Imports each file into a store of its own and checks the summary, the items and the store.
fn check_round_trips(home: &Home, files: &[PathBuf]) {
    for file in files {
        let (dir, rejects) = (home.work("store"), home.work("rejects.vcf"));
        let _none = std::fs::remove_dir_all(&dir);
        let _none = std::fs::remove_file(&rejects);
        let (dir_text, path) = (dir.to_str().unwrap(), file.to_str().unwrap());
        let run = home.run(&[
            "--data-dir",
            dir_text,
            "import",
            path,
            "--rejects",
            "rejects.vcf",
            "--format",
            "json",
        ]);
        let summary = check_summary(&run, path);
        let bytes = std::fs::read(file).unwrap();
        let item_count = check_items(&dir, &bytes, path);
        assert_eq!(item_count, summary["added"].as_u64().unwrap(), "{path}");
        if summary["rejected"] != 0 {
            check_rejects(&std::fs::read(&rejects).expect(path), &bytes, path);
        }
        let check = home.run(&["--data-dir", dir_text, "check", "--rebuild"]);
        assert!(
            check.code == 0 && check.stdout().starts_with("OK: "),
            "{path}: {}",
            check.masked_output()
        );
    }
}

/// Checks for exit code 0, or 3 with file, line and reason of every rejection. Returns the summary.
fn check_summary(run: &Run, path: &str) -> serde_json::Value {
    assert!(run.code == 0 || run.code == 3, "{path}: {}", run.masked_output());
    let summary: serde_json::Value = serde_json::from_str(run.stdout().trim()).expect(path);
    let errors = String::from_utf8_lossy(&run.err).into_owned();
    let named = errors.lines().filter(|line| line.starts_with("error: rejected ")).count() as u64;
    assert_eq!(summary["rejected"].as_u64().unwrap(), named, "{path}: {errors}");
    assert_eq!(run.code == 3, named > 0, "{path}: {errors}");
    let marks = ["error: rejected ", "warning: "];
    for line in errors.lines() {
        let Some(rest) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else {
            assert!(line.starts_with("note: ") || line.starts_with("hint: "), "{path}: {line}");
            continue;
        };
        let rest = rest.strip_prefix(path).unwrap_or_else(|| panic!("{path}: {line}"));
        let rest = rest.strip_prefix(':').expect(line);
        let (number, reason) = rest.split_once(": ").unwrap_or_else(|| panic!("{path}: {line}"));
        let whole_file = reason.is_empty() || number.parse::<u64>().is_err();
        assert!(whole_file || number.parse::<u64>().unwrap() > 0, "{path}: {line}");
    }
    summary
}

/// Checks that every item of the store is a part of the file. Returns the number of items.
fn check_items(dir: &Path, file: &[u8], path: &str) -> u64 {
    let reader = Reader::open(dir).unwrap();
    let mut item_count = 0;
    for collection in reader.collections().list().unwrap() {
        let mut after = None;
        loop {
            let page = reader.items().list_after(&collection, after, 100).unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.row);
            for head in &page {
                let bytes = reader.items().source_bytes(head.row).unwrap().unwrap();
                assert!(!bytes.is_empty(), "{path}: {}", head.uid);
                assert!(
                    contains(file, &bytes),
                    "{path}: {} is not in the file byte for byte",
                    head.uid
                );
                item_count += 1;
            }
        }
    }
    item_count
}

/// Checks that every line of the rejects is a line of the file.
fn check_rejects(rejects: &[u8], file: &[u8], path: &str) {
    assert!(!rejects.is_empty(), "{path}: nothing was kept");
    for line in rejects.split(|&byte| byte == b'\n' || byte == b'\r') {
        assert!(contains(file, line), "{path}: {:?} is not in it", String::from_utf8_lossy(line));
    }
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    let Some(&first) = part.first() else { return true };
    let mut from = 0;
    while let Some(at) = all[from..].iter().position(|&byte| byte == first) {
        if all[from + at..].starts_with(part) {
            return true;
        }
        from += at + 1;
    }
    false
}

#[test]
fn the_whole_folder_and_again() {
    let Some(folder) = folder("vcf") else { return };
    let home = Home::new();
    let args = ["import", folder.to_str().unwrap(), "--format", "json"];
    let run = home.run(&args);
    assert!(run.code == 0 || run.code == 3, "{}", run.masked_output());
    home.assert_store_is_sound();
    let first: serde_json::Value = serde_json::from_str(run.stdout().trim()).unwrap();
    let before = home.run(&["export", "contacts"]).out;
    let run = home.run(&args);
    let again: serde_json::Value = serde_json::from_str(run.stdout().trim()).unwrap();
    let number = |summary: &serde_json::Value, key: &str| summary[key].as_u64().unwrap();
    for key in ["added", "updated", "uid_conflicts"] {
        assert_eq!(number(&again, key), 0, "{key} by the second import: {again}");
    }
    assert!(again["operation"].is_null(), "{again}");
    let all = ["added", "updated", "cancelled", "unchanged"].map(|key| number(&first, key));
    assert_eq!(number(&again, "unchanged"), all.iter().sum::<u64>());
    assert_eq!(number(&again, "rejected"), number(&first, "rejected"));
    assert!(before == home.run(&["export", "contacts"]).out, "the second import changed something");
    assert_eq!(number(&first, "updated"), 0, "a card took another's place: {first}");
    home.assert_store_is_sound();
}
