//! Salvage: whatever page is destroyed, everything else comes out, and the missing is named.

use crate::book::{Book, Contents, card, create_options, large_card, outcome_handle, put};
use crate::calendar::{calendar_context, component, put as put_component};
use larder_store::{
    BatchChange, DataDirectory, Operation, Precondition, SalvageLoss, SalvageReport, Store,
};
use rusqlite::types::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

pub(crate) const PAGE_BYTES: usize = 4096;

/// A store whose larger tables have several pages.
fn large_book() -> Book {
    let mut book = Book::new();
    let changes = (0..60)
        .map(|n| {
            let lines = format!("TEL:+43 664 {n}\r\nNOTE:{}\r\n", "text ".repeat(20));
            let bytes = card(&format!("u{n}"), &format!("Name {n}"), &lines);
            put(&book.store, "contacts", &bytes, Precondition::Any)
        })
        .collect();
    book.apply(changes);
    for n in 0..30 {
        book.put(&card(&format!("u{n}"), &format!("Edited {n}"), ""));
    }
    book.put(&large_card("large", 'A', 70_000));
    book.put(&large_card("middle", 'B', 20_000));
    for n in 0..20 {
        let bytes = component(&format!(
            "VEVENT\nUID:e{n}\nDTSTART;TZID=Own:20260305T120000\nSUMMARY:Meeting {n}"
        ));
        let context = calendar_context(n % 4);
        let change = put_component(&book.store, "home", &bytes, &context, Precondition::Any);
        book.apply(vec![change]);
    }
    for n in 50..60 {
        let (_, outcome) = book.put(&card(&format!("u{n}"), "Later", ""));
        book.remove(outcome_handle(&outcome));
    }
    // Former versions of a collection that is gone.
    let (_, outcome) = book.put_into("spare", &card("s", "Spare", ""));
    book.remove(outcome_handle(&outcome));
    book.apply(vec![BatchChange::RemoveCollection("spare".into())]);
    book
}

/// Salvages a store, and returns the contents of a new store that restores the result.
pub(crate) fn salvage_and_restore(dir: &Path) -> (SalvageReport, Contents) {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("salvaged.db");
    let report = DataDirectory::new(dir).salvage(&create_options(), &out).unwrap();
    let mut restored = Book::new();
    restored.store.restore(&out).unwrap();
    restored.assert_sound();
    let contents = restored.contents();
    assert_eq!(contents.len() as u64, report.items);
    (report, contents)
}

/// Returns the number of items that are named as missing.
fn count_missing_items(report: &SalvageReport) -> usize {
    let is_item = |loss: &&SalvageLoss| {
        matches!(
            loss,
            SalvageLoss::Item { .. }
                | SalvageLoss::Bytes { .. }
                | SalvageLoss::Changed(larder_store::DamagedObject::Item { .. })
        )
    };
    report.losses.iter().filter(is_item).count()
}

#[test]
fn a_sound_store_comes_out_whole() {
    let book = large_book();
    let before = book.contents();
    // The last changes are in the write-ahead log.
    let (report, contents) = salvage_and_restore(&book.dir());
    assert_eq!(report.losses, []);
    assert!(contents == before);
    let (_scratch, (report, contents)) = book.with_store_closed(salvage_and_restore);
    assert_eq!(report.losses, []);
    assert!(contents == before);
    assert!(report.versions >= 40, "{}", report.versions);
}

/// SQLite keeps the log of a linked database beside the file that the link leads to.
#[test]
fn the_log_of_a_linked_database_is_read() {
    let (scratch, dir) = large_book().with_store_closed(Path::to_path_buf);
    let real = scratch.path().join("real.db");
    fs::rename(dir.join("data.db"), &real).unwrap();
    std::os::unix::fs::symlink(&real, dir.join("data.db")).unwrap();
    let mut store = Store::open(&dir, &create_options()).unwrap();
    let change = put(&store, "contacts", &card("new", "New", ""), Precondition::Any);
    store.apply(&mut Operation::new("add", "", 0), vec![change]).unwrap();
    let (report, contents) = salvage_and_restore(&dir);
    assert_eq!(report.losses, []);
    assert!(contents.contains_key(&("contacts".into(), "new".into())));
}

