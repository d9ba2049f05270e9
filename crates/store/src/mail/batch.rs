//! The changes of mail in a batch: files of maildirs that came, went or were renamed.
//!
//! A message is made ready outside of the lock ([`MailBatchBuilder`]): parsed, its words encoded as
//! a segment, its row chosen from a range that the writer reserved. Under the lock only rows are
//! written. Separate from `apply::batch_writer`, whose items have their bytes in the store.

use super::BlockRows;
use super::columns::{MailColumn, block_of, present_rows, read_values};
use super::conversions::MessageConversion;
use crate::error::{DatabaseError, DatabaseResult};
use crate::index_tables::IndexTableWriter;
use crate::mail_schema::{WORD_DICTIONARY, WORD_INDEX, WORDS_END_KEY};
use crate::meta::{find_meta_number, read_meta_number, write_meta};
use crate::row_ids::CollectionRow;
use crate::write_transaction::WriteTransaction;
use larder_extract::message_flags::MessageFlags;
use larder_extract::{CommitExtractor, MessageDocument, MessageExtractor, MessageTermField};
use larder_format::commit::Commit;
use larder_format::maildir_name::{MaildirFlags, MaildirName};
use larder_format::message::MessagePart;
use larder_index::{
    DictionaryRebuild, EncodedSegment, FullWordMerge, MAX_RESTING_SEGMENTS, SegmentId,
    SegmentWords, WordBatch, WordBuffer, WordIndex,
};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The changes of one batch to the mail of one collection.
#[derive(Debug, Clone, Default)]
pub struct MailBatch {
    /// The name of the collection.
    pub collection: String,
    /// The changes, in order.
    pub changes: Vec<MailChange>,
    /// The words of the new messages.
    pub words: Option<EncodedSegment>,
    /// The row after the last one that is reserved for new messages; 0: none is.
    pub end_row: u32,
}

/// A change of one file or directory. Directories are named by their paths below the root of the
/// maildir: `INBOX/cur`.
#[derive(Debug, Clone)]
pub enum MailChange {
    /// A file came whose contents are new to the store, or may be a copy of a known message.
    AddFile {
        /// The file.
        file: MailFile,
        /// Its message.
        message: Box<PreparedMessage>,
    },
    /// A file was renamed or moved: its flags or its folder changed.
    RenameFile {
        /// The former directory and name.
        from: (Vec<u8>, Vec<u8>),
        /// The file as it is now.
        file: MailFile,
    },
    /// A file is as it was when it was read. A later change gives it another state than this one.
    SetFileState(MailFile),
    /// A file went away.
    RemoveFile {
        /// The directory.
        directory: Vec<u8>,
        /// The name.
        name: Vec<u8>,
    },
    /// A directory was found; with a state, it was listed completely.
    PutDirectory {
        /// The directory.
        path: Vec<u8>,
        /// The path of its folder.
        folder: Vec<u8>,
        /// Whether it is `new`.
        is_new: bool,
        /// The state that the source gives it, by which a later sync knows whether it changed.
        state: Vec<u8>,
    },
    /// A directory went away; its files must be removed before.
    RemoveDirectory(Vec<u8>),
    /// The contents of a file may have changed: it must be read again.
    ExpireFile {
        /// The directory.
        directory: Vec<u8>,
        /// The name.
        name: Vec<u8>,
    },
    /// From now on files are read with the rules of this fingerprint. If others were in use, all
    /// files must be read again.
    SetReadingRules(String),
    /// Records that no message of other rules is left, if that is so.
    FinishReadingRules,
    /// The rules have been run on the messages in the rows before this one; `None`: this is not
    /// known.
    SetRuleRow(Option<u32>),
}

impl MailChange {
    /// Returns the row that is reserved for the message of a file that came.
    #[must_use]
    pub fn added_row(&self) -> Option<u32> {
        match self {
            MailChange::AddFile { message, .. } => Some(message.row),
            _ => None,
        }
    }
}

/// Returns the key in `meta` of the first row that the rules have not been run on.
pub(crate) fn rule_row_key(collection: CollectionRow) -> String {
    format!("rule_row:{}", collection.to_number())
}

