//! The calendar around the components of a file: what it says of itself, and the time zones that it
//! defines.
//!
//! It is gathered while a file is read, so a component knows what was said before it; what is said
//! behind it is known where the file was looked through [`ahead`](super::ahead). Components without
//! a calendar around them belong to one that says nothing.

use larder_format::component::{CalendarVersion, Component};
use larder_format::decoding::{decode_utf16_lines, unescape_text};
use larder_format::property::Property;
use larder_store::{CalendarContext, VtimezoneText};
use std::collections::HashMap;
use std::sync::Arc;

/// Of more definitions than this in one calendar the rest is not taken in.
const MAX_ZONES_PER_CALENDAR: usize = 4096;
/// Of a calendar's own lines, no more bytes than this are kept.
pub(super) const MAX_HEADER_BYTES: usize = 64 << 10;
/// What a calendar, or a definition, costs beside its bytes.
const CALENDAR_OVERHEAD_BYTES: usize = 512;
/// Where a calendar has no name, and its file neither.
const UNNAMED_CALENDAR: &str = "calendar";

/// Why a time zone is not taken.
pub(crate) const NO_TZID_REASON: &str = "a time zone without a TZID";

/// A calendar while it is read.
#[derive(Default)]
pub(crate) struct OpenCalendar {
    /// What its file is called.
    stem: Arc<str>,
    header: Vec<u8>,
    /// The definitions, and where each is by its name.
    zones: Vec<Arc<VtimezoneText>>,
    zone_positions: HashMap<String, usize>,
    /// How many were there, with those that came again.
    zone_count: u64,
    /// The bytes of its own lines so far.
    header_bytes: usize,
    /// All that it says was read before.
    is_prescanned: bool,
    /// There was a component in it.
    has_component: bool,
    /// Something was said behind a component, a time zone was defined there.
    late: (bool, bool),
    /// What its components get; made anew when something was said since.
    enclosing: Option<Arc<EnclosingCalendar>>,
}

/// What a component has around it.
pub(crate) struct EnclosingCalendar {
    /// What the calendar is called: by itself, else by its file.
    pub(crate) name: Arc<str>,
    /// The version of the format, and the definitions of time zones.
    pub(crate) context: Arc<CalendarContext>,
    /// What it is sent for.
    pub(crate) method: ItipMethod,
    /// It is a message about items, and not a calendar of its own.
    pub(crate) is_message: bool,
}

/// What a calendar is sent for (METHOD of RFC 5546).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItipMethod {
    /// It is not sent, as far as one can see.
    None,
    /// Its items are as their organizer has them, at some time, for whoever wants them.
    Publish,
    /// The same, for those who are asked to come.
    Request,
    /// They are called off.
    Cancel,
    /// What it says of an item is not all of it: an answer, a proposal, one more occurrence.
    Partial(String),
}

/// What a calendar said until its end.
pub(crate) struct FinishedCalendar {
    pub(crate) name: Arc<str>,
    /// As [`EnclosingCalendar`] has it.
    pub(crate) is_message: bool,
    /// Its own lines.
    pub(crate) header: Vec<u8>,
    /// How many time zones it defined.
    pub(crate) zone_count: u64,
    /// One of them was defined too late for what was before it.
    pub(crate) has_late_zone: bool,
    /// Nothing was in it, not even its end.
    pub(crate) is_truncated: bool,
}

impl OpenCalendar {
    /// The calendar of components that have none around them, in a file of this name.
    pub(crate) fn for_file(stem: Arc<str>) -> OpenCalendar {
        OpenCalendar { stem, ..OpenCalendar::default() }
    }

    /// Another one begins in the same file.
    pub(crate) fn begin_next(&mut self) {
        *self = OpenCalendar::for_file(Arc::clone(&self.stem));
    }

