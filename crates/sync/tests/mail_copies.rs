//! The values of messages: of several copies, of edited files, under other rules, in threads.

use crate::mail_sync::{check, counts, full_sync, set_old, small_batches};
use crate::mail_sync_model::assert_same_as_fresh;
use crate::mailbox::{COLLECTION, Mailbox, indexed_messages, message};
use larder_sync::{ConverterSettings, MailSyncOptions, is_mail_outdated, sync_maildir};
use std::cell::Cell;
use std::fs;
use std::time::SystemTime;

/// The next synchronisation names the damage that an interrupted one did not come to.
#[test]
fn damage_is_named_after_an_interruption() {
    let mut mailbox = Mailbox::new();
    let name = "cur/1:2,";
    let text = |body| {
        format!(
            "Subject: walrus\nMIME-Version: 1.0\nContent-Type: text/plain\n\
                 Content-Transfer-Encoding: base64\n\n{body}\n"
        )
    };
    mailbox.write(name, text("d2FscnVz"));
    let root = mailbox.root();
    set_old(&root.join(name));
    mailbox.sync();
    mailbox.write(name, text("!!!!!!!!!!!!"));
    let store = &mut mailbox.store;
    let report = sync_maildir(store, &root, COLLECTION, &full_sync(), &mut |_| {}, &|| true);
    let report = report.unwrap();
    assert!(report.is_interrupted && report.problems.is_empty(), "{:?}", report.problems);
    let report = mailbox.sync();
    assert_eq!((report.reread_files, report.problems.len()), (1, 1));
    assert_eq!(mailbox.sync().problems, []);
}

/// A draft is saved in its file: it keeps its name and its inode.
#[test]
fn a_file_that_was_edited_in_place_is_read_again() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1.host:2,S", message("m1", "note", "walrus"));
    mailbox.write("a/cur/2.host:2,F", message("m1", "note", "walrus"));
    mailbox.write("cur/3.host:2,", message("m3", "note", "otter"));
    mailbox.settle_files();
    mailbox.sync();
    mailbox.write("cur/1.host:2,S", message("m1", "note", "seal"));
    mailbox.write("cur/3.host:2,", message("m3", "note", "otters"));
    assert_eq!(mailbox.sync().reread_files, 0);
    let report = mailbox.sync_with(&full_sync());
    assert_eq!((counts(&report), report.reread_files), ((0, 0, 0), 2));
    // The copy that was not edited is a message of its own.
    assert_eq!(mailbox.find("msgid:m1").len(), 2);
    assert_eq!(mailbox.find("walrus flag:flagged not flag:seen").len(), 1);
    assert_eq!(mailbox.find("seal flag:seen not flag:flagged").len(), 1);
    assert_eq!((mailbox.find("otter").len(), mailbox.find("otters").len()), (0, 1));
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}

/// A file that was read when it was new has no time of its content, but it has a size.
#[test]
fn a_new_file_that_was_edited_and_renamed_is_read_again() {
    let mut mailbox = Mailbox::new();
    mailbox.write("new/1.host", message("m1", "note", "walrus"));
    mailbox.write("new/2.host", message("m2", "note", "otter"));
    mailbox.sync();
    let root = mailbox.root();
    mailbox.write("new/1.host", message("m1", "note", "a small seal"));
    for number in [1, 2] {
        let path = format!("new/{number}.host");
        fs::rename(root.join(path), root.join(format!("cur/{number}.host:2,S"))).unwrap();
    }
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.reread_files), ((0, 2, 0), 1));
    assert_eq!((mailbox.find("walrus").len(), mailbox.find("seal flag:seen").len()), (0, 1));
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}

/// A message has the values of the copy with the earliest date, in whatever order copies come and
/// go.
#[test]
fn a_message_has_the_values_of_the_copy_with_the_earliest_date() {
    let copy = |list: &str, year: &str| {
        let text = message("m1", "note", "walrus").replace("2020", year);
        text.replacen('\n', &format!("\nList-Id: <{list}.example>\n"), 1)
    };
    let texts = [copy("one", "2019"), copy("two", "2018"), copy("three", "2020")];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut mailbox = Mailbox::new();
        for place in order {
            mailbox.write(format!("cur/{place}:2,"), &texts[place]);
            mailbox.sync();
        }
        assert_eq!(mailbox.find("date:2018 list:two.example not list:one.example"), ["m1"]);
        assert_eq!(indexed_messages(&mailbox.store).len(), 1);
        // The copy in another file is read when this one goes.
        fs::remove_file(mailbox.root().join("cur/1:2,")).unwrap();
        let report = mailbox.sync();
        assert_eq!((counts(&report), report.reread_files), ((0, 0, 1), 1));
        assert_eq!(mailbox.find("date:2019 list:one.example not list:two.example"), ["m1"]);
        assert_eq!(mailbox.sync().reread_files, 0);
        assert_same_as_fresh(&mailbox);
        check(&mailbox.store);
        mailbox.verify(&MailSyncOptions::default());
    }
}

