//! Time zone definitions (VTIMEZONE, RFC 5545, 3.6.5): their properties as texts, and the canonical
//! form in which equal definitions have equal bytes.
//!
//! The meaning of a definition, and the system zone that it matches, need arithmetic and tables
//! that are not here. Separate from [`component`](crate::component) because definitions have no
//! fields.

use crate::component::{Component, ComponentKind, Subcomponent};
use crate::content_line::content_lines;
use crate::utf16::{self, Endian};

/// A time zone definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VtimezoneDefinition {
    /// TZID: the name that times in the same calendar use.
    pub tzid: String,
    /// X-LIC-LOCATION: the zone that it claims to be.
    pub location: Option<String>,
    /// The observances, in the order of the definition.
    pub observances: Vec<VtimezoneObservance>,
}

/// An observance: STANDARD or DAYLIGHT. All values are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VtimezoneObservance {
    /// Whether it is daylight saving time.
    pub is_daylight: bool,
    /// DTSTART: the first onset, in the local time before it.
    pub dtstart: String,
    /// TZOFFSETFROM: the offset before.
    pub offset_from: String,
    /// TZOFFSETTO: the offset after the onset.
    pub offset_to: String,
    /// RRULE: further onsets.
    pub rrules: Vec<String>,
    /// RDATE: further onsets, one value each.
    pub rdates: Vec<String>,
    /// TZNAME: the first one.
    pub name: Option<String>,
}

impl VtimezoneDefinition {
    /// Parses a definition. `None` if it is not a VTIMEZONE, or has no TZID or no observance. The
    /// texts are not validated.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<VtimezoneDefinition> {
        VtimezoneDefinition::from_component(&Component::parse(bytes))
    }

    /// Reads a component as a definition; `None` as for [`VtimezoneDefinition::parse`].
    #[must_use]
    pub fn from_component(component: &Component<'_>) -> Option<VtimezoneDefinition> {
        if *component.kind() != ComponentKind::TimeZone || component.fatal_problem().is_some() {
            return None;
        }
        let first = |name| {
            let texts = component.properties_named(name).map(|property| {
                crate::decoding::unescape_text(&property.text()).trim().to_string()
            });
            texts.into_iter().find(|text| !text.is_empty())
        };
        let observances: Vec<VtimezoneObservance> = component
            .subcomponents()
            .iter()
            .filter_map(VtimezoneObservance::from_subcomponent)
            .collect();
        let tzid = first("TZID").filter(|_| !observances.is_empty())?;
        Some(VtimezoneDefinition { tzid, location: first("X-LIC-LOCATION"), observances })
    }
}

impl VtimezoneObservance {
    fn from_subcomponent(part: &Subcomponent<'_>) -> Option<VtimezoneObservance> {
        let daylight = part.name() == "DAYLIGHT";
        if part.depth() > 1 || !(daylight || part.name() == "STANDARD") {
            return None;
        }
        let all = |name| part.time_properties(name).map(|timed| timed.text.into_owned());
        let first = |name| all(name).next().unwrap_or_default();
        let dates = all("RDATE").collect::<Vec<_>>().join(",");
        let dates = dates.split(',').map(|date| date.trim().to_string());
        Some(VtimezoneObservance {
            is_daylight: daylight,
            dtstart: first("DTSTART"),
            offset_from: first("TZOFFSETFROM"),
            offset_to: first("TZOFFSETTO"),
            rrules: all("RRULE").filter(|rule| !rule.is_empty()).collect(),
            rdates: dates.filter(|date| !date.is_empty()).collect(),
            name: all("TZNAME").find(|name| !name.is_empty()),
        })
    }
}

/// Returns the canonical form of the definition: lines without folds, trailing spaces, blank lines
/// and byte-order mark, each ended by LF.
#[must_use]
pub fn normalise_definition(bytes: &[u8]) -> Vec<u8> {
    let decoded = Endian::detect(bytes).map(|order| utf16::decode(bytes, order));
    let bytes = decoded.as_ref().map_or(bytes, |text| text.as_bytes());
    let bytes = bytes.strip_prefix(utf16::BOM).unwrap_or(bytes);
    let mut normalised = Vec::with_capacity(bytes.len());
    for line in content_lines(bytes) {
        normalised.extend_from_slice(line.text.trim_ascii_end());
        normalised.push(b'\n');
    }
    normalised
}
