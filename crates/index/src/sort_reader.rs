//! Reading the sort index: positions from anywhere on, in either direction; and the rank of a
//! position, without reading the positions before it.
//!
//! A scan merges the blocks of level 1, which it reads one by one, with the changes of level 0, and
//! the partitions with each other. A rank is a sum over fences, and a search in one block.

use crate::block::CorruptBlock;
use crate::level_zero::LevelZero;
use crate::rank_directory::RankDirectory;
use crate::sort_block::{PositionBuffer, PositionCursor, count_before};
use crate::sort_pages::{BlockSeek, PartitionOrder, PositionChange, ReadSortPages, SortPosition};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A function that is called with the key and the item of each position, until it returns false.
pub type PositionVisitor<'a, E> = dyn FnMut(&[u8], i64) -> Result<bool, E> + 'a;

/// The sort index in one consistent view of the storage.
#[derive(Debug)]
pub struct SortIndex<'a, P> {
    pages: &'a P,
    level_zero: &'a LevelZero,
}

impl<'a, P: ReadSortPages> SortIndex<'a, P> {
    /// Level 0 is what [`LevelZero::read`] returns for these pages.
    pub fn new(pages: &'a P, level_zero: &'a LevelZero) -> SortIndex<'a, P> {
        SortIndex { pages, level_zero }
    }

    /// Passes each position after `after` (before it if `is_backwards`) in these orders, taken as
    /// one sequence, to `visit`, until that returns false.
    pub fn scan(
        &self,
        orders: &[PartitionOrder],
        after: Option<&SortPosition>,
        is_backwards: bool,
        visit: &mut PositionVisitor<'_, P::Error>,
    ) -> Result<(), P::Error> {
        let mut scans = Vec::with_capacity(orders.len());
        for &order in orders {
            scans.push(OrderScan::open(self, order, after, is_backwards)?);
        }
        loop {
            let open = scans.iter_mut().filter(|scan| scan.current().is_some());
            let next = open.min_by(|a, b| {
                let order = a.current().cmp(&b.current());
                if is_backwards { order.reverse() } else { order }
            });
            let Some(scan) = next else { return Ok(()) };
            let Some((key, row)) = scan.current() else { return Ok(()) };
            if !visit(key, row)? {
                return Ok(());
            }
            scan.advance(self.pages)?;
        }
    }

    /// Returns the number of items before a position in these orders, and the number of all items.
    /// A directory is what [`RankDirectory::read`] returns for its order.
    pub fn rank<'d>(
        &self,
        orders: impl IntoIterator<Item = (PartitionOrder, &'d RankDirectory)>,
        position: &SortPosition,
    ) -> Result<(u64, u64), P::Error> {
        let (mut before, mut total) = (0, 0);
        for (order, directory) in orders {
            let (net_before, net_total) = self.level_zero.count_net(order, position);
            before += net_before;
            total += directory.total() as i64 + net_total;
            let Some(rank) = directory.rank_of_block(position) else { continue };
            let seek = BlockSeek::AtOrBefore(position);
            let in_block = self.pages.read_sort_block(order, seek, |_, bytes| {
                count_before(bytes, position).map_err(P::sort_corruption)
            })?;
            before += rank as i64 + in_block.unwrap_or_default() as i64;
        }
        Ok((before.max(0).unsigned_abs(), total.max(0).unsigned_abs()))
    }

    /// Passes each position of each order to `visit`. Fails if a fence is not that of its block, a
    /// position is out of place, or level 0 changes what is not there.
    pub fn verify(
        &self,
        visit: &mut dyn FnMut(PartitionOrder, &[u8], i64),
    ) -> Result<(), P::Error> {
        let malformed = || P::sort_corruption(CorruptBlock);
        let mut orders: BTreeSet<PartitionOrder> = self.pages.sort_orders()?.into_iter().collect();
        orders.extend(self.level_zero.orders());
        let mut blocks = 0;
        for order in orders {
            let mut changes = self.level_zero.of_order(order);
            let (mut fence, mut last) = (None, None);
            loop {
                let mut buffer = PositionBuffer::default();
                let seek = fence.as_ref().map_or(BlockSeek::First, BlockSeek::After);
                let read = self.pages.read_sort_block(order, seek, |fence, bytes| {
                    buffer.unpack(bytes).map_err(P::sort_corruption)?;
                    Ok(fence)
                })?;
                let Some(read) = read else { break };
                blocks += 1;
                if read.count != buffer.len() as u64
                    || buffer.position(0).as_ref() != Some(&read.first)
                {
                    return Err(malformed());
                }
                for index in 0..buffer.len() {
                    let position = buffer.position(index);
                    if position <= last {
                        return Err(malformed());
                    }
                    last = position;
                    let (Some(position), Some((key, row))) = (&last, buffer.get(index)) else {
                        continue;
                    };
                    while let Some((change, tail)) = changes.split_first()
                        && change.position < *position
                    {
                        if !change.is_insert {
                            return Err(malformed());
                        }
                        visit(order, &change.position.key, change.position.row);
                        changes = tail;
                    }
                    match changes.split_first().filter(|(change, _)| change.position == *position) {
                        None => visit(order, key, row),
                        Some((change, tail)) if !change.is_insert => changes = tail,
                        Some(_) => return Err(malformed()),
                    }
                }
                fence = Some(read.first);
            }
            for change in changes {
                if !change.is_insert {
                    return Err(malformed());
                }
                visit(order, &change.position.key, change.position.row);
            }
        }
        // A block without a fence holds what nobody finds.
        if blocks == self.pages.sort_block_count()? { Ok(()) } else { Err(malformed()) }
    }
}

