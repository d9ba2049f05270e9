//! A cursor over a sorted book: steps forward and back, jumps to a letter, tells where it is.
//!
//! It is no list of items: it stands in a [`SortBound`] and asks the index for what lies on either
//! side. So it holds no transaction open, costs the same in a book of any size, and sees what
//! others change. Where the index does not keep the order, or the cursor is over the answer to a
//! question, the places of that answer are held and found anew once the store has changed; what it
//! gives is the same. It is apart from `run` because an answer is there once, and a cursor for as
//! long as a window is open.

use crate::error::Error;
use crate::execution::{self, SearchRequest, SortSpec, find};
use crate::item::ParsedSource;
use crate::query::Query;
use crate::result_set::ResultSet;
use crate::sort_bound::SortBound;
use larder_format::collate::primary_weights;
use larder_format::fold::fold;
use larder_store::{Extractor, IndexedOrder, Reader, SortPosition};

/// Places taken in one transaction.
const MAX_PLACES_PER_TX: usize = 4096;
/// So many characters at most are one letter of an alphabet: `dzs` in Hungarian.
const MAX_LETTER_CHARS: usize = 3;
/// Letters that others are filed under: Á under A, Danish aa under Å, が under か, 김 under ㄱ.
const FILING_LETTERS: &str = concat!(
    "abcdefghijklmnopqrstuvwxyzå",
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん",
    "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ",
);

/// A place between two items of a sorted book, or of a sorted answer.
///
/// It stands between items as a text cursor does between characters: [`step(3)`](Cursor::step)
/// gives the next three and moves behind them, `step(-3)` then gives the same three, the nearest
/// first. (A cursor of evolution-data-server stands on an item, and leaves that one out when it
/// turns round.)
///
/// What it remembers is the sort key and the row it stands at. Items that come or go before it or
/// behind it do not move it, and each call answers for the store as it is then.
///
/// ```
/// # use larder_query::{Cursor, Error, Query, Reader, Sort};
/// # fn page(reader: &Reader) -> Result<(), Error> {
/// let mut cursor = Cursor::new(Query::All, None, Sort::parse("file_as")?);
/// cursor.move_to(reader, "M");
/// cursor.step(reader, 50)?.each(reader, &mut |item, _card| {
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
    /// What its items answer, without an order.
    request: SearchRequest,
    sort: SortSpec,
    bound: SortBound,
    /// The places, if the index cannot tell.
    place_list: Option<PlaceList>,
}

/// A letter under which a sorted book has items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilingLetter {
    /// The letter, for people: capital, without accents unless they make another letter. `#`:
    /// digits and all else that is no letter, or nothing at all.
    pub text: String,
    /// How many items lie before the first of them.
    pub before: u64,
}

/// Places that were found by answering.
#[derive(Debug, Clone)]
struct PlaceList {
    /// When.
    cursor: larder_store::ChangeCursor,
    places: Vec<SortPosition>,
}

impl SortedCursor {
    /// A cursor before the first of the items that answer a question, in all collections or in one.
    #[must_use]
    pub fn new(query: Query, collection: Option<&str>, sort: SortSpec) -> SortedCursor {
        let collection = collection.map(str::to_string);
        let request = SearchRequest { query, collection, ..SearchRequest::default() };
        SortedCursor { request, sort, bound: SortBound::start(sort.descending), place_list: None }
    }

    /// Goes before the first item.
    pub fn move_to_start(&mut self) {
        self.bound = SortBound::start(self.sort.descending);
    }

    /// Goes behind the last item.
    pub fn move_to_end(&mut self) {
        self.bound = SortBound::start(!self.sort.descending);
    }

    /// Goes before the first item that begins with a text, or that lies behind where such would.
    /// Case and accents do not count, unless they make another letter in the order of the store's
    /// locale.
    pub fn move_to_text(&mut self, reader: &Reader, text: &str) {
        self.bound = SortBound::from_text(reader.extractor(), text, self.sort.descending);
    }

