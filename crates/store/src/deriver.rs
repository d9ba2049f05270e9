//! Deriving: from an item's bytes to the terms that it is found and sorted by, values to show, and what it is in time.
//!
//! It needs no store and no lock, so importers do it in parallel before they write. What is particular to a kind is in
//! `contact` and `event`. The rules here and there are part of the fingerprint: change them and the stored fingerprints
//! must change, too.

use crate::Kind;
use crate::event::{Clocks, Timing};
use crate::frame::{self, Frame};
use crate::index::Terms;
use crate::kept::{self, can_keep};
use crate::summary::{IndexKind, Summary};
use crate::terms::{Found, beginning};
use crate::{Family, blob};
use larder_format::collate::Collator;
use larder_format::field::{FIELDS, Field};
use larder_format::fold::{FOLD_VERSION, digits, fold, words};
use larder_time::zone::Zones;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Entries;
use std::mem;
use std::sync::{Arc, LazyLock};

/// Sort keys are made of this many characters: what differs only behind them is in no order.
const SORT_LETTERS: usize = 512;
/// ...and cut to this many bytes, so that a place in an order fits into a chunk of the index.
const SORT_BYTES: usize = 1000;
/// The version of the rules in this module, and of the default summary.
const RULES: u32 = 6;
/// The version of what is derived of time.
const TIMES: u32 = 2;
/// Texts whose folds tell one version of folding, and of the Unicode tables behind it, from another: marks,
/// case, scripts, and letters that came late.
const PROBES: &[&str] = &[
    "Straße ẞ Müller Łódź Nguyễn ﬁ",
    "İstanbul ı I Ǆ",
    "Ελλάς ᾼ",
    "Ёлка Ӣ",
    "שָׁלוֹם",
    "مُحَمَّد محـــمد ٠١٢",
    "が か\u{3099} 한국 王〇",
    "हिन्दी สมชาย می\u{200c}خواهم",
    "Ა Ꭰ \u{a7dc} \u{1c89} \u{10d50} \u{16ea0}",
    "a\0b \u{fffe}\u{ffff}",
];

/// Derives index rows as a summary wants them; cheap to clone, shared by threads.
#[derive(Debug, Clone)]
pub struct Deriver {
    collator: Arc<Collator>,
    summary: Arc<Summary>,
    pub(crate) clocks: Arc<Clocks>,
}

/// An item's bytes with what was derived from them.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: Entry,
    /// By which summary the entry was derived.
    pub(crate) summary: Arc<Summary>,
    pub(crate) uid: Option<String>,
    pub(crate) place: Placed,
}

/// What is known of an item beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) kind: Kind,
    /// As [`ItemHead`](crate::ItemHead) has it.
    pub(crate) recurrence: String,
    pub(crate) frame: Option<Arc<Frame>>,
}

/// What the indexes say of one item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) terms: Terms,
    /// The bytes name a UID.
    pub(crate) names_uid: bool,
    /// Values to be kept beside the item's row.
    pub(crate) kept: Option<Vec<u8>>,
    pub(crate) sort: SortKeys,
    /// What it says of time, by itself.
    pub(crate) timing: Option<Box<Timing>>,
}

/// What an item is sorted by: field numbers and keys.
pub(crate) type SortKeys = Vec<(u16, Vec<u8>)>;

/// An item of any kind, as far as its fields matter.
pub(crate) trait Fields {
    fn values(&self, field: &Field) -> Vec<String>;

    fn first(&self, field: &Field) -> Option<String>;

    fn names_uid(&self) -> bool;
}

impl Prepared {
    /// The UID that the bytes name, if they do.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// The item's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.place.kind
    }

    /// Which occurrence of a series it stands for, as [`ItemHead`](crate::ItemHead) has it.
    #[must_use]
    pub fn recurrence(&self) -> &str {
        &self.place.recurrence
    }

    /// What the calendar around it says that it needs.
    #[must_use]
    pub fn frame(&self) -> Option<&Arc<Frame>> {
        self.place.frame.as_ref()
    }
}

impl Placed {
    /// A contact.
    pub(crate) fn contact() -> Placed {
        Placed { kind: Kind::Contact, recurrence: String::new(), frame: None }
    }

