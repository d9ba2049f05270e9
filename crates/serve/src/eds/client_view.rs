//! Views: what a client keeps in sight of a book.
//!
//! A view belongs to the client that opened it, and ends with it. It is silent until it is started;
//! then it gives what there is, and after each change of the book what came, changed and went of
//! what it asks for, and the word that this was all. Its signals go to its client alone.

use super::EdsOptions;
use super::bus::{MethodCall, build_signal, replace_nul};
use super::call_error::CallError;
use super::card::CardRenderer;
use super::interface::ADDRESS_BOOK_VIEW;
use super::service::{EdsService, ROOT_PATH};
use larder_query::views::{self, ViewEvent, ViewOptions, ViewQuery, Views, ViewsOptions};
use larder_query::{ItemMeta, Reader};
use larder_store::Seq;
use larder_time::civil::Instant;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use zbus::Message;

/// The flag that what there is at the beginning is wanted.
const NOTIFY_INITIAL_FLAG: u32 = 1;
/// So many bytes of contacts are in one signal, and no fewer than one contact.
const MAX_SIGNAL_CARD_BYTES: usize = 256 << 10;

/// An open view.
#[derive(Debug)]
pub(super) struct ClientView {
    pub(super) client: Arc<str>,
    /// The row of the book's collection.
    collection_row: i64,
    view_query: ViewQuery,
    initial: bool,
    interest: CardInterest,
    /// The view on the store, while it is started.
    store_view: Option<views::View>,
    /// The client has a whole answer, and is told what becomes of it.
    has_full_answer: bool,
}

/// What a view was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryProgress {
    /// There was nothing.
    Nothing,
    /// A part of the news.
    Partial,
    /// That this was all, up to a batch.
    Complete(Seq),
    /// That its answer comes anew.
    Reset,
}

/// Views that have something to tell, and what says so to whom waits for it.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadyViews {
    views: Arc<Mutex<BTreeSet<u64>>>,
    pub(super) notify: Arc<Notify>,
}

impl ReadyViews {
    fn add(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).insert(view);
    }

    /// One of the views, which has to say next time whether there is more.
    fn take(&self) -> Option<u64> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    fn remove(&self, view: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).remove(&view);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// What a client wants of each contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardInterest {
    FullCard,
    /// No more than UID and REV.
    UidAndRev,
    /// UIDs, and no card.
    Uids,
}

