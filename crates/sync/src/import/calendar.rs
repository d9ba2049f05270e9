//! The calendar around the components of a file: its name, purpose and calendar context.
//!
//! It is collected while a file is read, so a component gets the lines that precede it; lines that
//! follow it are known only after a first pass ([`prescan`](super::prescan)). Components outside
//! any calendar belong to an empty calendar. Separate from the pipeline because address books have
//! no calendars.

use larder_edit::calendar_context_builder::{CalendarContextBuilder, ZoneAddition};
use larder_format::component::Component;
use larder_format::decoding::unescape_text;
use larder_format::property::Property;
use larder_store::CalendarContext;
use std::sync::Arc;

/// The memory for a calendar or a definition in addition to its bytes.
const CALENDAR_OVERHEAD_BYTES: usize = 512;
/// The name of a calendar if neither it nor its file has one.
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

/// The calendar around a component.
pub(crate) struct EnclosingCalendar {
    /// The name of the calendar, or else the name of its file.
    pub(crate) name: Arc<str>,
    /// The calendar context.
    pub(crate) context: Arc<CalendarContext>,
    /// The purpose of the calendar.
    pub(crate) method: ItipMethod,
    /// Whether it is a scheduling message, and not a calendar of its own.
    pub(crate) is_message: bool,
}

/// The purpose of a calendar (METHOD; RFC 5546).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItipMethod {
    /// The calendar has no METHOD, or an unknown one.
    None,
    /// PUBLISH: the items of an organizer, for anyone.
    Publish,
    /// REQUEST: the items of an organizer, for their attendees.
    Request,
    /// CANCEL: the items are cancelled.
    Cancel,
    /// A part of an item: a reply, a proposal, or one more occurrence.
    Partial(String),
}

/// The result of a calendar at its end.
pub(crate) struct FinishedCalendar {
    pub(crate) name: Arc<str>,
    /// Whether it is a scheduling message.
    pub(crate) is_message: bool,
    /// The properties of the calendar, without METHOD.
    pub(crate) header: Vec<u8>,
    /// The number of its time-zone definitions.
    pub(crate) zone_count: u64,
    /// Whether a time zone is defined after a component.
    pub(crate) has_late_zone: bool,
    /// Whether it contains nothing, not even its end.
    pub(crate) is_truncated: bool,
}

impl OpenCalendar {
    /// The calendar of components outside any calendar in a file of this name.
    pub(crate) fn for_file(stem: Arc<str>) -> OpenCalendar {
        OpenCalendar { stem, ..OpenCalendar::default() }
    }

    /// Starts the next calendar of the file.
    pub(crate) fn begin_next(&mut self) {
        *self = OpenCalendar::for_file(Arc::clone(&self.stem));
    }

    /// Adds properties of the calendar. Returns the lines that exceed the limit.
    pub(crate) fn add_lines<'l>(&mut self, lines: &'l [u8], utf16_text: Option<&str>) -> &'l [u8] {
        if self.is_prescanned {
            return self.context.skip_lines(lines, utf16_text);
        }
        let rest = self.context.add_lines(lines, utf16_text);
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

    /// Records that the calendar contains a component.
    pub(crate) fn mark_used(&mut self) {
        self.has_component = true;
    }

    /// Returns the calendar around the next component.
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

    /// Ends the calendar.
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

    /// Returns the memory that the calendar uses, in bytes.
    pub(super) fn memory_cost(&self) -> usize {
        let zones = self.context.zones().iter();
        let zones = zones.map(|zone| CALENDAR_OVERHEAD_BYTES + zone.bytes().len());
        CALENDAR_OVERHEAD_BYTES + self.context.header().len() + zones.sum::<usize>()
    }

    /// Returns the calendar for the second pass, if it has a property or a zone after a component.
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

    /// Returns whether the method addresses certain people, about items that they may have in any
    /// of their calendars.
    fn is_addressed(&self) -> bool {
        matches!(self, ItipMethod::Request | ItipMethod::Cancel | ItipMethod::Partial(_))
    }
}

/// Removes METHOD, which describes a message and not the calendar.
fn remove_method(head: &[u8]) -> Vec<u8> {
    // A folded line may contain an empty line, which is not exported.
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

/// Returns X-WR-CALNAME, or NAME (RFC 7986).
fn calendar_name(calendar: &Component<'_>) -> Option<String> {
    let mut names = ["X-WR-CALNAME", "NAME"].into_iter().flat_map(|name| {
        calendar.properties_named(name).map(|property| unescape_text(&property.text()).into_owned())
    });
    names.find_map(|name| Some(sanitise_collection_name(&name)).filter(|name| !name.is_empty()))
}

/// Converts text to the name of a collection: one line, without slashes, of limited length.
fn sanitise_collection_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '/' { ' ' } else { c };
    let name: String = text.chars().take(200).map(plain).collect();
    name.trim().to_string()
}