    /// As the columns of an item have it.
    pub(crate) fn of(
        conn: &Connection,
        kind: i64,
        recurrence: String,
        frame: Option<i64>,
    ) -> rusqlite::Result<Placed> {
        let frame = frame.map(|row| frame::read(conn, row)).transpose()?.flatten();
        Ok(Placed { kind: Kind::of_number(kind), recurrence, frame })
    }
}

impl Deriver {
    /// A deriver whose sort keys follow the order of `locale` (`sv`, `de_DE.UTF-8`, ...), with the default summary of
    /// contacts, and for which time zones are those that are built in.
    #[must_use]
    pub fn new(locale: &str) -> Deriver {
        Deriver::with_zones(locale, Zones::bundled())
    }

    /// The same for which time zones are what `zones` says.
    #[must_use]
    pub fn with_zones(locale: &str, zones: Arc<Zones>) -> Deriver {
        let collator = Arc::new(Collator::new(locale));
        let summary = Summary::shared_default(Family::Contacts);
        Deriver { collator, summary, clocks: Arc::new(Clocks::new(zones)) }
    }

    /// The same deriver for items that have this summary.
    #[must_use]
    pub fn with(&self, summary: Arc<Summary>) -> Deriver {
        Deriver { summary, ..self.clone() }
    }

    /// By which summary it derives.
    #[must_use]
    pub fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    /// What time zones are.
    #[must_use]
    pub fn zones(&self) -> &Arc<Zones> {
        self.clocks.zones()
    }

    /// Does it derive by this summary?
    pub(crate) fn is_of(&self, summary: &Arc<Summary>) -> bool {
        Arc::ptr_eq(&self.summary, summary) || self.summary == *summary
    }

    /// What was derived, if it was by this deriver's summary; else it is derived again.
    pub(crate) fn entry_for(&self, prepared: &mut Prepared) -> Entry {
        if self.is_of(&prepared.summary) {
            mem::take(&mut prepared.entry)
        } else {
            self.entry_of(&prepared.bytes, &prepared.place)
        }
    }

    /// The entry for these bytes, whatever they are: what is already stored is indexed as it is.
    pub(crate) fn entry_of(&self, bytes: &[u8], place: &Placed) -> Entry {
        match place.kind.family() {
            Family::Contacts => self.contact_entry(bytes),
            Family::Calendar => self.component_entry(bytes, place),
        }
    }

    /// The sort keys for these bytes.
    pub(crate) fn sort_of(&self, bytes: &[u8], place: &Placed) -> SortKeys {
        match place.kind.family() {
            Family::Contacts => self.contact_sort(bytes),
            Family::Calendar => self.component_sort(bytes, place),
        }
    }

    /// Bytes that are stored already, on their way back (undo).
    pub(crate) fn stored(&self, bytes: Vec<u8>, place: Placed) -> Prepared {
        let entry = self.entry_of(&bytes, &place);
        Prepared { bytes, entry, summary: Arc::clone(&self.summary), uid: None, place }
    }

    /// With what the text set is filled.
    pub(crate) fn text_fingerprint(&self) -> String {
        format!("rules {RULES}, folding {FOLD_VERSION}, tables {}", *TABLES)
    }

    /// With what the time set is filled, zones aside.
    pub(crate) fn time_fingerprint(&self) -> String {
        format!("times {TIMES}")
    }

    /// With what the sort set is filled.
    pub(crate) fn sort_fingerprint(&self) -> String {
        format!("rules {RULES}, folding {FOLD_VERSION}, {}", self.collator.fingerprint())
    }

    /// The sort key of a text in the store's order: of its first 512 characters.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = self.collator.sort_key(beginning(text, SORT_LETTERS));
        key.truncate(SORT_BYTES);
        key
    }

    /// What an item gives by its fields.
    pub(crate) fn entry(&self, of: &impl Fields, fields: &'static [Field]) -> Entry {
        let mut found = Found::default();
        let mut to_keep = Vec::new();
        for field in fields.iter().filter(|field| field.indexed) {
            let of_field = of.values(field);
            found.add(field, &self.summary, &of_field);
            if can_keep(field) && (self.summary.finds(field) || field.name == "rev") {
                to_keep.push((field, of_field));
            }
        }
        let (names_uid, kept) = (of.names_uid(), kept::pack(to_keep));
        Entry { terms: found.terms(), names_uid, kept, sort: self.sort(of, fields), timing: None }
    }

    pub(crate) fn sort(&self, of: &impl Fields, fields: &'static [Field]) -> SortKeys {
        let sorted = fields.iter().filter(|field| self.summary.has(field, IndexKind::Sort));
        sorted
            .map(|field| (field.id, self.sort_key(&of.first(field).unwrap_or_default())))
            .collect()
    }
}

