//! The calls of views, and the delivery of view events to their clients.
//!
//! The module is separate from `client_view` because it needs the whole service: the store's views,
//! the cards and the queues of messages.

use super::bus::{MethodCall, replace_nul};
use super::call_error::CallError;
use super::call_threads::{CallJob, Completion};
use super::client_view::{CardInterest, ClientView};
use super::object_path::{BookNumber, view_path};
use super::sent_contacts::SentContacts;
use super::service::{CallAnswer, EdsService};
use larder_query::Error as QueryError;
use larder_query::views::{self, ViewEvent, ViewOptions, ViewQuery};
use larder_store::Seq;
use std::mem;
use std::sync::Arc;
use zbus::Message;

/// The flag by which a client requests the items that match when the view starts.
const NOTIFY_INITIAL_FLAG: u32 = 1;

/// The result of delivering one view event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryProgress {
    /// The view had no event.
    Nothing,
    /// The event was a part of an answer or a batch.
    Partial,
    /// The view is complete up to this batch.
    Complete(Seq),
    /// The view was reset: its answer follows again.
    Reset,
    /// A reader thread reads the answer again.
    Deferred,
}

impl EdsService {
    /// Opens a view and returns its path. The view sends nothing until it is started.
    pub(super) fn add_client_view(
        &mut self,
        book: BookNumber,
        view_query: ViewQuery,
        client: &str,
    ) -> String {
        self.last_view_number += 1;
        let client = client.into();
        let (initial, interest) = (true, CardInterest::FullCard);
        let view = ClientView {
            client,
            book,
            view_query,
            initial,
            interest,
            store_view: None,
            changes: 0,
            has_full_answer: false,
            sent: SentContacts::default(),
        };
        self.client_views.insert(self.last_view_number, view);
        view_path(self.last_view_number)
    }

