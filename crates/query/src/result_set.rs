//! The result of a search: the rows of items, in an order, and the items themselves page by page.
//!
//! Items are read when the caller asks for them, in short read transactions: a result set that is
//! read slowly holds no transaction open and no source bytes in memory, and an item that was
//! removed in between is skipped. Only the first few items are kept from the search, which had to
//! read them anyway. Separate from `execution`, which finds the rows.

use crate::damaged_items::DamagedItems;
use crate::error::Error;
use crate::item::DecodedItem;
use crate::matcher::Matcher;
use crate::query::Query;
use crate::search_request::SearchRequest;
use crate::step_counter::StepCounter;
use larder_store::{CollectionRow, DataVersion, ItemMeta, ItemRow, Reader, Seq};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of items read in one transaction.
pub(crate) const PAGE_ROWS: usize = 256;
/// The maximum number of items read in one transaction when only their bytes are wanted.
const SOURCES_PER_TX: usize = 1024;
/// A page ends with the item that reaches this size.
const PAGE_BYTES: usize = 1 << 20;
/// Most items are shorter.
const TYPICAL_ITEM_BYTES: usize = 1 << 10;
/// Prefetched items are used for this long before the store is checked for changes again.
const PREFETCH_MAX_AGE: Duration = Duration::from_millis(10);
/// The maximum number of items that a search prefetches.
const MAX_PREFETCH_ITEMS: usize = 64;
/// A search stops prefetching when it has this many bytes; a larger item is never prefetched.
const MAX_PREFETCH_BYTES: usize = 256 << 10;

/// The record of the execution of a query.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// The query, as an S-expression.
    pub query: String,
    /// The source of the candidates, in words.
    pub plan: Vec<String>,
    /// The sorting of the hits, in words.
    pub order: String,
    /// Rows of the index, or of the full scan, that were read.
    pub rows_read: u64,
    /// Items that were verified.
    pub verified: u64,
    /// Items that match; no more than the limit if the search stopped there.
    pub matched: u64,
    /// Items in the result.
    pub returned: u64,
}

/// An item that matched when it was verified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) row: ItemRow,
    /// The batch that had last changed the item at the time of the search; 0 if the item itself was
    /// not read.
    pub(crate) seq: Seq,
}

/// The result of a search: its items and their order.
#[derive(Debug, Clone)]
pub struct ResultSet {
    pub(crate) hits: Vec<Hit>,
    pub(crate) query: Query,
    pub(crate) matcher: Matcher,
    /// The steps of the search.
    pub(crate) steps: StepCounter,
    pub(crate) collection: Option<CollectionRow>,
    /// The epoch of the store during the search.
    pub(crate) epoch: Arc<str>,
    /// The version of the data during the search, if the hits have no sequence numbers.
    pub(crate) found_at: Option<DataVersion>,
    pub(crate) prefetch: Prefetch,
    /// Rows of items for which the query could not be decided within bounds: their recurrence rules
    /// take too many steps.
    pub undecided_rows: Vec<ItemRow>,
    /// The items that the search could not test.
    pub(crate) damaged: DamagedItems,
    /// How the query was executed.
    pub explain: Explanation,
}

/// The change of the store since a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staleness {
    /// No change.
    Unchanged,
    /// Batches were applied: sequence numbers tell which items changed.
    SameStore,
    /// The store was replaced: the same rows may be other items.
    OtherStore,
}

/// Items that a search read, kept for the caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefetch {
    page: ItemPage,
    /// The version of the data that they were read from; `None` if nothing is prefetched.
    version: Option<DataVersion>,
}

impl Prefetch {
    pub(crate) fn new(version: DataVersion) -> Prefetch {
        Prefetch { page: ItemPage::default(), version: Some(version) }
    }

    /// Returns whether no item can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.version.is_none()
            || self.page.items.len() >= MAX_PREFETCH_ITEMS
            || self.page.bytes.len() >= MAX_PREFETCH_BYTES
    }

    /// Adds an item, unless it is too large. Items are added in the order of their rows.
    pub(crate) fn add(&mut self, meta: ItemMeta, bytes: &[u8]) {
        if !self.is_full() && bytes.len() <= MAX_PREFETCH_BYTES {
            self.page.add(meta, bytes);
        }
    }

    fn get(&self, row: ItemRow) -> Option<(&ItemMeta, &[u8])> {
        let at = self.page.items.binary_search_by_key(&row, |(meta, _)| meta.row).ok()?;
        self.page.get(at)
    }
}

