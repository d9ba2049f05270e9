//! The texts that converters made of attachments.
//!
//! A text is known by the content of the attachment and the command of the converter, so that a
//! message which is read again is not converted again. A text is kept while a message uses it. Each
//! use has the hash of the text that is in the index of words: if the text of the same content is
//! another one now, as a converter that failed was repaired, the message is written again.
//!
//! Separate from `batch`: the texts are the only content of messages that the store keeps.

use crate::error::DatabaseResult;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The name of a text: a hash of the content of an attachment and of the command of its converter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConversionKey([u8; 32]);

impl ConversionKey {
    /// Returns the key of the content of an attachment.
    #[must_use]
    pub fn new(command: &[String], content: &[u8]) -> ConversionKey {
        ConversionKey::with_prefix(b"", command, content)
    }

    /// Returns the key of an attachment that has no text because of the others of its message. It
    /// says nothing about the content.
    #[must_use]
    pub fn of_omission(command: &[String], content: &[u8]) -> ConversionKey {
        ConversionKey::with_prefix(b"omitted", command, content)
    }

    fn with_prefix(prefix: &[u8], command: &[String], content: &[u8]) -> ConversionKey {
        let mut hash = Sha256::new_with_prefix(prefix);
        for argument in command {
            hash.update((argument.len() as u64).to_le_bytes());
            hash.update(argument.as_bytes());
        }
        hash.update(u64::MAX.to_le_bytes());
        hash.update(content);
        ConversionKey(hash.finalize().into())
    }
}

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedText {
    /// The text; empty or incomplete after a failure.
    pub text: Arc<str>,
    /// The reason that the text is not complete.
    pub failure: Option<String>,
}

impl ConvertedText {
    fn text_hash(&self) -> i64 {
        xxh3_64(self.text.as_bytes()).cast_signed()
    }
}

/// A converted attachment of a message.
#[derive(Debug, Clone)]
pub struct MessageConversion {
    /// The key.
    pub key: ConversionKey,
    /// The result.
    pub converted: ConvertedText,
    /// Whether the store does not have the result yet.
    pub is_new: bool,
}

/// Returns a known result.
pub(crate) fn find_conversion(
    tx: &ReadTransaction<'_>,
    key: &ConversionKey,
) -> DatabaseResult<Option<ConvertedText>> {
    let mut select =
        tx.prepare_cached("SELECT text, failure FROM mail_conversion WHERE key = ?1")?;
    Ok(select.query_row([key.0], read_converted_text).optional()?)
}

/// Returns a known result that the message in a row has.
pub(crate) fn find_used_conversion(
    tx: &ReadTransaction<'_>,
    row: u32,
    key: &ConversionKey,
) -> DatabaseResult<Option<ConvertedText>> {
    let mut select = tx.prepare_cached(
        "SELECT c.text, c.failure FROM mail_conversion c
         JOIN mail_conversion_use u ON u.item = ?1 AND u.conversion = c.id WHERE c.key = ?2",
    )?;
    Ok(select.query_row((row, key.0), read_converted_text).optional()?)
}

fn read_converted_text(row: &rusqlite::Row<'_>) -> rusqlite::Result<ConvertedText> {
    let text = String::from_utf8_lossy(row.get_ref(0)?.as_blob()?).as_ref().into();
    Ok(ConvertedText { text, failure: row.get(1)? })
}

