//! An answer: which items, in which order; and the items themselves, page by page.
//!
//! Bytes are fetched when they are asked for, in short read transactions. So an answer that is read
//! slowly holds nothing up, cards with pictures do not add up in memory, and an item that was
//! removed in between is left out. The first few are read when they are found, as that takes no
//! second way to them. How an answer is found is in `run`.

use crate::error::Error;
use crate::execution;
use crate::item::DecodedItem;
use crate::matcher::Matcher;
use crate::query::Query;
use larder_store::{DataVersion, ItemMeta, Reader, Seq};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of items listed in one transaction.
pub(crate) const PAGE_ROWS: usize = 256;
/// Cards alone are read by so many.
const SOURCES_PER_TX: usize = 1024;
/// Once so many bytes were read, what was read is given out.
const PAGE_BYTES: usize = 1 << 20;
/// For so long what was read is as good as if it were read now.
const PREFETCH_MAX_AGE: Duration = Duration::from_millis(10);
/// So many items are read when they are found, and so many bytes.
const MAX_PREFETCH_ITEMS: usize = 64;
const MAX_PREFETCH_BYTES: usize = 256 << 10;

/// What a question did.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// The question, as an S-expression.
    pub query: String,
    /// How candidates were found, in words.
    pub plan: Vec<String>,
    /// How they were put in order, in words.
    pub order: String,
    /// Rows that the index, or the scan, visited.
    pub visited: u64,
    /// Items that were compared with the question.
    pub tested: u64,
    /// Items that answer the question; where their order is of no matter, no more than were asked
    /// for.
    pub matched: u64,
    /// Items in the answer.
    pub returned: u64,
}

/// An item that answers a question, as long as it is what it was when it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) row: i64,
    /// The batch that had last changed it.
    pub(crate) seq: Seq,
}

/// The answer: which items, in which order.
#[derive(Debug, Clone)]
pub struct ResultSet {
    pub(crate) hits: Vec<Hit>,
    pub(crate) query: Query,
    pub(crate) matcher: Matcher,
    pub(crate) collection: Option<i64>,
    /// The epoch of the store in which it was found.
    pub(crate) epoch: Arc<str>,
    /// When it was found, where that is all that is known of its items.
    pub(crate) found_at: Option<DataVersion>,
    pub(crate) prefetch: Prefetch,
    /// Rows of items of which it could not be told within bounds whether they answer the question:
    /// their rules take too many steps.
    pub uncertain_rows: Vec<i64>,
    /// What finding it took.
    pub explain: Explanation,
}

/// What is as it was when an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staleness {
    /// Nobody has written since.
    Unchanged,
    /// The store is the same, so batches tell what was changed.
    SameStore,
    OtherStore,
}

/// Items that were read when they were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefetch {
    page: ItemPage,
    /// What its reader saw then; `None`: nothing is to be read.
    moment: Option<DataVersion>,
}

impl Prefetch {
    pub(crate) fn new(wanted: bool, moment: DataVersion) -> Prefetch {
        Prefetch { page: ItemPage::default(), moment: Some(moment).filter(|_| wanted) }
    }

    /// Is there no room for more, or is nothing wanted?
    pub(crate) fn is_full(&self) -> bool {
        self.moment.is_none()
            || self.page.items.len() >= MAX_PREFETCH_ITEMS
            || self.page.bytes.len() >= MAX_PREFETCH_BYTES
    }

    /// Items come in the order of their rows. One that is too large is left to be read when it is
    /// asked for.
    pub(crate) fn add(&mut self, head: ItemMeta, bytes: &[u8]) {
        if !self.is_full() && bytes.len() <= MAX_PREFETCH_BYTES {
            self.page.add(head, bytes);
        }
    }

    fn get(&self, row: i64) -> Option<(&ItemMeta, &[u8])> {
        let at = self.page.items.binary_search_by_key(&row, |(head, _)| head.row).ok()?;
        self.page.get(at)
    }
}

/// What was read ahead, as long as nobody has written since: what takes a reader its time gives
/// others time to write.
struct ValidPrefetch<'a> {
    reader: &'a Reader,
    prefetch: &'a Prefetch,
    unchanged: bool,
    checked_at: Instant,
}

