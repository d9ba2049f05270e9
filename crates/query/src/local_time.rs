//! When something is, by the clock of who asks: for programs and for people.
//!
//! A moment is told with the offset of that clock; a day, and what floats, without one. What an
//! occurrence is, `larder-time` knows; here it is written.

use crate::query::UserLocale;
use larder_date_phrase::DateRange;
use larder_store::{ItemOccurrence, Reader, Schedule, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::zone::Zone;

/// When something is, by the clock of who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTimeSpan {
    /// When it begins, as that clock shows it.
    pub from: CivilTime,
    /// When it has ended; of days, the midnight after the last.
    pub to: CivilTime,
    /// It is of whole days.
    pub all_day: bool,
    /// It is by the clock of whoever asks.
    pub floating: bool,
    /// The UTC offset at the start, in seconds.
    pub start_offset: i32,
    /// The UTC offset at the end, in seconds.
    pub end_offset: i32,
}

impl LocalTimeSpan {
    /// An occurrence.
    #[must_use]
    pub fn from_occurrence(occurring: &ItemOccurrence, local: &Zone) -> LocalTimeSpan {
        let of = &occurring.occurrence;
        let (from, to) = match occurring.is_date {
            true => (of.start_civil, of.end_civil),
            false => (local.to_civil(of.start), local.to_civil(of.end)),
        };
        LocalTimeSpan {
            from,
            to,
            all_day: occurring.is_date,
            floating: occurring.is_floating,
            start_offset: local.offset(of.start),
            end_offset: local.offset(of.end),
        }
    }

    /// From one time until another, by the clock of the first: what that clock leaves out is later.
    /// Without an end, it is a moment, or a day.
    #[must_use]
    pub fn from_start_and_end(
        start: &CalendarDateTime,
        end: Option<&CalendarDateTime>,
    ) -> LocalTimeSpan {
        let end = end.unwrap_or(start);
        if start.is_date {
            let (from, to) = (start.civil, end.civil);
            return LocalTimeSpan {
                from,
                to,
                all_day: true,
                floating: true,
                start_offset: 0,
                end_offset: 0,
            };
        }
        let floating = start.zone_reference == ZoneReference::Floating;
        let zone_of = |clock: &ZoneReference| match clock {
            ZoneReference::Zone(zone) => zone.clone(),
            ZoneReference::Utc | ZoneReference::Floating => Zone::UTC,
        };
        let (zone, until) = (zone_of(&start.zone_reference), zone_of(&end.zone_reference));
        let (first, last) = (zone.to_instant(start.civil), until.to_instant(end.civil));
        let (from, to) = (zone.to_civil(first), zone.to_civil(last));
        LocalTimeSpan {
            from,
            to,
            all_day: false,
            floating,
            start_offset: zone.offset(first),
            end_offset: zone.offset(last),
        }
    }

    /// An item: its first occurrence. `None`: it has no time of its own.
    #[must_use]
    pub fn from_first_occurrence(times: &Schedule, local: &Zone) -> Option<LocalTimeSpan> {
        let (from, to, what) = (Instant::MIN, Instant::MAX, TimeTarget::Occurrences);
        let everything = TimeRange { from, to, local_zone: local.clone(), target: what };
        let mut first = None;
        times.for_each_in(&everything, &mut |occurring| {
            first = Some(LocalTimeSpan::from_occurrence(&occurring, local));
            false
        });
        first
    }

    /// The last day on which it is.
    #[must_use]
    pub fn last_day(&self) -> i64 {
        let whole = self.to.second_of_day() == 0 && self.to > self.from;
        (self.to.day_number() - i64::from(whole)).max(self.from.day_number())
    }

    /// The elapsed time, in seconds: changes of the UTC offset do not count.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        let start = self.from.seconds() - i64::from(self.start_offset);
        let end = self.to.seconds() - i64::from(self.end_offset);
        end - start
    }
}

/// Days by their numbers (see [`CivilTime::day_number`]), both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// The first day.
    pub first: i64,
    /// The last day.
    pub last: i64,
}

impl DayRange {
    /// The days that a time range touches, in its own time zone.
    #[must_use]
    pub fn from_time_range(time_range: &TimeRange) -> DayRange {
        let day = |instant: Instant| time_range.local_zone.to_civil(instant).day_number();
        let last_second = time_range.to.seconds().saturating_sub(1);
        DayRange {
            first: day(time_range.from),
            last: day(Instant::from_seconds_clamped(last_second)),
        }
    }

    /// Returns whether the two ranges have a day in common.
    #[must_use]
    pub fn overlaps(self, other: DayRange) -> bool {
        self.first <= other.last && self.last >= other.first
    }
}

impl UserLocale {
    /// The window that a phrase means to who asks.
    #[must_use]
    pub fn to_time_range(&self, phrase: &DateRange, what: TimeTarget) -> TimeRange {
        let instant = |civil| self.zone.to_instant(civil);
        let (from, to) = (instant(phrase.from), instant(phrase.to));
        TimeRange { from, to, local_zone: self.zone.clone(), target: what }
    }
}

/// The zone that an item's own clock stands in; `None`: it floats, is of days, or has no time.
#[must_use]
pub fn zone_name(times: &Schedule) -> Option<String> {
    let series = times.series()?;
    match series.zone_reference() {
        _ if series.is_date() => None,
        ZoneReference::Zone(zone) => Some(zone.name().to_string()),
        ZoneReference::Utc => Some("UTC".into()),
        ZoneReference::Floating => None,
    }
}

/// What the item in this row is in time.
///
/// # Errors
/// What the store reports.
pub fn read_schedule(reader: &Reader, row: i64) -> Result<Option<Schedule>, larder_store::Error> {
    let mut found = None;
    reader.for_each_schedule(&[row], &mut |_, times| {
        found = Some(times.clone());
        false
    })?;
    Ok(found)
}
