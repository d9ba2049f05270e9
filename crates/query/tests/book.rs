//! Test stores, among them the small address book that most tests search.

use larder_format::contact::derive_uid;
use larder_query::{Query, SearchRequest, find};
use larder_store::{BatchChange, ItemPut, Operation, Precondition, Reader, Store, StoreOptions};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A store in a temporary directory.
pub(crate) struct Book {
    scratch: TempDir,
    pub(crate) store: Store,
}

/// Returns a vCard of these content lines.
pub(crate) fn card(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("{}\r\n", line.trim())).collect();
    format!("BEGIN:VCARD\r\nVERSION:3.0\r\n{lines}END:VCARD\r\n")
}

impl Book {
    pub(crate) fn new() -> Book {
        let scratch = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let store = Store::open(&scratch.path().join("data"), &options).unwrap();
        Book { scratch, store }
    }

    /// Wraps a store whose directory belongs to the caller.
    pub(crate) fn with_store(store: Store) -> Book {
        Book { scratch: tempfile::tempdir().unwrap(), store }
    }

    /// Creates a store of these contacts, in the collection `contacts`.
    pub(crate) fn with_contacts<'a>(cards: impl IntoIterator<Item = &'a str>) -> Book {
        let mut book = Book::new();
        book.put("contacts", cards);
        book
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// Returns the path of a backup.
    pub(crate) fn backup_path(&self) -> PathBuf {
        self.scratch.path().join("backup.db")
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.open_reader().unwrap()
    }

    pub(crate) fn put<'a>(&mut self, collection: &str, cards: impl IntoIterator<Item = &'a str>) {
        let changes = cards.into_iter().map(|card| {
            let prepared = self.store.extractor().parse_contact(card.into()).expect("a contact");
            let named = prepared.uid().map(str::to_string);
            BatchChange::Put(ItemPut {
                collection: Arc::from(collection),
                derived_uid: named.is_none(),
                uid: named.unwrap_or_else(|| derive_uid(card.as_bytes())),
                parsed: prepared,
                precondition: Precondition::Any,
            })
        });
        let changes = changes.collect();
        self.apply(changes);
    }

    pub(crate) fn apply(&mut self, changes: Vec<BatchChange>) {
        self.store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
    }

    /// Reopens the store with index sets whose fingerprints are those of another program:
    /// readers must not use them.
    pub(crate) fn with_stale(self, sets: &[Stale]) -> (TempDir, Reader) {
        let dir = self.dir();
        let Book { scratch, store } = self;
        drop(store);
        let data = dir.join("data.db");
        let mut bytes = fs::read(&data).unwrap();
        for set in sets {
            let fingerprint = set.fingerprint();
            let found: Vec<usize> = (0..bytes.len())
                .filter(|&at| bytes[at..].starts_with(fingerprint.as_bytes()))
                .collect();
            assert!(!found.is_empty(), "no fingerprint like {fingerprint:?} in the file");
            for at in found {
                // The length stays the same, so that SQLite can still read the file.
                let last = at + fingerprint.len();
                bytes[last - 3..last].make_ascii_uppercase();
            }
        }
        fs::write(&data, bytes).unwrap();
        let reader = Reader::open(&dir).unwrap();
        (scratch, reader)
    }
}

/// An index set to mark as out of date.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stale {
    Text,
    Sort,
    Time,
}

impl Stale {
    pub(crate) const ALL: &[Stale] = &[Stale::Text, Stale::Sort];

    /// Returns a part of the fingerprint.
    fn fingerprint(self) -> &'static str {
        match self {
            Stale::Text => ", folding 3, tables",
            Stale::Sort => ", folding 3, und",
            Stale::Time => "fingerprint:scheduletimes",
        }
    }
}

pub(crate) fn search_request(query: Query) -> SearchRequest {
    SearchRequest { query, prefetch: true, ..SearchRequest::default() }
}

/// Returns the UIDs that a request finds, in their order.
pub(crate) fn uids(reader: &Reader, request: &SearchRequest) -> Vec<String> {
    let mut uids = Vec::new();
    find(reader, request)
        .unwrap()
        .for_each(reader, &mut |meta, _| {
            uids.push(meta.uid.clone());
            true
        })
        .unwrap();
    uids
}

/// A small address book: seven people and an organisation.
pub(crate) fn small() -> Book {
    let cards = [
        "UID:anna\nFN:Anna Bergström\nN:Bergström;Anna;;;\nNICKNAME:Annie,Nan\nEMAIL:anna@example.org
         EMAIL:bergstrom@firma.example\nTEL;TYPE=CELL:+43 (664) 123-45 67\nORG:Müller & Söhne;Verkauf;Zimmer 7
         NOTE:likes \"blue\"\\, 100% wool\nCATEGORIES:Freunde,Arbeit\nBDAY:1970-02-28",
        "UID:bob\nFN:Bob O'Brien\nN:O'Brien;Bob;;;\nEMAIL:bob@example.com\nTEL:0664/1234567\nTITLE:Joiner",
        "UID:wang\nFN:王小明\nN:王;小明;;;\nORG:北京大学\nTEL;TYPE=WORK,VOICE:+86 10 6275 1234",
        "UID:ivan\nFN:Иван Ёлкин\nN:Ёлкин;Иван;;;\nEMAIL:ivan@пример.рф\nURL:https://example.org/~ivan",
        "UID:ali\nFN:علي حسن\nN:حسن;علي;;;\nTEL:٠٦٦٤١٢٣\nNOTE:",
        "UID:istanbul\nFN:İstanbul Işık\nN:Işık;İstanbul;;;\nEMAIL:",
        "UID:Straße\nFN:Max Strauß\nN:Strauß;Max;;;\nADR;TYPE=HOME:;;Gasse 1;Wien;;1010;Austria
         X-EVOLUTION-SPOUSE:Maxine\nIMPP:xmpp:max@jabber.example",
        "UID:club\nFN:Chess Club\nORG:Chess Club\nX-EVOLUTION-LIST:TRUE\nEMAIL:all@club.example",
    ]
    .map(card);
    Book::with_contacts(cards.iter().map(String::as_str))
}
