//! Where an item goes: to the collection that was named, else to that of its calendar, or of what a message is about.
//!
//! It is apart from the writing of batches, as nothing of a batch matters to it.

use super::calendar::Around;
use super::{Notice, Place, Writer, shown};
use crate::error::Error;
use larder_store::{Change, Family, Kind, Prepared};
use std::sync::Arc;

/// Of so many UIDs it is remembered where their messages went.
const MESSAGES: usize = 10_000;

impl Writer<'_> {
    /// The collection of an item. What a message is about is looked for in all calendars, if that message names none: it goes to the
    /// one that has its UID.
    pub(super) fn goes_to(
        &mut self,
        around: Option<&Around>,
        prepared: &Prepared,
        notice: &dyn Fn(String) -> Notice,
    ) -> Result<Arc<str>, Error> {
        let Some(around) = around else { return Ok(Arc::clone(&self.contacts)) };
        let own = self.named(Arc::clone(&around.name));
        let is_message = around.is_message && self.options.into.is_none();
        let Some(uid) = prepared.uid().filter(|_| is_message) else { return Ok(own) };
        if let Some(known) = self.messages.get(uid) {
            return Ok(Arc::clone(known));
        }
        let waits = |change: &Change| matches!(change, Change::Put(put) if put.uid == uid);
        if self.changes.iter().any(waits) {
            self.write()?;
        }
        let into = match &self.store.calendars_with(uid)?[..] {
            [one] => Arc::from(one.as_str()),
            [] => own,
            several => {
                let of = several.iter().map(|name| shown(name, 40)).collect::<Vec<_>>().join(", ");
                let reason =
                    format!("{of} have this UID; the message goes into {}", shown(&own, 40));
                self.warn(&notice(format!("{reason} (--into names another)")));
                own
            }
        };
        if self.messages.len() < MESSAGES {
            self.messages.insert(uid.to_string(), Arc::clone(&into));
        }
        Ok(into)
    }

    /// The collection of a calendar of this name.
    pub(super) fn named(&self, calendar: Arc<str>) -> Arc<str> {
        if self.options.into.is_some() { Arc::clone(&self.contacts) } else { calendar }
    }

    /// What a collection holds: where there is none yet, such as the first item that goes to it.
    fn family_of(&mut self, collection: &Arc<str>, first: Kind) -> Result<Family, Error> {
        if let Some(known) = self.families.get(collection) {
            return Ok(*known);
        }
        let family = self.store.family_of(collection)?.unwrap_or(first.family());
        self.families.insert(Arc::clone(collection), family);
        Ok(family)
    }

    /// Notes that something went to a collection.
    pub(super) fn goes_into(&mut self, collection: &str) {
        if self.summary.collections.last().is_none_or(|last| last != collection)
            && !self.summary.collections.iter().any(|known| known == collection)
        {
            self.summary.collections.push(collection.to_string());
        }
    }

    /// Does the collection hold items of this kind? If not, it is left out.
    pub(super) fn belongs(&mut self, place: &Place, prepared: &Prepared) -> Result<bool, Error> {
        let kind = prepared.kind();
        let held = self.family_of(&place.collection, kind)?;
        if kind.family() != held {
            let (kind, into) = (kind.name(), shown(&place.collection, 40));
            let reason = format!("{kind}: not taken into {into}, which holds {}", held.plural());
            let notice = Notice { file: place.file.to_string(), line: place.line, reason };
            self.reject(&notice, prepared.bytes())?;
            return Ok(false);
        }
        Ok(true)
    }
}
