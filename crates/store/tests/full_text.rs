//! The index of words finds what FTS5, the full-text index of SQLite, finds in the same words.
//!
//! A document is a row in an FTS5 table of one column, and a message of one text. The messages come
//! in several batches, some of which are merged, and some are removed again.

use larder_store::position_list::{count_phrase, is_near};
use larder_store::{
    BatchChange, DataDirectory, MailBatch, MailBatchBuilder, MailChange, MailFile,
    MessageTermField, OpenMailWords, Operation, PhraseCursor, StepSize, Store, StoreFile,
    StoreOptions, write_message_term,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// The words, the frequent ones first; several begin alike.
const WORDS: [&str; 16] = [
    "the",
    "a",
    "walrus",
    "wal",
    "walnut",
    "seal",
    "sea",
    "sealion",
    "audit",
    "auditor",
    "report",
    "7",
    "70",
    "x",
    "xylophone",
    "zebra",
];
/// Beginnings of words.
const PREFIXES: [&str; 7] = ["wal", "sea", "a", "7", "x", "auditor", "q"];

/// A query.
#[derive(Debug, Clone)]
enum TextQuery {
    Word(&'static str),
    Prefix(&'static str),
    Phrase(Vec<&'static str>),
    /// A phrase, and the beginning of the word behind it.
    PhrasePrefix(Vec<&'static str>, &'static str),
    /// Two different words, with at most this many others between them.
    Near(&'static str, &'static str, u32),
    And(Box<TextQuery>, Box<TextQuery>),
    Or(Box<TextQuery>, Box<TextQuery>),
    Without(Box<TextQuery>, Box<TextQuery>),
}

impl TextQuery {
    /// Writes the query for FTS5.
    fn to_match(&self) -> String {
        match self {
            TextQuery::Word(word) => format!("\"{word}\""),
            TextQuery::Prefix(start) => format!("\"{start}\" *"),
            TextQuery::Phrase(words) => format!("\"{}\"", words.join(" ")),
            TextQuery::PhrasePrefix(words, start) => format!("\"{} {start}\" *", words.join(" ")),
            TextQuery::Near(one, other, between) => {
                format!("NEAR(\"{one}\" \"{other}\", {between})")
            }
            TextQuery::And(one, other) => format!("({} AND {})", one.to_match(), other.to_match()),
            TextQuery::Or(one, other) => format!("({} OR {})", one.to_match(), other.to_match()),
            TextQuery::Without(one, other) => {
                format!("({} NOT {})", one.to_match(), other.to_match())
            }
        }
    }

    /// Finds the rows in the index of words.
    fn find(&self, words: &OpenMailWords<'_>) -> BTreeSet<u32> {
        match self {
            TextQuery::Word(word) => rows_with_term(words, &term(word)),
            TextQuery::Prefix(start) => {
                let mut bits = Vec::new();
                words.rows_with_prefix(&term(start), &mut bits).unwrap();
                rows_of_bits(&bits)
            }
            TextQuery::Phrase(phrase) => {
                let terms: Vec<Vec<u8>> = phrase.iter().map(|word| term(word)).collect();
                find_phrase(words, &terms)
            }
            TextQuery::PhrasePrefix(phrase, start) => {
                let prefix = term(start);
                let mut ends = BTreeSet::new();
                words
                    .for_each_term(&prefix, &mut |found, _| {
                        let is_inside = found.starts_with(&prefix);
                        if is_inside {
                            ends.insert(found.to_vec());
                        }
                        is_inside
                    })
                    .unwrap();
                let mut rows = BTreeSet::new();
                for end in ends {
                    let mut terms: Vec<Vec<u8>> = phrase.iter().map(|word| term(word)).collect();
                    terms.push(end);
                    rows.extend(find_phrase(words, &terms));
                }
                rows
            }
            TextQuery::Near(one, other, between) => {
                let terms = [term(one), term(other)];
                find_by_positions(words, &terms, |positions| {
                    is_near(&positions[0], &positions[1], between + 1)
                })
            }
            TextQuery::And(one, other) => &one.find(words) & &other.find(words),
            TextQuery::Or(one, other) => &one.find(words) | &other.find(words),
            TextQuery::Without(one, other) => &one.find(words) - &other.find(words),
        }
    }
}

fn term(word: &str) -> Vec<u8> {
    let mut term = Vec::new();
    write_message_term(&mut term, MessageTermField::Text, word);
    term
}

fn rows_of_bits(bits: &[u64]) -> BTreeSet<u32> {
    let rows = 0..u32::try_from(bits.len() * 64).unwrap();
    rows.filter(|row| bits[*row as usize / 64] >> (row % 64) & 1 == 1).collect()
}

fn rows_with_term(words: &OpenMailWords<'_>, term: &[u8]) -> BTreeSet<u32> {
    let mut bits = Vec::new();
    words.rows_with_term(term, &mut bits).unwrap();
    rows_of_bits(&bits)
}

/// Finds the rows of a phrase with a cursor, and by all positions of its words.
fn find_phrase(words: &OpenMailWords<'_>, terms: &[Vec<u8>]) -> BTreeSet<u32> {
    let found = find_by_positions(words, terms, |positions| {
        let terms: Vec<(&[u32], u32)> = positions.iter().map(Vec::as_slice).zip(0..).collect();
        count_phrase(&terms) > 0
    });
    let mut phrase = PhraseCursor::new(terms.iter().map(|term| words.cursor(term)).zip(0..));
    let mut rows = vec![u64::MAX; 200];
    let range = 0..u32::MAX;
    assert!(words.retain_phrase_rows(&mut phrase, &range, 0, &mut rows, u64::MAX).unwrap());
    assert_eq!(rows_of_bits(&rows), found);
    found
}

/// Returns the rows that have all terms, at positions that pass.
fn find_by_positions(
    words: &OpenMailWords<'_>,
    terms: &[Vec<u8>],
    passes: impl Fn(&[Vec<u32>]) -> bool,
) -> BTreeSet<u32> {
    let rows = terms.iter().map(|term| rows_with_term(words, term)).reduce(|all, one| &all & &one);
    let mut cursors: Vec<_> = terms.iter().map(|term| words.cursor(term)).collect();
    let mut found = BTreeSet::new();
    for row in rows.unwrap() {
        let mut positions = vec![Vec::new(); terms.len()];
        for (cursor, positions) in cursors.iter_mut().zip(&mut positions) {
            assert!(words.positions(cursor, row, positions).unwrap());
        }
        if passes(&positions) {
            found.insert(row);
        }
    }
    found
}

fn arb_word() -> impl Strategy<Value = &'static str> {
    // The first words are frequent.
    (0..WORDS.len(), 0..WORDS.len()).prop_map(|(one, other)| WORDS[one.min(other)])
}

fn arb_query() -> impl Strategy<Value = TextQuery> {
    let leaf = prop_oneof![
        3 => arb_word().prop_map(TextQuery::Word),
        1 => select(&PREFIXES[..]).prop_map(TextQuery::Prefix),
        3 => vec(arb_word(), 2..4).prop_map(TextQuery::Phrase),
        1 => (vec(arb_word(), 1..3), select(&PREFIXES[..]))
            .prop_map(|(words, start)| TextQuery::PhrasePrefix(words, start)),
        2 => (arb_word(), arb_word(), 0..6_u32)
            .prop_filter("of a word that is near itself, FTS5 takes both from one place",
                |(one, other, _)| one != other)
            .prop_map(|(one, other, between)| TextQuery::Near(one, other, between)),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            pair().prop_map(|(one, other)| TextQuery::And(one, other)),
            pair().prop_map(|(one, other)| TextQuery::Or(one, other)),
            pair().prop_map(|(one, other)| TextQuery::Without(one, other)),
        ]
    })
}

fn create_index(directory: &std::path::Path) -> Store {
    let directory = DataDirectory::new(directory.join("index")).with_store_file(StoreFile::Index);
    Store::open(directory, &StoreOptions { create: true, ..StoreOptions::default() }).unwrap()
}

/// Writes the messages of one batch.
fn apply(
    store: &mut Store,
    changes: Vec<MailChange>,
    builder: &mut MailBatchBuilder,
    end_row: u32,
) {
    let words = Some(builder.encode_words());
    let batch = MailBatch { collection: "mail".into(), changes, words, end_row };
    let mut operation = Operation::new("sync", "mail", 0);
    store.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))]).unwrap();
}

