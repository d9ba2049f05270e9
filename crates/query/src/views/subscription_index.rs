//! Who has to look at a change: questions by what their answers must have.
//!
//! A question is filed under something without which no item answers it: a UID, a value, the
//! beginning of one, three letters, or a window of time; of several the rarest. An item that
//! changed has few of these, so of ten thousand questions those few are asked that may be told
//! something. What has no such thing is asked each time. It is no index of items, and what it names
//! is tested; it may name too many, and leaves none out.

use super::required_terms::{RequiredTerm, for_each_trigram, required_terms};
use crate::query::Query;
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_format::fold::{fold, split_words};
use larder_store::{CollectionType, Kind, TimeTarget};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::slice;

/// The number of a question.
pub(super) type QueryId = u32;

/// What an item has, and had, of which a question may be filed under.
pub(super) trait ItemProbe {
    /// The collection that it is in, and its kind.
    fn scope(&self) -> (i64, Kind);
    /// Gives the values of a field.
    fn for_each_value(&self, field: &'static Field, each: &mut dyn FnMut(&str));
    /// The UIDs by which it goes.
    fn uids(&self) -> [Option<&str>; 4];
    /// From when to when windows may meet it.
    fn time_spans(&self, what: TimeTarget) -> [Option<(i64, i64)>; 2];
}

/// Where a question is put: a row of a collection, and a kind.
type QueryScope = (Option<i64>, Option<Kind>);

/// All questions, by what has to be there for them to be asked.
#[derive(Debug, Default)]
pub(super) struct SubscriptionIndex {
    scopes: HashMap<QueryScope, ScopeSubscriptions>,
}

/// Questions that are put to one place.
#[derive(Debug, Default)]
struct ScopeSubscriptions {
    uids: HashMap<String, QueryIdSet>,
    fields: BTreeMap<u16, FieldSubscriptions>,
    trigrams: TrigramSubscriptions,
    words: FxHashMap<String, QueryIdSet>,
    occurrences: TimeRangeSubscriptions,
    alarms: TimeRangeSubscriptions,
    /// Those that are asked each time.
    unindexed: Vec<QueryId>,
}

/// Questions by three letters in a row. An item has hundreds of these, and nobody asks for most of
/// them.
#[derive(Debug, Default)]
struct TrigramSubscriptions {
    /// A bit for each that is, or was, asked for, and for others that fall on the same: what has
    /// none needs no look at more memory.
    bloom_bits: Vec<u64>,
    queries: FxHashMap<u64, QueryIdSet>,
}

/// Questions about the values of one field.
#[derive(Debug)]
struct FieldSubscriptions {
    field: &'static Field,
    /// Whose field it is.
    family: CollectionType,
    values: HashMap<String, QueryIdSet>,
    prefixes: PrefixSubscriptions,
    /// For so many questions its letters and words are looked at.
    text_queries: usize,
}

/// Questions by the beginning of a value, and how long those are, each for so many questions: there
/// are few lengths, and a value is looked up by its beginning of each.
#[derive(Debug, Default)]
struct PrefixSubscriptions {
    lengths: BTreeMap<usize, usize>,
    queries: FxHashMap<String, QueryIdSet>,
}

/// Who is filed under one thing: mostly one question.
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

    fn add(&mut self, asked: QueryId) {
        match self {
            QueryIdSet::One(one) => *self = QueryIdSet::Many(vec![*one, asked]),
            QueryIdSet::Many(many) => many.push(asked),
        }
    }

    /// False: nobody is left.
    fn remove(&mut self, asked: QueryId) -> bool {
        match self {
            QueryIdSet::One(one) => *one != asked,
            QueryIdSet::Many(many) => {
                if let Some(at) = many.iter().position(|other| *other == asked) {
                    many.swap_remove(at);
                }
                !many.is_empty()
            }
        }
    }
}