/// A file of a maildir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFile {
    /// The directory.
    pub directory: Vec<u8>,
    /// The name.
    pub name: Vec<u8>,
    /// The inode.
    pub inode: u64,
    /// The flags in the name, and of the directory.
    pub flags: MaildirFlags,
    /// The state of the file.
    pub state: MailFileState,
}

/// The state of a file, by which a changed one is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MailFileState {
    /// The number of bytes.
    pub size: u64,
    /// The time of the last change of the content, in nanoseconds since 1970; 0: unknown, or so
    /// recent that a later change may have the same time.
    pub modified: i64,
    /// The time of the last change of the state, such as of the name, in nanoseconds since 1970.
    pub changed: i64,
}

/// A message that is ready to be written.
#[derive(Debug, Clone)]
pub struct PreparedMessage {
    /// The row that is reserved for it.
    pub(crate) row: u32,
    /// The Message-ID, or a name made from the content.
    pub(crate) uid: String,
    pub(crate) has_message_id: bool,
    pub(crate) text_hash: u64,
    /// The place of the file among those of its message.
    pub(crate) rank: i64,
    pub(crate) date: i64,
    pub(crate) size: u32,
    /// The flags of the content.
    pub(crate) flags: MessageFlags,
    /// The packed values that lists show.
    pub(crate) summary: Vec<u8>,
    /// Hashes of the Message-IDs of its thread, its own first.
    pub(crate) thread_ids: Vec<i64>,
    /// The attachments that were converted.
    pub(crate) conversions: Vec<MessageConversion>,
}

/// Makes messages ready to be written, and collects their words.
#[derive(Debug)]
pub struct MailBatchBuilder {
    extractor: MessageExtractor,
    commits: CommitExtractor,
    words: WordBuffer,
}

impl MailBatchBuilder {
    /// Creates a builder for the user with these addresses.
    #[must_use]
    pub fn new(personal_addresses: &[String]) -> MailBatchBuilder {
        MailBatchBuilder {
            extractor: MessageExtractor::new(personal_addresses),
            commits: CommitExtractor::default(),
            words: WordBuffer::default(),
        }
    }

    /// Returns the text that identifies the rules by which messages are made ready.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        self.extractor.fingerprint_text()
    }

    /// Parses a file and adds its words under a reserved row. The rows of a batch ascend.
    /// `fallback_date` is the date of a message that names none.
    pub fn prepare(
        &mut self,
        row: u32,
        bytes: &[u8],
        fallback_date: i64,
    ) -> (PreparedMessage, MessageDocument) {
        self.prepare_converted(row, bytes, fallback_date, &mut |_| None)
    }

    /// Parses a file as [`MailBatchBuilder::prepare`] does. `convert` gets each attachment, and
    /// returns its text if a converter is set for it.
    pub fn prepare_converted(
        &mut self,
        row: u32,
        bytes: &[u8],
        fallback_date: i64,
        convert: &mut dyn FnMut(&MessagePart) -> Option<MessageConversion>,
    ) -> (PreparedMessage, MessageDocument) {
        let (document, conversions) = self.extract_converted(bytes, fallback_date, convert);
        let words = &mut self.words;
        self.extractor.for_each_term(&document, |field, word, position| {
            words.add(row, field, word, position);
        });
        let message = to_prepared_message(row, bytes, &document, conversions);
        (message, document)
    }

    /// Parses a file, and converts its attachments.
    pub(crate) fn extract_converted(
        &mut self,
        bytes: &[u8],
        fallback_date: i64,
        convert: &mut dyn FnMut(&MessagePart) -> Option<MessageConversion>,
    ) -> (MessageDocument, Vec<MessageConversion>) {
        let mut document = self.extractor.extract(bytes, fallback_date);
        let mut conversions = Vec::new();
        document.convert_attachments(&mut |part| {
            let conversion = convert(part)?;
            let text = Arc::clone(&conversion.converted.text);
            conversions.push(conversion);
            Some(text)
        });
        (document, conversions)
    }

    /// Passes each term of a message to `visit`, see [`MessageExtractor::for_each_term`].
    pub(crate) fn for_each_term(
        &mut self,
        document: &MessageDocument,
        visit: impl FnMut(u8, &[u8], Option<u32>),
    ) {
        self.extractor.for_each_term(document, visit);
    }

    /// Prepares a commit as [`MailBatchBuilder::prepare`] does a message.
    pub fn prepare_commit(&mut self, row: u32, commit: &Commit) -> PreparedMessage {
        let words = &mut self.words;
        self.commits.for_each_term(commit, |field, word, position| {
            words.add(row, field, word, position);
        });
        let summary = self.commits.summarize(commit);
        PreparedMessage {
            row,
            uid: commit.hash.clone(),
            has_message_id: true,
            text_hash: summary.text_hash,
            rank: summary.copy_rank(),
            date: summary.date,
            size: 0,
            flags: MessageFlags::default(),
            summary: summary.to_bytes(),
            thread_ids: Vec::new(),
            conversions: Vec::new(),
        }
    }

    /// Returns the text that identifies the rules by which commits are made ready.
    #[must_use]
    pub fn commit_fingerprint_text(&self) -> String {
        self.commits.fingerprint_text()
    }

    /// Returns the number of words of the messages since they were taken.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.words.posting_count()
    }

    /// Returns the words of the messages since they were taken.
    pub fn take_words(&mut self) -> WordBatch {
        self.words.take_batch()
    }

    /// Returns the words of the messages since they were taken, ready to be written.
    pub fn encode_words(&mut self) -> EncodedSegment {
        let mut words = new_segment_words();
        words.add(self.take_words());
        words.encode()
    }
}

