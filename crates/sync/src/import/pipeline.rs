//! From files to parsed cards: one thread reads and splits, several parse, and the caller gets what they
//! found in the order in which it lies in the input, whoever was done first.
//!
//! Nothing is written here, and nothing decided about a card. It is apart so that all that concerns
//! threads is in one place:
//!
//! * pieces travel in parcels, each with a channel of its own for its answer; the caller holds the
//!   receiving ends in order, so order needs no sorting;
//! * the reading thread waits for nothing but the input and the [`Budget`], the parsing ones for nothing
//!   but work, the caller for nothing but the next answer: no two can wait for each other;
//! * dropping the [`Pipeline`] closes the budget and the channels, and with that ends every thread. They
//!   are waited for, unless one may be stuck in reading a terminal or a pipe: that one ends with the
//!   process, and touches nothing until then.

use super::budget::Budget;
use super::calendar::Calendar;
use super::files::{Files, Source};
use crate::error::Error;
use larder_format::problem::{Defect, Problem};
use larder_format::split::{Piece, Splitter, Stray};
use larder_store::{Deriver, Frame, Prepared};
use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes asked of the system at once.
const CHUNK: usize = 128 << 10;
/// A parcel that costs this much is sent off.
const PARCEL: usize = 64 << 10;
/// What all parcels in flight may cost together.
const IN_FLIGHT: usize = 8 << 20;
/// What a piece costs beside its bytes.
const PIECE: usize = 256;
/// Index rows take some four times the bytes they are made from; but text beyond this is not indexed, and
/// photos, which make cards large, have no rows.
const INDEXED: usize = 64 << 10;
/// How often a caller that waits for a slow input gets to look around.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// An item after parsing: ready for the store, with what there is to say about it, by line; or its bytes and why it is
/// none.
pub(super) type Parsed = Result<(Prepared, Vec<Said>), (Vec<u8>, Problem)>;

/// What there is to say about a line of an item.
pub(super) struct Said {
    /// The line within the item, from 1.
    pub(super) line: u32,
    pub(super) reason: String,
    /// The item is not closed.
    pub(super) cut: bool,
}

/// What derives the items of each family.
#[derive(Clone)]
pub(super) struct Derivers {
    pub(super) contacts: Deriver,
    pub(super) calendar: Deriver,
}

/// An item as it lies in the input.
pub(super) struct Raw {
    bytes: Vec<u8>,
    /// What the calendar around it says; `None`: it is a card.
    frame: Option<Arc<Frame>>,
}

/// A piece of an input. `C` is an item: its bytes, later what was made of them.
pub(super) struct Found<C> {
    /// The input's name.
    pub(super) file: Arc<str>,
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    pub(super) what: What<C>,
}

/// What a piece is.
pub(super) enum What<C> {
    /// A card, or a component of a calendar, and the name of that calendar.
    Item(C, Option<Arc<str>>),
    /// A calendar has ended: its name, its own lines, and how many time zones it defined.
    Calendar { name: Arc<str>, head: Vec<u8>, zones: u64 },
    /// Bytes that are no component; the first of a stretch, or more of it.
    Stray { why: Stray, first: bool, bytes: Vec<u8> },
    /// The input could not be opened, or not be read to its end.
    Unreadable(io::Error),
    /// The input was read to its end; was there anything but blank lines in it?
    End { empty: bool },
}

/// How to read.
pub(super) struct Settings {
    pub(super) threads: usize,
    pub(super) max_item: usize,
    /// The bytes of what is not taken are wanted.
    pub(super) keep: bool,
}

/// What has been found, in the order of the input.
pub(super) struct Parcel {
    pub(super) found: Vec<Found<Parsed>>,
    /// Bytes of the input read when it was sent off.
    pub(super) bytes_done: u64,
    /// What to give back once `found` is dealt with.
    cost: usize,
}

/// What the caller gets next.
pub(super) enum Next {
    Parcel(Parcel),
    /// Nothing yet: a moment to see whether to go on.
    Waiting,
    End,
}

/// A parcel on its way to a parsing thread.
struct Job {
    found: Vec<Found<Raw>>,
    answer: SyncSender<Vec<Found<Parsed>>>,
}

/// The caller's half of a parcel.
struct Ticket {
    answer: Receiver<Vec<Found<Parsed>>>,
    bytes_done: u64,
    cost: usize,
}

/// The threads at work, and what comes out of them.
pub(super) struct Pipeline {
    tickets: Option<Receiver<Ticket>>,
    budget: Arc<Budget>,
    threads: Vec<JoinHandle<()>>,
    /// Reading never waits for somebody outside, so the threads can be waited for at any time.
    prompt: bool,
}

