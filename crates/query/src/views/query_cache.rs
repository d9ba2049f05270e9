//! The answer cache: the row ids of answers, kept within a budget.
//!
//! [`QueryCache`] evicts the least recently used answer when the budget is exceeded. It is
//! independent of queries and the store: the engine removes an answer when a change makes it stale.

use super::subscription_index::QueryId;
use larder_store::PackedRowIds;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A cached answer.
#[derive(Debug)]
pub(super) struct CachedResult {
    pub(super) rows: PackedRowIds,
    /// The number of the answer in the query log.
    pub(super) number: u64,
    /// The memory that the answer holds, with its query.
    pub(super) bytes: usize,
    last_use: u64,
}

/// Answers by query, least recently used first.
#[derive(Debug)]
pub(super) struct QueryCache {
    budget_bytes: usize,
    used_bytes: usize,
    answers: FxHashMap<QueryId, CachedResult>,
    /// The queries by the time of their last use.
    by_use: BTreeMap<u64, QueryId>,
    /// A count of uses, which serves as their time.
    last_use: u64,
}

impl QueryCache {
    pub(super) fn new(budget_bytes: usize) -> QueryCache {
        QueryCache {
            budget_bytes,
            used_bytes: 0,
            answers: FxHashMap::default(),
            by_use: BTreeMap::new(),
            last_use: 0,
        }
    }

    /// Returns whether an answer of this size can be cached at all.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.budget_bytes
    }

    /// Returns whether the cache keeps nothing.
    pub(super) fn is_disabled(&self) -> bool {
        self.budget_bytes == 0
    }

    pub(super) fn has_answer(&self, query: QueryId) -> bool {
        self.answers.contains_key(&query)
    }

    /// Returns the answer to a query, and notes that it was used.
    pub(super) fn get(&mut self, query: QueryId) -> Option<&CachedResult> {
        let answer = self.answers.get_mut(&query)?;
        self.by_use.remove(&answer.last_use);
        self.last_use += 1;
        answer.last_use = self.last_use;
        self.by_use.insert(self.last_use, query);
        Some(answer)
    }

    /// Caches an answer, unless it is larger than the whole budget, in place of an earlier answer
    /// to the same query. Returns the answers to other queries that are evicted for it.
    pub(super) fn insert(
        &mut self,
        query: QueryId,
        number: u64,
        rows: PackedRowIds,
        bytes: usize,
    ) -> Vec<(QueryId, CachedResult)> {
        let mut evicted = Vec::new();
        if !self.has_room_for(bytes) {
            return evicted;
        }
        self.remove(query);
        self.last_use += 1;
        self.answers.insert(query, CachedResult { rows, number, bytes, last_use: self.last_use });
        self.by_use.insert(self.last_use, query);
        self.used_bytes += bytes;
        while self.used_bytes > self.budget_bytes
            && let Some((_, &oldest)) = self.by_use.first_key_value()
        {
            evicted.extend(self.remove(oldest).map(|answer| (oldest, answer)));
        }
        evicted
    }

    /// Removes the answer to a query.
    pub(super) fn remove(&mut self, query: QueryId) -> Option<CachedResult> {
        let answer = self.answers.remove(&query)?;
        self.by_use.remove(&answer.last_use);
        self.used_bytes -= answer.bytes;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::ItemRow;

    fn rows() -> [ItemRow; 2] {
        [1, 2].map(ItemRow::from_number)
    }

    fn insert(cache: &mut QueryCache, query: QueryId, bytes: usize) -> Vec<QueryId> {
        let evicted = cache.insert(query, u64::from(query), PackedRowIds::new(&rows()), bytes);
        evicted.into_iter().map(|(query, _)| query).collect()
    }

    #[test]
    fn the_least_recently_used_answer_is_evicted() {
        let mut cache = QueryCache::new(100);
        assert!(insert(&mut cache, 1, 40).is_empty());
        assert!(insert(&mut cache, 2, 40).is_empty());
        assert_eq!(cache.get(1).unwrap().rows.to_vec(), rows());
        assert_eq!(insert(&mut cache, 3, 40), [2]);
        assert!(cache.has_answer(1) && !cache.has_answer(2));
        assert_eq!(insert(&mut cache, 4, 100), [1, 3]);
    }

    #[test]
    fn a_replaced_answer_is_not_evicted_for_the_budget() {
        let mut cache = QueryCache::new(100);
        assert!(insert(&mut cache, 1, 60).is_empty());
        assert!(insert(&mut cache, 1, 70).is_empty());
        assert_eq!(cache.get(1).unwrap().bytes, 70);
        assert!(insert(&mut cache, 2, 30).is_empty(), "the replaced answer uses no memory");
    }

    #[test]
    fn the_budget_counts_removed_answers_no_more() {
        let mut cache = QueryCache::new(100);
        insert(&mut cache, 1, 100);
        assert_eq!(cache.remove(1).unwrap().bytes, 100);
        assert!(cache.remove(1).is_none());
        assert!(insert(&mut cache, 2, 100).is_empty());
        assert!(insert(&mut cache, 3, 101).is_empty(), "too large to be cached");
        assert!(cache.has_answer(2) && !cache.has_answer(3));
    }
}
