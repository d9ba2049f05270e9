//! Overrides of an occurrence that has a stored override with another RECURRENCE-ID.
//!
//! Items are stored by the text of RECURRENCE-ID. It names an instance (RFC 5545, 3.8.4.4), and one
//! program writes it in UTC, another one by the clock of a zone. Separate from the writer because
//! the stored series is needed to compare them.

use super::ImportWriter;
use crate::error::Error;
use larder_edit::event::{OverrideIndex, UidGroup};
use larder_store::{BatchChange, CollectionType, ItemMeta, ParsedItem, Precondition, Reader};
use std::sync::Arc;

/// The stored overrides of the UID that was looked up last, as most files have the overrides of a
/// UID one after the other.
#[derive(Default)]
pub(super) struct OverrideLookup {
    reader: Option<Reader>,
    collection: Option<Arc<str>>,
    uid: String,
    /// The items of the UID; the overrides of this import may be missing.
    metas: Vec<ItemMeta>,
    /// The occurrences of the overrides, if a RECURRENCE-ID was not among them.
    index: Option<OverrideIndex>,
}

/// A stored override of the same occurrence.
pub(super) struct OtherOverride {
    pub(super) bytes: Vec<u8>,
    /// The change that removes it.
    pub(super) removal: BatchChange,
}

impl ImportWriter<'_> {
    /// Returns the override with another RECURRENCE-ID that an item replaces: one of the same
    /// occurrence that was stored before this import. Items of one import do not replace each
    /// other.
    pub(super) fn find_other_override(
        &mut self,
        collection: &Arc<str>,
        uid: &str,
        item: &ParsedItem,
    ) -> Result<Option<OtherOverride>, Error> {
        if item.recurrence_id().is_empty() || self.cancelled_uids.is_first_import() {
            return Ok(None);
        }
        let mut lookup = std::mem::take(&mut self.override_lookup);
        let found = self.look_up_override(&mut lookup, collection, uid, item);
        self.override_lookup = lookup;
        let Some((meta, bytes)) = found? else { return Ok(None) };
        let is_in_batch = self.changes.iter().any(|change| {
            matches!(change, BatchChange::Put(put)
                if put.uid == uid && put.parsed.recurrence_id() == meta.recurrence_id)
        });
        if is_in_batch || self.is_met(&meta) {
            return Ok(None);
        }
        let removal = BatchChange::Remove(meta.handle, Precondition::UnchangedSince(meta.seq));
        Ok(Some(OtherOverride { bytes, removal }))
    }

    fn look_up_override(
        &self,
        lookup: &mut OverrideLookup,
        collection: &Arc<str>,
        uid: &str,
        item: &ParsedItem,
    ) -> Result<Option<(ItemMeta, Vec<u8>)>, Error> {
        let reader = match lookup.reader.take() {
            Some(reader) => reader,
            None => self.store.open_reader()?,
        };
        let reader = lookup.reader.insert(reader);
        if lookup.collection.as_ref() != Some(collection) || lookup.uid != uid {
            lookup.metas = match self.store.collection_type(collection)? {
                Some(stored) if CollectionType::has_schedules(stored) => {
                    reader.items().find_series(collection, uid)?
                }
                _ => Vec::new(),
            };
            (lookup.collection, lookup.uid) = (Some(Arc::clone(collection)), uid.to_string());
            lookup.index = None;
        }
        let is_stored = lookup.metas.iter().any(|meta| meta.recurrence_id == item.recurrence_id());
        let other = lookup.metas.iter().find(|meta| !meta.recurrence_id.is_empty());
        let Some(other) = other.filter(|_| !is_stored) else { return Ok(None) };
        let extractor =
            self.store.extractor_for_collection(collection, other.kind.collection_type())?;
        if lookup.index.is_none() {
            lookup.index = match UidGroup::read(reader, &extractor, other) {
                Ok(group) => Some(group.into_override_index()),
                Err(larder_edit::event::Error::Store(error)) => return Err(error.into()),
                Err(_) => None,
            };
        }
        let handle = lookup.index.as_ref().and_then(|index| index.find(&extractor, item));
        let Some(meta) = lookup.metas.iter().find(|meta| Some(meta.handle) == handle) else {
            return Ok(None);
        };
        let bytes = reader.items().source_bytes(meta.row)?;
        Ok(bytes.map(|bytes| (meta.clone(), bytes)))
    }
}
