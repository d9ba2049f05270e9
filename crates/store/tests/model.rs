//! Random operations against a plain model: after each, the store equals the model, its indexes
//! match the items, and every earlier cursor leads to the current state.

use crate::book::{Book, NOW_MS, card, large_card, outcome_handle, put, read_contents};
use larder_store::{
    BatchChange, ChangeCursor, ChangeOutcome, Handle, Kind, NetEffect, Operation, OperationId,
    Precondition,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A change, before its items are chosen.
#[derive(Debug, Clone)]
enum TestChange {
    Put { collection: usize, uid: usize, body: usize, expect: Precondition },
    Remove(usize),
    PutBack,
}

/// An action of a person.
#[derive(Debug, Clone)]
enum Action {
    Batches(Vec<Vec<TestChange>>),
    Undo(usize),
    Create(usize),
    Rename(usize, usize),
    Index(usize, usize),
    Drop(usize),
    Purge(usize),
    Rebuild,
}

/// An item of the model: the number of its collection never changes, the collection's name may.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    collection: usize,
    uid: String,
    bytes: Vec<u8>,
}

type Items = BTreeMap<Handle, Item>;
/// The names of existing collections by number.
type Names = BTreeMap<usize, String>;

#[derive(Debug, Clone)]
struct ModelOperation {
    id: OperationId,
    before: (Items, Names),
    after: (Items, Names),
    touched: BTreeSet<Handle>,
    /// Items purged since: their changes by this operation are unknown.
    erased: BTreeSet<Handle>,
    undone: bool,
    undoes: Option<usize>,
}

#[derive(Default)]
struct Model {
    items: Items,
    names: Names,
    /// The last names of removed collections: creating one with such a name restores it.
    removed: Names,
    next: usize,
    past: Vec<ModelOperation>,
    cursors: Vec<(ChangeCursor, Items)>,
}

const COLLECTIONS: [&str; 4] = ["contacts", "work", "family", "old"];
const INDEX_CONFIGS: &[&str] =
    &["none", "default", "full_name:sort,prefix phone:phone", "note:suffix"];

fn bytes(uid: usize, body: usize) -> Vec<u8> {
    let named = if uid == 0 { String::new() } else { format!("u{uid}") };
    match body {
        0 => card(&named, "", "N:Berg;Anna;;;\r\nTEL:+43 1 234 567\r\n"),
        1 => card(&named, "Änne Берг", "EMAIL:anna@example.org\r\nEMAIL:a@b.example\r\n"),
        2 => card(&named, "王小明", "ORG:Straße & Söhne;R&D\r\nNOTE:100% \"x\"\r\n"),
        3 => large_card(&named, 'A', 70_000),
        4 => card(&named, &"long ".repeat(60), &format!("NOTE:{}\r\n", "b ".repeat(40_000))),
        5 => card(&named, "Anna", "BDAY:1970-01-01\r\nFN:Second\r\nTEL:\r\n"),
        _ => card(&named, &format!("Name {body}"), ""),
    }
}

impl Model {
    fn collection(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
    }

    /// Returns the collection with this name, created or restored as the store does it.
    fn make(&mut self, name: &str) -> usize {
        if let Some(number) = self.collection(name) {
            return number;
        }
        let back = self.removed.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
        let number = back.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.removed.remove(&number);
        self.names.insert(number, name.to_string());
        number
    }

    fn nth(&self, n: usize) -> Option<Handle> {
        self.items.keys().nth(n % self.items.len().max(1)).copied()
    }

    fn contents(&self) -> crate::book::Contents {
        self.items
            .values()
            .map(|item| {
                ((self.names[&item.collection].clone(), item.uid.clone()), item.bytes.clone())
            })
            .collect()
    }
}

/// The store and its model.
struct StoreAndModel {
    book: Book,
    model: Model,
}

