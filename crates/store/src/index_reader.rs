//! Reading the indexes: the items that match a query or that happen in a time range.
//!
//! Separate from `item_reader`, which reads the items that an index names, and from `sorted_reads`,
//! which reads them in a sort order.

use crate::collection::CollectionMeta;
use crate::derived_index::DerivedIndex;
use crate::error::{DatabaseResult, Result, sqlite_error_at};
use crate::index_query::{self, IndexQuery};
use crate::interval_search::{self, TimeRangeHits};
use crate::item_meta::{ItemColumns, ItemMeta};
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::reader::Reader;
use crate::reader_cache::ReaderCache;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::{Kind, Seq, blob};
use larder_extract::{StoredFields, TimeRange};
use larder_index::{IndexMatch, Matches};
use std::borrow::Cow;

/// The items that an index lookup named; the caller verifies them.
#[derive(Debug, Clone, Default)]
pub struct IndexMatches {
    matches: Matches,
    /// The number of index entries that were read.
    pub postings_read: u64,
}

impl IndexMatches {
    /// Returns the number of matched items, including items that changed after they were indexed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.matches.len()
    }

    /// Returns whether no item is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// Returns the match of an item.
    pub(crate) fn find(&self, item: ItemRow) -> Option<&IndexMatch> {
        self.matches.find(item.to_number())
    }
}

/// An item that the index named, while its row is read.
pub struct Candidate<'a> {
    reader: &'a Reader,
    tx: &'a ReadTransaction<'a>,
    collections: &'a [CollectionMeta],
    columns: ItemColumns<'a>,
    with_bytes: bool,
    /// The row of the item.
    pub row: ItemRow,
    /// The row of its collection.
    pub collection: CollectionRow,
    /// The kind of the item.
    kind: Kind,
    /// The batch that last changed it.
    pub seq: Seq,
    /// Whether the item certainly matches. If not, it has more text than is indexed, and may match.
    pub exact: bool,
}

impl Candidate<'_> {
    /// Reads the metadata of the item.
    pub fn meta(&self) -> Result<ItemMeta> {
        self.columns
            .meta_of_kind(self.kind, self.collections)
            .map_err(sqlite_error_at(&self.reader.path))
    }

    /// Returns the stored fields of the item.
    #[must_use]
    pub fn stored_fields(&self) -> Option<StoredFields<'_>> {
        self.columns.stored_fields()
    }

    /// Returns the source bytes; without another query if [`IndexReader::for_each_candidate`] was
    /// called with `with_bytes`.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = match self.with_bytes {
            true => self.columns.verified_bytes(self.tx, self.row),
            false => blob::require_source_bytes(self.tx, self.row).map(Cow::Owned),
        };
        bytes.map_err(sqlite_error_at(&self.reader.path))
    }
}

/// Reads the candidates of a lookup, each by a run of one statement.
pub(crate) struct CandidateReader<'a> {
    reader: &'a Reader,
    tx: &'a ReadTransaction<'a>,
    cache: &'a ReaderCache,
    with_bytes: bool,
    select: ReadStatement<'a>,
}

impl<'a> CandidateReader<'a> {
    /// Begins to read, in the read transaction of the cache.
    pub(crate) fn begin(
        reader: &'a Reader,
        tx: &'a ReadTransaction<'a>,
        cache: &'a ReaderCache,
        with_bytes: bool,
    ) -> rusqlite::Result<CandidateReader<'a>> {
        let select = tx.prepare_cached(match with_bytes {
            false => concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields ",
                "FROM item i WHERE i.id = ?1"
            ),
            true => concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes, s.checksum, i.ordinal, i.row_checksum ",
                "FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1"
            ),
        })?;
        Ok(CandidateReader { reader, tx, cache, with_bytes, select })
    }

    /// Passes a match to `visit` and returns its result; true without a call if the item changed
    /// after it was indexed.
    pub(crate) fn read(
        &mut self,
        found: &IndexMatch,
        visit: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> DatabaseResult<bool> {
        let mut rows = self.select.query([found.item])?;
        let Some(sql_row) = rows.next()? else { return Ok(true) };
        let columns = ItemColumns::read(sql_row)?;
        let seq = columns.seq()?;
        if seq > found.valid_until {
            return Ok(true);
        }
        let Some(kind) = columns.kind()? else { return Ok(true) };
        Ok(visit(&Candidate {
            reader: self.reader,
            tx: self.tx,
            collections: &self.cache.collections,
            columns,
            with_bytes: self.with_bytes,
            row: ItemRow::from_number(found.item),
            collection: columns.collection()?,
            kind,
            seq,
            exact: seq <= found.exact_until,
        }))
    }
}

