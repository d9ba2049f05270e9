//! Views: what comes when, to whom, and what ends with a client.

use crate::bus::{BOOKS, Bus, Client, EDS, card, shown};
use zbus::{Message, OwnedObjectPath};

/// A view on a question, not started.
fn view(client: &Client, book: &str, query: &str) -> String {
    let reply = client.call(book, "AddressBook", "GetView", &query).unwrap();
    reply.body().deserialize::<OwnedObjectPath>().unwrap().to_string()
}

fn tell(client: &Client, view: &str, method: &str) {
    client.call(view, "AddressBookView", method, &()).unwrap();
}

/// What comes until an answer, or a batch, is whole.
fn until_complete(client: &Client) -> Vec<String> {
    let mut messages = Vec::new();
    loop {
        messages.push(client.next());
        if messages.last().is_some_and(|last| shown(std::slice::from_ref(last)) == ["Complete"]) {
            return shown(&messages);
        }
    }
}

/// Calls a method of a book that takes texts: what came before the reply.
fn write(client: &Client, book: &str, method: &str, texts: &[&str]) -> Vec<String> {
    let interface = format!("{EDS}.AddressBook");
    let (before, reply) = client.ask(BOOKS, book, &interface, method, &(texts, 0u32));
    reply.unwrap();
    shown(&before)
}

#[test]
fn news_come_before_the_reply() {
    let Some(bus) = Bus::new("news_come_before_the_reply") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let view = view(&client, &book, "(contains \"full_name\" \"an\")");
    client.uids(&book, "").unwrap();
    tell(&client, &view, "Start");
    assert_eq!(until_complete(&client), ["Progress", "ObjectsAdded card a", "Complete"]);
    let revision = "PropertiesChanged Revision";
    let check = |method: &str, texts: &[&str], expect: &[&str]| {
        let told = write(&client, &book, method, texts);
        let all: Vec<&str> = [&[revision], expect, &["Complete"]].concat();
        assert_eq!(told, all, "{method} {texts:?}");
    };
    check("CreateContacts", &[&card("b", "Anton")], &["ObjectsAdded card b"]);
    check("CreateContacts", &[&card("c", "Otto")], &[]);
    check("ModifyContacts", &[&card("a", "Anne")], &["ObjectsModified card a"]);
    check("ModifyContacts", &[&card("c", "Hanno")], &["ObjectsAdded card c"]);
    check("ModifyContacts", &[&card("c", "Otto")], &["ObjectsRemoved c"]);
    check("RemoveContacts", &["c"], &[]);
    check("RemoveContacts", &["a", "b"], &["ObjectsRemoved a b"]);
    // What is stopped is silent, and begins anew.
    tell(&client, &view, "Stop");
    assert_eq!(write(&client, &book, "CreateContacts", &[&card("d", "Dan")]), [revision]);
    tell(&client, &view, "Start");
    assert_eq!(until_complete(&client), ["Progress", "ObjectsAdded card d", "Complete"]);
    tell(&client, &view, "Dispose");
    assert_eq!(write(&client, &book, "RemoveContacts", &["d"]), [revision]);
    let gone = client.call(&view, "AddressBookView", "Start", &()).unwrap_err();
    assert!(gone.name.ends_with("UnknownObject"), "{gone:?}");
}

#[test]
fn what_a_client_wants_of_a_contact() {
    let Some(bus) = Bus::new("what_a_client_wants_of_a_contact") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna"), &card("b", "Berta")]).unwrap();
    let check = |fields: &[&str], flags: u32, expect: &[&str]| {
        let view = view(&client, &book, "");
        client.call(&view, "AddressBookView", "SetFieldsOfInterest", &fields).unwrap();
        client.call(&view, "AddressBookView", "SetFlags", &flags).unwrap();
        tell(&client, &view, "Start");
        assert_eq!(until_complete(&client), expect, "{fields:?}");
        tell(&client, &view, "Dispose");
    };
    check(&[], 1, &["Progress", "ObjectsAdded card a card b", "Complete"]);
    check(&["x-evolution-uids-only"], 1, &["Progress", "ObjectsAdded a b", "Complete"]);
    check(&[], 0, &["Complete"]);
    let short = view(&client, &book, "");
    client.call(&short, "AddressBookView", "SetFieldsOfInterest", &vec!["id", "Rev"]).unwrap();
    tell(&client, &short, "Start");
    let added: Message = std::iter::from_fn(|| Some(client.next()))
        .find(|message| shown(std::slice::from_ref(message))[0].starts_with("ObjectsAdded"))
        .unwrap();
    let texts: Vec<String> = added.body().deserialize().unwrap();
    assert!(texts[0].contains("\r\nUID:a\r\n") && !texts[0].contains("Anna"), "{texts:?}");
}

