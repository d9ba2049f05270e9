//! A former version of an item as its row has it, and the comparison with its checksums.
//!
//! Separate from `row_checksum` because a version also has bytes, and from `history`, which writes
//! and erases versions.

use crate::checksum::Checksum;
use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, DatabaseResult};
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::ITEM_HISTORY;
use crate::row_ids::{ItemHistoryRow, ItemRow};

/// A former version as its row has it.
pub(crate) struct StoredVersion<'a> {
    pub(crate) row: ItemHistoryRow,
    pub(crate) item: Option<ItemRow>,
    /// The bytes, of the row or of a blob; `None`: they were purged, or the blob is missing.
    pub(crate) bytes: Option<&'a [u8]>,
    /// `None`: the version was purged.
    pub(crate) checksum: Option<Checksum>,
}

impl StoredVersion<'_> {
    /// Returns whether the bytes match the checksum, or both were purged.
    pub(crate) fn is_sound(&self) -> bool {
        match (self.item, self.bytes, self.checksum) {
            (Some(item), Some(bytes), Some(checksum)) => {
                Checksum::from_item(item, bytes) == checksum
            }
            (_, None, None) => true,
            _ => false,
        }
    }

    /// Fails if the row does not match its checksum; the error names the version.
    pub(crate) fn verify_row(&self, tx: &ReadTransaction<'_>) -> DatabaseResult<()> {
        if ITEM_HISTORY.is_row_sound(tx, self.row.to_number())? {
            return Ok(());
        }
        Err(damaged_version_error(tx, self.row))
    }

    /// Fails if the bytes or the row do not match their checksums; the error names the version.
    pub(crate) fn verify(&self, tx: &ReadTransaction<'_>) -> DatabaseResult<()> {
        if self.is_sound() {
            return self.verify_row(tx);
        }
        Err(damaged_version_error(tx, self.row))
    }
}

#[cold]
fn damaged_version_error(tx: &ReadTransaction<'_>, version: ItemHistoryRow) -> DatabaseError {
    let sql = "SELECT f.handle, coalesce(c.name, ''), f.seq FROM item_history f
               LEFT JOIN collection c ON c.id = f.collection WHERE f.id = ?1";
    let found = tx.query_row(sql, [version], |row| {
        Ok(DamagedObject::FormerVersion {
            handle: Handle::from_bytes(row.get_ref(0)?.as_blob()?),
            collection: row.get(1)?,
            until: row.get(2)?,
        })
    });
    found.map_or_else(DatabaseError::from, DatabaseError::DamagedObject)
}
