//! When something is, by the clock of who asks: for programs and for people.
//!
//! A moment is told with the offset of that clock; a day, and what floats, without one. What an occurrence is, `larder-time`
//! knows; here it is written.

use crate::query::Asker;
use larder_date_phrase::{self as phrase, Language};
use larder_store::{Occurring, Reader, Times, What, Window};
use larder_time::civil::{Civil, DAY, Date, Instant};
use larder_time::series::{Clock, Start};
use larder_time::zone::Zone;

/// When something is, by the clock of who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// When it begins, as that clock shows it.
    pub from: Civil,
    /// When it has ended; of days, the midnight after the last.
    pub to: Civil,
    /// It is of whole days.
    pub all_day: bool,
    /// It is by the clock of whoever asks.
    pub floating: bool,
    /// How far that clock is from UTC, at its beginning and at its end.
    offsets: (i32, i32),
}

impl When {
    /// An occurrence.
    #[must_use]
    pub fn of(occurring: &Occurring, local: &Zone) -> When {
        let of = &occurring.of;
        let (from, to) = match occurring.date {
            true => (of.start_civil, of.end_civil),
            false => (local.civil(of.start), local.civil(of.end)),
        };
        When {
            from,
            to,
            all_day: occurring.date,
            floating: occurring.floating,
            offsets: (local.offset(of.start), local.offset(of.end)),
        }
    }

    /// From one time until another, by the clock of the first: what that clock leaves out is later. Without an end, it is a moment, or
    /// a day.
    #[must_use]
    pub fn between(start: &Start, end: Option<&Start>) -> When {
        let end = end.unwrap_or(start);
        if start.date {
            let (from, to) = (start.civil, end.civil);
            return When { from, to, all_day: true, floating: true, offsets: (0, 0) };
        }
        let floating = start.clock == Clock::Floating;
        let zone_of = |clock: &Clock| match clock {
            Clock::Zone(zone) => zone.clone(),
            Clock::Utc | Clock::Floating => Zone::UTC,
        };
        let (zone, until) = (zone_of(&start.clock), zone_of(&end.clock));
        let (first, last) = (zone.instant(start.civil), until.instant(end.civil));
        let (from, to) = (zone.civil(first), zone.civil(last));
        let offsets = (zone.offset(first), zone.offset(last));
        When { from, to, all_day: false, floating, offsets }
    }

    /// An item: its first occurrence. `None`: it has no time of its own.
    #[must_use]
    pub fn first(times: &Times, local: &Zone) -> Option<When> {
        let (from, to, what) = (Instant::MIN, Instant::MAX, What::Occurrences);
        let everything = Window { from, to, local: local.clone(), what };
        let mut first = None;
        times.each(&everything, &mut |occurring| {
            first = Some(When::of(&occurring, local));
            false
        });
        first
    }

    /// When it begins, as RFC 3339 has it: `2026-03-06T09:30:00+01:00`; a day is `2026-03-06`, and what floats has no offset.
    #[must_use]
    pub fn start(&self) -> String {
        self.written(self.from, self.offsets.0)
    }

    /// When it has ended, written in the same way; of days, the day after the last.
    #[must_use]
    pub fn end(&self) -> String {
        self.written(self.to, self.offsets.1)
    }

    /// Until when a task is to be done: its end; of days, the last.
    #[must_use]
    pub fn due(&self) -> String {
        if self.all_day { iso(Date::of_day(self.last_day())) } else { self.end() }
    }

    /// Until when a task is to be done, in words.
    #[must_use]
    pub fn due_words(&self, language: &Language) -> String {
        let last = language.date(Date::of_day(self.last_day()));
        if self.all_day { last } else { format!("{last}, {}", clock(self.to)) }
    }

    fn written(&self, at: Civil, offset: i32) -> String {
        match (self.all_day, self.floating) {
            (true, _) => iso(at.date()),
            (false, true) => civil(at),
            (false, false) => format!("{}{}", civil(at), distance(offset)),
        }
    }

