//! Verification: the test of the candidates that an index or a scan names.
//!
//! A bounded number of candidates is tested within the read transaction of the index. The others
//! are listed, and tested page by page: by their stored fields in a short transaction, or by their
//! bytes after it, because the test of an item may take seconds. Separate from `execution`, which
//! chooses the candidates.

use crate::collector::HitCollector;
use crate::error::Error;
use crate::item::{DecodedItem, ScheduleOrigin, TestStatus};
use crate::result_set::{Hit, ItemPage, PAGE_ROWS, ResultSet};
use crate::search_request::SortSpec;
use larder_store::{
    Candidate, CollectionRow, IndexMatches, ItemMeta, ItemRow, Kind, Reader, StoredFields,
};
use std::time::{Duration, Instant};

/// The maximum number of candidates tested within the transaction of the index.
pub(crate) const MAX_CANDIDATES_PER_TX: usize = 1000;
/// The maximum number of bytes of candidates read within the transaction of the index.
const MAX_CANDIDATE_BYTES_PER_TX: usize = 4 << 20;
/// The tests of a transaction end after this time; the test that is under way is completed.
const MAX_TEST_TIME_PER_TX: Duration = Duration::from_millis(10);
/// An item with more bytes than this is not tested within a transaction.
const MAX_BYTES_TESTED_IN_TX: usize = 64 << 10;
/// The maximum number of steps that the parsing of an item counts as: photos are skipped quickly.
const MAX_PARSE_STEPS: usize = 1 << 10;

/// A pass over the candidates of a lookup, within its read transaction.
pub(crate) struct CandidateScan<'a, 'b> {
    pub(crate) reader: &'a Reader,
    pub(crate) result: &'a mut ResultSet,
    pub(crate) hits: &'a mut HitCollector<'b>,
    /// The collections of the lookup; `None`: all collections of the request.
    pub(crate) collections: Option<&'a [CollectionRow]>,
    /// Whether candidates are hits without a test: the plan is exact, and no sort order needs their
    /// values.
    pub(crate) is_exact: bool,
    pub(crate) bytes_read: usize,
}

impl CandidateScan<'_, '_> {
    /// Tests the first candidates, and returns the others.
    pub(crate) fn run(mut self, matches: &IndexMatches) -> Result<Vec<PendingCandidate>, Error> {
        self.result.explain.rows_read += matches.postings_read;
        if self.hits.is_full() {
            return Ok(Vec::new());
        }
        if self.is_exact && self.result.prefetch.is_full() {
            return self.list_pending(matches, 0);
        }
        let (mut error, mut tested, mut large) = (None, 0, None);
        let began = Instant::now();
        let with_bytes = self.is_exact || !self.result.matcher.can_use_stored_fields();
        let done =
            self.reader.index().for_each_candidate(matches, 0, with_bytes, &mut |candidate| {
                tested += 1;
                match self.test_and_prefetch(candidate) {
                    Ok(true) => {}
                    Ok(false) => {
                        let hit = Hit { row: candidate.row, seq: candidate.seq };
                        large = Some(PendingCandidate { hit, is_match: false });
                    }
                    Err(other) => error = self.result.damaged.add(other).err(),
                }
                let is_exceeded = self.result.steps.is_exceeded();
                let is_done = tested >= MAX_CANDIDATES_PER_TX
                    || large.is_some()
                    || began.elapsed() >= MAX_TEST_TIME_PER_TX
                    || self.bytes_read >= MAX_CANDIDATE_BYTES_PER_TX
                    || (self.is_exact && self.result.prefetch.is_full());
                error.is_none() && !is_exceeded && !self.hits.is_full() && !is_done
            })?;
        self.result.steps.check()?;
        match error {
            Some(error) => Err(error.into()),
            None if self.hits.is_full() => Ok(Vec::new()),
            None => {
                let mut pending: Vec<PendingCandidate> = large.into_iter().collect();
                pending.extend(self.list_pending(matches, done)?);
                Ok(pending)
            }
        }
    }

    fn is_in_scope(&self, candidate: &Candidate<'_>) -> bool {
        self.result.is_about_collection(candidate.collection)
            && is_in_collections(self.collections, candidate.collection)
    }

    /// Adds a candidate to the hits if it matches, and its bytes to the prefetch if there is room.
    /// Returns false if it is too large to be tested here.
    fn test_and_prefetch(
        &mut self,
        candidate: &Candidate<'_>,
    ) -> Result<bool, larder_store::Error> {
        match self.test(candidate)? {
            CandidateTest::TooLarge => return Ok(false),
            CandidateTest::Match(meta)
                if self.collections.is_none() && !self.result.prefetch.is_full() =>
            {
                self.result.prefetch.add(meta, &candidate.bytes()?);
            }
            CandidateTest::Match(_) | CandidateTest::NoMatch => {}
        }
        Ok(true)
    }

