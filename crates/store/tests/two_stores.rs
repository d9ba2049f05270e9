//! Two stores in one directory: the same schema and code, and nothing in common.

use crate::book::{card, create_options, large_card, put};
use larder_store::{
    CommitWatcher, DataDirectory, Error, Operation, Precondition, Reader, Store, StoreFile,
    StoreOptions, SyncMode,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

fn index_of(dir: &Path) -> DataDirectory {
    DataDirectory::new(dir).with_store_file(StoreFile::Index)
}

fn add(store: &mut Store, uid: &str) {
    let change = put(store, "contacts", &card(uid, uid, ""), Precondition::Any);
    store.apply(&mut Operation::new("add", "", 0), vec![change]).unwrap();
}

fn uids(directory: impl Into<DataDirectory>) -> Vec<String> {
    let reader = Reader::open(directory).unwrap();
    let mut uids = Vec::new();
    let rows = crate::book::item_rows(&reader);
    let mut visit = |meta: larder_store::ItemMeta, _: &[u8]| {
        uids.push(meta.uid.to_string());
        true
    };
    reader.items().for_each(&rows, &mut visit).unwrap();
    uids
}

/// Returns the bytes of the files whose names begin so.
fn files(dir: &Path, stem: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let own = named.filter(|(name, _)| name.starts_with(stem));
    own.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

#[test]
fn each_store_has_its_own_items_batches_and_epoch() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let mut data = Store::open(dir, &create_options()).unwrap();
    let mut index = Store::open(index_of(dir), &create_options()).unwrap();
    add(&mut data, "anna");
    for uid in ["mail-1", "mail-2", "mail-3"] {
        add(&mut index, uid);
    }
    assert_eq!(uids(dir), ["anna"]);
    assert_eq!(uids(index_of(dir)), ["mail-1", "mail-2", "mail-3"]);
    assert_eq!(index.last_seq().unwrap() - data.last_seq().unwrap(), 2);
    let epochs = [Reader::open(dir), Reader::open(index_of(dir))].map(|it| it.unwrap().epoch());
    let [data_epoch, index_epoch] = epochs.map(Result::unwrap);
    assert_ne!(data_epoch, index_epoch);
    for store in [&data, &index] {
        assert_eq!(store.check().unwrap().faults, []);
    }
    for name in ["data.db", "index.db", "data.lock", "index.lock", "data.notify", "index.notify"] {
        assert!(dir.join(name).exists(), "{name}");
    }
}

/// The stores have different tables, so neither file is taken for the other.
#[test]
fn a_file_of_the_other_store_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = &scratch.path().join("data");
    let backup = scratch.path().join("backup.db");
    let mut data = Store::open(dir, &create_options()).unwrap();
    add(&mut data, "anna");
    add(&mut Store::open(index_of(dir), &create_options()).unwrap(), "mail");
    data.backup(&backup).unwrap();
    let refused = |result: Result<(), Error>, file: &Path| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::OtherStore { path, .. } if path == file), "{error}");
    };
    let (data_path, index_path) = (dir.join("data.db"), dir.join("index.db"));
    refused(data.restore(&index_path).map(drop), &index_path);
    assert_eq!(uids(dir), ["anna"]);
    drop(data);
    let [data_bytes, index_bytes] = [&data_path, &index_path].map(|path| fs::read(path).unwrap());
    fs::write(&data_path, index_bytes).unwrap();
    fs::write(&index_path, data_bytes).unwrap();
    refused(Store::open(index_of(dir), &create_options()).map(drop), &index_path);
    refused(Reader::open(index_of(dir)).map(drop), &index_path);
    refused(Store::open(dir, &create_options()).map(drop), &data_path);
    refused(Reader::open(dir).map(drop), &data_path);
    DataDirectory::new(dir).restore(&create_options(), &backup).unwrap();
    assert_eq!(uids(dir), ["anna"]);
}

/// The index can be deleted at any time; the data beside it stays as it is.
#[test]
fn the_index_is_disposable() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    add(&mut Store::open(dir, &create_options()).unwrap(), "anna");
    add(&mut Store::open(index_of(dir), &create_options()).unwrap(), "mail");
    let before = files(dir, "data.");
    for name in files(dir, "index.").keys() {
        fs::remove_file(dir.join(name)).unwrap();
    }
    assert!(Reader::open(index_of(dir)).is_err());
    add(&mut Store::open(index_of(dir), &create_options()).unwrap(), "mail again");
    assert_eq!(uids(index_of(dir)), ["mail again"]);
    assert_eq!(files(dir, "data."), before);
    assert_eq!(uids(dir), ["anna"]);
}

