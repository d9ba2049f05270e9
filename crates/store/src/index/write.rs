//! A batch's terms: gathered while its items are written, then put into a segment of their own.

use super::segment::{self, Writer};
use super::{merge, term};
use crate::Seq;
use crate::derived::IndexSet;
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};

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
        let mut pairs: Vec<(u64, &[u8], i64)> = Vec::new();
        for (&item, terms) in &self.items {
            let terms = terms.iter().flat_map(Terms::iter);
            pairs.extend(terms.map(|term| (term::beginning(term), term, item)));
        }
        // Most terms differ in their first bytes, which are compared as one number.
        pairs.sort_unstable();
        let mut items = Vec::new();
        for run in pairs.chunk_by(|(_, a, _), (_, b, _)| a == b) {
            items.clear();
            items.extend(run.iter().map(|(_, _, item)| item));
            writer.add(run[0].1, &items)?;
        }
        Ok(())
    }

    /// Trigrams are many, and few of them differ: each gets a number, and items are dealt out to the numbers.
    fn write_trigrams(&self, writer: &mut Writer<'_>) -> rusqlite::Result<()> {
        let all = || {
            let known =
                self.items.iter().filter_map(|(item, terms)| Some((*item, terms.as_ref()?)));
            known.flat_map(|(item, terms)| terms.trigrams.iter().map(move |three| (*three, item)))
        };
        let mut counts: HashMap<u64, u32, Mix> = HashMap::with_hasher(Mix::new());
        let mut total = 0;
        for (trigram, _) in all() {
            *counts.entry(trigram).or_default() += 1;
            total += 1;
        }
        let mut trigrams: Vec<(u64, u32)> =
            counts.iter().map(|(three, count)| (*three, *count)).collect();
        trigrams.sort_unstable();
        // From here on the number says where the next item of the trigram goes.
        let mut start = 0;
        for &(trigram, count) in &trigrams {
            counts.insert(trigram, start);
            start += count;
        }
        let mut dealt = vec![0; total];
        for (trigram, item) in all() {
            if let Some(place) = counts.get_mut(&trigram)
                && let Some(slot) = dealt.get_mut(*place as usize)
            {
                *slot = item;
                *place += 1;
            }
        }
        let (mut rest, mut term) = (dealt.as_slice(), Vec::new());
        for (trigram, count) in trigrams {
            let (items, behind) = rest.split_at(count as usize);
            rest = behind;
            term::unpack(trigram, &mut term);
            writer.add(&term, items)?;
        }
        Ok(())
    }
}

/// A hash of numbers: a multiplication by a number that nobody knows, so that no cards can be made to collide.
#[derive(Clone)]
struct Mix {
    factor: u64,
    hash: u64,
}

impl Mix {
    fn new() -> Mix {
        Mix { factor: RandomState::new().hash_one(0_u8) | 1, hash: 0 }
    }
}

impl BuildHasher for Mix {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        self.clone()
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.hash ^ number) * u128::from(self.factor);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
