//! The fan-out of one poll: which queries each changed item affects, and how.
//!
//! Separate from the engine because it only reads: while a poll runs it borrows the registered
//! queries, and collects the changes that the engine then delivers.

use super::change_budget::ChangeBudget;
use super::item_version::{LazyVersion, LazyVersionPair, classify_change};
use super::pending_changes::ChangeCollector;
use super::query_registry::QueryRegistry;
use super::subscription_index::QueryId;
use larder_store::{CollectionRow, ItemChange, Kind, Reader};
use std::collections::HashSet;
use std::sync::Arc;

/// The changes that one poll found for the queries.
pub(super) struct ChangeFanOut<'a> {
    reader: &'a Reader,
    registry: &'a QueryRegistry,
    /// The queries that the current item may concern.
    affected: Vec<QueryId>,
    pub(super) collector: ChangeCollector,
    pub(super) budget: ChangeBudget,
    /// The counts for the query log; `None` without one.
    pub(super) statistics: Option<FanOutStatistics>,
    pub(super) item_count: usize,
}

/// The figures of a poll for the query log.
#[derive(Default)]
pub(super) struct FanOutStatistics {
    /// The collections and kinds of the changed items.
    pub(super) kinds_by_collection: HashSet<(CollectionRow, Kind)>,
    /// The queries that were tested.
    pub(super) tested_queries: HashSet<QueryId>,
}

impl<'a> ChangeFanOut<'a> {
    pub(super) fn new(
        reader: &'a Reader,
        registry: &'a QueryRegistry,
        max_bytes: usize,
        is_logged: bool,
    ) -> ChangeFanOut<'a> {
        ChangeFanOut {
            reader,
            registry,
            affected: Vec::new(),
            collector: ChangeCollector::new(max_bytes),
            budget: ChangeBudget::default(),
            statistics: is_logged.then(FanOutStatistics::default),
            item_count: 0,
        }
    }

    /// Tests a changed item against the queries that it may affect.
    pub(super) fn add(&mut self, change: ItemChange) {
        self.item_count += 1;
        self.budget.add_change();
        if let Some(statistics) = &mut self.statistics {
            let versions = change.before.iter().chain(&change.after);
            statistics
                .kinds_by_collection
                .extend(versions.map(|version| (version.meta.collection_row, version.meta.kind)));
        }
        let change = Arc::new(change);
        let before = change.before.as_ref().map(|before| LazyVersion::new(self.reader, before));
        let after = change.after.as_ref().map(|after| LazyVersion::new(self.reader, after));
        self.affected.clear();
        let versions = before.as_ref().zip(after.as_ref());
        match versions
            .and_then(|(before, after)| LazyVersionPair::from_same_partition(before, after))
        {
            Some(pair) => self.registry.find_affected(&pair, &mut self.affected),
            None => before
                .iter()
                .chain(&after)
                .for_each(|version| self.registry.find_affected(version, &mut self.affected)),
        }
        self.affected.sort_unstable();
        self.affected.dedup();
        for &id in &self.affected {
            let Ok(query) = self.registry.get(id) else { continue };
            if query.is_too_expensive {
                continue;
            }
            if let Some(statistics) = &mut self.statistics {
                statistics.tested_queries.insert(id);
            }
            let tested = self.budget.run(id, |steps| {
                let matches = |version: &Option<LazyVersion<'_>>| {
                    version.as_ref().is_some_and(|version| version.matches(query, steps))
                };
                (matches(&before), matches(&after))
            });
            let Some((matched, matches)) = tested else { continue };
            let effects = classify_change(&change, matched, matches);
            if !effects.is_empty() {
                self.collector.add(id, effects, &change);
            }
        }
    }
}