    /// Gives so many items from here on, or backwards if it is negative, in the order in which they
    /// are met, and moves past them. Fewer are left if it gives fewer. No item is read until the
    /// answer's are.
    ///
    /// # Errors
    /// An unknown collection, or what the store reports.
    pub fn step(&mut self, reader: &Reader, count: isize) -> Result<ResultSet, Error> {
        let answer = execution::new_result_set(reader, &self.request)?;
        let backwards = self.sort.descending != (count < 0);
        let (mut rows, wanted) = (Vec::new(), count.unsigned_abs());
        while rows.len() < wanted {
            let page = MAX_PLACES_PER_TX.min(wanted - rows.len());
            let mut places = self.read_places(reader, &answer, backwards, page)?;
            rows.extend(places.iter().map(|place| place.row));
            let whole = places.len() == page;
            if let Some(place) = places.pop() {
                self.advance_past(place, backwards);
            }
            if !whole {
                break;
            }
        }
        Ok(answer.with_rows(rows))
    }

    /// How many items lie before it, and how many there are.
    ///
    /// # Errors
    /// As [`Cursor::step`].
    pub fn position(&mut self, reader: &Reader) -> Result<(u64, u64), Error> {
        let answer = execution::new_result_set(reader, &self.request)?;
        self.position_in_results(reader, &answer)
    }

    /// The letters under which there are items, in their order. It jumps from one to the next, so
    /// what it costs is the number of letters: of a Chinese book, that of its first characters.
    ///
    /// # Errors
    /// As [`Cursor::step`].
    pub fn letters(&mut self, reader: &Reader) -> Result<Vec<FilingLetter>, Error> {
        let stood = self.bound.clone();
        self.move_to_start();
        let letters = self.read_letters(reader);
        self.bound = stood;
        letters
    }

    fn read_letters(&mut self, reader: &Reader) -> Result<Vec<FilingLetter>, Error> {
        let answer = execution::new_result_set(reader, &self.request)?;
        let (backwards, alphabet) = (self.sort.descending, Alphabet::new(reader.extractor()));
        let mut letters: Vec<FilingLetter> = Vec::new();
        // If it takes an answer to tell the places, that is found while others may write.
        self.read_places(reader, &answer, backwards, 1)?;
        loop {
            let _snapshot = reader.begin_read()?;
            let Some(place) = self.read_places(reader, &answer, backwards, 1)?.pop() else {
                return Ok(letters);
            };
            let card = reader.source_bytes(place.row)?.unwrap_or_default();
            let head = reader.find_by_row(place.row)?;
            let value = head
                .and_then(|head| ParsedSource::parse(reader, &head, &card).first(self.sort.field));
            let value = value.unwrap_or_default();
            let (text, beginning) = alphabet.letter_for_key(&place.key, &value);
            if letters.last().is_none_or(|last| last.text != text) {
                let (before, _) = self.position_in_results(reader, &answer)?;
                letters.push(FilingLetter { text, before });
            }
            self.bound = match (beginning, backwards) {
                (Some(beginning), true) => SortBound::before_prefix(&beginning),
                (Some(beginning), false) => SortBound::after_prefix(&beginning),
                // All with the same key, which may be empty.
                (None, true) => SortBound::before_prefix(&place.key),
                (None, false) => SortBound::Before(SortPosition { row: i64::MAX, ..place }),
            };
        }
    }

    /// Moves past an item in a direction of the index.
    fn advance_past(&mut self, SortPosition { key, row }: SortPosition, backwards: bool) {
        let row = if backwards { row } else { row.saturating_add(1) };
        self.bound = SortBound::Before(SortPosition { key, row });
    }

    /// So many places from here on, in a direction of the index.
    fn read_places(
        &mut self,
        reader: &Reader,
        answer: &ResultSet,
        backwards: bool,
        limit: usize,
    ) -> Result<Vec<SortPosition>, Error> {
        let Some(after) = self.bound.last_place_before(backwards) else { return Ok(Vec::new()) };
        if let Some(order) = self.index_order(reader, answer)?
            && let Some(places) = reader.sort_positions(
                &IndexedOrder { backwards, ..order },
                after.as_ref(),
                limit,
            )?
        {
            self.place_list = None;
            return Ok(places);
        }
        let places = list_places(&mut self.place_list, reader, &self.request, self.sort)?;
        let (before, behind) = places.split_at(self.bound.count_before(places));
        Ok(match backwards {
            true => before.iter().rev().take(limit).cloned().collect(),
            false => behind.iter().take(limit).cloned().collect(),
        })
    }

