//! Occurrences grouped by day, and the text that an agenda shows of each.
//!
//! Separate from `larder_query::read_agenda`, which finds the occurrences; this module formats
//! them.

use crate::local_time::{describe_duration, format_clock, format_end_clock};
use larder_query::local_time::DayRange;
use larder_query::{AgendaEntry, TimeRange};
use larder_time::civil::{CivilTime, Date};
use std::collections::BTreeMap;

/// A longer occurrence is shown on this number of days only.
const MAX_DAYS_PER_OCCURRENCE: i64 = 1000;

/// A day with at least one occurrence.
#[derive(Debug, Clone)]
pub struct AgendaDay<'e> {
    /// The date.
    pub date: Date,
    /// The occurrences on this day: whole days first, then by time.
    pub entries: Vec<DayEntry<'e>>,
}

/// The part of an occurrence that lies on one day.
#[derive(Debug, Clone)]
pub struct DayEntry<'e> {
    /// The occurrence.
    pub entry: &'e AgendaEntry,
    /// The number of this day among the days of the occurrence, from 1.
    pub day_number: i64,
    /// The number of days of the occurrence.
    pub day_count: i64,
    /// The start; `None` if it lies on an earlier day, or the occurrence is of whole days.
    pub from: Option<CivilTime>,
    /// The end; `None` if it lies on a later day, or the occurrence is of whole days.
    pub to: Option<CivilTime>,
}

impl DayEntry<'_> {
    /// Returns the time on this day: `09:30-10:00`, `09:30`, `all day`, `23:00-`, `-01:00`,
    /// `due 17:00`, `due`.
    #[must_use]
    pub fn time_text(&self) -> String {
        if self.entry.item.has_due {
            return self.to.map_or("due".into(), |to| format!("due {}", format_clock(to)));
        }
        match (self.from.map(format_clock), self.to.map(format_end_clock)) {
            (Some(from), Some(_)) if self.entry.local_time.seconds() == 0 => from,
            (Some(from), Some(to)) => format!("{from}-{to}"),
            (Some(from), None) => format!("{from}-"),
            (None, Some(to)) => format!("-{to}"),
            (None, None) => "all day".into(),
        }
    }

    /// Returns the number of the day, if the occurrence has several: `day 2 of 3`; or the duration,
    /// if the UTC offset changes during the occurrence and its two times do not show the duration.
    #[must_use]
    pub fn part_text(&self) -> Option<String> {
        if self.day_count > 1 {
            return Some(format!("day {} of {}", self.day_number, self.day_count));
        }
        let span = &self.entry.local_time;
        let shown_seconds = span.to.seconds() - span.from.seconds();
        (!span.all_day && shown_seconds != span.seconds())
            .then(|| describe_duration(span.seconds()))
    }

    /// Whole days come first, and events before tasks.
    fn sort_key(&self) -> (bool, bool, CivilTime, CivilTime) {
        let time = self.from.or(self.to);
        let first_time = if self.entry.item.has_due { self.to } else { self.from };
        (
            time.is_some(),
            self.entry.item.has_due && time.is_none(),
            first_time.unwrap_or(CivilTime::MIN),
            self.to.unwrap_or(CivilTime::MIN),
        )
    }
}

/// Groups occurrences by the days of a time range. Days without an occurrence are left out.
#[must_use]
pub fn group_by_day<'e>(entries: &'e [AgendaEntry], time_range: &TimeRange) -> Vec<AgendaDay<'e>> {
    let mut entries_by_day: BTreeMap<i64, Vec<DayEntry<'e>>> = BTreeMap::new();
    let page = DayRange::from_time_range(time_range);
    for entry in entries {
        let days = entry.agenda_days();
        let (from, to) = (days.first.max(page.first), days.last.min(page.last));
        for day in from..=to.min(from.saturating_add(MAX_DAYS_PER_OCCURRENCE)) {
            entries_by_day.entry(day).or_default().push(entry_on_day(entry, day, days));
        }
    }
    let days = entries_by_day.into_iter().map(|(day, mut entries)| {
        entries.sort_by_key(DayEntry::sort_key);
        AgendaDay { date: Date::from_day_number(day), entries }
    });
    days.collect()
}

fn entry_on_day(entry: &AgendaEntry, day: i64, days: DayRange) -> DayEntry<'_> {
    let has_clock = !entry.local_time.all_day;
    let (from, to) = (entry.local_time.from, entry.local_time.to);
    DayEntry {
        entry,
        day_number: day - days.first + 1,
        day_count: days.last - days.first + 1,
        from: (has_clock && day == from.day_number()).then_some(from),
        to: (has_clock && day == days.last).then_some(to),
    }
}
