//! Messages that call something off: they mark what is in the store, where any other item of a file takes its place.
//!
//! What becomes of the items of a UID is for [`event`](crate::event). It is apart as it is the one thing of an import that
//! depends on what was stored before.

use super::{OLDER, Place, Writer};
use crate::error::Error;
use crate::event::{Cancelled, Whole, cancelled};
use larder_format::contact::same_card;
use larder_store::{Family, ItemHead, Kind, Outcome, Prepared, Reader, Seq};
use std::collections::HashSet;
use std::sync::Arc;

/// What this import has marked.
pub(super) struct Marked {
    /// The last batch before the import.
    since: Seq,
    /// The UIDs, by their collections: there before the import.
    uids: HashSet<(Arc<str>, String)>,
}

impl Marked {
    pub(super) fn since(since: Seq) -> Marked {
        Marked { since, uids: HashSet::new() }
    }
}

impl Writer<'_> {
    /// Marks what a message by METHOD:CANCEL calls off. Gives it back where that was not there before this import: then it is
    /// taken as it is, so that the same files always give the same items.
    pub(super) fn cancel(
        &mut self,
        place: Place,
        prepared: Prepared,
    ) -> Result<Option<(Place, Prepared)>, Error> {
        let series = |writer: &Self| match prepared.uid().filter(|_| prepared.kind() != Kind::Other)
        {
            Some(uid) => writer.series(&place.collection, uid),
            None => Ok(None),
        };
        if series(self)?.is_none() {
            return Ok(Some((place, prepared)));
        }
        // What is in the batch may be of the same UID.
        self.write()?;
        if self.stopped() {
            return Ok(None);
        }
        let found = series(self)?;
        let changes =
            match found.map_or(Ok(Cancelled::NotThere), |of| self.called_off(of, &prepared))? {
                Cancelled::NotThere => return Ok(Some((place, prepared))),
                Cancelled::Older => {
                    return self.refuse(place, &prepared, OLDER).map(|()| None);
                }
                Cancelled::Marked(changes) => changes,
            };
        let applied = self.store.apply(&mut self.operation, changes)?;
        if applied.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict(..))) {
            let reason = "what it cancels was changed by somebody else in the meantime";
            return self.refuse(place, &prepared, reason).map(|()| None);
        }
        self.goes_into(&place.collection);
        let uid = prepared.uid().unwrap_or_default().to_string();
        self.marked.uids.insert((Arc::clone(&place.collection), uid));
        self.summary.cancel(&place.collection, place.kind, !applied.outcomes.is_empty());
        Ok(None)
    }

    /// The items of a UID, and what reads them, if there are any.
    fn series(
        &self,
        collection: &str,
        uid: &str,
    ) -> Result<Option<(Reader, Vec<ItemHead>)>, Error> {
        if self.store.family_of(collection)? != Some(Family::Calendar) {
            return Ok(None);
        }
        let reader = self.store.reader()?;
        let heads = reader.series(collection, uid)?;
        Ok(Some((reader, heads)).filter(|(_, heads)| !heads.is_empty()))
    }

    fn called_off(
        &self,
        (reader, heads): (Reader, Vec<ItemHead>),
        prepared: &Prepared,
    ) -> Result<Cancelled, Error> {
        let Some(any) = heads.first() else { return Ok(Cancelled::NotThere) };
        let named = heads.iter().filter(|head| head.recurrence == prepared.recurrence());
        if self.is_of_this_import(named, any) {
            return Ok(Cancelled::NotThere);
        }
        // The message itself was taken before.
        for head in heads.iter().filter(|head| head.recurrence == prepared.recurrence()) {
            if reader.source(head.row)?.is_some_and(|there| same_card(&there, prepared.bytes())) {
                return Ok(Cancelled::NotThere);
            }
        }
        let deriver = self.store.deriver_for(&any.collection, Family::Calendar)?;
        match Whole::read(&reader, &deriver, any) {
            Ok(whole) => Ok(cancelled(&whole, prepared)),
            Err(crate::event::Error::Store(error)) => Err(error.into()),
            Err(_) => Ok(Cancelled::NotThere),
        }
    }

    /// Did this import bring what a message names, or meet it, and did not mark its UID?
    fn is_of_this_import<'h>(
        &self,
        mut named: impl Iterator<Item = &'h ItemHead>,
        any: &ItemHead,
    ) -> bool {
        let was_marked = self.marked.uids.contains(&(Arc::clone(&any.collection), any.uid.clone()));
        let met = |head: &ItemHead| {
            let hash = self.seen.hash([&*head.collection, &head.uid, &head.recurrence]);
            head.seq > self.marked.since || self.seen.hashes.contains(&hash)
        };
        named.any(met) && !was_marked
    }

    fn refuse(&mut self, place: Place, message: &Prepared, reason: &str) -> Result<(), Error> {
        let spare = Some((reason.to_string(), message.bytes().to_vec()));
        self.reject_spare(Place { spare, ..place })
    }
}
