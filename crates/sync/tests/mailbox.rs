//! A maildir with its index, for the tests of mail.

use larder_query::{MailQuery, MailQueryContext, MailSearch, UserLocale};
use larder_store::{DataDirectory, MailColumn, Reader, Store, StoreFile, StoreOptions};
use larder_sync::{
    MailFinding, MailSourceFormat, MailSyncOptions, MailSyncReport, MailVerificationReport,
    RegisteredSource, sync_maildir, verify_mail,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The collection that the tests use unless they name another.
pub(crate) const COLLECTION: &str = "mail";

/// A maildir and an index of it.
pub(crate) struct Mailbox {
    folder: TempDir,
    pub(crate) store: Store,
}

/// A message as the index knows it, but for its row and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexedMessage {
    pub(crate) files: Vec<(String, PathBuf)>,
    pub(crate) flags: u32,
    pub(crate) folders: BTreeSet<(String, Vec<u8>)>,
    pub(crate) date: i64,
    pub(crate) dates: [u32; 2],
    pub(crate) subject: String,
    pub(crate) references: Vec<String>,
    pub(crate) list_id: String,
}

impl Mailbox {
    pub(crate) fn new() -> Mailbox {
        let folder = tempfile::tempdir().unwrap();
        for path in ["mail/cur", "mail/new", "mail/tmp"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let store = create_index(folder.path().join("index"));
        Mailbox { folder, store }
    }

    /// The maildir.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("mail")
    }

    /// A path outside of the maildir, on the same file system.
    pub(crate) fn outside_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file below the maildir; creates its directory.
    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes messages with these numbers below the maildir, each with a word of its own.
    pub(crate) fn write_numbered(&self, directory: &str, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let text = message(&format!("m{number}"), "note", &format!("common word{number}"));
            self.write(format!("{directory}/{}.host:2,", 1_000_000 + number), text);
        }
    }

    pub(crate) fn sync(&mut self) -> MailSyncReport {
        self.sync_with(&MailSyncOptions { readers: 2, ..MailSyncOptions::default() })
    }

    pub(crate) fn sync_with(&mut self, options: &MailSyncOptions) -> MailSyncReport {
        let root = self.root();
        sync_maildir(&mut self.store, &root, COLLECTION, options, &mut |_| {}, &|| false).unwrap()
    }

    /// Compares all files with the index, which has what is in them. The options are those of the
    /// synchronisation.
    pub(crate) fn verify(&self, options: &MailSyncOptions) -> MailVerificationReport {
        let source = RegisteredSource {
            name: COLLECTION.into(),
            path: self.root(),
            format: MailSourceFormat::Maildir,
            handle_key: Vec::new(),
        };
        let reader = self.store.open_reader().unwrap();
        let mut damaged = Vec::new();
        let mut find = |finding: MailFinding<'_>| {
            if finding.disagreement.is_damage() {
                damaged.push(format!("{:?}: {}", finding.path, finding.disagreement));
            }
        };
        let report =
            verify_mail(&reader, &[source], options, &mut find, &mut |_| {}, &|| false).unwrap();
        assert_eq!(damaged, [""; 0]);
        let messages: u64 =
            reader.collections().list().unwrap().iter().map(|one| one.item_count).sum();
        assert!(!report.is_outdated && (report.files > 0 || messages == 0), "{report:?}");
        report
    }

    /// Gives all directories an old time, so that the next synchronisation takes their state as
    /// final.
    pub(crate) fn settle(&self) {
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        for directory in directories(&self.root()) {
            fs::File::open(directory).unwrap().set_modified(old).unwrap();
        }
    }

    /// Gives all files an old time, so that a change of one gives it another time.
    pub(crate) fn settle_files(&self) {
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000);
        for directory in directories(&self.root()) {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    fs::File::open(entry.path()).unwrap().set_modified(old).unwrap();
                }
            }
        }
    }

    /// Returns the Message-IDs of the messages that match, sorted.
    pub(crate) fn find(&self, line: &str) -> Vec<String> {
        let reader = self.store.open_reader().unwrap();
        let mut uids: Vec<String> = find_rows(&reader, line)
            .into_iter()
            .map(|row| reader.mail().unwrap().message(row).unwrap().unwrap().uid)
            .collect();
        uids.sort();
        uids
    }
}

