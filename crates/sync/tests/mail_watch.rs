//! Watches of maildirs: each change is in the index soon.

use crate::mail_sources::MailHome;
use crate::mail_sync::small_batches;
use crate::mailbox::{find_rows, message};
use larder_store::Store;
use larder_sync::{
    AttachmentConverter, ConverterLimits, ConverterSettings, MailSourceFormat, MailSyncOptions,
    MailWatch, MailWatchEvent, MailWatchOptions, MailWatchWaker, SourceSelection, SyncRoundEvent,
    WatchLimits, add_mail_source, remove_source,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Waits for a line; lines of rounds without changes are left out.
fn next(lines: &Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(30)).expect("an event")
}

/// Ends a watch, also when a test fails.
struct EndGuard<'e>(&'e AtomicBool, MailWatchWaker);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.wake();
    }
}

/// Runs a watch of all sources while `act` changes the maildirs.
fn watch(home: &MailHome, act: impl FnOnce(&Receiver<String>)) {
    watch_sources(home, SourceSelection::default(), act);
}

fn watch_sources(home: &MailHome, selection: SourceSelection, act: impl FnOnce(&Receiver<String>)) {
    watch_with(home, selection, small_batches(64), act);
}

fn watch_with(
    home: &MailHome,
    selection: SourceSelection,
    sync: MailSyncOptions,
    act: impl FnOnce(&Receiver<String>),
) {
    let limits = WatchLimits::default();
    watch_within(home, &MailWatchOptions { selection, sync, interval: None, limits }, act);
}

fn watch_within(home: &MailHome, options: &MailWatchOptions, act: impl FnOnce(&Receiver<String>)) {
    watch_and_disturb(home, options, &|_| (), act);
}

/// Runs a watch while `act` changes the maildirs, and `disturb` changes the stores at a line.
fn watch_and_disturb(
    home: &MailHome,
    options: &MailWatchOptions,
    disturb: &(dyn Fn(&str) + Sync),
    act: impl FnOnce(&Receiver<String>),
) {
    let mut watch = MailWatch::begin().unwrap();
    let (waker, stop) = (watch.waker(), AtomicBool::new(false));
    let (sender, lines) = channel();
    let mut send = |event: MailWatchEvent<'_>| {
        let line = match event {
            MailWatchEvent::Ready { .. } => "ready".to_string(),
            MailWatchEvent::Lost => "lost".into(),
            MailWatchEvent::LimitReached { folders } => format!("limit {folders}"),
            MailWatchEvent::Round(SyncRoundEvent::Forgotten(one)) => format!("-{}", one.name),
            MailWatchEvent::Round(SyncRoundEvent::Finished(source, Err(_))) => {
                format!("{}: missing", source.name)
            }
            MailWatchEvent::Round(SyncRoundEvent::Finished(source, Ok(report))) => {
                let counts = [
                    report.added_files,
                    report.reread_files,
                    report.renamed_files,
                    report.removed_files,
                ];
                if counts == [0; 4] {
                    return;
                }
                format!("{} {counts:?}", source.name)
            }
            MailWatchEvent::Round(SyncRoundEvent::Progress(_)) | MailWatchEvent::RoundEnded(_) => {
                return;
            }
        };
        disturb(&line);
        sender.send(line).unwrap();
    };
    thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let is_stopped = || stop.load(Ordering::Relaxed);
            watch.run(&home.stores, options, &mut send, &is_stopped)
        });
        let end = EndGuard(&stop, waker);
        act(&lines);
        drop(end);
        ended.join().unwrap().unwrap();
    });
}

