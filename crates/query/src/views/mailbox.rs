//! Where the news of a view wait: a bounded queue, and what became of the view where there was no
//! room.
//!
//! It is what the hub and the view have of each other: the one puts news here, the other takes them
//! (`view`). What the news are is found in `hub`.

use super::ViewLimits;
use super::pending_changes::{PendingChanges, PendingRows};
use super::state::lock_ignoring_poison;
use super::view::ViewOptions;
use crate::query_log::ResetReason;
use larder_store::Seq;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

/// What of a view others see: where its news are put.
pub(super) struct Mailbox {
    pub(super) number: u64,
    pub(super) client: Arc<str>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(super) queue: Mutex<MailboxQueue>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct MailboxQueue {
    pub(super) pending: VecDeque<PendingChanges>,
    pub(super) items: usize,
    pub(super) bytes: usize,
    pub(super) state: DeliveryState,
    /// Told up to this batch.
    pub(super) delivered_seq: Seq,
    pub(super) paused: bool,
}

/// How a view stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DeliveryState {
    #[default]
    UpToDate,
    /// It has missed news since what it was told last.
    Lagging,
    /// It has to be told everything anew.
    Reset(ResetReason),
}

impl Mailbox {
    pub(super) fn new(number: u64, options: &ViewOptions, told: Seq) -> Mailbox {
        Mailbox {
            number,
            client: Arc::clone(&options.client),
            wake: options.wake.clone(),
            queue: Mutex::new(MailboxQueue { delivered_seq: told, ..MailboxQueue::default() }),
            changed: Condvar::new(),
        }
    }

    /// Puts news into the queue, or forgets them where there is no room. `before`: the last batch
    /// that is not among them.
    pub(super) fn enqueue(&self, news: PendingChanges, before: Seq, limits: ViewLimits) {
        let mut waiting = lock_ignoring_poison(&self.queue);
        waiting.advance_to(before);
        let keeps = waiting.state == DeliveryState::UpToDate && !waiting.paused;
        let (items, bytes) = (waiting.items + news.len(), waiting.bytes + news.bytes());
        if keeps && items <= limits.items && bytes <= limits.bytes {
            (waiting.items, waiting.bytes) = (items, bytes);
            waiting.pending.push_back(news);
            return;
        }
        // What comes to the same is read from the store; but what the clock has changed is not in
        // its log.
        let of_clock =
            |news: &PendingChanges| matches!(news, PendingChanges::Rows(rows) if rows.by_clock);
        let by_log = !of_clock(&news) && !waiting.pending.iter().any(of_clock);
        waiting.state = match waiting.state {
            DeliveryState::Reset(why) => DeliveryState::Reset(why),
            _ if by_log => DeliveryState::Lagging,
            _ => DeliveryState::Reset(ResetReason::Expired),
        };
        waiting.clear();
    }

    /// The question says something else from now on. Who has missed news of what it said before
    /// cannot be told by the log; nor could who has them waiting and is going to miss them, so the
    /// turn waits behind them.
    pub(super) fn mark_query_change(&self) {
        let mut waiting = lock_ignoring_poison(&self.queue);
        if waiting.state == DeliveryState::Lagging {
            waiting.state = DeliveryState::Reset(ResetReason::Expired);
        } else if let Some(seq) = waiting.pending.back().map(PendingChanges::seq) {
            let turn = PendingRows { seq, by_clock: true, ..PendingRows::default() };
            waiting.pending.push_back(PendingChanges::Rows(Arc::new(turn)));
        }
    }

    /// All has to be told anew.
    pub(super) fn reset(&self, why: ResetReason) {
        let mut waiting = lock_ignoring_poison(&self.queue);
        waiting.clear();
        waiting.state = DeliveryState::Reset(why);
    }

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

impl MailboxQueue {
    /// Nothing that it has to be told happened up to this batch.
    pub(super) fn advance_to(&mut self, seq: Seq) {
        if self.state == DeliveryState::UpToDate && self.pending.is_empty() && !self.paused {
            self.delivered_seq = self.delivered_seq.max(seq);
        }
    }

    pub(super) fn clear(&mut self) {
        (self.pending, self.items, self.bytes) = (VecDeque::new(), 0, 0);
    }

    /// The next news, which are told from now on.
    pub(super) fn take_next(&mut self) -> Option<PendingChanges> {
        let news = self.pending.pop_front()?;
        (self.items, self.bytes) = (self.items - news.len(), self.bytes - news.bytes());
        self.delivered_seq = news.seq();
        Some(news)
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.paused && (self.state != DeliveryState::UpToDate || !self.pending.is_empty())
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("number", &self.number).finish_non_exhaustive()
    }
}
