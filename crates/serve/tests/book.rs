//! Tests of an address book: contacts added, read, changed and removed, and the calls that it
//! refuses.

use crate::bus::{Bus, card, message_summaries};
use larder_store::{BatchChange, CollectionType, ItemPut, Operation, Precondition};
use std::collections::BTreeMap;
use zbus::OwnedVariant;

const CLIENT: &str = "e_2dclient_2derror_2dquark.Code";
const BOOK: &str = "e_2dbook_2dclient_2derror_2dquark.Code";

/// The value of a property of a card.
fn value<'c>(card: &'c str, name: &str) -> &'c str {
    let mut lines = card.split("\r\n");
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or("")
}

#[test]
fn a_contact_is_added_changed_and_removed() {
    let Some(bus) = Bus::new("a_contact_is_added_changed_and_removed") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let uids = client.add(&book, &[&card("a", "Anna"), "BEGIN:VCARD\nFN:Berta\nEND:VCARD\n"]);
    let [a, b] = &uids.unwrap()[..] else { panic!() };
    assert_eq!(a, "a");
    assert!(b.starts_with("pas-id-") && b.len() == 47, "{b}");
    assert_eq!(client.uids(&book, "").unwrap(), [a.as_str(), b]);
    assert_eq!(client.uids(&book, "(is \"full_name\" \"berta\")").unwrap(), [b.as_str()]);

    let berta = client.get(&book, b).unwrap();
    assert!(berta.starts_with("BEGIN:VCARD\r\nVERSION:3.0\r\n"), "{berta}");
    assert!(berta.ends_with("\r\nEND:VCARD"), "{berta}");
    assert_eq!((value(&berta, "UID"), value(&berta, "FN")), (b.as_str(), "Berta"));
    let rev = value(&berta, "REV");
    assert!(rev.starts_with("2023-11-14T22:13:20.") && rev.ends_with('Z'), "{rev}");

    let changed = berta.replace("Berta", "Bertha");
    client.call(&book, "AddressBook", "ModifyContacts", &(vec![changed], 0u32)).unwrap();
    let bertha = client.get(&book, b).unwrap();
    assert_eq!(value(&bertha, "FN"), "Bertha");
    assert!(value(&bertha, "REV") > rev, "{bertha}");
    assert_eq!(bertha.matches("\r\nREV:").count(), 1);

    // If a call has a contact twice, the last one counts.
    let twice = vec![card("a", "Anne"), card("a", "Anja")];
    client.call(&book, "AddressBook", "ModifyContacts", &(twice, 0u32)).unwrap();
    assert_eq!(value(&client.get(&book, "a").unwrap(), "FN"), "Anja");

    client.call(&book, "AddressBook", "RemoveContacts", &(vec!["a", "a"], 0u32)).unwrap();
    assert_eq!(client.uids(&book, "").unwrap(), [b.as_str()]);
    assert_eq!(
        client.get(&book, "a").unwrap_err().text,
        "Cannot get contact: Contact “a” not found"
    );
}

