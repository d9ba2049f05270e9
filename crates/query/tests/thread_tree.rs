//! Threads of messages: by hand, in any order of the input, and in comparison with mu.

use larder_query::{ThreadMessage, ThreadOrder, ThreadPath, ThreadRow, order_threads};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A message that owns its texts.
#[derive(Debug, Clone)]
struct TestMessage {
    id: String,
    references: Vec<String>,
    date: i64,
    subject: String,
}

fn message(id: &str, references: &str, date: i64, subject: &str) -> TestMessage {
    let references = references.split_whitespace().map(str::to_string).collect();
    TestMessage { id: id.into(), references, date, subject: subject.into() }
}

fn rows_of(messages: &[TestMessage], order: ThreadOrder) -> Vec<ThreadRow> {
    let messages: Vec<ThreadMessage<'_>> = messages
        .iter()
        .map(|message| ThreadMessage {
            message_id: &message.id,
            references: message.references.iter().map(String::as_str).collect(),
            date: message.date,
            subject: &message.subject,
        })
        .collect();
    order_threads(&messages, order)
}

fn flag_names(row: &ThreadRow) -> String {
    let flags = [
        (row.root, " root"),
        (row.first_child, " first"),
        (row.last_child, " last"),
        (row.has_child, " parent"),
        (row.orphan, " orphan"),
        (row.duplicate, " duplicate"),
        (row.thread_subject, " subject"),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
}

/// Returns a line for each row: its path, id and flags.
fn list_rows(messages: &[TestMessage], order: ThreadOrder) -> String {
    let mut path = ThreadPath::default();
    let mut text = String::new();
    for row in rows_of(messages, order) {
        let numbers: Vec<String> = path.advance(&row).iter().map(u32::to_string).collect();
        let id = &messages[row.index].id;
        writeln!(text, "{} {id}{}", numbers.join(":"), flag_names(&row)).unwrap();
    }
    text
}

fn check(messages: &[TestMessage], expect: &str) {
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found = list_rows(messages, ThreadOrder::Descending);
    assert_eq!(found.lines().collect::<Vec<_>>(), expect, "{found}");
}

#[test]
fn replies_follow_their_parents_by_date() {
    let messages = [
        message("c", "a b", 3, "Re: x"),
        message("b", "a", 2, "Re: x"),
        message("a", "", 1, "x"),
        message("d", "a", 4, "AW: x"),
        message("e", "", 5, "y"),
        message("f", "a", 6, "z"),
    ];
    check(
        &messages,
        "0 a root parent subject
        0:0 b first parent
        0:0:0 c first last
        0:1 d
        0:2 f last subject
        1 e root subject",
    );
    let ascending = list_rows(&messages, ThreadOrder::Ascending);
    assert!(ascending.starts_with("0 e root subject\n1 a root"), "{ascending}");
}

#[test]
fn siblings_without_their_parent_are_orphans() {
    check(
        &[message("b", "gone", 2, "Re: x"), message("a", "gone", 1, "Re: x")],
        "0:0 a first orphan subject
        0:1 b last orphan",
    );
    check(&[message("a", "older gone", 1, "Re: x")], "0 a root subject");
    check(
        &[message("c", "a gone", 2, "x"), message("a", "", 1, "x")],
        "0 a root parent subject
        0:0 c first last",
    );
}

#[test]
fn a_message_with_the_same_id_is_a_child_of_the_first() {
    check(
        &[
            message("a", "", 1, "x"),
            message("b", "a", 2, "x"),
            message("a", "", 1, "x"),
            message("a", "b", 3, "x"),
        ],
        "0 a root parent subject
        0:0 a first duplicate
        0:1 b
        0:2 a last duplicate",
    );
}

#[test]
fn references_in_a_circle_are_cut() {
    check(
        &[message("a", "b", 1, "x"), message("b", "a", 2, "x"), message("c", "c", 3, "x")],
        "0 c root subject
        1 a root parent subject
        1:0 b first last",
    );
    let ring = [message("a", "a b c a", 1, "x"), message("b", "c a b", 2, "x")];
    assert_eq!(rows_of(&ring, ThreadOrder::Ascending).len(), 2);
}

#[test]
fn messages_without_an_id_stand_alone() {
    check(
        &[message("", "", 1, "x"), message("", "a", 2, "x"), message("a", "", 3, "x")],
        "0 a root parent subject
        0:0  first last
        1  root subject",
    );
    assert!(rows_of(&[], ThreadOrder::Descending).is_empty());
}

#[test]
fn a_prefix_of_the_subject_begins_no_new_subject() {
    let subjects = ["x", "Re: x", "Re: Fwd:  x", "y", "Re: y", "y:", "", "y"];
    let chain: Vec<TestMessage> = (0_i64..)
        .zip(subjects)
        .map(|(date, subject)| {
            let reference = format!("m{}", date - 1);
            message(&format!("m{date}"), &reference, date, subject)
        })
        .collect();
    let rows = rows_of(&chain, ThreadOrder::Descending);
    let shown: Vec<usize> =
        rows.iter().filter(|row| row.thread_subject).map(|row| row.index).collect();
    assert_eq!(shown, [0, 3, 5, 7]);
}

#[test]
fn a_long_chain_of_replies_is_arranged() {
    const LENGTH: i64 = 50_000;
    let chain: Vec<TestMessage> = (0..LENGTH)
        .map(|date| message(&format!("m{date}"), &format!("m{}", date - 1), date, "x"))
        .collect();
    for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
        let rows = rows_of(&chain, order);
        assert!(rows.iter().enumerate().all(|(at, row)| row.level == at && row.index == at));
    }
    // One message that refers to everything, and empty nodes in a long chain.
    let all: Vec<String> = (0..LENGTH).map(|date| format!("gone{date}")).collect();
    let all = TestMessage { references: all, ..message("a", "", 1, "x") };
    let below = message("b", "gone49999", 2, "x");
    assert_eq!(
        list_rows(&[all, below], ThreadOrder::Descending),
        "0:0 a first orphan subject\n0:1 b last orphan\n"
    );
}