/// Reads the indexes. Each call is one short read transaction, or part of the open one.
#[derive(Debug, Clone, Copy)]
pub struct IndexReader<'a> {
    pub(crate) reader: &'a Reader,
}

impl Reader {
    /// Returns the indexes of the store.
    #[must_use]
    pub fn index(&self) -> IndexReader<'_> {
        IndexReader { reader: self }
    }
}

impl IndexReader<'_> {
    /// Returns whether an index is complete and has the current fingerprint. Otherwise the caller
    /// has to scan.
    pub fn is_current(self, index: DerivedIndex) -> Result<bool> {
        self.reader
            .read(|tx| Ok(index.is_current(&self.reader.cache(tx)?.meta, self.reader.extractor())))
    }

    /// Looks up a query in the index. The matches include all matches in these collections (empty:
    /// in all), and may include matches in others. `None`: the index is incomplete or has another
    /// fingerprint, and the caller has to scan. The matches are valid within the same
    /// [`ReadTransaction`] only.
    pub fn look_up(
        self,
        query: &IndexQuery,
        collections: &[CollectionRow],
    ) -> Result<Option<IndexMatches>> {
        let extractor = self.reader.extractor();
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let Some(segments) = cache.text_segments(tx, extractor)? else {
                return Ok(None);
            };
            if index_query::has_time_range(query) && !cache.is_interval_index_current(extractor) {
                return Ok(None);
            }
            let is_selected = |collection: &&CollectionMeta| {
                collections.is_empty() || collections.contains(&collection.collection_key.id)
            };
            let selected: Vec<&CollectionMeta> =
                cache.collections.iter().filter(is_selected).collect();
            let (matches, postings_read) =
                index_query::find_matches(tx, extractor, segments, &selected, query)?;
            Ok(Some(IndexMatches { matches, postings_read }))
        })
    }

    /// Passes the matches from number `start` on to `visit`, in the order of their rows and without
    /// items that changed after they were indexed, until it returns false. `with_bytes`: whether
    /// the source bytes are read in the same statement. Call it in the read transaction of the
    /// lookup; `visit` must not block. Returns the number of matches that were processed.
    pub fn for_each_candidate(
        self,
        found: &IndexMatches,
        start: usize,
        with_bytes: bool,
        visit: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<usize> {
        self.reader.map_file_for_items(found.len().saturating_sub(start));
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let mut candidates = CandidateReader::begin(self.reader, tx, &cache, with_bytes)?;
            for (at, found_match) in found.matches.iter().enumerate().skip(start) {
                if !candidates.read(found_match, visit)? {
                    return Ok(at + 1);
                }
            }
            Ok(found.matches.len())
        })
    }

    /// Returns the items of these collections that have occurrences or alarms in a time range.
    /// `None`: the interval index is incomplete or has another fingerprint, and the caller has to
    /// scan.
    pub fn find_in_time_range(
        self,
        collections: &[CollectionRow],
        range: &TimeRange,
    ) -> Result<Option<TimeRangeHits>> {
        let extractor = self.reader.extractor();
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            if !cache.is_interval_index_current(extractor) {
                return Ok(None);
            }
            let selected: Vec<&CollectionMeta> = cache
                .collections
                .iter()
                .filter(|collection| collections.contains(&collection.collection_key.id))
                .collect();
            Ok(Some(interval_search::search(tx, extractor, &selected, range)?))
        })
    }
}
