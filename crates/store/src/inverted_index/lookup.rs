//! Looking terms up: which items the index names, in one read transaction.
//!
//! An item that was changed leaves what an older segment says of it behind. So each segment's word
//! on an item is good only if the item was not changed after the segment; the item's own row tells.

use super::segment::{self, Segment};
use super::term;
use crate::Seq;
use crate::collection::CollectionMeta;
use crate::interval_index;
use crate::uid_lookup;
use larder_extract::Extractor;
use larder_extract::TimeRange;
use rusqlite::Connection;
use std::fmt;

/// What to look up.
pub enum IndexQuery {
    /// Items that have this term.
    Term(Vec<u8>),
    /// Items with a term that begins so.
    Prefix(Vec<u8>),
    /// Items with a term that begins so and whose rest passes a test; every such term is read.
    PrefixFilter(Vec<u8>, Box<dyn Fn(&str) -> bool>),
    /// Items of one of these UIDs, in any collection; those whose cards perhaps name one are not
    /// sure.
    Uids(Vec<String>),
    /// Items with an occurrence, or an alarm, in a window.
    TimeRange(TimeRange),
    /// Items that all of these name.
    All(Vec<IndexQuery>),
    /// Items that all of these name, and perhaps others: what comes last may be left out.
    AllApprox(Vec<IndexQuery>),
    /// Items that any of these names.
    Any(Vec<IndexQuery>),
}

impl fmt::Debug for IndexQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |term: &[u8]| String::from_utf8_lossy(term).into_owned();
        match self {
            IndexQuery::Term(term) => f.debug_tuple("Term").field(&text(term)).finish(),
            IndexQuery::Prefix(term) => f.debug_tuple("Prefix").field(&text(term)).finish(),
            IndexQuery::PrefixFilter(term, _) => {
                f.debug_tuple("Filter").field(&text(term)).finish()
            }
            IndexQuery::Uids(uids) => f.debug_tuple("Uids").field(uids).finish(),
            IndexQuery::TimeRange(window) => f.debug_tuple("Window").field(window).finish(),
            IndexQuery::All(of) => f.debug_tuple("All").field(of).finish(),
            IndexQuery::AllApprox(of) => f.debug_tuple("Narrow").field(of).finish(),
            IndexQuery::Any(of) => f.debug_tuple("Any").field(of).finish(),
        }
    }
}

impl IndexQuery {
    /// Does no text of an item matter?
    fn is_text_independent(&self) -> bool {
        match self {
            IndexQuery::Uids(_) | IndexQuery::TimeRange(_) => true,
            IndexQuery::All(of) | IndexQuery::AllApprox(of) | IndexQuery::Any(of) => {
                of.iter().all(IndexQuery::is_text_independent)
            }
            _ => false,
        }
    }

    /// Is a window asked for?
    pub(crate) fn has_time_range(&self) -> bool {
        match self {
            IndexQuery::TimeRange(_) => true,
            IndexQuery::All(of) | IndexQuery::AllApprox(of) | IndexQuery::Any(of) => {
                of.iter().any(IndexQuery::has_time_range)
            }
            _ => false,
        }
    }
}

/// So many words on items may wait to be put together.
const MAX_UNSORTED_MATCHES: usize = 65_536;
/// A term with no more items than this is as good as any that is rarer: to look for that would take
/// longer.
const RARE_TERM_POSTINGS: u64 = 256;

/// What the index says of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexMatch {
    /// The item's row.
    pub(crate) item: i64,
    /// It holds if the item was last changed by this batch, or before.
    pub(crate) valid_until: Seq,
    /// Until when it is sure; 0 where it is only that the item is always a candidate.
    pub(crate) exact_until: Seq,
}

/// The items that are named, in the order of their rows, each once; also how many entries were
/// read.
pub(crate) fn find_matches(
    conn: &Connection,
    deriver: &Extractor,
    segments: &[Segment],
    collections: &[&CollectionMeta],
    lookup: &IndexQuery,
) -> rusqlite::Result<(Vec<IndexMatch>, u64)> {
    let mut search =
        IndexSearcher { conn, extractor: deriver, segments, collections, entries_read: 0 };
    let mut named = search.find(lookup)?;
    if !lookup.is_text_independent() && segments.iter().any(|segment| segment.has_oversized) {
        let large = search.find(&IndexQuery::Term(term::oversized_items()))?;
        named.extend(large.into_iter().map(|named| IndexMatch { exact_until: 0, ..named }));
        sort_and_dedup(&mut named);
    }
    Ok((named, search.entries_read))
}

