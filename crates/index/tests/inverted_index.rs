//! The inverted index, compared with a model: a map from items to their terms.

use crate::memory_pages::MemoryPages;
use larder_index::{
    BooleanQuery, CorruptBlock, IndexId, Matches, OVERSIZED_ITEMS_TERM, ReadSegments as _,
    SegmentBuffer, TermSet, delete_all, find_matches, for_each_posting, force_merge_step,
    merge_all,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const TEXT: IndexId = IndexId(1);
const OTHER: IndexId = IndexId(2);

/// A query whose external lookups are given by their items.
type Query = BooleanQuery<Vec<i64>>;

/// Writes the term of a packed number: `0x05` and its eight bytes.
fn unpack(number: u64, term: &mut Vec<u8>) {
    term.clear();
    term.push(5);
    term.extend(number.to_be_bytes());
}

fn packed_term(number: u64) -> Vec<u8> {
    let mut term = Vec::new();
    unpack(number, &mut term);
    term
}

/// The state of one item in the model.
#[derive(Debug, Clone, Default, PartialEq)]
struct ModelItem {
    terms: BTreeSet<Vec<u8>>,
    is_oversized: bool,
    /// The batch that last changed it.
    seq: i64,
}

/// A change of one item: its plain and packed terms, and whether it is oversized; or its removal.
#[derive(Debug, Clone)]
enum ItemChange {
    Put(Vec<String>, Vec<u64>, bool),
    Remove,
}

/// A step of a test.
#[derive(Debug, Clone)]
enum Step {
    Batch(Vec<(i64, ItemChange)>),
    ForceMerge(i64),
    MergeAll,
}

#[derive(Default)]
struct Tester {
    pages: MemoryPages,
    items: BTreeMap<i64, ModelItem>,
    seq: i64,
}

impl Tester {
    fn run(&mut self, step: &Step) {
        match step {
            Step::Batch(changes) => self.apply(changes),
            Step::ForceMerge(budget) => {
                force_merge_step(&self.pages, TEXT, *budget).unwrap();
            }
            Step::MergeAll => {
                merge_all(&self.pages, TEXT).unwrap();
                assert!(self.pages.segments(TEXT).unwrap().len() <= 1);
            }
        }
        self.pages.check();
    }

    fn apply(&mut self, changes: &[(i64, ItemChange)]) {
        self.seq += 1;
        let mut text = SegmentBuffer::default();
        let changes: BTreeMap<i64, &ItemChange> =
            changes.iter().map(|(item, change)| (*item, change)).collect();
        for (item, change) in changes {
            self.items.remove(&item);
            match change {
                ItemChange::Remove => text.remove(item),
                ItemChange::Put(plain, packed, is_oversized) => {
                    let plain: Vec<Vec<u8>> =
                        plain.iter().map(|term| [&[1], term.as_bytes()].concat()).collect();
                    let mut terms: BTreeSet<Vec<u8>> = plain.iter().cloned().collect();
                    terms.extend(packed.iter().copied().map(packed_term));
                    terms.extend(is_oversized.then(|| OVERSIZED_ITEMS_TERM.to_vec()));
                    let set = TermSet::new(plain, packed.clone(), *is_oversized);
                    let mut listed = Vec::new();
                    set.for_each(unpack, &mut |term| listed.push(term.to_vec()));
                    assert!(listed.iter().eq(&terms));
                    text.put(item, set);
                    let (is_oversized, seq) = (*is_oversized, self.seq);
                    self.items.insert(item, ModelItem { terms, is_oversized, seq });
                }
            }
        }
        text.flush(&self.pages, TEXT, self.seq, unpack).unwrap();
    }

    /// Returns the items that a query finds and that are not stale, each with whether it is exact.
    fn find(&self, query: &Query) -> Vec<(i64, bool)> {
        let segments = self.pages.segments(TEXT).unwrap();
        let mut external = |items: &Vec<i64>| {
            Ok(Matches::from_unsorted(
                items.iter().copied().map(larder_index::IndexMatch::exact).collect(),
            ))
        };
        let (matches, _) = find_matches(&self.pages, &segments, query, &mut external).unwrap();
        let found: Vec<i64> = matches.iter().map(|found| found.item).collect();
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert_eq!(found.len(), matches.len());
        let backwards: Vec<i64> = matches.iter().rev().map(|found| found.item).collect();
        assert!(backwards.iter().rev().eq(&found));
        matches
            .iter()
            .filter_map(|found| {
                let item = self.items.get(&found.item)?;
                let is_valid = item.seq <= found.valid_until;
                is_valid.then_some((found.item, item.seq <= found.exact_until))
            })
            .collect()
    }

    /// Returns whether an item of the model matches a query.
    fn is_match(id: i64, item: &ModelItem, query: &Query) -> bool {
        let mut terms = item.terms.iter();
        match query {
            BooleanQuery::Term(term) => item.terms.contains(term),
            BooleanQuery::Prefix(prefix) => terms.any(|term| term.starts_with(prefix)),
            BooleanQuery::PrefixFilter(prefix, test) => terms.any(|term| {
                let rest = term.strip_prefix(prefix.as_slice());
                rest.is_some_and(|rest| std::str::from_utf8(rest).is_ok_and(test))
            }),
            BooleanQuery::External(items) => items.contains(&id),
            BooleanQuery::And(queries) | BooleanQuery::ApproximateAnd(queries) => {
                !queries.is_empty() && queries.iter().all(|query| Tester::is_match(id, item, query))
            }
            BooleanQuery::Or(queries) => {
                queries.iter().any(|query| Tester::is_match(id, item, query))
            }
        }
    }

    fn has_terms(query: &Query) -> bool {
        match query {
            BooleanQuery::Term(_) | BooleanQuery::Prefix(_) | BooleanQuery::PrefixFilter(..) => {
                true
            }
            BooleanQuery::External(_) => false,
            BooleanQuery::And(queries)
            | BooleanQuery::ApproximateAnd(queries)
            | BooleanQuery::Or(queries) => queries.iter().any(Tester::has_terms),
        }
    }

    /// Compares the answer of a query with the model.
    fn check_query(&self, query: &Query, is_approximate: bool) {
        let has_terms = Tester::has_terms(query);
        let expected = |id: i64, item: &ModelItem| Tester::is_match(id, item, query);
        let found: BTreeMap<i64, bool> = self.find(query).into_iter().collect();
        for (&id, item) in &self.items {
            let candidate = has_terms && item.is_oversized;
            match (expected(id, item), found.get(&id)) {
                (true, Some(is_exact)) => assert!(*is_exact || candidate, "{id} in {query:?}"),
                (true, None) => panic!("{id} is missing in {query:?}"),
                (false, Some(is_exact)) if candidate => {
                    assert!(!is_exact || is_approximate, "{id} in {query:?}");
                }
                (false, Some(_)) => assert!(is_approximate, "{id} is no match of {query:?}"),
                (false, None) => assert!(!candidate, "{id} is no candidate of {query:?}"),
            }
        }
    }

    /// Compares all valid postings with the model.
    fn check_postings(&self) {
        let mut found: BTreeMap<i64, BTreeSet<Vec<u8>>> = BTreeMap::new();
        let is_live = |item| self.items.contains_key(&item);
        for_each_posting(&self.pages, TEXT, &is_live, &mut |term, item| {
            assert!(found.entry(item).or_default().insert(term.to_vec()), "{term:?} of {item}");
        })
        .unwrap();
        for (id, item) in &self.items {
            assert_eq!(found.remove(id).unwrap_or_default(), item.terms, "{id}");
        }
        assert_eq!(found, BTreeMap::new());
    }

    fn check(&self, words: &[String]) {
        self.check_postings();
        let term = |text: &str| [&[1], text.as_bytes()].concat();
        for word in words {
            self.check_query(&BooleanQuery::Term(term(word)), false);
            self.check_query(&BooleanQuery::Prefix(term(word)), false);
            let test = |rest: &str| rest.ends_with('b');
            self.check_query(&BooleanQuery::PrefixFilter(term(word), Box::new(test)), false);
        }
        let all = |queries: Vec<Query>| BooleanQuery::And(queries);
        let listed = || words.iter().map(|word| BooleanQuery::Term(term(word))).collect::<Vec<_>>();
        let numbers = || (0..3).map(|n| BooleanQuery::Term(packed_term(n))).collect::<Vec<_>>();
        self.check_query(&all(listed()), false);
        self.check_query(&all(numbers()), false);
        self.check_query(&BooleanQuery::ApproximateAnd(numbers()), true);
        self.check_query(&BooleanQuery::Or(listed()), false);
        self.check_query(&BooleanQuery::External(vec![1, 3, 5]), false);
        let mixed = vec![BooleanQuery::External((1..20).collect()), BooleanQuery::Or(numbers())];
        self.check_query(&all(mixed), false);
    }
}

fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[ab]{1,4}", 0..6)
}