    /// Handles a call of a view.
    pub(super) fn handle_view_call(
        &mut self,
        number: u64,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
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
            "Start" => return Ok(self.start_view(number, call)),
            "Stop" => {
                view.changes += 1;
                view.stop();
            }
            _ => drop(self.client_views.remove(&number)),
        }
        call.reply(&()).map(CallAnswer::Reply)
    }

    /// Starts a view. Its items follow the reply, as fast as the bus accepts them.
    fn start_view(&mut self, number: u64, call: &MethodCall<'_>) -> CallAnswer {
        let (ready_views, notify) =
            (self.ready_views.clone(), Arc::clone(&self.ready_views.notify));
        let wake = Arc::new(move || {
            ready_views.add(number);
            notify.notify_one();
        });
        let begun = self.client_views.get_mut(&number).map(|view| {
            view.changes += 1;
            let options = ViewOptions {
                client: Arc::clone(&view.client),
                interest: match view.interest {
                    CardInterest::FullCard => views::ViewInterest::MetaAndBytes,
                    CardInterest::UidAndRev | CardInterest::Uids => views::ViewInterest::Meta,
                },
                initial: view.initial,
                wake: Some(wake),
                ..ViewOptions::default()
            };
            (view.view_query.clone(), options, view.changes)
        });
        let changes = begun.as_ref().map(|(.., changes)| *changes);
        self.answer_later(
            call,
            move |views, _| begun.map(|(query, options, _)| views.open_view(query, options)),
            move |service, call, opened| {
                if let Some(opened) = opened {
                    service.run_view(number, changes, opened?);
                }
                call.reply(&())
            },
        )
    }

    /// Begins to deliver the events of a view, unless it was stopped meanwhile.
    fn run_view(&mut self, number: u64, changes: Option<u64>, opened: views::View) {
        let view = self.client_views.get_mut(&number);
        let Some(view) = view.filter(|view| Some(view.changes) == changes) else { return };
        view.stop();
        view.store_view = Some(opened);
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
            self.requeue(number);
        }
    }

    /// Delivers the events of the views of these books up to a batch, and `Complete` even to a view
    /// without an event. Other views wait, and so do views whose first answer is still being
    /// delivered, which ends with a `Complete` of its own: a writer never waits for another
    /// client's answer.
    pub(super) fn deliver_to_books(&mut self, books: &[BookNumber], seq: Seq) {
        let is_concerned = |(number, view): (&u64, &ClientView)| {
            (view.store_view.is_some() && view.has_full_answer && books.contains(&view.book))
                .then_some(*number)
        };
        let concerned: Vec<u64> = self.client_views.iter().filter_map(is_concerned).collect();
        for number in concerned {
            self.ready_views.remove(number);
            self.deliver_until(number, seq);
            self.requeue(number);
        }
    }

    /// Delivers the events of a view up to a batch, or at least `Complete`.
    fn deliver_until(&mut self, number: u64, seq: Seq) {
        let mut silent = true;
        loop {
            match self.deliver_chunk(number) {
                DeliveryProgress::Nothing => break,
                DeliveryProgress::Reset | DeliveryProgress::Deferred => return,
                DeliveryProgress::Complete(at) if at >= seq => return,
                DeliveryProgress::Partial | DeliveryProgress::Complete(_) => silent = false,
            }
        }
        if let Some(view) = self.client_views.get(&number).filter(|_| silent) {
            self.before_reply.extend(view.build_view_signal(number, "Complete", &("", "")));
        }
    }

    /// Delivers the next event of one view that has any, and returns the messages to send.
    pub(super) fn deliver_next(&mut self) -> Vec<Message> {
        if let Some(number) = self.ready_views.take() {
            self.deliver_chunk(number);
            self.requeue(number);
        }
        mem::take(&mut self.before_reply)
    }

    /// Marks a view as ready again if it has more events.
    fn requeue(&self, number: u64) {
        let running = self.client_views.get(&number).and_then(|view| view.store_view.as_ref());
        if running.is_some_and(views::View::has_pending_events) {
            self.ready_views.add(number);
        }
    }

    /// Delivers one event of a view.
    fn deliver_chunk(&mut self, number: u64) -> DeliveryProgress {
        let Some(view) = self.client_views.get_mut(&number) else {
            return DeliveryProgress::Nothing;
        };
        match view.store_view.as_mut() {
            None => DeliveryProgress::Nothing,
            Some(store_view) if store_view.needs_answer() => self.answer_view_again(number),
            Some(store_view) => {
                let event = store_view.try_next();
                self.deliver_event(number, event)
            }
        }
    }

    /// Lets a reader thread answer the query of a view that was reset. The view has no events until
    /// then.
    fn answer_view_again(&mut self, number: u64) -> DeliveryProgress {
        let Some(view) = self.client_views.get_mut(&number) else {
            return DeliveryProgress::Nothing;
        };
        let Some(mut store_view) = view.store_view.take() else {
            return DeliveryProgress::Nothing;
        };
        let (client, changes) = (Arc::clone(&view.client), view.changes);
        let work = Box::new(move || -> Completion<EdsService> {
            let event = store_view.try_next();
            Box::new(move |service| {
                let view = service.client_views.get_mut(&number);
                if let Some(view) = view.filter(|view| view.changes == changes) {
                    view.store_view = Some(store_view);
                    service.deliver_event(number, event);
                    service.requeue(number);
                }
            })
        });
        let on_panic: Completion<EdsService> = Box::new(move |service| {
            service.stop_view(number, &CallError::from_internal_error());
        });
        self.reader_threads.submit(CallJob { client, work, on_panic });
        DeliveryProgress::Deferred
    }

    /// Delivers an event of a view.
    fn deliver_event(
        &mut self,
        number: u64,
        event: Result<Option<ViewEvent>, QueryError>,
    ) -> DeliveryProgress {
        let Some(view) = self.client_views.get_mut(&number) else {
            return DeliveryProgress::Nothing;
        };
        let delivered = match event {
            Ok(Some(event)) => {
                let progress = match event {
                    ViewEvent::Complete(seq) => DeliveryProgress::Complete(seq),
                    ViewEvent::Reset => DeliveryProgress::Reset,
                    _ => DeliveryProgress::Partial,
                };
                view.has_full_answer = (view.has_full_answer
                    || matches!(progress, DeliveryProgress::Complete(_)))
                    && progress != DeliveryProgress::Reset;
                let delivered = view.build_event_signals(
                    number,
                    event,
                    &mut self.cards,
                    &self.reader,
                    &mut self.before_reply,
                );
                delivered.map(|()| progress)
            }
            Ok(None) => return DeliveryProgress::Nothing,
            Err(error) => Err(error.into()),
        };
        delivered.unwrap_or_else(|failure: CallError| {
            self.stop_view(number, &failure);
            DeliveryProgress::Partial
        })
    }

    /// Stops a view that cannot report changes, with the reason, rather than leave it silent.
    fn stop_view(&mut self, number: u64, failure: &CallError) {
        let Some(view) = self.client_views.get_mut(&number) else { return };
        view.stop();
        let body = (failure.name.as_str(), replace_nul(&failure.message));
        self.before_reply.extend(view.build_view_signal(number, "Complete", &body));
    }
}
