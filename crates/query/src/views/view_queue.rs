//! The queues of the views: bounded queues of changes.
//!
//! A [`ViewQueue`] is shared by the engine, which puts changes into it, and one view, which takes
//! them out. A view that is too slow for its queue lags: its changes are dropped, and on its
//! next read it gets the net effect from the store. [`ViewQueues`] owns the queues of all open
//! views, by query. Other modules find and deliver the changes.

use super::mutex::lock_ignoring_poison;
use super::options::{ViewLimits, ViewOptions};
use super::pending_changes::{PendingChanges, PendingRows};
use super::subscription_index::QueryId;
use crate::query_log::ResetReason;
use larder_store::Seq;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

/// The queue of one view.
pub(super) struct ViewQueue {
    pub(super) number: u64,
    pub(super) client: Arc<str>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(super) queue: Mutex<QueueState>,
    pub(super) changed: Condvar,
}

/// The changes in a queue, and the state of its view.
#[derive(Default)]
pub(super) struct QueueState {
    pending: VecDeque<PendingChanges>,
    items: usize,
    bytes: usize,
    pub(super) state: DeliveryState,
    /// The batch up to which the view has everything.
    pub(super) delivered_seq: Seq,
    pub(super) is_paused: bool,
}

/// The extent to which a view has received the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DeliveryState {
    /// All of them, with those in the queue.
    #[default]
    UpToDate,
    /// Changes after `delivered_seq` were dropped, and can be read from the change feed.
    Lagging,
    /// The view needs the full answer.
    Reset(ResetReason),
    /// The view has ended: its query is too expensive to be tested against changes.
    TooExpensive,
}

impl ViewQueue {
    fn new(number: u64, options: &ViewOptions, delivered_seq: Seq) -> ViewQueue {
        ViewQueue {
            number,
            client: Arc::clone(&options.client),
            wake: options.wake.clone(),
            queue: Mutex::new(QueueState { delivered_seq, ..QueueState::default() }),
            changed: Condvar::new(),
        }
    }

    /// Queues changes. If there is no room, drops these changes and all queued ones. `before` is
    /// the last batch before the changes.
    fn enqueue(&self, changes: PendingChanges, before: Seq, limits: ViewLimits) {
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.advance_to(before);
        let accepts = queue.state == DeliveryState::UpToDate && !queue.is_paused;
        let (items, bytes) = (queue.items + changes.len(), queue.bytes + changes.bytes());
        if accepts && items <= limits.items && bytes <= limits.bytes {
            (queue.items, queue.bytes) = (items, bytes);
            queue.pending.push_back(changes);
            return;
        }
        // The change feed has the net effect of batches, but not the changes by the clock.
        let is_in_feed =
            !changes.is_by_clock() && !queue.pending.iter().any(PendingChanges::is_by_clock);
        queue.state = match queue.state {
            DeliveryState::Reset(_) | DeliveryState::TooExpensive => queue.state,
            _ if is_in_feed => DeliveryState::Lagging,
            _ => DeliveryState::Reset(ResetReason::Expired),
        };
        queue.clear();
    }

    /// Notes that the query now means a different time range. A lagging view cannot be caught up
    /// from the change feed and is reset; otherwise a marker is queued after the pending changes,
    /// so that a view which drops them later is reset, too.
    fn mark_query_change(&self) {
        let mut queue = lock_ignoring_poison(&self.queue);
        if queue.state == DeliveryState::Lagging {
            queue.state = DeliveryState::Reset(ResetReason::Expired);
        } else if let Some(seq) = queue.pending.back().map(PendingChanges::seq) {
            let marker = PendingRows { seq, by_clock: true, ..PendingRows::default() };
            queue.pending.push_back(PendingChanges::Rows(Arc::new(marker)));
        }
    }

    /// Drops all changes: the view needs the full answer.
    fn reset(&self, reason: ResetReason) {
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.clear();
        if queue.state != DeliveryState::TooExpensive {
            queue.state = DeliveryState::Reset(reason);
        }
    }

    /// Drops all changes and ends the view.
    fn end(&self) {
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.clear();
        queue.state = DeliveryState::TooExpensive;
    }

    /// Notes that the view has everything up to this batch only.
    pub(super) fn mark_lagging(&self, seq: Seq) {
        self.mark_delivered(DeliveryState::Lagging, seq);
    }

    /// Drops all changes: the view has everything up to this batch.
    pub(super) fn mark_up_to_date(&self, seq: Seq) {
        self.mark_delivered(DeliveryState::UpToDate, seq);
    }

