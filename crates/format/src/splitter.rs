//! From a stream of bytes to the items in it: finds where components begin and end.
//!
//! It does no I/O: bytes are pushed in pieces of any size, and items come out as they become whole.
//! It looks at the first byte of each line and takes nothing apart; what an item means is for
//! [`contact`](crate::contact) and others to say. Bytes are given as they came. Whatever the
//! stream, no more is held than the largest item allowed and what was pushed last.
//!
//! A card is one piece. A calendar (VCALENDAR) may hold a million components, so it is none: it
//! begins, its own lines and its components come one by one, and it ends. Components without a
//! calendar around them come out alike. All pieces together are the stream, but for blank lines
//! before a piece, and for byte-order marks.
//!
//! What is broken is closed where that is certain: a component by the next one that cannot be
//! inside it, by the END of its calendar, or by the end of the stream; a calendar by the next
//! calendar, by a card, or by the end of the stream. An END that nothing was begun for does not end
//! anything.

use crate::content_line::{self, MAX_NAME_BYTES};
use crate::utf16::{BOM, Endian};

/// A longer line neither begins nor ends a component, and is not blank.
const MAX_MARKER_BYTES: usize = 256;

/// Room for this many bytes is kept when an item has gone by.
const RETAINED_CAPACITY_BYTES: usize = 1 << 20;

/// A part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamPiece<'a> {
    /// A component that is not inside another one, or only in a calendar: the bytes from its BEGIN
    /// to the end of its END line.
    Component {
        /// Its name in upper case.
        name: &'a str,
        /// The line of its BEGIN, counted from 1 in the stream.
        line: u64,
        /// All of it.
        bytes: &'a [u8],
        /// Was there an END? Without one it goes up to the next BEGIN that it cannot hold, or to
        /// the end of what it is in.
        closed: bool,
    },
    /// A calendar begins: what comes before [`StreamPiece::CalendarEnds`] is in it.
    CalendarBegins {
        /// The line of its BEGIN, counted from 1 in the stream.
        line: u64,
        /// That line.
        bytes: &'a [u8],
    },
    /// Lines of a calendar itself: a run of its own properties, before, between or behind its
    /// components. Behind the BEGIN line, they can be read as a component.
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
    Skipped {
        /// The line in which this part begins, counted from 1 in the stream.
        line: u64,
        /// The part. Where a stretch is divided depends on how the bytes were pushed.
        bytes: &'a [u8],
        /// Why it is no item.
        why: SkipReason,
        /// Does the stretch begin here? The parts that follow with `false` belong to it.
        first: bool,
    },
}

/// Why a stretch is no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Text outside any component.
    Outside,
    /// A component with more bytes than allowed, or so many of a calendar's own lines.
    TooLarge,
    /// An END that nothing was begun for.
    EndWithoutBegin,
}

/// Finds the items in a stream.
#[derive(Debug)]
pub struct Splitter {
    /// What was pushed and not given out yet.
    buffer: Vec<u8>,
    scan: SplitState,
}

impl Splitter {
    /// A splitter for a new stream. Components of more than `max_item` bytes are given out as
    /// [`Stray::TooLong`].
    #[must_use]
    pub fn new(max_item: usize) -> Splitter {
        Splitter { buffer: Vec::new(), scan: SplitState::new(max_item) }
    }

    /// Takes the next bytes of the stream; the sink gets each piece that is now whole.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(StreamPiece<'_>)) {
        if self.buffer.is_empty() {
            let used = self.scan.advance(bytes, false, sink);
            self.buffer.extend_from_slice(&bytes[used..]);
        } else {
            self.buffer.extend_from_slice(bytes);
            let used = self.scan.advance(&self.buffer, false, sink);
            self.buffer.drain(..used);
            if self.buffer.capacity() > RETAINED_CAPACITY_BYTES
                && self.buffer.len() < RETAINED_CAPACITY_BYTES
            {
                self.buffer.shrink_to(RETAINED_CAPACITY_BYTES); // A large item went by; the rest are small again.
            }
        }
    }

    /// Ends the stream: the sink gets what is left. The splitter is as new then.
    pub fn finish(&mut self, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        let mut done = std::mem::replace(self, Splitter::new(self.scan.max_item));
        let used = done.scan.advance(&done.buffer, true, sink);
        if let Some(open) = done.scan.open.take() {
            done.scan.emit(&done.buffer[used..], &open, false, sink);
        }
        done.scan.end_calendar(&[], false, sink);
    }
}

