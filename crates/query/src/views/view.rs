//! An open view: it delivers the changes of an answer to its client, as fast as the client reads
//! them.
//!
//! Changes wait in the queue of the view. A view whose queue was full gets the net effect
//! of the missed changes from the store, so a slow client uses no memory. Items are read here, with
//! a reader of the view's own, and without the engine's lock: a large answer delays no other view.

use super::Views;
use super::change_budget::ChangeBudget;
use super::engine::{MissedChanges, OpenedView};
use super::mutex::lock_ignoring_poison;
use super::options::{ViewInterest, ViewOptions};
use super::pending_changes::{PendingChanges, PendingRows, ViewEffect};
use super::subscription_index::QueryId;
use super::view_event::{RemovedItem, ViewEvent, ViewItem};
use super::view_query::ViewQuery;
use super::view_queue::{DeliveryState, ViewQueue};
use crate::error::Error;

use crate::query_log::ResetReason;
use larder_store::{ItemChange, ItemMeta, ItemRow, ItemVersion, Reader, Seq, TimeRange};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of occurrences of an item that are delivered.
const MAX_OCCURRENCES_PER_ITEM: usize = 1000;

/// Changes that are being delivered; `at` is the number of changes already delivered.
enum Delivery {
    Rows { rows: Arc<PendingRows>, at: usize },
    Items { seq: Seq, items: Vec<(ViewEffect, Arc<ItemChange>)>, at: usize },
}

impl Delivery {
    fn seq(&self) -> Seq {
        match self {
            Delivery::Rows { rows, .. } => rows.seq,
            Delivery::Items { seq, .. } => *seq,
        }
    }
}

/// An open view. Dropping it closes it.
pub struct View {
    views: Views,
    view_queue: Arc<ViewQueue>,
    query_id: QueryId,
    view_query: Arc<ViewQuery>,
    interest: ViewInterest,
    items_per_event: usize,
    delivery: Option<Box<Delivery>>,
    /// The reason why the view needs the full answer; kept until the answer has been read.
    pending_reset: Option<ResetReason>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("number", &self.view_queue.number)
            .field("view_query", &self.view_query)
            .finish_non_exhaustive()
    }
}

impl View {
    pub(super) fn new(views: Views, opened: OpenedView, options: ViewOptions) -> View {
        let mut view = View {
            views,
            view_queue: opened.view_queue,
            query_id: opened.query_id,
            view_query: opened.view_query,
            interest: options.interest,
            items_per_event: options.items_per_event.max(1),
            delivery: None,
            pending_reset: None,
        };
        if options.initial {
            view.begin_delivery(opened.rows);
        }
        view
    }

    fn begin_delivery(&mut self, rows: Arc<PendingRows>) {
        self.delivery = Some(Box::new(Delivery::Rows { rows, at: 0 }));
    }