/// Returns the files of a collection, as directory and name, whose attachments have no complete
/// text, or another one than the index of words has.
pub(crate) fn unconverted_files(
    tx: &ReadTransaction<'_>,
    collection: &str,
) -> DatabaseResult<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut select = tx.prepare_cached(
        "SELECT d.path, f.name FROM mail_file f JOIN mail_directory d ON d.id = f.directory
         WHERE d.collection = (SELECT id FROM collection WHERE name = ?1 AND removed = 0)
           AND f.item IN (SELECT u.item FROM mail_conversion_use u
                          JOIN mail_conversion c ON c.id = u.conversion
                          WHERE c.failure IS NOT NULL OR c.text_hash <> u.text_hash)",
    )?;
    let rows = select.query_map([collection], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Writes the converted texts of a batch.
#[derive(Default)]
pub(crate) struct ConversionWriter {
    /// Whether any message has a converted text; `None`: not known yet.
    has_uses: Option<bool>,
    /// The texts that a message does not use any more.
    released: BTreeSet<i64>,
}

impl ConversionWriter {
    /// Returns whether any message has a converted text. Batches of a store without any stop here.
    fn has_uses(&mut self, tx: &ReadTransaction<'_>) -> DatabaseResult<bool> {
        if let Some(known) = self.has_uses {
            return Ok(known);
        }
        let sql = "SELECT EXISTS(SELECT 1 FROM mail_conversion_use)";
        let known = tx.query_row(sql, [], |row| row.get(0))?;
        self.has_uses = Some(known);
        Ok(known)
    }

    /// Returns whether the index of words has these texts of a message.
    pub(crate) fn has_texts(
        &mut self,
        tx: &ReadTransaction<'_>,
        item: ItemRow,
        conversions: &[MessageConversion],
    ) -> DatabaseResult<bool> {
        if !self.has_uses(tx)? {
            return Ok(conversions.is_empty());
        }
        let mut select = tx.prepare_cached(
            "SELECT c.key, u.text_hash FROM mail_conversion_use u
             JOIN mail_conversion c ON c.id = u.conversion WHERE u.item = ?1",
        )?;
        let known: BTreeSet<([u8; 32], i64)> = select
            .query_map([item], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let wanted = conversions.iter().map(|one| (one.key.0, one.converted.text_hash()));
        Ok(known == wanted.collect())
    }

    /// Records the texts of a new message.
    pub(crate) fn add_uses(
        &mut self,
        tx: &WriteTransaction<'_>,
        item: ItemRow,
        conversions: &[MessageConversion],
    ) -> DatabaseResult<()> {
        for MessageConversion { key, converted, is_new } in conversions {
            let known: Option<i64> = tx
                .prepare_cached("SELECT id FROM mail_conversion WHERE key = ?1")?
                .query_row([key.0], |row| row.get(0))
                .optional()?;
            let conversion = match known.filter(|_| !is_new) {
                Some(conversion) => conversion,
                None => tx
                    .prepare_cached(
                        "INSERT INTO mail_conversion(key, text, failure, text_hash)
                         VALUES(?1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE SET
                           text = excluded.text, failure = excluded.failure,
                           text_hash = excluded.text_hash RETURNING id",
                    )?
                    .query_row(
                        (
                            key.0,
                            converted.text.as_bytes(),
                            &converted.failure,
                            converted.text_hash(),
                        ),
                        |row| row.get(0),
                    )?,
            };
            tx.prepare_cached("INSERT OR REPLACE INTO mail_conversion_use VALUES(?1, ?2, ?3)")?
                .execute((item, conversion, converted.text_hash()))?;
            self.has_uses = Some(true);
        }
        Ok(())
    }

    /// Deletes the uses of a message that goes.
    pub(crate) fn release_uses(
        &mut self,
        tx: &WriteTransaction<'_>,
        item: ItemRow,
    ) -> DatabaseResult<()> {
        if !self.has_uses(tx)? {
            return Ok(());
        }
        let released: Vec<i64> = tx
            .prepare_cached("DELETE FROM mail_conversion_use WHERE item = ?1 RETURNING conversion")?
            .query_map([item], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.released.extend(released);
        Ok(())
    }

    /// Deletes the texts that no message uses any more.
    pub(crate) fn finish(self, tx: &WriteTransaction<'_>) -> DatabaseResult<()> {
        for conversion in self.released {
            tx.prepare_cached(
                "DELETE FROM mail_conversion WHERE id = ?1
                   AND NOT EXISTS(SELECT 1 FROM mail_conversion_use WHERE conversion = ?1)",
            )?
            .execute([conversion])?;
        }
        Ok(())
    }
}
