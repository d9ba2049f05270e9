//! The extractor: extracts what the capabilities of a kind require, and names the rules that it
//! follows in fingerprints.
//!
//! It needs no store and no lock, so importers share one between threads. The module of a kind
//! holds the rules of that kind alone. All rules are part of a fingerprint: a change of a rule
//! needs a new version number here.

use crate::calendar_context::CalendarContext;
use crate::event::{self, ZoneResolver, ZoneUse};
use crate::field_extraction::FieldExtractor;
use crate::fold_digest::{FOLD_DIGEST, short_digest};
use crate::index_config::IndexConfig;
use crate::parsed_item::{
    IndexDocument, ItemContext, LineWarning, ParsedItem, RejectedItem, SortKeys,
};
use crate::schedule::ParsedSchedule;
use larder_format::collate::Collator;
use larder_format::collection_type::CollectionType;
use larder_format::component::{Component, TimeProperty};
use larder_format::fold::FOLD_VERSION;
use larder_format::kind::Kind;
use larder_format::parsed_source::ParsedSource;
use larder_time::civil::Instant;
use larder_time::series::{CalendarDateTime, SeriesSpec};
use larder_time::zone::{Zone, ZoneDatabase};
use std::fmt::Write as _;
use std::mem;
use std::sync::{Arc, LazyLock};

/// The version of the rules for terms, sort keys and stored fields, and of the default index
/// configurations.
const EXTRACTION_VERSION: u32 = 8;
/// The version of the rules for schedules.
const SCHEDULE_VERSION: u32 = 4;
/// Extracts the index entries of items by an index configuration. Cheap to clone, shared by
/// threads.
#[derive(Debug, Clone)]
pub struct Extractor {
    fields: FieldExtractor,
    zone_resolver: Arc<ZoneResolver>,
}

/// Construction, and the parts of an extractor.
impl Extractor {
    /// Returns an extractor whose sort keys follow the order of `locale` (`sv`, `de_DE.UTF-8`,
    /// ...), with the index configuration of the default type of collection and the time zones that
    /// are compiled in.
    #[must_use]
    pub fn new(locale: &str) -> Extractor {
        Extractor::with_zones(locale, ZoneDatabase::open_bundled())
    }

    /// Like [`new`](Extractor::new), with this database of time zones.
    #[must_use]
    pub fn with_zones(locale: &str, zones: Arc<ZoneDatabase>) -> Extractor {
        let fields = FieldExtractor {
            collator: Arc::new(Collator::new(locale)),
            index_config: IndexConfig::shared_default(CollectionType::default()),
        };
        Extractor { fields, zone_resolver: Arc::new(ZoneResolver::new(zones)) }
    }

    /// Returns the same extractor with another index configuration.
    #[must_use]
    pub fn with_index_config(&self, index_config: Arc<IndexConfig>) -> Extractor {
        let fields = FieldExtractor { index_config, ..self.fields.clone() };
        Extractor { fields, zone_resolver: Arc::clone(&self.zone_resolver) }
    }

    /// Returns the index configuration.
    #[must_use]
    pub fn index_config(&self) -> &Arc<IndexConfig> {
        &self.fields.index_config
    }

    /// Returns the database of time zones.
    #[must_use]
    pub fn zone_database(&self) -> &Arc<ZoneDatabase> {
        self.zone_resolver.zone_database()
    }

    /// Returns the resolver of time zones.
    #[must_use]
    pub fn zone_resolver(&self) -> &ZoneResolver {
        &self.zone_resolver
    }

    /// Returns whether this is the index configuration of the extractor.
    #[must_use]
    pub fn has_index_config(&self, index_config: &Arc<IndexConfig>) -> bool {
        Arc::ptr_eq(self.index_config(), index_config) || self.index_config() == index_config
    }

    /// Returns the sort key of a text: of its first 512 characters.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        self.fields.sort_key(text)
    }
}

