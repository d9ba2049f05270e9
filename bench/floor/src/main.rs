//! The floor of the import benchmark: a lower bound for the cost of the same cards on the same
//! disk.
//!
//! `larder-floor MODE BOOK DIR BATCH` reads an address book, splits it at BEGIN and END lines
//! without parsing the cards, and writes them to the directory DIR, after the rows of an earlier
//! run in the same mode. Prints the number of cards, and the wall time and CPU time of writing.
//! MODE is one of
//!
//! * `copy`: writes the bytes to one file, with one `fsync`, without counting cards: the minimum of
//!   any store that keeps the bytes.
//! * `plain`: writes for each card a row of bytes, an item row, and 18 rows of keys that are parts
//!   of the bytes; for each batch a log row: the minimum of a store on SQLite.
//! * `same`: writes the content of Larder's index of each card as rows of B-trees and an FTS5 table
//!   of trigrams, the usual design. The printed time does not include parsing: it is that of
//!   SQLite.
//!
//! `larder-floor calendar FILE QUERIES DIR SECONDS BATCH` is documented in `calendar.rs`, and
//! `larder-floor mail DIR` in `mail.rs`.
//!
//! The program is no part of Larder. It uses rusqlite itself, because a floor must not use the code
//! of Larder's store. The settings are the same as Larder's: WAL, `synchronous=FULL`, 8 MB of
//! cache, a checkpoint at 4 MB, the rows of a batch in key order.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod calendar;
mod mail;

use larder_format::contact::Contact;
use larder_format::field::{CONTACT_FIELDS, Field, FieldType};
use larder_format::fold::{collect_digits, fold, split_words};
use larder_store::{Extractor, FieldIndex, is_storable};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufReader, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, file, queries, dir, seconds, batch] = &arguments[..]
        && mode == "calendar"
    {
        fs::create_dir_all(dir)?;
        return calendar::run_calendar_floor(file, queries, Path::new(dir), seconds, batch);
    }
    if let [mode, dir] = &arguments[..]
        && mode == "mail"
    {
        return mail::run_mail_floor(Path::new(dir));
    }
    let [mode, book, dir, batch] = &arguments[..] else {
        return Err("larder-floor copy|plain|same BOOK DIR BATCH, or calendar FILE QUERIES DIR SECONDS BATCH".into());
    };
    fs::create_dir_all(dir)?;
    let (book, dir, batch) = (Path::new(book), Path::new(dir), batch.parse()?);
    let spent = match mode.as_str() {
        "copy" => copy_book(book, dir)?,
        "plain" => write_tables::<PlainTables>(book, dir, batch)?,
        "same" => write_tables::<LarderTables>(book, dir, batch)?,
        other => return Err(format!("unknown mode: {other}").into()),
    };
    let WriteCost { cards, wall_time: wall, cpu_time: processor } = spent;
    let (wall, processor) = (wall.as_micros(), processor.as_micros());
    println!("{{\"cards\":{cards},\"wall_us\":{wall},\"cpu_us\":{processor}}}");
    Ok(())
}

/// The cost of writing.
#[derive(Default)]
struct WriteCost {
    cards: u64,
    wall_time: Duration,
    cpu_time: Duration,
}

impl WriteCost {
    /// Runs `work` and adds its cost.
    fn measure<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (clock, before) = (Instant::now(), cpu_time()?);
        let result = work()?;
        self.wall_time += clock.elapsed();
        self.cpu_time += cpu_time()?.saturating_sub(before);
        Ok(result)
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn copy_book(book: &Path, dir: &Path) -> Result<WriteCost> {
    let mut spent = WriteCost::default();
    spent.measure(|| {
        let (mut from, mut to) = (File::open(book)?, File::create(dir.join("copy"))?);
        let mut buffer = vec![0; 256 << 10];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(to.sync_all()?);
            }
            to.write_all(&buffer[..read])?;
        }
    })?;
    Ok(spent)
}

/// A design of tables for cards.
trait CardTables: Sized {
    /// The prepared rows of a card; preparing them is not part of the measured time.
    type Row;
    const SCHEMA_SQL: &str;
    fn new() -> Self;
    fn prepare_row(&self, card: &[u8]) -> Self::Row;
    /// Writes a batch; `first` is the number of its first card.
    fn write_batch(
        &self,
        conn: &Connection,
        seq: i64,
        first: i64,
        rows: Vec<Self::Row>,
    ) -> Result<()>;
}

