//! Salvage of calendar contexts: no item gets another one in silence. Apart from `salvage`, which
//! damages whole pages.

use crate::book::Book;
use crate::calendar::{calendar_context, component, put as put_component};
use crate::salvage::{PAGE_BYTES, salvage_and_dump, salvage_and_restore};
use larder_store::{Precondition, SalvageLoss};
use rusqlite::types::Value;
use std::fs;
use std::path::Path;

/// A book with two events that name the time zone `Own`, each with its own definition.
fn book_of_two_zones(with_definition: [bool; 2]) -> Book {
    let mut book = Book::new();
    for (n, has_definition) in with_definition.into_iter().enumerate() {
        let lines = format!("VEVENT\nUID:e{n}\nDTSTART;TZID=Own:20260305T120000\nSUMMARY:Own {n}");
        let context = if has_definition { calendar_context(n) } else { Default::default() };
        let change =
            put_component(&book.store, "home", &component(&lines), &context, Precondition::Any);
        book.apply(vec![change]);
    }
    book
}

#[test]
fn a_changed_calendar_context_is_a_named_loss() {
    let book = book_of_two_zones([true, true]);
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    let sql = "UPDATE item SET calendar_context = (SELECT max(calendar_context) FROM item)";
    conn.execute(sql, []).unwrap();
    drop(conn);
    let (report, _) = salvage_and_restore(&book.dir());
    let is_item = |loss: &SalvageLoss| {
        matches!(loss, SalvageLoss::Changed(larder_store::DamagedObject::Item { .. }))
    };
    assert!(report.losses.iter().any(is_item), "{:?}", report.losses);
}

/// The rows of both events are lost, and the bytes of the one with a definition: the other one does
/// not get it.
#[test]
fn no_item_gets_the_time_zone_of_a_lost_one() {
    let book = book_of_two_zones([false, true]);
    let root = book.count("SELECT rootpage FROM sqlite_schema WHERE name = 'item'") as usize;
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute("DELETE FROM source_bytes WHERE item = (SELECT max(id) FROM item)", []).unwrap();
    drop(conn);
    let (_scratch, dir) = book.with_store_closed(Path::to_path_buf);
    let mut file = fs::read(dir.join("data.db")).unwrap();
    file[(root - 1) * PAGE_BYTES..root * PAGE_BYTES].fill(0);
    fs::write(dir.join("data.db"), file).unwrap();
    let (report, dump) = salvage_and_dump(&dir);
    let items: Vec<_> = dump.iter().filter(|(table, _)| *table == "item").collect();
    assert_eq!(items.len(), 1, "{:?}", report.losses);
    assert!(items[0].1.contains(&Value::Text("e0".into())));
    assert_eq!(items[0].1[8..10], [Value::Null, Value::Null], "{:?}", report.losses);
}