/// Who gets the pieces.
type PieceSink<'s> = dyn FnMut(StreamPiece<'_>) + 's;

/// The state between two lines. Places count from the beginning of what is held.
#[derive(Debug)]
struct SplitState {
    max_item: usize,
    /// UTF-16, and of which order? Unknown until the first bytes are there.
    encoding: Option<Option<Endian>>,
    /// Where what was not given out yet begins, and the number of the line there.
    start: usize,
    start_line: u64,
    /// Where the line begins that is looked at, and its number.
    line_start: usize,
    line: u64,
    /// From where its end is to be looked for.
    search_from: usize,
    /// The beginning of this line was given out already.
    in_line: bool,
    open: Option<OpenComponent>,
    /// A calendar is open.
    in_calendar: bool,
    /// The beginning of a stretch outside was given out already.
    is_outside_emitted: bool,
}

/// The component that is open, or a run of a calendar's own lines.
#[derive(Debug)]
struct OpenComponent {
    /// In upper case; of a run empty.
    name: String,
    /// How many cards are open within this one (AGENT of vCard 2.1).
    agents: usize,
    /// The line before was an AGENT without a value: a card may follow.
    after_agent: bool,
    /// It is too long, and its beginning was given out as such.
    is_too_large: bool,
}

impl OpenComponent {
    fn new(name: String) -> OpenComponent {
        OpenComponent { name, agents: 0, after_agent: false, is_too_large: false }
    }

    fn property_run() -> OpenComponent {
        OpenComponent::new(String::new())
    }

    fn is_property_run(&self) -> bool {
        self.name.is_empty()
    }

    /// Can a component of this name not be inside it, so that it ends where that one begins? What
    /// has a name that nobody knows may hold anything but its like.
    fn is_ended_by(&self, name: &str) -> bool {
        name == self.name
            || name == VCARD
            || name == VCALENDAR
            || (is_calendar_component(&self.name)
                && is_calendar_component(name)
                && !self.can_nest_in_poll(name))
    }

    fn can_nest_in_poll(&self, name: &str) -> bool {
        self.name == "VPOLL" && POLLABLE_COMPONENTS.contains(&name)
    }
}

impl SplitState {
    fn new(max_item: usize) -> SplitState {
        SplitState {
            max_item,
            encoding: None,
            start: 0,
            start_line: 1,
            line_start: 0,
            line: 1,
            search_from: 0,
            in_line: false,
            open: None,
            in_calendar: false,
            is_outside_emitted: false,
        }
    }

    /// Looks at all lines in `data` that are whole; returns how many bytes are done with.
    fn advance(&mut self, data: &[u8], last: bool, sink: &mut PieceSink<'_>) -> usize {
        let order = match self.encoding {
            Some(order) => order,
            None if data.len() < 4 && !last => return 0,
            None => self.detect_encoding(data),
        };
        while self.line_start < data.len() {
            match find_line_end(data, self.search_from, order, last) {
                Ok((end, next)) => {
                    self.process_line(data, end, next, order, sink);
                    (self.line_start, self.search_from, self.in_line) = (next, next, false);
                    self.line += 1;
                }
                Err(seek) => {
                    self.search_from = seek;
                    break;
                }
            }
        }
        self.flush(data, sink);
        let used = self.start;
        (self.start, self.line_start, self.search_from) =
            (0, self.line_start - used, self.search_from - used);
        used
    }

