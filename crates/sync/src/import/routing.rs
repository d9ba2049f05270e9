//! Chooses the collection of an item: the named collection, or else the collection of its calendar,
//! or of the item that a scheduling message refers to.
//!
//! Separate from the writing of batches, which does not depend on routing.

use super::calendar::EnclosingCalendar;
use super::input_origin::InputOrigin;
use super::{ImportDiagnostic, ImportWriter, Provenance, sanitise_text};
use crate::error::Error;
use larder_store::{BatchChange, CollectionType, Kind, ParsedItem};
use std::sync::Arc;

/// The number of UIDs whose collection is cached.
const MAX_MESSAGE_UIDS: usize = 10_000;

impl ImportWriter<'_> {
    /// Chooses the collection of an item. A scheduling message in a calendar without a name goes to
    /// the calendar that contains its UID.
    pub(super) fn choose_collection(
        &mut self,
        origin: &InputOrigin,
        around: Option<&EnclosingCalendar>,
        prepared: &ParsedItem,
        notice: &dyn Fn(String) -> ImportDiagnostic,
    ) -> Result<Arc<str>, Error> {
        let collection_type = prepared.kind().collection_type();
        let target = || match origin.collection_of_type(collection_type) {
            Some(folder) => Arc::clone(&folder.name),
            None => Arc::clone(&self.targets[collection_type.index()]),
        };
        let Some(around) = around else { return Ok(target()) };
        let own = self.target_collection(Arc::clone(&around.name));
        let is_message = around.is_message && self.options.into.is_none();
        let Some(uid) = prepared.uid().filter(|_| is_message) else { return Ok(own) };
        if let Some(known) = self.message_collections.get(uid) {
            return Ok(Arc::clone(known));
        }
        let waits =
            |change: &BatchChange| matches!(change, BatchChange::Put(put) if put.uid == uid);
        if self.changes.iter().any(waits) {
            self.write_batch()?;
        }
        let into = match &self.store.calendars_with_uid(uid)?[..] {
            [one] => Arc::from(one.as_str()),
            [] => own,
            several => {
                let of = several
                    .iter()
                    .map(|name| sanitise_text(name, 40))
                    .collect::<Vec<_>>()
                    .join(", ");
                let reason = format!(
                    "several calendars ({of}) contain this UID: imported into {}",
                    sanitise_text(&own, 40)
                );
                self.warn(&notice(format!("{reason}; --into selects another collection")));
                own
            }
        };
        if self.message_collections.len() < MAX_MESSAGE_UIDS {
            self.message_collections.insert(uid.to_string(), Arc::clone(&into));
        }
        Ok(into)
    }

    /// Returns the collection of a calendar of this name.
    pub(super) fn target_collection(&self, calendar: Arc<str>) -> Arc<str> {
        self.into.as_ref().map_or(calendar, Arc::clone)
    }

    /// Returns the type of a collection; a new one has the type of its first item.
    fn resolve_family(
        &mut self,
        collection: &Arc<str>,
        first: Kind,
    ) -> Result<CollectionType, Error> {
        if let Some(known) = self.families.get(collection) {
            return Ok(*known);
        }
        let collection_type =
            self.store.collection_type(collection)?.unwrap_or(first.collection_type());
        self.families.insert(Arc::clone(collection), collection_type);
        Ok(collection_type)
    }

    /// Records that an item went to a collection.
    pub(super) fn record_collection(&mut self, collection: &str) {
        if self.report.collections.last().is_none_or(|last| last != collection)
            && !self.report.collections.iter().any(|known| known == collection)
        {
            self.report.collections.push(collection.to_string());
        }
    }

    /// Returns whether the collection holds items of this kind. If not, the item is skipped.
    pub(super) fn check_family(
        &mut self,
        place: &Provenance,
        prepared: &ParsedItem,
    ) -> Result<bool, Error> {
        let kind = prepared.kind();
        let held = self.resolve_family(&place.collection, kind)?;
        if kind.collection_type() != held {
            let (kind, into) = (kind.name(), sanitise_text(&place.collection, 40));
            let reason =
                format!("{into} cannot contain this {kind}, only {}", held.describe_items());
            let notice =
                ImportDiagnostic { file: place.file.to_string(), line: place.line, reason };
            self.report.misplaced += 1;
            self.reject(&notice, prepared.bytes())?;
            return Ok(false);
        }
        Ok(true)
    }
}
