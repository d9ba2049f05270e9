//! Looking up which items have which terms, within one read transaction.
//!
//! Lookups do not decide whether a posting is stale: a match says up to which batch it is valid,
//! and the caller compares that with the batch that last changed the item. A term costs one search
//! in the fences of each segment, and then the reading of its postings.
//!
//! The result is read through [`Matches::iter`], an iterator from either end, so that it can later
//! become a stream that stops at a limit, without a change to its callers.

use crate::segment::{SegmentReader, corruption};
use crate::segment_storage::{ReadSegments, Segment};
use crate::term::OVERSIZED_ITEMS_TERM;
use std::fmt;

/// A query over terms. `X` is the type of lookups that the caller answers itself.
pub enum BooleanQuery<X> {
    /// Items that have this term.
    Term(Vec<u8>),
    /// Items with a term that begins with these bytes.
    Prefix(Vec<u8>),
    /// Items with a term that begins with these bytes and whose rest is text that passes a test.
    /// Every term with the prefix is read.
    PrefixFilter(Vec<u8>, Box<dyn Fn(&str) -> bool>),
    /// Items that the caller finds by other means.
    External(X),
    /// Items that match all of these.
    And(Vec<BooleanQuery<X>>),
    /// Items that match all of these, and perhaps others: queries at the end may be left out.
    ApproximateAnd(Vec<BooleanQuery<X>>),
    /// Items that match any of these.
    Or(Vec<BooleanQuery<X>>),
}

impl<X: fmt::Debug> fmt::Debug for BooleanQuery<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |term: &[u8]| String::from_utf8_lossy(term).into_owned();
        match self {
            BooleanQuery::Term(term) => f.debug_tuple("Term").field(&text(term)).finish(),
            BooleanQuery::Prefix(prefix) => f.debug_tuple("Prefix").field(&text(prefix)).finish(),
            BooleanQuery::PrefixFilter(prefix, _) => {
                f.debug_tuple("PrefixFilter").field(&text(prefix)).finish()
            }
            BooleanQuery::External(query) => query.fmt(f),
            BooleanQuery::And(queries) => f.debug_tuple("And").field(queries).finish(),
            BooleanQuery::ApproximateAnd(queries) => {
                f.debug_tuple("ApproximateAnd").field(queries).finish()
            }
            BooleanQuery::Or(queries) => f.debug_tuple("Or").field(queries).finish(),
        }
    }
}

impl<X> BooleanQuery<X> {
    /// Returns whether the query depends on any term.
    fn has_terms(&self) -> bool {
        match self {
            BooleanQuery::Term(_) | BooleanQuery::Prefix(_) | BooleanQuery::PrefixFilter(..) => {
                true
            }
            BooleanQuery::External(_) => false,
            BooleanQuery::And(queries)
            | BooleanQuery::ApproximateAnd(queries)
            | BooleanQuery::Or(queries) => queries.iter().any(BooleanQuery::has_terms),
        }
    }

    /// Returns whether any external lookup in the query passes a test.
    pub fn has_external(&self, test: &dyn Fn(&X) -> bool) -> bool {
        match self {
            BooleanQuery::Term(_) | BooleanQuery::Prefix(_) | BooleanQuery::PrefixFilter(..) => {
                false
            }
            BooleanQuery::External(query) => test(query),
            BooleanQuery::And(queries)
            | BooleanQuery::ApproximateAnd(queries)
            | BooleanQuery::Or(queries) => queries.iter().any(|query| query.has_external(test)),
        }
    }
}

/// Matches are sorted when more than this many wait.
const MAX_UNSORTED_MATCHES: usize = 65_536;
/// A conjunction begins with the first term of at most this many postings: looking for a rarer term
/// would cost more than it saves.
const RARE_TERM_POSTINGS: u64 = 256;

/// An item that a lookup returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexMatch {
    /// The item.
    pub item: i64,
    /// The match is valid if the item was last changed by this batch or before.
    pub valid_until: i64,
    /// The match needs no verification if the item was last changed by this batch or before; 0 if
    /// it always needs one.
    pub exact_until: i64,
}

impl IndexMatch {
    /// A match that no later change of the item makes stale, and that needs no verification.
    #[must_use]
    pub fn exact(item: i64) -> IndexMatch {
        IndexMatch { item, valid_until: i64::MAX, exact_until: i64::MAX }
    }

