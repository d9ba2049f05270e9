//! Tests of identity: UIDs, duplicates in an import, stable handles.

use crate::book::{Book, card, outcome_handle, put};
use larder_format::contact::derive_uid;
use larder_store::{
    BatchChange, ChangeOutcome, Error, Handle, HandlePrefix, ItemRow, Kind, Operation, Precondition,
};

fn outcome_names(outcomes: &[ChangeOutcome]) -> Vec<&'static str> {
    let name = |outcome: &ChangeOutcome| match outcome {
        ChangeOutcome::Added(_) => "added",
        ChangeOutcome::Updated(_) => "updated",
        ChangeOutcome::Unchanged(_) => "unchanged",
        ChangeOutcome::AddedWithDerivedUid(_) => "added beside",
        ChangeOutcome::UnchangedWithDerivedUid(_) => "unchanged beside",
        ChangeOutcome::Removed(_) => "removed",
        ChangeOutcome::Conflict(..) => "conflict",
        _ => "done",
    };
    outcomes.iter().map(name).collect()
}

/// Imports cards in one batch, as an importer does: a card with a known UID is a duplicate.
fn import(book: &mut Book, cards: &[&[u8]]) -> Vec<ChangeOutcome> {
    import_batches(book, &[cards])
}

/// Imports cards in several batches.
fn import_batches(book: &mut Book, batches: &[&[&[u8]]]) -> Vec<ChangeOutcome> {
    let mut operation = Operation::new("import", "a test", 0).derive_uid_on_conflict();
    let mut outcomes = Vec::new();
    for cards in batches {
        let put = |bytes: &&[u8]| put(&book.store, "contacts", bytes, Precondition::Any);
        let changes = cards.iter().map(put).collect();
        outcomes.extend(book.store.apply(&mut operation, changes).unwrap().outcomes);
    }
    outcomes
}

#[test]
fn two_items_of_one_uid_are_both_kept() {
    let mut book = Book::new();
    let (a, b) = (card("x", "Anna", ""), card("x", "Berta", ""));
    let check = |book: &mut Book, cards: &[&[u8]], expect: &[&str]| {
        let seq = book.store.last_seq().unwrap();
        let outcomes = import(book, cards);
        assert_eq!(outcome_names(&outcomes), expect);
        let quiet = expect.iter().all(|name| name.starts_with("unchanged"));
        assert_eq!(book.store.last_seq().unwrap() > seq, !quiet);
        book.assert_sound();
    };
    check(&mut book, &[&a, &b], &["added", "added beside"]);
    check(&mut book, &[&a, &b], &["unchanged", "unchanged beside"]);
    check(&mut book, &[&b, &a], &["unchanged beside", "unchanged"]);
    check(&mut book, &[&a], &["unchanged"]);
    check(&mut book, &[&b], &["unchanged beside"]);
    let c = card("x", "Clara", "");
    check(&mut book, &[&c], &["updated"]);
    let contents = book.contents();
    assert_eq!(contents.len(), 2);
    assert_eq!(contents[&("contacts".into(), "x".into())], c);
    assert_eq!(contents[&("contacts".into(), derive_uid(&b))], b);
}

#[test]
fn what_an_operation_wrote_is_its_first_in_all_its_batches() {
    let mut book = Book::new();
    let card = |name| card("x", name, "");
    let (a, b, c, d) = (card("Anna"), card("Berta"), card("Clara"), card("Dora"));
    let batches: &[&[&[u8]]] = &[&[&a], &[&b], &[&a, &c], &[&b]];
    let expect = ["added", "added beside", "unchanged", "added beside", "unchanged beside"];
    assert_eq!(outcome_names(&import_batches(&mut book, batches)), expect);
    // Batches of other operations in between are not part of the import.
    let mut operation = Operation::new("import", "a test", 0).derive_uid_on_conflict();
    let of = |book: &Book, bytes| vec![put(&book.store, "contacts", bytes, Precondition::Any)];
    let mut outcomes = Vec::new();
    let other = crate::book::card("y", "Emma", "");
    outcomes.extend(book.store.apply(&mut operation, of(&book, &other)).unwrap().outcomes);
    outcomes.extend(import(&mut book, &[&d]));
    let e = card("Eva");
    outcomes.extend(book.store.apply(&mut operation, of(&book, &e)).unwrap().outcomes);
    assert_eq!(outcome_names(&outcomes), ["added", "updated", "updated"]);
    book.assert_sound();
    // The first item stays the first one even if another operation has changed it since: that
    // change is not overwritten.
    let mut operation = Operation::new("import", "a test", 0).derive_uid_on_conflict();
    let mut outcomes = Vec::new();
    for of_z in &[crate::book::card("z", "Frida", ""), crate::book::card("z", "Greta", "")] {
        outcomes.extend(book.store.apply(&mut operation, of(&book, of_z)).unwrap().outcomes);
        book.put(&crate::book::card("z", "Hanna", ""));
    }
    assert_eq!(outcome_names(&outcomes), ["added", "added beside"]);
    assert_eq!(
        book.contents()[&("contacts".into(), "z".into())],
        crate::book::card("z", "Hanna", "")
    );
}

