//! What all views of a process share: one reader, the questions that are asked, and whom a change concerns.
//!
//! Everything here happens under one lock, in short steps. How questions are answered is in `answers`, what the clock changes in
//! `clock`, what a view does with what it is told in `view`; who waits for the bell, in `watch`.

use super::concern::Concern;
use super::news::{Gathering, News};
use super::question::{Question, Reading, depends_on_time};
use super::slot::Slot;
use super::version::{Both, Version, became};
use super::{Limits, ViewsOptions};
use crate::error::Error;
use crate::log::{Anew, Drop as Why, Event, Sink, bytes_of};
use crate::matcher::Matcher;
use crate::run::Find;
use larder_store::{IndexSet, Moment, PackedRows, Reader, Seq, Standing, Told, Window};
use larder_time::civil::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Timer;

/// What a panic elsewhere has left is as good as it was: each step leaves things whole.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that somebody asks, or whose answer is kept.
pub(super) struct Asked {
    pub(super) question: Arc<Question>,
    pub(super) reading: Reading,
    pub(super) matcher: Matcher,
    /// The row of the collection that it is put to: `None`: to all; -1: that is not there.
    pub(super) collection: Option<i64>,
    pub(super) views: Vec<Arc<Slot>>,
    /// It is being answered, and stays.
    pub(super) busy: bool,
    /// The answer, where it is kept.
    pub(super) kept: Option<Kept>,
    /// The number of that answer.
    pub(super) answer: u64,
}

/// An answer that is kept.
pub(super) struct Kept {
    pub(super) rows: PackedRows,
    /// What it holds in memory with its question.
    pub(super) bytes: usize,
    /// When it was last used.
    pub(super) used: u64,
}

impl Asked {
    /// What it holds in memory where this answer is kept.
    pub(super) fn bytes_with(&self, rows: &PackedRows) -> usize {
        bytes_of(rows, self.question.text().len(), &self.reading.query)
    }

    /// What is asked of the store.
    pub(super) fn find(&self) -> Find {
        self.question.find(&self.reading.query)
    }

    pub(super) fn is_in_time(&self) -> bool {
        depends_on_time(&self.reading.query)
    }

    pub(super) fn is_asked_of(&self, collection: i64) -> bool {
        self.collection.is_none_or(|row| row == collection)
    }
}

/// The state of all views.
pub(super) struct State {
    pub(super) reader: Reader,
    pub(super) log: Option<Arc<dyn Sink>>,
    pub(super) limits: Limits,
    /// What the reader saw when it was last looked.
    pub(super) moment: Option<Moment>,
    /// What time it was when questions were last read.
    pub(super) now: Instant,
    pub(super) seq: Seq,
    pub(super) standing: Standing,
    pub(super) epoch: Arc<str>,
    pub(super) names: Vec<(i64, Arc<str>)>,
    /// What items are in time can be told.
    pub(super) timed: bool,
    pub(super) asked: Vec<Option<Box<Asked>>>,
    pub(super) free: Vec<u32>,
    pub(super) numbers: HashMap<Arc<Question>, u32>,
    pub(super) concern: Concern,
    pub(super) boundaries: BTreeSet<(Instant, u32)>,
    pub(super) open: usize,
    pub(super) last_view: u64,
    pub(super) last_answer: u64,
    pub(super) budget: usize,
    pub(super) held: usize,
    pub(super) used: BTreeMap<u64, u32>,
    pub(super) last_use: u64,
    /// Views that have something to be told, to be woken when the lock is let go.
    pub(super) woken: Vec<Arc<Slot>>,
}

