//! Series: the recurrence properties of an item, compiled, and its occurrences in any time range.
//!
//! A [`SeriesSpec`] has the properties of an item: start, length, rules, dates, exceptions,
//! overrides, each in its own zone. A [`Series`] is compiled from it: all times are converted to
//! the zone of the start and sorted, and the ends of rules are resolved, so that a query takes a
//! few divisions and binary searches. A series can be serialised.
//!
//! An occurrence is identified by its *key*, its original time. If the start has a zone, the key is
//! an instant in seconds UTC. If the start is floating, as dates are, the key is the civil time,
//! because the instant depends on the observer.

mod bounds;
mod compile;
mod occurrences;
mod serialization;
mod time_pattern;

pub use self::bounds::SeriesSpan;
pub use self::occurrences::{OverrideMode, SeriesOccurrences};
pub use self::time_pattern::TimePattern;

use crate::civil::{CivilTime, DAY_SECONDS, Instant};
use crate::rule::Rule;
pub use crate::value::EventLength;
use crate::zone::Zone;

/// The time zone reference of a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZoneReference {
    /// UTC.
    Utc,
    /// Floating: the zone of the observer.
    Floating,
    /// A named or defined zone.
    Zone(Zone),
}

/// A date, or a date-time with its zone reference, which has no meaning for a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarDateTime {
    /// The civil time; midnight for a date.
    pub civil: CivilTime,
    /// Whether it is a date.
    pub is_date: bool,
    /// The zone reference.
    pub zone_reference: ZoneReference,
}

impl CalendarDateTime {
    /// Creates a date.
    #[must_use]
    pub fn from_date(day: CivilTime) -> CalendarDateTime {
        CalendarDateTime {
            civil: CivilTime::midnight(day.day_number()),
            is_date: true,
            zone_reference: ZoneReference::Floating,
        }
    }

    /// Creates a date-time.
    #[must_use]
    pub fn from_civil(civil: CivilTime, zone_reference: ZoneReference) -> CalendarDateTime {
        CalendarDateTime { civil, is_date: false, zone_reference }
    }

    /// The zone; `None` if floating, as dates are.
    fn zone(&self) -> Option<&Zone> {
        match &self.zone_reference {
            _ if self.is_date => None,
            ZoneReference::Floating => None,
            ZoneReference::Utc => Some(&Zone::UTC),
            ZoneReference::Zone(zone) => Some(zone),
        }
    }
}

/// An RDATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdate {
    /// The start.
    pub start: CalendarDateTime,
    /// The length, if it differs from the length of other occurrences.
    pub length: Option<EventLength>,
}

/// A changed occurrence: an item with a RECURRENCE-ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// RECURRENCE-ID: the original time.
    pub original: CalendarDateTime,
    /// RANGE=THISANDFUTURE: later occurrences change as well.
    pub is_this_and_future: bool,
    /// The start, if it differs from the original time.
    pub start: Option<CalendarDateTime>,
    /// The length, if it differs from the length of other occurrences.
    pub length: Option<EventLength>,
    /// The caller's identifier of the override.
    pub tag: u64,
}

/// The recurrence properties of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSpec {
    /// DTSTART, the first occurrence whether or not a rule matches it.
    pub start: CalendarDateTime,
    /// The length of an occurrence.
    pub length: EventLength,
    /// RRULE.
    pub rules: Vec<Rule>,
    /// EXRULE.
    pub exrules: Vec<Rule>,
    /// RDATE.
    pub rdates: Vec<Rdate>,
    /// EXDATE.
    pub exdates: Vec<CalendarDateTime>,
    /// The overrides.
    pub overrides: Vec<Override>,
}

impl SeriesSpec {
    /// Creates the spec of a single event.
    #[must_use]
    pub fn without_recurrence(start: CalendarDateTime, length: EventLength) -> SeriesSpec {
        SeriesSpec {
            start,
            length,
            rules: Vec::new(),
            exrules: Vec::new(),
            rdates: Vec::new(),
            exdates: Vec::new(),
            overrides: Vec::new(),
        }
    }
}

/// A problem of a spec, and how the series handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SeriesWarning {
    /// The last occurrence of a rule was not found within the budget: the series continues without
    /// that end.
    #[error(
        "the rule has so many occurrences that the last one was not determined: the series continues without an end"
    )]
    UnknownEnd(usize),
    /// A rule has no occurrence.
    #[error("the rule has no occurrence")]
    NoOccurrence(usize),
}

/// An occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The original time, which identifies the occurrence.
    pub original: Instant,
    /// The original time in the zone of the series.
    pub original_civil: CivilTime,
    /// The start.
    pub start: Instant,
    /// The end, exclusive.
    pub end: Instant,
    /// The start in the zone of the series.
    pub start_civil: CivilTime,
    /// The end in the zone of the series, exclusive; for dates, the day after the last.
    pub end_civil: CivilTime,
    /// The tag of the override, also for occurrences after a THISANDFUTURE override.
    pub tag: Option<u64>,
    /// Whether it is the override itself.
    pub is_override: bool,
}