#[test]
fn a_book_refuses_malformed_calls() {
    let Some(bus) = Bus::new("a_book_refuses_malformed_calls") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.open("system-address-book");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let code = |reply: Result<zbus::Message, crate::bus::ErrorReply>| {
        let name = reply.map(drop).unwrap_err().name;
        name.split_once("Quark._").map_or(name.clone(), |(_, code)| code.to_string())
    };
    let cards = |method: &str, cards: &[&str]| {
        code(client.call(&book, "AddressBook", method, &(cards, 0u32)))
    };
    let text = |method: &str, text: &str| code(client.call(&book, "AddressBook", method, &text));
    assert_eq!(cards("CreateContacts", &[&card("a", "Anna")]), format!("{BOOK}2"));
    assert_eq!(cards("CreateContacts", &["garbage"]), format!("{CLIENT}0"));
    let twice = card("b", "Berta") + "\n" + &card("c", "Chris");
    for text in ["BEGIN:VCARD\nFN:half\n", "BEGIN:VCARD\nFN:\nEND:VCARD", &twice, ""] {
        assert_eq!(cards("CreateContacts", &[text]), format!("{CLIENT}0"), "{text}");
    }
    assert_eq!(cards("ModifyContacts", &["BEGIN:VCARD\nFN:x\nEND:VCARD"]), format!("{CLIENT}19"));
    assert_eq!(cards("ModifyContacts", &[&card("z", "Zoe")]), format!("{BOOK}1"));
    assert_eq!(cards("RemoveContacts", &["z"]), format!("{BOOK}1"));
    // A call is applied as a whole or not at all.
    let two = [card("b", "Berta"), card("b", "Bert")];
    assert_eq!(cards("CreateContacts", &[&two[0], &two[1]]), format!("{BOOK}2"));
    assert_eq!(cards("CreateContacts", &[&two[0], "garbage"]), format!("{CLIENT}0"));
    assert_eq!(cards("RemoveContacts", &["a", "z"]), format!("{BOOK}1"));
    assert_eq!(client.uids(&book, "").unwrap(), ["a"]);
    for query in
        ["(bogus \"x\")", "(is \"full_name\"", "#t", "(eqphone \"phone\" \"abc\")", "\"", ")"]
    {
        assert_eq!(text("GetContactList", query), format!("{CLIENT}16"), "{query}");
        assert_eq!(text("GetContactListUids", query), format!("{CLIENT}16"), "{query}");
        assert_eq!(text("GetView", query), format!("{CLIENT}16"), "{query}");
    }
    let deep = format!("{}(exists \"email\"){}", "(not ".repeat(100_000), ")".repeat(100_000));
    assert_eq!(text("GetView", &deep), format!("{CLIENT}16"));
    assert_eq!(code(client.call(&book, "AddressBook", "Refresh", &())), format!("{CLIENT}11"));
    assert_eq!(text("Open", "x"), "org.freedesktop.DBus.Error.InvalidArgs");
}

