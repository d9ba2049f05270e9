//! From a stream of bytes to the items in it: finds where components begin and end.
//!
//! It does no I/O: bytes are pushed in pieces of any size, and items come out as they become whole. It
//! looks at the first byte of each line and takes nothing apart; what an item means is for
//! [`contact`](crate::contact) and others to say. Bytes are given as they came.
//! Whatever the stream, no more is held than the largest item allowed and what was pushed last.
//!
//! A card is one piece. A calendar (VCALENDAR) may hold a million components, so it is none: it begins, its
//! own lines and its components come one by one, and it ends. Components without a calendar around them come
//! out alike. All pieces together are the stream, but for blank lines before a piece, and for byte-order
//! marks.
//!
//! What is broken is closed where that is certain: a component by the next one that cannot be inside it, by
//! the END of its calendar, or by the end of the stream; a calendar by the next calendar, by a card, or by
//! the end of the stream. An END that nothing was begun for does not end anything.

use crate::line::{self, NAME_LIMIT};
use crate::wide::{BOM, Order};

/// A longer line neither begins nor ends a component, and is not blank.
const MARKER_LIMIT: usize = 256;

/// Room for this many bytes is kept when an item has gone by.
const KEPT: usize = 1 << 20;

/// A part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A component that is not inside another one, or only in a calendar: the bytes from its BEGIN to the end
    /// of its END line.
    Component {
        /// Its name in upper case.
        name: &'a str,
        /// The line of its BEGIN, counted from 1 in the stream.
        line: u64,
        /// All of it.
        bytes: &'a [u8],
        /// Was there an END? Without one it goes up to the next BEGIN that it cannot hold, or to the end of
        /// what it is in.
        closed: bool,
    },
    /// A calendar begins: what comes before [`Piece::CalendarEnds`] is in it.
    CalendarBegins {
        /// The line of its BEGIN, counted from 1 in the stream.
        line: u64,
        /// That line.
        bytes: &'a [u8],
    },
    /// Lines of a calendar itself: a run of its own properties, before, between or behind its components.
    /// Behind the BEGIN line, they can be read as a component.
    CalendarLines {
        /// The first of them, counted from 1 in the stream.
        line: u64,
        /// All of them.
        bytes: &'a [u8],
    },
    /// A calendar ends.
    CalendarEnds {
        /// The line of its END, or the line that shows that there is none.
        line: u64,
        /// That END line; nothing where there is none.
        bytes: &'a [u8],
        /// Was there an END?
        closed: bool,
    },
    /// A part of a stretch that is no item.
    Stray {
        /// The line in which this part begins, counted from 1 in the stream.
        line: u64,
        /// The part. Where a stretch is divided depends on how the bytes were pushed.
        bytes: &'a [u8],
        /// Why it is no item.
        why: Stray,
        /// Does the stretch begin here? The parts that follow with `false` belong to it.
        first: bool,
    },
}

/// Why a stretch is no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Text outside any component.
    Outside,
    /// A component with more bytes than allowed, or so many of a calendar's own lines.
    TooLong,
    /// An END that nothing was begun for.
    EndWithoutBegin,
}

/// Finds the items in a stream.
#[derive(Debug)]
pub struct Splitter {
    /// What was pushed and not given out yet.
    held: Vec<u8>,
    scan: Scan,
}

impl Splitter {
    /// A splitter for a new stream. Components of more than `max_item` bytes are given out as
    /// [`Stray::TooLong`].
    #[must_use]
    pub fn new(max_item: usize) -> Splitter {
        Splitter { held: Vec::new(), scan: Scan::new(max_item) }
    }

    /// Takes the next bytes of the stream; the sink gets each piece that is now whole.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Piece<'_>)) {
        if self.held.is_empty() {
            let used = self.scan.advance(bytes, false, sink);
            self.held.extend_from_slice(&bytes[used..]);
        } else {
            self.held.extend_from_slice(bytes);
            let used = self.scan.advance(&self.held, false, sink);
            self.held.drain(..used);
            if self.held.capacity() > KEPT && self.held.len() < KEPT {
                self.held.shrink_to(KEPT); // A large item went by; the rest are small again.
            }
        }
    }

    /// Ends the stream: the sink gets what is left. The splitter is as new then.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        let mut done = std::mem::replace(self, Splitter::new(self.scan.max_item));
        let used = done.scan.advance(&done.held, true, sink);
        if let Some(open) = done.scan.open.take() {
            done.scan.give(&done.held[used..], &open, false, sink);
        }
        done.scan.end_calendar(&[], false, sink);
    }
}

