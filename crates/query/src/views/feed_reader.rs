//! Reads the change feed: all changes of the store since the last poll.
//!
//! [`ChangeFeedReader`] owns the position of the views in the feed and the state that successive
//! polls compare. It is independent of queries and views: it passes each changed item to its
//! caller, and reports all other changes.

use crate::error::Error;
use larder_store::{
    CollectionRow, DataVersion, DerivedIndex, FeedResult, ItemChange, Reader, Seq, StoreState,
};
use std::sync::Arc;

/// The rows and names of the collections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CollectionTable(Vec<(CollectionRow, Arc<str>)>);

impl CollectionTable {
    #[cfg(test)]
    pub(super) fn from_rows<const N: usize>(rows: [(CollectionRow, &str); N]) -> CollectionTable {
        CollectionTable(rows.map(|(row, name)| (row, Arc::from(name))).into())
    }

    pub(super) fn row_by_name(&self, name: &str) -> Option<CollectionRow> {
        self.0.iter().find(|(_, known)| **known == *name).map(|(row, _)| *row)
    }

    pub(super) fn name_by_row(&self, row: CollectionRow) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == row).map(|(_, name)| &**name)
    }

    /// Returns whether a collection that is in both tables has another name in `other`.
    pub(super) fn has_renamed(&self, other: &CollectionTable) -> bool {
        self.0.iter().any(|(row, name)| other.name_by_row(*row).is_some_and(|new| *new != **name))
    }
}

/// The position of the views in the change feed of a store.
pub(super) struct ChangeFeedReader {
    /// The most changed items that one poll reads.
    max_changes: usize,
    /// The data version at the last poll.
    data_version: DataVersion,
    stamp: StoreState,
    epoch: Arc<str>,
    collections: CollectionTable,
    /// Whether the schedules of items are known, so that former schedules are, too.
    has_schedules: bool,
}

/// The result of a poll that found something.
pub(super) struct FeedPoll {
    /// The last batch before the poll.
    pub(super) previous_seq: Seq,
    /// The number of batches since then; 0 if the store was replaced, whose batches are counted
    /// from another beginning, or its indexes were made anew.
    pub(super) batches: i64,
    /// Whether every change was passed to the caller. If not, the caller must discard the changes
    /// that it received.
    pub(super) is_complete: bool,
    /// The table of collections before the poll, if it has changed.
    pub(super) previous_collections: Option<CollectionTable>,
    /// Whether changes in the same store may have no schedules, because the zones have changed.
    pub(super) lacks_schedules: bool,
}

impl ChangeFeedReader {
    /// Begins at the end of the feed.
    pub(super) fn new(reader: &Reader, max_changes: usize) -> Result<ChangeFeedReader, Error> {
        let _transaction = reader.begin_read()?;
        Ok(ChangeFeedReader {
            max_changes,
            data_version: reader.data_version()?,
            stamp: reader.changes().stamp()?,
            epoch: reader.epoch()?,
            collections: CollectionTable(reader.collections().list_names()?),
            has_schedules: reader.index().is_current(DerivedIndex::Interval)?,
        })
    }

    /// The last batch that was read.
    pub(super) fn seq(&self) -> Seq {
        self.stamp.seq
    }

    /// The state of the store at the last poll.
    pub(super) fn state(&self) -> &StoreState {
        &self.stamp
    }

    pub(super) fn collections(&self) -> &CollectionTable {
        &self.collections
    }

    /// Returns whether `reader` sees the store as it was at the last poll. It is in a read
    /// transaction, unless it made the last poll.
    pub(super) fn is_same_state(&self, reader: &Reader) -> Result<bool, Error> {
        Ok(self.data_version == reader.data_version()? || self.stamp == reader.changes().stamp()?)
    }

    /// Returns the last batch of a state, if the changes from there to the last poll are in the
    /// feed and concern items only.
    pub(super) fn seq_within_feed(&self, state: &StoreState) -> Option<Seq> {
        let is_before = state.seq <= self.stamp.seq
            && state.collection_seq == self.stamp.collection_seq
            && state.epoch_and_zones == self.stamp.epoch_and_zones
            && state.rebuilds == self.stamp.rebuilds;
        is_before.then_some(state.seq)
    }