/// Returns messages with distinct dates, some of which share an id.
fn any_messages() -> impl Strategy<Value = Vec<TestMessage>> {
    let parts = (0_u8..12, prop::collection::vec(0_u8..15, 0..5), 0_u8..3);
    prop::collection::vec(parts, 0..25).prop_flat_map(|parts| {
        let count = parts.len();
        let dates = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        dates.prop_map(move |dates| {
            let messages = parts.iter().zip(dates).map(|((id, references, subject), date)| {
                let references: Vec<String> =
                    references.iter().map(|reference| format!("m{reference}")).collect();
                let subject = ["x", "Re: x", "y"][usize::from(*subject)];
                message(&format!("m{id}"), &references.join(" "), date as i64, subject)
            });
            messages.collect()
        })
    })
}

fn any_order() -> impl Strategy<Value = ThreadOrder> {
    prop_oneof![Just(ThreadOrder::Ascending), Just(ThreadOrder::Descending)]
}

proptest! {
    #[test]
    fn each_message_is_in_one_row(messages in any_messages(), order in any_order()) {
        let rows = rows_of(&messages, order);
        let found: BTreeSet<usize> = rows.iter().map(|row| row.index).collect();
        prop_assert_eq!(found, (0..messages.len()).collect::<BTreeSet<_>>());
        prop_assert_eq!(rows.len(), messages.len());
        let mut path = ThreadPath::default();
        let mut paths: Vec<Vec<u32>> = Vec::new();
        for row in &rows {
            paths.push(path.advance(row).to_vec());
            prop_assert_eq!(path.advance(row).len(), row.level + 1);
            prop_assert_eq!(row.root, row.level == 0);
        }
        prop_assert!(paths.is_sorted_by(|a, b| a < b), "{:?}", paths);
        let ids: BTreeSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        let duplicates = rows.iter().filter(|row| row.duplicate).count();
        prop_assert_eq!(duplicates, messages.len() - ids.len());
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        (messages, shuffled) in any_messages().prop_flat_map(|messages| {
            (Just(messages.clone()), Just(messages).prop_shuffle())
        }),
        order in any_order(),
    ) {
        let describe = |messages: &[TestMessage]| -> Vec<(i64, ThreadRow)> {
            let rows = rows_of(messages, order).into_iter();
            rows.map(|row| (messages[row.index].date, ThreadRow { index: 0, ..row })).collect()
        };
        prop_assert_eq!(describe(&messages), describe(&shuffled));
    }
}

/// A generator of numbers that are the same in each run.
struct NumberSequence(u64);

impl NumberSequence {
    fn next_below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The number of messages of each maildir.
const MAILDIR_SIZE: u64 = 40;

/// Returns messages whose references contradict each other and go in circles.
fn tangled_messages(numbers: &mut NumberSequence) -> Vec<TestMessage> {
    let mut messages = Vec::new();
    for id in 0..MAILDIR_SIZE {
        let mut references: Vec<String> = Vec::new();
        for _ in 0..numbers.next_below(4) {
            let reference = format!("m{}@x", numbers.next_below(MAILDIR_SIZE + 10));
            if !references.contains(&reference) {
                references.push(reference);
            }
        }
        let date = 1_700_000_000 + (numbers.next_below(1_000) * MAILDIR_SIZE + id) as i64;
        let subject = ["x", "Re: x", "y", "Re: y"][numbers.next_below(4) as usize];
        messages.push(message(&format!("m{id}@x"), &references.join(" "), date, subject));
    }
    messages
}

/// Returns messages that refer to earlier ones, some of them twice.
fn messages_with_duplicates(numbers: &mut NumberSequence) -> Vec<TestMessage> {
    let mut messages = Vec::new();
    for id in 0..MAILDIR_SIZE {
        let mut references = String::new();
        if id > 0 && numbers.next_below(4) > 0 {
            // Every fifth message is missing.
            references = format!("m{}@x", numbers.next_below(id));
        }
        let date = 1_700_000_000 + 60 * id as i64;
        let next = message(&format!("m{id}@x"), &references, date, "x");
        match id % 5 {
            4 => {}
            0 => messages.extend([next.clone(), next]),
            _ => messages.push(next),
        }
    }
    messages
}

/// Writes each message into a file `NUMBER:2,S` of a maildir.
fn write_maildir(folder: &Path, messages: &[TestMessage]) {
    for name in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(folder.join("inbox").join(name)).unwrap();
    }
    for (number, message) in messages.iter().enumerate() {
        let date = jiff::Timestamp::from_second(message.date).unwrap();
        let date = date.strftime("%a, %d %b %Y %H:%M:%S +0000");
        let references: Vec<String> =
            message.references.iter().map(|reference| format!("<{reference}>")).collect();
        let mut text = format!("From: a@example.org\nDate: {date}\nMessage-ID: <{}>\n", message.id);
        if !references.is_empty() {
            writeln!(text, "References: {}", references.join(" ")).unwrap();
        }
        writeln!(text, "Subject: {}\n\ntext", message.subject).unwrap();
        std::fs::write(folder.join(format!("inbox/cur/{number}:2,S")), text).unwrap();
    }
}