    /// The number of the view in this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.view_queue.number
    }

    /// The query that the view is open on.
    #[must_use]
    pub fn view_query(&self) -> &ViewQuery {
        &self.view_query
    }

    /// Returns the next event, if there is one. It never waits for a writer.
    ///
    /// An item that is removed while the first answer is delivered may be reported as removed
    /// without having been added. An item that changes in the meantime is delivered with its new
    /// bytes, and once more with the change.
    ///
    /// # Errors
    /// The store could not be read: the next call tries again. Or the query takes too many steps
    /// ([`Error::StepLimit`]): the view has ended, and each call fails.
    pub fn try_next(&mut self) -> Result<Option<ViewEvent>, Error> {
        loop {
            if let Some(event) = self.next_event()? {
                return Ok(Some(event));
            }
            if let Some(reason) = self.pending_reset {
                self.restart(reason)?;
                return Ok(Some(ViewEvent::Reset));
            }
            if !self.take_pending()? {
                return Ok(None);
            }
        }
    }

    /// Waits for the next event, for `timeout` at most.
    ///
    /// # Errors
    /// As [`View::try_next`].
    pub fn next_timeout(&mut self, timeout: Option<Duration>) -> Result<Option<ViewEvent>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(Some(event));
            }
            let queue = lock_ignoring_poison(&self.view_queue.queue);
            if queue.is_ready() {
                continue;
            }
            match deadline {
                None => {
                    let woken = self.view_queue.changed.wait(queue);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                }
                Some(deadline) => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                        return Ok(None);
                    };
                    let woken = self.view_queue.changed.wait_timeout(queue, left);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    /// Returns whether [`View::try_next`] has an event.
    #[must_use]
    pub fn has_pending_events(&self) -> bool {
        self.delivery.is_some() || self.pending_reset.is_some() || self.view_queue.has_pending()
    }

    /// Returns whether the next event comes after the query has been answered afresh, which may
    /// take long.
    #[must_use]
    pub fn needs_answer(&self) -> bool {
        let is_reset = || {
            let queue = lock_ignoring_poison(&self.view_queue.queue);
            !queue.is_paused && matches!(queue.state, DeliveryState::Reset(_))
        };
        self.delivery.is_none() && (self.pending_reset.is_some() || is_reset())
    }

    /// Suspends the view: its queue accepts no changes.
    pub fn pause(&self) {
        self.view_queue.pause(self.views.current_seq());
    }

    /// Resumes the view, which gets the net effect of the changes that it missed.
    pub fn resume(&self) {
        self.view_queue.resume();
    }

    /// Begins to deliver the changes in the queue. Returns whether there were any.
    fn take_pending(&mut self) -> Result<bool, Error> {
        let (delivered_seq, state) = {
            let mut queue = lock_ignoring_poison(&self.view_queue.queue);
            if queue.is_paused {
                return Ok(false);
            }
            if let Some(changes) = queue.take_next() {
                self.delivery = Some(Box::new(match changes {
                    PendingChanges::Items(seq, items) => Delivery::Items { seq, items, at: 0 },
                    PendingChanges::Rows(rows) => Delivery::Rows { rows, at: 0 },
                }));
                return Ok(true);
            }
            (queue.delivered_seq, queue.state)
        };
        match state {
            DeliveryState::UpToDate => return Ok(false),
            DeliveryState::TooExpensive => return Err(ChangeBudget::error()),
            DeliveryState::Reset(reason) => self.pending_reset = Some(reason),
            DeliveryState::Lagging => self.catch_up(delivered_seq)?,
        }
        Ok(true)
    }

    /// Begins to deliver the net effect of all batches after `since`.
    fn catch_up(&mut self, since: Seq) -> Result<(), Error> {
        let (id, view_queue) = (self.query_id, &self.view_queue);
        let missed = self
            .views
            .update(|engine, reader| engine.read_missed(reader, id, view_queue, since))?;
        match missed {
            MissedChanges::Rows(rows) => self.begin_delivery(Arc::new(rows)),
            MissedChanges::Reset(reason) => self.pending_reset = Some(reason),
        }
        Ok(())
    }

    /// Begins to deliver the full answer.
    fn restart(&mut self, reason: ResetReason) -> Result<(), Error> {
        let (id, view_queue) = (self.query_id, &self.view_queue);
        let rows = self
            .views
            .answer(id, |engine, answer| engine.finish_reset(view_queue, reason, answer))?;
        self.pending_reset = None;
        self.begin_delivery(Arc::new(rows));
        Ok(())
    }

    /// Returns the next event of the changes that are being delivered. After an error the same
    /// event is tried again.
    fn next_event(&mut self) -> Result<Option<ViewEvent>, Error> {
        let Some(mut delivery) = self.delivery.take() else { return Ok(None) };
        let event = match &mut *delivery {
            Delivery::Items { items, at, .. } => self.next_item_event(items, at),
            Delivery::Rows { rows, at } => self.next_row_event(rows, at),
        };
        match event {
            Ok(None) => Ok(Some(ViewEvent::Complete(delivery.seq()))),
            event => {
                self.delivery = Some(delivery);
                event
            }
        }
    }

    /// Returns the next items with the same effect.
    fn next_item_event(
        &self,
        items: &[(ViewEffect, Arc<ItemChange>)],
        at: &mut usize,
    ) -> Result<Option<ViewEvent>, Error> {
        let rest = items.get(*at..).unwrap_or_default();
        let Some(&(kind, _)) = rest.first() else { return Ok(None) };
        let same_kind = rest.iter().take_while(|(other, _)| *other == kind);
        let length = same_kind.take(self.items_per_event).count();
        let page = rest.get(..length).unwrap_or_default();
        let event = match kind {
            ViewEffect::Removed => {
                let removed = page.iter().filter_map(|(_, change)| change.before.as_ref());
                ViewEvent::Removed(
                    removed.map(|before| RemovedItem::from_meta(&before.meta)).collect(),
                )
            }
            ViewEffect::Added => ViewEvent::Added(self.view_items(page)?),
            ViewEffect::Modified => ViewEvent::Modified(self.view_items(page)?),
        };
        *at += length;
        Ok(Some(event))
    }

    fn view_items(&self, items: &[(ViewEffect, Arc<ItemChange>)]) -> Result<Vec<ViewItem>, Error> {
        let versions = items.iter().filter_map(|(_, change)| change.after.as_ref());
        if !matches!(self.interest, ViewInterest::Fields(_)) && !self.view_query.wants_occurrences()
        {
            return Ok(versions.map(|version| self.view_item(version)).collect());
        }
        let time_range = self.occurrence_range();
        self.views.readers.with_reader(|reader| {
            let items = versions
                .map(|version| self.view_item_with_values(reader, version, time_range.as_ref()));
            Ok(items.collect())
        })
    }

    /// The time range whose occurrences the view delivers.
    fn occurrence_range(&self) -> Option<TimeRange> {
        if !self.view_query.wants_occurrences() {
            return None;
        }
        lock_ignoring_poison(&self.views.engine).occurrence_range(self.query_id)
    }

    /// Returns the parts of an item that need no other data.
    fn view_item(&self, version: &ItemVersion) -> ViewItem {
        let meta = || Some(ItemMeta::clone(&version.meta));
        let bytes = || Some(Arc::clone(&version.bytes));
        let item = ViewItem::from_row(version.meta.row);
        match self.interest {
            ViewInterest::Rows => item,
            ViewInterest::Meta | ViewInterest::Fields(_) => ViewItem { meta: meta(), ..item },
            ViewInterest::Bytes => ViewItem { bytes: bytes(), ..item },
            ViewInterest::MetaAndBytes => ViewItem { meta: meta(), bytes: bytes(), ..item },
        }
    }

    /// Returns an item with the values of its fields and its occurrences, as far as the client
    /// requests them.
    fn view_item_with_values(
        &self,
        reader: &Reader,
        version: &ItemVersion,
        time_range: Option<&TimeRange>,
    ) -> ViewItem {
        let mut item = self.view_item(version);
        if let ViewInterest::Fields(fields) = &self.interest {
            let parsed = reader.items().parse_source(&version.meta, &version.bytes);
            item.values = fields.iter().map(|field| parsed.values(field)).collect();
        }
        if let (Some(time_range), Some(schedule)) = (time_range, &version.schedule) {
            schedule.for_each_in(time_range, &mut |occurrence| {
                item.occurrences.push(occurrence);
                item.occurrences.len() < MAX_OCCURRENCES_PER_ITEM
            });
        }
        item
    }

    /// Returns the next rows with the same effect, with their items; `None` after the last ones.
    fn next_row_event(
        &self,
        rows: &PendingRows,
        at: &mut usize,
    ) -> Result<Option<ViewEvent>, Error> {
        let page = |rows: &[ItemRow], first: usize| {
            rows.iter().skip(first).take(self.items_per_event).copied().collect::<Vec<ItemRow>>()
        };
        let (removed, added) = (rows.removed.len(), rows.added.len());
        let end = removed + added + rows.modified.len();
        while *at < end {
            if *at < removed {
                let page = rows.removed.iter().skip(*at).take(self.items_per_event).cloned();
                let page: Vec<RemovedItem> = page.collect();
                *at += page.len();
                return Ok(Some(ViewEvent::Removed(page)));
            }
            let is_added = *at < removed + added;
            let page = if is_added {
                page(&rows.added, *at - removed)
            } else {
                page(&rows.modified, *at - removed - added)
            };
            let items = self.read_view_items(&page, rows.seq)?;
            *at += page.len();
            if !items.is_empty() {
                let event = if is_added { ViewEvent::Added } else { ViewEvent::Modified };
                return Ok(Some(event(items)));
            }
        }
        Ok(None)
    }

    /// Reads the current items in these rows and skips removed ones. Changes after batch `seq` are
    /// delivered again.
    fn read_view_items(&self, rows: &[ItemRow], seq: Seq) -> Result<Vec<ViewItem>, Error> {
        let wants_occurrences = self.view_query.wants_occurrences();
        if matches!(self.interest, ViewInterest::Rows) && !wants_occurrences {
            return Ok(rows.iter().copied().map(ViewItem::from_row).collect());
        }
        let time_range = self.occurrence_range();
        let mut items = Vec::with_capacity(rows.len());
        self.views.readers.with_reader(|reader| {
            if matches!(self.interest, ViewInterest::Bytes)
                && !wants_occurrences
                && lock_ignoring_poison(&self.views.engine).is_at(reader, seq)?
            {
                reader.items().for_each_source_bytes(rows, &mut |row, bytes| {
                    let bytes = Some(bytes.into());
                    items.push(ViewItem { bytes, ..ViewItem::from_row(row) });
                    true
                })?;
                return Ok(());
            }
            read_versions(reader, rows, time_range.is_some(), &mut |version| {
                items.push(self.view_item_with_values(reader, version, time_range.as_ref()));
            })
        })?;
        Ok(items)
    }
}

/// Calls `visit` with the items in these rows and skips removed ones.
fn read_versions(
    reader: &Reader,
    rows: &[ItemRow],
    has_schedules: bool,
    visit: &mut dyn FnMut(&ItemVersion),
) -> Result<(), Error> {
    let _transaction = reader.begin_read()?;
    let mut schedules = HashMap::new();
    if has_schedules {
        reader.items().for_each_schedule(rows, &mut |row, schedule| {
            schedules.insert(row, schedule.clone());
            true
        })?;
    }
    reader.items().for_each(rows, &mut |meta, bytes| {
        let (bytes, schedule) = (bytes.into(), schedules.remove(&meta.row));
        visit(&ItemVersion { meta, bytes, schedule });
        true
    })?;
    Ok(())
}

impl Drop for View {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.views.engine).close_view(self.query_id, &self.view_queue);
    }
}
