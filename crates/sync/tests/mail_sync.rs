//! Synchronisations of maildirs: changes, and damage.

use crate::mail_sync_model::assert_same_as_fresh;
use crate::mailbox::{
    COLLECTION, Mailbox, column_value, create_index, find_rows, indexed_messages, message,
};
use larder_store::message_flags::{MessageFlag, MessageFlags};
use larder_store::{Kind, MailColumn, Reader, Store};
use larder_sync::{
    Error, MailSourceFormat, MailSyncOptions, MailSyncReport, RegisteredSource, SyncProblem,
    find_absent_mail, remove_indexed_mail, sync_maildir,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(crate) fn small_batches(batch_messages: usize) -> MailSyncOptions {
    MailSyncOptions { batch_messages, readers: 2, ..MailSyncOptions::default() }
}

pub(crate) fn full_sync() -> MailSyncOptions {
    MailSyncOptions { is_full: true, ..small_batches(64) }
}

/// Gives a file an old time.
pub(crate) fn set_old(path: &Path) {
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000);
    fs::File::open(path).unwrap().set_modified(old).unwrap();
}

pub(crate) fn counts(report: &MailSyncReport) -> (usize, usize, usize) {
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    (report.added_files, report.renamed_files, report.removed_files)
}

pub(crate) fn check(store: &Store) {
    let report = store.check().unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn a_small_number_in_a_name_is_no_time() {
    let mut mailbox = Mailbox::new();
    for name in ["603.t__data.host:2,S", "7:2,"] {
        let path = format!("cur/{name}");
        mailbox.write(&path, format!("From: a@x.example\nSubject: walrus {name}\n\ntext\n"));
        set_old(&mailbox.root().join(path));
    }
    mailbox.write("cur/1577872800.M1.host:2,S", "From: a@x.example\nSubject: walrus\n\ntext\n");
    mailbox.sync();
    assert_eq!(mailbox.find("date:1970-01-24").len(), 2);
    assert_eq!(mailbox.find("date:2020-01-01").len(), 1);
}

#[test]
fn a_second_synchronisation_writes_nothing() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.write_numbered("a/new", 3..5);
    mailbox.settle_files();
    // While the state of the directories is not final, they are listed again.
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.listed_directories), ((5, 0, 0), 3));
    mailbox.settle();
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.listed_directories), ((0, 0, 0), 3));
    let last = mailbox.store.last_seq().unwrap();
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.listed_directories), ((0, 0, 0), 0));
    let report = mailbox.sync_with(&full_sync());
    assert_eq!((counts(&report), report.listed_directories), ((0, 0, 0), 3));
    assert_eq!(report.reread_files, 0);
    assert_eq!(mailbox.store.last_seq().unwrap(), last);
    check(&mailbox.store);
}

#[test]
fn a_changed_flag_or_folder_reads_no_file() {
    let mut mailbox = Mailbox::new();
    mailbox.write("new/1.host", message("m1", "note", "walrus"));
    mailbox.write("a/cur/2.host:2,S", message("m2", "note", "walrus"));
    for path in ["new/1.host", "a/cur/2.host:2,S"] {
        set_old(&mailbox.root().join(path));
    }
    mailbox.sync();
    assert_eq!(mailbox.find("flag:new"), ["m1"]);
    let root = mailbox.root();
    // The same inode, size and time with other bytes: the index would see them only if it read the
    // file.
    for path in ["new/1.host", "a/cur/2.host:2,S"] {
        let path = root.join(path);
        fs::write(&path, message("m3", "note", "_seal_")).unwrap();
        set_old(&path);
    }
    fs::rename(root.join("new/1.host"), root.join("cur/1.host:2,FS")).unwrap();
    fs::rename(root.join("a/cur/2.host:2,S"), root.join("cur/2.host:2,")).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 2, 0));
    assert_eq!(mailbox.find("walrus"), ["m1", "m2"]);
    assert_eq!(mailbox.find("seal"), [""; 0]);
    assert_eq!(mailbox.find("flag:flagged"), ["m1"]);
    assert_eq!(mailbox.find("flag:unread"), ["m2"]);
    assert_eq!(mailbox.find("maildir:/"), ["m1", "m2"]);
    assert_eq!(mailbox.find("maildir:/a"), [""; 0]);
    check(&mailbox.store);
}

