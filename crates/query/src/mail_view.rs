//! Live views over messages: first the answer to a query, then what is added to it, modified in it
//! and removed from it.
//!
//! A view over messages keeps the query and its position in the batches of `index.db`, and nothing
//! of its answer. When it is asked for events, it compares the states of the messages that changed
//! since its position with their before-images: so a view that was not asked for a while gets the
//! net effect of all batches that it missed, each message at most once.
//!
//! Separate from `views`, whose queries test the bytes of items, are found by the terms of a change
//! among thousands of other queries, and share their answers. A message has no bytes in the store,
//! its words are never tested again, and a program has few views over mail.

use crate::error::Error;
use crate::mail_query::{MailQuery, MailQueryContext};
use crate::mail_search::{ListedMessage, MailSearch, QueryPair};
use larder_store::{
    DataDirectory, FormerMailStates, MailReader, Reader, RemovedMessage, Seq, StoreState,
};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The most messages of an event.
const MAX_EVENT_MESSAGES: usize = 500;
/// A query that names the present moment is resolved by the minute.
const MINUTE_SECONDS: i64 = 60;

/// The settings of a view.
#[derive(Clone)]
pub struct MailViewOptions {
    /// The time zone and the saved searches of the user. The current time in it is not used: the
    /// clock is.
    pub context: MailQueryContext,
    /// The labels that hide messages, unless the query names them.
    pub excluded_labels: Vec<String>,
    /// The time zones of the system.
    pub zones: Arc<ZoneDatabase>,
    /// The clock, which relative dates are resolved by.
    pub clock: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl fmt::Debug for MailViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailViewOptions").field("context", &self.context).finish_non_exhaustive()
    }
}

/// A change of the answer.
#[derive(Debug, Clone)]
pub enum MailViewEvent {
    /// All earlier events are void: the whole answer follows.
    Reset,
    /// These messages are in the answer now.
    Added(Vec<ListedMessage>),
    /// The states of these messages changed: flags, folders, labels or files.
    Modified(Vec<ListedMessage>),
    /// These messages are not in the answer any more. A message that no longer exists may be named
    /// although it was never in the answer.
    Removed(Vec<RemovedMessage>),
    /// The events up to here make the answer after this batch.
    Complete(Seq),
}

/// Rows that are not delivered yet.
#[derive(Debug)]
enum PendingEvent {
    Reset,
    Added(VecDeque<u32>),
    Modified(VecDeque<u32>),
    Removed(Vec<RemovedMessage>),
    Complete(Seq),
}

/// The state of the store that a view has seen, and the meaning that its query had.
#[derive(Debug)]
struct ViewPosition {
    state: StoreState,
    query: MailQuery,
}

/// An open view.
pub struct MailView {
    directory: DataDirectory,
    text: String,
    options: MailViewOptions,
    /// `None`: the store was deleted.
    reader: Option<Reader>,
    /// `None`: the whole answer is to be delivered.
    position: Option<ViewPosition>,
    /// Whether messages were delivered, which a reset makes void.
    has_answer: bool,
    pending: VecDeque<PendingEvent>,
}

impl fmt::Debug for MailView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailView").field("text", &self.text).finish_non_exhaustive()
    }
}

impl MailView {
    /// Opens a view over the mail of a store. Nothing is read before the first event.
    ///
    /// # Errors
    /// The query has a syntax error, or the store cannot be opened.
    pub fn open(
        directory: impl Into<DataDirectory>,
        text: &str,
        options: MailViewOptions,
    ) -> Result<MailView, Error> {
        let directory = directory.into();
        let reader = Reader::open_with_zones(&directory, Arc::clone(&options.zones))?;
        let view = MailView {
            directory,
            text: text.to_string(),
            options,
            reader: Some(reader),
            position: None,
            has_answer: false,
            pending: VecDeque::new(),
        };
        view.resolve_query()?;
        Ok(view)
    }

    /// Returns the next event; `None`: nothing has changed since the last one.
    ///
    /// # Errors
    /// The store cannot be read, or the query has a test that is not supported.
    pub fn try_next(&mut self) -> Result<Option<MailViewEvent>, Error> {
        self.reopen_replaced_store()?;
        loop {
            if let Some(event) = self.next_pending()? {
                let is_void = matches!(event, MailViewEvent::Reset | MailViewEvent::Complete(_));
                self.has_answer |= !is_void;
                return Ok(Some(event));
            }
            let Some(reader) = self.reader.take() else { return Ok(None) };
            let polled = self.poll(&reader);
            self.reader = Some(reader);
            if !polled? {
                return Ok(None);
            }
        }
    }

    /// Parses the query at the present minute.
    fn resolve_query(&self) -> Result<MailQuery, Error> {
        let now = (self.options.clock)().seconds();
        let minute = now.div_euclid(MINUTE_SECONDS) * MINUTE_SECONDS;
        let context = MailQueryContext {
            now: Instant::from_seconds_clamped(minute),
            ..self.options.context.clone()
        };
        let query = MailQuery::parse(&self.text, &context)?;
        Ok(query.without_labels(&self.options.excluded_labels))
    }

