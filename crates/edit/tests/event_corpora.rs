//! Series of other programs, changed in every way: nothing panics, the index is sound, and undo
//! gives the bytes back.

use crate::event::{CALENDAR, bytes, metas, prague, prague_locale};
use crate::test_store::TestStore;
use larder_edit::event::{
    EditOutcome, Error, EventEdit, OccurrenceEdit, OccurrenceRef, OccurrenceSelector,
    RecurrenceScope, edit_occurrences, is_recurring, remove_occurrences,
};
use larder_edit::item_text::SplitText;
use larder_store::{CollectionType, ItemMeta, Operation, Store, TimeRange, TimeTarget};
use larder_time::civil::Instant;
use larder_time::value::IcalDateTime;
use std::path::{Path, PathBuf};

/// Files that are not larger, and so many of them that one is taken.
const LARGEST: u64 = 16 << 10;
const EACH: usize = 12;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().unwrap().len() <= LARGEST {
            found.push(path);
        }
    }
}

fn book(files: &[PathBuf]) -> TestStore {
    let mut book = TestStore::new();
    for file in files {
        let Ok(pieces) = SplitText::from_bytes(&std::fs::read(file).unwrap()) else { continue };
        let mut number = 0;
        let mut random = || {
            number += 1;
            Ok([number; 16])
        };
        let extractor =
            book.store.extractor_for_collection(CALENDAR, CollectionType::Calendar).unwrap();
        let mut items = pieces.parse_items(&extractor, &mut random).unwrap().items;
        items.retain(|item| item.kind() != larder_store::Kind::Contact);
        let mut operation = Operation::new("add", "", 0);
        let mut told = |_: &Store, _| Ok::<(), larder_store::Error>(());
        larder_edit::add_items(&mut book.store, &mut operation, CALENDAR, items, &mut told)
            .unwrap();
    }
    book
}

/// The time of the occurrence of this number, if there are so many.
fn nth(store: &Store, meta: &ItemMeta, number: usize) -> Option<OccurrenceRef> {
    let local = prague();
    let (from, to) = (Instant::MIN, Instant::MAX);
    let time_range =
        TimeRange { from, to, local_zone: local.clone(), target: TimeTarget::Occurrences };
    let mut found = Vec::new();
    store
        .open_reader()
        .unwrap()
        .items()
        .for_each_schedule(&[meta.row], &mut |_, times| {
            times.for_each_in(&time_range, &mut |one| {
                found.push((one.occurrence.original_civil, one.is_date, one.occurrence.original));
                found.len() <= number
            });
            true
        })
        .unwrap();
    let (civil, date, instant) = *found.get(number)?;
    Some(match date {
        true => OccurrenceRef::Day(civil),
        false => OccurrenceRef::RecurrenceId(IcalDateTime {
            civil: instant.to_civil(0),
            is_date: false,
            is_utc: true,
        }),
    })
}

fn act(store: &mut Store, meta: &ItemMeta, step: usize) -> Option<Result<EditOutcome, Error>> {
    let at = nth(store, meta, step % 3);
    let scope =
        [RecurrenceScope::This, RecurrenceScope::ThisAndFuture, RecurrenceScope::All][step / 3 % 3];
    let at = if scope == RecurrenceScope::All { None } else { Some(at?) };
    let which = OccurrenceSelector { scope: Some(scope), occurrence: at };
    let mut operation = Operation::new("test", "", 0).all_or_nothing();
    let mut edit = EventEdit { shift: Some("+1 day".into()), ..EventEdit::default() };
    edit.set_field("summary", "Changed").unwrap();
    let (locale, new_uid) = (prague_locale(), format!("n{}", meta.row));
    Some(if step < 9 {
        let request = OccurrenceEdit { selector: which, edit: &edit, new_uid: &new_uid };
        edit_occurrences(store, &mut operation, meta, request, &locale)
    } else {
        remove_occurrences(store, &mut operation, meta, which, &locale)
    })
}

#[test]
fn series_of_other_programs() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let root = std::env::var_os("LARDER_CORPORA").map_or(beside, PathBuf::from).join("ics");
    if !root.is_dir() {
        eprintln!("left out: series_of_other_programs (no corpora; set LARDER_CORPORA)");
        return;
    }
    let mut all = Vec::new();
    files(&root, &mut all);
    let some: Vec<PathBuf> = all.into_iter().step_by(EACH).collect();
    let mut book = book(&some);
    let before = bytes(&book);
    let reader = book.store.open_reader().unwrap();
    let masters: Vec<ItemMeta> = metas(&reader)
        .into_iter()
        .filter(|meta| meta.recurrence_id.is_empty() && is_recurring(&reader, meta).unwrap())
        .collect();
    drop(reader);
    let (mut done, mut refused) = (0, 0);
    for meta in &masters {
        for step in 0..18 {
            // Undo may have given it another row.
            let found = book
                .store
                .open_reader()
                .unwrap()
                .items()
                .find_by_uid(Some(CALENDAR), &meta.uid)
                .unwrap();
            let meta = &found[0];
            match act(&mut book.store, meta, step) {
                Some(Ok(EditOutcome { operation: Some(operation), .. })) => {
                    book.store.undo(operation, 0).unwrap();
                    done += 1;
                }
                Some(Ok(_)) | None => {}
                Some(Err(_)) => refused += 1,
            }
        }
    }
    assert_eq!(bytes(&book), before);
    assert_eq!(book.store.check().unwrap().faults, []);
    assert!(done > 5 * refused, "{done} done, {refused} refused, {} series", masters.len());
}
