//! Deriving: from an item's bytes to the terms that it is found and sorted by, values to show, and
//! what it is in time.
//!
//! It needs no store and no lock, so importers do it in parallel before they write. What is
//! particular to a kind is in `contact` and `event`. The rules here and there are part of the
//! fingerprint: change them and the stored fingerprints must change, too.

use crate::Kind;
use crate::calendar_context::{self, CalendarContext};
use crate::event::{ParsedSchedule, ZoneResolver};
use crate::index_config::{FieldIndex, IndexConfig};
use crate::stored_fields::{self, is_storable};
use crate::term_extraction::{TermCollector, prefix_chars};
use crate::{CollectionType, blob};
use larder_format::collate::Collator;
use larder_format::field::{CONTACT_FIELDS, Field};
use larder_format::fold::{FOLD_VERSION, collect_digits, fold, split_words};
use larder_index::TermSet;
use larder_time::zone::ZoneDatabase;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Entries;
use std::mem;
use std::sync::{Arc, LazyLock};

/// Sort keys are made of this many characters: what differs only behind them is in no order.
const MAX_SORT_KEY_CHARS: usize = 512;
/// ...and cut to this many bytes, so that a place in an order fits into a chunk of the index.
const MAX_SORT_KEY_BYTES: usize = 1000;
/// The version of the rules in this module, and of the default summary.
const EXTRACTION_VERSION: u32 = 6;
/// The version of what is derived of time.
const SCHEDULE_VERSION: u32 = 2;
/// Texts whose folds tell one version of folding, and of the Unicode tables behind it, from
/// another: marks, case, scripts, and letters that came late.
const FOLD_PROBES: &[&str] = &[
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
pub struct Extractor {
    collator: Arc<Collator>,
    index_config: Arc<IndexConfig>,
    pub(crate) zone_resolver: Arc<ZoneResolver>,
}

/// An item's bytes with what was derived from them.
#[derive(Debug, Clone)]
pub struct ParsedItem {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: IndexEntry,
    /// By which summary the entry was derived.
    pub(crate) index_config: Arc<IndexConfig>,
    pub(crate) uid: Option<String>,
    pub(crate) context: ItemContext,
}

/// What is known of an item beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemContext {
    pub(crate) kind: Kind,
    /// As [`ItemHead`](crate::ItemMeta) has it.
    pub(crate) recurrence_id: String,
    pub(crate) calendar_context: Option<Arc<CalendarContext>>,
}

/// What the indexes say of one item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexEntry {
    pub(crate) terms: TermSet,
    /// The bytes name a UID.
    pub(crate) has_uid: bool,
    /// Values to be kept beside the item's row.
    pub(crate) stored_fields: Option<Vec<u8>>,
    pub(crate) sort_keys: SortKeys,
    /// What it says of time, by itself.
    pub(crate) parsed_schedule: Option<Box<ParsedSchedule>>,
}

/// What an item is sorted by: field numbers and keys.
pub(crate) type SortKeys = Vec<(u16, Vec<u8>)>;

/// An item of any kind, as far as its fields matter.
pub(crate) trait FieldValues {
    fn values(&self, field: &Field) -> Vec<String>;

    fn first(&self, field: &Field) -> Option<String>;

    fn has_uid(&self) -> bool;
}

impl ParsedItem {
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
        self.context.kind
    }

    /// Which occurrence of a series it stands for, as [`ItemHead`](crate::ItemMeta) has it.
    #[must_use]
    pub fn recurrence_id(&self) -> &str {
        &self.context.recurrence_id
    }

    /// What the calendar around it says that it needs.
    #[must_use]
    pub fn calendar_context(&self) -> Option<&Arc<CalendarContext>> {
        self.context.calendar_context.as_ref()
    }
}

impl ItemContext {
    /// A contact.
    pub(crate) fn for_contact() -> ItemContext {
        ItemContext { kind: Kind::Contact, recurrence_id: String::new(), calendar_context: None }
    }

    /// As the columns of an item have it.
    pub(crate) fn from_columns(
        conn: &Connection,
        kind: i64,
        recurrence: String,
        frame: Option<i64>,
    ) -> rusqlite::Result<ItemContext> {
        let frame =
            frame.map(|row| calendar_context::read_context(conn, row)).transpose()?.flatten();
        Ok(ItemContext {
            kind: Kind::from_number(kind),
            recurrence_id: recurrence,
            calendar_context: frame,
        })
    }
}

