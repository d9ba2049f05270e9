//! The subscription index: which queries a changed item may concern.
//!
//! A query is indexed under a term that every item in its answer has: a UID, a value, the beginning
//! of a value, a trigram, or a time range. If there are several, the most selective one is used. An
//! item has few terms, so a change leads to a few of ten thousand queries, which are then verified.
//! A query without such a term is verified against every change. The index has false positives and
//! no false negatives. It is not an index of items.

use super::required_terms::{RequiredTerm, for_each_trigram, required_terms};
use crate::query::Query;
use larder_format::field::Field;
use larder_format::fold::{fold, split_words};
use larder_store::{CollectionRow, CollectionType, Kind, TimeTarget};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::slice;

/// The id of a registered query.
pub(super) type QueryId = u32;

/// The collections that a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CollectionTarget {
    /// All collections.
    All,
    /// The collection in this row.
    Row(CollectionRow),
    /// A collection that does not exist.
    Missing,
}

impl CollectionTarget {
    /// Returns whether the query is about the collection in this row.
    pub(super) fn has_row(self, row: CollectionRow) -> bool {
        match self {
            CollectionTarget::All => true,
            CollectionTarget::Row(target) => target == row,
            CollectionTarget::Missing => false,
        }
    }
}

/// The terms of a changed item, before and after the change.
pub(super) trait ItemTerms {
    /// Returns the row of the collection, and the kind.
    fn scope(&self) -> (CollectionRow, Kind);
    /// Calls `visit` with the values of a field.
    fn for_each_value(&self, field: &'static Field, visit: &mut dyn FnMut(&str));
    /// Returns the UIDs under which the item is found.
    fn uids(&self) -> [Option<&str>; 4];
    /// Returns the time spans that the item covers.
    fn time_spans(&self, target: TimeTarget) -> [Option<(i64, i64)>; 2];
}

/// The items that a query can match: the items of one kind in one collection.
type QueryPartition = (CollectionTarget, Option<Kind>);

/// The registered queries by the terms that their answers require.
#[derive(Debug, Default)]
pub(super) struct SubscriptionIndex {
    scopes: HashMap<QueryPartition, PartitionSubscriptions>,
}

/// The queries of one scope.
#[derive(Debug, Default)]
struct PartitionSubscriptions {
    uids: HashMap<String, QueryIdSet>,
    fields: BTreeMap<u16, FieldSubscriptions>,
    trigrams: TrigramSubscriptions,
    words: FxHashMap<String, QueryIdSet>,
    occurrences: TimeRangeSubscriptions,
    alarms: TimeRangeSubscriptions,
    /// The queries without a required term, which every change may concern.
    unindexed: Vec<QueryId>,
}

/// Queries by trigram. An item has hundreds of trigrams, and most of them are in no query.
#[derive(Debug, Default)]
struct TrigramSubscriptions {
    /// A Bloom filter of the trigrams that were ever added: most lookups end here, without another
    /// memory access.
    bloom_bits: Vec<u64>,
    queries: FxHashMap<u64, QueryIdSet>,
}

/// The queries about the values of one field.
#[derive(Debug)]
struct FieldSubscriptions {
    field: &'static Field,
    /// The type of the collections whose items have the field.
    collection_type: CollectionType,
    values: HashMap<String, QueryIdSet>,
    prefixes: PrefixSubscriptions,
    /// The number of queries for which the trigrams and words of the field are looked up.
    text_queries: usize,
}

/// Queries by the beginning of a value. There are few lengths of beginnings, so a value is looked
/// up once for each length.
#[derive(Debug, Default)]
struct PrefixSubscriptions {
    /// The number of queries by the length of their beginning.
    lengths: BTreeMap<usize, usize>,
    queries: FxHashMap<String, QueryIdSet>,
}

/// The queries under one term: mostly one.
#[derive(Debug)]
enum QueryIdSet {
    One(QueryId),
    Many(Vec<QueryId>),
}

impl QueryIdSet {
    fn as_slice(&self) -> &[QueryId] {
        match self {
            QueryIdSet::One(one) => slice::from_ref(one),
            QueryIdSet::Many(many) => many,
        }
    }