#[test]
fn a_message_has_the_flags_and_folders_of_all_its_files() {
    let mut mailbox = Mailbox::new();
    let text = message("m1", "note", "walrus");
    mailbox.write("cur/1.host:2,S", &text);
    mailbox.write("a/cur/2.host:2,F", &text);
    mailbox.sync();
    assert_eq!(mailbox.find("flag:flagged flag:seen maildir:/ maildir:/a"), ["m1"]);
    fs::remove_file(mailbox.root().join("a/cur/2.host:2,F")).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 0, 1));
    assert_eq!(mailbox.find("flag:seen maildir:/ not flag:flagged not maildir:/a"), ["m1"]);
    check(&mailbox.store);
}

/// A file that is moved over another one of the same name takes its place.
#[test]
fn a_file_replaces_another_one() {
    let mut mailbox = Mailbox::new();
    mailbox.write("a/cur/1.host:2,", message("m1", "note", "walrus"));
    mailbox.write("b/cur/1.host:2,", message("m2", "note", "seal"));
    mailbox.sync();
    let root = mailbox.root();
    fs::rename(root.join("a/cur/1.host:2,"), root.join("b/cur/1.host:2,")).unwrap();
    mailbox.sync();
    assert_eq!(mailbox.find(""), ["m1"]);
    assert_eq!(mailbox.find("maildir:/b"), ["m1"]);
    // A new file in the place of the only one.
    mailbox.write("tmp/x", message("m3", "note", "otter"));
    fs::rename(root.join("tmp/x"), root.join("b/cur/1.host:2,")).unwrap();
    mailbox.sync();
    assert_eq!(mailbox.find(""), ["m3"]);
    indexed_messages(&mailbox.store);
    check(&mailbox.store);
}

/// The indexes of items are derived from their bytes, which messages have not in the store.
#[test]
fn a_rebuild_of_other_indexes_keeps_messages() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.sync();
    let before = indexed_messages(&mailbox.store);
    mailbox.store.rebuild().unwrap();
    assert_eq!(indexed_messages(&mailbox.store), before);
    check(&mailbox.store);
    assert_same_as_fresh(&mailbox);
}

#[test]
fn folders_are_left_out_on_request() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..2);
    mailbox.write_numbered("a/cur", 2..4);
    mailbox.write_numbered("b/cur", 4..5);
    mailbox.write("b/.noupdate", "");
    mailbox.settle_files();
    mailbox.settle();
    mailbox.sync();
    assert_eq!(mailbox.find("").len(), 5);
    mailbox.write("a/.noindex", "");
    mailbox.write_numbered("b/cur", 5..6);
    assert_eq!(counts(&mailbox.sync()), (0, 0, 2));
    assert_eq!(
        counts(&mailbox.sync_with(&MailSyncOptions { is_full: true, ..small_batches(64) })),
        (1, 0, 0)
    );
    assert_eq!(mailbox.find("").len(), 4);
    assert_same_as_fresh(&mailbox);
}

