//! Digests of the indexes: a check compares the digests of the stored indexes with digests computed
//! from the source bytes. Messages (kind 6) have no bytes in the store, and no entries in these
//! indexes.

use crate::derived_index::DerivedIndex;
use crate::error::{DatabaseError, DatabaseResult};
use crate::extractor_cache::ExtractorCache;
use crate::index_tables::IndexTables;
use crate::index_updates::{TERM_DECODER, to_term_set};
use crate::interval_table;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::series;
use crate::sort_index_pages::SortIndexPages;
use larder_extract::Extractor;
use larder_index::{LevelZero, SortIndex};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

/// A digest of rows that does not depend on their order: tables with the same rows have the same
/// digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableDigest {
    /// The number of rows.
    pub(crate) rows: u64,
    sum: u64,
}

impl TableDigest {
    pub(crate) fn add(&mut self, row: impl std::hash::Hash) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// The tag that distinguishes stored fields from terms in a digest.
const STORED_FIELDS_TAG: &str = "kept";

/// Returns the digest of an index as it is stored, without these items; the digest of the text
/// index includes the stored fields.
pub(crate) fn stored_digest(
    tx: &ReadTransaction<'_>,
    set: DerivedIndex,
    except: &HashSet<ItemRow>,
) -> DatabaseResult<TableDigest> {
    let mut digest = TableDigest::default();
    if count_strays(tx, set)? > 0 {
        return Err(DatabaseError::Damaged("rows of an index belong to nothing".into()));
    }
    if set == DerivedIndex::Interval {
        interval_table::for_each_record(tx, &mut |row| {
            if !except.contains(&row.item()) {
                digest.add(row);
            }
        })?;
        return Ok(digest);
    }
    if set == DerivedIndex::Sort {
        let pages = SortIndexPages::new(tx);
        verify_run_counts(tx)?;
        let level_zero = LevelZero::read(&pages)?;
        SortIndex::new(&pages, &level_zero).verify(&mut |order, key, item| {
            let (collection, item) =
                (CollectionRow::from_number(order.partition), ItemRow::from_number(item));
            if !except.contains(&item) {
                digest.add((order.order, collection, key, item));
            }
        })?;
        return Ok(digest);
    }
    let mut live: HashSet<ItemRow> = HashSet::new();
    let mut select =
        tx.prepare_cached("SELECT id, stored_fields FROM item WHERE kind NOT IN (6, 10)")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let item = row.get(0)?;
        if except.contains(&item) {
            continue;
        }
        live.insert(item);
        digest.add((STORED_FIELDS_TAG, item, row.get_ref(1)?.as_blob_or_null()?));
    }
    let live = |item| live.contains(&ItemRow::from_number(item));
    let pages = IndexTables::new(tx);
    larder_index::for_each_posting(&pages, set.index_id(), &live, &mut |term, item| {
        digest.add((term, ItemRow::from_number(item)));
    })?;
    Ok(digest)
}

/// Returns the number of rows of an index that nothing leads to, and of references to rows that are
/// missing.
fn count_strays(tx: &ReadTransaction<'_>, set: DerivedIndex) -> DatabaseResult<i64> {
    let sql = match set {
        DerivedIndex::Text => {
            "SELECT (SELECT count(*) FROM idx_block WHERE NOT EXISTS
                (SELECT 1 FROM idx_segment WHERE id = idx_block.id >> 24
                 AND (idx_block.id & 0xffffff) >= first_block AND (idx_block.id & 0xffffff) < end_block))
              + (SELECT count(*) FROM idx_fence WHERE segment NOT IN (SELECT id FROM idx_segment))"
        }
        DerivedIndex::Sort => {
            "SELECT (SELECT count(*) FROM idx_sort_block WHERE id NOT IN (SELECT block FROM idx_sort_fence))
              + (SELECT count(*) - count(DISTINCT block) FROM idx_sort_fence)"
        }
        DerivedIndex::Interval => {
            "SELECT count(*) FROM idx_schedule WHERE zone_set IS NOT NULL
              AND zone_set NOT IN (SELECT id FROM idx_zone_set)"
        }
    };
    Ok(tx.query_row(sql, [], |row| row.get(0))?)
}

/// Fails if a run of the sort index has another number of changes than its row says: the number
/// decides when the runs are merged.
fn verify_run_counts(tx: &ReadTransaction<'_>) -> DatabaseResult<()> {
    let mut select = tx.prepare_cached("SELECT change_count, data FROM idx_sort_run")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let recorded: i64 = row.get(0)?;
        let found = LevelZero::count_run_changes(row.get_ref(1)?.as_blob()?);
        if found.ok() != u64::try_from(recorded).ok() {
            return Err(DatabaseError::Damaged("a run of the sort index is malformed".into()));
        }
    }
    Ok(())
}

/// Returns the digests that the indexes should have, computed from the source bytes, without these
/// items, in the order of [`DerivedIndex::ALL`].
pub(crate) fn expected_digests(
    tx: &ReadTransaction<'_>,
    extractor: &Extractor,
    except: &HashSet<ItemRow>,
) -> rusqlite::Result<[TableDigest; 3]> {
    let (mut digests, mut extractors) =
        ([TableDigest::default(); 3], ExtractorCache::new(extractor));
    let mut select =
        tx.prepare_cached("SELECT id, collection FROM item WHERE kind NOT IN (6, 10) ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (item, collection): (ItemRow, CollectionRow) = (row.get(0)?, row.get(1)?);
        if except.contains(&item) {
            continue;
        }
        let stored = extractors.read_item(tx, item)?;
        let entry = stored.map(|stored| extractors.extract(tx, &stored)).transpose()?;
        let entry = entry.unwrap_or_default();
        let times = series::compute_schedule(tx, &mut extractors, item)?;
        interval_table::for_each_expected_record(collection, item, times.as_ref(), &mut |row| {
            digests[2].add(row);
        });
        digests[0].add((STORED_FIELDS_TAG, item, entry.stored_fields.as_deref()));
        for (field, key) in &entry.sort_keys {
            digests[1].add((*field, collection, key.as_slice(), item));
        }
        to_term_set(entry.terms).for_each(TERM_DECODER, &mut |term| digests[0].add((term, item)));
    }
    Ok(digests)
}
