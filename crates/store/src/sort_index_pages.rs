//! The pages of the sort index as rows of the database: `idx_sort_block`, `idx_sort_fence`,
//! `idx_sort_run`.
//!
//! Separate from `index_tables`, as the two indexes share no table. An order of `larder-index` is a
//! field here, and a partition a collection.

use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::write_transaction::WriteTransaction;
use larder_extract::SortKeys;
use larder_index::{
    BlockSeek, CorruptBlock, LevelZero, PartitionOrder, ReadSortPages, RunVisitor, SortFence,
    SortIndex, SortPosition, WriteSortPages,
};
use rusqlite::{OptionalExtension as _, Row};

/// The pages of the sort index, in one transaction.
#[derive(Clone, Copy)]
pub(crate) struct SortIndexPages<'a>(&'a ReadTransaction<'a>);

impl<'a> SortIndexPages<'a> {
    pub(crate) fn new(tx: &'a ReadTransaction<'a>) -> SortIndexPages<'a> {
        SortIndexPages(tx)
    }

    fn count(self, sql: &str) -> DatabaseResult<u64> {
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

    fn execute(&self, sql: &str, args: impl rusqlite::Params) -> DatabaseResult<()> {
        self.tx.prepare_cached(sql)?.execute(args).map_err(DatabaseError::from).map(drop)
    }
}

/// The number of blocks above which [`find_sort_keys`] does not read the index: it is called while
/// other writers wait.
const MAX_SEARCHED_BLOCKS: usize = 2_000;

