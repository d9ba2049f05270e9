//! Answering: candidates, the test of each, and the order.
//!
//! What the index names is held against the items in one snapshot, as far as that is soon done.
//! `answer` is what comes of it.

use crate::collector::{HitCollector, is_start_field, resolve_start_bound, start_key};
use crate::error::Error;
use crate::item::{DecodedItem, ScheduleOrigin};
use crate::matcher::Matcher;
use crate::plan::Plan;
use crate::query::Query;
use crate::result_set::{Explanation, Hit, PAGE_ROWS, Prefetch, ResultSet};
use crate::sort_bound::SortBound;
use crate::time_test::TimeTest;
use larder_format::field::{Field, find_calendar_field, find_contact_field, suggest_contact_field};
use larder_store::{
    Candidate, CollectionType, IndexConfig, IndexMatches, IndexedOrder, ItemMeta, Kind,
    ReadTransaction, Reader, SortPosition, StoredFields, TimeRange,
};
use std::cell::Cell;
use std::sync::Arc;

/// So many candidates may be held against their items within one transaction.
const MAX_CANDIDATES_PER_TX: usize = 1000;
/// So many bytes of candidates may be read within one transaction.
const MAX_CANDIDATE_BYTES_PER_TX: usize = 4 << 20;
/// So often at most the places of an order are read again.
const MAX_SORTED_READ_ATTEMPTS: usize = 3;
/// Places of an order, or rows without their bytes, listed in one transaction.
const PLACES_PER_TX: usize = 4096;

/// What is asked, and how the answer is to look.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// The question.
    pub query: Query,
    /// Only items of this collection.
    pub collection: Option<String>,
    /// The order; `None`: as they came.
    pub sort: Option<SortSpec>,
    /// Where in this order the answer begins: at the first item that begins with this text, or that
    /// lies behind where such would, whatever its case and accents. Without an order it says
    /// nothing.
    pub start_text: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Cards are read on the way to the answer, a few of them: for who is going to ask for all of
    /// them at once.
    pub prefetch: bool,
}

/// The order of an answer: by a field's first value, in the store's locale; equals as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortSpec {
    /// The field.
    pub field: &'static Field,
    /// From the end of the alphabet to its beginning.
    pub descending: bool,
}

impl SortSpec {
    /// Reads a field's name, with a minus in front for the other direction.
    ///
    /// # Errors
    /// [`Error::NoField`], with the nearest name.
    pub fn parse(text: &str) -> Result<SortSpec, Error> {
        let (descending, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        match find_contact_field(name).or_else(|| find_calendar_field(name)) {
            Some(field) => Ok(SortSpec { field, descending }),
            None => {
                Err(Error::NoField { name: name.to_string(), nearest: suggest_contact_field(name) })
            }
        }
    }
}

/// Answers a question by its plan.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn find(reader: &Reader, find: &SearchRequest) -> Result<ResultSet, Error> {
    let snapshot = reader.begin_read()?;
    let mut answer = new_result_set(reader, find)?;
    if find.query == Query::All {
        drop(snapshot);
        collect_all_items(reader, find, &mut answer)?;
    } else if collect_by_time_range(reader, find, &mut answer)? {
        // The index has the answer as it is wanted.
    } else {
        collect_by_plan(reader, snapshot, find, &mut answer)?;
    }
    apply_limit(&mut answer, find.limit);
    Ok(answer)
}

/// What no question narrows: in the order that is kept, where there is one.
fn collect_all_items(
    reader: &Reader,
    find: &SearchRequest,
    answer: &mut ResultSet,
) -> Result<(), Error> {
    if find.sort.is_none() {
        return list_all_rows(reader, answer, find.limit.unwrap_or(usize::MAX));
    }
    if collect_sorted(reader, find, answer)? {
        return Ok(());
    }
    collect_by_plan(reader, reader.begin_read()?, find, answer)
}

fn collect_by_plan(
    reader: &Reader,
    snapshot: ReadTransaction<'_>,
    find: &SearchRequest,
    answer: &mut ResultSet,
) -> Result<(), Error> {
    let mut hits = HitCollector::new(reader, find);
    collect_candidates(reader, snapshot, find, answer, &mut hits)?;
    answer.explain.order = hits.order_description();
    answer.hits = hits.into_rows();
    Ok(())
}

