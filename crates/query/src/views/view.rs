//! An open view: what its client is told, in order, and no faster than it asks.
//!
//! News of a batch lie in a bounded queue until they are asked for. Where the client does not keep up they are forgotten, and
//! when it asks again it is told what all that it missed comes to, from the store: so a client that sleeps holds no memory. What the
//! news are is found in `hub`.

use super::Views;
use super::answers::Opened;
use super::hub::{State, lock};
use super::news::{News, Rows, What};
use super::question::Question;
use super::slot::{Slot, Standing};
use crate::error::Error;
use crate::item::Parsed;
use crate::log::Anew;
use larder_format::field::Field;
use larder_store::{Changed, Handle, ItemHead, Occurring, Seq, Then};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// So many items are told at once, unless the client wants fewer.
const CHUNK: usize = 64;
/// Of one item so many occurrences are told, and no more.
const OCCURRENCES: usize = 1000;

/// What a client is told of an item.
#[derive(Debug, Clone, Default)]
pub enum Interest {
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
    Whole,
}

/// How a view is opened.
#[derive(Clone)]
pub struct ViewOptions {
    /// Who asks, for the log.
    pub client: Arc<str>,
    /// What is told.
    pub interest: Interest,
    /// What answers the question at the beginning is told, and not only what changes.
    pub initial: bool,
    /// So many items are told at once.
    pub chunk: usize,
    /// Called when there is something to be told after there was nothing. It must not ask anything of the views.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for ViewOptions {
    fn default() -> ViewOptions {
        let (client, interest) = ("".into(), Interest::default());
        ViewOptions { client, interest, initial: true, chunk: CHUNK, wake: None }
    }
}

impl fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewOptions")
            .field("client", &self.client)
            .field("interest", &self.interest)
            .field("initial", &self.initial)
            .field("chunk", &self.chunk)
            .finish_non_exhaustive()
    }
}

/// A piece of news, in order.
#[derive(Debug, Clone)]
pub enum Tell {
    /// Forget everything: the answer follows anew.
    Fresh,
    /// These answer the question from now on.
    Added(Vec<Told>),
    /// These still do, and are not what they were.
    Modified(Vec<Told>),
    /// These do no longer, or are gone.
    Removed(Vec<Gone>),
    /// The answer, or the news up to this batch, is whole.
    Complete(Seq),
}

/// What is told of an item.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Its row: what it is known by as long as the store is the same.
    pub row: i64,
    /// What else is known of it.
    pub head: Option<ItemHead>,
    /// The values of the fields of interest, in their order.
    pub values: Vec<Vec<String>>,
    /// Its bytes.
    pub bytes: Option<Arc<[u8]>>,
    /// Its occurrences in the window, where they are wanted, in order.
    pub occurrences: Vec<Occurring>,
}

/// What is told of an item that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The row that it had.
    pub row: i64,
    /// Its short name.
    pub handle: Handle,
    /// Its UID.
    pub uid: String,
    /// Which occurrence of a series it stood for.
    pub recurrence: String,
}

impl Gone {
    pub(super) fn of(head: &ItemHead) -> Gone {
        let (uid, recurrence) = (head.uid.clone(), head.recurrence.clone());
        Gone { row: head.row, handle: head.handle, uid, recurrence }
    }
}

/// What is being told.
enum Telling {
    Rows { rows: Arc<Rows>, at: usize },
    Items { seq: Seq, items: Vec<(What, Arc<Changed>)>, at: usize },
}

impl Telling {
    fn seq(&self) -> Seq {
        match self {
            Telling::Rows { rows, .. } => rows.seq,
            Telling::Items { seq, .. } => *seq,
        }
    }
}

/// An open view. It ends when it is dropped, and leaves nothing behind.
pub struct View {
    pub(super) views: Views,
    pub(super) slot: Arc<Slot>,
    pub(super) asked: u32,
    pub(super) question: Arc<Question>,
    pub(super) interest: Interest,
    pub(super) chunk: usize,
    telling: Option<Box<Telling>>,
    /// A question that could not be answered is asked again.
    owed: Option<Anew>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("number", &self.slot.number)
            .field("question", &self.question)
            .finish_non_exhaustive()
    }
}

impl View {
    pub(super) fn new(views: Views, opened: &Opened, options: ViewOptions) -> View {
        let (slot, question) = (Arc::clone(&opened.slot), Arc::clone(&opened.question));
        let (asked, interest, chunk) = (opened.number, options.interest, options.chunk.max(1));
        View { views, slot, asked, question, interest, chunk, telling: None, owed: None }
    }

    /// What it is to tell first.
    pub(super) fn begin(&mut self, rows: Arc<Rows>) {
        self.telling = Some(Box::new(Telling::Rows { rows, at: 0 }));
    }