/// Indexes documents in batches; every fifth document is removed again. Returns the rows that stay.
fn index(
    store: &mut Store,
    documents: &[Vec<&str>],
    batch_size: usize,
    step: u32,
) -> BTreeSet<u32> {
    let mut builder = MailBatchBuilder::new(&[]);
    let (path, folder) = (b"cur".to_vec(), Vec::new());
    let directory = MailChange::PutDirectory { path, folder, is_new: false, state: Vec::new() };
    apply(store, vec![directory], &mut builder, 0);
    let (mut kept, mut removed, mut row) = (BTreeSet::new(), Vec::new(), 1);
    for (number, batch) in documents.chunks(batch_size).enumerate() {
        let mut changes = Vec::new();
        for words in batch {
            let bytes =
                format!("Message-ID: <{row}@x>\nContent-Type: text/plain\n\n{}\n", words.join(" "));
            let (message, _) = builder.prepare(row, bytes.as_bytes(), 1_500_000_000);
            let name = row.to_string().into_bytes();
            let (inode, flags) = (row.into(), larder_format::maildir_name::MaildirFlags::default());
            let file = MailFile {
                directory: b"cur".to_vec(),
                name,
                inode,
                flags,
                state: larder_store::MailFileState::default(),
            };
            if row % 5 == 0 {
                let (directory, name) = (file.directory.clone(), file.name.clone());
                removed.push(MailChange::RemoveFile { directory, name });
            } else {
                kept.insert(row);
            }
            changes.push(MailChange::AddFile { file, message: Box::new(message) });
            row += step;
        }
        apply(store, changes, &mut builder, row);
        if number % 3 == 2 {
            store.merge_words(8, &mut StepSize::new(1 << 20, 1..=1 << 20)).unwrap();
        }
    }
    apply(store, removed, &mut builder, 0);
    kept
}