fn insert_query<K: Hash + Eq, S: BuildHasher>(
    map: &mut HashMap<K, QueryIdSet, S>,
    key: K,
    asked: QueryId,
) {
    map.entry(key).and_modify(|of| of.add(asked)).or_insert(QueryIdSet::One(asked));
}

fn remove_query<K, Q, S>(map: &mut HashMap<K, QueryIdSet, S>, key: &Q, asked: QueryId)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if map.get_mut(key).is_some_and(|of| !of.remove(asked)) {
        map.remove(key);
    }
}

fn extend_queries<K, Q, S>(found: &mut Vec<QueryId>, map: &HashMap<K, QueryIdSet, S>, key: &Q)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if let Some(of) = map.get(key) {
        found.extend_from_slice(of.as_slice());
    }
}

impl SubscriptionIndex {
    /// Files a question, which is put to this collection.
    pub(super) fn add(&mut self, asked: QueryId, query: &Query, collection: Option<i64>) {
        self.for_each_term(query, collection, &mut |filed, way| filed.add(way, asked));
    }

    pub(super) fn remove(&mut self, asked: QueryId, query: &Query, collection: Option<i64>) {
        let place =
            self.for_each_term(query, collection, &mut |filed, way| filed.remove(way, asked));
        if self.scopes.get(&place).is_some_and(ScopeSubscriptions::is_empty) {
            self.scopes.remove(&place);
        }
    }

    /// Gives where a question is filed, and under what; `None`: it is asked each time.
    fn for_each_term(
        &mut self,
        query: &Query,
        collection: Option<i64>,
        each: &mut dyn FnMut(&mut ScopeSubscriptions, Option<&RequiredTerm>),
    ) -> QueryScope {
        let kind = query.required_kind();
        let place = (collection, kind);
        let filed = self.scopes.entry(place).or_default();
        match required_terms(query, kind) {
            Some(ways) => ways.iter().for_each(|way| each(filed, Some(way))),
            None => each(filed, None),
        }
        place
    }

    /// Adds the questions to which an item that has this may matter.
    pub(super) fn find(&self, item: &dyn ItemProbe, found: &mut Vec<QueryId>) {
        let (collection, kind) = item.scope();
        for place in [
            (None, None),
            (Some(collection), None),
            (None, Some(kind)),
            (Some(collection), Some(kind)),
        ] {
            if let Some(filed) = self.scopes.get(&place) {
                filed.find(item, kind.collection_type(), found);
            }
        }
    }
}