    /// Lines of its own. Returns those that it has no room for.
    pub(crate) fn add_lines<'l>(&mut self, lines: &'l [u8]) -> &'l [u8] {
        let room = MAX_HEADER_BYTES.saturating_sub(self.header_bytes);
        self.header_bytes = self.header_bytes.saturating_add(lines.len());
        let decoded = decode_utf16_lines(lines);
        let fits = match lines.get(..room) {
            _ if lines.len() <= room => lines.len(),
            Some(beginning) if decoded.is_none() => {
                beginning.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
            }
            _ => 0,
        };
        let (taken, rest) = lines.split_at(fits);
        if !self.is_prescanned && !taken.is_empty() {
            self.header.extend_from_slice(decoded.as_deref().map_or(taken, str::as_bytes));
            self.late.0 |= self.has_component;
            self.enclosing = None;
        }
        rest
    }

    /// A time zone is defined. The first definition of a name is the one that counts. False: it has
    /// no name, so nothing can use it.
    pub(crate) fn add_zone(&mut self, bytes: &[u8]) -> bool {
        let Some(zone) = VtimezoneText::new(bytes) else { return false };
        self.zone_count += 1;
        let is_new = !self.is_prescanned && !self.zone_positions.contains_key(zone.tzid());
        if is_new && self.zones.len() < MAX_ZONES_PER_CALENDAR {
            self.zone_positions.insert(zone.tzid().to_string(), self.zones.len());
            self.zones.push(Arc::new(zone));
            self.late.1 |= self.has_component;
            self.enclosing = None;
        }
        true
    }

    /// A component is in it.
    pub(crate) fn mark_used(&mut self) {
        self.has_component = true;
    }

    /// What a component that comes now has around it.
    pub(crate) fn enclosing_calendar(&mut self) -> Arc<EnclosingCalendar> {
        let make = || {
            let version_1 =
                CalendarVersion::from_calendar_lines(&self.header) == CalendarVersion::V1_0;
            let frame = Arc::new(CalendarContext {
                is_vcalendar_1: version_1,
                zone_definitions: self.zones.clone(),
            });
            let bytes = [b"BEGIN:VCALENDAR\n", &*self.header, b"\nEND:VCALENDAR\n"].concat();
            let calendar = Component::parse(&bytes);
            let (own, method) = (calendar_name(&calendar), ItipMethod::from_calendar(&calendar));
            let is_message = own.is_none() && method.is_addressed();
            let own = own.unwrap_or_else(|| sanitise_collection_name(&self.stem));
            let name = Arc::from(if own.is_empty() { UNNAMED_CALENDAR.into() } else { own });
            Arc::new(EnclosingCalendar { name, context: frame, method, is_message })
        };
        Arc::clone(self.enclosing.get_or_insert_with(make))
    }

    /// It ends.
    pub(crate) fn finish(&mut self, closed: bool) -> FinishedCalendar {
        let around = self.enclosing_calendar();
        FinishedCalendar {
            name: Arc::clone(&around.name),
            is_message: around.is_message,
            header: remove_method(&self.header),
            zone_count: self.zone_count,
            has_late_zone: self.late.1,
            is_truncated: !closed && !self.has_component,
        }
    }

    /// How much it holds, in bytes.
    pub(super) fn memory_cost(&self) -> usize {
        let zones = self.zones.iter().map(|zone| CALENDAR_OVERHEAD_BYTES + zone.bytes().len());
        CALENDAR_OVERHEAD_BYTES + self.header.len() + zones.sum::<usize>()
    }

    /// The same calendar for who reads it again, if it said something behind a component.
    pub(crate) fn take_if_late(&mut self) -> Option<OpenCalendar> {
        if self.late == (false, false) {
            return None;
        }
        let said = std::mem::replace(self, OpenCalendar::for_file(Arc::clone(&self.stem)));
        let OpenCalendar { stem, header: head, zones, zone_positions: known, .. } = said;
        Some(OpenCalendar {
            stem,
            header: head,
            zones,
            zone_positions: known,
            is_prescanned: true,
            ..OpenCalendar::default()
        })
    }
}

impl ItipMethod {
    fn from_calendar(calendar: &Component<'_>) -> ItipMethod {
        let name = calendar
            .properties_named("METHOD")
            .next()
            .map(|method| method.text().to_ascii_uppercase());
        match name.as_deref().map(str::trim) {
            Some("PUBLISH") => ItipMethod::Publish,
            Some("REQUEST") => ItipMethod::Request,
            Some("CANCEL") => ItipMethod::Cancel,
            Some(part @ ("REPLY" | "ADD" | "COUNTER" | "DECLINECOUNTER" | "REFRESH")) => {
                ItipMethod::Partial(part.into())
            }
            _ => ItipMethod::None,
        }
    }

    /// Is it for some people, about items that they may have already, in whichever calendar?
    fn is_addressed(&self) -> bool {
        matches!(self, ItipMethod::Request | ItipMethod::Cancel | ItipMethod::Partial(_))
    }
}

/// METHOD says what a message is for, and nothing of the calendar.
fn remove_method(head: &[u8]) -> Vec<u8> {
    // An empty line may stand within a folded one; it is not exported.
    let whole: Vec<u8> = (head.split_inclusive(|&byte| byte == b'\n'))
        .filter(|line| {
            !line.trim_ascii().is_empty() || line.starts_with(b" ") || line.starts_with(b"\t")
        })
        .flatten()
        .copied()
        .collect();
    let mut kept = Vec::with_capacity(whole.len());
    for line in larder_format::content_line::content_lines(&whole) {
        let raw = line.raw;
        if !Property::parse(line).has_name("METHOD") {
            kept.extend_from_slice(raw);
        }
    }
    kept
}

/// X-WR-CALNAME, or NAME of RFC 7986.
fn calendar_name(calendar: &Component<'_>) -> Option<String> {
    let mut names = ["X-WR-CALNAME", "NAME"].into_iter().flat_map(|name| {
        calendar.properties_named(name).map(|property| unescape_text(&property.text()).into_owned())
    });
    names.find_map(|name| Some(sanitise_collection_name(&name)).filter(|name| !name.is_empty()))
}

/// A text as the name of a collection: in one line, without slashes, and not too long.
fn sanitise_collection_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '/' { ' ' } else { c };
    let name: String = text.chars().take(200).map(plain).collect();
    name.trim().to_string()
}
