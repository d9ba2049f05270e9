//! What all views of a process share: one reader, the questions that are asked, and whom a change concerns.
//!
//! Everything here happens under one lock, in short steps. What a view does with what it is told is in `view`; who waits for the
//! bell, in `watch`.

use super::concern::{Concern, Has};
use super::question::{Question, Reading, depends_on_time};
use super::view::{Gone, News, Rows, Slot, What};
use crate::error::Error;
use crate::item::{Item, Parsed, Values as _, When};
use crate::log::{Anew, Answered, Drop as Why, Event, From, Sink};
use crate::matcher::Matcher;
use crate::run::{Find, find};
use larder_format::field::Field;
use larder_store::{Changed, IndexSet, Moment, Occurring, Reader, Seq, Then, Times, Told, Window};
use larder_time::civil::Instant;
use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Timer;

/// Changes of more items than this are not told: the answer is given anew, which is less to read.
const MOST: usize = 50_000;
/// What is kept of an answer beside its rows, in bytes.
const KEPT: usize = 64;
/// Occurrences of one item that are compared.
const COMPARED: usize = 1000;

/// What a panic elsewhere has left is as good as it was: each step leaves things whole.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that somebody asks, or whose answer is kept.
pub(super) struct Asked {
    question: Arc<Question>,
    reading: Reading,
    matcher: Matcher,
    /// The row of the collection that it is put to: `None`: to all; -1: that is not there.
    collection: Option<i64>,
    views: Vec<Arc<Slot>>,
    /// The rows of the answer, where it is kept, and when it was last used.
    kept: Option<(Arc<[i64]>, u64)>,
    /// The number of that answer.
    answer: u64,
}

impl Asked {
    fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |(rows, _)| bytes_of(rows, &self.question))
    }

    fn is_in_time(&self) -> bool {
        depends_on_time(&self.reading.find.query)
    }

    fn is_asked_of(&self, collection: i64) -> bool {
        self.collection.is_none_or(|row| row == collection)
    }
}

fn bytes_of(rows: &[i64], question: &Question) -> usize {
    size_of_val(rows) + question.text().len() + KEPT
}

/// The state of all views.
pub(super) struct State {
    reader: Reader,
    log: Option<Arc<dyn Sink>>,
    /// What the reader saw when it was last looked.
    moment: Option<Moment>,
    seq: Seq,
    epoch: Arc<str>,
    names: Vec<(i64, Arc<str>)>,
    /// What items are in time can be told.
    timed: bool,
    asked: Vec<Option<Asked>>,
    free: Vec<u32>,
    numbers: HashMap<Arc<Question>, u32>,
    concern: Concern,
    boundaries: BTreeSet<(Instant, u32)>,
    pub(super) open: usize,
    last_view: u64,
    last_answer: u64,
    budget: usize,
    held: usize,
    used: BTreeMap<u64, u32>,
    last_use: u64,
    /// Views that have something to be told, to be woken when the lock is let go.
    pub(super) woken: Vec<Arc<Slot>>,
}

/// A version of an item, taken apart when somebody asks.
struct Version<'a> {
    reader: &'a Reader,
    then: &'a Then,
    parsed: OnceCell<Item<'a>>,
}

impl<'a> Version<'a> {
    fn new(reader: &'a Reader, then: &'a Then) -> Version<'a> {
        Version { reader, then, parsed: OnceCell::new() }
    }

    fn item(&self) -> &Item<'a> {
        self.parsed.get_or_init(|| item(self.reader, self.then))
    }

    fn answers(&self, asked: &Asked) -> bool {
        asked.is_asked_of(self.then.collection) && asked.matcher.matches_item(self.item())
    }
}

fn item<'a>(reader: &'a Reader, then: &'a Then) -> Item<'a> {
    Item {
        reader,
        head: &then.head,
        parsed: Parsed::of(reader, &then.head, &then.bytes),
        when: When::Was(then.times.as_ref()),
        doubt: Cell::new(false),
    }
}

