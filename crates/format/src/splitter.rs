//! Splits a stream of bytes into items: finds where components begin and end.
//!
//! The splitter does no I/O: bytes are pushed in chunks of any size, and items are emitted as they
//! become complete. It looks at the first byte of each line and parses nothing else;
//! [`contact`](crate::contact) and others parse the items. Bytes are emitted unchanged. Memory is
//! bounded by the largest allowed item and the last chunk.
//!
//! A card is one piece. A calendar (VCALENDAR) may have a million components, so it is emitted in
//! pieces: its beginning, its own lines, each component, its end. Components without an enclosing
//! calendar are emitted in the same way. All pieces together are the stream, except blank lines
//! before a piece and byte-order marks.
//!
//! The splitter closes an unclosed component if its end is certain: before the next component that
//! it cannot contain, at the END of its calendar, or at the end of the stream. It closes an
//! unclosed calendar before the next calendar or card, or at the end of the stream. An END without
//! a BEGIN ends nothing. A component whose BEGIN line is damaged or misspelt is skipped as a whole.

mod line_marker;

use self::line_marker::{
    LineMarker, POLLABLE_COMPONENTS, VCALENDAR, VCARD, is_calendar_component, is_never_nested,
    parse_damaged_begin, parse_marker,
};
use crate::content_line::{self, MAX_NAME_BYTES};
use crate::utf16::{self, BOM, Endian};

/// A longer line is neither a marker nor blank.
const MAX_MARKER_BYTES: usize = 256;

/// The capacity of the buffer that is retained after an item.
const RETAINED_CAPACITY_BYTES: usize = 1 << 20;

/// A piece of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamPiece<'a> {
    /// A component that is in no other component, or only in a calendar: from BEGIN to the end of
    /// the END line.
    Component {
        /// The name in upper case.
        name: &'a str,
        /// The line number of BEGIN in the stream, from 1.
        line: u64,
        /// The bytes of the component.
        bytes: &'a [u8],
        /// Whether there was an END. Without one the component ends before the next BEGIN that it
        /// cannot contain, or at the end of its container.
        closed: bool,
    },
    /// The beginning of a calendar: pieces up to [`StreamPiece::CalendarEnds`] are in it.
    CalendarBegins {
        /// The line number of BEGIN in the stream, from 1.
        line: u64,
        /// The BEGIN line.
        bytes: &'a [u8],
    },
    /// Properties of a calendar itself: a run of lines before, between or after its components.
    /// With the BEGIN line in front they parse as a component.
    CalendarLines {
        /// The number of the first line in the stream, from 1.
        line: u64,
        /// The bytes of the lines.
        bytes: &'a [u8],
        /// The text of the lines, if the stream is UTF-16. The lines alone do not show it.
        utf16_text: Option<&'a str>,
    },
    /// The end of a calendar.
    CalendarEnds {
        /// The line number of END, or of the line that reveals that it is missing.
        line: u64,
        /// The END line; empty if it is missing.
        bytes: &'a [u8],
        /// Whether there was an END.
        closed: bool,
        /// Whether the BEGIN of another calendar ends it, which may be inside it.
        before_calendar: bool,
    },
    /// A part of a range that is not an item.
    Skipped {
        /// The number of the first line of this part in the stream, from 1.
        line: u64,
        /// The bytes of the part. The division of a range depends on the chunks pushed.
        bytes: &'a [u8],
        /// The reason why it is not an item.
        why: SkipReason,
        /// Whether this is the first part of the range; parts with `false` continue it.
        first: bool,
    },
}

/// The reason why a range is not an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Text outside any component.
    Outside,
    /// A component, or a run of a calendar's own lines, above the size limit.
    TooLarge,
    /// An END without a BEGIN.
    EndWithoutBegin,
    /// The END of a calendar that ended where a calendar inside it began. Nothing is lost.
    NestedCalendarEnd,
    /// A component whose BEGIN line is damaged, or names another component than its END.
    DamagedBegin,
}

/// Splits a stream into items.
#[derive(Debug)]
pub struct Splitter {
    /// Bytes that were pushed and not yet emitted.
    buffer: Vec<u8>,
    scan: SplitState,
}

impl Splitter {
    /// Creates a splitter. Components larger than `max_item` bytes are emitted as
    /// [`SkipReason::TooLarge`].
    #[must_use]
    pub fn new(max_item: usize) -> Splitter {
        Splitter { buffer: Vec::new(), scan: SplitState::new(max_item) }
    }

