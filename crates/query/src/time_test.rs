//! Tests of an item's schedule: time ranges, alarms, and the instants in its properties.
//!
//! A test holds instants: the parsers resolve relative times (`today..+7d`). Separate from `query`,
//! so that `item` can name the properties. [`larder_store::Schedule`] answers the tests.

use larder_store::{TimeRange, TimeTarget};
use larder_time::civil::Instant;
use std::fmt;

/// A test of an item's schedule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TimeTest {
    /// The item has an occurrence, or an alarm, in a time range.
    InRange(TimeRange),
    /// The instant in a property is in a time range. A time without a zone is read in the range's.
    DateInRange(DateProperty, TimeRange),
    /// The item is a task with an occurrence that was due before the end of the range. A due date
    /// lasts until the end of that day, in the range's time zone.
    Overdue(TimeRange),
}

/// A property that holds a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 5545")]
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
    /// The name in iCalendar.
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

    /// Finds one by its name in iCalendar.
    pub(crate) fn from_property_name(name: &str) -> Option<DateProperty> {
        use DateProperty::{Completed, Created, Due, End, Modified, Start};
        let all = [Start, End, Due, Completed, Created, Modified];
        all.into_iter().find(|property| name.eq_ignore_ascii_case(property.property_name()))
    }

    /// Finds one by its name in a search line.
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
        all.into_iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map(|(_, property)| property)
    }
}

/// Writes an instant as a call of `make-time`.
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

/// Returns a time range in words, for `--explain`.
pub(crate) fn describe_time_range(time_range: &TimeRange) -> String {
    let noun = match time_range.target {
        TimeTarget::Occurrences => "an occurrence",
        TimeTarget::Alarms => "an alarm",
    };
    let format = |instant: Instant| {
        let civil = time_range.local_zone.to_civil(instant);
        larder_time::value::IcalDateTime { civil, is_date: false, is_utc: false }
    };
    let (from, to) = (format(time_range.from), format(time_range.to));
    format!("{noun} from {from} to {to} in {}", time_range.local_zone.name())
}

/// Writes a time range as arguments of an S-expression: its ends, and its zone unless it is UTC.
pub(crate) fn to_sexp_range(time_range: &TimeRange) -> String {
    let (from, to) = (to_make_time(time_range.from), to_make_time(time_range.to));
    match time_range.local_zone.name() {
        "UTC" => format!("{from} {to}"),
        name => format!("{from} {to} \"{name}\""),
    }
}

impl fmt::Display for TimeTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeTest::InRange(time_range) => {
                let name = match time_range.target {
                    TimeTarget::Occurrences => "occur-in-time-range?",
                    TimeTarget::Alarms => "has-alarms-in-range?",
                };
                write!(f, "({name} {})", to_sexp_range(time_range))
            }
            TimeTest::DateInRange(property, time_range) => {
                write!(f, "(stamp \"{}\" {})", property.property_name(), to_sexp_range(time_range))
            }
            TimeTest::Overdue(time_range) => write!(f, "(overdue? {})", to_sexp_range(time_range)),
        }
    }
}
