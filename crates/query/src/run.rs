//! Answering: candidates, the test of each, and the order.
//!
//! What the index names is held against the items in one snapshot, as far as that is soon done. `answer` is what comes
//! of it.

use crate::answer::{Ahead, Answer, Explain, Hit, PAGE};
use crate::error::Error;
use crate::gap::Gap;
use crate::hits::{Hits, begins_at, is_start, start_key};
use crate::item::{Item, When};
use crate::matcher::Matcher;
use crate::plan::Plan;
use crate::query::Query;
use crate::time::TimeTest;
use larder_format::field::{Field, calendar_field, field, nearest};
use larder_store::index::Place;
use larder_store::{
    Candidate, Family, Found, ItemHead, Kept, Kind, Order, Reader, Snapshot, Summary, Window,
};
use std::cell::Cell;
use std::sync::Arc;

/// So many candidates may be held against their items within one transaction.
const FEW: usize = 1000;
/// So many bytes of candidates may be read within one transaction.
const MUCH: usize = 4 << 20;
/// So often at most the places of an order are read again.
const ATTEMPTS: usize = 3;
/// Places of an order, or rows without their bytes, listed in one transaction.
const PLACES: usize = 4096;

/// What is asked, and how the answer is to look.
#[derive(Debug, Clone, Default)]
pub struct Find {
    /// The question.
    pub query: Query,
    /// Only items of this collection.
    pub collection: Option<String>,
    /// The order; `None`: as they came.
    pub sort: Option<Sort>,
    /// Where in this order the answer begins: at the first item that begins with this text, or that lies behind where
    /// such would, whatever its case and accents. Without an order it says nothing.
    pub from: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Cards are read on the way to the answer, a few of them: for who is going to ask for all of them at once.
    pub cards: bool,
}

/// The order of an answer: by a field's first value, in the store's locale; equals as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The field.
    pub field: &'static Field,
    /// From the end of the alphabet to its beginning.
    pub descending: bool,
}

impl Sort {
    /// Reads a field's name, with a minus in front for the other direction.
    ///
    /// # Errors
    /// [`Error::NoField`], with the nearest name.
    pub fn parse(text: &str) -> Result<Sort, Error> {
        let (descending, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        match field(name).or_else(|| calendar_field(name)) {
            Some(field) => Ok(Sort { field, descending }),
            None => Err(Error::NoField { name: name.to_string(), nearest: nearest(name) }),
        }
    }
}

/// Answers a question by its plan.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn find(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let snapshot = reader.snapshot()?;
    let mut answer = empty_answer(reader, find)?;
    if find.query == Query::All {
        drop(snapshot);
        all_items(reader, find, &mut answer)?;
    } else if by_window(reader, find, &mut answer)? {
        // The index has the answer as it is wanted.
    } else {
        planned(reader, snapshot, find, &mut answer)?;
    }
    cut(&mut answer, find.limit);
    Ok(answer)
}

/// What no question narrows: in the order that is kept, where there is one.
fn all_items(reader: &Reader, find: &Find, answer: &mut Answer) -> Result<(), Error> {
    if find.sort.is_none() {
        return everything(reader, answer, find.limit.unwrap_or(usize::MAX));
    }
    if sorted_by_index(reader, find, answer)? {
        return Ok(());
    }
    planned(reader, reader.snapshot()?, find, answer)
}

fn planned(
    reader: &Reader,
    snapshot: Snapshot<'_>,
    find: &Find,
    answer: &mut Answer,
) -> Result<(), Error> {
    let mut hits = Hits::new(reader, find);
    by_plan(reader, snapshot, find, answer, &mut hits)?;
    answer.explain.order = hits.order();
    answer.rows = hits.into_rows();
    Ok(())
}

/// Every item, as they came. No question is put to them, whatever becomes of them.
fn everything(reader: &Reader, answer: &mut Answer, limit: usize) -> Result<(), Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    for &collection in &collections {
        let (mut after, mut left) = (0, limit);
        loop {
            let page = reader.rows_of(collection, after, PLACES.min(left))?;
            answer.rows.extend(page.iter().map(|row| Hit { row: *row, seq: 0 }));
            left -= page.len();
            match page.last() {
                Some(last) => after = *last,
                None => break,
            }
        }
    }
    if collections.len() > 1 {
        answer.rows.sort_unstable_by_key(|hit| hit.row);
    }
    answer.explain.visited = answer.rows.len() as u64;
    answer.explain.plan = vec!["index: all items".into()];
    answer.explain.order = "as they came".into();
    Ok(())
}