/// The files of a message are read once for a batch, not for each change of one.
#[test]
fn a_message_with_many_copies_has_the_states_of_all() {
    let mut mailbox = Mailbox::new();
    for number in 0..300 {
        let flags = if number == 299 { "F" } else { "S" };
        mailbox.write(format!("cur/{number}.host:2,{flags}"), message("m1", "note", "walrus"));
    }
    mailbox.sync();
    assert_eq!(mailbox.find("flag:flagged flag:seen"), ["m1"]);
    let path = |name: &str| mailbox.root().join("cur").join(name);
    fs::rename(path("0.host:2,S"), path("0.host:2,RS")).unwrap();
    fs::remove_file(path("299.host:2,F")).unwrap();
    for number in 100..200 {
        fs::remove_file(path(&format!("{number}.host:2,S"))).unwrap();
    }
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.reread_files), ((0, 1, 101), 0));
    assert_eq!(mailbox.find("flag:replied not flag:flagged"), ["m1"]);
    assert_same_as_fresh(&mailbox);
    fs::remove_dir_all(mailbox.root().join("cur")).unwrap();
    fs::create_dir(mailbox.root().join("cur")).unwrap();
    mailbox.sync();
    assert!(indexed_messages(&mailbox.store).is_empty());
    check(&mailbox.store);
}

/// The addresses of the user are one of the rules by which messages are read.
#[test]
fn other_rules_read_all_files_again() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..5);
    for name in ["cur/1:2,", "a/cur/2:2,S"] {
        mailbox.write(name, message("copy", "note", "seal").replacen("From", "To", 1));
    }
    let own = |readers| MailSyncOptions {
        personal_addresses: vec!["anna@example.org".into()],
        readers,
        ..small_batches(2)
    };
    mailbox.sync();
    let is_outdated = |mailbox: &Mailbox, addresses: &[String]| {
        let reader = mailbox.store.open_reader().unwrap();
        is_mail_outdated(&reader, addresses, &ConverterSettings::default()).unwrap()
    };
    assert!(!is_outdated(&mailbox, &[]) && is_outdated(&mailbox, &own(1).personal_addresses));
    assert_eq!(mailbox.find("flag:personal"), [""; 0]);
    // The old index answers until it is complete, also after an interruption.
    let (root, asked) = (mailbox.root(), Cell::new(0));
    let is_cancelled = || asked.replace(asked.get() + 1) > 0;
    let store = &mut mailbox.store;
    let report = sync_maildir(store, &root, COLLECTION, &own(1), &mut |_| {}, &is_cancelled);
    assert!(report.unwrap().is_interrupted);
    assert_eq!(mailbox.find("").len(), 6);
    assert!(is_outdated(&mailbox, &own(1).personal_addresses));
    let report = mailbox.sync_with(&own(2));
    assert_eq!((counts(&report), report.reread_files), ((0, 0, 0), 5));
    assert_eq!(mailbox.find("flag:personal flag:seen flag:unread"), [""; 0]);
    assert_eq!(mailbox.find("flag:personal flag:seen"), ["copy"]);
    assert_eq!(mailbox.find("").len(), 6);
    assert!(!is_outdated(&mailbox, &own(1).personal_addresses));
    let report = mailbox.sync_with(&own(2));
    assert_eq!((counts(&report), report.reread_files), ((0, 0, 0), 0));
    // And back.
    assert_eq!(mailbox.sync().reread_files, 7);
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}

