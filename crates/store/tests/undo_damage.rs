//! Undo of operations whose stored versions are damaged or erased: the other items are restored,
//! and these are named.

use crate::book::{Book, NOW_MS, card, create_options, outcome_handle, put, read_contents};
use larder_store::{
    BatchChange, DamagedObject, DataDirectory, Fault, Handle, Operation, OperationId, Precondition,
    Store, UndoReport,
};
use rusqlite::Connection;
use std::path::Path;

/// Adds cards with these numbers in one operation.
fn add_cards(book: &mut Book, count: usize) -> (OperationId, Vec<Handle>) {
    let changes = (0..count)
        .map(|n| {
            put(&book.store, "contacts", &card(&format!("u{n}"), "Name", ""), Precondition::Any)
        })
        .collect();
    let (id, added) = book.apply(changes);
    (id, added.outcomes.iter().map(outcome_handle).collect())
}

fn remove_all(book: &mut Book, handles: &[Handle]) -> OperationId {
    let removals = handles.iter().map(|handle| BatchChange::Remove(*handle, Precondition::Any));
    book.apply(removals.collect()).0
}

fn change_at_rest(book: &Book, sql: &str) {
    let changed = Connection::open(book.data()).unwrap().execute(sql, []).unwrap();
    assert_eq!(changed, 1, "{sql}");
}

fn is_undone(book: &Book, id: OperationId) -> bool {
    book.reader().changes().find_operation(id).unwrap().unwrap().undone_by.is_some()
}

fn unreadable_handles(undo: &UndoReport) -> Vec<Handle> {
    undo.unreadable.iter().map(|version| version.handle).collect()
}

#[test]
fn damaged_versions_are_named_and_the_others_restored() {
    let mut book = Book::new();
    let (_, handles) = add_cards(&mut book, 30);
    let removal = remove_all(&mut book, &handles);
    for (uid, change) in [
        ("u3", "bytes = CAST(replace(bytes, 'Name', 'Nane') AS BLOB)"),
        ("u7", "bytes = NULL"),
        ("u9", "uid = 'other'"),
    ] {
        change_at_rest(&book, &format!("UPDATE item_history SET {change} WHERE uid = '{uid}'"));
    }
    let mut damaged = vec![handles[3], handles[7], handles[9]];
    damaged.sort_unstable();

    let undo = book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len(), undo.erased.len()), (27, 0, 0));
    assert_eq!(unreadable_handles(&undo), damaged);
    for version in &undo.unreadable {
        let expect = DamagedObject::FormerVersion {
            handle: version.handle,
            collection: "contacts".into(),
            until: 2,
        };
        assert_eq!(version.object, expect);
    }
    assert_eq!(book.contents().len(), 27);
    assert!(!is_undone(&book, removal));
    let again = book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!((again.operation, again.items), (None, 0));
    assert_eq!(again.unreadable, undo.unreadable);

    book.store.purge(&mut Operation::new("purge", "", NOW_MS), &damaged).unwrap();
    let last = book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!((last.items, &last.erased, last.unreadable.len()), (0, &damaged, 0));
    assert!(is_undone(&book, removal));
    let redo = book.store.undo(undo.operation.unwrap(), NOW_MS).unwrap();
    assert_eq!((redo.items, book.contents().len()), (27, 0));
    // The count of the bytes that the history had before the damage.
    let faults = book.store.check().unwrap().faults;
    assert!(matches!(faults[..], [Fault::HistoryBytes { .. }]), "{faults:?}");
}

/// An undo would remove an item; the bytes that its history would get are not those that were
/// written.
#[test]
fn a_damaged_item_stays_and_the_others_are_removed() {
    let mut book = Book::new();
    let (import, handles) = add_cards(&mut book, 5);
    let sql =
        "UPDATE source_bytes SET bytes = CAST(replace(bytes, 'Name', 'Nane') AS BLOB) WHERE item =
                 (SELECT id FROM item WHERE uid = 'u2')";
    change_at_rest(&book, sql);
    let undo = book.store.undo(import, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len()), (4, 0));
    assert_eq!(unreadable_handles(&undo), [handles[2]]);
    let object = DamagedObject::Item { handle: handles[2], collection: "contacts".into() };
    assert_eq!(undo.unreadable[0].object, object);
    assert_eq!(book.count("SELECT count(*) FROM item"), 1);
    assert!(!is_undone(&book, import));
}

#[test]
fn a_damaged_version_of_another_operation_does_not_matter() {
    let mut book = Book::new();
    book.put(&card("x", "First", ""));
    book.put(&card("x", "Second", ""));
    let (edit, _) = book.put(&card("x", "Third", ""));
    change_at_rest(
        &book,
        "UPDATE item_history SET bytes = CAST(replace(bytes, 'First', 'Furst') AS BLOB) WHERE seq = 2",
    );
    let undo = book.store.undo(edit, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.unreadable.len()), (1, 0));
    assert_eq!(book.contents().into_values().next(), Some(card("x", "Second", "")));
}

/// Salvage erases the bytes of a damaged version. The item that it became must not be removed as if
/// it had not existed before.
#[test]
fn an_item_whose_former_version_was_erased_stays() {
    let mut book = Book::new();
    book.put(&card("x", "First", ""));
    book.put(&card("y", "Other", ""));
    let edits = [("x", "Second"), ("y", "Another")];
    let edits = edits
        .map(|(uid, name)| put(&book.store, "contacts", &card(uid, name, ""), Precondition::Any));
    let (edit, outcomes) = book.apply(edits.into());
    let handle = outcome_handle(&outcomes.outcomes[0]);
    change_at_rest(&book, "UPDATE item_history SET bytes = x'00' WHERE uid = 'x'");
    let (scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let (out, directory) = (scratch.path().join("salvaged.db"), DataDirectory::new(&dir));
    directory.salvage(&create_options(), &out).unwrap();
    directory.restore(&create_options(), &out).unwrap();

    let mut store = Store::open(&dir, &create_options()).unwrap();
    let undo = store.undo(edit, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.erased, undo.unreadable), (1, vec![handle], vec![]));
    let contents = read_contents(&store.open_reader().unwrap());
    let names: Vec<&Vec<u8>> = contents.values().collect();
    assert_eq!(names, [&card("x", "Second", ""), &card("y", "Other", "")]);
    assert_eq!(store.check().unwrap().faults, []);
}