    /// Its number in this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.slot.number
    }

    /// The question that it is open on.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// What there is to be told now, if there is anything. Never waits for a writer.
    ///
    /// An item that went while an answer was on its way may be told as removed without having been told at all; one that changed
    /// meanwhile is told as it is, and then what became of it.
    ///
    /// # Errors
    /// What the store reports; asked again it goes on from there.
    pub fn tell(&mut self) -> Result<Option<Tell>, Error> {
        loop {
            if let Some(tell) = self.go_on()? {
                return Ok(Some(tell));
            }
            if let Some(why) = self.owed {
                self.begin_anew(why)?;
                return Ok(Some(Tell::Fresh));
            }
            if !self.take()? {
                return Ok(None);
            }
        }
    }

    /// What there is to be told, waiting for it, at most for so long.
    ///
    /// # Errors
    /// As [`View::tell`].
    pub fn wait(&mut self, at_most: Option<Duration>) -> Result<Option<Tell>, Error> {
        let end = at_most.and_then(|time| Instant::now().checked_add(time));
        loop {
            if let Some(tell) = self.tell()? {
                return Ok(Some(tell));
            }
            let waiting = lock(&self.slot.waiting);
            if waiting.is_ready() {
                continue;
            }
            match end {
                None => drop(self.slot.heard.wait(waiting).unwrap_or_else(PoisonError::into_inner)),
                Some(end) => {
                    let Some(left) = end.checked_duration_since(Instant::now()) else {
                        return Ok(None);
                    };
                    let woken = self.slot.heard.wait_timeout(waiting, left);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    /// Is there anything to be told?
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.telling.is_some() || self.owed.is_some() || self.slot.has_news()
    }

    /// Nothing is gathered for it from now on.
    pub fn pause(&self) {
        let seen = self.views.seen();
        let mut waiting = lock(&self.slot.waiting);
        waiting.keep_up(seen);
        waiting.paused = true;
    }

    /// What it has missed is told, all in all, and then what happens.
    pub fn resume(&self) {
        lock(&self.slot.waiting).paused = false;
        self.slot.wake();
    }

    /// Takes what waits. False: nothing does.
    fn take(&mut self) -> Result<bool, Error> {
        let (from, state) = {
            let mut waiting = lock(&self.slot.waiting);
            if waiting.paused {
                return Ok(false);
            }
            if let Some(news) = waiting.take() {
                self.telling = Some(Box::new(match news {
                    News::Items(seq, items) => Telling::Items { seq, items, at: 0 },
                    News::Rows(rows) => Telling::Rows { rows, at: 0 },
                }));
                return Ok(true);
            }
            (waiting.told, waiting.state)
        };
        match state {
            Standing::Keeping => Ok(false),
            Standing::Lost(why) => {
                self.owed = Some(why);
                Ok(true)
            }
            Standing::Lagging => {
                self.catch_up(from)?;
                Ok(true)
            }
        }
    }

    /// Reads what all that was missed comes to.
    fn catch_up(&mut self, from: Seq) -> Result<(), Error> {
        let views = self.views.clone();
        let mut state = views.state();
        state.look()?;
        let missed = state.missed(self.asked, from)?;
        // The looks at the store may have found that more was lost than the log tells.
        let standing = lock(&self.slot.waiting).state;
        match (standing, missed) {
            (Standing::Lost(why), _) => self.owed = Some(why),
            (_, None) => self.owed = Some(Anew::Expired),
            (_, Some(rows)) => {
                self.keeps_up(rows.seq);
                self.begin(Arc::new(rows));
            }
        }
        Ok(())
    }

    /// Nothing was missed up to this batch.
    fn keeps_up(&self, seq: Seq) {
        let mut waiting = lock(&self.slot.waiting);
        waiting.forget();
        (waiting.state, waiting.told) = (Standing::Keeping, seq);
    }

    fn begin_anew(&mut self, why: Anew) -> Result<(), Error> {
        let views = self.views.clone();
        let mut state = views.state();
        state.look()?;
        let rows = state.anew(self.asked, &self.slot, why)?;
        self.keeps_up(rows.seq);
        self.owed = None;
        self.begin(rows);
        Ok(())
    }

    /// The next piece of what is being told. After an error it is told again.
    fn go_on(&mut self) -> Result<Option<Tell>, Error> {
        let Some(mut telling) = self.telling.take() else { return Ok(None) };
        let tell = match &mut *telling {
            Telling::Items { items, at, .. } => self.tell_items(items, at),
            Telling::Rows { rows, at } => self.tell_rows(rows, at),
        };
        match tell {
            Ok(None) => Ok(Some(Tell::Complete(telling.seq()))),
            tell => {
                self.telling = Some(telling);
                tell
            }
        }
    }

    /// The next of these that became the same thing.
    fn tell_items(
        &self,
        items: &[(What, Arc<Changed>)],
        at: &mut usize,
    ) -> Result<Option<Tell>, Error> {
        let rest = items.get(*at..).unwrap_or_default();
        let Some(&(what, _)) = rest.first() else { return Ok(None) };
        let length = rest.iter().take(self.chunk).take_while(|(of, _)| *of == what).count();
        let piece = rest.get(..length).unwrap_or_default();
        let tell = match what {
            What::Removed => {
                let gone = piece.iter().filter_map(|(_, changed)| changed.was.as_ref());
                Tell::Removed(gone.map(|was| Gone::of(&was.head)).collect())
            }
            What::Added => Tell::Added(self.told(piece)?),
            What::Modified => Tell::Modified(self.told(piece)?),
        };
        *at += length;
        Ok(Some(tell))
    }

    fn told(&self, items: &[(What, Arc<Changed>)]) -> Result<Vec<Told>, Error> {
        let is = items.iter().filter_map(|(_, changed)| changed.is.as_ref());
        if matches!(self.interest, Interest::Fields(_)) || self.question.wants_occurrences() {
            let state = self.views.state();
            return Ok(is.map(|is| self.told_of(&state, is)).collect());
        }
        Ok(is.map(|is| self.plain(&is.head, &is.bytes)).collect())
    }

    /// What is told of an item without a look at anything else.
    fn plain(&self, head: &ItemHead, bytes: &Arc<[u8]>) -> Told {
        let told = Told { row: head.row, ..Told::default() };
        match self.interest {
            Interest::Rows => told,
            Interest::Heads | Interest::Fields(_) => Told { head: Some(head.clone()), ..told },
            Interest::Bytes => Told { bytes: Some(Arc::clone(bytes)), ..told },
            Interest::Whole => {
                Told { head: Some(head.clone()), bytes: Some(Arc::clone(bytes)), ..told }
            }
        }
    }

    fn told_of(&self, state: &State, is: &Then) -> Told {
        let mut told = self.plain(&is.head, &is.bytes);
        if let Interest::Fields(fields) = &self.interest {
            let parsed = Parsed::of(state.reader(), &is.head, &is.bytes);
            told.values = fields.iter().map(|field| parsed.values(field)).collect();
        }
        if let (Some(window), Some(times)) = (state.window(self.asked), &is.times) {
            times.each(window, &mut |occurring| {
                told.occurrences.push(occurring);
                told.occurrences.len() < OCCURRENCES
            });
        }
        told
    }

    /// The next rows of an answer, with what is wanted of their items. `None`: there are no more.
    fn tell_rows(&self, rows: &Rows, at: &mut usize) -> Result<Option<Tell>, Error> {
        let page = |of: &[i64], first: usize| {
            of.iter().skip(first).take(self.chunk).copied().collect::<Vec<i64>>()
        };
        let (removed, added) = (rows.removed.len(), rows.added.len());
        let end = removed + added + rows.modified.len();
        while *at < end {
            if *at < removed {
                let gone = rows.removed.iter().skip(*at).take(self.chunk).cloned();
                let gone: Vec<Gone> = gone.collect();
                *at += gone.len();
                return Ok(Some(Tell::Removed(gone)));
            }
            let is_added = *at < removed + added;
            let page = match is_added {
                true => page(&rows.added, *at - removed),
                false => page(&rows.modified, *at - removed - added),
            };
            let told = self.read(&page, rows.seq)?;
            *at += page.len();
            if !told.is_empty() {
                return Ok(Some(if is_added { Tell::Added(told) } else { Tell::Modified(told) }));
            }
        }
        Ok(None)
    }

    /// Reads items as they are, without those that are gone. What has changed since this batch is told again.
    fn read(&self, rows: &[i64], seq: Seq) -> Result<Vec<Told>, Error> {
        let occurrences = self.question.wants_occurrences();
        if matches!(self.interest, Interest::Rows) && !occurrences {
            return Ok(rows.iter().map(|row| Told { row: *row, ..Told::default() }).collect());
        }
        let state = self.views.state();
        let mut told = Vec::with_capacity(rows.len());
        if matches!(self.interest, Interest::Bytes) && !occurrences && state.is_at(seq)? {
            state.reader().sources(rows, &mut |row, bytes| {
                told.push(Told { row, bytes: Some(bytes.into()), ..Told::default() });
                true
            })?;
            return Ok(told);
        }
        state.read_rows(self.asked, rows, &mut |then| told.push(self.told_of(&state, then)))?;
        Ok(told)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.views.close(self.asked, &self.slot);
    }
}