/// Every item, as they came. No question is put to them, whatever becomes of them.
fn list_all_rows(reader: &Reader, answer: &mut ResultSet, limit: usize) -> Result<(), Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    for &collection in &collections {
        let (mut after, mut left) = (0, limit);
        loop {
            let page = reader.item_rows(collection, after, PLACES_PER_TX.min(left))?;
            answer.hits.extend(page.iter().map(|row| Hit { row: *row, seq: 0 }));
            left -= page.len();
            match page.last() {
                Some(last) => after = *last,
                None => break,
            }
        }
    }
    if collections.len() > 1 {
        answer.hits.sort_unstable_by_key(|hit| hit.row);
    }
    answer.explain.visited = answer.hits.len() as u64;
    answer.explain.plan = vec!["index: all items".into()];
    answer.explain.order = "as they came".into();
    Ok(())
}

/// What is in a window, where nothing else is asked: the index alone tells, and no item is read.
/// Within one snapshot.
fn collect_by_time_range(
    reader: &Reader,
    find: &SearchRequest,
    answer: &mut ResultSet,
) -> Result<bool, Error> {
    let Query::Time(TimeTest::InRange(window)) = &find.query else { return Ok(false) };
    if find.sort.is_some_and(|sort| !is_start_field(sort.field)) {
        return Ok(false);
    }
    let Some(mut rows) = search_interval_index(reader, window, answer)? else { return Ok(false) };
    if let Some(sort) = find.sort {
        let mut keyed: Vec<(Vec<u8>, i64)> = Vec::with_capacity(rows.len());
        reader.for_each_schedule(&rows, &mut |row, times| {
            keyed.push((start_key(times.start_seconds()), row));
            true
        })?;
        keyed.sort_unstable();
        rows = keyed.into_iter().map(|(_, row)| row).collect();
        if sort.descending {
            rows.reverse();
        }
    }
    answer.found_at = Some(reader.data_version()?);
    answer.hits.extend(rows.into_iter().map(|row| Hit { row, seq: 0 }));
    answer.explain.order =
        if find.sort.is_some() { "by start" } else { "as they came" }.to_string();
    Ok(true)
}

fn search_interval_index(
    reader: &Reader,
    window: &TimeRange,
    answer: &mut ResultSet,
) -> Result<Option<Vec<i64>>, Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    let Some(found) = reader.find_in_time_range(&collections, window)? else { return Ok(None) };
    answer.explain.visited += found.entries_read;
    answer.explain.tested += found.series_evaluated;
    answer.explain.plan.push(format!("index: {}", crate::time_test::describe_time_range(window)));
    if !found.undecided.is_empty() {
        let left = format!("{} left out: their rules take too long", found.undecided.len());
        answer.explain.plan.push(left);
        answer.uncertain_rows = found.undecided;
    }
    Ok(Some(found.items))
}

/// Collections that have one summary.
struct CollectionGroup {
    summary: Arc<IndexConfig>,
    collections: Vec<i64>,
}

/// Collects what answers the question, by a plan for each summary that the collections asked have.
/// What a summary says holds for the index of the same snapshot; it ends here.
fn collect_candidates(
    reader: &Reader,
    snapshot: ReadTransaction<'_>,
    find: &SearchRequest,
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    let groups = group_by_index_config(reader, answer)?;
    let alone = groups.len() == 1;
    if alone {
        answer.prefetch = Prefetch::new(find.prefetch, reader.data_version()?);
    } else {
        // Which ones are the first is known when all are there.
        hits.limit = usize::MAX;
    }
    let (mut rest, mut scanned) = (Vec::new(), None);
    for CollectionGroup { summary, collections } in groups {
        let plan = Plan::new(&find.query, &summary);
        let found = match &plan {
            Plan::Index { lookup, .. } => reader.look_up(lookup, &collections)?,
            Plan::Nothing => Some(IndexMatches::default()),
            Plan::Scan(_) => None,
        };
        let only = if alone { None } else { Some(collections.as_slice()) };
        let Some(found) = found else {
            answer.explain.plan.push(Plan::Scan(find.query.required_kind()).describe());
            scanned.get_or_insert_with(Vec::new).extend(collections);
            continue;
        };
        answer.explain.plan.push(plan.describe());
        let exact = matches!(plan, Plan::Index { exact: true, .. }) && hits.sort.is_none();
        rest.extend(
            CandidateScan { reader, answer, hits, collections: only, exact, read: 0 }
                .scan(&found)?,
        );
    }
    drop(snapshot);
    verify_rest(reader, &rest, answer, hits)?;
    if let Some(collections) = scanned {
        let only = if alone { None } else { Some(collections.as_slice()) };
        scan_items(reader, only, answer, hits)?;
    }
    hits.rows.sort_unstable_by_key(|hit| hit.row);
    Ok(())
}

