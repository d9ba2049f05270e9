//! Mail on file systems that are slow to tell, and changes at bad moments.

use crate::mail_sources::MailHome;
use crate::mail_sync::{check, counts, full_sync, small_batches};
use crate::mail_sync_model::assert_same_as_fresh;
use crate::mailbox::{COLLECTION, Mailbox, create_index, find_rows, message};
use larder_store::Store;
use larder_sync::maildir::scan_mail;
use larder_sync::{
    Error, MailSource, MailSourceFormat, MailSyncOptions, sync_locked_mail, sync_maildir,
};
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A network file system may number its files anew when it is mounted again. A copy of a maildir
/// has other times, too.
#[test]
fn other_inodes_of_all_files_change_no_message() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..30);
    mailbox.write("a/cur/1.host:2,S", message("m1", "note", "a copy"));
    mailbox.sync();
    let before = mailbox.find("common");
    let (root, away) = (mailbox.root(), mailbox.outside_path("away"));
    let handles = |mailbox: &Mailbox| {
        let reader = mailbox.store.open_reader().unwrap();
        let rows = find_rows(&reader, "common");
        let mail = reader.mail().unwrap();
        let handle = |row: &u32| mail.message(*row).unwrap().unwrap().handle;
        let mut handles: Vec<_> = rows.iter().map(handle).collect();
        handles.sort();
        handles
    };
    let known = handles(&mailbox);
    for option in ["-a", "-r", "-a"] {
        fs::rename(&root, &away).unwrap();
        assert!(Command::new("cp").arg(option).args([&away, &root]).status().unwrap().success());
        fs::remove_dir_all(&away).unwrap();
        let report = mailbox.sync();
        assert_eq!((report.removed_files, report.problems), (0, vec![]));
        assert_eq!(mailbox.find("common"), before);
        assert_eq!(handles(&mailbox), known);
        assert_same_as_fresh(&mailbox);
        check(&mailbox.store);
    }
}

/// A file system takes any time that it is told, and nanoseconds end in the year 2262.
#[test]
fn files_may_be_of_the_far_future() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1.host:2,", message("m1", "note", "walrus"));
    mailbox.write("cur/2.host:2,", "Subject: no date\n\nseal\n");
    let far = UNIX_EPOCH + Duration::new(10_000_000_000, 999_999_999);
    for path in ["cur/1.host:2,", "cur/2.host:2,", "cur"] {
        fs::File::open(mailbox.root().join(path)).unwrap().set_modified(far).unwrap();
    }
    assert_eq!(counts(&mailbox.sync()), (2, 0, 0));
    let (root, renamed) = (mailbox.root(), mailbox.root().join("cur/1.host:2,S"));
    fs::rename(root.join("cur/1.host:2,"), renamed).unwrap();
    let report = mailbox.sync();
    assert_eq!((counts(&report), report.reread_files), ((0, 1, 0), 0));
    assert_eq!(mailbox.sync_with(&full_sync()).reread_files, 0);
    assert_eq!((mailbox.find("walrus flag:seen").len(), mailbox.find("seal").len()), (1, 1));
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}

/// A clock of whole seconds gives a later change the same time.
#[test]
fn changes_in_the_same_second_are_seen() {
    let mailbox = Mailbox::new();
    mailbox.write("cur/1.host:2,", message("m1", "note", "walrus"));
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = UNIX_EPOCH + Duration::from_secs(seconds);
    let stop_clock = |paths: &[&str]| {
        for path in paths {
            let file = fs::File::open(mailbox.root().join(path)).unwrap();
            file.set_modified(now).unwrap();
        }
    };
    stop_clock(&["cur/1.host:2,", "cur"]);
    let (root, options) = (mailbox.root(), small_batches(64));
    let sync = |store: &mut Store, options: &MailSyncOptions| {
        sync_maildir(store, &root, COLLECTION, options, &mut |_| {}, &|| false).unwrap()
    };
    let mut store = create_index(mailbox.outside_path("other"));
    assert_eq!(counts(&sync(&mut store, &options)), (1, 0, 0));
    mailbox.write("cur/2.host:2,", message("m2", "note", "walrus"));
    stop_clock(&["cur/2.host:2,", "cur"]);
    assert_eq!(counts(&sync(&mut store, &options)), (1, 0, 0));
    fs::remove_file(root.join("cur/2.host:2,")).unwrap();
    stop_clock(&["cur"]);
    assert_eq!(counts(&sync(&mut store, &options)), (0, 0, 1));
    // Another text of the same length.
    mailbox.write("cur/1.host:2,", message("m1", "note", "otters"));
    stop_clock(&["cur/1.host:2,", "cur"]);
    assert_eq!(sync(&mut store, &full_sync()).reread_files, 1);
    assert_eq!(find_rows(&store.open_reader().unwrap(), "otters").len(), 1);
}

