//! Tests of undo: bytes are restored exactly, or nothing changes and both versions are returned.

use crate::book::{
    Book, NOW_MS, card, outcome_handle, put, write_meta, write_row_checksums, write_source_bytes,
};
use larder_store::{
    BatchChange, ChangeOutcome, Error, ItemRow, Kind, Operation, OperationId, Precondition,
    UndoConflict, UndoReport,
};
use rusqlite::Connection;
use std::fs::File;
use std::path::Path;
use std::thread;

fn key(uid: &str) -> (String, String) {
    ("contacts".into(), uid.into())
}

fn import(book: &Book, cards: std::ops::Range<usize>, name: &str) -> Vec<BatchChange> {
    cards
        .map(|n| put(&book.store, "contacts", &card(&format!("u{n}"), name, ""), Precondition::Any))
        .collect()
}

#[test]
fn an_import_of_many_batches_is_one_undo() {
    let mut book = Book::new();
    book.put(&card("u3", "Before", ""));
    let before = book.contents();
    let batches = (0..4).map(|n| import(&book, n * 400..(n + 1) * 400, "After")).collect();
    let id = book.batches(batches);
    let after = book.contents();
    assert_eq!(after.len(), 1600);
    let log = book.reader().changes().list_operations(None, 9).unwrap();
    assert_eq!((log[0].id, log[0].verb.as_str(), log[0].counts), (id, "import", [1599, 1, 0]));
    assert_eq!(book.reader().changes().last_undoable_operation().unwrap().unwrap().id, id);

    let undo = book.store.undo(id, NOW_MS + 1).unwrap();
    assert_eq!(undo.items, 1600);
    assert_eq!(undo.conflicts, []);
    assert_eq!(book.contents(), before);
    book.assert_sound();
    let log = book.reader().changes().list_operations(None, 1).unwrap();
    assert_eq!(
        (Some(log[0].id), log[0].undoes, log[0].started_at_ms),
        (undo.operation, Some(id), NOW_MS + 1)
    );
    let undone = book.reader().changes().list_operations(undo.operation, 1).unwrap();
    assert_eq!((undone[0].id, undone[0].undone_by), (id, undo.operation));
    let again = book.store.undo(id, NOW_MS);
    assert!(matches!(again, Err(Error::AlreadyUndone { by, .. }) if Some(by) == undo.operation));

    let redo = book.store.undo(undo.operation.unwrap(), NOW_MS).unwrap();
    assert_eq!(redo.items, 1600);
    assert_eq!(book.contents(), after);
    assert_eq!(book.reader().changes().last_undoable_operation().unwrap().unwrap().id, id);
    book.assert_sound();
    assert_eq!(book.store.undo(id, NOW_MS).unwrap().items, 1600);
    assert_eq!(book.contents(), before);
    book.assert_sound();
}

#[test]
fn what_was_changed_since_is_refused_with_both_versions() {
    let mut book = Book::new();
    let (a, b, c) = (card("x", "Anna", ""), card("x", "Berta", ""), card("x", "Clara", ""));
    let (add, outcome) = book.put(&a);
    let handle = outcome_handle(&outcome);
    book.put(&card("y", "Other", ""));
    let (edit, _) = book.put(&b);
    book.put(&c);
    let refused = |book: &mut Book, id: OperationId, left: Option<&[u8]>, now: Option<&[u8]>| {
        let (seq, contents) = (book.store.last_seq().unwrap(), book.contents());
        let undo = book.store.undo(id, NOW_MS).unwrap();
        let conflict = UndoConflict {
            handle,
            after_image: left.map(<[u8]>::to_vec),
            current: now.map(<[u8]>::to_vec),
        };
        assert_eq!((undo.operation, undo.items, undo.conflicts), (None, 0, vec![conflict]));
        assert_eq!(book.store.last_seq().unwrap(), seq);
        assert_eq!(book.contents(), contents);
    };
    refused(&mut book, add, Some(&a), Some(&c));
    refused(&mut book, edit, Some(&b), Some(&c));
    let removal = book.remove(handle);
    // The addition is in effect undone already; the edit in between is not.
    refused(&mut book, edit, Some(&b), None);
    book.put(&a);
    refused(&mut book, removal, None, Some(&a));
    book.assert_sound();
}

