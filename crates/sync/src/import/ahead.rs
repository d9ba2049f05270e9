//! Looking through a file before it is read: what its calendars say behind their components.
//!
//! A calendar may define a time zone, or say its name, behind what needs it (RFC 5545, 3.6, asks for no order), and a million
//! components cannot wait in memory for that. So a file of calendars is read twice, the first time for nothing but that, and
//! a calendar that says all before its first component, as nearly all do, is not remembered. A stream passes only once. It is
//! apart because it takes no item in.

use super::calendar::Calendar;
use larder_format::split::{Piece, Splitter};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// So much is remembered of a file, in bytes: of more such calendars no more is known than of those in a stream.
const ROOM: usize = 32 << 20;

/// The calendars of a file that say something behind a component, by their numbers.
#[derive(Default)]
pub(super) struct Ahead {
    stem: Arc<str>,
    late: HashMap<u64, Calendar>,
    next: u64,
}

/// The calendar that is looked at.
struct Looking {
    ahead: Ahead,
    calendar: Calendar,
    any: bool,
    /// What is left of [`ROOM`].
    room: usize,
    /// The file begins with a card, so it is an address book.
    is_book: bool,
}

impl Ahead {
    /// Nothing is known of a stream of this name.
    pub(super) fn of_stream(stem: Arc<str>) -> Ahead {
        Ahead { stem, ..Ahead::default() }
    }

    /// Looks through a file, as long as somebody wants to know.
    pub(super) fn of_file(
        input: &mut dyn Read,
        stem: Arc<str>,
        max_item: usize,
        chunk: &mut [u8],
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Ahead> {
        let calendar = Calendar::of_file(Arc::clone(&stem));
        let ahead = Ahead::of_stream(stem);
        let mut looking = Looking { ahead, calendar, any: false, room: ROOM, is_book: false };
        let mut splitter = Splitter::new(max_item);
        while wanted() && !looking.is_book {
            let count = match input.read(chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else { break };
            splitter.push(read, &mut |piece| looking.piece(piece));
        }
        splitter.finish(&mut |piece| looking.piece(piece));
        looking.next();
        Ok(Ahead { next: 0, ..looking.ahead })
    }

    /// The calendar that comes now: the first one is what is around components before any calendar.
    pub(super) fn next(&mut self) -> Calendar {
        let number = self.next;
        self.next += 1;
        let fresh = || Calendar::of_file(Arc::clone(&self.stem));
        self.late.remove(&number).unwrap_or_else(fresh)
    }
}

impl Looking {
    fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::CalendarBegins { .. } | Piece::CalendarEnds { .. } => self.next(),
            Piece::CalendarLines { bytes, .. } => {
                self.calendar.say(bytes);
            }
            Piece::Component { name: "VTIMEZONE", bytes, .. } => {
                // What has no name is named when the file is read.
                let _has_name = self.calendar.define(bytes);
            }
            Piece::Component { name: "VCARD", .. } => self.is_book |= !self.any,
            Piece::Component { .. } => self.calendar.is_used(),
            Piece::Stray { .. } => return,
        }
        self.any = true;
    }

    fn next(&mut self) {
        if let Some(calendar) = self.calendar.if_late()
            && let Some(room) = self.room.checked_sub(calendar.cost())
        {
            self.room = room;
            self.ahead.late.insert(self.ahead.next, calendar);
        }
        self.ahead.next += 1;
        self.calendar.begin();
    }
}
