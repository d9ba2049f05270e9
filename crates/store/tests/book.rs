//! Stores in scratch directories, and cards to put into them.

use larder_format::contact::{Contact, derive_uid};
use larder_format::field::Field;
use larder_store::SortPosition;
use larder_store::{
    AppliedBatch, BatchChange, ChangeOutcome, Collection, FieldIndex, Handle, IndexedOrder,
    ItemPut, Operation, OperationId, ParsedItem, Precondition, Reader, Store, StoreOptions,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A day in milliseconds.
pub(crate) const DAY: i64 = 24 * 3600 * 1000;
/// When the tests happen.
pub(crate) const NOW: i64 = 20_000 * DAY;

/// What a store holds: bytes by collection and UID.
pub(crate) type Contents = BTreeMap<(String, String), Vec<u8>>;

/// A store in a directory of its own.
pub(crate) struct Book {
    scratch: TempDir,
    pub(crate) store: Store,
}

pub(crate) fn made() -> StoreOptions {
    StoreOptions { create: true, ..StoreOptions::default() }
}

/// A card with this UID and name, and further lines.
pub(crate) fn card(uid: &str, name: &str, lines: &str) -> Vec<u8> {
    let uid = if uid.is_empty() { String::new() } else { format!("UID:{uid}\r\n") };
    format!("BEGIN:VCARD\r\nVERSION:3.0\r\n{uid}FN:{name}\r\n{lines}END:VCARD\r\n").into_bytes()
}

/// A card of this size whose bulk is a picture, which no index looks at.
pub(crate) fn large_card(uid: &str, fill: char, size: usize) -> Vec<u8> {
    let picture = fill.to_string().repeat(size);
    card(uid, "Large", &format!("PHOTO;ENCODING=b;TYPE=JPEG:{picture}\r\n"))
}

pub(crate) fn prepared(store: &Store, bytes: &[u8]) -> ParsedItem {
    store.extractor().parse_contact(bytes.to_vec()).expect("a contact")
}

/// A card on its way into a collection, under the UID it names or one made from its bytes.
pub(crate) fn put(
    store: &Store,
    collection: &str,
    bytes: &[u8],
    expect: Precondition,
) -> BatchChange {
    let prepared = prepared(store, bytes);
    let named = prepared.uid().map(str::to_string);
    BatchChange::Put(ItemPut {
        collection: Arc::from(collection),
        derived_uid: named.is_none(),
        uid: named.unwrap_or_else(|| derive_uid(bytes)),
        parsed: prepared,
        precondition: expect,
    })
}

/// The handle that an outcome names.
pub(crate) fn handle_of(outcome: &ChangeOutcome) -> Handle {
    match outcome {
        ChangeOutcome::Added(handle)
        | ChangeOutcome::Updated(handle)
        | ChangeOutcome::Unchanged(handle)
        | ChangeOutcome::AddedAsDuplicate(handle)
        | ChangeOutcome::UnchangedDuplicate(handle)
        | ChangeOutcome::Removed(handle) => *handle,
        other => panic!("{other:?} names no item"),
    }
}

pub(crate) fn contents_of(reader: &Reader) -> Contents {
    let mut contents = Contents::new();
    for collection in reader.collections().unwrap() {
        for item in reader.items_after_row(&collection, 0, usize::MAX >> 1).unwrap() {
            let bytes = reader.source_bytes(item.row).unwrap().unwrap();
            let again = contents.insert((item.collection.to_string(), item.uid), bytes);
            assert_eq!(again, None, "one UID twice in a collection");
        }
    }
    contents
}

/// The rows of all items, in their order.
pub(crate) fn item_rows(reader: &Reader) -> Vec<i64> {
    let mut rows = Vec::new();
    for collection in reader.collections().unwrap() {
        rows.extend(reader.item_rows(collection.row, 0, usize::MAX >> 1).unwrap());
    }
    rows.sort_unstable();
    rows
}

impl Book {
    pub(crate) fn new() -> Book {
        Book::with(&made())
    }

    pub(crate) fn with(options: &StoreOptions) -> Book {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(&scratch.path().join("data"), options).unwrap();
        Book { scratch, store }
    }

    /// The data directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// A name beside the data directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir().join("data.db")
    }

    /// Closes the store for a moment and does something to its files; what remains must be opened.
    pub(crate) fn closed<T>(self, act: impl FnOnce(&Path) -> T) -> (TempDir, T) {
        let dir = self.dir();
        let Book { scratch, store } = self;
        drop(store);
        let result = act(&dir);
        (scratch, result)
    }

    /// The same store, opened again with other options.
    pub(crate) fn reopened(self, options: &StoreOptions) -> Book {
        let (scratch, store) = self.closed(|dir| Store::open(dir, options).unwrap());
        Book { scratch, store }
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.open_reader().unwrap()
    }

    pub(crate) fn contents(&self) -> Contents {
        contents_of(&self.reader())
    }

    /// One operation of one batch, at a time of the caller's choice.
    pub(crate) fn apply_at(
        &mut self,
        at: i64,
        changes: Vec<BatchChange>,
    ) -> (OperationId, AppliedBatch) {
        let mut operation = Operation::new("test", "", at);
        let applied = self.store.apply(&mut operation, changes).unwrap();
        (operation.id().unwrap_or_default(), applied)
    }

    pub(crate) fn apply(&mut self, changes: Vec<BatchChange>) -> (OperationId, AppliedBatch) {
        self.apply_at(NOW, changes)
    }

    /// One operation of several batches.
    pub(crate) fn batches(&mut self, batches: Vec<Vec<BatchChange>>) -> OperationId {
        let mut operation = Operation::new("import", "", NOW);
        for changes in batches {
            self.store.apply(&mut operation, changes).unwrap();
        }
        operation.id().unwrap()
    }

    /// Puts a card into `contacts`, whatever is there.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> (OperationId, ChangeOutcome) {
        self.put_into("contacts", bytes)
    }

    pub(crate) fn put_into(
        &mut self,
        collection: &str,
        bytes: &[u8],
    ) -> (OperationId, ChangeOutcome) {
        let change = put(&self.store, collection, bytes, Precondition::Any);
        let (id, applied) = self.apply(vec![change]);
        (id, applied.outcomes[0])
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> OperationId {
        self.apply(vec![BatchChange::Remove(handle, Precondition::Any)]).0
    }

    /// Nothing is wrong with the store.
    #[track_caller]
    pub(crate) fn sound(&self) {
        let report = self.store.check().unwrap();
        assert_eq!(report.faults, []);
        let reader = self.reader();
        for collection in reader.collections().unwrap() {
            for field in collection.index_config.fields_with_index(FieldIndex::Sort) {
                in_order(&reader, &collection, field);
            }
        }
    }

    /// A number from the file itself.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        let conn = rusqlite::Connection::open(self.data()).unwrap();
        conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// An order is what sorting the items gives, in both directions, page by page, and it knows where
/// each place is.
#[track_caller]
fn in_order(reader: &Reader, collection: &Collection, field: &'static Field) {
    let mut expect = Vec::new();
    let mut after = 0;
    while let Some(last) = reader.items_after_row(collection, after, 100).unwrap().last() {
        for head in reader.items_after_row(collection, after, 100).unwrap() {
            let bytes = reader.source_bytes(head.row).unwrap().unwrap();
            let name = Contact::parse(&bytes).first_value(field).unwrap_or_default();
            expect.push(SortPosition { key: reader.extractor().sort_key(&name), row: head.row });
        }
        after = last.row;
    }
    expect.sort();
    let collections = vec![collection.row];
    let mut order = IndexedOrder { field: field.id, collections, backwards: false };
    for (number, place) in expect.iter().enumerate() {
        for (row, before) in [
            (place.row, number),
            (place.row + 1, number + 1),
            (i64::MIN, expect[..number].iter().filter(|other| other.key < place.key).count()),
        ] {
            let place = SortPosition { row, ..place.clone() };
            let position = reader.rank(&order, &place).unwrap().unwrap();
            assert_eq!(position, (before as u64, expect.len() as u64), "{}", field.name);
        }
    }
    for backwards in [false, true] {
        order.backwards = backwards;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = reader.sort_positions(&order, after.as_ref(), 7).unwrap().unwrap();
            let Some(last) = page.last().cloned() else { break };
            found.extend(page);
            after = Some(last);
        }
        assert_eq!(found, expect, "{} {backwards}", field.name);
        expect.reverse();
    }
}