#[test]
fn whatever_page_is_destroyed_the_rest_comes_out() {
    let book = large_book();
    let before = book.contents();
    let (_scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let good = fs::read(dir.join("data.db")).unwrap();
    let pages = good.len() / PAGE_BYTES;
    assert!(pages > 40, "{pages}");
    let (mut missing_in_all, mut whole) = (0, 0);
    for page in 0..pages {
        let mut file = good.clone();
        file[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0);
        fs::write(dir.join("data.db"), file).unwrap();
        let (report, contents) = salvage_and_restore(&dir);
        for (key, bytes) in &contents {
            // Without the first page, nothing says which pages are free.
            let is_known = before.get(key) == Some(bytes);
            assert!(is_known || page == 0, "page {page}: {key:?} is wrong");
        }
        let missing = before.keys().filter(|key| !contents.contains_key(*key)).count();
        assert!(
            missing <= count_missing_items(&report),
            "page {page}: {missing} missing, named: {:?}",
            report.losses
        );
        assert!(missing <= 45, "page {page}: {missing} missing, {:?}", report.losses);
        missing_in_all += missing;
        whole += usize::from(report.losses.is_empty());
    }
    // Each item has its bytes on one page, and can be made again without its row.
    assert!(missing_in_all <= before.len() + 30, "{missing_in_all}");
    assert!(whole > pages / 3, "{whole} of {pages}");
}

#[test]
fn a_changed_byte_is_a_named_loss() {
    let book = large_book();
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute_batch(
        "UPDATE source_bytes SET bytes = CAST(replace(CAST(bytes AS TEXT), 'Name', 'Mame') AS BLOB) WHERE item = 40;
         UPDATE blob SET bytes = CAST(replace(CAST(bytes AS TEXT), 'FN', 'FM') AS BLOB);
         UPDATE item_history SET bytes = x'00' WHERE id = 3;",
    )
    .unwrap();
    drop(conn);
    let (report, contents) = salvage_and_restore(&book.dir());
    let texts: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts.iter().all(|text| text.contains("in contacts")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("the version of item")), "{texts:?}");
    assert_eq!(
        contents.len(),
        book.reader().collections().list().unwrap().iter().map(|c| c.item_count).sum::<u64>()
            as usize
            - 2
    );
}

#[test]
fn an_existing_file_is_not_replaced() {
    let book = large_book();
    let out = book.sibling_path("out.db");
    fs::write(&out, "mine").unwrap();
    assert!(DataDirectory::new(book.dir()).salvage(&create_options(), &out).is_err());
    assert_eq!(fs::read(&out).unwrap(), b"mine");
}