impl<'a> ValidPrefetch<'a> {
    fn new(reader: &'a Reader, ahead: &'a Prefetch) -> Result<ValidPrefetch<'a>, Error> {
        let unchanged =
            !ahead.page.items.is_empty() && Some(reader.data_version()?) == ahead.moment;
        Ok(ValidPrefetch { reader, prefetch: ahead, unchanged, checked_at: Instant::now() })
    }

    fn get(&mut self, row: i64) -> Result<Option<(&'a ItemMeta, &'a [u8])>, Error> {
        if !self.unchanged {
            return Ok(None);
        }
        let read = self.prefetch.get(row);
        if read.is_some() && self.checked_at.elapsed() > PREFETCH_MAX_AGE {
            self.unchanged = Some(self.reader.data_version()?) == self.prefetch.moment;
            self.checked_at = Instant::now();
        }
        Ok(read.filter(|_| self.unchanged))
    }
}

/// Items with their bytes, these in one piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemPage {
    items: Vec<(ItemMeta, Range<usize>)>,
    bytes: Vec<u8>,
}

impl ItemPage {
    fn add(&mut self, head: ItemMeta, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.items.push((head, start..self.bytes.len()));
    }

    /// The item in this row.
    pub(crate) fn find_row(&self, row: i64) -> Option<(&ItemMeta, &[u8])> {
        self.get(self.items.iter().position(|(head, _)| head.row == row)?)
    }

    fn get(&self, at: usize) -> Option<(&ItemMeta, &[u8])> {
        let (head, range) = self.items.get(at)?;
        Some((head, self.bytes.get(range.clone())?))
    }
}

impl ResultSet {
    /// An answer of these rows, whatever has become of their items.
    pub(crate) fn from_rows(rows: &[i64]) -> ResultSet {
        let (query, matcher) = (Query::All, Matcher::new(&Query::All));
        let (ahead, explain) = (Prefetch::default(), Explanation::default());
        let (rows_of, epoch) = (rows.iter().copied(), Arc::from(""));
        let answer = ResultSet {
            hits: Vec::new(),
            query,
            matcher,
            collection: None,
            epoch,
            found_at: None,
            prefetch: ahead,
            uncertain_rows: Vec::new(),
            explain,
        };
        answer.with_rows(rows_of)
    }

    /// The same question of another collection is answered so, too.
    pub(crate) fn merge(&mut self, other: ResultSet) {
        self.hits.extend(other.hits);
        self.uncertain_rows.extend(other.uncertain_rows);
    }

    /// How many items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// No item?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// The rows, in their order: to compare answers with.
    #[must_use]
    pub fn rows(&self) -> Vec<i64> {
        self.hits.iter().map(|found| found.row).collect()
    }