/// Items that come in.
impl Extractor {
    /// Parses an item, and extracts its entry. The BEGIN line of a component of a calendar
    /// determines its kind; `calendar` is the context of such a component.
    ///
    /// # Errors
    /// Fails if the bytes are not such an item; returns them with the problem.
    #[allow(clippy::result_large_err, reason = "the error gives the bytes back, unmoved")]
    pub fn parse_item(
        &self,
        kind: Kind,
        bytes: Vec<u8>,
        calendar: &CalendarContext,
    ) -> Result<ParsedItem, RejectedItem> {
        let source = ParsedSource::parse(kind, calendar.version(), &bytes);
        if let Some(&problem) = source.fatal_problem() {
            drop(source);
            return Err(RejectedItem { bytes, problem });
        }
        let component = source.component();
        let kind = component.map_or(kind, |component| Kind::from_component(component.kind()));
        let mut warnings = Vec::new();
        let entry = self.extract_source(&source, kind, calendar, &mut warnings);
        let recurrence_id = match &entry.parsed_schedule {
            Some(schedule) => schedule.recurrence_id().to_string(),
            None => String::new(),
        };
        let calendar_context = component.and_then(|component| {
            let tzids: Vec<String> = component.tzids().iter().map(ToString::to_string).collect();
            calendar.subset_for(&tzids).map(Arc::new)
        });
        let (uid, problems) = (source.uid(), source.problems().to_vec());
        drop(source);
        Ok(ParsedItem {
            bytes,
            entry,
            index_config: Arc::clone(self.index_config()),
            uid,
            context: ItemContext { kind, recurrence_id, calendar_context },
            problems,
            warnings,
        })
    }

