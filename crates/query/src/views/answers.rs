//! Questions and their answers: each is worked out once for all who ask it, and kept while there is room.
//!
//! An answer is the rows of its items. It is kept as long as nothing changes that it is about, within a budget; the
//! one that was used longest ago goes first. It is apart from the news (`hub`), which only say that an answer is stale.

use super::SOURCE;
use super::hub::{Asked, Kept, State, micros, place};
use super::news::{Gathered, Rows};
use super::question::Question;
use super::slot::Slot;
use super::version::{Version, became};
use super::view::ViewOptions;
use crate::error::Error;
use crate::log::{Anew, Answered, Drop as Why, Event, From};
use crate::matcher::Matcher;
use crate::run::find;
use larder_store::{PackedRows, Seq, Then, Told};
use larder_time::civil::Instant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant as Timer;

/// A view that was opened, and its first answer.
pub(super) struct Opened {
    pub(super) slot: Arc<Slot>,
    pub(super) number: u32,
    pub(super) question: Arc<Question>,
    pub(super) rows: Arc<Rows>,
}

/// An answer, and how it came to be.
pub(super) struct Found {
    pub(super) rows: Arc<[i64]>,
    from: From,
    number: u64,
    scanned: u64,
    tested: u64,
    us: u64,
    bytes: usize,
}

