//! Answering: candidates, the test of each, the order, and the items page by page.
//!
//! An answer is a list of rows; bytes are fetched when they are asked for, an item at a time, in short read
//! transactions. So an answer that is read slowly holds nothing up, cards with pictures do not add up in
//! memory, and an item that was removed in between is left out.

use crate::contact::Matcher;
use crate::error::Error;
use crate::plan::Plan;
use crate::query::Query;
use larder_format::contact::Contact;
use larder_format::field::{Field, field, nearest};
use larder_store::{Found, ItemHead, Order, Reader, SORT_FIELDS, Seq, Value};

/// Rows of items listed in one transaction.
const PAGE: usize = 256;
/// So many candidates may be tested within one transaction.
const FEW: usize = 1000;
/// Places of an order listed in one transaction.
const PLACES: usize = 4096;
/// Once so many bytes were read, what was read is given out.
const PAGE_BYTES: usize = 1 << 20;

/// What is asked, and how the answer is to look.
#[derive(Debug, Clone)]
pub struct Find {
    /// The question.
    pub query: Query,
    /// Only items of this collection.
    pub collection: Option<String>,
    /// The order; `None`: as they came.
    pub sort: Option<Sort>,
    /// At most so many.
    pub limit: Option<usize>,
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
        match field(name) {
            Some(field) => Ok(Sort { field, descending }),
            None => Err(Error::NoField { name: name.to_string(), nearest: nearest(name) }),
        }
    }
}

/// What a question did.
#[derive(Debug, Clone, Default)]
pub struct Explain {
    /// The question, as an S-expression.
    pub query: String,
    /// How candidates were found, in words.
    pub plan: Vec<String>,
    /// How they were put in order, in words.
    pub order: String,
    /// Rows that the index, or the scan, visited.
    pub visited: u64,
    /// Items whose bytes were parsed and tested.
    pub tested: u64,
    /// Items that answer the question.
    pub matched: u64,
    /// Items in the answer.
    pub returned: u64,
}

/// An item that answers a question, as long as it is what it was when it was found.
#[derive(Debug, Clone, Copy)]
struct Hit {
    row: i64,
    /// The batch that had last changed it.
    seq: Seq,
}

/// The answer: which items, in which order.
#[derive(Debug, Clone)]
pub struct Answer {
    rows: Vec<Hit>,
    query: Query,
    matcher: Matcher,
    collection: Option<i64>,
    /// What finding it took.
    pub explain: Explain,
}

impl Answer {
    /// How many items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// No item?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, in their order: to compare answers with.
    #[must_use]
    pub fn rows(&self) -> Vec<i64> {
        self.rows.iter().map(|found| found.row).collect()
    }

