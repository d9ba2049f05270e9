//! The registered queries: the queries of open views, and the queries whose answer is cached.
//!
//! [`QueryRegistry`] owns the subscription index and the times at which relative queries change
//! their meaning, so that every update of a query also updates both. Equal queries are registered
//! once. It is independent of views and answers: the engine removes a query without views and
//! without a cached answer.

use super::feed_reader::CollectionTable;
use super::subscription_index::{CollectionTarget, ItemTerms, QueryId, SubscriptionIndex};
use super::view_query::{ResolvedQuery, ViewQuery, is_time_dependent};
use crate::error::Error;
use crate::matcher::Matcher;
use crate::search_request::SearchRequest;
use larder_time::civil::Instant;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A query that views are open on, or whose answer is cached.
pub(super) struct RegisteredQuery {
    pub(super) view_query: Arc<ViewQuery>,
    pub(super) resolved: ResolvedQuery,
    pub(super) matcher: Matcher,
    pub(super) target: CollectionTarget,
    /// The number of registrations that were not released: threads that answer the query.
    registrations: usize,
    /// Whether a test of a change exceeded its budget. Then no change is tested: the query has no
    /// cached answer, and its views have ended.
    pub(super) is_too_expensive: bool,
}

/// A query that was parsed and prepared, and can be registered.
pub(super) struct PreparedQuery {
    view_query: ViewQuery,
    resolved: ResolvedQuery,
    matcher: Matcher,
}

impl PreparedQuery {
    /// Prepares a query at an instant. A long query takes a while, so this is done without the
    /// engine's lock.
    ///
    /// # Errors
    /// The query has a syntax error.
    pub(super) fn new(view_query: ViewQuery, now: Instant) -> Result<PreparedQuery, Error> {
        let resolved = view_query.resolve_at(now)?;
        let matcher = Matcher::new(&resolved.query);
        Ok(PreparedQuery { view_query, resolved, matcher })
    }
}

impl RegisteredQuery {
    pub(super) fn search_request(&self) -> SearchRequest {
        self.view_query.search_request(&self.resolved.query)
    }

    pub(super) fn is_time_dependent(&self) -> bool {
        is_time_dependent(&self.resolved.query)
    }
}

/// The registered queries by id, by text, by deadline and by the terms that their answers require.
#[derive(Default)]
pub(super) struct QueryRegistry {
    queries: Vec<Option<Box<RegisteredQuery>>>,
    free_ids: Vec<QueryId>,
    ids: HashMap<Arc<ViewQuery>, QueryId>,
    subscriptions: SubscriptionIndex,
    /// When each time-dependent query may change its meaning.
    deadlines: BTreeSet<(Instant, QueryId)>,
}

/// Returns the rows that a query is about.
fn collection_target(collections: &CollectionTable, query: &ViewQuery) -> CollectionTarget {
    match query.collection() {
        None => CollectionTarget::All,
        Some(name) => match collections.row_by_name(name) {
            Some(row) => CollectionTarget::Row(row),
            None => CollectionTarget::Missing,
        },
    }
}

impl QueryRegistry {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn get(&self, id: QueryId) -> Result<&RegisteredQuery, Error> {
        self.queries.get(id as usize).and_then(Option::as_deref).ok_or(Error::UnknownQuery { id })
    }

    fn get_mut(&mut self, id: QueryId) -> Result<&mut RegisteredQuery, Error> {
        let query = self.queries.get_mut(id as usize).and_then(Option::as_deref_mut);
        query.ok_or(Error::UnknownQuery { id })
    }

    /// Returns the ids of the queries that pass a test.
    pub(super) fn find_ids(
        &self,
        test: impl Fn(&RegisteredQuery) -> bool,
    ) -> impl Iterator<Item = QueryId> {
        let numbered = self.queries.iter().enumerate();
        numbered.filter_map(move |(id, query)| {
            query.as_ref().filter(|query| test(query)).map(|_| id as QueryId)
        })
    }

    /// Registers a query again if an equal one is registered. It stays until the registration is
    /// released.
    pub(super) fn register_known(&mut self, view_query: &ViewQuery) -> Option<QueryId> {
        let id = *self.ids.get(view_query)?;
        self.get_mut(id).ok()?.registrations += 1;
        Some(id)
    }

    /// Registers a query, as [`QueryRegistry::register_known`] if an equal one is registered.
    pub(super) fn register(
        &mut self,
        prepared: PreparedQuery,
        collections: &CollectionTable,
    ) -> QueryId {
        let PreparedQuery { view_query, resolved, matcher } = prepared;
        if let Some(id) = self.register_known(&view_query) {
            return id;
        }
        let (target, view_query) =
            (collection_target(collections, &view_query), Arc::new(view_query));
        let id = self.free_ids.pop().unwrap_or(self.queries.len() as QueryId);
        self.subscriptions.add(id, &resolved.query, target);
        self.deadlines.extend(resolved.valid_until.map(|deadline| (deadline, id)));
        self.ids.insert(Arc::clone(&view_query), id);
        let query = RegisteredQuery {
            view_query,
            resolved,
            matcher,
            target,
            registrations: 1,
            is_too_expensive: false,
        };
        match self.queries.get_mut(id as usize) {
            Some(slot) => *slot = Some(Box::new(query)),
            None => self.queries.push(Some(Box::new(query))),
        }
        id
    }

    /// Notes that a test of a change exceeded its budget.
    pub(super) fn mark_too_expensive(&mut self, id: QueryId) {
        if let Ok(query) = self.get_mut(id) {
            query.is_too_expensive = true;
        }
    }

    /// Ends a registration.
    pub(super) fn release(&mut self, id: QueryId) {
        if let Ok(query) = self.get_mut(id) {
            query.registrations = query.registrations.saturating_sub(1);
        }
    }

