//! Partial answers: a few fields of each item, from what is kept beside the items where that has
//! them.
//!
//! A list shows names and numbers, not cards; so it reads no card, however large the photo in it,
//! unless it asks for a field that is not kept. `answer` gives whole items.

use crate::error::Error;
use crate::item::{self, ParsedSource};
use crate::result_domain::is_calendar_field;
use crate::result_set::{self, Hit, PAGE_ROWS, ResultSet};
use larder_format::field::{Field, FieldType};
use larder_store::{CollectionType, ItemMeta, Reader, StoredFields};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

/// The fields of an item that were asked for.
#[derive(Debug)]
pub struct ProjectedItem<'a> {
    head: &'a ItemMeta,
    origin: FieldOrigin<'a>,
}

#[derive(Debug)]
enum FieldOrigin<'a> {
    StoredFields(StoredFields<'a>),
    Parsed(ParsedSource<'a>),
    Missing,
}

impl<'a> ProjectedItem<'a> {
    /// Of an item whose bytes are at hand.
    #[must_use]
    pub fn from_bytes(reader: &Reader, head: &'a ItemMeta, bytes: &'a [u8]) -> ProjectedItem<'a> {
        ProjectedItem {
            head,
            origin: FieldOrigin::Parsed(ParsedSource::parse(reader, head, bytes)),
        }
    }
}

impl ProjectedItem<'_> {
    /// The values of one of these fields, in the order of the card.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<Cow<'_, str>> {
        match &self.origin {
            FieldOrigin::Parsed(item) => item.values(field).into_iter().map(Cow::Owned).collect(),
            _ if field.field_type == FieldType::Uid => vec![Cow::Borrowed(self.head.uid.as_str())],
            FieldOrigin::StoredFields(kept) => kept.values(field).map(Cow::Borrowed).collect(),
            FieldOrigin::Missing => Vec::new(),
        }
    }

    /// Its first value.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<Cow<'_, str>> {
        match &self.origin {
            FieldOrigin::StoredFields(kept) if field.field_type != FieldType::Uid => {
                kept.first(field).map(Cow::Borrowed)
            }
            _ => self.values(field).into_iter().next(),
        }
    }
}

/// Items with the rows of what is kept of them, these in one piece. Cards are read as many at a
/// time as fill a page.
#[derive(Default)]
struct ProjectionPage {
    items: Vec<ProjectionPageItem>,
    stored_fields: Vec<u8>,
}

struct ProjectionPageItem {
    head: ItemMeta,
    hit: Hit,
    /// Where what is kept of it is; `None`: its card has to be read.
    stored_range: Option<Range<usize>>,
}

impl ResultSet {
    /// Gives each item with these fields of it to `each`, until that answers false; with no field
    /// at all, the items alone. What was removed, or changed so that it answers the question no
    /// longer, is left out. `each` may take its time.
    ///
    /// # Errors
    /// What the store reports.
    pub fn for_each_projected(
        &self,
        reader: &Reader,
        fields: &[&Field],
        each: &mut dyn FnMut(&ItemMeta, &ProjectedItem<'_>) -> bool,
    ) -> Result<(), Error> {
        let (mut page, mut cards) = (ProjectionPage::default(), result_set::ItemPage::default());
        for hits in self.hits.chunks(PAGE_ROWS) {
            self.fill(&mut page, reader, hits, fields)?;
            let mut open = page.items.iter().filter(|item| item.stored_range.is_none());
            let open: Vec<Hit> = open.by_ref().map(|item| item.hit).collect();
            let (mut open, mut read) = (open.as_slice(), 0);
            for ProjectionPageItem { head, hit: found, stored_range: kept } in &page.items {
                if let Some(kept) = kept.clone().and_then(|range| page.stored_fields.get(range)) {
                    let from = StoredFields::from_bytes(head.kind, kept)
                        .map_or(FieldOrigin::Missing, FieldOrigin::StoredFields);
                    if !each(head, &ProjectedItem { head, origin: from }) {
                        return Ok(());
                    }
                    continue;
                }
                if read == 0 {
                    let rows: Vec<i64> = open.iter().map(|hit| hit.row).collect();
                    read = cards.fill(reader, &rows)?;
                }
                open = open.get(1..).unwrap_or_default();
                read -= 1;
                let same = self.staleness(reader)?;
                let Some((head, card)) = cards.find_row(found.row) else { continue };
                let item = item::DecodedItem::new(reader, head, card);
                if !self.is_unchanged(found, head, same) && !self.matcher.matches_item(&item) {
                    continue;
                }
                if !each(head, &ProjectedItem { head, origin: FieldOrigin::Parsed(item.parsed) }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads what is kept of these items, as far as it is enough.
    fn fill(
        &self,
        page: &mut ProjectionPage,
        reader: &Reader,
        hits: &[Hit],
        fields: &[&Field],
    ) -> Result<(), Error> {
        page.items.clear();
        page.stored_fields.clear();
        let same = self.staleness(reader)?;
        let rows: Vec<i64> = hits.iter().map(|hit| hit.row).collect();
        let mut hits = hits.iter();
        // What has no such field is not read for it.
        let calendar: Vec<bool> = fields.iter().map(|field| is_calendar_field(field)).collect();
        reader.for_each_with_stored_fields(&rows, &mut |head, kept| {
            let Some(hit) = hits.find(|hit| hit.row == head.row) else { return false };
            let there = |field: &&Field| match field.field_type {
                FieldType::Uid => !head.derived_uid,
                _ => kept.is_some_and(|kept| kept.has_field(field)),
            };
            let still = match self.is_unchanged(hit, &head, same) {
                true => Some(true),
                false => kept.and_then(|kept| {
                    self.matcher.matches_stored_fields(reader, &head, &kept, &Cell::default())
                }),
            };
            if still == Some(false) {
                return true;
            }
            let is_calendar = head.kind.collection_type() == CollectionType::Calendar;
            let mut asked = fields.iter().zip(&calendar).filter(|(_, of)| **of == is_calendar);
            let enough = still.is_some() && asked.all(|(field, _)| there(field));
            let kept = enough.then(|| {
                let kept = kept.filter(|_| !fields.is_empty()).map(|kept| kept.as_bytes());
                let start = page.stored_fields.len();
                page.stored_fields.extend_from_slice(kept.unwrap_or_default());
                start..page.stored_fields.len()
            });
            page.items.push(ProjectionPageItem { head, hit: *hit, stored_range: kept });
            true
        })?;
        Ok(())
    }
}
