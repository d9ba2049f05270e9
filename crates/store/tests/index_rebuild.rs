//! Tests of derived data: fingerprints, rebuilds in steps, writes during a rebuild, and faults that
//! a check finds.

use crate::book::{Book, card, create_options, outcome_handle, put, sort_positions, write_meta};
use larder_format::field::find_contact_field;
use larder_store::{
    BatchChange, CollectionRow, DerivedIndex, Fault, IndexQuery, IndexedOrder, ItemRow, Operation,
    PendingWork, Precondition, Reader, SortPosition, Store, StoreOptions,
};
use rusqlite::Connection;

fn with_locale(locale: &str) -> StoreOptions {
    StoreOptions { locale: Some(locale.into()), ..create_options() }
}

/// Returns the UIDs in the order of the full names.
fn uids_by_name(reader: &Reader) -> Vec<String> {
    let order = IndexedOrder {
        field: find_contact_field("full_name").unwrap().id,
        collections: reader.collections().list().unwrap().iter().map(|c| c.row).collect(),
        backwards: false,
    };
    let places = sort_positions(reader, &order, None, usize::MAX).unwrap();
    let row = |place: &SortPosition| ItemRow::from_number(place.row);
    places
        .iter()
        .map(|place| reader.items().find_by_row(row(place)).unwrap().unwrap().uid)
        .collect()
}

fn put_names(book: &mut Book, names: &[&str]) {
    for name in names {
        book.put(&card(name, name, ""));
    }
}

#[test]
fn another_locale_sorts_anew() {
    let mut book = Book::new();
    put_names(&mut book, &["Zebra", "Ärger", "Anna", "Öl", "Otto"]);
    let check = |book: &Book, locale: &str, expect: &[&str]| {
        let reader = book.reader();
        assert_eq!(reader.locale().unwrap(), locale);
        assert!(reader.index().is_current(DerivedIndex::Sort).unwrap());
        assert_eq!(uids_by_name(&reader), expect);
        book.assert_sound();
    };
    check(&book, "und", &["Anna", "Ärger", "Öl", "Otto", "Zebra"]);
    let book = book.reopen(&with_locale("sv"));
    check(&book, "sv", &["Anna", "Otto", "Zebra", "Ärger", "Öl"]);
    // Without a locale in the options, the sort order stays the same.
    let book = book.reopen(&StoreOptions { locale_if_new: Some("de".into()), ..create_options() });
    check(&book, "sv", &["Anna", "Otto", "Zebra", "Ärger", "Öl"]);
    let new =
        Book::with_options(&StoreOptions { locale_if_new: Some("sv".into()), ..create_options() });
    check(&new, "sv", &[]);
    let new = Book::with_options(&StoreOptions { locale: Some("de".into()), ..with_locale("de") });
    check(&new, "de", &[]);
}

#[test]
fn a_store_left_open_over_a_change_of_locale() {
    let mut book = Book::new();
    put_names(&mut book, &["Zebra", "Ärger"]);
    let reader = book.reader();
    let mut other = Store::open(&book.dir(), &with_locale("sv")).unwrap();
    assert!(
        !reader.index().is_current(DerivedIndex::Sort).unwrap(),
        "sorted by somebody else's order"
    );
    // The first store still has the extractor of the old locale, and writes.
    book.put(&card("Zebra", "Zorn", ""));
    book.put(&card("Öl", "Öl", ""));
    let outcome = book.put(&card("Anna", "Anna", "")).1;
    book.remove(outcome_handle(&outcome));
    other.refresh().unwrap();
    assert_eq!(other.check().unwrap().faults, []);
    let reader = other.open_reader().unwrap();
    assert!(reader.index().is_current(DerivedIndex::Sort).unwrap());
    assert_eq!(uids_by_name(&reader), ["Zebra", "Ärger", "Öl"]);
}

/// The text index folds some characters and ignores others; the expected entries must agree.
#[test]
fn characters_that_are_none_are_no_fault() {
    for (name, lines) in [
        ("Anna\u{ffff}Berg", ""),
        ("Anna\u{fffe}Berg", "NOTE:x\u{ffff}\u{ffff}y\u{1ffff}\u{fdd0}\r\n"),
        ("An\0na", "NOTE:abc\0def\r\n"),
        ("Anna", "N;SORT-AS=\"Be\0rg,An\u{ffff}na\":Berg;Anna;;;\r\n"),
        ("Anna", "ADR;LABEL=\"Gas\0se\u{fffe} 1\":;;Gasse 1;Wien;;;\r\n"),
        ("Anna", "NOTE;ENCODING=QUOTED-PRINTABLE:abc=00def=EF=BF=BFg\r\n"),
        ("Anna", "EMAIL;TYPE=\0:a\0@b.example\r\nTEL:12\x0034\u{ffff}\r\n"),
    ] {
        let mut book = Book::new();
        book.put(&card("u", name, lines));
        assert_eq!(book.store.check().unwrap().faults, [], "{name:?} {lines:?}");
    }
}

