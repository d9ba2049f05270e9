//! The interval index: which items are in a window of time, and which alarms ring in it.
//!
//! `idx_span(place, start, end, item, series)` answers that, in the order of its key, so that a window reads about as many rows
//! as it finds. `place` is the collection, times 2^14, and the class of the row, by which it is one of two things:
//!
//! * a span: whatever has an end, with its first start and its last end. Spans of one class are about as long as each other, so none
//!   that reaches into a window begins much before it.
//! * a slot: series without an end, or with one far away. The slot says when in the week, the month or the year an occurrence can
//!   be, by the days of UTC, so that a birthday is not looked at in other months.
//!
//! What floats is in classes and slots of its own, in the seconds and days of its own clock, and is read by the clock of whoever
//! asks. `series` is empty for what happens once; else it is a [`Hint`], and
//! behind that what `idx_time` has of the series, if that is short: so a window passes over a series, takes it, or asks it, without a
//! look into another table.
//!
//! What an item is in time is found in `times`; here is how the rows look, in `hint` what they tell of a series, in `search` how they are found, in `write` how they come
//! there, and in `zones` what becomes of them when zones change.

mod hint;
mod search;
mod write;
mod zones;

pub(crate) use hint::Hint;
pub(crate) use search::{all_classes, classes, search};
pub(crate) use write::{Writer, each_row, empty, erase, rows_of};
pub(crate) use zones::{ZONES, note_zones};

use crate::deriver::Deriver;
use crate::times::Times;
use larder_time::civil::{DAY, Instant, Weekday};
use larder_time::zone::Zone;
use rusqlite::Connection;

/// The longest span of each class, in seconds; whatever is longer is in one more.
const CLASSES: [i64; 9] = [
    4 * 3600,
    DAY + 2 * 3600,
    8 * DAY,
    32 * DAY,
    64 * DAY,
    128 * DAY,
    256 * DAY,
    2 * 366 * DAY,
    10 * 366 * DAY,
];
/// Classes of what floats have this much more, and those of alarms that.
pub(crate) const FLOATING: i64 = 20;
pub(crate) const ALARMS: i64 = 100;
/// The slots of what floats have this much more, and those of alarms that.
const FLOATING_SLOTS: i64 = 1000;
const ALARM_SLOTS: i64 = 10_000;
/// Slots, behind all classes of spans: at any time; from here on a weekday, a day of the month, a month (times 32) and its day.
const ANY: i64 = 1000;
const WEEKDAYS: i64 = ANY + 1;
const MONTH_DAYS: i64 = ANY + 20;
const YEAR_DAYS: i64 = ANY + 100;

/// More bytes than this are not kept in a row: they would stand between the rows of others.
const INLINED: usize = 160;

/// What is looked for in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// Items with an occurrence in it: one that ends behind the window's beginning and begins before its end.
    Occurrences,
    /// Items with an alarm that rings in it.
    Alarms,
}

/// A window of time: from an instant up to, not including, another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// The clock of who asks, by which floating times and days are read.
    pub local: Zone,
    /// What is looked for.
    pub what: What,
}

/// Items in a window.
#[derive(Debug, Clone, Default)]
pub struct Searched {
    /// Their rows, in order, each once.
    pub rows: Vec<i64>,
    /// Of these it could not be said within bounds whether they are in it.
    pub unsure: Vec<i64>,
    /// How many rows of the index were read.
    pub visited: u64,
    /// How many series were asked themselves.
    pub tested: u64,
}

/// A row of the table. What has no hint is in every window that its span, or what it has of a slot, reaches into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    class: i64,
    start: i64,
    end: i64,
    series: Option<Hint>,
}

impl Row {
    /// Something that begins and ends; where it takes no time, it is taken to last a second.
    pub(crate) fn span(
        what: What,
        floating: bool,
        (start, end): (i64, i64),
        series: Option<Hint>,
    ) -> Row {
        let end = end.max(start + 1);
        let length = end - start;
        let class = CLASSES.iter().position(|most| length <= *most).unwrap_or(CLASSES.len()) as i64;
        let class = class + if floating { FLOATING } else { 0 };
        let class = class + if what == What::Alarms { ALARMS } else { 0 };
        Row { class, start, end, series }
    }

    /// Something that goes on for long.
    pub(crate) fn slot(
        what: What,
        floating: bool,
        slot: Slot,
        (start, end): (i64, i64),
        series: Option<Hint>,
    ) -> Row {
        let slot = slot.number() + if floating { FLOATING_SLOTS } else { 0 };
        let class = slot + if what == What::Alarms { ALARM_SLOTS } else { 0 };
        Row { class, start, end, series }
    }

    /// What it is of.
    pub(crate) fn what(&self) -> What {
        match (ALARMS..ANY).contains(&self.class) || self.class >= ALARM_SLOTS {
            true => What::Alarms,
            false => What::Occurrences,
        }
    }

    /// From when to when it reaches, by whatever clock.
    pub(crate) fn hull(&self) -> (i64, i64) {
        (self.start.saturating_sub(DAY), self.end.saturating_add(DAY))
    }

    /// Where it is in the table, as a row of this collection.
    fn place(&self, collection: i64) -> i64 {
        place(collection, self.class)
    }

    /// What its column has of a series: what a window may have to ask is behind the hint.
    fn packed(&self, data: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.series.as_ref()?.pack();
        if self.what() == What::Occurrences && data.len() <= INLINED {
            bytes.extend_from_slice(data);
        }
        Some(bytes)
    }

    /// Is the other one the same stretch? Then what is not sure of one is not sure of both.
    pub(crate) fn absorbs(&mut self, other: &Row) -> bool {
        let same = (self.class, self.start, self.end) == (other.class, other.start, other.end);
        if same && self.series != other.series {
            self.series = Some(Hint::NONE);
        }
        same
    }
}

/// The days on which occurrences of a long series can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Any,
    Weekday(Weekday),
    MonthDay(u8),
    /// A month and its day; with the day 0 any day of it.
    YearDay(u8, u8),
}

impl Slot {
    fn number(self) -> i64 {
        match self {
            Slot::Any => ANY,
            Slot::Weekday(weekday) => WEEKDAYS + i64::from(weekday.number()),
            Slot::MonthDay(day) => MONTH_DAYS + i64::from(day),
            Slot::YearDay(month, day) => YEAR_DAYS + i64::from(month) * 32 + i64::from(day),
        }
    }
}

/// Where the rows of a class are: in one number, which is sooner compared than two.
fn place(collection: i64, class: i64) -> i64 {
    (collection << 14) + class
}

/// What was packed, with its zone.
pub(crate) fn unpack(conn: &Connection, deriver: &Deriver, data: &[u8]) -> Option<Times> {
    Times::unpack(data, &mut |name| deriver.clocks.zone(conn, name))
}
