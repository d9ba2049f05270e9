//! Lists of messages and threads: orders, limits, and the other messages of threads.

use crate::mailbox::{Mailbox, context};
use larder_query::{ListedThread, MailListRequest, MailQuery, MailSearch, MailSort};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The messages: id, subject, sender, day of January 2020, references, body.
const MESSAGES: [(&str, &str, &str, u32, &str, &str); 8] = [
    ("a1", "Walrus audit", "Anna <anna@x.example>", 1, "", "walrus"),
    ("a2", "Re: Walrus audit", "Bruno <b@x.example>", 2, "<a1>", "yes"),
    ("a3", "RE: Walrus audit", "Chloe <c@x.example>", 9, "<a1> <a2>", "no"),
    ("b1", "Budget", "bruno@x.example", 3, "", "walrus costs"),
    ("b2", "Re: Budget", "Anna <anna@x.example>", 4, "<b1>", "walrus is cheap"),
    ("c1", "apples", "Dora <d@x.example>", 5, "", "walrus eats none of them, as far as is known"),
    ("d2", "Re: lost", "Anna <anna@x.example>", 6, "<d1>", "walrus"),
    ("d3", "Re: lost", "Bruno <b@x.example>", 7, "<d1>", "seal"),
];

fn mailbox() -> Mailbox {
    let mut mailbox = Mailbox::new();
    for (id, subject, from, day, references, body) in MESSAGES {
        let references = match references {
            "" => String::new(),
            ids => format!("References: {ids}\n"),
        };
        let text = format!(
            "Message-ID: <{id}>\nFrom: {from}\nSubject: {subject}\n{references}\
             Date: {day:02} Jan 2020 10:00:00 +0000\n\n{body}\n"
        );
        mailbox.write(format!("cur/{id}:2,S"), text);
    }
    mailbox.sync();
    mailbox
}