fn write_tables<K: CardTables>(book: &Path, dir: &Path, batch: usize) -> Result<WriteCost> {
    let tables = K::new();
    let mut spent = WriteCost::default();
    let conn = spent.measure(|| {
        let conn = Connection::open(dir.join("floor.db"))?;
        for (pragma, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            conn.pragma_update(None, pragma, value)?;
        }
        for (pragma, value) in [("cache_size", -8192), ("wal_autocheckpoint", 1000)] {
            conn.pragma_update(None, pragma, value)?;
        }
        conn.execute_batch(K::SCHEMA_SQL)?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    })?;
    let mut cards = CardFile { input: BufReader::with_capacity(256 << 10, File::open(book)?) };
    let (before, mut seq): (i64, i64) = conn.query_row(
        "SELECT coalesce(max(id), 0), coalesce(max(seq), 0) FROM item",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    loop {
        let mut batch_rows = Vec::with_capacity(batch);
        while batch_rows.len() < batch
            && let Some(card) = cards.read_next()?
        {
            batch_rows.push(tables.prepare_row(&card));
        }
        if batch_rows.is_empty() {
            return Ok(spent);
        }
        seq += 1;
        let (first, number) = (before + spent.cards as i64 + 1, batch_rows.len() as u64);
        spent.measure(|| {
            let tx = conn.unchecked_transaction()?;
            tables.write_batch(&conn, seq, first, batch_rows)?;
            Ok(tx.commit()?)
        })?;
        spent.cards += number;
    }
}

/// The cards of a file, which must not have blanks before BEGIN and END.
struct CardFile {
    input: BufReader<File>,
}

impl CardFile {
    fn read_next(&mut self) -> Result<Option<Vec<u8>>> {
        use std::io::BufRead as _;
        let mut card = Vec::with_capacity(1024);
        loop {
            let start = card.len();
            if self.input.read_until(b'\n', &mut card)? == 0 {
                return Ok(None);
            }
            if card[start..].starts_with(b"END:VCARD") {
                return Ok(Some(card));
            }
        }
    }
}

/// Rows that need no parser.
struct PlainTables;

/// The number of keys of a card: prefixes, reversed prefixes, a sort key, phones, e-mail addresses.
const KEYS_PER_CARD: usize = 18;

impl CardTables for PlainTables {
    type Row = Vec<u8>;

    const SCHEMA_SQL: &str = "
        CREATE TABLE IF NOT EXISTS item(id INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, seq INTEGER NOT NULL) STRICT;
        CREATE TABLE IF NOT EXISTS source(item INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
        CREATE TABLE IF NOT EXISTS key(field INTEGER NOT NULL, value BLOB NOT NULL, item INTEGER NOT NULL,
                         PRIMARY KEY(field, value, item)) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS log(seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, number INTEGER NOT NULL) STRICT;";

    fn new() -> PlainTables {
        PlainTables
    }

    fn prepare_row(&self, card: &[u8]) -> Vec<u8> {
        card.to_vec()
    }

    fn write_batch(
        &self,
        conn: &Connection,
        seq: i64,
        first: i64,
        rows: Vec<Vec<u8>>,
    ) -> Result<()> {
        let mut item = conn.prepare_cached("INSERT INTO item VALUES(?1, ?2, ?3)")?;
        let mut source = conn.prepare_cached("INSERT INTO source VALUES(?1, ?2)")?;
        let mut keys = Vec::with_capacity(rows.len() * KEYS_PER_CARD);
        for (id, card) in (first..).zip(&rows) {
            // Any part of a card can be a key; the number makes the UID unique.
            let uid =
                [&card[card.len() / 2..card.len().min(card.len() / 2 + 28)], &id.to_le_bytes()]
                    .concat();
            item.execute((id, uid, seq))?;
            source.execute((id, card))?;
            for field in 0..KEYS_PER_CARD {
                let at = (id as usize * 7 + field * 37) % card.len().saturating_sub(20).max(1);
                keys.push((field as i64, &card[at..card.len().min(at + 14)], id));
            }
        }
        keys.sort_unstable();
        let mut key = conn.prepare_cached("INSERT INTO key VALUES(?1, ?2, ?3)")?;
        for row in keys {
            key.execute(row)?;
        }
        conn.execute("INSERT INTO log VALUES(?1, ?2, ?3)", (seq, first, rows.len() as i64))?;
        Ok(())
    }
}

/// The rows of Larder's schema.
struct LarderTables {
    extractor: Extractor,
}

/// The content of Larder's index of a card, as rows: values, reversed values, prefixes of words,
/// last digits of numbers, presence; the text for trigrams; sort keys; stored fields.
struct IndexRows {
    uid: String,
    stored_fields: String,
    values: Vec<(u16, String)>,
    text: String,
    sort_keys: Vec<(u16, Vec<u8>)>,
}

/// Offsets of field numbers: for reversed values, and for the last digits of telephone numbers.
const SUFFIX_FIELD_OFFSET: u16 = 1000;
const PHONE_FIELD_OFFSET: u16 = 2000;

impl IndexRows {
    fn from_card(card: &[u8], extractor: &Extractor) -> IndexRows {
        let (card, config) = (Contact::parse(card), extractor.index_config());
        let (mut values, mut text, mut stored_fields) =
            (BTreeSet::new(), String::new(), String::new());
        for field in CONTACT_FIELDS.iter().filter(|field| field.is_indexed) {
            for value in card.values(field) {
                if is_storable(field) {
                    stored_fields.push_str(&value);
                    stored_fields.push('\n');
                }
                let folded = fold(&value).into_owned();
                values.insert((field.id, String::new()));
                if config.has_index(field, FieldIndex::Suffix) {
                    values.insert((field.id + SUFFIX_FIELD_OFFSET, folded.chars().rev().collect()));
                }
                if field.is_default_search {
                    let short = |word: &str| (0, word.chars().take(2).collect());
                    values.extend(split_words(&folded).map(short));
                }
                if field.field_type == FieldType::Phone {
                    let last = collect_digits(&folded).chars().rev().take(7).collect();
                    values.insert((field.id + PHONE_FIELD_OFFSET, last));
                    text.push_str(&collect_digits(&folded));
                    text.push('\n');
                }
                if config.has_index(field, FieldIndex::Substring) {
                    text.push_str(&folded);
                    text.push('\n');
                }
                if config.has_index(field, FieldIndex::Value) {
                    values.insert((field.id, folded));
                }
            }
        }
        let key = |field: &'static Field| {
            (field.id, extractor.sort_key(&card.first_value(field).unwrap_or_default()))
        };
        let sort_keys = config.fields_with_index(FieldIndex::Sort).map(key).collect();
        let uid = card.uid().unwrap_or_default();
        IndexRows { uid, stored_fields, values: values.into_iter().collect(), text, sort_keys }
    }
}

/// Returns a hash of a UID, which items are found by; `bench/contacts` has the same function.
fn hash_uid(uid: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    uid.hash(&mut hash);
    hash.finish()
}

impl CardTables for LarderTables {
    type Row = (Vec<u8>, IndexRows);

    const SCHEMA_SQL: &str = "
        CREATE TABLE IF NOT EXISTS item(id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, kind INTEGER NOT NULL,
          uid TEXT NOT NULL, recurrence TEXT NOT NULL, derived_uid INTEGER NOT NULL, handle BLOB NOT NULL,
          seq INTEGER NOT NULL, ordinal INTEGER NOT NULL, kept TEXT) STRICT;
        CREATE INDEX IF NOT EXISTS item_handle ON item(handle);
        CREATE UNIQUE INDEX IF NOT EXISTS item_seq ON item(seq, ordinal);
        CREATE TABLE IF NOT EXISTS source(item INTEGER PRIMARY KEY, bytes BLOB, blob BLOB) STRICT;
        CREATE TABLE IF NOT EXISTS batch(seq INTEGER PRIMARY KEY, operation INTEGER NOT NULL) STRICT;
        CREATE TABLE IF NOT EXISTS idx_value(field INTEGER NOT NULL, value TEXT NOT NULL, item INTEGER NOT NULL,
          PRIMARY KEY(field, value, item)) STRICT, WITHOUT ROWID;
        CREATE VIRTUAL TABLE IF NOT EXISTS idx_text USING fts5(text, content='', contentless_delete=1, detail=none,
          tokenize='trigram case_sensitive 1');
        CREATE TABLE IF NOT EXISTS idx_sort(field INTEGER NOT NULL, key BLOB NOT NULL, item INTEGER NOT NULL,
          PRIMARY KEY(field, key, item)) STRICT, WITHOUT ROWID;";

    fn new() -> LarderTables {
        LarderTables { extractor: Extractor::new("und") }
    }

    fn prepare_row(&self, card: &[u8]) -> Self::Row {
        (card.to_vec(), IndexRows::from_card(card, &self.extractor))
    }

    fn write_batch(
        &self,
        conn: &Connection,
        seq: i64,
        first: i64,
        rows: Vec<Self::Row>,
    ) -> Result<()> {
        let mut item =
            conn.prepare_cached("INSERT INTO item VALUES(?1, 1, 1, ?2, '', 0, ?3, ?4, ?5, ?6)")?;
        let mut source = conn.prepare_cached("INSERT INTO source VALUES(?1, ?2, NULL)")?;
        let mut text = conn.prepare_cached("INSERT INTO idx_text(rowid, text) VALUES(?1, ?2)")?;
        let (mut values, mut sort) = (Vec::new(), Vec::new());
        for (id, (card, entry)) in (first..).zip(&rows) {
            let handle = hash_uid(&entry.uid).to_be_bytes();
            item.execute((id, &entry.uid, handle, seq, id - first, &entry.stored_fields))?;
            source.execute((id, card))?;
            values.extend(entry.values.iter().map(|(field, value)| (*field, value.as_str(), id)));
            sort.extend(entry.sort_keys.iter().map(|(field, key)| (*field, key.as_slice(), id)));
        }
        values.sort_unstable();
        sort.sort_unstable();
        let mut insert = conn.prepare_cached("INSERT INTO idx_value VALUES(?1, ?2, ?3)")?;
        for row in values {
            insert.execute(row)?;
        }
        let mut insert = conn.prepare_cached("INSERT INTO idx_sort VALUES(?1, ?2, ?3)")?;
        for row in sort {
            insert.execute(row)?;
        }
        for (id, (_, entry)) in (first..).zip(&rows) {
            text.execute((id, &entry.text))?;
        }
        conn.execute("INSERT INTO batch VALUES(?1, 1)", [seq])?;
        Ok(())
    }
}
