//! An open view of a client, and the signals of its events.
//!
//! A view belongs to the client that opened it and ends when the client disconnects. A view sends
//! nothing until the client starts it. Then it sends the items of its query, and after each change
//! of the book the items added, modified and removed, followed by `Complete`. From one start on, it
//! reports no contact as added that the client has. Its signals go to its client alone.

use super::EdsOptions;
use super::bus::{build_signal, replace_nul};
use super::call_error::CallError;
use super::card::CardRenderer;
use super::interface::ADDRESS_BOOK_VIEW;
use super::object_path::{BookNumber, view_path};
use super::sent_contacts::SentContacts;
use larder_query::views::{self, ViewEvent, ViewItem, ViewQuery, Views, ViewsOptions};
use larder_query::{ItemMeta, Reader};
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use zbus::Message;

/// A signal is sent once its contacts reach this size; it has at least one contact.
const MAX_SIGNAL_CARD_BYTES: usize = 256 << 10;
/// The most contacts that one signal reports as removed.
const MAX_REMOVED_PER_SIGNAL: usize = 256;

/// An open view.
#[derive(Debug)]
pub(super) struct ClientView {
    pub(super) client: Arc<str>,
    pub(super) book: BookNumber,
    pub(super) view_query: ViewQuery,
    pub(super) initial: bool,
    pub(super) interest: CardInterest,
    /// The view of the query crate, while this one is started.
    pub(super) store_view: Option<views::View>,
    /// The number of times that the view was started or stopped: an answer that was begun before is
    /// dropped.
    pub(super) changes: u64,
    /// Whether the client has the whole answer and now gets changes only.
    pub(super) has_full_answer: bool,
    /// The contacts that the client has from this view since its last start.
    pub(super) sent: SentContacts,
}

/// The views that have events to deliver, and the signal that wakes the service for them.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyViews {
    views: Arc<Mutex<BTreeSet<u64>>>,
    pub(super) notify: Arc<Notify>,
}

impl ReadyViews {
    pub(super) fn add(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).insert(view);
    }

    /// Removes one view and returns its number. The caller adds it again if it has more events.
    pub(super) fn take(&self) -> Option<u64> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    pub(super) fn remove(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).remove(&view);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// The part of each contact that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardInterest {
    FullCard,
    /// A card with UID and REV only.
    UidAndRev,
    /// The UID without a card.
    Uids,
}

impl CardInterest {
    /// Returns the interest that these field names of a client express.
    pub(super) fn from_field_names(fields: &[String]) -> CardInterest {
        let short = |field: &String| {
            ["id", "uid", "rev"].iter().any(|name| field.eq_ignore_ascii_case(name))
        };
        if fields.iter().any(|field| field == "x-evolution-uids-only") {
            CardInterest::Uids
        } else if !fields.is_empty() && fields.iter().all(short) {
            CardInterest::UidAndRev
        } else {
            CardInterest::FullCard
        }
    }
}

/// Opens the store for views, which keep themselves up to date.
pub(super) fn open_store_views(options: &EdsOptions) -> Result<Views, larder_query::Error> {
    let (clock, zones) = (options.clock, Arc::clone(&options.store.zones));
    let clock = Arc::new(move || Instant::from_seconds_clamped(clock().div_euclid(1000)));
    let (log, cache) = (options.log.clone(), options.answer_cache_bytes);
    Views::open(
        &options.dir,
        ViewsOptions { zones, cache_bytes: cache, clock, log, ..ViewsOptions::default() },
    )
}

impl ClientView {
    pub(super) fn build_view_signal<T: serde::Serialize + zbus::DynamicType>(
        &self,
        number: u64,
        member: &'static str,
        body: &T,
    ) -> Option<Message> {
        let path = view_path(number);
        build_signal(&path, ADDRESS_BOOK_VIEW.name, member, Some(&self.client), body)
    }

    /// Ends the events of the view. The next start sends the whole answer.
    pub(super) fn stop(&mut self) {
        self.store_view = None;
        self.sent = SentContacts::default();
    }

    /// Appends the signals that report an event. After a reset they report how the new answer
    /// differs from the contacts that the client has.
    pub(super) fn build_event_signals(
        &mut self,
        number: u64,
        event: ViewEvent,
        cards: &mut CardRenderer,
        reader: &Reader,
        out: &mut Vec<Message>,
    ) -> Result<(), CallError> {
        match event {
            // The protocol has no signal for a reset.
            ViewEvent::Reset => self.sent.begin_reset(),
            ViewEvent::Complete(_) => {
                let missing = self.sent.take_missing();
                let missing: Vec<String> = missing.iter().map(|uid| replace_nul(uid)).collect();
                for uids in missing.chunks(MAX_REMOVED_PER_SIGNAL) {
                    out.extend(self.build_view_signal(number, "ObjectsRemoved", &uids.to_vec()));
                }
                out.extend(self.build_view_signal(number, "Complete", &("", "")));
            }
            ViewEvent::Removed(removed) => {
                removed.iter().for_each(|item| self.sent.remove(&item.uid));
                let uids: Vec<String> = removed.iter().map(|item| replace_nul(&item.uid)).collect();
                out.extend(self.build_view_signal(number, "ObjectsRemoved", &uids));
            }
            ViewEvent::Added(items) => {
                let (known, new): (Vec<ViewItem>, Vec<ViewItem>) =
                    items.into_iter().partition(|item| self.mark_sent(item));
                for (member, items) in [("ObjectsAdded", new), ("ObjectsModified", known)] {
                    self.build_item_signals((number, member), items, cards, reader, out)?;
                }
            }
            ViewEvent::Modified(items) => {
                for item in &items {
                    self.mark_sent(item);
                }
                self.build_item_signals((number, "ObjectsModified"), items, cards, reader, out)?;
            }
        }
        Ok(())
    }

    /// Notes that the client gets an item. Returns whether it had the item before.
    fn mark_sent(&mut self, item: &ViewItem) -> bool {
        item.meta.as_ref().is_some_and(|meta| self.sent.insert(&meta.uid))
    }

    /// Appends the signals that report items.
    fn build_item_signals(
        &self,
        (number, member): (u64, &'static str),
        items: Vec<ViewItem>,
        cards: &mut CardRenderer,
        reader: &Reader,
        out: &mut Vec<Message>,
    ) -> Result<(), CallError> {
        if items.is_empty() {
            return Ok(());
        }
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for item in items {
            let Some(meta) = item.meta else { continue };
            if bytes >= MAX_SIGNAL_CARD_BYTES {
                out.extend(self.build_view_signal(number, member, &mem::take(&mut texts)));
                bytes = 0;
            }
            let before = texts.len();
            self.append_item(
                &mut texts,
                cards,
                reader,
                &meta,
                item.bytes.as_deref().unwrap_or_default(),
            )?;
            bytes += texts.iter().skip(before).map(String::len).sum::<usize>();
        }
        out.extend(self.build_view_signal(number, member, &texts));
        Ok(())
    }

    /// Appends the texts that report a contact: its card and UID, or its UID alone.
    fn append_item(
        &self,
        texts: &mut Vec<String>,
        cards: &mut CardRenderer,
        reader: &Reader,
        meta: &ItemMeta,
        bytes: &[u8],
    ) -> Result<(), CallError> {
        match self.interest {
            CardInterest::FullCard => texts.push(cards.render(reader, meta, bytes)?),
            CardInterest::UidAndRev => texts.push(cards.render_short(reader, meta)?),
            CardInterest::Uids => {}
        }
        texts.push(replace_nul(&meta.uid));
        Ok(())
    }
}