/// Two clients are told the same, each of its own view, and neither can touch the other's.
#[test]
fn two_clients() {
    let Some(bus) = Bus::new("two_clients") else { return };
    let _service = bus.serve(bus.options());
    let (writer, reader) = (bus.client(), bus.client());
    let book = writer.new_book("friends", "");
    let seen = view(&reader, &book, "");
    tell(&reader, &seen, "Start");
    assert_eq!(until_complete(&reader).last().unwrap(), "Complete");
    let refused = writer.call(&seen, "AddressBookView", "Stop", &()).unwrap_err();
    assert!(refused.name.ends_with("AccessDenied"), "{refused:?}");
    // The writer is not told what the reader is.
    let before = write(&writer, &book, "CreateContacts", &[&card("a", "Anna")]);
    assert_eq!(before, ["PropertiesChanged Revision"]);
    let told = until_complete(&reader);
    assert_eq!(told, ["PropertiesChanged Revision", "ObjectsAdded card a", "Complete"]);
}

/// A client that goes without a word leaves nothing behind.
#[test]
fn a_client_that_dies() {
    let Some(bus) = Bus::new("a_client_that_dies") else { return };
    let _service = bus.serve(bus.options());
    let (stays, dies) = (bus.client(), bus.client());
    let book = stays.new_book("friends", "");
    let views = || -> usize {
        let interface = "org.freedesktop.DBus.Introspectable";
        let path = "/org/gnome/evolution/dataserver";
        let (_, reply) = stays.ask(BOOKS, path, interface, "Introspect", &());
        let xml: String = reply.unwrap().body().deserialize().unwrap();
        xml.matches("AddressBookView").count()
    };
    for _ in 0..20 {
        tell(&dies, &view(&dies, &book, ""), "Start");
    }
    assert_eq!(views(), 1);
    let name = dies.name();
    stays.listen(&format!("type='signal',member='NameOwnerChanged',arg0='{name}'"));
    drop(dies);
    while shown(&[stays.next()]) != ["NameOwnerChanged"] {}
    // The service heard it before it hears this.
    assert_eq!(views(), 0);
    assert_eq!(
        write(&stays, &book, "CreateContacts", &[&card("a", "Anna")]),
        ["PropertiesChanged Revision"]
    );
}

/// Many contacts come in pieces, and who changes one meanwhile does not wait for them; the change
/// is told behind them.
#[test]
fn many_contacts() {
    let Some(bus) = Bus::new("many_contacts") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let note = format!("NOTE:{}\r\nEND:", "x".repeat(4000));
    let cards: Vec<String> =
        (0..600).map(|n| card(&format!("u{n:03}"), "Name").replace("END:", &note)).collect();
    let cards: Vec<&str> = cards.iter().map(String::as_str).collect();
    client.add(&book, &cards).unwrap();
    assert_eq!(view_again(&client, &book), 600);
    let view = view(&client, &book, "(exists \"full_name\")");
    let (start, remove) = ("Start", "RemoveContacts");
    client.post(&[
        (&view, "AddressBookView", start, None),
        (&book, "AddressBook", remove, Some(&["u599"])),
    ]);
    let (mut all, mut replies) = (Vec::new(), 0);
    while replies < 2 {
        all.extend(shown(&[client.next()]));
        replies += usize::from(all.last().is_some_and(|last| last == "reply"));
    }
    assert!(!all.contains(&"Complete".to_string()), "{all:?}");
    all = until_complete(&client);
    while !all.contains(&"ObjectsRemoved u599".to_string()) {
        all = until_complete(&client);
    }
    tell(&client, &view, "Dispose");
    assert_eq!(view_again(&client, &book), 599);
}

/// How many contacts a new view is told of; no signal is larger than it should be.
fn view_again(client: &Client, book: &str) -> usize {
    let view = view(client, book, "");
    tell(client, &view, "Start");
    let (mut contacts, mut pieces) = (0, 0);
    loop {
        let message = client.next();
        match shown(std::slice::from_ref(&message))[0].split(' ').next().unwrap() {
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
    tell(client, &view, "Dispose");
    contacts
}