impl State {
    pub(super) fn new(reader: Reader, options: &ViewsOptions) -> Result<State, Error> {
        let mut state = State {
            reader,
            log: options.log.clone(),
            limits: options.limits,
            moment: None,
            now: Instant::MIN,
            seq: 0,
            standing: Standing::default(),
            epoch: "".into(),
            names: Vec::new(),
            timed: false,
            asked: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            concern: Concern::default(),
            boundaries: BTreeSet::new(),
            open: 0,
            last_view: 0,
            last_answer: 0,
            budget: options.cache,
            held: 0,
            used: BTreeMap::new(),
            last_use: 0,
            woken: Vec::new(),
        };
        state.begin()?;
        Ok(state)
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn replace_reader(&mut self, reader: Reader) {
        (self.reader, self.moment) = (reader, None);
    }

    pub(super) fn window(&self, asked: u32) -> Option<&Window> {
        self.of(asked)?.reading.window.as_ref()
    }

    pub(super) fn next_boundary(&self) -> Option<Instant> {
        self.boundaries.first().map(|(at, _)| *at)
    }

    /// Has nothing happened since this batch?
    pub(super) fn is_at(&self, seq: Seq) -> Result<bool, Error> {
        Ok(self.seq == seq && self.moment == Some(self.reader.moment()?))
    }

    pub(super) fn of(&self, asked: u32) -> Option<&Asked> {
        self.asked.get(asked as usize)?.as_deref()
    }

    pub(super) fn note(&self, event: &Event<'_>) {
        if let Some(log) = &self.log {
            log.note(event);
        }
    }

    /// Notes where the store stands.
    fn begin(&mut self) -> Result<(), Error> {
        let reader = &self.reader;
        let _snapshot = reader.snapshot()?;
        self.moment = Some(reader.moment()?);
        self.standing = reader.standing()?;
        self.seq = self.standing.seq;
        self.epoch = reader.epoch()?;
        self.names = reader.collection_names()?;
        self.timed = reader.usable(IndexSet::Time)?;
        Ok(())
    }

    /// Reads what happened since it was last looked, and puts it where it is waited for.
    pub(super) fn look(&mut self) -> Result<Seq, Error> {
        let began = Timer::now();
        let mut found = Changes::new(self.limits);
        let anew = self.changes(&mut found)?;
        let Some(anew) = anew else { return Ok(self.seq) };
        let told = self.tell(found.news, self.seq - found.batches);
        if self.log.is_some() && (found.batches != 0 || found.items > 0) {
            let name =
                |row| self.names.iter().find(|(of, _)| *of == row).map_or("", |(_, name)| &**name);
            let of = found.of.iter().map(|(row, kind)| (name(*row), kind.name())).collect();
            self.note(&Event::Change {
                seq: self.seq,
                batches: found.batches,
                items: found.items,
                of,
                asked: found.asked,
                told,
                us: micros(began),
            });
        }
        for (asked, why) in anew {
            self.lose(asked, why);
        }
        Ok(self.seq)
    }

    /// Finds what changed, and for whom; and who has to be told everything anew. `None`: nothing happened.
    fn changes(&mut self, found: &mut Changes) -> Result<Option<Vec<(u32, Anew)>>, Error> {
        let snapshot = self.reader.snapshot()?;
        let moment = self.reader.moment()?;
        if self.moment == Some(moment) {
            return Ok(None);
        }
        let standing = self.reader.standing()?;
        // What is as it was is not read again: this happens with every batch.
        let same = standing.rest == self.standing.rest;
        let epoch = if same { Arc::clone(&self.epoch) } else { self.reader.epoch()? };
        let timed = if same { self.timed } else { self.reader.usable(IndexSet::Time)? };
        let names = match same && standing.collections == self.standing.collections {
            true => None,
            false => Some(self.reader.collection_names()?).filter(|names| *names != self.names),
        };
        let mut anew = Vec::new();
        if epoch != self.epoch {
            anew = self.all(Anew::Expired);
        } else {
            if standing.seq != self.seq && !self.numbers.is_empty() {
                match self.read(names.as_ref().unwrap_or(&self.names), found) {
                    Ok(Told::All) => {}
                    // One damaged item must not keep all others from being told of.
                    Ok(Told::TooMany | Told::Expired)
                    | Err(Error::Store(larder_store::Error::Damaged { .. })) => {
                        found.news.clear();
                        anew = self.all(Anew::Expired);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(names) = &names {
                anew.extend(self.renamed(names));
            }
            // What items were in time is told by zones that are not these any more.
            if !timed || !self.timed {
                let in_time = |asked: &Asked| asked.is_in_time();
                anew.extend(self.those(in_time).map(|asked| (asked, Anew::Zones)));
            }
        }
        drop(snapshot);
        self.reader.follow();
        // The batches of a store that was put in the place of this one are counted from another beginning.
        found.batches = if epoch == self.epoch { standing.seq - self.seq } else { 0 };
        (self.moment, self.seq, self.epoch) = (Some(moment), standing.seq, epoch);
        (self.timed, self.standing) = (timed, standing);
        if let Some(names) = names {
            self.names = names;
            self.resolve();
        }
        anew.sort_unstable_by_key(|(asked, _)| *asked);
        anew.dedup_by_key(|(asked, _)| *asked);
        Ok(Some(anew))
    }

    pub(super) fn those(&self, which: impl Fn(&Asked) -> bool) -> impl Iterator<Item = u32> {
        let numbered = self.asked.iter().enumerate();
        numbered.filter_map(move |(number, asked)| {
            asked.as_ref().filter(|asked| which(asked)).map(|_| number as u32)
        })
    }

    fn all(&self, why: Anew) -> Vec<(u32, Anew)> {
        self.those(|_| true).map(|asked| (asked, why)).collect()
    }

    /// Who asks of a collection that has another name now.
    fn renamed(&self, names: &[(i64, Arc<str>)]) -> Vec<(u32, Anew)> {
        let row = |names: &[(i64, Arc<str>)], name: &str| {
            names.iter().find(|(_, of)| **of == *name).map(|(row, _)| *row)
        };
        // One that is new, or gone, says so by its items; one that goes by another name does not.
        let other = self
            .names
            .iter()
            .any(|(row, name)| names.iter().any(|(of, now)| of == row && now != name));
        let concerned = |asked: &Asked| match asked.question.collection() {
            Some(name) => row(&self.names, name) != row(names, name),
            None => other,
        };
        self.those(concerned).map(|asked| (asked, Anew::Collections)).collect()
    }

    /// Finds the rows of the collections that are asked for anew.
    fn resolve(&mut self) {
        for number in 0..self.asked.len() {
            let Some(asked) = self.asked.get_mut(number).and_then(Option::as_deref_mut) else {
                continue;
            };
            let now = place(&self.names, &asked.question);
            if now != asked.collection {
                let (query, number) = (&asked.reading.query, number as u32);
                self.concern.remove(number, query, asked.collection);
                self.concern.add(number, query, now);
                asked.collection = now;
            }
        }
    }

    /// Reads what changed, and finds whom it concerns.
    fn read(&self, names: &[(i64, Arc<str>)], found: &mut Changes) -> Result<Told, Error> {
        let (mut concerned, mut asked_at_all) = (Vec::new(), HashSet::new());
        let logged = self.log.is_some();
        let told = self.reader.changed(self.seq, self.limits.changes, names, &mut |changed| {
            found.items += 1;
            if logged {
                let versions = changed.was.iter().chain(&changed.is);
                found.of.extend(versions.map(|then| (then.collection, then.head.kind)));
            }
            let changed = Arc::new(changed);
            let was = changed.was.as_ref().map(|was| Version::new(&self.reader, was));
            let is = changed.is.as_ref().map(|is| Version::new(&self.reader, is));
            concerned.clear();
            match was.as_ref().zip(is.as_ref()).and_then(|(was, is)| Both::of(was, is)) {
                Some(both) => self.concern.find(&both, &mut concerned),
                None => {
                    let versions = was.iter().chain(&is);
                    versions.for_each(|version| self.concern.find(version, &mut concerned));
                }
            }
            concerned.sort_unstable();
            concerned.dedup();
            for &number in &concerned {
                let Some(asked) = self.of(number) else { continue };
                if logged {
                    asked_at_all.insert(number);
                }
                let answered = was.as_ref().is_some_and(|was| was.answers(asked));
                let answers = is.as_ref().is_some_and(|is| is.answers(asked));
                let became = became(asked, &changed, answered, answers);
                if !became.is_empty() {
                    found.news.add(number, became, &changed);
                }
            }
        })?;
        found.asked = asked_at_all.len();
        if told != Told::All {
            found.news.clear();
        }
        Ok(told)
    }

    /// Puts news into the queues of those who wait for them, and gives up kept answers that they concern. Returns how many views
    /// were told.
    fn tell(&mut self, news: Gathering, before: Seq) -> usize {
        news.news(self.seq).map(|(number, news)| self.put(number, news, before)).sum()
    }

    pub(super) fn put(&mut self, number: u32, news: News, before: Seq) -> usize {
        let began = self.log.is_some().then(Timer::now);
        let counts = news.counts();
        let Some(asked) = self.asked.get(number as usize).and_then(Option::as_deref) else {
            return 0;
        };
        let views = asked.views.clone();
        let [added, _, removed] = counts;
        if added + removed > 0 || asked.question.sort().is_some() {
            self.give_up(number, Why::Stale);
        }
        if let Some((last, others)) = views.split_last() {
            others.iter().for_each(|view| view.put(news.clone(), before, self.limits));
            last.put(news, before, self.limits);
        }
        if let Some(began) = began {
            views.iter().for_each(|view| self.note_told(view, counts, began));
        }
        let told = views.len();
        self.woken.extend(views);
        told
    }

    fn note_told(&self, view: &Slot, [added, modified, removed]: [usize; 3], began: Timer) {
        let (client, view, seq, us) = (&*view.client, view.number, self.seq, micros(began));
        self.note(&Event::Told { client, view, seq, added, modified, removed, us });
    }

    /// Has a question's views begin anew.
    pub(super) fn lose(&mut self, number: u32, why: Anew) {
        self.give_up(number, Why::Stale);
        let Some(asked) = self.asked.get(number as usize).and_then(Option::as_deref) else {
            return;
        };
        for view in &asked.views {
            view.lose(why);
            self.woken.push(Arc::clone(view));
        }
    }

    /// Does something with the store as it was when it was last looked at, which is now.
    pub(super) fn still<T>(
        &mut self,
        act: impl Fn(&State) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            self.look()?;
            let _snapshot = self.reader.snapshot()?;
            if self.moment == Some(self.reader.moment()?) {
                return act(self);
            }
        }
    }

    pub(super) fn must(&mut self, number: u32) -> Result<&mut Asked, Error> {
        let asked = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut);
        asked.ok_or(Error::Store(larder_store::Error::Expired))
    }
}

/// What was found at a look.
struct Changes {
    batches: i64,
    items: usize,
    asked: usize,
    of: HashSet<(i64, larder_store::Kind)>,
    news: Gathering,
}

impl Changes {
    fn new(limits: Limits) -> Changes {
        let news = Gathering::new(limits.bytes);
        Changes { batches: 0, items: 0, asked: 0, of: HashSet::new(), news }
    }
}

/// The collection that a question is put to.
pub(super) fn place(names: &[(i64, Arc<str>)], question: &Question) -> Option<i64> {
    let name = question.collection()?;
    Some(names.iter().find(|(_, of)| **of == *name).map_or(-1, |(row, _)| *row))
}

pub(super) fn micros(since: Timer) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