/// What is in a window, where nothing else is asked: the index alone tells, and no item is read. Within one snapshot.
fn by_window(reader: &Reader, find: &Find, answer: &mut Answer) -> Result<bool, Error> {
    let Query::Time(TimeTest::In(window)) = &find.query else { return Ok(false) };
    if find.sort.is_some_and(|sort| !is_start(sort.field)) {
        return Ok(false);
    }
    let Some(mut rows) = searched(reader, window, answer)? else { return Ok(false) };
    if let Some(sort) = find.sort {
        let mut keyed: Vec<(Vec<u8>, i64)> = Vec::with_capacity(rows.len());
        reader.times(&rows, &mut |row, times| {
            keyed.push((start_key(times.start()), row));
            true
        })?;
        keyed.sort_unstable();
        rows = keyed.into_iter().map(|(_, row)| row).collect();
        if sort.descending {
            rows.reverse();
        }
    }
    answer.found_at = Some(reader.moment()?);
    answer.rows.extend(rows.into_iter().map(|row| Hit { row, seq: 0 }));
    answer.explain.order =
        if find.sort.is_some() { "by start" } else { "as they came" }.to_string();
    Ok(true)
}

fn searched(
    reader: &Reader,
    window: &Window,
    answer: &mut Answer,
) -> Result<Option<Vec<i64>>, Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    let Some(found) = reader.search(&collections, window)? else { return Ok(None) };
    answer.explain.visited += found.visited;
    answer.explain.tested += found.tested;
    answer.explain.plan.push(format!("index: {}", crate::time::words(window)));
    if !found.unsure.is_empty() {
        let left = format!("{} left out: their rules take too long", found.unsure.len());
        answer.explain.plan.push(left);
        answer.unsure = found.unsure;
    }
    Ok(Some(found.rows))
}

/// Collections that have one summary.
struct Group {
    summary: Arc<Summary>,
    collections: Vec<i64>,
}

/// Collects what answers the question, by a plan for each summary that the collections asked have. What a summary says
/// holds for the index of the same snapshot; it ends here.
fn by_plan(
    reader: &Reader,
    snapshot: Snapshot<'_>,
    find: &Find,
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    let groups = groups(reader, answer)?;
    let alone = groups.len() == 1;
    if alone {
        answer.ahead = Ahead::new(find.cards, reader.moment()?);
    } else {
        // Which ones are the first is known when all are there.
        hits.limit = usize::MAX;
    }
    let (mut rest, mut scanned) = (Vec::new(), None);
    for Group { summary, collections } in groups {
        let plan = Plan::of(&find.query, &summary);
        let found = match &plan {
            Plan::Index { lookup, .. } => reader.look_up(lookup, &collections)?,
            Plan::Nothing => Some(Found::default()),
            Plan::Scan(_) => None,
        };
        let only = if alone { None } else { Some(collections.as_slice()) };
        let Some(found) = found else {
            answer.explain.plan.push(Plan::Scan(find.query.kind()).words());
            scanned.get_or_insert_with(Vec::new).extend(collections);
            continue;
        };
        answer.explain.plan.push(plan.words());
        let exact = matches!(plan, Plan::Index { exact: true, .. }) && hits.sort.is_none();
        rest.extend(Taking { reader, answer, hits, only, exact, read: 0 }.take(&found)?);
    }
    drop(snapshot);
    take_rest(reader, &rest, answer, hits)?;
    if let Some(collections) = scanned {
        let only = if alone { None } else { Some(collections.as_slice()) };
        scan(reader, only, answer, hits)?;
    }
    hits.rows.sort_unstable_by_key(|hit| hit.row);
    Ok(())
}