/// Two messages with one Message-ID are two: both are found by it, whichever goes first.
#[test]
fn another_text_under_a_known_message_id_is_another_message() {
    for removed in ["1.host:2,", "2.host:2,"] {
        let mut mailbox = Mailbox::new();
        mailbox.write("cur/1.host:2,", message("m1", "note", "walrus"));
        mailbox.sync();
        mailbox.write("cur/2.host:2,", message("m1", "note", "seal"));
        mailbox.sync();
        assert_eq!(mailbox.find("walrus").len() + mailbox.find("seal").len(), 2);
        assert_eq!(mailbox.find("walrus seal").len(), 0);
        assert_eq!(mailbox.find("msgid:m1").len(), 2);
        assert_eq!(mailbox.find("thread:m1").len(), 2);
        fs::remove_file(mailbox.root().join("cur").join(removed)).unwrap();
        mailbox.sync();
        assert_eq!(mailbox.find("msgid:m1").len(), 1);
        // A copy of the one that stayed is no third message.
        let (number, word) = if removed == "1.host:2," { (2, "seal") } else { (1, "walrus") };
        let kept = mailbox.root().join(format!("cur/{number}.host:2,"));
        fs::copy(kept, mailbox.root().join("new/3.host")).unwrap();
        mailbox.sync();
        assert_eq!(mailbox.find("").len(), 1);
        assert_eq!(mailbox.find(word).len(), 1);
        check(&mailbox.store);
    }
}

/// A message that claims the name of another text does not hide it.
#[test]
fn no_message_takes_a_name_that_is_made_from_a_text() {
    let mut mailbox = Mailbox::new();
    let deliver = |mailbox: &mut Mailbox, texts: &[(&str, &str)]| {
        for (number, (id, word)) in texts.iter().enumerate() {
            mailbox.write(format!("cur/{number}.host:2,"), message(id, "note", word));
            mailbox.sync();
        }
    };
    deliver(&mut mailbox, &[("m1", "bait"), ("m1", "seal")]);
    let name = mailbox.find("seal").remove(0);
    assert!(name.ends_with("@larder"), "{name}");
    let mut mailbox = Mailbox::new();
    deliver(&mut mailbox, &[("m1", "bait"), (&name, "walrus"), ("m1", "seal")]);
    assert_eq!(mailbox.find("seal"), [name]);
    assert_eq!(mailbox.find("walrus").len(), 1);
    check(&mailbox.store);
}

/// The same text under two Message-IDs that others had before is two messages.
#[test]
fn the_names_of_other_texts_have_their_message_ids() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1.host:2,", message("m1", "note", "walrus"));
    mailbox.write("cur/2.host:2,", message("m2", "note", "seal"));
    mailbox.sync();
    mailbox.write("cur/3.host:2,", message("m1", "note", "otter"));
    mailbox.write("cur/4.host:2,", message("m2", "note", "otter"));
    mailbox.sync();
    assert_eq!(mailbox.find("otter").len(), 2);
    assert_eq!(mailbox.find("msgid:m1").len(), 2);
    check(&mailbox.store);
}

#[test]
fn an_empty_root_with_known_messages_is_an_error() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.sync();
    let (root, away) = (mailbox.root(), mailbox.outside_path("away"));
    fs::rename(&root, &away).unwrap();
    let last = mailbox.store.last_seq().unwrap();
    let mut sync = |root: &Path| {
        let options = small_batches(64);
        sync_maildir(&mut mailbox.store, root, COLLECTION, &options, &mut |_| {}, &|| false)
    };
    assert!(matches!(sync(&root), Err(Error::Maildir { .. })));
    fs::create_dir(&root).unwrap();
    assert!(matches!(sync(&root), Err(Error::EmptyMaildir { .. })));
    // A root without messages is none of these.
    fs::create_dir(root.join("cur")).unwrap();
    fs::remove_dir(root.join("cur")).unwrap();
    fs::remove_dir(&root).unwrap();
    fs::rename(&away, &root).unwrap();
    assert_eq!(counts(&sync(&root).unwrap()), (0, 0, 0));
    assert_eq!(mailbox.store.last_seq().unwrap(), last);
    assert_eq!(mailbox.find("").len(), 3);
}