#[test]
fn a_card_without_uid_is_known_by_its_bytes() {
    let mut book = Book::new();
    let (a, b) = (card("", "Anna", ""), card("", "Berta", ""));
    assert_eq!(outcome_names(&import(&mut book, &[&a, &b, &a])), ["added", "added", "unchanged"]);
    assert_eq!(outcome_names(&import(&mut book, &[&b, &a])), ["unchanged", "unchanged"]);
    let reader = book.reader();
    let found = reader.items().find_by_uid(None, &derive_uid(&a)).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].derived_uid);
    assert_eq!(found[0].kind.name(), "contact");
    assert_eq!(reader.items().find_by_row(found[0].row).unwrap(), Some(found[0].clone()));
    let missing = ItemRow::from_number(99);
    assert_eq!(reader.items().find_by_row(missing).unwrap(), None);
    assert_eq!(reader.items().source_bytes(missing).unwrap(), None);
    assert_eq!(reader.items().find_by_uid(Some("elsewhere"), &derive_uid(&a)).unwrap(), []);
}

#[test]
fn line_ends_behind_a_card_make_no_other_card() {
    let whole = card("x", "Anna", "");
    let bare = whole.strip_suffix(b"\r\n").unwrap().to_vec();
    let unix = [&bare[..], b"\n"].concat();
    let inside = card("x", "Anna", "NOTE:\r\n");
    let check = |first: &[u8], second: &[u8], expect: &str| {
        let mut book = Book::new();
        book.put(first);
        assert_eq!(outcome_names(&[book.put(second).1]), [expect]);
    };
    check(&whole, &bare, "unchanged");
    check(&bare, &whole, "unchanged");
    check(&whole, &unix, "unchanged");
    check(&whole, &inside, "updated");
}

#[test]
fn what_a_change_expects() {
    let mut book = Book::new();
    let (a, b) = (card("x", "Anna", ""), card("x", "Berta", ""));
    let check = |book: &mut Book, bytes: &[u8], expect: Precondition, outcome: &str| {
        let change = put(&book.store, "contacts", bytes, expect);
        let seq = book.store.last_seq().unwrap();
        let applied = book.apply(vec![change]).1;
        assert_eq!(outcome_names(&applied.outcomes), [outcome]);
        assert_eq!(applied.seq, book.store.last_seq().unwrap());
        assert_eq!(applied.seq > seq, ["added", "updated", "removed"].contains(&outcome));
        applied
    };
    check(&mut book, &a, Precondition::UnchangedSince(1), "conflict");
    check(&mut book, &a, Precondition::Present, "conflict");
    let first = check(&mut book, &a, Precondition::Absent, "added");
    let handle = outcome_handle(&first.outcomes[0]);
    check(&mut book, &a, Precondition::Absent, "unchanged");
    let applied = check(&mut book, &b, Precondition::Absent, "conflict");
    assert_eq!(applied.outcomes, [ChangeOutcome::Conflict(Some(handle), Some(first.seq))]);
    check(&mut book, &b, Precondition::UnchangedSince(first.seq + 1), "conflict");
    let second = check(&mut book, &b, Precondition::UnchangedSince(first.seq), "updated");
    check(&mut book, &b, Precondition::UnchangedSince(second.seq), "unchanged");
    check(&mut book, &b, Precondition::Present, "unchanged");
    let a_last = check(&mut book, &a, Precondition::Present, "updated");
    let second = check(&mut book, &b, Precondition::Present, "updated");
    assert!(second.seq > a_last.seq);

    let remove = |book: &mut Book, expect| {
        book.apply(vec![BatchChange::Remove(handle, expect)]).1.outcomes[0]
    };
    let stale = remove(&mut book, Precondition::UnchangedSince(first.seq));
    assert_eq!(stale, ChangeOutcome::Conflict(Some(handle), Some(second.seq)));
    assert_eq!(
        remove(&mut book, Precondition::UnchangedSince(second.seq)),
        ChangeOutcome::Removed(handle)
    );
    assert_eq!(remove(&mut book, Precondition::Any), ChangeOutcome::Conflict(None, None));
    check(&mut book, &a, Precondition::Present, "conflict");
    book.assert_sound();
}