/// A prefetch that is valid until the next write. Its validity is checked again during reading,
/// because other processes may write while a slow caller reads.
struct ValidPrefetch<'a> {
    reader: &'a Reader,
    prefetch: &'a Prefetch,
    is_unchanged: bool,
    checked_at: Instant,
}

impl<'a> ValidPrefetch<'a> {
    fn new(reader: &'a Reader, prefetch: &'a Prefetch) -> Result<ValidPrefetch<'a>, Error> {
        let is_unchanged =
            !prefetch.page.items.is_empty() && Some(reader.data_version()?) == prefetch.version;
        Ok(ValidPrefetch { reader, prefetch, is_unchanged, checked_at: Instant::now() })
    }

    fn get(&mut self, row: ItemRow) -> Result<Option<(&'a ItemMeta, &'a [u8])>, Error> {
        if !self.is_unchanged {
            return Ok(None);
        }
        let item = self.prefetch.get(row);
        if item.is_some() && self.checked_at.elapsed() > PREFETCH_MAX_AGE {
            self.is_unchanged = Some(self.reader.data_version()?) == self.prefetch.version;
            self.checked_at = Instant::now();
        }
        Ok(item.filter(|_| self.is_unchanged))
    }
}

/// Items with their source bytes, which lie in one buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemPage {
    items: Vec<(ItemMeta, Range<usize>)>,
    bytes: Vec<u8>,
    /// The damaged items of all pages so far.
    pub(crate) damaged: DamagedItems,
}

impl ItemPage {
    fn add(&mut self, meta: ItemMeta, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.items.push((meta, start..self.bytes.len()));
    }

    /// Returns the item with this row id.
    pub(crate) fn find_row(&self, row: ItemRow) -> Option<(&ItemMeta, &[u8])> {
        self.get(self.items.iter().position(|(meta, _)| meta.row == row)?)
    }

    /// Returns the items, each with its bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ItemMeta, &[u8])> {
        self.items.iter().filter_map(|(meta, range)| Some((meta, self.bytes.get(range.clone())?)))
    }

    fn get(&self, at: usize) -> Option<(&ItemMeta, &[u8])> {
        let (meta, range) = self.items.get(at)?;
        Some((meta, self.bytes.get(range.clone())?))
    }
}

impl ResultSet {
    /// A result set without hits, for the collection of a request.
    pub(crate) fn new(reader: &Reader, request: &SearchRequest) -> Result<ResultSet, Error> {
        let collection = match &request.collection {
            None => None,
            Some(name) => {
                let missing = || larder_store::Error::NoCollection { name: name.clone() };
                Some(*reader.collections().list_rows(Some(name))?.first().ok_or_else(missing)?)
            }
        };
        let explain = Explanation { query: request.query.to_string(), ..Explanation::default() };
        let epoch = reader.epoch()?;
        let steps = StepCounter::new(request.max_steps.0);
        Ok(ResultSet {
            collection,
            epoch,
            explain,
            steps,
            ..ResultSet::empty(request.query.clone())
        })
    }

    fn empty(query: Query) -> ResultSet {
        ResultSet {
            hits: Vec::new(),
            matcher: Matcher::new(&query),
            steps: StepCounter::default(),
            query,
            collection: None,
            epoch: Arc::from(""),
            found_at: None,
            prefetch: Prefetch::default(),
            undecided_rows: Vec::new(),
            damaged: DamagedItems::default(),
            explain: Explanation::default(),
        }
    }

    /// A result set of the items in these rows, regardless of their current content.
    pub(crate) fn from_rows(rows: &[ItemRow]) -> ResultSet {
        ResultSet::empty(Query::All).with_rows(rows.iter().copied())
    }