/// A message in the list of mu: its row, and its number in the database.
struct MuRow {
    number: usize,
    database_number: u64,
    text: String,
}

/// Returns the messages in the order of mu.
fn list_with_mu(state: &Path, order: ThreadOrder) -> Vec<MuRow> {
    let mut server = Command::new("mu")
        .args(["server", "--muhome"])
        .arg(state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let descending = if order == ThreadOrder::Descending { "t" } else { "nil" };
    let find = format!("(find :query \"\" :threads t :sortfield :date :descending {descending}");
    let mut input = server.stdin.take().unwrap();
    input.write_all(format!("{find} :maxnum 1000)\n(quit)\n").as_bytes()).unwrap();
    drop(input);
    let output = server.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    output.lines().filter_map(parse_mu_row).collect()
}

fn parse_mu_row(line: &str) -> Option<MuRow> {
    let (_, name) = line.split_once("/inbox/cur/")?;
    let (_, behind) = line.split_once(":docid ")?;
    let (database_number, meta) = behind.split_once(" :meta ")?;
    let (_, level) = meta.split_once(":level ")?;
    let mut text = level.split_whitespace().next()?.to_string();
    for (key, flag) in [
        (":root t", " root"),
        (":first-child t", " first"),
        (":last-child t", " last"),
        (":has-child t", " parent"),
        (":orphan t", " orphan"),
        (":duplicate t", " duplicate"),
        (":thread-subject t", " subject"),
    ] {
        if meta.contains(key) {
            text.push_str(flag);
        }
    }
    let number = name.split(':').next()?.parse().ok()?;
    Some(MuRow { number, database_number: database_number.parse().ok()?, text })
}

fn compare_with_mu(messages: &[TestMessage]) {
    let folder = tempfile::tempdir().unwrap();
    let (maildir, state) = (folder.path().join("maildir"), folder.path().join("state"));
    write_maildir(&maildir, messages);
    let option = format!("--maildir={}", maildir.display());
    for arguments in [vec!["init", "--quiet", option.as_str()], vec!["index", "--quiet"]] {
        let mut command = Command::new("mu");
        let status = command.args(arguments).arg("--muhome").arg(&state).status().unwrap();
        assert!(status.success());
    }
    for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
        let listed = list_with_mu(&state, order);
        assert_eq!(listed.len(), messages.len());
        // The first of two duplicates is the one that mu indexed first.
        let by_number: BTreeMap<u64, usize> =
            listed.iter().map(|row| (row.database_number, row.number)).collect();
        let numbers: Vec<usize> = by_number.into_values().collect();
        let indexed: Vec<TestMessage> =
            numbers.iter().map(|number| messages[*number].clone()).collect();
        let has_duplicates = listed.iter().any(|row| row.text.contains("duplicate"));
        // mu 1.8 compares the subject of a duplicate as if it were empty.
        let without_subject = |text: &str| match has_duplicates {
            true => text.replace(" subject", ""),
            false => text.to_string(),
        };
        let expect: Vec<String> = listed
            .iter()
            .map(|row| format!("{} {}", row.number, without_subject(&row.text)))
            .collect();
        let found: Vec<String> = rows_of(&indexed, order)
            .iter()
            .map(|row| {
                let text = format!("{}{}", row.level, flag_names(row));
                format!("{} {}", numbers[row.index], without_subject(&text))
            })
            .collect();
        assert_eq!(found, expect, "{order:?} {messages:#?}");
    }
}

#[test]
fn threads_are_those_of_mu() {
    if Command::new("mu").arg("--version").output().is_err() {
        let is_required = std::env::var("LARDER_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!is_required, "mu is required here");
        eprintln!("left out: mu");
        return;
    }
    let mut numbers = NumberSequence(7);
    for _ in 0..3 {
        compare_with_mu(&tangled_messages(&mut numbers));
        compare_with_mu(&messages_with_duplicates(&mut numbers));
    }
}
