//! The correspondents of a maildir are those of a naive count over its messages.

use crate::mailbox::Mailbox;
use larder_format::message::MessageDate;
use larder_query::{Correspondent, CorrespondentQuery, CorrespondentText, find_correspondents};
use larder_sync::MailSyncOptions;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

/// The current time of the tests, and a time that is not recent.
const NOW: i64 = 1_700_000_000;
const DAY: i64 = 86_400;
/// Addresses as written.
const ADDRESSES: [&str; 7] = [
    "me@my.example",
    "anna@b.example",
    "Anna@B.example",
    "anna@b.example.org",
    "anton@c.example",
    "no-address",
    "root@localhost",
];
const NAMES: [&str; 5] = ["", "Anna Berg", "Anna Bö", "\"Berg, Anna\"", "Anton von Anhalt"];
const FIELDS: [&str; 6] = ["From", "To", "Cc", "Bcc", "Reply-To", "Sender"];

#[derive(Debug, Clone)]
struct TestMessage {
    days_ago: i64,
    people: Vec<(&'static str, &'static str, &'static str)>,
    is_removed: bool,
}

fn arb_message() -> impl Strategy<Value = TestMessage> {
    let person = (select(&FIELDS[..]), select(&NAMES[..]), select(&ADDRESSES[..]));
    (select(&[1_i64, 2, 14, 16, 40][..]), vec(person, 0..5), prop::bool::weighted(0.2))
        .prop_map(|(days_ago, people, is_removed)| TestMessage { days_ago, people, is_removed })
}

impl TestMessage {
    /// No two messages have the same date.
    fn date(&self, number: usize) -> i64 {
        NOW - self.days_ago * DAY - i64::try_from(number).unwrap()
    }