#[test]
fn one_conflict_keeps_the_whole_operation() {
    let mut book = Book::new();
    let changes = import(&book, 0..20, "First");
    let (id, _) = book.apply(changes);
    book.put(&card("u7", "Changed", ""));
    let before = book.contents();
    let undo = book.store.undo(id, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len()), (0, 1));
    assert_eq!(book.contents(), before);
}

#[test]
fn changed_and_put_back_is_no_obstacle() {
    let mut book = Book::new();
    let (a, b, c) = (card("x", "Anna", ""), card("x", "Berta", ""), card("x", "Clara", ""));
    book.put(&a);
    let (edit, outcome) = book.put(&b);
    book.put(&c);
    book.put(&b);
    book.remove(outcome_handle(&outcome));
    book.put(&b);
    assert_eq!(book.store.undo(edit, NOW_MS).unwrap().items, 1);
    assert_eq!(book.contents()[&key("x")], a);
    book.assert_sound();
}

#[test]
fn what_somebody_undid_by_hand_only_gets_its_mark() {
    let mut book = Book::new();
    let (a, b) = (card("x", "Anna", ""), card("x", "Berta", ""));
    book.put(&a);
    let (edit, _) = book.put(&b);
    book.put(&a);
    let undo = book.store.undo(edit, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len()), (0, 0));
    assert!(matches!(book.store.undo(edit, NOW_MS), Err(Error::AlreadyUndone { .. })));
    assert_eq!(book.contents()[&key("x")], a);
}

#[test]
fn an_interrupted_undo_is_completed() {
    let mut book = Book::new();
    book.put(&card("u1", "Before", ""));
    let before = book.contents();
    let changes = import(&book, 0..10, "After");
    let (id, applied) = book.apply(changes);
    // Half of the operation is undone, as by an undo that was killed between two batches.
    let mut half: Vec<BatchChange> = applied.outcomes[2..6]
        .iter()
        .map(|outcome| BatchChange::Remove(outcome_handle(outcome), Precondition::Any))
        .collect();
    half.push(put(&book.store, "contacts", &card("u1", "Before", ""), Precondition::Any));
    book.apply(half);
    let undo = book.store.undo(id, NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len()), (5, 0));
    assert_eq!(book.contents(), before);
    assert!(matches!(book.store.undo(id, NOW_MS), Err(Error::AlreadyUndone { .. })));
    book.assert_sound();
}

#[test]
fn an_operation_that_changed_one_item_often() {
    let mut book = Book::new();
    let version = |n: usize| card("x", &format!("Anna {n}"), "");
    let change =
        |book: &Book, n: usize| put(&book.store, "contacts", &version(n), Precondition::Any);
    book.put(&version(0));
    let handle = outcome_handle(&book.put(&version(0)).1);
    let first = vec![change(&book, 1), BatchChange::Remove(handle, Precondition::Any)];
    let second = vec![change(&book, 2), change(&book, 3)];
    let third = vec![BatchChange::Remove(handle, Precondition::Any), change(&book, 4)];
    let id = book.batches(vec![first, second, third]);
    assert_eq!(book.contents()[&key("x")], version(4));
    let undo = book.store.undo(id, NOW_MS).unwrap();
    assert_eq!(undo.items, 1);
    assert_eq!(book.contents()[&key("x")], version(0));
    book.store.undo(undo.operation.unwrap(), NOW_MS).unwrap();
    assert_eq!(book.contents()[&key("x")], version(4));
    book.assert_sound();
}

