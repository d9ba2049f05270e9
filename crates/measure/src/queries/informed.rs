//! How many views each change informed.

use crate::queries::log::{Change, Fresh, Told};
use crate::queries::spread::Spread;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// What was found out about changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Informed {
    /// How many times changes were read.
    pub changes: u64,
    /// Items that changed.
    pub items: u64,
    /// Questions that were tested; equal ones are one.
    pub asked: u64,
    /// Views that were told.
    pub told: u64,
    /// Views that were open then, all changes together.
    pub open: u64,
    /// How long it took, in microseconds.
    pub us: Spread,
    /// How many changes told so many views: least, most, number.
    pub views: Vec<(u64, u64, u64)>,
    /// By collection and kind, those that changed most often first. A change of several counts for each.
    pub collections: Vec<Changed>,
    /// What views were told: items added, modified and removed.
    pub delivered: [u64; 3],
    /// How often views were given their answer anew, by why.
    pub fresh: Vec<(String, u64)>,
}

/// The changes of one kind of item in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// The collection; `None`: any.
    pub collection: Option<String>,
    /// The kind; `None`: any.
    pub kind: Option<String>,
    /// How many.
    pub changes: u64,
    /// Questions that were tested; equal ones are one.
    pub asked: u64,
    /// Views that were told.
    pub told: u64,
    /// The most that one change told.
    pub most: u64,
}

/// Changes while the log is read.
#[derive(Debug, Default)]
pub(super) struct Listening {
    sum: Informed,
    views: BTreeMap<u64, u64>,
    of: BTreeMap<(Option<String>, Option<String>), (usize, Changed)>,
    fresh: BTreeMap<String, (usize, u64)>,
}

impl Listening {
    /// `open`: how many views its process had open.
    pub(super) fn change(&mut self, change: &Change, open: u64) {
        let sum = &mut self.sum;
        sum.changes += 1;
        sum.items = sum.items.saturating_add(change.items);
        sum.asked = sum.asked.saturating_add(change.asked);
        sum.told = sum.told.saturating_add(change.told);
        sum.open = sum.open.saturating_add(open);
        sum.us.add(change.us);
        let step = if change.told == 0 { 0 } else { step(change.told) };
        *self.views.entry(step).or_default() += 1;
        let mut seen = HashSet::new();
        for of in change.of.iter().filter(|of| seen.insert(*of)) {
            let (next, (collection, kind)) = (self.of.len(), of.clone());
            let new = || (next, Changed { collection, kind, ..Changed::default() });
            let (_, it) = self.of.entry(of.clone()).or_insert_with(new);
            it.changes += 1;
            it.asked = it.asked.saturating_add(change.asked);
            it.told = it.told.saturating_add(change.told);
            it.most = it.most.max(change.told);
        }
    }

    pub(super) fn told(&mut self, told: &Told) {
        let [added, modified, removed] = &mut self.sum.delivered;
        *added = added.saturating_add(told.added);
        *modified = modified.saturating_add(told.modified);
        *removed = removed.saturating_add(told.removed);
    }

    pub(super) fn fresh(&mut self, fresh: &Fresh) {
        let next = self.fresh.len();
        self.fresh.entry(fresh.why.clone()).or_insert((next, 0)).1 += 1;
    }

    pub(super) fn finish(self) -> Informed {
        let mut of: Vec<(usize, Changed)> = self.of.into_values().collect();
        of.sort_by_key(|(first, it)| (Reverse(it.changes), *first));
        let mut fresh: Vec<(String, (usize, u64))> = self.fresh.into_iter().collect();
        fresh.sort_by_key(|(_, (first, number))| (Reverse(*number), *first));
        let least = |most: u64| if most <= 2 { most } else { most / 2 + 1 };
        Informed {
            views: self.views.into_iter().map(|(to, it)| (least(to), to, it)).collect(),
            collections: of.into_iter().map(|(_, it)| it).collect(),
            fresh: fresh.into_iter().map(|(why, (_, number))| (why, number)).collect(),
            ..self.sum
        }
    }
}

/// 1, 2, 3 to 4, 5 to 8 ...: the last of its step.
fn step(number: u64) -> u64 {
    number.checked_next_power_of_two().unwrap_or(u64::MAX)
}
