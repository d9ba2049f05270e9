//! The pages of the sort index as rows of the database: `idx_sort_chunk`, `idx_sort_fence`,
//! `idx_sort_run`.
//!
//! Separate from `index_pages`, as the two indexes share no table. An order of `larder-index` is a
//! field here, and a partition a collection.

use crate::error::{RowError, RowResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use larder_index::{
    ChunkSeek, MalformedChunk, PartitionOrder, ReadSortPages, RunVisitor, SortFence, SortPosition,
    WriteSortPages,
};
use rusqlite::{OptionalExtension as _, Row};

/// The pages of the sort index, in one transaction.
#[derive(Clone, Copy)]
pub(crate) struct SortIndexPages<'a>(&'a ReadTransaction<'a>);

impl<'a> SortIndexPages<'a> {
    pub(crate) fn new(tx: &'a ReadTransaction<'a>) -> SortIndexPages<'a> {
        SortIndexPages(tx)
    }

    fn count(self, sql: &str) -> RowResult<u64> {
        let count: i64 = self.0.query_row(sql, [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

/// The pages of the sort index, in a transaction that changes them.
pub(crate) struct SortIndexPageWriter<'a> {
    tx: &'a WriteTransaction<'a>,
    pages: SortIndexPages<'a>,
}

impl<'a> SortIndexPageWriter<'a> {
    pub(crate) fn new(tx: &'a WriteTransaction<'a>) -> SortIndexPageWriter<'a> {
        SortIndexPageWriter { tx, pages: SortIndexPages(tx) }
    }

    /// Deletes all rows.
    pub(crate) fn clear(&self) -> rusqlite::Result<()> {
        self.tx.execute_batch(
            "DELETE FROM idx_sort_chunk; DELETE FROM idx_sort_fence; DELETE FROM idx_sort_run",
        )
    }

    fn execute(&self, sql: &str, args: impl rusqlite::Params) -> RowResult<()> {
        self.tx.prepare_cached(sql)?.execute(args).map_err(RowError::from).map(drop)
    }
}

fn malformed_error() -> RowError {
    RowError::Damaged("a chunk of the sort index is malformed".into())
}

fn position_from_row(row: &Row<'_>) -> rusqlite::Result<SortPosition> {
    Ok(SortPosition { key: row.get(0)?, row: row.get(1)? })
}

fn fence_from_row(row: &Row<'_>) -> rusqlite::Result<SortFence> {
    let count: i64 = row.get(2)?;
    Ok(SortFence {
        first: position_from_row(row)?,
        count: count.unsigned_abs(),
        chunk: row.get(3)?,
    })
}

/// The statement that reads a chunk with its fence. Without a chunk, the fence is damage.
macro_rules! select_chunk {
    ($condition:literal) => {
        concat!(
            "SELECT f.key, f.item, f.position_count, f.chunk, c.data ",
            "FROM idx_sort_fence f LEFT JOIN idx_sort_chunk c ON c.id = f.chunk ",
            "WHERE f.field = ?1 AND f.collection = ?2 ",
            $condition,
            " LIMIT 1"
        )
    };
}

impl ReadSortPages for SortIndexPages<'_> {
    type Error = RowError;

    fn sort_corruption(_: MalformedChunk) -> RowError {
        malformed_error()
    }

    fn read_sort_chunk<T>(
        &self,
        PartitionOrder { order: field, partition: collection }: PartitionOrder,
        seek: ChunkSeek<'_>,
        read: impl FnOnce(SortFence, &[u8]) -> RowResult<T>,
    ) -> RowResult<Option<T>> {
        let (sql, position) = match seek {
            ChunkSeek::First => (select_chunk!("ORDER BY f.key, f.item"), None),
            ChunkSeek::Last => (select_chunk!("ORDER BY f.key DESC, f.item DESC"), None),
            ChunkSeek::After(position) => (
                select_chunk!("AND (f.key, f.item) > (?3, ?4) ORDER BY f.key, f.item"),
                Some(position),
            ),
            ChunkSeek::AtOrBefore(position) => (
                select_chunk!("AND (f.key, f.item) <= (?3, ?4) ORDER BY f.key DESC, f.item DESC"),
                Some(position),
            ),
            ChunkSeek::Before(position) => (
                select_chunk!("AND (f.key, f.item) < (?3, ?4) ORDER BY f.key DESC, f.item DESC"),
                Some(position),
            ),
        };
        let mut select = self.0.prepare_cached(sql)?;
        let mut rows = match position {
            Some(position) => select.query((field, collection, &position.key, position.row))?,
            None => select.query((field, collection))?,
        };
        let Some(row) = rows.next()? else { return Ok(None) };
        let fence = fence_from_row(row)?;
        let bytes = row.get_ref(4)?.as_blob().map_err(|_| malformed_error())?;
        read(fence, bytes).map(Some)
    }

    fn next_fence(
        &self,
        PartitionOrder { order: field, partition: collection }: PartitionOrder,
        position: &SortPosition,
    ) -> RowResult<Option<SortPosition>> {
        self.0
            .prepare_cached(
                "SELECT key, item FROM idx_sort_fence
                 WHERE field = ?1 AND collection = ?2 AND (key, item) > (?3, ?4)
                 ORDER BY key, item LIMIT 1",
            )?
            .query_row((field, collection, &position.key, position.row), position_from_row)
            .optional()
            .map_err(RowError::from)
    }

    fn for_each_fence(
        &self,
        PartitionOrder { order: field, partition: collection }: PartitionOrder,
        each: &mut dyn FnMut(SortFence),
    ) -> RowResult<()> {
        let mut select = self.0.prepare_cached(
            "SELECT key, item, position_count, chunk FROM idx_sort_fence
             WHERE field = ?1 AND collection = ?2 ORDER BY key, item",
        )?;
        let mut rows = select.query((field, collection))?;
        while let Some(row) = rows.next()? {
            each(fence_from_row(row)?);
        }
        Ok(())
    }

    fn for_each_run(&self, each: &mut RunVisitor<'_, RowError>) -> RowResult<()> {
        let mut select = self.0.prepare_cached("SELECT data FROM idx_sort_run ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_blob()?)?;
        }
        Ok(())
    }

    fn sort_orders(&self) -> RowResult<Vec<PartitionOrder>> {
        self.0
            .prepare_cached("SELECT DISTINCT field, collection FROM idx_sort_fence")?
            .query_map([], |row| Ok(PartitionOrder { order: row.get(0)?, partition: row.get(1)? }))?
            .collect::<rusqlite::Result<_>>()
            .map_err(RowError::from)
    }

    fn sort_chunk_count(&self) -> RowResult<u64> {
        self.count("SELECT count(*) FROM idx_sort_chunk")
    }
}

impl<'a> WriteSortPages for SortIndexPageWriter<'a> {
    type Reader = SortIndexPages<'a>;

    fn reader(&self) -> &SortIndexPages<'a> {
        &self.pages
    }

    fn level_zero_count(&self) -> RowResult<u64> {
        self.pages.count("SELECT coalesce(sum(change_count), 0) FROM idx_sort_run")
    }

    fn level_one_count(&self) -> RowResult<u64> {
        self.pages.count("SELECT coalesce(sum(position_count), 0) FROM idx_sort_fence")
    }

    fn append_run(&self, count: u64, bytes: &[u8]) -> RowResult<()> {
        self.execute(
            "INSERT INTO idx_sort_run(change_count, data) VALUES(?1, ?2)",
            (count as i64, bytes),
        )
    }

    fn delete_runs(&self) -> RowResult<()> {
        self.execute("DELETE FROM idx_sort_run", [])
    }

    fn insert_sort_chunk(&self, bytes: &[u8]) -> RowResult<i64> {
        self.execute("INSERT INTO idx_sort_chunk(data) VALUES(?1)", [bytes])?;
        Ok(self.tx.last_insert_rowid())
    }

    fn replace_sort_chunk(&self, chunk: i64, bytes: &[u8]) -> RowResult<()> {
        self.execute("UPDATE idx_sort_chunk SET data = ?2 WHERE id = ?1", (chunk, bytes))
    }

    fn delete_sort_chunk(&self, chunk: i64) -> RowResult<()> {
        self.execute("DELETE FROM idx_sort_chunk WHERE id = ?1", [chunk])
    }

    fn put_sort_fence(&self, order: PartitionOrder, fence: &SortFence) -> RowResult<()> {
        let SortFence { first: SortPosition { key, row }, count, chunk } = fence;
        self.execute(
            "INSERT OR REPLACE INTO idx_sort_fence VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            (order.order, order.partition, key, row, *count as i64, chunk),
        )
    }

    fn delete_sort_fence(&self, order: PartitionOrder, first: &SortPosition) -> RowResult<()> {
        self.execute(
            "DELETE FROM idx_sort_fence
             WHERE field = ?1 AND collection = ?2 AND key = ?3 AND item = ?4",
            (order.order, order.partition, &first.key, first.row),
        )
    }
}