/// Finds the sort keys of an item whose bytes cannot be trusted to give them, by reading the whole
/// index. `None`: the index is too large for that, is malformed, or has the item in another
/// collection.
pub(crate) fn find_sort_keys(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
    collection: CollectionRow,
) -> DatabaseResult<Option<SortKeys>> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM idx_sort_block LIMIT ?1)";
    let blocks: i64 = tx.query_row(sql, [MAX_SEARCHED_BLOCKS as i64 + 1], |row| row.get(0))?;
    if blocks > MAX_SEARCHED_BLOCKS as i64 {
        return Ok(None);
    }
    let pages = SortIndexPages::new(tx);
    let (mut keys, mut is_elsewhere) = (SortKeys::new(), false);
    let mut search = || -> DatabaseResult<()> {
        SortIndex::new(&pages, &LevelZero::read(&pages)?).verify(&mut |order, key, row| {
            if row == item.to_number() {
                is_elsewhere |= order.partition != collection.to_number();
                keys.push((order.order, key.to_vec()));
            }
        })
    };
    match search() {
        Ok(()) => Ok((!is_elsewhere).then_some(keys)),
        Err(DatabaseError::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn malformed_error() -> DatabaseError {
    DatabaseError::Damaged("a block of the sort index is malformed".into())
}

fn position_from_row(row: &Row<'_>) -> rusqlite::Result<SortPosition> {
    Ok(SortPosition { key: row.get(0)?, row: row.get(1)? })
}

fn fence_from_row(row: &Row<'_>) -> rusqlite::Result<SortFence> {
    let count: i64 = row.get(2)?;
    Ok(SortFence {
        first: position_from_row(row)?,
        count: count.unsigned_abs(),
        block: row.get(3)?,
    })
}

/// The statement that reads a block with its fence. Without a block, the fence is damage.
macro_rules! select_block {
    ($condition:literal) => {
        concat!(
            "SELECT f.key, f.item, f.position_count, f.block, b.data ",
            "FROM idx_sort_fence f LEFT JOIN idx_sort_block b ON b.id = f.block ",
            "WHERE f.field = ?1 AND f.collection = ?2 ",
            $condition,
            " LIMIT 1"
        )
    };
}

impl ReadSortPages for SortIndexPages<'_> {
    type Error = DatabaseError;

    fn sort_corruption(_: CorruptBlock) -> DatabaseError {
        malformed_error()
    }

    fn read_sort_block<T>(
        &self,
        PartitionOrder { order: field, partition: collection }: PartitionOrder,
        seek: BlockSeek<'_>,
        read: impl FnOnce(SortFence, &[u8]) -> DatabaseResult<T>,
    ) -> DatabaseResult<Option<T>> {
        let (sql, position) = match seek {
            BlockSeek::First => (select_block!("ORDER BY f.key, f.item"), None),
            BlockSeek::Last => (select_block!("ORDER BY f.key DESC, f.item DESC"), None),
            BlockSeek::After(position) => (
                select_block!("AND (f.key, f.item) > (?3, ?4) ORDER BY f.key, f.item"),
                Some(position),
            ),
            BlockSeek::AtOrBefore(position) => (
                select_block!("AND (f.key, f.item) <= (?3, ?4) ORDER BY f.key DESC, f.item DESC"),
                Some(position),
            ),
            BlockSeek::Before(position) => (
                select_block!("AND (f.key, f.item) < (?3, ?4) ORDER BY f.key DESC, f.item DESC"),
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
    ) -> DatabaseResult<Option<SortPosition>> {
        self.0
            .prepare_cached(
                "SELECT key, item FROM idx_sort_fence
                 WHERE field = ?1 AND collection = ?2 AND (key, item) > (?3, ?4)
                 ORDER BY key, item LIMIT 1",
            )?
            .query_row((field, collection, &position.key, position.row), position_from_row)
            .optional()
            .map_err(DatabaseError::from)
    }

    fn for_each_fence(
        &self,
        PartitionOrder { order: field, partition: collection }: PartitionOrder,
        visit: &mut dyn FnMut(SortFence),
    ) -> DatabaseResult<()> {
        let mut select = self.0.prepare_cached(
            "SELECT key, item, position_count, block FROM idx_sort_fence
             WHERE field = ?1 AND collection = ?2 ORDER BY key, item",
        )?;
        let mut rows = select.query((field, collection))?;
        while let Some(row) = rows.next()? {
            visit(fence_from_row(row)?);
        }
        Ok(())
    }

    fn for_each_run(&self, visit: &mut RunVisitor<'_, DatabaseError>) -> DatabaseResult<()> {
        let mut select = self.0.prepare_cached("SELECT data FROM idx_sort_run ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get_ref(0)?.as_blob().map_err(|_| malformed_error())?)?;
        }
        Ok(())
    }

    fn sort_orders(&self) -> DatabaseResult<Vec<PartitionOrder>> {
        self.0
            .prepare_cached("SELECT DISTINCT field, collection FROM idx_sort_fence")?
            .query_map([], |row| Ok(PartitionOrder { order: row.get(0)?, partition: row.get(1)? }))?
            .collect::<rusqlite::Result<_>>()
            .map_err(DatabaseError::from)
    }

    fn sort_block_count(&self) -> DatabaseResult<u64> {
        self.count("SELECT count(*) FROM idx_sort_block")
    }
}

impl<'a> WriteSortPages for SortIndexPageWriter<'a> {
    type Reader = SortIndexPages<'a>;

    fn reader(&self) -> &SortIndexPages<'a> {
        &self.pages
    }

    fn level_zero_count(&self) -> DatabaseResult<u64> {
        self.pages.count("SELECT coalesce(sum(change_count), 0) FROM idx_sort_run")
    }

    fn level_one_count(&self) -> DatabaseResult<u64> {
        self.pages.count("SELECT coalesce(sum(position_count), 0) FROM idx_sort_fence")
    }

    fn append_run(&self, count: u64, bytes: &[u8]) -> DatabaseResult<()> {
        self.execute(
            "INSERT INTO idx_sort_run(change_count, data) VALUES(?1, ?2)",
            (count as i64, bytes),
        )
    }

    fn delete_runs(&self) -> DatabaseResult<()> {
        self.execute("DELETE FROM idx_sort_run", [])
    }

    fn insert_sort_block(&self, bytes: &[u8]) -> DatabaseResult<i64> {
        self.execute("INSERT INTO idx_sort_block(data) VALUES(?1)", [bytes])?;
        Ok(self.tx.last_insert_rowid())
    }

    fn replace_sort_block(&self, block: i64, bytes: &[u8]) -> DatabaseResult<()> {
        self.execute("UPDATE idx_sort_block SET data = ?2 WHERE id = ?1", (block, bytes))
    }

    fn delete_sort_block(&self, block: i64) -> DatabaseResult<()> {
        self.execute("DELETE FROM idx_sort_block WHERE id = ?1", [block])
    }

    fn put_sort_fence(&self, order: PartitionOrder, fence: &SortFence) -> DatabaseResult<()> {
        let SortFence { first: SortPosition { key, row }, count, block } = fence;
        self.execute(
            "INSERT OR REPLACE INTO idx_sort_fence VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            (order.order, order.partition, key, row, *count as i64, block),
        )
    }

    fn delete_sort_fence(&self, order: PartitionOrder, first: &SortPosition) -> DatabaseResult<()> {
        self.execute(
            "DELETE FROM idx_sort_fence
             WHERE field = ?1 AND collection = ?2 AND key = ?3 AND item = ?4",
            (order.order, order.partition, &first.key, first.row),
        )
    }
}
