//! Reading the sort index: positions from anywhere on, in either direction; and the rank of a
//! position, without reading the positions before it.
//!
//! A scan merges the chunks of level 1, which it reads one by one, with the changes of level 0, and
//! the partitions with each other. A rank is a sum over fences, and a search in one chunk.

use crate::chunk::MalformedChunk;
use crate::level_zero::LevelZero;
use crate::sort_chunk::PositionBuffer;
use crate::sort_pages::{ChunkSeek, PartitionOrder, PositionChange, ReadSortPages, SortPosition};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;

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
    /// one sequence, to `each`, until that returns false.
    pub fn scan(
        &self,
        orders: &[PartitionOrder],
        after: Option<&SortPosition>,
        is_backwards: bool,
        each: &mut PositionVisitor<'_, P::Error>,
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
            if !each(key, row)? {
                return Ok(());
            }
            scan.advance(self.pages)?;
        }
    }

    /// Returns the number of items before a position in these orders, and the number of all items.
    pub fn rank(
        &self,
        orders: &[PartitionOrder],
        position: &SortPosition,
    ) -> Result<(u64, u64), P::Error> {
        let (mut before, mut total) = (0, 0);
        for &order in orders {
            let counts = self.pages.count_by_fences(order, position)?;
            let seek = ChunkSeek::AtOrBefore(position);
            let behind = self.pages.read_sort_chunk(order, seek, |fence, bytes| {
                let mut chunk = PositionBuffer::default();
                chunk.unpack(bytes).map_err(P::sort_corruption)?;
                let before = chunk.partition_point(|at| at < (&position.key, position.row));
                Ok(fence.count as i64 - before as i64)
            })?;
            let (net_before, net_total) = self.level_zero.count_net(order, position);
            before += counts.reached as i64 - behind.unwrap_or_default() + net_before;
            total += counts.total as i64 + net_total;
        }
        Ok((before.max(0).unsigned_abs(), total.max(0).unsigned_abs()))
    }

    /// Passes each position of each order to `each`. Fails if a fence is not that of its chunk, a
    /// position is out of place, or level 0 changes what is not there.
    pub fn verify(&self, each: &mut dyn FnMut(PartitionOrder, &[u8], i64)) -> Result<(), P::Error> {
        let malformed = || P::sort_corruption(MalformedChunk);
        let mut orders: BTreeSet<PartitionOrder> = self.pages.sort_orders()?.into_iter().collect();
        orders.extend(self.level_zero.orders());
        let mut chunks = 0;
        for order in orders {
            let mut changes = self.level_zero.of_order(order);
            let (mut fence, mut last) = (None, None);
            loop {
                let mut buffer = PositionBuffer::default();
                let seek = fence.as_ref().map_or(ChunkSeek::First, ChunkSeek::After);
                let read = self.pages.read_sort_chunk(order, seek, |fence, bytes| {
                    buffer.unpack(bytes).map_err(P::sort_corruption)?;
                    Ok(fence)
                })?;
                let Some(read) = read else { break };
                chunks += 1;
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
                    while let Some((change, behind)) = changes.split_first()
                        && change.position < *position
                    {
                        if !change.is_insert {
                            return Err(malformed());
                        }
                        each(order, &change.position.key, change.position.row);
                        changes = behind;
                    }
                    match changes.split_first().filter(|(change, _)| change.position == *position) {
                        None => each(order, key, row),
                        Some((change, behind)) if !change.is_insert => changes = behind,
                        Some(_) => return Err(malformed()),
                    }
                }
                fence = Some(read.first);
            }
            for change in changes {
                if !change.is_insert {
                    return Err(malformed());
                }
                each(order, &change.position.key, change.position.row);
            }
        }
        // A chunk without a fence holds what nobody finds.
        if chunks == self.pages.sort_chunk_count()? { Ok(()) } else { Err(malformed()) }
    }
}

/// A scan of one order: its next position is in the chunk or among the changes of level 0.
struct OrderScan<'a> {
    order: PartitionOrder,
    is_backwards: bool,
    /// The changes that are not passed.
    changes: &'a [PositionChange],
    chunk: PositionBuffer,
    /// The positions of the chunk that are not passed.
    rest: Range<usize>,
    /// The fence of the chunk.
    fence: Option<SortPosition>,
    /// No other chunk follows.
    is_last: bool,
    next: NextPosition,
}