struct IndexSearcher<'a> {
    conn: &'a Connection,
    extractor: &'a Extractor,
    segments: &'a [Segment],
    collections: &'a [&'a CollectionMeta],
    entries_read: u64,
}

impl IndexSearcher<'_> {
    fn find(&mut self, lookup: &IndexQuery) -> rusqlite::Result<Vec<IndexMatch>> {
        self.find_among(lookup, None)
    }

    /// What is named of these items, where they are known; what is not of them may come as well. Of
    /// the frequent terms of a narrow question only what it wants is held.
    fn find_among(
        &mut self,
        lookup: &IndexQuery,
        among: Option<&[IndexMatch]>,
    ) -> rusqlite::Result<Vec<IndexMatch>> {
        match lookup {
            IndexQuery::Term(term) => {
                self.scan_terms(term, among, &|found| found == term.as_slice(), &|_| true)
            }
            IndexQuery::Prefix(prefix) => {
                self.scan_terms(prefix, among, &|found| found.starts_with(prefix), &|_| true)
            }
            IndexQuery::PrefixFilter(prefix, test) => {
                self.scan_terms(prefix, among, &|found| found.starts_with(prefix), &|found| {
                    std::str::from_utf8(&found[prefix.len()..]).is_ok_and(test)
                })
            }
            IndexQuery::Uids(uids) => self.find_uids(uids),
            IndexQuery::TimeRange(window) => self.find_in_time_range(window),
            IndexQuery::All(of) => self.intersect_all(of, 0),
            // A further term costs a look into each segment, which is about what testing an item
            // costs.
            IndexQuery::AllApprox(of) => self.intersect_all(of, self.segments.len()),
            IndexQuery::Any(of) => {
                let (mut any, mut united) = (Vec::new(), MAX_UNSORTED_MATCHES);
                for lookup in of {
                    any.extend(self.find(lookup)?);
                    if any.len() > united {
                        sort_and_dedup(&mut any);
                        united = MAX_UNSORTED_MATCHES.max(any.len() * 2);
                    }
                }
                sort_and_dedup(&mut any);
                Ok(any)
            }
        }
    }

    /// Under which UID an item is kept is no matter of the index, and sure. Those whose cards name
    /// a UID that another item had first may name one of these.
    fn find_uids(&mut self, uids: &[String]) -> rusqlite::Result<Vec<IndexMatch>> {
        let mut named = Vec::with_capacity(uids.len());
        for known in self.collections {
            for uid in uids {
                let sure = |item| IndexMatch { item, valid_until: Seq::MAX, exact_until: Seq::MAX };
                named.extend(
                    uid_lookup::find_row(self.conn, &known.collection_key, uid, "")?.map(sure),
                );
                if known.index_config.collection_type().has_schedules() {
                    let detached =
                        crate::series::find_overrides(self.conn, known.collection_key.id, uid)?;
                    named.extend(detached.into_iter().map(|(item, _)| sure(item)));
                }
                self.entries_read += 1;
            }
        }
        let mut beside = self.conn.prepare_cached("SELECT id FROM item WHERE derived_uid = 2")?;
        let mut rows = beside.query([])?;
        while let Some(row) = rows.next()? {
            named.push(IndexMatch { item: row.get(0)?, valid_until: Seq::MAX, exact_until: 0 });
        }
        sort_and_dedup(&mut named);
        Ok(named)
    }

    /// What is in a window is sure, but for series that take too long to ask.
    fn find_in_time_range(&mut self, window: &TimeRange) -> rusqlite::Result<Vec<IndexMatch>> {
        let found = interval_index::search(self.conn, self.extractor, self.collections, window)?;
        self.entries_read += found.entries_read + found.series_evaluated;
        let sure = |item: i64| IndexMatch { item, valid_until: Seq::MAX, exact_until: Seq::MAX };
        let unsure = |item: i64| IndexMatch { item, valid_until: Seq::MAX, exact_until: 0 };
        let mut named: Vec<IndexMatch> = found.items.into_iter().map(sure).collect();
        named.extend(found.undecided.into_iter().map(unsure));
        sort_and_dedup(&mut named);
        Ok(named)
    }

    fn intersect_all(
        &mut self,
        of: &[IndexQuery],
        few: usize,
    ) -> rusqlite::Result<Vec<IndexMatch>> {
        let rarest = self.find_rarest(of)?;
        let Some(first) = of.get(rarest) else { return Ok(Vec::new()) };
        let mut all = self.find(first)?;
        for (place, lookup) in of.iter().enumerate() {
            if all.len() <= few {
                break;
            }
            if place == rarest {
                continue;
            }
            let other = self.find_among(lookup, Some(&all))?;
            all = intersect(&all, &other);
        }
        Ok(all)
    }

    /// Which of these terms to begin with, by what the largest segment has of each: the others only
    /// take items away. What is no term is where its caller wants it. How many items a term has
    /// stands before them, so none is read for this.
    fn find_rarest(&self, of: &[IndexQuery]) -> rusqlite::Result<usize> {
        let largest =
            self.segments.iter().max_by_key(|segment| segment.chunks.end - segment.chunks.start);
        let is_term = |lookup: &IndexQuery| matches!(lookup, IndexQuery::Term(_));
        let Some(largest) = largest.filter(|_| of.len() > 1 && of.iter().all(is_term)) else {
            return Ok(0);
        };
        let (mut rarest, mut fewest) = (0, u64::MAX);
        for (place, lookup) in of.iter().enumerate() {
            let IndexQuery::Term(term) = lookup else { continue };
            // What a merge has moved on is somewhere else.
            if *term < largest.from_term {
                continue;
            }
            let count = largest.count_postings(self.conn, term, fewest)?;
            if count < fewest {
                (rarest, fewest) = (place, count);
            }
            if count <= RARE_TERM_POSTINGS {
                break;
            }
        }
        Ok(rarest)
    }

    /// The items of the terms from `from` on while they are `within`, of those that `pass`; only
    /// those `among` these.
    fn scan_terms(
        &mut self,
        from: &[u8],
        among: Option<&[IndexMatch]>,
        within: &dyn Fn(&[u8]) -> bool,
        pass: &dyn Fn(&[u8]) -> bool,
    ) -> rusqlite::Result<Vec<IndexMatch>> {
        let (mut named, mut items) = (Vec::new(), Vec::new());
        let mut several = false;
        for segment in self.segments {
            segment.for_each_entry(self.conn, from, &mut |term, postings| {
                if !within(term) {
                    return Ok(false);
                }
                self.entries_read = self.entries_read.saturating_add(postings.count);
                if pass(term) {
                    items.clear();
                    postings.unpack(&mut items).ok_or_else(segment::malformed_chunk_error)?;
                    several |= !named.is_empty();
                    if let Some(among) = among {
                        retain_in(&mut items, among);
                    }
                    let until = segment.max_seq;
                    let sure = until;
                    named.extend(items.iter().map(|&item| IndexMatch {
                        item,
                        valid_until: until,
                        exact_until: sure,
                    }));
                }
                Ok(true)
            })?;
        }
        if several {
            sort_and_dedup(&mut named);
        }
        Ok(named)
    }
}

