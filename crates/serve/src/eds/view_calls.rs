//! The calls of views, and the delivery of view events to their clients.
//!
//! It is apart from `client_view` because it needs the whole service: the store's views, the
//! contacts' cards and the queue of messages.

use super::bus::{MethodCall, replace_nul};
use super::call_error::CallError;
use super::client_view::{CardInterest, ClientView};
use super::object_path::view_path;
use super::service::EdsService;
use larder_query::views::{self, ViewEvent, ViewOptions, ViewQuery};
use larder_store::Seq;
use std::mem;
use std::sync::Arc;
use zbus::Message;

/// The flag that what there is at the beginning is wanted.
const NOTIFY_INITIAL_FLAG: u32 = 1;

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