/// A folder with very many files is compared with the index, and not each file with all others.
#[test]
fn a_folder_may_have_very_many_files() {
    const FILES: usize = 20_000;
    let mut mailbox = Mailbox::new();
    let directory = mailbox.root().join("cur");
    fs::create_dir_all(&directory).unwrap();
    for number in 0..FILES {
        let text = format!("Message-ID: <m{number}>\n\nword\n");
        fs::write(directory.join(format!("{number}.host:2,")), text).unwrap();
    }
    let options = MailSyncOptions::default();
    assert_eq!(counts(&mailbox.sync_with(&options)), (FILES, 0, 0));
    // A mail reader marks half of them as read, and deletes others.
    for number in 0..FILES / 2 {
        let path = |flags: &str| directory.join(format!("{number}.host:2,{flags}"));
        fs::rename(path(""), path("S")).unwrap();
    }
    for number in FILES / 2..FILES / 2 + FILES / 10 {
        fs::remove_file(directory.join(format!("{number}.host:2,"))).unwrap();
    }
    assert_eq!(counts(&mailbox.sync_with(&options)), (0, FILES / 2, FILES / 10));
    let reader = mailbox.store.open_reader().unwrap();
    assert_eq!(find_rows(&reader, "word").len(), FILES - FILES / 10);
    assert_eq!(find_rows(&reader, "flag:seen").len(), FILES / 2);
}

/// A disk is taken away while its messages are read.
#[test]
fn a_maildir_that_vanishes_during_a_synchronisation_keeps_its_messages() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..10);
    mailbox.sync();
    mailbox.write_numbered("cur", 10..60);
    let (root, away) = (mailbox.root(), mailbox.outside_path("away"));
    let is_first = Cell::new(true);
    let mut take_away = |_| {
        if is_first.replace(false) {
            fs::rename(&root, &away).unwrap();
        }
    };
    let options = MailSyncOptions { readers: 1, ..small_batches(1) };
    let store = &mut mailbox.store;
    let report = sync_maildir(store, &root, COLLECTION, &options, &mut take_away, &|| false);
    assert_eq!(report.unwrap().removed_files, 0);
    let found = mailbox.find("common").len();
    assert!((10..60).contains(&found), "{found}");
    let store = &mut mailbox.store;
    let error = sync_maildir(store, &root, COLLECTION, &options, &mut |_| {}, &|| false);
    assert!(matches!(error, Err(Error::Maildir { .. })), "{error:?}");
    assert_eq!(mailbox.find("common").len(), found);
    fs::rename(&away, &root).unwrap();
    assert_eq!(mailbox.sync().added_files, 60 - found);
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
}

/// What is no file, cannot be read, or has another name than text, beside mbox and .eml files.
#[test]
fn trees_of_mail_files_may_have_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("mail");
    let write = |name: &OsStr, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let separated =
        |id: &str| format!("From a Wed Jan  1 10:00:00 2020\n{}\n", message(id, "note", "common"));
    write(OsStr::from_bytes(b"ca\xff\xfe"), &separated("m1"));
    write(OsStr::from_bytes(b"fo\xff/\xfe.eml"), &message("m2", "note", "common"));
    write(OsStr::new("Inbox"), &separated("m3"));
    let make_pipe = |name: &str| {
        assert!(Command::new("mkfifo").arg(root.join(name)).status().unwrap().success());
    };
    make_pipe("pipe");
    make_pipe("pipe.eml");
    fs::create_dir(root.join("folder.eml")).unwrap();
    let mut store = create_index(folder.path().join("index"));
    let sync = |store: &mut Store| {
        let lock = store.lock_mail_sync().unwrap();
        let (root, format) = (root.as_path(), MailSourceFormat::Files);
        let source = MailSource { root, format, collection: COLLECTION };
        let options = small_batches(64);
        sync_locked_mail(store, &lock, source, &options, None, &mut |_| {}, &|| false).unwrap()
    };
    let report = sync(&mut store);
    let names = |paths: Vec<&Path>| -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_string()).collect()
    };
    let left_out = names(report.problems.iter().map(|one| one.path.as_path()).collect());
    assert_eq!((report.added_files, left_out), (3, vec!["pipe.eml".to_string()]));
    let count = |store: &Store| find_rows(&store.open_reader().unwrap(), "common").len();
    assert_eq!(count(&store), 3);
    // A folder in the place of a file that is read; its messages are gone.
    fs::remove_file(root.join("Inbox")).unwrap();
    fs::create_dir(root.join("Inbox")).unwrap();
    fs::write(root.join("Inbox/x"), "no mail").unwrap();
    assert_eq!(scan_mail(&root, MailSourceFormat::Files).unwrap().directories.len(), 3);
    assert_eq!(sync(&mut store).removed_files, 1);
    assert_eq!(count(&store), 2);
    check(&store);
}

