//! Partial answers: a few fields of each item, from what is kept beside the items where that has them.
//!
//! A list shows names and numbers, not cards; so it reads no card, however large the photo in it, unless it asks for a
//! field that is not kept. `answer` gives whole items.

use crate::about::is_of_calendar;
use crate::answer::{self, Answer, Hit, PAGE};
use crate::error::Error;
use crate::item::{self, Parsed};
use larder_format::field::{Field, Kind};
use larder_store::{Family, ItemHead, Kept, Reader};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

/// The fields of an item that were asked for.
#[derive(Debug)]
pub struct Partial<'a> {
    head: &'a ItemHead,
    from: Source<'a>,
}

#[derive(Debug)]
enum Source<'a> {
    Kept(Kept<'a>),
    Item(Parsed<'a>),
    Nothing,
}

impl<'a> Partial<'a> {
    /// Of an item whose bytes are at hand.
    #[must_use]
    pub fn of(reader: &Reader, head: &'a ItemHead, bytes: &'a [u8]) -> Partial<'a> {
        Partial { head, from: Source::Item(Parsed::of(reader, head, bytes)) }
    }
}

impl Partial<'_> {
    /// The values of one of these fields, in the order of the card.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<Cow<'_, str>> {
        match &self.from {
            Source::Item(item) => item.values(field).into_iter().map(Cow::Owned).collect(),
            _ if field.kind == Kind::Uid => vec![Cow::Borrowed(self.head.uid.as_str())],
            Source::Kept(kept) => kept.values(field).map(Cow::Borrowed).collect(),
            Source::Nothing => Vec::new(),
        }
    }

    /// Its first value.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<Cow<'_, str>> {
        match &self.from {
            Source::Kept(kept) if field.kind != Kind::Uid => kept.first(field).map(Cow::Borrowed),
            _ => self.values(field).into_iter().next(),
        }
    }
}

/// Items with the rows of what is kept of them, these in one piece. Cards are read as many at a time as fill a page.
#[derive(Default)]
struct Page {
    items: Vec<Item>,
    kept: Vec<u8>,
}

struct Item {
    head: ItemHead,
    found: Hit,
    /// Where what is kept of it is; `None`: its card has to be read.
    kept: Option<Range<usize>>,
}

impl Answer {
    /// Gives each item with these fields of it to `each`, until that answers false; with no field at all, the items
    /// alone. What was removed, or changed so that it answers the question no longer, is left out. `each` may take its
    /// time.
    ///
    /// # Errors
    /// What the store reports.
    pub fn fields(
        &self,
        reader: &Reader,
        fields: &[&Field],
        each: &mut dyn FnMut(&ItemHead, &Partial<'_>) -> bool,
    ) -> Result<(), Error> {
        let (mut page, mut cards) = (Page::default(), answer::Page::default());
        for hits in self.rows.chunks(PAGE) {
            self.fill(&mut page, reader, hits, fields)?;
            let mut open = page.items.iter().filter(|item| item.kept.is_none());
            let open: Vec<Hit> = open.by_ref().map(|item| item.found).collect();
            let (mut open, mut read) = (open.as_slice(), 0);
            for Item { head, found, kept } in &page.items {
                if let Some(kept) = kept.clone().and_then(|range| page.kept.get(range)) {
                    let from = Kept::of(kept).map_or(Source::Nothing, Source::Kept);
                    if !each(head, &Partial { head, from }) {
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
                let same = self.is_same(reader)?;
                let Some((head, card)) = cards.of(found.row) else { continue };
                let item = item::Item::new(reader, head, card);
                if !self.is_still(found, head, same) && !self.matcher.matches_item(&item) {
                    continue;
                }
                if !each(head, &Partial { head, from: Source::Item(item.parsed) }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads what is kept of these items, as far as it is enough.
    fn fill(
        &self,
        page: &mut Page,
        reader: &Reader,
        hits: &[Hit],
        fields: &[&Field],
    ) -> Result<(), Error> {
        page.items.clear();
        page.kept.clear();
        let same = self.is_same(reader)?;
        let rows: Vec<i64> = hits.iter().map(|hit| hit.row).collect();
        let mut hits = hits.iter();
        // What has no such field is not read for it.
        let calendar: Vec<bool> = fields.iter().map(|field| is_of_calendar(field)).collect();
        reader.kept(&rows, &mut |head, kept| {
            let Some(hit) = hits.find(|hit| hit.row == head.row) else { return false };
            let there = |field: &&Field| match field.kind {
                Kind::Uid => !head.derived_uid,
                _ => kept.is_some_and(|kept| kept.holds(field)),
            };
            let still = match self.is_still(hit, &head, same) {
                true => Some(true),
                false => kept.and_then(|kept| {
                    self.matcher.matches_kept(reader, &head, &kept, &Cell::default())
                }),
            };
            if still == Some(false) {
                return true;
            }
            let is_calendar = head.kind.family() == Family::Calendar;
            let mut asked = fields.iter().zip(&calendar).filter(|(_, of)| **of == is_calendar);
            let enough = still.is_some() && asked.all(|(field, _)| there(field));
            let kept = enough.then(|| {
                let kept = kept.filter(|_| !fields.is_empty()).map(|kept| kept.as_bytes());
                let start = page.kept.len();
                page.kept.extend_from_slice(kept.unwrap_or_default());
                start..page.kept.len()
            });
            page.items.push(Item { head, found: *hit, kept });
            true
        })?;
        Ok(())
    }
}
