//! An answer: which items, in which order; and the items themselves, page by page.
//!
//! Bytes are fetched when they are asked for, in short read transactions. So an answer that is read slowly holds
//! nothing up, cards with pictures do not add up in memory, and an item that was removed in between is left out. The
//! first few are read when they are found, as that takes no second way to them. How an answer is found is in `run`.

use crate::error::Error;
use crate::item::Item;
use crate::matcher::Matcher;
use crate::query::Query;
use crate::run;
use larder_store::{ItemHead, Moment, Reader, Seq};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of items listed in one transaction.
pub(crate) const PAGE: usize = 256;
/// Cards alone are read by so many.
const CARDS: usize = 1024;
/// Once so many bytes were read, what was read is given out.
const PAGE_BYTES: usize = 1 << 20;
/// For so long what was read is as good as if it were read now.
const SOON: Duration = Duration::from_millis(10);
/// So many items are read when they are found, and so many bytes.
const AHEAD: usize = 64;
const AHEAD_BYTES: usize = 256 << 10;

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
    /// Items that were compared with the question.
    pub tested: u64,
    /// Items that answer the question; where their order is of no matter, no more than were asked for.
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
pub struct Answer {
    pub(crate) rows: Vec<Hit>,
    pub(crate) query: Query,
    pub(crate) matcher: Matcher,
    pub(crate) collection: Option<i64>,
    /// The epoch of the store in which it was found.
    pub(crate) epoch: Arc<str>,
    /// When it was found, where that is all that is known of its items.
    pub(crate) found_at: Option<Moment>,
    pub(crate) ahead: Ahead,
    /// Rows of items of which it could not be told within bounds whether they answer the question: their rules take too many
    /// steps.
    pub unsure: Vec<i64>,
    /// What finding it took.
    pub explain: Explain,
}

/// What is as it was when an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Same {
    /// Nobody has written since.
    All,
    /// The store is the same, so batches tell what was changed.
    Store,
    Nothing,
}

/// Items that were read when they were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead {
    page: Page,
    /// What its reader saw then; `None`: nothing is to be read.
    moment: Option<Moment>,
}

impl Ahead {
    pub(crate) fn new(wanted: bool, moment: Moment) -> Ahead {
        Ahead { page: Page::default(), moment: Some(moment).filter(|_| wanted) }
    }

    /// Is there no room for more, or is nothing wanted?
    pub(crate) fn is_full(&self) -> bool {
        self.moment.is_none()
            || self.page.items.len() >= AHEAD
            || self.page.bytes.len() >= AHEAD_BYTES
    }

    /// Items come in the order of their rows. One that is too large is left to be read when it is asked for.
    pub(crate) fn add(&mut self, head: ItemHead, bytes: &[u8]) {
        if !self.is_full() && bytes.len() <= AHEAD_BYTES {
            self.page.add(head, bytes);
        }
    }

    fn get(&self, row: i64) -> Option<(&ItemHead, &[u8])> {
        let at = self.page.items.binary_search_by_key(&row, |(head, _)| head.row).ok()?;
        self.page.get(at)
    }
}

/// What was read ahead, as long as nobody has written since: what takes a reader its time gives others time to write.
struct Fresh<'a> {
    reader: &'a Reader,
    ahead: &'a Ahead,
    unchanged: bool,
    asked: Instant,
}

impl<'a> Fresh<'a> {
    fn new(reader: &'a Reader, ahead: &'a Ahead) -> Result<Fresh<'a>, Error> {
        let unchanged = !ahead.page.items.is_empty() && Some(reader.moment()?) == ahead.moment;
        Ok(Fresh { reader, ahead, unchanged, asked: Instant::now() })
    }

    fn get(&mut self, row: i64) -> Result<Option<(&'a ItemHead, &'a [u8])>, Error> {
        if !self.unchanged {
            return Ok(None);
        }
        let read = self.ahead.get(row);
        if read.is_some() && self.asked.elapsed() > SOON {
            self.unchanged = Some(self.reader.moment()?) == self.ahead.moment;
            self.asked = Instant::now();
        }
        Ok(read.filter(|_| self.unchanged))
    }
}

/// Items with their bytes, these in one piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    items: Vec<(ItemHead, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Page {
    fn add(&mut self, head: ItemHead, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.items.push((head, start..self.bytes.len()));
    }

    /// The item in this row.
    pub(crate) fn of(&self, row: i64) -> Option<(&ItemHead, &[u8])> {
        self.get(self.items.iter().position(|(head, _)| head.row == row)?)
    }

    fn get(&self, at: usize) -> Option<(&ItemHead, &[u8])> {
        let (head, range) = self.items.get(at)?;
        Some((head, self.bytes.get(range.clone())?))
    }
}

