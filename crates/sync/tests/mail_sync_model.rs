//! Random changes of a maildir, with synchronisations in between: the index is the one that is made
//! afresh.

use crate::mail_sync::{check, small_batches};
use crate::mailbox::{
    COLLECTION, IndexedMessage, Mailbox, column_value, create_index, directories, find_rows,
    indexed_messages,
};
use larder_store::{MailColumn, Store};
use larder_sync::{MailSyncOptions, sync_maildir};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The words of the random messages.
const WORDS: [&str; 5] = ["walrus seal", "seal walrus", "foo_bar", "töne 東京都", "otter"];
/// The folders that are made and renamed. None is the root, which always stays.
const FOLDERS: [&[u8]; 5] = [b"a", b"a/b", b".Sent", b"c", b"br\xfccke"];
/// The letters of flags.
const LETTERS: [&str; 5] = ["", "S", "FS", "RS", "T"];
/// The variants of the header of one text: another list, keyword, date and reference.
const VARIANTS: u8 = 4;
/// The number of Message-IDs, of which some are only named.
const IDS: u8 = 8;
const QUERIES: [&str; 24] = [
    "",
    "walrus",
    "\"walrus seal\"",
    "seal NEAR/1 walrus",
    "ot*",
    "foo",
    "foo_bar",
    "東京",
    "tone",
    "from:anna",
    "from:berta",
    "subject:walrus",
    "subject:otter or flag:flagged",
    "flag:unread",
    "flag:new",
    "not flag:trashed",
    "maildir:/",
    "maildir:/a",
    "maildir:/a/**",
    "date:2010..2013",
    "size:..160",
    "ref:m1 or ref:m2",
    "list:one.example or flag:list",
    "tag:blue",
];

/// What happens to a maildir.
#[derive(Debug, Clone)]
enum Action {
    /// A message comes: its Message-ID, its text, a variant of the header, a folder, whether into
    /// `new`, and its name.
    Deliver(Option<u8>, u8, u8, Index, bool, u8),
    /// A copy under another name, or in another folder under the same name.
    Copy {
        file: Index,
        folder: Index,
        keeps_name: bool,
        is_link: bool,
    },
    Flag(Index, &'static str),
    /// A mail program has seen the new messages of a folder.
    See(Index),
    Move {
        file: Index,
        folder: Index,
        keeps_name: bool,
    },
    Delete(Index),
    /// Another message under the name of one.
    Replace(Index, u8, u8),
    /// Another message in the file of one, which keeps its inode: ID, text and variant.
    Edit(Index, u8, u8, u8),
    MakeFolder(u8),
    RemoveFolder(Index),
    RenameFolder(Index, u8),
    /// A synchronisation, which may be interrupted after some batches.
    Sync {
        batch: usize,
        readers: usize,
        is_full: bool,
        end: Option<usize>,
    },
}

fn arb_action() -> impl Strategy<Value = Action> {
    let (file, folder) = (any::<Index>, any::<Index>);
    let text = || 0..WORDS.len() as u8;
    let make = 0..FOLDERS.len() as u8;
    prop_oneof![
        6 => (
            prop::option::weighted(0.85, 0..IDS), text(), 0..VARIANTS, folder(), any::<bool>(),
            0..6_u8,
        )
            .prop_map(|(id, text, variant, folder, is_new, name)| {
                Action::Deliver(id, text, variant, folder, is_new, name)
            }),
        1 => (file(), 0..IDS, text(), 0..VARIANTS)
            .prop_map(|(file, id, text, variant)| Action::Edit(file, id, text, variant)),
        2 => (file(), folder(), any::<bool>(), any::<bool>()).prop_map(
            |(file, folder, keeps_name, is_link)| Action::Copy { file, folder, keeps_name, is_link }
        ),
        2 => (file(), select(&LETTERS[..])).prop_map(|(file, letters)| Action::Flag(file, letters)),
        1 => folder().prop_map(Action::See),
        3 => (file(), folder(), any::<bool>())
            .prop_map(|(file, folder, keeps_name)| Action::Move { file, folder, keeps_name }),
        1 => file().prop_map(Action::Delete),
        1 => (file(), 0..IDS, text()).prop_map(|(file, id, text)| Action::Replace(file, id, text)),
        2 => make.clone().prop_map(Action::MakeFolder),
        1 => folder().prop_map(Action::RemoveFolder),
        1 => (folder(), make).prop_map(|(folder, name)| Action::RenameFolder(folder, name)),
        3 => (select(vec![1, 3, 2048]), 1..3_usize, any::<bool>(), prop::option::of(0..4_usize))
            .prop_map(|(batch, readers, is_full, end)| {
                Action::Sync { batch, readers, is_full, end }
            }),
    ]
}

/// A maildir to which actions happen.
struct ChangingMaildir {
    mailbox: Mailbox,
    /// The Message-IDs that the message with a Message-ID and a text names.
    references: Vec<Vec<u8>>,
    /// The number of names that were made.
    names: usize,
    has_edit: bool,
}

impl ChangingMaildir {
    /// The text of a message. Messages with the same Message-ID and words are the same message.
    fn text(&self, id: Option<u8>, words: u8, variant: u8) -> String {
        let id_number = id.unwrap_or(words);
        let mut text = String::new();
        if variant > 0 {
            text += &format!("List-Id: <{}.example>\n", ["one", "two"][usize::from(variant) % 2]);
        }
        if variant == 3 {
            text += "X-Label: blue\n";
        }
        if let Some(id) = id {
            text += &format!("Message-ID: <m{id}>\n");
        }
        let place = usize::from(id_number + variant / 2);
        let references = &self.references[place % self.references.len()];
        if !references.is_empty() {
            let ids: Vec<String> = references.iter().map(|id| format!("<m{id}>")).collect();
            text += &format!("References: {}\n", ids.join(" "));
        }
        let sender = ["Anna <anna@example.org>", "berta@example.org"][usize::from(words) % 2];
        text += &format!("From: {sender}\nSubject: note {}\n", WORDS[usize::from(words)]);
        // The others have the time in their names.
        if words != 4 {
            let year = 2008 + u32::from(id_number + variant % 2);
            text += &format!("Date: Fri, {:02} Feb {year} 10:00:00 +0000\n", words + 1);
        }
        let number = id_number + words;
        text + &format!(
            "Content-Type: text/plain; charset=utf-8\n\n{} {}\n",
            WORDS[usize::from(number) % 5],
            WORDS[usize::from(words)]
        )
    }