impl StoreAndModel {
    fn perform(&mut self, action: &Action) {
        let seq = self.book.store.last_seq().unwrap();
        let before = (self.model.items.clone(), self.model.names.clone());
        match action {
            Action::Batches(batches) => self.batches(batches),
            Action::Undo(n) => self.undo(*n),
            Action::Create(n) => {
                let name = COLLECTIONS[n % 4];
                if self.model.collection(name).is_none() {
                    self.apply_change(BatchChange::CreateCollection(name.into(), Kind::Contact));
                    self.model.make(name);
                    self.record_operation(&before, &[]);
                }
            }
            Action::Rename(from, to) => {
                let (from, to) = (COLLECTIONS[from % 4], COLLECTIONS[to % 4]);
                if let (Some(number), None) =
                    (self.model.collection(from), self.model.collection(to))
                {
                    self.apply_change(BatchChange::RenameCollection(from.into(), to.into()));
                    self.model.names.insert(number, to.to_string());
                    self.record_operation(&before, &[]);
                }
            }
            Action::Index(n, how) => {
                let name = COLLECTIONS[n % 4];
                if self.model.collection(name).is_some() {
                    self.apply_change(BatchChange::SetIndexConfig(
                        name.into(),
                        INDEX_CONFIGS[*how].parse().unwrap(),
                    ));
                    self.book.store.refresh().unwrap();
                }
            }
            Action::Drop(n) => self.drop_collection(COLLECTIONS[n % 4], &before),
            Action::Purge(n) => self.purge(*n),
            Action::Rebuild => assert_eq!(self.book.store.rebuild_and_check().unwrap().faults, []),
        }
        let changed = before != (self.model.items.clone(), self.model.names.clone());
        assert!(!changed || self.book.store.last_seq().unwrap() > seq, "a change without a number");
        self.compare();
    }

    fn apply_change(&mut self, change: BatchChange) {
        self.book.apply(vec![change]);
    }

    /// Records the newest operation with the state before it, and the items that it touched without
    /// a net change.
    fn record_operation(&mut self, before: &(Items, Names), touched: &[Handle]) {
        let id = self.book.reader().changes().list_operations(None, 1).unwrap()[0].id;
        let after = (self.model.items.clone(), self.model.names.clone());
        let touched = before
            .0
            .keys()
            .chain(after.0.keys())
            .filter(|handle| before.0.get(handle) != after.0.get(handle))
            .chain(touched)
            .copied()
            .collect();
        let (before, undone, undoes, erased) = (before.clone(), false, None, BTreeSet::new());
        self.model.past.push(ModelOperation { id, before, after, touched, erased, undone, undoes });
    }

    fn batches(&mut self, batches: &[Vec<TestChange>]) {
        let before = (self.model.items.clone(), self.model.names.clone());
        let mut operation = Operation::new("import", "", NOW_MS);
        let mut touched = Vec::new();
        for acts in batches {
            let seq = self.book.store.last_seq().unwrap();
            let changes: Vec<BatchChange> =
                acts.iter().filter_map(|act| self.change(act)).collect();
            let applied = self.book.store.apply(&mut operation, changes.clone()).unwrap();
            let mut changed = false;
            for (change, outcome) in changes.iter().zip(&applied.outcomes) {
                if self.apply_to_model(change, outcome) {
                    touched.push(outcome_handle(outcome));
                    changed = true;
                }
            }
            let made = self.book.store.last_seq().unwrap() > seq;
            assert!(made || !changed, "changed without a number");
            assert_eq!(applied.seq, self.book.store.last_seq().unwrap());
        }
        if operation.id().is_some() {
            self.record_operation(&before, &touched);
        }
    }

    fn change(&self, act: &TestChange) -> Option<BatchChange> {
        match act {
            TestChange::Put { collection, uid, body, expect } => {
                let bytes = bytes(*uid, *body);
                Some(put(&self.book.store, COLLECTIONS[collection % 4], &bytes, *expect))
            }
            TestChange::Remove(n) => {
                Some(BatchChange::Remove(self.model.nth(*n)?, Precondition::Any))
            }
            TestChange::PutBack => {
                let item = self.model.items.values().next()?;
                let name = &self.model.names[&item.collection];
                Some(put(&self.book.store, name, &item.bytes, Precondition::Any))
            }
        }
    }

    /// Applies to the model what the store reported, if that is the expected outcome.
    fn apply_to_model(&mut self, change: &BatchChange, outcome: &ChangeOutcome) -> bool {
        let model = &mut self.model;
        match change {
            BatchChange::Put(put) => {
                let collection = model.make(&put.collection);
                let bytes = put.parsed.bytes().to_vec();
                let find = |model: &Model, uid: &str| {
                    let same = |item: &&Item| item.collection == collection && item.uid == uid;
                    model.items.values().find(same).map(|item| item.bytes.clone())
                };
                let derived = larder_format::contact::derive_uid(&bytes);
                let there = find(model, &put.uid);
                let beside = find(model, &derived).filter(|_| derived != put.uid);
                let uid = match outcome {
                    ChangeOutcome::Added(_) => {
                        assert_eq!(there, None);
                        put.uid.clone()
                    }
                    ChangeOutcome::Updated(_) => {
                        assert!(there.is_some_and(|there| there != bytes) && beside.is_none());
                        assert_eq!(put.precondition, Precondition::Any);
                        put.uid.clone()
                    }
                    ChangeOutcome::Unchanged(_) => {
                        assert_eq!(there, Some(bytes));
                        return false;
                    }
                    ChangeOutcome::AddedWithDerivedUid(_) => {
                        assert!(there.is_some() && beside.is_none());
                        derived
                    }
                    ChangeOutcome::UnchangedWithDerivedUid(_) => {
                        assert!(there.is_some() && beside.is_some());
                        return false;
                    }
                    other => panic!("{other:?}"),
                };
                model.items.insert(outcome_handle(outcome), Item { collection, uid, bytes });
                true
            }
            BatchChange::Remove(handle, _) => {
                let gone = model.items.remove(handle);
                assert_eq!(gone.is_some(), matches!(outcome, ChangeOutcome::Removed(_)));
                gone.is_some()
            }
            other => panic!("{other:?}"),
        }
    }

