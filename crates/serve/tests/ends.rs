//! How a service begins and ends.

use crate::bus::{BOOKS, Bus, MANAGER, SOURCES, card, shown};
use larder_serve::eds::{Error, ServiceExit, service_files};
use larder_store::{BatchChange, CollectionType, ItemPut, Operation, Precondition};
use std::path::Path;
use std::time::Duration;
use zbus::OwnedObjectPath;

#[test]
fn it_ends_when_it_is_asked_to() {
    let Some(bus) = Bus::new("it_ends_when_it_is_asked_to") else { return };
    let service = bus.serve(bus.options());
    assert!(service.ready);
    bus.client().open("system-address-book");
    service.stop.stop();
    assert_eq!(service.end().unwrap(), ServiceExit::Stopped);
}

/// It ends even while nobody reads what it has to say.
#[test]
fn it_ends_when_the_bus_is_stuck() {
    let Some(bus) = Bus::new("it_ends_when_the_bus_is_stuck") else { return };
    let service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let view = client.call(&book, "AddressBook", "GetView", &"").unwrap();
    let view: OwnedObjectPath = view.body().deserialize().unwrap();
    client.call(view.as_str(), "AddressBookView", "Start", &()).unwrap();
    while shown(&[client.next()]) != ["Complete"] {}
    bus.freeze();
    // More than what lies between it and the bus can hold.
    let note = format!("NOTE:{}\r\nEND:", "x".repeat(4 << 20));
    let mut store = bus.store();
    let deriver = store.extractor_for_collection("friends", CollectionType::AddressBook).unwrap();
    let text = card("a", "Anna").replace("END:", &note);
    let put = ItemPut {
        collection: "friends".into(),
        uid: "a".into(),
        derived_uid: false,
        parsed: deriver.parse_contact(text.into_bytes()).unwrap(),
        precondition: Precondition::Absent,
    };
    store.apply(&mut Operation::new("add", "", 0), vec![BatchChange::Put(put)]).unwrap();
    service.stop.stop();
    assert_eq!(service.end().unwrap(), ServiceExit::Stopped);
}

#[test]
fn it_gives_way_to_another() {
    let Some(bus) = Bus::new("it_gives_way_to_another") else { return };
    let first = bus.serve(bus.options());
    let second = bus.serve(bus.options());
    assert!(matches!(first.end().unwrap(), ServiceExit::NameReplaced(_)));
    assert!(second.ready);
    bus.client().open("system-address-book");
}

/// The bus may start one for each name: one of them has all names in the end, and the other leaves
/// it alone.
#[test]
fn two_that_the_bus_started() {
    let Some(bus) = Bus::new("two_that_the_bus_started") else { return };
    let idle = Some(Duration::from_secs(60));
    let options = || larder_serve::eds::EdsOptions { idle_timeout: idle, ..bus.options() };
    drop(bus.store());
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| bus.serve(options()));
        (bus.serve(options()), first.join().unwrap())
    });
    assert!(first.ready != second.ready);
    let (stays, goes) = if first.ready { (first, second) } else { (second, first) };
    assert!(matches!(goes.end().unwrap(), ServiceExit::NameTaken(_)));
    bus.client().open("system-address-book");
    let interface = "org.freedesktop.DBus.Peer";
    bus.client().ask(SOURCES, MANAGER, interface, "Ping", &()).1.unwrap();
    stays.stop.stop();
    assert_eq!(stays.end().unwrap(), ServiceExit::Stopped);
}

/// A name whose owner keeps it is not waited for.
#[test]
fn it_does_not_wait_for_a_name() {
    let Some(bus) = Bus::new("it_does_not_wait_for_a_name") else { return };
    let owner = bus.client();
    let dbus = "org.freedesktop.DBus";
    owner.ask(dbus, "/org/freedesktop/DBus", dbus, "RequestName", &(BOOKS, 4u32)).1.unwrap();
    let service = bus.serve(bus.options());
    assert!(!service.ready);
    assert!(matches!(service.end(), Err(Error::Owned(name)) if name == BOOKS));
}

#[test]
fn it_ends_with_its_bus() {
    let Some(bus) = Bus::new("it_ends_with_its_bus") else { return };
    let service = bus.serve(bus.options());
    drop(bus);
    assert_eq!(service.end().unwrap(), ServiceExit::BusGone);
}

#[test]
fn no_bus_and_no_store() {
    let Some(bus) = Bus::new("no_bus_and_no_store") else { return };
    let nowhere = format!("unix:path={}/nowhere", bus.dir.path().display());
    let service = bus.serve(larder_serve::eds::EdsOptions { address: nowhere, ..bus.options() });
    assert!(matches!(service.end(), Err(Error::Bus(_))));
    let mut options = bus.options();
    options.dir = bus.dir.path().join("none");
    options.store.create = false;
    assert!(matches!(bus.serve(options).end(), Err(Error::Store(_))));
}

/// While a client is there it stays; a while after the last has gone it ends.
#[test]
fn it_ends_when_nobody_is_there() {
    let Some(bus) = Bus::new("it_ends_when_nobody_is_there") else { return };
    let client = bus.client();
    let idle = Some(Duration::from_secs(1));
    let service = bus.serve(larder_serve::eds::EdsOptions { idle_timeout: idle, ..bus.options() });
    client.open("system-address-book");
    let book = client.open("system-address-book");
    assert_eq!(client.uids(&book, "").unwrap().len(), 0);
    drop(client);
    assert_eq!(service.end().unwrap(), ServiceExit::Idle);
}

#[test]
fn files_for_the_bus() {
    let files = service_files(Path::new("/opt/my \"apps\"/larder"), Path::new("/home/a/d"));
    let [(sources, _), (books, text)] = &files[..] else { panic!("{files:?}") };
    assert_eq!(sources, "org.gnome.evolution.dataserver.Sources5.service");
    assert_eq!(*books, format!("{BOOKS}.service"));
    let expect = "[D-BUS Service]\nName=org.gnome.evolution.dataserver.AddressBook10\n\
        Exec=\"/opt/my \\\"apps\\\"/larder\" --quiet --data-dir \"/home/a/d\" serve --eds --idle 10\n";
    assert_eq!(text, expect);
}

/// What cannot be kept is not promised, and no store is begun where one was taken away.
#[test]
fn a_store_that_goes_away() {
    let Some(bus) = Bus::new("a_store_that_goes_away") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let away = bus.dir.path().join("away");
    std::fs::rename(bus.data(), &away).unwrap();
    let refused = client.add(&book, &[&card("b", "Berta")]).unwrap_err();
    assert!(refused.text.contains("store"), "{refused:?}");
    assert!(!bus.data().exists());
    std::fs::rename(&away, bus.data()).unwrap();
    assert_eq!(client.uids(&book, "").unwrap(), ["a"]);
    client.add(&book, &[&card("b", "Berta")]).unwrap();
    std::fs::remove_dir_all(bus.data()).unwrap();
    client.add(&book, &[&card("c", "Chris")]).unwrap_err();
    assert!(!bus.data().exists());
}