#[test]
fn a_removed_folder_removes_its_messages() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..2);
    mailbox.write_numbered("a/cur", 2..5);
    mailbox.write_numbered("a/new", 5..6);
    mailbox.write_numbered("a/b/cur", 6..7);
    mailbox.sync();
    assert_eq!(mailbox.find("maildir:/a").len(), 4);
    // A renamed folder moves them.
    fs::rename(mailbox.root().join("a"), mailbox.root().join("c")).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 5, 0));
    assert_eq!(mailbox.find("maildir:/c").len(), 4);
    assert_eq!(mailbox.find("maildir:/c/b").len(), 1);
    assert_eq!(mailbox.find("maildir:/a").len(), 0);
    fs::remove_dir_all(mailbox.root().join("c")).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 0, 5));
    assert_eq!(mailbox.find("").len(), 2);
    assert_eq!(mailbox.find("word3").len(), 0);
    let reader = mailbox.store.open_reader().unwrap();
    assert_eq!(reader.mail().unwrap().directories(COLLECTION).unwrap().len(), 2);
    check(&mailbox.store);
}

/// A folder that cannot be read at the moment keeps its messages.
#[test]
fn an_unreadable_folder_keeps_its_messages() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..2);
    mailbox.write_numbered("a/cur", 2..4);
    mailbox.write_numbered("a/b/cur", 4..5);
    mailbox.sync();
    let (folder, away) = (mailbox.root().join("a"), mailbox.outside_path("away"));
    fs::rename(&folder, &away).unwrap();
    // A link to itself is unreadable also for root.
    symlink(&folder, &folder).unwrap();
    let report = mailbox.sync();
    assert_eq!((report.problems.len(), report.removed_files), (1, 0));
    assert_eq!(report.problems[0].path, folder);
    assert_eq!(mailbox.find("").len(), 5);
    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 0, 0));
    assert_eq!(mailbox.find("maildir:/a").len(), 2);
}

/// A folder whose disk is not mounted is an empty folder, or a link that leads nowhere.
#[test]
fn a_folder_of_an_unmounted_disk_keeps_its_messages() {
    for is_link in [false, true] {
        let mut mailbox = Mailbox::new();
        let (disk, folder) = (mailbox.outside_path("disk"), mailbox.root().join("a"));
        mailbox.write_numbered("cur", 0..2);
        mailbox.write_numbered("a/b/cur", 2..4);
        if is_link {
            fs::rename(&folder, &disk).unwrap();
            symlink(&disk, &folder).unwrap();
        }
        mailbox.sync();
        let away = mailbox.outside_path("away");
        fs::rename(if is_link { &disk } else { &folder }, &away).unwrap();
        if !is_link {
            fs::create_dir(&folder).unwrap();
        }
        for _ in 0..2 {
            let report = mailbox.sync();
            assert_eq!((report.problems.len(), report.removed_files), (1, 0), "{report:?}");
            assert_eq!(report.problems[0].path, folder);
            assert_eq!(mailbox.find("maildir:/a/b").len(), 2);
        }
        // Files that turn up elsewhere were moved.
        fs::rename(away.join("b/cur/1000002.host:2,"), mailbox.root().join("cur/1000002.host:2,"))
            .unwrap();
        let report = mailbox.sync();
        assert_eq!((report.renamed_files, report.problems.len()), (1, 1));
        // The messages are gone when the folder is.
        if is_link { fs::remove_file(&folder) } else { fs::remove_dir(&folder) }.unwrap();
        assert_eq!(counts(&mailbox.sync()), (0, 0, 1));
        assert_eq!(mailbox.find("").len(), 3);
        assert_same_as_fresh(&mailbox);
    }
}