#[derive(Clone, Copy)]
enum NextPosition {
    InChunk(usize),
    InLevelZero,
    None,
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
        let mut scan = OrderScan {
            order,
            is_backwards,
            changes,
            chunk: PositionBuffer::default(),
            rest: 0..0,
            fence: None,
            is_last: false,
            next: NextPosition::None,
        };
        let pages = index.pages;
        match (after, is_backwards) {
            (None, false) => scan.load(pages, ChunkSeek::First)?,
            (None, true) => scan.load(pages, ChunkSeek::Last)?,
            (Some(after), true) => {
                scan.load(pages, ChunkSeek::Before(after))?;
                let is_before = |at: (&[u8], i64)| at < (&after.key, after.row);
                scan.rest.end = scan.chunk.partition_point(is_before);
            }
            (Some(after), false) => {
                scan.load(pages, ChunkSeek::AtOrBefore(after))?;
                if scan.is_last {
                    scan.is_last = false;
                    scan.load(pages, ChunkSeek::First)?;
                }
                let is_passed = |at: (&[u8], i64)| at <= (&after.key, after.row);
                scan.rest.start = scan.chunk.partition_point(is_passed);
            }
        }
        scan.find_next(pages)?;
        Ok(scan)
    }

    /// Returns the position at which the scan is.
    fn current(&self) -> Option<(&[u8], i64)> {
        match self.next {
            NextPosition::InChunk(index) => self.chunk.get(index),
            NextPosition::InLevelZero => self
                .next_change()
                .map(|change| (change.position.key.as_slice(), change.position.row)),
            NextPosition::None => None,
        }
    }

    /// Moves past the current position.
    fn advance<P: ReadSortPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        match self.next {
            NextPosition::InChunk(_) => self.skip_in_chunk(),
            NextPosition::InLevelZero => self.skip_change(),
            NextPosition::None => {}
        }
        self.find_next(pages)
    }

    fn find_next<P: ReadSortPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        loop {
            while self.rest.is_empty() && !self.is_last {
                let fence = self.fence.take();
                match &fence {
                    Some(fence) if self.is_backwards => {
                        self.load(pages, ChunkSeek::Before(fence))?
                    }
                    Some(fence) => self.load(pages, ChunkSeek::After(fence))?,
                    None => self.is_last = true,
                }
            }
            let index =
                if self.is_backwards { self.rest.end.wrapping_sub(1) } else { self.rest.start };
            let stored = if self.rest.is_empty() { None } else { self.chunk.get(index) };
            let Some(change) = self.next_change() else {
                self.next = stored.map_or(NextPosition::None, |_| NextPosition::InChunk(index));
                return Ok(());
            };
            let position = (change.position.key.as_slice(), change.position.row);
            // `Less`: the change comes first.
            let order = match stored {
                None => Ordering::Less,
                Some(stored) if self.is_backwards => stored.cmp(&position),
                Some(stored) => position.cmp(&stored),
            };
            match (order, change.is_insert) {
                (Ordering::Greater, _) => self.next = NextPosition::InChunk(index),
                (Ordering::Less, true) => self.next = NextPosition::InLevelZero,
                (Ordering::Equal, false) => {
                    self.skip_in_chunk();
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

    fn skip_in_chunk(&mut self) {
        match self.is_backwards {
            true => self.rest.end -= 1,
            false => self.rest.start += 1,
        }
    }

    /// Reads another chunk, if there is one.
    fn load<P: ReadSortPages>(&mut self, pages: &P, seek: ChunkSeek<'_>) -> Result<(), P::Error> {
        let chunk = &mut self.chunk;
        chunk.clear();
        self.fence = pages.read_sort_chunk(self.order, seek, |fence, bytes| {
            chunk.unpack(bytes).map_err(P::sort_corruption)?;
            Ok(fence.first)
        })?;
        self.rest = 0..self.chunk.len();
        self.is_last = self.fence.is_none();
        Ok(())
    }
}
