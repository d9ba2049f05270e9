//! Views: what a client keeps in sight of a book.
//!
//! A view belongs to the client that opened it, and ends with it. It is silent until it is started;
//! then it gives what there is, and after each change of the book what came, changed and went of
//! what it asks for, and the word that this was all. Its signals go to its client alone.

use super::EdsOptions;
use super::bus::{build_signal, replace_nul};
use super::call_error::CallError;
use super::card::CardRenderer;
use super::interface::ADDRESS_BOOK_VIEW;
use super::object_path::view_path;
use larder_query::views::{self, ViewEvent, ViewQuery, Views, ViewsOptions};
use larder_query::{ItemMeta, Reader};
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use zbus::Message;

/// So many bytes of contacts are in one signal, and no fewer than one contact.
const MAX_SIGNAL_CARD_BYTES: usize = 256 << 10;

/// An open view.
#[derive(Debug)]
pub(super) struct ClientView {
    pub(super) client: Arc<str>,
    /// The row of the book's collection.
    pub(super) collection_row: i64,
    pub(super) view_query: ViewQuery,
    pub(super) initial: bool,
    pub(super) interest: CardInterest,
    /// The view on the store, while it is started.
    pub(super) store_view: Option<views::View>,
    /// The client has a whole answer, and is told what becomes of it.
    pub(super) has_full_answer: bool,
}

/// Views that have something to tell, and what says so to whom waits for it.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyViews {
    views: Arc<Mutex<BTreeSet<u64>>>,
    pub(super) notify: Arc<Notify>,
}

impl ReadyViews {
    pub(super) fn add(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).insert(view);
    }

    /// One of the views, which has to say next time whether there is more.
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

/// What a client wants of each contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardInterest {
    FullCard,
    /// No more than UID and REV.
    UidAndRev,
    /// UIDs, and no card.
    Uids,
}

impl CardInterest {
    /// As the fields that clients name.
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

/// Opens the store for views, which are kept up to date by themselves.
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

    /// The signals that say a piece of news.
    pub(super) fn build_event_signals(
        &self,
        number: u64,
        tell: ViewEvent,
        cards: &mut CardRenderer,
        reader: &Reader,
        out: &mut Vec<Message>,
    ) -> Result<(), CallError> {
        let (member, told) = match tell {
            // The protocol has no word for it. What the client knows comes again, and what is gone
            // it keeps until it asks anew.
            ViewEvent::Reset => return Ok(()),
            ViewEvent::Complete(_) => {
                out.extend(self.build_view_signal(number, "Complete", &("", "")));
                return Ok(());
            }
            ViewEvent::Removed(gone) => {
                let uids: Vec<String> = gone.iter().map(|gone| replace_nul(&gone.uid)).collect();
                out.extend(self.build_view_signal(number, "ObjectsRemoved", &uids));
                return Ok(());
            }
            ViewEvent::Added(told) => ("ObjectsAdded", told),
            ViewEvent::Modified(told) => ("ObjectsModified", told),
        };
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for item in told {
            let Some(head) = item.head else { continue };
            if bytes >= MAX_SIGNAL_CARD_BYTES {
                out.extend(self.build_view_signal(number, member, &mem::take(&mut texts)));
                bytes = 0;
            }
            let before = texts.len();
            self.append_item(
                &mut texts,
                cards,
                reader,
                &head,
                item.bytes.as_deref().unwrap_or_default(),
            )?;
            bytes += texts.iter().skip(before).map(String::len).sum::<usize>();
        }
        out.extend(self.build_view_signal(number, member, &texts));
        Ok(())
    }

    /// What a client is told of a contact: a card and the UID, or the UID.
    fn append_item(
        &self,
        texts: &mut Vec<String>,
        cards: &mut CardRenderer,
        reader: &Reader,
        head: &ItemMeta,
        bytes: &[u8],
    ) -> Result<(), CallError> {
        match self.interest {
            CardInterest::FullCard => texts.push(cards.render(reader, head, bytes)?),
            CardInterest::UidAndRev => texts.push(cards.render_short(reader, head)?),
            CardInterest::Uids => {}
        }
        texts.push(replace_nul(&head.uid));
        Ok(())
    }
}