    /// The folders, in which the root is the first.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = directories(&self.mailbox.root());
        folders.retain(|folder| folder.join("cur").is_dir());
        folders.sort();
        folders
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in self.folders() {
            for name in ["cur", "new"] {
                let entries = fs::read_dir(folder.join(name)).unwrap();
                files.extend(entries.map(|entry| entry.unwrap().path()));
            }
        }
        files.sort();
        files
    }

    fn folder(&self, index: &Index) -> PathBuf {
        let folders = self.folders();
        folders[index.index(folders.len())].clone()
    }

    fn file(&self, index: &Index) -> Option<PathBuf> {
        let files = self.files();
        (!files.is_empty()).then(|| files[index.index(files.len())].clone())
    }

    fn next_name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Keeps the inode of a file that goes away, so that no other file gets it: the index takes a
    /// file with the same name and inode as the same file.
    fn keep_inode(&mut self, path: &Path) {
        if path.exists() {
            let kept = self.mailbox.outside_path("kept").join(self.next_name().to_string());
            fs::hard_link(path, kept).unwrap();
        }
    }

    /// Renames a file, possibly over another one.
    fn rename(&mut self, from: &Path, to: &Path) {
        if from == to {
            return;
        }
        if to.exists() {
            self.keep_inode(to);
        }
        fs::rename(from, to).unwrap();
        // A link to the same file is not renamed over another one.
        if from.exists() {
            fs::remove_file(from).unwrap();
        }
    }

