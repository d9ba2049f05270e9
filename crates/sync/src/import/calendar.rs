//! The calendar around the components of a file: its name, purpose and calendar context.
//!
//! It is collected while a file is read, so a component gets the lines that precede it; lines that
//! follow it are known only after a first pass ([`prescan`](super::prescan)). Components outside
//! any calendar belong to an empty calendar. Separate from the pipeline because address books have
//! no calendars.

use super::input_origin::{FolderCollection, InputOrigin};
use larder_edit::calendar_context_builder::{CalendarContextBuilder, ZoneAddition};
use larder_format::component::Component;
use larder_format::decoding::unescape_text;
use larder_format::property::Property;
use larder_format::writer::escape_text;
use larder_store::CalendarContext;
use std::sync::Arc;

/// The memory for a calendar or a definition in addition to its bytes.
const CALENDAR_OVERHEAD_BYTES: usize = 512;
/// The name of a calendar if neither it nor its file has one.
const UNNAMED_CALENDAR: &str = "calendar";
/// The properties with the name of a calendar; the first one counts.
const NAME_PROPERTIES: [&str; 2] = ["X-WR-CALNAME", "NAME"];

/// A calendar while it is read.
#[derive(Default)]
pub(crate) struct OpenCalendar {
    /// The file.
    origin: Arc<InputOrigin>,
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
    /// The calendar of components outside any calendar in a file.
    pub(crate) fn for_file(origin: Arc<InputOrigin>) -> OpenCalendar {
        OpenCalendar { origin, ..OpenCalendar::default() }
    }

    /// Starts the next calendar of the file.
    pub(crate) fn begin_next(&mut self) {
        *self = OpenCalendar::for_file(Arc::clone(&self.origin));
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
        if let Some(known) = &self.enclosing {
            return Arc::clone(known);
        }
        let context = Arc::new(self.context.build());
        let (own, method) = self.read_name_and_method();
        let folder = self.folder_collection();
        let is_message = own.is_none() && folder.is_none() && method.is_addressed();
        let own = own.unwrap_or_else(|| sanitise_collection_name(&self.origin.stem));
        let name = match folder {
            Some(folder) => Arc::clone(&folder.name),
            None => Arc::from(if own.is_empty() { UNNAMED_CALENDAR.into() } else { own }),
        };
        let enclosing = Arc::new(EnclosingCalendar { name, context, method, is_message });
        Arc::clone(self.enclosing.insert(enclosing))
    }

    /// Returns the collection of the folder around the file, if it is a calendar.
    fn folder_collection(&self) -> Option<&Arc<FolderCollection>> {
        self.origin
            .collection
            .as_ref()
            .filter(|folder| folder.collection_type.is_exported_in_calendar())
    }

    fn read_name_and_method(&self) -> (Option<String>, ItipMethod) {
        let bytes = [b"BEGIN:VCALENDAR\n", self.context.header(), b"\nEND:VCALENDAR\n"].concat();
        let calendar = Component::parse(&bytes);
        (calendar_name(&calendar), ItipMethod::from_calendar(&calendar))
    }

    /// Returns whether the calendar has no name and no METHOD so far.
    pub(super) fn is_anonymous(&self) -> bool {
        self.read_name_and_method() == (None, ItipMethod::None)
    }

    /// Ends the calendar.
    pub(crate) fn finish(&mut self, closed: bool) -> FinishedCalendar {
        let around = self.enclosing_calendar();
        FinishedCalendar {
            name: Arc::clone(&around.name),
            is_message: around.is_message,
            header: self.collection_header(),
            zone_count: self.zone_count,
            has_late_zone: self.has_late_zone,
            is_truncated: !closed && !self.has_component,
        }
    }

    /// Returns the properties for the collection: without METHOD, and with the name and the colour
    /// of the folder.
    fn collection_header(&self) -> Vec<u8> {
        let header = self.context.header();
        let Some(folder) = self.folder_collection() else {
            return remove_properties(header, &["METHOD"]);
        };
        let mut removed = vec!["METHOD"];
        let mut lines = String::new();
        if let Some(name) = &folder.display_name {
            removed.extend(NAME_PROPERTIES);
            lines += &format!("X-WR-CALNAME:{}\r\n", escape_text(name));
        }
        if let Some(colour) = &folder.colour {
            removed.extend(["X-APPLE-CALENDAR-COLOR", "COLOR"]);
            let name = if colour.starts_with('#') { "X-APPLE-CALENDAR-COLOR" } else { "COLOR" };
            lines += &format!("{name}:{colour}\r\n");
        }
        let mut header = remove_properties(header, &removed);
        if !lines.is_empty() && header.last().is_some_and(|byte| *byte != b'\n') {
            header.extend_from_slice(b"\r\n");
        }
        header.extend_from_slice(lines.as_bytes());
        header
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
        let first_pass = std::mem::replace(self, OpenCalendar::for_file(Arc::clone(&self.origin)));
        let OpenCalendar { origin, mut context, .. } = first_pass;
        context.restart();
        Some(OpenCalendar { origin, context, is_prescanned: true, ..OpenCalendar::default() })
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

/// Removes properties, such as METHOD, which describes a message and not the calendar.
fn remove_properties(head: &[u8], names: &[&str]) -> Vec<u8> {
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
        let property = Property::parse(line);
        if !names.iter().any(|name| property.has_name(name)) {
            kept.extend_from_slice(raw);
        }
    }
    kept
}

/// Returns X-WR-CALNAME, or NAME (RFC 7986).
fn calendar_name(calendar: &Component<'_>) -> Option<String> {
    let mut names = NAME_PROPERTIES.into_iter().flat_map(|name| {
        calendar.properties_named(name).map(|property| unescape_text(&property.text()).into_owned())
    });
    names.find_map(|name| Some(sanitise_collection_name(&name)).filter(|name| !name.is_empty()))
}

/// Returns the properties of a calendar with another name in the place of the one that its
/// collection had; `None`: they do not have that one. Without this, an export would be imported
/// into a collection of the former name.
#[must_use]
pub fn rename_calendar(properties: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    let (mut renamed, mut is_changed) = (Vec::with_capacity(properties.len()), false);
    for line in larder_format::content_line::content_lines(properties) {
        let raw = line.raw;
        let property = Property::parse(line);
        let name = NAME_PROPERTIES.into_iter().find(|name| property.has_name(name));
        let is_former = || sanitise_collection_name(&unescape_text(&property.text())) == from;
        match name.filter(|_| is_former()) {
            Some(name) => {
                let end = raw.len() - raw.trim_ascii_end().len();
                renamed.extend_from_slice(format!("{name}:{}", escape_text(to)).as_bytes());
                renamed.extend_from_slice(raw.get(raw.len() - end..).unwrap_or_default());
                is_changed = true;
            }
            None => renamed.extend_from_slice(raw),
        }
    }
    is_changed.then_some(renamed)
}

/// Converts text to the name of a collection: one line, without slashes, of limited length.
pub(super) fn sanitise_collection_name(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '/' { ' ' } else { c };
    let name: String = text.chars().take(200).map(plain).collect();
    name.trim().to_string()
}
