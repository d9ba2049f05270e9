//! A first pass over a file of calendars. It finds properties that stand after the components that
//! need them.
//!
//! A calendar may define a time zone, or have its name, after a component (RFC 5545, 3.6,
//! prescribes no order), and a million components cannot be held in memory until it appears. So a
//! file of calendars is read twice. A calendar that has everything before its first component, as
//! nearly all do, is not stored. A stream is read only once. Separate from the pipeline because
//! the prescan parses no items.

use super::calendar::OpenCalendar;
use super::input_origin::InputOrigin;
use super::revisions::{NewestRevisions, RevisionScan};
use larder_format::kind::Kind;
use larder_format::splitter::{Splitter, StreamPiece};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// The memory for late calendars of a file. Further calendars are treated like the calendars of a
/// stream.
const PRESCAN_LIMIT_BYTES: usize = 32 << 20;

/// The calendars of a file with a property or zone after a component, by their numbers.
#[derive(Default)]
pub(super) struct LateCalendars {
    origin: Arc<InputOrigin>,
    late: HashMap<u64, OpenCalendar>,
    next_number: u64,
    /// The newest revisions of its items.
    pub(super) revisions: NewestRevisions,
}

/// The calendar that is being read.
struct Prescan {
    late_calendars: LateCalendars,
    revisions: RevisionScan,
    calendar: OpenCalendar,
    has_pieces: bool,
    /// The rest of [`PRESCAN_LIMIT_BYTES`].
    remaining_bytes: usize,
    /// Whether the file begins with an item outside any calendar; such a file has no calendar.
    has_no_calendar: bool,
}

impl LateCalendars {
    /// The result for a stream: nothing is known.
    pub(super) fn for_stream(origin: Arc<InputOrigin>) -> LateCalendars {
        LateCalendars { origin, ..LateCalendars::default() }
    }

    /// Reads a file while `wanted` returns `true`.
    pub(super) fn scan_file(
        input: &mut dyn Read,
        origin: Arc<InputOrigin>,
        max_item: usize,
        chunk: &mut [u8],
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<LateCalendars> {
        let calendar = OpenCalendar::for_file(Arc::clone(&origin));
        let ahead = LateCalendars::for_stream(origin);
        let mut looking = Prescan {
            late_calendars: ahead,
            revisions: RevisionScan::default(),
            calendar,
            has_pieces: false,
            remaining_bytes: PRESCAN_LIMIT_BYTES,
            has_no_calendar: false,
        };
        let mut splitter = Splitter::new(max_item);
        while wanted() && !looking.has_no_calendar {
            let count = match input.read(chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else { break };
            splitter.push(read, &mut |piece| looking.handle_piece(piece));
        }
        splitter.finish(&mut |piece| looking.handle_piece(piece));
        looking.finish_calendar();
        let revisions = looking.revisions.finish();
        Ok(LateCalendars { next_number: 0, revisions, ..looking.late_calendars })
    }

    /// Returns the next calendar. The first stands for the components before any calendar.
    pub(super) fn next_calendar(&mut self) -> OpenCalendar {
        let number = self.next_number;
        self.next_number += 1;
        let fresh = || OpenCalendar::for_file(Arc::clone(&self.origin));
        self.late.remove(&number).unwrap_or_else(fresh)
    }
}

impl Prescan {
    fn handle_piece(&mut self, piece: StreamPiece<'_>) {
        match piece {
            StreamPiece::CalendarBegins { .. } | StreamPiece::CalendarEnds { .. } => {
                self.finish_calendar();
            }
            StreamPiece::CalendarLines { bytes, utf16_text, .. } => {
                self.calendar.add_lines(bytes, utf16_text);
            }
            StreamPiece::Component { name: "VTIMEZONE", bytes, .. } => {
                // A definition without a TZID is reported when the file is read.
                let _has_name = self.calendar.add_zone(bytes);
            }
            StreamPiece::Component { name, bytes, closed, .. } => {
                let kind = Kind::from_stream_name(name);
                match kind.is_exported_in_calendar() {
                    true => self.calendar.mark_used(),
                    false => self.has_no_calendar |= !self.has_pieces,
                }
                if closed && kind.has_schedule() {
                    self.revisions.add(&self.calendar.enclosing_calendar(), bytes);
                }
            }
            StreamPiece::Skipped { .. } => return,
        }
        self.has_pieces = true;
    }

    fn finish_calendar(&mut self) {
        if let Some(calendar) = self.calendar.take_if_late()
            && let Some(room) = self.remaining_bytes.checked_sub(calendar.memory_cost())
        {
            self.remaining_bytes = room;
            self.late_calendars.late.insert(self.late_calendars.next_number, calendar);
        }
        self.late_calendars.next_number += 1;
        self.calendar.begin_next();
    }
}