/// What was salvaged is a store like any other: it can be written, and its history goes on.
#[test]
fn a_salvaged_store_goes_on() {
    let book = large_book();
    let (scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let mut file = fs::read(dir.join("data.db")).unwrap();
    file[..PAGE_BYTES].fill(0);
    fs::write(dir.join("data.db"), file).unwrap();
    assert!(Store::open(&dir, &create_options()).is_err());
    let out = scratch.path().join("out.db");
    let directory = DataDirectory::new(&dir);
    directory.salvage(&create_options(), &out).unwrap();
    directory.restore(&create_options(), &out).unwrap();
    let mut store = Store::open(&dir, &create_options()).unwrap();
    let change = put(&store, "contacts", &card("u0", "After the salvage", ""), Precondition::Any);
    let mut operation = Operation::new("edit", "", 0);
    store.apply(&mut operation, vec![change]).unwrap();
    assert_eq!(store.check().unwrap().faults, []);
    store.undo(operation.id().unwrap(), 1).unwrap();
    assert_eq!(store.check().unwrap().faults, []);
}

/// Where only derived data is lost, a rebuild mends the store, whichever page is destroyed; else it
/// leaves the file to salvage.
#[test]
fn a_rebuild_mends_every_page_without_data_of_its_own() {
    let book = large_book();
    let before = book.contents();
    let (scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let good = fs::read(dir.join("data.db")).unwrap();
    let directory = DataDirectory::new(&dir);
    let mut mended = 0;
    for page in (0..good.len() / PAGE_BYTES).rev().step_by(2) {
        for copy in fs::read_dir(&dir).unwrap() {
            let path = copy.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The record of the last commit is one of the store that a rebuild wrote.
            if name.starts_with("data.db") || name == "data.notify" {
                fs::remove_file(path).unwrap();
            }
        }
        let mut file = good.clone();
        file[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0);
        fs::write(dir.join("data.db"), &file).unwrap();
        let out = scratch.path().join(format!("{page}.db"));
        let report = directory.salvage(&create_options(), &out).unwrap();
        let rebuilt = directory.rebuild_and_check(&create_options());
        if report.has_damaged_tables {
            let is_left = rebuilt.is_err()
                || rebuilt.is_ok_and(|report| {
                    !report.faults.is_empty()
                        && report.damaged_copy.is_none()
                        && report.rebuilt_items == 0
                });
            assert!(is_left, "page {page} has data of its own");
            assert!(fs::read(dir.join("data.db")).unwrap() == file, "page {page}");
            continue;
        }
        assert_eq!(report.losses, [], "page {page}");
        let rebuilt = rebuilt.unwrap();
        if let Some(copy) = &rebuilt.damaged_copy {
            assert!(fs::read(copy).unwrap() == file, "page {page}");
            assert!(!rebuilt.faults.is_empty(), "page {page}: the former damage is reported");
        }
        let store = Store::open(&dir, &create_options()).unwrap();
        assert_eq!(store.check().unwrap().faults, [], "page {page}");
        let contents = crate::book::read_contents(&store.open_reader().unwrap());
        assert!(contents == before, "page {page}");
        mended += 1;
    }
    assert!(mended > 12, "{mended}");
}

/// A writer that has the former file open writes nothing into it.
#[test]
fn a_writer_notices_that_the_file_was_replaced() {
    let mut book = large_book();
    let dir = book.dir();
    let replacement = dir.join("new.db");
    fs::copy(book.data(), &replacement).unwrap();
    fs::rename(&replacement, book.data()).unwrap();
    let change = put(&book.store, "contacts", &card("x", "X", ""), Precondition::Any);
    let applied = book.store.apply(&mut Operation::new("add", "", 0), vec![change]);
    assert!(matches!(applied, Err(larder_store::Error::StoreRestored)), "{applied:?}");
}

/// The data of a store, as lines that do not depend on row ids.
pub(crate) type Dump = Vec<(&'static str, Vec<Value>)>;

/// Reads everything that a user can see, or undo, of a store.
pub(crate) fn read_dump(data: &Path) -> Dump {
    let zones = "(SELECT group_concat(CAST(z.bytes AS TEXT)) FROM calendar_context c
                  JOIN zone_definition z
                    ON ' ' || c.zone_definitions || ' ' LIKE '% ' || z.id || ' %'
                  WHERE c.id = calendar_context),
                 (SELECT calendar_version FROM calendar_context c WHERE c.id = calendar_context)";
    let queries = [
        (
            "item",
            format!(
                "SELECT handle, (SELECT name FROM collection c WHERE c.id = collection), kind, uid,
                   recurrence_id, uid_origin, seq, ordinal, {zones},
                   coalesce(s.bytes, (SELECT bytes FROM blob WHERE hash = blob_hash))
                 FROM item JOIN source_bytes s ON s.item = item.id ORDER BY handle"
            ),
        ),
        (
            "item_history",
            format!(
                "SELECT seq, ordinal, handle, (SELECT name FROM collection c WHERE c.id = collection),
                   kind, removed, since, uid, recurrence_id, uid_origin, {zones},
                   coalesce(bytes, (SELECT bytes FROM blob WHERE hash = blob_hash))
                 FROM item_history ORDER BY seq, ordinal"
            ),
        ),
        (
            "collection",
            "SELECT name, handle_key, type, removed, index_config, properties FROM collection
             ORDER BY name"
                .to_string(),
        ),
        (
            "collection_history",
            "SELECT seq, ordinal, collection, name, removed, index_config, properties
             FROM collection_history ORDER BY seq, ordinal"
                .to_string(),
        ),
        (
            "operation",
            "SELECT id, verb, detail, started_ms, added, updated, removed FROM operation
             ORDER BY id"
                .to_string(),
        ),
        ("batch", "SELECT seq, operation FROM batch ORDER BY seq".to_string()),
        (
            "meta",
            "SELECT key, value FROM meta
             WHERE key IN ('last_seq', 'last_item', 'history_from', 'collation_locale')"
                .to_string(),
        ),
    ];
    let conn = rusqlite::Connection::open(data).unwrap();
    let mut dump = Dump::new();
    for (table, sql) in queries {
        let mut select = conn.prepare(&sql).unwrap();
        let columns = select.column_count();
        let rows = select
            .query_map([], |row| (0..columns).map(|column| row.get(column)).collect())
            .unwrap();
        dump.extend(rows.map(|row| (table, row.unwrap())));
    }
    dump
}

/// A small store with everything that has a table: two calendars with properties and zone
/// definitions of their own, an address book, a removed collection, former versions.
fn book_of_all_tables(words: usize) -> Book {
    let mut book = Book::new();
    let properties = |lines: &str| Some(format!("PRODID:-//Own//Own\r\n{lines}").into_bytes());
    let long = format!("X-WR-CALDESC:{}\r\n", "words ".repeat(words));
    for n in 0..12 {
        book.put(&card(&format!("u{n}"), &format!("Name {n}"), &"NOTE:text\r\n".repeat(20)));
    }
    for n in 0..5 {
        book.put(&card(&format!("u{n}"), &format!("Edited {n}"), ""));
    }
    for n in 0..12 {
        let calendar = if n % 2 == 0 { "home" } else { "work" };
        let lines = format!("VEVENT\nUID:e{n}\nDTSTART;TZID=Own:20260305T120000\nSUMMARY:Own {n}");
        let context = calendar_context([0, 1, 3, 4][n % 4]);
        let change =
            put_component(&book.store, calendar, &component(&lines), &context, Precondition::Any);
        let (_, applied) = book.apply(vec![change]);
        if n > 9 {
            book.remove(outcome_handle(&applied.outcomes[0]));
        }
    }
    for (calendar, lines) in [("home", "X-WR-CALNAME:Home\r\n"), ("work", &long)] {
        book.apply(vec![BatchChange::SetCollectionProperties(calendar.into(), properties(lines))]);
    }
    let (_, outcome) = book.put_into("spare", &card("s", "Spare", ""));
    book.remove(outcome_handle(&outcome));
    book.apply(vec![BatchChange::RemoveCollection("spare".into())]);
    book.put(&large_card("large", 'A', 70_000));
    book
}

/// Replaces a store by a damaged one, without the files that a rebuild left.
fn write_damaged_file(dir: &Path, file: &[u8]) {
    for copy in fs::read_dir(dir).unwrap() {
        let path = copy.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The record of the last commit may be one of the store that a rebuild wrote.
        if name.starts_with("data.db") || name == "data.notify" {
            fs::remove_file(path).unwrap();
        }
    }
    fs::write(dir.join("data.db"), file).unwrap();
}

/// Calls `act` with each page of a store overwritten with zeros, and with the file cut off before
/// each page but the first.
fn for_each_damage(dir: &Path, mut act: impl FnMut(&str)) {
    let good = fs::read(dir.join("data.db")).unwrap();
    for page in 0..good.len() / PAGE_BYTES {
        for is_cut in [false, page > 0] {
            let mut file = good.clone();
            match is_cut {
                true => file.truncate(page * PAGE_BYTES),
                false => file[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0),
            }
            write_damaged_file(dir, &file);
            let damage = if is_cut { "cut off before" } else { "zeros in" };
            act(&format!("{damage} page {}", page + 1));
        }
    }
}

/// Salvages a store, and reads everything of a store that restores the result.
pub(crate) fn salvage_and_dump(dir: &Path) -> (SalvageReport, Dump) {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("salvaged.db");
    let report = DataDirectory::new(dir).salvage(&create_options(), &out).unwrap();
    (report, read_dump(&out))
}

/// Returns a row of the first dump that the second one does not have.
fn find_difference<'a>(
    before: &'a Dump,
    after: &'a Dump,
) -> Option<&'a (&'static str, Vec<Value>)> {
    let missing = before.iter().find(|row| !after.contains(row));
    missing.or_else(|| after.iter().find(|row| !before.contains(row)))
}