/// A new index knows no folders: those of the one that it replaces are looked at.
#[test]
fn a_new_index_lacks_the_folders_that_cannot_be_read() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/a:2,", message("a", "note", "a"));
    mailbox.write("Sub/cur/b:2,", message("b", "note", "b"));
    mailbox.sync();
    let fill = |name: &str| {
        let mut new = create_index(mailbox.outside_path(name));
        let (root, options) = (mailbox.root(), MailSyncOptions::default());
        sync_maildir(&mut new, &root, COLLECTION, &options, &mut |_| {}, &|| false).unwrap();
        new.open_reader().unwrap()
    };
    let old = mailbox.store.open_reader().unwrap();
    let properties = old.collections().list_properties(Kind::Message.collection_type()).unwrap();
    let source = RegisteredSource {
        name: COLLECTION.into(),
        path: mailbox.root(),
        format: MailSourceFormat::Maildir,
        handle_key: properties[0].handle_key.clone(),
    };
    let find = |new: &Reader, problems: &[SyncProblem]| -> Vec<String> {
        let absent = find_absent_mail(&old, new, std::slice::from_ref(&source), problems).unwrap();
        let root = mailbox.root();
        let relative = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
        absent.iter().map(|one| relative(&one.path)).collect()
    };
    let sub = mailbox.root().join("Sub");
    let reader = fill("new1");
    assert_eq!(find(&reader, &[]), [""; 0]);
    let problem = |path: &Path, is_left_out| {
        [SyncProblem { path: path.into(), reason: "permission denied".into(), is_left_out }]
    };
    // A folder, a directory of messages, a message, and one that is in the index.
    assert_eq!(find(&reader, &problem(&sub, true)), ["Sub"]);
    assert_eq!(find(&reader, &problem(&sub.join("cur"), true)), ["Sub/cur"]);
    assert_eq!(find(&reader, &problem(&sub.join("cur/b:2,"), true)), [""; 0]);
    assert_eq!(find(&reader, &problem(&sub, false)), [""; 0]);
    fs::remove_dir_all(sub.join("cur")).unwrap();
    let reader = fill("new2");
    assert_eq!(find(&reader, &[]), ["Sub"]);
    fs::remove_dir(&sub).unwrap();
    assert_eq!(find(&reader, &[]), [""; 0]);
}

/// A folder whose messages were moved elsewhere is no folder of an unmounted disk.
#[test]
fn an_empty_folder_whose_messages_were_moved_is_nothing_special() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("a/b/cur", 0..2);
    mailbox.sync();
    fs::rename(mailbox.root().join("a/b"), mailbox.root().join("c")).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 2, 0));
    assert_same_as_fresh(&mailbox);
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_is_indexed() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    let directory = mailbox.root().join("cur");
    let made = std::process::Command::new("mkfifo").arg(directory.join("pipe")).status();
    assert!(made.unwrap().success());
    symlink(directory.join("loop"), directory.join("loop")).unwrap();
    fs::File::create(directory.join("huge")).unwrap().set_len(257 << 20).unwrap();
    for _ in 0..2 {
        let report = mailbox.sync();
        let mut reasons: Vec<&str> =
            report.problems.iter().map(|problem| problem.reason.as_str()).collect();
        reasons.sort_unstable();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert_eq!((reasons[1], reasons[2]), ("larger than 256 MiB", "not a file"));
        assert!(report.problems.iter().all(|problem| problem.is_left_out));
        assert_eq!(mailbox.find("").len(), 3);
    }
    // The directory is listed again until all is well.
    for name in ["pipe", "loop", "huge"] {
        fs::remove_file(directory.join(name)).unwrap();
    }
    assert_eq!(counts(&mailbox.sync()), (0, 0, 0));
    check(&mailbox.store);
}

