//! Series: what an item says about when it happens, compiled, and its occurrences in any window.
//!
//! A [`SeriesSpec`] is what stands in the item: start, length, rules, dates, exceptions, changed
//! occurrences, each in the clock it was written in. A [`Series`] is what follows from it:
//! everything in the start's clock, sorted, the ends of rules found, so that a question is a few
//! divisions and bisections. It can be kept as bytes.
//!
//! An occurrence is known by its *key*: the moment it was planned for, in seconds UTC, if the
//! start's clock stands in a zone; what the clock shows, if it floats, as all days do, for then the
//! moment is another for each who asks.

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

/// Where a clock stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZoneReference {
    /// It shows UTC.
    Utc,
    /// With whoever looks at it.
    Floating,
    /// In a zone.
    Zone(Zone),
}

/// A date or a date-time with its clock, which means nothing for a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarDateTime {
    /// What the clock shows; midnight for a date.
    pub civil: CivilTime,
    /// A date.
    pub is_date: bool,
    /// Where the clock stands.
    pub zone_reference: ZoneReference,
}

impl CalendarDateTime {
    /// A date.
    #[must_use]
    pub fn from_date(day: CivilTime) -> CalendarDateTime {
        CalendarDateTime {
            civil: CivilTime::midnight(day.day_number()),
            is_date: true,
            zone_reference: ZoneReference::Floating,
        }
    }

    /// A date-time.
    #[must_use]
    pub fn from_civil(civil: CivilTime, zone_reference: ZoneReference) -> CalendarDateTime {
        CalendarDateTime { civil, is_date: false, zone_reference }
    }

    /// The zone of its clock; none if it floats, as dates do.
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
    /// When it begins.
    pub start: CalendarDateTime,
    /// How long it takes, if not as long as the others.
    pub length: Option<EventLength>,
}

/// A changed occurrence: an item with a RECURRENCE-ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// RECURRENCE-ID: when it was planned for.
    pub original: CalendarDateTime,
    /// RANGE=THISANDFUTURE: those after it change, too.
    pub is_this_and_future: bool,
    /// When it begins, if not when it was planned.
    pub start: Option<CalendarDateTime>,
    /// How long it takes, if not as long as the others.
    pub length: Option<EventLength>,
    /// The caller's name of it.
    pub tag: u64,
}

/// What an item says about when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSpec {
    /// DTSTART, the first occurrence whether a rule matches it or not.
    pub start: CalendarDateTime,
    /// How long an occurrence takes.
    pub length: EventLength,
    /// RRULE.
    pub rules: Vec<Rule>,
    /// EXRULE.
    pub exrules: Vec<Rule>,
    /// RDATE.
    pub rdates: Vec<Rdate>,
    /// EXDATE.
    pub exdates: Vec<CalendarDateTime>,
    /// Changed occurrences.
    pub overrides: Vec<Override>,
}

impl SeriesSpec {
    /// Of something that happens once.
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

/// What was found wrong with a description, and what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SeriesWarning {
    /// The last occurrence of a rule was not found within the budget: it is followed without that
    /// end.
    #[error("a rule has too many occurrences to find its last one")]
    UnknownEnd(usize),
    /// A rule gives no occurrence.
    #[error("a rule has no occurrence")]
    NoOccurrence(usize),
}

/// An occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The moment it was planned for, which names it.
    pub original: Instant,
    /// The same as the series' clock shows it.
    pub original_civil: CivilTime,
    /// When it begins.
    pub start: Instant,
    /// When it has ended.
    pub end: Instant,
    /// When it begins, as the series' clock shows it.
    pub start_civil: CivilTime,
    /// When it has ended, as the series' clock shows it; of days, the day after the last.
    pub end_civil: CivilTime,
    /// Of a changed occurrence, and of those after one that changes them, the caller's name of the
    /// change.
    pub tag: Option<u64>,
    /// It is the changed occurrence itself.
    pub is_override: bool,
}