    /// Removes a query, unless it is being answered. Removing the last query releases the memory of
    /// the registry.
    pub(super) fn remove(&mut self, id: QueryId) {
        let Some(slot) = self.queries.get_mut(id as usize) else { return };
        let Some(query) = slot.take_if(|query| query.registrations == 0) else { return };
        self.subscriptions.remove(id, &query.resolved.query, query.target);
        if let Some(deadline) = query.resolved.valid_until {
            self.deadlines.remove(&(deadline, id));
        }
        self.ids.remove(&query.view_query);
        self.free_ids.push(id);
        if self.ids.is_empty() {
            *self = QueryRegistry::default();
        }
    }

    /// Adds the queries whose answers a change of an item may affect to `ids`.
    pub(super) fn find_affected(&self, item: &dyn ItemTerms, ids: &mut Vec<QueryId>) {
        self.subscriptions.find(item, ids);
    }

    /// Looks up the collections of all queries again.
    pub(super) fn rebind_collections(&mut self, collections: &CollectionTable) {
        for (id, query) in self.queries.iter_mut().enumerate() {
            let Some(query) = query else { continue };
            let target = collection_target(collections, &query.view_query);
            if target != query.target {
                let id = id as QueryId;
                self.subscriptions.remove(id, &query.resolved.query, query.target);
                self.subscriptions.add(id, &query.resolved.query, target);
                query.target = target;
            }
        }
    }

    /// The next instant at which a query may change its meaning.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Returns a query that may have changed its meaning by `now`.
    pub(super) fn find_due(&self, now: Instant) -> Option<QueryId> {
        let (deadline, id) = self.deadlines.first()?;
        (*deadline <= now).then_some(*id)
    }

    /// Replaces the resolved form of a query. If the resolved query is unchanged, it keeps its
    /// index entries and its matcher.
    pub(super) fn set_resolved(&mut self, id: QueryId, resolved: ResolvedQuery) {
        let Some(query) = self.queries.get_mut(id as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        if let Some(deadline) = query.resolved.valid_until {
            self.deadlines.remove(&(deadline, id));
        }
        self.deadlines.extend(resolved.valid_until.map(|deadline| (deadline, id)));
        if resolved.query != query.resolved.query {
            self.subscriptions.remove(id, &query.resolved.query, query.target);
            self.subscriptions.add(id, &resolved.query, query.target);
            query.matcher = Matcher::new(&resolved.query);
        }
        query.resolved = resolved;
    }

    /// Schedules a query to be resolved again at `deadline`, which replaces its former deadline.
    pub(super) fn set_deadline(&mut self, id: QueryId, deadline: Instant) -> Result<(), Error> {
        if let Some(previous) = self.get_mut(id)?.resolved.valid_until.replace(deadline) {
            self.deadlines.remove(&(previous, id));
        }
        self.deadlines.insert((deadline, id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::QueryContext;
    use crate::views::view_query::QuerySyntax;

    fn view_query(line: &str) -> ViewQuery {
        ViewQuery::new(QuerySyntax::Line, line, Arc::new(QueryContext::default()))
    }

    fn register(registry: &mut QueryRegistry, line: &str, now: i64) -> QueryId {
        let now = Instant::from_seconds_clamped(now);
        let prepared = PreparedQuery::new(view_query(line), now).unwrap();
        registry.register(prepared, &CollectionTable::default())
    }

    #[test]
    fn equal_queries_are_registered_once() {
        let mut registry = QueryRegistry::default();
        let (anna, bob) = (register(&mut registry, "anna", 0), register(&mut registry, "bob", 0));
        assert_ne!(anna, bob);
        assert_eq!(register(&mut registry, "anna", 9), anna);
        registry.remove(anna);
        assert!(registry.get(anna).is_ok(), "a query that is being answered stays");
        registry.release(anna);
        registry.remove(anna);
        assert!(registry.get(anna).is_ok(), "another thread answers it");
        registry.release(anna);
        registry.remove(anna);
        assert!(matches!(registry.get(anna), Err(Error::UnknownQuery { id }) if id == anna));
        assert_eq!(register(&mut registry, "carl", 0), anna, "a free id is used again");
    }

    #[test]
    fn a_query_of_a_missing_collection_is_bound_when_it_appears() {
        let mut registry = QueryRegistry::default();
        let (now, missing) = (Instant::from_seconds_clamped(0), CollectionTable::default());
        let query = view_query("anna").with_collection("home");
        let id = registry.register(PreparedQuery::new(query, now).unwrap(), &missing);
        assert_eq!(registry.get(id).unwrap().target, CollectionTarget::Missing);
        let row = larder_store::CollectionRow::from_number(7);
        registry.rebind_collections(&CollectionTable::from_rows([(row, "home")]));
        assert_eq!(registry.get(id).unwrap().target, CollectionTarget::Row(row));
    }

    #[test]
    fn a_relative_query_is_due_at_the_end_of_its_day() {
        let mut registry = QueryRegistry::default();
        register(&mut registry, "anna", 0);
        assert_eq!(registry.next_deadline(), None);
        let today = register(&mut registry, "when:today", 0);
        let midnight = registry.next_deadline().unwrap();
        assert_eq!(midnight.seconds(), 86_400);
        assert_eq!(registry.find_due(Instant::from_seconds_clamped(86_399)), None);
        assert_eq!(registry.find_due(midnight), Some(today));
        let resolved = registry.get(today).unwrap().view_query.resolve_at(midnight).unwrap();
        registry.set_resolved(today, resolved);
        assert_eq!(registry.next_deadline().unwrap().seconds(), 2 * 86_400);
    }
}