    fn drop_collection(&mut self, name: &str, before: &(Items, Names)) {
        let Some(number) = self.model.collection(name) else { return };
        let outcome =
            self.book.apply(vec![BatchChange::RemoveCollection(name.into())]).1.outcomes[0];
        if self.model.items.values().any(|item| item.collection == number) {
            assert_eq!(outcome, ChangeOutcome::Conflict(None, None));
        } else {
            assert_eq!(outcome, ChangeOutcome::Done);
            self.model.names.remove(&number);
            self.model.removed.insert(number, name.to_string());
            self.record_operation(before, &[]);
        }
    }

    fn purge(&mut self, n: usize) {
        let Some(handle) = self.model.nth(n) else { return };
        let before = (self.model.items.clone(), self.model.names.clone());
        let mut operation = Operation::new("purge", "", NOW_MS);
        assert_eq!(self.book.store.purge(&mut operation, &[handle]).unwrap().items, 1);
        self.model.items.remove(&handle);
        self.record_operation(&before, &[]);
        // The history of the item is erased.
        for past in &mut self.model.past {
            if past.touched.contains(&handle) {
                past.erased.insert(handle);
            }
            past.before.0.remove(&handle);
            past.after.0.remove(&handle);
        }
    }

    fn undo(&mut self, n: usize) {
        let Some(index) = n.checked_rem(self.model.past.len()) else { return };
        let past = self.model.past[index].clone();
        if past.undone || !self.collections_are_simple(&past) {
            return;
        }
        let before = (self.model.items.clone(), self.model.names.clone());
        let undo = match self.book.store.undo(past.id, NOW_MS) {
            Err(larder_store::Error::PurgeNotUndoable { .. }) => return,
            other => other.unwrap(),
        };
        let bytes =
            |items: &Items, handle: &Handle| items.get(handle).map(|item| item.bytes.clone());
        let open = past.touched.iter().filter(|handle| {
            let (was, left) = (bytes(&past.before.0, handle), bytes(&past.after.0, handle));
            let done = was == left && !past.erased.contains(handle);
            !done && was != bytes(&self.model.items, handle)
        });
        let open: Vec<Handle> = open.copied().collect();
        let conflicts: BTreeSet<Handle> = open
            .iter()
            .filter(|handle| bytes(&past.after.0, handle) != bytes(&self.model.items, handle))
            .copied()
            .collect();
        let named: BTreeSet<Handle> =
            undo.conflicts.iter().map(|conflict| conflict.handle).collect();
        assert_eq!(named, conflicts, "undo of operation {}", past.id);
        if !conflicts.is_empty() {
            assert_eq!((undo.operation, undo.items), (None, 0));
            return;
        }
        assert_eq!(undo.items, open.len() as u64);
        self.put_back(&past, &open);
        self.record_operation(&before, &[]);
        let newest = self.model.past.len() - 1;
        self.model.past[newest].undoes = Some(index);
        self.model.past[index].undone = true;
        if let Some(undone) = past.undoes {
            self.model.past[undone].undone = false;
        }
    }

    /// If other operations renamed or took the names of collections since, the result of an undo is
    /// not defined by this model; such cases are left out.
    fn collections_are_simple(&self, past: &ModelOperation) -> bool {
        let model = &self.model;
        let numbers = past.before.1.keys().chain(past.after.1.keys()).collect::<BTreeSet<_>>();
        let same_since = |number: &usize| past.after.1.get(number) == model.names.get(number);
        let changed = |number: &usize| past.before.1.get(number) != past.after.1.get(number);
        let free = |number: &usize| {
            let name = past.before.1.get(number);
            name.is_none_or(|name| model.collection(name).is_none_or(|taken| taken == *number))
        };
        let collections =
            numbers.iter().filter(|n| changed(n)).all(|number| same_since(number) && free(number));
        let items =
            past.touched.iter().filter_map(|handle| past.before.0.get(handle)).all(|item| {
                let back = |name: &String| model.collection(name).is_none();
                model.names.contains_key(&item.collection)
                    || model.removed.get(&item.collection).is_some_and(back)
            });
        collections && items
    }

