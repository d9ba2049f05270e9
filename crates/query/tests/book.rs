//! Stores to ask, and the small book that most tables ask.

use larder_format::contact::derive_uid;
use larder_query::{Query, SearchRequest, find};
use larder_store::{BatchChange, ItemPut, Operation, Precondition, Reader, Store, StoreOptions};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A store in a directory of its own.
pub(crate) struct Book {
    scratch: TempDir,
    pub(crate) store: Store,
}

/// A card of these lines.
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

    /// A book in a directory of somebody else.
    pub(crate) fn of_store(store: Store) -> Book {
        Book { scratch: tempfile::tempdir().unwrap(), store }
    }

    /// A book of these cards, in the collection `contacts`.
    pub(crate) fn of<'a>(cards: impl IntoIterator<Item = &'a str>) -> Book {
        let mut book = Book::new();
        book.put("contacts", cards);
        book
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// A file for a backup.
    pub(crate) fn aside(&self) -> PathBuf {
        self.scratch.path().join("aside.db")
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

    /// The same store with index sets that another program filled, as far as their fingerprints
    /// say: readers must not use them.
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
                // Of the same length, so that the file stays one that SQLite can read.
                let last = at + fingerprint.len();
                bytes[last - 3..last].make_ascii_uppercase();
            }
        }
        fs::write(&data, bytes).unwrap();
        let reader = Reader::open(&dir).unwrap();
        (scratch, reader)
    }
}

/// An index set that is to look as if another program had filled it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stale {
    Text,
    Sort,
    Time,
}

impl Stale {
    pub(crate) const ALL: &[Stale] = &[Stale::Text, Stale::Sort];

    /// How the fingerprint begins.
    fn fingerprint(self) -> &'static str {
        match self {
            Stale::Text => "rules 6, folding 2, tables",
            Stale::Sort => "rules 6, folding 2, und",
            Stale::Time => "fingerprint:scheduletimes",
        }
    }
}

pub(crate) fn ask(query: Query) -> SearchRequest {
    SearchRequest { query, prefetch: true, ..SearchRequest::default() }
}

/// The UIDs that a question finds, in their order.
pub(crate) fn uids(reader: &Reader, asked: &SearchRequest) -> Vec<String> {
    let mut uids = Vec::new();
    find(reader, asked)
        .unwrap()
        .for_each(reader, &mut |head, _| {
            uids.push(head.uid.clone());
            true
        })
        .unwrap();
    uids
}

/// A book of seven people and an organisation.
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
    Book::of(cards.iter().map(String::as_str))
}
