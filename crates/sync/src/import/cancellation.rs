//! Messages with METHOD:CANCEL: such a message marks stored items as cancelled; any other item of a
//! file replaces the stored one.
//!
//! [`larder_edit::event`] computes the changes. Separate from the writer because it is the only
//! part of an import that depends on the stored items.

use super::{ImportWriter, OLDER_REASON, Provenance};
use crate::error::Error;
use larder_edit::event::{CancelOutcome, UidGroup, compute_cancellation};
use larder_format::contact::is_same_card;
use larder_store::{ChangeOutcome, CollectionType, ItemMeta, ParsedItem, Reader, Seq};
use std::collections::HashSet;
use std::sync::Arc;

/// The UIDs that this import has marked as cancelled.
pub(super) struct CancelledUids {
    /// The last batch before the import.
    since: Seq,
    /// The UIDs with their collections; their items were in the store before the import.
    uids: HashSet<(Arc<str>, String)>,
}

impl CancelledUids {
    pub(super) fn new(since: Seq) -> CancelledUids {
        CancelledUids { since, uids: HashSet::new() }
    }

    /// Returns whether the store was empty before the import.
    pub(super) fn is_first_import(&self) -> bool {
        self.since == 0
    }
}

impl ImportWriter<'_> {
    /// Marks the items that a METHOD:CANCEL message cancels. Returns the message if these items
    /// were not in the store before this import: the message is then imported as an item, so that
    /// the same files always give the same items.
    pub(super) fn handle_cancellation(
        &mut self,
        place: Provenance,
        prepared: ParsedItem,
    ) -> Result<Option<(Provenance, ParsedItem)>, Error> {
        let series = |writer: &Self| match prepared.uid().filter(|_| prepared.kind().has_schedule())
        {
            Some(uid) => writer.read_uid_items(&place.collection, uid),
            None => Ok(None),
        };
        if series(self)?.is_none() {
            return Ok(Some((place, prepared)));
        }
        // The unwritten batch may contain items with the same UID.
        self.write_batch()?;
        if self.poll_stop() {
            return Ok(None);
        }
        let found = series(self)?;
        let changes = match found
            .map_or(Ok(CancelOutcome::NotFound), |of| self.compute_cancel_outcome(of, &prepared))?
        {
            CancelOutcome::NotFound => return Ok(Some((place, prepared))),
            CancelOutcome::Outdated => {
                return self.reject_message(place, &prepared, OLDER_REASON).map(|()| None);
            }
            CancelOutcome::Marked(changes) => changes,
        };
        // A series is cancelled as a whole, or not at all.
        self.operation.set_all_or_nothing(true);
        let applied = self.store.apply(&mut self.operation, changes);
        self.operation.set_all_or_nothing(false);
        let applied = applied?;
        if applied.outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..))) {
            let reason = "conflict: another program changed the item to cancel";
            return self.reject_message(place, &prepared, reason).map(|()| None);
        }
        self.record_collection(&place.collection);
        let uid = prepared.uid().unwrap_or_default().to_string();
        self.cancelled_uids.uids.insert((Arc::clone(&place.collection), uid));
        self.report.count_cancellation(&place.collection, place.kind, !applied.outcomes.is_empty());
        Ok(None)
    }

    /// Returns the items of a UID and a reader for them; `None` if there are none.
    fn read_uid_items(
        &self,
        collection: &str,
        uid: &str,
    ) -> Result<Option<(Reader, Vec<ItemMeta>)>, Error> {
        if !self.store.collection_type(collection)?.is_some_and(CollectionType::has_schedules) {
            return Ok(None);
        }
        let reader = self.store.open_reader()?;
        let metas = reader.items().find_series(collection, uid)?;
        Ok(Some((reader, metas)).filter(|(_, metas)| !metas.is_empty()))
    }

    fn compute_cancel_outcome(
        &self,
        (reader, metas): (Reader, Vec<ItemMeta>),
        prepared: &ParsedItem,
    ) -> Result<CancelOutcome, Error> {
        let Some(any) = metas.first() else { return Ok(CancelOutcome::NotFound) };
        let named = metas.iter().filter(|meta| meta.recurrence_id == prepared.recurrence_id());
        if self.is_of_this_import(named, any) {
            return Ok(CancelOutcome::NotFound);
        }
        // An earlier import stored the message itself.
        for meta in metas.iter().filter(|meta| meta.recurrence_id == prepared.recurrence_id()) {
            if reader
                .items()
                .source_bytes(meta.row)?
                .is_some_and(|there| is_same_card(&there, prepared.bytes()))
            {
                return Ok(CancelOutcome::NotFound);
            }
        }
        let extractor =
            self.store.extractor_for_collection(&any.collection, any.kind.collection_type())?;
        match UidGroup::read(&reader, &extractor, any) {
            Ok(whole) => Ok(compute_cancellation(&whole, prepared)),
            Err(larder_edit::event::Error::Store(error)) => Err(error.into()),
            Err(_) => Ok(CancelOutcome::NotFound),
        }
    }

    /// Returns whether this import added, changed or found unchanged an item that the message
    /// names, and has not cancelled its UID.
    fn is_of_this_import<'h>(
        &self,
        mut named: impl Iterator<Item = &'h ItemMeta>,
        any: &ItemMeta,
    ) -> bool {
        let was_marked =
            self.cancelled_uids.uids.contains(&(Arc::clone(&any.collection), any.uid.clone()));
        named.any(|meta| self.is_met(meta)) && !was_marked
    }

    /// Returns whether this import added, changed or found unchanged an item.
    pub(super) fn is_met(&self, meta: &ItemMeta) -> bool {
        let hash = self.unchanged_keys.hash([&*meta.collection, &meta.uid, &meta.recurrence_id]);
        meta.seq > self.cancelled_uids.since || self.unchanged_keys.hashes.contains(&hash)
    }

    pub(super) fn reject_message(
        &mut self,
        place: Provenance,
        message: &ParsedItem,
        reason: &str,
    ) -> Result<(), Error> {
        let spare = Some((reason.to_string(), message.bytes().to_vec()));
        self.reject_conflict(Provenance { conflict_reject: spare, ..place })
    }
}
