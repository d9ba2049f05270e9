//! Changes of the states of messages: the change feed names them, and the rows of their text stay.

use crate::mail_index::{self, apply};
use larder_store::{MailChange, MailFile, NetEffect, Store};
use rusqlite::Connection;
use std::path::Path;

fn file(name: &str) -> MailFile {
    mail_index::file(name, 7, 9)
}

fn rename(from: &str, to: &str) -> MailChange {
    MailChange::RenameFile { from: (b"cur".to_vec(), from.into()), file: file(to) }
}

fn remove(name: &str) -> MailChange {
    MailChange::RemoveFile { directory: b"cur".to_vec(), name: name.into() }
}

/// Writes an index of messages in rows from 1 on, each with one file.
fn write_index(dir: &Path, names: &[&str]) -> Store {
    let text = |row| format!("Message-ID: <{row}>\n\nwalrus\n");
    let messages: Vec<(&str, String)> =
        names.iter().zip(1..).map(|(name, row): (_, u32)| (*name, text(row))).collect();
    mail_index::write_index(dir, &messages)
}

/// Returns the changes so far as batch and row; row 0 is a removed message.
fn read_feed(store: &Store) -> Vec<(i64, i64)> {
    let reader = store.open_reader().unwrap();
    let start = reader.changes().start_cursor().unwrap();
    let (news, _) = reader.changes().list_after(&start, 100).unwrap();
    let row = |effect| match effect {
        NetEffect::Put(row) => row.to_number(),
        NetEffect::Removed => 0,
    };
    news.iter().map(|change| (change.seq, row(change.effect))).collect()
}

#[test]
fn the_feed_names_changed_states_once() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = write_index(scratch.path(), &["1:2,", "2:2,", "3:2,"]);
    assert_eq!(read_feed(&store), [(1, 1), (1, 2), (1, 3)]);
    apply(&mut store, vec![rename("2:2,", "2:2,S"), rename("1:2,", "1:2,S")]);
    assert_eq!(read_feed(&store), [(1, 3), (2, 2), (2, 1)]);
    apply(&mut store, vec![rename("2:2,S", "2:2,FS")]);
    assert_eq!(read_feed(&store), [(1, 3), (2, 1), (3, 2)]);
    let before = store.open_reader().unwrap().changes().current_cursor().unwrap();
    apply(&mut store, vec![remove("2:2,FS"), rename("3:2,", "3:2,T")]);
    assert_eq!(read_feed(&store), [(2, 1), (4, 0), (4, 3)]);
    let reader = store.open_reader().unwrap();
    assert_eq!(reader.changes().list_after(&before, 9).unwrap().0.len(), 2);
    let states = reader.mail().unwrap().former_states(1).unwrap().unwrap();
    assert_eq!(states.changed_rows(0)[0], 0b1110);
    assert_eq!(store.check().unwrap().faults, []);
}

/// A kept answer tests the changed items again, and a published collection is published again: a
/// changed state is a change for both.
#[test]
fn changed_states_are_changed_rows_and_changes_of_their_collection() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = write_index(scratch.path(), &["1:2,", "2:2,", "3:2,"]);
    apply(&mut store, vec![rename("2:2,", "2:2,S")]);
    apply(&mut store, vec![remove("3:2,")]);
    apply(&mut store, vec![rename("1:2,", "1:2,F")]);
    let reader = store.open_reader().unwrap();
    let rows = |after, last| -> Vec<i64> {
        let rows = reader.changes().list_changed_rows(after, last).unwrap().unwrap();
        rows.into_iter().map(|row| row.to_number()).collect()
    };
    assert_eq!(rows(0, 1), [1, 2]);
    assert_eq!(rows(1, 2), [2]);
    assert_eq!(rows(1, 4), [1, 2, 3]);
    assert_eq!(rows(4, 4), [0; 0]);
    let last = |after| {
        let names = reader.collections().list_names().unwrap();
        let (collection, _) = names.first().cloned().unwrap();
        reader.changes().last_collection_change(collection, after).unwrap()
    };
    assert_eq!((last(0), last(3), last(4)), (Some(4), Some(4), None));
}

#[test]
fn a_changed_flag_writes_neither_the_message_nor_the_key_of_its_file() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = write_index(scratch.path(), &["1.a:2,", "1.a:2,R", "3.a:2,"]);
    let conn = Connection::open(scratch.path().join("index.db")).unwrap();
    let read = |sql: &str| -> Vec<String> {
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    let rows = || {
        let items = read("SELECT id || ' ' || seq || ' ' || ordinal FROM item ORDER BY id");
        let keys = read("SELECT item || ' ' || base || ' ' || place FROM mail_file ORDER BY item");
        (items, keys)
    };
    let names = || read("SELECT CAST(name AS TEXT) FROM mail_file ORDER BY item");
    let before = rows();
    apply(&mut store, vec![rename("1.a:2,R", "1.a:2,FR"), rename("1.a:2,", "1.a:2,S")]);
    assert_eq!(rows(), before);
    assert_eq!(names(), ["1.a:2,S", "1.a:2,FR", "3.a:2,"]);
    // Two files with one base name; a file is moved over another one, which goes.
    apply(&mut store, vec![rename("1.a:2,S", "1.a:2,FR")]);
    assert_eq!(names(), ["1.a:2,FR", "3.a:2,"]);
    apply(&mut store, vec![rename("3.a:2,", "4.a:2,")]);
    assert_eq!(names(), ["1.a:2,FR", "4.a:2,"]);
    assert_eq!(store.check().unwrap().faults, []);
}
