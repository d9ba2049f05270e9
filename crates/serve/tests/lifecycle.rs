//! Tests of the beginning and the end of a service.

use crate::bus::{BOOKS, Bus, MANAGER, SOURCES, card, message_summaries};
use larder_serve::eds::{Error, ServiceExit, service_files};
use larder_store::{BatchChange, CollectionType, ItemPut, Operation, Precondition};
use std::path::Path;
use std::time::Duration;
use zbus::OwnedObjectPath;

#[test]
fn the_service_ends_when_it_is_stopped() {
    let Some(bus) = Bus::new("the_service_ends_when_it_is_stopped") else { return };
    let service = bus.serve(bus.options());
    assert!(service.ready);
    bus.client().open("system-address-book");
    service.stop.stop();
    assert_eq!(service.end().unwrap(), ServiceExit::Stopped);
}

/// A stop takes effect even while the bus accepts none of the service's messages.
#[test]
fn the_service_ends_although_the_bus_accepts_nothing() {
    let Some(bus) = Bus::new("the_service_ends_although_the_bus_accepts_nothing") else { return };
    let service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let view = client.call(&book, "AddressBook", "GetView", &"").unwrap();
    let view: OwnedObjectPath = view.body().deserialize().unwrap();
    client.call(view.as_str(), "AddressBookView", "Start", &()).unwrap();
    while message_summaries(&[client.next()]) != ["Complete"] {}
    bus.freeze();
    // More bytes than the socket between the service and the bus can buffer.
    let note = format!("NOTE:{}\r\nEND:", "x".repeat(4 << 20));
    let mut store = bus.store();
    let extractor = store.extractor_for_collection("friends", CollectionType::AddressBook).unwrap();
    let text = card("a", "Anna").replace("END:", &note);
    let put = ItemPut {
        collection: "friends".into(),
        uid: "a".into(),
        derived_uid: false,
        parsed: extractor.parse_contact(text.into_bytes()).unwrap(),
        precondition: Precondition::Absent,
    };
    store.apply(&mut Operation::new("add", "", 0), vec![BatchChange::Put(put)]).unwrap();
    service.stop.stop();
    assert_eq!(service.end().unwrap(), ServiceExit::Stopped);
}

#[test]
fn a_second_service_replaces_the_first() {
    let Some(bus) = Bus::new("a_second_service_replaces_the_first") else { return };
    let first = bus.serve(bus.options());
    let second = bus.serve(bus.options());
    assert!(matches!(first.end().unwrap(), ServiceExit::NameReplaced(_)));
    assert!(second.ready);
    bus.client().open("system-address-book");
}

/// The bus may start one process for each name. One process owns all names in the end, and the
/// other one ends without taking them.
#[test]
fn one_of_two_activated_services_owns_all_names() {
    let Some(bus) = Bus::new("one_of_two_activated_services_owns_all_names") else { return };
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
    bus.client().call_service(SOURCES, MANAGER, interface, "Ping", &()).1.unwrap();
    stays.stop.stop();
    assert_eq!(stays.end().unwrap(), ServiceExit::Stopped);
}

/// The service does not wait for a name whose owner keeps it.
#[test]
fn a_name_that_is_not_given_up_is_an_error() {
    let Some(bus) = Bus::new("a_name_that_is_not_given_up_is_an_error") else { return };
    let owner = bus.client();
    let dbus = "org.freedesktop.DBus";
    owner
        .call_service(dbus, "/org/freedesktop/DBus", dbus, "RequestName", &(BOOKS, 4u32))
        .1
        .unwrap();
    let service = bus.serve(bus.options());
    assert!(!service.ready);
    assert!(matches!(service.end(), Err(Error::Owned(name)) if name == BOOKS));
}

#[test]
fn the_service_ends_with_its_bus() {
    let Some(bus) = Bus::new("the_service_ends_with_its_bus") else { return };
    let service = bus.serve(bus.options());
    drop(bus);
    assert_eq!(service.end().unwrap(), ServiceExit::BusGone);
}

#[test]
fn a_missing_bus_or_store_is_an_error() {
    let Some(bus) = Bus::new("a_missing_bus_or_store_is_an_error") else { return };
    let nowhere = format!("unix:path={}/nowhere", bus.dir.path().display());
    let service = bus.serve(larder_serve::eds::EdsOptions { address: nowhere, ..bus.options() });
    assert!(matches!(service.end(), Err(Error::Bus(_))));
    let mut options = bus.options();
    options.dir = bus.dir.path().join("none");
    options.store.create = false;
    assert!(matches!(bus.serve(options).end(), Err(Error::Store(_))));
}

/// The service stays while a client is connected, and ends some time after the last one is gone.
#[test]
fn an_idle_service_ends_after_its_last_client() {
    let Some(bus) = Bus::new("an_idle_service_ends_after_its_last_client") else { return };
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
fn service_files_quote_paths() {
    let files = service_files(Path::new("/opt/my \"apps\"/larder"), Path::new("/home/a/d"));
    let [(sources, _), (books, text)] = &files[..] else { panic!("{files:?}") };
    assert_eq!(sources, "org.gnome.evolution.dataserver.Sources5.service");
    assert_eq!(*books, format!("{BOOKS}.service"));
    let expect = "[D-BUS Service]\nName=org.gnome.evolution.dataserver.AddressBook10\n\
        Exec=\"/opt/my \\\"apps\\\"/larder\" --quiet --data-dir \"/home/a/d\" serve --eds --idle 10\n";
    assert_eq!(text, expect);
}

/// A change that cannot be stored is refused, and the service creates no new store in place of one
/// that was moved away.
#[test]
fn a_store_that_is_moved_away_refuses_changes() {
    let Some(bus) = Bus::new("a_store_that_is_moved_away_refuses_changes") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    client.add(&book, &[&card("a", "Anna")]).unwrap();
    let away = bus.dir.path().join("away");
    std::fs::rename(bus.data(), &away).unwrap();
    let error_reply = client.add(&book, &[&card("b", "Berta")]).unwrap_err();
    assert!(error_reply.text.contains("store"), "{error_reply:?}");
    assert!(!bus.data().exists());
    std::fs::rename(&away, bus.data()).unwrap();
    assert_eq!(client.uids(&book, "").unwrap(), ["a"]);
    client.add(&book, &[&card("b", "Berta")]).unwrap();
    std::fs::remove_dir_all(bus.data()).unwrap();
    client.add(&book, &[&card("c", "Chris")]).unwrap_err();
    assert!(!bus.data().exists());
}