    fn detect_encoding(&mut self, data: &[u8]) -> Option<Endian> {
        let order = Endian::detect(data);
        self.encoding = Some(order);
        if order.is_some_and(|order| order.has_bom(data)) {
            self.skip(2);
        }
        order
    }

    /// Leaves out bytes at the beginning of a line.
    fn skip(&mut self, length: usize) {
        self.line_start += length;
        self.search_from = self.line_start;
        self.mark_done(self.line_start, self.line);
    }

    /// All before this place was given out, or is not to be.
    fn mark_done(&mut self, start: usize, line: u64) {
        (self.start, self.start_line) = (start, line);
    }

    fn process_line(
        &mut self,
        data: &[u8],
        end: usize,
        next: usize,
        order: Option<Endian>,
        sink: &mut PieceSink<'_>,
    ) {
        let content = &data[self.line_start..end];
        let marked = self.open.is_none() && order.is_none() && content.starts_with(BOM);
        let marker = match self.in_line || content.len() > MAX_MARKER_BYTES {
            true => None,
            false => parse_marker(&content[if marked { BOM.len() } else { 0 }..], order),
        };
        if marked
            && matches!(marker, Some(LineMarker::Begin(_) | LineMarker::End(_) | LineMarker::Blank))
        {
            self.end_outside(data, sink);
            self.skip(BOM.len());
        }
        match self.open.take() {
            None => self.process_outside_line(data, next, marker, sink),
            Some(open) => self.open = self.process_inside_line(data, next, open, marker, sink),
        }
        if next - self.start > self.max_item {
            self.emit_too_large(data, next, self.line + 1, sink);
        }
    }

    /// A line where no component is open. Text waits to be given out: it begins at `start`.
    fn process_outside_line(
        &mut self,
        data: &[u8],
        next: usize,
        marker: Option<LineMarker>,
        sink: &mut PieceSink<'_>,
    ) {
        match marker {
            Some(LineMarker::Begin(name)) => {
                self.end_outside(data, sink);
                self.open = self.begin_component(&data[self.line_start..next], next, name, sink);
            }
            Some(LineMarker::End(name)) => {
                self.end_outside(data, sink);
                let (line, bytes) = (self.line, &data[self.line_start..next]);
                if self.in_calendar && name == VCALENDAR {
                    self.end_calendar(bytes, true, sink);
                    return self.mark_done(next, self.line + 1);
                }
                sink(StreamPiece::Skipped {
                    line,
                    bytes,
                    why: SkipReason::EndWithoutBegin,
                    first: true,
                });
                self.mark_done(next, self.line + 1);
            }
            Some(LineMarker::Blank)
                if !self.is_outside_emitted && self.start == self.line_start =>
            {
                self.mark_done(next, self.line + 1);
            }
            _ if self.in_calendar => self.open = Some(OpenComponent::property_run()),
            _ => {}
        }
    }

    /// A component begins in this line; returns it, but for a calendar.
    fn begin_component(
        &mut self,
        bytes: &[u8],
        next: usize,
        name: String,
        sink: &mut PieceSink<'_>,
    ) -> Option<OpenComponent> {
        if name == VCARD || name == VCALENDAR {
            self.end_calendar(&[], false, sink);
        }
        if name != VCALENDAR {
            return Some(OpenComponent::new(name));
        }
        sink(StreamPiece::CalendarBegins { line: self.line, bytes });
        self.in_calendar = true;
        self.mark_done(next, self.line + 1);
        None
    }

    /// Ends the calendar that is open, if one is, with this line.
    fn end_calendar(&mut self, bytes: &[u8], closed: bool, sink: &mut PieceSink<'_>) {
        if std::mem::take(&mut self.in_calendar) {
            sink(StreamPiece::CalendarEnds { line: self.line, bytes, closed });
        }
    }