/// A scan of one order: its next position is in the block or among the changes of level 0.
struct OrderScan<'a> {
    order: PartitionOrder,
    is_backwards: bool,
    /// The changes that are not passed.
    changes: &'a [PositionChange],
    block: BlockScan,
    /// The fence of the block; `None`: there is no block.
    fence: Option<SortPosition>,
    next: NextPosition,
}

/// The positions of a block that are not passed.
enum BlockScan {
    Forwards(PositionCursor),
    /// Keys are packed forwards, so they are unpacked first; the number of those left.
    Backwards(PositionBuffer, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NextPosition {
    InBlock,
    InLevelZero,
    None,
}

impl BlockScan {
    #[inline]
    fn current(&self) -> Option<(&[u8], i64)> {
        match self {
            BlockScan::Forwards(cursor) => cursor.current(),
            BlockScan::Backwards(buffer, left) => buffer.get(left.checked_sub(1)?),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<(), CorruptBlock> {
        match self {
            BlockScan::Forwards(cursor) => return cursor.advance(),
            BlockScan::Backwards(_, left) => *left = left.saturating_sub(1),
        }
        Ok(())
    }

    /// Begins to read another block, after or before a position.
    fn open(&mut self, bytes: &[u8], after: Option<&SortPosition>) -> Result<(), CorruptBlock> {
        match (self, after) {
            (BlockScan::Forwards(cursor), None) => cursor.open(bytes),
            (BlockScan::Forwards(cursor), Some(after)) => cursor.open_after(bytes, after),
            (BlockScan::Backwards(buffer, left), after) => {
                buffer.clear();
                match after {
                    None => buffer.unpack(bytes)?,
                    Some(end) => buffer.unpack_before(bytes, end)?,
                }
                *left = buffer.len();
                Ok(())
            }
        }
    }
}

impl<'a> OrderScan<'a> {
    fn open<P: ReadSortPages>(
        index: &SortIndex<'a, P>,
        order: PartitionOrder,
        after: Option<&SortPosition>,
        is_backwards: bool,
    ) -> Result<OrderScan<'a>, P::Error> {
        let changes = index.level_zero.of_order(order);
        let changes = match (after, is_backwards) {
            (None, _) => changes,
            (Some(after), false) => {
                changes.split_at(changes.partition_point(|change| change.position <= *after)).1
            }
            (Some(after), true) => {
                changes.split_at(changes.partition_point(|change| change.position < *after)).0
            }
        };
        let block = match is_backwards {
            false => BlockScan::Forwards(PositionCursor::default()),
            true => BlockScan::Backwards(PositionBuffer::default(), 0),
        };
        let next = NextPosition::None;
        let mut scan = OrderScan { order, is_backwards, changes, block, fence: None, next };
        let pages = index.pages;
        match (after, is_backwards) {
            (None, false) => scan.load(pages, BlockSeek::First, None)?,
            (None, true) => scan.load(pages, BlockSeek::Last, None)?,
            (Some(end), true) => scan.load(pages, BlockSeek::Before(end), after)?,
            (Some(start), false) => {
                scan.load(pages, BlockSeek::AtOrBefore(start), after)?;
                if scan.fence.is_none() {
                    scan.load(pages, BlockSeek::First, None)?;
                }
            }
        }
        scan.find_next(pages)?;
        Ok(scan)
    }

    /// Returns the position at which the scan is.
    #[inline]
    fn current(&self) -> Option<(&[u8], i64)> {
        match self.next {
            NextPosition::InBlock => self.block.current(),
            NextPosition::InLevelZero => self.next_change().map(|change| change.position.as_pair()),
            NextPosition::None => None,
        }
    }

    /// Moves past the current position.
    #[inline]
    fn advance<P: ReadSortPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        match self.next {
            NextPosition::InBlock => self.block.advance().map_err(P::sort_corruption)?,
            NextPosition::InLevelZero => self.skip_change(),
            NextPosition::None => {}
        }
        if self.changes.is_empty() && self.block.current().is_some() {
            self.next = NextPosition::InBlock;
            return Ok(());
        }
        self.find_next(pages)
    }

    fn find_next<P: ReadSortPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        loop {
            while self.block.current().is_none()
                && let Some(fence) = self.fence.take()
            {
                let seek = match self.is_backwards {
                    true => BlockSeek::Before(&fence),
                    false => BlockSeek::After(&fence),
                };
                self.load(pages, seek, None)?;
            }
            let stored = self.block.current();
            let Some(change) = self.next_change() else {
                self.next = stored.map_or(NextPosition::None, |_| NextPosition::InBlock);
                return Ok(());
            };
            let changed = change.position.as_pair();
            // `Less`: the change comes first.
            let order = match stored {
                None => Ordering::Less,
                Some(stored) if self.is_backwards => stored.cmp(&changed),
                Some(stored) => changed.cmp(&stored),
            };
            match (order, change.is_insert) {
                (Ordering::Greater, _) => self.next = NextPosition::InBlock,
                (Ordering::Less, true) => self.next = NextPosition::InLevelZero,
                (Ordering::Equal, false) => {
                    self.block.advance().map_err(P::sort_corruption)?;
                    self.skip_change();
                    continue;
                }
                // Only in a damaged index: there is nothing to remove, or to insert.
                (Ordering::Less, false) | (Ordering::Equal, true) => {
                    self.skip_change();
                    continue;
                }
            }
            return Ok(());
        }
    }

    fn next_change(&self) -> Option<&'a PositionChange> {
        if self.is_backwards { self.changes.last() } else { self.changes.first() }
    }

    fn skip_change(&mut self) {
        let split = match self.is_backwards {
            true => self.changes.split_last().map(|(_, rest)| rest),
            false => self.changes.split_first().map(|(_, rest)| rest),
        };
        self.changes = split.unwrap_or_default();
    }

    /// Reads another block, if there is one.
    fn load<P: ReadSortPages>(
        &mut self,
        pages: &P,
        seek: BlockSeek<'_>,
        after: Option<&SortPosition>,
    ) -> Result<(), P::Error> {
        let block = &mut self.block;
        self.fence = pages.read_sort_block(self.order, seek, |fence, bytes| {
            block.open(bytes, after).map_err(P::sort_corruption)?;
            Ok(fence.first)
        })?;
        Ok(())
    }
}