/// The collections asked, by their summaries: mostly one group, and one at least.
fn group_by_index_config(
    reader: &Reader,
    answer: &ResultSet,
) -> Result<Vec<CollectionGroup>, Error> {
    let mut groups: Vec<CollectionGroup> = Vec::new();
    if answer.query != Query::All {
        for (row, summary) in reader.index_configs()? {
            let same = |group: &&mut CollectionGroup| {
                Arc::ptr_eq(&group.summary, &summary) || group.summary == summary
            };
            match groups.iter_mut().find(same) {
                _ if !answer.is_about_collection(row) => {}
                Some(group) => group.collections.push(row),
                None => groups.push(CollectionGroup { summary, collections: vec![row] }),
            }
        }
    }
    if groups.is_empty() {
        // Nothing is there, or it is all wanted, however it is indexed.
        let summary = IndexConfig::shared_default(CollectionType::AddressBook);
        groups.push(CollectionGroup { summary, collections: Vec::new() });
    }
    Ok(groups)
}

/// What the index names, on its way into an answer.
struct CandidateScan<'a, 'b> {
    reader: &'a Reader,
    answer: &'a mut ResultSet,
    hits: &'a mut HitCollector<'b>,
    /// Of these collections; `None`: of all that are asked.
    collections: Option<&'a [i64]>,
    /// What is named answers the question, where it is sure, and no order is wanted.
    exact: bool,
    /// Bytes that were read.
    read: usize,
}