    fn put(&mut self, path: &Path, text: &str) {
        let temporary = self.mailbox.outside_path("kept").join("temporary");
        fs::write(&temporary, text).unwrap();
        self.rename(&temporary, path);
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Deliver(id, words, variant, folder, is_new, number) => {
                let text = self.text(*id, *words, *variant);
                let id_number = u32::from(id.unwrap_or(*words));
                // The time of delivery is the date of messages without one.
                let time = 1_500_000_000 + id_number;
                let base =
                    if *words == 4 { format!("{time}.{number}") } else { number.to_string() };
                let name = if *is_new { format!("new/{base}") } else { format!("cur/{base}:2,") };
                let path = self.folder(folder).join(name);
                self.put(&path, &text);
            }
            Action::Copy { file, folder, keeps_name, is_link } => {
                let Some(file) = self.file(file) else { return };
                let target = self.target(&file, folder, *keeps_name);
                if target.exists() {
                    return;
                }
                if *is_link {
                    fs::hard_link(file, target).unwrap();
                } else {
                    fs::copy(file, target).unwrap();
                }
            }
            Action::Flag(file, letters) => {
                let Some(file) = self.file(file) else { return };
                let to = file.with_file_name(format!("{}:2,{letters}", base_name(&file)));
                self.rename(&file, &to);
            }
            Action::See(folder) => {
                let folder = self.folder(folder);
                for entry in fs::read_dir(folder.join("new")).unwrap() {
                    let path = entry.unwrap().path();
                    let to = folder.join("cur").join(format!("{}:2,S", base_name(&path)));
                    self.rename(&path, &to);
                }
            }
            Action::Move { file, folder, keeps_name } => {
                let Some(file) = self.file(file) else { return };
                let target = self.target(&file, folder, *keeps_name);
                self.rename(&file, &target);
            }
            Action::Delete(file) => {
                let Some(file) = self.file(file) else { return };
                self.keep_inode(&file);
                fs::remove_file(file).unwrap();
            }
            Action::Replace(file, id, words) => {
                let Some(file) = self.file(file) else { return };
                // The name of a message without a date has its date.
                if base_name(&file).contains('.') || *words == 4 {
                    return;
                }
                let text = self.text(Some(*id), *words, 0);
                self.put(&file, &text);
            }
            Action::Edit(file, id, words, variant) => {
                let Some(file) = self.file(file) else { return };
                if base_name(&file).contains('.') || *words == 4 {
                    return;
                }
                fs::write(&file, self.text(Some(*id), *words, *variant)).unwrap();
                self.has_edit = true;
            }
            Action::MakeFolder(number) => {
                let path =
                    self.mailbox.root().join(OsStr::from_bytes(FOLDERS[usize::from(*number)]));
                for name in ["cur", "new"] {
                    fs::create_dir_all(path.join(name)).unwrap();
                }
            }
            Action::RemoveFolder(folder) => {
                let folder = self.folder(folder);
                if folder != self.mailbox.root() {
                    let kept = self.mailbox.outside_path("kept").join(self.next_name().to_string());
                    fs::rename(&folder, kept).unwrap();
                    self.remove_empty_parent(&folder);
                }
            }
            Action::RenameFolder(folder, number) => {
                let folder = self.folder(folder);
                let to = self.mailbox.root().join(OsStr::from_bytes(FOLDERS[usize::from(*number)]));
                let is_free = !to.exists() && to.parent().unwrap().exists();
                if folder != self.mailbox.root() && is_free && !to.starts_with(&folder) {
                    fs::rename(&folder, to).unwrap();
                    self.remove_empty_parent(&folder);
                }
            }
            Action::Sync { batch, readers, is_full, end } => {
                let options = MailSyncOptions {
                    batch_messages: *batch,
                    readers: *readers,
                    is_full: *is_full,
                    ..MailSyncOptions::default()
                };
                let asked = Cell::new(0);
                let is_cancelled = || end.is_some_and(|end| asked.replace(asked.get() + 1) >= end);
                let root = self.mailbox.root();
                let store = &mut self.mailbox.store;
                let report =
                    sync_maildir(store, &root, COLLECTION, &options, &mut |_| {}, &is_cancelled);
                let report = report.unwrap();
                assert!(report.problems.is_empty(), "{:?}", report.problems);
            }
        }
    }

    /// Removes the folder above one that went away if it is empty. An empty folder may be that of a
    /// disk that is not mounted.
    fn remove_empty_parent(&self, folder: &Path) {
        let parent = folder.parent().unwrap();
        if parent != self.mailbox.root() && fs::read_dir(parent).unwrap().next().is_none() {
            fs::remove_dir(parent).unwrap();
        }
    }

    /// Returns the path of a file in another folder, under the same name or under a new one.
    fn target(&mut self, file: &Path, folder: &Index, keeps_name: bool) -> PathBuf {
        let folder = self.folder(folder);
        let (directory, name) = (file.parent().unwrap().file_name().unwrap(), file.file_name());
        if keeps_name {
            return folder.join(directory).join(name.unwrap());
        }
        let number = self.next_name();
        let base = base_name(file);
        // The time stays, from which the date of a message without one comes.
        let base = match base.split_once('.') {
            Some((time, _)) => format!("{time}.x{number}"),
            None => format!("x{number}"),
        };
        folder.join("cur").join(format!("{base}:2,S"))
    }
}

