//! An open view: what its client is told, in order, and no faster than it asks.
//!
//! News of a batch lie in a bounded queue until they are asked for. Where the client does not keep
//! up they are forgotten, and when it asks again it is told what all that it missed comes to, from
//! the store: so a client that sleeps holds no memory. What the news are is found in `hub`.

use super::Views;
use super::answer_cache::OpenedView;
use super::mailbox::{DeliveryState, Mailbox};
use super::pending_changes::{PendingChanges, PendingRows, ViewChangeKind};
use super::state::{ViewsState, lock_ignoring_poison};
use super::view_query::ViewQuery;
use crate::error::Error;
use crate::item::ParsedSource;
use crate::query_log::ResetReason;
use larder_format::field::Field;
use larder_store::{Handle, ItemChange, ItemMeta, ItemOccurrence, ItemVersion, Seq};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// So many items are told at once, unless the client wants fewer.
const DEFAULT_ITEMS_PER_EVENT: usize = 64;
/// Of one item so many occurrences are told, and no more.
const MAX_OCCURRENCES_PER_ITEM: usize = 1000;

/// What a client is told of an item.
#[derive(Debug, Clone, Default)]
pub enum ViewInterest {
    /// Its row alone.
    Rows,
    /// What is known of it without its bytes.
    #[default]
    Heads,
    /// And the values of these fields.
    Fields(Arc<[&'static Field]>),
    /// Its row and its bytes.
    Bytes,
    /// All.
    HeadsAndBytes,
}

/// How a view is opened.
#[derive(Clone)]
pub struct ViewOptions {
    /// Who asks, for the log.
    pub client: Arc<str>,
    /// What is told.
    pub interest: ViewInterest,
    /// What answers the question at the beginning is told, and not only what changes.
    pub initial: bool,
    /// So many items are told at once.
    pub items_per_event: usize,
    /// Called when there is something to be told after there was nothing. It must not ask anything
    /// of the views.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for ViewOptions {
    fn default() -> ViewOptions {
        let (client, interest) = ("".into(), ViewInterest::default());
        ViewOptions {
            client,
            interest,
            initial: true,
            items_per_event: DEFAULT_ITEMS_PER_EVENT,
            wake: None,
        }
    }
}

impl fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewOptions")
            .field("client", &self.client)
            .field("interest", &self.interest)
            .field("initial", &self.initial)
            .field("chunk", &self.items_per_event)
            .finish_non_exhaustive()
    }
}

/// A piece of news, in order.
#[derive(Debug, Clone)]
pub enum ViewEvent {
    /// Forget everything: the answer follows anew.
    Reset,
    /// These answer the question from now on.
    Added(Vec<ViewItem>),
    /// These still do, and are not what they were.
    Modified(Vec<ViewItem>),
    /// These do no longer, or are gone.
    Removed(Vec<RemovedItem>),
    /// The answer, or the news up to this batch, is whole.
    Complete(Seq),
}

/// What is told of an item.
#[derive(Debug, Clone, Default)]
pub struct ViewItem {
    /// Its row: what it is known by as long as the store is the same.
    pub row: i64,
    /// What else is known of it.
    pub head: Option<ItemMeta>,
    /// The values of the fields of interest, in their order.
    pub values: Vec<Vec<String>>,
    /// Its bytes.
    pub bytes: Option<Arc<[u8]>>,
    /// Its occurrences in the window, where they are wanted, in order.
    pub occurrences: Vec<ItemOccurrence>,
}

/// What is told of an item that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedItem {
    /// The row that it had.
    pub row: i64,
    /// Its short name.
    pub handle: Handle,
    /// Its UID.
    pub uid: String,
    /// Which occurrence of a series it stood for.
    pub recurrence: String,
}

impl RemovedItem {
    pub(super) fn from_head(head: &ItemMeta) -> RemovedItem {
        let (uid, recurrence) = (head.uid.clone(), head.recurrence_id.clone());
        RemovedItem { row: head.row, handle: head.handle, uid, recurrence }
    }
}

