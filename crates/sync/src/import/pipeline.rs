//! From files to parsed items: one thread reads and splits, several parse, and the caller receives
//! the results in the order of the input.
//!
//! This module writes and decides nothing. It is separate from the writer so that all code about
//! threads is in one place:
//!
//! * pieces travel in groups, each with a channel for its result; the caller holds the receivers in
//!   order, so no sorting is needed;
//! * the reading thread waits only for the input and the [`MemoryBudget`], the parsing threads only
//!   for work, the caller only for the next result: no deadlock is possible;
//! * dropping the [`ImportPipeline`] closes the budget and the channels, and so ends every thread.
//!   The threads are joined, except a thread that may be blocked reading a terminal or a pipe; it
//!   ends with the process.

use super::budget::MemoryBudget;
use super::calendar::{EnclosingCalendar, FinishedCalendar, OpenCalendar};
use super::files::{InputFiles, InputSource};
use super::input_origin::InputOrigin;
use super::prescan::LateCalendars;
use super::revisions::OLDER_REVISION_REASON;
use crate::error::Error;
use larder_edit::calendar_context_builder::{MAX_HEADER_BYTES, NO_TZID_REASON};
use larder_format::collection_type::COLLECTION_TYPES;
use larder_format::problem::Problem;
use larder_format::splitter::{SkipReason, Splitter, StreamPiece};
use larder_store::{CalendarContext, Extractor, Kind, ParsedItem};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The size of a read call.
const READ_BUFFER_BYTES: usize = 128 << 10;
/// The cost of a full group of pieces.
const JOB_BYTES: usize = 64 << 10;
/// The cost of all groups in flight.
const MAX_IN_FLIGHT_BYTES: usize = 8 << 20;
/// The cost of a piece in addition to its bytes.
const PIECE_OVERHEAD_BYTES: usize = 256;
/// The index rows of an item are some four times as large as its bytes; but longer text is not
/// indexed, and photos, which make items large, have no rows.
const MAX_INDEXED_BYTES: usize = 64 << 10;
/// While a caller waits for a slow input, it gets control back at this interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A parsed item and its warnings, or the bytes of an invalid one and the reason.
pub(super) type ItemParseResult = Result<(ParsedItem, Vec<ItemWarning>), (Vec<u8>, Problem)>;

/// A warning about a line of an item.
pub(super) struct ItemWarning {
    /// The line within the item, from 1.
    pub(super) line: u32,
    pub(super) reason: String,
    /// Whether the item has no END.
    pub(super) is_truncated: bool,
}

/// The extractors, by type of collection.
pub(super) type ImportExtractors = [Extractor; COLLECTION_TYPES.len()];

/// A piece of an input. `C` is an item: first its bytes, later the result of parsing.
pub(super) struct InputPiece<C> {
    /// The input.
    pub(super) file: Arc<InputOrigin>,
    /// The first line, from 1.
    pub(super) line: u64,
    pub(super) content: PieceContent<C>,
}

/// The content of a piece.
pub(super) enum PieceContent<C> {
    /// An item, its kind, and the calendar that contains it, if any.
    Item(C, Kind, Option<Arc<EnclosingCalendar>>),
    /// The end of a calendar.
    CalendarEnd(FinishedCalendar),
    /// Rejected bytes: the first bytes of a range, with the reason, or further bytes of it.
    Skipped { why: Option<String>, bytes: Vec<u8> },
    /// The input could not be read to its end.
    Unreadable(io::Error),
    /// The end of the input; `empty` if it contained only blank lines.
    InputEnd { empty: bool },
}

/// Settings of the pipeline.
pub(super) struct PipelineSettings {
    pub(super) threads: usize,
    pub(super) max_item: usize,
    /// Whether the rejected bytes are needed.
    pub(super) keep_rejects: bool,
}

