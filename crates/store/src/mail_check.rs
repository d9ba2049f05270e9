//! Verifying the tables of mail: they are compared with each other, and the words with the
//! messages.
//!
//! Each fault is a kind of row, with the number of those that are wrong: all of it is made again
//! from the mail, so no row is worth a name. The files of the messages are not read here. Separate
//! from `check`, which verifies what all stores have.

use crate::error::{DatabaseError, DatabaseResult};
use crate::index_tables::IndexTables;
use crate::mail::batch::{OTHER_TEXT_ORIGIN, file_key};
use crate::mail::columns::{
    ANY_TEXT_SET, FIRST_LABEL_PAGE, MailColumn, MailSet, block_of, change_value, column_page,
    date_value, present_rows, read_values, unpack_set,
};
use crate::mail::threads::find_thread;
use crate::mail::{BLOCK_ROWS, BLOCK_WORDS, BlockRows};
use crate::mail_schema::{OUTDATED_END_KEY, WORD_DICTIONARY, WORD_INDEX, WORDS_END_KEY};
use crate::meta::find_meta_number;
use crate::read_transaction::ReadTransaction;
use larder_extract::MessageTermField;
use larder_extract::hash_message_id;
use larder_extract::message_flags::MessageFlags;
use larder_extract::message_summary::MessageSummary;
use larder_format::kind::Kind;
use larder_format::maildir_name::MaildirName;
use larder_index::{TermDictionary, WordPart, verify_trigrams, verify_words};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// The hashes of words that are kept before those that came twice are dropped.
const MAX_UNSORTED_WORDS: usize = 1 << 20;

/// Queries that count faulty rows, with the names of kinds in place of their numbers.
const MAIL_CHECKS: &[(&str, &str)] = &[
    (
        "messages without a file",
        "SELECT count(*) FROM item WHERE kind IN ({message}, {commit}) AND id NOT IN (SELECT item FROM mail_file)",
    ),
    (
        "files whose message is missing",
        "SELECT count(*) FROM mail_file WHERE item NOT IN (SELECT id FROM item)",
    ),
    (
        "files whose directory is missing",
        "SELECT count(*) FROM mail_file WHERE directory NOT IN (SELECT id FROM mail_directory)",
    ),
    (
        "files of another source than their message",
        "SELECT count(*) FROM mail_file f JOIN mail_directory d ON d.id = f.directory
         JOIN item i ON i.id = f.item WHERE i.collection <> d.collection",
    ),
    (
        // The rows of one name have one key; few keys have more than one row.
        "files that more than one row names",
        "SELECT count(*) FROM mail_file f WHERE place > 0 AND EXISTS
           (SELECT 1 FROM mail_file other WHERE other.directory = f.directory AND other.base = f.base
              AND other.place < f.place AND other.name = f.name)",
    ),
    (
        "directories whose folder is missing",
        "SELECT count(*) FROM mail_directory d WHERE NOT EXISTS
           (SELECT 1 FROM mail_folder f WHERE f.id = d.folder AND f.collection = d.collection)",
    ),
    (
        "folders and directories without a source",
        "SELECT (SELECT count(*) FROM mail_folder WHERE collection NOT IN (SELECT id FROM collection))
           + (SELECT count(*) FROM mail_directory WHERE collection NOT IN (SELECT id FROM collection))",
    ),
    (
        "members of threads without a message",
        "SELECT count(*) FROM mail_thread WHERE item NOT IN (SELECT id FROM item)",
    ),
    (
        "messages without a thread",
        "SELECT count(*) FROM item WHERE kind = {message} AND id NOT IN (SELECT item FROM mail_thread)",
    ),
    (
        "further texts of a Message-ID that are not found by it",
        "SELECT (SELECT count(*) FROM item WHERE kind = {message} AND uid_origin = {other_text}
                   AND id NOT IN (SELECT item FROM mail_other_text))
           + (SELECT count(*) FROM mail_other_text
                WHERE item NOT IN (SELECT id FROM item WHERE uid_origin = {other_text}))",
    ),
    (
        "converted texts and uses of them without each other",
        "SELECT (SELECT count(*) FROM mail_conversion WHERE id NOT IN (SELECT conversion FROM mail_conversion_use))
           + (SELECT count(*) FROM mail_conversion_use WHERE conversion NOT IN (SELECT id FROM mail_conversion)
                OR item NOT IN (SELECT id FROM item))",
    ),
    (
        "changes of states without a message",
        "SELECT count(*) FROM mail_state_change WHERE item NOT IN (SELECT id FROM item)",
    ),
    (
        "changes of states in an unknown batch",
        "SELECT count(*) FROM mail_state_change WHERE seq NOT IN (SELECT seq FROM batch)",
    ),
    (
        "changes of states that are not after their message",
        "SELECT count(*) FROM mail_state_change s JOIN item i ON i.id = s.item
         WHERE (s.seq, s.ordinal) <= (i.seq, i.ordinal)",
    ),
    (
        "changes of states in the place of a message",
        "SELECT count(*) FROM mail_state_change s JOIN item i ON (i.seq, i.ordinal) = (s.seq, s.ordinal)",
    ),
    (
        "lists of parts of words without a segment of the dictionary",
        "SELECT count(*) FROM idx_segment WHERE derived_index < 0
           AND -derived_index NOT IN (SELECT id FROM idx_segment WHERE derived_index = {dictionary})",
    ),
    (
        "rows after the last one",
        "SELECT count(*) FROM item WHERE id > (SELECT value FROM meta WHERE key = 'last_item')",
    ),
];