impl CandidateScan<'_, '_> {
    /// Takes as much as is soon done, within a snapshot; returns the rest.
    fn scan(mut self, found: &IndexMatches) -> Result<Vec<PendingCandidate>, Error> {
        self.answer.explain.visited += found.entries_read;
        let (mut failed, mut seen) = (None, 0);
        if self.hits.is_full() {
            return Ok(Vec::new());
        }
        if self.exact && self.answer.prefetch.is_full() {
            return self.list_rest(found, 0);
        }
        let with_bytes = self.exact || !self.answer.matcher.can_use_stored_fields();
        let done = self.reader.for_each_candidate(found, 0, with_bytes, &mut |candidate| {
            seen += 1;
            failed = self.consider(candidate).err();
            // The rest is only listed, and read when others may write.
            let enough = seen >= MAX_CANDIDATES_PER_TX
                || self.read >= MAX_CANDIDATE_BYTES_PER_TX
                || (self.exact && self.answer.prefetch.is_full());
            failed.is_none() && !self.hits.is_full() && !enough
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None if self.hits.is_full() => Ok(Vec::new()),
            None => self.list_rest(found, done),
        }
    }

    fn is_in_scope(&self, candidate: &Candidate<'_>) -> bool {
        self.answer.is_about_collection(candidate.collection)
            && is_in_collections(self.collections, candidate.collection)
    }

    /// Takes a candidate, if it answers the question, and its bytes as long as there is room for
    /// them.
    fn consider(&mut self, candidate: &Candidate<'_>) -> Result<(), larder_store::Error> {
        if !self.is_in_scope(candidate) {
            return Ok(());
        }
        let head = candidate.meta()?;
        let hit = Hit { row: candidate.row, seq: candidate.seq };
        if self.exact && candidate.exact {
            self.hits.rows.push(hit);
        } else {
            let kept = candidate.stored_fields();
            let passes =
                verify_stored_fields(self.reader, hit, &head, kept, self.answer, self.hits);
            let passes = match passes {
                Some(passes) => passes,
                None => {
                    let bytes = candidate.bytes()?;
                    self.read += bytes.len();
                    verify(self.reader, hit, &head, &bytes, self.answer, self.hits)
                }
            };
            if !passes {
                return Ok(());
            }
        }
        if self.collections.is_none() && !self.answer.prefetch.is_full() {
            self.answer.prefetch.add(head, &candidate.bytes()?);
        }
        Ok(())
    }

    /// What else is named, from a place on: no more than is asked for.
    fn list_rest(&self, found: &IndexMatches, from: usize) -> Result<Vec<PendingCandidate>, Error> {
        let mut rest = Vec::new();
        let mut open = self.hits.remaining();
        self.reader.for_each_candidate(found, from, false, &mut |candidate| {
            if self.is_in_scope(candidate) {
                let sure = self.exact && candidate.exact;
                rest.push(PendingCandidate {
                    hit: Hit { row: candidate.row, seq: candidate.seq },
                    is_match: sure,
                });
                open = open.saturating_sub(usize::from(sure));
            }
            open > 0
        })?;
        Ok(rest)
    }
}

/// An item that the index named, and whether that is the answer.
struct PendingCandidate {
    hit: Hit,
    is_match: bool,
}

/// Takes what is named as it is where it is sure, else after a test. Others may write meanwhile.
fn verify_rest(
    reader: &Reader,
    rest: &[PendingCandidate],
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    for page in rest.chunks(PAGE_ROWS) {
        if hits.is_full() {
            break;
        }
        hits.rows.extend(page.iter().filter(|named| named.is_match).map(|named| named.hit));
        let unsure = page.iter().filter(|named| !named.is_match);
        let unsure: Vec<i64> = unsure.map(|named| named.hit.row).collect();
        if !unsure.is_empty() {
            verify_page(reader, unsure, answer, hits)?;
        }
    }
    Ok(())
}

/// Tests the items in these rows, by what is kept of them where that tells. What is taken is not in
/// order then.
fn verify_page(
    reader: &Reader,
    mut rows: Vec<i64>,
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    if answer.matcher.can_use_stored_fields() {
        let mut open = Vec::new();
        reader.for_each_with_stored_fields(&rows, &mut |head, kept| {
            let hit = Hit { row: head.row, seq: head.seq };
            if verify_stored_fields(reader, hit, &head, kept, answer, hits).is_none() {
                open.push(head.row);
            }
            true
        })?;
        rows = open;
    }
    reader.for_each_item(&rows, &mut |head, bytes| {
        let hit = Hit { row: head.row, seq: head.seq };
        verify(reader, hit, &head, bytes, answer, hits);
        true
    })?;
    Ok(())
}

fn is_in_collections(only: Option<&[i64]>, collection: i64) -> bool {
    only.is_none_or(|only| only.contains(&collection))
}

/// Answers a question by testing every item: what [`find`] has to agree with.
///
/// # Errors
/// As [`find`].
pub fn full_scan(reader: &Reader, find: &SearchRequest) -> Result<ResultSet, Error> {
    let mut answer = new_result_set(reader, find)?;
    answer.matcher = answer.matcher.without_indexes();
    let mut hits = HitCollector::new(reader, find);
    scan_items(reader, None, &mut answer, &mut hits)?;
    answer.hits = hits.into_rows();
    apply_limit(&mut answer, find.limit);
    Ok(answer)
}

pub(crate) fn new_result_set(reader: &Reader, find: &SearchRequest) -> Result<ResultSet, Error> {
    let collection = match &find.collection {
        None => None,
        Some(name) => {
            let missing = || larder_store::Error::NoCollection { name: name.clone() };
            Some(*reader.collection_rows(Some(name))?.first().ok_or_else(missing)?)
        }
    };
    let explain = Explanation { query: find.query.to_string(), ..Explanation::default() };
    let (query, matcher) = (find.query.clone(), Matcher::new(&find.query));
    let (rows, ahead, epoch) = (Vec::new(), Prefetch::default(), reader.epoch()?);
    let (found_at, unsure) = (None, Vec::new());
    Ok(ResultSet {
        hits: rows,
        query,
        matcher,
        collection,
        epoch,
        found_at,
        prefetch: ahead,
        uncertain_rows: unsure,
        explain,
    })
}

pub(crate) fn apply_limit(answer: &mut ResultSet, limit: Option<usize>) {
    answer.explain.matched = answer.explain.matched.max(answer.hits.len() as u64);
    answer.hits.truncate(limit.unwrap_or(usize::MAX));
    answer.explain.returned = answer.hits.len() as u64;
}

/// The whole book in stored order needs no card to be read.
fn collect_sorted(
    reader: &Reader,
    find: &SearchRequest,
    answer: &mut ResultSet,
) -> Result<bool, Error> {
    let Some(sort) = find.sort else { return Ok(false) };
    let order = index_order(reader, sort, answer)?;
    let gap = resolve_start_bound(reader, find, sort.descending);
    let Some((before, total)) = locate_bound(reader, &order, &gap)? else { return Ok(false) };
    let Some(last) = gap.last_place_before(sort.descending) else { return Ok(true) };
    let (limit, first) = (find.limit.unwrap_or(usize::MAX), last);
    // An item that moves in the order between two pages would be met twice, or not at all. Where
    // somebody wrote in between it is all read again; who writes all the time waits once.
    for attempt in 0..MAX_SORTED_READ_ATTEMPTS {
        let _snapshot =
            if attempt + 1 == MAX_SORTED_READ_ATTEMPTS { Some(reader.begin_read()?) } else { None };
        let (moment, mut last) = (reader.data_version()?, first.clone());
        answer.hits.clear();
        while answer.hits.len() < limit {
            let wanted = PLACES_PER_TX.min(limit - answer.hits.len());
            let Some(mut places) = reader.sort_positions(&order, last.as_ref(), wanted)? else {
                answer.hits.clear();
                return Ok(false);
            };
            // Whatever becomes of them, they answer the question.
            answer.hits.extend(places.iter().map(|place| Hit { row: place.row, seq: 0 }));
            let whole = places.len() == wanted;
            last = places.pop();
            if !whole {
                break;
            }
        }
        if reader.data_version()? == moment {
            break;
        }
    }
    answer.explain.visited = answer.hits.len() as u64;
    answer.explain.matched = total.saturating_sub(before);
    answer.explain.plan = vec![format!("index: all by {}", sort.field.name)];
    answer.explain.order = "as the index has it".into();
    Ok(true)
}

/// The order of the items an answer is about; the index may have it.
pub(crate) fn index_order(
    reader: &Reader,
    sort: SortSpec,
    answer: &ResultSet,
) -> Result<IndexedOrder, Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    Ok(IndexedOrder { field: sort.field.id, collections, backwards: sort.descending })
}

