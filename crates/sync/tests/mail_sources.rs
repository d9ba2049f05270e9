//! The registered maildirs and their collections in the index.

use crate::mail_sync::{set_old, small_batches};
use crate::mailbox::{find_rows, message};
use larder_store::{BatchChange, DataDirectory, Operation, Reader, Store, StoreFile, StoreOptions};
use larder_sync::{
    MailSourceFormat, RegisteredSource, SourceSelection, SourceStores, SourceType, SyncRound,
    SyncRoundEvent, add_mail_source, find_overlapping_source, find_renamed_sources,
    find_unindexed_sources, follow_source_names, map_mail_roots, remove_source, sync_mail_sources,
};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Maildirs with the stores of their registrations and of their index.
pub(crate) struct MailHome {
    folder: TempDir,
    pub(crate) stores: SourceStores,
}

impl MailHome {
    pub(crate) fn new() -> MailHome {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(folder.path().join("data"));
        let index = data.clone().with_store_file(StoreFile::Index);
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        drop(Store::open(data.clone(), &options).unwrap());
        MailHome { folder, stores: SourceStores { data, index, options } }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a maildir with a message whose Message-ID is the name.
    pub(crate) fn create_maildir(&self, name: &str) -> PathBuf {
        let root = self.path(name);
        fs::create_dir_all(root.join("cur")).unwrap();
        let path = root.join("cur/1:2,S");
        fs::write(&path, message(name, "note", "walrus")).unwrap();
        set_old(&path);
        root
    }

    pub(crate) fn change_data(&self, change: impl FnOnce(&mut Store)) {
        change(&mut Store::open(self.stores.data.clone(), &self.stores.options).unwrap());
    }

    pub(crate) fn add(&self, name: &str, maildir: &Path) {
        self.change_data(|store| {
            add_mail_source(store, name, maildir, MailSourceFormat::Maildir, 0).unwrap();
        });
    }

    pub(crate) fn rename(&self, names: &[(&str, &str)]) {
        for (from, to) in names {
            let change = BatchChange::RenameCollection((*from).into(), (*to).into());
            self.change_data(|store| {
                store.apply(&mut Operation::new("rename", "", 0), vec![change]).unwrap();
            });
        }
    }

    /// Synchronises; returns a line for each source.
    pub(crate) fn sync(&self) -> Vec<String> {
        self.sync_until(64, &|| false)
    }

    /// Synchronises in batches of so many messages until it is cancelled; returns a line for each
    /// source.
    fn sync_until(&self, batch_messages: usize, is_cancelled: &dyn Fn() -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        let (selection, options) = (SourceSelection::default(), small_batches(batch_messages));
        let round = SyncRound { selection: &selection, options: &options, at: 0 };
        let mut add_line = |event: SyncRoundEvent<'_>| match event {
            SyncRoundEvent::Forgotten(one) => lines.push(format!("-{} {}", one.name, one.files)),
            SyncRoundEvent::Finished(source, Ok(report)) => {
                lines.push(format!("{} +{}", source.name, report.added_files));
            }
            SyncRoundEvent::Finished(source, Err(error)) => {
                lines.push(format!("{}: {error}", source.name));
            }
            SyncRoundEvent::Progress(_) => {}
        };
        sync_mail_sources(&self.stores, &round, &mut add_line, is_cancelled).unwrap();
        lines
    }

    /// Returns the names of the sources that are not completely indexed.
    fn list_unindexed(&self) -> Vec<String> {
        let sources = self.stores.list_mail_sources().unwrap();
        let found = find_unindexed_sources(&self.index(), SourceType::Mail, &sources).unwrap();
        found.into_iter().map(|source| source.name.clone()).collect()
    }

    pub(crate) fn index(&self) -> Reader {
        Reader::open(self.stores.index.clone()).unwrap()
    }

    /// Returns the collections, Message-IDs and handles of all messages.
    fn messages(&self) -> Vec<String> {
        let reader = self.index();
        let mail = reader.mail().unwrap();
        let describe = |row| {
            let collection = mail.collection_of(row).unwrap().unwrap();
            let message = mail.message(row).unwrap().unwrap();
            format!("{collection} {} {}", message.uid, message.handle)
        };
        let mut found: Vec<String> = find_rows(&reader, "").into_iter().map(describe).collect();
        found.sort();
        found
    }
}