/// The faults of the tables of mail.
#[derive(Default)]
pub(crate) struct MailFaults {
    /// The wrong rows and their fault, with the number of them.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// Whether a block of words cannot be read.
    pub(crate) has_malformed_words: bool,
}

impl MailFaults {
    fn add(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            self.counts.push((what, count));
        }
    }
}

/// Compares the tables of mail with each other.
pub(crate) fn find_mail_faults(tx: &ReadTransaction<'_>) -> DatabaseResult<MailFaults> {
    let mut faults = MailFaults::default();
    for (what, sql) in MAIL_CHECKS {
        let sql = sql
            .replace("{message}", &Kind::Message.number().to_string())
            .replace("{other_text}", &OTHER_TEXT_ORIGIN.to_string())
            .replace("{commit}", &Kind::Commit.number().to_string())
            .replace("{dictionary}", &WORD_DICTIONARY.0.to_string());
        let count: i64 = tx.query_row(&sql, [], |row| row.get(0))?;
        faults.add(what, count.unsigned_abs());
    }
    let expected = ExpectedStates::read(tx, &mut faults)?;
    let blocks = compare_columns(tx, &expected, &mut faults)?;
    compare_sets(tx, &expected, &mut faults)?;
    compare_block_dates(tx, &blocks, &mut faults)?;
    compare_thread_ids(tx, &mut faults)?;
    compare_conversions(tx, &mut faults)?;
    match compare_words(tx, &expected, &mut faults) {
        Err(error) if error.is_damage() => faults.has_malformed_words = true,
        compared => compared?,
    }
    Ok(faults)
}

/// The states of one block, as the rows of messages, files and threads say.
#[derive(Clone)]
struct ExpectedBlock {
    dates: Vec<u32>,
    sizes: Vec<u32>,
    threads: Vec<u32>,
    changed: Vec<u32>,
    /// The flags of the files; `None`: a commit, whose file has no name.
    file_flags: Vec<Option<MessageFlags>>,
}

impl Default for ExpectedBlock {
    fn default() -> ExpectedBlock {
        let values = || vec![0; BLOCK_ROWS as usize];
        ExpectedBlock {
            dates: values(),
            sizes: values(),
            threads: values(),
            changed: values(),
            file_flags: vec![None; BLOCK_ROWS as usize],
        }
    }
}

/// The states of all messages, as the rows of messages, files and threads say.
#[derive(Default)]
struct ExpectedStates {
    blocks: BTreeMap<u32, ExpectedBlock>,
    /// The sets of folders, by their pages.
    folders: HashMap<i64, BlockRows>,
}

