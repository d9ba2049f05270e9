//! Tables of transitions, searched by bisection, and the zones of the system, whose recent
//! transitions are in a table.

use crate::civil::{CivilTime, DAY_SECONDS, Instant, first_day_of_year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::OnceLock;

/// The transitions of a zone in a range of time.
#[derive(Debug, Clone)]
pub(super) struct TransitionTable {
    /// The range of the table.
    from: Instant,
    to: Instant,
    /// The offset before the first transition.
    first_offset: i32,
    transitions: Vec<Transition>,
}

#[derive(Debug, Clone, Copy)]
struct Transition {
    at: Instant,
    /// The first civil time that is read with the new offset. If the clock goes forward it is the
    /// first civil time after the gap; if it goes back, the first one after the repeated hour. So a
    /// time in a gap, and the first of two equal times, have the old offset.
    first_civil_seconds: i64,
    offset: i32,
}

impl TransitionTable {
    /// Creates a table of transitions in order; omits transitions that change nothing.
    pub(super) fn new(
        from: Instant,
        to: Instant,
        first_offset: i32,
        all: impl IntoIterator<Item = (Instant, i32)>,
    ) -> TransitionTable {
        let mut transitions: Vec<Transition> = Vec::new();
        let mut before = first_offset;
        for (at, offset) in all {
            // Of two transitions at one instant, the later one applies.
            if transitions.last().is_some_and(|last| last.at == at) {
                let _ = transitions.pop();
                before = transitions.last().map_or(first_offset, |last| last.offset);
            }
            if offset == before {
                continue;
            }
            let shown = at.seconds() + i64::from(offset.max(before));
            transitions.push(Transition { at, first_civil_seconds: shown, offset });
            before = offset;
        }
        transitions.shrink_to_fit();
        TransitionTable { from, to, first_offset, transitions }
    }

    pub(super) fn offset(&self, instant: Instant) -> Option<i32> {
        if instant < self.from || instant >= self.to {
            return None;
        }
        Some(self.offset_after(self.transitions.partition_point(|change| change.at <= instant)))
    }

    /// Returns the offset for a civil time; `None` within a day of the ends of the table.
    pub(super) fn offset_for_civil(&self, civil: CivilTime) -> Option<i32> {
        let seconds = civil.seconds();
        let starts = self.from == Instant::MIN || seconds >= self.from.seconds() + DAY_SECONDS;
        let ends = self.to == Instant::MAX || seconds < self.to.seconds() - DAY_SECONDS;
        (starts && ends).then(|| {
            self.offset_after(
                self.transitions.partition_point(|change| change.first_civil_seconds <= seconds),
            )
        })
    }

    fn offset_after(&self, count: usize) -> i32 {
        let last = count.checked_sub(1).and_then(|last| self.transitions.get(last));
        last.map_or(self.first_offset, |change| change.offset)
    }

    /// Returns the last transition, or the constant offset.
    pub(super) fn last_transition(&self) -> (Instant, i32) {
        let last = self.transitions.last();
        last.map_or((Instant::MIN, self.first_offset), |change| (change.at, change.offset))
    }

    pub(super) fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        let within = self.transitions.iter().skip_while(|change| change.at < from);
        within
            .take_while(|change| change.at < to)
            .map(|change| (change.at, change.offset))
            .collect()
    }
}

/// A zone of the system's data.
pub(super) struct SystemZone {
    pub(super) name: String,
    zone: TimeZone,
    table: OnceLock<TransitionTable>,
    offsets: OnceLock<(i32, i32)>,
}

impl SystemZone {
    pub(super) fn new(zone: TimeZone, name: &str) -> SystemZone {
        let (table, offsets) = (OnceLock::new(), OnceLock::new());
        SystemZone { name: name.to_string(), zone, table, offsets }
    }

    /// The transitions from 1970 to 2050, which serve nearly all lookups.
    pub(super) fn transition_table(&self) -> &TransitionTable {
        self.table.get_or_init(|| {
            let from = Instant::from_seconds_clamped(0);
            let to = Instant::from_seconds_clamped(first_day_of_year(2050) * DAY_SECONDS);
            TransitionTable::new(from, to, self.offset(from), self.transitions(from, to))
        })
    }

    /// Returns the lowest and highest offset, past and future.
    pub(super) fn offset_bounds(&self) -> (i32, i32) {
        *self.offsets.get_or_init(|| {
            let to = Instant::from_seconds_clamped(first_day_of_year(2150) * DAY_SECONDS);
            let later = self.transitions(Instant::MIN, to).into_iter().map(|(_, offset)| offset);
            let first = self.offset(Instant::MIN);
            later.fold((first, first), |(low, high), offset| (low.min(offset), high.max(offset)))
        })
    }

    pub(super) fn offset(&self, instant: Instant) -> i32 {
        self.zone.to_offset(to_jiff_timestamp(instant)).seconds()
    }

    pub(super) fn transitions(&self, from: Instant, to: Instant) -> Vec<(Instant, i32)> {
        let before = from.saturating_add(-1);
        let mut offset = self.offset(before);
        let mut found = Vec::new();
        for change in self.zone.following(to_jiff_timestamp(before)) {
            let at = Instant::from_seconds_clamped(change.timestamp().as_second());
            if at >= to {
                break;
            }
            let after = change.offset().seconds();
            if after != offset {
                found.push((at, after));
            }
            offset = after;
        }
        found
    }
}

/// Converts to the nearest instant that jiff supports.
fn to_jiff_timestamp(instant: Instant) -> Timestamp {
    let seconds =
        instant.seconds().clamp(Timestamp::MIN.as_second() + 1, Timestamp::MAX.as_second());
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