/// Restores, purges and leftovers of one store are none of the other's.
#[test]
fn maintenance_of_one_store_leaves_the_other_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = &scratch.path().join("store");
    let mut data = Store::open(dir, &create_options()).unwrap();
    add(&mut data, "anna");
    drop(data);
    let mut index = Store::open(index_of(dir), &create_options()).unwrap();
    add(&mut index, "mail");
    fs::write(dir.join("data.db.check-1.partial"), "of another command").unwrap();
    let before = files(dir, "data.");
    let backup = scratch.path().join("elsewhere.db");
    index.backup(&backup).unwrap();
    let change = put(&index, "contacts", &card("later", "later", ""), Precondition::Any);
    let applied = index.apply(&mut Operation::new("add", "", 0), vec![change]).unwrap();
    let handle = crate::book::outcome_handle(&applied.outcomes[0]);
    assert_eq!(index.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap().items, 1);
    index.restore(&backup).unwrap();
    index.rebuild_and_check().unwrap();
    drop(index);
    assert_eq!(uids(index_of(dir)), ["mail"]);
    assert!(dir.join("index.db.before-restore").exists());
    assert_eq!(index_of(dir).restorable_copies(), [dir.join("index.db.before-restore")]);
    assert_eq!(DataDirectory::new(dir).restorable_copies(), [""; 0].map(std::path::PathBuf::from));
    assert_eq!(files(dir, "data."), before);
}

/// A commit to one store notifies its own watchers only.
#[test]
fn each_store_notifies_its_own_watchers() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let mut data = Store::open(dir, &create_options()).unwrap();
    let mut index = Store::open(index_of(dir), &create_options()).unwrap();
    let (sender, commits) = mpsc::channel();
    let watch = |directory: DataDirectory, name: &'static str| {
        let sender = sender.clone();
        CommitWatcher::watch(directory, move || sender.send(name).unwrap()).unwrap()
    };
    let _watchers = [watch(DataDirectory::new(dir), "data"), watch(index_of(dir), "index")];
    let first = || commits.recv_timeout(Duration::from_secs(30)).unwrap();
    add(&mut index, "mail");
    assert_eq!(first(), "index");
    add(&mut data, "anna");
    // Several events may tell of one commit.
    while first() != "data" {}
}

/// Writes without waiting for the disk leave a mark until they are synced.
#[test]
fn unsynced_writes_have_a_mark() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let mark = dir.join("index.unsynced");
    let unsynced = StoreOptions { sync_mode: SyncMode::Off, ..create_options() };
    let mut index = Store::open(index_of(dir), &unsynced).unwrap();
    assert!(!mark.exists(), "opening writes as always");
    let lock = index.lock_mail_sync().unwrap();
    add(&mut index, "mail-1");
    assert!(mark.exists());
    index.end_mail_sync(lock).unwrap();
    assert!(!mark.exists());

    // A reader keeps the log from being copied into the file.
    let lock = index.lock_mail_sync().unwrap();
    let reader = Reader::open(index_of(dir)).unwrap();
    let former = reader.mail().unwrap();
    add(&mut index, "mail-1b");
    assert!(mark.exists());
    index.end_mail_sync(lock).unwrap();
    assert!(!mark.exists());
    drop(former);
    drop(reader);

    // A process is killed: the writes are there, and the next synchronisation syncs them.
    let lock = index.lock_mail_sync().unwrap();
    add(&mut index, "mail-2");
    drop((lock, index));
    assert!(mark.exists());
    let index = Store::open(index_of(dir), &create_options()).unwrap();
    let lock = index.lock_mail_sync().unwrap();
    assert!(!mark.exists());
    index.end_mail_sync(lock).unwrap();
    drop(index);
    assert_eq!(uids(index_of(dir)), ["mail-1", "mail-1b", "mail-2"]);

    // The system stops: nobody reads the store until it is made again.
    for text in ["", "3f1c9a5e-0000-0000-0000-000000000000\n", "\u{0}\u{0}"] {
        fs::write(&mark, text).unwrap();
        let is_damaged = |error| matches!(error, Some(Error::Damaged { .. }));
        assert!(is_damaged(Reader::open(index_of(dir)).err()), "{text:?}");
        assert!(is_damaged(Store::open(index_of(dir), &create_options()).err()), "{text:?}");
    }
    let opened = Reader::open(index_of(dir)).err().unwrap();
    assert!(opened.to_string().contains("without waiting for the disk"), "{opened}");
    let replacement = index_of(dir).begin_replacement(&create_options()).unwrap();
    let new = replacement.new_directory().clone();
    add(&mut Store::open(new, &create_options()).unwrap(), "mail again");
    replacement.commit(&create_options()).unwrap();
    assert!(!mark.exists());
    assert_eq!(uids(index_of(dir)), ["mail again"]);

    // A user deletes the file alone.
    fs::write(&mark, "").unwrap();
    fs::remove_file(dir.join("index.db")).unwrap();
    add(&mut Store::open(index_of(dir), &create_options()).unwrap(), "mail once more");
    assert!(!mark.exists());
    assert_eq!(uids(index_of(dir)), ["mail once more"]);
}