impl Answer {
    /// An answer of these rows, whatever has become of their items.
    pub(crate) fn of(rows: &[i64]) -> Answer {
        let (query, matcher) = (Query::All, Matcher::new(&Query::All));
        let (ahead, explain) = (Ahead::default(), Explain::default());
        let (rows_of, epoch) = (rows.iter().copied(), Arc::from(""));
        let answer = Answer {
            rows: Vec::new(),
            query,
            matcher,
            collection: None,
            epoch,
            found_at: None,
            ahead,
            unsure: Vec::new(),
            explain,
        };
        answer.with_rows(rows_of)
    }

    /// The same question of another collection is answered so, too.
    pub(crate) fn add(&mut self, other: Answer) {
        self.rows.extend(other.rows);
        self.unsure.extend(other.unsure);
    }

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
    /// answers the question no longer, since the answer was found is left out, but for the last hundredth of a second.
    /// `each` may take its time.
    ///
    /// # Errors
    /// What the store reports.
    pub fn each(
        &self,
        reader: &Reader,
        each: &mut dyn FnMut(&ItemHead, &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut rest = self.rows.as_slice();
        let mut page = Page::default();
        let mut ahead = Fresh::new(reader, &self.ahead)?;
        while let Some((first, behind)) = rest.split_first() {
            if let Some((head, bytes)) = ahead.get(first.row)? {
                rest = behind;
                if !each(head, bytes) {
                    return Ok(());
                }
                continue;
            }
            let run = rest.iter().take(PAGE).take_while(|hit| {
                hit.row == first.row || !ahead.unchanged || self.ahead.get(hit.row).is_none()
            });
            let rows: Vec<i64> = run.map(|hit| hit.row).collect();
            let (found, behind) = rest.split_at(page.fill(reader, &rows)?);
            rest = behind;
            if !self.give(reader, &page, found, each)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives the bytes of each item to `each`, as [`Answer::each`] does, for who needs nothing else: everything is read
    /// without a look at what the store knows of it.
    ///
    /// # Errors
    /// What the store reports.
    pub fn cards(&self, reader: &Reader, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        if self.query != Query::All && self.is_same(reader)? != Same::All {
            return self.each(reader, &mut |_, bytes| each(bytes));
        }
        let rows = self.rows();
        let (mut rest, mut bytes, mut ends) = (rows.as_slice(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            bytes.clear();
            ends.clear();
            let mut last = None;
            let page = rest.get(..CARDS).unwrap_or(rest);
            reader.sources(page, &mut |row, card| {
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
    fn give(
        &self,
        reader: &Reader,
        page: &Page,
        found: &[Hit],
        each: &mut dyn FnMut(&ItemHead, &[u8]) -> bool,
    ) -> Result<bool, Error> {
        let same = self.is_same(reader)?;
        let mut found = found.iter();
        for at in 0..page.items.len() {
            let Some((head, bytes)) = page.get(at) else { break };
            let Some(found) = found.find(|found| found.row == head.row) else { break };
            let still = self.is_still(found, head, same)
                || self.matcher.matches_item(&Item::new(reader, head, bytes));
            if still && !each(head, bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Is the item what it was when it was found, or does everything answer the question?
    pub(crate) fn is_still(&self, found: &Hit, head: &ItemHead, same: Same) -> bool {
        match same {
            Same::All => true,
            Same::Store => found.seq == head.seq || self.query == Query::All,
            Same::Nothing => self.query == Query::All,
        }
    }

    /// How much is as it was when the answer was found.
    pub(crate) fn is_same(&self, reader: &Reader) -> Result<Same, Error> {
        if self.found_at.is_some() && self.found_at == Some(reader.moment()?) {
            return Ok(Same::All);
        }
        Ok(if self.is_of(reader)? { Same::Store } else { Same::Nothing })
    }

    /// Is the store still the one in which it was found? A restored one has other items in the same rows.
    pub(crate) fn is_of(&self, reader: &Reader) -> Result<bool, Error> {
        Ok(reader.epoch()? == self.epoch)
    }

    /// An answer of these rows, whatever has become of their items.
    pub(crate) fn with_rows(mut self, rows: impl IntoIterator<Item = i64>) -> Answer {
        self.rows = rows.into_iter().map(|row| Hit { row, seq: 0 }).collect();
        run::cut(&mut self, None);
        self
    }

    /// Is this answer about the items of this collection?
    pub(crate) fn in_collection(&self, collection: i64) -> bool {
        self.collection.is_none_or(|wanted| wanted == collection)
    }
}

impl Page {
    /// Reads the items in these rows, and no more of them than fill a page. Returns how many rows that were.
    pub(crate) fn fill(&mut self, reader: &Reader, rows: &[i64]) -> Result<usize, Error> {
        self.items.clear();
        self.bytes.clear();
        reader.items(rows, &mut |head, bytes| {
            self.add(head, bytes);
            self.bytes.len() < PAGE_BYTES
        })?;
        let full = self.bytes.len() >= PAGE_BYTES;
        // A page that is full before its rows are through goes on behind its last one.
        let last = self.items.last().filter(|_| full).map(|(head, _)| head.row);
        Ok(rows.iter().position(|row| Some(*row) == last).map_or(rows.len(), |at| at + 1))
    }
}
