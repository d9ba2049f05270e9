//! Series: what an item says about when it happens, compiled, and its occurrences in any window.
//!
//! A [`Description`] is what stands in the item: start, length, rules, dates, exceptions, changed occurrences,
//! each in the clock it was written in. A [`Series`] is what follows from it: everything in the start's clock,
//! sorted, the ends of rules found, so that a question is a few divisions and bisections. It can be kept as
//! bytes.
//!
//! An occurrence is known by its *key*: the moment it was planned for, in seconds UTC, if the start's clock
//! stands in a zone; what the clock shows, if it floats, as all days do, for then the moment is another for
//! each who asks.

mod bytes;
mod compile;
mod pattern;
mod question;
mod window;

pub use self::pattern::Pattern;
pub use self::question::Span;
pub use self::window::{Detached, Window};

use crate::civil::{Civil, DAY, Instant};
use crate::rule::Rule;
pub use crate::value::Length;
use crate::zone::Zone;

/// Where a clock stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clock {
    /// It shows UTC.
    Utc,
    /// With whoever looks at it.
    Floating,
    /// In a zone.
    Zone(Zone),
}

/// A date or a date-time with its clock, which means nothing for a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What the clock shows; midnight for a date.
    pub civil: Civil,
    /// A date.
    pub date: bool,
    /// Where the clock stands.
    pub clock: Clock,
}

impl Start {
    /// A date.
    #[must_use]
    pub fn date(day: Civil) -> Start {
        Start { civil: Civil::midnight(day.day()), date: true, clock: Clock::Floating }
    }

    /// A date-time.
    #[must_use]
    pub fn at(civil: Civil, clock: Clock) -> Start {
        Start { civil, date: false, clock }
    }

    /// The zone of its clock; none if it floats, as dates do.
    fn zone(&self) -> Option<&Zone> {
        match &self.clock {
            _ if self.date => None,
            Clock::Floating => None,
            Clock::Utc => Some(&Zone::UTC),
            Clock::Zone(zone) => Some(zone),
        }
    }
}

/// An RDATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// When it begins.
    pub at: Start,
    /// How long it takes, if not as long as the others.
    pub length: Option<Length>,
}

/// A changed occurrence: an item with a RECURRENCE-ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// RECURRENCE-ID: when it was planned for.
    pub original: Start,
    /// RANGE=THISANDFUTURE: those after it change, too.
    pub following: bool,
    /// When it begins, if not when it was planned.
    pub start: Option<Start>,
    /// How long it takes, if not as long as the others.
    pub length: Option<Length>,
    /// The caller's name of it.
    pub tag: u64,
}

/// What an item says about when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// DTSTART, the first occurrence whether a rule matches it or not.
    pub start: Start,
    /// How long an occurrence takes.
    pub length: Length,
    /// RRULE.
    pub rules: Vec<Rule>,
    /// EXRULE.
    pub exrules: Vec<Rule>,
    /// RDATE.
    pub dates: Vec<Extra>,
    /// EXDATE.
    pub exclusions: Vec<Start>,
    /// Changed occurrences.
    pub overrides: Vec<Override>,
}

impl Description {
    /// Of something that happens once.
    #[must_use]
    pub fn once(start: Start, length: Length) -> Description {
        Description {
            start,
            length,
            rules: Vec::new(),
            exrules: Vec::new(),
            dates: Vec::new(),
            exclusions: Vec::new(),
            overrides: Vec::new(),
        }
    }
}

/// What was found wrong with a description, and what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The last occurrence of a rule was not found within the budget: it is followed without that end.
    #[error("a rule has too many occurrences to find its last one")]
    EndUnknown(usize),
    /// A rule gives no occurrence.
    #[error("a rule has no occurrence")]
    Empty(usize),
}

/// An occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The moment it was planned for, which names it.
    pub original: Instant,
    /// The same as the series' clock shows it.
    pub original_civil: Civil,
    /// When it begins.
    pub start: Instant,
    /// When it has ended.
    pub end: Instant,
    /// When it begins, as the series' clock shows it.
    pub start_civil: Civil,
    /// When it has ended, as the series' clock shows it; of days, the day after the last.
    pub end_civil: Civil,
    /// Of a changed occurrence, and of those after one that changes them, the caller's name of the change.
    pub tag: Option<u64>,
    /// It is the changed occurrence itself.
    pub detached: bool,
}