impl Extractor {
    /// A deriver whose sort keys follow the order of `locale` (`sv`, `de_DE.UTF-8`, ...), with the
    /// default summary of contacts, and for which time zones are those that are built in.
    #[must_use]
    pub fn new(locale: &str) -> Extractor {
        Extractor::with_zones(locale, ZoneDatabase::open_bundled())
    }

    /// The same for which time zones are what `zones` says.
    #[must_use]
    pub fn with_zones(locale: &str, zones: Arc<ZoneDatabase>) -> Extractor {
        let collator = Arc::new(Collator::new(locale));
        let index_config = IndexConfig::shared_default(CollectionType::AddressBook);
        Extractor { collator, index_config, zone_resolver: Arc::new(ZoneResolver::new(zones)) }
    }

    /// The same deriver for items that have this summary.
    #[must_use]
    pub fn with_index_config(&self, summary: Arc<IndexConfig>) -> Extractor {
        Extractor { index_config: summary, ..self.clone() }
    }

    /// By which summary it derives.
    #[must_use]
    pub fn index_config(&self) -> &Arc<IndexConfig> {
        &self.index_config
    }

    /// What time zones are.
    #[must_use]
    pub fn zone_database(&self) -> &Arc<ZoneDatabase> {
        self.zone_resolver.zone_database()
    }

    /// Does it derive by this summary?
    pub(crate) fn has_index_config(&self, summary: &Arc<IndexConfig>) -> bool {
        Arc::ptr_eq(&self.index_config, summary) || self.index_config == *summary
    }

    /// What was derived, if it was by this deriver's summary; else it is derived again.
    pub(crate) fn take_or_extract(&self, prepared: &mut ParsedItem) -> IndexEntry {
        if self.has_index_config(&prepared.index_config) {
            mem::take(&mut prepared.entry)
        } else {
            self.extract(&prepared.bytes, &prepared.context)
        }
    }

    /// The entry for these bytes, whatever they are: what is already stored is indexed as it is.
    pub(crate) fn extract(&self, bytes: &[u8], place: &ItemContext) -> IndexEntry {
        match place.kind.collection_type() {
            CollectionType::AddressBook => self.extract_contact(bytes),
            CollectionType::Calendar => self.extract_component(bytes, place),
        }
    }

    /// The sort keys for these bytes.
    pub(crate) fn extract_sort_keys(&self, bytes: &[u8], place: &ItemContext) -> SortKeys {
        match place.kind.collection_type() {
            CollectionType::AddressBook => self.extract_contact_sort_keys(bytes),
            CollectionType::Calendar => self.extract_component_sort_keys(bytes, place),
        }
    }

    /// Bytes that are stored already, on their way back (undo).
    pub(crate) fn parse_stored(&self, bytes: Vec<u8>, place: ItemContext) -> ParsedItem {
        let entry = self.extract(&bytes, &place);
        ParsedItem {
            bytes,
            entry,
            index_config: Arc::clone(&self.index_config),
            uid: None,
            context: place,
        }
    }

    /// With what the text set is filled.
    pub(crate) fn text_fingerprint(&self) -> String {
        format!("rules {EXTRACTION_VERSION}, folding {FOLD_VERSION}, tables {}", *TABLES_DIGEST)
    }

    /// With what the time set is filled, zones aside.
    pub(crate) fn time_fingerprint(&self) -> String {
        format!("times {SCHEDULE_VERSION}")
    }

    /// With what the sort set is filled.
    pub(crate) fn sort_fingerprint(&self) -> String {
        format!(
            "rules {EXTRACTION_VERSION}, folding {FOLD_VERSION}, {}",
            self.collator.fingerprint()
        )
    }

    /// The sort key of a text in the store's order: of its first 512 characters.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = self.collator.sort_key(prefix_chars(text, MAX_SORT_KEY_CHARS));
        key.truncate(MAX_SORT_KEY_BYTES);
        key
    }

    /// What an item gives by its fields.
    pub(crate) fn extract_fields(
        &self,
        of: &impl FieldValues,
        fields: &'static [Field],
    ) -> IndexEntry {
        let mut found = TermCollector::default();
        let mut to_keep = Vec::new();
        for field in fields.iter().filter(|field| field.is_indexed) {
            let of_field = of.values(field);
            found.add(field, &self.index_config, &of_field);
            if is_storable(field)
                && (self.index_config.has_text_index(field) || field.name == "rev")
            {
                to_keep.push((field, of_field));
            }
        }
        let (names_uid, kept) = (of.has_uid(), stored_fields::pack(to_keep));
        IndexEntry {
            terms: found.into_terms(),
            has_uid: names_uid,
            stored_fields: kept,
            sort_keys: self.extract_field_sort_keys(of, fields),
            parsed_schedule: None,
        }
    }

    pub(crate) fn extract_field_sort_keys(
        &self,
        of: &impl FieldValues,
        fields: &'static [Field],
    ) -> SortKeys {
        let sorted =
            fields.iter().filter(|field| self.index_config.has_index(field, FieldIndex::Sort));
        sorted
            .map(|field| (field.id, self.sort_key(&of.first(field).unwrap_or_default())))
            .collect()
    }
}

