//! Stores in scratch directories, and cards to put into them.

use larder_format::contact::{Contact, derive_uid};
use larder_format::field::Field;
use larder_store::SortPosition;
use larder_store::{
    AppliedBatch, BatchChange, ChangeOutcome, Collection, FieldIndex, Handle, IndexedOrder,
    ItemPut, ItemRow, Operation, OperationId, ParsedItem, Precondition, Reader, Store,
    StoreOptions,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A day in milliseconds.
pub(crate) const DAY_MS: i64 = 24 * 3600 * 1000;
/// The time of the tests, in milliseconds since 1970.
pub(crate) const NOW_MS: i64 = 20_000 * DAY_MS;

/// The contents of a store: bytes by collection and UID.
pub(crate) type Contents = BTreeMap<(String, String), Vec<u8>>;

/// A store in a directory of its own.
pub(crate) struct Book {
    scratch: TempDir,
    pub(crate) store: Store,
}

pub(crate) fn create_options() -> StoreOptions {
    StoreOptions { create: true, ..StoreOptions::default() }
}

/// A card with this UID and name, and further lines.
pub(crate) fn card(uid: &str, name: &str, lines: &str) -> Vec<u8> {
    let uid = if uid.is_empty() { String::new() } else { format!("UID:{uid}\r\n") };
    format!("BEGIN:VCARD\r\nVERSION:3.0\r\n{uid}FN:{name}\r\n{lines}END:VCARD\r\n").into_bytes()
}

/// A card of this size; most of it is a picture, which is not indexed.
pub(crate) fn large_card(uid: &str, fill: char, size: usize) -> Vec<u8> {
    let picture = fill.to_string().repeat(size);
    card(uid, "Large", &format!("PHOTO;ENCODING=b;TYPE=JPEG:{picture}\r\n"))
}

pub(crate) fn parse_card(store: &Store, bytes: &[u8]) -> ParsedItem {
    store.extractor().parse_contact(bytes.to_vec()).expect("a contact")
}

/// Returns the change that puts a card into a collection, under its UID or one derived from its
/// bytes.
pub(crate) fn put(
    store: &Store,
    collection: &str,
    bytes: &[u8],
    expect: Precondition,
) -> BatchChange {
    let prepared = parse_card(store, bytes);
    let named = prepared.uid().map(str::to_string);
    BatchChange::Put(ItemPut {
        collection: Arc::from(collection),
        derived_uid: named.is_none(),
        uid: named.unwrap_or_else(|| derive_uid(bytes)),
        parsed: prepared,
        precondition: expect,
    })
}

/// Writes a value of `meta` as the store would: with its checksum.
pub(crate) fn write_meta(conn: &Connection, key: &str, value: impl Into<Value>) {
    let value = value.into();
    let (tag, bytes) = match &value {
        Value::Integer(number) => (b"i", number.to_le_bytes().to_vec()),
        Value::Text(text) => (b"t", text.clone().into_bytes()),
        other => panic!("{other:?} is no value of meta"),
    };
    let mut parts = Vec::new();
    for part in [key.as_bytes(), tag, &bytes] {
        parts.extend_from_slice(&(part.len() as u64).to_le_bytes());
        parts.extend_from_slice(part);
    }
    let checksum = xxh3_64(&parts).cast_signed();
    conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2, ?3)", (key, value, checksum)).unwrap();
}

/// Writes the bytes of an item as the store would: with their checksum.
pub(crate) fn write_source_bytes(conn: &Connection, item: ItemRow, bytes: &[u8]) {
    let spread = item.to_number().cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let checksum = (xxh3_64(bytes) ^ spread).cast_signed();
    let sql = "UPDATE source_bytes SET bytes = ?2, checksum = ?3 WHERE item = ?1";
    assert_eq!(conn.execute(sql, (item, bytes, checksum)).unwrap(), 1);
}

