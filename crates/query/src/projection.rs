//! Projections: a few fields of each item, from the stored fields where these suffice.
//!
//! Lists show names and numbers, so they should not read an item with a large photo. An item is
//! read whole only if a requested field is not stored. Separate from `result_set`, which returns
//! whole items.

use crate::error::Error;
use crate::execution::find;
use crate::item::{DecodedItem, TestStatus};
use crate::query::Query;
use crate::result_set::{self, Hit, PAGE_ROWS, ResultSet, Staleness};
use crate::search_request::SearchRequest;
use crate::step_counter::StepCounter;
use larder_format::field::{Field, FieldType};
use larder_format::parsed_source::ParsedSource;
use larder_store::{CollectionType, ItemMeta, ItemRow, Reader, StoredFields};
use std::borrow::Cow;
use std::iter;
use std::ops::Range;

/// An item whose requested fields can be read.
#[derive(Debug)]
pub struct ProjectedItem<'a> {
    meta: &'a ItemMeta,
    origin: FieldOrigin<'a>,
}

#[derive(Debug)]
enum FieldOrigin<'a> {
    StoredFields(StoredFields<'a>),
    Parsed(ParsedSource<'a>),
    Missing,
}

impl<'a> ProjectedItem<'a> {
    /// Parses the source bytes of an item.
    #[must_use]
    pub fn from_bytes(reader: &Reader, meta: &'a ItemMeta, bytes: &'a [u8]) -> ProjectedItem<'a> {
        ProjectedItem {
            meta,
            origin: FieldOrigin::Parsed(reader.items().parse_source(meta, bytes)),
        }
    }
}

impl ProjectedItem<'_> {
    /// Returns the values of a requested field, in the order of the source.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<Cow<'_, str>> {
        match &self.origin {
            FieldOrigin::Parsed(item) => item.values(field).into_iter().map(Cow::Owned).collect(),
            _ if field.field_type == FieldType::Uid => vec![Cow::Borrowed(self.meta.uid.as_str())],
            FieldOrigin::StoredFields(fields) => fields.values(field).map(Cow::Borrowed).collect(),
            FieldOrigin::Missing => Vec::new(),
        }
    }

    /// Returns the first value of a requested field.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<Cow<'_, str>> {
        match &self.origin {
            FieldOrigin::StoredFields(fields) if field.field_type != FieldType::Uid => {
                fields.first(field).map(Cow::Borrowed)
            }
            _ => self.values(field).into_iter().next(),
        }
    }
}

/// Items with their stored fields, which lie in one buffer.
#[derive(Default)]
struct ProjectionPage {
    items: Vec<ProjectionPageItem>,
    stored_fields: Vec<u8>,
}

struct ProjectionPageItem {
    meta: ItemMeta,
    hit: Hit,
    /// The stored fields in the buffer; `None` if the item has to be read.
    stored_range: Option<Range<usize>>,
}

/// Rows are sorted by slots if there are no more slots for each hit.
const MAX_SLOTS_PER_HIT: usize = 4;
/// The maximum number of UIDs read in one transaction.
const MAX_UIDS_PER_TX: usize = 1 << 17;

/// Returns the rows of hits, ascending, each with its place in the result.
fn places_by_row(hits: &[Hit]) -> Vec<(ItemRow, usize)> {
    let numbers = || hits.iter().map(|hit| hit.row.to_number());
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let span = usize::try_from(last - first).unwrap_or(usize::MAX);
    if span / MAX_SLOTS_PER_HIT > hits.len() {
        let mut places: Vec<(ItemRow, usize)> = hits.iter().map(|hit| hit.row).zip(0..).collect();
        places.sort_unstable();
        return places;
    }
    // Nearly all rows of a range, as in a whole collection: a slot for each takes less time than
    // comparisons.
    let mut slots = vec![None; span + 1];
    for (place, number) in numbers().enumerate() {
        if let Some(slot) = slots.get_mut((number - first) as usize) {
            *slot = Some(place);
        }
    }
    let rows = (first..).map(ItemRow::from_number);
    rows.zip(slots).filter_map(|(row, slot)| Some((row, slot?))).collect()
}