    fn add(&mut self, query: QueryId) {
        match self {
            QueryIdSet::One(one) => *self = QueryIdSet::Many(vec![*one, query]),
            QueryIdSet::Many(many) => many.push(query),
        }
    }

    /// Removes a query. Returns whether the set is empty now.
    fn remove(&mut self, query: QueryId) -> bool {
        match self {
            QueryIdSet::One(one) => *one == query,
            QueryIdSet::Many(many) => {
                if let Some(at) = many.iter().position(|other| *other == query) {
                    many.swap_remove(at);
                }
                many.is_empty()
            }
        }
    }
}

fn insert_query<K: Hash + Eq, S: BuildHasher>(
    map: &mut HashMap<K, QueryIdSet, S>,
    key: K,
    query: QueryId,
) {
    map.entry(key).and_modify(|set| set.add(query)).or_insert(QueryIdSet::One(query));
}

fn remove_query<K, Q, S>(map: &mut HashMap<K, QueryIdSet, S>, key: &Q, query: QueryId)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if map.get_mut(key).is_some_and(|set| set.remove(query)) {
        map.remove(key);
    }
}

fn extend_queries<K, Q, S>(found: &mut Vec<QueryId>, map: &HashMap<K, QueryIdSet, S>, key: &Q)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if let Some(set) = map.get(key) {
        found.extend_from_slice(set.as_slice());
    }
}

impl SubscriptionIndex {
    /// Adds a query under the terms that its answer requires.
    pub(super) fn add(&mut self, id: QueryId, query: &Query, target: CollectionTarget) {
        self.for_each_term(query, target, &mut |scope, term| scope.add(term, id));
    }

    /// Removes a query that was added with the same arguments.
    pub(super) fn remove(&mut self, id: QueryId, query: &Query, target: CollectionTarget) {
        let scope = self.for_each_term(query, target, &mut |scope, term| scope.remove(term, id));
        if self.scopes.get(&scope).is_some_and(PartitionSubscriptions::is_empty) {
            self.scopes.remove(&scope);
        }
    }

    /// Calls `visit` with the subscriptions of the query's scope and each required term; once with
    /// `None` if there is no such term. Returns the scope.
    fn for_each_term(
        &mut self,
        query: &Query,
        target: CollectionTarget,
        visit: &mut dyn FnMut(&mut PartitionSubscriptions, Option<&RequiredTerm>),
    ) -> QueryPartition {
        let kind = query.required_kind();
        let scope = (target, kind);
        let subscriptions = self.scopes.entry(scope).or_default();
        match required_terms(query, kind) {
            Some(terms) => terms.iter().for_each(|term| visit(subscriptions, Some(term))),
            None => visit(subscriptions, None),
        }
        scope
    }

    /// Adds the queries that a change of an item may concern to `found`, some perhaps twice.
    pub(super) fn find(&self, item: &dyn ItemTerms, found: &mut Vec<QueryId>) {
        let (collection, kind) = item.scope();
        for target in [CollectionTarget::All, CollectionTarget::Row(collection)] {
            for scope in [(target, None), (target, Some(kind))] {
                if let Some(subscriptions) = self.scopes.get(&scope) {
                    subscriptions.find(item, kind.collection_type(), found);
                }
            }
        }
    }
}

