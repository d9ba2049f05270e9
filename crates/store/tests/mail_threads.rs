//! Threads that a message joined, after it is gone.

use crate::mail_index::{apply, open_index, write_index};
use larder_store::{MailChange, MailColumn, block_of};
use std::collections::BTreeSet;

/// Writes messages of two threads, in equal parts, and one that joins them; removes the latter.
/// Returns the number of threads.
fn count_threads_after_removal(members: u32) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let text = |id: &str, references: &str| {
        format!("Message-ID: <{id}>\nReferences: {references}\nSubject: x\n\nx\n")
    };
    let names: Vec<String> = (1..=members + 1).map(|row| format!("{row}.host:2,S")).collect();
    let messages: Vec<(&str, String)> = (1..=members)
        .map(|row| if row % 2 == 0 { "<a>" } else { "<b>" })
        .zip(&names)
        .map(|(root, name)| (name.as_str(), text(name, root)))
        .chain([(names[members as usize].as_str(), text("joins", "<a> <b>"))])
        .collect();
    drop(write_index(scratch.path(), &messages));
    let mut store = open_index(scratch.path());
    let directory = b"cur".to_vec();
    let name = names[members as usize].as_bytes().to_vec();
    apply(&mut store, vec![MailChange::RemoveFile { directory, name }]);
    let reader = store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let thread = |row: u32| {
        let (block, place) = block_of(row);
        mail.values(MailColumn::Thread, block).unwrap()[place]
    };
    let threads: BTreeSet<u32> = (1..=members).map(thread).collect();
    assert!(!threads.contains(&0) && thread(members + 1) == 0);
    threads.len()
}

/// A thread is divided in one transaction, so a very long one stays together.
#[test]
fn a_thread_of_5000_messages_is_divided_and_a_longer_one_is_not() {
    assert_eq!(count_threads_after_removal(5000), 2);
    assert_eq!(count_threads_after_removal(5001), 1);
}
