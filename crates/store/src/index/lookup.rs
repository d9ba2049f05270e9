//! Looking terms up: which items the index names, in one read transaction.
//!
//! An item that was changed leaves what an older segment says of it behind. So each segment's word on an item
//! is good only if the item was not changed after the segment; the item's own row tells.

use super::segment::{self, Segment};
use super::term;
use crate::collection::Known;
use crate::deriver::Deriver;
use crate::identity;
use crate::span::{self, Window};
use crate::{Family, Seq};
use rusqlite::Connection;
use std::fmt;

/// What to look up.
pub enum Lookup {
    /// Items that have this term.
    Term(Vec<u8>),
    /// Items with a term that begins so.
    Prefix(Vec<u8>),
    /// Items with a term that begins so and whose rest passes a test; every such term is read.
    Filter(Vec<u8>, Box<dyn Fn(&str) -> bool>),
    /// Items of one of these UIDs, in any collection; those whose cards perhaps name one are not sure.
    Uids(Vec<String>),
    /// Items with an occurrence, or an alarm, in a window.
    Window(Window),
    /// Items that all of these name.
    All(Vec<Lookup>),
    /// Items that all of these name, and perhaps others: what comes last may be left out.
    Narrow(Vec<Lookup>),
    /// Items that any of these names.
    Any(Vec<Lookup>),
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |term: &[u8]| String::from_utf8_lossy(term).into_owned();
        match self {
            Lookup::Term(term) => f.debug_tuple("Term").field(&text(term)).finish(),
            Lookup::Prefix(term) => f.debug_tuple("Prefix").field(&text(term)).finish(),
            Lookup::Filter(term, _) => f.debug_tuple("Filter").field(&text(term)).finish(),
            Lookup::Uids(uids) => f.debug_tuple("Uids").field(uids).finish(),
            Lookup::Window(window) => f.debug_tuple("Window").field(window).finish(),
            Lookup::All(of) => f.debug_tuple("All").field(of).finish(),
            Lookup::Narrow(of) => f.debug_tuple("Narrow").field(of).finish(),
            Lookup::Any(of) => f.debug_tuple("Any").field(of).finish(),
        }
    }
}

impl Lookup {
    /// Does no text of an item matter?
    fn is_of_uids(&self) -> bool {
        match self {
            Lookup::Uids(_) | Lookup::Window(_) => true,
            Lookup::All(of) | Lookup::Narrow(of) | Lookup::Any(of) => {
                of.iter().all(Lookup::is_of_uids)
            }
            _ => false,
        }
    }

    /// Is a window asked for?
    pub(crate) fn asks_for_time(&self) -> bool {
        match self {
            Lookup::Window(_) => true,
            Lookup::All(of) | Lookup::Narrow(of) | Lookup::Any(of) => {
                of.iter().any(Lookup::asks_for_time)
            }
            _ => false,
        }
    }
}

/// So many words on items may wait to be put together.
const MANY: usize = 65_536;
/// A term with no more items than this is as good as any that is rarer: to look for that would take longer.
const RARE: u64 = 256;

/// What the index says of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    /// The item's row.
    pub(crate) item: i64,
    /// It holds if the item was last changed by this batch, or before.
    pub(crate) until: Seq,
    /// Until when it is sure; 0 where it is only that the item is always a candidate.
    pub(crate) sure: Seq,
}

/// The items that are named, in the order of their rows, each once; also how many entries were read.
pub(crate) fn look_up(
    conn: &Connection,
    deriver: &Deriver,
    segments: &[Segment],
    collections: &[&Known],
    lookup: &Lookup,
) -> rusqlite::Result<(Vec<Named>, u64)> {
    let mut search = Search { conn, deriver, segments, collections, read: 0 };
    let mut named = search.named(lookup)?;
    if !lookup.is_of_uids() && segments.iter().any(|segment| segment.large) {
        let large = search.named(&Lookup::Term(term::large()))?;
        named.extend(large.into_iter().map(|named| Named { sure: 0, ..named }));
        unite(&mut named);
    }
    Ok((named, search.read))
}