impl ExpectedStates {
    fn read(tx: &ReadTransaction<'_>, faults: &mut MailFaults) -> DatabaseResult<ExpectedStates> {
        let mut states = ExpectedStates::default();
        states.read_messages(tx, faults)?;
        states.read_files(tx, faults)?;
        let mut select = tx.prepare_cached("SELECT item, thread FROM mail_thread")?;
        let mut rows = select.query([])?;
        while let Some(member) = rows.next()? {
            // Other numbers are in a damaged row.
            let thread = u32::try_from(member.get::<_, i64>(1)?).unwrap_or_default();
            if let Ok(row) = u32::try_from(member.get::<_, i64>(0)?) {
                states.set(row, |block| &mut block.threads, thread);
            }
        }
        Ok(states)
    }

    fn set(&mut self, row: u32, column: impl Fn(&mut ExpectedBlock) -> &mut Vec<u32>, value: u32) {
        let (block, place) = block_of(row);
        let block = self.blocks.entry(block).or_default();
        if let Some(known) = column(block).get_mut(place) {
            *known = (*known).max(value);
        }
    }

    fn read_messages(
        &mut self,
        tx: &ReadTransaction<'_>,
        faults: &mut MailFaults,
    ) -> DatabaseResult<()> {
        let outdated_end = find_meta_number(tx, OUTDATED_END_KEY)?.unwrap_or_default();
        let mut select = tx.prepare_cached(
            "SELECT i.id, i.kind, i.stored_fields, count(*), count(f.rank), min(f.rank)
             FROM item i JOIN mail_file f ON f.item = i.id GROUP BY i.id",
        )?;
        let mut rows = select.query([])?;
        let (mut malformed, mut foreign) = (0, 0);
        while let Some(item) = rows.next()? {
            let Ok(row) = u32::try_from(item.get::<_, i64>(0)?) else {
                malformed += 1;
                continue;
            };
            let bytes = item.get_ref(2)?.as_blob_or_null().ok().flatten().unwrap_or_default();
            let Some(summary) = MessageSummary::from_bytes(bytes) else {
                malformed += 1;
                continue;
            };
            let (files, ranks): (i64, i64) = (item.get(3)?, item.get(4)?);
            // A file that is to be read again may be the one whose values the message must have.
            let is_settled = files == ranks && i64::from(row) >= outdated_end;
            let least: Option<i64> = item.get(5)?;
            foreign += u64::from(is_settled && least != Some(summary.copy_rank()));
            self.set(row, |block| &mut block.dates, date_value(summary.date));
            let is_message = item.get::<_, i64>(1)? == Kind::Message.number();
            if is_message {
                self.set(row, |block| &mut block.sizes, summary.size);
                let (block, place) = block_of(row);
                let flags = self.blocks.entry(block).or_default().file_flags.get_mut(place);
                flags.into_iter().for_each(|flags| *flags = Some(MessageFlags::default()));
            }
        }
        faults.add("messages whose values are malformed", malformed);
        faults.add("messages with the values of none of their files", foreign);
        Ok(())
    }

    fn read_files(
        &mut self,
        tx: &ReadTransaction<'_>,
        faults: &mut MailFaults,
    ) -> DatabaseResult<()> {
        let mut select = tx.prepare_cached(
            "SELECT f.item, f.name, f.changed, d.is_new, d.folder, f.base
             FROM mail_file f JOIN mail_directory d ON d.id = f.directory",
        )?;
        let mut rows = select.query([])?;
        let mut misplaced = 0;
        while let Some(file) = rows.next()? {
            let name = file.get_ref(1)?.as_blob().unwrap_or_default();
            misplaced += u64::from(file.get_ref(5)?.as_i64() != Ok(file_key(name)));
            // A file of no message is counted already.
            let Ok(item) = u32::try_from(file.get::<_, i64>(0)?) else { continue };
            let folder: i64 = file.get(4)?;
            let name = MaildirName::parse(name);
            let flags = MessageFlags::default().with_file_flags(name.flags(file.get(3)?));
            let changed = change_value(file.get(2)?);
            self.set(item, |block| &mut block.changed, changed);
            let (block, place) = block_of(item);
            let known = self.blocks.entry(block).or_default().file_flags.get_mut(place);
            for known in known.into_iter().flatten() {
                *known = known.union(flags);
            }
            let page = MailSet::Folder(folder).page(block);
            let set = self.folders.entry(page).or_insert([0; BLOCK_WORDS]);
            set.iter_mut().skip(place / 64).take(1).for_each(|word| *word |= 1 << (place % 64));
        }
        faults.add("files under the key of another name", misplaced);
        Ok(())
    }