#[test]
fn a_salvage_without_losses_equals_the_store() {
    let (_scratch, dir) = book_of_all_tables(1000).with_store_closed(Path::to_path_buf);
    let before = read_dump(&dir.join("data.db"));
    for table in ["item", "item_history", "collection_history", "operation", "meta"] {
        assert!(before.iter().any(|(name, _)| *name == table), "{table}");
    }
    let (report, sound) = salvage_and_dump(&dir);
    assert_eq!((report.losses, find_difference(&before, &sound)), (vec![], None));
    let (mut whole, mut damaged) = (0, 0);
    for_each_damage(&dir, |damage| {
        let (report, after) = salvage_and_dump(&dir);
        if !report.losses.is_empty() {
            damaged += 1;
            return;
        }
        whole += 1;
        let difference = find_difference(&before, &after);
        assert!(difference.is_none(), "{damage}: {difference:?} is lost, and is not named");
    });
    assert!(whole > 10 && damaged > 10, "{whole} {damaged}");
}

#[test]
fn a_rebuilt_store_equals_the_damaged_one_or_stays() {
    let (_scratch, dir) = book_of_all_tables(1000).with_store_closed(Path::to_path_buf);
    let data = dir.join("data.db");
    let before = read_dump(&data);
    let directory = DataDirectory::new(&dir);
    let mut mended = 0;
    for_each_damage(&dir, |damage| {
        let file = fs::read(&data).unwrap();
        let rebuilt = directory.rebuild_and_check(&create_options());
        match rebuilt {
            Ok(report) if report.damaged_copy.is_some() || report.faults.is_empty() => {
                mended += 1;
                let after = read_dump(&data);
                let difference = find_difference(&before, &after);
                assert!(difference.is_none(), "{damage}: {difference:?} is lost");
            }
            // The damage is one that only a checksum finds: the indexes were rebuilt in place.
            Ok(report) if report.rebuilt_items > 0 => {
                let after = read_dump(&data);
                fs::write(&data, &file).unwrap();
                assert_eq!(find_difference(&read_dump(&data), &after), None, "{damage}");
            }
            _ => assert!(fs::read(&data).unwrap() == file, "{damage}: the file has changed"),
        }
    });
    assert!(mended > 5, "{mended}");
}

