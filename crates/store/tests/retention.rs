//! Tests of retention: versions are stored for 90 days or up to 64 MB, the versions of the newest
//! operation always.

use crate::book::{Book, DAY_MS, NOW_MS, card, large_card, outcome_handle, put};
use larder_store::{
    BatchChange, Error, Handle, Operation, Precondition, Reader, Store, StoreOptions,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LARGE: usize = 20 << 20;

fn version_count(book: &Book, handle: Handle) -> usize {
    book.reader().changes().list_versions(handle).unwrap().len()
}

#[test]
fn more_than_64_mb_are_forgotten_oldest_first() {
    let mut book = Book::new();
    let (first, outcome) = book.put(&large_card("x", 'A', LARGE));
    let handle = outcome_handle(&outcome);
    let early = book.reader().changes().current_cursor().unwrap();
    let mut edits = Vec::new();
    for fill in ['B', 'C', 'D'] {
        edits.push(book.put(&large_card("x", fill, LARGE)).0);
    }
    assert_eq!(version_count(&book, handle), 4, "60 MB are kept");
    assert_eq!(book.reader().changes().list_after(&early, 9).unwrap().0.len(), 1);
    let late = book.reader().changes().current_cursor().unwrap();
    let (last, _) = book.put(&card("x", "Small", ""));
    assert_eq!(version_count(&book, handle), 4, "80 MB are not");
    assert!(book.store.check().unwrap().history.1 <= 64 << 20);
    book.assert_sound();
    for id in [first, edits[0]] {
        assert!(
            matches!(book.store.undo(id, NOW_MS), Err(Error::HistoryPruned { .. })),
            "operation {id}"
        );
    }
    assert!(matches!(book.reader().changes().list_after(&early, 9), Err(Error::CursorExpired)));
    assert_eq!(book.reader().changes().list_after(&late, 9).unwrap().0.len(), 1);
    assert_eq!(book.store.undo(last, NOW_MS).unwrap().items, 1);
    let bytes = book.contents().into_values().next().unwrap();
    assert_eq!(bytes, large_card("x", 'D', LARGE));
    book.assert_sound();
}

#[test]
fn the_newest_operation_stays_whole() {
    let mut book = Book::new();
    let uids = ["a", "b", "c", "d"];
    let cards = |book: &Book, fill: char| -> Vec<Vec<BatchChange>> {
        let one = |uid: &&str| {
            vec![put(&book.store, "contacts", &large_card(uid, fill, LARGE), Precondition::Any)]
        };
        uids.iter().map(one).collect()
    };
    let batches = cards(&book, 'A');
    book.batches(batches);
    let before = book.contents();
    let batches = cards(&book, 'B');
    let id = book.batches(batches);
    assert!(book.store.check().unwrap().history.1 > 64 << 20);
    book.store.undo(id, NOW_MS).unwrap();
    assert_eq!(book.contents(), before);
    // The undo is the newest operation now and stays whole; the operation that it undid is pruned.
    book.put(&card("e", "Small", ""));
    book.put(&card("e", "Small again", ""));
    assert!(book.store.check().unwrap().history.1 <= 64 << 20);
    book.assert_sound();
}

#[test]
fn versions_are_pruned_after_90_days() {
    let mut book = Book::new();
    let outcome = book.put(&card("x", "First", "")).1;
    let handle = outcome_handle(&outcome);
    let (edit, _) = book.put(&card("x", "Second", ""));
    let cursor = book.reader().changes().current_cursor().unwrap();
    let (early, late) = (NOW_MS + 89 * DAY_MS, NOW_MS + 91 * DAY_MS);
    let change = |book: &Book, name: &str| {
        vec![put(&book.store, "contacts", &card("x", name, ""), Precondition::Any)]
    };
    book.age_by(89);
    let third = change(&book, "Third");
    let (third, _) = book.apply_at(early, third);
    assert_eq!(version_count(&book, handle), 3);
    let fourth = change(&book, "Fourth");
    book.apply_at(late, fourth);
    assert_eq!(version_count(&book, handle), 3, "the first is forgotten");
    assert!(matches!(book.store.undo(edit, late), Err(Error::HistoryPruned { .. })));
    // The changes after the cursor are complete.
    assert_eq!(book.reader().changes().list_after(&cursor, 9).unwrap().0.len(), 1);
    assert_eq!(book.store.undo(third, late).unwrap().conflicts.len(), 1);
    book.assert_sound();
}

#[test]
fn a_removal_that_is_forgotten_expires_the_cursors_before_it() {
    let mut book = Book::new();
    let changes = ["a", "b", "c"]
        .map(|uid| put(&book.store, "contacts", &card(uid, "A", ""), Precondition::Any));
    let applied = book.apply(changes.to_vec()).1;
    let remove =
        |n: usize| BatchChange::Remove(outcome_handle(&applied.outcomes[n]), Precondition::Any);
    let before = book.reader().changes().current_cursor().unwrap();
    book.apply(vec![remove(0), remove(1), remove(2)]);
    // A reader that stopped in the middle of the batch, and one that read all of it.
    let (news, middle) = book.reader().changes().list_after(&before, 1).unwrap();
    assert_eq!(news.len(), 1);
    let (rest, end) = book.reader().changes().list_after(&middle, 9).unwrap();
    assert_eq!(rest.len(), 2);
    let change = put(&book.store, "contacts", &card("d", "D", ""), Precondition::Any);
    book.age_by(91);
    book.apply_at(NOW_MS + 91 * DAY_MS, vec![change]);
    let expired =
        |cursor| matches!(book.reader().changes().list_after(cursor, 9), Err(Error::CursorExpired));
    assert!(expired(&before));
    assert!(expired(&middle), "the rest of its batch is forgotten");
    assert_eq!(book.reader().changes().list_after(&end, 9).unwrap().0.len(), 1);
}

#[test]
fn a_forgotten_operation_without_former_versions() {
    let mut book = Book::new();
    let (add, _) = book.put(&card("a", "Anna", ""));
    let outcome = book.put(&card("b", "Berta", "")).1;
    book.remove(outcome_handle(&outcome));
    let change = put(&book.store, "contacts", &card("c", "Clara", ""), Precondition::Any);
    book.age_by(91);
    let mut operation = Operation::new("late", "", NOW_MS + 91 * DAY_MS);
    book.store.apply(&mut operation, vec![change]).unwrap();
    assert!(matches!(book.store.undo(add, NOW_MS), Err(Error::HistoryPruned { .. })));
    assert_eq!(book.store.undo(operation.id().unwrap(), NOW_MS).unwrap().items, 1);
    book.assert_sound();
}

/// Without a replaced item, renames and the schedules of series are the oldest changes.
#[test]
fn old_changes_of_collections_and_schedules_are_forgotten() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (rename, _) =
        book.apply(vec![BatchChange::RenameCollection("contacts".into(), "people".into())]);
    book.apply(vec![BatchChange::RenameCollection("people".into(), "contacts".into())]);
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute("INSERT INTO schedule_history VALUES(2, randomblob(16), NULL)", []).unwrap();
    let change = put(&book.store, "contacts", &card("c", "Clara", ""), Precondition::Any);
    book.age_by(91);
    book.apply_at(NOW_MS + 91 * DAY_MS, vec![change]);
    for table in ["collection_history", "schedule_history"] {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let rows = conn.query_row(&format!("SELECT count(*) FROM {table}"), [], count).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    assert!(matches!(book.store.undo(rename, NOW_MS), Err(Error::HistoryPruned { .. })));
    book.assert_sound();
}

/// An import is still running, and small changes are made in between.
#[test]
fn a_small_change_in_the_middle_of_an_import_leaves_its_undo() {
    let mut book = Book::new();
    let uids = ["a", "b", "c", "d", "e", "f"];
    for uid in uids {
        book.put(&large_card(uid, 'A', LARGE));
    }
    let before = book.contents();
    let mut import = Operation::new("import", "", NOW_MS);
    for uid in uids {
        let card = large_card(uid, 'B', LARGE);
        let change = put(&book.store, "contacts", &card, Precondition::Any);
        book.store.apply(&mut import, vec![change]).unwrap();
        if uid == "d" || uid == "f" {
            book.put(&card_with_uid(uid));
        }
    }
    let undo = book.store.undo(import.id().unwrap(), NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts), (6, vec![]));
    let mut after = book.contents();
    after.retain(|(_, uid), _| uids.contains(&uid.as_str()));
    assert!(after == before, "every item has its bytes again");
    book.assert_sound();
}