impl PartitionSubscriptions {
    fn add(&mut self, term: Option<&RequiredTerm>, query: QueryId) {
        match term {
            None => self.unindexed.push(query),
            Some(RequiredTerm::Uid(uid)) => insert_query(&mut self.uids, uid.clone(), query),
            Some(RequiredTerm::Value(field, text)) => {
                insert_query(&mut self.field_mut(field).values, text.clone(), query);
            }
            Some(RequiredTerm::Prefix(field, text)) => {
                self.field_mut(field).prefixes.add(text, query);
            }
            Some(RequiredTerm::Trigram(fields, trigram)) => {
                self.trigrams.add(*trigram, query);
                self.retain_fields(fields);
            }
            Some(RequiredTerm::WordPrefix(fields, prefix)) => {
                insert_query(&mut self.words, prefix.clone(), query);
                self.retain_fields(fields);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Occurrences, from, to)) => {
                self.occurrences.add(*from, *to, query);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Alarms, from, to)) => {
                self.alarms.add(*from, *to, query);
            }
        }
    }

    fn remove(&mut self, term: Option<&RequiredTerm>, query: QueryId) {
        match term {
            None => self.unindexed.retain(|other| *other != query),
            Some(RequiredTerm::Uid(uid)) => remove_query(&mut self.uids, uid, query),
            Some(RequiredTerm::Value(field, text)) => {
                self.update_field(field, |values| remove_query(&mut values.values, text, query));
            }
            Some(RequiredTerm::Prefix(field, text)) => {
                self.update_field(field, |values| values.prefixes.remove(text, query));
            }
            Some(RequiredTerm::Trigram(fields, trigram)) => {
                self.trigrams.remove(*trigram, query);
                self.release_fields(fields);
            }
            Some(RequiredTerm::WordPrefix(fields, prefix)) => {
                remove_query(&mut self.words, prefix, query);
                self.release_fields(fields);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Occurrences, from, to)) => {
                self.occurrences.remove(*from, *to, query);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Alarms, from, to)) => {
                self.alarms.remove(*from, *to, query);
            }
        }
    }

    fn field_mut(&mut self, field: &'static Field) -> &mut FieldSubscriptions {
        self.fields.entry(field.id).or_insert_with(|| FieldSubscriptions {
            field,
            collection_type: CollectionType::from_field(field),
            values: HashMap::new(),
            prefixes: PrefixSubscriptions::default(),
            text_queries: 0,
        })
    }

    fn retain_fields(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.field_mut(field).text_queries += 1;
        }
    }

    fn release_fields(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.update_field(field, |subscriptions| {
                subscriptions.text_queries = subscriptions.text_queries.saturating_sub(1);
            });
        }
    }

    /// Changes the subscriptions of a field, and removes them if they are then empty.
    fn update_field(&mut self, field: &Field, change: impl FnOnce(&mut FieldSubscriptions)) {
        let Some(left) = self.fields.get_mut(&field.id) else { return };
        change(left);
        if left.values.is_empty() && left.prefixes.queries.is_empty() && left.text_queries == 0 {
            self.fields.remove(&field.id);
        }
    }

    fn is_empty(&self) -> bool {
        self.uids.is_empty()
            && self.fields.is_empty()
            && self.occurrences.is_empty()
            && self.alarms.is_empty()
            && self.unindexed.is_empty()
    }

    fn find(
        &self,
        item: &dyn ItemTerms,
        collection_type: CollectionType,
        found: &mut Vec<QueryId>,
    ) {
        found.extend_from_slice(&self.unindexed);
        if !self.uids.is_empty() {
            let uids = item.uids().into_iter().flatten();
            uids.for_each(|uid| extend_queries(found, &self.uids, uid));
        }
        for (time_ranges, target) in
            [(&self.occurrences, TimeTarget::Occurrences), (&self.alarms, TimeTarget::Alarms)]
        {
            if !time_ranges.is_empty() {
                let spans = item.time_spans(target).into_iter().flatten();
                spans.for_each(|(from, to)| time_ranges.find(from, to, found));
            }
        }
        for field in self.fields.values().filter(|field| field.collection_type == collection_type) {
            item.for_each_value(field.field, &mut |value| {
                self.find_by_value(field, &fold(value), found);
            });
        }
    }

    fn find_by_value(&self, field: &FieldSubscriptions, folded: &str, found: &mut Vec<QueryId>) {
        if !field.values.is_empty() {
            extend_queries(found, &field.values, folded);
        }
        field.prefixes.find(folded, found);
        if field.text_queries > 0 {
            self.trigrams.find(folded, found);
            if !self.words.is_empty() {
                find_words(&self.words, folded, found);
            }
        }
    }
}

