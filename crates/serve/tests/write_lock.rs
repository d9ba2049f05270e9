//! Changes while another program holds the write lock: they delay only the clients that make them.

use crate::bus::{Bus, Client, card};
use std::fs::{File, OpenOptions, TryLockError};
use zbus::message::Type;

fn open_lock_file(bus: &Bus, name: &str) -> File {
    OpenOptions::new().read(true).write(true).open(bus.data().join(name)).unwrap()
}

/// Returns whether somebody waits for the write lock.
fn has_waiter(queue: &File) -> bool {
    match queue.try_lock() {
        Ok(()) => {
            queue.unlock().unwrap();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn other_clients_are_answered_while_a_change_waits_for_the_write_lock() {
    let test = "other_clients_are_answered_while_a_change_waits_for_the_write_lock";
    let Some(bus) = Bus::new(test) else { return };
    let _service = bus.serve(bus.options());
    let (writer, other) = (bus.client(), bus.client());
    let book = other.new_book("friends", "");
    other.add(&book, &[&card("a", "Anna")]).unwrap();
    let (lock, queue) =
        (open_lock_file(&bus, "data.lock"), open_lock_file(&bus, "data.lock-queue"));
    lock.lock().unwrap();
    let bob = card("b", "Bob");
    writer.post(&[(&book, "AddressBook", "CreateContacts", Some(&[&bob]))]);
    while !has_waiter(&queue) {
        assert!(other.get(&book, "a").is_ok());
    }
    assert!(other.get(&book, "a").is_ok());
    assert_eq!(other.uids(&book, "").unwrap(), ["a"]);
    lock.unlock().unwrap();
    while writer.next().message_type() != Type::MethodReturn {}
    assert_eq!(other.uids(&book, "").unwrap(), ["a", "b"]);
}

/// A removal of several contacts, one of which is removed while it waits, removes none and says so.
#[test]
fn a_removal_that_removes_nothing_is_an_error() {
    let Some(bus) = Bus::new("a_removal_that_removes_nothing_is_an_error") else { return };
    let _service = bus.serve(bus.options());
    let (first, second, other) = (bus.client(), bus.client(), bus.client());
    let book = other.new_book("friends", "");
    other.add(&book, &[&card("a", "Anna"), &card("b", "Bob")]).unwrap();
    let lock = open_lock_file(&bus, "data.lock");
    lock.lock().unwrap();
    for (client, uids) in [(&first, &["a"][..]), (&second, &["a", "b"][..])] {
        client.post(&[(&book, "AddressBook", "RemoveContacts", Some(uids))]);
        // The bus has passed the call on when it answers the next one, and the service has read the
        // contacts when it answers another client.
        client.listen("type='signal'");
        assert!(other.get(&book, "a").is_ok());
    }
    lock.unlock().unwrap();
    let reply_to = |client: &Client| loop {
        let message = client.next();
        if message.message_type() != Type::Signal {
            break message;
        }
    };
    assert_eq!(reply_to(&first).message_type(), Type::MethodReturn);
    let reply = reply_to(&second);
    assert_eq!(reply.message_type(), Type::Error);
    let text: String = reply.body().deserialize().unwrap();
    assert_eq!(text, "Cannot remove contacts: A contact was removed meanwhile");
    assert_eq!(other.uids(&book, "").unwrap(), ["b"]);
}

#[test]
fn the_calls_that_wait_for_a_change_are_bounded() {
    let Some(bus) = Bus::new("the_calls_that_wait_for_a_change_are_bounded") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let lock = open_lock_file(&bus, "data.lock");
    lock.lock().unwrap();
    let anna = card("a", "Anna");
    client.post(&[(&book, "AddressBook", "CreateContacts", Some(&[&anna]))]);
    let calls = vec![(book.as_str(), "AddressBook", "Open", None); 1_010];
    client.post(&calls);
    for _ in 0..10 {
        let reply = client.next();
        assert_eq!(reply.message_type(), Type::Error);
        let name = reply.header().error_name().unwrap().to_string();
        assert_eq!(name, "org.freedesktop.DBus.Error.LimitsExceeded");
        let text: String = reply.body().deserialize().unwrap();
        assert_eq!(text, "1000 calls of this client wait for an answer");
    }
    lock.unlock().unwrap();
    let mut replies = 0;
    while replies < 1_001 {
        match client.next().message_type() {
            Type::MethodReturn => replies += 1,
            Type::Signal => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A change that is stopped while it waits is not made, and does not delay the end for long.
#[test]
fn the_service_ends_although_a_change_waits() {
    let Some(bus) = Bus::new("the_service_ends_although_a_change_waits") else { return };
    let service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let (lock, queue) =
        (open_lock_file(&bus, "data.lock"), open_lock_file(&bus, "data.lock-queue"));
    lock.lock().unwrap();
    let anna = card("a", "Anna");
    client.post(&[(&book, "AddressBook", "CreateContacts", Some(&[&anna]))]);
    let other = bus.client();
    while !has_waiter(&queue) {
        assert!(other.get(&book, "none").is_err());
    }
    service.stop.stop();
    service.end().unwrap();
}