/// A compiled series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    start: CivilTime,
    is_date: bool,
    zone_reference: ZoneReference,
    length: EventLength,
    /// Their ends found.
    rules: Vec<Rule>,
    exrules: Vec<Rule>,
    /// By key, each once.
    rdates: Vec<PlannedOccurrence>,
    /// Keys, sorted.
    excluded_keys: Vec<i64>,
    /// Numbers of days on which nothing is, sorted.
    excluded_days: Vec<i64>,
    /// By the key of the original, each once.
    overrides: Vec<CompiledOverride>,
    /// By key, each once.
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

/// When a changed occurrence begins, whatever clock its series has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverrideStart {
    Instant(Instant),
    /// On a clock that floats.
    Civil(CivilTime),
    /// On a day.
    Date(CivilTime),
}

/// What becomes of the occurrences from a changed one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FutureOverride {
    from: i64,
    /// Seconds on the clock.
    shift_seconds: i64,
    length: Option<EventLength>,
    tag: u64,
}

impl Series {
    /// Is it on days?
    #[must_use]
    pub fn is_date(&self) -> bool {
        self.is_date
    }

    /// Where its clock stands.
    #[must_use]
    pub fn zone_reference(&self) -> &ZoneReference {
        &self.zone_reference
    }

    /// DTSTART, as its clock shows it.
    #[must_use]
    pub fn start(&self) -> CivilTime {
        self.start
    }

    /// Does it happen more than once, or might it?
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        !self.rules.is_empty() || !self.rdates.is_empty()
    }

    /// How long an occurrence takes, if nothing says otherwise of it.
    #[must_use]
    pub fn length(&self) -> EventLength {
        self.length
    }

    /// Its rules, the ends of which are found: [`End::Never`](crate::rule::End::Never) or
    /// [`End::At`](crate::rule::End::At); one that still has a COUNT has more occurrences than
    /// could be counted.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Is it known where its rules end? Else what is far from the start may be behind the end.
    #[must_use]
    pub fn has_resolved_ends(&self) -> bool {
        self.rules.iter().all(|rule| rule.count().is_none())
    }

    /// Is a key a moment?
    fn has_instant_keys(&self) -> bool {
        !self.is_date && self.zone_reference != ZoneReference::Floating
    }

    /// The zone of its clock, which is with the asker if it floats.
    fn zone<'z>(&'z self, local: &'z Zone) -> &'z Zone {
        match &self.zone_reference {
            _ if self.is_date => local,
            ZoneReference::Floating => local,
            ZoneReference::Utc => &Zone::UTC,
            ZoneReference::Zone(zone) => zone,
        }
    }

    /// The key of what the clock shows.
    fn civil_key(&self, civil: CivilTime) -> i64 {
        match &self.zone_reference {
            _ if self.is_date => CivilTime::midnight(civil.day_number()).seconds(),
            ZoneReference::Zone(zone) => zone.to_instant(civil).seconds(),
            ZoneReference::Utc | ZoneReference::Floating => civil.seconds(),
        }
    }

    /// What the clock shows at a key.
    fn civil_at_key(&self, key: i64) -> CivilTime {
        match &self.zone_reference {
            ZoneReference::Zone(zone) if !self.is_date => {
                zone.to_civil(Instant::from_seconds_clamped(key))
            }
            _ => CivilTime::from_seconds_clamped(key),
        }
    }

    /// When something ends that begins then.
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

    /// An upper bound of how long an occurrence takes, in seconds.
    #[must_use]
    pub fn max_length_seconds(&self) -> i64 {
        let extras = self.rdates.iter().filter_map(|extra| extra.length);
        let singles = self.overrides.iter().map(|single| single.length);
        let ranges = self.future_overrides.iter().filter_map(|range| range.length);
        let all = extras.chain(singles).chain(ranges).chain([self.length]);
        // A day of a date may have more hours than it says.
        let longest = all.map(EventLength::max_seconds).max().unwrap_or(0);
        longest.saturating_add(if self.is_date { DAY_SECONDS } else { 0 })
    }
}
