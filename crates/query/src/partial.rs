//! Partial answers: a few fields of each item, from what is kept beside the items where that has them.
//!
//! A list shows names and numbers, not cards; so it reads no card, however large the photo in it, unless it asks for a
//! field that is not kept. `answer` gives whole items.

use crate::answer::{Answer, Hit, PAGE};
use crate::error::Error;
use larder_format::contact::Contact;
use larder_format::field::{Field, Kind};
use larder_store::{ItemHead, Kept, Reader};
use std::borrow::Cow;

/// The fields of an item that were asked for.
#[derive(Debug)]
pub struct Partial<'a> {
    head: &'a ItemHead,
    from: From<'a>,
}

#[derive(Debug)]
enum From<'a> {
    Kept(Kept<'a>),
    Card(Contact<'a>),
    Nothing,
}

impl Partial<'_> {
    /// The values of one of these fields, in the order of the card.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<Cow<'_, str>> {
        match &self.from {
            From::Card(card) => card.values(field).into_iter().map(Cow::Owned).collect(),
            _ if field.kind == Kind::Uid => vec![Cow::Borrowed(self.head.uid.as_str())],
            From::Kept(kept) => kept.values(field).map(Cow::Borrowed).collect(),
            From::Nothing => Vec::new(),
        }
    }

    /// Its first value.
    #[must_use]
    pub fn first(&self, field: &Field) -> Option<Cow<'_, str>> {
        match &self.from {
            From::Kept(kept) if field.kind != Kind::Uid => kept.first(field).map(Cow::Borrowed),
            _ => self.values(field).into_iter().next(),
        }
    }
}

/// An item on a page: where in the answer, and its card or its row of kept values.
struct Read {
    at: usize,
    head: ItemHead,
    bytes: Vec<u8>,
    is_card: bool,
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
        for hits in self.rows.chunks(PAGE) {
            for Read { head, bytes, is_card, .. } in &self.page(reader, hits, fields)? {
                let from = match (is_card, Kept::of(bytes)) {
                    (true, _) => From::Card(Contact::parse(bytes)),
                    (false, Some(kept)) => From::Kept(kept),
                    (false, None) => From::Nothing,
                };
                if !each(head, &Partial { head, from }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads what is kept of these items, and the cards of those of which that is not enough.
    fn page(&self, reader: &Reader, hits: &[Hit], fields: &[&Field]) -> Result<Vec<Read>, Error> {
        let (mut page, mut open) = (Vec::with_capacity(hits.len()), Vec::new());
        let rows: Vec<i64> = hits.iter().map(|hit| hit.row).collect();
        let mut places = hits.iter().enumerate();
        reader.kept(&rows, &mut |head, kept| {
            let Some((at, hit)) = places.find(|(_, hit)| hit.row == head.row) else { return false };
            let there = |field: &&Field| match (field.kind, kept) {
                (Kind::Uid, _) => !head.derived_uid,
                (_, kept) => kept.is_some_and(|kept| kept.holds(field)),
            };
            let still = if self.is_still(hit, &head) {
                Some(true)
            } else {
                kept.and_then(|kept| self.matcher.matches_kept(&head, &kept))
            };
            match (still, fields.iter().all(there)) {
                (Some(false), _) => {}
                (Some(true), true) => {
                    let bytes = kept.map(|kept| kept.as_bytes().to_vec()).unwrap_or_default();
                    page.push(Read { at, head, bytes, is_card: false });
                }
                _ => open.push((at, *hit)),
            }
            true
        })?;
        let rows: Vec<i64> = open.iter().map(|(_, hit)| hit.row).collect();
        let mut places = open.iter();
        reader.items(&rows, &mut |head, bytes| {
            let Some((at, hit)) = places.find(|(_, hit)| hit.row == head.row) else { return false };
            if self.is_still(hit, &head) || self.matcher.matches(&head.uid, &Contact::parse(bytes))
            {
                page.push(Read { at: *at, head, bytes: bytes.to_vec(), is_card: true });
            }
            true
        })?;
        page.sort_by_key(|read| read.at);
        Ok(page)
    }
}
