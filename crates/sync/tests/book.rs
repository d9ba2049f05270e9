//! A temporary store for each test, and the report of an import into it.

use larder_store::{Collection, Store, StoreOptions};
use larder_sync::{Error, ImportEvent, ImportInput, ImportOptions, ImportReport, export, import};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The collection of tests that need only one.
pub(crate) const INTO: &str = "contacts";

/// A store in a temporary folder, with room for files next to it.
pub(crate) struct Book {
    folder: TempDir,
    pub(crate) store: Store,
}

/// The report of an import, as a person sees it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportOutcome {
    pub(crate) summary: ImportReport,
    pub(crate) rejected: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) unreadable: Vec<String>,
}

impl Book {
    pub(crate) fn new() -> Book {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let store = Store::open(&folder.path().join("larder"), &options).unwrap();
        Book { folder, store }
    }

    /// Writes a file next to the store; creates the folders of its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    pub(crate) fn import(
        &mut self,
        inputs: Vec<ImportInput>,
        options: &ImportOptions,
    ) -> ImportOutcome {
        self.try_import(inputs, options).unwrap()
    }

    /// Imports, and reports file names without their folder.
    pub(crate) fn try_import(
        &mut self,
        inputs: Vec<ImportInput>,
        options: &ImportOptions,
    ) -> Result<ImportOutcome, Error> {
        let mut outcome = ImportOutcome::default();
        let folder = format!("{}/", self.path("").display().to_string().trim_end_matches('/'));
        let summary = import(&mut self.store, inputs, options, &mut |event| match event {
            ImportEvent::Rejected(notice) => {
                outcome.rejected.push(notice.to_string().replace(&folder, ""));
            }
            ImportEvent::Warning(notice) => {
                outcome.warnings.push(notice.to_string().replace(&folder, ""));
            }
            ImportEvent::Unreadable(notice) => {
                outcome.unreadable.push(notice.to_string().replace(&folder, ""));
            }
            _ => {}
        })?;
        assert_eq!(summary.rejected, outcome.rejected.len() as u64);
        assert_eq!(summary.warnings, outcome.warnings.len() as u64);
        assert_eq!(summary.unreadable.len(), outcome.unreadable.len());
        outcome.summary = summary;
        Ok(outcome)
    }

    /// Imports bytes as standard input.
    pub(crate) fn take(
        &mut self,
        bytes: impl AsRef<[u8]>,
        options: &ImportOptions,
    ) -> ImportOutcome {
        self.import(vec![stream(bytes)], options)
    }

    pub(crate) fn collection(&self, name: &str) -> Option<Collection> {
        let collections = self.store.open_reader().unwrap().collections().list().unwrap();
        collections.into_iter().find(|collection| collection.name == name)
    }

    /// Returns the items of a collection in the order of their import.
    pub(crate) fn items(&self, name: &str) -> Vec<Vec<u8>> {
        let Some(collection) = self.collection(name) else { return Vec::new() };
        let reader = self.store.open_reader().unwrap();
        let heads = reader.items().list_after(&collection, None, usize::MAX >> 1).unwrap();
        heads.iter().map(|head| reader.items().source_bytes(head.row).unwrap().unwrap()).collect()
    }

    pub(crate) fn export(&self, name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(collection) = self.collection(name) else { return out };
        let summary = export(&self.store.open_reader().unwrap(), &collection, &mut out).unwrap();
        assert_eq!(summary.items, collection.item_count);
        assert_eq!(summary.bytes, out.len() as u64);
        out
    }
}

/// Returns the options of most tests.
pub(crate) fn options() -> ImportOptions {
    ImportOptions { threads: 2, ..ImportOptions::new(INTO, 1_000) }
}

pub(crate) fn path(path: impl AsRef<Path>) -> ImportInput {
    ImportInput::Path(path.as_ref().to_path_buf())
}

pub(crate) fn stream(bytes: impl AsRef<[u8]>) -> ImportInput {
    ImportInput::Stdin(Box::new(io::Cursor::new(bytes.as_ref().to_vec())))
}

/// Returns a small card.
pub(crate) fn card(uid: &str, name: &str) -> String {
    format!("BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{name}\r\nEND:VCARD\r\n")
}

/// A stream of small cards, each generated when it is read.
pub(crate) struct Cards {
    next: u64,
    count: u64,
    rest: io::Cursor<Vec<u8>>,
}

pub(crate) fn cards(count: u64) -> Cards {
    Cards { next: 0, count, rest: io::Cursor::default() }
}

impl Read for Cards {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        if read > 0 || self.next == self.count {
            return Ok(read);
        }
        self.next += 1;
        let card = card(&format!("number-{}", self.next), &format!("Name {}", self.next));
        self.rest = io::Cursor::new(card.into_bytes());
        self.rest.read(buffer)
    }
}