/// The mark of the former file goes before the new file comes.
#[test]
fn a_new_store_never_has_the_mark_of_the_former_one() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let (mark, pending) = (dir.join("index.unsynced"), dir.join("index.db.restoring"));
    add(&mut Store::open(index_of(dir), &create_options()).unwrap(), "mail-1");
    fs::copy(dir.join("index.db"), &pending).unwrap();
    // A mark that cannot be deleted stands for a process that was killed there.
    fs::create_dir(&mark).unwrap();
    assert!(Store::open(index_of(dir), &create_options()).is_err());
    assert!(pending.exists() && !dir.join("index.db").exists());
    fs::remove_dir(&mark).unwrap();
    fs::write(&mark, "of another start").unwrap();
    drop(Store::open(index_of(dir), &create_options()).unwrap());
    assert!(!mark.exists() && !pending.exists());
    assert_eq!(uids(index_of(dir)), ["mail-1"]);
}

/// Writes a log of two megabytes.
fn write_long_log(store: &mut Store) {
    for uid in ["a", "b"] {
        let change = put(store, "contacts", &large_card(uid, 'A', 1 << 20), Precondition::Any);
        store.apply(&mut Operation::new("add", "", 0), vec![change]).unwrap();
    }
}

fn log_length(directory: &DataDirectory) -> u64 {
    fs::metadata(directory.wal_path()).unwrap().len()
}

/// A reader closes last, and may not checkpoint.
#[test]
fn the_log_is_empty_when_a_writer_has_ended() {
    let scratch = tempfile::tempdir().unwrap();
    for directory in [DataDirectory::new(scratch.path()), index_of(scratch.path())] {
        let mut store = Store::open(directory.clone(), &create_options()).unwrap();
        let reader = Reader::open(directory.clone()).unwrap();
        write_long_log(&mut store);
        assert!(log_length(&directory) > 2 << 20);
        drop(store);
        assert_eq!(log_length(&directory), 0);
        assert_eq!(crate::book::item_rows(&reader).len(), 2);
    }
}

/// While mail is synchronised, others would copy the log again and again, as it does not end.
#[test]
fn the_log_is_left_to_a_synchronisation() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = index_of(scratch.path());
    let syncing = Store::open(directory.clone(), &create_options()).unwrap();
    let lock = syncing.lock_mail_sync().unwrap();
    let mut store = Store::open(directory.clone(), &create_options()).unwrap();
    write_long_log(&mut store);
    let length = log_length(&directory);
    drop(store);
    assert_eq!(log_length(&directory), length);
    let reader = Reader::open(directory.clone()).unwrap();
    syncing.end_mail_sync(lock).unwrap();
    drop(syncing);
    assert_eq!(log_length(&directory), 0);
    assert_eq!(crate::book::item_rows(&reader).len(), 2);
}

#[test]
fn a_synchronisation_empties_its_own_log() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = index_of(scratch.path());
    let mut syncing = Store::open(directory.clone(), &create_options()).unwrap();
    let reader = Reader::open(directory.clone()).unwrap();
    let lock = syncing.lock_mail_sync().unwrap();
    write_long_log(&mut syncing);
    assert!(log_length(&directory) > 2 << 20);
    // As after an error, the lock is still held.
    drop(syncing);
    assert_eq!(log_length(&directory), 0);
    drop(lock);
    assert_eq!(crate::book::item_rows(&reader).len(), 2);
}