/// Fills an FTS5 table.
fn index_with_fts5(documents: &[Vec<&str>], step: u32) -> Connection {
    let fts = Connection::open_in_memory().unwrap();
    fts.execute_batch("CREATE VIRTUAL TABLE text USING fts5(words, tokenize = 'ascii')").unwrap();
    let mut insert = fts.prepare("INSERT INTO text(rowid, words) VALUES(?1, ?2)").unwrap();
    for (number, words) in (0..).zip(documents) {
        insert.execute((1 + number * step, words.join(" "))).unwrap();
    }
    drop(insert);
    fts
}

/// Documents of few words, and some of so many that the positions of the frequent ones take several
/// entries.
fn arb_documents() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let length = prop_oneof![60 => Just(0), 1 => 3000..20_000_usize];
    let document = (vec(arb_word(), 0..30), vec(select(&WORDS[..2]), 1..9), length);
    let document = document.prop_map(|(own, filling, length)| {
        let filling = filling.into_iter().cycle().take(length);
        filling.chain(own).collect::<Vec<_>>()
    });
    vec(document, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn the_index_of_words_finds_what_fts5_finds(
        documents in arb_documents(),
        batch_size in select(vec![1, 7, 80]),
        step in select(vec![1, 3, 100]),
        queries in vec(arb_query(), 60),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = create_index(directory.path());
        let kept = index(&mut store, &documents, batch_size, step);
        let fts = index_with_fts5(&documents, step);
        let reader = store.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let words = mail.words();
        let words = words.open().unwrap();
        let mut select = fts.prepare("SELECT rowid FROM text WHERE text MATCH ?1").unwrap();
        for query in &queries {
            let rows = select.query_map([query.to_match()], |row| row.get::<_, u32>(0)).unwrap();
            let expected: BTreeSet<u32> = rows.map(Result::unwrap).collect();
            prop_assert_eq!(&query.find(&words) & &kept, &expected & &kept, "{}", query.to_match());
        }
    }
}
