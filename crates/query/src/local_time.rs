//! Times of items in the user's time zone: spans, days, and the time range of a date phrase.
//!
//! Separate from `agenda` because single items have times, too. `larder-present` makes their text.

use larder_date_phrase::{DateRange, UserLocale};
use larder_store::{ItemMeta, ItemOccurrence, ItemRow, Reader, Schedule, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::zone::Zone;

/// The start and end of an occurrence in the user's time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTimeSpan {
    /// The start.
    pub from: CivilTime,
    /// The end; for whole days, the midnight after the last day.
    pub to: CivilTime,
    /// Whether the occurrence takes whole days.
    pub all_day: bool,
    /// Whether the item names no time zone.
    pub floating: bool,
    /// The UTC offset at the start, in seconds.
    pub start_offset: i32,
    /// The UTC offset at the end, in seconds.
    pub end_offset: i32,
}

impl LocalTimeSpan {
    /// Converts an occurrence.
    #[must_use]
    pub fn from_occurrence(occurrence: &ItemOccurrence, local: &Zone) -> LocalTimeSpan {
        let span = &occurrence.occurrence;
        let (from, to) = match occurrence.is_date {
            true => (span.start_civil, span.end_civil),
            false => (local.to_civil(span.start), local.to_civil(span.end)),
        };
        LocalTimeSpan {
            from,
            to,
            all_day: occurrence.is_date,
            floating: occurrence.is_floating,
            start_offset: local.offset(span.start),
            end_offset: local.offset(span.end),
        }
    }

    /// Converts a start and an end, both to the time zone of the start. A time that the zone skips
    /// is moved forward. Without an end, the span is empty; for a date it counts as one day.
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

    /// Converts a date or time; a date is a day.
    #[must_use]
    fn from_date_time(date_time: &CalendarDateTime, local: &Zone) -> LocalTimeSpan {
        let civil = date_time.civil;
        let floating = date_time.is_date || date_time.zone_reference == ZoneReference::Floating;
        let instant = match &date_time.zone_reference {
            ZoneReference::Zone(zone) if !floating => zone.to_instant(civil),
            ZoneReference::Utc if !floating => Instant::from_seconds_clamped(civil.seconds()),
            _ => local.to_instant(civil),
        };
        let from = if floating { civil } else { local.to_civil(instant) };
        let day = if date_time.is_date { DAY_SECONDS } else { 0 };
        let offset = local.offset(instant);
        LocalTimeSpan {
            from,
            to: from.saturating_add(day),
            all_day: date_time.is_date,
            floating,
            start_offset: offset,
            end_offset: offset,
        }
    }

    /// Converts the first occurrence of an item, or its start if exceptions and overrides replace
    /// all occurrences; `None` if the item has no date.
    #[must_use]
    pub fn from_first_occurrence(schedule: &Schedule, local: &Zone) -> Option<LocalTimeSpan> {
        let everything = TimeRange {
            from: Instant::MIN,
            to: Instant::MAX,
            local_zone: local.clone(),
            target: TimeTarget::Occurrences,
        };
        let mut first = None;
        schedule.for_each_in(&everything, &mut |occurrence| {
            first = Some(occurrence);
            false
        });
        let first = first.or_else(|| schedule.start_occurrence(local));
        first.map(|occurrence| LocalTimeSpan::from_occurrence(&occurrence, local))
    }

    /// The number of the last day (see [`CivilTime::day_number`]).
    #[must_use]
    pub fn last_day(&self) -> i64 {
        let ends_at_midnight = self.to.second_of_day() == 0 && self.to > self.from;
        (self.to.day_number() - i64::from(ends_at_midnight)).max(self.from.day_number())
    }