/// A card with one or two words repeated millions of times gives few terms and a short key.
#[test]
fn terms_of_a_long_card_are_bounded() {
    let check = |lines: &str| {
        let mut book = Book::new();
        book.put(&card("u", "Anna", lines));
        let conn = Connection::open(book.data()).unwrap();
        let sql = "SELECT sum(length(data)) FROM idx_block";
        let bytes: i64 = conn.query_row(sql, [], |row| row.get(0)).unwrap();
        assert!(bytes < 1000, "{bytes} bytes of index");
        book.assert_sound();
    };
    check(&format!("NICKNAME:{}\r\n", "a b ".repeat(100_000)));
    check(&"NOTE:abc\r\nNICKNAME:Zoe\r\n".repeat(20_000));
    let categories: Vec<String> = (0..60_000).map(|n| n.to_string()).collect();
    check(&format!("CATEGORIES:{}\r\n", categories.join(",")));
    let key =
        |end: &str| Book::new().store.extractor().sort_key(&format!("{}{end}", "a".repeat(512)));
    assert_eq!(key("b"), key("c"), "the order is that of the first 512 characters");
    assert!(key(&"b".repeat(100_000)).len() < 8 << 10);
}

fn put_numbered(book: &mut Book, numbers: std::ops::Range<usize>) {
    let changes = numbers
        .map(|n| {
            let bytes = card(&format!("u{n}"), &format!("Name {n:04}"), "TEL:+43 664 123\r\n");
            put(&book.store, "contacts", &bytes, Precondition::Any)
        })
        .collect();
    book.apply(changes);
}

fn set_state(conn: &Connection, set: &str, state: &str) {
    write_meta(conn, &format!("fingerprint:{set}"), state.to_string());
}

fn state(conn: &Connection, set: &str) -> String {
    conn.query_row("SELECT value FROM meta WHERE key = 'fingerprint:' || ?1", [set], |row| {
        row.get(0)
    })
    .unwrap()
}

/// Puts an index into the state of a rebuild that has reached the item `last`, and returns the
/// state of the complete index. Later items stay in the index.
fn interrupt(conn: &Connection, set: &str, last: i64) -> String {
    let whole = state(conn, set);
    set_state(conn, set, &format!("rebuilding {last} {whole}"));
    whole
}

#[test]
fn what_another_program_filled_is_not_used_and_filled_again() {
    for set in ["text", "sort"] {
        let mut book = Book::new();
        put_numbered(&mut book, 0..1200);
        let (scratch, ()) = book.with_store_closed(|dir| {
            set_state(&Connection::open(dir.join("data.db")).unwrap(), set, "of another program");
        });
        let dir = scratch.path().join("data");
        let reader = Reader::open(&dir).unwrap();
        assert_eq!(reader.index().is_current(DerivedIndex::Text).unwrap(), set != "text");
        assert_eq!(reader.index().is_current(DerivedIndex::Sort).unwrap(), set != "sort");
        // Opening the store for writing refills the index, and the reader sees it.
        let store = Store::open(&dir, &StoreOptions::default()).unwrap();
        assert!(
            store.is_index_current(DerivedIndex::Text).unwrap()
                && reader.index().is_current(DerivedIndex::Sort).unwrap()
        );
        assert_eq!(store.check().unwrap().faults, []);
    }
}

#[test]
fn an_interrupted_rebuild_goes_on_where_it_was() {
    for set in ["text", "sort"] {
        let mut book = Book::new();
        put_numbered(&mut book, 0..500);
        let conn = Connection::open(book.data()).unwrap();
        let whole = interrupt(&conn, set, 500);
        // Items that are added during the rebuild are left to it.
        put_numbered(&mut book, 500..700);
        assert!(!book.store.is_index_current(DerivedIndex::Text).unwrap() || set == "sort");
        assert_eq!(book.store.refresh().unwrap(), 200);
        assert_eq!(state(&conn, set), whole);
        book.assert_sound();
        assert_eq!(book.store.rebuild_and_check().unwrap().rebuilt_items, 1400);
        book.assert_sound();
    }
}