/// Returns the number of items that a report names or counts; `None`: it says that the number is
/// unknown.
fn count_lost_items(report: &SalvageReport) -> Option<usize> {
    let count = |loss: &SalvageLoss| match loss {
        SalvageLoss::Unknown { objects: "items" } => None,
        SalvageLoss::UnnamedItems { items } => Some(*items as usize),
        SalvageLoss::Identity { .. } => Some(1),
        _ => Some(0),
    };
    let others: Option<usize> = report.losses.iter().map(count).sum();
    others.map(|others| others + count_missing_items(report))
}

/// Bits change anywhere in the file: no item is lost in silence, and no item has another ID in
/// silence.
#[test]
fn items_that_changed_bits_take_away_are_counted() {
    let (_scratch, dir) = book_of_all_tables(1).with_store_closed(Path::to_path_buf);
    let data = dir.join("data.db");
    let handles = |dump: &Dump| -> BTreeSet<Vec<u8>> {
        let items = dump.iter().filter(|(table, _)| *table == "item");
        let handle = |value: &Value| match value {
            Value::Blob(handle) => handle.clone(),
            other => panic!("{other:?} is no handle"),
        };
        items.map(|(_, row)| handle(&row[0])).collect()
    };
    let before = handles(&read_dump(&data));
    let good = fs::read(&data).unwrap();
    let mut with_losses = 0;
    for seed in 0..90_u64 {
        let mut file = good.clone();
        for n in 0..[3, 15, 40][seed as usize % 3] {
            let n: u64 = n;
            let bit = xxhash_rust::xxh3::xxh3_64_with_seed(&n.to_le_bytes(), seed);
            let bit = (bit % (file.len() as u64 * 8)) as usize;
            file[bit / 8] ^= 1 << (bit % 8);
        }
        fs::write(&data, &file).unwrap();
        let (report, dump) = salvage_and_dump(&dir);
        let after = handles(&dump);
        let lost = before.difference(&after).count();
        let counted = count_lost_items(&report);
        assert!(counted.is_none_or(|counted| lost <= counted), "seed {seed}: {lost} items lost");
        let is_new = after.difference(&before).next().is_some();
        assert!(!is_new || !report.losses.is_empty(), "seed {seed}: a new ID");
        with_losses += usize::from(lost > 0);
    }
    assert!(with_losses > 5, "{with_losses}");
}

