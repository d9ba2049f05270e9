//! Comparing the files of messages with their entries in the index.
//!
//! The words of a message are in all segments of the index, between those of others. So the
//! postings of each row are added up to a digest, in one reading of the index, and a file is read
//! for itself: the memory is eight bytes for each row. Separate from `mail_check`, which reads no
//! files. The caller reads them, outside of transactions.

use crate::error::{DatabaseResult, Result};
use crate::index_tables::IndexTables;
use crate::mail::batch::{
    MailBatchBuilder, MailFileState, OTHER_TEXT_ORIGIN, name_other_text, to_prepared_message,
};
use crate::mail::columns::{MailColumn, block_of, read_values, row_number};
use crate::mail::conversions::MessageConversion;
use crate::mail_reader::MailReader;
use crate::mail_schema::{OUTDATED_END_KEY, WORD_INDEX};
use crate::meta::find_meta_number;
use larder_extract::MessageDocument;
use larder_extract::message_flags::MessageFlags;
use larder_extract::message_summary::MessageSummary;
use larder_format::message::{MessagePart, MessageProblem};
use larder_index::verify_words;
use rusqlite::OptionalExtension as _;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The words of each message in the index, as digests.
#[derive(Debug, Clone, Default)]
pub struct WordDigests {
    digests: Vec<u64>,
}

/// A file, with what the index has of it and of its message.
#[derive(Debug, Clone)]
pub struct IndexedFile {
    /// The directory, below the root of its source.
    pub directory: Vec<u8>,
    /// The name.
    pub name: Vec<u8>,
    /// The state of the file when it was read.
    pub state: MailFileState,
    /// The row of its message.
    pub row: u32,
    /// The key of its row, after which the next files are found.
    key: (i64, i64, i64),
    rank: i64,
    uid: String,
    uid_origin: i64,
    summary: Vec<u8>,
    flags: MessageFlags,
    thread_ids: Vec<u8>,
    /// Whether the text of an attachment was made again since its words were indexed.
    has_other_conversions: bool,
    /// Whether the file is to be read again.
    is_expired: bool,
}

/// The result of the comparison of a file with the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileComparison {
    /// The index has what is in the file.
    Same,
    /// The file is to be read again by the next synchronisation.
    Expired,
    /// The file has another content than the one that was read.
    OtherContent,
    /// The index has something else than what is in the file: the names of what differs.
    Different(Vec<&'static str>),
}

/// A file that was compared with the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedFile {
    /// The result.
    pub comparison: FileComparison,
    /// The damage of the message, without guesses of character sets.
    pub damage: Vec<MessageProblem>,
}

/// The files that are read from the index at once.
const FILES_PER_PAGE: i64 = 500;

impl MailReader<'_> {
    /// Reads the whole index of words.
    ///
    /// # Errors
    /// The store cannot be read, or a block is malformed.
    pub fn digest_words(&self) -> Result<WordDigests> {
        let end_row = self.end_row()? as usize;
        self.run(|tx| {
            let mut digests = vec![0_u64; end_row];
            verify_words(&IndexTables::new(tx), WORD_INDEX, &mut |posting| {
                let Some((field, word)) = posting.term.split_first() else { return };
                // Words of later rows are of a synchronisation that was interrupted.
                let Some(digest) = digests.get_mut(posting.row as usize) else { return };
                let term = hash_term(*field, word);
                match posting.positions {
                    [] => *digest = digest.wrapping_add(hash_posting(term, None)),
                    positions => positions.iter().for_each(|position| {
                        *digest = digest.wrapping_add(hash_posting(term, Some(*position)));
                    }),
                }
            })?;
            Ok(WordDigests { digests })
        })
    }

    /// Returns the files of a collection after one, some at a time; none: these were all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn indexed_files(
        &self,
        collection: &str,
        after: Option<&IndexedFile>,
    ) -> Result<Vec<IndexedFile>> {
        self.run(|tx| {
            let outdated_end = find_meta_number(tx, OUTDATED_END_KEY)?.unwrap_or_default();
            let mut select = tx.prepare_cached(
                "SELECT d.path, f.name, f.size, f.modified, f.changed, f.directory, f.rank, f.item,
                        i.uid, i.uid_origin, i.stored_fields, f.base, f.place,
                        EXISTS(SELECT 1 FROM mail_conversion_use u
                               JOIN mail_conversion c ON c.id = u.conversion
                               WHERE u.item = f.item AND c.text_hash <> u.text_hash)
                 FROM mail_file f JOIN mail_directory d ON d.id = f.directory
                 JOIN item i ON i.id = f.item
                 WHERE d.collection = (SELECT id FROM collection WHERE name = ?1 AND removed = 0)
                   AND (f.directory, f.base, f.place) > (?2, ?3, ?4)
                 ORDER BY f.directory, f.base, f.place LIMIT ?5",
            )?;
            let (directory, base, place) = after.map_or((0, 0, 0), |file| file.key);
            let mut rows = select.query((collection, directory, base, place, FILES_PER_PAGE))?;
            let mut files = Vec::new();
            while let Some(file) = rows.next()? {
                let rank: Option<i64> = file.get(6)?;
                let row = row_number(file.get(7)?)?;
                files.push(IndexedFile {
                    directory: file.get(0)?,
                    name: file.get(1)?,
                    state: MailFileState {
                        size: file.get::<_, i64>(2)?.cast_unsigned(),
                        modified: file.get(3)?,
                        changed: file.get(4)?,
                    },
                    key: (file.get(5)?, file.get(11)?, file.get(12)?),
                    rank: rank.unwrap_or_default(),
                    row,
                    uid: file.get(8)?,
                    uid_origin: file.get(9)?,
                    summary: file.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default(),
                    flags: MessageFlags::default(),
                    thread_ids: Vec::new(),
                    has_other_conversions: file.get(13)?,
                    is_expired: rank.is_none() || i64::from(row) < outdated_end,
                });
            }
            for file in &mut files {
                let (block, place) = block_of(file.row);
                let value = |column| -> DatabaseResult<u32> {
                    let mut values = Vec::new();
                    read_values(tx, column, block, &mut values)?;
                    Ok(values.get(place).copied().unwrap_or_default())
                };
                let flags = u16::try_from(value(MailColumn::Flags)?).unwrap_or_default();
                file.flags = MessageFlags::from_bits(flags);
                let sql = "SELECT ids FROM mail_thread WHERE thread = ?1 AND item = ?2";
                let ids = tx
                    .prepare_cached(sql)?
                    .query_row((value(MailColumn::Thread)?, file.row), |row| row.get(0))
                    .optional()?;
                file.thread_ids = ids.unwrap_or_default();
            }
            Ok(files)
        })
    }
}