    /// The number of the day of the end as a due time: midnight is on the day that it begins, but
    /// whole days are due on the last one.
    #[must_use]
    pub fn due_day(&self) -> i64 {
        if self.all_day { self.last_day() } else { self.to.day_number() }
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

/// Returns the instants that a date phrase of the user covers.
#[must_use]
pub fn date_range_to_time_range(
    locale: &UserLocale,
    time_range: &DateRange,
    target: TimeTarget,
) -> TimeRange {
    let instant = |civil| locale.zone.to_instant(civil);
    let (from, to) = (instant(time_range.from), instant(time_range.to));
    TimeRange { from, to, local_zone: locale.zone.clone(), target }
}

/// Returns the time zone that an item names; `None` for floating times, dates, and items without a
/// time.
#[must_use]
pub fn zone_name(schedule: &Schedule) -> Option<String> {
    let series = schedule.series()?;
    match series.zone_reference() {
        _ if series.is_date() => None,
        ZoneReference::Zone(zone) => Some(zone.name().to_string()),
        ZoneReference::Utc => Some("UTC".into()),
        ZoneReference::Floating => None,
    }
}

/// The times of an item in the user's time zone.
#[derive(Debug, Clone)]
pub struct LocalItemTimes {
    /// The first occurrence.
    pub first: LocalTimeSpan,
    /// The start; `None` if the item has none, as a task with a due time alone. Of a series: of the
    /// first occurrence.
    pub start: Option<LocalTimeSpan>,
    /// The due time of a task: its end. Of a series: of the first occurrence.
    pub due: Option<LocalTimeSpan>,
    /// The time zone that the item names.
    pub zone: Option<String>,
}

/// Reads the times of an item; `None` if it has no date.
///
/// # Errors
/// Errors of the store.
pub fn read_item_times(
    reader: &Reader,
    meta: &ItemMeta,
    local: &Zone,
) -> Result<Option<LocalItemTimes>, larder_store::Error> {
    let Some(schedule) = read_schedule(reader, meta.row)? else { return Ok(None) };
    let Some(first) = LocalTimeSpan::from_first_occurrence(&schedule, local) else {
        return Ok(None);
    };
    let zone = zone_name(&schedule);
    let (start, due) = match meta.kind.has_due_time() {
        true => read_task_times(reader, meta, &first, schedule.is_recurring(), local)?,
        false => (Some(first.clone()), None),
    };
    Ok(Some(LocalItemTimes { first, start, due, zone }))
}

/// Reads the start and the due time of a task. A task that does not recur has them as written, even
/// if it is due before it starts.
fn read_task_times(
    reader: &Reader,
    meta: &ItemMeta,
    first: &LocalTimeSpan,
    is_recurring: bool,
    local: &Zone,
) -> Result<(Option<LocalTimeSpan>, Option<LocalTimeSpan>), larder_store::Error> {
    let bytes = reader.items().source_bytes(meta.row)?.unwrap_or_default();
    let component = reader.items().parse_component(meta, &bytes);
    let context = meta.calendar_context.map(|row| reader.items().calendar_context(row));
    let context = context.transpose()?.flatten().unwrap_or_default();
    let written = |name| component.time_properties(name).find(|time| !time.text.is_empty());
    let time = |name| {
        let resolved = reader.extractor().resolve_date_time(&written(name)?, &context)?;
        match is_recurring {
            true => Some(first.clone()),
            false => Some(LocalTimeSpan::from_date_time(&resolved, local)),
        }
    };
    let start = time("DTSTART");
    let has_length = start.is_some() && written("DURATION").is_some();
    let due = time("DUE").or_else(|| has_length.then(|| first.clone()));
    Ok((start, due))
}

/// Reads the schedule of the item in this row.
///
/// # Errors
/// Errors of the store.
pub fn read_schedule(
    reader: &Reader,
    row: ItemRow,
) -> Result<Option<Schedule>, larder_store::Error> {
    let mut found = None;
    reader.items().for_each_schedule(&[row], &mut |_, schedule| {
        found = Some(schedule.clone());
        false
    })?;
    Ok(found)
}