/// Returns a message that was parsed, ready to be written.
pub(crate) fn to_prepared_message(
    row: u32,
    bytes: &[u8],
    document: &MessageDocument,
    conversions: Vec<MessageConversion>,
) -> PreparedMessage {
    let message_id = document.message_id.clone().filter(|id| !is_derived_name(id));
    let has_message_id = message_id.is_some();
    let uid = message_id.unwrap_or_else(|| derive_message_id(bytes));
    PreparedMessage {
        row,
        thread_ids: document.thread_ids(&uid),
        uid,
        has_message_id,
        text_hash: document.summary.text_hash,
        rank: document.summary.copy_rank(),
        date: document.summary.date,
        size: document.summary.size,
        flags: document.flags,
        summary: document.summary.to_bytes(),
        conversions,
    }
}

/// Creates a segment without words, to which those of messages are added.
#[must_use]
pub fn new_segment_words() -> SegmentWords {
    SegmentWords::new(Some(MessageTermField::Text as u8))
}

/// The segments that get the words of messages in parts, before the messages themselves.
#[derive(Debug, Default)]
pub struct BegunWordSegments {
    words: Option<SegmentId>,
    dictionary: Option<SegmentId>,
}

/// The end of the names that are made from contents.
const DERIVED_NAME_DOMAIN: &str = "@larder";

/// Returns the name of a message without a Message-ID, as mu makes it from the bytes.
fn derive_message_id(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut id = String::with_capacity(40);
    for byte in digest.iter().take(16) {
        // Writing to a string cannot fail.
        let _infallible = write!(id, "{byte:02x}");
    }
    id + DERIVED_NAME_DOMAIN
}

