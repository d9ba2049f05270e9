//! Lookups in the indexes of a store: terms in the inverted index, UIDs through handles, and time
//! ranges in the interval index, joined in one query.
//!
//! Separate from `larder-index`, which works only on terms: UIDs and time ranges are its external
//! lookups.

use crate::collection::CollectionMeta;
use crate::error::DatabaseResult;
use crate::index_tables::IndexTables;
use crate::interval_search;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::{series, uid_lookup};
use larder_extract::{Extractor, TimeRange};
use larder_index::{BooleanQuery, IndexMatch, Matches, Segment};

/// A query that the indexes answer.
pub type IndexQuery = BooleanQuery<ExternalQuery>;

/// The part of an [`IndexQuery`] that looks up no terms.
#[derive(Debug)]
pub enum ExternalQuery {
    /// Items with one of these UIDs, in any collection. Items whose bytes perhaps name one of them
    /// without being stored under it are candidates.
    Uids(Vec<String>),
    /// Items with an occurrence or an alarm in a time range.
    TimeRange(TimeRange),
}

/// Returns whether the query asks for a time range.
pub(crate) fn has_time_range(query: &IndexQuery) -> bool {
    query.has_external(&|query| matches!(query, ExternalQuery::TimeRange(_)))
}

/// Returns the items that match a query in these collections, and perhaps in others; and how many
/// entries of the indexes were read.
pub(crate) fn find_matches(
    tx: &ReadTransaction<'_>,
    extractor: &Extractor,
    segments: &[Segment],
    collections: &[&CollectionMeta],
    query: &IndexQuery,
) -> DatabaseResult<(Matches, u64)> {
    let mut external_entries = 0;
    let mut find_external = |query: &ExternalQuery| match query {
        ExternalQuery::Uids(uids) => {
            external_entries += (uids.len() * collections.len()) as u64;
            find_uids(tx, collections, uids)
        }
        ExternalQuery::TimeRange(range) => {
            let hits = interval_search::search(tx, extractor, collections, range)?;
            external_entries += hits.postings_read + hits.series_evaluated;
            let exact = hits.items.into_iter().map(exact_match);
            let undecided = hits.undecided.into_iter().map(candidate_match);
            Ok(Matches::from_unsorted(exact.chain(undecided).collect()))
        }
    };
    let pages = IndexTables::new(tx);
    let (matches, postings_read) =
        larder_index::find_matches(&pages, segments, query, &mut find_external)?;
    Ok((matches, postings_read + external_entries))
}

fn exact_match(item: ItemRow) -> IndexMatch {
    IndexMatch::exact(item.to_number())
}

fn candidate_match(item: ItemRow) -> IndexMatch {
    IndexMatch::candidate(item.to_number())
}

/// Returns the items that are stored under these UIDs; these matches are exact. Items that are
/// stored under a derived UID because another item had theirs first, are returned as candidates.
fn find_uids(
    tx: &ReadTransaction<'_>,
    collections: &[&CollectionMeta],
    uids: &[String],
) -> DatabaseResult<Matches> {
    let mut matches = Vec::with_capacity(uids.len());
    for collection in collections {
        let key = &collection.collection_key;
        for uid in uids {
            let master = uid_lookup::find_row(tx, key, uid, "")?;
            matches.extend(master.map(exact_match));
            if collection.index_config.collection_type().has_schedules() {
                let overrides = series::find_overrides(tx, key.id, uid)?;
                matches.extend(overrides.into_iter().map(|(item, _)| exact_match(item)));
            }
        }
    }
    let mut select = tx.prepare_cached("SELECT id FROM item WHERE uid_origin = 2")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        matches.push(candidate_match(row.get(0)?));
    }
    Ok(Matches::from_unsorted(matches))
}