/// A file that cannot be read keeps its old values; the index is not out of date because of it.
#[test]
fn an_unreadable_file_does_not_keep_the_index_out_of_date() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.write("cur/1000001.host:2,", message("m1", "note", &"long ".repeat(1000)));
    mailbox.settle_files();
    mailbox.settle();
    mailbox.sync();
    // The directory stays as it is, and one file is too large.
    let own = |max_message_bytes| MailSyncOptions {
        personal_addresses: vec!["anna@example.org".into()],
        max_message_bytes,
        ..MailSyncOptions::default()
    };
    for (read, all) in [(2, 3), (0, 3)] {
        let report = mailbox.sync_with(&own(4096));
        assert_eq!((report.reread_files, report.problems.len()), (read, 1));
        assert_eq!((report.listed_directories, mailbox.find("").len()), (0, all));
        let reader = mailbox.store.open_reader().unwrap();
        let (addresses, converters) = (own(4096).personal_addresses, own(4096).converters);
        assert!(!is_mail_outdated(&reader, &addresses, &converters).unwrap());
    }
    let row = |mailbox: &Mailbox| {
        let reader = mailbox.store.open_reader().unwrap();
        reader.mail().unwrap().rows_with_uid("m1").unwrap()
    };
    let former = row(&mailbox);
    assert_eq!(mailbox.sync_with(&own(1 << 20)).reread_files, 1);
    // Its words are those of the new rules, too.
    assert!(row(&mailbox) > former);
    assert_eq!(mailbox.sync_with(&own(1 << 20)).reread_files, 0);
    check(&mailbox.store);
    mailbox.verify(&own(1 << 20));
    // A file that only looks changed is no reason to write its words again.
    let current = row(&mailbox);
    mailbox.settle();
    let options = MailSyncOptions { is_full: true, ..own(1 << 20) };
    let file = fs::File::open(mailbox.root().join("cur/1000001.host:2,")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(mailbox.sync_with(&options).reread_files, 1);
    assert_eq!(row(&mailbox), current);
}

#[test]
fn a_thread_that_a_removed_message_joined_is_divided() {
    let mut mailbox = Mailbox::new();
    let reply = |id: &str, references: &str| {
        message(id, "note", id).replacen('\n', &format!("\nReferences: {references}\n"), 1)
    };
    mailbox.write("cur/a:2,", message("a", "note", "a"));
    mailbox.write("cur/b:2,", reply("b", "<a>"));
    mailbox.write("cur/c:2,", reply("c", "<missing>"));
    mailbox.sync();
    mailbox.write("cur/d:2,", reply("d", "<b> <missing>"));
    mailbox.sync();
    assert_eq!(mailbox.find("thread:c"), ["a", "b", "c", "d"]);
    fs::remove_file(mailbox.root().join("cur/d:2,")).unwrap();
    mailbox.sync();
    assert_eq!(mailbox.find("thread:c"), ["c"]);
    assert_eq!(mailbox.find("thread:b"), ["a", "b"]);
    // It comes back, and the thread is joined again.
    mailbox.write("cur/d:2,", reply("d", "<b> <missing>"));
    mailbox.sync();
    assert_eq!(mailbox.find("thread:a"), ["a", "b", "c", "d"]);
    // Without the others, an ID that only they named is that of no thread.
    for name in ["a", "b", "d"] {
        fs::remove_file(mailbox.root().join(format!("cur/{name}:2,"))).unwrap();
    }
    mailbox.write("cur/e:2,", reply("e", "<b>"));
    mailbox.sync();
    assert_eq!(mailbox.find("thread:e"), ["e"]);
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}

#[test]
fn messages_are_found_by_their_files() {
    let mut mailbox = Mailbox::new();
    mailbox.write("a/cur/1.host:2,S", message("m1", "note", "walrus"));
    mailbox.write("cur/2.host:2,", message("m2", "note", "walrus"));
    mailbox.sync();
    assert_eq!(mailbox.find("path:/m/a/cur/1.host:2,S"), ["m1"]);
    assert_eq!(mailbox.find("path:/m/cur/2.host:2, or path:/m/cur/none"), ["m2"]);
    assert_eq!(mailbox.find("path:/elsewhere/cur/2.host:2,"), [""; 0]);
    assert_eq!(mailbox.find("path:/m"), [""; 0]);
    assert_eq!(mailbox.find("path:/m/**"), ["m1", "m2"]);
    assert_eq!(mailbox.find("path:/m/a/**"), ["m1"]);
    assert_eq!(mailbox.find("path:/m/a/cur/** or path:/x/**"), [""; 0]);
    assert_eq!(mailbox.find("path:/** walrus"), ["m1", "m2"]);
    assert_eq!(mailbox.find("changed:1h.."), ["m1", "m2"]);
    assert_eq!(mailbox.find("changed:..2020"), [""; 0]);
}