/// The number of items that one step of [`visit_uids`] walks over.
const UIDS_PER_STEP: usize = 1 << 10;
/// A walk over all items goes on while at least one of so many is in the collections.
const MAX_WALKED_PER_UID: usize = 4;

/// Calls `visit` with the UID of every item that a query finds, until it returns false: as [`find`]
/// and [`ResultSet::for_each_uid`] do, and for all items of a collection without a list of their
/// rows.
///
/// # Errors
/// As [`find`].
pub fn visit_uids(
    reader: &Reader,
    request: &SearchRequest,
    visit: &mut dyn FnMut(&str) -> bool,
) -> Result<(), Error> {
    if request.query != Query::All || request.sort.is_some() || request.limit.is_some() {
        return find(reader, request)?.for_each_uid(reader, visit);
    }
    let collections = ResultSet::new(reader, request)?.collection_rows(reader)?;
    let (mut uids, mut ends, mut after) = (String::new(), Vec::new(), None);
    loop {
        uids.clear();
        ends.clear();
        let last = reader.items().walk_uids(&collections, after, UIDS_PER_STEP, &mut |uid| {
            uids.push_str(uid);
            ends.push(uids.len());
        })?;
        let starts = iter::once(0).chain(ends.iter().copied());
        for (start, end) in starts.zip(ends.iter().copied()) {
            if !uids.get(start..end).is_none_or(&mut *visit) {
                return Ok(());
            }
        }
        if last.is_none() {
            return Ok(());
        }
        after = last;
        if ends.len() * MAX_WALKED_PER_UID < UIDS_PER_STEP {
            break;
        }
    }
    // Most items are in other collections.
    let mut rows = Vec::new();
    for collection in collections {
        rows.extend(reader.items().list_rows(collection, after, usize::MAX)?);
    }
    rows.sort_unstable();
    ResultSet::from_rows(&rows).for_each_uid(reader, visit)
}

