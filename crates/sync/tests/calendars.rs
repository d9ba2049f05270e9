//! Imports of every calendar file of the corpora: nothing panics, valid components are stored, all
//! others are reported, and an export has the same bytes. Of the time zones of calendars, those
//! that differ and are used are stored.

use crate::book::{Book, ImportOutcome, options, path};
use crate::corpora::{corpora, files, position};
use larder_query::{Query, SearchRequest, find, full_scan};
use larder_sync::ImportOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Totals over all files.
#[derive(Debug, Default)]
struct Count {
    files: usize,
    items: u64,
    rejected: usize,
    warnings: usize,
    zones: (u64, u64),
    reasons: BTreeMap<String, usize>,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.files += other.files;
        self.items += other.items;
        self.rejected += other.rejected;
        self.warnings += other.warnings;
        self.zones = (self.zones.0 + other.zones.0, self.zones.1 + other.zones.1);
        for (reason, times) in other.reasons {
            *self.reasons.entry(reason).or_default() += times;
        }
    }
}

fn options_into(name: String) -> ImportOptions {
    ImportOptions { into: Some(name), ..options() }
}

/// Checks that a line is `FILE:LINE: REASON`, with a number from 1.
#[track_caller]
fn check_report(line: &str, file: &Path) {
    let rest = line.strip_prefix(&*file.display().to_string()).expect(line);
    let rest = rest.strip_prefix(':').expect(line);
    let (number, reason) = rest.split_once(": ").expect(line);
    assert!(number.parse::<u64>().is_ok_and(|number| number > 0) && !reason.is_empty(), "{line}");
}

/// Returns the reason without quotations from the file.
fn reason_kind(line: &str) -> String {
    let reason = line.rsplit_once(": ").map_or(line, |(_, reason)| reason);
    let mut quoted = false;
    let plain = reason.chars().filter(|c| {
        quoted ^= *c == '"';
        !quoted && !c.is_ascii_digit()
    });
    plain.take(60).collect()
}

/// Returns the items without their last line end; items without END come last, as in an export.
fn trimmed_items(items: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut items: Vec<Vec<u8>> =
        items.into_iter().map(|item| item.trim_ascii_end().to_vec()).collect();
    let begin = |item: &[u8]| item.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
    items.sort_by_key(|item| {
        let name = begin(item).trim_ascii_end().to_ascii_uppercase().split_off("BEGIN:".len());
        !item.to_ascii_uppercase().ends_with(&[b"END:", &*name].concat())
    });
    items
}

fn check(book: &mut Book, file: &Path, number: usize, count: &mut Count) {
    let shown = file.display();
    let bytes = std::fs::read(file).unwrap();
    let options = options_into(format!("file-{number}"));
    let name = options.into.clone().unwrap();
    let ImportOutcome { summary, rejected, warnings, .. } = book.import(vec![path(file)], &options);
    assert_eq!((summary.files, summary.updated), (1, 0), "{shown}");
    rejected.iter().for_each(|line| check_report(line, file));
    count.files += 1;
    count.items += summary.item_count();
    count.rejected += rejected.len();
    count.warnings += warnings.len();
    count.zones = (count.zones.0 + summary.zones_defined, count.zones.1 + summary.zones_kept);
    for line in rejected.iter().chain(&warnings) {
        *count.reasons.entry(reason_kind(line)).or_default() += 1;
    }

    let items = book.items(&name);
    assert_eq!(items.len() as u64, summary.added, "{shown}");
    let mut after = 0;
    for item in &items {
        let at = position(&bytes, after, item);
        assert!(at.is_some(), "{shown} has no such bytes after {after}");
        after = at.unwrap() + item.len();
    }

    let seq = book.store.last_seq().unwrap();
    let again = book.import(vec![path(file)], &options).summary;
    assert_eq!((again.unchanged, again.has_changes()), (summary.item_count(), false), "{shown}");
    assert_eq!(book.store.last_seq().unwrap(), seq, "{shown}");

    let exported = book.export(&name);
    let copy = options_into(format!("copy-{number}"));
    let outcome = book.take(&exported, &copy);
    assert!(outcome.rejected.is_empty(), "{shown}: {:?}", outcome.rejected);
    let copies = book.items(copy.into.as_deref().unwrap());
    // One file has one encoding: UTF-16 is exported as UTF-8.
    let wide = items.iter().any(|item| item.iter().take(2).any(|&byte| byte == 0));
    assert_eq!(copies.len(), items.len(), "{shown}");
    assert!(wide || trimmed_items(copies) == trimmed_items(items), "{shown}: items differ");
    // The lines of the calendar around its items are exported, too.
    let once_more = book.export(copy.into.as_deref().unwrap());
    assert!(once_more == exported, "{shown}: the export of an export differs");
    let back = book.take(&exported, &options).summary;
    assert!(wide || !back.has_changes(), "{shown}: {back:?}");
}