/// Puts what was said in order, one word an item: the best.
fn sort_and_dedup(named: &mut Vec<IndexMatch>) {
    if !named.is_sorted() {
        named.sort_unstable();
    }
    named.dedup_by(|next, kept| {
        let same = next.item == kept.item;
        if same {
            kept.valid_until = kept.valid_until.max(next.valid_until);
            kept.exact_until = kept.exact_until.max(next.exact_until);
        }
        same
    });
}

/// Leaves of the items, which are in order, those that are among others.
fn retain_in(items: &mut Vec<i64>, others: &[IndexMatch]) {
    let mut others = others.iter().peekable();
    items.retain(|item| {
        while others.next_if(|other| other.item < *item).is_some() {}
        others.peek().is_some_and(|other| other.item == *item)
    });
}

/// What both say; it holds as long as both do.
fn intersect(a: &[IndexMatch], b: &[IndexMatch]) -> Vec<IndexMatch> {
    let (mut all, mut b) = (Vec::with_capacity(a.len().min(b.len())), b.iter().peekable());
    for named in a {
        while b.next_if(|other| other.item < named.item).is_some() {}
        if let Some(other) = b.next_if(|other| other.item == named.item) {
            let (until, sure) = (
                named.valid_until.min(other.valid_until),
                named.exact_until.min(other.exact_until),
            );
            all.push(IndexMatch { item: named.item, valid_until: until, exact_until: sure });
        }
    }
    all
}
