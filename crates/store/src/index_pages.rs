//! The pages of the inverted index as rows of the database: `idx_segment`, `idx_chunk`,
//! `idx_fence`.
//!
//! Separate from `larder-index`, which does not depend on SQL, and from the tables' description in
//! `schema`. Statements are prepared once for each connection, and chunks are read in place.
//! Reading pages needs a read transaction only.

use crate::error::{RowError, RowResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use larder_index::{Fence, IndexId, MalformedChunk, ReadPages, Segment, SegmentId, WritePages};
use rusqlite::OptionalExtension as _;
use std::ops::Range;

/// The chunks of a segment have this many row ids.
const MAX_CHUNKS_PER_SEGMENT: i64 = 1 << 24;

/// The pages of the indexes, in one transaction.
#[derive(Clone, Copy)]
pub(crate) struct IndexPages<'a>(&'a ReadTransaction<'a>);

impl<'a> IndexPages<'a> {
    pub(crate) fn new(tx: &'a ReadTransaction<'a>) -> IndexPages<'a> {
        IndexPages(tx)
    }
}

/// The pages of the indexes, in a transaction that changes them.
#[derive(Clone, Copy)]
pub(crate) struct IndexPageWriter<'a>(&'a WriteTransaction<'a>);

impl<'a> IndexPageWriter<'a> {
    pub(crate) fn new(tx: &'a WriteTransaction<'a>) -> IndexPageWriter<'a> {
        IndexPageWriter(tx)
    }

    fn pages(&self) -> IndexPages<'a> {
        IndexPages(self.0)
    }
}

/// Returns the row of a chunk; an error if no segment of the database has such a number.
fn chunk_row(segment: SegmentId, chunk: i64) -> RowResult<i64> {
    let first = segment.0.checked_mul(MAX_CHUNKS_PER_SEGMENT);
    first.and_then(|first| first.checked_add(chunk)).ok_or_else(malformed_chunk_error)
}

/// Returns the error of a chunk, or of a row that leads to a chunk, that Larder did not write.
fn malformed_chunk_error() -> RowError {
    RowError::Damaged("a chunk of the index is malformed".into())
}

impl ReadPages for IndexPages<'_> {
    type Error = RowError;

    fn corruption(_: MalformedChunk) -> RowError {
        malformed_chunk_error()
    }

    fn segments(&self, index: IndexId) -> RowResult<Vec<Segment>> {
        let mut select = self.0.prepare_cached(
            "SELECT id, max_seq, first_chunk, end_chunk, from_term, bytes, has_oversized,
                 merged_into
             FROM idx_segment WHERE derived_index = ?1",
        )?;
        let mut rows = select.query([index.0])?;
        let mut segments = Vec::new();
        while let Some(row) = rows.next()? {
            segments.push(Segment {
                id: SegmentId(row.get(0)?),
                max_seq: row.get(1)?,
                chunks: row.get(2)?..row.get(3)?,
                from_term: row.get_ref(4)?.as_blob()?.to_vec(),
                bytes: row.get(5)?,
                has_oversized: row.get(6)?,
                merged_into: row.get::<_, Option<i64>>(7)?.map(SegmentId),
            });
        }
        // There are few segments: sorting them in SQLite takes longer.
        segments.sort_by_key(|segment| (segment.max_seq, segment.id));
        Ok(segments)
    }

    fn read_chunk<T>(
        &self,
        segment: SegmentId,
        chunk: i64,
        read: impl FnOnce(&[u8]) -> RowResult<T>,
    ) -> RowResult<T> {
        let mut select = self.0.prepare_cached("SELECT data FROM idx_chunk WHERE id = ?1")?;
        let mut rows = select.query([chunk_row(segment, chunk)?])?;
        let row = rows.next()?.ok_or_else(malformed_chunk_error)?;
        read(row.get_ref(0)?.as_blob().map_err(|_| malformed_chunk_error())?)
    }

    fn last_fence_before(&self, segment: SegmentId, term: &[u8]) -> RowResult<Option<i64>> {
        self.0
            .prepare_cached(
                "SELECT chunk FROM idx_fence WHERE segment = ?1 AND first_term < ?2
                 ORDER BY first_term DESC, chunk DESC LIMIT 1",
            )?
            .query_row((segment.0, term), |row| row.get(0))
            .optional()
            .map_err(RowError::from)
    }
}

