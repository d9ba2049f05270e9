//! The pages of the inverted index as rows of the database: `idx_segment`, `idx_block`,
//! `idx_fence`.
//!
//! Separate from `larder-index`, which does not depend on SQL, and from the tables' description in
//! `schema`. Statements are prepared once for each connection, and blocks are read in place.
//! Reading pages needs a read transaction only.

use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use larder_index::{
    BlockReader, CorruptBlock, Fence, IndexId, ReadSegments, Segment, SegmentId, WriteSegments,
};
use rusqlite::OptionalExtension as _;
use std::ops::Range;

/// The blocks of a segment have this many row ids.
const MAX_BLOCKS_PER_SEGMENT: i64 = 1 << 24;

/// The pages of the indexes, in one transaction.
#[derive(Clone, Copy)]
pub(crate) struct IndexTables<'a>(&'a ReadTransaction<'a>);

impl<'a> IndexTables<'a> {
    pub(crate) fn new(tx: &'a ReadTransaction<'a>) -> IndexTables<'a> {
        IndexTables(tx)
    }
}

/// The pages of the indexes, in a transaction that changes them.
#[derive(Clone, Copy)]
pub(crate) struct IndexTableWriter<'a>(&'a WriteTransaction<'a>);

impl<'a> IndexTableWriter<'a> {
    pub(crate) fn new(tx: &'a WriteTransaction<'a>) -> IndexTableWriter<'a> {
        IndexTableWriter(tx)
    }

    fn pages(&self) -> IndexTables<'a> {
        IndexTables(self.0)
    }
}

/// Returns the row of a block; an error if no segment of the database has such a number.
fn block_row(segment: SegmentId, block: i64) -> DatabaseResult<i64> {
    let first = segment.0.checked_mul(MAX_BLOCKS_PER_SEGMENT);
    first.and_then(|first| first.checked_add(block)).ok_or_else(malformed_block_error)
}

/// Returns the error of a block, or of a row that leads to a block, that Larder did not write.
fn malformed_block_error() -> DatabaseError {
    DatabaseError::Damaged("a block of the index is malformed".into())
}