/// Who gets the pieces.
type Sink<'s> = dyn FnMut(Piece<'_>) + 's;

/// The state between two lines. Places count from the beginning of what is held.
#[derive(Debug)]
struct Scan {
    max_item: usize,
    /// UTF-16, and of which order? Unknown until the first bytes are there.
    encoding: Option<Option<Order>>,
    /// Where what was not given out yet begins, and the number of the line there.
    start: usize,
    start_line: u64,
    /// Where the line begins that is looked at, and its number.
    at: usize,
    line: u64,
    /// From where its end is to be looked for.
    seek: usize,
    /// The beginning of this line was given out already.
    in_line: bool,
    open: Option<Open>,
    /// A calendar is open.
    calendar: bool,
    /// The beginning of a stretch outside was given out already.
    outside: bool,
}

/// The component that is open, or a run of a calendar's own lines.
#[derive(Debug)]
struct Open {
    /// In upper case; of a run empty.
    name: String,
    /// How many cards are open within this one (AGENT of vCard 2.1).
    agents: usize,
    /// The line before was an AGENT without a value: a card may follow.
    agent: bool,
    /// It is too long, and its beginning was given out as such.
    too_long: bool,
}

impl Open {
    fn new(name: String) -> Open {
        Open { name, agents: 0, agent: false, too_long: false }
    }

    fn run() -> Open {
        Open::new(String::new())
    }

    fn is_run(&self) -> bool {
        self.name.is_empty()
    }

    /// Can a component of this name not be inside it, so that it ends where that one begins? What has a
    /// name that nobody knows may hold anything but its like.
    fn ends_before(&self, name: &str) -> bool {
        name == self.name
            || name == CARD
            || name == CALENDAR
            || (is_calendars(&self.name) && is_calendars(name) && !self.may_ask_about(name))
    }

    fn may_ask_about(&self, name: &str) -> bool {
        self.name == "VPOLL" && POLLED.contains(&name)
    }
}

impl Scan {
    fn new(max_item: usize) -> Scan {
        Scan {
            max_item,
            encoding: None,
            start: 0,
            start_line: 1,
            at: 0,
            line: 1,
            seek: 0,
            in_line: false,
            open: None,
            calendar: false,
            outside: false,
        }
    }

    /// Looks at all lines in `data` that are whole; returns how many bytes are done with.
    fn advance(&mut self, data: &[u8], last: bool, sink: &mut Sink<'_>) -> usize {
        let order = match self.encoding {
            Some(order) => order,
            None if data.len() < 4 && !last => return 0,
            None => self.recognise(data),
        };
        while self.at < data.len() {
            match line_end(data, self.seek, order, last) {
                Ok((end, next)) => {
                    self.line_done(data, end, next, order, sink);
                    (self.at, self.seek, self.in_line) = (next, next, false);
                    self.line += 1;
                }
                Err(seek) => {
                    self.seek = seek;
                    break;
                }
            }
        }
        self.flush(data, sink);
        let used = self.start;
        (self.start, self.at, self.seek) = (0, self.at - used, self.seek - used);
        used
    }

    fn recognise(&mut self, data: &[u8]) -> Option<Order> {
        let order = Order::of(data);
        self.encoding = Some(order);
        if order.is_some_and(|order| order.has_mark(data)) {
            self.pass(2);
        }
        order
    }

    /// Leaves out bytes at the beginning of a line.
    fn pass(&mut self, length: usize) {
        self.at += length;
        self.seek = self.at;
        self.done_up_to(self.at, self.line);
    }

    /// All before this place was given out, or is not to be.
    fn done_up_to(&mut self, start: usize, line: u64) {
        (self.start, self.start_line) = (start, line);
    }

    fn line_done(
        &mut self,
        data: &[u8],
        end: usize,
        next: usize,
        order: Option<Order>,
        sink: &mut Sink<'_>,
    ) {
        let content = &data[self.at..end];
        let marked = self.open.is_none() && order.is_none() && content.starts_with(BOM);
        let marker = match self.in_line || content.len() > MARKER_LIMIT {
            true => None,
            false => marker(&content[if marked { BOM.len() } else { 0 }..], order),
        };
        if marked && matches!(marker, Some(Marker::Begin(_) | Marker::End(_) | Marker::Blank)) {
            self.end_outside(data, sink);
            self.pass(BOM.len());
        }
        match self.open.take() {
            None => self.line_outside(data, next, marker, sink),
            Some(open) => self.open = self.line_inside(data, next, open, marker, sink),
        }
        if next - self.start > self.max_item {
            self.give_too_long(data, next, self.line + 1, sink);
        }
    }