/// Files that are removed and renamed while others are read.
#[test]
fn files_may_vanish_during_a_synchronisation() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..40);
    let root = mailbox.root();
    let options = MailSyncOptions { readers: 1, ..small_batches(1) };
    let is_first = Cell::new(true);
    // The newest is read first, so the oldest ones are not read yet.
    let mut change_files = |_| {
        if is_first.replace(false) {
            for number in 0..4 {
                let path = root.join(format!("cur/{}.host:2,", 1_000_000 + number));
                match number {
                    0 => fs::remove_file(path).unwrap(),
                    1 => fs::rename(path, root.join("cur/1000001.host:2,S")).unwrap(),
                    2 => fs::rename(path, root.join("new/1000002.host")).unwrap(),
                    _ => fs::rename(path, root.join("tmp/away")).unwrap(),
                }
            }
        }
    };
    let report =
        sync_maildir(&mut mailbox.store, &root, COLLECTION, &options, &mut change_files, &|| false);
    assert_eq!(counts(&report.unwrap()), (38, 0, 0));
    assert_eq!(mailbox.find("").len(), 38);
    assert_eq!(counts(&mailbox.sync()), (0, 2, 0));
    assert_eq!(mailbox.find("flag:seen"), ["m1"]);
    assert_eq!(mailbox.find("flag:new"), ["m2"]);
    assert_eq!(mailbox.find("common").len(), 38);
    assert_same_as_fresh(&mailbox);
}

/// A file that a mail program moves while the directories are listed may be in no list.
#[test]
fn a_file_that_moves_during_a_synchronisation_stays() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1.host:2,", message("m1", "note", "walrus"));
    mailbox.sync();
    let (root, away) = (mailbox.root(), mailbox.outside_path("away"));
    fs::rename(root.join("cur/1.host:2,"), &away).unwrap();
    mailbox.write("cur/2.host:2,", message("m2", "note", "seal"));
    let mut end_move = |_| {
        if away.exists() {
            fs::rename(&away, root.join("new/1.host")).unwrap();
        }
    };
    let (store, options) = (&mut mailbox.store, MailSyncOptions::default());
    let report = sync_maildir(store, &root, COLLECTION, &options, &mut end_move, &|| false);
    assert_eq!(counts(&report.unwrap()), (1, 0, 0));
    assert_eq!(mailbox.find("walrus"), ["m1"]);
    assert_eq!(counts(&mailbox.sync()), (0, 1, 0));
    assert_eq!(mailbox.find("flag:new"), ["m1"]);
    assert_same_as_fresh(&mailbox);
}

/// `index.db` may be deleted at any time, without the files beside it.
#[test]
fn a_deleted_index_is_made_again() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..20);
    mailbox.sync();
    let other = create_index(mailbox.outside_path("other"));
    drop(std::mem::replace(&mut mailbox.store, other));
    let directory = mailbox.outside_path("index");
    fs::remove_file(directory.join("index.db")).unwrap();
    fs::write(directory.join("index.db-wal"), "left by a process that was killed").unwrap();
    mailbox.store = create_index(directory);
    assert_eq!(counts(&mailbox.sync()), (20, 0, 0));
    assert_eq!(mailbox.find("common").len(), 20);
    check(&mailbox.store);
}

#[test]
fn two_maildirs_share_an_index() {
    let mut mailbox = Mailbox::new();
    let options = small_batches(64);
    for (name, word) in [("one", "walrus"), ("two", "seal")] {
        let root = mailbox.outside_path(name);
        fs::create_dir_all(root.join("cur")).unwrap();
        fs::write(root.join("cur/1:2,"), message("m1", "note", word)).unwrap();
        fs::write(root.join("cur/2:2,"), message("m2", "note", "both")).unwrap();
        let store = &mut mailbox.store;
        sync_maildir(store, &root, name, &options, &mut |_| {}, &|| false).unwrap();
    }
    assert_eq!(mailbox.find("both"), ["m2", "m2"]);
    assert_eq!(mailbox.find("msgid:m2"), ["m2", "m2"]);
    assert_eq!(mailbox.find("walrus"), ["m1"]);
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let mut found: Vec<_> = mail.rows_with_uid("m1").unwrap();
    found.sort_unstable_by_key(|row| mail.collection_of(*row).unwrap());
    let files = found.iter().map(|row| mail.message_files(*row).unwrap());
    let expected = ["one", "two"].map(|name| vec![(name.to_string(), PathBuf::from("cur/1:2,"))]);
    assert_eq!(files.collect::<Vec<_>>(), expected);
    drop(mail);
    drop(reader);
    // The other maildir stays.
    assert_eq!(remove_indexed_mail(&mut mailbox.store, "one", 0).unwrap(), 2);
    assert_eq!(remove_indexed_mail(&mut mailbox.store, "one", 0).unwrap(), 0);
    assert_eq!(remove_indexed_mail(&mut mailbox.store, "none", 0).unwrap(), 0);
    assert_eq!((mailbox.find("walrus").len(), mailbox.find("seal").len()), (0, 1));
    // What was removed can be indexed again.
    let root = mailbox.outside_path("one");
    sync_maildir(&mut mailbox.store, &root, "one", &options, &mut |_| {}, &|| false).unwrap();
    assert_eq!(mailbox.find("walrus"), ["m1"]);
    check(&mailbox.store);
}