    /// Returns an item from bytes that are stored already: their UID and problems are not read
    /// again.
    #[must_use]
    pub fn parse_stored(&self, bytes: Vec<u8>, context: ItemContext) -> ParsedItem {
        ParsedItem {
            entry: self.extract(&bytes, &context),
            bytes,
            index_config: Arc::clone(self.index_config()),
            uid: None,
            context,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes the entry out of an item. An entry that was extracted by another index configuration
    /// is extracted again.
    #[must_use]
    pub fn take_or_extract(&self, item: &mut ParsedItem) -> IndexDocument {
        if self.has_index_config(&item.index_config) {
            mem::take(&mut item.entry)
        } else {
            self.extract(&item.bytes, &item.context)
        }
    }
}

/// Entries, by the capabilities of a kind.
impl Extractor {
    /// Extracts the entry of these bytes, however malformed: stored items are indexed as they are.
    #[must_use]
    pub fn extract(&self, bytes: &[u8], context: &ItemContext) -> IndexDocument {
        let source = ParsedSource::parse(context.kind, context.calendar_version(), bytes);
        let default = CalendarContext::default();
        let calendar = context.calendar_context.as_deref().unwrap_or(&default);
        self.extract_source(&source, context.kind, calendar, &mut Vec::new())
    }

    /// Extracts the sort keys of these bytes.
    #[must_use]
    pub fn extract_sort_keys(&self, bytes: &[u8], context: &ItemContext) -> SortKeys {
        if !context.kind.is_searchable() {
            return SortKeys::new();
        }
        let source = ParsedSource::parse(context.kind, context.calendar_version(), bytes);
        self.fields.extract_sort_keys(&source, context.kind.fields())
    }

    /// Extracts the schedule of these bytes by themselves; `None` if their kind has none.
    #[must_use]
    pub fn extract_schedule(
        &self,
        bytes: &[u8],
        context: &ItemContext,
    ) -> Option<Box<ParsedSchedule>> {
        if !context.kind.has_schedule() {
            return None;
        }
        let source = ParsedSource::parse(context.kind, context.calendar_version(), bytes);
        let default = CalendarContext::default();
        let calendar = context.calendar_context.as_deref().unwrap_or(&default);
        self.parse_schedule(&source, context.kind, calendar, &mut Vec::new())
    }

    fn extract_source(
        &self,
        source: &ParsedSource<'_>,
        kind: Kind,
        calendar: &CalendarContext,
        warnings: &mut Vec<LineWarning>,
    ) -> IndexDocument {
        let mut entry = match kind.is_searchable() {
            true => self.fields.extract(source, kind.fields()),
            false => IndexDocument { has_uid: source.uid().is_some(), ..IndexDocument::default() },
        };
        if kind.has_schedule() {
            entry.parsed_schedule = self.parse_schedule(source, kind, calendar, warnings);
        }
        entry
    }

    /// Parses the schedule of a component; adds to `warnings`.
    fn parse_schedule(
        &self,
        source: &ParsedSource<'_>,
        kind: Kind,
        calendar: &CalendarContext,
        warnings: &mut Vec<LineWarning>,
    ) -> Option<Box<ParsedSchedule>> {
        let component = source.component()?;
        let zones = &self.zone_resolver;
        Some(Box::new(event::parse_schedule(component, kind, calendar, zones, warnings)))
    }
}

/// Times of components.
impl Extractor {
    /// Returns the zones that the names in a component mean.
    #[must_use]
    pub fn zone_uses(&self, component: &Component<'_>, calendar: &CalendarContext) -> Vec<ZoneUse> {
        event::find_zone_uses(component, calendar, &self.zone_resolver)
    }

    /// Returns the instant that a property of a component names: in `local_zone` if the property
    /// names no other zone.
    #[must_use]
    pub fn resolve_instant(
        &self,
        component: &Component<'_>,
        calendar: &CalendarContext,
        property: &str,
        local_zone: &Zone,
    ) -> Option<Instant> {
        event::resolve_instant(&self.zone_resolver, component, calendar, property, local_zone)
    }

    /// Returns the date or time in a property; `None` if the value is malformed.
    #[must_use]
    pub fn resolve_date_time(
        &self,
        property: &TimeProperty<'_>,
        calendar: &CalendarContext,
    ) -> Option<CalendarDateTime> {
        event::resolve_date_time(property, calendar, &self.zone_resolver)
    }

    /// Returns the start, the length and the rules of a component by itself; `None` if it has no
    /// time.
    #[must_use]
    pub fn series_spec(
        &self,
        component: &Component<'_>,
        calendar: &CalendarContext,
    ) -> Option<SeriesSpec> {
        let kind = Kind::from_component(component.kind());
        if !kind.has_schedule() {
            return None;
        }
        let zones = &self.zone_resolver;
        event::parse_schedule(component, kind, calendar, zones, &mut Vec::new()).into_series_spec()
    }
}

/// Fingerprints: texts that change whenever derived data would change.
impl Extractor {
    /// Returns the fingerprint of terms and stored fields.
    #[must_use]
    pub fn text_fingerprint(&self) -> String {
        format!("rules {EXTRACTION_VERSION}, folding {FOLD_VERSION}, tables {}", *TABLES_DIGEST)
    }

    /// Returns the fingerprint of schedules, time zones aside.
    #[must_use]
    pub fn interval_fingerprint(&self) -> String {
        format!("times {SCHEDULE_VERSION}")
    }

    /// Returns the fingerprint of sort keys.
    #[must_use]
    pub fn sort_fingerprint(&self) -> String {
        let collation = self.fields.collator.fingerprint();
        format!("rules {EXTRACTION_VERSION}, folding {FOLD_VERSION}, {collation}")
    }
}

/// The digests of the folding tables, and of the table of fields of each type of collection.
static TABLES_DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut digests = FOLD_DIGEST.to_string();
    for collection_type in CollectionType::all() {
        let rows: Vec<String> =
            collection_type.fields().iter().map(|field| field.fingerprint_text()).collect();
        let digest = short_digest(&rows.join("\n"));
        let _never_fails = write!(digests, " {}:{digest}", collection_type.name());
    }
    digests
});
