//! Words of removed messages leave the index, and those of an interrupted run are put in order.

use crate::mailbox::{COLLECTION, Mailbox, message};
use larder_store::{
    BegunWordSegments, Handle, MailBatchBuilder, Operation, StepSize, Store, WordPart,
};
use larder_sync::{MailSyncOptions, sync_maildir};
use std::cell::Cell;
use std::fs;

/// Returns whether a word of text is in the index of words, and whether it is in the dictionary.
fn has_word(mailbox: &Mailbox, word: &str) -> (bool, bool) {
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let words = words.open().unwrap();
    let term = format!("w{word}");
    let (mut has_term, mut is_listed) = (false, false);
    words
        .for_each_term(term.as_bytes(), &mut |found, _| {
            has_term |= found == term.as_bytes();
            false
        })
        .unwrap();
    let visit = &mut |found: &[u8]| is_listed |= found == word.as_bytes();
    words.for_each_text_word(&[WordPart::Any], visit).unwrap();
    (has_term, is_listed)
}

#[test]
fn words_of_removed_messages_are_erased() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..30);
    mailbox.sync();
    fs::remove_file(mailbox.root().join("cur/1000007.host:2,")).unwrap();
    mailbox.sync();
    assert_eq!(mailbox.find("word7"), Vec::<String>::new());
    assert_eq!(has_word(&mailbox, "word7"), (true, true));
    mailbox.store.erase_removed_words().unwrap();
    assert_eq!(has_word(&mailbox, "word7"), (false, false));
    assert_eq!(has_word(&mailbox, "word8"), (true, true));
    assert_eq!(mailbox.find("common").len(), 29);
    assert_eq!(mailbox.find("*ord8*"), ["m8"]);
    // A message that comes afterwards is found beside the others.
    mailbox.write_numbered("cur", 40..41);
    mailbox.sync();
    assert_eq!(mailbox.find("*ord40"), ["m40"]);
    assert_eq!(mailbox.find("common").len(), 30);
    for number in 0..41 {
        let _absent =
            fs::remove_file(mailbox.root().join(format!("cur/{}.host:2,", 1_000_000 + number)));
    }
    mailbox.sync();
    mailbox.store.erase_removed_words().unwrap();
    assert_eq!(has_word(&mailbox, "common"), (false, false));
}

/// Merges drop the words of removed messages on their way.
#[test]
fn merges_drop_words_of_removed_messages() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..20);
    mailbox.sync();
    fs::remove_file(mailbox.root().join("cur/1000007.host:2,")).unwrap();
    for number in 100..120 {
        mailbox.write_numbered("cur", number..number + 1);
        mailbox.sync();
    }
    while mailbox.store.merge_words(8, &mut StepSize::new(1 << 20, 1..=1 << 20)).unwrap() {}
    assert!(!has_word(&mailbox, "word7").0);
    assert_eq!(mailbox.find("common").len(), 39);
}

/// Returns the handle of the message with a Message-ID.
fn handle_of(mailbox: &Mailbox, uid: &str) -> Handle {
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    mail.message(mail.rows_with_uid(uid).unwrap()[0]).unwrap().unwrap().handle
}

/// A purge erases messages in whatever state their files and the index are in, and the next
/// synchronisation finds the files that are still there.
#[test]
fn purged_messages_come_back_with_their_files_only() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..20);
    mailbox.write_numbered("Archive/cur", 5..8);
    for number in 100..110 {
        mailbox.write_numbered("cur", number..number + 1);
        mailbox.sync();
    }
    mailbox.settle();
    mailbox.sync();
    let all = mailbox.find("");
    let purged = ["m5", "m6", "m17", "m104"].map(|uid| handle_of(&mailbox, uid));
    let mut operation = Operation::new("purge", "", 0);
    assert_eq!(mailbox.store.purge(&mut operation, &purged).unwrap().items, 4);
    for word in ["word5", "word6", "word17", "word104"] {
        assert_eq!(has_word(&mailbox, word), (false, false), "{word}");
        assert_eq!(mailbox.find(word), Vec::<String>::new());
    }
    assert_eq!(mailbox.find("").len(), all.len() - 4);
    assert_eq!(mailbox.find("maildir:/Archive"), ["m7"]);
    assert_eq!(mailbox.store.check().unwrap().faults, []);
    fs::remove_file(mailbox.root().join("cur/1000017.host:2,")).unwrap();
    mailbox.settle();
    mailbox.sync();
    let expected: Vec<String> = all.into_iter().filter(|uid| uid != "m17").collect();
    assert_eq!(mailbox.find(""), expected);
    assert_eq!(mailbox.find("maildir:/Archive"), ["m5", "m6", "m7"]);
    assert_eq!(mailbox.find("word5"), ["m5"]);
}

/// A process that is killed before it writes the messages leaves their words.
#[test]
fn words_without_messages_are_never_found() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.sync();
    let lock = mailbox.store.lock_mail_sync().unwrap();
    let row = mailbox.store.next_mail_row(&lock).unwrap();
    let mut builder = MailBatchBuilder::new(&[]);
    let _unwritten = builder.prepare(row, message("m9", "note", "lonely").as_bytes(), 0);
    let mut begun = BegunWordSegments::default();
    let part = builder.encode_words();
    mailbox.store.write_words_ahead(&part, row + 1, &mut begun).unwrap();
    assert_eq!(mailbox.find("lonely"), [""; 0]);
    // No merge drops the words of a message that may still come, and its row is not given again.
    while mailbox.store.merge_words(1, &mut StepSize::new(1 << 20, 1..=1 << 20)).unwrap() {}
    assert_eq!(has_word(&mailbox, "lonely"), (true, true));
    assert_eq!(mailbox.store.next_mail_row(&lock).unwrap(), row + 1);
    drop(lock);
    // A purge does: it and a synchronisation do not run at the same time.
    mailbox.store.erase_removed_words().unwrap();
    assert_eq!(has_word(&mailbox, "lonely"), (false, false));
    mailbox.write_numbered("cur", 3..4);
    mailbox.sync();
    assert_eq!(mailbox.find("lonely"), [""; 0]);
    assert_eq!(mailbox.find("common").len(), 4);
}

/// A run that was stopped before its last merges leaves them to the next one, also if no mail came.
#[test]
fn the_run_after_an_interruption_makes_parts_of_words_quick_to_find() {
    let mut mailbox = Mailbox::new();
    // The dictionary has more blocks than one step of that size gives lists to.
    let words: String = (0..40_000_u64)
        .map(|n| format!("{:013x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12))
        .collect();
    mailbox.write("cur/1.host", message("m1", "note", &words));
    mailbox.settle();
    let (root, is_written) = (mailbox.root(), Cell::new(false));
    let report = sync_maildir(
        &mut mailbox.store,
        &root,
        COLLECTION,
        &MailSyncOptions::default(),
        &mut |progress| is_written.set(progress.done == progress.total),
        &|| is_written.get(),
    );
    assert_eq!(report.unwrap().added_files, 1);
    let settle = |store: &mut Store| store.settle_words(8, &mut StepSize::new(1, 1..=1)).unwrap();
    assert!(settle(&mut mailbox.store) && settle(&mut mailbox.store));
    mailbox.sync();
    assert!(!settle(&mut mailbox.store));
    assert_eq!(mailbox.find("*note*"), ["m1"]);
    assert_eq!(mailbox.find(&format!("*{}*", &words[3..11])), ["m1"]);
}