/// The handles of messages hang on the key of their collection, which a rename does not change.
#[test]
fn a_renamed_source_keeps_its_messages_and_their_handles() {
    let home = MailHome::new();
    home.add("a", &home.create_maildir("one"));
    home.add("b", &home.create_maildir("two"));
    assert_eq!(home.sync(), ["a +1", "b +1"]);
    let before = home.messages();
    let with_names = |a: &str, b: &str| {
        let mut lines: Vec<String> = before
            .iter()
            .map(|line| match line.strip_prefix("a ") {
                Some(rest) => format!("{a} {rest}"),
                None => format!("{b} {}", line.strip_prefix("b ").unwrap()),
            })
            .collect();
        lines.sort();
        lines
    };
    home.rename(&[("a", "c")]);
    // Before the next synchronisation the files are found under the former name.
    let roots = map_mail_roots(&home.index(), &home.stores.list_mail_sources().unwrap()).unwrap();
    assert_eq!((&roots["a"], &roots["c"]), (&home.path("one"), &home.path("one")));
    assert_eq!(home.sync(), ["c +0", "b +0"]);
    assert_eq!(home.messages(), with_names("c", "b"));
    // The names are exchanged.
    home.rename(&[("c", "x"), ("b", "c"), ("x", "b")]);
    assert_eq!(home.sync(), ["b +0", "c +0"]);
    assert_eq!(home.messages(), with_names("b", "c"));
    // An index that is made again has the same handles.
    fs::remove_file(home.path("data/index.db")).unwrap();
    assert_eq!(home.sync(), ["b +1", "c +1"]);
    assert_eq!(home.messages(), with_names("b", "c"));
}

/// A source whose first synchronisation was interrupted has messages that no search finds. After
/// one that came to its end, directories that must be listed again are indexed all the same.
#[test]
fn a_source_is_indexed_when_its_files_were_read_to_the_end() {
    let home = MailHome::new();
    let root = home.create_maildir("one");
    let write = |number: u32| {
        let path = root.join(format!("cur/{number}:2,S"));
        fs::write(path, message(&format!("m{number}"), "note", "walrus")).unwrap();
    };
    (2..12).for_each(write);
    home.add("a", &root);
    let sync_until = |left: usize| {
        let asked = Cell::new(0);
        home.sync_until(1, &|| asked.replace(asked.get() + 1) >= left)
    };
    for left in [1, 3] {
        sync_until(left);
        let count = home.messages().len();
        assert!((1..11).contains(&count), "{count}");
        assert_eq!(home.list_unindexed(), ["a"]);
    }
    home.sync();
    // The directories changed a moment ago, so their state is not final.
    assert_eq!((home.messages().len(), home.list_unindexed().len()), (11, 0));
    // New mail is no reason for a note, whether or not a synchronisation began to read it.
    (12..20).for_each(write);
    sync_until(4);
    assert!(home.messages().len() < 19);
    assert!(home.list_unindexed().is_empty());
    home.sync();
    assert_eq!((home.messages().len(), home.list_unindexed().len()), (19, 0));
    // The second source is the one that is named.
    home.add("b", &home.create_maildir("two"));
    assert_eq!(home.list_unindexed(), ["b"]);
}

/// Names follow without a synchronisation, but not beside one, which writes under the old names.
#[test]
fn names_of_sources_are_followed() {
    let home = MailHome::new();
    for (name, folder) in [("a", "one"), ("b", "two"), ("c", "three")] {
        home.add(name, &home.create_maildir(folder));
    }
    home.sync();
    let before = home.messages();
    let follow = || {
        let sources = home.stores.list_mail_sources().unwrap();
        let mut index = Store::open(home.stores.index.clone(), &home.stores.options).unwrap();
        let is_followed = follow_source_names(&mut index, SourceType::Mail, &sources, 0).unwrap();
        let renamed = find_renamed_sources(&home.index(), SourceType::Mail, &sources).unwrap();
        (is_followed, renamed.len())
    };
    assert_eq!(follow(), (true, 0));
    // The name of a source that was removed is taken before its messages have left the index.
    home.change_data(|store| remove_source(store, "c", 0).unwrap());
    home.rename(&[("a", "x"), ("b", "a"), ("x", "b"), ("a", "c")]);
    let index = Store::open(home.stores.index.clone(), &home.stores.options).unwrap();
    let lock = index.lock_mail_sync().unwrap();
    assert_eq!(follow(), (false, 2));
    assert_eq!(home.messages(), before);
    drop((lock, index));
    assert_eq!(follow(), (true, 0));
    let names = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.split(' ').next().unwrap().to_string()).collect()
    };
    let after = names(home.messages());
    assert!(after.contains(&"b".into()) && after.contains(&"c".into()), "{after:?}");
    let lines = home.sync();
    assert!(lines[0].starts_with('-') && lines[0].ends_with(" 1"), "{lines:?}");
    assert_eq!(names(home.messages()), ["b", "c"]);
}