    fn text(&self, number: usize) -> String {
        let date = MessageDate { seconds: self.date(number), offset_minutes: 0 }.to_rfc3339();
        let month = if &date[5..7] == "10" { "Oct" } else { "Nov" };
        let (day, year, time) = (&date[8..10], &date[..4], &date[11..19]);
        let mut text = format!("Message-ID: <m{number}@x>\n");
        text.push_str(&format!("Date: {day} {month} {year} {time} +0000\n"));
        for (field, name, address) in &self.people {
            match *name {
                "" => text.push_str(&format!("{field}: {address}\n")),
                name => text.push_str(&format!("{field}: {name} <{address}>\n")),
            }
        }
        text + "\nfoo\n"
    }
}

/// Counts the correspondents of all messages that are not removed.
fn count_naively(messages: &[TestMessage]) -> Vec<Correspondent> {
    let mut found: BTreeMap<String, (Correspondent, Option<(i64, usize)>)> = BTreeMap::new();
    for (number, message) in messages.iter().enumerate().filter(|(_, one)| !one.is_removed) {
        let date = message.date(number);
        let is_personal = message.people.iter().any(|(.., address)| *address == ADDRESSES[0]);
        let mut met = Vec::new();
        for (_, name, address) in &message.people {
            let address = address.to_ascii_lowercase();
            if !address.contains('@') {
                continue;
            }
            let (one, named_at) = found.entry(address.clone()).or_insert_with(|| {
                let one = Correspondent {
                    address: address.clone(),
                    name: String::new(),
                    message_count: 0,
                    last_seen: 0,
                    is_personal: false,
                };
                (one, None)
            });
            let name = name.trim_matches('"');
            let at = Some((date, number));
            if !name.is_empty() && (at > *named_at || at == *named_at && name < one.name.as_str()) {
                (one.name, *named_at) = (name.to_string(), at);
            }
            one.last_seen = one.last_seen.max(u32::try_from(date).unwrap());
            one.is_personal |= is_personal;
            if !met.contains(&address) {
                one.message_count += 1;
                met.push(address);
            }
        }
    }
    let mut found: Vec<Correspondent> = found.into_values().map(|(one, _)| one).collect();
    found.sort_by(|a, b| {
        // The words of mu.
        let recently = u32::try_from(NOW - 15 * DAY).unwrap();
        let by_date = match a.last_seen.max(b.last_seen) > recently {
            true => b.last_seen.cmp(&a.last_seen),
            false => std::cmp::Ordering::Equal,
        };
        b.is_personal
            .cmp(&a.is_personal)
            .then(by_date)
            .then(b.message_count.cmp(&a.message_count))
            .then(a.address.cmp(&b.address))
    });
    found
}

/// Delivers messages in several runs, so that the index has several segments; then removes some.
fn deliver(mailbox: &mut Mailbox, messages: &[TestMessage]) {
    let path = |number: usize| format!("cur/{number}.host:2,S");
    let options = MailSyncOptions {
        readers: 1,
        personal_addresses: vec![ADDRESSES[0].to_string()],
        ..MailSyncOptions::default()
    };
    for (run, messages) in messages.chunks(5).enumerate() {
        for (number, message) in messages.iter().enumerate() {
            let number = run * 5 + number;
            mailbox.write(path(number), message.text(number));
        }
        mailbox.sync_with(&options);
    }
    for (number, _) in messages.iter().enumerate().filter(|(_, one)| one.is_removed) {
        std::fs::remove_file(mailbox.root().join(path(number))).unwrap();
    }
    mailbox.sync_with(&MailSyncOptions { is_full: true, ..options });
}

fn find(mailbox: &Mailbox, query: &CorrespondentQuery) -> Vec<Correspondent> {
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    find_correspondents(&mail, query, NOW).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn correspondents_are_those_of_the_messages(messages in vec(arb_message(), 0..14)) {
        let mut mailbox = Mailbox::new();
        deliver(&mut mailbox, &messages);
        let expected = count_naively(&messages);
        let found = find(&mailbox, &CorrespondentQuery::default());
        prop_assert_eq!(&found, &expected);

        let limited = CorrespondentQuery { limit: Some(2), ..CorrespondentQuery::default() };
        prop_assert_eq!(&find(&mailbox, &limited)[..], &expected[..expected.len().min(2)]);

        let personal = CorrespondentQuery { is_personal: true, ..CorrespondentQuery::default() };
        let expected_personal: Vec<_> =
            expected.iter().filter(|one| one.is_personal).cloned().collect();
        prop_assert_eq!(find(&mailbox, &personal), expected_personal);

        for text in ["an", "anna b", "berg", "/^an.*org$/", "b.ex", "/NHALT/", "nna", "bo"] {
            let query = CorrespondentQuery {
                text: CorrespondentText::parse(text).unwrap(),
                ..CorrespondentQuery::default()
            };
            // Any of the names that an address has.
            let is_match = |one: &Correspondent| {
                let live = messages.iter();
                let names = live.flat_map(|message| &message.people);
                let names = names.filter(|(.., address)| address.eq_ignore_ascii_case(&one.address));
                names.into_iter().any(|(_, name, _)| {
                    let name = name.to_lowercase().replace('ö', "o").replace('"', "");
                    let words = |text: &str| -> Vec<String> {
                        text.split(|c: char| !c.is_alphanumeric()).map(Into::into).collect()
                    };
                    let all: Vec<String> = [words(&name), words(&one.address)].concat();
                    let begins = |word: &str| all.iter().any(|known| known.starts_with(word));
                    match text {
                        "/^an.*org$/" => one.address.starts_with("an") && one.address.ends_with("org"),
                        "/NHALT/" => name.contains("nhalt"),
                        "b.ex" => one.address.contains("@b.ex"),
                        text => text.split(' ').all(begins),
                    }
                })
            };
            let expected: Vec<_> = expected.iter().filter(|one| is_match(one)).cloned().collect();
            prop_assert_eq!(find(&mailbox, &query), expected, "{}", text);
        }
    }
}

#[test]
fn a_bad_pattern_is_an_error() {
    let error = CorrespondentText::parse("/an(/").unwrap_err().to_string();
    assert!(error.contains("/an(/"), "{error}");
}