    /// Gives each item with its bytes to `each`, until that answers false. What was removed, or
    /// changed so that it answers the question no longer, since the answer was found is left out,
    /// but for the last hundredth of a second. `each` may take its time.
    ///
    /// # Errors
    /// What the store reports.
    pub fn for_each(
        &self,
        reader: &Reader,
        each: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut rest = self.hits.as_slice();
        let mut page = ItemPage::default();
        let mut ahead = ValidPrefetch::new(reader, &self.prefetch)?;
        while let Some((first, behind)) = rest.split_first() {
            if let Some((head, bytes)) = ahead.get(first.row)? {
                rest = behind;
                if !each(head, bytes) {
                    return Ok(());
                }
                continue;
            }
            let run = rest.iter().take(PAGE_ROWS).take_while(|hit| {
                hit.row == first.row || !ahead.unchanged || self.prefetch.get(hit.row).is_none()
            });
            let rows: Vec<i64> = run.map(|hit| hit.row).collect();
            let (found, behind) = rest.split_at(page.fill(reader, &rows)?);
            rest = behind;
            if !self.deliver_page(reader, &page, found, each)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives the bytes of each item to `each`, as [`Answer::each`] does, for who needs nothing
    /// else: everything is read without a look at what the store knows of it.
    ///
    /// # Errors
    /// What the store reports.
    pub fn for_each_source(
        &self,
        reader: &Reader,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        if self.query != Query::All && self.staleness(reader)? != Staleness::Unchanged {
            return self.for_each(reader, &mut |_, bytes| each(bytes));
        }
        let rows = self.rows();
        let (mut rest, mut bytes, mut ends) = (rows.as_slice(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            bytes.clear();
            ends.clear();
            let mut last = None;
            let page = rest.get(..SOURCES_PER_TX).unwrap_or(rest);
            reader.for_each_source(page, &mut |row, card| {
                bytes.extend_from_slice(card);
                ends.push(bytes.len());
                last = (bytes.len() >= PAGE_BYTES).then_some(row);
                last.is_none()
            })?;
            let taken = last.and_then(|last| page.iter().position(|row| *row == last));
            rest = rest.get(taken.map_or(page.len(), |at| at + 1)..).unwrap_or_default();
            let mut start = 0;
            for &end in &ends {
                if !bytes.get(start..end).is_none_or(&mut *each) {
                    return Ok(());
                }
                start = end;
            }
        }
        Ok(())
    }

    /// Gives what a page has of these out, if it still answers the question.
    fn deliver_page(
        &self,
        reader: &Reader,
        page: &ItemPage,
        found: &[Hit],
        each: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<bool, Error> {
        let same = self.staleness(reader)?;
        let mut found = found.iter();
        for at in 0..page.items.len() {
            let Some((head, bytes)) = page.get(at) else { break };
            let Some(found) = found.find(|found| found.row == head.row) else { break };
            let still = self.is_unchanged(found, head, same)
                || self.matcher.matches_item(&DecodedItem::new(reader, head, bytes));
            if still && !each(head, bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Is the item what it was when it was found, or does everything answer the question?
    pub(crate) fn is_unchanged(&self, found: &Hit, head: &ItemMeta, same: Staleness) -> bool {
        match same {
            Staleness::Unchanged => true,
            Staleness::SameStore => found.seq == head.seq || self.query == Query::All,
            Staleness::OtherStore => self.query == Query::All,
        }
    }

    /// How much is as it was when the answer was found.
    pub(crate) fn staleness(&self, reader: &Reader) -> Result<Staleness, Error> {
        if self.found_at.is_some() && self.found_at == Some(reader.data_version()?) {
            return Ok(Staleness::Unchanged);
        }
        Ok(if self.is_same_store(reader)? { Staleness::SameStore } else { Staleness::OtherStore })
    }

    /// Is the store still the one in which it was found? A restored one has other items in the same
    /// rows.
    pub(crate) fn is_same_store(&self, reader: &Reader) -> Result<bool, Error> {
        Ok(reader.epoch()? == self.epoch)
    }

    /// An answer of these rows, whatever has become of their items.
    pub(crate) fn with_rows(mut self, rows: impl IntoIterator<Item = i64>) -> ResultSet {
        self.hits = rows.into_iter().map(|row| Hit { row, seq: 0 }).collect();
        execution::apply_limit(&mut self, None);
        self
    }

    /// Is this answer about the items of this collection?
    pub(crate) fn is_about_collection(&self, collection: i64) -> bool {
        self.collection.is_none_or(|wanted| wanted == collection)
    }
}

impl ItemPage {
    /// Reads the items in these rows, and no more of them than fill a page. Returns how many rows
    /// that were.
    pub(crate) fn fill(&mut self, reader: &Reader, rows: &[i64]) -> Result<usize, Error> {
        self.items.clear();
        self.bytes.clear();
        reader.for_each_item(rows, &mut |head, bytes| {
            self.add(head, bytes);
            self.bytes.len() < PAGE_BYTES
        })?;
        let full = self.bytes.len() >= PAGE_BYTES;
        // A page that is full before its rows are through goes on behind its last one.
        let last = self.items.last().filter(|_| full).map(|(head, _)| head.row);
        Ok(rows.iter().position(|row| Some(*row) == last).map_or(rows.len(), |at| at + 1))
    }
}