    /// A line in a component; returns what is open after it.
    fn process_inside_line(
        &mut self,
        data: &[u8],
        next: usize,
        mut open: OpenComponent,
        marker: Option<LineMarker>,
        sink: &mut PieceSink<'_>,
    ) -> Option<OpenComponent> {
        let agent = std::mem::take(&mut open.after_agent);
        let ended = match &marker {
            Some(LineMarker::Begin(name)) => {
                open.is_property_run() || (!agent && open.is_ended_by(name))
            }
            Some(LineMarker::End(name)) => {
                open.is_property_run() || (self.in_calendar && name == VCALENDAR)
            }
            _ => false,
        };
        if ended {
            self.emit(&data[self.start..self.line_start], &open, false, sink);
            self.mark_done(self.line_start, self.line);
            self.process_outside_line(data, next, marker, sink);
            return self.open.take();
        }
        match marker {
            Some(LineMarker::Begin(name)) if agent && name == open.name => open.agents += 1,
            Some(LineMarker::End(name)) if name == open.name && open.agents == 0 => {
                self.emit(&data[self.start..next], &open, true, sink);
                self.mark_done(next, self.line + 1);
                return None;
            }
            Some(LineMarker::End(name)) if name == open.name => open.agents -= 1,
            Some(LineMarker::Agent { begins }) if open.name == VCARD => {
                (open.after_agent, open.agents) = (!begins, open.agents + usize::from(begins));
            }
            Some(LineMarker::Blank) => open.after_agent = agent,
            _ => {}
        }
        Some(open)
    }

    /// Gives out what has ended, or the end of what is too long.
    fn emit(&self, bytes: &[u8], open: &OpenComponent, closed: bool, sink: &mut PieceSink<'_>) {
        let line = self.start_line;
        if open.is_too_large || bytes.len() > self.max_item {
            if !bytes.is_empty() {
                sink(StreamPiece::Skipped {
                    line,
                    bytes,
                    why: SkipReason::TooLarge,
                    first: !open.is_too_large,
                });
            }
        } else if open.is_property_run() {
            sink(StreamPiece::CalendarLines { line, bytes });
        } else {
            sink(StreamPiece::Component { name: &open.name, line, bytes, closed });
        }
    }

    /// Gives out what there is of an open component that is known to be too long.
    fn emit_too_large(&mut self, data: &[u8], end: usize, line: u64, sink: &mut PieceSink<'_>) {
        if let Some(open) = &mut self.open {
            let first = !std::mem::replace(&mut open.is_too_large, true);
            let (bytes, why) = (&data[self.start..end], SkipReason::TooLarge);
            sink(StreamPiece::Skipped { line: self.start_line, bytes, why, first });
            self.mark_done(end, line);
        }
    }

    /// Gives out the text outside that waits before `end`.
    fn emit_outside(&mut self, data: &[u8], end: usize, sink: &mut PieceSink<'_>) {
        if self.start < end {
            let (bytes, first) = (&data[self.start..end], !self.is_outside_emitted);
            sink(StreamPiece::Skipped {
                line: self.start_line,
                bytes,
                why: SkipReason::Outside,
                first,
            });
            self.is_outside_emitted = true;
            self.mark_done(end, self.line);
        }
    }

    fn end_outside(&mut self, data: &[u8], sink: &mut PieceSink<'_>) {
        self.emit_outside(data, self.line_start, sink);
        self.is_outside_emitted = false;
    }

    /// Gives out what needs no more bytes to be judged: whole lines, and of the last line all but
    /// the end, if it is too long to be a marker.
    fn flush(&mut self, data: &[u8], sink: &mut PieceSink<'_>) {
        let long_line = self.in_line || self.search_from - self.line_start > MAX_MARKER_BYTES;
        let end = if long_line { self.search_from } else { self.line_start };
        if self.in_calendar && long_line && self.open.is_none() {
            self.open = Some(OpenComponent::property_run());
        }
        match &self.open {
            None => self.emit_outside(data, end, sink),
            Some(open) if open.is_too_large || (long_line && end - self.start > self.max_item) => {
                if self.start < end {
                    self.emit_too_large(data, end, self.line, sink);
                }
            }
            Some(_) => return,
        }
        if long_line {
            (self.line_start, self.in_line) = (end, true);
        }
    }
}