#[test]
fn names_need_not_be_utf_8() {
    let mut mailbox = Mailbox::new();
    let folder = PathBuf::from(OsStr::from_bytes(b"br\xfccke"));
    let name = folder.join("cur").join(OsStr::from_bytes(b"1.h\xf6st:2,S"));
    mailbox.write(&name, message("m1", "note", "walrus"));
    mailbox.sync();
    assert_eq!(mailbox.find("walrus flag:seen"), ["m1"]);
    let renamed = folder.join("cur").join(OsStr::from_bytes(b"1.h\xf6st:2,FS"));
    fs::rename(mailbox.root().join(name), mailbox.root().join(&renamed)).unwrap();
    assert_eq!(counts(&mailbox.sync()), (0, 1, 0));
    let messages = indexed_messages(&mailbox.store);
    let found = messages.values().next().unwrap();
    assert_eq!(found.files, [(COLLECTION.to_string(), renamed)]);
    assert!(found.folders.contains(&(COLLECTION.to_string(), b"br\xfccke".to_vec())));
    assert_eq!(mailbox.find("maildir:/br\u{fffd}cke"), ["m1"]);
}

#[test]
fn what_was_written_before_an_interruption_is_found() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..10);
    mailbox.settle();
    let root = mailbox.root();
    let asked = Cell::new(0);
    let is_cancelled = || asked.replace(asked.get() + 1) > 0;
    let report = sync_maildir(
        &mut mailbox.store,
        &root,
        COLLECTION,
        &MailSyncOptions { readers: 1, ..small_batches(1) },
        &mut |progress| assert_eq!((progress.done, progress.total), (1, 10)),
        &is_cancelled,
    )
    .unwrap();
    assert!(report.is_interrupted && report.added_files == 1);
    // The newest message is written first.
    assert_eq!(mailbox.find("word9"), ["m9"]);
    assert_eq!(mailbox.find("").len(), 1);
    assert_eq!(counts(&mailbox.sync()), (9, 0, 0));
    assert_eq!(mailbox.find("common").len(), 10);
    assert_eq!(counts(&mailbox.sync()), (0, 0, 0));
    assert_same_as_fresh(&mailbox);
}

