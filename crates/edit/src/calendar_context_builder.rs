//! Builds the calendar context of components while the calendar around them is read.
//!
//! Separate from its two callers, the import of files and the parsing of a typed text, so that both
//! apply the same limits and use the same one of several definitions of a time zone.

use larder_format::component::CalendarVersion;
use larder_store::{CalendarContext, ZoneDefinition};
use std::collections::HashMap;
use std::sync::Arc;

/// Further time zone definitions of one calendar are ignored.
const MAX_ZONES_PER_CALENDAR: usize = 4096;
/// Further properties of a calendar are left out.
pub const MAX_HEADER_BYTES: usize = 64 << 10;

/// The reason for rejecting a time zone definition without a name.
pub const NO_TZID_REASON: &str = "time zone definition without a TZID: nothing can refer to it";

/// The calendar context so far: the properties of the calendar and its time zone definitions.
#[derive(Debug, Default, Clone)]
pub struct CalendarContextBuilder {
    header: Vec<u8>,
    /// The bytes of all properties so far, with those that were left out.
    header_bytes: usize,
    zones: Vec<Arc<ZoneDefinition>>,
    /// The index of each definition in `zones`, by its TZID.
    zone_positions: HashMap<String, usize>,
}

/// The effect of a time zone definition on a calendar context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneAddition {
    /// The context contains it now.
    Added,
    /// The context contains another definition of this TZID, or too many.
    Ignored,
    /// It has no TZID, so that nothing can refer to it.
    WithoutTzid,
}

impl CalendarContextBuilder {
    /// Adds properties of the calendar, with their text if the file is UTF-16. Returns the lines
    /// that exceed [`MAX_HEADER_BYTES`].
    pub fn add_lines<'l>(&mut self, lines: &'l [u8], utf16_text: Option<&str>) -> &'l [u8] {
        let (taken, rest) = self.split_at_limit(lines, utf16_text.is_some());
        if !taken.is_empty() {
            self.header.extend_from_slice(utf16_text.map_or(taken, str::as_bytes));
        }
        rest
    }

    /// Counts properties that the context already contains. Returns the lines that exceed
    /// [`MAX_HEADER_BYTES`].
    pub fn skip_lines<'l>(&mut self, lines: &'l [u8], utf16_text: Option<&str>) -> &'l [u8] {
        self.split_at_limit(lines, utf16_text.is_some()).1
    }

    /// Splits lines at the limit: between two lines, or, as UTF-16, before the first.
    fn split_at_limit<'l>(&mut self, lines: &'l [u8], is_utf16: bool) -> (&'l [u8], &'l [u8]) {
        let room = MAX_HEADER_BYTES.saturating_sub(self.header_bytes);
        self.header_bytes = self.header_bytes.saturating_add(lines.len());
        let fits = match lines.get(..room) {
            _ if lines.len() <= room => lines.len(),
            Some(beginning) if !is_utf16 => {
                beginning.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
            }
            _ => 0,
        };
        lines.split_at(fits)
    }

    /// Adds a time zone definition. The first definition of a TZID is used.
    pub fn add_zone(&mut self, bytes: &[u8]) -> ZoneAddition {
        let Some(zone) = ZoneDefinition::new(bytes) else { return ZoneAddition::WithoutTzid };
        let is_known = self.zone_positions.contains_key(zone.tzid());
        if is_known || self.zones.len() >= MAX_ZONES_PER_CALENDAR {
            return ZoneAddition::Ignored;
        }
        self.zone_positions.insert(zone.tzid().to_string(), self.zones.len());
        self.zones.push(Arc::new(zone));
        ZoneAddition::Added
    }

    /// The properties of the calendar.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The time zone definitions.
    #[must_use]
    pub fn zones(&self) -> &[Arc<ZoneDefinition>] {
        &self.zones
    }

    /// Returns the context of a component that follows.
    #[must_use]
    pub fn build(&self) -> CalendarContext {
        let version = CalendarVersion::from_calendar_lines(&self.header);
        CalendarContext {
            is_vcalendar_1: version == CalendarVersion::V1_0,
            zone_definitions: self.zones.clone(),
        }
    }

    /// Forgets the number of bytes of the properties, for a second pass over the same calendar.
    pub fn restart(&mut self) {
        self.header_bytes = 0;
    }
}
