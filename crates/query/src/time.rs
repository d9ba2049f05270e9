//! Tests of what an item is in time: windows, alarms, and the moments that its properties name.
//!
//! Here is what such a test says, and how it is written; [`larder_store::Times`] knows what an item is. Relative times
//! (`today..+7d`) have become instants when a question is read.

use larder_store::{What, Window};
use larder_time::civil::Instant;
use std::fmt;

/// A test of what an item is in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TimeTest {
    /// It has an occurrence, or an alarm, in a window.
    In(Window),
    /// A property that names a moment does so from one instant up to, not including, another one. What has no zone is
    /// read by the window's clock.
    Stamp(Stamp, Window),
    /// It is a task of which an occurrence was due before the window's end; a day is due until it is over by the window's clock.
    Overdue(Window),
}

/// A property that names a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called as in RFC 5545")]
#[non_exhaustive]
pub enum Stamp {
    Start,
    End,
    Due,
    Completed,
    Created,
    Modified,
}

impl Stamp {
    /// The property.
    #[must_use]
    pub fn property(self) -> &'static str {
        match self {
            Stamp::Start => "DTSTART",
            Stamp::End => "DTEND",
            Stamp::Due => "DUE",
            Stamp::Completed => "COMPLETED",
            Stamp::Created => "CREATED",
            Stamp::Modified => "LAST-MODIFIED",
        }
    }

    /// The one that is this property.
    pub(crate) fn of_property(name: &str) -> Option<Stamp> {
        use Stamp::{Completed, Created, Due, End, Modified, Start};
        let all = [Start, End, Due, Completed, Created, Modified];
        all.into_iter().find(|stamp| name.eq_ignore_ascii_case(stamp.property()))
    }

    /// The one that is called so in a search line.
    pub(crate) fn named(name: &str) -> Option<Stamp> {
        let all: [(&str, Stamp); 8] = [
            ("start", Stamp::Start),
            ("dtstart", Stamp::Start),
            ("end", Stamp::End),
            ("due", Stamp::Due),
            ("completed", Stamp::Completed),
            ("created", Stamp::Created),
            ("modified", Stamp::Modified),
            ("changed", Stamp::Modified),
        ];
        all.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, stamp)| stamp)
    }
}

/// An instant as `make-time` reads it.
fn written(instant: Instant) -> String {
    format!(
        "(make-time \"{}\")",
        larder_time::value::Stamp { civil: instant.civil(0), date: false, utc: true }
    )
}

/// A window in words, for `--explain`.
pub(crate) fn words(window: &Window) -> String {
    let what = match window.what {
        What::Occurrences => "an occurrence",
        What::Alarms => "an alarm",
    };
    let shown = |instant: Instant| {
        let stamp = window.local.civil(instant);
        larder_time::value::Stamp { civil: stamp, date: false, utc: false }
    };
    let (from, to) = (shown(window.from), shown(window.to));
    format!("{what} from {from} to {to} in {}", window.local.name())
}

/// The two ends of a window, and its clock.
pub(crate) fn range(window: &Window) -> String {
    let (from, to) = (written(window.from), written(window.to));
    match window.local.name() {
        "UTC" => format!("{from} {to}"),
        name => format!("{from} {to} \"{name}\""),
    }
}

impl fmt::Display for TimeTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeTest::In(window) => {
                let name = match window.what {
                    What::Occurrences => "occur-in-time-range?",
                    What::Alarms => "has-alarms-in-range?",
                };
                write!(f, "({name} {})", range(window))
            }
            TimeTest::Stamp(stamp, window) => {
                write!(f, "(stamp \"{}\" {})", stamp.property(), range(window))
            }
            TimeTest::Overdue(window) => write!(f, "(overdue? {})", range(window)),
        }
    }
}
