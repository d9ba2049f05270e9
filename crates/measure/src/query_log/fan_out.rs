//! The views notified of each change.

use crate::query_log::histogram::Histogram;
use crate::query_log::log_reader::{ChangeEvent, NotifyEvent, ResetEvent};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The fan-out of changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FanOutReport {
    /// The number of times that changes were read.
    pub changes: u64,
    /// The number of changed items.
    pub items: u64,
    /// The sum of the views open at each change.
    pub views_open: u64,
    /// Queries that were tested; equal queries count once.
    pub queries_tested: u64,
    /// Views that were notified.
    pub views_notified: u64,
    /// The time of a change, in microseconds.
    pub us: Histogram,
    /// The distribution of the number of views notified of a change.
    pub views_notified_buckets: Vec<NotifiedBucket>,
    /// By collection and kind, the most frequently changed first. A change of several counts for
    /// each.
    pub collections: Vec<CollectionFanOut>,
    /// Items reported to views.
    #[serde(flatten)]
    pub items_delivered: DeliveredItems,
    /// The view resets by reason.
    pub resets: Vec<ResetCount>,
}

/// A bucket of the distribution of views notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NotifiedBucket {
    /// The minimum number of views notified.
    pub min: u64,
    /// The maximum number of views notified.
    pub max: u64,
    /// The number of changes.
    pub changes: u64,
}

/// Items reported to views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeliveredItems {
    /// Items added to a view.
    pub added: u64,
    /// Items of a view that were modified.
    pub modified: u64,
    /// Items removed from a view.
    pub removed: u64,
}

/// The view resets for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResetCount {
    /// The reason: `expired`, `collections` or `zones`.
    pub reason: String,
    /// The number of resets.
    pub count: u64,
}

/// The changes of one kind of item in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
        sum.queries_tested = sum.queries_tested.saturating_add(change.tested);
        sum.views_notified = sum.views_notified.saturating_add(change.notified);
        sum.views_open = sum.views_open.saturating_add(open);
        sum.us.add(change.us);
        let step = if change.notified == 0 { 0 } else { power_of_two_bucket(change.notified) };
        *self.views_notified_counts.entry(step).or_default() += 1;
        let mut seen = HashSet::new();
        for scope in change.kinds.iter().filter(|scope| seen.insert(*scope)) {
            let (next, (collection, kind)) = (self.collections.len(), scope.clone());
            let new =
                || (next, CollectionFanOut { collection, kind, ..CollectionFanOut::default() });
            let (_, it) = self.collections.entry(scope.clone()).or_insert_with(new);
            it.changes += 1;
            it.queries_tested = it.queries_tested.saturating_add(change.tested);
            it.views_notified = it.views_notified.saturating_add(change.notified);
            it.max_views_notified = it.max_views_notified.max(change.notified);
        }
    }

    pub(super) fn add_notification(&mut self, event: &NotifyEvent) {
        let sum = &mut self.report.items_delivered;
        sum.added = sum.added.saturating_add(event.added);
        sum.modified = sum.modified.saturating_add(event.modified);
        sum.removed = sum.removed.saturating_add(event.removed);
    }

    pub(super) fn add_reset(&mut self, fresh: &ResetEvent) {
        let next = self.resets.len();
        self.resets.entry(fresh.reason.clone()).or_insert((next, 0)).1 += 1;
    }

    pub(super) fn finish(self) -> FanOutReport {
        let mut collections: Vec<(usize, CollectionFanOut)> =
            self.collections.into_values().collect();
        collections.sort_by_key(|(first, it)| (Reverse(it.changes), *first));
        let mut resets: Vec<(String, (usize, u64))> = self.resets.into_iter().collect();
        resets.sort_by_key(|(_, (first, number))| (Reverse(*number), *first));
        let bucket = |(max, changes): (u64, u64)| NotifiedBucket {
            min: if max <= 2 { max } else { max / 2 + 1 },
            max,
            changes,
        };
        FanOutReport {
            views_notified_buckets: self.views_notified_counts.into_iter().map(bucket).collect(),
            collections: collections.into_iter().map(|(_, it)| it).collect(),
            resets: resets
                .into_iter()
                .map(|(reason, (_, count))| ResetCount { reason, count })
                .collect(),
            ..self.report
        }
    }
}

/// Returns the upper bound of the bucket of a number: 1, 2, 4, 8 ...
fn power_of_two_bucket(number: u64) -> u64 {
    number.checked_next_power_of_two().unwrap_or(u64::MAX)
}