    /// Tests a candidate, and adds it to the hits if it matches.
    pub(crate) fn test(
        &mut self,
        candidate: &Candidate<'_>,
    ) -> Result<CandidateTest, larder_store::Error> {
        if !self.is_in_scope(candidate) {
            return Ok(CandidateTest::NoMatch);
        }
        let meta = candidate.meta()?;
        let hit = Hit { row: candidate.row, seq: candidate.seq };
        if self.is_exact && candidate.exact {
            self.hits.unsorted.push(hit);
            return Ok(CandidateTest::Match(meta));
        }
        let fields = candidate.stored_fields();
        let verdict =
            verify_stored_fields(self.reader, hit, &meta, fields, self.result, self.hits)?;
        let is_match = match verdict {
            Some(is_match) => is_match,
            None => {
                let bytes = candidate.bytes()?;
                if bytes.len() > MAX_BYTES_TESTED_IN_TX {
                    return Ok(CandidateTest::TooLarge);
                }
                self.bytes_read += bytes.len();
                verify_source(self.reader, hit, &meta, &bytes, self.result, self.hits)?
            }
        };
        Ok(if is_match { CandidateTest::Match(meta) } else { CandidateTest::NoMatch })
    }

    /// Lists the candidates from this position on, until enough hits are certain.
    fn list_pending(
        &self,
        matches: &IndexMatches,
        first: usize,
    ) -> Result<Vec<PendingCandidate>, Error> {
        let mut pending = Vec::new();
        let mut wanted = self.hits.remaining_count();
        self.reader.index().for_each_candidate(matches, first, false, &mut |candidate| {
            if self.is_in_scope(candidate) {
                let is_match = self.is_exact && candidate.exact;
                let hit = Hit { row: candidate.row, seq: candidate.seq };
                pending.push(PendingCandidate { hit, is_match });
                wanted = wanted.saturating_sub(usize::from(is_match));
            }
            wanted > 0
        })?;
        Ok(pending)
    }
}

/// The result of the test of a candidate.
pub(crate) enum CandidateTest {
    Match(ItemMeta),
    NoMatch,
    /// The item is so large that its test would make the transaction long.
    TooLarge,
}

/// A candidate that is not tested yet, or needs no test.
pub(crate) struct PendingCandidate {
    hit: Hit,
    /// The index is certain that the item matches.
    is_match: bool,
}

/// Tests the candidates that may not match, in short transactions.
pub(crate) fn verify_pending(
    reader: &Reader,
    pending: &[PendingCandidate],
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    for page in pending.chunks(PAGE_ROWS) {
        if hits.is_full() {
            break;
        }
        let certain = page.iter().filter(|candidate| candidate.is_match);
        hits.unsorted.extend(certain.map(|candidate| candidate.hit));
        let uncertain = page.iter().filter(|candidate| !candidate.is_match);
        let uncertain: Vec<ItemRow> = uncertain.map(|candidate| candidate.hit.row).collect();
        if !uncertain.is_empty() {
            verify_rows(reader, &uncertain, result, hits)?;
        }
    }
    Ok(())
}

/// Tests the items in these rows, by their stored fields where these suffice, in short
/// transactions. Items of other collections are no hits. The hits are not in the order of rows
/// afterwards.
pub(crate) fn verify_rows(
    reader: &Reader,
    rows: &[ItemRow],
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    for page in rows.chunks(PAGE_ROWS) {
        if result.matcher.can_use_stored_fields() {
            let undecided = verify_page_by_stored_fields(reader, page, result, hits)?;
            verify_page_by_source(reader, &undecided, result, hits)?;
        } else {
            verify_page_by_source(reader, page, result, hits)?;
        }
    }
    Ok(())
}