    /// Truncates the hits to a limit, and counts them.
    pub(crate) fn apply_limit(&mut self, limit: Option<usize>) {
        self.explain.matched = self.explain.matched.max(self.hits.len() as u64);
        self.hits.truncate(limit.unwrap_or(usize::MAX));
        self.explain.returned = self.hits.len() as u64;
    }

    /// Returns the rows of the collections that were searched.
    pub(crate) fn collection_rows(&self, reader: &Reader) -> Result<Vec<CollectionRow>, Error> {
        match self.collection {
            Some(row) => Ok(vec![row]),
            None => Ok(reader.collections().list_rows(None)?),
        }
    }

    /// Appends the hits of the same query in another collection.
    pub(crate) fn merge(&mut self, other: ResultSet) {
        self.hits.extend(other.hits);
        self.undecided_rows.extend(other.undecided_rows);
        self.damaged.extend(&other.damaged);
    }

    /// Returns an error if the search left out items, because they are damaged.
    ///
    /// # Errors
    /// [`Error::DamagedItems`], or an error of the store that names the only one.
    pub fn check_complete(&self) -> Result<(), Error> {
        self.damaged.to_result()
    }

    /// Returns an error if the search, or a list that read these pages, left out damaged items.
    pub(crate) fn check_pages(&self, pages: &ItemPage) -> Result<(), Error> {
        let mut damaged = self.damaged.clone();
        damaged.extend(&pages.damaged);
        damaged.to_result()
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Returns whether the search found nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// The row ids of the items, in the order of the result.
    #[must_use]
    pub fn rows(&self) -> Vec<ItemRow> {
        self.hits.iter().map(|hit| hit.row).collect()
    }

    /// Calls `visit` with every item and its source bytes, until it returns false. Items that were
    /// removed since the search, or changed so that they no longer match, are skipped; a change of
    /// the last hundredth of a second may be missed. No transaction is open during the calls.
    ///
    /// # Errors
    /// Errors of the store; after all other items were passed, an error that names the damaged
    /// ones.
    pub fn for_each(
        &self,
        reader: &Reader,
        visit: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut rest = self.hits.as_slice();
        let mut page = ItemPage::default();
        let mut prefetch = ValidPrefetch::new(reader, &self.prefetch)?;
        while let Some((first, others)) = rest.split_first() {
            if let Some((meta, bytes)) = prefetch.get(first.row)? {
                rest = others;
                if !visit(meta, bytes) {
                    return Ok(());
                }
                continue;
            }
            let run = rest.iter().take(PAGE_ROWS).take_while(|hit| {
                hit.row == first.row
                    || !prefetch.is_unchanged
                    || self.prefetch.get(hit.row).is_none()
            });
            let rows: Vec<ItemRow> = run.map(|hit| hit.row).collect();
            let transaction = reader.begin_read()?;
            let (read, others) = rest.split_at(page.fill(reader, &rows)?);
            let staleness = self.staleness(reader)?;
            drop(transaction);
            rest = others;
            if !self.deliver_page(reader, &page, read, staleness, visit)? {
                return Ok(());
            }
        }
        self.check_pages(&page)
    }

    /// Calls `visit` with the source bytes of every item, as [`ResultSet::for_each`] does. It is
    /// faster than [`ResultSet::for_each`], because it does not read the item table.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn for_each_source_bytes(
        &self,
        reader: &Reader,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Error> {
        if self.query != Query::All && self.staleness(reader)? != Staleness::Unchanged {
            return self.for_each(reader, &mut |_, bytes| visit(bytes));
        }
        let rows = self.rows();
        let (mut rest, mut bytes, mut ends) = (rows.as_slice(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            bytes.clear();
            ends.clear();
            let mut last = None;
            let page = rest.get(..SOURCES_PER_TX).unwrap_or(rest);
            reader.items().for_each_source_bytes(page, &mut |row, source| {
                bytes.extend_from_slice(source);
                ends.push(bytes.len());
                last = (bytes.len() >= PAGE_BYTES).then_some(row);
                last.is_none()
            })?;
            let last_read = last.and_then(|last| page.iter().position(|row| *row == last));
            rest = rest.get(last_read.map_or(page.len(), |at| at + 1)..).unwrap_or_default();
            let mut start = 0;
            for &end in &ends {
                if !bytes.get(start..end).is_none_or(&mut *visit) {
                    return Ok(());
                }
                start = end;
            }
        }
        Ok(())
    }

    /// Calls `visit` with the items of a page that still match. Returns false if `visit` did.
    fn deliver_page(
        &self,
        reader: &Reader,
        page: &ItemPage,
        hits: &[Hit],
        staleness: Staleness,
        visit: &mut dyn FnMut(&ItemMeta, &[u8]) -> bool,
    ) -> Result<bool, Error> {
        let mut hits = hits.iter();
        for at in 0..page.items.len() {
            let Some((meta, bytes)) = page.get(at) else { break };
            let Some(hit) = hits.find(|hit| hit.row == meta.row) else { break };
            let is_match = self.is_unchanged(hit, meta, staleness)
                || self.matcher.matches_item(DecodedItem::new(reader, meta, bytes))?;
            if is_match && !visit(meta, bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether an item needs no second test: it has not changed since the search, or every
    /// item matches.
    pub(crate) fn is_unchanged(&self, hit: &Hit, meta: &ItemMeta, staleness: Staleness) -> bool {
        match staleness {
            Staleness::Unchanged => true,
            Staleness::SameStore => hit.seq == meta.seq || self.query == Query::All,
            Staleness::OtherStore => self.query == Query::All,
        }
    }

    /// Returns how the store has changed since the search.
    pub(crate) fn staleness(&self, reader: &Reader) -> Result<Staleness, Error> {
        if self.found_at.is_some() && self.found_at == Some(reader.data_version()?) {
            return Ok(Staleness::Unchanged);
        }
        Ok(if self.is_same_store(reader)? { Staleness::SameStore } else { Staleness::OtherStore })
    }

    /// Returns whether the store has not been replaced since the search. In a restored store the
    /// same rows may be other items.
    pub(crate) fn is_same_store(&self, reader: &Reader) -> Result<bool, Error> {
        Ok(reader.epoch()? == self.epoch)
    }

    /// Replaces the hits by these rows, regardless of their current content.
    pub(crate) fn with_rows(mut self, rows: impl IntoIterator<Item = ItemRow>) -> ResultSet {
        self.hits = rows.into_iter().map(|row| Hit { row, seq: 0 }).collect();
        self.apply_limit(None);
        self
    }

    /// Returns whether the items of a collection were searched.
    pub(crate) fn is_about_collection(&self, collection: CollectionRow) -> bool {
        self.collection.is_none_or(|wanted| wanted == collection)
    }
}

impl ItemPage {
    /// Reads the items in these rows until the page is full. Returns the number of rows that were
    /// read.
    pub(crate) fn fill(&mut self, reader: &Reader, rows: &[ItemRow]) -> Result<usize, Error> {
        self.items.clear();
        self.bytes.clear();
        self.items.reserve(rows.len());
        self.bytes.reserve((rows.len() * TYPICAL_ITEM_BYTES).min(PAGE_BYTES));
        let read = reader.items().for_each(rows, &mut |meta, bytes| {
            self.add(meta, bytes);
            self.bytes.len() < PAGE_BYTES
        });
        if let Err(error) = read {
            self.damaged.add(error)?;
            return self.fill_past_damage(reader, rows);
        }
        let is_full = self.bytes.len() >= PAGE_BYTES;
        // The next page continues after the last item of a full page.
        let last = self.items.last().filter(|_| is_full).map(|(meta, _)| meta.row);
        Ok(rows.iter().position(|row| Some(*row) == last).map_or(rows.len(), |at| at + 1))
    }

    /// Fills the page as [`ItemPage::fill`] does, item by item, without the damaged ones.
    fn fill_past_damage(&mut self, reader: &Reader, rows: &[ItemRow]) -> Result<usize, Error> {
        self.items.clear();
        self.bytes.clear();
        for (row, count) in rows.iter().zip(1..) {
            let read = reader.items().for_each(&[*row], &mut |meta, bytes| {
                self.add(meta, bytes);
                true
            });
            if let Err(error) = read {
                self.damaged.add(error)?;
            }
            if self.bytes.len() >= PAGE_BYTES {
                return Ok(count);
            }
        }
        Ok(rows.len())
    }
}
