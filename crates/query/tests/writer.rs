//! A random writer: every action that can change a store.

use crate::book::Book;
use crate::calendar::random_component;
use crate::foreign_zones;
use crate::random;
use larder_store::{
    BatchChange, CollectionType, Error, Handle, Kind, Operation, Precondition, Store, StoreOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) const COLLECTIONS: [&str; 4] = ["contacts", "work", "calendar", "other"];

#[derive(Debug, Clone)]
pub(crate) enum StoreAction {
    Cards(usize, Vec<String>),
    Components(usize, Vec<String>),
    Remove(Vec<usize>),
    Undo,
    Purge(usize),
    Rename(usize, usize),
    /// Removes a collection with its items.
    Drop(usize),
    Create(usize),
    Rebuild,
    /// Another process with other system time zones opens the store and ends.
    Visit,
    /// A step of an index rebuild that another process left incomplete.
    Step(usize),
    /// Writes a backup; `Restore` restores it.
    Backup,
    Restore,
}

/// Creates a store with two address books and two calendars.
pub(crate) fn book() -> Book {
    let mut book = Book::new();
    let kinds = [Kind::Contact, Kind::Contact, Kind::Event, Kind::Event];
    for (name, kind) in COLLECTIONS.into_iter().zip(kinds) {
        book.apply(vec![BatchChange::CreateCollection(name.into(), kind)]);
    }
    book
}

fn handles(book: &Book) -> Vec<Handle> {
    let reader = book.reader();
    let all = reader.collections().list().unwrap().into_iter();
    let metas = all.flat_map(|of| reader.items().list_after(&of, None, 9999).unwrap());
    metas.map(|meta| meta.handle).collect()
}

/// Returns whether a collection of this name and type exists.
fn has_collection(book: &Book, n: usize, collection_type: CollectionType) -> bool {
    let collections = book.reader().collections().list().unwrap();
    collections.iter().any(|of| of.name == COLLECTIONS[n] && of.collection_type == collection_type)
}

/// Applies a change that may be refused: an unknown collection, a name in use.
fn try_apply(book: &mut Book, change: BatchChange) {
    let _result = book.store.apply(&mut Operation::new("test", "", 0), vec![change]);
}

pub(crate) fn write(book: &mut Book, action: &StoreAction) {
    match action {
        StoreAction::Cards(n, _) if has_collection(book, n % 2, CollectionType::Calendar) => {}
        StoreAction::Components(n, _)
            if has_collection(book, 2 + n % 2, CollectionType::AddressBook) => {}
        StoreAction::Cards(n, cards) => {
            book.put(COLLECTIONS[n % 2], cards.iter().map(String::as_str));
        }
        StoreAction::Components(n, of) => {
            book.put_components(COLLECTIONS[2 + n % 2], of.iter().map(String::as_str));
        }
        StoreAction::Remove(which) => {
            let handles = handles(book);
            let gone = which.iter().filter_map(|n| handles.get(n % handles.len().max(1)));
            let gone = gone.map(|handle| BatchChange::Remove(*handle, Precondition::Any)).collect();
            book.apply(gone);
        }
        StoreAction::Undo => {
            if let Some(last) = book.reader().changes().last_undoable_operation().unwrap() {
                let _result = book.store.undo(last.id, 0);
            }
        }
        StoreAction::Purge(n) => purge(book, *n),
        StoreAction::Rename(from, to) => {
            let [from, to] = [from, to].map(|n| COLLECTIONS[n % 4].to_string());
            try_apply(book, BatchChange::RenameCollection(from, to));
        }
        StoreAction::Drop(n) => drop_collection(book, COLLECTIONS[n % 4]),
        StoreAction::Create(n) => {
            let kind = if n % 4 < 2 { Kind::Contact } else { Kind::Event };
            try_apply(book, BatchChange::CreateCollection(COLLECTIONS[n % 4].into(), kind));
        }
        StoreAction::Rebuild => drop(book.store.rebuild().unwrap()),
        StoreAction::Visit => {
            let options =
                StoreOptions { zones: foreign_zones::foreign_zones(), ..StoreOptions::default() };
            drop(Store::open(book.store.directory().path(), &options).unwrap());
        }
        StoreAction::Step(items) => drop(book.store.refresh_step(*items).unwrap()),
        StoreAction::Backup => unless_purge_pends(book.store.backup(book.backup_path())),
        StoreAction::Restore if book.backup_path().exists() => {
            let backup = book.backup_path();
            unless_purge_pends(book.store.restore(&backup));
        }
        StoreAction::Restore => {}
    }
}

/// A purge that a reader blocks stays pending. Until it is completed, a store is neither copied nor
/// replaced: copies would have the purged bytes.
fn unless_purge_pends<T>(result: larder_store::Result<T>) {
    match result {
        Ok(_) | Err(Error::PurgePending { .. } | Error::ReaderBlocksPurge) => {}
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn purge(book: &mut Book, n: usize) {
    let handles = handles(book);
    if let Some(handle) = handles.get(n % handles.len().max(1)) {
        // A reader may prevent its completion.
        let _purged = book.store.purge(&mut Operation::new("purge", "", 0), &[*handle]);
    }
}

fn drop_collection(book: &mut Book, name: &str) {
    let reader = book.reader();
    let Some(of) = reader.collections().list().unwrap().into_iter().find(|of| of.name == name)
    else {
        return;
    };
    let items = reader.items().list_after(&of, None, 9999).unwrap().into_iter();
    let mut changes: Vec<BatchChange> =
        items.map(|meta| BatchChange::Remove(meta.handle, Precondition::Any)).collect();
    changes.push(BatchChange::RemoveCollection(name.into()));
    book.apply(changes);
}

pub(crate) fn store_action() -> impl Strategy<Value = StoreAction> {
    prop_oneof![
        5 => (0..2usize, vec(random::one_card(), 1..6)).prop_map(|(n, cards)| StoreAction::Cards(n, cards)),
        8 => (0..2usize, vec(random_component(), 1..6)).prop_map(|(n, of)| StoreAction::Components(n, of)),
        4 => vec(0..50usize, 1..4).prop_map(StoreAction::Remove),
        3 => Just(StoreAction::Undo),
        1 => (0..50usize).prop_map(StoreAction::Purge),
        1 => (0..4usize, 0..4usize).prop_map(|(from, to)| StoreAction::Rename(from, to)),
        1 => (0..4usize).prop_map(StoreAction::Drop),
        1 => (0..4usize).prop_map(StoreAction::Create),
        1 => Just(StoreAction::Rebuild),
        1 => Just(StoreAction::Visit),
        2 => select(&[1, 2, 5, 100][..]).prop_map(StoreAction::Step),
        1 => Just(StoreAction::Backup),
        1 => Just(StoreAction::Restore),
    ]
}