/// The derivers of a store's collections, each with its summary, which is read when it is first
/// asked for, and the frames of its items.
pub(crate) struct ExtractorCache<'a> {
    base: &'a Extractor,
    by_collection: HashMap<i64, Extractor>,
    calendar_contexts: HashMap<i64, Option<Arc<CalendarContext>>>,
}

/// So many frames are remembered.
const MAX_CACHED_CONTEXTS: usize = 64;

/// An item as it is stored.
pub(crate) struct ItemRecord {
    pub(crate) collection: i64,
    pub(crate) uid: String,
    pub(crate) context: ItemContext,
    pub(crate) bytes: Vec<u8>,
}

impl<'a> ExtractorCache<'a> {
    pub(crate) fn new(base: &'a Extractor) -> ExtractorCache<'a> {
        ExtractorCache { base, by_collection: HashMap::new(), calendar_contexts: HashMap::new() }
    }

    /// That of the collection in this row.
    pub(crate) fn for_collection(
        &mut self,
        conn: &Connection,
        collection: i64,
    ) -> rusqlite::Result<&Extractor> {
        match self.by_collection.entry(collection) {
            Entries::Occupied(known) => Ok(known.into_mut()),
            Entries::Vacant(new) => {
                let found: Option<(String, i64)> = conn
                    .prepare_cached("SELECT index_config, type FROM collection WHERE id = ?1")?
                    .query_row([collection], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let (summary, family) = found.unwrap_or_default();
                let summary =
                    IndexConfig::from_stored(&summary, CollectionType::from_number(family));
                Ok(new.insert(self.base.with_index_config(summary)))
            }
        }
    }

    /// The item in this row; `None`: there is none.
    pub(crate) fn read_item(
        &mut self,
        conn: &Connection,
        row: i64,
    ) -> rusqlite::Result<Option<ItemRecord>> {
        let found = conn
            .prepare_cached(
                "SELECT i.collection, i.uid, i.kind, i.recurrence_id, i.calendar_context, s.bytes
                 FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1",
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
            Some(frame) => self.calendar_context(conn, frame)?,
            None => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => blob::read_source_bytes(conn, row)?.unwrap_or_default(),
        };
        let place = ItemContext {
            kind: Kind::from_number(kind),
            recurrence_id: recurrence,
            calendar_context: frame,
        };
        Ok(Some(ItemRecord { collection, uid, context: place, bytes }))
    }

    fn calendar_context(
        &mut self,
        conn: &Connection,
        row: i64,
    ) -> rusqlite::Result<Option<Arc<CalendarContext>>> {
        if let Some(known) = self.calendar_contexts.get(&row) {
            return Ok(known.clone());
        }
        if self.calendar_contexts.len() >= MAX_CACHED_CONTEXTS {
            self.calendar_contexts.clear();
        }
        let frame = calendar_context::read_context(conn, row)?;
        self.calendar_contexts.insert(row, frame.clone());
        Ok(frame)
    }

    /// What the item gives.
    pub(crate) fn extract(
        &mut self,
        conn: &Connection,
        item: &ItemRecord,
    ) -> rusqlite::Result<IndexEntry> {
        Ok(self.for_collection(conn, item.collection)?.extract(&item.bytes, &item.context))
    }

    /// The deriver that they all come from.
    pub(crate) fn base(&self) -> &'a Extractor {
        self.base
    }

    /// Summaries have changed.
    pub(crate) fn invalidate(&mut self) {
        self.by_collection.clear();
    }
}

/// A digest of the tables that rows are made by: those of folding, by what they do to
/// [`FOLD_PROBES`], and that of the fields.
static TABLES_DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for folded in FOLD_PROBES.iter().map(|probe| fold(probe)) {
        let words: Vec<&str> = split_words(&folded).collect();
        hasher.update(format!("{folded:?} {words:?} {}\n", collect_digits(&folded)));
    }
    for field in CONTACT_FIELDS {
        hasher.update(format!("{}\n", field.fingerprint_text()));
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});
