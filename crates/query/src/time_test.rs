//! Tests of what an item is in time: windows, alarms, and the moments that its properties name.
//!
//! Here is what such a test says, and how it is written; [`larder_store::Times`] knows what an item
//! is. Relative times (`today..+7d`) have become instants when a question is read.

use larder_store::{TimeRange, TimeTarget};
use larder_time::civil::Instant;
use std::fmt;

/// A test of what an item is in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TimeTest {
    /// It has an occurrence, or an alarm, in a window.
    InRange(TimeRange),
    /// A property that names a moment does so from one instant up to, not including, another one.
    /// What has no zone is read by the window's clock.
    DateInRange(DateProperty, TimeRange),
    /// It is a task of which an occurrence was due before the window's end; a day is due until it
    /// is over by the window's clock.
    Overdue(TimeRange),
}

/// A property that names a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called as in RFC 5545")]
#[non_exhaustive]
pub enum DateProperty {
    Start,
    End,
    Due,
    Completed,
    Created,
    Modified,
}

impl DateProperty {
    /// The property.
    #[must_use]
    pub fn property_name(self) -> &'static str {
        match self {
            DateProperty::Start => "DTSTART",
            DateProperty::End => "DTEND",
            DateProperty::Due => "DUE",
            DateProperty::Completed => "COMPLETED",
            DateProperty::Created => "CREATED",
            DateProperty::Modified => "LAST-MODIFIED",
        }
    }

    /// The one that is this property.
    pub(crate) fn from_property_name(name: &str) -> Option<DateProperty> {
        use DateProperty::{Completed, Created, Due, End, Modified, Start};
        let all = [Start, End, Due, Completed, Created, Modified];
        all.into_iter().find(|stamp| name.eq_ignore_ascii_case(stamp.property_name()))
    }

    /// The one that is called so in a search line.
    pub(crate) fn from_search_name(name: &str) -> Option<DateProperty> {
        let all: [(&str, DateProperty); 8] = [
            ("start", DateProperty::Start),
            ("dtstart", DateProperty::Start),
            ("end", DateProperty::End),
            ("due", DateProperty::Due),
            ("completed", DateProperty::Completed),
            ("created", DateProperty::Created),
            ("modified", DateProperty::Modified),
            ("changed", DateProperty::Modified),
        ];
        all.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, stamp)| stamp)
    }
}

/// An instant as `make-time` reads it.
fn to_make_time(instant: Instant) -> String {
    format!(
        "(make-time \"{}\")",
        larder_time::value::IcalDateTime {
            civil: instant.to_civil(0),
            is_date: false,
            is_utc: true
        }
    )
}

/// A window in words, for `--explain`.
pub(crate) fn describe_time_range(window: &TimeRange) -> String {
    let what = match window.target {
        TimeTarget::Occurrences => "an occurrence",
        TimeTarget::Alarms => "an alarm",
    };
    let shown = |instant: Instant| {
        let stamp = window.local_zone.to_civil(instant);
        larder_time::value::IcalDateTime { civil: stamp, is_date: false, is_utc: false }
    };
    let (from, to) = (shown(window.from), shown(window.to));
    format!("{what} from {from} to {to} in {}", window.local_zone.name())
}

/// The two ends of a window, and its clock.
pub(crate) fn to_sexp_range(window: &TimeRange) -> String {
    let (from, to) = (to_make_time(window.from), to_make_time(window.to));
    match window.local_zone.name() {
        "UTC" => format!("{from} {to}"),
        name => format!("{from} {to} \"{name}\""),
    }
}

impl fmt::Display for TimeTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeTest::InRange(window) => {
                let name = match window.target {
                    TimeTarget::Occurrences => "occur-in-time-range?",
                    TimeTarget::Alarms => "has-alarms-in-range?",
                };
                write!(f, "({name} {})", to_sexp_range(window))
            }
            TimeTest::DateInRange(stamp, window) => {
                write!(f, "(stamp \"{}\" {})", stamp.property_name(), to_sexp_range(window))
            }
            TimeTest::Overdue(window) => write!(f, "(overdue? {})", to_sexp_range(window)),
        }
    }
}