#[test]
fn one_item_many_times_in_one_batch() {
    let mut book = Book::new();
    let versions: Vec<Vec<u8>> =
        (0..5).map(|n| card("x", &format!("Anna {n}"), "TEL:+43 1 234\r\n")).collect();
    let changes = versions
        .iter()
        .map(|bytes| put(&book.store, "contacts", bytes, Precondition::Any))
        .collect();
    let applied = book.apply(changes).1;
    assert_eq!(
        outcome_names(&applied.outcomes),
        ["added", "updated", "updated", "updated", "updated"]
    );
    book.assert_sound();
    let handle = outcome_handle(&applied.outcomes[0]);
    let history = book.reader().changes().list_versions(handle).unwrap();
    assert_eq!(history.len(), 5);
    assert!(history.iter().zip(&versions).all(|(kept, bytes)| kept.bytes.as_ref() == Some(bytes)));
    let changes = vec![
        BatchChange::Remove(handle, Precondition::Any),
        put(&book.store, "contacts", &versions[0], Precondition::Any),
        BatchChange::Remove(handle, Precondition::Any),
    ];
    assert_eq!(outcome_names(&book.apply(changes).1.outcomes), ["removed", "added", "removed"]);
    book.assert_sound();
    assert!(book.contents().is_empty());
}

#[test]
fn a_handle_outlives_rebuild_rename_removal_and_undo() {
    let mut book = Book::new();
    let bytes = card("x", "Anna", "");
    let handle = outcome_handle(&book.put(&bytes).1);
    let there = |book: &Book, collection: &str| {
        let text = handle.to_string();
        let found = book
            .reader()
            .items()
            .find_by_handle(HandlePrefix::parse(&text[..8]).unwrap(), 2)
            .unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].handle, &*found[0].collection), (handle, collection));
    };
    there(&book, "contacts");
    book.store.rebuild_and_check().unwrap();
    there(&book, "contacts");
    book.apply(vec![BatchChange::RenameCollection("contacts".into(), "friends".into())]);
    there(&book, "friends");
    let removal = book.remove(handle);
    assert_eq!(
        book.reader()
            .changes()
            .find_removed_handles(HandlePrefix::parse(&handle.to_string()).unwrap(), 9)
            .unwrap(),
        [handle]
    );
    book.store.undo(removal, 0).unwrap();
    there(&book, "friends");
    assert_eq!(outcome_handle(&book.put_into("friends", &bytes).1), handle);
    // The same card in a new collection with the old name is another item.
    assert_ne!(outcome_handle(&book.put(&bytes).1), handle);
    book.assert_sound();
}

#[test]
fn handles_are_the_same_in_every_store() {
    let of = |cards: &[&str]| -> Handle {
        let mut book = Book::new();
        cards
            .iter()
            .map(|uid| outcome_handle(&book.put(&card(uid, "A", "")).1))
            .next_back()
            .unwrap()
    };
    assert_eq!(of(&["x"]), of(&["a", "b", "x"]));
    assert_ne!(of(&["x"]), of(&["y"]));
}