    /// Returns the rows of a block that have a message.
    fn message_rows(&self, block: u32) -> BlockRows {
        self.blocks.get(&block).map_or([0; BLOCK_WORDS], |block| present_rows(&block.dates))
    }
}

/// Returns the number of values that differ.
fn count_differences(stored: &[u32], expected: &[u32]) -> u64 {
    stored.iter().zip(expected).filter(|(stored, expected)| stored != expected).count() as u64
}

/// Compares the columns with the rows. Returns the stored dates of each block.
fn compare_columns(
    tx: &ReadTransaction<'_>,
    expected: &ExpectedStates,
    faults: &mut MailFaults,
) -> DatabaseResult<BTreeMap<u32, (u32, u32)>> {
    let sql = "SELECT DISTINCT id & 4294967295 FROM mail_column";
    let mut blocks: BTreeSet<u32> = expected.blocks.keys().copied().collect();
    for block in tx.prepare_cached(sql)?.query_map([], |row| row.get::<_, u32>(0))? {
        blocks.insert(block?);
    }
    let (none, mut values) = (ExpectedBlock::default(), Vec::new());
    let mut bounds = BTreeMap::new();
    let (mut dates, mut sizes, mut threads, mut changed, mut flags) = (0, 0, 0, 0, 0);
    for number in blocks {
        let block = expected.blocks.get(&number).unwrap_or(&none);
        for (column, expected, count) in [
            (MailColumn::Date, &block.dates, &mut dates),
            (MailColumn::Size, &block.sizes, &mut sizes),
            (MailColumn::Thread, &block.threads, &mut threads),
            (MailColumn::Changed, &block.changed, &mut changed),
        ] {
            read_values(tx, column, number, &mut values)?;
            *count += count_differences(&values, expected);
            if column == MailColumn::Date {
                let present = || values.iter().copied().filter(|date| *date > 0);
                let newest = present().max().unwrap_or_default();
                bounds.insert(number, (newest, present().min().unwrap_or_default()));
            }
        }
        read_values(tx, MailColumn::Flags, number, &mut values)?;
        for (stored, expected) in values.iter().zip(&block.file_flags) {
            let stored = MessageFlags::from_bits(u16::try_from(*stored).unwrap_or_default());
            let is_same = match expected {
                Some(expected) => stored.without_file_flags().union(*expected) == stored,
                // The flags of a row without a message, or of a commit, are not searched.
                None => true,
            };
            flags += u64::from(!is_same);
        }
    }
    faults.add("messages with a wrong date", dates);
    faults.add("messages with a wrong size", sizes);
    faults.add("messages in a wrong thread", threads);
    faults.add("messages with a wrong time of change", changed);
    faults.add("messages with other flags than their files", flags);
    let known = [MailColumn::Date, MailColumn::Flags, MailColumn::Thread, MailColumn::Size];
    let columns: BTreeSet<i64> = known
        .into_iter()
        .chain([MailColumn::Changed])
        .map(|column| column_page(column, 0) >> 32)
        .collect();
    let mut select = tx.prepare_cached("SELECT DISTINCT id >> 32 FROM mail_column")?;
    let found: Vec<i64> =
        select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let unknown = found.iter().filter(|column| !columns.contains(column)).count();
    faults.add("unknown columns", unknown as u64);
    Ok(bounds)
}

