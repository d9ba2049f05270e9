//! The first hits of a query in an order: top-k without sorting, by a scan of the indexed order.
//!
//! The lookup has named the candidates; the scan meets them in the order of the result, and stops
//! at the limit. This is the sorted access of Fagin's threshold algorithm, with one sorted list.
//! Where the candidates are too few, the scan would pass too many other items before it has met
//! enough of them; then all are tested and sorted, as without an index. Separate from `execution`,
//! which does that.

use crate::collector::{HitCollector, resolve_start_bound};
use crate::error::Error;
use crate::result_set::{Hit, ResultSet};
use crate::search_request::SearchRequest;
use crate::sort_bound::ScanStart;
use crate::sorted_scan::{indexed_order, rank_of_bound};
use crate::verification::{CandidateScan, CandidateTest, MAX_CANDIDATES_PER_TX};
use larder_store::{IndexMatches, Reader};

/// Fewer candidates are soon tested and sorted.
const MIN_SCAN_CANDIDATES: usize = 64;
/// To test a candidate and make its sort key takes as long as to read this many positions of an
/// order and to look each up among the candidates (5 us and 0.05 us).
const POSITIONS_PER_TEST: usize = 64;
/// A scan is abandoned after this many steps: some twentieth of a second. It is one transaction.
const MAX_SCAN_STEPS: u64 = 50_000_000;
/// The maximum number of positions read in one transaction.
const MAX_SCAN_POSITIONS: usize = 1 << 17;

/// Returns the first hits of a request in their order; `None` if the order is not indexed, or is
/// not likely to give them soon. The caller holds the read transaction of the lookup. `is_exact`: a
/// candidate that is certain needs no test.
pub(crate) fn find_top_k(
    reader: &Reader,
    request: &SearchRequest,
    matches: &IndexMatches,
    is_exact: bool,
    result: &mut ResultSet,
) -> Result<Option<Vec<Hit>>, Error> {
    let (Some(sort), Some(limit)) = (request.sort, request.limit) else { return Ok(None) };
    let candidates = matches.len();
    if sort.is_by_start() || candidates < MIN_SCAN_CANDIDATES || limit > MAX_CANDIDATES_PER_TX / 2 {
        return Ok(None);
    }
    let order = indexed_order(reader, sort, result)?;
    let bound = resolve_start_bound(reader, request);
    let Some(rank) = rank_of_bound(reader, &order, &bound)? else { return Ok(None) };
    let max_positions = candidates.saturating_mul(POSITIONS_PER_TEST).min(MAX_SCAN_POSITIONS);
    // One item in so many is a candidate, if they are spread evenly.
    let expected = (rank.total as usize).saturating_mul(limit) / candidates;
    if expected > max_positions / 2 {
        return Ok(None);
    }
    let after = match bound.scan_start(sort.direction()) {
        ScanStart::Unbounded => None,
        ScanStart::After(position) => Some(position),
        ScanStart::Exhausted => return Ok(Some(Vec::new())),
    };
    let uncertain = result.undecided_rows.len();
    let mut hits = HitCollector::in_scan_order(reader, limit);
    let (mut error, mut tested, mut is_abandoned) = (None, 0, false);
    let steps_before = result.steps.count_taken();
    let mut scan = CandidateScan {
        reader,
        result,
        hits: &mut hits,
        collections: None,
        is_exact,
        bytes_read: 0,
    };
    let read = reader.index().for_each_sorted_candidate(
        matches,
        &order,
        after.as_ref(),
        max_positions,
        &mut |candidate| {
            if scan.hits.is_full() {
                return false;
            }
            let steps = scan.result.steps.count_taken() - steps_before;
            if tested >= MAX_CANDIDATES_PER_TX || steps >= MAX_SCAN_STEPS {
                is_abandoned = true;
                return false;
            }
            tested += 1;
            match scan.test(candidate) {
                Ok(CandidateTest::TooLarge) => is_abandoned = true,
                Ok(_) => {}
                Err(other) => error = Some(other),
            }
            error.is_none()
                && !is_abandoned
                && !scan.result.steps.is_exceeded()
                && !scan.hits.is_full()
        },
    )?;
    result.steps.check()?;
    if let Some(error) = error {
        return Err(error.into());
    }
    let Some(read) = read else { return Ok(None) };
    // The work of a scan that is abandoned counts, too; the lookup is counted by the caller then.
    result.explain.rows_read += read.positions_read as u64;
    if hits.is_full() || (read.is_complete && !is_abandoned) {
        result.explain.rows_read += matches.postings_read;
        return Ok(Some(hits.into_sorted_hits()));
    }
    result.undecided_rows.truncate(uncertain);
    Ok(None)
}