impl Has for Version<'_> {
    fn each(&self, field: &'static Field, each: &mut dyn FnMut(&str)) {
        self.item().any(field, &mut |value| {
            each(value);
            false
        });
    }

    fn uids(&self) -> [Option<String>; 2] {
        [Some(self.then.head.uid.clone()), self.item().uid()]
    }

    fn times(&self) -> Option<&Times> {
        self.then.times.as_ref()
    }
}

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
    pub(super) fn new(
        reader: Reader,
        budget: usize,
        log: Option<Arc<dyn Sink>>,
    ) -> Result<State, Error> {
        let mut state = State {
            reader,
            log,
            moment: None,
            seq: 0,
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
            budget,
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

    fn of(&self, asked: u32) -> Option<&Asked> {
        self.asked.get(asked as usize)?.as_ref()
    }

    fn note(&self, event: &Event<'_>) {
        if let Some(log) = &self.log {
            log.note(event);
        }
    }

    /// Notes where the store stands.
    fn begin(&mut self) -> Result<(), Error> {
        let reader = &self.reader;
        let _snapshot = reader.snapshot()?;
        self.moment = Some(reader.moment()?);
        self.seq = reader.seq()?;
        self.epoch = reader.epoch()?;
        self.names = reader.collection_names()?;
        self.timed = reader.usable(IndexSet::Time)?;
        Ok(())
    }

    /// Reads what happened since it was last looked, and puts it where it is waited for.
    pub(super) fn look(&mut self) -> Result<Seq, Error> {
        let began = Timer::now();
        let mut found = Changes::default();
        let anew = self.changes(&mut found)?;
        let Some(anew) = anew else { return Ok(self.seq) };
        let told = self.tell(found.news, self.seq);
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
        let (seq, epoch) = (self.reader.seq()?, self.reader.epoch()?);
        let (names, timed) = (self.reader.collection_names()?, self.reader.usable(IndexSet::Time)?);
        let mut anew = Vec::new();
        if epoch != self.epoch {
            anew = self.all(Anew::Expired);
        } else {
            if seq != self.seq && !self.numbers.is_empty() {
                match self.read(found)? {
                    Told::All => {}
                    Told::TooMany | Told::Expired => anew = self.all(Anew::Expired),
                }
            }
            if names != self.names {
                anew.extend(self.renamed(&names));
            }
            // What items were in time is told by zones that are not these any more.
            if !timed || !self.timed {
                let in_time = |asked: &Asked| asked.is_in_time();
                anew.extend(self.those(in_time).map(|asked| (asked, Anew::Zones)));
            }
        }
        drop(snapshot);
        found.batches = seq - self.seq;
        (self.moment, self.seq, self.epoch) = (Some(moment), seq, epoch);
        (self.timed, self.names) = (timed, names);
        self.resolve();
        anew.sort_unstable_by_key(|(asked, _)| *asked);
        anew.dedup_by_key(|(asked, _)| *asked);
        Ok(Some(anew))
    }

    fn those(&self, which: impl Fn(&Asked) -> bool) -> impl Iterator<Item = u32> {
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
            let Some(asked) = self.asked.get_mut(number).and_then(Option::as_mut) else { continue };
            let now = place(&self.names, &asked.question);
            if now != asked.collection {
                let (query, number) = (&asked.reading.find.query, number as u32);
                self.concern.remove(number, query, asked.collection);
                self.concern.add(number, query, now);
                asked.collection = now;
            }
        }
    }

    /// Reads what changed, and finds whom it concerns.
    fn read(&self, found: &mut Changes) -> Result<Told, Error> {
        let (mut concerned, mut asked_at_all) = (Vec::new(), HashSet::new());
        let told = self.reader.changed(self.seq, MOST, &mut |changed| {
            found.items += 1;
            for then in changed.was.iter().chain(&changed.is) {
                found.of.insert((then.collection, then.head.kind));
            }
            let changed = Arc::new(changed);
            let was = changed.was.as_ref().map(|was| Version::new(&self.reader, was));
            let is = changed.is.as_ref().map(|is| Version::new(&self.reader, is));
            concerned.clear();
            for version in was.iter().chain(&is) {
                let then = version.then;
                self.concern.find(version, then.collection, then.head.kind, &mut concerned);
            }
            concerned.sort_unstable();
            concerned.dedup();
            for &number in &concerned {
                let Some(asked) = self.of(number) else { continue };
                asked_at_all.insert(number);
                let answered = was.as_ref().is_some_and(|was| was.answers(asked));
                let answers = is.as_ref().is_some_and(|is| is.answers(asked));
                let became = became(asked, &changed, answered, answers);
                let news = became.iter().map(|what| (*what, Arc::clone(&changed)));
                if !became.is_empty() {
                    found.news.entry(number).or_default().extend(news);
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
    fn tell(&mut self, news: HashMap<u32, Vec<(What, Arc<Changed>)>>, seq: Seq) -> usize {
        let mut told = 0;
        for (number, mut items) in news {
            // Kinds of news are not mixed; of the same kind they stay in order.
            items.sort_by_key(|(what, _)| *what as u8);
            told += self.put(number, &News::Items(seq, items), seq);
        }
        told
    }

    fn put(&mut self, number: u32, news: &News, seq: Seq) -> usize {
        let began = Timer::now();
        let [added, modified, removed] = news.counts();
        let Some(asked) = self.asked.get(number as usize).and_then(Option::as_ref) else {
            return 0;
        };
        let views = asked.views.clone();
        if added + removed > 0 || asked.question.sort().is_some() {
            self.give_up(number, Why::Stale);
        }
        for view in &views {
            view.put(news);
            if self.log.is_some() {
                let (client, view) = (&*view.client, view.number);
                let us = micros(began);
                self.note(&Event::Told { client, view, seq, added, modified, removed, us });
            }
        }
        let told = views.len();
        self.woken.extend(views);
        told
    }

    /// Has a question's views begin anew.
    fn lose(&mut self, number: u32, why: Anew) {
        self.give_up(number, Why::Stale);
        let Some(asked) = self.asked.get(number as usize).and_then(Option::as_ref) else { return };
        for view in &asked.views {
            view.lose(why);
            self.woken.push(Arc::clone(view));
        }
    }

    /// Has the questions read again whose time has come.
    pub(super) fn pass_time(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(&(at, number)) = self.boundaries.first() {
            if at > now {
                break;
            }
            self.read_again(number, now)?;
        }
        Ok(())
    }

    fn read_again(&mut self, number: u32, now: Instant) -> Result<(), Error> {
        let Some(asked) = self.of(number) else { return Ok(()) };
        let reading = match asked.question.read(now) {
            Ok(reading) => reading,
            // It could be read once; whatever it says now, nobody is told.
            Err(_) => Reading { until: Some(now.plus(86_400)), ..asked.reading.clone() },
        };
        let same = reading.find.query == asked.reading.find.query;
        let rows = match same {
            true => None,
            false => Some(self.still(|state| state.moved(number, &reading))?),
        };
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_mut) else {
            return Ok(());
        };
        self.boundaries.retain(|(_, of)| *of != number);
        self.boundaries.extend(reading.until.map(|at| (at, number)));
        let collection = asked.collection;
        self.concern.remove(number, &asked.reading.find.query, collection);
        self.concern.add(number, &reading.find.query, collection);
        if !same {
            asked.matcher = Matcher::new(&reading.find.query);
        }
        asked.reading = reading;
        if !same {
            self.give_up(number, Why::Stale);
        }
        if let Some(rows) = rows.filter(|rows| !is_empty(rows)) {
            self.put(number, &News::Rows(Arc::new(rows)), self.seq);
        }
        Ok(())
    }

    /// What the clock has changed in an answer.
    fn moved(&self, number: u32, to: &Reading) -> Result<Rows, Error> {
        let mut moved = Rows { seq: self.seq, ..Rows::default() };
        let Some(asked) = self.of(number).filter(|asked| !asked.views.is_empty()) else {
            return Ok(moved);
        };
        let answered: HashSet<i64> = self.rows(&asked.reading.find)?.into_iter().collect();
        let answers = self.rows(&to.find)?;
        moved.added = answers.iter().copied().filter(|row| !answered.contains(row)).collect();
        let answers: HashSet<i64> = answers.into_iter().collect();
        let mut gone: Vec<i64> = answered.difference(&answers).copied().collect();
        gone.sort_unstable();
        self.reader.items(&gone, &mut |head, _| {
            moved.removed.push(Gone::of(&head));
            true
        })?;
        if let (Some(from), Some(to)) = (&asked.reading.window, &to.window) {
            let mut both: Vec<i64> = answered.intersection(&answers).copied().collect();
            both.sort_unstable();
            self.reader.times(&both, &mut |row, times| {
                if occurrences(Some(times), from) != occurrences(Some(times), to) {
                    moved.modified.push(row);
                }
                true
            })?;
        }
        Ok(moved)
    }

    /// The rows of an answer; a collection that is not there holds nothing.
    fn rows(&self, question: &Find) -> Result<Vec<i64>, Error> {
        match find(&self.reader, question) {
            Ok(answer) => Ok(answer.rows()),
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Does something with the store as it was when it was last looked at, which is now.
    fn still<T>(&mut self, act: impl Fn(&State) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            self.look()?;
            let _snapshot = self.reader.snapshot()?;
            if self.moment == Some(self.reader.moment()?) {
                return act(self);
            }
        }
    }

    /// Opens a view, and gives its first answer.
    pub(super) fn open(
        &mut self,
        question: Question,
        options: &super::ViewOptions,
        now: Instant,
    ) -> Result<Opened, Error> {
        let number = self.number(question, now)?;
        let found = match options.initial {
            true => self.answer(number),
            false => self.no_answer(),
        };
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
        self.settle(number);
        Ok(found?.rows)
    }

    pub(super) fn close(&mut self, number: u32, slot: &Arc<Slot>) {
        self.note(&Event::Close { client: &slot.client, view: slot.number });
        if let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_mut) {
            asked.views.retain(|view| !Arc::ptr_eq(view, slot));
            asked.views.shrink_to_fit();
            self.open -= 1;
        }
        self.settle(number);
    }

    fn must(&mut self, number: u32) -> Result<&mut Asked, Error> {
        let asked = self.asked.get_mut(number as usize).and_then(Option::as_mut);
        asked.ok_or(Error::Store(larder_store::Error::Expired))
    }

    /// The number of a question, which is new or asked already.
    fn number(&mut self, question: Question, now: Instant) -> Result<u32, Error> {
        if let Some(number) = self.numbers.get(&question) {
            return Ok(*number);
        }
        let reading = question.read(now)?;
        let (matcher, question) = (Matcher::new(&reading.find.query), Arc::new(question));
        let collection = place(&self.names, &question);
        let number = self.free.pop().unwrap_or(self.asked.len() as u32);
        self.concern.add(number, &reading.find.query, collection);
        self.boundaries.extend(reading.until.map(|at| (at, number)));
        self.numbers.insert(Arc::clone(&question), number);
        let (views, kept, answer) = (Vec::new(), None, 0);
        let asked = Asked { question, reading, matcher, collection, views, kept, answer };
        match self.asked.get_mut(number as usize) {
            Some(place) => *place = Some(asked),
            None => self.asked.push(Some(asked)),
        }
        Ok(number)
    }

    /// Forgets a question that nobody asks, and whose answer is not kept.
    fn settle(&mut self, number: u32) {
        let Some(place) = self.asked.get_mut(number as usize) else { return };
        let Some(asked) = place.take_if(|asked| asked.views.is_empty() && asked.kept.is_none())
        else {
            return;
        };
        self.concern.remove(number, &asked.reading.find.query, asked.collection);
        if let Some(at) = asked.reading.until {
            self.boundaries.remove(&(at, number));
        }
        self.numbers.remove(&asked.question);
        self.free.push(number);
    }

    /// The answer to a question: one that is kept, or one that is worked out now.
    fn answer(&mut self, number: u32) -> Result<Found, Error> {
        let began = Timer::now();
        self.look()?;
        if let Some(asked) = self.of(number)
            && let Some((rows, _)) = &asked.kept
        {
            let from = if asked.views.is_empty() { From::Cache } else { From::Shared };
            let (rows, number_of, bytes) = (Arc::clone(rows), asked.answer, asked.bytes());
            self.use_of(number);
            let us = micros(began);
            return Ok(Found { rows, from, number: number_of, scanned: 0, tested: 0, us, bytes });
        }
        let answer = self.still(|state| {
            let Some(asked) = state.of(number) else {
                return Err(larder_store::Error::Expired.into());
            };
            find(&state.reader, &asked.reading.find)
        })?;
        let rows: Arc<[i64]> = answer.rows().into();
        let (scanned, tested) = (answer.explain.visited, answer.explain.tested);
        self.last_answer += 1;
        let (answer, us) = (self.last_answer, micros(began));
        let asked = self.must(number)?;
        asked.answer = answer;
        let bytes = bytes_of(&rows, &asked.question);
        self.keep(number, &rows);
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
            let mut rows = Rows { seq: state.seq, ..Rows::default() };
            let mut added = Vec::new();
            let told = state.reader.changed(since, MOST, &mut |changed| {
                let version = |then: &Option<Then>| {
                    then.as_ref()
                        .is_some_and(|then| Version::new(&state.reader, then).answers(asked))
                };
                let (answered, answers) = (version(&changed.was), version(&changed.is));
                for what in became(asked, &changed, answered, answers) {
                    match (what, &changed.was, &changed.is) {
                        (What::Removed, Some(was), _) => rows.removed.push(Gone::of(&was.head)),
                        (What::Added, _, Some(is)) => added.push(is.head.row),
                        (What::Modified, _, Some(is)) => rows.modified.push(is.head.row),
                        _ => {}
                    }
                }
            })?;
            rows.added = added.into();
            Ok((told == Told::All).then_some(rows))
        })
    }

    /// Gives the items in these rows, without those that have changed since this batch so that they answer no longer.
    pub(super) fn read_rows(
        &self,
        number: u32,
        rows: &[i64],
        since: Seq,
        each: &mut dyn FnMut(&Then),
    ) -> Result<(), Error> {
        let _snapshot = self.reader.snapshot()?;
        let mut times = HashMap::new();
        self.reader.times(rows, &mut |row, of| {
            times.insert(row, of.clone());
            true
        })?;
        self.reader.items(rows, &mut |head, bytes| {
            let (seq, bytes, times) = (head.seq, bytes.into(), times.remove(&head.row));
            let collection = self.names.iter().find(|(_, name)| *name == head.collection);
            let collection = collection.map_or(-1, |(row, _)| *row);
            let then = Then { head, collection, bytes, times };
            let asked = self.of(number).filter(|_| seq > since);
            if asked.is_none_or(|asked| Version::new(&self.reader, &then).answers(asked)) {
                each(&then);
            }
            true
        })?;
        Ok(())
    }

    fn log_answer(&self, number: u32, client: &str, view: Option<u64>, found: &Found) {
        let (Some(log), Some(asked)) = (&self.log, self.of(number)) else { return };
        let query = asked.reading.find.query.to_string();
        let answer = Answered {
            client,
            query: &query,
            kind: asked.question.kind(),
            collection: asked.question.collection(),
            source: super::SOURCE,
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

    /// Keeps an answer, where there is room for it, and drops the oldest for it.
    fn keep(&mut self, number: u32, rows: &Arc<[i64]>) {
        let last_use = self.last_use + 1;
        let budget = self.budget;
        let Ok(asked) = self.must(number) else { return };
        let bytes = bytes_of(rows, &asked.question);
        if bytes > budget {
            return;
        }
        asked.kept = Some((Arc::clone(rows), last_use));
        self.held += bytes;
        self.last_use = last_use;
        self.used.insert(last_use, number);
        while self.held > self.budget
            && let Some((_, &oldest)) = self.used.first_key_value()
        {
            self.give_up(oldest, Why::Budget);
        }
    }

    /// Notes that a kept answer was used.
    fn use_of(&mut self, number: u32) {
        let last_use = self.last_use + 1;
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        if let Some((_, used)) = &mut asked.kept {
            self.used.remove(used);
            *used = last_use;
            self.used.insert(last_use, number);
            self.last_use = last_use;
        }
    }

    /// Drops a kept answer.
    fn give_up(&mut self, number: u32, why: Why) {
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        let bytes = asked.bytes();
        let Some((_, used)) = asked.kept.take() else { return };
        let answer = asked.answer;
        self.held -= bytes;
        self.used.remove(&used);
        self.note(&Event::Drop { answer, why, bytes });
        self.settle(number);
    }
}

/// What was found at a look.
#[derive(Default)]
struct Changes {
    batches: i64,
    items: usize,
    asked: usize,
    of: HashSet<(i64, larder_store::Kind)>,
    news: HashMap<u32, Vec<(What, Arc<Changed>)>>,
}

/// The collection that a question is put to.
fn place(names: &[(i64, Arc<str>)], question: &Question) -> Option<i64> {
    let name = question.collection()?;
    Some(names.iter().find(|(_, of)| **of == *name).map_or(-1, |(row, _)| *row))
}

/// What a change comes to for who asks, where the item answered before, and where it does now.
fn became(asked: &Asked, changed: &Changed, answered: bool, answers: bool) -> &'static [What] {
    let row = |then: &Option<Then>| then.as_ref().map(|then| then.head.row);
    match (answered, answers) {
        (false, false) => &[],
        (false, true) => &[What::Added],
        (true, false) => &[What::Removed],
        // It went and came back: it is called the same, and is another row.
        (true, true) if row(&changed.was) != row(&changed.is) => &[What::Removed, What::Added],
        (true, true) if matters(asked, changed) => &[What::Modified],
        (true, true) => &[],
    }
}

/// Does a change of an item that answered before, and still does, matter to who asks?
fn matters(asked: &Asked, changed: &Changed) -> bool {
    let (Some(was), Some(is)) = (&changed.was, &changed.is) else { return true };
    // Another item of its series changed.
    if was.head.seq != is.head.seq {
        return true;
    }
    let Some(window) = &asked.reading.window else { return false };
    was.times != is.times
        && occurrences(was.times.as_ref(), window) != occurrences(is.times.as_ref(), window)
}

fn occurrences(times: Option<&Times>, window: &Window) -> Vec<Occurring> {
    let mut all = Vec::new();
    if let Some(times) = times {
        times.each(window, &mut |occurring| {
            all.push(occurring);
            all.len() < COMPARED
        });
    }
    all
}

fn is_empty(rows: &Rows) -> bool {
    rows.added.is_empty() && rows.modified.is_empty() && rows.removed.is_empty()
}

fn micros(since: Timer) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
