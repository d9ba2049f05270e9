//! Tests of views: the order of their events, their clients, and their end.

use crate::bus::{BOOKS, Bus, Client, EDS, card, message_summaries};
use larder_store::Operation;
use zbus::{Message, OwnedObjectPath};

/// Opens a view on a query without starting it.
fn open_view(client: &Client, book: &str, query: &str) -> String {
    let reply = client.call(book, "AddressBook", "GetView", &query).unwrap();
    reply.body().deserialize::<OwnedObjectPath>().unwrap().to_string()
}

fn call_view(client: &Client, view: &str, method: &str) {
    client.call(view, "AddressBookView", method, &()).unwrap();
}

/// Returns the summaries of messages up to the next `Complete`.
fn messages_until_complete(client: &Client) -> Vec<String> {
    let mut messages = Vec::new();
    loop {
        messages.push(client.next());
        if messages
            .last()
            .is_some_and(|last| message_summaries(std::slice::from_ref(last)) == ["Complete"])
        {
            return message_summaries(&messages);
        }
    }
}

/// Calls a method of a book that takes texts; returns the messages that came before the reply.
fn call_book(client: &Client, book: &str, method: &str, texts: &[&str]) -> Vec<String> {
    let interface = format!("{EDS}.AddressBook");
    let (before, reply) = client.call_service(BOOKS, book, &interface, method, &(texts, 0u32));
    reply.unwrap();
    message_summaries(&before)
}

#[test]
fn view_events_precede_the_reply() {
    let Some(bus) = Bus::new("view_events_precede_the_reply") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let view = open_view(&client, &book, "(contains \"full_name\" \"an\")");
    client.uids(&book, "").unwrap();
    call_view(&client, &view, "Start");
    assert_eq!(messages_until_complete(&client), ["Progress", "ObjectsAdded card a", "Complete"]);
    let revision = "PropertiesChanged Revision";
    let check = |method: &str, texts: &[&str], expect: &[&str]| {
        let events = call_book(&client, &book, method, texts);
        let all: Vec<&str> = [&[revision], expect, &["Complete"]].concat();
        assert_eq!(events, all, "{method} {texts:?}");
    };
    check("CreateContacts", &[&card("b", "Anton")], &["ObjectsAdded card b"]);
    check("CreateContacts", &[&card("c", "Otto")], &[]);
    check("ModifyContacts", &[&card("a", "Anne")], &["ObjectsModified card a"]);
    check("ModifyContacts", &[&card("c", "Hanno")], &["ObjectsAdded card c"]);
    check("ModifyContacts", &[&card("c", "Otto")], &["ObjectsRemoved c"]);
    check("RemoveContacts", &["c"], &[]);
    check("RemoveContacts", &["a", "b"], &["ObjectsRemoved a b"]);
    // A stopped view sends nothing, and begins again with its whole answer.
    call_view(&client, &view, "Stop");
    assert_eq!(call_book(&client, &book, "CreateContacts", &[&card("d", "Dan")]), [revision]);
    call_view(&client, &view, "Start");
    assert_eq!(messages_until_complete(&client), ["Progress", "ObjectsAdded card d", "Complete"]);
    call_view(&client, &view, "Dispose");
    assert_eq!(call_book(&client, &book, "RemoveContacts", &["d"]), [revision]);
    let gone = client.call(&view, "AddressBookView", "Start", &()).unwrap_err();
    assert!(gone.name.ends_with("UnknownObject"), "{gone:?}");
}