/// Writes the checksums of the rows that a test changed.
pub(crate) fn write_row_checksums(conn: &Connection) {
    let version = "handle, kind, collection, uid, uid_origin, ";
    let tables = [
        ("item", "row_checksum", format!("id, {version} seq, recurrence_id, calendar_context, ordinal")),
        (
            "item_history",
            "row_checksum",
            format!("item, {version} since, recurrence_id, calendar_context, seq, ordinal, removed"),
        ),
        ("collection", "checksum", "id, handle_key, name, type, seq, removed, index_config".into()),
        (
            "operation",
            "checksum",
            "id, verb, detail, started_ms, store_age_ms, added, updated, removed, undoes, undone_by"
                .into(),
        ),
        ("batch", "checksum", "seq, operation".into()),
    ];
    for (table, checksum_column, columns) in tables {
        let mut select = conn.prepare(&format!("SELECT rowid, {columns} FROM {table}")).unwrap();
        let count = columns.split(',').count();
        let rows: Vec<(i64, i64)> = select
            .query_map([], |row| {
                let values: Vec<Value> =
                    (1..=count).map(|column| row.get(column)).collect::<Result<_, _>>()?;
                let (version, place) = values.split_at(values.len().min(9));
                let checksum = match (table, place) {
                    ("item", [Value::Integer(ordinal)]) => hash_columns(version) ^ ordinal,
                    ("item_history", place) => hash_columns(version) ^ hash_columns(place),
                    _ => hash_columns(&values),
                };
                Ok((row.get(0)?, checksum))
            })
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let sql = format!("UPDATE {table} SET {checksum_column} = ?2 WHERE rowid = ?1");
        for row in rows {
            assert_eq!(conn.execute(&sql, row).unwrap(), 1);
        }
    }
}

fn hash_columns(columns: &[Value]) -> i64 {
    let hash = columns.iter().fold(0, |hash: u64, column| {
        let (tag, bytes) = match column {
            Value::Null => (1_u64, Vec::new()),
            Value::Integer(number) => (2, number.to_le_bytes().to_vec()),
            Value::Text(text) => (4, text.clone().into_bytes()),
            Value::Blob(bytes) => (5, bytes.clone()),
            Value::Real(_) => panic!("no column has real numbers"),
        };
        let seed = hash.wrapping_add(tag.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        xxh3_64_with_seed(&bytes, seed)
    });
    hash.cast_signed()
}

/// Returns the handle in an outcome.
pub(crate) fn outcome_handle(outcome: &ChangeOutcome) -> Handle {
    match outcome {
        ChangeOutcome::Added(handle)
        | ChangeOutcome::Updated(handle)
        | ChangeOutcome::Unchanged(handle)
        | ChangeOutcome::AddedWithDerivedUid(handle)
        | ChangeOutcome::UnchangedWithDerivedUid(handle)
        | ChangeOutcome::Removed(handle) => *handle,
        other => panic!("{other:?} names no item"),
    }
}

/// The number that no operation has, for a batch that changed nothing.
const NO_OPERATION: OperationId = OperationId::from_number(0);

pub(crate) fn read_contents(reader: &Reader) -> Contents {
    let mut contents = Contents::new();
    for collection in reader.collections().list().unwrap() {
        for item in reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap() {
            let bytes = reader.items().source_bytes(item.row).unwrap().unwrap();
            let again = contents.insert((item.collection.to_string(), item.uid), bytes);
            assert_eq!(again, None, "one UID twice in a collection");
        }
    }
    contents
}

/// Returns the rows of all items, ascending.
pub(crate) fn item_rows(reader: &Reader) -> Vec<ItemRow> {
    let mut rows = Vec::new();
    for collection in reader.collections().list().unwrap() {
        rows.extend(reader.items().list_rows(collection.row, None, usize::MAX >> 1).unwrap());
    }
    rows.sort_unstable();
    rows
}

impl Book {
    pub(crate) fn new() -> Book {
        Book::with_options(&create_options())
    }

    pub(crate) fn with_options(options: &StoreOptions) -> Book {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(&scratch.path().join("data"), options).unwrap();
        Book { scratch, store }
    }

    /// The data directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// Returns a path next to the data directory.
    pub(crate) fn sibling_path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir().join("data.db")
    }

    /// Closes the store, and calls `act` with the data directory.
    pub(crate) fn with_store_closed<T>(self, act: impl FnOnce(&Path) -> T) -> (TempDir, T) {
        let dir = self.dir();
        let Book { scratch, store } = self;
        drop(store);
        let result = act(&dir);
        (scratch, result)
    }

    /// Opens the same store again with other options.
    pub(crate) fn reopen(self, options: &StoreOptions) -> Book {
        let (scratch, store) = self.with_store_closed(|dir| Store::open(dir, options).unwrap());
        Book { scratch, store }
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.open_reader().unwrap()
    }

    pub(crate) fn contents(&self) -> Contents {
        read_contents(&self.reader())
    }

    /// Adds an operation without effect, up to which the store was used for this long: a single
    /// long pause would not count.
    pub(crate) fn age_by(&mut self, days: i64) {
        let conn = rusqlite::Connection::open(self.data()).unwrap();
        let sql = "INSERT INTO operation(verb, detail, started_ms, store_age_ms, added, updated, removed)
                   SELECT 'use', '', max(started_ms), max(store_age_ms) + ?1, 0, 0, 0 FROM operation HAVING count(*) > 0";
        conn.execute(sql, [days * DAY_MS]).unwrap();
        write_row_checksums(&conn);
    }

    /// Applies an operation of one batch at a given time.
    pub(crate) fn apply_at(
        &mut self,
        at: i64,
        changes: Vec<BatchChange>,
    ) -> (OperationId, AppliedBatch) {
        let mut operation = Operation::new("test", "", at);
        let applied = self.store.apply(&mut operation, changes).unwrap();
        (operation.id().unwrap_or(NO_OPERATION), applied)
    }

    pub(crate) fn apply(&mut self, changes: Vec<BatchChange>) -> (OperationId, AppliedBatch) {
        self.apply_at(NOW_MS, changes)
    }

    /// Applies an operation of several batches.
    pub(crate) fn batches(&mut self, batches: Vec<Vec<BatchChange>>) -> OperationId {
        let mut operation = Operation::new("import", "", NOW_MS);
        for changes in batches {
            self.store.apply(&mut operation, changes).unwrap();
        }
        operation.id().unwrap()
    }

    /// Puts a card into `contacts` without a precondition.
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

    /// Asserts that a check of the store finds no fault, and that its sort orders are right.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let report = self.store.check().unwrap();
        assert_eq!(report.faults, []);
        let reader = self.reader();
        for collection in reader.collections().list().unwrap() {
            for field in collection.index_config.fields_with_index(FieldIndex::Sort) {
                assert_sort_order(&reader, &collection, field);
            }
        }
    }

    /// Returns a number that a query of the file gives.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        let conn = rusqlite::Connection::open(self.data()).unwrap();
        conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// Returns positions in a sort order, at most `limit`; `None` if the index does not have it.
