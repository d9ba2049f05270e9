//! The views notified of each change.

use crate::query_log::histogram::Histogram;
use crate::query_log::log_reader::{ChangeEvent, NotifyEvent, ResetEvent};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The fan-out of changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FanOutReport {
    /// The number of times that changes were read.
    pub changes: u64,
    /// The number of changed items.
    pub items: u64,
    /// Queries that were tested; equal queries count once.
    pub queries_tested: u64,
    /// Views that were notified.
    pub views_notified: u64,
    /// The sum of the views open at each change.
    pub views_open: u64,
    /// The time of a change, in microseconds.
    pub us: Histogram,
    /// The number of changes by views notified: minimum, maximum, number of changes.
    pub views_notified_buckets: Vec<(u64, u64, u64)>,
    /// By collection and kind, the most frequently changed first. A change of several counts for
    /// each.
    pub collections: Vec<CollectionFanOut>,
    /// Items reported to views: added, modified and removed.
    pub items_delivered: [u64; 3],
    /// The number of view resets by reason.
    pub resets: Vec<(String, u64)>,
}

/// The changes of one kind of item in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectionFanOut {
    /// The collection; `None`: any.
    pub collection: Option<String>,
    /// The kind; `None`: any.
    pub kind: Option<String>,
    /// The number of changes.
    pub changes: u64,
    /// Queries that were tested; equal queries count once.
    pub queries_tested: u64,
    /// Views that were notified.
    pub views_notified: u64,
    /// The maximum number of views notified of one change.
    pub max_views_notified: u64,
}

/// The state while the log is read.
#[derive(Debug, Default)]
pub(super) struct FanOutAccumulator {
    report: FanOutReport,
    views_notified_counts: BTreeMap<u64, u64>,
    collections: BTreeMap<(Option<String>, Option<String>), (usize, CollectionFanOut)>,
    resets: BTreeMap<String, (usize, u64)>,
}

impl FanOutAccumulator {
    /// Records a change; `open` is the number of open views of its process.
    pub(super) fn add_change(&mut self, change: &ChangeEvent, open: u64) {
        let sum = &mut self.report;
        sum.changes += 1;
        sum.items = sum.items.saturating_add(change.items);
        sum.queries_tested = sum.queries_tested.saturating_add(change.asked);
        sum.views_notified = sum.views_notified.saturating_add(change.told);
        sum.views_open = sum.views_open.saturating_add(open);
        sum.us.add(change.us);
        let step = if change.told == 0 { 0 } else { power_of_two_bucket(change.told) };
        *self.views_notified_counts.entry(step).or_default() += 1;
        let mut seen = HashSet::new();
        for of in change.of.iter().filter(|of| seen.insert(*of)) {
            let (next, (collection, kind)) = (self.collections.len(), of.clone());
            let new =
                || (next, CollectionFanOut { collection, kind, ..CollectionFanOut::default() });
            let (_, it) = self.collections.entry(of.clone()).or_insert_with(new);
            it.changes += 1;
            it.queries_tested = it.queries_tested.saturating_add(change.asked);
            it.views_notified = it.views_notified.saturating_add(change.told);
            it.max_views_notified = it.max_views_notified.max(change.told);
        }
    }

    pub(super) fn add_notification(&mut self, told: &NotifyEvent) {
        let [added, modified, removed] = &mut self.report.items_delivered;
        *added = added.saturating_add(told.added);
        *modified = modified.saturating_add(told.modified);
        *removed = removed.saturating_add(told.removed);
    }

    pub(super) fn add_reset(&mut self, fresh: &ResetEvent) {
        let next = self.resets.len();
        self.resets.entry(fresh.why.clone()).or_insert((next, 0)).1 += 1;
    }

    pub(super) fn finish(self) -> FanOutReport {
        let mut of: Vec<(usize, CollectionFanOut)> = self.collections.into_values().collect();
        of.sort_by_key(|(first, it)| (Reverse(it.changes), *first));
        let mut fresh: Vec<(String, (usize, u64))> = self.resets.into_iter().collect();
        fresh.sort_by_key(|(_, (first, number))| (Reverse(*number), *first));
        let least = |most: u64| if most <= 2 { most } else { most / 2 + 1 };
        FanOutReport {
            views_notified_buckets: self
                .views_notified_counts
                .into_iter()
                .map(|(to, it)| (least(to), to, it))
                .collect(),
            collections: of.into_iter().map(|(_, it)| it).collect(),
            resets: fresh.into_iter().map(|(why, (_, number))| (why, number)).collect(),
            ..self.report
        }
    }
}

/// Returns the upper bound of the bucket of a number: 1, 2, 4, 8 ...
fn power_of_two_bucket(number: u64) -> u64 {
    number.checked_next_power_of_two().unwrap_or(u64::MAX)
}