#[test]
fn fields_of_interest_choose_the_card() {
    let Some(bus) = Bus::new("fields_of_interest_choose_the_card") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna"), &card("b", "Berta")]).unwrap();
    let check = |fields: &[&str], flags: u32, expect: &[&str]| {
        let view = open_view(&client, &book, "");
        client.call(&view, "AddressBookView", "SetFieldsOfInterest", &fields).unwrap();
        client.call(&view, "AddressBookView", "SetFlags", &flags).unwrap();
        call_view(&client, &view, "Start");
        assert_eq!(messages_until_complete(&client), expect, "{fields:?}");
        call_view(&client, &view, "Dispose");
    };
    check(&[], 1, &["Progress", "ObjectsAdded card a card b", "Complete"]);
    check(&["x-evolution-uids-only"], 1, &["Progress", "ObjectsAdded a b", "Complete"]);
    check(&[], 0, &["Complete"]);
    let short = open_view(&client, &book, "");
    client.call(&short, "AddressBookView", "SetFieldsOfInterest", &vec!["id", "Rev"]).unwrap();
    call_view(&client, &short, "Start");
    let added: Message = std::iter::from_fn(|| Some(client.next()))
        .find(|message| {
            message_summaries(std::slice::from_ref(message))[0].starts_with("ObjectsAdded")
        })
        .unwrap();
    let texts: Vec<String> = added.body().deserialize().unwrap();
    assert!(texts[0].contains("\r\nUID:a\r\n") && !texts[0].contains("Anna"), "{texts:?}");
}

/// A contact without the property of a flag is in a view of those whose flag is off.
#[test]
fn a_missing_flag_is_off() {
    let Some(bus) = Bus::new("a_missing_flag_is_off") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let list = card("l", "Club").replace("FN:", "X-EVOLUTION-LIST:TRUE\r\nFN:");
    client.add(&book, &[&list, &card("a", "Anna")]).unwrap();
    let view = open_view(&client, &book, "(is \"list\" \"0\")");
    call_view(&client, &view, "Start");
    assert_eq!(messages_until_complete(&client), ["Progress", "ObjectsAdded card a", "Complete"]);
    let events = call_book(&client, &book, "CreateContacts", &[&card("b", "Berta")]);
    assert_eq!(events, ["PropertiesChanged Revision", "ObjectsAdded card b", "Complete"]);
    let events = call_book(&client, &book, "ModifyContacts", &[&list.replace("TRUE", "FALSE")]);
    assert_eq!(events, ["PropertiesChanged Revision", "ObjectsAdded card l", "Complete"]);
}

/// The protocol has no reset: a purge and a rebuild of the indexes are reported as differences.
#[test]
fn a_reset_removes_the_contacts_that_vanished() {
    let Some(bus) = Bus::new("a_reset_removes_the_contacts_that_vanished") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("p1", "Anna"), &card("p2", "Berta"), &card("p3", "Carl")]).unwrap();
    let view = open_view(&client, &book, "");
    call_view(&client, &view, "Start");
    let first = ["Progress", "ObjectsAdded card p1 card p2 card p3", "Complete"];
    assert_eq!(messages_until_complete(&client), first);
    let check = |expected: &[&str]| {
        let mut events = Vec::new();
        // The steps of a purge may cause several resets.
        while !expected.iter().all(|one| events.iter().any(|event| event == one)) {
            events.extend(messages_until_complete(&client));
            assert!(!events.iter().any(|event| event.starts_with("ObjectsAdded")), "{events:?}");
        }
    };

    let mut store = bus.store();
    let reader = store.open_reader().unwrap();
    let purged = reader.items().find_by_uid(None, "p1").unwrap()[0].handle;
    drop(reader);
    // A reader of the service may keep the purge from its end, but not its effect.
    let _finished = store.purge(&mut Operation::new("purge", "", 0), &[purged]);
    check(&["ObjectsModified card p2 card p3", "ObjectsRemoved p1"]);
    // What comes with a further contact, or after it, is not of the purge.
    let mut events = call_book(&client, &book, "CreateContacts", &[&card("p4", "Dora")]);
    while !events.iter().any(|event| event == "ObjectsAdded card p4") {
        events = messages_until_complete(&client);
    }
    store.rebuild().unwrap();
    check(&["ObjectsModified card p2 card p3 card p4"]);
}