impl State {
    /// Opens a view, and gives its first answer.
    pub(super) fn open(
        &mut self,
        question: Question,
        options: &ViewOptions,
        now: Instant,
    ) -> Result<Opened, Error> {
        let number = self.number(question, now)?;
        let found = match options.initial {
            true => self.answer(number),
            false => self.no_answer(),
        };
        self.must(number)?.busy = false;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.settle(number);
                return Err(error);
            }
        };
        self.last_view += 1;
        let slot = Arc::new(Slot::new(self.last_view, options, self.seq));
        let asked = self.must(number)?;
        asked.views.push(Arc::clone(&slot));
        let question = Arc::clone(&asked.question);
        self.open += 1;
        self.log_answer(number, &options.client, Some(slot.number), &found);
        let rows = Rows { seq: self.seq, added: found.rows, ..Rows::default() };
        Ok(Opened { slot, number, question, rows: Arc::new(rows) })
    }

    /// Answers a question once.
    pub(super) fn once(
        &mut self,
        question: Question,
        client: &str,
        now: Instant,
    ) -> Result<Arc<[i64]>, Error> {
        let number = self.number(question, now)?;
        let found = self.answer(number);
        if let Ok(found) = &found {
            self.log_answer(number, client, None, found);
        }
        self.must(number)?.busy = false;
        self.settle(number);
        Ok(found?.rows)
    }

    pub(super) fn close(&mut self, number: u32, slot: &Arc<Slot>) {
        self.note(&Event::Close { client: &slot.client, view: slot.number });
        if let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut) {
            asked.views.retain(|view| !Arc::ptr_eq(view, slot));
            asked.views.shrink_to_fit();
            self.open -= 1;
        }
        self.settle(number);
    }

    /// The number of a question, which is new or asked already.
    fn number(&mut self, question: Question, now: Instant) -> Result<u32, Error> {
        if let Some(&number) = self.numbers.get(&question) {
            self.must(number)?.busy = true;
            return Ok(number);
        }
        let reading = question.read(now)?;
        let (matcher, question) = (Matcher::new(&reading.query), Arc::new(question));
        let collection = place(&self.names, &question);
        let number = self.free.pop().unwrap_or(self.asked.len() as u32);
        self.concern.add(number, &reading.query, collection);
        self.boundaries.extend(reading.until.map(|at| (at, number)));
        self.numbers.insert(Arc::clone(&question), number);
        let (views, busy, kept, answer) = (Vec::new(), true, None, 0);
        let asked = Asked { question, reading, matcher, collection, views, busy, kept, answer };
        match self.asked.get_mut(number as usize) {
            Some(place) => *place = Some(Box::new(asked)),
            None => self.asked.push(Some(Box::new(asked))),
        }
        Ok(number)
    }

    /// Forgets a question that nobody asks, and whose answer is not kept.
    fn settle(&mut self, number: u32) {
        let Some(place) = self.asked.get_mut(number as usize) else { return };
        let Some(asked) =
            place.take_if(|asked| asked.views.is_empty() && asked.kept.is_none() && !asked.busy)
        else {
            return;
        };
        self.concern.remove(number, &asked.reading.query, asked.collection);
        if let Some(at) = asked.reading.until {
            self.boundaries.remove(&(at, number));
        }
        self.numbers.remove(&asked.question);
        self.free.push(number);
        if self.numbers.is_empty() {
            // Nobody asks anything: what many views needed is given back.
            (self.asked, self.free, self.numbers) = (Vec::new(), Vec::new(), HashMap::new());
        }
    }

    /// The answer to a question: one that is kept, or one that is worked out now.
    fn answer(&mut self, number: u32) -> Result<Found, Error> {
        let began = Timer::now();
        self.look()?;
        if let Some(asked) = self.of(number)
            && let Some(kept) = &asked.kept
        {
            let from = if asked.views.is_empty() { From::Cache } else { From::Shared };
            let (rows, number_of, bytes) = (kept.rows.rows().into(), asked.answer, kept.bytes);
            self.use_of(number);
            let us = micros(began);
            return Ok(Found { rows, from, number: number_of, scanned: 0, tested: 0, us, bytes });
        }
        let answer = self.still(|state| {
            let Some(asked) = state.of(number) else {
                return Err(larder_store::Error::Expired.into());
            };
            find(&state.reader, &asked.find())
        })?;
        let rows: Arc<[i64]> = answer.rows().into();
        let (scanned, tested) = (answer.explain.visited, answer.explain.tested);
        self.last_answer += 1;
        let (answer, us) = (self.last_answer, micros(began));
        self.must(number)?.answer = answer;
        let bytes = self.keep(number, &rows);
        Ok(Found { rows, from: From::Run, number: answer, scanned, tested, us, bytes })
    }

    /// What a view that wants none begins with.
    fn no_answer(&mut self) -> Result<Found, Error> {
        self.look()?;
        let rows = Arc::from([]);
        Ok(Found { rows, from: From::Run, number: 0, scanned: 0, tested: 0, us: 0, bytes: 0 })
    }

    /// The whole answer, for a view that has to begin anew.
    pub(super) fn anew(&mut self, number: u32, slot: &Slot, why: Anew) -> Result<Arc<Rows>, Error> {
        let began = Timer::now();
        let added = match self.answer(number) {
            Ok(found) => found.rows,
            // The collection is not there: nothing is in it.
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => Arc::from([]),
            Err(error) => return Err(error),
        };
        let (client, view, returned, us) = (&*slot.client, slot.number, added.len(), micros(began));
        self.note(&Event::Fresh { client, view, seq: self.seq, why, returned, us });
        Ok(Arc::new(Rows { seq: self.seq, added, ..Rows::default() }))
    }

    /// What all that happened since a batch comes to for a question. `None`: that cannot be told any more.
    pub(super) fn missed(&mut self, number: u32, since: Seq) -> Result<Option<Rows>, Error> {
        self.still(|state| {
            let Some(asked) = state.of(number) else { return Ok(None) };
            let mut rows = Gathered::default();
            let most = state.limits.changes;
            let told = state.reader.changed(since, most, &state.names, &mut |changed| {
                let version = |then: &Option<Then>| {
                    then.as_ref()
                        .is_some_and(|then| Version::new(&state.reader, then).answers(asked))
                };
                let (answered, answers) = (version(&changed.was), version(&changed.is));
                rows.add(became(asked, &changed, answered, answers), &changed);
            })?;
            Ok((told == Told::All).then(|| rows.rows(state.seq)))
        })
    }

    /// Gives the items in these rows as they are, without those that are gone.
    pub(super) fn read_rows(
        &self,
        number: u32,
        rows: &[i64],
        each: &mut dyn FnMut(&Then),
    ) -> Result<(), Error> {
        let _snapshot = self.reader.snapshot()?;
        let mut times = HashMap::new();
        if self.window(number).is_some() {
            self.reader.times(rows, &mut |row, of| {
                times.insert(row, of.clone());
                true
            })?;
        }
        self.reader.items(rows, &mut |head, bytes| {
            let (bytes, times) = (bytes.into(), times.remove(&head.row));
            // Nobody asks it anything, so which collection it is in is of no matter.
            each(&Then { head, collection: 0, bytes, times });
            true
        })?;
        Ok(())
    }

    fn log_answer(&self, number: u32, client: &str, view: Option<u64>, found: &Found) {
        let (Some(log), Some(asked)) = (&self.log, self.of(number)) else { return };
        let query = asked.reading.query.to_string();
        let answer = Answered {
            client,
            query: &query,
            kind: asked.question.kind(),
            collection: asked.question.collection(),
            source: SOURCE,
            from: found.from,
            answer: found.number,
            scanned: found.scanned,
            tested: found.tested,
            returned: found.rows.len(),
            us: found.us,
            bytes: found.bytes,
        };
        log.note(&match view {
            Some(view) => Event::Open { view, answer },
            None => Event::Query(answer),
        });
    }

    /// Keeps an answer, where there is room for it, and drops the oldest for it. Returns what it holds, or would, where anybody wants to
    /// know.
    fn keep(&mut self, number: u32, rows: &[i64]) -> usize {
        let (budget, last_use) = (self.budget, self.last_use + 1);
        if budget == 0 && self.log.is_none() {
            return 0;
        }
        let Ok(asked) = self.must(number) else { return 0 };
        let rows = PackedRows::new(rows);
        let bytes = asked.bytes_with(&rows);
        if bytes > budget {
            return bytes;
        }
        asked.kept = Some(Kept { rows, bytes, used: last_use });
        self.held += bytes;
        self.last_use = last_use;
        self.used.insert(last_use, number);
        while self.held > self.budget
            && let Some((_, &oldest)) = self.used.first_key_value()
        {
            self.give_up(oldest, Why::Budget);
        }
        bytes
    }

    /// Notes that a kept answer was used.
    fn use_of(&mut self, number: u32) {
        let last_use = self.last_use + 1;
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        if let Some(kept) = &mut asked.kept {
            self.used.remove(&kept.used);
            kept.used = last_use;
            self.used.insert(last_use, number);
            self.last_use = last_use;
        }
    }

    /// Drops a kept answer.
    pub(super) fn give_up(&mut self, number: u32, why: Why) {
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return;
        };
        let Some(Kept { bytes, used, .. }) = asked.kept.take() else { return };
        let answer = asked.answer;
        self.held -= bytes;
        self.used.remove(&used);
        self.note(&Event::Drop { answer, why, bytes });
        self.settle(number);
    }
}