/// How many items lie before a gap in this order's direction, and how many there are. `None`: the
/// index cannot say.
pub(crate) fn locate_bound(
    reader: &Reader,
    order: &IndexedOrder,
    gap: &SortBound,
) -> Result<Option<(u64, u64)>, Error> {
    let nowhere = SortPosition { key: Vec::new(), row: 0 };
    let place = if let SortBound::Before(place) = gap { place } else { &nowhere };
    let Some((smaller, total)) = reader.rank(order, place)? else { return Ok(None) };
    let before = if *gap == SortBound::End { total } else { smaller };
    Ok(Some((if order.backwards { total.saturating_sub(before) } else { before }, total)))
}

/// Visits every item, or those `only` of these collections, a page a transaction; of the kind that
/// the question is put to, as the others need no test.
fn scan_items(
    reader: &Reader,
    only: Option<&[i64]>,
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    // One collection is read without a look at the others.
    let alone = match only {
        Some([one]) => Some(*one),
        _ => answer.collection,
    };
    let kind = answer.query.required_kind().filter(|_| !answer.matcher.is_without_indexes());
    let mut last = 0;
    while !hits.is_full() {
        let page = match (alone, kind) {
            // The index of a collection tells its rows.
            (Some(one), None) => {
                let page = reader.item_rows(one, last, PAGE_ROWS)?;
                let Some(end) = page.last() else { break };
                last = *end;
                answer.explain.visited += page.len() as u64;
                page
            }
            _ => {
                let page = reader.item_rows_with_kind(alone, last, PAGE_ROWS)?;
                let Some((end, ..)) = page.last() else { break };
                last = *end;
                answer.explain.visited += page.len() as u64;
                let wanted = |(_, collection, of): &(i64, i64, Kind)| {
                    kind.is_none_or(|kind| kind == *of)
                        && answer.is_about_collection(*collection)
                        && is_in_collections(only, *collection)
                };
                page.into_iter().filter(wanted).map(|(row, ..)| row).collect()
            }
        };
        verify_page(reader, page, answer, hits)?;
    }
    Ok(())
}

/// Tests a candidate by its own bytes; takes it, and answers true, if it passes.
fn verify(
    reader: &Reader,
    hit: Hit,
    head: &ItemMeta,
    bytes: &[u8],
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> bool {
    let when = if answer.matcher.is_without_indexes() {
        ScheduleOrigin::Recomputed
    } else {
        ScheduleOrigin::Stored
    };
    let item = DecodedItem { schedule_origin: when, ..DecodedItem::new(reader, head, bytes) };
    answer.explain.tested += 1;
    let passes = answer.matcher.matches_item(&item);
    answer.uncertain_rows.extend(item.uncertain.get().then_some(hit.row));
    if passes {
        hits.add(hit, |field| item.first(field));
    }
    passes
}

/// Tests an item by what is kept of it; `None`: that does not tell.
fn verify_stored_fields(
    reader: &Reader,
    hit: Hit,
    head: &ItemMeta,
    kept: Option<StoredFields<'_>>,
    answer: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Option<bool> {
    let sorted = |sort: SortSpec| {
        kept.is_some_and(|kept| kept.has_field(sort.field)) || is_start_field(sort.field)
    };
    let kept = kept.filter(|_| hits.sort.is_none_or(sorted))?;
    let doubt = Cell::new(false);
    let passes = answer.matcher.matches_stored_fields(reader, head, &kept, &doubt)?;
    answer.uncertain_rows.extend(doubt.get().then_some(hit.row));
    answer.explain.tested += 1;
    if passes {
        hits.add(hit, |field| kept.first(field).map(str::to_string));
    }
    Some(passes)
}