    fn put_back(&mut self, past: &ModelOperation, open: &[Handle]) {
        for handle in open {
            let Some(item) = past.before.0.get(handle) else {
                self.model.items.remove(handle);
                continue;
            };
            self.model.items.insert(*handle, item.clone());
            let back = self.model.removed.remove(&item.collection);
            self.model.names.extend(back.map(|name| (item.collection, name)));
        }
        let numbers: BTreeSet<usize> =
            past.before.1.keys().chain(past.after.1.keys()).copied().collect();
        for number in numbers {
            let (was, left) = (past.before.1.get(&number), past.after.1.get(&number));
            if was == left {
                continue;
            }
            match was {
                Some(name) => {
                    self.model.removed.remove(&number);
                    self.model.names.insert(number, name.clone());
                }
                None if self.model.items.values().any(|item| item.collection == number) => {}
                None => {
                    let name = self.model.names.remove(&number);
                    self.model.removed.extend(name.map(|name| (number, name)));
                }
            }
        }
    }

    fn compare(&mut self) {
        let reader = self.book.reader();
        assert_eq!(read_contents(&reader), self.model.contents());
        let names: Vec<String> =
            reader.collections().list().unwrap().into_iter().map(|c| c.name).collect();
        let mut known: Vec<String> = self.model.names.values().cloned().collect();
        known.sort();
        assert_eq!(names, known);
        self.book.assert_sound();
        self.model
            .cursors
            .push((reader.changes().current_cursor().unwrap(), self.model.items.clone()));
    }

    /// Reads the changes after every cursor, in pages: they lead to the current state.
    fn check_cursors(&self) {
        let reader = self.book.reader();
        let bytes = |items: &Items| -> BTreeMap<Handle, Vec<u8>> {
            items.iter().map(|(handle, item)| (*handle, item.bytes.clone())).collect()
        };
        for (cursor, items) in &self.model.cursors {
            for limit in [1, 3, 1000] {
                let (mut state, mut cursor) = (bytes(items), cursor.clone());
                let (mut met, mut last) = (BTreeSet::new(), (0, 0));
                loop {
                    let (news, next) = reader.changes().list_after(&cursor, limit).unwrap();
                    for one in &news {
                        assert!(met.insert(one.handle), "an item twice");
                        assert!((one.seq, one.ordinal) > last, "out of order");
                        last = (one.seq, one.ordinal);
                        match one.effect {
                            NetEffect::Put(row) => {
                                state.insert(
                                    one.handle,
                                    reader.items().source_bytes(row).unwrap().unwrap(),
                                );
                            }
                            NetEffect::Removed => {
                                state.remove(&one.handle);
                            }
                        }
                    }
                    cursor = next;
                    if news.len() < limit {
                        break;
                    }
                }
                assert_eq!(state, bytes(&self.model.items));
                assert_eq!(reader.changes().list_after(&cursor, 1).unwrap().0, []);
            }
        }
    }
}

fn change_strategy() -> impl Strategy<Value = TestChange> {
    let expect =
        prop_oneof![4 => Just(Precondition::Any), 1 => Just(Precondition::DeriveUidOnConflict)];
    let body = prop_oneof![12 => 0..3usize, 1 => 3..5usize, 8 => 5..9usize];
    prop_oneof![
        6 => (prop_oneof![4 => Just(0usize), 2 => 1..4usize], 0..6usize, body, expect)
            .prop_map(|(collection, uid, body, expect)| TestChange::Put { collection, uid, body, expect }),
        2 => (0..20usize).prop_map(TestChange::Remove),
        1 => Just(TestChange::PutBack),
    ]
}

fn action_strategy() -> impl Strategy<Value = Action> {
    let batches = prop::collection::vec(prop::collection::vec(change_strategy(), 0..5), 1..4);
    prop_oneof![
        10 => batches.prop_map(Action::Batches),
        8 => (0..100usize).prop_map(Action::Undo),
        1 => (0..4usize).prop_map(Action::Create),
        2 => (0..4usize, 0..4usize).prop_map(|(from, to)| Action::Rename(from, to)),
        2 => (0..4usize, 0..INDEX_CONFIGS.len()).prop_map(|(n, how)| Action::Index(n, how)),
        2 => (0..4usize).prop_map(Action::Drop),
        1 => (0..20usize).prop_map(Action::Purge),
        1 => Just(Action::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_its_model(actions in prop::collection::vec(action_strategy(), 1..24)) {
        let mut pair = StoreAndModel { book: Book::new(), model: Model::default() };
        for action in &actions {
            pair.perform(action);
        }
        pair.check_cursors();
        assert_eq!(pair.book.store.rebuild_and_check().unwrap().faults, []);
    }
}