#[test]
fn an_item_made_and_removed_by_one_operation() {
    let mut book = Book::new();
    let add = put(&book.store, "contacts", &card("x", "Anna", ""), Precondition::Any);
    let mut operation = Operation::new("test", "", NOW_MS);
    let added = book.store.apply(&mut operation, vec![add]).unwrap();
    let handle = outcome_handle(&added.outcomes[0]);
    book.store.apply(&mut operation, vec![BatchChange::Remove(handle, Precondition::Any)]).unwrap();
    let undo = book.store.undo(operation.id().unwrap(), NOW_MS).unwrap();
    assert_eq!((undo.items, undo.conflicts.len()), (0, 0));
    assert!(book.contents().is_empty());
    book.assert_sound();
}

#[test]
fn a_second_item_of_one_uid_comes_back_under_its_derived_uid() {
    let mut book = Book::new();
    book.put(&card("x", "Anna", ""));
    let beside =
        put(&book.store, "contacts", &card("x", "Berta", ""), Precondition::DeriveUidOnConflict);
    let outcome = book.apply(vec![beside]).1.outcomes[0];
    let before = book.contents();
    let removal = book.remove(outcome_handle(&outcome));
    book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!(book.contents(), before);
    let uid = larder_format::contact::derive_uid(&card("x", "Berta", ""));
    assert!(book.reader().items().find_by_uid(None, &uid).unwrap()[0].derived_uid);
    book.assert_sound();
}

fn collections(book: &Book) -> Vec<(String, u64)> {
    book.reader()
        .collections()
        .list()
        .unwrap()
        .into_iter()
        .map(|c| (c.name, c.item_count))
        .collect()
}

#[test]
fn collections_come_back() {
    let mut book = Book::new();
    let check = |book: &mut Book, changes: Vec<BatchChange>, after: &[(&str, u64)]| {
        let owned = |list: &[(&str, u64)]| {
            list.iter().map(|(name, items)| (name.to_string(), *items)).collect::<Vec<_>>()
        };
        let before = collections(book);
        let (id, _) = book.apply(changes);
        assert_eq!(collections(book), owned(after));
        let undo = book.store.undo(id, NOW_MS).unwrap();
        assert_eq!(collections(book), before);
        book.assert_sound();
        book.store.undo(undo.operation.unwrap(), NOW_MS).unwrap();
        assert_eq!(collections(book), owned(after));
        book.assert_sound();
    };
    let create = |name: &str| BatchChange::CreateCollection(name.into(), Kind::Contact);
    let rename = |from: &str, to: &str| BatchChange::RenameCollection(from.into(), to.into());
    let drop = |name: &str| BatchChange::RemoveCollection(name.into());
    check(&mut book, vec![create("a")], &[("a", 0)]);
    check(&mut book, vec![rename("a", "b")], &[("b", 0)]);
    check(&mut book, vec![drop("b")], &[]);
    check(&mut book, vec![create("a"), create("b")], &[("a", 0), ("b", 0)]);
    check(
        &mut book,
        vec![rename("a", "c"), rename("c", "d"), rename("d", "e")],
        &[("b", 0), ("e", 0)],
    );
    check(&mut book, vec![create("f"), rename("f", "g")], &[("b", 0), ("e", 0), ("g", 0)]);
    check(&mut book, vec![drop("g"), rename("e", "g")], &[("b", 0), ("g", 0)]);
    let into = put(&book.store, "h", &card("x", "Anna", ""), Precondition::Any);
    check(&mut book, vec![into, drop("b")], &[("g", 0), ("h", 1)]);
    let into = put(&book.store, "i", &card("y", "Berta", ""), Precondition::Any);
    check(&mut book, vec![rename("h", "i"), into], &[("g", 0), ("i", 2)]);
}

#[test]
fn a_collection_that_others_have_filled_stays() {
    let mut book = Book::new();
    let (id, _) = book.put_into("new", &card("x", "Anna", ""));
    book.put_into("new", &card("y", "Berta", ""));
    assert_eq!(book.store.undo(id, NOW_MS).unwrap().items, 1);
    assert_eq!(collections(&book), [("new".to_string(), 1)]);
    book.assert_sound();
}