impl Pipeline {
    /// Starts to read.
    pub(super) fn start(
        files: Files,
        derivers: &Derivers,
        settings: &Settings,
    ) -> Result<Pipeline, Error> {
        let budget = Arc::new(Budget::new(IN_FLIGHT));
        let (send_ticket, tickets) = channel();
        let (send_job, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        let mut pipeline = Pipeline {
            tickets: Some(tickets),
            budget: Arc::clone(&budget),
            threads: Vec::new(),
            prompt: !files.endless,
        };
        for _ in 0..settings.threads.max(1) {
            let (jobs, budget, derivers) = (jobs.clone(), budget.clone(), derivers.clone());
            pipeline.spawn("parse", move || parse(&jobs, &budget, &derivers))?;
        }
        let reading = Reading {
            budget,
            tickets: send_ticket,
            jobs: send_job,
            keep: settings.keep,
            file: Arc::from(""),
            found: Vec::new(),
            cost: 0,
            bytes_done: 0,
            open: true,
            in_stretch: false,
            empty: true,
            calendar: Calendar::default(),
        };
        let max_item = settings.max_item.max(1);
        pipeline.spawn("read", move || reading.run(files.sources, max_item))?;
        Ok(pipeline)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = Builder::new().name(name.into()).spawn(run).map_err(Error::Threads)?;
        self.threads.push(thread);
        Ok(())
    }

    /// The next parcel, in the order of the input.
    pub(super) fn next(&mut self) -> Result<Next, Error> {
        let Some(tickets) = &self.tickets else { return Ok(Next::End) };
        match tickets.recv_timeout(LOOK_AROUND) {
            Ok(ticket) => {
                let found = ticket.answer.recv().map_err(|_| Error::Broken)?;
                let (bytes_done, cost) = (ticket.bytes_done, ticket.cost);
                Ok(Next::Parcel(Parcel { found, bytes_done, cost }))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Waiting),
            Err(RecvTimeoutError::Disconnected) => {
                // The reading thread is done, and with it all others.
                self.tickets = None;
                match self.join() {
                    true => Ok(Next::End),
                    false => Err(Error::Broken),
                }
            }
        }
    }

    /// Makes room for more, once a parcel is dealt with.
    pub(super) fn settle(&self, cost: usize) {
        self.budget.give(cost);
    }

    /// Waits for all threads. Did every one end as it should?
    fn join(&mut self) -> bool {
        let mut well = true;
        for thread in self.threads.drain(..) {
            well &= thread.join().is_ok();
        }
        well
    }
}

impl Parcel {
    pub(super) fn cost(&self) -> usize {
        self.cost
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.budget.close();
        self.tickets = None;
        if self.prompt {
            self.join();
        }
    }
}

/// A parsing thread: ends when the reading one is gone and no work is left.
fn parse(jobs: &Mutex<Receiver<Job>>, budget: &Budget, derivers: &Derivers) {
    loop {
        // Held while waiting: the others wait for the lock instead, which is the same.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { found, answer }) = job else { return };
        if budget.closed() {
            // The import ended early, and wants no answer.
            return;
        }
        let found = found.into_iter().map(|found| found.parse(derivers)).collect();
        drop(answer.send(found));
    }
}

impl Raw {
    fn parse(self, derivers: &Derivers) -> Parsed {
        let said = |problem: &Problem| Said {
            line: problem.line,
            reason: problem.to_string(),
            cut: matches!(problem.what, Defect::NoEnd | Defect::NoComponentEnd),
        };
        let Some(frame) = &self.frame else {
            let (prepared, problems) = derivers.contacts.contact(self.bytes)?;
            return Ok((prepared, problems.iter().map(said).collect()));
        };
        let (prepared, problems, notes) = derivers.calendar.component(self.bytes, frame)?;
        let notes = notes.into_iter().map(|(line, reason)| Said { line, reason, cut: false });
        Ok((prepared, problems.iter().map(said).chain(notes).collect()))
    }
}

impl Found<Raw> {
    fn parse(self, derivers: &Derivers) -> Found<Parsed> {
        let what = match self.what {
            What::Item(raw, calendar) => What::Item(raw.parse(derivers), calendar),
            What::Calendar { name, head, zones } => What::Calendar { name, head, zones },
            What::Stray { why, first, bytes } => What::Stray { why, first, bytes },
            What::Unreadable(error) => What::Unreadable(error),
            What::End { empty } => What::End { empty },
        };
        Found { file: self.file, line: self.line, what }
    }

