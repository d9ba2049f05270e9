//! Imports of every vCard file of the corpora: nothing is lost, nothing is changed.

use crate::book::{Book, ImportOutcome, options, path};
use larder_sync::ImportOptions;
use std::path::{Path, PathBuf};

/// Returns a folder of the corpora, or prints that it is missing and returns `None`.
pub(crate) fn corpora(folder: &str, test: &str) -> Option<PathBuf> {
    let sibling = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let root = std::env::var_os("LARDER_CORPORA").map_or(sibling, PathBuf::from).join(folder);
    if root.is_dir() {
        return Some(root);
    }
    eprintln!("left out: {test} (no corpora; set LARDER_CORPORA)");
    None
}

/// Collects the files in a folder and below whose names have one of the endings.
pub(crate) fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|end| endings.iter().any(|ending| end == *ending)) {
            found.push(path);
        }
    }
}

pub(crate) fn position(bytes: &[u8], from: usize, part: &[u8]) -> Option<usize> {
    bytes[from..].windows(part.len()).position(|window| window == part).map(|at| from + at)
}

/// Counts all bytes except line ends, white space and byte order marks.
fn visible(bytes: &[u8]) -> usize {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count()
}

fn check(book: &mut Book, file: &Path, number: usize) {
    let bytes = std::fs::read(file).unwrap();
    let rejects = book.path(&format!("rejects-{number}"));
    let options = ImportOptions {
        into: Some(format!("file-{number}")),
        rejects: Some((&rejects).into()),
        ..options()
    };
    let ImportOutcome { summary, .. } = book.import(vec![path(file)], &options);
    assert_eq!((summary.files, summary.updated), (1, 0), "{}", file.display());

    let items = book.items(options.into.as_deref().unwrap());
    let mut after = 0;
    for item in &items {
        let at = position(&bytes, after, item);
        assert!(at.is_some(), "{} has no such bytes after {after}", file.display());
        after = at.unwrap() + item.len();
    }
    // The lines of a calendar around its items are in none of them.
    let is_calendar = position(&bytes, 0, b"BEGIN:VCALENDAR").is_some();
    if summary.unchanged == 0 && !is_calendar {
        let kept = std::fs::read(rejects).unwrap_or_default();
        let found = items.iter().map(|item| visible(item)).sum::<usize>() + visible(&kept);
        assert_eq!(found, visible(&bytes), "bytes of {} were lost", file.display());
    }

    let seq = book.store.last_seq().unwrap();
    let again = book.import(vec![path(file)], &options).summary;
    assert_eq!(
        (again.unchanged, again.has_changes()),
        (summary.item_count(), false),
        "{}",
        file.display()
    );
    assert_eq!(book.store.last_seq().unwrap(), seq);

    let copy = ImportOptions { into: Some(format!("copy-{number}")), ..options.clone() };
    let outcome = book.take(book.export(options.into.as_deref().unwrap()), &copy);
    assert!(outcome.rejected.is_empty(), "{}: {:?}", file.display(), outcome.rejected);
    let ended = |items: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        items.into_iter().map(|item| item.trim_ascii_end().to_vec()).collect()
    };
    assert_eq!(
        ended(book.items(copy.into.as_deref().unwrap())),
        ended(items),
        "{}",
        file.display()
    );
}

#[test]
fn every_file_comes_back_byte_for_byte() {
    let Some(root) = corpora("vcf", "every_file_comes_back_byte_for_byte") else { return };
    let mut found = Vec::new();
    files(&root, &["vcf", "vcard"], &mut found);
    assert!(!found.is_empty());
    let mut book = Book::new();
    book.file("x", "");
    for (number, file) in found.iter().enumerate() {
        check(&mut book, file, number);
    }
}

#[test]
fn one_import_of_all_files_equals_many() {
    let Some(root) = corpora("vcf", "one_import_of_all_files_equals_many") else { return };
    let mut found = Vec::new();
    files(&root, &["vcf", "vcard"], &mut found);
    let mut book = Book::new();
    let outcome = book.import(vec![path(&root)], &options());
    assert!(outcome.summary.files > 200, "{:?}", outcome.summary);
    let one_by_one = found.iter().map(path).collect();
    let again = book.import(one_by_one, &options()).summary;
    assert!(!again.has_changes(), "{again:?}");
    assert_eq!(again.item_count(), outcome.summary.item_count());
}