fn with_search<T>(
    mailbox: &Mailbox,
    line: &str,
    use_it: impl FnOnce(&MailSearch<'_>, &MailQuery) -> T,
) -> T {
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let query = MailQuery::parse(line, &context()).unwrap();
    use_it(&MailSearch::open(&mail, &words).unwrap(), &query)
}

/// Lists messages as `id`, those that do not match in brackets.
fn list(
    mailbox: &Mailbox,
    line: &str,
    sort: &str,
    limit: usize,
    offset: usize,
    is_related: bool,
) -> String {
    let sort = MailSort::parse(sort).unwrap();
    with_search(mailbox, line, |search, query| {
        let request = MailListRequest { query, sort, limit, offset, is_related };
        let listed = search.list_messages(&request).unwrap();
        let names = listed.iter().map(|one| match one.is_match {
            true => one.message.uid.clone(),
            false => format!("({})", one.message.uid),
        });
        names.collect::<Vec<_>>().join(" ")
    })
}

fn threads(
    mailbox: &Mailbox,
    line: &str,
    sort: &str,
    limit: usize,
    offset: usize,
    is_related: bool,
) -> Vec<ListedThread> {
    let sort = MailSort::parse(sort).unwrap();
    with_search(mailbox, line, |search, query| {
        let request = MailListRequest { query, sort, limit, offset, is_related };
        search.list_threads(&request).unwrap()
    })
}

/// Draws threads: for each its counts, and its messages with their levels.
fn draw(threads: &[ListedThread]) -> String {
    let mut text = String::new();
    for thread in threads {
        write!(text, "[{}/{}]", thread.matched, thread.total).unwrap();
        for row in &thread.rows {
            let one = &thread.messages[row.index];
            let mark = if one.is_match { "" } else { "?" };
            write!(text, " {}{}{mark}", ">".repeat(row.level), one.message.uid).unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn messages_are_listed_in_many_orders() {
    let mailbox = mailbox();
    for (sort, expected) in [
        ("-date", "a3 d3 d2 c1 b2 b1 a2 a1"),
        ("date", "a1 a2 b1 b2 c1 d2 d3 a3"),
        ("subject", "c1 b2 b1 d3 d2 a3 a2 a1"),
        ("-subject", "a3 a2 a1 d3 d2 b2 b1 c1"),
        ("from", "d2 b2 a1 d3 a2 b1 a3 c1"),
        ("f", "d2 b2 a1 d3 a2 b1 a3 c1"),
        ("msgid", "a1 a2 a3 b1 b2 c1 d2 d3"),
        ("-message_id", "d3 d2 c1 b2 b1 a3 a2 a1"),
        ("prio", "a3 d3 d2 c1 b2 b1 a2 a1"),
    ] {
        assert_eq!(list(&mailbox, "", sort, 100, 0, false), expected, "{sort}");
        let first_three: Vec<&str> = expected.split(' ').skip(1).take(3).collect();
        assert_eq!(list(&mailbox, "", sort, 3, 1, false), first_three.join(" "), "{sort}");
    }
    assert_eq!(list(&mailbox, "", "-size", 1, 0, false), "c1");
    assert_eq!(MailSort::parse("colour"), None);
    assert_eq!(MailSort::parse("--date"), None);
}

#[test]
fn related_messages_stand_among_those_that_match() {
    let mailbox = mailbox();
    for (sort, limit, expected) in [
        ("-date", 100, "(a3) (d3) d2 c1 b2 b1 (a2) a1"),
        ("-date", 1, "(d3) d2"),
        ("-date", 3, "(d3) d2 c1 b2 (b1)"),
        ("date", 1, "a1 (a2) (a3)"),
        ("subject", 2, "c1 b2 (b1)"),
    ] {
        assert_eq!(list(&mailbox, "body:walrus", sort, limit, 0, true), expected);
    }
}

#[test]
fn a_limit_of_threads_keeps_whole_threads() {
    let mailbox = mailbox();
    for (sort, limit, offset, is_related, expected) in [
        ("-date", 100, 0, false, "[1/2] d2\n[1/1] c1\n[2/2] b1 >b2\n[1/3] a1\n"),
        ("-date", 2, 1, false, "[1/1] c1\n[2/2] b1 >b2\n"),
        ("-date", 100, 0, true, "[1/2] >d2 >d3?\n[1/1] c1\n[2/2] b1 >b2\n[1/3] a1 >a2? >>a3?\n"),
        ("-date", 1, 0, true, "[1/2] >d2 >d3?\n"),
        ("-date", 1, 3, true, "[1/3] a1 >a2? >>a3?\n"),
        ("date", 2, 0, true, "[1/3] a1 >a2? >>a3?\n[2/2] b1 >b2\n"),
        ("-date", 0, 0, true, ""),
        ("-date", 5, 4, true, ""),
    ] {
        let found = threads(&mailbox, "body:walrus", sort, limit, offset, is_related);
        assert_eq!(draw(&found), expected, "{sort} {limit} {offset} {is_related}");
        let numbers: Vec<u32> =
            found.iter().flat_map(|thread| &thread.rows).map(|row| row.thread).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    let count = with_search(&mailbox, "body:walrus", |search, query| search.count_threads(query));
    assert_eq!(count.unwrap(), 4);
}

#[test]
fn other_texts_of_a_message_are_its_duplicates() {
    let mut mailbox = Mailbox::new();
    let write = |name: &str, header: &str, minute: u32, body: &str| {
        let text = format!(
            "{header}From: a@x.example\nSubject: s\n\
             Date: 01 Jan 2020 10:{minute:02}:00 +0000\n\n{body}\n"
        );
        mailbox.write(format!("cur/{name}:2,S"), text);
    };
    write("direct", "Message-ID: <m@x>\n", 0, "walrus");
    write("list", "Message-ID: <m@x>\n", 1, "walrus of the list");
    write("reply", "Message-ID: <r@x>\nReferences: <m@x>\n", 2, "walrus");
    mailbox.sync();
    let levels = |line: &str| -> Vec<(usize, bool)> {
        let found = threads(&mailbox, line, "date", 100, 0, false);
        let rows = found.iter().flat_map(|thread| &thread.rows);
        rows.map(|row| (row.level, row.duplicate)).collect()
    };
    assert_eq!(levels(""), [(0, false), (1, true), (1, false)]);
    // The list has neither the message nor a reply to it.
    assert_eq!(levels("body:list"), [(0, false)]);
}

#[test]
fn a_thread_has_a_summary_and_a_name() {
    let mailbox = mailbox();
    let found = threads(&mailbox, "from:bruno", "-date", 100, 0, true);
    let summaries: Vec<String> = found
        .iter()
        .map(|thread| {
            let (matching, others) = thread.authors();
            format!("{} | {} | {}", matching.join(", "), others.join(", "), thread.subject())
        })
        .collect();
    assert_eq!(
        summaries,
        [
            "Bruno | Anna | lost",
            "bruno@x.example | Anna | Budget",
            "Bruno | Anna, Chloe | Walrus audit",
        ]
    );
    let id = larder_query::format_thread_id(found[2].thread);
    assert_eq!(mailbox.find(&format!("thread:{id}")).join(" "), "a1 a2 a3");
    assert_eq!(mailbox.find("thread:00000000ffffffff").join(" "), "");
}

/// A generated message: the numbers of messages that it refers to, which may not be there, and
/// whether it matches.
type RandomMessage = (BTreeSet<usize>, bool);

/// Returns the threads of messages, as sets of their numbers.
fn naive_threads(messages: &[RandomMessage]) -> Vec<BTreeSet<usize>> {
    let mut threads: Vec<BTreeSet<usize>> = Vec::new();
    for (number, (references, _)) in messages.iter().enumerate() {
        let mut thread = references.clone();
        thread.insert(number);
        let (joined, others) =
            threads.into_iter().partition::<Vec<_>, _>(|other| !other.is_disjoint(&thread));
        thread.extend(joined.into_iter().flatten());
        threads = others;
        threads.push(thread);
    }
    let is_there = |number: &usize| *number < messages.len();
    threads.iter().map(|thread| thread.iter().copied().filter(is_there).collect()).collect()
}

/// Returns the listed threads: for each the listed messages, the newest first. A later message is
/// newer.
fn naive_list(
    messages: &[RandomMessage],
    is_descending: bool,
    limit: usize,
    offset: usize,
    is_related: bool,
) -> Vec<Vec<usize>> {
    let mut by_newest: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for thread in naive_threads(messages) {
        let Some(newest) = thread.iter().copied().filter(|number| messages[*number].1).max() else {
            continue;
        };
        let listed = thread.into_iter().rev().filter(|number| is_related || messages[*number].1);
        by_newest.insert(newest, listed.collect());
    }
    let mut threads: Vec<Vec<usize>> = by_newest.into_values().collect();
    if is_descending {
        threads.reverse();
    }
    threads.into_iter().skip(offset).take(limit).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn lists_of_threads_are_those_of_a_naive_evaluation(
        messages in vec((proptest::collection::btree_set(0..24_usize, 0..3), any::<bool>()), 0..20),
        pages in vec((any::<bool>(), 0..6_usize, 0..4_usize, any::<bool>()), 8),
    ) {
        let mut mailbox = Mailbox::new();
        for (number, (references, is_match)) in messages.iter().enumerate() {
            let references: String =
                references.iter().map(|number| format!("<m{number}> ")).collect();
            let (hour, minute) = (10 + number / 60, number % 60);
            let text = format!(
                "Message-ID: <m{number}>\nReferences: {references}\nSubject: s\n\
                 Date: 01 Jan 2020 {hour:02}:{minute:02}:00 +0000\n\n{} {number}\n",
                if *is_match { "walrus" } else { "seal" }
            );
            mailbox.write(format!("cur/{number}:2,S"), text);
        }
        mailbox.sync();
        for (is_descending, limit, offset, is_related) in pages {
            let sort = if is_descending { "-date" } else { "date" };
            let found = threads(&mailbox, "walrus", sort, limit, offset, is_related);
            let number = |uid: &str| uid.trim_start_matches('m').parse::<usize>().unwrap();
            let listed: Vec<Vec<usize>> = found
                .iter()
                .map(|thread| {
                    prop_assert_eq!(thread.rows.len(), thread.messages.len());
                    Ok(thread.messages.iter().map(|one| number(&one.message.uid)).collect())
                })
                .collect::<Result<_, TestCaseError>>()?;
            let expected = naive_list(&messages, is_descending, limit, offset, is_related);
            prop_assert_eq!(listed, expected, "{} {} {} {}", sort, limit, offset, is_related);
        }
    }
}