impl CardInterest {
    /// As the fields that clients name.
    fn from_field_names(fields: &[String]) -> CardInterest {
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

/// The path of a view.
pub(super) fn view_path(number: u64) -> String {
    format!("{ROOT_PATH}/AddressBookView/{}/{number}", std::process::id())
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

impl EdsService {
    /// Opens a view, and gives its path. It is silent until it is started.
    pub(super) fn add_client_view(
        &mut self,
        row: i64,
        question: ViewQuery,
        client: &str,
    ) -> String {
        self.last_view_number += 1;
        let client = client.into();
        let (initial, interest) = (true, CardInterest::FullCard);
        let view = ClientView {
            client,
            collection_row: row,
            view_query: question,
            initial,
            interest,
            store_view: None,
            has_full_answer: false,
        };
        self.client_views.insert(self.last_view_number, view);
        view_path(self.last_view_number)
    }

    /// What a view is asked.
    pub(super) fn handle_view_call(
        &mut self,
        number: u64,
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        let Some(view) = self.client_views.get_mut(&number) else {
            return Err(CallError::from_bus_error("UnknownObject", call.path()));
        };
        if *view.client != *call.sender() {
            return Err(CallError::from_bus_error(
                "AccessDenied",
                "another client opened this view",
            ));
        }
        match call.member() {
            "SetFlags" => view.initial = call.arguments::<u32>()? & NOTIFY_INITIAL_FLAG != 0,
            "SetFieldsOfInterest" => {
                view.interest = CardInterest::from_field_names(&call.arguments::<Vec<String>>()?);
            }
            "Start" => self.start_view(number)?,
            "Stop" => view.store_view = None,
            _ => drop(self.client_views.remove(&number)),
        }
        call.reply(&())
    }

    /// What there is follows behind the reply, as fast as it is taken.
    fn start_view(&mut self, number: u64) -> Result<(), CallError> {
        let Some(view) = self.client_views.get_mut(&number) else { return Ok(()) };
        let (news, bell) = (self.ready_views.clone(), Arc::clone(&self.ready_views.notify));
        let wake = Arc::new(move || {
            news.add(number);
            bell.notify_one();
        });
        let options = ViewOptions {
            client: Arc::clone(&view.client),
            interest: match view.interest {
                CardInterest::FullCard => views::ViewInterest::HeadsAndBytes,
                CardInterest::UidAndRev | CardInterest::Uids => views::ViewInterest::Heads,
            },
            initial: view.initial,
            wake: Some(wake),
            ..ViewOptions::default()
        };
        view.store_view = Some(self.store_views.open_view(view.view_query.clone(), options)?);
        view.has_full_answer = !view.initial;
        if view.initial {
            self.after_reply.extend(view.build_view_signal(
                number,
                "Progress",
                &(u32::MAX, "Loading…"),
            ));
            self.ready_views.add(number);
        } else {
            self.after_reply.extend(view.build_view_signal(number, "Complete", &("", "")));
        }
        Ok(())
    }

    /// Tells what views of these books have to tell up to a batch, and that this was all, even
    /// where it was nothing. Other views wait, and so do those that are still being told their
    /// answer, which comes with its own word that it is whole: nobody who writes waits for an
    /// answer of somebody else.
    pub(super) fn deliver_to_books(&mut self, books: &[i64], seq: Seq) {
        let of_books = |(number, view): (&u64, &ClientView)| {
            (view.store_view.is_some()
                && view.has_full_answer
                && books.contains(&view.collection_row))
            .then_some(*number)
        };
        let concerned: Vec<u64> = self.client_views.iter().filter_map(of_books).collect();
        for number in concerned {
            self.ready_views.remove(number);
            self.deliver_until(number, seq);
            self.requeue(number);
        }
    }

    /// Tells what a view has to tell up to a batch, at least that this was all.
    fn deliver_until(&mut self, number: u64, seq: Seq) {
        let mut silent = true;
        loop {
            match self.deliver_chunk(number) {
                DeliveryProgress::Nothing => break,
                DeliveryProgress::Reset => return,
                DeliveryProgress::Complete(at) if at >= seq => return,
                DeliveryProgress::Partial | DeliveryProgress::Complete(_) => silent = false,
            }
        }
        if let Some(view) = self.client_views.get(&number).filter(|_| silent) {
            self.before_reply.extend(view.build_view_signal(number, "Complete", &("", "")));
        }
    }

    /// Tells the next piece of what one view has to tell.
    pub(super) fn deliver_next(&mut self) -> Vec<Message> {
        if let Some(number) = self.ready_views.take() {
            self.deliver_chunk(number);
            self.requeue(number);
        }
        mem::take(&mut self.before_reply)
    }

    /// A view that has more to tell is to be asked again.
    fn requeue(&self, number: u64) {
        let running = self.client_views.get(&number).and_then(|view| view.store_view.as_ref());
        if running.is_some_and(views::View::has_pending_events) {
            self.ready_views.add(number);
        }
    }

    /// Tells a piece of what a view has to tell.
    fn deliver_chunk(&mut self, number: u64) -> DeliveryProgress {
        let Some(view) = self.client_views.get_mut(&number) else {
            return DeliveryProgress::Nothing;
        };
        let told = match view.store_view.as_mut().map(views::View::try_next) {
            Some(Ok(Some(tell))) => {
                let piece = match tell {
                    ViewEvent::Complete(seq) => DeliveryProgress::Complete(seq),
                    ViewEvent::Reset => DeliveryProgress::Reset,
                    _ => DeliveryProgress::Partial,
                };
                view.has_full_answer = (view.has_full_answer
                    || matches!(piece, DeliveryProgress::Complete(_)))
                    && piece != DeliveryProgress::Reset;
                let told = view.build_event_signals(
                    number,
                    tell,
                    &mut self.cards,
                    &self.reader,
                    &mut self.before_reply,
                );
                told.map(|()| piece)
            }
            Some(Ok(None)) | None => return DeliveryProgress::Nothing,
            Some(Err(error)) => Err(error.into()),
        };
        // A view that cannot be told what happens is better stopped, with the reason, than silent.
        told.unwrap_or_else(|failure: CallError| {
            view.store_view = None;
            let body = (failure.name.as_str(), replace_nul(&failure.message));
            self.before_reply.extend(view.build_view_signal(number, "Complete", &body));
            DeliveryProgress::Partial
        })
    }
}

impl ClientView {
    fn build_view_signal<T: serde::Serialize + zbus::DynamicType>(
        &self,
        number: u64,
        member: &'static str,
        body: &T,
    ) -> Option<Message> {
        let path = view_path(number);
        build_signal(&path, ADDRESS_BOOK_VIEW.name, member, Some(&self.client), body)
    }

    /// The signals that say a piece of news.
    fn build_event_signals(
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
