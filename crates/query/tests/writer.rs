//! Somebody who writes: random batches of everything that can happen to a store.

use crate::book::Book;
use crate::calendar::one_component;
use crate::elsewhere;
use crate::random;
use larder_store::{
    BatchChange, CollectionType, Handle, Kind, Operation, Precondition, Store, StoreOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) const COLLECTIONS: [&str; 4] = ["contacts", "work", "calendar", "other"];

#[derive(Debug, Clone)]
pub(crate) enum Deed {
    Cards(usize, Vec<String>),
    Components(usize, Vec<String>),
    Remove(Vec<usize>),
    Undo,
    Purge(usize),
    Rename(usize, usize),
    /// With all that is in it.
    Drop(usize),
    Create(usize),
    Rebuild,
    /// Another program, whose system has other zones, opens the store, and is gone.
    Visit,
    /// A step of making the indexes anew that another program left to be made.
    Step(usize),
    /// What is there is put aside, and what was put aside before is put back.
    Backup,
    Restore,
}

/// A book with two collections of contacts and two calendars.
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
    let all = reader.collections().unwrap().into_iter();
    let heads = all.flat_map(|of| reader.items_after_row(&of, 0, 9999).unwrap());
    heads.map(|head| head.handle).collect()
}

/// Is there a collection of this name that holds such?
fn is_of(book: &Book, n: usize, family: CollectionType) -> bool {
    let collections = book.reader().collections().unwrap();
    collections.iter().any(|of| of.name == COLLECTIONS[n] && of.collection_type == family)
}

/// It may be refused: no such collection, a name that is taken.
fn one(book: &mut Book, change: BatchChange) {
    let _whatever = book.store.apply(&mut Operation::new("test", "", 0), vec![change]);
}

pub(crate) fn write(book: &mut Book, deed: &Deed) {
    match deed {
        Deed::Cards(n, _) if is_of(book, n % 2, CollectionType::Calendar) => {}
        Deed::Components(n, _) if is_of(book, 2 + n % 2, CollectionType::AddressBook) => {}
        Deed::Cards(n, cards) => book.put(COLLECTIONS[n % 2], cards.iter().map(String::as_str)),
        Deed::Components(n, of) => {
            book.put_components(COLLECTIONS[2 + n % 2], of.iter().map(String::as_str));
        }
        Deed::Remove(which) => {
            let handles = handles(book);
            let gone = which.iter().filter_map(|n| handles.get(n % handles.len().max(1)));
            let gone = gone.map(|handle| BatchChange::Remove(*handle, Precondition::Any)).collect();
            book.apply(gone);
        }
        Deed::Undo => {
            if let Some(last) = book.reader().last_undoable_operation().unwrap() {
                let _whatever = book.store.undo(last.id, 0);
            }
        }
        Deed::Purge(n) => purge(book, *n),
        Deed::Rename(from, to) => {
            let [from, to] = [from, to].map(|n| COLLECTIONS[n % 4].to_string());
            one(book, BatchChange::RenameCollection(from, to));
        }
        Deed::Drop(n) => drop_collection(book, COLLECTIONS[n % 4]),
        Deed::Create(n) => {
            let kind = if n % 4 < 2 { Kind::Contact } else { Kind::Event };
            one(book, BatchChange::CreateCollection(COLLECTIONS[n % 4].into(), kind));
        }
        Deed::Rebuild => drop(book.store.rebuild().unwrap()),
        Deed::Visit => {
            let options = StoreOptions { zones: elsewhere::zones(), ..StoreOptions::default() };
            drop(Store::open(book.store.directory().path(), &options).unwrap());
        }
        Deed::Step(items) => drop(book.store.refresh_step(*items).unwrap()),
        Deed::Backup => drop(book.store.backup(&book.aside()).unwrap()),
        Deed::Restore if book.aside().exists() => {
            let aside = book.aside();
            book.store.restore(&aside).unwrap();
        }
        Deed::Restore => {}
    }
}

pub(crate) fn purge(book: &mut Book, n: usize) {
    let handles = handles(book);
    if let Some(handle) = handles.get(n % handles.len().max(1)) {
        // Somebody who reads may be in the way of its end.
        let _purged = book.store.purge(&mut Operation::new("purge", "", 0), &[*handle]);
    }
}

fn drop_collection(book: &mut Book, name: &str) {
    let reader = book.reader();
    let Some(of) = reader.collections().unwrap().into_iter().find(|of| of.name == name) else {
        return;
    };
    let items = reader.items_after_row(&of, 0, 9999).unwrap().into_iter();
    let mut changes: Vec<BatchChange> =
        items.map(|head| BatchChange::Remove(head.handle, Precondition::Any)).collect();
    changes.push(BatchChange::RemoveCollection(name.into()));
    book.apply(changes);
}

pub(crate) fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        5 => (0..2usize, vec(random::one_card(), 1..6)).prop_map(|(n, cards)| Deed::Cards(n, cards)),
        8 => (0..2usize, vec(one_component(), 1..6)).prop_map(|(n, of)| Deed::Components(n, of)),
        4 => vec(0..50usize, 1..4).prop_map(Deed::Remove),
        3 => Just(Deed::Undo),
        1 => (0..50usize).prop_map(Deed::Purge),
        1 => (0..4usize, 0..4usize).prop_map(|(from, to)| Deed::Rename(from, to)),
        1 => (0..4usize).prop_map(Deed::Drop),
        1 => (0..4usize).prop_map(Deed::Create),
        1 => Just(Deed::Rebuild),
        1 => Just(Deed::Visit),
        2 => select(&[1, 2, 5, 100][..]).prop_map(Deed::Step),
        1 => Just(Deed::Backup),
        1 => Just(Deed::Restore),
    ]
}