#[test]
fn every_file_comes_back_byte_for_byte() {
    let Some(root) = corpora("ics", "calendars::every_file_comes_back_byte_for_byte") else {
        return;
    };
    let mut found = Vec::new();
    files(&root, &["ics", "ifb", "vcs", "ical"], &mut found);
    assert!(found.len() > 1000, "{} files", found.len());
    // With thousands of collections in one store, listing them takes most of the time.
    let part = |part: &[PathBuf]| {
        let mut count = Count::default();
        for files in part.chunks(100) {
            let mut book = Book::new();
            for (number, file) in files.iter().enumerate() {
                check(&mut book, file, number, &mut count);
            }
            assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
        }
        count
    };
    let mut count = Count::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = found
            .chunks(found.len().div_ceil(4))
            .map(|files| scope.spawn(move || part(files)))
            .collect();
        for part in parts {
            count.add(part.join().unwrap());
        }
    });
    eprintln!("{count:#?}");
    assert!(count.items > 7000 && count.zones.1 > 1000, "{count:?}");
}

#[test]
fn all_files_are_imported_at_once() {
    let Some(root) = corpora("ics", "calendars::all_of_it_at_once") else { return };
    let mut book = Book::new();
    let options = ImportOptions { into: None, ..options() };
    let outcome = book.import(vec![path(&root)], &options);
    assert!(outcome.summary.files > 1000, "{:?}", outcome.summary);
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
    let again = book.import(vec![path(&root)], &options).summary;
    assert!(!again.has_changes(), "{again:?}");
    assert_eq!(again.item_count(), outcome.summary.item_count());
    assert_eq!(book.store.check().unwrap().faults, []);
}

/// Counts the zone definitions and the calendar contexts that the items of the store use. The check
/// of the store detects unused ones.
fn zone_counts(book: &Book) -> (usize, usize) {
    let reader = book.store.open_reader().unwrap();
    let mut contexts = BTreeSet::new();
    for collection in reader.collections().list().unwrap() {
        contexts.extend(
            reader.items().list_calendar_contexts(&collection).unwrap().into_iter().flatten(),
        );
    }
    let mut definitions = BTreeSet::new();
    for &row in &contexts {
        let context = reader.items().calendar_context(row).unwrap().unwrap();
        definitions.extend(context.zone_definitions.iter().map(|zone| *zone.hash()));
    }
    assert_eq!(book.store.check().unwrap().faults, []);
    (definitions.len(), contexts.len())
}

fn generate_calendar(n: u64, events: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    larder_generate::write_zone_definitions(n, 1, events, &mut bytes).unwrap();
    bytes
}

/// Distinct zones that are used are stored once each.
#[test]
fn copies_of_a_zone_are_stored_once() {
    for n in [538, 814] {
        let mut book = Book::new();
        let outcome = book.take(generate_calendar(n, false), &options());
        let summary = &outcome.summary;
        assert_eq!((summary.zones_defined, summary.zones_kept, summary.item_count()), (n, 0, 0));
        assert_eq!(zone_counts(&book), (0, 0));

        let outcome = book.take(generate_calendar(n, true), &options());
        let summary = &outcome.summary;
        assert_eq!((summary.zones_defined, summary.zones_kept, summary.added), (n, 6, n));
        assert_eq!(zone_counts(&book), (6, 6));
        let exported = book.export(options().into.as_deref().unwrap());
        let text = String::from_utf8(exported).unwrap();
        assert_eq!(text.matches("BEGIN:VTIMEZONE").count(), 6);

        // Another calendar shares them.
        book.take(generate_calendar(n, true), &options_into("another".into()));
        assert_eq!(zone_counts(&book), (6, 6));
        assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
    }
}

/// A query for a month reads about as many index rows as the month has items.
#[test]
fn a_month_costs_as_much_as_it_holds() {
    let mut bytes = Vec::new();
    larder_generate::write_calendar(2000, 1, false, &mut bytes).unwrap();
    let mut book = Book::new();
    book.take(bytes, &options());
    let reader = book.store.open_reader().unwrap();
    let months = (2015..2032).flat_map(|year| (1..=12).map(move |month| (year, month)));
    let (mut cost, mut returned, mut over) = (0, 0, Vec::new());
    for (year, month) in months {
        let request = SearchRequest {
            query: Query::parse(&format!("when:{year}-{month:02}")).unwrap(),
            ..SearchRequest::default()
        };
        let found = find(&reader, &request).unwrap();
        if (year, month % 6) == (2021, 0) {
            let walked = full_scan(&reader, &request).unwrap();
            assert_eq!(found.rows(), walked.rows());
        }
        let explain = &found.explain;
        let most = explain.returned * 3 / 2 + 50;
        if explain.rows_read + explain.verified > most {
            over.push(format!("{year}-{month}: {explain:?}"));
        }
        (cost, returned) =
            (cost + explain.rows_read + explain.verified, returned + explain.returned);
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
    eprintln!("{cost} rows visited and rules tested for {returned} returned");
}