/// What is being told.
enum Delivery {
    Rows { rows: Arc<PendingRows>, at: usize },
    Items { seq: Seq, items: Vec<(ViewChangeKind, Arc<ItemChange>)>, at: usize },
}

impl Delivery {
    fn seq(&self) -> Seq {
        match self {
            Delivery::Rows { rows, .. } => rows.seq,
            Delivery::Items { seq, .. } => *seq,
        }
    }
}

/// An open view. It ends when it is dropped, and leaves nothing behind.
pub struct View {
    pub(super) views: Views,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) query_id: u32,
    pub(super) view_query: Arc<ViewQuery>,
    pub(super) interest: ViewInterest,
    pub(super) items_per_event: usize,
    delivery: Option<Box<Delivery>>,
    /// A question that could not be answered is asked again.
    pending_reset: Option<ResetReason>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("number", &self.mailbox.number)
            .field("question", &self.view_query)
            .finish_non_exhaustive()
    }
}

impl View {
    pub(super) fn new(views: Views, opened: &OpenedView, options: ViewOptions) -> View {
        let (mailbox, view_query) = (Arc::clone(&opened.mailbox), Arc::clone(&opened.question));
        let (query_id, interest, items_per_event) =
            (opened.query_id, options.interest, options.items_per_event.max(1));
        View {
            views,
            mailbox,
            query_id,
            view_query,
            interest,
            items_per_event,
            delivery: None,
            pending_reset: None,
        }
    }

    /// What it is to tell first.
    pub(super) fn begin_delivery(&mut self, rows: Arc<PendingRows>) {
        self.delivery = Some(Box::new(Delivery::Rows { rows, at: 0 }));
    }