    fn position_in_results(
        &mut self,
        reader: &Reader,
        answer: &ResultSet,
    ) -> Result<(u64, u64), Error> {
        if let Some(order) = self.index_order(reader, answer)?
            && let Some(position) = execution::locate_bound(reader, &order, &self.bound)?
        {
            return Ok(position);
        }
        let places = list_places(&mut self.place_list, reader, &self.request, self.sort)?;
        let (smaller, total) = (self.bound.count_before(places), places.len());
        let before = if self.sort.descending { total - smaller } else { smaller };
        Ok((before as u64, total as u64))
    }

    /// The order in the index.
    fn index_order(
        &self,
        reader: &Reader,
        answer: &ResultSet,
    ) -> Result<Option<IndexedOrder>, Error> {
        let whole = self.request.query == Query::All;
        whole.then(|| execution::index_order(reader, self.sort, answer)).transpose()
    }
}

/// The places of an answer, found again if the store has changed since.
fn list_places<'a>(
    list: &'a mut Option<PlaceList>,
    reader: &Reader,
    asked: &SearchRequest,
    sort: SortSpec,
) -> Result<&'a [SortPosition], Error> {
    let now = reader.current_cursor()?;
    if list.as_ref().is_none_or(|list| list.cursor != now) {
        let mut places = Vec::new();
        find(reader, asked)?.for_each(reader, &mut |head, card| {
            let value =
                ParsedSource::parse(reader, head, card).first(sort.field).unwrap_or_default();
            places.push(SortPosition { key: reader.extractor().sort_key(&value), row: head.row });
            true
        })?;
        places.sort_unstable();
        *list = Some(PlaceList { cursor: now, places });
    }
    Ok(list.as_ref().map_or(&[], |list| &list.places))
}

/// What finds out under which letter something is sorted: a sort key says which letters it begins
/// with, and not how they are written.
struct Alphabet<'a> {
    deriver: &'a Extractor,
    letters: Vec<(String, Vec<u8>)>,
}

impl Alphabet<'_> {
    fn new(deriver: &Extractor) -> Alphabet<'_> {
        let letter =
            |c: char| (c.to_string(), primary_weights(&deriver.sort_key(&c.to_string())).to_vec());
        Alphabet { deriver, letters: FILING_LETTERS.chars().map(letter).collect() }
    }

    /// The letter for people, and how the keys of all that is filed under it begin, if that is
    /// known.
    fn letter_for_key(&self, key: &[u8], value: &str) -> (String, Option<Vec<u8>>) {
        let folded = fold(value);
        let starts = [&folded, value].into_iter().flat_map(|text| {
            text.char_indices().take(MAX_LETTER_CHARS).map(|(at, c)| &text[..at + c.len_utf8()])
        });
        let own = starts.map(|start| (start.to_string(), self.letter_key(start)));
        let known = self.letters.iter().cloned().chain(own);
        let fits = known.filter(|(_, letter)| !letter.is_empty() && key.starts_with(letter));
        // Where several fit, they are the letter, and the letter with what follows it.
        let Some((text, letter)) = fits.min_by_key(|(_, letter)| letter.len()) else {
            return ("#".into(), None);
        };
        if !text.chars().all(char::is_alphabetic) {
            return ("#".into(), Some(letter));
        }
        // The capital of i is I, but where that is another letter it is İ.
        let capitals = [text.to_uppercase(), "İ".into()];
        let capital = capitals.into_iter().find(|capital| self.letter_key(capital) == letter);
        (capital.unwrap_or(text), Some(letter))
    }

    fn letter_key(&self, text: &str) -> Vec<u8> {
        primary_weights(&self.deriver.sort_key(text)).to_vec()
    }
}
