//! Work of many transactions that is not finished, as `meta` records it.
//!
//! Such work records itself in its first transaction, and deletes the record in its last one, so
//! that an interruption can be reported and the work be finished by a command that knows nothing
//! else. Separate from the modules that do the work, because every command that opens a store
//! looks for records.

use crate::data_directory::DataDirectory;
use crate::derived_index::DerivedIndex;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::lock;
use crate::meta::{MetaTable, delete_meta, has_meta, write_meta};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use larder_extract::Extractor;
use std::fmt;

/// The key in `meta` of the items of a purge: their handles, eight bytes each.
const PURGE_KEY: &str = "pending_purge";

/// Work that was interrupted, or has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PendingWork {
    /// A purge: bytes of the items may remain in the files.
    Purge,
    /// A rebuild of indexes: queries read every item instead.
    Rebuild,
    /// A rebuild of an index that a change made necessary, and that has not begun: queries read
    /// every item instead.
    StaleIndex,
}

impl PendingWork {
    /// Returns the arguments of the command that finishes the work.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            PendingWork::Purge => "purge",
            PendingWork::Rebuild | PendingWork::StaleIndex => "check --rebuild",
        }
    }

    /// Reads the records of a store, unless a process is at such work now.
    pub(crate) fn list(
        meta: &MetaTable,
        extractor: &Extractor,
        directory: &DataDirectory,
    ) -> Vec<PendingWork> {
        let mut found = Vec::new();
        if meta.has_key(PURGE_KEY) {
            found.push(PendingWork::Purge);
        }
        if DerivedIndex::ALL.into_iter().any(|index| index.is_being_rebuilt(meta, extractor)) {
            found.push(PendingWork::Rebuild);
        } else if DerivedIndex::ALL.into_iter().any(|index| index.is_invalidated(meta)) {
            found.push(PendingWork::StaleIndex);
        }
        if !found.is_empty() && lock::is_work_running(directory) {
            found.clear();
        }
        found
    }
}

impl fmt::Display for PendingWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PendingWork::Purge => {
                "a purge was interrupted: data of the purged items may remain in the store"
            }
            PendingWork::Rebuild => {
                "a rebuild of the indexes was interrupted: queries are slower until it is complete"
            }
            PendingWork::StaleIndex => "an index is stale: queries are slower until it is rebuilt",
        })
    }
}

/// Returns the items of the purge that is not finished; `None`: there is none. If the record is
/// damaged, no items: those that were not deleted yet remain.
pub(crate) fn read_purge(meta: &MetaTable) -> Option<Vec<Handle>> {
    let handles = meta.bytes(PURGE_KEY).unwrap_or_default().chunks_exact(size_of::<Handle>());
    meta.has_key(PURGE_KEY).then(|| handles.map(Handle::from_bytes).collect())
}

/// Returns whether a purge is not finished.
pub(crate) fn has_purge(tx: &ReadTransaction<'_>) -> rusqlite::Result<bool> {
    has_meta(tx, PURGE_KEY)
}

/// Records the items of a purge; `None`: deletes the record.
pub(crate) fn write_purge(
    tx: &WriteTransaction<'_>,
    handles: Option<&[Handle]>,
) -> DatabaseResult<()> {
    match handles {
        Some(handles) => {
            let bytes: Vec<u8> = handles.iter().flat_map(|handle| handle.to_bytes()).collect();
            write_meta(tx, PURGE_KEY, bytes)?;
        }
        None => delete_meta(tx, PURGE_KEY)?,
    }
    Ok(())
}