#[test]
fn a_watch_notes_changes_as_they_happen() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    fs::create_dir(root.join("new")).unwrap();
    home.add("mail", &root);
    watch(&home, |lines| {
        assert_eq!((next(lines), next(lines)), ("mail [1, 0, 0, 0]".into(), "ready".into()));
        let staged = home.path("staged");
        fs::write(&staged, message("m2", "note", "seal")).unwrap();
        fs::rename(&staged, root.join("new/2")).unwrap();
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        fs::rename(root.join("new/2"), root.join("cur/2:2,S")).unwrap();
        assert_eq!(next(lines), "mail [0, 0, 1, 0]");
        // A draft is saved in its file.
        fs::write(root.join("cur/2:2,S"), message("m2", "note", "otters")).unwrap();
        assert_eq!(next(lines), "mail [0, 1, 0, 0]");
        assert_eq!(find_rows(&home.index(), "otters").len(), 1);
        // A folder is made in steps, and gets its message later.
        fs::create_dir(root.join("a")).unwrap();
        fs::create_dir(root.join("a/cur")).unwrap();
        fs::rename(root.join("cur/2:2,S"), root.join("a/cur/2:2,S")).unwrap();
        assert_eq!(next(lines), "mail [0, 0, 1, 0]");
        fs::write(root.join("a/cur/3:2,"), message("m3", "note", "seal")).unwrap();
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        // The folder is renamed, and its watches go on.
        fs::rename(root.join("a"), root.join("b")).unwrap();
        assert_eq!(next(lines), "mail [0, 0, 2, 0]");
        fs::remove_file(root.join("b/cur/3:2,")).unwrap();
        assert_eq!(next(lines), "mail [0, 0, 0, 1]");
        assert_eq!(find_rows(&home.index(), "maildir:/b").len(), 1);
    });
}

/// A new file may have the inode of the one that it replaces, which a second name keeps here.
#[test]
fn a_file_that_is_made_again_under_its_name_is_read() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    home.add("mail", &root);
    let (path, kept) = (root.join("cur/1:2,S"), home.path("kept"));
    fs::hard_link(&path, &kept).unwrap();
    watch(&home, |lines| {
        assert_eq!((next(lines), next(lines)), ("mail [1, 0, 0, 0]".into(), "ready".into()));
        fs::remove_file(&path).unwrap();
        fs::write(&kept, message("mail", "note", "otters")).unwrap();
        fs::hard_link(&kept, &path).unwrap();
        assert_eq!(next(lines), "mail [0, 1, 0, 0]");
        assert_eq!(find_rows(&home.index(), "otters").len(), 1);
    });
}

/// A change of a file is none in the folder of a link to it.
#[test]
fn changes_of_linked_mbox_files_are_noted() {
    let home = MailHome::new();
    let mbox = |id: &str| {
        format!("From a@b Sun Mar  1 10:00:00 2026\n{}\n", message(id, "note", "walrus"))
    };
    for folder in ["var", "files"] {
        fs::create_dir(home.path(folder)).unwrap();
    }
    let (spool, single) = (home.path("var/anna"), home.path("var/bo"));
    fs::write(&spool, mbox("m1")).unwrap();
    fs::write(&single, mbox("m2")).unwrap();
    symlink("../var/anna", home.path("files/inbox")).unwrap();
    symlink("var/bo", home.path("single")).unwrap();
    home.change_data(|store| {
        let files = MailSourceFormat::Files;
        add_mail_source(store, "files", &home.path("files"), files, 0).unwrap();
        add_mail_source(store, "single", &home.path("single"), files, 0).unwrap();
    });
    watch(&home, |lines| {
        assert_eq!(next(lines), "files [1, 0, 0, 0]");
        assert_eq!((next(lines), next(lines)), ("single [1, 0, 0, 0]".into(), "ready".into()));
        fs::write(&spool, mbox("m1") + &mbox("m3")).unwrap();
        assert_eq!(next(lines), "files [1, 0, 0, 0]");
        fs::write(&single, mbox("m2") + &mbox("m4")).unwrap();
        assert_eq!(next(lines), "single [1, 0, 0, 0]");
        // Mail programs remove an empty file.
        fs::remove_file(&spool).unwrap();
        assert_eq!(next(lines), "files: missing");
        fs::write(&spool, mbox("m5") + &mbox("m6") + &mbox("m7")).unwrap();
        assert_eq!(next(lines), "files [1, 2, 2, 0]");
    });
}

