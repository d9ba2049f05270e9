//! A cursor over a sorted collection: steps forward and back, jumps to a letter, returns its rank.
//!
//! A cursor holds no list of items: its position is a [`SortBound`], and it reads the index on
//! either side of that bound. So a cursor holds no transaction open, costs the same in a collection
//! of any size, and follows changes. If the index does not have the order, or the cursor is over
//! the result of a query, it holds the sort positions of that result and reads them again when the
//! store has changed; the items that it returns are the same. Separate from `execution`, which
//! returns a result once, because a cursor lives as long as a window is open.

use crate::error::Error;
use crate::execution::find;

use crate::query::Query;
use crate::result_set::ResultSet;
use crate::search_request::{SearchRequest, SortSpec};
use crate::sort_bound::{ScanDirection, ScanStart, SortBound};
use crate::sorted_scan::{
    MAX_POSITIONS_PER_TX, PositionPage, indexed_order, rank_of_bound, scan_page,
};
use larder_format::collate::primary_weights;
use larder_format::fold::fold;
use larder_store::{Extractor, IndexedOrder, ItemRow, ReadTransaction, Reader, SortPosition};

/// The maximum number of characters of one letter of an alphabet: `dzs` in Hungarian.
const MAX_LETTER_CHARS: usize = 3;
/// Letters under which others are filed: Á under A, Danish aa under Å, が under か, 김 under ㄱ.
const FILING_LETTERS: &str = concat!(
    "abcdefghijklmnopqrstuvwxyzå",
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん",
    "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ",
);

/// A position between two items of a sorted collection, or of a sorted result.
///
/// The cursor is between items, as a text cursor is between characters: [`step(3)`](Self::step)
/// returns the next three and moves after them; `step(-3)` then returns the same three, the nearest
/// first. (A cursor of evolution-data-server is on an item and skips that item when it changes
/// direction.)
///
/// It consists of a sort key and a row. Items added or removed elsewhere do not move it, and each
/// call reads the store as it is then.
///
/// ```
/// # use larder_query::{Error, Query, Reader, SortSpec, SortedCursor};
/// # fn page(reader: &Reader) -> Result<(), Error> {
/// let mut cursor = SortedCursor::new(Query::All, None, SortSpec::parse("file_as")?);
/// cursor.move_to_text(reader, "M");
/// cursor.step(reader, 50)?.for_each(reader, &mut |item, _source| {
///     println!("{}", item.uid);
///     true
/// })?;
/// let (before, total) = cursor.position(reader)?;
/// println!("{before} of {total}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SortedCursor {
    /// The query and the collection.
    request: SearchRequest,
    sort: SortSpec,
    bound: SortBound,
    /// The positions of the result, if the index does not have the order.
    position_list: Option<PositionList>,
}

/// A letter under which a sorted collection has items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLabel {
    /// The letter for display: a capital, without accents unless they make another letter. `#`
    /// stands for digits, everything else that is not a letter, and an empty value.
    pub text: String,
    /// The number of items before the first item under this letter.
    pub before: u64,
}

/// The sort positions of a result.
#[derive(Debug, Clone)]
struct PositionList {
    /// The state of the store that they were read from.
    change_cursor: larder_store::ChangeCursor,
    positions: Vec<SortPosition>,
}

impl SortedCursor {
    /// A cursor before the first item that matches a query, in one collection or in all.
    #[must_use]
    pub fn new(query: Query, collection: Option<&str>, sort: SortSpec) -> SortedCursor {
        let collection = collection.map(str::to_string);
        let request = SearchRequest { query, collection, ..SearchRequest::default() };
        let bound = SortBound::before_all(sort.direction());
        SortedCursor { request, sort, bound, position_list: None }
    }

    /// Moves before the first item.
    pub fn move_to_start(&mut self) {
        self.bound = SortBound::before_all(self.sort.direction());
    }

    /// Moves after the last item.
    pub fn move_to_end(&mut self) {
        self.bound = SortBound::before_all(self.sort.direction().reverse());
    }

    /// Moves before the first item whose value begins with a text, or else that sorts after it.
    /// Case and accents do not count, unless they make another letter in the store's locale.
    pub fn move_to_text(&mut self, reader: &Reader, text: &str) {
        self.bound = SortBound::from_text(reader.extractor(), text, self.sort.direction());
    }

    /// Returns the next `count` items, or the previous ones if `count` is negative, nearest first,
    /// and moves past them. Returns fewer if there are not more. Reads no item until the items of
    /// the result set are read.
    ///
    /// # Errors
    /// An unknown collection, or an error of the store.
    pub fn step(&mut self, reader: &Reader, count: isize) -> Result<ResultSet, Error> {
        let forward = self.sort.direction();
        let direction = if count < 0 { forward.reverse() } else { forward };
        let (mut rows, wanted) = (Vec::new(), count.unsigned_abs());
        let (result, transaction) = self.begin_call(reader)?;
        let mut is_last = self.read_page(reader, &result, direction, wanted, &mut rows)?;
        drop(transaction);
        while !is_last && rows.len() < wanted {
            let left = wanted - rows.len();
            is_last = self.read_page(reader, &result, direction, left, &mut rows)?;
        }
        Ok(result.with_rows(rows))
    }

