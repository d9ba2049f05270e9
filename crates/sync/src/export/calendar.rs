//! The calendar around items that are written out: its own lines, each time zone once, and as many calendars as there must be.
//!
//! Mostly that is one. Items that mean different things by one name of a zone, or are of another version, cannot be in one
//! calendar; nor can what names a zone that nobody knows be where that name is defined. And an item that was never closed goes on until its calendar ends, so it gets one to itself. It is apart as
//! address books need none of it.

use super::{ExportSummary, items, line_end, source, write, write_text};
use crate::error::Error;
use larder_format::component::{Component, Version};
use larder_format::decode::utf16;
use larder_format::line::lines;
use larder_format::property::Property;
use larder_format::split::{Piece, Splitter};
use larder_store::{Collection, Frame, Reader, Zone};
use larder_time::zone::How;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;

/// What a calendar says of itself that nothing is known of.
const PRODID: &str = "PRODID:-//Larder//Larder//EN";
/// So many calendars are looked at for one in which there is room for a frame.
const TRIES: usize = 8;

/// Writes a calendar: one, or several one after the other where its items need that.
pub(super) fn calendar(
    reader: &Reader,
    collection: &Collection,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<(), Error> {
    let mut objects = Objects::new();
    for row in reader.frames(collection)? {
        objects.place(reader, row, 0)?;
    }
    objects.is_not_empty();
    let heads = Heads::of(reader, collection)?;
    let first = objects.list.first().map(|object| object.frame.clone()).unwrap_or_default();
    heads.begin(&first, true, out, summary)?;
    let mut rest = Rest::default();
    let mut all = items(reader, collection, summary, &mut |summary, head| {
        let at = match objects.of.get(&head.frame) {
            Some(at) => *at,
            // It was added meanwhile, and the zones of the first calendar are written.
            None => objects.place(reader, head.frame, 1)?,
        };
        match objects.list.get_mut(at) {
            Some(first) if at == 0 => {
                item(reader, (head.row, head.frame), &first.known, &mut rest, out, summary)?;
            }
            Some(object) => object.rows.push(head.row),
            None => {}
        }
        Ok(())
    })?;
    heads.end(out, summary)?;
    let mut gone = 0;
    for object in objects.list.into_iter().skip(1) {
        gone += later(reader, &heads, object, &mut rest, out, summary)?;
    }
    for (frame, rows) in std::mem::take(&mut rest.floating) {
        let frame = Frame::clone(&*frame_of(reader, frame)?);
        let object = Object { frame, rows, ..Object::default() };
        gone += later(reader, &heads, object, &mut rest, out, summary)?;
    }
    for unclosed in rest.unclosed {
        alone(reader, &heads, unclosed, out, summary)?;
    }
    all = all.saturating_sub(gone);
    summary.unread = all.saturating_sub(summary.items);
    Ok(())
}

/// What has to come behind all else.
#[derive(Default)]
struct Rest {
    unclosed: Vec<Unclosed>,
    /// Rows of items, by their frames, that name a zone which nobody knows, and which their calendar would define.
    floating: BTreeMap<Option<i64>, Vec<i64>>,
    /// The frame that was looked at last.
    last: Option<(Option<i64>, Arc<Frame>)>,
}

/// An item that goes on until something around it ends.
struct Unclosed {
    row: i64,
    frame: Option<i64>,
    /// It is in no calendar.
    bare: bool,
}

/// Writes a calendar that is not the first one. Returns how many of its items were removed meanwhile.
fn later(
    reader: &Reader,
    heads: &Heads,
    object: Object,
    rest: &mut Rest,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<u64, Error> {
    let mut gone = 0;
    heads.begin(&object.frame, false, out, summary)?;
    for row in object.rows {
        match reader.by_row(row) {
            Ok(Some(head)) => item(reader, (row, head.frame), &object.known, rest, out, summary)?,
            Ok(None) => gone += 1,
            Err(error) => summary.failed = Some(error),
        }
    }
    heads.end(out, summary)?;
    Ok(gone)
}

/// Writes an item into a calendar that defines these zones, or notes that it has to come behind.
fn item(
    reader: &Reader,
    (row, frame): (i64, Option<i64>),
    known: &HashMap<String, [u8; 32]>,
    rest: &mut Rest,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<(), Error> {
    let Some(bytes) = source(reader, row, summary) else { return Ok(()) };
    if !known.is_empty() && floats(reader, &bytes, frame, known, &mut rest.last)? {
        rest.floating.entry(frame).or_default().push(row);
        return Ok(());
    }
    match ends(&bytes) {
        Some(true) => {
            write_text(&bytes, out, summary)?;
            summary.items += 1;
        }
        not => rest.unclosed.push(Unclosed { row, frame, bare: not.is_none() }),
    }
    Ok(())
}

/// Writes an item that is not closed, with its calendar or behind one.
fn alone(
    reader: &Reader,
    heads: &Heads,
    Unclosed { row, frame, bare }: Unclosed,
    out: &mut impl Write,
    summary: &mut ExportSummary,
) -> Result<(), Error> {
    let Some(bytes) = source(reader, row, summary) else { return Ok(()) };
    let frame = frame_of(reader, frame)?;
    if bare {
        // What comes next begins a calendar, and that ends it.
        heads.begin(&Frame::default(), false, out, summary)?;
        heads.end(out, summary)?;
        zones(&frame, out, summary)?;
    } else {
        heads.begin(&frame, false, out, summary)?;
    }
    write_text(&bytes, out, summary)?;
    summary.items += 1;
    if bare { Ok(()) } else { heads.end(out, summary) }
}

fn frame_of(reader: &Reader, row: Option<i64>) -> Result<Arc<Frame>, Error> {
    Ok(row.map(|row| reader.frame(row)).transpose()?.flatten().unwrap_or_default())
}

fn zones(frame: &Frame, out: &mut impl Write, summary: &mut ExportSummary) -> Result<(), Error> {
    for zone in &frame.zones {
        write_text(zone.bytes(), out, summary)?;
        summary.zones += 1;
    }
    Ok(())
}

/// Does an item name a zone that nobody knows, and that would be known in this calendar?
fn floats(
    reader: &Reader,
    bytes: &[u8],
    row: Option<i64>,
    known: &HashMap<String, [u8; 32]>,
    last: &mut Option<(Option<i64>, Arc<Frame>)>,
) -> Result<bool, Error> {
    let component = Component::parse(bytes);
    let tzids = component.tzids();
    if !tzids.iter().any(|tzid| known.contains_key(&**tzid)) {
        return Ok(false);
    }
    let frame = match last {
        Some((of, frame)) if *of == row => Arc::clone(frame),
        _ => frame_of(reader, row)?,
    };
    *last = Some((row, Arc::clone(&frame)));
    let is_new = |tzid: &str| known.contains_key(tzid) && frame.zone(tzid).is_none();
    if !tzids.iter().any(|tzid| is_new(tzid)) {
        return Ok(false);
    }
    let uses = reader.deriver().zone_uses(&component, &frame);
    Ok(uses.iter().any(|zone| zone.how == How::Floating && is_new(&zone.tzid)))
}

/// Does an item of a calendar end with its bytes, or only with its calendar? `None`: it goes on behind the end of that.
fn ends(bytes: &[u8]) -> Option<bool> {
    let text = utf16(bytes).map(String::into_bytes);
    let bytes = text.as_deref().unwrap_or(bytes);
    let (mut found, mut pieces) = (None, 0);
    let mut look = |piece: Piece<'_>| {
        pieces += 1;
        if let Piece::Component { bytes: of, closed, .. } = piece
            && of.len() >= bytes.len()
        {
            found = Some(closed);
        }
    };
    let mut splitter = Splitter::new(usize::MAX);
    for part in [b"BEGIN:VCALENDAR\n", bytes, super::missing_line_end(bytes), b"END:VCALENDAR\n"] {
        splitter.push(part, &mut look);
    }
    splitter.finish(&mut look);
    found.filter(|_| pieces == 3)
}

/// What the calendars say of themselves.
struct Heads {
    own: Option<Vec<u8>>,
    /// By which names a calendar is known: all that are written are parts of it.
    names: Vec<u8>,
    /// One kind of line ends a file, as far as it is for us to say.
    line_end: &'static [u8],
}

impl Heads {
    fn of(reader: &Reader, collection: &Collection) -> Result<Heads, Error> {
        let own = reader.head(collection)?;
        let mut end = own.as_deref().and_then(line_end);
        if end.is_none()
            && let Ok(page) = reader.page(collection, i64::MIN, 1)
            && let Some(first) = page.first()
        {
            end = reader.source(first.row).ok().flatten().as_deref().and_then(line_end);
        }
        let mut names = Vec::new();
        for line in lines(own.as_deref().unwrap_or_default()) {
            let raw = line.raw;
            let property = Property::parse(line);
            if property.is("X-WR-CALNAME") || property.is("NAME") {
                names.extend_from_slice(raw);
                names.extend_from_slice(super::missing_line_end(raw));
            }
        }
        Ok(Heads { own, names, line_end: end.unwrap_or(b"\r\n") })
    }

    /// Begins a calendar for what is in this frame.
    fn begin(
        &self,
        frame: &Frame,
        first: bool,
        out: &mut impl Write,
        summary: &mut ExportSummary,
    ) -> Result<(), Error> {
        self.line("BEGIN:VCALENDAR", out, summary)?;
        let version = if frame.version_1 { Version::V1_0 } else { Version::V2_0 };
        // Where there are several, what is said of itself by the first is not true of all.
        match self.own.as_deref().filter(|own| first && Version::of_calendar(own) == version) {
            Some(own) => write_text(own, out, summary)?,
            None => {
                self.line(&format!("VERSION:{}", version.name()), out, summary)?;
                self.line(PRODID, out, summary)?;
                write(out, summary, &self.names)?;
            }
        }
        zones(frame, out, summary)
    }

    fn end(&self, out: &mut impl Write, summary: &mut ExportSummary) -> Result<(), Error> {
        self.line("END:VCALENDAR", out, summary)
    }

    fn line(
        &self,
        line: &str,
        out: &mut impl Write,
        summary: &mut ExportSummary,
    ) -> Result<(), Error> {
        write(out, summary, line.as_bytes())?;
        write(out, summary, self.line_end)
    }
}

/// Frames that go together into one calendar: of one version, and with no two definitions of one name.
#[derive(Default)]
struct Object {
    frame: Frame,
    /// The definitions by their names.
    known: HashMap<String, [u8; 32]>,
    /// The items that wait to be written.
    rows: Vec<i64>,
}

/// The calendars, and in which of them the items of each frame are.
struct Objects {
    list: Vec<Object>,
    of: HashMap<Option<i64>, usize>,
    /// In which one a definition is, and which is the last one that has the name.
    holders: HashMap<[u8; 32], usize>,
    last: HashMap<String, usize>,
}

impl Objects {
    fn new() -> Objects {
        let (of, holders, last) = (HashMap::new(), HashMap::new(), HashMap::new());
        Objects { list: Vec::new(), of, holders, last }
    }

    fn is_not_empty(&mut self) {
        if self.list.is_empty() {
            self.list.push(Object::default());
        }
    }

    /// Finds a calendar for a frame, from one of this number on. Thousands may have definitions of one name, so it is looked for
    /// only where there is likely to be room.
    fn place(&mut self, reader: &Reader, row: Option<i64>, from: usize) -> Result<usize, Error> {
        let frame = frame_of(reader, row)?;
        let holders = frame.zones.iter().filter_map(|zone| self.holders.get(zone.hash())).copied();
        let behind = frame.zones.iter().filter_map(|zone| self.last.get(zone.tzid()));
        let behind = behind.max().map_or(0, |last| last + 1).max(from);
        let mut likely: Vec<usize> = holders.filter(|holder| *holder >= from).collect();
        likely.extend(behind..behind + TRIES);
        let fits = |at: &usize| self.list.get(*at).is_some_and(|object| object.has_room(&frame));
        let at = match likely.into_iter().find(fits) {
            Some(at) => at,
            None => {
                let frame = Frame { version_1: frame.version_1, ..Frame::default() };
                self.list.push(Object { frame, ..Object::default() });
                self.list.len() - 1
            }
        };
        for zone in &frame.zones {
            self.holders.entry(*zone.hash()).or_insert(at);
            let last = self.last.entry(zone.tzid().to_string()).or_default();
            *last = (*last).max(at);
        }
        if let Some(object) = self.list.get_mut(at) {
            object.take(&frame.zones);
        }
        self.of.insert(row, at);
        Ok(at)
    }
}

impl Object {
    fn has_room(&self, frame: &Frame) -> bool {
        let same =
            |zone: &Arc<Zone>| self.known.get(zone.tzid()).is_none_or(|known| known == zone.hash());
        self.frame.version_1 == frame.version_1 && frame.zones.iter().all(same)
    }

    fn take(&mut self, zones: &[Arc<Zone>]) {
        for zone in zones {
            if self.known.insert(zone.tzid().to_string(), *zone.hash()).is_none() {
                self.frame.zones.push(Arc::clone(zone));
            }
        }
    }
}