    /// A candidate that no later change of the item makes stale, and that has to be verified.
    #[must_use]
    pub fn candidate(item: i64) -> IndexMatch {
        IndexMatch { item, valid_until: i64::MAX, exact_until: 0 }
    }
}

/// The matches of a lookup, by item, each item once.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    sorted: Vec<IndexMatch>,
}

impl Matches {
    /// Collects matches in any order; if an item has several matches, the best is kept.
    #[must_use]
    pub fn from_unsorted(mut matches: Vec<IndexMatch>) -> Matches {
        sort_and_dedup(&mut matches);
        Matches { sorted: matches }
    }

    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether no item matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the match of an item.
    #[must_use]
    pub fn find(&self, item: i64) -> Option<&IndexMatch> {
        let at = self.sorted.binary_search_by_key(&item, |found| found.item).ok()?;
        self.sorted.get(at)
    }

    /// Returns the matches in the order of their items, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &IndexMatch> + ExactSizeIterator {
        self.sorted.iter()
    }
}

/// Finds the items that match a query in the given segments, which are all segments of an index.
/// `find_external` answers the external lookups of the query. Returns the matches and the number of
/// postings that were read.
pub fn find_matches<P: ReadSegments, X>(
    pages: &P,
    segments: &[Segment],
    query: &BooleanQuery<X>,
    find_external: &mut dyn FnMut(&X) -> Result<Matches, P::Error>,
) -> Result<(Matches, u64), P::Error> {
    let mut searcher = IndexSearcher { pages, segments, find_external, postings_read: 0 };
    let mut matches = searcher.find(query)?;
    if query.has_terms() && segments.iter().any(|segment| segment.has_oversized) {
        let oversized = searcher.find(&BooleanQuery::Term(OVERSIZED_ITEMS_TERM.to_vec()))?;
        matches.extend(oversized.into_iter().map(|found| IndexMatch { exact_until: 0, ..found }));
        sort_and_dedup(&mut matches);
    }
    Ok((Matches { sorted: matches }, searcher.postings_read))
}

struct IndexSearcher<'a, P: ReadSegments, X> {
    pages: &'a P,
    segments: &'a [Segment],
    find_external: &'a mut dyn FnMut(&X) -> Result<Matches, P::Error>,
    postings_read: u64,
}