    /// Returns the number of items before the cursor, and the number of all items.
    ///
    /// # Errors
    /// As [`SortedCursor::step`].
    pub fn position(&mut self, reader: &Reader) -> Result<(u64, u64), Error> {
        let (result, _transaction) = self.begin_call(reader)?;
        self.position_in_result(reader, &result)
    }

    /// Returns the letters under which there are items, in their order. The cost depends on the
    /// number of letters (in a Chinese collection, of different first characters), not on the
    /// number of items.
    ///
    /// # Errors
    /// As [`SortedCursor::step`].
    pub fn letters(&mut self, reader: &Reader) -> Result<Vec<IndexLabel>, Error> {
        let saved_bound = self.bound.clone();
        self.move_to_start();
        let letters = self.read_letters(reader);
        self.bound = saved_bound;
        letters
    }

    fn read_letters(&mut self, reader: &Reader) -> Result<Vec<IndexLabel>, Error> {
        let result = ResultSet::new(reader, &self.request)?;
        let (direction, alphabet) = (self.sort.direction(), Alphabet::new(reader.extractor()));
        let mut letters: Vec<IndexLabel> = Vec::new();
        // If the positions come from a search, it runs here, outside a read transaction.
        self.read_positions(reader, &result, direction, 1, &mut |_| {})?;
        loop {
            let _transaction = reader.begin_read()?;
            let first = self.read_positions(reader, &result, direction, 1, &mut |_| {})?.last;
            let Some(position) = first else { return Ok(letters) };
            let row = ItemRow::from_number(position.row);
            let source = reader.items().source_bytes(row)?.unwrap_or_default();
            let meta = reader.items().find_by_row(row)?;
            let parsed = meta.as_ref().map(|meta| reader.items().parse_source(meta, &source));
            let value = parsed.and_then(|parsed| parsed.first_value(self.sort.field));
            let (text, prefix) = alphabet.letter_for_key(&position.key, &value.unwrap_or_default());
            if letters.last().is_none_or(|last| last.text != text) {
                let (before, _) = self.position_in_result(reader, &result)?;
                letters.push(IndexLabel { text, before });
            }
            self.bound = match (prefix, direction) {
                (Some(prefix), ScanDirection::Descending) => SortBound::before_prefix(&prefix),
                (Some(prefix), ScanDirection::Ascending) => SortBound::after_prefix(&prefix),
                // All items with the same key, which may be empty.
                (None, ScanDirection::Descending) => SortBound::before_prefix(&position.key),
                (None, ScanDirection::Ascending) => {
                    SortBound::Before(SortPosition { row: i64::MAX, ..position })
                }
            };
        }
    }

    fn advance_past(&mut self, SortPosition { key, row }: SortPosition, direction: ScanDirection) {
        let row = if direction.is_descending() { row } else { row.saturating_add(1) };
        self.bound = SortBound::Before(SortPosition { key, row });
    }