/// Tests items by their stored fields, and returns the rows of those that need another test.
fn verify_page_by_stored_fields(
    reader: &Reader,
    mut rows: &[ItemRow],
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<Vec<ItemRow>, Error> {
    let mut undecided = Vec::new();
    while !rows.is_empty() {
        let (mut error, mut last) = (None, None);
        let began = Instant::now();
        reader.items().for_each_with_stored_fields(rows, &mut |meta, fields| {
            let hit = Hit { row: meta.row, seq: meta.seq };
            if result.is_about_collection(meta.collection_row) {
                match verify_stored_fields(reader, hit, &meta, fields, result, hits) {
                    Ok(Some(_)) => {}
                    Ok(None) => undecided.push(meta.row),
                    Err(other) => error = Some(other),
                }
            }
            let is_long = began.elapsed() >= MAX_TEST_TIME_PER_TX;
            last = is_long.then_some(meta.row);
            error.is_none() && !result.steps.is_exceeded() && !is_long
        })?;
        error.map_or(Ok(()), Err)?;
        result.steps.check()?;
        // The next transaction continues after the last item of a long one.
        let reached = last.and_then(|last| rows.iter().position(|row| *row == last));
        rows = reached.and_then(|at| rows.get(at + 1..)).unwrap_or_default();
    }
    Ok(undecided)
}

/// Tests items by their source bytes, after the transactions that read them. Without the pauses
/// between these, a writer that looks from time to time whether it can begin the write-ahead log
/// anew would hardly ever find that it can.
fn verify_page_by_source(
    reader: &Reader,
    mut rows: &[ItemRow],
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    let mut page = ItemPage::default();
    while !rows.is_empty() {
        let (_, others) = rows.split_at(page.fill(reader, rows)?);
        rows = others;
        for (meta, bytes) in page.iter() {
            if result.is_about_collection(meta.collection_row) {
                let hit = Hit { row: meta.row, seq: meta.seq };
                // The schedule of an item may come from another one, which is damaged.
                if let Err(error) = verify_source(reader, hit, meta, bytes, result, hits) {
                    result.damaged.add(error)?;
                }
                result.steps.check()?;
            }
        }
    }
    result.damaged.extend(&page.damaged);
    Ok(())
}

fn is_in_collections(only: Option<&[CollectionRow]>, collection: CollectionRow) -> bool {
    only.is_none_or(|only| only.contains(&collection))
}

/// Tests every item of the result set's collections, or of `only`, one page a transaction. Items of
/// a kind that cannot match are skipped.
pub(crate) fn scan_items(
    reader: &Reader,
    only: Option<&[CollectionRow]>,
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<(), Error> {
    let single_collection = match only {
        Some([collection]) => Some(*collection),
        _ => result.collection,
    };
    let kind = result.query.required_kind().filter(|_| !result.matcher.is_without_indexes());
    let mut last = None;
    while !hits.is_full() {
        let page = match (single_collection, kind) {
            // The index by collection has the rows; the rows of the items need not be read.
            (Some(collection), None) => {
                let page = reader.items().list_rows(collection, last, PAGE_ROWS)?;
                let Some(end) = page.last() else { break };
                last = Some(*end);
                result.explain.rows_read += page.len() as u64;
                page
            }
            _ => {
                let page =
                    reader.items().list_rows_with_kind(single_collection, last, PAGE_ROWS)?;
                let Some((end, ..)) = page.last() else { break };
                last = Some(*end);
                result.explain.rows_read += page.len() as u64;
                let is_wanted = |(_, collection, item_kind): &(ItemRow, CollectionRow, Kind)| {
                    kind.is_none_or(|kind| kind == *item_kind)
                        && result.is_about_collection(*collection)
                        && is_in_collections(only, *collection)
                };
                page.into_iter().filter(is_wanted).map(|(row, ..)| row).collect()
            }
        };
        verify_rows(reader, &page, result, hits)?;
    }
    Ok(())
}

/// Tests an item by its source bytes. Adds it to the hits and returns true if it matches.
fn verify_source(
    reader: &Reader,
    hit: Hit,
    meta: &ItemMeta,
    bytes: &[u8],
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<bool, larder_store::Error> {
    let schedule_origin = if result.matcher.is_without_indexes() {
        ScheduleOrigin::Recomputed
    } else {
        ScheduleOrigin::Stored
    };
    let item = DecodedItem::new(reader, meta, bytes).with_schedule_origin(schedule_origin);
    let keeps_values = result.matcher.has_several_tests(meta.kind);
    let item = if keeps_values { item.with_kept_values() } else { item };
    result.explain.verified += 1;
    // To parse the item takes as long as to compare its beginning.
    result.steps.count_test(bytes.len().min(MAX_PARSE_STEPS) as u64);
    let is_match = result.matcher.matches_fields(meta, &item, &result.steps);
    if is_match {
        hits.add(hit, |field| item.first(field));
    }
    result.undecided_rows.extend(item.status.into_undecided()?.then_some(hit.row));
    Ok(is_match)
}

/// Tests an item by its stored fields. Returns `None` if they do not suffice.
fn verify_stored_fields(
    reader: &Reader,
    hit: Hit,
    meta: &ItemMeta,
    fields: Option<StoredFields<'_>>,
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
) -> Result<Option<bool>, larder_store::Error> {
    let has_sort_value = |fields: &StoredFields<'_>| {
        let has_value = |sort: SortSpec| fields.has_field(sort.field) || sort.is_by_start();
        hits.sort.is_none_or(has_value)
    };
    let Some(fields) = fields.filter(has_sort_value) else { return Ok(None) };
    let status = TestStatus::default();
    let steps = &result.steps;
    let is_match = result.matcher.matches_stored_fields(reader, meta, &fields, &status, steps);
    let Some(is_match) = is_match else { return Ok(None) };
    result.undecided_rows.extend(status.into_undecided()?.then_some(hit.row));
    result.explain.verified += 1;
    if is_match {
        hits.add(hit, |field| fields.first(field).map(str::to_string));
    }
    Ok(Some(is_match))
}