    /// A line where no component is open. Text waits to be given out: it begins at `start`.
    fn line_outside(
        &mut self,
        data: &[u8],
        next: usize,
        marker: Option<Marker>,
        sink: &mut Sink<'_>,
    ) {
        match marker {
            Some(Marker::Begin(name)) => {
                self.end_outside(data, sink);
                self.open = self.begin(&data[self.at..next], next, name, sink);
            }
            Some(Marker::End(name)) => {
                self.end_outside(data, sink);
                let (line, bytes) = (self.line, &data[self.at..next]);
                if self.calendar && name == CALENDAR {
                    self.end_calendar(bytes, true, sink);
                    return self.done_up_to(next, self.line + 1);
                }
                sink(Piece::Stray { line, bytes, why: Stray::EndWithoutBegin, first: true });
                self.done_up_to(next, self.line + 1);
            }
            Some(Marker::Blank) if !self.outside && self.start == self.at => {
                self.done_up_to(next, self.line + 1);
            }
            _ if self.calendar => self.open = Some(Open::run()),
            _ => {}
        }
    }

    /// A component begins in this line; returns it, but for a calendar.
    fn begin(
        &mut self,
        bytes: &[u8],
        next: usize,
        name: String,
        sink: &mut Sink<'_>,
    ) -> Option<Open> {
        if name == CARD || name == CALENDAR {
            self.end_calendar(&[], false, sink);
        }
        if name != CALENDAR {
            return Some(Open::new(name));
        }
        sink(Piece::CalendarBegins { line: self.line, bytes });
        self.calendar = true;
        self.done_up_to(next, self.line + 1);
        None
    }

    /// Ends the calendar that is open, if one is, with this line.
    fn end_calendar(&mut self, bytes: &[u8], closed: bool, sink: &mut Sink<'_>) {
        if std::mem::take(&mut self.calendar) {
            sink(Piece::CalendarEnds { line: self.line, bytes, closed });
        }
    }

    /// A line in a component; returns what is open after it.
    fn line_inside(
        &mut self,
        data: &[u8],
        next: usize,
        mut open: Open,
        marker: Option<Marker>,
        sink: &mut Sink<'_>,
    ) -> Option<Open> {
        let agent = std::mem::take(&mut open.agent);
        let ended = match &marker {
            Some(Marker::Begin(name)) => open.is_run() || (!agent && open.ends_before(name)),
            Some(Marker::End(name)) => open.is_run() || (self.calendar && name == CALENDAR),
            _ => false,
        };
        if ended {
            self.give(&data[self.start..self.at], &open, false, sink);
            self.done_up_to(self.at, self.line);
            self.line_outside(data, next, marker, sink);
            return self.open.take();
        }
        match marker {
            Some(Marker::Begin(name)) if agent && name == open.name => open.agents += 1,
            Some(Marker::End(name)) if name == open.name && open.agents == 0 => {
                self.give(&data[self.start..next], &open, true, sink);
                self.done_up_to(next, self.line + 1);
                return None;
            }
            Some(Marker::End(name)) if name == open.name => open.agents -= 1,
            Some(Marker::Agent { begins }) if open.name == CARD => {
                (open.agent, open.agents) = (!begins, open.agents + usize::from(begins));
            }
            Some(Marker::Blank) => open.agent = agent,
            _ => {}
        }
        Some(open)
    }

    /// Gives out what has ended, or the end of what is too long.
    fn give(&self, bytes: &[u8], open: &Open, closed: bool, sink: &mut Sink<'_>) {
        let line = self.start_line;
        if open.too_long || bytes.len() > self.max_item {
            if !bytes.is_empty() {
                sink(Piece::Stray { line, bytes, why: Stray::TooLong, first: !open.too_long });
            }
        } else if open.is_run() {
            sink(Piece::CalendarLines { line, bytes });
        } else {
            sink(Piece::Component { name: &open.name, line, bytes, closed });
        }
    }

    /// Gives out what there is of an open component that is known to be too long.
    fn give_too_long(&mut self, data: &[u8], end: usize, line: u64, sink: &mut Sink<'_>) {
        if let Some(open) = &mut self.open {
            let first = !std::mem::replace(&mut open.too_long, true);
            let (bytes, why) = (&data[self.start..end], Stray::TooLong);
            sink(Piece::Stray { line: self.start_line, bytes, why, first });
            self.done_up_to(end, line);
        }
    }

    /// Gives out the text outside that waits before `end`.
    fn give_outside(&mut self, data: &[u8], end: usize, sink: &mut Sink<'_>) {
        if self.start < end {
            let (bytes, first) = (&data[self.start..end], !self.outside);
            sink(Piece::Stray { line: self.start_line, bytes, why: Stray::Outside, first });
            self.outside = true;
            self.done_up_to(end, self.line);
        }
    }