    /// Its number in this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.mailbox.number
    }

    /// The question that it is open on.
    #[must_use]
    pub fn view_query(&self) -> &ViewQuery {
        &self.view_query
    }

    /// What there is to be told now, if there is anything. Never waits for a writer.
    ///
    /// An item that went while an answer was on its way may be told as removed without having been
    /// told at all; one that changed meanwhile is told as it is, and then what became of it.
    ///
    /// # Errors
    /// What the store reports; asked again it goes on from there.
    pub fn try_next(&mut self) -> Result<Option<ViewEvent>, Error> {
        loop {
            if let Some(tell) = self.next_chunk()? {
                return Ok(Some(tell));
            }
            if let Some(why) = self.pending_reset {
                self.restart(why)?;
                return Ok(Some(ViewEvent::Reset));
            }
            if !self.take_pending()? {
                return Ok(None);
            }
        }
    }

    /// What there is to be told, waiting for it, at most for so long.
    ///
    /// # Errors
    /// As [`View::tell`].
    pub fn next_timeout(&mut self, at_most: Option<Duration>) -> Result<Option<ViewEvent>, Error> {
        let end = at_most.and_then(|time| Instant::now().checked_add(time));
        loop {
            if let Some(tell) = self.try_next()? {
                return Ok(Some(tell));
            }
            let waiting = lock_ignoring_poison(&self.mailbox.queue);
            if waiting.is_ready() {
                continue;
            }
            match end {
                None => {
                    drop(
                        self.mailbox.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                    );
                }
                Some(end) => {
                    let Some(left) = end.checked_duration_since(Instant::now()) else {
                        return Ok(None);
                    };
                    let woken = self.mailbox.changed.wait_timeout(waiting, left);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    /// Is there anything to be told?
    #[must_use]
    pub fn has_pending_events(&self) -> bool {
        self.delivery.is_some() || self.pending_reset.is_some() || self.mailbox.has_pending()
    }

    /// Nothing is gathered for it from now on.
    pub fn pause(&self) {
        let seen = self.views.current_seq();
        let mut waiting = lock_ignoring_poison(&self.mailbox.queue);
        waiting.advance_to(seen);
        waiting.paused = true;
    }

    /// What it has missed is told, all in all, and then what happens.
    pub fn resume(&self) {
        lock_ignoring_poison(&self.mailbox.queue).paused = false;
        self.mailbox.wake();
    }

    /// Takes what waits. False: nothing does.
    fn take_pending(&mut self) -> Result<bool, Error> {
        let (from, state) = {
            let mut waiting = lock_ignoring_poison(&self.mailbox.queue);
            if waiting.paused {
                return Ok(false);
            }
            if let Some(news) = waiting.take_next() {
                self.delivery = Some(Box::new(match news {
                    PendingChanges::Items(seq, items) => Delivery::Items { seq, items, at: 0 },
                    PendingChanges::Rows(rows) => Delivery::Rows { rows, at: 0 },
                }));
                return Ok(true);
            }
            (waiting.delivered_seq, waiting.state)
        };
        match state {
            DeliveryState::UpToDate => Ok(false),
            DeliveryState::Reset(why) => {
                self.pending_reset = Some(why);
                Ok(true)
            }
            DeliveryState::Lagging => {
                self.catch_up(from)?;
                Ok(true)
            }
        }
    }

    /// Reads what all that was missed comes to.
    fn catch_up(&mut self, from: Seq) -> Result<(), Error> {
        let views = self.views.clone();
        let mut state = views.lock_state();
        state.poll()?;
        let missed = state.changes_since(self.query_id, from)?;
        // The looks at the store may have found that more was lost than the log tells.
        let standing = lock_ignoring_poison(&self.mailbox.queue).state;
        match (standing, missed) {
            (DeliveryState::Reset(why), _) => self.pending_reset = Some(why),
            (_, None) => self.pending_reset = Some(ResetReason::Expired),
            (_, Some(rows)) => {
                self.mark_up_to_date(rows.seq);
                self.begin_delivery(Arc::new(rows));
            }
        }
        Ok(())
    }

    /// Nothing was missed up to this batch.
    fn mark_up_to_date(&self, seq: Seq) {
        let mut waiting = lock_ignoring_poison(&self.mailbox.queue);
        waiting.clear();
        (waiting.state, waiting.delivered_seq) = (DeliveryState::UpToDate, seq);
    }

    fn restart(&mut self, why: ResetReason) -> Result<(), Error> {
        let views = self.views.clone();
        let mut state = views.lock_state();
        state.poll()?;
        let rows = state.full_answer(self.query_id, &self.mailbox, why)?;
        self.mark_up_to_date(rows.seq);
        self.pending_reset = None;
        self.begin_delivery(rows);
        Ok(())
    }

    /// The next piece of what is being told. After an error it is told again.
    fn next_chunk(&mut self) -> Result<Option<ViewEvent>, Error> {
        let Some(mut telling) = self.delivery.take() else { return Ok(None) };
        let tell = match &mut *telling {
            Delivery::Items { items, at, .. } => self.next_item_event(items, at),
            Delivery::Rows { rows, at } => self.next_row_event(rows, at),
        };
        match tell {
            Ok(None) => Ok(Some(ViewEvent::Complete(telling.seq()))),
            tell => {
                self.delivery = Some(telling);
                tell
            }
        }
    }

    /// The next of these that became the same thing.
    fn next_item_event(
        &self,
        items: &[(ViewChangeKind, Arc<ItemChange>)],
        at: &mut usize,
    ) -> Result<Option<ViewEvent>, Error> {
        let rest = items.get(*at..).unwrap_or_default();
        let Some(&(what, _)) = rest.first() else { return Ok(None) };
        let length =
            rest.iter().take(self.items_per_event).take_while(|(of, _)| *of == what).count();
        let piece = rest.get(..length).unwrap_or_default();
        let tell = match what {
            ViewChangeKind::Removed => {
                let gone = piece.iter().filter_map(|(_, changed)| changed.before.as_ref());
                ViewEvent::Removed(gone.map(|was| RemovedItem::from_head(&was.meta)).collect())
            }
            ViewChangeKind::Added => ViewEvent::Added(self.view_items(piece)?),
            ViewChangeKind::Modified => ViewEvent::Modified(self.view_items(piece)?),
        };
        *at += length;
        Ok(Some(tell))
    }

    fn view_items(
        &self,
        items: &[(ViewChangeKind, Arc<ItemChange>)],
    ) -> Result<Vec<ViewItem>, Error> {
        let is = items.iter().filter_map(|(_, changed)| changed.after.as_ref());
        if matches!(self.interest, ViewInterest::Fields(_)) || self.view_query.wants_occurrences() {
            let state = self.views.lock_state();
            return Ok(is.map(|is| self.full_view_item(&state, is)).collect());
        }
        Ok(is.map(|is| self.view_item(&is.meta, &is.bytes)).collect())
    }

    /// What is told of an item without a look at anything else.
    fn view_item(&self, head: &ItemMeta, bytes: &Arc<[u8]>) -> ViewItem {
        let told = ViewItem { row: head.row, ..ViewItem::default() };
        match self.interest {
            ViewInterest::Rows => told,
            ViewInterest::Heads | ViewInterest::Fields(_) => {
                ViewItem { head: Some(head.clone()), ..told }
            }
            ViewInterest::Bytes => ViewItem { bytes: Some(Arc::clone(bytes)), ..told },
            ViewInterest::HeadsAndBytes => {
                ViewItem { head: Some(head.clone()), bytes: Some(Arc::clone(bytes)), ..told }
            }
        }
    }

    fn full_view_item(&self, state: &ViewsState, is: &ItemVersion) -> ViewItem {
        let mut told = self.view_item(&is.meta, &is.bytes);
        if let ViewInterest::Fields(fields) = &self.interest {
            let parsed = ParsedSource::parse(state.reader(), &is.meta, &is.bytes);
            told.values = fields.iter().map(|field| parsed.values(field)).collect();
        }
        if let (Some(window), Some(times)) = (state.occurrence_range(self.query_id), &is.schedule) {
            times.for_each_in(window, &mut |occurring| {
                told.occurrences.push(occurring);
                told.occurrences.len() < MAX_OCCURRENCES_PER_ITEM
            });
        }
        told
    }

    /// The next rows of an answer, with what is wanted of their items. `None`: there are no more.
    fn next_row_event(
        &self,
        rows: &PendingRows,
        at: &mut usize,
    ) -> Result<Option<ViewEvent>, Error> {
        let page = |of: &[i64], first: usize| {
            of.iter().skip(first).take(self.items_per_event).copied().collect::<Vec<i64>>()
        };
        let (removed, added) = (rows.removed.len(), rows.added.len());
        let end = removed + added + rows.modified.len();
        while *at < end {
            if *at < removed {
                let gone = rows.removed.iter().skip(*at).take(self.items_per_event).cloned();
                let gone: Vec<RemovedItem> = gone.collect();
                *at += gone.len();
                return Ok(Some(ViewEvent::Removed(gone)));
            }
            let is_added = *at < removed + added;
            let page = match is_added {
                true => page(&rows.added, *at - removed),
                false => page(&rows.modified, *at - removed - added),
            };
            let told = self.read_view_items(&page, rows.seq)?;
            *at += page.len();
            if !told.is_empty() {
                return Ok(Some(if is_added {
                    ViewEvent::Added(told)
                } else {
                    ViewEvent::Modified(told)
                }));
            }
        }
        Ok(None)
    }

    /// Reads items as they are, without those that are gone. What has changed since this batch is
    /// told again.
    fn read_view_items(&self, rows: &[i64], seq: Seq) -> Result<Vec<ViewItem>, Error> {
        let occurrences = self.view_query.wants_occurrences();
        if matches!(self.interest, ViewInterest::Rows) && !occurrences {
            return Ok(rows
                .iter()
                .map(|row| ViewItem { row: *row, ..ViewItem::default() })
                .collect());
        }
        let state = self.views.lock_state();
        let mut told = Vec::with_capacity(rows.len());
        if matches!(self.interest, ViewInterest::Bytes) && !occurrences && state.is_at(seq)? {
            state.reader().for_each_source(rows, &mut |row, bytes| {
                told.push(ViewItem { row, bytes: Some(bytes.into()), ..ViewItem::default() });
                true
            })?;
            return Ok(told);
        }
        state.read_rows(self.query_id, rows, &mut |then| {
            told.push(self.full_view_item(&state, then));
        })?;
        Ok(told)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.views.close(self.query_id, &self.mailbox);
    }
}