/// A link that replaces another one is a name that appears, and none that goes away.
#[test]
fn links_that_lead_elsewhere_are_followed() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    for name in ["e1", "e2", "r1", "r2"] {
        home.create_maildir(name);
    }
    let replace = |target: &str, link: &Path| {
        let staged = home.path("staged");
        symlink(home.path(target), &staged).unwrap();
        fs::rename(staged, link).unwrap();
    };
    let (link, source) = (root.join("L"), home.path("links/root"));
    fs::create_dir(home.path("links")).unwrap();
    replace("e1", &link);
    replace("r1", &source);
    home.add("mail", &root);
    home.add("root", &source);
    let deliver = |name: &str| {
        let path = home.path(name).join("cur/9:2,");
        fs::write(path, message(&format!("{name}-9"), "note", "seal")).unwrap();
    };
    watch(&home, |lines| {
        assert_eq!(
            (next(lines), next(lines)),
            ("mail [2, 0, 0, 0]".into(), "root [1, 0, 0, 0]".into())
        );
        assert_eq!(next(lines), "ready");
        replace("e2", &link);
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        deliver("e2");
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        replace("r2", &source);
        assert_eq!(next(lines), "root [1, 0, 0, 0]");
        assert_eq!(find_rows(&home.index(), "walrus").len(), 3);
        deliver("r2");
        assert_eq!(next(lines), "root [1, 0, 0, 0]");
    });
}

/// The system has one watch for a folder, whatever its paths are.
#[test]
fn a_folder_of_two_sources_is_watched_for_both() {
    let home = MailHome::new();
    home.create_maildir("one");
    let shared = home.create_maildir("one/shared");
    let link = home.create_maildir("two").join("link");
    symlink(&shared, &link).unwrap();
    home.add("one", &home.path("one"));
    home.add("two", &home.path("two"));
    let deliver = |name: u32| {
        let path = shared.join(format!("cur/{name}:2,"));
        fs::write(path, message(&format!("m{name}"), "note", "seal")).unwrap();
    };
    watch(&home, |lines| {
        let next_two = || {
            let mut both = [next(lines), next(lines)];
            both.sort();
            both
        };
        assert_eq!(next_two(), ["one [2, 0, 0, 0]", "two [2, 0, 0, 0]"]);
        assert_eq!(next(lines), "ready");
        fs::write(shared.join("cur/1:2,S"), message("one/shared", "note", "otters")).unwrap();
        assert_eq!(next_two(), ["one [0, 1, 0, 0]", "two [0, 1, 0, 0]"]);
        deliver(2);
        assert_eq!(next_two(), ["one [1, 0, 0, 0]", "two [1, 0, 0, 0]"]);
        fs::remove_file(&link).unwrap();
        assert_eq!(next(lines), "two [0, 0, 0, 2]");
        deliver(3);
        assert_eq!(next(lines), "one [1, 0, 0, 0]");
        symlink(&shared, &link).unwrap();
        assert_eq!(next(lines), "two [3, 0, 0, 0]");
        deliver(4);
        assert_eq!(next_two(), ["one [1, 0, 0, 0]", "two [1, 0, 0, 0]"]);
    });
}

/// A folder that one of its names loses keeps its watch.
#[test]
fn an_edit_beside_the_removal_of_a_link_is_noted() {
    let home = MailHome::new();
    home.create_maildir("one");
    let shared = home.create_maildir("one/shared");
    let link = home.create_maildir("two").join("link");
    symlink(&shared, &link).unwrap();
    home.add("one", &home.path("one"));
    home.add("two", &home.path("two"));
    watch(&home, |lines| {
        next(lines);
        next(lines);
        assert_eq!(next(lines), "ready");
        fs::remove_file(&link).unwrap();
        fs::write(shared.join("cur/1:2,S"), message("one/shared", "note", "otters")).unwrap();
        let mut both = [next(lines), next(lines)];
        both.sort();
        assert_eq!(both, ["one [0, 1, 0, 0]", "two [0, 0, 0, 1]"]);
        assert_eq!(find_rows(&home.index(), "otters").len(), 1);
    });
}