#[test]
fn writes_in_the_middle_of_a_rebuild() {
    let mut book = Book::new();
    put_numbered(&mut book, 0..10);
    let conn = Connection::open(book.data()).unwrap();
    for set in ["text", "sort"] {
        interrupt(&conn, set, 10);
    }
    put_numbered(&mut book, 10..30);
    assert!(!book.store.is_index_current(DerivedIndex::Text).unwrap());
    let faults = book.store.check().unwrap().faults;
    assert_eq!(faults, [Fault::Stale { index: "text" }, Fault::Stale { index: "sort" }]);
    // Before and after the position of the rebuild: edits, a removal, an addition, an edit that
    // keeps the text.
    for uid in ["u3", "u20"] {
        book.put(&card(uid, "Edited", "EMAIL:new@example.org\r\n"));
    }
    for uid in ["u4", "u21"] {
        let handle = book.reader().items().find_by_uid(None, uid).unwrap()[0].handle;
        book.remove(handle);
    }
    for uid in ["u5", "u22"] {
        let bytes = card(
            uid,
            &format!("Name {:04}", uid[1..].parse::<u32>().unwrap()),
            "TEL:+43 664 123\r\nX-A:b\r\n",
        );
        book.put(&bytes);
    }
    book.put(&card("new", "New", ""));
    assert!(book.store.refresh().unwrap() > 0);
    book.assert_sound();
    assert_eq!(book.store.refresh().unwrap(), 0);
    assert_eq!(uids_by_name(&book.reader()).len(), 29);
}

#[test]
fn faults_are_named() {
    let check = |sql: &str, expect: &str| {
        let mut book = Book::new();
        put_numbered(&mut book, 0..5);
        book.put(&crate::book::large_card("large", 'A', 100_000));
        book.put(&card("u1", "Edited", ""));
        book.assert_sound();
        let conn = Connection::open(book.data()).unwrap();
        conn.execute_batch(sql).unwrap();
        let faults = book.store.check().unwrap().faults;
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|fault| fault.contains(expect)), "{sql}: {text:?}");
    };
    check("DELETE FROM source_bytes WHERE item = 2", "1 items without source bytes");
    check("INSERT INTO source_bytes VALUES(99, x'00', NULL, 0)", "1 source bytes without an item");
    check("UPDATE source_bytes SET bytes = NULL WHERE item = 2", "1 source bytes that are neither");
    check("UPDATE blob SET ref_count = 7", "1 blobs with a wrong reference count");
    check("UPDATE collection SET removed = 1", "6 items without a collection");
    check("DELETE FROM batch WHERE seq = 1", "items with an unknown batch");
    check("DELETE FROM operation WHERE id = 1", "1 batches without an operation");
    check(
        "UPDATE meta SET value = 1 WHERE key = 'last_seq'",
        "2 batches after the last sequence number",
    );
    check("DELETE FROM idx_segment WHERE derived_index = 1", "the text index is malformed");
    check(
        "DELETE FROM idx_segment; DELETE FROM idx_block; DELETE FROM idx_fence",
        "the text index does not match",
    );
    check("UPDATE idx_sort_fence SET item = item + 1", "the sort index is malformed");
    check("UPDATE idx_sort_fence SET key = x'7f'", "the sort index is malformed");
    check("UPDATE idx_sort_fence SET position_count = 4", "the sort index is malformed");
    check("DELETE FROM idx_sort_fence", "the sort index is malformed");
    check("DELETE FROM idx_sort_block", "the sort index is malformed");
    check(
        "DELETE FROM idx_sort_block; DELETE FROM idx_sort_fence",
        "the sort index does not match",
    );
    check("UPDATE idx_sort_block SET data = x'ff'", "the sort index is malformed");
    check("UPDATE idx_sort_fence SET collection = 2", "the sort index does not match");
    // A removal of what is not there, and an insertion of what is.
    check(
        "INSERT INTO idx_sort_run VALUES(1, 1, x'04010100016103')",
        "the sort index is malformed",
    );
    check(
        "INSERT INTO idx_sort_run VALUES(1, 1, x'04010100016102')",
        "the sort index does not match",
    );
    check("INSERT INTO idx_sort_run VALUES(1, 1, x'ff')", "the sort index is malformed");
    check(
        "INSERT INTO idx_sort_run VALUES(1, 2, x'04010100016102')",
        "the sort index is malformed",
    );
    check("INSERT INTO idx_sort_block VALUES(99, x'00')", "the sort index is malformed");
    check(
        "INSERT INTO idx_sort_fence SELECT field + 9, collection, key, item, position_count, block FROM idx_sort_fence",
        "the sort index is malformed",
    );
    check("INSERT INTO idx_block VALUES(9999 << 24, x'00')", "the text index is malformed");
    check("INSERT INTO idx_fence VALUES(9999, x'61', 1)", "the text index is malformed");
    check(
        "INSERT INTO handle_collision VALUES(1, 'nobody', 99)",
        "1 handle collisions without an item",
    );
    check("INSERT INTO idx_schedule VALUES(1, 77, x'00')", "the interval index is malformed");
    check("DELETE FROM idx_block", "the text index is malformed");
    check("UPDATE idx_block SET data = x'ff'", "the text index is malformed");
    check("UPDATE item SET uid = 'u2'", "duplicate UIDs in one collection");
}

