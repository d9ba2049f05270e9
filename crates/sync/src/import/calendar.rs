//! The calendar around the components of a file: what it says of itself, and the time zones that it
//! defines.
//!
//! It is gathered while a file is read, so a component knows what was said before it; what is said
//! behind it is known where the file was looked through [`ahead`](super::ahead). Components without
//! a calendar around them belong to one that says nothing.

use larder_edit::calendar_context_builder::{CalendarContextBuilder, ZoneAddition};
use larder_format::component::Component;
use larder_format::decoding::unescape_text;
use larder_format::property::Property;
use larder_store::CalendarContext;
use std::sync::Arc;

/// What a calendar, or a definition, costs beside its bytes.
const CALENDAR_OVERHEAD_BYTES: usize = 512;
/// Where a calendar has no name, and its file neither.
const UNNAMED_CALENDAR: &str = "calendar";

/// A calendar while it is read.
#[derive(Default)]
pub(crate) struct OpenCalendar {
    /// The file's name without its extension.
    stem: Arc<str>,
    context: CalendarContextBuilder,
    /// The number of time-zone definitions, repeated ones included.
    zone_count: u64,
    /// Whether a first pass over the file has read the whole context.
    is_prescanned: bool,
    has_component: bool,
    /// Whether the calendar has a property after a component.
    has_late_property: bool,
    /// Whether the calendar has a time-zone definition after a component.
    has_late_zone: bool,
    /// The result of [`enclosing_calendar`](Self::enclosing_calendar), until the context changes.
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

    /// Adds properties of the calendar. Returns the lines that there is no room for.
    pub(crate) fn add_lines<'l>(&mut self, lines: &'l [u8]) -> &'l [u8] {
        if self.is_prescanned {
            return self.context.skip_lines(lines);
        }
        let rest = self.context.add_lines(lines);
        if rest.len() < lines.len() {
            self.has_late_property |= self.has_component;
            self.enclosing = None;
        }
        rest
    }

    /// Adds a time-zone definition. Returns `false` if it has no TZID.
    pub(crate) fn add_zone(&mut self, bytes: &[u8]) -> bool {
        // After a first pass the context already contains it, or as many as it can.
        let addition = self.context.add_zone(bytes);
        if addition == ZoneAddition::WithoutTzid {
            return false;
        }
        self.zone_count += 1;
        if addition == ZoneAddition::Added {
            self.has_late_zone |= self.has_component;
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
            let context = Arc::new(self.context.build());
            let header = self.context.header();
            let bytes = [b"BEGIN:VCALENDAR\n", header, b"\nEND:VCALENDAR\n"].concat();
            let calendar = Component::parse(&bytes);
            let (own, method) = (calendar_name(&calendar), ItipMethod::from_calendar(&calendar));
            let is_message = own.is_none() && method.is_addressed();
            let own = own.unwrap_or_else(|| sanitise_collection_name(&self.stem));
            let name = Arc::from(if own.is_empty() { UNNAMED_CALENDAR.into() } else { own });
            Arc::new(EnclosingCalendar { name, context, method, is_message })
        };
        Arc::clone(self.enclosing.get_or_insert_with(make))
    }

    /// It ends.
    pub(crate) fn finish(&mut self, closed: bool) -> FinishedCalendar {
        let around = self.enclosing_calendar();
        FinishedCalendar {
            name: Arc::clone(&around.name),
            is_message: around.is_message,
            header: remove_method(self.context.header()),
            zone_count: self.zone_count,
            has_late_zone: self.has_late_zone,
            is_truncated: !closed && !self.has_component,
        }
    }

    /// How much it holds, in bytes.
    pub(super) fn memory_cost(&self) -> usize {
        let zones = self.context.zones().iter();
        let zones = zones.map(|zone| CALENDAR_OVERHEAD_BYTES + zone.bytes().len());
        CALENDAR_OVERHEAD_BYTES + self.context.header().len() + zones.sum::<usize>()
    }

    /// The same calendar for who reads it again, if it said something behind a component.
    pub(crate) fn take_if_late(&mut self) -> Option<OpenCalendar> {
        if !self.has_late_property && !self.has_late_zone {
            return None;
        }
        let first_pass = std::mem::replace(self, OpenCalendar::for_file(Arc::clone(&self.stem)));
        let OpenCalendar { stem, mut context, .. } = first_pass;
        context.restart();
        Some(OpenCalendar { stem, context, is_prescanned: true, ..OpenCalendar::default() })
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