impl ScopeSubscriptions {
    fn add(&mut self, way: Option<&RequiredTerm>, asked: QueryId) {
        match way {
            None => self.unindexed.push(asked),
            Some(RequiredTerm::Uid(uid)) => insert_query(&mut self.uids, uid.clone(), asked),
            Some(RequiredTerm::Value(field, text)) => {
                insert_query(&mut self.field_mut(field).values, text.clone(), asked);
            }
            Some(RequiredTerm::Prefix(field, text)) => {
                self.field_mut(field).prefixes.add(text, asked);
            }
            Some(RequiredTerm::Trigram(fields, three)) => {
                self.trigrams.add(*three, asked);
                self.retain_fields(fields);
            }
            Some(RequiredTerm::WordPrefix(fields, start)) => {
                insert_query(&mut self.words, start.clone(), asked);
                self.retain_fields(fields);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Occurrences, from, to)) => {
                self.occurrences.add(*from, *to, asked);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Alarms, from, to)) => {
                self.alarms.add(*from, *to, asked);
            }
        }
    }

    fn remove(&mut self, way: Option<&RequiredTerm>, asked: QueryId) {
        match way {
            None => self.unindexed.retain(|other| *other != asked),
            Some(RequiredTerm::Uid(uid)) => remove_query(&mut self.uids, uid, asked),
            Some(RequiredTerm::Value(field, text)) => {
                self.update_field(field, |of| remove_query(&mut of.values, text, asked));
            }
            Some(RequiredTerm::Prefix(field, text)) => {
                self.update_field(field, |of| of.prefixes.remove(text, asked));
            }
            Some(RequiredTerm::Trigram(fields, three)) => {
                self.trigrams.remove(*three, asked);
                self.release_fields(fields);
            }
            Some(RequiredTerm::WordPrefix(fields, start)) => {
                remove_query(&mut self.words, start, asked);
                self.release_fields(fields);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Occurrences, from, to)) => {
                self.occurrences.remove(*from, *to, asked);
            }
            Some(RequiredTerm::TimeRange(TimeTarget::Alarms, from, to)) => {
                self.alarms.remove(*from, *to, asked);
            }
        }
    }

    fn field_mut(&mut self, field: &'static Field) -> &mut FieldSubscriptions {
        self.fields.entry(field.id).or_insert_with(|| {
            let of_calendars = CALENDAR_FIELDS.iter().any(|of| of.id == field.id);
            let family =
                if of_calendars { CollectionType::Calendar } else { CollectionType::AddressBook };
            let (values, beginnings) = (HashMap::new(), PrefixSubscriptions::default());
            FieldSubscriptions { field, family, values, prefixes: beginnings, text_queries: 0 }
        })
    }

    fn retain_fields(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.field_mut(field).text_queries += 1;
        }
    }

    fn release_fields(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.update_field(field, |of| of.text_queries = of.text_queries.saturating_sub(1));
        }
    }

    /// Takes something from a field, which goes when nobody asks for it any more.
    fn update_field(&mut self, field: &Field, change: impl FnOnce(&mut FieldSubscriptions)) {
        let Some(of) = self.fields.get_mut(&field.id) else { return };
        change(of);
        if of.values.is_empty() && of.prefixes.queries.is_empty() && of.text_queries == 0 {
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

    fn find(&self, item: &dyn ItemProbe, family: CollectionType, found: &mut Vec<QueryId>) {
        found.extend_from_slice(&self.unindexed);
        if !self.uids.is_empty() {
            let known = item.uids().into_iter().flatten();
            known.for_each(|uid| extend_queries(found, &self.uids, uid));
        }
        for (windows, what) in
            [(&self.occurrences, TimeTarget::Occurrences), (&self.alarms, TimeTarget::Alarms)]
        {
            if !windows.is_empty() {
                let spans = item.time_spans(what).into_iter().flatten();
                spans.for_each(|(from, to)| windows.find(from, to, found));
            }
        }
        for of in self.fields.values().filter(|of| of.family == family) {
            item.for_each_value(of.field, &mut |value| self.find_by_value(of, &fold(value), found));
        }
    }

    fn find_by_value(&self, of: &FieldSubscriptions, folded: &str, found: &mut Vec<QueryId>) {
        if !of.values.is_empty() {
            extend_queries(found, &of.values, folded);
        }
        of.prefixes.find(folded, found);
        if of.text_queries > 0 {
            self.trigrams.find(folded, found);
            if !self.words.is_empty() {
                find_words(&self.words, folded, found);
            }
        }
    }
}

impl TrigramSubscriptions {
    /// 4 KiB of bits, which stay in the nearest memory.
    const FILTER_WORDS: usize = 512;

    /// Three letters in a number.
    fn trigram_key(three: [char; 3]) -> u64 {
        three.into_iter().fold(0, |row, c| row << 21 | u64::from(u32::from(c)))
    }

    /// The word that has its bit, and the bit: the highest bits of a product with the golden ratio,
    /// in which all bits of the row have a part.
    fn filter_bit(row: u64) -> (usize, u64) {
        let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (64 - 6 - TrigramSubscriptions::FILTER_WORDS.ilog2());
        (mixed as usize / 64, 1 << (mixed % 64))
    }

    fn add(&mut self, three: [char; 3], asked: QueryId) {
        let row = TrigramSubscriptions::trigram_key(three);
        self.bloom_bits.resize(TrigramSubscriptions::FILTER_WORDS, 0);
        let (word, bit) = TrigramSubscriptions::filter_bit(row);
        if let Some(word) = self.bloom_bits.get_mut(word) {
            *word |= bit;
        }
        insert_query(&mut self.queries, row, asked);
    }

    fn remove(&mut self, three: [char; 3], asked: QueryId) {
        remove_query(&mut self.queries, &TrigramSubscriptions::trigram_key(three), asked);
        if self.queries.is_empty() {
            *self = TrigramSubscriptions::default();
        }
    }

    fn find(&self, folded: &str, found: &mut Vec<QueryId>) {
        if self.queries.is_empty() {
            return;
        }
        for_each_trigram(folded, &mut |three| {
            let row = TrigramSubscriptions::trigram_key(three);
            let (word, bit) = TrigramSubscriptions::filter_bit(row);
            if self.bloom_bits.get(word).is_some_and(|word| word & bit != 0) {
                extend_queries(found, &self.queries, &row);
            }
        });
    }
}

impl PrefixSubscriptions {
    fn add(&mut self, text: &str, asked: QueryId) {
        *self.lengths.entry(text.len()).or_default() += 1;
        insert_query(&mut self.queries, text.to_string(), asked);
    }

    fn remove(&mut self, text: &str, asked: QueryId) {
        if let Some(number) = self.lengths.get_mut(&text.len()) {
            *number -= 1;
            if *number == 0 {
                self.lengths.remove(&text.len());
            }
        }
        remove_query(&mut self.queries, text, asked);
    }

    fn find(&self, folded: &str, found: &mut Vec<QueryId>) {
        for (length, _) in self.lengths.range(..=folded.len()) {
            if let Some(begun) = folded.get(..*length) {
                extend_queries(found, &self.queries, begun);
            }
        }
    }
}

/// Short beginnings of each word: a letter, and two.
fn find_words(starts: &FxHashMap<String, QueryIdSet>, folded: &str, found: &mut Vec<QueryId>) {
    for word in split_words(folded) {
        for (at, c) in word.char_indices().take(2) {
            extend_queries(found, starts, word.get(..at + c.len_utf8()).unwrap_or(word));
        }
    }
}

/// Windows by their length and beginning, so that those which a span reaches into lie close
/// together.
#[derive(Debug, Default)]
struct TimeRangeSubscriptions {
    /// By the power of two that is no shorter.
    classes: BTreeMap<u32, BTreeMap<(i64, QueryId), i64>>,
}

impl TimeRangeSubscriptions {
    fn length_class(from: i64, to: i64) -> u32 {
        64 - (to.saturating_sub(from).max(1) as u64 - 1).leading_zeros()
    }

    fn add(&mut self, from: i64, to: i64, asked: QueryId) {
        let class = self.classes.entry(TimeRangeSubscriptions::length_class(from, to)).or_default();
        // One question may have several that begin alike; the longest finds for all of them.
        class.entry((from, asked)).and_modify(|end| *end = to.max(*end)).or_insert(to);
    }

    fn remove(&mut self, from: i64, to: i64, asked: QueryId) {
        let class = TimeRangeSubscriptions::length_class(from, to);
        if let Some(windows) = self.classes.get_mut(&class) {
            windows.remove(&(from, asked));
            if windows.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Those that overlap with this stretch.
    fn find(&self, from: i64, to: i64, found: &mut Vec<QueryId>) {
        for (class, windows) in &self.classes {
            let longest = 1i64.checked_shl(*class).filter(|length| *length > 0).unwrap_or(i64::MAX);
            let first = from.saturating_sub(longest);
            for ((_, asked), end) in
                windows.range((first, QueryId::MIN)..(to.saturating_add(1), QueryId::MIN))
            {
                if *end >= from {
                    found.push(*asked);
                }
            }
        }
    }
}