#[test]
fn many_messages_cross_blocks() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..1500);
    mailbox.write_numbered("a/cur", 1500..3000);
    assert_eq!(counts(&mailbox.sync_with(&small_batches(64))), (3000, 0, 0));
    let reader = mailbox.store.open_reader().unwrap();
    assert_eq!(find_rows(&reader, "common").len(), 3000);
    assert_eq!(find_rows(&reader, "\"common word2999\"").len(), 1);
    assert_eq!(find_rows(&reader, "maildir:/a common").len(), 1500);
    assert_eq!(find_rows(&reader, "word29*").len(), 111);
    drop(reader);
    for number in [0, 7, 1023, 1024, 1025, 2047, 2048, 2999] {
        assert_eq!(mailbox.find(&format!("word{number}")), [format!("m{number}")]);
    }
    for number in (0..1500).step_by(3) {
        let path = mailbox.root().join(format!("cur/{}.host:2,", 1_000_000 + number));
        fs::remove_file(path).unwrap();
    }
    assert_eq!(counts(&mailbox.sync_with(&small_batches(64))), (0, 0, 500));
    let reader = mailbox.store.open_reader().unwrap();
    assert_eq!(find_rows(&reader, "common").len(), 2500);
    assert_eq!(find_rows(&reader, "not maildir:/a").len(), 1000);
    assert_eq!(find_rows(&reader, "common not word7").len(), 2499);
    drop(reader);
    let reader = mailbox.store.open_reader().unwrap();
    let row = reader.mail().unwrap().rows_with_uid("m7").unwrap()[0];
    assert!(
        MessageFlags::from_bits(column_value(&reader, MailColumn::Flags, row) as u16).is_unread()
    );
    drop(reader);
    assert_eq!(remove_indexed_mail(&mut mailbox.store, COLLECTION, 0).unwrap(), 2500);
    assert_eq!(mailbox.find(""), [""; 0]);
    assert_eq!(indexed_messages(&mailbox.store), BTreeMap::new());
    check(&mailbox.store);
}

/// The threads that read have no influence on the index.
#[test]
fn messages_are_written_in_their_order() {
    let mut mailbox = Mailbox::new();
    for number in 0..60 {
        // Some files take much longer than others.
        let body = if number % 7 == 0 { "walrus seal\n".repeat(5000) } else { "walrus".into() };
        let name = format!("cur/{}.host:2,", 1_000_000 + number);
        mailbox.write(name, message(&format!("m{number}"), "note", &body));
    }
    let options = MailSyncOptions { readers: 4, sort_inodes: false, ..small_batches(2) };
    mailbox.sync_with(&options);
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let rows = find_rows(&reader, "walrus").into_iter();
    let found: Vec<String> = rows.map(|row| mail.message(row).unwrap().unwrap().uid).collect();
    let newest_first: Vec<String> = (0..60).rev().map(|number| format!("m{number}")).collect();
    assert_eq!(found, newest_first);
}

#[test]
fn threads_are_the_same_in_any_order() {
    let reply = |id: &str, references: &str| {
        message(id, "note", id).replacen('\n', &format!("\nReferences: {references}\n"), 1)
    };
    let texts = [
        ("1", message("a", "note", "a")),
        ("2", reply("b", "<a>")),
        ("3", reply("c", "<missing>")),
        ("4", reply("d", "<missing> <b>")),
        ("5", message("e", "note", "e")),
    ];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [3, 0, 4, 2, 1]] {
        let mut mailbox = Mailbox::new();
        for place in order {
            let (name, text): &(&str, String) = &texts[place];
            mailbox.write(format!("cur/{name}:2,"), text);
            mailbox.sync();
        }
        assert_eq!(mailbox.find("thread:c"), ["a", "b", "c", "d"]);
        assert_eq!(mailbox.find("thread:e"), ["e"]);
        assert_eq!(mailbox.find("ref:missing"), ["c", "d"]);
        check(&mailbox.store);
    }
}

#[test]
fn flags_of_the_content_stay() {
    let mut mailbox = Mailbox::new();
    let text = message("m1", "note", "walrus").replacen('\n', "\nList-Id: <list.example.org>\n", 1);
    mailbox.write("cur/1.host:2,F", text);
    mailbox.sync();
    let root = mailbox.root();
    fs::rename(root.join("cur/1.host:2,F"), root.join("cur/1.host:2,S")).unwrap();
    mailbox.sync();
    let messages = indexed_messages(&mailbox.store);
    let flags = MessageFlags::from_bits(messages.values().next().unwrap().flags as u16);
    assert!(flags.contains(MessageFlag::List) && flags.contains(MessageFlag::Seen));
    assert!(!flags.contains(MessageFlag::Flagged));
    assert_eq!(mailbox.find("flag:list list:list.example.org"), ["m1"]);
}