/// Pieces in the order of the input.
pub(super) struct ParsedPieces {
    pub(super) pieces: Vec<InputPiece<ItemParseResult>>,
    /// The number of bytes that were read before these pieces were sent.
    pub(super) bytes_done: u64,
    /// The cost to return to the budget.
    cost: usize,
}

/// The next output of the pipeline.
pub(super) enum PipelineOutput {
    Pieces(ParsedPieces),
    /// Nothing yet: the caller can check whether to stop.
    Waiting,
    End,
}

/// A group of pieces for a parsing thread.
struct ParseJob {
    pieces: Vec<InputPiece<Vec<u8>>>,
    answer: SyncSender<Vec<InputPiece<ItemParseResult>>>,
}

/// A group of pieces that is being parsed.
struct PendingPieces {
    answer: Receiver<Vec<InputPiece<ItemParseResult>>>,
    bytes_done: u64,
    cost: usize,
}

/// The running threads and their output.
pub(super) struct ImportPipeline {
    pending: Option<Receiver<PendingPieces>>,
    budget: Arc<MemoryBudget>,
    threads: Vec<JoinHandle<()>>,
    /// Whether the reading thread never blocks on an external writer, so that it can be joined.
    can_join: bool,
}

impl ImportPipeline {
    /// Starts the threads.
    pub(super) fn start(
        files: InputFiles,
        derivers: &ImportExtractors,
        settings: &PipelineSettings,
    ) -> Result<ImportPipeline, Error> {
        let budget = Arc::new(MemoryBudget::new(MAX_IN_FLIGHT_BYTES));
        let (send_ticket, tickets) = channel();
        let (send_job, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        let mut pipeline = ImportPipeline {
            pending: Some(tickets),
            budget: Arc::clone(&budget),
            threads: Vec::new(),
            can_join: !files.is_unbounded,
        };
        for _ in 0..settings.threads.max(1) {
            let (jobs, budget, derivers) = (jobs.clone(), budget.clone(), derivers.clone());
            pipeline.spawn("parse", move || run_parser(&jobs, &budget, &derivers))?;
        }
        let reading = InputReader {
            budget,
            pending: send_ticket,
            jobs: send_job,
            keep_rejects: settings.keep_rejects,
            file: Arc::default(),
            pieces: Vec::new(),
            cost: 0,
            bytes_done: 0,
            is_wanted: true,
            max_item: settings.max_item.max(1),
            in_stretch: false,
            empty: true,
            has_calendars: false,
            is_header_full: false,
            late_calendars: LateCalendars::default(),
            calendar: OpenCalendar::default(),
            nesting_calendars: Vec::new(),
        };
        pipeline.spawn("read", move || reading.run(files.sources))?;
        Ok(pipeline)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = Builder::new().name(name.into()).spawn(run).map_err(Error::SpawnThread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Returns the next pieces in the order of the input.
    pub(super) fn next(&mut self) -> Result<PipelineOutput, Error> {
        let Some(tickets) = &self.pending else { return Ok(PipelineOutput::End) };
        match tickets.recv_timeout(POLL_INTERVAL) {
            Ok(ticket) => {
                let found = ticket.answer.recv().map_err(|_| Error::ThreadDied)?;
                let (bytes_done, cost) = (ticket.bytes_done, ticket.cost);
                Ok(PipelineOutput::Pieces(ParsedPieces { pieces: found, bytes_done, cost }))
            }
            Err(RecvTimeoutError::Timeout) => Ok(PipelineOutput::Waiting),
            Err(RecvTimeoutError::Disconnected) => {
                // The reading thread has ended, and so have all others.
                self.pending = None;
                match self.join() {
                    true => Ok(PipelineOutput::End),
                    false => Err(Error::ThreadDied),
                }
            }
        }
    }

    /// Returns the cost of processed pieces to the budget.
    pub(super) fn release_budget(&self, cost: usize) {
        self.budget.release(cost);
    }

    /// Joins all threads. Returns whether none panicked.
    fn join(&mut self) -> bool {
        let mut well = true;
        for thread in self.threads.drain(..) {
            well &= thread.join().is_ok();
        }
        well
    }
}

impl ParsedPieces {
    pub(super) fn cost(&self) -> usize {
        self.cost
    }
}

impl Drop for ImportPipeline {
    fn drop(&mut self) {
        self.budget.close();
        self.pending = None;
        if self.can_join {
            self.join();
        }
    }
}

/// A parsing thread. It ends when the reading thread has ended and no work is left.
fn run_parser(
    jobs: &Mutex<Receiver<ParseJob>>,
    budget: &MemoryBudget,
    derivers: &ImportExtractors,
) {
    loop {
        // One thread waits for work and holds the lock; the other threads wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(ParseJob { pieces: found, answer }) = job else { return };
        if budget.is_closed() {
            // The import was stopped and needs no result.
            return;
        }
        let found = found.into_iter().map(|found| found.parse(derivers)).collect();
        drop(answer.send(found));
    }
}

fn parse_item(
    bytes: Vec<u8>,
    kind: Kind,
    around: Option<&EnclosingCalendar>,
    derivers: &ImportExtractors,
) -> ItemParseResult {
    let said = |problem: &Problem| ItemWarning {
        line: problem.line,
        reason: problem.to_string(),
        is_truncated: problem.kind.is_missing_end(),
    };
    let extractor = &derivers[kind.collection_type().index()];
    let parsed = match around {
        None => extractor.parse_item(kind, bytes, &CalendarContext::default()),
        Some(around) => extractor.parse_item(kind, bytes, &around.context),
    };
    let parsed = parsed.map_err(|rejected| (rejected.bytes, rejected.problem))?;
    let warnings = parsed.warnings().iter().map(|warning| ItemWarning {
        line: warning.line,
        reason: warning.text.clone(),
        is_truncated: false,
    });
    let warnings = parsed.problems().iter().map(said).chain(warnings).collect();
    Ok((parsed, warnings))
}

impl InputPiece<Vec<u8>> {
    fn parse(self, derivers: &ImportExtractors) -> InputPiece<ItemParseResult> {
        let what = match self.content {
            PieceContent::Item(bytes, kind, around) => {
                let parsed = parse_item(bytes, kind, around.as_deref(), derivers);
                PieceContent::Item(parsed, kind, around)
            }
            PieceContent::CalendarEnd(ended) => PieceContent::CalendarEnd(ended),
            PieceContent::Skipped { why, bytes } => PieceContent::Skipped { why, bytes },
            PieceContent::Unreadable(error) => PieceContent::Unreadable(error),
            PieceContent::InputEnd { empty } => PieceContent::InputEnd { empty },
        };
        InputPiece { file: self.file, line: self.line, content: what }
    }

    fn cost(&self) -> usize {
        PIECE_OVERHEAD_BYTES
            + match &self.content {
                PieceContent::Item(bytes, ..) => {
                    bytes.len() + 4 * bytes.len().min(MAX_INDEXED_BYTES)
                }
                PieceContent::CalendarEnd(ended) => ended.header.len(),
                PieceContent::Skipped { bytes, .. } => bytes.len(),
                PieceContent::Unreadable(_) | PieceContent::InputEnd { .. } => 0,
            }
    }
}

/// The reading thread.
struct InputReader {
    budget: Arc<MemoryBudget>,
    pending: Sender<PendingPieces>,
    jobs: Sender<ParseJob>,
    keep_rejects: bool,
    max_item: usize,
    /// The input that is being read.
    file: Arc<InputOrigin>,
    /// The pieces of the next group, and their cost.
    pieces: Vec<InputPiece<Vec<u8>>>,
    cost: usize,
    bytes_done: u64,
    /// Whether the caller still waits for results.
    is_wanted: bool,
    /// Whether the last piece was text between items; following text then continues the same
    /// rejected range.
    in_stretch: bool,
    /// Whether nothing was found in this input so far.
    empty: bool,
    /// Whether it contains calendars, by its name or its content.
    has_calendars: bool,
    /// Whether properties of the calendar were left out.
    is_header_full: bool,
    /// The late calendars that the first pass found.
    late_calendars: LateCalendars,
    /// The calendar that is open.
    calendar: OpenCalendar,
    /// The lines at which a calendar that contains nothing was followed by another one, which may
    /// be inside it: without an END at the end of the input, it is incomplete.
    nesting_calendars: Vec<u64>,
}

impl InputReader {
    fn run(mut self, sources: Vec<InputSource>) {
        let mut chunk = vec![0; READ_BUFFER_BYTES];
        for source in sources {
            self.file = Arc::new(source.origin());
            (self.in_stretch, self.empty) = (false, true);
            self.has_calendars = source.has_calendar_extension();
            let result = self.read_input(source, &mut chunk);
            for line in std::mem::take(&mut self.nesting_calendars) {
                let ended = OpenCalendar::for_file(Arc::clone(&self.file)).finish(false);
                self.add_piece(line, PieceContent::CalendarEnd(ended));
            }
            match result {
                Ok(()) => self.add_piece(0, PieceContent::InputEnd { empty: self.empty }),
                Err(error) => self.add_piece(0, PieceContent::Unreadable(error)),
            }
            if !self.is_wanted {
                return;
            }
        }
        self.send_job();
    }

    /// Reads one input. After a read error the rest in the splitter is an incomplete item, which is
    /// dropped rather than written over the complete one.
    fn read_input(&mut self, source: InputSource, chunk: &mut [u8]) -> io::Result<()> {
        let origin = Arc::clone(&self.file);
        self.late_calendars = LateCalendars::for_stream(Arc::clone(&origin));
        let mut input: Box<dyn Read> = match source {
            InputSource::File { path, .. } => {
                let mut file = File::open(path)?;
                if file.metadata()?.is_file() {
                    let wanted = || !self.budget.is_closed();
                    self.late_calendars =
                        LateCalendars::scan_file(&mut file, origin, self.max_item, chunk, &wanted)?;
                    file.rewind()?;
                }
                Box::new(file)
            }
            InputSource::Stream(stream) => stream,
        };
        self.begin_calendar();
        let mut splitter = Splitter::new(self.max_item);
        while self.is_wanted && !self.budget.is_closed() {
            let count = match input.read(chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.bytes_done += count as u64;
            if count == 0 {
                splitter.finish(&mut |piece| self.handle_piece(piece));
                break;
            }
            splitter.push(&chunk[..count], &mut |piece| self.handle_piece(piece));
        }
        Ok(())
    }

    fn begin_calendar(&mut self) {
        (self.calendar, self.is_header_full) = (self.late_calendars.next_calendar(), false);
    }

    fn handle_piece(&mut self, piece: StreamPiece<'_>) {
        self.empty = false;
        match piece {
            StreamPiece::Component { name: "VTIMEZONE", line, bytes, .. } => {
                self.in_stretch = false;
                if !self.calendar.add_zone(bytes) {
                    self.add_skipped(line, Some(NO_TZID_REASON.into()), bytes);
                }
            }
            StreamPiece::Component { name, line, bytes, closed } => {
                self.in_stretch = false;
                let kind = Kind::from_stream_name(name);
                let is_in_calendar = kind.is_exported_in_calendar();
                self.has_calendars |= is_in_calendar;
                let around = is_in_calendar.then(|| self.calendar.enclosing_calendar());
                if is_in_calendar {
                    self.calendar.mark_used();
                }
                let revisions = &self.late_calendars.revisions;
                if closed
                    && kind.has_schedule()
                    && around.as_ref().is_some_and(|around| revisions.has_newer(around, bytes))
                {
                    self.add_skipped(line, Some(OLDER_REVISION_REASON.into()), bytes);
                    return;
                }
                self.add_piece(line, PieceContent::Item(bytes.to_vec(), kind, around));
            }
            StreamPiece::CalendarBegins { .. } => {
                (self.in_stretch, self.has_calendars) = (false, true);
                self.begin_calendar();
            }
            StreamPiece::CalendarLines { line, bytes, utf16_text } => {
                self.add_calendar_lines(line, bytes, utf16_text);
            }
            StreamPiece::CalendarEnds { line, closed, before_calendar, .. } => {
                let mut ended = self.calendar.finish(closed);
                if before_calendar && std::mem::take(&mut ended.is_truncated) {
                    self.nesting_calendars.push(line);
                }
                self.begin_calendar();
                self.add_piece(line, PieceContent::CalendarEnd(ended));
            }
            StreamPiece::Skipped { why: SkipReason::NestedCalendarEnd, .. } => {
                self.nesting_calendars.pop();
            }
            StreamPiece::Skipped { line, bytes, why, first } => {
                let between = matches!(why, SkipReason::Outside | SkipReason::EndWithoutBegin);
                // A file that contains only text and stray END lines is one range, whatever its
                // length.
                let first = first && !(between && self.in_stretch);
                self.in_stretch = between;
                self.add_skipped(line, first.then(|| self.skip_reason(&why)), bytes);
            }
        }
    }

    /// Adds properties of the calendar. Properties beyond the limit are left out and reported once.
    fn add_calendar_lines(&mut self, line: u64, bytes: &[u8], utf16_text: Option<&str>) {
        let rest = self.calendar.add_lines(bytes, utf16_text);
        if rest.is_empty() {
            return;
        }
        let before = &bytes[..bytes.len() - rest.len()];
        let line = line + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        let first = !std::mem::replace(&mut self.is_header_full, true);
        let reason = || format!("a calendar's own lines beyond {}", format_size(MAX_HEADER_BYTES));
        self.add_skipped(line, first.then(reason), rest);
    }

    fn add_skipped(&mut self, line: u64, why: Option<String>, bytes: &[u8]) {
        if why.is_some() || self.keep_rejects {
            self.add_piece(line, PieceContent::Skipped { why, bytes: self.bytes_to_keep(bytes) });
        }
    }

    /// Returns the reason why bytes outside all items are rejected.
    fn skip_reason(&self, why: &SkipReason) -> String {
        match (why, self.has_calendars) {
            (SkipReason::Outside, false) => "text outside any item".into(),
            (SkipReason::Outside, true) => "text outside any calendar".into(),
            (SkipReason::TooLarge, _) => {
                format!("item larger than {} (--max-item)", format_size(self.max_item))
            }
            (SkipReason::EndWithoutBegin | SkipReason::NestedCalendarEnd, _) => {
                "END without BEGIN".into()
            }
            (SkipReason::DamagedBegin, _) => {
                "the BEGIN line is damaged: the component cannot be read".into()
            }
        }
    }

    fn bytes_to_keep(&self, bytes: &[u8]) -> Vec<u8> {
        if self.keep_rejects { bytes.to_vec() } else { Vec::new() }
    }

    fn add_piece(&mut self, line: u64, what: PieceContent<Vec<u8>>) {
        let found = InputPiece { file: Arc::clone(&self.file), line, content: what };
        self.cost += found.cost();
        self.pieces.push(found);
        if self.cost >= JOB_BYTES {
            self.send_job();
        }
    }

    fn send_job(&mut self) {
        let (found, cost) = (std::mem::take(&mut self.pieces), std::mem::take(&mut self.cost));
        if found.is_empty() || !self.is_wanted {
            return;
        }
        let (give, answer) = sync_channel(1);
        let ticket = PendingPieces { answer, bytes_done: self.bytes_done, cost };
        self.is_wanted = self.budget.acquire(cost)
            && self.pending.send(ticket).is_ok()
            && self.jobs.send(ParseJob { pieces: found, answer: give }).is_ok();
    }
}

/// Formats a number of bytes in the largest unit of which it is a multiple.
fn format_size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KB", b >> 10),
        b => format!("{b} bytes"),
    }
}