impl TrigramSubscriptions {
    /// The words of the Bloom filter: 4 KiB, which stay in the first-level cache.
    const FILTER_WORDS: usize = 512;

    /// Packs a trigram into a number.
    fn trigram_key(trigram: [char; 3]) -> u64 {
        trigram.into_iter().fold(0, |key, c| key << 21 | u64::from(u32::from(c)))
    }

    /// Returns the word of the filter and the bit in it: the highest bits of a product with the
    /// golden ratio, which depend on all bits of the key.
    fn filter_bit(key: u64) -> (usize, u64) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (64 - 6 - TrigramSubscriptions::FILTER_WORDS.ilog2());
        (mixed as usize / 64, 1 << (mixed % 64))
    }

    fn add(&mut self, trigram: [char; 3], query: QueryId) {
        let key = TrigramSubscriptions::trigram_key(trigram);
        self.bloom_bits.resize(TrigramSubscriptions::FILTER_WORDS, 0);
        let (word, bit) = TrigramSubscriptions::filter_bit(key);
        if let Some(word) = self.bloom_bits.get_mut(word) {
            *word |= bit;
        }
        insert_query(&mut self.queries, key, query);
    }

    fn remove(&mut self, trigram: [char; 3], query: QueryId) {
        remove_query(&mut self.queries, &TrigramSubscriptions::trigram_key(trigram), query);
        if self.queries.is_empty() {
            *self = TrigramSubscriptions::default();
        }
    }

    fn find(&self, folded: &str, found: &mut Vec<QueryId>) {
        if self.queries.is_empty() {
            return;
        }
        for_each_trigram(folded, &mut |trigram| {
            let key = TrigramSubscriptions::trigram_key(trigram);
            let (word, bit) = TrigramSubscriptions::filter_bit(key);
            if self.bloom_bits.get(word).is_some_and(|word| word & bit != 0) {
                extend_queries(found, &self.queries, &key);
            }
        });
    }
}

impl PrefixSubscriptions {
    fn add(&mut self, text: &str, query: QueryId) {
        *self.lengths.entry(text.len()).or_default() += 1;
        insert_query(&mut self.queries, text.to_string(), query);
    }

    fn remove(&mut self, text: &str, query: QueryId) {
        if let Some(count) = self.lengths.get_mut(&text.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&text.len());
            }
        }
        remove_query(&mut self.queries, text, query);
    }

    fn find(&self, folded: &str, found: &mut Vec<QueryId>) {
        for (length, _) in self.lengths.range(..=folded.len()) {
            if let Some(prefix) = folded.get(..*length) {
                extend_queries(found, &self.queries, prefix);
            }
        }
    }
}

/// Looks up the first letter and the first two letters of each word.
fn find_words(prefixes: &FxHashMap<String, QueryIdSet>, folded: &str, found: &mut Vec<QueryId>) {
    for word in split_words(folded) {
        for (at, c) in word.char_indices().take(2) {
            extend_queries(found, prefixes, word.get(..at + c.len_utf8()).unwrap_or(word));
        }
    }
}

/// Time ranges by length and start, so that the ranges that overlap with a span are close together.
#[derive(Debug, Default)]
struct TimeRangeSubscriptions {
    /// Grouped by the smallest power of two that is at least the length of the range; within a
    /// group, keyed by start and query; the value is the end.
    classes: BTreeMap<u32, BTreeMap<(i64, QueryId), i64>>,
}

impl TimeRangeSubscriptions {
    fn length_class(from: i64, to: i64) -> u32 {
        64 - (to.saturating_sub(from).max(1) as u64 - 1).leading_zeros()
    }

    fn add(&mut self, from: i64, to: i64, query: QueryId) {
        let class = self.classes.entry(TimeRangeSubscriptions::length_class(from, to)).or_default();
        // A query may have several ranges with the same start; the longest one serves for all.
        class.entry((from, query)).and_modify(|end| *end = to.max(*end)).or_insert(to);
    }