/// Compares the sets of folders with the files, those of labels with the names of labels, and that
/// of known mail with the messages.
fn compare_sets(
    tx: &ReadTransaction<'_>,
    expected: &ExpectedStates,
    faults: &mut MailFaults,
) -> DatabaseResult<()> {
    let mut labels = BTreeSet::new();
    for label in
        tx.prepare_cached("SELECT id FROM mail_label")?.query_map([], |row| row.get::<_, i64>(0))?
    {
        labels.insert(label?);
    }
    let (mut wrong_members, mut nameless, mut unlabelled, mut unread) = (0, 0, 0, 0);
    let mut seen = BTreeSet::new();
    let mut select = tx.prepare_cached("SELECT id, rows FROM mail_set")?;
    let mut rows = select.query([])?;
    let count = |words: &mut dyn Iterator<Item = u64>| -> u64 {
        words.map(|word| u64::from(word.count_ones())).sum()
    };
    while let Some(row) = rows.next()? {
        let page: i64 = row.get(0)?;
        let stored = unpack_set(row.get_ref(1)?.as_blob()?)?;
        if page >= FIRST_LABEL_PAGE {
            let label = page & 0xff_ffff;
            let block = u32::try_from(page >> 24 & 0xff_ffff).unwrap_or(u32::MAX);
            let is_named = label == i64::from(ANY_TEXT_SET) || labels.contains(&label);
            nameless += u64::from(!is_named);
            let messages = expected.message_rows(block);
            unlabelled += count(&mut stored.iter().zip(messages).map(|(a, b)| a & !b));
        } else if page >> 24 > 0 {
            let files = expected.folders.get(&page).copied().unwrap_or([0; BLOCK_WORDS]);
            wrong_members += count(&mut stored.iter().zip(files).map(|(a, b)| a ^ b));
            seen.insert(page);
        } else {
            let messages = expected.message_rows(u32::try_from(page).unwrap_or(u32::MAX));
            unread += count(&mut stored.iter().zip(messages).map(|(a, b)| a & !b));
        }
    }
    for (_, files) in expected.folders.iter().filter(|(page, _)| !seen.contains(page)) {
        wrong_members += count(&mut files.iter().copied());
    }
    faults.add("messages in other folders than their files", wrong_members);
    faults.add("labels without a name", nameless);
    faults.add("labels of rows without a message", unlabelled);
    faults.add("marks of known mail in rows without a message", unread);
    Ok(())
}

/// Compares the newest and the oldest date of each block with the column.
fn compare_block_dates(
    tx: &ReadTransaction<'_>,
    bounds: &BTreeMap<u32, (u32, u32)>,
    faults: &mut MailFaults,
) -> DatabaseResult<()> {
    let mut stored = BTreeMap::new();
    let mut select = tx.prepare_cached("SELECT id, newest, oldest FROM mail_block")?;
    let mut rows = select.query([])?;
    while let Some(block) = rows.next()? {
        let number = |at| Ok::<_, DatabaseError>(u32::try_from(block.get::<_, i64>(at)?).ok());
        let dates = (number(1)?.unwrap_or(u32::MAX), number(2)?.unwrap_or(u32::MAX));
        stored.insert(number(0)?.unwrap_or(u32::MAX), dates);
    }
    let all: BTreeSet<u32> = stored.keys().chain(bounds.keys()).copied().collect();
    let of =
        |dates: &BTreeMap<u32, (u32, u32)>, block| dates.get(&block).copied().unwrap_or((0, 0));
    let wrong = all.into_iter().filter(|block| of(&stored, *block) != of(bounds, *block)).count();
    faults.add("blocks of messages with wrong dates", wrong as u64);
    Ok(())
}

/// Compares the threads of Message-IDs with the members that have or name them.
fn compare_thread_ids(tx: &ReadTransaction<'_>, faults: &mut MailFaults) -> DatabaseResult<()> {
    let mut select = tx.prepare_cached(
        "SELECT t.thread, t.ids, o.message_id FROM mail_thread t
         LEFT JOIN mail_other_text o ON o.item = t.item",
    )?;
    let mut rows = select.query([])?;
    let (mut wrong, mut wrong_texts) = (0, 0);
    while let Some(member) = rows.next()? {
        let thread: i64 = member.get(0)?;
        let (ids, rest) = member.get_ref(1)?.as_blob()?.as_chunks::<8>();
        let mut is_wrong = !rest.is_empty();
        for id in ids {
            let found = find_thread(tx, i64::from_le_bytes(*id))?;
            is_wrong |= found.map(i64::from) != Some(thread);
        }
        wrong += u64::from(is_wrong);
        let noted = member.get_ref(2)?.as_str_or_null()?.map(hash_message_id);
        wrong_texts +=
            u64::from(noted.is_some() && noted.map(i64::to_le_bytes).as_ref() != ids.first());
    }
    faults.add("messages whose Message-IDs lead to another thread", wrong);
    faults.add("further texts under another Message-ID", wrong_texts);
    Ok(())
}