/// What a line means for where items are.
enum LineMarker {
    Begin(String),
    End(String),
    /// An AGENT without a value, or with the BEGIN of a card for one.
    Agent {
        begins: bool,
    },
    Blank,
}

/// Cards and calendars are never inside anything, but for the card of an AGENT.
const VCARD: &str = "VCARD";
const VCALENDAR: &str = "VCALENDAR";
/// Components of calendars that are in no other one but, as what is asked about, in a VPOLL.
const POLLABLE_COMPONENTS: &[&str] = &["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"];
/// Components of calendars that are in no other one.
const UNNESTED_COMPONENTS: &[&str] = &["VTIMEZONE", "VPOLL", "VAVAILABILITY"];

fn is_calendar_component(name: &str) -> bool {
    POLLABLE_COMPONENTS.contains(&name) || UNNESTED_COMPONENTS.contains(&name)
}

/// What a line is. All lines come by here: most are known by their first byte.
fn parse_marker(content: &[u8], order: Option<Endian>) -> Option<LineMarker> {
    if let Some(order) = order {
        // Half a character is no blank: it is something that has to be given back.
        let narrow: Vec<u8> = order.narrow(content).collect();
        return parse_marker(&narrow, None).filter(|_| content.len().is_multiple_of(2));
    }
    match content.first() {
        None => Some(LineMarker::Blank),
        Some(b' ' | b'\t' | b'\r') => content_line::is_blank(content).then_some(LineMarker::Blank),
        Some(b'B' | b'b') => parse_component_name(content, b"BEGIN").map(LineMarker::Begin),
        Some(b'E' | b'e') => parse_component_name(content, b"END").map(LineMarker::End),
        Some(b'A' | b'a') => parse_agent(content),
        _ => None,
    }
}

/// The name behind `keyword:`, with white space tolerated around the colon and behind the name.
fn parse_component_name(content: &[u8], keyword: &[u8]) -> Option<String> {
    let behind = strip_keyword(content, keyword)?;
    let name = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    std::str::from_utf8(name).ok().map(str::to_ascii_uppercase)
}

fn parse_agent(content: &[u8]) -> Option<LineMarker> {
    let behind = strip_keyword(content, b"AGENT")?;
    if !matches!(behind.first(), Some(b':' | b';')) {
        return None;
    }
    let colon = memchr::memchr(b':', behind)?;
    let value = behind[colon + 1..].trim_ascii();
    let begins = || parse_component_name(value, b"BEGIN").is_some_and(|name| name == "VCARD");
    match value {
        [] => Some(LineMarker::Agent { begins: false }),
        _ => begins().then_some(LineMarker::Agent { begins: true }),
    }
}

fn strip_keyword<'b>(content: &'b [u8], keyword: &[u8]) -> Option<&'b [u8]> {
    let (start, behind) = content.split_at_checked(keyword.len())?;
    start.eq_ignore_ascii_case(keyword).then_some(behind)
}

/// As [`line::line_end`], in either encoding.
fn find_line_end(
    data: &[u8],
    from: usize,
    order: Option<Endian>,
    last: bool,
) -> Result<(usize, usize), usize> {
    let Some(order) = order else {
        return content_line::find_line_end(data, from, last);
    };
    let mut at = from;
    for byte in order.narrow(&data[from..]) {
        match byte {
            b'\n' => return Ok((at, at + 2)),
            b'\r' => {
                let rest: Vec<u8> =
                    order.narrow(&data[at + 2..]).take(MAX_NAME_BYTES + 1).collect();
                match content_line::line_end_after_cr(&rest, last) {
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