/// The step from one bit of the page headers to the next. All bits, some 4,000, take minutes; the
/// step has no factor in common with the 96 bits of a header, so each of them is changed in some
/// pages.
const HEADER_BIT_STEP: usize = 7;

/// Calls `act` with a bit of the header of a page changed, page after page.
fn for_each_header_bit(dir: &Path, step: usize, mut act: impl FnMut(&str)) {
    let good = fs::read(dir.join("data.db")).unwrap();
    for case in (0..good.len() / PAGE_BYTES * 96).step_by(step) {
        let (page, bit) = (case / 96, case % 96);
        let mut file = good.clone();
        let header = page * PAGE_BYTES + if page == 0 { 100 } else { 0 };
        file[header + bit / 8] ^= 1 << (bit % 8);
        write_damaged_file(dir, &file);
        act(&format!("bit {} of byte {} of page {}", bit % 8, bit / 8, page + 1));
    }
}

/// The number of cells of a page is two of its 4,096 bytes: a page that has too few of them looks
/// sound, and so does a tree with a page of another one.
#[test]
fn a_changed_bit_of_a_page_header_takes_nothing_away_in_silence() {
    let (_scratch, dir) = book_of_all_tables(1).with_store_closed(Path::to_path_buf);
    let before = read_dump(&dir.join("data.db"));
    let (mut whole, mut named) = (0, 0);
    for_each_header_bit(&dir, HEADER_BIT_STEP, |damage| {
        let (report, after) = salvage_and_dump(&dir);
        if !report.losses.is_empty() {
            named += 1;
            return;
        }
        whole += 1;
        let difference = find_difference(&before, &after);
        assert!(difference.is_none(), "{damage}: {difference:?} is lost, and is not named");
    });
    assert!(whole > named, "{whole} whole, {named} named");
}

#[test]
fn a_rebuild_never_replaces_a_store_by_one_with_fewer_rows() {
    let (_scratch, dir) = book_of_all_tables(1).with_store_closed(Path::to_path_buf);
    let data = dir.join("data.db");
    let before = read_dump(&data);
    let directory = DataDirectory::new(&dir);
    let (mut replaced, mut left) = (0, 0);
    for_each_header_bit(&dir, 5 * HEADER_BIT_STEP, |damage| {
        let file = fs::read(&data).unwrap();
        let rebuilt = directory.rebuild_and_check(&create_options());
        match rebuilt {
            Ok(report) if report.damaged_copy.is_some() || report.faults.is_empty() => {
                replaced += 1;
                let difference = find_difference(&before, &read_dump(&data)).cloned();
                assert_eq!(difference, None, "{damage}");
            }
            // The damage is one of derived rows: the indexes were rebuilt in place.
            Ok(report) if report.rebuilt_items > 0 => {
                let after = read_dump(&data);
                fs::write(&data, &file).unwrap();
                assert!(find_difference(&read_dump(&data), &after).is_none(), "{damage}");
            }
            _ => {
                left += 1;
                assert!(fs::read(&data).unwrap() == file, "{damage}: the file has changed");
            }
        }
    });
    assert!(replaced > 5 && left > 5, "{replaced} {left}");
}

