//! A cache of the schedules of a series: they are combined together, and asked for one by one.
//!
//! Separate from `series`, which combines them, because the cache lives in an `ExtractorCache`, as
//! long as one reading of many items.

use crate::Seq;
use crate::row_ids::{CollectionRow, ItemRow};
use larder_extract::Schedule;
use std::collections::{HashMap, VecDeque};

/// Schedules that were combined together and have not been asked for: without them, each of the
/// overrides of a series would combine all of them again.
#[derive(Debug, Default)]
pub(crate) struct CombinedSchedules {
    /// The epoch and the last batch of the store that they were read from, if they outlive the
    /// reading.
    store_state: Option<(String, Seq)>,
    /// The most recently combined UIDs, the oldest first.
    uids: VecDeque<(SeriesUid, HashMap<ItemRow, Option<Schedule>>)>,
}

/// A UID in a collection.
pub(crate) type SeriesUid = (CollectionRow, String);

/// Series whose schedules are cached at once: items of one UID nearly always stand together.
const MAX_COMBINED_UIDS: usize = 4;

impl CombinedSchedules {
    /// Forgets the schedules if the store has changed since they were read.
    pub(crate) fn keep_for(&mut self, epoch: &str, last_seq: Seq) {
        let state = (epoch.to_string(), last_seq);
        if self.store_state.as_ref() != Some(&state) {
            *self = CombinedSchedules { store_state: Some(state), uids: VecDeque::new() };
        }
    }

    /// Adds the schedules of a UID.
    pub(crate) fn insert(&mut self, uid: SeriesUid, schedules: Vec<(ItemRow, Option<Schedule>)>) {
        self.uids.retain(|(known, _)| *known != uid);
        if self.uids.len() >= MAX_COMBINED_UIDS {
            self.uids.pop_front();
        }
        self.uids.push_back((uid, schedules.into_iter().collect()));
    }

    /// Removes and returns the schedule of an item; `None` if it is not known.
    pub(crate) fn take(&mut self, uid: &SeriesUid, row: ItemRow) -> Option<Option<Schedule>> {
        let (_, schedules) = self.uids.iter_mut().find(|(known, _)| known == uid)?;
        schedules.remove(&row)
    }
}