impl MailBatchBuilder {
    /// Compares the content of a file with what the index has of it. `convert` gets each
    /// attachment, and returns the text that the index has of it.
    pub fn compare(
        &mut self,
        indexed: &IndexedFile,
        words: &WordDigests,
        bytes: &[u8],
        convert: &mut dyn FnMut(&MessagePart) -> Option<MessageConversion>,
    ) -> ComparedFile {
        if indexed.is_expired {
            return ComparedFile { comparison: FileComparison::Expired, damage: Vec::new() };
        }
        let summary = MessageSummary::from_bytes(&indexed.summary);
        // A message without a date has that of its file, which may have changed since.
        let has_values =
            summary.as_ref().is_some_and(|summary| summary.copy_rank() == indexed.rank);
        let date = match &summary {
            Some(summary) if has_values => summary.date,
            _ => MessageSummary::date_of_rank(indexed.rank),
        };
        let (document, conversions) = self.extract_converted(bytes, date, convert);
        let problems = document.problems().iter().filter(|problem| !problem.is_guess());
        let damage = problems.cloned().collect();
        if document.summary.copy_rank() != indexed.rank {
            return ComparedFile { comparison: FileComparison::OtherContent, damage };
        }
        let mut different = Vec::new();
        if !has_values {
            // The values are those of another file of the message.
            let text_hash = summary.map(|summary| summary.text_hash);
            if text_hash.is_some_and(|hash| hash != document.summary.text_hash) {
                different.push("text");
            }
        } else {
            let digest = self.digest_document(&document);
            let message = to_prepared_message(indexed.row, bytes, &document, conversions);
            let name = match indexed.uid_origin {
                OTHER_TEXT_ORIGIN => name_other_text(message.text_hash, &message.uid),
                _ => message.uid.clone(),
            };
            let ids: Vec<u8> = message.thread_ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let has_words = indexed.has_other_conversions
                || words.digests.get(indexed.row as usize) == Some(&digest);
            let flags = indexed.flags.without_file_flags();
            different.extend(
                [
                    (name != indexed.uid).then_some("name"),
                    (message.summary != indexed.summary).then_some("header values"),
                    (ids != indexed.thread_ids).then_some("references"),
                    (message.flags.without_file_flags() != flags).then_some("flags"),
                    (!has_words).then_some("words"),
                ]
                .into_iter()
                .flatten(),
            );
        }
        let comparison = match different.is_empty() {
            true => FileComparison::Same,
            false => FileComparison::Different(different),
        };
        ComparedFile { comparison, damage }
    }

    /// Returns the digest of the words of a message, as [`MailReader::digest_words`] makes it.
    fn digest_document(&mut self, document: &MessageDocument) -> u64 {
        let mut postings = Vec::new();
        self.for_each_term(document, |field, word, position| {
            postings.push(hash_posting(hash_term(field, word), position));
        });
        // A word may come again at a position; the index has it once.
        postings.sort_unstable();
        postings.dedup();
        postings.into_iter().fold(0, u64::wrapping_add)
    }
}

fn hash_term(field: u8, word: &[u8]) -> u64 {
    xxh3_64_with_seed(word, field.into())
}

/// Returns the hash of a term at a position, or of one without positions.
fn hash_posting(term: u64, position: Option<u32>) -> u64 {
    let position = position.map_or(0, |position| u64::from(position) + 1);
    let mut hash = term.wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        hash = (hash ^ hash >> 29).wrapping_mul(factor);
    }
    hash ^ hash >> 32
}