impl ResultSet {
    /// Calls `visit` with the UID of every item, until it returns false, without reading anything
    /// else of the items; as [`ResultSet::for_each`] does, without items that were removed since
    /// the search, or changed so that they no longer match.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn for_each_uid(
        &self,
        reader: &Reader,
        visit: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), Error> {
        let (mut uids, mut ranges) = (String::new(), Vec::new());
        for hits in self.hits.chunks(MAX_UIDS_PER_TX) {
            let transaction = reader.begin_read()?;
            if self.query != Query::All && self.staleness(reader)? != Staleness::Unchanged {
                drop(transaction);
                let rest = ResultSet { hits: hits.to_vec(), ..self.clone() };
                let mut is_wanted = true;
                rest.for_each_projected(reader, &[], &mut |meta, _| {
                    is_wanted = visit(&meta.uid);
                    is_wanted
                })?;
                if !is_wanted {
                    return Ok(());
                }
                continue;
            }
            // In the sequence of their rows, items are beside each other.
            let places = places_by_row(hits);
            let rows: Vec<ItemRow> = places.iter().map(|(row, _)| *row).collect();
            uids.clear();
            ranges.clear();
            ranges.resize(hits.len(), None);
            reader.items().for_each_uid(&rows, &mut |index, uid| {
                let start = uids.len();
                uids.push_str(uid);
                let range = places.get(index).and_then(|(_, place)| ranges.get_mut(*place));
                if let Some(range) = range {
                    *range = Some(start..uids.len());
                }
                true
            })?;
            drop(transaction);
            for range in ranges.iter().flatten() {
                if !uids.get(range.clone()).is_none_or(&mut *visit) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with every item and these fields of it, until it returns false; without
    /// fields, with the items alone. Items that were removed since the search, or changed so that
    /// they no longer match, are skipped. No transaction is open during the calls.
    ///
    /// # Errors
    /// As [`ResultSet::for_each`].
    pub fn for_each_projected(
        &self,
        reader: &Reader,
        fields: &[&Field],
        visit: &mut dyn FnMut(&ItemMeta, &ProjectedItem<'_>) -> bool,
    ) -> Result<(), Error> {
        let mut page = ProjectionPage::default();
        let mut sources = result_set::ItemPage::default();
        for hits in self.hits.chunks(PAGE_ROWS) {
            self.fill_page(&mut page, reader, hits, fields)?;
            // The rows of the items that have to be read, from the current one on, and the number
            // of them that `sources` holds.
            let unread = page.items.iter().filter(|item| item.stored_range.is_none());
            let unread: Vec<ItemRow> = unread.map(|item| item.hit.row).collect();
            let (mut unread, mut source_count) = (unread.as_slice(), 0);
            for ProjectionPageItem { meta, hit, stored_range } in &page.items {
                let stored = stored_range.clone().and_then(|range| page.stored_fields.get(range));
                if let Some(stored) = stored {
                    let origin = StoredFields::from_bytes(meta.kind, stored)
                        .map_or(FieldOrigin::Missing, FieldOrigin::StoredFields);
                    if !visit(meta, &ProjectedItem { meta, origin }) {
                        return Ok(());
                    }
                    continue;
                }
                if source_count == 0 {
                    source_count = sources.fill(reader, unread)?;
                }
                unread = unread.get(1..).unwrap_or_default();
                source_count -= 1;
                let staleness = self.staleness(reader)?;
                let Some((meta, source)) = sources.find_row(hit.row) else { continue };
                let item = || DecodedItem::new(reader, meta, source);
                if !self.is_unchanged(hit, meta, staleness) && !self.matcher.matches_item(item())? {
                    continue;
                }
                let origin = FieldOrigin::Parsed(item().parsed);
                if !visit(meta, &ProjectedItem { meta, origin }) {
                    return Ok(());
                }
            }
        }
        self.check_pages(&sources)
    }

    /// Reads the items of these hits that still match, with their stored fields where they suffice.
    fn fill_page(
        &self,
        page: &mut ProjectionPage,
        reader: &Reader,
        hits: &[Hit],
        fields: &[&Field],
    ) -> Result<(), Error> {
        page.items.clear();
        page.stored_fields.clear();
        let staleness = self.staleness(reader)?;
        let rows: Vec<ItemRow> = hits.iter().map(|hit| hit.row).collect();
        let (mut hits, mut error) = (hits.iter(), None);
        let field_types: Vec<CollectionType> =
            fields.iter().map(|field| CollectionType::from_field(field)).collect();
        reader.items().for_each_with_stored_fields(&rows, &mut |meta, stored| {
            let Some(hit) = hits.find(|hit| hit.row == meta.row) else { return false };
            // `None`: the stored fields do not decide it.
            let is_match = match self.is_unchanged(hit, &meta, staleness) {
                true => Some(true),
                false => stored.and_then(|stored| {
                    let (status, steps) = (TestStatus::default(), StepCounter::without_limit());
                    let is_match =
                        self.matcher.matches_stored_fields(reader, &meta, &stored, &status, &steps);
                    error = status.into_undecided().err();
                    is_match
                }),
            };
            if error.is_some() || is_match == Some(false) {
                return error.is_none();
            }
            let is_stored = |field: &Field| match field.field_type {
                FieldType::Uid => !meta.derived_uid,
                _ => stored.is_some_and(|stored| stored.has_field(field)),
            };
            // A field of another type of collection has no value here, so it needs no item.
            let item_type = meta.kind.collection_type();
            let suffices = is_match.is_some()
                && fields
                    .iter()
                    .zip(&field_types)
                    .all(|(field, field_type)| *field_type != item_type || is_stored(field));
            let stored_range = suffices.then(|| {
                let stored = stored.filter(|_| !fields.is_empty()).map(|stored| stored.as_bytes());
                let start = page.stored_fields.len();
                page.stored_fields.extend_from_slice(stored.unwrap_or_default());
                start..page.stored_fields.len()
            });
            page.items.push(ProjectionPageItem { meta, hit: *hit, stored_range });
            true
        })?;
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}