/// A compiled series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    start: Civil,
    date: bool,
    clock: Clock,
    length: Length,
    /// Their ends found.
    rules: Vec<Rule>,
    exrules: Vec<Rule>,
    /// By key, each once.
    extras: Vec<Added>,
    /// Keys, sorted.
    excluded: Vec<i64>,
    /// Numbers of days on which nothing is, sorted.
    excluded_days: Vec<i64>,
    /// By the key of the original, each once.
    singles: Vec<Single>,
    /// By key, each once.
    ranges: Vec<Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Added {
    key: i64,
    length: Option<Length>,
}

/// A changed occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Single {
    original: i64,
    place: Place,
    length: Length,
    tag: u64,
}

/// When a changed occurrence begins, whatever clock its series has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Instant(Instant),
    /// On a clock that floats.
    Civil(Civil),
    /// On a day.
    Date(Civil),
}

/// What becomes of the occurrences from a changed one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: i64,
    /// Seconds on the clock.
    shift: i64,
    length: Option<Length>,
    tag: u64,
}

impl Series {
    /// Is it on days?
    #[must_use]
    pub fn is_date(&self) -> bool {
        self.date
    }

    /// Where its clock stands.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// DTSTART, as its clock shows it.
    #[must_use]
    pub fn start(&self) -> Civil {
        self.start
    }

    /// Does it happen more than once, or might it?
    #[must_use]
    pub fn recurs(&self) -> bool {
        !self.rules.is_empty() || !self.extras.is_empty()
    }

    /// How long an occurrence takes, if nothing says otherwise of it.
    #[must_use]
    pub fn length(&self) -> Length {
        self.length
    }

    /// Its rules, the ends of which are found: [`End::Never`](crate::rule::End::Never) or
    /// [`End::At`](crate::rule::End::At); one that still has a COUNT has more occurrences than could be counted.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Is it known where its rules end? Else what is far from the start may be behind the end.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.rules.iter().all(|rule| rule.count().is_none())
    }

    /// Is a key a moment?
    fn is_fixed(&self) -> bool {
        !self.date && self.clock != Clock::Floating
    }

    /// The zone of its clock, which is with the asker if it floats.
    fn zone<'z>(&'z self, local: &'z Zone) -> &'z Zone {
        match &self.clock {
            _ if self.date => local,
            Clock::Floating => local,
            Clock::Utc => &Zone::UTC,
            Clock::Zone(zone) => zone,
        }
    }

    /// The key of what the clock shows.
    fn key(&self, civil: Civil) -> i64 {
        match &self.clock {
            _ if self.date => Civil::midnight(civil.day()).seconds(),
            Clock::Zone(zone) => zone.instant(civil).seconds(),
            Clock::Utc | Clock::Floating => civil.seconds(),
        }
    }

    /// What the clock shows at a key.
    fn shown(&self, key: i64) -> Civil {
        match &self.clock {
            Clock::Zone(zone) if !self.date => zone.civil(Instant::clamped(key)),
            _ => Civil::clamped(key),
        }
    }

    /// When something ends that begins then.
    fn end(&self, start: Instant, civil: Civil, length: Length, zone: &Zone) -> (Instant, Civil) {
        let on_the_clock = |civil: Civil, seconds: i64| {
            let end = zone.instant(civil).plus(seconds);
            (end, if seconds == 0 { civil } else { zone.civil(end) })
        };
        match length {
            Length::Exact(seconds) if self.date => on_the_clock(civil.plus(seconds.max(0)), 0),
            Length::Exact(seconds) => {
                let end = start.plus(seconds.max(0));
                (end, zone.civil(end))
            }
            Length::Nominal(nominal) if nominal.days == 0 => {
                let end = start.plus(nominal.seconds.max(0));
                (end, zone.civil(end))
            }
            Length::Nominal(nominal) => {
                let days = nominal.days.saturating_mul(DAY);
                let (end, shown) = on_the_clock(civil.plus(days), nominal.seconds);
                if end < start { (start, civil) } else { (end, shown) }
            }
        }
    }

    /// An upper bound of how long an occurrence takes, in seconds.
    #[must_use]
    pub fn longest(&self) -> i64 {
        let extras = self.extras.iter().filter_map(|extra| extra.length);
        let singles = self.singles.iter().map(|single| single.length);
        let ranges = self.ranges.iter().filter_map(|range| range.length);
        let all = extras.chain(singles).chain(ranges).chain([self.length]);
        // A day of a date may have more hours than it says.
        let longest = all.map(Length::longest).max().unwrap_or(0);
        longest.saturating_add(if self.date { DAY } else { 0 })
    }
}