/// The collections asked, by their summaries: mostly one group, and one at least.
fn groups(reader: &Reader, answer: &Answer) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    if answer.query != Query::All {
        for (row, summary) in reader.summaries()? {
            let same = |group: &&mut Group| {
                Arc::ptr_eq(&group.summary, &summary) || group.summary == summary
            };
            match groups.iter_mut().find(same) {
                _ if !answer.in_collection(row) => {}
                Some(group) => group.collections.push(row),
                None => groups.push(Group { summary, collections: vec![row] }),
            }
        }
    }
    if groups.is_empty() {
        // Nothing is there, or it is all wanted, however it is indexed.
        let summary = Summary::shared_default(Family::Contacts);
        groups.push(Group { summary, collections: Vec::new() });
    }
    Ok(groups)
}

/// What the index names, on its way into an answer.
struct Taking<'a, 'b> {
    reader: &'a Reader,
    answer: &'a mut Answer,
    hits: &'a mut Hits<'b>,
    /// Of these collections; `None`: of all that are asked.
    only: Option<&'a [i64]>,
    /// What is named answers the question, where it is sure, and no order is wanted.
    exact: bool,
    /// Bytes that were read.
    read: usize,
}

impl Taking<'_, '_> {
    /// Takes as much as is soon done, within a snapshot; returns the rest.
    fn take(mut self, found: &Found) -> Result<Vec<Named>, Error> {
        self.answer.explain.visited += found.read;
        let (mut failed, mut seen) = (None, 0);
        if self.hits.are_enough() {
            return Ok(Vec::new());
        }
        if self.exact && self.answer.ahead.is_full() {
            return self.list(found, 0);
        }
        let with_bytes = self.exact || !self.answer.matcher.asks_what_is_kept();
        let done = self.reader.candidates(found, 0, with_bytes, &mut |candidate| {
            seen += 1;
            failed = self.hold(candidate).err();
            // The rest is only listed, and read when others may write.
            let enough =
                seen >= FEW || self.read >= MUCH || (self.exact && self.answer.ahead.is_full());
            failed.is_none() && !self.hits.are_enough() && !enough
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None if self.hits.are_enough() => Ok(Vec::new()),
            None => self.list(found, done),
        }
    }

    fn is_asked(&self, candidate: &Candidate<'_>) -> bool {
        self.answer.in_collection(candidate.collection) && is_in(self.only, candidate.collection)
    }

    /// Takes a candidate, if it answers the question, and its bytes as long as there is room for them.
    fn hold(&mut self, candidate: &Candidate<'_>) -> Result<(), larder_store::Error> {
        if !self.is_asked(candidate) {
            return Ok(());
        }
        let head = candidate.head()?;
        let hit = Hit { row: candidate.row, seq: candidate.seq };
        if self.exact && candidate.sure {
            self.hits.rows.push(hit);
        } else {
            let kept = candidate.kept();
            let passes = test_kept(self.reader, hit, &head, kept, self.answer, self.hits);
            let passes = match passes {
                Some(passes) => passes,
                None => {
                    let bytes = candidate.bytes()?;
                    self.read += bytes.len();
                    test(self.reader, hit, &head, &bytes, self.answer, self.hits)
                }
            };
            if !passes {
                return Ok(());
            }
        }
        if self.only.is_none() && !self.answer.ahead.is_full() {
            self.answer.ahead.add(head, &candidate.bytes()?);
        }
        Ok(())
    }

    /// What else is named, from a place on: no more than is asked for.
    fn list(&self, found: &Found, from: usize) -> Result<Vec<Named>, Error> {
        let mut rest = Vec::new();
        let mut open = self.hits.wanted();
        self.reader.candidates(found, from, false, &mut |candidate| {
            if self.is_asked(candidate) {
                let sure = self.exact && candidate.sure;
                rest.push(Named { hit: Hit { row: candidate.row, seq: candidate.seq }, sure });
                open = open.saturating_sub(usize::from(sure));
            }
            open > 0
        })?;
        Ok(rest)
    }
}

/// An item that the index named, and whether that is the answer.
struct Named {
    hit: Hit,
    sure: bool,
}

/// Takes what is named as it is where it is sure, else after a test. Others may write meanwhile.
fn take_rest(
    reader: &Reader,
    rest: &[Named],
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    for page in rest.chunks(PAGE) {
        if hits.are_enough() {
            break;
        }
        hits.rows.extend(page.iter().filter(|named| named.sure).map(|named| named.hit));
        let unsure = page.iter().filter(|named| !named.sure);
        let unsure: Vec<i64> = unsure.map(|named| named.hit.row).collect();
        if !unsure.is_empty() {
            test_page(reader, unsure, answer, hits)?;
        }
    }
    Ok(())
}

/// Tests the items in these rows, by what is kept of them where that tells. What is taken is not in order then.
fn test_page(
    reader: &Reader,
    mut rows: Vec<i64>,
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    if answer.matcher.asks_what_is_kept() {
        let mut open = Vec::new();
        reader.kept(&rows, &mut |head, kept| {
            let hit = Hit { row: head.row, seq: head.seq };
            if test_kept(reader, hit, &head, kept, answer, hits).is_none() {
                open.push(head.row);
            }
            true
        })?;
        rows = open;
    }
    reader.items(&rows, &mut |head, bytes| {
        let hit = Hit { row: head.row, seq: head.seq };
        test(reader, hit, &head, bytes, answer, hits);
        true
    })?;
    Ok(())
}

fn is_in(only: Option<&[i64]>, collection: i64) -> bool {
    only.is_none_or(|only| only.contains(&collection))
}

/// Answers a question by testing every item: what [`find`] has to agree with.
///
/// # Errors
/// As [`find`].
pub fn walk(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let mut answer = empty_answer(reader, find)?;
    answer.matcher = answer.matcher.by_cards();
    let mut hits = Hits::new(reader, find);
    scan(reader, None, &mut answer, &mut hits)?;
    answer.rows = hits.into_rows();
    cut(&mut answer, find.limit);
    Ok(answer)
}

pub(crate) fn empty_answer(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let collection = match &find.collection {
        None => None,
        Some(name) => {
            let missing = || larder_store::Error::NoCollection { name: name.clone() };
            Some(*reader.collection_rows(Some(name))?.first().ok_or_else(missing)?)
        }
    };
    let explain = Explain { query: find.query.to_string(), ..Explain::default() };
    let (query, matcher) = (find.query.clone(), Matcher::new(&find.query));
    let (rows, ahead, epoch) = (Vec::new(), Ahead::default(), reader.epoch()?);
    let (found_at, unsure) = (None, Vec::new());
    Ok(Answer { rows, query, matcher, collection, epoch, found_at, ahead, unsure, explain })
}

pub(crate) fn cut(answer: &mut Answer, limit: Option<usize>) {
    answer.explain.matched = answer.explain.matched.max(answer.rows.len() as u64);
    answer.rows.truncate(limit.unwrap_or(usize::MAX));
    answer.explain.returned = answer.rows.len() as u64;
}

/// The whole book in stored order needs no card to be read.
fn sorted_by_index(reader: &Reader, find: &Find, answer: &mut Answer) -> Result<bool, Error> {
    let Some(sort) = find.sort else { return Ok(false) };
    let order = order_of(reader, sort, answer)?;
    let gap = begins_at(reader, find, sort.descending);
    let Some((before, total)) = position(reader, &order, &gap)? else { return Ok(false) };
    let Some(last) = gap.after(sort.descending) else { return Ok(true) };
    let (limit, first) = (find.limit.unwrap_or(usize::MAX), last);
    // An item that moves in the order between two pages would be met twice, or not at all. Where somebody wrote in
    // between it is all read again; who writes all the time waits once.
    for attempt in 0..ATTEMPTS {
        let _snapshot = if attempt + 1 == ATTEMPTS { Some(reader.snapshot()?) } else { None };
        let (moment, mut last) = (reader.moment()?, first.clone());
        answer.rows.clear();
        while answer.rows.len() < limit {
            let wanted = PLACES.min(limit - answer.rows.len());
            let Some(mut places) = reader.places(&order, last.as_ref(), wanted)? else {
                answer.rows.clear();
                return Ok(false);
            };
            // Whatever becomes of them, they answer the question.
            answer.rows.extend(places.iter().map(|place| Hit { row: place.row, seq: 0 }));
            let whole = places.len() == wanted;
            last = places.pop();
            if !whole {
                break;
            }
        }
        if reader.moment()? == moment {
            break;
        }
    }
    answer.explain.visited = answer.rows.len() as u64;
    answer.explain.matched = total.saturating_sub(before);
    answer.explain.plan = vec![format!("index: all by {}", sort.field.name)];
    answer.explain.order = "as the index has it".into();
    Ok(true)
}

/// The order of the items an answer is about; the index may have it.
pub(crate) fn order_of(reader: &Reader, sort: Sort, answer: &Answer) -> Result<Order, Error> {
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    Ok(Order { field: sort.field.id, collections, backwards: sort.descending })
}

/// How many items lie before a gap in this order's direction, and how many there are. `None`: the index cannot say.
pub(crate) fn position(
    reader: &Reader,
    order: &Order,
    gap: &Gap,
) -> Result<Option<(u64, u64)>, Error> {
    let nowhere = Place { key: Vec::new(), row: 0 };
    let place = if let Gap::Before(place) = gap { place } else { &nowhere };
    let Some((smaller, total)) = reader.position(order, place)? else { return Ok(None) };
    let before = if *gap == Gap::End { total } else { smaller };
    Ok(Some((if order.backwards { total.saturating_sub(before) } else { before }, total)))
}

/// Visits every item, or those `only` of these collections, a page a transaction; of the kind that the question is put to, as the others need
/// no test.
fn scan(
    reader: &Reader,
    only: Option<&[i64]>,
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    // One collection is read without a look at the others.
    let alone = match only {
        Some([one]) => Some(*one),
        _ => answer.collection,
    };
    let kind = answer.query.kind().filter(|_| !answer.matcher.is_anew());
    let mut last = 0;
    while !hits.are_enough() {
        let page = match (alone, kind) {
            // The index of a collection tells its rows.
            (Some(one), None) => {
                let page = reader.rows_of(one, last, PAGE)?;
                let Some(end) = page.last() else { break };
                last = *end;
                answer.explain.visited += page.len() as u64;
                page
            }
            _ => {
                let page = reader.kinds_of(alone, last, PAGE)?;
                let Some((end, ..)) = page.last() else { break };
                last = *end;
                answer.explain.visited += page.len() as u64;
                let wanted = |(_, collection, of): &(i64, i64, Kind)| {
                    kind.is_none_or(|kind| kind == *of)
                        && answer.in_collection(*collection)
                        && is_in(only, *collection)
                };
                page.into_iter().filter(wanted).map(|(row, ..)| row).collect()
            }
        };
        test_page(reader, page, answer, hits)?;
    }
    Ok(())
}

/// Tests a candidate by its own bytes; takes it, and answers true, if it passes.
fn test(
    reader: &Reader,
    hit: Hit,
    head: &ItemHead,
    bytes: &[u8],
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> bool {
    let when = if answer.matcher.is_anew() { When::Anew } else { When::Kept };
    let item = Item { when, ..Item::new(reader, head, bytes) };
    answer.explain.tested += 1;
    let passes = answer.matcher.matches_item(&item);
    answer.unsure.extend(item.doubt.get().then_some(hit.row));
    if passes {
        hits.add(hit, |field| item.first(field));
    }
    passes
}

/// Tests an item by what is kept of it; `None`: that does not tell.
fn test_kept(
    reader: &Reader,
    hit: Hit,
    head: &ItemHead,
    kept: Option<Kept<'_>>,
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Option<bool> {
    let sorted =
        |sort: Sort| kept.is_some_and(|kept| kept.holds(sort.field)) || is_start(sort.field);
    let kept = kept.filter(|_| hits.sort.is_none_or(sorted))?;
    let doubt = Cell::new(false);
    let passes = answer.matcher.matches_kept(reader, head, &kept, &doubt)?;
    answer.unsure.extend(doubt.get().then_some(hit.row));
    answer.explain.tested += 1;
    if passes {
        hits.add(hit, |field| kept.first(field).map(str::to_string));
    }
    Some(passes)
}