/// Returns whether a Message-ID has the form of the names that are made from contents. A message
/// with one could pass for another message, which would then be taken for a copy of it.
fn is_derived_name(message_id: &str) -> bool {
    message_id.strip_suffix(DERIVED_NAME_DOMAIN).is_some_and(|digits| {
        matches!(digits.len(), 16 | 32) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The origin of the name of a message whose Message-ID another text has, in `item.uid_origin`.
pub(crate) const OTHER_TEXT_ORIGIN: i64 = 2;

/// Returns the name of a message whose Message-ID another text has: from the text and the
/// Message-ID, so that it can be told which messages have a Message-ID.
pub(crate) fn name_other_text(text_hash: u64, message_id: &str) -> String {
    let digits = xxh3_64_with_seed(message_id.as_bytes(), text_hash);
    format!("{digits:016x}{DERIVED_NAME_DOMAIN}")
}

/// Returns whether a name has the form of those that [`name_other_text`] makes.
pub(crate) fn is_other_text_name(name: &str) -> bool {
    is_derived_name(name) && name.len() == 16 + DERIVED_NAME_DOMAIN.len()
}

/// Returns the key of a file in its directory: the time that its name begins with, and a hash of
/// the base name. New mail is together, so that few pages get its rows; a name without a time has
/// more bits of the hash.
pub(crate) fn file_key(name: &[u8]) -> i64 {
    let base = MaildirName::parse(name).base;
    let hash = xxh3_64(base);
    let digits = base.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let seconds = base.split_at_checked(digits).filter(|(_, rest)| rest.first() == Some(&b'.'));
    let seconds = seconds.and_then(|(digits, _)| str::from_utf8(digits).ok()?.parse::<u32>().ok());
    let seconds = seconds.filter(|seconds| *seconds >> 31 == 0);
    // SQLite stores numbers below 2^47 in six bytes.
    match seconds {
        Some(seconds) => i64::from(seconds) << 16 | i64::from(hash as u16),
        None => (hash >> 17).cast_signed(),
    }
}

/// Writes the words of a batch. A small batch merges a little, too.
pub(crate) fn write_words(
    tx: &WriteTransaction<'_>,
    words: Option<EncodedSegment>,
) -> DatabaseResult<()> {
    let Some(words) = words.filter(|words| !words.is_empty()) else { return Ok(()) };
    let pages = IndexTableWriter::new(tx);
    words.write(&pages, WORD_INDEX, None)?;
    words.write_dictionary(&pages, WORD_DICTIONARY, None)?;
    // A small batch merges at once; a large one leaves it to steps of their own.
    if words.bytes() <= MAX_MERGED_BATCH_BYTES {
        merge_words_step(tx, MAX_RESTING_SEGMENTS, MIN_MERGED_BYTES)?;
    }
    Ok(())
}

/// Writes a part of the words of messages in the rows before `end_row`, which are written later. No
/// merge drops them before, and the rows are not given again.
pub(crate) fn write_words_ahead(
    tx: &WriteTransaction<'_>,
    part: &EncodedSegment,
    end_row: u32,
    begun: &mut BegunWordSegments,
) -> DatabaseResult<()> {
    let pages = IndexTableWriter::new(tx);
    begun.words = part.write(&pages, WORD_INDEX, begun.words)?;
    begun.dictionary = part.write_dictionary(&pages, WORD_DICTIONARY, begun.dictionary)?;
    if find_meta_number(tx, WORDS_END_KEY)?.is_none_or(|end| end < end_row.into()) {
        write_meta(tx, WORDS_END_KEY, i64::from(end_row))?;
    }
    Ok(())
}

/// Merges about `budget_bytes` of the words, towards at most `max_segments`, and of their
/// dictionary, which may have more. Returns whether there is more to merge.
pub(crate) fn merge_words_step(
    tx: &WriteTransaction<'_>,
    max_segments: usize,
    budget_bytes: i64,
) -> DatabaseResult<bool> {
    let pages = IndexTableWriter::new(tx);
    let mut rows = MessageRows::new(tx)?;
    let mut is_gone = |row| rows.is_gone(row);
    let has_more_words = larder_index::merge_words_step(
        &pages,
        WORD_INDEX,
        max_segments,
        budget_bytes,
        &mut is_gone,
    )?;
    rows.finish()?;
    let has_more_dictionary = larder_index::merge_dictionary_step(
        &pages,
        WORD_DICTIONARY,
        DICTIONARY_SEGMENT_RATIO * max_segments,
        budget_bytes,
    )?;
    Ok(has_more_words || has_more_dictionary)
}

/// Adds trigrams to the dictionary, if nothing is left to merge. A larger budget is more of them.
/// Returns whether there was anything to do.
pub(crate) fn index_word_parts_step(
    tx: &WriteTransaction<'_>,
    budget_bytes: i64,
) -> DatabaseResult<bool> {
    larder_index::index_trigrams_step(&IndexTableWriter::new(tx), WORD_DICTIONARY, budget_bytes)
}

/// The erasure of the words of removed messages, in steps.
pub(crate) struct WordErasure {
    merge: FullWordMerge,
    /// The dictionary is made anew when the words are merged.
    dictionary: DictionaryRebuild,
}

impl WordErasure {
    pub(crate) fn new() -> WordErasure {
        WordErasure {
            merge: FullWordMerge::default(),
            dictionary: DictionaryRebuild::new(MessageTermField::Text as u8),
        }
    }

    /// Moves about `budget_bytes` towards words of current messages only, and then towards a
    /// dictionary of them, with its trigrams. Returns whether there is more to do.
    pub(crate) fn step(
        &mut self,
        tx: &WriteTransaction<'_>,
        budget_bytes: i64,
    ) -> DatabaseResult<bool> {
        let pages = IndexTableWriter::new(tx);
        let mut rows = MessageRows::new(tx)?;
        // No synchronisation runs: words without a message were left by one that was killed.
        let words_end = find_meta_number(tx, WORDS_END_KEY)?.unwrap_or_default();
        rows.last_row = rows.last_row.max(words_end - 1);
        let is_gone = &mut |row| rows.is_gone(row);
        if self.merge.step(&pages, WORD_INDEX, budget_bytes, is_gone)? {
            rows.finish()?;
            return Ok(true);
        }
        rows.finish()?;
        let word_bytes = usize::try_from(budget_bytes).unwrap_or_default();
        Ok(self.dictionary.step(&pages, WORD_INDEX, WORD_DICTIONARY, word_bytes)?
            || index_word_parts_step(tx, budget_bytes)?)
    }
}

/// Tells rows of messages from those of removed ones, and of files that are copies.
struct MessageRows<'t> {
    tx: &'t WriteTransaction<'t>,
    /// The last row that was written. Rows after it may have words already, see
    /// [`write_words_ahead`].
    last_row: i64,
    /// The rows with a date, by block; `None`: not read yet.
    blocks: Vec<Option<Box<BlockRows>>>,
    /// The rows whose term of all messages was moved by a merge that is under way, as bits. A merge
    /// moves that term first, so it tells a live view that a row has all of its words: a message
    /// that was removed during a merge keeps them.
    marked: Vec<u64>,
    error: Option<DatabaseError>,
}

impl<'t> MessageRows<'t> {
    fn new(tx: &'t WriteTransaction<'t>) -> DatabaseResult<MessageRows<'t>> {
        let last_row = read_meta_number(tx, "last_item")?;
        let pages = IndexTableWriter::new(tx);
        let mut marked = Vec::new();
        let targets = WordIndex::open_merge_targets(&pages, WORD_INDEX)?;
        targets.rows_with_term(&[MessageTermField::Message as u8], &mut marked)?;
        Ok(MessageRows { tx, last_row, blocks: Vec::new(), marked, error: None })
    }

    /// Returns whether a merge drops a row: it has no message.
    fn is_gone(&mut self, row: u32) -> bool {
        let (block, place) = block_of(row);
        let Some(rows) = self.message_rows(block) else { return false };
        let has_message = rows.get(place / 64).is_none_or(|word| word >> (place % 64) & 1 == 1);
        let is_marked = |row: u32| {
            let word = self.marked.get(row as usize / 64);
            word.is_some_and(|word| word >> (row % 64) & 1 == 1)
        };
        !has_message && i64::from(row) <= self.last_row && !is_marked(row)
    }

    /// Returns the rows of a block that have a message; `None` if they cannot be read.
    fn message_rows(&mut self, block: u32) -> Option<&BlockRows> {
        let place = block as usize;
        if self.blocks.get(place).is_none_or(Option::is_none) {
            let rows = read_message_rows(self.tx, block);
            let rows = rows.map_err(|error| self.error.get_or_insert(error)).ok()?;
            self.blocks.resize(self.blocks.len().max(place + 1), None);
            *self.blocks.get_mut(place)? = Some(Box::new(rows));
        }
        self.blocks.get(place)?.as_deref()
    }

    /// Fails if a block could not be read: then its rows were taken for messages.
    fn finish(self) -> DatabaseResult<()> {
        self.error.map_or(Ok(()), Err)
    }
}

/// Returns the rows of a block that have a message.
fn read_message_rows(tx: &WriteTransaction<'_>, block: u32) -> DatabaseResult<BlockRows> {
    let mut dates = Vec::new();
    read_values(tx, MailColumn::Date, block, &mut dates)?;
    Ok(present_rows(&dates))
}

/// A batch with more bytes of words does not merge.
const MAX_MERGED_BATCH_BYTES: usize = 256 << 10;
/// The dictionary may have this many times as many segments as the words: it is only read for parts
/// of words, and a message that comes by itself writes most of its words once less.
const DICTIONARY_SEGMENT_RATIO: usize = 2;
/// A small batch merges this many bytes.
const MIN_MERGED_BYTES: i64 = 64 << 10;
