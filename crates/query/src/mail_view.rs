//! Live views over messages: first the answer to a query, then what is added to it, modified in it
//! and removed from it.
//!
//! A view over messages keeps the query and its position in the batches of `index.db`, and nothing
//! of its answer. When it is asked for events, it compares the states of the messages that changed
//! since its position with their before-images: so a view that was not asked for a while gets the
//! net effect of all batches that it missed, each message at most once. Whether a query about
//! threads or paths has a message may depend on others, so a view keeps the rows of its answer, a
//! bit for each message, and compares them with those of the next one.
//!
//! Separate from `views`, whose queries test the bytes of items, are found by the terms of a change
//! among thousands of other queries, and share their answers. A message has no bytes in the store,
//! its words are never tested again, and a program has few views over mail.

use crate::error::Error;
use crate::mail_query::{MailQuery, MailQueryContext};
use crate::mail_search::{AnswerDifference, ListedMessage, MailSearch, QueryPair};
use crate::saved_searches::SavedSearches;
use larder_store::{
    BLOCK_WORDS, DataDirectory, FormerMailStates, Kind, MailReader, Reader, RemovedMessage, Seq,
    StoreState,
};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::collections::{BTreeSet, VecDeque};
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
    /// The states of these messages changed: flags, folders, labels or files. A message that got
    /// another handle is removed and added instead.
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
    /// The rows of the answer, as bits, if the messages of the query depend on each other.
    rows: Option<Vec<u64>>,
}

/// An open view.
pub struct MailView {
    directory: DataDirectory,
    text: String,
    /// The source or repository that the messages or commits are of.
    collection: Option<String>,
    /// The sources whose messages are left out.
    left_out: Vec<String>,
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
            collection: None,
            left_out: Vec::new(),
            options,
            reader: Some(reader),
            position: None,
            has_answer: false,
            pending: VecDeque::new(),
        };
        view.resolve_query()?;
        Ok(view)
    }

    /// Restricts the view to the messages of a source, or to the commits of a repository.
    #[must_use]
    pub fn in_collection(self, name: &str) -> MailView {
        MailView { collection: Some(name.to_string()), ..self }
    }

    /// Leaves the messages of these sources out, which were registered no more when they were last
    /// compared: the next events are the difference that this makes.
    pub fn leave_out_sources(&mut self, names: Vec<String>) {
        self.left_out = names;
    }

    /// Replaces the saved searches: the next events are the difference that their definitions make.
    ///
    /// # Errors
    /// The query cannot be parsed with them. It keeps its meaning.
    pub fn set_saved_searches(&mut self, searches: Arc<SavedSearches>) -> Result<(), Error> {
        let former = std::mem::replace(&mut self.options.context.saved_searches, searches);
        let resolved = self.resolve_query();
        if resolved.is_err() {
            self.options.context.saved_searches = former;
        }
        resolved.map(drop)
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
        let query = match (&self.collection, context.kind) {
            (None, _) => query,
            (Some(name), Kind::Commit) => {
                MailQuery::And(vec![query, MailQuery::Collection(name.clone())])
            }
            (Some(name), _) => query.in_source(name),
        };
        let query = query.without_labels(&self.options.excluded_labels);
        Ok(query.without_sources(&self.left_out))
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
        let zones = Arc::clone(&self.options.zones);
        self.reader = Reader::open_if_present(&self.directory, zones)?;
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
            && position.query.is_local() == query.is_local();
        let former = match is_comparable {
            true => mail.former_states(position.state.seq)?,
            false => None,
        };
        match (former, &position.rows) {
            (Some(former), Some(rows)) => {
                self.add_row_difference(&mail, &former, rows, position.state.seq, state, query)?;
            }
            (Some(former), None) => {
                self.add_difference(&mail, &former, &position, state, query)?;
            }
            (None, _) => self.answer(&mail, state, query)?,
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
        let rows = (!query.is_local()).then(|| {
            let mut rows = Vec::new();
            hits.iter().for_each(|hit| set_row(&mut rows, hit.row));
            rows
        });
        self.position = Some(ViewPosition { state, query, rows });
        Ok(())
    }

    /// Delivers the difference between the rows of the former answer and those of the present one.
    fn add_row_difference(
        &mut self,
        mail: &MailReader<'_>,
        former: &FormerMailStates,
        former_rows: &[u64],
        after: Seq,
        state: StoreState,
        query: MailQuery,
    ) -> Result<(), Error> {
        let words = mail.words();
        let mut rows = Vec::new();
        MailSearch::open(mail, &words)?
            .for_each_match(&query, &mut |row| set_row(&mut rows, row))?;
        let mut difference = AnswerDifference::default();
        let mut changed = [0; BLOCK_WORDS];
        for place in 0..rows.len().max(former_rows.len()) {
            if place % BLOCK_WORDS == 0 {
                changed =
                    former.changed_rows(u32::try_from(place / BLOCK_WORDS).unwrap_or(u32::MAX));
            }
            let word = |words: &[u64], place: usize| words.get(place).copied().unwrap_or_default();
            let (before, now) = (word(former_rows, place), word(&rows, place));
            let changed = word(&changed, place % BLOCK_WORDS);
            push_rows(&mut difference.added, place, now & !before);
            push_rows(&mut difference.removed, place, before & !now);
            push_rows(&mut difference.modified, place, now & before & changed);
        }
        self.deliver(mail, difference, after, state.seq)?;
        self.position = Some(ViewPosition { state, query, rows: Some(rows) });
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
        self.deliver(mail, difference, position.state.seq, state.seq)?;
        self.position = Some(ViewPosition { state, query, rows: None });
        Ok(())
    }

    /// Appends the events of a difference between the answers after two batches.
    fn deliver(
        &mut self,
        mail: &MailReader<'_>,
        mut difference: AnswerDifference,
        after: Seq,
        until: Seq,
    ) -> Result<(), Error> {
        let mut removed = mail.name_removed(&difference.removed, after)?;
        // A client knows a message by its handle: one with another handle is another message.
        let renamed = mail.find_renamed(&difference.modified, after)?;
        let renamed_rows: BTreeSet<u32> = renamed.iter().map(|one| one.row).collect();
        difference.modified.retain(|row| !renamed_rows.contains(row));
        difference.added.extend(renamed_rows);
        removed.extend(renamed);
        let count = difference.added.len() + difference.modified.len() + removed.len();
        // A message whose row is another one is removed first, then added.
        self.pending.push_back(PendingEvent::Removed(removed));
        self.pending.push_back(PendingEvent::Added(difference.added.into()));
        self.pending.push_back(PendingEvent::Modified(difference.modified.into()));
        if count > 0 {
            self.pending.push_back(PendingEvent::Complete(until));
        } else {
            self.pending.clear();
        }
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

/// Sets the bit of a row.
fn set_row(rows: &mut Vec<u64>, row: u32) {
    let place = row as usize / 64;
    if rows.len() <= place {
        rows.resize(place + 1, 0);
    }
    if let Some(word) = rows.get_mut(place) {
        *word |= 1 << (row % 64);
    }
}

/// Appends the rows of the bits of one word.
fn push_rows(rows: &mut Vec<u32>, place: usize, mut bits: u64) {
    while bits != 0 {
        let row = place * 64 + bits.trailing_zeros() as usize;
        rows.extend(u32::try_from(row));
        bits &= bits - 1;
    }
}