/// The derivers of a store's collections, each with its summary, which is read when it is first asked for, and the frames
/// of its items.
pub(crate) struct Derivers<'a> {
    base: &'a Deriver,
    of: HashMap<i64, Deriver>,
    frames: HashMap<i64, Option<Arc<Frame>>>,
}

/// So many frames are remembered.
const FRAMES: usize = 64;

/// An item as it is stored.
pub(crate) struct Stored {
    pub(crate) collection: i64,
    pub(crate) uid: String,
    pub(crate) place: Placed,
    pub(crate) bytes: Vec<u8>,
}

impl<'a> Derivers<'a> {
    pub(crate) fn new(base: &'a Deriver) -> Derivers<'a> {
        Derivers { base, of: HashMap::new(), frames: HashMap::new() }
    }

    /// That of the collection in this row.
    pub(crate) fn of(&mut self, conn: &Connection, collection: i64) -> rusqlite::Result<&Deriver> {
        match self.of.entry(collection) {
            Entries::Occupied(known) => Ok(known.into_mut()),
            Entries::Vacant(new) => {
                let found: Option<(String, i64)> = conn
                    .prepare_cached("SELECT summary, family FROM collection WHERE id = ?1")?
                    .query_row([collection], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let (summary, family) = found.unwrap_or_default();
                let summary = Summary::of_stored(&summary, Family::of_number(family));
                Ok(new.insert(self.base.with(summary)))
            }
        }
    }

    /// The item in this row; `None`: there is none.
    pub(crate) fn read(&mut self, conn: &Connection, row: i64) -> rusqlite::Result<Option<Stored>> {
        let found = conn
            .prepare_cached(
                "SELECT i.collection, i.uid, i.kind, i.recurrence, i.frame, s.bytes
                 FROM item i CROSS JOIN source s ON s.item = i.id WHERE i.id = ?1",
            )?
            .query_row([row], |row| {
                let place: (i64, String, Option<i64>) = (row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((row.get(0)?, row.get(1)?, place, row.get::<_, Option<Vec<u8>>>(5)?))
            })
            .optional()?;
        let Some((collection, uid, (kind, recurrence, frame), bytes)) = found else {
            return Ok(None);
        };
        let frame = match frame {
            Some(frame) => self.frame(conn, frame)?,
            None => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => blob::source(conn, row)?.unwrap_or_default(),
        };
        let place = Placed { kind: Kind::of_number(kind), recurrence, frame };
        Ok(Some(Stored { collection, uid, place, bytes }))
    }

    fn frame(&mut self, conn: &Connection, row: i64) -> rusqlite::Result<Option<Arc<Frame>>> {
        if let Some(known) = self.frames.get(&row) {
            return Ok(known.clone());
        }
        if self.frames.len() >= FRAMES {
            self.frames.clear();
        }
        let frame = frame::read(conn, row)?;
        self.frames.insert(row, frame.clone());
        Ok(frame)
    }

    /// What the item gives.
    pub(crate) fn entry(&mut self, conn: &Connection, item: &Stored) -> rusqlite::Result<Entry> {
        Ok(self.of(conn, item.collection)?.entry_of(&item.bytes, &item.place))
    }

    /// The deriver that they all come from.
    pub(crate) fn base(&self) -> &'a Deriver {
        self.base
    }

    /// Summaries have changed.
    pub(crate) fn forget(&mut self) {
        self.of.clear();
    }
}

/// A digest of the tables that rows are made by: those of folding, by what they do to [`PROBES`], and that
/// of the fields.
static TABLES: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for folded in PROBES.iter().map(|probe| fold(probe)) {
        let words: Vec<&str> = words(&folded).collect();
        hasher.update(format!("{folded:?} {words:?} {}\n", digits(&folded)));
    }
    for field in FIELDS {
        hasher.update(format!("{}\n", field.rule()));
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});