/// A timer and a watch synchronise at the same time.
#[test]
fn two_synchronisations_at_once_do_the_work_once() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    home.add("mail", &root);
    for number in 0..200 {
        let text = message(&format!("n{number}"), "note", "common");
        fs::write(root.join(format!("cur/{number}.host:2,")), text).unwrap();
    }
    for is_first in [true, false, false] {
        let barrier = Barrier::new(2);
        let run = || {
            barrier.wait();
            home.sync()
        };
        let lines = thread::scope(|scope| {
            let threads = [scope.spawn(run), scope.spawn(run)];
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        let added = |line: &String| line.rsplit('+').next().unwrap().parse::<usize>().unwrap();
        let total: usize = lines.iter().map(added).sum();
        assert_eq!(total, if is_first { 201 } else { 0 }, "{lines:?}");
        assert_eq!(find_rows(&home.index(), "common").len(), 200);
    }
}

/// A program that copies a folder gives it the time of the original again.
#[test]
fn a_directory_with_its_former_time_is_listed_if_it_changed() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..2);
    mailbox.settle_files();
    mailbox.settle();
    assert_eq!(mailbox.sync().added_files, 2);
    assert_eq!(mailbox.sync().listed_directories, 0);
    mailbox.write_numbered("cur", 2..3);
    mailbox.settle_files();
    mailbox.settle();
    assert_eq!(mailbox.sync().added_files, 1);
    assert_eq!(mailbox.find("common").len(), 3);
}

/// Gives a file a time at which it counts as new for more than three seconds.
fn set_new(path: &Path) {
    let soon = SystemTime::now() + Duration::from_millis(1500);
    fs::File::open(path).unwrap().set_modified(soon).unwrap();
}

/// Files are written into the directory itself, as by cp, and a synchronisation comes in between.
#[test]
fn a_file_is_read_again_when_it_is_complete() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..2);
    mailbox.settle_files();
    let path = mailbox.root().join("cur/3.host:2,S");
    fs::write(&path, message("m3", "note", "walrus")).unwrap();
    set_new(&path);
    mailbox.settle();
    assert_eq!(mailbox.sync().added_files, 3);
    // The directory does not change.
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"otter\n").unwrap();
    set_new(&path);
    let report = mailbox.sync();
    assert_eq!((report.added_files, report.reread_files), (0, 1));
    assert_eq!(mailbox.find("otter"), ["m3"]);
    // It was not complete yet.
    file.write_all(b"beaver\n").unwrap();
    drop(file);
    mailbox.settle_files();
    assert_eq!(mailbox.sync().reread_files, 1);
    assert_eq!(mailbox.find("beaver"), ["m3"]);
    let report = mailbox.sync();
    assert_eq!((report.reread_files, report.listed_directories), (0, 1));
    assert_eq!(mailbox.sync().listed_directories, 0);
    check(&mailbox.store);
}

/// Files that were read when they were new, and do not change, are looked at until they are old.
/// That changes no message.
#[test]
fn a_directory_of_new_files_is_listed_until_they_are_old() {
    let mut mailbox = Mailbox::new();
    let began = Instant::now();
    mailbox.write_numbered("cur", 0..2);
    mailbox.settle();
    assert_eq!(mailbox.sync().added_files, 2);
    let changed = mailbox.store.last_seq().unwrap();
    loop {
        let report = mailbox.sync();
        assert_eq!((report.reread_files, report.renamed_files), (0, 0));
        let items =
            mailbox.store.open_reader().unwrap().changes().list_changed_rows(changed, i64::MAX);
        assert_eq!(items.unwrap(), Some(Vec::new()));
        if report.listed_directories == 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{report:?}");
    }
    assert!(began.elapsed() > Duration::from_millis(1900), "the files were new");
    check(&mailbox.store);
    mailbox.verify(&MailSyncOptions::default());
}