    /// When it begins, for a list: `2026-03-06 09:30`, or the day alone.
    #[must_use]
    pub fn listed(&self) -> String {
        match self.all_day {
            true => iso(self.from.date()),
            false => format!("{} {}", iso(self.from.date()), clock(self.from)),
        }
    }

    /// The last day on which it is.
    #[must_use]
    pub fn last_day(&self) -> i64 {
        let whole = self.to.second_of_day() == 0 && self.to > self.from;
        (self.to.day() - i64::from(whole)).max(self.from.day())
    }

    /// In words: `Fri 6 Mar 2026, 09:30-10:00 (30 minutes)`.
    #[must_use]
    pub fn words(&self, language: &Language) -> String {
        let (first, last) = (self.from.date(), Date::of_day(self.last_day()));
        let (first, until) = (language.date(first), language.date(last));
        let days = self.last_day() - self.from.day() + 1;
        match (self.all_day, days) {
            (true, 1) => format!("{first}, all day"),
            (true, _) => format!("{first} to {until} ({})", length(days * DAY)),
            (false, _) if self.seconds() == 0 => format!("{first}, {}", clock(self.from)),
            (false, 1) => {
                let (from, to) = (clock(self.from), end_clock(self.to));
                format!("{first}, {from}-{to} ({})", length(self.seconds()))
            }
            (false, _) => {
                let (from, to, last) = (clock(self.from), clock(self.to), self.to.date());
                let (last, length) = (language.date(last), length(self.seconds()));
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

impl Asker {
    /// The window that a phrase means to who asks.
    #[must_use]
    pub fn window(&self, phrase: &phrase::Window, what: What) -> Window {
        let instant = |civil| self.local.instant(civil);
        let (from, to) = (instant(phrase.from), instant(phrase.to));
        Window { from, to, local: self.local.clone(), what }
    }
}

/// The zone that an item's own clock stands in; `None`: it floats, is of days, or has no time.
#[must_use]
pub fn zone_name(times: &Times) -> Option<String> {
    let series = times.series()?;
    match series.clock() {
        _ if series.is_date() => None,
        Clock::Zone(zone) => Some(zone.name().to_string()),
        Clock::Utc => Some("UTC".into()),
        Clock::Floating => None,
    }
}

/// What the item in this row is in time.
///
/// # Errors
/// What the store reports.
pub fn times_of(reader: &Reader, row: i64) -> Result<Option<Times>, larder_store::Error> {
    let mut found = None;
    reader.times(&[row], &mut |_, times| {
        found = Some(times.clone());
        false
    })?;
    Ok(found)
}

/// A moment as RFC 3339 has it, by this clock.
#[must_use]
pub fn moment(at: Instant, local: &Zone) -> String {
    format!("{}{}", civil(local.civil(at)), distance(local.offset(at)))
}

/// `09:30`
#[must_use]
pub fn clock(at: Civil) -> String {
    let second = at.second_of_day();
    format!("{:02}:{:02}", second / 3600, second / 60 % 60)
}

/// The same of an end: midnight is that of the day that ends, `24:00`.
#[must_use]
pub fn end_clock(at: Civil) -> String {
    if at.second_of_day() == 0 { "24:00".into() } else { clock(at) }
}

/// `2026-03-06`
#[must_use]
pub fn iso(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn civil(at: Civil) -> String {
    format!("{}T{}:{:02}", iso(at.date()), clock(at), at.second_of_day() % 60)
}

/// `+01:00`, or `Z`. RFC 3339 knows no seconds there.
fn distance(offset: i32) -> String {
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    match minutes {
        0 => "Z".into(),
        _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

/// So many seconds in words: `1 hour 30 minutes`.
#[must_use]
pub fn length(seconds: i64) -> String {
    let units = [("week", 7 * DAY), ("day", DAY), ("hour", 3600), ("minute", 60), ("second", 1)];
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