#[test]
fn an_item_of_a_removed_collection_brings_it_back() {
    let mut book = Book::new();
    let (_, outcome) = book.put_into("old", &card("x", "Anna", ""));
    let before = book.contents();
    let removal = book.remove(outcome_handle(&outcome));
    book.apply(vec![BatchChange::RemoveCollection("old".into())]);
    assert_eq!(collections(&book), []);
    book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!(book.contents(), before);
    assert_eq!(
        book.reader().items().find_by_uid(None, "x").unwrap()[0].handle,
        outcome_handle(&outcome)
    );
    book.assert_sound();
}

#[test]
fn an_operation_without_net_change_restores_no_collection() {
    let mut book = Book::new();
    let anna = card("x", "Anna", "");
    let (added, outcome) = book.put_into("old", &anna);
    let put_back = put(&book.store, "old", &anna, Precondition::Any);
    let removal = BatchChange::Remove(outcome_handle(&outcome), Precondition::Any);
    let (replaced, _) = book.apply(vec![removal, put_back]);
    book.store.undo(added, NOW_MS).unwrap();
    assert_eq!(collections(&book), []);
    assert_eq!(book.store.undo(replaced, NOW_MS).unwrap().items, 0);
    assert_eq!(collections(&book), []);
    book.assert_sound();
}

#[test]
fn a_name_that_another_collection_took_is_no_place_to_come_back_to() {
    let mut book = Book::new();
    let (_, outcome) = book.put_into("old", &card("x", "Anna", ""));
    let removal = book.remove(outcome_handle(&outcome));
    let (drop, _) = book.apply(vec![BatchChange::RemoveCollection("old".into())]);
    book.apply(vec![BatchChange::CreateCollection("new".into(), Kind::Contact)]);
    let (rename, _) = book.apply(vec![BatchChange::RenameCollection("new".into(), "old".into())]);
    book.put_into("new", &card("y", "Berta", ""));
    let (seq, before) = (book.store.last_seq().unwrap(), book.contents());
    for (id, taken) in [(removal, "old"), (drop, "old"), (rename, "new")] {
        let refused = book.store.undo(id, NOW_MS);
        assert!(
            matches!(&refused, Err(Error::CollectionExists { name }) if name == taken),
            "{refused:?}"
        );
    }
    assert_eq!((book.store.last_seq().unwrap(), book.contents()), (seq, before));
    book.assert_sound();
}

#[test]
fn what_cannot_be_undone() {
    let mut book = Book::new();
    let missing = OperationId::from_number(1);
    let refused = book.store.undo(missing, NOW_MS);
    assert!(matches!(refused, Err(Error::NoOperation { id }) if id == missing));
    assert_eq!(book.reader().changes().last_undoable_operation().unwrap(), None);
    let (_, outcome) = book.put(&card("x", "Anna", ""));
    let (edit, _) = book.put(&card("x", "Berta", ""));
    let handle = outcome_handle(&outcome);
    book.store.purge(&mut Operation::new("purge", "", NOW_MS), &[handle]).unwrap();
    // The log has the operation, but no contents.
    let log = book.reader().changes().list_operations(None, 1).unwrap();
    assert!(
        matches!(book.store.undo(log[0].id, NOW_MS), Err(Error::PurgeNotUndoable { id }) if id == log[0].id)
    );
    assert_eq!(
        book.reader().changes().last_undoable_operation().unwrap().unwrap().id,
        edit,
        "not the purge"
    );
    let versions = book.reader().changes().list_versions(handle).unwrap();
    assert!(!versions.is_empty() && versions.iter().all(|version| version.bytes.is_none()));
    assert_eq!(book.store.undo(edit, NOW_MS).unwrap().items, 0);
    assert!(book.contents().is_empty());
    book.assert_sound();
}