fn change() -> impl Strategy<Value = ItemChange> {
    let put = (words(), proptest::collection::vec(0..12_u64, 0..8), 0..10_u8)
        .prop_map(|(plain, packed, oversized)| ItemChange::Put(plain, packed, oversized == 0));
    prop_oneof![5 => put, 1 => Just(ItemChange::Remove)]
}

fn step() -> impl Strategy<Value = Step> {
    let batch = proptest::collection::vec((1..30_i64, change()), 1..12).prop_map(Step::Batch);
    let force_merge = (1..4000_i64).prop_map(Step::ForceMerge);
    prop_oneof![8 => batch, 3 => force_merge, 1 => Just(Step::MergeAll)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Batches, removals and merges in any order, each left unfinished at any budget.
    #[test]
    fn the_index_equals_the_model_after_any_steps(
        steps in proptest::collection::vec(step(), 1..30),
        words in words(),
    ) {
        let mut tester = Tester::default();
        for step in &steps {
            tester.run(step);
        }
        tester.check(&words);
    }

    #[test]
    fn damaged_blocks_are_errors_and_never_panic(
        steps in proptest::collection::vec(step(), 1..8),
        place in 0..400_usize,
        byte: u8,
    ) {
        let mut tester = Tester::default();
        for step in &steps {
            tester.run(step);
        }
        tester.pages.damage(|block| {
            let length = block.len();
            block[place % length] = byte;
        });
        let segments = tester.pages.segments(TEXT).unwrap();
        let query: Query = BooleanQuery::Prefix(Vec::new());
        let _found = find_matches(&tester.pages, &segments, &query, &mut |_| Ok(Matches::default()));
        let _postings = for_each_posting(&tester.pages, TEXT, &|_| true, &mut |_, _| {});
        let _merged = merge_all(&tester.pages, TEXT);
    }
}

/// Puts items from `first` on into one batch, each with a common word and a rare word.
fn put_items(tester: &mut Tester, first: i64, count: i64) {
    let changes: Vec<(i64, ItemChange)> = (first..first + count)
        .map(|item| {
            let words = vec!["common".to_string(), format!("rare{item:06}")];
            let numbers = (0..20).map(|n| n * (item as u64 % 7 + 1)).collect();
            (item, ItemChange::Put(words, numbers, false))
        })
        .collect();
    tester.run(&Step::Batch(changes));
}

#[test]
fn merges_of_large_segments_stop_and_continue_anywhere() {
    let mut tester = Tester::default();
    for batch in 0..12 {
        put_items(&mut tester, 1 + batch * 250, 300);
    }
    for _ in 0..40 {
        tester.run(&Step::ForceMerge(9_000));
        tester.check_query(&BooleanQuery::Term(b"\x01common".to_vec()), false);
        tester.check_query(&BooleanQuery::Prefix(b"\x01rare0012".to_vec()), false);
    }
    tester.check_postings();
}

#[test]
fn many_small_batches_leave_few_segments() {
    let mut tester = Tester::default();
    for item in 1..=600 {
        put_items(&mut tester, item, 1);
    }
    let segments = tester.pages.segments(TEXT).unwrap();
    assert!(segments.len() <= 20, "{} segments", segments.len());
    tester.check_postings();
    while force_merge_step(&tester.pages, TEXT, i64::MAX).unwrap() {}
    let free = tester.pages.segments(TEXT).unwrap();
    assert!(free.len() <= 2, "{} segments", free.len());
}

#[test]
fn a_lookup_reads_few_blocks() {
    let mut tester = Tester::default();
    put_items(&mut tester, 1, 5000);
    tester.run(&Step::MergeAll);
    assert!(tester.pages.block_count() > 15, "{} blocks", tester.pages.block_count());
    let before = tester.pages.blocks_read();
    assert_eq!(tester.find(&BooleanQuery::Term(b"\x01rare002500".to_vec())), [(2500, true)]);
    assert!(tester.pages.blocks_read() - before <= 2);
}

#[test]
fn merging_everything_forgets_stale_and_removed_items() {
    let mut tester = Tester::default();
    put_items(&mut tester, 1, 100);
    tester.run(&Step::Batch((1..=100).map(|item| (item, ItemChange::Remove)).collect()));
    tester.run(&Step::MergeAll);
    let segments = tester.pages.segments(TEXT).unwrap();
    let query: Query = BooleanQuery::Prefix(b"\x01".to_vec());
    let (matches, read) =
        find_matches(&tester.pages, &segments, &query, &mut |_| Ok(Matches::default())).unwrap();
    assert!(matches.is_empty());
    assert_eq!(read, 0);
}

#[test]
fn indexes_do_not_see_each_other() {
    let pages = MemoryPages::default();
    for (index, item) in [(TEXT, 1), (OTHER, 2)] {
        let mut buffer = SegmentBuffer::default();
        buffer.put(item, TermSet::new(vec![b"\x01a".to_vec()], Vec::new(), false));
        buffer.flush(&pages, index, 1, unpack).unwrap();
    }
    delete_all(&pages, TEXT).unwrap();
    pages.check();
    assert_eq!(pages.segments(TEXT).unwrap(), []);
    let segments = pages.segments(OTHER).unwrap();
    let query: Query = BooleanQuery::Term(b"\x01a".to_vec());
    let (matches, _) =
        find_matches(&pages, &segments, &query, &mut |_| Ok(Matches::default())).unwrap();
    assert_eq!(matches.iter().map(|found| found.item).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_missing_or_empty_block_is_corruption() {
    for damage in [MemoryPages::remove_blocks, |pages: &MemoryPages| pages.damage(Vec::clear)] {
        let mut tester = Tester::default();
        put_items(&mut tester, 1, 10);
        put_items(&mut tester, 11, 10);
        damage(&tester.pages);
        let segments = tester.pages.segments(TEXT).unwrap();
        let query: Query = BooleanQuery::Term(b"\x01common".to_vec());
        let found: Result<(Matches, u64), CorruptBlock> =
            find_matches(&tester.pages, &segments, &query, &mut |_| Ok(Matches::default()));
        assert!(found.is_err(), "a lookup reads the block");
        assert!(merge_all(&tester.pages, TEXT).is_err(), "a merge reads the block");
    }
}