struct Search<'a> {
    conn: &'a Connection,
    deriver: &'a Deriver,
    segments: &'a [Segment],
    collections: &'a [&'a Known],
    read: u64,
}

impl Search<'_> {
    fn named(&mut self, lookup: &Lookup) -> rusqlite::Result<Vec<Named>> {
        self.named_among(lookup, None)
    }

    /// What is named of these items, where they are known; what is not of them may come as well. Of the frequent terms of a
    /// narrow question only what it wants is held.
    fn named_among(
        &mut self,
        lookup: &Lookup,
        among: Option<&[Named]>,
    ) -> rusqlite::Result<Vec<Named>> {
        match lookup {
            Lookup::Term(term) => {
                self.walk(term, among, &|found| found == term.as_slice(), &|_| true)
            }
            Lookup::Prefix(prefix) => {
                self.walk(prefix, among, &|found| found.starts_with(prefix), &|_| true)
            }
            Lookup::Filter(prefix, test) => {
                self.walk(prefix, among, &|found| found.starts_with(prefix), &|found| {
                    std::str::from_utf8(&found[prefix.len()..]).is_ok_and(test)
                })
            }
            Lookup::Uids(uids) => self.of_uids(uids),
            Lookup::Window(window) => self.in_window(window),
            Lookup::All(of) => self.all(of, 0),
            // A further term costs a look into each segment, which is about what testing an item costs.
            Lookup::Narrow(of) => self.all(of, self.segments.len()),
            Lookup::Any(of) => {
                let (mut any, mut united) = (Vec::new(), MANY);
                for lookup in of {
                    any.extend(self.named(lookup)?);
                    if any.len() > united {
                        unite(&mut any);
                        united = MANY.max(any.len() * 2);
                    }
                }
                unite(&mut any);
                Ok(any)
            }
        }
    }

    /// Under which UID an item is kept is no matter of the index, and sure. Those whose cards name a UID that another item
    /// had first may name one of these.
    fn of_uids(&mut self, uids: &[String]) -> rusqlite::Result<Vec<Named>> {
        let mut named = Vec::with_capacity(uids.len());
        for known in self.collections {
            for uid in uids {
                let sure = |item| Named { item, until: Seq::MAX, sure: Seq::MAX };
                named.extend(identity::row(self.conn, &known.of, uid, "")?.map(sure));
                if known.summary.family() == Family::Calendar {
                    let detached = crate::series::detached(self.conn, known.of.id, uid)?;
                    named.extend(detached.into_iter().map(|(item, _)| sure(item)));
                }
                self.read += 1;
            }
        }
        let mut beside = self.conn.prepare_cached("SELECT id FROM item WHERE derived_uid = 2")?;
        let mut rows = beside.query([])?;
        while let Some(row) = rows.next()? {
            named.push(Named { item: row.get(0)?, until: Seq::MAX, sure: 0 });
        }
        unite(&mut named);
        Ok(named)
    }

    /// What is in a window is sure, but for series that take too long to ask.
    fn in_window(&mut self, window: &Window) -> rusqlite::Result<Vec<Named>> {
        let found = span::search(self.conn, self.deriver, self.collections, window)?;
        self.read += found.visited + found.tested;
        let sure = |item: i64| Named { item, until: Seq::MAX, sure: Seq::MAX };
        let unsure = |item: i64| Named { item, until: Seq::MAX, sure: 0 };
        let mut named: Vec<Named> = found.rows.into_iter().map(sure).collect();
        named.extend(found.unsure.into_iter().map(unsure));
        unite(&mut named);
        Ok(named)
    }

    fn all(&mut self, of: &[Lookup], few: usize) -> rusqlite::Result<Vec<Named>> {
        let rarest = self.rarest(of)?;
        let Some(first) = of.get(rarest) else { return Ok(Vec::new()) };
        let mut all = self.named(first)?;
        for (place, lookup) in of.iter().enumerate() {
            if all.len() <= few {
                break;
            }
            if place == rarest {
                continue;
            }
            let other = self.named_among(lookup, Some(&all))?;
            all = both(&all, &other);
        }
        Ok(all)
    }

    /// Which of these terms to begin with, by what the largest segment has of each: the others only take items away. What
    /// is no term is where its caller wants it. How many items a term has stands before them, so none is read for this.
    fn rarest(&self, of: &[Lookup]) -> rusqlite::Result<usize> {
        let largest =
            self.segments.iter().max_by_key(|segment| segment.chunks.end - segment.chunks.start);
        let is_term = |lookup: &Lookup| matches!(lookup, Lookup::Term(_));
        let Some(largest) = largest.filter(|_| of.len() > 1 && of.iter().all(is_term)) else {
            return Ok(0);
        };
        let (mut rarest, mut fewest) = (0, u64::MAX);
        for (place, lookup) in of.iter().enumerate() {
            let Lookup::Term(term) = lookup else { continue };
            // What a merge has moved on is somewhere else.
            if *term < largest.from {
                continue;
            }
            let count = largest.count(self.conn, term, fewest)?;
            if count < fewest {
                (rarest, fewest) = (place, count);
            }
            if count <= RARE {
                break;
            }
        }
        Ok(rarest)
    }

    /// The items of the terms from `from` on while they are `within`, of those that `pass`; only those `among` these.
    fn walk(
        &mut self,
        from: &[u8],
        among: Option<&[Named]>,
        within: &dyn Fn(&[u8]) -> bool,
        pass: &dyn Fn(&[u8]) -> bool,
    ) -> rusqlite::Result<Vec<Named>> {
        let (mut named, mut items) = (Vec::new(), Vec::new());
        let mut several = false;
        for segment in self.segments {
            segment.walk(self.conn, from, &mut |term, postings| {
                if !within(term) {
                    return Ok(false);
                }
                self.read = self.read.saturating_add(postings.count);
                if pass(term) {
                    items.clear();
                    postings.unpack(&mut items).ok_or_else(segment::malformed)?;
                    several |= !named.is_empty();
                    if let Some(among) = among {
                        keep_among(&mut items, among);
                    }
                    let until = segment.max_seq;
                    let sure = until;
                    named.extend(items.iter().map(|&item| Named { item, until, sure }));
                }
                Ok(true)
            })?;
        }
        if several {
            unite(&mut named);
        }
        Ok(named)
    }
}

/// Puts what was said in order, one word an item: the best.
fn unite(named: &mut Vec<Named>) {
    if !named.is_sorted() {
        named.sort_unstable();
    }
    named.dedup_by(|next, kept| {
        let same = next.item == kept.item;
        if same {
            kept.until = kept.until.max(next.until);
            kept.sure = kept.sure.max(next.sure);
        }
        same
    });
}

/// Leaves of the items, which are in order, those that are among others.
fn keep_among(items: &mut Vec<i64>, others: &[Named]) {
    let mut others = others.iter().peekable();
    items.retain(|item| {
        while others.next_if(|other| other.item < *item).is_some() {}
        others.peek().is_some_and(|other| other.item == *item)
    });
}

/// What both say; it holds as long as both do.
fn both(a: &[Named], b: &[Named]) -> Vec<Named> {
    let (mut all, mut b) = (Vec::with_capacity(a.len().min(b.len())), b.iter().peekable());
    for named in a {
        while b.next_if(|other| other.item < named.item).is_some() {}
        if let Some(other) = b.next_if(|other| other.item == named.item) {
            let (until, sure) = (named.until.min(other.until), named.sure.min(other.sure));
            all.push(Named { item: named.item, until, sure });
        }
    }
    all
}