    /// Pushes the next bytes of the stream. The sink receives each piece that is complete.
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
                self.buffer.shrink_to(RETAINED_CAPACITY_BYTES); // Releases the memory of a large item; most items are small.
            }
        }
    }

    /// Ends the stream. The sink receives the rest, and the splitter is ready for a new stream.
    pub fn finish(&mut self, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        let mut done = std::mem::replace(self, Splitter::new(self.scan.max_item));
        let used = done.scan.advance(&done.buffer, true, sink);
        if let Some(open) = done.scan.open.take() {
            done.scan.emit(&done.buffer[used..], &open, false, sink);
        }
        done.scan.end_calendar(&[], CalendarEnding::Missing, sink);
    }
}

/// Receives the pieces.
type PieceSink<'s> = dyn FnMut(StreamPiece<'_>) + 's;

/// The state between two lines. Offsets count from the start of the buffer.
#[derive(Debug)]
struct SplitState {
    max_item: usize,
    /// The byte order of a UTF-16 stream; unknown until the first bytes are there.
    encoding: Option<Option<Endian>>,
    /// The start of the bytes not yet emitted, and the line number there.
    start: usize,
    start_line: u64,
    /// The start of the current line, and its number.
    line_start: usize,
    line: u64,
    /// The offset from which to search for the end of the line.
    search_from: usize,
    /// The first part of the current line was emitted.
    in_line: bool,
    open: Option<OpenComponent>,
    /// A calendar is open.
    in_calendar: bool,
    /// The number of calendars that ended where a calendar inside them began, and may still have an
    /// END.
    nesting_calendars: usize,
    /// The first part of a range outside any component was emitted.
    is_outside_emitted: bool,
}

/// The open component, or a run of a calendar's own lines.
#[derive(Debug)]
struct OpenComponent {
    /// The name in upper case; empty for a run of lines.
    name: String,
    /// The number of open nested cards (AGENT of vCard 2.1).
    agents: usize,
    /// The previous line was an AGENT without a value, so a card may follow.
    after_agent: bool,
    /// The component is above the size limit, and its beginning was emitted as such.
    is_too_large: bool,
    /// The BEGIN line is damaged: the component is skipped.
    is_damaged: bool,
    /// The number of calendar components that are open inside a component of unknown name.
    nested: usize,
}

impl OpenComponent {
    fn new(name: String) -> OpenComponent {
        OpenComponent {
            name,
            agents: 0,
            after_agent: false,
            is_too_large: false,
            is_damaged: false,
            nested: 0,
        }
    }

    fn property_run() -> OpenComponent {
        OpenComponent::new(String::new())
    }

    fn is_property_run(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns whether a component of this name ends the open one because it cannot be inside it. A
    /// component of unknown name may contain anything except its own kind.
    fn is_ended_by(&self, name: &str) -> bool {
        name == self.name
            || is_never_nested(name)
            || (is_calendar_component(&self.name)
                && is_calendar_component(name)
                && !self.can_nest_in_poll(name))
    }

    /// Returns whether the END of this name shows that the name in the BEGIN line is misspelt.
    fn is_misspelt(&self, end: &str) -> bool {
        let is_known = self.is_property_run() || is_never_nested(&self.name);
        !is_known
            && self.nested == 0
            && !is_calendar_component(&self.name)
            && is_calendar_component(end)
    }

    /// Counts the calendar components that are open inside a component of unknown name.
    fn count_nested(&mut self, marker: Option<&LineMarker>) {
        match marker {
            Some(LineMarker::Begin(name)) if is_calendar_component(name) => self.nested += 1,
            Some(LineMarker::End(name)) if is_calendar_component(name) => {
                self.nested = self.nested.saturating_sub(1);
            }
            _ => {}
        }
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
            nesting_calendars: 0,
            is_outside_emitted: false,
        }
    }

    /// Processes all complete lines in `data`. Returns the number of bytes that are done with.
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

    /// Skips bytes at the beginning of a line.
    fn skip(&mut self, length: usize) {
        self.line_start += length;
        self.search_from = self.line_start;
        self.mark_done(self.line_start, self.line);
    }

    /// Marks everything before this offset as emitted or dropped.
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
        let marker = marker.or_else(|| self.find_damaged_begin(content, order));
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

    /// Returns the marker of a damaged BEGIN among a calendar's own lines, which cannot begin with
    /// it otherwise.
    fn find_damaged_begin(&self, content: &[u8], order: Option<Endian>) -> Option<LineMarker> {
        let is_own_line = self.in_calendar
            && !self.in_line
            && content.len() <= MAX_MARKER_BYTES
            && self.open.as_ref().is_none_or(OpenComponent::is_property_run);
        if !is_own_line {
            return None;
        }
        let name = match order {
            Some(order) => parse_damaged_begin(&order.narrow(content).collect::<Vec<u8>>()),
            None => parse_damaged_begin(content),
        };
        name.map(LineMarker::DamagedBegin)
    }