fn remove_index(home: &MailHome) {
    for entry in fs::read_dir(home.path("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("index.db") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// An index that another program made during a round is not the one of the round.
#[test]
fn an_index_that_was_replaced_in_a_round_is_filled_by_the_next_one() {
    let home = MailHome::new();
    home.add("one", &home.create_maildir("one"));
    home.add("two", &home.create_maildir("two"));
    let (selection, limits) = (SourceSelection::default(), WatchLimits::default());
    let sync = small_batches(64);
    let options = MailWatchOptions { selection, sync, interval: None, limits };
    let replace_index = |line: &str| {
        if line == "two [0, 0, 0, 1]" {
            remove_index(&home);
            drop(Store::open(home.stores.index.clone(), &home.stores.options).unwrap());
        }
    };
    watch_and_disturb(&home, &options, &replace_index, |lines| {
        next(lines);
        next(lines);
        assert_eq!(next(lines), "ready");
        fs::remove_file(home.path("two/cur/1:2,S")).unwrap();
        assert_eq!(next(lines), "two [0, 0, 0, 1]");
        fs::write(home.path("two/cur/5:2,"), message("m5", "note", "seal")).unwrap();
        assert_eq!(
            (next(lines), next(lines)),
            ("one [1, 0, 0, 0]".into(), "two [1, 0, 0, 0]".into())
        );
    });
}

/// The next change of one source indexes all of them again.
#[test]
fn an_index_that_was_deleted_is_made_again_for_all_sources() {
    let home = MailHome::new();
    home.add("one", &home.create_maildir("one"));
    home.add("two", &home.create_maildir("two"));
    watch(&home, |lines| {
        assert_eq!(
            (next(lines), next(lines)),
            ("one [1, 0, 0, 0]".into(), "two [1, 0, 0, 0]".into())
        );
        assert_eq!(next(lines), "ready");
        remove_index(&home);
        fs::write(home.path("two/cur/5:2,"), message("m5", "note", "seal")).unwrap();
        assert_eq!(
            (next(lines), next(lines)),
            ("one [1, 0, 0, 0]".into(), "two [2, 0, 0, 0]".into())
        );
        fs::write(home.path("two/cur/6:2,"), message("m6", "note", "seal")).unwrap();
        assert_eq!(next(lines), "two [1, 0, 0, 0]");
    });
}

/// A system that allows few watches is asked in intervals.
#[test]
fn folders_without_a_watch_are_looked_at_in_intervals() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    fs::create_dir_all(root.join("z/cur")).unwrap();
    home.add("mail", &root);
    let limits = WatchLimits { folders: 2, unwatched_interval: Duration::from_millis(20) };
    let (selection, sync) = (SourceSelection::default(), small_batches(64));
    watch_within(&home, &MailWatchOptions { selection, sync, interval: None, limits }, |lines| {
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        assert_eq!((next(lines), next(lines)), ("limit 2".into(), "ready".into()));
        fs::write(root.join("z/cur/9:2,"), message("m9", "note", "seal")).unwrap();
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
        // A folder that comes later is found, too, and nothing is said again.
        fs::create_dir_all(root.join("y/cur")).unwrap();
        fs::write(root.join("y/cur/8:2,"), message("m8", "note", "seal")).unwrap();
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
    });
}

#[test]
fn a_watch_waits_for_a_maildir_that_is_gone() {
    let home = MailHome::new();
    let root = home.create_maildir("deep/mail");
    home.add("mail", &root);
    watch(&home, |lines| {
        assert_eq!((next(lines), next(lines)), ("mail [1, 0, 0, 0]".into(), "ready".into()));
        fs::rename(home.path("deep"), home.path("away")).unwrap();
        // The folder above it is not watched; any change of it would be noted.
        fs::write(home.path("away/mail/cur/2:2,"), message("m2", "note", "seal")).unwrap();
        assert_eq!(next(lines), "mail: missing");
        assert_eq!(find_rows(&home.index(), "").len(), 1);
        fs::rename(home.path("away"), home.path("deep")).unwrap();
        assert_eq!(next(lines), "mail [1, 0, 0, 0]");
    });
}

/// The name under which a source was chosen is not its name for ever.
#[test]
fn a_watch_of_a_source_follows_its_name() {
    let home = MailHome::new();
    home.add("one", &home.create_maildir("one"));
    home.add("two", &home.create_maildir("two"));
    let sources = home.stores.list_mail_sources().unwrap();
    let selection = SourceSelection::from_names(&["one".to_string()], &sources);
    watch_sources(&home, selection, |lines| {
        assert_eq!((next(lines), next(lines)), ("one [1, 0, 0, 0]".into(), "ready".into()));
        home.rename(&[("one", "three")]);
        fs::write(home.path("one/cur/5:2,"), message("m5", "note", "seal")).unwrap();
        assert_eq!(next(lines), "three [1, 0, 0, 0]");
        // The other source is none of this watch.
        fs::remove_file(home.path("two/cur/1:2,S")).unwrap();
        fs::remove_file(home.path("one/cur/5:2,")).unwrap();
        assert_eq!(next(lines), "three [0, 0, 0, 1]");
        // Nor is it when it gets the name.
        home.rename(&[("two", "one")]);
        fs::write(home.path("two/cur/6:2,"), message("m6", "note", "seal")).unwrap();
        fs::write(home.path("one/cur/7:2,"), message("m7", "note", "seal")).unwrap();
        assert_eq!(next(lines), "three [1, 0, 0, 0]");
        fs::remove_file(home.path("one/cur/7:2,")).unwrap();
        assert_eq!(next(lines), "three [0, 0, 0, 1]");
    });
}

/// Attachments without time are tried again by another run, not by each round.
#[test]
fn a_round_of_a_watch_retries_no_attachment() {
    let home = MailHome::new();
    home.add("one", &home.create_maildir("one"));
    let part = "--b\nContent-Type: application/pdf\n\n";
    let text = format!(
        "Message-ID: <m9>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         {part}one\n{part}two\n--b--\n"
    );
    fs::write(home.path("one/cur/9:2,"), text).unwrap();
    let script = "case $(cat) in one) echo seal;; *) exec sleep 1000;; esac";
    let command = ["sh", "-c", script].map(str::to_string).to_vec();
    let converters = vec![AttachmentConverter { media_type: "application/pdf".into(), command }];
    let limits = ConverterLimits { time: Duration::from_secs(1), ..ConverterLimits::default() };
    let converters = ConverterSettings { converters, limits };
    let sync = MailSyncOptions { converters, ..small_batches(64) };
    watch_with(&home, SourceSelection::default(), sync.clone(), |lines| {
        assert_eq!((next(lines), next(lines)), ("one [2, 0, 0, 0]".into(), "ready".into()));
        fs::write(home.path("one/cur/5:2,"), message("m5", "note", "seal")).unwrap();
        assert_eq!(next(lines), "one [1, 0, 0, 0]");
        // A flag that is set back makes a file again under its name, and says nothing of others.
        let (seen, unseen) = (home.path("one/cur/1:2,S"), home.path("one/cur/1:2,"));
        fs::rename(&seen, &unseen).unwrap();
        assert_eq!(next(lines), "one [0, 0, 1, 0]");
        fs::rename(&unseen, &seen).unwrap();
        assert_eq!(next(lines), "one [0, 0, 1, 0]");
    });
    watch_with(&home, SourceSelection::default(), sync, |lines| {
        assert_eq!((next(lines), next(lines)), ("one [0, 1, 0, 0]".into(), "ready".into()));
    });
}

#[test]
fn a_watch_follows_the_registrations() {
    let home = MailHome::new();
    home.add("one", &home.create_maildir("one"));
    watch(&home, |lines| {
        assert_eq!((next(lines), next(lines)), ("one [1, 0, 0, 0]".into(), "ready".into()));
        home.add("two", &home.create_maildir("two"));
        assert_eq!(next(lines), "two [1, 0, 0, 0]");
        fs::remove_file(home.path("two/cur/1:2,S")).unwrap();
        assert_eq!(next(lines), "two [0, 0, 0, 1]");
        home.change_data(|store| remove_source(store, "one", 0).unwrap());
        assert_eq!(next(lines), "-one");
    });
    assert_eq!(find_rows(&home.index(), "").len(), 0);
}
