//! Series of other programs, changed in every way: nothing panics, the index is sound, and undo gives the bytes back.

use crate::book::Book;
use crate::event::{CALENDAR, bytes, heads, prague, speaking};
use larder_store::{Family, ItemHead, Operation, Store, What, Window};
use larder_sync::card::Pieces;
use larder_sync::event::{At, Done, Edit, Error, Scope, Which, change_which, recurs, remove_which};
use larder_time::civil::Instant;
use larder_time::value::Stamp;
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

fn book(files: &[PathBuf]) -> Book {
    let mut book = Book::new();
    for file in files {
        let Ok(pieces) = Pieces::of(&std::fs::read(file).unwrap()) else { continue };
        let mut number = 0;
        let mut random = || {
            number += 1;
            Ok([number; 16])
        };
        let deriver = book.store.deriver_for(CALENDAR, Family::Calendar).unwrap();
        let mut items = pieces.typed(&deriver, &mut random).unwrap().cards;
        items.retain(|item| item.kind() != larder_store::Kind::Contact);
        let mut operation = Operation::new("add", "", 0);
        let mut told = |_: &Store, _| Ok::<(), larder_store::Error>(());
        larder_sync::add(&mut book.store, &mut operation, CALENDAR, items, &mut told).unwrap();
    }
    book
}

/// The time of the occurrence of this number, if there are so many.
fn nth(store: &Store, head: &ItemHead, number: usize) -> Option<At> {
    let local = prague();
    let (from, to) = (Instant::MIN, Instant::MAX);
    let window = Window { from, to, local: local.clone(), what: What::Occurrences };
    let mut found = Vec::new();
    store
        .reader()
        .unwrap()
        .times(&[head.row], &mut |_, times| {
            times.each(&window, &mut |one| {
                found.push((one.of.original_civil, one.date, one.of.original));
                found.len() <= number
            });
            true
        })
        .unwrap();
    let (civil, date, instant) = *found.get(number)?;
    Some(match date {
        true => At::Day(civil),
        false => At::Id(Stamp { civil: instant.civil(0), date: false, utc: true }),
    })
}

fn act(store: &mut Store, head: &ItemHead, step: usize) -> Option<Result<Done, Error>> {
    let at = nth(store, head, step % 3);
    let scope = [Scope::This, Scope::Future, Scope::All][step / 3 % 3];
    let at = if scope == Scope::All { None } else { Some(at?) };
    let which = Which { scope: Some(scope), at };
    let mut operation = Operation::new("test", "", 0).all_or_nothing();
    let mut edit = Edit { shift: Some("+1 day".into()), ..Edit::default() };
    edit.set("summary", "Changed").unwrap();
    Some(speaking(|speaker| match step < 9 {
        true => change_which(
            store,
            &mut operation,
            head,
            which,
            &edit,
            &format!("n{}", head.row),
            speaker,
        ),
        false => remove_which(store, &mut operation, head, which, speaker),
    }))
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
    let reader = book.store.reader().unwrap();
    let masters: Vec<ItemHead> = heads(&reader)
        .into_iter()
        .filter(|head| head.recurrence.is_empty() && recurs(&reader, head).unwrap())
        .collect();
    drop(reader);
    let (mut done, mut refused) = (0, 0);
    for head in &masters {
        for step in 0..18 {
            // Undo may have given it another row.
            let found = book.store.reader().unwrap().by_uid(Some(CALENDAR), &head.uid).unwrap();
            let head = &found[0];
            match act(&mut book.store, head, step) {
                Some(Ok(Done { operation: Some(operation), .. })) => {
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
