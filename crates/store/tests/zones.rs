//! Tests of time zones of calendars and of the system: the items that they concern, how long
//! definitions are stored, and the items after a change of zones.

use crate::book::{Book, NOW_MS, create_options, write_meta};
use crate::calendar::{calendar_context, component, put, starts, zone};
use larder_store::{
    CalendarContext, DerivedIndex, Operation, Precondition, Reader, StoreOptions, ZoneDefinition,
};
use larder_time::zone::ZoneDatabase;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A definition is stored once for all calendars, as long as an item or a version of one needs it.
#[test]
fn zones_live_as_long_as_their_users() {
    let mut book = Book::new();
    let lines = |uid: &str| format!("VEVENT\nUID:{uid}\nDTSTART;TZID=Own:20260305T120000");
    let of = |outcome| crate::book::outcome_handle(&outcome);
    let a = of(book.put_component("home", &lines("a"), &calendar_context(2)));
    let b = of(book.put_component("work", &lines("b"), &calendar_context(1)));
    // Definitions that no item names are not stored.
    let counted = |book: &Book| {
        ["zone_definition", "calendar_context"]
            .map(|table| book.count(&format!("SELECT count(*) FROM {table}")))
    };
    assert_eq!(counted(&book), [1, 1]);
    let c = of(book.put_component("old", &lines("c"), &calendar_context(3)));
    assert_eq!(counted(&book), [2, 2]);
    let starts = starts(&book.reader());
    assert_eq!([&*starts["a"], &starts["b"]], ["20260305T061500Z"; 2]);
    assert_eq!(&*starts["c"], "20260305T103000Z");
    for handle in [a, b] {
        book.remove(handle);
        assert_eq!(counted(&book), [2, 2], "the former version needs it");
    }
    let purge = |book: &mut Book, handle| {
        let mut operation = Operation::new("purge", "", NOW_MS);
        book.store.purge(&mut operation, &[handle]).unwrap();
    };
    purge(&mut book, a);
    assert_eq!(counted(&book), [2, 2]);
    purge(&mut book, b);
    assert_eq!(counted(&book), [1, 1]);
    book.remove(c);
    // 90 days later, nothing of the removed items is stored.
    let later = NOW_MS + 100 * crate::book::DAY_MS;
    let change = put(
        &book.store,
        "home",
        &component("VEVENT\nUID:d\nSUMMARY:x"),
        &calendar_context(0),
        Precondition::Any,
    );
    book.age_by(100);
    book.apply_at(later, vec![change]);
    assert_eq!(counted(&book), [0, 0]);
    assert_eq!(book.store.check().unwrap().faults, []);
}

/// An event in a zone of the system, in one defined differently, in one of the file, and in an
/// unknown one: its instant, and the warnings.
#[test]
fn zone_names_are_resolved() {
    let book = Book::new();
    let check = |tzid: &str, zones: Vec<Arc<ZoneDefinition>>, expect: &str, said: &str| {
        let bytes = component(&format!("VEVENT\nUID:a\nDTSTART;TZID={tzid}:20260705T120000"));
        let calendar_context = CalendarContext { is_vcalendar_1: false, zone_definitions: zones };
        let parsed =
            book.store.extractor().parse_component(bytes.clone(), &calendar_context).unwrap();
        assert_eq!(parsed.problems(), [], "{tzid}");
        let warnings = parsed.warnings().iter();
        let notes: Vec<String> =
            warnings.map(|warning| format!("{}: {}", warning.line, warning.text)).collect();
        assert_eq!(notes.join("; "), said, "{tzid}");
        let mut book = Book::new();
        let change = put(&book.store, "home", &bytes, &calendar_context, Precondition::Any);
        book.apply(vec![change]);
        assert_eq!(starts(&book.reader())["a"], expect, "{tzid}");
    };
    let unknown =
        |tzid: &str| format!("3: unknown time zone {tzid:?}: its times are read as local time");
    check("Europe/Berlin", vec![], "20260705T100000Z", "");
    check("europe/berlin", vec![], "20260705T100000Z", "");
    check("/softwarestudio.org/Olson_20011030_5/Europe/Berlin", vec![], "20260705T100000Z", "");
    check("W. Europe Standard Time", vec![], "20260705T100000Z", "");
    check("Own", vec![zone("Own", 345)], "20260705T061500Z", "");
    check("Nowhere", vec![], "20260705T120000Z", &unknown("Nowhere"));
    check("Own", vec![zone("Other", 60)], "20260705T120000Z", &unknown("Own"));
    // The system's zone has precedence; the definition in the file has another offset on that day.
    let said =
        "3: the file defines \"Europe/Berlin\" differently; the system's Europe/Berlin is used";
    check("Europe/Berlin", vec![zone("Europe/Berlin", 60)], "20260705T100000Z", said);
    // A definition with too many changes is evaluated up to a limit.
    let hostile = "BEGIN:VTIMEZONE\r\nTZID:Own\r\nBEGIN:STANDARD\r\nDTSTART:20000101T000000\r\nTZOFFSETFROM:+0100\r\n\
                   TZOFFSETTO:+0200\r\nRRULE:FREQ=SECONDLY;BYHOUR=0;COUNT=5000000\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n";
    let hostile = Arc::new(ZoneDefinition::new(hostile.as_bytes()).unwrap());
    let said = "3: the definition of \"Own\" has too many transitions: later times may be wrong";
    check("Own", vec![hostile], "20260705T100000Z", said);
}