    /// Opens the store again if it was deleted or replaced: a rebuilt store has other rows.
    fn reopen_replaced_store(&mut self) -> Result<(), Error> {
        if self.reader.as_ref().is_some_and(|reader| !reader.is_replaced()) {
            return Ok(());
        }
        if self.reader.take().is_some() {
            self.pending.clear();
            self.position = None;
            if self.has_answer {
                self.pending.extend([PendingEvent::Reset, PendingEvent::Complete(0)]);
                self.has_answer = false;
            }
        }
        if self.directory.has_store() {
            let zones = Arc::clone(&self.options.zones);
            self.reader = match Reader::open_with_zones(&self.directory, zones) {
                // The store is being made.
                Err(larder_store::Error::NoStore { .. }) => None,
                reader => Some(reader?),
            };
        }
        Ok(())
    }

    /// Reads the changes since the position. Returns whether there are events.
    fn poll(&mut self, reader: &Reader) -> Result<bool, Error> {
        let mail = reader.mail()?;
        let state = reader.changes().stamp()?;
        let query = match (self.resolve_query(), &self.position) {
            // A query that was parsed before keeps its meaning.
            (Err(_), Some(position)) => position.query.clone(),
            (query, _) => query?,
        };
        let Some(position) = self.position.take() else {
            return self.answer(&mail, state, query).map(|()| true);
        };
        if position.state == state && position.query == query {
            self.position = Some(position);
            return Ok(false);
        }
        let is_comparable = position.state.epoch_and_zones == state.epoch_and_zones
            && position.state.collection_seq == state.collection_seq
            && position.state.seq <= state.seq
            && query.is_local();
        let former = match is_comparable {
            true => mail.former_states(position.state.seq)?,
            false => None,
        };
        match former {
            Some(former) => self.add_difference(&mail, &former, &position, state, query)?,
            None => self.answer(&mail, state, query)?,
        }
        Ok(!self.pending.is_empty())
    }

    /// Delivers the whole answer.
    fn answer(
        &mut self,
        mail: &MailReader<'_>,
        state: StoreState,
        query: MailQuery,
    ) -> Result<(), Error> {
        let words = mail.words();
        let hits = MailSearch::open(mail, &words)?.find_newest(&query, usize::MAX)?;
        if self.has_answer {
            self.pending.push_back(PendingEvent::Reset);
        }
        self.pending.push_back(PendingEvent::Added(hits.iter().map(|hit| hit.row).collect()));
        self.pending.push_back(PendingEvent::Complete(state.seq));
        self.position = Some(ViewPosition { state, query });
        Ok(())
    }

    fn add_difference(
        &mut self,
        mail: &MailReader<'_>,
        former: &FormerMailStates,
        position: &ViewPosition,
        state: StoreState,
        query: MailQuery,
    ) -> Result<(), Error> {
        let words = mail.words();
        let queries = QueryPair { former: &position.query, present: &query };
        let difference = MailSearch::open(mail, &words)?.diff_answers(&queries, former)?;
        let removed = mail.name_removed(&difference.removed, position.state.seq)?;
        let count = difference.added.len() + difference.modified.len() + removed.len();
        // A message whose row is another one is removed first, then added.
        self.pending.push_back(PendingEvent::Removed(removed));
        self.pending.push_back(PendingEvent::Added(difference.added.into()));
        self.pending.push_back(PendingEvent::Modified(difference.modified.into()));
        if count > 0 {
            self.pending.push_back(PendingEvent::Complete(state.seq));
        } else {
            self.pending.clear();
        }
        self.position = Some(ViewPosition { state, query });
        Ok(())
    }

    /// Returns the next event of those that are pending. Messages are read now: one that was
    /// removed since is left out, and the next events say that it was removed.
    fn next_pending(&mut self) -> Result<Option<MailViewEvent>, Error> {
        while let Some(event) = self.pending.front_mut() {
            let (rows, is_added) = match event {
                PendingEvent::Added(rows) => (rows, true),
                PendingEvent::Modified(rows) => (rows, false),
                PendingEvent::Removed(removed) => {
                    let removed = std::mem::take(removed);
                    self.pending.pop_front();
                    if removed.is_empty() {
                        continue;
                    }
                    return Ok(Some(MailViewEvent::Removed(removed)));
                }
                PendingEvent::Reset => {
                    self.pending.pop_front();
                    return Ok(Some(MailViewEvent::Reset));
                }
                PendingEvent::Complete(seq) => {
                    let seq = *seq;
                    self.pending.pop_front();
                    return Ok(Some(MailViewEvent::Complete(seq)));
                }
            };
            if rows.is_empty() {
                self.pending.pop_front();
                continue;
            }
            let Some(reader) = &self.reader else { return Ok(None) };
            let page = rows.len().min(MAX_EVENT_MESSAGES);
            let mail = reader.mail()?;
            let words = mail.words();
            let listed = rows.iter().copied().take(page);
            let messages = MailSearch::open(&mail, &words)?.read_listed(listed, |_| true)?;
            // After an error the same messages are read again.
            rows.drain(..page);
            if !messages.is_empty() {
                return Ok(Some(match is_added {
                    true => MailViewEvent::Added(messages),
                    false => MailViewEvent::Modified(messages),
                }));
            }
        }
        Ok(None)
    }
}