impl ReadSegments for IndexTables<'_> {
    type Error = DatabaseError;

    fn corruption(_: CorruptBlock) -> DatabaseError {
        malformed_block_error()
    }

    fn segments(&self, index: IndexId) -> DatabaseResult<Vec<Segment>> {
        let mut select = self.0.prepare_cached(
            "SELECT id, max_seq, first_block, end_block, from_term, bytes, has_oversized,
                 merged_into
             FROM idx_segment WHERE derived_index = ?1",
        )?;
        let mut rows = select.query([index.0])?;
        let mut segments = Vec::new();
        while let Some(row) = rows.next()? {
            segments.push(Segment {
                id: SegmentId(row.get(0)?),
                max_seq: row.get(1)?,
                blocks: row.get(2)?..row.get(3)?,
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

    fn read_block<T>(
        &self,
        segment: SegmentId,
        block: i64,
        read: impl FnOnce(&[u8]) -> DatabaseResult<T>,
    ) -> DatabaseResult<T> {
        let mut select = self.0.prepare_cached("SELECT data FROM idx_block WHERE id = ?1")?;
        let mut rows = select.query([block_row(segment, block)?])?;
        let row = rows.next()?.ok_or_else(malformed_block_error)?;
        read(row.get_ref(0)?.as_blob().map_err(|_| malformed_block_error())?)
    }

    /// One statement over neighbouring rows costs less than one for each.
    fn read_blocks(
        &self,
        segment: SegmentId,
        blocks: Range<i64>,
        read: &mut BlockReader<'_, DatabaseError>,
    ) -> DatabaseResult<()> {
        let first = block_row(segment, blocks.start)?;
        let mut select = self.0.prepare_cached(
            "SELECT id, data FROM idx_block WHERE id >= ?1 AND id < ?2 ORDER BY id",
        )?;
        let mut rows = select.query((first, block_row(segment, blocks.end)?))?;
        for expected in first..first + (blocks.end - blocks.start) {
            let row = rows.next()?.ok_or_else(malformed_block_error)?;
            if row.get::<_, i64>(0)? != expected {
                return Err(malformed_block_error());
            }
            if !read(row.get_ref(1)?.as_blob().map_err(|_| malformed_block_error())?)? {
                break;
            }
        }
        Ok(())
    }

    fn last_fence_before(&self, segment: SegmentId, term: &[u8]) -> DatabaseResult<Option<i64>> {
        self.0
            .prepare_cached(
                "SELECT block FROM idx_fence WHERE segment = ?1 AND first_term < ?2
                 ORDER BY first_term DESC, block DESC LIMIT 1",
            )?
            .query_row((segment.0, term), |row| row.get(0))
            .optional()
            .map_err(DatabaseError::from)
    }
}

impl ReadSegments for IndexTableWriter<'_> {
    type Error = DatabaseError;

    fn corruption(malformed: CorruptBlock) -> DatabaseError {
        IndexTables::corruption(malformed)
    }

    fn segments(&self, index: IndexId) -> DatabaseResult<Vec<Segment>> {
        self.pages().segments(index)
    }

    fn read_block<T>(
        &self,
        segment: SegmentId,
        block: i64,
        read: impl FnOnce(&[u8]) -> DatabaseResult<T>,
    ) -> DatabaseResult<T> {
        self.pages().read_block(segment, block, read)
    }

    fn read_blocks(
        &self,
        segment: SegmentId,
        blocks: Range<i64>,
        read: &mut BlockReader<'_, DatabaseError>,
    ) -> DatabaseResult<()> {
        self.pages().read_blocks(segment, blocks, read)
    }

    fn last_fence_before(&self, segment: SegmentId, term: &[u8]) -> DatabaseResult<Option<i64>> {
        self.pages().last_fence_before(segment, term)
    }
}

impl WriteSegments for IndexTableWriter<'_> {
    fn create_segment(
        &self,
        index: IndexId,
        max_seq: i64,
        has_oversized: bool,
    ) -> DatabaseResult<SegmentId> {
        self.0
            .prepare_cached(
                "INSERT INTO idx_segment(derived_index, max_seq, first_block, end_block, from_term,
                     bytes, has_oversized)
                 VALUES(?1, ?2, 0, 0, x'', 0, ?3)",
            )?
            .execute((index.0, max_seq, has_oversized))?;
        Ok(SegmentId(self.0.last_insert_rowid()))
    }

    fn end(&self, segment: SegmentId) -> DatabaseResult<i64> {
        self.0
            .prepare_cached("SELECT end_block FROM idx_segment WHERE id = ?1")?
            .query_row([segment.0], |row| row.get(0))
            .map_err(DatabaseError::from)
    }

    fn set_end(&self, segment: SegmentId, next_block: i64, added_bytes: i64) -> DatabaseResult<()> {
        self.0
            .prepare_cached(
                "UPDATE idx_segment SET end_block = ?2, bytes = bytes + ?3 WHERE id = ?1",
            )?
            .execute((segment.0, next_block, added_bytes))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn insert_block(&self, segment: SegmentId, block: i64, bytes: &[u8]) -> DatabaseResult<()> {
        self.0
            .prepare_cached("INSERT INTO idx_block VALUES(?1, ?2)")?
            .execute((block_row(segment, block)?, bytes))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn insert_fence(&self, fence: Fence<'_>) -> DatabaseResult<()> {
        self.0
            .prepare_cached("INSERT INTO idx_fence VALUES(?1, ?2, ?3)")?
            .execute((fence.segment.0, fence.first_term, fence.block))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn set_merge_target(&self, segment: SegmentId, target: SegmentId) -> DatabaseResult<()> {
        self.0
            .prepare_cached("UPDATE idx_segment SET merged_into = ?2 WHERE id = ?1")?
            .execute((segment.0, target.0))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn delete_blocks(&self, segment: SegmentId, blocks: Range<i64>) -> DatabaseResult<()> {
        let (first, end) = (block_row(segment, blocks.start)?, block_row(segment, blocks.end)?);
        self.0
            .prepare_cached("DELETE FROM idx_block WHERE id >= ?1 AND id < ?2")?
            .execute((first, end))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn set_start(
        &self,
        segment: SegmentId,
        first_block: i64,
        from_term: &[u8],
    ) -> DatabaseResult<()> {
        // Each of the blocks before begins with `from_term` or with a smaller term, so the primary
        // key leads to their fences.
        self.0
            .prepare_cached(
                "DELETE FROM idx_fence WHERE segment = ?1 AND first_term <= ?2 AND block < ?3",
            )?
            .execute((segment.0, from_term, first_block))?;
        self.0
            .prepare_cached(
                "UPDATE idx_segment SET first_block = ?2, from_term = ?3 WHERE id = ?1",
            )?
            .execute((segment.0, first_block, from_term))
            .map_err(DatabaseError::from)
            .map(drop)
    }

    fn delete_segment(&self, segment: &Segment) -> DatabaseResult<()> {
        let id = segment.id.0;
        // The first block has no fence.
        if segment.blocks.end > 1 {
            self.0.prepare_cached("DELETE FROM idx_fence WHERE segment = ?1")?.execute([id])?;
        }
        self.delete_blocks(segment.id, segment.blocks.clone())?;
        self.0.prepare_cached("DELETE FROM idx_segment WHERE id = ?1")?.execute([id])?;
        Ok(())
    }
}
