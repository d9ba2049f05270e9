//! When something is, by the clock of who asks: for programs and for people.
//!
//! A moment is told with the offset of that clock; a day, and what floats, without one. What an
//! occurrence is, `larder-time` knows; here it is written.

use larder_date_phrase::{DateRange, Language, UserLocale};
use larder_store::{ItemOccurrence, Reader, Schedule, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, DAY_SECONDS, Date, Instant};
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
    /// How far that clock is from UTC, at its beginning and at its end.
    offsets: (i32, i32),
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
            offsets: (local.offset(of.start), local.offset(of.end)),
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
            return LocalTimeSpan { from, to, all_day: true, floating: true, offsets: (0, 0) };
        }
        let floating = start.zone_reference == ZoneReference::Floating;
        let zone_of = |clock: &ZoneReference| match clock {
            ZoneReference::Zone(zone) => zone.clone(),
            ZoneReference::Utc | ZoneReference::Floating => Zone::UTC,
        };
        let (zone, until) = (zone_of(&start.zone_reference), zone_of(&end.zone_reference));
        let (first, last) = (zone.to_instant(start.civil), until.to_instant(end.civil));
        let (from, to) = (zone.to_civil(first), zone.to_civil(last));
        let offsets = (zone.offset(first), zone.offset(last));
        LocalTimeSpan { from, to, all_day: false, floating, offsets }
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

    /// When it begins, as RFC 3339 has it: `2026-03-06T09:30:00+01:00`; a day is `2026-03-06`, and
    /// what floats has no offset.
    #[must_use]
    pub fn format_start(&self) -> String {
        self.format_time(self.from, self.offsets.0)
    }

    /// When it has ended, written in the same way; of days, the day after the last.
    #[must_use]
    pub fn format_end(&self) -> String {
        self.format_time(self.to, self.offsets.1)
    }

    /// Until when a task is to be done: its end; of days, the last.
    #[must_use]
    pub fn format_due(&self) -> String {
        if self.all_day {
            format_date(Date::from_day_number(self.last_day()))
        } else {
            self.format_end()
        }
    }

    /// Until when a task is to be done, in words.
    #[must_use]
    pub fn describe_due(&self, language: &Language) -> String {
        let last = language.date(Date::from_day_number(self.last_day()));
        if self.all_day { last } else { format!("{last}, {}", format_clock(self.to)) }
    }

    fn format_time(&self, at: CivilTime, offset: i32) -> String {
        match (self.all_day, self.floating) {
            (true, _) => format_date(at.date()),
            (false, true) => format_civil(at),
            (false, false) => format!("{}{}", format_civil(at), format_offset(offset)),
        }
    }

    /// When it begins, for a list: `2026-03-06 09:30`, or the day alone.
    #[must_use]
    pub fn format_for_list(&self) -> String {
        match self.all_day {
            true => format_date(self.from.date()),
            false => format!("{} {}", format_date(self.from.date()), format_clock(self.from)),
        }
    }

    /// The last day on which it is.
    #[must_use]
    pub fn last_day(&self) -> i64 {
        let whole = self.to.second_of_day() == 0 && self.to > self.from;
        (self.to.day_number() - i64::from(whole)).max(self.from.day_number())
    }

    /// In words: `Fri 6 Mar 2026, 09:30-10:00 (30 minutes)`.
    #[must_use]
    pub fn describe(&self, language: &Language) -> String {
        let (first, last) = (self.from.date(), Date::from_day_number(self.last_day()));
        let (first, until) = (language.date(first), language.date(last));
        let days = self.last_day() - self.from.day_number() + 1;
        match (self.all_day, days) {
            (true, 1) => format!("{first}, all day"),
            (true, _) => format!("{first} to {until} ({})", describe_duration(days * DAY_SECONDS)),
            (false, _) if self.seconds() == 0 => format!("{first}, {}", format_clock(self.from)),
            (false, 1) => {
                let (from, to) = (format_clock(self.from), format_end_clock(self.to));
                format!("{first}, {from}-{to} ({})", describe_duration(self.seconds()))
            }
            (false, _) => {
                let (from, to, last) =
                    (format_clock(self.from), format_clock(self.to), self.to.date());
                let (last, length) = (language.date(last), describe_duration(self.seconds()));
                format!("{first}, {from} to {last}, {to} ({length})")
            }
        }
    }

    /// How long it takes, whatever the clock does meanwhile.
    pub(crate) fn seconds(&self) -> i64 {
        let (from, to) = self.offsets;
        (self.to.seconds() - i64::from(to)) - (self.from.seconds() - i64::from(from))
    }
}

/// Returns the instants that a date phrase of the user covers.
#[must_use]
pub fn window_to_time_range(
    locale: &UserLocale,
    window: &DateRange,
    target: TimeTarget,
) -> TimeRange {
    let instant = |civil| locale.zone.to_instant(civil);
    let (from, to) = (instant(window.from), instant(window.to));
    TimeRange { from, to, local_zone: locale.zone.clone(), target }
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

/// A moment as RFC 3339 has it, by this clock.
#[must_use]
pub fn format_instant(at: Instant, local: &Zone) -> String {
    format!("{}{}", format_civil(local.to_civil(at)), format_offset(local.offset(at)))
}

/// `09:30`
#[must_use]
pub fn format_clock(at: CivilTime) -> String {
    let second = at.second_of_day();
    format!("{:02}:{:02}", second / 3600, second / 60 % 60)
}

/// The same of an end: midnight is that of the day that ends, `24:00`.
#[must_use]
pub fn format_end_clock(at: CivilTime) -> String {
    if at.second_of_day() == 0 { "24:00".into() } else { format_clock(at) }
}

/// `2026-03-06`
#[must_use]
pub fn format_date(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn format_civil(at: CivilTime) -> String {
    format!("{}T{}:{:02}", format_date(at.date()), format_clock(at), at.second_of_day() % 60)
}

/// `+01:00`, or `Z`. RFC 3339 knows no seconds there.
fn format_offset(offset: i32) -> String {
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    match minutes {
        0 => "Z".into(),
        _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

/// So many seconds in words: `1 hour 30 minutes`.
#[must_use]
pub fn describe_duration(seconds: i64) -> String {
    let units = [
        ("week", 7 * DAY_SECONDS),
        ("day", DAY_SECONDS),
        ("hour", 3600),
        ("minute", 60),
        ("second", 1),
    ];
    let mut left = seconds.max(0);
    let mut parts = Vec::new();
    for (noun, size) in units {
        // Days that are whole weeks are weeks, others are counted.
        let number = if noun == "week" && left % size != 0 { 0 } else { left / size };
        left -= number * size;
        if number > 0 {
            parts.push(format!("{number} {noun}{}", if number == 1 { "" } else { "s" }));
        }
    }
    if parts.is_empty() { "no time".into() } else { parts.join(" ") }
}