impl<P: ReadSegments, X> IndexSearcher<'_, P, X> {
    fn find(&mut self, query: &BooleanQuery<X>) -> Result<Vec<IndexMatch>, P::Error> {
        self.find_among(query, None)
    }

    /// Finds matches. For terms, finds only matches among the given items, so that for a frequent
    /// term in a narrow query only the relevant postings are held in memory. Other lookups ignore
    /// the restriction.
    fn find_among(
        &mut self,
        query: &BooleanQuery<X>,
        among: Option<&[IndexMatch]>,
    ) -> Result<Vec<IndexMatch>, P::Error> {
        match query {
            BooleanQuery::Term(term) => {
                self.scan_terms(term, among, &|found| found == term.as_slice(), &|_| true)
            }
            BooleanQuery::Prefix(prefix) => {
                self.scan_terms(prefix, among, &|found| found.starts_with(prefix), &|_| true)
            }
            BooleanQuery::PrefixFilter(prefix, test) => {
                self.scan_terms(prefix, among, &|found| found.starts_with(prefix), &|found| {
                    std::str::from_utf8(&found[prefix.len()..]).is_ok_and(test)
                })
            }
            BooleanQuery::External(query) => Ok((self.find_external)(query)?.sorted),
            BooleanQuery::And(queries) => self.intersect_all(queries, 0),
            // A further term costs a step into each segment, which is about the cost of verifying
            // an item.
            BooleanQuery::ApproximateAnd(queries) => {
                self.intersect_all(queries, self.segments.len())
            }
            BooleanQuery::Or(queries) => {
                let (mut matches, mut limit) = (Vec::new(), MAX_UNSORTED_MATCHES);
                for query in queries {
                    matches.extend(self.find(query)?);
                    if matches.len() > limit {
                        sort_and_dedup(&mut matches);
                        limit = MAX_UNSORTED_MATCHES.max(matches.len() * 2);
                    }
                }
                sort_and_dedup(&mut matches);
                Ok(matches)
            }
        }
    }

    /// Intersects the queries, the rarest first, until at most `enough` items are left.
    fn intersect_all(
        &mut self,
        queries: &[BooleanQuery<X>],
        enough: usize,
    ) -> Result<Vec<IndexMatch>, P::Error> {
        let rarest = self.find_rarest(queries)?;
        let Some(first) = queries.get(rarest) else { return Ok(Vec::new()) };
        let mut matches = self.find(first)?;
        for (place, query) in queries.iter().enumerate() {
            if matches.len() <= enough {
                break;
            }
            if place == rarest {
                continue;
            }
            let other = self.find_among(query, Some(&matches))?;
            matches = intersect(&matches, &other);
        }
        Ok(matches)
    }

    /// Returns the place of the term with the fewest postings in the largest segment; 0 unless all
    /// queries are terms. Only the counts of postings are read.
    fn find_rarest(&self, queries: &[BooleanQuery<X>]) -> Result<usize, P::Error> {
        let largest =
            self.segments.iter().max_by_key(|segment| segment.blocks.end - segment.blocks.start);
        let is_term = |query: &BooleanQuery<X>| matches!(query, BooleanQuery::Term(_));
        let Some(largest) = largest.filter(|_| queries.len() > 1 && queries.iter().all(is_term))
        else {
            return Ok(0);
        };
        let (mut rarest, mut fewest) = (0, u64::MAX);
        for (place, query) in queries.iter().enumerate() {
            let BooleanQuery::Term(term) = query else { continue };
            // A merge has moved this term into another segment.
            if *term < largest.from_term {
                continue;
            }
            let count = SegmentReader::new(self.pages, largest).count_postings(term, fewest)?;
            if count < fewest {
                (rarest, fewest) = (place, count);
            }
            if count <= RARE_TERM_POSTINGS {
                break;
            }
        }
        Ok(rarest)
    }

    /// Returns the items of the consecutive terms from `from` on that are in range and pass a test;
    /// if `among` is given, only those items.
    fn scan_terms(
        &mut self,
        from: &[u8],
        among: Option<&[IndexMatch]>,
        is_in_range: &dyn Fn(&[u8]) -> bool,
        test: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<IndexMatch>, P::Error> {
        let (mut matches, mut items) = (Vec::new(), Vec::new());
        let mut has_several_entries = false;
        for segment in self.segments {
            let reader = SegmentReader::new(self.pages, segment);
            reader.for_each_entry(from, &mut |term, postings| {
                if !is_in_range(term) {
                    return Ok(false);
                }
                self.postings_read = self.postings_read.saturating_add(postings.count);
                if test(term) {
                    items.clear();
                    postings.unpack(&mut items).ok_or_else(corruption::<P>)?;
                    has_several_entries |= !matches.is_empty();
                    if let Some(among) = among {
                        retain_among(&mut items, among);
                    }
                    let until = segment.max_seq;
                    matches.extend(items.iter().map(|&item| IndexMatch {
                        item,
                        valid_until: until,
                        exact_until: until,
                    }));
                }
                Ok(true)
            })?;
        }
        if has_several_entries {
            sort_and_dedup(&mut matches);
        }
        Ok(matches)
    }
}

/// Sorts matches by item and keeps the best of each item.
fn sort_and_dedup(matches: &mut Vec<IndexMatch>) {
    if !matches.is_sorted() {
        matches.sort_unstable();
    }
    matches.dedup_by(|next, kept| {
        let is_same = next.item == kept.item;
        if is_same {
            kept.valid_until = kept.valid_until.max(next.valid_until);
            kept.exact_until = kept.exact_until.max(next.exact_until);
        }
        is_same
    });
}

/// Retains the items, which are ascending, that are among the matches.
fn retain_among(items: &mut Vec<i64>, among: &[IndexMatch]) {
    let mut among = among.iter().peekable();
    items.retain(|item| {
        while among.next_if(|other| other.item < *item).is_some() {}
        among.peek().is_some_and(|other| other.item == *item)
    });
}

/// Returns the items of both lists; a match is valid as long as both are.
fn intersect(a: &[IndexMatch], b: &[IndexMatch]) -> Vec<IndexMatch> {
    let (mut matches, mut b) = (Vec::with_capacity(a.len().min(b.len())), b.iter().peekable());
    for one in a {
        while b.next_if(|other| other.item < one.item).is_some() {}
        if let Some(other) = b.next_if(|other| other.item == one.item) {
            matches.push(IndexMatch {
                item: one.item,
                valid_until: one.valid_until.min(other.valid_until),
                exact_until: one.exact_until.min(other.exact_until),
            });
        }
    }
    matches
}
