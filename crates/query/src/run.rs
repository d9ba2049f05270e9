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
use larder_store::{Found, ItemHead, Order, Reader, SORT_FIELDS, Value};

/// Rows of items listed in one transaction.
const PAGE: usize = 256;

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

/// The answer: which items, in which order.
#[derive(Debug, Clone)]
pub struct Answer {
    rows: Vec<i64>,
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
    pub fn rows(&self) -> &[i64] {
        &self.rows
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
        for &row in &self.rows {
            let Some((head, bytes)) = item(reader, row)? else { continue };
            let still = self.query == Query::All || self.matcher.matches(&Contact::parse(&bytes));
            if still && !each(&head, &bytes) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rows that are in this answer's collection, for a plain walk over the same items.
    fn in_collection(&self, collection: i64) -> bool {
        self.collection.is_none_or(|wanted| wanted == collection)
    }
}

fn item(reader: &Reader, row: i64) -> Result<Option<(ItemHead, Vec<u8>)>, Error> {
    let Some(head) = reader.by_row(row)? else { return Ok(None) };
    Ok(reader.source(row)?.map(|bytes| (head, bytes)))
}

/// Answers a question by its plan.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn find(reader: &Reader, find: &Find) -> Result<Answer, Error> {
    let plan = Plan::of(&find.query);
    let mut answer = empty_answer(reader, find)?;
    let by_index = find.query == Query::All && sorted_by_index(reader, find, &mut answer)?;
    if !by_index {
        let mut hits = Hits::new(reader, find.sort);
        answer.explain.plan = vec![plan.words()];
        match &plan {
            Plan::Nothing => {}
            Plan::Scan => scan(reader, &mut answer, &mut hits)?,
            Plan::Index { lookup, exact, .. } => match reader.look_up(lookup)? {
                Some(found) => {
                    answer.explain.visited = found.read;
                    take(reader, &found, *exact, &mut answer, &mut hits)?;
                }
                None => {
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
    for candidate in &found.items {
        if !answer.in_collection(candidate.collection) {
            continue;
        }
        if exact && candidate.sure && hits.sort.is_none() {
            hits.rows.push(candidate.row);
        } else {
            test(reader, candidate.row, answer, hits)?;
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
            let known = reader.collections()?;
            let found = known.iter().find(|collection| &collection.name == name);
            let missing = || larder_store::Error::NoCollection { name: name.clone() };
            Some(found.ok_or_else(missing)?.row)
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
        None => reader.collections()?.iter().map(|collection| collection.row).collect(),
    };
    let order = Order { field: sort.field.id, collections, backwards: sort.descending };
    let Some(places) = reader.places(&order, None, find.limit.unwrap_or(usize::MAX))? else {
        return Ok(false);
    };
    let Some((_, total)) = reader.position(&order, &[])? else { return Ok(false) };
    answer.explain.visited = places.len() as u64;
    answer.explain.matched = total;
    answer.rows = places.into_iter().map(|place| place.row).collect();
    answer.explain.plan = vec![format!("index: all by {}", sort.field.name)];
    answer.explain.order = "as the index has it".into();
    Ok(true)
}

/// Visits every item, a page a transaction.
fn scan(reader: &Reader, answer: &mut Answer, hits: &mut Hits<'_>) -> Result<(), Error> {
    let plain = answer.query == Query::All && hits.sort.is_none();
    let mut last = 0;
    loop {
        let mut page = Vec::with_capacity(PAGE);
        let sql = "SELECT id, collection FROM item WHERE id > ? ORDER BY id LIMIT ?";
        let args = [Value::Integer(last), Value::Integer(PAGE as i64)];
        answer.explain.visited += reader.rows(sql, &args, &mut |row| {
            page.push((row.integer(0), row.integer(1)));
            true
        })?;
        let Some(&(end, _)) = page.last() else { return Ok(()) };
        last = end;
        for (row, collection) in page {
            if !answer.in_collection(collection) {
                continue;
            }
            if plain {
                hits.rows.push(row);
            } else {
                test(reader, row, answer, hits)?;
            }
        }
    }
}

/// Tests a candidate by its own bytes.
fn test(reader: &Reader, row: i64, answer: &mut Answer, hits: &mut Hits<'_>) -> Result<(), Error> {
    let Some(bytes) = reader.source(row)? else { return Ok(()) };
    let card = Contact::parse(&bytes);
    answer.explain.tested += 1;
    if answer.matcher.matches(&card) {
        hits.add(row, &card);
    }
    Ok(())
}

/// What matched so far, with what it is sorted by.
struct Hits<'a> {
    reader: &'a Reader,
    sort: Option<Sort>,
    rows: Vec<i64>,
    keyed: Vec<(Vec<u8>, i64)>,
}

impl<'a> Hits<'a> {
    fn new(reader: &'a Reader, sort: Option<Sort>) -> Hits<'a> {
        Hits { reader, sort, rows: Vec::new(), keyed: Vec::new() }
    }

    fn add(&mut self, row: i64, card: &Contact<'_>) {
        match self.sort {
            None => self.rows.push(row),
            Some(sort) => {
                let value = card.first(sort.field).unwrap_or_default();
                self.keyed.push((self.reader.deriver().sort_key(&value), row));
            }
        }
    }

    fn order(&self) -> String {
        match self.sort {
            None => "as they came".into(),
            Some(sort) => format!("sort keys of {} made for each match", sort.field.name),
        }
    }

    fn into_rows(mut self) -> Vec<i64> {
        let descending = self.sort.is_some_and(|sort| sort.descending);
        self.keyed.sort_unstable_by(|(a, x), (b, y)| {
            let order = a.cmp(b).then(x.cmp(y));
            if descending { order.reverse() } else { order }
        });
        self.rows.extend(self.keyed.into_iter().map(|(_, row)| row));
        self.rows
    }
}