    fn end_outside(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        self.give_outside(data, self.at, sink);
        self.outside = false;
    }

    /// Gives out what needs no more bytes to be judged: whole lines, and of the last line all but the end,
    /// if it is too long to be a marker.
    fn flush(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        let long_line = self.in_line || self.seek - self.at > MARKER_LIMIT;
        let end = if long_line { self.seek } else { self.at };
        if self.calendar && long_line && self.open.is_none() {
            self.open = Some(Open::run());
        }
        match &self.open {
            None => self.give_outside(data, end, sink),
            Some(open) if open.too_long || (long_line && end - self.start > self.max_item) => {
                if self.start < end {
                    self.give_too_long(data, end, self.line, sink);
                }
            }
            Some(_) => return,
        }
        if long_line {
            (self.at, self.in_line) = (end, true);
        }
    }
}

/// What a line means for where items are.
enum Marker {
    Begin(String),
    End(String),
    /// An AGENT without a value, or with the BEGIN of a card for one.
    Agent {
        begins: bool,
    },
    Blank,
}

/// Cards and calendars are never inside anything, but for the card of an AGENT.
const CARD: &str = "VCARD";
const CALENDAR: &str = "VCALENDAR";
/// Components of calendars that are in no other one but, as what is asked about, in a VPOLL.
const POLLED: &[&str] = &["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"];
/// Components of calendars that are in no other one.
const ALONE: &[&str] = &["VTIMEZONE", "VPOLL", "VAVAILABILITY"];

fn is_calendars(name: &str) -> bool {
    POLLED.contains(&name) || ALONE.contains(&name)
}

/// What a line is. All lines come by here: most are known by their first byte.
fn marker(content: &[u8], order: Option<Order>) -> Option<Marker> {
    if let Some(order) = order {
        // Half a character is no blank: it is something that has to be given back.
        let narrow: Vec<u8> = order.narrow(content).collect();
        return marker(&narrow, None).filter(|_| content.len().is_multiple_of(2));
    }
    match content.first() {
        None => Some(Marker::Blank),
        Some(b' ' | b'\t' | b'\r') => line::is_blank(content).then_some(Marker::Blank),
        Some(b'B' | b'b') => component_name(content, b"BEGIN").map(Marker::Begin),
        Some(b'E' | b'e') => component_name(content, b"END").map(Marker::End),
        Some(b'A' | b'a') => agent(content),
        _ => None,
    }
}

/// The name behind `keyword:`, with white space tolerated around the colon and behind the name.
fn component_name(content: &[u8], keyword: &[u8]) -> Option<String> {
    let behind = behind_keyword(content, keyword)?;
    let name = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    std::str::from_utf8(name).ok().map(str::to_ascii_uppercase)
}

fn agent(content: &[u8]) -> Option<Marker> {
    let behind = behind_keyword(content, b"AGENT")?;
    if !matches!(behind.first(), Some(b':' | b';')) {
        return None;
    }
    let colon = memchr::memchr(b':', behind)?;
    let value = behind[colon + 1..].trim_ascii();
    let begins = || component_name(value, b"BEGIN").is_some_and(|name| name == "VCARD");
    match value {
        [] => Some(Marker::Agent { begins: false }),
        _ => begins().then_some(Marker::Agent { begins: true }),
    }
}

fn behind_keyword<'b>(content: &'b [u8], keyword: &[u8]) -> Option<&'b [u8]> {
    let (start, behind) = content.split_at_checked(keyword.len())?;
    start.eq_ignore_ascii_case(keyword).then_some(behind)
}

/// As [`line::line_end`], in either encoding.
fn line_end(
    data: &[u8],
    from: usize,
    order: Option<Order>,
    last: bool,
) -> Result<(usize, usize), usize> {
    let Some(order) = order else {
        return line::line_end(data, from, last);
    };
    let mut at = from;
    for byte in order.narrow(&data[from..]) {
        match byte {
            b'\n' => return Ok((at, at + 2)),
            b'\r' => {
                let rest: Vec<u8> = order.narrow(&data[at + 2..]).take(NAME_LIMIT + 1).collect();
                match line::behind_cr(&rest, last) {
                    Some(0) => {}
                    Some(units) => return Ok((at, at + 2 * units)),
                    None => return Err(at),
                }
            }
            _ => {}
        }
        at += 2;
    }
    if last { Ok((data.len(), data.len())) } else { Err(at) }
}