pub(crate) fn create_index(path: PathBuf) -> Store {
    let options = StoreOptions { create: true, ..StoreOptions::default() };
    Store::open(DataDirectory::new(path).with_store_file(StoreFile::Index), &options).unwrap()
}

/// Returns the text of a message.
pub(crate) fn message(id: &str, subject: &str, body: &str) -> String {
    format!(
        "Message-ID: <{id}>\nFrom: Anna <anna@example.org>\nSubject: {subject}\n\
         Date: Wed, 01 Jan 2020 10:00:00 +0000\n\n{body}\n"
    )
}

/// Returns all directories below a root, with the root.
pub(crate) fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(directories(&entry.path()));
        }
    }
    found
}

/// The context that queries are parsed in.
pub(crate) fn context() -> MailQueryContext {
    MailQueryContext::from(&UserLocale::default())
}

/// Returns the rows of the messages that match a line, ascending.
pub(crate) fn find_rows(reader: &Reader, line: &str) -> Vec<u32> {
    let query = MailQuery::parse(line, &context()).unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let roots = mail.folders().unwrap().into_iter().map(|(name, ..)| (name, PathBuf::from("/m")));
    let roots = roots.collect();
    let search = MailSearch::open(&mail, &words).unwrap().with_roots(&roots);
    let mut rows = Vec::new();
    search.for_each_match(&query, &mut |row| rows.push(row)).unwrap();
    assert_eq!(search.count(&query).unwrap(), rows.len() as u64, "{line}");
    let mut newest: Vec<u32> =
        search.find_newest(&query, usize::MAX).unwrap().into_iter().map(|hit| hit.row).collect();
    newest.sort_unstable();
    assert_eq!(newest, rows, "{line}");
    rows
}

/// Returns the value of a column.
pub(crate) fn column_value(reader: &Reader, column: MailColumn, row: u32) -> u32 {
    let (block, place) = larder_store::block_of(row);
    reader.mail().unwrap().values(column, block).unwrap()[place]
}

/// Returns all messages, by row.
pub(crate) fn indexed_messages(store: &Store) -> BTreeMap<u32, IndexedMessage> {
    let reader = store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let folders = mail.folders().unwrap();
    let mut messages = BTreeMap::new();
    for row in 0..mail.end_row().unwrap() {
        let (block, place) = larder_store::block_of(row);
        let is_member = |set| mail.set(set, block).unwrap()[place / 64] >> (place % 64) & 1 == 1;
        let found = folders.iter().filter(|(_, _, set)| is_member(*set));
        let folders = found.map(|(name, path, _)| (name.clone(), path.clone())).collect();
        let Some(message) = mail.message(row).unwrap() else {
            assert_eq!(folders, BTreeSet::new(), "a row without a message is in a folder");
            for column in [
                MailColumn::Date,
                MailColumn::Flags,
                MailColumn::Thread,
                MailColumn::Size,
                MailColumn::Changed,
            ] {
                assert_eq!(column_value(&reader, column, row), 0);
            }
            assert_eq!(mail.message_files(row).unwrap(), []);
            continue;
        };
        let files = mail.message_files(row).unwrap();
        assert!(!files.is_empty(), "{} has no files", message.uid);
        let thread = column_value(&reader, MailColumn::Thread, row);
        assert!(mail.thread_members(thread).unwrap().contains(&row));
        let summary = message.summary.to_summary();
        let found = IndexedMessage {
            files,
            flags: column_value(&reader, MailColumn::Flags, row),
            folders,
            date: summary.date,
            dates: [MailColumn::Date, MailColumn::Size].map(|one| column_value(&reader, one, row)),
            subject: summary.subject,
            references: summary.references,
            list_id: summary.list_id,
        };
        messages.insert(row, found);
    }
    messages
}