/// Compares the converted texts with their hashes.
fn compare_conversions(tx: &ReadTransaction<'_>, faults: &mut MailFaults) -> DatabaseResult<()> {
    let mut select = tx.prepare_cached("SELECT text, text_hash FROM mail_conversion")?;
    let mut rows = select.query([])?;
    let mut wrong = 0;
    while let Some(row) = rows.next()? {
        let hash = xxh3_64(row.get_ref(0)?.as_blob()?).cast_signed();
        wrong += u64::from(row.get::<_, i64>(1)? != hash);
    }
    faults.add("converted texts with a wrong hash", wrong);
    Ok(())
}

/// Compares the words with the messages, and the dictionary with the words of text.
fn compare_words(
    tx: &ReadTransaction<'_>,
    expected: &ExpectedStates,
    faults: &mut MailFaults,
) -> DatabaseResult<()> {
    let pages = IndexTables::new(tx);
    let dictionary = read_dictionary(&pages)?;
    let end_row = find_meta_number(tx, "last_item")?.unwrap_or_default() + 1;
    let end_row = end_row.max(find_meta_number(tx, WORDS_END_KEY)?.unwrap_or_default());
    let mut without_words: BTreeMap<u32, BlockRows> =
        expected.blocks.keys().map(|block| (*block, expected.message_rows(*block))).collect();
    let (mut missing, mut future_rows, mut last_word) = (0, BTreeSet::new(), Vec::new());
    let word_faults = verify_words(&pages, WORD_INDEX, &mut |posting| {
        let Some((field, word)) = posting.term.split_first() else { return };
        if i64::from(posting.row) >= end_row {
            future_rows.insert(posting.row);
        }
        if *field == MessageTermField::Message as u8 {
            let (block, place) = block_of(posting.row);
            for rows in without_words.get_mut(&block).into_iter() {
                rows.iter_mut().skip(place / 64).take(1).for_each(|word| {
                    *word &= !(1 << (place % 64));
                });
            }
        }
        if *field == MessageTermField::Text as u8 && word != last_word.as_slice() {
            last_word.clear();
            last_word.extend_from_slice(word);
            missing += u64::from(dictionary.binary_search(&xxh3_64(word)).is_err());
        }
    })?;
    let without: u64 =
        without_words.values().flatten().map(|word| u64::from(word.count_ones())).sum();
    faults.add("messages without words", without);
    faults.add("rows with words that no message had", future_rows.len() as u64);
    faults.add("words that the dictionary does not have", missing);
    faults.add("words out of order", word_faults.disordered_entries);
    faults.add("blocks of words that are not found", word_faults.wrong_fences);
    let wrong_trigrams = verify_trigrams(&pages, WORD_DICTIONARY)?;
    faults.add("blocks of the dictionary that are not found by parts of words", wrong_trigrams);
    Ok(())
}

/// Returns the hashes of the words of the dictionary, sorted.
fn read_dictionary(pages: &IndexTables<'_>) -> Result<Vec<u64>, DatabaseError> {
    let mut hashes: Vec<u64> = Vec::new();
    let mut sorted = 0;
    TermDictionary::open(pages, WORD_DICTIONARY)?.for_each_word(&[WordPart::Any], &mut |word| {
        hashes.push(xxh3_64(word));
        if hashes.len() - sorted >= MAX_UNSORTED_WORDS.max(sorted) {
            hashes.sort_unstable();
            hashes.dedup();
            sorted = hashes.len();
        }
    })?;
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}
