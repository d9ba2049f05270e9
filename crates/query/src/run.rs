//! Answering: candidates, the test of each, the order, and the items page by page.
//!
//! An answer is a list of rows; bytes are fetched when they are asked for, an item at a time, in short read
//! transactions. So an answer that is read slowly holds nothing up, cards with pictures do not add up in
//! memory, and an item that was removed in between is left out.

use crate::contact::matches;
use crate::error::Error;
use crate::plan::Plan;
use crate::query::Query;
use larder_format::contact::Contact;
use larder_format::field::{Field, field, nearest};
use larder_store::{IndexSet, ItemHead, Reader, SORT_FIELDS, Value};

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
    /// The SQL that named the candidates, if an index did.
    pub sql: Option<String>,
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
            let still = self.query == Query::All || matches(&self.query, &Contact::parse(&bytes));
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
    let plan = Plan::of(&find.query, reader.usable(IndexSet::Text)?);
    let mut answer = empty_answer(reader, find)?;
    let by_index = find.query == Query::All && sorted_by_index(reader, find, &mut answer)?;
    if !by_index {
        let mut hits = Hits::new(reader, find.sort);
        answer.explain.plan = plan.steps();
        match &plan {
            Plan::Nothing => {}
            Plan::Scan => scan(reader, &mut answer, &mut hits)?,
            Plan::Index { sql, args, .. } => match rows(reader, IndexSet::Text, sql, args)? {
                Some(rows) => {
                    answer.explain.visited = rows.len() as u64;
                    answer.explain.sql = Some(sql.clone());
                    let candidates: Vec<i64> = rows.into_iter().map(|(row, _)| row).collect();
                    test(reader, &candidates, &mut answer, &mut hits)?;
                }
                None => {
                    answer.explain.plan = Plan::Scan.steps();
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

/// The first two numbers of what an index names. `None`: since it was found usable, somebody has begun to fill it
/// anew, so that rows may be missing in it.
fn rows(
    reader: &Reader,
    set: IndexSet,
    sql: &str,
    args: &[Value],
) -> Result<Option<Vec<(i64, i64)>>, Error> {
    let mut rows = Vec::new();
    reader.rows(sql, args, &mut |row| {
        rows.push((row.integer(0), row.integer(1)));
        true
    })?;
    Ok(reader.usable(set)?.then_some(rows))
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
    Ok(Answer { rows: Vec::new(), query: find.query.clone(), collection, explain })
}

fn cut(answer: &mut Answer, limit: Option<usize>) {
    answer.explain.matched = answer.rows.len() as u64;
    answer.rows.truncate(limit.unwrap_or(usize::MAX));
    answer.explain.returned = answer.rows.len() as u64;
}

/// The whole book in stored order needs no card to be read.
fn sorted_by_index(reader: &Reader, find: &Find, answer: &mut Answer) -> Result<bool, Error> {
    let Some(sort) = find.sort else { return Ok(false) };
    if !SORT_FIELDS.contains(&sort.field.name) || !reader.usable(IndexSet::Sort)? {
        return Ok(false);
    }
    let direction = if sort.descending { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT s.item, i.collection FROM idx_sort s JOIN item i ON i.id = s.item
         WHERE s.field = ? ORDER BY s.key {direction}, s.item ASC"
    );
    let args = [Value::Integer(sort.field.id.into())];
    let Some(rows) = rows(reader, IndexSet::Sort, &sql, &args)? else { return Ok(false) };
    answer.explain.visited = rows.len() as u64;
    answer.rows = rows
        .into_iter()
        .filter(|(_, collection)| answer.in_collection(*collection))
        .map(|(row, _)| row)
        .collect();
    answer.explain.plan = vec![format!("idx_sort: all by {}", sort.field.name)];
    answer.explain.order = "as the index has it".into();
    answer.explain.sql = Some(sql);
    Ok(true)
}

/// Visits every item, a page a transaction.
fn scan(reader: &Reader, answer: &mut Answer, hits: &mut Hits<'_>) -> Result<(), Error> {
    let mut last = 0;
    loop {
        let mut page = Vec::with_capacity(PAGE);
        let sql = "SELECT id FROM item WHERE id > ? ORDER BY id LIMIT ?";
        let args = [Value::Integer(last), Value::Integer(PAGE as i64)];
        answer.explain.visited += reader.rows(sql, &args, &mut |row| {
            page.push(row.integer(0));
            true
        })?;
        let Some(&end) = page.last() else { return Ok(()) };
        last = end;
        test(reader, &page, answer, hits)?;
    }
}

/// Tests a page of candidates by their own bytes.
fn test(
    reader: &Reader,
    page: &[i64],
    answer: &mut Answer,
    hits: &mut Hits<'_>,
) -> Result<(), Error> {
    let plain = answer.query == Query::All && hits.sort.is_none();
    for &row in page {
        let sql = "SELECT collection FROM item WHERE id = ?";
        let mut there = false;
        reader.rows(sql, &[Value::Integer(row)], &mut |row| {
            there = answer.in_collection(row.integer(0));
            false
        })?;
        if !there {
            continue;
        }
        if plain {
            hits.rows.push(row);
            continue;
        }
        let Some(bytes) = reader.source(row)? else { continue };
        let card = Contact::parse(&bytes);
        answer.explain.tested += 1;
        if matches(&answer.query, &card) {
            hits.add(row, &card);
        }
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
            let order = if descending { b.cmp(a) } else { a.cmp(b) };
            order.then(x.cmp(y))
        });
        self.rows.extend(self.keyed.into_iter().map(|(_, row)| row));
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::{Options, Store};

    #[test]
    fn an_index_that_changed_since_it_was_found_usable() {
        let scratch = tempfile::tempdir().unwrap();
        let made = Options { create: true, ..Options::default() };
        let reader = Store::open(scratch.path(), &made).unwrap().reader().unwrap();
        let ask = |set, table: &str| {
            rows(&reader, set, &format!("SELECT item FROM {table}"), &[]).unwrap()
        };
        assert!(reader.usable(IndexSet::Sort).unwrap());
        // Between the question whether it is usable and the look at it, somebody fills it anew.
        let swedish = Options { locale: Some("sv".into()), ..made };
        Store::open(scratch.path(), &swedish).unwrap();
        assert_eq!(ask(IndexSet::Sort, "idx_sort"), None);
        assert_eq!(ask(IndexSet::Text, "idx_value"), Some(Vec::new()), "any order will do");
    }
}
