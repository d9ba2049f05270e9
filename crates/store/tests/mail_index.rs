//! An index of messages in one directory, for the tests of mail. Not a test itself.

use larder_format::maildir_name::MaildirName;
use larder_store::{
    BatchChange, DataDirectory, MailBatch, MailBatchBuilder, MailChange, MailFile, MailFileState,
    Operation, Store, StoreFile, StoreOptions,
};
use std::path::Path;

/// Opens the index of a data directory.
pub(crate) fn open_index(dir: &Path) -> Store {
    let options = StoreOptions { create: true, ..StoreOptions::default() };
    Store::open(DataDirectory::new(dir).with_store_file(StoreFile::Index), &options).unwrap()
}

/// Returns a file of the directory `cur`.
pub(crate) fn file(name: &str, inode: u64, size: usize) -> MailFile {
    MailFile {
        directory: b"cur".to_vec(),
        name: name.into(),
        inode,
        flags: MaildirName::parse(name.as_bytes()).flags(false),
        state: MailFileState { size: size as u64, modified: 1, changed: 2 },
    }
}

/// Writes changes of mail in a batch.
pub(crate) fn apply(store: &mut Store, changes: Vec<MailChange>) {
    let batch = MailBatch { collection: "mail".into(), changes, words: None, end_row: 0 };
    let mut operation = Operation::new("sync", "mail", 0);
    store.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))]).unwrap();
}

/// Writes an index of messages in rows from 1 on, each with one file.
pub(crate) fn write_index(dir: &Path, messages: &[(&str, String)]) -> Store {
    let mut store = open_index(dir);
    let mut builder = MailBatchBuilder::new(&[]);
    let mut changes = vec![MailChange::PutDirectory {
        path: b"cur".to_vec(),
        folder: b"".to_vec(),
        is_new: false,
        state: b"listed".to_vec(),
    }];
    for (row, (name, text)) in (1..).zip(messages) {
        let (message, _) = builder.prepare(row, text.as_bytes(), 0);
        let file = file(name, row.into(), text.len());
        changes.push(MailChange::AddFile { file, message: Box::new(message) });
    }
    let words = Some(builder.encode_words());
    let end_row = messages.len() as u32 + 1;
    let batch = MailBatch { collection: "mail".into(), changes, words, end_row };
    let mut operation = Operation::new("sync", "mail", 0);
    store.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))]).unwrap();
    store
}