/// Every card that clients get has a REV, whatever the stored one has.
#[test]
fn queries_of_rev_agree_with_the_cards() {
    let Some(bus) = Bus::new("queries_of_rev_agree_with_the_cards") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let with_rev = card("a", "Anna").replace("FN:", "REV:2001-01-01T00:00:00Z\r\nFN:");
    client.add(&book, &[&with_rev, &card("b", "Berta")]).unwrap();
    for (query, expected) in [
        (r#"(exists "Rev")"#, &["a", "b"][..]),
        (r#"(exists_vcard "REV")"#, &["a", "b"]),
        (r#"(contains "Rev" "")"#, &["a", "b"]),
        (r#"(and (beginswith "rev" "") (contains "full_name" "\"\\ber"))"#, &[]),
        (r#"(and (beginswith "rev" "") (contains "full_name" "ber"))"#, &["b"]),
        (r#"(is "Rev" "")"#, &[]),
        (r#"(or (is "Rev" "") (is "full_name" "anna"))"#, &["a"]),
        (r#"(not (exists "Rev"))"#, &[]),
        (r#"(contains "x-evolution-any-field" "2001")"#, &[]),
    ] {
        assert_eq!(client.uids(&book, query).unwrap(), expected, "{query}");
    }
    for query in
        [r#"(beginswith "Rev" "2001")"#, r#"(or (exists "email") (not (regex_raw "rev" "^2")))"#]
    {
        let error = client.uids(&book, query).unwrap_err();
        assert!(error.name.ends_with(&format!("{CLIENT}16")), "{query}: {error:?}");
        assert!(error.text.contains("REV cannot be compared"), "{query}: {error:?}");
    }
}

/// All clients get the new revision before the writer gets its reply.
#[test]
fn the_revision_precedes_the_reply() {
    let Some(bus) = Bus::new("the_revision_precedes_the_reply") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let (book, other) = (client.new_book("friends", ""), client.new_book("foes", ""));
    let interface = format!("{}.AddressBook", crate::bus::EDS);
    let call_and_summarise = |method: &str, texts: &[&str]| {
        let (before, reply) =
            client.call_service(crate::bus::BOOKS, &book, &interface, method, &(texts, 0u32));
        (message_summaries(&before), reply.is_ok())
    };
    let expected = (vec!["PropertiesChanged Revision".to_string()], true);
    assert_eq!(call_and_summarise("CreateContacts", &[&card("a", "Anna")]), expected);
    assert_eq!(call_and_summarise("ModifyContacts", &[&card("a", "Anne")]), expected);
    assert_eq!(call_and_summarise("RemoveContacts", &["a"]), expected);
    assert_eq!(call_and_summarise("RemoveContacts", &["a"]), (vec![], false));
    // Each book has a revision of its own.
    let revision = |book: &str| {
        let properties = "org.freedesktop.DBus.Properties";
        let (_, reply) =
            client.call_service(crate::bus::BOOKS, book, properties, "GetAll", &interface);
        let mut all: BTreeMap<String, OwnedVariant> = reply.unwrap().body().deserialize().unwrap();
        assert_eq!(all.len(), 8);
        String::try_from(all.remove("Revision").unwrap()).unwrap()
    };
    let before = (revision(&book), revision(&other));
    client.add(&book, &[&card("b", "Berta")]).unwrap();
    assert_ne!(revision(&book), before.0);
    assert_eq!(revision(&other), before.1);
}

/// A commit of another process is signalled without a call.
#[test]
fn changes_of_other_processes_are_signalled() {
    let Some(bus) = Bus::new("changes_of_other_processes_are_signalled") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let mut store = bus.store();
    let extractor = store.extractor_for_collection("friends", CollectionType::AddressBook).unwrap();
    let prepared = extractor.parse_contact(card("a", "Anna").into_bytes()).unwrap();
    let put = ItemPut {
        collection: "friends".into(),
        uid: "a".into(),
        derived_uid: false,
        parsed: prepared,
        precondition: Precondition::Absent,
    };
    store.apply(&mut Operation::new("add", "", 0), vec![BatchChange::Put(put)]).unwrap();
    assert_eq!(message_summaries(&[client.next()]), ["PropertiesChanged Revision"]);
    assert_eq!(client.uids(&book, "").unwrap(), ["a"]);
}

/// With revision guards, a card must have the REV with which it was read.
#[test]
fn a_guarded_book_refuses_outdated_cards() {
    let Some(bus) = Bus::new("a_guarded_book_refuses_outdated_cards") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "\n[Revision Guards]\nEnabled=true\n");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let modify =
        |card: String| client.call(&book, "AddressBook", "ModifyContacts", &(vec![card], 0u32));
    let first = client.get(&book, "a").unwrap();
    modify(first.replace("Anna", "Anne")).unwrap();
    let stale = modify(first.replace("Anna", "Anya")).unwrap_err();
    assert!(stale.name.ends_with(&format!("{CLIENT}21")), "{stale:?}");
    let second = client.get(&book, "a").unwrap();
    assert_eq!(value(&second, "FN"), "Anne");
    modify(second.replace("Anne", "Anya")).unwrap();
}

/// Every card is sent as a card of version 3.0 that D-Bus can carry, whatever its source bytes are.
#[test]
fn every_stored_card_is_sent_as_version_3() {
    let Some(bus) = Bus::new("every_stored_card_is_sent_as_version_3") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.open("system-address-book");
    let mut store = bus.store();
    let extractor =
        store.extractor_for_collection("contacts", CollectionType::AddressBook).unwrap();
    let long = format!("BEGIN:VCARD\nUID:long\nNOTE:{}\nEND:VCARD", "x".repeat(1 << 20));
    let cards: [&[u8]; 7] = [
        b"BEGIN:VCARD\nVERSION:2.1\nUID:old\nN;ENCODING=QUOTED-PRINTABLE:=C3=96;J\nEND:VCARD",
        b"BEGIN:VCARD\r\nVERSION:4.0\r\nUID:urn:uuid:1\r\nFN:N\r\nEND:VCARD\r\n",
        b"BEGIN:VCARD\nUID:bytes\nFN:a\xff\xfeb\nEND:VCARD",
        b"BEGIN:VCARD\nUID:nul\nFN:a\0b\nEND:VCARD",
        b"BEGIN:VCARD\nUID:twice\nuid:twice\nREV:x\nrev:y\nFN:a\nno colon\nEND:VCARD",
        b"BEGIN:VCARD\nUID:a\\,b\\;c\nFN:escaped\nEND:VCARD",
        long.as_bytes(),
    ];
    let puts = cards.iter().map(|card| {
        let prepared = extractor.parse_contact(card.to_vec()).unwrap();
        let uid = prepared.uid().unwrap().to_string();
        let collection = "contacts".into();
        BatchChange::Put(ItemPut {
            collection,
            uid,
            derived_uid: false,
            parsed: prepared,
            precondition: Precondition::Absent,
        })
    });
    store.apply(&mut Operation::new("import", "", 0), puts.collect()).unwrap();
    let uids = client.uids(&book, "").unwrap();
    assert_eq!(uids.len(), cards.len());
    for uid in uids {
        let card = client.get(&book, &uid).unwrap();
        assert!(card.starts_with("BEGIN:VCARD\r\nVERSION:3.0\r\n"), "{card}");
        for name in ["\r\nUID:", "\r\nREV:", "\r\nVERSION:", "\r\nEND:VCARD"] {
            assert_eq!(card.to_uppercase().matches(name).count(), 1, "{name}: {card}");
        }
    }
    assert!(client.get(&book, "old").unwrap().contains("\r\nN:Ö;J\r\n"));
    assert!(client.get(&book, "a,b;c").unwrap().contains("\r\nUID:a\\,b\\;c\r\n"));
}

#[test]
fn a_book_reports_its_properties() {
    let Some(bus) = Bus::new("a_book_reports_its_properties") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("it's", "");
    let reply = client.call(&book, "AddressBook", "Open", &()).unwrap();
    let all: Vec<String> = reply.body().deserialize().unwrap();
    let property = |name: &str| all[all.iter().position(|text| text == name).unwrap() + 1].as_str();
    assert_eq!(all.len(), 16);
    assert_eq!(property("cache-dir"), "\"/cache/it's\"");
    assert_eq!(property("locale"), "'en_US.UTF-8'");
    assert_eq!(property("online"), "true");
    assert_eq!(property("required-fields"), "['file_as']");
    assert!(property("revision").starts_with("'2023-11-14T22:13:20Z("), "{}", property("revision"));
    assert_eq!(property("supported-fields").split(", ").count(), 142);
    let contains = |address: &str| {
        let reply = client.call(&book, "AddressBook", "ContainsEmail", &address).unwrap();
        reply.body().deserialize::<bool>().unwrap()
    };
    let anna = card("a", "Anna").replace("FN:", "EMAIL:anna@example.org\r\nFN:");
    client.add(&book, &[&anna]).unwrap();
    assert!(contains("Anna@example.org"));
    assert!(!contains("\") (exists \"email"));
}

/// After a restore the row of a book may belong to another one: the object of the old book is gone.
#[test]
fn the_object_of_a_book_ends_when_its_row_becomes_another_book() {
    let test = "the_object_of_a_book_ends_when_its_row_becomes_another_book";
    let Some(bus) = Bus::new(test) else { return };
    let service = bus.serve(bus.options());
    let client = bus.client();
    client.new_book("other", "");
    client.new_book("same", "");
    let backup = bus.dir.path().join("other.db");
    bus.store().backup(&backup).unwrap();
    drop((client, service));
    std::fs::remove_dir_all(bus.data()).unwrap();

    let _service = bus.serve(bus.options());
    let client = bus.client();
    let (mine, same) = (client.new_book("mine", ""), client.new_book("same", ""));
    client.add(&mine, &[&card("a", "Anna")]).unwrap();
    bus.store().restore(&backup).unwrap();
    for error in [
        client.add(&mine, &[&card("b", "Bob")]).unwrap_err(),
        client.uids(&mine, "").unwrap_err(),
        client.get(&mine, "a").unwrap_err(),
    ] {
        assert!(error.name.ends_with("UnknownObject"), "{error:?}");
    }
    let other = client.open("other");
    assert_ne!(other, mine);
    assert!(client.uids(&other, "").unwrap().is_empty());
    // A book with the same UID in the same row is the same book.
    assert_eq!(client.open("same"), same);
    client.add(&same, &[&card("c", "Carl")]).unwrap();
}