#[test]
fn a_wrong_number_of_history_bytes_is_a_fault() {
    let mut book = Book::new();
    book.put(&card("u1", "Name", ""));
    book.put(&card("u1", "Edited", ""));
    write_meta(&Connection::open(book.data()).unwrap(), "history_bytes", 1);
    let faults = book.store.check().unwrap().faults;
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    assert!(fault.to_string().contains("history_bytes in table meta is 1, expected"), "{fault}");
}

#[test]
fn a_report_counts() {
    let mut book = Book::new();
    put_numbered(&mut book, 0..5);
    let bytes = card("u1", "Name 0001", "TEL:+43 664 123\r\n");
    book.put(&card("u1", "Edited", ""));
    let report = book.store.check().unwrap();
    assert_eq!((report.items, report.history), (5, (1, bytes.len() as u64)));
    assert!(report.database_bytes > 0 || report.wal_bytes > 0);
    assert_eq!(report.rebuilt_items, 0);
    assert_eq!(book.store.rebuild_and_check().unwrap().rebuilt_items, 10);
    let handle = book.reader().items().find_by_uid(None, "u1").unwrap()[0].handle;
    book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
    assert_eq!(book.store.check().unwrap().items, 4);
}

#[test]
fn bytes_that_are_no_contact_are_given_back() {
    let book = Book::new();
    let extractor = book.store.extractor();
    for bytes in [&b"nonsense"[..], b"", b"BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r\n"] {
        let rejected = extractor.parse_contact(bytes.to_vec()).unwrap_err();
        assert_eq!(rejected.bytes, bytes);
    }
}

/// A batch that commits while the last step of a rebuild waits for the lock is indexed.
#[test]
fn batches_beside_a_rebuild_are_not_lost() {
    let mut book = Book::new();
    put_numbered(&mut book, 0..20);
    let dir = book.dir();
    let rebuilding = std::thread::spawn(move || {
        let mut store = Store::open(&dir, &StoreOptions::default()).unwrap();
        for _ in 0..5 {
            store.rebuild().unwrap();
        }
    });
    let mut next = 20;
    while !rebuilding.is_finished() {
        put_numbered(&mut book, next..next + 2);
        next += 2;
    }
    rebuilding.join().unwrap();
    Store::open(&book.dir(), &StoreOptions::default()).unwrap().refresh().unwrap();
    book.assert_sound();
}

/// The indexes hold nothing of a purged item, in any state of a rebuild.
#[test]
fn a_purge_leaves_nothing_in_any_set() {
    let check = |make: &dyn Fn(&str) -> String| {
        let mut book = Book::new();
        book.put(&card("victim", "Zanzibarius Quux", "EMAIL:zanzibarius@secret.example\r\n"));
        put_numbered(&mut book, 0..10);
        let conn = Connection::open(book.data()).unwrap();
        for set in ["text", "sort"] {
            set_state(&conn, set, &make(&state(&conn, set)));
        }
        let handle = book.reader().items().find_by_uid(None, "victim").unwrap()[0].handle;
        book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
        let bytes = std::fs::read(book.data()).unwrap();
        let key = book.store.extractor().sort_key("Zanzibarius");
        for part in [&b"anzibarius"[..], b"elpmaxe.terces", b"zanz", &key[1..8]] {
            let found = bytes.windows(part.len()).any(|window| window == part);
            assert!(!found, "{part:?} is left where the state is {:?}", make("WHOLE"));
        }
        book.store.refresh().unwrap();
        book.assert_sound();
    };
    check(&|whole| whole.to_string());
    check(&|_| "of another program".into());
    check(&|_| "empty".into());
    check(&|whole| format!("rebuilding 11 {whole}"));
}