#[test]
fn the_index_of_a_removed_source_goes() {
    let home = MailHome::new();
    home.add("a", &home.create_maildir("one"));
    home.add("b", &home.create_maildir("two"));
    home.sync();
    let before = home.messages();
    home.change_data(|store| remove_source(store, "a", 0).unwrap());
    assert_eq!(home.sync(), ["-a 1", "b +0"]);
    assert_eq!(home.sync(), ["b +0"]);
    // It comes back as it was, also under the name of another one.
    home.add("a", &home.path("one"));
    assert_eq!(home.sync(), ["a +1", "b +0"]);
    assert_eq!(home.messages(), before);
    home.change_data(|store| remove_source(store, "a", 0).unwrap());
    home.rename(&[("b", "a")]);
    assert_eq!(home.sync(), ["-a 1", "a +0"]);
    assert_eq!(home.messages().len(), 1);
    let report = Store::open(home.stores.index.clone(), &home.stores.options).unwrap().check();
    assert!(report.unwrap().faults.is_empty());
}

#[test]
fn a_maildir_is_registered_once() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    home.create_maildir("mail/inner");
    home.create_maildir("mailbox");
    symlink(&root, home.path("link")).unwrap();
    symlink(home.path("mail/inner"), home.path("inner")).unwrap();
    home.add("mail", &root);
    let sources = home.stores.list_mail_sources().unwrap();
    let name = |path: &Path| {
        let known = find_overlapping_source(&sources, path, MailSourceFormat::Maildir);
        known.map(|one| one.name.clone())
    };
    for same in ["mail", "link", "mail/../link", "mail/inner", "inner", "mailbox/.."] {
        assert_eq!(name(&home.path(same)).as_deref(), Some("mail"), "{same}");
    }
    assert_eq!(name(&home.path("mailbox")), None);
    // A maildir that is not there is known by its path.
    fs::rename(&root, home.path("away")).unwrap();
    assert_eq!(name(&home.path("mail/inner")).as_deref(), Some("mail"));
    assert_eq!(name(&home.path("mailbox")), None);
}

#[test]
fn files_beside_maildirs_may_be_a_source_of_their_own() {
    let home = MailHome::new();
    let root = home.create_maildir("mail");
    for path in ["old.mbox", "cur/2", "tmp/3", "cur/deep/4", "eml/5.eml", "box/cur/6:2,", "box/7"] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("From anna Thu Jan  1 10:00:00 2026\n{}", message("m", "", "x")))
            .unwrap();
    }
    let (maildir, files) = (MailSourceFormat::Maildir, MailSourceFormat::Files);
    let is_free = |known: (&str, MailSourceFormat), new: (&str, MailSourceFormat)| {
        let (path, format) = (home.path(known.0), known.1);
        let known = RegisteredSource { name: "known".into(), path, format, handle_key: vec![] };
        find_overlapping_source(&[known], &home.path(new.0), new.1).is_none()
    };
    for (path, expected) in [
        ("mail/old.mbox", true),
        ("mail/eml", true),
        ("mail/box/7", true),
        ("mail/box", false),
        ("mail/cur/2", false),
        ("mail/cur/deep", false),
        ("mail/tmp/3", false),
        ("mail", false),
        ("mail/gone.mbox", false),
    ] {
        assert_eq!(is_free(("mail", maildir), (path, files)), expected, "{path} in mail");
        assert_eq!(is_free((path, files), ("mail", maildir)), expected, "mail around {path}");
    }
    assert!(!is_free(("mail", files), ("mail/old.mbox", files)));
    assert!(!is_free(("mail", files), ("mail/box", maildir)));
}

/// A watch finds out only in a round that the registrations went.
#[test]
fn a_round_without_the_registrations_leaves_the_index() {
    let home = MailHome::new();
    let data = home.stores.data.path().join("data.db");
    let old = home.path("old.db");
    fs::copy(&data, &old).unwrap();
    home.add("mail", &home.create_maildir("one"));
    home.sync();
    let before = home.messages();
    for end in ["-wal", "-shm"] {
        let _missing = fs::remove_file(data.with_file_name(format!("data.db{end}")));
    }
    for copy in [Some(&old), None] {
        match copy {
            Some(copy) => {
                fs::copy(copy, &data).unwrap();
            }
            None => fs::remove_file(&data).unwrap(),
        }
        let (selection, options) = (SourceSelection::default(), small_batches(64));
        let round = SyncRound { selection: &selection, options: &options, at: 0 };
        let synced = sync_mail_sources(&home.stores, &round, &mut |_| (), &|| false);
        assert!(synced.is_err(), "{synced:?}");
        assert_eq!(home.messages(), before);
    }
}
