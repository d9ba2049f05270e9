//! How many views each change informed.

use crate::query_log::histogram::Histogram;
use crate::query_log::log_reader::{ChangeEvent, NotifyEvent, ResetEvent};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The fan-out of changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FanOutReport {
    /// How many times changes were read.
    pub changes: u64,
    /// Items that changed.
    pub items: u64,
    /// Questions that were tested; equal ones are one.
    pub queries_tested: u64,
    /// Views that were told.
    pub views_notified: u64,
    /// Views that were open then, all changes together.
    pub views_open: u64,
    /// How long it took, in microseconds.
    pub us: Histogram,
    /// How many changes told so many views: least, most, number.
    pub views_notified_buckets: Vec<(u64, u64, u64)>,
    /// By collection and kind, those that changed most often first. A change of several counts for
    /// each.
    pub collections: Vec<CollectionFanOut>,
    /// Items reported to views: added, modified and removed.
    pub items_delivered: [u64; 3],
    /// How often views were given their answer anew, by why.
    pub resets: Vec<(String, u64)>,
}

/// The changes of one kind of item in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectionFanOut {
    /// The collection; `None`: any.
    pub collection: Option<String>,
    /// The kind; `None`: any.
    pub kind: Option<String>,
    /// How many.
    pub changes: u64,
    /// Questions that were tested; equal ones are one.
    pub queries_tested: u64,
    /// Views that were told.
    pub views_notified: u64,
    /// The most that one change told.
    pub max_views_notified: u64,
}

/// Changes while the log is read.
#[derive(Debug, Default)]
pub(super) struct FanOutAccumulator {
    report: FanOutReport,
    views_notified_counts: BTreeMap<u64, u64>,
    collections: BTreeMap<(Option<String>, Option<String>), (usize, CollectionFanOut)>,
    resets: BTreeMap<String, (usize, u64)>,
}

impl FanOutAccumulator {
    /// `open`: how many views its process had open.
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

/// 1, 2, 3 to 4, 5 to 8 ...: the last of its step.
fn power_of_two_bucket(number: u64) -> u64 {
    number.checked_next_power_of_two().unwrap_or(u64::MAX)
}
