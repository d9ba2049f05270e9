//! Source bytes in the database: the bytes of most items have their own row, large ones are in a
//! shared row of `blob`.

use crate::checksum::{Checksum, damaged_item_error, verify_item};
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use sha2::{Digest as _, Sha256};

/// Source bytes larger than this are in `blob`, so that scans of `source_bytes` stay fast.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// The place of bytes: in the row itself, or in `blob` under this hash. Exactly one is set, unless
/// they were purged.
pub(crate) struct StoredBytes {
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) blob_hash: Option<Vec<u8>>,
}

/// Stores bytes; large ones in a row of `blob`, with one reference more.
pub(crate) fn store_bytes(
    tx: &WriteTransaction<'_>,
    bytes: Vec<u8>,
) -> rusqlite::Result<StoredBytes> {
    if bytes.len() <= MAX_INLINE_BYTES {
        return Ok(StoredBytes { bytes: Some(bytes), blob_hash: None });
    }
    let hash = Sha256::digest(&bytes).to_vec();
    // If the stored bytes are damaged, these replace them: they have the hash.
    let known = tx
        .prepare_cached(
            "UPDATE blob SET ref_count = ref_count + 1, bytes = iif(bytes = ?2, bytes, ?2)
             WHERE hash = ?1",
        )?
        .execute((&hash, &bytes))?;
    if known == 0 {
        tx.prepare_cached("INSERT INTO blob VALUES(?1, 1, ?2)")?.execute((&hash, &bytes))?;
    }
    Ok(StoredBytes { bytes: None, blob_hash: Some(hash) })
}

/// Releases a reference to a blob, and deletes a blob without references.
pub(crate) fn release_blob(tx: &WriteTransaction<'_>, blob: Option<&[u8]>) -> rusqlite::Result<()> {
    if let Some(hash) = blob {
        tx.prepare_cached("UPDATE blob SET ref_count = ref_count - 1 WHERE hash = ?1")?
            .execute([hash])?;
        tx.prepare_cached("DELETE FROM blob WHERE hash = ?1 AND ref_count <= 0")?
            .execute([hash])?;
    }
    Ok(())
}

/// The bytes of an item and its checksum, as they are stored.
pub(crate) struct UnverifiedBytes {
    bytes: Option<Vec<u8>>,
    checksum: Checksum,
}

impl UnverifiedBytes {
    /// Returns the bytes, empty if they are missing, and whether they match the checksum.
    pub(crate) fn into_parts(self, item: ItemRow) -> (Vec<u8>, bool) {
        let is_sound = self
            .bytes
            .as_ref()
            .is_some_and(|bytes| Checksum::from_item(item, bytes) == self.checksum);
        (self.bytes.unwrap_or_default(), is_sound)
    }
}

/// Reads the bytes of an item without verifying them; `None`: there is no such item.
pub(crate) fn read_unverified_bytes(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> rusqlite::Result<Option<UnverifiedBytes>> {
    tx.prepare_cached(
        "SELECT coalesce(s.bytes, b.bytes), s.checksum
         FROM source_bytes s LEFT JOIN blob b ON b.hash = s.blob_hash WHERE s.item = ?1",
    )?
    .query_row([item], |row| Ok(UnverifiedBytes { bytes: row.get(0)?, checksum: row.get(1)? }))
    .optional()
}

/// Reads the bytes of an item; `None`: there is no such item.
///
/// # Errors
/// The item by name, if the bytes do not match their checksum.
pub(crate) fn read_source_bytes(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> DatabaseResult<Option<Vec<u8>>> {
    let Some(UnverifiedBytes { bytes, checksum }) = read_unverified_bytes(tx, item)? else {
        return Ok(None);
    };
    let bytes = bytes.ok_or_else(|| damaged_item_error(tx, item))?;
    verify_item(tx, item, &bytes, checksum)?;
    Ok(Some(bytes))
}

/// Reads the bytes of an item that exists: if there are none, the store is damaged.
pub(crate) fn require_source_bytes(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> DatabaseResult<Vec<u8>> {
    read_source_bytes(tx, item)?.ok_or_else(|| DatabaseError::missing_source_bytes(item))
}
