//! The calls that a thread answers: queries and changes.
//!
//! The thread of the bus parses a call and lets a thread do the part that may take long; afterwards
//! it publishes the changes up to then and sends the reply. The later calls of the client wait.
//! Separate from `service`, which dispatches the calls, and from `call_threads`, which knows
//! nothing of calls.

use super::bus::MethodCall;
use super::call_error::CallError;
use super::call_threads::{CallJob, Completion};
use super::service::{CallAnswer, EdsService};
use larder_query::views::Views;
use larder_store::{AppliedBatch, BatchChange, Operation, Store};
use zbus::Message;

impl EdsService {
    /// Answers a call by a reader thread: `read` runs there, and then `finish` here, after the
    /// changes up to the state that was read are published.
    pub(super) fn answer_later<T: Send + 'static>(
        &self,
        call: &MethodCall<'_>,
        read: impl FnOnce(&Views, &MethodCall<'_>) -> T + Send + 'static,
        finish: impl FnOnce(&mut EdsService, &MethodCall<'_>, T) -> Result<Message, CallError>
        + Send
        + 'static,
    ) -> CallAnswer {
        let (message, views) = (call.message(), self.store_views.clone());
        let work = move || read(&views, &MethodCall::new(&message));
        self.reader_threads.submit(answer_job(call, work, finish));
        CallAnswer::Deferred
    }

    /// Answers a call by the thread that writes: `write` runs there, and then `finish` here, after
    /// the changes are published.
    pub(super) fn write_later<T: Send + 'static>(
        &self,
        call: &MethodCall<'_>,
        write: impl FnOnce(&mut Store) -> Result<T, CallError> + Send + 'static,
        finish: impl FnOnce(
            &mut EdsService,
            &MethodCall<'_>,
            Result<T, CallError>,
        ) -> Result<Message, CallError>
        + Send
        + 'static,
    ) -> CallAnswer {
        let writer = self.store_writer.clone();
        self.writer_thread.submit(answer_job(call, move || writer.write(write), finish));
        CallAnswer::Deferred
    }

    /// Answers a call by one batch of changes, as [`EdsService::write_later`] does.
    pub(super) fn apply_later(
        &self,
        call: &MethodCall<'_>,
        verb: &str,
        detail: &str,
        changes: Vec<BatchChange>,
        finish: impl FnOnce(
            &mut EdsService,
            &MethodCall<'_>,
            Result<AppliedBatch, CallError>,
        ) -> Result<Message, CallError>
        + Send
        + 'static,
    ) -> CallAnswer {
        let operation = Operation::new(verb, detail, (self.options.clock)());
        let apply =
            move |store: &mut Store| Ok(store.apply(&mut operation.all_or_nothing(), changes)?);
        self.write_later(call, apply, finish)
    }

    /// Sends the answer to a call that a thread has done, and handles the client's later calls.
    fn finish_call(
        &mut self,
        call: &MethodCall<'_>,
        finish: impl FnOnce(&mut EdsService) -> Result<Message, CallError>,
    ) {
        if self.clients.contains(call.sender()) {
            let published = self.publish_changes();
            let reply = published.and_then(|()| finish(self));
            self.send_reply(call, reply);
        }
        self.handle_later_calls(call.sender());
    }

    /// Handles the calls that waited for the answer to an earlier one.
    fn handle_later_calls(&mut self, client: &str) {
        let mut later = self.later_calls.remove(client).unwrap_or_default();
        while let Some(message) = later.pop_front() {
            self.handle_call(&MethodCall::new(&message));
            if let Some(waiting) = self.later_calls.get_mut(client) {
                waiting.extend(later);
                return;
            }
        }
    }
}

/// Returns the job that answers a call: `work` runs on a thread, then `finish` on the thread of the
/// bus.
fn answer_job<T: Send + 'static>(
    call: &MethodCall<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    finish: impl FnOnce(&mut EdsService, &MethodCall<'_>, T) -> Result<Message, CallError>
    + Send
    + 'static,
) -> CallJob<EdsService> {
    let (message, failed) = (call.message(), call.message());
    CallJob {
        client: call.sender().into(),
        work: Box::new(move || -> Completion<EdsService> {
            let result = work();
            Box::new(move |service| {
                let call = MethodCall::new(&message);
                service.finish_call(&call, |service| finish(service, &call, result));
            })
        }),
        on_panic: Box::new(move |service| {
            let failure = CallError::from_internal_error();
            service.finish_call(&MethodCall::new(&failed), |_| Err(failure));
        }),
    }
}