    fn remove(&mut self, from: i64, to: i64, query: QueryId) {
        let class = TimeRangeSubscriptions::length_class(from, to);
        if let Some(time_ranges) = self.classes.get_mut(&class) {
            time_ranges.remove(&(from, query));
            if time_ranges.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Adds the queries whose time ranges overlap with this span to `found`.
    fn find(&self, from: i64, to: i64, found: &mut Vec<QueryId>) {
        for (class, time_ranges) in &self.classes {
            let longest = 1i64.checked_shl(*class).filter(|length| *length > 0).unwrap_or(i64::MAX);
            let first = from.saturating_sub(longest);
            for ((_, query), end) in
                time_ranges.range((first, QueryId::MIN)..(to.saturating_add(1), QueryId::MIN))
            {
                if *end >= from {
                    found.push(*query);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_format::contact::Contact;

    /// A contact in the collection of row 1.
    struct ContactTerms(Contact<'static>);

    impl ItemTerms for ContactTerms {
        fn scope(&self) -> (CollectionRow, Kind) {
            (CollectionRow::from_number(1), Kind::Contact)
        }

        fn for_each_value(&self, field: &'static Field, visit: &mut dyn FnMut(&str)) {
            self.0.values(field).iter().for_each(|value| visit(value));
        }

        fn uids(&self) -> [Option<&str>; 4] {
            [Some("anna-1"), None, None, None]
        }

        fn time_spans(&self, _: TimeTarget) -> [Option<(i64, i64)>; 2] {
            [None; 2]
        }
    }

    fn find(index: &SubscriptionIndex) -> Vec<QueryId> {
        let card = b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Anna Schmidt\r\nEND:VCARD\r\n";
        let mut found = Vec::new();
        index.find(&ContactTerms(Contact::parse(card)), &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn a_query_is_found_by_what_its_answer_requires() {
        let mut index = SubscriptionIndex::default();
        let lines = ["anna", "schm", "bob", "an", "uid:=anna-1", "-bob"];
        let mut queries = lines.map(|line| Query::parse(line).unwrap()).to_vec();
        queries.push(Query::Kind(Kind::Event));
        for (id, query) in queries.iter().enumerate() {
            index.add(id as QueryId, query, CollectionTarget::All);
        }
        assert_eq!(find(&index), [0, 1, 3, 4, 5], "all but those on Bob and on events");
        for (id, query) in queries.iter().enumerate() {
            index.remove(id as QueryId, query, CollectionTarget::All);
        }
        assert!(find(&index).is_empty());
        assert!(index.scopes.is_empty(), "the last query leaves nothing behind");
    }

    #[test]
    fn a_query_is_found_in_its_collection_only() {
        let mut index = SubscriptionIndex::default();
        let query = Query::parse("anna").unwrap();
        let row = |number| CollectionTarget::Row(CollectionRow::from_number(number));
        let targets = [row(1), row(2), CollectionTarget::Missing];
        for (id, target) in targets.into_iter().enumerate() {
            index.add(id as QueryId, &query, target);
        }
        assert_eq!(find(&index), [0]);
    }

    #[test]
    fn a_time_range_is_found_by_every_span_that_overlaps_with_it() {
        let mut ranges = TimeRangeSubscriptions::default();
        for (id, (from, to)) in [(0, 10), (5, 6), (100, 2_000), (9, 50)].into_iter().enumerate() {
            ranges.add(from, to, id as QueryId);
        }
        let find = |from, to| {
            let mut found = Vec::new();
            ranges.find(from, to, &mut found);
            found.sort_unstable();
            found
        };
        assert_eq!(find(7, 8), [0]);
        assert_eq!(find(6, 9), [0, 1, 3]);
        assert_eq!(find(1_999, 1_999), [2]);
        assert!(find(51, 99).is_empty());
    }
}
