//! A batch's terms: gathered while its items are written, then put into a segment of their own.

use super::segment::{self, Writer};
use super::{merge, term};
use crate::Seq;
use crate::derived::IndexSet;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// The terms of one item, as a set: sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Each with its length in two bytes before it.
    packed: Vec<u8>,
    /// See [`term::pack`].
    trigrams: Vec<u64>,
    /// It is always a candidate.
    pub(crate) large: bool,
}

impl Terms {
    /// Packs terms, which none of is longer than 64 KB, and trigrams.
    pub(crate) fn new(mut terms: Vec<Vec<u8>>, mut trigrams: Vec<u64>, large: bool) -> Terms {
        if large {
            terms.push(term::large());
        }
        terms.sort_unstable();
        terms.dedup();
        trigrams.sort_unstable();
        trigrams.dedup();
        let mut packed = Vec::with_capacity(terms.iter().map(|term| term.len() + 2).sum());
        for term in terms {
            packed.extend((term.len() as u16).to_le_bytes());
            packed.extend(term);
        }
        trigrams.shrink_to_fit();
        Terms { packed, trigrams, large }
    }

    /// All terms but trigrams.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.packed.as_slice();
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<2>()?;
            let (term, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = behind;
            Some(term)
        })
    }

    /// Gives every term to `each`, in their order.
    pub(crate) fn each(&self, each: &mut dyn FnMut(&[u8])) {
        self.iter().for_each(&mut *each);
        let mut term = Vec::new();
        for &trigram in &self.trigrams {
            term::unpack(trigram, &mut term);
            each(&term);
        }
    }
}

/// What a batch has to say to the index.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// By row: the terms an item has now, or `None` where it was removed.
    items: BTreeMap<i64, Option<Terms>>,
}

impl Gathered {
    /// An item is there, with these terms; whatever was said of it before no longer holds.
    pub(crate) fn put(&mut self, item: i64, terms: Terms) {
        self.items.insert(item, Some(terms));
    }

    /// An item is gone.
    pub(crate) fn remove(&mut self, item: i64) {
        self.items.insert(item, None);
    }

    /// Writes the segment of the batch `seq`, and does a share of the merging that all batches owe.
    pub(crate) fn write(self, conn: &Connection, set: IndexSet, seq: Seq) -> rusqlite::Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let large = self.items.values().flatten().any(|terms| terms.large);
        let mut writer = Writer::open(conn, segment::create(conn, set, seq, large)?)?;
        self.write_terms(&mut writer)?;
        self.write_trigrams(&mut writer)?;
        let touched: Vec<i64> = self.items.keys().copied().collect();
        writer.add(&term::touched(), &touched)?;
        let bytes = writer.finish()?;
        merge::share(conn, set, bytes)
    }

    fn write_terms(&self, writer: &mut Writer<'_>) -> rusqlite::Result<()> {
        let mut pairs: Vec<(&[u8], i64)> = Vec::new();
        for (&item, terms) in &self.items {
            pairs.extend(terms.iter().flat_map(|terms| terms.iter().map(|term| (term, item))));
        }
        pairs.sort_unstable();
        let mut items = Vec::new();
        for run in pairs.chunk_by(|(a, _), (b, _)| a == b) {
            items.clear();
            items.extend(run.iter().map(|(_, item)| item));
            writer.add(run[0].0, &items)?;
        }
        Ok(())
    }

    fn write_trigrams(&self, writer: &mut Writer<'_>) -> rusqlite::Result<()> {
        let count = self.items.values().flatten().map(|terms| terms.trigrams.len()).sum();
        let mut pairs: Vec<(u64, i64)> = Vec::with_capacity(count);
        for (&item, terms) in &self.items {
            let Some(terms) = terms else { continue };
            pairs.extend(terms.trigrams.iter().map(|&trigram| (trigram, item)));
        }
        pairs.sort_unstable();
        let (mut items, mut term) = (Vec::new(), Vec::new());
        for run in pairs.chunk_by(|(a, _), (b, _)| a == b) {
            items.clear();
            items.extend(run.iter().map(|(_, item)| item));
            term::unpack(run[0].0, &mut term);
            writer.add(&term, &items)?;
        }
        Ok(())
    }
}
