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

use super::ahead::Ahead;
use super::budget::Budget;
use super::calendar::{Around, Calendar, Ended, MAX_HEAD, NO_TZID};
use super::files::{Files, Source};
use crate::error::Error;
use larder_format::problem::{Defect, Problem};
use larder_format::split::{Piece, Splitter, Stray};
use larder_store::{Deriver, Prepared};
use std::fs::File;
use std::io::{self, Read, Seek as _};
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
    /// A card, or a component of a calendar, and what that calendar says.
    Item(C, Option<Arc<Around>>),
    /// A calendar has ended.
    Calendar(Ended),
    /// Bytes that are not taken: the first of a stretch, with the reason, or more of it.
    Stray { why: Option<String>, bytes: Vec<u8> },
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
    found: Vec<Found<Vec<u8>>>,
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
            max_item: settings.max_item.max(1),
            in_stretch: false,
            empty: true,
            of_calendars: false,
            full: false,
            ahead: Ahead::default(),
            calendar: Calendar::default(),
        };
        pipeline.spawn("read", move || reading.run(files.sources))?;
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

fn parsed(bytes: Vec<u8>, around: Option<&Around>, derivers: &Derivers) -> Parsed {
    let said = |problem: &Problem| Said {
        line: problem.line,
        reason: problem.to_string(),
        cut: matches!(problem.what, Defect::NoEnd | Defect::NoComponentEnd),
    };
    let Some(around) = around else {
        let (prepared, problems) = derivers.contacts.contact(bytes)?;
        return Ok((prepared, problems.iter().map(said).collect()));
    };
    let (prepared, problems, notes) = derivers.calendar.component(bytes, &around.frame)?;
    let notes = notes.into_iter().map(|(line, reason)| Said { line, reason, cut: false });
    Ok((prepared, problems.iter().map(said).chain(notes).collect()))
}

impl Found<Vec<u8>> {
    fn parse(self, derivers: &Derivers) -> Found<Parsed> {
        let what = match self.what {
            What::Item(bytes, around) => {
                What::Item(parsed(bytes, around.as_deref(), derivers), around)
            }
            What::Calendar(ended) => What::Calendar(ended),
            What::Stray { why, bytes } => What::Stray { why, bytes },
            What::Unreadable(error) => What::Unreadable(error),
            What::End { empty } => What::End { empty },
        };
        Found { file: self.file, line: self.line, what }
    }

    fn cost(&self) -> usize {
        PIECE
            + match &self.what {
                What::Item(bytes, _) => bytes.len() + 4 * bytes.len().min(INDEXED),
                What::Calendar(ended) => ended.head.len(),
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
    max_item: usize,
    /// The input that is being read.
    file: Arc<str>,
    /// The parcel that is being filled, and its cost.
    found: Vec<Found<Vec<u8>>>,
    cost: usize,
    bytes_done: u64,
    /// Somebody still wants what is found.
    open: bool,
    /// The last piece was text between cards: more of that is the same stretch.
    in_stretch: bool,
    /// Nothing was found in this input yet.
    empty: bool,
    /// It holds calendars, by its name or by what was found.
    of_calendars: bool,
    /// Lines of the calendar were left out.
    full: bool,
    /// What is known of calendars that are still to come.
    ahead: Ahead,
    /// The calendar that is open.
    calendar: Calendar,
}

impl Reading {
    fn run(mut self, sources: Vec<Source>) {
        let mut chunk = vec![0; CHUNK];
        for source in sources {
            self.file = Arc::from(source.to_string());
            (self.in_stretch, self.empty) = (false, true);
            self.of_calendars = source.is_called_calendar();
            match self.read(source, &mut chunk) {
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
    fn read(&mut self, source: Source, chunk: &mut [u8]) -> io::Result<()> {
        let stem = Arc::from(source.stem());
        self.ahead = Ahead::of_stream(Arc::clone(&stem));
        let mut input: Box<dyn Read> = match source {
            Source::File(path) => {
                let mut file = File::open(path)?;
                if file.metadata()?.is_file() {
                    let wanted = || !self.budget.closed();
                    self.ahead = Ahead::of_file(&mut file, stem, self.max_item, chunk, &wanted)?;
                    file.rewind()?;
                }
                Box::new(file)
            }
            Source::Stream(stream) => stream,
        };
        self.next_calendar();
        let mut splitter = Splitter::new(self.max_item);
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

    fn next_calendar(&mut self) {
        (self.calendar, self.full) = (self.ahead.next(), false);
    }

    fn piece(&mut self, piece: Piece<'_>) {
        self.empty = false;
        match piece {
            Piece::Component { name: "VTIMEZONE", line, bytes, .. } => {
                self.in_stretch = false;
                if !self.calendar.define(bytes) {
                    self.stray(line, Some(NO_TZID.into()), bytes);
                }
            }
            Piece::Component { name, line, bytes, .. } => {
                self.in_stretch = false;
                let of_calendar = name != "VCARD";
                self.of_calendars |= of_calendar;
                let around = of_calendar.then(|| self.calendar.around());
                if of_calendar {
                    self.calendar.is_used();
                }
                self.add(line, What::Item(bytes.to_vec(), around));
            }
            Piece::CalendarBegins { .. } => {
                (self.in_stretch, self.of_calendars) = (false, true);
                self.next_calendar();
            }
            Piece::CalendarLines { line, bytes } => self.say(line, bytes),
            Piece::CalendarEnds { line, closed, .. } => {
                let ended = self.calendar.end(closed);
                self.next_calendar();
                self.add(line, What::Calendar(ended));
            }
            Piece::Stray { line, bytes, why, first } => {
                let between = !matches!(why, Stray::TooLong);
                // A file of nothing but text and stray ENDs is one stretch, however many lines it has.
                let first = first && !(between && self.in_stretch);
                self.in_stretch = between;
                self.stray(line, first.then(|| self.reason(&why)), bytes);
            }
        }
    }

    /// Lines of the calendar itself. What it has no room for is left out, and named once.
    fn say(&mut self, line: u64, bytes: &[u8]) {
        let rest = self.calendar.say(bytes);
        if rest.is_empty() {
            return;
        }
        let before = &bytes[..bytes.len() - rest.len()];
        let line = line + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        let first = !std::mem::replace(&mut self.full, true);
        let reason = || format!("a calendar's own lines beyond {}", size(MAX_HEAD));
        self.stray(line, first.then(reason), rest);
    }

    fn stray(&mut self, line: u64, why: Option<String>, bytes: &[u8]) {
        if why.is_some() || self.keep {
            self.add(line, What::Stray { why, bytes: self.kept(bytes) });
        }
    }

    /// Why bytes outside of all items are not taken.
    fn reason(&self, why: &Stray) -> String {
        match (why, self.of_calendars) {
            (Stray::Outside, false) => "text outside any card".into(),
            (Stray::Outside, true) => "text outside any calendar".into(),
            (Stray::TooLong, of_calendars) => {
                let what = if of_calendars { "component" } else { "card" };
                format!("{what} larger than {} (--max-item)", size(self.max_item))
            }
            (Stray::EndWithoutBegin, _) => "END without BEGIN".into(),
        }
    }

    fn kept(&self, bytes: &[u8]) -> Vec<u8> {
        if self.keep { bytes.to_vec() } else { Vec::new() }
    }

    fn add(&mut self, line: u64, what: What<Vec<u8>>) {
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

/// A number of bytes in the largest unit of which it is a whole number.
fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KB", b >> 10),
        b => format!("{b} bytes"),
    }
}
