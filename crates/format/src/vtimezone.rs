//! Definitions of time zones (VTIMEZONE of RFC 5545, 3.6.5): their parts as texts, and the form in
//! which equal ones are equal bytes.
//!
//! What a definition means, and which zone of the system it is, takes arithmetic and tables that
//! are not here. It is apart from [`component`](crate::component) because nobody asks a definition
//! for fields.

use crate::component::{Component, ComponentKind, Subcomponent};
use crate::content_line::content_lines;
use crate::utf16::{self, Endian};

/// The definition of a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VtimezoneDefinition {
    /// The name that the times of the same calendar use for it.
    pub tzid: String,
    /// The zone that it claims to be (X-LIC-LOCATION).
    pub location: Option<String>,
    /// When which offset holds, in the order of the definition.
    pub observances: Vec<VtimezoneObservance>,
}

/// A rule for when an offset holds: STANDARD or DAYLIGHT. All values are as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VtimezoneObservance {
    /// Is it daylight saving time?
    pub is_daylight: bool,
    /// DTSTART: the first onset, in the local time before it.
    pub dtstart: String,
    /// TZOFFSETFROM: the offset before.
    pub offset_from: String,
    /// TZOFFSETTO: the offset from then on.
    pub offset_to: String,
    /// RRULE: further onsets.
    pub rrules: Vec<String>,
    /// RDATE: further onsets, each value on its own.
    pub rdates: Vec<String>,
    /// TZNAME: the first one.
    pub name: Option<String>,
}

impl VtimezoneDefinition {
    /// Reads a definition. `None`: it is no VTIMEZONE, or has no TZID or no observance. Which of
    /// the texts are well formed is not looked at.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<VtimezoneDefinition> {
        VtimezoneDefinition::from_component(&Component::parse(bytes))
    }

    /// Reads a component as a definition; `None` as with [`VtimezoneDefinition::parse_locale`].
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

/// The definition in the form that definitions of the same text have in common: lines without
/// folds, without blanks at their ends, blank lines and mark, each with an LF at its end.
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