/// Reading a block with any bytes gives an answer or an error.
#[test]
fn damaged_blocks_are_no_panic() {
    let mut book = Book::new();
    put_numbered(&mut book, 0..3);
    damage_each_byte(&mut book, "idx_block");
    damage_each_byte(&mut book, "idx_sort_block");
}

/// Changes each byte of the blocks in a table, and reads.
fn damage_each_byte(book: &mut Book, table: &str) {
    let conn = Connection::open(book.data()).unwrap();
    let blocks: Vec<(i64, Vec<u8>)> = conn
        .prepare(&format!("SELECT id, data FROM {table} ORDER BY id"))
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(!blocks.is_empty());
    let write = |id: i64, data: &[u8]| {
        let sql = format!("UPDATE {table} SET data = ?2 WHERE id = ?1");
        conn.execute(&sql, (id, data)).unwrap();
    };
    let (reader, order) = (book.reader(), |backwards| IndexedOrder {
        field: find_contact_field("full_name").unwrap().id,
        collections: vec![CollectionRow::from_number(1)],
        backwards,
    });
    for (id, data) in blocks {
        for at in 0..data.len() {
            let mut broken = data.clone();
            broken[at] ^= 0x91;
            write(id, &broken);
            let _report = book.store.check().unwrap();
            let _found = reader.index().look_up(&IndexQuery::Prefix(Vec::new()), &[]);
            let _read =
                reader.index().for_each_position(&order(at % 2 == 0), None, &mut |_, _| true);
            let _position =
                reader.index().rank(&order(false), &SortPosition { key: b"x".into(), row: 2 });
        }
        write(id, &data[..data.len() / 2]);
        let _report = book.store.check().unwrap();
        write(id, b"");
        let _report = book.store.check().unwrap();
        write(id, &data);
    }
    book.assert_sound();
}

/// A sort order whose keys begin with the highest bytes has an end, too.
#[test]
fn the_end_of_an_order() {
    let mut book = Book::new();
    let names: Vec<String> = (0..1500).map(|n| format!("\u{ffff}\u{ffff} {n}")).collect();
    let changes = names
        .iter()
        .map(|name| put(&book.store, "contacts", &card(name, name, ""), Precondition::Any))
        .collect();
    book.apply(changes);
    let reader = book.reader();
    let order = |backwards| IndexedOrder {
        field: 4,
        collections: vec![CollectionRow::from_number(1)],
        backwards,
    };
    let ask = |backwards| sort_positions(&reader, &order(backwards), None, usize::MAX).unwrap();
    let (mut up, down) = (ask(false), ask(true));
    assert_eq!(up.len(), 1500);
    up.reverse();
    assert_eq!(up, down);
}

/// A damaged item does not give the keys under which it is sorted. They are found in the index; if
/// that is malformed, it is stale, which is no interruption.
#[test]
fn the_removal_of_a_damaged_item_keeps_the_sort_index() {
    for (is_malformed, pending) in [(false, vec![]), (true, vec![PendingWork::StaleIndex])] {
        let mut book = Book::new();
        put_numbered(&mut book, 0..9);
        let (_, added) = book.put(&card("victim", "Zoe", ""));
        put_numbered(&mut book, 9..12);
        let conn = Connection::open(book.data()).unwrap();
        let sql = "UPDATE source_bytes SET bytes = CAST(replace(bytes, 'Zoe', 'Zob') AS BLOB)
                   WHERE item = (SELECT id FROM item WHERE uid = 'victim')";
        assert_eq!(conn.execute(sql, []).unwrap(), 1);
        if is_malformed {
            let sql = "UPDATE idx_sort_block SET data = x'ff'";
            assert!(conn.execute(sql, []).unwrap() > 0);
        }
        drop(conn);
        book.remove(outcome_handle(&added));
        assert_eq!(book.reader().pending_work().unwrap(), pending);
        let is_current = book.store.is_index_current(DerivedIndex::Sort).unwrap();
        assert_eq!(is_current, !is_malformed);
        book.store.refresh().unwrap();
        assert_eq!(book.reader().pending_work().unwrap(), []);
        let faults = book.store.check().unwrap().faults;
        assert!(matches!(faults[..], [Fault::Checksum(_)]), "{faults:?}");
    }
}