    /// Gives each item with its bytes to `each`, until that answers false. What was removed, or changed so that it
    /// answers the question no longer, since the answer was found is left out. `each` may take its time.
    ///
    /// # Errors
    /// What the store reports.
    pub fn each(
        &self,
        reader: &Reader,
        each: &mut dyn FnMut(&ItemHead, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut rest = self.rows.as_slice();
        let mut page: Vec<(ItemHead, Vec<u8>)> = Vec::new();
        while !rest.is_empty() {
            page.clear();
            let mut bytes = 0;
            let rows: Vec<i64> = rest.iter().take(PAGE).map(|found| found.row).collect();
            reader.items(&rows, &mut |head, source| {
                bytes += source.len();
                page.push((head, source.to_vec()));
                bytes < PAGE_BYTES
            })?;
            // A page that is full before its rows are through goes on behind its last one.
            let last = page.last().filter(|_| bytes >= PAGE_BYTES).map(|(head, _)| head.row);
            let taken =
                rows.iter().position(|row| Some(*row) == last).map_or(rows.len(), |at| at + 1);
            let (found, behind) = rest.split_at(taken);
            rest = behind;
            let mut found = found.iter();
            for (head, source) in &page {
                let Some(found) = found.find(|found| found.row == head.row) else { break };
                let still = found.seq == head.seq
                    || self.query == Query::All
                    || self.matcher.matches(&Contact::parse(source));
                if still && !each(head, source) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The rows that are in this answer's collection, for a plain walk over the same items.
    fn in_collection(&self, collection: i64) -> bool {
        self.collection.is_none_or(|wanted| wanted == collection)
    }
}

/// Answers a question by its plan.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn find(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let plan = Plan::of(&find.query);
    let mut answer = empty_answer(reader, find)?;
    let whole = find.query == Query::All;
    let snapshot = if whole { None } else { Some(reader.snapshot()?) };
    if !(whole && sorted_by_index(reader, find, &mut answer)?) {
        let mut hits = Hits::new(reader, find.sort);
        answer.explain.plan = vec![plan.words()];
        match &plan {
            Plan::Nothing => {}
            Plan::Scan => {
                drop(snapshot);
                scan(reader, &mut answer, &mut hits)?;
            }
            Plan::Index { lookup, exact, .. } => match reader.look_up(lookup)? {
                Some(found) => {
                    answer.explain.visited = found.read;
                    if found.items.len() > FEW {
                        drop(snapshot);
                    }
                    take(reader, &found, *exact, &mut answer, &mut hits)?;
                }
                None => {
                    drop(snapshot);
                    answer.explain.plan = vec![Plan::Scan.words()];
                    scan(reader, &mut answer, &mut hits)?;
                }
            },
        }
        answer.explain.order = hits.order();
        answer.rows = hits.into_rows();
    }
    cut(&mut answer, find.limit);
    Ok(answer)
}

/// Takes what the index names: as it is where it is sure and no order is wanted, else by its bytes.
fn take(
    reader: &Reader,
    found: &Found,
    exact: bool,
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    let wanted = found.items.iter().filter(|candidate| answer.in_collection(candidate.collection));
    let wanted: Vec<_> = wanted.copied().collect();
    for candidate in wanted {
        if exact && candidate.sure && hits.sort.is_none() {
            hits.rows.push(Hit { row: candidate.row, seq: candidate.seq });
        } else if let Some(bytes) = reader.source(candidate.row)? {
            test(Hit { row: candidate.row, seq: candidate.seq }, &bytes, answer, hits);
        }
    }
    Ok(())
}

/// Answers a question by testing every item: what [`find`] has to agree with.
///
/// # Errors
/// As [`find`].
pub fn walk(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let mut answer = empty_answer(reader, find)?;
    let mut hits = Hits::new(reader, find.sort);
    scan(reader, &mut answer, &mut hits)?;
    answer.rows = hits.into_rows();
    cut(&mut answer, find.limit);
    Ok(answer)
}

fn empty_answer(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let collection = match &find.collection {
        None => None,
        Some(name) => {
            let missing = || larder_store::Error::NoCollection { name: name.clone() };
            Some(*reader.collection_rows(Some(name))?.first().ok_or_else(missing)?)
        }
    };
    let explain = Explain { query: find.query.to_string(), ..Explain::default() };
    let (query, matcher) = (find.query.clone(), Matcher::new(&find.query));
    Ok(Answer { rows: Vec::new(), query, matcher, collection, explain })
}

fn cut(answer: &mut Answer, limit: Option<usize>) {
    answer.explain.matched = answer.explain.matched.max(answer.rows.len() as u64);
    answer.rows.truncate(limit.unwrap_or(usize::MAX));
    answer.explain.returned = answer.rows.len() as u64;
}

/// The whole book in stored order needs no card to be read.
fn sorted_by_index(reader: &Reader, find: &Find, answer: &mut Answer) -> Result<bool, Error> {
    let Some(sort) = find.sort else { return Ok(false) };
    if !SORT_FIELDS.contains(&sort.field.name) {
        return Ok(false);
    }
    let collections = match answer.collection {
        Some(row) => vec![row],
        None => reader.collection_rows(None)?,
    };
    let order = Order { field: sort.field.id, collections, backwards: sort.descending };
    let Some((_, total)) = reader.position(&order, &[])? else { return Ok(false) };
    let (limit, mut last) = (find.limit.unwrap_or(usize::MAX), None);
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
    answer.explain.visited = answer.rows.len() as u64;
    answer.explain.matched = total;
    answer.explain.plan = vec![format!("index: all by {}", sort.field.name)];
    answer.explain.order = "as the index has it".into();
    Ok(true)
}

/// Visits every item, a page a transaction.
fn scan(reader: &Reader, answer: &mut Answer, hits: &mut Hits<'_>) -> Result<(), Error> {
    let plain = answer.query == Query::All && hits.sort.is_none();
    let (mut last, mut before) = (0, 0);
    loop {
        let mut page = Vec::with_capacity(PAGE);
        let sql = "SELECT id, collection, seq FROM item WHERE id > ? ORDER BY id LIMIT ?";
        let args = [Value::Integer(last), Value::Integer(PAGE as i64)];
        answer.explain.visited += reader.rows(sql, &args, &mut |row| {
            last = row.integer(0);
            if answer.in_collection(row.integer(1)) {
                page.push(Hit { row: last, seq: row.integer(2) });
            }
            true
        })?;
        if plain {
            hits.rows.extend(page);
        } else {
            let rows: Vec<i64> = page.iter().map(|hit| hit.row).collect();
            reader.items(&rows, &mut |head, bytes| {
                test(Hit { row: head.row, seq: head.seq }, bytes, answer, hits);
                true
            })?;
        }
        if last == before {
            return Ok(());
        }
        before = last;
    }
}

/// Tests a candidate by its own bytes.
fn test(hit: Hit, bytes: &[u8], answer: &mut Answer, hits: &mut Hits<'_>) {
    let card = Contact::parse(bytes);
    answer.explain.tested += 1;
    if answer.matcher.matches(&card) {
        hits.add(hit, &card);
    }
}

/// What matched so far, with what it is sorted by.
struct Hits<'a> {
    reader: &'a Reader,
    sort: Option<Sort>,
    rows: Vec<Hit>,
    keyed: Vec<(Vec<u8>, Hit)>,
}

impl<'a> Hits<'a> {
    fn new(reader: &'a Reader, sort: Option<Sort>) -> Hits<'a> {
        Hits { reader, sort, rows: Vec::new(), keyed: Vec::new() }
    }

    fn add(&mut self, hit: Hit, card: &Contact<'_>) {
        match self.sort {
            None => self.rows.push(hit),
            Some(sort) => {
                let value = card.first(sort.field).unwrap_or_default();
                self.keyed.push((self.reader.deriver().sort_key(&value), hit));
            }
        }
    }

    fn order(&self) -> String {
        match self.sort {
            None => "as they came".into(),
            Some(sort) => format!("sort keys of {} made for each match", sort.field.name),
        }
    }

    fn into_rows(mut self) -> Vec<Hit> {
        let descending = self.sort.is_some_and(|sort| sort.descending);
        self.keyed.sort_unstable_by(|(a, x), (b, y)| {
            let order = a.cmp(b).then(x.row.cmp(&y.row));
            if descending { order.reverse() } else { order }
        });
        self.rows.extend(self.keyed.into_iter().map(|(_, hit)| hit));
        self.rows
    }
}