/// The same bytes in another calendar context are at another time, and undo restores the context.
#[test]
fn a_zone_that_is_defined_otherwise() {
    let mut book = Book::new();
    let lines = "VEVENT\nUID:a\nDTSTART;TZID=Own:20260305T120000";
    book.put_component("home", lines, &calendar_context(1));
    let unchanged = book.put_component("home", lines, &calendar_context(1));
    assert!(matches!(unchanged, larder_store::ChangeOutcome::Unchanged(_)), "{unchanged:?}");
    let change =
        put(&book.store, "home", &component(lines), &calendar_context(3), Precondition::Any);
    let (id, applied) = book.apply(vec![change]);
    assert!(matches!(applied.outcomes[0], larder_store::ChangeOutcome::Updated(_)), "{applied:?}");
    assert_eq!(starts(&book.reader())["a"], "20260305T103000Z");
    assert_eq!(book.store.check().unwrap().faults, []);
    assert_eq!(book.store.undo(id, NOW_MS).unwrap().items, 1);
    assert_eq!(starts(&book.reader())["a"], "20260305T061500Z");
    assert_eq!(book.store.check().unwrap().faults, []);
}

/// Writes a zone file of the system, with this offset in hours from 1970 on.
fn write_zone(dir: &Path, name: &str, east: i32) {
    let mut file = Vec::new();
    for version in [b'2', b'2'] {
        file.extend(b"TZif");
        file.push(version);
        file.extend([0; 15]);
        for count in [0u32, 0, 0, 0, 1, 4] {
            file.extend(count.to_be_bytes());
        }
        file.extend((east * 3600).to_be_bytes());
        file.extend([0, 0]);
        file.extend(b"TST\0");
    }
    file.extend(format!("\nTST-{east}\n").as_bytes());
    std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    std::fs::write(dir.join(name), file).unwrap();
}

/// A database with two system zones; the second one has this offset.
fn system(dir: &Path, version: &str, second: i32) -> Arc<ZoneDatabase> {
    let dir = dir.join(version);
    write_zone(&dir, "Test/First", 1);
    write_zone(&dir, "Test/Second", second);
    let database = jiff::tz::TimeZoneDatabase::from_dir(&dir).unwrap();
    Arc::new(ZoneDatabase::with_version(database, version.to_string()))
}

/// When a system zone changes, the schedules of its items are computed again, and no others.
#[test]
fn another_version_of_the_zones() {
    let dir = tempfile::tempdir().unwrap();
    let options = |version: &str, second| StoreOptions {
        zones: system(dir.path(), version, second),
        ..create_options()
    };
    let mut book = Book::with_options(&options("a", 2));
    for n in 0..10 {
        let zone = if n < 3 { "Test/Second" } else { "Test/First" };
        let lines =
            format!("VEVENT\nUID:u{n}\nDTSTART;TZID={zone}:20260305T120000\nRRULE:FREQ=DAILY");
        book.put_component("home", &lines, &calendar_context(0));
    }
    book.put_component("home", "VEVENT\nUID:utc\nDTSTART:20260305T120000Z", &calendar_context(0));
    let starts_of = |book: &Book| starts(&book.reader());
    assert_eq!(starts_of(&book)["u0"], "20260305T100000Z");
    assert_eq!(starts_of(&book)["u9"], "20260305T110000Z");
    let data = |book: &Book| {
        let conn = rusqlite::Connection::open(book.data()).unwrap();
        let sql =
            "SELECT i.uid, t.data, t.zone_set FROM idx_schedule t JOIN item i ON i.id = t.item";
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| {
            Ok((row.get(0)?, (row.get::<_, Vec<u8>>(1)?, row.get::<_, Option<i64>>(2)?)))
        });
        rows.unwrap().collect::<Result<BTreeMap<String, _>, _>>().unwrap()
    };
    let before = data(&book);

    // A reader with other zones does not use this index, and its answers are right all the same.
    let other = options("b", 5);
    let reader = Reader::open_with_zones(&book.dir(), Arc::clone(&other.zones)).unwrap();
    assert!(!reader.index().is_current(DerivedIndex::Interval).unwrap());
    assert_eq!(starts(&reader)["u0"], "20260305T070000Z");

    let book = book.reopen(&other);
    assert!(book.reader().index().is_current(DerivedIndex::Interval).unwrap());
    assert_eq!(starts_of(&book)["u0"], "20260305T070000Z");
    assert_eq!(starts_of(&book)["u9"], "20260305T110000Z");
    assert_eq!(book.store.check().unwrap().faults, []);
    let after = data(&book);
    let changed: Vec<&String> = before.keys().filter(|uid| before[*uid] != after[*uid]).collect();
    assert_eq!(changed, ["u0", "u1", "u2"]);

    // An interrupted update is continued.
    let last = book.count("SELECT id FROM item WHERE uid = 'u1'");
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    write_meta(&conn, "zone_data_version", format!("rebuilding {last} c"));
    drop(conn);
    let book = book.reopen(&options("c", 7));
    assert!(book.reader().index().is_current(DerivedIndex::Interval).unwrap());
    let (before, after) = (after, data(&book));
    let changed: Vec<&String> = before.keys().filter(|uid| before[*uid] != after[*uid]).collect();
    assert_eq!(changed, ["u2"]);
}