    /// A view that has ended stays so: no change is tested for it any more.
    fn mark_delivered(&self, state: DeliveryState, seq: Seq) {
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.clear();
        queue.delivered_seq = seq;
        if queue.state != DeliveryState::TooExpensive {
            queue.state = state;
        }
    }

    pub(super) fn delivery_state(&self) -> DeliveryState {
        lock_ignoring_poison(&self.queue).state
    }

    /// Suspends the queue. `seq` is the last batch that was read.
    pub(super) fn pause(&self, seq: Seq) {
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.advance_to(seq);
        queue.is_paused = true;
    }

    pub(super) fn resume(&self) {
        lock_ignoring_poison(&self.queue).is_paused = false;
        self.wake();
    }

    /// Wakes the client.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    pub(super) fn has_pending(&self) -> bool {
        lock_ignoring_poison(&self.queue).is_ready()
    }
}

impl QueueState {
    /// Notes that no change up to this batch concerns the view.
    fn advance_to(&mut self, seq: Seq) {
        if self.state == DeliveryState::UpToDate && self.pending.is_empty() && !self.is_paused {
            self.delivered_seq = self.delivered_seq.max(seq);
        }
    }

    fn clear(&mut self) {
        (self.pending, self.items, self.bytes) = (VecDeque::new(), 0, 0);
    }

    /// Takes the next changes, which count as delivered.
    pub(super) fn take_next(&mut self) -> Option<PendingChanges> {
        let changes = self.pending.pop_front()?;
        (self.items, self.bytes) = (self.items - changes.len(), self.bytes - changes.bytes());
        self.delivered_seq = changes.seq();
        Some(changes)
    }

    /// Returns whether the view has something to deliver.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_paused && (self.state != DeliveryState::UpToDate || !self.pending.is_empty())
    }
}

impl fmt::Debug for ViewQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewQueue").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The queues of all open views, by query.
pub(super) struct ViewQueues {
    limits: ViewLimits,
    /// By query id: ids are small and used again.
    by_query: Vec<Vec<Arc<ViewQueue>>>,
    open_count: usize,
    last_number: u64,
    /// The queues that received changes since they were last read.
    to_wake: Vec<Arc<ViewQueue>>,
}

impl ViewQueues {
    pub(super) fn new(limits: ViewLimits) -> ViewQueues {
        ViewQueues {
            limits,
            by_query: Vec::new(),
            open_count: 0,
            last_number: 0,
            to_wake: Vec::new(),
        }
    }

    /// The number of open views.
    pub(super) fn open_count(&self) -> usize {
        self.open_count
    }

    /// The queues of the views that are open on a query.
    pub(super) fn get(&self, query: QueryId) -> &[Arc<ViewQueue>] {
        self.by_query.get(query as usize).map_or(&[], Vec::as_slice)
    }

    /// Makes the queue of a view that has everything up to `seq`.
    pub(super) fn open(
        &mut self,
        query: QueryId,
        options: &ViewOptions,
        seq: Seq,
    ) -> Arc<ViewQueue> {
        self.last_number += 1;
        let view_queue = Arc::new(ViewQueue::new(self.last_number, options, seq));
        let at = query as usize;
        if self.by_query.len() <= at {
            self.by_query.resize_with(at + 1, Vec::new);
        }
        if let Some(view_queues) = self.by_query.get_mut(at) {
            // Most queries have one view.
            if view_queues.is_empty() {
                view_queues.reserve_exact(1);
            }
            view_queues.push(Arc::clone(&view_queue));
            self.open_count += 1;
        }
        view_queue
    }

    pub(super) fn close(&mut self, query: QueryId, view_queue: &Arc<ViewQueue>) {
        let Some(view_queues) = self.by_query.get_mut(query as usize) else { return };
        let Some(at) = view_queues.iter().position(|open| Arc::ptr_eq(open, view_queue)) else {
            return;
        };
        view_queues.remove(at);
        view_queues.shrink_to_fit();
        self.open_count -= 1;
        if self.open_count == 0 {
            self.by_query = Vec::new();
        }
    }

    /// Puts changes into the queues of a query. `before` is the last batch that is not among
    /// them.
    pub(super) fn enqueue(&mut self, query: QueryId, changes: PendingChanges, before: Seq) {
        let Some(view_queues) = self.by_query.get(query as usize) else { return };
        if let Some((last, others)) = view_queues.split_last() {
            others.iter().for_each(|other| other.enqueue(changes.clone(), before, self.limits));
            last.enqueue(changes, before, self.limits);
        }
        self.to_wake.extend_from_slice(view_queues);
    }