    /// Reads the changes since the last poll. `visit` gets the changed items, if
    /// `reads_changes`. Returns `None` if nothing happened. After an error the position is
    /// unchanged.
    pub(super) fn poll(
        &mut self,
        reader: &Reader,
        reads_changes: bool,
        visit: &mut dyn FnMut(ItemChange),
    ) -> Result<Option<FeedPoll>, Error> {
        let snapshot = reader.begin_read()?;
        let data_version = reader.data_version()?;
        if self.data_version == data_version {
            return Ok(None);
        }
        let stamp = reader.changes().stamp()?;
        // Unchanged parts are not read again: a poll follows every batch.
        let is_same = stamp.epoch_and_zones == self.stamp.epoch_and_zones;
        let epoch = if is_same { Arc::clone(&self.epoch) } else { reader.epoch()? };
        let has_schedules = if is_same {
            self.has_schedules
        } else {
            reader.index().is_current(DerivedIndex::Interval)?
        };
        let collections = if is_same && stamp.collection_seq == self.stamp.collection_seq {
            None
        } else {
            Some(CollectionTable(reader.collections().list_names()?))
                .filter(|collections| *collections != self.collections)
        };
        // Answers from indexes that were made anew since may have been wrong.
        let is_same_store = epoch == self.epoch && stamp.rebuilds == self.stamp.rebuilds;
        let result = if !is_same_store {
            FeedResult::Expired
        } else if stamp.seq == self.stamp.seq || !reads_changes {
            FeedResult::Complete
        } else {
            let names = collections.as_ref().unwrap_or(&self.collections);
            match reader.changes().for_each(self.stamp.seq, self.max_changes, &names.0, visit) {
                Ok(result) => result,
                // A damaged item must not hide the changes of all others: views are reset.
                Err(error) if error.damaged_file().is_some() => FeedResult::Expired,
                Err(error) => return Err(error.into()),
            }
        };
        let knows_schedules =
            has_schedules && self.has_schedules && result != FeedResult::WithoutSchedules;
        drop(snapshot);
        reader.unmap_file();
        let poll = FeedPoll {
            previous_seq: self.stamp.seq,
            batches: if is_same_store { stamp.seq - self.stamp.seq } else { 0 },
            is_complete: matches!(result, FeedResult::Complete | FeedResult::WithoutSchedules),
            lacks_schedules: is_same_store && !knows_schedules,
            previous_collections: collections
                .map(|collections| std::mem::replace(&mut self.collections, collections)),
        };
        (self.data_version, self.stamp, self.epoch) = (data_version, stamp, epoch);
        self.has_schedules = has_schedules;
        Ok(Some(poll))
    }

    /// Calls `visit` with each item that changed after `since`, up to the last poll.
    pub(super) fn read_since(
        &self,
        reader: &Reader,
        since: Seq,
        visit: &mut dyn FnMut(ItemChange),
    ) -> Result<FeedResult, Error> {
        let result =
            reader.changes().for_each(since, self.max_changes, &self.collections.0, visit)?;
        Ok(match result {
            FeedResult::Complete if !self.has_schedules => FeedResult::WithoutSchedules,
            result => result,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::{BatchChange, Kind, Operation, Store, StoreOptions};
    use std::path::Path;

    fn create_store(dir: &Path) -> Store {
        Store::open(dir, &StoreOptions { create: true, ..StoreOptions::default() }).unwrap()
    }

    fn apply(store: &mut Store, change: BatchChange) {
        store.apply(&mut Operation::new("test", "", 0), vec![change]).unwrap();
    }

    #[test]
    fn a_poll_reports_each_batch_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = create_store(dir.path());
        apply(&mut store, BatchChange::CreateCollection("a".into(), Kind::Contact));
        let reader = Reader::open(dir.path()).unwrap();
        let mut feed = ChangeFeedReader::new(&reader, 100).unwrap();
        assert!(feed.poll(&reader, true, &mut |_| {}).unwrap().is_none(), "nothing has happened");

        apply(&mut store, BatchChange::RenameCollection("a".into(), "b".into()));
        assert!(!feed.is_same_state(&reader).unwrap());
        let poll = feed.poll(&reader, true, &mut |_| panic!("no item has changed")).unwrap();
        let poll = poll.unwrap();
        assert_eq!((poll.batches, poll.is_complete), (1, true));
        assert!(poll.previous_collections.unwrap().has_renamed(feed.collections()));
        assert!(feed.collections().row_by_name("b").is_some());
        assert!(feed.is_same_state(&reader).unwrap());
        assert!(feed.poll(&reader, true, &mut |_| {}).unwrap().is_none());
    }

    #[test]
    fn another_reader_finds_the_same_position() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = create_store(dir.path());
        let (first, second) =
            (Reader::open(dir.path()).unwrap(), Reader::open(dir.path()).unwrap());
        let mut feed = ChangeFeedReader::new(&first, 100).unwrap();
        apply(&mut store, BatchChange::CreateCollection("a".into(), Kind::Contact));
        assert_eq!(feed.poll(&first, true, &mut |_| {}).unwrap().unwrap().batches, 1);
        let poll = feed.poll(&second, true, &mut |_| {}).unwrap().unwrap();
        assert_eq!((poll.batches, poll.is_complete), (0, true));
        assert!(poll.previous_collections.is_none());
    }
}