    fn cost(&self) -> usize {
        PIECE
            + match &self.what {
                What::Item(Raw { bytes, .. }, _) => bytes.len() + 4 * bytes.len().min(INDEXED),
                What::Calendar { head, .. } => head.len(),
                What::Stray { bytes, .. } => bytes.len(),
                What::Unreadable(_) | What::End { .. } => 0,
            }
    }
}

/// The reading thread.
struct Reading {
    budget: Arc<Budget>,
    tickets: Sender<Ticket>,
    jobs: Sender<Job>,
    keep: bool,
    /// The input that is being read.
    file: Arc<str>,
    /// The parcel that is being filled, and its cost.
    found: Vec<Found<Raw>>,
    cost: usize,
    bytes_done: u64,
    /// Somebody still wants what is found.
    open: bool,
    /// The last piece was text between cards: more of that is the same stretch.
    in_stretch: bool,
    /// Nothing was found in this input yet.
    empty: bool,
    /// The calendar that is open.
    calendar: Calendar,
}

impl Reading {
    fn run(mut self, sources: Vec<Source>, max_item: usize) {
        let mut chunk = vec![0; CHUNK];
        for source in sources {
            self.file = Arc::from(source.to_string());
            (self.in_stretch, self.empty) = (false, true);
            self.calendar = Calendar::of_file(source.stem());
            match self.read(source, max_item, &mut chunk) {
                Ok(()) => self.add(0, What::End { empty: self.empty }),
                Err(error) => self.add(0, What::Unreadable(error)),
            }
            if !self.open {
                return;
            }
        }
        self.send();
    }

    /// Reads one input. With an error, what is left in the splitter is the half of a card: better
    /// forgotten than written over the whole one.
    fn read(&mut self, source: Source, max_item: usize, chunk: &mut [u8]) -> io::Result<()> {
        let mut input: Box<dyn Read> = match source {
            Source::File(path) => Box::new(File::open(path)?),
            Source::Stream(stream) => stream,
        };
        let mut splitter = Splitter::new(max_item);
        while self.open && !self.budget.closed() {
            let count = match input.read(chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.bytes_done += count as u64;
            if count == 0 {
                splitter.finish(&mut |piece| self.piece(piece));
                break;
            }
            splitter.push(&chunk[..count], &mut |piece| self.piece(piece));
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>) {
        self.empty = false;
        match piece {
            Piece::Component { name: "VTIMEZONE", bytes, .. } => {
                self.in_stretch = false;
                self.calendar.define(bytes);
            }
            Piece::Component { name, line, bytes, .. } => {
                self.in_stretch = false;
                let card = name == "VCARD";
                let frame = if card { None } else { Some(self.calendar.frame()) };
                let calendar = if card { None } else { Some(self.calendar.name()) };
                self.add(line, What::Item(Raw { bytes: bytes.to_vec(), frame }, calendar));
            }
            Piece::CalendarBegins { .. } => {
                self.in_stretch = false;
                self.calendar.begin();
            }
            Piece::CalendarLines { bytes, .. } => self.calendar.say(bytes),
            Piece::CalendarEnds { line, .. } => {
                let (name, (head, zones)) = (self.calendar.name(), self.calendar.end());
                self.add(line, What::Calendar { name, head, zones });
            }
            Piece::Stray { line, bytes, why, first } => {
                let between = !matches!(why, Stray::TooLong);
                // A file of nothing but text and stray ENDs is one stretch, however many lines it has.
                let first = first && !(between && self.in_stretch);
                self.in_stretch = between;
                if first || self.keep {
                    self.add(line, What::Stray { why, first, bytes: self.kept(bytes) });
                }
            }
        }
    }

    fn kept(&self, bytes: &[u8]) -> Vec<u8> {
        if self.keep { bytes.to_vec() } else { Vec::new() }
    }

    fn add(&mut self, line: u64, what: What<Raw>) {
        let found = Found { file: Arc::clone(&self.file), line, what };
        self.cost += found.cost();
        self.found.push(found);
        if self.cost >= PARCEL {
            self.send();
        }
    }

    fn send(&mut self) {
        let (found, cost) = (std::mem::take(&mut self.found), std::mem::take(&mut self.cost));
        if found.is_empty() || !self.open {
            return;
        }
        let (give, answer) = sync_channel(1);
        let ticket = Ticket { answer, bytes_done: self.bytes_done, cost };
        self.open = self.budget.take(cost)
            && self.tickets.send(ticket).is_ok()
            && self.jobs.send(Job { found, answer: give }).is_ok();
    }
}