#[test]
fn what_was_purged_and_added_again_is_a_conflict() {
    let mut book = Book::new();
    let (_, outcome) = book.put(&card("x", "Anna", ""));
    let (edit, _) = book.put(&card("x", "Berta", ""));
    let handle = outcome_handle(&outcome);
    book.store.purge(&mut Operation::new("purge", "", NOW_MS), &[handle]).unwrap();
    let new = card("x", "New", "");
    book.put(&new);
    let undo = book.store.undo(edit, NOW_MS).unwrap();
    assert_eq!(
        undo.conflicts,
        [UndoConflict { handle, after_image: None, current: Some(new.clone()) }]
    );
    assert_eq!(book.contents()[&key("x")], new);
}

#[test]
fn the_history_of_an_item() {
    let mut book = Book::new();
    let (a, b) = (card("x", "Anna", ""), card("x", "Berta", ""));
    let (add, outcome) = book.put(&a);
    let handle = outcome_handle(&outcome);
    let (edit, _) = book.put(&b);
    let removal = book.remove(handle);
    let undo = book.store.undo(removal, NOW_MS).unwrap().operation.unwrap();
    let versions = book.reader().changes().list_versions(handle).unwrap();
    let seen: Vec<_> = versions
        .iter()
        .map(|version| {
            let id = |row: &Option<larder_store::OperationRecord>| row.as_ref().map(|row| row.id);
            let bytes = version.bytes.clone().unwrap();
            (
                version.since,
                version.until,
                version.removed,
                id(&version.operation),
                id(&version.ended_by),
                bytes,
            )
        })
        .collect();
    let expect = [
        (1, Some(2), false, Some(add), Some(edit), a),
        (2, Some(3), true, Some(edit), Some(removal), b.clone()),
        (4, None, false, Some(undo), None, b),
    ];
    assert_eq!(seen, expect);
    let nothing = larder_store::HandlePrefix::parse("0000000000000").unwrap();
    assert_eq!(book.reader().changes().find_removed_handles(nothing, 9).unwrap(), []);
    assert!(matches!(outcome, ChangeOutcome::Added(_)));
}

/// Changes the item with the last handle, like another writer.
fn change_last_item(book: &Path) {
    let conn = Connection::open(book).unwrap();
    let last = "(SELECT max(handle) FROM item WHERE uid LIKE 'u%')";
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let seq = number("SELECT value + 1 FROM meta WHERE key = 'last_seq'");
    let operation = number("SELECT max(id) + 1 FROM operation");
    let item = number(&format!("SELECT id FROM item WHERE handle = {last}"));
    conn.execute_batch(&format!(
        "INSERT INTO operation VALUES({operation}, 'edit', '', 0, 0, 0, 1, 0, NULL, NULL, 0);
         INSERT INTO batch VALUES({seq}, {operation}, 0);
         INSERT INTO item_history(seq, ordinal, handle, collection, kind, removed, since, uid, recurrence_id,
                                  uid_origin, bytes, checksum, item)
           SELECT {seq}, 1, handle, collection, kind, 0, seq, uid, recurrence_id, uid_origin, bytes, checksum, id
           FROM item JOIN source_bytes ON item = id WHERE id = {item};
         UPDATE item SET seq = {seq}, ordinal = 1 WHERE id = {item};"
    ))
    .unwrap();
    let sql = "SELECT CAST(replace(CAST(bytes AS TEXT), 'FN:After', 'FN:Other') AS BLOB)
               FROM source_bytes WHERE item = ?1";
    let bytes: Vec<u8> = conn.query_row(sql, [item], |row| row.get(0)).unwrap();
    write_source_bytes(&conn, ItemRow::from_number(item), &bytes);
    write_row_checksums(&conn);
    write_meta(&conn, "last_seq", seq);
}

