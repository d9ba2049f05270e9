//! Items joined into the first of them: all of it or nothing, and put back byte for byte.

use crate::test_store::{CONTACTS, TestStore};
use larder_edit::{ContactMerge, MergeError, MergeOutcome, write_merge};
use larder_format::contact::Contact;
use larder_format::field::find_contact_field;
use larder_store::{ItemMeta, Operation};
use proptest::prelude::*;

const OLD: &str = "BEGIN:VCARD\nVERSION:2.1\nUID:old\nN:Berg;Anna\nFN:Anna Berg\n\
    TEL;HOME:030 1234567\nBDAY:19700102\nEND:VCARD\n";
const NEW: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:new\r\nFN:Berg\\, Anna\r\nTEL;TYPE=cell:0664 123456\r\n\
    TEL;TYPE=pref:0301234567\r\nitem1.URL:http://x.example\r\nitem1.X-ABLABEL:Site\r\nEND:VCARD\r\n";
const NONE: &str = "BEGIN:VCARD\nVERSION:4.0\nFN:A. Berg\nEMAIL:a@berg.example\nEND:VCARD\n";

fn book(cards: &[&str]) -> TestStore {
    let mut book = TestStore::new();
    for card in cards {
        book.put_contact(CONTACTS, card);
    }
    book
}

fn heads(book: &TestStore) -> Vec<ItemMeta> {
    let reader = book.store.open_reader().unwrap();
    let collections = reader.collections().list().unwrap();
    collections.iter().flat_map(|one| reader.items().list_after(one, None, 1000).unwrap()).collect()
}

fn operation() -> Operation {
    Operation::new("merge", "", 0)
}

fn join(book: &mut TestStore, items: &[ItemMeta]) -> Result<MergeOutcome, MergeError> {
    let joined = ContactMerge::from_items(&book.store.open_reader().unwrap(), items)?;
    write_merge(&mut book.store, operation(), joined)
}

#[test]
fn the_first_stays_and_gets_what_the_others_have() {
    let mut book = book(&[OLD, NEW, NONE]);
    let before = heads(&book);
    let all = book.text(CONTACTS);
    let merged = join(&mut book, &before).unwrap();
    let after = heads(&book);
    assert_eq!(after.len(), 1);
    assert_eq!((after[0].handle, after[0].uid.as_str()), (before[0].handle, "old"));
    assert_eq!(
        book.text(CONTACTS),
        OLD.replace(
            "END:VCARD\n",
            "X-LARDER-UID:new\nX-LARDER-FN:Berg, Anna\nTEL;CELL:0664 123456\n\
             item1.URL:http://x.example\nitem1.X-ABLABEL:Site\n\
             X-LARDER-FN:A. Berg\nEMAIL:a@berg.example\nEND:VCARD\n"
        )
    );
    let row =
        book.store.open_reader().unwrap().changes().last_undoable_operation().unwrap().unwrap();
    assert_eq!((row.id, row.counts), (merged.operation, [0, 1, 2]));
    let undone = book.store.undo(merged.operation, 0).unwrap();
    assert_eq!((undone.items, undone.conflicts.len()), (3, 0));
    let mut back = book.items(CONTACTS);
    back.sort();
    let mut cards = [OLD, NEW, NONE].map(|card| card.as_bytes().to_vec());
    cards.sort();
    assert_eq!(back, cards);
    assert_eq!(book.text(CONTACTS).len(), all.len());
}

/// The base may be of no UID, and in another collection.
#[test]
fn across_collections() {
    let mut book = book(&[NONE]);
    book.put_contact("other", OLD);
    let before = heads(&book);
    join(&mut book, &before).unwrap();
    let after = heads(&book);
    assert_eq!(after.len(), 1);
    assert_eq!((&after[0].collection, &after[0].uid), (&before[0].collection, &before[0].uid));
    assert!(before[0].derived_uid && !after[0].derived_uid);
    let card = book.text(CONTACTS);
    let uid = format!("\nUID:{}\n", before[0].uid);
    assert!(card.contains("\nX-LARDER-UID:old\n") && card.contains(&uid), "{card}");
}