/// An undo does not prune the versions that it still needs, including later ones.
#[test]
fn an_undo_keeps_what_was_replaced_since() {
    let mut book = Book::new();
    let uids = ["a", "b", "c", "d"];
    let changes = |book: &Book| {
        let cards = uids.map(|uid| large_card(uid, 'A', LARGE));
        cards.map(|card| put(&book.store, "contacts", &card, Precondition::Any)).to_vec()
    };
    let changes = changes(&book);
    let (added, applied) = book.apply(changes);
    let remove = |outcome| BatchChange::Remove(outcome_handle(outcome), Precondition::Any);
    let (removed, _) = book.apply(applied.outcomes.iter().map(remove).collect());
    book.store.undo(removed, NOW_MS).unwrap();
    let undo = book.store.undo(added, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts), (4, vec![]));
    book.assert_sound();
}

/// Several small changes of another program come between two batches of an undo.
#[test]
fn small_changes_beside_an_undo_leave_its_versions() {
    let mut book = Book::new();
    let uids = ["a", "b", "c", "d", "e", "f"];
    let changes = uids
        .map(|uid| put(&book.store, "contacts", &large_card(uid, 'A', LARGE), Precondition::Any));
    let (_, applied) = book.apply(changes.to_vec());
    let remove = |outcome| BatchChange::Remove(outcome_handle(outcome), Precondition::Any);
    let (removed, _) = book.apply(applied.outcomes.iter().map(remove).collect());
    let (dir, is_done) = (book.dir(), AtomicBool::new(false));
    let undo = thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = Store::open(&dir, &StoreOptions::default()).unwrap();
            // The versions are certain to be needed once the undo has begun.
            let has_begun = || {
                let changes = book_reader(&dir).changes().list_operations(None, 1).unwrap();
                changes.first().is_some_and(|last| last.undoes == Some(removed))
            };
            while !is_done.load(Ordering::Relaxed) && !has_begun() {
                thread::yield_now();
            }
            for n in 0.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                let card = card_with_uid(&n.to_string());
                let change = put(&store, "contacts", &card, Precondition::Any);
                store.apply(&mut Operation::new("test", "", NOW_MS), vec![change]).unwrap();
            }
        });
        let undo = book.store.undo(removed, NOW_MS);
        is_done.store(true, Ordering::Relaxed);
        undo.unwrap()
    });
    assert_eq!((undo.items, undo.conflicts), (6, vec![]));
    book.assert_sound();
}