#[test]
fn letters_that_name_an_item_without_doubt() {
    let mut book = Book::new();
    let changes = (0..200)
        .map(|n| put(&book.store, "contacts", &card(&format!("u{n}"), "A", ""), Precondition::Any));
    let changes = changes.collect();
    let outcomes = book.apply(changes).1.outcomes;
    let reader = book.reader();
    for outcome in &outcomes {
        let handle = outcome_handle(outcome);
        let letters = reader.items().unique_prefix_len(handle).unwrap();
        assert!((8..=13).contains(&letters));
        let prefix = HandlePrefix::parse(&handle.to_string()[..letters]).unwrap();
        assert_eq!(reader.items().find_by_handle(prefix, 2).unwrap().len(), 1);
    }
    let letters = "0123456789abcdefghjkmnpqrstvwxyz".chars().map(|letter| {
        let prefix = HandlePrefix::parse(&letter.to_string()).unwrap();
        reader.items().find_by_handle(prefix, 1000).unwrap().len()
    });
    assert_eq!(letters.sum::<usize>(), 200);
}

#[test]
fn collection_names_are_checked() {
    let mut book = Book::new();
    let make = |book: &mut Book, name: &str| {
        let change = BatchChange::CreateCollection(name.into(), Kind::Contact);
        book.store.apply(&mut Operation::new("collections", "", 0), vec![change])
    };
    let long = "é".repeat(200);
    for name in ["contacts", "Família", "a b", "-x", &long] {
        assert!(make(&mut book, name).is_ok(), "{name:?}");
        assert!(matches!(make(&mut book, name), Err(Error::CollectionExists { .. })), "{name:?}");
    }
    let longer = "é".repeat(201);
    for name in ["", "a/b", "a\nb", "\u{7f}", &longer] {
        assert!(
            matches!(make(&mut book, name), Err(Error::InvalidCollectionName { .. })),
            "{name:?}"
        );
    }
    let mut change = |change: BatchChange| {
        let applied = book.store.apply(&mut Operation::new("collections", "", 0), vec![change]);
        applied.map(|applied| applied.outcomes[0])
    };
    let rename = |from: &str, to: &str| BatchChange::RenameCollection(from.into(), to.into());
    assert!(matches!(change(rename("nobody", "x")), Err(Error::NoCollection { .. })));
    assert!(matches!(change(rename("-x", "a b")), Err(Error::CollectionExists { .. })));
    assert!(matches!(change(rename("-x", "a/b")), Err(Error::InvalidCollectionName { .. })));
    assert!(matches!(
        change(BatchChange::RemoveCollection("nobody".into())),
        Err(Error::NoCollection { .. })
    ));
    assert_eq!(change(rename("-x", "-x")).unwrap(), ChangeOutcome::Done);
    assert_eq!(change(rename("-x", "y")).unwrap(), ChangeOutcome::Done);
    assert_eq!(change(BatchChange::RemoveCollection("y".into())).unwrap(), ChangeOutcome::Done);
    book.put(&card("x", "Anna", ""));
    let full = book.apply(vec![BatchChange::RemoveCollection("contacts".into())]).1;
    assert_eq!(full.outcomes, [ChangeOutcome::Conflict(None, None)]);
    let collections = book.reader().collections().list().unwrap();
    let listed: Vec<(&str, u64)> =
        collections.iter().map(|c| (c.name.as_str(), c.item_count)).collect();
    assert_eq!(listed, [("Família", 0), ("a b", 0), ("contacts", 1), (long.as_str(), 0)]);
    book.assert_sound();
}

#[test]
fn a_batch_with_an_error_is_left_out_whole() {
    let mut book = Book::new();
    let changes = vec![
        put(&book.store, "contacts", &card("x", "Anna", ""), Precondition::Any),
        BatchChange::RemoveCollection("nobody".into()),
    ];
    let result = book.store.apply(&mut Operation::new("import", "", 0), changes);
    assert!(matches!(result, Err(Error::NoCollection { .. })));
    assert!(book.contents().is_empty());
    assert_eq!(book.store.last_seq().unwrap(), 0);
    assert!(book.reader().changes().list_operations(None, 9).unwrap().is_empty());
    book.assert_sound();
}

/// A conflict of one change refuses a batch that must be written completely.
#[test]
fn a_conflict_refuses_a_whole_batch() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let mut operation = Operation::new("test", "", 0).all_or_nothing();
    let changes = vec![
        put(&book.store, "contacts", &card("b", "Bob", ""), Precondition::Any),
        BatchChange::RemoveCollection("contacts".into()),
    ];
    book.store.apply(&mut operation, changes).unwrap();
    assert_eq!(operation.id(), None);
    assert!(book.reader().items().find_by_uid(None, "b").unwrap().is_empty());
}