/// What somebody changed or removed meanwhile keeps everything as it is.
#[test]
fn all_or_nothing() {
    for changed in 0..3 {
        for remove in [false, true] {
            let mut book = book(&[OLD, NEW, NONE.replace("FN", "UID:none\nFN").as_str()]);
            let before = heads(&book);
            let joined =
                ContactMerge::from_items(&book.store.open_reader().unwrap(), &before).unwrap();
            if remove {
                let item = [(before[changed].handle, before[changed].seq)];
                larder_edit::remove_items(&mut book.store, &mut operation(), &item).unwrap();
            } else {
                let card = book.items(CONTACTS)[changed].clone();
                let card =
                    String::from_utf8(card).unwrap().replace("Anna", "Anne").replace("A.", "B.");
                book.put_contact(CONTACTS, &card);
            }
            let items = book.items(CONTACTS);
            let last =
                book.store.open_reader().unwrap().changes().last_undoable_operation().unwrap();
            match write_merge(&mut book.store, operation(), joined) {
                Err(MergeError::Conflict { handles }) => {
                    assert_eq!(handles, [before[changed].handle]);
                }
                other => panic!("{changed}: {other:?}"),
            }
            assert_eq!(book.items(CONTACTS), items);
            assert_eq!(
                book.store.open_reader().unwrap().changes().last_undoable_operation().unwrap(),
                last
            );
            assert!(book.store.check().unwrap().faults.is_empty());
        }
    }
}

#[test]
fn what_cannot_be_joined() {
    let half = "BEGIN:VCARD\nVERSION:3.0\nUID:half\nFN:Half";
    let book = book(&[OLD, NEW, half]);
    let heads = heads(&book);
    let reader = book.store.open_reader().unwrap();
    let check = |items: &[usize], expect: &str| {
        let items: Vec<_> = items.iter().map(|at| heads[*at].clone()).collect();
        assert_eq!(ContactMerge::from_items(&reader, &items).unwrap_err().to_string(), expect);
    };
    check(&[], "merging needs at least two contacts");
    check(&[0], "merging needs at least two contacts");
    let handle = heads[0].handle;
    check(&[0, 1, 0], &format!("the ID {handle:.8} is given twice"));
    let handle = heads[2].handle;
    let expect =
        format!("cannot merge into {handle:.8}: its card is damaged or has no END:VCARD line");
    check(&[2, 0], &expect);
    let items = [heads[0].clone(), heads[2].clone()];
    let joined = ContactMerge::from_items(&reader, &items).unwrap();
    assert!(String::from_utf8_lossy(joined.card()).contains("X-LARDER-FN:Half"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every phone number and every address of all that were joined is in the result, and undo
    /// brings all bytes back.
    #[test]
    fn nothing_is_lost_and_undo_brings_it_back(
        people in prop::collection::vec((0..3usize, "[0-9]{6,9}", "[a-c]@[ab]", any::<bool>()), 2..6)
    ) {
        let card = |(at, (version, phone, email, windows)): (usize, &(usize, String, String, bool))| {
            let version = ["2.1", "3.0", "4.0"][*version];
            let card = format!(
                "BEGIN:VCARD\nVERSION:{version}\nUID:u{at}\nFN:Anna {at}\nTEL:{phone}\nEMAIL:{email}\nEND:VCARD\n"
            );
            if *windows { card.replace('\n', "\r\n") } else { card }
        };
        let cards: Vec<String> = people.iter().enumerate().map(card).collect();
        let mut book = book(&cards.iter().map(String::as_str).collect::<Vec<_>>());
        let before = heads(&book);
        let merged = join(&mut book, &before).unwrap();
        let whole = book.items(CONTACTS).pop().unwrap();
        let values = |name: &str| Contact::parse(&whole).values(find_contact_field(name).unwrap());
        for (_, phone, email, _) in &people {
            prop_assert!(values("phone").contains(phone) && values("email").contains(email));
        }
        book.store.undo(merged.operation, 0).unwrap();
        let mut items = book.items(CONTACTS);
        let mut expect: Vec<Vec<u8>> = cards.iter().map(|card| card.clone().into_bytes()).collect();
        items.sort();
        expect.sort();
        prop_assert_eq!(items, expect);
    }
}

#[test]
fn a_restore_in_between() {
    let other = book(&[&OLD.replace("Anna", "Zoe").replace("123", "999"), NEW]);
    let scratch = tempfile::tempdir().unwrap();
    let to = scratch.path().join("b.db");
    other.store.backup(&to).unwrap();
    let mut mine = book(&[OLD, NEW]);
    let items = heads(&mine);
    let joined = ContactMerge::from_items(&mine.store.open_reader().unwrap(), &items).unwrap();
    mine.store.restore(&to).unwrap();
    let result = write_merge(&mut mine.store, operation(), joined);
    let left = mine.text(CONTACTS);
    assert!(left.contains("Zoe") && left.contains("999"), "{left}");
    assert!(matches!(result, Err(MergeError::Store(larder_store::Error::StoreRestored))));
}