    /// Resets the views of a query.
    pub(super) fn reset(&mut self, query: QueryId, reason: ResetReason) {
        let Some(view_queues) = self.by_query.get(query as usize) else { return };
        view_queues.iter().for_each(|view_queue| view_queue.reset(reason));
        self.to_wake.extend_from_slice(view_queues);
    }

    /// Ends the views of a query.
    pub(super) fn end(&mut self, query: QueryId) {
        let Some(view_queues) = self.by_query.get(query as usize) else { return };
        view_queues.iter().for_each(|view_queue| view_queue.end());
        self.to_wake.extend_from_slice(view_queues);
    }

    /// Notes that a query now means a different time range.
    pub(super) fn mark_query_change(&self, query: QueryId) {
        self.get(query).iter().for_each(|view_queue| view_queue.mark_query_change());
    }

    /// Takes the queues whose clients are to be woken.
    pub(super) fn take_to_wake(&mut self) -> Vec<Arc<ViewQueue>> {
        std::mem::take(&mut self.to_wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::ItemRow;

    fn changes(seq: Seq, rows: i64, by_clock: bool) -> PendingChanges {
        let modified = (0..rows).map(ItemRow::from_number).collect();
        PendingChanges::Rows(Arc::new(PendingRows {
            seq,
            by_clock,
            modified,
            ..PendingRows::default()
        }))
    }

    fn view_queues(items: usize) -> (ViewQueues, Arc<ViewQueue>) {
        let limits = ViewLimits { items, ..ViewLimits::default() };
        let mut view_queues = ViewQueues::new(limits);
        let view_queue = view_queues.open(3, &ViewOptions::default(), 1);
        (view_queues, view_queue)
    }

    #[test]
    fn a_full_queue_lags_from_the_last_delivered_batch() {
        let (mut view_queues, view_queue) = view_queues(2);
        view_queues.enqueue(3, changes(5, 1, false), 4);
        assert_eq!(view_queue.queue.lock().unwrap().take_next().unwrap().seq(), 5);
        view_queues.enqueue(3, changes(6, 2, false), 5);
        assert_eq!(view_queue.delivery_state(), DeliveryState::UpToDate);
        view_queues.enqueue(3, changes(7, 1, false), 6);
        assert_eq!(view_queue.delivery_state(), DeliveryState::Lagging);
        let mut queue = view_queue.queue.lock().unwrap();
        assert!(queue.take_next().is_none(), "a lagging view holds no memory");
        assert_eq!(queue.delivered_seq, 5);
    }

    #[test]
    fn dropped_changes_of_the_clock_need_a_reset() {
        let (mut view_queues, view_queue) = view_queues(2);
        view_queues.enqueue(3, changes(1, 1, true), 1);
        view_queues.enqueue(3, changes(2, 2, false), 1);
        assert_eq!(view_queue.delivery_state(), DeliveryState::Reset(ResetReason::Expired));
        view_queue.mark_up_to_date(2);
        view_queue.pause(2);
        view_queues.enqueue(3, changes(3, 1, false), 2);
        assert_eq!(view_queue.delivery_state(), DeliveryState::Lagging);
        view_queues.mark_query_change(3);
        assert_eq!(view_queue.delivery_state(), DeliveryState::Reset(ResetReason::Expired));
        assert!(!view_queue.has_pending(), "the view is paused");
        view_queue.resume();
        assert!(view_queue.has_pending());
    }

    /// A poll may end a view while its answer is read.
    #[test]
    fn a_view_that_has_ended_stays_so() {
        let (mut view_queues, view_queue) = view_queues(2);
        view_queues.end(3);
        view_queue.mark_up_to_date(2);
        view_queue.mark_lagging(3);
        view_queues.reset(3, ResetReason::Expired);
        assert_eq!(view_queue.delivery_state(), DeliveryState::TooExpensive);
    }

    #[test]
    fn only_the_views_of_the_query_are_woken() {
        let (mut view_queues, view_queue) = view_queues(9);
        let other = view_queues.open(0, &ViewOptions::default(), 1);
        assert_eq!(view_queues.open_count(), 2);
        view_queues.enqueue(3, changes(2, 1, false), 1);
        view_queues.enqueue(8, changes(2, 1, false), 1);
        let woken = view_queues.take_to_wake();
        assert!(matches!(&woken[..], [only] if Arc::ptr_eq(only, &view_queue)));
        view_queues.close(3, &view_queue);
        view_queues.close(0, &other);
        assert_eq!(view_queues.open_count(), 0);
        assert!(view_queues.get(3).is_empty());
    }
}