/// Undoes an operation, and changes an item when the undo has looked for conflicts, planned its
/// first batch and waits for the write lock.
fn undo_with_change(book: &mut Book, id: OperationId) -> UndoReport {
    let (data, dir) = (book.data(), book.dir());
    let lock = File::open(dir.join("data.lock")).unwrap();
    let queue = File::open(dir.join("data.lock-queue")).unwrap();
    lock.lock().unwrap();
    thread::scope(|scope| {
        let undo = scope.spawn(|| book.store.undo(id, NOW_MS).unwrap());
        // A writer that waits for the lock holds the queue.
        while queue.try_lock().is_ok() {
            queue.unlock().unwrap();
            thread::yield_now();
        }
        change_last_item(&data);
        lock.unlock().unwrap();
        undo.join().unwrap()
    })
}

#[test]
fn what_is_changed_while_it_is_undone_is_left_and_the_operation_stays_open() {
    // In a later batch than the one that waits, and in this one.
    for items in [700, 20] {
        let mut book = Book::new();
        let changes = import(&book, 0..items, "After");
        let (id, _) = book.apply(changes);
        let undo = undo_with_change(&mut book, id);
        assert_eq!((undo.items, undo.conflicts.len()), (items as u64 - 1, 1));
        assert!(undo.operation.is_some());
        let conflict = &undo.conflicts[0];
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8(bytes.clone().unwrap()).unwrap();
        assert!(text(&conflict.after_image).contains("FN:After"));
        assert!(text(&conflict.current).contains("FN:Other"));
        assert_eq!(book.contents().len(), 1);
        // The operation can still be undone: not while the conflict lasts, and completely
        // afterwards.
        let operation = book.reader().changes().find_operation(id).unwrap().unwrap();
        assert_eq!(operation.undone_by, None);
        let again = book.store.undo(id, NOW_MS).unwrap();
        assert_eq!((again.operation, again.conflicts), (None, undo.conflicts.clone()));
        book.remove(conflict.handle);
        let rest = book.store.undo(id, NOW_MS).unwrap();
        assert_eq!((rest.items, rest.conflicts), (0, vec![]));
        assert!(matches!(book.store.undo(id, NOW_MS), Err(Error::AlreadyUndone { .. })));
    }
}

#[test]
fn an_undo_of_large_items_is_cut_by_bytes() {
    let mut book = Book::new();
    let cards = (0..10).map(|n| crate::book::large_card(&format!("u{n}"), 'A', 1 << 20));
    let changes: Vec<_> =
        cards.map(|card| put(&book.store, "contacts", &card, Precondition::Any)).collect();
    let applied = book.apply(changes).1;
    let before = book.contents();
    let removals = applied.outcomes.iter().map(outcome_handle);
    let removals = removals.map(|handle| BatchChange::Remove(handle, Precondition::Any)).collect();
    let (removal, _) = book.apply(removals);
    let undo = book.store.undo(removal, NOW_MS).unwrap();
    assert_eq!(undo.items, 10);
    assert!(book.contents() == before);
    let id = undo.operation.unwrap();
    assert_eq!(book.count(&format!("SELECT count(*) FROM batch WHERE operation = {id}")), 3);
    book.assert_sound();
}

#[test]
fn a_collection_that_got_another_name_since_keeps_it() {
    let rename = |from: &str, to: &str| BatchChange::RenameCollection(from.into(), to.into());
    let mut book = Book::new();
    book.apply(vec![BatchChange::CreateCollection("a".into(), Kind::Contact)]);
    let (first, _) = book.apply(vec![rename("a", "b")]);
    let (second, _) = book.apply(vec![rename("b", "c")]);
    let seq = book.store.last_seq().unwrap();
    let refused = book.store.undo(first, NOW_MS);
    assert!(
        matches!(&refused, Err(Error::CollectionChanged { id, name }) if *id == first && name == "b"),
        "{refused:?}"
    );
    assert_eq!(book.store.last_seq().unwrap(), seq);
    assert_eq!(collections(&book), [("c".to_string(), 0)]);
    // In the other order there is no conflict, nor after the rename was reverted by hand.
    book.store.undo(second, NOW_MS).unwrap();
    book.store.undo(first, NOW_MS).unwrap();
    assert_eq!(collections(&book), [("a".to_string(), 0)]);
    let (third, _) = book.apply(vec![rename("a", "b")]);
    book.apply(vec![rename("b", "c")]);
    book.apply(vec![rename("c", "b")]);
    book.store.undo(third, NOW_MS).unwrap();
    assert_eq!(collections(&book), [("a".to_string(), 0)]);
    book.assert_sound();
}