/// Each client gets the events of its own views only, and cannot call the views of another client.
#[test]
fn a_view_belongs_to_its_client() {
    let Some(bus) = Bus::new("a_view_belongs_to_its_client") else { return };
    let _service = bus.serve(bus.options());
    let (writer, reader) = (bus.client(), bus.client());
    let book = writer.new_book("friends", "");
    let reader_view = open_view(&reader, &book, "");
    call_view(&reader, &reader_view, "Start");
    assert_eq!(messages_until_complete(&reader).last().unwrap(), "Complete");
    let error_reply = writer.call(&reader_view, "AddressBookView", "Stop", &()).unwrap_err();
    assert!(error_reply.name.ends_with("AccessDenied"), "{error_reply:?}");
    // The writer gets no events of the reader's view.
    let before = call_book(&writer, &book, "CreateContacts", &[&card("a", "Anna")]);
    assert_eq!(before, ["PropertiesChanged Revision"]);
    let events = messages_until_complete(&reader);
    assert_eq!(events, ["PropertiesChanged Revision", "ObjectsAdded card a", "Complete"]);
}

/// The views of a client that disconnects without closing them end.
#[test]
fn the_views_of_a_lost_client_end() {
    let Some(bus) = Bus::new("the_views_of_a_lost_client_end") else { return };
    let _service = bus.serve(bus.options());
    let (stays, dies) = (bus.client(), bus.client());
    let book = stays.new_book("friends", "");
    let views = || -> usize {
        let interface = "org.freedesktop.DBus.Introspectable";
        let path = "/org/gnome/evolution/dataserver";
        let (_, reply) = stays.call_service(BOOKS, path, interface, "Introspect", &());
        let xml: String = reply.unwrap().body().deserialize().unwrap();
        xml.matches("AddressBookView").count()
    };
    for _ in 0..20 {
        call_view(&dies, &open_view(&dies, &book, ""), "Start");
    }
    assert_eq!(views(), 1);
    let name = dies.name();
    stays.listen(&format!("type='signal',member='NameOwnerChanged',arg0='{name}'"));
    drop(dies);
    while message_summaries(&[stays.next()]) != ["NameOwnerChanged"] {}
    // The bus reports the end of the client to the service before it delivers this call.
    assert_eq!(views(), 0);
    assert_eq!(
        call_book(&stays, &book, "CreateContacts", &[&card("a", "Anna")]),
        ["PropertiesChanged Revision"]
    );
}

/// A large answer comes in several signals. A writer does not wait for them; its change is reported
/// after them.
#[test]
fn a_large_answer_delays_no_other_call() {
    let Some(bus) = Bus::new("a_large_answer_delays_no_other_call") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let note = format!("NOTE:{}\r\nEND:", "x".repeat(4000));
    let cards: Vec<String> =
        (0..600).map(|n| card(&format!("u{n:03}"), "Name").replace("END:", &note)).collect();
    let cards: Vec<&str> = cards.iter().map(String::as_str).collect();
    client.add(&book, &cards).unwrap();
    assert_eq!(count_view_contacts(&client, &book), 600);
    let view = open_view(&client, &book, "(exists \"full_name\")");
    let (start, remove) = ("Start", "RemoveContacts");
    client.post(&[
        (&view, "AddressBookView", start, None),
        (&book, "AddressBook", remove, Some(&["u599"])),
    ]);
    let (mut all, mut replies) = (Vec::new(), 0);
    while replies < 2 {
        all.extend(message_summaries(&[client.next()]));
        replies += usize::from(all.last().is_some_and(|last| last == "reply"));
    }
    assert!(!all.contains(&"Complete".to_string()), "{all:?}");
    all = messages_until_complete(&client);
    while !all.contains(&"ObjectsRemoved u599".to_string()) {
        all = messages_until_complete(&client);
    }
    call_view(&client, &view, "Dispose");
    assert_eq!(count_view_contacts(&client, &book), 599);
}

/// Returns the number of contacts that a new view reports; checks the size of each signal.
fn count_view_contacts(client: &Client, book: &str) -> usize {
    let view = open_view(client, book, "");
    call_view(client, &view, "Start");
    let (mut contacts, mut pieces) = (0, 0);
    loop {
        let message = client.next();
        match message_summaries(std::slice::from_ref(&message))[0].split(' ').next().unwrap() {
            "ObjectsAdded" => {
                assert!(message.data().len() < 300 << 10);
                contacts += message.body().deserialize::<Vec<String>>().unwrap().len() / 2;
                pieces += 1;
            }
            "Complete" => break,
            _ => {}
        }
    }
    assert!(pieces > 5, "{pieces}");
    call_view(client, &view, "Dispose");
    contacts
}