pub(crate) fn sort_positions(
    reader: &Reader,
    order: &IndexedOrder,
    after: Option<&SortPosition>,
    limit: usize,
) -> Option<Vec<SortPosition>> {
    let mut positions = Vec::new();
    let mut visit = |key: &[u8], row: ItemRow| {
        positions.push(SortPosition { key: key.to_vec(), row: row.to_number() });
        positions.len() < limit
    };
    reader.index().for_each_position(order, after, &mut visit).unwrap().then_some(positions)
}

/// Asserts that a sort order equals the sorted items, in both directions, page by page, and that
/// the rank of each position is right.
#[track_caller]
fn assert_sort_order(reader: &Reader, collection: &Collection, field: &'static Field) {
    let mut expect = Vec::new();
    let mut after = None;
    while let Some(last) = reader.items().list_after(collection, after, 100).unwrap().last() {
        for meta in reader.items().list_after(collection, after, 100).unwrap() {
            let bytes = reader.items().source_bytes(meta.row).unwrap().unwrap();
            let name = Contact::parse(&bytes).first_value(field).unwrap_or_default();
            expect.push(SortPosition {
                key: reader.extractor().sort_key(&name),
                row: meta.row.to_number(),
            });
        }
        after = Some(last.row);
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
            let position = reader.index().rank(&order, &place).unwrap().unwrap();
            assert_eq!(position, (before as u64, expect.len() as u64), "{}", field.name);
        }
    }
    for backwards in [false, true] {
        order.backwards = backwards;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = sort_positions(reader, &order, after.as_ref(), 7).unwrap();
            let Some(last) = page.last().cloned() else { break };
            found.extend(page);
            after = Some(last);
        }
        assert_eq!(found, expect, "{} {backwards}", field.name);
        expect.reverse();
    }
}