impl ReadPages for IndexPageWriter<'_> {
    type Error = RowError;

    fn corruption(malformed: MalformedChunk) -> RowError {
        IndexPages::corruption(malformed)
    }

    fn segments(&self, index: IndexId) -> RowResult<Vec<Segment>> {
        self.pages().segments(index)
    }

    fn read_chunk<T>(
        &self,
        segment: SegmentId,
        chunk: i64,
        read: impl FnOnce(&[u8]) -> RowResult<T>,
    ) -> RowResult<T> {
        self.pages().read_chunk(segment, chunk, read)
    }

    fn last_fence_before(&self, segment: SegmentId, term: &[u8]) -> RowResult<Option<i64>> {
        self.pages().last_fence_before(segment, term)
    }
}

impl WritePages for IndexPageWriter<'_> {
    fn create_segment(
        &self,
        index: IndexId,
        max_seq: i64,
        has_oversized: bool,
    ) -> RowResult<SegmentId> {
        self.0
            .prepare_cached(
                "INSERT INTO idx_segment(derived_index, max_seq, first_chunk, end_chunk, from_term,
                     bytes, has_oversized)
                 VALUES(?1, ?2, 0, 0, x'', 0, ?3)",
            )?
            .execute((index.0, max_seq, has_oversized))?;
        Ok(SegmentId(self.0.last_insert_rowid()))
    }

    fn end(&self, segment: SegmentId) -> RowResult<i64> {
        self.0
            .prepare_cached("SELECT end_chunk FROM idx_segment WHERE id = ?1")?
            .query_row([segment.0], |row| row.get(0))
            .map_err(RowError::from)
    }

    fn set_end(&self, segment: SegmentId, next_chunk: i64, added_bytes: i64) -> RowResult<()> {
        self.0
            .prepare_cached(
                "UPDATE idx_segment SET end_chunk = ?2, bytes = bytes + ?3 WHERE id = ?1",
            )?
            .execute((segment.0, next_chunk, added_bytes))
            .map_err(RowError::from)
            .map(drop)
    }

    fn insert_chunk(&self, segment: SegmentId, chunk: i64, bytes: &[u8]) -> RowResult<()> {
        self.0
            .prepare_cached("INSERT INTO idx_chunk VALUES(?1, ?2)")?
            .execute((chunk_row(segment, chunk)?, bytes))
            .map_err(RowError::from)
            .map(drop)
    }

    fn insert_fence(&self, fence: Fence<'_>) -> RowResult<()> {
        self.0
            .prepare_cached("INSERT INTO idx_fence VALUES(?1, ?2, ?3)")?
            .execute((fence.segment.0, fence.first_term, fence.chunk))
            .map_err(RowError::from)
            .map(drop)
    }

    fn set_merge_target(&self, segment: SegmentId, target: SegmentId) -> RowResult<()> {
        self.0
            .prepare_cached("UPDATE idx_segment SET merged_into = ?2 WHERE id = ?1")?
            .execute((segment.0, target.0))
            .map_err(RowError::from)
            .map(drop)
    }

    fn delete_chunks(&self, segment: SegmentId, chunks: Range<i64>) -> RowResult<()> {
        let (first, end) = (chunk_row(segment, chunks.start)?, chunk_row(segment, chunks.end)?);
        self.0
            .prepare_cached("DELETE FROM idx_chunk WHERE id >= ?1 AND id < ?2")?
            .execute((first, end))
            .map_err(RowError::from)
            .map(drop)
    }

    fn set_start(&self, segment: SegmentId, first_chunk: i64, from_term: &[u8]) -> RowResult<()> {
        // Each of the chunks before begins with `from_term` or with a smaller term, so the primary
        // key leads to their fences.
        self.0
            .prepare_cached(
                "DELETE FROM idx_fence WHERE segment = ?1 AND first_term <= ?2 AND chunk < ?3",
            )?
            .execute((segment.0, from_term, first_chunk))?;
        self.0
            .prepare_cached(
                "UPDATE idx_segment SET first_chunk = ?2, from_term = ?3 WHERE id = ?1",
            )?
            .execute((segment.0, first_chunk, from_term))
            .map_err(RowError::from)
            .map(drop)
    }

    fn delete_segment(&self, segment: &Segment) -> RowResult<()> {
        let id = segment.id.0;
        // The first chunk has no fence.
        if segment.chunks.end > 1 {
            self.0.prepare_cached("DELETE FROM idx_fence WHERE segment = ?1")?.execute([id])?;
        }
        self.delete_chunks(segment.id, segment.chunks.clone())?;
        self.0.prepare_cached("DELETE FROM idx_segment WHERE id = ?1")?.execute([id])?;
        Ok(())
    }
}