fn book_reader(dir: &Path) -> Reader {
    Reader::open(dir).unwrap()
}

fn card_with_uid(uid: &str) -> Vec<u8> {
    card(&format!("small {uid}"), "Small", "")
}

/// A clock that is wrong for one command prunes nothing, and does not delay the pruning later.
#[test]
fn a_wrong_clock_erases_no_history() {
    for years in [100, -100, 1000, -20] {
        let mut book = Book::new();
        let outcome = book.put(&card("x", "First", "")).1;
        let handle = outcome_handle(&outcome);
        let (edit, _) = book.put(&card("x", "Second", ""));
        let removal = book.remove(handle);
        let count = version_count(&book, handle);
        let add = |book: &Book, uid: &str| {
            vec![put(&book.store, "contacts", &card(uid, "Other", ""), Precondition::Any)]
        };
        let change = add(&book, "wrong");
        book.apply_at(NOW_MS + years * 365 * DAY_MS, change);
        let change = add(&book, "right");
        book.apply_at(NOW_MS + DAY_MS, change);
        assert_eq!(version_count(&book, handle), count, "{years} years");
        assert_eq!(book.store.undo(removal, NOW_MS + DAY_MS).unwrap().items, 1);
        assert_eq!(book.store.undo(edit, NOW_MS + DAY_MS).unwrap().items, 1);
        assert_eq!(
            book.contents()
                .values()
                .filter(|card| **card == crate::book::card("x", "First", ""))
                .count(),
            1
        );
        // After 90 days of use the versions are pruned as if the clock had been right.
        book.age_by(100);
        let change = add(&book, "late");
        book.apply_at(NOW_MS + 100 * DAY_MS, change);
        assert_eq!(version_count(&book, handle), 1, "{years} years");
        book.assert_sound();
    }
}