/// A compiled series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    start: CivilTime,
    is_date: bool,
    zone_reference: ZoneReference,
    length: EventLength,
    /// The rules, with their ends resolved.
    rules: Vec<Rule>,
    exrules: Vec<Rule>,
    /// Sorted by key, without duplicates.
    rdates: Vec<PlannedOccurrence>,
    /// Excluded keys, sorted.
    excluded_keys: Vec<i64>,
    /// Excluded day numbers, sorted.
    excluded_days: Vec<i64>,
    /// Sorted by the key of the original time, without duplicates.
    overrides: Vec<CompiledOverride>,
    /// Sorted by key, without duplicates.
    future_overrides: Vec<FutureOverride>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlannedOccurrence {
    key: i64,
    length: Option<EventLength>,
}

/// A changed occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompiledOverride {
    original: i64,
    start: OverrideStart,
    length: EventLength,
    tag: u64,
}

/// The start of an override, in any kind of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverrideStart {
    Instant(Instant),
    /// A floating time.
    Civil(CivilTime),
    /// A date.
    Date(CivilTime),
}

/// The change of all occurrences from a THISANDFUTURE override on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FutureOverride {
    from: i64,
    /// The shift of the civil time in seconds.
    shift_seconds: i64,
    length: Option<EventLength>,
    tag: u64,
}

impl Series {
    /// Returns whether the occurrences are dates.
    #[must_use]
    pub fn is_date(&self) -> bool {
        self.is_date
    }

    /// The zone reference of the start.
    #[must_use]
    pub fn zone_reference(&self) -> &ZoneReference {
        &self.zone_reference
    }

    /// DTSTART as a civil time.
    #[must_use]
    pub fn start(&self) -> CivilTime {
        self.start
    }

    /// Returns whether it has, or may have, more than one occurrence.
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        !self.rules.is_empty() || !self.rdates.is_empty()
    }

    /// The default length of an occurrence.
    #[must_use]
    pub fn length(&self) -> EventLength {
        self.length
    }

    /// The rules with resolved ends: [`RuleEnd::Never`](crate::rule::RuleEnd::Never) or
    /// [`RuleEnd::ResolvedUntil`](crate::rule::RuleEnd::ResolvedUntil). A rule that still has a
    /// COUNT has more occurrences than the budget could count.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether the ends of all rules are known. Otherwise occurrences far from the start
    /// may lie after the end.
    #[must_use]
    pub fn has_resolved_ends(&self) -> bool {
        self.rules.iter().all(|rule| rule.count().is_none())
    }

    /// Returns whether keys are instants.
    fn has_instant_keys(&self) -> bool {
        !self.is_date && self.zone_reference != ZoneReference::Floating
    }

    /// The zone of the series; the observer's if it is floating.
    fn zone<'z>(&'z self, local: &'z Zone) -> &'z Zone {
        match &self.zone_reference {
            _ if self.is_date => local,
            ZoneReference::Floating => local,
            ZoneReference::Utc => &Zone::UTC,
            ZoneReference::Zone(zone) => zone,
        }
    }

    /// Returns the key of a civil time.
    fn civil_key(&self, civil: CivilTime) -> i64 {
        match &self.zone_reference {
            _ if self.is_date => CivilTime::midnight(civil.day_number()).seconds(),
            ZoneReference::Zone(zone) => zone.to_instant(civil).seconds(),
            ZoneReference::Utc | ZoneReference::Floating => civil.seconds(),
        }
    }

    /// Returns the civil time of a key.
    fn civil_at_key(&self, key: i64) -> CivilTime {
        match &self.zone_reference {
            ZoneReference::Zone(zone) if !self.is_date => {
                zone.to_civil(Instant::from_seconds_clamped(key))
            }
            _ => CivilTime::from_seconds_clamped(key),
        }
    }

    /// Returns the end of an occurrence with this start.
    fn occurrence_end(
        &self,
        start: Instant,
        civil: CivilTime,
        length: EventLength,
        zone: &Zone,
    ) -> (Instant, CivilTime) {
        let on_the_clock = |civil: CivilTime, seconds: i64| {
            let end = zone.to_instant(civil).saturating_add(seconds);
            (end, if seconds == 0 { civil } else { zone.to_civil(end) })
        };
        match length {
            EventLength::Exact(seconds) if self.is_date => {
                on_the_clock(civil.saturating_add(seconds.max(0)), 0)
            }
            EventLength::Exact(seconds) => {
                let end = start.saturating_add(seconds.max(0));
                (end, zone.to_civil(end))
            }
            EventLength::Nominal(nominal) if nominal.days == 0 => {
                let end = start.saturating_add(nominal.seconds.max(0));
                (end, zone.to_civil(end))
            }
            EventLength::Nominal(nominal) => {
                let days = nominal.days.saturating_mul(DAY_SECONDS);
                let (end, shown) = on_the_clock(civil.saturating_add(days), nominal.seconds);
                if end < start { (start, civil) } else { (end, shown) }
            }
        }
    }

    /// Returns an upper bound of the length of an occurrence in seconds.
    #[must_use]
    pub fn max_length_seconds(&self) -> i64 {
        let extras = self.rdates.iter().filter_map(|extra| extra.length);
        let singles = self.overrides.iter().map(|single| single.length);
        let ranges = self.future_overrides.iter().filter_map(|range| range.length);
        let all = extras.chain(singles).chain(ranges).chain([self.length]);
        // A day may have more than 24 hours.
        let longest = all.map(EventLength::max_seconds).max().unwrap_or(0);
        longest.saturating_add(if self.is_date { DAY_SECONDS } else { 0 })
    }
}