    /// Begins one read transaction for all reads of a call; none if the positions come from a
    /// search, which may take long and begins its own.
    fn begin_call<'r>(
        &self,
        reader: &'r Reader,
    ) -> Result<(ResultSet, Option<ReadTransaction<'r>>), Error> {
        let transaction = reader.begin_read()?;
        let result = ResultSet::new(reader, &self.request)?;
        let is_indexed = match self.indexed_order(reader, &result)? {
            Some(order) => reader.index().has_order(&order)?,
            None => false,
        };
        Ok((result, is_indexed.then_some(transaction)))
    }

    /// Appends the rows of the next items to `rows`, at most `wanted`, and moves past them. Returns
    /// whether there are no more.
    fn read_page(
        &mut self,
        reader: &Reader,
        result: &ResultSet,
        direction: ScanDirection,
        wanted: usize,
        rows: &mut Vec<ItemRow>,
    ) -> Result<bool, Error> {
        let limit = MAX_POSITIONS_PER_TX.min(wanted);
        let page =
            self.read_positions(reader, result, direction, limit, &mut |row| rows.push(row))?;
        if let Some(last) = page.last {
            self.advance_past(last, direction);
        }
        Ok(page.count < limit)
    }

    /// Passes the rows of at most `limit` items that follow the cursor in a direction to `visit`.
    fn read_positions(
        &mut self,
        reader: &Reader,
        result: &ResultSet,
        direction: ScanDirection,
        limit: usize,
        visit: &mut dyn FnMut(ItemRow),
    ) -> Result<PositionPage, Error> {
        let after = match self.bound.scan_start(direction) {
            ScanStart::Unbounded => None,
            ScanStart::After(position) => Some(position),
            ScanStart::Exhausted => return Ok(PositionPage { count: 0, last: None }),
        };
        if let Some(order) = self.indexed_order(reader, result)? {
            let order = IndexedOrder { backwards: direction.is_descending(), ..order };
            if let Some(page) = scan_page(reader, &order, after.as_ref(), limit, visit)? {
                self.position_list = None;
                return Ok(page);
            }
        }
        let positions = list_positions(&mut self.position_list, reader, &self.request, self.sort)?;
        let (before, tail) = positions.split_at(self.bound.count_before(positions));
        let page: Vec<&SortPosition> = match direction {
            ScanDirection::Descending => before.iter().rev().take(limit).collect(),
            ScanDirection::Ascending => tail.iter().take(limit).collect(),
        };
        page.iter().for_each(|position| visit(ItemRow::from_number(position.row)));
        Ok(PositionPage { count: page.len(), last: page.last().copied().cloned() })
    }

    fn position_in_result(
        &mut self,
        reader: &Reader,
        result: &ResultSet,
    ) -> Result<(u64, u64), Error> {
        if let Some(order) = self.indexed_order(reader, result)?
            && let Some(rank) = rank_of_bound(reader, &order, &self.bound)?
        {
            return Ok((rank.before, rank.total));
        }
        let positions = list_positions(&mut self.position_list, reader, &self.request, self.sort)?;
        let (smaller, total) = (self.bound.count_before(positions), positions.len());
        let before = if self.sort.descending { total - smaller } else { smaller };
        Ok((before as u64, total as u64))
    }

    /// Returns the order for the index; `None` if the cursor is over the result of a query.
    fn indexed_order(
        &self,
        reader: &Reader,
        result: &ResultSet,
    ) -> Result<Option<IndexedOrder>, Error> {
        let is_unfiltered = self.request.query == Query::All;
        is_unfiltered.then(|| indexed_order(reader, self.sort, result)).transpose()
    }
}

/// Returns the sort positions of a result. Searches again if the store has changed since.
fn list_positions<'a>(
    list: &'a mut Option<PositionList>,
    reader: &Reader,
    request: &SearchRequest,
    sort: SortSpec,
) -> Result<&'a [SortPosition], Error> {
    let change_cursor = reader.changes().current_cursor()?;
    if list.as_ref().is_none_or(|list| list.change_cursor != change_cursor) {
        let mut positions = Vec::new();
        find(reader, request)?.for_each(reader, &mut |meta, source| {
            let value = reader.items().parse_source(meta, source).first_value(sort.field);
            let key = reader.extractor().sort_key(&value.unwrap_or_default());
            positions.push(SortPosition { key, row: meta.row.to_number() });
            true
        })?;
        positions.sort_unstable();
        *list = Some(PositionList { change_cursor, positions });
    }
    Ok(list.as_ref().map_or(&[], |list| &list.positions))
}

/// Finds the letter under which a value is sorted. A sort key shows with which letters it begins,
/// but not how they are written.
struct Alphabet<'a> {
    extractor: &'a Extractor,
    /// Letters, and the keys of each.
    letters: Vec<(String, Vec<u8>)>,
}

impl Alphabet<'_> {
    fn new(extractor: &Extractor) -> Alphabet<'_> {
        let mut alphabet = Alphabet { extractor, letters: Vec::new() };
        let letters = FILING_LETTERS.chars().map(|letter| letter.to_string());
        let keyed = letters.map(|letter| {
            let key = alphabet.letter_key(&letter);
            (letter, key)
        });
        let letters = keyed.collect();
        alphabet.letters = letters;
        alphabet
    }

    /// Returns the letter for display, and the prefix of all keys that are filed under it, if it is
    /// known.
    fn letter_for_key(&self, key: &[u8], value: &str) -> (String, Option<Vec<u8>>) {
        let folded = fold(value);
        let starts = [&folded, value].into_iter().flat_map(|text| {
            text.char_indices().take(MAX_LETTER_CHARS).map(|(at, c)| &text[..at + c.len_utf8()])
        });
        let unlisted = starts.map(|start| (start.to_string(), self.letter_key(start)));
        let letters = self.letters.iter().cloned().chain(unlisted);
        let matching = letters.filter(|(_, letter)| !letter.is_empty() && key.starts_with(letter));
        // If several match, the longer ones are the letter followed by text.
        let Some((text, letter)) = matching.min_by_key(|(_, letter)| letter.len()) else {
            return ("#".into(), None);
        };
        if !text.chars().all(char::is_alphabetic) {
            return ("#".into(), Some(letter));
        }
        // The capital of i is I, unless that is a different letter: then the capital is İ.
        let capitals = [text.to_uppercase(), "İ".into()];
        let capital = capitals.into_iter().find(|capital| self.letter_key(capital) == letter);
        (capital.unwrap_or(text), Some(letter))
    }

    fn letter_key(&self, text: &str) -> Vec<u8> {
        primary_weights(&self.extractor.sort_key(text)).to_vec()
    }
}
