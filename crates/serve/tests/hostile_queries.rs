//! Queries that take long: they delay only the client that sends them.

use crate::bus::{Bus, card};
use std::sync::atomic::{AtomicBool, Ordering};
use zbus::OwnedObjectPath;

/// Returns a query of different terms that no index answers.
fn slow_query(function: &str, terms: usize) -> String {
    let terms: Vec<String> = (0..terms)
        .map(|n| format!("(not (not ({function} \"x-evolution-any-field\" \"zq{n}\")))"))
        .collect();
    format!("(or {})", terms.join(" "))
}

/// Calls of other clients are answered while a query runs, before its answer. The calls of the
/// client that sent it are answered in their order.
#[test]
fn a_slow_query_delays_no_other_client() {
    let Some(bus) = Bus::new("a_slow_query_delays_no_other_client") else { return };
    let _service = bus.serve(bus.options());
    let other = bus.client();
    let book = other.new_book("friends", "");
    let cards: Vec<String> = (0..200).map(|n| card(&format!("u{n:03}"), "Anna")).collect();
    other.add(&book, &cards.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let (is_answered, query) = (AtomicBool::new(false), slow_query("contains", 800));
    let calls = std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let client = bus.client();
            let before = client.uids(&book, "(contains \"full_name\" \"anna\")").unwrap();
            assert_eq!(before.len(), 200);
            let answer = client.uids(&book, &query);
            is_answered.store(true, Ordering::SeqCst);
            assert_eq!(answer.unwrap(), Vec::<String>::new());
        });
        let mut calls = 0;
        while !is_answered.load(Ordering::SeqCst) && !slow.is_finished() {
            assert!(other.get(&book, "u199").unwrap().contains("Anna"));
            assert_eq!(other.uids(&book, "(is \"id\" \"u001\")").unwrap(), ["u001"]);
            calls += 1;
        }
        slow.join().unwrap();
        calls
    });
    assert!(calls > 10, "only {calls} calls were answered during a slow query");
}

#[test]
fn a_query_over_its_limits_is_refused() {
    let Some(bus) = Bus::new("a_query_over_its_limits_is_refused") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let book = client.new_book("friends", "");
    let long = format!("(is \"note\" \"{}\")", "x".repeat(1 << 20));
    for method in ["GetContactList", "GetContactListUids", "GetView"] {
        let error = client.call(&book, "AddressBook", method, &long.as_str()).unwrap_err();
        assert!(error.text.len() < 200, "{} bytes", error.text.len());
        assert!(error.name.ends_with("Code16"), "{error:?}");
    }
}

/// A view whose query is too expensive for a change ends with an error, and a writer goes on.
#[test]
fn a_view_that_is_too_expensive_is_stopped() {
    let Some(bus) = Bus::new("a_view_that_is_too_expensive_is_stopped") else { return };
    let _service = bus.serve(bus.options());
    let (client, writer) = (bus.client(), bus.client());
    let book = writer.new_book("friends", "");
    let query = slow_query("endswith", 1500);
    let reply = client.call(&book, "AddressBook", "GetView", &query.as_str()).unwrap();
    let view: OwnedObjectPath = reply.body().deserialize().unwrap();
    client.call(view.as_str(), "AddressBookView", "Start", &()).unwrap();
    let complete = || loop {
        let message = client.next();
        if message.header().member().is_some_and(|member| member.as_str() == "Complete") {
            let (name, text): (String, String) = message.body().deserialize().unwrap();
            return (name, text);
        }
    };
    assert_eq!(complete(), (String::new(), String::new()));
    let note = format!("NOTE:{}\r\nEND:", "x".repeat(150_000));
    writer.add(&book, &[&card("large", "Large").replace("END:", &note)]).unwrap();
    let (name, text) = complete();
    assert!(name.ends_with("Code15") && text.contains("too expensive"), "{name}: {text}");
    writer.add(&book, &[&card("small", "Small")]).unwrap();
    assert_eq!(client.uids(&book, "").unwrap(), ["large", "small"]);
}