    /// Processes a line outside any component. Text from `start` on waits to be emitted.
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
                    self.end_calendar(bytes, CalendarEnding::End, sink);
                    return self.mark_done(next, self.line + 1);
                }
                let why = match name == VCALENDAR && self.nesting_calendars > 0 {
                    true => SkipReason::NestedCalendarEnd,
                    false => SkipReason::EndWithoutBegin,
                };
                if why == SkipReason::NestedCalendarEnd {
                    self.nesting_calendars -= 1;
                }
                sink(StreamPiece::Skipped { line, bytes, why, first: true });
                self.mark_done(next, self.line + 1);
            }
            Some(LineMarker::DamagedBegin(name)) => {
                let component = OpenComponent::new(name);
                self.open = Some(OpenComponent { is_damaged: true, ..component });
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

    /// Begins a component in this line. Returns it, unless it is a calendar.
    fn begin_component(
        &mut self,
        bytes: &[u8],
        next: usize,
        name: String,
        sink: &mut PieceSink<'_>,
    ) -> Option<OpenComponent> {
        if is_never_nested(&name) {
            let is_calendar = name == VCALENDAR;
            self.nesting_calendars += usize::from(is_calendar && self.in_calendar);
            let ending = match is_calendar {
                true => CalendarEnding::NextCalendar,
                false => CalendarEnding::Missing,
            };
            self.end_calendar(&[], ending, sink);
        }
        if name != VCALENDAR {
            return Some(OpenComponent::new(name));
        }
        sink(StreamPiece::CalendarBegins { line: self.line, bytes });
        self.in_calendar = true;
        self.mark_done(next, self.line + 1);
        None
    }

    /// Ends the open calendar, if there is one, with this line.
    fn end_calendar(&mut self, bytes: &[u8], ending: CalendarEnding, sink: &mut PieceSink<'_>) {
        if std::mem::take(&mut self.in_calendar) {
            sink(StreamPiece::CalendarEnds {
                line: self.line,
                bytes,
                closed: ending == CalendarEnding::End,
                before_calendar: ending == CalendarEnding::NextCalendar,
            });
        }
    }

    /// Processes a line of a component. Returns the component that is open after it.
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
            Some(LineMarker::DamagedBegin(_)) => open.is_property_run(),
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
            Some(LineMarker::End(name)) if self.in_calendar && open.is_misspelt(&name) => {
                open.is_damaged = true;
                self.emit(&data[self.start..next], &open, true, sink);
                self.mark_done(next, self.line + 1);
                return None;
            }
            Some(LineMarker::Agent { begins }) if open.name == VCARD => {
                (open.after_agent, open.agents) = (!begins, open.agents + usize::from(begins));
            }
            Some(LineMarker::Blank) => open.after_agent = agent,
            marker => open.count_nested(marker.as_ref()),
        }
        Some(open)
    }

    /// Emits a finished component, or the rest of one above the size limit.
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
        } else if open.is_damaged {
            sink(StreamPiece::Skipped { line, bytes, why: SkipReason::DamagedBegin, first: true });
        } else if open.is_property_run() {
            let text = self.encoding.flatten().map(|order| utf16::decode_stream(bytes, order));
            sink(StreamPiece::CalendarLines { line, bytes, utf16_text: text.as_deref() });
        } else {
            sink(StreamPiece::Component { name: &open.name, line, bytes, closed });
        }
    }

    /// Emits the available part of an open component above the size limit.
    fn emit_too_large(&mut self, data: &[u8], end: usize, line: u64, sink: &mut PieceSink<'_>) {
        if let Some(open) = &mut self.open {
            let first = !std::mem::replace(&mut open.is_too_large, true);
            let (bytes, why) = (&data[self.start..end], SkipReason::TooLarge);
            sink(StreamPiece::Skipped { line: self.start_line, bytes, why, first });
            self.mark_done(end, line);
        }
    }

    /// Emits the waiting text outside any component up to `end`.
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

    /// Emits everything that needs no further bytes: complete lines, and all but the end of a last
    /// line that is too long to be a marker.
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

/// The end of a calendar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CalendarEnding {
    /// Its END.
    End,
    /// The BEGIN of the next calendar.
    NextCalendar,
    /// The BEGIN of an item that is in no calendar, or the end of the stream.
    Missing,
}

/// Like [`content_line::find_line_end`], in either encoding.
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