/// One of 30 former versions has changed: an undo restores the others.
#[test]
fn operations_can_be_undone_after_a_salvage() {
    let mut book = Book::new();
    let changes = (0..30)
        .map(|n| {
            put(&book.store, "contacts", &card(&format!("u{n}"), "Name", ""), Precondition::Any)
        })
        .collect();
    let (_, added) = book.apply(changes);
    let handles = added.outcomes.iter().map(outcome_handle);
    let removals = handles.map(|handle| BatchChange::Remove(handle, Precondition::Any)).collect();
    let (removal, _) = book.apply(removals);
    book.put_into("friends", &card("new", "New", ""));
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute("UPDATE item_history SET bytes = x'00' WHERE id = 7", []).unwrap();
    drop(conn);
    let (scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let (out, directory) = (scratch.path().join("salvaged.db"), DataDirectory::new(&dir));
    let report = directory.salvage(&create_options(), &out).unwrap();
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    directory.restore(&create_options(), &out).unwrap();
    let mut store = Store::open(&dir, &create_options()).unwrap();
    assert_eq!(store.check().unwrap().faults, []);
    store.undo(removal, 1).unwrap();
    let contents = crate::book::read_contents(&store.open_reader().unwrap());
    assert_eq!(contents.len(), 30, "29 of the former ones, and the new one");
    assert_eq!(store.check().unwrap().faults, []);
}

/// One letter of the name of a table has changed, or its root is a page of another table.
#[test]
fn a_damaged_schema_takes_no_items_away() {
    let book = book_of_all_tables(1);
    let before = book.contents();
    let root = |table: &str| -> usize {
        let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'");
        book.count(&sql) as usize
    };
    let roots = [root("source_bytes"), root("item")];
    let (_scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let good = fs::read(dir.join("data.db")).unwrap();
    let find =
        |needle: &[u8]| good.windows(needle.len()).position(|bytes| bytes == needle).unwrap();
    let name = find(b"tablesource_bytes") + b"table".len();
    for (at, byte) in [
        (name, b'q'),
        (name + b"source_bytes".len(), b'q'),
        (name + 2 * b"source_bytes".len(), roots[1] as u8),
    ] {
        let mut file = good.clone();
        assert!(roots[1] < 256 && good[at] != byte, "{roots:?}");
        file[at] = byte;
        write_damaged_file(&dir, &file);
        let (report, contents) = salvage_and_restore(&dir);
        assert!(contents == before, "byte {at}: {:?}", report.losses);
    }
}

/// Closes a store of which the last three batches are only in the log.
fn close_with_log(mut book: Book) -> (tempfile::TempDir, Contents, Vec<u8>) {
    for n in 0..3 {
        book.put(&card(&format!("log{n}"), "In the log", ""));
    }
    let contents = book.contents();
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(book.dir()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let log = fs::read(copy.path().join("data.db-wal")).unwrap();
    (copy, contents, log)
}

#[test]
fn batches_that_a_damaged_log_does_not_give_are_named() {
    let (dir, before, log) = close_with_log(Book::new());
    let wal = dir.path().join("data.db-wal");
    // The frames say what is wrong in the header of the log.
    for at in [0, 3, 17, 23, 25, 31] {
        let mut damaged = log.clone();
        damaged[at] ^= 2;
        fs::write(&wal, damaged).unwrap();
        let (report, contents) = salvage_and_restore(dir.path());
        assert!(contents == before, "byte {at}: {:?}", report.losses);
        assert_eq!(report.losses, [], "byte {at}");
    }
    let mut damaged = log.clone();
    *damaged.last_mut().unwrap() ^= 2;
    fs::write(&wal, damaged).unwrap();
    let (report, contents) = salvage_and_restore(dir.path());
    assert_eq!(report.losses, [SalvageLoss::Batches { batches: 1 }]);
    assert_eq!(contents.len(), before.len() - 1);
    // Without the record, the commits behind the damage show that something is missing.
    let mut damaged = log.clone();
    let middle = log.len() - 3 * PAGE_BYTES;
    damaged[middle] ^= 2;
    fs::write(&wal, damaged).unwrap();
    fs::remove_file(dir.path().join("data.notify")).unwrap();
    let (report, contents) = salvage_and_restore(dir.path());
    assert!(contents.len() < before.len());
    assert_eq!(report.losses, [SalvageLoss::Unknown { objects: "committed batches" }]);
    fs::remove_file(&wal).unwrap();
    fs::create_dir(&wal).unwrap();
    let out = dir.path().join("out.db");
    assert!(DataDirectory::new(dir.path()).salvage(&create_options(), &out).is_err());
    assert!(!out.exists());
}
