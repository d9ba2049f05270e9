//! Removing what was listed, and nothing that somebody changed since.

use crate::test_store::{CONTACTS, TestStore};
use larder_edit::{list_collection, remove_collection, remove_items};
use larder_store::{Operation, Store};

fn card(n: usize, name: &str) -> String {
    format!("BEGIN:VCARD\nVERSION:4.0\nUID:n-{n}\nFN:{name}\nEND:VCARD\n")
}

fn book(cards: usize) -> TestStore {
    let mut book = TestStore::new();
    for n in 0..cards {
        book.put_contact(CONTACTS, &card(n, "as it was"));
    }
    book
}

fn names(store: &Store) -> Vec<String> {
    let collections = store.open_reader().unwrap().collections().list().unwrap();
    collections.into_iter().map(|collection| collection.name).collect()
}

#[test]
fn a_collection_goes_as_it_was_listed() {
    let mut book = book(1203);
    let listed = list_collection(&book.store.open_reader().unwrap(), CONTACTS).unwrap();
    let mut operation = Operation::new("remove", CONTACTS, 0);
    let removed = remove_collection(&mut book.store, &mut operation, &listed).unwrap();
    assert!(
        removed.collection_removed && removed.remaining.is_empty() && removed.items == 1203,
        "{removed:?}"
    );
    assert_eq!(names(&book.store), [""; 0]);
    let undone = book.store.undo(removed.operation.unwrap(), 0).unwrap();
    assert_eq!((undone.items, undone.conflicts.len()), (1203, 0));
}

/// What was changed after the list was made, or added, is named and stays.
#[test]
fn what_changed_meanwhile_is_kept() {
    for (meanwhile, removed_items, kept) in
        [(card(1, "changed"), 2, "n-1"), (card(9, "added"), 3, "n-9")]
    {
        let mut book = book(3);
        let listed = list_collection(&book.store.open_reader().unwrap(), CONTACTS).unwrap();
        book.put_contact(CONTACTS, &meanwhile);
        let mut operation = Operation::new("remove", CONTACTS, 0);
        let removed = remove_collection(&mut book.store, &mut operation, &listed).unwrap();
        assert_eq!(
            (removed.collection_removed, removed.items),
            (false, removed_items),
            "{removed:?}"
        );
        let uids: Vec<_> = removed.remaining.iter().map(|head| head.uid.as_str()).collect();
        assert_eq!(uids, [kept]);
        assert_eq!(names(&book.store), [CONTACTS]);
    }
}

#[test]
fn items_go_as_they_were_looked_up() {
    let mut book = book(3);
    let reader = book.store.open_reader().unwrap();
    let found = |uid: &str| reader.items().find_by_uid(Some(CONTACTS), uid).unwrap().remove(0);
    let items: Vec<_> = ["n-0", "n-1", "n-2"].map(found).map(|head| (head.handle, head.seq)).into();
    book.put_contact(CONTACTS, &card(1, "changed"));
    let mut operation = Operation::new("remove", "", 0);
    remove_items(&mut book.store, &mut operation, &items[2..]).unwrap();
    let removed = remove_items(&mut book.store, &mut operation, &items).unwrap();
    assert_eq!((removed.items, removed.already_removed), (1, 1));
    assert_eq!(removed.changed, [items[1].0]);
}