fn base_name(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.split(":2,").next().unwrap().to_string()
}

/// The results of queries, by their lines, as sets of messages.
type QueryResults = BTreeMap<String, BTreeSet<IndexedMessage>>;

fn query_results(store: &Store, messages: &BTreeMap<u32, IndexedMessage>) -> QueryResults {
    let reader = store.open_reader().unwrap();
    let ids = (0..IDS).map(|id| format!("msgid:m{id}"));
    let lines = QUERIES.iter().map(ToString::to_string).chain(ids);
    lines
        .map(|line| {
            let rows = find_rows(&reader, &line);
            let found = rows.iter().map(|row| messages[row].clone()).collect();
            (line, found)
        })
        .collect()
}

fn threads(
    store: &Store,
    messages: &BTreeMap<u32, IndexedMessage>,
) -> BTreeSet<BTreeSet<IndexedMessage>> {
    let reader = store.open_reader().unwrap();
    let mut threads: BTreeMap<u32, BTreeSet<IndexedMessage>> = BTreeMap::new();
    for (row, message) in messages {
        let thread = column_value(&reader, MailColumn::Thread, *row);
        threads.entry(thread).or_default().insert(message.clone());
    }
    for (thread, members) in &threads {
        let rows = reader.mail().unwrap().thread_members(*thread).unwrap();
        assert_eq!(&rows.iter().map(|row| messages[row].clone()).collect::<BTreeSet<_>>(), members);
    }
    threads.into_values().collect()
}

/// Compares an index with one that is made from the same maildir at once.
pub(crate) fn assert_same_as_fresh(mailbox: &Mailbox) {
    let fresh_directory = tempfile::tempdir().unwrap();
    let mut fresh = create_index(fresh_directory.path().join("fresh"));
    let options = small_batches(2048);
    sync_maildir(&mut fresh, &mailbox.root(), COLLECTION, &options, &mut |_| {}, &|| false)
        .unwrap();
    let (found, expected) = (indexed_messages(&mailbox.store), indexed_messages(&fresh));
    let sorted = |messages: &BTreeMap<u32, IndexedMessage>| -> BTreeSet<IndexedMessage> {
        messages.values().cloned().collect()
    };
    assert_eq!(sorted(&found), sorted(&expected));
    assert_eq!(found.len(), expected.len());
    let results = query_results(&mailbox.store, &found);
    for (line, expected) in query_results(&fresh, &expected) {
        assert_eq!(results[&line], expected, "{line}");
    }
    let (found, expected) = (threads(&mailbox.store, &found), threads(&fresh, &expected));
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn the_index_of_a_changing_maildir_is_that_of_a_fresh_one(
        actions in vec(arb_action(), 5..50),
        references in vec(vec(0..IDS + 2, 0..3), 3..10),
    ) {
        let mailbox = Mailbox::new();
        fs::create_dir(mailbox.outside_path("kept")).unwrap();
        let mut maildir = ChangingMaildir { mailbox, references, names: 0, has_edit: false };
        for action in &actions {
            maildir.apply(action);
        }
        // Only a full synchronisation finds files that were edited in place.
        let is_full = maildir.has_edit;
        maildir.mailbox.sync_with(&MailSyncOptions { is_full, ..small_batches(64) });
        assert_same_as_fresh(&maildir.mailbox);
        check(&maildir.mailbox.store);
        maildir.mailbox.verify(&MailSyncOptions::default());
    }
}