#[test]
fn an_undo_does_not_go_on_in_a_store_that_a_restore_replaced() {
    let mut book = Book::new();
    let id = book.batches((0..8).map(|n| import(&book, n * 500..(n + 1) * 500, "A")).collect());
    let before = book.contents();
    let dir = book.store.directory().path().to_path_buf();
    let backup = dir.with_extension("backup");
    book.store.backup(&backup).unwrap();
    let seq = book.store.last_seq().unwrap();
    let mut other =
        larder_store::Store::open(&dir, &larder_store::StoreOptions::default()).unwrap();
    let restored = std::thread::spawn(move || {
        while other.last_seq().unwrap() == seq {
            std::thread::yield_now();
        }
        other.restore(&backup).map(drop)
    });
    let undone = book.store.undo(id, NOW_MS);
    restored.join().unwrap().unwrap();
    // If the restore came after the last batch of the undo, there is no error.
    if let Err(error) = undone {
        assert!(matches!(error, larder_store::Error::RestoredDuringUndo { .. }), "{error}");
    }
    assert_eq!(book.contents(), before);
}

/// The undo of a running import ends the import.
#[test]
fn an_operation_that_is_undone_while_it_goes_on() {
    let mut book = Book::new();
    let mut operation = Operation::new("import", "", NOW_MS);
    let first = put(&book.store, "contacts", &card("a", "Anna", ""), Precondition::Any);
    book.store.apply(&mut operation, vec![first]).unwrap();
    let id = operation.id().unwrap();
    let second = put(&book.store, "contacts", &card("b", "Berta", ""), Precondition::Any);
    let undone = book.store.undo(id, NOW_MS).unwrap();
    let error = book.store.apply(&mut operation, vec![second.clone()]).unwrap_err();
    assert!(matches!(error, larder_store::Error::OperationUndone { .. }), "{error}");
    // After the undo was undone, the import may continue.
    book.store.undo(undone.operation.unwrap(), NOW_MS).unwrap();
    book.store.apply(&mut operation, vec![second]).unwrap();
    book.assert_sound();
}

/// Another process imports while the import is undone.
#[test]
fn all_batches_of_a_running_operation_are_undone() {
    let mut book = Book::new();
    let mut operation = Operation::new("import", "", NOW_MS);
    let mut writer =
        larder_store::Store::open(&*book.dir(), &larder_store::StoreOptions::default()).unwrap();
    for n in 0..4 {
        let changes = import(&book, n * 1000..(n + 1) * 1000, "Anna");
        writer.apply(&mut operation, changes).unwrap();
    }
    let id = operation.id().unwrap();
    // The batches of the undo and those of the import take turns.
    let importer = thread::spawn(move || {
        for written in 0..100_000 {
            let text = card(&format!("late{written}"), "Berta", "");
            let batch = vec![put(&writer, "contacts", &text, Precondition::Any)];
            if let Err(error) = writer.apply(&mut operation, batch) {
                assert!(matches!(error, Error::OperationUndone { .. }), "{error}");
                return written;
            }
        }
        panic!("the import was not stopped");
    });
    while book.contents().len() <= 4000 && !importer.is_finished() {
        thread::yield_now();
    }
    let undo = book.store.undo(id, NOW_MS).unwrap();
    let written = importer.join().unwrap();
    assert_eq!((undo.items, undo.conflicts), (4000 + written, vec![]));
    assert_eq!(book.contents().len(), 0);
    assert!(matches!(book.store.undo(id, NOW_MS), Err(Error::AlreadyUndone { .. })));
    book.assert_sound();
}
